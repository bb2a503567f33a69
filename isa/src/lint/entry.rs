//! How code is entered: by a launch or by a call, with what, and how it is judged.
//!
//! Contract: a plain value.

use crate::resources::WaveSize;

/// Most user SGPRs a launch can preload (hardware reference §5).
pub(super) const USER_SGPRS_MAX: u8 = 16;

/// How the code is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Dword of the first instruction.
    pub dword: usize,
    /// Scalar registers, from s0, that the launch writes.
    pub user_sgprs: u8,
    /// Whether it is entered by a call rather than a launch: as a function under LLVM's AMDGPU convention.
    pub is_called: bool,
    /// Lanes of a wave.
    pub wave_size: WaveSize,
    /// Whether the same wave may run the code again after its end, as a program made of several bodies does.
    /// Hazards left at the end then apply to the beginning.
    pub runs_again: bool,
    /// Strictness for the scalar hazard: trust nothing that only one compiler relies on. If false, a SALU write
    /// expires by itself, and a SALU read resolves VALU writes of other registers, and of vcc; if true, they do
    /// not.
    pub is_strict: bool,
}

impl Entry {
    /// A wave32 entry at `dword` with every user SGPR that a launch can have, run once.
    pub fn at(dword: usize) -> Self {
        Self {
            dword,
            user_sgprs: USER_SGPRS_MAX,
            is_called: false,
            wave_size: WaveSize::Wave32,
            runs_again: false,
            is_strict: false,
        }
    }
}
