//! Argument segments: values in, bytes out.
//!
//! Contract: the segment is exactly as long as the kernel requires. Hidden arguments come from the launch's shape,
//! and anything unset is zero. Count, size and kind of every explicit value are checked. Set-up only.

use crate::dynamic_lds::DynamicLds;
use crate::error::ArgumentError;
use crate::kernel::{Argument, Arguments, Hidden, Kernel, ValueKind};
use zrt_isa::resources::WORKGROUP_ITEMS_MAX;
use zrt_mem::GpuVa;

/// Largest argument segment in bytes.
pub const ARGUMENT_BYTES_MAX: u64 = 64 << 10;
/// Length of an AQL dispatch packet in bytes.
pub const DISPATCH_PACKET_BYTES: usize = 64;
/// High dwords of the private and the shared aperture, as the driver sets them.
const APERTURE_HIGH: [u32; 2] = [0x2_0000, 0x1_0000];
/// Most workgroups in y and in z: a wave receives these two ids as the halves of one register (hardware reference
/// §7), and 65,536 groups have the ids 0 to 65,535. The id in x has a register of its own.
const GROUPS_IN_Y_OR_Z_MAX: u32 = 1 << 16;
/// Header of a parameter block in bytes.
const BLOCK_HEADER_BYTES: usize = 8;

/// One value for a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentValue {
    /// Address of a buffer.
    Buffer(GpuVa),
    /// 8-bit integer.
    U8(u8),
    /// 16-bit integer.
    U16(u16),
    /// 32-bit integer.
    U32(u32),
    /// 64-bit integer.
    U64(u64),
    /// 32-bit float.
    F32(f32),
    /// Any other value, as its bytes in memory.
    Bytes(Vec<u8>),
}

/// Shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Workgroups in x, y, z; none is 0.
    pub groups: [u32; 3],
    /// Work-items of a group in x, y, z; none is 0.
    pub group: [u32; 3],
    /// LDS beyond what the kernel declares.
    pub dynamic_lds: DynamicLds,
    /// High dwords of the private and the shared aperture (hardware reference §2.4), for kernels that request them
    /// as hidden arguments. Code for gfx12 reads them from registers instead.
    pub aperture_high: [u32; 2],
    /// Buffers of the services that answer the kernel.
    pub services: ServiceAddresses,
}

/// Addresses of service buffers, for kernels that request them as hidden arguments; 0 if a service is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceAddresses {
    /// A printf buffer ([`crate::print::buffer`]).
    pub printf_buffer_va: u64,
    /// A hostcall buffer ([`crate::print::hostcall`]).
    pub hostcall_buffer_va: u64,
}

impl Geometry {
    /// A launch of `groups` groups of `group` work-items, without additional LDS.
    pub const fn new(groups: [u32; 3], group: [u32; 3]) -> Geometry {
        let services = ServiceAddresses { printf_buffer_va: 0, hostcall_buffer_va: 0 };
        Geometry { groups, group, dynamic_lds: DynamicLds::NONE, aperture_high: APERTURE_HIGH, services }
    }

    /// Dimensions that are used, 1 to 3.
    pub fn dimensions(&self) -> u16 {
        let used = |axis: usize| self.groups[axis] > 1 || self.group[axis] > 1;
        if used(2) {
            3
        } else if used(1) {
            2
        } else {
            1
        }
    }

    /// Work-items of a group.
    pub fn group_items(&self) -> u64 {
        self.group.iter().map(|size| u64::from(*size)).fold(1, u64::saturating_mul)
    }
}

impl ArgumentValue {
    /// Its name in reports.
    pub const fn kind(&self) -> &'static str {
        match self {
            ArgumentValue::Buffer(_) => "a buffer",
            ArgumentValue::U8(_) => "a value of 8 bits",
            ArgumentValue::U16(_) => "a value of 16 bits",
            ArgumentValue::U32(_) => "a value of 32 bits",
            ArgumentValue::U64(_) => "a value of 64 bits",
            ArgumentValue::F32(_) => "an f32",
            ArgumentValue::Bytes(_) => "a value of bytes",
        }
    }

    /// Its bytes in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            ArgumentValue::Buffer(va) => va.0.to_le_bytes().into(),
            ArgumentValue::U8(value) => vec![*value],
            ArgumentValue::U16(value) => value.to_le_bytes().into(),
            ArgumentValue::U32(value) => value.to_le_bytes().into(),
            ArgumentValue::U64(value) => value.to_le_bytes().into(),
            ArgumentValue::F32(value) => value.to_bits().to_le_bytes().into(),
            ArgumentValue::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl Kernel {
    /// Checks a launch's shape against the device and the kernel: sizes, the required workgroup size, LDS.
    pub fn check_geometry(&self, geometry: &Geometry) -> Result<(), ArgumentError> {
        let refuse = |what, value: [u32; 3], wanted: String| {
            let value = value.map(|size| size.to_string()).join(",");
            Err(ArgumentError::Geometry { what, value, wanted })
        };
        if geometry.groups.contains(&0) {
            return refuse("grid", geometry.groups, "at least one workgroup in every dimension".into());
        }
        if geometry.groups[1..].iter().any(|count| *count > GROUPS_IN_Y_OR_Z_MAX) {
            let wanted =
                format!("at most {GROUPS_IN_Y_OR_Z_MAX} workgroups in y and in z, where ids have 16 bits");
            return refuse("grid", geometry.groups, wanted);
        }
        let limit = self.workgroup_items_max.min(WORKGROUP_ITEMS_MAX);
        let items = geometry.group_items();
        if items == 0 || items > u64::from(limit) {
            let wanted =
                format!("1 to {limit} work-items together, which is what kernel {} allows", self.name);
            return refuse("block", geometry.group, wanted);
        }
        if let Some(required) = self.required_workgroup
            && required != geometry.group
        {
            let wanted = required.map(|size| size.to_string()).join(",");
            return refuse("block", geometry.group, format!("{wanted}, which kernel {} requires", self.name));
        }
        let lds_bytes = self.place_lds(&geometry.dynamic_lds)?.end;
        let limit = zrt_isa::resources::LDS_BYTES_PER_GROUP_MAX;
        if lds_bytes > u64::from(limit) {
            let wanted = format!("at most {limit} bytes together with the kernel's own {}", self.lds_bytes);
            let value = format!("{} bytes", lds_bytes - u64::from(self.lds_bytes));
            return Err(ArgumentError::Geometry { what: "LDS", value, wanted });
        }
        Ok(())
    }

    /// The bytes of the argument segment. The geometry fills the hidden arguments; it is checked first.
    pub fn pack(&self, values: &[ArgumentValue], geometry: Geometry) -> Result<Vec<u8>, ArgumentError> {
        self.check_geometry(&geometry)?;
        match &self.arguments {
            Arguments::Described { bytes, list, .. } => self.pack_described(*bytes, list, values, &geometry),
            Arguments::ParameterBlock { version, opcode, bytes } => {
                let mut block = Vec::new();
                block.extend_from_slice(&version.to_le_bytes());
                block.extend_from_slice(&opcode.to_le_bytes());
                block.extend_from_slice(&bytes.to_le_bytes());
                self.append_naturally(&mut block, values)?;
                // Blocks end at a multiple of 8: the missing bytes are reserved and zero.
                if block.len().next_multiple_of(8) == *bytes as usize {
                    block.resize(*bytes as usize, 0);
                }
                if block.len() != *bytes as usize {
                    let header = BLOCK_HEADER_BYTES as u64;
                    let expected = u64::from(*bytes).saturating_sub(header);
                    let given = block.len() as u64 - header;
                    return Err(ArgumentError::Block { kernel: self.name.clone(), expected, given });
                }
                Ok(block)
            }
            Arguments::Natural { bytes } => {
                let mut segment = Vec::new();
                self.append_naturally(&mut segment, values)?;
                self.check_length((*bytes).into())?;
                segment.resize(segment.len().max(*bytes as usize), 0);
                Ok(segment)
            }
        }
    }

    /// The AQL dispatch packet that a [`crate::UserSgpr::DispatchPacket`] points to: sizes and addresses, no signal.
    /// `object_va` is the address of the kernel's code.
    pub fn dispatch_packet(
        &self,
        geometry: &Geometry,
        arguments_va: u64,
        object_va: u64,
    ) -> [u8; DISPATCH_PACKET_BYTES] {
        /// Packet type 2: kernel dispatch.
        const KERNEL_DISPATCH: u16 = 2;
        let mut packet = [0; DISPATCH_PACKET_BYTES];
        put(&mut packet, 0, &KERNEL_DISPATCH.to_le_bytes());
        put(&mut packet, 2, &geometry.dimensions().to_le_bytes());
        for axis in 0..3 {
            let group = geometry.group[axis];
            put(&mut packet, 4 + 2 * axis, &(group as u16).to_le_bytes());
            let grid = group.saturating_mul(geometry.groups[axis]);
            put(&mut packet, 12 + 4 * axis, &grid.to_le_bytes());
        }
        put(&mut packet, 24, &self.scratch_bytes.to_le_bytes());
        // Invalid sizes have been refused before.
        let dynamic_lds_bytes = self.dynamic_lds_bytes(&geometry.dynamic_lds).unwrap_or_default();
        let lds_bytes = self.lds_bytes.saturating_add(dynamic_lds_bytes);
        put(&mut packet, 28, &lds_bytes.to_le_bytes());
        put(&mut packet, 32, &object_va.to_le_bytes());
        put(&mut packet, 40, &arguments_va.to_le_bytes());
        packet
    }

    fn pack_described(
        &self,
        bytes: u32,
        list: &[Argument],
        values: &[ArgumentValue],
        geometry: &Geometry,
    ) -> Result<Vec<u8>, ArgumentError> {
        self.check_length(bytes.into())?;
        let explicit: Vec<&Argument> = list.iter().filter(|argument| argument.is_explicit()).collect();
        // LDS pointers are not passed by the caller: they follow from the launch's LDS.
        let given: Vec<&Argument> = explicit.iter().copied().filter(|argument| argument.is_given()).collect();
        if given.len() != values.len() {
            let described: Vec<String> = given.iter().map(|argument| argument.describe()).collect();
            let list = if described.is_empty() { "none".into() } else { described.join(", ") };
            let (expected, given) = (given.len(), values.len());
            return Err(ArgumentError::Count { kernel: self.name.clone(), expected, given, list });
        }
        let mut segment = vec![0; bytes as usize];
        for (index, (argument, value)) in given.iter().zip(values).enumerate() {
            self.check_value(index, argument, value)?;
            put(&mut segment, argument.offset as usize, &value.to_bytes());
        }
        let dynamic_lds_bytes = self.dynamic_lds_bytes(&geometry.dynamic_lds)?;
        let mut lds_offsets = self.place_lds(&geometry.dynamic_lds)?.offsets.into_iter();
        for argument in list {
            match &argument.kind {
                ValueKind::DynamicSharedPointer => {
                    self.put_number(&mut segment, argument, lds_offsets.next().unwrap_or_default())?;
                }
                ValueKind::Hidden(hidden) => {
                    let value = hidden_value(hidden, geometry, dynamic_lds_bytes);
                    self.put_number(&mut segment, argument, value)?;
                }
                _ => {}
            }
        }
        Ok(segment)
    }

    fn check_value(
        &self,
        index: usize,
        argument: &Argument,
        value: &ArgumentValue,
    ) -> Result<(), ArgumentError> {
        let expected = match argument.kind {
            ValueKind::GlobalBuffer if !matches!(value, ArgumentValue::Buffer(_) | ArgumentValue::U64(_)) => {
                Some("the address of a buffer")
            }
            ValueKind::ByValue if matches!(value, ArgumentValue::Buffer(_)) && argument.bytes != 8 => {
                Some("a value")
            }
            _ => None,
        };
        let (kernel, argument_text) = (self.name.clone(), argument.describe());
        if let Some(expected) = expected {
            let given = value.kind();
            return Err(ArgumentError::Kind { kernel, index, argument: argument_text, expected, given });
        }
        let given = value.to_bytes().len() as u64;
        let expected = u64::from(argument.bytes);
        if given != expected {
            return Err(ArgumentError::Size { kernel, index, argument: argument_text, expected, given });
        }
        Ok(())
    }

    fn put_number(&self, segment: &mut [u8], argument: &Argument, value: u64) -> Result<(), ArgumentError> {
        let bytes = value.to_le_bytes();
        let hidden = |what| Err(ArgumentError::Hidden { kernel: self.name.clone(), what });
        match bytes.split_at_checked(argument.bytes as usize) {
            Some((kept, rest)) if rest.iter().all(|byte| *byte == 0) => {
                put(segment, argument.offset as usize, kept);
                Ok(())
            }
            // A longer field is filled with zeros, as a segment is.
            None => {
                put(segment, argument.offset as usize, &bytes);
                Ok(())
            }
            Some(_) => hidden(format!("{} with the value {value}", argument.describe())),
        }
    }

    fn append_naturally(&self, segment: &mut Vec<u8>, values: &[ArgumentValue]) -> Result<(), ArgumentError> {
        for value in values {
            let bytes = value.to_bytes();
            let alignment = match value {
                ArgumentValue::Bytes(_) => 1,
                _ => bytes.len(),
            };
            let start = segment.len().next_multiple_of(alignment);
            self.check_length(start as u64 + bytes.len() as u64)?;
            segment.resize(start, 0);
            segment.extend_from_slice(&bytes);
        }
        Ok(())
    }

    fn check_length(&self, bytes: u64) -> Result<(), ArgumentError> {
        if bytes > ARGUMENT_BYTES_MAX {
            let (kernel, limit) = (self.name.clone(), ARGUMENT_BYTES_MAX);
            return Err(ArgumentError::TooLarge { kernel, bytes, limit });
        }
        Ok(())
    }
}

/// The value of a hidden argument for this launch.
fn hidden_value(hidden: &Hidden, geometry: &Geometry, dynamic_lds_bytes: u32) -> u64 {
    let of = |sizes: [u32; 3], axis: u8| sizes.get(usize::from(axis)).copied().unwrap_or(0);
    let value = match hidden {
        Hidden::BlockCount(axis) => of(geometry.groups, *axis),
        Hidden::GroupSize(axis) => of(geometry.group, *axis),
        Hidden::GridDimensions => geometry.dimensions().into(),
        Hidden::DynamicLdsBytes => dynamic_lds_bytes,
        Hidden::PrivateBase => geometry.aperture_high[0],
        Hidden::SharedBase => geometry.aperture_high[1],
        Hidden::PrintfBuffer => return geometry.services.printf_buffer_va,
        Hidden::HostcallBuffer => return geometry.services.hostcall_buffer_va,
        Hidden::Remainder(_) | Hidden::GlobalOffset(_) | Hidden::Null(_) | Hidden::None => 0,
    };
    value.into()
}

/// Writes the part that lies inside. Metadata that extends beyond the segment is refused at load time.
fn put(segment: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(place) = segment.get_mut(offset..offset.saturating_add(bytes.len())) {
        place.copy_from_slice(bytes);
    }
}
