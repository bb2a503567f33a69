//! Code objects of a few kernels for tests, with writable data between code and descriptors.

use crate::elf_file::{ALLOC, ARGUMENTS, Content, EXECUTE, ElfFile, PROGBITS, WRITE, descriptor_with};
use crate::message_pack::{list, map, number, text};
use zrt_loader::Program;

/// Distance of kernels from each other in bytes, a multiple of 256.
pub const KERNEL_BYTES: usize = 512;
/// Length of the writable data in bytes.
pub const DATA_BYTES: usize = 64;

/// A kernel of wave32.
#[derive(Clone, Copy)]
pub struct Small<'a> {
    pub name: &'a str,
    pub words: &'a [u32],
    /// Which pairs of user SGPRs it has: s[0:1] and the following ones, in the order of the bits.
    pub user_data: u16,
    /// Scratch of a lane.
    pub scratch_bytes: u32,
    /// `.value_kind` of its arguments, eight bytes each.
    pub arguments: &'a [&'a str],
}

/// A kernel that does nothing: s_endpgm.
pub const NOTHING: Small<'static> =
    Small { name: "nothing", words: &[0xbfb0_0000], user_data: ARGUMENTS, scratch_bytes: 0, arguments: &[] };

/// The program of these kernels, in the order of their names.
pub fn object(kernels: &[Small<'_>]) -> Program {
    let mut file = ElfFile::new();
    let mut code = Vec::new();
    for kernel in kernels {
        assert!(4 * kernel.words.len() <= KERNEL_BYTES);
        code.extend(kernel.words.iter().flat_map(|word| word.to_le_bytes()));
        code.resize(code.len().next_multiple_of(KERNEL_BYTES), 0);
    }
    let descriptors_at = code.len() + DATA_BYTES;
    let text = file.section(".text", PROGBITS, ALLOC | EXECUTE, Content::Own(code));
    file.section(".data", PROGBITS, ALLOC | WRITE, Content::Own(vec![0; DATA_BYTES]));
    let descriptors = (0..).zip(kernels).flat_map(|(index, kernel)| {
        let entry = KERNEL_BYTES * index;
        let entry = entry as i64 - (descriptors_at + 64 * index) as i64;
        let mut bytes = descriptor_with(entry, kernel.scratch_bytes, kernel.user_data);
        // RSRC1 grants 32 vector registers.
        bytes[48] = 3;
        bytes
    });
    let rodata = file.section(".rodata", PROGBITS, ALLOC, Content::Own(descriptors.collect()));
    for (index, kernel) in kernels.iter().enumerate() {
        file.symbol(kernel.name, text, (KERNEL_BYTES * index) as u64, 2);
        file.symbol(&format!("{}.kd", kernel.name), rodata, 64 * index as u64, 1);
    }
    file.metadata(&metadata(kernels));
    Program::parse(&file.bytes()).unwrap()
}

/// MessagePack of what the note says.
fn metadata(kernels: &[Small<'_>]) -> Vec<u8> {
    let kernel = |kernel: &Small<'_>| {
        let argument = |(index, kind): (usize, &&str)| {
            map(&[(".offset", number(8 * index as u32)), (".size", number(8)), (".value_kind", text(kind))])
        };
        let arguments: Vec<Vec<u8>> = kernel.arguments.iter().enumerate().map(argument).collect();
        map(&[
            (".symbol", text(&format!("{}.kd", kernel.name))),
            (".kernarg_segment_size", number(8 * kernel.arguments.len() as u32)),
            (".args", list(&arguments)),
        ])
    };
    let kernels: Vec<Vec<u8>> = kernels.iter().map(kernel).collect();
    map(&[("amdhsa.version", list(&[number(1), number(2)])), ("amdhsa.kernels", list(&kernels))])
}
