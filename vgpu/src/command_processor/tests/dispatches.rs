//! Dispatches: what waits for them, how many there may be, and what is fetched ahead of them.

use super::*;
use crate::command_processor::queue::Health;
use crate::memory::{Cause, Fault};

pub(super) const CODE: u64 = 0x70_0000;
const NOP_AND_END: [u32; 2] = [0xBF80_0000, 0xBFB0_0000]; // s_nop 0; s_endpgm
/// RELEASE_MEM of the value 7 to the data.
pub(super) const FENCE: [u32; 8] = [0xC006_4900, 0x514, 0x2000_0000, DATA as u32, 0, 7, 0, 0];

impl Board {
    /// Executes waves until there are none.
    pub(super) fn help(&self) {
        while self.hardware.help() {}
    }
}

/// SET_SH_REG for groups of one wave at an address, and INST_PREF_SIZE (hardware reference §5).
pub(super) fn set_up(code_va: u64, prefetch_lines: u32) -> Vec<u32> {
    let address = [0xC002_7600, 0x20C, (code_va >> 8) as u32, (code_va >> 40) as u32];
    let group = [0xC003_7600, 0x207, 32, 1, 1];
    let resources = [0xC002_7600, 0x212, 0x60C0_0000, 0];
    [&address[..], &group, &resources, &[0xC001_7600, 0x228, prefetch_lines << 4]].concat()
}

pub(super) fn dispatch(groups: u32) -> [u32; 5] {
    [0xC003_1500, groups, 1, 1, 0x8005]
}

/// A board with code of two instructions at the start of a page.
pub(super) fn board(ring_dwords: u64) -> Board {
    let board = Board::with(FaultInjection::default(), ring_dwords, true);
    board.map(CODE, 1, Rights::READ | Rights::EXECUTE);
    board.store(CODE, &NOP_AND_END);
    board
}

#[test]
fn fences_and_partial_flushes_wait_for_dispatches() {
    for waiting in [&FENCE[..], &[0xC000_4600, 0x407]] {
        let mut board = board(1024);
        // A dispatch of no groups is one too, but nothing waits for it.
        board.write(&set_up(CODE, 0));
        board.write(&dispatch(0));
        board.write(waiting);
        assert_eq!(board.run(&write_data(DATA + 4, &[1])), Slice::Progress);
        let tick: [u32; 6] = [0xC004_4000, 0x1_0209, 0, 0, DATA as u32 + 16, 0];
        board.run(&tick);
        assert_eq!(board.words(DATA + 16), [0, 0], "the clock counts instructions, and there was none");
        board.store(DATA, &[0, 0]);
        board.write(&dispatch(2));
        board.write(&dispatch(3));
        board.write(waiting);
        board.submit(&write_data(DATA + 4, &[2]));
        assert_eq!(board.service(), Slice::Progress);
        for _ in 0..2 {
            assert_eq!(board.service(), Slice::Waiting { for_dispatch: true });
        }
        assert_eq!(board.words(DATA), [0, 0]);
        board.help();
        assert_eq!(board.service(), Slice::Progress);
        let is_fence = waiting.len() == FENCE.len();
        assert_eq!(board.words(DATA), [if is_fence { 7 } else { 0 }, 2]);
        assert_eq!((board.counter("dispatches"), board.counter("workgroups")), (3, 5));
        assert_eq!(board.run(&tick), Slice::Progress);
        assert_eq!(board.words(DATA + 16), [2 * 5, 0]);
        assert_eq!(board.faults(), "");
    }
}

#[test]
fn a_queue_has_up_to_1024_dispatches_in_flight() {
    let mut board = board(8192);
    board.write(&set_up(CODE, 0));
    (0..1030).for_each(|_| board.write(&dispatch(1)));
    board.submit(&FENCE);
    let to_the_end = |board: &Board| {
        let slices = std::iter::repeat_with(|| board.service()).find(|slice| *slice != Slice::Progress);
        (slices.unwrap(), board.counter("dispatches"), board.words(DATA))
    };
    let waiting = Slice::Waiting { for_dispatch: true };
    assert_eq!(to_the_end(&board), (waiting, 1024, [0]));
    assert_eq!(to_the_end(&board), (waiting, 1024, [0]));
    board.help();
    assert_eq!(to_the_end(&board), (waiting, 1030, [0]));
    board.help();
    assert_eq!(to_the_end(&board), (Slice::Idle, 1030, [7]));
}

#[test]
fn lines_that_are_fetched_ahead_must_be_mapped_for_execution() {
    const NEXT: u64 = CODE + GPU_PAGE_BYTES;
    let both = Some(Rights::READ | Rights::EXECUTE);
    let not_present = |va| Some((va, Cause::NotPresent));
    for (code_va, lines, next, expected) in [
        (CODE, 32, None, None),
        (CODE, 33, None, not_present(NEXT)),
        (CODE + 0xF00, 2, None, None),
        (CODE + 0xF00, 3, None, not_present(NEXT)),
        (CODE + 0xF00, 3, both, None),
        (CODE + 0xF00, 34, both, None),
        (CODE + 0xF00, 35, both, not_present(NEXT + GPU_PAGE_BYTES)),
        (CODE + 0xF00, 255, both, not_present(NEXT + GPU_PAGE_BYTES)),
        (CODE + 0xF00, 3, Some(Rights::READ), Some((NEXT, Cause::NoExecute))),
        (CODE + 0xF00, 3, Some(Rights::EXECUTE), not_present(NEXT)),
        (0x90_0100, 1, None, not_present(0x90_0100)),
    ] {
        let mut board = board(1024);
        board.store(CODE + 0xF00, &NOP_AND_END);
        if let Some(rights) = next {
            board.hardware.memory().map(GpuVa(NEXT), ByteLen(GPU_PAGE_BYTES), rights, pages(1)).unwrap();
        }
        board.write(&set_up(code_va, lines));
        let at = RING + 4 * board.written;
        board.submit(&dispatch(1));
        assert_eq!(board.service(), if expected.is_some() { Slice::Idle } else { Slice::Progress });
        let access = Rights::READ | Rights::EXECUTE;
        let fault = expected.map(|(va, cause)| Fault { va, cause, access });
        assert_eq!(board.hardware.last_page_fault(), fault, "{code_va:#x} {lines}");
        let text = fault.map(|Fault { va, cause, .. }| {
            let dword = (at - RING) / 4;
            format!(
                "kind=page-fault queue=3 packet=DISPATCH_DIRECT at={at:#x} (ring dword {dword}) : va={va:#x} {cause}\n"
            )
        });
        assert_eq!(board.faults(), text.unwrap_or_default());
    }
}

#[test]
fn a_launch_that_is_refused_stops_the_queue() {
    let mut board = board(1024);
    board.write(&set_up(CODE, 0));
    let at = RING + 4 * board.written;
    assert_eq!(board.run(&[0xC003_1500, 1, 1, 1, 0x8004]), Slice::Idle);
    let text = format!(
        "kind=launch queue=3 packet=DISPATCH_DIRECT at={at:#x} (ring dword 16) : COMPUTE_SHADER_EN is clear in initiator \
         0x8004\n"
    );
    assert_eq!((board.faults(), board.counter("dispatches")), (text, 0));
}

/// A wave that stops hangs its queue, and no other.
#[test]
fn a_wave_that_cannot_go_on_hangs_its_queue() {
    let mut board = board(1024);
    board.store(CODE, &[0xBF90_0001]); // s_trap 1
    board.write(&set_up(CODE, 0));
    let at = RING + 4 * board.written;
    board.submit(&dispatch(1));
    board.service();
    board.help();
    let other = Arc::new(HardwareQueue::new(
        QueueDescription { id: 4, ..description(&pages(1), true) },
        RING,
        4096,
        true,
    ));
    board.hardware.collect_faults(&[other.clone(), board.queue.clone()]);
    let text = format!(
        "kind=wave queue=3 packet=DISPATCH_DIRECT code={CODE:#x} pc={CODE:#x} (+0x0) workgroup=0,0,0 wave=0 \
         launched-at={at:#x} : s_trap 1 without a trap handler : "
    );
    assert!(board.faults().starts_with(&text), "{}", board.faults());
    assert!(!board.hardware.is_evicted());
    assert_eq!(board.run(&[NOP]), Slice::Idle);
    assert_eq!((board.queue.remove(), other.remove()), (Health::Hung, Health::Running));
    assert_eq!((board.queue.remove(), board.hardware.cancel_queue(3)), (Health::Removed, true));
}

#[test]
fn the_first_page_fault_of_waves_is_the_one_that_the_process_learns() {
    let mut board = board(1024);
    // The second of the codes lies at another place that is not mapped.
    for code_va in [0x90_0000, 0x91_0000] {
        board.write(&set_up(code_va, 0));
        board.write(&dispatch(1));
    }
    board.announce();
    board.service();
    board.help();
    board.hardware.collect_faults(&[board.queue.clone()]);
    let fault = board.hardware.last_page_fault().unwrap();
    assert_eq!((fault.va, fault.cause), (0x90_0000, Cause::NotPresent));
    let text = board.faults();
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(kinds, ["kind=page-fault"; 2], "{text}");
    assert!(board.hardware.is_evicted() && !board.hardware.is_lost());
    assert_eq!(board.queue.remove(), Health::Running, "it does not hang");
}
