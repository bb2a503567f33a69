//! The command over made-up repositories, with a stand-in for LLVM's programs.

use super::*;
use std::cell::RefCell;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use zrt_isa::zrt::Line;
use zrt_needs::TemporaryFolder;

/// A kernel whose first instruction is a macro's in another file.
const SOURCE: &str = "//! parameters Copy\n//! workgroup 64 2 1\n//! vgprs 20\n//! sgprs 6\n//! lds 600\n\
                      .include \"body.inc\"\n\tBODY\n\ts_mov_b32 s5, 0\n\ts_endpgm\n";
const BODY: &str = "// Of a file beside it.\n.macro BODY\n\tv_add_f32_e32 v[16], v0, v1\n.endm\n";
/// FNV-1a of the two with the include in place, computed apart.
const FINGERPRINT: &str = "90368b338100dd17";
/// What LLVM 19 prints of it, but for the padding.
const DISASSEMBLY: &str = "
/made/up.o:\tfile format elf64-amdgpu

Disassembly of section .text:

0000000000000000 <.text>:
\tv_add_f32_e32 v16, v0, v1                                  // 000000000000: 06200300
\ts_mov_b32 s5, 0                                            // 000000000004: BE850080
\ts_endpgm                                                   // 000000000008: BFB00000
";
const LINES: &str = "
Address            Line   Column File   ISA Discriminator OpIndex Flags
------------------ ------ ------ ------ --- ------------- ------- -------------
0x0000000000000000      3      0      2   0             0       0  is_stmt
0x0000000000000004      8      0      1   0             0       0  is_stmt
0x0000000000000008      9      0      1   0             0       0  is_stmt
0x000000000000010c      9      0      1   0             0       0  is_stmt end_sequence
";
const VERSION: &str = "Ubuntu LLVM version 19.1.1\n  Optimized build.\n";

/// What a program answers: its exit status, its output and its errors; `None` if it is not installed.
type Answer = Option<(i32, &'static str, &'static str)>;

/// What stands in for LLVM's programs, with a folder to work in. An object is a copy of its source.
pub struct StandIn {
    pub root: TemporaryFolder,
    /// The code of an object with a certain text; the first that fits.
    pub codes: Vec<(&'static str, Vec<u8>)>,
    /// Answers in place of the usual ones: to this program, if that is its first argument.
    pub answers: Vec<(&'static str, &'static str, Answer)>,
    /// What was started, with ROOT for the folder.
    pub calls: RefCell<Vec<String>>,
}

impl StandIn {
    pub fn new(name: &str) -> StandIn {
        let codes = [
            // The instructions of the probe, as gfx1201 has them.
            ("\ts_wait_loadcnt 0x0\n", vec![0, 0, 0xC0, 0xBF]),
            ("\tglobal_load_b32 v1, v0, s[4:5]\n", vec![4, 0, 5, 0xEE, 1, 0, 0, 0, 0, 0, 0, 0]),
            ("plain", vec![1, 2, 3, 4]),
            ("", padded_code()),
        ];
        let root = TemporaryFolder::new(name);
        StandIn { root, codes: codes.into(), answers: Vec::new(), calls: RefCell::default() }
    }

    /// The same with an answer of its own.
    pub fn answering(name: &str, program: &'static str, first: &'static str, answer: Answer) -> StandIn {
        StandIn { answers: vec![(program, first, answer)], ..StandIn::new(name) }
    }

    pub fn with<T>(&self, work: impl FnOnce(&Tools<'_>) -> T) -> T {
        work(&Tools { root: &self.root, start: &|command: &mut Command| self.start(command) })
    }

    fn start(&self, command: &mut Command) -> io::Result<std::process::Output> {
        let program = command.get_program().to_str().unwrap();
        let arguments: Vec<&str> = command.get_args().map(|argument| argument.to_str().unwrap()).collect();
        let call = format!("{program} {}", arguments.join(" "));
        self.calls.borrow_mut().push(call.replace(self.root.to_str().unwrap(), "ROOT"));
        let mut answers = self.answers.iter();
        let (status, output, errors) = match answers.find(|one| (one.0, one.1) == (program, arguments[0])) {
            Some((_, _, answer)) => answer.ok_or(io::ErrorKind::NotFound)?,
            None => (0, self.usual(program, &arguments), ""),
        };
        let status = ExitStatus::from_raw(status << 8);
        Ok(std::process::Output { status, stdout: output.into(), stderr: errors.into() })
    }

    fn usual(&self, program: &str, arguments: &[&str]) -> &'static str {
        match (program, arguments) {
            (_, ["--version"]) => VERSION,
            ("llvm-mc-19", [.., "-filetype=obj", input, "-o", object]) => {
                fs::copy(input, object).unwrap();
                ""
            }
            ("llvm-objcopy-19", ["-O", "binary", "-j", ".text", object, binary]) => {
                let object = fs::read_to_string(object).unwrap();
                let (_, code) = self.codes.iter().find(|(text, _)| object.contains(text)).unwrap();
                fs::write(binary, code).unwrap();
                ""
            }
            ("llvm-objdump-19", ["-r", "-j", ".text", _]) => "",
            ("llvm-objdump-19", ["-d", "-j", ".text", _]) => DISASSEMBLY,
            ("llvm-dwarfdump-19", ["--debug-line", _]) => LINES,
            _ => panic!("{program} {arguments:?}"),
        }
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// A repository with kernels of [`SOURCE`] and one of a probe.
    fn repository(name: &str, kernels: &[&str]) -> StandIn {
        let stand_in = StandIn::new(name);
        for kernel in kernels {
            stand_in.put(&format!("asm/gfx1201/{kernel}.s"), SOURCE);
        }
        stand_in.put("asm/gfx1201/body.inc", BODY);
        stand_in.put("asm/gfx1201/include/readme", "");
        stand_in.put("asm/src/lib.rs", &format!("const NAMES: &[&str] = &{kernels:?};\n"));
        stand_in.put("bringup/src/probe/kernels/one.s", "\tplain\n");
        stand_in.put("bringup/src/probe/kernels/two.inc", "\tplain\n");
        fs::create_dir(stand_in.root.join("asm/blobs")).unwrap();
        stand_in
    }

    /// What the command says, in one line: "ok", or why it fails.
    fn run(&self, check: bool, kernels: &[&str]) -> String {
        let arguments = AsmArguments { check, kernels: kernels.iter().map(|&name| name.into()).collect() };
        match self.with(|tools| run(tools, &arguments)) {
            Ok(()) => "ok".into(),
            Err(error) => error.to_string().replace(self.root.to_str().unwrap(), "ROOT"),
        }
    }
}

/// Three instructions and as much `s_code_end` as there must be.
fn padded_code() -> Vec<u8> {
    let instructions = [0x0620_0300, 0xBE85_0080, 0xBFB0_0000];
    let words = instructions.into_iter().chain([0xBF9F_0000; 64]);
    words.flat_map(u32::to_le_bytes).collect()
}

/// Needs no assembler: sources that were changed without a new assembly run show by their fingerprint.
#[test]
fn blobs_were_made_from_these_sources() {
    let root = Tools::installed().root;
    let bytes = read(&root.join("asm/blobs/manifest.json")).expect("committed");
    let manifest: Manifest = serde_json::from_slice(&bytes).expect("json");
    let kernels = kernels_of(root).expect("sources");
    let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let listed: Vec<&str> = manifest.kernels.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(listed, names);
    for (entry, kernel) in manifest.kernels.iter().zip(&kernels) {
        let source = Source::read(root, kernel).expect("source");
        let found = format!("{:016x}", source.fingerprint());
        assert_eq!(found, entry.source_fingerprint, "{}: run `cargo xtask asm`", entry.name);
        let blob = zrt_asm::blob(&entry.name).expect("listed");
        let kernel = Kernel::parse(blob).expect("container");
        assert_eq!((kernel.name, kernel.code.len()), (entry.name.as_str(), entry.code_bytes));
    }
}

#[test]
fn a_run_writes_containers_their_manifest_and_the_probes() {
    let made = StandIn::repository("asm-written", &["made_up"]);
    assert_eq!(made.run(false, &[]), "ok");
    assert_eq!(made.text("asm/gfx1201/include/protocol.inc"), include::text());
    assert_eq!(fs::read(made.root.join("bringup/src/probe/kernels/one.bin")).unwrap(), [1, 2, 3, 4]);
    assert!(!made.root.join("bringup/src/probe/kernels/two.bin").exists());
    let blob = fs::read(made.root.join("asm/blobs/made_up.zrt")).unwrap();
    let line = |code_offset, file, line| Line { code_offset, file, line };
    let expected = Kernel {
        name: "made_up",
        code: &padded_code(),
        entry: 0,
        // Blocks of 8 VGPRs less one; denormals of all floats (bits 19:16), MEM_ORDERED, FWD_PROGRESS.
        rsrc1: 0xC00F_0002,
        // Three user SGPRs (from bit 1), workgroup id X (bit 7), two times 512 bytes of LDS (from bit 15).
        rsrc2: 0x0001_0086,
        // 268 bytes are in three lines of 128 (from bit 4).
        rsrc3: 0x30,
        wave_size: WaveSize::Wave32,
        user_sgprs: 3,
        vgprs: 20,
        sgprs: 6,
        workgroup: [64, 2, 1],
        lds_bytes: 600,
        scratch_bytes: 0,
        parameter_version: PARAMETER_VERSION,
        parameter_opcode: 11,
        parameter_bytes: 48,
        files: vec!["asm/gfx1201/made_up.s", "asm/gfx1201/body.inc"],
        lines: vec![line(0, 1, 3), line(4, 0, 8), line(8, 0, 9)],
        constants: Vec::new(),
    };
    assert_eq!(Kernel::parse(&blob).unwrap(), expected);
    // A group is 4 waves, and a compute unit holds 32.
    let manifest = format!(
        r#"{{
  "assembler": "LLVM 19.1.1",
  "kernels": [
    {{
      "name": "made_up",
      "source": "asm/gfx1201/made_up.s",
      "source_fingerprint": "{FINGERPRINT}",
      "code_bytes": 268,
      "blob_bytes": {},
      "parameters": "Copy",
      "parameter_bytes": 48,
      "workgroup": [
        64,
        2,
        1
      ],
      "vgprs": 20,
      "sgprs": 6,
      "lds_bytes": 600,
      "groups_per_cu": 8
    }}
  ]
}}
"#,
        blob.len()
    );
    assert_eq!(made.text("asm/blobs/manifest.json"), manifest);
}

#[test]
fn a_check_names_what_differs_and_a_run_mends_it() {
    let made = StandIn::repository("asm-drift", &["made_up"]);
    let written = [
        "asm/gfx1201/include/protocol.inc",
        "asm/blobs/made_up.zrt",
        "asm/blobs/manifest.json",
        "bringup/src/probe/kernels/one.bin",
    ];
    let differ = |what: &str| format!("{what} differ from what the sources give: run `cargo xtask asm`");
    assert_eq!(made.run(true, &[]), differ(written[0]));
    assert_eq!(made.run(false, &[]), "ok");
    assert_eq!(made.run(true, &[]), "ok");
    for path in written {
        let right = fs::read(made.root.join(path)).unwrap();
        fs::write(made.root.join(path), [&right[..], b"\n"].concat()).unwrap();
        assert_eq!(made.run(true, &[]), differ(path));
        assert_eq!(made.run(false, &[]), "ok");
        assert_eq!(fs::read(made.root.join(path)).unwrap(), right, "{path}");
    }
    // A blob without a source, and one that the crate does not list.
    made.put("asm/blobs/old.zrt", "");
    assert_eq!(made.run(true, &[]), differ("asm/blobs/old.zrt"));
    assert_eq!(made.run(false, &[]), differ("asm/blobs/old.zrt"));
    fs::remove_file(made.root.join("asm/blobs/old.zrt")).unwrap();
    made.put("asm/src/lib.rs", "const NAMES: &[&str] = &[\"made_up_too\"];\n");
    assert_eq!(made.run(true, &[]), differ("made_up (not in asm/src/lib.rs)"));
    assert_eq!(made.run(false, &[]), differ("made_up (not in asm/src/lib.rs)"));
}

#[test]
fn another_release_of_the_assembler_is_no_drift_and_is_noted_by_a_run() {
    let mut made = StandIn::repository("asm-release", &["made_up"]);
    assert_eq!(made.run(false, &[]), "ok");
    let before = made.text("asm/blobs/manifest.json");
    made.answers.push(("llvm-mc-19", "--version", Some((0, "LLVM version 19.1.7", ""))));
    assert_eq!(made.run(true, &[]), "ok");
    assert_eq!(made.run(false, &[]), "ok");
    assert_eq!(made.text("asm/blobs/manifest.json"), before.replace("19.1.1", "19.1.7"));
}

#[test]
fn a_chosen_kernel_alone_is_assembled_and_the_others_stay_in_the_manifest() {
    let made = StandIn::repository("asm-chosen", &["first", "second"]);
    let manifest = "asm/blobs/manifest.json";
    // Without a manifest nothing is known of the others.
    assert_eq!(made.run(false, &["second"]), format!("cannot access ROOT/{manifest}"));
    assert_eq!(made.run(false, &[]), "ok");
    let before = made.text(manifest);
    assert_eq!(before.matches(FINGERPRINT).count(), 2);
    let probe = made.root.join("bringup/src/probe/kernels/one.bin");
    fs::remove_file(&probe).unwrap();
    made.put("asm/blobs/old.zrt", "");
    for name in ["first", "second"] {
        made.put(&format!("asm/gfx1201/{name}.s"), &format!("{SOURCE}// More.\n"));
    }
    made.calls.borrow_mut().clear();
    assert_eq!(made.run(false, &["third", "first"]), "there is no kernel third in asm/gfx1201");
    assert_eq!(made.calls.borrow().len(), 0);
    assert_eq!(made.run(false, &["second"]), "ok");
    let after = made.text(manifest);
    let (first, second) = after.split_once("\"name\": \"second\"").unwrap();
    assert!(before.starts_with(first), "the entry of the first kernel stays");
    assert!(!second.contains(FINGERPRINT), "{second}");
    assert!(!probe.exists());
}

#[test]
fn a_kernel_that_breaks_a_rule_is_refused() {
    let cases = [
        ("Copy", "Copies", "no parameter block is called Copies"),
        ("//! lds 600\n", "", "the directive `//! lds` is missing"),
        ("vgprs 20", "vgprs 16", "`//! vgprs 16`, but the code uses 17"),
        (
            "s_mov_b32 s5",
            "s_mov_b32 S_FIVE",
            "asm/gfx1201/made_up.s:8: S_FIVE stands outside of s[...] and v[...]",
        ),
    ];
    for (find, replace, reason) in cases {
        let made = StandIn::repository("asm-rules", &["made_up"]);
        made.put("asm/gfx1201/made_up.s", &SOURCE.replacen(find, replace, 1));
        assert_eq!(made.run(false, &[]), format!("asm/gfx1201/made_up.s: {reason}"));
    }
    let mut made = StandIn::repository("asm-rules", &["made_up"]);
    let hazard =
        "\ts_mov_b32 s48, 0 // 000000000000: BEB00080\n\tv_mov_b32_e32 v16, s48 // 000000000004: 7E200230\n";
    made.put("asm/gfx1201/made_up.s", &SOURCE.replace("sgprs 6", "sgprs 49"));
    made.answers.push(("llvm-objdump-19", "-d", Some((0, hazard, ""))));
    let reason = "at 0x4, `v_mov_b32_e32 v16, s48`: a scalar write before it is not waited for: \
                  s_wait_alu depctr_sa_sdst(0)";
    assert_eq!(made.run(false, &[]), format!("asm/gfx1201/made_up.s: {reason}"));

    let mut made = StandIn::repository("asm-rules", &["made_up"]);
    // One word of the padding is away.
    made.codes.insert(0, ("s_mov_b32 s5, 0", padded_code()[..66 * 4].into()));
    let reason = "63 dwords of s_code_end at the end, 64 are needed";
    assert_eq!(made.run(false, &[]), format!("asm/gfx1201/made_up.s: {reason}"));
}
