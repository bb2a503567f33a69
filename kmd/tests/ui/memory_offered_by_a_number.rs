//! Nobody offers memory to a device by its address without vouching for whoever uses it.
#![forbid(unsafe_code)]

fn main() {
    let bytes = vec![0u8; 1 << 20];
    zrt_kmd::syscalls::lending::offer(bytes.as_ptr() as u64, 1 << 20);
}
