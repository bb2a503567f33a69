//! Findings on correct programs that are no failures, each with its reason.
//!
//! Contract: a row is about one rule and one circumstance; what it sets aside is counted and told ([`Alarm`]). Findings
//! on a mutant are not looked up here, but held against those of the program that it was made from.

use crate::toolchain::Compiler;
use std::fmt;
use zrt_device::Finding;

/// How the finding begins that code without a single `s_wait_alu` has, where compilers are trusted.
const UNAWARE_COMPILER: &str = "the compiler does not know the scalar hazard";

/// Why a finding on a correct program is no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// Nothing is broken.
    Advice,
    /// clang 19 places no `s_wait_alu`.
    UnawareCompiler,
    /// clang 19 drops the wait between `global_wb` and an atomic of system scope: its error.
    UnwaitedWriteBack,
}

impl Alarm {
    /// The row of a finding in a correct program of a compiler.
    pub fn of(finding: &Finding, compiler: Compiler) -> Option<Alarm> {
        let says = |words: &str| finding.what.contains(words);
        if finding.is_advice() {
            return Some(Alarm::Advice);
        }
        if finding.what.starts_with(UNAWARE_COMPILER) {
            return Some(Alarm::UnawareCompiler);
        }
        match finding.rule.as_str() {
            "counters" if compiler == Compiler::Clang19 && says("before global_wb has completed") => {
                Some(Alarm::UnwaitedWriteBack)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Alarm::Advice => "advice",
            Alarm::UnawareCompiler => "the compiler knows no s_wait_alu",
            Alarm::UnwaitedWriteBack => "counters: global_wb without a wait, an error of the compiler",
        })
    }
}
