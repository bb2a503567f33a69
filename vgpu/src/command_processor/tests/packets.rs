//! What packets do to memory, and how indirect buffers are walked.

use super::*;
use crate::memory::{Cause, Fault};

const BUFFER: u64 = 0x50_0000;

/// INDIRECT_BUFFER with VALID; `chain` in an indirect buffer.
fn indirect(va: u64, dwords: u32, chain: bool) -> [u32; 4] {
    [0xC002_3F00, va as u32, (va >> 32) as u32, dwords | 1 << 23 | u32::from(chain) << 20]
}

/// RELEASE_MEM of this data selector and value, without cache actions.
fn release(va: u64, data_sel: u32, value: u64) -> [u32; 8] {
    let (low, high) = (value as u32, (value >> 32) as u32);
    [0xC006_4900, 0x514, data_sel << 29, va as u32, (va >> 32) as u32, low, high, 0]
}

#[test]
fn data_are_written_where_they_belong() {
    let mut board = Board::new();
    // Across the border of two ranges of memory.
    let border = DATA + GPU_PAGE_BYTES;
    assert_eq!(board.run(&write_data(border - 8, &[1, 2, 3, 4])), Slice::Progress);
    assert_eq!(board.words(border - 12), [0, 1, 2, 3, 4, 0]);
    // Without increments the last value stays.
    board.run(&[0xC005_3700, 0x1_0500, DATA as u32, 0, 7, 8, 9]);
    assert_eq!(board.words(DATA), [9, 0]);
    // COPY_DATA of 32 and of 64 bits, from an immediate value and from memory.
    board.run(&[0xC004_4000, 0x205, 0x1111, 0x2222, DATA as u32 + 8, 0]);
    board.run(&[0xC004_4000, 0x1_0205, 0x1111, 0x2222, DATA as u32 + 16, 0]);
    assert_eq!(board.words(DATA + 8), [0x1111, 0, 0x1111, 0x2222, 0]);
    board.run(&[0xC004_4000, 0x202, border as u32 - 8, 0, DATA as u32 + 32, 0]);
    board.run(&[0xC004_4000, 0x1_0202, border as u32 - 8, 0, DATA as u32 + 40, 0]);
    assert_eq!(board.words(DATA + 32), [1, 0, 1, 2, 0]);
    board.run(&release(DATA + 64, 1, 0x2222_1111));
    board.run(&release(DATA + 72, 2, 0x4444_3333));
    board.run(&release(DATA + 80, 0, 7));
    assert_eq!(board.words(DATA + 64), [0x2222_1111, 0, 0x4444_3333, 0, 0, 0]);
    board.run(&release(DATA + 72, 2, 0x6666_0000_5555));
    assert_eq!(board.words(DATA + 72), [0x5555, 0x6666]);
    assert_eq!(board.faults(), "");
    // A packet that copies from the obsolete selectors works, and is told.
    let at = RING + 4 * board.written;
    board.run(&[0xC004_4000, 0x501, border as u32 - 4, 0, DATA as u32 + 96, 0]);
    let text = format!(
        "kind=obsolete-selector queue=3 packet=COPY_DATA at={at:#x} control=0x501 : source 1 or destination 5, \
         obsolete; GL2 is 2\n"
    );
    assert_eq!((board.words(DATA + 96), board.faults()), ([2, 0], text));
}

#[test]
fn interrupts_are_counted_and_the_system_clock_runs() {
    let mut board = Board::new();
    // int_sel 1 and 2 interrupt; 3 does not.
    for (int_sel, interrupts) in [(1, 1), (2, 2), (3, 2), (0, 2)] {
        board.run(&[0xC006_4900, 0x514, int_sel << 24, 0, 0, 0, 0, 5]);
        assert_eq!(board.counter("interrupts"), interrupts);
    }
    // Nanoseconds since power-up: they grow, and never go back.
    let mut clock = || {
        board.run(&release(DATA, 4, 0));
        let [low, high]: [u32; 2] = board.words(DATA);
        u64::from(low) | u64::from(high) << 32
    };
    let first = clock();
    let mut last = first;
    for _ in 0..1_000 {
        let now = clock();
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    assert!(last > first, "a thousand readings take more than a nanosecond");
}

#[test]
fn a_wait_holds_the_queue_until_memory_has_the_value() {
    let mut board = Board::new();
    // (value & 0xff) >= 5
    board.write(&[0xC005_3C00, 0x15, DATA as u32 + GPU_PAGE_BYTES as u32, 0, 5, 0xFF, 4]);
    board.submit(&write_data(DATA, &[1]));
    for value in [0, 4, 0x104] {
        board.store(DATA + GPU_PAGE_BYTES, &[value]);
        assert_eq!((board.service(), board.words(DATA)), (Slice::Waiting { for_dispatch: false }, [0]));
    }
    board.store(DATA + GPU_PAGE_BYTES, &[0x105]);
    assert_eq!((board.service(), board.words(DATA)), (Slice::Progress, [1]));
}

#[test]
fn indirect_buffers_are_walked_and_chained() {
    let mut board = Board::new();
    board.map(BUFFER, 1, Rights::READ);
    board.map(BUFFER + GPU_PAGE_BYTES, 1, Rights::READ);
    // The second lies across the border of two ranges.
    let place = BUFFER + GPU_PAGE_BYTES - 12;
    let first = [&write_data(DATA, &[1])[..], &indirect(place, 11, true)].concat();
    let second = [&write_data(DATA + 4, &[2, 3])[..], &write_data(DATA + 12, &[4])].concat();
    board.store(BUFFER, &first);
    board.store(place, &second);
    board.write(&indirect(BUFFER, first.len() as u32, false));
    assert_eq!(board.run(&write_data(DATA + 16, &[5])), Slice::Progress);
    assert_eq!((board.words(DATA), board.faults()), ([1, 2, 3, 4, 5, 0], String::new()));
    assert_eq!((board.counter("packets"), board.counter("submissions")), (6, 2));
    assert_eq!(board.read_pointer(), 9);
}

#[test]
fn a_packet_of_an_indirect_buffer_may_go_over_into_another_range_at_each_dword() {
    let packet = write_data(DATA, &[7, 8]);
    for before in 1..packet.len() as u64 {
        let mut board = Board::new();
        board.map(BUFFER, 1, Rights::READ);
        board.map(BUFFER + GPU_PAGE_BYTES, 1, Rights::READ);
        let place = BUFFER + GPU_PAGE_BYTES - 4 * before;
        board.store(place, &packet);
        assert_eq!(board.run(&indirect(place, packet.len() as u32, false)), Slice::Progress);
        assert_eq!((board.words(DATA), board.faults()), ([7, 8, 0], String::new()), "{before}");
    }
}

#[test]
fn what_halts_an_indirect_buffer_is_told_with_its_place() {
    let chained = indirect(BUFFER, 4, true);
    let nested = indirect(BUFFER, 4, false);
    let long = write_data(DATA, &[1, 2]);
    let cases: [(&[u32], u32, &str, &str); 4] = [
        (&nested, 4, "INDIRECT_BUFFER", "INDIRECT_BUFFER inside an indirect buffer must chain"),
        (&long, 5, "WRITE_DATA", "5 body dwords follow the header, 4 are left in the indirect buffer"),
        (&long, 1, "WRITE_DATA", "5 body dwords follow the header, 0 are left in the indirect buffer"),
        (
            &[0xC000_4600, 0x507],
            2,
            "EVENT_WRITE",
            "EVENT_WRITE: event type and index is 0x507, which is not defined",
        ),
    ];
    for (dwords, count, name, text) in cases {
        let mut board = Board::new();
        board.map(BUFFER, 1, Rights::READ);
        // After two packets of one dword.
        board.store(BUFFER, &[NOP, NOP]);
        board.store(BUFFER + 8, dwords);
        assert_eq!(board.run(&indirect(BUFFER, 2 + count, false)), Slice::Idle);
        let expected = format!(
            "kind=packet queue=3 packet={name} at=0x500008 (indirect buffer 0x500000 dword 2) : {text}\n"
        );
        assert_eq!(board.faults(), expected);
        // It has stopped.
        assert_eq!((board.run(&write_data(DATA, &[9])), board.words(DATA)), (Slice::Idle, [0]));
    }
    let mut board = Board::new();
    board.run(&[NOP]);
    assert_eq!(board.run(&chained), Slice::Idle);
    let text = "kind=packet queue=3 packet=INDIRECT_BUFFER at=0x100004 (ring dword 1) : INDIRECT_BUFFER in the ring may \
                not chain\n";
    assert_eq!(board.faults(), text);
}

#[test]
fn bodies_that_no_packet_has_are_refused_before_they_are_read() {
    let cases = [
        (0xC400_7600, "packet=SET_SH_REG", "SET_SH_REG: register is 0x1, which is not defined"),
        (0xC401_7600, "packet=SET_SH_REG", "SET_SH_REG with 1026 body dwords"),
        (0xC007_1600, "packet=unknown", "unknown opcode 0x16"),
        (0xC008_1600, "packet=unknown", "unknown opcode 0x16"),
        (0xC008_4900, "packet=RELEASE_MEM", "RELEASE_MEM with 9 body dwords"),
    ];
    for (header, name, text) in cases {
        let mut board = Board::with(FaultInjection::default(), 2048, true);
        board.write(&[header, 1]);
        board.submit(&[0; 1100]);
        assert_eq!(board.service(), Slice::Idle);
        let expected = format!("kind=packet queue=3 {name} at=0x100000 (ring dword 0) : {text}\n");
        assert_eq!(board.faults(), expected);
    }
    // The longest ones there are.
    let mut board = Board::with(FaultInjection::default(), 2048, true);
    assert_eq!(board.run(&write_data(DATA, &[3; 1500])), Slice::Progress);
    assert_eq!((board.words(DATA + 4 * 1499), board.faults()), ([3, 0], String::new()));
    assert_eq!(board.run(&[0xC3FF_1000]), Slice::Idle, "a NOP whose body is not there");
    board.written += 1024;
    board.announce();
    assert_eq!((board.service(), board.read_pointer()), (Slice::Progress, 1504 + 1025));
}

#[test]
fn packets_that_reach_no_memory_stop_all_queues_and_tell_where() {
    let border = DATA + 2 * GPU_PAGE_BYTES;
    let read_only = 0x60_0000;
    let copy = [0xC004_4000, 0x1_0202, border as u32 - 8, 0, read_only as u32, 0];
    let wait = [0xC005_3C00, 0x13, border as u32, 0, 1, 1, 4];
    let cases: [(&[u32], &str, u64, Cause, &str); 6] = [
        (&write_data(border - 4, &[1, 2]), "WRITE_DATA", border, Cause::NotPresent, "not mapped"),
        (&write_data(read_only + 4, &[1]), "WRITE_DATA", read_only + 4, Cause::ReadOnly, "mapped read-only"),
        (&copy, "COPY_DATA", read_only, Cause::ReadOnly, "mapped read-only"),
        (&wait, "WAIT_REG_MEM", border, Cause::NotPresent, "not mapped"),
        (&release(border, 1, 1), "RELEASE_MEM", border, Cause::NotPresent, "not mapped"),
        (&release(border + 8, 2, 1), "RELEASE_MEM", border + 8, Cause::NotPresent, "not mapped"),
    ];
    for (packet, name, va, cause, text) in cases {
        let mut board = Board::new();
        board.map(read_only, 1, Rights::READ);
        assert_eq!(board.hardware.last_page_fault(), None);
        assert_eq!(board.run(packet), Slice::Idle);
        let expected =
            format!("kind=page-fault queue=3 packet={name} at=0x100000 (ring dword 0) : va={va:#x} {text}\n");
        assert_eq!(board.faults(), expected);
        let access = if name == "WAIT_REG_MEM" { Rights::READ } else { Rights::WRITE };
        assert_eq!(board.hardware.last_page_fault(), Some(Fault { va, cause, access }));
        assert!(board.hardware.is_evicted() && !board.hardware.is_lost());
        let other = HardwareQueue::new(description(&board.doorbells, true), RING, 4096, true);
        board.ring(1);
        assert_eq!((other.service(&board.hardware), board.counter("doorbells")), (Slice::Idle, 1));
        // The next process finds everything as new.
        board.hardware.process_ended();
        assert_eq!((other.service(&board.hardware), board.counter("doorbells")), (Slice::Idle, 2));
    }
    // A packet that cannot be read has no name.
    let mut board = Board::new();
    board.store(border - 4, &[NOP]);
    assert_eq!(board.run(&indirect(border - 4, 3, false)), Slice::Idle);
    let text =
        "kind=page-fault queue=3 at=0x302000 (indirect buffer 0x301ffc dword 1) : va=0x302000 not mapped\n";
    assert_eq!(board.faults(), text);
}

#[test]
fn without_an_eop_buffer_a_release_faults_at_address_0() {
    let mut board = Board::with(FaultInjection::default(), 1024, false);
    assert_eq!(board.run(&release(DATA, 1, 1)), Slice::Idle);
    let text = "kind=page-fault queue=3 packet=RELEASE_MEM at=0x100000 (ring dword 0) : va=0x0 not mapped\n";
    assert_eq!((board.faults().as_str(), board.words(DATA)), (text, [0]));
}
