//! Files of one crate that name each other in a circle.
//!
//! Contract: file A names file B if a path in A, resolved through modules and imports as the compiler resolves them,
//! ends at an item of B. A path has two names or more: one alone may be a variable's. A re-export is a name and no use:
//! who imports it names the file that has the item. Tests (`#[cfg(test)]`) are left out, since they may look anywhere.
//! Macros are read as they stand, and a glob names the module before it. A module and its own parts may name each
//! other: they are one subject in several files; its parts may not do so without it. Other circles that are meant are
//! in [`MEANT`], each with its reason; one that is there no more is told too.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Circles that stay, each as the files in it in order of their names, and why.
const MEANT: &[(&[&str], &str)] = &[
    (
        &["vgpu/src/shader/machine.rs", "vgpu/src/shader/micro.rs", "vgpu/src/simd.rs"],
        "an operation has its executor, which runs it on the machine, which has the operations",
    ),
    (
        &["xtask/src/test/binaries.rs", "xtask/src/test/left_out.rs"],
        "a binary runs without the cases that are left out, which are counted by asking the binary",
    ),
];

/// Imports that are followed from one to the next before a name is given up.
const IMPORTS_MAX: usize = 8;

/// A module, by the names that lead to it from the root of its crate.
type Module = Vec<String>;

/// What a crate's files say.
#[derive(Default)]
struct Crate {
    /// Files by module.
    files: BTreeMap<Module, String>,
    /// What imports call an item: the path by module and name.
    imports: BTreeMap<(Module, String), Vec<String>>,
    /// Paths by the module that they stand in; not those of re-exports.
    paths: Vec<(Module, Vec<String>)>,
    /// All modules, those within a file too.
    modules: BTreeSet<Module>,
    /// Modules that only tests have.
    tests: BTreeSet<Module>,
}

/// Findings over all sources, each a path and its text.
pub fn check<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    let mut findings = Vec::new();
    for (path, text) in sources {
        let Some((folder, inside)) = path.split_once("/src/") else { continue };
        let Some(module) = module_of(inside) else { continue };
        // What is no Rust is told elsewhere.
        let Ok(tokens) = text.parse::<TokenStream>() else { continue };
        let one = crates.entry(folder).or_default();
        one.read(&tokens, &module);
        one.files.insert(module, path.to_owned());
    }
    let mut found: Vec<Vec<String>> = crates.values().flat_map(Crate::circles).collect();
    for (files, why) in MEANT {
        match found.iter().position(|circle| circle == files) {
            Some(at) => drop(found.remove(at)),
            None => findings.push(format!("circles: there is none of {} ({why})", files.join(", "))),
        }
    }
    findings.extend(
        found.iter().map(|circle| format!("files name each other in a circle: {}", circle.join(", "))),
    );
    findings
}

/// The module of a file by its path below `src`. Programs beside a library have their own root.
fn module_of(inside: &str) -> Option<Module> {
    let stem = inside.strip_suffix(".rs")?;
    let mut module: Module = stem.split('/').map(str::to_owned).collect();
    if module.first().is_some_and(|first| first == "bin") {
        return None;
    }
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    Some(module)
}

impl Crate {
    /// Reads what stands in a module.
    fn read(&mut self, tokens: &TokenStream, module: &Module) {
        self.modules.insert(module.clone());
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let (mut at, mut is_public) = (0, false);
        while at < tokens.len() {
            let word = word(&tokens, at);
            if is_test_attribute(&tokens[at..]) {
                at = self.skip_item(&tokens, at, module);
                continue;
            }
            match (word.as_deref(), tokens.get(at + 1), tokens.get(at + 2)) {
                (Some("pub"), Some(TokenTree::Group(group)), _) if is_restriction(group) => {
                    is_public = true;
                    at += 2;
                    continue;
                }
                (Some("pub"), ..) => {
                    is_public = true;
                    at += 1;
                    continue;
                }
                (Some("use"), ..) => {
                    let end = position_of(&tokens, at, ';');
                    self.import(&tokens[at + 1..end], &mut Vec::new(), module, is_public);
                    at = end;
                }
                (Some("mod"), Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) => {
                    let inner = [module.as_slice(), &[name.to_string()]].concat();
                    self.read(&body.stream(), &inner);
                    at += 3;
                }
                (Some(_), ..) => {
                    let (path, end) = path_at(&tokens, at);
                    if path.len() > 1 {
                        self.paths.push((module.clone(), path));
                    }
                    at = end;
                }
                _ => {
                    if let TokenTree::Group(group) = &tokens[at] {
                        self.read(&group.stream(), module);
                    }
                    at += 1;
                }
            }
            is_public = false;
        }
    }

    /// Passes over the item that an attribute of tests stands before; its end. A `;` says nothing and stays.
    fn skip_item(&mut self, tokens: &[TokenTree], start: usize, module: &Module) -> usize {
        for at in start..tokens.len() {
            match &tokens[at] {
                TokenTree::Punct(point) if point.as_char() == ';' => return at,
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return at + 1,
                TokenTree::Ident(word) if *word == "mod" => {
                    if let Some(name) = self::word(tokens, at + 1) {
                        self.tests.insert([module.as_slice(), &[name]].concat());
                    }
                }
                _ => {}
            }
        }
        tokens.len()
    }

    /// Enters a tree of imports: `before` are the names in front of it.
    fn import(&mut self, tree: &[TokenTree], before: &mut Vec<String>, module: &Module, is_public: bool) {
        for branch in tree.split(|token| is_point(token, ',')).filter(|branch| !branch.is_empty()) {
            let length = before.len();
            let mut rest = branch;
            while let Some(name) = word(rest, 0) {
                before.push(name);
                rest = &rest[1..];
                match rest {
                    // Of `::`; otherwise `as` follows.
                    [colon, _, after @ ..] if is_point(colon, ':') => rest = after,
                    _ => break,
                }
            }
            match rest {
                [TokenTree::Group(group)] => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.import(&inner, before, module, is_public);
                }
                _ => {
                    let path = before.clone();
                    let name = word(rest, 1).or_else(|| path.last().cloned());
                    if let Some(name) = name {
                        self.imports.insert((module.clone(), name), path.clone());
                    }
                    if !is_public {
                        self.paths.push((module.clone(), path));
                    }
                }
            }
            before.truncate(length);
        }
    }

    /// The module in which the item of a path is, as seen from a module; `None` for another crate's.
    fn home(&self, from: &Module, path: &[String], imports_left: usize) -> Option<Module> {
        let first = path.first()?;
        let is_known = |name: &String| {
            self.modules.contains(&[from.as_slice(), std::slice::from_ref(name)].concat())
                || self.imports.contains_key(&(from.clone(), name.clone()))
        };
        let mut module = match first.as_str() {
            "crate" => Module::new(),
            "self" | "super" => from.clone(),
            _ if is_known(first) => from.clone(),
            _ => return None,
        };
        for (at, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" | "self" => continue,
                "super" => {
                    module.pop()?;
                    continue;
                }
                _ => {}
            }
            let below = [module.as_slice(), std::slice::from_ref(name)].concat();
            if self.modules.contains(&below) {
                module = below;
                continue;
            }
            let Some(imported) = self.imports.get(&(module.clone(), name.clone())) else { break };
            let whole = [imported.as_slice(), &path[at + 1..]].concat();
            return self.home(&module, &whole, imports_left.checked_sub(1)?);
        }
        Some(module)
    }

    /// The file that a module is in.
    fn file(&self, module: &Module) -> Option<&str> {
        let places = (0..=module.len()).rev();
        places.filter_map(|length| self.files.get(&module[..length])).map(String::as_str).next()
    }

    fn is_test(&self, module: &Module) -> bool {
        (1..=module.len()).any(|length| self.tests.contains(&module[..length]))
    }

    /// Circles of its files.
    fn circles(&self) -> Vec<Vec<String>> {
        let mut names = Names::new();
        for (from, path) in self.paths.iter().filter(|(from, _)| !self.is_test(from)) {
            let home = self.home(from, path, IMPORTS_MAX);
            if let (Some(file), Some(other)) = (self.file(from), home.and_then(|home| self.file(&home))) {
                names.entry(file).or_default().insert(other);
            }
        }
        let mut circles = Vec::new();
        collect(&names, &mut circles);
        circles
    }
}

/// Files, and those that each of them names.
type Names<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Files that reach each other. Of a module and its parts, circles of the parts alone.
fn collect(names: &Names<'_>, circles: &mut Vec<Vec<String>>) {
    let reach: Names<'_> = names.keys().map(|file| (*file, reached(names, file))).collect();
    let mut seen = BTreeSet::new();
    for (file, reached) in &reach {
        let comes_back = |other: &&&str| reach.get(*other).is_some_and(|back| back.contains(file));
        let circle: BTreeSet<&str> = reached.iter().filter(comes_back).copied().collect();
        if circle.len() < 2 || !seen.insert(circle.clone()) {
            continue;
        }
        match circle.iter().find(|file| is_module_of_all(file, &circle)) {
            Some(module) => {
                let is_part = |file: &&str| file != module && circle.contains(file);
                let parts = names.iter().filter(|(file, _)| is_part(file));
                let among =
                    parts.map(|(file, named)| (*file, named.iter().copied().filter(is_part).collect()));
                collect(&among.collect(), circles);
            }
            None => circles.push(circle.into_iter().map(str::to_owned).collect()),
        }
    }
}

/// Whether a file is the module of which all the others are parts.
fn is_module_of_all(file: &str, circle: &BTreeSet<&str>) -> bool {
    let folder = file.trim_end_matches("mod.rs").trim_end_matches(".rs").trim_end_matches('/');
    circle.iter().all(|other| *other == file || other.starts_with(&format!("{folder}/")))
}

/// What a file names, what those name, and so on.
fn reached<'a>(names: &Names<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut work: Vec<&str> = names.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = work.pop() {
        if reached.insert(file) {
            work.extend(names.get(file).into_iter().flatten());
        }
    }
    reached
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at)? {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    }
}

fn is_point(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(point) if point.as_char() == character)
}

/// The place of the next such character, or the end.
fn position_of(tokens: &[TokenTree], from: usize, character: char) -> usize {
    let found = tokens[from..].iter().position(|token| is_point(token, character));
    found.map_or(tokens.len(), |at| from + at)
}

/// The names from a place on that `::` joins, and the place after them.
fn path_at(tokens: &[TokenTree], start: usize) -> (Vec<String>, usize) {
    let (mut path, mut at) = (Vec::new(), start);
    // Of `other::name` only the beginning is a path of its own.
    let is_inside = start >= 2 && is_point(&tokens[start - 1], ':') && is_point(&tokens[start - 2], ':');
    while let Some(name) = word(tokens, at) {
        path.push(name);
        at += 1;
        let joins = |at: usize| tokens.get(at).is_some_and(|token| is_point(token, ':'));
        if !(joins(at) && joins(at + 1) && word(tokens, at + 2).is_some()) {
            break;
        }
        at += 2;
    }
    if is_inside { (Vec::new(), at) } else { (path, at) }
}

/// Whether the group after `pub` says who sees the item, as in `pub(in crate::a)`; else it is the type of a field.
fn is_restriction(group: &Group) -> bool {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    match word(&tokens, 0).as_deref() {
        Some("in") => true,
        Some("crate" | "self" | "super") => tokens.len() == 1,
        _ => false,
    }
}

/// `#[cfg(test)]`.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [hash, TokenTree::Group(group), ..] = tokens else { return false };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    let [TokenTree::Ident(cfg), TokenTree::Group(condition)] = inner.as_slice() else { return false };
    let mut words = condition.stream().into_iter();
    is_point(hash, '#')
        && *cfg == "cfg"
        && words.next().is_some_and(|first| matches!(&first, TokenTree::Ident(word) if *word == "test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Circles of a crate with these files and an empty root.
    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<String> = files.iter().map(|(path, _)| format!("a/src/{path}")).collect();
        let root = [("a/src/lib.rs", "")];
        let all =
            root.into_iter().chain(paths.iter().map(String::as_str).zip(files.iter().map(|file| file.1)));
        check(all).into_iter().filter(|finding| finding.starts_with("files name")).collect()
    }

    fn is_circle(files: &[(&str, &str)]) {
        let found = circles(files);
        assert_eq!(found.len(), 1, "{files:?}: {found:?}");
        for (path, _) in files {
            assert!(found[0].contains(&format!("a/src/{path}")), "{found:?}");
        }
    }

    #[test]
    fn two_files_that_name_each_other_are_a_circle_however_they_do_it() {
        let back = ("y.rs", "use crate::x::X; pub struct Y;");
        for forth in [
            "use crate::y::Y; pub struct X;",
            "use super::y::Y; pub struct X;",
            "use super::{y::{self, Y as Z}}; pub struct X;",
            "pub struct X(crate::y::Y);",
            "fn f() { g(super::y::Y) } pub struct X;",
            "macro_rules! m { () => { $crate::y::Y } } pub struct X;",
            "mod inner { use super::super::y::Y; } pub struct X;",
            "pub struct X(pub (crate::y::Y, u8));",
            "#[derive(Debug)] struct A { y: crate::y::Y } pub struct X;",
            "#[allow(test)] struct A { y: crate::y::Y } pub struct X;",
            // An item of tests has an end.
            "#[cfg(test)] use crate::y::A; fn f() { g(crate::y::Y) } pub struct X;",
            "#[cfg(test)] mod tests {} use crate::y::Y; pub struct X;",
            // The imports say what a module is called here and are no use of it.
            "pub use super::y as other; fn f() { other::g(); } pub struct X;",
            "pub use crate::y; struct A { a: y::Y } pub struct X;",
            "pub use crate::y; fn f(a: &y::Y) {} pub struct X;",
        ] {
            is_circle(&[("x.rs", forth), back]);
        }
        // A module of another file's module, and one of the file itself.
        let of_another = ("x.rs", "pub use crate::y as m; fn f() { m::z::g(); } pub struct X;");
        let found = circles(&[of_another, ("y.rs", "pub mod z;"), ("y/z.rs", "use crate::x::X;")]);
        assert_eq!(found, ["files name each other in a circle: a/src/x.rs, a/src/y/z.rs"]);
        is_circle(&[
            ("x.rs", "pub mod y; fn f() { y::g(); } pub struct X;"),
            ("x/y.rs", "use crate::z::Z;"),
            ("z.rs", "use crate::x::X; pub struct Z;"),
        ]);
        is_circle(&[
            ("x.rs", "use crate::y::Y;"),
            ("y.rs", "use crate::z::Z;"),
            ("z.rs", "use crate::x::X;"),
        ]);
        let parts = ("x.rs", "mod y; mod z;");
        let siblings = [parts, ("x/y.rs", "use super::z::Z; pub struct Y;"), ("x/z.rs", "use super::y::Y;")];
        assert_eq!(circles(&siblings), ["files name each other in a circle: a/src/x/y.rs, a/src/x/z.rs"]);
    }

    #[test]
    fn a_module_and_its_parts_are_one_subject() {
        let part = ("x/y.rs", "use super::X; pub struct Y;");
        for module in ["x/mod.rs", "x.rs"] {
            assert_eq!(circles(&[(module, "mod y; use y::Y; pub struct X;"), part]), [""; 0]);
        }
        // A module of which parts name each other without it, and one that takes part by way of an import.
        let other = ("x/z.rs", "use super::{X, y::Y}; pub struct Z;");
        let found = circles(&[
            ("x.rs", "mod y; mod z; use y::Y; pub struct X;"),
            ("x/y.rs", "use super::{X, z::Z}; pub struct Y;"),
            other,
        ]);
        assert_eq!(found, ["files name each other in a circle: a/src/x/y.rs, a/src/x/z.rs"]);
        let by_module = ("x/z.rs", "use super::y; fn f() { y::g(); }");
        let found =
            circles(&[("x.rs", "mod y; mod z;"), ("x/y.rs", "use super::z; fn g() { z::f(); }"), by_module]);
        assert_eq!(found.len(), 1);
        // With a file from elsewhere they are not.
        let elsewhere = ("z.rs", "use crate::x::y::Y; pub struct Z;");
        is_circle(&[("x.rs", "mod y; use crate::z::Z; pub struct X;"), part, elsewhere]);
    }

    #[test]
    fn a_circle_that_is_meant_and_is_not_there_is_told() {
        assert_eq!(check([("a/src/lib.rs", "")].into_iter()).len(), MEANT.len());
    }

    #[test]
    fn an_import_leads_to_the_file_that_has_the_item() {
        // `y` takes `Z` by way of `x`, which does not make it name `x`.
        let files = [
            ("x.rs", "mod y; mod z; pub use z::Z; use y::Y;"),
            ("x/y.rs", "use super::Z; pub struct Y;"),
            ("x/z.rs", "pub struct Z;"),
        ];
        assert_eq!(circles(&files), [""; 0]);
        // The item of another crate is in no file.
        let files = [
            ("x.rs", "use crate::y::Map; pub struct X;"),
            ("y.rs", "pub use std::collections::BTreeMap as Map; use crate::x::X;"),
        ];
        assert_eq!(circles(&files), [""; 0]);
        // Nor is one whose import leads back to itself.
        let files = [
            ("x.rs", "use crate::y::other::A; pub struct X;"),
            ("y.rs", "pub use other::other; use crate::x::X;"),
        ];
        assert_eq!(circles(&files), [""; 0]);
    }

    #[test]
    fn one_way_re_exports_tests_comments_and_other_crates_are_no_circle() {
        let back = ("y.rs", "use crate::x::X; pub struct Y;");
        for forth in [
            "pub struct X;",
            "pub use crate::y::Y; pub struct X;",
            "pub(crate) use super::y::Y; pub struct X;",
            "#[cfg(test)] mod tests { use crate::y::Y; } pub struct X;",
            "#[cfg(test)] use crate::y::Y; pub struct X;",
            "#[cfg(test)] use {crate::y::Y, crate::z::Z}; pub struct X;",
            "pub(in crate::y) struct X;",
            // Neither a variable nor the end of a path is a path that leads from here.
            "pub use crate::y; fn f(y: u8) -> u8 { y } pub struct X;",
            "pub use crate::y; fn f() { <A as B>::y::g() } pub struct X;",
            "// use crate::y::Y;\npub struct X;",
            "/// [`crate::y::Y`]\npub struct X;",
            "use other::y::Y; pub struct X;",
            "use other::crate_of::super_y::y::Y; pub struct X;",
        ] {
            assert_eq!(circles(&[("x.rs", forth), back]), [""; 0], "{forth}");
        }
        let in_a_file = [
            ("x.rs", "#[cfg(test)] mod tests; pub struct X;"),
            ("x/tests.rs", "use super::X; use crate::y::Y;"),
            back,
        ];
        assert_eq!(circles(&in_a_file), [""; 0]);
        // What tests alone have includes the parts of their module, and nothing else.
        let [a, b] =
            [("x/t/a.rs", "use super::b::B; pub struct A;"), ("x/t/b.rs", "use super::a::A; pub struct B;")];
        let parts = ("x/t.rs", "mod a; mod b;");
        assert_eq!(circles(&[("x.rs", "#[cfg(test)] pub mod t;"), parts, a, b]), [""; 0]);
        let told = ["files name each other in a circle: a/src/x/t/a.rs, a/src/x/t/b.rs"];
        assert_eq!(circles(&[("x.rs", "pub mod t; #[cfg(test)] fn t() {}"), parts, a, b]), told);
    }
}
