//! `zrt disasm`, `zrt lint` and `zrt doctor --isa` as their users run them.
//!
//! ELF files are made by llvm-mc 19 if it is installed; `ZRT_REQUIRE_LLVM` makes its absence a failure.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use serde_json::Value as Json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// s_endpgm.
const END: u32 = 0xbfb0_0000;
/// v_mov_b32 v1, s4; s_mov_b32 s4, 1; v_mov_b32 v2, s4: the last may read the old s4.
const HAZARD: [u32; 4] = [0x7e02_0204, 0xbe84_0081, 0x7e04_0204, END];

fn zrt(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zrt")).args(arguments).output().unwrap()
}

/// Runs with `input` as standard input.
fn zrt_with(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output, code: i32) -> Json {
    serde_json::from_str(&text(output, code)).unwrap()
}

/// Bad input: exit code 2, one line that contains `part`, no output.
fn check_refusal(arguments: &[&str], part: &str) {
    let output = zrt(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.contains(part), "{part:?} in {message:?}");
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to standard output");
}

fn file(name: &str, bytes: &[u8]) -> String {
    let path = path(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An object file with the kernel `hazard` whose body is `body`, for waves of `lanes`; `None` without llvm-mc-19.
fn object(name: &str, body: &str, lanes: u32) -> Option<String> {
    if !zrt_needs::programs(&["llvm-mc-19"]) {
        return None;
    }
    let wave32 = u32::from(lanes == 32);
    let source = format!(
        ".globl hazard\n.p2align 8\n.type hazard,@function\nhazard:\n{body}\ns_endpgm\n.size hazard, .-hazard\n\
         .rodata\n.p2align 6\n.amdhsa_kernel hazard\n.amdhsa_next_free_vgpr 8\n.amdhsa_next_free_sgpr 16\n\
         .amdhsa_user_sgpr_count 8\n.amdhsa_wavefront_size32 {wave32}\n.end_amdhsa_kernel\n"
    );
    let source_path = file(&format!("{name}.s"), source.as_bytes());
    let object_path = path(&format!("{name}.o"));
    let mode = if lanes == 32 { "-mattr=+wavefrontsize32" } else { "-mattr=+wavefrontsize64" };
    let output = Command::new("llvm-mc-19")
        .args(["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1201", mode, "-filetype=obj", "-o"])
        .args([object_path.to_str().unwrap(), &source_path])
        .output()
        .expect("llvm-mc-19 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(object_path.to_str().unwrap().to_owned())
}

#[test]
fn bytes_of_a_line_become_a_line_of_text() {
    let input = "# a comment\n\
                 0x00,0x00,0xb0,0xbf\n\
                 \n\
                 [0xff, 0x00, 0x80, 0xbe, 0x78, 0x56, 0x34, 0x12] ; s_mov_b32\n\
                 0xff,0xff,0xff,0xff // no instruction\n\
                 0x01,0x03,0x02,0x02\n\
                 0x00,0x00,0x00,0xca,0x00,0x00,0x00,0x00\n\
                 0xff,0x00,0x80,0xbe\n";
    let wave32 = "s_endpgm\ns_mov_b32 s0, 0x12345678\n.long 0xffffffff\nv_cndmask_b32_e32 v1, v1, v1, vcc_lo\n\
                  v_dual_cndmask_b32 v0, s0, v0 :: v_dual_fmac_f32 v1, s0, v0\n.long 0xbe8000ff\n";
    let wave64 = wave32.replace("vcc_lo", "vcc");
    let both: Vec<&str> = wave64.lines().collect();
    let wave64 = [&both[..4], &[".long 0xca000000"], &both[5..]].concat();
    let given = text(&zrt_with(&["disasm", "-"], input), 0);
    // 0xca000000: the pair's first operation is number 8.
    let expected: Vec<&str> = wave32.lines().collect();
    assert_eq!(given.lines().count(), expected.len(), "{given}");
    for (index, line) in given.lines().enumerate().filter(|(index, _)| *index != 4) {
        assert_eq!(line, expected[index]);
    }
    assert!(given.lines().nth(4).unwrap().starts_with("v_dual_"), "{given}");
    assert_eq!(
        text(&zrt_with(&["disasm", "-", "--wave", "64"], input), 0).lines().collect::<Vec<_>>(),
        wave64
    );

    let lines = json(&zrt_with(&["disasm", "-", "--json"], input), 0);
    // An unknown word counts 4 bytes.
    let offsets: Vec<u64> =
        lines.as_array().unwrap().iter().map(|one| one["offset"].as_u64().unwrap()).collect();
    assert_eq!(offsets, [0, 4, 12, 16, 20, 28]);
    assert_eq!(lines[1]["words"], serde_json::json!(["be8000ff", "12345678"]));
}

#[test]
fn lines_are_what_llvm_mc_knows_and_files_what_executes() {
    // v_add_f16 v1.h, v2.l, v3.l, whose upper half llvm-mc 19 does not know; v_mov_b32 from a source of other chips.
    let upper = [0x6502_0702, END];
    let input = "0x02,0x07,0x02,0x65\n0xfe,0x02,0x02,0x7e\n";
    let lines = text(&zrt_with(&["disasm", "-"], input), 0);
    assert_eq!(lines, ".long 0x65020702\nv_mov_b32_e32 v1, src_lds_direct\n");
    let listing = text(&zrt(&["disasm", &file("upper.bin", &bytes(&upper))]), 0);
    assert!(listing.contains("v_add_f16_e32 v1.h, v2.l, v3.l\n"), "{listing}");
}

#[test]
fn what_is_no_byte_stops_with_the_line_number() {
    let output = zrt_with(&["disasm", "-"], "0x00,0x00,0xb0,0xbf\ns_endpgm\n");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text(&output, 2), "s_endpgm\n");
    assert!(message.contains("line 2") && message.contains("\"s_endpgm\" is not a byte"), "{message}");
    let output = zrt_with(&["disasm", "-"], "0x00,0x00,0xb0\n");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn raw_code_has_offsets_words_and_labels() {
    // s_nop 0; s_cbranch_scc0 to the end; s_branch to the nop; s_endpgm.
    let raw = file("raw.bin", &bytes(&[0xbf80_0000, 0xbfa1_0001, 0xbfa0_fffd, END]));
    let expected = "\
L_0000:
000000  bf800000                    s_nop 0
000004  bfa10001                    s_cbranch_scc0 1  ; L_000c
000008  bfa0fffd                    s_branch 65533  ; L_0000
L_000c:
00000c  bfb00000                    s_endpgm
";
    assert_eq!(text(&zrt(&["disasm", &raw]), 0), expected);
    let code = json(&zrt(&["disasm", &raw, "--json"]), 0);
    let lines = &code["sections"][0]["lines"];
    assert_eq!((&code["format"], &lines[1]["target"]), (&Json::from("raw"), &Json::from("L_000c")));
    assert_eq!(lines[3]["labels"], serde_json::json!(["L_000c"]));
}

#[test]
fn kernels_of_the_program_have_source_lines() {
    let listing = text(&zrt(&["disasm", "copy"]), 0);
    assert!(listing.starts_with("copy: ") && listing.contains("\ncopy:\n"), "{listing}");
    assert!(listing.lines().any(|line| line.starts_with("; ") && line.contains(".inc:")), "{listing}");
    let report = json(&zrt(&["lint", "copy", "--json"]), 0);
    assert_eq!((&report["kernels"], &report["findings"]), (&Json::from(1), &serde_json::json!([])));
}

#[test]
fn damaged_files_are_refused_in_a_sentence() {
    for command in ["disasm", "lint"] {
        check_refusal(&[command, &file("empty.bin", b"")], "it is empty");
        check_refusal(&[command, &file("odd.bin", b"abcde")], "5 bytes is cut");
        check_refusal(
            &[command, &file("noise.bin", &[0xff; 64])],
            "neither .zrt nor ELF nor raw gfx1201 code",
        );
        check_refusal(
            &[command, &file("cut.bin", &bytes(&[END, 0xf400_4100]))],
            "inside of its last instruction",
        );
        check_refusal(&[command, &file("cut.zrt", b"ZRT\0")], "not a complete .zrt container");
        check_refusal(&[command, &file("cut.elf", b"\x7fELF\x02\x01\x01")], "not a complete ELF file");
    }
    check_refusal(&["lint", "no/such.bin"], "cannot be read");
    let raw = file("named.bin", &bytes(&[END]));
    check_refusal(&["lint", &raw, "--kernel", "other"], "no kernel \"other\"");
}

#[test]
fn lint_of_raw_code_names_rule_place_and_remedy() {
    let raw = file("hazard.bin", &bytes(&HAZARD));
    let table = text(&zrt(&["lint", &raw]), 1);
    for part in
        ["scalar-hazard", "raw+0x8", "v_mov_b32_e32 v2, s4", "sa_sdst(0)", "from raw+0x4", "1 finding"]
    {
        assert!(table.contains(part), "{part:?} in\n{table}");
    }
    let right = [HAZARD[0], HAZARD[1], 0xbf88_ff9e, HAZARD[2], END];
    let right = file("right.bin", &bytes(&right));
    assert_eq!(text(&zrt(&["lint", &right]), 0), "1 kernel, 0 findings\n");
}

#[test]
fn lint_of_wave64_sees_both_halves_of_a_mask() {
    // v_mov_b32 v1, s5; v_cmp_eq_u32 s4 or s[4:5], v0, v0; v_mov_b32 v2, s5.
    let raw = file("mask.bin", &bytes(&[0x7e02_0205, 0xd44a_0004, 0x0002_0100, 0x7e04_0205, END]));
    assert_eq!(json(&zrt(&["lint", &raw, "--json"]), 0)["findings"], serde_json::json!([]));
    let report = json(&zrt(&["lint", &raw, "--json", "--wave", "64"]), 1);
    let finding = &report["findings"][0];
    assert_eq!((&finding["rule"], &finding["registers"]), (&Json::from("scalar-hazard"), &Json::from("s5")));
    assert_eq!((&finding["offset"], &finding["cause"]["offset"]), (&Json::from(12), &Json::from(4)));
}

#[test]
fn elf_files_have_names_and_their_own_wave_size() {
    for (lanes, mask) in [(32, "s0"), (64, "s[0:1]")] {
        let body = format!("v_cmp_eq_u32_e64 {mask}, v0, v0\ns_cbranch_vccz place\ns_nop 1\nplace:\ns_nop 2");
        let Some(path) = object(&format!("names{lanes}"), &body, lanes) else { return };
        let listing = text(&zrt(&["disasm", &path]), 0);
        let compare = format!("v_cmp_eq_u32_e64 {mask}, v0, v0\n");
        for part in [
            "section .text\nhazard:\n000000  ",
            compare.as_str(),
            "s_cbranch_vccz 1  ; place\n",
            "\nplace:\n",
        ] {
            assert!(listing.contains(part), "{part:?} in\n{listing}");
        }
        let whole = std::fs::read(&path).unwrap();
        for length in [20, 64, whole.len() / 2, whole.len() - 1] {
            check_refusal(&["disasm", &file("part.o", &whole[..length])], "not a complete ELF file");
        }
        let mut other = whole.clone();
        // The low byte of the flags is the chip.
        other[48] = 0x41;
        check_refusal(&["disasm", &file("other.o", &other)], "not gfx1201");
    }
}

#[test]
fn code_of_a_compiler_that_does_not_know_the_hazard_is_reported_once() {
    let hazard = "v_mov_b32 v1, s4\ns_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_mov_b32 s4, 2\nv_mov_b32 v3, s4";
    let Some(path) = object("unknowing", hazard, 32) else { return };
    let short = text(&zrt(&["lint", &path]), 1);
    assert!(short.contains("does not insert s_wait_alu; 2 places; use clang 22 or later"), "{short}");
    assert!(short.ends_with("1 kernel, 1 finding\n"), "{short}");
    let all = json(&zrt(&["lint", &path, "--all", "--json"]), 1);
    assert_eq!(all["findings"].as_array().unwrap().len(), 2, "{all}");
    assert_eq!(all["findings"][0]["kernel"], "hazard");
    // One wait, of another place: the compiler knows the rule.
    let knowing = format!("v_mov_b32 v1, s6\ns_mov_b32 s6, 1\ns_wait_alu 0xfffe\nv_mov_b32 v2, s6\n{hazard}");
    let path = object("knowing", &knowing, 32).unwrap();
    let all = json(&zrt(&["lint", &path, "--json"]), 1);
    assert_eq!(all["findings"].as_array().unwrap().len(), 2, "{all}");
}

#[test]
fn doctor_counts_the_instruction_set() {
    let report = json(&zrt(&["doctor", "--isa", "--json"]), 0);
    let classes = report["classes"].as_array().unwrap();
    let class = |name: &str| classes.iter().find(|one| one["class"] == name).unwrap();
    // Opcode numbers that llvm-mc 19 knows.
    assert_eq!((&class("VOPC")["known"], &class("VOPC")["decoded"]), (&Json::from(162), &Json::from(162)));
    assert_eq!(class("VSAMPLE")["by_class_only"], true);
    let table = text(&zrt(&["doctor", "--isa"]), 0);
    assert!(table.contains("| VOP3P") && table.contains("not executed, graphics"), "{table}");
}
