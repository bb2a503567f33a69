//! Where `unsafe` may occur, and which comment it needs.
//!
//! Contract: reads a file as the compiler's lexer does: text in strings and comments does not count, and a brace on the
//! next line does; the bodies of macros, which a syntax tree leaves out, are read too. Outside [`PLACES`] the keyword
//! may not occur. Each block and each `unsafe impl` has a comment that begins with `SAFETY:` directly above the
//! statement or the keyword.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Modules that may contain `unsafe`: system calls, the shared view, vector dispatch. ARCHITECTURE.md names the same.
pub const PLACES: &[&str] = &["kmd::syscalls", "mem::shared", "vgpu::simd"];

/// Whether a file belongs to one of [`PLACES`].
fn is_place(path: &str) -> bool {
    PLACES.iter().any(|module| {
        let Some((folder, name)) = module.split_once("::") else { return false };
        let base = format!("{folder}/src/{name}");
        path == format!("{base}.rs") || path.starts_with(&format!("{base}/"))
    })
}

/// Findings of one file.
pub fn check(path: &str, text: &str, findings: &mut Vec<String>) {
    let tokens: TokenStream = match text.parse() {
        Ok(tokens) => tokens,
        Err(error) => return findings.push(format!("{path}: not Rust: {error}")),
    };
    let mut uses = Vec::new();
    collect(tokens, None, &mut uses);
    let lines: Vec<&str> = text.lines().collect();
    for one in uses {
        let at = format!("{path}:{}", one.line);
        if !is_place(path) {
            findings.push(format!("{at}: unsafe outside its {} places: {}", PLACES.len(), PLACES.join(", ")));
        } else if one.wants_comment && !is_explained(&lines, one.statement_line, one.line) {
            findings.push(format!("{at}: unsafe without a comment that begins with SAFETY: above it"));
        }
    }
}

/// Whether the map of the project names [`PLACES`], all of them and no other.
pub fn check_architecture(text: &str, findings: &mut Vec<String>) {
    let named: Vec<String> = PLACES.iter().map(|place| format!("`{place}`")).collect();
    let sentence = format!("`unsafe` exists in {} ", named.join(", "));
    if !text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&sentence) {
        findings.push(format!("ARCHITECTURE.md: does not say: {sentence}"));
    }
}

/// One occurrence of the keyword.
struct Use {
    /// Line of the keyword, from 1.
    line: usize,
    /// Line on which its statement begins.
    statement_line: usize,
    /// True for a block or an implementation, where something is claimed.
    wants_comment: bool,
}

/// All occurrences in a stream and the groups in it. A statement begins after `;`, `,`, `=>` and braces; what is in
/// parentheses or brackets belongs to the statement around them, which began on line `around`.
fn collect(tokens: TokenStream, around: Option<usize>, uses: &mut Vec<Use>) {
    let mut statement_line = around;
    let mut tokens = tokens.into_iter().peekable();
    let mut is_arrow = false;
    while let Some(token) = tokens.next() {
        let line = token.span().start().line;
        let begins = *statement_line.get_or_insert(line);
        match token {
            TokenTree::Ident(name) if name == "unsafe" => {
                let wants_comment = match tokens.peek() {
                    Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Brace,
                    Some(TokenTree::Ident(next)) => next == "impl",
                    _ => false,
                };
                uses.push(Use { line, statement_line: begins, wants_comment });
            }
            TokenTree::Group(group) => {
                if group.delimiter() == Delimiter::Brace {
                    statement_line = around;
                    collect(group.stream(), None, uses);
                } else {
                    collect(group.stream(), Some(begins), uses);
                }
            }
            TokenTree::Punct(mark) => {
                let ends = matches!(mark.as_char(), ';' | ',') || is_arrow && mark.as_char() == '>';
                if ends {
                    statement_line = around;
                }
                is_arrow = mark.as_char() == '=' && mark.spacing() == Spacing::Joint;
                continue;
            }
            _ => {}
        }
        is_arrow = false;
    }
}

/// Whether a `SAFETY:` comment is directly above one of two lines (attributes may be between), or anywhere from the one
/// to the other.
fn is_explained(lines: &[&str], statement_line: usize, line: usize) -> bool {
    let is_safety =
        |index: usize| lines.get(index).is_some_and(|line| line.trim_start().starts_with("// SAFETY:"));
    let above = |line: usize| {
        let before = (0..line.saturating_sub(1)).rev();
        let is_beside = |index: &usize| {
            lines.get(*index).is_some_and(|line| {
                let line = line.trim_start();
                line.starts_with("//") || line.starts_with("#[")
            })
        };
        before.take_while(is_beside).any(is_safety)
    };
    above(statement_line) || above(line) || (statement_line..line).any(is_safety)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "mem/src/shared.rs";

    fn found(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(path, text, &mut findings);
        findings
    }

    #[test]
    fn the_keyword_has_its_places() {
        let block = "// SAFETY: it is.\nfn f() { unsafe { g() } }";
        for place in
            ["mem/src/shared.rs", "mem/src/shared/wide.rs", "kmd/src/syscalls/linux.rs", "vgpu/src/simd.rs"]
        {
            assert_eq!(found(place, block), [""; 0], "{place}");
        }
        for other in [
            "mem/src/share.rs",
            "mem/src/shared_more.rs",
            "kmd/src/vm.rs",
            "xtask/src/simd.rs",
            "mem/tests/shared.rs",
        ] {
            let findings = found(other, block).join("\n");
            assert_eq!(findings, format!("{other}:2: unsafe outside its 3 places: {}", PLACES.join(", ")));
        }
    }

    #[test]
    fn every_form_of_the_keyword_is_found() {
        let forms = [
            "fn f() { let text = \"a\"; unsafe { g(text) } }",
            "fn f() { unsafe\n{ g() } }",
            "unsafe impl Send for T {}",
            "unsafe fn f() {}",
            "unsafe extern \"C\" { fn f(); }",
            "unsafe trait T {}",
            "#[unsafe(no_mangle)] fn f() {}",
            "struct S(unsafe fn());",
            "macro_rules! m { () => { unsafe { g() } } }",
            "fn f() { call!(\"}\", unsafe { g() }) }",
        ];
        for form in forms {
            assert_eq!(found("ring/src/fence.rs", form).len(), 1, "{form}");
        }
    }

    #[test]
    fn text_and_longer_names_are_not_the_keyword() {
        let others = [
            "#![forbid(unsafe_code)]",
            "// unsafe { g() }\nfn f() {}",
            "/// unsafe { g() }\nfn f() {}",
            "const A: &str = \"unsafe { g() }\";",
            "const A: &str = r#\"unsafe {\"\n unsafe { }\"#;",
            "fn f() { let unsafe_place = 'u'; }",
        ];
        for other in others {
            assert_eq!(found("ring/src/fence.rs", other), [""; 0], "{other}");
        }
    }

    #[test]
    fn a_block_and_an_implementation_say_why() {
        let explained = [
            "fn f() {\n    // SAFETY: it is.\n    unsafe { g() }\n}",
            "fn f() {\n    // SAFETY: it is,\n    // and long.\n    let a = h(1,\n        unsafe { g() });\n}",
            "fn f() {\n    a();\n    // SAFETY: it is.\n    #[allow(x)]\n    let a = b\n        + unsafe { g() };\n}",
            "fn f() {\n    let a = h(\n        // SAFETY: it is.\n        unsafe { g() });\n}",
            "// SAFETY: it is.\nunsafe impl Send for T {}",
            "fn f() {\n    match a {\n        // SAFETY: it is.\n        1 => unsafe { g() },\n        _ => {}\n    }\n}",
            // Neither arrow of a type nor a comparison begins a statement.
            "fn f() {\n    // SAFETY: it is.\n    let a: fn() ->\n        T = unsafe { g() };\n}",
            "fn f() {\n    // SAFETY: it is.\n    let a = b >\n        unsafe { g() };\n}",
            "fn f() {\n    // SAFETY: it is.\n    let a = b ==\n        unsafe { g() };\n}",
            "unsafe fn f() {}",
            "struct S(unsafe fn());",
        ];
        for text in explained {
            assert_eq!(found(PLACE, text), [""; 0], "{text}");
        }
        let bare = [
            "fn f() {\n    unsafe { g() }\n}",
            "fn f() {\n    // It is safe.\n    unsafe { g() }\n}",
            "fn f() {\n    // SAFETY: it is.\n\n    unsafe { g() }\n}",
            "fn f() {\n    // SAFETY: it is.\n    a();\n    unsafe { g() }\n}",
            "fn f() {\n    // SAFETY: of the first.\n    unsafe { g() }\n    unsafe { g() }\n}",
            "fn f() {\n    let text = \"// SAFETY: no\"; unsafe { g() }\n}",
            // What is said of a pattern is not said of its arm.
            "fn f() {\n    match a {\n        // SAFETY: it is.\n        1 =>\n            unsafe { g() },\n    }\n}",
            "unsafe impl Send for T {}",
            "macro_rules! m {\n    () => {\n        unsafe { g() }\n    };\n}",
        ];
        for text in bare {
            let findings = found(PLACE, text);
            assert_eq!(findings.len(), 1, "{text}");
            assert!(findings[0].ends_with("SAFETY: above it"), "{findings:?}");
        }
    }

    #[test]
    fn what_is_not_rust_is_told() {
        assert!(found(PLACE, "fn f( {")[0].contains("not Rust"));
    }

    #[test]
    fn the_map_names_the_same_places() {
        let mut findings = Vec::new();
        check_architecture(
            "- `unsafe` exists in `kmd::syscalls`, `mem::shared`,\n  `vgpu::simd` (and",
            &mut findings,
        );
        assert_eq!(findings, [""; 0]);
        check_architecture("- `unsafe` exists in `kmd::syscalls`, `mem::shared` (and", &mut findings);
        check_architecture(
            "- `unsafe` exists in `kmd::syscalls`, `mem::shared`, `vgpu::simd`, `ring::fence` (and",
            &mut findings,
        );
        assert_eq!(findings.len(), 2, "{findings:?}");
    }
}
