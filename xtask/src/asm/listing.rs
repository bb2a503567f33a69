//! Reads what `llvm-objdump-19 -d` and `llvm-dwarfdump-19 --debug-line` print.
//!
//! Contract: lines in another form are skipped; the callers refuse an empty result.

use zrt_isa::zrt::Line;

/// One instruction as printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedInstruction {
    /// Mnemonic; of a pair, the first one.
    pub mnemonic: String,
    /// Everything after the mnemonic.
    pub operands: String,
    /// Bytes from the start of the code.
    pub code_offset: u32,
}

/// A range of registers of one kind, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRange {
    /// `v` or `s`.
    pub kind: char,
    /// First register.
    pub first: u16,
    /// Last register.
    pub last: u16,
}

/// The instructions of a disassembly.
pub fn instructions(text: &str) -> Vec<ListedInstruction> {
    text.lines()
        .filter_map(|line| {
            let (code, comment) = line.split_once("// ")?;
            let code_offset = u32::from_str_radix(comment.split(':').next()?.trim(), 16).ok()?;
            let code = code.trim();
            let (mnemonic, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
            Some(ListedInstruction {
                mnemonic: mnemonic.into(),
                operands: operands.trim().into(),
                code_offset,
            })
        })
        .collect()
}

/// The line table, one entry per change of source line, in ascending order of code.
pub fn lines(text: &str, code_bytes: u32) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in text.lines().filter(|row| row.starts_with("0x") && !row.contains("end_sequence")) {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let parsed = match fields.as_slice() {
            [address, line, _, file, ..] => (
                u32::from_str_radix(address.trim_start_matches("0x"), 16),
                line.parse::<u32>(),
                file.parse::<u32>(),
            ),
            _ => continue,
        };
        let (Ok(code_offset), Ok(line), Ok(file @ 1..)) = parsed else { continue };
        // A later row for the same address is the innermost macro's.
        if lines.last().is_some_and(|last| last.code_offset == code_offset) {
            lines.pop();
        }
        let same_place = lines.last().is_some_and(|last| (last.file, last.line) == (file - 1, line));
        if code_offset < code_bytes && !same_place {
            lines.push(Line { code_offset, file: file - 1, line });
        }
    }
    lines
}

impl ListedInstruction {
    /// Operands between commas outside of brackets; modifiers stay with the last one.
    pub fn operand_list(&self) -> Vec<&str> {
        let mut parts = Vec::new();
        let (mut start, mut depth) = (0, 0);
        for (index, letter) in self.operands.char_indices() {
            match letter {
                '[' => depth += 1,
                ']' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(self.operands[start..index].trim());
                    start = index + 1;
                }
                _ => {}
            }
        }
        parts.push(self.operands[start..].trim());
        parts
    }

    /// True for instructions that the vector ALU executes.
    pub fn is_vector_alu(&self) -> bool {
        self.mnemonic.starts_with("v_")
    }
}

/// Registers named in a piece of text: `v3`, `s[4:5]`, `-v7`, `|v7|`.
pub fn registers(text: &str) -> Vec<RegisterRange> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut index = 0;
    while index < bytes.len() {
        let kind = bytes[index] as char;
        let starts_word =
            index == 0 || !(bytes[index - 1].is_ascii_alphanumeric() || bytes[index - 1] == b'_');
        index += 1;
        if !starts_word || !matches!(kind, 'v' | 's') {
            continue;
        }
        let rest = &text[index..];
        let (first, last) = match rest.strip_prefix('[') {
            Some(inner) => {
                let inner = inner.split(']').next().unwrap_or("");
                inner.split_once(':').unwrap_or((inner, inner))
            }
            None => {
                let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
                (&rest[..end], &rest[..end])
            }
        };
        if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
            found.push(RegisterRange { kind, first, last });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_disassembly_line() {
        let text = "\tglobal_load_b128 v[20:23], v7, s[8:9] offset:48            // 000000000010: EE05C008 00000014\n";
        let listed = &instructions(text)[0];
        assert_eq!((listed.mnemonic.as_str(), listed.code_offset), ("global_load_b128", 16));
        assert_eq!(listed.operand_list(), ["v[20:23]", "v7", "s[8:9] offset:48"]);
        let range = |kind, first, last| RegisterRange { kind, first, last };
        assert_eq!(registers(&listed.operands), [range('v', 20, 23), range('v', 7, 7), range('s', 8, 9)]);
        assert_eq!(
            registers("vcc_lo, -v3, |v4|, s7, scope:SCOPE_DEV"),
            [range('v', 3, 3), range('v', 4, 4), range('s', 7, 7)]
        );
        // In the middle of a word there is no register.
        assert_eq!(registers("abs4 x_v5 attr1v6 s_7"), []);
        // A comma between brackets parts no operands.
        let packed = ListedInstruction {
            mnemonic: "v_pk_fma_f16".into(),
            operands: "v1, v2, v3, v4 op_sel:[1,0,0] op_sel_hi:[0,1,1]".into(),
            code_offset: 0,
        };
        assert_eq!(packed.operand_list(), ["v1", "v2", "v3", "v4 op_sel:[1,0,0] op_sel_hi:[0,1,1]"]);
    }

    #[test]
    fn the_innermost_line_wins() {
        let text = "0x0000000000000000      5      0      1   0  0  0  is_stmt\n\
                    0x0000000000000000     33      0      2   0  0  0  is_stmt\n\
                    0x0000000000000004     33      0      2   0  0  0  is_stmt\n\
                    0x0000000000000008     34      0      2   0  0  0  is_stmt\n\
                    0x000000000000000c     34      0      2   0  0  0  is_stmt end_sequence\n";
        let line = |code_offset, line| Line { code_offset, file: 1, line };
        assert_eq!(lines(text, 12), [line(0, 33), line(8, 34)]);
    }

    #[test]
    fn the_end_of_a_sequence_and_what_is_behind_the_code_are_no_lines() {
        let text = "4 7 0 1 0 0 0 is_stmt\n\
                    0x0000000000000000     33      0      1   0  0  0  is_stmt\n\
                    0x0000000000000004     34      0      1   0  0  0  is_stmt end_sequence\n\
                    0x0000000000000008     35      0      0   0  0  0  is_stmt\n\
                    0x000000000000000c     36      0      1   0  0  0  is_stmt\n\
                    0x0000000000000010     37      0      1   0  0  0  is_stmt\n";
        let line = |code_offset, line| Line { code_offset, file: 0, line };
        assert_eq!(lines(text, 16), [line(0, 33), line(12, 36)]);
    }
}
