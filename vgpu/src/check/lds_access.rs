//! Which LDS bytes an instruction accesses.
//!
//! Contract: computed from the decoded instruction and the registers before it executes, independently of the code that
//! executes it. Cross-lane instructions of the same encoding access nothing.

use zrt_isa::{Instruction, Opcode, Operand};

use crate::check::memory::LaneClash;
use crate::shader::wave::{EXEC_LO, LANES, M0, Row, Wave};

/// Most bytes that a lane stores as one element.
const LANE_BYTES_MAX: usize = 16;

/// The kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LdsKind {
    Load,
    Store,
    /// Read-modify-write.
    Atomic,
}

/// What an LDS instruction does, as known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LdsShape {
    pub kind: LdsKind,
    /// Bytes of one element.
    pub width_bytes: u32,
    /// Byte offsets of the one element, or of the two in `2addr` forms.
    offsets: [u32; 2],
    element_count: usize,
    base: Base,
    /// An atomic whose result does not depend on the old value: an exchange.
    pub forgets: bool,
}

/// The base that the offset is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// A vector register.
    Register(u8),
    /// m0 plus four times the lane number.
    LaneNumber,
    /// m0: one access for all lanes.
    Wave,
}

impl LdsShape {
    /// The shape of a VDS instruction; `None` if it does not access LDS.
    pub fn of(instruction: &Instruction) -> Option<LdsShape> {
        use Opcode::*;
        let name = instruction.opcode.mnemonic().strip_prefix("ds_")?;
        let is_elsewhere = matches!(instruction.opcode, DsSwizzleB32 | DsNop);
        if is_elsewhere || name.contains("permute") || name.starts_with("bvh") {
            return None;
        }
        let kind = if name.starts_with("load") {
            LdsKind::Load
        } else if name.starts_with("store_") || name.starts_with("store2") {
            LdsKind::Store
        } else {
            LdsKind::Atomic
        };
        let width_bytes = width(name);
        let offset = instruction.immediate as u32 & 0xFFFF;
        let (offsets, element_count) = if name.contains("2addr") {
            let scale = if name.contains("stride64") { 64 * width_bytes } else { width_bytes };
            ([(offset & 0xFF) * scale, (offset >> 8) * scale], 2)
        } else {
            ([offset, 0], 1)
        };
        let base = match (instruction.opcode, instruction.sources[0]) {
            (DsAppend | DsConsume, _) => Base::Wave,
            (_, Operand::Vector(register)) => Base::Register(register),
            // The forms with a lane number have no address.
            _ => Base::LaneNumber,
        };
        let forgets = name.contains("storexchg");
        Some(LdsShape { kind, width_bytes, offsets, element_count, base, forgets })
    }

    /// Elements per lane: one or two.
    pub fn element_count(&self) -> usize {
        self.element_count
    }

    /// Lane and first byte of every element accessed by a wave32, or by one half of a wave64 whose registers are in
    /// place; lanes ascend within an element.
    pub fn addresses(&self, wave: &Wave, addresses: &mut Vec<(u32, u32)>) {
        addresses.clear();
        self.each(Half::at_work(wave), wave, |lane, _, address| addresses.push((lane as u32, address)));
    }

    /// Calls `found` with lane, element number and first byte.
    fn each(&self, half: Half<'_>, wave: &Wave, mut found: impl FnMut(usize, usize, u32)) {
        let exec = half.exec;
        // An access of the whole wave is made by the first active lane.
        let exec = if self.base == Base::Wave { exec & exec.wrapping_neg() } else { exec };
        let m0 = wave.scalar[M0 as usize] & 0xFFFF;
        for (element, offset) in self.offsets[..self.element_count].iter().enumerate() {
            for lane in (0..LANES).filter(|lane| exec >> lane & 1 != 0) {
                let base = match self.base {
                    Base::Register(register) => half.rows[register as usize].0[lane],
                    Base::LaneNumber => m0 + 4 * (half.first_lane + lane) as u32,
                    Base::Wave => m0,
                };
                found(lane, element, base.wrapping_add(*offset));
            }
        }
    }

    /// The conflict between two lanes of a store, if there is one. In a wave64 both halves count once the high half
    /// executes.
    #[cold]
    pub fn clash(&self, wave: &Wave, instruction: &Instruction) -> Option<LaneClash> {
        let shift = if instruction.opcode.mnemonic().ends_with("_d16_hi") { 16 } else { 0 };
        let mut stores = Vec::new();
        for half in Half::begun(wave).into_iter().flatten() {
            self.each(half, wave, |lane, element, address| {
                let data = instruction.sources.get(1 + element).copied();
                stores.extend(half.store(lane, address, data, shift, self.width_bytes));
            });
        }
        first_clash(&stores)
    }
}

/// The conflict between two lanes of a flat store in LDS; `addresses` are those of the executing half.
#[cold]
pub(crate) fn flat_clash(
    wave: &Wave,
    instruction: &Instruction,
    width_bytes: u32,
    addresses: &[(u32, u32)],
) -> Option<LaneClash> {
    let half = Half::at_work(wave);
    let shift = if instruction.opcode.mnemonic().contains("d16_hi") { 16 } else { 0 };
    let stores = addresses.iter().filter_map(|&(lane, address)| {
        half.store(lane as usize, address, instruction.sources.get(1).copied(), shift, width_bytes)
    });
    first_clash(&stores.collect::<Vec<_>>())
}

/// 32 lanes: a wave32, or half of a wave64.
#[derive(Clone, Copy)]
struct Half<'a> {
    rows: &'a [Row; 256],
    exec: u32,
    first_lane: usize,
}

impl<'a> Half<'a> {
    fn at_work(wave: &'a Wave) -> Half<'a> {
        let first_lane = if wave.is_high { LANES } else { 0 };
        Half { rows: &wave.vector, exec: wave.exec(), first_lane }
    }

    /// The low half, if it is done, and the executing half.
    fn begun(wave: &'a Wave) -> [Option<Half<'a>>; 2] {
        let low = wave.other_half.as_ref().filter(|_| wave.is_high);
        // The halves of EXEC are exchanged together with the banks.
        let exec = wave.scalar[usize::from(EXEC_LO) + 1];
        [low.map(|rows| Half { rows, exec, first_lane: 0 }), Some(Half::at_work(wave))]
    }

    /// The bytes that a lane stores from a register and the following ones.
    fn store(
        &self,
        lane: usize,
        address: u32,
        data: Option<Operand>,
        shift: u32,
        width_bytes: u32,
    ) -> Option<LaneStore> {
        let Some(Operand::Vector(register)) = data else { return None };
        let mut bytes = [0; LANE_BYTES_MAX];
        for (index, dword) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let row = &self.rows[(usize::from(register) + index) % self.rows.len()];
            *dword = (row.0[lane] >> shift).to_le_bytes();
        }
        let len = (width_bytes as usize).min(LANE_BYTES_MAX);
        Some(LaneStore { lane: (self.first_lane + lane) as u32, address, bytes, len })
    }
}

/// The data that one lane stores.
struct LaneStore {
    lane: u32,
    address: u32,
    bytes: [u8; LANE_BYTES_MAX],
    len: usize,
}

impl LaneStore {
    /// The bytes stored from an address on, at most a dword.
    fn from(&self, address: u32) -> &[u8] {
        let first = address.wrapping_sub(self.address) as usize;
        self.bytes[..self.len].get(first..).map_or(&[], |bytes| &bytes[..bytes.len().min(4)])
    }
}

/// The first two lanes that store different bytes to one address.
fn first_clash(stores: &[LaneStore]) -> Option<LaneClash> {
    stores.iter().enumerate().find_map(|(index, later)| {
        stores[..index].iter().filter(|earlier| earlier.lane != later.lane).find_map(|earlier| {
            let first = earlier.address.max(later.address);
            let end_of = |store: &LaneStore| store.address.saturating_add(store.len as u32);
            let end = end_of(earlier).min(end_of(later));
            let byte = |store: &LaneStore, address: u32| store.from(address).first().copied();
            let address = (first..end).find(|&at| byte(earlier, at) != byte(later, at))?;
            let value = |store: &LaneStore| {
                let shared = &store.from(address)[..((end - address) as usize).min(4)];
                shared.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
            };
            let lanes = [earlier.lane, later.lane];
            Some(LaneClash { lanes, address: address.into(), values: [earlier, later].map(value) })
        })
    })
}

/// Bytes of an element, from the suffix of the name.
fn width(name: &str) -> u32 {
    let name = name.trim_end_matches("_d16").trim_end_matches("_d16_hi");
    match name.rsplit('_').next().unwrap_or_default() {
        "b8" | "u8" | "i8" => 1,
        "b16" | "u16" | "i16" => 2,
        "b64" | "u64" | "i64" | "f64" => 8,
        "b96" => 12,
        "b128" => 16,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Accesses = (LdsKind, u32, Vec<(u32, u32)>);

    fn of(words: &[u32]) -> Option<Accesses> {
        let mut wave = Wave::new();
        wave.scalar[126] = 0b101;
        wave.scalar[M0 as usize] = 0xABCD_0020;
        wave.vector[0].0[0] = 16;
        wave.vector[0].0[2] = 64;
        let shape = LdsShape::of(&zrt_isa::decode(words).unwrap())?;
        let mut addresses = Vec::new();
        shape.addresses(&wave, &mut addresses);
        Some((shape.kind, shape.width_bytes, addresses))
    }

    #[test]
    fn lanes_clash_where_bytes_differ_that_both_store() {
        let store = |lane, address, bytes: &[u8]| {
            let mut all = [0xee; LANE_BYTES_MAX];
            all[..bytes.len()].copy_from_slice(bytes);
            LaneStore { lane, address, bytes: all, len: bytes.len() }
        };
        let clash = |lanes, address, values| Some(LaneClash { lanes, address, values });
        let first = store(3, 16, &[1, 2, 3, 4]);
        assert_eq!(first_clash(&[first, store(7, 20, &[5])]), None, "neighbours");
        let first = store(3, 16, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(first_clash(&[first, store(7, 18, &[3, 4, 5])]), None, "the same bytes");
        let first = store(3, 16, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(first_clash(&[first, store(7, 18, &[3, 0, 5])]), clash([3, 7], 19, [0x0504, 0x0500]));
        let own = [store(3, 16, &[1]), store(3, 16, &[2])];
        assert_eq!(first_clash(&own), None, "two elements of one lane are in order");
        assert_eq!(first_clash(&[store(0, u32::MAX, &[1]), store(1, u32::MAX, &[1])]), None);
    }

    /// Words of llvm-mc 19.
    #[test]
    fn widths_offsets_and_kinds_follow_the_instruction() {
        // ds_load_b64 v[2:3], v0 offset:8
        let load = of(&[0xD9D8_0008, 0x0200_0000]).unwrap();
        assert_eq!(load, (LdsKind::Load, 8, vec![(0, 24), (2, 72)]));
        // ds_store_2addr_b32 v0, v1, v2 offset0:1 offset1:3
        let store = of(&[0xD838_0301, 0x0002_0100]).unwrap();
        assert_eq!(store, (LdsKind::Store, 4, vec![(0, 20), (2, 68), (0, 28), (2, 76)]));
        // ds_add_u32 v0, v1
        assert_eq!(of(&[0xD800_0000, 0x0000_0100]).unwrap().0, LdsKind::Atomic);
        // ds_append v3 offset:8, at m0: once for all lanes.
        assert_eq!(of(&[0xD8F8_0008, 0x0300_0000]).unwrap(), (LdsKind::Atomic, 4, vec![(0, 40)]));
        // ds_store_addtid_b32 v1 offset:4
        assert_eq!(of(&[0xDAC0_0004, 0x0000_0100]).unwrap().2, [(0, 36), (2, 44)]);
        // ds_bpermute_b32 v1, v0, v2
        assert_eq!(of(&[0xDACC_0000, 0x0100_0200]), None);
    }

    /// Words of llvm-mc 19, with v0 = 16 and 64 in lanes 0 and 2.
    #[test]
    fn every_form_has_its_kind_width_and_addresses() {
        use LdsKind::{Atomic, Load, Store};
        for (words, kind, width, addresses) in [
            ([0xD878_0000, 0x0000_0100], Store, 1, vec![(0, 16), (2, 64)]), // ds_store_b8 v0, v1
            ([0xDA80_0000, 0x0000_0100], Store, 1, vec![(0, 16), (2, 64)]), // ds_store_b8_d16_hi v0, v1
            ([0xDA84_0002, 0x0000_0100], Store, 2, vec![(0, 18), (2, 66)]), // ds_store_b16_d16_hi v0, v1 offset:2
            ([0xD8E4_0000, 0x0100_0000], Load, 1, vec![(0, 16), (2, 64)]),  // ds_load_i8 v1, v0
            ([0xDA8C_0000, 0x0100_0000], Load, 1, vec![(0, 16), (2, 64)]),  // ds_load_u8_d16_hi v1, v0
            ([0xD8EC_0000, 0x0100_0000], Load, 2, vec![(0, 16), (2, 64)]),  // ds_load_i16 v1, v0
            ([0xDA98_0000, 0x0100_0000], Load, 2, vec![(0, 16), (2, 64)]),  // ds_load_u16_d16 v1, v0
            ([0xD8D8_0000, 0x0100_0000], Load, 4, vec![(0, 16), (2, 64)]),  // ds_load_b32 v1, v0
            ([0xDBF8_0000, 0x0200_0000], Load, 12, vec![(0, 16), (2, 64)]), // ds_load_b96 v[2:4], v0
            // ds_store_b128 v0, v[2:5] offset:65535
            ([0xDB7C_FFFF, 0x0000_0200], Store, 16, vec![(0, 65_551), (2, 65_599)]),
            // ds_store_2addr_b64 v0, v[2:3], v[4:5] offset0:1 offset1:2
            ([0xD938_0201, 0x0004_0200], Store, 8, vec![(0, 24), (2, 72), (0, 32), (2, 80)]),
            // ds_store_2addr_stride64_b32 v0, v2, v3 offset0:1 offset1:2
            ([0xD83C_0201, 0x0003_0200], Store, 4, vec![(0, 272), (2, 320), (0, 528), (2, 576)]),
            // ds_load_2addr_b32 v[2:3], v0 offset0:255 offset1:2
            ([0xD8DC_02FF, 0x0200_0000], Load, 4, vec![(0, 1036), (2, 1084), (0, 24), (2, 72)]),
            // ds_load_2addr_stride64_b64 v[2:5], v0 offset0:1
            ([0xD9E0_0001, 0x0200_0000], Load, 8, vec![(0, 528), (2, 576), (0, 16), (2, 64)]),
            // ds_storexchg_2addr_rtn_b64 v[2:5], v0, v[6:7], v[8:9] offset1:1
            ([0xD9B8_0100, 0x0208_0600], Atomic, 8, vec![(0, 16), (2, 64), (0, 24), (2, 72)]),
            ([0xD840_0000, 0x0002_0100], Atomic, 4, vec![(0, 16), (2, 64)]), // ds_cmpstore_b32 v0, v1, v2
            ([0xD900_0000, 0x0000_0200], Atomic, 8, vec![(0, 16), (2, 64)]), // ds_add_u64 v0, v[2:3]
            ([0xD94C_0000, 0x0000_0200], Atomic, 8, vec![(0, 16), (2, 64)]), // ds_max_num_f64 v0, v[2:3]
            ([0xDA68_0000, 0x0000_0100], Atomic, 4, vec![(0, 16), (2, 64)]), // ds_pk_add_f16 v0, v1
            ([0xD8F4_0000, 0x0300_0000], Atomic, 4, vec![(0, 32)]),          // ds_consume v3
            ([0xDAC4_0008, 0x0100_0000], Load, 4, vec![(0, 40), (2, 48)]),   // ds_load_addtid_b32 v1 offset:8
        ] {
            assert_eq!(of(&words), Some((kind, width, addresses)), "{}", zrt_isa::decode(&words).unwrap());
        }
        for words in [
            [0xD8D4_0000, 0x0100_0000], // ds_swizzle_b32 v1, v0
            [0xDAC8_0000, 0x0100_0200], // ds_permute_b32 v1, v0, v2
            [0xD850_0000, 0x0000_0000], // ds_nop
        ] {
            assert_eq!(of(&words), None, "{}", zrt_isa::decode(&words).unwrap());
        }
        // An exchange leaves nothing of what was; another atomic may.
        let forgets = |words: &[u32]| LdsShape::of(&zrt_isa::decode(words).unwrap()).unwrap().forgets;
        assert!(forgets(&[0xD8B4_0000, 0x0100_0200]), "ds_storexchg_rtn_b32 v1, v0, v2");
        assert!(!forgets(&[0xD840_0000, 0x0002_0100]), "ds_cmpstore_b32 v0, v1, v2");
        assert!(!forgets(&[0xD878_0000, 0x0000_0100]), "ds_store_b8 v0, v1");
    }

    /// A wave64 whose high half executes: the halves of registers and EXEC are exchanged.
    fn high_half(low_lanes: u32, high_lanes: u32) -> Wave {
        let mut wave = Wave { other_half: Some(crate::shader::wave::vector_bank()), ..Wave::new() };
        wave.set_scalar_pair(EXEC_LO, u64::from(low_lanes) | u64::from(high_lanes) << 32);
        wave.exchange_halves();
        wave
    }

    /// ds_store_b32 v0, v1 (0xD834_0000, 0x100) of lanes that all store to address 0; a lane's value is its number.
    #[test]
    fn lanes_of_both_halves_are_compared_when_the_high_half_stores() {
        let store = zrt_isa::decode(&[0xD834_0000, 0x0000_0100]).unwrap();
        let shape = LdsShape::of(&store).unwrap();
        for (low, high, expected) in [
            (0, 0, None),
            (0, 1 << 3, None),
            (0, 1 << 3 | 1 << 9, Some([35, 41])),
            (1 << 5, 1 << 3, Some([5, 35])),
            (1 << 5 | 1 << 31, 1, Some([5, 31])),
        ] {
            let mut wave = high_half(low, high);
            for lane in 0..LANES as u32 {
                wave.vector[1].0[lane as usize] = 32 + lane;
                wave.other_half.as_mut().unwrap()[1].0[lane as usize] = lane;
            }
            let clash = shape.clash(&wave, &store);
            assert_eq!(
                clash,
                expected.map(|lanes| LaneClash { lanes, address: 0, values: lanes }),
                "{low:#x}"
            );
            // While the low half executes, nothing of the high one has been stored.
            wave.put_halves_back();
            let own =
                (low.count_ones() > 1).then_some(LaneClash { lanes: [5, 31], address: 0, values: [5, 31] });
            assert_eq!(shape.clash(&wave, &store), own, "{low:#x}");
        }
    }

    /// Lanes 1 and 2 store v2 and the following ones to addresses 8 and 8 + `apart`; the registers hold bytes that
    /// count up, from 0x10 in lane 1 and from 0x50 in lane 2.
    #[test]
    fn the_data_of_a_lane_are_its_registers() {
        let of_lanes = |words: &[u32], apart: u32, flat_width: Option<u32>| {
            let instruction = zrt_isa::decode(words).unwrap();
            let mut wave = Wave::new();
            wave.scalar[usize::from(EXEC_LO)] = 0b110;
            for (lane, first) in [(1, 0x1312_1110), (2, 0x5352_5150)] {
                (0..4).for_each(|dword| wave.vector[2 + dword].0[lane] = first + 0x0404_0404 * dword as u32);
            }
            (wave.vector[0].0[1], wave.vector[0].0[2]) = (8, 8 + apart);
            if let Some(width) = flat_width {
                return flat_clash(&wave, &instruction, width, &[(1, 8), (2, 8 + apart)]);
            }
            LdsShape::of(&instruction).unwrap().clash(&wave, &instruction)
        };
        let clash = |address, values| Some(LaneClash { lanes: [1, 2], address, values });
        // ds_store_b128 v0, v[2:5]: what both lanes store from the address on.
        let b128 = &[0xDB7C_0000, 0x0000_0200];
        assert_eq!(of_lanes(b128, 0, None), clash(8, [0x1312_1110, 0x5352_5150]));
        assert_eq!(of_lanes(b128, 6, None), clash(14, [0x1918_1716, 0x5352_5150]));
        assert_eq!(of_lanes(b128, 14, None), clash(22, [0x1f1e, 0x5150]));
        assert_eq!(of_lanes(b128, 16, None), None);
        // ds_store_2addr_b32 v0, v2, v3 offset1:1: where lane 2 stores its first element, lane 1 stores its second.
        let elements = LaneClash { lanes: [2, 1], address: 12, values: [0x5352_5150, 0x1716_1514] };
        assert_eq!(of_lanes(&[0xD838_0100, 0x0003_0200], 4, None), Some(elements));
        // ds_store_b8_d16_hi v0, v2; ds_store_b16_d16_hi v0, v2; ds_store_b16 v0, v2
        assert_eq!(of_lanes(&[0xDA80_0000, 0x0000_0200], 0, None), clash(8, [0x12, 0x52]));
        assert_eq!(of_lanes(&[0xDA84_0000, 0x0000_0200], 0, None), clash(8, [0x1312, 0x5352]));
        assert_eq!(of_lanes(&[0xD87C_0000, 0x0000_0200], 0, None), clash(8, [0x1110, 0x5150]));
        // flat_store_b64 v[0:1], v[2:3]; flat_store_d16_hi_b16 v[0:1], v2
        let b64 = &[0xEC06_C07C, 0x0100_0000, 0];
        assert_eq!(of_lanes(b64, 4, Some(8)), clash(12, [0x1716_1514, 0x5352_5150]));
        assert_eq!(of_lanes(b64, 8, Some(8)), None);
        let b16 = &[0xEC09_407C, 0x0100_0000, 0];
        assert_eq!(of_lanes(b16, 0, Some(2)), clash(8, [0x1312, 0x5352]));
    }
}
