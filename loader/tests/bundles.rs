//! Clang's bundles: which entry is selected, and the results for damaged ones. The bundles are built here, byte by
//! byte, and by clang's own program if it is installed.
#![allow(clippy::unwrap_used)]

#[path = "data/double_object.rs"]
mod double_object;

use double_object::DOUBLE_OBJECT;
use std::process::Command;
use zrt_loader::{LoadError, Program, code_object};

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const EXACT: &str = "hipv4-amdgcn-amd-amdhsa--gfx1201";
const GENERIC: &str = "hipv4-amdgcn-amd-amdhsa--gfx12-generic";
const OTHER: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";

fn double() -> Vec<u8> {
    DOUBLE_OBJECT.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A bundle: magic, count, for each entry offset, length, length of the name and name; then the contents.
fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let table: usize = entries.iter().map(|(name, _)| 24 + name.len()).sum();
    let mut offset = 24 + 8 + table;
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend_from_slice(&(entries.len() as u64).to_le_bytes());
    for (name, content) in entries {
        for number in [offset, content.len(), name.len()] {
            bytes.extend_from_slice(&(number as u64).to_le_bytes());
        }
        bytes.extend_from_slice(name.as_bytes());
        offset += content.len();
    }
    entries.iter().for_each(|(_, content)| bytes.extend_from_slice(content));
    bytes
}

#[test]
fn the_exact_processor_goes_before_the_generic_one() {
    let taken = |entries: &[(&str, &[u8])]| code_object(&bundle(entries)).map(<[u8]>::to_vec);
    assert_eq!(
        taken(&[(HOST, b""), (GENERIC, b"g"), (EXACT, b"exact"), (OTHER, b"o")]),
        Ok(b"exact".to_vec())
    );
    assert_eq!(taken(&[(OTHER, b"o"), (GENERIC, b"g")]), Ok(b"g".to_vec()));
    assert_eq!(taken(&[(EXACT, b""), (GENERIC, b"g")]), Ok(b"g".to_vec()), "an empty entry is none");
    assert_eq!(taken(&[(EXACT, b"first"), (EXACT, b"second")]), Ok(b"first".to_vec()));
    assert_eq!(code_object(b"\x7fELF and on"), Ok(&b"\x7fELF and on"[..]));
    let refused = taken(&[(HOST, b""), (OTHER, b"o")]).unwrap_err().to_string();
    for part in [HOST, OTHER, "--offload-arch=gfx1201"] {
        assert!(refused.contains(part), "{refused}");
    }
    let many: Vec<(&str, &[u8])> = vec![(OTHER, b""); 10_000];
    assert!(taken(&many).unwrap_err().to_string().len() < 1000);
}

#[test]
fn eight_names_are_told_and_64_bytes_of_each() {
    let long = "n".repeat(65);
    let names = ["a", "b", &long, "d", "e", "f", "g", "h", "i", "j"];
    let found = |count: usize| {
        let entries: Vec<(&str, &[u8])> = names[..count].iter().map(|name| (*name, &b""[..])).collect();
        code_object(&bundle(&entries)).map(<[u8]>::to_vec)
    };
    let told = |names: &str| Err(LoadError::Bundle { found: names.into() });
    assert_eq!(found(0), told("nothing"));
    assert_eq!(found(2), told("a, b"));
    let eight = format!("a, b, {}, d, e, f, g, h", &long[1..]);
    for count in 8..=10 {
        assert_eq!(found(count), told(&eight), "{count} entries");
    }
}

/// Entries may begin at any byte: nothing aligns them.
#[test]
fn the_program_is_that_of_the_entry() {
    let object = double();
    let alone = Program::parse(&object).unwrap();
    for padding in ["", "1", "12", "123"] {
        let other = format!("{OTHER}{padding}");
        assert_eq!(Program::parse(&bundle(&[(&other, b"o"), (EXACT, &object)])), Ok(alone.clone()));
    }
    let nested = bundle(&[(EXACT, &bundle(&[(EXACT, &object)]))]);
    assert!(matches!(Program::parse(&nested), Err(LoadError::Unknown { .. })), "no bundle in a bundle");
}

#[test]
fn compressed_bundles_are_refused_by_name() {
    let refused = Program::parse(b"CCOB\x02\0\x01\0").unwrap_err();
    assert_eq!(refused, LoadError::CompressedBundle);
    assert!(refused.to_string().contains("--no-offload-compress"), "{refused}");
}

#[test]
fn damaged_tables_are_errors() {
    let object = double();
    let whole = bundle(&[(HOST, b""), (EXACT, &object)]);
    for len in 24..whole.len() {
        assert!(Program::parse(&whole[..len]).is_err(), "{len}");
    }
    for at in 24..24 + 8 + 2 * 24 + HOST.len() + EXACT.len() {
        for byte in [0, 0x7F, 0xFF] {
            let mut changed = whole.clone();
            changed[at] = byte;
            let _ = Program::parse(&changed);
        }
    }
    let mut endless = whole.clone();
    endless[24..32].fill(0xFF);
    assert!(matches!(code_object(&endless), Err(LoadError::Damaged { .. })), "a count that lies");
}

/// The flags and the version of gfx12-generic instead of gfx1201's: LLVM's "User Guide for AMDGPU Backend", ELF header.
#[test]
fn generic_code_objects_are_of_version_6() {
    let with = |abi_version: u8, flags: u32| {
        let mut object = double();
        object[8] = abi_version;
        object[48..52].copy_from_slice(&flags.to_le_bytes());
        Program::parse(&object)
    };
    let alone = Program::parse(&double()).unwrap();
    assert_eq!(with(4, 0x0100_0059), Ok(alone.clone()));
    assert_eq!(with(4, 0x0200_0059), Ok(alone.clone()), "a later version of the generic processor");
    assert_eq!(with(4, 0x4E), Ok(alone));
    for (abi_version, flags, part) in [
        (3, 0x0100_0059, "gfx12-generic"),
        (4, 0x59, "gfx12-generic"),
        (4, 0x0100_0159, "gfx12-generic"),
        (4, 0x0100_004E, "gfx1201 (e_flags 0x100004e)"),
        (4, 0x0100_0053, "an AMD GPU"),
    ] {
        let error = with(abi_version, flags).unwrap_err();
        assert!(matches!(error, LoadError::Target { .. }) && error.to_string().contains(part), "{error}");
    }
}

#[test]
fn bundles_of_clang_are_read() {
    if !zrt_needs::programs(&["clang-offload-bundler-19"]) {
        return;
    }
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bundles");
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::write(path("double.o"), double()).unwrap();
    std::fs::write(path("other.o"), b"other").unwrap();
    let make = |name: &str, flags: &[&str]| {
        let targets = format!("--targets={HOST},{OTHER},{EXACT}");
        let inputs = ["/dev/null".to_owned(), path("other.o"), path("double.o")];
        let mut command = Command::new("clang-offload-bundler-19");
        command.args(["--type=o", &targets, &format!("--output={}", path(name))]).args(flags);
        command.args(inputs.map(|input| format!("--input={input}")));
        let output = command.output().expect("clang-offload-bundler-19 starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Program::parse(&std::fs::read(path(name)).unwrap())
    };
    assert_eq!(make("plain", &[]), Ok(Program::parse(&double()).unwrap()));
    assert_eq!(make("aligned", &["--bundle-align=4096"]), Ok(Program::parse(&double()).unwrap()));
    assert_eq!(make("compressed", &["--compress"]), Err(LoadError::CompressedBundle));
}
