//! Arbitrary text as a script of `zrt run`: reading ends in a script, or in a complaint with a place in the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zrt_script::Script;

fuzz_target!(|bytes: &[u8]| {
    let text = &*String::from_utf8_lossy(bytes);
    let read = Script::parse(text);
    assert_eq!(read, Script::parse(text));
    if let Err(error) = read {
        let line = text.split('\n').nth(error.at.line - 1).expect("the line is in the text");
        assert!((1..=line.chars().count() + 1).contains(&error.at.column), "{error}");
        assert!(!error.what.is_empty() && !error.what.contains('\n'), "{error}");
    }
});
