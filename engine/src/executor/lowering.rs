//! Plan → tasks: which kernel runs each instruction, with which parameter block and how many units of work.
//!
//! Contract: every operation has an adapter, which the compiler enforces; an epilogue that its kernel does not have and
//! a weight type without a row in the table are errors when the plan is lowered, never a run-time fallback. Nothing
//! here depends on a token or a request: the kernels read rows, positions and tokens from the step that PLAN makes.

mod elementwise;

use crate::activations::Activations;
use crate::executor_error::ExecutorError;
use crate::gguf::TensorKind;
use crate::graph::{Node, Operation, ValueId};
use crate::kv_format::KvFormat;
use crate::layout::PLANES_MAX;
use crate::memory_plan::{AllocationId, MemoryPlan};
use crate::model::Model;
use crate::plan::{ExecutionPlan, Instruction, Place};
use crate::rope_table::rope_table_bytes;
use crate::weights::WeightId;
use elementwise::Integers;
use std::collections::BTreeMap;
use zerocopy::{Immutable, IntoBytes};
use zrt_mem::{ByteLen, GpuVa};
use zrt_protocol::params::{self, Header, JOINED_SHIFT, RowSet, SNAPSHOT_SHIFT};
use zrt_protocol::{CHUNK_COLUMNS, GROUP_ITEMS, PAGE_TOKENS, TILE_ROWS, WAVE_LANES, bands};

/// One operation over the rows of a step, addresses resolved.
#[derive(Clone, Debug)]
pub struct Task {
    /// Kernel name, as in the blobs' manifest.
    pub kernel: &'static str,
    /// The parameter block.
    pub parameters: Vec<u8>,
    /// The block's header.
    pub header: Header,
    /// The first weight plane of a product, to be prefetched.
    pub weight_pieces: Option<WeightPieces>,
    /// Maximum units of work that a step can have; workgroups share them out.
    pub units_max: u32,
    /// All earlier work must be complete and visible first.
    pub barrier_before: bool,
    /// The plan's instruction; `None` for PLAN and BOUNDARY.
    pub instruction: Option<usize>,
}

/// A product's first weight plane in pieces: as many bytes as 32 lanes' weight rows take, which for quantised rows in
/// tiles is a part of all rows of two or more tiles. A unit begins with piece
/// `unit * GROUP_WAVES * MATMUL_ROWS_PER_LANE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightPieces {
    /// The plane.
    pub plane_va: u64,
    /// Bytes of a piece: 64 or more, for every type and number of columns.
    pub bytes: u32,
    /// Number of whole pieces; none extends beyond the plane.
    pub count: u32,
}

/// What adapters need: the plan, the model's types and every base address.
pub struct Addresses<'a> {
    /// The model.
    pub model: &'a Model,
    /// The plan being lowered.
    pub plan: &'a ExecutionPlan,
    /// Its memory.
    pub memory: &'a MemoryPlan,
    /// Base address of each allocation.
    pub bases: &'a BTreeMap<AllocationId, GpuVa>,
    /// How keys and values are stored.
    pub kv_format: KvFormat,
}

/// What PLAN needs besides addresses.
#[derive(Clone, Copy, Debug)]
pub struct Planning {
    /// Entries of the input ring, a power of two.
    pub input_entries: u32,
    /// Entries of the output ring, a power of two, more than twice the slots.
    pub output_entries: u32,
    /// Maximum number of prompt rows of a step.
    pub chunk_rows: u32,
    /// True if PLAN waits for work inside the kernel.
    pub waits: bool,
}

/// What an adapter returns: a kernel, and its parameter block with a second copy of the block's header.
struct Lowered {
    kernel: &'static str,
    header: Header,
    parameters: Vec<u8>,
}

/// The constructor of a block type's header.
type HeaderOf = fn(u64, u32, RowSet) -> Header;

/// The kernels of a weight type.
struct WeightKernels {
    kind: TensorKind,
    embed: &'static str,
    matmul: &'static str,
    /// MATMUL with activations as A8 and as A16; none for weights that are no integers.
    matmul_integers: Option<[&'static str; 2]>,
    /// MATMUL in mode f16; none for weights that mode does not change.
    matmul_halves: Option<&'static str>,
}

macro_rules! weight_kernels {
    ($($kind:ident $name:literal $($of:ident)?),* $(,)?) => {
        const WEIGHT_KERNELS: &[WeightKernels] = &[$(WeightKernels {
            kind: TensorKind::$kind,
            embed: concat!("embed_", $name),
            matmul: concat!("matmul_", $name),
            matmul_integers: weight_kernels!(@integers $name $($of)?),
            matmul_halves: weight_kernels!(@halves $name $($of)?),
        }),*];
    };
    (@integers $name:literal integers) => {
        Some([concat!("matmul_", $name, "_a8"), concat!("matmul_", $name, "_a16")])
    };
    (@halves $name:literal halves) => {
        Some(concat!("matmul_", $name, "_w16"))
    };
    (@$_of:ident $name:literal $($_other:ident)?) => {
        None
    };
}

weight_kernels!(
    F32 "f32",
    F16 "f16" halves,
    BF16 "bf16" halves,
    Q8_0 "q8_0" integers,
    Q4_0 "q4_0" integers,
    Q4_K "q4_k" integers,
    Q6_K "q6_k" integers,
    Q4_1 "q4_1" integers,
    Q5_0 "q5_0" integers,
    Q5_1 "q5_1" integers,
    Q2_K "q2_k" integers,
    Q3_K "q3_k" integers,
    Q5_K "q5_k" integers,
    IQ4_NL "iq4_nl" integers,
    IQ4_XS "iq4_xs" integers,
    MXFP4 "mxfp4" integers,
    IQ2_XXS "iq_codes" integers,
    IQ2_XS "iq_codes" integers,
    IQ2_S "iq_codes" integers,
    IQ3_XXS "iq_codes" integers,
    IQ3_S "iq_codes" integers,
    INT8 "int8" integers,
    FP8 "fp8",
);

/// Lowers a plan: PLAN, then its instructions; the first instruction of each layer is followed by the BOUNDARY of the
/// next layer.
pub fn lower(addresses: &Addresses<'_>, planning: &Planning) -> Result<Vec<Task>, ExecutorError> {
    let mut tasks = vec![plan(addresses, planning)?];
    let instructions = &addresses.plan.instructions;
    for (index, instruction) in instructions.iter().enumerate() {
        tasks.push(lower_instruction(addresses, instruction)?.into_task(addresses, index));
        let before = index.checked_sub(1).and_then(|before| instructions[before].node.layer);
        if let Some(layer) = instruction.node.layer
            && before != Some(layer)
            && layer + 1 < addresses.plan.config.layers
        {
            tasks.push(boundary(addresses, layer + 1)?);
        }
    }
    Ok(tasks)
}

/// Number of tasks of a lowered plan: PLAN, the instructions, and a BOUNDARY between two layers.
pub fn task_count(plan: &ExecutionPlan) -> u32 {
    plan.instructions.len() as u32 + plan.config.layers.max(1)
}

/// A task of one unit that belongs to no instruction.
fn once(kernel: &'static str, header: Header, parameters: impl IntoBytes + Immutable) -> Task {
    Task {
        kernel,
        parameters: parameters.as_bytes().to_vec(),
        header,
        weight_pieces: None,
        units_max: 1,
        barrier_before: false,
        instruction: None,
    }
}

impl Lowered {
    fn into_task(self, addresses: &Addresses<'_>, index: usize) -> Task {
        let instruction = &addresses.plan.instructions[index];
        let is = |set: RowSet| self.header.rows & 0xff == set as u32;
        let times = match () {
            () if is(RowSet::EachActive) || is(RowSet::EachOutput) => addresses.plan.rows,
            () if is(RowSet::AllActive) => bands(addresses.plan.rows),
            () => 1,
        };
        Task {
            kernel: self.kernel,
            header: self.header,
            weight_pieces: addresses.weight_pieces(&instruction.node),
            units_max: self.header.units.saturating_mul(times),
            barrier_before: instruction.barrier_before || index == 0,
            instruction: Some(index),
            parameters: self.parameters,
        }
    }
}

fn lower_instruction(addresses: &Addresses<'_>, instruction: &Instruction) -> Result<Lowered, ExecutorError> {
    let node = &instruction.node;
    if let Some(epilogue) = instruction.epilogue
        && !has_epilogues(&node.operation)
    {
        return Err(no_adapter(&epilogue.operation, "as an epilogue"));
    }
    match node.operation {
        Operation::Embed { table, output } => embed(addresses, node, table, output),
        Operation::RmsNorm { input, weight, output } => {
            elementwise::rms_norm(addresses, instruction, input, weight, output)
        }
        Operation::QkNorm { vector, weight, heads } => {
            elementwise::qk_norm(addresses, node, vector, weight, heads)
        }
        Operation::Quantise { input, activations, output } => {
            elementwise::quantise(addresses, node, input, activations, output)
        }
        Operation::Matmul { weight, input, activations, output } => {
            let product = Product { weight, input, activations, output };
            matmul(addresses, node, &product, instruction.epilogue)
        }
        Operation::Rope { vector, heads, layout, table } => {
            elementwise::rope(addresses, node, vector, heads, (layout, table))
        }
        Operation::KvWrite { key, value, layer } => kv_write(addresses, node, key, value, layer),
        Operation::Attention { query, output, layer, window } => {
            attention(addresses, instruction, query, output, (layer, window))
        }
        Operation::SwiGlu { gate, up, output } => {
            elementwise::gated(addresses, instruction, "swiglu", [gate, up], output)
        }
        Operation::GeGlu { gate, up, output } => {
            elementwise::gated(addresses, instruction, "geglu", [gate, up], output)
        }
        Operation::BiasAdd { vector, weight } => elementwise::bias_add(addresses, node, vector, weight),
        Operation::Scale { vector, factor } => elementwise::scale(addresses, node, vector, factor),
        Operation::SoftCap { vector, cap } => elementwise::soft_cap(addresses, node, vector, cap),
        Operation::ResidualAdd { hidden, addend } => {
            elementwise::residual_add(addresses, node, hidden, addend)
        }
        Operation::Sample { logits } => sample(addresses, node, logits),
    }
}

/// Whether the operation's adapter looks at epilogues; which of them its kernel has, it says itself.
fn has_epilogues(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Matmul { .. }
            | Operation::RmsNorm { .. }
            | Operation::SwiGlu { .. }
            | Operation::GeGlu { .. }
            | Operation::Attention { .. }
    )
}

fn no_adapter(operation: &Operation, detail: &str) -> ExecutorError {
    ExecutorError::NoAdapter { executor: "device", operation: operation.name(), detail: detail.into() }
}

impl Addresses<'_> {
    fn at(&self, id: AllocationId, offset: ByteLen) -> Result<u64, ExecutorError> {
        let base = self.bases.get(&id).copied().unwrap_or_default();
        base.offset(offset).map(|va| va.0).ok_or(ExecutorError::Overflow { what: "an address" })
    }

    fn base(&self, id: AllocationId) -> Result<u64, ExecutorError> {
        self.at(id, ByteLen(0))
    }

    fn value(&self, id: ValueId) -> Result<u64, ExecutorError> {
        match self.plan.place(id) {
            Place::Activations(region) => self.at(AllocationId::Activations, region.offset),
            Place::Logits => self.base(AllocationId::Logits),
        }
    }

    fn stride(&self, id: ValueId) -> u32 {
        self.plan.stride(id).0 as u32
    }

    /// The rows of an operation: each active row, or each output row after the last layer.
    fn each(&self, node: &Node) -> RowSet {
        if self.is_output(node) { RowSet::EachOutput } else { RowSet::EachActive }
    }

    fn all(&self, node: &Node) -> RowSet {
        if self.is_output(node) { RowSet::AllOutputs } else { RowSet::AllActive }
    }

    fn is_output(&self, node: &Node) -> bool {
        node.layer.is_none() && !matches!(node.operation, Operation::Embed { .. } | Operation::Scale { .. })
    }

    /// The header's fields that do not depend on the block's type. Odd layers use the odd snapshot of active rows.
    fn header(&self, node: &Node, units: u32, rows: RowSet, of: HeaderOf) -> Result<Header, ExecutorError> {
        let mut header = of(self.base(AllocationId::Step)?, units, rows);
        header.rows |= (node.layer.unwrap_or(0) & 1) << SNAPSHOT_SHIFT;
        Ok(header)
    }

    fn elements(&self, id: ValueId) -> u32 {
        self.plan.value(id).elements
    }

    fn planes(&self, id: WeightId) -> Result<[u64; PLANES_MAX], ExecutorError> {
        let place = self.memory.weights[&id];
        let mut planes = [0; PLANES_MAX];
        for (va, plane) in planes.iter_mut().zip(place.layout.planes) {
            if let Some(region) = plane {
                *va = self.at(place.allocation, ByteLen(place.offset.0 + region.offset.0))?;
            }
        }
        Ok(planes)
    }

    /// Address of a layer's keys in the first page.
    fn layer_of_pool(&self, layer: u32) -> Result<u64, ExecutorError> {
        let side =
            u64::from(self.kv_format.row_bytes(self.plan.config.kv_elements())) * u64::from(PAGE_TOKENS);
        self.at(AllocationId::KvPool, ByteLen(2 * side * u64::from(layer)))
    }

    /// Address of a rotary table.
    fn rope_table(&self, table: u32) -> Result<u64, ExecutorError> {
        let before = self.plan.config.ropes().take(table as usize);
        let bytes = before.map(|rope| rope_table_bytes(self.plan.context, rope)).sum();
        self.at(AllocationId::RopeTable, ByteLen(bytes))
    }

    /// The first plane of a product's weights; `None` if it is not prefetched.
    fn weight_pieces(&self, node: &Node) -> Option<WeightPieces> {
        let Operation::Matmul { weight, activations, .. } = node.operation else { return None };
        let (rows, columns) = self.plan.config.shape(weight.class);
        let place = &self.memory.weights[&weight];
        let plane = place.layout.planes[0]?;
        let plane_va = self.at(place.allocation, ByteLen(place.offset.0 + plane.offset.0)).ok()?;
        let piece_rows = WAVE_LANES >> lanes_per_row_log2(columns, activations);
        // The last tile of quantised rows is whole.
        let rows_held =
            if self.kind(weight).is_quantised() { rows.next_multiple_of(TILE_ROWS) } else { rows };
        let row_bytes = plane.len.0.checked_div(rows_held.into())?;
        let bytes = u32::try_from(row_bytes.checked_mul(piece_rows.into())?).ok()?;
        let count = rows / piece_rows;
        (count > 0).then_some(WeightPieces { plane_va, bytes, count })
    }

    fn kind(&self, id: WeightId) -> TensorKind {
        self.model.weight(id).tensor.kind
    }
}

fn lowered(
    kernel: &'static str,
    header: Header,
    parameters: impl IntoBytes + Immutable,
) -> Result<Lowered, ExecutorError> {
    Ok(Lowered { kernel, header, parameters: parameters.as_bytes().to_vec() })
}

fn weight_kernels(
    addresses: &Addresses<'_>,
    id: WeightId,
    operation: &Operation,
) -> Result<&'static WeightKernels, ExecutorError> {
    let kind = addresses.kind(id);
    let row = WEIGHT_KERNELS.iter().find(|row| row.kind == kind);
    row.ok_or_else(|| no_adapter(operation, kind.name()))
}

fn plan(addresses: &Addresses<'_>, planning: &Planning) -> Result<Task, ExecutorError> {
    let parameters = params::Plan {
        header: params::Plan::header(addresses.base(AllocationId::Step)?, 1, RowSet::Once),
        slots_va: addresses.base(AllocationId::Slots)?,
        control_va: addresses.base(AllocationId::Control)?,
        tokens_va: addresses.base(AllocationId::Tokens)?,
        host_pages_va: addresses.base(AllocationId::HostPages)?,
        pages_va: addresses.base(AllocationId::Pages)?,
        plan_state_va: addresses.base(AllocationId::PlanState)?,
        input_va: addresses.base(AllocationId::InputRing)?,
        output_va: addresses.base(AllocationId::OutputRing)?,
        stops_va: addresses.base(AllocationId::Stops)?,
        consumed_va: addresses.base(AllocationId::Consumed)?,
        status_va: addresses.base(AllocationId::Status)?,
        context: addresses.plan.context,
        pages_per_slot: addresses.memory.pages_per_slot,
        input_mask: planning.input_entries - 1,
        output_mask: planning.output_entries - 1,
        chunk_rows: planning.chunk_rows,
        waits: planning.waits.into(),
        tops_va: addresses.base(AllocationId::Tops)?,
        output_tops_va: addresses.base(AllocationId::OutputTops)?,
    };
    Ok(once("plan", parameters.header, parameters))
}

fn boundary(addresses: &Addresses<'_>, layer: u32) -> Result<Task, ExecutorError> {
    let parameters = params::Boundary {
        header: params::Boundary::header(addresses.base(AllocationId::Step)?, 1, RowSet::Once),
        slots_va: addresses.base(AllocationId::Slots)?,
        control_va: addresses.base(AllocationId::Control)?,
        snapshot: layer & 1,
        reserved: 0,
    };
    Ok(once("boundary", parameters.header, parameters))
}

fn embed(
    addresses: &Addresses<'_>,
    node: &Node,
    table: WeightId,
    output: ValueId,
) -> Result<Lowered, ExecutorError> {
    let columns = addresses.elements(output);
    let chunks = columns.div_ceil(CHUNK_COLUMNS);
    let units = chunks.div_ceil(GROUP_ITEMS);
    let parameters = params::Embed {
        header: addresses.header(node, units, addresses.each(node), params::Embed::header)?,
        plane_va: addresses.planes(table)?,
        output_va: addresses.value(output)?,
        columns,
        chunks,
        vocabulary: addresses.plan.config.vocabulary,
        output_stride: addresses.stride(output),
    };
    lowered(weight_kernels(addresses, table, &node.operation)?.embed, parameters.header, parameters)
}

/// Lanes that share a weight row of a product, as a power of two.
fn lanes_per_row_log2(columns: u32, activations: Activations) -> u32 {
    match activations {
        Activations::F32 | Activations::F16 => zrt_protocol::lanes_per_row_log2(columns),
        Activations::A8 | Activations::A16 => zrt_protocol::integer_lanes_per_row_log2(columns),
    }
}

/// Operands of a MATMUL.
struct Product {
    weight: WeightId,
    input: ValueId,
    activations: Activations,
    output: ValueId,
}

/// With a RESIDUAL_ADD after it, MATMUL adds its product to that one's vector in place.
fn matmul(
    addresses: &Addresses<'_>,
    node: &Node,
    &Product { weight, input, activations, output }: &Product,
    epilogue: Option<Node>,
) -> Result<Lowered, ExecutorError> {
    let addend = match epilogue.map(|node| node.operation) {
        None => None,
        Some(Operation::ResidualAdd { hidden, .. }) => Some(hidden),
        Some(other) => return Err(no_adapter(&other, "after a matmul")),
    };
    let output = addend.unwrap_or(output);
    let (weight_rows, columns) = addresses.plan.config.shape(weight.class);
    let kernels = weight_kernels(addresses, weight, &node.operation)?;
    let of_integers = |index: usize| {
        let kernel = kernels.matmul_integers.map(|kernels| kernels[index]);
        kernel.ok_or_else(|| no_adapter(&node.operation, activations.name()))
    };
    let kernel = match activations {
        Activations::F32 => kernels.matmul,
        Activations::A8 => of_integers(0)?,
        Activations::A16 => of_integers(1)?,
        Activations::F16 => {
            kernels.matmul_halves.ok_or_else(|| no_adapter(&node.operation, activations.name()))?
        }
    };
    let lanes_per_row_log2 = lanes_per_row_log2(columns, activations);
    let units = weight_rows.div_ceil(zrt_protocol::matmul_rows_per_unit(lanes_per_row_log2));
    let parameters = params::Matmul {
        header: addresses.header(node, units, addresses.all(node), params::Matmul::header)?,
        plane_va: addresses.planes(weight)?,
        input_va: addresses.value(input)?,
        output_va: addresses.value(output)?,
        addend_va: addend.map_or(Ok(0), |addend| addresses.value(addend))?,
        weight_rows,
        columns,
        chunks: columns.div_ceil(CHUNK_COLUMNS),
        lanes_per_row_log2,
        input_stride: addresses.stride(input),
        output_stride: addresses.stride(output),
        factors_offset: match activations {
            Activations::F32 | Activations::F16 => 0,
            Activations::A8 | Activations::A16 => {
                zrt_protocol::quantised_factors_offset(columns, activations.integer_bytes())
            }
        },
        tile_parts_log2: zrt_protocol::tile_parts_log2(weight_rows, columns),
    };
    lowered(kernel, parameters.header, parameters)
}

fn kv_write(
    addresses: &Addresses<'_>,
    node: &Node,
    key: ValueId,
    value: ValueId,
    layer: u32,
) -> Result<Lowered, ExecutorError> {
    let (format, row_elements) = (addresses.kv_format, addresses.plan.config.kv_elements());
    let units = zrt_protocol::kv_write_units(row_elements);
    let parameters = params::KvWrite {
        header: addresses.header(node, units, addresses.each(node), params::KvWrite::header)?,
        key_va: addresses.value(key)?,
        value_va: addresses.value(value)?,
        page_table_va: addresses.base(AllocationId::Pages)?,
        pool_va: addresses.layer_of_pool(layer)?,
        page_bytes: addresses.memory.page_bytes,
        pages_per_slot: addresses.memory.pages_per_slot,
        row_elements,
        row_bytes: format.row_bytes(row_elements),
        stride: addresses.stride(key),
    };
    lowered(format.write_kernel(), parameters.header, parameters)
}

fn attention(
    addresses: &Addresses<'_>,
    instruction: &Instruction,
    query: ValueId,
    output: ValueId,
    (layer, window): (u32, Option<u32>),
) -> Result<Lowered, ExecutorError> {
    let (node, config) = (&instruction.node, &addresses.plan.config);
    let (format, row_elements) = (addresses.kv_format, config.kv_elements());
    let integers = Integers::of(addresses, instruction)?;
    let group_size = config.heads / config.kv_heads;
    let units = zrt_protocol::attention_units(config.kv_heads, config.head_size, group_size);
    let mut header = addresses.header(node, units, addresses.each(node), params::Attention::header)?;
    header.rows |= zrt_protocol::attention_joined_log2_max(config.head_size, group_size) << JOINED_SHIFT;
    let parameters = params::Attention {
        header,
        query_va: addresses.value(query)?,
        output_va: addresses.value(output)?,
        page_table_va: addresses.base(AllocationId::Pages)?,
        pool_va: addresses.layer_of_pool(layer)?,
        page_bytes: addresses.memory.page_bytes,
        pages_per_slot: addresses.memory.pages_per_slot,
        row_elements,
        row_bytes: format.row_bytes(row_elements),
        stride: addresses.stride(query),
        head_size: config.head_size,
        group_size,
        scale: config.attention_scale.to_bits(),
        window: window.unwrap_or(u32::MAX),
        integers_va: integers.va,
        integers_stride: integers.stride,
        factors_offset: integers.factors_offset,
        limbs: integers.limbs,
        reserved: 0,
    };
    lowered(format.attention_kernel(), parameters.header, parameters)
}

fn sample(addresses: &Addresses<'_>, node: &Node, logits: ValueId) -> Result<Lowered, ExecutorError> {
    let parameters = params::Sample {
        header: addresses.header(node, 1, addresses.each(node), params::Sample::header)?,
        logits_va: addresses.value(logits)?,
        slots_va: addresses.base(AllocationId::Slots)?,
        tokens_va: addresses.base(AllocationId::Tokens)?,
        vocabulary: addresses.elements(logits),
        logits_stride: addresses.stride(logits),
        context: addresses.plan.context,
        reserved: 0,
        adjusted_va: addresses.base(AllocationId::AdjustedLogits)?,
        extras_va: addresses.base(AllocationId::Extras)?,
        tops_va: addresses.base(AllocationId::Tops)?,
    };
    lowered("sample", parameters.header, parameters)
}
