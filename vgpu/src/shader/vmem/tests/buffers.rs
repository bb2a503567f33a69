//! Accesses that are partly outside of a buffer.

use super::*;

const LOADS: [(&str, usize); 4] = [("load_b32", 1), ("load_b64", 2), ("load_b96", 3), ("load_b128", 4)];

/// v10 is the index and v11 the offset of `buffer_load_b32 v20, v[10:11], s[8:11], s12 idxen offen offset:8`.
const INDEXED_LOAD: [u32; 3] = [0xC405000C, 0xC0801014, 0x0000080A];
const INDEXED_STORE: [u32; 3] = [0xC406800C, 0xC0801004, 0x0000080A];

/// A descriptor of the memory, and whether a dword at an offset of a record is inside of the buffer.
struct Case {
    stride: u32,
    records: u32,
    rule: u32,
    is_inside: fn(index: u32, offset: u32) -> bool,
}

const CASES: [Case; 4] = [
    Case { stride: 48, records: 20, rule: 0, is_inside: |index, offset| index < 20 && offset + 4 <= 48 },
    Case { stride: 48, records: 20, rule: 1, is_inside: |index, _| index < 20 },
    Case { stride: 48, records: 20, rule: 2, is_inside: |_, _| true },
    Case { stride: 48, records: 0x350, rule: 3, is_inside: |index, offset| 48 * index + offset + 4 <= 0x350 },
];

/// Lanes at all records around the last one, and at offsets around the end of a record.
fn started_at(case: &Case, step: u32) -> (Wave, [u32; LANES], [u32; LANES]) {
    let mut start = wave();
    start.set_scalar_pair(8, BASE | u64::from(case.stride) << 48);
    (start.scalar[10], start.scalar[11], start.scalar[12]) = (case.records, case.rule << 28, 0);
    let indexes = std::array::from_fn(|lane| 15 + lane as u32 % 8);
    let offsets: [u32; LANES] = std::array::from_fn(|lane| 26 + lane as u32 / 8 * 4 + step);
    start.vector[ADDRESS] = Row(indexes);
    // The instruction adds 8.
    start.vector[ADDRESS + 1] = Row(offsets.map(|offset| offset - 8));
    (start, indexes, offsets)
}

#[test]
fn each_dword_is_inside_of_a_buffer_or_outside() {
    let memory = Memory::new();
    let before = memory.bytes();
    for (case, step) in CASES.iter().flat_map(|case| [0, 1, 2].map(|step| (case, step))) {
        for (load, words) in LOADS {
            let (start, indexes, offsets) = started_at(case, step);
            let (mut loaded, mut stored) = (start.clone(), before.clone());
            for (lane, word) in (0..LANES).flat_map(|lane| (0..words).map(move |word| (lane, word))) {
                let offset = offsets[lane] + 4 * word as u32;
                let at = (48 * indexes[lane] + offset) as usize;
                let is_inside = (case.is_inside)(indexes[lane], offset);
                loaded.vector[RESULT + word].0[lane] =
                    if is_inside { little_endian(&before[at..at + 4]) } else { 0 };
                if is_inside {
                    let data = start.vector[DATA + word].0[lane];
                    stored[at..at + 4].copy_from_slice(&data.to_le_bytes());
                }
            }
            let what = format!("{load} by rule {} at {offsets:?}", case.rule);
            let end = memory.run(&start, &with_datum(&INDEXED_LOAD, "buffer", load)).unwrap();
            assert_same(&end, &loaded, &what);
            let store = load.replace("load", "store");
            memory.run(&start, &with_datum(&INDEXED_STORE, "buffer", &store)).unwrap();
            assert!(memory.bytes() == stored, "{what}, stored");
            memory.set(&before);
        }
    }
}

/// Without an index and a stride, lanes that are all inside take another way than those of which one is not.
#[test]
fn a_raw_buffer_ends_at_a_byte() {
    let memory = Memory::new();
    let bytes = memory.bytes();
    for (load, words) in LOADS {
        for len in 500..=530 {
            let mut start = wave();
            start.set_scalar_pair(8, BASE);
            (start.scalar[10], start.scalar[11], start.scalar[12]) = (len, 3 << 28, 4);
            start.vector[ADDRESS] = Row(std::array::from_fn(|lane| 16 * lane as u32));
            let mut expected = start.clone();
            for (lane, word) in (0..LANES).flat_map(|lane| (0..words).map(move |word| (lane, word))) {
                let at = 16 * lane + 4 + 8 + 4 * word;
                let value = if at + 4 <= len as usize { little_endian(&bytes[at..at + 4]) } else { 0 };
                expected.vector[RESULT + word].0[lane] = value;
            }
            let end = memory.run(&start, &with_datum(MODES[3].load, "buffer", load)).unwrap();
            assert_same(&end, &expected, &format!("{load} of {len} bytes"));
        }
    }
}

/// An atomic and narrow accesses are wholly inside or outside.
#[test]
fn what_is_not_of_several_dwords_is_not_divided() {
    let memory = Memory::new();
    let bytes = memory.bytes();
    for (datum, width) in [("load_u8", 1), ("load_u16", 2), ("load_i16", 2)] {
        for len in 0..=100u32 {
            let mut start = wave();
            start.set_scalar_pair(8, BASE);
            (start.scalar[10], start.scalar[11], start.scalar[12]) = (len, 3 << 28, 0);
            start.vector[ADDRESS] = Row(std::array::from_fn(|lane| 3 * lane as u32));
            let end = memory.run(&start, &with_datum(MODES[3].load, "buffer", datum)).unwrap();
            for lane in 0..LANES {
                let at = 3 * lane + 8;
                let raw = if at + width <= len as usize { little_endian(&bytes[at..at + width]) } else { 0 };
                let value = if datum == "load_i16" { raw as u16 as i16 as i32 as u32 } else { raw };
                assert_eq!(end.vector[RESULT].0[lane], value, "{datum} of {len} bytes, lane {lane}");
            }
        }
    }
    // buffer_atomic_add_u32 v4, v10, s[8:11], s12 offen offset:8 th:TH_ATOMIC_RETURN
    let add = decode(&[0xC40D400C, 0x40901004, 0x0000080A]).unwrap();
    for (len, last) in [(136, 31), (135, 30), (132, 30), (131, 29), (11, -1)] {
        let mut start = wave();
        start.set_scalar_pair(8, BASE);
        (start.scalar[10], start.scalar[11], start.scalar[12]) = (len, 3 << 28, 0);
        start.vector[ADDRESS] = Row(std::array::from_fn(|lane| 4 * lane as u32));
        let (mut expected, mut stored) = (start.clone(), bytes.clone());
        for lane in 0..LANES {
            let at = 4 * lane + 8;
            let old = little_endian(&bytes[at..at + 4]);
            let is_inside = lane as i32 <= last;
            expected.vector[DATA].0[lane] = if is_inside { old } else { 0 };
            if is_inside {
                let sum = old.wrapping_add(start.vector[DATA].0[lane]);
                stored[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            }
        }
        assert_same(&memory.run(&start, &add).unwrap(), &expected, &format!("{len} bytes"));
        assert!(memory.bytes() == stored, "{len} bytes");
        memory.set(&bytes);
    }
}
