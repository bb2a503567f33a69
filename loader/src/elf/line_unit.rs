//! One unit of `.debug_line`: its header, its tables of names, its program.
//!
//! Contract: a unit is read in place and nothing is allocated. Every loop iteration consumes at least one byte, so
//! the cost is proportional to the unit's length, whatever counts it states. Never panics. Reads the 32-bit format
//! of versions 2 to 5 for machines with one operation per instruction. Source: DWARF 5 §6.2, and versions 2 to 4
//! where they differ from it.

use gimli::constants::{self, DwForm};
use gimli::{EndianSlice, LittleEndian, Reader};

pub(super) type Slice<'data> = EndianSlice<'data, LittleEndian>;

/// A unit whose length is at least this is not in the 32-bit format.
const LENGTH_RESERVED: u32 = 0xFFFF_FFF0;
/// The file and the line at which a sequence begins.
const FILE_FIRST: u64 = 1;
const LINE_FIRST: u64 = 1;

/// A unit.
pub(super) struct Unit<'data> {
    version: u16,
    instruction_bytes_min: u8,
    line_base: i8,
    line_range: u8,
    opcode_base: u8,
    /// Operands of each standard opcode, from opcode 1 on.
    operand_counts: &'data [u8],
    tables: Slice<'data>,
    program: Slice<'data>,
}

/// Location of a name's text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Text<'data> {
    /// In the table itself.
    Inline(&'data [u8]),
    /// In `.debug_line_str` from this byte on.
    LineStrings(u32),
    /// In `.debug_str` from this byte on.
    Strings(u32),
    /// Elsewhere; such forms are not supported.
    Unknown,
}

/// One entry of a table of names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Name<'data> {
    pub text: Text<'data>,
    /// Number of the folder that contains the file.
    pub directory: u64,
}

/// From `address` on, the code comes from this line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub address: u64,
    pub file: u64,
    pub line: u64,
    /// The sequence ends here; file and line have no meaning.
    pub is_end: bool,
}

/// Takes the next unit off the section. The outer `None` means that there is no further unit; the inner, that it
/// cannot be read.
pub(super) fn next<'data>(section: &mut Slice<'data>) -> Option<Option<Unit<'data>>> {
    let length = section.read_u32().ok().filter(|length| *length < LENGTH_RESERVED)?;
    let unit = section.split(length as usize).ok()?;
    Some(Unit::parse(unit))
}

impl<'data> Unit<'data> {
    fn parse(mut rest: Slice<'data>) -> Option<Unit<'data>> {
        let version = rest.read_u16().ok().filter(|version| (2..=5).contains(version))?;
        if version >= 5 {
            let _address_bytes = rest.read_u8().ok()?;
            let _segment_selector_bytes = rest.read_u8().ok().filter(|bytes| *bytes == 0)?;
        }
        let header_bytes = rest.read_u32().ok()?;
        let mut header = rest.split(header_bytes as usize).ok()?;
        let instruction_bytes_min = header.read_u8().ok()?;
        if version >= 4 {
            let _operations = header.read_u8().ok().filter(|operations| *operations == 1)?;
        }
        let _is_statement = header.read_u8().ok()?;
        let line_base = header.read_i8().ok()?;
        let line_range = header.read_u8().ok().filter(|range| *range > 0)?;
        let opcode_base = header.read_u8().ok()?;
        let operand_counts = header.split(usize::from(opcode_base.checked_sub(1)?)).ok()?.slice();
        Some(Unit {
            version,
            instruction_bytes_min,
            line_base,
            line_range,
            opcode_base,
            operand_counts,
            tables: header,
            program: rest,
        })
    }

    /// True if files and folders are counted from 0, as from version 5 on.
    pub fn counts_from_zero(&self) -> bool {
        self.version >= 5
    }

    /// Calls back with every folder, then with every file, in order; `None` if the tables are malformed.
    pub fn names(
        &self,
        mut folder: impl FnMut(Text<'data>),
        mut file: impl FnMut(Name<'data>),
    ) -> Option<()> {
        let mut rest = self.tables;
        if self.version >= 5 {
            described(&mut rest, |name| folder(name.text))?;
            return described(&mut rest, file);
        }
        loop {
            let text = rest.read_null_terminated_slice().ok()?.slice();
            if text.is_empty() {
                break;
            }
            folder(Text::Inline(text));
        }
        loop {
            let text = rest.read_null_terminated_slice().ok()?.slice();
            if text.is_empty() {
                return Some(());
            }
            let directory = rest.read_uleb128().ok()?;
            let (_time, _length) = (rest.read_uleb128().ok()?, rest.read_uleb128().ok()?);
            file(Name { text: Text::Inline(text), directory });
        }
    }

    /// Runs the program and calls back with every row until the callback returns false. An invalid program ends at
    /// the error.
    pub fn rows(&self, mut keep: impl FnMut(Row) -> bool) {
        let mut state = Row { address: 0, file: FILE_FIRST, line: LINE_FIRST, is_end: false };
        let mut rest = self.program;
        while !rest.is_empty() {
            let Some(has_row) = self.step(&mut rest, &mut state) else { return };
            if has_row {
                if !keep(state) {
                    return;
                }
                if state.is_end {
                    state = Row { address: 0, file: FILE_FIRST, line: LINE_FIRST, is_end: false };
                }
            }
        }
    }

    /// Executes one instruction. Returns whether it makes a row.
    fn step(&self, rest: &mut Slice<'data>, state: &mut Row) -> Option<bool> {
        let opcode = rest.read_u8().ok()?;
        if opcode >= self.opcode_base {
            let adjusted = opcode - self.opcode_base;
            self.advance(state, (adjusted / self.line_range).into());
            let lines = i64::from(self.line_base) + i64::from(adjusted % self.line_range);
            state.line = state.line.wrapping_add_signed(lines);
            return Some(true);
        }
        match constants::DwLns(opcode) {
            // Extended opcodes begin with 0.
            constants::DwLns(0) => return self.extended(rest, state),
            constants::DW_LNS_copy => return Some(true),
            constants::DW_LNS_advance_pc => self.advance(state, rest.read_uleb128().ok()?),
            constants::DW_LNS_advance_line => {
                state.line = state.line.wrapping_add_signed(rest.read_sleb128().ok()?);
            }
            constants::DW_LNS_set_file => state.file = rest.read_uleb128().ok()?,
            constants::DW_LNS_const_add_pc => {
                let adjusted = u8::MAX - self.opcode_base;
                self.advance(state, (adjusted / self.line_range).into());
            }
            constants::DW_LNS_fixed_advance_pc => {
                state.address = state.address.wrapping_add(rest.read_u16().ok()?.into());
            }
            // Columns and flags, which rows do not have, and unknown opcodes: the header states the operands.
            _ => {
                let operands = *self.operand_counts.get(usize::from(opcode.checked_sub(1)?))?;
                for _ in 0..operands {
                    rest.read_uleb128().ok()?;
                }
            }
        }
        Some(false)
    }

    /// DW_LNE_define_file, which no compiler writes, is skipped like unknown opcodes.
    fn extended(&self, rest: &mut Slice<'data>, state: &mut Row) -> Option<bool> {
        let length = usize::try_from(rest.read_uleb128().ok()?).ok()?;
        let mut instruction = rest.split(length).ok()?;
        match constants::DwLne(instruction.read_u8().ok()?) {
            constants::DW_LNE_end_sequence => {
                state.is_end = true;
                return Some(true);
            }
            constants::DW_LNE_set_address => {
                state.address = match instruction.len() {
                    8 => instruction.read_u64().ok()?,
                    4 => instruction.read_u32().ok()?.into(),
                    _ => return None,
                };
            }
            _ => {}
        }
        Some(false)
    }

    fn advance(&self, state: &mut Row, operations: u64) {
        let bytes = u64::from(self.instruction_bytes_min).wrapping_mul(operations);
        state.address = state.address.wrapping_add(bytes);
    }
}

/// A table of version 5, which describes its own entries.
fn described<'data>(rest: &mut Slice<'data>, mut entry: impl FnMut(Name<'data>)) -> Option<()> {
    let field_count = rest.read_u8().ok()?;
    let fields_at = *rest;
    let mut has_path = false;
    for _ in 0..field_count {
        has_path |= field(rest)?.0 == constants::DW_LNCT_path;
    }
    let count = rest.read_uleb128().ok()?;
    // An entry with a path has at least one byte.
    if count > 0 && !has_path {
        return None;
    }
    for _ in 0..count {
        let mut fields = fields_at;
        let mut name = Name { text: Text::Unknown, directory: 0 };
        for _ in 0..field_count {
            let (content, form) = field(&mut fields)?;
            match content {
                constants::DW_LNCT_path => name.text = text(rest, form)?,
                constants::DW_LNCT_directory_index => name.directory = number(rest, form)?,
                _ => skip(rest, form)?,
            }
        }
        entry(name);
    }
    Some(())
}

/// Content and form of a field.
fn field(rest: &mut Slice<'_>) -> Option<(constants::DwLnct, DwForm)> {
    let content = constants::DwLnct(u16::try_from(rest.read_uleb128().ok()?).ok()?);
    Some((content, DwForm(u16::try_from(rest.read_uleb128().ok()?).ok()?)))
}

fn text<'data>(rest: &mut Slice<'data>, form: DwForm) -> Option<Text<'data>> {
    Some(match form {
        constants::DW_FORM_string => Text::Inline(rest.read_null_terminated_slice().ok()?.slice()),
        constants::DW_FORM_line_strp => Text::LineStrings(rest.read_u32().ok()?),
        constants::DW_FORM_strp => Text::Strings(rest.read_u32().ok()?),
        _ => {
            skip(rest, form)?;
            Text::Unknown
        }
    })
}

/// A number; 0 in forms that hold none.
fn number(rest: &mut Slice<'_>, form: DwForm) -> Option<u64> {
    Some(match form {
        constants::DW_FORM_udata => rest.read_uleb128().ok()?,
        constants::DW_FORM_data1 => rest.read_u8().ok()?.into(),
        constants::DW_FORM_data2 => rest.read_u16().ok()?.into(),
        constants::DW_FORM_data4 => rest.read_u32().ok()?.into(),
        constants::DW_FORM_data8 => rest.read_u64().ok()?,
        _ => {
            skip(rest, form)?;
            0
        }
    })
}

/// Skips a field; `None` for forms that a line table does not have.
fn skip(rest: &mut Slice<'_>, form: DwForm) -> Option<()> {
    let bytes = match form {
        constants::DW_FORM_data1 | constants::DW_FORM_flag | constants::DW_FORM_strx1 => 1,
        constants::DW_FORM_data2 | constants::DW_FORM_strx2 => 2,
        constants::DW_FORM_strx3 => 3,
        constants::DW_FORM_data4
        | constants::DW_FORM_strx4
        | constants::DW_FORM_sec_offset
        | constants::DW_FORM_strp
        | constants::DW_FORM_strp_sup
        | constants::DW_FORM_line_strp => 4,
        constants::DW_FORM_data8 => 8,
        constants::DW_FORM_data16 => 16,
        constants::DW_FORM_udata | constants::DW_FORM_sdata | constants::DW_FORM_strx => {
            rest.skip_leb128().ok()?;
            0
        }
        constants::DW_FORM_string => {
            rest.read_null_terminated_slice().ok()?;
            0
        }
        constants::DW_FORM_block1 => rest.read_u8().ok()?.into(),
        constants::DW_FORM_block2 => rest.read_u16().ok()?.into(),
        constants::DW_FORM_block4 => rest.read_u32().ok()? as usize,
        constants::DW_FORM_block => usize::try_from(rest.read_uleb128().ok()?).ok()?,
        _ => return None,
    };
    rest.skip(bytes).ok()
}

#[cfg(test)]
mod tests;
