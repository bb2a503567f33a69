//! `zrt-bench` of sessions: many requests at once, in the three ways that a session runs its steps.
//!
//! Contract: every run opens a device and a session of its own; the clock runs from the first request's submission to
//! the last event. Counts are the device's own, from the opened session to the one that has left, so the megakernel's
//! only submission, which opening makes, is not in them. A speed measured on the virtual device is that of this host's
//! processor and is never shown as the card's.

use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::memory_option::MemoryOption;
use crate::open_device::{OpenedDevice, open_device};
use crate::progress::{Progress, Unit};
use crate::session::Evidence;
use crate::table::{Alignment, Table};
use crate::workload::{Sequence, Workload};
use crate::{timestamp, units};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};
use zrt_bringup::DeviceChoice;
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::step_weight_bytes_of;
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Event, Mode, Request, Session, SessionError, SessionOptions};

/// Scale of lengths on the virtual device.
pub const VIRTUAL_SCALE: f64 = 0.0625;
/// Scale of lengths on the virtual device if the overview also runs 8 and 64 slots.
const VIRTUAL_OVERVIEW_SCALE: f64 = 0.03125;
/// Slots of the overview's runs that are compared with one slot.
const OVERVIEW_SLOTS: [u32; 2] = [8, 64];
/// Workgroups on the virtual device: more only make its few host threads change between them more often.
pub const VIRTUAL_GROUPS: u32 = 16;
/// Wave instructions of one unsuccessful poll: the loops of `mega.s`, counted. `POLL`, which waits for a task, has 9;
/// the one that waits for the step's number has 13. Only the group's first wave polls; the others wait in a barrier.
const LOOK_INSTRUCTIONS: [u64; 2] = [9, 13];
/// How often the host polls for events of the virtual device, which needs the host's processor itself.
const VIRTUAL_POLL_EVERY: Duration = Duration::from_micros(100);
/// How long a session may take to leave.
pub const CLOSE_DEADLINE: Duration = Duration::from_secs(60);
/// How long the megakernel may take until it first looks for work.
pub const START_DEADLINE: Duration = Duration::from_secs(30);

/// What is the same in all runs of a command.
#[derive(Clone, Debug)]
pub struct Choices {
    /// Device.
    pub device: DeviceChoice,
    /// The requested workload.
    pub workload: Workload,
    /// Factor of the lengths; `None`: 1 on a card, less on the virtual device.
    pub scale: Option<f64>,
    /// Format of keys and values.
    pub kv_format: KvFormat,
    /// Arithmetic of activations.
    pub activations: Activations,
    /// Workgroups; `None`: as a session has them, on the virtual device fewer.
    pub groups: Option<u32>,
    /// Maximum number of prompt rows of a step; `None`: the session's default.
    pub chunk_rows: Option<u32>,
    /// Where weights lie.
    pub memory: MemoryOption,
}

/// One run: a mode and a number of slots.
pub type Run = (Mode, u32);

/// The result of one run.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // The first block is llama-bench's, by its names.
pub struct SessionRecord {
    pub build_commit: &'static str,
    pub model_filename: String,
    pub model_type: String,
    pub model_size: u64,
    pub model_n_params: u64,
    pub type_k: &'static str,
    pub type_v: &'static str,
    pub activations: &'static str,
    pub test_time: String,
    /// Time from the first request's submission to the last event.
    pub avg_ns: u64,
    /// Generated tokens of all requests together, per second.
    pub avg_ts: f64,
    /// Ours from here on: the version of zrt.
    pub zrt_version: &'static str,
    /// The device's name.
    pub device: String,
    /// True if a simulated card ran it.
    pub is_virtual: bool,
    /// What runs the tasks of a step.
    pub mode: &'static str,
    /// Requests that run at once.
    pub slots: u32,
    /// Workgroups.
    pub groups: u32,
    /// Maximum number of prompt rows of a step.
    pub chunk_rows: u32,
    /// What was asked for.
    pub workload: &'static str,
    /// Factor of the workload's lengths.
    pub scale: f64,
    /// Requests.
    pub requests: u64,
    /// Tokens of all prompts.
    pub prompt_tokens: u64,
    /// Generated tokens of all requests: what to divide the counts by.
    pub tokens: u64,
    /// Steps: with `dispatch` and `graph` some of them had no row.
    pub steps: u64,
    /// Submission to first token, of all requests; half of them took at most this.
    pub first_token_p50_ns: u64,
    /// The same; 95 of 100 took at most this.
    pub first_token_p95_ns: u64,
    /// From token to token of a request; half of them took at most this.
    pub inter_token_p50_ns: u64,
    /// The same; 95 of 100 took at most this.
    pub inter_token_p95_ns: u64,
    /// Submissions.
    pub submissions: u64,
    /// PM4 packets.
    pub packets: u64,
    /// Doorbell rings.
    pub doorbells: u64,
    /// Bytes of weights that a step reads, by the plan, however many rows it has. Calculated, not measured.
    pub step_weight_bytes: u64,
    /// What of it is read from host memory, over the bus.
    pub step_host_weight_bytes: u64,
    /// `step_weight_bytes` × `steps` / `tokens`.
    pub weight_bytes_per_token: u64,
    /// Wave instructions, if the device counts them (the virtual one).
    pub wave_instructions: Option<u64>,
    /// Unsuccessful polls of the megakernel's workgroups, each up to the end of its last step.
    pub spins: u64,
    /// `spins` × 13 / `wave_instructions`: the longer of the two waiting loops for every poll, so an upper bound.
    pub spin_share_max: Option<f64>,
    /// `spins` × 9 / `wave_instructions`: the shorter loop for every poll.
    pub spin_share_min: Option<f64>,
}

/// Runs of the given modes and slots. Without modes: all three for one slot, the megakernel alone for more.
pub fn runs(modes: &[Mode], slots: &[u32]) -> Vec<Run> {
    let slots = if slots.is_empty() { &[1] } else { slots };
    let of = |slots: u32| -> &[Mode] {
        match slots {
            _ if !modes.is_empty() => modes,
            1 => &Mode::ALL,
            _ => &[Mode::Mega],
        }
    };
    slots.iter().flat_map(|slots| of(*slots).iter().map(|mode| (*mode, *slots))).collect()
}

/// The runs of a command without options: all modes with one slot, then more slots in the megakernel.
pub fn overview(
    loaded: &LoadedModel,
    device: DeviceChoice,
    activations: Activations,
    is_virtual: bool,
    memory: MemoryOption,
) -> Result<Vec<SessionRecord>, ToolError> {
    let choices = Choices {
        device,
        workload: Workload::W1,
        scale: is_virtual.then_some(VIRTUAL_OVERVIEW_SCALE),
        kv_format: KvFormat::default(),
        activations,
        groups: None,
        chunk_rows: None,
        memory,
    };
    let all: Vec<Run> = runs(&[], &[1, OVERVIEW_SLOTS[0], OVERVIEW_SLOTS[1]]);
    run_all(loaded, &choices, &all)
}

/// Makes the runs one after another.
pub fn run_all(
    loaded: &LoadedModel,
    choices: &Choices,
    runs: &[Run],
) -> Result<Vec<SessionRecord>, ToolError> {
    if choices.device == DeviceChoice::Cpu {
        let what = "a session needs a device; --device cpu has none: use virtual or kfd".to_owned();
        return Err(ToolError::BadInput { what });
    }
    let mut choices = choices.clone();
    let mut records = Vec::with_capacity(runs.len());
    for (mode, slots) in runs {
        let opened = open_device(choices.device)?;
        if opened.is_virtual {
            // `auto` has found no card: it is not looked for again.
            choices.device = DeviceChoice::Virtual;
        }
        records.push(run(loaded, &choices, opened, *mode, *slots)?);
    }
    Ok(records)
}

fn run(
    loaded: &LoadedModel,
    choices: &Choices,
    opened: OpenedDevice,
    mode: Mode,
    slots: u32,
) -> Result<SessionRecord, ToolError> {
    let OpenedDevice { device, name, is_virtual } = opened;
    let scale = choices.scale.unwrap_or(if is_virtual { VIRTUAL_SCALE } else { 1.0 });
    let requests = choices.workload.requests(slots, scale, loaded.model.config.vocabulary);
    let defaults = SessionOptions::default();
    let options = SessionOptions {
        mode,
        slots,
        waiting_max: requests.len() as u32,
        context: context(loaded, &requests)?,
        chunk_rows: choices.chunk_rows.unwrap_or(defaults.chunk_rows),
        kv_format: choices.kv_format,
        activations: choices.activations,
        groups: choices.groups.or(is_virtual.then_some(VIRTUAL_GROUPS)),
        ..defaults
    };
    let options = choices.memory.of_session(&device, options)?;
    let mut session = {
        let progress = Progress::new("uploading weights", loaded.model.weight_bytes(), Unit::Bytes);
        Session::open(device, &loaded.model, &options, &mut |done, total| progress.set_of(done, total))?
    };
    match mode {
        // Its own submission is not counted.
        Mode::Mega => await_start(|| Ok(session.status()?.heartbeat), START_DEADLINE)?,
        Mode::Dispatch | Mode::Graph => {}
    }
    let units = session.resident().device.info().compute_units;
    // The host's submissions have at most one for each compute unit if nothing was asked for.
    let groups = session.groups().or(options.groups).unwrap_or(units);
    let placement = session.resident().capacity.placement;

    let test_time = timestamp::now();
    let before = session.resident().device.counters().map_err(SessionError::from)?;
    let times = measure(&mut session, &requests, is_virtual)?;
    let steps = u64::from(session.status()?.epoch);
    let spins = session.spins()?;
    let device = session.close(CLOSE_DEADLINE).map_err(SessionError::from)?;
    let after = device.counters().map_err(SessionError::from)?;
    let evidence = Evidence::of(&name, Some(after)).since(&Evidence::of(&name, Some(before)));

    let tokens: u64 = requests.iter().map(|one| u64::from(one.tokens_max)).sum();
    let spin_share = |look: u64| {
        let waves = evidence.wave_instructions.filter(|_| mode == Mode::Mega)?;
        Some((spins * look) as f64 / waves.max(1) as f64)
    };
    let weights = step_weight_bytes_of(&loaded.model, &placement);
    let step_weight_bytes = weights.total();
    Ok(SessionRecord {
        build_commit: env!("ZRT_BUILD_COMMIT"),
        model_filename: loaded.filename.clone(),
        model_type: loaded.description(),
        model_size: loaded.model.weight_bytes(),
        model_n_params: loaded.model.parameter_count(),
        type_k: choices.kv_format.name(),
        type_v: choices.kv_format.name(),
        activations: choices.activations.name(),
        test_time,
        avg_ns: nanoseconds(times.elapsed),
        avg_ts: tokens as f64 / times.elapsed.as_secs_f64(),
        zrt_version: env!("CARGO_PKG_VERSION"),
        device: name,
        is_virtual,
        mode: mode.name(),
        slots,
        groups,
        chunk_rows: options.chunk_rows,
        workload: choices.workload.name(),
        scale,
        requests: requests.len() as u64,
        prompt_tokens: requests.iter().map(|one| one.prompt.len() as u64).sum(),
        tokens,
        steps,
        first_token_p50_ns: percentile(&times.first_token, 50),
        first_token_p95_ns: percentile(&times.first_token, 95),
        inter_token_p50_ns: percentile(&times.inter_token, 50),
        inter_token_p95_ns: percentile(&times.inter_token, 95),
        submissions: evidence.submissions,
        packets: evidence.packets,
        doorbells: evidence.doorbells,
        step_weight_bytes,
        step_host_weight_bytes: weights.host,
        weight_bytes_per_token: step_weight_bytes * steps / tokens.max(1),
        wave_instructions: evidence.wave_instructions,
        spins,
        spin_share_max: spin_share(LOOK_INSTRUCTIONS[1]),
        spin_share_min: spin_share(LOOK_INSTRUCTIONS[0]),
    })
}

/// Positions that the longest request needs.
fn context(loaded: &LoadedModel, requests: &[Sequence]) -> Result<u32, ToolError> {
    /// A session has at least this many.
    const CONTEXT_MIN: u64 = 2;
    let length = |one: &Sequence| one.prompt.len() as u64 + u64::from(one.tokens_max);
    let needed = requests.iter().map(length).max().unwrap_or(0).max(CONTEXT_MIN);
    let context = loaded.model.config.context;
    if needed > u64::from(context) { Err(ToolError::Context { needed, context }) } else { Ok(needed as u32) }
}

/// Waits until the megakernel looks for work, as its heartbeat says by not being 0, for `at_most`.
pub fn await_start(
    mut heartbeat: impl FnMut() -> Result<u32, ToolError>,
    at_most: Duration,
) -> Result<(), ToolError> {
    let started = Instant::now();
    while heartbeat()? == 0 && started.elapsed() < at_most {
        std::thread::sleep(VIRTUAL_POLL_EVERY);
    }
    Ok(())
}

/// How long the host pauses after a poll that brought so many events: only the virtual device needs its processor.
pub fn pause_after(events: usize, is_virtual: bool) -> Option<Duration> {
    (events == 0 && is_virtual).then_some(VIRTUAL_POLL_EVERY)
}

/// Measured times. The two lists are sorted, in nanoseconds.
struct Times {
    elapsed: Duration,
    first_token: Vec<u64>,
    inter_token: Vec<u64>,
}

/// How long requests, which have names `K`, wait for their tokens.
struct Latencies<K> {
    first_token: Vec<u64>,
    inter_token: Vec<u64>,
    /// When a request was submitted or had its last token; true after the first one.
    last: HashMap<K, (Instant, bool)>,
}

impl<K: Eq + Hash> Latencies<K> {
    /// With room for so many, so that none is made while it measures.
    fn new(requests: usize, tokens: usize) -> Latencies<K> {
        Latencies {
            first_token: Vec::with_capacity(requests),
            inter_token: Vec::with_capacity(tokens),
            last: HashMap::with_capacity(requests),
        }
    }

    fn submitted(&mut self, request: K, now: Instant) {
        self.last.insert(request, (now, false));
    }

    fn token(&mut self, request: K, now: Instant) {
        if let Some((before, has_token)) = self.last.insert(request, (now, true)) {
            let list = if has_token { &mut self.inter_token } else { &mut self.first_token };
            list.push(nanoseconds(now - before));
        }
    }

    /// Tokens so far.
    fn tokens(&self) -> usize {
        self.first_token.len() + self.inter_token.len()
    }

    fn times(mut self, elapsed: Duration) -> Times {
        self.first_token.sort_unstable();
        self.inter_token.sort_unstable();
        Times { elapsed, first_token: self.first_token, inter_token: self.inter_token }
    }
}

fn measure(session: &mut Session, requests: &[Sequence], is_virtual: bool) -> Result<Times, ToolError> {
    let tokens: u64 = requests.iter().map(|one| u64::from(one.tokens_max)).sum();
    let progress = Progress::new("measuring", tokens, Unit::Tokens);
    let mut latencies = Latencies::new(requests.len(), tokens as usize);
    let started = Instant::now();
    for one in requests {
        let sampling = SamplingOptions::default();
        let request = Request { prompt: &one.prompt, tokens_max: one.tokens_max, sampling, stops: &[] };
        latencies.submitted(session.submit(&request)?, Instant::now());
    }
    let mut events = [Event::default(); 64];
    while session.unfinished_count() > 0 {
        let count = session.poll(&mut events)?;
        let now = Instant::now();
        for event in &events[..count] {
            if let Event::Token { handle, .. } = event {
                latencies.token(*handle, now);
            }
        }
        progress.set(latencies.tokens() as u64);
        if let Some(pause) = pause_after(count, is_virtual) {
            std::thread::sleep(pause);
        }
    }
    Ok(latencies.times(started.elapsed()))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The smallest sample that `percent` of 100 do not exceed (nearest rank); 0 of none.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// The table of all runs, with what a reader must know.
pub fn table(records: &[SessionRecord]) -> String {
    use Alignment::{Left, Right};
    let mut table = Table::new(&[
        ("device", Left),
        ("work", Left),
        ("mode", Left),
        ("slots", Right),
        ("groups", Right),
        ("kv", Left),
        ("tokens", Right),
        ("t/s", Right),
        ("first p50/p95 ms", Right),
        ("next p50/p95 ms", Right),
        ("submissions/t", Right),
        ("packets/t", Right),
        ("doorbells/t", Right),
        ("steps", Right),
        ("weights/t", Right),
        ("waves/t", Right),
        ("spin", Right),
    ]);
    for one in records {
        let per_token = |count: u64| format!("{:.2}", count as f64 / one.tokens.max(1) as f64);
        let pair = |low: u64, high: u64| format!("{:.1} / {:.1}", low as f64 / 1e6, high as f64 / 1e6);
        table.row(vec![
            one.device.clone(),
            format!("{} × {}", one.workload, scale_text(one.scale)),
            one.mode.to_owned(),
            one.slots.to_string(),
            one.groups.to_string(),
            one.type_k.to_owned(),
            format!("{} + {}", one.prompt_tokens, one.tokens),
            format!("{:.2}", one.avg_ts),
            pair(one.first_token_p50_ns, one.first_token_p95_ns),
            pair(one.inter_token_p50_ns, one.inter_token_p95_ns),
            per_token(one.submissions),
            per_token(one.packets),
            per_token(one.doorbells),
            one.steps.to_string(),
            units::bytes(one.weight_bytes_per_token),
            one.wave_instructions.map_or_else(|| "-".into(), |waves| units::count(waves / one.tokens.max(1))),
            one.spin_share_max.map_or_else(|| "-".into(), |share| format!("{:.1} %", share * 100.0)),
        ]);
    }
    format!("{table}{}", remarks(records))
}

/// `1/16` for shares of one, else the number.
fn scale_text(scale: f64) -> String {
    let inverse = (1.0 / scale).round();
    if scale < 1.0 && 1.0 / inverse == scale { format!("1/{inverse}") } else { scale.to_string() }
}

fn remarks(records: &[SessionRecord]) -> String {
    let mut text = String::from(
        "\ntokens: of all prompts + generated, of all requests; what is per token (/t) is per generated one.\n\
         mega: its one submission is made when the session opens, before these counts.\n\
         weights/t: calculated, bytes of a step's weights by the plan × steps / tokens; slots add nothing to a step.\n\
         spin: looks in vain × 13 instructions / wave instructions: an upper bound, one waiting loop has 9.\n",
    );
    if records.iter().any(|one| one.is_virtual) {
        text.push_str(
            "virtual: the speed of a simulated card on this machine's processor; it says nothing about a real \
             one. Lengths are scaled as `work` says.\n",
        );
    }
    if records.iter().any(|one| one.workload == Workload::W3.name()) {
        text.push_str("W3: this version computes the shared part of the prompts for each request.\n");
    }
    text
}

#[cfg(test)]
mod tests;
