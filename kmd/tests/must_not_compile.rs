//! Programs without `unsafe` that would be undefined behaviour, were they to compile: the compiler refuses each, for the
//! reason that stands beside it in `ui/*.stderr`.
//!
//! The expected words are those of the compiler that the workspace is built with; `TRYBUILD=overwrite cargo test -p zrt-kmd
//! --test must_not_compile` writes those of another one.

#[test]
#[cfg_attr(miri, ignore = "runs the compiler")]
fn what_would_be_undefined_is_refused() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
