//! Reports of made-up outcomes, and mutants of code that is written down here. Words of llvm-mc 22.

use super::*;
use crate::object::elf_file::{ALLOC, Content, EXECUTE, ElfFile, PROGBITS, descriptor};
use crate::object::symbol;
use crate::program::{Call, Phase};
use zrt_loader::RawOptions;

fn judged(class: Class, fate: Fate) -> Judged {
    let build = Build { compiler: Compiler::Clang22, optimisation: 1, has_lines: true };
    Judged { seed: 1, build, class, place: "entry +0: s_nop 0".into(), fate }
}

#[test]
fn a_report_is_clean_if_nothing_was_missed_and_all_is_explained() {
    let (caught, benign) = (Fate::Caught("race".into()), Fate::Benign("never executed"));
    let (missed, unexplained) = (Fate::Missed("w".into()), Fate::Benign(UNEXPLAINED));
    let is_clean = |fates: &[&Fate], unfit: &[(u64, String)]| {
        let judged = fates.iter().map(|fate| judged(Class::WaitRemoved, (*fate).clone())).collect();
        MutantReport { judged, unfit: unfit.to_vec() }.is_clean()
    };
    assert!(is_clean(&[], &[]) && is_clean(&[&caught, &benign], &[]));
    assert!(!is_clean(&[&caught, &benign], &[(3, "w".into())]));
    assert!(!is_clean(&[&caught, &missed, &benign], &[]));
    assert!(!is_clean(&[&caught, &unexplained, &benign], &[]));
    assert!(!is_clean(&[&missed, &unexplained], &[(3, "w".into())]));
}

#[test]
fn mutants_are_counted_by_class_and_by_fate() {
    let fates = [
        (Class::OffsetMoved, Fate::Caught("bounds".into())),
        (Class::WaitRemoved, Fate::Benign("b")),
        (Class::WaitRemoved, Fate::Caught("counters".into())),
        (Class::WaitRemoved, Fate::Benign("a")),
        (Class::WaitRemoved, Fate::Missed("w".into())),
        (Class::WaitRemoved, Fate::Benign("b")),
        (Class::OffsetMoved, Fate::Caught("bounds".into())),
    ];
    let judged = fates.map(|(class, fate)| judged(class, fate)).into();
    let report = MutantReport { judged, unfit: Vec::new() };
    let tallies = [
        (Class::WaitRemoved, Tally { mutants: 5, caught: 1, missed: 1, benign: 3 }),
        (Class::OffsetMoved, Tally { mutants: 2, caught: 2, missed: 0, benign: 0 }),
    ];
    assert_eq!(report.tallies(), tallies.into());
    assert_eq!(report.reasons(), [((Class::WaitRemoved, "a"), 1), ((Class::WaitRemoved, "b"), 2)].into());
}

fn campaign(mutants: u64) -> MutantCampaign {
    MutantCampaign { mutants, first_seed: 1, is_wave64: false, schedules: 1, jobs: 1, plant: None }
}

fn empty(seed: u64) -> Program {
    let phase = Phase { call: Call::Inline, private_words: 16, body: Vec::new() };
    Program { seed, steps: vec![Step::Phase(phase)] }
}

fn code(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An instruction for each class.
#[rustfmt::skip]
const EACH_CLASS: [u32; 16] = [
    0xBFC0_0000,                           // s_wait_loadcnt 0x0: to be removed, or raised
    0xBF88_FF9E,                           // s_wait_alu depctr_sa_sdst(0)
    0xBE80_4EC1,                           // s_barrier_signal -1
    0xBF94_FFFF,                           // s_barrier_wait 0xffff
    0xEE05_0004, 0x0008_0001, 0x0000_0000, // global_load_b32 v1, v0, s[4:5] scope:SCOPE_DEV: scope, or offset
    0xEE0A_C07C, 0x0008_0000, 0x0000_0000, // global_inv scope:SCOPE_DEV
    0xEE0B_007C, 0x0008_0000, 0x0000_0000, // global_wb scope:SCOPE_DEV
    0xBF80_0000,                           // s_nop 0
    0xBF80_0000,
    0xBFB0_0000,                           // s_endpgm
];

/// Calls `see` with a subject whose code is these words.
fn with_subject<T>(words: &[u32], seed: u64, see: impl FnOnce(&Subject<'_>) -> T) -> T {
    let loaded =
        zrt_loader::Program::raw(&code(words), &RawOptions { name: "p0".into(), ..RawOptions::default() });
    let (loaded, program) = (loaded.unwrap(), empty(seed));
    let build = Build { compiler: Compiler::Clang22, optimisation: 0, has_lines: false };
    let subject = campaign(1).subject((&program, 0), build, &loaded, Vec::new(), &[]).unwrap();
    see(&subject)
}

#[test]
fn classes_have_their_turns_until_there_are_enough_or_no_more() {
    let classes = |count| {
        with_subject(&EACH_CLASS.repeat(2), 1, |subject| {
            let chosen = campaign(count).choose(subject, count);
            let places: BTreeSet<(Class, usize)> = chosen.iter().map(|one| (one.class, one.index)).collect();
            assert_eq!(places.len(), chosen.len(), "a mutant is chosen once");
            chosen.iter().map(|mutant| mutant.class).collect::<Vec<Class>>()
        })
    };
    let all = classes(16);
    assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), Class::ALL.into());
    assert_eq!(all[..8], all[8..]);
    for count in [0, 1, 7, 8, 9, 15] {
        assert_eq!(classes(count), all[..count as usize]);
    }
    assert_eq!(classes(1000), all);
    // What follows in turn is the order of the list, from one of them on.
    let first = Class::ALL.iter().position(|class| *class == all[0]).unwrap();
    assert_eq!(all[..8], [&Class::ALL[first..], &Class::ALL[..first]].concat());
}

/// A program with few mutants of some classes has more of the others.
#[test]
fn a_class_without_mutants_is_passed_over() {
    let words = [[0xBFC0_0000; 3].as_slice(), &[0xBE80_4EC1, 0xBF94_FFFF, 0xBFB0_0000]].concat();
    let counts = with_subject(&words, 2, |subject| {
        let chosen = campaign(7).choose(subject, 7);
        let count = |class| chosen.iter().filter(|one| one.class == class).count();
        [Class::WaitRemoved, Class::WaitRaised, Class::BarrierRemoved].map(count)
    });
    assert_eq!(counts, [3, 3, 1]);
}

/// Seeds that differ in a single bit choose differently.
#[test]
fn each_seed_has_a_choice_of_its_own() {
    let words = [0xBFC0_0000; 1000];
    let chosen = |seed| {
        with_subject(&words, seed, |subject| {
            campaign(6).choose(subject, 6).into_iter().map(|one| one.index).collect::<Vec<usize>>()
        })
    };
    let first = chosen(0x55);
    assert_eq!(chosen(0x55), first);
    for bit in 0..8 {
        assert_ne!(chosen(0x55 ^ 1 << bit), first, "bit {bit}");
    }
}

/// Two kernels of 256 bytes with two functions between them, each of its own; only instructions of the first kernel
/// and of its functions are its code.
#[test]
fn code_of_other_programs_is_no_subject() {
    let nops = vec![0xBF80_0000u32; 192];
    let mut file = ElfFile::new();
    let text = file.section(".text", PROGBITS, ALLOC | EXECUTE, Content::Own(code(&nops)));
    let data = [descriptor(-768), descriptor(-768 + 512 - 64)].concat();
    let data = file.section(".rodata", PROGBITS, ALLOC, Content::Own(data));
    for (name, section, value, kind, bytes) in [
        ("p0", text, 0u64, 2, 0x40u64),
        ("p0_1", text, 0x100, 2, 0x20),
        ("p1_1", text, 0x120, 2, 0x40),
        ("p0_2", text, 0x180, 2, 0x08),
        ("p1", text, 0x200, 2, 0x100),
        ("p0.kd", data, 0, 1, 64),
        ("p1.kd", data, 64, 1, 64),
    ] {
        symbol(&mut file, name, section, value, (kind, bytes));
    }
    let loaded = zrt_loader::Program::parse(&file.bytes()).unwrap();
    let build = Build { compiler: Compiler::Clang22, optimisation: 0, has_lines: false };
    let offsets = |index: usize| {
        let program = empty(1);
        let subject = campaign(1).subject((&program, index), build, &loaded, Vec::new(), &[]).unwrap();
        subject.code.iter().map(|placed| placed.offset).collect::<Vec<u64>>()
    };
    let words = |ranges: &[std::ops::Range<u64>]| {
        ranges.iter().cloned().flat_map(|range| range.step_by(4)).collect::<Vec<u64>>()
    };
    assert_eq!(offsets(0), words(&[0..0x40, 0x100..0x120, 0x180..0x188]));
    assert_eq!(offsets(1), words(&[0x120..0x160, 0x200..0x300]));
}

#[test]
fn waves_meet_in_what_a_group_or_the_grid_does_together() {
    let order = "none";
    assert!(meets(&Step::Share { variable: 0, factor: 1, offset: 0 }));
    assert!(meets(&Step::ShareAtomic { operation: "add", value: 0, index: 1 }));
    assert!(meets(&Step::Together { operation: "REDUCE", to: 0, from: 1, order, number: 2 }));
    assert!(!meets(&Step::Cross { operation: "ballot", to: 0, from: 1, index: 2, immediate: 3 }));
    assert!(!meets(&empty(1).steps[0]));
}

#[test]
fn a_launch_differs_if_it_faults_or_has_other_results() {
    let host = vec![0; Shape::of_mutants(false).result_bytes()];
    let difference = |outcome| {
        let checked = Checked { schedule: 3, outcome, findings: Vec::new() };
        campaign(1).difference(&checked, &host)
    };
    assert_eq!(difference(Outcome::Ran(host.clone())), None);
    let wrong = [&[7], &host[1..]].concat();
    let text =
        "schedule 3: input 0: variable u32_0 is 0x7 on the device and 0x0 on the host; 1 results differ";
    assert_eq!(difference(Outcome::Ran(wrong)).as_deref(), Some(text));
    let text = "schedule 3: it does not end: it hangs";
    assert_eq!(difference(Outcome::Fault("it hangs".into())).as_deref(), Some(text));
}

/// Findings are the same if rule, place and register are; how often and by whom does not matter.
#[test]
fn a_finding_is_known_by_its_rule_its_place_and_its_register() {
    let place = |offset| {
        let (kernel, source, source_text) = (None, None, None);
        zrt_device::Place { pc: offset, kernel, offset: Some(offset), source, source_text }
    };
    let one = Finding {
        rule: "race".into(),
        place: Some(place(8)),
        register: Some("v1".into()),
        ..Finding::default()
    };
    assert_eq!(key(&Finding { count: 9, wave: 3, what: "w".into(), ..one.clone() }), key(&one));
    assert_ne!(key(&Finding { rule: "bounds".into(), ..one.clone() }), key(&one));
    assert_ne!(key(&Finding { place: Some(place(12)), ..one.clone() }), key(&one));
    assert_ne!(key(&Finding { register: None, ..one.clone() }), key(&one));
    assert_ne!(key(&Finding { place: None, ..one.clone() }), key(&one));
}

#[test]
fn a_finding_is_of_the_mistake_unless_it_is_advice_or_the_programs_own() {
    let finding = |rule: &str| Finding { rule: rule.into(), ..Finding::default() };
    let known = BTreeSet::from([key(&finding("race"))]);
    let new = ["bounds", "race", "advice"].map(|rule| is_new(&finding(rule), &known));
    assert_eq!(new, [true, false, false]);
}
