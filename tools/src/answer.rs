//! One request after another on a device or on the CPU, with drawn tokens: what `zrt chat` and a sampling
//! `zrt generate` run on.
//!
//! Contract: a request gives the same tokens on every device ([`Oracle::complete`] and sessions agree to the bit). An
//! answer may be broken off after any token, and between polls where the device is asked to stop; what was delivered
//! until then stays. A conversation is submitted as a whole, each turn with a longer prompt; a session keeps the last
//! request, so what the prompt has in common with it is not computed again. The oracle computes all of it.

use crate::error::ToolError;
use crate::interrupt::Interrupt;
use crate::loaded_model::LoadedModel;
use crate::memory_option::MemoryOption;
use crate::open_device::{OpenedDevice, open_device};
use crate::progress::{Progress, Unit};
use crate::session::Evidence;
use crate::session_bench::{CLOSE_DEADLINE, VIRTUAL_GROUPS, pause_after};
use std::ops::ControlFlow;
use zrt_bringup::DeviceChoice;
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::log_probabilities::LogProbabilities;
use zrt_engine::oracle::Oracle;
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Event, Handle, Request, Session, SessionError, SessionOptions};
use zrt_engine::tokenizer::Tokenizer;

/// Events taken with one poll.
const EVENTS: usize = 64;

/// A model that answers requests.
pub struct Answerer {
    runner: Runner,
    device: String,
    is_virtual: bool,
    found: u32,
}

enum Runner {
    Session(Box<Session>),
    Oracle(Box<Oracle>),
}

/// What a request asks for besides its prompt.
#[derive(Clone, Copy, Debug)]
pub struct AnswerOptions<'a> {
    /// Most tokens; the context is a limit too.
    pub tokens_max: u32,
    /// How tokens are drawn.
    pub sampling: SamplingOptions,
    /// Tokens that end the answer; they are delivered too.
    pub stops: &'a [u32],
}

/// What gets each token, with its log-probabilities if they are asked for.
pub type OnToken<'a> = &'a mut dyn FnMut(u32, Option<&LogProbabilities>) -> ControlFlow<()>;

/// Tokens that end an answer: those of the vocabulary, and one more of the caller's: at most four, and a slot holds
/// eight.
pub fn end_tokens(tokenizer: &Tokenizer, more: Option<u32>) -> Vec<u32> {
    let special = tokenizer.special_ids();
    let mut ends: Vec<u32> = [special.eos, special.eot, special.eom, more].into_iter().flatten().collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

impl Answerer {
    /// Opens the device and makes the model resident, with room for `context` tokens. `memory` does not concern the
    /// CPU.
    pub fn open(
        loaded: &LoadedModel,
        choice: DeviceChoice,
        context: u32,
        activations: Activations,
        memory: &MemoryOption,
    ) -> Result<Answerer, ToolError> {
        if choice == DeviceChoice::Cpu {
            let _progress = Progress::spinner("dequantising weights");
            let oracle = Oracle::new_with(&loaded.model, context, KvFormat::F32, activations)?;
            let runner = Runner::Oracle(Box::new(oracle));
            return Ok(Answerer { runner, device: choice.name().to_owned(), is_virtual: false, found: 0 });
        }
        let OpenedDevice { device, name, is_virtual } = open_device(choice)?;
        let options = memory.of_session(&device, session_options(context, activations, is_virtual))?;
        let progress = Progress::new("uploading weights", loaded.model.weight_bytes(), Unit::Bytes);
        let mut report = |done: u64, total: u64| progress.set_of(done, total);
        let session = Session::open(device, &loaded.model, &options, &mut report)?;
        Ok(Answerer { runner: Runner::Session(Box::new(session)), device: name, is_virtual, found: 0 })
    }

    /// What runs the model: `cpu`, or the device's name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Positions of the last request's prompt that were there from the request before.
    pub fn found_positions(&self) -> u32 {
        self.found
    }

    /// Runs a request. `on_token` gets each token, with log-probabilities if they are asked for, and may break off; so
    /// may the user, whose wish is looked at between tokens. Returns true if the answer was broken off.
    pub fn answer(
        &mut self,
        prompt: &[u32],
        options: &AnswerOptions<'_>,
        interrupt: &Interrupt,
        on_token: OnToken<'_>,
    ) -> Result<bool, ToolError> {
        match &mut self.runner {
            Runner::Oracle(oracle) => {
                let sampling = options.sampling.validate().map_err(SessionError::from)?;
                let on_step =
                    |token: Option<(u32, Option<LogProbabilities>)>| match (interrupt.is_asked(), token) {
                        (true, _) => ControlFlow::Break(()),
                        (false, None) => ControlFlow::Continue(()),
                        (false, Some((token, values))) => on_token(token, values.as_ref()),
                    };
                let (tokens_max, stops) = (options.tokens_max, options.stops);
                Ok(oracle.complete_with(prompt, tokens_max, &sampling, stops, on_step)?)
            }
            Runner::Session(session) => {
                let (tokens_max, sampling, stops) = (options.tokens_max, options.sampling, options.stops);
                let handle = session.submit(&Request { prompt, tokens_max, sampling, stops })?;
                self.found = session.found_positions(handle)?;
                follow(session, handle, self.is_virtual, interrupt, on_token)
            }
        }
    }

    /// The device's counts since it was opened.
    pub fn evidence(&mut self) -> Result<Evidence, ToolError> {
        let counters = match &mut self.runner {
            Runner::Oracle(_) => None,
            Runner::Session(session) => {
                Some(session.resident().device.counters().map_err(SessionError::from)?)
            }
        };
        Ok(Evidence::of(&self.device, counters))
    }

    /// Ends the session.
    pub fn close(self) -> Result<(), ToolError> {
        if let Runner::Session(session) = self.runner {
            session.close(CLOSE_DEADLINE).map_err(SessionError::from)?;
        }
        Ok(())
    }
}

/// A session for one request at a time, which keeps the last one.
fn session_options(context: u32, activations: Activations, is_virtual: bool) -> SessionOptions {
    SessionOptions {
        slots: 1,
        waiting_max: 1,
        kept: 1,
        context,
        activations,
        groups: is_virtual.then_some(VIRTUAL_GROUPS),
        ..SessionOptions::default()
    }
}

/// Takes a request's events up to its end.
fn follow(
    session: &mut Session,
    handle: Handle,
    is_virtual: bool,
    interrupt: &Interrupt,
    on_token: OnToken<'_>,
) -> Result<bool, ToolError> {
    let mut listener = Listener { on_token, has_enough: false };
    let mut is_cancelled = false;
    let mut events = [Event::default(); EVENTS];
    loop {
        listener.has_enough |= interrupt.is_asked();
        if listener.has_enough && !is_cancelled {
            is_cancelled = true;
            cancel(session, handle)?;
        }
        let count = session.poll(&mut events)?;
        for event in &events[..count] {
            match event {
                Event::Token { token, index, .. } => {
                    listener.hear(*token, session.log_probabilities(handle, *index));
                }
                Event::Finished { .. } => return Ok(listener.has_enough),
                Event::Parked { .. } => {}
            }
        }
        match pause_after(count, is_virtual) {
            Some(pause) => std::thread::sleep(pause),
            None => std::hint::spin_loop(),
        }
    }
}

/// Who is given the tokens of a request, until it has enough.
struct Listener<'a> {
    on_token: OnToken<'a>,
    has_enough: bool,
}

impl Listener<'_> {
    fn hear(&mut self, token: u32, values: Option<&LogProbabilities>) {
        self.has_enough = self.has_enough || (self.on_token)(token, values).is_break();
    }
}

/// Cancels a request that may have ended in the meantime.
fn cancel(session: &mut Session, handle: Handle) -> Result<(), ToolError> {
    match session.cancel(handle) {
        Err(SessionError::NoSuchRequest) => Ok(()),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens of an answer, and whether it was broken off; after `most` tokens it is.
    fn answered(answerer: &mut Answerer, prompt: &[u32], most: usize) -> (Vec<u32>, bool) {
        let options = AnswerOptions { tokens_max: 3, sampling: SamplingOptions::default(), stops: &[] };
        let mut tokens = Vec::new();
        let broken_off = answerer.answer(prompt, &options, &Interrupt::ignored(), &mut |token, values| {
            assert!(values.is_none());
            tokens.push(token);
            if tokens.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (tokens, broken_off.unwrap())
    }

    #[test]
    fn a_session_has_one_request_and_keeps_the_one_before() {
        let of = |is_virtual| {
            let found = session_options(77, Activations::F32, is_virtual);
            let counts = [found.slots, found.waiting_max, found.kept, found.context];
            (counts, found.activations, found.groups)
        };
        assert_eq!(of(true), ([1, 1, 1, 77], Activations::F32, Some(VIRTUAL_GROUPS)));
        assert_eq!(of(false), ([1, 1, 1, 77], Activations::F32, None));
    }

    /// Of 60 steps the device has taken few when its answer is broken off after the first token.
    #[test]
    fn what_is_broken_off_is_not_computed_to_its_end() {
        let loaded = LoadedModel::open(None).unwrap();
        let (choice, memory) = (DeviceChoice::Virtual, MemoryOption::default());
        let mut answerer = Answerer::open(&loaded, choice, 64, Activations::A8, &memory).unwrap();
        let options = AnswerOptions { tokens_max: 60, sampling: SamplingOptions::default(), stops: &[] };
        let mut delivered = 0;
        let mut stop = |_, _: Option<&LogProbabilities>| {
            delivered += 1;
            ControlFlow::Break(())
        };
        assert!(answerer.answer(&[5, 6], &options, &Interrupt::ignored(), &mut stop).unwrap());
        assert_eq!(delivered, 1);
        let Runner::Session(session) = &answerer.runner else { panic!("a device runs it") };
        assert_eq!((session.groups(), session.unfinished_count()), (Some(VIRTUAL_GROUPS), 0));
        assert!(session.status().unwrap().epoch < 30, "{:?}", session.status());
        answerer.close().unwrap();
    }

    /// What comes in one poll with the token after which there are enough, or behind it.
    #[test]
    fn who_has_enough_is_given_no_more_tokens() {
        let mut heard = Vec::new();
        let mut on_token = |token: u32, _: Option<&LogProbabilities>| {
            heard.push(token);
            if token == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut listener = Listener { on_token: &mut on_token, has_enough: false };
        let enough = [4, 5, 6].map(|token| {
            listener.hear(token, None);
            listener.has_enough
        });
        assert_eq!((enough, heard), ([false, true, true], vec![4, 5]));
    }

    #[test]
    fn an_answer_that_is_to_stop_before_it_begins_has_no_tokens() {
        let loaded = LoadedModel::open(None).unwrap();
        let mut answerer = open(&loaded, DeviceChoice::Virtual);
        let options = AnswerOptions { tokens_max: 3, sampling: SamplingOptions::default(), stops: &[] };
        let mut none = |token, _: Option<&LogProbabilities>| panic!("token {token}");
        assert!(answerer.answer(&[5, 7], &options, &Interrupt::asked(), &mut none).unwrap());
        answerer.close().unwrap();
    }

    #[test]
    fn a_session_whose_request_runs_is_not_closed() {
        let loaded = LoadedModel::open(None).unwrap();
        let mut answerer = open(&loaded, DeviceChoice::Virtual);
        let Runner::Session(session) = &mut answerer.runner else { panic!("a device runs it") };
        let sampling = SamplingOptions::default();
        session.submit(&Request { prompt: &[5], tokens_max: 3, sampling, stops: &[] }).unwrap();
        let error = answerer.close().unwrap_err();
        assert!(matches!(error, ToolError::Session(SessionError::Live { live: 1 })), "{error}");
    }

    fn open(loaded: &LoadedModel, choice: DeviceChoice) -> Answerer {
        Answerer::open(loaded, choice, 8, Activations::A8, &MemoryOption::default()).unwrap()
    }

    /// The device and the CPU give the same answer; only the device finds what it has computed before, and counts.
    #[test]
    fn answers_are_the_same_on_every_device() {
        let loaded = LoadedModel::open(None).unwrap();
        let prompt = [5, 7, 9];
        let mut cpu = open(&loaded, DeviceChoice::Cpu);
        let (tokens, broken_off) = answered(&mut cpu, &prompt, 9);
        assert_eq!((tokens.len(), broken_off, cpu.device(), cpu.found_positions()), (3, false, "cpu", 0));
        assert_eq!(cpu.evidence().unwrap(), Evidence::of("cpu", None));
        let mut device = open(&loaded, DeviceChoice::Virtual);
        assert_eq!(answered(&mut device, &prompt, 9), (tokens.clone(), false));
        assert_eq!((device.device(), device.found_positions()), ("Virtual R9700 (gfx1201)", 0));
        // The next turn has a longer prompt: what it shares is not computed again.
        let longer = [&prompt[..], &tokens[..1]].concat();
        for answerer in [&mut cpu, &mut device] {
            assert_eq!(
                answered(answerer, &longer, 2),
                (tokens[1..3].to_vec(), true),
                "{}",
                answerer.device()
            );
        }
        assert_eq!(device.found_positions(), 3);
        let evidence = device.evidence().unwrap();
        assert!(evidence.wave_instructions.is_some_and(|count| count > 1000), "{evidence:?}");
        cpu.close().unwrap();
        device.close().unwrap();
    }

    /// Those of the vocabulary and the caller's, each once and in order.
    #[test]
    fn tokens_that_end_an_answer_are_told_once() {
        let loaded = LoadedModel::open(None).unwrap();
        let special = loaded.tokenizer.special_ids();
        let own: std::collections::BTreeSet<u32> =
            [special.eos, special.eot, special.eom].into_iter().flatten().collect();
        assert!(!own.is_empty());
        let first = *own.iter().next().unwrap();
        let own: Vec<u32> = own.into_iter().collect();
        assert_eq!(end_tokens(&loaded.tokenizer, None), own);
        assert_eq!(end_tokens(&loaded.tokenizer, Some(first)), own);
        assert_eq!(end_tokens(&loaded.tokenizer, Some(u32::MAX)), [own, vec![u32::MAX]].concat());
    }
}
