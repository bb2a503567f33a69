//! The calling convention of LLVM's AMDGPU functions, as far as it determines the contents of registers.
//!
//! Contract: register numbers are those of [`super::effects::Registers`]. Sources: LLVM `AMDGPUUsage.rst`,
//! "Non-Kernel Functions"; `AMDGPUCallingConv.td` (`CC_AMDGPU_Func`, `RetCC_AMDGPU_Func`, `CSR_AMDGPU`);
//! `SIInsertWaitcnts.cpp`: a function waits for everything at its entry, and before its return for everything that
//! returns a value, so a caller waits for neither. LLVM up to 19 preserves s30 to s105 across a call, and later
//! versions preserve stripes of them; a register that either of them preserves counts as preserved here.

use super::effects::{REGISTER_COUNT, VCC_LO, VECTOR_FIRST};
use core::ops::Range;

/// The lower half of the return address.
pub const RETURN_ADDRESS: u8 = 30;
/// Scalar registers that a callee may change: s0 to s29.
const SCALAR_CHANGED: Range<usize> = 0..30;
/// Scalar registers that are set at a function's entry: arguments, return address, stack pointer.
pub const SCALAR_ARGUMENTS: Range<usize> = 0..33;
/// Vector registers of arguments and of results: v0 to v31.
pub const VECTOR_ARGUMENTS: Range<usize> = VECTOR_FIRST..VECTOR_FIRST + 32;
/// Codes of s30 to s105.
const SCALAR_KEPT: Range<usize> = 30..106;
/// From v40 on, the second half of each 16 is preserved: v40 to v47, v56 to v63 and so on.
const VECTOR_KEPT_FIRST: usize = VECTOR_FIRST + 40;
const VECTOR_KEPT_BIT: usize = 8;

/// Whether a function preserves the register for its caller.
pub fn is_kept(register: usize) -> bool {
    let is_vector_kept = (VECTOR_KEPT_FIRST..VECTOR_FIRST + 256).contains(&register)
        && (register - VECTOR_FIRST) & VECTOR_KEPT_BIT != 0;
    SCALAR_KEPT.contains(&register) || is_vector_kept
}

/// Whether a function may return a result in the register.
pub fn is_result(register: usize) -> bool {
    VECTOR_ARGUMENTS.contains(&register)
}

/// Whether a function may leave a value that is no result in the register.
pub fn is_changed(register: usize) -> bool {
    let is_vector = (VECTOR_FIRST..VECTOR_FIRST + 256).contains(&register);
    (SCALAR_CHANGED.contains(&register) || is_vector) && !is_kept(register) && !is_result(register)
}

/// The registers of a file from the given one on: the possible targets of an unknown index.
pub fn file_from(register: usize) -> Range<usize> {
    let end = if register < VECTOR_FIRST { VCC_LO } else { VECTOR_FIRST + 256 };
    register..end.max(register)
}

/// A set of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet {
    words: [u64; REGISTER_COUNT.div_ceil(64)],
}

impl RegisterSet {
    /// Adds registers.
    pub fn insert(&mut self, registers: Range<usize>) {
        for register in registers {
            self.words[register / 64] |= 1 << (register % 64);
        }
    }

    /// Adds all of another set. Returns true if any were new.
    pub fn merge(&mut self, other: &Self) -> bool {
        let mut has_grown = false;
        for (word, other) in self.words.iter_mut().zip(other.words) {
            has_grown |= other & !*word != 0;
            *word |= other;
        }
        has_grown
    }

    /// True if it contains the register.
    pub fn contains(&self, register: usize) -> bool {
        self.words[register / 64] >> (register % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_those_of_the_source() {
        let vector = |number: usize| VECTOR_FIRST + number;
        // CSR_AMDGPU_VGPRs: 40..=47, 56..=63, ... 248..=255.
        let kept: usize = (0..256).filter(|number| is_kept(vector(*number))).count();
        assert_eq!(kept, 14 * 8);
        for number in [40, 47, 56, 63, 72, 248, 255] {
            assert!(is_kept(vector(number)) && !is_changed(vector(number)), "v{number}");
        }
        for number in [32, 39, 48, 55, 64, 247] {
            assert!(!is_kept(vector(number)) && is_changed(vector(number)), "v{number}");
        }
        for number in [0, 31] {
            assert!(is_result(vector(number)) && !is_changed(vector(number)), "v{number}");
        }
        assert!(is_changed(0) && is_changed(29) && !is_changed(30) && !is_changed(105));
        assert!(is_kept(30) && is_kept(105) && !is_kept(29) && !is_kept(106));
        // vcc, those of the trap handler, m0, exec, scc and LDS are not part of the convention, nor is what is beyond.
        for register in (106..VECTOR_FIRST).chain(VECTOR_FIRST + 256..REGISTER_COUNT + 256) {
            assert!(!is_kept(register) && !is_result(register) && !is_changed(register), "{register}");
        }
    }

    #[test]
    fn an_index_stays_in_its_file() {
        for (register, expected) in [
            (0, 0..106),
            (5, 5..106),
            (105, 105..106),
            (106, 106..106),
            (111, 111..111),
            (125, 125..125),
            (128, 128..384),
            (383, 383..384),
        ] {
            assert_eq!(file_from(register), expected, "{register}");
        }
    }

    #[test]
    fn a_set_grows_once() {
        let (mut one, mut other) = (RegisterSet::default(), RegisterSet::default());
        other.insert(60..70);
        assert!(one.merge(&other));
        assert!(!one.merge(&other));
        let found: usize = (0..REGISTER_COUNT).filter(|register| one.contains(*register)).sum();
        assert_eq!(found, (60..70).sum());
    }
}
