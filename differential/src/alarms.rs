//! Findings on correct programs that are not failures, each with its reason.
//!
//! Contract: a row covers one rule and one circumstance; the findings that it sets aside are counted and reported
//! ([`Alarm`]). Findings on a mutant are not looked up here but compared with those of its original program.

use crate::toolchain::Compiler;
use std::fmt;
use zrt_bringup::Finding;

/// The start of the finding for code without a single `s_wait_alu`, in the mode that trusts compilers.
const UNAWARE_COMPILER: &str = "the compiler does not know the scalar hazard";

/// Why a finding on a correct program is not a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// No rule is broken.
    Advice,
    /// clang 19 places no `s_wait_alu`.
    UnawareCompiler,
    /// clang 19 omits the wait between `global_wb` and an atomic of system scope: a compiler bug.
    UnwaitedWriteBack,
    /// clang 19 moves a matrix operation, which all lanes execute in the source, under a condition: a compiler bug.
    /// Its results may be wrong.
    ConditionalMatrix,
    /// Not a finding: wrong results of clang 19 at one optimisation level, while its own unoptimised code and clang
    /// 22's agree with the host.
    OwnResults,
}

impl Alarm {
    /// Whether it explains wrong results.
    pub fn may_be_wrong(self) -> bool {
        matches!(self, Alarm::ConditionalMatrix | Alarm::OwnResults)
    }

    /// The row for a finding in a compiler's correct program.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows are of one compiler, one rule and one circumstance; advice is of any.
    #[test]
    fn a_finding_is_set_aside_by_the_row_that_it_fits() {
        let unaware = "the compiler does not know the scalar hazard: no s_wait_alu in its code";
        let unwaited = "an atomic of system scope before global_wb has completed";
        let matrix = "v3 is read by a matrix operation with lanes off";
        let rows = [
            ("hazard", unaware, Some(Alarm::UnawareCompiler)),
            // What starts in another way is of one place in the code.
            ("hazard", "s4 is read early; the compiler does not know the scalar hazard", None),
            ("hazard", unwaited, None),
            ("counters", unwaited, Some(Alarm::UnwaitedWriteBack)),
            ("counters", unaware, None),
            ("counters", "v3 is read before its load has completed", None),
            ("uninitialised", matrix, Some(Alarm::ConditionalMatrix)),
            ("uninitialised", "v3 is read and was never written", None),
            ("race", matrix, None),
            ("race", unaware, None),
        ];
        for (rule, what, expected) in rows {
            let finding = Finding { rule: rule.into(), what: what.into(), ..Finding::default() };
            assert_eq!(Alarm::of(&finding, Compiler::Clang19), expected, "{rule}: {what}");
            assert_eq!(Alarm::of(&finding, Compiler::Clang22), None, "{rule}: {what}");
            let advice = Finding { rule: "advice".into(), ..finding };
            assert_eq!(Compiler::ALL.map(|of| Alarm::of(&advice, of)), [Some(Alarm::Advice); 2], "{what}");
        }
    }

    #[test]
    fn a_row_says_why_and_whether_results_may_be_wrong() {
        for (alarm, may_be_wrong, text) in [
            (Alarm::Advice, false, "advice"),
            (Alarm::UnawareCompiler, false, "the compiler knows no s_wait_alu"),
            (Alarm::UnwaitedWriteBack, false, "counters: global_wb without a wait, an error of the compiler"),
            (
                Alarm::ConditionalMatrix,
                true,
                "uninitialised: a matrix operation under a condition, an error of the compiler",
            ),
            (Alarm::OwnResults, true, "wrong results, which neither its -O0 nor clang 22 gives"),
        ] {
            assert_eq!((alarm.may_be_wrong(), alarm.to_string().as_str()), (may_be_wrong, text));
        }
    }
}
