//! Marks: what a case expects of the findings on a line of its source.
//!
//! A mark is a comment `// caught` followed by words, in pairs: `group` and `wave` (0 if not given), `lane`,
//! `register`, and `at` for the address, in terms of LDS or of the nearest buffer. If several values are right on one
//! schedule or another, they are separated by `|`. A finding has what its mark says, and no more. Of marks with the
//! same name after `among`, one has to be met.

use zrt_bringup::Finding;
use zrt_device::Buffer;

const BEGIN: &str = "// caught";
const AMONG: &str = "among";
/// Addresses below are offsets in LDS.
const LDS_BYTES: u64 = 1 << 16;
/// How far from a buffer an address is still described in terms of it.
const NEAR_BYTES: u64 = 1 << 16;
const ELSEWHERE: &str = "elsewhere";

/// A marked line.
pub struct Mark<'a> {
    /// From 1.
    pub line: u32,
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Mark<'a> {
    /// All marks of a source.
    pub fn all(source: &'a str) -> Vec<Mark<'a>> {
        let lines = source.lines().enumerate();
        lines
            .filter_map(|(index, line)| {
                let words: Vec<_> = line.split_once(BEGIN)?.1.split_whitespace().collect();
                assert!(words.len().is_multiple_of(2), "a mark is made of pairs: {line}");
                let pairs = words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                Some(Mark { line: index as u32 + 1, words: pairs })
            })
            .collect()
    }

    /// Whether the mark is met by a finding on this or another line of its set.
    pub fn is_met(&self, marks: &[Mark<'_>], caught: &[u32]) -> bool {
        let set = |mark: &Mark<'_>| {
            mark.words.iter().find(|(word, _)| *word == AMONG).map(|(_, set)| set.to_string())
        };
        let own = set(self);
        let is_same = |mark: &&Mark<'_>| mark.line == self.line || own.is_some() && set(mark) == own;
        marks.iter().filter(is_same).any(|mark| caught.contains(&mark.line))
    }

    /// What in the finding differs from the mark.
    pub fn differences(&self, finding: &Finding, buffers: &[Buffer]) -> Vec<String> {
        let facts = facts(finding, buffers);
        let mut differences = Vec::new();
        for (key, fact) in &facts {
            let default = matches!(*key, "group" | "wave").then_some("0");
            let said = self.words.iter().find(|(word, _)| word == key).map(|(_, value)| *value).or(default);
            let is_same = match (fact, said) {
                (Some(fact), Some(said)) => said.split('|').any(|value| value == fact),
                (fact, said) => fact.is_none() && said.is_none(),
            };
            if !is_same {
                differences.push(format!("{key}: {fact:?} instead of {said:?}"));
            }
        }
        for (word, _) in self.words.iter().filter(|(word, _)| *word != AMONG) {
            assert!(facts.iter().any(|(key, _)| key == word), "no word of a mark: {word}");
        }
        differences
    }
}

/// What a mark can state.
fn facts(finding: &Finding, buffers: &[Buffer]) -> [(&'static str, Option<String>); 5] {
    let [x, y, z] = finding.workgroup;
    assert_eq!([y, z], [0, 0], "grids of cases have one dimension");
    [
        ("group", Some(x.to_string())),
        ("wave", Some(finding.wave.to_string())),
        ("lane", finding.lane.map(|lane| lane.to_string())),
        ("register", finding.register.clone()),
        ("at", finding.address.map(|address| place(address, buffers))),
    ]
}

/// An address in the form of a mark.
fn place(address: u64, buffers: &[Buffer]) -> String {
    if address < LDS_BYTES {
        return format!("lds+{address:#x}");
    }
    let distance = |buffer: &&Buffer| {
        let (start, end) = (buffer.va.0, buffer.va.0 + buffer.len.0);
        if address < start { start - address } else { (address + 1).saturating_sub(end) }
    };
    let nearest = buffers.iter().min_by_key(distance).filter(|buffer| distance(buffer) < NEAR_BYTES);
    match nearest {
        Some(buffer) if address < buffer.va.0 => format!("{}-{:#x}", buffer.label(), buffer.va.0 - address),
        Some(buffer) => format!("{}+{:#x}", buffer.label(), address - buffer.va.0),
        None => ELSEWHERE.to_owned(),
    }
}
