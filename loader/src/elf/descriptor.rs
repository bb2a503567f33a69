//! Kernel descriptors: the 64 bytes at the symbol `NAME.kd`.
//!
//! Contract: pure; features that gfx1201 lacks are refused by name, and reserved bits are refused. Source: LLVM's
//! "User Guide for AMDGPU Backend", kernel descriptor; registers: hardware reference §5.2.

use crate::error::LoadError;
use crate::kernel::{Kernel, UserSgpr};
use zrt_isa::resources::{LDS_BYTES_PER_GROUP_MAX, Rsrc1, Rsrc2, Rsrc3, WaveSize, lds_field};

/// Length in bytes.
pub(crate) const DESCRIPTOR_BYTES: usize = 64;
/// Most scratch of a lane in bytes: what TMPRING_SIZE can express for a wave64 (18 bits of 256 bytes).
pub(crate) const SCRATCH_BYTES_MAX: u32 = 0x3_FFFF * 256 / 64;

/// Byte offsets of the fields.
mod field {
    pub const LDS_BYTES: usize = 0;
    pub const SCRATCH_BYTES: usize = 4;
    pub const ARGUMENT_BYTES: usize = 8;
    pub const ENTRY: usize = 16;
    pub const RSRC3: usize = 44;
    pub const RSRC1: usize = 48;
    pub const RSRC2: usize = 52;
    pub const PROPERTIES: usize = 56;
    pub const PRELOAD: usize = 58;
    /// What lies between them.
    pub const RESERVED: [std::ops::Range<usize>; 3] = [12..16, 24..44, 60..64];
}

/// Bits of the properties.
mod property {
    pub const PRIVATE_SEGMENT_BUFFER: u16 = 1 << 0;
    pub const DISPATCH_PTR: u16 = 1 << 1;
    pub const QUEUE_PTR: u16 = 1 << 2;
    pub const KERNARG_SEGMENT_PTR: u16 = 1 << 3;
    pub const DISPATCH_ID: u16 = 1 << 4;
    pub const FLAT_SCRATCH_INIT: u16 = 1 << 5;
    pub const PRIVATE_SEGMENT_SIZE: u16 = 1 << 6;
    pub const WAVE32: u16 = 1 << 10;
    pub const DYNAMIC_STACK: u16 = 1 << 11;
    pub const RESERVED: u16 = 0x7 << 7 | 0xF << 12;
}

/// RSRC1's field of scalar registers. The allocation is fixed since gfx10 and the hardware ignores the field. LLVM
/// 19 still fills it in, and the cards run that code. It is cleared here, so that loading a kernel has the same
/// result for every compiler.
const RSRC1_SGPRS: u32 = 0xF << 6;

/// A checked descriptor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Descriptor {
    pub lds_bytes: u32,
    pub scratch_bytes: u32,
    pub argument_bytes: u32,
    /// Bytes from the descriptor to the first instruction.
    pub entry: i64,
    pub rsrc1: u32,
    pub rsrc2: u32,
    pub rsrc3: u32,
    pub wave_size: WaveSize,
    pub dynamic_stack: bool,
    pub user_sgprs: Vec<UserSgpr>,
}

impl Descriptor {
    /// Reads the descriptor of a kernel.
    pub fn parse(kernel: &str, bytes: &[u8; DESCRIPTOR_BYTES]) -> Result<Descriptor, LoadError> {
        let wrong = |what: String| LoadError::Descriptor { kernel: kernel.into(), what };
        let resource = |source| LoadError::Resource { kernel: kernel.into(), source };
        let dword = |at: usize| {
            u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes.get(at + byte).copied().unwrap_or(0)))
        };
        if let Some(at) = field::RESERVED.into_iter().flatten().find(|at| bytes.get(*at) != Some(&0)) {
            return Err(wrong(format!("its reserved byte {at} is not 0")));
        }
        let words = dword(field::PROPERTIES);
        let (properties, preload) = (words as u16, dword(field::PRELOAD) as u16);
        if preload != 0 {
            let reason = "is not implemented on gfx1201: compile without -amdgpu-kernarg-preload-count";
            return Err(Kernel::unsupported(kernel, "preloaded arguments", reason));
        }
        if properties & property::PRIVATE_SEGMENT_BUFFER != 0 {
            return Err(Kernel::unsupported(kernel, "a private segment buffer", "gfx1201 does not have"));
        }
        if properties & property::FLAT_SCRATCH_INIT != 0 {
            let reason = "gfx1201 does not have (scratch is architected)";
            return Err(Kernel::unsupported(kernel, "a flat scratch address", reason));
        }
        if properties & property::RESERVED != 0 {
            return Err(wrong(format!("the properties {properties:#06x} have reserved bits set")));
        }
        let lds_bytes = dword(field::LDS_BYTES);
        if lds_bytes > LDS_BYTES_PER_GROUP_MAX {
            return Err(wrong(format!("{lds_bytes} bytes of LDS, at most {LDS_BYTES_PER_GROUP_MAX}")));
        }
        let scratch_bytes = dword(field::SCRATCH_BYTES);
        if scratch_bytes > SCRATCH_BYTES_MAX {
            return Err(wrong(format!(
                "{scratch_bytes} bytes of scratch for a lane, at most {SCRATCH_BYTES_MAX}"
            )));
        }
        let mut rsrc2 = Rsrc2::parse(dword(field::RSRC2)).map_err(resource)?;
        rsrc2.lds_blocks = lds_field(lds_bytes).map_err(resource)?;
        let user_sgprs = user_sgprs(properties, rsrc2.user_sgprs).map_err(wrong)?;
        let rsrc1 = dword(field::RSRC1) & !RSRC1_SGPRS;
        Rsrc1::parse(rsrc1).map_err(resource)?;
        Rsrc3::parse(dword(field::RSRC3)).map_err(resource)?;
        Ok(Descriptor {
            lds_bytes,
            scratch_bytes,
            argument_bytes: dword(field::ARGUMENT_BYTES),
            entry: (u64::from(dword(field::ENTRY)) | u64::from(dword(field::ENTRY + 4)) << 32) as i64,
            rsrc1,
            rsrc2: rsrc2.word().map_err(resource)?,
            rsrc3: dword(field::RSRC3),
            wave_size: match properties & property::WAVE32 {
                0 => WaveSize::Wave64,
                _ => WaveSize::Wave32,
            },
            dynamic_stack: properties & property::DYNAMIC_STACK != 0,
            user_sgprs,
        })
    }
}

/// The user SGPRs that the properties request, in the order of the documentation. RSRC2's own limit has been checked.
fn user_sgprs(properties: u16, count: u32) -> Result<Vec<UserSgpr>, String> {
    const ORDER: [(u16, UserSgpr); 5] = [
        (property::DISPATCH_PTR, UserSgpr::DispatchPacket),
        (property::QUEUE_PTR, UserSgpr::Queue),
        (property::KERNARG_SEGMENT_PTR, UserSgpr::Arguments),
        (property::DISPATCH_ID, UserSgpr::DispatchId),
        (property::PRIVATE_SEGMENT_SIZE, UserSgpr::ScratchBytes),
    ];
    let enabled = ORDER.iter().filter(|(bit, _)| properties & bit != 0);
    let mut sgprs: Vec<UserSgpr> = enabled.map(|(_, sgpr)| *sgpr).collect();
    let used: usize = sgprs.iter().map(|sgpr| sgpr.dwords()).sum();
    if used > count as usize {
        return Err(format!("RSRC2 loads {count} user SGPRs where the properties need {used}"));
    }
    sgprs.extend(std::iter::repeat_n(UserSgpr::Unused, count as usize - used));
    Ok(sgprs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A descriptor with s[0:1] = arguments, wave32.
    fn sample() -> [u8; DESCRIPTOR_BYTES] {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(0, 600);
        put(8, 24);
        put(16, 0x12C0);
        put(48, 0x600F_0001);
        put(52, 2 << 1 | 1 << 7);
        put(56, 1 << 10 | 1 << 3);
        bytes
    }

    fn with(at: usize, value: u32) -> Result<Descriptor, LoadError> {
        let mut bytes = sample();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        Descriptor::parse("k", &bytes)
    }

    #[test]
    fn fields_are_where_the_documentation_puts_them() {
        let descriptor = Descriptor::parse("k", &sample()).unwrap();
        assert_eq!((descriptor.lds_bytes, descriptor.argument_bytes, descriptor.entry), (600, 24, 0x12C0));
        // 600 bytes of LDS are two units of 512.
        assert_eq!((descriptor.rsrc1, descriptor.rsrc2), (0x600F_0001, 2 << 1 | 1 << 7 | 2 << 15));
        assert_eq!(descriptor.wave_size, WaveSize::Wave32);
        assert_eq!(descriptor.user_sgprs, [UserSgpr::Arguments]);
        let wave64 = with(56, 1 << 3).unwrap();
        assert_eq!(wave64.wave_size, WaveSize::Wave64);
    }

    #[test]
    fn registers_follow_each_other_in_the_documented_order() {
        let all = with(52, 10 << 1).map(|descriptor| descriptor.user_sgprs.len());
        assert_eq!(all, Ok(9), "two for the arguments, eight unused");
        let mut bytes = sample();
        bytes[52] = 9 << 1;
        bytes[56] = 0b101_1110;
        let order = Descriptor::parse("k", &bytes).unwrap().user_sgprs;
        use UserSgpr::*;
        assert_eq!(order, [DispatchPacket, Queue, Arguments, DispatchId, ScratchBytes]);
        bytes[52] = 8 << 1;
        assert!(matches!(Descriptor::parse("k", &bytes), Err(LoadError::Descriptor { .. })));
    }

    #[test]
    fn what_the_chip_does_not_have_is_refused_by_name() {
        let what = |result: Result<Descriptor, LoadError>| match result {
            Err(LoadError::Unsupported { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(with(56, 1 << 10 | 1 << 3 | 4 << 16)), "preloaded arguments");
        assert_eq!(what(with(56, 1 << 10 | 1)), "a private segment buffer");
        assert_eq!(what(with(56, 1 << 10 | 1 << 5)), "a flat scratch address");
        assert!(matches!(with(48, 1 << 27), Err(LoadError::Resource { .. })));
    }

    fn refused(what: &str) -> Result<Descriptor, LoadError> {
        Err(LoadError::Descriptor { kernel: "k".into(), what: what.into() })
    }

    /// Every field with a value of its own; the bytes between them are reserved.
    #[test]
    fn fields_do_not_reach_into_each_other() {
        let mut bytes = sample();
        bytes[4..8].copy_from_slice(&0x0003_0201u32.to_le_bytes());
        bytes[8..12].copy_from_slice(&0x0807_0605u32.to_le_bytes());
        bytes[16..24].copy_from_slice(&(-0x0102_0304_0506_0700_i64).to_le_bytes());
        bytes[44..48].copy_from_slice(&0x0000_0470u32.to_le_bytes());
        let descriptor = Descriptor::parse("k", &bytes).unwrap();
        assert_eq!((descriptor.scratch_bytes, descriptor.argument_bytes), (0x3_0201, 0x0807_0605));
        assert_eq!((descriptor.entry, descriptor.rsrc3), (-0x0102_0304_0506_0700, 0x470));
        for reserved in (12..16).chain(24..44).chain(60..64) {
            let mut bytes = sample();
            bytes[reserved] = 0x80;
            let what = format!("its reserved byte {reserved} is not 0");
            assert_eq!(Descriptor::parse("k", &bytes), refused(&what));
        }
    }

    /// The table of KERNEL_CODE_PROPERTIES: bits 0 to 6 enable registers, 10 is wave32, 11 the dynamic stack.
    #[test]
    fn every_bit_of_the_properties_is_known() {
        use UserSgpr::*;
        for bit in 0..16 {
            let result = with(56, 1 << bit);
            let sgprs: &[UserSgpr] = match bit {
                0 | 5 => {
                    assert!(matches!(result, Err(LoadError::Unsupported { .. })), "bit {bit}: {result:?}");
                    continue;
                }
                1 => &[DispatchPacket],
                2 => &[Queue],
                3 => &[Arguments],
                4 => &[DispatchId],
                6 => &[ScratchBytes, Unused],
                10 | 11 => &[Unused, Unused],
                _ => {
                    let what = format!("the properties {:#06x} have reserved bits set", 1 << bit);
                    assert_eq!(result, refused(&what));
                    continue;
                }
            };
            let descriptor = result.unwrap();
            assert_eq!(descriptor.user_sgprs, sgprs, "bit {bit}");
            assert_eq!(
                (descriptor.wave_size == WaveSize::Wave32, descriptor.dynamic_stack),
                (bit == 10, bit == 11)
            );
        }
        for bit in 16..32 {
            let result = with(56, 1 << bit);
            let is_it = matches!(result, Err(LoadError::Unsupported { what: "preloaded arguments", .. }));
            assert!(is_it, "bit {bit}: {result:?}");
        }
    }

    /// LDS of 64 KiB. Scratch of a wave64: 18 bits that count 256 bytes (hardware reference §5.2, TMPRING_SIZE).
    /// User SGPRs 0 to 15.
    #[test]
    fn resources_have_limits() {
        assert_eq!(with(0, 65_536).unwrap().rsrc2 >> 15 & 0x1FF, 128);
        assert_eq!(with(0, 65_537), refused("65537 bytes of LDS, at most 65536"));
        assert_eq!(with(4, 1_048_572).unwrap().scratch_bytes, 1_048_572);
        assert_eq!(with(4, 1_048_573), refused("1048573 bytes of scratch for a lane, at most 1048572"));
        assert_eq!(with(4, u32::MAX), refused("4294967295 bytes of scratch for a lane, at most 1048572"));
        assert_eq!(with(52, 16 << 1).unwrap().user_sgprs.len(), 15, "two for the arguments, 14 unused");
        for count in [0, 1] {
            let what = format!("RSRC2 loads {count} user SGPRs where the properties need 2");
            assert_eq!(with(52, count << 1), refused(&what));
        }
        assert!(matches!(with(52, 17 << 1), Err(LoadError::Resource { .. })));
    }

    #[test]
    fn the_count_of_scalar_registers_is_not_looked_at() {
        assert_eq!(with(48, 0x600F_0001 | 0xF << 6), with(48, 0x600F_0001));
    }
}
