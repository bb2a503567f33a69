//! Straight-line code has one path: findings on it equal those of the static lint, for the rules that both have.

use std::collections::BTreeSet;

use zrt_isa::effects::{Effects, Read, Registers, Unit, VCC_LO};
use zrt_isa::lint::{Entry, Rule as LintRule, check_entry};
use zrt_isa::{Instruction, Opcode};

use super::*;

/// `s_endpgm`.
const END: u32 = 0xbfb0_0000;
/// Fewer than any counter's maximum, which the static lint does not model.
const LENGTH_MAX: usize = 30;
const PROGRAMS: usize = 3000;

/// Random numbers, and programs made of them.
struct Random(zrt_needs::Random);

impl Random {
    fn next(&mut self) -> u32 {
        self.0.word()
    }

    fn below(&mut self, end: u32) -> u32 {
        self.0.below(end)
    }

    /// A scalar operand code, from few registers so that they collide.
    fn scalar(&mut self) -> u32 {
        match self.below(10) {
            0 => 106,
            1 => 107,
            2 => 125,
            3 => 128 + self.below(8),
            _ => self.below(8),
        }
    }

    /// A 9-bit source code.
    fn source(&mut self) -> u32 {
        if self.below(2) == 0 { self.scalar() } else { 256 + self.below(8) }
    }

    /// Words that may be an instruction.
    fn words(&mut self) -> Vec<u32> {
        let (v, s) = (self.below(8), self.scalar());
        let (first, second, third) = (self.source(), self.source(), self.source());
        let long = first | second << 9 | third << 18;
        match self.below(18) {
            0 => vec![0x7e00_0000 | v << 17 | self.below(128) << 9 | first],
            1 => vec![self.below(63) << 25 | v << 17 | self.below(8) << 9 | first],
            2 => vec![0x7c00_0000 | self.below(256) << 17 | self.below(8) << 9 | first],
            3 => vec![0xd400_0000 | self.below(256) << 16 | self.below(8), first | second << 9],
            4 => vec![0xd400_0000 | (256 + self.below(768)) << 16 | v, long],
            5 => vec![0xd500_0000 | self.below(64) << 16 | s << 8 | v, long],
            6 => vec![0xcc00_4000 | self.below(91) << 16 | v, long | 3 << 27],
            7 => vec![0x8000_0000 | self.below(86) << 23 | s << 16 | self.scalar() << 8 | self.scalar()],
            8 => vec![0xbe80_0000 | s << 16 | self.below(111) << 8 | self.scalar()],
            9 => vec![0xbf00_0000 | self.below(18) << 16 | self.scalar() << 8 | self.scalar()],
            10 => vec![0xb000_0000 | self.below(21) << 23 | s << 16 | self.below(65536)],
            // Waits and other control.
            11 => vec![0xbf80_0000 | (64 + self.below(10)) << 16 | self.below(4) << 8 | self.below(4)],
            12 => vec![0xbf88_0000 | self.next() & 0xffff | if self.below(2) == 0 { 0xf1fc } else { 0 }],
            13 => vec![0xd850_0000, 0],
            14 => {
                let base = self.below(4);
                vec![0xf400_0000 | self.below(27) << 13 | s << 6 | base, 0xf800_0000]
            }
            15 => {
                let [address, data, other] = [self.below(8), self.below(8), self.below(8)];
                vec![0xd800_0000 | self.below(256) << 18, v << 24 | other << 16 | data << 8 | address]
            }
            16 => {
                let base = if self.below(2) == 0 { 124 } else { 2 * self.below(4) };
                let hint = self.below(2) << 20;
                let class = [0xec00_0000, 0xed00_0000, 0xee00_0000][self.below(3) as usize];
                vec![class | self.below(100) << 14 | base, hint | v | self.below(8) << 23, self.below(8)]
            }
            _ => {
                let second = self.below(2) << 11 | v | 1 << 30;
                vec![0xc400_0000 | self.below(100) << 14 | 124 | self.below(2) << 22, second, self.below(8)]
            }
        }
    }

    fn program(&mut self, wave_size: WaveSize) -> Vec<u32> {
        let mut program = Vec::new();
        let count = 1 + self.below(LENGTH_MAX as u32) as usize;
        for _ in 0..count {
            loop {
                let mut words = self.words();
                let Ok(instruction) = decode_for(&words, wave_size) else { continue };
                if is_usable(&instruction) && usize::from(instruction.dword_count) == words.len() {
                    program.append(&mut words);
                    break;
                }
            }
        }
        program
    }
}

/// No branches, and supported by the static lint.
fn is_usable(instruction: &Instruction) -> bool {
    use Opcode::*;
    let mnemonic = instruction.opcode.mnemonic();
    let jumps = ["s_branch", "s_cbranch", "s_endpgm", "s_code_end", "s_call", "s_setpc", "s_swappc", "s_rfe"];
    !jumps.iter().any(|start| mnemonic.starts_with(start))
        && !mnemonic.contains("movrel")
        && !mnemonic.contains("swaprel")
        && !matches!(instruction.opcode, DsParamLoad | DsDirectLoad)
}

/// Position, register, remedy.
type Facts = BTreeSet<(usize, String, String)>;

fn each(registers: Option<Registers>) -> Vec<String> {
    let registers = registers.map(|registers| registers.range()).unwrap_or(0..0);
    let names: Vec<String> = registers.map(|register| Registers::new(register, 1).to_string()).collect();
    if names.is_empty() { vec![String::new()] } else { names }
}

fn found_by_lint(program: &[u32], wave_size: WaveSize, strictness: Strictness) -> Facts {
    let mut code = program.to_vec();
    code.push(END);
    let is_strict = strictness == Strictness::Strict;
    let entry = Entry { wave_size, is_strict, ..Entry::at(0) };
    let mut facts = Facts::new();
    for finding in check_entry(&code, &entry) {
        let remedy = match finding.rule {
            // A count differs by register within a run; the counter does not.
            LintRule::MemoryWait => finding.remedy.split(' ').nth(1).unwrap().to_string(),
            LintRule::ScalarHazard => finding.remedy.split(' ').nth(2).unwrap().to_string(),
            LintRule::LaneExchange => "exchange".to_string(),
            _ => continue,
        };
        facts.extend(each(finding.registers).into_iter().map(|name| (finding.dword, name, remedy.clone())));
    }
    facts
}

fn found_on_the_path(program: &[u32], wave_size: WaveSize, strictness: Strictness) -> Facts {
    let mut walk = Walk::new(&LaunchState { strictness, ..launch(wave_size) });
    walk.run(program);
    let mut facts = Facts::new();
    // The static lint reports the read that comes too early, not the ineffective wait.
    for finding in walk.findings.into_iter().filter(|finding| finding.defect != Defect::PartialScalarWait) {
        let remedy = match finding.remedy {
            Remedy::Wait(counter, _) => counter.wait().to_string(),
            Remedy::ScalarWrites => "depctr_sa_sdst(0)".to_string(),
            Remedy::VectorWrites => "depctr_va_sdst(0)".to_string(),
            Remedy::VectorWritesOfVcc => "depctr_va_vcc(0)".to_string(),
            Remedy::RealVectorInstruction => "exchange".to_string(),
            _ => continue,
        };
        let place = finding.pc as usize / 4;
        facts.extend(each(finding.registers).into_iter().map(|name| (place, name, remedy.clone())));
    }
    facts
}

/// Whether a SALU instruction between the last VALU write of a register and its use at `place` reads any SGPR but vcc.
fn has_scalar_read(program: &[u32], wave_size: WaveSize, place: usize, name: &str) -> bool {
    let (mut at, mut has_read) = (0, false);
    while at < place {
        let instruction = decode_for(&program[at..], wave_size).unwrap();
        let effects = Effects::of(&instruction, wave_size);
        let mut written = effects.writes.iter().flat_map(|written| each(Some(*written)));
        if effects.unit == Unit::Valu && written.any(|register| register == name) {
            has_read = false;
        }
        let is_general = |read: &Read| read.registers.range().start < VCC_LO;
        has_read |= effects.unit == Unit::Salu && effects.reads.iter().any(is_general);
        at += usize::from(instruction.dword_count);
    }
    has_read
}

#[test]
fn the_static_lint_finds_the_same_in_straight_line_code() {
    let mut random = Random(zrt_needs::Random::new(0x5eed_0001));
    let mut count = 0;
    for index in 0..PROGRAMS {
        let wave_size = if index % 3 == 0 { WaveSize::Wave64 } else { WaveSize::Wave32 };
        let strictness = if index % 4 == 0 { Strictness::Compiler } else { Strictness::Strict };
        let program = random.program(wave_size);
        let expected = found_by_lint(&program, wave_size, strictness);
        let found = found_on_the_path(&program, wave_size, strictness);
        let text: Vec<String> = program.iter().map(|word| format!("{word:#010x}")).collect();
        // The lint knows what the VALU may have read on other paths. Without that knowledge the compilers' rule is
        // applied at its widest: any SALU read of an SGPR ends all open hazards.
        let is_lenient = |(place, name, remedy): &(usize, String, String)| {
            strictness == Strictness::Compiler
                && remedy == "depctr_va_sdst(0)"
                && has_scalar_read(&program, wave_size, *place, name)
        };
        let expected: Facts = expected.into_iter().filter(|fact| !is_lenient(fact)).collect();
        assert_eq!(found, expected, "program {index} {wave_size:?} {strictness:?}: {}", text.join(" "));
        count += expected.len();
    }
    // The programs do produce findings.
    assert!(count > PROGRAMS, "{count}");
}

/// What the engine does for most instructions finds what all rules find, and leaves the same behind.
#[test]
fn the_short_way_finds_the_same() {
    let mut random = Random(zrt_needs::Random::new(0x5eed_0002));
    let (mut passed, mut found) = (0, 0);
    for index in 0..600 {
        let wave_size = if index % 3 == 0 { WaveSize::Wave64 } else { WaveSize::Wave32 };
        let strictness = if index % 4 == 0 { Strictness::Compiler } else { Strictness::Strict };
        let user_sgprs = [2, 6, 106][index / 4 % 3];
        let state = LaunchState { strictness, user_sgprs, lanes_mask: 0xffff_ffff, ..launch(wave_size) };
        let (mut long, mut short) = (Walk::new(&state), Walk::new(&state));
        // The first pieces define what is read later.
        let defined = [
            0x7e020300, // v_mov_b32_e32 v1, v0
            0x7e040300, // v_mov_b32_e32 v2, v0
            0x7e060300, // v_mov_b32_e32 v3, v0
            0xbeea0100, // s_mov_b64 vcc, s[0:1]
        ];
        let programs: Vec<Vec<u32>> = (0..4).map(|_| random.program(wave_size)).collect();
        for words in std::iter::once(&defined[..]).chain(programs.iter().map(Vec::as_slice)) {
            let lanes = [u64::MAX, 0xffff, 0x1_0000_0000, 0][random.below(4) as usize];
            (long.exec, short.exec) = (lanes, lanes);
            long.run(words);
            passed += short.run_shortly(words);
        }
        assert_eq!(short.findings, long.findings, "program {index}: {programs:x?}");
        found += long.findings.len();
    }
    assert!(passed > 600 && found > 600, "{passed} {found}");
}
