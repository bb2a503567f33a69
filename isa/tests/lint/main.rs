//! The lint: for each rule one wrong kernel and its correct twin, assembled with llvm-mc 19 from the text next to
//! the words, and a compiler's output in which every wait is needed.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use zrt_isa::decode;
use zrt_isa::lint::{Entry, Finding, Rule, check, check_entry};

/// `wrong` breaks `rule` once, at the instruction `text` with `registers`; `right` breaks nothing.
fn compare(rule: Rule, text: &str, registers: &str, remedy: &str, wrong: &[u32], right: &[u32]) {
    let findings = check(wrong, 0);
    assert_eq!(findings.len(), 1, "{}", list(&findings));
    let finding = &findings[0];
    assert_eq!((finding.rule, finding.instruction.as_str()), (rule, text));
    assert_eq!(finding.registers.map(|registers| registers.to_string()).unwrap_or_default(), registers);
    assert!(finding.remedy.contains(remedy), "{finding}");
    assert_eq!(decode(&wrong[finding.dword..]).unwrap().to_string(), text);
    let findings = check(right, 0);
    assert!(findings.is_empty(), "{}", list(&findings));
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("\n{finding}")).collect()
}

macro_rules! twins {
    ($($name:ident: $rule:expr, $text:literal, $registers:literal, $remedy:literal; [$($wrong:tt)*] [$($right:tt)*])*) => {
        $(#[test]
        fn $name() {
            compare($rule, $text, $registers, $remedy, &[$($wrong)*], &[$($right)*]);
        })*
    };
}

mod addresses;
mod calls;
mod compiled;
mod flow;
mod functions;
mod limits;
mod matrix_overlap;
mod memory_wait;
mod paths;
mod scalar_hazard;
mod unwritten;

/// Findings of `code` entered at dword 0, modified by `change`.
fn findings(code: &[u32], change: impl FnOnce(&mut Entry)) -> Vec<Finding> {
    let mut entry = Entry::at(0);
    change(&mut entry);
    check_entry(code, &entry)
}
