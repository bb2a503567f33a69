//! LDS instructions against an array of bytes; the words are llvm-mc 19's. Addresses are in v10, data in v4 to v9,
//! results in v20 and up.

mod lanes;

use zrt_isa::decode;

use super::translate;
use crate::shader::fault::WaveFaultKind;
use crate::shader::machine::{Stop, with_machine};
use crate::shader::micro::Flow;
use crate::shader::valu::testing::{Random, assert_same, wave};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::Level;

/// Bytes that the group has.
const BYTES: u32 = 4096;
const ADDRESS: usize = 10;
const RESULT: usize = 20;
const ALL: u32 = u32::MAX;

/// A wave, and the memory of its group.
#[derive(Clone)]
struct Group {
    wave: Wave,
    memory: Vec<u8>,
}

impl Group {
    fn new() -> Group {
        let mut random = Random::new(67);
        Group { wave: wave(), memory: (0..BYTES).map(|_| random.next() as u8).collect() }
    }

    /// Sets the address of every lane.
    fn at(mut self, address: impl Fn(u32) -> u32) -> Group {
        self.wave.vector[ADDRESS] = Row(std::array::from_fn(|lane| address(lane as u32)));
        self
    }

    /// With other active lanes, the others having addresses that would be refused.
    fn only(mut self, exec: u32) -> Group {
        self.wave.scalar[126] = exec;
        for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 0) {
            self.wave.vector[ADDRESS].0[lane] = BYTES + lane as u32;
        }
        self
    }

    /// Runs an instruction at every level and returns what is the same after each.
    fn run(&self, words: &[u32]) -> Result<Group, Stop> {
        let mut outcomes = Level::supported().into_iter().map(|level| self.run_at(words, level));
        let first = outcomes.next().unwrap();
        for other in outcomes {
            match (&first, &other) {
                (Ok(left), Ok(right)) => {
                    assert_same(&left.wave, &right.wave, "levels");
                    assert_eq!(left.memory, right.memory);
                }
                _ => assert_eq!(first.as_ref().err(), other.as_ref().err()),
            }
        }
        first
    }

    fn run_at(&self, words: &[u32], level: Level) -> Result<Group, Stop> {
        let op = translate(&decode(words).unwrap(), level).unwrap();
        let mut after = self.clone();
        with_machine(|machine| {
            machine.lds.bytes = self.memory.len() as u32;
            for (word, bytes) in machine.lds.words.iter_mut().zip(self.memory.chunks_exact(4)) {
                *word = u32::from_le_bytes(bytes.try_into().unwrap());
            }
            let flow = op.executor.call(&mut after.wave, &op, machine);
            assert_eq!(flow == Flow::Fault, machine.stop.is_some());
            after.memory = machine
                .lds
                .words
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .take(self.memory.len())
                .collect();
            machine.stop.map_or(Ok(after), Err)
        })
    }

    fn bytes(&self, address: u32, width: usize) -> u64 {
        let bytes = &self.memory[address as usize..][..width];
        bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    fn set_bytes(&mut self, address: u32, width: usize, value: u64) {
        self.memory[address as usize..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    fn is_active(&self, lane: usize) -> bool {
        self.wave.scalar[126] >> lane & 1 != 0
    }

    fn address(&self, lane: usize) -> u32 {
        self.wave.vector[ADDRESS].0[lane]
    }

    fn register(&self, register: usize, lane: usize) -> u32 {
        self.wave.vector[register].0[lane]
    }
}

fn assert_groups_equal(left: &Group, right: &Group, what: &str) {
    assert_same(&left.wave, &right.wave, what);
    assert!(left.memory == right.memory, "memory after {what}");
}

/// Places at which every access of the tables below is inside: in dwords, unaligned, in other orders, in some lanes.
fn places() -> Vec<Group> {
    let last = BYTES - 2048;
    vec![
        Group::new().at(|lane| 16 * lane),
        Group::new().at(|lane| last - 20 * lane),
        Group::new().at(|lane| 17 * lane + 1),
        Group::new().at(|lane| lane % 4),
        Group::new().at(|lane| 18 * lane + 2),
        Group::new().at(|lane| 19 * lane + 3),
        Group::new().at(|lane| 16 * lane).only(0x8000_0001),
        Group::new().at(|lane| 16 * lane).only(0x00F0_1234),
        Group::new().at(|lane| 21 * lane).only(0x7FFF_FFFE),
        Group::new().at(|_| 0).only(0),
    ]
}

/// Where the dwords of an access are, relative to the address; and the bytes of its elements, each of which must be
/// inside as a whole, with their first dwords.
struct Form {
    text: &'static str,
    words: [u32; 2],
    dwords: &'static [u32],
    elements: &'static [(u32, u32)],
}

const fn form(
    text: &'static str,
    words: [u32; 2],
    dwords: &'static [u32],
    elements: &'static [(u32, u32)],
) -> Form {
    Form { text, words, dwords, elements }
}

const LOADS: [Form; 8] = [
    form("ds_load_b32 v20, v10 offset:8", [0xD8D80008, 0x1400000A], &[8], &[(8, 4)]),
    form("ds_load_b64 v[20:21], v10 offset:8", [0xD9D80008, 0x1400000A], &[8, 12], &[(8, 8)]),
    form("ds_load_b96 v[20:22], v10 offset:8", [0xDBF80008, 0x1400000A], &[8, 12, 16], &[(8, 12)]),
    form("ds_load_b128 v[20:23], v10 offset:8", [0xDBFC0008, 0x1400000A], &[8, 12, 16, 20], &[(8, 16)]),
    form(
        "ds_load_2addr_b32 v[20:21], v10 offset0:1 offset1:3",
        [0xD8DC0301, 0x1400000A],
        &[4, 12],
        &[(4, 4), (12, 4)],
    ),
    form(
        "ds_load_2addr_stride64_b32 v[20:21], v10 offset0:1 offset1:2",
        [0xD8E00201, 0x1400000A],
        &[256, 512],
        &[(256, 4), (512, 4)],
    ),
    form(
        "ds_load_2addr_b64 v[20:23], v10 offset0:1 offset1:4",
        [0xD9DC0401, 0x1400000A],
        &[8, 12, 32, 36],
        &[(8, 8), (32, 8)],
    ),
    form(
        "ds_load_2addr_stride64_b64 v[20:23], v10 offset1:2",
        [0xD9E00200, 0x1400000A],
        &[0, 4, 1024, 1028],
        &[(0, 8), (1024, 8)],
    ),
];

/// Like the loads; the data of a second element is in v8 and v9.
const STORES: [Form; 8] = [
    form("ds_store_b32 v10, v4 offset:8", [0xD8340008, 0x0000040A], &[8], &[(8, 4)]),
    form("ds_store_b64 v10, v[4:5] offset:8", [0xD9340008, 0x0000040A], &[8, 12], &[(8, 8)]),
    form("ds_store_b96 v10, v[4:6] offset:8", [0xDB780008, 0x0000040A], &[8, 12, 16], &[(8, 12)]),
    form("ds_store_b128 v10, v[4:7] offset:8", [0xDB7C0008, 0x0000040A], &[8, 12, 16, 20], &[(8, 16)]),
    form(
        "ds_store_2addr_b32 v10, v4, v8 offset0:1 offset1:3",
        [0xD8380301, 0x0008040A],
        &[4, 12],
        &[(4, 4), (12, 4)],
    ),
    form(
        "ds_store_2addr_stride64_b32 v10, v4, v8 offset0:1 offset1:2",
        [0xD83C0201, 0x0008040A],
        &[256, 512],
        &[(256, 4), (512, 4)],
    ),
    form(
        "ds_store_2addr_b64 v10, v[4:5], v[8:9] offset0:1 offset1:4",
        [0xD9380401, 0x0008040A],
        &[8, 12, 32, 36],
        &[(8, 8), (32, 8)],
    ),
    form(
        "ds_store_2addr_stride64_b64 v10, v[4:5], v[8:9] offset1:2",
        [0xD93C0200, 0x0008040A],
        &[0, 4, 1024, 1028],
        &[(0, 8), (1024, 8)],
    ),
];

impl Form {
    /// The register, relative to the first one, that a store takes dword `index` from.
    fn stored_register(&self, index: usize) -> usize {
        let per_element = self.dwords.len() / self.elements.len();
        4 + 4 * (index / per_element) + index % per_element
    }
}

#[test]
fn loads_read_the_dwords_of_every_active_lane() {
    for form in LOADS {
        for start in places() {
            let end = start.run(&form.words).unwrap();
            let mut expected = start.clone();
            for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
                for (index, offset) in form.dwords.iter().enumerate() {
                    expected.wave.vector[RESULT + index].0[lane] =
                        start.bytes(start.address(lane) + offset, 4) as u32;
                }
            }
            assert_groups_equal(&end, &expected, form.text);
        }
    }
}

#[test]
fn stores_write_the_dwords_of_every_active_lane() {
    for form in STORES {
        for start in places() {
            let end = start.run(&form.words).unwrap();
            let mut expected = start.clone();
            // The elements of the lanes overlap in some of the places; the first ones are written before the second.
            let per_element = form.dwords.len() / form.elements.len();
            for element in 0..form.elements.len() {
                for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
                    for index in element * per_element..(element + 1) * per_element {
                        let value = start.register(form.stored_register(index), lane);
                        expected.set_bytes(start.address(lane) + form.dwords[index], 4, value.into());
                    }
                }
            }
            assert_groups_equal(&end, &expected, form.text);
        }
    }
}

/// The last byte of an element may be the last of the group, and no later one; the first lane that is refused is named.
#[test]
fn accesses_end_where_the_group_s_memory_ends() {
    for form in LOADS.iter().chain(&STORES) {
        let (farthest, width) = *form.elements.last().unwrap();
        let last = BYTES - width - farthest;
        for exec in [ALL, 0x00FF_0000] {
            let at = |address: u32| Group::new().at(|lane| if lane == 19 { address } else { 64 }).only(exec);
            assert!(at(last).run(&form.words).is_ok(), "{}", form.text);
            for beyond in [last + 1, last + 4, BYTES - farthest] {
                let kind =
                    WaveFaultKind::LdsOutOfRange { address: beyond + farthest, width, allocated: BYTES };
                let stop = at(beyond).run(&form.words).err();
                assert_eq!(stop, Some(Stop { kind, lane: Some(19) }), "{}", form.text);
            }
        }
    }
    // The end of the access is beyond 32 bits.
    let start = Group::new().at(|_| u32::MAX - 8).run(&LOADS[0].words).err();
    let kind = WaveFaultKind::LdsOutOfRange { address: u32::MAX, width: 4, allocated: BYTES };
    assert_eq!(start, Some(Stop { kind, lane: Some(0) }));
}

/// A group may have no memory, or less than an access needs.
#[test]
fn an_access_needs_as_many_bytes_as_it_has() {
    for form in LOADS.iter().chain(&STORES) {
        let (first, width) = form.elements[0];
        let with = |allocated: u32| {
            let mut start = Group::new().at(|_| 0u32.wrapping_sub(first));
            start.memory.truncate(allocated as usize);
            start.run(&form.words).err()
        };
        for allocated in [0, width - 4] {
            let kind = WaveFaultKind::LdsOutOfRange { address: 0, width, allocated };
            assert_eq!(with(allocated), Some(Stop { kind, lane: Some(0) }), "{} of {allocated}", form.text);
        }
        let last = form.elements.last().unwrap();
        assert_eq!(with(last.0 - first + last.1), None, "{}", form.text);
    }
}

const NARROW_LOADS: [(&str, [u32; 2]); 10] = [
    ("ds_load_u8 v20, v10 offset:8", [0xD8E80008, 0x1400000A]),
    ("ds_load_i8 v20, v10 offset:8", [0xD8E40008, 0x1400000A]),
    ("ds_load_u16 v20, v10 offset:8", [0xD8F00008, 0x1400000A]),
    ("ds_load_i16 v20, v10 offset:8", [0xD8EC0008, 0x1400000A]),
    ("ds_load_u8_d16 v20, v10 offset:8", [0xDA880008, 0x1400000A]),
    ("ds_load_u8_d16_hi v20, v10 offset:8", [0xDA8C0008, 0x1400000A]),
    ("ds_load_i8_d16 v20, v10 offset:8", [0xDA900008, 0x1400000A]),
    ("ds_load_i8_d16_hi v20, v10 offset:8", [0xDA940008, 0x1400000A]),
    ("ds_load_u16_d16 v20, v10 offset:8", [0xDA980008, 0x1400000A]),
    ("ds_load_u16_d16_hi v20, v10 offset:8", [0xDA9C0008, 0x1400000A]),
];

const NARROW_STORES: [(&str, [u32; 2]); 4] = [
    ("ds_store_b8 v10, v4 offset:8", [0xD8780008, 0x0000040A]),
    ("ds_store_b16 v10, v4 offset:8", [0xD87C0008, 0x0000040A]),
    ("ds_store_b8_d16_hi v10, v4 offset:8", [0xDA800008, 0x0000040A]),
    ("ds_store_b16_d16_hi v10, v4 offset:8", [0xDA840008, 0x0000040A]),
];

/// Bytes of a narrow access.
fn narrow_width(text: &str) -> usize {
    if ["u8", "i8", "b8"].iter().any(|data| text.contains(data)) { 1 } else { 2 }
}

#[test]
fn bytes_and_halves_are_extended_and_placed() {
    for (text, words) in NARROW_LOADS {
        let width = narrow_width(text);
        for start in places() {
            let mut expected = start.clone();
            for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
                let raw = start.bytes(start.address(lane) + 8, width) as u32;
                let sign = 1 << (8 * width - 1);
                let is_signed = text.contains("_i8") || text.contains("_i16");
                let value = if is_signed && raw & sign != 0 { raw | 0u32.wrapping_sub(sign) } else { raw };
                let old = start.register(RESULT, lane);
                expected.wave.vector[RESULT].0[lane] = match (text.contains("_d16_hi"), text.contains("_d16"))
                {
                    (true, _) => old & 0xFFFF | value << 16,
                    (false, true) => old & 0xFFFF_0000 | value & 0xFFFF,
                    (false, false) => value,
                };
            }
            assert_groups_equal(&start.run(&words).unwrap(), &expected, text);
        }
    }
    for (text, words) in NARROW_STORES {
        for start in places() {
            let mut expected = start.clone();
            for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
                let value = start.register(4, lane) >> if text.contains("_hi") { 16 } else { 0 };
                expected.set_bytes(start.address(lane) + 8, narrow_width(text), value.into());
            }
            assert_groups_equal(&start.run(&words).unwrap(), &expected, text);
        }
    }
    for (text, words) in NARROW_LOADS.iter().chain(&NARROW_STORES) {
        let width = narrow_width(text) as u32;
        let last = BYTES - 8 - width;
        assert!(Group::new().at(|_| last).run(words).is_ok(), "{text}");
        let stop = Group::new().at(|lane| last + u32::from(lane == 7)).run(words).err();
        let kind = WaveFaultKind::LdsOutOfRange { address: BYTES - width + 1, width, allocated: BYTES };
        assert_eq!(stop, Some(Stop { kind, lane: Some(7) }), "{text}");
    }
}

/// The address is the sum of the offset, the low half of m0 and four bytes per lane.
#[test]
fn the_lane_number_is_an_address() {
    let (load, store) = ([0xDAC40008, 0x14000000], [0xDAC00008, 0x00000400]);
    let with = |m0: u32, exec: u32| {
        let mut start = Group::new().only(exec);
        start.wave.scalar[125] = m0;
        start
    };
    for exec in [ALL, 0x8421_0F00] {
        let start = with(0xABCD_0102, exec);
        let (mut loaded, mut stored) = (start.clone(), start.clone());
        for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
            let address = 8 + 0x102 + 4 * lane as u32;
            loaded.wave.vector[RESULT].0[lane] = start.bytes(address, 4) as u32;
            stored.set_bytes(address, 4, start.register(4, lane).into());
        }
        assert_groups_equal(&start.run(&load).unwrap(), &loaded, "ds_load_addtid_b32 v20 offset:8");
        assert_groups_equal(&start.run(&store).unwrap(), &stored, "ds_store_addtid_b32 v4 offset:8");
    }
    let last = BYTES - 8 - 4 * LANES as u32;
    for words in [load, store] {
        assert!(with(last, ALL).run(&words).is_ok());
        let kind = WaveFaultKind::LdsOutOfRange { address: BYTES - 3, width: 4, allocated: BYTES };
        assert_eq!(with(last + 1, ALL).run(&words).err(), Some(Stop { kind, lane: Some(31) }));
    }
}

/// Lanes in ascending order: a lane sees what the one before it left. A form that returns leaves the old value.
#[test]
fn lanes_update_one_after_the_other() {
    let (add, add_return) = ([0xD8000008, 0x0000040A], [0xD8800008, 0x1400040A]);
    let data = |group: &Group, lane: usize| group.register(4, lane);
    for exec in [ALL, 0x0010_8001] {
        // Three addresses for all lanes.
        let start = Group::new().at(|lane| 100 + 4 * (lane % 3)).only(exec);
        let (mut silent, mut returning) = (start.clone(), start.clone());
        for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
            let address = start.address(lane) + 8;
            let old = silent.bytes(address, 4) as u32;
            silent.set_bytes(address, 4, old.wrapping_add(data(&start, lane)).into());
            returning.wave.vector[RESULT].0[lane] = old;
        }
        returning.memory = silent.memory.clone();
        assert_groups_equal(&start.run(&add).unwrap(), &silent, "ds_add_u32");
        assert_groups_equal(&start.run(&add_return).unwrap(), &returning, "ds_add_rtn_u32");
    }
    let beyond = Group::new().at(|lane| BYTES - 8 - 4 + u32::from(lane == 30)).run(&add).err();
    let kind = WaveFaultKind::LdsOutOfRange { address: BYTES - 3, width: 4, allocated: BYTES };
    assert_eq!(beyond, Some(Stop { kind, lane: Some(30) }));
}

/// The datum is v4 (and v5), the second one v8 (and v9).
#[test]
fn updates_take_one_or_two_data_of_32_or_64_bits() {
    type Update = fn(old: u64, data: u64, second: u64) -> u64;
    let cases: [(&str, [u32; 2], usize, bool, Update); 5] = [
        (
            "ds_cmpstore_rtn_b32 v20, v10, v4, v8 offset:8",
            [0xD8C00008, 0x1408040A],
            4,
            true,
            |old, new, compare| {
                if old == compare { new } else { old }
            },
        ),
        (
            "ds_cmpstore_rtn_b64 v[20:21], v10, v[4:5], v[8:9] offset:8",
            [0xD9C00008, 0x1408040A],
            8,
            true,
            |old, new, compare| if old == compare { new } else { old },
        ),
        (
            "ds_sub_rtn_u64 v[20:21], v10, v[4:5] offset:8",
            [0xD9840008, 0x1400040A],
            8,
            true,
            |old, data, _| (i128::from(old) - i128::from(data)) as u64,
        ),
        (
            "ds_mskor_rtn_b32 v20, v10, v4, v8 offset:8",
            [0xD8B00008, 0x1408040A],
            4,
            true,
            |old, clear, set| old & !clear | set,
        ),
        (
            "ds_mskor_b64 v10, v[4:5], v[8:9] offset:8",
            [0xD9300008, 0x0008040A],
            8,
            false,
            |old, clear, set| old & !clear | set,
        ),
    ];
    for (text, words, width, returns, update) in cases {
        let mut start = Group::new().at(|lane| 8 * lane);
        // Every other lane compares with what is there.
        for lane in (0..LANES).step_by(2) {
            let old = start.bytes(8 * lane as u32 + 8, 8);
            (start.wave.vector[8].0[lane], start.wave.vector[9].0[lane]) = (old as u32, (old >> 32) as u32);
        }
        let mut expected = start.clone();
        for lane in 0..LANES {
            let datum = |register: usize| {
                let low = u64::from(start.register(register, lane));
                if width == 8 { low | u64::from(start.register(register + 1, lane)) << 32 } else { low }
            };
            let old = start.bytes(start.address(lane) + 8, width);
            expected.set_bytes(start.address(lane) + 8, width, update(old, datum(4), datum(8)));
            for index in 0..if returns { width / 4 } else { 0 } {
                expected.wave.vector[RESULT + index].0[lane] = (old >> (32 * index)) as u32;
            }
        }
        assert_groups_equal(&start.run(&words).unwrap(), &expected, text);
    }
    let wide = [0xD9840008, 0x1400040A];
    assert!(Group::new().at(|_| BYTES - 16).run(&wide).is_ok());
    let kind = WaveFaultKind::LdsOutOfRange { address: BYTES - 4, width: 8, allocated: BYTES };
    assert_eq!(Group::new().at(|_| BYTES - 12).run(&wide).err(), Some(Stop { kind, lane: Some(0) }));
}

#[test]
fn two_elements_are_exchanged() {
    let cases: [(&str, [u32; 2], [u32; 2], usize); 4] = [
        (
            "ds_storexchg_2addr_rtn_b32 v[20:21], v10, v4, v8 offset0:1 offset1:3",
            [0xD8B80301, 0x1408040A],
            [4, 12],
            4,
        ),
        (
            "ds_storexchg_2addr_stride64_rtn_b32 v[20:21], v10, v4, v8 offset0:1 offset1:2",
            [0xD8BC0201, 0x1408040A],
            [256, 512],
            4,
        ),
        (
            "ds_storexchg_2addr_rtn_b64 v[20:23], v10, v[4:5], v[8:9] offset0:1 offset1:4",
            [0xD9B80401, 0x1408040A],
            [8, 32],
            8,
        ),
        (
            "ds_storexchg_2addr_stride64_rtn_b64 v[20:23], v10, v[4:5], v[8:9] offset1:2",
            [0xD9BC0200, 0x1408040A],
            [0, 1024],
            8,
        ),
    ];
    for (text, words, offsets, width) in cases {
        for start in places() {
            let mut expected = start.clone();
            for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
                for (element, offset) in offsets.into_iter().enumerate() {
                    let (address, data) = (start.address(lane) + offset, 4 + 4 * element);
                    for index in 0..width / 4 {
                        let at = address + 4 * index as u32;
                        let result = RESULT + element * (width / 4) + index;
                        expected.wave.vector[result].0[lane] = expected.bytes(at, 4) as u32;
                        expected.set_bytes(at, 4, start.register(data + index, lane).into());
                    }
                }
            }
            assert_groups_equal(&start.run(&words).unwrap(), &expected, text);
        }
        let last = BYTES - offsets[1] - width as u32;
        assert!(Group::new().at(|_| last).run(&words).is_ok(), "{text}");
        let stop = Group::new().at(|lane| last - 100 + 101 * u32::from(lane == 9)).run(&words).err();
        let kind = WaveFaultKind::LdsOutOfRange {
            address: BYTES - width as u32 + 1,
            width: width as u32,
            allocated: BYTES,
        };
        assert_eq!(stop, Some(Stop { kind, lane: Some(9) }), "{text}");
    }
}

/// Only data with bit 31 set are stored, without that bit. The address is rounded down to a multiple of 8.
#[test]
fn marked_dwords_are_exchanged() {
    let words = [0xD9F80008, 0x1400040A];
    let start = Group::new().at(|lane| 8 * lane + lane % 8).only(0xFFFF_0FFF);
    let mut expected = start.clone();
    for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
        for index in 0..2 {
            let at = (start.address(lane) + 8) / 8 * 8 + 4 * index as u32;
            expected.wave.vector[RESULT + index].0[lane] = start.bytes(at, 4) as u32;
            let datum = start.register(4 + index, lane);
            if datum >= 0x8000_0000 {
                expected.set_bytes(at, 4, (datum - 0x8000_0000).into());
            }
        }
    }
    assert_groups_equal(&start.run(&words).unwrap(), &expected, "ds_condxchg32_rtn_b64");
    assert!(Group::new().at(|_| BYTES - 9).run(&words).is_ok(), "rounded down to the last eight bytes");
    let kind = WaveFaultKind::LdsOutOfRange { address: BYTES, width: 8, allocated: BYTES };
    assert_eq!(Group::new().at(|_| BYTES - 8).run(&words).err(), Some(Stop { kind, lane: Some(0) }));
}
