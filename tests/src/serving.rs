//! What cases of sessions share: requests with the oracle's tokens for them, running them, sessions on a device that
//! checks.
//!
//! Contract: expected tokens come from the oracle alone. [`Told::run`] fails the case if an event is not one that a
//! request may get; an error of the session is left to the caller.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use zrt_bringup::{OpenOptions, VirtualOptions, virtual_config};
use zrt_device::Attachment;
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Event, Handle, Request, Session, SessionError, SessionOptions};
use zrt_vgpu::{Config, VirtualGpu};

/// Longest that a case's session may take.
const DEADLINE: Duration = Duration::from_secs(300);
/// How long a poll that found nothing waits: the device needs the core more.
const NAP: Duration = Duration::from_micros(50);

/// A request of a case.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The prompt.
    pub prompt: Vec<u32>,
    /// Maximum number of tokens.
    pub tokens_max: u32,
    /// How tokens are drawn.
    pub sampling: SamplingOptions,
}

impl Asked {
    /// The largest logit wins.
    pub fn greedy(prompt: impl IntoIterator<Item = u32>, tokens_max: u32) -> Asked {
        Asked { prompt: prompt.into_iter().collect(), tokens_max, sampling: SamplingOptions::default() }
    }

    /// With temperature, top-k, top-p and a penalty.
    pub fn sampled(prompt: impl IntoIterator<Item = u32>, tokens_max: u32, seed: u64) -> Asked {
        let sampling = SamplingOptions {
            temperature: 0.9,
            top_k: 40,
            top_p: 0.9,
            repetition_penalty: 1.1,
            penalty_window: 32,
            seed,
            ..SamplingOptions::default()
        };
        Asked { prompt: prompt.into_iter().collect(), tokens_max, sampling }
    }

    /// Submits it.
    pub fn submit(&self, session: &mut Session) -> Handle {
        let Asked { prompt, tokens_max, sampling } = self;
        let request = Request { prompt, tokens_max: *tokens_max, sampling: *sampling, stops: &[] };
        session.submit(&request).expect("there is room")
    }

    /// The oracle's tokens for it.
    pub fn expected(&self, oracle: &mut Oracle) -> Vec<u32> {
        let sampling = self.sampling.validate().expect("in range");
        oracle.complete(&self.prompt, self.tokens_max, &sampling, &[]).expect("the oracle runs")
    }
}

/// Tokens of each request.
type Tokens = Vec<Vec<u32>>;

/// What the oracle has said in this process: the cases of a target ask the same of it for every way to run.
static SAID: Mutex<BTreeMap<String, Arc<OnceLock<Tokens>>>> = Mutex::new(BTreeMap::new());

/// The oracle's tokens for each.
pub fn expected(model: &Model, context: u32, asked: &[Asked]) -> Tokens {
    expected_with(model, context, Activations::F32, asked)
}

/// The same where matmuls take their activations like this.
pub fn expected_with(model: &Model, context: u32, activations: Activations, asked: &[Asked]) -> Tokens {
    let question = format!("{:x} {context} {} {asked:?}", fingerprint(model), activations.name());
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner).entry(question).or_default().clone();
    let tokens = said.get_or_init(|| {
        let mut oracle =
            Oracle::new_with(model, context, KvFormat::F32, activations).expect("the oracle takes the model");
        asked.iter().map(|one| one.expected(&mut oracle)).collect()
    });
    tokens.clone()
}

/// Of everything in a model that a token can depend on.
fn fingerprint(model: &Model) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", model.config).hash(&mut hasher);
    for (id, weight) in model.weights() {
        format!("{id} {:?}", weight.tensor).hash(&mut hasher);
    }
    for tensor in model.gguf.tensors() {
        let bytes = model.gguf.read_tensor(tensor, 0..tensor.bytes).expect("readable");
        (&tensor.name, bytes).hash(&mut hasher);
    }
    hasher.finish()
}

/// What the requests of a case received, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Tokens of each.
    pub tokens: Vec<Vec<u32>>,
    /// Ends of each.
    pub ends: Vec<u32>,
}

impl Told {
    /// Nothing yet.
    pub fn new(count: usize) -> Told {
        Told { tokens: vec![Vec::new(); count], ends: vec![0; count] }
    }

    /// Polls once, if no request was asked to park; returns true if something came.
    pub fn poll(&mut self, session: &mut Session, handles: &[Handle]) -> Result<bool, SessionError> {
        let (count, parked) = self.take(session, handles)?;
        assert_eq!(parked, None, "it was not asked to park");
        Ok(count > 0)
    }

    /// Polls once; returns the last that was parked.
    pub fn poll_parked(
        &mut self,
        session: &mut Session,
        handles: &[Handle],
    ) -> Result<Option<Handle>, SessionError> {
        self.take(session, handles).map(|(_, parked)| parked)
    }

    /// Polls once; returns the number of events, and the last request that was parked.
    fn take(
        &mut self,
        session: &mut Session,
        handles: &[Handle],
    ) -> Result<(usize, Option<Handle>), SessionError> {
        let mut events = [Event::default(); 16];
        let count = session.poll(&mut events)?;
        let mut parked = None;
        let at = |handle: &Handle| handles.iter().position(|one| one == handle).expect("a known handle");
        for event in &events[..count] {
            match event {
                Event::Token { handle, token, .. } => self.tokens[at(handle)].push(*token),
                Event::Finished { handle, .. } => self.ends[at(handle)] += 1,
                Event::Parked { handle } => parked = Some(*handle),
            }
        }
        if count == 0 {
            std::thread::sleep(NAP);
        }
        Ok((count, parked))
    }

    /// Polls until every request has ended; no page is held then.
    pub fn run(&mut self, session: &mut Session, handles: &[Handle]) -> Result<(), SessionError> {
        self.run_to_the_ends(session, handles)?;
        assert!(session.audit().is_clean(), "pages leak: {:?}", session.audit());
        Ok(())
    }

    /// Polls until every request has ended, in a session that may keep some.
    pub fn run_to_the_ends(&mut self, session: &mut Session, handles: &[Handle]) -> Result<(), SessionError> {
        let start = Instant::now();
        while session.unfinished_count() > 0 {
            assert!(start.elapsed() < DEADLINE, "the session does not end: {:?}", session.standings());
            self.poll(session, handles)?;
        }
        Ok(())
    }
}

/// A session whose steps are not started, on a device that checks and that knows every allocation: an access outside of
/// all of them is a finding.
pub fn checked_session(model: &Model, options: &SessionOptions, seed: u64) -> Session {
    checked_session_on(model, options, seed).0
}

/// The same, and the device's other side.
pub fn checked_session_on(model: &Model, options: &SessionOptions, seed: u64) -> (Session, Arc<VirtualGpu>) {
    checked_session_over(model, options, checked_config(seed))
}

/// The configuration of a device that checks.
pub fn checked_config(seed: u64) -> Config {
    let virtual_device =
        VirtualOptions { check: true, scheduler_seed: Some(seed), ..VirtualOptions::default() };
    virtual_config(&OpenOptions { virtual_device, ..OpenOptions::default() })
}

/// As [`checked_session_on`], on a device with that configuration.
pub fn checked_session_over(
    model: &Model,
    options: &SessionOptions,
    config: Config,
) -> (Session, Arc<VirtualGpu>) {
    let gpu: Arc<VirtualGpu> = VirtualGpu::new(config).expect("powers up");
    let process = Attachment::over(gpu.clone()).expect("the board's one process");
    let device = zrt_bringup::open_over(&process, &OpenOptions::default()).expect("opens");
    let mut session =
        Session::prepare(device, model, options, &mut |_, _| {}).expect("the model becomes resident");
    for (name, va, len) in session.resident().device.allocations() {
        gpu.watch_region(&name, va.0, len.0);
    }
    (session, gpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{load, repository_model};
    use zrt_engine::gguf::Gguf;
    use zrt_engine::session::Mode;
    use zrt_vgpu::config::Scheduler;

    #[test]
    fn a_sampled_request_makes_use_of_what_its_document_names() {
        let asked = Asked::sampled([3, 4], 5, 6);
        let drawn = asked.sampling;
        assert_eq!((asked.prompt, asked.tokens_max, drawn.seed), (vec![3, 4], 5, 6));
        assert!(drawn.temperature > 0.0 && (1..100).contains(&drawn.top_k) && drawn.top_p < 1.0);
        assert!(drawn.repetition_penalty > 1.0 && drawn.penalty_window > 0);
        assert_eq!(Asked::greedy([3], 1).sampling, SamplingOptions::default());
    }

    #[test]
    fn a_device_that_checks_checks_on_its_schedule() {
        let config = checked_config(7);
        assert!(config.inspection.check);
        assert_eq!((config.seed, config.effective_scheduler()), (7, Scheduler::Deterministic));
    }

    #[test]
    fn a_poll_says_whether_something_came() {
        let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
        let options = SessionOptions { mode: Mode::Dispatch, context: 16, ..SessionOptions::default() };
        let mut session = checked_session(&model, &options, 1);
        session.start().expect("starts");
        let handle = Asked::greedy([1, 2], 2).submit(&mut session);
        let mut told = Told::new(1);
        let start = Instant::now();
        while session.unfinished_count() > 0 {
            assert!(start.elapsed() < DEADLINE, "the session does not end: {:?}", session.standings());
            let before = told.clone();
            let came = told.poll(&mut session, &[handle]).expect("the session runs");
            assert_eq!(came, told != before, "{told:?} after {before:?}");
        }
        assert_eq!((told.tokens[0].len(), told.ends[0]), (2, 1));
        assert!(!told.poll(&mut session, &[handle]).expect("an idle session is polled"));
    }

    /// A question that misses one of these would be answered with another model's tokens.
    #[test]
    fn a_fingerprint_has_the_bytes_of_tensors_and_the_configuration() {
        let mut file = std::fs::read(repository_model("tales-llama-Q4_K_M.gguf")).expect("in the repository");
        let of = |file: &[u8]| {
            Model::load(Arc::new(Gguf::from_bytes(file.to_vec()).expect("a file"))).expect("a model")
        };
        let mut model = of(&file);
        let before = fingerprint(&model);
        assert_eq!(fingerprint(&of(&file)), before);
        *file.last_mut().expect("tensors end it") ^= 1;
        assert_ne!(fingerprint(&of(&file)), before, "a byte of a tensor");
        model.config.layers -= 1;
        assert_ne!(fingerprint(&model), before, "the configuration");
    }
}
