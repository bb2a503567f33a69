//! The state of a wave at launch, and what is trusted of its compiler.
//!
//! Contract: plain values.

use zrt_isa::resources::WaveSize;

/// Behaviour that the scalar hazard check trusts (instruction set reference §5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Trusts nothing that only one compiler relies on.
    #[default]
    Strict,
    /// A SALU write expires after some SALU instructions, a SALU read resolves VALU writes of other registers, and
    /// of vcc, and a call's return address is visible at the return.
    Compiler,
}

/// The state of a wave at launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchState {
    /// Number of scalar registers, from s0, that the launch writes.
    pub user_sgprs: u8,
    /// Whether it writes the workgroup ids: X (ttmp9), Y and Z (the halves of ttmp7).
    pub has_group_id: [bool; 3],
    /// EXEC at the start; v0 is written in these lanes, whatever the number of dimensions.
    pub lanes_mask: u64,
    /// Bytes of private memory of a lane; 0 without scratch memory.
    pub private_bytes: u32,
    /// The part of them that the kernel declares.
    pub declared_private_bytes: u32,
    /// Lanes of the wave.
    pub wave_size: WaveSize,
    /// Behaviour that the scalar hazard check trusts.
    pub strictness: Strictness,
}
