//! The options of a session.

use super::error::SessionError;
use crate::activations::Activations;
use crate::executor::lowering::task_count;
use crate::executor::upload::THREADS_MAX;
use crate::executor_error::ExecutorError;
use crate::kv_format::KvFormat;
use crate::memory_plan::{Capacity, MemoryPlan};
use crate::model::Model;
use crate::placement::Placement;
use crate::plan::ExecutionPlan;
use std::time::Duration;
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::{PAGE_TOKENS, ROWS_MAX, SLOTS_MAX};

/// Most prompt rows of a step. Slots that generate come first, so a step of theirs has fewer.
pub const CHUNK_ROWS_MAX: u32 = ROWS_MAX as u32;

/// Minimum number of entries of the output ring: PLAN keeps one for the end of every slot's request.
const OUTPUT_ENTRIES_MIN: u32 = 2 * SLOTS_MAX as u32;
/// Maximum number of requests that may wait: each poll reads a record of each.
const WAITING_MAX: u32 = 1 << 16;
/// Maximum number of ended requests that are kept: each admission looks at each.
const KEPT_MAX: u32 = 1 << 12;
/// Maximum number of tokens that all records together have room for: 1 GiB of host memory.
const RECORD_TOKENS_MAX: u64 = 1 << 28;
// PLAN computes the place of a slot's tokens in 32 bits.
const _: () = assert!(RECORD_TOKENS_MAX <= u32::MAX as u64);

/// What runs the tasks of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The command processor, one submission for each task.
    Dispatch,
    /// The command processor, one recorded indirect buffer for each step.
    Graph,
    /// The megakernel: one submission for each session.
    #[default]
    Mega,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 3] = [Mode::Dispatch, Mode::Graph, Mode::Mega];

    /// Its name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Dispatch => "dispatch",
            Mode::Graph => "graph",
            Mode::Mega => "mega",
        }
    }

    /// The mode with a name.
    pub fn parse(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Sizes and choices of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// What runs steps.
    pub mode: Mode,
    /// Requests that run at once, 1..=64.
    pub slots: u32,
    /// Requests that may wait for a slot, at most 2^16. Each of them, like each slot, has a record with room for a
    /// whole context; all records together have room for at most 2^28 tokens.
    pub waiting_max: u32,
    /// Ended requests that are kept with their keys and values, at most 4096. A request whose tokens begin like those
    /// of a kept one, for at least half of what is kept, takes its place, and the positions that they have in common
    /// are not computed again; no token depends on it. The pages of kept requests go to whoever needs them. Records are
    /// as for waiting requests.
    pub kept: u32,
    /// Maximum number of tokens of a sequence, prompt included: from 2 to the model's own context.
    pub context: u32,
    /// Pages of the key-value cache; `None`: enough for every slot's whole context.
    pub pages: Option<u32>,
    /// Maximum number of prompt rows of a step, 1 to 512; a step has at most 512 rows. With more of them weights are
    /// read less often, but a step takes longer, and requests that generate wait for it.
    pub chunk_rows: u32,
    /// How keys and values are stored.
    pub kv_format: KvFormat,
    /// How matmuls take their activations. In [`Activations::F16`] tokens may depend on what else runs: on
    /// `chunk_rows`, on other requests in a step, on what was kept, on parking and resubmitting. In other modes they do
    /// not.
    pub activations: Activations,
    /// Workgroups of the megakernel, and the maximum of each dispatch; `None`: as many of the megakernel as should be
    /// resident at once, and one for each compute unit in a dispatch. Those of the megakernel that are not resident
    /// when it starts take no part. As many as should be resident take all registers of the chip, so nothing else runs
    /// beside them; one for each compute unit leaves half of it to a display or another device of the process.
    pub groups: Option<u32>,
    /// Entries of the input ring, a power of two.
    pub input_entries: u32,
    /// Entries of the output ring, a power of two, at least 128: PLAN keeps one for the end of every slot's request.
    pub output_entries: u32,
    /// Where the output ring lies: [`Heap::Host`], or [`Heap::HostShared`] for VRAM.
    pub output_heap: Heap,
    /// How long the megakernel may take to begin, and how long a session may make no progress while requests run before
    /// it counts as hung. A hang is reported within twice that time.
    pub hang_after: Duration,
    /// Shuffles the pages of the cache with this seed; no result depends on it.
    pub page_order_seed: Option<u64>,
    /// VRAM that the session may take, code and tape (below 1 MiB) not counted: matrices that do not fit lie in host
    /// memory, and kernels read them over the bus. `None`: everything lies in VRAM.
    pub vram_max: Option<ByteLen>,
    /// Threads that load weights, 1 to 64; `None` suits the host.
    pub load_threads: Option<usize>,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            mode: Mode::default(),
            slots: SLOTS_MAX as u32,
            waiting_max: SLOTS_MAX as u32,
            kept: 0,
            context: 2048,
            pages: None,
            chunk_rows: (ROWS_MAX - SLOTS_MAX) as u32,
            kv_format: KvFormat::F32,
            activations: Activations::default(),
            groups: None,
            input_entries: 256,
            output_entries: 512,
            output_heap: Heap::Host,
            // Generous: the virtual device shares the host's cores.
            hang_after: Duration::from_secs(30),
            page_order_seed: None,
            vram_max: None,
            load_threads: None,
        }
    }
}

impl SessionOptions {
    /// The steps of a session with this model, and what it needs memory for.
    ///
    /// # Errors
    /// [`SessionError::VramLimit`] if [`vram_max`](SessionOptions::vram_max) is too little for what must lie in VRAM.
    pub fn plan(&self, model: &Model) -> Result<(ExecutionPlan, Capacity), SessionError> {
        let (plan, capacity) = self.unplaced(model)?;
        let (slots, context) = (self.slots, self.context);
        let placed = capacity.within(self.vram_max, model, &plan);
        let capacity = placed.map_err(|error| match error {
            ExecutorError::VramLimit { limit, whole, least } => {
                let instead = self.instead(model, limit);
                SessionError::VramLimit { slots, context, whole, least, limit, instead }
            }
            error => error.into(),
        })?;
        Ok((plan, capacity))
    }

    /// The same with all weights in VRAM, whatever the limit is.
    pub(super) fn unplaced(&self, model: &Model) -> Result<(ExecutionPlan, Capacity), SessionError> {
        self.check()?;
        let (context, trained) = (self.context, model.config.context);
        if context > trained {
            return Err(SessionError::ModelContext { context, trained });
        }
        // No step has more rows than its slots have positions.
        let rows =
            (self.slots + self.chunk_rows).min(ROWS_MAX as u32).min(self.slots.saturating_mul(context));
        let plan =
            ExecutionPlan::step(model, context, rows, self.activations).map_err(ExecutorError::from)?;
        let capacity = Capacity {
            slots: self.slots,
            pages: self.pages.unwrap_or(self.slots * context.div_ceil(PAGE_TOKENS)),
            kv_format: self.kv_format,
            tasks: task_count(&plan),
            input_entries: self.input_entries,
            output_entries: self.output_entries,
            output_heap: self.output_heap,
            placement: Placement::default(),
        };
        Ok((plan, capacity))
    }

    /// Everything that a session with this model allocates, to the byte.
    pub fn memory(&self, model: &Model) -> Result<MemoryPlan, SessionError> {
        let (plan, capacity) = self.plan(model)?;
        Ok(MemoryPlan::new(model, &plan, &capacity)?)
    }

    /// Checks every range and product that needs no model.
    pub fn check(&self) -> Result<(), SessionError> {
        let options = self;
        let check = |what, value: u64, is_right: bool, range| match is_right {
            true => Ok(()),
            false => Err(SessionError::Option { what, value, range }),
        };
        let (slots, output) = (options.slots, options.output_entries);
        check("slots", slots.into(), (1..=SLOTS_MAX as u32).contains(&slots), "1 to 64")?;
        let waiting = options.waiting_max;
        check("waiting requests", waiting.into(), waiting <= WAITING_MAX, "at most 65536")?;
        check("context", options.context.into(), options.context >= 2, "at least 2")?;
        let threads = options.load_threads.unwrap_or(1);
        let is_right = (1..=THREADS_MAX).contains(&threads);
        check("threads that load", threads as u64, is_right, "1 to 64")?;
        check("kept requests", options.kept.into(), options.kept <= KEPT_MAX, "at most 4096")?;
        let record_tokens = u64::from(slots + waiting + options.kept) * u64::from(options.context);
        let is_held = record_tokens <= RECORD_TOKENS_MAX;
        check(
            "(slots + waiting requests + kept requests) × context",
            record_tokens,
            is_held,
            "at most 268435456",
        )?;
        check(
            "chunk rows",
            options.chunk_rows.into(),
            (1..=CHUNK_ROWS_MAX).contains(&options.chunk_rows),
            "1 to 512",
        )?;
        let is_ring = |entries: u32| entries.is_power_of_two() && (2..=4096).contains(&entries);
        let input = options.input_entries;
        check("input entries", input.into(), is_ring(input), "a power of two from 2 to 4096")?;
        let is_output = is_ring(output) && output >= OUTPUT_ENTRIES_MIN;
        check("output entries", output.into(), is_output, "a power of two from 128 to 4096")?;
        let pages = options.pages.unwrap_or(1);
        check("pages", pages.into(), pages >= 1, "at least 1")?;
        let is_mapped = options.output_heap != Heap::DeviceLocal;
        check("output ring", 0, is_mapped, "in memory that the host reads")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named_both_ways() {
        assert_eq!(Mode::ALL.map(Mode::name), ["dispatch", "graph", "mega"]);
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.name()), Some(mode));
        }
        assert_eq!(["", "Mega", "graphs"].map(Mode::parse), [None; 3]);
    }

    /// Both edges of each range are accepted, and what lies beyond is refused.
    #[test]
    fn options_are_checked_to_the_edge_of_each_range() {
        type Set = fn(&mut SessionOptions, u32);
        let short = || SessionOptions { context: 2, slots: 1, waiting_max: 0, ..SessionOptions::default() };
        let numbers: [(Set, u32, u32, &str, &str); 8] = [
            (|options, value| options.slots = value, 1, 64, "slots", "1 to 64"),
            (|options, value| options.waiting_max = value, 0, 65536, "waiting requests", "at most 65536"),
            (|options, value| options.kept = value, 0, 4096, "kept requests", "at most 4096"),
            (|options, value| options.chunk_rows = value, 1, 512, "chunk rows", "1 to 512"),
            (
                |options, value| options.input_entries = value,
                2,
                4096,
                "input entries",
                "a power of two from 2 to 4096",
            ),
            (
                |options, value| options.output_entries = value,
                128,
                4096,
                "output entries",
                "a power of two from 128 to 4096",
            ),
            (
                |options, value| options.load_threads = Some(value as usize),
                1,
                64,
                "threads that load",
                "1 to 64",
            ),
            (|options, value| options.pages = Some(value), 1, u32::MAX, "pages", "at least 1"),
        ];
        for (set, least, most, what, range) in numbers {
            let said = |value| {
                let mut options = short();
                set(&mut options, value);
                options.check().err().map(|error| error.to_string())
            };
            for value in [least, most] {
                assert_eq!(said(value), None, "{what} {value}");
            }
            for value in [least.checked_sub(1), most.checked_add(1)].into_iter().flatten() {
                assert_eq!(said(value), Some(format!("{what} is {value}, and must be {range}")));
            }
        }
        // No powers of two, too large, and too few for the end of every slot's request.
        for (ring, values) in [(&numbers[4], &[3, 192, 8192][..]), (&numbers[5], &[64, 192, 8192])] {
            let (set, _, _, what, range) = ring;
            for value in values {
                let mut options = short();
                set(&mut options, *value);
                let text = options.check().unwrap_err().to_string();
                assert_eq!(text, format!("{what} is {value}, and must be {range}"));
            }
        }
        let heap = SessionOptions { output_heap: Heap::DeviceLocal, ..short() };
        let text = heap.check().unwrap_err().to_string();
        assert_eq!(text, "output ring is 0, and must be in memory that the host reads");
    }

    /// Records have room for 2^28 tokens in all: 2^20 contexts of 256.
    #[test]
    fn all_records_together_have_their_limit() {
        let said = |slots, waiting_max, kept, context| {
            let options = SessionOptions { slots, waiting_max, kept, context, ..SessionOptions::default() };
            options.check().err().map(|error| error.to_string())
        };
        for context in [0, 1] {
            let text = format!("context is {context}, and must be at least 2");
            assert_eq!(said(1, 0, 0, context), Some(text));
        }
        assert_eq!(said(1, 0, 0, 2), None);
        assert_eq!(said(16, 32, 16, 1 << 22), None);
        assert_eq!(said(1, 0, 0, 1 << 28), None);
        for (slots, waiting_max, kept, context, tokens) in [
            (17, 32, 16, 1 << 22, 65u64 << 22),
            (16, 33, 16, 1 << 22, 65 << 22),
            (16, 32, 17, 1 << 22, 65 << 22),
            (1, 0, 0, (1 << 28) + 1, (1 << 28) + 1),
            (64, 65536, 4096, u32::MAX, 69696 * u64::from(u32::MAX)),
        ] {
            let text = format!(
                "(slots + waiting requests + kept requests) × context is {tokens}, and must be at most 268435456"
            );
            assert_eq!(said(slots, waiting_max, kept, context), Some(text));
        }
    }
}
