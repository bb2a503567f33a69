//! The token rings under a model checker: host and device as two threads over C11 atomics, every interleaving up to
//! a bound on preemptions and every value that a relaxed load may return. The code of the rings is the same as over
//! a mapping.
//!
//! The checker does not let a load be overtaken by a later store. So it does not cover the fence before a count of
//! consumed entries, which is needed because a line may be overwritten once it is counted.

mod model;
#[path = "model/said.rs"]
mod said;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;
use model::check;
use said::{Said, line, said};
use zrt_ring::token_ring::mock::{DeviceInput, DeviceOutput};
use zrt_ring::token_ring::{InputRing, OutputRing, RingMemory};

/// Entries of the ring; one more entry is sent, so that a line is reused and the writer waits for space.
const ENTRIES: usize = 2;
const SENT: u32 = 3;
/// Preemptions in one execution at most.
const PREEMPTIONS_MAX: usize = 4;
/// The number of the first entry, so that the tags pass 2^32 - 1, and its tag.
const FIRST: u64 = (1 << 32) - 3;
const FIRST_TAG: u32 = 0xffff_fffe;

/// The planted fault.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    NoStoreFence,
    NoLoadFence,
}

/// Memory that the checker watches.
#[derive(Clone)]
struct Watched {
    words: Arc<Vec<AtomicU32>>,
    fault: Fault,
}

impl Watched {
    fn new(dwords: usize, fault: Fault) -> Watched {
        Watched { words: Arc::new((0..dwords).map(|_| AtomicU32::new(0)).collect()), fault }
    }
}

impl RingMemory for Watched {
    fn dwords(&self) -> usize {
        self.words.len()
    }
    fn load(&self, dword: usize) -> u32 {
        self.words[dword].load(Ordering::Relaxed)
    }
    fn store(&self, dword: usize, value: u32) {
        self.words[dword].store(value, Ordering::Relaxed);
    }
    fn fence_loads(&self) {
        if self.fault != Fault::NoLoadFence {
            fence(Ordering::Acquire);
        }
    }
    fn fence_stores(&self) {
        if self.fault != Fault::NoStoreFence {
            fence(Ordering::Release);
        }
    }
}

fn host_to_device(fault: Fault) -> Result<usize, String> {
    check(PREEMPTIONS_MAX, move || {
        let (ring, consumed) = (Watched::new(ENTRIES * 16, fault), Watched::new(1, fault));
        let mut host =
            InputRing::<Said, _>::starting_at(ring.clone(), consumed.clone(), None, FIRST).expect("valid");
        let mut device = DeviceInput::new(ring, consumed, FIRST as u32, FIRST_TAG);
        let reader = thread::spawn(move || {
            for mark in 0..SENT {
                let came = loop {
                    match device.take() {
                        Some(came) => break came,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(came[1..15], line(mark)[1..15], "torn entry");
                device.tell();
            }
        });
        for mark in 0..SENT {
            while host.push(&said(mark)).is_err() {
                thread::yield_now();
            }
        }
        reader.join().expect("the reader ends");
    })
}

fn device_to_host(fault: Fault) -> Result<usize, String> {
    check(PREEMPTIONS_MAX, move || {
        let (ring, consumed) = (Watched::new(ENTRIES * 16, fault), Watched::new(1, fault));
        let mut host = OutputRing::<Said, _>::starting_at(ring.clone(), consumed.clone(), None, 2, FIRST)
            .expect("valid");
        let mut device = DeviceOutput::new(ring, consumed, FIRST as u32, FIRST_TAG);
        let writer = thread::spawn(move || {
            for mark in 0..SENT {
                while !device.put(&line(mark), 0) {
                    thread::yield_now();
                }
            }
        });
        for mark in 0..SENT {
            let entry = loop {
                match host.poll() {
                    Ok(Some(entry)) => break entry,
                    Ok(None) => thread::yield_now(),
                    Err(error) => panic!("torn entry: {error}"),
                }
            };
            assert_eq!(entry, said(mark), "torn entry");
        }
        writer.join().expect("the writer ends");
    })
}

#[test]
fn no_execution_tears_loses_or_repeats_an_entry() {
    for (name, executions) in
        [("input", host_to_device(Fault::None)), ("output", device_to_host(Fault::None))]
    {
        let executions = executions.unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}: {executions} executions");
        assert!(executions > 10, "{name}: only {executions} executions were looked at");
    }
}

#[test]
fn the_checker_sees_a_missing_fence() {
    for fault in [Fault::NoStoreFence, Fault::NoLoadFence] {
        for outcome in [host_to_device(fault), device_to_host(fault)] {
            let error = outcome.expect_err("some execution takes a torn entry");
            assert!(error.contains("torn entry"), "{error}");
        }
    }
}
