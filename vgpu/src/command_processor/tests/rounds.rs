//! Rounds over several queues, the thread that makes them, and what stops the waves of queues.

use super::dispatches::{CODE, FENCE, board, dispatch, set_up};
use super::*;
use crate::command_processor::{CommandProcessor, Preemption, Round, round};
use crate::memory::{Cause, Fault};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A second queue of a board, number 4, with a ring, pointers and a doorbell of its own.
struct Second {
    queue: Arc<HardwareQueue>,
    written: u64,
}

impl Second {
    const RING: u64 = 0x40_0000;
    const SLOT: usize = 0x50;
    const WRITE_POINTER: u64 = POINTERS + 0x138;

    fn new(board: &Board) -> Second {
        let description = QueueDescription {
            id: 4,
            write_pointer_va: Second::WRITE_POINTER,
            read_pointer_va: POINTERS + 0x180,
            doorbell_at: Second::SLOT,
            ..description(&board.doorbells, true)
        };
        board.map(Second::RING, 1, Rights::READ | Rights::WRITE);
        Second { queue: Arc::new(HardwareQueue::new(description, Second::RING, 4096, true)), written: 0 }
    }

    fn submit(&mut self, board: &Board, dwords: &[u32]) {
        board.store(Second::RING + 4 * self.written, dwords);
        self.written += dwords.len() as u64;
        board.store(Second::WRITE_POINTER, &[self.written as u32, 0]);
        board.doorbells.view().store_u64_release(Second::SLOT, self.written);
    }
}

#[test]
fn a_round_is_told_by_the_queue_that_did_most() {
    let mut board = board(1024);
    // Its wave stops for good, but nobody tells the queue, which waits for it from now on.
    board.store(CODE, &[0xBF90_0001]); // s_trap 1
    board.write(&set_up(CODE, 0));
    board.write(&dispatch(1));
    board.run(&FENCE);
    board.help();
    board.hardware.collect_faults(&[]);
    let (waiting, mut second) = (board.queue.clone(), Second::new(&board));
    let other = second.queue.clone();
    let look = |queues: &[&Arc<HardwareQueue>]| {
        round(&board.hardware, &queues.iter().map(|queue| Arc::clone(queue)).collect::<Vec<_>>())
    };
    assert_eq!([look(&[]), look(&[&other])], [Round::Idle; 2]);
    for queues in [&[&waiting][..], &[&waiting, &other], &[&other, &waiting]] {
        assert_eq!(look(queues), Round::WaitingForDispatch);
    }
    for queues in [[&waiting, &other], [&other, &waiting]] {
        second.submit(&board, &[NOP]);
        assert_eq!(look(&queues), Round::Progress);
    }
    // A wait for memory: nobody can do anything about it but the host.
    second.submit(&board, &[0xC005_3C00, 0x13, DATA as u32, 0, 1, 1, 4]);
    assert_eq!(look(&[&other]), Round::Idle);
    assert_eq!(look(&[&other, &waiting]), Round::WaitingForDispatch);
}

#[test]
fn a_removed_queue_leaves_the_others_in_service_and_the_thread_ends_with_its_owner() {
    let board = Board::new();
    let second = Second::new(&board);
    let processor = CommandProcessor::start(board.hardware.clone()).unwrap();
    processor.add_queue(board.queue.clone());
    processor.add_queue(second.queue.clone());
    assert_eq!(processor.remove_queue(&second.queue), Preemption::Drained);
    let served: Vec<u32> = processor.shared.lock().iter().map(|queue| queue.description().id).collect();
    assert_eq!(served, [3]);
    drop(processor);
    assert_eq!(Arc::strong_count(&board.hardware), 1, "the thread has let go of it");
}

#[test]
fn nobody_waits_for_a_queue_when_the_thread_is_to_end() {
    let board = Board::new();
    let processor = CommandProcessor::start(board.hardware.clone()).unwrap();
    let shared = processor.shared.clone();
    shared.stop.store(true, Ordering::Release);
    let (sender, queues) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(shared.wait_for_queues().0.len()).unwrap());
    assert_eq!(queues.recv_timeout(Duration::from_secs(60)), Ok(0));
}

#[test]
fn what_stops_waves_leaves_none_that_could_run() {
    /// What stops waves, and whether those of queue 3 run on.
    type Stop<'a> = (&'a str, &'a dyn Fn(&Hardware), bool);
    let fault = Fault { va: DATA, cause: Cause::ReadOnly, access: Rights::WRITE };
    let stops: [Stop<'_>; 5] = [
        ("cancelling another queue", &|hardware| assert!(hardware.cancel_queue(4)), true),
        ("cancelling the queue", &|hardware| assert!(hardware.cancel_queue(3)), false),
        ("a page fault", &|hardware| hardware.page_fault(fault), false),
        ("a reset", &Hardware::reset, false),
        ("the end of the process", &Hardware::process_ended, false),
    ];
    for (name, stop, runs_on) in stops {
        let mut board = board(1024);
        board.store(CODE, &[0xBF80_0000, 0xBFA0_FFFE]); // s_nop 0; s_branch -2
        board.write(&set_up(CODE, 0));
        board.run(&dispatch(2));
        assert!(board.hardware.help());
        stop(&board.hardware);
        assert_eq!((board.hardware.help(), board.faults()), (runs_on, String::new()), "{name}");
    }
}
