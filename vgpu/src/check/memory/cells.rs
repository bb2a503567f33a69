//! The state of each dword: who wrote it last, when, over which value, and who has read it since.
//!
//! Contract: writes to different bytes of a dword by different instructions are distinguished; the dword then has
//! four records until it is written whole again, or until all four are settled. Records of a plain write replace
//! the earlier ones. Flag writes ([`super::flags`]) change only what is seen, not who must be ordered. If all
//! writes to a line are settled for the reader, this is recognised without examining its dwords. Cost: 5 bytes per
//! dword that is only read, 37 once the page is written.

use super::access::{Conflict, Current, Earlier, NO_CU, NOBODY};
use super::finding::Sites;
use super::hash::FastMap;
use super::readers::{ReaderSets, WHOLE, worse};
use crate::memory::LINE_DWORDS;

/// The last write of a dword, or of some bytes of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    /// The last plain write.
    pub(super) plain: Earlier,
    /// Logical time of the last write of any kind; 0 for never.
    pub(super) time: u32,
    /// The wave that made the last write.
    pub(super) seen_wave: u32,
    /// The site of the last write.
    pub(super) seen_site: u32,
    /// The dword's previous value.
    pub(super) previous: u32,
    /// The compute unit of the last write.
    pub(super) cu: u16,
    /// Bytes of the last write of any kind.
    mask: u8,
    /// Bytes of the last plain write.
    plain_mask: u8,
}

/// The set number that stands for no readers.
const NO_SET: u32 = u32::MAX;

const UNWRITTEN: Write = Write {
    plain: Earlier { wave: NOBODY, sequence: 0, site: 0 },
    time: 0,
    seen_wave: NOBODY,
    seen_site: 0,
    previous: 0,
    cu: NO_CU,
    mask: 0,
    plain_mask: 0,
};

/// Wave and time below which a write needs no record any more: everybody is ordered after it and sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settled {
    pub(super) wave: u32,
    pub(super) time: u32,
}

/// What a cell needs from the checker.
pub(super) struct Context<'a> {
    pub(super) current: &'a mut Current,
    pub(super) sites: &'a Sites,
    pub(super) readers: &'a mut ReaderSets,
    pub(super) settled: Settled,
}

/// What a store meets: conflicts and earlier lanes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stored {
    pub(super) conflict: Option<Conflict>,
    /// Bytes that an earlier lane of the same instruction has written.
    pub(super) again: u8,
}

/// What a load meets: conflicts and unseen bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loaded {
    pub(super) conflict: Option<Conflict>,
    /// Bytes that the load does not see; next, the value that it sees there, and the write that it misses.
    pub(super) unseen: u8,
    pub(super) previous: u32,
    pub(super) missed: Option<Write>,
}

/// The records of a run of dwords.
#[derive(Debug)]
pub(super) struct Cells {
    readers: Box<[u32]>,
    /// Empty before the first write.
    writes: Box<[Write]>,
    /// Dwords with one record per byte.
    split: FastMap<u32, [Write; 4]>,
    /// Dwords with a flag, one bit each: a word per line.
    flags: Box<[u64]>,
    /// Newest write by line of GL2. Empty before the first write.
    lines: Box<[LineWrites]>,
}

/// Bounds on the writes to a line since it was first seen.
#[derive(Clone, Copy, Debug, Default)]
struct LineWrites {
    /// Logical time of the newest write, by anyone.
    time: u32,
    /// One past the highest number of a wave that has written; 0 if none has.
    wave: u32,
}

/// The bytes of the dword that holds `address`: its index and mask, and how many bytes of `len` it holds.
#[inline]
pub(super) fn piece(address: u64, len: usize) -> (u64, u8, usize) {
    let first = (address & 3) as usize;
    let count = len.min(4 - first);
    (address >> 2, (((1_u32 << count) - 1) << first) as u8, count)
}

/// The bits of the bytes of `mask`.
pub(super) fn byte_bits(mask: u8) -> u32 {
    let spread = u32::from(mask);
    let bits = (spread & 1) | (spread & 2) << 7 | (spread & 4) << 14 | (spread & 8) << 21;
    bits * 0xff
}

impl Write {
    /// Bytes that the current instruction has written.
    fn written_by(&self, current: &Current) -> u8 {
        let is_same = self.time == current.time && self.seen_wave == current.wave;
        if is_same { self.mask } else { 0 }
    }

    /// Whether it is this one.
    pub(super) fn is_of(&self, earlier: Earlier) -> bool {
        (self.seen_wave, self.seen_site) == (earlier.wave, earlier.site)
    }

    fn is_settled(&self, settled: Settled) -> bool {
        (self.plain.wave == NOBODY || self.plain.wave < settled.wave) && self.time <= settled.time
    }

    /// Records that the current instruction writes these bytes over the dword `old`.
    fn record(&mut self, mask: u8, current: &Current, old: u32) {
        let is_same = self.time == current.time && self.seen_wave == current.wave;
        if !is_same {
            self.previous = old;
        }
        self.time = current.time;
        self.seen_wave = current.wave;
        self.seen_site = current.site;
        self.cu = current.cu;
        self.mask = mask;
        if !current.is_flag {
            self.plain_mask = mask;
            self.plain = Earlier { wave: current.wave, sequence: current.sequence, site: current.site };
        }
    }
}

impl Cells {
    pub(super) fn new(dwords: usize) -> Cells {
        Cells {
            readers: vec![0; dwords].into_boxed_slice(),
            writes: Box::default(),
            split: FastMap::default(),
            flags: vec![0; dwords.div_ceil(LINE_DWORDS)].into_boxed_slice(),
            lines: Box::default(),
        }
    }

    /// Like [`Cells::new`], but reuses existing memory if it is large enough.
    pub(super) fn begin(&mut self, dwords: usize) {
        if self.readers.len() != dwords {
            *self = Cells::new(dwords);
            return;
        }
        self.forget_readers();
        self.split.clear();
        // Only written lines have records.
        for (line, bounds) in self.lines.iter_mut().enumerate().filter(|(_, bounds)| bounds.time > 0) {
            let first = line * LINE_DWORDS;
            self.writes[first..(first + LINE_DWORDS).min(dwords)].fill(UNWRITTEN);
            *bounds = LineWrites::default();
        }
    }

    /// Forgets readers and flags: all of them are ordered before what follows.
    pub(super) fn forget_readers(&mut self) {
        self.readers.fill(0);
        self.flags.fill(0);
    }

    /// True if a plain load of any dword of a line meets nothing: it has no flag, and all its writes came from
    /// waves, and up to the time, of `settled`, or from outside up to that time. All dwords of the line exist.
    pub(super) fn is_settled(&self, index: usize, settled: Settled) -> bool {
        let line = index / LINE_DWORDS;
        let is_settled = |bounds: &LineWrites| bounds.wave <= settled.wave && bounds.time <= settled.time;
        self.flags[line] == 0 && self.lines.get(line).is_none_or(is_settled)
    }

    /// Adds the current load to the readers of dwords of a settled line.
    #[inline]
    pub(super) fn load_settled(
        &mut self,
        dwords: std::ops::Range<usize>,
        mask: u8,
        current: &mut Current,
        sites: &Sites,
        readers: &mut ReaderSets,
    ) {
        let mut last = (NO_SET, 0);
        for set in &mut self.readers[dwords] {
            if *set != last.0 {
                last = (*set, readers.add(*set, mask, current, sites));
            }
            *set = last.1;
        }
    }

    /// Records a write in the bounds of its line; allocates the records if there are none.
    #[inline]
    fn note_write(&mut self, index: usize, time: u32, wave: Option<u32>) {
        if self.writes.is_empty() {
            self.writes = vec![UNWRITTEN; self.readers.len()].into_boxed_slice();
            self.lines =
                vec![LineWrites::default(); self.readers.len().div_ceil(LINE_DWORDS)].into_boxed_slice();
        }
        let bounds = &mut self.lines[index / LINE_DWORDS];
        // Time 0 is before all writes: a recorded write must be later.
        bounds.time = bounds.time.max(time).max(1);
        bounds.wave = bounds.wave.max(wave.map_or(0, |wave| wave + 1));
    }

    /// All reader sets.
    pub(super) fn reader_sets(&mut self) -> impl Iterator<Item = &mut u32> {
        self.readers.iter_mut()
    }

    #[inline]
    pub(super) fn has_flag(&self, index: usize) -> bool {
        self.flags[index / LINE_DWORDS] >> (index % LINE_DWORDS) & 1 != 0
    }

    pub(super) fn set_flag(&mut self, index: usize, is_flag: bool) {
        let bit = 1 << (index % LINE_DWORDS);
        let flags = &mut self.flags[index / LINE_DWORDS];
        if is_flag { *flags |= bit } else { *flags &= !bit }
    }

    /// A load of the bytes in `mask`. `is_unseen` returns whether this load misses a write.
    #[inline]
    pub(super) fn load(
        &mut self,
        index: usize,
        mask: u8,
        context: &mut Context<'_>,
        is_unseen: impl Fn(&Write) -> bool,
    ) -> Loaded {
        let mut loaded = Loaded::default();
        if let Some(write) = self.writes.get(index) {
            if write.mask != 0 {
                judge(write, mask, context, &is_unseen, &mut loaded);
            } else if let Some(bytes) = self.split.get(&(index as u32)) {
                for (byte, write) in bytes.iter().enumerate() {
                    judge(write, mask & 1 << byte, context, &is_unseen, &mut loaded);
                }
            }
        }
        // Flag loads are recorded with the flag.
        if !context.current.is_flag {
            let readers = &mut self.readers[index];
            *readers = context.readers.add(*readers, mask, context.current, context.sites);
        }
        loaded
    }

    /// A write of the bytes in `mask` over the dword `old`.
    pub(super) fn store(&mut self, index: usize, mask: u8, context: &mut Context<'_>, old: u32) -> Stored {
        let readers = self.readers[index];
        let mut worst = context.readers.conflict(readers, mask, context.current, context.sites);
        if !context.current.is_flag && readers != 0 {
            self.readers[index] = context.readers.outside(readers, mask);
        }
        self.note_write(index, context.current.time, Some(context.current.wave));
        if !self.split.is_empty() {
            let bytes = self.split.get(&(index as u32));
            if bytes.is_some_and(|bytes| bytes.iter().all(|write| write.is_settled(context.settled))) {
                self.split.remove(&(index as u32));
            }
        }
        let write = &mut self.writes[index];
        let is_split = write.mask == 0 && self.split.contains_key(&(index as u32));
        if !is_split {
            if write.plain_mask & mask != 0 {
                worst = worse(worst, context.current.conflict(write.plain, context.sites));
            }
            let me = (context.current.wave, context.current.sequence);
            let is_same = (write.plain.wave, write.plain.sequence) == me;
            if write.mask & !mask == 0 || is_same {
                let again = write.written_by(context.current) & mask;
                write.record(mask | write.mask, context.current, old);
                return Stored { conflict: worst, again };
            }
            if write.is_settled(context.settled) {
                *write = UNWRITTEN;
                write.record(mask, context.current, old);
                return Stored { conflict: worst, again: 0 };
            }
            let whole = std::mem::replace(write, UNWRITTEN);
            let of_byte = |byte: u8| {
                let bit = 1 << byte;
                if whole.mask & bit == 0 {
                    return UNWRITTEN;
                }
                Write { mask: bit, plain_mask: whole.plain_mask & bit, ..whole }
            };
            self.split.insert(index as u32, [of_byte(0), of_byte(1), of_byte(2), of_byte(3)]);
        }
        let Some(bytes) = self.split.get_mut(&(index as u32)) else {
            return Stored { conflict: worst, again: 0 };
        };
        let mut again = 0;
        for (byte, write) in bytes.iter_mut().enumerate() {
            let bit = 1 << byte;
            if mask & bit != 0 {
                if is_split && write.plain_mask != 0 {
                    worst = worse(worst, context.current.conflict(write.plain, context.sites));
                }
                again |= write.written_by(context.current);
                write.record(bit, context.current, old);
            }
        }
        // Flag writes keep the plain write below them, byte by byte.
        if mask == WHOLE && !context.current.is_flag {
            // Of the bytes that another lane has written, what was before the instruction.
            let bits = |byte: usize| bytes[byte].previous & byte_bits(1 << byte);
            let previous = bits(0) | bits(1) | bits(2) | bits(3);
            self.writes[index] = Write { mask: WHOLE, plain_mask: WHOLE, previous, ..bytes[0] };
            self.split.remove(&(index as u32));
        }
        Stored { conflict: worst, again }
    }

    /// Records a write by somebody other than a wave; nobody needs to be ordered after it.
    pub(super) fn store_from_outside(&mut self, index: usize, who: u32, time: u32, old: u32) {
        self.note_write(index, time, None);
        self.split.remove(&(index as u32));
        self.writes[index] = Write { time, seen_wave: who, previous: old, mask: WHOLE, ..UNWRITTEN };
    }

    /// The newest recorded write to a dword, if any.
    pub(super) fn newest(&self, index: usize) -> Option<Write> {
        self.recorded(index).iter().max_by_key(|write| write.time).copied()
    }

    /// The recorded writes to a dword: one, or one for each byte.
    pub(super) fn recorded(&self, index: usize) -> &[Write] {
        match self.writes.get(index..=index) {
            Some(whole) if whole[0].mask != 0 => whole,
            _ => self.split.get(&(index as u32)).map_or(&[], |bytes| bytes),
        }
    }
}

/// What a load of the bytes in `mask` meets in this record.
#[inline]
fn judge(
    write: &Write,
    mask: u8,
    context: &mut Context<'_>,
    is_unseen: &impl Fn(&Write) -> bool,
    loaded: &mut Loaded,
) {
    if mask & write.plain_mask != 0
        && let Some(found) = context.current.conflict(write.plain, context.sites)
    {
        loaded.conflict = worse(loaded.conflict, Some(found));
    }
    let mask = mask & write.mask;
    if mask != 0 && is_unseen(write) {
        loaded.unseen |= mask;
        let bits = byte_bits(mask);
        loaded.previous = loaded.previous & !bits | write.previous & bits;
        loaded.missed = Some(*write);
    }
}

#[cfg(test)]
mod tests;
