//! Runs programs on both sides and compares them.
//!
//! Contract: a verdict per program, in order. Results are compared byte by byte; their NaNs are already canonical
//! (`support/differential.h`). Under the checking mode a program runs under several schedules, and a finding takes
//! precedence over a difference because it says why. Findings in [`Alarm`]'s rows are not failures.

use crate::alarms::Alarm;
use crate::error::DifferentialError;
use crate::generate::inputs;
use crate::program::{Program, VARIABLES};
use crate::runner::{Checked, Plant, Runner, load};
use crate::session::Outcome;
use crate::toolchain::{Build, Compiler, OUT_BYTES_PER_ITEM, Shape, Toolchain};
use std::collections::BTreeSet;
use std::fmt;
use zrt_bringup::{DeviceFault, Finding};
use zrt_device::Registry;

/// The first difference between device and host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The input, from 0; `None` in the part that all items change together.
    pub item: Option<usize>,
    /// The result that differs.
    pub what: String,
    /// The device's value, up to eight bytes.
    pub device: u64,
    /// The host's.
    pub host: u64,
    /// Number of eight-byte results that differ.
    pub count: usize,
}

/// The result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All results are equal.
    Same,
    /// Some results differ.
    Differs(Difference),
    /// The device did not finish; its message.
    Fault(String),
    /// The program broke a rule of the checking mode.
    Breaks(Box<Breach>),
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The first finding on the first schedule that has one.
    pub finding: Finding,
    /// Number of findings on that schedule.
    pub count: usize,
    /// Whether the results on that schedule are wrong too.
    pub is_wrong: bool,
}

/// A verdict and the findings set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The reasons of the findings that were set aside.
    pub alarms: BTreeSet<Alarm>,
}

impl Verdict {
    /// A key for counting failures: faults by their kind.
    pub fn kind(&self) -> String {
        match self {
            Verdict::Same => "same results".into(),
            Verdict::Differs(_) => "different results".into(),
            Verdict::Breaks(breach) => kind_of(&breach.finding),
            Verdict::Fault(text) => kind_of_fault(text),
        }
    }
}

/// A finding's text without its register and its other side.
fn what_of(finding: &Finding) -> &str {
    let register = finding.register.as_deref().unwrap_or_default();
    let what = finding.what.strip_prefix(register).unwrap_or(&finding.what).trim_start();
    what.split_once("; ").map_or(what, |(first, _)| first)
}

/// The kind of failure that a finding stands for.
pub fn kind_of(finding: &Finding) -> String {
    format!("finding: {}: {}", finding.rule, what_of(finding))
}

/// The kind of a fault, which the device's log or a diagnosis tells: what went wrong, and the name of the instruction.
fn kind_of_fault(text: &str) -> String {
    // Of several lines of the log the first counts.
    let line = text.split_once("; kind=").map_or(text, |(first, _)| first);
    let fault = DeviceFault::parse(line, &Registry::default());
    let what = without_numbers(&fault.what);
    let instruction = fault.wave.map(|wave| wave.instruction).unwrap_or_default();
    match instruction.split(' ').next() {
        Some(name) if !what.starts_with(name) => format!("fault: {what}, {name}"),
        _ => format!("fault: {what}"),
    }
}

/// Text of a fault without what differs from fault to fault: numbers, and in parentheses what lies at addresses.
fn without_numbers(text: &str) -> String {
    let (mut kept, mut depth) = (Vec::<String>::new(), 0usize);
    for word in text.split(' ') {
        let is_kept = depth == 0 && !word.starts_with('(') && !is_number(word);
        depth = (depth + word.matches('(').count()).saturating_sub(word.matches(')').count());
        if is_kept {
            kept.push(word.to_owned());
            continue;
        }
        // An address goes with its preposition; the colon after it stays.
        kept.pop_if(|last| last == "at");
        if depth == 0 && word.ends_with(':') {
            kept.iter_mut().last().into_iter().for_each(|last| last.push(':'));
        }
    }
    kept.join(" ")
}

/// Whether a word is a number or one of an instruction's words.
fn is_number(word: &str) -> bool {
    let word = word.trim_matches(['[', ']', ',', ';', ':', '.']);
    let digits = word.strip_prefix("0x").unwrap_or(word);
    // Letters alone may be a word: "a", "be", "add".
    digits.chars().all(|digit| digit.is_ascii_hexdigit())
        && word.contains(|letter: char| letter.is_ascii_digit())
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.finding)?;
        let results = if self.is_wrong { "wrong" } else { "right" };
        write!(formatter, "\n    results {results}; findings of this schedule: {}", self.count)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { what, device, host, count, .. } = self;
        match self.item {
            Some(item) => write!(formatter, "input {item}: ")?,
            None => formatter.write_str("together: ")?,
        }
        write!(
            formatter,
            "{what} is {device:#x} on the device and {host:#x} on the host; {count} results differ"
        )
    }
}

/// Compilers, host and device together.
pub struct Comparison {
    toolchain: Toolchain,
    runner: Runner,
    /// Schedules per program under the checking mode; 0 for no checking.
    schedules: u64,
}

impl Comparison {
    /// A comparison; `plant` changes the device's code, for tests of the comparison itself.
    pub fn new(shape: Shape, schedules: u64, plant: Option<Plant>) -> Result<Comparison, DifferentialError> {
        Ok(Comparison { toolchain: Toolchain::new(shape)?, runner: Runner::new(shape, plant), schedules })
    }

    /// Runs programs, all compiled by the same build.
    pub fn run(&mut self, programs: &[Program], build: Build) -> Result<Vec<Judgement>, DifferentialError> {
        let inputs = self.inputs(programs);
        let host = self.toolchain.run_on_host(programs, &inputs)?;
        let code_object = self.toolchain.code_object(programs, build)?;
        if self.schedules > 0 {
            return self.check(&code_object, programs, &inputs, &host, build.compiler);
        }
        let device = self.runner.run(&code_object, programs, &inputs)?;
        let pairs = device.into_iter().zip(&host);
        let judge = |(outcome, host): (Outcome, &Vec<u8>)| Judgement {
            verdict: self.verdict(&outcome, host),
            alarms: BTreeSet::new(),
        };
        Ok(pairs.map(judge).collect())
    }

    fn inputs(&self, programs: &[Program]) -> Vec<Vec<u8>> {
        let bytes = self.toolchain.shape().in_bytes();
        programs.iter().map(|program| inputs(program.seed, bytes)).collect()
    }

    fn check(
        &self,
        code_object: &[u8],
        programs: &[Program],
        inputs: &[Vec<u8>],
        host: &[Vec<u8>],
        compiler: Compiler,
    ) -> Result<Vec<Judgement>, DifferentialError> {
        let loaded = load(code_object, programs)?;
        let mut judgements = Vec::with_capacity(programs.len());
        for (index, program) in programs.iter().enumerate() {
            let alarm = |finding: &Finding| Alarm::of(finding, compiler);
            let verdict = |checked: &Checked| self.checked_verdict(checked, &host[index], &alarm);
            let place = (index, program.seed);
            let fails = |checked: &Checked| verdict(checked) != Verdict::Same;
            let launches =
                self.runner.check(&loaded, place, &inputs[index], 0..self.schedules, None, &fails)?;
            let found = launches.iter().flat_map(|checked| &checked.findings);
            judgements.push(Judgement {
                verdict: launches.last().map_or(Verdict::Same, verdict),
                alarms: found.filter_map(alarm).collect(),
            });
        }
        Ok(judgements)
    }

    fn verdict(&self, outcome: &Outcome, host: &[u8]) -> Verdict {
        match outcome {
            Outcome::Fault(text) => Verdict::Fault(text.clone()),
            Outcome::Ran(results) => match compare(self.toolchain.shape(), results, host) {
                None => Verdict::Same,
                Some(difference) => Verdict::Differs(difference),
            },
        }
    }

    fn checked_verdict(
        &self,
        checked: &Checked,
        host: &[u8],
        alarm: &dyn Fn(&Finding) -> Option<Alarm>,
    ) -> Verdict {
        let mut verdict = self.verdict(&checked.outcome, host);
        let is_explained = checked.findings.iter().filter_map(alarm).any(Alarm::may_be_wrong);
        if is_explained && matches!(verdict, Verdict::Differs(_)) {
            verdict = Verdict::Same;
        }
        let mut broken = checked.findings.iter().filter(|finding| alarm(finding).is_none());
        match broken.next() {
            None => verdict,
            Some(finding) => Verdict::Breaks(Box::new(Breach {
                finding: finding.clone(),
                count: 1 + broken.count(),
                is_wrong: verdict != Verdict::Same,
            })),
        }
    }
}

/// Looks for the first eight bytes that differ.
pub fn compare(shape: Shape, device: &[u8], host: &[u8]) -> Option<Difference> {
    let pairs = || device.as_chunks::<8>().0.iter().zip(host.as_chunks::<8>().0).enumerate();
    let (at, (device, host)) = pairs().find(|(_, (device, host))| device != host)?;
    let count = pairs().filter(|(_, (device, host))| device != host).count();
    let (device, host) = (u64::from_le_bytes(*device), u64::from_le_bytes(*host));
    let offset = 8 * at;
    if offset >= shape.out_bytes() {
        let what = format!("eight bytes at {} of what items change together", offset - shape.out_bytes());
        return Some(Difference { item: None, what, device, host, count });
    }
    let slot = offset % OUT_BYTES_PER_ITEM / 8;
    let what = match VARIABLES.get(slot) {
        Some(kind) => format!("variable {}_{slot}", kind.name()),
        None => format!("eight bytes at {} of the stores", 8 * (slot - VARIABLES.len())),
    };
    Some(Difference { item: Some(offset / OUT_BYTES_PER_ITEM), what, device, host, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let shape = Shape::new(64, false).unwrap();
        let host = vec![0; shape.result_bytes()];
        assert_eq!(compare(shape, &host, &host), None);
        let mut device = host.clone();
        device[shape.out_bytes() + 17] = 3;
        let found = compare(shape, &device, &host).unwrap();
        assert_eq!((found.item, found.device, found.count), (None, 0x300, 1));
        device[5 * 256 + 3 * 8] = 9;
        let found = compare(shape, &device, &host).unwrap();
        assert_eq!((found.item, found.what.as_str(), found.count), (Some(5), "variable u32_3", 2));
        device[2 * 256 + 136] = 1;
        let found = compare(shape, &device, &host).unwrap();
        assert_eq!((found.item, found.what.as_str()), (Some(2), "eight bytes at 8 of the stores"));
    }

    /// By what went wrong and the instruction's name: neither by its place nor by its registers.
    #[test]
    fn faults_are_counted_by_kind() {
        for (what, instruction, expected) in [
            (
                "v_foo_b32 [d6130008, 240e0b06] is not executed by this device",
                "v_foo_b32 v1, v2",
                "v_foo_b32 is not executed by this device",
            ),
            ("s_trap 2 without a trap handler", "s_trap 2", "s_trap without a trap handler"),
            ("the wave halted itself", "s_sethalt 1", "the wave halted itself, s_sethalt"),
            (
                "page fault at 0x7f25fd08d400: not mapped",
                "global_load_b32 v1, v0, s[0:1]",
                "page fault: not mapped, global_load_b32",
            ),
            (
                "page fault at 0x7f25fd08d400 (4112 bytes past the end of output): not mapped",
                "global_store_b32 v1, v0, s[0:1]",
                "page fault: not mapped, global_store_b32",
            ),
            (
                "jump to 0x200004 (kernel programs+0x4 (device.c (a copy):7))",
                "s_setpc_b64 s[4:5]",
                "jump to, s_setpc_b64",
            ),
            (
                "a bad word: be, add, face and 0xface, 1f, [f0, 0f].",
                "s_nop 0",
                "a bad word: be, add, face and, s_nop",
            ),
        ] {
            let head = "kind=wave queue=1 code=0x200000 pc=0x200024 (kernel programs+0x24) (+0x24) \
                        workgroup=3,0,0 wave=1 lane=3 launched-at=0x300000 (ring+0x40)";
            let first = format!("{head} : {what} : {instruction}");
            let further = format!("{first}; {head} : the other wave halted itself : s_sethalt 1");
            let kinds = [first, further].map(|text| Verdict::Fault(text).kind());
            assert_eq!(kinds, [(); 2].map(|()| format!("fault: {expected}")));
        }
    }

    fn finding(rule: &str, what: &str) -> Finding {
        Finding { rule: rule.into(), what: what.into(), ..Finding::default() }
    }

    /// Findings of one kind differ in the register and in what the other side is.
    #[test]
    fn findings_are_counted_by_rule_and_by_what_happened() {
        let kind = |register: Option<&str>, what| {
            kind_of(&Finding { register: register.map(str::to_owned), ..finding("race", what) })
        };
        assert_eq!(kind(None, "two waves store"), "finding: race: two waves store");
        assert_eq!(kind(Some("v3"), "v3 is read early"), "finding: race: is read early");
        assert_eq!(kind(Some("v3"), "two waves store"), "finding: race: two waves store");
        assert_eq!(kind(None, "v3 is read early"), "finding: race: v3 is read early");
        assert_eq!(kind(Some("s4"), "s4 is read; wave 3 wrote it; twice"), "finding: race: is read");
        let breach = Breach { finding: finding("bounds", "past the end"), count: 3, is_wrong: true };
        assert_eq!(Verdict::Breaks(Box::new(breach)).kind(), "finding: bounds: past the end");
    }

    #[test]
    fn verdicts_without_a_text_have_a_kind_each() {
        let difference = Difference { item: None, what: "w".into(), device: 1, host: 2, count: 3 };
        assert_eq!(Verdict::Same.kind(), "same results");
        assert_eq!(Verdict::Differs(difference).kind(), "different results");
        assert_eq!(
            Verdict::Fault("wave 3 waits at 0x1f0 for 2 others.".into()).kind(),
            "fault: wave waits for others."
        );
    }

    /// Rules of findings that are set aside here: "advice", and "matrix", which may explain wrong results.
    fn aside(finding: &Finding) -> Option<Alarm> {
        match finding.rule.as_str() {
            "advice" => Some(Alarm::Advice),
            "matrix" => Some(Alarm::ConditionalMatrix),
            _ => None,
        }
    }

    /// A finding comes before a difference, and a difference is excused only by a finding that explains it.
    #[test]
    fn a_checked_launch_is_judged_by_its_findings_and_its_results() {
        let shape = Shape::new(64, false).unwrap();
        let comparison = Comparison::new(shape, 1, None).unwrap();
        let host = vec![0; shape.result_bytes()];
        let (right, fault) = (Outcome::Ran(host.clone()), Outcome::Fault("it hangs".into()));
        let wrong = Outcome::Ran([&[7], &host[1..]].concat());
        let what = "variable u32_0".into();
        let differs = Verdict::Differs(Difference { item: Some(0), what, device: 7, host: 0, count: 1 });
        let faulted = Verdict::Fault("it hangs".into());
        let breaks = |rule, count, is_wrong| {
            Verdict::Breaks(Box::new(Breach { finding: finding(rule, "w"), count, is_wrong }))
        };
        let rows: &[(&Outcome, &[&str], Verdict)] = &[
            (&right, &[], Verdict::Same),
            (&right, &["advice", "matrix"], Verdict::Same),
            (&wrong, &[], differs.clone()),
            (&wrong, &["advice"], differs.clone()),
            (&wrong, &["advice", "matrix"], Verdict::Same),
            (&fault, &[], faulted.clone()),
            (&fault, &["matrix"], faulted),
            (&right, &["race"], breaks("race", 1, false)),
            (&wrong, &["advice", "race", "bounds", "race"], breaks("race", 3, true)),
            (&fault, &["bounds", "race"], breaks("bounds", 2, true)),
            (&wrong, &["matrix", "race"], breaks("race", 1, false)),
        ];
        for (outcome, rules, expected) in rows {
            let findings = rules.iter().map(|rule| finding(rule, "w")).collect();
            let checked = Checked { schedule: 0, outcome: (*outcome).clone(), findings };
            assert_eq!(comparison.checked_verdict(&checked, &host, &aside), *expected, "{rules:?}");
        }
    }
}
