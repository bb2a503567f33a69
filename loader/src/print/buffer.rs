//! The printf buffer: messages that the kernel leaves behind.
//!
//! Contract: [`BUFFER_BYTES`] long. [`initial`] is its content before the launch. [`read`] converts its content
//! after the launch to text, and only counts further messages when the text is full. Sources: `__printf_alloc` of
//! AMD's device libraries (ROCm 7.0: the first dword is the bytes used, the second the bytes available; then
//! messages follow, each a multiple of 4); LLVM's `AMDGPUPrintfRuntimeBinding` (OpenCL: a number, then fields) and
//! `AMDGPUEmitPrintf` (HIP: a control dword with standard error in bit 0, a hash instead of the string in bit 1,
//! and the length above).

use super::format::Values;
use super::formats::{NumberedFormat, UNIT_BYTES};
use super::{PrintError, PrintFormats, Printed};
use std::borrow::Cow;

/// Length of a buffer in bytes.
pub const BUFFER_BYTES: usize = 4 << 20;
/// Bytes before the first message.
const HEADER_BYTES: usize = 8;
/// Fill byte of the message space until something is written.
const UNWRITTEN: u8 = 0xEE;

/// The content of a buffer before the launch.
pub fn initial() -> Vec<u8> {
    let mut bytes = vec![UNWRITTEN; BUFFER_BYTES];
    bytes[..4].fill(0);
    bytes[4..HEADER_BYTES].copy_from_slice(&((BUFFER_BYTES - HEADER_BYTES) as u32).to_le_bytes());
    bytes
}

/// Appends the text of all messages. The text before an error stays.
pub fn read(buffer: &[u8], formats: &PrintFormats, printed: &mut Printed) -> Result<(), PrintError> {
    let (Some(used), Some(room)) = (dword(buffer), buffer.get(HEADER_BYTES..)) else { return Ok(()) };
    let used = used as usize;
    let mut rest = &room[..used.min(room.len())];
    let mut offset = 0;
    while !rest.is_empty() {
        let length = match formats.has_numbers() {
            true => numbered(rest, formats, printed),
            false => controlled(rest, formats, printed),
        };
        // If the buffer was full, its last message is truncated.
        let length = match length {
            Err(Trouble::Record(_)) if used > room.len() => break,
            Err(Trouble::Record(what)) => return Err(PrintError::Record { offset, what }),
            Err(Trouble::Print(error)) => return Err(error),
            Ok(length) => length,
        };
        rest = &rest[length..];
        offset += length;
    }
    if used > room.len() { Err(PrintError::Full { bytes: room.len() }) } else { Ok(()) }
}

/// Why a message cannot be read.
enum Trouble {
    Record(String),
    Print(PrintError),
}

impl From<PrintError> for Trouble {
    fn from(error: PrintError) -> Trouble {
        Trouble::Print(error)
    }
}

fn dword(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_le_bytes(*four))
}

fn beyond(length: usize) -> Trouble {
    Trouble::Record(format!("a message of {length} bytes goes beyond the end"))
}

/// Appends a message of OpenCL. Returns its length.
fn numbered(rest: &[u8], formats: &PrintFormats, printed: &mut Printed) -> Result<usize, Trouble> {
    let number = dword(rest).ok_or_else(|| beyond(UNIT_BYTES))?;
    let format = formats
        .of_number(number)
        .ok_or_else(|| Trouble::Record(format!("there is no format string {number:#x}")))?;
    let length = format.length;
    let fields = rest.get(UNIT_BYTES..length).ok_or_else(|| beyond(length))?;
    if printed.is_full() {
        printed.drop_message();
        return Ok(length);
    }
    let sizes = stored_sizes(format, fields);
    printed.message(&format.text, Values::Fields { bytes: fields, sizes: &sizes }, false)?;
    Ok(length)
}

/// The field sizes of a message as stored. LLVM up to 22 counts the NUL of a string in the metadata but does not
/// store it. So after a string of 4, 8, … bytes, everything is 4 bytes earlier, and the message ends with that many
/// unwritten bytes.
fn stored_sizes<'f>(format: &'f NumberedFormat, fields: &[u8]) -> Cow<'f, [u32]> {
    let mut strings = format.strings.as_slice();
    let unwritten =
        fields.rchunks_exact(UNIT_BYTES).take_while(|unit| **unit == [UNWRITTEN; UNIT_BYTES]).count();
    if unwritten == 0 || unwritten > strings.len() {
        return Cow::Borrowed(&format.sizes);
    }
    let mut sizes = format.sizes.clone();
    let mut left = unwritten;
    let mut at = 0;
    for (argument, size) in sizes.iter_mut().enumerate() {
        if let Some((_, later)) = strings.split_first().filter(|(string, _)| **string == argument) {
            // The last dword of a shorter string has at least one byte, with zeros after it.
            let end = at + *size as usize;
            let last = fields.get(end - UNIT_BYTES..end).unwrap_or_default();
            let is_stored = last.first().is_some_and(|byte| *byte != 0) && last.last() == Some(&0);
            if left > 0 && (!is_stored || strings.len() <= left) {
                *size -= UNIT_BYTES as u32;
                left -= 1;
            }
            strings = later;
        }
        at += (*size as usize).next_multiple_of(UNIT_BYTES);
    }
    Cow::Owned(sizes)
}

/// Appends a message of HIP. Returns its length.
fn controlled(rest: &[u8], formats: &PrintFormats, printed: &mut Printed) -> Result<usize, Trouble> {
    const STANDARD_ERROR: u32 = 1;
    const HASHED: u32 = 2;
    let control = dword(rest).ok_or_else(|| beyond(UNIT_BYTES))?;
    let length = (control >> 2) as usize;
    if length < UNIT_BYTES || length % UNIT_BYTES != 0 {
        return Err(Trouble::Record(format!("the control word {control:#x} states {length} bytes")));
    }
    let content = rest.get(UNIT_BYTES..length).ok_or_else(|| beyond(length))?;
    if printed.is_full() {
        printed.drop_message();
        return Ok(length);
    }
    let is_complaint = control & STANDARD_ERROR != 0;
    if control & HASHED == 0 {
        let mut values = Values::Slots(content);
        let format = values.string().unwrap_or_default();
        printed.message(format, values, is_complaint)?;
        return Ok(length);
    }
    let (hash, arguments) =
        content.split_first_chunk().ok_or_else(|| Trouble::Record("a message has no hash".into()))?;
    let hash = u64::from_le_bytes(*hash);
    let format = formats
        .of_hash(hash)
        .ok_or_else(|| Trouble::Record(format!("there is no format string with the hash {hash:#x}")))?;
    printed.message(format.as_bytes(), Values::Slots(arguments), is_complaint)?;
    Ok(length)
}

#[cfg(test)]
mod tests;
