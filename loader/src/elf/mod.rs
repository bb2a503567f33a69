//! ELF code objects for amdgcn-amd-amdhsa, gfx1201 or gfx12-generic, linked or as written by the assembler.
//!
//! Contract: never panics. The results are bounded by the limits here and in `image`, memory by eight times the
//! file and 16 MiB, and work by the file's length: bytes named by several sections are counted for each of them.
//! Needs the section table, which compilers and linkers always write. Source: LLVM's "User Guide for AMDGPU
//! Backend", ELF code object.

mod descriptor;
mod file;
mod layout;
mod line_unit;
mod lines;
mod metadata;
mod msgpack;
mod relocation;

use crate::error::LoadError;
use crate::image::{Image, Segment, Symbol, vec_of};
use crate::kernarg::ARGUMENT_BYTES_MAX;
use crate::kernel::{Arguments, Kernel};
use crate::print::PrintFormats;
use crate::program::{Format, KERNELS_MAX, Program};
use descriptor::{DESCRIPTOR_BYTES, Descriptor};
use file::{ENDIAN, File, damaged, open};
pub use file::{SECTIONS_MAX, name_at};
use layout::Layout;
use metadata::KernelMetadata;
pub(crate) use msgpack::Value;
use object::elf::{SHT_NOTE, STT_FILE, STT_SECTION};
use object::read::elf::{SectionHeader, Sym};
use relocation::Budget;
use std::collections::{BTreeMap, HashMap};
use zrt_isa::resources::WORKGROUP_ITEMS_MAX;
use zrt_isa::zrt::CODE_ALIGNMENT_BYTES;

/// Suffix of a descriptor's symbol.
const DESCRIPTOR_SUFFIX: &str = ".kd";
/// Longest name of a symbol that is kept, in bytes.
pub const SYMBOL_BYTES_MAX: usize = 4096;
/// Bytes that the names of all symbols together may have beyond those of the file, because names share their endings.
pub const SYMBOLS_BYTES_MORE: usize = 1 << 20;

/// Reads a code object.
pub(crate) fn parse(bytes: &[u8]) -> Result<Program, LoadError> {
    let file = open(bytes)?;
    let mut budget = Budget::new(bytes.len());
    let mut layout = Layout::new(&file)?;
    relocation::apply(&file, &mut layout, &mut budget)?;
    let lines = lines::read(&file, &layout, &mut budget)?;
    let names = symbols(&file, &layout)?;
    let (described, print_formats) = describe(&file)?;
    let kernels = kernels(&layout.image, &names, described)?;
    Ok(Program {
        format: if file.is_linked { Format::CodeObject } else { Format::Object },
        image: layout.image,
        kernels,
        symbols: names,
        lines,
        print_formats,
    })
}

/// Symbols in the image, in ascending order.
fn symbols(file: &File<'_>, layout: &Layout) -> Result<Vec<Symbol>, LoadError> {
    let mut symbols = vec_of("the symbols", file.symbols.len())?;
    let (mut names_bytes, limit) = (0, file.bytes.len() + SYMBOLS_BYTES_MORE);
    for (index, symbol) in file.symbols.enumerate() {
        let Some(offset) = layout.symbol_offset(file, index, symbol) else { continue };
        if matches!(symbol.st_type(), STT_SECTION | STT_FILE) || offset > layout.image.bytes.len() as u64 {
            continue;
        }
        let name = name_at(file.symbol_strings, symbol.st_name(ENDIAN), SYMBOL_BYTES_MAX);
        let cut = || LoadError::Damaged { what: format!("the name of symbol {} is cut off", index.0) };
        let name = name.ok_or_else(cut)?;
        // Each has been read, also one that is too long.
        names_bytes += name.len();
        if names_bytes > limit {
            let (bytes, limit) = (names_bytes as u64, limit as u64);
            return Err(LoadError::TooLarge { what: "the list of symbol names", bytes, limit });
        }
        if name.is_empty() || name.len() > SYMBOL_BYTES_MAX {
            continue;
        }
        symbols.push(Symbol {
            name: String::from_utf8_lossy(name).into_owned(),
            offset,
            bytes: symbol.st_size(ENDIAN),
            is_code: segment_at(&layout.image, offset).is_some_and(|segment| segment.executable),
        });
    }
    symbols.shrink_to_fit();
    symbols.sort_unstable_by(|first: &Symbol, second| {
        (first.offset, &first.name, first.bytes).cmp(&(second.offset, &second.name, second.bytes))
    });
    Ok(symbols)
}

fn segment_at(image: &Image, offset: u64) -> Option<&Segment> {
    let after = image.segments.partition_point(|segment| segment.offset <= offset);
    let segment = image.segments.get(after.checked_sub(1)?)?;
    (offset - segment.offset < segment.bytes).then_some(segment)
}

/// The metadata by descriptor symbol, and the format strings; empty if the file has none.
fn describe(file: &File<'_>) -> Result<(HashMap<String, KernelMetadata>, PrintFormats), LoadError> {
    let mut notes_bytes = 0;
    for section in file.sections.iter().filter(|section| section.sh_type(ENDIAN) == SHT_NOTE) {
        let notes = section.data(ENDIAN, file.bytes).map_err(damaged)?;
        notes_bytes += notes.len() as u64;
        let limit = file.bytes.len() as u64;
        if notes_bytes > limit {
            return Err(LoadError::TooLarge { what: "the sum of the notes", bytes: notes_bytes, limit });
        }
        if let Some(content) = metadata::find(notes) {
            let (kernels, formats) = metadata::parse(content)?;
            let by_symbol = kernels.into_iter().map(|kernel| (kernel.symbol.clone(), kernel)).collect();
            return Ok((by_symbol, formats));
        }
    }
    Ok((HashMap::new(), PrintFormats::default()))
}

fn kernels(
    image: &Image,
    symbols: &[Symbol],
    mut described: HashMap<String, KernelMetadata>,
) -> Result<Vec<Kernel>, LoadError> {
    // The descriptor and the code for each name.
    let mut parts: BTreeMap<&str, (&Symbol, Option<&Symbol>)> = BTreeMap::new();
    for symbol in symbols.iter().filter(|symbol| !symbol.is_code) {
        let Some(name) = symbol.name.strip_suffix(DESCRIPTOR_SUFFIX).filter(|name| !name.is_empty()) else {
            continue;
        };
        if parts.insert(name, (symbol, None)).is_some() {
            let what = format!("two kernel descriptors are called {:?}", symbol.name);
            return Err(LoadError::Damaged { what });
        }
        if parts.len() > KERNELS_MAX {
            let limit = KERNELS_MAX as u64;
            return Err(LoadError::TooLarge { what: "the list of kernels", bytes: limit + 1, limit });
        }
    }
    for symbol in symbols.iter().filter(|symbol| symbol.is_code) {
        if let Some((_, code)) = parts.get_mut(symbol.name.as_str()) {
            *code = Some(symbol);
        }
    }
    if parts.is_empty() {
        return Err(LoadError::NoKernel);
    }
    let mut kernels = vec_of("the kernels", parts.len())?;
    for (name, (symbol, code)) in parts {
        kernels.push(kernel(image, name, symbol, code, described.remove(&symbol.name))?);
    }
    kernels.sort_by(|first: &Kernel, second| {
        (first.entry_offset, &first.name).cmp(&(second.entry_offset, &second.name))
    });
    Ok(kernels)
}

fn kernel(
    image: &Image,
    name: &str,
    symbol: &Symbol,
    code: Option<&Symbol>,
    metadata: Option<KernelMetadata>,
) -> Result<Kernel, LoadError> {
    let wrong = |what: String| LoadError::Descriptor { kernel: name.into(), what };
    let start = symbol.offset as usize; // At most the image's length.
    let bytes = image.bytes.get(start..).and_then(|rest| rest.first_chunk::<DESCRIPTOR_BYTES>());
    let descriptor = Descriptor::parse(name, bytes.ok_or_else(|| wrong("it is cut off".into()))?)?;
    let outside =
        || wrong(format!("its code at {:+} bytes from it lies outside of any code", descriptor.entry));
    let entry_offset = symbol.offset.checked_add_signed(descriptor.entry).ok_or_else(outside)?;
    let segment = segment_at(image, entry_offset).filter(|segment| segment.executable).ok_or_else(outside)?;
    if !entry_offset.is_multiple_of(CODE_ALIGNMENT_BYTES as u64) {
        return Err(wrong(format!("its code at {entry_offset:#x} is not at a multiple of 256 bytes")));
    }
    let code_bytes_max = segment.offset + segment.bytes - entry_offset;
    let code_bytes = code.filter(|code| code.offset == entry_offset).map_or(0, |code| code.bytes);
    if u64::from(descriptor.argument_bytes) > ARGUMENT_BYTES_MAX {
        let (bytes, limit) = (descriptor.argument_bytes.into(), ARGUMENT_BYTES_MAX);
        return Err(LoadError::TooLarge { what: "the argument segment", bytes, limit });
    }
    let items_max = metadata.as_ref().and_then(|metadata| metadata.workgroup_items_max);
    let required_workgroup = metadata.as_ref().and_then(|metadata| metadata.required_workgroup);
    let dynamic_stack = metadata.as_ref().is_some_and(|metadata| metadata.dynamic_stack);
    let arguments = match metadata {
        None => Arguments::Natural { bytes: descriptor.argument_bytes },
        Some(metadata) => Arguments::Described {
            bytes: metadata.segment_bytes.max(descriptor.argument_bytes),
            alignment: metadata.segment_alignment,
            list: metadata.arguments,
        },
    };
    Ok(Kernel {
        name: name.into(),
        entry_offset,
        code_bytes: code_bytes.min(code_bytes_max),
        rsrc1: descriptor.rsrc1,
        rsrc2: descriptor.rsrc2,
        rsrc3: descriptor.rsrc3,
        wave_size: descriptor.wave_size,
        user_sgprs: descriptor.user_sgprs,
        lds_bytes: descriptor.lds_bytes,
        scratch_bytes: descriptor.scratch_bytes,
        dynamic_stack: descriptor.dynamic_stack || dynamic_stack,
        arguments,
        required_workgroup,
        workgroup_items_max: items_max.unwrap_or(WORKGROUP_ITEMS_MAX).clamp(1, WORKGROUP_ITEMS_MAX),
    })
}
