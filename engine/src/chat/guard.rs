//! What is done to a template's source before it is compiled: limits that the renderer does not have.
//!
//! Fuel pays for instructions and for the bytes of texts. It does not pay for what values share: `{% set x = [x, x] %}`
//! forty times makes a value that takes a few hundred bytes and years to print or compare, `x + x` and `x[0:]` are not
//! computed before something reads them, and `{% set n.x = n %}` has no end at all. So whatever a template gives a name
//! (by `set`, as a loop's items, as a macro's arguments) is wrapped in [`KEEP`], which copies it and pays for every
//! part of the copy, or in [`KEEP_DATA`] where it outlives its scope, in a namespace. Within one tag sharing is bounded
//! by the tag's length; products of lists are refused.
//!
//! Contract: works on the renderer's own tokens, so both read the same text the same way. Cost: one pass.

use super::renderer_error::syntax;
use super::{ChatError, limits};
use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Name of the function that copies what gets a name. Templates may not use it as a name.
pub(super) const KEEP: &str = "zrt_keep";
/// The same for what a namespace keeps: data only.
pub(super) const KEEP_DATA: &str = "zrt_keep_data";
/// Tags with which values get names in ways that are not wrapped here, or that need other templates.
const REFUSED_TAGS: &[&str] =
    &["with", "call", "filter", "autoescape", "block", "include", "import", "from", "extends"];

/// A template that may be compiled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Guarded {
    /// The source with its assignments wrapped.
    pub source: String,
    /// The texts between quotes.
    pub literals: Vec<String>,
}

/// Checks a template and rewrites it.
pub(super) fn guard(source: &str) -> Result<Guarded, ChatError> {
    let (bytes, limit) = (source.len(), limits::TEMPLATE_BYTES_MAX);
    if bytes > limit {
        return Err(ChatError::Length { bytes, limit });
    }
    let mut changes = Changes::default();
    let mut literals = Vec::new();
    let mut tag: Vec<(Token<'_>, Span)> = Vec::new();
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let (token, span) = token.map_err(|error| syntax(&error))?;
        match token {
            Token::TemplateData(_) => continue,
            Token::VariableStart | Token::BlockStart => tag.clear(),
            Token::BlockEnd => rewrite_tag(source, &tag, span, &mut changes)?,
            Token::VariableEnd => {}
            token => {
                let line = usize::from(span.start_line);
                match &token {
                    Token::Str(text) => literals.push((*text).to_owned()),
                    Token::String(text) => literals.push(text.to_string()),
                    Token::Ident(name) if [KEEP, KEEP_DATA].contains(name) => {
                        return Err(ChatError::Refused { line, what: "a name that is reserved" });
                    }
                    Token::Mul if !matches!(tag.last(), Some((Token::Str(_) | Token::String(_), _))) => {
                        return Err(ChatError::Refused {
                            line,
                            what: "a product of something else than a text",
                        });
                    }
                    _ => {}
                }
                if tag.len() == limits::TAG_TOKENS_MAX {
                    return Err(ChatError::Refused { line, what: "a tag of more than 256 tokens" });
                }
                tag.push((token, span));
            }
        }
    }
    Ok(Guarded { source: rewrite(source, &changes.0), literals })
}

/// A text that replaces the bytes from `begin` to `end`.
struct Change {
    begin: usize,
    end: usize,
    text: String,
}

/// The changes of a template, in order and apart.
#[derive(Default)]
struct Changes(Vec<Change>);

impl Changes {
    fn insert(&mut self, at: usize, text: String) {
        self.0.push(Change { begin: at, end: at, text });
    }

    /// Wraps the tokens of an expression in the call of a function.
    fn wrap(&mut self, expression: &[(Token<'_>, Span)], function: &str) {
        if let [first, .., last] | [first @ last] = expression {
            self.insert(first.1.start_offset as usize, format!("{function}(("));
            self.insert(last.1.end_offset as usize, "))".into());
        }
    }
}

/// Notes the changes of a tag `{% … %}`, of which `tag` has what is between the brackets, and `end` the closing one.
fn rewrite_tag(
    source: &str,
    tag: &[(Token<'_>, Span)],
    end: Span,
    changes: &mut Changes,
) -> Result<(), ChatError> {
    let Some((Token::Ident(name), span)) = tag.first() else { return Ok(()) };
    let line = usize::from(span.start_line);
    match *name {
        // The brackets with which training code marks the model's own turns: rendered without them.
        "generation" | "endgeneration" if tag.len() == 1 => {
            let text = if *name == "generation" { "if true" } else { "endif" };
            let (begin, end) = (span.start_offset as usize, span.end_offset as usize);
            changes.0.push(Change { begin, end, text: text.into() });
            Ok(())
        }
        "set" => rewrite_set(tag, line, changes),
        "for" => rewrite_for(tag, line, changes),
        "macro" => {
            rewrite_macro(&source[end.start_offset as usize..end.end_offset as usize], tag, end, changes);
            Ok(())
        }
        name if REFUSED_TAGS.contains(&name) => {
            Err(ChatError::Refused { line, what: "a tag of another kind than set, for, if, macro and do" })
        }
        _ => Ok(()),
    }
}

fn rewrite_set(tag: &[(Token<'_>, Span)], line: usize, changes: &mut Changes) -> Result<(), ChatError> {
    let target_end = tag.iter().position(|(token, _)| matches!(token, Token::Assign | Token::Pipe));
    let target = &tag[1..target_end.unwrap_or(tag.len())];
    let has_attribute = target.iter().any(|(token, _)| matches!(token, Token::Dot));
    let is_path = target.iter().enumerate().all(|(index, (token, _))| match token {
        Token::Ident(_) => index % 2 == 0,
        Token::Dot => index % 2 == 1,
        _ => false,
    });
    if has_attribute && !is_path {
        return Err(ChatError::Refused { line, what: "a list of targets with an attribute among them" });
    }
    match target_end.map(|at| (&tag[at].0, at)) {
        // `{% set x %}…{% endset %}` keeps a text, which is paid for.
        None => Ok(()),
        Some((Token::Assign, at)) => {
            changes.wrap(&tag[at + 1..], if has_attribute { KEEP_DATA } else { KEEP });
            Ok(())
        }
        Some(_) => Err(ChatError::Refused { line, what: "a filtered block that gets a name" }),
    }
}

fn rewrite_for(tag: &[(Token<'_>, Span)], line: usize, changes: &mut Changes) -> Result<(), ChatError> {
    let mut depth = 0usize;
    let mut items = None;
    let mut items_end = tag.len();
    for (index, (token, _)) in tag.iter().enumerate() {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth = depth.saturating_sub(1),
            Token::Ident("in") if depth == 0 && items.is_none() => items = Some(index + 1),
            Token::Ident("if") if depth == 0 && items.is_some() => {
                items_end = index;
                break;
            }
            _ => {}
        }
    }
    if tag.iter().any(|(token, _)| matches!(token, Token::Ident("recursive"))) {
        return Err(ChatError::Refused { line, what: "a recursive loop" });
    }
    if let Some(items) = items {
        changes.wrap(&tag[items..items_end], KEEP);
    }
    Ok(())
}

/// Gives each argument its own name again, at the beginning of the body.
fn rewrite_macro(closing: &str, tag: &[(Token<'_>, Span)], end: Span, changes: &mut Changes) {
    let mut depth = 0usize;
    let mut text = String::new();
    for pair in tag.windows(2) {
        match pair[0].0 {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins = matches!(pair[0].0, Token::ParenOpen | Token::Comma) && depth == 1;
        if let (true, Token::Ident(name)) = (begins, &pair[1].0) {
            text.push_str(&format!("{{% set {name} = {KEEP}(({name})) {closing}"));
        }
    }
    changes.insert(end.end_offset as usize, text);
}

/// Applies changes, which are in order and apart.
fn rewrite(source: &str, changes: &[Change]) -> String {
    let mut text = String::with_capacity(source.len() + 16 * changes.len());
    let mut done = 0;
    for change in changes {
        text.push_str(&source[done..change.begin]);
        text.push_str(&change.text);
        done = change.end;
    }
    text.push_str(&source[done..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> String {
        guard(text).unwrap().source
    }

    #[test]
    fn what_gets_a_name_is_copied_and_nothing_else_changes() {
        for same in [
            "a {{ b.c }} {% set y %}z{% endset %}{% if a %}{% endif %}",
            "{# {% set a.b = 1 %} #}",
            "{% raw %}{% set a.b = 1 %}{% endraw %}",
            "{{ '{% set a.b = 1 %}' }}",
            "{% set n.x %}a{% endset %}",
        ] {
            assert_eq!(source(same), same);
        }
        assert_eq!(source("{%- set n.x = n.x + 1 -%}"), "{%- set n.x = zrt_keep_data((n.x + 1)) -%}");
        assert_eq!(source("{%set x='%}'%}b"), "{%set x=zrt_keep(('%}'))%}b");
        assert_eq!(source("{% set a, b = 1, 2 %}"), "{% set a, b = zrt_keep((1, 2)) %}");
        assert_eq!(
            source("{% for m in a[::-1] if m in b %}"),
            "{% for m in zrt_keep((a[::-1])) if m in b %}"
        );
        assert_eq!(
            source("{% for k, v in (a if b else c)|items %}"),
            "{% for k, v in zrt_keep(((a if b else c)|items)) %}"
        );
        let changed =
            "{%- macro f(a, b=[1, c]) -%}{% set a = zrt_keep((a)) -%}{% set b = zrt_keep((b)) -%} x";
        assert_eq!(source("{%- macro f(a, b=[1, c]) -%} x"), changed);
        assert_eq!(source("{%- generation %}a{% endgeneration -%}"), "{%- if true %}a{% endif -%}");
        // Brackets hide what belongs to the expression; the first `in` outside of them ends the targets.
        assert_eq!(
            source("{% for x in [a in b, c if d else e] if x %}"),
            "{% for x in zrt_keep(([a in b, c if d else e])) if x %}"
        );
        assert_eq!(source("{% for x in a in b %}"), "{% for x in zrt_keep((a in b)) %}");
        let changed = "{% macro f(a=[1], b=2) %}{% set a = zrt_keep((a)) %}{% set b = zrt_keep((b)) %}";
        assert_eq!(source("{% macro f(a=[1], b=2) %}"), changed);
        // What is no tag of the language stays for the renderer to refuse.
        for same in ["{% for x in %}", "{% generation of %}", "{{ 'a' * 3 }}{{ 'a\\n' * 3 }}"] {
            assert_eq!(source(same), same);
        }
    }

    #[test]
    fn ways_around_the_copies_are_refused() {
        let what = |text: &str| guard(text).unwrap_err();
        for text in [
            "\n{% set a, n.x = 1, n %}",
            "\n{% set (n.x) = n %}",
            "\n{% set n.x | list %}a{% endset %}",
            "\n{% set zrt_keep = 1 %}",
            "\n{% macro zrt_keep_data(a) %}{% endmacro %}",
            "\n{% for zrt_keep in [1] %}{% endfor %}",
            "\n{% for a in [1] recursive %}{% endfor %}",
            "\n{% for a in [1] if a recursive %}{% endfor %}",
            "\n{% with x = [x, x] %}{% endwith %}",
            "\n{% call(x) f([x]) %}{% endcall %}",
            "\n{{ [1] * 1000 }}",
            "\n{{ 1000 * 'a'.split('') }}",
            "\n{{ f(*a) }}",
        ] {
            assert!(matches!(what(text), ChatError::Refused { line: 2, .. }), "{text}: {:?}", what(text));
        }
    }

    #[test]
    fn lengths_have_limits() {
        let long = "a".repeat(limits::TEMPLATE_BYTES_MAX + 1);
        let refused = ChatError::Length { bytes: long.len(), limit: limits::TEMPLATE_BYTES_MAX };
        assert_eq!(guard(&long), Err(refused));
        assert_eq!(source(&long[1..]), long[1..]);
        let terms = format!("{{{{ 1{} }}}}", "+x".repeat(1000));
        assert!(matches!(guard(&terms), Err(ChatError::Refused { .. })));
        assert!(matches!(guard("{{ 'a"), Err(ChatError::Syntax { line: 1, .. })));
        assert_eq!(guard("{{ 'a' ~ \"b\\n\" }}").unwrap().literals, ["a", "b\n"]);
    }
}
