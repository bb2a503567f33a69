//! A pointer into the process does not arise from an address.
#![forbid(unsafe_code)]
use zrt_kmd::UserPointer;

fn main() {
    let immutable = String::from("immutable");
    let _ = UserPointer { address: immutable.as_ptr() as u64, lent: &[] }.write(b"changed");
}
