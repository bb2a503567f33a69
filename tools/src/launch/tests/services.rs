//! What launches get from the host: addresses, answers to hostcalls, names of what they may touch.
//!
//! The kernels are what llvm-mc 22 makes of the text beside the words.

use super::object::{DATA_BYTES, KERNEL_BYTES, NOTHING, Small, object};
use super::*;
use crate::elf_file::{ARGUMENTS, DISPATCH_ID, DISPATCH_PACKET};

/// Stores to its buffer what the packet says of the kernel's address and of its arguments, the address after the third
/// instruction, and what its registers say of the arguments and the dispatch's number.
const PACKET: [u32; 28] = [
    0xf400_2181,
    0xf800_0000, // s_load_b64 s[6:7], s[2:3], 0x0
    0xf400_4200,
    0xf800_0020, // s_load_b128 s[8:11], s[0:1], 0x20
    0xbe8c_4700, // s_getpc_b64 s[12:13]
    0x7e00_0280, // v_mov_b32_e32 v0, 0
    0xbefe_0081, // s_mov_b32 exec_lo, 1
    0xbfc7_0000, // s_wait_kmcnt 0x0
    0x7e02_0208, // v_mov_b32_e32 v1, s8
    0x7e04_0209, // v_mov_b32_e32 v2, s9
    0x7e06_020a, // v_mov_b32_e32 v3, s10
    0x7e08_020b, // v_mov_b32_e32 v4, s11
    0x7e0a_020c, // v_mov_b32_e32 v5, s12
    0x7e0c_020d, // v_mov_b32_e32 v6, s13
    0x7e0e_0202, // v_mov_b32_e32 v7, s2
    0x7e10_0203, // v_mov_b32_e32 v8, s3
    0x7e12_0204, // v_mov_b32_e32 v9, s4
    0x7e14_0205, // v_mov_b32_e32 v10, s5
    0xee07_4006,
    0x0080_0000,
    0x0000_0000, // global_store_b128 v0, v[1:4], s[6:7]
    0xee07_4006,
    0x0280_0000,
    0x0000_1000, // global_store_b128 v0, v[5:8], s[6:7] offset:16
    0xee06_c006,
    0x0480_0000,
    0x0000_2000, // global_store_b64 v0, v[9:10], s[6:7] offset:32
    0xbfb0_0000, // s_endpgm
];
/// Where that address is in the kernel.
const AFTER_THIRD: u64 = 20;

/// Two lanes print "hi" and their number to standard error, each in a request that begins and ends a message of three
/// quadwords: standard error, the format, the number. The packet is that of index 1, of two: its header is at 128 + 24,
/// and its slots are at 192 + 4096. Once its control word, 7, is even, each lane stores to the buffer the first two
/// quadwords of its slot, the last one, in which it has put 0x77, and the control word.
const CALLS: [u32; 80] = [
    0xf400_4100,
    0xf800_0000, // s_load_b128 s[4:7], s[0:1], 0x0
    0xbefe_0083, // s_mov_b32 exec_lo, 3
    0x3002_0086, // v_lshlrev_b32_e32 v1, 6, v0
    0x7e04_0280, // v_mov_b32_e32 v2, 0
    0x7e08_02ff,
    0x0000_0063, // v_mov_b32_e32 v4, 0x63
    0x7e0a_0280, // v_mov_b32_e32 v5, 0
    0x7e0c_0281, // v_mov_b32_e32 v6, 1
    0x7e0e_0280, // v_mov_b32_e32 v7, 0
    0x7e10_02ff,
    0x2520_6968, // v_mov_b32_e32 v8, 0x25206968
    0x7e12_02ff,
    0x0000_0a75, // v_mov_b32_e32 v9, 0xa75
    0x7e14_0300, // v_mov_b32_e32 v10, v0
    0x7e16_0280, // v_mov_b32_e32 v11, 0
    0x7e18_02ff,
    0x0000_0077, // v_mov_b32_e32 v12, 0x77
    0x7e1a_0280, // v_mov_b32_e32 v13, 0
    0xbfc7_0000, // s_wait_kmcnt 0x0
    0xee07_4006,
    0x0200_0000,
    0x0010_c001, // global_store_b128 v1, v[4:7], s[6:7] offset:4288
    0xee07_4006,
    0x0400_0000,
    0x0010_d001, // global_store_b128 v1, v[8:11], s[6:7] offset:4304
    0xee06_c006,
    0x0600_0000,
    0x0010_f801, // global_store_b64 v1, v[12:13], s[6:7] offset:4344
    0xbefe_0081, // s_mov_b32 exec_lo, 1
    0x7e1c_0280, // v_mov_b32_e32 v14, 0
    0x7e1e_0280, // v_mov_b32_e32 v15, 0
    0x7e20_0283, // v_mov_b32_e32 v16, 3
    0x7e22_0280, // v_mov_b32_e32 v17, 0
    0x7e24_0282, // v_mov_b32_e32 v18, 2
    0x7e26_0287, // v_mov_b32_e32 v19, 7
    0xee07_4006,
    0x0700_0000,
    0x0000_9802, // global_store_b128 v2, v[14:17], s[6:7] offset:152
    0xee06_c006,
    0x0900_0000,
    0x0000_a802, // global_store_b64 v2, v[18:19], s[6:7] offset:168
    0x7e28_0281, // v_mov_b32_e32 v20, 1
    0x7e2a_0280, // v_mov_b32_e32 v21, 0
    0xee0b_007c,
    0x000c_0000,
    0x0000_0000, // global_wb scope:SCOPE_SYS
    0xbfc1_0000, // s_wait_storecnt 0x0
    0xee10_4006,
    0x0a0c_0000,
    0x0000_2002, // global_atomic_swap_b64 v2, v[20:21], s[6:7] offset:32 scope:SCOPE_SYS
    0xee05_0006,
    0x000c_0003,
    0x0000_ac02, // poll: global_load_b32 v3, v2, s[6:7] offset:172 scope:SCOPE_SYS
    0xbfc0_0000, // s_wait_loadcnt 0x0
    0x7e10_0503, // v_readfirstlane_b32 s8, v3
    0xbf88_0000, // s_wait_alu 0x0, for everything
    0x8b09_8108, // s_and_b32 s9, s8, 1
    0xbfa2_fff8, // s_cbranch_scc1 poll
    0xee0a_c07c,
    0x000c_0000,
    0x0000_0000, // global_inv scope:SCOPE_SYS
    0xbfc0_0000, // s_wait_loadcnt 0x0
    0xbefe_0083, // s_mov_b32 exec_lo, 3
    0xee05_c006,
    0x0000_0004,
    0x0010_c001, // global_load_b128 v[4:7], v1, s[6:7] offset:4288
    0xee05_4006,
    0x0000_0008,
    0x0010_f801, // global_load_b64 v[8:9], v1, s[6:7] offset:4344
    0x7e14_0208, // v_mov_b32_e32 v10, s8
    0x3016_0085, // v_lshlrev_b32_e32 v11, 5, v0
    0xbfc0_0000, // s_wait_loadcnt 0x0
    0xee07_4004,
    0x0200_0000,
    0x0000_000b, // global_store_b128 v11, v[4:7], s[4:5]
    0xee07_0004,
    0x0400_0000,
    0x0000_100b, // global_store_b96 v11, v[8:10], s[4:5] offset:16
    0xbfb0_0000, // s_endpgm
];

/// Reads from its first argument as an address, 16 bytes from it.
const READS_ARGUMENT: [u32; 9] = [
    0xf400_2100,
    0xf800_0000, // s_load_b64 s[4:5], s[0:1], 0x0
    0x7e00_0280, // v_mov_b32_e32 v0, 0
    0xbfc7_0000, // s_wait_kmcnt 0x0
    0xee05_0004,
    0x0000_0001,
    0x0000_1000, // global_load_b32 v1, v0, s[4:5] offset:16
    0xbfc0_0000, // s_wait_loadcnt 0x0
    0xbfb0_0000, // s_endpgm
];

const PACKET_KERNEL: Small<'static> = Small {
    name: "packet",
    words: &PACKET,
    user_data: DISPATCH_PACKET | ARGUMENTS | DISPATCH_ID,
    scratch_bytes: 0,
    arguments: &["global_buffer"],
};
const CALLS_KERNEL: Small<'static> = Small {
    name: "calls",
    words: &CALLS,
    arguments: &["global_buffer", "hidden_hostcall_buffer"],
    ..NOTHING
};
const HEAP_KERNEL: Small<'static> =
    Small { name: "heap", words: &READS_ARGUMENT, arguments: &["hidden_heap_v1"], ..NOTHING };
/// One workgroup of a wave, of kernel number `kernel`; it waits for those before.
fn launch(kernel: usize, arguments: Vec<Given>) -> Action {
    Action::Dispatch(Dispatch { kernel, ..dispatch(&format!("kernel {kernel}"), arguments) })
}

fn buffer(buffer: usize) -> Vec<Given> {
    vec![Given::Buffer { buffer, offset: 0 }]
}

/// Runs actions over buffers of 128 zero bytes that count as written, under the checking mode; also returns what is
/// read.
fn run(
    program: Program,
    buffers: usize,
    actions: Vec<Action>,
) -> (Result<Report, LaunchError>, Vec<Vec<u32>>) {
    let mut sequence = sequence(&vec![128; buffers], actions);
    sequence.programs = vec![Cow::Owned(program)];
    sequence.deadline = Duration::from_secs(10);
    sequence.buffers.iter_mut().for_each(|one| one.content = Content::Bytes(Cow::Owned(vec![0; 128])));
    let virtual_device = VirtualOptions { check: true, ..VirtualOptions::default() };
    let options = OpenOptions { virtual_device, self_test: false, ..OpenOptions::default() };
    let (report, reads) = run_with(&sequence, &options);
    (report, reads.into_iter().map(|(_, words)| words).collect())
}

/// The findings of one launch of kernel number 1.
fn findings(program: Program) -> Vec<String> {
    let (report, _) = run(program, 0, vec![launch(1, Vec::new())]);
    report.unwrap().findings.iter().map(|located| located.finding.to_string()).collect()
}

/// Each launch has its own arguments and packet, and a number; the packet has the address of the kernel's code, which
/// here is not that of the program.
#[test]
fn packets_have_the_addresses_of_kernel_and_arguments() {
    let launches = [0, 1, 2].map(|number| launch(1, buffer(number)));
    let reads = [0, 1, 2].map(|buffer| Action::Read { buffer });
    let (report, reads) =
        run(object(&[NOTHING, PACKET_KERNEL]), 3, launches.into_iter().chain(reads).collect());
    assert_eq!(report.unwrap().findings, []);
    let mut arguments = Vec::new();
    for (number, words) in (0..).zip(reads) {
        let [object_va, of_packet, after_third, of_register, dispatch_id] =
            [0, 2, 4, 6, 8].map(|at| u64::from(words[at]) | u64::from(words[at + 1]) << 32);
        assert_eq!((object_va + AFTER_THIRD, of_packet, dispatch_id), (after_third, of_register, number));
        assert_eq!(object_va % KERNEL_BYTES as u64, 0);
        arguments.push(of_packet);
    }
    arguments.dedup();
    assert_eq!(arguments.len(), 3, "{arguments:x?}");
}

/// With 16 user SGPRs and scratch a launch takes the most room, and a submission has as many as there are.
#[test]
fn many_launches_are_one_submission() {
    let program = raw_program(&RawOptions { user_sgprs: 16, scratch_bytes: 64, ..RawOptions::default() });
    let launches = vec![launch(0, Vec::new()); 200];
    let (report, _) = run(program, 0, launches);
    let Counters { dispatches, submissions, .. } = report.unwrap().counters;
    assert_eq!((dispatches, submissions), (200, 1));
}

/// "hi 0" and "hi 1" are five bytes with their line feeds. The second quadword, which said where the text goes, stays,
/// as do the rest of a slot and the other bits of the control word.
#[test]
fn a_kernel_that_asks_the_host_is_answered_while_it_runs() {
    let actions = vec![launch(1, buffer(0)), Action::Read { buffer: 0 }];
    let (report, reads) = run(object(&[NOTHING, CALLS_KERNEL]), 1, actions);
    let report = report.unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(String::from_utf8_lossy(report.printed.text()), "hi 0\nhi 1\n");
    let lane = [5, 0, 1, 0, 0x77, 0, 6, 0];
    assert_eq!(reads[0][..16], [lane, lane].concat());
}

/// A kernel that traps has said why before: its last message to standard error.
#[test]
fn a_fault_comes_with_what_was_printed_before() {
    let mut words = CALLS;
    // s_trap 2 in the place of s_endpgm.
    words[CALLS.len() - 1] = 0xbf90_0002;
    let trapping = Small { words: &words, ..CALLS_KERNEL };
    let (report, _) = run(object(&[trapping]), 1, vec![launch(0, buffer(0))]);
    let error = report.unwrap_err().to_string();
    assert!(error.ends_with("; the kernel printed before: hi 1"), "{error}");
}

/// Of two launches of one submission the second one reads from its heap, which is null: it is told by its own services.
#[test]
fn a_fault_is_told_with_the_services_of_its_own_kernel() {
    let actions = vec![launch(0, Vec::new()), launch(1, Vec::new())];
    let (report, _) = run(object(&[NOTHING, HEAP_KERNEL]), 0, actions);
    let error = report.unwrap_err().to_string();
    assert!(error.starts_with("kernel 1 did not run to its end"), "{error}");
    assert!(error.contains("not exist here: hidden_heap_v1; compile without"), "{error}");
}

/// Stores to the last dword of the data and to the first one behind, which are the descriptors.
#[test]
fn a_program_may_write_its_data_and_nothing_behind_it() {
    let store = |offset: usize| {
        // s_getpc_b64 s[4:5]; v_mov_b32_e32 v0, 0; s_mov_b32 exec_lo, 1; global_store_b32 v0, v0, s[4:5] offset;
        // s_endpgm. From the second instruction of the second kernel, the last one before the data.
        let offset = (KERNEL_BYTES + offset - 4) as u32;
        let words = [0xbe84_4700, 0x7e00_0280, 0xbefe_0081, 0xee06_8004, 0, offset << 8, 0xbfb0_0000];
        let kernel = Small { name: "stores", words: &words, ..NOTHING };
        findings(object(&[NOTHING, kernel]))
    };
    assert_eq!(store(DATA_BYTES - 4), [""; 0]);
    assert_eq!(store(0), [""; 0]);
    let [finding] = &store(DATA_BYTES)[..] else { panic!() };
    assert!(finding.contains("may only read; 4 bytes, 0 bytes into the code of stores"), "{finding}");
}

/// 16 bytes of a lane: the last dword is the kernel's, the one behind it is not, though more is allocated.
#[test]
fn scratch_ends_where_the_kernel_says() {
    let store = |offset: u32| {
        // scratch_store_b32 off, v0, off offset; s_endpgm
        let words = [0xed06_807c, 0, offset << 8, 0xbfb0_0000];
        let kernel = Small { name: "stores", words: &words, scratch_bytes: 16, ..NOTHING };
        findings(object(&[NOTHING, kernel]))
    };
    assert_eq!(store(12), [""; 0]);
    let [finding] = &store(16)[..] else { panic!() };
    let told = "4 bytes at offset 16 of private memory, of which the kernel declares 16 bytes for a lane";
    assert!(finding.contains(told), "{finding}");
}

/// An array without a length begins at a multiple of 16 bytes: after 4 bytes of the kernel's own, 16 more end at 32.
#[test]
fn lds_without_pointers_ends_after_an_aligned_array() {
    let store = |offset: u32| {
        // v_mov_b32_e32 v0, offset; s_mov_b32 exec_lo, 1; ds_store_b32 v0, v0; s_endpgm
        let words = [0x7e00_02ff, offset, 0xbefe_0081, 0xd834_0000, 0, 0xbfb0_0000];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let program = Program::raw(&code, &RawOptions { lds_bytes: 4, ..RawOptions::default() }).unwrap();
        let geometry = Geometry { dynamic_lds: DynamicLds::of(16), ..Geometry::new([1; 3], [32, 1, 1]) };
        let launch = Dispatch { geometry, ..dispatch("kernel raw", Vec::new()) };
        let (report, _) = run(program, 0, vec![Action::Dispatch(launch)]);
        report.unwrap().findings.len()
    };
    assert_eq!([0, 20, 28, 32].map(store), [0, 0, 0, 1]);
}
