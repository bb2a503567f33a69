//! LDS beyond what a kernel declares, as users of `zrt launch` and `zrt run` give it: a size for each LDS pointer.
//!
//! The positions of the pieces are computed here as AMD's runtime does: after the kernel's own LDS, each aligned for
//! its type.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, compile, read_words};
use serde_json::{Value as Json, json};
use std::process::{Command, Output};

/// Three pieces after 6 bytes. The kernel writes where they are, then what one work-item stored for another.
const PIECES: &str = "
typedef unsigned int u32;
__attribute__((reqd_work_group_size(32, 1, 1)))
kernel void pieces(global u32 *out, local uchar *bytes, local ulong *longs, local float *floats, u32 more) {
    local ushort own[3];
    u32 t = __builtin_amdgcn_workitem_id_x();
    if (t < 3) own[t] = 1000 * t;
    bytes[t] = t;
    longs[t] = 0x100000000ul * t;
    floats[t + more] = 0.5f * t;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\");
    if (t == 0) {
        out[0] = (u32)bytes;
        out[1] = (u32)longs;
        out[2] = (u32)floats;
        out[3] = own[2];
    }
    out[4 + t] = bytes[31 - t] + (u32)(longs[31 - t] >> 32) + (u32)(2 * floats[31 - t + more]);
}";
/// Sizes: the second piece begins with a gap of one byte.
const SIZES: [u32; 3] = [33, 32 * 8, 32 * 4];
const OWN_BYTES: u32 = 6;

fn expected() -> Vec<u32> {
    let bytes = OWN_BYTES;
    let longs = (bytes + SIZES[0]).next_multiple_of(8);
    let floats = longs + SIZES[1];
    assert_eq!((longs, floats), (40, 296));
    [bytes, longs, floats, 2000].into_iter().chain((0..32).map(|t| 3 * (31 - t))).collect()
}

fn zrt(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.args(arguments).env("ZRT_DEVICE", "virtual").output().unwrap()
}

fn launch(object: &str, lds: &[&str], more: &str) -> Output {
    let arguments =
        ["launch", object, "--grid", "1", "--arg", "zero:36*u32", "--arg", more, "--check", "--json"];
    zrt(&[&arguments[..], lds].concat())
}

#[test]
fn each_pointer_has_a_piece_of_its_own() {
    let folder = Folder::new("lds-pieces");
    let Some(object) = compile(&folder, PIECES) else { return };
    let dump = format!("0={}", folder.path("out"));
    let lds = SIZES.map(|size| size.to_string()).join(",");
    let arguments =
        ["launch", &object, "--grid", "1", "--lds", &lds, "--arg", "zero:36*u32", "--arg", "u32:0"];
    let output = zrt(&[&arguments[..], &["--check", "--dump", &dump]].concat());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(read_words(&folder.path("out")), expected());
    // The same in a script.
    let script = format!(
        "[buffers]\nout = \"zero:36*u32\"\n[[step]]\nlaunch = {{ file = \"kernel.co\", grid = 1, lds = {SIZES:?}, \
         args = [\"buffer:out\", \"u32:0\"] }}\n[[step]]\ndump = {{ buffer = \"out\", file = \"scripted\" }}\n"
    );
    let output = zrt(&["run", &folder.write("script.toml", script.as_bytes()), "--check"]);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(read_words(&folder.path("scripted")), expected());
}

/// The allocation ends with the last piece.
#[test]
fn beyond_the_last_piece_is_out_of_bounds() {
    let folder = Folder::new("lds-end");
    let Some(object) = compile(&folder, PIECES) else { return };
    let output = launch(&object, &["--lds", "33,256,128"], "u32:1");
    assert_eq!(output.status.code(), Some(1));
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["lane"], &finding["address"]),
        (&json!("bounds"), &json!(31), &json!(424))
    );
    // One element more, and it is inside.
    assert_eq!(launch(&object, &["--lds", "33,256,132"], "u32:1").status.code(), Some(0));
}

#[test]
fn other_counts_of_sizes_are_refused() {
    let folder = Folder::new("lds-refused");
    let refused = |output: &Output, parts: &[&str]| {
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{part:?} in {said:?}"));
    };
    let double = folder.words("double.o", &DOUBLE_OBJECT);
    let shape = ["launch", &double, "--grid", "1", "--block", "32", "--arg", "zero:128", "--lds"];
    refused(&zrt(&[&shape[..], &["4,4"]].concat()), &["double has 0 LDS pointers (none)", "2 sizes"]);
    refused(
        &zrt(&[&shape[..], &["1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"]].concat()),
        &["17 sizes", "at most 16"],
    );
    refused(&zrt(&[&shape[..], &["4,"]].concat()), &["--lds is \"\""]);
    assert!(zrt(&[&shape[..], &["4"]].concat()).status.success());
    let Some(object) = compile(&folder, PIECES) else { return };
    for (sizes, count) in [("256", "1 sizes"), ("33,256", "2 sizes"), ("1,2,3,4", "4 sizes")] {
        refused(&launch(&object, &["--lds", sizes], "u32:0"), &["pieces has 3 LDS pointers", count]);
    }
    refused(&launch(&object, &["--lds", "65530,1,1"], "u32:0"), &["LDS of", "at most 65536"]);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
