//! Private memory ends where the kernel declares, even if the segment continues: after 64 bytes of 128.

use super::*;
use Defect::*;

twins! {
    after_the_end: PrivateBounds { offset: 64, len: 4, declared: 64 }, "", "index", 0, None;
    [
        0xed06807c, 0x00000000, 0x00004000, // scratch_store_b32 off, v0, off offset:64
    ]
    [
        0xed06807c, 0x00000000, 0x00003c00, // scratch_store_b32 off, v0, off offset:60
    ]

    across_the_end: PrivateBounds { offset: 60, len: 8, declared: 64 }, "", "index", 0, None;
    [
        0xed06c07c, 0x00000000, 0x00003c00, // scratch_store_b64 off, v[0:1], off offset:60
    ]
    [
        0xed06c07c, 0x00000000, 0x00003800, // scratch_store_b64 off, v[0:1], off offset:56
    ]
}
