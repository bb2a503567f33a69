//! The `.zrt` version 2 container: one kernel's machine code with everything a loader must know. Byte layout:
//! `docs/zrt-format.md`.
//!
//! Contract: [`Kernel::parse`] never panics on any bytes and allocates less than three times their length. What it
//! accepts is consistent: code inside the file, resource words that agree with the stated needs, a sorted line
//! table, patch sites inside the code. [`Kernel::write`] checks the same rules, so `parse(write(k)) == k`.

use crate::resources::{
    LDS_BYTES_PER_GROUP_MAX, ResourceError, Rsrc1, Rsrc2, Rsrc3, SGPRS_PER_WAVE_MAX, VGPRS_PER_WAVE_MAX,
    WORKGROUP_ITEMS_MAX, WaveSize,
};
use alloc::string::String;
use alloc::vec::Vec;
use thiserror::Error;

/// The first four bytes.
pub const MAGIC: [u8; 4] = *b"ZRT\0";
/// Version of the container.
pub const VERSION: u16 = 2;
/// Target as stored: major, minor, stepping of gfx1201, and 0.
pub const TARGET_GFX1201: [u8; 4] = [12, 0, 1, 0];
/// Length of the fixed header in bytes.
pub const HEADER_BYTES: usize = 128;
/// Alignment of code in the file and of the entry within it: PGM_LO holds address >> 8 (hardware reference §5).
pub const CODE_ALIGNMENT_BYTES: usize = 256;
/// Largest container accepted, in bytes.
pub const FILE_BYTES_MAX: usize = 64 << 20;
/// Longest name, path or constant name in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// Most source files of a kernel.
pub const FILES_MAX: usize = 4096;

const FILE_RECORD_BYTES: usize = 8;
const LINE_RECORD_BYTES: usize = 12;
const CONSTANT_RECORD_BYTES: usize = 16;

/// Byte offsets of the header's fields.
mod field {
    pub const VERSION: usize = 4;
    pub const HEADER_BYTES: usize = 6;
    pub const FILE_BYTES: usize = 8;
    pub const TARGET: usize = 12;
    pub const CODE_OFFSET: usize = 16;
    pub const CODE_BYTES: usize = 20;
    pub const ENTRY: usize = 24;
    pub const RSRC1: usize = 28;
    pub const RSRC2: usize = 32;
    pub const RSRC3: usize = 36;
    pub const WAVE_LANES: usize = 40;
    pub const USER_SGPRS: usize = 41;
    pub const VGPRS: usize = 42;
    pub const SGPRS: usize = 44;
    pub const WORKGROUP: usize = 46;
    pub const LDS_BYTES: usize = 52;
    pub const SCRATCH_BYTES: usize = 56;
    pub const PARAMETER_VERSION: usize = 60;
    pub const PARAMETER_OPCODE: usize = 62;
    pub const PARAMETER_BYTES: usize = 64;
    pub const NAME: usize = 68;
    pub const FILES: usize = 76;
    pub const LINES: usize = 84;
    pub const CONSTANTS: usize = 92;
    pub const RESERVED: usize = 100;
}

/// Why bytes are not a kernel, or a kernel cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ZrtError {
    /// The bytes end early or continue past the stated length.
    #[error("the container has {actual_bytes} bytes, but {needed_bytes} are needed")]
    Length { actual_bytes: usize, needed_bytes: usize },
    /// The first four bytes are not `ZRT\0`.
    #[error("the container starts with {found:02x?} instead of \"ZRT\\0\"")]
    Magic { found: [u8; 4] },
    /// The version is not supported.
    #[error("the container has version {found}, but only version 2 is understood")]
    Version { found: u16 },
    /// The code is for another chip.
    #[error("the code is for gfx target {found:?}, but this is for gfx1201 ([12, 0, 1, 0])")]
    Target { found: [u8; 4] },
    /// A part of the file lies outside the file, or outside the region for its kind.
    #[error("{part} at offset {offset} with {bytes} bytes lies outside of its {limit} bytes")]
    OutOfBounds { part: &'static str, offset: u64, bytes: u64, limit: u64 },
    /// An offset or a length is not a multiple of its alignment.
    #[error("{part} is {value}, which is not a multiple of {alignment}")]
    Misaligned { part: &'static str, value: u64, alignment: u64 },
    /// A count is zero or too large.
    #[error("{part} is {value}, but must be {min} to {max}")]
    Range { part: &'static str, value: u64, min: u64, max: u64 },
    /// The system has no memory for a table.
    #[error("there is no memory for the {part}, which takes {bytes} bytes")]
    Memory { part: &'static str, bytes: u64 },
    /// A resource word is malformed.
    #[error("a resource word is wrong")]
    Resource(#[from] ResourceError),
    /// A resource word disagrees with the stated needs.
    #[error("{word} grants {granted} {what}, but the kernel states {stated}")]
    Disagreement { word: &'static str, what: &'static str, granted: u32, stated: u32 },
    /// A name is empty or not UTF-8.
    #[error("{part} is not a name in UTF-8")]
    Name { part: &'static str },
    /// A path is absolute or leaves the tree.
    #[error("the path {path:?} in the line table is not relative")]
    Path { path: String },
    /// The line table is not in ascending code order, or refers to a missing file.
    #[error("entry {index} of the line table is out of order or names no file")]
    Line { index: usize },
    /// A reserved byte is not zero.
    #[error("reserved byte {offset} is not zero")]
    Reserved { offset: usize },
}

/// From `code_offset` up to the next entry, the code comes from this source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Bytes from the start of the code; a multiple of 4.
    pub code_offset: u32,
    /// Index into [`Kernel::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
}

/// A 32-bit literal in the code that may be replaced before upload. Several places may share one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Constant<'a> {
    /// Name.
    pub name: &'a str,
    /// Bytes from the start of the code; a multiple of 4.
    pub code_offset: u32,
    /// The value that the code was assembled with.
    pub value: u32,
}

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel<'a> {
    /// Name.
    pub name: &'a str,
    /// Machine code, a multiple of 4 bytes. Must be placed at a multiple of [`CODE_ALIGNMENT_BYTES`].
    pub code: &'a [u8],
    /// First instruction: bytes from the start of the code, a multiple of [`CODE_ALIGNMENT_BYTES`].
    pub entry: u32,
    /// PGM_RSRC1.
    pub rsrc1: u32,
    /// PGM_RSRC2.
    pub rsrc2: u32,
    /// PGM_RSRC3.
    pub rsrc3: u32,
    /// Lanes of a wave.
    pub wave_size: WaveSize,
    /// User SGPRs that the dispatch preloads.
    pub user_sgprs: u8,
    /// Vector registers used.
    pub vgprs: u16,
    /// Scalar registers used.
    pub sgprs: u16,
    /// Work-items of a group in x, y, z.
    pub workgroup: [u16; 3],
    /// LDS of a group in bytes.
    pub lds_bytes: u32,
    /// Scratch of a lane in bytes.
    pub scratch_bytes: u32,
    /// Version of the parameter block.
    pub parameter_version: u16,
    /// Opcode in the parameter block's header.
    pub parameter_opcode: u16,
    /// Length of the parameter block in bytes.
    pub parameter_bytes: u32,
    /// Source files of the line table, relative paths.
    pub files: Vec<&'a str>,
    /// Line table in ascending order of `code_offset`; may be empty.
    pub lines: Vec<Line>,
    /// Patchable constants.
    pub constants: Vec<Constant<'a>>,
}

impl<'a> Kernel<'a> {
    /// Reads a container. The bytes must be exactly the container.
    pub fn parse(bytes: &'a [u8]) -> Result<Kernel<'a>, ZrtError> {
        check_prefix(bytes)?;
        let code_offset = dword(bytes, field::CODE_OFFSET)?;
        aligned("code offset", code_offset.into(), CODE_ALIGNMENT_BYTES as u64)?;
        let code = part(bytes, "code", code_offset, dword(bytes, field::CODE_BYTES)?.into())?;
        let kernel = Kernel {
            name: name_at(bytes, "kernel name", field::NAME)?,
            code,
            entry: dword(bytes, field::ENTRY)?,
            rsrc1: dword(bytes, field::RSRC1)?,
            rsrc2: dword(bytes, field::RSRC2)?,
            rsrc3: dword(bytes, field::RSRC3)?,
            wave_size: match byte(bytes, field::WAVE_LANES)? {
                32 => WaveSize::Wave32,
                64 => WaveSize::Wave64,
                other => {
                    return Err(ZrtError::Range { part: "wave size", value: other.into(), min: 32, max: 64 });
                }
            },
            user_sgprs: byte(bytes, field::USER_SGPRS)?,
            vgprs: word(bytes, field::VGPRS)?,
            sgprs: word(bytes, field::SGPRS)?,
            workgroup: [
                word(bytes, field::WORKGROUP)?,
                word(bytes, field::WORKGROUP + 2)?,
                word(bytes, field::WORKGROUP + 4)?,
            ],
            lds_bytes: dword(bytes, field::LDS_BYTES)?,
            scratch_bytes: dword(bytes, field::SCRATCH_BYTES)?,
            parameter_version: word(bytes, field::PARAMETER_VERSION)?,
            parameter_opcode: word(bytes, field::PARAMETER_OPCODE)?,
            parameter_bytes: dword(bytes, field::PARAMETER_BYTES)?,
            files: read_files(bytes)?,
            lines: read_lines(bytes, code)?,
            constants: read_constants(bytes, code)?,
        };
        kernel.check()?;
        Ok(kernel)
    }

    /// The source file and line of the instruction at `code_offset`, if the line table has one.
    pub fn source_line(&self, code_offset: u32) -> Option<(&'a str, u32)> {
        let after = self.lines.partition_point(|line| line.code_offset <= code_offset);
        let line = self.lines.get(after.checked_sub(1)?)?;
        Some((self.files.get(line.file as usize)?, line.line))
    }

    /// The code as dwords.
    pub fn code_dwords(&self) -> impl Iterator<Item = u32> + 'a {
        self.code.as_chunks::<4>().0.iter().map(|dword| u32::from_le_bytes(*dword))
    }

    /// Work-items of a group.
    pub fn work_items(&self) -> u32 {
        self.workgroup.iter().fold(1u32, |product, &size| product.saturating_mul(size.into()))
    }

    /// The container's bytes. If they would exceed [`FILE_BYTES_MAX`], nothing is allocated.
    pub fn write(&self) -> Result<Vec<u8>, ZrtError> {
        self.check()?;
        let tables_bytes = self.files.len() * FILE_RECORD_BYTES
            + self.lines.len() * LINE_RECORD_BYTES
            + self.constants.len() * CONSTANT_RECORD_BYTES;
        let strings_offset = HEADER_BYTES + tables_bytes;
        let strings_bytes = self.strings_bytes();
        let code_offset = (strings_offset + strings_bytes).next_multiple_of(CODE_ALIGNMENT_BYTES);
        let file_bytes = code_offset + self.code.len();
        range("file length", file_bytes as u64, HEADER_BYTES as u64, FILE_BYTES_MAX as u64)?;

        let mut strings = Strings::with_capacity(strings_bytes);
        let name = strings.place(self.name, strings_offset);
        let mut tables = Vec::with_capacity(tables_bytes);
        for file in &self.files {
            put(&mut tables, &strings.place(file, strings_offset));
        }
        let lines_offset = HEADER_BYTES + tables.len();
        for line in &self.lines {
            put(&mut tables, &[line.code_offset, line.file, line.line]);
        }
        let constants_offset = HEADER_BYTES + tables.len();
        for constant in &self.constants {
            put(&mut tables, &strings.place(constant.name, strings_offset));
            put(&mut tables, &[constant.code_offset, constant.value]);
        }

        let mut bytes = Vec::with_capacity(file_bytes);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        put(&mut bytes, &[file_bytes as u32]);
        bytes.extend_from_slice(&TARGET_GFX1201);
        put(&mut bytes, &[code_offset as u32, self.code.len() as u32, self.entry]);
        put(&mut bytes, &[self.rsrc1, self.rsrc2, self.rsrc3]);
        bytes.extend_from_slice(&[self.wave_size.lanes() as u8, self.user_sgprs]);
        for half in [self.vgprs, self.sgprs, self.workgroup[0], self.workgroup[1], self.workgroup[2]] {
            bytes.extend_from_slice(&half.to_le_bytes());
        }
        put(&mut bytes, &[self.lds_bytes, self.scratch_bytes]);
        bytes.extend_from_slice(&self.parameter_version.to_le_bytes());
        bytes.extend_from_slice(&self.parameter_opcode.to_le_bytes());
        put(&mut bytes, &[self.parameter_bytes]);
        put(&mut bytes, &name);
        put(&mut bytes, &[HEADER_BYTES as u32, self.files.len() as u32]);
        put(&mut bytes, &[lines_offset as u32, self.lines.len() as u32]);
        put(&mut bytes, &[constants_offset as u32, self.constants.len() as u32]);
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend_from_slice(&tables);
        bytes.extend_from_slice(&strings.bytes);
        bytes.resize(code_offset, 0);
        bytes.extend_from_slice(self.code);
        Ok(bytes)
    }

    /// Bytes of all names. After [`Kernel::check`] their number and lengths are small enough for the sum to fit.
    fn strings_bytes(&self) -> usize {
        let files = self.files.iter().map(|path| path.len());
        let constants = self.constants.iter().map(|constant| constant.name.len());
        self.name.len() + files.chain(constants).sum::<usize>()
    }

    /// Checks the rules that reading and writing share, for code that has assembled a kernel.
    pub fn check(&self) -> Result<(), ZrtError> {
        self.check_needs()?;
        self.check_words()?;
        check_name("kernel name", self.name)?;
        range("file table", self.files.len() as u64, 0, FILES_MAX as u64)?;
        range("constant table", self.constants.len() as u64, 0, self.code.len() as u64 / 4)?;
        for path in &self.files {
            check_name("path", path)?;
            check_path(path)?;
        }
        for (index, line) in self.lines.iter().enumerate() {
            let in_order = index == 0 || self.lines[index - 1].code_offset < line.code_offset;
            if !in_order || line.file as usize >= self.files.len() {
                return Err(ZrtError::Line { index });
            }
            self.check_code_offset("line table entry", line.code_offset)?;
        }
        for constant in &self.constants {
            check_name("constant name", constant.name)?;
            self.check_code_offset("constant", constant.code_offset)?;
        }
        Ok(())
    }

    fn check_code_offset(&self, part: &'static str, offset: u32) -> Result<(), ZrtError> {
        aligned(part, offset.into(), 4)?;
        if offset as usize >= self.code.len() {
            let limit = self.code.len() as u64;
            return Err(ZrtError::OutOfBounds { part, offset: offset.into(), bytes: 4, limit });
        }
        Ok(())
    }

    fn check_needs(&self) -> Result<(), ZrtError> {
        range("code length", self.code.len() as u64, 4, FILE_BYTES_MAX as u64)?;
        aligned("code length", self.code.len() as u64, 4)?;
        aligned("entry", self.entry.into(), CODE_ALIGNMENT_BYTES as u64)?;
        self.check_code_offset("entry", self.entry)?;
        range("VGPR count", self.vgprs.into(), 1, VGPRS_PER_WAVE_MAX.into())?;
        range("SGPR count", self.sgprs.into(), 0, SGPRS_PER_WAVE_MAX.into())?;
        range("LDS bytes", self.lds_bytes.into(), 0, LDS_BYTES_PER_GROUP_MAX.into())?;
        range("workgroup size", self.work_items().into(), 1, WORKGROUP_ITEMS_MAX.into())
    }

    fn check_words(&self) -> Result<(), ZrtError> {
        let rsrc1 = Rsrc1::parse(self.rsrc1)?;
        let rsrc2 = Rsrc2::parse(self.rsrc2)?;
        Rsrc3::parse(self.rsrc3)?;
        let disagreement =
            |word, what, granted, stated| Err(ZrtError::Disagreement { word, what, granted, stated });
        let granted = rsrc1.vgprs(self.wave_size);
        let vgprs = u32::from(self.vgprs);
        if granted < vgprs || granted >= vgprs + self.wave_size.vgpr_field_granule() {
            return disagreement("RSRC1", "VGPRs", granted, vgprs);
        }
        if rsrc2.user_sgprs != u32::from(self.user_sgprs) {
            return disagreement("RSRC2", "user SGPRs", rsrc2.user_sgprs, self.user_sgprs.into());
        }
        if rsrc2.lds_bytes() < self.lds_bytes {
            return disagreement("RSRC2", "bytes of LDS", rsrc2.lds_bytes(), self.lds_bytes);
        }
        if rsrc2.scratch != (self.scratch_bytes != 0) {
            return disagreement("RSRC2", "scratch", rsrc2.scratch.into(), self.scratch_bytes);
        }
        Ok(())
    }
}

/// The string area while it is written.
struct Strings {
    bytes: Vec<u8>,
}

impl Strings {
    fn with_capacity(bytes: usize) -> Strings {
        Strings { bytes: Vec::with_capacity(bytes) }
    }

    /// Appends a string and returns its file offset and length. Lengths were checked before: they fit.
    fn place(&mut self, text: &str, area_offset: usize) -> [u32; 2] {
        let offset = area_offset + self.bytes.len();
        self.bytes.extend_from_slice(text.as_bytes());
        [offset as u32, text.len() as u32]
    }
}

fn put(bytes: &mut Vec<u8>, dwords: &[u32]) {
    for dword in dwords {
        bytes.extend_from_slice(&dword.to_le_bytes());
    }
}

fn check_prefix(bytes: &[u8]) -> Result<(), ZrtError> {
    if let Some(found) = bytes.first_chunk::<4>()
        && *found != MAGIC
    {
        return Err(ZrtError::Magic { found: *found });
    }
    if bytes.len() < HEADER_BYTES {
        return Err(ZrtError::Length { actual_bytes: bytes.len(), needed_bytes: HEADER_BYTES });
    }
    let version = word(bytes, field::VERSION)?;
    if version != VERSION {
        return Err(ZrtError::Version { found: version });
    }
    range(
        "header length",
        word(bytes, field::HEADER_BYTES)?.into(),
        HEADER_BYTES as u64,
        HEADER_BYTES as u64,
    )?;
    let file_bytes = dword(bytes, field::FILE_BYTES)? as usize;
    if file_bytes != bytes.len() {
        return Err(ZrtError::Length { actual_bytes: bytes.len(), needed_bytes: file_bytes });
    }
    range("file length", file_bytes as u64, HEADER_BYTES as u64, FILE_BYTES_MAX as u64)?;
    let target = dword(bytes, field::TARGET)?.to_le_bytes();
    if target != TARGET_GFX1201 {
        return Err(ZrtError::Target { found: target });
    }
    for (offset, value) in bytes.iter().enumerate().take(HEADER_BYTES).skip(field::RESERVED) {
        if *value != 0 {
            return Err(ZrtError::Reserved { offset });
        }
    }
    Ok(())
}

fn read_files(bytes: &[u8]) -> Result<Vec<&str>, ZrtError> {
    records(bytes, "file table", field::FILES, FILES_MAX, |record: &[u8; FILE_RECORD_BYTES]| {
        name_part(bytes, "path", dword(record, 0)?, dword(record, 4)?)
    })
}

/// A dword of the code has at most one line.
fn read_lines(bytes: &[u8], code: &[u8]) -> Result<Vec<Line>, ZrtError> {
    records(bytes, "line table", field::LINES, code.len() / 4, |record: &[u8; LINE_RECORD_BYTES]| {
        Ok(Line { code_offset: dword(record, 0)?, file: dword(record, 4)?, line: dword(record, 8)? })
    })
}

/// A dword of the code belongs to at most one constant.
fn read_constants<'a>(bytes: &'a [u8], code: &[u8]) -> Result<Vec<Constant<'a>>, ZrtError> {
    const PART: &str = "constant table";
    records(bytes, PART, field::CONSTANTS, code.len() / 4, |record: &[u8; CONSTANT_RECORD_BYTES]| {
        Ok(Constant {
            name: name_part(bytes, "constant name", dword(record, 0)?, dword(record, 4)?)?,
            code_offset: dword(record, 8)?,
            value: dword(record, 12)?,
        })
    })
}

/// Reads the records of the table whose offset and count are at `header_offset`; at most `count_max`.
fn records<T, const BYTES: usize>(
    bytes: &[u8],
    part: &'static str,
    header_offset: usize,
    count_max: usize,
    read: impl Fn(&[u8; BYTES]) -> Result<T, ZrtError>,
) -> Result<Vec<T>, ZrtError> {
    range(part, dword(bytes, header_offset + 4)?.into(), 0, count_max as u64)?;
    let (table, _) = table(bytes, part, header_offset, BYTES)?.as_chunks::<BYTES>();
    let mut values = room(part, table.len())?;
    for record in table {
        values.push(read(record)?);
    }
    Ok(values)
}

/// A list with room for `count` values of a part.
fn room<T>(part: &'static str, count: usize) -> Result<Vec<T>, ZrtError> {
    let mut values = Vec::new();
    let bytes = count as u64 * size_of::<T>() as u64;
    values.try_reserve_exact(count).map_err(|_| ZrtError::Memory { part, bytes })?;
    Ok(values)
}

/// The bytes of a table whose offset and record count are at `header_offset`.
fn table<'a>(
    bytes: &'a [u8],
    name: &'static str,
    header_offset: usize,
    record_bytes: usize,
) -> Result<&'a [u8], ZrtError> {
    let offset = dword(bytes, header_offset)?;
    let count = dword(bytes, header_offset + 4)?;
    part(bytes, name, offset, u64::from(count) * record_bytes as u64)
}

fn part<'a>(bytes: &'a [u8], name: &'static str, offset: u32, length: u64) -> Result<&'a [u8], ZrtError> {
    let outside =
        ZrtError::OutOfBounds { part: name, offset: offset.into(), bytes: length, limit: bytes.len() as u64 };
    let end = u64::from(offset) + length;
    if (offset as usize) < HEADER_BYTES || end > bytes.len() as u64 {
        return Err(outside);
    }
    bytes.get(offset as usize..end as usize).ok_or(outside)
}

fn name_at<'a>(bytes: &'a [u8], name: &'static str, header_offset: usize) -> Result<&'a str, ZrtError> {
    name_part(bytes, name, dword(bytes, header_offset)?, dword(bytes, header_offset + 4)?)
}

fn name_part<'a>(bytes: &'a [u8], name: &'static str, offset: u32, length: u32) -> Result<&'a str, ZrtError> {
    range(name, length.into(), 1, NAME_BYTES_MAX as u64)?;
    let text = part(bytes, name, offset, length.into())?;
    core::str::from_utf8(text).map_err(|_| ZrtError::Name { part: name })
}

fn check_name(part: &'static str, name: &str) -> Result<(), ZrtError> {
    range(part, name.len() as u64, 1, NAME_BYTES_MAX as u64)?;
    if name.chars().any(char::is_control) {
        return Err(ZrtError::Name { part });
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), ZrtError> {
    let climbs = path.split('/').any(|step| step.is_empty() || step == "..");
    if climbs || path.contains(['\\', ':']) {
        return Err(ZrtError::Path { path: String::from(path) });
    }
    Ok(())
}

fn range(part: &'static str, value: u64, min: u64, max: u64) -> Result<(), ZrtError> {
    if value < min || value > max {
        return Err(ZrtError::Range { part, value, min, max });
    }
    Ok(())
}

fn aligned(part: &'static str, value: u64, alignment: u64) -> Result<(), ZrtError> {
    if !value.is_multiple_of(alignment) {
        return Err(ZrtError::Misaligned { part, value, alignment });
    }
    Ok(())
}

fn byte(bytes: &[u8], offset: usize) -> Result<u8, ZrtError> {
    let short = ZrtError::Length { actual_bytes: bytes.len(), needed_bytes: offset + 1 };
    bytes.get(offset).copied().ok_or(short)
}

fn word(bytes: &[u8], offset: usize) -> Result<u16, ZrtError> {
    let short = ZrtError::Length { actual_bytes: bytes.len(), needed_bytes: offset + 2 };
    let found = bytes.get(offset..).and_then(|rest| rest.first_chunk::<2>()).ok_or(short)?;
    Ok(u16::from_le_bytes(*found))
}

fn dword(bytes: &[u8], offset: usize) -> Result<u32, ZrtError> {
    let short = ZrtError::Length { actual_bytes: bytes.len(), needed_bytes: offset + 4 };
    let found = bytes.get(offset..).and_then(|rest| rest.first_chunk::<4>()).ok_or(short)?;
    Ok(u32::from_le_bytes(*found))
}

#[cfg(test)]
mod tests;
