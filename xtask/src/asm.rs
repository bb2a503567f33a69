//! `cargo xtask asm`: gfx1201 sources to `.zrt` blobs.
//!
//! Contract: reads `asm/gfx1201`, writes `asm/gfx1201/include/protocol.inc`, `asm/blobs/*.zrt` and
//! `asm/blobs/manifest.json`; from the sources of the device's probes, their code beside them. All are committed;
//! `--check` writes nothing and fails on any difference. The assembler is llvm-mc of LLVM 19 and no other: the version
//! is checked, and one encoding is probed, because an older llvm-mc accepts gfx1201 with a warning and emits other
//! code.

mod check;
mod include;
mod listing;
mod names;
mod probes;
mod source;
#[cfg(test)]
mod tests;
mod toolchain;

use serde::{Deserialize, Serialize};
use source::{Directives, Source};
use std::fs;
use std::path::{Path, PathBuf};
pub use toolchain::Tools;
use zrt_isa::resources::{self, Rsrc1, Rsrc2, Rsrc3, WaveSize};
use zrt_isa::zrt::{Kernel, ZrtError};
use zrt_protocol::params::{PARAMETER_BLOCKS, PARAMETER_VERSION, ParameterBlock};

/// Arguments of `cargo xtask asm`.
#[derive(clap::Args, Debug)]
pub struct AsmArguments {
    /// Compare with the committed files instead of writing them.
    #[arg(long)]
    pub check: bool,
    /// Assemble these kernels only, and leave the other blobs as they are.
    #[arg(value_name = "KERNEL", conflicts_with = "check")]
    pub kernels: Vec<String>,
}

/// Why kernels could not be assembled or checked.
#[derive(Debug, thiserror::Error)]
pub enum AsmError {
    /// A file could not be read or written.
    #[error("cannot access {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A tool is missing.
    #[error("{tool} could not be started; install LLVM 19 (packages llvm-19 and lld-19)")]
    ToolMissing {
        /// The program.
        tool: &'static str,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A tool has another version.
    #[error("{tool} does not report LLVM version 19: {found:?}")]
    ToolVersion {
        /// The program.
        tool: &'static str,
        /// Its version line.
        found: String,
    },
    /// The assembler does not encode for gfx1201.
    #[error("{tool} encodes `{instruction}` as {found}, not as {expected}: it does not know gfx1201")]
    Encoding {
        /// The program.
        tool: &'static str,
        /// The probe.
        instruction: &'static str,
        /// Its encoding.
        found: String,
        /// The encoding of gfx1201 (instruction set reference §1, §4).
        expected: &'static str,
    },
    /// A tool failed.
    #[error("{tool} failed on {name}:\n{output}")]
    Tool {
        /// The program.
        tool: &'static str,
        /// The kernel.
        name: String,
        /// What it printed.
        output: String,
    },
    /// A source breaks a rule.
    #[error("{path}: {reason}")]
    Source {
        /// The file, relative to the repository.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// No source is of a kernel that is asked for.
    #[error("there is no kernel {0} in asm/gfx1201")]
    Unknown(String),
    /// The container cannot be written.
    #[error("{name}: the container is refused")]
    Container {
        /// The kernel.
        name: String,
        /// The reason.
        #[source]
        source: ZrtError,
    },
    /// The manifest cannot be read.
    #[error("asm/blobs/manifest.json cannot be read")]
    Manifest(#[from] serde_json::Error),
    /// Committed files differ from what the sources produce.
    #[error("{} differ from what the sources give: run `cargo xtask asm`", .0.join(", "))]
    Drift(Vec<String>),
}

/// `asm/blobs/manifest.json`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// Version of the assembler.
    assembler: String,
    /// One entry per kernel, by name.
    kernels: Vec<ManifestEntry>,
}

/// What is known about one blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ManifestEntry {
    name: String,
    source: String,
    /// Fingerprint of the source with its includes in place, in hexadecimal.
    source_fingerprint: String,
    code_bytes: usize,
    blob_bytes: usize,
    parameters: String,
    parameter_bytes: u32,
    workgroup: [u16; 3],
    vgprs: u16,
    sgprs: u16,
    lds_bytes: u32,
    /// Workgroups that a compute unit can hold at once.
    groups_per_cu: u32,
}

/// One file to be written or compared.
struct Output {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Assembles every kernel and writes or compares the results.
pub fn run(tools: &Tools<'_>, arguments: &AsmArguments) -> Result<(), AsmError> {
    let root = tools.root;
    let sources = kernels_of(root)?;
    let is_kernel = |name: &&String| sources.iter().any(|kernel| kernel.name == **name);
    if let Some(name) = arguments.kernels.iter().find(|name| !is_kernel(name)) {
        return Err(AsmError::Unknown(name.clone()));
    }
    let protocol = Output { path: root.join(include::PATH), bytes: include::text().into_bytes() };
    if arguments.check {
        compare(root, std::slice::from_ref(&protocol))?;
    } else {
        write(&protocol)?;
    }
    let assembler = tools.probe()?;
    // A chosen kernel is one of the engine's.
    let probes = if arguments.kernels.is_empty() { probes::build(tools)? } else { Vec::new() };
    let outputs = outputs(tools, arguments, &sources, assembler)?;
    if arguments.check {
        compare(root, &outputs)?;
        compare(root, &probes)?;
        refuse_strangers(root, &outputs)?;
        println!("asm: {} kernels and {} of the probe match the sources", outputs.len() - 1, probes.len());
    } else {
        outputs.iter().chain(&probes).try_for_each(write)?;
        if arguments.kernels.is_empty() {
            refuse_strangers(root, &outputs)?;
        }
        println!("asm: {} kernels written to asm/blobs, {} of the probe", outputs.len() - 1, probes.len());
    }
    Ok(())
}

/// The blobs of the chosen kernels, and the manifest of all.
fn outputs(
    tools: &Tools<'_>,
    arguments: &AsmArguments,
    sources: &[source::Kernel],
    assembler: String,
) -> Result<Vec<Output>, AsmError> {
    let path = tools.root.join("asm/blobs/manifest.json");
    let is_chosen = |name: &String| arguments.kernels.is_empty() || arguments.kernels.contains(name);
    let mut outputs = Vec::new();
    let mut kernels = Vec::new();
    if !arguments.kernels.is_empty() {
        let committed = serde_json::from_slice::<Manifest>(&read(&path)?)?.kernels;
        kernels.extend(committed.into_iter().filter(|entry| !is_chosen(&entry.name)));
    }
    for kernel in sources.iter().filter(|kernel| is_chosen(&kernel.name)) {
        let (entry, blob) = build(tools, kernel)?;
        outputs.push(Output { path: tools.root.join(format!("asm/blobs/{}.zrt", kernel.name)), bytes: blob });
        kernels.push(entry);
    }
    kernels.sort_by(|one, other| one.name.cmp(&other.name));
    let assembler = match arguments.check {
        // Another patch release of LLVM 19 is not drift as long as the bytes are the same.
        true => serde_json::from_slice::<Manifest>(&read(&path)?)?.assembler,
        false => assembler,
    };
    let mut bytes = serde_json::to_vec_pretty(&Manifest { assembler, kernels })?;
    bytes.push(b'\n');
    outputs.push(Output { path, bytes });
    Ok(outputs)
}

/// The kernels of the `.s` files of `asm/gfx1201`, by name.
fn kernels_of(root: &Path) -> Result<Vec<source::Kernel>, AsmError> {
    let folder = root.join("asm/gfx1201");
    let failed = |source| AsmError::File { path: folder.clone(), source };
    let mut kernels = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "s")
            && let Some(stem) = path.file_stem()
        {
            kernels.extend(source::Kernel::all_of(root, &stem.to_string_lossy())?);
        }
    }
    kernels.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(kernels)
}

/// Assembles one kernel into its manifest entry and container.
fn build(tools: &Tools<'_>, kernel: &source::Kernel) -> Result<(ManifestEntry, Vec<u8>), AsmError> {
    let name = kernel.name.as_str();
    let source = Source::read(tools.root, kernel)?;
    names::check(&source)?;
    let directives = source.directives()?;
    let parameters = parameter_block(&source, &directives)?;
    let assembled = tools.assemble(name, &source)?;
    check::registers(&source, &directives, &assembled.listing)?;
    check::scalar_hazards(&source, &assembled.listing)?;
    check::padding(&source, &assembled.code)?;

    let container = |error| AsmError::Container { name: name.into(), source: error };
    let words = resource_words(&directives, assembled.code.len()).map_err(container)?;
    let kernel = Kernel {
        name,
        code: &assembled.code,
        entry: 0,
        rsrc1: words[0],
        rsrc2: words[1],
        rsrc3: words[2],
        wave_size: WaveSize::Wave32,
        user_sgprs: USER_SGPRS,
        vgprs: directives.vgprs,
        sgprs: directives.sgprs,
        workgroup: directives.workgroup,
        lds_bytes: directives.lds_bytes,
        scratch_bytes: 0,
        parameter_version: PARAMETER_VERSION,
        parameter_opcode: parameters.opcode as u16,
        parameter_bytes: parameters.layout.bytes as u32,
        files: source.files.iter().map(String::as_str).collect(),
        lines: assembled.lines,
        constants: Vec::new(),
    };
    let blob = kernel.write().map_err(container)?;
    let needs = resources::GroupNeeds {
        wave_size: WaveSize::Wave32,
        vgprs: directives.vgprs.into(),
        lds_bytes: directives.lds_bytes,
        work_items: kernel.work_items(),
    };
    let occupancy = needs.occupancy().map_err(ZrtError::from).map_err(container)?;
    let entry = ManifestEntry {
        name: name.into(),
        source: source.files[0].clone(),
        source_fingerprint: format!("{:016x}", source.fingerprint()),
        code_bytes: kernel.code.len(),
        blob_bytes: blob.len(),
        parameters: parameters.layout.name.into(),
        parameter_bytes: parameters.layout.bytes as u32,
        workgroup: directives.workgroup,
        vgprs: directives.vgprs,
        sgprs: directives.sgprs,
        lds_bytes: directives.lds_bytes,
        groups_per_cu: occupancy.groups_per_cu,
    };
    Ok((entry, blob))
}

/// USER_DATA_0 and 1: the address of the parameter block; 2: the number of workgroups (docs/kernels.md).
const USER_SGPRS: u8 = 3;

/// RSRC1, 2, 3 of a kernel on the dispatch path: CU mode, denormals kept, workgroup id X, work-item id X.
fn resource_words(directives: &Directives, code_bytes: usize) -> Result<[u32; 3], ZrtError> {
    let rsrc1 = Rsrc1 {
        vgpr_blocks_minus_one: resources::vgpr_field(directives.vgprs.into(), WaveSize::Wave32)?,
        ..Rsrc1::default()
    };
    let rsrc2 = Rsrc2 {
        user_sgprs: USER_SGPRS.into(),
        workgroup_id: [true, false, false],
        lds_blocks: resources::lds_field(directives.lds_bytes)?,
        ..Rsrc2::default()
    };
    let rsrc3 = Rsrc3 {
        instruction_prefetch: resources::instruction_prefetch_field(code_bytes as u32),
        ..Rsrc3::default()
    };
    Ok([rsrc1.word()?, rsrc2.word()?, rsrc3.word()?])
}

fn parameter_block(source: &Source, directives: &Directives) -> Result<&'static ParameterBlock, AsmError> {
    let found = PARAMETER_BLOCKS.iter().find(|block| block.layout.name == directives.parameters);
    found.ok_or_else(|| source.error(format!("no parameter block is called {}", directives.parameters)))
}

fn read(path: &Path) -> Result<Vec<u8>, AsmError> {
    fs::read(path).map_err(|source| AsmError::File { path: path.into(), source })
}

fn write(output: &Output) -> Result<(), AsmError> {
    if fs::read(&output.path).is_ok_and(|bytes| bytes == output.bytes) {
        return Ok(());
    }
    fs::write(&output.path, &output.bytes)
        .map_err(|source| AsmError::File { path: output.path.clone(), source })
}

fn compare(root: &Path, outputs: &[Output]) -> Result<(), AsmError> {
    let differs = |output: &&Output| !fs::read(&output.path).is_ok_and(|bytes| bytes == output.bytes);
    let different: Vec<String> =
        outputs.iter().filter(differs).map(|output| relative(root, &output.path)).collect();
    if different.is_empty() { Ok(()) } else { Err(AsmError::Drift(different)) }
}

/// Checks that every file in `asm/blobs` comes from the sources, and that every blob is in the crate's list.
fn refuse_strangers(root: &Path, outputs: &[Output]) -> Result<(), AsmError> {
    let folder = root.join("asm/blobs");
    let failed = |source| AsmError::File { path: folder.clone(), source };
    let mut strangers = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !outputs.iter().any(|output| output.path == path) {
            strangers.push(relative(root, &path));
        }
    }
    let library = root.join("asm/src/lib.rs");
    let text = String::from_utf8_lossy(&read(&library)?).into_owned();
    for output in outputs {
        let stem = output.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if output.path.extension().is_some_and(|extension| extension == "zrt")
            && !text.contains(&format!("\"{stem}\""))
        {
            strangers.push(format!("{stem} (not in asm/src/lib.rs)"));
        }
    }
    if strangers.is_empty() { Ok(()) } else { Err(AsmError::Drift(strangers)) }
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}
