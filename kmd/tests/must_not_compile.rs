//! Programs without `unsafe` that would be undefined behaviour if they compiled. The compiler must refuse each one,
//! for the reason recorded in `ui/*.stderr`.
//!
//! The expected messages are those of the compiler that builds the workspace;
//! `TRYBUILD=overwrite cargo test -p zrt-kmd --test must_not_compile` writes those of another one.

#[test]
#[cfg_attr(miri, ignore = "runs the compiler")]
fn what_would_be_undefined_is_refused() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
