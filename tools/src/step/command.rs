//! The commands of `zrt step`.
//!
//! Contract: parsing never panics; a complaint says what was expected.

use std::fmt;

/// What `help` prints.
pub const HELP: &str = "\
step [N]            execute N instructions of this wave (s, empty line)
continue            run to a breakpoint (c)
break +OFFSET|LINE  stop at a code offset (+0x40) or a source line (b)
delete              remove all breakpoints
follow              run, and follow the wave that comes to a breakpoint first
where               this instruction, wave and source line (w)
list                the instructions from here on (l)
print REGISTER      s4, s[4:7], v3, v[0:3], exec, vcc, scc, m0, mode (p)
memory ADDRESS [N]  N dwords of device memory (m)
lds OFFSET [N]      N dwords of LDS
detach              run to the end (quit, q)";

/// Most dwords that a command prints.
const DWORDS_MAX: u32 = 1024;
/// Dwords that `memory` and `lds` print unless told.
const DWORDS_DEFAULT: u32 = 16;

/// Where to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// Offset from the first instruction, in bytes.
    Offset(u64),
    /// Line of the source, whichever file.
    Line(u32),
}

/// Registers to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// First and last.
    Scalar(u8, u8),
    /// First and last.
    Vector(u8, u8),
    Exec,
    Vcc,
    Scc,
    M0,
    Mode,
}

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Nothing,
    Step(u64),
    Continue,
    Break(Location),
    Delete,
    Follow,
    Where,
    List,
    Print(Registers),
    Memory { va: u64, dwords: u32 },
    Lds { offset: u32, dwords: u32 },
    Detach,
    Help,
}

impl Command {
    /// From a line of input.
    pub fn parse(line: &str) -> Result<Command, String> {
        let line = line.trim_end_matches(['\r', '\n']);
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(verb) = words.next() else {
            return Ok(if line.is_empty() { Command::Step(1) } else { Command::Nothing });
        };
        let (first, second) = (words.next(), words.next());
        if words.next().is_some() {
            return Err(format!("{verb} has too many words after it; try help"));
        }
        let need = || first.ok_or_else(|| format!("{verb} wants something after it; try help"));
        Ok(match verb {
            "s" | "step" => Command::Step(first.map_or(Ok(1), number)?.max(1)),
            "c" | "continue" => Command::Continue,
            "b" | "break" => Command::Break(location(need()?)?),
            "delete" => Command::Delete,
            "follow" => Command::Follow,
            "w" | "where" => Command::Where,
            "l" | "list" => Command::List,
            "p" | "print" => Command::Print(registers(need()?)?),
            "m" | "memory" => Command::Memory { va: number(need()?)?, dwords: dwords(second)? },
            "lds" => Command::Lds { offset: small(need()?)?, dwords: dwords(second)? },
            "q" | "quit" | "detach" => Command::Detach,
            "h" | "help" => Command::Help,
            _ => return Err(format!("there is no command {verb:?}; try help")),
        })
    }
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("{text:?} is no number"))
}

fn small(text: &str) -> Result<u32, String> {
    u32::try_from(number(text)?).map_err(|_| format!("{text} is too large"))
}

fn dwords(text: Option<&str>) -> Result<u32, String> {
    Ok(text.map_or(Ok(DWORDS_DEFAULT), small)?.min(DWORDS_MAX))
}

fn location(text: &str) -> Result<Location, String> {
    match text.strip_prefix('+') {
        Some(offset) => number(offset).map(Location::Offset),
        None => small(text).map(Location::Line),
    }
}

fn registers(text: &str) -> Result<Registers, String> {
    let wrong = || format!("{text:?} is no register: s4, s[4:7], v3, v[0:3], exec, vcc, scc, m0, mode");
    match text {
        "exec" => return Ok(Registers::Exec),
        "vcc" => return Ok(Registers::Vcc),
        "scc" => return Ok(Registers::Scc),
        "m0" => return Ok(Registers::M0),
        "mode" => return Ok(Registers::Mode),
        _ => {}
    }
    let (is_vector, rest) = match text.split_at_checked(1) {
        Some(("s", rest)) => (false, rest),
        Some(("v", rest)) => (true, rest),
        _ => return Err(wrong()),
    };
    let inner = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let (first, last) = match inner {
        Some(range) => range.split_once(':').ok_or_else(wrong)?,
        None => (rest, rest),
    };
    let register = |text: &str| text.parse::<u8>().map_err(|_| wrong());
    let (first, last) = (register(first)?, register(last)?);
    let is_known = first <= last && (is_vector || last < 106);
    match (is_known, is_vector) {
        (false, _) => Err(wrong()),
        (true, true) => Ok(Registers::Vector(first, last)),
        (true, false) => Ok(Registers::Scalar(first, last)),
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Offset(offset) => write!(formatter, "+{offset:#x}"),
            Location::Line(line) => write!(formatter, "line {line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood_or_complained_about() {
        assert_eq!(Command::parse("\n"), Ok(Command::Step(1)));
        assert_eq!(Command::parse("# note\n"), Ok(Command::Nothing));
        assert_eq!(Command::parse("s 5\n"), Ok(Command::Step(5)));
        assert_eq!(Command::parse("break +0x40"), Ok(Command::Break(Location::Offset(0x40))));
        assert_eq!(Command::parse("b 12"), Ok(Command::Break(Location::Line(12))));
        assert_eq!(Command::parse("p v[0:3]"), Ok(Command::Print(Registers::Vector(0, 3))));
        assert_eq!(Command::parse("p s105"), Ok(Command::Print(Registers::Scalar(105, 105))));
        assert_eq!(Command::parse("m 0x1000 4"), Ok(Command::Memory { va: 0x1000, dwords: 4 }));
        for wrong in ["jump", "p", "p s106", "p v[3:0]", "p é", "b x", "m 0xg", "s 1 2 3", "lds 99999999999"]
        {
            assert!(Command::parse(wrong).is_err(), "{wrong}");
        }
    }
}
