//! `zrt validate`: CPU oracle and device in lockstep, every buffer bit for bit.

use super::{write_document, write_text};
use crate::activations_option::ActivationsOption;
use crate::device_choice::DeviceOption;
use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::memory_option::MemoryOption;
use crate::progress::{Progress, Unit};
use crate::session::{OnDevice, context_for, open_executor};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use zrt_bringup::DeviceChoice;
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::oracle::Oracle;
use zrt_engine::validate::{Agreement, Difference, ValidateError, validate};

/// Compares a device with the CPU, every intermediate value bit for bit
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF) [default: the embedded model]
    #[arg(short, long)]
    pub model: Option<PathBuf>,
    /// Prompt
    #[arg(short, long)]
    pub prompt: String,
    /// Tokens to generate after the prompt
    #[arg(short = 'n', long, default_value_t = 8)]
    pub max_tokens: usize,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub memory: MemoryOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub activations: ActivationsOption,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// The result as JSON.
#[derive(Debug, Serialize)]
struct Verdict<'a> {
    model_filename: &'a str,
    device: &'a str,
    prompt_token_ids: &'a [u32],
    identical: bool,
    /// What was compared, if nothing differed.
    steps: Option<u64>,
    instructions: Option<u64>,
    elements: Option<u64>,
    /// Where the two first differ.
    difference: Option<Parting>,
}

#[derive(Debug, Serialize)]
struct Parting {
    operation: String,
    layer: Option<u32>,
    instruction: usize,
    position: u32,
    buffer: &'static str,
    element: usize,
    expected: f32,
    found: f32,
    expected_bits: u32,
    found_bits: u32,
}

/// Runs the command; returns false if the two differ.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    if arguments.device.device == DeviceChoice::Cpu {
        return Err(ToolError::NothingToCompare);
    }
    let activations = arguments.activations.activations;
    if !Activations::DEFINED.contains(&activations) {
        return Err(ToolError::NoBitsToCompare);
    }
    let loaded = LoadedModel::open(arguments.model.as_deref())?;
    let prompt = loaded.tokenizer.encode(&arguments.prompt);
    let context = context_for(&loaded, prompt.len(), arguments.max_tokens)?;
    let OnDevice { executor: mut candidate, name: device, .. } =
        open_executor(&loaded, arguments.device.device, context, activations, &arguments.memory)?;
    let mut reference = {
        let _progress = Progress::spinner("dequantising weights");
        Oracle::new_with(&loaded.model, context, KvFormat::F32, activations)?
    };
    let steps = steps(prompt.len(), arguments.max_tokens);
    let progress = Progress::new("comparing", steps as u64, Unit::Tokens);
    let on_step = |done: u64| progress.set(done);
    let result = validate(&mut reference, &mut candidate, &prompt, arguments.max_tokens, on_step);
    drop(progress);
    let outcome = match result {
        Ok(agreement) => Ok(agreement),
        Err(ValidateError::Difference(difference)) => Err(*difference),
        Err(error) => return Err(error.into()),
    };
    if arguments.json {
        write_document(&verdict(&loaded.filename, &device, &prompt, &outcome))?;
    } else {
        write_text(&sentence(&device, &outcome))?;
    }
    Ok(outcome.is_ok())
}

/// How many steps are compared: the last token that is generated is not read any more.
fn steps(prompt: usize, generated: usize) -> usize {
    prompt + generated.saturating_sub(1)
}

fn verdict<'a>(
    model_filename: &'a str,
    device: &'a str,
    prompt_token_ids: &'a [u32],
    outcome: &Result<Agreement, Difference>,
) -> Verdict<'a> {
    let agreement = outcome.as_ref().ok();
    Verdict {
        model_filename,
        device,
        prompt_token_ids,
        identical: agreement.is_some(),
        steps: agreement.map(|agreement| agreement.steps),
        instructions: agreement.map(|agreement| agreement.instructions),
        elements: agreement.map(|agreement| agreement.elements),
        difference: outcome.as_ref().err().map(parting),
    }
}

fn parting(difference: &Difference) -> Parting {
    Parting {
        operation: difference.instruction.to_string(),
        layer: difference.instruction.node.layer,
        instruction: difference.index,
        position: difference.position,
        buffer: difference.buffer,
        element: difference.element,
        expected: f32::from_bits(difference.expected),
        found: f32::from_bits(difference.found),
        expected_bits: difference.expected,
        found_bits: difference.found,
    }
}

fn sentence(device: &str, outcome: &Result<Agreement, Difference>) -> String {
    match outcome {
        Ok(agreement) => format!(
            "{device} and the CPU agree bit for bit: {} steps, {} instructions, {} elements\n",
            agreement.steps, agreement.instructions, agreement.elements
        ),
        Err(difference) => format!("{device} and the CPU first differ at {difference}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_engine::graph::{Node, Operation, ValueId};
    use zrt_engine::plan::Instruction;

    #[test]
    fn a_difference_names_operation_layer_index_and_both_values() {
        let operation = Operation::SwiGlu { gate: ValueId(0), up: ValueId(1), output: ValueId(2) };
        let quantise =
            Operation::Quantise { input: ValueId(2), activations: Activations::A8, output: ValueId(3) };
        let [node, epilogue] = [operation, quantise].map(|operation| Node { operation, layer: Some(3) });
        let difference = Difference {
            instruction: Instruction { node, epilogue: Some(epilogue), barrier_before: true },
            index: 41,
            position: 5,
            buffer: "gated",
            element: 17,
            expected: 1.5f32.to_bits(),
            found: 2.5f32.to_bits(),
        };
        let outcome = Err(difference);
        let text = sentence("virtual", &outcome);
        for part in ["swiglu of layer 3 + quantise", "layer 3", "gated[17]", "1.5", "2.5"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = serde_json::to_value(verdict("m", "virtual", &[1], &outcome)).unwrap();
        assert_eq!(json["identical"], false);
        assert_eq!(json["difference"]["element"], 17);
        assert_eq!(json["difference"]["found_bits"], 0x4020_0000);
    }

    /// The last step of the prompt makes the first token.
    #[test]
    fn every_token_but_the_last_is_a_step() {
        assert_eq!([(3, 0), (3, 1), (3, 5)].map(|(prompt, generated)| steps(prompt, generated)), [3, 3, 7]);
    }

    #[test]
    fn agreement_is_told_with_what_was_compared() {
        let outcome = Ok(Agreement { steps: 3, instructions: 40, elements: 500 });
        let expected = "virtual and the CPU agree bit for bit: 3 steps, 40 instructions, 500 elements\n";
        assert_eq!(sentence("virtual", &outcome), expected);
        let json = serde_json::to_value(verdict("m", "virtual", &[1, 2], &outcome)).unwrap();
        let expected = serde_json::json!({
            "model_filename": "m",
            "device": "virtual",
            "prompt_token_ids": [1, 2],
            "identical": true,
            "steps": 3,
            "instructions": 40,
            "elements": 500,
            "difference": null,
        });
        assert_eq!(json, expected);
    }
}
