//! Parts of the device that do not work, and what stops queues.

use super::*;
use crate::command_processor::injection::{Misreading, PlantedFault};
use crate::command_processor::queue::Health;

fn planted(fault: PlantedFault) -> Board {
    Board::with(FaultInjection { planted: Some(fault), ..FaultInjection::default() }, 1024, true)
}

#[test]
fn a_queue_that_never_reads_takes_nothing() {
    let mut board = planted(PlantedFault::QueueNeverReads);
    assert_eq!((board.run(&[NOP]), board.counter("doorbells")), (Slice::Idle, 0));
}

#[test]
fn an_end_of_pipe_that_never_writes_lets_packets_pass() {
    let mut board = planted(PlantedFault::EndOfPipeNeverWrites);
    board.write(&[0xC006_4900, 0x514, 0x2200_0000, DATA as u32, 0, 7, 0, 5]);
    assert_eq!(board.run(&write_data(DATA + 4, &[8])), Slice::Progress);
    assert_eq!((board.words(DATA), board.counter("interrupts")), ([0, 8], 0));
}

#[test]
fn a_refused_indirect_buffer_stops_the_queue_in_silence() {
    let mut board = planted(PlantedFault::IndirectBufferRefused);
    board.write(&[0xC002_3F00, DATA as u32, 0, 1 | 1 << 23]);
    let waiting = Slice::Waiting { for_dispatch: false };
    assert_eq!((board.run(&[NOP]), board.service()), (waiting, waiting));
    assert_eq!(
        (board.counter("packets"), board.counter("submissions"), board.faults()),
        (0, 0, String::new())
    );
}

/// One that writes a dword more than it is told, and one that takes every WRITE_DATA for a NOP.
#[test]
fn a_misread_packet_has_another_effect_and_its_own_length() {
    let misreads: [(Misreading, [u32; 3]); 2] =
        [(|_, body| body.push(9), [7, 9, 0]), (|opcode, _| *opcode = 0x10, [0; 3])];
    for (misreads, left) in misreads {
        let injection = FaultInjection { misreads: Some(misreads), ..FaultInjection::default() };
        let mut board = Board::with(injection, 1024, true);
        let packet = write_data(DATA, &[7]);
        assert_eq!(board.run(&packet), Slice::Progress);
        assert_eq!((board.words(DATA), board.counter("packets")), (left, 1));
        // The next packet begins where this one ends in the ring.
        assert_eq!((board.run(&packet), board.faults()), (Slice::Progress, String::new()));
        assert_eq!((board.read_pointer(), board.counter("packets")), (2 * packet.len() as u64, 2));
    }
}

#[test]
fn only_a_running_queue_hangs_and_a_removed_one_stays_removed() {
    let mut board = Board::new();
    board.queue.hang();
    assert_eq!((board.run(&[NOP]), board.counter("doorbells")), (Slice::Idle, 0));
    assert_eq!(board.queue.remove(), Health::Hung);
    board.queue.hang();
    assert_eq!((board.service(), board.queue.remove()), (Slice::Idle, Health::Removed));
    let mut board = Board::new();
    board.run(&[0x8000_0000]);
    board.queue.hang();
    assert_eq!(board.queue.remove(), Health::Stopped);
}

#[test]
fn a_reset_loses_memory_until_the_process_has_ended() {
    let mut board = Board::new();
    let state =
        |board: &Board| (board.hardware.reset_count(), board.hardware.is_lost(), board.hardware.is_evicted());
    assert_eq!(state(&board), (0, false, false));
    board.hardware.reset();
    board.hardware.reset();
    assert_eq!((state(&board), board.run(&[NOP])), ((2, true, true), Slice::Idle));
    board.hardware.process_ended();
    assert_eq!((state(&board), board.service()), ((2, false, false), Slice::Progress));
}

#[test]
fn counters_are_lines_of_a_name_and_a_number() {
    let mut board = Board::new();
    board.store(DATA, &[NOP]);
    board.write(&[0xC002_3F00, DATA as u32, 0, 1 | 1 << 23]);
    board.run(&[0xC006_4900, 0x514, 1 << 24, 0, 0, 0, 0, 5]);
    let text = "doorbells 1\npackets 3\ndispatches 0\nsubmissions 1\ninterrupts 1\nworkgroups 0\nwaves 0\n\
                wave_instructions 0\n";
    assert_eq!(board.hardware.counters_text(), text);
}
