//! Verified graph → execution plan: each value gets a place in the activation allocation by its last use, and each
//! operation a flag that says whether it must wait for the operations before it.
//!
//! Contract: values whose lifetimes overlap never share a byte; an instruction carries a barrier if it reads or
//! overwrites what an earlier one has written since the last barrier, or overwrites what an earlier one has read since
//! then. An operation that only goes on with each element that the one before it has made is that one's epilogue: the
//! two are one instruction. The plan is the single input of every executor. Allocates at construction only.

use crate::activations::Activations;
use crate::config::ModelConfig;
use crate::graph::{Form, GraphError, Node, Operation, Use, Value, ValueId, VerifiedGraph};
use crate::model::Model;
use std::collections::BTreeSet;
use std::fmt;
use zrt_mem::ByteLen;
use zrt_mem::heap::{REGION_ALIGNMENT, Region};
use zrt_protocol::{CHUNK_COLUMNS, SEGMENT_BLOCKS, quantised_rows_held, quantised_segments};

/// One operation of the plan, or two that one kernel does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instruction {
    /// The operation and its layer.
    pub node: Node,
    /// What the same kernel does with each result of the operation.
    pub epilogue: Option<Node>,
    /// All earlier instructions must be complete and visible first.
    pub barrier_before: bool,
}

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A region of the activation allocation.
    Activations(Region),
    /// The logits buffer, which the host reads.
    Logits,
}

/// The plan of one step.
#[derive(Clone, Debug)]
pub struct ExecutionPlan {
    /// The model's dimensions.
    pub config: ModelConfig,
    /// Maximum number of positions of a sequence.
    pub context: u32,
    /// Maximum number of rows of a step; every value has its elements once for each row.
    pub rows: u32,
    /// Operations in order.
    pub instructions: Vec<Instruction>,
    /// The product of a MATMUL with an epilogue has a place too, where the oracle puts it and the device nothing.
    values: Vec<(Value, Place)>,
    activations_len: ByteLen,
}

/// Lifetime of a value, in instruction indices, both ends included.
#[derive(Clone, Copy, Debug)]
struct Lifetime {
    first: usize,
    last: usize,
}

/// What an instruction reads or writes, for dependency tracking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    Bytes { start: u64, end: u64 },
    Logits,
    Cache { layer: u32 },
    StepState,
}

impl Instruction {
    /// The operations in order: one or two.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        std::iter::once(self.node).chain(self.epilogue)
    }

    /// The values that it leaves in memory.
    pub fn results(&self) -> impl Iterator<Item = ValueId> {
        // The product of a MATMUL with an addend stays in registers.
        let is_kept = |node: &Node| match self.epilogue.map(|epilogue| epilogue.operation) {
            Some(Operation::ResidualAdd { addend, .. }) => node.operation.result() != Some(addend),
            _ => true,
        };
        self.nodes().filter(is_kept).filter_map(|node| node.operation.result())
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.node)?;
        match self.epilogue {
            Some(epilogue) => write!(formatter, " + {}", epilogue.operation.name()),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan {
    /// Plans a step of a model over at most `rows` rows of sequences of at most `context` positions. Matmuls take their
    /// activations as `activations` says.
    pub fn step(
        model: &Model,
        context: u32,
        rows: u32,
        activations: Activations,
    ) -> Result<ExecutionPlan, GraphError> {
        let graph = crate::layers::decode_step(model, activations).verify(&model.config)?;
        Ok(ExecutionPlan::new(&graph, model.config.clone(), context, rows))
    }

    /// Plans a verified graph.
    pub fn new(graph: &VerifiedGraph, config: ModelConfig, context: u32, rows: u32) -> ExecutionPlan {
        let graph = graph.graph();
        let mut instructions = joined(&graph.nodes, &config);
        let lifetimes = lifetimes(&instructions, graph.values.len());
        let logits = graph.nodes.iter().find_map(|node| match node.operation {
            Operation::Sample { logits } => Some(logits),
            _ => None,
        });
        let mut placer = Placer::default();
        let mut order: Vec<usize> = (0..graph.values.len()).collect();
        order.sort_by_key(|index| lifetimes[*index].first);
        let mut places = vec![Place::Logits; graph.values.len()];
        for index in order.into_iter().filter(|index| Some(ValueId(*index as u32)) != logits) {
            places[index] =
                Place::Activations(placer.place(lifetimes[index], value_len(&graph.values[index], rows)));
        }
        let values: Vec<(Value, Place)> = graph.values.iter().cloned().zip(places).collect();
        set_barriers(&mut instructions, &values);
        ExecutionPlan { config, context, rows, instructions, values, activations_len: placer.len }
    }

    /// Name and length of a value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize].0
    }

    /// Place of a value.
    pub fn place(&self, id: ValueId) -> Place {
        self.values[id.0 as usize].1
    }

    /// Length of the activation allocation.
    pub fn activations_len(&self) -> ByteLen {
        self.activations_len
    }

    /// Bytes from one row of a value to the next.
    pub fn stride(&self, id: ValueId) -> ByteLen {
        row_stride(self.value(id))
    }

    /// For each instruction, the earlier ones that it must wait for: those whose results it reads, and those that read
    /// or wrote what it writes. One that another of them already waits for is left out.
    pub fn dependencies(&self) -> Vec<Vec<usize>> {
        let touched: Vec<_> = self.instructions.iter().map(|one| resources(one, &self.values)).collect();
        let touches = |all: &[Resource], some: &[Resource]| {
            all.iter().any(|one| some.iter().any(|other| overlaps(one, other)))
        };
        let mut ancestors: Vec<BTreeSet<usize>> = Vec::with_capacity(touched.len());
        let mut direct = Vec::with_capacity(touched.len());
        for (index, (reads, writes)) in touched.iter().enumerate() {
            let mut covered = BTreeSet::new();
            let mut waits = Vec::new();
            for (earlier, (earlier_reads, earlier_writes)) in touched[..index].iter().enumerate().rev() {
                let conflict = touches(earlier_writes, reads)
                    || touches(earlier_writes, writes)
                    || touches(earlier_reads, writes);
                if conflict && !covered.contains(&earlier) {
                    waits.push(earlier);
                    covered.insert(earlier);
                    covered.extend(&ancestors[earlier]);
                }
            }
            waits.reverse();
            direct.push(waits);
            ancestors.push(covered);
        }
        direct
    }

    /// Barriers in one step.
    pub fn barrier_count(&self) -> usize {
        self.instructions.iter().filter(|instruction| instruction.barrier_before).count()
    }
}

/// Bytes of one row: each row starts on its own cache line, so that no two workgroups write to the same line, but for
/// the rows of a tile (`docs/kernels.md`), which share GL2's lines by bytes.
fn row_stride(value: &Value) -> ByteLen {
    ByteLen((u64::from(value.elements) * 4).next_multiple_of(REGION_ALIGNMENT))
}

fn value_len(value: &Value, rows: u32) -> ByteLen {
    let rows = match value.form {
        Form::Vector => rows,
        Form::Quantised => quantised_rows_held(rows),
    };
    ByteLen(row_stride(value).0 * u64::from(rows))
}

/// Operations as instructions, without barriers.
fn joined(nodes: &[Node], config: &ModelConfig) -> Vec<Instruction> {
    let mut instructions = Vec::with_capacity(nodes.len());
    let mut rest = nodes;
    while let Some((node, after)) = rest.split_first() {
        let epilogue = after.first().filter(|next| is_epilogue(node, next, &after[1..], config)).copied();
        instructions.push(Instruction { node: *node, epilogue, barrier_before: false });
        rest = &after[usize::from(epilogue.is_some())..];
    }
    instructions
}

/// Whether the kernel of `node` also does `next`. `later` is what follows the two.
fn is_epilogue(node: &Node, next: &Node, later: &[Node], config: &ModelConfig) -> bool {
    if node.layer != next.layer {
        return false;
    }
    match (node.operation, next.operation) {
        // MATMUL adds, and the product itself stays in registers: nobody else may read it.
        (Operation::Matmul { input, output, .. }, Operation::ResidualAdd { hidden, addend }) => {
            let is_read = |node: &Node| node.operation.uses().iter().any(|(value, _)| *value == output);
            addend == output && hidden != input && hidden != output && !later.iter().any(is_read)
        }
        (
            Operation::RmsNorm { output, .. }
            | Operation::SwiGlu { output, .. }
            | Operation::GeGlu { output, .. },
            Operation::Quantise { input, .. },
        ) => input == output,
        // A wave of ATTENTION has a block of its head, and no unit has what the last stretch has beyond the heads.
        (Operation::Attention { output, .. }, Operation::Quantise { input, .. }) => {
            let elements = config.query_elements();
            input == output
                && config.head_size.is_multiple_of(CHUNK_COLUMNS)
                && quantised_segments(elements) * SEGMENT_BLOCKS * CHUNK_COLUMNS == elements
        }
        _ => false,
    }
}

fn lifetimes(instructions: &[Instruction], values: usize) -> Vec<Lifetime> {
    let mut lifetimes = vec![Lifetime { first: usize::MAX, last: 0 }; values];
    for (index, instruction) in instructions.iter().enumerate() {
        for (id, _) in instruction.nodes().flat_map(|node| node.operation.uses()) {
            let lifetime = &mut lifetimes[id.0 as usize];
            lifetime.first = lifetime.first.min(index);
            lifetime.last = lifetime.last.max(index);
        }
    }
    lifetimes
}

/// First fit by offset among the values that are alive together.
#[derive(Default)]
struct Placer {
    placed: Vec<(Lifetime, Region)>,
    len: ByteLen,
}

impl Placer {
    fn place(&mut self, lifetime: Lifetime, len: ByteLen) -> Region {
        let mut taken: Vec<Region> = self
            .placed
            .iter()
            .filter(|(other, _)| other.first <= lifetime.last && lifetime.first <= other.last)
            .map(|(_, region)| *region)
            .collect();
        taken.sort_by_key(|region| region.offset);
        let mut offset = 0;
        for region in taken {
            if offset + len.0 <= region.offset.0 {
                break;
            }
            offset = offset.max(region.offset.0 + region.len.0);
        }
        let region = Region { offset: ByteLen(offset), len };
        self.placed.push((lifetime, region));
        self.len = self.len.max(ByteLen(offset + len.0));
        region
    }
}

/// What an instruction reads and writes. What its epilogue reads of its own results counts as read too: nobody else
/// could have written it.
fn resources(instruction: &Instruction, values: &[(Value, Place)]) -> (Vec<Resource>, Vec<Resource>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for node in instruction.nodes() {
        add_resources(&node, values, &mut reads, &mut writes);
    }
    (reads, writes)
}

fn add_resources(
    node: &Node,
    values: &[(Value, Place)],
    reads: &mut Vec<Resource>,
    writes: &mut Vec<Resource>,
) {
    for (id, how) in node.operation.uses() {
        let resource = match values[id.0 as usize].1 {
            Place::Logits => Resource::Logits,
            Place::Activations(region) => {
                Resource::Bytes { start: region.offset.0, end: region.offset.0 + region.len.0 }
            }
        };
        match how {
            Use::Read => reads.push(resource),
            Use::Define => writes.push(resource),
            Use::Update => {
                reads.push(resource);
                writes.push(resource);
            }
        }
    }
    match node.operation {
        Operation::KvWrite { layer, .. } => {
            reads.push(Resource::StepState);
            writes.push(Resource::Cache { layer });
        }
        Operation::Attention { layer, .. } => {
            reads.push(Resource::StepState);
            reads.push(Resource::Cache { layer });
        }
        Operation::Embed { .. } | Operation::Rope { .. } => reads.push(Resource::StepState),
        Operation::Sample { .. } => writes.push(Resource::StepState),
        _ => {}
    }
}

fn overlaps(one: &Resource, other: &Resource) -> bool {
    match (one, other) {
        (Resource::Bytes { start, end }, Resource::Bytes { start: other_start, end: other_end }) => {
            start < other_end && other_start < end
        }
        _ => one == other,
    }
}

fn set_barriers(instructions: &mut [Instruction], values: &[(Value, Place)]) {
    let mut read: Vec<Resource> = Vec::new();
    let mut written: Vec<Resource> = Vec::new();
    let touches = |all: &[Resource], some: &[Resource]| {
        all.iter().any(|one| some.iter().any(|other| overlaps(one, other)))
    };
    for instruction in instructions {
        let (reads, writes) = resources(instruction, values);
        instruction.barrier_before =
            touches(&written, &reads) || touches(&written, &writes) || touches(&read, &writes);
        if instruction.barrier_before {
            read.clear();
            written.clear();
        }
        read.extend(reads);
        written.extend(writes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::{WeightClass, WeightId};
    use proptest::prelude::*;

    #[test]
    fn quantised_rows_have_room_for_whole_tiles() {
        let len = |form, rows| value_len(&Value { name: "value", elements: 64, form }, rows).0 / 256;
        assert_eq!([1, 8, 9, 17].map(|rows| len(Form::Vector, rows)), [1, 8, 9, 17]);
        assert_eq!([1, 8, 9, 17].map(|rows| len(Form::Quantised, rows)), [1, 8, 16, 32]);
    }

    /// Layer 0's nodes of these operations, and one that reads value 9 after them if it is asked for.
    fn epilogue(operations: [Operation; 2], heads: u32, head_size: u32, is_read_later: bool) -> bool {
        let node = |operation| Node { operation, layer: Some(0) };
        let [one, next] = operations.map(node);
        let reader = node(Operation::Scale { vector: ValueId(9), factor: 2.0 });
        let config = ModelConfig { heads, head_size, ..crate::graph::tests::config() };
        let later = &[reader][..usize::from(is_read_later)];
        let is_epilogue = is_epilogue(&one, &next, later, &config);
        // Never over the edge of a layer.
        assert!(!super::is_epilogue(&one, &Node { layer: Some(1), ..next }, later, &config));
        is_epilogue
    }

    #[test]
    fn a_product_is_added_where_nobody_else_reads_it() {
        let weight = WeightId::new(WeightClass::Down, 0);
        let activations = Activations::F32;
        let matmul = |input| Operation::Matmul { weight, input, activations, output: ValueId(9) };
        let add = |hidden, addend| Operation::ResidualAdd { hidden, addend };
        let (input, hidden, product) = (ValueId(1), ValueId(2), ValueId(9));
        let is = |operations, is_read_later| epilogue(operations, 4, 64, is_read_later);
        assert!(is([matmul(input), add(hidden, product)], false));
        assert!(
            !is([matmul(input), add(hidden, product)], true),
            "what reads the product would find nothing"
        );
        assert!(!is([matmul(input), add(input, product)], false), "units read what others have changed");
        assert!(!is([matmul(input), add(product, product)], false), "there is nothing that it is added to");
        assert!(
            !is([matmul(input), add(hidden, input)], false)
                && !is([matmul(input), add(product, hidden)], false)
        );
    }

    #[test]
    fn a_vector_becomes_integers_where_it_is_made() {
        let (input, output, integers) = (ValueId(1), ValueId(9), ValueId(3));
        let quantise = |input| Operation::Quantise { input, activations: Activations::A8, output: integers };
        let attention = Operation::Attention { query: input, output, layer: 0, window: None };
        for made in [
            Operation::RmsNorm { input, weight: WeightId::new(WeightClass::Down, 0), output },
            Operation::SwiGlu { gate: input, up: input, output },
            Operation::GeGlu { gate: input, up: input, output },
            attention,
        ] {
            assert!(epilogue([made, quantise(output)], 4, 64, true), "{}", made.name());
            assert!(!epilogue([made, quantise(input)], 4, 64, true), "{}", made.name());
        }
        // Heads of no whole blocks, and rows that end within a stretch.
        for (heads, head_size) in [(128, 8), (9, 64), (12, 128)] {
            assert!(
                !epilogue([attention, quantise(output)], heads, head_size, true),
                "{heads} x {head_size}"
            );
        }
    }

    /// By the docs of the operations: what a step knows of its row, SAMPLE advances; the cache of a layer is written
    /// before it is read.
    #[test]
    fn operations_touch_the_state_and_the_cache_besides_their_values() {
        let (a, b) = (ValueId(0), ValueId(1));
        let weight = WeightId::new(WeightClass::Embedding, 0);
        let (state, cache) = (Resource::StepState, Resource::Cache { layer: 3 });
        let layout = crate::rope::RopeLayout::Halves;
        let cases: [(Operation, &[Resource], &[Resource]); 6] = [
            (Operation::Embed { table: weight, output: a }, &[state], &[]),
            (Operation::Rope { vector: a, heads: 1, layout, table: 0 }, &[state], &[]),
            (Operation::KvWrite { key: a, value: b, layer: 3 }, &[state], &[cache]),
            (Operation::Attention { query: a, output: b, layer: 3, window: None }, &[state, cache], &[]),
            (Operation::Sample { logits: a }, &[], &[state]),
            (Operation::Scale { vector: a, factor: 2.0 }, &[], &[]),
        ];
        let region = |offset| Place::Activations(Region { offset: ByteLen(offset), len: ByteLen(256) });
        let value = || Value { name: "value", elements: 64, form: Form::Vector };
        let values = [(value(), region(0)), (value(), region(256))];
        for (operation, reads, writes) in cases {
            let node = Node { operation, layer: None };
            let besides = |resources: Vec<Resource>| -> Vec<Resource> {
                resources.into_iter().filter(|one| !matches!(one, Resource::Bytes { .. })).collect()
            };
            let (mut found_reads, mut found_writes) = (Vec::new(), Vec::new());
            add_resources(&node, &values, &mut found_reads, &mut found_writes);
            assert_eq!(
                (&*besides(found_reads), &*besides(found_writes)),
                (reads, writes),
                "{}",
                operation.name()
            );
        }
    }

    #[test]
    fn an_instruction_is_told_with_its_epilogue() {
        let (hidden, addend) = (ValueId(0), ValueId(1));
        let weight = WeightId::new(WeightClass::Down, 3);
        let matmul =
            Operation::Matmul { weight, input: hidden, activations: Activations::F32, output: addend };
        let of = |operation| Node { operation, layer: Some(3) };
        let epilogue = of(Operation::ResidualAdd { hidden, addend });
        let told = |node, epilogue| Instruction { node, epilogue, barrier_before: true }.to_string();
        assert_eq!(told(of(matmul), None), "matmul blk.3.ffn_down.weight");
        assert_eq!(told(of(matmul), Some(epilogue)), "matmul blk.3.ffn_down.weight + residual_add");
        assert_eq!(told(epilogue, None), "residual_add of layer 3");
    }

    #[test]
    fn ranges_overlap_that_share_a_byte() {
        let bytes = |start, end| Resource::Bytes { start, end };
        let is = |one, other| {
            assert_eq!(overlaps(&one, &other), overlaps(&other, &one));
            overlaps(&one, &other)
        };
        assert!(is(bytes(256, 512), bytes(256, 512)) && is(bytes(256, 512), bytes(0, 257)));
        assert!(is(bytes(0, 1024), bytes(256, 512)) && is(bytes(511, 600), bytes(256, 512)));
        assert!(!is(bytes(256, 512), bytes(0, 256)) && !is(bytes(256, 512), bytes(512, 768)));
        assert!(is(Resource::Logits, Resource::Logits) && !is(Resource::Logits, Resource::StepState));
        let cache = |layer| Resource::Cache { layer };
        assert!(is(cache(1), cache(1)) && !is(cache(1), cache(2)) && !is(cache(1), bytes(0, 256)));
    }

    #[test]
    fn memory_is_used_again_by_values_that_are_not_alive_together() {
        let mut placer = Placer::default();
        let mut place = |first, last, len| placer.place(Lifetime { first, last }, ByteLen(len)).offset.0;
        assert_eq!(place(0, 2, 512), 0);
        assert_eq!(place(1, 3, 256), 512, "beside the first");
        assert_eq!(place(3, 5, 512), 0, "in place of the first");
        assert_eq!(place(4, 5, 256), 512, "in place of the second");
        assert_eq!(place(5, 6, 256), 768, "behind both");
        assert_eq!(place(9, 9, 1024), 0, "alone");
        assert_eq!(place(9, 9, 256), 1024);
        assert_eq!(placer.len, ByteLen(1280));
    }

    proptest! {
        #[test]
        fn values_alive_together_never_share_a_byte(
            spans in proptest::collection::vec((0usize..40, 0usize..12, 1u32..5000), 1..60)
        ) {
            let mut placer = Placer::default();
            let mut spans = spans;
            spans.sort();
            for (first, extra, elements) in spans {
                let lifetime = Lifetime { first, last: first + extra };
                let len = value_len(&Value { name: "value", elements, form: Form::Vector }, 1);
                let region = placer.place(lifetime, len);
                prop_assert!(region.len.0 >= u64::from(elements) * 4 && region.offset.0 % REGION_ALIGNMENT == 0);
                prop_assert!(region.offset.0 + region.len.0 <= placer.len.0);
            }
            for (index, (one, region)) in placer.placed.iter().enumerate() {
                for (other, other_region) in &placer.placed[index + 1..] {
                    let together = one.first <= other.last && other.first <= one.last;
                    let apart = region.offset.0 + region.len.0 <= other_region.offset.0
                        || other_region.offset.0 + other_region.len.0 <= region.offset.0;
                    prop_assert!(!together || apart);
                }
            }
        }
    }
}
