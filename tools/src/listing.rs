//! Machine code as lines of text, with labels where code jumps to.
//!
//! Contract: [`Lines`] decodes a section in two passes, each word once in each; a word that does not begin an
//! instruction takes 4 bytes. A line is made when it is asked for: memory is some bytes for a branch, however long
//! names are and however often they are mentioned. The names of targets take at most [`TARGET_BYTES_PER_BYTE`] times
//! the code and its labels in the text, which cuts the names of source files. It is that of llvm-mc 19, without control
//! characters.

use crate::machine_code::{Name, Section};
use serde::Serialize;
use std::fmt::{self, Write};
use zrt_isa::resources::WaveSize;
use zrt_isa::{DecodeError, Instruction, Opcode, decode_for};

/// What llvm-mc calls the word that is all zeros.
const ILLEGAL: &str = "v_illegal";
/// Bytes of target names for each byte of a section's code and labels; a branch beyond them has the target's address.
/// A branch has 4 bytes, so that names of up to 32 bytes are always said.
pub const TARGET_BYTES_PER_BYTE: usize = 8;
/// Characters of a source file's name that the text shows: it is repeated for each line.
const FILE_CHARACTERS_MAX: usize = 256;
/// Characters of the longest instruction's words with spaces between them.
const WORDS_WIDTH: usize = 3 * 9 - 1;

/// One instruction or unknown word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Address in the file's counting, in bytes.
    pub offset: u64,
    /// Names of the place: the file's, or a local one if only this code refers to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Name>,
    /// The instruction's words in hexadecimal.
    pub words: Vec<String>,
    /// Its text.
    pub text: String,
    /// The label that it jumps to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Name>,
    /// Source file and line, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<(Name, u32)>,
}

/// The text of what `words` begin with, as `decoded`, and how many of them it takes. A word that is not an instruction
/// is one word of data.
pub fn instruction_text(
    words: &[u32],
    decoded: &Result<Instruction, DecodeError>,
    wave_size: WaveSize,
) -> (String, usize) {
    match (decoded, words) {
        (Ok(instruction), _) => {
            (instruction.text(wave_size).to_string(), usize::from(instruction.dword_count).max(1))
        }
        (Err(_), [0, ..]) => (ILLEGAL.to_owned(), 1),
        (Err(_), [word, ..]) => (format!(".long {word:#010x}"), 1),
        (Err(_), []) => (String::new(), 0),
    }
}

/// The lines of a section, in the order of its code.
#[derive(Debug)]
pub struct Lines<'a> {
    section: &'a Section,
    /// Where jumps go that has no name of the file, ascending.
    targets: Vec<u32>,
    /// The dword of the next line.
    at: usize,
    /// What is left for the names of targets.
    bytes_left: usize,
}

impl Lines<'_> {
    /// All lines of a section.
    pub fn of(section: &Section) -> Lines<'_> {
        let is_local = |target: &usize| !section.symbols.contains_key(target);
        let mut targets = Vec::new();
        let mut at = 0;
        while let Some(words) = words_from(section, at) {
            let decoded = decode_for(words, section.wave_size(at)).ok();
            let target = decoded.as_ref().and_then(|one| target(one, at)).filter(is_local);
            targets.extend(target.and_then(|target| u32::try_from(target).ok()));
            at += decoded.map_or(1, |one| usize::from(one.dword_count).max(1));
        }
        targets.sort_unstable();
        targets.dedup();
        targets.shrink_to_fit();
        let labels_bytes: usize = section.symbols.values().flatten().map(|name| name.len()).sum();
        let bytes_left = TARGET_BYTES_PER_BYTE * (4 * section.words.len() + labels_bytes);
        Lines { section, targets, at: 0, bytes_left }
    }

    /// The label of a place that has no name of the file; `None` if no jump goes there.
    fn local_label(&self, dword: usize) -> Option<Name> {
        self.targets.binary_search(&u32::try_from(dword).ok()?).ok()?;
        Some(format!("L_{:04x}", self.section.address_of(dword)).into())
    }

    /// What is said of the place that a jump goes to.
    fn target_name(&mut self, dword: usize) -> Name {
        let (section, address) = (self.section, self.section.address_of(dword));
        if dword >= section.words.len() {
            return format!("{address:#x}, outside of the code").into();
        }
        let named = || section.symbols.get(&dword)?.first().cloned();
        match self.local_label(dword).or_else(named) {
            Some(name) if name.len() <= self.bytes_left => {
                self.bytes_left -= name.len();
                name
            }
            _ => format!("{address:#x}").into(),
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let (section, at) = (self.section, self.at);
        let words = words_from(section, at)?;
        let wave_size = section.wave_size(at);
        let decoded = decode_for(words, wave_size);
        let (text, count) = instruction_text(words, &decoded, wave_size);
        let mut labels = section.symbols.get(&at).cloned().unwrap_or_default();
        labels.extend(self.local_label(at));
        let target = decoded.ok().and_then(|one| target(&one, at));
        self.at += count.max(1);
        Some(Line {
            offset: section.address_of(at),
            labels,
            words: words.iter().take(count).map(|word| format!("{word:08x}")).collect(),
            text,
            target: target.map(|target| self.target_name(target)),
            source: section.source(at).map(|(file, line)| (file.clone(), line)),
        })
    }
}

/// The words from a dword on; `None` at the end.
fn words_from(section: &Section, dword: usize) -> Option<&[u32]> {
    section.words.get(dword..).filter(|words| !words.is_empty())
}

/// The dword that a branch or call at `dword` goes to; `None` if it is before the code or not in the instruction.
fn target(instruction: &Instruction, dword: usize) -> Option<usize> {
    use Opcode::*;
    let jumps = matches!(
        instruction.opcode,
        SBranch
            | SCbranchScc0
            | SCbranchScc1
            | SCbranchVccz
            | SCbranchVccnz
            | SCbranchExecz
            | SCbranchExecnz
            | SCallB64
    );
    let distance = isize::from(instruction.immediate as i16);
    if jumps { (dword + 1).checked_add_signed(distance) } else { None }
}

/// The lines of a section as a person reads them.
pub struct Listing<'a>(pub &'a Section);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut source = None;
        for line in Lines::of(self.0) {
            for label in &line.labels {
                writeln!(out, "{}:", label.shown(usize::MAX))?;
            }
            if line.source != source
                && let Some((file, number)) = &line.source
            {
                writeln!(out, "; {}:{number}", file.shown(FILE_CHARACTERS_MAX))?;
            }
            let words = line.words.join(" ");
            write!(out, "{:06x}  {words:<WORDS_WIDTH$}  {}", line.offset, line.text)?;
            if let Some(target) = &line.target {
                write!(out, "  ; {}", target.shown(usize::MAX))?;
            }
            out.write_char('\n')?;
            source = line.source;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_code::SourceLines;
    use std::collections::BTreeMap;
    use zrt_loader::LineRow;

    fn section(words: &[u32]) -> Section {
        let entry = crate::machine_code::Entry {
            name: "nothing".into(),
            dword: 0,
            end: words.len(),
            wave_size: WaveSize::Wave32,
            user_sgprs: 2,
        };
        let rows = [(0, 3), (4, 4)].map(|(offset, line)| LineRow { offset, file: 0, line }).to_vec();
        Section {
            name: Name::default(),
            address: 0,
            words: words.to_vec(),
            symbols: BTreeMap::from([(0, vec!["nothing".into()])]),
            functions: BTreeMap::from([(0, "nothing".into())]),
            entries: vec![entry],
            called: Vec::new(),
            is_linked: true,
            lines: vec![SourceLines::new(vec!["nothing.s".into()], rows)],
        }
    }

    fn list(section: &Section) -> Vec<Line> {
        Lines::of(section).collect()
    }

    #[test]
    fn lines_have_labels_words_text_and_targets() {
        // s_nop 0; s_mov_b32 s0, 0x1234; s_cbranch_scc0 back to the move; s_branch to the start; no instruction.
        let code = section(&[0xbf80_0000, 0xbe80_00ff, 0x1234, 0xbfa1_fffd, 0xbfa0_fffb, 0xffff_ffff]);
        let expected = "\
nothing:
; nothing.s:3
000000  bf800000                    s_nop 0
L_0004:
; nothing.s:4
000004  be8000ff 00001234           s_mov_b32 s0, 0x1234
00000c  bfa1fffd                    s_cbranch_scc0 65533  ; L_0004
000010  bfa0fffb                    s_branch 65531  ; nothing
000014  ffffffff                    .long 0xffffffff
";
        assert_eq!(Listing(&code).to_string(), expected);
    }

    #[test]
    fn a_branch_out_of_the_code_is_said() {
        let lines = list(&section(&[0xbfa0_7fff]));
        assert_eq!(lines[0].target.as_deref(), Some("0x20000, outside of the code"));
    }

    #[test]
    fn the_wave_size_of_the_kernel_counts() {
        let mut code = section(&[0x0202_0301, 0xbfb0_0000]);
        assert_eq!(list(&code)[0].text, "v_cndmask_b32_e32 v1, v1, v1, vcc_lo");
        code.entries[0].wave_size = WaveSize::Wave64;
        assert_eq!(list(&code)[0].text, "v_cndmask_b32_e32 v1, v1, v1, vcc");
    }

    /// The last word can be jumped to, and the place after it cannot.
    #[test]
    fn the_code_ends_after_its_last_word() {
        let target = |word| list(&section(&[word, 0xbfb0_0000]))[0].target.clone();
        assert_eq!(target(0xbfa0_0000).as_deref(), Some("L_0004"));
        assert_eq!(target(0xbfa0_0001).as_deref(), Some("0x8, outside of the code"));
        // Before the code there is no place.
        assert_eq!((target(0xbfa0_ffff).as_deref(), target(0xbfa0_fffe)), (Some("nothing"), None));
        assert_eq!(list(&section(&[0]))[0].text, "v_illegal");
    }

    /// All branches and the call have their distance in the low 16 bits; s_nop has none.
    #[test]
    fn branches_and_calls_go_somewhere() {
        let target = |word| {
            let decoded = zrt_isa::decode(&[word]).unwrap();
            super::target(&decoded, 10)
        };
        // s_branch, s_cbranch_scc0, _scc1, _vccz, _vccnz, _execz, _execnz (instruction set reference, SOPP 32 to 38).
        for opcode in 32..=38 {
            assert_eq!(target(0xbf80_0000 | opcode << 16 | 3), Some(14), "{opcode}");
        }
        // s_call_b64 s[0:1] (SOPK 20).
        assert_eq!(target(0xba00_0003), Some(14));
        assert_eq!(target(0xbf80_0003), None);
    }
}
