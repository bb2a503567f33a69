//! Blocks of registers, and tiles of 16 × 16 elements whose columns become rows.

use super::*;

const FIRST: usize = 20;

fn executed(memory: &Memory, start: &Wave, words: &[u32]) -> Result<Wave, Stop> {
    memory.run(start, &decode(words).unwrap())
}

/// Bit `i` of m0 moves register `i` of the 32 from or to `4 · i` bytes after the address.
#[test]
fn a_block_has_the_registers_that_m0_names() {
    let memory = Memory::new();
    let before = memory.bytes();
    // global_load_block v[20:51], v[10:11], off offset:8; global_store_block v[10:11], v[20:51], off offset:8
    let (load, store) = ([0xEE14C07C, 0x14, 0x80A], [0xEE15007C, 0x0A000000, 0x80A]);
    for (m0, exec) in
        [(u32::MAX, u32::MAX), (0x8000_0101, 0xF000_00FF), (0, u32::MAX), (0x0FF0, 0), (1 << 31, 1)]
    {
        let offsets = std::array::from_fn(|lane| 256 + 130 * lane as u32);
        let mut start = started(&MODES[1], exec, &offsets);
        start.scalar[125] = m0;
        let (mut loaded, mut stored) = (start.clone(), before.clone());
        for index in (0..32).filter(|index| m0 >> index & 1 != 0) {
            for lane in active(exec) {
                let at = offsets[lane] as usize + 4 * index;
                loaded.vector[FIRST + index].0[lane] = little_endian(&before[at..at + 4]);
                stored[at..at + 4].copy_from_slice(&start.vector[FIRST + index].0[lane].to_le_bytes());
            }
        }
        let what = format!("registers {m0:#x} of lanes {exec:#x}");
        assert_same(&executed(&memory, &start, &load).unwrap(), &loaded, &what);
        assert_same(&executed(&memory, &start, &store).unwrap(), &start, &what);
        assert!(memory.bytes() == stored, "{what}, stored");
        memory.set(&before);
    }
    // The last register is beyond the memory in lane 9.
    let offsets = std::array::from_fn(|lane| LEN - 128 + if lane == 9 { 4 } else { 0 });
    for words in [load, store] {
        let mut start = started(&MODES[1], u32::MAX, &offsets);
        start.scalar[125] = u32::MAX;
        let stop = executed(&memory, &start, &words).err().unwrap();
        let WaveFaultKind::Page(fault) = stop.kind else { panic!("{}", stop.kind) };
        assert_eq!((fault.va, stop.lane), (BASE + u64::from(LEN), Some(9)));
    }
}

/// Lane `l` addresses eight elements of row `l % 16`, from column `8 (l / 16)` on, and receives elements of column
/// `l % 16`: of 16 bits, rows `8 (g / 2) + 4 h + 2 (g % 2) + e` in half `e` of register `g`; of 8 bits, rows
/// `8 h + 4 g + e` (instruction set reference §7.3), with `h = l / 16`.
#[test]
fn a_tile_is_transposed() {
    let memory = Memory::new();
    let before = memory.bytes();
    // global_load_tr_b128 v[20:23], v10, s[8:9] offset:8; global_load_tr_b64 v[20:21], v10, s[8:9] offset:8
    for (words, width) in [([0xEE15C008, 0x14, 0x80A], 2), ([0xEE160008, 0x14, 0x80A], 1)] {
        // Rows are 100 bytes apart.
        let offsets = std::array::from_fn(|lane| 64 + (lane % 16 * 100 + lane / 16 * 8 * width) as u32);
        let start = started(&MODES[0], u32::MAX, &offsets);
        let element = |row: usize, column: usize| {
            let at = 64 + 100 * row + width * column;
            little_endian(&before[at..at + width])
        };
        let mut expected = start.clone();
        for lane in 0..LANES {
            let (column, h) = (lane % 16, lane / 16);
            for g in 0..2 * width {
                expected.vector[FIRST + g].0[lane] = match width {
                    2 => (0..2).fold(0, |value, e| {
                        value | element(8 * (g / 2) + 4 * h + 2 * (g % 2) + e, column) << (16 * e)
                    }),
                    _ => (0..4).fold(0, |value, e| value | element(8 * h + 4 * g + e, column) << (8 * e)),
                };
            }
        }
        assert_same(&executed(&memory, &start, &words).unwrap(), &expected, &format!("elements of {width}"));
        // What an inactive lane would read is zero, and it receives nothing.
        let mut start = started(&MODES[0], 0xFFFF_FFFD, &offsets);
        start.vector[ADDRESS].0[1] = 0x4000_0000;
        let end = executed(&memory, &start, &words).unwrap();
        let bits = 8 * width;
        assert_eq!(end.vector[FIRST].0[1], start.vector[FIRST].0[1]);
        assert_eq!(end.vector[FIRST].0[0] >> bits & ((1 << bits) - 1), 0, "row 1 of columns 0 to 7");
        assert_eq!(end.vector[FIRST].0[8], expected.vector[FIRST].0[8], "columns 8 to 15 are of lane 17");
        let outside = std::array::from_fn(|lane| if lane == 30 { LEN - 8 * width as u32 + 1 } else { 64 });
        let stop = executed(&memory, &started(&MODES[0], u32::MAX, &outside), &words).err().unwrap();
        let WaveFaultKind::Page(fault) = stop.kind else { panic!("{}", stop.kind) };
        assert_eq!((fault.va, stop.lane), (BASE + u64::from(LEN), Some(30)));
    }
}
