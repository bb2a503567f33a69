//! Files of suppressions and baselines, whole ones and damaged ones.

use super::subject::rule;
use super::text::{ENTRIES_MAX, FILE_BYTES_MAX, LINE_BYTES_MAX};
use super::*;
use proptest::prelude::*;
use std::path::Path;

fn subject<'a>(rule: &'a str, function: &'a str, instruction: &'a str) -> Subject<'a> {
    Subject { rule, function, offset: Some(0x48), instruction, source: Some(("/src/lib/kernel.c", 12)) }
}

fn suppressions(text: &str) -> Suppressions {
    Suppressions::parse("s.txt", text.as_bytes()).unwrap()
}

fn refusal(error: SilenceError) -> String {
    error.to_string()
}

#[test]
fn a_suppression_covers_what_it_names() {
    let finding = subject("memory-wait", "leaf", "v_nop");
    for (line, expected) in [
        ("memory-wait leaf * -- r", true),
        ("memory-wait l* +0x48 -- r", true),
        ("memory-wait * +72 -- r", true),
        ("memory-wait leaf kernel.c:12 -- r", true),
        ("memory-wait leaf lib/kernel.c:12 -- r", true),
        ("memory-wait leaf /src/*/kernel.c:* -- r", true),
        ("scalar-hazard leaf * -- r", false),
        ("memory-wait twice * -- r", false),
        ("memory-wait leaf +0x4c -- r", false),
        ("memory-wait leaf kernel.c:13 -- r", false),
        ("memory-wait leaf nel.c:12 -- r", false),
        ("memory-wait leaf other/kernel.c:12 -- r", false),
    ] {
        let mut known = suppressions(line);
        assert_eq!(known.covers(&finding), expected, "{line}");
        assert_eq!(known.unused().is_empty(), expected, "{line}");
    }
    // What is nowhere has no place that a pattern could name.
    let nowhere = Subject { offset: None, source: None, function: "", ..finding };
    assert!(suppressions("memory-wait * * -- r").covers(&nowhere));
    assert!(!suppressions("memory-wait * +0 -- r").covers(&nowhere));
    assert!(!suppressions("memory-wait * *:* -- r").covers(&nowhere));
}

/// Every rule of the checking mode, by the name that its findings have in reports.
#[test]
fn findings_of_every_rule_can_be_silenced() {
    assert!(zrt_vgpu::check::Rule::ALL.len() >= 8);
    for rule in zrt_vgpu::check::Rule::ALL {
        let told = serde_json::to_value(rule).unwrap();
        let name = told.as_str().unwrap();
        assert!(suppressions(&format!("{name} k * -- r")).covers(&subject(name, "k", "")), "{name}");
        assert_eq!((rule.name(), rule.to_string().as_str()), (name, name));
    }
}

#[test]
fn unused_suppressions_have_their_lines() {
    let mut known = suppressions("# why\n\n race  k * --  both write 1\nbounds k * -- known\n");
    assert!(known.covers(&subject("race", "k", "")));
    let unused = Unused { file: "s.txt".into(), line: 4, text: "bounds k * -- known".into() };
    assert_eq!(known.unused(), [unused]);
}

#[test]
fn wrong_lines_are_named_with_what_to_do() {
    for (text, line, part) in [
        ("race", 1, "a line is RULE FUNCTION PLACE"),
        ("\nrase k * -- r", 2, "there is no rule \"rase\""),
        ("# a\n# b\nrace k * -- ", 3, "it gives no reason"),
        ("race k * because", 1, "it gives no reason"),
        ("race k kernel.c -- r", 1, "is not a place"),
        ("race k +x -- r", 1, "is not an offset"),
        ("dropped * * -- r", 1, "there is no rule"),
    ] {
        let message = refusal(Suppressions::parse("s.txt", text.as_bytes()).unwrap_err());
        assert!(message.starts_with(&format!("s.txt:{line}: ")) && message.contains(part), "{message}");
    }
    for (text, line, part) in [
        ("", 1, "does not begin with"),
        ("zrt-baseline 2\n", 1, "does not begin with"),
        ("zrt-baseline 1\n0 race k v_nop", 2, "a line is COUNT"),
        ("zrt-baseline 1\n1 race", 2, "a line is COUNT"),
        ("zrt-baseline 1\n\n1 rase k v_nop", 3, "there is no rule"),
    ] {
        let message = refusal(Baseline::parse("b.txt", text.as_bytes()).unwrap_err());
        assert!(message.starts_with(&format!("b.txt:{line}: ")) && message.contains(part), "{message}");
    }
}

#[test]
fn limits_hold() {
    let long = format!("race k * -- {}", "x".repeat(LINE_BYTES_MAX));
    assert!(
        refusal(Suppressions::parse("s", long.as_bytes()).unwrap_err()).starts_with("s:1: it has more than")
    );
    let longest = &long[..LINE_BYTES_MAX];
    assert!(suppressions(longest).covers(&subject("race", "k", "")));
    let most = "race k * -- r\n".repeat(ENTRIES_MAX);
    assert_eq!(suppressions(&most).unused().len(), ENTRIES_MAX);
    let message = refusal(Suppressions::parse("s", (most + "race k * -- r").as_bytes()).unwrap_err());
    assert!(message.contains(&format!("s:{}: there are more than", ENTRIES_MAX + 1)), "{message}");
    assert!(refusal(Suppressions::parse("s", b"ok\xff").unwrap_err()).contains("not UTF-8"));
    assert!(matches!(read(Path::new("/dev/zero")), Err(SilenceError::Size { .. })));
    assert!(matches!(read(Path::new("no/such/file")), Err(SilenceError::Read { .. })));
}

#[test]
fn a_baseline_counts() {
    let (first, second) = (subject("race", "k", "v_mov_b32 v0,  v1"), subject("race", "k", "v_nop"));
    let mut made = Baseline::default();
    assert!([&first, &first, &second].into_iter().all(|one| made.add(one)));
    let text = made.to_text().unwrap();
    assert!(text.starts_with("zrt-baseline 1\n"), "{text}");
    assert!(text.ends_with("2 race k v_mov_b32 v0, v1\n1 race k v_nop\n"), "{text}");
    let mut known = Baseline::parse("b", text.as_bytes()).unwrap();
    // Neither offset nor line counts.
    let moved = Subject { offset: Some(0), source: None, ..first };
    assert!(known.take(&moved) && known.take(&first) && !known.take(&first));
    assert!(!known.take(&subject("race", "other", "v_nop")) && !known.take(&subject("bounds", "k", "v_nop")));
    assert_eq!(known.left(), 1);
}

/// A filter that writes a baseline, and its file in this folder.
fn writing(folder: &Path) -> (Filter, PathBuf) {
    let path = folder.join("baseline");
    let options = SilenceOptions { write_baseline: Some(path.clone()), ..SilenceOptions::default() };
    (options.open().unwrap(), path)
}

/// Findings beyond the limit of a run (`dropped`) have no rule that a baseline can hold: they are reported, and what is
/// written can be read.
#[test]
fn a_baseline_is_written_of_what_it_can_hold() {
    let folder = zrt_needs::TemporaryFolder::new("dropped");
    let (mut filter, path) = writing(&folder);
    assert!(!filter.keeps(&subject("race", "k", "v_nop")));
    assert!(filter.keeps(&subject("dropped", "", "")));
    assert_eq!(filter.finish().unwrap().in_baseline, 1);
    let options = SilenceOptions { baseline: Some(path.clone()), ..SilenceOptions::default() };
    let mut known = options.open().unwrap();
    assert!(!known.keeps(&subject("race", "k", "v_nop")) && known.keeps(&subject("dropped", "", "")));
}

#[test]
fn a_baseline_that_would_not_be_read_is_not_written() {
    let name = |length: usize, index: usize| format!("{index:0>length$}");
    for (findings, length, part) in [
        // The first line counts as well.
        (ENTRIES_MAX - 1, 8, None),
        (ENTRIES_MAX, 8, Some("there are more than 4096 entries")),
        (1, LINE_BYTES_MAX, Some("it has more than 4096 bytes")),
        (300, 4000, Some("has more than the 1048576 bytes")),
    ] {
        let folder = zrt_needs::TemporaryFolder::new("limit");
        let (mut filter, path) = writing(&folder);
        for index in 0..findings {
            assert!(!filter.keeps(&subject("race", &name(length, index), "v_nop")));
        }
        let outcome = filter.finish().map_err(|error| error.to_string());
        assert_eq!(path.exists(), part.is_none(), "{findings} {length}");
        if let Some(part) = part {
            let message = outcome.unwrap_err();
            assert!(message.contains(part) && message.contains("--suppress"), "{message}");
        }
    }
}

/// A file as long as a file may be is written; one byte more is too long.
#[test]
fn a_baseline_is_at_most_as_long_as_a_file_that_is_read() {
    // Each line: `1 race `, a name and the line end; the instruction is empty.
    let with_names = |last: usize| {
        let mut made = Baseline::default();
        (0..261).for_each(|index| assert!(made.add(&subject("race", &format!("{index:04000}"), ""))));
        assert!(made.add(&subject("race", &"x".repeat(last), "")));
        made
    };
    let room = FILE_BYTES_MAX as usize - with_names(1).to_string().len();
    assert_eq!(with_names(1 + room).to_text().map(|text| text.len() as u64), Ok(FILE_BYTES_MAX));
    let message = refusal(with_names(2 + room).to_text().unwrap_err());
    assert!(message.contains("the baseline has more than the 1048576 bytes"), "{message}");
}

/// Nothing is said of what is zero.
#[test]
fn what_was_silenced_is_told_in_lines() {
    let none = Silenced::default();
    assert_eq!(none.to_string(), "");
    let unused_suppressions = vec![Unused { file: "s.txt".into(), line: 4, text: "race k * -- r".into() }];
    let all = Silenced { suppressed: 2, in_baseline: 3, gone_from_baseline: 5, unused_suppressions };
    let expected = "2 suppressed\n3 in the baseline\n\
                    5 of the baseline gone: write it again with --write-baseline\n\
                    s.txt:4: this suppression covers nothing, remove it: race k * -- r\n";
    assert_eq!(all.to_string(), expected);
    assert_eq!(Silenced { in_baseline: 1, ..none }.to_string(), "1 in the baseline\n");
}

#[test]
fn a_rule_of_each_kind_is_known() {
    for name in ["memory-wait", "not-analysed", "counters", "advice"] {
        assert_eq!(rule(name), Some(name));
    }
    assert_eq!(rule("dropped"), None);
}

proptest! {
    /// Any bytes give entries, or an error with the number of an existing line.
    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let lines = bytes.split(|byte| *byte == b'\n').count();
        let errors = [Suppressions::parse("f", &bytes).err(), Baseline::parse("f", &bytes).err()];
        for error in errors.into_iter().flatten() {
            let SilenceError::Line { line, .. } = error else { panic!("{error}") };
            prop_assert!((1..=lines).contains(&line));
        }
    }

    /// Almost right lines: words of the form in any order.
    #[test]
    fn any_words_end(words in prop::collection::vec("race|k|\\*|--|\\+1|\\+0x|a:1|:|#|1|zrt-baseline|\n", 0..40)) {
        let text = words.join(" ");
        let _ = Suppressions::parse("f", text.as_bytes());
        let _ = Baseline::parse("f", format!("zrt-baseline 1\n{text}").as_bytes());
    }

    /// What is written is read: every name of a function, also one with blanks, stands for itself and no other.
    #[test]
    fn baselines_are_read_as_written(names in prop::collection::vec(any::<String>(), 1..6), text in "[a-z0-9 ,:]{0,20}") {
        let mut made = Baseline::default();
        names.iter().for_each(|name| assert!(made.add(&subject("race", name, &text))));
        let mut known = Baseline::parse("b", made.to_text().unwrap().as_bytes()).unwrap();
        prop_assert_eq!(&known, &made);
        for name in &names {
            prop_assert!(known.take(&subject("race", name, &text)));
        }
        prop_assert_eq!(known.left(), 0);
    }
}
