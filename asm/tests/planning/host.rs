//! A host and a sampler that do as they please, within what a host may do: they drive the tests of PLAN.
//!
//! Contract: a pure function of the seed and of what the device wrote. The host admits into a slot after it has
//! consumed the end of the previous request, however many other entries wait to be consumed.

use super::model::{Entry, Seen, World, next_tag};
use crate::support::weights::Random;
use zrt_protocol::{CommandKind, EventKind, SLOTS_MAX, SlotPhase, TopTokens};

/// Tokens that the sampler chooses from.
const VOCABULARY: u32 = 100;

/// What the host is like.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Slots that it uses.
    pub slots: u32,
    /// Of 100 looks, those before which it consumes entries of the output ring.
    pub takes_percent: u32,
    /// Of 100 prompts, the long ones.
    pub long_percent: u32,
    /// Maximum number of stop tokens of a request.
    pub stops: u32,
    /// Of 100 looks and slots, those with a whim: cancel, preempt, hold, a change of grants.
    pub whim_percent: u32,
    /// It drains the device from this look on.
    pub drains_at: u32,
    /// It stops the device at this look.
    pub stops_at: u32,
}

/// What the host knows about a slot.
#[derive(Clone, Copy, Default)]
struct Held {
    /// Its request; 0: none.
    serial: u32,
    /// Its position when it was parked.
    parked_at: Option<u32>,
}

pub struct Host {
    habits: Habits,
    random: Random,
    held: [Held; SLOTS_MAX],
    next_serial: u32,
    input_index: u32,
    input_tag: u32,
    output_tag: u32,
    /// An entry that lacks its trailer: its place.
    unfinished: Option<usize>,
    look: u32,
}

impl Host {
    /// A host that begins where the rings of this world are.
    pub fn new(seed: u64, habits: Habits, world: &World) -> Host {
        Host {
            habits,
            random: Random::new(seed),
            held: [Held::default(); SLOTS_MAX],
            next_serial: 1,
            input_index: world.plan.input_index,
            input_tag: world.plan.input_tag,
            output_tag: world.plan.output_tag,
            unfinished: None,
            look: 0,
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.below(100) < percent
    }

    /// What happens before a look.
    pub fn act(&mut self, world: &mut World, seen: &mut Seen) {
        self.look += 1;
        if let Some(place) = self.unfinished.take() {
            world.input[place][15] = !world.input[place][0];
        }
        // Towards the end it is quicker.
        let takes_percent = if self.look > self.habits.drains_at { 95 } else { self.habits.takes_percent };
        if self.chance(takes_percent) {
            let most = if self.chance(50) { u32::MAX } else { self.random.below(4) };
            self.take(world, most, seen);
        }
        for slot in 0..self.habits.slots as usize {
            self.whims(world, slot);
        }
        let busy = self.look < self.habits.drains_at;
        // Until they have been seen: the ring may be full.
        if self.look >= self.habits.drains_at && world.plan.draining == 0 {
            self.push(world, CommandKind::Drain as u32, 0, [0; 2], 0);
        }
        if self.look >= self.habits.stops_at {
            self.push(world, CommandKind::Stop as u32, 0, [0; 2], 0);
        }
        for _ in 0..self.random.below(16) {
            let slot = self.random.below(self.habits.slots) as usize;
            match self.random.below(20) {
                0 => self.resume_wrongly(world, slot),
                1 => self.admit_wrongly(world, slot),
                2..8 => self.resume(world, slot),
                _ if busy => self.admit(world, slot),
                _ => {}
            }
        }
        if self.chance(30) {
            self.begin_entry(world);
        }
    }

    /// What SAMPLE does before a look.
    pub fn sample(&mut self, world: &mut World) {
        for (state, tops) in
            world.slots.iter_mut().zip(&mut world.tops).filter(|(state, _)| state.step_output != 0)
        {
            state.sampled = self.random.below(VOCABULARY);
            let words: [u32; size_of::<TopTokens>() / 4] = std::array::from_fn(|_| self.random.word());
            *tops = zerocopy::transmute!(words);
        }
    }

    /// Consumes entries of the output ring as a host finds them: by tag and trailer alone.
    fn take(&mut self, world: &mut World, most: u32, seen: &mut Seen) {
        for _ in 0..most {
            let entry = world.output[(world.consumed % world.sizes.output_entries) as usize];
            if entry[0] != self.output_tag {
                return;
            }
            assert_eq!(entry[15], !self.output_tag, "a header without its trailer");
            self.output_tag = next_tag(self.output_tag);
            world.consumed = world.consumed.wrapping_add(1);
            let (kind, slot) = (entry[1] & 0xFF, (entry[1] >> 8) as usize);
            assert_eq!(entry[2], self.held[slot].serial, "an event of a request that does not hold the slot");
            if kind == EventKind::Finished as u32 {
                self.held[slot] = Held::default();
            } else if kind == EventKind::Preempted as u32 {
                self.held[slot].parked_at = Some(entry[3]);
                world.control[slot].preempt_serial = 0;
            }
            seen.note("taken by the host");
        }
    }

    fn has_input_room(&self, world: &World) -> bool {
        self.input_index.wrapping_sub(world.status.input_consumed) < world.sizes.input_entries
            && self.unfinished.is_none()
    }

    fn push(&mut self, world: &mut World, kind: u32, slot: u32, [serial, known]: [u32; 2], limit: u32) {
        let start = if known > 1 && self.chance(30) { self.random.below(known) } else { 0 };
        if !self.has_input_room(world) {
            return;
        }
        let mut entry: Entry = std::array::from_fn(|_| self.random.word());
        entry[..6].copy_from_slice(&[self.input_tag, kind | slot << 8, serial, known, limit, start]);
        entry[15] = !self.input_tag;
        world.input[(self.input_index % world.sizes.input_entries) as usize] = entry;
        self.input_index = self.input_index.wrapping_add(1);
        self.input_tag = next_tag(self.input_tag);
    }

    /// Writes an entry that nobody knows, except for its trailer.
    fn begin_entry(&mut self, world: &mut World) {
        if self.has_input_room(world) {
            let place = (self.input_index % world.sizes.input_entries) as usize;
            let trailer = world.input[place][15];
            self.push(world, 200, 3, [5, 6], 7);
            world.input[place][15] = trailer;
            self.unfinished = Some(place);
        }
    }

    fn admit(&mut self, world: &mut World, slot: usize) {
        let is_free = self.held[slot].serial == 0 && world.slots[slot].phase == SlotPhase::Free as u32;
        if !is_free || !self.has_input_room(world) {
            return;
        }
        let context = world.sizes.context;
        let longest = if self.chance(self.habits.long_percent) { context - 1 } else { 3 };
        let known = 1 + self.random.below(longest);
        let most = if self.chance(50) { 12 } else { context };
        let limit = known + 1 + self.random.below((context - known).min(most));
        let first = slot * context as usize;
        for token in &mut world.tokens[first..first + known as usize] {
            *token = self.random.word();
        }
        world.stops[slot] = [u32::MAX; 8];
        for _ in 0..self.random.below(self.habits.stops + 1) {
            world.stops[slot][self.random.below(8) as usize] = self.random.below(VOCABULARY);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.held[slot] = Held { serial, parked_at: None };
        self.new_pages(world, slot);
        self.push(world, CommandKind::Admit as u32, slot as u32, [serial, known], limit.min(context));
    }

    /// A grant of pages from the start.
    fn new_pages(&mut self, world: &mut World, slot: usize) {
        let per_slot = world.sizes.pages_per_slot;
        for page in &mut world.host_pages[slot * per_slot as usize..][..per_slot as usize] {
            *page = self.random.word();
        }
        world.control[slot].granted_serial = self.held[slot].serial;
        world.control[slot].granted_pages = self.random.below(per_slot + 1);
    }

    /// Admits into a slot that is in use, or that does not exist.
    fn admit_wrongly(&mut self, world: &mut World, slot: usize) {
        let is_used = world.slots[slot].phase != SlotPhase::Free as u32;
        let draining = world.plan.draining == 1;
        let slot = if self.chance(20) { 64 + self.random.below(1000) } else { slot as u32 };
        if is_used
            && world.plan.leave == 0
            && world.slots.get(slot as usize).is_none_or(|_| self.still(world, slot))
            || draining
        {
            self.push(world, CommandKind::Admit as u32, slot, [0xABCD, 3], 9);
        }
    }

    /// Whether the slot cannot become free in the looks in which the entry may be read: held, and nothing
    /// made.
    fn still(&self, world: &World, slot: u32) -> bool {
        let state = &world.slots[slot as usize];
        state.phase == SlotPhase::Parked as u32 && state.reason == 0
    }

    fn resume(&mut self, world: &mut World, slot: usize) {
        let Some(position) = self.held[slot].parked_at else { return };
        if !self.has_input_room(world) {
            return;
        }
        self.held[slot].parked_at = None;
        let known = if self.chance(40) { 0 } else { position };
        if known == 0 {
            self.new_pages(world, slot);
        }
        let serial = self.held[slot].serial;
        self.push(world, CommandKind::Resume as u32, slot as u32, [serial, known], 0);
    }

    /// Resumes another request, or one that is not parked.
    fn resume_wrongly(&mut self, world: &mut World, slot: usize) {
        let serial = self.held[slot].serial;
        let wrong = if self.chance(50) || world.slots[slot].phase != SlotPhase::Active as u32 {
            serial + 1_000_000
        } else {
            serial
        };
        let is_quiet = world.control[slot].preempt_serial == 0 && world.slots[slot].pending == 0;
        if wrong != serial || is_quiet {
            self.push(world, CommandKind::Resume as u32, slot as u32, [wrong, 0], 0);
        }
    }

    /// Changes what the host may change of a slot at any time.
    fn whims(&mut self, world: &mut World, slot: usize) {
        let per_slot = world.sizes.pages_per_slot;
        let serial = self.held[slot].serial;
        let control = &mut world.control[slot];
        let patient = self.random.below(100) >= self.habits.whim_percent;
        if control.granted_serial == serial && control.granted_pages < per_slot && self.random.below(3) == 0 {
            control.granted_pages += 1 + self.random.below(per_slot - control.granted_pages);
        }
        if self.look > self.habits.drains_at && patient {
            // It wants to come to an end.
            (control.hold_serial, control.preempt_serial) = (0, 0);
            (control.granted_serial, control.granted_pages) = (serial, per_slot);
            if self.random.below(16) == 0 {
                control.cancel_serial = serial;
            }
        }
        if patient {
            return;
        }
        match self.random.below(12) {
            0 => control.cancel_serial = serial,
            1 => control.cancel_serial = serial.wrapping_sub(1),
            2 | 3 => control.preempt_serial = serial,
            4 => control.preempt_serial = 0,
            5 => control.hold_serial = serial,
            6..9 => control.hold_serial = 0,
            9 => {
                // The pages of a request that is to come, or that has gone.
                control.granted_serial = serial.wrapping_add(1);
                control.granted_pages = per_slot;
            }
            10 => control.granted_pages = per_slot + 3,
            _ => control.granted_serial = serial,
        }
    }
}
