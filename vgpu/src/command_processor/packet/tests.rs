//! Packets, word by word as hardware reference §4 lists their bits, and the text of every refusal.

use super::*;
use proptest::prelude::*;

fn parse(dwords: &[u32]) -> Result<Command, PacketError> {
    let header = PacketHeader::parse(dwords[0])?;
    assert_eq!(header.body_dwords, dwords.len() - 1);
    Command::parse(header.opcode, &dwords[1..])
}

/// RELEASE_MEM to 0x1000 with these two control words.
fn release(event: u32, selects: u32) -> Result<Command, PacketError> {
    parse(&[0xC006_4900, event, selects, 0x1000, 0, 5, 6, 7])
}

#[test]
fn golden_headers_of_the_reference() {
    // Hardware reference §4.2: header, body length and name.
    for (word, opcode, body_dwords, text) in [
        (0xFFFF_1000, 0x10, 0, "NOP"),
        (0xC000_1000, 0x10, 1, "NOP"),
        (0xFFFE_1000, 0x10, 0x3FFF, "NOP"),
        (0xC003_1500, 0x15, 4, "DISPATCH_DIRECT"),
        (0xC003_1502, 0x15, 4, "DISPATCH_DIRECT"),
        (0xC002_1600, 0x16, 3, "unknown"),
        (0xC003_3700, 0x37, 4, "WRITE_DATA"),
        (0xC005_3C00, 0x3C, 6, "WAIT_REG_MEM"),
        (0xC002_3F00, 0x3F, 3, "INDIRECT_BUFFER"),
        (0xC004_4000, 0x40, 5, "COPY_DATA"),
        (0xC000_4600, 0x46, 1, "EVENT_WRITE"),
        (0xC006_4900, 0x49, 7, "RELEASE_MEM"),
        (0xC006_5800, 0x58, 7, "ACQUIRE_MEM"),
        (0xC001_7600, 0x76, 2, "SET_SH_REG"),
        // 1024 registers after the offset.
        (0xC400_7600, 0x76, 1025, "SET_SH_REG"),
        (0xFFFF_3700, 0x37, 0x4000, "WRITE_DATA"),
    ] {
        assert_eq!(PacketHeader::parse(word), Ok(PacketHeader { opcode, body_dwords }), "{word:#x}");
        assert_eq!(name(opcode), text);
        assert!(opcode == 0x10 || body_dwords <= body_dwords_max(opcode), "{text}");
    }
    assert_eq!(body_dwords_max(0x76), 1025, "the registers end");
}

#[test]
fn known_sequences_mean_what_the_reference_says() {
    assert_eq!(parse(&[0xC000_4600, 0x407]), Ok(Command::PartialFlush));
    // Kernel fence (hardware reference §4.6): 64-bit data and interrupt after write confirm.
    let fence = [0xC006_4900, 0x0660_0514, 0x4200_0000, 0x1000, 1, 5, 6, 77];
    assert_eq!(
        parse(&fence),
        Ok(Command::ReleaseMem {
            caches: CacheControl { writes_gl2_back: true, ..CacheControl::default() },
            address: 0x1_0000_1000,
            data: ReleaseData::Wide(0x6_0000_0005),
            interrupt: true,
            context_id: 77,
        })
    );
    // Kernel's memory sync (hardware reference §4.5).
    let acquire = [0xC006_5800, 0, u32::MAX, 0xFF_FFFF, 0, 0, 10, 0xC3B1];
    let all = CacheControl {
        invalidates_instructions: true,
        invalidates_scalars: true,
        invalidates_vectors: true,
        invalidates_gl2: true,
        writes_gl2_back: true,
    };
    assert_eq!(parse(&acquire), Ok(Command::AcquireMem(all)));
    // tinygrad's signal: low 32 bits, no interrupt; it invalidates L0 and GL2 and writes GL2 back.
    let caches = CacheControl { invalidates_scalars: false, invalidates_instructions: false, ..all };
    let data = ReleaseData::Low32(9);
    assert_eq!(
        parse(&[0xC006_4900, 0x0070_F514, 0x2000_0000, 0x1004, 0, 9, 0, 0]),
        Ok(Command::ReleaseMem { caches, address: 0x1004, data, interrupt: false, context_id: 0 })
    );
    // tinygrad's fence wait: memory, ≥.
    let wait = [0xC005_3C00, 0x15, 0x2000, 3, 5, 0xFFFF, 4];
    let comparison = Comparison { function: Function::GreaterOrEqual, reference: 5, mask: 0xFFFF };
    assert_eq!(parse(&wait), Ok(Command::WaitMemory { address: 0x3_0000_2000, comparison }));
    // tinygrad's HDP flush.
    assert_eq!(parse(&[0xC005_3C00, 0x43, 0xE26, 0xE27, !0, !0, 0x20]), Ok(Command::FlushHdp));
    let chain = [0xC002_3F00, 0x3000, 2, 0x20 | 1 << 20 | 1 << 23];
    let command = Command::IndirectBuffer { address: 0x2_0000_3000, dwords: 32, chain: true };
    assert_eq!(parse(&chain), Ok(command));
    // The longest that 20 bits can tell, with an inherited VMID instead of VALID.
    let long = [0xC002_3F00, 0x3004, 0, 0xF_FFFF | 1 << 30];
    let command = Command::IndirectBuffer { address: 0x3004, dwords: 1_048_575, chain: false };
    assert_eq!(parse(&long), Ok(command));
    let dispatch = Command::DispatchDirect { dimensions: [3, 2, 1], initiator: 0x8005 };
    assert_eq!(parse(&[0xC003_1502, 3, 2, 1, 0x8005]), Ok(dispatch));
    assert_eq!(parse(&[0xFFFF_1000]), Ok(Command::Nop));
    assert_eq!(parse(&[0xC001_1000, 1, 2]), Ok(Command::Nop));
}

#[test]
fn each_bit_of_a_cache_action_is_one_of_the_reference() {
    type Action = fn(&mut CacheControl) -> &mut bool;
    let instructions: Action = |caches| &mut caches.invalidates_instructions;
    let scalars: Action = |caches| &mut caches.invalidates_scalars;
    let vectors: Action = |caches| &mut caches.invalidates_vectors;
    let gl2: Action = |caches| &mut caches.invalidates_gl2;
    let back: Action = |caches| &mut caches.writes_gl2_back;
    let only = |actions: &[(u32, Action)], bit: u32| {
        let mut caches = CacheControl::default();
        let named = actions.iter().filter(|(at, _)| *at == bit);
        named.for_each(|(_, action)| *action(&mut caches) = true);
        caches
    };
    let acquired = [(0, instructions), (1, instructions), (7, scalars), (8, vectors), (14, gl2), (15, back)];
    for bit in 0..19 {
        let body = [0xC006_5800, 0, u32::MAX, 0xFF_FFFF, 0, 0, 10, 1 << bit];
        assert_eq!(parse(&body), Ok(Command::AcquireMem(only(&acquired, bit))), "bit {bit}");
    }
    let released = [(14, vectors), (20, gl2), (21, back), (30, scalars)];
    for bit in (6..8).chain(12..32) {
        let Ok(Command::ReleaseMem { caches, .. }) = release(0x514 | 1 << bit, 0) else {
            panic!("bit {bit}")
        };
        assert_eq!(caches, only(&released, bit), "bit {bit}");
    }
}

#[test]
fn a_release_writes_what_its_selectors_say() {
    use ReleaseData::{GpuClock, Low32, Nothing, SystemClock, Wide};
    let selected = |event, selects| match release(event, selects).unwrap() {
        Command::ReleaseMem { address: 0x1000, data, interrupt, context_id: 7, .. } => (data, interrupt),
        other => panic!("{other:?}"),
    };
    let data = [Nothing, Low32(5), Wide(0x6_0000_0005), GpuClock, SystemClock];
    for (select, data) in data.into_iter().enumerate() {
        assert_eq!(selected(0x514, (select as u32) << 29), (data, false));
    }
    // None, interrupt only, after write confirm, data after write confirm without interrupt.
    for (select, interrupt) in [false, true, true, false].into_iter().enumerate() {
        assert_eq!(selected(0x514, (select as u32) << 24), (Nothing, interrupt));
    }
    // The memory controller or GL2, and each event with its index.
    for event in [0x514, 0x528, 0x504, 0x62F] {
        assert_eq!(selected(event, 1 << 16), (Nothing, false));
    }
    // Addresses: any without data, of dwords for 32 bits, of quadwords for the rest.
    for (select, multiple) in [(0, 1), (1, 4), (2, 8), (3, 8), (4, 8)] {
        for address in 0x1000..0x1010 {
            let packet = [0xC006_4900, 0x514, select << 29, address, 0, 5, 6, 7];
            assert_eq!(parse(&packet).is_ok(), address % multiple == 0, "{select} {address:#x}");
        }
    }
}

/// Functions of hardware reference §4.7, for masked values below, at and above the reference.
#[test]
fn waits_compare_as_they_are_told() {
    let expected = [
        [true, true, true],
        [true, false, false],
        [true, true, false],
        [false, true, false],
        [true, false, true],
        [false, true, true],
        [false, false, true],
    ];
    for (number, expected) in expected.into_iter().enumerate() {
        for operation in [0, 3] {
            let control = number as u32 | 1 << 4 | operation << 6;
            let packet = [0xC005_3C00, control, 0x2000, 0, 5, 0x0F, 4];
            let Ok(Command::WaitMemory { address: 0x2000, comparison }) = parse(&packet) else {
                panic!("{control:#x}");
            };
            // The reference is not masked; the value's high bits are.
            assert_eq!([0xF4, 0xF5, 0xF6].map(|value| comparison.holds(value)), expected, "{control:#x}");
        }
    }
}

#[test]
fn copies_and_writes_go_where_their_selectors_say() {
    let copy = |control| parse(&[0xC004_4000, control, 0x1004, 1, 0x2004, 2]);
    let copied = |source, wide, is_obsolete| {
        Ok(Command::CopyData { source, destination: 0x2_0000_2004, wide, is_obsolete })
    };
    let memory = CopySource::Memory(0x1_0000_1004);
    for (control, source, is_obsolete) in [
        (0x202, memory, false),
        (0x201, memory, true),
        (0x502, memory, true),
        (0x501, memory, true),
        (0x205, CopySource::Immediate(0x1_0000_1004), false),
        (0x209, CopySource::GpuClock, false),
        // Temporal hints and the confirmation change nothing.
        (0x0610_6202, memory, false),
    ] {
        assert_eq!(copy(control), copied(source, false, is_obsolete), "{control:#x}");
    }
    let wide = parse(&[0xC004_4000, 0x1_0202, 0x1008, 0, 0x2010, 0]);
    let source = CopySource::Memory(0x1008);
    assert_eq!(wide, Ok(Command::CopyData { source, destination: 0x2010, wide: true, is_obsolete: false }));

    let write = |control| parse(&[0xC003_3700, control, 0x1004, 1, 9]);
    for (control, increments) in [(0x200, true), (0x500, true), (0x10_0500, true), (0x1_0500, false)] {
        let command = Command::WriteData { address: 0x1_0000_1004, increments };
        assert_eq!(write(control), Ok(command), "{control:#x}");
    }
}

/// Events start and stop counters, which this device does not have; the partial flush is no such event.
#[test]
fn events_of_index_0_are_taken_and_only_one_flushes() {
    for event in (0..64).filter(|event| *event != 7) {
        assert_eq!(parse(&[0xC000_4600, event]), Ok(Command::OtherEvent), "{event:#x}");
    }
}

#[test]
fn registers_are_set_within_their_range_but_not_the_privileged_one() {
    let set = |first: u32, count: usize| {
        let mut body = vec![0; 1 + count];
        body[0] = first;
        Command::parse(0x76, &body)
    };
    for (first, count) in [(0, 0x214), (0x213, 1), (0x215, 0x1EB), (0x3FF, 1)] {
        assert_eq!(set(first, count), Ok(Command::SetShRegisters { first: first as usize }), "{first:#x}");
    }
    let refused = [
        (0x215, 0x1EC, "SET_SH_REG: register is 0x215, which is not defined"),
        (0x400, 1, "SET_SH_REG: register is 0x400, which is not defined"),
        (0x3FF, 2, "SET_SH_REG: register is 0x3ff, which is not defined"),
        (u32::MAX, 1, "SET_SH_REG: register is 0xffffffff, which is not defined"),
        (0, 0x215, "SET_SH_REG writes the privileged register 0x214"),
        (0x214, 1, "SET_SH_REG writes the privileged register 0x214"),
        (0x213, 3, "SET_SH_REG writes the privileged register 0x214"),
        (0x200, 0, "SET_SH_REG with 1 body dwords"),
    ];
    for (first, count, text) in refused {
        assert_eq!(set(first, count).unwrap_err().to_string(), text);
    }
}

/// What hardware would not take, or this device does not model.
#[test]
fn each_refusal_says_what_it_is_about() {
    let refused: [(&[u32], &str); 38] = [
        (&[0x8000_0000], "header 0x80000000 is not of packet type 3"),
        (&[0], "header 0x00000000 is not of packet type 3"),
        (&[0xC000_1001, 0], "header 0xc0001001 is predicated"),
        (&[0xC000_2300, 0], "unknown opcode 0x23"),
        (&[0xC002_1500, 1, 1, 1], "DISPATCH_DIRECT with 3 body dwords"),
        (&[0xC005_4900, 0x514, 0x2000_0000, 0, 0, 0, 0], "RELEASE_MEM with 6 body dwords"),
        (&[0xC005_5800, 0, 0, 0, 0, 0, 0], "ACQUIRE_MEM with 6 body dwords"),
        (&[0xC004_3C00, 0x15, 0x2000, 0, 3, 0], "WAIT_REG_MEM with 5 body dwords"),
        (&[0xC002_3700, 0x500, 0x1000, 0], "WRITE_DATA with 3 body dwords"),
        (&[0xC003_4000, 0x202, 0, 0, 0], "COPY_DATA with 4 body dwords"),
        (&[0xC001_4600, 0x407, 0], "EVENT_WRITE with 2 body dwords"),
        (&[0xC001_3F00, 0x3000, 0], "INDIRECT_BUFFER with 2 body dwords"),
        (
            &[0xC006_5800, 0x8000_0000, 0, 0, 0, 0, 0, 0],
            "ACQUIRE_MEM: control is 0x80000000, which is not defined",
        ),
        (&[0xC006_5800, 0, 0, 0, 0, 0, 0, 1 << 19], "ACQUIRE_MEM: GCR_CNTL is 0x80000, which is not defined"),
        (
            &[0xC006_4900, 0x414, 0, 0, 0, 0, 0, 0],
            "RELEASE_MEM: event type and index is 0x414, which is not defined",
        ),
        (
            &[0xC006_4900, 0x52F, 0, 0, 0, 0, 0, 0],
            "RELEASE_MEM: event type and index is 0x52f, which is not defined",
        ),
        (&[0xC006_4900, 0x514, 2 << 16, 0, 0, 0, 0, 0], "RELEASE_MEM: dst_sel 0x2 is not modelled"),
        (&[0xC006_4900, 0x514, 4 << 24, 0, 0, 0, 0, 0], "RELEASE_MEM: int_sel 0x4 is not modelled"),
        (&[0xC006_4900, 0x514, 5 << 29, 0, 0, 0, 0, 0], "RELEASE_MEM: data_sel 0x5 is not modelled"),
        (
            &[0xC006_4900, 0x514, 2 << 29, 0x1004, 3, 0, 0, 0],
            "RELEASE_MEM: address is 0x300001004, which is not defined",
        ),
        (&[0xC005_3C00, 0x17, 0x2000, 0, 3, 0, 4], "WAIT_REG_MEM: function is 0x7, which is not defined"),
        (&[0xC005_3C00, 0x25, 0x2000, 0, 3, 0, 4], "WAIT_REG_MEM: space is 0x2, which is not defined"),
        (&[0xC005_3C00, 0x05, 0xE26, 0xE27, 3, 0, 4], "WAIT_REG_MEM: register 0xe26 is not modelled"),
        (&[0xC005_3C00, 0x43, 0xE25, 0xE27, 3, 0, 4], "WAIT_REG_MEM: register 0xe25 is not modelled"),
        (&[0xC005_3C00, 0x43, 0xE26, 0xE26, 3, 0, 4], "WAIT_REG_MEM: register 0xe26 is not modelled"),
        (&[0xC005_3C00, 0x53, 0x2000, 0, 3, 0, 4], "WAIT_REG_MEM: operation on memory 0x1 is not modelled"),
        (&[0xC005_3C00, 0x15, 0x2002, 0, 3, 0, 4], "WAIT_REG_MEM: address is 0x2002, which is not defined"),
        (&[0xC003_3700, 0x000, 0x1000, 0, 1], "WRITE_DATA: destination 0x0 is not modelled"),
        (&[0xC003_3700, 0x500, 0x1002, 0, 1], "WRITE_DATA: address is 0x1002, which is not defined"),
        (&[0xC004_4000, 0x204, 0x1000, 0, 0x2000, 0], "COPY_DATA: source 0x4 is not modelled"),
        (&[0xC004_4000, 0x002, 0x1000, 0, 0x2000, 0], "COPY_DATA: destination 0x0 is not modelled"),
        (
            &[0xC004_4000, 0x1_0202, 0x1004, 0, 0x2000, 0],
            "COPY_DATA: address is 0x1004, which is not defined",
        ),
        (&[0xC000_4600, 0x507], "EVENT_WRITE: event type and index is 0x507, which is not defined"),
        (&[0xC000_4600, 0x007], "EVENT_WRITE: event type and index is 0x7, which is not defined"),
        (
            &[0xC002_3F00, 0x3000, 0, 1 | 1 << 23 | 1 << 31],
            "INDIRECT_BUFFER: PRIV is 0x80800001, which is not defined",
        ),
        (
            &[0xC002_3F00, 0x3000, 0, 1 | 1 << 23 | 1 << 24],
            "INDIRECT_BUFFER: VMID is 0x1800001, which is not defined",
        ),
        (&[0xC002_3F00, 0x3000, 0, 1 << 23], "INDIRECT_BUFFER: length is 0x0, which is not defined"),
        (
            &[0xC002_3F00, 0x3000, 0, 1],
            "INDIRECT_BUFFER: control without VALID or inherited VMID is 0x1, which is not defined",
        ),
    ];
    for (packet, text) in refused {
        assert_eq!(parse(packet).unwrap_err().to_string(), text, "{packet:x?}");
    }
    let misaligned = parse(&[0xC002_3F00, 0x3002, 0, 1 | 1 << 23]).unwrap_err();
    assert_eq!(misaligned.to_string(), "INDIRECT_BUFFER: address is 0x3002, which is not defined");
}

proptest! {
    /// Hardware reference §4.1.
    #[test]
    fn a_header_is_its_fields(
        kind in 0u32..4,
        count in prop_oneof![Just(0x3FFF), 0u32..0x4000],
        opcode in prop_oneof![Just(0x10), 0u32..0x100],
        low in 0u32..0x100,
    ) {
        let word = kind << 30 | count << 16 | opcode << 8 | low;
        let body_dwords = if (opcode, count) == (0x10, 0x3FFF) { 0 } else { count as usize + 1 };
        let expected = match (kind, low % 2) {
            (3, 0) => Ok(PacketHeader { opcode, body_dwords }),
            (3, _) => Err(PacketError::Predicated(word)),
            _ => Err(PacketError::NotType3(word)),
        };
        prop_assert_eq!(PacketHeader::parse(word), expected);
    }

    #[test]
    fn any_body_of_a_known_opcode_is_parsed_without_panic(
        opcode in proptest::sample::select(vec![0x10u32, 0x15, 0x37, 0x3C, 0x3F, 0x40, 0x46, 0x49, 0x58, 0x76]),
        body in proptest::collection::vec(any::<u32>(), 0..12),
    ) {
        let _ = Command::parse(opcode, &body);
    }
}
