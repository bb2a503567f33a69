//! Adapters of operations that treat the elements of a row, a head or a segment alike: norms, rotation, quantisation,
//! gates, sums; and what an operation with QUANTISE as its epilogue needs for that. Products, attention and what
//! chooses tokens are in the parent.
//!
//! Contract: as in the parent; none of them reads a matrix.

use super::{Addresses, Lowered, lowered, no_adapter};
use crate::activations::Activations;
use crate::executor_error::ExecutorError;
use crate::graph::{Node, Operation, ValueId};
use crate::plan::Instruction;
use crate::rope::RopeLayout;
use crate::weights::WeightId;
use zrt_protocol::GROUP_ITEMS;
use zrt_protocol::params;

/// The result of an operation as integers besides; all 0 where there are none.
#[derive(Clone, Copy, Default)]
pub(super) struct Integers {
    pub va: u64,
    pub stride: u32,
    pub factors_offset: u32,
    pub limbs: u32,
    /// Elements of all segments.
    pub elements: u32,
}

impl Integers {
    /// Of an instruction with this epilogue.
    pub fn of(addresses: &Addresses<'_>, instruction: &Instruction) -> Result<Integers, ExecutorError> {
        match instruction.epilogue.map(|node| node.operation) {
            None => Ok(Integers::default()),
            Some(Operation::Quantise { input, activations, output }) => {
                Integers::at(addresses, input, activations, output)
            }
            Some(other) => Err(no_adapter(&other, "as an epilogue")),
        }
    }

    fn at(
        addresses: &Addresses<'_>,
        input: ValueId,
        activations: Activations,
        output: ValueId,
    ) -> Result<Integers, ExecutorError> {
        let (count, limbs) = (addresses.elements(input), activations.integer_bytes());
        Ok(Integers {
            va: addresses.value(output)?,
            stride: addresses.stride(output),
            factors_offset: zrt_protocol::quantised_factors_offset(count, limbs),
            limbs,
            elements: zrt_protocol::quantised_segments(count) * GROUP_ITEMS,
        })
    }
}

pub(super) fn rms_norm(
    addresses: &Addresses<'_>,
    instruction: &Instruction,
    input: ValueId,
    weight: WeightId,
    output: ValueId,
) -> Result<Lowered, ExecutorError> {
    let (node, count) = (&instruction.node, addresses.elements(input));
    let integers = Integers::of(addresses, instruction)?;
    let units = zrt_protocol::norm_units(count.max(integers.elements));
    let parameters = params::RmsNorm {
        header: addresses.header(node, units, addresses.each(node), params::RmsNorm::header)?,
        input_va: addresses.value(input)?,
        weight_va: addresses.planes(weight)?[0],
        output_va: addresses.value(output)?,
        count,
        inverse_count: inverse_bits(count),
        epsilon: addresses.plan.config.rms_epsilon.to_bits(),
        stride: addresses.stride(output),
        integers_va: integers.va,
        integers_stride: integers.stride,
        factors_offset: integers.factors_offset,
        limbs: integers.limbs,
        reserved: 0,
    };
    lowered("rms_norm", parameters.header, parameters)
}

pub(super) fn qk_norm(
    addresses: &Addresses<'_>,
    node: &Node,
    vector: ValueId,
    weight: WeightId,
    heads: u32,
) -> Result<Lowered, ExecutorError> {
    let config = &addresses.plan.config;
    let units = heads.div_ceil(zrt_protocol::GROUP_WAVES);
    let parameters = params::QkNorm {
        header: addresses.header(node, units, addresses.each(node), params::QkNorm::header)?,
        vector_va: addresses.value(vector)?,
        weight_va: addresses.planes(weight)?[0],
        heads,
        head_size: config.head_size,
        inverse_head_size: inverse_bits(config.head_size),
        epsilon: config.rms_epsilon.to_bits(),
        stride: addresses.stride(vector),
        reserved: 0,
    };
    lowered("qk_norm", parameters.header, parameters)
}

pub(super) fn quantise(
    addresses: &Addresses<'_>,
    node: &Node,
    input: ValueId,
    activations: Activations,
    output: ValueId,
) -> Result<Lowered, ExecutorError> {
    let count = addresses.elements(input);
    let kernel = match activations {
        Activations::F32 | Activations::F16 => {
            return Err(no_adapter(&node.operation, activations.name()));
        }
        Activations::A8 => "quantise_a8",
        Activations::A16 => "quantise_a16",
    };
    let integers = Integers::at(addresses, input, activations, output)?;
    let units = integers.elements / GROUP_ITEMS;
    let parameters = params::Quantise {
        header: addresses.header(node, units, addresses.each(node), params::Quantise::header)?,
        input_va: addresses.value(input)?,
        count,
        input_stride: addresses.stride(input),
        integers_va: integers.va,
        integers_stride: integers.stride,
        factors_offset: integers.factors_offset,
    };
    lowered(kernel, parameters.header, parameters)
}

pub(super) fn rope(
    addresses: &Addresses<'_>,
    node: &Node,
    vector: ValueId,
    heads: u32,
    (layout, table): (RopeLayout, u32),
) -> Result<Lowered, ExecutorError> {
    let config = &addresses.plan.config;
    let units = heads.div_ceil(zrt_protocol::GROUP_WAVES);
    let parameters = params::Rope {
        header: addresses.header(node, units, addresses.each(node), params::Rope::header)?,
        vector_va: addresses.value(vector)?,
        table_va: addresses.rope_table(table)?,
        heads,
        head_size: config.head_size,
        rotary_dimensions: config.rope.dimensions,
        stride: addresses.stride(vector),
    };
    let kernel = match layout {
        RopeLayout::Interleaved => "rope_interleaved",
        RopeLayout::Halves => "rope_halves",
    };
    lowered(kernel, parameters.header, parameters)
}

pub(super) fn gated(
    addresses: &Addresses<'_>,
    instruction: &Instruction,
    kernel: &'static str,
    [gate, up]: [ValueId; 2],
    output: ValueId,
) -> Result<Lowered, ExecutorError> {
    let (node, count) = (&instruction.node, addresses.elements(gate));
    let integers = Integers::of(addresses, instruction)?;
    let units = count.max(integers.elements).div_ceil(GROUP_ITEMS);
    let parameters = params::SwiGlu {
        header: addresses.header(node, units, addresses.each(node), params::SwiGlu::header)?,
        gate_va: addresses.value(gate)?,
        up_va: addresses.value(up)?,
        output_va: addresses.value(output)?,
        count,
        stride: addresses.stride(gate),
        integers_va: integers.va,
        integers_stride: integers.stride,
        factors_offset: integers.factors_offset,
        limbs: integers.limbs,
        reserved: 0,
    };
    lowered(kernel, parameters.header, parameters)
}

pub(super) fn residual_add(
    addresses: &Addresses<'_>,
    node: &Node,
    hidden: ValueId,
    addend: ValueId,
) -> Result<Lowered, ExecutorError> {
    let count = addresses.elements(hidden);
    let units = count.div_ceil(GROUP_ITEMS);
    let parameters = params::ResidualAdd {
        header: addresses.header(node, units, addresses.each(node), params::ResidualAdd::header)?,
        hidden_va: addresses.value(hidden)?,
        addend_va: addresses.value(addend)?,
        count,
        stride: addresses.stride(hidden),
        addend_stride: addresses.stride(addend),
        reserved: 0,
    };
    lowered("residual_add", parameters.header, parameters)
}

/// A RESIDUAL_ADD whose addend is the same in every row.
pub(super) fn bias_add(
    addresses: &Addresses<'_>,
    node: &Node,
    vector: ValueId,
    weight: WeightId,
) -> Result<Lowered, ExecutorError> {
    let count = addresses.elements(vector);
    let units = count.div_ceil(GROUP_ITEMS);
    let parameters = params::ResidualAdd {
        header: addresses.header(node, units, addresses.each(node), params::ResidualAdd::header)?,
        hidden_va: addresses.value(vector)?,
        addend_va: addresses.planes(weight)?[0],
        count,
        stride: addresses.stride(vector),
        addend_stride: 0,
        reserved: 0,
    };
    lowered("residual_add", parameters.header, parameters)
}

pub(super) fn scale(
    addresses: &Addresses<'_>,
    node: &Node,
    vector: ValueId,
    factor: f32,
) -> Result<Lowered, ExecutorError> {
    let count = addresses.elements(vector);
    let units = count.div_ceil(GROUP_ITEMS);
    let parameters = params::Scale {
        header: addresses.header(node, units, addresses.each(node), params::Scale::header)?,
        vector_va: addresses.value(vector)?,
        count,
        stride: addresses.stride(vector),
        factor: factor.to_bits(),
        reserved: 0,
    };
    lowered("scale", parameters.header, parameters)
}

pub(super) fn soft_cap(
    addresses: &Addresses<'_>,
    node: &Node,
    vector: ValueId,
    cap: f32,
) -> Result<Lowered, ExecutorError> {
    let count = addresses.elements(vector);
    let units = count.div_ceil(GROUP_ITEMS);
    let parameters = params::SoftCap {
        header: addresses.header(node, units, addresses.each(node), params::SoftCap::header)?,
        vector_va: addresses.value(vector)?,
        count,
        stride: addresses.stride(vector),
        steepness: (2.0 / cap).to_bits(),
        cap: cap.to_bits(),
    };
    lowered("soft_cap", parameters.header, parameters)
}

/// f32 bits of 1/count, rounded once.
fn inverse_bits(count: u32) -> u32 {
    ((1.0 / f64::from(count)) as f32).to_bits()
}
