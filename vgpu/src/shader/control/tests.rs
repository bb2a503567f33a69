//! Control instructions one by one; the words are llvm-mc 19's. s4 and s5 are destinations, s6 and s7 sources.

use zrt_isa::decode;

use super::*;
use crate::shader::machine::{Barrier, Stop, with_machine};
use crate::shader::valu::testing::{assert_same, wave};
use crate::shader::wave::vector_bank;

fn translated(words: &[u32]) -> Option<MicroOp> {
    translate(&decode(words).unwrap())
}

/// Runs an instruction. Returns what follows, and why it stopped.
fn run_in(wave: &mut Wave, words: &[u32], prepare: impl FnOnce(&mut Machine<'_>)) -> (Flow, Option<Stop>) {
    let op = translated(words).unwrap();
    with_machine(|machine| {
        prepare(machine);
        let flow = op.executor.call(wave, &op, machine);
        machine.lds.bytes = 0;
        (flow, machine.stop)
    })
}

fn flow_of(words: &[u32]) -> Flow {
    let mut after = wave();
    let (flow, stop) = run_in(&mut after, words, |_| {});
    assert_eq!(stop, None);
    assert_same(&after, &wave(), &format!("{words:x?}"));
    flow
}

#[test]
fn branches_look_at_their_condition_only() {
    // s_cbranch_scc0, scc1, vccz, vccnz, execz, execnz
    let opcodes = [0xBFA1_0003, 0xBFA2_0003, 0xBFA3_0003, 0xBFA4_0003, 0xBFA5_0003, 0xBFA6_0003];
    for state in 0..32u32 {
        let [scc, vcc_low, vcc_high, exec_low, exec_high] = [0, 1, 2, 3, 4].map(|bit| state >> bit & 1 != 0);
        for is_wave64 in [false, true] {
            let mut start = wave();
            start.other_half = is_wave64.then(vector_bank);
            start.scc = scc;
            for (code, is_set) in [(106, vcc_low), (107, vcc_high), (126, exec_low), (127, exec_high)] {
                start.scalar[code] = if is_set { 1 << 31 } else { 0 };
            }
            let (vcc, exec) = (vcc_low || is_wave64 && vcc_high, exec_low || is_wave64 && exec_high);
            for (word, taken) in opcodes.into_iter().zip([!scc, scc, !vcc, vcc, !exec, exec]) {
                let instruction = decode(&[word]).unwrap();
                let mut op = translate(&instruction).unwrap();
                if let Some(executor) = wave64_branch(instruction.opcode).filter(|_| is_wave64) {
                    op.executor = executor;
                }
                op.immediate = 77;
                let mut after = start.clone();
                let flow = with_machine(|machine| op.executor.call(&mut after, &op, machine));
                let expected = if taken { (Flow::Jump, 77) } else { (Flow::Next, start.next) };
                assert_eq!((flow, after.next), expected, "{word:#x} in state {state:#b}, wave64 {is_wave64}");
            }
        }
    }
    assert_eq!(wave64_branch(Opcode::SCbranchScc0).map(|_| ()), None);
}

#[test]
fn an_instruction_has_the_successors_that_its_kind_has() {
    let of = |word: u32| successors(&decode(&[word]).unwrap());
    // s_branch -2, 3; the six conditional ones with 3; s_call_b64 3
    assert_eq!(of(0xBFA0_FFFE), Successors::Target(-2));
    assert_eq!(of(0xBFA0_0003), Successors::Target(3));
    for word in 0xBFA1..=0xBFA6 {
        assert_eq!(of(word << 16 | 3), Successors::NextAndTarget(3), "{word:#x}");
        assert_eq!(of(word << 16 | 0x8000), Successors::NextAndTarget(-0x8000));
    }
    assert_eq!(of(0xBA04_0003), Successors::NextAndTarget(3));
    // s_setpc_b64, s_rfe_b64, s_endpgm, s_endpgm_saved, s_code_end
    for word in [0xBE80_4806, 0xBE80_4A06, 0xBFB0_0000, 0xBFB1_0000, 0xBF9F_0000] {
        assert_eq!(of(word), Successors::Nowhere, "{word:#x}");
    }
    // s_swappc_b64, s_getpc_b64, s_nop, s_sethalt 1, s_trap, s_barrier_wait
    for word in [0xBE84_4906, 0xBE84_4700, 0xBF80_0000, 0xBF82_0001, 0xBF90_0002, 0xBF94_FFFF] {
        assert_eq!(of(word), Successors::Next, "{word:#x}");
    }
}

#[test]
fn waits_sleeps_and_ends_have_their_flows() {
    // s_nop 3, s_wait_loadcnt, s_wait_storecnt, s_wait_storecnt_dscnt, s_wait_idle, s_wait_alu, s_sethalt 0 and 2,
    // s_setkill 0, s_sleep 0, s_sendmsg MSG_DEALLOC_VGPRS
    for word in [
        0xBF80_0003,
        0xBFC0_0000,
        0xBFC1_0000,
        0xBFC9_0000,
        0xBF8A_0000,
        0xBF88_0000,
        0xBF82_0000,
        0xBF82_0002,
        0xBF81_0000,
        0xBF83_0000,
        0xBFB6_0003,
    ] {
        assert_eq!(flow_of(&[word]), Flow::Next, "{word:#x}");
    }
    // s_sleep 1 and 64, s_sleep_var s4
    for word in [0xBF83_0001, 0xBF83_0040, 0xBE80_5804] {
        assert_eq!(flow_of(&[word]), Flow::Yield, "{word:#x}");
    }
    // s_endpgm, s_setkill 1; s_icache_inv
    for (word, flow) in [(0xBFB0_0000, Flow::End), (0xBF81_0001, Flow::End), (0xBFBC_0000, Flow::Refetch)] {
        assert_eq!(flow_of(&[word]), flow, "{word:#x}");
    }
    // s_trap 0x1ff: the number has eight bits; s_sethalt 1, s_sendmsghalt 1, s_code_end
    for (word, kind) in [
        (0xBF90_01FF, WaveFaultKind::Trap(255)),
        (0xBF82_0001, WaveFaultKind::Halted),
        (0xBFB7_0001, WaveFaultKind::Halted),
        (0xBF9F_0000, WaveFaultKind::PastEnd),
    ] {
        let outcome = run_in(&mut wave(), &[word], |_| {});
        assert_eq!(outcome, (Flow::Fault, Some(Stop { kind, lane: None })), "{word:#x}");
    }
}

#[test]
fn what_user_code_may_not_do_is_not_translated() {
    // s_rfe_b64, s_endpgm_saved, s_sendmsg MSG_INTERRUPT, s_sendmsg_rtn_b32 and _b64 MSG_RTN_GET_DOORBELL;
    // s_barrier_signal -2 and m0, s_barrier_signal_isfirst m0, s_barrier_wait -2 and 1, s_get_barrier_state m0,
    // s_barrier_leave; s_setreg_b32 STATUS, s_getreg_b32 of 4 (STATE_PRIV) and 19 (TRAP_CTRL)
    for word in [
        0xBE80_4A06,
        0xBFB1_0000,
        0xBFB6_0001,
        0xBE84_4C80,
        0xBE84_4D80,
        0xBE80_4EC2,
        0xBE80_4E7D,
        0xBE80_4F7D,
        0xBF94_FFFE,
        0xBF94_0001,
        0xBE84_507D,
        0xBF95_0000,
        0xB904_F802,
        0xB884_F804,
        0xB884_F813,
    ] {
        assert!(translated(&[word]).is_none(), "{word:#x}");
    }
}

/// Addresses count from the instruction after. The operation stands `code_dword` dwords from the code's first one.
#[test]
fn calls_and_jumps_keep_the_address_after_them() {
    const CODE: u64 = 0x1_0000_0004;
    // The destination overlaps the source: s_swappc_b64 s[6:7], s[6:7].
    for (word, dword, flow, pair, target) in [
        // s_getpc_b64 s[4:5]
        (0xBE84_4700, 2i32, Flow::Next, Some((4, CODE + 12)), None),
        (0xBE84_4700, -3, Flow::Next, Some((4, CODE - 8)), None),
        // s_call_b64 s[4:5], 3
        (0xBA04_0003, 5, Flow::Jump, Some((4, CODE + 24)), None),
        // s_swappc_b64 s[4:5], s[6:7] and s[6:7], s[6:7]; s_setpc_b64 s[6:7]
        (0xBE84_4906, 0, Flow::Indirect, Some((4, CODE + 4)), Some(0x7_8899_AABC)),
        (0xBE86_4906, 0, Flow::Indirect, Some((6, CODE + 4)), Some(0x7_8899_AABC)),
        (0xBE80_4806, 0, Flow::Indirect, None, Some(0x7_8899_AABC)),
    ] {
        let mut op = translated(&[word]).unwrap();
        (op.code_dword, op.dword_count) = (dword as u32, 1);
        let mut start = wave();
        start.set_scalar_pair(6, 0x7_8899_AABC);
        let (mut after, mut expected) = (start.clone(), start);
        if flow == Flow::Jump {
            op.immediate = 9;
            expected.next = 9;
        }
        if let Some((register, va)) = pair {
            (expected.scalar[register], expected.scalar[register + 1]) = (va as u32, (va >> 32) as u32);
        }
        with_machine(|machine| {
            machine.code_va = CODE;
            assert_eq!(op.executor.call(&mut after, &op, machine), flow, "{word:#x}");
            assert_eq!(machine.jump_va, target.unwrap_or(0), "{word:#x}");
        });
        assert_eq!(after.next, expected.next);
        assert_same(&after, &expected, &format!("{word:#x}"));
    }
    let mut far = blank(Executor::baseline::<FarBranch>());
    far.wide = [0x8899_AABC, 0x7, 0];
    with_machine(|machine| {
        assert_eq!(far.executor.call(&mut wave(), &far, machine), Flow::Indirect);
        assert_eq!(machine.jump_va, 0x7_8899_AABC);
    });
}

/// Valid 0, members 10:4, signals 22:16 (instruction set reference §4.2).
#[test]
fn the_barrier_is_signalled_waited_for_and_read() {
    let mut wave = wave();
    let mut barrier = Barrier::new(3);
    // s_get_barrier_state s4, -1; s_barrier_signal -1; s_barrier_signal_isfirst -1; s_barrier_wait -1
    let (state, signal, first, wait) = (0xBE84_50C1, 0xBE80_4EC1, 0xBE80_4FC1, 0xBF94_FFFF);
    let mut step = |word: u32, index: u32| {
        wave.index_in_group = index;
        let op = translated(&[word]).unwrap();
        let flow = with_machine(|machine| {
            std::mem::swap(machine.barrier, &mut barrier);
            let flow = op.executor.call(&mut wave, &op, machine);
            std::mem::swap(machine.barrier, &mut barrier);
            flow
        });
        (flow, wave.scc, wave.scalar[4])
    };
    assert_eq!(step(state, 0), (Flow::Next, false, 0x00_0031));
    assert_eq!(step(first, 2), (Flow::Next, true, 0x31));
    assert_eq!(step(signal, 1), (Flow::Next, true, 0x31), "a plain signal leaves scc");
    assert_eq!(step(state, 0), (Flow::Next, true, 0x2_0031));
    assert_eq!(step(wait, 1).0, Flow::Barrier);
    assert_eq!(step(first, 0), (Flow::Next, false, 0x2_0031));
    assert_eq!(step(state, 0).2, 0x31, "complete");
    assert_eq!(
        [1, 1, 0, 2].map(|index| step(wait, index).0),
        [Flow::Next, Flow::Barrier, Flow::Next, Flow::Next]
    );
    barrier.leave(1);
    let mut two = Barrier::new(3);
    two.leave(1);
    assert_eq!(barrier, two);
}

/// A group of two waves: 16 units of 512 bytes of LDS, scratch, and an id.
fn with_resources(machine: &mut Machine<'_>) {
    machine.lds.bytes = 8192;
    machine.scratch.wave_va = 0x12_3456_7800;
    machine.hardware_id = 0x0005_4321;
}

#[test]
fn registers_of_the_wave_are_read_by_field() {
    let mut start = wave();
    (start.mode, start.scc, start.vector_count) = (0x0180_00F5, true, 96);
    (start.scalar[106], start.scalar[107], start.scalar[126]) = (0, 1, 1);
    let mut wide = start.clone();
    wide.other_half = Some(vector_bank());
    for (words, narrow_value, wide_value) in [
        // hwreg(HW_REG_MODE), (HW_REG_MODE, 4, 4), (HW_REG_MODE, 24, 1)
        (0xB884_F801, 0x0180_00F5, 0x0180_00F5),
        (0xB884_1901, 0xF, 0xF),
        (0xB884_0601, 1, 1),
        // HW_REG_STATUS: scc 0, execz 9, vccz 10, wave64 29; (HW_REG_STATUS, 9, 2)
        (0xB884_F802, 1 | 1 << 10, 1 | 1 << 29),
        (0xB884_0A42, 2, 0),
        // HW_REG_GPR_ALLOC: 12 blocks of 8, or 24 of 4, less one; HW_REG_LDS_ALLOC: 16 units
        (0xB884_F805, 11 << 12, 23 << 12),
        (0xB884_F806, 16 << 12, 16 << 12),
        // Scratch base, low and high; HW_REG_HW_ID1, (HW_REG_HW_ID1, 8, 2); HW_REG_HW_ID2: micro-engine 1
        (0xB884_F814, 0x3456_7800, 0x3456_7800),
        (0xB884_F815, 0x12, 0x12),
        (0xB884_F817, 0x5_4321, 0x5_4321),
        (0xB884_0A17, 3, 3),
        (0xB884_F818, 0x100, 0x100),
    ] {
        for (start, value) in [(&start, narrow_value), (&wide, wide_value)] {
            let (mut after, mut expected) = (start.clone(), start.clone());
            expected.scalar[4] = value;
            assert_eq!(run_in(&mut after, &[words], with_resources).0, Flow::Next);
            assert_same(&after, &expected, &format!("{words:#x}"));
        }
    }
    // No lane is active, and vcc is not zero.
    (start.scalar[106], start.scalar[126], start.scc) = (2, 0, false);
    run_in(&mut start, &[0xB884_F802], with_resources);
    assert_eq!(start.scalar[4], 1 << 9);
    // s_getreg_b32 null
    run_in(&mut start, &[0xB8FC_F801], with_resources);
    assert_eq!(start.scalar[124], wave().scalar[124]);
}

#[test]
fn mode_is_written_by_field() {
    for (words, expected) in [
        // s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s4; hwreg(HW_REG_MODE), s4
        (&[0xB904_1901][..], 0x0180_0095),
        (&[0xB904_F801], 0x1234_5679),
        // s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0xabcd; s_round_mode 5; s_denorm_mode 0x13
        (&[0xB980_1801, 0xABCD], 0x0180_00CD),
        (&[0xBF91_0005], 0x0180_00C5),
        (&[0xBF92_0013], 0x0180_0035),
    ] {
        let mut start = wave();
        (start.mode, start.scalar[4]) = (0x0180_00C5, 0x1234_5679);
        let mut after = start.clone();
        assert_eq!(run_in(&mut after, words, |_| {}), (Flow::Next, None));
        assert_eq!(after.mode, expected, "{words:x?}");
        assert_same(&after, &Wave { mode: expected, ..start }, &format!("{words:x?}"));
    }
}

/// The clock counts instructions if runs must be reproducible.
#[test]
fn clocks_are_read_in_two_dwords() {
    let clock = crate::shader::machine::Clock::new(true);
    clock.advance(0x3_8000_0000);
    clock.advance(7);
    let ticks = 0x3_8000_0007u64;
    let cycles = 23 * ticks;
    for (word, values) in [
        // s_sendmsg_rtn_b32 and _b64 MSG_RTN_GET_REALTIME; SHADER_CYCLES, low and high
        (0xBE84_4C83, [ticks as u32, 0x55]),
        (0xBE84_4D83, [ticks as u32, 3]),
        (0xB884_F81D, [cycles as u32, 0x55]),
        (0xB884_F81E, [(cycles >> 32) as u32, 0x55]),
    ] {
        let mut wave = wave();
        wave.scalar[5] = 0x55;
        let op = translated(&[word]).unwrap();
        with_machine(|machine| {
            let mut machine = Machine {
                memory: &mut *machine.memory,
                lds: &mut *machine.lds,
                barrier: &mut *machine.barrier,
                clock: &clock,
                scratch: machine.scratch,
                hardware_id: 0,
                code_va: 0,
                jump_va: 0,
                stop: None,
            };
            assert_eq!(op.executor.call(&mut wave, &op, &mut machine), Flow::Next);
        });
        assert_eq!(wave.scalar[4..6], values, "{word:#x}");
    }
}
