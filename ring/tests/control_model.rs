//! The control lines under a model checker: a host that signals to a slot and a device that polls, as two threads
//! over C11 atomics. The code of the lines is the same as over a mapping.

mod model;

use core::num::NonZeroU32;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;
use model::check;
use zrt_ring::token_ring::RingMemory;
use zrt_ring::{ControlDwords, ControlLines};

/// Preemptions in one execution at most.
const PREEMPTIONS_MAX: usize = 4;
/// The slot under test; the words of the others accept stores and are never read.
const SLOT: u32 = 2;
const LINE_DWORDS: usize = 16;
/// Words of the slot's line that are used.
const WORDS: usize = 5;

/// The planted fault.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    NoStoreFence,
    NoLoadFence,
    /// The serial of a grant goes out before its pages.
    SerialBeforePages,
}

/// The line of the slot, and the page table entries that its words refer to.
struct Shared {
    line: [AtomicU32; WORDS],
    table: [AtomicU32; 2],
    ended: AtomicU32,
    fault: Fault,
}

const AT: ControlDwords = ControlDwords {
    cancel_serial: 0,
    preempt_serial: 1,
    hold_serial: 2,
    granted_pages: 3,
    granted_serial: 4,
};

/// Memory of all lines, as the host sees it.
#[derive(Clone)]
struct Watched {
    shared: Arc<Shared>,
    /// Pages held back until the serial has gone out, if that fault is planted.
    pages: std::rc::Rc<std::cell::Cell<Option<u32>>>,
}

impl Watched {
    fn new(fault: Fault) -> Watched {
        let line = core::array::from_fn(|_| AtomicU32::new(0));
        let table = core::array::from_fn(|_| AtomicU32::new(0));
        let shared = Arc::new(Shared { line, table, ended: AtomicU32::new(0), fault });
        Watched { shared, pages: Default::default() }
    }

    fn word(&self, dword: usize) -> Option<&AtomicU32> {
        let first = SLOT as usize * LINE_DWORDS;
        dword.checked_sub(first).and_then(|word| self.shared.line.get(word))
    }
}

impl RingMemory for Watched {
    fn dwords(&self) -> usize {
        (SLOT as usize + 1) * LINE_DWORDS
    }
    fn load(&self, _: usize) -> u32 {
        unreachable!("the host does not read the lines")
    }
    fn store(&self, dword: usize, value: u32) {
        let Some(word) = self.word(dword) else { return };
        let name = dword % LINE_DWORDS;
        if self.shared.fault == Fault::SerialBeforePages && name == AT.granted_pages {
            self.pages.set(Some(value));
            return;
        }
        word.store(value, Ordering::Relaxed);
        if let Some(pages) = self.pages.take() {
            fence(Ordering::Release);
            self.shared.line[AT.granted_pages].store(pages, Ordering::Relaxed);
        }
    }
    fn fence_loads(&self) {
        unreachable!("the host does not read the lines")
    }
    fn fence_stores(&self) {
        if self.shared.fault != Fault::NoStoreFence {
            fence(Ordering::Release);
        }
    }
}

fn serial(serial: u32) -> NonZeroU32 {
    NonZeroU32::new(serial).expect("not zero")
}

/// The device's side, as a kernel implements it: loads, and a fence where it waits.
struct Device(Arc<Shared>);

impl Device {
    fn load(&self, word: usize) -> u32 {
        self.0.line[word].load(Ordering::Relaxed)
    }

    fn wait_for(&self, word: usize, value: u32) {
        while self.load(word) != value {
            thread::yield_now();
        }
        if self.0.fault != Fault::NoLoadFence {
            fence(Ordering::Acquire);
        }
    }

    /// The pages that `serial` may use; the table must have all of them.
    fn pages_of(&self, serial: u32) -> u32 {
        self.wait_for(AT.granted_serial, serial);
        let pages = self.load(AT.granted_pages);
        if self.0.fault != Fault::NoLoadFence {
            fence(Ordering::Acquire);
        }
        for page in &self.0.table[..pages as usize] {
            assert_eq!(page.load(Ordering::Relaxed), 7, "a page is missing");
        }
        pages
    }
}

/// A request with one page and then two; after it has ended, one with one page.
fn grants(fault: Fault) -> Result<usize, String> {
    check(PREEMPTIONS_MAX, move || {
        let memory = Watched::new(fault);
        let shared = memory.shared.clone();
        let mut lines = ControlLines::new(memory, AT, None).expect("long enough");
        let device = thread::spawn({
            let device = Device(shared.clone());
            move || {
                let first = device.pages_of(5);
                assert!((1..=2).contains(&first), "pages of nobody");
                let later = device.pages_of(5);
                assert!((first..=2).contains(&later), "pages shrink");
                device.0.ended.store(5, Ordering::Release);
                assert_eq!(device.pages_of(6), 1, "pages of the request before");
            }
        });
        let mut line = lines.slot(SLOT).expect("there is such a slot");
        for pages in 1..=2 {
            shared.table[pages as usize - 1].store(7, Ordering::Relaxed);
            line.grant(serial(5), pages).expect("it grows");
        }
        while shared.ended.load(Ordering::Acquire) != 5 {
            thread::yield_now();
        }
        line.grant(serial(6), 1).expect("another request");
        device.join().expect("the device ends");
    })
}

/// A word that follows a store of the data it refers to.
fn words(fault: Fault) -> Result<usize, String> {
    check(PREEMPTIONS_MAX, move || {
        let memory = Watched::new(fault);
        let shared = memory.shared.clone();
        let mut lines = ControlLines::new(memory, AT, None).expect("long enough");
        let device = thread::spawn({
            let device = Device(shared.clone());
            move || {
                for (page, word) in device.0.table.iter().zip([AT.preempt_serial, AT.cancel_serial]) {
                    device.wait_for(word, 5);
                    assert_eq!(page.load(Ordering::Relaxed), 7, "what was stored before is missing");
                }
                // The line is cleared before the next request is announced.
                device.wait_for(AT.granted_serial, 5);
                assert_eq!(device.load(AT.hold_serial), 0, "said to the request before");
            }
        });
        let mut line = lines.slot(SLOT).expect("there is such a slot");
        line.hold(serial(5));
        shared.table[0].store(7, Ordering::Relaxed);
        line.preempt(serial(5));
        shared.table[1].store(7, Ordering::Relaxed);
        line.cancel(serial(5));
        line.release();
        line.grant(serial(5), 0).expect("the first grant");
        device.join().expect("the device ends");
    })
}

#[test]
fn every_execution_finds_what_the_words_speak_of() {
    for (name, executions) in [("grants", grants(Fault::None)), ("words", words(Fault::None))] {
        let executions = executions.unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}: {executions} executions");
        assert!(executions > 10, "{name}: only {executions} executions were looked at");
    }
}

#[test]
fn the_checker_sees_a_missing_fence_and_a_wrong_order() {
    for fault in [Fault::NoStoreFence, Fault::NoLoadFence] {
        let error = grants(fault).expect_err("some execution shows it");
        assert!(error.contains("a page is missing") || error.contains("pages of"), "{fault:?}: {error}");
        let error = words(fault).expect_err("some execution shows it");
        assert!(error.contains("is missing") || error.contains("said to"), "{fault:?}: {error}");
    }
    let error = grants(Fault::SerialBeforePages).expect_err("some execution shows it");
    assert!(error.contains("pages of"), "{error}");
}
