//! `pp N` of `zrt-bench`: a prompt in steps of many rows, in the megakernel.
//!
//! Contract: a test opens a device and a session of its own, with one slot, and warms it up with one prompt. A
//! repetition is a request with a prompt of N tokens that ends at its first token; the clock runs from its submission
//! to that token, so it covers N rows, the logits of the last one and the choice. The prompt is taken in as few steps
//! as a session can, of about equal length; a session that serves others beside it takes fewer tokens a step by
//! default.

use crate::bench::{self, Record, Setting, Test};
use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::memory_option::MemoryOption;
use crate::open_device::{OpenedDevice, open_device};
use crate::progress::{Progress, Unit};
use crate::session::{Evidence, context_for};
use crate::session_bench::{CLOSE_DEADLINE, START_DEADLINE, VIRTUAL_GROUPS, await_start, pause_after};
use crate::timestamp;
use std::time::Instant;
use zrt_bringup::DeviceChoice;
use zrt_engine::activations::Activations;
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{CHUNK_ROWS_MAX, Event, Mode, Request, Session, SessionOptions};

/// What is the same in all tests of a command.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    /// Device; not the CPU.
    pub device: DeviceChoice,
    /// Arithmetic of activations.
    pub activations: Activations,
    /// Repetitions of each test.
    pub repetitions: u32,
    /// Where weights lie.
    pub memory: MemoryOption,
}

/// Runs one test of a prompt and records it.
pub fn run(loaded: &LoadedModel, choices: &Choices, test: Test) -> Result<Record, ToolError> {
    let OpenedDevice { device, name, is_virtual } = open_device(choices.device)?;
    let context = context_for(loaded, test.prompt_tokens as usize, 1)?;
    let options = options(test.prompt_tokens, context, choices.activations, is_virtual);
    let options = choices.memory.of_session(&device, options)?;
    let mut session = {
        let progress = Progress::new("uploading weights", loaded.model.weight_bytes(), Unit::Bytes);
        Session::open(device, &loaded.model, &options, &mut |done, total| progress.set_of(done, total))?
    };
    await_start(|| Ok(session.status()?.heartbeat), START_DEADLINE)?;
    let setting = Setting {
        device: name,
        is_cpu: false,
        activations: choices.activations,
        batch_rows: options.chunk_rows,
    };
    let prompt = bench::prompt_for(loaded.model.config.vocabulary, test);
    let progress = Progress::new("measuring", test.tokens_of(choices.repetitions), Unit::Tokens);
    let test_time = timestamp::now();
    consume(&mut session, &prompt, is_virtual)?;
    let before = evidence(&mut session, &setting)?;
    let mut samples_ns = Vec::with_capacity(choices.repetitions as usize);
    for _ in 0..choices.repetitions {
        samples_ns.push(consume(&mut session, &prompt, is_virtual)?);
        progress.advance(test.tokens().into());
    }
    let evidence = evidence(&mut session, &setting)?.since(&before);
    // The kernel leaves before its queue goes.
    session.close(CLOSE_DEADLINE).map_err(zrt_engine::session::SessionError::from)?;
    Ok(bench::record(loaded, &setting, test, test_time, samples_ns, evidence))
}

/// The session of a prompt: one slot in the megakernel, and as few steps as possible, of about equal length.
fn options(prompt_tokens: u32, context: u32, activations: Activations, is_virtual: bool) -> SessionOptions {
    SessionOptions {
        mode: Mode::Mega,
        slots: 1,
        waiting_max: 1,
        context,
        chunk_rows: prompt_tokens.div_ceil(prompt_tokens.div_ceil(CHUNK_ROWS_MAX)),
        activations,
        groups: is_virtual.then_some(VIRTUAL_GROUPS),
        ..SessionOptions::default()
    }
}

/// Time of one prompt, in nanoseconds.
fn consume(session: &mut Session, prompt: &[u32], is_virtual: bool) -> Result<u64, ToolError> {
    let started = Instant::now();
    session.submit(&Request { prompt, tokens_max: 1, sampling: SamplingOptions::default(), stops: &[] })?;
    let mut first_token = None;
    let mut events = [Event::default(); 4];
    while session.unfinished_count() > 0 {
        let count = session.poll(&mut events)?;
        let has_token = events[..count].iter().any(|event| matches!(event, Event::Token { .. }));
        if has_token {
            first_token.get_or_insert_with(|| started.elapsed());
        }
        if let Some(pause) = pause_after(count, is_virtual) {
            std::thread::sleep(pause);
        }
    }
    let elapsed = first_token.ok_or(ToolError::NoToken)?;
    Ok(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

fn evidence(session: &mut Session, setting: &Setting) -> Result<Evidence, ToolError> {
    let counters = session.resident().device.counters().map_err(zrt_engine::session::SessionError::from)?;
    Ok(Evidence::of(&setting.device, Some(counters)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One slot for one request; a step has at most 512 rows.
    #[test]
    fn a_prompt_has_a_session_of_its_own() {
        let found = options(1000, 1001, Activations::F32, true);
        assert_eq!((found.mode, found.slots, found.waiting_max, found.context), (Mode::Mega, 1, 1, 1001));
        assert_eq!((found.activations, found.groups), (Activations::F32, Some(VIRTUAL_GROUPS)));
        assert_eq!(options(1000, 1001, Activations::F32, false).groups, None);
        let rows = |prompt_tokens| options(prompt_tokens, 4096, Activations::A8, true).chunk_rows;
        assert_eq!([1, 511, 512, 513, 1024, 1025].map(rows), [1, 511, 512, 257, 512, 342]);
    }

    /// A prompt of three tokens is one step, whose rows nothing but the megakernel runs.
    #[test]
    fn a_prompt_is_taken_in_one_step_and_recorded_by_its_repetitions() {
        let loaded = LoadedModel::open(None).unwrap();
        let choices = Choices {
            device: DeviceChoice::Virtual,
            activations: Activations::A8,
            repetitions: 2,
            memory: MemoryOption::default(),
        };
        let found = run(&loaded, &choices, Test { prompt_tokens: 3, generated_tokens: 0 }).unwrap();
        assert_eq!((found.n_prompt, found.n_gen, found.n_batch, found.activations), (3, 0, 3, "a8"));
        assert_eq!((found.samples_ns.len(), found.tokens, found.backends), (2, 6, "zrt"));
        assert!(found.samples_ns.iter().all(|sample| *sample > 1), "{found:?}");
        assert!(found.evidence.device.contains("Virtual R9700"), "{found:?}");
        // Its one submission was made when the session opened.
        assert_eq!((found.evidence.submissions, found.evidence.dispatches), (0, 0));
        assert!(found.evidence.wave_instructions.is_some_and(|count| count > 1000), "{found:?}");
    }
}
