//! Sequences that are checked and named without a device.

use super::labels::null_services;
use super::resident::Resident;
use super::sequence::scratch_bytes;
use super::*;
use zrt_bringup::VirtualOptions;
use zrt_loader::{Argument, Arguments, DynamicLds, Hidden, RawOptions, ValueKind};
use zrt_mem::GpuVa;

pub(super) mod object;
mod runs;
mod services;

/// s_endpgm.
const ENDPGM: [u8; 4] = [0, 0, 0xb0, 0xbf];

fn raw_program(options: &RawOptions) -> Program {
    Program::raw(&ENDPGM, options).unwrap()
}

/// The program of `double.s`, whose kernel has one argument, `data`.
fn double() -> Program {
    let bytes: Vec<u8> =
        crate::double_object::DOUBLE_OBJECT.iter().flat_map(|word| word.to_le_bytes()).collect();
    Program::parse(&bytes).unwrap()
}

fn dispatch(label: &str, arguments: Vec<Given>) -> Dispatch {
    Dispatch {
        label: label.to_owned(),
        program: 0,
        kernel: 0,
        geometry: Geometry::new([1; 3], [32, 1, 1]),
        arguments,
        waits: true,
    }
}

/// A sequence over buffers of these lengths, called `b0`, `b1` and so on.
fn sequence(lengths: &[u64], actions: Vec<Action>) -> Sequence<'static> {
    let buffer = |(number, length): (usize, &u64)| SharedBuffer {
        label: format!("b{number}"),
        name: None,
        number,
        content: Content::Zeros(*length),
        is_read_only: false,
    };
    Sequence {
        programs: vec![Cow::Owned(raw_program(&RawOptions::default()))],
        buffers: lengths.iter().enumerate().map(buffer).collect(),
        actions,
        deadline: DEADLINE_DEFAULT,
        pauses: None,
        placement: None,
    }
}

/// Words that are read, and the number of the action that reads them.
type Read = (usize, Vec<u32>);

/// What a sequence reports, and what it reads.
fn run_with(sequence: &Sequence<'_>, options: &OpenOptions) -> (Result<Report, LaunchError>, Vec<Read>) {
    let mut reads = Vec::new();
    let report = run_sequence(sequence, DeviceChoice::Virtual, options, &mut |seen| {
        let Seen::Read { action, bytes } = seen else { return };
        reads.push((action, bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()));
    });
    (report, reads)
}

/// The complaint about an action on buffers of 8 and 4 bytes; empty if it is accepted.
fn complaint(action: Action) -> String {
    sequence(&[8, 4], vec![action]).check().err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn buffers_have_bytes_and_not_too_many() {
    let found = |bytes| sequence(&[1, bytes], Vec::new()).check().err().map(|error| error.to_string());
    assert_eq!([1, BUFFER_BYTES_MAX].map(found), [None, None]);
    for bytes in [0, BUFFER_BYTES_MAX + 1] {
        let expected = format!("b1 is a buffer of {bytes} bytes, but must have 1 to {BUFFER_BYTES_MAX}");
        assert_eq!(found(bytes), Some(expected));
    }
    let contents =
        [Content::Bytes(Cow::Owned(vec![7; 3])), Content::Bytes(Cow::Owned(vec![])), Content::Zeros(5)];
    assert_eq!(contents.clone().map(|content| content.len()), [3, 0, 5]);
    assert_eq!(contents.map(|content| content.is_empty()), [false, true, false]);
}

/// The last byte of a buffer is in it, and the one after it is not; sums do not wrap.
#[test]
fn the_host_stays_inside_of_buffers() {
    let write = |buffer, offset, bytes| Action::Write { buffer, offset, bytes: Arc::new(vec![1; bytes]) };
    let copy = |from, to, bytes| Action::Copy { from, to, bytes };
    for action in [
        write(0, 0, 8),
        write(0, 8, 0),
        write(1, 1, 3),
        copy((0, 4), (1, 0), 4),
        Action::Read { buffer: 1 },
        Action::Dispatch(dispatch("kernel raw", vec![Given::Buffer { buffer: 1, offset: 3 }])),
    ] {
        assert_eq!(complaint(action.clone()), "", "{action:?}");
    }
    let outside = |bytes: u64, offset: u64, buffer: &str, length| {
        format!("{bytes} byte(s) from offset {offset} on are outside of {buffer}, which has {length} bytes")
    };
    let none = "that is not there";
    for (action, expected) in [
        (write(0, 1, 8), outside(8, 1, "b0", 8)),
        (write(0, u64::MAX, 1), outside(1, u64::MAX, "b0", 8)),
        (write(2, 0, 1), outside(1, 0, none, 0)),
        (copy((0, 5), (1, 0), 4), outside(4, 5, "b0", 8)),
        (copy((0, 0), (1, 0), 5), outside(5, 0, "b1", 4)),
        (Action::Read { buffer: 2 }, outside(0, 0, none, 0)),
        (
            Action::Dispatch(dispatch("kernel raw", vec![Given::Buffer { buffer: 1, offset: 4 }])),
            outside(1, 4, "b1", 4),
        ),
    ] {
        assert_eq!(complaint(action), expected);
    }
}

#[test]
fn launches_are_as_many_as_a_graph_holds_and_have_a_kernel() {
    let launches = |count| {
        let all = vec![Action::Dispatch(dispatch("kernel raw", Vec::new())); count];
        sequence(&[], all).check().err().map(|error| error.to_string())
    };
    assert_eq!(launches(LAUNCHES_MAX), None);
    let expected = "4097 launches are requested, but at most 4096 are possible: repeat less";
    assert_eq!(launches(LAUNCHES_MAX + 1).unwrap(), expected);
    for (program, kernel) in [(1, 0), (0, 1)] {
        let lost = Dispatch { program, kernel, ..dispatch("kernel lost", Vec::new()) };
        assert_eq!(complaint(Action::Dispatch(lost)), "kernel lost has no kernel; the kernels are ");
    }
    let wrong = Dispatch { geometry: Geometry::new([0, 1, 1], [32, 1, 1]), ..dispatch("k", Vec::new()) };
    assert_ne!(complaint(Action::Dispatch(wrong)), "");
}

/// Launches that do not wait for each other would share scratch memory.
#[test]
fn kernels_with_scratch_wait_for_each_other() {
    let of = |scratch_bytes, waits| {
        let program = raw_program(&RawOptions { scratch_bytes, ..RawOptions::default() });
        let launch = Action::Dispatch(Dispatch { waits, ..dispatch("kernel raw", Vec::new()) });
        let sequence = Sequence { programs: vec![Cow::Owned(program)], ..sequence(&[], vec![launch]) };
        sequence.check().err().map(|error| error.to_string())
    };
    assert_eq!((of(0, true), of(0, false), of(16, true)), (None, None, None));
    let expected =
        "kernel raw uses scratch memory, which its launches share: it cannot be launched without waiting";
    assert_eq!(of(16, false).as_deref(), Some(expected));
    // 16 KiB for calls whose need nobody knows, as LLVM assumes.
    let kernel = Kernel { scratch_bytes: 100, ..double().kernels()[0].clone() };
    assert_eq!(scratch_bytes(&kernel), 100);
    assert_eq!(scratch_bytes(&Kernel { dynamic_stack: true, ..kernel }), 16_484);
}

#[test]
fn arguments_are_addresses_in_buffers_or_values() {
    let given = vec![Given::Buffer { buffer: 1, offset: 0x20 }, Given::Value(ArgumentValue::U32(7))];
    let values = dispatch("k", given).values(|buffer| GpuVa(0x1000 * buffer as u64));
    assert_eq!(values, [ArgumentValue::Buffer(GpuVa(0x1020)), ArgumentValue::U32(7)]);
}

/// Outputs are read back, and what else is asked for; arguments for reading are read-only.
#[test]
fn a_request_is_a_sequence_of_one_launch_and_its_reads() {
    let program = double();
    let arguments = [
        LaunchArgument::In(vec![1; 4]),
        LaunchArgument::Value(ArgumentValue::U8(9)),
        LaunchArgument::Work(vec![2; 5]),
        LaunchArgument::Out(6),
        LaunchArgument::InOut(vec![3; 7]),
    ];
    assert_eq!(arguments.each_ref().map(LaunchArgument::is_output), [false, false, false, true, true]);
    let request = LaunchRequest {
        arguments: &arguments,
        dumped: &[2],
        ..LaunchRequest::new(&program, Geometry::new([1; 3], [32, 1, 1]))
    };
    let sequence = request.sequence().unwrap();
    let buffers: Vec<_> = sequence
        .buffers
        .iter()
        .map(|one| (one.label.as_str(), one.name.as_deref(), one.number, one.content.len(), one.is_read_only))
        .collect();
    let expected = [
        ("argument 0 (data)", Some("data"), 0, 4, true),
        ("argument 2", None, 2, 5, false),
        ("argument 3", None, 3, 6, false),
        ("argument 4", None, 4, 7, false),
    ];
    assert_eq!(buffers, expected);
    let told: Vec<String> = sequence
        .actions
        .iter()
        .map(|action| match action {
            Action::Dispatch(one) => format!("{} {} {:?}", one.label, one.kernel, one.arguments),
            other => format!("{other:?}"),
        })
        .collect();
    let given = |buffer| format!("Buffer {{ buffer: {buffer}, offset: 0 }}");
    let launch =
        format!("kernel double 0 [{}, Value(U8(9)), {}, {}, {}]", given(0), given(1), given(2), given(3));
    assert_eq!(told, [&launch, "Read { buffer: 1 }", "Read { buffer: 2 }", "Read { buffer: 3 }"]);
}

#[test]
fn a_kernel_is_found_by_its_name_and_has_the_waves_that_are_asked_for() {
    let program = double();
    let request = LaunchRequest::new(&program, Geometry::new([1; 3], [32, 1, 1]));
    let found = |kernel, wave_size| {
        let request = LaunchRequest { kernel, wave_size, ..request.clone() };
        request.sequence().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(found(Some("double"), Some(WaveSize::Wave32)), Ok(()));
    assert_eq!(found(None, None), Ok(()));
    let expected = "there is no kernel \"triple\"; the kernels are double";
    assert_eq!(found(Some("triple"), None), Err(expected.to_owned()));
    let expected = "kernel double is made for wave32, not wave64";
    assert_eq!(found(None, Some(WaveSize::Wave64)), Err(expected.to_owned()));
}

#[test]
fn a_report_has_the_bytes_of_outputs_and_dumps() {
    let output = |argument| LaunchOutput { argument, bytes: vec![argument as u8; 2] };
    let report = LaunchReport {
        device: String::new(),
        is_virtual: true,
        kernel: String::new(),
        counters: Counters::default(),
        outputs: vec![output(1), output(4)],
        dumps: vec![output(2)],
        findings: Vec::new(),
        profile: None,
        printed: Printed::default(),
        unprinted: None,
    };
    let found = [0, 1, 2, 4].map(|argument| report.buffer(argument));
    assert_eq!(found, [None, Some(&[1, 1][..]), Some(&[2, 2][..]), Some(&[4, 4][..])]);
}

/// Names count given arguments; services that are absent are told by the metadata's names.
#[test]
fn arguments_have_the_names_of_the_metadata() {
    let argument = |name: Option<&str>, kind| Argument {
        name: name.map(str::to_owned),
        type_name: None,
        offset: 0,
        bytes: 8,
        kind,
        address_space: None,
        pointee_alignment: 1,
    };
    let list = vec![
        argument(Some("a"), ValueKind::GlobalBuffer),
        argument(Some("hidden"), ValueKind::Hidden(Hidden::Null("hidden_heap_v1".to_owned()))),
        argument(None, ValueKind::ByValue),
        argument(None, ValueKind::Hidden(Hidden::None)),
        argument(Some("c"), ValueKind::ByValue),
    ];
    let kernel = double().kernels()[0].clone();
    let described =
        Kernel { arguments: Arguments::Described { bytes: 40, alignment: 8, list }, ..kernel.clone() };
    let labels = [0, 1, 2, 3].map(|index| argument_label(&described, index));
    assert_eq!(labels, ["argument 0 (a)", "argument 1", "argument 2 (c)", "argument 3"]);
    assert_eq!(argument_name(&described, 2), Some("c"));
    assert_eq!(null_services(&described), ["hidden_heap_v1"]);
    let natural = Kernel { arguments: Arguments::Natural { bytes: 8 }, ..kernel };
    assert_eq!(argument_label(&natural, 0), "argument 0");
    assert!(null_services(&natural).is_empty());
}

/// A name goes before a number, and the first list stays.
#[test]
fn placed_buffers_are_found_by_name_or_number() {
    let buffer = |argument, name: Option<&str>| PlacedBuffer {
        argument,
        name: name.map(str::to_owned),
        va: 0x100 * argument as u64,
        bytes: 4,
    };
    let placement = Placement::default();
    assert_eq!((placement.buffers(), placement.find("arg0")), (&[][..], None));
    placement.tell(vec![buffer(0, Some("arg2")), buffer(2, Some("x")), buffer(10, None)]);
    placement.tell(vec![buffer(7, None)]);
    let found = |name| placement.find(name).map(|buffer| buffer.argument);
    let names = ["x", "arg2", "arg10", "arg0", "arg7", "10", "argx", ""];
    assert_eq!(names.map(found), [Some(2), Some(0), Some(10), Some(0), None, None, None, None]);
    assert_eq!(placement.buffers().len(), 3);
}

/// A launch is told by its packet; if nobody knows it, by what was submitted last.
#[test]
fn what_was_running_is_called_by_its_label() {
    let launch = |label: &str| Action::Dispatch(dispatch(label, Vec::new()));
    let sequence = sequence(&[4], vec![launch("kernel a"), launch("kernel b"), Action::Read { buffer: 0 }]);
    let mut resident =
        Resident { packets: vec![(0x100..0x140, 0), (0x140..0x180, 1)], ..Resident::default() };
    let actions = [0xff, 0x100, 0x13f, 0x140, 0x17f, 0x180].map(|packet| resident.launched_at(GpuVa(packet)));
    assert_eq!(actions, [None, Some(0), Some(0), Some(1), Some(1), None]);
    let finding = Finding { launched_at: Some(GpuVa(0x150)), ..Finding::default() };
    let located = resident.locate(3, finding.clone());
    assert_eq!(located, Located { finding, action: Some(1), number: 3 });
    assert_eq!(resident.va(0), GpuVa(0));
    let mut work = |last, action| {
        resident.last = last;
        resident.work(&sequence, action)
    };
    assert_eq!(work(0..2, None), "kernel a, or a launch submitted with it,");
    assert_eq!(work(1..2, None), "kernel b");
    assert_eq!(work(0..2, Some(1)), "kernel b");
    assert_eq!(work(2..2, None), "the sequence");
    assert_eq!(work(3..3, None), "the sequence");
}

/// An offset alone is no address.
#[test]
fn a_kernel_without_loaded_code_has_no_entry() {
    let kernel = Kernel { entry_offset: 0x100, ..double().kernels()[0].clone() };
    for codes in [Vec::new(), vec![None]] {
        let resident = Resident { codes, ..Resident::default() };
        assert_eq!(resident.entry(&dispatch("k", Vec::new()), &kernel), None);
    }
}

/// Only what happens on a device is not the request's fault.
#[test]
fn errors_say_whose_fault_they_are() {
    let name = || "k".to_owned();
    let failed = |source| LaunchError::Device {
        work: "kernel k".to_owned(),
        source,
        findings: Vec::new(),
        printed: Box::default(),
        waves: Box::default(),
    };
    let endless = || Unfinished::Endless(Duration::from_millis(1500));
    for (error, is_bad_input, text) in [
        (LaunchError::SharedScratch { kernel: name() }, true, "kernel k uses scratch memory, which"),
        (
            LaunchError::NotVirtual { choice: "kfd" },
            true,
            "--check, --seeds, --profile and step inspect the virtual device; --device kfd cannot be inspected",
        ),
        (
            failed(endless()),
            false,
            "kernel k did not run to its end: the device did not finish within 1500 ms; --timeout gives it more time",
        ),
    ] {
        assert_eq!(error.is_bad_input(), is_bad_input, "{error}");
        assert!(error.to_string().starts_with(text), "{error}");
    }
    assert!(endless().is_timeout() && endless().fault().is_none());
}
