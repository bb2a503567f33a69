//! Nor does a mapping, which would unmap what it names, arise from an address.
#![forbid(unsafe_code)]
use zrt_kmd::{Mapping, Protection};

fn main() {
    let bytes = vec![0u8; 1 << 20];
    drop(Mapping::of_new_range(bytes.as_ptr() as *mut _, 1 << 20, Protection::ReadWrite));
}
