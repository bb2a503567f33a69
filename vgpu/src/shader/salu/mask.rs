//! Operations on EXEC (`s_*_saveexec`, `s_*_wrexec`) and moves by register number in m0 (`s_movrel*`).

use core::marker::PhantomData;

use zrt_isa::Opcode;

use super::access::{read, write};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::wave::{EXEC_LO, M0, VCC_LO, Wave};
use crate::simd::{Executor, Operation};

/// Computes the new EXEC from the source and the old EXEC.
trait MaskFunction {
    fn compute(s: u64, exec: u64) -> u64;
}

/// `SAVE`: the destination receives the old EXEC; otherwise the new one.
struct Shell<F, const WIDE: bool, const SAVE: bool>(PhantomData<F>);
impl<F: MaskFunction, const WIDE: bool, const SAVE: bool> Operation for Shell<F, WIDE, SAVE> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let source = read::<true>(wave, op, 0, WIDE);
        let before = if WIDE { wave.scalar_pair(EXEC_LO) } else { wave.exec() as u64 };
        let after = F::compute(source, before);
        let after = if WIDE { after } else { after as u32 as u64 };
        if WIDE {
            wave.set_scalar_pair(EXEC_LO, after);
        } else {
            wave.scalar[EXEC_LO as usize] = after as u32;
        }
        write(wave, op, WIDE, if SAVE { before } else { after });
        wave.scc = after != 0;
        Flow::Next
    }
}

macro_rules! mask_functions {
    (save { $($narrow:ident $wide:ident |$s:ident, $exec:ident| $value:expr;)* }
     write { $($write_narrow:ident $write_wide:ident |$ws:ident, $wexec:ident| $write_value:expr;)* }) => {
        $(struct $narrow;
        impl MaskFunction for $narrow {
            #[inline(always)]
            fn compute($s: u64, $exec: u64) -> u64 {
                $value
            }
        })*
        $(struct $write_narrow;
        impl MaskFunction for $write_narrow {
            #[inline(always)]
            fn compute($ws: u64, $wexec: u64) -> u64 {
                $write_value
            }
        })*

        /// The function of an operation of this file.
        pub(super) fn bind(opcode: Opcode, _special: bool) -> Option<Executor> {
            Some(match opcode {
                $(Opcode::$narrow => Executor::baseline::<Shell<$narrow, false, true>>(),
                Opcode::$wide => Executor::baseline::<Shell<$narrow, true, true>>(),)*
                $(Opcode::$write_narrow => Executor::baseline::<Shell<$write_narrow, false, false>>(),
                Opcode::$write_wide => Executor::baseline::<Shell<$write_narrow, true, false>>(),)*
                Opcode::SMovrelsB32 => Executor::baseline::<MoveRelative<true, false, false, false>>(),
                Opcode::SMovrelsB64 => Executor::baseline::<MoveRelative<true, false, false, true>>(),
                Opcode::SMovreldB32 => Executor::baseline::<MoveRelative<false, true, false, false>>(),
                Opcode::SMovreldB64 => Executor::baseline::<MoveRelative<false, true, false, true>>(),
                Opcode::SMovrelsd2B32 => Executor::baseline::<MoveRelative<true, true, true, false>>(),
                _ => return None,
            })
        }
    };
}

mask_functions! {
save {
    SAndSaveexecB32 SAndSaveexecB64 |s, exec| s & exec;
    SOrSaveexecB32 SOrSaveexecB64 |s, exec| s | exec;
    SXorSaveexecB32 SXorSaveexecB64 |s, exec| s ^ exec;
    SNandSaveexecB32 SNandSaveexecB64 |s, exec| !(s & exec);
    SNorSaveexecB32 SNorSaveexecB64 |s, exec| !(s | exec);
    SXnorSaveexecB32 SXnorSaveexecB64 |s, exec| !(s ^ exec);
    SAndNot0SaveexecB32 SAndNot0SaveexecB64 |s, exec| !s & exec;
    SOrNot0SaveexecB32 SOrNot0SaveexecB64 |s, exec| !s | exec;
    SAndNot1SaveexecB32 SAndNot1SaveexecB64 |s, exec| s & !exec;
    SOrNot1SaveexecB32 SOrNot1SaveexecB64 |s, exec| s | !exec;

}
write {
    SAndNot0WrexecB32 SAndNot0WrexecB64 |s, exec| !s & exec;
    SAndNot1WrexecB32 SAndNot1WrexecB64 |s, exec| s & !exec;
}
}

/// A register number plus an offset; `None` beyond vcc.
fn relative(register: u8, offset: u32) -> Option<u8> {
    let index = (register as u32).checked_add(offset)?;
    (index <= VCC_LO as u32 + 1).then_some(index as u8)
}

/// s_movrels/d/sd_2: register numbers offset by m0 (`SPLIT`: source by bits 9:0, destination by bits 25:16). A
/// source beyond the registers reads s0; a destination beyond them is not written.
struct MoveRelative<const SOURCE: bool, const DESTINATION: bool, const SPLIT: bool, const WIDE: bool>;
impl<const SOURCE: bool, const DESTINATION: bool, const SPLIT: bool, const WIDE: bool> Operation
    for MoveRelative<SOURCE, DESTINATION, SPLIT, WIDE>
{
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let offset = wave.scalar[M0 as usize];
        let (source_offset, destination_offset) =
            if SPLIT { (offset & 0x3FF, offset >> 16 & 0x3FF) } else { (offset, offset) };
        let mut moved = *op;
        if let (true, Source::Scalar(code)) = (SOURCE, op.sources[0]) {
            moved.sources[0] = Source::Scalar(relative(code, source_offset).unwrap_or(0));
        }
        let value = read::<true>(wave, &moved, 0, WIDE);
        if DESTINATION {
            match relative(op.destination, destination_offset) {
                Some(destination) => moved.destination = destination,
                None => return Flow::Next,
            }
        }
        write(wave, &moved, WIDE, value);
        Flow::Next
    }
}
