//! The doorbell, the ring and its pointers.

use super::*;
use crate::command_processor::injection::READ_POINTER_NEVER_DWORDS;

#[test]
fn a_slice_is_64_packets_and_the_read_pointer_moves_by_blocks_of_64_dwords() {
    let mut board = Board::new();
    assert_eq!(board.service(), Slice::Idle, "nothing was rung");
    // 100 packets of one dword, and one of 30.
    board.write(&[NOP; 100]);
    board.write(&[0xC01C_1000]);
    board.write(&[0; 29]);
    board.announce();
    assert_eq!(board.read_pointer(), 0);
    assert_eq!(board.service(), Slice::Progress);
    assert_eq!((board.counter("packets"), board.read_pointer()), (64, 64));
    assert_eq!(board.service(), Slice::Progress);
    // At 128 dwords a block was complete; at the end the ring was empty.
    assert_eq!((board.counter("packets"), board.read_pointer()), (101, 130));
    assert_eq!(board.service(), Slice::Idle);
    assert_eq!((board.run(&[NOP; 3]), board.read_pointer()), (Slice::Progress, 133));
    assert_eq!(board.counter("doorbells"), 2);
    assert_eq!(board.faults(), "");
}

#[test]
fn the_read_pointer_in_memory_is_as_stale_as_its_block_says() {
    let injected =
        |dwords| FaultInjection { read_pointer_block_dwords: Some(dwords), ..FaultInjection::default() };
    let mut board = Board::with(injected(16), 1024, true);
    for (count, expected) in [(15, 0), (1, 16), (15, 16), (33, 64), (1, 64)] {
        board.run(&vec![NOP; count]);
        assert_eq!(board.read_pointer(), expected);
    }
    let mut board = Board::with(injected(READ_POINTER_NEVER_DWORDS), 1024, true);
    for _ in 0..3 {
        assert_eq!((board.run(&[NOP; 40]), board.read_pointer()), (Slice::Progress, 0));
    }
    // While a packet waits, it is told only at the ends of blocks, without the injection too.
    for (mut board, expected) in [(Board::new(), 64), (Board::with(injected(16), 1024, true), 64)] {
        board.write(&[NOP; 79]);
        assert_eq!(board.run(&[0xC005_3C00, 0x13, DATA as u32, 0, 1, 1, 4]), Slice::Progress);
        assert_eq!(board.service(), Slice::Progress, "the packets after the first 64");
        assert_eq!(board.service(), Slice::Waiting { for_dispatch: false });
        assert_eq!(board.read_pointer(), expected);
    }
}

#[test]
fn packets_straddle_the_end_of_the_ring_at_each_dword() {
    for before in 1..6 {
        let mut board = Board::new();
        // Up to `before` dwords from the end of the ring.
        board.write(&[0xC000_1000 | (1024 - 2 - before) << 16]);
        board.written = u64::from(1024 - before);
        board.announce();
        assert_eq!(board.service(), Slice::Progress);
        board.run(&write_data(DATA, &[7, 8]));
        assert_eq!((board.words(DATA), board.read_pointer()), ([7, 8, 0], u64::from(1030 - before)));
        assert_eq!(board.faults(), "", "{before}");
    }
}

#[test]
fn a_doorbell_may_be_a_whole_ring_ahead_and_no_further() {
    let mut board = Board::new();
    // Twice around, so that the read pointer is not 0.
    for _ in 0..2 {
        board.submit(&[NOP; 1024]);
        (0..16).for_each(|_| assert_eq!(board.service(), Slice::Progress));
    }
    assert_eq!((board.read_pointer(), board.faults()), (2048, String::new()));
    board.written += 1025;
    board.announce();
    assert_eq!(board.service(), Slice::Idle);
    let text = "kind=packet queue=3 packet=NOP at=0x100000 (ring dword 2048) : the doorbell is 1025 dwords ahead of a \
                ring of 1024 dwords\n";
    assert_eq!(board.faults(), text);
}

#[test]
fn doorbells_that_break_a_rule_are_told_and_change_nothing() {
    let mut board = Board::new();
    board.run(&[NOP; 8]);
    // A 32-bit store leaves the upper half of the sentinel.
    board.ring(0xFFFF_FFFF_0000_0009);
    assert_eq!(board.service(), Slice::Idle);
    board.ring(7);
    assert_eq!(board.service(), Slice::Idle);
    // The same as before the two is no step backwards. It rings, but there is nothing to do.
    board.ring(8);
    assert_eq!(board.service(), Slice::Idle);
    let expected = "kind=doorbell queue=3 doorbell=0xffffffff00000009 : only 32 bits of the slot were stored\n\
                    kind=doorbell queue=3 doorbell=7 last=8 : the doorbell went backwards\n";
    assert_eq!((board.faults(), board.counter("doorbells")), (expected.to_owned(), 2));
    // Memory may be ahead of the doorbell, in its upper half too, but not behind.
    board.write(&[NOP; 2]);
    board.store_write_pointer(1 << 32);
    board.ring(9);
    assert_eq!(board.service(), Slice::Progress);
    board.store_write_pointer(9);
    board.ring(10);
    assert_eq!(board.service(), Slice::Progress);
    let behind =
        "kind=write-pointer queue=3 doorbell=10 wptr=9 : write pointer memory is behind the doorbell\n";
    assert_eq!(board.faults(), format!("{expected}{behind}"));
    assert_eq!((board.counter("packets"), board.read_pointer()), (10, 10));
}

#[test]
fn a_torn_packet_waits_for_its_rest_and_is_told_once_for_each_doorbell() {
    let mut board = Board::new();
    let packet = write_data(DATA, &[7]);
    assert_eq!(board.run(&packet[..3]), Slice::Idle);
    assert_eq!(board.service(), Slice::Idle);
    let torn = |left| {
        format!("kind=torn-packet queue=3 packet=WRITE_DATA 4 body dwords, {left} before the write pointer\n")
    };
    assert_eq!(board.faults(), torn(2));
    assert_eq!(board.run(&packet[3..4]), Slice::Idle);
    assert_eq!(board.service(), Slice::Idle);
    assert_eq!((board.words(DATA), board.faults()), ([0], torn(2) + &torn(3)));
    assert_eq!(board.run(&packet[4..]), Slice::Progress);
    assert_eq!((board.words(DATA), board.faults()), ([7], torn(2) + &torn(3)));
}

#[test]
fn a_delayed_doorbell_has_no_effect_until_it_is_due() {
    let delayed = |doorbell_delay_us| {
        let injection = FaultInjection { doorbell_delay_us, ..FaultInjection::default() };
        let mut board = Board::with(injection, 1024, true);
        board.submit(&[NOP]);
        board
    };
    let late = delayed(u64::from(u32::MAX));
    (0..100).for_each(|_| assert_eq!(late.service(), Slice::Idle));
    assert_eq!(late.counter("doorbells"), 0);
    let mut soon = delayed(1);
    for round in 1..3 {
        let is_due = (0..1_000_000).any(|_| soon.service() == Slice::Progress);
        assert!(is_due, "it is due after a microsecond");
        assert_eq!((soon.counter("packets"), soon.counter("doorbells")), (round, round));
        soon.submit(&[NOP]);
    }
}

#[test]
fn a_dropped_doorbell_is_made_up_for_by_the_next() {
    let injection = FaultInjection { dropped_doorbell: Some(2), ..FaultInjection::default() };
    let mut board = Board::with(injection, 1024, true);
    let slices = [(); 4].map(|()| board.run(&[NOP]));
    assert_eq!(slices, [Slice::Progress, Slice::Idle, Slice::Progress, Slice::Progress]);
    assert_eq!((board.counter("packets"), board.counter("doorbells")), (4, 3));
}

/// UPDATE_QUEUE gives it another ring, or takes it out of service and back.
#[test]
fn a_queue_without_a_ring_is_not_served() {
    const OTHER: u64 = 0x40_0000;
    let mut board = Board::new();
    board.map(OTHER, 2, Rights::READ | Rights::WRITE);
    for (ring_va, ring_bytes, is_scheduled) in [(0, 4096, true), (RING, 0, true), (RING, 4096, false)] {
        board.queue.update(ring_va, ring_bytes, is_scheduled);
        assert_eq!(board.run(&[NOP]), Slice::Idle);
    }
    board.queue.update(RING, 4096, true);
    assert_eq!((board.service(), board.read_pointer()), (Slice::Progress, 3));
    board.queue.update(OTHER, 8192, true);
    board.store(OTHER + 12, &write_data(DATA, &[5]));
    board.written += 5;
    board.announce();
    assert_eq!((board.service(), board.words(DATA), board.faults()), (Slice::Progress, [5], String::new()));
    // Its length is that of the new ring.
    board.written += 2048;
    board.announce();
    board.store(OTHER + 32, &[0xC7FE_1000]);
    assert_eq!((board.service(), board.faults()), (Slice::Progress, String::new()));
    board.written += 2049;
    board.announce();
    let text = "kind=packet queue=3 packet=NOP at=0x400020 (ring dword 2056) : the doorbell is 2049 dwords ahead of a \
                ring of 2048 dwords\n";
    assert_eq!((board.service(), board.faults()), (Slice::Idle, text.to_owned()));
}

#[test]
fn a_new_queue_without_a_ring_is_not_served() {
    for (ring_va, ring_bytes, is_enabled) in [(0, 4096, true), (RING, 0, true), (RING, 4096, false)] {
        let board = Board::new();
        let queue = HardwareQueue::new(description(&board.doorbells, true), ring_va, ring_bytes, is_enabled);
        board.store(RING, &[NOP]);
        board.store_write_pointer(1);
        board.ring(1);
        assert_eq!((queue.service(&board.hardware), board.counter("packets")), (Slice::Idle, 0));
    }
}

#[test]
fn an_earlier_owners_doorbell_has_no_effect() {
    let board = Board::new();
    board.ring(77);
    let queue = HardwareQueue::new(description(&board.doorbells, true), RING, 4096, true);
    assert_eq!(board.doorbells.view().load_u64_acquire(SLOT), u64::MAX);
    assert_eq!((queue.service(&board.hardware), board.faults()), (Slice::Idle, String::new()));
}
