//! Small programs: each wrong one breaks one rule once, and its correct twin breaks none. Words are llvm-mc 19's
//! for the text next to them.

mod consistency;
mod counters;
mod hazards;
mod lanes;
mod notes;
mod private;
mod scalar_hazard;
mod texts;
mod undefined;

use super::*;
use crate::check::trial::Trial;
use crate::shader::machine::with_machine;
use crate::shader::translate::translate;
use crate::shader::wave::{EXEC_LO, LANES, Row, Wave, vector_bank};
use crate::shader::wave64;
use crate::simd::Level;
use zrt_isa::decode_for;
use zrt_isa::resources::WaveSize;

/// A wave of `wave_size` with all lanes, 106 user SGPRs, all workgroup ids, and 128 bytes of scratch memory, of
/// which the kernel declares 64.
pub(super) fn launch(wave_size: WaveSize) -> LaunchState {
    LaunchState {
        user_sgprs: 106,
        has_group_id: [true; 3],
        lanes_mask: u64::MAX >> (64 - wave_size.lanes()),
        private_bytes: 128,
        declared_private_bytes: 64,
        wave_size,
        strictness: Strictness::Strict,
    }
}

/// A wave that is walked through straight-line code without executing it.
pub(super) struct Walk {
    pub(super) shadow: RegisterShadow,
    pub(super) wave_size: WaveSize,
    pub(super) exec: u64,
    pub(super) scalar: [u32; 128],
    pub(super) findings: Vec<RegisterFinding>,
    pub(super) wave: Wave,
    pc: u64,
}

impl Walk {
    pub(super) fn new(launch: &LaunchState) -> Self {
        let mut shadow = RegisterShadow::new();
        shadow.begin(launch);
        let (wave_size, exec) = (launch.wave_size, launch.lanes_mask);
        let mut wave = Wave::new();
        wave.other_half = (wave_size == WaveSize::Wave64).then(vector_bank);
        Self { shadow, wave_size, exec, scalar: [0; 128], findings: Vec::new(), wave, pc: 0 }
    }

    /// Sets all lanes of a vector register to a value.
    pub(super) fn set_vector(&mut self, number: usize, value: u32) {
        self.wave.vector[number] = Row([value; LANES]);
    }

    /// Walks over `words`; addresses continue where the last call ended.
    pub(super) fn run(&mut self, words: &[u32]) {
        self.walk(words, false);
    }

    /// The same by the short way, where it is open. Returns for how many instructions it was.
    pub(super) fn run_shortly(&mut self, words: &[u32]) -> usize {
        self.walk(words, true)
    }

    fn walk(&mut self, mut words: &[u32], is_short: bool) -> usize {
        let mut passed = 0;
        while !words.is_empty() {
            let instruction = decode_for(words, self.wave_size).unwrap();
            let note = Note::new(&instruction, self.wave_size);
            let ops = match self.wave_size {
                WaveSize::Wave32 => translate(&instruction, Level::BASELINE).into_iter().collect(),
                WaveSize::Wave64 => wave64::translate(&instruction, Level::BASELINE).unwrap_or_default(),
            };
            self.wave.scalar[..128].copy_from_slice(&self.scalar);
            self.wave.set_scalar_pair(EXEC_LO, self.exec);
            let Self { shadow, wave, findings, pc, exec, .. } = self;
            if is_short && shadow.passes(&note, *pc, *exec) {
                passed += 1;
            } else {
                with_machine(|machine| {
                    let mut trial = Trial { wave, ops: &ops, machine };
                    shadow.before(&note, *pc, &mut trial, &mut |finding| findings.push(finding));
                });
            }
            let count = usize::from(instruction.dword_count);
            self.pc += 4 * count as u64;
            words = &words[count..];
        }
        passed
    }

    /// Findings of the ordering rules, without those about unwritten data.
    pub(super) fn ordered(&self) -> Vec<RegisterFinding> {
        self.findings.iter().filter(|finding| finding.rule() != Rule::Uninitialised).copied().collect()
    }
}

/// `wrong` has one finding, and this is its text; `right` has none.
pub(super) fn compare(text: &str, wrong: &[u32], right: &[u32]) {
    let findings = |words: &[u32]| {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.run(words);
        walk.ordered().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(findings(wrong), [text]);
    assert_eq!(findings(right), [""; 0]);
}

/// `name: text; [wrong] [right]`.
macro_rules! twins {
    ($($name:ident: $text:literal; [$($wrong:tt)*] [$($right:tt)*])*) => {
        $(#[test]
        fn $name() {
            super::compare($text, &[$($wrong)*], &[$($right)*]);
        })*
    };
}
pub(super) use twins;
