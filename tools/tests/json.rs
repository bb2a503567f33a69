//! `zrt launch --json` and `zrt run --json` as programs read them: one document whatever happens, in the form of
//! `docs/launch.schema.json` and `docs/run.schema.json`.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod json_schema;
mod kernel_files;

use json_schema::trouble;
use kernel_files::{DOUBLE_OBJECT, Folder};
use serde_json::{Value as Json, json};
use std::process::Command;

const SCHEMA: &str = include_str!("../../docs/launch.schema.json");
const RUN_SCHEMA: &str = include_str!("../../docs/run.schema.json");

/// Runs `zrt launch` with `--json`; returns its document, which must fit the schema.
#[track_caller]
fn document(arguments: &[&str], code: i32) -> Json {
    document_of(&["launch"], SCHEMA, arguments, code)
}

/// The same for any subcommand.
#[track_caller]
fn document_of(subcommand: &[&str], schema: &str, arguments: &[&str], code: i32) -> Json {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    let output = command
        .args([subcommand, arguments, &["--json"]].concat())
        .env("ZRT_DEVICE", "virtual")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    // One document and nothing else: the parser refuses what follows.
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    let schema: Json = serde_json::from_str(schema).unwrap();
    assert_eq!(trouble(&schema, &schema, &document, "document"), None, "{document}");
    let message = document["error"]["message"].as_str().unwrap_or_default();
    if !errors.is_empty() {
        assert!(errors.split_whitespace().collect::<Vec<_>>().join(" ").contains(message), "{errors}");
        assert!(!message.is_empty(), "{errors}");
    }
    document
}

/// `double` with a word of its object changed, and one wave of it.
fn double(folder: &Folder, change: Option<(usize, u32)>) -> String {
    let mut object = DOUBLE_OBJECT;
    if let Some((at, word)) = change {
        object[at] = word;
    }
    folder.words("double.o", &object)
}

const ONE_WAVE: [&str; 4] = ["--grid", "1", "--block", "32"];
/// A load from 4 bytes before the buffer; `s_nop 0` instead of the wait for it.
const BEFORE: (usize, u32) = (0x46, 0xFFFF_FC01);
const NO_WAIT: (usize, u32) = (0x47, 0xBF80_0000);

#[test]
fn results_have_the_form_of_the_schema() {
    let folder = Folder::new("json-results");
    let data = format!("inout:{}", folder.words("data", &[7; 32]));
    let object = double(&folder, None);
    let right = document(&[&[object.as_str(), "--arg", &data, "--profile"], &ONE_WAVE[..]].concat(), 0);
    assert_eq!((&right["version"], &right["error"]), (&json!(1), &Json::Null));
    assert!(right["profile"]["opcodes"].is_object() && right["outputs"][0]["path"].is_string(), "{right}");
    let object = double(&folder, Some(NO_WAIT));
    let wrong = document(&[&[object.as_str(), "--arg", &data, "--seeds", "2"], &ONE_WAVE[..]].concat(), 1);
    assert_eq!(wrong["error"], Json::Null, "a finding is a result: {wrong}");
    assert_eq!(wrong["findings"][0]["place"]["offset"], 0x20, "{wrong}");
}

#[test]
fn an_error_is_a_document_too() {
    let folder = Folder::new("json-errors");
    let data = format!("inout:{}", folder.words("data", &[7; 32]));
    let object = double(&folder, Some(BEFORE));
    let launch = [&[object.as_str(), "--arg", &data], &ONE_WAVE[..]].concat();
    for (arguments, part) in [
        (vec![], "required arguments were not provided"),
        (vec![object.as_str(), "--grid"], "--grid"),
        ([&launch[..], &["--colour"]].concat(), "--colour"),
        ([&launch[..], &["--lds", "x"]].concat(), "--lds is \"x\""),
        (vec!["absent.co", "--grid", "1", "--block", "1"], "absent.co cannot be read"),
        ([&launch[..], &["--check", "--device", "kfd"]].concat(), "--device kfd"),
    ] {
        let refused = document(&arguments, 2);
        let error = &refused["error"];
        assert_eq!((&error["kind"], &error["fault"]), (&json!("input"), &Json::Null), "{refused}");
        assert!(error["message"].as_str().unwrap().contains(part), "{part}: {refused}");
        assert_eq!(refused.as_object().unwrap().len(), 2, "{refused}");
    }

    let fault_of = |report: &Json| {
        let error = &report["error"];
        assert_eq!((&error["kind"], &error["exit_code"]), (&json!("failure"), &json!(1)), "{report}");
        error["fault"].clone()
    };
    let stopped = document(&launch, 1);
    let fault = fault_of(&stopped);
    assert_eq!(fault["instruction"], "global_load_b32 v2, v1, s[0:1] offset:-4");
    assert_eq!((&fault["place"]["kernel"], &fault["place"]["offset"]), (&json!("double"), &json!(0x10)));
    assert!(fault["what"].as_str().unwrap().contains("4 bytes before the beginning of argument 0 (data)"));
    assert!(fault["address"].is_u64() && stopped.get("findings").is_none(), "{stopped}");
    let checked = document(&[&launch[..], &["--check"]].concat(), 1);
    assert_eq!(fault_of(&checked)["instruction"], fault["instruction"]);
    assert_eq!((&checked["failed_seed"], &checked["device"]), (&json!(0), &Json::Null));
    assert_eq!(checked["findings"].as_array().unwrap().len(), 1, "{checked}");
}

/// The document was there before the files could not be written: it is still one.
#[test]
fn files_that_cannot_be_written_are_told_in_the_document() {
    let folder = Folder::new("json-unwritten");
    let object = double(&folder, None);
    // No name is longer than 255 bytes, and the temporary one is longer than this.
    let output = format!("out:128:{}", folder.path(&"x".repeat(250)));
    let report = document(&[&[object.as_str(), "--arg", &output], &ONE_WAVE[..]].concat(), 1);
    assert!(report["error"]["message"].as_str().unwrap().contains("cannot be written"), "{report}");
    assert_eq!(report["kernel"], "double");
}

/// The judge finds what is wrong: a schema that everything fits would show nothing.
#[test]
fn the_schema_refuses_other_forms() {
    let folder = Folder::new("json-judge");
    let data = format!("inout:{}", folder.words("data", &[7; 32]));
    let object = double(&folder, Some(NO_WAIT));
    let right = document(&[&[object.as_str(), "--arg", &data, "--check"], &ONE_WAVE[..]].concat(), 1);
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    for (pointer, value) in [
        ("/version", json!(2)),
        ("/findings/0/rule", json!("other")),
        ("/findings/0/count", json!(0)),
        ("/findings/0/place/offset", json!(-1)),
        ("/findings/0/place/source", json!(["k.c"])),
        ("/findings/0/workgroup", json!([0, 0])),
        ("/error", json!({"message": "m"})),
        ("/outputs/0", json!({"argument": 0, "path": "p", "bytes": 1, "more": 1})),
        ("/unexpected", json!([1])),
    ] {
        let mut wrong = right.clone();
        *wrong.pointer_mut(pointer).unwrap() = value;
        assert!(trouble(&schema, &schema, &wrong, "document").is_some(), "{pointer}");
    }
    let mut wrong = right;
    wrong.as_object_mut().unwrap().remove("kernel");
    assert!(trouble(&schema, &schema, &wrong, "document").is_some());
}

/// A script's documents: a result, one with a dump and a finding in a turn of a loop, a fault, and a script that is
/// wrong.
#[test]
fn scripts_have_documents_too() {
    let folder = Folder::new("json-run");
    folder.words("data", &[7; 32]);
    double(&folder, Some(NO_WAIT));
    folder.words("before.o", &{
        let mut object = DOUBLE_OBJECT;
        object[BEFORE.0] = BEFORE.1;
        object
    });
    let script = |name: &str, text: &str| {
        let launch = "launch = { file = \"FILE\", grid = 1, block = 32, args = [\"buffer:data\"] }";
        let text = text.replace("LAUNCH", launch).replace("FILE", name);
        folder.write("script.toml", format!("[buffers]\ndata = \"inout:data\"\n{text}").as_bytes())
    };
    let run = |path: &str, flags: &[&str], code| {
        document_of(&["run"], RUN_SCHEMA, &[&[path], flags].concat(), code)
    };
    let looped = "[[step]]\nrepeat.times = 2\n[[step.repeat.steps]]\nLAUNCH\n";
    let path =
        script("double.o", &format!("{looped}[[step]]\ndump = {{ buffer = \"data\", file = \"d\" }}\n"));
    let wrong = run(&path, &["--check", "--profile"], 1);
    assert_eq!(wrong["findings"][0]["step"], json!({"step": "1.1", "line": 5, "turns": [0]}), "{wrong}");
    assert_eq!(wrong["outputs"][0]["step"]["step"], "2", "{wrong}");
    assert_eq!((&wrong["outputs"][1]["step"], &wrong["script"]), (&Json::Null, &json!(path)));
    let stopped = run(&script("before.o", looped), &["--check"], 1);
    assert_eq!((&stopped["device"], &stopped["failed_seed"]), (&Json::Null, &json!(0)));
    assert!(stopped["error"]["fault"]["place"]["offset"].is_u64(), "{stopped}");
    let refused = run(&script("double.o", "[[step]]\n"), &[], 2);
    assert!(refused["error"]["message"].as_str().unwrap().contains("script.toml:3:1: "), "{refused}");

    let schema: Json = serde_json::from_str(RUN_SCHEMA).unwrap();
    for (pointer, value) in [
        ("/findings/0/step", json!({"step": "1.1", "line": 0, "turns": []})),
        ("/findings/0/step", json!("1.1")),
        ("/outputs/0", json!({"argument": 0, "path": "p", "bytes": 1})),
        ("/script", Json::Null),
    ] {
        let mut other = wrong.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        assert!(trouble(&schema, &schema, &other, "document").is_some(), "{pointer}");
    }
}

/// What both documents have, both schemas say in the same words.
#[test]
fn the_schemas_share_what_the_documents_share() {
    let schemas = [SCHEMA, RUN_SCHEMA].map(|schema| serde_json::from_str::<Json>(schema).unwrap());
    for name in [
        "count",
        "counter",
        "text",
        "workgroup",
        "place",
        "version",
        "fault",
        "error",
        "failure",
        "counts",
        "profile",
    ] {
        let [launch, run] = [0, 1].map(|index: usize| schemas[index].pointer(&format!("/$defs/{name}")));
        assert!(launch.is_some() && launch == run, "{name}");
    }
    for name in ["finding", "result"] {
        let [launch, run] = [0, 1].map(|index: usize| &schemas[index]["$defs"][name]["properties"]);
        for (field, form) in launch.as_object().unwrap() {
            assert!(field == "kernel" || run.get(field) == Some(form), "{name}.{field}");
        }
    }
}
