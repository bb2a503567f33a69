//! Detects waves that go in circles: proves that running waves never end.
//!
//! Contract: suppose a wave's registers, scratch and program counter are what they were before, and nobody has
//! changed memory, LDS or a barrier since. Then the wave repeats the same steps forever. If this is true of every
//! wave that can run, nothing ever changes unless the host acts. So a search begins only after the host has been
//! declared silent ([`Circles::silence_host`]). The proof is made in two consecutive rounds: data that an
//! invalidation in the first round made visible has been seen in the second. (A third wave that waits for what a
//! second one does with that data, and that needs an invalidation of its own, would need a third round.) A wave
//! that counts its iterations, reads a clock or stores is in no circle: such a wait is not reported here.
//! Cost: between searches, only an addition per turn. A search copies the registers of every wave once. The first
//! begins after a million instructions; the distance then doubles with each search, up to 64 million.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;

use crate::shader::wave::{NULL, Wave};

/// Instructions of the device before the first search, and the maximum between two of them.
const LOOK_AFTER_INSTRUCTIONS: u64 = 1_000_000;
const LOOK_AFTER_INSTRUCTIONS_MAX: u64 = 64_000_000;
/// Instructions of a search, plus this many for each wave: the longest circle that is found. A wave that has
/// returned to its starting point, in the same state, ends its turn there.
const LOOK_INSTRUCTIONS: u64 = 1_000_000;
const LOOK_WAVE_INSTRUCTIONS: u64 = 20_000;
/// Most scratch that a search copies. If waves have more, nothing is proved.
const SCRATCH_BYTES_MAX: usize = 256 << 20;
/// Most loads that are kept per wave, by instruction.
const LOADS_MAX: usize = 8;
/// Scalar operand codes that name registers.
const SCALAR_REGISTERS: usize = 128;

/// A location that a wave reads again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SeenLoad {
    /// Address of the instruction.
    pub pc: u64,
    /// Address that the first loading lane reads: in memory, or a byte offset in LDS.
    pub address: u64,
    /// Whether it is in LDS.
    pub is_lds: bool,
    /// The value read, truncated to four bytes.
    pub value: u32,
}

/// Searches for circles, one search at a time.
#[derive(Debug, Default)]
pub(crate) struct Circles {
    is_host_silent: bool,
    /// Instructions executed since the last search.
    instructions: u64,
    /// Searches since the last dispatch began.
    looks: u32,
    look: Option<Look>,
    /// The last search found a proof: the state is kept, and reports what the waves read.
    is_proved: bool,
}

#[derive(Debug, Default)]
struct Look {
    instructions: u64,
    /// True if the first round has closed all circles.
    is_second: bool,
    /// By wave number on the device.
    waves: HashMap<u32, Circle>,
    scratch_bytes: usize,
    /// A circle was closed since the last query.
    has_news: bool,
}

#[derive(Debug, Default)]
struct Circle {
    /// The wave's state when it was first seen; `None` until its first turn has ended.
    start: Option<Start>,
    is_closed: bool,
    loads: Vec<SeenLoad>,
    /// The instruction whose first lane is to be recorded.
    loading_pc: Option<u64>,
}

#[derive(Debug)]
struct Start {
    place: Place,
    registers: Wave,
    scratch: Vec<u8>,
}

/// A wave's position: the address of its program, and the operation in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub program_va: u64,
    pub next: u32,
}

impl Circles {
    /// If true, the host changes nothing that waves read until all have ended; if false, it may.
    pub fn silence_host(&mut self, is_silent: bool) {
        *self = Circles { is_host_silent: is_silent, ..Circles::default() };
    }

    /// Whether the host was declared silent.
    pub fn is_host_silent(&self) -> bool {
        self.is_host_silent
    }

    /// Whether loads and changes must be reported now.
    #[inline]
    pub fn is_looking(&self) -> bool {
        self.look.is_some() && !self.is_proved
    }

    /// Something has changed, or may have: no circle is valid any more.
    pub fn change(&mut self) {
        if self.is_looking() {
            self.look = None;
        }
    }

    /// Other work begins.
    pub fn restart(&mut self) {
        self.silence_host(self.is_host_silent);
    }

    /// Reports that a wave's turn has ended after `instructions` instructions, and that it can continue. `scratch`
    /// returns the bytes of its private memory; `None` if they cannot be read, in which case nothing is proved.
    pub fn turn_ended(
        &mut self,
        wave: u32,
        place: Place,
        instructions: u64,
        registers: &Wave,
        scratch: impl FnOnce() -> Option<Vec<u8>>,
    ) {
        if !self.is_host_silent || self.is_proved {
            return;
        }
        let Some(look) = &mut self.look else {
            self.instructions += instructions;
            if self.instructions >= self.pause() {
                (self.instructions, self.looks) = (0, self.looks.saturating_add(1));
                self.look = Some(Look::default());
            }
            return;
        };
        let is_known = look.turn_ended(wave, place, instructions, registers, scratch).is_some();
        let instructions_max = LOOK_INSTRUCTIONS + LOOK_WAVE_INSTRUCTIONS * look.waves.len() as u64;
        if !is_known || look.instructions > instructions_max || look.scratch_bytes > SCRATCH_BYTES_MAX {
            self.look = None;
        }
    }

    /// Instructions until the next search: twice as many after each one, up to the maximum.
    fn pause(&self) -> u64 {
        (LOOK_AFTER_INSTRUCTIONS << self.looks.min(32)).min(LOOK_AFTER_INSTRUCTIONS_MAX)
    }

    /// Reports that a load or an atomic is executed; its lanes follow.
    pub fn poll(&mut self, wave: u32, pc: u64) {
        if let Some(look) = self.look.as_mut().filter(|_| !self.is_proved) {
            look.waves.entry(wave).or_default().loading_pc = Some(pc);
        }
    }

    /// Reports the bytes that a lane reads; only the first lane is recorded.
    pub fn load(&mut self, wave: u32, address: u64, is_lds: bool, bytes: &[u8]) {
        let Some(look) = self.look.as_mut().filter(|_| !self.is_proved) else { return };
        let Some(circle) = look.waves.get_mut(&wave) else { return };
        let Some(pc) = circle.loading_pc.take() else { return };
        let mut value = [0; 4];
        value.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let load = SeenLoad { pc, address, is_lds, value: u32::from_le_bytes(value) };
        if let Some(known) = circle.loads.iter_mut().find(|known| known.pc == pc) {
            *known = load;
        } else if circle.loads.len() < LOADS_MAX {
            circle.loads.push(load);
        }
    }

    /// Whether a circle was closed since the last query.
    pub fn has_news(&mut self) -> bool {
        let look = self.look.as_mut().filter(|_| !self.is_proved);
        look.is_some_and(|look| std::mem::take(&mut look.has_news))
    }

    /// Where a wave's circle began, if it is still open.
    pub fn start(&self, wave: u32) -> Option<Place> {
        let circle = self.look.as_ref().filter(|_| !self.is_proved)?.waves.get(&wave)?;
        circle.start.as_ref().filter(|_| !circle.is_closed).map(|start| start.place)
    }

    /// Whether a wave's registers equal those at the start of its circle.
    pub fn is_back(&self, wave: u32, registers: &Wave) -> bool {
        let circle = self.look.as_ref().and_then(|look| look.waves.get(&wave));
        circle
            .and_then(|circle| circle.start.as_ref())
            .is_some_and(|start| are_equal(&start.registers, registers))
    }

    /// Whether a wave's circle is closed.
    pub fn is_closed(&self, wave: u32) -> bool {
        self.look.as_ref().and_then(|look| look.waves.get(&wave)).is_some_and(|circle| circle.is_closed)
    }

    /// Called when all circles are closed. Returns whether that completes the proof, rather than its first half.
    pub fn confirm(&mut self) -> bool {
        match &mut self.look {
            Some(look) if look.is_second => self.is_proved = true,
            Some(look) => *look = Look { is_second: true, ..Look::default() },
            None => {}
        }
        self.is_proved
    }

    /// What a wave reads in its circle; empty without a proof.
    pub fn loads(&self, wave: u32) -> &[SeenLoad] {
        let circle = self.look.as_ref().filter(|_| self.is_proved).and_then(|look| look.waves.get(&wave));
        circle.map_or(&[], |circle| &circle.loads)
    }
}

impl Look {
    /// `None` if the wave's scratch cannot be read.
    fn turn_ended(
        &mut self,
        wave: u32,
        place: Place,
        instructions: u64,
        registers: &Wave,
        scratch: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<()> {
        self.instructions += instructions;
        let circle = match self.waves.entry(wave) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Circle::default()),
        };
        match &circle.start {
            Some(start) if circle.is_closed || start.place != place => {}
            Some(start) => {
                circle.is_closed = are_equal(&start.registers, registers) && start.scratch == scratch()?;
                self.has_news |= circle.is_closed;
            }
            None => {
                let scratch = scratch()?;
                self.scratch_bytes += scratch.len();
                // Earlier loads are not part of the circle.
                circle.loads.clear();
                circle.start = Some(Start { place, registers: registers.clone(), scratch });
            }
        }
        Some(())
    }
}

/// Whether two states of one wave are indistinguishable to its program.
fn are_equal(one: &Wave, other: &Wave) -> bool {
    let null = usize::from(NULL);
    let are_scalars_equal = one.scalar[..null] == other.scalar[..null]
        && one.scalar[null + 1..SCALAR_REGISTERS] == other.scalar[null + 1..SCALAR_REGISTERS];
    are_scalars_equal
        && (one.scc, one.mode, one.is_high) == (other.scc, other.mode, other.is_high)
        && one.vector == other.vector
        && one.other_half == other.other_half
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN_INSTRUCTIONS: u64 = 64;

    fn silent() -> Circles {
        let mut circles = Circles::default();
        circles.silence_host(true);
        circles
    }

    /// Lets two waves take turns until both circles are closed twice; `step` advances a wave. Returns the turns
    /// until the proof.
    fn turns_until_proved(
        circles: &mut Circles,
        mut step: impl FnMut(u64, &mut Wave, &mut Place, &mut Circles),
    ) -> Option<u64> {
        let mut waves = [Wave::new(), Wave::new()];
        let mut places = [Place { program_va: 0x1000, next: 0 }; 2];
        (0..400_000).find(|turn| {
            let at = (turn % 2) as usize;
            step(*turn, &mut waves[at], &mut places[at], circles);
            circles.turn_ended(at as u32, places[at], TURN_INSTRUCTIONS, &waves[at], || Some(Vec::new()));
            circles.has_news() && (0..2).all(|wave| circles.is_closed(wave)) && circles.confirm()
        })
    }

    #[test]
    fn a_state_that_comes_back_is_a_circle_and_needs_a_silent_host() {
        let turn_to_five = |turn: u64, _: &mut Wave, place: &mut Place, _: &mut Circles| {
            place.next = (turn / 2 % 5) as u32;
        };
        let proved = turns_until_proved(&mut silent(), turn_to_five).unwrap();
        let first_look = LOOK_AFTER_INSTRUCTIONS / TURN_INSTRUCTIONS;
        assert!((first_look..first_look + 40).contains(&proved), "{proved} after {first_look}");
        assert_eq!(turns_until_proved(&mut Circles::default(), turn_to_five), None, "the host may write");
    }

    #[test]
    fn a_wave_that_counts_is_in_no_circle() {
        let scalar =
            |turn: u64, wave: &mut Wave, _: &mut Place, _: &mut Circles| wave.scalar[7] = turn as u32;
        assert_eq!(turns_until_proved(&mut silent(), scalar), None);
        let vector =
            |turn: u64, wave: &mut Wave, _: &mut Place, _: &mut Circles| wave.vector[200].0[31] = turn as u32;
        assert_eq!(turns_until_proved(&mut silent(), vector), None);
        let sink = |turn: u64, wave: &mut Wave, _: &mut Place, _: &mut Circles| {
            wave.scalar[usize::from(NULL)] = turn as u32
        };
        assert!(turns_until_proved(&mut silent(), sink).is_some(), "null is no register");
    }

    #[test]
    fn a_change_ends_the_look_and_the_next_one_is_later() {
        let mut changes = 0;
        let proved = turns_until_proved(&mut silent(), |_, _, _, circles| {
            if circles.is_looking() && changes < 3 {
                changes += 1;
                circles.change();
            }
        });
        let instructions: u64 = (0..4).map(|look| LOOK_AFTER_INSTRUCTIONS << look).sum();
        let first = instructions / TURN_INSTRUCTIONS;
        assert!((first..first + 40).contains(&proved.unwrap()), "{proved:?} after {first}");
    }

    #[test]
    fn what_is_looked_at_is_known_after_the_proof() {
        let mut circles = silent();
        let proved = turns_until_proved(&mut circles, |turn, _, _, circles| {
            circles.poll((turn % 2) as u32, 0x1040);
            circles.load((turn % 2) as u32, 0x9000 + turn % 2, false, &[7, 0, 0, 0, 9]);
            circles.load((turn % 2) as u32, 0x9100, false, &[8]);
        });
        assert!(proved.is_some());
        assert_eq!(circles.loads(1), [SeenLoad { pc: 0x1040, address: 0x9001, is_lds: false, value: 7 }]);
    }

    /// What a wave invalidates in the first round, others see in the second.
    #[test]
    fn the_proof_is_made_twice() {
        let mut circles = silent();
        let wave = Wave::new();
        let place = Place { program_va: 0x1000, next: 3 };
        let mut rounds = 0;
        while !circles.is_proved {
            circles.turn_ended(0, place, TURN_INSTRUCTIONS, &wave, || Some(Vec::new()));
            if circles.has_news() {
                rounds += 1;
                circles.confirm();
            }
        }
        assert_eq!(rounds, 2);
    }

    #[test]
    fn scratch_is_part_of_the_state() {
        let mut circles = silent();
        let wave = Wave::new();
        let place = Place { program_va: 0x1000, next: 3 };
        let mut count = 0;
        for _ in 0..100_000 {
            circles.turn_ended(0, place, TURN_INSTRUCTIONS, &wave, || {
                count += 1;
                Some(vec![count])
            });
            assert!(!circles.is_closed(0));
            if count == u8::MAX {
                return;
            }
        }
        panic!("no look was begun");
    }

    const PLACE: Place = Place { program_va: 0x1000, next: 3 };

    /// A search that has just begun, with a million instructions before it.
    fn looking() -> Circles {
        let mut circles = silent();
        circles.turn_ended(0, PLACE, LOOK_AFTER_INSTRUCTIONS, &Wave::new(), || Some(Vec::new()));
        assert!(circles.is_looking());
        circles
    }

    #[test]
    fn a_search_begins_after_its_pause_and_pauses_double_up_to_a_limit() {
        let mut circles = silent();
        circles.turn_ended(0, PLACE, 999_999, &Wave::new(), || None);
        assert!(!circles.is_looking());
        circles.turn_ended(0, PLACE, 1, &Wave::new(), || None);
        assert!(circles.is_looking());
        let pause = |looks| Circles { looks, ..Circles::default() }.pause();
        let millions = [0, 1, 2, 5, 6, 7, 31, 32, 33, 64, u32::MAX].map(|looks| pause(looks) / 1_000_000);
        assert_eq!(millions, [1, 2, 4, 32, 64, 64, 64, 64, 64, 64, 64]);
        // Other work begins with the first pause again.
        circles.change();
        circles.restart();
        assert!(circles.is_host_silent());
        circles.turn_ended(0, PLACE, 1_000_000, &Wave::new(), || None);
        assert!(circles.is_looking());
        circles.silence_host(false);
        assert!(!circles.is_looking() && !circles.is_host_silent());
        circles.turn_ended(0, PLACE, 1_000_000, &Wave::new(), || None);
        assert!(!circles.is_looking(), "the host may write");
    }

    /// A million instructions, and 20,000 for each wave.
    #[test]
    fn a_search_ends_when_it_takes_too_long_or_too_much() {
        for (instructions, goes_on) in [([1_020_000, 20_000], true), ([1_020_000, 20_001], false)] {
            let mut circles = looking();
            circles.turn_ended(0, PLACE, instructions[0], &Wave::new(), || Some(Vec::new()));
            assert!(circles.is_looking());
            circles.turn_ended(1, PLACE, instructions[1], &Wave::new(), || Some(Vec::new()));
            assert_eq!(circles.is_looking(), goes_on, "{instructions:?}");
        }
        let mut circles = looking();
        circles.turn_ended(0, PLACE, 1_020_001, &Wave::new(), || Some(Vec::new()));
        assert!(!circles.is_looking());
        for (bytes, goes_on) in [(0, true), (1, false)] {
            let mut circles = looking();
            circles.turn_ended(0, PLACE, 1, &Wave::new(), || Some(vec![0; SCRATCH_BYTES_MAX]));
            assert!(circles.is_looking());
            circles.turn_ended(1, PLACE, 1, &Wave::new(), || Some(vec![0; bytes]));
            assert_eq!(circles.is_looking(), goes_on, "{bytes} more");
        }
        let mut circles = looking();
        circles.turn_ended(0, PLACE, 1, &Wave::new(), || None);
        assert!(!circles.is_looking(), "scratch that cannot be read proves nothing");
    }

    /// Everything that a program can tell apart is compared, and nothing else.
    #[test]
    fn a_wave_is_back_where_its_state_is_what_it_was() {
        type Change = fn(&mut Wave);
        let changes: [(Change, bool); 14] = [
            (|_| {}, true),
            (|wave| wave.scalar[0] ^= 1, false),
            (|wave| wave.scalar[usize::from(NULL) - 1] ^= 1, false),
            (|wave| wave.scalar[usize::from(NULL)] ^= 1, true),
            (|wave| wave.scalar[usize::from(NULL) + 1] ^= 1, false),
            (|wave| wave.scalar[127] ^= 1, false),
            (|wave| wave.scalar[128] ^= 1, true),
            (|wave| wave.scc = !wave.scc, false),
            (|wave| wave.mode ^= 1, false),
            (|wave| wave.is_high = !wave.is_high, false),
            (|wave| wave.vector[255].0[31] ^= 1, false),
            (|wave| wave.other_half.as_mut().unwrap()[255].0[31] ^= 1, false),
            (|wave| wave.other_half = None, false),
            (|wave| wave.executed += 1, true),
        ];
        for (index, (change, is_same)) in changes.into_iter().enumerate() {
            let mut circles = looking();
            let mut wave = Wave { other_half: Some(crate::shader::wave::vector_bank()), ..Wave::new() };
            assert!(!circles.is_back(0, &wave), "it has not begun");
            circles.turn_ended(0, PLACE, 1, &wave, || Some(vec![7]));
            change(&mut wave);
            assert_eq!(circles.is_back(0, &wave), is_same, "change {index}");
            assert!(!circles.is_back(1, &wave), "another wave");
            assert_eq!((circles.start(0), circles.start(1)), (Some(PLACE), None));
            circles.turn_ended(0, PLACE, 1, &wave, || Some(vec![7]));
            assert_eq!(circles.is_closed(0), is_same, "change {index}");
            assert_eq!(circles.has_news(), is_same, "change {index}");
            assert!(!circles.has_news(), "news are told once");
            assert_eq!(circles.start(0), (!is_same).then_some(PLACE), "change {index}");
        }
    }

    #[test]
    fn a_circle_is_closed_at_its_start_with_its_scratch_and_stays_so() {
        let wave = Wave::new();
        for (place, scratch, is_closed) in [
            (PLACE, 7, true),
            (PLACE, 8, false),
            (Place { next: 4, ..PLACE }, 7, false),
            (Place { program_va: 0x1004, ..PLACE }, 7, false),
        ] {
            let mut circles = looking();
            circles.turn_ended(0, PLACE, 1, &wave, || Some(vec![7]));
            circles.turn_ended(0, place, 1, &wave, || Some(vec![scratch]));
            assert_eq!((circles.is_closed(0), circles.is_closed(1)), (is_closed, false), "{place:?}");
            if is_closed {
                // Scratch is not read again.
                circles.turn_ended(0, PLACE, 1, &wave, || None);
                assert!(circles.is_closed(0) && circles.is_looking());
            }
        }
    }

    /// A proof of one wave, which polls at `count` instructions in each round.
    fn proved(count: u64) -> Circles {
        let mut circles = looking();
        assert!(!circles.confirm(), "the first half");
        for _ in 0..2 {
            circles.poll(0, 0x2000);
            circles.load(0, 0x9000, false, &[1]);
            circles.turn_ended(0, PLACE, 1, &Wave::new(), || Some(Vec::new()));
            for pc in 0..count {
                circles.poll(0, 0x1000 + 4 * pc);
                circles.load(0, 0x8000 + pc, pc % 2 == 1, &[1, 2, 3, 4, 5]);
                circles.load(0, 0x8800, false, &[9]);
            }
            circles.load(1, 0x8000, false, &[1]);
        }
        assert!(circles.confirm());
        circles
    }

    #[test]
    fn the_loads_of_the_circle_are_told_first_lanes_alone_and_eight_at_most() {
        assert!(looking().loads(0).is_empty(), "nothing is proved");
        assert!(!Circles::default().confirm(), "nothing is looked for");
        let load = |pc: u64| {
            let is_lds = pc % 2 == 1;
            SeenLoad { pc: 0x1000 + 4 * pc, address: 0x8000 + pc, is_lds, value: 0x0403_0201 }
        };
        // What was loaded before the circle began is no part of it; in its second round it is.
        let before = SeenLoad { pc: 0x2000, address: 0x9000, is_lds: false, value: 1 };
        let mut expected: Vec<_> = (0..3).map(load).collect();
        expected.push(before);
        assert_eq!(proved(3).loads(0), expected);
        assert_eq!(proved(9).loads(0), (0..8).map(load).collect::<Vec<_>>());
        assert!(proved(1).loads(1).is_empty());
    }

    #[test]
    fn a_proof_stays_whatever_happens() {
        let mut circles = proved(1);
        let loads = circles.loads(0).to_vec();
        circles.change();
        circles.poll(0, 0x3000);
        circles.load(0, 0x9000, false, &[1]);
        circles.turn_ended(0, PLACE, u64::MAX / 2, &Wave::new(), || None);
        assert_eq!(circles.loads(0), loads);
        assert!(!circles.is_looking() && !circles.has_news());
        assert_eq!(circles.start(0), None);
    }

    #[test]
    fn the_last_value_of_a_location_is_told() {
        let mut circles = looking();
        circles.confirm();
        circles.turn_ended(0, PLACE, 1, &Wave::new(), || Some(Vec::new()));
        for value in [5, 6] {
            circles.poll(0, 0x1000);
            circles.load(0, 0x8000, true, &[value]);
        }
        circles.turn_ended(0, PLACE, 1, &Wave::new(), || Some(Vec::new()));
        assert!(circles.confirm());
        assert_eq!(circles.loads(0), [SeenLoad { pc: 0x1000, address: 0x8000, is_lds: true, value: 6 }]);
    }
}
