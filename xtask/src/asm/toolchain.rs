//! LLVM 19's tools: the probe, and one assembly run.
//!
//! Contract: starts `llvm-*-19` only, never an unversioned name. Intermediate files are in `target/asm`.

use super::listing::{self, ListedInstruction};
use super::source::Source;
use super::{AsmError, read};
use crate::process::Start;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use zrt_isa::zrt::Line;

const ASSEMBLER: &str = "llvm-mc-19";
const OBJECT_COPY: &str = "llvm-objcopy-19";
const OBJECT_DUMP: &str = "llvm-objdump-19";
const DWARF_DUMP: &str = "llvm-dwarfdump-19";
const TARGET: [&str; 2] = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1201"];

/// Instructions with the encodings of instruction set reference §1 and LLVM's own gfx12 tests. LLVM 14 has others.
const PROBES: [(&str, &str); 2] =
    [("s_wait_loadcnt 0x0", "0000c0bf"), ("global_load_b32 v1, v0, s[4:5]", "040005ee0100000000000000")];

/// One assembled kernel.
pub struct Assembled {
    /// The bytes of `.text`.
    pub code: Vec<u8>,
    /// Line table.
    pub lines: Vec<Line>,
    /// Its disassembly.
    pub listing: Vec<ListedInstruction>,
}

/// The tools, and the repository that they work on.
pub struct Tools<'a> {
    /// The repository.
    pub root: &'a Path,
    /// What starts them.
    pub start: Start<'a>,
}

impl Tools<'static> {
    /// Those on the path, for this repository.
    pub fn installed() -> Tools<'static> {
        Tools { root: Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")), start: &Command::output }
    }
}

impl Tools<'_> {
    /// Makes sure that the tools are LLVM 19 and encode gfx1201. Returns the assembler's version.
    pub fn probe(&self) -> Result<String, AsmError> {
        let mut assembler_version = String::new();
        for tool in [OBJECT_COPY, OBJECT_DUMP, DWARF_DUMP, ASSEMBLER] {
            let text = self.run(tool, "--version", &["--version".into()])?;
            let version =
                text.split_once("version ").map(|(_, rest)| rest.split_whitespace().next().unwrap_or(""));
            match version {
                Some(version) if version.starts_with("19.") => assembler_version = format!("LLVM {version}"),
                _ => {
                    let found = text.lines().next().unwrap_or("").into();
                    return Err(AsmError::ToolVersion { tool, found });
                }
            }
        }
        for (instruction, expected) in PROBES {
            let input = self.folder()?.join("probe.s");
            write(&input, &format!("\t{instruction}\n"))?;
            let (_, code) = self.object_with(&input, "probe", &[])?;
            let found: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
            if found != expected {
                return Err(AsmError::Encoding { tool: ASSEMBLER, instruction, found, expected });
            }
        }
        Ok(assembler_version)
    }

    /// Assembles a source.
    pub fn assemble(&self, name: &str, source: &Source) -> Result<Assembled, AsmError> {
        let input = self.folder()?.join(format!("{name}.s"));
        write(&input, &source.with_locations())?;
        let (object, code) = self.object_with(&input, name, &[])?;
        let section = |what: &str| [what.into(), "-j".into(), ".text".into(), path(&object)];
        let relocations = self.run(OBJECT_DUMP, name, &section("-r"))?;
        if relocations.contains("R_AMDGPU") {
            return Err(source.error("the code refers to a symbol that it does not define".into()));
        }
        let lines = self.run(DWARF_DUMP, name, &["--debug-line".into(), path(&object)])?;
        let text = self.run(OBJECT_DUMP, name, &section("-d"))?;
        let listing = listing::instructions(&text);
        let lines = listing::lines(&lines, code.len() as u32);
        if listing.is_empty() || lines.is_empty() {
            return Err(
                source.error("the tools print no disassembly or no line table in the form known".into())
            );
        }
        Ok(Assembled { code, lines, listing })
    }

    /// The `.text` of a source that is complete except for includes from `includes`.
    pub fn assemble_plain(&self, includes: &Path, source: &Path) -> Result<Vec<u8>, AsmError> {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let input = self.folder()?.join(format!("plain-{name}.s"));
        write(&input, &String::from_utf8_lossy(&read(source)?))?;
        Ok(self.object_with(&input, &name, &["-I".into(), path(includes)])?.1)
    }

    /// The object file and its `.text`, with further arguments for the assembler.
    fn object_with(
        &self,
        input: &Path,
        name: &str,
        further: &[String],
    ) -> Result<(PathBuf, Vec<u8>), AsmError> {
        let object = input.with_extension("o");
        let binary = input.with_extension("bin");
        let mut arguments: Vec<String> = TARGET.iter().map(|one| (*one).to_owned()).collect();
        arguments.extend_from_slice(further);
        arguments.extend(["-filetype=obj".into(), path(input), "-o".into(), path(&object)]);
        self.run(ASSEMBLER, name, &arguments)?;
        let copy = ["-O", "binary", "-j", ".text"].map(str::to_owned);
        self.run(OBJECT_COPY, name, &[copy.as_slice(), &[path(&object), path(&binary)]].concat())?;
        let code = read(&binary)?;
        Ok((object, code))
    }

    fn folder(&self) -> Result<PathBuf, AsmError> {
        let folder = self.root.join("target/asm");
        fs::create_dir_all(&folder).map_err(|source| AsmError::File { path: folder.clone(), source })?;
        Ok(folder)
    }

    fn run(&self, tool: &'static str, name: &str, arguments: &[String]) -> Result<String, AsmError> {
        let output = (self.start)(Command::new(tool).args(arguments))
            .map_err(|source| AsmError::ToolMissing { tool, source })?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        // A warning is a failure: it is how an assembler says that it does not know the chip.
        if !output.status.success() || errors.contains("warning:") {
            return Err(AsmError::Tool { tool, name: name.into(), output: errors });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn write(path: &Path, text: &str) -> Result<(), AsmError> {
    fs::write(path, text).map_err(|source| AsmError::File { path: path.into(), source })
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::tests::StandIn;

    #[test]
    fn the_probe_asks_each_tool_for_its_version_and_assembles_two_instructions() {
        let stand_in = StandIn::new("llvm-probe");
        assert_eq!(stand_in.with(|tools| tools.probe()).unwrap(), "LLVM 19.1.1");
        let assembled = [
            "llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1201 -filetype=obj ROOT/target/asm/probe.s \
             -o ROOT/target/asm/probe.o",
            "llvm-objcopy-19 -O binary -j .text ROOT/target/asm/probe.o ROOT/target/asm/probe.bin",
        ];
        let versions = [
            "llvm-objcopy-19 --version",
            "llvm-objdump-19 --version",
            "llvm-dwarfdump-19 --version",
            "llvm-mc-19 --version",
        ];
        assert_eq!(*stand_in.calls.borrow(), [&versions[..], &assembled, &assembled].concat());
    }

    #[test]
    fn other_tools_than_llvm_19_for_gfx1201_are_refused() {
        let versions = [
            ("llvm-mc-19", "Debian LLVM version 14.0.6\n  More.\n", "\"Debian LLVM version 14.0.6\""),
            ("llvm-objcopy-19", "LLVM version 190.1.0", "\"LLVM version 190.1.0\""),
            ("llvm-objdump-19", "GNU objdump 19.1", "\"GNU objdump 19.1\""),
            ("llvm-dwarfdump-19", "", "\"\""),
        ];
        for (tool, said, found) in versions {
            let stand_in = StandIn::answering("llvm-version", tool, "--version", Some((0, said, "")));
            let error = stand_in.with(|tools| tools.probe()).unwrap_err().to_string();
            assert_eq!(error, format!("{tool} does not report LLVM version 19: {found}"));
        }
        let mut stand_in = StandIn::new("llvm-encoding");
        stand_in.codes.insert(0, ("global_load_b32", vec![0, 0x80, 0x50, 0xDC]));
        assert_eq!(
            stand_in.with(|tools| tools.probe()).unwrap_err().to_string(),
            "llvm-mc-19 encodes `global_load_b32 v1, v0, s[4:5]` as 008050dc, not as 040005ee0100000000000000: \
             it does not know gfx1201"
        );
    }

    #[test]
    fn a_tool_that_is_missing_fails_or_warns_is_told() {
        let missing = StandIn::answering("llvm-missing", "llvm-dwarfdump-19", "--version", None);
        assert_eq!(
            missing.with(|tools| tools.probe()).unwrap_err().to_string(),
            "llvm-dwarfdump-19 could not be started; install LLVM 19 (packages llvm-19 and lld-19)"
        );
        for (status, said) in [(1, "error: no such file\n"), (0, "warning: 'gfx1201' is not known\n")] {
            let answer = Some((status, "LLVM version 19.1.1", said));
            let stand_in =
                StandIn::answering("llvm-failing", "llvm-mc-19", "-triple=amdgcn-amd-amdhsa", answer);
            let error = stand_in.with(|tools| tools.probe()).unwrap_err().to_string();
            assert_eq!(error, format!("llvm-mc-19 failed on probe:\n{said}"));
        }
        // What is no warning may be said.
        let answer = Some((0, "LLVM version 19.1.1", "remark: none\n"));
        let stand_in = StandIn::answering("llvm-saying", "llvm-mc-19", "--version", answer);
        assert!(stand_in.with(|tools| tools.probe()).is_ok());
    }

    #[test]
    fn a_kernel_is_assembled_with_its_places_and_listed() {
        let stand_in = StandIn::new("llvm-kernel");
        let source = Source::made_up("\ts_endpgm\n");
        let assembled = stand_in.with(|tools| tools.assemble("name", &source)).unwrap();
        assert_eq!((assembled.code.len(), assembled.lines.len(), assembled.listing.len()), (268, 3, 3));
        let input = fs::read_to_string(stand_in.root.join("target/asm/name.s")).unwrap();
        assert_eq!(input, ".file 1 \"asm/gfx1201/made_up.s\"\n.loc 1 1\n\ts_endpgm\n");
        assert_eq!(
            *stand_in.calls.borrow(),
            [
                "llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1201 -filetype=obj ROOT/target/asm/name.s \
                 -o ROOT/target/asm/name.o",
                "llvm-objcopy-19 -O binary -j .text ROOT/target/asm/name.o ROOT/target/asm/name.bin",
                "llvm-objdump-19 -r -j .text ROOT/target/asm/name.o",
                "llvm-dwarfdump-19 --debug-line ROOT/target/asm/name.o",
                "llvm-objdump-19 -d -j .text ROOT/target/asm/name.o",
            ]
        );
    }

    #[test]
    fn code_that_needs_a_linker_or_is_not_listed_is_refused() {
        let unknown = "the tools print no disassembly or no line table in the form known";
        let relocation = "0000000000000010 R_AMDGPU_REL32           elsewhere\n";
        let cases = [
            ("llvm-objdump-19", "-r", relocation, "the code refers to a symbol that it does not define"),
            ("llvm-objdump-19", "-d", "nothing\n", unknown),
            ("llvm-dwarfdump-19", "--debug-line", "nothing\n", unknown),
        ];
        for (tool, first, said, reason) in cases {
            let stand_in = StandIn::answering("llvm-refused", tool, first, Some((0, said, "")));
            let assembled =
                stand_in.with(|tools| tools.assemble("name", &Source::made_up("")).map(|one| one.code));
            assert_eq!(assembled.unwrap_err().to_string(), format!("asm/gfx1201/made_up.s: {reason}"));
        }
    }

    #[test]
    fn a_plain_source_is_assembled_as_it_is() {
        let stand_in = StandIn::new("llvm-plain");
        stand_in.put("here/one.s", "\tplain\n");
        let folder = stand_in.root.join("here");
        let code = stand_in.with(|tools| tools.assemble_plain(&folder, &folder.join("one.s"))).unwrap();
        assert_eq!(code, [1, 2, 3, 4]);
        assert_eq!(
            stand_in.calls.borrow()[0],
            "llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1201 -I ROOT/here -filetype=obj \
             ROOT/target/asm/plain-one.s -o ROOT/target/asm/plain-one.o"
        );
    }
}
