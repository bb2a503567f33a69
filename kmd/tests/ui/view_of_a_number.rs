//! A view cannot be made from an address without vouching for it.
#![forbid(unsafe_code)]
use std::ptr::NonNull;
use std::sync::Arc;
use zrt_mem::SharedView;

fn main() {
    SharedView::new(NonNull::<u64>::dangling().cast(), 8, Arc::new(()));
}
