//! `zrt step` as its users run it: commands on standard input, answers on standard output.
//!
//! The kernel is `double` of `loader/tests/data/double.s`: one wave loads a dword per lane, doubles it and stores it.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, read_words};
use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

const PROMPT: &str = "(zrt) ";
/// Where its instructions stand, and what llvm-mc 19 writes for them.
const LISTING: [&str; 8] = [
    "+0x0000  s_load_b64 s[0:1], s[0:1], 0x0",
    "+0x0008  v_lshlrev_b32_e32 v1, 2, v0",
    "+0x000c  s_wait_kmcnt 0x0",
    "+0x0010  global_load_b32 v2, v1, s[0:1]",
    "+0x001c  s_wait_loadcnt 0x0",
    "+0x0020  v_lshlrev_b32_e32 v2, 1, v2",
    "+0x0024  global_store_b32 v1, v2, s[0:1]",
    "+0x0030  s_endpgm",
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
        command.args(["step", &object, "--block", "32,1,1"]).args(flags);
        command.args(["--arg", &format!("inout:{data}")]);
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

    assert_eq!(session.ask("break +0x24"), "break at +0x24\n");
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
        ("print q7", &["\"q7\" is no register", "v[0:3]"]),
        ("print s106", &["\"s106\" is no register"]),
        ("break", &["break wants something after it"]),
        ("break +x", &["\"x\" is no number"]),
        ("step two", &["\"two\" is no number"]),
        ("memory 0x10 4", &["0x10 is not mapped"]),
        ("lds 64", &["the workgroup has 0 bytes of LDS"]),
    ] {
        let answer = session.ask(command);
        assert_eq!(answer.lines().count(), 1, "{command}: {answer}");
        for part in parts {
            assert!(answer.contains(part), "{command}: {part:?} in {answer:?}");
        }
    }
    assert_eq!(session.ask("# a note"), "");
    let help = session.ask("help");
    for word in ["step", "continue", "break", "follow", "where", "list", "print", "memory", "lds", "detach"] {
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

/// Commands that are left are for the wave that comes next, and whoever has more than there are waves is told.
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
