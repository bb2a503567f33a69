//! Loads of transposed tiles for matrix operations, and loads and stores of blocks of registers.
//!
//! Contract. `global_load_tr_b128` and `_b64` (wave32; a **model**, because it is not documented which lane's
//! address belongs to which part of the tile): lane `l` addresses 16 (8) bytes of memory: row `l % 16`, columns
//! `8 · (l / 16)` to 7 further, of a tile of 16 × 16 elements of 2 (1) bytes. Lane `l` receives the elements of
//! column `l % 16`, at the positions that the layout of A and B assigns to inner index = row (instruction set
//! reference §7.3). All of EXEC must be set; an inactive lane reads nothing and its part of the tile is zero.
//! `*_load_block` and `*_store_block`: bit `i` of m0 moves register `i` of 32 from or to byte `4 · i` after the
//! address. Cost: 1 µs for a tile, 10 ns per active lane and register of a block.

use std::marker::PhantomData;

use zrt_isa::Opcode;

use crate::shader::address::{AddressMode, vector_source};
use crate::shader::lane_access::{active, moved, read_lane, write_lane, write_lanes};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::valu::matrix::shape::{SIDE, operand_place};
use crate::shader::wave::{LANES, M0, Wave};
use crate::simd::{Executor, Operation};

/// Elements of a row that one lane reads.
const RUN: usize = 8;
/// Registers of a block.
const BLOCK_REGISTERS: usize = 32;

/// The function of a tile or block access with an address mode.
pub(crate) fn function<A: AddressMode>(opcode: Opcode) -> Option<Executor> {
    Some(match opcode {
        Opcode::GlobalLoadTrB128 => Executor::baseline::<LoadTransposed<A, 2>>(),
        Opcode::GlobalLoadTrB64 => Executor::baseline::<LoadTransposed<A, 1>>(),
        Opcode::GlobalLoadBlock | Opcode::ScratchLoadBlock => Executor::baseline::<LoadBlock<A>>(),
        Opcode::GlobalStoreBlock | Opcode::ScratchStoreBlock => Executor::baseline::<StoreBlock<A>>(),
        _ => return None,
    })
}

/// `BYTES`: size of an element.
struct LoadTransposed<A, const BYTES: usize>(PhantomData<A>);
impl<A: AddressMode, const BYTES: usize> Operation for LoadTransposed<A, BYTES> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        let mut tile = [[0u32; SIDE]; SIDE];
        for lane in active(exec) {
            let mut run = [0; 2 * RUN];
            let run = &mut run[..BYTES * RUN];
            if let Err(kind) = read_lane::<A>(wave, op, machine, lane, run) {
                return machine.fail_lane(kind, lane);
            }
            for (index, element) in run.chunks_exact(BYTES).enumerate() {
                let value = element.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
                tile[lane % SIDE][RUN * (lane / SIDE) + index] = value;
            }
        }
        let bits = 8 * BYTES;
        let mut rows = [[0; LANES]; 4];
        for (k, values) in tile.iter().enumerate() {
            for (line, value) in values.iter().enumerate() {
                let place = operand_place(bits, SIDE, line, k, false);
                rows[place.register(bits)][place.lane] |= value << place.shift(bits);
            }
        }
        for (index, row) in rows.iter().enumerate().take(2 * BYTES) {
            write_lanes(wave, op.destination as usize + index, exec, row);
        }
        Flow::Next
    }
}

struct LoadBlock<A>(PhantomData<A>);
impl<A: AddressMode> Operation for LoadBlock<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let (exec, mask) = (wave.exec(), wave.scalar[M0 as usize]);
        let mut rows = [[0; LANES]; BLOCK_REGISTERS];
        for index in active(mask) {
            let op = moved(op, index);
            for lane in active(exec) {
                let mut bytes = [0; 4];
                if let Err(kind) = read_lane::<A>(wave, &op, machine, lane, &mut bytes) {
                    return machine.fail_lane(kind, lane);
                }
                rows[index][lane] = u32::from_le_bytes(bytes);
            }
        }
        for index in active(mask) {
            write_lanes(wave, op.destination as usize + index, exec, &rows[index]);
        }
        Flow::Next
    }
}

struct StoreBlock<A>(PhantomData<A>);
impl<A: AddressMode> Operation for StoreBlock<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let (exec, mask) = (wave.exec(), wave.scalar[M0 as usize]);
        let data = vector_source(op, 1);
        for index in active(mask) {
            let op = moved(op, index);
            for lane in active(exec) {
                let bytes = wave.vector[(data + index) & 255].0[lane].to_le_bytes();
                if let Err(kind) = write_lane::<A>(wave, &op, machine, lane, &bytes) {
                    return machine.fail_lane(kind, lane);
                }
            }
        }
        Flow::Next
    }
}
