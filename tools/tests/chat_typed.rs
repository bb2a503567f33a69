//! `zrt chat` at a terminal: prompts, remarks, and errors that do not end what was said so far. What the model is given
//! is written by hand, and `zrt generate` says what it answers.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, tcgetattr, tcsetattr};
use serde_json::Value as Json;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use zrt_needs::TemporaryFolder;

/// Says "thinks" if the model is to think.
const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\
                        {% if enable_thinking %}thinks {% endif %}{% if add_generation_prompt %}assistant:{% endif %}";
/// How long a program may take to end after its last input.
const END_DEADLINE: Duration = Duration::from_secs(60);

/// A terminal that neither echoes nor changes what is written: the end of whoever types, and that of a program.
fn terminal() -> (File, File) {
    let typed = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&typed).unwrap();
    unlockpt(&typed).unwrap();
    let name = ptsname(&typed, Vec::new()).unwrap();
    let shown = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut modes = tcgetattr(&shown).unwrap();
    modes.local_modes.remove(LocalModes::ECHO);
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&shown, OptionalActions::Now, &modes).unwrap();
    (typed.into(), shown)
}

/// What a conversation at a terminal writes: its answers, and what else is on the screen.
fn typed(arguments: &[&str], environment: &[(&str, &str)], input: &[u8]) -> (String, String) {
    let (mut keyboard, shown) = terminal();
    let mut child = Command::new(env!("CARGO_BIN_EXE_zrt"))
        .args(["chat", "--device", "cpu"])
        .args(arguments)
        .env_remove("ZRT_DEVICE")
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .envs(environment.iter().copied())
        .stdin(shown.try_clone().unwrap())
        .stdout(Stdio::piped())
        .stderr(shown)
        .spawn()
        .unwrap();
    let mut screen = keyboard.try_clone().unwrap();
    // The last reading fails: the terminal has no other end any more.
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = screen.read_to_end(&mut bytes);
        bytes
    });
    keyboard.write_all(input).unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > END_DEADLINE {
            child.kill().unwrap();
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let screen = String::from_utf8(reader.join().unwrap()).unwrap();
    (String::from_utf8(output.stdout).unwrap(), without_erased(&screen))
}

/// Without lines that were erased: signs of life, as often as time passed.
fn without_erased(screen: &str) -> String {
    let mut pieces = screen.split("\r\u{1b}[2K").collect::<Vec<_>>();
    let last = pieces.pop().unwrap_or_default();
    let kept = |piece: &str| piece.rfind('\n').map_or(String::new(), |end| piece[..=end].to_owned());
    pieces.into_iter().map(kept).collect::<String>() + last
}

/// The tokens of a prompt, and the text that follows it.
fn continuation(prompt: &str) -> (usize, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_zrt"))
        .args(["generate", "--device", "cpu", "-n", "5", "--json", "--prompt", prompt])
        .output()
        .unwrap();
    let found: Json = serde_json::from_slice(&output.stdout).unwrap();
    (found["prompt_token_ids"].as_array().unwrap().len(), found["text"].as_str().unwrap().to_owned())
}

/// With a `#` for each number that has a point: times and speeds.
fn without_speeds(text: &str) -> String {
    let is_number = |word: &str| {
        let digits = word.trim_end_matches(',');
        digits.split_once('.').is_some_and(|(whole, rest)| {
            !whole.is_empty() && [whole, rest].iter().all(|part| part.bytes().all(|one| one.is_ascii_digit()))
        })
    };
    text.split(' ').map(|word| if is_number(word) { "#" } else { word }).collect::<Vec<_>>().join(" ")
}

#[test]
fn who_types_is_asked_line_by_line_and_told_what_is_wrong() {
    let folder = TemporaryFolder::new("chat-typed");
    let template = folder.join("template.jinja").display().to_string();
    std::fs::write(&template, TEMPLATE).unwrap();
    let saved = folder.join("no-such-folder/saved.json").display().to_string();
    let arguments = ["--chat-template-file", &template, "-n", "5", "--temp", "0"];
    let lines = [
        "\u{ff}",
        "/nothing",
        "/system",
        "/system Be kind.",
        "/system",
        "/context",
        "/think on",
        "A\\",
        "fox",
        "/context",
        "/think off",
        "/context",
        "/clear",
        "/context",
        "/regen",
        "/help",
        &format!("/save {saved}"),
        "/exit",
    ];
    // The first line is not UTF-8.
    let input: Vec<u8> = lines.join("\n").bytes().filter(|byte| *byte != 0xC3).chain(*b"\n").collect();
    let (answers, screen) = typed(&arguments, &[], &input);
    let (prompt, answer) = continuation("system: Be kind.\nuser: A\nfox\nthinks assistant:");
    assert_eq!(answers, format!("{answer}\n"));
    let told = format!("system: Be kind.\nuser: A\nfox\nassistant: {answer}\n");
    let (thinking, _) = continuation(&format!("{told}thinks "));
    let (thoughtless, _) = continuation(&told);
    assert!(thoughtless < thinking);
    let remark = |text: &str| format!("\u{1b}[2m[{text}]\u{1b}[0m\n");
    let ask = |text: &str| format!("\u{1b}[1m{text}\u{1b}[0m");
    let used = prompt + 5;
    let expected = [
        remark("qwen3 # M Q4_0 on cpu, context 2048; /help shows the commands"),
        remark("not sent: a line is not UTF-8"),
        remark("\"/nothing\" is no command; /help shows them, and // begins a message with a slash"),
        remark("there are no instructions"),
        remark("the instructions are set, and the conversation is forgotten"),
        remark("Be kind."),
        remark("context 0 of 2048 tokens"),
        remark("thinking is on"),
        ask("... ")
            + &remark(&format!(
                "--max-tokens is reached; context {used} of 2048; prompt {prompt} tokens, {prompt} of them new, in # s, \
                 then 5 at # t/s"
            )),
        remark(&format!("context {thinking} of 2048 tokens")),
        remark("thinking is off"),
        remark(&format!("context {thoughtless} of 2048 tokens")),
        remark("the conversation is forgotten"),
        remark("context 0 of 2048 tokens"),
        remark("there is no answer to give again"),
    ]
    .join(&ask("> "));
    let screen = without_speeds(&screen);
    let (start, rest) = screen.split_at(expected.len().min(screen.len()));
    assert_eq!(start, expected);
    let rest: Vec<&str> = rest.split(&ask("> ")).collect();
    assert!(rest[1].starts_with("/clear          forget the conversation"), "{}", rest[1]);
    assert!(rest[2].contains(&saved) && rest[2].contains("No such file"), "{}", rest[2]);
    assert_eq!((rest[0], rest[3], rest.len()), ("", "", 4));
}

/// The end of input is Ctrl-D.
#[test]
fn a_screen_without_colours_is_plain() {
    let folder = TemporaryFolder::new("chat-plain");
    let template = folder.join("template.jinja").display().to_string();
    std::fs::write(&template, TEMPLATE).unwrap();
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (_, screen) = typed(&["--chat-template-file", &template], &[environment], b"/system\n\x04");
        let expected = "[qwen3 # M Q4_0 on cpu, context 2048; /help shows the commands]\n\
                        > [there are no instructions]\n> ";
        assert_eq!(without_speeds(&screen), expected, "{environment:?}");
    }
    let (_, screen) = typed(&["--chat-template-file", &template], &[("NO_COLOR", "")], b"/exit\n");
    assert!(screen.ends_with("\u{1b}[1m> \u{1b}[0m"), "{screen:?}");
}
