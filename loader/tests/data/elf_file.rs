//! Writes valid and hostile ELF files: tests define the sections, segments and symbols, and their contents.

/// The source of a section's bytes.
#[derive(Clone)]
pub enum Content {
    /// Bytes of its own.
    Own(Vec<u8>),
    /// The bytes of an earlier section.
    Shared(usize),
    /// No bytes, but a length: SHT_NOBITS.
    Zeros(u64),
}

/// One section.
#[derive(Clone)]
pub struct Section {
    pub name: u32,
    pub kind: u32,
    pub flags: u64,
    pub link: u32,
    pub info: u32,
    pub alignment: u64,
    pub content: Content,
}

/// One program header of type PT_LOAD.
#[derive(Clone, Copy)]
pub struct Load {
    /// PF_X, PF_W, PF_R.
    pub flags: u32,
    /// The section whose bytes it maps.
    pub section: usize,
    pub address: u64,
    pub memory_bytes: u64,
}

/// A file under construction. Section 0 exists from the start; the last section holds the section names.
pub struct ElfFile {
    pub sections: Vec<Section>,
    pub loads: Vec<Load>,
    pub is_linked: bool,
    pub flags: u32,
    pub abi_version: u8,
    /// Section names, NUL first.
    pub names: Vec<u8>,
    pub symbols: Vec<u8>,
    pub strings: Vec<u8>,
}

pub const PROGBITS: u32 = 1;
pub const SYMTAB: u32 = 2;
pub const STRTAB: u32 = 3;
pub const RELA: u32 = 4;
pub const NOTE: u32 = 7;
pub const NOBITS: u32 = 8;
pub const WRITE: u64 = 1;
pub const ALLOC: u64 = 2;
pub const EXECUTE: u64 = 4;
pub const COMPRESSED: u64 = 0x800;
/// Length of a symbol.
const SYMBOL_BYTES: usize = 24;
/// Bits of a descriptor's properties (LLVM's "User Guide for AMDGPU Backend", kernel descriptor): `s[0:1]` and the
/// following pairs hold addresses of these, in the order of the bits; more scratch may be needed, for calls.
pub const DISPATCH_PACKET: u16 = 1 << 1;
pub const ARGUMENTS: u16 = 1 << 3;
pub const DISPATCH_ID: u16 = 1 << 4;
pub const DYNAMIC_STACK: u16 = 1 << 11;
/// Index of `.text` and `.rodata` in a file of [`ElfFile::with_kernel`].
pub const TEXT: usize = 1;
pub const RODATA: usize = 2;
/// Index of the symbol `k` in such a file.
pub const KERNEL: usize = 1;
/// Length of the code of the kernel of [`ElfFile::with_kernel`], in bytes.
pub const CODE_BYTES: usize = 256;

impl ElfFile {
    /// An empty object for gfx1201.
    pub fn new() -> ElfFile {
        let null = Section {
            name: 0,
            kind: 0,
            flags: 0,
            link: 0,
            info: 0,
            alignment: 0,
            content: Content::Own(Vec::new()),
        };
        ElfFile {
            sections: vec![null],
            loads: Vec::new(),
            is_linked: false,
            flags: 0x4E,
            abi_version: 3,
            names: vec![0],
            symbols: vec![0; SYMBOL_BYTES],
            strings: vec![0],
        }
    }

    /// An object with one kernel, `k`: 256 bytes of s_nop preceded by an s_endpgm, wave32, one pair of user SGPRs.
    pub fn with_kernel() -> ElfFile {
        let mut file = ElfFile::new();
        let mut code: Vec<u8> = 0xBFB0_0000u32.to_le_bytes().into();
        code.resize(CODE_BYTES, 0);
        file.section(".text", PROGBITS, ALLOC | EXECUTE, Content::Own(code));
        // `.rodata` follows the code.
        let descriptor = descriptor(-(CODE_BYTES as i64));
        file.section(".rodata", PROGBITS, ALLOC, Content::Own(descriptor.into()));
        file.symbol("k", TEXT, 0, 2);
        file.symbol("k.kd", RODATA, 0, 1);
        file
    }

    /// Adds a section. Returns its index.
    pub fn section(&mut self, name: &str, kind: u32, flags: u64, content: Content) -> usize {
        let name_at = self.names.len() as u32;
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        self.sections.push(Section { name: name_at, kind, flags, link: 0, info: 0, alignment: 4, content });
        self.sections.len() - 1
    }

    /// Adds a global symbol of a type (0 for a label, 1 data, 2 function). Returns its index.
    pub fn symbol(&mut self, name: &str, section: usize, value: u64, kind: u8) -> usize {
        let name_at = self.strings.len() as u32;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        self.symbol_at(name_at, section, value, kind);
        self.symbols.len() / SYMBOL_BYTES - 1
    }

    /// Gives a symbol another value, and a length.
    pub fn place_symbol(&mut self, index: usize, value: u64, bytes: u64) {
        let entry = &mut self.symbols[SYMBOL_BYTES * index..][..SYMBOL_BYTES];
        entry[8..16].copy_from_slice(&value.to_le_bytes());
        entry[16..24].copy_from_slice(&bytes.to_le_bytes());
    }

    /// The same with the offset of its name.
    pub fn symbol_at(&mut self, name_at: u32, section: usize, value: u64, kind: u8) {
        self.symbols.extend_from_slice(&name_at.to_le_bytes());
        self.symbols.extend_from_slice(&[1 << 4 | kind, 0]);
        self.symbols.extend_from_slice(&(section as u16).to_le_bytes());
        self.symbols.extend_from_slice(&value.to_le_bytes());
        self.symbols.extend_from_slice(&0u64.to_le_bytes());
    }

    /// Adds the note with this metadata.
    pub fn metadata(&mut self, content: &[u8]) -> usize {
        let content = Content::Own(note(content));
        self.section(".note", NOTE, ALLOC, content)
    }

    /// The file's bytes.
    pub fn bytes(mut self) -> Vec<u8> {
        let symbols = std::mem::take(&mut self.symbols);
        let strings = std::mem::take(&mut self.strings);
        let strings = self.section(".strtab", STRTAB, 0, Content::Own(strings));
        let table = self.section(".symtab", SYMTAB, 0, Content::Own(symbols));
        self.sections[table].link = strings as u32;
        let names_at = self.names.len() as u32;
        self.names.extend_from_slice(b".shstrtab\0");
        let names = Content::Own(std::mem::take(&mut self.names));
        let null = self.sections[0].clone();
        self.sections.push(Section { name: names_at, kind: STRTAB, content: names, ..null });

        let headers_bytes = 64 + self.loads.len() * 56;
        let mut bytes = vec![0; headers_bytes];
        let mut places: Vec<(u64, u64)> = Vec::new();
        for section in &self.sections {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let place = match &section.content {
                Content::Own(own) => {
                    bytes.extend_from_slice(own);
                    ((bytes.len() - own.len()) as u64, own.len() as u64)
                }
                Content::Shared(index) => places[*index],
                Content::Zeros(length) => (bytes.len() as u64, *length),
            };
            places.push(place);
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let table_at = bytes.len() as u64;
        for (index, (section, (offset, length))) in self.sections.iter().zip(&places).enumerate() {
            // If the counts do not fit the header, the first section holds them.
            let is_long = index == 0 && self.sections.len() >= 0xFF00;
            let (length, link) = match is_long {
                true => (self.sections.len() as u64, self.sections.len() as u32 - 1),
                false => (*length, section.link),
            };
            let entry_bytes: u64 = match section.kind {
                SYMTAB | RELA => 24,
                _ => 0,
            };
            for dword in [section.name, section.kind] {
                bytes.extend_from_slice(&dword.to_le_bytes());
            }
            for wide in [section.flags, 0, if index == 0 { 0 } else { *offset }, length] {
                bytes.extend_from_slice(&wide.to_le_bytes());
            }
            for dword in [link, section.info] {
                bytes.extend_from_slice(&dword.to_le_bytes());
            }
            for wide in [section.alignment, entry_bytes] {
                bytes.extend_from_slice(&wide.to_le_bytes());
            }
        }
        self.write_headers(&mut bytes, &places, table_at);
        bytes
    }

    fn write_headers(&self, bytes: &mut [u8], places: &[(u64, u64)], table_at: u64) {
        let count = self.sections.len();
        let (count, last) = if count >= 0xFF00 { (0, 0xFFFF) } else { (count as u16, count as u16 - 1) };
        let mut header: Vec<u8> = b"\x7fELF\x02\x01\x01\x40".into();
        header.push(self.abi_version);
        header.resize(16, 0);
        header.extend_from_slice(&if self.is_linked { 3u16 } else { 1 }.to_le_bytes());
        header.extend_from_slice(&0xE0u16.to_le_bytes());
        header.extend_from_slice(&1u32.to_le_bytes());
        for wide in [0, if self.loads.is_empty() { 0 } else { 64 }, table_at] {
            header.extend_from_slice(&u64::to_le_bytes(wide));
        }
        header.extend_from_slice(&self.flags.to_le_bytes());
        for half in [64, 56, self.loads.len() as u16, 64, count, last] {
            header.extend_from_slice(&half.to_le_bytes());
        }
        for load in &self.loads {
            let (offset, length) = places[load.section];
            header.extend_from_slice(&1u32.to_le_bytes());
            header.extend_from_slice(&load.flags.to_le_bytes());
            for wide in [offset, load.address, load.address, length, load.memory_bytes, 4096] {
                header.extend_from_slice(&wide.to_le_bytes());
            }
        }
        bytes[..header.len()].copy_from_slice(&header);
    }
}

/// A descriptor of wave32 with the arguments in s[0:1], whose code begins `entry` bytes after it.
pub fn descriptor(entry: i64) -> [u8; 64] {
    descriptor_with(entry, 0, ARGUMENTS)
}

/// The same with so much scratch for a lane, and these properties.
pub fn descriptor_with(entry: i64, scratch_bytes: u32, properties: u16) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[4..8].copy_from_slice(&scratch_bytes.to_le_bytes());
    bytes[16..24].copy_from_slice(&entry.to_le_bytes());
    // RSRC1 as compilers write it; RSRC2: scratch, user SGPRs, the workgroup's id; wave32.
    bytes[48..52].copy_from_slice(&0x600F_0001u32.to_le_bytes());
    let user_sgprs = 2 * (properties & (DISPATCH_PACKET | ARGUMENTS | DISPATCH_ID)).count_ones();
    let rsrc2 = u32::from(scratch_bytes > 0) | user_sgprs << 1 | 1 << 7;
    bytes[52..56].copy_from_slice(&rsrc2.to_le_bytes());
    bytes[56..58].copy_from_slice(&(1 << 10 | properties).to_le_bytes());
    bytes
}

/// An NT_AMDGPU_METADATA note.
pub fn note(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for dword in [7, content.len() as u32, 32] {
        bytes.extend_from_slice(&dword.to_le_bytes());
    }
    bytes.extend_from_slice(b"AMDGPU\0\0");
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
