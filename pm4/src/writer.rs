//! Recording a stream of packets into a caller's buffer.
//!
//! Contract: no allocation; a packet is written whole or not at all; a full buffer is [`EmitError::Full`]. The
//! methods for a dispatch are the fast path: what depends on the kernel alone is encoded once, in [`KernelState`],
//! and copied. Cost: `benches/packets.rs` measures it; the target is 20 ns for a dispatch with its barrier.

use crate::error::EmitError;
use crate::header::{Header, HeaderFlags};
use crate::opcode::Opcode;
use crate::packet::acquire_mem::{self, AcquireControl};
use crate::packet::{
    Repr, copy_data, dispatch_direct, event_write, indirect_buffer, nop, release_mem, set_sh_reg,
    wait_reg_mem, write_data,
};
use crate::registers::{
    DispatchInitiator, NumThread, Register, ResourceLimits, TmpringSize, USER_DATA_COUNT,
    WORKGROUP_THREADS_MAX, WaveSize, check_words, program_address_words, rsrc2, scratch_base_words,
};

/// Dwords of the packets in a [`KernelState`].
const KERNEL_STATE_DWORDS: usize = 29;

/// Dwords of [`Writer::scratch`].
const SCRATCH_DWORDS: usize = 7;

/// A cursor over a buffer that packets are written into.
#[derive(Debug)]
pub struct Writer<'a> {
    rest: &'a mut [u32],
    capacity: usize,
}

/// The kernel's parameters for a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelParameters {
    /// Address of the first instruction: a multiple of 256 below 2^48.
    pub code_address: u64,
    /// PGM_RSRC1, as in the kernel's file.
    pub rsrc1: u32,
    /// PGM_RSRC2. SCRATCH_EN must be clear except for [`KernelState::with_scratch`].
    pub rsrc2: u32,
    /// PGM_RSRC3.
    pub rsrc3: u32,
    /// Threads of a workgroup in x, y, z; at most 1024 in total.
    pub workgroup: [u32; 3],
    /// Limits; all zero means none.
    pub limits: ResourceLimits,
    /// Lanes of a wave.
    pub wave: WaveSize,
}

/// The part of a dispatch that depends on the kernel alone, as finished packets: PGM_LO/HI, PGM_RSRC1/2, PGM_RSRC3,
/// RESTART_X..Z, RESOURCE_LIMITS, and the run START_X .. PERFCOUNT_ENABLE (hardware reference §5.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelState {
    words: [u32; KERNEL_STATE_DWORDS],
    initiator: u32,
    user_sgprs: usize,
}

impl KernelState {
    /// Encodes the packets. Every value that does not fit its register, and every bit outside any field, is an
    /// error.
    pub fn new(parameters: &KernelParameters) -> Result<KernelState, EmitError> {
        if rsrc2::SCRATCH_EN.get(parameters.rsrc2) != 0 {
            return Err(EmitError::Unused { name: "SCRATCH_EN" });
        }
        KernelState::with_scratch(parameters)
    }

    /// The same with SCRATCH_EN allowed: a [`Writer::scratch`] must then precede every dispatch.
    pub fn with_scratch(parameters: &KernelParameters) -> Result<KernelState, EmitError> {
        let KernelParameters { code_address, rsrc1, rsrc2, rsrc3, workgroup, limits, wave } = *parameters;
        check_words(rsrc1, rsrc2, rsrc3)?;
        let threads = workgroup.iter().fold(1u32, |product, threads| product.saturating_mul(*threads));
        if threads == 0 || threads > WORKGROUP_THREADS_MAX {
            let (least, greatest) = (1, WORKGROUP_THREADS_MAX);
            return Err(EmitError::OutOfRange { name: "workgroup threads", value: threads, least, greatest });
        }
        let [x, y, z] = workgroup;
        let mut words = [0; KERNEL_STATE_DWORDS];
        let mut writer = Writer::new(&mut words);
        writer.set_sh_reg(Register::PGM_LO, &program_address_words(code_address)?)?;
        writer.set_sh_reg(Register::PGM_RSRC1, &[rsrc1, rsrc2])?;
        writer.set_sh_reg(Register::PGM_RSRC3, &[rsrc3])?;
        writer.set_sh_reg(Register::RESTART_X, &[0; 3])?;
        writer.set_sh_reg(Register::RESOURCE_LIMITS, &[limits.to_word()?])?;
        let sizes = [
            NumThread::full(x)?.to_word_xy()?,
            NumThread::full(y)?.to_word_xy()?,
            NumThread::full(z)?.to_word_z()?,
        ];
        writer.set_sh_reg(Register::START_X, &[0, 0, 0, sizes[0], sizes[1], sizes[2], 0, 0])?;
        assert!(writer.left() == 0, "the kernel's packets fill their template");
        let initiator = match wave {
            WaveSize::Wave32 => DispatchInitiator::WAVE32,
            WaveSize::Wave64 => DispatchInitiator::WAVE64,
        };
        let user_sgprs = rsrc2::USER_SGPR.get(rsrc2) as usize;
        Ok(KernelState { words, initiator: initiator.to_word()?, user_sgprs })
    }

    /// USER_DATA registers that the kernel's waves load.
    pub const fn user_sgprs(&self) -> usize {
        self.user_sgprs
    }

    /// The packets.
    pub const fn words(&self) -> &[u32] {
        &self.words
    }
}

impl<'a> Writer<'a> {
    /// A cursor at the start of `words`.
    pub fn new(words: &'a mut [u32]) -> Writer<'a> {
        Writer { capacity: words.len(), rest: words }
    }

    /// Dwords written.
    pub const fn len(&self) -> usize {
        self.capacity - self.rest.len()
    }

    /// True if nothing was written yet.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Dwords that still fit.
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline(always)]
    fn take(&mut self, dwords: usize) -> Result<&'a mut [u32], EmitError> {
        if self.rest.len() < dwords {
            return Err(EmitError::Full { needed: dwords, left: self.rest.len() });
        }
        let (words, rest) = core::mem::take(&mut self.rest).split_at_mut(dwords);
        self.rest = rest;
        Ok(words)
    }

    #[inline(always)]
    fn push<const N: usize>(&mut self, packet: [u32; N]) -> Result<(), EmitError> {
        self.take(N)?.copy_from_slice(&packet);
        Ok(())
    }

    /// Writes any packet.
    pub fn packet(&mut self, packet: &Repr<'_>) -> Result<(), EmitError> {
        let needed = packet.dword_len();
        let left = self.rest.len();
        let words = self.rest.get_mut(..needed).ok_or(EmitError::Full { needed, left })?;
        packet.emit(words)?;
        self.take(needed).map(|_| ())
    }

    /// Writes words that are packets already, unchanged.
    pub fn raw(&mut self, packets: &[u32]) -> Result<(), EmitError> {
        self.take(packets.len())?.copy_from_slice(packets);
        Ok(())
    }

    /// Writes a NOP of exactly `dwords`, 1..=0x4000, with a zero payload.
    pub fn nop(&mut self, dwords: usize) -> Result<(), EmitError> {
        let body = dwords.checked_sub(1).ok_or(EmitError::NoValues { opcode: Opcode::NOP })?;
        let header = Header::type3(nop::OPCODE, body, HeaderFlags::empty())?;
        let words = self.take(dwords)?;
        words.fill(0);
        words[0] = header.0;
        Ok(())
    }

    /// Writes `values` to the registers from `first` on.
    #[inline]
    pub fn set_sh_reg(&mut self, first: Register, values: &[u32]) -> Result<(), EmitError> {
        let header = set_sh_reg::header(first, values.len(), HeaderFlags::empty())?;
        let needed = 2 + values.len();
        let words = self.take(needed)?;
        words[0] = header.0;
        words[1] = first.relative();
        words[2..].copy_from_slice(values);
        Ok(())
    }

    /// Sets the scratch of later dispatches: TMPRING_SIZE and the address of the memory, a multiple of 256
    /// (hardware reference §5.3).
    pub fn scratch(&mut self, size: &TmpringSize, address: u64) -> Result<(), EmitError> {
        let (size, base) = (size.to_word()?, scratch_base_words(address)?);
        let mut words = [0; SCRATCH_DWORDS];
        let mut writer = Writer::new(&mut words);
        writer.set_sh_reg(Register::TMPRING_SIZE, &[size])?;
        writer.set_sh_reg(Register::DISPATCH_SCRATCH_BASE_LO, &base)?;
        self.push(words)
    }

    /// Writes a launch. The registers must have been set.
    #[inline]
    pub fn dispatch_direct(&mut self, packet: &dispatch_direct::Repr) -> Result<(), EmitError> {
        self.push(packet.words()?)
    }

    /// Writes a cache operation.
    #[inline]
    pub fn acquire_mem(&mut self, packet: &acquire_mem::Repr) -> Result<(), EmitError> {
        self.push(packet.words()?)
    }

    /// Writes a fence or another release.
    #[inline]
    pub fn release_mem(&mut self, packet: &release_mem::Repr) -> Result<(), EmitError> {
        self.push(packet.words()?)
    }

    /// Writes a wait.
    #[inline]
    pub fn wait_reg_mem(&mut self, packet: &wait_reg_mem::Repr) -> Result<(), EmitError> {
        self.push(packet.words()?)
    }

    /// Writes a WRITE_DATA packet.
    pub fn write_data(&mut self, packet: &write_data::Repr<'_>) -> Result<(), EmitError> {
        self.packet(&Repr::WriteData(*packet))
    }

    /// Writes a copy.
    #[inline]
    pub fn copy_data(&mut self, packet: &copy_data::Repr) -> Result<(), EmitError> {
        self.push(packet.words()?)
    }

    /// Writes an event.
    #[inline]
    pub fn event_write(&mut self, packet: &event_write::Repr) -> Result<(), EmitError> {
        self.push(packet.words()?)
    }

    /// Writes a call of, or jump to, an indirect buffer.
    #[inline]
    pub fn indirect_buffer(&mut self, packet: &indirect_buffer::Repr) -> Result<(), EmitError> {
        self.push(packet.words()?)
    }

    /// Writes a whole dispatch: the kernel's registers, the USER_DATA registers, the launch of `groups` workgroups.
    /// `user_data` must have a dword for each register that the kernel loads, and at most 16.
    #[inline]
    pub fn dispatch(
        &mut self,
        state: &KernelState,
        user_data: &[u32],
        groups: [u32; 3],
    ) -> Result<(), EmitError> {
        let count = user_data.len();
        if count < state.user_sgprs || count == 0 || count > USER_DATA_COUNT {
            return Err(EmitError::OutOfRange {
                name: "user data dwords",
                value: count as u32,
                least: state.user_sgprs.max(1) as u32,
                greatest: USER_DATA_COUNT as u32,
            });
        }
        let needed = KERNEL_STATE_DWORDS + 2 + count + dispatch_direct::Repr::DWORDS;
        let words = self.take(needed)?;
        let (state_words, words) = words.split_at_mut(KERNEL_STATE_DWORDS);
        state_words.copy_from_slice(&state.words);
        let (user_words, launch) = words.split_at_mut(2 + count);
        user_words[0] = Header::fixed(Opcode::SET_SH_REG, 1 + count, HeaderFlags::empty()).0;
        user_words[1] = Register::USER_DATA_0.relative();
        user_words[2..].copy_from_slice(user_data);
        let [x, y, z] = groups;
        let header = Header::fixed(Opcode::DISPATCH_DIRECT, 4, HeaderFlags::COMPUTE).0;
        launch.copy_from_slice(&[header, x, y, z, state.initiator]);
        Ok(())
    }

    /// Writes a barrier between two dispatches if the second reads what the first wrote: waits until all waves have
    /// ended, then invalidates vector L0 and scalar cache. GL2 is the device's coherence point and is not touched
    /// (hardware reference §6.1).
    #[inline]
    pub fn barrier(&mut self) -> Result<(), EmitError> {
        const FLUSH: event_write::Repr = event_write::Repr::CS_PARTIAL_FLUSH;
        const ACQUIRE: acquire_mem::Repr = acquire_mem::Repr::all_addresses(AcquireControl::DEVICE);
        let flush = FLUSH.words()?;
        let acquire = ACQUIRE.words()?;
        let mut words = [0; event_write::Repr::DWORDS + acquire_mem::Repr::DWORDS];
        words[..flush.len()].copy_from_slice(&flush);
        words[flush.len()..].copy_from_slice(&acquire);
        self.push(words)
    }

    /// For the start of a stream: makes everything that the host and other devices wrote visible, code included.
    #[inline]
    pub fn acquire_everything(&mut self) -> Result<(), EmitError> {
        self.acquire_mem(&acquire_mem::Repr::all_addresses(AcquireControl::EVERYTHING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::Opcode;

    fn parameters() -> KernelParameters {
        KernelParameters {
            code_address: 0x7f00_1234_5600,
            // 32 VGPRs, f32 denormals, ordered memory.
            rsrc1: 0x4003_0003,
            // Two user SGPRs, workgroup id x.
            rsrc2: 0x84,
            // Three lines of code.
            rsrc3: 0x30,
            workgroup: [128, 2, 1],
            limits: ResourceLimits::default(),
            wave: WaveSize::Wave32,
        }
    }

    /// The recipe of hardware reference §5.3, typed by hand: registers, user data, launch.
    #[rustfmt::skip]
    const DISPATCH: [u32; 38] = [
        0xc002_7600, 0x20c, 0x0012_3456, 0x7f,
        0xc002_7600, 0x212, 0x4003_0003, 0x0000_0084,
        0xc001_7600, 0x228, 0x30,
        0xc003_7600, 0x21b, 0, 0, 0,
        0xc001_7600, 0x215, 0,
        0xc008_7600, 0x204, 0, 0, 0, 128, 2, 1, 0, 0,
        0xc002_7600, 0x240, 0x89ab_cdef, 0x7f,
        0xc003_1502, 40, 1, 1, 0x8005,
    ];

    /// CS_PARTIAL_FLUSH, then GLK, GLV and GL1 invalidated (hardware reference §4.5, §4.8).
    const BARRIER: [u32; 10] =
        [0xc000_4600, 0x407, 0xc006_5800, 0, 0xffff_ffff, 0x00ff_ffff, 0, 0, 0xa, 0x380];

    #[test]
    fn a_dispatch_with_its_barrier_is_the_recipe() {
        let state = KernelState::new(&parameters()).unwrap();
        let mut words = [0xa5a5_a5a5; 48];
        let mut writer = Writer::new(&mut words);
        writer.dispatch(&state, &[0x89ab_cdef, 0x7f], [40, 1, 1]).unwrap();
        assert_eq!((writer.len(), writer.left(), writer.is_empty()), (38, 10, false));
        writer.barrier().unwrap();
        assert_eq!((writer.len(), writer.left()), (48, 0));
        assert_eq!(words[..38], DISPATCH);
        assert_eq!(words[38..], BARRIER);
    }

    #[test]
    fn a_kernel_has_up_to_1024_threads_and_tells_the_registers_that_it_loads() {
        for (workgroup, rsrc2, loaded) in [([1024, 1, 1], 0, 0), ([8, 8, 16], 0x84, 2), ([1, 1, 1], 0x20, 16)]
        {
            let state = KernelState::new(&KernelParameters { workgroup, rsrc2, ..parameters() }).unwrap();
            assert_eq!(state.user_sgprs(), loaded);
        }
        let refused = KernelState::new(&KernelParameters { workgroup: [5, 205, 1], ..parameters() });
        let (least, greatest) = (1, 1024);
        assert_eq!(
            refused,
            Err(EmitError::OutOfRange { name: "workgroup threads", value: 1025, least, greatest })
        );
    }

    /// There are sixteen user data registers, and each one that the kernel loads needs a dword.
    #[test]
    fn a_dispatch_has_from_what_the_kernel_loads_to_sixteen_dwords_of_user_data() {
        let state = KernelState::new(&parameters()).unwrap();
        for count in 0..=17 {
            let mut words = [0; 64];
            let mut writer = Writer::new(&mut words);
            let recorded = writer.dispatch(&state, &[7; 17][..count], [1, 1, 1]);
            let refused = EmitError::OutOfRange {
                name: "user data dwords",
                value: count as u32,
                least: 2,
                greatest: 16,
            };
            match (2..=16).contains(&count) {
                true => assert_eq!((recorded, writer.len()), (Ok(()), 36 + count)),
                false => assert_eq!((recorded, writer.len()), (Err(refused), 0)),
            }
        }
    }

    #[test]
    fn a_copy_is_its_packet() {
        let copy = copy_data::Repr::to_memory(copy_data::Source::GpuClock, 0x12_3456_7890);
        let mut words = [0; 8];
        let mut writer = Writer::new(&mut words);
        writer.copy_data(&copy).unwrap();
        assert_eq!((writer.len(), words[0]), (6, 0xc004_4000));
        assert_eq!(words[..6], copy.words().unwrap());
    }

    /// 64 bytes for each lane of the R9700 (hardware reference §7), at 0x10_0000_0000.
    #[test]
    fn scratch_is_two_runs_of_registers() {
        let mut words = [0; SCRATCH_DWORDS];
        let size = TmpringSize { waves: 512, wave_size: 16 };
        Writer::new(&mut words).scratch(&size, 0x10_0000_0000).unwrap();
        let expected = [0xc001_7600, 0x218, 0x0001_0200, 0xc002_7600, 0x210, 0x1000_0000, 0];
        assert_eq!(words, expected);
        let mut short = [0; SCRATCH_DWORDS - 1];
        assert!(Writer::new(&mut short).scratch(&size, 0x10_0000_0000).is_err());
        assert!(Writer::new(&mut words).scratch(&size, 0x80).is_err());
        let mut parameters = parameters();
        parameters.rsrc2 |= 1;
        assert!(KernelState::with_scratch(&parameters).is_ok());
    }

    #[test]
    fn a_full_buffer_is_left_as_it_was() {
        let state = KernelState::new(&parameters()).unwrap();
        let mut words = [0xa5a5_a5a5; 37];
        let mut writer = Writer::new(&mut words);
        let full = |needed| Err(EmitError::Full { needed, left: 37 });
        assert_eq!(writer.dispatch(&state, &[0, 0], [1, 1, 1]), full(38));
        assert_eq!(writer.nop(38), full(38));
        assert_eq!(writer.set_sh_reg(Register::USER_DATA_0, &[0; 36]), full(38));
        assert_eq!(writer.raw(&[0; 38]), full(38));
        assert_eq!(writer.packet(&Repr::WriteData(write_data::Repr::memory(0, &[0; 34]))), full(38));
        assert!(writer.is_empty());
        let mut words = [0xa5a5_a5a5; 9];
        let mut writer = Writer::new(&mut words);
        assert_eq!(writer.barrier(), Err(EmitError::Full { needed: 10, left: 9 }));
        assert_eq!(writer.nop(0), Err(EmitError::NoValues { opcode: Opcode::NOP }));
        assert_eq!(
            writer.packet(&Repr::WriteData(write_data::Repr::memory(2, &[0]))),
            Err(EmitError::Misaligned { address: 2, alignment: 4 })
        );
        assert_eq!(writer.len(), 0);
        assert_eq!(words, [0xa5a5_a5a5; 9]);
    }

    #[test]
    fn nops_of_every_length() {
        let mut words = [0xa5a5_a5a5; 4];
        let mut writer = Writer::new(&mut words);
        writer.nop(1).unwrap();
        writer.nop(3).unwrap();
        assert_eq!(words, [0xffff_1000, 0xc001_1000, 0, 0]);
    }

    #[test]
    fn a_kernel_that_cannot_be_launched_is_refused() {
        let refused = |change: fn(&mut KernelParameters)| {
            let mut parameters = parameters();
            change(&mut parameters);
            KernelState::new(&parameters).unwrap_err()
        };
        assert_eq!(
            refused(|parameters| parameters.code_address = 0x80),
            EmitError::Misaligned { address: 0x80, alignment: 256 }
        );
        assert!(matches!(
            refused(|parameters| parameters.workgroup = [1024, 2, 1]),
            EmitError::OutOfRange { value: 2048, .. }
        ));
        assert!(matches!(
            refused(|parameters| parameters.workgroup = [0, 2, 1]),
            EmitError::OutOfRange { value: 0, .. }
        ));
        let (register, bits) = (Register::PGM_RSRC1, 1 << 27);
        assert_eq!(
            refused(|parameters| parameters.rsrc1 |= 1 << 27),
            EmitError::RegisterReserved { register, bits }
        );
        assert_eq!(refused(|parameters| parameters.rsrc2 |= 1), EmitError::Unused { name: "SCRATCH_EN" });
        let state = KernelState::new(&parameters()).unwrap();
        let mut words = [0; 128];
        let mut writer = Writer::new(&mut words);
        for count in [0, 1, 17] {
            assert!(matches!(
                writer.dispatch(&state, &[0; 17][..count], [1, 1, 1]),
                Err(EmitError::OutOfRange { least: 2, greatest: 16, .. })
            ));
        }
    }
}
