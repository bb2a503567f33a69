//! Disables one kind of report of the checking mode, to prove that its tests would notice.
//!
//! Contract: in test builds only. The environment variable [`VARIABLE`] names a defect by its variant; reports of
//! that name are then suppressed.

use std::fmt::Debug;
use std::sync::OnceLock;

/// Names the disabled report.
const VARIABLE: &str = "ZRT_CHECK_WITHOUT";

/// Whether this report is disabled: a variant of any of the defect types, or a name.
pub(crate) fn is_off(defect: &dyn Debug) -> bool {
    static OFF: OnceLock<Option<String>> = OnceLock::new();
    let Some(off) = OFF.get_or_init(|| std::env::var(VARIABLE).ok()) else { return false };
    let name = format!("{defect:?}");
    name.trim_matches('"').split(['(', ' ']).next() == Some(off)
}

mod tests {
    use super::*;
    use crate::check::memory::Defect as MemoryDefect;
    use crate::check::registers::Defect as RegisterDefect;
    use crate::shader::fault::WaveFaultKind;
    use std::process::{Command, Stdio};

    /// The tests that must notice: those of the checking mode, and those of whole kernels that it checks.
    const TESTS: &[&str] = &["check::", "workgroups::tests::standstill", "workgroups::tests::prefetch"];

    /// The names of an enum's variants. A variant missing from the list does not compile.
    macro_rules! names {
        ($name:ident of $defect:ident: $($variant:ident)*) => {
            const $name: &[&str] = {
                #[allow(dead_code, reason = "the compiler's look at it is the test")]
                const fn has_all(defect: &$defect) {
                    match defect {
                        $($defect::$variant { .. } => {})*
                    }
                }
                &[$(stringify!($variant)),*]
            };
        };
    }

    names! { OF_MEMORY of MemoryDefect:
        Race LanesClash UnwaitedLoad UnwaitedStore UnwaitedLds UnwaitedScalarLoad UnwaitedWriteBack UninitialisedLds
        StaleVectorCache StaleScalarCache StaleInstructionCache StaleLevelTwo StaleVram HostWriteBelowSystem
        FenceWithoutWriteBack UnreleasedLine ScalarLoadOfStoredData OutsideAllocations PrefetchOutsideAllocations
        WriteToReadOnly MisalignedGlobal MisalignedLds MisalignedAtomic LdsOutOfBounds PrivateByAddress
    }

    names! { OF_REGISTERS of RegisterDefect:
        ReadOutstanding OverwriteOutstanding PartialScalarWait ScalarWrite VectorWrite OpenAtJump MatrixChain LaneExchange
        SystemStore DualBanks DualAddends DualScalars Unwritten Undefined PartlyUndefined MatrixLanes NoScratch
        PrivateBounds
    }

    /// Defects about endless waits.
    const OF_PROGRESS: &[&str] = &["GoesInCircles", "SpinsForever"];

    #[test]
    fn names_are_those_of_the_variants() {
        let circles = WaveFaultKind::GoesInCircles { circling_waves: 1, waiting_waves: 0 };
        let named: [(&dyn Debug, &[&str]); 4] = [
            (&MemoryDefect::Race, OF_MEMORY),
            (&RegisterDefect::Unwritten, OF_REGISTERS),
            (&circles, OF_PROGRESS),
            (&"SpinsForever", OF_PROGRESS),
        ];
        let name = |defect: &dyn Debug| format!("{defect:?}").trim_matches('"').to_owned();
        for (defect, names) in named {
            assert!(names.iter().any(|known| name(defect).starts_with(known)), "{defect:?}");
        }
    }

    /// Takes minutes: all tests of the checking mode, once for each defect.
    #[test]
    #[ignore = "takes minutes; cargo test -p zrt-vgpu --lib switched_off -- --ignored --nocapture"]
    fn whatever_is_switched_off_is_missed_by_a_test() {
        let run = |without: Option<&str>| {
            let program = std::env::current_exe().unwrap();
            let mut command = Command::new(program);
            command.args(TESTS).env_remove(VARIABLE).env("RUST_BACKTRACE", "0");
            command.envs(without.map(|name| (VARIABLE, name)));
            let output = command.stdin(Stdio::null()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let failed = text.lines().filter(|line| line.ends_with("... FAILED")).count();
            (output.status.success(), failed)
        };
        assert_eq!(run(None), (true, 0), "all pass with everything on");
        let mut missed = Vec::new();
        for name in [OF_MEMORY, OF_REGISTERS, OF_PROGRESS].concat() {
            let (_, failed) = run(Some(name));
            println!("without {name}: {failed} tests fail");
            if failed == 0 {
                missed.push(name);
            }
        }
        assert!(missed.is_empty(), "no test notices that these are switched off: {missed:?}");
    }
}
