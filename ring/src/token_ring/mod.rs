//! The host's side of the token rings: requests go in by one, tokens come out by the other.
//!
//! - [`InputRing`]: host to device, in VRAM behind the BAR. [`OutputRing`]: device to host, in host memory.
//! - [`ControlLines`]: what the host signals to a slot while its request runs.
//! - [`Line`]: 16 dwords, of which tag and trailer belong to the ring and the others to the caller. An input ring
//!   accepts any type that converts to a line (`Line: From<&E>`); an output ring returns any type that a line may
//!   convert to (`E: TryFrom<Line>`).
//! - [`mock`]: the device's side as a model of its rules, for tests here and in crates above.
//!
//! # The rings
//! A ring has N lines of 64 bytes, N a power of two from 2 to 4096. Entry n, counted from 0, lies in line n mod N.
//! Its dword 0 is its tag, n mod (2^32 - 1) + 1, which is never 0; its dword 15 is the tag's complement. A line is
//! taken only if both are right. The writer stores the tag last, and a reader never takes a half-written line.
//!
//! The reader publishes how many entries it consumed (low 32 bits) in a dword of its own, which the writer reads.
//! The writer never stores into a line whose entry was not taken. So no entry is lost or delivered twice.
//!
//! # Contract
//! A ring has one producer and one consumer; `&mut self` and the caller ensure that. No lock, no system call, no
//! allocation, no wait without a deadline. Whatever the device writes yields an entry, "not yet", or a typed error.
//!
//! # Write-combined memory
//! Stores through the BAR collect in the processor's write-combining buffers, which empty in any order, in parts,
//! and only when they must. `sfence` empties them in order; a release store does not, because it orders only the
//! compiler and the ordinary store buffer. [`RingMemory::fence_stores`] is that fence. Stores that have reached the
//! card by then may still be held back in the host data path. So a store to the flush word (hardware reference
//! §6.4) follows the second fence of each push.

mod consumer;
mod control;
mod error;
mod limits;
mod line;
mod memory;
pub mod mock;
mod producer;

pub use consumer::OutputRing;
pub use control::{ControlDwords, ControlLine, ControlLines};
pub use error::{ControlError, TakeError, TokenRingError};
pub use limits::{ENTRIES_MAX, ENTRIES_MIN, FIRST_ENTRY_MAX};
pub use line::{LINE_BYTES, LINE_DWORDS, Line, LineState};
pub use memory::RingMemory;
pub use producer::InputRing;

use zrt_mem::hdp::{FLUSH_OFFSET, FLUSH_VALUE};

/// The name of the flush word in errors.
const FLUSH_NAME: &str = "flush";

/// A store that makes earlier writes visible to the device, if the platform needs one.
#[derive(Debug)]
struct Flush<M>(Option<M>);

impl<M: RingMemory> Flush<M> {
    fn new(word: Option<M>) -> Result<Flush<M>, TokenRingError> {
        if let Some(word) = &word {
            need_word(FLUSH_NAME, word)?;
        }
        Ok(Flush(word))
    }

    /// Stores the flush; the caller's store fence came before. Nothing is read: the device polls, so the flush need
    /// not have arrived when this returns.
    #[inline(always)]
    fn flush(&self) {
        if let Some(word) = &self.0 {
            word.store(FLUSH_OFFSET / 4, FLUSH_VALUE);
        }
    }
}

/// Entries that the memory of a ring holds.
fn capacity_of<M: RingMemory>(ring: &M) -> Result<u32, TokenRingError> {
    let dwords = ring.dwords();
    match u32::try_from(dwords / LINE_DWORDS) {
        Ok(entries)
            if dwords % LINE_DWORDS == 0
                && entries.is_power_of_two()
                && (ENTRIES_MIN..=ENTRIES_MAX).contains(&entries) =>
        {
            Ok(entries)
        }
        _ => Err(TokenRingError::Length { dwords }),
    }
}

fn check_first(first: u64) -> Result<(), TokenRingError> {
    if first > FIRST_ENTRY_MAX { Err(TokenRingError::FirstEntry { first }) } else { Ok(()) }
}

fn need_word<M: RingMemory>(name: &'static str, memory: &M) -> Result<(), TokenRingError> {
    if memory.dwords() == 0 { Err(TokenRingError::NoWord { name }) } else { Ok(()) }
}

/// First dword of the line of entry `number`.
#[inline(always)]
const fn line_of(number: u64, capacity: u32) -> usize {
    (number & (capacity as u64 - 1)) as usize * LINE_DWORDS
}
