//! `zrt chat`, and what `zrt generate` shares with it, as their users run them: on the CPU, and once on the virtual
//! device. The template is made here, so what the model is given can be written by hand.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::Folder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\
                        {% if add_generation_prompt %}assistant:{% endif %}";
/// How long a program may take to end after it was asked to.
const END_DEADLINE: Duration = Duration::from_secs(60);

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_zrt"))
        .args(arguments)
        .env_remove("ZRT_DEVICE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = start(arguments);
    // A program that ends before it has read everything is looked at by its output.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn template(folder: &Folder) -> String {
    let path = folder.path("template.jinja");
    std::fs::write(&path, TEMPLATE).unwrap();
    path
}

/// What the model says after `prompt`, by `zrt generate`; five tokens unless more are asked for.
fn continuation(prompt: &str, more: &[&str]) -> Json {
    let count: &[&str] = if more.contains(&"-n") { &[] } else { &["-n", "5"] };
    let arguments = ["generate", "--device", "cpu", "--prompt", prompt, "--json"];
    serde_json::from_str(&text(&run(&[&arguments[..], count, more].concat(), ""))).unwrap()
}

fn answer(prompt: &str, more: &[&str]) -> String {
    continuation(prompt, more)["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_piped_conversation_is_answered_turn_by_turn() {
    let folder = Folder::new("chat-piped");
    let saved = folder.path("saved.json");
    let template = template(&folder);
    let arguments = [
        "chat",
        "--device",
        "cpu",
        "--chat-template-file",
        &template,
        "-n",
        "5",
        "--temp",
        "0",
        "--system",
        "Be kind.",
    ];
    let input = format!("A fox\n\nAnd\\\nthen?\n/context\n/save {saved}\n/clear\nA fox\n/exit\nnever read\n");
    let output = run(&arguments, &input);
    let first = "system: Be kind.\nuser: A fox\nassistant:";
    let one = answer(first, &[]);
    let second = first.replace("assistant:", &format!("assistant: {one}\nuser: And\nthen?\nassistant:"));
    let two = answer(&second, &[]);
    assert_eq!(text(&output), format!("{one}\n{two}\n{one}\n"));
    let remarks = String::from_utf8(output.stderr).unwrap();
    assert!(!remarks.contains('\u{1b}') && !remarks.contains("> "), "{remarks}");
    assert!(remarks.contains("context ") && remarks.contains(" of 2048 tokens]"), "{remarks}");
    let saved: Json = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
    let expected = serde_json::json!([
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "A fox"},
        {"role": "assistant", "content": one},
        {"role": "user", "content": "And\nthen?"},
        {"role": "assistant", "content": two},
    ]);
    assert_eq!((&saved["version"], &saved["messages"]), (&Json::from(1), &expected));
}

#[test]
fn drawn_answers_are_the_same_on_the_virtual_device() {
    let folder = Folder::new("chat-virtual");
    let template = template(&folder);
    let on = |device: &str| {
        let arguments =
            ["chat", "--device", device, "--chat-template-file", &template, "-n", "4", "--seed", "7"];
        text(&run(&arguments, "Hello\n/regen\n"))
    };
    let found = on("cpu");
    assert_eq!((found.lines().count(), &found), (2, &on("virtual")));
}

/// A flat distribution, of which the seed, the first 40 and then 95 % decide.
#[test]
fn drawing_has_defaults() {
    let folder = Folder::new("chat-defaults");
    let template = template(&folder);
    let on = |more: &[&str]| {
        let arguments = ["chat", "--device", "cpu", "--chat-template-file", &template, "-n", "24"];
        text(&run(&[&arguments[..], more].concat(), "Hello\n"))
    };
    let found = on(&["--seed", "7", "--temp", "5"]);
    assert_eq!(found, on(&["--seed", "7", "--temp", "5", "--top-k", "40", "--top-p", "0.95"]));
    assert_ne!(found, on(&["--seed", "7", "--temp", "5", "--top-k", "0"]));
    assert_ne!(found, on(&["--seed", "7", "--temp", "5", "--top-p", "1"]));
    assert_eq!(on(&["--seed", "7"]), on(&["--seed", "7", "--temp", "0.8"]));
    assert_ne!(on(&["--temp", "5"]), on(&["--temp", "5"]), "the clock's seed");
}

#[test]
fn a_remark_says_how_an_answer_ended_and_how_much_it_took() {
    let folder = Folder::new("chat-remarks");
    let template = template(&folder);
    let on = |more: &[&str], input: &str| {
        let arguments = ["chat", "--device", "cpu", "--chat-template-file", &template, "--temp", "0"];
        let output = run(&[&arguments[..], more].concat(), input);
        (text(&output), String::from_utf8(output.stderr).unwrap())
    };
    let tokens = |prompt: &str| continuation(prompt, &[])["prompt_token_ids"].as_array().unwrap().len();
    let first = tokens("user: A fox\nassistant:");
    let (answers, remarks) = on(&["-n", "5"], "A fox\nAnd?\n");
    let one = answers.lines().next().unwrap();
    let second = tokens(&format!("user: A fox\nassistant: {one}\nuser: And?\nassistant:"));
    let told: Vec<&str> =
        remarks.lines().filter_map(|line| line.split_once(", in ")).map(|(told, _)| told).collect();
    let of = |prompt: usize| {
        format!("[--max-tokens is reached; context {} of 2048; prompt {prompt} tokens, ", prompt + 5)
    };
    assert_eq!(told[0], format!("{}{first} of them new", of(first)));
    // The processor keeps nothing of the first turn.
    assert_eq!(told[1], format!("{}{second} of them new", of(second)));
    // With a context of one more than the prompt there is a single token.
    for (context, count) in [(first + 1, 1), (first + 4, 4)] {
        let (_, remarks) = on(&["--context", &context.to_string()], "A fox\n");
        let told = format!("[the context is full; context {context} of {context}; prompt {first} tokens, ");
        assert!(remarks.contains(&told) && remarks.contains(&format!("then {count} at ")), "{remarks}");
    }
}

#[test]
fn input_that_is_no_text_ends_a_piped_conversation() {
    let folder = Folder::new("chat-bytes");
    let template = template(&folder);
    let mut child = start(&["chat", "--device", "cpu", "--chat-template-file", &template]);
    child.stdin.take().unwrap().write_all(b"\xff\n/context\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let remarks = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{remarks}");
    assert!(
        remarks.ends_with(
            "standard input cannot be read: a line is not UTF-8; check the path and its permissions\n"
        ),
        "{remarks}"
    );
}

#[test]
fn what_cannot_be_answered_is_one_sentence() {
    let folder = Folder::new("chat-refused");
    let good = template(&folder);
    let bad = folder.path("bad.jinja");
    let check = |template: Option<&str>, more: &[&str], code: i32, parts: &[&str]| {
        let file = template.map_or(Vec::new(), |path| vec!["--chat-template-file", path]);
        let output = run(&[&["chat", "--device", "cpu"], &file[..], more].concat(), "Hello there, you\n");
        let remarks = String::from_utf8(output.stderr).unwrap();
        let error = remarks.lines().last().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{remarks}");
        assert!(error.starts_with("error: ") && parts.iter().all(|part| error.contains(part)), "{error}");
    };
    check(None, &[], 1, &["has no chat template", "zrt generate", "--chat-template-file"]);
    check(Some(&good), &["--context", "8"], 1, &["the context of 8", "/clear", "--context"]);
    check(Some(&good), &["--context", "1"], 1, &["--context is 1"]);
    check(Some(&good), &["--context", "2"], 1, &["the context of 2"]);
    check(Some(&good), &["--top-p", "2"], 1, &["top-p 2"]);
    check(Some(&good), &["--stop", ""], 1, &["--stop", "empty"]);
    for (source, part) in [
        ("{% if %}", "line 1 of the chat template"),
        ("{{ raise_exception('Not today.') }}", "refuses this conversation: Not today."),
        ("{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}", "units of work"),
    ] {
        std::fs::write(&bad, source).unwrap();
        check(Some(&bad), &[], 1, &[part]);
    }
    let output = run(&["chat", "--device", "cpu", "--chat-template-file", &good], "/nothing\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/help"));
}

/// Waits for the end of a program that was asked to end.
fn ended(mut child: Child) -> Output {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > END_DEADLINE {
            child.kill().unwrap();
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn an_interrupt_stops_the_answer_and_keeps_it() {
    let folder = Folder::new("chat-interrupt");
    let template = template(&folder);
    let mut child = start(&["chat", "--device", "cpu", "--chat-template-file", &template, "--temp", "0"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"Tell me all about it\n").unwrap();
    let mut begin = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut begin).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let saved = folder.path("saved.json");
    input.write_all(format!("/save {saved}\n").as_bytes()).unwrap();
    drop(input);
    let output = ended(child);
    let remarks = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && remarks.contains("[stopped; context "), "{remarks}");
    let whole = [&begin[..], &output.stdout].concat();
    let saved: Json = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
    assert_eq!(format!("{}\n", saved["messages"][1]["content"].as_str().unwrap()).as_bytes(), whole);
}

#[test]
fn a_closed_pipe_ends_at_once() {
    let folder = Folder::new("chat-pipe");
    let template = template(&folder);
    for arguments in [
        &["chat", "--device", "cpu", "--chat-template-file", &template, "--temp", "0"][..],
        &["generate", "--device", "cpu", "--file", "-", "-n", "1500"],
    ] {
        let mut child = start(arguments);
        drop(child.stdout.take());
        child.stdin.take().unwrap().write_all(b"Tell me all about it\n").unwrap();
        let output = ended(child);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn generate_stops_at_texts_and_reads_files() {
    let folder = Folder::new("generate-stops");
    let whole = continuation("Once upon a time", &["-n", "9"]);
    let all = whole["text"].as_str().unwrap();
    assert_eq!(
        (whole["finish_reason"].as_str(), whole["token_ids"].as_array().unwrap().len()),
        (Some("length"), 9)
    );
    // From the middle of the text, across tokens.
    let (before, _) = all.split_at(all.len() / 2);
    let stop = &all[before.len()..all.len() - 2];
    let first = all.find(stop).unwrap();
    let stopped = continuation("Once upon a time", &["-n", "9", "--stop", "never there", "--stop", stop]);
    assert_eq!(
        (stopped["text"].as_str(), stopped["finish_reason"].as_str()),
        (Some(&all[..first]), Some("stop"))
    );
    let path = folder.path("prompt.txt");
    std::fs::write(&path, "Once upon a time\n").unwrap();
    let file = run(&["generate", "--device", "cpu", "-n", "5", "--json", "--file", &path], "");
    let input = run(&["generate", "--device", "cpu", "-n", "5", "--json", "-f", "-"], "Once upon a time\n");
    let expected = continuation("Once upon a time", &[]);
    for output in [file, input] {
        let found: Json = serde_json::from_str(&text(&output)).unwrap();
        assert_eq!((&found["prompt"], &found["token_ids"]), (&expected["prompt"], &expected["token_ids"]));
    }
}

#[test]
fn drawn_text_follows_its_seed() {
    let drawn =
        |seed: &str| continuation("Once upon a time", &["--temp", "1.5", "--top-k", "50", "--seed", seed]);
    let (one, again, other) = (drawn("1"), drawn("1"), drawn("2"));
    assert_eq!(one["token_ids"], again["token_ids"]);
    assert_ne!(one["token_ids"], other["token_ids"]);
    // With one candidate, drawing is greedy.
    let single = continuation("Once upon a time", &["--temp", "1", "--top-k", "1"]);
    assert_eq!(single["token_ids"], continuation("Once upon a time", &[])["token_ids"]);
}

#[test]
fn inspect_reads_a_header_alone() {
    let folder = Folder::new("inspect");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tales-qwen3-Q4_0.gguf");
    let inspect =
        |path: &str| -> Json { serde_json::from_str(&text(&run(&["inspect", path, "--json"], ""))).unwrap() };
    let whole = inspect(model);
    assert_eq!((&whole["version"], &whole["architecture"]), (&Json::from(1), &Json::from("qwen3")));
    assert_eq!((&whole["runs"]["runs"], &whole["missing_bytes"]), (&Json::from(true), &Json::from(0)));
    assert_eq!((&whole["tokenizer"]["tokens"], &whole["chat_template"]), (&Json::from(4096), &Json::Null));
    let bytes = std::fs::read(model).unwrap();
    let cut = folder.path("cut.gguf");
    std::fs::write(&cut, &bytes[..1_000_000]).unwrap();
    let part = inspect(&cut);
    assert_eq!(part["missing_bytes"], bytes.len() as u64 - 1_000_000);
    assert_eq!((&part["runs"]["runs"], &part["tensors"]), (&Json::from(false), &whole["tensors"]));
    assert!(part["runs"]["reason"].as_str().unwrap().contains("lacks"), "{}", part["runs"]);
    let shown = text(&run(&["inspect", model, "--tensors"], ""));
    assert!(shown.contains("model runs: yes") && shown.contains("blk.0.attn_q.weight"), "{shown}");
    std::fs::write(&cut, &bytes[..20_000]).unwrap();
    let output = run(&["inspect", &cut], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the file ends inside"));
}
