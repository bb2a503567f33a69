//! Operand descriptions: width, interpretation, and the permitted registers.
//!
//! Contract: constant data. The interpretation decides what an inline constant means (f16, f32 or f64 bits) and how a
//! literal is extended.

use super::form::ModifierForm;
use crate::resources::WaveSize;
use bitflags::bitflags;

/// How an operation reads or writes the bits of an operand.
///
/// A float inline constant in it means: f16 bits for 16-bit operands (`Bf16`: bf16 bits), the same in the low half
/// for `PkF16` and `PkBf16`, f32 bits for 32-bit operands and for `PkI16`, `PkU16`, f64 bits for 64-bit operands. A
/// matrix addend (`B128`, `B256`) applies it per element, whose type is in the operation's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// No operand.
    Absent,
    /// One bit per lane in a scalar register: 32 bits in wave32.
    Mask,
    /// 16 untyped bits.
    B16,
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 16-bit integer.
    U16,
    /// Half-precision float.
    F16,
    /// bfloat16.
    Bf16,
    /// 32 untyped bits (also packed bytes and nibbles).
    B32,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Single-precision float.
    F32,
    /// Two signed 16-bit integers.
    PkI16,
    /// Two unsigned 16-bit integers.
    PkU16,
    /// Two half-precision floats.
    PkF16,
    /// Two bfloat16.
    PkBf16,
    /// 64 untyped bits.
    B64,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 64-bit integer.
    U64,
    /// Double-precision float.
    F64,
    /// 96 bits.
    B96,
    /// 128 bits.
    B128,
    /// 256 bits.
    B256,
    /// 512 bits.
    B512,
    /// 1024 bits.
    B1024,
}

impl DataType {
    /// Width in bits; 0 for [`DataType::Absent`], 32 for a wave32 mask.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Absent => 0,
            Self::B16 | Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 16,
            Self::Mask | Self::B32 | Self::I32 | Self::U32 | Self::F32 => 32,
            Self::PkI16 | Self::PkU16 | Self::PkF16 | Self::PkBf16 => 32,
            Self::B64 | Self::I64 | Self::U64 | Self::F64 => 64,
            Self::B96 => 96,
            Self::B128 => 128,
            Self::B256 => 256,
            Self::B512 => 512,
            Self::B1024 => 1024,
        }
    }

    /// Registers occupied; a 16-bit operand occupies (half of) one.
    pub const fn dwords(self) -> u32 {
        self.bits().div_ceil(32)
    }
}

/// The kinds of location that an operand may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterFile {
    /// No operand.
    Absent,
    /// Scalar register; as a source of SALU operations also inline constants and the literal.
    Scalar,
    /// Vector register only.
    Vector,
    /// VALU source: vector, scalar, inline constant or literal.
    Any,
    /// Scalar register only: no constants.
    ScalarRegister,
    /// Vector register or inline constant (the addend of a matrix operation).
    VectorOrInline,
    /// Implicit `exec`.
    Exec,
}

/// Type and permitted location of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandKind {
    /// Interpretation and width.
    pub data: DataType,
    /// Permitted registers.
    pub file: RegisterFile,
}

pub(super) const NONE: OperandKind = OperandKind { data: DataType::Absent, file: RegisterFile::Absent };
pub(super) const MASK: OperandKind = OperandKind { data: DataType::Mask, file: RegisterFile::Scalar };
pub(super) const EXEC: OperandKind = OperandKind { data: DataType::Mask, file: RegisterFile::Exec };

pub(super) const fn any(data: DataType) -> OperandKind {
    OperandKind { data, file: RegisterFile::Any }
}

pub(super) const fn scalar(data: DataType) -> OperandKind {
    OperandKind { data, file: RegisterFile::Scalar }
}

pub(super) const fn register(data: DataType) -> OperandKind {
    OperandKind { data, file: RegisterFile::ScalarRegister }
}

pub(super) const fn matrix(data: DataType) -> OperandKind {
    OperandKind { data, file: RegisterFile::VectorOrInline }
}

pub(super) const fn vector(data: DataType) -> OperandKind {
    OperandKind { data, file: RegisterFile::Vector }
}

impl OperandKind {
    /// Width in bits.
    pub const fn bits(self) -> u32 {
        self.data.bits()
    }

    /// Registers occupied in a wave of `wave_size`: a mask has a bit for every lane.
    pub const fn dwords_for(self, wave_size: WaveSize) -> u32 {
        match self.data {
            DataType::Mask => wave_size.lanes() / 32,
            data => data.dwords(),
        }
    }

    /// Whether the operation has this operand.
    pub const fn is_present(self) -> bool {
        !matches!(self.data, DataType::Absent)
    }
}

bitflags! {
    /// Further properties of an operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Properties: u16 {
        /// Reads the old value of the destination, or preserves part of it: fmac, swmmac, s_addk, s_cmov,
        /// v_writelane, v_swap, byte and d16 writes. 16-bit destinations preserve the other half without this flag.
        const ACCUMULATES = 1;
        /// May fetch source 0 across lanes.
        const DPP = 2;
        /// The immediate field must be zero.
        const NO_IMMEDIATE = 4;
        /// A memory atomic: bit 0 of the temporal hint requests the old value.
        const ATOMIC = 8;
    }
}

/// Operand types of one operation, by the positions of [`crate::Instruction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandInfo {
    /// Type of `destination`. For atomics: the type of the returned value, if there is one.
    pub destination: OperandKind,
    /// Type of `destination2`.
    pub destination2: OperandKind,
    /// Types of `sources`. The address of VGLOBAL and VBUFFER is described at its widest.
    pub sources: [OperandKind; 3],
    /// Modifiers of the VOP3, VOP3SD or VOP3P encoding; `None` if there is no such encoding.
    pub form: Option<ModifierForm>,
    /// Further properties.
    pub properties: Properties,
}

impl OperandInfo {
    pub(super) const fn new(
        destinations: &[OperandKind],
        sources: &[OperandKind],
        forms: &[ModifierForm],
        properties: Properties,
    ) -> Self {
        let mut info =
            Self { destination: NONE, destination2: NONE, sources: [NONE; 3], form: None, properties };
        if !forms.is_empty() {
            info.form = Some(forms[0]);
        }
        if !destinations.is_empty() {
            info.destination = destinations[0];
        }
        if destinations.len() > 1 {
            info.destination2 = destinations[1];
        }
        let mut index = 0;
        while index < sources.len() {
            info.sources[index] = sources[index];
            index += 1;
        }
        info
    }

    /// Number of sources, trailing absent ones not counted.
    pub const fn source_count(&self) -> usize {
        let mut count = 3;
        while count > 0 && !self.sources[count - 1].is_present() {
            count -= 1;
        }
        count
    }
}
