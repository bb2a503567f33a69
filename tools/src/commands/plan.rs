//! `zrt plan`: what a session would allocate and launch, and what fits a card, without opening a device.
//!
//! Contract: reads the file's header alone, so a download need not be complete. Sizes of model, cache and requests are
//! those of a session, to the byte; the code, the tape and what the driver keeps (queues, saved waves, page tables) are
//! not among them.

use super::{kv_format, write_document, write_text};
use crate::activations_option::ActivationsOption;
use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::prediction::card::{Card, Range};
use crate::table::{Alignment, Table};
use crate::units;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::{Capacity, MemoryPlan, StepWeightBytes, step_weight_bytes_of};
use zrt_engine::model::Model;
use zrt_engine::placement::Placement;
use zrt_engine::plan::ExecutionPlan;
use zrt_engine::session::{CONTEXT_MIN, SessionError, SessionOptions};
use zrt_mem::{ByteLen, Heap};

/// The memory of an R9700 and of an RX 9070 XT.
const CARDS_BYTES: [u64; 2] = [32 << 30, 16 << 30];

/// Shows what a session allocates and launches, without opening a device
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF) [default: the embedded model]
    #[arg(short, long)]
    pub model: Option<PathBuf>,
    /// Context length in tokens [default: the length that the model was trained for]
    #[arg(short, long)]
    pub context: Option<u32>,
    /// Requests that run at once, 1 to 64
    #[arg(long, default_value_t = 1)]
    pub slots: u32,
    /// Format of keys and values: f32, f16 or q8_0
    #[arg(long, default_value = "f32", value_parser = kv_format)]
    pub kv: KvFormat,
    /// Most VRAM to take, as 16GiB: layers beyond it lie in host memory [default: what cards of 32GiB and 16GiB hold,
    /// and all weights in VRAM]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub vram: Option<u64>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub activations: ActivationsOption,
    /// Write JSON, with every region of every allocation and every instruction
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Plan {
    model_filename: String,
    model_type: String,
    context: u32,
    slots: u32,
    type_kv: &'static str,
    activations: &'static str,
    weight_bytes: u64,
    step_weight_bytes: u64,
    /// What of it is on the card.
    vram_bytes: u64,
    /// The same with all weights on the card.
    vram_bytes_whole: u64,
    fits: Vec<Fit>,
    heaps: Vec<HeapSize>,
    allocations: Vec<AllocationEntry>,
    instructions: Vec<InstructionEntry>,
    barriers: usize,
}

/// What a card holds.
#[derive(Debug, Serialize)]
struct Fit {
    vram_bytes: u64,
    is_enough: bool,
    /// With these slots; `None` if even the shortest does not fit.
    context_max: Option<u32>,
    /// With this context, up to the 64 that a session can have.
    slots_max: Option<u32>,
    /// The same with every matrix in host memory.
    host_context_max: Option<u32>,
    host_slots_max: Option<u32>,
    /// Where weights lie with this limit; `None` if even all matrices in host memory do not make enough room.
    placed: Option<Placed>,
}

/// A session whose weights lie in VRAM as far as a limit allows.
#[derive(Debug, Serialize)]
struct Placed {
    vram_bytes: u64,
    host_weight_bytes: u64,
    /// Counted from the last one.
    host_layers: u32,
    layers: u32,
    has_host_embedding: bool,
    has_host_output: bool,
    step_vram_weight_bytes: u64,
    step_host_weight_bytes: u64,
    /// Predicted, not measured: a token takes no less than reading the weights.
    predicted_token_ms_floor: Range,
}

#[derive(Debug, Serialize)]
struct HeapSize {
    heap: &'static str,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct AllocationEntry {
    name: String,
    heap: &'static str,
    bytes: u64,
    regions: Vec<RegionEntry>,
}

#[derive(Debug, Serialize)]
struct RegionEntry {
    name: String,
    offset: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct InstructionEntry {
    operation: String,
    layer: Option<u32>,
    barrier_before: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let loaded = LoadedModel::open_beginning(arguments.model.as_deref())?;
    let options = session_options(arguments, &loaded.model)?;
    let cards = arguments.vram.map_or(CARDS_BYTES.to_vec(), |bytes| vec![bytes]);
    let plan = describe(&loaded, &options, &cards)?;
    if arguments.json {
        write_document(&plan)?;
    } else {
        write_text(&text(&plan))?;
    }
    Ok(true)
}

/// The session that is planned.
fn session_options(arguments: &Arguments, model: &Model) -> Result<SessionOptions, ToolError> {
    let trained = model.config.context;
    let context = arguments.context.unwrap_or(trained);
    if context < CONTEXT_MIN {
        let value = context.to_string();
        return Err(ToolError::Option { option: "--context", value, wanted: "at least 2" });
    }
    if context > trained {
        return Err(ToolError::Context { needed: u64::from(context), context: trained });
    }
    let options = SessionOptions {
        slots: arguments.slots,
        // Requests that wait take memory of the host alone.
        waiting_max: 0,
        context,
        kv_format: arguments.kv,
        activations: arguments.activations.activations,
        ..SessionOptions::default()
    };
    let limited = SessionOptions { vram_max: arguments.vram.map(ByteLen), ..options.clone() };
    // A limit under which nothing fits is told by its line.
    Ok(if limited.plan(model).is_ok() { limited } else { options })
}

fn size(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).ok_or_else(|| "a size is a number with KiB, MiB or GiB".to_owned())
}

/// What of a session a card of `limit` bytes holds.
fn fit(model: &Model, options: &SessionOptions, limit: ByteLen) -> Result<Fit, ToolError> {
    let (whole, all_in_host) = (Placement::default(), Placement::all_in_host(model));
    let placed = SessionOptions { vram_max: Some(limit), ..options.clone() }.plan(model);
    let placed = match placed {
        Ok((plan, capacity)) => Some(Placed::new(model, &plan, &capacity)?),
        Err(SessionError::VramLimit { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Fit {
        vram_bytes: limit.0,
        is_enough: placed.as_ref().is_some_and(|placed| placed.host_weight_bytes == 0),
        context_max: options.context_max(model, whole, limit),
        slots_max: options.slots_max(model, whole, limit),
        host_context_max: options.context_max(model, all_in_host, limit),
        host_slots_max: options.slots_max(model, all_in_host, limit),
        placed,
    })
}

impl Placed {
    fn new(model: &Model, plan: &ExecutionPlan, capacity: &Capacity) -> Result<Placed, ToolError> {
        let (memory, placement) = (MemoryPlan::new(model, plan, capacity)?, capacity.placement);
        let StepWeightBytes { vram, host } = step_weight_bytes_of(model, &placement);
        // Bytes by GB/s are nanoseconds. Layers run one after the other, so the times add up.
        let time = |card: &Card| vram as f64 / card.memory_gb_per_s + host as f64 / card.pcie_gb_per_s;
        let Range { low, typical, high } = Range::of(time);
        Ok(Placed {
            vram_bytes: memory.vram_len().0,
            host_weight_bytes: memory.heap_len(Heap::HostCached).0,
            host_layers: placement.host_layers,
            layers: model.config.layers,
            has_host_embedding: placement.has_host_embedding,
            has_host_output: placement.has_host_output,
            step_vram_weight_bytes: vram,
            step_host_weight_bytes: host,
            predicted_token_ms_floor: Range { low: low / 1e6, typical: typical / 1e6, high: high / 1e6 },
        })
    }
}

fn describe(loaded: &LoadedModel, options: &SessionOptions, cards: &[u64]) -> Result<Plan, ToolError> {
    let (execution, capacity) = options.plan(&loaded.model)?;
    let memory = MemoryPlan::new(&loaded.model, &execution, &capacity)?;
    let needed = memory.vram_len().0;
    let region = |(name, region): &(String, zrt_mem::heap::Region)| RegionEntry {
        name: name.clone(),
        offset: region.offset.0,
        bytes: region.len.0,
    };
    let allocations = memory.allocations.iter().map(|allocation| AllocationEntry {
        name: allocation.id.name(),
        heap: allocation.heap.name(),
        bytes: allocation.len.0,
        regions: allocation.regions.iter().map(region).collect(),
    });
    let instructions = execution.instructions.iter().map(|instruction| InstructionEntry {
        operation: instruction.to_string(),
        layer: instruction.node.layer,
        barrier_before: instruction.barrier_before,
    });
    let heaps = Heap::ALL.map(|heap| HeapSize { heap: heap.name(), bytes: memory.heap_len(heap).0 });
    Ok(Plan {
        model_filename: loaded.filename.clone(),
        model_type: loaded.description(),
        context: options.context,
        slots: options.slots,
        type_kv: options.kv_format.name(),
        activations: options.activations.name(),
        weight_bytes: loaded.model.weight_bytes(),
        step_weight_bytes: zrt_engine::memory_plan::step_weight_bytes(&loaded.model),
        vram_bytes: needed,
        fits: cards
            .iter()
            .map(|card| fit(&loaded.model, options, ByteLen(*card)))
            .collect::<Result<_, _>>()?,
        vram_bytes_whole: options.vram_len(&loaded.model, Placement::default())?.0,
        heaps: heaps.into(),
        allocations: allocations.collect(),
        instructions: instructions.collect(),
        barriers: execution.barrier_count(),
    })
}

fn text(plan: &Plan) -> String {
    let mut table = Table::new(&[
        ("allocation", Alignment::Left),
        ("heap", Alignment::Left),
        ("parts", Alignment::Right),
        ("size", Alignment::Right),
    ]);
    for allocation in &plan.allocations {
        let parts = allocation.regions.len().to_string();
        table.row(vec![
            allocation.name.clone(),
            allocation.heap.to_owned(),
            parts,
            units::bytes(allocation.bytes),
        ]);
    }
    let heaps = plan
        .heaps
        .iter()
        .filter(|heap| heap.bytes > 0)
        .map(|heap| format!("{} {}", units::bytes(heap.bytes), heap.heap));
    let title = format!(
        "{} ({}), {} of context {}, keys and values {}, activations {}",
        plan.model_filename,
        plan.model_type,
        slots(plan.slots),
        plan.context,
        plan.type_kv,
        plan.activations,
    );
    let heaps = heaps.collect::<Vec<String>>().join(", ");
    let step = format!(
        "one step: {} dispatches, {} barriers, {} of weights read",
        plan.instructions.len(),
        plan.barriers,
        units::bytes(plan.step_weight_bytes),
    );
    format!("{title}\n\n{table}\nin all {heaps}\n\n{}{NOT_COUNTED}\n\n{step}\n", fits(plan))
}

/// What a card must have room for besides.
const NOT_COUNTED: &str = "not counted: code and tape (below 1 MiB), and what driver and desktop take";

fn slots(count: u32) -> String {
    format!("{count} slot{}", if count == 1 { "" } else { "s" })
}

/// Lines for each card.
fn fits(plan: &Plan) -> String {
    plan.fits.iter().map(|fit| fit_lines(plan, fit)).collect()
}

fn fit_lines(plan: &Plan, fit: &Fit) -> String {
    let most = |context: Option<u32>, most: Option<u32>| {
        let context = context.map_or("no context fits".to_owned(), |context| {
            format!("largest context with {}: {context}", slots(plan.slots))
        });
        let most = most.map_or("no slot fits".to_owned(), |most| {
            format!("most slots of context {}: {most}", plan.context)
        });
        format!("{context}; {most}")
    };
    let verdict = if fit.is_enough { "fits" } else { "does not fit" };
    let (whole, limit) = (units::bytes(plan.vram_bytes_whole), units::bytes(fit.vram_bytes));
    let mut lines = format!("{whole} of {limit}: {verdict}; {}\n", most(fit.context_max, fit.slots_max));
    let hosted = most(fit.host_context_max, fit.host_slots_max);
    match &fit.placed {
        None => lines += &format!("  with every matrix in host memory: does not fit; {hosted}\n"),
        Some(placed) => {
            if placed.host_weight_bytes > 0 {
                let (vram, host) = (units::bytes(placed.vram_bytes), units::bytes(placed.host_weight_bytes));
                lines += &format!("  {vram} with {host} in host memory: {}; {hosted}\n", moved(placed));
            }
            lines += &token_line(placed);
        }
    }
    lines
}

/// Which weights lie in host memory.
fn moved(placed: &Placed) -> String {
    let layers = format!("the last {} of {} layers", placed.host_layers, placed.layers);
    let parts = [
        placed.has_host_embedding.then(|| "the embedding".to_owned()),
        (placed.host_layers > 0).then_some(layers),
        placed.has_host_output.then(|| "the output matrix".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a token costs at least.
fn token_line(placed: &Placed) -> String {
    let Range { low, typical, high } = placed.predicted_token_ms_floor;
    let (vram, host) = (placed.step_vram_weight_bytes, placed.step_host_weight_bytes);
    let over_bus = match host {
        0 => String::new(),
        host => format!(" and {} over PCIe 5.0 x16", units::bytes(host)),
    };
    let vram = units::bytes(vram);
    format!(
        "  a token takes at least {typical:.2} ms ({low:.2} .. {high:.2}), predicted: {vram} from VRAM{over_bus}\n"
    )
}

#[cfg(test)]
mod tests;
