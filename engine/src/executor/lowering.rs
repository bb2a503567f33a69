//! Plan → dispatches: which kernel runs each operation, with which parameter block and grid.
//!
//! Contract: a static table from opcode to adapter; an operation or weight type without a row is an error when the
//! plan is lowered, never a run-time fall-back. Nothing here depends on a token: positions and tokens are read by
//! the kernels from the step state.

use super::ExecutorError;
use super::layout::{CHUNK_COLUMNS, PLANES_MAX};
use crate::gguf::TensorKind;
use crate::graph::{Operation, ValueId};
use crate::memory_plan::{AllocationId, MemoryPlan};
use crate::model::{Model, RopeLayout, WeightId};
use crate::plan::{ExecutionPlan, Place};
use std::collections::BTreeMap;
use zerocopy::{Immutable, IntoBytes};
use zrt_asm::params;
use zrt_mem::{ByteLen, GpuVa};

/// Threads of the elementwise kernels' workgroups (`docs/kernels.md`).
const ELEMENT_THREADS: u32 = 256;
/// Waves of a matvec workgroup.
const MATVEC_WAVES: u32 = 4;
/// Lanes of a wave.
const WAVE_LANES: u32 = 32;

/// One dispatch, addresses resolved.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Kernel name, as in the blobs' manifest.
    pub kernel: &'static str,
    /// The parameter block.
    pub parameters: Vec<u8>,
    /// Workgroups in x, y, z.
    pub groups: [u32; 3],
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
}

type Adapter = fn(&Addresses<'_>, &Operation) -> Result<Dispatch, ExecutorError>;

/// Opcode → adapter.
const ADAPTERS: &[(&str, Adapter)] = &[
    ("embed", embed),
    ("rms_norm", rms_norm),
    ("qk_norm", qk_norm),
    ("matvec", matvec),
    ("rope", rope),
    ("kv_write", kv_write),
    ("attention", attention),
    ("swiglu", swiglu),
    ("residual_add", residual_add),
    ("argmax", argmax),
];

/// Kernel names by weight type: (type, embed, matvec).
const WEIGHT_KERNELS: &[(TensorKind, &str, &str)] = &[
    (TensorKind::F32, "embed_f32", "matvec_f32"),
    (TensorKind::F16, "embed_f16", "matvec_f16"),
    (TensorKind::BF16, "embed_bf16", "matvec_bf16"),
    (TensorKind::Q8_0, "embed_q8_0", "matvec_q8_0"),
    (TensorKind::Q4_0, "embed_q4_0", "matvec_q4_0"),
    (TensorKind::Q4_K, "embed_q4_k", "matvec_q4_k"),
    (TensorKind::Q6_K, "embed_q6_k", "matvec_q6_k"),
];

/// Lowers one operation.
pub fn lower(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let adapter = ADAPTERS.iter().find(|(name, _)| *name == operation.name()).map(|(_, adapter)| *adapter);
    adapter.ok_or_else(|| no_adapter(operation, "this device"))?(addresses, operation)
}

fn no_adapter(operation: &Operation, detail: &str) -> ExecutorError {
    ExecutorError::NoAdapter { executor: "device", operation: operation.name(), detail: detail.into() }
}

impl Addresses<'_> {
    fn at(&self, id: AllocationId, offset: ByteLen) -> Result<u64, ExecutorError> {
        let base = self.bases.get(&id).copied().unwrap_or_default();
        base.offset(offset).map(|va| va.0).ok_or(ExecutorError::Overflow { what: "an address" })
    }

    fn value(&self, id: ValueId) -> Result<u64, ExecutorError> {
        match self.plan.place(id) {
            Place::Activations(region) => self.at(AllocationId::Activations, region.offset),
            Place::Logits => self.at(AllocationId::Step, self.memory.step.logits.offset),
        }
    }

    fn elements(&self, id: ValueId) -> u32 {
        self.plan.value(id).elements
    }

    fn planes(&self, id: WeightId) -> Result<[u64; PLANES_MAX], ExecutorError> {
        let (offset, layout) = self.memory.weights[&id];
        let mut planes = [0; PLANES_MAX];
        for (va, plane) in planes.iter_mut().zip(layout.planes) {
            if let Some(region) = plane {
                *va = self.at(AllocationId::Weights(id.class), ByteLen(offset.0 + region.offset.0))?;
            }
        }
        Ok(planes)
    }

    fn state(&self) -> Result<u64, ExecutorError> {
        self.at(AllocationId::Step, self.memory.step.state.offset)
    }

    fn tokens(&self) -> Result<u64, ExecutorError> {
        self.at(AllocationId::Step, self.memory.step.tokens.offset)
    }

    fn cache(&self, id: AllocationId, layer: u32) -> Result<u64, ExecutorError> {
        self.at(id, ByteLen(self.plan.cache_layer_len().0 * u64::from(layer)))
    }

    fn kind(&self, id: WeightId) -> TensorKind {
        self.model.weight(id).tensor.kind
    }
}

fn dispatch(
    kernel: &'static str,
    parameters: impl IntoBytes + Immutable,
    groups: u32,
) -> Result<Dispatch, ExecutorError> {
    Ok(Dispatch { kernel, parameters: parameters.as_bytes().to_vec(), groups: [groups, 1, 1] })
}

/// f32 bits of 1/count, rounded once.
fn inverse_bits(count: u32) -> u32 {
    ((1.0 / f64::from(count)) as f32).to_bits()
}

fn weight_kernels(
    addresses: &Addresses<'_>,
    id: WeightId,
    operation: &Operation,
) -> Result<(&'static str, &'static str), ExecutorError> {
    let kind = addresses.kind(id);
    let row = WEIGHT_KERNELS.iter().find(|(known, ..)| *known == kind);
    row.map(|(_, embed, matvec)| (*embed, *matvec)).ok_or_else(|| no_adapter(operation, kind.name()))
}

fn embed(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::Embed { table, output } = *operation else { return Err(no_adapter(operation, "embed")) };
    let columns = addresses.elements(output);
    let chunks = columns.div_ceil(CHUNK_COLUMNS as u32);
    let parameters = params::Embed {
        header: params::Embed::HEADER,
        state_va: addresses.state()?,
        tokens_va: addresses.tokens()?,
        plane_va: addresses.planes(table)?,
        output_va: addresses.value(output)?,
        columns,
        chunks,
        rows: addresses.plan.config.vocabulary,
        reserved: 0,
    };
    dispatch(weight_kernels(addresses, table, operation)?.0, parameters, chunks.div_ceil(WAVE_LANES))
}

fn rms_norm(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::RmsNorm { input, weight, output } = *operation else {
        return Err(no_adapter(operation, "rms_norm"));
    };
    let count = addresses.elements(input);
    let parameters = params::RmsNorm {
        header: params::RmsNorm::HEADER,
        input_va: addresses.value(input)?,
        weight_va: addresses.planes(weight)?[0],
        output_va: addresses.value(output)?,
        count,
        inverse_count: inverse_bits(count),
        epsilon: addresses.plan.config.rms_epsilon.to_bits(),
        reserved: 0,
    };
    dispatch("rms_norm", parameters, 1)
}

fn qk_norm(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::QkNorm { vector, weight, heads } = *operation else {
        return Err(no_adapter(operation, "qk_norm"));
    };
    let config = &addresses.plan.config;
    let parameters = params::QkNorm {
        header: params::QkNorm::HEADER,
        vector_va: addresses.value(vector)?,
        weight_va: addresses.planes(weight)?[0],
        head_size: config.head_size,
        inverse_head_size: inverse_bits(config.head_size),
        epsilon: config.rms_epsilon.to_bits(),
        reserved: 0,
    };
    dispatch("qk_norm", parameters, heads)
}

fn matvec(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::Matvec { weight, input, output } = *operation else {
        return Err(no_adapter(operation, "matvec"));
    };
    let (rows, columns) = (addresses.elements(output), addresses.elements(input));
    let chunks = columns.div_ceil(CHUNK_COLUMNS as u32);
    let lanes_per_row = chunks.next_power_of_two().min(WAVE_LANES);
    let rows_per_group = MATVEC_WAVES * (WAVE_LANES / lanes_per_row) * zrt_asm::MATVEC_ROWS_PER_LANE;
    let parameters = params::Matvec {
        header: params::Matvec::HEADER,
        plane_va: addresses.planes(weight)?,
        input_va: addresses.value(input)?,
        output_va: addresses.value(output)?,
        rows,
        columns,
        chunks,
        lanes_per_row_log2: lanes_per_row.ilog2(),
    };
    dispatch(weight_kernels(addresses, weight, operation)?.1, parameters, rows.div_ceil(rows_per_group))
}

fn rope(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::Rope { vector, heads, layout } = *operation else {
        return Err(no_adapter(operation, "rope"));
    };
    let config = &addresses.plan.config;
    let parameters = params::Rope {
        header: params::Rope::HEADER,
        state_va: addresses.state()?,
        vector_va: addresses.value(vector)?,
        table_va: addresses.at(AllocationId::RopeTable, ByteLen(0))?,
        head_size: config.head_size,
        rotary_dimensions: config.rotary_dimensions,
    };
    let kernel = match layout {
        RopeLayout::Interleaved => "rope_interleaved",
        RopeLayout::Halves => "rope_halves",
    };
    dispatch(kernel, parameters, heads)
}

fn kv_write(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::KvWrite { key, value, layer } = *operation else {
        return Err(no_adapter(operation, "kv_write"));
    };
    let row_elements = addresses.plan.config.kv_elements();
    let parameters = params::KvWrite {
        header: params::KvWrite::HEADER,
        state_va: addresses.state()?,
        key_va: addresses.value(key)?,
        value_va: addresses.value(value)?,
        key_cache_va: addresses.cache(AllocationId::KeyCache, layer)?,
        value_cache_va: addresses.cache(AllocationId::ValueCache, layer)?,
        row_elements,
        reserved: 0,
    };
    dispatch("kv_write", parameters, row_elements.div_ceil(ELEMENT_THREADS))
}

fn attention(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::Attention { query, output, layer } = *operation else {
        return Err(no_adapter(operation, "attention"));
    };
    let config = &addresses.plan.config;
    let parameters = params::Attention {
        header: params::Attention::HEADER,
        state_va: addresses.state()?,
        query_va: addresses.value(query)?,
        key_cache_va: addresses.cache(AllocationId::KeyCache, layer)?,
        value_cache_va: addresses.cache(AllocationId::ValueCache, layer)?,
        output_va: addresses.value(output)?,
        head_size: config.head_size,
        row_elements: config.kv_elements(),
        group_size: config.heads / config.kv_heads,
        scale: ((1.0 / f64::from(config.head_size).sqrt()) as f32).to_bits(),
    };
    dispatch("attention", parameters, config.heads)
}

fn swiglu(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::SwiGlu { gate, up, output } = *operation else {
        return Err(no_adapter(operation, "swiglu"));
    };
    let count = addresses.elements(gate);
    let parameters = params::SwiGlu {
        header: params::SwiGlu::HEADER,
        gate_va: addresses.value(gate)?,
        up_va: addresses.value(up)?,
        output_va: addresses.value(output)?,
        count,
        reserved: 0,
    };
    dispatch("swiglu", parameters, count.div_ceil(ELEMENT_THREADS))
}

fn residual_add(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::ResidualAdd { hidden, addend } = *operation else {
        return Err(no_adapter(operation, "residual_add"));
    };
    let count = addresses.elements(hidden);
    let parameters = params::ResidualAdd {
        header: params::ResidualAdd::HEADER,
        hidden_va: addresses.value(hidden)?,
        addend_va: addresses.value(addend)?,
        count,
        reserved: 0,
    };
    dispatch("residual_add", parameters, count.div_ceil(ELEMENT_THREADS))
}

fn argmax(addresses: &Addresses<'_>, operation: &Operation) -> Result<Dispatch, ExecutorError> {
    let Operation::Argmax { logits } = *operation else { return Err(no_adapter(operation, "argmax")) };
    let parameters = params::Argmax {
        header: params::Argmax::HEADER,
        state_va: addresses.state()?,
        tokens_va: addresses.tokens()?,
        logits_va: addresses.value(logits)?,
        count: addresses.elements(logits),
        context: addresses.plan.context,
    };
    dispatch("argmax", parameters, 1)
}
