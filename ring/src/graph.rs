//! Graphs: dispatches recorded once into an indirect buffer, and replayed by one packet per part.
//!
//! A recording begins with a wait for earlier waves and a full acquire, so it can be replayed after anything. If
//! one dispatch reads what another wrote, a [`barrier`](GraphRecorder::barrier) goes between them. The fence
//! handles the end: RELEASE_MEM waits for the last waves.
//!
//! Contract: [`GraphRecorder::new`] allocates all the memory that recording needs. [`GraphRecorder::finish`] checks
//! the stream ([`zrt_pm4::lint`]): a graph that writes the queue's registers or breaks an order is refused.

use crate::error::GraphError;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;
use zrt_mem::{ByteLen, DwordLen, GpuVa, SharedView};
use zrt_pm4::lint::{Finding, FindingKind, lint};
use zrt_pm4::packet::indirect_buffer::INDIRECT_DWORDS_MAX;
use zrt_pm4::packet::{Repr, event_write};
use zrt_pm4::registers::{Register, TmpringSize};
use zrt_pm4::{EmitError, KernelState, Writer};

/// Most indirect buffers of one graph. A part has up to 2^20 − 1 dwords, about twenty thousand dispatches.
pub const GRAPH_PARTS_MAX: usize = 8;
/// Most dwords of one graph: [`GRAPH_PARTS_MAX`] full parts, 32 MiB.
pub const GRAPH_DWORDS_MAX: u32 = GRAPH_PARTS_MAX as u32 * INDIRECT_DWORDS_MAX;

/// Records a graph.
#[derive(Debug)]
pub struct GraphRecorder {
    words: Vec<u32>,
    len: usize,
    /// Start of each part except the first.
    part_starts: Vec<usize>,
    part_dwords_max: usize,
    packets: u64,
    dispatches: u64,
    /// TMPRING_SIZE is written deliberately.
    sets_scratch: bool,
}

/// A recorded graph in the device's memory.
#[derive(Debug)]
pub struct Graph {
    parts: Vec<GraphPart>,
    len: DwordLen,
    packets: u64,
    dispatches: u64,
    /// Whether the command processor has already dropped what it cached of these addresses.
    pub(crate) fetched: AtomicBool,
}

/// One indirect buffer of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GraphPart {
    pub address: GpuVa,
    pub len: DwordLen,
}

impl GraphRecorder {
    /// A recorder with room for `capacity`, at most [`GRAPH_DWORDS_MAX`]. A dispatch with two dwords of user data takes
    /// 38 dwords, a barrier 10, the start 10.
    pub fn new(capacity: DwordLen) -> Result<GraphRecorder, GraphError> {
        if capacity.0 > GRAPH_DWORDS_MAX {
            return Err(GraphError::Capacity { dwords: capacity.0, most: GRAPH_DWORDS_MAX });
        }
        GraphRecorder::with_part_limit(capacity, INDIRECT_DWORDS_MAX as usize)
    }

    pub(crate) fn with_part_limit(
        capacity: DwordLen,
        part_dwords_max: usize,
    ) -> Result<GraphRecorder, GraphError> {
        let mut recorder = GraphRecorder {
            words: vec![0; capacity.0 as usize],
            len: 0,
            part_starts: Vec::with_capacity(GRAPH_PARTS_MAX),
            part_dwords_max,
            packets: 0,
            dispatches: 0,
            sets_scratch: false,
        };
        recorder.start()?;
        Ok(recorder)
    }

    /// Discards the recording and keeps the memory.
    pub fn clear(&mut self) -> Result<(), GraphError> {
        self.len = 0;
        self.part_starts.clear();
        (self.packets, self.dispatches) = (0, 0);
        self.sets_scratch = false;
        self.start()
    }

    /// Length of what was recorded.
    pub fn len(&self) -> DwordLen {
        DwordLen(self.len as u32)
    }

    /// True if no dispatch was recorded.
    pub const fn is_empty(&self) -> bool {
        self.dispatches == 0
    }

    /// Launches `groups` workgroups of a kernel whose `s[0:1]` is the address of its parameter block and s2 the number
    /// of workgroups in X.
    #[inline]
    pub fn dispatch(
        &mut self,
        state: &KernelState,
        parameter_block: GpuVa,
        groups: [u32; 3],
    ) -> Result<(), GraphError> {
        self.dispatch_with(state, &[parameter_block.low(), parameter_block.high(), groups[0]], groups)
    }

    /// The same with any user data, 1..=16 dwords.
    #[inline]
    pub fn dispatch_with(
        &mut self,
        state: &KernelState,
        user_data: &[u32],
        groups: [u32; 3],
    ) -> Result<(), GraphError> {
        // The packets of a dispatch: one per register group, user data, launch.
        const DISPATCH_PACKETS: u64 = 8;
        self.record(DISPATCH_PACKETS, |writer| writer.dispatch(state, user_data, groups))?;
        self.dispatches += 1;
        Ok(())
    }

    /// Sets the scratch of later dispatches. The register belongs to the queue, but this is the only way to give a
    /// kernel scratch without the driver; it stays set until the next such call on the queue.
    pub fn scratch(&mut self, size: &TmpringSize, address: GpuVa) -> Result<(), GraphError> {
        self.record(2, |writer| writer.scratch(size, address.0))?;
        self.sets_scratch = true;
        Ok(())
    }

    /// Makes the stores of earlier dispatches visible to the next one: waits for their waves, then invalidates the
    /// vector L0 and the scalar cache.
    #[inline]
    pub fn barrier(&mut self) -> Result<(), GraphError> {
        self.record(2, |writer| writer.barrier())
    }

    /// Any other packet; a dispatch among them counts as one.
    pub fn packet(&mut self, packet: &Repr<'_>) -> Result<(), GraphError> {
        self.record(1, |writer| writer.packet(packet))?;
        self.dispatches += u64::from(matches!(packet, Repr::DispatchDirect(_)));
        Ok(())
    }

    /// The recording so far.
    pub fn words(&self) -> &[u32] {
        &self.words[..self.len]
    }

    /// Copies the recording into `memory`, which the device knows as `address` (a multiple of 4, preferably of
    /// 256). The memory must stay unchanged for as long as the graph is used. The recorder keeps its contents.
    ///
    /// If `memory` is VRAM behind the BAR, the caller flushes the HDP before the first submission (hardware
    /// reference §6.4).
    pub fn finish(&self, memory: &SharedView, address: GpuVa) -> Result<Graph, GraphError> {
        let words = self.words();
        let needed = words.len() * 4;
        if self.is_empty() {
            return Err(GraphError::Empty);
        }
        if !address.is_aligned_to(4) {
            return Err(GraphError::Misaligned(address));
        }
        if memory.len() < needed {
            return Err(GraphError::MemoryLength { needed, given: memory.len() });
        }
        let mut refused: Option<Finding> = None;
        lint(words, &mut |finding| {
            let is_scratch = self.sets_scratch
                && matches!(finding.kind, FindingKind::NotOwned { register: Register::TMPRING_SIZE, .. });
            if finding.kind != FindingKind::EndsRunning && !is_scratch {
                refused = refused.or(Some(finding));
            }
        });
        if let Some(finding) = refused {
            return Err(GraphError::Lint(finding));
        }
        for (at, word) in words.iter().enumerate() {
            memory.store_u32(at * 4, *word);
        }
        let mut parts = Vec::with_capacity(self.part_starts.len() + 1);
        let ends = self.part_starts.iter().copied().chain([words.len()]);
        for (start, end) in [0].into_iter().chain(self.part_starts.iter().copied()).zip(ends) {
            let range = GraphError::AddressRange { address, bytes: needed };
            let part = address.offset(ByteLen(start as u64 * 4)).ok_or(range)?;
            parts.push(GraphPart { address: part, len: DwordLen((end - start) as u32) });
        }
        if address.offset(ByteLen(needed as u64)).is_none() {
            return Err(GraphError::AddressRange { address, bytes: needed });
        }
        Ok(Graph {
            parts,
            len: self.len(),
            packets: self.packets,
            dispatches: self.dispatches,
            fetched: AtomicBool::new(false),
        })
    }

    fn start(&mut self) -> Result<(), GraphError> {
        self.record(2, |writer| {
            writer.event_write(&event_write::Repr::CS_PARTIAL_FLUSH)?;
            writer.acquire_everything()
        })
    }

    /// Records packets that belong together into the current part, or into a new one if they do not fit.
    #[inline]
    fn record(
        &mut self,
        packets: u64,
        write: impl Fn(&mut Writer<'_>) -> Result<(), EmitError>,
    ) -> Result<(), GraphError> {
        let part_start = self.part_starts.last().copied().unwrap_or(0);
        let part_end = (part_start + self.part_dwords_max).min(self.words.len());
        let mut writer = Writer::new(&mut self.words[self.len..part_end]);
        match write(&mut writer) {
            Ok(()) => self.len += writer.len(),
            Err(EmitError::Full { .. }) if part_end < self.words.len() => {
                if self.part_starts.len() + 1 >= GRAPH_PARTS_MAX {
                    return Err(GraphError::TooManyParts { most: GRAPH_PARTS_MAX });
                }
                let part_end = (self.len + self.part_dwords_max).min(self.words.len());
                let mut writer = Writer::new(&mut self.words[self.len..part_end]);
                write(&mut writer)?;
                self.part_starts.push(self.len);
                self.len += writer.len();
            }
            Err(error) => return Err(error.into()),
        }
        self.packets += packets;
        Ok(())
    }
}

impl Graph {
    pub(crate) fn parts(&self) -> &[GraphPart] {
        &self.parts
    }

    /// Length in dwords.
    pub const fn len(&self) -> DwordLen {
        self.len
    }

    /// False: a graph has at least one dispatch.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Indirect buffers, each called by one packet.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Packets that a replay executes, without the calls.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Dispatches of a replay.
    pub const fn dispatches(&self) -> u64 {
        self.dispatches
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use zrt_pm4::HeaderFlags;
    use zrt_pm4::packet::nop;
    use zrt_pm4::registers::{ResourceLimits, WaveSize};
    use zrt_pm4::{KernelParameters, Reader};

    const ADDRESS: GpuVa = GpuVa(0x7f00_0010_0000);
    /// Dwords of the start plus one dispatch, which equals a barrier plus one dispatch: the shortest useful part.
    pub(crate) const PART_DWORDS: usize = 49;

    pub(crate) fn kernel() -> KernelState {
        KernelState::new(&KernelParameters {
            code_address: 0x7f00_0020_0000,
            rsrc1: 0,
            rsrc2: 3 << 1,
            rsrc3: 0,
            workgroup: [32, 1, 1],
            limits: ResourceLimits::default(),
            wave: WaveSize::Wave32,
        })
        .expect("a launchable kernel")
    }

    /// Records dispatches with barriers between them until one is refused. Existing records stay.
    fn record_all(recorder: &mut GraphRecorder) -> GraphError {
        for step in 0.. {
            let (before, is_dispatch) = (recorder.words().to_vec(), step % 2 == 0);
            let recorded = match is_dispatch {
                true => recorder.dispatch(&kernel(), GpuVa(0x1000), [1, 1, 1]),
                false => recorder.barrier(),
            };
            match recorded {
                Ok(()) => assert_eq!(recorder.words()[..before.len()], before),
                Err(error) => {
                    assert_eq!(recorder.words(), before);
                    return error;
                }
            }
        }
        unreachable!("recorders end")
    }

    /// Every part length that holds a dispatch, up to one that holds three; under Miri, which is slow, two of them.
    #[test]
    fn parts_hold_whole_packets_and_together_what_was_recorded() {
        for part_dwords_max in (PART_DWORDS..=150).step_by(if cfg!(miri) { 100 } else { 1 }) {
            let mut recorder = GraphRecorder::with_part_limit(DwordLen(2000), part_dwords_max).expect("room");
            assert_eq!(record_all(&mut recorder), GraphError::TooManyParts { most: GRAPH_PARTS_MAX });
            let memory = SharedView::zeroed(8000).expect("memory");
            let graph = recorder.finish(&memory, ADDRESS).expect("a sound graph");
            assert_eq!(graph.part_count(), GRAPH_PARTS_MAX);
            let mut rest = recorder.words();
            let mut offset = ByteLen(0);
            for part in graph.parts() {
                assert_eq!(Some(part.address), ADDRESS.offset(offset));
                let (words, behind) = rest.split_at(part.len.0 as usize);
                assert!(words.len() <= part_dwords_max, "{} of {part_dwords_max}", words.len());
                assert!(!words.is_empty() && Reader::new(words).all(|item| item.is_ok()));
                // Greedy: a dispatch and a barrier would not have fitted after it.
                assert!(behind.is_empty() || words.len() + PART_DWORDS > part_dwords_max);
                offset.0 += part.len.bytes().0;
                rest = behind;
            }
            assert!(rest.is_empty(), "{} dwords are in no part", rest.len());
        }
    }

    #[test]
    fn a_recorder_without_room_refuses_and_begins_no_part() {
        for spare in 0..10 {
            let capacity = DwordLen(2 * PART_DWORDS as u32 + spare);
            let mut recorder = GraphRecorder::with_part_limit(capacity, PART_DWORDS).expect("room");
            assert!(matches!(record_all(&mut recorder), GraphError::Emit(EmitError::Full { .. })));
            let memory = SharedView::zeroed(1024).expect("memory");
            let graph = recorder.finish(&memory, ADDRESS).expect("a sound graph");
            assert_eq!((graph.part_count(), graph.dispatches()), (2, 2));
            assert_eq!(graph.len(), DwordLen(2 * PART_DWORDS as u32));
        }
    }

    /// The length of an indirect buffer has 20 bits (hardware reference §4.8).
    #[test]
    fn a_graph_has_room_for_eight_of_the_longest_indirect_buffers() {
        const MOST: u32 = 8 * 0xf_ffff;
        assert!(GraphRecorder::new(DwordLen(MOST)).is_ok());
        let refused = GraphRecorder::new(DwordLen(MOST + 1)).err();
        assert_eq!(refused, Some(GraphError::Capacity { dwords: MOST + 1, most: MOST }));
    }

    /// More parts would not help a recorder whose memory ends inside its last part.
    #[test]
    fn a_last_part_that_memory_cuts_short_lacks_room_and_not_parts() {
        let capacity = DwordLen((GRAPH_PARTS_MAX * PART_DWORDS) as u32 - 1);
        let mut recorder = GraphRecorder::with_part_limit(capacity, PART_DWORDS).expect("room");
        let lacking = record_all(&mut recorder);
        assert_eq!(lacking, GraphError::Emit(EmitError::Full { needed: 39, left: 38 }));
        assert_eq!(recorder.part_starts.len() + 1, GRAPH_PARTS_MAX);
    }

    #[test]
    fn a_packet_longer_than_a_part_is_refused_although_memory_has_room() {
        let mut recorder = GraphRecorder::with_part_limit(DwordLen(500), PART_DWORDS).expect("room");
        recorder.dispatch(&kernel(), GpuVa(0x1000), [1, 1, 1]).expect("room");
        let before = recorder.words().to_vec();
        let nop = |payload| Repr::Nop(nop::Repr { header_flags: HeaderFlags::empty(), payload });
        let refused = recorder.packet(&nop(&[0; PART_DWORDS]));
        let (needed, left) = (PART_DWORDS + 1, PART_DWORDS);
        assert_eq!(refused, Err(GraphError::Emit(EmitError::Full { needed, left })));
        assert_eq!(recorder.words(), before);
        assert_eq!(recorder.packet(&nop(&[0; PART_DWORDS - 1])), Ok(()));
        assert_eq!(recorder.words().len(), 2 * PART_DWORDS);
    }

    /// TMPRING_SIZE belongs to the queue: a graph writes it on purpose, or is refused. 64 bytes for each lane of the
    /// R9700 (hardware reference §7).
    #[test]
    fn scratch_is_recorded_before_the_dispatches_that_use_it() {
        let mut recorder = GraphRecorder::new(DwordLen(100)).expect("room");
        let size = TmpringSize { waves: 512, wave_size: 16 };
        recorder.scratch(&size, GpuVa(0x7f_1000_0000)).expect("room");
        recorder.dispatch(&kernel(), GpuVa(0x1000), [1, 1, 1]).expect("room");
        let scratch = [0xc001_7600, 0x218, 0x0001_0200, 0xc002_7600, 0x210, 0x7f10_0000, 0];
        assert_eq!(recorder.words()[10..17], scratch);
        let graph = recorder.finish(&SharedView::zeroed(400).expect("memory"), ADDRESS).expect("sound");
        assert_eq!((graph.len(), graph.packets()), (DwordLen(10 + 7 + 39), 2 + 2 + 8));
        assert!(!graph.is_empty());
    }

    #[test]
    fn a_recorder_that_is_cleared_records_what_a_new_one_does() {
        let [mut used, mut fresh] =
            [(); 2].map(|()| GraphRecorder::with_part_limit(DwordLen(500), PART_DWORDS).expect("room"));
        record_all(&mut used);
        used.clear().expect("room");
        assert!(used.is_empty() && used.words() == fresh.words());
        for recorder in [&mut used, &mut fresh] {
            recorder.dispatch(&kernel(), GpuVa(0x1000), [1, 1, 1]).expect("room");
        }
        let view = || SharedView::zeroed(1024).expect("memory");
        let [used, fresh] = [used, fresh].map(|recorder| recorder.finish(&view(), ADDRESS).expect("sound"));
        assert_eq!((used.packets(), used.dispatches(), used.len()), (fresh.packets(), 1, fresh.len()));
        assert_eq!(used.parts(), fresh.parts());
    }
}
