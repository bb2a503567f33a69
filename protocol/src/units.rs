//! How an operation is cut into units: what one workgroup does at a time.
//!
//! Written by nobody: these numbers are in the kernels' code, and in the parameter blocks that the host computes with
//! them.

/// Work-items of every kernel's workgroup.
pub const GROUP_ITEMS: u32 = 256;
/// Work-items of a wave.
pub const WAVE_LANES: u32 = 32;
/// Waves of every kernel's workgroup.
pub const GROUP_WAVES: u32 = GROUP_ITEMS / WAVE_LANES;
/// Maximum number of columns of an attention head.
pub const HEAD_SIZE_MAX: u32 = 256;
/// Weight rows that one lane of a MATMUL kernel works on at once, so that each loaded input value is used for all of
/// them.
pub const MATMUL_ROWS_PER_LANE: u32 = 4;

/// Weight rows that one unit of a MATMUL kernel makes, unless its rows lie in tiles, with 2^`lanes_per_row_log2`
/// (0..=5) lanes on a row.
pub const fn matmul_rows_per_unit(lanes_per_row_log2: u32) -> u32 {
    GROUP_WAVES * (WAVE_LANES >> lanes_per_row_log2) * MATMUL_ROWS_PER_LANE
}

/// Columns of a chunk of a weight row, and of a block of activations as integers.
pub const CHUNK_COLUMNS: u32 = 32;
/// Blocks of a segment, whose terms are added up before other segments'.
pub const SEGMENT_BLOCKS: u32 = 8;

/// `Ord::min`, which constants cannot call.
const fn lesser(one: u32, other: u32) -> u32 {
    if one < other { one } else { other }
}

/// `Ord::max`, which constants cannot call.
const fn greater(one: u32, other: u32) -> u32 {
    if one > other { one } else { other }
}

/// log2 of the lanes that share a weight row of `columns` columns, where activations are f32.
pub const fn lanes_per_row_log2(columns: u32) -> u32 {
    lesser(columns.div_ceil(CHUNK_COLUMNS).next_power_of_two(), WAVE_LANES).ilog2()
}

/// log2 of the lanes that share a weight row of `columns` columns, where activations are integers: a segment's at
/// least.
pub const fn integer_lanes_per_row_log2(columns: u32) -> u32 {
    greater(lanes_per_row_log2(columns), SEGMENT_BLOCKS.ilog2())
}

/// Segments of a row of activations as integers: those of whole stretches, since all lanes of one read factors.
pub const fn quantised_segments(columns: u32) -> u32 {
    let lanes = 1 << integer_lanes_per_row_log2(columns);
    columns.div_ceil(CHUNK_COLUMNS).div_ceil(lanes) * (lanes / SEGMENT_BLOCKS)
}

/// Bytes from such a row, of `limbs` bytes for each element, to its factors.
pub const fn quantised_factors_offset(columns: u32, limbs: u32) -> u32 {
    quantised_segments(columns) * SEGMENT_BLOCKS * CHUNK_COLUMNS * limbs
}

/// Bytes of such a row: the integers, and for each block a factor and a sum.
pub const fn quantised_row_bytes(columns: u32, limbs: u32) -> u32 {
    quantised_factors_offset(columns, limbs) + quantised_segments(columns) * SEGMENT_BLOCKS * 8
}

/// Bytes of a piece of a chunk of F32, F16 or BF16: pieces with the same place in the chunks of a whole segment lie
/// together.
pub const FLOAT_PIECE_BYTES: u32 = 32;

/// Rows of a tile: those of a step that a matrix instruction takes.
pub const TILE_ROWS: u32 = 16;
/// Rows of an operation's row set from which on quantised rows lie in tiles and their matmuls use matrix instructions.
/// Both ways make the same bits. By instructions alone tiles are less work from 6 rows on; but a wave of one tile waits
/// for loads (`docs/decisions/0044-segments-dealt-out.md`).
pub const TILED_ROWS_MIN: u32 = 9;

/// Tiles that every wave of a MATMUL in tiles takes itself; of more, half of the waves have the others.
const WAVE_TILES_FEW: u32 = 2;
/// Weight rows from which on a MATMUL of three tiles or more has a unit for each of 128 workgroups, two on each compute
/// unit, without parts.
const UNDIVIDED_WEIGHT_ROWS_MIN: u32 = 128 * 64;

/// log2 of the parts of a workgroup's waves among which a MATMUL of three tiles or more deals out the segments of a
/// row. Parts share less of what they load, so that there are some only where workgroups would have nothing to do: in
/// matrices of few rows. Where fewer than 32 lanes share a row, the tape has one unit for 64 weight rows or more, which
/// is what a unit makes without parts.
pub const fn tile_parts_log2(weight_rows: u32, columns: u32) -> u32 {
    let is_long = 1 << integer_lanes_per_row_log2(columns) == WAVE_LANES;
    if is_long && weight_rows < UNDIVIDED_WEIGHT_ROWS_MIN { 1 } else { 0 }
}

/// Weight rows that one unit of a MATMUL of `rows` rows in tiles makes, with `chunks` chunks in a weight row; a unit of
/// the tape beyond the last of them makes none. Its 8 waves are parts, tiles of the step and weight tiles.
pub const fn tiled_weight_rows_per_unit(rows: u32, chunks: u32, tile_parts_log2: u32) -> u32 {
    let is_few = rows.div_ceil(TILE_ROWS) <= WAVE_TILES_FEW;
    let parts_log2_max = if is_few { GROUP_WAVES.ilog2() - 1 } else { tile_parts_log2 };
    // A part has a segment at least.
    let segments_log2 = greater(chunks, 1).div_ceil(SEGMENT_BLOCKS).ilog2();
    let waves = GROUP_WAVES >> lesser(segments_log2, parts_log2_max);
    (if is_few { waves } else { waves / 2 }) * TILE_ROWS
}

/// Weight rows that one unit of a MATMUL of `rows` rows by matrix instructions of 16-bit floats makes.
pub const fn float_tiles_rows_per_unit(rows: u32) -> u32 {
    if rows.div_ceil(TILE_ROWS) <= WAVE_TILES_FEW { 2 * TILE_ROWS } else { 4 * TILE_ROWS }
}

/// Quantised rows that there is room for where a step has at most `rows`: whole tiles.
pub const fn quantised_rows_held(rows: u32) -> u32 {
    if rows < TILED_ROWS_MIN { rows } else { rows.next_multiple_of(TILE_ROWS) }
}

/// Elements of a unit of RMS_NORM: four for each work-item, and whole segments.
pub const NORM_UNIT_ELEMENTS: u32 = 4 * GROUP_ITEMS;

/// Units of RMS_NORM for each row that is stored with `elements` elements: its own, or those of its segments.
pub const fn norm_units(elements: u32) -> u32 {
    elements.div_ceil(NORM_UNIT_ELEMENTS)
}

/// Units of KV_WRITE for each row: one for every 256 elements of the row.
pub const fn kv_write_units(row_elements: u32) -> u32 {
    row_elements.div_ceil(GROUP_ITEMS)
}

/// Query heads of a unit of ATTENTION at most, as a power of two, and elements of all their results.
const ATTENTION_HEADS_LOG2: u32 = 2;
const ATTENTION_ELEMENTS: u32 = 512;

/// log2 of how many units of ATTENTION, a query head each, may be joined into one that loads keys and values once:
/// heads of whole chunks, `group_size` of them on a key head.
pub const fn attention_joined_log2_max(head_size: u32, group_size: u32) -> u32 {
    if head_size == 0 || !head_size.is_multiple_of(CHUNK_COLUMNS) || group_size == 0 {
        return 0;
    }
    let group_log2 = group_size.next_power_of_two().ilog2();
    let heads_log2 = greater(ATTENTION_ELEMENTS / head_size, 1).ilog2();
    lesser(lesser(heads_log2, group_log2), ATTENTION_HEADS_LOG2)
}

/// Units of ATTENTION for each row: those of each key head are a multiple of what may be joined, the last of them
/// without a query head.
pub const fn attention_units(key_heads: u32, head_size: u32, group_size: u32) -> u32 {
    key_heads * group_size.next_multiple_of(1 << attention_joined_log2_max(head_size, group_size))
}

/// log2 of how many units a workgroup takes as one, of `units` in all of an operation: as many as may be
/// (`joined_log2_max`) with which each of `groups` workgroups still has one. The device decides so.
pub const fn joined_log2(units: u32, joined_log2_max: u32, groups: u32) -> u32 {
    let mut joined_log2 = 0;
    while joined_log2 < joined_log2_max && units >> (joined_log2 + 1) >= groups {
        joined_log2 += 1;
    }
    joined_log2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_joined_as_written_down() {
        let max = |head_size| [1, 2, 3, 4, 5, 8].map(|size| attention_joined_log2_max(head_size, size));
        assert_eq!((max(128), max(256)), ([0, 1, 2, 2, 2, 2], [0, 1, 1, 1, 1, 1]));
        assert_eq!(
            [32, 64, 96, 160, 80, 12, 512, 544].map(|size| attention_joined_log2_max(size, 4)),
            [2, 2, 2, 1, 0, 0, 0, 0]
        );
        assert_eq!([1, 2, 3, 4, 7, 8].map(|size| attention_units(2, 128, size)), [2, 4, 8, 8, 16, 16]);
        assert_eq!((attention_units(2, 256, 7), attention_units(2, 80, 7)), (16, 14));
        assert_eq!(
            [32, 255, 256, 511, 512, 4096].map(|units| joined_log2(units, 2, 128)),
            [0, 0, 1, 1, 2, 2]
        );
        assert_eq!((joined_log2(4096, 0, 128), joined_log2(4096, 1, 128)), (0, 1));
    }

    #[test]
    fn units_are_those_written_down() {
        let rows = [0, 1, 2, 3, 4, 5].map(matmul_rows_per_unit);
        assert_eq!(rows, [1024, 512, 256, 128, 64, 32]);
        assert_eq!([1, 256, 257, 1024].map(kv_write_units), [1, 1, 2, 4]);
        assert_eq!([1, 1024, 1025, 4096].map(norm_units), [1, 1, 2, 4]);
        assert_eq!([4, 32, 36, 256, 288, 1024, 4096].map(lanes_per_row_log2), [0, 0, 1, 3, 4, 5, 5]);
        let columns = [32, 256, 288, 512, 544, 1024, 1056, 4096];
        assert_eq!(columns.map(integer_lanes_per_row_log2), [3, 3, 4, 4, 5, 5, 5, 5]);
        assert_eq!(columns.map(quantised_segments), [1, 1, 2, 2, 4, 4, 8, 16]);
        assert_eq!((quantised_factors_offset(288, 2), quantised_row_bytes(4096, 1)), (1024, 5120));
        let of_rows =
            |chunks, parts| [9, 32, 33, 128].map(|rows| tiled_weight_rows_per_unit(rows, chunks, parts));
        assert_eq!(of_rows(128, 0), [32, 32, 64, 64]);
        assert_eq!(of_rows(128, 1), [32, 32, 32, 32]);
        assert_eq!([1, 8, 9, 24, 25].map(|chunks| of_rows(chunks, 1)[0]), [128, 128, 64, 64, 32]);
        assert_eq!([8, 9].map(|chunks| of_rows(chunks, 1)[3]), [64, 32]);
        assert_eq!(of_rows(0, 1), [128, 128, 64, 64], "no chunks are no segment more than one");
        assert_eq!(
            [(8191, 4096), (8192, 4096), (64, 512), (64, 544)]
                .map(|(rows, columns)| tile_parts_log2(rows, columns)),
            [1, 0, 0, 1]
        );
        assert_eq!([9, 32, 33, 64, 65, 128].map(float_tiles_rows_per_unit), [32, 32, 64, 64, 64, 64]);
        assert_eq!([1, 8, 9, 16, 17, 128].map(quantised_rows_held), [1, 8, 16, 16, 32, 128]);
    }
}
