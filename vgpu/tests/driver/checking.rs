//! The checking mode at the level of packets: flushes, acquires, write-backs, and what the host sees when.

use crate::client::*;
use crate::dispatch::{FOREVER, STORE, TRIPLE, code, dispatch};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zrt_vgpu::check::debug::{Action, Debugger, Stop};
use zrt_vgpu::config::{Inspection, KernelRelease};
use zrt_vgpu::{Config, VirtualGpu};

/// EVENT_WRITE of CS_PARTIAL_FLUSH (hardware reference §4.8).
const FLUSH: [u32; 2] = [0xC000_4600, 0x407];
/// Fields of GCR_CNTL (hardware reference §4.5): scalar and vector caches; GL2.
const INVALIDATE_L0: u32 = 1 << 7 | 1 << 8;
const INVALIDATE_GL2: u32 = 1 << 14;
const INVALIDATE_INSTRUCTIONS: u32 = 1;
/// GL2_WB of RELEASE_MEM (hardware reference §4.6).
const RELEASE_GL2_WB: u32 = 1 << 21;

fn acquire(control: u32) -> [u32; 8] {
    [0xC006_5800, 0, u32::MAX, 0xFF_FFFF, 0, 0, 10, control]
}

/// Notes how often it is asked.
struct Asked(Arc<AtomicUsize>);

impl Debugger for Asked {
    fn before(&mut self, _: &mut Stop<'_>) -> Action {
        self.0.fetch_add(1, Ordering::Relaxed);
        Action::Continue
    }
}

/// Opened under a kernel that maps system memory NC whatever is requested.
fn open() -> Client {
    open_under(Some(KernelRelease::V6_12))
}

fn open_under(kernel: Option<KernelRelease>) -> Client {
    let inspection = Inspection { check: true, ..Inspection::default() };
    let client = Client::open_with(Config { inspection, kernel, ..Config::default() });
    client.acquire(client.render, client.gpu_id).unwrap();
    client
}

/// One field of each finding so far.
fn findings(client: &Client, field: &str) -> Vec<String> {
    let text = client.text("findings");
    let name = format!("\"{field}\":\"");
    let value = |line: &str| {
        let (_, rest) = line.split_once(&name).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    text.lines().map(value).collect()
}

/// The rules of the findings so far.
fn rules(client: &Client) -> Vec<String> {
    findings(client, "rule")
}

/// A device with a queue, a buffer on which a store kernel and a triple kernel run, and a fence.
struct Bench {
    client: Client,
    queue: Queue,
    data: Buffer,
    flag: Buffer,
    store: Vec<u32>,
    triple: Vec<u32>,
    /// The code of the two kernels, kept as long as packets refer to it.
    code: [Buffer; 2],
    fences: u32,
}

impl Bench {
    fn new() -> Bench {
        Bench::on(open())
    }

    fn on(client: Client) -> Bench {
        let queue = Queue::new(&client, 4096);
        let (data, flag) = (client.buffer(4096), client.buffer(4096));
        let kernels = [code(&client, &STORE), code(&client, &TRIPLE)];
        let [store, triple] = [0, 1].map(|kernel| dispatch(kernels[kernel].va, data.va, 1));
        Bench { client, queue, data, flag, store, triple, code: kernels, fences: 0 }
    }

    /// Submits the packets and a fence with cache control, and waits for the fence.
    fn run(&mut self, packets: &[&[u32]], release: u32) {
        self.fences += 1;
        let mut fence = fence(self.flag.va, self.fences);
        fence[1] = fence[1] & !RELEASE_GL2_WB | release;
        let all: Vec<u32> = packets.iter().copied().chain([&fence[..]]).flatten().copied().collect();
        self.queue.submit(&all);
        wait_value(self.flag.view(), 0, self.fences);
    }

    fn value(&self) -> u32 {
        self.data.view().load_u32(0)
    }

    fn end(self) -> Vec<String> {
        let rules = rules(&self.client);
        self.queue.destroy(&self.client).unwrap();
        rules
    }
}

#[test]
fn dependent_dispatches_with_flush_and_acquire_are_clean() {
    let mut bench = Bench::new();
    let (store, triple) = (bench.store.clone(), bench.triple.clone());
    bench.run(&[&store, &FLUSH, &acquire(INVALIDATE_L0), &triple], RELEASE_GL2_WB);
    assert_eq!(bench.value(), 22);
    assert!(bench.end().is_empty());
}

#[test]
fn without_a_flush_they_race() {
    let mut bench = Bench::new();
    let (store, triple) = (bench.store.clone(), bench.triple.clone());
    bench.run(&[&store, &acquire(INVALIDATE_L0), &triple], RELEASE_GL2_WB);
    assert!(bench.end().contains(&"race".to_owned()));
}

#[test]
fn without_an_acquire_the_second_reads_what_was_there_before() {
    let mut bench = Bench::new();
    let (store, triple) = (bench.store.clone(), bench.triple.clone());
    bench.run(&[&store, &FLUSH, &triple], RELEASE_GL2_WB);
    assert_eq!(bench.value(), 1, "three times the zero of before, and one");
    assert_eq!(bench.end(), ["visibility"]);
}

#[test]
fn without_a_write_back_the_host_does_not_see_the_result() {
    let mut bench = Bench::new();
    let store = bench.store.clone();
    bench.run(&[&store], 0);
    assert_eq!(bench.value(), 0);
    assert_eq!(rules(&bench.client), ["visibility"]);
    bench.run(&[], RELEASE_GL2_WB);
    assert_eq!(bench.value(), 7);
    assert_eq!(bench.end(), ["visibility"]);
}

#[test]
fn kernels_that_map_system_memory_uncached_need_no_write_back_for_it() {
    // The buffers request UNCACHED and COHERENT.
    let [nc, uc] = [(0, vec!["visibility".to_owned()]), (7, vec![])];
    let expected = [&nc, &nc, &uc, &uc];
    for (kernel, expected) in KernelRelease::ALL.into_iter().zip(expected) {
        let mut bench = Bench::on(open_under(Some(kernel)));
        let store = bench.store.clone();
        bench.run(&[&store], 0);
        let value = bench.value();
        assert_eq!((value, bench.end()), *expected, "{kernel}");
    }
}

#[test]
fn what_the_host_writes_to_uncached_system_memory_is_met_without_an_invalidation_of_gl2() {
    for (kernel, expected, rules) in [
        (KernelRelease::V6_12, 3 * 22 + 1, &["visibility"][..]),
        (KernelRelease::V6_17, 3 * 100 + 1, &[][..]),
    ] {
        let mut bench = Bench::on(open_under(Some(kernel)));
        let (store, triple) = (bench.store.clone(), bench.triple.clone());
        bench.run(&[&store, &FLUSH, &acquire(INVALIDATE_L0), &triple], RELEASE_GL2_WB);
        assert_eq!(bench.value(), 22);
        bench.data.view().store_u32(0, 100);
        bench.run(&[&acquire(INVALIDATE_L0), &triple], RELEASE_GL2_WB);
        assert_eq!(bench.value(), expected);
        assert_eq!(bench.end(), rules);
    }
}

#[test]
fn where_nobody_chose_a_kernel_system_memory_is_judged_as_strictly_as_by_any() {
    // Passes of the test suite select one by the environment.
    if KernelRelease::from_environment().unwrap().is_some() {
        return;
    }
    let mut bench = Bench::on(open_under(None));
    let store = bench.store.clone();
    bench.run(&[&store], 0);
    assert_eq!((bench.value(), bench.end()), (0, vec!["visibility".to_owned()]));
}

#[test]
fn before_the_fence_the_host_reads_what_was_there_before() {
    let mut bench = Bench::new();
    let store = bench.store.clone();
    let packets: Vec<u32> = store.iter().chain(&FLUSH).copied().collect();
    bench.queue.submit(&packets);
    bench.queue.wait_idle();
    assert_eq!(bench.value(), 0, "stored, and still in GL2");
    bench.run(&[], RELEASE_GL2_WB);
    assert_eq!(bench.value(), 7);
    assert!(bench.end().is_empty());
}

#[test]
fn what_the_host_wrote_after_gl2_had_read_it_needs_an_invalidation() {
    for (control, expected, rules) in [
        (INVALIDATE_L0, 3 * 22 + 1, &["visibility"][..]),
        (INVALIDATE_L0 | INVALIDATE_GL2, 3 * 100 + 1, &[][..]),
    ] {
        let mut bench = Bench::new();
        let (store, triple) = (bench.store.clone(), bench.triple.clone());
        bench.run(&[&store, &FLUSH, &acquire(INVALIDATE_L0), &triple], RELEASE_GL2_WB);
        assert_eq!(bench.value(), 22);
        bench.data.view().store_u32(0, 100);
        bench.run(&[&acquire(control), &triple], RELEASE_GL2_WB);
        assert_eq!(bench.value(), expected);
        assert_eq!(bench.end(), rules);
    }
}

#[test]
fn code_that_the_host_has_changed_needs_an_invalidation() {
    for (control, expected, rules) in
        [(INVALIDATE_L0, 7, &["visibility"][..]), (INVALIDATE_L0 | INVALIDATE_INSTRUCTIONS, 8, &[][..])]
    {
        let mut bench = Bench::new();
        let store = bench.store.clone();
        bench.run(&[&store], RELEASE_GL2_WB);
        assert_eq!(bench.value(), 7);
        // v_add_nc_u32 v0, 7, v0 → 8.
        let at = STORE.iter().position(|word| *word == 0x4A00_0087).unwrap();
        bench.code[0].view().store_u32(4 * at, 0x4A00_0088);
        bench.run(&[&FLUSH, &acquire(control), &store], RELEASE_GL2_WB);
        assert_eq!(bench.value(), expected);
        assert_eq!(bench.end(), rules);
    }
}

/// A buffer is placed at the addresses of a named one that no longer exists.
#[test]
fn a_region_ends_with_its_mapping() {
    for (is_named, expected) in [(true, &[][..]), (false, &["bounds"][..])] {
        let mut bench = Bench::new();
        let old = bench.client.buffer(4096);
        let va = old.va;
        bench.client.gpu.watch_region("old", va, 4096);
        let place = bench.client.release(old);
        let new = bench.client.buffer_in(place, 4096, RING_FLAGS, true);
        assert_eq!(new.va, va);
        if is_named {
            bench.client.gpu.watch_region("new", va, 4096);
        }
        let store = dispatch(bench.code[0].va, va, 1);
        bench.run(&[&store], RELEASE_GL2_WB);
        assert_eq!(new.view().load_u32(0), 7);
        assert_eq!(bench.end(), expected);
    }
}

/// A kernel loads and stores 32 dwords of memory that was named for some use.
#[test]
fn named_memory_is_used_as_its_name_allows() {
    type Watch = fn(&VirtualGpu, &str, u64, u64);
    let uses: [(Watch, &[&str], u64); 4] = [
        (VirtualGpu::watch_region, &[], 128),
        (VirtualGpu::watch_read_only_region, &["bounds"], 128),
        (VirtualGpu::watch_unwritten_region, &["uninitialised"], 128),
        (VirtualGpu::watch_private_region, &["bounds"], 0),
    ];
    for (watch, expected, loaded) in uses {
        let mut bench = Bench::new();
        watch(&bench.client.gpu, "data", bench.data.va, 4096);
        let triple = bench.triple.clone();
        bench.run(&[&triple], RELEASE_GL2_WB);
        assert_eq!(bench.client.gpu.region_read_bytes(), [("data".to_owned(), loaded)]);
        let mut found = rules(&bench.client);
        found.dedup();
        assert_eq!(found, expected);
        bench.end();
    }
    // Without checking nothing is kept.
    let client = Client::open();
    client.gpu.watch_region("data", 0x1000, 4096);
    assert!(client.gpu.region_read_bytes().is_empty());
}

#[test]
fn under_a_silent_host_a_wave_that_repeats_itself_is_told() {
    let bench = Bench::new();
    bench.client.gpu.silence_host(true);
    let forever = code(&bench.client, &FOREVER);
    let mut queue = Queue::new(&bench.client, 4096);
    queue.submit(&dispatch(forever.va, bench.data.va, 1));
    bench.client.wait_for_fault(&["kind=wave", "workgroup=0,0,0 wave=0"]);
    assert_eq!(rules(&bench.client), ["progress"]);
}

/// A launch allocates 512 bytes of LDS; the kernel stores four at 64.
#[test]
fn lds_that_a_kernel_does_not_declare_is_out_of_bounds() {
    // v_mov_b32 v1, 64; ds_store_b32 v1, v1; s_endpgm
    const STORE_LDS: [u32; 4] = [0x7E02_02C0, 0xD834_0000, 0x0000_0101, 0xBFB0_0000];
    let cases: [(Option<u32>, &[&str]); 4] =
        [(None, &[]), (Some(68), &[]), (Some(67), &["bounds"]), (Some(64), &["bounds"])];
    for (declared, expected) in cases {
        let mut bench = Bench::new();
        let kernel = code(&bench.client, &STORE_LDS);
        if let Some(bytes) = declared {
            bench.client.gpu.watch_lds(kernel.va, bytes);
        }
        let mut launch = dispatch(kernel.va, bench.data.va, 1);
        // RSRC2.LDS_SIZE is in units of 512 bytes.
        launch[7] |= 1 << 15;
        bench.run(&[&launch], RELEASE_GL2_WB);
        assert_eq!(bench.end(), expected, "{declared:?}");
    }
}

/// A launch allocates 32 bytes of private memory to each lane; the kernel stores four at some offset.
#[test]
fn private_memory_that_a_kernel_does_not_declare_is_out_of_bounds() {
    let undeclared = |offset: u32, declared: u32| {
        format!(
            "4 bytes at offset {offset} of private memory, of which the kernel declares {declared} bytes for a lane"
        )
    };
    let unallocated = |offset: u32| format!("scratch access at {offset:#x}, of 32 bytes that a lane has");
    for (declared, offset, expected) in [
        (None, 28, None),
        (Some(32), 28, None),
        (Some(31), 28, Some(undeclared(28, 31))),
        (Some(16), 12, None),
        (Some(16), 16, Some(undeclared(16, 16))),
        (None, 32, Some(unallocated(32))),
        // No kernel has more than its launch allocates.
        (Some(40), 40, Some(unallocated(40))),
    ] {
        let mut bench = Bench::new();
        let scratch = bench.client.private(65_536);
        // v_mov_b32 v1, 7; scratch_store_b32 off, v1, off offset:...; s_endpgm
        let words = [0x7E02_0287, 0xED06_807C, 0x0080_0000, offset << 8, 0xBFB0_0000];
        let kernel = code(&bench.client, &words);
        if let Some(bytes) = declared {
            bench.client.gpu.watch_private(kernel.va, bytes);
        }
        let mut stream = dispatch(kernel.va, bench.data.va, 1);
        // SCRATCH_EN; the base in units of 256 bytes; one wave per engine, of four units of 256 bytes.
        stream[7] |= 1;
        let packet = stream.split_off(stream.len() - 5);
        stream.extend([0xC002_7600, 0x210, (scratch.va >> 8) as u32, (scratch.va >> 40) as u32]);
        stream.extend([0xC001_7600, 0x218, 4 << 12 | 1]);
        stream.extend(packet);
        if offset < 32 {
            bench.run(&[&stream], RELEASE_GL2_WB);
        } else {
            bench.queue.submit(&stream);
            bench.client.wait_for_fault(&["kind=wave", "scratch access"]);
        }
        assert_eq!(findings(&bench.client, "what"), Vec::from_iter(expected), "{declared:?} {offset}");
    }
}

/// GL2 has the line. A write to memory also changes GL2's copy: a **model**.
#[test]
fn what_a_packet_writes_is_met_by_waves_without_an_invalidation_of_gl2() {
    let mut bench = Bench::new();
    let (triple, target) = (bench.triple.clone(), bench.data.va);
    let write = write_data(target, 100);
    bench.run(&[&triple, &FLUSH, &write, &acquire(INVALIDATE_L0), &triple], RELEASE_GL2_WB);
    assert_eq!((bench.value(), bench.end()), (3 * 100 + 1, vec![]));
}

/// What waves have stored is in GL2 only, where packets that copy find it.
#[test]
fn what_a_packet_reads_is_what_waves_have_stored() {
    let mut bench = Bench::new();
    let (store, source, target) = (bench.store.clone(), bench.data.va + 8, bench.flag.va + 64);
    let (low, high) = (|va: u64| va as u32, |va: u64| (va >> 32) as u32);
    // COPY_DATA of 64 bits from memory to memory.
    let copy = [0xC004_4000, 0x1_0202, low(source), high(source), low(target), high(target)];
    bench.run(&[&store, &FLUSH, &copy], 0);
    let copied = [64, 68, 72].map(|at| bench.flag.view().load_u32(at));
    assert_eq!((copied, bench.data.view().load_u32(8)), ([2 + 7, 3 + 7, 0], 0));
}

#[test]
fn a_debugger_is_asked_before_each_instruction_and_what_else_was_asked_for_is_done() {
    for (check, expected) in [(false, &[][..]), (true, &["bounds"][..])] {
        let asked = Arc::new(AtomicUsize::new(0));
        let inspection = Inspection { check, ..Inspection::default() };
        let config = Config { inspection, kernel: Some(KernelRelease::V6_12), ..Config::default() };
        let client = Client::on(VirtualGpu::with_debugger(config, Box::new(Asked(asked.clone()))).unwrap());
        client.acquire(client.render, client.gpu_id).unwrap();
        let mut bench = Bench::on(client);
        bench.client.gpu.watch_read_only_region("data", bench.data.va, 4096);
        let store = bench.store.clone();
        bench.run(&[&store], RELEASE_GL2_WB);
        assert_eq!((asked.load(Ordering::Relaxed), bench.value()), (7, 7));
        assert_eq!(bench.end(), expected);
    }
}
