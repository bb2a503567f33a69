//! How the fuzz target `print` interprets an input: the bytes that a kernel and its code object leave for printf.
//!
//! The first byte selects the form. 0: requests of a service number and a slot each (hostcalls). 1: a printf
//! buffer. Else: the length of a list of format strings (two bytes, little-endian), the strings with a zero byte
//! between them, and a printf buffer.

use super::elf_file::ElfFile;
use zrt_loader::Program;
use zrt_loader::print::hostcall::{SLOT_BYTES, Services};
use zrt_loader::print::{PrintFormats, Printed, buffer};

/// Longest list of format strings, in bytes.
const FORMATS_BYTES_MAX: usize = 4096;

/// The text for an input; `None` if the loader refuses its format strings.
pub fn printed(input: &[u8]) -> Option<Printed> {
    let mut printed = Printed::default();
    match input.split_first() {
        Some((0, requests)) => serve(requests, &mut printed),
        Some((1, content)) => {
            let _ = buffer::read(content, &PrintFormats::default(), &mut printed);
        }
        Some((_, content)) => {
            let (length, content) = content.split_first_chunk()?;
            let length = usize::from(u16::from_le_bytes(*length)).min(FORMATS_BYTES_MAX);
            let (formats, content) = content.split_at_checked(length)?;
            let mut file = ElfFile::with_kernel();
            file.metadata(&metadata(formats));
            let program = Program::parse(&file.bytes()).ok()?;
            let _ = buffer::read(content, program.print_formats(), &mut printed);
        }
        None => {}
    }
    Some(printed)
}

/// Answers requests until one is refused.
fn serve(requests: &[u8], printed: &mut Printed) {
    let mut services = Services::default();
    for request in requests.chunks_exact(1 + SLOT_BYTES) {
        let mut slot = [0; SLOT_BYTES / 8];
        for (quadword, bytes) in slot.iter_mut().zip(request[1..].as_chunks().0) {
            *quadword = u64::from_le_bytes(*bytes);
        }
        if services.answer(request[0].into(), slot, printed).is_err() {
            return;
        }
    }
}

/// MessagePack: a map of the version, no kernel, and the format strings.
fn metadata(formats: &[u8]) -> Vec<u8> {
    let list: Vec<&[u8]> = formats.split(|byte| *byte == 0).collect();
    let head =
        [&[0x83, 0xAE][..], b"amdhsa.version", &[0x92, 1, 2, 0xAE], b"amdhsa.kernels", &[0x90]].concat();
    let mut bytes =
        [&head[..], &[0xAD], b"amdhsa.printf", &[0xDC], &(list.len() as u16).to_be_bytes()].concat();
    for format in list {
        bytes.push(0xDA);
        bytes.extend((format.len() as u16).to_be_bytes());
        bytes.extend(format);
    }
    bytes
}
