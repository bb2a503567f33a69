//! SAMPLE on the virtual device's shader engine against a separate computation, bit for bit.

mod support;

use support::harness::Device;
use support::reference as cpu;
use support::weights::{self, Format, Random};
use support::{BIASES, assert_same, planes, step};
use zerocopy::IntoBytes;
use zrt_asm::params::{self, RowSet};

// ------------------------------------------------------------------------------------------------------------ argmax

struct Step {
    position: u32,
    prompt_length: u32,
    context: u32,
}

fn check_argmax(logits: &[f32], step: &Step) {
    let mut device = Device::new(0);
    let before = StepState {
        position: step.position,
        prompt_length: step.prompt_length,
        last_token: 12345,
        step_count: 7,
        reserved: [9; 12],
    };
    let tokens: Vec<u32> = (1000..1016).collect();
    let (state_va, tokens_va) = (device.upload(&[before]), device.upload(&tokens));
    let block = params::Argmax {
        header: params::Argmax::HEADER,
        state_va,
        tokens_va,
        logits_va: device.upload(logits),
        count: logits.len() as u32,
        context: step.context,
    };
    device.run("argmax", block.as_bytes(), 1);
    let winner = cpu::argmax(logits);
    let after = StepState { position: step.position + 1, last_token: winner, step_count: 8, ..before };
    let what = format!("{} logits at position {}", logits.len(), step.position);
    assert_eq!(device.read::<StepState>(state_va), after, "{what}");
    let mut expected = tokens;
    if step.position + 1 >= step.prompt_length && step.position + 1 < step.context {
        expected[step.position as usize + 1] = winner;
    }
    assert_eq!(device.words(tokens_va, 16), expected, "{what}");
}

#[test]
fn argmax_finds_the_first_of_the_largest() {
    let step = Step { position: 4, prompt_length: 5, context: 16 };
    for count in [1usize, 3, 4, 31, 257, 512, 1023, 4096, 4099, 8192, 9001] {
        let mut random = Random::new(count as u64);
        let mut logits = random.reals(count);
        check_argmax(&logits, &step);
        for place in [0, count / 3, count / 2, count - 1] {
            logits[place] = 5.0;
            check_argmax(&logits, &step);
        }
        logits.fill(-3.0);
        check_argmax(&logits, &step);
        logits[count / 2] = f32::NAN;
        logits[count - 1] = f32::INFINITY;
        check_argmax(&logits, &step);
        logits.fill(f32::NEG_INFINITY);
        check_argmax(&logits, &step);
    }
    check_argmax(&[-0.0, 0.0, -1.0], &step);
}

#[test]
fn argmax_stores_the_token_after_the_prompt_only() {
    let logits = [1.0, 3.0, 2.0];
    for (position, prompt_length, context) in
        [(0, 1, 16), (2, 5, 16), (3, 5, 16), (4, 5, 16), (14, 1, 16), (15, 1, 16)]
    {
        check_argmax(&logits, &Step { position, prompt_length, context });
    }
}
