//! Where the mutants of a file are in its syntax.
//!
//! Contract: reads a file as Rust and finds for each mutant the construct that it changes, by genre and position.
//! Ranges are of bytes of the text. What stands in macros, patterns and types is not looked at.

use super::list::{Genre, Mutant, Position};
use proc_macro2::Span;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What a construct is made of.
#[derive(Clone, Debug)]
pub enum Kind {
    /// The body of a function; its range is empty, and where the first statement may stand.
    Body,
    /// Two operands and what stands between them.
    Binary { left: Range<usize>, right: Range<usize> },
    /// An operator and its operand.
    Unary { operand: Range<usize> },
    /// The pattern of an arm, and its guard.
    Arm { pattern: Range<usize>, guard: Option<Range<usize>> },
    /// A field of a structure that takes the others from `base`.
    Field { name: Range<usize>, path: Range<usize>, value: Range<usize>, base: Range<usize> },
}

/// A mutant of a construct.
#[derive(Clone, Debug)]
pub struct Planted {
    /// Its number, from 1.
    pub number: u32,
    pub genre: Genre,
    pub replacement: String,
}

/// A construct.
#[derive(Clone, Debug)]
pub struct Place {
    pub range: Range<usize>,
    pub kind: Kind,
    pub mutants: Vec<Planted>,
}

/// A file's constructs.
#[derive(Default)]
pub struct Places {
    /// Those that have mutants, in the order in which they begin; of those that begin at one place the outermost first.
    pub places: Vec<Place>,
    /// The bodies of all functions.
    pub functions: Vec<Range<usize>>,
    /// Mutants that have no place.
    pub unmatched: Vec<u32>,
}

impl Places {
    /// Finds the places of mutants, each with its number.
    pub fn find(text: &str, mutants: &[(u32, &Mutant)]) -> Result<Places, syn::Error> {
        let mut finder = Finder::default();
        finder.visit_file(&syn::parse_file(text)?);
        let Finder { mut places, by_position, functions } = finder;
        let mut unmatched = Vec::new();
        for (number, mutant) in mutants {
            match by_position.get(&(mutant.genre, mutant.extent.start)) {
                Some(&at) => places[at].mutants.push(Planted {
                    number: *number,
                    genre: mutant.genre,
                    replacement: mutant.replacement.clone(),
                }),
                None => unmatched.push(*number),
            }
        }
        places.retain(|place| !place.mutants.is_empty());
        places.sort_by_key(|place| (place.range.start, Reverse(place.range.end)));
        Ok(Places { places, functions, unmatched })
    }
}

/// Collects constructs.
#[derive(Default)]
struct Finder {
    places: Vec<Place>,
    /// Places by what cargo-mutants says of a mutant.
    by_position: HashMap<(Genre, Position), usize>,
    functions: Vec<Range<usize>>,
}

impl Finder {
    /// A construct which mutants of these genres name by these places.
    fn add(&mut self, range: Range<usize>, kind: Kind, names: &[(Genre, Span)]) {
        for (genre, span) in names {
            self.by_position.insert((*genre, start(*span)), self.places.len());
        }
        self.places.push(Place { range, kind, mutants: Vec::new() });
    }

    fn function(&mut self, attributes: &[syn::Attribute], block: &syn::Block) {
        self.functions.push(bytes(block));
        if let Some(first) = block.stmts.first() {
            // Attributes of the function may stand in its body, and nothing before them.
            let inner = attributes.iter().filter(|one| matches!(one.style, syn::AttrStyle::Inner(_)));
            let brace = block.brace_token.span.open().byte_range().end;
            let at = inner.map(|one| bytes(one).end).fold(brace, usize::max);
            self.add(at..at, Kind::Body, &[(Genre::FnValue, first.span())]);
        }
        visit::visit_block(self, block);
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.attrs, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.attrs, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.attrs, block);
        }
    }

    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        // A `let` may stand between `&&` only, and not in brackets.
        if !has_let(&expression.left) && !has_let(&expression.right) {
            let kind = Kind::Binary { left: bytes(&expression.left), right: bytes(&expression.right) };
            let names = [(Genre::BinaryOperator, expression.op.span())];
            self.add(bytes(expression), kind, &names);
        }
        visit::visit_expr_binary(self, expression);
    }

    fn visit_expr_unary(&mut self, expression: &'ast syn::ExprUnary) {
        let kind = Kind::Unary { operand: bytes(&expression.expr) };
        self.add(bytes(expression), kind, &[(Genre::UnaryOperator, expression.op.span())]);
        visit::visit_expr_unary(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut names = vec![(Genre::MatchArm, arm.span()), (Genre::MatchArm, arm.pat.span())];
        if let Some((word, guard)) = &arm.guard {
            names.extend([(Genre::MatchArmGuard, word.span()), (Genre::MatchArmGuard, guard.span())]);
        }
        let (pattern, guard) = (bytes(&arm.pat), arm.guard.as_ref().map(|(_, guard)| bytes(guard)));
        let end = guard.as_ref().map_or(pattern.end, |guard| guard.end);
        self.add(pattern.start..end, Kind::Arm { pattern, guard }, &names);
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        if let Some(rest) = &expression.rest {
            for field in &expression.fields {
                let kind = Kind::Field {
                    name: bytes(&field.member),
                    path: bytes(&expression.path),
                    value: bytes(&field.expr),
                    base: bytes(rest),
                };
                self.add(bytes(field), kind, &[(Genre::StructField, field.span())]);
            }
        }
        visit::visit_expr_struct(self, expression);
    }
}

fn bytes(syntax: &impl Spanned) -> Range<usize> {
    syntax.span().byte_range()
}

/// As cargo-mutants counts.
fn start(span: Span) -> Position {
    let start = span.start();
    Position { line: start.line, column: start.column + 1 }
}

fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rewrite::tests::mutant;
    use super::*;

    fn found(text: &str, genre: Genre, mark: &str) -> Option<Kind> {
        let mutant = mutant(text, genre, mark, "");
        let places = Places::find(text, &[(1, &mutant)]).unwrap();
        assert_eq!(places.places.is_empty(), places.unmatched == [1]);
        places.places.into_iter().next().map(|place| place.kind)
    }

    #[test]
    fn constructs_are_found_by_genre_and_position() {
        let text = "fn f(a: i8) -> i8 { -a + 1 }";
        assert!(matches!(found(text, Genre::FnValue, "-a"), Some(Kind::Body)));
        assert!(matches!(found(text, Genre::UnaryOperator, "-a"), Some(Kind::Unary { .. })));
        assert!(matches!(found(text, Genre::BinaryOperator, "+"), Some(Kind::Binary { .. })));
        assert!(
            found(text, Genre::BinaryOperator, "-a").is_none() && found(text, Genre::Other, "+").is_none()
        );
        // Columns are of characters.
        let text = "fn f() -> bool { \"§§\" == \"\" }";
        assert!(found(text, Genre::BinaryOperator, "==").is_some());
    }

    #[test]
    fn an_operator_beside_a_let_has_no_place_and_one_within_an_operand_has() {
        let text = "fn f(a: Option<u8>) -> bool { if let Some(1) = a && 1 < 2 { true } else { false } }";
        assert!(found(text, Genre::BinaryOperator, "&&").is_none());
        assert!(found(text, Genre::BinaryOperator, "< 2").is_some());
        // A chain is nested to the left, so that the `let` is deeper in the operand of the last operator.
        let chains = [
            "fn f() { if let Some(1) = a && (b || c) && 1 < 2 && d {} }",
            "fn f() { if (b || c) && let Some(1) = a && 1 < 2 && d {} }",
        ];
        for text in chains {
            for mark in ["&& let", "&& (b", "&& 1", "&& d"].into_iter().filter(|mark| text.contains(mark)) {
                assert!(found(text, Genre::BinaryOperator, mark).is_none(), "{mark}");
            }
            assert!(found(text, Genre::BinaryOperator, "||").is_some());
        }
    }

    #[test]
    fn methods_have_bodies_as_functions_have() {
        for text in [
            "fn f() -> u8 { 1 + 2 }",
            "impl A { fn f(&self) -> u8 { 1 + 2 } }",
            "trait A { fn g(&self); fn f(&self) -> u8 { 1 + 2 } }",
        ] {
            let mutants = [Genre::FnValue, Genre::BinaryOperator].map(|genre| {
                let mark = if genre == Genre::FnValue { "1 +" } else { "+" };
                mutant(text, genre, mark, "3")
            });
            let numbered: Vec<(u32, &Mutant)> = (1..).zip(&mutants).collect();
            let Places { places, functions, unmatched } = Places::find(text, &numbered).unwrap();
            assert_eq!((places.len(), unmatched), (2, vec![]), "{text}");
            assert!(matches!(places[0].kind, Kind::Body) && places[0].mutants[0].number == 1, "{text}");
            assert!(functions.iter().map(|body| &text[body.clone()]).eq(["{ 1 + 2 }"]), "{text}");
        }
    }

    #[test]
    fn outer_places_come_before_inner_ones() {
        let text = "fn f() -> u8 { 1 + 2 * 3 + 4 }";
        let marks = ["+ 2", "* 3", "+ 4"].map(|mark| mutant(text, Genre::BinaryOperator, mark, "-"));
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(&marks).collect();
        let places = Places::find(text, &numbered).unwrap().places;
        let numbers: Vec<u32> = places.iter().map(|place| place.mutants[0].number).collect();
        assert_eq!(numbers, [3, 1, 2]);
    }
}
