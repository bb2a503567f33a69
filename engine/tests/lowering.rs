//! What kernels are told: the tasks of two plans in words, against lines that were counted by hand from the memory plan
//! and `docs/kernels.md`.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod made;

use made::{Made, Pair, WIDTH};
use std::collections::BTreeMap;
use zrt_engine::activations::Activations;
use zrt_engine::executor::lowering::{Addresses, Planning, Task, lower, task_count};
use zrt_engine::gguf::TensorKind;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::{AllocationId, Capacity, MemoryPlan};
use zrt_engine::placement::Placement;
use zrt_engine::plan::ExecutionPlan;
use zrt_mem::{GpuVa, Heap};
use zrt_protocol::params::{PARAMETER_BLOCKS, ParameterBlock};

/// Columns of a line of words.
const LINE: usize = 110;
/// Fields that hold the bits of a float.
const FLOATS: [&str; 7] =
    ["inverse_count", "inverse_head_size", "epsilon", "scale", "factor", "steepness", "cap"];

/// The tasks of a plan, and the names of allocations by address.
struct Lowered {
    tasks: Vec<Task>,
    names: BTreeMap<u64, String>,
    counted: u32,
}

/// Allocation n begins at n + 1 times 4 GiB.
fn lowered(made: &Made, rows: u32, kv_format: KvFormat, activations: Activations) -> Lowered {
    let model = made.load().unwrap();
    let plan = ExecutionPlan::step(&model, 40, rows, activations).unwrap();
    let capacity = Capacity {
        slots: 2,
        pages: 6,
        kv_format,
        tasks: task_count(&plan),
        input_entries: 8,
        output_entries: 256,
        output_heap: Heap::Host,
        placement: Placement::default(),
    };
    let memory = MemoryPlan::new(&model, &plan, &capacity).unwrap();
    let numbered = || memory.allocations.iter().map(|one| one.id).zip(1u64..);
    let bases: BTreeMap<AllocationId, GpuVa> = numbered().map(|(id, n)| (id, GpuVa(n << 32))).collect();
    let names = numbered().map(|(id, number)| (number, id.name().replace("weights.", ""))).collect();
    let addresses = Addresses { model: &model, plan: &plan, memory: &memory, bases: &bases, kv_format };
    let planning = Planning { input_entries: 8, output_entries: 256, chunk_rows: 5, waits: true };
    Lowered { tasks: lower(&addresses, &planning).unwrap(), names, counted: task_count(&plan) }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Lowered {
    /// An address as an allocation and a distance.
    fn place(&self, va: u64) -> String {
        format!("{}+{}", self.names[&(va >> 32)], va & 0xffff_ffff)
    }

    fn block(task: &Task) -> &'static ParameterBlock {
        PARAMETER_BLOCKS.iter().find(|block| block.opcode as u16 == task.header.opcode).unwrap()
    }

    /// The fields behind the header that are not 0.
    fn fields(&self, task: &Task) -> Vec<String> {
        let mut told = Vec::new();
        for (name, at, bytes) in Self::block(task).layout.fields {
            // Only planes are several numbers.
            let values = task.parameters[*at..at + bytes].chunks(if *bytes > 8 { 8 } else { *bytes });
            for value in values.map(number).filter(|value| *value != 0) {
                told.push(if let Some(name) = name.strip_suffix("_va") {
                    format!("{name} {}", self.place(value))
                } else if FLOATS.contains(name) {
                    format!("{name} {:?}", f32::from_bits(value as u32))
                } else {
                    format!("{name} {value}")
                });
            }
        }
        told
    }

    /// The kernel with its units and rows, then its fields.
    fn told(&self, task: &Task) -> String {
        let rows = number(&task.parameters[20..24]);
        let set = ["once", "each row", "each output", "all rows", "all outputs"][(rows & 0xff) as usize];
        let mut words = vec![format!("{} units for {set}", number(&task.parameters[16..20]))];
        words.push(format!("at most {}", task.units_max));
        words.extend((rows >> 8 & 0xff != 0).then(|| "odd".to_owned()));
        words.extend((rows >> 16 != 0).then(|| format!("joined {}", rows >> 16)));
        words.extend(task.barrier_before.then(|| "waits".to_owned()));
        words.extend(task.weight_pieces.map(|pieces| {
            format!("{} pieces of {} from {}", pieces.count, pieces.bytes, self.place(pieces.plane_va))
        }));
        let mut text = task.kernel.to_owned();
        let mut line = text.len() + 1;
        for word in words.into_iter().chain(self.fields(task)) {
            let (before, after) = if line + word.len() > LINE { ("\n    ", 4) } else { (" ", line + 1) };
            text += &format!("{before}{word},");
            line = after + word.len() + 1;
        }
        text
    }
}

fn check(lowered: &Lowered, tasks: std::ops::Range<usize>, expected: &str) {
    let told: Vec<String> = lowered.tasks[tasks].iter().map(|task| lowered.told(task)).collect();
    let told = told.join("\n");
    assert!(told == expected.trim(), "{told}");
}

/// Each block says what it is, how long, and which step it works on; a task has the same header.
#[test]
fn every_block_begins_with_its_header() {
    let lowered = lowered(&llama(), 3, KvFormat::F16, Activations::F32);
    for task in &lowered.tasks {
        let block = Lowered::block(task);
        let parts = [0..2, 2..4, 4..8].map(|part| number(&task.parameters[part]));
        assert_eq!(parts, [2, block.opcode as u64, block.layout.bytes as u64], "{}", task.kernel);
        assert_eq!(task.parameters.len(), block.layout.bytes);
        assert_eq!(lowered.place(number(&task.parameters[8..16])), "step+0", "{}", task.kernel);
        let header = [task.header.units, task.header.rows].map(u64::from);
        assert_eq!(header, [16..20, 20..24].map(|part| number(&task.parameters[part])));
    }
}

/// Three layers of F32 with 288 columns in the feed-forward layer, and 20 tokens.
fn llama() -> Made {
    Made::new("llama", TensorKind::F32)
        .with("feed_forward_length", Pair::Number(288))
        .shaped("token_embd.weight", &[WIDTH, 20])
        .shaped("blk.0.ffn_gate.weight", &[WIDTH, 288])
        .shaped("blk.0.ffn_up.weight", &[WIDTH, 288])
        .shaped("blk.0.ffn_down.weight", &[288, WIDTH])
        .with_layers(3)
}

/// Two layers of Q8_0 with heads of 40 elements and 544 columns in the feed-forward layer.
fn gemma3() -> Made {
    Made::new("gemma3", TensorKind::Q8_0)
        .with("attention.key_length", Pair::Number(40))
        .with("attention.sliding_window", Pair::Number(3))
        .with("attention.sliding_window_pattern", Pair::Number(2))
        .with("final_logit_softcapping", Pair::Float(8.0))
        .with("feed_forward_length", Pair::Number(544))
        .shaped("blk.0.attn_q.weight", &[WIDTH, 160])
        .shaped("blk.0.attn_k.weight", &[WIDTH, 80])
        .shaped("blk.0.attn_v.weight", &[WIDTH, 80])
        .shaped("blk.0.attn_output.weight", &[160, WIDTH])
        .shaped("blk.0.attn_q_norm.weight", &[40])
        .shaped("blk.0.attn_k_norm.weight", &[40])
        .shaped("blk.0.ffn_gate.weight", &[WIDTH, 544])
        .shaped("blk.0.ffn_up.weight", &[WIDTH, 544])
        .shaped("blk.0.ffn_down.weight", &[544, WIDTH])
        .with_layers(2)
}

/// PLAN, EMBED, the norm and the BOUNDARY that layer 0 begins with.
const FLOATS_BEGIN: &str = "\
plan 1 units for once, at most 1, slots slots+0, control control+0, tokens tokens+0, host_pages host_pages+0,
    pages pages+0, plan_state plan_state+0, input input_ring+0, output output_ring+0, stops stops+0,
    consumed consumed+0, status status+0, context 40, pages_per_slot 3, input_mask 7, output_mask 255,
    chunk_rows 5, waits 1, tops tops+0, output_tops output_tops+0,
embed_f32 1 units for each row, at most 3, waits, plane token_embd+0, output activations+0, columns 256,
    chunks 8, vocabulary 20, output_stride 1024,
rms_norm 1 units for each row, at most 3, waits, input activations+0, weight attn_norm+0,
    output activations+3072, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
boundary 1 units for once, at most 1, slots slots+0, control control+0, snapshot 1,
";
/// Layer 1, which has the odd snapshot, and the second norm, matrices and rows of the cache.
const FLOATS_LAYER: &str = "\
rms_norm 1 units for each row, at most 3, odd, waits, input activations+0, weight attn_norm+1024,
    output activations+3072, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
boundary 1 units for once, at most 1, slots slots+0, control control+0,
matmul_f32 2 units for all rows, at most 2, odd, waits, 64 pieces of 4096 from attn_q+262144,
    plane attn_q+262144, input activations+3072, output activations+6144, weight_rows 256, columns 256,
    chunks 8, lanes_per_row_log2 3, input_stride 1024, output_stride 1024,
matmul_f32 1 units for all rows, at most 1, odd, 32 pieces of 4096 from attn_k+131072, plane attn_k+131072,
    input activations+3072, output activations+9216, weight_rows 128, columns 256, chunks 8,
    lanes_per_row_log2 3, input_stride 1024, output_stride 512,
matmul_f32 1 units for all rows, at most 1, odd, 32 pieces of 4096 from attn_v+131072, plane attn_v+131072,
    input activations+3072, output activations+10752, weight_rows 128, columns 256, chunks 8,
    lanes_per_row_log2 3, input_stride 1024, output_stride 512,
rope_interleaved 1 units for each row, at most 3, odd, waits, vector activations+6144, table rope_table+0,
    heads 4, head_size 64, rotary_dimensions 64, stride 1024,
rope_interleaved 1 units for each row, at most 3, odd, vector activations+9216, table rope_table+0, heads 2,
    head_size 64, rotary_dimensions 64, stride 512,
kv_write_f16 1 units for each row, at most 3, odd, waits, key activations+9216, value activations+10752,
    page_table pages+0, pool kv_pool+8192, page_bytes 24576, pages_per_slot 3, row_elements 128, row_bytes 256,
    stride 512,
attention_f16 4 units for each row, at most 12, odd, joined 1, waits, query activations+6144,
    output activations+3072, page_table pages+0, pool kv_pool+8192, page_bytes 24576, pages_per_slot 3,
    row_elements 128, row_bytes 256, stride 1024, head_size 64, group_size 2, scale 0.125, window 4294967295,
matmul_f32 2 units for all rows, at most 2, odd, waits, 64 pieces of 4096 from attn_output+262144,
    plane attn_output+262144, input activations+3072, output activations+0, addend activations+0,
    weight_rows 256, columns 256, chunks 8, lanes_per_row_log2 3, input_stride 1024, output_stride 1024,
rms_norm 1 units for each row, at most 3, odd, waits, input activations+0, weight ffn_norm+1024,
    output activations+3072, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
matmul_f32 3 units for all rows, at most 3, odd, waits, 72 pieces of 4096 from ffn_gate+294912,
    plane ffn_gate+294912, input activations+3072, output activations+6144, weight_rows 288, columns 256,
    chunks 8, lanes_per_row_log2 3, input_stride 1024, output_stride 1280,
matmul_f32 3 units for all rows, at most 3, odd, 72 pieces of 4096 from ffn_up+294912, plane ffn_up+294912,
    input activations+3072, output activations+9984, weight_rows 288, columns 256, chunks 8,
    lanes_per_row_log2 3, input_stride 1024, output_stride 1280,
swiglu 2 units for each row, at most 6, odd, waits, gate activations+6144, up activations+9984,
    output activations+13824, count 288, stride 1280,
matmul_f32 4 units for all rows, at most 4, odd, waits, 128 pieces of 2304 from ffn_down+294912,
    plane ffn_down+294912, input activations+13824, output activations+0, addend activations+0, weight_rows 256,
    columns 288, chunks 9, lanes_per_row_log2 4, input_stride 1280, output_stride 1024,
";
/// Layer 2 has no BOUNDARY behind it.
const FLOATS_LAST: &str = "\
rms_norm 1 units for each row, at most 3, waits, input activations+0, weight attn_norm+2048,
    output activations+3072, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
matmul_f32 2 units for all rows, at most 2, waits, 64 pieces of 4096 from attn_q+524288, plane attn_q+524288,
    input activations+3072, output activations+6144, weight_rows 256, columns 256, chunks 8,
    lanes_per_row_log2 3, input_stride 1024, output_stride 1024,
";
const FLOATS_END: &str = "\
rms_norm 1 units for each output, at most 3, waits, input activations+0, weight output_norm+0,
    output activations+3072, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
matmul_f32 1 units for all outputs, at most 1, waits, 5 pieces of 4096 from token_embd+0, plane token_embd+0,
    input activations+3072, output logits+0, weight_rows 20, columns 256, chunks 8, lanes_per_row_log2 3,
    input_stride 1024, output_stride 256,
sample 1 units for each output, at most 3, waits, logits logits+0, slots slots+0, tokens tokens+0,
    vocabulary 20, logits_stride 256, context 40, adjusted adjusted_logits+0, extras extras+0, tops tops+0,
";
/// With the first layer, which has a window and the second rotary table. 200 rows are two bands.
const INTEGERS_BEGIN: &str = "\
embed_q8_0 1 units for each row, at most 200, waits, plane token_embd+0, plane token_embd+4096,
    output activations+0, columns 256, chunks 8, vocabulary 16, output_stride 1024,
scale 1 units for each row, at most 200, waits, vector activations+0, count 256, stride 1024, factor 16.0,
rms_norm 1 units for each row, at most 200, waits, input activations+0, weight attn_norm+0,
    output activations+204800, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
    integers activations+409600, integers_stride 512, factors_offset 256, limbs 1,
boundary 1 units for once, at most 1, slots slots+0, control control+0, snapshot 1,
matmul_q8_0_a8 2 units for all rows, at most 4, waits, 40 pieces of 1024 from attn_q+0, plane attn_q+0,
    plane attn_q+40960, input activations+409600, output activations+204800, weight_rows 160, columns 256,
    chunks 8, lanes_per_row_log2 3, input_stride 512, output_stride 768, factors_offset 256,
matmul_q8_0_a8 1 units for all rows, at most 2, 20 pieces of 1024 from attn_k+0, plane attn_k+0,
    plane attn_k+20480, input activations+409600, output activations+516096, weight_rows 80, columns 256,
    chunks 8, lanes_per_row_log2 3, input_stride 512, output_stride 512, factors_offset 256,
matmul_q8_0_a8 1 units for all rows, at most 2, 20 pieces of 1024 from attn_v+0, plane attn_v+0,
    plane attn_v+20480, input activations+409600, output activations+618496, weight_rows 80, columns 256,
    chunks 8, lanes_per_row_log2 3, input_stride 512, output_stride 512, factors_offset 256,
qk_norm 1 units for each row, at most 200, waits, vector activations+204800, weight attn_q_norm+0, heads 4,
    head_size 40, inverse_head_size 0.025, epsilon 1e-5, stride 768,
qk_norm 1 units for each row, at most 200, vector activations+516096, weight attn_k_norm+0, heads 2,
    head_size 40, inverse_head_size 0.025, epsilon 1e-5, stride 512,
rope_halves 1 units for each row, at most 200, waits, vector activations+204800, table rope_table+6400,
    heads 4, head_size 40, rotary_dimensions 40, stride 768,
rope_halves 1 units for each row, at most 200, vector activations+516096, table rope_table+6400, heads 2,
    head_size 40, rotary_dimensions 40, stride 512,
kv_write_q8_0 1 units for each row, at most 200, waits, key activations+516096, value activations+618496,
    page_table pages+0, pool kv_pool+0, page_bytes 7168, pages_per_slot 3, row_elements 80, row_bytes 112,
    stride 512,
attention_q8_0 4 units for each row, at most 800, waits, query activations+204800, output activations+358400,
    page_table pages+0, pool kv_pool+0, page_bytes 7168, pages_per_slot 3, row_elements 80, row_bytes 112,
    stride 768, head_size 40, group_size 2, scale 0.15811388, window 3,
quantise_a8 1 units for each row, at most 200, waits, input activations+358400, count 160, input_stride 768,
    integers activations+204800, integers_stride 512, factors_offset 256,
matmul_q8_0_a8 2 units for all rows, at most 4, waits, 64 pieces of 640 from attn_output+0,
    plane attn_output+0, plane attn_output+42496, input activations+204800, output activations+311296,
    weight_rows 256, columns 160, chunks 5, lanes_per_row_log2 3, input_stride 512, output_stride 1024,
    factors_offset 256,
rms_norm 1 units for each row, at most 200, waits, input activations+311296, weight post_attention_norm+0,
    output activations+516096, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
residual_add 1 units for each row, at most 200, waits, hidden activations+0, addend activations+516096,
    count 256, stride 1024, addend_stride 1024,
rms_norm 1 units for each row, at most 200, waits, input activations+0, weight ffn_norm+0,
    output activations+204800, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
    integers activations+409600, integers_stride 512, factors_offset 256, limbs 1,
matmul_q8_0_a8 5 units for all rows, at most 10, waits, 136 pieces of 1024 from ffn_gate+0, plane ffn_gate+0,
    plane ffn_gate+139264, input activations+409600, output activations+516096, weight_rows 544, columns 256,
    chunks 8, lanes_per_row_log2 3, input_stride 512, output_stride 2304, factors_offset 256,
matmul_q8_0_a8 5 units for all rows, at most 10, 136 pieces of 1024 from ffn_up+0, plane ffn_up+0,
    plane ffn_up+139264, input activations+409600, output activations+976896, weight_rows 544, columns 256,
    chunks 8, lanes_per_row_log2 3, input_stride 512, output_stride 2304, factors_offset 256,
geglu 4 units for each row, at most 800, waits, gate activations+516096, up activations+976896,
    output activations+1437696, count 544, stride 2304, integers activations+204800, integers_stride 1280,
    factors_offset 1024, limbs 1,
matmul_q8_0_a8 8 units for all rows, at most 16, waits, 256 pieces of 544 from ffn_down+0, plane ffn_down+0,
    plane ffn_down+142848, input activations+204800, output activations+471040, weight_rows 256, columns 544,
    chunks 17, lanes_per_row_log2 5, input_stride 1280, output_stride 1024, factors_offset 1024,
    tile_parts_log2 1,
rms_norm 1 units for each row, at most 200, waits, input activations+471040, weight post_ffw_norm+0,
    output activations+204800, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
residual_add 1 units for each row, at most 200, waits, hidden activations+0, addend activations+204800,
    count 256, stride 1024, addend_stride 1024,
";
/// Rotations, cache and attention of layer 1.
const INTEGERS_LAYER: &str = "\
rope_halves 1 units for each row, at most 200, odd, waits, vector activations+204800, table rope_table+0,
    heads 4, head_size 40, rotary_dimensions 40, stride 768,
rope_halves 1 units for each row, at most 200, odd, vector activations+516096, table rope_table+0, heads 2,
    head_size 40, rotary_dimensions 40, stride 512,
kv_write_q8_0 1 units for each row, at most 200, odd, waits, key activations+516096, value activations+618496,
    page_table pages+0, pool kv_pool+3584, page_bytes 7168, pages_per_slot 3, row_elements 80, row_bytes 112,
    stride 512,
attention_q8_0 4 units for each row, at most 800, odd, waits, query activations+204800,
    output activations+358400, page_table pages+0, pool kv_pool+3584, page_bytes 7168, pages_per_slot 3,
    row_elements 80, row_bytes 112, stride 768, head_size 40, group_size 2, scale 0.15811388, window 4294967295,
";
const INTEGERS_END: &str = "\
rms_norm 1 units for each output, at most 200, waits, input activations+0, weight output_norm+0,
    output activations+204800, count 256, inverse_count 0.00390625, epsilon 1e-5, stride 1024,
    integers activations+409600, integers_stride 512, factors_offset 256, limbs 1,
matmul_q8_0_a8 1 units for all outputs, at most 1, waits, 4 pieces of 1024 from token_embd+0,
    plane token_embd+0, plane token_embd+4096, input activations+409600, output logits+0, weight_rows 16,
    columns 256, chunks 8, lanes_per_row_log2 3, input_stride 512, output_stride 256, factors_offset 256,
soft_cap 1 units for each output, at most 200, waits, vector logits+0, count 16, stride 256, steepness 0.25,
    cap 8.0,
sample 1 units for each output, at most 200, waits, logits logits+0, slots slots+0, tokens tokens+0,
    vocabulary 16, logits_stride 256, context 40, adjusted adjusted_logits+0, extras extras+0, tops tops+0,
";

/// An embedding, three times 14 instructions of a layer, norm, logits and choice; PLAN and two BOUNDARYs.
#[test]
fn tasks_of_floats_are_told_what_was_counted() {
    let lowered = lowered(&llama(), 3, KvFormat::F16, Activations::F32);
    assert_eq!((lowered.tasks.len(), lowered.counted), (1 + 3 * 14 + 3 + 1 + 2, 49));
    check(&lowered, 0..4, FLOATS_BEGIN);
    check(&lowered, 17..32, FLOATS_LAYER);
    check(&lowered, 32..34, FLOATS_LAST);
    check(&lowered, 46..49, FLOATS_END);
    // Instructions are numbered, and what belongs to none is not.
    let of_none = |task: &usize| [0, 3, 18].contains(task);
    let mut numbers = 0..;
    for (task, found) in lowered.tasks.iter().map(|task| task.instruction).enumerate() {
        assert_eq!(found, if of_none(&task) { None } else { numbers.next() }, "task {task}");
    }
}

/// Embedding and scale, twice 21 instructions of a layer, norm, logits, cap and choice; PLAN and a BOUNDARY.
#[test]
fn tasks_of_integers_are_told_what_was_counted() {
    let lowered = lowered(&gemma3(), 200, KvFormat::Q8_0, Activations::A8);
    assert_eq!((lowered.tasks.len(), lowered.counted), (2 + 2 * 21 + 4 + 1 + 1, 50));
    check(&lowered, 1..25, INTEGERS_BEGIN);
    check(&lowered, 31..35, INTEGERS_LAYER);
    check(&lowered, 46..50, INTEGERS_END);
}

/// Four rows of 256 columns are a piece: as many as 32 lanes have, of which eight share a row.
#[test]
fn a_product_of_few_rows_has_no_pieces() {
    for (rows, pieces) in [(3, None), (4, Some((4096, 1))), (7, Some((4096, 1))), (8, Some((4096, 2)))] {
        let made = Made::new("llama", TensorKind::F32).shaped("token_embd.weight", &[WIDTH, rows]);
        let lowered = lowered(&made, 1, KvFormat::F32, Activations::F32);
        let output = &lowered.tasks[lowered.tasks.len() - 2];
        let found = output.weight_pieces.map(|pieces| (pieces.bytes, pieces.count));
        assert_eq!((output.kernel, found), ("matmul_f32", pieces), "{rows} rows");
    }
}
