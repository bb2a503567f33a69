//! The path of a token costs the host no allocation and no system call, in any of the three modes.
//!
//! Allocations are counted by a counting allocator, on the thread that drives the session. System calls are forbidden
//! to that thread: the kernel kills it at its first one, so the case sees no end. The clock may be read, which needs no
//! system call where the kernel maps it (vDSO).
//!
//! This is one test in a program of its own: a thread that may not enter the kernel cannot end either. It spins until
//! the process does.

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::sampling::{LogitBias, SamplingOptions};
use zrt_engine::session::{Event, Mode, Request, Session, SessionOptions};
use zrt_tests::{load, repository_model};

/// Tokens of each request.
const TOKENS: u32 = 4;
/// Longest that all sessions may take.
const DEADLINE: Duration = Duration::from_secs(120);
/// How long a thread that is to be killed is watched before it counts as alive.
const GRACE: Duration = Duration::from_millis(500);

/// Sessions of the three modes, which are ready to take requests.
fn sessions() -> Vec<Session> {
    let model = load(&repository_model("tales-qwen3-Q4_0.gguf"));
    let open = |mode| {
        let device = zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens");
        let options = SessionOptions {
            mode,
            slots: 2,
            waiting_max: 2,
            kept: 2,
            context: 64,
            groups: Some(2),
            input_entries: 4,
            activations: Activations::F32,
            ..SessionOptions::default()
        };
        Session::open(device, &model, &options, &mut |_, _| {}).expect("the session opens")
    };
    Mode::ALL.into_iter().map(open).collect()
}

/// Everything that a server does while requests run; returns the number of tokens that were delivered, and whether a
/// request found the pages of a kept one. Three requests share two slots; one is parked and resumed, one held and
/// released, one cancelled.
fn serve(session: &mut Session) -> (u32, bool) {
    let submit = |session: &mut Session, first: u32| {
        let sampling = SamplingOptions {
            temperature: 0.8,
            top_k: 20,
            min_p: 0.05,
            presence_penalty: 0.5,
            penalty_window: 8,
            logit_bias: LogitBias::new(&[(9, 1.0)]).expect("in range"),
            log_probabilities: Some(3),
            ..SamplingOptions::default()
        };
        let request =
            Request { prompt: &[first, 261, 17, 3, 4, 5, 6, 7], tokens_max: TOKENS, sampling, stops: &[2] };
        session.submit(&request).expect("there is room")
    };
    let handles = [submit(session, 5), submit(session, 6), submit(session, 7)];
    let has_found = session.found_positions(handles[0]).expect("it is known") > 0;
    session.hold(handles[0], true).expect("it is known");
    session.park(handles[1]).expect("it is known");
    let mut events = [Event::default(); 8];
    let mut tokens = 0;
    while session.unfinished_count() > 0 {
        let count = session.poll(&mut events).expect("the session runs");
        for event in &events[..count] {
            match event {
                // A token without log-probabilities does not count.
                Event::Token { handle, index, .. } => {
                    tokens += u32::from(session.log_probabilities(*handle, *index).is_some());
                }
                Event::Parked { handle } => {
                    session.resume(*handle).expect("it is parked");
                    session.hold(handles[0], false).expect("it is held");
                    session.cancel(handles[2]).expect("it is known");
                }
                Event::Finished { .. } => {}
            }
        }
        std::hint::spin_loop();
    }
    (tokens, has_found)
}

/// Only the clock.
fn filter() -> BpfProgram {
    let rules = [(libc::SYS_clock_gettime, vec![])].into_iter().collect();
    let arch = std::env::consts::ARCH.try_into().expect("seccomp knows the architecture");
    let filter = SeccompFilter::new(rules, SeccompAction::KillThread, SeccompAction::Allow, arch);
    filter.expect("a filter").try_into().expect("it compiles")
}

/// What the watched thread reports: stages that it has passed, and allocations that it has made in them.
#[derive(Clone, Default)]
struct Stages {
    passed: Arc<AtomicU32>,
    allocations: Arc<AtomicU64>,
}

impl Stages {
    fn pass(&self) {
        self.passed.fetch_add(1, Ordering::Release);
    }

    /// Waits until this many were passed, at most `longest`; returns how many were.
    fn wait(&self, wanted: u32, longest: Duration) -> u32 {
        let start = Instant::now();
        loop {
            let passed = self.passed.load(Ordering::Acquire);
            if passed >= wanted || start.elapsed() > longest {
                return passed;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Runs `work` on a thread that may not enter the kernel; returns the stages that it passes, one more at its end.
fn without_system_calls(work: impl FnOnce(&Stages) + Send + 'static) -> Stages {
    let stages = Stages::default();
    let told = stages.clone();
    std::thread::spawn(move || {
        let filter = filter();
        seccompiler::apply_filter(&filter).expect("the kernel takes the filter");
        work(&told);
        told.pass();
        loop {
            std::hint::spin_loop();
        }
    });
    stages
}

#[test]
fn a_token_costs_no_allocation_and_no_system_call() {
    // The counter counts, and a system call ends its thread.
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1u64))));
    assert_eq!(counted.count_total, 1);
    let stages = without_system_calls(|stages| {
        stages.pass();
        std::thread::yield_now();
    });
    assert_eq!(stages.wait(1, DEADLINE), 1, "it begins");
    assert_eq!(stages.wait(2, GRACE), 1, "a thread goes on behind a system call");

    let mut sessions = sessions();
    let stages = without_system_calls(move |stages| {
        for session in &mut sessions {
            let (mut tokens, mut has_found) = (0, [false; 2]);
            let counted = allocation_counter::measure(|| {
                for found in &mut has_found {
                    let served = serve(session);
                    tokens += served.0;
                    *found = served.1;
                }
            });
            stages.allocations.fetch_add(counted.count_total, Ordering::Relaxed);
            // A failed assertion would enter the kernel: the stage is missing then, too.
            if tokens >= 2 * TOKENS && has_found == [false, true] {
                stages.pass();
            }
        }
        // Dropping them enters the kernel.
        std::mem::forget(sessions);
    });
    let wanted = Mode::ALL.len() as u32 + 1;
    assert_eq!(stages.wait(wanted, DEADLINE), wanted, "a system call in the first of {:?} left", Mode::ALL);
    assert_eq!(stages.allocations.load(Ordering::Relaxed), 0, "allocations");
}
