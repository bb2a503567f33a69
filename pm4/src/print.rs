//! A stream as text: one line per packet, and one more for each register that has fields.
//!
//! Used by traces, reports and the fuzz target. Contract: any words print; nothing panics.

use crate::field::{print_fields, reserved_masks};
use crate::opcode::Opcode;
use crate::packet::{self, Repr};
use crate::reader::{Item, ItemKind, Reader};
use crate::registers::Register;
use core::fmt;

/// `Display` of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a>(
    /// The stream.
    pub &'a [u32],
);

impl fmt::Display for Item<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = match self.kind {
            ItemKind::Known(header) => header,
            ItemKind::Unknown(header) => {
                return write!(formatter, "{} ({} dwords, not decoded)", header.opcode(), self.words.len());
            }
            ItemKind::Filler => return formatter.write_str("filler"),
        };
        match header.opcode() {
            Opcode::NOP => packet::nop::Packet::new_unchecked(self.words).fmt(formatter),
            Opcode::SET_SH_REG => packet::set_sh_reg::Packet::new_unchecked(self.words).fmt(formatter),
            Opcode::DISPATCH_DIRECT => {
                packet::dispatch_direct::Packet::new_unchecked(self.words).fmt(formatter)
            }
            Opcode::ACQUIRE_MEM => packet::acquire_mem::Packet::new_unchecked(self.words).fmt(formatter),
            Opcode::RELEASE_MEM => packet::release_mem::Packet::new_unchecked(self.words).fmt(formatter),
            Opcode::WAIT_REG_MEM => packet::wait_reg_mem::Packet::new_unchecked(self.words).fmt(formatter),
            Opcode::WRITE_DATA => packet::write_data::Packet::new_unchecked(self.words).fmt(formatter),
            Opcode::COPY_DATA => packet::copy_data::Packet::new_unchecked(self.words).fmt(formatter),
            Opcode::EVENT_WRITE => packet::event_write::Packet::new_unchecked(self.words).fmt(formatter),
            Opcode::INDIRECT_BUFFER => {
                packet::indirect_buffer::Packet::new_unchecked(self.words).fmt(formatter)
            }
            opcode => write!(formatter, "{opcode}"),
        }
    }
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in Reader::new(self.0) {
            let item = match item {
                Ok(item) => item,
                Err(error) => return writeln!(formatter, "{:05x}: ({})", error.offset, error.error),
            };
            let first = item.words.first().copied().unwrap_or(0);
            write!(formatter, "{:05x}: {first:08x} {item}", item.offset)?;
            match item.parse() {
                Ok(Some(Repr::SetShReg(run))) => {
                    writeln!(formatter)?;
                    print_registers(formatter, run.first, run.values)?;
                }
                Ok(_) => writeln!(formatter)?,
                Err(error) => writeln!(formatter, " ({error})")?,
            }
        }
        Ok(())
    }
}

fn print_registers(formatter: &mut fmt::Formatter<'_>, first: Register, values: &[u32]) -> fmt::Result {
    for (relative, value) in (first.relative()..).zip(values) {
        let Some(info) = Register::new(relative).and_then(Register::info) else { continue };
        if info.fields.is_empty() || *value == 0 {
            continue;
        }
        write!(formatter, "         {}", info.name)?;
        print_fields(formatter, info.fields, &reserved_masks::<1>(info.fields), &[*value])?;
        writeln!(formatter)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_prints() {
        let words =
            [0xc001_7600, 0x228, 0x30, 0xc000_4600, 0x407, 0xc000_fe00, 1, 0xc000_4600, 0x1407, 0xc003_1500];
        // RSRC1 has fields and none is set; USER_DATA_0 has no fields.
        let words = [&[0xc002_7600, 0x212, 0, 0x84, 0xc001_7600, 0x240, 5], &words[..]].concat();
        assert_eq!(
            Listing(&words).to_string(),
            "\
00000: c0027600 SET_SH_REG COMPUTE_PGM_RSRC1=0x0 COMPUTE_PGM_RSRC2=0x84
         COMPUTE_PGM_RSRC2 USER_SGPR=0x2 TGID_X_EN
00004: c0017600 SET_SH_REG COMPUTE_USER_DATA_0=0x5
00007: c0017600 SET_SH_REG COMPUTE_PGM_RSRC3=0x30
         COMPUTE_PGM_RSRC3 INST_PREF_SIZE=0x3
0000a: c0004600 EVENT_WRITE EVENT_TYPE=0x7 EVENT_INDEX=0x4
0000c: c000fe00 opcode 0xfe (2 dwords, not decoded)
0000e: c0004600 EVENT_WRITE EVENT_TYPE=0x7 EVENT_INDEX=0x4 reserved[0]=0x1000 \
(body dword 0 of EVENT_WRITE has reserved bits 0x1000 set)
00010: (the packet needs 5 dwords and 1 are there)
"
        );
    }
}
