//! Findings on correct programs that are no failures, each with its reason.
//!
//! Contract: a row is about one rule and one circumstance; what it sets aside is counted and reported ([`Alarm`]).
//! Findings on a mutant are not looked up here, but held against those of the program that it was made from.

use crate::toolchain::Compiler;
use std::fmt;
use zrt_bringup::Finding;

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
    /// clang 19 moves a matrix operation, which the source has all lanes do, under a condition: its error. What it
    /// computes may be wrong.
    ConditionalMatrix,
    /// No finding: wrong results of clang 19 at one level of optimisation, where its own code without optimisation and
    /// clang 22's give the host's.
    OwnResults,
}

impl Alarm {
    /// Whether it explains wrong results.
    pub fn may_be_wrong(self) -> bool {
        matches!(self, Alarm::ConditionalMatrix | Alarm::OwnResults)
    }

    /// The row of a finding in a correct program of a compiler.
    pub fn of(finding: &Finding, compiler: Compiler) -> Option<Alarm> {
        let says = |words: &str| finding.what.contains(words);
        if finding.is_advice() {
            return Some(Alarm::Advice);
        }
        match (compiler, finding.rule.as_str()) {
            (Compiler::Clang19, "hazard") if finding.what.starts_with(UNAWARE_COMPILER) => {
                Some(Alarm::UnawareCompiler)
            }
            (Compiler::Clang19, "counters") if says("before global_wb has completed") => {
                Some(Alarm::UnwaitedWriteBack)
            }
            (Compiler::Clang19, "uninitialised") if says("a matrix operation with lanes off") => {
                Some(Alarm::ConditionalMatrix)
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
            Alarm::ConditionalMatrix => {
                "uninitialised: a matrix operation under a condition, an error of the compiler"
            }
            Alarm::OwnResults => "wrong results, which neither its -O0 nor clang 22 gives",
            Alarm::UnwaitedWriteBack => "counters: global_wb without a wait, an error of the compiler",
        })
    }
}
