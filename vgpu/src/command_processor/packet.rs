//! From packet dwords to a typed command.
//!
//! Contract: [`PacketHeader::parse`] and [`Command::parse`] accept any bytes and never panic; anything that the
//! hardware would not accept, or that this device does not model, is a [`PacketError`] that says which. No
//! allocation.

use crate::command_processor::bits::{
    bit, bits, copy_data, event_write, gcr, header, indirect, opcode, register, release, wait, write_data,
};
use thiserror::Error;

/// A type 3 header (hardware reference §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    pub opcode: u32,
    /// Dwords after the header.
    pub body_dwords: usize,
}

/// Why a packet stops the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// Not a type 3 header.
    #[error("header {0:#010x} is not of packet type 3")]
    NotType3(u32),
    /// The predicate bit is set, which is not defined on a compute queue.
    #[error("header {0:#010x} is predicated")]
    Predicated(u32),
    /// The opcode is not supported by this device.
    #[error("unknown opcode {0:#04x}")]
    UnknownOpcode(u32),
    /// The body's length does not fit the packet's opcode.
    #[error("{name} with {found} body dwords")]
    BodyLength {
        /// Packet name.
        name: &'static str,
        /// Body dwords found.
        found: usize,
    },
    /// A field holds a value that the packet does not define.
    #[error("{name}: {field} is {value:#x}, which is not defined")]
    BadField {
        /// Packet name.
        name: &'static str,
        /// Field name.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// Defined by the hardware, but not modelled by this device.
    #[error("{name}: {field} {value:#x} is not modelled")]
    NotModelled {
        /// Packet name.
        name: &'static str,
        /// Field name.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// A register that a user packet may not write.
    #[error("SET_SH_REG writes the privileged register {0:#x}")]
    PrivilegedRegister(usize),
    /// The packet runs past the end of its indirect buffer.
    #[error("{body_dwords} body dwords follow the header, {left} are left in the indirect buffer")]
    PastEndOfBuffer {
        /// Body dwords by the header.
        body_dwords: usize,
        /// Dwords left.
        left: usize,
    },
    /// An indirect buffer nested in an indirect buffer, without chaining.
    #[error("INDIRECT_BUFFER inside an indirect buffer must chain")]
    NestedIndirectBuffer,
    /// A chain packet in the ring itself.
    #[error("INDIRECT_BUFFER in the ring may not chain")]
    ChainInRing,
    /// The doorbell claims more dwords than the ring holds.
    #[error("the doorbell is {pending} dwords ahead of a ring of {ring} dwords")]
    RingOverrun {
        /// Dwords between read pointer and doorbell.
        pending: u64,
        /// Dwords in the ring.
        ring: u64,
    },
}

/// How WAIT_REG_MEM compares (hardware reference §4.7), unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Always,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

/// Comparison of WAIT_REG_MEM: `(value & mask) function reference`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub function: Function,
    pub reference: u32,
    pub mask: u32,
}

/// The data that RELEASE_MEM writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseData {
    Nothing,
    Low32(u32),
    Wide(u64),
    GpuClock,
    SystemClock,
}

/// A packet's cache actions (hardware reference §4.5, §4.6). L0 is written through, so it has nothing to write
/// back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheControl {
    pub invalidates_instructions: bool,
    pub invalidates_scalars: bool,
    /// L0 of every compute unit.
    pub invalidates_vectors: bool,
    pub invalidates_gl2: bool,
    pub writes_gl2_back: bool,
}

/// The source that COPY_DATA reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopySource {
    Memory(u64),
    Immediate(u64),
    GpuClock,
}

/// A packet's meaning. Data that follows in the body stays in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Nop,
    /// Body dwords from 1 on go to consecutive registers from `first`.
    SetShRegisters {
        first: usize,
    },
    DispatchDirect {
        dimensions: [u32; 3],
        initiator: u32,
    },
    AcquireMem(CacheControl),
    ReleaseMem {
        caches: CacheControl,
        address: u64,
        data: ReleaseData,
        interrupt: bool,
        context_id: u32,
    },
    WaitMemory {
        address: u64,
        comparison: Comparison,
    },
    /// HDP flush: write the request register, poll the done register.
    FlushHdp,
    /// Body dwords from 3 on go to memory.
    WriteData {
        address: u64,
        increments: bool,
    },
    CopyData {
        source: CopySource,
        destination: u64,
        wide: bool,
        /// Whether a selector is one that the header calls obsolete.
        is_obsolete: bool,
    },
    /// Waits until the queue's earlier dispatches are done.
    PartialFlush,
    /// An event without effect on this device.
    OtherEvent,
    IndirectBuffer {
        address: u64,
        dwords: u32,
        chain: bool,
    },
}

impl PacketHeader {
    /// Reads a header.
    pub fn parse(dword: u32) -> Result<PacketHeader, PacketError> {
        if bits(dword, header::TYPE_HIGH, header::TYPE_LOW) != header::TYPE_3 {
            return Err(PacketError::NotType3(dword));
        }
        if bit(dword, header::PREDICATE) {
            return Err(PacketError::Predicated(dword));
        }
        let opcode = bits(dword, header::OPCODE_HIGH, header::OPCODE_LOW);
        let count = bits(dword, header::COUNT_HIGH, header::COUNT_LOW);
        let body_dwords = match (opcode, count) {
            (opcode::NOP, header::COUNT_NO_BODY) => 0,
            _ => count as usize + 1,
        };
        Ok(PacketHeader { opcode, body_dwords })
    }
}

/// The packet's name, for reports.
pub(crate) fn name(opcode: u32) -> &'static str {
    match opcode {
        opcode::NOP => "NOP",
        opcode::DISPATCH_DIRECT => "DISPATCH_DIRECT",
        opcode::WRITE_DATA => "WRITE_DATA",
        opcode::WAIT_REG_MEM => "WAIT_REG_MEM",
        opcode::INDIRECT_BUFFER => "INDIRECT_BUFFER",
        opcode::COPY_DATA => "COPY_DATA",
        opcode::EVENT_WRITE => "EVENT_WRITE",
        opcode::RELEASE_MEM => "RELEASE_MEM",
        opcode::ACQUIRE_MEM => "ACQUIRE_MEM",
        opcode::SET_SH_REG => "SET_SH_REG",
        _ => "unknown",
    }
}

/// Longest body that a packet of this opcode can have; a longer one is refused before it is read.
pub(crate) fn body_dwords_max(opcode: u32) -> usize {
    match opcode {
        opcode::SET_SH_REG => 1 + register::COUNT,
        opcode::WRITE_DATA => header::COUNT_NO_BODY as usize + 1,
        _ => 8,
    }
}

impl Command {
    /// Reads a packet's body. The body of a NOP may be omitted.
    pub fn parse(opcode: u32, body: &[u32]) -> Result<Command, PacketError> {
        match opcode {
            opcode::NOP => Ok(Command::Nop),
            opcode::SET_SH_REG => set_sh_registers(body),
            opcode::DISPATCH_DIRECT => fixed::<4>("DISPATCH_DIRECT", body)
                .map(|[x, y, z, initiator]| Command::DispatchDirect { dimensions: [x, y, z], initiator }),
            opcode::ACQUIRE_MEM => acquire_mem(fixed("ACQUIRE_MEM", body)?),
            opcode::RELEASE_MEM => release_mem(fixed("RELEASE_MEM", body)?),
            opcode::WAIT_REG_MEM => wait_reg_mem(fixed("WAIT_REG_MEM", body)?),
            opcode::WRITE_DATA => write_data_command(body),
            opcode::COPY_DATA => copy_data_command(fixed("COPY_DATA", body)?),
            opcode::EVENT_WRITE => event_write_command(fixed("EVENT_WRITE", body)?),
            opcode::INDIRECT_BUFFER => indirect_buffer(fixed("INDIRECT_BUFFER", body)?),
            _ => Err(PacketError::UnknownOpcode(opcode)),
        }
    }
}

fn fixed<const N: usize>(name: &'static str, body: &[u32]) -> Result<[u32; N], PacketError> {
    body.try_into().map_err(|_| PacketError::BodyLength { name, found: body.len() })
}

fn bad(name: &'static str, field: &'static str, value: impl Into<u64>) -> PacketError {
    PacketError::BadField { name, field, value: value.into() }
}

fn not_modelled(name: &'static str, field: &'static str, value: u32) -> PacketError {
    PacketError::NotModelled { name, field, value: value as u64 }
}

fn wide(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

fn aligned(name: &'static str, address: u64, alignment: u64) -> Result<u64, PacketError> {
    if address & (alignment - 1) == 0 { Ok(address) } else { Err(bad(name, "address", address)) }
}

fn set_sh_registers(body: &[u32]) -> Result<Command, PacketError> {
    let name = "SET_SH_REG";
    if body.len() < 2 {
        return Err(PacketError::BodyLength { name, found: body.len() });
    }
    let first = body[0] as usize;
    let count = body.len() - 1;
    if first >= register::COUNT || count > register::COUNT - first {
        return Err(bad(name, "register", body[0]));
    }
    if (first..first + count).contains(&register::VMID) {
        return Err(PacketError::PrivilegedRegister(register::VMID));
    }
    Ok(Command::SetShRegisters { first })
}

fn acquire_mem(body: [u32; 7]) -> Result<Command, PacketError> {
    let name = "ACQUIRE_MEM";
    let control = body[6];
    if body[0] != 0 {
        return Err(bad(name, "control", body[0]));
    }
    if control >> gcr::RESERVED_LOW != 0 {
        return Err(bad(name, "GCR_CNTL", control));
    }
    Ok(Command::AcquireMem(CacheControl {
        invalidates_instructions: bits(control, gcr::GLI_INV_HIGH, gcr::GLI_INV_LOW) != 0,
        invalidates_scalars: bit(control, gcr::GLK_INV),
        invalidates_vectors: bit(control, gcr::GLV_INV),
        invalidates_gl2: bit(control, gcr::GL2_INV),
        writes_gl2_back: bit(control, gcr::GL2_WB),
    }))
}

fn release_mem(body: [u32; 7]) -> Result<Command, PacketError> {
    let name = "RELEASE_MEM";
    let event = bits(body[0], release::EVENT_TYPE_HIGH, 0);
    let index = bits(body[0], release::EVENT_INDEX_HIGH, release::EVENT_INDEX_LOW);
    match (event, index) {
        (
            release::EVENT_CACHE_FLUSH_AND_INV_TS
            | release::EVENT_BOTTOM_OF_PIPE_TS
            | release::EVENT_CACHE_FLUSH_TS,
            release::INDEX_END_OF_PIPE,
        )
        | (release::EVENT_CS_DONE, release::INDEX_SHADER_DONE) => {}
        _ => return Err(bad(name, "event type and index", bits(body[0], 11, 0))),
    }
    let destination = bits(body[1], release::DST_SEL_HIGH, release::DST_SEL_LOW);
    if destination > release::DST_LAST_MEMORY {
        return Err(not_modelled(name, "dst_sel", destination));
    }
    let interrupt = bits(body[1], release::INT_SEL_HIGH, release::INT_SEL_LOW);
    if interrupt > release::INTERRUPT_LAST_KNOWN {
        return Err(not_modelled(name, "int_sel", interrupt));
    }
    let data = match bits(body[1], release::DATA_SEL_HIGH, release::DATA_SEL_LOW) {
        release::DATA_NONE => ReleaseData::Nothing,
        release::DATA_LOW_32 => ReleaseData::Low32(body[4]),
        release::DATA_64 => ReleaseData::Wide(wide(body[4], body[5])),
        release::DATA_GPU_CLOCK => ReleaseData::GpuClock,
        release::DATA_SYSTEM_CLOCK => ReleaseData::SystemClock,
        other => return Err(not_modelled(name, "data_sel", other)),
    };
    let alignment = match data {
        ReleaseData::Nothing => 1,
        ReleaseData::Low32(_) => 4,
        _ => 8,
    };
    Ok(Command::ReleaseMem {
        caches: CacheControl {
            invalidates_instructions: false,
            invalidates_scalars: bit(body[0], release::GLK_INV),
            invalidates_vectors: bit(body[0], release::GLV_INV),
            invalidates_gl2: bit(body[0], release::GL2_INV),
            writes_gl2_back: bit(body[0], release::GL2_WB),
        },
        address: aligned(name, wide(body[2], body[3]), alignment)?,
        data,
        interrupt: matches!(interrupt, release::INTERRUPT_ONLY | release::INTERRUPT_AFTER_CONFIRM),
        context_id: body[6],
    })
}

fn wait_reg_mem(body: [u32; 6]) -> Result<Command, PacketError> {
    let name = "WAIT_REG_MEM";
    let function = bits(body[0], wait::FUNCTION_HIGH, 0);
    let space = bits(body[0], wait::SPACE_HIGH, wait::SPACE_LOW);
    let operation = bits(body[0], wait::OPERATION_HIGH, wait::OPERATION_LOW);
    let function = match function {
        wait::FUNCTION_ALWAYS => Function::Always,
        wait::FUNCTION_LESS => Function::Less,
        wait::FUNCTION_LESS_OR_EQUAL => Function::LessOrEqual,
        wait::FUNCTION_EQUAL => Function::Equal,
        wait::FUNCTION_NOT_EQUAL => Function::NotEqual,
        wait::FUNCTION_GREATER_OR_EQUAL => Function::GreaterOrEqual,
        wait::FUNCTION_GREATER => Function::Greater,
        _ => return Err(bad(name, "function", function)),
    };
    match (space, operation) {
        (wait::SPACE_MEMORY, wait::OPERATION_WAIT | wait::OPERATION_PREEMPTABLE) => Ok(Command::WaitMemory {
            address: aligned(name, wide(body[1], body[2]), 4)?,
            comparison: Comparison { function, reference: body[3], mask: body[4] },
        }),
        (wait::SPACE_REGISTER, wait::OPERATION_WRITE_WAIT)
            if (body[1], body[2]) == (wait::HDP_FLUSH_REQUEST, wait::HDP_FLUSH_DONE) =>
        {
            Ok(Command::FlushHdp)
        }
        (wait::SPACE_REGISTER, _) => Err(not_modelled(name, "register", body[1])),
        (wait::SPACE_MEMORY, _) => Err(not_modelled(name, "operation on memory", operation)),
        _ => Err(bad(name, "space", space)),
    }
}

fn write_data_command(body: &[u32]) -> Result<Command, PacketError> {
    let name = "WRITE_DATA";
    if body.len() < 4 {
        return Err(PacketError::BodyLength { name, found: body.len() });
    }
    let destination = bits(body[0], write_data::DST_HIGH, write_data::DST_LOW);
    if !matches!(destination, write_data::DST_GL2 | write_data::DST_MEMORY) {
        return Err(not_modelled(name, "destination", destination));
    }
    Ok(Command::WriteData {
        address: aligned(name, wide(body[1], body[2]), 4)?,
        increments: !bit(body[0], write_data::NO_INCREMENT),
    })
}

fn copy_data_command(body: [u32; 5]) -> Result<Command, PacketError> {
    let name = "COPY_DATA";
    let is_wide = bit(body[0], copy_data::WIDE);
    let alignment = if is_wide { 8 } else { 4 };
    let operand = wide(body[1], body[2]);
    let source_select = bits(body[0], copy_data::SRC_HIGH, 0);
    let source = match source_select {
        copy_data::SRC_GL2_OBSOLETE | copy_data::SRC_GL2 => {
            CopySource::Memory(aligned(name, operand, alignment)?)
        }
        copy_data::SRC_IMMEDIATE => CopySource::Immediate(operand),
        copy_data::SRC_GPU_CLOCK => CopySource::GpuClock,
        other => return Err(not_modelled(name, "source", other)),
    };
    let destination_select = bits(body[0], copy_data::DST_HIGH, copy_data::DST_LOW);
    match destination_select {
        copy_data::DST_GL2 | copy_data::DST_GL2_OBSOLETE => {}
        other => return Err(not_modelled(name, "destination", other)),
    }
    let destination = aligned(name, wide(body[3], body[4]), alignment)?;
    let is_obsolete =
        source_select == copy_data::SRC_GL2_OBSOLETE || destination_select == copy_data::DST_GL2_OBSOLETE;
    Ok(Command::CopyData { source, destination, wide: is_wide, is_obsolete })
}

fn event_write_command([body]: [u32; 1]) -> Result<Command, PacketError> {
    let event = bits(body, event_write::TYPE_HIGH, 0);
    match (event, bits(body, event_write::INDEX_HIGH, event_write::INDEX_LOW)) {
        (event_write::TYPE_CS_PARTIAL_FLUSH, event_write::INDEX_FLUSH) => Ok(Command::PartialFlush),
        // Index 0 events carry no address and start or stop counters that do not exist here.
        (event, 0) if event != event_write::TYPE_CS_PARTIAL_FLUSH => Ok(Command::OtherEvent),
        _ => Err(bad("EVENT_WRITE", "event type and index", body)),
    }
}

fn indirect_buffer(body: [u32; 3]) -> Result<Command, PacketError> {
    let name = "INDIRECT_BUFFER";
    let control = body[2];
    if bit(control, indirect::PRIVILEGED) {
        return Err(bad(name, "PRIV", control));
    }
    if bits(control, indirect::VMID_HIGH, indirect::VMID_LOW) != 0 {
        return Err(bad(name, "VMID", control));
    }
    if !bit(control, indirect::VALID) && !bit(control, indirect::INHERIT_VMID) {
        return Err(bad(name, "control without VALID or inherited VMID", control));
    }
    let dwords = bits(control, indirect::LENGTH_HIGH, 0);
    if dwords == 0 {
        return Err(bad(name, "length", 0u64));
    }
    let address = aligned(name, wide(body[0], body[1]), 4)?;
    Ok(Command::IndirectBuffer { address, dwords, chain: bit(control, indirect::CHAIN) })
}

impl Comparison {
    /// Whether the comparison is true for this value.
    pub fn holds(self, value: u32) -> bool {
        let value = value & self.mask;
        match self.function {
            Function::Always => true,
            Function::Less => value < self.reference,
            Function::LessOrEqual => value <= self.reference,
            Function::Equal => value == self.reference,
            Function::NotEqual => value != self.reference,
            Function::GreaterOrEqual => value >= self.reference,
            Function::Greater => value > self.reference,
        }
    }
}

#[cfg(test)]
mod tests;
