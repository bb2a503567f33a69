//! The producer's side of a command ring.
//!
//! Pointers count dwords in 64 bits and never wrap (hardware reference §0, fact 2); a slot is the pointer modulo the
//! ring. free = size − (wptr − rptr), and one dword always stays free, so that wptr − rptr never reaches the size
//! (hardware reference §6.4). Packets may straddle the end of the ring. The device advances the read pointer
//! lazily, and no source says how lazily for a queue of this kind. The free space is therefore computed from the
//! further of two positions: the reported one, and the one that reached fences prove ([`CommandRing::note_fence`],
//! [`CommandRing::fence_reached`]).
//!
//! Cost: one store per dword, one store fence, one doorbell store; the read pointer is loaded only if the space
//! known to be free does not suffice. `benches/submissions.rs` measures it.

use crate::clock::{Clock, poll_until};
use crate::error::RingError;
use crate::fence::Fence;
use crate::graph::{GRAPH_PARTS_MAX, Graph};
use crate::publish::{NOT_A_PACKET, RingStores, SharedRing, publish};
use crate::queue_memory::QueueMemory;
use crate::read_proof::ReadProof;
use crate::watchdog::Observation;
use core::sync::atomic::Ordering;
use zrt_mem::{GpuVa, SharedView};
use zrt_pm4::packet::{acquire_mem, indirect_buffer, release_mem};
use zrt_pm4::{Opcode, Reader, StreamError, Writer};

/// Smallest ring in bytes: one page (hardware reference §2.6).
pub const RING_BYTES_MIN: usize = 4096;

/// Highest initial write pointer of a ring. 2^62 dwords remain after it, which no queue submits: pointers never
/// wrap.
pub const START_POINTER_MAX: u64 = u64::MAX - (1 << 62);

/// Most dwords that submitting a graph writes into the ring: acquire, jumps, fence, interrupt.
const GRAPH_SUBMISSION_DWORDS_MAX: usize = acquire_mem::Repr::DWORDS
    + GRAPH_PARTS_MAX * indirect_buffer::Repr::DWORDS
    + 2 * release_mem::Repr::DWORDS;

/// The command ring of one queue, owned by its one producer.
#[derive(Debug)]
pub struct CommandRing<M = SharedView> {
    stores: SharedRing<M>,
    read_pointer: M,
    mask: usize,
    write: u64,
    /// The furthest read pointer reported or proved so far.
    read: u64,
    proof: ReadProof,
    counters: Counters,
}

/// Totals of what was submitted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Submissions; also the number of doorbell stores.
    pub submissions: u64,
    /// Packets, those of replayed graphs included.
    pub packets: u64,
    /// Dispatches, those of replayed graphs included.
    pub dispatches: u64,
    /// Dwords written into the ring.
    pub ring_dwords: u64,
    /// Dwords of the indirect buffers that were called.
    pub indirect_dwords: u64,
}

/// The position of a submission, in dwords since the queue was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Its first dword.
    pub start: u64,
    /// The dword after its last one: the value that write pointer and doorbell were set to.
    pub end: u64,
}

/// What the device writes when a submission completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceSignal {
    /// Address to write; a multiple of 8.
    pub address: GpuVa,
    /// Value to write.
    pub value: u64,
    /// An event to raise afterwards, so that a host can sleep.
    pub event: Option<EventSlot>,
}

/// A slot of the event page (hardware reference §2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSlot {
    /// Address of the slot, a multiple of 4.
    pub address: GpuVa,
    /// The event's id, which the interrupt carries.
    pub event_id: u32,
}

impl FenceSignal {
    /// `value` to `address`, without an event.
    pub const fn new(address: GpuVa, value: u64) -> FenceSignal {
        FenceSignal { address, value, event: None }
    }

    /// The same signal with an event.
    pub const fn with_event(self, event: EventSlot) -> FenceSignal {
        FenceSignal { event: Some(event), ..self }
    }
}

impl<M: QueueMemory> CommandRing<M> {
    /// A producer over the ring's memory, the words that hold the pointers, and the doorbell (8 bytes each, at the
    /// start of their views).
    ///
    /// The pointers are taken from memory as they are, up to [`START_POINTER_MAX`]; they must be zero for a new
    /// queue. The slot at the write pointer is overwritten with a word that is no packet.
    pub fn new(ring: M, write_pointer: M, read_pointer: M, doorbell: M) -> Result<CommandRing<M>, RingError> {
        let bytes = ring.len();
        if !bytes.is_power_of_two() || bytes < RING_BYTES_MIN {
            return Err(RingError::RingLength { bytes, least: RING_BYTES_MIN });
        }
        for (name, view) in
            [("write pointer", &write_pointer), ("read pointer", &read_pointer), ("doorbell", &doorbell)]
        {
            if view.len() < 8 {
                return Err(RingError::ViewLength { name, bytes: view.len() });
            }
        }
        CommandRing::over(ring, write_pointer, read_pointer, doorbell)
    }

    /// The same over a ring of any power-of-two length in dwords, and words that are long enough.
    pub(crate) fn over(
        ring: M,
        write_pointer: M,
        read_pointer: M,
        doorbell: M,
    ) -> Result<CommandRing<M>, RingError> {
        let mask = ring.len() / 4 - 1;
        let (write, read) = (write_pointer.load_u64_acquire(0), read_pointer.load_u64_acquire(0));
        if read > write || write - read > mask as u64 || write > START_POINTER_MAX {
            return Err(RingError::StartPointers { read, write });
        }
        let mut stores = SharedRing { ring, write_pointer, doorbell };
        stores.store_dword(write as usize & mask, NOT_A_PACKET);
        let proof = ReadProof::new(mask + 1, read);
        Ok(CommandRing { stores, read_pointer, mask, write, read, proof, counters: Counters::default() })
    }

    /// Most dwords that the ring holds at a time: one fewer than its length.
    pub const fn capacity_dwords(&self) -> usize {
        self.mask
    }

    /// Dwords submitted since the queue was made.
    pub const fn write_pointer(&self) -> u64 {
        self.write
    }

    /// Notes that the last packet of the latest submission is a fence with `value`. Values belong to one timeline:
    /// each exceeds all before it.
    #[inline]
    pub fn note_fence(&mut self, value: u64) {
        self.proof.note(value, self.write);
    }

    /// Notes that the fence of that timeline reads `value`, so the ring was read at least up to it.
    pub fn fence_reached(&mut self, value: u64) {
        self.read = self.read.max(self.proof.reached(value));
    }

    /// Dwords that the device has read since the queue was made, as far as reported or proved by fences.
    pub fn read_pointer(&mut self) -> Result<u64, RingError> {
        self.refresh_read_pointer()?;
        Ok(self.read)
    }

    /// Dwords that can be submitted now.
    pub fn free_dwords(&mut self) -> Result<usize, RingError> {
        self.refresh_read_pointer()?;
        Ok(self.free_known())
    }

    /// What was submitted so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Copies dwords out of the ring, for reports, from a position counted like the pointers. At and after the
    /// write pointer, the contents are from the previous round.
    pub fn peek(&self, position: u64, words: &mut [u32]) {
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.stores.ring.load_u32(((position as usize).wrapping_add(index) & self.mask) * 4);
        }
    }

    /// The pointers and a fence as they are now, for a [`Watchdog`](crate::Watchdog). `fence_target` is the value that
    /// the last submission will write.
    pub fn observe(&self, time_ns: u64, fence: &Fence<M>, fence_target: u64) -> Observation {
        let read_pointer = match self.reported_read_pointer() {
            Ok(read) => read.max(self.read),
            Err(RingError::ReadPointerAhead { read, .. }) => read,
            Err(_) => self.read,
        };
        let fence_value = fence.value();
        Observation { time_ns, write_pointer: self.write, read_pointer, fence_value, fence_target }
    }

    /// Submits whole packets with one doorbell. Returns [`RingError::Full`], and writes nothing, if there is not
    /// enough space now.
    pub fn submit(&mut self, packets: &[u32]) -> Result<Submission, RingError> {
        let (packet_count, dispatches) = count_packets(packets)?;
        self.make_room(packets.len())?;
        self.counters.packets += packet_count;
        self.counters.dispatches += dispatches;
        Ok(self.push(packets))
    }

    /// Like [`submit`](CommandRing::submit), but waits at most `timeout_ns` for space.
    pub fn submit_within<C: Clock>(
        &mut self,
        packets: &[u32],
        clock: &C,
        timeout_ns: u64,
    ) -> Result<Submission, RingError> {
        self.wait_for_room(packets.len(), clock, timeout_ns)?;
        self.submit(packets)
    }

    /// Replays a recorded graph, then has the device write a fence: one submission, one doorbell.
    ///
    /// The first submission of a recording begins with a full acquire, so that the command processor does not fetch
    /// stale lines of what the memory held before (hardware reference §9).
    pub fn submit_graph(&mut self, graph: &Graph, signal: FenceSignal) -> Result<Submission, RingError> {
        let mut words = [0; GRAPH_SUBMISSION_DWORDS_MAX];
        let mut writer = Writer::new(&mut words);
        let mut packets = 1;
        let first = !graph.fetched.load(Ordering::Relaxed);
        if first {
            writer.acquire_everything()?;
            packets += 1;
        }
        for part in graph.parts() {
            writer.indirect_buffer(&indirect_buffer::Repr::call(part.address.0, part.len.0))?;
            packets += 1;
        }
        writer.release_mem(&release_mem::Repr::fence(signal.address.0, signal.value))?;
        if let Some(EventSlot { address, event_id }) = signal.event {
            writer.release_mem(&release_mem::Repr::event_interrupt(address.0, event_id))?;
            packets += 1;
        }
        let len = writer.len();
        self.make_room(len)?;
        self.counters.packets += packets + graph.packets();
        self.counters.dispatches += graph.dispatches();
        self.counters.indirect_dwords += graph.len().0 as u64;
        let submission = self.push(&words[..len]);
        if first {
            graph.fetched.store(true, Ordering::Relaxed);
        }
        Ok(submission)
    }

    /// Like [`submit_graph`](CommandRing::submit_graph), but waits at most `timeout_ns` for space.
    pub fn submit_graph_within<C: Clock>(
        &mut self,
        graph: &Graph,
        signal: FenceSignal,
        clock: &C,
        timeout_ns: u64,
    ) -> Result<Submission, RingError> {
        self.wait_for_room(GRAPH_SUBMISSION_DWORDS_MAX, clock, timeout_ns)?;
        self.submit_graph(graph, signal)
    }

    /// Waits at most `timeout_ns` until `dwords` fit.
    pub fn wait_for_room<C: Clock>(
        &mut self,
        dwords: usize,
        clock: &C,
        timeout_ns: u64,
    ) -> Result<(), RingError> {
        let waited = poll_until(clock, timeout_ns, || match self.make_room(dwords) {
            Err(RingError::Full { .. }) => None,
            answer => Some(answer),
        });
        match waited {
            Ok(answer) => answer,
            Err(waited_ns) => Err(RingError::Timeout { needed: dwords, free: self.free_known(), waited_ns }),
        }
    }

    const fn free_known(&self) -> usize {
        self.mask - (self.write - self.read) as usize
    }

    #[inline]
    fn make_room(&mut self, dwords: usize) -> Result<(), RingError> {
        if dwords <= self.free_known() && dwords > 0 {
            return Ok(());
        }
        if dwords == 0 {
            return Err(RingError::Empty);
        }
        if dwords > self.mask {
            return Err(RingError::TooLong { dwords, capacity: self.mask });
        }
        self.refresh_read_pointer()?;
        match self.free_known() {
            free if dwords <= free => Ok(()),
            free => Err(RingError::Full { needed: dwords, free }),
        }
    }

    fn refresh_read_pointer(&mut self) -> Result<(), RingError> {
        self.read = self.read.max(self.reported_read_pointer()?);
        Ok(())
    }

    /// The read pointer that the other side has stored, counted since the queue was made.
    ///
    /// The reference does not say how many bits of it the hardware reports, or whether it wraps with the ring.
    /// Taken literally, the value never claims more than was read; if it claims less, fences prove the rest. Its
    /// position modulo the ring would say more but cannot be used: a value that lags by more than a ring would pass
    /// for a later one. A value above the write pointer is wrong in every reading.
    fn reported_read_pointer(&self) -> Result<u64, RingError> {
        let read = self.read_pointer.load_u64_acquire(0);
        if read > self.write {
            return Err(RingError::ReadPointerAhead { read, write: self.write });
        }
        Ok(read)
    }

    #[inline]
    fn push(&mut self, packets: &[u32]) -> Submission {
        let start = self.write;
        self.write = publish(&mut self.stores, self.mask, start, packets);
        assert!(self.write - self.read <= self.mask as u64, "a submission never laps the reader");
        self.counters.submissions += 1;
        self.counters.ring_dwords += packets.len() as u64;
        Submission { start, end: self.write }
    }
}

/// Packets and dispatches in `words`, or the place where they stop being packets.
fn count_packets(words: &[u32]) -> Result<(u64, u64), StreamError> {
    let (mut packets, mut dispatches) = (0, 0);
    for item in Reader::new(words) {
        let item = item?;
        packets += 1;
        dispatches += u64::from(
            item.words.first().is_some_and(|word| zrt_pm4::Header(*word).opcode() == Opcode::DISPATCH_DIRECT),
        );
    }
    Ok((packets, dispatches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphRecorder;
    use crate::graph::tests::{PART_DWORDS, kernel};
    use zrt_mem::DwordLen;

    /// The longest possible submission of a graph: all parts, with an event, for the first time. A wait for space
    /// waits for exactly that length.
    #[test]
    fn the_longest_submission_of_a_graph_is_as_long_as_is_waited_for() {
        let mut recorder = GraphRecorder::with_part_limit(DwordLen(500), PART_DWORDS).expect("room");
        for part in 0..GRAPH_PARTS_MAX as u32 {
            if part > 0 {
                recorder.barrier().expect("room");
            }
            recorder.dispatch(&kernel(), GpuVa(0x1000), [1, 1, 1]).expect("room");
        }
        let event = EventSlot { address: GpuVa(0x2000), event_id: 1 };
        let signal = FenceSignal::new(GpuVa(0x3000), 1).with_event(event);
        let clock = || 7u64;
        for spare in [0, 1] {
            let graph = recorder
                .finish(&SharedView::zeroed(4096).expect("memory"), GpuVa(0x7f00_0010_0000))
                .expect("sound");
            assert_eq!(graph.part_count(), GRAPH_PARTS_MAX);
            let view = |bytes| SharedView::zeroed(bytes).expect("memory");
            let mut ring = CommandRing::new(view(RING_BYTES_MIN), view(8), view(8), view(8)).expect("valid");
            let used = ring.capacity_dwords() - GRAPH_SUBMISSION_DWORDS_MAX + 1 - spare;
            let nop = [0xc000_1000 | (used as u32 - 2) << 16].into_iter().chain([0].into_iter().cycle());
            ring.submit(&nop.take(used).collect::<alloc::vec::Vec<u32>>()).expect("room");
            let submitted = ring.submit_graph_within(&graph, signal, &clock, 0);
            let (needed, free) = (GRAPH_SUBMISSION_DWORDS_MAX, GRAPH_SUBMISSION_DWORDS_MAX - 1);
            match spare {
                0 => assert_eq!(submitted, Err(RingError::Timeout { needed, free, waited_ns: 0 })),
                _ => assert_eq!(submitted.map(|done| done.end - done.start), Ok(needed as u64)),
            }
        }
    }
}
