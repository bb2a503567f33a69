//! The slot state machine of a session in plain Rust: what PLAN makes of the memory that it shares with the
//! host.
//!
//! Contract: [`look`] is one look of PLAN. Written from the meaning of the structures' fields for these tests
//! alone; slot after slot, event after event, without any thought of lanes. What it does not name keeps its
//! value.

use std::collections::BTreeMap;
use zrt_protocol::{
    CommandKind, Control, EXTRAS_TOPS, EventKind, FinishReason, Output, PAGE_TOKENS, PlanState, ROWS_MAX,
    Row, SLOTS_MAX, SlotPhase, SlotState, Status, Step, TopTokens,
};

/// An entry of a ring.
pub type Entry = [u32; 16];

/// Maximum number of commands that one look consumes.
const COMMANDS_MAX: usize = 8;

/// Sizes that the parameter block carries.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub context: u32,
    pub pages_per_slot: u32,
    pub input_entries: u32,
    pub output_entries: u32,
    pub chunk_rows: u32,
    /// PLAN looks again if there is nothing to do; such a look does not make a step with a number of its own.
    pub waits: bool,
}

/// All memory that PLAN reads or writes.
#[derive(Clone, Debug)]
pub struct World {
    pub sizes: Sizes,
    pub slots: Vec<SlotState>,
    pub control: Vec<Control>,
    pub tokens: Vec<u32>,
    pub host_pages: Vec<u32>,
    pub pages: Vec<u32>,
    pub plan: PlanState,
    pub input: Vec<Entry>,
    pub output: Vec<Entry>,
    /// Of each slot, and beside each entry of the output ring.
    pub tops: Vec<TopTokens>,
    pub output_tops: Vec<TopTokens>,
    pub stops: Vec<[u32; 8]>,
    pub consumed: u32,
    pub status: Status,
    pub step: Step,
}

/// A mistake that the model makes on purpose, so that a test shows that it would be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Entries get their header, but no trailer.
    NoTrailer,
    /// Token events take the entries that are kept for the ends.
    NoReserve,
    /// Pages that were granted to another request are accepted.
    ForeignGrant,
    /// A cancelled request's last choice is delivered.
    CancelKeepsOutput,
    /// Every token comes with the most likely ones.
    TopsForAll,
}

/// How often each case was met.
#[derive(Clone, Debug, Default)]
pub struct Seen(pub BTreeMap<&'static str, u32>);

impl Seen {
    pub fn note(&mut self, what: &'static str) {
        self.note_if(true, what);
    }

    fn note_if(&mut self, condition: bool, what: &'static str) {
        if condition {
            *self.0.entry(what).or_default() += 1;
        }
    }

    pub fn add(&mut self, other: &Seen) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }
}

/// The tag after this one: 1 to 2^32 - 1, then 1 again.
pub fn next_tag(tag: u32) -> u32 {
    tag.checked_add(1).unwrap_or(1)
}

/// One look, which makes the next step. Returns whether PLAN is done with it: false if it looks again.
pub fn look(world: &mut World, fault: Fault, seen: &mut Seen) -> bool {
    let epoch = world.plan.epoch;
    let order: Vec<usize> = (0..64).map(|i| ((world.plan.first_slot + i) % 64) as usize).collect();
    world.plan.heartbeat = world.plan.heartbeat.wrapping_add(1);
    for slot in 0..SLOTS_MAX {
        cancel(world, slot, fault, seen);
        complete(world, slot, seen);
        preempt(world, slot, seen);
    }
    commands(world, seen);
    for slot in 0..SLOTS_MAX {
        grant(world, slot, fault, seen);
    }
    events(world, &order, fault, seen);
    rows(world, &order, seen);
    let in_use = in_use(world);
    if world.plan.draining == 1 && in_use == 0 {
        world.plan.leave = 1;
        seen.note("drained");
    }
    if !world.sizes.waits || world.step.rows > 0 {
        world.plan.epoch = epoch.wrapping_add(1);
    }
    world.step.epoch = world.plan.epoch;
    world.step.flags = world.plan.leave;
    world.status = Status {
        input_consumed: world.plan.input_index,
        heartbeat: world.plan.heartbeat,
        epoch: world.plan.epoch,
        flags: world.plan.leave | in_use << 8,
    };
    world.plan.leave == 1 || world.step.rows > 0 || !world.sizes.waits
}

fn in_use(world: &World) -> u32 {
    world.slots.iter().filter(|slot| slot.phase != SlotPhase::Free as u32).count() as u32
}

fn cancel(world: &mut World, slot: usize, fault: Fault, seen: &mut Seen) {
    let (state, control) = (&mut world.slots[slot], &world.control[slot]);
    let held = state.phase != SlotPhase::Free as u32;
    if !held || control.cancel_serial != state.serial || state.reason != 0 {
        return;
    }
    seen.note_if(state.step_output != 0, "cancelled with an output");
    seen.note_if(state.pending != 0, "cancelled with an event pending");
    seen.note_if(state.phase == SlotPhase::Parked as u32, "cancelled while parked");
    if fault != Fault::CancelKeepsOutput {
        state.step_output = 0;
    }
    state.pending = 0;
    state.reason = FinishReason::Cancelled as u32;
}

fn complete(world: &mut World, slot: usize, seen: &mut Seen) {
    let state = &mut world.slots[slot];
    state.position += state.step_rows;
    state.step_rows = 0;
    if state.step_output == 0 {
        return;
    }
    state.step_output = 0;
    world.tokens[slot * world.sizes.context as usize + state.known as usize] = state.sampled;
    state.known += 1;
    state.pending = EventKind::Token as u32;
    state.pending_token = state.sampled;
    if state.stop.contains(&state.sampled) {
        seen.note_if(state.known >= state.limit, "stop and length at once");
        seen.note("ended by a stop token");
        state.reason = FinishReason::Stop as u32;
    } else if state.known >= state.limit {
        seen.note("ended by length");
        state.reason = FinishReason::Length as u32;
    }
}

fn preempt(world: &mut World, slot: usize, seen: &mut Seen) {
    let (state, control) = (&mut world.slots[slot], &world.control[slot]);
    let wanted = state.phase == SlotPhase::Active as u32 && control.preempt_serial == state.serial;
    if !wanted || state.reason != 0 {
        return;
    }
    if state.pending != 0 {
        seen.note("preemption after the pending event");
        return;
    }
    seen.note("preempted");
    state.phase = SlotPhase::Parked as u32;
    state.pending = EventKind::Preempted as u32;
    state.pending_token = state.position;
}

fn commands(world: &mut World, seen: &mut Seen) {
    for number in 0..=COMMANDS_MAX {
        let plan = &mut world.plan;
        let entry = world.input[(plan.input_index % world.sizes.input_entries) as usize];
        if entry[0] != plan.input_tag {
            return;
        }
        if entry[15] != !plan.input_tag {
            seen.note("entry without its trailer");
            return;
        }
        if number == COMMANDS_MAX {
            seen.note("commands left for the next look");
            return;
        }
        seen.note_if(plan.input_tag == u32::MAX, "last tag of the input ring");
        plan.input_index = plan.input_index.wrapping_add(1);
        plan.input_tag = next_tag(plan.input_tag);
        let slot = (entry[1] >> 8) as usize;
        match entry[1] & 0xFF {
            kind if kind == CommandKind::Admit as u32 => admit(world, slot, &entry, seen),
            kind if kind == CommandKind::Resume as u32 => resume(world, slot, &entry, seen),
            kind if kind == CommandKind::Drain as u32 => plan.draining = 1,
            kind if kind == CommandKind::Stop as u32 => {
                seen.note("stopped");
                plan.leave = 1;
            }
            _ => seen.note("unknown command"),
        }
    }
}

fn admit(world: &mut World, slot: usize, entry: &Entry, seen: &mut Seen) {
    if world.plan.draining == 1 {
        seen.note("not admitted while draining");
        return;
    }
    let Some(state) = world.slots.get_mut(slot) else { return };
    if state.phase != SlotPhase::Free as u32 {
        seen.note("not admitted into a slot in use");
        return;
    }
    seen.note("admitted");
    seen.note_if(entry[5] > 0, "admitted behind positions that are there");
    *state = SlotState {
        phase: SlotPhase::Active as u32,
        serial: entry[2],
        known: entry[3],
        limit: entry[4],
        position: entry[5],
        sampled: state.sampled,
        pending_token: state.pending_token,
        seed_low: entry[6],
        seed_high: entry[7],
        inverse_temperature: entry[8],
        top_k: entry[9],
        top_p: entry[10],
        penalty: entry[11],
        inverse_penalty: entry[12],
        penalty_window: entry[13],
        extras: entry[14],
        stop: world.stops[slot],
        ..SlotState::default()
    };
}

fn resume(world: &mut World, slot: usize, entry: &Entry, seen: &mut Seen) {
    let Some(state) = world.slots.get_mut(slot) else { return };
    if state.phase != SlotPhase::Parked as u32 || state.serial != entry[2] {
        seen.note("not resumed");
        return;
    }
    state.phase = SlotPhase::Active as u32;
    state.position = entry[3];
    if entry[3] == 0 {
        state.pages = 0;
        seen.note("resumed from the start");
    } else {
        seen.note("resumed where it was");
    }
}

fn grant(world: &mut World, slot: usize, fault: Fault, seen: &mut Seen) {
    let (state, control) = (&mut world.slots[slot], &world.control[slot]);
    if state.phase != SlotPhase::Active as u32 {
        return;
    }
    let granted = control.granted_pages.min(world.sizes.pages_per_slot);
    if control.granted_serial != state.serial {
        seen.note_if(granted > state.pages, "pages granted to another request");
        if fault != Fault::ForeignGrant {
            return;
        }
    }
    seen.note_if(granted > state.pages, "pages granted");
    while state.pages < granted {
        let place = slot * world.sizes.pages_per_slot as usize + state.pages as usize;
        world.pages[place] = world.host_pages[place];
        state.pages += 1;
    }
}

/// Entries that the host has not consumed yet are never overwritten.
fn put(
    world: &mut World,
    slot: usize,
    [kind, token, index, reason]: [u32; 4],
    fault: Fault,
    seen: &mut Seen,
) {
    let plan = &mut world.plan;
    let waiting = plan.output_index.wrapping_sub(world.consumed);
    assert!(fault == Fault::NoReserve || waiting < world.sizes.output_entries, "the output ring overflows");
    let place = (plan.output_index % world.sizes.output_entries) as usize;
    let tag = plan.output_tag;
    let mut entry = [0; 16];
    entry[..7].copy_from_slice(&[
        tag,
        kind | (slot as u32) << 8,
        world.slots[slot].serial,
        token,
        index,
        reason,
        plan.epoch,
    ]);
    entry[15] = if fault == Fault::NoTrailer { world.output[place][15] } else { !tag };
    let is_token = kind == EventKind::Token as u32;
    let is_asked = world.slots[slot].extras & EXTRAS_TOPS != 0 || fault == Fault::TopsForAll;
    if is_token && is_asked {
        entry[7] = 1;
        world.output_tops[place] = world.tops[slot];
    }
    seen.note_if(is_token && is_asked, "a token with the most likely ones");
    seen.note_if(!is_token && is_asked, "another event of such a request");
    world.output[place] = entry;
    seen.note_if(tag == u32::MAX, "last tag of the output ring");
    plan.output_index = plan.output_index.wrapping_add(1);
    plan.output_tag = next_tag(tag);
}

fn events(world: &mut World, order: &[usize], fault: Fault, seen: &mut Seen) {
    let waiting = world.plan.output_index.wrapping_sub(world.consumed);
    let reserve = if fault == Fault::NoReserve { 0 } else { SLOTS_MAX as u32 };
    let mut room = world.sizes.output_entries.saturating_sub(waiting).saturating_sub(reserve);
    for slot in order.iter().copied() {
        let state = world.slots[slot];
        if state.pending == 0 {
            continue;
        }
        if room == 0 {
            seen.note("an event waits for room");
            seen.note_if(state.reason != 0, "an end waits for the event before");
            continue;
        }
        room -= 1;
        put(world, slot, [state.pending, state.pending_token, state.known - 1, 0], fault, seen);
        world.slots[slot].pending = 0;
    }
    for slot in order.iter().copied() {
        let state = world.slots[slot];
        if state.reason == 0 || state.pending != 0 {
            continue;
        }
        seen.note_if(room == 0, "an end uses its reserved entry");
        put(world, slot, [EventKind::Finished as u32, 0, state.known, state.reason], fault, seen);
        world.slots[slot].phase = SlotPhase::Free as u32;
        world.slots[slot].serial = 0;
        world.slots[slot].reason = 0;
    }
}

/// Tokens that a slot could consume: (all that are known, those for which there are pages). `None`: it may not.
fn eligible(world: &World, slot: usize, seen: &mut Seen) -> Option<(u32, u32)> {
    let state = &world.slots[slot];
    if state.phase != SlotPhase::Active as u32 || state.pending != 0 || state.reason != 0 {
        return None;
    }
    if world.control[slot].hold_serial == state.serial {
        seen.note("held");
        return None;
    }
    if world.control[slot].preempt_serial == state.serial {
        seen.note("no row before it is parked");
        return None;
    }
    let capacity = state.pages * PAGE_TOKENS;
    if capacity <= state.position {
        seen.note("no page for the position");
        return None;
    }
    Some((state.known - state.position, capacity - state.position))
}

fn rows(world: &mut World, order: &[usize], seen: &mut Seen) {
    // (slot, rows), in the order of the rows.
    let mut shares: Vec<(usize, u32)> = Vec::new();
    for slot in order.iter().copied() {
        if let Some((1, _)) = eligible(world, slot, &mut Seen::default()) {
            shares.push((slot, 1));
        }
    }
    seen.note_if(shares.len() > 32, "more than 32 rows of decoding");
    let mut left = world.sizes.chunk_rows.min(ROWS_MAX as u32 - shares.len() as u32);
    seen.note_if(left < world.sizes.chunk_rows, "decoding rows leave less for prompts");
    let mut cut = None;
    for slot in order.iter().copied() {
        let Some((wanted, possible)) = eligible(world, slot, seen) else { continue };
        if wanted < 2 {
            continue;
        }
        let share = wanted.min(possible).min(left);
        if share < wanted.min(possible) {
            cut.get_or_insert(slot);
        }
        seen.note_if(share == left && share < wanted.min(possible), "the chunk cuts a prompt");
        seen.note_if(share == possible && share < wanted, "the pages cut a prompt");
        left -= share;
        if share > 0 {
            shares.push((slot, share));
        }
    }
    // The next step begins with the prompt that was cut, or one slot further.
    seen.note_if(cut.is_some_and(|slot| slot == order[0]), "a prompt longer than two chunks");
    world.plan.first_slot = cut.unwrap_or(order[1]) as u32;
    let mut first = BTreeMap::new();
    let mut count = 0;
    for (slot, share) in shares.iter().copied() {
        first.insert(slot, count);
        world.slots[slot].step_rows = share;
        let state = &world.slots[slot];
        for number in 0..share {
            let position = state.position + number;
            let token = world.tokens[slot * world.sizes.context as usize + position as usize];
            world.step.row[(count + number) as usize] =
                Row { slot: slot as u32, position, token, output: u32::MAX };
        }
        count += share;
    }
    // Outputs are numbered in the order of the visits, not of the rows.
    let mut outputs = 0;
    for slot in order.iter().copied() {
        let state = &mut world.slots[slot];
        if state.step_rows == 0 || state.position + state.step_rows != state.known {
            continue;
        }
        let row = first[&slot] + state.step_rows - 1;
        world.step.output[outputs as usize] = Output { row, slot: slot as u32 };
        world.step.row[row as usize].output = outputs;
        outputs += 1;
        state.step_output = outputs;
    }
    seen.note_if(count == ROWS_MAX as u32, "a full step");
    seen.note_if(count == 0, "a step without rows");
    world.step.rows = count;
    world.step.outputs = outputs;
    let mut alive = [0; ROWS_MAX / 32];
    for row in 0..count as usize {
        alive[row / 32] |= 1 << (row % 32);
    }
    world.step.alive = [alive; 2];
}
