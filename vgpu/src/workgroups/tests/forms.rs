//! Rare memory forms in whole kernels: typed buffers, transposed tiles, blocks of registers, LDS counters.

use super::forms_code::{LDS_COUNTERS, MATRIX_TILES, TYPED_BUFFERS};
use super::*;

const LANES: usize = 32;
/// The last lane of the kernel is beyond the records of its buffers.
const LANES_INSIDE: usize = 31;

fn both(test: impl Fn(Device)) {
    [parallel(1), deterministic(5)].into_iter().for_each(|config| test(Device::new(config)));
}

fn byte(lane: usize, index: usize) -> u32 {
    ((lane * 37 + index * 91 + 5) % 256) as u32
}

/// f16 bits of a number with few significant bits, from the definition of the format.
fn half_bits(value: f32) -> u32 {
    let bits = value.to_bits();
    let (sign, exponent, fraction) = (bits >> 31, (bits >> 23 & 0xFF) as i32 - 127, bits & 0x7F_FFFF);
    if value == 0.0 {
        return sign << 15;
    }
    assert!((-14..=15).contains(&exponent) && fraction & 0x1FFF == 0, "{value} is not a short number");
    sign << 15 | ((exponent + 15) as u32) << 10 | fraction >> 13
}

/// Value of f16 bits.
fn half_value(bits: u32) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, f64::from(bits & 0x3FF));
    if exponent == 0 { fraction * 2f64.powi(-24) } else { (1024.0 + fraction) * 2f64.powi(exponent - 25) }
}

#[test]
fn texels_are_converted() {
    both(|mut device| {
        let code = device.code(&TYPED_BUFFERS);
        let [input, loaded, stored] = [128, 64 * LANES as u64, 256].map(|bytes| device.buffer(bytes));
        let texel = |lane| [0, 1, 2, 3].map(|index: usize| byte(lane, index));
        input.fill(0, (0..LANES).map(|lane| u32::from_le_bytes(texel(lane).map(|byte| byte as u8))));
        stored.fill(0, [0xCCCC_CCCC; 64]);
        device.run(device.dispatch(&code, 1, 32, &[input.va, loaded.va, stored.va]));
        for lane in 0..LANES {
            let words = loaded.words(64 * lane, 9);
            let [x, y, z, w] = texel(lane);
            if lane >= LANES_INSIDE {
                assert_eq!(words[..6], [0; 6], "zero beyond the records");
                assert_eq!(words[6..], [0, 0x1234_0000, 0x0000_5678], "halves that are not loaded stay");
                assert_eq!(stored.words(4 * lane, 1), [0xCCCC_CCCC], "not stored");
                continue;
            }
            let norm = |byte: u32| ((f64::from(byte) / 255.0) as f32).to_bits();
            // The descriptor selects W, Y, Z, X.
            assert_eq!(words[..4], [norm(w), norm(y), norm(z), norm(x)], "lane {lane}");
            let signed = |low: u32, high: u32| {
                let value = f64::from((low | high << 8) as u16 as i16) / 32767.0;
                (value.max(-1.0) as f32).to_bits()
            };
            assert_eq!(words[4..6], [signed(x, y), signed(z, w)], "lane {lane}");
            // f16 has eleven bits: the result is within half a place of the exact value.
            let near = |bits: u32, byte: u32| {
                let exact = f64::from(byte) / 255.0;
                assert!(
                    (half_value(bits & 0xFFFF) - exact).abs() <= exact * 2f64.powi(-11),
                    "{bits:#x} {byte}"
                );
            };
            near(words[6], x);
            near(words[6] >> 16, y);
            near(words[7], z);
            near(words[8] >> 16, w);
            assert_eq!((words[7] >> 16, words[8] & 0xFFFF), (0x1234, 0x5678));
            // Stored as selected: W, Y, Z, X as bytes.
            assert_eq!(stored.words(4 * lane, 1), [w | y << 8 | z << 16 | x << 24]);
        }
        // The first of the two d16 stores is beyond the records; the second is within them except for lane 31.
        let halves = stored.words(128, LANES);
        for (lane, half) in halves.into_iter().enumerate() {
            let expected = if lane < LANES_INSIDE { loaded.words(64 * lane, 7)[6] } else { 0xCCCC_CCCC };
            assert_eq!(half, expected, "lane {lane}");
        }
    });
}

#[test]
fn transposed_tiles_multiply_as_matrices() {
    both(|mut device| {
        let code = device.code(&MATRIX_TILES);
        let [tiles, results] = [2048, 4096].map(|bytes| device.buffer(bytes));
        // Row-major A and B of bytes at 0 and 256, of f16 at 512 and 1024.
        let a = |row: usize, k: usize| byte(row, k) as i8;
        let b = |k: usize, column: usize| byte(3 * k, column + 7) as i8;
        let (x, y) = (|row, k| f32::from(a(row, k) / 16), |k, column| f32::from(b(k, column) / 32));
        for row in 0..16 {
            for column in 0..16 {
                tiles.view.store_u8(16 * row + column, a(row, column) as u8);
                tiles.view.store_u8(256 + 16 * row + column, b(row, column) as u8);
                tiles.view.store_u16(512 + 32 * row + 2 * column, half_bits(x(row, column)) as u16);
                tiles.view.store_u16(1024 + 32 * row + 2 * column, half_bits(y(row, column)) as u16);
            }
        }
        device.run(device.dispatch(&code, 1, 32, &[tiles.va, results.va]));
        for row in 0..16 {
            for column in 0..16 {
                // D[i][j] is in register i % 8 of lane 16 · (i / 8) + j; the block stores a lane's registers
                // together.
                let (register, lane) = (row % 8, 16 * (row / 8) + column);
                let at = 32 * lane + 4 * register;
                let product: i32 = (0..16).map(|k| i32::from(a(row, k)) * i32::from(b(k, column))).sum();
                assert_eq!(results.words(at, 1), [product as u32], "{row} {column}");
                let product: f64 = (0..16).map(|k| f64::from(x(row, k)) * f64::from(y(k, column))).sum();
                assert_eq!(f64::from(f32::from_bits(results.words(1024 + at, 1)[0])), product);
                // Registers 0, 2 and 5 were loaded again, from the tiles.
                let mixed = match register {
                    0 | 2 | 5 => tiles.words(at, 1),
                    _ => results.words(1024 + at, 1),
                };
                assert_eq!(results.words(2048 + at, 1), mixed);
            }
        }
    });
}

#[test]
fn lanes_are_counted_and_marked_values_exchanged() {
    both(|mut device| {
        let code = device.code(&LDS_COUNTERS);
        let out = device.buffer(4096);
        let mut dispatch = device.dispatch(&code, 1, 32, &[out.va]);
        dispatch.rsrc2 |= 2 << 15;
        device.run(dispatch);
        for lane in 0..32u32 {
            let words = out.words(32 * lane as usize, 7);
            let even = lane % 2 == 0;
            assert_eq!(words[..2], [lane, 0x44], "old values");
            // The first is marked only in odd lanes, the second in all.
            assert_eq!(words[2..4], [if even { lane } else { 77 }, lane]);
            // Eight lanes append to 100, then consume as many; all lanes read 100.
            let counts = if (4..12).contains(&lane) { [100, 108] } else { [1, 2] };
            assert_eq!(words[4..6], counts);
            assert_eq!(words[6], 100);
        }
    });
}
