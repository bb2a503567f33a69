//! Kernels assembled during the test from source text, if LLVM 19 is installed.

use std::process::Command;

use super::*;

/// The words of a source; `None`, with the case recorded, if the assembler is not installed.
pub(super) fn assemble(source: &str) -> Option<Vec<u32>> {
    assemble_for(source, "-mattr=")
}

/// Like [`assemble`], with the target's features.
pub(super) fn assemble_for(source: &str, features: &str) -> Option<Vec<u32>> {
    if !zrt_needs::programs(&["llvm-mc-19", "llvm-objcopy-19"]) {
        return None;
    }
    let folder = zrt_needs::TemporaryFolder::new("assembled");
    let [text, object, binary] = ["k.s", "k.o", "k.bin"].map(|name| folder.join(name));
    std::fs::write(&text, format!(".text\n{source}")).unwrap();
    let assembler = Command::new("llvm-mc-19")
        .args(["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1201", features, "-filetype=obj", "-o"])
        .args([&object, &text])
        .status()
        .unwrap();
    assert!(assembler.success(), "{source}");
    let copier = Command::new("llvm-objcopy-19")
        .args(["-O", "binary", "-j", ".text"])
        .args([&object, &binary])
        .status()
        .unwrap();
    assert!(copier.success());
    let bytes = std::fs::read(&binary).unwrap();
    Some(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Matrix (64 × 64, f32) times vector: one row per lane, strided loads, a scalar loop.
const MATRIX_VECTOR: &str = "
    s_load_b128 s[4:7], s[0:1], 0x0
    s_load_b64 s[8:9], s[0:1], 0x10
    v_lshl_add_u32 v0, ttmp9, 5, v0
    v_lshlrev_b32_e32 v1, 8, v0
    v_mov_b32_e32 v4, 0
    s_wait_kmcnt 0x0
    s_mov_b32 s12, 0
column:
    s_load_b32 s13, s[6:7], s12 offset:0x0
    v_add_nc_u32_e32 v2, s12, v1
    global_load_b32 v3, v2, s[4:5]
    s_add_co_i32 s12, s12, 4
    s_wait_kmcnt 0x0
    s_wait_loadcnt 0x0
    v_fmac_f32_e32 v4, s13, v3
    s_cmp_lt_u32 s12, 0x100
    s_cbranch_scc1 column
    v_lshlrev_b32_e32 v0, 2, v0
    global_store_b32 v0, v4, s[8:9]
    s_endpgm
";

#[test]
fn a_kernel_that_did_not_exist_before_the_test_runs() {
    let Some(words) = assemble(MATRIX_VECTOR) else { return };
    for config in configs() {
        let mut device = Device::new(config);
        let code = device.code_words(&words);
        let [matrix, vector, out, arguments] = [64 * 256, 256, 256, 64].map(|bytes| device.buffer(bytes));
        let weight = |row: usize, column: usize| ((row * 7 + column * 3) % 11) as f32 - 5.0;
        for row in 0..64 {
            (0..64).for_each(|column| {
                matrix.view.store_u32(256 * row + 4 * column, weight(row, column).to_bits())
            });
            vector.view.store_u32(4 * row, (row as f32).to_bits());
        }
        [matrix, vector, out.clone()]
            .iter()
            .enumerate()
            .for_each(|(at, buffer)| arguments.view.store_u64(8 * at, buffer.va));
        device.run(device.dispatch(&code, 2, 32, &[arguments.va]));
        for row in 0..64 {
            let expected =
                (0..64).fold(0.0f32, |sum, column| (column as f32).mul_add(weight(row, column), sum));
            assert_eq!(f32::from_bits(out.view.load_u32(4 * row)), expected, "row {row}");
        }
    }
}
