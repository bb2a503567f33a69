//! The megakernel under the checking mode (no finding and the oracle's tokens on every schedule), its number of
//! workgroups, and how soon a cancel takes effect.

use std::mem::offset_of;
use std::ops::Range;
use std::time::{Duration, Instant};
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions};
use zrt_device::{Attachment, Buffer, Device, Graph, Kernel, Ticket};
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::model::Model;
use zrt_engine::session::{Mode, Session, SessionError, SessionOptions};
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::{COUNTERS_OFFSET, TapeEntry};
use zrt_tests::assembly::{Code, Shape, container};
use zrt_tests::mixed_model::mixed_model;
use zrt_tests::serving::{Asked, Told, checked_config, checked_session_over, expected, expected_with};
use zrt_tests::{find_model, load, repository_model};
use zrt_vgpu::{Config, VirtualGpu};

const CONTEXT: u32 = 48;
/// Longest that a device may take to leave, or to reach where it is awaited.
const LEAVE: Duration = Duration::from_secs(30);
/// A dword between the count of ended steps and the first task's counter, which nobody reads.
const SPARE: u32 = 128;

/// Spins until the dword at `s[0:1]` is not 0: `v_mov_b32_e32 v0, 0`; `global_load_b32 v1, v0, s[0:1]
/// scope:SCOPE_SYS`; `s_wait_loadcnt 0x0`; `v_readfirstlane_b32 s4, v1`; `s_wait_alu 0xf1ff`; `s_cmp_eq_u32 s4, 0`;
/// `s_cbranch_scc1` to the load; `s_endpgm`.
const WAIT_FOR_WORD: [u32; 10] = [
    0x7E00_0280,
    0xEE05_0000,
    0x000C_0001,
    0,
    0xBFC0_0000,
    0x7E08_0501,
    0xBF88_F1FF,
    0xBF06_8004,
    0xBFA2_FFF8,
    0xBFB0_0000,
];

fn options(mode: Mode, groups: u32) -> SessionOptions {
    SessionOptions {
        mode,
        groups: Some(groups),
        slots: 2,
        waiting_max: 2,
        context: CONTEXT,
        chunk_rows: 5,
        output_entries: 128,
        page_order_seed: Some(3),
        activations: Activations::F32,
        ..SessionOptions::default()
    }
}

/// Runs requests with a number of workgroups on each of the schedules.
fn check(name: &str, mode: Mode, groups: u32, seeds: Range<u64>, asked: &[Asked]) {
    check_on(name, mode, groups, seeds.map(checked_config), asked);
}

/// The same on each of the devices.
fn check_on(name: &str, mode: Mode, groups: u32, configs: impl IntoIterator<Item = Config>, asked: &[Asked]) {
    check_with(name, &options(mode, groups), configs, asked);
}

/// The same with these options.
fn check_with(
    name: &str,
    options: &SessionOptions,
    configs: impl IntoIterator<Item = Config>,
    asked: &[Asked],
) {
    let Some(path) = find_model(&format!("{name}.gguf")) else { return };
    check_model(name, &load(&path), options, configs, asked);
}

/// The same with this model.
fn check_model(
    name: &str,
    model: &Model,
    options: &SessionOptions,
    configs: impl IntoIterator<Item = Config>,
    asked: &[Asked],
) {
    let expected = expected_with(model, options.context, options.activations, asked);
    let (mode, groups) = (options.mode, options.groups.expect("given"));
    for config in configs {
        let (started, seed) = (Instant::now(), config.seed);
        let (mut session, _) = checked_session_over(model, options, config);
        session.start().expect("starts");
        let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
        let mut told = Told::new(asked.len());
        told.run(&mut session, &handles).expect("the session runs");
        let device = session.close(LEAVE).expect("the device leaves");
        let findings = device.findings().expect("readable");
        let instructions = device.counters().expect("readable").wave_instructions.unwrap_or(0);
        let run = format!("{name}, {mode:?}, {groups} workgroups, seed {seed}");
        eprintln!("{run}: {instructions} wave instructions in {:?}", started.elapsed());
        let all = || findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(findings.is_empty(), "{run}: {} findings:\n{}", findings.len(), all());
        assert_eq!(told.tokens, expected, "{run}");
    }
}

/// More than there are slots, one longer than a chunk, greedy and sampled.
fn three() -> [Asked; 3] {
    [Asked::greedy([1, 261], 2), Asked::sampled(1..8, 1, 7), Asked::sampled([5], 1, 8)]
}

const SMALL: &str = "stories260K-ff192-Q4_0";

#[test]
fn one_workgroup_is_clean() {
    check(SMALL, Mode::Mega, 1, 0..2, &three());
}

/// More than two for each slot: SAMPLE of the second workgroup reads prompts that the host wrote over older ones while
/// the kernel ran.
#[test]
fn prompts_of_slots_that_are_used_again_are_clean() {
    let asked = [
        Asked::sampled([5, 9, 11], 2, 8),
        Asked::sampled([7, 3, 2], 2, 9),
        Asked::sampled([21, 22, 23], 2, 10),
        Asked::sampled([31, 32, 33], 2, 11),
    ];
    check(SMALL, Mode::Mega, 2, 0..2, &asked);
}

#[test]
fn three_workgroups_are_clean() {
    check(SMALL, Mode::Mega, 3, 2..6, &three());
}

#[test]
fn six_workgroups_are_clean() {
    check(SMALL, Mode::Mega, 6, 6..8, &three());
}

/// Five are asked for, and the chip has room for two, whatever it said: the others begin when these have left.
#[test]
fn workgroups_without_room_take_no_part() {
    let model = load(&repository_model("tales-qwen3-Q4_0.gguf"));
    let expected = expected(&model, CONTEXT, &three());
    for seed in 0..2 {
        let config = Config { compute_units: 1, ..checked_config(seed) };
        let (mut session, _) = checked_session_over(&model, &options(Mode::Mega, 5), config);
        assert_eq!(session.groups(), None, "it has not started");
        session.start().expect("starts");
        assert_eq!(session.groups(), Some(2), "that are resident");
        let handles: Vec<_> = three().iter().map(|one| one.submit(&mut session)).collect();
        let mut told = Told::new(handles.len());
        told.run(&mut session, &handles).expect("the session runs");
        assert_eq!(told.tokens, expected, "seed {seed}");
        let device = session.close(LEAVE).expect("all five leave");
        let findings = device.findings().expect("readable");
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// What the device has allocated are the regions that the checking mode knows.
fn watch(gpu: &VirtualGpu, device: &Device) {
    for (name, va, len) in device.allocations() {
        gpu.watch_region(&name, va.0, len.0);
    }
}

/// A kernel that waits for a word on a device, and keeps others out of the room that it takes.
struct Waiting {
    word: Buffer,
    ticket: Ticket,
    _kept: (Kernel, Graph),
}

impl Waiting {
    /// A workgroup with that much LDS, once it runs.
    fn start(gpu: &VirtualGpu, device: &mut Device, lds_bytes: u32) -> Waiting {
        let shape = Shape { name: "waits", work_items: 32, lds_bytes };
        let bytes = WAIT_FOR_WORD.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = Code { bytes, lines: Vec::new() };
        let kernel = device.load_kernel(&container(&shape, &code)).expect("loads");
        let word = device.allocate(Heap::HostShared, ByteLen(32), "word").expect("allocates");
        device.upload(&word, ByteLen(0), &[0; 32]).expect("writable");
        let mut recorder = device.recorder(1).expect("records");
        recorder.dispatch(&kernel, word.va, [1, 1, 1]).expect("records");
        let graph = recorder.finish().expect("records");
        watch(gpu, device);
        let executed =
            |device: &Device| device.counters().expect("readable").wave_instructions.expect("counted");
        let before = executed(device);
        let ticket = device.submit(&graph).expect("submits");
        let start = Instant::now();
        while executed(device) == before {
            assert!(start.elapsed() < LEAVE, "it begins");
            std::thread::yield_now();
        }
        Waiting { word, ticket, _kept: (kernel, graph) }
    }

    fn end(self, device: &mut Device) {
        device.upload(&self.word, ByteLen(0), &1_u32.to_le_bytes()).expect("writable");
        device.flush();
        device.wait(self.ticket, LEAVE).expect("it ends");
    }
}

/// Another queue's kernel takes the room of one of two workgroups. When it ends, the session runs, and the second one
/// begins: it must leave.
#[test]
fn a_workgroup_that_finds_room_later_takes_no_part() {
    let model = load(&repository_model("tales-qwen3-Q4_0.gguf"));
    let gpu = VirtualGpu::new(Config { compute_units: 1, ..checked_config(1) }).expect("powers up");
    let process = Attachment::over(gpu.clone()).expect("the board's one process");
    let open = || zrt_bringup::open_over(&process, &OpenOptions::default()).expect("opens");
    let mut other = open();
    let options = options(Mode::Mega, 2);
    let mut session = Session::prepare(open(), &model, &options, &mut |_, _| {}).expect("prepares");
    watch(&gpu, &session.resident().device);
    let waiting = Waiting::start(&gpu, &mut other, 20 << 10);
    let start = Instant::now();
    session.start().expect("starts");
    assert_eq!(session.groups(), Some(1), "the other has no room");
    let handles: Vec<_> = three().iter().map(|one| one.submit(&mut session)).collect();
    let mut told = Told::new(handles.len());
    while told.tokens.iter().all(Vec::is_empty) {
        assert!(start.elapsed() < 2 * LEAVE, "a token comes");
        told.poll(&mut session, &handles).expect("the session runs");
    }
    waiting.end(&mut other);
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.tokens, expected(&model, CONTEXT, &three()));
    let device = session.close(LEAVE).expect("both leave");
    let findings = device.findings().expect("readable");
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn a_kernel_that_does_not_begin_is_told() {
    const END_PROGRAM: [u8; 4] = 0xbfb0_0000_u32.to_le_bytes();
    let hang_after = Duration::from_millis(100);
    let mut session = open(&SessionOptions { hang_after, ..options(Mode::Mega, 3) }).expect("opens");
    let parts = session.mega_parts().expect("the megakernel");
    let code = parts.kernel.code();
    parts.device.upload(code, ByteLen(0), &END_PROGRAM).expect("writable");
    let Err(error) = session.start() else { panic!("it started") };
    let SessionError::NotStarted { waited, groups: 3 } = error else { panic!("{error}") };
    assert!(waited >= hang_after, "{waited:?}");
    let again = session.start().expect_err("it does not start later");
    assert!(matches!(again, SessionError::NotStarted { .. }), "{again}");
    session.close(LEAVE).expect("the kernel has ended");
}

/// Another queue's kernel takes all room for longer than a session waits. When it ends, the megakernel begins and must
/// leave at once.
#[test]
fn a_kernel_that_begins_too_late_leaves() {
    let gpu = VirtualGpu::new(Config { compute_units: 1, ..checked_config(1) }).expect("powers up");
    let process = Attachment::over(gpu.clone()).expect("the board's one process");
    let open = || zrt_bringup::open_over(&process, &OpenOptions::default()).expect("opens");
    let (mut other, device) = (open(), open());
    let model = load(&repository_model("tales-qwen3-Q4_0.gguf"));
    let options = SessionOptions { hang_after: Duration::from_millis(200), ..options(Mode::Mega, 2) };
    let mut session = Session::prepare(device, &model, &options, &mut |_, _| {}).expect("prepares");
    watch(&gpu, &session.resident().device);
    let waiting = Waiting::start(&gpu, &mut other, 60 << 10);
    let error = session.start().expect_err("there is no room");
    assert!(matches!(error, SessionError::NotStarted { groups: 2, .. }), "{error}");
    waiting.end(&mut other);
    let device = session.close(LEAVE).expect("both workgroups leave");
    let findings = device.findings().expect("readable");
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn one_submission_for_each_step_is_clean() {
    check(SMALL, Mode::Graph, 3, 0..2, &three());
}

/// Prompts in chunks with which a step has one tile of rows, several, and several waves for each weight tile; at last a
/// row alone.
#[test]
fn steps_of_tiles_are_clean() {
    let asked = [Asked::greedy(1..40, 2), Asked::sampled(100..141, 1, 7)];
    for (activations, chunk_rows, seed) in [(Activations::A8, 12, 20), (Activations::A16, 80, 21)] {
        let options = SessionOptions { activations, chunk_rows, ..options(Mode::Mega, 3) };
        check_with(SMALL, &options, [checked_config(seed)], &asked);
    }
}

/// A prompt with which a step has two bands of rows, and another one beside it.
fn check_bands(activations: Activations, seed: u64) {
    let asked = [Asked::greedy(1..141, 1), Asked::sampled(100..130, 1, 7)];
    let long = SessionOptions { context: 144, chunk_rows: 200, ..options(Mode::Mega, 3) };
    let options = SessionOptions { activations, ..long };
    check_with(SMALL, &options, [checked_config(seed)], &asked);
}

#[test]
fn steps_of_several_bands_are_clean() {
    check_bands(Activations::A16, 26);
}

/// `cargo xtask test` leaves this to `--long`.
#[test]
fn steps_of_several_bands_with_floats_are_clean() {
    check_bands(Activations::F32, 25);
}

/// Every type of weight: in steps of few rows, and of tiles where activations are integers.
#[test]
fn steps_of_every_format_are_clean() {
    let asked = [Asked::greedy(1..12, 2), Asked::sampled(100..110, 1, 7)];
    for (first, activations, seed) in
        [(0, Activations::F32, 22), (6, Activations::A8, 23), (15, Activations::A16, 24)]
    {
        let options = SessionOptions { activations, chunk_rows: 10, ..options(Mode::Mega, 3) };
        check_model("every format", &mixed_model(first), &options, [checked_config(seed)], &asked);
    }
}

/// A matrix of floats ends where its allocation does, and the last rows of these are not a whole piece: nothing beyond
/// is prefetched.
#[test]
fn weights_that_end_an_allocation_are_clean() {
    for name in ["stories260K-F32", "stories260K-F16"] {
        check(name, Mode::Mega, 3, 4..5, &[Asked::greedy([1, 261], 2)]);
    }
}

/// The value of MODE.SCALAR_PREFETCH_EN when a wave begins is not known. If it is set, a prefetch of a line that is not
/// mapped may end the process: there is none. The weights of most classes end at the end of their allocation.
#[test]
fn a_launch_with_prefetches_armed_is_clean() {
    let armed = Config { scalar_prefetch_at_launch: true, ..checked_config(3) };
    check_on(SMALL, Mode::Mega, 3, [armed], &three());
    check_on("tales-qwen3-Q4_0", Mode::Mega, 3, [armed], &[Asked::greedy([1, 261], 2)]);
}

/// The model of the repository, with norms of query and key: these run everywhere.
fn check_large(mode: Mode, groups: u32, seeds: Range<u64>) {
    check("tales-qwen3-Q4_0", mode, groups, seeds, &[Asked::greedy([1, 261], 2), Asked::sampled([5], 1, 8)]);
}

#[test]
fn one_workgroup_of_a_larger_model_is_clean() {
    check_large(Mode::Mega, 1, 10..12);
}

#[test]
fn three_workgroups_of_a_larger_model_are_clean() {
    check_large(Mode::Mega, 3, 12..13);
}

#[test]
fn six_workgroups_of_a_larger_model_are_clean() {
    check_large(Mode::Mega, 6, 14..15);
}

#[test]
fn one_submission_for_each_step_of_a_larger_model_is_clean() {
    check_large(Mode::Graph, 3, 15..17);
}

fn open(options: &SessionOptions) -> Result<Session, SessionError> {
    let model = load(&repository_model("tales-qwen3-Q4_0.gguf"));
    let device = zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens");
    Session::prepare(device, &model, options, &mut |_, _| {})
}

#[test]
fn more_workgroups_than_are_resident_are_refused() {
    let Err(error) = open(&options(Mode::Mega, 1 << 20)) else { panic!("it opened") };
    let SessionError::Groups { groups, resident, per_unit, units } = &error else { panic!("{error}") };
    assert_eq!((*groups, *units, *resident), (1 << 20, 64, 64 * per_unit));
    let says = error.to_string();
    assert!(says.contains("are resident at once") && says.contains("would take no part"), "{says}");
    let Err(error) = open(&options(Mode::Mega, resident + 1)) else { panic!("it opened") };
    assert!(matches!(error, SessionError::Groups { .. }), "{error}");
    assert!(open(&options(Mode::Mega, *resident)).is_ok(), "as many as are resident");
}

#[test]
fn as_many_workgroups_as_are_resident_run() {
    let model = load(&repository_model("tales-qwen3-Q4_0.gguf"));
    let asked = three();
    let mut session = open(&SessionOptions { groups: None, ..options(Mode::Mega, 1) }).expect("opens");
    session.start().expect("starts");
    assert_eq!(session.groups(), Some(128), "two on each of 64 compute units");
    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    let mut told = Told::new(asked.len());
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.tokens, expected(&model, CONTEXT, &asked));
    // This model has no task of 64 units; its tasks of 32 units reach half of the workgroups.
    let standings = session.standings().expect("readable");
    assert!(standings.iter().any(|one| one.group >= 16), "the work is shared: {standings:?}");
    session.close(LEAVE).expect("the device leaves");
}

/// What the host says about a request in the middle of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Cancel,
    Hold,
    Park,
}

/// The step is stopped in layer 1, before the flags for layer 2 are read: the first task of layer 1 signals where
/// nobody looks. Then something is said about one of two requests, and the step continues. Layers 0 and 1 have stored
/// its keys, the later layers have not. One that is released later gets all its tokens.
fn check_said(said: Said) {
    let model = load(&repository_model("tales-qwen3-Q4_0.gguf"));
    let asked = [Asked::greedy(1..12, 3), Asked::greedy(20..29, 3)];
    let mut session = open(&SessionOptions { chunk_rows: 40, ..options(Mode::Mega, 2) }).expect("opens");
    let resident = session.resident();
    let pool_len = resident.memory.allocations.iter().find(|one| one.id == AllocationId::KvPool);
    let pool_len = pool_len.expect("there is a cache").len.0 as usize;
    resident.upload(AllocationId::KvPool, 0, &vec![0xab; pool_len]).expect("uploads");
    let boundary_of = |session: &mut Session, layer: usize| {
        let tasks = session.resident().tasks.iter().enumerate();
        tasks.filter(|(_, task)| task.kernel == "boundary").nth(layer - 1).expect("a boundary for each").0
    };
    let boundary = boundary_of(&mut session, 2);
    let task = boundary - 1;
    let signal_at = ByteLen(((task - 1) * size_of::<TapeEntry>() + offset_of!(TapeEntry, signal)) as u64);
    let parts = session.mega_parts().expect("the megakernel runs");
    let mut signal = [0; 4];
    parts.device.download(parts.tape, signal_at, &mut signal).expect("readable");
    assert_eq!(u32::from_le_bytes(signal), COUNTERS_OFFSET + task as u32 * 4);
    parts.device.upload(parts.tape, signal_at, &SPARE.to_le_bytes()).expect("writable");

    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    session.start().expect("starts");
    let start = Instant::now();
    let mut told = Told::new(2);
    loop {
        told.poll(&mut session, &handles).expect("the session runs");
        let standings = session.standings().expect("readable");
        if standings.len() == 2 && standings.iter().all(|one| one.task as usize > task) {
            break;
        }
        assert!(start.elapsed() < LEAVE, "the step does not come to layer 1: {standings:?}");
    }
    match said {
        Said::Cancel => session.cancel(handles[1]),
        Said::Hold => session.hold(handles[1], true),
        Said::Park => session.park(handles[1]),
    }
    .expect("it runs");
    let parts = session.mega_parts().expect("the megakernel runs");
    let mut done = [0; 4];
    parts.device.download(parts.counters, ByteLen(SPARE.into()), &mut done).expect("readable");
    parts.device.upload(parts.tape, signal_at, &signal).expect("writable");
    let counter = ByteLen(u32::from_le_bytes(signal).into());
    parts.device.upload(parts.counters, counter, &done).expect("writable");
    let expected = expected(&model, CONTEXT, &asked);
    let mut is_parked = false;
    while told.ends[0] == 0 || said == Said::Cancel && told.ends[1] == 0 || said == Said::Park && !is_parked {
        is_parked |= told.poll_parked(&mut session, &handles).expect("the session runs") == Some(handles[1]);
        assert!(start.elapsed() < 2 * LEAVE, "{told:?}");
    }
    assert_eq!(told.tokens, [expected[0].clone(), Vec::new()]);
    // Slot 1's first page, one layer after another: were its rows' keys stored?
    let resident = session.resident();
    let row_elements = resident.plan.config.kv_elements();
    let mut page = [0; 4];
    let page_at = u64::from(resident.memory.pages_per_slot) * 4;
    resident.download(AllocationId::Pages, page_at, &mut page).expect("readable");
    let page = u64::from(u32::from_le_bytes(page));
    let mut keys = vec![0; asked[1].prompt.len() * KvFormat::F32.row_bytes(row_elements) as usize];
    let stored: Vec<bool> = (0..resident.plan.config.layers)
        .map(|layer| {
            let at = page * resident.memory.page_bytes
                + u64::from(layer) * KvFormat::F32.layer_bytes(row_elements);
            resident.download(AllocationId::KvPool, at, &mut keys).expect("readable");
            keys.iter().any(|byte| *byte != 0xab)
        })
        .collect();
    let wanted: Vec<bool> = (0..stored.len()).map(|layer| layer < 2).collect();
    assert!(stored.len() > 2, "the model has layers behind");
    assert_eq!(stored, wanted, "layers that have worked on the request, {said:?}");
    match said {
        Said::Cancel => {}
        Said::Hold => session.hold(handles[1], false).expect("it is held"),
        Said::Park => session.resume(handles[1]).expect("it is parked"),
    }
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.ends, [1, 1]);
    if said != Said::Cancel {
        assert_eq!(told.tokens, expected, "{said:?}");
    }
    session.close(LEAVE).expect("the device leaves");
}

#[test]
fn a_cancel_counts_from_the_next_layer_on() {
    check_said(Said::Cancel);
}

#[test]
fn a_hold_counts_from_the_next_layer_on() {
    check_said(Said::Hold);
}

#[test]
fn parking_counts_from_the_next_layer_on() {
    check_said(Said::Park);
}
