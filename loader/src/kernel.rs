//! A kernel: its entry, its resources and its arguments.
//!
//! Contract: plain values. The resource words are those of the file, checked against gfx12's reserved bits;
//! [`Kernel::resource_words`] adds what only a launch knows. Resource words: hardware reference §5.2; user SGPRs:
//! instruction set reference §3.

use crate::error::LoadError;
use zrt_isa::resources::{ResourceError, Rsrc1, Rsrc2, WaveSize, lds_field};

/// One kernel of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name.
    pub name: String,
    /// First instruction: bytes from the image's start, a multiple of 256.
    pub entry_offset: u64,
    /// Length of its code in bytes, if the file states it (functions that it calls are not included); otherwise 0.
    pub code_bytes: u64,
    /// PGM_RSRC1.
    pub rsrc1: u32,
    /// PGM_RSRC2 without the launch's own LDS: see [`Kernel::resource_words`].
    pub rsrc2: u32,
    /// PGM_RSRC3.
    pub rsrc3: u32,
    /// Lanes of a wave.
    pub wave_size: WaveSize,
    /// Contents of s0 and the following registers, in order.
    pub user_sgprs: Vec<UserSgpr>,
    /// LDS of a group in bytes, as declared by the kernel itself.
    pub lds_bytes: u32,
    /// Scratch of a lane in bytes.
    pub scratch_bytes: u32,
    /// True if the kernel's calls make its scratch size unknown: [`Kernel::scratch_bytes`] is then a lower bound.
    pub dynamic_stack: bool,
    /// Its arguments and their layout.
    pub arguments: Arguments,
    /// Work-items of a group in x, y, z, if only that size may be launched.
    pub required_workgroup: Option<[u32; 3]>,
    /// Most work-items of a group.
    pub workgroup_items_max: u32,
}

/// What the launch loads into scalar registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserSgpr {
    /// Two registers: address of the AQL dispatch packet ([`Kernel::dispatch_packet`]).
    DispatchPacket,
    /// Two registers: address of the HSA queue; null here.
    Queue,
    /// Two registers: address of the argument segment.
    Arguments,
    /// Two registers: number of the dispatch.
    DispatchId,
    /// One register: scratch of a lane in bytes.
    ScratchBytes,
    /// One register: workgroups in X, by which the kernels of a `.zrt` divide their work.
    GroupCount,
    /// One register that the hardware loads and that nothing uses: 0.
    Unused,
}

/// The layout of a kernel's argument segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// Described by the metadata of a code object.
    Described {
        /// Length of the segment in bytes.
        bytes: u32,
        /// Alignment of the segment in bytes: a power of two.
        alignment: u32,
        /// Explicit and hidden arguments in the file's order.
        list: Vec<Argument>,
    },
    /// The parameter block of a `.zrt`: an eight-byte header (version u16, opcode u16, length u32), then the values.
    ParameterBlock {
        /// Version in the header.
        version: u16,
        /// Opcode in the header.
        opcode: u16,
        /// Length of the whole block in bytes.
        bytes: u32,
    },
    /// Values in sequence, each at a multiple of its own size: raw code, and code objects without metadata.
    Natural {
        /// Least length of the segment in bytes; anything not given is zero.
        bytes: u32,
    },
}

/// One argument of a code object's kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name, if the file has it.
    pub name: Option<String>,
    /// Type as named in the source, if the file has it.
    pub type_name: Option<String>,
    /// Bytes from the segment's start.
    pub offset: u32,
    /// Length in bytes.
    pub bytes: u32,
    /// The kind of value.
    pub kind: ValueKind,
    /// Address space that it points into, if the file states it.
    pub address_space: Option<AddressSpace>,
    /// Alignment in bytes of the target of a pointer into LDS; 1 if the file does not state it.
    pub pointee_alignment: u32,
}

/// Address spaces of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AddressSpace {
    Private,
    Global,
    Constant,
    Local,
    Generic,
    Region,
}

/// The kind of an argument: `.value_kind` of the metadata (code object version 5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// The value itself.
    ByValue,
    /// Address of a buffer.
    GlobalBuffer,
    /// Offset in LDS of memory that the launch adds.
    DynamicSharedPointer,
    /// Image, sampler, pipe or queue, by the metadata's name: only null can be passed.
    Object(String),
    /// Supplied by the launch.
    Hidden(Hidden),
}

/// Implicit arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Hidden {
    /// Workgroups in x, y or z (0, 1, 2), partial ones not counted.
    BlockCount(u8),
    /// Work-items of a group.
    GroupSize(u8),
    /// Work-items of the partial last group; 0, as there is none.
    Remainder(u8),
    /// Offset of the global id; 0.
    GlobalOffset(u8),
    /// Dimensions of the grid, 1 to 3.
    GridDimensions,
    /// LDS that the launch adds, in bytes.
    DynamicLdsBytes,
    /// High dword of the private aperture.
    PrivateBase,
    /// High dword of the shared aperture.
    SharedBase,
    /// Address of the printf buffer ([`crate::print::buffer`]).
    PrintfBuffer,
    /// Address of the hostcall buffer ([`crate::print::hostcall`]).
    HostcallBuffer,
    /// Address of an absent service (heap, default queue and so on), by the metadata's name: null.
    Null(String),
    /// Unused.
    None,
}

/// The three resource words of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ResourceWords {
    pub rsrc1: u32,
    pub rsrc2: u32,
    pub rsrc3: u32,
}

/// Addresses and numbers that a launch may put into user SGPRs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchAddresses {
    /// The argument segment.
    pub arguments_va: u64,
    /// The AQL dispatch packet, if [`Kernel::needs_dispatch_packet`].
    pub dispatch_packet_va: u64,
    /// Number of the dispatch.
    pub dispatch_id: u64,
    /// Workgroups in X.
    pub group_count: u32,
}

impl UserSgpr {
    /// Number of registers that it occupies.
    pub const fn dwords(self) -> usize {
        match self {
            UserSgpr::DispatchPacket | UserSgpr::Queue | UserSgpr::Arguments | UserSgpr::DispatchId => 2,
            UserSgpr::ScratchBytes | UserSgpr::GroupCount | UserSgpr::Unused => 1,
        }
    }
}

impl Argument {
    /// True if the caller supplies it, explicitly or through the launch's LDS.
    pub const fn is_explicit(&self) -> bool {
        !matches!(self.kind, ValueKind::Hidden(_))
    }

    /// True if the caller supplies a value for it: explicit, and not a pointer into the launch's LDS, which follows
    /// from the kernel's own LDS.
    pub const fn is_given(&self) -> bool {
        self.is_explicit() && !matches!(self.kind, ValueKind::DynamicSharedPointer)
    }

    /// Name and type, formatted for reports.
    pub fn describe(&self) -> String {
        let name = self.name.as_deref().unwrap_or("unnamed");
        let what = self.type_name.clone().unwrap_or_else(|| match &self.kind {
            ValueKind::ByValue => format!("{} bytes", self.bytes),
            ValueKind::GlobalBuffer => "buffer".into(),
            ValueKind::DynamicSharedPointer => "LDS pointer".into(),
            ValueKind::Object(kind) => kind.clone(),
            ValueKind::Hidden(hidden) => format!("{hidden:?}"),
        });
        format!("{name}: {what}")
    }
}

impl Kernel {
    /// Explicit arguments in order; `None` if the file does not describe them (`.zrt`, raw code).
    pub fn explicit_arguments(&self) -> Option<Vec<&Argument>> {
        match &self.arguments {
            Arguments::Described { list, .. } => {
                Some(list.iter().filter(|argument| argument.is_explicit()).collect())
            }
            Arguments::ParameterBlock { .. } | Arguments::Natural { .. } => None,
        }
    }

    /// Whether the file lists an implicit argument.
    pub fn asks_for(&self, hidden: &Hidden) -> bool {
        match &self.arguments {
            Arguments::Described { list, .. } => list
                .iter()
                .any(|argument| matches!(&argument.kind, ValueKind::Hidden(kind) if kind == hidden)),
            Arguments::ParameterBlock { .. } | Arguments::Natural { .. } => false,
        }
    }

    /// Vector registers that RSRC1 grants.
    pub fn vgprs(&self) -> Result<u32, ResourceError> {
        Ok(Rsrc1::parse(self.rsrc1)?.vgprs(self.wave_size))
    }

    /// The resource words with `dynamic_lds_bytes` more LDS than the kernel declares.
    pub fn resource_words(&self, dynamic_lds_bytes: u32) -> Result<ResourceWords, ResourceError> {
        let lds_blocks = lds_field(self.lds_bytes.saturating_add(dynamic_lds_bytes))?;
        let rsrc2 = Rsrc2 { lds_blocks, ..Rsrc2::parse(self.rsrc2)? }.word()?;
        Ok(ResourceWords { rsrc1: self.rsrc1, rsrc2, rsrc3: self.rsrc3 })
    }

    /// True if a user SGPR holds the address of an AQL dispatch packet.
    pub fn needs_dispatch_packet(&self) -> bool {
        self.user_sgprs.contains(&UserSgpr::DispatchPacket)
    }

    /// The values of USER_DATA_0 and the following registers.
    pub fn user_data(&self, addresses: &LaunchAddresses) -> Vec<u32> {
        let mut dwords = Vec::new();
        for sgpr in &self.user_sgprs {
            let pair = match sgpr {
                UserSgpr::DispatchPacket => addresses.dispatch_packet_va,
                UserSgpr::Arguments => addresses.arguments_va,
                UserSgpr::DispatchId => addresses.dispatch_id,
                UserSgpr::ScratchBytes => self.scratch_bytes.into(),
                UserSgpr::GroupCount => addresses.group_count.into(),
                UserSgpr::Queue | UserSgpr::Unused => 0,
            };
            dwords.push(pair as u32);
            if sgpr.dwords() == 2 {
                dwords.push((pair >> 32) as u32);
            }
        }
        dwords
    }

    pub(crate) fn unsupported(kernel: &str, what: &'static str, reason: &'static str) -> LoadError {
        LoadError::Unsupported { kernel: kernel.into(), what, reason }
    }
}
