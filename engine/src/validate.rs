//! Oracle and device in lockstep: after every instruction what it wrote is compared bit for bit.
//!
//! Contract: stops at the first difference and names operation, layer, element and both values. Two NaNs count as
//! equal whatever their bits (`docs/arithmetic.md`), but for the packed words of a quantised row, which are no floats.
//! Nothing is tolerated otherwise.

use crate::executor::{Cache, Executor};
use crate::executor_error::ExecutorError;
use crate::graph::{Form, Operation, Value};
use crate::plan::Instruction;
use thiserror::Error;

/// How much was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Steps.
    pub steps: u64,
    /// Instructions.
    pub instructions: u64,
    /// Elements.
    pub elements: u64,
}

/// The first place where the two differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Operations and layer.
    pub instruction: Instruction,
    /// Its index in the plan.
    pub index: usize,
    /// Position of the step.
    pub position: u32,
    /// Which buffer.
    pub buffer: &'static str,
    /// Element in it.
    pub element: usize,
    /// The reference's bits.
    pub expected: u32,
    /// The candidate's bits.
    pub found: u32,
}

/// Why a validation did not end in agreement.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ValidateError {
    #[error("{0}")]
    Difference(Box<Difference>),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error("the two executors run different plans")]
    Plans,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layer =
            self.instruction.node.layer.map_or("no layer".to_owned(), |layer| format!("layer {layer}"));
        write!(
            formatter,
            "{} ({layer}, instruction {}, position {}): {}[{}] is {:?} ({:#010x}), the oracle has {:?} ({:#010x})",
            self.instruction,
            self.index,
            self.position,
            self.buffer,
            self.element,
            f32::from_bits(self.found),
            self.found,
            f32::from_bits(self.expected),
            self.expected,
        )
    }
}

/// Runs the prompt and `tokens` generated tokens on both and compares everything. Calls `on_step` for each position.
pub fn validate<R: Executor, C: Executor>(
    reference: &mut R,
    candidate: &mut C,
    prompt: &[u32],
    tokens: usize,
    mut on_step: impl FnMut(u64),
) -> Result<Agreement, ValidateError> {
    if reference.plan().instructions != candidate.plan().instructions {
        return Err(ValidateError::Plans);
    }
    reference.begin(prompt)?;
    candidate.begin(prompt)?;
    let mut agreement = Agreement::default();
    let steps = prompt.len() + tokens.saturating_sub(1);
    for position in 0..steps as u32 {
        for index in 0..reference.plan().instructions.len() {
            reference.step_instruction(index)?;
            candidate.step_instruction(index)?;
            agreement.elements += compare_instruction(reference, candidate, index, position)?;
            agreement.instructions += 1;
        }
        agreement.steps += 1;
        on_step(agreement.steps);
    }
    Ok(agreement)
}

fn compare_instruction<R: Executor, C: Executor>(
    reference: &mut R,
    candidate: &mut C,
    index: usize,
    position: u32,
) -> Result<u64, ValidateError> {
    let instruction = reference.plan().instructions[index];
    let compare = |buffer: &'static str, is_packed: bool, expected: Vec<u32>, found: Vec<u32>| {
        compare_words(&expected, &found, is_packed, |element| Difference {
            instruction,
            index,
            position,
            buffer,
            element,
            expected: expected[element],
            found: found[element],
        })
    };
    match instruction.node.operation {
        Operation::KvWrite { layer, .. } => {
            let mut elements = 0;
            for (buffer, cache) in [("key cache", Cache::Key), ("value cache", Cache::Value)] {
                let expected = bits(reference.read_cache_row(cache, layer, position)?);
                let found = bits(candidate.read_cache_row(cache, layer, position)?);
                elements += compare(buffer, false, expected, found)?;
            }
            Ok(elements)
        }
        Operation::Sample { .. } => {
            let expected = state_words(reference, position)?;
            compare(
                "step state (position, choice, steps, next token)",
                false,
                expected,
                state_words(candidate, position)?,
            )
        }
        _ => {
            let mut elements = 0;
            for value in instruction.results() {
                let Value { name, form, .. } = *reference.plan().value(value);
                // A quantised row is bytes in words: what looks like a NaN is none.
                let is_packed = form == Form::Quantised;
                let expected = bits(reference.read_value(value)?);
                elements += compare(name, is_packed, expected, bits(candidate.read_value(value)?))?;
            }
            Ok(elements)
        }
    }
}

fn bits(values: Vec<f32>) -> Vec<u32> {
    values.into_iter().map(f32::to_bits).collect()
}

fn state_words<E: Executor>(executor: &mut E, position: u32) -> Result<Vec<u32>, ExecutorError> {
    let state = executor.read_state()?;
    let next = if position + 1 < executor.plan().context { executor.read_token(position + 1)? } else { 0 };
    Ok(vec![state.position, state.last_token, state.step_count, next])
}

fn compare_words(
    expected: &[u32],
    found: &[u32],
    is_packed: bool,
    difference: impl Fn(usize) -> Difference,
) -> Result<u64, ValidateError> {
    match first_difference(expected, found, is_packed) {
        Some(element) => Err(ValidateError::Difference(Box::new(difference(element)))),
        None => Ok(expected.len() as u64),
    }
}

/// Index of the first word in which the two differ. Where they are packed, words are no floats, so none of them is a
/// NaN.
fn first_difference(expected: &[u32], found: &[u32], is_packed: bool) -> Option<usize> {
    assert_eq!(expected.len(), found.len(), "executors of one plan have buffers of one length");
    let both_nan = |one: u32, other: u32| f32::from_bits(one).is_nan() && f32::from_bits(other).is_nan();
    let pairs = || expected.iter().zip(found);
    pairs().position(|(one, other)| one != other && (is_packed || !both_nan(*one, *other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nans_are_equal_unless_words_are_packed() {
        let (quiet, other_nan, one) = (0x7FC0_0000, 0xFFC0_1234, 0x3F80_0000);
        let (expected, found) = ([one, quiet, one], [one, other_nan, one + 1]);
        assert_eq!(first_difference(&expected, &found, false), Some(2));
        assert_eq!(first_difference(&expected, &found, true), Some(1));
        assert_eq!(first_difference(&[0, quiet], &[0x8000_0000, quiet], false), Some(0), "a zero has a sign");
        assert_eq!(first_difference(&[quiet], &[one], false), Some(0));
        assert_eq!(first_difference(&expected, &expected, true), None);
    }
}
