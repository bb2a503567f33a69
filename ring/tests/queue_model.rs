//! The command ring and the fence under a model checker: host and device as two threads over C11 atomics. The code of
//! ring and fence is the same as over a mapping.
//!
//! A release of a pointer or a header publishes what was stored before it to memory of the same kind. The doorbell
//! is memory of another kind: here its store orders nothing, so only the fence before it orders it.
//!
//! The ring has its smallest length, 1024 dwords. The model holds only the slots around its start; the others
//! accept stores and are never read. The checker does not let a load be overtaken by a later store. So two orders
//! are checked only by program order: that the device loads a packet before it reports it, and that the host loads
//! that report before it stores.

mod model;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use model::check;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use zrt_mem::GpuVa;
use zrt_ring::{Clock, CommandRing, Fence, QueueMemory, RING_BYTES_MIN, RingError, Timeline};

/// Preemptions in one execution at most.
const PREEMPTIONS_MAX: usize = 3;
const RING_DWORDS: u64 = RING_BYTES_MIN as u64 / 4;
/// Slots that the model holds, and how many of them lie before the start of the ring.
const WINDOW: usize = 12;
const BEFORE_START: u64 = 6;
/// The initial contents of the slots: a NOP of one dword, a valid packet wherever a reader starts.
const OLD_PACKET: u32 = 0xffff_1000;
/// A word that begins no packet.
const NOT_A_PACKET: u32 = 0;

/// The planted fault.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The release of the first header has no effect.
    RelaxedHeader,
    /// The release of the write pointer has no effect.
    RelaxedPointer,
    /// The fence before the doorbell has no effect.
    NoDoorbellFence,
    /// Of a submission's stores, the one named first goes out before the one named second.
    HeaderBeforeBodies,
    HeaderBeforeMarker,
    PointerBeforeHeader,
    DoorbellBeforePointer,
    /// The device reports a packet as read before it reads it.
    ToldEarly,
    /// The load of the fence's value does not acquire.
    RelaxedFence,
}

/// A store of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Store {
    Dword(u64, u32),
    Header(u64, u32),
    Pointer(u64),
    Fence,
    Doorbell(u64),
}

/// The memory that both sides see.
struct Shared {
    slots: Vec<AtomicU32>,
    write_pointer: AtomicU64,
    read_pointer: AtomicU64,
    doorbell: AtomicU64,
    fence: AtomicU64,
    fault: Fault,
}

impl Shared {
    fn new(start: u64, fault: Fault) -> Arc<Shared> {
        Arc::new(Shared {
            slots: (0..WINDOW).map(|_| AtomicU32::new(OLD_PACKET)).collect(),
            write_pointer: AtomicU64::new(start),
            read_pointer: AtomicU64::new(start),
            doorbell: AtomicU64::new(start),
            fence: AtomicU64::new(0),
            fault,
        })
    }

    /// The dword at a position counted like the pointers, if the model holds it.
    fn slot(&self, position: u64) -> Option<&AtomicU32> {
        self.slots.get(((position + BEFORE_START) % RING_DWORDS) as usize)
    }

    fn make(&self, store: Store) {
        let release = |fault| if self.fault == fault { Ordering::Relaxed } else { Ordering::Release };
        match store {
            Store::Dword(at, value) => {
                self.slot(at).into_iter().for_each(|slot| slot.store(value, Ordering::Relaxed))
            }
            Store::Header(at, value) => {
                self.slot(at).expect("headers are held").store(value, release(Fault::RelaxedHeader));
            }
            Store::Pointer(value) => self.write_pointer.store(value, release(Fault::RelaxedPointer)),
            Store::Fence if self.fault == Fault::NoDoorbellFence => {}
            Store::Fence => fence(Ordering::Release),
            Store::Doorbell(value) => self.doorbell.store(value, Ordering::Relaxed),
        }
    }
}

/// A memory of the queue.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Ring,
    WritePointer,
    ReadPointer,
    Doorbell,
    Fence,
}

/// The host's side. Stores are held back until the doorbell if a fault in their order is planted.
#[derive(Clone)]
struct Watched {
    part: Part,
    shared: Arc<Shared>,
    kept: Rc<RefCell<Vec<Store>>>,
}

impl Watched {
    fn put(&self, store: Store) {
        let fault = self.shared.fault;
        let first = |stores: &[Store], wanted: fn(&Store) -> bool| {
            stores.iter().position(wanted).expect("a submission has every kind of store")
        };
        let is_header = |store: &Store| matches!(store, Store::Header(..));
        let is_pointer = |store: &Store| matches!(store, Store::Pointer(_));
        let order = |stores: &mut Vec<Store>| {
            let (from, to) = match fault {
                Fault::HeaderBeforeBodies => (first(stores, is_header), 1),
                Fault::HeaderBeforeMarker => (0, first(stores, is_header)),
                Fault::PointerBeforeHeader => (first(stores, is_pointer), first(stores, is_header)),
                _ => (stores.len() - 1, first(stores, is_pointer)),
            };
            let moved = stores.remove(from);
            stores.insert(to, moved);
        };
        match fault {
            Fault::HeaderBeforeBodies
            | Fault::HeaderBeforeMarker
            | Fault::PointerBeforeHeader
            | Fault::DoorbellBeforePointer => {
                let mut kept = self.kept.borrow_mut();
                kept.push(store);
                if let Store::Doorbell(_) = store {
                    order(&mut kept);
                    kept.drain(..).for_each(|store| self.shared.make(store));
                }
            }
            _ => self.shared.make(store),
        }
    }
}

impl QueueMemory for Watched {
    fn len(&self) -> usize {
        if self.part == Part::Ring { RING_BYTES_MIN } else { 8 }
    }
    fn load_u32(&self, _: usize) -> u32 {
        unreachable!("the host does not read the ring")
    }
    fn store_u32(&self, offset: usize, value: u32) {
        self.put(Store::Dword(offset as u64 / 4, value));
    }
    fn store_u32_release(&self, offset: usize, value: u32) {
        self.put(Store::Header(offset as u64 / 4, value));
    }
    fn load_u64_acquire(&self, _: usize) -> u64 {
        match self.part {
            Part::WritePointer => self.shared.write_pointer.load(Ordering::Acquire),
            Part::ReadPointer => self.shared.read_pointer.load(Ordering::Acquire),
            Part::Fence if self.shared.fault == Fault::RelaxedFence => {
                self.shared.fence.load(Ordering::Relaxed)
            }
            Part::Fence => self.shared.fence.load(Ordering::Acquire),
            Part::Ring | Part::Doorbell => unreachable!("the host does not read these"),
        }
    }
    fn store_u64_release(&self, _: usize, value: u64) {
        match self.part {
            Part::WritePointer => self.put(Store::Pointer(value)),
            Part::Doorbell => self.put(Store::Doorbell(value)),
            Part::Ring | Part::ReadPointer | Part::Fence => unreachable!("the host does not store these"),
        }
    }
    fn fence_stores(&self) {
        self.put(Store::Fence);
    }
}

/// The host's side of a queue whose pointers begin at `start`.
fn host(shared: &Arc<Shared>) -> (CommandRing<Watched>, Fence<Watched>) {
    let kept = Rc::new(RefCell::new(Vec::new()));
    let part = |part| Watched { part, shared: shared.clone(), kept: kept.clone() };
    let ring = CommandRing::new(
        part(Part::Ring),
        part(Part::WritePointer),
        part(Part::ReadPointer),
        part(Part::Doorbell),
    );
    // The word that the constructor stores comes before everything, whatever fault is planted.
    kept.borrow_mut().drain(..).for_each(|store| shared.make(store));
    let fence = Fence::new(part(Part::Fence), GpuVa(0x1000));
    (ring.expect("a ring of one page"), fence.expect("an aligned fence"))
}

/// A NOP of `dwords`; each dword of its body is different.
fn packet(dwords: u32, mark: u32) -> Vec<u32> {
    let header = 0xc000_1000 | (dwords - 2) << 16;
    [header].into_iter().chain((1..dwords).map(|at| mark << 8 | at & 0xff)).collect()
}

/// How a device learns that there is something to read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    Doorbell,
    WritePointer,
    /// It reads the ring itself and waits for nothing else.
    Ahead,
}

/// How a device reports that it has read a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tells {
    ReadPointer,
    Fence,
}

struct Device {
    shared: Arc<Shared>,
    reader: Reader,
    tells: Tells,
    read: u64,
    taken: u64,
}

impl Device {
    fn has_more(&self) -> bool {
        let (doorbell, pointer) = (&self.shared.doorbell, &self.shared.write_pointer);
        match self.reader {
            Reader::Doorbell => {
                let rung = doorbell.load(Ordering::Acquire);
                assert!(rung <= pointer.load(Ordering::Relaxed), "doorbell without pointer");
                rung > self.read
            }
            Reader::WritePointer => pointer.load(Ordering::Acquire) > self.read,
            Reader::Ahead => {
                let slot = self.shared.slot(self.read).expect("headers are held");
                slot.load(Ordering::Acquire) != NOT_A_PACKET
            }
        }
    }

    fn take(&mut self, expected: &[u32]) {
        while !self.has_more() {
            thread::yield_now();
        }
        let read = self.read;
        self.read += expected.len() as u64;
        self.taken += 1;
        let early = self.shared.fault == Fault::ToldEarly;
        if early {
            self.tell();
        }
        for (at, word) in (read..).zip(expected) {
            if let Some(slot) = self.shared.slot(at) {
                assert_eq!(slot.load(Ordering::Relaxed), *word, "torn packet");
            }
        }
        if !early {
            self.tell();
        }
    }

    fn tell(&self) {
        match self.tells {
            Tells::ReadPointer => self.shared.read_pointer.store(self.read, Ordering::Release),
            Tells::Fence => self.shared.fence.store(self.taken, Ordering::Release),
        }
    }
}

/// Submits `packets`, one submission each, to a device that expects them. If they are longer than the ring, it has
/// no space for all of them at once.
fn submissions(
    fault: Fault,
    reader: Reader,
    tells: Tells,
    start: u64,
    packets: Vec<Vec<u32>>,
) -> Result<usize, String> {
    check(PREEMPTIONS_MAX, move || {
        let shared = Shared::new(start, fault);
        let (mut ring, fence) = host(&shared);
        let mut device = Device { shared: shared.clone(), reader, tells, read: start, taken: 0 };
        let expected = packets.clone();
        let reader = thread::spawn(move || expected.iter().for_each(|packet| device.take(packet)));
        for (value, packet) in (1..).zip(&packets) {
            while let Err(error) = ring.submit(packet) {
                assert!(matches!(error, RingError::Full { .. }), "{error}");
                thread::yield_now();
                if tells == Tells::Fence {
                    ring.fence_reached(fence.value());
                }
            }
            ring.note_fence(value);
        }
        reader.join().expect("the device ends");
    })
}

/// Two packets, the first of which straddles the ring's end.
fn straddling(fault: Fault, reader: Reader) -> Result<usize, String> {
    submissions(fault, reader, Tells::ReadPointer, RING_DWORDS - 2, vec![packet(3, 1), packet(3, 2)])
}

/// A packet, one that leaves two dwords of the ring free, and two that need the space of the first and the second.
fn lapping(fault: Fault, tells: Tells) -> Result<usize, String> {
    let packets = vec![packet(3, 1), packet(1018, 2), packet(3, 3), packet(3, 4)];
    submissions(fault, Reader::WritePointer, tells, 0, packets)
}

#[test]
fn no_execution_shows_a_torn_submission() {
    for reader in [Reader::Doorbell, Reader::WritePointer, Reader::Ahead] {
        let executions =
            straddling(Fault::None, reader).unwrap_or_else(|error| panic!("{reader:?}: {error}"));
        println!("{reader:?}: {executions} executions");
        assert!(executions > 10, "{reader:?}: only {executions} executions were looked at");
    }
}

#[test]
fn no_execution_writes_over_what_was_not_read() {
    for tells in [Tells::ReadPointer, Tells::Fence] {
        let executions = lapping(Fault::None, tells).unwrap_or_else(|error| panic!("{tells:?}: {error}"));
        println!("{tells:?}: {executions} executions");
        assert!(executions > 10, "{tells:?}: only {executions} executions were looked at");
    }
}

#[test]
fn the_checker_sees_each_missing_order_of_a_submission() {
    for (fault, reader) in [
        (Fault::RelaxedHeader, Reader::Ahead),
        (Fault::HeaderBeforeBodies, Reader::Ahead),
        (Fault::HeaderBeforeMarker, Reader::Ahead),
        (Fault::RelaxedPointer, Reader::WritePointer),
        (Fault::PointerBeforeHeader, Reader::WritePointer),
        (Fault::NoDoorbellFence, Reader::Doorbell),
        (Fault::DoorbellBeforePointer, Reader::Doorbell),
    ] {
        let error = straddling(fault, reader).expect_err("some execution shows it");
        let rung_early = reader == Reader::Doorbell && error.contains("doorbell without pointer");
        assert!(rung_early || error.contains("torn packet"), "{fault:?}: {error}");
    }
}

#[test]
fn the_checker_sees_a_packet_that_is_written_over() {
    for tells in [Tells::ReadPointer, Tells::Fence] {
        let error = lapping(Fault::ToldEarly, tells).expect_err("some execution shows it");
        assert!(error.contains("torn packet"), "{tells:?}: {error}");
    }
}

/// A clock that lets the other side run.
struct Yielding(Cell<u64>);

impl Clock for Yielding {
    fn now_ns(&self) -> u64 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
    fn pause(&self, _: u64) {
        thread::yield_now();
    }
}

/// A device that stores a result, then the fence's value, twice; a host that waits for each value.
fn results_behind_a_fence(fault: Fault) -> Result<usize, String> {
    check(PREEMPTIONS_MAX, move || {
        let shared = Shared::new(0, fault);
        let results: Arc<[AtomicU32; 2]> = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let mut timeline = Timeline::new(host(&shared).1);
        let device = thread::spawn({
            let (shared, results) = (shared.clone(), results.clone());
            move || {
                for (value, result) in (1..).zip(results.iter()) {
                    result.store(7, Ordering::Relaxed);
                    shared.fence.store(value, Ordering::Release);
                }
            }
        });
        let values = [timeline.advance().expect("values left"), timeline.advance().expect("values left")];
        for value in values {
            let seen = timeline.wait(value, &Yielding(Cell::new(0)), u64::MAX).expect("it comes");
            assert!((value..=2).contains(&seen));
            for result in &results[..seen as usize] {
                assert_eq!(result.load(Ordering::Relaxed), 7, "a result is missing");
            }
        }
        assert_eq!(timeline.completed(), Ok(2));
        device.join().expect("the device ends");
    })
}

#[test]
fn what_a_fence_stands_for_is_there_in_every_execution() {
    let executions = results_behind_a_fence(Fault::None).unwrap_or_else(|error| panic!("{error}"));
    println!("fence: {executions} executions");
    assert!(executions > 10, "only {executions} executions were looked at");
    let error = results_behind_a_fence(Fault::RelaxedFence).expect_err("some execution shows it");
    assert!(error.contains("a result is missing"), "{error}");
}
