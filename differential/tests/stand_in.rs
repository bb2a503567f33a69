//! The program from its command line to its tables, with stand-ins for the compilers: scripts that give code objects
//! and results that the cases have made. Words of llvm-mc 22.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod object;

use object::{Needs, object};
use std::process::Command;
use zrt_differential::generate::{inputs, program};
use zrt_differential::text::source;
use zrt_needs::TemporaryFolder;

/// Inputs of each program.
const INPUTS: usize = 64;
/// Bytes of results, as `support/differential.h` has them: those of an item, and what items change together.
const OUT_BYTES_PER_ITEM: usize = 256;
const TOGETHER_BYTES: usize = 9 * 16 * 12 + 10 * 64 * 4;
/// What kernels find there.
const FILL: u8 = 0x5A;
/// Kernels of an object: as many as are compiled together at most.
const KERNELS: usize = 16;

/// Both compilers. They find other programs by the path that the case has. Paths are logged without their folders.
const COMPILER: &str = r#"
PATH=$REST
level= target= last= output= words=
name=${0##*/}
for word in "$@"; do
    words="$words ${word##*/}"
    case $word in -O?) level=$word ;; --target=*) target=device ;; esac
    [ "$last" = -o ] && output=$word
    last=$word
done
echo "$name$words" >> "$STAND/log"
if [ -e "$STAND/refuses-$name-${target:-host}" ]; then echo "no such type" >&2; exit 1; fi
code=$STAND/host
if [ "$target" ]; then code=$STAND/$name$level; [ -e "$code" ] || code=$STAND/right; fi
cp "$code" "$output"
"#;
/// The host's program: reads its inputs, and gives the results as often as its source has kernels.
const HOST: &str = r#"
PATH=$REST
cat > "$STAND/input"
for line in $(grep '^KERNEL(' "${0%/*}/host.c"); do cat "$STAND/results"; done
exit $(cat "$STAND/status")
"#;

/// Leaves everything as it is.
const RIGHT: &[u32] = &[0xBFB0_0000]; // s_endpgm
/// Each item stores 3 in its fourth result.
const WRONG: &[u32] = &[
    0xF400_2100,
    0xF800_0008, // s_load_b64 s[4:5], s[0:1], 0x8
    0x7E02_0283, // v_mov_b32_e32 v1, 3
    0x3004_0088, // v_lshlrev_b32_e32 v2, 8, v0
    0xBFC7_0000, // s_wait_kmcnt 0x0
    0xEE06_8004,
    0x0080_0000,
    0x0000_1802, // global_store_b32 v2, v1, s[4:5] offset:24
    0xBFB0_0000, // s_endpgm
];
/// The same with a register that nothing has written.
const UNWRITTEN: &[u32] = &[
    0xF400_2100,
    0xF800_0008, // s_load_b64 s[4:5], s[0:1], 0x8
    0x3004_0088, // v_lshlrev_b32_e32 v2, 8, v0
    0xBFC7_0000, // s_wait_kmcnt 0x0
    0xEE06_8004,
    0x0180_0000,
    0x0000_1802, // global_store_b32 v2, v3, s[4:5] offset:24
    0xBFB0_0000, // s_endpgm
];
/// Traps.
const FAULTS: &[u32] = &[0xBF90_0002, 0xBFB0_0000]; // s_trap 2, s_endpgm
/// Reads a scalar, writes it, and reads it, without the wait that only a compiler of today knows.
const UNAWARE: &[u32] = &[
    0xBE86_0080, // s_mov_b32 s6, 0
    0x7E02_0206, // v_mov_b32_e32 v1, s6
    0xBE86_0081, // s_mov_b32 s6, 1
    0x7E04_0206, // v_mov_b32_e32 v2, s6
    0xBFB0_0000, // s_endpgm
];
/// Each item stores zero, where there are zeros; then one wait that has nothing to wait for, and one that no wave
/// comes by.
const WAITING: &[u32] = &[
    0xF400_2100,
    0xF800_0008, // s_load_b64 s[4:5], s[0:1], 0x8
    0x7E02_0280, // v_mov_b32_e32 v1, 0
    0x8408_8E75, // s_lshl_b32 s8, ttmp9, 14
    0xD646_0002,
    0x0021_1100, // v_lshl_add_u32 v2, v0, 8, s8
    0xBFC7_0000, // s_wait_kmcnt 0x0
    0xEE06_8004,
    0x0080_0000,
    0x0000_0002, // global_store_b32 v2, v1, s[4:5]
    0xBFC0_0000, // s_wait_loadcnt 0x0
    0xBFA0_0001, // s_branch past the next one
    0xBFC6_0000, // s_wait_dscnt 0x0
    0xBFB0_0000, // s_endpgm
];

/// A folder with stand-ins.
struct Stand {
    folder: TemporaryFolder,
}

impl Stand {
    /// Compilers whose code is right.
    fn new(name: &str) -> Stand {
        let stand = Stand { folder: TemporaryFolder::new(name) };
        std::fs::create_dir(stand.folder.join("bin")).unwrap();
        stand.folder.program("bin/clang-19", COMPILER);
        stand.folder.program("bin/clang-22", COMPILER);
        stand.folder.program("host", HOST);
        stand.put("results", &results(INPUTS));
        stand.put("status", b"0");
        stand.code("right", RIGHT);
        stand
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap()
    }

    /// The code of one compiler at one level, as `clang-22-O1`.
    fn code(&self, of: &str, code: &[u32]) {
        self.put(of, &object(KERNELS, code, Needs::default()));
    }

    fn codes(&self, of: &[&str], code: &[u32]) {
        of.iter().for_each(|of| self.code(of, code));
    }

    /// The exit status, and what is printed.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt-differential"));
        command.args(arguments).args(["--jobs", "1"]).env("PATH", self.folder.join("bin"));
        command.env("REST", std::env::var_os("PATH").unwrap_or_default()).env("STAND", &*self.folder);
        let output = command.env("TMPDIR", &*self.folder).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), text)
    }

    /// The same of programs with few inputs; no argument has a blank in it.
    fn compare(&self, arguments: &str) -> (i32, String) {
        self.compare_with(arguments, &[])
    }

    /// The same with more arguments, of any kind.
    fn compare_with(&self, arguments: &str, more: &[&str]) -> (i32, String) {
        let inputs = INPUTS.to_string();
        let all = ["--inputs", &inputs].into_iter().chain(arguments.split(' ')).chain(more.iter().copied());
        self.run(&all.collect::<Vec<&str>>())
    }
}

/// What kernels find that leave everything as it is.
fn results(inputs: usize) -> Vec<u8> {
    [vec![0; inputs * OUT_BYTES_PER_ITEM], vec![FILL; TOGETHER_BYTES]].concat()
}

/// The table of a summary with these rows: build, programs, lanes, result.
fn table(rows: &[(&str, u32, u32, &str)]) -> String {
    let head = "| build            | programs | inputs | lanes | result |\n\
                | ---------------- | -------: | -----: | ----: | ------ |\n";
    let row = |(build, count, lanes, result): &(&str, u32, u32, &str)| {
        format!("| {build:16} | {count:>8} |     64 |    {lanes} | {result} |\n")
    };
    head.to_owned() + &rows.iter().map(row).collect::<String>()
}

/// The seed of a short program, of three steps, that is compiled at this level.
fn short(level: u64) -> u64 {
    (0..1000).find(|seed| seed % 4 == level && program(*seed).steps.len() == 3).unwrap()
}

#[test]
fn programs_of_a_build_are_compiled_together_and_get_their_inputs() {
    let stand = Stand::new("together");
    let (status, text) = stand.compare("--programs 9 --seed 5");
    let rows = [
        ("clang-22 -O0", 1, 32, "same results"),
        ("clang-22 -O0 -g", 1, 32, "same results"),
        ("clang-22 -O1", 1, 32, "same results"),
        ("clang-22 -O1 -g", 2, 32, "same results"),
        ("clang-22 -O2", 1, 32, "same results"),
        ("clang-22 -O2 -g", 1, 32, "same results"),
        ("clang-22 -O3", 1, 32, "same results"),
        ("clang-22 -O3 -g", 1, 32, "same results"),
    ];
    assert_eq!((status, text), (0, table(&rows) + "9 programs from seed 5: no failure\n"));
    // For the host, then for the device, a build at a time.
    assert_eq!(stand.read("log").lines().count(), 2 * rows.len());
    // The seeds of the last build, -O3 -g, are of one program.
    assert_eq!(std::fs::read(stand.folder.join("input")).unwrap(), inputs(7, INPUTS * 64));
}

#[test]
fn a_program_is_compiled_with_its_level_and_the_shape() {
    let stand = Stand::new("flags");
    assert_eq!(stand.compare("--programs 1 --seed 5 --wave 64").0, 0);
    assert_eq!(stand.compare("--programs 1 --seed 2 --clang 19").0, 0);
    let log = stand.read("log");
    let lines: Vec<&str> = log.lines().collect();
    let front = "-x c -std=gnu23 -w -ffp-contract=off -fno-strict-aliasing -fuse-ld=lld-22";
    let device = "--target=amdgcn-amd-amdhsa -mcpu=gfx1201 -nogpulib -ffreestanding";
    let sizes = |wave| format!("-DWAVE={wave} -DIN_BYTES=4096 -DITEMS=64");
    let [host_64, device_64, host_32, device_32] = lines[..] else { panic!("{log}") };
    assert_eq!(
        device_64,
        format!("clang-22 {front} {device} {} -o device device.c -O1 -g -mwavefrontsize64", sizes(64))
    );
    assert_eq!(device_32, format!("clang-19 {front} {device} {} -o device device.c -O2", sizes(32)));
    for (host, wave) in [(host_64, 64), (host_32, 32)] {
        assert!(host.starts_with(&format!("clang-22 {front} -O1 ")), "{host}");
        assert!(host.ends_with(&format!(" {} -o host host.c -lm", sizes(wave))), "{host}");
    }
}

/// Wrong results of clang 19 at one level, where it is right without optimisation and clang 22 is right at that level.
#[test]
fn results_that_only_one_compiler_has_are_set_aside_and_kept() {
    let stand = Stand::new("own");
    stand.code("clang-19-O1", WRONG);
    let kept = stand.folder.join("kept");
    let (status, text) =
        stand.compare_with("--programs 2 --seed 1 --clang both", &["--keep", kept.to_str().unwrap()]);
    let same = "same results";
    let rows = [
        ("clang-19 -O1", 1, 32, same),
        ("clang-19 -O2", 1, 32, same),
        ("clang-22 -O1", 1, 32, same),
        ("clang-22 -O2", 1, 32, same),
    ];
    let aside = "set aside: clang-19, 1 programs: wrong results, which neither its -O0 nor clang 22 gives\n\
                 set aside: seed 1, clang-19 -O1: taken for an error of the compiler; look at it\n\
                 2 programs from seed 1: no failure\n";
    assert_eq!((status, text), (0, table(&rows) + aside));
    let text = std::fs::read_to_string(kept.join("seed-1.c")).unwrap();
    assert_eq!(text, source(&[program(1)]));
    assert_eq!(std::fs::read_dir(kept).unwrap().count(), 2);
}

/// Where the unoptimised code or the other compiler's has them too, or the code faults, it may be the device.
#[test]
fn results_that_others_have_too_are_failures() {
    let of = |wrong: &[(&str, &[u32])], seed: u64| {
        let stand = Stand::new("failures");
        wrong.iter().for_each(|(name, code)| stand.code(name, code));
        let (status, text) = stand.compare(&format!("--programs 1 --seed {seed} --clang both --minimise 0"));
        let results = text.lines().filter_map(|line| line.strip_prefix("| clang-"));
        let result = |row: &str| row.split(" | ").last().unwrap().trim_end_matches(" |").to_owned();
        (status, results.map(result).collect::<Vec<String>>(), text.contains("set aside"))
    };
    let (same, different) = ("same results".to_owned(), "different results".to_owned());
    let fault = "fault: s_trap without a trap handler".to_owned();
    let one = (1, vec![different.clone(), same.clone()], false);
    assert_eq!(of(&[("clang-19-O1", WRONG), ("clang-19-O0", WRONG)], 1), one);
    assert_eq!(of(&[("clang-19-O0", WRONG)], 0), one);
    assert_eq!(of(&[("clang-19-O1", FAULTS)], 1), (1, vec![fault, same.clone()], false));
    let both = [("clang-19-O1", WRONG), ("clang-22-O1", WRONG)];
    assert_eq!(of(&both, 1), (1, vec![different.clone(); 2], false));
    assert_eq!(of(&[("clang-22-O1", WRONG)], 1), (1, vec![same, different], false));
}

#[test]
fn a_failure_is_told_with_the_words_of_its_input() {
    let stand = Stand::new("told");
    stand.code("clang-22-O3", WRONG);
    let (status, text) = stand.compare("--programs 4 --seed 1 --minimise 0");
    let words: String = inputs(3, 64)
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| format!(" {:08x}", u32::from_le_bytes(*word)))
        .collect();
    let expected = format!(
        "seed 3, clang-22 -O3\n  input 0: variable u32_3 is 0x3 on the device and 0x0 on the host; \
         64 results differ\n  words of input 0:{words}\n"
    );
    let rows = [
        ("clang-22 -O0 -g", 1, 32, "same results"),
        ("clang-22 -O1", 1, 32, "same results"),
        ("clang-22 -O2", 1, 32, "same results"),
        ("clang-22 -O3", 1, 32, "different results"),
    ];
    let end = "1 of 4 programs failed; the first again with: --programs 1 --seed 3\n";
    assert_eq!((status, text), (1, expected + &table(&rows) + end));
}

/// Of programs with different results as many as asked for; of faults and findings one of each kind.
#[test]
fn failures_are_made_smaller_as_far_as_asked_for() {
    let stand = Stand::new("smaller");
    let smaller = |level: u64, arguments: &str| {
        let (status, text) = stand.compare(&format!("--seed {} {arguments}", short(level)));
        assert_eq!(status, 1);
        let heads = text.lines().filter(|line| line.starts_with("seed "));
        heads
            .map(|line| line.contains(", made smaller from ") && line.ends_with(" to 0 nodes"))
            .collect::<Vec<bool>>()
    };
    stand.codes(&["clang-22-O0", "clang-22-O1", "clang-22-O2"], WRONG);
    assert_eq!(smaller(0, "--programs 3 --minimise 0"), [false, false, false]);
    assert_eq!(smaller(0, "--programs 3 --minimise 1"), [true, false, false]);
    assert_eq!(smaller(0, "--programs 2 --minimise 2"), [true, true]);
    stand.codes(&["clang-22-O0", "clang-22-O1", "clang-22-O2"], FAULTS);
    assert_eq!(smaller(1, "--programs 2 --minimise 0"), [false, false]);
    assert_eq!(smaller(1, "--programs 2 --minimise 3"), [true, false]);
}

#[test]
fn a_finding_is_a_failure_under_the_checking_mode_only() {
    let stand = Stand::new("finding");
    stand.code("clang-22-O1", UNWRITTEN);
    stand.put("results", &results(INPUTS));
    let (status, text) = stand.compare("--programs 2 --seed 1 --check --minimise 0");
    // The schedule decides which wave is the first.
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("    in workgroup")).collect();
    let finding = "finding: uninitialised: is read, but nothing has written it";
    let rows = table(&[("clang-22 -O1", 1, 32, finding), ("clang-22 -O2", 1, 32, "same results")]);
    let expected = format!(
        "seed 1, clang-22 -O1
  uninitialised: v3 is read, but nothing has written it
    at p0+0x410: global_store_b32 v2, v3, s[4:5] offset:24
    remedy: write it first
    2 time(s), seed 0
    results wrong; findings of this schedule: 1
{rows}1 of 2 programs failed; the first again with: --programs 1 --seed 1\n"
    );
    assert_eq!((status, lines.join("\n") + "\n"), (1, expected));
    let (status, text) = stand.compare("--programs 1 --seed 1 --minimise 0");
    assert!(status == 1 && text.contains("different results"), "{text}");
}

/// clang 19 is known to have them, clang 22 is not.
#[test]
fn a_finding_with_a_row_is_counted_and_set_aside() {
    let stand = Stand::new("aside");
    stand.code("right", UNAWARE);
    let (status, text) = stand.compare("--programs 2 --seed 1 --clang 19 --check --schedules 1");
    let rows = table(&[("clang-19 -O1", 1, 32, "same results"), ("clang-19 -O2", 1, 32, "same results")]);
    let end = "set aside: clang-19, 2 programs: the compiler knows no s_wait_alu\n\
               2 programs from seed 1: no failure\n";
    assert_eq!((status, text), (0, rows + end));
    let (status, text) = stand.compare("--programs 1 --seed 1 --check --schedules 1 --minimise 0");
    assert!(status == 1 && text.contains("| finding: hazard: the compiler does not know"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let stand = Stand::new("errors");
    let error = |text: &str| (2, format!("error: {text}\n"));
    stand.put("refuses-clang-22-device", b"");
    let text = "clang-22 (device) failed on the programs of seeds 0, 8; this is an error of the generator:\nno such type\n";
    assert_eq!(stand.compare("--programs 9 --seed 0"), error(text));
    stand.put("refuses-clang-22-host", b"");
    assert_eq!(stand.compare("--programs 9 --seed 0"), error(&text.replace("device", "host")));
    for name in ["device", "host"] {
        std::fs::remove_file(stand.folder.join(format!("refuses-clang-22-{name}"))).unwrap();
    }
    let bytes = results(INPUTS).len();
    stand.put("status", b"3");
    let text = |status, given| {
        format!(
            "the host program of seeds 1 ended with exit status: {status} after {given} of {bytes} bytes of results"
        )
    };
    assert_eq!(stand.compare("--programs 1"), error(&text(3, bytes)));
    stand.put("status", b"0");
    stand.put("results", &results(INPUTS)[1..]);
    assert_eq!(stand.compare("--programs 1"), error(&text(0, bytes - 1)));
    stand.put("results", &results(INPUTS));
    stand.put("right", b"no code");
    let (status, text) = stand.compare("--programs 1");
    assert!(
        status == 2 && text.starts_with("error: the code object of seeds 1 cannot be loaded: "),
        "{text}"
    );
    stand.put("right", &object(1, RIGHT, Needs::default()));
    let text = "the kernel of seed 9 cannot be launched: the code object has no kernel p1";
    assert_eq!(stand.compare("--programs 9 --seed 1"), error(text));
    std::fs::remove_file(stand.folder.join("bin/clang-19")).unwrap();
    let text = "clang-19 could not be started (No such file or directory (os error 2)); \
                install LLVM (packages clang-22, clang-19 and lld-22)";
    assert_eq!(stand.compare("--programs 1 --clang 19"), error(text));
}

/// Rows of the table of mutants, and what else is told.
fn told(text: &str) -> (Vec<&str>, Vec<&str>) {
    let lines = text.lines().filter(|line| !line.starts_with("| class ") && !line.starts_with("| ---"));
    lines.partition(|line| line.starts_with('|'))
}

#[test]
fn mutants_of_a_program_are_caught_or_explained() {
    let stand = Stand::new("mutants");
    stand.put("results", &results(256));
    stand.code("right", WAITING);
    let (status, text) = stand.run(&["--mutants", "8", "--seed", "1"]);
    let (rows, others) = told(&text);
    // Each of three waits is removed and raised; both accesses are moved.
    let expected = [
        "| wait removed       |       3 |      1 |      0 |      2 |",
        "| wait raised by one |       3 |      1 |      0 |      2 |",
        "| offset moved       |       2 |      2 |      0 |      0 |",
    ];
    assert_eq!((status, rows), (0, expected.into()), "{text}");
    let benign = [
        "benign: wait removed, 1: never executed",
        "benign: wait removed, 1: wait with nothing outstanding on this path",
        "benign: wait raised by one, 1: never executed",
        "benign: wait raised by one, 1: wait with nothing outstanding on this path",
    ];
    assert_eq!(others, benign);
    // With a table of lines, whatever the seed.
    let log = stand.read("log");
    assert!(log.lines().filter(|line| line.contains("--target")).all(|line| line.ends_with(" -g")), "{log}");
}

/// Eight mutants of each program, the rest of the last; programs in which waves meet, only.
#[test]
fn mutants_are_of_as_many_programs_as_they_need() {
    let stand = Stand::new("programs");
    stand.put("results", &results(256));
    stand.code("right", WAITING);
    let (status, text) = stand.run(&["--mutants", "18", "--seed", "7", "--schedules", "1"]);
    let (rows, _) = told(&text);
    let counts = rows.iter().map(|row| row.split('|').nth(2).unwrap().trim().parse::<u32>().unwrap());
    assert_eq!((status, counts.sum::<u32>()), (0, 18), "{text}");
    let log = stand.read("log");
    let of_device = log.lines().filter(|line| line.contains("--target"));
    let used = of_device.flat_map(|line| line.split(' ')).filter(|word| word.starts_with("-O"));
    // Waves do not meet in the program of seed 7; seeds 8, 9 and 10 are compiled at these levels.
    assert_eq!(used.collect::<std::collections::BTreeSet<&str>>(), ["-O0", "-O1", "-O2"].into());
}

#[test]
fn a_program_that_is_wrong_or_breaks_a_rule_has_no_mutants() {
    let stand = Stand::new("unfit");
    stand.put("results", &results(256));
    let of = |code: &[u32]| {
        stand.code("right", code);
        let (status, text) = stand.run(&["--mutants", "8", "--seed", "7", "--schedules", "1"]);
        assert_eq!((status, told(&text).0), (1, Vec::new()), "{text}");
        text.lines().next().unwrap().to_owned()
    };
    // Waves do not meet in the program of seed 7.
    let head = "seed 8 is no correct program: ";
    // Every group stores in the results of the first 64 items.
    let wrong =
        "schedule 0: input 0: variable u32_3 is 0x3 on the device and 0x0 on the host; 64 results differ";
    assert_eq!(of(WRONG), format!("{head}{wrong}"));
    assert!(of(FAULTS).starts_with(&format!("{head}schedule 0: it does not end: kind=wave ")));
    assert_eq!(
        of(UNAWARE),
        format!(
            "{head}hazard: the compiler does not know the scalar hazard of gfx1201: the code has no s_wait_alu"
        )
    );
}
