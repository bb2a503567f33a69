//! Code objects for tests: kernels of hand-assembled words, as compilers' output is loaded.

#[allow(dead_code)]
#[path = "../../../loader/tests/data/elf_file.rs"]
pub mod elf_file;

use elf_file::{
    ALLOC, ARGUMENTS, Content, DISPATCH_PACKET, DYNAMIC_STACK, EXECUTE, ElfFile, PROGBITS, descriptor_with,
};

/// Length of a kernel descriptor.
const DESCRIPTOR_BYTES: usize = 64;
/// Alignment of code.
const CODE_BYTES: usize = 256;

/// What kernels have besides their code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Bytes of LDS.
    pub lds_bytes: u32,
    /// Bytes of scratch for a lane.
    pub scratch_bytes: u32,
    /// More scratch may be needed, for calls.
    pub has_dynamic_stack: bool,
    /// `s[0:1]` is the address of the dispatch packet, and that of the arguments follows it.
    pub has_packet: bool,
}

/// An object with kernels `p0`, `p1` and so on, all with the same code, which has the address of the arguments in
/// `s[0:1]`. Their code does not begin at the beginning of the image.
pub fn object(kernels: usize, code: &[u32], needs: Needs) -> Vec<u8> {
    let mut file = ElfFile::new();
    let text_at = (kernels * DESCRIPTOR_BYTES).next_multiple_of(CODE_BYTES) as i64;
    let descriptors =
        (0..kernels).flat_map(|index| described(text_at - (index * DESCRIPTOR_BYTES) as i64, needs));
    let data = file.section(".rodata", PROGBITS, ALLOC, Content::Own(descriptors.collect()));
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let bytes = code.len() as u64;
    let text = file.section(".text", PROGBITS, ALLOC | EXECUTE, Content::Own(code));
    file.sections[text].alignment = CODE_BYTES as u64;
    for index in 0..kernels {
        symbol(&mut file, &format!("p{index}"), text, 0, (2, bytes));
        symbol(&mut file, &format!("p{index}.kd"), data, (index * DESCRIPTOR_BYTES) as u64, (1, 64));
    }
    file.bytes()
}

/// Adds a symbol with a kind and a length.
pub fn symbol(file: &mut ElfFile, name: &str, section: usize, value: u64, (kind, bytes): (u8, u64)) {
    let index = file.symbol(name, section, value, kind);
    file.place_symbol(index, value, bytes);
}

fn described(entry: i64, needs: Needs) -> [u8; DESCRIPTOR_BYTES] {
    let stack = if needs.has_dynamic_stack { DYNAMIC_STACK } else { 0 };
    let packet = if needs.has_packet { DISPATCH_PACKET } else { 0 };
    let mut bytes = descriptor_with(entry, needs.scratch_bytes, ARGUMENTS | stack | packet);
    bytes[..4].copy_from_slice(&needs.lds_bytes.to_le_bytes());
    bytes
}
