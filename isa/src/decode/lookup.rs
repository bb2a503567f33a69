//! Opcode number → operation: one table per encoding, built at compile time from the operation rows.
//!
//! Contract: constant data; a number outside the table is an unknown operation.

use crate::encoding::Encoding;
use crate::opcode::{OPCODES, Opcode};

/// Operations by number.
pub(super) struct Table<const N: usize>([Option<Opcode>; N]);

impl<const N: usize> Table<N> {
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<Opcode> {
        self.0.get(number as usize).copied().flatten()
    }

    const fn of(encoding: Encoding) -> Self {
        let mut table = [None; N];
        fill(&mut table, encoding, 0);
        Self(table)
    }
}

/// Enters every operation of `encoding` at its number plus `offset`.
const fn fill<const N: usize>(table: &mut [Option<Opcode>; N], encoding: Encoding, offset: usize) {
    let mut index = 0;
    while index < OPCODES.len() {
        let opcode = OPCODES[index];
        let row = opcode.operation();
        if row.encoding as u8 == encoding as u8 {
            table[row.number as usize + offset] = Some(opcode);
        }
        index += 1;
    }
}

/// The VOP3 space: VOPC at 0, VOP2 at 256, VOP1 at 384, its own operations above (instruction set reference §1). What
/// has no such form is there too: the decoder asks for the form.
const fn vop3() -> Table<1024> {
    let mut table = [None; 1024];
    fill(&mut table, Encoding::Vopc, 0);
    fill(&mut table, Encoding::Vop2, 256);
    fill(&mut table, Encoding::Vop1, 384);
    fill(&mut table, Encoding::Vop3, 0);
    fill(&mut table, Encoding::Vop3sd, 0);
    Table(table)
}

pub(super) static SOP1: Table<256> = Table::of(Encoding::Sop1);
pub(super) static SOP2: Table<128> = Table::of(Encoding::Sop2);
pub(super) static SOPC: Table<128> = Table::of(Encoding::Sopc);
pub(super) static SOPK: Table<32> = Table::of(Encoding::Sopk);
pub(super) static SOPP: Table<128> = Table::of(Encoding::Sopp);
pub(super) static SMEM: Table<64> = Table::of(Encoding::Smem);
pub(super) static VOP1: Table<128> = Table::of(Encoding::Vop1);
pub(super) static VOP2: Table<64> = Table::of(Encoding::Vop2);
pub(super) static VOPC: Table<256> = Table::of(Encoding::Vopc);
pub(super) static VOP3: Table<1024> = vop3();
pub(super) static VOP3P: Table<128> = Table::of(Encoding::Vop3p);
pub(super) static VDS: Table<256> = Table::of(Encoding::Vds);
pub(super) static VFLAT: Table<256> = Table::of(Encoding::Vflat);
pub(super) static VSCRATCH: Table<256> = Table::of(Encoding::Vscratch);
pub(super) static VGLOBAL: Table<256> = Table::of(Encoding::Vglobal);
pub(super) static VBUFFER: Table<256> = Table::of(Encoding::Vbuffer);

/// The `X` operations of VOPD; `Y` has these and [`dual_y`]'s own (instruction set reference §6).
#[inline]
fn dual_common(number: u32) -> Option<Opcode> {
    Some(match number {
        0 => Opcode::VFmacF32,
        1 => Opcode::VFmaakF32,
        2 => Opcode::VFmamkF32,
        3 => Opcode::VMulF32,
        4 => Opcode::VAddF32,
        5 => Opcode::VSubF32,
        6 => Opcode::VSubrevF32,
        7 => Opcode::VMulDx9ZeroF32,
        8 => Opcode::VMovB32,
        9 => Opcode::VCndmaskB32,
        10 => Opcode::VMaxNumF32,
        11 => Opcode::VMinNumF32,
        _ => return None,
    })
}

/// The first operation of a VOPD pair.
#[inline]
pub(super) fn dual_x(number: u32) -> Option<Opcode> {
    dual_common(number)
}

/// The second operation of a VOPD pair.
#[inline]
pub(super) fn dual_y(number: u32) -> Option<Opcode> {
    match number {
        16 => Some(Opcode::VAddNcU32),
        17 => Some(Opcode::VLshlrevB32),
        18 => Some(Opcode::VAndB32),
        _ => dual_common(number),
    }
}
