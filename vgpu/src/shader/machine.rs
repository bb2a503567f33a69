//! What a wave's instructions can access besides its own registers: memory, LDS, the barrier, the clock.
//!
//! Contract: borrowed for one time slice of one wave. An instruction that cannot continue calls `Machine::fail` and
//! returns its result. LDS and barrier belong to the workgroup, which one thread runs at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::memory::MemoryPort;
use crate::shader::fault::WaveFaultKind;
use crate::shader::micro::Flow;
use crate::shader::wave::LANES;

/// Largest LDS of a workgroup in dwords (hardware reference §7: 64 KB).
pub(crate) const LDS_DWORDS_MAX: usize = 16_384;
/// Reference clock of the GPU (hardware reference §4.9).
const GPU_CLOCK_HZ: u128 = 100_000_000;

/// The environment of the running wave.
#[derive(Debug)]
pub struct Machine<'a> {
    /// Memory in the wave's address space.
    pub(crate) memory: &'a mut MemoryPort,
    /// The workgroup's LDS.
    pub(crate) lds: &'a mut Lds,
    /// The workgroup's barrier.
    pub(crate) barrier: &'a mut Barrier,
    /// Time.
    pub(crate) clock: &'a Clock,
    /// The wave's scratch.
    pub(crate) scratch: Scratch,
    /// HW_ID1: the wave's position on the device.
    pub(crate) hardware_id: u32,
    /// Address of the program's first dword: `code_dword` counts from it.
    pub(crate) code_va: u64,
    /// The address at which [`Flow::Indirect`] continues.
    pub(crate) jump_va: u64,
    /// The reason for [`Flow::Fault`].
    pub(crate) stop: Option<Stop>,
}

/// Why a wave cannot continue, as far as the instruction knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub kind: WaveFaultKind,
    pub lane: Option<u32>,
}

/// Local data share of a workgroup. Always allocated in full, so that a masked index needs no bounds check.
#[derive(Debug)]
pub(crate) struct Lds {
    pub words: Box<[u32; LDS_DWORDS_MAX]>,
    /// Bytes that the group may use.
    pub bytes: u32,
}

/// The workgroup barrier (instruction set reference §4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Barrier {
    /// Waves that have not ended, one bit each.
    pub members: u32,
    /// Waves that the group started with.
    pub wave_count: u32,
    /// Signals since the last completion.
    pub signals: u32,
    /// Waves whose "complete" bit is set.
    pub complete: u32,
}

/// Location of a wave's scratch. Dword `d` of lane `l` is at `wave_va + 4 (lanes d + l)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scratch {
    /// Address of lane 0, or of lane 32 while the high half of a wave64 executes: a multiple of 128, since the register
    /// with the base counts units of 256 bytes.
    pub wave_va: u64,
    /// Bytes of one lane; 0 without scratch.
    pub lane_bytes: u32,
    /// Lanes of the wave as a power of two: 5 or 6.
    pub lanes_log2: u32,
}

/// The GPU's reference clock: the host's time, or the count of executed instructions if runs must be reproducible.
#[derive(Debug)]
pub(crate) struct Clock {
    powered_up: Instant,
    /// Instructions executed, if they are the clock.
    instructions: Option<AtomicU64>,
}

impl Clock {
    pub fn new(is_deterministic: bool) -> Clock {
        Clock { powered_up: Instant::now(), instructions: is_deterministic.then(AtomicU64::default) }
    }

    /// Time in 100 MHz ticks.
    pub fn ticks(&self) -> u64 {
        match &self.instructions {
            Some(instructions) => instructions.load(Ordering::Relaxed),
            None => ticks_in(self.powered_up.elapsed()),
        }
    }

    /// Reports how many instructions ran.
    pub fn advance(&self, instructions: u64) {
        if let Some(count) = &self.instructions {
            count.fetch_add(instructions, Ordering::Relaxed);
        }
    }
}

/// Whole ticks in a time.
fn ticks_in(time: Duration) -> u64 {
    (time.as_nanos() * GPU_CLOCK_HZ / 1_000_000_000) as u64
}

impl Lds {
    /// LDS with no bytes allocated.
    pub fn new() -> Lds {
        // Untouched zeroed pages cost nothing.
        let words = vec![0; LDS_DWORDS_MAX].into_boxed_slice();
        let Ok(words) = words.try_into() else { unreachable!("the vector has LDS_DWORDS_MAX elements") };
        Lds { words, bytes: 0 }
    }
}

impl Scratch {
    /// Bytes between two dwords of one lane.
    #[inline(always)]
    pub fn dword_stride(&self) -> u64 {
        4 << self.lanes_log2
    }

    /// Address of the last byte of 32 lanes that have at least a dword each.
    #[inline(always)]
    pub fn last_va(&self) -> u64 {
        let last_row = (u64::from(self.lane_bytes) << self.lanes_log2).wrapping_sub(self.dword_stride());
        self.wave_va.wrapping_add(last_row).wrapping_add(4 * LANES as u64 - 1)
    }
}

impl Barrier {
    /// A barrier for a group of `wave_count` waves, 1..=32.
    pub fn new(wave_count: u32) -> Barrier {
        Barrier { members: u32::MAX >> (32 - wave_count), wave_count, signals: 0, complete: 0 }
    }

    /// One wave arrives. Returns true if it is the first since the last completion.
    pub fn signal(&mut self) -> bool {
        let is_first = self.signals == 0;
        self.signals += 1;
        self.complete_if_all();
        is_first
    }

    /// Whether the wave may pass its wait; consumes the wave's bit.
    pub fn wait(&mut self, wave: u32) -> bool {
        if self.wave_count == 1 {
            return true;
        }
        let passes = self.is_open_for(wave);
        self.complete &= !(1 << wave);
        passes
    }

    /// Whether the wave's bit is set.
    pub fn is_open_for(&self, wave: u32) -> bool {
        self.complete >> wave & 1 != 0
    }

    /// A wave ends: the barrier no longer waits for it.
    pub fn leave(&mut self, wave: u32) {
        self.members &= !(1 << wave);
        self.complete &= self.members;
        if self.members != 0 {
            self.complete_if_all();
        }
    }

    fn complete_if_all(&mut self) {
        if self.signals >= self.members.count_ones() {
            self.complete = self.members;
            self.signals = 0;
        }
    }
}

impl Machine<'_> {
    /// Stops the wave.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail(&mut self, kind: WaveFaultKind) -> Flow {
        self.stop = Some(Stop { kind, lane: None });
        Flow::Fault
    }

    /// Stops the wave because of one lane.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail_lane(&mut self, kind: WaveFaultKind, lane: usize) -> Flow {
        self.stop = Some(Stop { kind, lane: Some(lane as u32) });
        Flow::Fault
    }
}

/// Provides a machine without memory, for tests of single instructions.
#[cfg(test)]
pub(crate) fn with_machine<T>(run: impl FnOnce(&mut Machine<'_>) -> T) -> T {
    type Parts = (MemoryPort, Lds, Barrier, Clock);
    thread_local! {
        static PARTS: std::cell::RefCell<Parts> =
            std::cell::RefCell::new((MemoryPort::default(), Lds::new(), Barrier::new(1), Clock::new(true)));
    }
    PARTS.with_borrow_mut(|(memory, lds, barrier, clock)| {
        let scratch = Scratch::default();
        run(&mut Machine {
            memory,
            lds,
            barrier,
            clock,
            scratch,
            hardware_id: 0,
            code_va: 0,
            jump_va: 0,
            stop: None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_completes_when_all_members_signalled() {
        let mut barrier = Barrier::new(3);
        assert!(barrier.signal());
        assert!(!barrier.signal());
        assert!(!barrier.wait(0));
        assert!(!barrier.signal());
        assert!(barrier.wait(0) && barrier.wait(2));
        assert!(!barrier.wait(0), "the bit is consumed");
        assert!(barrier.signal(), "a new round has a new first");
        assert!(barrier.wait(1), "a slow wave still has the bit of the round before");
    }

    #[test]
    fn a_wave_that_ends_is_not_waited_for() {
        let mut barrier = Barrier::new(32);
        (0..31).for_each(|_| assert!(!barrier.signal() || barrier.signals == 1));
        assert!(!barrier.is_open_for(0));
        barrier.leave(31);
        assert!((0..31).all(|wave| barrier.wait(wave)));
        assert!(Barrier::new(1).wait(0), "a group of one wave never waits");
    }

    #[test]
    fn a_wave_that_ends_gives_up_its_bit_and_takes_nobody_else_s() {
        let mut barrier = Barrier::new(4);
        (0..4).for_each(|_| _ = barrier.signal());
        barrier.leave(2);
        assert_eq!(
            (0..4).map(|wave| barrier.is_open_for(wave)).collect::<Vec<_>>(),
            [true, true, false, true]
        );
        assert_eq!((barrier.members, barrier.signals), (0b1011, 0));
        // Nobody has signalled: a wave that ends completes nothing.
        assert!([0, 1, 3].iter().all(|wave| barrier.wait(*wave)));
        barrier.leave(0);
        assert!(!barrier.is_open_for(1) && !barrier.is_open_for(3));
        barrier.signal();
        assert!(!barrier.is_open_for(1));
        barrier.leave(3);
        assert!(barrier.is_open_for(1), "the one that is left has signalled");
        barrier.leave(1);
        assert_eq!((barrier.members, barrier.complete), (0, 0));
    }

    #[test]
    fn rows_of_scratch_hold_a_dword_of_every_lane() {
        let narrow = Scratch { wave_va: 0x1000, lane_bytes: 16, lanes_log2: 5 };
        assert_eq!((narrow.dword_stride(), narrow.last_va()), (128, 0x1000 + 4 * 128 - 1));
        // Of 64 lanes, the last row of the half is not followed by that of the other one.
        let wide = Scratch { lanes_log2: 6, ..narrow };
        assert_eq!((wide.dword_stride(), wide.last_va()), (256, 0x1000 + 3 * 256 + 127));
    }

    #[test]
    fn a_clock_of_instructions_counts_nothing_else() {
        let clock = Clock::new(true);
        assert_eq!(clock.ticks(), 0);
        clock.advance(5);
        clock.advance(6);
        assert_eq!((clock.ticks(), clock.ticks()), (11, 11));
    }

    #[test]
    fn a_clock_of_time_counts_every_ten_nanoseconds() {
        for (time, ticks) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(9), 0),
            (Duration::from_nanos(10), 1),
            (Duration::from_nanos(1239), 123),
            (Duration::new(3, 70), 300_000_007),
            // A century.
            (Duration::from_secs(36_525 * 86_400), 3_155_760_000 * 100_000_000),
        ] {
            assert_eq!(ticks_in(time), ticks, "{time:?}");
        }
        let clock = Clock::new(false);
        let first = clock.ticks();
        clock.advance(u64::MAX / 2);
        assert!((first..u64::MAX / 4).contains(&clock.ticks()), "instructions do not count");
    }
}
