//! A view that is borrowed from a buffer does not outlive it.
#![forbid(unsafe_code)]

fn first_dword(buffer: zrt_kmd::Buffer) -> Option<u32> {
    let view = buffer.view()?;
    drop(buffer);
    Some(view.load_u32(0))
}

fn main() {
    let _ = first_dword;
}
