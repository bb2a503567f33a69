//! How an operation is cut into units: what one workgroup does at a time.
//!
//! Written by nobody: these numbers are in the kernels' code, and in the parameter blocks that the host computes with them.

/// Work-items of every kernel's workgroup.
pub const GROUP_ITEMS: u32 = 256;
/// Waves of every kernel's workgroup.
pub const GROUP_WAVES: u32 = GROUP_ITEMS / 32;
/// Maximum number of columns of an attention head.
pub const HEAD_SIZE_MAX: u32 = 256;
/// Weight rows that one lane of a MATMUL kernel works on at once, so that each loaded input value is used for all of
/// them.
pub const MATMUL_ROWS_PER_LANE: u32 = 4;

/// Weight rows that one unit of a MATMUL kernel makes, with 2^`lanes_per_row_log2` (0..=5) lanes on a row.
pub const fn matmul_rows_per_unit(lanes_per_row_log2: u32) -> u32 {
    GROUP_WAVES * (32 >> lanes_per_row_log2) * MATMUL_ROWS_PER_LANE
}

/// Units of KV_WRITE for each row: one for every 256 elements of the row.
pub const fn kv_write_units(row_elements: u32) -> u32 {
    row_elements.div_ceil(GROUP_ITEMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_written_down() {
        let rows = [0, 1, 2, 3, 4, 5].map(matmul_rows_per_unit);
        assert_eq!(rows, [1024, 512, 256, 128, 64, 32]);
        assert_eq!([1, 256, 257, 1024].map(kv_write_units), [1, 1, 2, 4]);
    }
}
