//! The storage types of tensors: identifier, block length, block size.
//!
//! Contract: constants only. Numbers are those of ggml's `ggml_type` enumeration and block structures (`ggml.h`,
//! `ggml-common.h`); not every type in this list can be read by a kernel. Numbers from 2^16 on are our own, for types
//! of safetensors files as [`crate::safetensors`] presents them; no GGUF writer uses them.

use std::fmt;

macro_rules! kinds {
    ($($variant:ident = $id:literal, $name:literal, $elements:literal, $bytes:literal, $doc:literal;)*) => {
        /// Storage type of a tensor's elements, as GGUF numbers them.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TensorKind {
            $(#[doc = $doc] $variant,)*
        }

        impl TensorKind {
            /// Every type known here.
            pub const ALL: &[TensorKind] = &[$(TensorKind::$variant),*];

            /// The type with GGUF's number `id`.
            pub const fn from_id(id: u32) -> Option<TensorKind> {
                match id {
                    $($id => Some(TensorKind::$variant),)*
                    _ => None,
                }
            }

            /// GGUF's number of the type.
            pub const fn id(self) -> u32 {
                match self {
                    $(TensorKind::$variant => $id,)*
                }
            }

            /// The name ggml prints.
            pub const fn name(self) -> &'static str {
                match self {
                    $(TensorKind::$variant => $name,)*
                }
            }

            /// Elements of one block; rows are whole blocks.
            pub const fn block_elements(self) -> u64 {
                match self {
                    $(TensorKind::$variant => $elements,)*
                }
            }

            /// Bytes of one block.
            pub const fn block_bytes(self) -> u64 {
                match self {
                    $(TensorKind::$variant => $bytes,)*
                }
            }
        }
    };
}

kinds! {
    F32 = 0, "F32", 1, 4, "IEEE binary32.";
    F16 = 1, "F16", 1, 2, "IEEE binary16.";
    Q4_0 = 2, "Q4_0", 32, 18, "f16 scale, 32 nibbles minus 8.";
    Q4_1 = 3, "Q4_1", 32, 20, "f16 scale and minimum, 32 nibbles.";
    Q5_0 = 6, "Q5_0", 32, 22, "f16 scale, 32 fifth bits, 32 nibbles, minus 16.";
    Q5_1 = 7, "Q5_1", 32, 24, "f16 scale and minimum, 32 fifth bits, 32 nibbles.";
    Q8_0 = 8, "Q8_0", 32, 34, "f16 scale, 32 signed bytes.";
    Q8_1 = 9, "Q8_1", 32, 36, "f16 scale and scaled sum, 32 signed bytes; ggml's activation format.";
    Q2_K = 10, "Q2_K", 256, 84, "16 sub-blocks of 2-bit values with 4-bit scales and minima.";
    Q3_K = 11, "Q3_K", 256, 110, "16 sub-blocks of 3-bit values with 6-bit scales.";
    Q4_K = 12, "Q4_K", 256, 144, "8 sub-blocks of 4-bit values with 6-bit scales and minima.";
    Q5_K = 13, "Q5_K", 256, 176, "8 sub-blocks of 5-bit values with 6-bit scales and minima.";
    Q6_K = 14, "Q6_K", 256, 210, "16 sub-blocks of 6-bit values with 8-bit scales.";
    Q8_K = 15, "Q8_K", 256, 292, "f32 scale, 256 signed bytes, 16 sums; ggml's activation format.";
    IQ2_XXS = 16, "IQ2_XXS", 256, 66, "2.06 bits per weight from a codebook.";
    IQ2_XS = 17, "IQ2_XS", 256, 74, "2.31 bits per weight from a codebook.";
    IQ3_XXS = 18, "IQ3_XXS", 256, 98, "3.06 bits per weight from a codebook.";
    IQ1_S = 19, "IQ1_S", 256, 50, "1.56 bits per weight from a codebook.";
    IQ4_NL = 20, "IQ4_NL", 32, 18, "f16 scale, 32 nibbles through a table.";
    IQ3_S = 21, "IQ3_S", 256, 110, "3.44 bits per weight from a codebook.";
    IQ2_S = 22, "IQ2_S", 256, 82, "2.56 bits per weight from a codebook.";
    IQ4_XS = 23, "IQ4_XS", 256, 136, "8 sub-blocks of nibbles through a table with 6-bit scales.";
    I8 = 24, "I8", 1, 1, "Signed byte.";
    I16 = 25, "I16", 1, 2, "Signed 16-bit integer.";
    I32 = 26, "I32", 1, 4, "Signed 32-bit integer.";
    I64 = 27, "I64", 1, 8, "Signed 64-bit integer.";
    F64 = 28, "F64", 1, 8, "IEEE binary64.";
    IQ1_M = 29, "IQ1_M", 256, 56, "1.75 bits per weight from a codebook.";
    BF16 = 30, "BF16", 1, 2, "The upper half of an IEEE binary32.";
    TQ1_0 = 34, "TQ1_0", 256, 54, "Ternary values, five to a byte.";
    TQ2_0 = 35, "TQ2_0", 256, 66, "Ternary values, four to a byte.";
    MXFP4 = 39, "MXFP4", 32, 17, "E8M0 scale, 32 E2M1 nibbles.";
    INT8 = 65536, "INT8", 32, 36, "f32 scale, 32 signed bytes.";
    FP8 = 65537, "FP8", 32, 36, "f32 scale, 32 bytes of E4M3: floats with a sign, 4 exponent and 3 fraction bits.";
}

impl TensorKind {
    /// Whether elements come in blocks with scales.
    pub const fn is_quantised(self) -> bool {
        self.block_elements() > 1
    }

    /// Whether elements are integers with scales, so that products can be of integers.
    pub const fn has_integers(self) -> bool {
        self.is_quantised() && !matches!(self, TensorKind::FP8)
    }
}

impl fmt::Display for TensorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_lead_back() {
        for kind in TensorKind::ALL {
            assert_eq!(TensorKind::from_id(kind.id()), Some(*kind));
        }
        // 4 and 5 were withdrawn; 31 to 33 and 36 to 38 are layouts that never occur in files.
        for id in [4, 5, 31, 32, 33, 36, 37, 38, 1000, 65535, 65538, u32::MAX] {
            assert_eq!(TensorKind::from_id(id), None);
        }
    }

    #[test]
    fn elements_of_one_are_in_no_block_and_floats_are_no_integers() {
        let plain = ["F32", "F16", "F64", "BF16", "I8", "I16", "I32", "I64"];
        for kind in TensorKind::ALL {
            let is_plain = plain.contains(&kind.name());
            assert_eq!(kind.is_quantised(), !is_plain, "{kind}");
            assert_eq!(kind.has_integers(), !is_plain && kind.name() != "FP8", "{kind}");
        }
    }
}
