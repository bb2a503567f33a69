//! What campaigns tell: failures, tables, and the sources of failing programs.
//!
//! Contract: pure, except for [`keep`], which writes into one folder. Every text ends with a line break.

use crate::batch::Verdict;
use crate::campaign::{Failure, Report};
use crate::error::DifferentialError;
use crate::generate::inputs;
use crate::mutants::{Fate, Judged, MutantReport, Tally};
use crate::mutate::UNEXPLAINED;
use crate::program::Program;
use crate::text::{HEADER, HEADER_NAME, source};
use crate::toolchain::{IN_BYTES_PER_ITEM, Shape, write};
use std::path::Path;

/// A failure: its program, which is the smaller one if there is one, with the source of that.
pub fn failure(failure: &Failure, shape: Shape) -> String {
    let (seed, build) = (failure.program.seed, failure.build);
    match &failure.smaller {
        Some((smaller, verdict)) => {
            let (from, to) = (failure.program.size(), smaller.size());
            format!(
                "seed {seed}, {build}, made smaller from {from} to {to} nodes\n{}{}\n",
                told(smaller, verdict, shape),
                source(std::slice::from_ref(smaller))
            )
        }
        None => format!("seed {seed}, {build}\n{}", told(&failure.program, &failure.verdict, shape)),
    }
}

fn told(program: &Program, verdict: &Verdict, shape: Shape) -> String {
    match verdict {
        Verdict::Same => "  same results\n".into(),
        Verdict::Fault(text) => format!("  fault: {text}\n"),
        Verdict::Breaks(breach) => format!("  {breach}\n"),
        Verdict::Differs(difference) => {
            let words = difference.item.map(|item| {
                let inputs = inputs(program.seed, shape.in_bytes());
                let own = inputs.chunks_exact(IN_BYTES_PER_ITEM).nth(item).unwrap_or_default();
                let words = own.as_chunks::<4>().0.iter();
                let words: String = words.map(|word| format!(" {:08x}", u32::from_le_bytes(*word))).collect();
                format!("  words of input {item}:{words}\n")
            });
            format!("  {difference}\n{}", words.unwrap_or_default())
        }
    }
}

/// Counts of verdicts, what was set aside, and whether `programs` programs from `first_seed` on had a failure.
pub fn summary(report: &Report, programs: u64, first_seed: u64, shape: Shape) -> String {
    let mut text = String::from(
        "| build            | programs | inputs | lanes | result |\n\
         | ---------------- | -------: | -----: | ----: | ------ |\n",
    );
    for ((build, kind), count) in &report.counts {
        let (build, inputs, lanes) = (build.to_string(), shape.items(), shape.wave_lanes());
        text += &format!("| {build:16} | {count:>8} | {inputs:>6} | {lanes:>5} | {kind} |\n");
    }
    for ((compiler, alarm), count) in &report.alarms {
        text += &format!("set aside: {}, {count} programs: {alarm}\n", compiler.program());
    }
    for Failure { program, build, .. } in &report.own_results {
        let seed = program.seed;
        text += &format!("set aside: seed {seed}, {build}: taken for an error of the compiler; look at it\n");
    }
    text += &match report.failures.first() {
        None => format!("{programs} programs from seed {first_seed}: no failure\n"),
        Some(first) => format!(
            "{} of {programs} programs failed; the first again with: --programs 1 --seed {}\n",
            report.failures.len(),
            first.program.seed
        ),
    };
    text
}

/// Mutants that are failures of the checking mode, counts of all, and reasons of those without effect.
pub fn mutants(report: &MutantReport) -> String {
    let mut text = String::new();
    for (seed, what) in &report.unfit {
        text += &format!("seed {seed} is no correct program: {what}\n");
    }
    for Judged { seed, build, class, place, fate } in &report.judged {
        match fate {
            Fate::Missed(what) => {
                text += &format!("MISSED: seed {seed}, {build}, {class} at {place}\n  {what}\n");
            }
            Fate::Benign(UNEXPLAINED) => {
                text += &format!("UNEXPLAINED, {UNEXPLAINED}: seed {seed}, {build}, {class} at {place}\n");
            }
            Fate::Benign(_) | Fate::Caught(_) => {}
        }
    }
    text += "| class              | mutants | caught | missed | benign |\n";
    text += "| ------------------ | ------: | -----: | -----: | -----: |\n";
    for (class, Tally { mutants, caught, missed, benign }) in report.tallies() {
        text += &format!("| {class:18} | {mutants:>7} | {caught:>6} | {missed:>6} | {benign:>6} |\n");
    }
    for ((class, reason), count) in report.reasons() {
        text += &format!("benign: {class}, {count}: {reason}\n");
    }
    text
}

/// Writes the source of a failing program, that of the smaller one, and the header of both.
pub fn keep(folder: &Path, failure: &Failure) -> Result<(), DifferentialError> {
    std::fs::create_dir_all(folder)
        .map_err(|source| DifferentialError::File { path: folder.into(), source })?;
    let seed = failure.program.seed;
    write(&folder.join(HEADER_NAME), HEADER.as_bytes())?;
    let put = |end: &str, program: &Program| {
        let path = folder.join(format!("seed-{seed}{end}.c"));
        write(&path, source(std::slice::from_ref(program)).as_bytes())
    };
    put("", &failure.program)?;
    failure.smaller.iter().try_for_each(|(smaller, _)| put("-smaller", smaller))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarms::Alarm;
    use crate::batch::{Breach, Difference};
    use crate::mutate::Class;
    use crate::program::{Call, Expression, Phase, Statement, Step};
    use crate::toolchain::{Build, Compiler};
    use crate::types::Type;
    use zrt_bringup::Finding;

    fn build(compiler: Compiler, optimisation: u8) -> Build {
        Build { compiler, optimisation, has_lines: false }
    }

    /// A program of one phase with this many assignments.
    fn program(seed: u64, statements: usize) -> Program {
        let assign = Statement::Assign(0, Expression::Constant(Type::U32, 5));
        let body = vec![assign; statements];
        Program { seed, steps: vec![Step::Phase(Phase { call: Call::Inline, private_words: 16, body })] }
    }

    fn difference(item: Option<usize>) -> Verdict {
        let what = "variable u32_3".into();
        Verdict::Differs(Difference { item, what, device: 0x2A, host: 7, count: 3 })
    }

    fn failed(verdict: Verdict, smaller: Option<(Program, Verdict)>) -> Failure {
        Failure { program: program(19, 3), build: build(Compiler::Clang22, 3), verdict, smaller }
    }

    fn shape() -> Shape {
        Shape::new(64, false).unwrap()
    }

    #[test]
    fn a_failure_is_told_with_its_verdict() {
        let finding = Finding {
            rule: "race".into(),
            what: "two waves store".into(),
            remedy: "place a barrier".into(),
            count: 2,
            seed: 1,
            ..Finding::default()
        };
        let breach = Verdict::Breaks(Box::new(Breach { finding, count: 4, is_wrong: true }));
        let head = "seed 19, clang-22 -O3\n";
        for (verdict, text) in [
            (Verdict::Same, "  same results\n"),
            (Verdict::Fault("it hangs".into()), "  fault: it hangs\n"),
            (
                breach,
                "  race: two waves store\n    remedy: place a barrier\n    2 time(s), seed 1\n    \
                 results wrong; findings of this schedule: 4\n",
            ),
            (
                difference(None),
                "  together: variable u32_3 is 0x2a on the device and 0x7 on the host; 3 results differ\n",
            ),
        ] {
            assert_eq!(failure(&failed(verdict, None), shape()), format!("{head}{text}"));
        }
    }

    /// An item's own sixteen words follow those of the items before it.
    #[test]
    fn a_difference_of_an_item_is_told_with_its_input() {
        let all = inputs(19, 64 * 64);
        let words: Vec<String> =
            all.as_chunks::<4>().0.iter().map(|word| format!("{:08x}", u32::from_le_bytes(*word))).collect();
        for item in [0, 1, 5, 63] {
            let text = format!(
                "seed 19, clang-22 -O3\n  input {item}: variable u32_3 is 0x2a on the device and 0x7 on the host; \
                 3 results differ\n  words of input {item}: {}\n",
                words[16 * item..16 * item + 16].join(" ")
            );
            assert_eq!(failure(&failed(difference(Some(item)), None), shape()), text);
        }
    }

    #[test]
    fn a_smaller_program_is_told_in_place_of_the_first_with_its_source() {
        let smaller = program(19, 1);
        let text = failure(&failed(difference(None), Some((smaller.clone(), Verdict::Same))), shape());
        let expected = format!(
            "seed 19, clang-22 -O3, made smaller from 7 to 3 nodes\n  same results\n{}\n",
            source(&[smaller])
        );
        assert_eq!(text, expected);
        assert!(text.contains("    s->u32_0 = (u32)0x5ul;\n"), "{text}");
    }

    #[test]
    fn a_summary_counts_verdicts_and_names_what_was_set_aside() {
        let own = Failure { build: build(Compiler::Clang19, 1), ..failed(difference(None), None) };
        let lines = Build { has_lines: true, ..build(Compiler::Clang22, 3) };
        let mut report = Report {
            counts: [
                ((lines, "same results".to_owned()), 1234),
                ((build(Compiler::Clang19, 0), "different results".to_owned()), 2),
            ]
            .into(),
            alarms: [((Compiler::Clang19, Alarm::OwnResults), 1), ((Compiler::Clang22, Alarm::Advice), 12)]
                .into(),
            failures: Vec::new(),
            own_results: vec![own],
        };
        let table = "\
| build            | programs | inputs | lanes | result |
| ---------------- | -------: | -----: | ----: | ------ |
| clang-19 -O0     |        2 |     64 |    32 | different results |
| clang-22 -O3 -g  |     1234 |     64 |    32 | same results |
set aside: clang-19, 1 programs: wrong results, which neither its -O0 nor clang 22 gives
set aside: clang-22, 12 programs: advice
set aside: seed 19, clang-19 -O1: taken for an error of the compiler; look at it
";
        let clean = format!("{table}40 programs from seed 7: no failure\n");
        assert_eq!(summary(&report, 40, 7, shape()), clean);
        report.failures = vec![failed(difference(None), None), failure_of_seed(33)];
        let failed = "2 of 40 programs failed; the first again with: --programs 1 --seed 19\n";
        assert_eq!(summary(&report, 40, 7, shape()), format!("{table}{failed}"));
    }

    fn failure_of_seed(seed: u64) -> Failure {
        Failure { program: program(seed, 1), ..failed(Verdict::Same, None) }
    }

    #[test]
    fn mutants_are_told_where_the_checking_mode_failed_and_counted_otherwise() {
        let judged = |seed, class, fate| Judged {
            seed,
            build: build(Compiler::Clang22, 2),
            class,
            place: format!("entry +{seed}: s_nop 0"),
            fate,
        };
        let report = MutantReport {
            judged: vec![
                judged(1, Class::WaitRemoved, Fate::Caught("counters".into())),
                judged(2, Class::WaitRemoved, Fate::Missed("schedule 1: it does not end: x".into())),
                judged(3, Class::WaitRemoved, Fate::Benign(UNEXPLAINED)),
                judged(4, Class::OffsetMoved, Fate::Benign("never executed")),
                judged(5, Class::OffsetMoved, Fate::Benign("never executed")),
                judged(6, Class::WaitRemoved, Fate::Caught("race".into())),
            ],
            unfit: vec![(9, "race: w".into())],
        };
        let text = "\
seed 9 is no correct program: race: w
MISSED: seed 2, clang-22 -O2, wait removed at entry +2: s_nop 0
  schedule 1: it does not end: x
UNEXPLAINED, a result under way is used: seed 3, clang-22 -O2, wait removed at entry +3: s_nop 0
| class              | mutants | caught | missed | benign |
| ------------------ | ------: | -----: | -----: | -----: |
| wait removed       |       4 |      2 |      1 |      1 |
| offset moved       |       2 |      0 |      0 |      2 |
benign: wait removed, 1: a result under way is used
benign: offset moved, 2: never executed
";
        assert_eq!(mutants(&report), text);
    }

    #[test]
    fn sources_of_a_failure_are_kept_with_their_header() {
        let folder = zrt_needs::TemporaryFolder::new("kept");
        let place = folder.join("new/folder");
        let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
        keep(&place, &failed(Verdict::Same, None)).unwrap();
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 2);
        assert_eq!(read("differential.h"), HEADER);
        assert_eq!(read("seed-19.c"), source(&[program(19, 3)]));
        keep(&place, &failed(Verdict::Same, Some((program(19, 1), Verdict::Same)))).unwrap();
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 3);
        assert_eq!(read("seed-19-smaller.c"), source(&[program(19, 1)]));
        // A file where the folder is to be.
        let error = keep(&place.join("seed-19.c"), &failed(Verdict::Same, None)).unwrap_err();
        assert!(matches!(error, DifferentialError::File { path, .. } if path == place.join("seed-19.c")));
    }
}
