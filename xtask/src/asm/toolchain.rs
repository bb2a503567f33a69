//! LLVM 19's tools: the probe, and one assembly run.
//!
//! Contract: starts `llvm-*-19` only, never an unversioned name. Intermediate files are in `target/asm`.

use super::listing::{self, ListedInstruction};
use super::source::Source;
use super::{AsmError, read};
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

/// Makes sure that the tools are LLVM 19 and encode gfx1201. Returns the assembler's version.
pub fn probe(root: &Path) -> Result<String, AsmError> {
    let mut assembler_version = String::new();
    for tool in [OBJECT_COPY, OBJECT_DUMP, DWARF_DUMP, ASSEMBLER] {
        let text = run(tool, "--version", &["--version".into()])?;
        let version =
            text.split_once("version ").map(|(_, rest)| rest.split_whitespace().next().unwrap_or(""));
        match version {
            Some(version) if version.starts_with("19.") => assembler_version = format!("LLVM {version}"),
            _ => return Err(AsmError::ToolVersion { tool, found: text.lines().next().unwrap_or("").into() }),
        }
    }
    for (instruction, expected) in PROBES {
        let folder = folder(root)?;
        let input = folder.join("probe.s");
        write(&input, &format!("\t{instruction}\n"))?;
        let (_, code) = object_of(&input, "probe")?;
        let found: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
        if found != expected {
            return Err(AsmError::Encoding { tool: ASSEMBLER, instruction, found, expected });
        }
    }
    Ok(assembler_version)
}

/// Assembles a source.
pub fn assemble(root: &Path, name: &str, source: &Source) -> Result<Assembled, AsmError> {
    let input = folder(root)?.join(format!("{name}.s"));
    write(&input, &source.with_locations())?;
    let (object, code) = object_of(&input, name)?;
    let relocations = run(OBJECT_DUMP, name, &["-r".into(), "-j".into(), ".text".into(), path(&object)])?;
    if relocations.contains("R_AMDGPU") {
        return Err(source.error("the code refers to a symbol that it does not define".into()));
    }
    let lines = run(DWARF_DUMP, name, &["--debug-line".into(), path(&object)])?;
    let text = run(OBJECT_DUMP, name, &["-d".into(), "-j".into(), ".text".into(), path(&object)])?;
    let listing = listing::instructions(&text);
    let lines = listing::lines(&lines, code.len() as u32);
    if listing.is_empty() || lines.is_empty() {
        return Err(source.error("the tools print no disassembly or no line table in the form known".into()));
    }
    Ok(Assembled { code, lines, listing })
}

/// The `.text` of a source that is complete except for includes from `includes`.
pub fn assemble_plain(root: &Path, includes: &Path, source: &Path) -> Result<Vec<u8>, AsmError> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let input = folder(root)?.join(format!("plain-{name}.s"));
    write(&input, &String::from_utf8_lossy(&read(source)?))?;
    Ok(object_with(&input, &name, &["-I".into(), path(includes)])?.1)
}

/// The object file and its `.text`.
fn object_of(input: &Path, name: &str) -> Result<(PathBuf, Vec<u8>), AsmError> {
    object_with(input, name, &[])
}

/// The same with further arguments for the assembler.
fn object_with(input: &Path, name: &str, further: &[String]) -> Result<(PathBuf, Vec<u8>), AsmError> {
    let object = input.with_extension("o");
    let binary = input.with_extension("bin");
    let mut arguments: Vec<String> = TARGET.iter().map(|one| (*one).to_owned()).collect();
    arguments.extend_from_slice(further);
    arguments.extend(["-filetype=obj".into(), path(input), "-o".into(), path(&object)]);
    run(ASSEMBLER, name, &arguments)?;
    let copy = ["-O", "binary", "-j", ".text"].map(str::to_owned);
    run(OBJECT_COPY, name, &[copy.as_slice(), &[path(&object), path(&binary)]].concat())?;
    let code = read(&binary)?;
    Ok((object, code))
}

fn folder(root: &Path) -> Result<PathBuf, AsmError> {
    let folder = root.join("target/asm");
    fs::create_dir_all(&folder).map_err(|source| AsmError::File { path: folder.clone(), source })?;
    Ok(folder)
}

fn write(path: &Path, text: &str) -> Result<(), AsmError> {
    fs::write(path, text).map_err(|source| AsmError::File { path: path.into(), source })
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn run(tool: &'static str, name: &str, arguments: &[String]) -> Result<String, AsmError> {
    let output = Command::new(tool)
        .args(arguments)
        .output()
        .map_err(|source| AsmError::ToolMissing { tool, source })?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    // A warning is a failure: it is how an assembler says that it does not know the chip.
    if !output.status.success() || errors.contains("warning:") {
        return Err(AsmError::Tool { tool, name: name.into(), output: errors });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
