//! Properties of every packet: emitted packets read back, packets that were read are emitted unchanged, and no
//! words cause a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use zrt_pm4::header::HeaderFlags;
use zrt_pm4::opcode::Opcode;
use zrt_pm4::packet::acquire_mem::{AcquireControl, AcquireFlags};
use zrt_pm4::packet::indirect_buffer::IndirectFlags;
use zrt_pm4::packet::release_mem::{DataSelect, DestinationSelect, InterruptSelect, ReleaseFlags};
use zrt_pm4::packet::wait_reg_mem::{Comparison, Target};
use zrt_pm4::packet::{
    Event, Repr, TemporalHint, acquire_mem, copy_data, dispatch_direct, event_write, indirect_buffer, nop,
    release_mem, set_sh_reg, wait_reg_mem, write_data,
};
use zrt_pm4::registers::{DispatchInitiator, InitiatorFlags, NumThread, ResourceLimits, TmpringSize};
use zrt_pm4::{Listing, Reader, Register, Writer, lint};

/// Initial words that a packet must overwrite completely.
const DIRTY: u32 = 0xa5a5_a5a5;

fn header_flags() -> impl Strategy<Value = HeaderFlags> {
    any::<u32>().prop_map(HeaderFlags::from_bits_truncate)
}

fn temporal() -> impl Strategy<Value = TemporalHint> {
    (0..4usize).prop_map(|at| TemporalHint::ALL[at])
}

/// Field values that are occasionally one too wide, so that the refusal is exercised as well.
fn narrow(bits: u32) -> impl Strategy<Value = u8> {
    0..=(1u8 << bits)
}

fn event() -> impl Strategy<Value = Event> {
    (0..=0x40u8, 0..=0x10u8).prop_map(|(kind, index)| Event { kind, index })
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>().prop_map(|address| address & !7), any::<u64>()]
}

/// A packet with its payload owned.
#[derive(Clone, Debug)]
struct Owned {
    packet: Repr<'static>,
    payload: Vec<u32>,
}

impl Owned {
    fn borrow(&self) -> Repr<'_> {
        match self.packet {
            Repr::Nop(packet) => Repr::Nop(nop::Repr { payload: &self.payload, ..packet }),
            Repr::SetShReg(packet) => Repr::SetShReg(set_sh_reg::Repr { values: &self.payload, ..packet }),
            Repr::WriteData(packet) => Repr::WriteData(write_data::Repr { data: &self.payload, ..packet }),
            packet => packet,
        }
    }
}

fn release() -> impl Strategy<Value = Repr<'static>> {
    let control = (event(), any::<u32>(), narrow(2), narrow(2), temporal(), narrow(2));
    let select = (0..4usize, 0..7usize, 0..6usize);
    let data = (address(), prop_oneof![any::<u64>(), any::<u32>().prop_map(u64::from)], any::<u32>());
    (header_flags(), control, select, data).prop_map(|(header_flags, control, select, data)| {
        let (event, flags, gl2_range, sequence, temporal, execute) = control;
        Repr::ReleaseMem(release_mem::Repr {
            header_flags,
            event,
            flags: ReleaseFlags::from_bits_truncate(flags),
            gl2_range,
            sequence,
            temporal,
            execute,
            destination: DestinationSelect::ALL[select.0],
            interrupt: InterruptSelect::ALL[select.1],
            data: DataSelect::ALL[select.2],
            address: data.0,
            value: data.1,
            context_id: data.2,
        })
    })
}

fn acquire() -> impl Strategy<Value = Repr<'static>> {
    let control = (any::<u32>(), narrow(2), narrow(2), narrow(2), narrow(2)).prop_map(
        |(flags, gli_inv, gl1_range, gl2_range, sequence)| AcquireControl {
            flags: AcquireFlags::from_bits_truncate(flags),
            gli_inv,
            gl1_range,
            gl2_range,
            sequence,
        },
    );
    (header_flags(), any::<bool>(), any::<u64>(), any::<u64>(), any::<u16>(), control).prop_map(
        |(header_flags, engine, size, base, poll_interval, control)| {
            Repr::AcquireMem(acquire_mem::Repr { header_flags, engine, size, base, poll_interval, control })
        },
    )
}

fn wait() -> impl Strategy<Value = Repr<'static>> {
    let target = prop_oneof![
        address().prop_map(|address| Target::Memory { address }),
        any::<u32>().prop_map(|register| Target::Register { register }),
        any::<(u32, u32)>().prop_map(|(write, poll)| Target::WriteThenWait { write, poll }),
    ];
    let flags = any::<(bool, bool, bool)>();
    let numbers = any::<(u32, u32, u16)>();
    (header_flags(), 0..7usize, target, flags, temporal(), numbers).prop_map(
        |(header_flags, comparison, target, flags, temporal, numbers)| {
            Repr::WaitRegMem(wait_reg_mem::Repr {
                header_flags,
                comparison: Comparison::ALL[comparison],
                target,
                preemptable: flags.0,
                engine: flags.1,
                temporal,
                reference: numbers.0,
                mask: numbers.1,
                poll_interval: numbers.2,
                offload: flags.2,
            })
        },
    )
}

fn copy() -> impl Strategy<Value = Repr<'static>> {
    let source = prop_oneof![
        any::<u32>().prop_map(copy_data::Source::Register),
        address().prop_map(copy_data::Source::Gl2),
        any::<u32>().prop_map(copy_data::Source::PerformanceCounter),
        any::<u64>().prop_map(copy_data::Source::Immediate),
        any::<u32>().prop_map(|value| copy_data::Source::Immediate(u64::from(value))),
        Just(copy_data::Source::GpuClock),
    ];
    let destination = prop_oneof![
        any::<u32>().prop_map(copy_data::Destination::Register),
        address().prop_map(copy_data::Destination::Gl2),
    ];
    (header_flags(), source, destination, temporal(), temporal(), any::<(bool, bool)>()).prop_map(
        |(header_flags, source, destination, source_temporal, destination_temporal, flags)| {
            Repr::CopyData(copy_data::Repr {
                header_flags,
                source,
                destination,
                source_temporal,
                destination_temporal,
                wide: flags.0,
                write_confirm: flags.1,
            })
        },
    )
}

fn write() -> impl Strategy<Value = Repr<'static>> {
    let destination = prop_oneof![
        any::<u32>().prop_map(write_data::Destination::Register),
        address().prop_map(write_data::Destination::Gl2),
        address().prop_map(write_data::Destination::Memory),
    ];
    (header_flags(), destination, any::<(bool, bool)>(), temporal(), narrow(2)).prop_map(
        |(header_flags, destination, flags, temporal, engine)| {
            Repr::WriteData(write_data::Repr {
                header_flags,
                destination,
                no_increment: flags.0,
                write_confirm: flags.1,
                temporal,
                engine,
                data: &[],
            })
        },
    )
}

fn packet() -> impl Strategy<Value = Owned> {
    let nop = header_flags().prop_map(|header_flags| Repr::Nop(nop::Repr { header_flags, payload: &[] }));
    let registers = (header_flags(), 0..0x400u32).prop_map(|(header_flags, relative)| {
        let first = Register::new(relative).expect("the strategy stays in the range");
        Repr::SetShReg(set_sh_reg::Repr { header_flags, first, values: &[] })
    });
    let dispatch = (header_flags(), any::<[u32; 3]>(), any::<u32>(), 0..=8u8).prop_map(
        |(header_flags, groups, flags, trace_queue)| {
            let flags = InitiatorFlags::from_bits_truncate(flags);
            let initiator = DispatchInitiator { flags, trace_queue };
            Repr::DispatchDirect(dispatch_direct::Repr { header_flags, groups, initiator })
        },
    );
    let event = (header_flags(), event())
        .prop_map(|(header_flags, event)| Repr::EventWrite(event_write::Repr { header_flags, event }));
    let indirect = (header_flags(), address(), 0..=0x10_0000u32, any::<u32>(), 0..=16u8, narrow(2)).prop_map(
        |(header_flags, address, buffer_dwords, flags, vmid, cache_policy)| {
            let flags = IndirectFlags::from_bits_truncate(flags);
            Repr::IndirectBuffer(indirect_buffer::Repr {
                header_flags,
                address,
                buffer_dwords,
                flags,
                vmid,
                cache_policy,
            })
        },
    );
    let packet =
        prop_oneof![nop, registers, dispatch, event, indirect, release(), acquire(), wait(), copy(), write()];
    (packet, vec(any::<u32>(), 0..12)).prop_map(|(packet, payload)| Owned { packet, payload })
}

/// Words that often look like packets: known opcodes with lengths near the right ones.
fn words() -> impl Strategy<Value = Vec<u32>> {
    let opcode = prop_oneof![
        Just(Opcode::NOP),
        Just(Opcode::SET_SH_REG),
        Just(Opcode::DISPATCH_DIRECT),
        Just(Opcode::ACQUIRE_MEM),
        Just(Opcode::RELEASE_MEM),
        Just(Opcode::WAIT_REG_MEM),
        Just(Opcode::WRITE_DATA),
        Just(Opcode::COPY_DATA),
        Just(Opcode::EVENT_WRITE),
        Just(Opcode::INDIRECT_BUFFER),
        any::<u8>().prop_map(Opcode),
    ];
    let header = (opcode, 0..10u32, 0..8u32)
        .prop_map(|(opcode, count, flags)| 3 << 30 | count << 16 | u32::from(opcode.0) << 8 | flags);
    let word = prop_oneof![
        2 => header,
        4 => any::<u32>(),
        2 => 0..0x1000u32,
        1 => Just(0x8000_0000),
        1 => Just(0xffff_1000),
    ];
    vec(word, 0..64)
}

/// Prints, lints and parses everything, as the fuzz target does.
fn touch(words: &[u32]) {
    assert!(Listing(words).to_string().len() < 400 * (words.len() + 1));
    let mut findings = 0usize;
    lint(words, &mut |finding| findings += usize::from(!finding.to_string().is_empty()));
    assert!(findings <= 20 * words.len() + 2);
    let mut dwords = 0;
    for item in Reader::new(words) {
        let Ok(item) = item else { return };
        assert_eq!(item.offset, dwords, "items follow each other without a gap");
        dwords += item.words.len();
        if let Ok(Some(packet)) = item.parse() {
            let mut again = vec![DIRTY; packet.dword_len()];
            packet.emit(&mut again).expect("what was parsed can be emitted");
            assert_eq!(again, item.words);
        }
    }
    assert_eq!(dwords, words.len(), "without an error the items cover the stream");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn emit_then_parse_then_emit_is_the_same(owned in packet()) {
        let packet = owned.borrow();
        let mut first = vec![DIRTY; packet.dword_len()];
        if packet.emit(&mut first).is_err() {
            prop_assert!(first.iter().all(|word| *word == DIRTY), "a refused packet writes nothing");
            return Ok(());
        }
        prop_assert_eq!(Repr::parse(&first), Ok(Some(packet)));
        let mut second = vec![!DIRTY; first.len()];
        packet.emit(&mut second).expect("emitted once already");
        prop_assert_eq!(&first, &second, "every dword is written, whatever was there");

        let mut recorded = vec![DIRTY; first.len()];
        let mut writer = Writer::new(&mut recorded);
        writer.packet(&packet).expect("emitted once already");
        prop_assert_eq!(writer.left(), 0);
        prop_assert_eq!(&recorded, &first);
        touch(&first);
    }

    #[test]
    fn a_stream_of_packets_is_read_back(packets in vec(packet(), 0..12)) {
        let mut words = vec![DIRTY; 512];
        let mut writer = Writer::new(&mut words);
        let recorded: Vec<_> =
            packets.iter().map(Owned::borrow).filter(|packet| writer.packet(packet).is_ok()).collect();
        let len = writer.len();
        let read: Vec<_> = Reader::new(&words[..len])
            .map(|item| item.expect("no torn packet").parse().expect("a packet of ours").expect("known"))
            .collect();
        prop_assert_eq!(read, recorded);
    }

    #[test]
    fn no_words_panic(words in words()) {
        touch(&words);
    }

    #[test]
    fn register_words_are_read_back(word in any::<u32>()) {
        for narrowed in [word, word & 0x0fff_ffff, word & 0xffff] {
            if let Ok(value) = TmpringSize::from_word(narrowed) {
                prop_assert_eq!(value.to_word(), Ok(narrowed));
            }
            if let Ok(value) = ResourceLimits::from_word(narrowed) {
                prop_assert_eq!(value.to_word(), Ok(narrowed));
            }
            if let Ok(value) = DispatchInitiator::from_word(narrowed) {
                prop_assert_eq!(value.to_word(), Ok(narrowed));
            }
            prop_assert_eq!(NumThread::from_word_xy(narrowed).to_word_xy(), Ok(narrowed));
            prop_assert_eq!(NumThread::from_word_z(narrowed).to_word_z(), Ok(narrowed));
        }
    }
}
