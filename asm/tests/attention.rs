//! ATTENTION and KV_WRITE on the virtual device's shader engine against a separate computation, bit for bit.

#[path = "attention/kv_write.rs"]
mod kv_write;
mod support;

use kv_write::WriteCase;
use support::BIASES;
use support::harness::{Device, FRESH};
use support::integers::IntegerRows;
use support::kv::{self, Cache, KvFormat};
use support::reference as cpu;
use support::weights::Random;
use zerocopy::IntoBytes;
use zrt_protocol::attention_joined_log2_max;
use zrt_protocol::params::{self, JOINED_SHIFT, RowSet};

/// Bytes between the end of a row and the start of the next.
const GAP_BYTES: usize = 32;
/// Bit of a header's `rows` for the odd snapshot.
const ODD_SNAPSHOT: u32 = 256;
/// The window of a layer without one.
const ALL_POSITIONS: usize = u32::MAX as usize;

/// Rows `elements` long, each followed by the stride's gap.
fn strided(rows: &[Vec<f32>]) -> Vec<u32> {
    let words =
        |row: &Vec<f32>| row.iter().map(|x| x.to_bits()).chain([FRESH; GAP_BYTES / 4]).collect::<Vec<u32>>();
    rows.iter().flat_map(words).collect()
}

fn assert_bytes(what: &str, found: &[u8], expected: &[u8]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let difference = found.iter().zip(expected).position(|(found, expected)| found != expected);
    assert_eq!(difference, None, "{what}: first different byte");
}

/// Runs a kernel, with a dword of its code changed or as it is.
fn run(device: &mut Device, name: &str, change: Option<[u32; 2]>, parameters: &[u8], groups: u32) {
    match change {
        Some(change) => device.run_changed(name, change, parameters, groups),
        None => device.run(name, parameters, groups),
    }
}

// ----------------------------------------------------------------------------------------------- attention

/// Rows of a step over a cache that holds random keys and values.
struct AttentionCase {
    cache: Cache,
    rows: Vec<(usize, usize, bool)>,
    heads: usize,
    group_size: usize,
    head_size: usize,
    scale: f32,
    window: usize,
    queries: Vec<Vec<f32>>,
    /// Bytes of the integers of each result; 0: none.
    limbs: u32,
    /// True if the header allows units to be joined.
    is_joined: bool,
}

impl AttentionCase {
    fn new(
        format: KvFormat,
        [heads, kv_heads, head_size]: [usize; 3],
        rows: &[(usize, usize, bool)],
    ) -> AttentionCase {
        let mut random = Random::new((head_size * 1000 + heads * 10 + rows.len()) as u64);
        let slots = rows.iter().map(|row| row.0 + 1).max().unwrap_or(0);
        let mut lengths = vec![0; slots];
        for (slot, position, _) in rows {
            lengths[*slot] = lengths[*slot].max(position + 1);
        }
        let elements = kv_heads * head_size;
        let mut cache = Cache::new(format, elements, &lengths, FRESH, &mut random);
        for (slot, length) in lengths.iter().enumerate() {
            for position in 0..*length {
                let key: Vec<f32> = random.reals(elements).iter().map(|x| x * 4.0).collect();
                cache.put(slot, position, &key, &random.reals(elements));
            }
        }
        let query = |_| random.reals(heads * head_size).iter().map(|x| x * 4.0).collect();
        AttentionCase {
            cache,
            queries: rows.iter().map(query).collect(),
            rows: rows.to_vec(),
            heads,
            group_size: heads / kv_heads,
            head_size,
            scale: (1.0 / (head_size as f64).sqrt()) as f32,
            window: ALL_POSITIONS,
            limbs: 0,
            is_joined: false,
        }
    }

    /// The same with units that may be joined.
    fn joined(format: KvFormat, shape: [usize; 3], rows: &[(usize, usize, bool)]) -> AttentionCase {
        AttentionCase { is_joined: true, ..AttentionCase::new(format, shape, rows) }
    }

    /// The results of each row, `None` if it is not alive.
    fn results(&self) -> Vec<Option<Vec<f32>>> {
        let mut results = Vec::new();
        for ((slot, position, is_alive), query) in self.rows.iter().zip(&self.queries) {
            let all = |is_value| -> Vec<Vec<f32>> {
                (0..=*position).map(|position| self.cache.get(*slot, position, is_value)).collect()
            };
            let (keys, values) = (all(false), all(true));
            let mut result = Vec::new();
            for head in 0..self.heads {
                let from = head / self.group_size * self.head_size;
                let part = |row: &'_ Vec<f32>| row[from..from + self.head_size].to_vec();
                let (keys, values): (Vec<_>, Vec<_>) =
                    (keys.iter().map(part).collect(), values.iter().map(part).collect());
                let keys: Vec<&[f32]> = keys.iter().map(Vec::as_slice).collect();
                let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
                let q = &query[head * self.head_size..][..self.head_size];
                result.extend(cpu::attention(q, &keys, &values, self.scale, self.window));
            }
            results.push(is_alive.then_some(result));
        }
        results
    }

    /// The words of the output buffer, and then those of the integers.
    fn expected(&self) -> Vec<u32> {
        let results = self.results();
        let mut words = Vec::new();
        for result in &results {
            match result {
                Some(result) => words.extend(result.iter().map(|x| x.to_bits())),
                None => words.resize(words.len() + self.heads * self.head_size, FRESH),
            }
            words.extend([FRESH; GAP_BYTES / 4]);
        }
        let mut device = Device::new(0);
        words.extend(self.integers(&mut device).words(&device, &results).1);
        words
    }

    fn integers(&self, device: &mut Device) -> IntegerRows {
        IntegerRows::allocate(device, self.rows.len(), self.heads * self.head_size, self.limbs)
    }

    /// The words of the output buffer and of the integers after a run.
    fn run(&self, bias: i32, snapshot: usize, groups: u32, change: Option<[u32; 2]>) -> Vec<u32> {
        self.run_counted(bias, snapshot, groups, change).0
    }

    /// The same, and the wave instructions that were executed.
    fn run_counted(
        &self,
        bias: i32,
        snapshot: usize,
        groups: u32,
        change: Option<[u32; 2]>,
    ) -> (Vec<u32>, u64) {
        let mut device = Device::new(bias);
        let row_bytes = self.heads * self.head_size * 4 + GAP_BYTES;
        let output_va = device.allocate(self.rows.len() * row_bytes);
        let step_va = kv::step(&mut device, &self.rows, snapshot);
        let integers = self.integers(&mut device);
        let mut header = params::Attention::header(step_va, self.heads as u32, RowSet::EachActive);
        header.rows |= ODD_SNAPSHOT * snapshot as u32;
        if self.is_joined {
            let (head_size, group_size) = (self.head_size as u32, self.group_size as u32);
            header.units = zrt_protocol::attention_units(header.units / group_size, head_size, group_size);
            header.rows |= attention_joined_log2_max(head_size, group_size) << JOINED_SHIFT;
        }
        let block = params::Attention {
            header,
            query_va: device.upload(&strided(&self.queries)),
            output_va,
            page_table_va: device.upload(&self.cache.table),
            pool_va: self.cache.pool_va(device.upload(&self.cache.bytes)),
            page_bytes: self.cache.page_bytes,
            pages_per_slot: self.cache.pages_per_slot as u32,
            row_elements: self.cache.elements as u32,
            row_bytes: self.cache.format.row_bytes(self.cache.elements) as u32,
            stride: row_bytes as u32,
            head_size: self.head_size as u32,
            group_size: self.group_size as u32,
            scale: self.scale.to_bits(),
            window: self.window as u32,
            integers_va: integers.va,
            integers_stride: integers.stride,
            factors_offset: integers.factors_offset(),
            limbs: integers.limbs,
            reserved: 0,
        };
        let name = format!("attention_{}", self.cache.format.name());
        run(&mut device, &name, change, block.as_bytes(), groups);
        let mut words = device.words(output_va, self.rows.len() * row_bytes / 4);
        words.extend(integers.words(&device, &vec![None; self.rows.len()]).0);
        (words, device.wave_instructions())
    }

    fn check(&self, what: &str, bias: i32, snapshot: usize, groups: u32) {
        let (found, expected) = (self.run(bias, snapshot, groups, None), self.expected());
        let what = format!("{:?}, {what}, bias {bias}, {groups} groups", self.cache.format);
        assert_bytes(&what, found.as_bytes(), expected.as_bytes());
    }
}

/// Decoding rows of several slots and a piece of a prompt, one of each not alive.
const MIXED_ROWS: [(usize, usize, bool); 8] = [
    (2, 33, true),
    (0, 15, true),
    (3, 40, false),
    (1, 16, true),
    (1, 17, true),
    (1, 18, false),
    (4, 70, true),
    (0, 3, true),
];

#[test]
fn attention_over_rows_of_several_slots_on_any_grid() {
    for format in KvFormat::ALL {
        let case = AttentionCase::new(format, [4, 2, 16], &MIXED_ROWS);
        for groups in [1, 3, 45] {
            for snapshot in [0, 1] {
                case.check("mixed rows", 0, snapshot, groups);
            }
        }
    }
}

/// Heads of one block and of several, a segment of several heads and a head that is one; rows by themselves and in
/// tiles.
#[test]
fn attention_with_integers() {
    let many: Vec<_> = MIXED_ROWS.iter().chain(&MIXED_ROWS).copied().collect();
    for (number, format) in KvFormat::ALL.into_iter().enumerate() {
        for (heads, head_size) in [([8, 2], 32), ([4, 4], 64), ([8, 4], 128), ([2, 1], 256)] {
            for (rows, limbs) in [(&MIXED_ROWS[..], 1), (&MIXED_ROWS, 2), (&many, 1), (&many, 2)] {
                let mut case = AttentionCase::new(format, [heads[0], heads[1], head_size], rows);
                case.limbs = limbs;
                let what = format!("{} rows, heads of {head_size}, {limbs} limbs", rows.len());
                case.check(&what, BIASES[number], head_size / 32 % 2, 3);
            }
        }
    }
}

#[test]
fn attention_over_positions() {
    let positions = [0, 1, 6, 7, 8, 15, 16, 23, 24, 30, 31, 32, 33, 47, 48, 63, 255, 256, 271, 300];
    let rows: Vec<_> = positions.iter().map(|position| (0, *position, true)).collect();
    for format in KvFormat::ALL {
        AttentionCase::new(format, [2, 1, 64], &rows).check("positions, heads of 64", 0, 0, 7);
        AttentionCase::new(format, [4, 4, 8], &rows).check("positions, heads of 8", 0, 1, 7);
    }
}

/// Three tiles for the first wave, two for the others.
#[test]
fn attention_over_a_long_sequence() {
    for format in KvFormat::ALL {
        AttentionCase::new(format, [1, 1, 32], &[(1, 530, true), (0, 511, true)]).check("long", 0, 0, 2);
    }
}

/// Windows that begin at every kind of place: before the sequence, at its start, at the edges of pages and tiles,
/// within them, and at the row's own position; with fewer tiles than waves and with more.
#[test]
fn attention_over_windows() {
    let positions = [0, 1, 15, 16, 31, 32, 33, 63, 64, 127, 128, 129, 300];
    let rows: Vec<_> = positions.iter().map(|position| (0, *position, true)).collect();
    for format in KvFormat::ALL {
        let mut case = AttentionCase::new(format, [2, 1, 20], &rows);
        for window in [1, 2, 16, 17, 31, 32, 33, 128, 257, 300, 301, 302] {
            case.window = window;
            case.check(&format!("window of {window}"), 0, window % 2, 5);
        }
        let mut case = AttentionCase::new(format, [2, 1, 8], &[(1, 330, true), (0, 299, true)]);
        for window in [256, 287, 290, 320] {
            case.window = window;
            case.check(&format!("long window of {window}"), 0, 0, 3);
        }
        // Rows of several slots: each has its own first position.
        let mut case = AttentionCase::new(format, [4, 2, 16], &MIXED_ROWS);
        case.window = 18;
        case.check("mixed rows with a window", 0, 1, 3);
    }
}

/// A window one position too long or too short, and the lanes before the first position, show in the result.
#[test]
fn faults_in_windows_are_seen() {
    for format in KvFormat::ALL {
        let mut case = AttentionCase::new(format, [2, 1, 64], &[(0, 300, true)]);
        case.window = 128;
        let expected = case.expected();
        assert_eq!(case.run(0, 0, 2, None), expected);
        for (what, change) in [
            // s_add_co_u32 s41, s41, 1 becomes 2 and 0.
            ("one too short", [0x8029_8129, 0x8029_8229]),
            ("one too long", [0x8029_8129, 0x8029_8029]),
            // s_and_b32 exec_lo, exec_lo, s24 becomes s_and_b32 exec_lo, exec_lo, exec_lo.
            ("lanes before the first position", [0x8B7E_187E, 0x8B7E_7E7E]),
        ] {
            assert_ne!(case.run(0, 0, 2, Some(change)), expected, "{format:?}, {what}");
        }
    }
}

/// The first element of a head, and the divisor of the factor, show in the integers. One workgroup does all heads: two
/// that stored to the same place would be a race.
#[test]
fn faults_in_integers_are_seen() {
    for (format, limbs) in KvFormat::ALL.into_iter().zip([1, 2, 1]) {
        let mut case = AttentionCase::new(format, [4, 1, 64], &[(0, 40, true)]);
        case.limbs = limbs;
        let expected = case.expected();
        assert_eq!(case.run(0, 0, 1, None), expected);
        // s_mul_i32 s16, s21, s22 becomes s_mul_i32 s16, s3, s22; MINUS_127.
        for change in [[0x9610_1615, 0x9610_1603], [0xC2FE_0000, 0xC2FE_1000]] {
            assert_ne!(case.run(0, 0, 1, Some(change)), expected, "{format:?}, {change:#x?}");
        }
    }
}

#[test]
fn attention_over_shapes() {
    let head_sizes = [4, 8, 16, 20, 32, 36, 48, 64, 80, 128, 132, 192, 256];
    let group_sizes = [[1, 1], [3, 3], [6, 2], [14, 2], [21, 3]];
    for (shift, format) in KvFormat::ALL.into_iter().enumerate() {
        for (number, head_size) in head_sizes.into_iter().enumerate() {
            // Key heads other than the first start within a block if the size is not a multiple of 32.
            let case = AttentionCase::new(format, [4, 2, head_size], &[(0, 44, true), (1, 18, true)]);
            case.check(&format!("heads of {head_size}"), BIASES[(number + shift) % 3], 0, 3);
        }
        for (number, [heads, kv_heads]) in group_sizes.into_iter().enumerate() {
            let case = AttentionCase::new(format, [heads, kv_heads, 12], &[(0, 40, true)]);
            let what = format!("{heads} heads over {kv_heads}");
            case.check(&what, BIASES[(number + shift) % 3], 0, 4);
        }
    }
}

/// Group sizes that are powers of two and others, which leave units with three heads, with one and without any; every
/// number of blocks of columns, and a block that is half a head's. One workgroup joins as many units as it may, more of
/// them fewer or none: 2 rows of 4 to 16 units.
#[test]
fn heads_of_a_key_head_share_its_keys() {
    let shapes = [
        (1, 64),
        (2, 96),
        (3, 64),
        (4, 128),
        (7, 96),
        (8, 64),
        (3, 128),
        (2, 256),
        (4, 224),
        (8, 32),
        (2, 160),
    ];
    for (shift, format) in KvFormat::ALL.into_iter().enumerate() {
        for (number, (group_size, head_size)) in shapes.into_iter().enumerate() {
            let shape = [2 * group_size, 2, head_size];
            // A whole tile and one more, and a tile of 7 + 8 positions.
            let case = AttentionCase::joined(format, shape, &[(0, 300, true), (1, 14, true)]);
            for groups in [1, 7, 12] {
                case.check(&format!("{shape:?}"), BIASES[(number + shift) % 3], number % 2, groups);
            }
        }
    }
}

/// Every number of positions of a last tile, behind whole tiles of one page and of two.
#[test]
fn heads_that_share_keys_over_positions() {
    let positions = [0, 1, 6, 7, 8, 15, 16, 23, 24, 30, 31, 32, 33, 47, 48, 63, 255, 256, 271, 300, 530];
    let rows: Vec<_> = positions.iter().map(|position| (0, *position, true)).collect();
    for format in KvFormat::ALL {
        for shape in [[4, 1, 64], [2, 1, 96], [4, 1, 128]] {
            AttentionCase::joined(format, shape, &rows).check("positions", 0, 1, 7);
        }
    }
}

#[test]
fn heads_that_share_keys_over_windows() {
    let positions = [0, 15, 31, 32, 63, 64, 129, 300];
    let rows: Vec<_> = positions.iter().map(|position| (0, *position, true)).collect();
    for format in KvFormat::ALL {
        let mut case = AttentionCase::joined(format, [3, 1, 64], &rows);
        for window in [1, 16, 31, 33, 128, 257, 300] {
            case.window = window;
            case.check(&format!("window of {window}"), 0, window % 2, 5);
        }
        let mut case = AttentionCase::joined(format, [4, 2, 96], &MIXED_ROWS);
        case.window = 18;
        case.check("mixed rows with a window", 0, 1, 3);
    }
}

/// Results of one pass and of two, segments of several heads and of several units, rows by themselves and in tiles.
#[test]
fn heads_that_share_keys_with_integers() {
    let many: Vec<_> = MIXED_ROWS.iter().chain(&MIXED_ROWS).copied().collect();
    for (number, format) in KvFormat::ALL.into_iter().enumerate() {
        for shape in [[8, 2, 32], [8, 2, 64], [24, 8, 128], [4, 1, 128], [2, 1, 256]] {
            for (rows, limbs) in [(&MIXED_ROWS[..], 1), (&MIXED_ROWS, 2), (&many, 1), (&many, 2)] {
                let mut case = AttentionCase::joined(format, shape, rows);
                case.limbs = limbs;
                let what = format!("{} rows of {shape:?}, {limbs} limbs", rows.len());
                case.check(&what, BIASES[number], shape[2] / 32 % 2, 3);
            }
        }
    }
}

/// With one workgroup fewer than joined units a step joins them, with one more it does not: 8 rows of which two are not
/// alive, of 8 heads, 4 of them on a key head.
#[test]
fn units_are_joined_as_long_as_every_workgroup_has_one() {
    let case = AttentionCase::joined(KvFormat::F16, [8, 2, 64], &MIXED_ROWS);
    let instructions = |groups| case.run_counted(0, 0, groups, None).1;
    let [four, two, one] = [[15, 16], [17, 32], [33, 64]].map(|[least, most]| {
        case.check("on either side of a switch", 0, 0, least);
        case.check("on either side of a switch", 0, 0, most);
        instructions(most)
    });
    assert!(four < two && two < one, "{four}, {two}, {one}");
}

/// Wave instructions of a whole tile and query head with heads of 128, alone, of two and of four that share keys, as
/// `docs/kernels.md` says.
#[test]
fn instructions_of_heads_are_as_many_as_stated() {
    let stated = [
        (KvFormat::F32, [683, 489, 362]),
        (KvFormat::F16, [715, 577, 406]),
        (KvFormat::Q8_0, [1448, 825, 530]),
    ];
    let found = stated.map(|(format, _)| {
        let of_heads = |heads: usize| {
            let instructions = |position| {
                let case = AttentionCase::joined(format, [heads, 1, 128], &[(0, position, true)]);
                case.run_counted(0, 0, 1, None).1
            };
            (instructions(511) - instructions(255)) / 8 / heads as u64
        };
        (format, [1, 2, 4].map(of_heads))
    });
    assert_eq!(found, stated);
}

/// Wave instructions of a full tile, and of a wave's 32 elements of key and value, as `docs/kernels.md` says.
#[test]
fn instructions_are_as_many_as_stated() {
    let stated = [(KvFormat::F32, 395, 74), (KvFormat::F16, 411, 76), (KvFormat::Q8_0, 776, 147)];
    let found = stated.map(|(format, ..)| {
        let attention = |position| {
            let case = AttentionCase::new(format, [1, 1, 64], &[(0, position, true)]);
            case.run_counted(0, 0, 1, None).1
        };
        let write =
            |units: usize| WriteCase::new(format, 256 * units, &[(0, 0, true)]).run_counted(0, 0, 1, None).1;
        // One tile more for each of the 8 waves; one unit more for each of the 8 waves.
        (format, (attention(511) - attention(255)) / 8, (write(3) - write(2)) / 8)
    });
    assert_eq!(found, stated);
}

/// Scores so far apart that later tiles scale earlier ones to almost nothing and back.
#[test]
fn attention_with_scores_far_apart() {
    for format in KvFormat::ALL {
        let mut case = AttentionCase::new(format, [1, 1, 8], &[(0, 560, true)]);
        case.queries[0] = vec![8.0; 8];
        case.scale = 0.5;
        let mut random = Random::new(77);
        for position in 0..=560 {
            let key = if position % 37 == 5 { 30.0 } else { -20.0 } + position as f32 / 16.0;
            case.cache.put(0, position, &[key; 8], &random.reals(8));
        }
        case.check("scores far apart", 1, 0, 1);
    }
}

/// Pages longer than 4 GiB: the high half of their length matters.
#[test]
fn attention_and_kv_write_with_long_pages() {
    for format in KvFormat::ALL {
        let mut case = AttentionCase::new(format, [2, 1, 8], &[(0, 9, true)]);
        case.cache.page_bytes = 5 << 30;
        case.check("long pages", 0, 0, 2);
        let mut case = WriteCase::new(format, 8, &[(0, 9, true)]);
        case.cache.page_bytes = 5 << 30;
        case.check("long pages", 0, 0, 2);
    }
}

/// Changes that remove the effect of a page, a wave, a lane and the query show in the result.
#[test]
fn faults_in_attention_are_seen() {
    for format in KvFormat::ALL {
        let case = AttentionCase::new(format, [2, 1, 64], &[(0, 300, true)]);
        let expected = case.expected();
        assert_eq!(case.run(0, 0, 2, None), expected);
        for (what, change) in [
            // s_mov_b32 exec_lo: lanes 16..19 take their keys from the tile's first page.
            ("second page", [0xFFFF_0000, 0xFFF0_0000]),
            // s_add_co_u32 s29, s29, 8 becomes 9: some tiles are left out.
            ("tiles", [0x801D_881D, 0x801D_891D]),
            // LN2_LO of the exponential.
            ("exponential", [0xB5BF_BE8E, 0xB6BF_BE8E]),
        ] {
            assert_ne!(case.run(0, 0, 2, Some(change)), expected, "{format:?}, {what}");
        }
    }
}
