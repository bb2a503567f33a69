//! Arbitrary bytes as a file of golden traces: reading ends in a value or an error, and what was read agrees with
//! itself.
#![no_main]

// Its crate would bring the virtual card with it.
#[allow(dead_code)]
#[path = "../../tests/src/golden.rs"]
mod golden;

use golden::Golden;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let golden = match Golden::parse(bytes) {
        Ok(golden) => golden,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for trace in golden.traces {
        assert!(trace.exact_loss().is_finite());
        let [none, some, all] = [f64::INFINITY, 0.1, f64::NEG_INFINITY].map(|margin| trace.exact_tokens(margin));
        assert!(none.is_empty() && all.starts_with(some));
        match &trace.reference_f64 {
            None => assert_eq!(all, trace.greedy_token_ids),
            Some(reference) => assert_eq!(all, reference.greedy_token_ids),
        }
    }
});
