//! `--arg` in all its forms, on the virtual device: files of NumPy, contents that do not come from a file,
//! expectations.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, read_words};
use std::process::{Command, Output};

/// Runs the kernel that doubles 64 dwords over one buffer.
fn double(folder: &Folder, argument: &str, flags: &[&str]) -> Output {
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.args(["launch", &object, "--grid", "1", "--block", "64", "--device", "virtual"]);
    command.args(["--arg", argument]).args(flags).env_remove("ZRT_DEVICE").output().unwrap()
}

/// A file as `np.save` writes a row of 64 numbers of four bytes.
fn npy(folder: &Folder, name: &str, description: &str, words: &[u32; 64]) -> String {
    let text = format!("{{'descr': '{description}', 'fortran_order': False, 'shape': (64,), }}");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend_from_slice(format!("{text:<117}\n").as_bytes());
    file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    folder.write(name, &file)
}

fn counting() -> [u32; 64] {
    std::array::from_fn(|index| index as u32)
}

#[test]
fn arrays_of_numpy_go_in_and_out() {
    let folder = Folder::new("arguments-npy");
    let path = npy(&folder, "x.npy", "<u4", &counting());
    let output = double(&folder, &format!("inout:{path}"), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let doubled = npy(&folder, "doubled.npy", "<u4", &counting().map(|number| 2 * number));
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(doubled).unwrap());

    let path = folder.path("zeros.npy");
    assert_eq!(double(&folder, &format!("out:64*i32:{path}"), &[]).status.code(), Some(0));
    let zeros = npy(&folder, "expected.npy", "<i4", &[0; 64]);
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(zeros).unwrap());
}

#[test]
fn what_is_not_as_expected_fails_and_is_told() {
    let folder = Folder::new("arguments-expect");
    let zeros = npy(&folder, "zeros.npy", "<f4", &[0; 64]);
    assert_eq!(double(&folder, &format!("expect:{zeros}"), &[]).status.code(), Some(0));
    let mut words = [0; 64];
    words[5] = 0.25f32.to_bits();
    let other = npy(&folder, "other.npy", "<f4", &words);
    let output = double(&folder, &format!("expect:{other}"), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("other.npy: 1 of 64 differ, first [5]: 0 where 0.25 is expected"), "{text}");
    assert_eq!(double(&folder, &format!("expect:{other},0.25"), &[]).status.code(), Some(0));
    let output = double(&folder, &format!("expect:{other}"), &["--json", "--seed", "3"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["unexpected"][0].as_str().unwrap().ends_with("(--seed 3)"), "{document}");
}

#[test]
fn contents_need_no_file() {
    let folder = Folder::new("arguments-contents");
    for argument in ["zero:256", "fill:64*u32:7", "fill:256:0xdeadbeef", "rand:64*f32:1", "rand:256:2"] {
        let output = double(&folder, argument, &["--check"]);
        let told = [output.stdout, output.stderr].concat();
        assert_eq!(output.status.code(), Some(0), "{argument}: {}", String::from_utf8_lossy(&told));
    }
    assert_eq!(folder.names(), ["double.o"]);
}

#[test]
fn files_that_are_no_arrays_are_refused() {
    let folder = Folder::new("arguments-refused");
    let path = folder.write("x.npy", b"no array");
    for (argument, part) in [
        (format!("in:{path}"), "x.npy cannot be read: it does not begin as a .npy does"),
        (format!("expect:{},1", folder.write("raw", &[0; 256])), "no tolerance"),
        ("i8:1".to_owned(), "argument 0"),
    ] {
        let output = double(&folder, &argument, &[]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{text}");
    }
}

/// Any buffer, by number or by name, with a header if the file is one of NumPy's; outputs stay as they are.
#[test]
fn buffers_are_dumped_when_the_kernel_has_ended() {
    let folder = Folder::new("arguments-dump");
    let doubled = counting().map(|number| 2 * number);
    let path = npy(&folder, "x.npy", "<u4", &counting());
    let (raw, array) = (folder.path("raw"), folder.path("array.npy"));
    let flags = ["--dump", &format!("0={raw}"), "--dump", &format!("data={array}")];
    let output = double(&folder, &format!("in:{path}"), &flags);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("argument 0: 256 bytes in ") && told.contains("array.npy\n"), "{told}");
    assert_eq!(read_words(&raw), doubled);
    let expected = npy(&folder, "doubled.npy", "<u4", &doubled);
    assert_eq!(std::fs::read(&array).unwrap(), std::fs::read(expected).unwrap());
    let before = npy(&folder, "before.npy", "<u4", &counting());
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(before).unwrap(), "an input is not written");

    let both = folder.path("both");
    let output = double(&folder, &format!("out:256:{both}"), &["--dump", &format!("0={raw}")]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!((read_words(&both), read_words(&raw)), (vec![0; 64], vec![0; 64]));

    for (dump, part) in [
        (raw.clone(), "must be ARGUMENT=FILE"),
        (format!("1={raw}"), "\"1\" is neither the number nor the name"),
        (format!("date={raw}"), "\"date\" is neither"),
        ("0=".to_owned(), "must be ARGUMENT=FILE"),
        (format!("0={both}"), "both is written twice: give each output a name of its own"),
    ] {
        let output = double(&folder, &format!("inout:{both}"), &["--dump", &dump]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{text}");
    }
    let output = double(&folder, "u64:0", &["--dump", &format!("0={raw}")]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("argument 0 is a value"));
}

/// A load from an odd address breaks nothing; under `--strict` it fails.
#[test]
fn advice_fails_where_somebody_is_strict() {
    let folder = Folder::new("arguments-strict");
    let mut object = DOUBLE_OBJECT;
    // global_load_b32 v2, v1, s[0:1] offset:1
    object[0x46] = 0x0000_0101;
    let file = folder.words("odd.o", &object);
    let run = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
        command.args(["launch", &file, "--grid", "1", "--block", "32", "--arg", "zero:256"]).args(flags);
        command.env("ZRT_DEVICE", "virtual").output().unwrap()
    };
    for (flags, code) in [(&["--check"][..], 0), (&["--strict"], 1), (&["--check", "--strict"], 1), (&[], 0)]
    {
        let output = run(flags);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {text}");
        assert_eq!(text.contains("advice: "), !flags.is_empty(), "{text}");
        assert_eq!(text.contains("no rule is broken"), flags == ["--check"], "{text}");
        assert_eq!(text.contains("which --strict counts"), code == 1, "{text}");
    }
}

/// Nothing is coloured, also where a terminal would be.
#[test]
fn nothing_is_coloured() {
    let folder = Folder::new("arguments-colour");
    for (argument, flags) in [("zero:256", &["--check"][..]), ("zero:256", &["--nonsense"]), ("x", &[])] {
        let output = double(&folder, argument, flags);
        let text = [output.stdout, output.stderr].concat();
        assert!(!text.contains(&0x1b), "{}", String::from_utf8_lossy(&text));
    }
}
