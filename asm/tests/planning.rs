//! PLAN and BOUNDARY on the virtual device's shader engine against a separate model of the slot state
//! machine.
//!
//! A random host and a random sampler drive PLAN look by look; after each look all memory that it may write
//! is compared.
//!
//! A header that is stored before its line is written back is a finding here. Not seen here: whether the device
//! finds what the host wrote before a command whenever the command has come; the megakernel's cases see that.

#[path = "planning/boundary.rs"]
mod boundary;
#[path = "planning/host.rs"]
mod host;
#[path = "planning/model.rs"]
mod model;
mod support;

use host::{Habits, Host};
use model::{Fault, Seen, Sizes, World, look};
use support::harness::Device;
use zerocopy::{FromBytes, Immutable, IntoBytes};
use zrt_protocol::params::{self, RowSet};
use zrt_protocol::{
    CommandKind, Control, PlanState, ROWS_MAX, Row, SLOTS_MAX, SlotPhase, SlotState, Status, Step, TopTokens,
};

/// What fresh memory of a ring holds: no tag that a test meets.
const GARBAGE: u32 = 0x5EED_0BAD;

/// The memory of a world in a device.
struct Memory {
    device: Device,
    block: params::Plan,
    /// A dword of the kernel, and its replacement.
    change: Option<[u32; 2]>,
    groups: u32,
}

impl Memory {
    fn new(world: &World) -> Memory {
        let mut device = Device::new(0);
        let step_va = device.upload(&[world.step]);
        let block = params::Plan {
            header: params::Plan::header(step_va, 1, RowSet::Once),
            slots_va: device.upload(&world.slots),
            control_va: device.upload(&world.control),
            tokens_va: device.upload(&world.tokens),
            host_pages_va: device.upload(&world.host_pages),
            pages_va: device.upload(&world.pages),
            plan_state_va: device.upload(&[world.plan]),
            input_va: device.upload(&world.input),
            output_va: device.upload(&world.output),
            stops_va: device.upload(&world.stops),
            consumed_va: device.upload(&[world.consumed]),
            status_va: device.upload(&[world.status]),
            context: world.sizes.context,
            pages_per_slot: world.sizes.pages_per_slot,
            input_mask: world.sizes.input_entries - 1,
            output_mask: world.sizes.output_entries - 1,
            chunk_rows: world.sizes.chunk_rows,
            waits: u32::from(world.sizes.waits),
            tops_va: device.upload(&world.tops),
            output_tops_va: device.upload(&world.output_tops),
        };
        Memory { device, block, change: None, groups: 1 }
    }

    /// What host and sampler wrote.
    fn store(&self, world: &World) {
        let (device, block) = (&self.device, &self.block);
        device.store(block.slots_va, world.slots.as_bytes());
        device.store(block.control_va, world.control.as_bytes());
        device.store(block.tokens_va, world.tokens.as_bytes());
        device.store(block.host_pages_va, world.host_pages.as_bytes());
        device.store(block.input_va, world.input.as_bytes());
        device.store(block.stops_va, world.stops.as_bytes());
        device.store(block.consumed_va, world.consumed.as_bytes());
        device.store(block.tops_va, world.tops.as_bytes());
    }

    fn run(&mut self) {
        let (block, groups) = (self.block, self.groups);
        match self.change {
            None => self.device.run("plan", block.as_bytes(), groups),
            Some(change) => self.device.run_changed("plan", change, block.as_bytes(), groups),
        }
    }

    /// The first difference between the device's memory and this world.
    fn compare(&self, world: &World) -> Result<(), String> {
        let block = &self.block;
        self.same("plan state", block.plan_state_va, std::slice::from_ref(&world.plan))?;
        self.same("slot", block.slots_va, &world.slots)?;
        self.same("output entry", block.output_va, &world.output)?;
        self.same("most likely tokens of an entry", block.output_tops_va, &world.output_tops)?;
        self.same("status", block.status_va, std::slice::from_ref(&world.status))?;
        self.same("page", block.pages_va, &world.pages)?;
        self.same("token", block.tokens_va, &world.tokens)?;
        let (step_va, step) = (block.header.step_va, &world.step);
        self.same(
            "step, dword",
            step_va,
            &<[u32; 64]>::read_from_bytes(&step.as_bytes()[..256]).expect("its size"),
        )?;
        self.same("row", step_va + 256, &step.row)?;
        self.same("output", step_va + 256 + size_of_val(&step.row) as u64, &step.output)?;
        // What only the host writes.
        self.same("control", block.control_va, &world.control)?;
        self.same("host page", block.host_pages_va, &world.host_pages)?;
        self.same("input entry", block.input_va, &world.input)?;
        self.same("stop tokens", block.stops_va, &world.stops)?;
        self.same("most likely tokens of a slot", block.tops_va, &world.tops)?;
        self.same("taken", block.consumed_va, &[world.consumed])
    }

    fn same<T>(&self, what: &str, va: u64, expected: &[T]) -> Result<(), String>
    where
        T: FromBytes + IntoBytes + Immutable + PartialEq + std::fmt::Debug,
    {
        let bytes = self.device.bytes_at(va, size_of_val(expected));
        for (number, (found, expected)) in bytes.chunks(size_of::<T>()).zip(expected).enumerate() {
            let found = T::read_from_bytes(found).expect("its size");
            if found != *expected {
                return Err(format!("{what} {number} is {found:x?}, expected {expected:x?}"));
            }
        }
        Ok(())
    }
}

/// A session before its first look. `turns`: entries that the rings have seen.
fn fresh(sizes: Sizes, turns: u32, tag: u32) -> World {
    let pages = SLOTS_MAX * sizes.pages_per_slot as usize;
    let stale = Row { slot: 77, position: 78, token: 79, output: 80 };
    World {
        sizes,
        slots: vec![SlotState::default(); SLOTS_MAX],
        control: vec![Control::default(); SLOTS_MAX],
        tokens: vec![GARBAGE; SLOTS_MAX * sizes.context as usize],
        host_pages: vec![GARBAGE; pages],
        pages: vec![0; pages],
        plan: PlanState {
            epoch: turns,
            input_index: turns,
            input_tag: tag,
            output_index: turns.wrapping_sub(5),
            output_tag: tag,
            ..PlanState::default()
        },
        input: vec![[GARBAGE; 16]; sizes.input_entries as usize],
        output: vec![[GARBAGE; 16]; sizes.output_entries as usize],
        tops: vec![TopTokens::default(); SLOTS_MAX],
        output_tops: vec![TopTokens::default(); sizes.output_entries as usize],
        stops: vec![[u32::MAX; 8]; SLOTS_MAX],
        consumed: turns.wrapping_sub(5),
        status: Status { input_consumed: turns, ..Status::default() },
        step: Step { row: [stale; ROWS_MAX], ..Step::default() },
    }
}

/// A run of looks.
#[derive(Clone, Copy, Debug)]
struct Workload {
    sizes: Sizes,
    habits: Habits,
    seed: u64,
    turns: u32,
    tag: u32,
    looks: u32,
    groups: u32,
}

/// All slots, short and long prompts, rings with room to spare.
const WIDE: Workload = Workload {
    sizes: Sizes {
        context: 96,
        pages_per_slot: 6,
        input_entries: 64,
        output_entries: 256,
        chunk_rows: 128,
        waits: false,
    },
    habits: Habits {
        slots: 64,
        takes_percent: 70,
        long_percent: 30,
        stops: 4,
        whim_percent: 2,
        drains_at: 90,
        stops_at: 119,
    },
    seed: 1,
    turns: 0,
    tag: 1,
    looks: 120,
    groups: 1,
};

/// Runs it; returns the first difference, and at which look.
fn run(workload: &Workload, change: Option<[u32; 2]>, fault: Fault, seen: &mut Seen) -> Result<(), String> {
    let mut world = fresh(workload.sizes, workload.turns, workload.tag);
    let mut memory = Memory::new(&world);
    (memory.change, memory.groups) = (change, workload.groups);
    let mut host = Host::new(workload.seed, workload.habits, &world);
    for number in 0..workload.looks {
        host.act(&mut world, seen);
        host.sample(&mut world);
        memory.store(&world);
        memory.run();
        while !look(&mut world, fault, seen) {}
        memory.compare(&world).map_err(|text| format!("seed {}, look {number}: {text}", workload.seed))?;
        if world.plan.leave == 1 {
            break;
        }
    }
    Ok(())
}

fn check(workload: Workload) -> Seen {
    let mut seen = Seen::default();
    if let Err(difference) = run(&workload, None, Fault::None, &mut seen) {
        panic!("{difference}");
    }
    seen
}

fn assert_met(seen: &Seen, cases: &[&str]) {
    for case in cases {
        assert!(seen.0.contains_key(case), "never met: {case}; met: {:?}", seen.0);
    }
}

/// Few slots and a small ring: the host is slow, and events wait.
fn narrow(seed: u64) -> Workload {
    let mut narrow = Workload { seed, ..WIDE };
    narrow.sizes.output_entries = 128;
    narrow.sizes.input_entries = 16;
    narrow.habits = Habits { slots: 24, takes_percent: 12, whim_percent: 6, drains_at: 50, ..WIDE.habits };
    narrow
}

/// Short prompts, long answers: most slots decode.
fn crowded(seed: u64) -> Workload {
    let mut crowded = Workload { seed, ..WIDE };
    crowded.habits = Habits { long_percent: 3, stops: 0, takes_percent: 95, whim_percent: 1, ..WIDE.habits };
    crowded
}

/// Small chunks, long prompts.
fn small(seed: u64) -> Workload {
    let mut small = Workload { seed: seed + 10, groups: 3, ..WIDE };
    (small.sizes.chunk_rows, small.habits.slots, small.habits.long_percent) = (11, 20, 80);
    (small.habits.stops, small.habits.drains_at) = (1, 1000);
    small
}

/// Long prompts in as many rows as a step has.
fn full(seed: u64) -> Workload {
    let mut full = Workload { seed: seed + 20, looks: 40, ..WIDE };
    (full.sizes.context, full.sizes.pages_per_slot, full.sizes.chunk_rows) = (768, 48, 512);
    (full.habits.long_percent, full.habits.drains_at) = (80, 1000);
    full
}

#[test]
fn random_hosts_see_what_the_model_says() {
    let mut seen = Seen::default();
    for seed in 1..4 {
        seen.add(&check(Workload { seed, ..WIDE }));
        seen.add(&check(narrow(seed)));
        seen.add(&check(crowded(seed)));
        seen.add(&check(small(seed)));
        seen.add(&check(full(seed)));
    }
    assert_met(
        &seen,
        &[
            "admitted",
            "admitted behind positions that are there",
            "not admitted into a slot in use",
            "not admitted while draining",
            "resumed from the start",
            "resumed where it was",
            "not resumed",
            "unknown command",
            "entry without its trailer",
            "commands left for the next look",
            "cancelled with an output",
            "cancelled with an event pending",
            "cancelled while parked",
            "preempted",
            "preemption after the pending event",
            "no row before it is parked",
            "ended by a stop token",
            "stop and length at once",
            "ended by length",
            "pages granted",
            "pages granted to another request",
            "an event waits for room",
            "an end waits for the event before",
            "an end uses its reserved entry",
            "held",
            "no page for the position",
            "more than 32 rows of decoding",
            "decoding rows leave less for prompts",
            "the chunk cuts a prompt",
            "the pages cut a prompt",
            "a full step",
            "a step without rows",
            "taken by the host",
            "drained",
            "stopped",
            "a token with the most likely ones",
            "another event of such a request",
        ],
    );
}

/// After 2^32 - 1 tags continue from 1, and indices and numbers of steps from 0.
#[test]
fn tags_wrap() {
    let mut seen = Seen::default();
    for (seed, back) in [(21, 5), (22, 20), (23, 37)] {
        let wrapping = Workload { turns: back / 2, tag: u32::MAX - back, ..narrow(seed) };
        seen.add(&check(wrapping));
        seen.add(&check(Workload { turns: u32::MAX - back, tag: u32::MAX - 2 * back, seed, ..WIDE }));
    }
    assert_met(&seen, &["last tag of the input ring", "last tag of the output ring", "ended by length"]);
}

/// A slot whose request has one token and pages for all that it may make.
fn running(serial: u32) -> SlotState {
    let mut slot = SlotState { phase: 1, serial, known: 1, limit: 95, pages: 6, ..SlotState::default() };
    slot.stop = [u32::MAX; 8];
    slot
}

/// One request fills the ring of a host that consumes nothing; then the other slots are filled, and all requests
/// cancelled. Every end has room, and no entry is overwritten that the host has not consumed.
#[test]
fn ends_always_have_room() {
    let mut world = fresh(WIDE.sizes, 5, 6);
    world.plan.output_index = world.consumed.wrapping_add(180);
    world.slots[0] = running(1);
    let memory = &mut Memory::new(&world);
    let mut step = |world: &mut World| {
        memory.store(world);
        memory.run();
        look(world, Fault::None, &mut Seen::default());
        memory.compare(world).unwrap_or_else(|text| panic!("{text}"));
        world.plan.output_index.wrapping_sub(world.consumed)
    };
    let waiting = (0..90).map(|_| step(&mut world)).last();
    assert_eq!(waiting, Some(256 - 64), "tokens stop where only the ends have room");
    for slot in 0..SLOTS_MAX {
        let serial = slot as u32 + 1;
        if slot > 0 {
            world.slots[slot] = running(serial);
        }
        world.control[slot].cancel_serial = serial;
    }
    assert_eq!(step(&mut world), 256);
}

/// The first difference that a fault causes in the workloads that are right without it.
fn first_difference(change: Option<[u32; 2]>, fault: Fault) -> String {
    let workloads = (1..4).flat_map(|seed| [narrow(seed), small(seed)]);
    let mut differences =
        workloads.filter_map(|workload| run(&workload, change, fault, &mut Seen::default()).err());
    differences.next().unwrap_or_else(|| panic!("no difference: {change:x?} {fault:?}"))
}

/// Every mistake of the model is a difference, and it is found where the mistake is.
#[test]
fn faults_of_the_model_are_seen() {
    for (fault, place) in [
        (Fault::NoTrailer, "output entry"),
        (Fault::NoReserve, "plan state"),
        (Fault::ForeignGrant, "slot"),
        (Fault::CancelKeepsOutput, "plan state"),
        (Fault::TopsForAll, "output entry"),
    ] {
        let difference = first_difference(None, fault);
        assert!(difference.contains(place), "{fault:?}: {difference}");
    }
}

/// The same in the kernel, one instruction changed.
#[test]
fn faults_of_the_kernel_are_seen() {
    for (change, place) in [
        // v_not_b32 v19, v12 becomes v_mov_b32: no trailer.
        ([0x7E26_6F0C, 0x7E26_030C], "output entry"),
        // s_add_co_u32 s45, s45, 64 adds 0: no entries are kept for the ends.
        ([0x802D_C02D, 0x802D_802D], "plan state"),
        // v_cmpx_eq_u32 v52, v37 becomes v_cmpx_eq_u32 v37, v37: a grant counts whosever it is.
        ([0x7D94_4B34, 0x7D94_4B25], "slot"),
    ] {
        let difference = first_difference(Some(change), Fault::None);
        assert!(difference.contains(place), "{change:x?}: {difference}");
    }
}

/// A world that waits for work, with `count` meaningless commands in the ring and room for more.
fn waiting(count: u32) -> World {
    let mut world = fresh(Sizes { waits: true, ..WIDE.sizes }, 0, 1);
    for number in 0..count {
        put_command(&mut world, number, [99, 0, 0, 0]);
    }
    world
}

/// Entry number `number` of the input ring: kind and slot, serial, known, limit.
fn put_command(world: &mut World, number: u32, fields: [u32; 4]) {
    let entry = &mut world.input[number as usize];
    *entry = [0; 16];
    entry[0] = number + 1;
    entry[1..5].copy_from_slice(&fields);
    entry[15] = !entry[0];
}

/// Lets the kernel and the model run to their ends.
fn check_waiting(mut world: World) -> World {
    let mut memory = Memory::new(&world);
    memory.run();
    while !look(&mut world, Fault::None, &mut Seen::default()) {}
    memory.compare(&world).unwrap_or_else(|text| panic!("{text}"));
    world
}

/// A prompt of three tokens for slot 5, and its page.
fn put_prompt(world: &mut World) {
    let first = 5 * world.sizes.context as usize;
    world.tokens[first..first + 3].copy_from_slice(&[31, 32, 33]);
    world.host_pages[5 * world.sizes.pages_per_slot as usize] = 77;
    (world.control[5].granted_serial, world.control[5].granted_pages) = (9, 1);
}

const ADMIT_5: [u32; 4] = [CommandKind::Admit as u32 | 5 << 8, 9, 3, 10];

/// The ninth command is for the second look, which PLAN makes by itself.
#[test]
fn waiting_ends_with_work_or_a_command() {
    for (count, looks) in [(0, 1), (7, 1), (8, 2), (17, 3)] {
        let mut world = waiting(count);
        put_command(&mut world, count, [CommandKind::Stop as u32, 0, 0, 0]);
        let world = check_waiting(world);
        assert_eq!((world.plan.heartbeat, world.plan.epoch, world.step.flags), (looks, 0, 1));

        let mut world = waiting(count);
        put_command(&mut world, count, [CommandKind::Drain as u32, 0, 0, 0]);
        assert_eq!(check_waiting(world).step.flags, 1);

        let mut world = waiting(count);
        put_prompt(&mut world);
        put_command(&mut world, count, ADMIT_5);
        let world = check_waiting(world);
        assert_eq!((world.plan.heartbeat, world.plan.epoch, world.step.rows), (looks, 1, 3));
    }
}

/// PLAN waits in `before`. After `passes` of its pauses the host stores what it writes in `after`: the first dword of
/// the input ring, which makes the command count, `gap` pauses after the rest.
fn check_beside(before: &World, mut after: World, passes: u32, gap: u32) {
    let mut memory = Memory::new(before);
    let block = memory.block;
    let mut passed = 0;
    memory.device.run_beside("plan", block.as_bytes(), 3, &mut |device| {
        passed += 1;
        if passed == passes {
            device.store(block.tokens_va, after.tokens.as_bytes());
            device.store(block.host_pages_va, after.host_pages.as_bytes());
            device.store(block.control_va, after.control.as_bytes());
            device.store(block.input_va + 4, &after.input.as_bytes()[4..]);
        }
        if passed == passes + gap {
            device.store(block.input_va, &after.input.as_bytes()[..4]);
        }
    });
    let heartbeat = memory.device.read::<Status>(block.status_va).heartbeat;
    // Looks that find nothing, each of which begins one slot further.
    after.plan.heartbeat = heartbeat - 1;
    after.plan.first_slot = (heartbeat - 1) % SLOTS_MAX as u32;
    assert!(look(&mut after, Fault::None, &mut Seen::default()));
    memory.compare(&after).unwrap_or_else(|text| panic!("{passes} pauses, {gap} more: {text}"));
}

/// A host that writes while PLAN waits: prompt, grant, body of the entry, and its header last.
#[test]
fn waiting_sees_what_the_host_writes() {
    let before = waiting(0);
    let mut after = before.clone();
    put_prompt(&mut after);
    put_command(&mut after, 0, ADMIT_5);
    for passes in 1..60 {
        check_beside(&before, after.clone(), passes, passes % 3);
    }
}

/// The host holds a request, admits it, and later stops the device. Whenever PLAN looks, the request gets no row, even
/// if the flag came after the look had begun.
#[test]
fn a_request_that_is_admitted_held_gets_no_row() {
    for passes in 1..60 {
        let mut world = waiting(0);
        let mut memory = Memory::new(&world);
        put_prompt(&mut world);
        world.control[5].hold_serial = 9;
        put_command(&mut world, 0, ADMIT_5);
        put_command(&mut world, 1, [CommandKind::Stop as u32, 0, 0, 0]);
        let (block, mut passed) = (memory.block, 0);
        memory.device.run_beside("plan", block.as_bytes(), 3, &mut |device| {
            passed += 1;
            if passed == passes {
                device.store(block.tokens_va, world.tokens.as_bytes());
                device.store(block.host_pages_va, world.host_pages.as_bytes());
                device.store(block.control_va, world.control.as_bytes());
                device.store(block.input_va, world.input[..1].as_bytes());
            }
            if passed == passes + 40 {
                device.store(block.input_va, world.input.as_bytes());
            }
        });
        let heartbeat = memory.device.read::<Status>(block.status_va).heartbeat;
        world.plan.heartbeat = heartbeat - 1;
        world.plan.first_slot = (heartbeat - 1) % SLOTS_MAX as u32;
        assert!(look(&mut world, Fault::None, &mut Seen::default()));
        assert_eq!((world.step.rows, world.slots[5].serial), (0, 9));
        memory.compare(&world).unwrap_or_else(|text| panic!("{passes} pauses: {text}"));
    }
}

/// A request that is resumed from its start has new pages, under the serial that had the old ones: whenever PLAN looks,
/// none of the old pages is accepted again.
#[test]
fn old_pages_are_not_granted_again() {
    let mut before = waiting(0);
    let slot = &mut before.slots[5];
    (slot.phase, slot.serial, slot.known, slot.limit) = (SlotPhase::Parked as u32, 9, 40, 60);
    (slot.position, slot.pages) = (39, 6);
    (before.control[5].granted_serial, before.control[5].granted_pages) = (9, 6);
    let mut after = before.clone();
    put_prompt(&mut after);
    put_command(&mut after, 0, [CommandKind::Resume as u32 | 5 << 8, 9, 0, 0]);
    for passes in 1..60 {
        check_beside(&before, after.clone(), passes, 0);
    }
}
