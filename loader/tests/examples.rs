//! The example runs to its end.

#[allow(dead_code)] // Its `main` reads the arguments of this harness.
#[path = "../examples/code_object.rs"]
mod code_object;

#[test]
fn machine_code_alone_is_listed() {
    code_object::list(&code_object::raw().unwrap()).unwrap();
}
