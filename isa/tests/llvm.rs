//! Decoder and printer against llvm-mc 19: which words are instructions, how long they are, how they read.
//!
//! Both wave sizes. The corpus is every opcode number of every encoding class with seeded random fields, and plain
//! random words. `ZRT_REQUIRE_LLVM` makes a missing llvm-mc-19 a failure; `ZRT_ISA_ROUNDS` enlarges the corpus
//! (default 20).

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod corpus;

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use zrt_isa::resources::WaveSize::{self, Wave32, Wave64};
use zrt_isa::{DecodeError, Encoding, Instruction, Opcode, Operand, decode_for, decode_like_llvm};
use zrt_needs::Random;

/// Ends every block of the input, so that outputs can be separated: `s_nop 0x1234`.
const END_OF_BLOCK: u32 = 0xbf80_1234;
/// Follows the words of an instruction; swallowed if llvm-mc considers the instruction longer: `s_nop 0x2bad`.
const AFTER: u32 = 0xbf80_2bad;
const AFTER_TEXT: &str = "s_nop 0x2bad";
/// Column of the first byte of a block in llvm-mc's warnings.
const FIRST_BYTE_COLUMN: &str = "2";

/// Random instruction fields.
struct Fields(Random);

impl Fields {
    fn below(&mut self, limit: u32) -> u32 {
        self.0.below(limit)
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.0.one_in(count)
    }

    fn bits(&mut self, count: u32) -> u32 {
        self.below(1 << count)
    }

    /// Zero most of the time, occasionally anything.
    fn seldom(&mut self, count: u32, chance: u32) -> u32 {
        if self.one_in(chance) { self.bits(count) } else { 0 }
    }

    fn scalar_register(&mut self) -> u32 {
        if self.one_in(4) {
            100 + self.below(28)
        } else {
            self.below(106) & !if self.one_in(3) { 0 } else { 3 }
        }
    }

    /// An 8-bit scalar source.
    fn scalar_source(&mut self) -> u32 {
        match self.below(8) {
            0..=3 => self.scalar_register(),
            4 | 5 => 128 + self.below(81),
            6 => 235 + self.below(21),
            _ => self.bits(8),
        }
    }

    /// A 9-bit source.
    fn source(&mut self) -> u32 {
        match self.below(8) {
            0..=4 => 256 + self.bits(8),
            5 if self.one_in(3) => [233, 234, 250][self.below(3) as usize],
            _ => self.scalar_source(),
        }
    }

    fn literal(&mut self) -> u32 {
        const NOTABLE: [u32; 8] =
            [0x3f80_0000, 0x3c00, 0x40, 0xffff_fff0, 0x3e22_f983, 0x3118, 0xbc00_3800, 0xffff_bc00];
        match self.below(4) {
            0 => NOTABLE[self.below(8) as usize],
            1 => self.below(200).wrapping_sub(100),
            // A lane-select dword without source modifiers.
            2 => self.bits(16) << 16 & !0x00f0_0000 | self.bits(16) & 0xff7f,
            _ => self.0.word(),
        }
    }
}

/// Words of class `name` for every opcode number, `rounds` times.
fn systematic(random: &mut Fields, rounds: u32) -> Vec<Vec<u32>> {
    let mut corpus = Vec::new();
    for _ in 0..rounds {
        for number in 0..256 {
            let (destination, first, second) =
                (random.scalar_register(), random.scalar_source(), random.scalar_source());
            corpus.push([0xbe80_0000 | destination << 16 | number << 8 | first, 0, 0]);
            if number < 128 {
                corpus.push([0x8000_0000 | number << 23 | destination << 16 | second << 8 | first, 0, 0]);
                corpus.push([0xbf00_0000 | number << 16 | second << 8 | first, 0, 0]);
                corpus.push([0xbf80_0000 | number << 16 | random.seldom(16, 2), 0, 0]);
            }
            if number < 32 {
                corpus.push([0xb000_0000 | number << 23 | destination << 16 | random.bits(16), 0, 0]);
            }
            if number < 64 {
                let base = random.scalar_register() >> 1;
                let policy =
                    random.seldom(5, 2) << 20 | random.seldom(1, 30) << 19 | random.seldom(1, 30) << 25;
                let offset = if random.one_in(2) { 124 } else { random.scalar_register() };
                corpus.push([
                    0xf400_0000 | policy | number << 13 | destination << 6 | base,
                    offset << 25 | random.seldom(1, 40) << 24 | random.bits(24),
                    0,
                ]);
            }
            let vector = (random.bits(8), random.bits(8), random.source());
            corpus.push([0x7c00_0000 | number << 17 | vector.0 << 9 | vector.2, 0, 0]);
            corpus.push([0x7e00_0000 | vector.1 << 17 | number << 9 | vector.2, 0, 0]);
            if number < 62 {
                corpus.push([number << 25 | vector.1 << 17 | vector.0 << 9 | vector.2, 0, 0]);
            }
            corpus.push(local(random, number));
            for class in [0xec00_0000, 0xed00_0000, 0xee00_0000] {
                corpus.push(flat(random, class, number));
            }
            corpus.push(buffer(random, number));
        }
        for number in 0..1024 {
            corpus.push(long(random, 0xd400_0000 | number << 16, 4, true));
        }
        for number in 0..256 {
            corpus.push(long(random, 0xcc00_0000 | number << 16, 3, false));
        }
        for number in 0..512 {
            let first = 0xc800_0000 | number << 17 | random.seldom(8, 2) << 9 | random.source();
            let second = random.bits(15) << 17 | random.seldom(8, 2) << 9 | random.source();
            corpus.push([first, second, 0]);
        }
        corpus.push([0xce00_0000 | random.bits(24), 0, 0]);
    }
    corpus
        .into_iter()
        .map(|words| {
            let mut words = words.to_vec();
            // Where a class ends early, a literal or lane-select dword may follow.
            for word in words.iter_mut().skip(1) {
                if *word == 0 {
                    *word = random.literal();
                }
            }
            words.push(random.literal());
            words
        })
        .collect()
}

/// VOP3 and VOP3P: mostly without modifiers, mostly with the number of sources that most operations have.
fn long(random: &mut Fields, class: u32, selects: u32, op_sel_hi_off: bool) -> [u32; 3] {
    let mut first = class | random.bits(8);
    if random.one_in(3) {
        first = first & !0xff | random.scalar_register();
    }
    first |= random.seldom(3, 3) << 8 | random.seldom(selects, 3) << 11 | random.seldom(1, 4) << 15;
    let mut second = random.source() | random.seldom(3, 4) << 29 | random.seldom(2, 4) << 27;
    if !op_sel_hi_off && !random.one_in(4) {
        first |= 1 << 14;
        second |= 3 << 27;
    }
    match random.below(4) {
        0 => {}
        1 => second |= random.source() << 9,
        2 => second |= random.source() << 9 | random.source() << 18,
        _ => second |= (256 + random.bits(8)) << 9 | random.scalar_register() << 18,
    }
    [first, second, 0]
}

fn local(random: &mut Fields, number: u32) -> [u32; 3] {
    let mut second = 0;
    for shift in [0, 8, 16, 24] {
        second |= random.seldom(8, 2) << shift;
    }
    [0xd800_0000 | number << 18 | random.seldom(2, 8) << 16 | random.seldom(16, 2), second, 0]
}

fn flat(random: &mut Fields, class: u32, number: u32) -> [u32; 3] {
    let base = if random.one_in(2) { 124 } else { random.scalar_register() };
    [
        class | random.seldom(2, 30) << 22 | number << 14 | random.seldom(7, 8) << 7 | base,
        random.bits(31) & !(1 << 17)
            | random.bits(1) << 31
            | (u32::from(class == 0xed00_0000) * random.bits(1)) << 17,
        random.bits(8) | random.seldom(24, 2) << 8,
    ]
}

fn buffer(random: &mut Fields, number: u32) -> [u32; 3] {
    let offset = random.scalar_register();
    let resource = random.scalar_register() | random.seldom(2, 20) << 7;
    [
        0xc400_0000 | random.seldom(1, 5) << 22 | number << 14 | random.seldom(7, 8) << 7 | offset,
        random.bits(8) | resource << 9 | random.bits(14) << 18,
        random.bits(8) | random.seldom(24, 2) << 8,
    ]
}

/// What llvm-mc says about a block: its lines, and whether the first byte is no instruction.
struct Verdict {
    lines: Vec<String>,
    refused: bool,
}

/// Disassembles blocks of words; `None` when llvm-mc-19 is not installed.
fn llvm(blocks: &[Vec<u32>], wave_size: WaveSize, name: &str) -> Option<Vec<Verdict>> {
    if !zrt_needs::programs(&["llvm-mc-19"]) {
        return None;
    }
    let mut input = String::new();
    for block in blocks {
        for words in [block.as_slice(), &[END_OF_BLOCK]] {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let items: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
            writeln!(input, "[{}]", items.join(",")).unwrap();
        }
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, input).unwrap();
    let output = Command::new("llvm-mc-19")
        .args(["-disassemble", "-triple=amdgcn", "-mcpu=gfx1201"])
        .arg(match wave_size {
            Wave32 => "-mattr=+wavefrontsize32",
            Wave64 => "-mattr=+wavefrontsize64",
        })
        .stdin(Stdio::from(std::fs::File::open(&path).unwrap()))
        .output()
        .expect("llvm-mc-19 starts");
    let mut verdicts = Vec::new();
    let mut lines = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines().map(str::trim) {
        match line {
            "" | ".text" => {}
            "s_nop 0x1234" => verdicts.push(Verdict { lines: std::mem::take(&mut lines), refused: false }),
            _ => lines.push(line.to_owned()),
        }
    }
    assert_eq!(verdicts.len(), blocks.len(), "llvm-mc's output has another number of blocks");
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        let Some(place) = line.strip_prefix("<stdin>:") else { continue };
        let mut place = place.split(':');
        let (Some(line), Some(column)) = (place.next(), place.next()) else { continue };
        let block = (line.parse::<usize>().unwrap() - 1) / 2;
        verdicts[block].refused |= column == FIRST_BYTE_COLUMN;
    }
    Some(verdicts)
}

/// Whether llvm-mc itself marks the text as an invalid instruction. Its notes on `s_delay_alu` hints do not count.
fn marked_invalid(text: &str) -> bool {
    text == "v_illegal" || text.contains("/*") && !text.contains("/* invalid inst")
}

/// Operands that llvm-mc accepts and we do not (README, "Where we differ").
fn stricter(words: &[u32], text: &str) -> bool {
    /// Operations with register-only positions.
    const REGISTERS_ONLY: [&str; 14] = [
        "v_movrel",
        "s_movrel",
        "s_setpc",
        "s_rfe",
        "v_permlane",
        "v_readlane",
        "v_readfirstlane",
        "v_swap",
        "v_wmma",
        "v_swmmac",
        "v_mqsad_u32",
        "v_cndmask",
        "_co_ci_",
        "_dpp",
    ];
    let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
    let special_destination = operands.starts_with("src_") && name.starts_with("v_");
    let is_special = operands.contains("src_") || operands.contains("null");
    let special_register = is_special && REGISTERS_ONLY.iter().any(|part| name.contains(part));
    // The addend of a matrix operation is a register or an inline constant.
    let addend = words.get(1).map_or(0, |word| word >> 18 & 0x1ff);
    let matrix = name.starts_with("v_wmma") && (addend < 128 || matches!(addend, 235..=239 | 251..=255));
    // llvm-mc reads a literal after a lane-select dword, but its own assembler refuses to write one.
    let literal_and_lanes = name.ends_with("_e64_dpp")
        && words.get(1).is_some_and(|word| word >> 9 & 0x1ff == 255 || word >> 18 & 0x1ff == 255);
    // The byte number has bits that only the cross-lane form leaves open.
    let open_bits = name.ends_with("_dpp") && name.starts_with("v_cvt_");
    special_destination || special_register || matrix || literal_and_lanes || open_bits
}

/// Removes two oddities of llvm-mc: a sign extension for negate bits of integer sources, which have no effect, and
/// an absolute value around two operands.
fn sober(text: &str) -> String {
    let mut text = text.replace(", vcc_lo|", "|, vcc_lo").replace(", vcc|", "|, vcc");
    while let Some((before, after)) = text.split_once("sext(") {
        text = format!("{before}{}", after.replacen(')', "", 1));
    }
    text
}

/// 16-bit operands in the upper half of a register by register number: llvm-mc 19 refuses them by default.
fn uses_upper_half(instruction: &Instruction) -> bool {
    let is_short = matches!(instruction.encoding, Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc);
    is_short && instruction.modifiers.op_sel != 0
}

/// The instruction as llvm-mc 19 knows it, without half selects in most long forms.
fn without_halves(mut instruction: Instruction) -> Instruction {
    if let (Encoding::Vop3, Some(form)) = (instruction.encoding, &instruction.opcode.operands().form) {
        instruction.modifiers.op_sel &= form.op_sel;
    }
    instruction
}

/// A nonzero source field that the operation does not use: llvm-mc 19 refuses it.
fn fills_unused_source(words: &[u32], instruction: &Instruction) -> bool {
    let is_long = matches!(instruction.encoding, Encoding::Vop3 | Encoding::Vop3sd | Encoding::Vop3p);
    let codes = [0, 9, 18].map(|low| words.get(1).map_or(0, |word| word >> low & 511));
    let kinds = instruction.opcode.operands().sources;
    is_long && codes.iter().zip(kinds).any(|(code, kind)| *code != 0 && !kind.is_present())
}

/// The executor and llvm-mc accept the same instructions, except for upper halves, two operations that llvm-mc does
/// not know, unused source fields, and sources of other chips.
fn check_dialects(words: &[u32], like_llvm: &Result<Instruction, DecodeError>, wave_size: WaveSize) {
    let is_foreign = |operand: &Operand| matches!(operand, Operand::Special(239 | 254));
    match (decode_for(words, wave_size), like_llvm) {
        (Ok(ours), Ok(theirs)) => assert_eq!(without_halves(ours), *theirs, "{words:08x?}"),
        (Ok(ours), Err(_)) => {
            let is_newer = match ours.opcode {
                Opcode::VSwapB16 => true,
                Opcode::VMovB16 => ours.encoding == Encoding::Vop3,
                _ => false,
            };
            let is_ours = is_newer || uses_upper_half(&ours) || fills_unused_source(words, &ours);
            assert!(is_ours, "{words:08x?}: {ours}");
        }
        (Err(_), Ok(theirs)) => {
            let second = theirs.dual.map(|dual| dual.sources).unwrap_or_default();
            assert!(theirs.sources.iter().chain(&second).any(is_foreign), "{words:08x?}: {theirs}");
        }
        (Err(_), Err(_)) => {}
    }
}

/// The difference on one block, if any.
fn compare(
    words: &[u32],
    ours: &Result<Instruction, DecodeError>,
    wave_size: WaveSize,
    verdict: &Verdict,
) -> Option<String> {
    let text = verdict.lines.first().map_or("", String::as_str);
    let llvm_accepts = !verdict.refused && !marked_invalid(text);
    match ours {
        Ok(instruction) => {
            let printed = instruction.text(wave_size).to_string();
            let same = llvm_accepts
                && printed == sober(text)
                && verdict.lines.len() == 2
                && verdict.lines[1] == AFTER_TEXT;
            (!same).then(|| format!("{words:08x?}: we say {printed:?}, llvm-mc {:?}", verdict.lines))
        }
        Err(_) if !llvm_accepts || stricter(words, text) => None,
        Err(error) => Some(format!("{words:08x?}: we say {error}, llvm-mc {:?}", verdict.lines)),
    }
}

/// Compares the corpus; returns how many blocks were instructions, or `None` without llvm-mc-19.
fn check(corpus: &[Vec<u32>], wave_size: WaveSize, name: &str) -> Option<usize> {
    let decoded: Vec<_> = corpus.iter().map(|words| decode_like_llvm(words, wave_size)).collect();
    for (words, ours) in corpus.iter().zip(&decoded) {
        check_dialects(words, ours, wave_size);
    }
    let blocks: Vec<Vec<u32>> = corpus
        .iter()
        .zip(&decoded)
        .map(|(words, ours)| {
            let length = ours.map_or(words.len(), |instruction| instruction.dword_count as usize);
            let mut block = words[..length].to_vec();
            block.push(AFTER);
            block
        })
        .collect();
    let verdicts = llvm(&blocks, wave_size, name)?;
    let differences: Vec<String> = blocks
        .iter()
        .zip(&decoded)
        .zip(&verdicts)
        .filter_map(|((words, ours), verdict)| compare(words, ours, wave_size, verdict))
        .collect();
    let shown = std::env::var("ZRT_ISA_SHOWN").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    assert!(
        differences.is_empty(),
        "{} of {} differ:\n{}",
        differences.len(),
        blocks.len(),
        differences.iter().take(shown).cloned().collect::<Vec<_>>().join("\n")
    );
    Some(decoded.iter().filter(|ours| ours.is_ok()).count())
}

fn rounds() -> u32 {
    std::env::var("ZRT_ISA_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

fn seed() -> u64 {
    std::env::var("ZRT_ISA_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

#[test]
fn every_opcode_number_agrees_with_llvm() {
    check_systematic(Wave32, "systematic.txt");
}

#[test]
fn every_opcode_number_agrees_with_llvm_in_wave64() {
    check_systematic(Wave64, "systematic64.txt");
}

fn check_systematic(wave_size: WaveSize, name: &str) {
    let corpus = systematic(&mut Fields(Random::new(seed() ^ u64::from(wave_size.lanes()))), rounds());
    assert!(corpus.len() >= 4_000 * rounds() as usize, "only {} words", corpus.len());
    if let Some(instructions) = check(&corpus, wave_size, name) {
        assert!(instructions * 6 > corpus.len(), "only {instructions} of {} are instructions", corpus.len());
    }
}

/// The golden corpus equals llvm-mc's output.
#[test]
fn golden_corpus_is_from_llvm() {
    check_golden(Wave32, "golden.txt");
    check_golden(Wave64, "golden64.txt");
}

fn check_golden(wave_size: WaveSize, name: &str) {
    let lines = corpus::lines(wave_size);
    let blocks: Vec<Vec<u32>> =
        lines.iter().map(|(words, _)| words.iter().copied().chain([AFTER]).collect()).collect();
    let Some(verdicts) = llvm(&blocks, wave_size, name) else {
        return;
    };
    for ((words, text), verdict) in lines.iter().zip(&verdicts) {
        let said = verdict.lines.first().map_or("", String::as_str);
        if *text == "-" {
            assert!(verdict.refused || marked_invalid(said), "{words:08x?} is {said}");
        } else {
            assert_eq!((said, verdict.lines.len()), (*text, 2), "{words:08x?}");
            assert_eq!(verdict.lines[1], AFTER_TEXT, "{words:08x?}");
        }
    }
}

#[test]
fn random_words_agree_with_llvm() {
    check_random(Wave32, "random.txt");
}

#[test]
fn random_words_agree_with_llvm_in_wave64() {
    check_random(Wave64, "random64.txt");
}

fn check_random(wave_size: WaveSize, name: &str) {
    let mut random = Random::new(seed() ^ 0xabcd ^ u64::from(wave_size.lanes()));
    let corpus: Vec<Vec<u32>> = (0..rounds() * 1_000)
        .map(|_| (0..4).map(|_| random.word()).collect::<Vec<u32>>())
        .filter(|words| !is_graphics(words[0]))
        .collect();
    check(&corpus, wave_size, name);
}

/// VINTERP, VIMAGE, VSAMPLE, VEXPORT: recognised by class only.
fn is_graphics(word: u32) -> bool {
    word >> 24 == 0xcd || matches!(word >> 26, 0b11_0100 | 0b11_1001 | 0b11_1110)
}
