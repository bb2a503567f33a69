//! The example runs to its end.

#[path = "../examples/dispatch.rs"]
mod dispatch;

#[test]
fn a_dispatch_copies_a_buffer() {
    dispatch::main().unwrap();
}
