//! Writes units of `.debug_line`.

/// DW_FORM_string, DW_FORM_flag, DW_FORM_udata, DW_FORM_data1, DW_FORM_line_strp, DW_FORM_block1.
pub const STRING: u8 = 0x08;
pub const FLAG: u8 = 0x0C;
pub const UDATA: u8 = 0x0F;
pub const DATA1: u8 = 0x0B;
pub const LINE_STRP: u8 = 0x1F;
pub const BLOCK1: u8 = 0x0A;

/// A count in ULEB128.
pub fn uleb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7F) as u8;
        value >>= 7;
        bytes.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return bytes;
        }
    }
}

/// A table of DWARF 5: one field of form `form` per entry, with `count` as the stated number of entries.
pub fn table(form: u8, count: u64, entries: &[u8]) -> Vec<u8> {
    // One field: DW_LNCT_path.
    [&[1, 1, form][..], &uleb(count), entries].concat()
}

/// A unit of DWARF 5 with these two tables and this program.
pub fn unit_5(directories: &[u8], files: &[u8], program: &[u8]) -> Vec<u8> {
    unit(5, &[directories, files].concat(), program)
}

/// A unit of a version with these tables and this program: minimum instruction length 1 byte, line base -5, range
/// 14, opcode base 13.
pub fn unit(version: u16, tables: &[u8], program: &[u8]) -> Vec<u8> {
    let mut head = vec![1];
    if version >= 4 {
        head.push(1);
    }
    head.extend_from_slice(&[1, 0xFB, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    head.extend_from_slice(tables);
    let mut body: Vec<u8> = version.to_le_bytes().into();
    if version >= 5 {
        body.extend_from_slice(&[8, 0]);
    }
    body.extend_from_slice(&(head.len() as u32).to_le_bytes());
    body.extend_from_slice(&head);
    body.extend_from_slice(program);
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// DW_LNE_set_address.
pub fn set_address(address: u64) -> Vec<u8> {
    [&[0, 9, 2][..], &address.to_le_bytes()].concat()
}

/// DW_LNE_end_sequence.
pub const END: [u8; 3] = [0, 1, 1];
/// The special opcode that advances the address by four bytes and the line by one, and makes a row.
pub const NEXT_LINE: u8 = 13 + 4 * 14 + 5 + 1;
