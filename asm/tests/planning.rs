//! PLAN and BOUNDARY on the virtual device's shader engine against a separate model of the slot state machine.
//!
//! A random host and a random sampler drive PLAN look by look; after each look all memory that it may write is compared.

#[path = "planning/host.rs"]
mod host;
#[path = "planning/model.rs"]
mod model;
mod support;

use host::{Habits, Host};
use model::{Entry, Fault, Seen, Sizes, World, look};
use support::harness::Device;
use support::weights::Random;
use zerocopy::{FromBytes, Immutable, IntoBytes};
use zrt_asm::params::{self, RowSet};
use zrt_asm::session::{
    CommandKind, Control, PlanState, ROWS_MAX, Row, SLOTS_MAX, SlotPhase, SlotState, Status, Step,
};

/// What fresh memory of a ring holds: no tag that a test meets.
const GARBAGE: u32 = 0x5EED_0BAD;

/// The memory of a world in a device.
struct Memory {
    device: Device,
    block: params::Plan,
    /// The tag words of the kernel that are changed, if any.
    change: Option<[u32; 2]>,
    groups: u32,
}

impl Memory {
    fn new(world: &World, waits: u32) -> Memory {
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
            waits,
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
        self.same("status", block.status_va, std::slice::from_ref(&world.status))?;
        self.same("page", block.pages_va, &world.pages)?;
        self.same("token", block.tokens_va, &world.tokens)?;
        let (step_va, step) = (block.header.step_va, &world.step);
        self.same("step, dword", step_va, &<[u32; 64]>::read_from_bytes(&step.as_bytes()[..256]).unwrap())?;
        self.same("row", step_va + 256, &step.row)?;
        self.same("output", step_va + 256 + size_of_val(&step.row) as u64, &step.output)?;
        // What only the host writes.
        self.same("control", block.control_va, &world.control)?;
        self.same("host page", block.host_pages_va, &world.host_pages)?;
        self.same("input entry", block.input_va, &world.input)?;
        self.same("stop tokens", block.stops_va, &world.stops)?;
        self.same("taken", block.consumed_va, &[world.consumed])
    }

    fn same<T>(&self, what: &str, va: u64, expected: &[T]) -> Result<(), String>
    where
        T: FromBytes + IntoBytes + Immutable + PartialEq + std::fmt::Debug,
    {
        let bytes = self.device.bytes_at(va, size_of_val(expected));
        for (number, (found, expected)) in bytes.chunks(size_of::<T>()).zip(expected).enumerate() {
            let found = T::read_from_bytes(found).unwrap();
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
    sizes: Sizes { context: 96, pages_per_slot: 6, input_entries: 64, output_entries: 256, chunk_rows: 128 },
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

/// Runs it; gives the first difference, and at which look.
fn run(workload: &Workload, change: Option<[u32; 2]>, fault: Fault, seen: &mut Seen) -> Result<(), String> {
    let mut world = fresh(workload.sizes, workload.turns, workload.tag);
    let mut memory = Memory::new(&world, 0);
    (memory.change, memory.groups) = (change, workload.groups);
    let mut host = Host::new(workload.seed, workload.habits, &world);
    for number in 0..workload.looks {
        host.act(&mut world, seen);
        host.sample(&mut world);
        memory.store(&world);
        memory.run();
        look(&mut world, fault, seen);
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
    narrow.sizes.output_entries = 16;
    narrow.sizes.input_entries = 16;
    narrow.habits = Habits { slots: 9, takes_percent: 25, whim_percent: 6, ..WIDE.habits };
    narrow
}

#[test]
fn random_hosts_see_what_the_model_says() {
    let mut seen = Seen::default();
    for seed in 1..4 {
        seen.add(&check(Workload { seed, ..WIDE }));
        seen.add(&check(narrow(seed)));
        // Small chunks; pages are the rule's limit.
        let mut small = Workload { seed: seed + 10, groups: 3, ..WIDE };
        (small.sizes.chunk_rows, small.habits.slots, small.habits.long_percent) = (11, 20, 80);
        (small.habits.stops, small.habits.drains_at) = (1, 1000);
        seen.add(&check(small));
    }
    assert_met(
        &seen,
        &[
            "admitted",
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
        ],
    );
}
