//! Storage formats of keys and values: lengths of rows and pages, and the kernels that write and read them.
//!
//! Contract: pure numbers of the layout that `docs/kernels.md` defines; nothing is stored or read here.

use zrt_protocol::PAGE_TOKENS;

/// Row lengths are a multiple of this, so that each row is aligned for 128-bit loads.
const ROW_ALIGNMENT_BYTES: u32 = 16;
/// Elements of a Q8_0 block.
const BLOCK_ELEMENTS: u32 = 32;
/// Bytes of a Q8_0 block: its quants and its f16 factor.
const BLOCK_BYTES: u32 = BLOCK_ELEMENTS + 2;

/// Element format of the key-value cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(non_camel_case_types)]
pub enum KvFormat {
    /// Elements as computed.
    #[default]
    F32,
    /// Elements rounded to f16.
    F16,
    /// Blocks of 32 int8 with a common f16 factor.
    Q8_0,
}

impl KvFormat {
    /// Every format.
    pub const ALL: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];

    /// The name on command lines and at the end of kernel names.
    pub const fn name(self) -> &'static str {
        match self {
            KvFormat::F32 => "f32",
            KvFormat::F16 => "f16",
            KvFormat::Q8_0 => "q8_0",
        }
    }

    /// The format of this name.
    pub fn parse(name: &str) -> Option<KvFormat> {
        KvFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Bytes of one token's key (or value) row of one layer as stored.
    pub const fn row_bytes(self, row_elements: u32) -> u32 {
        let bytes = match self {
            KvFormat::F32 => row_elements * 4,
            KvFormat::F16 => row_elements * 2,
            KvFormat::Q8_0 => row_elements.div_ceil(BLOCK_ELEMENTS) * BLOCK_BYTES,
        };
        bytes.next_multiple_of(ROW_ALIGNMENT_BYTES)
    }

    /// Bytes that a layer takes in a page: the keys of its tokens, then their values. Layer n starts at
    /// n times this.
    pub const fn layer_bytes(self, row_elements: u32) -> u64 {
        2 * PAGE_TOKENS as u64 * self.row_bytes(row_elements) as u64
    }

    /// Bytes of a page of all layers.
    pub const fn page_bytes(self, layers: u32, row_elements: u32) -> u64 {
        layers as u64 * self.layer_bytes(row_elements)
    }

    /// The kernel that stores rows.
    pub const fn write_kernel(self) -> &'static str {
        match self {
            KvFormat::F32 => "kv_write_f32",
            KvFormat::F16 => "kv_write_f16",
            KvFormat::Q8_0 => "kv_write_q8_0",
        }
    }

    /// The kernel that attends over stored rows.
    pub const fn attention_kernel(self) -> &'static str {
        match self {
            KvFormat::F32 => "attention_f32",
            KvFormat::F16 => "attention_f16",
            KvFormat::Q8_0 => "attention_q8_0",
        }
    }
}

impl std::fmt::Display for KvFormat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::KvFormat::{self, F16, F32, Q8_0};

    #[test]
    fn rows_and_pages_have_the_lengths_of_the_layout() {
        // 40 elements: 160 B; 80 B; two blocks of 34 B and 12 B of padding.
        assert_eq!([F32, F16, Q8_0].map(|format| format.row_bytes(40)), [160, 80, 80]);
        assert_eq!([F32, F16, Q8_0].map(|format| format.row_bytes(1024)), [4096, 2048, 1088]);
        // 12 elements: a row of f16 and a single short block are padded too.
        assert_eq!([F32, F16, Q8_0].map(|format| format.row_bytes(12)), [48, 32, 48]);
        // 80 layers × 2 × 16 tokens × 4096 B, and × 1088 B.
        assert_eq!(F32.page_bytes(80, 1024), 10_485_760);
        assert_eq!(Q8_0.page_bytes(80, 1024), 2_785_280);
        assert_eq!(Q8_0.layer_bytes(1024) * 80, Q8_0.page_bytes(80, 1024));
    }

    #[test]
    fn names_are_read_back_and_every_kernel_exists() {
        for format in KvFormat::ALL {
            assert_eq!(KvFormat::parse(format.name()), Some(format));
            for kernel in [format.write_kernel(), format.attention_kernel()] {
                assert!(kernel.ends_with(format.name()));
                assert!(zrt_asm::blob(kernel).is_some(), "{kernel}");
            }
        }
        assert_eq!(KvFormat::parse("q4_0"), None);
        assert_eq!(format!("{F32} {F16} {Q8_0}"), "f32 f16 q8_0");
    }
}
