//! A step: the rows that all bodies work on, until the next step.
//!
//! | field of [`Step`] | written by | read by |
//! |---|---|---|
//! | `epoch`, `flags` | PLAN, last, with device scope | every waiting workgroup |
//! | `rows`, `outputs`, `row`, `output` | PLAN | every body, BOUNDARY |
//! | `alive` | PLAN both snapshots, BOUNDARY one of them | the caller of every body |
//! | `reserved` | the host, zero, before the kernel starts | nobody |

use crate::layout::layout;
use crate::slot::SLOTS_MAX;

/// Maximum number of rows of a step.
pub const ROWS_MAX: usize = 512;
/// Rows of a band: what a unit of an operation over all rows works on. A step has bands of this many rows, the last
/// one fewer.
pub const BAND_ROWS: usize = 128;
/// Dwords of a snapshot of live rows.
const ALIVE_DWORDS: usize = ROWS_MAX / 32;

/// Bands of a step of `rows` rows: how many times an operation over all rows has its units.
pub const fn bands(rows: u32) -> u32 {
    rows.div_ceil(BAND_ROWS as u32)
}

layout! {
    /// One (slot, position) of a step.
    Row {
        /// Slot.
        slot: u32,
        /// Absolute position of the token in its sequence.
        position: u32,
        /// The token.
        token: u32,
        /// Number of the output that this row has, or `u32::MAX`: only the last known token of a sequence has one.
        output: u32,
    }
}

layout! {
    /// A row whose logits are needed.
    Output {
        /// Number of the active row.
        row: u32,
        /// Its slot.
        slot: u32,
    }
}

layout! {
    /// What a step works on: a multiple of 256 bytes.
    Step {
        /// Number of the step, from 1.
        epoch: u32,
        /// Active rows, 0..=[`ROWS_MAX`].
        rows: u32,
        /// Output rows, 0..=[`SLOTS_MAX`].
        outputs: u32,
        /// Bit 0: leave; there is no further step.
        flags: u32,
        /// Which rows still count, one bit each: two snapshots, of even and of odd layers.
        alive: [[u32; ALIVE_DWORDS]; 2],
        /// 0.
        reserved: [u32; 60 - 2 * ALIVE_DWORDS],
        /// The active rows.
        row: [Row; ROWS_MAX],
        /// The output rows.
        output: [Output; SLOTS_MAX],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;

    #[test]
    fn a_step_lies_as_written_down() {
        let expected = "\
Step 8960
   0 epoch
   4 rows
   8 outputs
  12 flags
  16 alive
 144 reserved
 256 row
8448 output
";
        assert_eq!(written(&Step::LAYOUT), expected);
        assert_eq!(written(&Row::LAYOUT), "Row 16\n   0 slot\n   4 position\n   8 token\n  12 output\n");
        assert_eq!(written(&Output::LAYOUT), "Output 8\n   0 row\n   4 slot\n");
    }

    #[test]
    fn a_last_band_has_the_rest() {
        let rows = [0, 1, 128, 129, 256, 257, 384, 385, 512];
        assert_eq!(rows.map(bands), [0, 1, 1, 2, 2, 3, 3, 4, 4]);
    }
}
