//! `zrt plan`: what a session would allocate and launch, and what fits a card, without opening a device.
//!
//! Contract: reads the file's header alone, so a download need not be complete. Sizes of model, cache and requests are
//! those of a session, to the byte; the code, the tape and what the driver keeps (queues, saved waves, page tables) are
//! not among them.

use super::{kv_format, write_document, write_text};
use crate::activations_option::ActivationsOption;
use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::table::{Alignment, Table};
use crate::units;
use clap::Args;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::MemoryPlan;
use zrt_engine::model::Model;
use zrt_engine::session::SessionOptions;
use zrt_mem::Heap;

/// The memory of an R9700 and of an RX 9070 XT.
const CARDS_BYTES: [u64; 2] = [32 << 30, 16 << 30];
/// The shortest context of a session, in tokens.
const CONTEXT_MIN: u32 = 2;

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
    /// Memory of a card, as 16GiB [default: 32GiB and 16GiB]
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
    let trained = loaded.model.config.context;
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
    let cards = arguments.vram.map_or(CARDS_BYTES.to_vec(), |bytes| vec![bytes]);
    let plan = describe(&loaded, &options, &cards)?;
    if arguments.json {
        write_document(&plan)?;
    } else {
        write_text(&text(&plan))?;
    }
    Ok(true)
}

fn size(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).ok_or_else(|| "a size is a number with KiB, MiB or GiB".to_owned())
}

/// Bytes on the card.
fn vram_bytes(memory: &MemoryPlan) -> u64 {
    [Heap::DeviceLocal, Heap::HostVisible, Heap::HostShared].map(|heap| memory.heap_len(heap).0).iter().sum()
}

/// The largest number of this range that fits, where more never needs less.
fn largest(range: RangeInclusive<u32>, fits: impl Fn(u32) -> bool) -> Option<u32> {
    let (first, mut low, mut high) = (*range.start(), range.start().checked_sub(1)?, *range.end());
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    (low >= first).then_some(low)
}

fn fit(model: &Model, options: &SessionOptions, needed: u64, card_bytes: u64) -> Fit {
    let fits =
        |options: SessionOptions| options.memory(model).is_ok_and(|memory| vram_bytes(&memory) <= card_bytes);
    let of_context = |context| fits(SessionOptions { context, ..options.clone() });
    let of_slots = |slots: &u32| fits(SessionOptions { slots: *slots, ..options.clone() });
    Fit {
        vram_bytes: card_bytes,
        is_enough: needed <= card_bytes,
        context_max: largest(CONTEXT_MIN..=model.config.context, of_context),
        // Activations are placed by what fits where, so more slots need not need more.
        slots_max: (1..=SessionOptions::default().slots).rev().find(of_slots),
    }
}

fn describe(loaded: &LoadedModel, options: &SessionOptions, cards: &[u64]) -> Result<Plan, ToolError> {
    let (execution, capacity) = options.plan(&loaded.model)?;
    let memory = MemoryPlan::new(&loaded.model, &execution, &capacity)?;
    let needed = vram_bytes(&memory);
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
        operation: instruction.node.to_string(),
        layer: instruction.node.layer,
        barrier_before: instruction.barrier_before,
    });
    let heaps = [Heap::DeviceLocal, Heap::HostVisible, Heap::HostShared, Heap::Host];
    let heaps = heaps.map(|heap| HeapSize { heap: heap.name(), bytes: memory.heap_len(heap).0 });
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
        fits: cards.iter().map(|card| fit(&loaded.model, options, needed, *card)).collect(),
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

/// A line for each card.
fn fits(plan: &Plan) -> String {
    let line = |fit: &Fit| {
        let verdict = if fit.is_enough { "fits" } else { "does not fit" };
        let context = fit.context_max.map_or("no context fits".to_owned(), |context| {
            format!("largest context with {}: {context}", slots(plan.slots))
        });
        let most = fit.slots_max.map_or("no slot fits".to_owned(), |most| {
            format!("most slots of context {}: {most}", plan.context)
        });
        format!(
            "{} of {}: {verdict}; {context}; {most}\n",
            units::bytes(plan.vram_bytes),
            units::bytes(fit.vram_bytes)
        )
    };
    plan.fits.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_model_is_planned_in_whole() {
        let loaded = LoadedModel::open(None).unwrap();
        let options = SessionOptions { slots: 1, context: 64, ..SessionOptions::default() };
        let plan = describe(&loaded, &options, &CARDS_BYTES).unwrap();
        let allocation = |name: &str| plan.allocations.iter().find(|one| one.name == name).unwrap();
        // Keys and values: 8 layers × 64 positions × 2 heads × 64 elements × 4 bytes.
        assert_eq!(allocation("kv_pool").bytes, 2 * 8 * 64 * 2 * 64 * 4);
        assert_eq!(allocation("weights.ffn_down").regions.len(), 8);
        let total: u64 = plan.allocations.iter().map(|one| one.bytes).sum();
        assert_eq!(plan.heaps.iter().map(|heap| heap.bytes).sum::<u64>(), total);
        assert!(total > plan.weight_bytes);
        let allocated: u64 =
            plan.allocations.iter().filter(|one| one.heap != "host").map(|one| one.bytes).sum();
        assert_eq!(plan.vram_bytes, allocated);
        let shown = text(&plan);
        assert!(shown.contains("kv_pool") && shown.contains("context 64"), "{shown}");
    }
    /// One byte less than a plan needs is too little for it, and enough for a little less.
    #[test]
    fn a_card_that_lacks_a_byte_holds_less() {
        let loaded = LoadedModel::open(None).unwrap();
        let options =
            SessionOptions { slots: 4, context: 512, kv_format: KvFormat::F16, ..SessionOptions::default() };
        let needed = vram_bytes(&options.memory(&loaded.model).unwrap());
        let plan = describe(&loaded, &options, &[needed, needed - 1, 1 << 20, u64::MAX]).unwrap();
        let found: Vec<_> =
            plan.fits.iter().map(|fit| (fit.is_enough, fit.context_max, fit.slots_max)).collect();
        let [exact, less, nothing, all] = found[..] else { panic!("{found:?}") };
        assert_eq!((exact.0, exact.2), (true, Some(4)));
        assert!(exact.1 >= Some(512) && less.1 < Some(512), "{found:?}");
        assert_eq!((less.0, less.2), (false, Some(3)));
        assert_eq!(nothing, (false, None, None));
        assert_eq!(all, (true, Some(loaded.model.config.context), Some(64)));
    }

    #[test]
    fn largest_is_the_last_that_fits() {
        for (first, last) in [(1, 1), (2, 2), (2, 7), (1, 64), (5, 4)] {
            for limit in 0..=last {
                let expected = (limit >= first && limit > 0).then_some(limit);
                assert_eq!(
                    largest(first..=last, |number| number <= limit),
                    expected,
                    "{first} {last} {limit}"
                );
            }
        }
    }
}
