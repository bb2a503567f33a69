//! Addresses and lengths as types, so that an address, a byte length and a dword count cannot be exchanged.
//!
//! Contract: all arithmetic is checked; overflow is `None`, never a wrap. No allocation.

use core::fmt;

/// A GPU virtual address. 48 bits are usable on gfx12 (hardware reference §2.4).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuVa(pub u64);

/// A length or offset in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteLen(pub u64);

/// A length or offset in dwords (4 bytes).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DwordLen(pub u32);

impl GpuVa {
    /// The address `offset` bytes further, or `None` past the end of the 64-bit space.
    pub const fn offset(self, offset: ByteLen) -> Option<GpuVa> {
        match self.0.checked_add(offset.0) {
            Some(address) => Some(GpuVa(address)),
            None => None,
        }
    }

    /// True if the address is a multiple of `alignment` (a power of two).
    pub const fn is_aligned_to(self, alignment: u64) -> bool {
        debug_assert!(alignment.is_power_of_two());
        self.0 & (alignment - 1) == 0
    }

    /// Low dword, as packets carry it.
    pub const fn low(self) -> u32 {
        self.0 as u32
    }

    /// High dword, as packets carry it.
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl ByteLen {
    /// This length rounded up to a multiple of `alignment` (a power of two), or `None` on overflow.
    pub const fn align_up(self, alignment: u64) -> Option<ByteLen> {
        debug_assert!(alignment.is_power_of_two());
        match self.0.checked_add(alignment - 1) {
            Some(raised) => Some(ByteLen(raised & !(alignment - 1))),
            None => None,
        }
    }
}

impl DwordLen {
    /// The same length in bytes.
    pub const fn bytes(self) -> ByteLen {
        ByteLen(self.0 as u64 * 4)
    }
}

impl fmt::Debug for GpuVa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GpuVa({:#x})", self.0)
    }
}

impl fmt::Display for GpuVa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#014x}", self.0)
    }
}

impl fmt::Debug for ByteLen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} B", self.0)
    }
}

impl fmt::Debug for DwordLen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} dwords", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_checked() {
        assert_eq!(GpuVa(u64::MAX).offset(ByteLen(1)), None);
        assert_eq!(ByteLen(u64::MAX).align_up(4096), None);
        assert_eq!(ByteLen(4097).align_up(4096), Some(ByteLen(8192)));
        assert_eq!(GpuVa(0x1_2345_6789).offset(ByteLen(0x10)), Some(GpuVa(0x1_2345_6799)));
        assert_eq!(DwordLen(u32::MAX).bytes(), ByteLen(0x3_ffff_fffc));
    }

    #[test]
    fn an_address_is_its_halves() {
        for address in [0x1_2345_6789, 0x7f00_8000_0001, u64::MAX] {
            let address = GpuVa(address);
            assert_eq!(u64::from(address.high()) << 32 | u64::from(address.low()), address.0);
        }
    }

    #[test]
    fn an_aligned_address_is_a_multiple() {
        for alignment in (0..64).map(|bit| 1u64 << bit) {
            for multiple in [0, 1, 2, 3, 5] {
                let Some(exact) = alignment.checked_mul(multiple) else { continue };
                for address in [exact, exact + 1, exact.saturating_sub(1), exact | (alignment / 2)] {
                    let expected = address % alignment == 0;
                    assert_eq!(
                        GpuVa(address).is_aligned_to(alignment),
                        expected,
                        "{address:#x}, {alignment:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_are_written_with_what_they_count() {
        assert_eq!(std::format!("{:?}", GpuVa(0x10)), "GpuVa(0x10)");
        // 48 bits are printed with the same number of digits everywhere.
        assert_eq!(std::format!("{}", GpuVa(0x7f00)), "0x000000007f00");
        assert_eq!(std::format!("{:?} {:?}", ByteLen(3), DwordLen(4)), "3 B 4 dwords");
    }
}
