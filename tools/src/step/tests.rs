//! Whole conversations with the debugger, on the virtual device in this process.

use super::*;
use crate::launch::{self, LaunchArgument, LaunchRequest};
use std::io::Cursor;
use std::path::Path;
use std::sync::Mutex;
use zrt_bringup::{DeviceChoice, OpenOptions, virtual_config};
use zrt_isa::resources::WaveSize;
use zrt_loader::{DynamicLds, Geometry, Program, RawOptions};
use zrt_vgpu::VirtualGpu;

/// What is written, for the test to read.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The answer to each command, one a line, after what is said first; without what follows the last prompt. The kernel
/// is launched so many times.
fn answers(
    program: &Program,
    geometry: Geometry,
    arguments: &[LaunchArgument],
    launches: usize,
    commands: &[&str],
) -> Vec<String> {
    let output = Shared::default();
    let code = CodeMap::new(program, &program.kernels()[0], &geometry, Path::new("kernel"));
    let input = Cursor::new(commands.iter().map(|command| format!("{command}\n")).collect::<String>());
    let stepper = Stepper::new(input, output.clone(), code, None);
    let attention = stepper.attention();
    let options = OpenOptions::default();
    let gpu = VirtualGpu::with_debugger(virtual_config(&options), Box::new(stepper)).unwrap();
    let request = LaunchRequest { arguments, ..LaunchRequest::new(program, geometry) };
    let mut sequence = request.sequence().unwrap();
    let launch = sequence.actions[0].clone();
    (1..launches).for_each(|_| sequence.actions.insert(0, launch.clone()));
    sequence.placement = Some(&attention.placement);
    launch::run_sequence_over(&sequence, DeviceChoice::Virtual, gpu, &options, &mut |_| ()).unwrap();
    let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    let all: Vec<String> = text.split("(zrt) ").map(str::to_owned).collect();
    all[1..=commands.len()].to_vec()
}

/// One wave of `double` with 256 bytes of LDS.
fn of_double(commands: &[&str]) -> Vec<String> {
    let bytes: Vec<u8> =
        crate::double_object::DOUBLE_OBJECT.iter().flat_map(|word| word.to_le_bytes()).collect();
    let program = Program::parse(&bytes).unwrap();
    let geometry = Geometry { dynamic_lds: DynamicLds::of(256), ..Geometry::new([1; 3], [32, 1, 1]) };
    answers(&program, geometry, &[LaunchArgument::InOut(vec![1; 128])], 1, commands)
}

/// One wave of raw code.
fn of_raw(words: &[u32], wave_size: WaveSize, commands: &[&str]) -> Vec<String> {
    of_raw_waves(words, wave_size, 1, commands)
}

/// So many waves of one workgroup.
fn of_raw_waves(words: &[u32], wave_size: WaveSize, waves: u32, commands: &[&str]) -> Vec<String> {
    of_raw_launches(words, wave_size, waves, 1, commands)
}

/// The same, launched so many times.
fn of_raw_launches(
    words: &[u32],
    wave_size: WaveSize,
    waves: u32,
    launches: usize,
    commands: &[&str],
) -> Vec<String> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let program = Program::raw(&code, &RawOptions { wave_size, ..RawOptions::default() }).unwrap();
    answers(&program, Geometry::new([1; 3], [waves * wave_size.lanes(), 1, 1]), &[], launches, commands)
}

#[test]
fn registers_of_every_kind_are_set_and_printed() {
    let found = of_double(&[
        "set vcc 0x123456789",
        "p vcc",
        "set scc 1",
        "p scc",
        "set m0 0x55",
        "p m0",
        "set mode 0xf0",
        "p mode",
        "set m0 0x100000000",
        "set mode 0x100000000",
        "set s[4:5] 0x1122334455667788",
        "p s[4:5] u64",
        "p s4",
        "set s[4:6] 1",
        "set v[0:2] 1",
        "registers",
    ]);
    let pairs = [
        (1, "vcc = 0x0000000123456789\n"),
        (3, "scc = 1\n"),
        (5, "m0 = 0x00000055\n"),
        (7, "mode = 0xf0\n"),
        (8, "it has 32 bits\n"),
        (9, "it has 32 bits\n"),
        (11, "s[4:5] = 0x1122334455667788  1234605616436508552\n"),
        (12, "s4 = 0x55667788  1432778632\n"),
        (13, "set takes one register, or two for a 64-bit number\n"),
        (14, "set takes one register, or two for a 64-bit number\n"),
    ];
    for (index, answer) in pairs {
        assert_eq!(found[index], answer);
    }
    let lines: Vec<&str> = found[15].lines().collect();
    assert!(
        lines[0].ends_with("  vcc = 0x0000000123456789  scc = 1  m0 = 0x00000055  mode = 0xf0"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("  s0    ") && lines[1].contains(" 55667788 11223344 "), "{lines:?}");
    // 106 registers in rows of eight.
    assert_eq!((lines.len(), lines[14].split_whitespace().count()), (16, 3), "{lines:?}");
    assert!(lines[14].starts_with("  s104  "), "{lines:?}");
    // The last vector register is one of the wave's, and the next one is not.
    let count: u32 = lines[15].split(' ').next().unwrap().parse().unwrap();
    assert!(lines[15].ends_with(&format!("print v[0:{}]", count - 1)), "{lines:?}");
    let [last, next] = [count - 1, count].map(|register| format!("set v{register} 1"));
    let refused = format!("the wave has {count} vector registers\n");
    assert_eq!(of_double(&[&last, &next]), [String::new(), refused]);
}

/// In all lanes, or in one; what its user sets is no change of what is watched.
#[test]
fn lanes_are_set_together_or_alone() {
    let found = of_double(&[
        "watch v1",
        "set v1 5",
        "lane 3",
        "set v1 9",
        "set v[1:2] 0x700000008",
        "p v[1:2] u64",
        "lane all",
        "p v1",
        "step",
    ]);
    assert_eq!(found[5], "v[1:2] lane 3 = 0x0000000700000008  30064771080\n");
    let rows: Vec<&str> = found[7].lines().collect();
    assert_eq!(
        rows[..2],
        ["v1", "  lane 0    00000005 00000005 00000005 00000008 00000005 00000005 00000005 00000005"]
    );
    assert_eq!(rows.len(), 5);
    assert!(found[8].starts_with("workgroup 0,0,0 wave 0  double+0x8  "), "{found:?}");
    // s_nop 0 and the end of a wave64.
    let found = of_raw(
        &[0xbf80_0000, 0xbfb0_0000],
        WaveSize::Wave64,
        &["watch v1", "set v1 3", "lane 40", "set v1 4", "p v1", "lane all", "p v1", "step"],
    );
    assert_eq!(found[4], "v1 lane 40 = 0x00000004\n");
    let rows: Vec<&str> = found[6].lines().collect();
    assert_eq!(rows.len(), 9);
    assert_eq!(
        rows[6],
        "  lane 40   00000004 00000003 00000003 00000003 00000003 00000003 00000003 00000003"
    );
    let found_lanes = of_raw(
        &[0xbf80_0000, 0xbfb0_0000],
        WaveSize::Wave64,
        &["set v1 3", "lane 32", "set v1 4", "lane all", "p v1"],
    );
    // Lane 32 is the first of the other half, and not lane 0.
    let first: Vec<_> =
        found_lanes[4].lines().map(|row| row.split_whitespace().nth(2).unwrap_or("")).collect();
    let (three, four) = ("00000003", "00000004");
    assert_eq!(first, ["", three, three, three, three, four, three, three, three]);
    assert_eq!(
        rows[2],
        "  lane 8    00000003 00000003 00000003 00000003 00000003 00000003 00000003 00000003"
    );
    assert_eq!(found[7], "workgroup 0,0,0 wave 0  raw+0x4  s_endpgm\n");
}

/// Dwords at multiples of four bytes, narrower numbers at multiples of theirs; eight in a row.
#[test]
fn lds_is_printed_from_where_its_numbers_begin() {
    let found = of_double(&["lds 7 9", "lds 3 9 u16", "lds 15 9 f64", "lds 0", "lds 99999"]);
    let labels = |answer: &str| -> Vec<String> {
        answer.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let found_labels: Vec<Vec<String>> = found[..4].iter().map(|answer| labels(answer)).collect();
    assert_eq!(found_labels, [["+4", "+36"], ["+2", "+18"], ["+12", "+76"], ["+0", "+32"]]);
    assert_eq!(found[1].lines().map(|line| line.split_whitespace().count()).sum::<usize>(), 11, "{found:?}");
    assert!(found[4].starts_with("the workgroup has ") && found[4].ends_with(" bytes of LDS\n"), "{found:?}");
}

/// Words that are no instructions are listed one by one.
#[test]
fn a_list_goes_on_after_what_is_no_instruction() {
    let words = [0xbfb0_0000, 0xffff_ffff, 0xbf80_0000];
    let found = of_raw(&words, WaveSize::Wave32, &["list"]);
    let expected = "=> raw+0x0  s_endpgm\n   raw+0x4  .long 0xffffffff\n   raw+0x8  s_nop 0\n";
    assert!(found[0].starts_with(expected), "{found:?}");
    assert!(found[0].lines().count() <= 8, "{found:?}");
}

/// s_call_b64 s[4:5], to the second s_nop; s_nop 1; s_endpgm; s_nop 2; s_setpc_b64 s[4:5].
#[test]
fn calls_are_walked_into_left_and_stepped_over() {
    let words = [0xba04_0002, 0xbf80_0001, 0xbfb0_0000, 0xbf80_0002, 0xbe80_4804];
    let at = |offset: u32, text: &str| format!("workgroup 0,0,0 wave 0  raw+{offset:#x}  {text}\n");
    let inside = of_raw(&words, WaveSize::Wave32, &["step", "bt", "finish", "bt", "step"]);
    assert_eq!(inside[0], at(0xc, "s_nop 2"));
    assert_eq!(inside[1], "#0  raw+0xc\n#1  raw+0x0\n");
    assert_eq!(inside[2..4], [at(4, "s_nop 1"), "#0  raw+0x4\n".to_owned()]);
    assert_eq!(inside[4], at(8, "s_endpgm"));
    let over = of_raw(&words, WaveSize::Wave32, &["next", "next"]);
    assert_eq!(over, [at(4, "s_nop 1"), at(8, "s_endpgm")]);
    let last = of_raw(&words, WaveSize::Wave32, &["step 2", "next"]);
    assert_eq!(last, [at(0x10, "s_setpc_b64 s[4:5]"), at(4, "s_nop 1")]);
}

/// Wave 0 ends after a few instructions; wave 1 calls a function that counts down from 1024. The code, as llvm-mc 19
/// encodes it: the wave's number from ttmp8, a branch to four s_nop and s_endpgm if it is 0, else s_call_b64 s[4:5]
/// before them; the function at 0x28.
#[test]
fn after_the_end_of_a_wave_the_next_one_stops_where_it_is_met() {
    let words = [
        0x9300_ff74,
        0x0005_0019,
        0xbf06_8000,
        0xbfa2_0001,
        0xba04_0005,
        0xbf80_0000,
        0xbf80_0000,
        0xbf80_0000,
        0xbf80_0000,
        0xbfb0_0000,
        0xb001_0400,
        0x8081_8101,
        0xbf07_8001,
        0xbfa2_fffd,
        0xbe80_4804,
    ];
    let ends = "workgroup 0,0,0 wave 0  raw+0x24  s_endpgm\n";
    for command in ["step", "step 1000", "next"] {
        let commands = ["wave 0,0,0 0", "step 7", command, "bt"];
        let found = of_raw_waves(&words, WaveSize::Wave32, 2, &commands);
        assert_eq!(found[1], ends, "{command}: {found:?}");
        let told = "workgroup 0,0,0 wave 0 has ended\nfollowing workgroup 0,0,0 wave 1\n";
        assert!(found[2].starts_with(told), "{command}: {found:?}");
        assert!(found[3].ends_with("#1  raw+0x10\n"), "it is inside the function: {command}: {found:?}");
    }
}

/// s_call_b64 s[4:5], to the end; s_nop 0; s_endpgm. A wave that ends inside a function leaves no calls to the wave of
/// its name in the next launch.
#[test]
fn calls_end_with_their_wave() {
    let words = [0xba04_0001, 0xbf80_0000, 0xbfb0_0000];
    let found = of_raw_launches(&words, WaveSize::Wave32, 1, 2, &["step", "bt", "step", "bt", "step", "bt"]);
    let inside = "#0  raw+0x8\n#1  raw+0x0\n";
    assert_eq!([&found[1], &found[3], &found[5]], [inside, "#0  raw+0x0\n", inside], "{found:?}");
}

/// A function that calls itself one time more than calls are followed; as llvm-mc 19 encodes it: s_movk_i32 s1, 4098;
/// then s_sub_co_u32 s1, s1, 1; s_cmp_lg_u32 s1, 0; s_cbranch_scc0 to s_endpgm, which follows s_call_b64 s[4:5] to the
/// subtraction.
#[test]
fn calls_are_followed_to_their_limit() {
    let words = [0xb001_1002, 0x8081_8101, 0xbf07_8001, 0xbfa1_0001, 0xba04_fffc, 0xbfb0_0000];
    assert_eq!(calls::DEPTH_MAX, 4096);
    for (calls, lines) in [(4095, 4096), (4096, 4097), (4097, 4097)] {
        let mut words = words;
        words[0] = 0xb001_0000 | (calls + 1);
        let step = format!("step {}", 1 + 3 * (calls + 1) + calls);
        let found = of_raw(&words, WaveSize::Wave32, &[&step, "bt"]);
        assert_eq!(found[0], "workgroup 0,0,0 wave 0  raw+0x14  s_endpgm\n");
        assert_eq!(found[1].lines().count(), lines, "{calls} calls, and where the wave is");
    }
}

/// s_mov_b32 m0, 1; s_mov_b32 exec_hi, 3; s_mov_b32 vcc_hi, 2; s_nop 0; s_endpgm: the first two are no part of VCC.
#[test]
fn vcc_is_watched_alone() {
    let words = [0xbefd_0081, 0xbeff_0083, 0xbeeb_0082, 0xbf80_0000, 0xbfb0_0000];
    let found =
        of_raw(&words, WaveSize::Wave32, &["set vcc 0", "set m0 0", "watch vcc", "continue", "p vcc"]);
    assert!(found[3].contains("0x00000000 -> 0x00000002"), "{found:?}");
    assert_eq!(found[4], "vcc = 0x0000000200000000\n");
}

/// The same code: the instructions before and after the one that writes exec_hi write registers beside EXEC and far
/// from it, and stop nothing. EXEC has 64 bits in a wave32, too.
#[test]
fn exec_is_watched_alone() {
    let words = [0xbefd_0081, 0xbeff_0083, 0xbeeb_0082, 0xbf80_0000, 0xbfb0_0000];
    let found = of_raw(&words, WaveSize::Wave32, &["watch exec", "continue", "p exec", "continue"]);
    assert!(found[1].contains("0x00000000 -> 0x00000003"), "{found:?}");
    assert!(found[1].contains("raw+0x4"), "{found:?}");
    assert_eq!(found[2], "exec = 0x00000003ffffffff\n");
}

/// s_barrier_signal -1; s_barrier_wait -1; the same again; s_nop 0; s_endpgm, in two waves of 32 lanes: the second time
/// a wave waits for what the other does meanwhile. v0 is the lane's number in one and 32 more in the other.
#[test]
fn registers_of_a_wave_are_not_those_of_another() {
    let words = [0xbe80_4ec1, 0xbf94_ffff, 0xbe80_4ec1, 0xbf94_ffff, 0xbf80_0000, 0xbfb0_0000];
    let commands = ["wave 0,0,0 0", "watch v0", "b +0x14", "continue"];
    let found = of_raw_waves(&words, WaveSize::Wave32, 2, &commands);
    assert_eq!(found[3], "workgroup 0,0,0 wave 0  raw+0x14  s_endpgm\n", "{found:?}");
}
