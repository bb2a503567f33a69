//! The same bytes are not lent as two pieces.
#![forbid(unsafe_code)]
use zrt_kmd::syscalls::Nested;

fn main() {
    let mut bytes = [0; 8];
    let pieces = [
        Nested { field_offset: 0, bytes: &mut bytes },
        Nested { field_offset: 8, bytes: &mut bytes },
    ];
    drop(pieces);
}
