//! Questions to silicon about what no document says, each in one small kernel with a printed answer.
//!
//! Contract: [`run`] asks [`QUESTIONS`] in order and never fails: an answer says what was measured and whether it
//! confirms or contradicts the model that the project works with ([`Question::model`]). Every wait has a deadline; once
//! the device has stopped, the remaining questions are *not run* and say so, and the memory of the one that stopped it
//! stays until the queue is destroyed. Answers are data with units ([`Measure`]), so that other programs can read them.
//! Nothing here knows whether the device is a card; on the virtual one the answers are those of its model, and its
//! times mean nothing. `docs/probes.md` says what each answer changes. Cost: seconds; 400 MiB of VRAM.

mod approximation;
mod bench;
mod environment;
mod finding;
mod kernels;
mod latency;
mod matrix;
mod memory_order;
mod queue;
mod sums;
#[cfg(test)]
mod tests;
mod tile;
mod transpose;
mod wave;

use bench::{Bench, Stop};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use zrt_device::Device;

pub use environment::{Environment, environment};
pub use finding::{Finding, Measure, Quantity, Verdict};

/// Deadline of every wait of a question.
const QUESTION_DEADLINE: Duration = Duration::from_secs(20);

/// One question: what is asked, and what the project believes until a card has answered.
#[derive(Clone, Copy)]
pub struct Question {
    /// Its name, in words joined by hyphens.
    pub name: &'static str,
    /// What is asked.
    pub asks: &'static str,
    /// The answer that the project's model gives.
    pub model: &'static str,
    ask: fn(&mut Bench<'_>) -> Result<Finding, Stop>,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With an answer.
    Answered(Finding),
    /// Without one: the reason.
    Failed(String),
    /// It was not asked: the reason.
    NotRun(String),
}

/// A question with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// [`Question::name`].
    pub question: String,
    /// [`Question::asks`].
    pub asks: String,
    /// [`Question::model`].
    pub model: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// How long it took, in microseconds.
    pub duration_us: u64,
}

/// All questions, in the order in which they are asked: those most likely to stop a device come last.
pub const QUESTIONS: [Question; 18] = [
    Question {
        name: "mode-at-launch",
        asks: "what MODE holds when a wave begins, SCALAR_PREFETCH_EN (bit 24) in particular",
        model: "bits 7:0 are RSRC1's float mode (0xf0); the others are 0",
        ask: wave::mode_at_launch,
    },
    Question {
        name: "ring-round-trip",
        asks: "how long a doorbell with one NOP and a fence takes",
        model: "none",
        ask: queue::round_trip,
    },
    Question {
        name: "read-pointer",
        asks: "how far the reported read pointer lags behind what a fence proves to be consumed",
        model: "the device reports it after each 64 dwords and whenever the ring is empty",
        ask: queue::read_pointer,
    },
    Question {
        name: "reference-clock",
        asks: "at which rate the clock of RELEASE_MEM timestamps runs by the host's clock",
        model: "100 MHz, within 1 %",
        ask: queue::reference_clock,
    },
    Question {
        name: "indirect-dispatch",
        asks: "what a dispatch of an empty kernel in an indirect buffer costs, alone and with a barrier",
        model: "none",
        ask: queue::indirect_dispatch,
    },
    Question {
        name: "placement",
        asks: "on how many compute units 64 workgroups of 8 waves and 40 KiB of LDS run at once",
        model: "on 64, one on each, all resident at once",
        ask: wave::placement,
    },
    Question {
        name: "host-writes",
        asks: "which loads see what the host wrote while the kernel ran",
        model: "in shared VRAM and system memory, loads of system scope and those of CU scope after global_inv of system \
                scope; of other VRAM nothing is promised",
        ask: memory_order::host_writes,
    },
    Question {
        name: "transposing-loads",
        asks: "which lane and element each part of the tile goes to in global_load_tr_b128 and _b64",
        model: "lane l names row l % 16, columns 8 (l / 16) on; lane c receives column c % 16 in the layout of A and B",
        ask: transpose::lanes,
    },
    Question {
        name: "integer-matrix",
        asks: "whether v_wmma_i32_16x16x16_iu8, v_dot4_i32_iu8 and the host give the same integers",
        model: "they do, modulo 2^32",
        ask: matrix::integers,
    },
    Question {
        name: "matrix-sums",
        asks: "in which order, width and rounding v_wmma_f32_16x16x16 adds up",
        model: "exact products, added to C one by one in ascending k, each sum to nearest even, denormals kept",
        ask: matrix::tiles,
    },
    Question {
        name: "dot-sums",
        asks: "the same of v_dot2_f32_f16, v_dot2_f32_bf16 and v_dot4_f32_fp8_fp8",
        model: "as matrix-sums; v_dot2_f32_f16 flushes binary32 denormals",
        ask: matrix::dots,
    },
    Question {
        name: "approximations",
        asks: "how far v_rcp, v_rsq, v_sqrt, v_exp, v_log, v_sin and v_cos are from the correctly rounded result",
        model: "at most 1 unit in the last place, but for sin and cos; denormals count as zero",
        ask: approximation::errors,
    },
    Question {
        name: "memory-latency",
        asks: "what a dependent load costs with growing footprints (L0, GL2, MALL, DRAM)",
        model: "none",
        ask: latency::pointer_chase,
    },
    Question {
        name: "copy-bandwidth",
        asks: "how fast a kernel copies 64 MiB of VRAM",
        model: "none",
        ask: latency::copy,
    },
    Question {
        name: "flag-hand-over",
        asks: "what it costs to hand a flag of device scope from one workgroup to another",
        model: "none",
        ask: latency::hand_over,
    },
    Question {
        name: "barrier",
        asks: "what a barrier of 8 waves costs",
        model: "none",
        ask: latency::barrier,
    },
    Question {
        name: "clocks",
        asks: "how many shader cycles pass per tick of the reference clock while one wave spins",
        model: "none",
        ask: latency::clocks,
    },
    Question {
        name: "ring-round-trip-after",
        asks: "how long the round trip of the second question takes after all others",
        model: "none",
        ask: queue::round_trip,
    },
];

/// Asks every question.
pub fn run(device: &mut Device) -> Vec<Answer> {
    run_questions(device, &QUESTIONS, QUESTION_DEADLINE)
}

/// Asks these questions with a deadline for every wait.
fn run_questions(device: &mut Device, questions: &[Question], deadline: Duration) -> Vec<Answer> {
    let mut stopped_in = None;
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        let start = Instant::now();
        let outcome = match stopped_in {
            Some(name) => Outcome::NotRun(format!("the device stopped in {name}")),
            None => {
                let mut bench = Bench::new(device, deadline);
                let asked = (question.ask)(&mut bench);
                let has_stopped = matches!(asked, Err(Stop::Device(_)));
                bench.finish(has_stopped);
                stopped_in = has_stopped.then_some(question.name);
                match asked {
                    Ok(finding) => Outcome::Answered(finding),
                    Err(Stop::Question(reason) | Stop::Device(reason)) => Outcome::Failed(reason),
                }
            }
        };
        answers.push(Answer {
            question: question.name.into(),
            asks: question.asks.into(),
            model: question.model.into(),
            outcome,
            duration_us: start.elapsed().as_micros() as u64,
        });
    }
    answers
}

impl Answer {
    /// The finding, if there is one.
    pub fn finding(&self) -> Option<&Finding> {
        match &self.outcome {
            Outcome::Answered(finding) => Some(finding),
            _ => None,
        }
    }

    /// A measure by its name.
    pub fn measure(&self, name: &str) -> Option<&Quantity> {
        self.finding()?.measures.iter().find(|measure| measure.name == name).map(|measure| &measure.value)
    }
}
