//! What copies to and from memory that the host cannot access are made of: pieces, staging memory, packets.
//!
//! Contract: the copy kernel moves whole 16-byte units between a staging buffer in system memory and the buffer; a
//! range that begins or ends inside a unit is read, changed and written back. Set-up only: it is the device that
//! submits each piece and waits for it.

use crate::error::DeviceError;
use crate::kernel::{Kernel, image};
use crate::memory::{Buffer, Space};
use zerocopy::IntoBytes;
use zrt_isa::zrt;
use zrt_mem::{ByteLen, Heap};
use zrt_pm4::Writer;
use zrt_protocol::params;

/// The kernel's name among the blobs.
const COPY_KERNEL: &str = "copy";
/// Unit of the kernel.
const UNIT_BYTES: usize = 16;
/// Units that one workgroup copies: 256 threads, one each (`zrt_protocol::params::Copy`).
const UNITS_PER_GROUP: u32 = 256;
/// Maximum number of bytes that one submission moves.
const STAGING_BYTES: usize = 1 << 20;
/// The parameter block precedes the staged bytes.
const STAGED_OFFSET: usize = params::PARAMETER_BYTES_MAX;
/// Dwords of a dispatch with its acquire.
const COPY_DWORDS: usize = 64;

/// The kernel and its staging memory.
pub(crate) struct CopyEngine {
    kernel: Kernel,
    staging: Buffer,
}

/// Which way units are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToStaging,
    FromStaging,
}

/// A part of a range that one submission moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The requested bytes.
    pub start: usize,
    pub end: usize,
    /// The units that hold them.
    unit_start: usize,
    unit_end: usize,
}

/// The packets of one copy.
pub(crate) struct Packets {
    words: [u32; COPY_DWORDS],
    used: usize,
}

impl CopyEngine {
    /// Loads the kernel and allocates the staging memory.
    pub(crate) fn new(space: &Space) -> Result<CopyEngine, DeviceError> {
        let blob = zrt_asm::blob(COPY_KERNEL).ok_or(DeviceError::KernelNeeds {
            kernel: COPY_KERNEL.into(),
            reason: "it is not among the blobs; run `cargo xtask asm`",
        })?;
        let container = zrt::Kernel::parse(blob)?;
        // In system memory: nothing else could bring it to device-local memory.
        let kernel = Kernel::new(space, &container, Heap::Host)?;
        assert!(space.write_mapped(kernel.code(), 0, &image(&container)), "system memory is mapped");
        let len = ByteLen((STAGED_OFFSET + STAGING_BYTES) as u64);
        let staging = space.allocate(Heap::Host, len, "staging", false)?;
        space.registry.set_own(staging.entry());
        Ok(CopyEngine { kernel, staging })
    }

    /// Reads the requested bytes of a piece whose units are staged.
    pub(crate) fn read(&self, space: &Space, piece: Piece, bytes: &mut [u8]) {
        // Staging memory is system memory, which is always mapped.
        assert!(space.read_mapped(&self.staging, piece.staged_at(), bytes), "staging memory is mapped");
    }

    /// Writes the requested bytes of a piece to where its units are staged.
    pub(crate) fn write(&self, space: &Space, piece: Piece, bytes: &[u8]) {
        self.write_at(space, piece.staged_at(), bytes);
    }

    fn write_at(&self, space: &Space, offset: usize, bytes: &[u8]) {
        // As above.
        assert!(space.write_mapped(&self.staging, offset, bytes), "staging memory is mapped");
    }

    /// The packets that copy a piece's units one way. Their parameters are in the staging memory: they must have been
    /// executed before the next ones are made.
    pub(crate) fn packets(
        &self,
        space: &Space,
        buffer: &Buffer,
        piece: Piece,
        direction: Direction,
    ) -> Result<Packets, DeviceError> {
        let there = buffer.va.0 + piece.unit_start as u64;
        let staged = self.staging.va.0 + STAGED_OFFSET as u64;
        let (source_va, destination_va) = match direction {
            Direction::ToStaging => (there, staged),
            Direction::FromStaging => (staged, there),
        };
        let count = ((piece.unit_end - piece.unit_start) / UNIT_BYTES) as u32;
        let units = count.div_ceil(UNITS_PER_GROUP);
        let header = params::Copy::header(0, units, params::RowSet::Once);
        let block = params::Copy { header, source_va, destination_va, count, reserved: 0 };
        self.write_at(space, 0, block.as_bytes());
        let mut words = [0; COPY_DWORDS];
        let mut writer = Writer::new(&mut words);
        writer.acquire_everything()?;
        let parameters = self.staging.va;
        let user_data = [parameters.low(), parameters.high(), units];
        writer.dispatch(&self.kernel.state, &user_data, [units, 1, 1])?;
        let used = writer.len();
        Ok(Packets { words, used })
    }
}

impl Packets {
    /// Their dwords.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words[..self.used]
    }
}

impl Piece {
    /// Whether every byte of its units is requested.
    pub(crate) fn is_whole(&self) -> bool {
        self.start == self.unit_start && self.end == self.unit_end
    }

    /// Where its requested bytes are in the staging memory.
    fn staged_at(&self) -> usize {
        STAGED_OFFSET + self.start - self.unit_start
    }
}

/// Cuts a range into pieces of at most [`STAGING_BYTES`], at unit boundaries.
pub(crate) fn pieces(start: usize, len: usize) -> impl Iterator<Item = Piece> {
    let end = start + len;
    let mut at = start;
    core::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let unit_start = at - at % UNIT_BYTES;
        let piece_end = end.min(unit_start + STAGING_BYTES);
        let unit_end = piece_end.next_multiple_of(UNIT_BYTES);
        let piece = Piece { start: at, end: piece_end, unit_start, unit_end };
        at = piece_end;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_whole_if_it_begins_and_ends_with_its_units() {
        for (start, len, is_whole) in
            [(0, 16, true), (32, 48, true), (1, 15, false), (0, 15, false), (1, 14, false), (8, 16, false)]
        {
            let found: Vec<bool> = pieces(start, len).map(|piece| piece.is_whole()).collect();
            assert_eq!(found, [is_whole], "{start} + {len}");
        }
    }

    #[test]
    fn pieces_cover_a_range_once() {
        for start in [0, 1, 15, 16, 17, STAGING_BYTES - 1, STAGING_BYTES] {
            for len in
                [0, 1, 15, 16, 17, STAGING_BYTES - 1, STAGING_BYTES, STAGING_BYTES + 1, 3 * STAGING_BYTES + 5]
            {
                let mut at = start;
                for piece in pieces(start, len) {
                    assert_eq!(piece.start, at);
                    assert!(piece.unit_start <= piece.start && piece.end <= piece.unit_end);
                    assert!(piece.unit_end - piece.unit_start <= STAGING_BYTES);
                    assert_eq!((piece.unit_start % UNIT_BYTES, piece.unit_end % UNIT_BYTES), (0, 0));
                    at = piece.end;
                }
                assert_eq!(at, start + len);
            }
        }
    }
}
