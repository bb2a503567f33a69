//! Findings of the checking mode.
//!
//! Contract: a finding states the rule, the place (code, wave, lane, register or address), what happened and what
//! would satisfy the rule. The same finding at the same instructions is kept once and counted. Cost: an allocation
//! per new finding; nothing without one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Most distinct findings that are kept; further ones are only counted.
pub const FINDINGS_MAX: usize = 1024;

macro_rules! rules {
    ($($(#[$text:meta])* $rule:ident $name:literal,)*) => {
        /// The rules of the checking mode.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Rule {
            $($(#[$text])* $rule,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Rule] = &[$(Rule::$rule,)*];

            /// Its name in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Rule::$rule => $name,)*
                }
            }
        }
    };
}

rules! {
    /// A result, or another wave's data, used without the wait that guarantees its arrival (instruction set
    /// reference §4.1).
    Counters "counters",
    /// The VALU-read-SGPR hazard and the other hazards that software must avoid (instruction set reference §5.1, §5.2).
    Hazard "hazard",
    /// A register, condition code or LDS byte that was never written.
    Uninitialised "uninitialised",
    /// Two waves access the same byte, at least one of them writes, and nothing orders them (instruction set
    /// reference §9).
    Race "race",
    /// A cached copy is older than the data: an acquire, release or write-back is missing (hardware reference §6,
    /// instruction set reference §9).
    Visibility "visibility",
    /// An address outside of the memory given to the kernel, or a misaligned atomic.
    Bounds "bounds",
    /// A wave that can never continue.
    Progress "progress",
    /// Nothing is broken and results do not depend on it, but the code does not do what it says.
    Advice "advice",
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that was broken.
    pub rule: Rule,
    /// What happened.
    pub what: String,
    /// What would satisfy the rule.
    pub remedy: String,
    /// Address of the instruction; 0 for a packet.
    pub pc: u64,
    /// Address of the first instruction of the dispatch; 0 if there is none.
    pub code_va: u64,
    /// Address of the packet that launched the wave; 0 if there is none.
    pub launched_at: u64,
    /// The instruction in assembly; empty for a packet only.
    pub instruction: String,
    /// Address of the other instruction concerned: the write, the load, the other wave's access.
    pub other_pc: Option<u64>,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Index of the wave in the workgroup.
    pub wave: u32,
    /// First lane concerned.
    pub lane: Option<u32>,
    /// Register concerned, for example `v4` or `vcc_lo`.
    pub register: Option<String>,
    /// Memory or LDS address concerned.
    pub address: Option<u64>,
    /// The seed of the schedule: a run with the same seed reproduces the finding.
    pub seed: u64,
    /// Number of occurrences.
    pub count: u64,
}

/// The identity of a finding.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    rule: Rule,
    pc: u64,
    other_pc: Option<u64>,
    register: Option<String>,
    remedy: String,
}

/// All findings of a device.
#[derive(Default)]
pub(crate) struct FindingLog {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    findings: Vec<Finding>,
    index: HashMap<Key, usize>,
    /// Number of new findings beyond [`FINDINGS_MAX`].
    dropped: u64,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FindingLog {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent after any panic: changes are a push, and an insert that only speeds up the next
        // lookup.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a finding, or counts it as a repetition.
    pub fn add(&self, finding: Finding) {
        let key = Key {
            rule: finding.rule,
            pc: finding.pc,
            other_pc: finding.other_pc,
            register: finding.register.clone(),
            remedy: finding.remedy.clone(),
        };
        let mut state = self.lock();
        if let Some(at) = state.index.get(&key).copied() {
            state.findings[at].count += finding.count;
        } else if state.findings.len() < FINDINGS_MAX {
            let at = state.findings.len();
            state.index.insert(key, at);
            state.findings.push(finding);
        } else {
            state.dropped += finding.count;
        }
    }

    /// Distinct findings so far.
    pub fn len(&self) -> usize {
        self.lock().findings.len()
    }

    /// Whether a rule was found broken at an instruction.
    pub fn has(&self, rule: Rule, pc: u64) -> bool {
        self.lock().findings.iter().any(|finding| finding.rule == rule && finding.pc == pc)
    }

    /// One JSON object per line, in the order of discovery; then `{"dropped":n}` if some were not kept.
    pub fn text(&self) -> String {
        let state = self.lock();
        let mut text = String::new();
        for finding in &state.findings {
            // Serialising plain data cannot fail.
            text.push_str(&serde_json::to_string(finding).unwrap_or_default());
            text.push('\n');
        }
        if state.dropped > 0 {
            text.push_str(&format!("{{\"dropped\":{}}}\n", state.dropped));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(pc: u64, register: &str) -> Finding {
        Finding {
            rule: Rule::Counters,
            what: "v4 is read".to_owned(),
            remedy: "s_wait_loadcnt 0".to_owned(),
            pc,
            code_va: 0x1000,
            launched_at: 0x2000,
            instruction: "v_mov_b32_e32 v0, v4".to_owned(),
            other_pc: None,
            workgroup: [1, 2, 3],
            wave: 0,
            lane: Some(5),
            register: Some(register.to_owned()),
            address: None,
            seed: 9,
            count: 1,
        }
    }

    #[test]
    fn the_same_finding_is_counted_and_another_is_not() {
        let log = FindingLog::default();
        log.add(finding(0x1010, "v4"));
        log.add(finding(0x1010, "v4"));
        log.add(finding(0x1010, "v5"));
        let lines: Vec<serde_json::Value> =
            log.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["count"], &lines[0]["rule"]), (&2.into(), &"counters".into()));
        assert_eq!((&lines[1]["count"], &lines[1]["register"]), (&1.into(), &"v5".into()));
    }

    #[test]
    fn what_is_too_much_is_told() {
        let log = FindingLog::default();
        (0..FINDINGS_MAX as u64 + 3).for_each(|pc| log.add(finding(pc, "v0")));
        assert_eq!(log.text().lines().count(), FINDINGS_MAX + 1);
        assert!(log.text().ends_with("{\"dropped\":3}\n"));
    }

    #[test]
    fn a_line_has_every_field() {
        let log = FindingLog::default();
        log.add(finding(0x1010, "v4"));
        let other =
            Finding { other_pc: Some(8), lane: None, register: None, address: Some(16), ..finding(1, "") };
        log.add(other);
        assert_eq!(
            log.text(),
            concat!(
                r#"{"rule":"counters","what":"v4 is read","remedy":"s_wait_loadcnt 0","pc":4112,"code_va":409"#,
                r#"6,"launched_at":8192,"instruction":"v_mov_b32_e32 v0, v4","other_pc":null,"workgroup":[1,2"#,
                r#",3],"wave":0,"lane":5,"register":"v4","address":null,"seed":9,"count":1}"#,
                "\n",
                r#"{"rule":"counters","what":"v4 is read","remedy":"s_wait_loadcnt 0","pc":1,"code_va":4096,""#,
                r#"launched_at":8192,"instruction":"v_mov_b32_e32 v0, v4","other_pc":8,"workgroup":[1,2,3],"w"#,
                r#"ave":0,"lane":null,"register":null,"address":16,"seed":9,"count":1}"#,
                "\n"
            )
        );
    }

    /// The place in the schedule and the lane are those of the first one; rule, places, register and remedy tell
    /// findings apart.
    #[test]
    fn findings_are_the_same_by_rule_places_register_and_remedy() {
        let first = finding(0x1010, "v4");
        for (other, is_same) in [
            (Finding { lane: Some(9), wave: 3, workgroup: [0; 3], address: Some(4), ..first.clone() }, true),
            (Finding { what: "another".to_owned(), ..first.clone() }, true),
            (Finding { rule: Rule::Race, ..first.clone() }, false),
            (Finding { pc: 0x1014, ..first.clone() }, false),
            (Finding { other_pc: Some(1), ..first.clone() }, false),
            (Finding { register: None, ..first.clone() }, false),
            (Finding { remedy: "s_wait_dscnt 0".to_owned(), ..first.clone() }, false),
        ] {
            let log = FindingLog::default();
            log.add(Finding { count: 2, ..first.clone() });
            log.add(Finding { count: 3, ..other.clone() });
            assert_eq!(log.len(), if is_same { 1 } else { 2 }, "{other:?}");
            assert_eq!(log.lock().findings[0].count, if is_same { 5 } else { 2 }, "{other:?}");
        }
    }

    #[test]
    fn a_rule_is_broken_at_its_instruction() {
        let log = FindingLog::default();
        assert!(!log.has(Rule::Counters, 0x1010));
        log.add(finding(0x1010, "v4"));
        assert!(log.has(Rule::Counters, 0x1010));
        assert!(!log.has(Rule::Race, 0x1010) && !log.has(Rule::Counters, 0x1014));
    }

    #[test]
    fn rules_have_the_names_of_the_report() {
        let names =
            ["counters", "hazard", "uninitialised", "race", "visibility", "bounds", "progress", "advice"];
        assert_eq!(Rule::ALL.iter().map(ToString::to_string).collect::<Vec<_>>(), names);
        for (rule, name) in Rule::ALL.iter().zip(names) {
            assert_eq!(serde_json::to_value(rule).unwrap(), name);
        }
    }

    /// The last finding that has room, repetitions of it, and what is dropped with its count.
    #[test]
    fn repetitions_of_what_is_kept_still_count() {
        let log = FindingLog::default();
        (0..FINDINGS_MAX as u64 - 1).for_each(|pc| log.add(finding(pc, "v0")));
        log.add(finding(u64::MAX, "v0"));
        log.add(finding(u64::MAX, "v0"));
        assert_eq!((log.len(), log.lock().dropped), (FINDINGS_MAX, 0));
        assert_eq!(log.lock().findings[FINDINGS_MAX - 1].count, 2);
        log.add(Finding { count: 4, ..finding(u64::MAX - 1, "v0") });
        assert_eq!((log.len(), log.lock().dropped), (FINDINGS_MAX, 4));
        assert!(log.text().ends_with("\n{\"dropped\":4}\n"));
    }
}
