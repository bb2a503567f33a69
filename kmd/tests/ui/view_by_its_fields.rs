//! A view is not put together from a base and a length.
#![forbid(unsafe_code)]
use zrt_mem::SharedView;

fn longer(view: SharedView) -> SharedView {
    SharedView { len: 1 << 40, ..view }
}

fn main() {
    let _ = longer;
}
