//! Whatever a caller passes to the constructors that take counts, sizes and addresses, the result is a value or a
//! typed error with the value in it; never a panic or a wrap. A writer without enough space is left unchanged.

use proptest::prelude::*;
use zrt_pm4::header::{BODY_DWORDS_MAX, Header, HeaderFlags};
use zrt_pm4::opcode::Opcode;
use zrt_pm4::registers::{NumThread, ResourceLimits, TmpringSize, WaveSize, program_address_words};
use zrt_pm4::{EmitError, KernelParameters, KernelState, Reader, Register, Writer};

/// Numbers of all sizes: arbitrary, small, and next to powers of two.
fn number() -> impl Strategy<Value = u64> {
    let beside = (0u32..64, -2i64..3).prop_map(|(bit, by)| (1u64 << bit).wrapping_add_signed(by));
    prop_oneof![any::<u64>(), 0u64..70, beside]
}

fn short() -> impl Strategy<Value = u32> {
    number().prop_map(|number| number as u32)
}

fn wave() -> impl Strategy<Value = WaveSize> {
    prop::sample::select(vec![WaveSize::Wave32, WaveSize::Wave64])
}

fn kernel() -> impl Strategy<Value = KernelParameters> {
    let bytes = prop::array::uniform5(any::<u8>());
    let counts = (any::<[u16; 2]>(), prop::array::uniform3(short()), wave());
    // In half of the cases the numbers fit, so that the other parameters are tested.
    (number(), bytes, counts, any::<[bool; 4]>()).prop_map(|(address, bytes, counts, is_usual)| {
        let (halves, workgroup, wave) = counts;
        KernelParameters {
            code_address: if is_usual[0] { address << 24 >> 16 } else { address },
            rsrc1: if is_usual[1] { 3 } else { u32::from(bytes[0]) << (bytes[2] % 32) },
            rsrc2: match is_usual[2] {
                true => u32::from(bytes[1] % 17) << 1,
                false => u32::from(halves[0]) << 15 | u32::from(halves[1]),
            },
            rsrc3: if is_usual[1] { 0 } else { u32::from(bytes[4]) << 8 },
            workgroup: if is_usual[3] { workgroup.map(|threads| threads % 11) } else { workgroup },
            limits: ResourceLimits {
                waves_per_sh: halves[0] >> 5,
                cu_group: bytes[3] % 8,
                ..Default::default()
            },
            wave,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_kernel_is_encoded_or_refused_and_dispatched_whole_or_not_at_all(
        kernel in kernel(),
        user_data in prop::collection::vec(any::<u32>(), 0..20),
        groups in any::<[u32; 3]>(),
        room in 0usize..80,
        scratch in (any::<u16>(), short(), number()),
    ) {
        let state = match KernelState::with_scratch(&kernel) {
            Ok(state) => state,
            Err(error) => {
                prop_assert!(!error.to_string().is_empty() && KernelState::new(&kernel).is_err());
                return Ok(());
            }
        };
        let threads = kernel.workgroup.iter().map(|threads| u64::from(*threads)).product::<u64>();
        prop_assert!((1..=1024).contains(&threads) && kernel.code_address % 256 == 0 && state.user_sgprs() <= 16);
        prop_assert!(Reader::new(state.words()).all(|item| item.is_ok_and(|item| item.parse().is_ok())));
        let mut words = vec![0; room];
        let mut writer = Writer::new(&mut words);
        match writer.dispatch(&state, &user_data, groups) {
            Ok(()) => prop_assert!((state.user_sgprs().max(1)..=16).contains(&user_data.len())),
            Err(EmitError::Full { needed, left }) => prop_assert!(needed > left && left == room && writer.is_empty()),
            Err(EmitError::OutOfRange { value, .. }) => prop_assert_eq!(value as usize, user_data.len()),
            Err(error) => prop_assert!(false, "{error}"),
        }
        let before = writer.len();
        let size = TmpringSize { waves: scratch.0, wave_size: scratch.1 };
        prop_assert!(writer.scratch(&size, scratch.2).is_ok() || writer.len() == before);
        prop_assert!(writer.nop(scratch.2 as usize).is_ok() || writer.len() <= room);
    }

    #[test]
    fn counts_are_held_against_what_there_is(count in number(), opcode in any::<u8>()) {
        let small = count as u32;
        let out_of_range = |error: EmitError| matches!(error, EmitError::OutOfRange { value, .. } if value == small);
        match NumThread::full(small) {
            Ok(size) => prop_assert!((1..=1024).contains(&small) && size.to_word_xy().is_ok()),
            Err(error) => prop_assert!(out_of_range(error) && !(1..=1024).contains(&small)),
        }
        match program_address_words(count) {
            Ok([low, high]) => prop_assert_eq!(u64::from(high) << 40 | u64::from(low) << 8, count),
            Err(EmitError::Misaligned { address, .. }) => prop_assert!(address == count && count % 256 != 0),
            Err(error) => {
                prop_assert_eq!(error, EmitError::AddressTooHigh { address: count, bits: 48 });
                prop_assert!(count >> 48 != 0);
            }
        }
        let (opcode, dwords) = (Opcode(opcode), count as usize);
        match Header::type3(opcode, dwords, HeaderFlags::empty()) {
            Ok(header) => prop_assert_eq!(header.body_dwords(), Some(dwords)),
            Err(EmitError::NoValues { .. }) => prop_assert!(dwords == 0 && opcode != Opcode::NOP),
            Err(error) => {
                prop_assert_eq!(error, EmitError::BodyTooLong { opcode, body_dwords: dwords });
                prop_assert!(dwords > BODY_DWORDS_MAX);
            }
        }
        prop_assert_eq!(Register::new(small).map(Register::relative), Some(small).filter(|small| *small < 0x400));
        let mut words = [0; 16];
        prop_assert_eq!(Writer::new(&mut words).nop(dwords).is_ok(), (1..=16).contains(&dwords));
    }
}
