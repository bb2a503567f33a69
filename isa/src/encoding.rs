//! The encodings of gfx12 instructions.
//!
//! Contract: a plain value. Names follow the instruction set reference §1.

/// The encoding that the words use. `e32`, `e64` and DPP forms of one operation share the
/// [`crate::Opcode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Encoding {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    /// VOP3 with modifiers, including the promoted forms of VOP1, VOP2 and VOPC.
    Vop3,
    /// VOP3 with a scalar destination in place of op_sel and abs.
    Vop3sd,
    Vop3p,
    Vopd,
    Vinterp,
    Vdsdir,
    Vds,
    Vflat,
    Vscratch,
    Vglobal,
    Vbuffer,
    Vimage,
    Vsample,
    Vexport,
}
