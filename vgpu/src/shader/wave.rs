//! The architectural state of one wave: a wave32, or a wave64 as two halves of 32 lanes.
//!
//! Contract: registers are plain values; scalar registers are indexed by their operand code (0..=127), so vcc, m0 and
//! exec need no special case. Writes to `null` go to a slot that is never read.

/// Lanes of a wave32 and of each half of a wave64.
pub const LANES: usize = 32;

/// One vector register: a dword per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Row(pub [u32; LANES]);

impl AsRef<[u32; LANES]> for Row {
    fn as_ref(&self) -> &[u32; LANES] {
        &self.0
    }
}

impl AsMut<[u32; LANES]> for Row {
    fn as_mut(&mut self) -> &mut [u32; LANES] {
        &mut self.0
    }
}

/// Scalar operand code of vcc_lo.
pub const VCC_LO: u8 = 106;
/// Scalar operand code of `null`: reads 0.
pub const NULL: u8 = 124;
/// Scalar operand code of m0.
pub const M0: u8 = 125;
/// Scalar operand code of exec_lo.
pub const EXEC_LO: u8 = 126;
/// The slot for writes to `null`. Translators replace destination 124 by this, so reading 124 always returns 0.
pub const NULL_SINK: u8 = 128;
/// Scalar slots: one for every 8-bit code and 16 dwords more (the widest scalar load), so that a code plus a small
/// offset needs no bounds check. The launcher puts the aperture values (instruction set reference §2) at codes
/// 235..=238; the ALU puts vccz, execz and scc at 251..=253 when an instruction reads them.
pub const SCALAR_SLOTS: usize = 272;

/// MODE bit 24: enables scalar prefetches of instructions and data (RDNA4 instruction set guide §3.4.3).
pub const SCALAR_PREFETCH_EN: u32 = 1 << 24;

/// One wave.
#[derive(Clone, Debug)]
pub struct Wave {
    /// Vector registers; always 256, so an 8-bit register number needs no bounds check. In a wave64, these are
    /// lanes 0 to 31 while `is_high` is clear.
    pub vector: Box<[Row; 256]>,
    /// Only in a wave64: the vector registers of the other 32 lanes, which are lanes 32 and up while `is_high` is
    /// clear.
    pub other_half: Option<Box<[Row; 256]>>,
    /// Whether the high half of a wave64 executes: the halves of the vector registers and of exec are exchanged.
    pub is_high: bool,
    /// Scalar registers by operand code, and the null sink.
    pub scalar: [u32; SCALAR_SLOTS],
    /// The scalar condition code.
    pub scc: bool,
    /// MODE: round 3:0, denorm 7:4 (instruction set reference §3), [`SCALAR_PREFETCH_EN`].
    pub mode: u32,
    /// Error added to the approximate operations (reciprocal, square root, exponential, ...), in units of the last
    /// place: -1, 0 or 1. Set per device, so that tests can prove that kernels do not depend on the last bit.
    pub approximation_bias: i32,
    /// Index of the next micro operation in the program.
    pub next: u32,
    /// Wave index in its workgroup.
    pub index_in_group: u32,
    /// VGPRs allocated; using a register at or beyond this number is a fault.
    pub vector_count: u32,
    /// Instructions executed.
    pub executed: u64,
}

/// 256 vector registers of 32 lanes, all zero.
pub(crate) fn vector_bank() -> Box<[Row; 256]> {
    let Ok(bank) = vec![Row([0; LANES]); 256].into_boxed_slice().try_into() else {
        unreachable!("the vector has 256 elements")
    };
    bank
}

impl Default for Wave {
    fn default() -> Wave {
        Wave::new()
    }
}

impl Wave {
    /// A wave with all registers zero, and 256 vector registers.
    pub fn new() -> Wave {
        Wave {
            vector: vector_bank(),
            other_half: None,
            is_high: false,
            scalar: [0; SCALAR_SLOTS],
            scc: false,
            mode: 0,
            approximation_bias: 0,
            next: 0,
            index_in_group: 0,
            vector_count: 256,
            executed: 0,
        }
    }

    /// Active lanes; in a wave64, those of the executing half.
    #[inline(always)]
    pub fn exec(&self) -> u32 {
        self.scalar[EXEC_LO as usize]
    }

    /// Whether this is a wave64.
    pub fn is_wave64(&self) -> bool {
        self.other_half.is_some()
    }

    /// Exchanges the two halves of a wave64.
    #[inline(always)]
    pub(crate) fn exchange_halves(&mut self) {
        if let Some(other) = &mut self.other_half {
            std::mem::swap(&mut self.vector, other);
            self.scalar.swap(EXEC_LO as usize, EXEC_LO as usize + 1);
            self.is_high = !self.is_high;
        }
    }

    /// The number in the wave of lane 0 of the executing half. Restores the halves to their places.
    pub(crate) fn put_halves_back(&mut self) -> u32 {
        if !self.is_high {
            return 0;
        }
        self.exchange_halves();
        LANES as u32
    }

    /// A vector register in one of 32 lanes, or of 64 while the halves are in place.
    pub(crate) fn lane(&self, register: u8, lane: usize) -> u32 {
        let bank = if lane < LANES { Some(&self.vector) } else { self.other_half.as_ref() };
        bank.map_or(0, |bank| bank[register as usize].0[lane % LANES])
    }

    /// Writes the value that [`Wave::lane`] reads.
    pub(crate) fn set_lane(&mut self, register: u8, lane: usize, value: u32) {
        let bank = if lane < LANES { Some(&mut self.vector) } else { self.other_half.as_mut() };
        if let Some(bank) = bank {
            bank[register as usize].0[lane % LANES] = value;
        }
    }

    /// A 64-bit value in two scalar registers.
    #[inline(always)]
    pub fn scalar_pair(&self, low: u8) -> u64 {
        self.scalar[low as usize] as u64 | (self.scalar[low as usize + 1] as u64) << 32
    }

    /// Writes a 64-bit value to two scalar registers.
    #[inline(always)]
    pub fn set_scalar_pair(&mut self, low: u8, value: u64) {
        self.scalar[low as usize] = value as u32;
        self.scalar[low as usize + 1] = (value >> 32) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_numbered_over_both_halves() {
        let mut wave = Wave::new();
        wave.set_lane(3, 40, 1);
        assert_eq!(wave.lane(3, 40), 0, "a wave32 has no such lane");
        wave.other_half = Some(vector_bank());
        for lane in 0..64 {
            wave.set_lane(3, lane, 100 + lane as u32);
        }
        assert!((0..64).all(|lane| wave.lane(3, lane) == 100 + lane as u32));
        assert_eq!((wave.vector[3].0[31], wave.other_half.as_ref().unwrap()[3].0[0]), (131, 132));
        assert!(wave.vector[2].0.iter().chain(&wave.vector[4].0).all(|value| *value == 0));
        wave.set_scalar_pair(EXEC_LO, 0x1_0000_0002);
        assert_eq!((wave.scalar[126], wave.scalar[127]), (2, 1));
        assert_eq!(wave.put_halves_back(), 0);
        wave.exchange_halves();
        assert_eq!((wave.exec(), wave.scalar[127], wave.vector[3].0[0], wave.is_high), (1, 2, 132, true));
        assert_eq!(wave.put_halves_back(), 32);
        assert_eq!((wave.exec(), wave.scalar[127], wave.vector[3].0[0], wave.is_high), (2, 1, 100, false));
        let mut narrow = Wave::new();
        narrow.exchange_halves();
        assert_eq!((narrow.is_high, narrow.is_wave64(), wave.is_wave64()), (false, false, true));
    }
}
