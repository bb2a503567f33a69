//! Sequences that run on the virtual device under the checking mode.

use super::*;

/// What a sequence over `double` reports, and what it reads.
fn run(sequence: &Sequence<'_>) -> (Report, Vec<(usize, Vec<u32>)>) {
    let virtual_device = VirtualOptions { check: true, profile: true, ..VirtualOptions::default() };
    let options = OpenOptions { virtual_device, ..OpenOptions::default() };
    let (report, reads) = run_with(sequence, &options);
    (report.unwrap(), reads)
}

/// A launch of `double` with one wave over a buffer.
fn launch(buffer: usize) -> Action {
    Action::Dispatch(dispatch("kernel double", vec![Given::Buffer { buffer, offset: 0 }]))
}

/// The sequence over buffers of 32 words: the first with numbers from 1, the others zeros.
fn of_double(buffers: usize, actions: Vec<Action>) -> Sequence<'static> {
    let mut sequence =
        Sequence { programs: vec![Cow::Owned(double())], ..sequence(&vec![128; buffers], actions) };
    let numbers: Vec<u8> = (1..=32_u32).flat_map(u32::to_le_bytes).collect();
    sequence.buffers[0].content = Content::Bytes(Cow::Owned(numbers));
    sequence
}

fn written(buffer: usize, bytes: &[u8]) -> Action {
    Action::Write { buffer, offset: 0, bytes: Arc::new(bytes.to_vec()) }
}

/// Launches that follow each other are one submission; the host acts between submissions, in order.
#[test]
fn launches_and_the_host_take_their_turns() {
    let actions = vec![
        launch(0),
        launch(0),
        Action::Copy { from: (0, 64), to: (1, 4), bytes: 8 },
        written(0, &[100, 0, 0, 0]),
        launch(0),
        Action::Read { buffer: 0 },
        Action::Read { buffer: 1 },
    ];
    let placement = Placement::default();
    let sequence = Sequence { placement: Some(&placement), ..of_double(2, actions) };
    let (report, reads) = run(&sequence);
    let mut data: Vec<u32> = (1..=32).map(|number| 8 * number).collect();
    data[0] = 200;
    let mut copy = vec![0; 32];
    // The 17th and the 18th number, doubled twice.
    copy[1..3].copy_from_slice(&[68, 72]);
    assert_eq!(reads, [(5, data), (6, copy)]);
    assert_eq!((report.findings, report.is_virtual), (Vec::new(), true));
    let Counters { dispatches, submissions, wave_instructions, .. } = report.counters;
    // Eight instructions of one wave.
    assert_eq!((dispatches, submissions, wave_instructions), (3, 2, Some(24)));
    let profile = report.profile.unwrap();
    assert_eq!(
        (profile.wave_instructions, profile.bytes.vector_load, profile.bytes.vector_store),
        (24, 384, 384)
    );
    let mut places: Vec<String> =
        profile.places.iter().filter_map(|counts| Some(counts.place.as_ref()?.to_string())).collect();
    places.sort();
    assert_eq!((places.len(), places[0].as_str(), places[7].as_str()), (8, "double+0x0", "double+0xc"));
    let [first, second] = placement.buffers() else { panic!("{placement:?}") };
    assert_eq!((first.bytes, second.argument, second.bytes), (128, 1, 128));
    assert!(first.va > 0 && first.va != second.va, "{placement:?}");
}

/// What nobody wrote is a finding when it is loaded; what the host writes at any time is not.
#[test]
fn zeros_that_the_host_does_not_write_count_as_unwritten() {
    let rules = |actions| {
        let (report, _) = run(&of_double(2, actions));
        let told = report.findings.iter().map(|located| (located.finding.rule.clone(), located.action));
        told.collect::<Vec<_>>()
    };
    assert_eq!(rules(vec![launch(0), launch(1)]), [("uninitialised".to_owned(), Some(1))]);
    assert!(rules(vec![written(1, &[1]), launch(1)]).is_empty());
    assert!(rules(vec![Action::Copy { from: (0, 0), to: (1, 0), bytes: 4 }, launch(1)]).is_empty());
    assert_eq!(rules(vec![Action::Copy { from: (1, 0), to: (0, 0), bytes: 4 }, launch(1)]).len(), 1);
}

/// A store to a buffer for reading is a finding of its launch, with the buffer's name.
#[test]
fn a_store_to_a_buffer_for_reading_is_found() {
    let mut sequence = of_double(1, vec![Action::Read { buffer: 0 }, launch(0)]);
    sequence.buffers[0].is_read_only = true;
    let (report, _) = run(&sequence);
    let [Located { finding, action, number }] = &report.findings[..] else { panic!("{report:?}") };
    assert_eq!((finding.rule.as_str(), *action, *number), ("bounds", Some(1), 0));
    assert!(finding.to_string().contains("b0"), "{finding}");
}

/// The rows of a container's line table are those of its code.
#[test]
fn lines_are_told_to_the_device_as_the_file_has_them() {
    let bytes = zrt_asm::blob("mega").unwrap();
    let program = Program::parse(bytes).unwrap();
    let kernel = zrt_isa::zrt::Kernel::parse(bytes).unwrap();
    let expected: Vec<(u64, usize, u32)> =
        kernel.lines.iter().map(|line| (line.code_offset.into(), line.file as usize, line.line)).collect();
    assert!(expected.len() > 100);
    assert_eq!(super::super::execute::lines_of(program.lines()), expected);
}
