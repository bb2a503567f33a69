//! A view that is borrowed from a mapping does not outlive it.
#![forbid(unsafe_code)]
use zrt_kmd::{MemoryFile, Protection};

fn main() {
    let file = MemoryFile::new("gone", 4096).unwrap();
    let mapping = file.map(0, 4096, Protection::ReadWrite, None).unwrap();
    let view = mapping.view();
    drop(mapping);
    view.load_u32(0);
}
