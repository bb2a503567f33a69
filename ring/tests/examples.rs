//! The example runs to its end.

#[path = "../examples/submission.rs"]
mod submission;

#[test]
fn a_submission_reaches_its_fence() {
    submission::main().unwrap();
}
