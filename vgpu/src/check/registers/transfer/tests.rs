//! Forms of loads and stores. Words are llvm-mc 19's for the text next to them.

use super::*;
use crate::check::registers::subject::{Outcome, Undefined};
use crate::shader::address::PRIVATE_APERTURE_HIGH;
use zrt_isa::effects::Registers;

fn transfer(words: &[u32]) -> Option<Transfer> {
    Transfer::of(&zrt_isa::decode(words).unwrap())
}

const V2: usize = VECTOR_FIRST + 2;
const V3: usize = VECTOR_FIRST + 3;
const V4: usize = VECTOR_FIRST + 4;
const V5: usize = VECTOR_FIRST + 5;
const V6: usize = VECTOR_FIRST + 6;

/// Whether it loads, bytes of an element, and first register and number of registers of each element.
type Form = (bool, u32, &'static [(usize, usize)]);

fn load(width: u32, elements: &'static [(usize, usize)]) -> Option<Form> {
    Some((true, width, elements))
}

fn store(width: u32, elements: &'static [(usize, usize)]) -> Option<Form> {
    Some((false, width, elements))
}

#[test]
fn each_form_moves_its_bytes_to_or_from_its_registers() {
    let forms: [(&[u32], Option<Form>); 42] = [
        (&[0xee040004, 0x00000002, 0x00000001], load(1, &[(V2, 1)])), // global_load_u8 v2, v1, s[4:5]
        (&[0xee04c004, 0x00000002, 0x00000001], load(2, &[(V2, 1)])), // global_load_i16 v2, v1, s[4:5]
        (&[0xee050004, 0x00000002, 0x00000001], load(4, &[(V2, 1)])), // global_load_b32 v2, v1, s[4:5]
        (&[0xee054004, 0x00000002, 0x00000001], load(8, &[(V2, 2)])), // global_load_b64 v[2:3], v1, s[4:5]
        (&[0xee058004, 0x00000002, 0x00000001], load(12, &[(V2, 3)])), // global_load_b96 v[2:4], v1, s[4:5]
        (&[0xee05c004, 0x00000002, 0x00000001], load(16, &[(V2, 4)])), // global_load_b128 v[2:5], v1, s[4:5]
        (&[0xee07c004, 0x00000002, 0x00000001], load(1, &[(V2, 1)])), // global_load_d16_i8 v2, v1, s[4:5]
        (&[0xee08c004, 0x00000002, 0x00000001], load(2, &[(V2, 1)])), // global_load_d16_hi_b16 v2, v1, s[4:5]
        (&[0xee0a0004, 0x00000002, 0x00000000], load(4, &[(V2, 1)])), // global_load_addtid_b32 v2, s[4:5]
        (&[0xec05007c, 0x00000002, 0x00000004], load(4, &[(V2, 1)])), // flat_load_b32 v2, v[4:5]
        (&[0xed050004, 0x00020002, 0x00000801], load(4, &[(V2, 1)])), // scratch_load_b32 v2, v1, s4 offset:8
        (&[0xc405007c, 0x40800802, 0x00000001], load(4, &[(V2, 1)])), // buffer_load_b32 v2, v1, s[4:7], null offen
        (&[0xd8f00000, 0x02000001], load(2, &[(V2, 1)])),             // ds_load_u16 v2, v1
        (&[0xda940000, 0x02000001], load(1, &[(V2, 1)])),             // ds_load_i8_d16_hi v2, v1
        (&[0xdac40000, 0x02000000], load(4, &[(V2, 1)])),             // ds_load_addtid_b32 v2
        // ds_load_2addr_b32 v[2:3], v1 offset0:1 offset1:3
        (&[0xd8dc0301, 0x02000001], load(4, &[(V2, 1), (V3, 1)])),
        // ds_load_2addr_stride64_b64 v[2:5], v1 offset0:1 offset1:3
        (&[0xd9e00301, 0x02000001], load(8, &[(V2, 2), (V4, 2)])),
        (&[0xf4012082, 0xf8000000], load(1, &[(2, 1)])), // s_load_u8 s2, s[4:5], 0x0
        (&[0xf4014082, 0xf8000000], load(2, &[(2, 1)])), // s_load_i16 s2, s[4:5], 0x0
        (&[0xf400a202, 0xf8000000], load(12, &[(8, 3)])), // s_load_b96 s[8:10], s[4:5], 0x0
        (&[0xf4006202, 0xf8000000], load(32, &[(8, 8)])), // s_load_b256 s[8:15], s[4:5], 0x0
        (&[0xf4008402, 0xf8000000], load(64, &[(16, 16)])), // s_load_b512 s[16:31], s[4:5], 0x0
        (&[0xf4022082, 0xf8000000], load(8, &[(2, 2)])), // s_buffer_load_b64 s[2:3], s[4:7], 0x0
        // global_atomic_add_u32 v2, v1, v3, s[4:5] th:TH_ATOMIC_RETURN
        (&[0xee0d4004, 0x01900002, 0x00000001], load(4, &[(V2, 1)])),
        // global_atomic_add_u64 v[2:3], v1, v[6:7], s[4:5] th:TH_ATOMIC_RETURN
        (&[0xee10c004, 0x03100002, 0x00000001], load(8, &[(V2, 2)])),
        (&[0xd8800000, 0x02000301], load(4, &[(V2, 1)])), // ds_add_rtn_u32 v2, v1, v3
        (&[0xee060004, 0x01000000, 0x00000001], store(1, &[(V2, 1)])), // global_store_b8 v1, v2, s[4:5]
        (&[0xee094004, 0x01000000, 0x00000001], store(2, &[(V2, 1)])), // global_store_d16_hi_b16 v1, v2, s[4:5]
        (&[0xee068004, 0x01000000, 0x00000001], store(4, &[(V2, 1)])), // global_store_b32 v1, v2, s[4:5]
        (&[0xee070004, 0x01000000, 0x00000001], store(12, &[(V2, 3)])), // global_store_b96 v1, v[2:4], s[4:5]
        (&[0xee0a4004, 0x01000000, 0x00000000], store(4, &[(V2, 1)])), // global_store_addtid_b32 v2, s[4:5]
        // buffer_store_b64 v[2:3], v1, s[4:7], null offen
        (&[0xc406c07c, 0x40800802, 0x00000001], store(8, &[(V2, 2)])),
        (&[0xda800000, 0x00000201], store(1, &[(V2, 1)])), // ds_store_b8_d16_hi v1, v2
        (&[0xdac00004, 0x00000200], store(4, &[(V2, 1)])), // ds_store_addtid_b32 v2 offset:4
        // ds_store_2addr_b64 v1, v[2:3], v[6:7] offset1:1
        (&[0xd9380100, 0x00060201], store(8, &[(V2, 2), (V6, 2)])),
        // ds_store_2addr_stride64_b32 v1, v2, v3 offset1:1
        (&[0xd83c0100, 0x00030201], store(4, &[(V2, 1), (V3, 1)])),
        // What converts, moves data between lanes or returns nothing has no transfer.
        (&[0xee0d4004, 0x01800000, 0x00000001], None), // global_atomic_add_u32 v1, v3, s[4:5]
        (&[0xc402007c, 0x40800802, 0x00000001], None), // buffer_load_d16_format_x v2, v1, s[4:7], null offen
        (&[0xc401c07c, 0x40800802, 0x00000001], None), // buffer_store_format_xyzw v[2:5], v1, s[4:7], null offen
        (&[0xee15c004, 0x00000002, 0x00000001], None), // global_load_tr_b128 v[2:5], v1, s[4:5]
        (&[0xee0ac07c, 0x00080000, 0x00000000], None), // global_inv scope:SCOPE_DEV
        (&[0x7e020302], None),                         // v_mov_b32_e32 v1, v2
    ];
    for (words, expected) in forms {
        let transfer = transfer(words);
        let elements: Vec<(usize, usize)> = transfer
            .iter()
            .flat_map(Transfer::elements)
            .map(|registers| (registers.start, registers.len()))
            .collect();
        let form = transfer.map(|transfer| (transfer.is_load, transfer.width_bytes, &elements[..]));
        assert_eq!(form, expected, "{words:#x?}");
    }
}

fn placed(words: &[u32], element: u32, bits: &[u32]) -> Vec<(usize, u32)> {
    let mut placed = Vec::new();
    transfer(words).unwrap().place(element, bits, |register, bits| placed.push((register, bits)));
    placed
}

#[test]
fn loads_place_bytes_as_they_are_encoded() {
    // A dword of which the low bytes are loaded; the sign decides what is above.
    let narrow: [(&[u32], u32, u32); 12] = [
        (&[0xee040004, 0x00000002, 0x00000001], 0x8182_8384, 0x84), // global_load_u8 v2, v1, s[4:5]
        (&[0xee044004, 0x00000002, 0x00000001], 0x8182_8380, 0xffff_ff80), // global_load_i8 v2, v1, s[4:5]
        (&[0xee044004, 0x00000002, 0x00000001], 0x8182_837f, 0x7f), // global_load_i8 v2, v1, s[4:5]
        (&[0xee048004, 0x00000002, 0x00000001], 0x8182_8384, 0x8384), // global_load_u16 v2, v1, s[4:5]
        (&[0xee04c004, 0x00000002, 0x00000001], 0x8182_8384, 0xffff_8384), // global_load_i16 v2, v1, s[4:5]
        (&[0xee078004, 0x00000002, 0x00000001], 0x8182_8384, 0x84), // global_load_d16_u8 v2, v1, s[4:5]
        (&[0xee07c004, 0x00000002, 0x00000001], 0x8182_8384, 0xff84), // global_load_d16_i8 v2, v1, s[4:5]
        (&[0xee080004, 0x00000002, 0x00000001], 0x8182_8384, 0x8384), // global_load_d16_b16 v2, v1, s[4:5]
        (&[0xee084004, 0x00000002, 0x00000001], 0x8182_8384, 0x84_0000), // global_load_d16_hi_u8 v2, v1, s[4:5]
        (&[0xee088004, 0x00000002, 0x00000001], 0x8182_8384, 0xff84_0000), // global_load_d16_hi_i8 v2, v1, s[4:5]
        (&[0xda9c0000, 0x02000001], 0x8182_8384, 0x8384_0000),             // ds_load_u16_d16_hi v2, v1
        (&[0xee050004, 0x00000002, 0x00000001], 0x8182_8384, 0x8182_8384), // global_load_b32 v2, v1, s[4:5]
    ];
    for (words, bits, expected) in narrow {
        assert_eq!(placed(words, 0, &[bits]), [(V2, expected)], "{words:#x?}");
    }
    let wide = [0xee054004, 0x00000002, 0x00000001]; // global_load_b64 v[2:3], v1, s[4:5]
    assert_eq!(placed(&wide, 0, &[1, 2, 3]), [(V2, 1), (V3, 2)]);
    assert_eq!(placed(&wide, 1, &[1, 2, 3]), [], "it has one element");
    let scalar = [0xf4002100, 0xf8000000]; // s_load_b64 s[4:5], s[0:1], 0x0
    assert_eq!(placed(&scalar, 0, &[1, 2]), [(4, 1), (5, 2)]);
    let pair = [0xd9e00301, 0x02000001]; // ds_load_2addr_stride64_b64 v[2:5], v1 offset0:1 offset1:3
    assert_eq!(placed(&pair, 0, &[1, 2]), [(V2, 1), (V3, 2)]);
    assert_eq!(placed(&pair, 1, &[1, 2]), [(V4, 1), (V5, 2)]);
}

#[test]
fn stores_take_the_part_that_they_move() {
    let stored: [(&[u32], [u32; 4]); 6] = [
        (&[0xee060004, 0x01000000, 0x00000001], [0x84, 0, 0, 0]), // global_store_b8 v1, v2, s[4:5]
        (&[0xee064004, 0x01000000, 0x00000001], [0x8384, 0, 0, 0]), // global_store_b16 v1, v2, s[4:5]
        (&[0xee090004, 0x01000000, 0x00000001], [0x82, 0, 0, 0]), // global_store_d16_hi_b8 v1, v2, s[4:5]
        (&[0xda840000, 0x00000201], [0x8182, 0, 0, 0]),           // ds_store_b16_d16_hi v1, v2
        (&[0xee068004, 0x01000000, 0x00000001], [0x8182_8384, 0, 0, 4]), // global_store_b32 v1, v2, s[4:5]
        (&[0xee070004, 0x01000000, 0x00000001], [0x8182_8384, 0, 0, 4]), // global_store_b96 v1, v[2:4], s[4:5]
    ];
    for (words, expected) in stored {
        assert_eq!(transfer(words).unwrap().stored([0x8182_8384, 0, 0, 4]), expected, "{words:#x?}");
    }
}

/// A wave whose lanes have these flat addresses in v0 and v1.
struct Flat([u64; 4]);

impl Subject for Flat {
    fn exec(&self) -> u64 {
        0
    }

    fn scalar(&self) -> &[u32] {
        &[]
    }

    fn vector(&self, register: u8, lane: u32) -> u32 {
        (self.0[lane as usize] >> (32 * u32::from(register))) as u32
    }

    fn vary(&mut self, _: &[Undefined], _: &[Registers]) -> Option<Outcome> {
        None
    }
}

#[test]
fn offsets_are_those_of_active_lanes_that_access_private_memory() {
    const PRIVATE: u64 = (PRIVATE_APERTURE_HIGH as u64) << 32;
    let lanes = Flat([PRIVATE | 8, PRIVATE | 8, PRIVATE | 12, 0x1234]);
    let flat = PrivateAddress { vector: Some(0), scalar: None, immediate: 4, is_flat: true };
    let offsets = |exec: u64| {
        flat.offsets(&lanes, exec).map(|offsets| {
            let is_same = matches!(offsets, PrivateOffsets::Same(_));
            (is_same, [0, 1, 2, 3].map(|lane| offsets.of_lane(lane)))
        })
    };
    assert_eq!(offsets(0b0011), Some((true, [Some(12); 4])));
    assert_eq!(offsets(0b0110), Some((false, [None, Some(12), Some(16), None])));
    assert_eq!(offsets(0b1001), Some((false, [Some(12), None, None, None])));
    assert_eq!((offsets(0b1000), offsets(0)), (None, None));
    // Without a register all lanes have the same, active or not.
    let same = PrivateAddress { vector: None, is_flat: false, ..flat };
    assert!(matches!(same.offsets(&lanes, 0), Some(PrivateOffsets::Same(4))));
}
