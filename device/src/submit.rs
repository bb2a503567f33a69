//! The queue, its ring and its timeline as one unit, and what is in flight.
//!
//! Contract: submitting and reading the fence touch mapped memory only: no lock, no allocation, no system call. It is
//! the device that waits for room or for a fence, with a deadline.

use crate::counters::Counters;
use crate::diagnosis::{RING_EXCERPT_DWORDS, RingExcerpt};
use crate::error::DeviceError;
use crate::graph::Graph;
use crate::memory::{Buffer, Space};
use zrt_kmd::Queue;
use zrt_mem::{ByteLen, GpuVa, Heap};
use zrt_pm4::Writer;
use zrt_pm4::packet::release_mem;
use zrt_ring::{CommandRing, Fence, FenceSignal, Observation, RingError, Timeline};

/// Submissions whose description is kept for reports.
const HISTORY: usize = 64;
/// The fence's line: GL2 lines are 256 bytes (hardware reference §1.4).
const FENCE_BYTES: u64 = 256;
/// Maximum number of dwords of [`Device::submit_words`](crate::Device::submit_words), its fence included.
pub const WORDS_MAX: usize = 256;

/// One queue with its producer.
pub(crate) struct SubmissionQueue {
    ring: CommandRing,
    timeline: Timeline,
    history: [Submission; HISTORY],
    // The queue is dropped before the fence that its packets name.
    _queue: Queue,
    fence: Buffer,
}

/// What is remembered about a submission.
#[derive(Clone, Copy, Debug, Default)]
struct Submission {
    fence_value: u64,
    /// Its first dword in the ring, counted as the pointers are.
    ring_position: u64,
    /// Its indirect buffer; 0 if the packets are in the ring.
    indirect_va: u64,
    /// Dispatches of its indirect buffer; else its packets in the ring.
    count: u64,
}

impl SubmissionQueue {
    /// Takes over a new queue.
    pub(crate) fn new(space: &Space, queue: Queue) -> Result<SubmissionQueue, DeviceError> {
        let fence = space.allocate(Heap::Host, ByteLen(FENCE_BYTES), "fence", false)?;
        space.registry.set_own(fence.entry());
        let view = fence.view()?.clone();
        view.store_u64_release(0, 0);
        let ring =
            CommandRing::new(queue.ring(), queue.write_pointer(), queue.read_pointer(), queue.doorbell())?;
        let timeline = Timeline::new(Fence::new(view, fence.va)?);
        Ok(SubmissionQueue {
            ring,
            timeline,
            history: [Submission::default(); HISTORY],
            _queue: queue,
            fence,
        })
    }

    /// Submits a graph with a fence and returns the fence's value after it. If there is no room, returns
    /// [`RingError::Full`] and has no effect.
    pub(crate) fn submit_graph(&mut self, graph: &Graph) -> Result<u64, DeviceError> {
        let (Some(recorded), Some(buffer)) = (&graph.recorded, &graph.buffer) else {
            return Err(DeviceError::EmptyGraph);
        };
        let fence_value = self.next_value();
        let signal = FenceSignal::new(self.fence.va, fence_value);
        let placed = self.with_room(|ring| ring.submit_graph(recorded, signal))?;
        self.submitted(Submission {
            fence_value,
            ring_position: placed.start,
            indirect_va: buffer.va.0,
            count: recorded.dispatches(),
        })
    }

    /// Submits packets as they are, then a fence, as one submission of at most [`WORDS_MAX`] dwords.
    pub(crate) fn submit_words(&mut self, words: &[u32]) -> Result<u64, DeviceError> {
        let fence_value = self.next_value();
        let mut all = [0; WORDS_MAX];
        let mut writer = Writer::new(&mut all);
        writer.raw(words)?;
        writer.release_mem(&release_mem::Repr::fence(self.fence.va.0, fence_value))?;
        let len = writer.len();
        let before = self.ring.counters().packets;
        let placed = self.with_room(|ring| ring.submit(&all[..len]))?;
        self.submitted(Submission {
            fence_value,
            ring_position: placed.start,
            indirect_va: 0,
            count: self.ring.counters().packets - before,
        })
    }

    fn next_value(&self) -> u64 {
        self.timeline.last() + 1
    }

    /// Commits the fence value, now that its packet is in the ring.
    fn submitted(&mut self, submission: Submission) -> Result<u64, DeviceError> {
        let value = self.timeline.advance()?;
        assert_eq!(value, submission.fence_value, "a fence value is handed out once");
        self.ring.note_fence(value);
        self.history[(value % HISTORY as u64) as usize] = submission;
        Ok(value)
    }

    /// Submits; reads the fence if the reported read pointer leaves no room.
    fn with_room(
        &mut self,
        submit: impl Fn(&mut CommandRing) -> Result<zrt_ring::Submission, RingError>,
    ) -> Result<zrt_ring::Submission, DeviceError> {
        match submit(&mut self.ring) {
            Err(RingError::Full { .. }) => {
                self.ring.fence_reached(self.timeline.completed()?);
                Ok(submit(&mut self.ring)?)
            }
            outcome => Ok(outcome?),
        }
    }

    /// True if `dwords` fit now.
    pub(crate) fn has_room(&mut self, dwords: usize) -> Result<bool, DeviceError> {
        self.ring.fence_reached(self.timeline.completed()?);
        Ok(self.ring.free_dwords()? >= dwords)
    }

    /// True if the submission with this fence value has finished.
    #[inline]
    pub(crate) fn is_done(&self, fence_value: u64) -> bool {
        self.progress() >= fence_value
    }

    pub(crate) fn progress(&self) -> u64 {
        self.timeline.fence().value()
    }

    /// The fence of the last submission.
    pub(crate) fn last_fence(&self) -> u64 {
        self.timeline.last()
    }

    /// The current pointers and fence.
    pub(crate) fn observe(&self, time_ns: u64) -> Observation {
        self.ring.observe(time_ns, self.timeline.fence(), self.timeline.last())
    }

    /// What the ring holds at the point where the device stopped: at the read pointer or, if everything was read, from
    /// the start of the submission that is waited for.
    pub(crate) fn excerpt(&self, fence_value: u64) -> RingExcerpt {
        let Observation { read_pointer, write_pointer, .. } = self.observe(0);
        let kept = self.history[(fence_value % HISTORY as u64) as usize];
        let is_all_read = read_pointer >= write_pointer;
        let position = match is_all_read {
            false => read_pointer,
            true if kept.fence_value == fence_value => kept.ring_position,
            true => write_pointer.saturating_sub(RING_EXCERPT_DWORDS as u64),
        };
        let mut words = [0; RING_EXCERPT_DWORDS];
        self.ring.peek(position, &mut words);
        let published = write_pointer.saturating_sub(position).min(RING_EXCERPT_DWORDS as u64) as usize;
        RingExcerpt { position, is_all_read, words, published }
    }

    /// Our own counts.
    pub(crate) fn counters(&self) -> Counters {
        let counted = self.ring.counters();
        Counters {
            doorbells: counted.submissions,
            packets: counted.packets,
            dispatches: counted.dispatches,
            submissions: counted.submissions,
            wave_instructions: None,
        }
    }

    /// A submission in words.
    pub(crate) fn describe(&self, fence_value: u64) -> String {
        let kept = self.history[(fence_value % HISTORY as u64) as usize];
        if kept.fence_value != fence_value || fence_value == 0 {
            return format!("submission {fence_value}");
        }
        match kept.indirect_va {
            0 => format!("submission {fence_value}, {} packets in the ring", kept.count),
            va => format!(
                "submission {fence_value}, indirect buffer at {} with {} dispatches",
                GpuVa(va),
                kept.count
            ),
        }
    }
}
