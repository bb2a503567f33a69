//! `zrt step` as its users run it: commands on standard input, answers on standard output.
//!
//! The kernel is `double` of `loader/tests/data/double.s`: one wave loads a dword per lane, doubles it and stores it.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, compile_with, read_words};
use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

const PROMPT: &str = "(zrt) ";
/// Its instructions' places, and what llvm-mc 19 writes for them.
const LISTING: [&str; 8] = [
    "double+0x0  s_load_b64 s[0:1], s[0:1], 0x0",
    "double+0x8  v_lshlrev_b32_e32 v1, 2, v0",
    "double+0xc  s_wait_kmcnt 0x0",
    "double+0x10  global_load_b32 v2, v1, s[0:1]",
    "double+0x1c  s_wait_loadcnt 0x0",
    "double+0x20  v_lshlrev_b32_e32 v2, 1, v2",
    "double+0x24  global_store_b32 v1, v2, s[0:1]",
    "double+0x30  s_endpgm",
];

/// A running `zrt step` at its prompt.
struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    /// Starts it on `data`; also what it prints before the first prompt.
    fn start(folder: &Folder, data: &str) -> (Session, String) {
        Session::start_with(folder, data, &["--grid", "1,1,1"])
    }

    /// The same in another shape, or with more flags.
    fn start_with(folder: &Folder, data: &str, flags: &[&str]) -> (Session, String) {
        let object = folder.words("double.o", &DOUBLE_OBJECT);
        let argument = format!("inout:{data}");
        Session::open(&object, &[&["--block", "32,1,1", "--arg", &argument], flags].concat())
    }

    /// Starts it on a kernel.
    fn open(file: &str, flags: &[&str]) -> (Session, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
        command.args(["step", file]).args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut session = Session { child, input, output };
        let greeting = session.answer();
        (session, greeting)
    }

    /// Everything up to the next prompt.
    fn answer(&mut self) -> String {
        let mut text = Vec::new();
        while !text.ends_with(PROMPT.as_bytes()) {
            let mut byte = [0];
            let got = self.output.read(&mut byte).unwrap();
            assert_eq!(got, 1, "ended before a prompt, after {:?}", String::from_utf8_lossy(&text));
            text.push(byte[0]);
        }
        text.truncate(text.len() - PROMPT.len());
        String::from_utf8(text).unwrap()
    }

    fn ask(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        self.answer()
    }

    /// Ends the input; the rest of the output. The program must succeed.
    fn end(self) -> String {
        let Session { child, input, mut output } = self;
        drop(input);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        rest
    }
}

/// What a stop or `where` prints for an instruction of [`LISTING`].
fn place(index: usize) -> String {
    format!("workgroup 0,0,0 wave 0  {}\n", LISTING[index])
}

/// Rows of a printed vector register.
fn rows(values: &[u32]) -> String {
    let row = |(index, row): (usize, &[u32])| {
        let values: String = row.iter().map(|value| format!(" {value:08x}")).collect();
        format!("  lane {:<4}{values}\n", 8 * index)
    };
    values.chunks(8).enumerate().map(row).collect()
}

/// The value of a scalar register in the answer of `print`.
fn scalar(answer: &str, register: &str) -> u64 {
    let line = answer.lines().find_map(|line| line.strip_prefix(&format!("{register} = 0x"))).unwrap();
    u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap()
}

fn data() -> Vec<u32> {
    (0..32).map(|index| index * 1000 + 7).collect()
}

fn doubled() -> Vec<u32> {
    data().iter().map(|value| value * 2).collect()
}

#[test]
fn a_wave_is_walked_from_its_first_instruction_to_its_last() {
    let folder = Folder::new("step-walk");
    let file = folder.words("data", &data());
    let (mut session, greeting) = Session::start(&folder, &file);
    assert_eq!(greeting, place(0));
    assert_eq!(session.ask("where"), place(0));
    let list: Vec<String> = LISTING
        .iter()
        .zip(["=>"].into_iter().chain(["  "; 7]))
        .map(|(line, mark)| format!("{mark} {line}"))
        .collect();
    assert_eq!(session.ask("list").lines().collect::<Vec<_>>(), list);

    // At the start v0 is the work-item, s[0:1] the address of the arguments, and all lanes are on.
    let lanes: Vec<u32> = (0..32).collect();
    assert_eq!(session.ask("print v0"), format!("v0\n{}", rows(&lanes)));
    let exec = session.ask("print exec");
    assert!(exec.starts_with("exec = 0x") && exec.ends_with("ffffffff\n"), "{exec}");
    let pair = session.ask("print s[0:1]");
    assert_eq!(pair.lines().count(), 2, "{pair}");
    let arguments = scalar(&pair, "s1") << 32 | scalar(&pair, "s0");
    let words = session.ask(&format!("memory {arguments:#x} 2"));
    let words: Vec<&str> = words.split_once(':').unwrap().1.split_whitespace().collect();
    let [low, high] = words[..] else { panic!("{words:?}") };
    let buffer = u64::from_str_radix(&format!("{high}{low}"), 16).unwrap();

    assert_eq!(session.ask("step 2"), place(2));
    let shifted: Vec<u32> = lanes.iter().map(|lane| lane * 4).collect();
    assert_eq!(session.ask("print v1"), format!("v1\n{}", rows(&shifted)));
    assert_eq!(session.ask(""), place(3), "an empty line is one step");
    let pair = session.ask("print s[0:1]");
    assert_eq!(scalar(&pair, "s1") << 32 | scalar(&pair, "s0"), buffer, "the argument is loaded");

    assert_eq!(session.ask("break +0x24"), "break at double+0x24\n");
    assert_eq!(session.ask("continue"), place(6));
    assert_eq!(session.ask("print v2"), format!("v2\n{}", rows(&doubled())));
    let first = |answer: &str| answer.split_whitespace().nth(2).map(str::to_owned);
    let before = session.ask(&format!("memory {buffer:#x} 2"));
    assert_eq!(first(&before).as_deref(), Some("000003ef"), "1007 before the store: {before}");
    assert_eq!(session.ask("step"), place(7));
    let after = session.ask(&format!("memory {buffer:#x} 2"));
    assert_eq!(first(&after).as_deref(), Some("000007de"), "2014 after it: {after}");
    assert_eq!(read_words(&file), data(), "files are written at the end");

    assert_eq!(session.end(), "\nend of input: the kernel runs on\n");
    assert_eq!(read_words(&file), doubled());
}

#[test]
fn what_is_not_understood_is_answered_and_changes_nothing() {
    let folder = Folder::new("step-words");
    let file = folder.words("data", &data());
    let (mut session, _) = Session::start(&folder, &file);
    for (command, parts) in [
        ("jump", &["there is no command \"jump\"", "help"][..]),
        ("print q7", &["\"q7\" is not a register", "v[0:3]"]),
        ("print s106", &["\"s106\" is not a register"]),
        ("break", &["break needs an operand"]),
        ("break +x", &["\"x\" is not a number"]),
        ("step two", &["\"two\" is not a number"]),
        ("memory 0x10 4", &["0x10 is not mapped"]),
        ("lds 64", &["the workgroup has 0 bytes of LDS"]),
        ("break +0x34", &["kernel double has 0x34 bytes of code"]),
        ("break doubel+4", &["there is no function \"doubel\""]),
        ("break 12", &["no line table", "-g"]),
        ("memory other 4", &["\"other\" is not an argument with a buffer"]),
        ("memory data+0x80", &["data has 128 bytes"]),
        ("wave 1", &["there are 1,1,1 workgroups of 1 wave(s), each counted from 0"]),
        ("wave 0 1", &["there are 1,1,1 workgroups"]),
        ("lane 32", &["a wave has 32 lanes"]),
        ("print v0 f8", &["\"f8\" is not a type", "bf16"]),
        ("print v[0:2] f64", &["a 64-bit number takes two registers"]),
        ("finish", &["this is the kernel itself", "continue runs to its end"]),
        ("watch other", &["\"other\" is not an argument with a buffer"]),
        ("watch 0x10 4", &["0x10 is not mapped"]),
        ("watch data+0x7e", &["data has 128 bytes"]),
        ("unwatch 1", &["there is no watchpoint with that number"]),
        ("set v200 1", &["the wave has "]),
        ("set v1 0x100000000", &["a 64-bit number takes two registers"]),
        ("set scc 2", &["scc is 0 or 1"]),
        ("set data+0x80 1", &["data has 128 bytes"]),
        ("set 0x10 1", &["0x10 is not mapped for writing"]),
    ] {
        let answer = session.ask(command);
        assert_eq!(answer.lines().count(), 1, "{command}: {answer}");
        for part in parts {
            assert!(answer.contains(part), "{command}: {part:?} in {answer:?}");
        }
    }
    assert_eq!(session.ask("# a note"), "");
    let help = session.ask("help");
    let words = "step next finish continue break delete watch unwatch follow wave lane where backtrace list print \
                 registers set arguments memory lds detach";
    for word in words.split_whitespace() {
        assert!(help.lines().any(|line| line.starts_with(word)), "{word} in {help}");
    }
    assert_eq!(session.ask("where"), place(0));
    session.end();
    assert_eq!(read_words(&file), doubled());
}

#[test]
fn after_the_last_breakpoint_the_kernel_runs_to_its_end() {
    let folder = Folder::new("step-end");
    let file = folder.words("data", &data());
    let (mut session, _) = Session::start(&folder, &file);
    session.ask("break +0x10");
    session.ask("break +0x24");
    assert_eq!(session.ask("continue"), place(3));
    assert_eq!(session.ask("delete"), "");
    writeln!(session.input, "continue").unwrap();
    let last = "workgroup 0,0,0 wave 0 has ended\nno wave is left to follow: the kernel has ended\n";
    assert_eq!(session.end(), last, "no further stop");
    assert_eq!(read_words(&file), doubled());
}

/// Remaining commands are for the next wave, and a user with more commands than waves is told so.
#[test]
fn after_the_end_of_a_wave_the_next_one_is_followed() {
    let folder = Folder::new("step-next");
    let file = folder.words("data", &data());
    let (mut session, greeting) = Session::start_with(&folder, &file, &["--grid", "3"]);
    let name = |text: &str| text.split("  ").next().unwrap().to_owned();
    let mut waves = vec![name(&greeting)];
    for command in ["step 100", "break +0x20", "continue", "step 2", "step 2"] {
        let answer = session.ask(command);
        let Some((end, stop)) = answer.split_once(" has ended\nfollowing ") else { continue };
        assert_eq!(Some(end), waves.last().map(String::as_str), "{command}");
        let (next, place) = stop.split_once('\n').unwrap();
        assert_eq!(name(place), next, "{command}");
        waves.push(next.to_owned());
    }
    waves.sort();
    let all = ["workgroup 0,0,0 wave 0", "workgroup 1,0,0 wave 0", "workgroup 2,0,0 wave 0"];
    assert_eq!(waves, all, "each wave is followed in its turn");
    writeln!(session.input, "delete\ncontinue\nwhere").unwrap();
    let rest = session.end();
    assert!(rest.ends_with(" has ended\nno wave is left to follow: the kernel has ended\n"), "{rest}");
}

/// Somebody who thinks at the prompt does not lose the kernel.
#[test]
fn time_at_the_prompt_does_not_count() {
    let folder = Folder::new("step-time");
    let file = folder.words("data", &data());
    let (mut session, _) = Session::start_with(&folder, &file, &["--grid", "1", "--timeout", "1"]);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(session.ask("step"), place(1));
    session.end();
    assert_eq!(read_words(&file), doubled());
}

/// Values as numbers of a type, one lane of them, and memory by the names of arguments.
#[test]
fn values_are_printed_as_what_they_are() {
    let folder = Folder::new("step-values");
    let words: Vec<u32> = (0..32u32).map(|index| (index as f32 * 0.5).to_bits()).collect();
    let file = folder.words("data", &words);
    let (mut session, _) = Session::start(&folder, &file);
    session.ask("break double+0x20");
    assert_eq!(session.ask("continue"), place(5));
    let floats = session.ask("print v2 f32");
    assert!(floats.starts_with("v2\n  lane 0    0 0.5 1 1.5 2 2.5 3 3.5\n  lane 8    4 4.5 "), "{floats}");
    assert_eq!(session.ask("lane 3"), "");
    assert_eq!(session.ask("print v2 f32"), "v2 lane 3 = 0x3fc00000  1.5\n");
    assert_eq!(session.ask("print v2"), "v2 lane 3 = 0x3fc00000\n");
    assert_eq!(session.ask("print v2 i16"), "v2 lane 3 = 0x3fc00000  0,16320\n");
    // v1 is four times the lane.
    assert_eq!(session.ask("print v[1:2] u64"), "v[1:2] lane 3 = 0x3fc000000000000c  4593671619917905932\n");
    assert_eq!(session.ask("lane all"), "");
    assert!(session.ask("print v2").starts_with("v2\n  lane 0    00000000 3f000000 "));

    let arguments = session.ask("arguments");
    let va = arguments.strip_prefix("arg0 (data): 128 bytes at ").unwrap().trim_end().to_owned();
    let by_address = session.ask(&format!("memory {va} 2"));
    assert!(by_address.ends_with(": 00000000 3f000000\n"), "{by_address}");
    assert_eq!(session.ask("memory data 2"), by_address);
    assert_eq!(session.ask("memory arg0 2"), by_address);
    assert!(session.ask("memory data+0xc 3 f32").ends_with(": 1.5 2 2.5\n"));
    let end = session.ask("memory data+0x78 f32");
    assert!(end.ends_with(": 15 15.5\n") && end.lines().count() == 1, "as far as the buffer goes: {end}");
    let scalar_float = session.ask("print s[0:1] u64");
    assert!(
        scalar_float.contains(&format!("  {}\n", u64::from_str_radix(&va[2..], 16).unwrap())),
        "{scalar_float}"
    );
    session.end();
}

/// Any wave can be followed; the others run on, or have not begun.
#[test]
fn another_wave_is_followed_by_its_number() {
    let folder = Folder::new("step-wave");
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let file = folder.words("data", &[1; 64]);
    let argument = format!("inout:{file}");
    for (command, expected) in
        [("wave 2,0,0 1", "workgroup 2,0,0 wave 1"), ("wave 1", "workgroup 1,0,0 wave 0")]
    {
        let flags = ["--grid", "3", "--block", "64", "--arg", &argument, "--seed", "5"];
        let (mut session, greeting) = Session::open(&object, &flags);
        if greeting.starts_with(expected) {
            continue;
        }
        assert_eq!(session.ask(command), format!("{expected}  {}\n", LISTING[0]), "its first instruction");
        assert_eq!(session.ask("step"), format!("{expected}  {}\n", LISTING[1]));
        session.end();
    }
}

/// A change stops the wave after the instruction that made it.
#[test]
fn what_is_watched_stops_the_wave_when_it_changes() {
    let folder = Folder::new("step-watch");
    let file = folder.words("data", &data());
    let (mut session, _) = Session::start(&folder, &file);
    assert_eq!(session.ask("watch v2"), "watch 1: v2\n");
    assert_eq!(session.ask("watch data+0x4 4 u32"), "watch 2: data+0x4\n");
    assert_eq!(session.ask("watch exec"), "watch 3: exec\n");
    assert_eq!(session.ask("watch"), "watch 1: v2\nwatch 2: data+0x4\nwatch 3: exec\n");
    // The load gives v2 other values in all lanes, whatever it held; the shift doubles them.
    let load = session.ask("continue");
    assert!(load.starts_with("watch 1 (v2): lane 0: 0x"), "{load}");
    assert!(load.ends_with(&format!(", and 31 more, by {}\n{}", LISTING[3], place(4))), "{load}");
    let shift = session.ask("continue");
    let change = "watch 1 (v2): lane 0: 0x00000007 -> 0x0000000e, and 31 more";
    assert_eq!(shift, format!("{change}, by {}\n{}", LISTING[5], place(6)));
    let store = session.ask("continue");
    assert_eq!(store, format!("watch 2 (data+0x4): 1007 -> 2014, by {}\n{}", LISTING[6], place(7)));
    assert_eq!(session.ask("unwatch 3"), "");
    assert_eq!(session.ask("unwatch 2"), "");
    assert_eq!(session.ask("watch"), "watch 1: v2\n");
    writeln!(session.input, "continue").unwrap();
    let rest = session.end();
    assert!(rest.starts_with("watch 1 (v2) ends with its wave\n"), "{rest}");
    assert_eq!(read_words(&file), doubled());
}

/// Memory that another wave writes: the wave's name is reported, and the wave that has stopped is followed.
#[test]
fn a_write_of_another_wave_is_told() {
    let folder = Folder::new("step-watch-other");
    let file = folder.words("data", &[1; 64]);
    // Both waves of both groups: the second wave doubles the second half of the buffer.
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let argument = format!("inout:{file}");
    let (mut session, greeting) =
        Session::open(&object, &["--grid", "1", "--block", "64", "--arg", &argument, "--seed", "3"]);
    let (other, at) = if greeting.starts_with("workgroup 0,0,0 wave 0") { (1, 0x80) } else { (0, 0) };
    session.ask(&format!("watch data+{at:#x} 4"));
    // The wave that was followed may end before.
    let text = session.ask("continue");
    let (name, store) = (format!("workgroup 0,0,0 wave {other}"), LISTING[6]);
    let change = format!("watch 1 (data+{at:#x}): 0x00000001 -> 0x00000002, by {name} at {store}\n");
    assert!(text.contains(&format!("{change}following {name}\n{name}  {}\n", LISTING[7])), "{text}");
    session.end();
    assert_eq!(read_words(&file), [2; 64]);
}

/// What is set in one wave is not a change of what is watched in another, which waits at a barrier meanwhile.
#[test]
fn setting_one_wave_changes_nothing_in_others() {
    let folder = Folder::new("step-watch-set");
    let source = "kernel void turns(global uint *data) {
        uint i = __builtin_amdgcn_workitem_id_x();
        uint x = data[i];
        __builtin_amdgcn_s_barrier();
        data[i] = x * 2;
    }";
    let Some(object) = compile_with(&folder, source, &["-mcpu=gfx1201", "-O2"]) else { return };
    for seed in ["0", "1", "2", "3"] {
        let file = folder.words("data", &[1; 64]);
        let argument = format!("inout:{file}");
        let (mut session, greeting) =
            Session::open(&object, &["--grid", "1", "--block", "64", "--arg", &argument, "--seed", seed]);
        let (here, other) = if greeting.starts_with("workgroup 0,0,0 wave 0") { (0, 1) } else { (1, 0) };
        // Nothing writes s20.
        session.ask("watch s20");
        let there = session.ask(&format!("wave 0,0,0 {other}"));
        assert!(there.starts_with(&format!("workgroup 0,0,0 wave {other}  turns+0x0 ")), "{there}");
        assert_eq!(session.ask("set s9 1"), "");
        let back = session.ask(&format!("wave 0,0,0 {here}"));
        assert!(back.starts_with(&format!("workgroup 0,0,0 wave {here}  turns+0x")), "seed {seed}: {back}");
        session.end();
        assert_eq!(read_words(&file), [2; 64]);
    }
}

/// The kernel continues with what was set.
#[test]
fn registers_and_memory_are_set() {
    let folder = Folder::new("step-set");
    let file = folder.words("data", &data());
    let (mut session, _) = Session::start(&folder, &file);
    // Before the load: the first dword. Before the store: v2 in one lane, and then two lanes off.
    assert_eq!(session.ask("set data 500"), "");
    session.ask("break +0x24");
    assert_eq!(session.ask("continue"), place(6));
    session.ask("lane 3");
    assert_eq!(session.ask("set v2 = 1.5f32"), "");
    assert_eq!(session.ask("print v2 f32"), "v2 lane 3 = 0x3fc00000  1.5\n");
    session.ask("lane all");
    assert_eq!(session.ask("set exec 0xfffffffc"), "");
    assert_eq!(session.ask("print exec"), "exec = 0x00000000fffffffc\n");
    assert_eq!(session.ask("set s9 i32 -2"), "");
    assert_eq!(session.ask("print s9"), "s9 = 0xfffffffe  4294967294\n");
    assert_eq!(session.ask("set s[10:11] 1f64"), "");
    assert_eq!(session.ask("print s[10:11] f64"), "s[10:11] = 0x3ff0000000000000  1\n");
    assert_eq!(session.ask("set scc 1"), "");
    let state = session.ask("registers");
    assert!(state.starts_with("exec = 0x00000000fffffffc  vcc = 0x"), "{state}");
    assert!(state.contains("  scc = 1  m0 = 0x") && state.contains("\n  s8    "), "{state}");
    let row = state.lines().find(|line| line.starts_with("  s8 ")).unwrap();
    assert!(row.contains(" fffffffe 00000000 3ff00000 "), "{row}");
    assert!(state.trim_end().lines().last().unwrap().contains(" vector registers: "), "{state}");
    assert!(session.ask("registers all").contains(&format!("v0\n{}", rows(&(0..32).collect::<Vec<_>>()))));
    // Setting what is watched is not a change.
    session.ask("watch v1");
    assert_eq!(session.ask("set v1 v"), "\"v\" is not a number that fits\n");
    session.end();
    let mut expected = doubled();
    (expected[0], expected[1], expected[3]) = (500, 1007, 1.5f32.to_bits());
    assert_eq!(read_words(&file), expected);
}

const CALLS: &str = "uint inner(uint x) __attribute__((noinline));
uint inner(uint x) {
    return x * 3 + 1;
}
uint outer(uint x) __attribute__((noinline));
uint outer(uint x) {
    uint y = inner(x);
    return inner(y) ^ x;
}
kernel void one(global uint *data) {
    uint i = __builtin_amdgcn_workitem_id_x();
    data[i] = outer(data[i]) + 7;
}
";

/// Calls are stepped over, and left.
#[test]
fn calls_are_followed_to_their_return() {
    let folder = Folder::new("step-calls");
    let Some(object) = compile_with(&folder, CALLS, &["-mcpu=gfx1201", "-O1", "-g"]) else { return };
    let data = format!("inout:{}", folder.words("data", &[5; 32]));
    let (mut session, _) = Session::open(&object, &["--grid", "1", "--block", "32", "--arg", &data]);
    session.ask("break inner");
    assert!(session.ask("continue").contains("  inner+0x0  "));
    let trace = session.ask("backtrace");
    let frames: Vec<&str> = trace.lines().map(|line| line.split("  ").nth(1).unwrap()).collect();
    let functions: Vec<&str> = frames.iter().map(|frame| frame.split('+').next().unwrap()).collect();
    assert_eq!(functions, ["inner", "outer", "one"], "{trace}");
    assert!(trace.lines().nth(1).unwrap().ends_with("kernel.cl:7  uint y = inner(x);"), "{trace}");
    session.ask("delete");
    // After the call of `inner`, then of `outer`; a call is 4 bytes.
    let behind = |frame: &str| {
        let (function, offset) = frame.split_once("+0x").unwrap();
        format!("  {function}+{:#x}  ", u64::from_str_radix(offset, 16).unwrap() + 4)
    };
    let stop = session.ask("finish");
    assert!(stop.contains(&behind(frames[1])), "{stop}");
    // `next` steps over the second call of `inner`, never into it, up to the return.
    let mut called = false;
    loop {
        let stop = session.ask("next");
        assert!(stop.contains("  outer+0x") || stop.contains("  one+0x"), "{stop}");
        called |= stop.contains("s_swappc_b64");
        if stop.contains("  one+0x") {
            assert!(stop.contains(&behind(frames[2])), "{stop}");
            break;
        }
    }
    assert!(called, "the second call was stepped over");
    assert_eq!(session.ask("backtrace").lines().count(), 1);
    assert!(session.ask("finish").starts_with("this is the kernel itself"));
    session.end();
    let expected = ((5 * 3 + 1) * 3 + 1) ^ 5;
    assert_eq!(read_words(&folder.path("data")), [expected + 7; 32]);
}

const LINES: &str = "uint twice(uint x) __attribute__((noinline));
uint twice(uint x) {
    return x + x;
}
kernel void one(global uint *data) {
    uint i = __builtin_amdgcn_workitem_id_x();
    uint x = data[i];
    data[i] = twice(x);
}
";

/// Lines of a file by its name or the end of its path, and functions by theirs.
#[test]
fn lines_and_functions_are_places_to_stop() {
    let folder = Folder::new("step-lines");
    let Some(object) = compile_with(&folder, LINES, &["-mcpu=gfx1201", "-O1", "-g"]) else { return };
    let data = format!("inout:{}", folder.words("data", &[21; 32]));
    let start = || Session::open(&object, &["--grid", "1", "--block", "32", "--arg", &data]).0;
    for (command, told) in [
        ("break kernel.cl:7", "break at kernel.cl:7\n"),
        ("break step-lines/kernel.cl:7", "break at step-lines/kernel.cl:7\n"),
        ("break 7", "break at line 7\n"),
    ] {
        let mut session = start();
        assert_eq!(session.ask(command), told);
        let stop = session.ask("continue");
        assert!(stop.contains("  one+0x") && stop.ends_with("kernel.cl:7  uint x = data[i];\n"), "{stop}");
        let list = session.ask("list");
        assert!(
            list.starts_with("   ; ") && list.contains("kernel.cl:7  uint x = data[i];\n=> one+0x"),
            "{list}"
        );
        session.end();
    }
    let mut session = start();
    for (command, told) in [
        ("break other.cl:7", "no code comes from other.cl:7\n"),
        ("break ernel.cl:7", "no code comes from ernel.cl:7\n"),
        ("break 1000", "no code comes from line 1000\n"),
    ] {
        assert_eq!(session.ask(command), told);
    }
    assert_eq!(session.ask("break twice"), "break at twice+0x0\n");
    let stop = session.ask("continue");
    assert!(stop.contains("  twice+0x0  "), "{stop}");
    session.end();
    // It ran over the same file four times.
    assert_eq!(read_words(&folder.path("data")), [21 * 2 * 2 * 2 * 2; 32]);
}

/// The run stops before the instruction that shows the finding, in the wave that does, at the time at which it does.
#[test]
fn a_finding_of_a_seed_is_walked_to() {
    let folder = Folder::new("step-finding");
    let mut object = DOUBLE_OBJECT;
    // The wait for the load is an s_nop.
    object[0x47] = 0xBF80_0000;
    let wrong = folder.words("wrong.o", &object);
    let data = format!("inout:{}", folder.words("data", &[1; 64]));
    for seed in ["0", "5"] {
        let flags = ["--grid", "3", "--block", "64", "--arg", &data, "--seed", seed];
        let (session, greeting) = Session::open(&wrong, &[&flags[..], &["--finding"]].concat());
        let (finding, stop) = greeting.split_once("\n\n").unwrap();
        assert!(finding.starts_with("finding 1 of ") && finding.contains("at double+0x20: "), "{greeting}");
        let place = finding.lines().find_map(|line| line.trim().strip_prefix("in ")).unwrap();
        let wave = place.split(" lane ").next().unwrap().split(',').take(3).collect::<Vec<_>>().join(",");
        assert_eq!(stop, format!("{wave}  {}\n", LISTING[5]), "{greeting}");
        session.end();
    }
    let right = folder.words("right.o", &DOUBLE_OBJECT);
    for (file, number) in [(&right, "1"), (&wrong, "0"), (&wrong, "99")] {
        let flags = ["step", file, "--grid", "1", "--block", "32", "--arg", &data, "--finding", number];
        let output =
            Command::new(env!("CARGO_BIN_EXE_zrt")).args(flags).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("--finding is {number}, but seed 0 shows ")), "{text}");
    }
}

#[test]
fn bad_input_is_refused_before_the_first_prompt() {
    let output = Command::new(env!("CARGO_BIN_EXE_zrt"))
        .args(["step", "absent.co", "--grid", "1", "--block", "32"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8(output.stderr).unwrap().contains("absent.co cannot be read"));
}
