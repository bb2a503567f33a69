//! The commands of `zrt step`.
//!
//! Contract: parsing never panics; a complaint says what was expected.

use zrt_script::ElementType;

/// What `help` prints.
pub const HELP: &str = "\
step [N]                 execute N instructions of this wave (s, empty line)
next                     execute one instruction; run a call until it returns (n)
finish                   run until this function has returned to its caller
continue                 run to a breakpoint or a watchpoint (c)
break PLACE              stop at +OFFSET of the kernel, FUNCTION+OFFSET, LINE or FILE:LINE (b)
delete                   remove all breakpoints
watch WHAT [BYTES] [TYPE]  stop when memory (data, data+0x40, an address) or a register of this wave changes; without WHAT: list
unwatch [NUMBER]         remove a watchpoint, or all
follow                   run, and follow the wave that reaches a breakpoint first
wave X,Y,Z [WAVE]        run to the next instruction of another wave, and follow that wave
lane N | lane all        print and set only this lane of vector registers, or all of them
where                    print this instruction, wave and source line (w)
backtrace                print the calls that this wave is in (bt)
list                     print the instructions from here on (l)
print REGISTER [TYPE]    print s4, s[4:7], v3, v[0:3], exec, vcc, scc, m0, mode; registers as f32, bf16, i8, f64 ... (p)
registers [all]          print exec, vcc, scc, m0, mode and the scalar registers; all: the vector registers too
set WHAT [TYPE] VALUE    set a register or memory: set v3 1.5f32, set s4 = 0x10, set data+0x40 f32 2.0
arguments                print the buffers of the arguments
memory PLACE [N] [TYPE]  print N dwords, or numbers of a type, at an address or in an argument: data, data+0x40, arg0+0x40 (m)
lds OFFSET [N] [TYPE]    the same for LDS
detach                   run to the end (quit, q)";

/// Maximum number of dwords or numbers that a command prints.
const COUNT_MAX: u32 = 1024;
/// Maximum number of bytes of memory that a watchpoint has.
const WATCHED_BYTES_MAX: u32 = 256;
/// What `memory` and `lds` print by default.
const COUNT_DEFAULT: u32 = 16;

/// Where to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Offset from the kernel's first instruction, in bytes.
    Offset(u64),
    /// Offset from a function's first instruction, in bytes.
    Function(String, u64),
    /// Line of the source; of any file, or of those whose path ends like this.
    Line(Option<String>, u32),
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

/// A place in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPlace {
    /// An address.
    Address(u64),
    /// Bytes into the buffer of an argument, by its name or `argN`.
    Argument(String, u64),
}

/// What memory is printed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Dwords, or numbers of the type.
    pub count: u32,
    /// Their type; dwords in hexadecimal without one.
    pub element: Option<ElementType>,
}

/// What is watched or set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Registers.
    Registers(Registers),
    /// Memory.
    Memory(MemoryPlace),
}

/// A number as it is in memory, of 1, 2, 4 or 8 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(Vec<u8>);

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Nothing,
    Step(u64),
    Next,
    Finish,
    Continue,
    Break(Location),
    Delete,
    /// The target as its user writes it, its bytes (memory) and how it is printed.
    Watch(String, Target, u32, Option<ElementType>),
    Watches,
    Unwatch(Option<u32>),
    Follow,
    Wave([u32; 3], u32),
    Lane(Option<u32>),
    Where,
    Backtrace,
    List,
    Print(Registers, Option<ElementType>),
    /// The vector registers too.
    Registers(bool),
    Set(Target, Number),
    Arguments,
    Memory(MemoryPlace, Format),
    Lds(u32, Format),
    Detach,
    Help,
}

impl Command {
    /// Parses a line of input.
    pub fn parse(line: &str) -> Result<Command, String> {
        let line = line.trim_end_matches(['\r', '\n']);
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(verb) = words.next() else {
            return Ok(if line.is_empty() { Command::Step(1) } else { Command::Nothing });
        };
        let mut rest: Vec<&str> = words.collect();
        if verb == "set" {
            rest.retain(|word| *word != "=");
        }
        let most = match verb {
            "m" | "memory" | "lds" | "watch" | "set" => 3,
            "p" | "print" | "wave" => 2,
            _ => 1,
        };
        if rest.len() > most {
            return Err(format!("{verb} has too many operands; try help"));
        }
        let first = rest.first().copied();
        let need = || first.ok_or_else(|| format!("{verb} needs an operand; try help"));
        Ok(match verb {
            "s" | "step" => Command::Step(first.map_or(Ok(1), number)?.max(1)),
            "c" | "continue" => Command::Continue,
            "b" | "break" => Command::Break(location(need()?)?),
            "n" | "next" => Command::Next,
            "finish" => Command::Finish,
            "delete" => Command::Delete,
            "watch" if rest.is_empty() => Command::Watches,
            "watch" => watch(need()?, &rest[1..])?,
            "unwatch" => Command::Unwatch(first.map(small).transpose()?),
            "follow" => Command::Follow,
            "wave" => Command::Wave(group(need()?)?, rest.get(1).map_or(Ok(0), |wave| small(wave))?),
            "lane" => Command::Lane(if need()? == "all" { None } else { Some(small(need()?)?) }),
            "w" | "where" => Command::Where,
            "bt" | "backtrace" => Command::Backtrace,
            "l" | "list" => Command::List,
            "registers" if first.is_none_or(|word| word == "all") => Command::Registers(first.is_some()),
            "registers" => {
                return Err("registers takes no operand but all; print shows single registers".to_owned());
            }
            "set" => Command::Set(target(need()?)?, value(&rest[1..])?),
            "p" | "print" => {
                Command::Print(registers(need()?)?, rest.get(1).map(|name| element(name)).transpose()?)
            }
            "arguments" => Command::Arguments,
            "m" | "memory" => Command::Memory(memory_place(need()?)?, format(&rest[1..])?),
            "lds" => Command::Lds(small(need()?)?, format(&rest[1..])?),
            "q" | "quit" | "detach" => Command::Detach,
            "h" | "help" => Command::Help,
            _ => return Err(format!("there is no command {verb:?}; try help")),
        })
    }
}

impl Number {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// One dword, or two if it has 64 bits; narrower numbers are padded with zeros.
    pub fn words(&self) -> Vec<u32> {
        let word = |bytes: &[u8]| {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            u32::from_le_bytes(word)
        };
        self.0.chunks(4).map(word).collect()
    }
}

/// A register by its name; anything else is a place in memory.
fn target(text: &str) -> Result<Target, String> {
    match registers(text) {
        Ok(registers) => Ok(Target::Registers(registers)),
        Err(_) => memory_place(text).map(Target::Memory),
    }
}

fn watch(name: &str, words: &[&str]) -> Result<Command, String> {
    let target = target(name)?;
    let is_memory = matches!(target, Target::Memory(_));
    let (bytes, name_of_type) = match *words {
        [] => (None, None),
        [word] if word.starts_with(|first: char| first.is_ascii_digit()) => (Some(small(word)?), None),
        [word] => (None, Some(word)),
        [bytes, word, ..] => (Some(small(bytes)?), Some(word)),
    };
    let element = name_of_type.map(element).transpose()?;
    let width = element.map_or(1, |element| element.bytes() as u32);
    let bytes = match bytes {
        Some(_) if !is_memory => return Err(format!("{name} is a register, which has no bytes to choose")),
        Some(bytes) if bytes == 0 || bytes > WATCHED_BYTES_MAX || bytes % width != 0 => {
            return Err(format!("1 to {WATCHED_BYTES_MAX} bytes can be watched, a whole number of elements"));
        }
        bytes => bytes.unwrap_or(width.max(4)),
    };
    if !is_memory && width == 8 {
        return Err("registers are printed in dwords: give a type of 8 to 32 bits".to_owned());
    }
    Ok(Command::Watch(name.to_owned(), target, bytes, element))
}

/// `VALUE`, `TYPE VALUE`; a value may be followed by its type: `1.5f32`.
fn value(words: &[&str]) -> Result<Number, String> {
    let (name, text) = match *words {
        [text] => (None, text),
        [name, text] => (Some(name), text),
        _ => return Err("set needs a target and a value; try help".to_owned()),
    };
    let wrong = || format!("{text:?} is not a number that fits");
    if let Some(name) = name {
        return element(name)?.encode(text).map(Number).ok_or_else(wrong);
    }
    let with_type = ElementType::ALL.into_iter().find_map(|element| {
        let digits = text.strip_suffix(element.name())?;
        element.encode(digits)
    });
    let plain =
        || [ElementType::U32, ElementType::I32, ElementType::U64].iter().find_map(|of| of.encode(text));
    with_type.or_else(plain).map(Number).ok_or_else(wrong)
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("{text:?} is not a number"))
}

fn small(text: &str) -> Result<u32, String> {
    u32::try_from(number(text)?).map_err(|_| format!("{text} is too large"))
}

fn element(name: &str) -> Result<ElementType, String> {
    ElementType::named(name).ok_or_else(|| {
        let names: Vec<&str> = ElementType::ALL.iter().map(|element| element.name()).collect();
        format!("{name:?} is not a type: {}", names.join(", "))
    })
}

/// The words after a place: a count, a type, or both.
fn format(words: &[&str]) -> Result<Format, String> {
    let (count, name) = match *words {
        [] => (None, None),
        [word] if word.starts_with(|first: char| first.is_ascii_digit()) => (Some(word), None),
        [word] => (None, Some(word)),
        [count, name, ..] => (Some(count), Some(name)),
    };
    Ok(Format {
        count: count.map_or(Ok(COUNT_DEFAULT), small)?.min(COUNT_MAX),
        element: name.map(element).transpose()?,
    })
}

fn group(text: &str) -> Result<[u32; 3], String> {
    let wrong = || format!("{text:?} is not a workgroup: write 2 or 2,0,1");
    let mut ids = [0; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > ids.len() {
        return Err(wrong());
    }
    for (id, part) in ids.iter_mut().zip(parts) {
        *id = part.parse().map_err(|_| wrong())?;
    }
    Ok(ids)
}

fn location(text: &str) -> Result<Location, String> {
    match (text.rsplit_once('+'), text.rsplit_once(':')) {
        (Some(("", offset)), _) => number(offset).map(Location::Offset),
        (_, Some((file, line))) if !file.is_empty() => {
            Ok(Location::Line(Some(file.to_owned()), small(line)?))
        }
        (Some((name, offset)), _) => Ok(Location::Function(name.to_owned(), number(offset)?)),
        (None, _) if text.starts_with(|first: char| first.is_ascii_digit()) => {
            small(text).map(|line| Location::Line(None, line))
        }
        _ => Ok(Location::Function(text.to_owned(), 0)),
    }
}

fn memory_place(text: &str) -> Result<MemoryPlace, String> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return number(text).map(MemoryPlace::Address);
    }
    match text.rsplit_once('+') {
        Some((name, offset)) => Ok(MemoryPlace::Argument(name.to_owned(), number(offset)?)),
        None => Ok(MemoryPlace::Argument(text.to_owned(), 0)),
    }
}

fn registers(text: &str) -> Result<Registers, String> {
    let wrong = || format!("{text:?} is not a register: s4, s[4:7], v3, v[0:3], exec, vcc, scc, m0, mode");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood_or_complained_about() {
        let dwords = |count| Format { count, element: None };
        let floats = |count| Format { count, element: Some(ElementType::F32) };
        let line = |file: Option<&str>, line| Command::Break(Location::Line(file.map(str::to_owned), line));
        let function = |name: &str, offset| Command::Break(Location::Function(name.to_owned(), offset));
        let argument = |name: &str, offset| MemoryPlace::Argument(name.to_owned(), offset);
        let watch = |name: &str, target, bytes, element| Command::Watch(name.into(), target, bytes, element);
        let set =
            |registers, bytes: &[u8]| Command::Set(Target::Registers(registers), Number(bytes.to_vec()));
        for (text, command) in [
            ("\n", Command::Step(1)),
            ("# note\n", Command::Nothing),
            ("s 5\n", Command::Step(5)),
            ("break +0x40", Command::Break(Location::Offset(0x40))),
            ("b 12", line(None, 12)),
            ("b k.c:12", line(Some("k.c"), 12)),
            ("b dir/k+1.c:12", line(Some("dir/k+1.c"), 12)),
            ("b matmul+0x58", function("matmul", 0x58)),
            ("b matmul", function("matmul", 0)),
            ("p v[0:3]", Command::Print(Registers::Vector(0, 3), None)),
            ("p s105", Command::Print(Registers::Scalar(105, 105), None)),
            ("p v2 f32", Command::Print(Registers::Vector(2, 2), Some(ElementType::F32))),
            ("m 0x1000 4", Command::Memory(MemoryPlace::Address(0x1000), dwords(4))),
            ("m data", Command::Memory(argument("data", 0), dwords(16))),
            ("m data+0x40 4 f32", Command::Memory(argument("data", 0x40), floats(4))),
            ("m arg0 f32", Command::Memory(argument("arg0", 0), floats(16))),
            ("lds 64 99999", Command::Lds(64, dwords(1024))),
            ("wave 2", Command::Wave([2, 0, 0], 0)),
            ("wave 2,1,3 5", Command::Wave([2, 1, 3], 5)),
            ("lane 7", Command::Lane(Some(7))),
            ("lane all", Command::Lane(None)),
            ("arguments", Command::Arguments),
            ("n", Command::Next),
            ("bt", Command::Backtrace),
            ("registers", Command::Registers(false)),
            ("registers all", Command::Registers(true)),
            ("watch", Command::Watches),
            ("unwatch", Command::Unwatch(None)),
            ("unwatch 2", Command::Unwatch(Some(2))),
            ("watch v3", watch("v3", Target::Registers(Registers::Vector(3, 3)), 4, None)),
            ("watch exec", watch("exec", Target::Registers(Registers::Exec), 4, None)),
            ("watch data+0x40 16", watch("data+0x40", Target::Memory(argument("data", 0x40)), 16, None)),
            ("watch data f64", watch("data", Target::Memory(argument("data", 0)), 8, Some(ElementType::F64))),
            ("set s4 0x10", set(Registers::Scalar(4, 4), &[0x10, 0, 0, 0])),
            ("set v3 = 1.5f32", set(Registers::Vector(3, 3), &[0, 0, 0xC0, 0x3F])),
            ("set s4 = -1", set(Registers::Scalar(4, 4), &[0xFF; 4])),
            ("set s4 1bf16", set(Registers::Scalar(4, 4), &[0x80, 0x3F])),
            ("set s4 0x1f32", set(Registers::Scalar(4, 4), &[0x32, 0x1F, 0, 0])),
            ("set exec 0x100000001", set(Registers::Exec, &[1, 0, 0, 0, 1, 0, 0, 0])),
            (
                "set data+0x40 f32 2.0",
                Command::Set(Target::Memory(argument("data", 0x40)), Number(vec![0, 0, 0, 0x40])),
            ),
        ] {
            assert_eq!(Command::parse(text), Ok(command), "{text}");
        }
        for wrong in [
            "jump",
            "p",
            "p s106",
            "p v[3:0]",
            "p é",
            "p v0 f8",
            "b",
            "b 1x",
            "b +x",
            "b k.c:",
            "b f+",
            "m 0xg",
            "m data+",
            "m data 4 f8",
            "s 1 2 3",
            "lds 99999999999",
            "wave",
            "wave x",
            "wave 1,2,3,4",
            "wave 1 2 3",
            "lane",
            "lane x",
            "watch v3 4",
            "watch data 0",
            "watch data 257",
            "watch data 6 f32",
            "watch data 4 f8",
            "watch v3 f64",
            "unwatch x",
            "registers v0",
            "set",
            "set v3",
            "set v3 x",
            "set v3 u8 256",
            "set v3 f8 1",
            "set s4 0x10000000000000000",
            "finish 1 2",
        ] {
            assert!(Command::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Every verb by its long and its short name.
    #[test]
    fn each_command_has_its_names() {
        for (names, command) in [
            ("s|step|\r\n|s 1|step 0|s 0x1", Command::Step(1)),
            ("s 0x10|step 16", Command::Step(16)),
            ("s 18446744073709551615", Command::Step(u64::MAX)),
            (" |\t# note|#", Command::Nothing),
            ("n|next", Command::Next),
            ("finish", Command::Finish),
            ("c|continue|c # go", Command::Continue),
            ("delete", Command::Delete),
            ("follow", Command::Follow),
            ("w|where", Command::Where),
            ("bt|backtrace", Command::Backtrace),
            ("l|list", Command::List),
            ("q|quit|detach", Command::Detach),
            ("h|help", Command::Help),
            ("p exec|print exec", Command::Print(Registers::Exec, None)),
            ("p vcc", Command::Print(Registers::Vcc, None)),
            ("p scc", Command::Print(Registers::Scc, None)),
            ("p m0", Command::Print(Registers::M0, None)),
            ("p mode", Command::Print(Registers::Mode, None)),
            ("p s[0:105]", Command::Print(Registers::Scalar(0, 105), None)),
            ("p v255|p v[255:255]", Command::Print(Registers::Vector(255, 255), None)),
            ("lane 0x1f", Command::Lane(Some(31))),
            ("wave 4294967295,0 1", Command::Wave([u32::MAX, 0, 0], 1)),
            ("b 0x10", Command::Break(Location::Line(None, 16))),
            ("b :12", Command::Break(Location::Function(":12".to_owned(), 0))),
        ] {
            for name in names.split('|') {
                assert_eq!(Command::parse(name), Ok(command.clone()), "{name:?}");
            }
        }
    }

    #[test]
    fn a_complaint_says_what_was_expected() {
        for (line, complaint) in [
            ("jump", "there is no command \"jump\"; try help"),
            ("s 1 2", "s has too many operands; try help"),
            ("print v0 f32 x", "print has too many operands; try help"),
            ("watch a 1 f32 x", "watch has too many operands; try help"),
            ("b", "b needs an operand; try help"),
            ("s x", "\"x\" is not a number"),
            ("lds 4294967296", "4294967296 is too large"),
            ("registers v0", "registers takes no operand but all; print shows single registers"),
            ("p s106", "\"s106\" is not a register: s4, s[4:7], v3, v[0:3], exec, vcc, scc, m0, mode"),
            ("wave 1,x", "\"1,x\" is not a workgroup: write 2 or 2,0,1"),
            ("watch v3 4", "v3 is a register, which has no bytes to choose"),
            ("watch data 257", "1 to 256 bytes can be watched, a whole number of elements"),
            ("watch v3 f64", "registers are printed in dwords: give a type of 8 to 32 bits"),
            ("set v3", "set needs a target and a value; try help"),
            ("set v3 x", "\"x\" is not a number that fits"),
        ] {
            assert_eq!(Command::parse(line), Err(complaint.to_owned()), "{line}");
        }
        let types = Command::parse("p v0 f8").unwrap_err();
        assert!(types.starts_with("\"f8\" is not a type: ") && types.contains("bf16, "), "{types}");
    }

    /// What is watched and printed has the width that its type has, or the one that is asked for.
    #[test]
    fn memory_is_counted_in_bytes_or_numbers() {
        let watched = |line: &str| match Command::parse(line) {
            Ok(Command::Watch(_, _, bytes, element)) => (bytes, element.map(ElementType::name)),
            other => panic!("{line}: {other:?}"),
        };
        for (line, expected) in [
            ("watch data", (4, None)),
            ("watch data 1", (1, None)),
            ("watch data 256", (256, None)),
            ("watch data u8", (4, Some("u8"))),
            ("watch data f64", (8, Some("f64"))),
            ("watch data 0x10 f32", (16, Some("f32"))),
            ("watch v3 u16", (4, Some("u16"))),
        ] {
            assert_eq!(watched(line), expected, "{line}");
        }
        let printed = |line: &str| match Command::parse(line) {
            Ok(Command::Lds(offset, Format { count, element })) => {
                (offset, count, element.map(ElementType::name))
            }
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(printed("lds 0"), (0, 16, None));
        assert_eq!(printed("lds 4 1024"), (4, 1024, None));
        assert_eq!(printed("lds 4 1025 f16"), (4, 1024, Some("f16")));
        assert_eq!(printed("lds 0x8 f64"), (8, 16, Some("f64")));
    }

    /// Dwords are little-endian; narrower numbers have zeros above, wider ones a second dword.
    #[test]
    fn numbers_are_words() {
        let words = |line: &str| match Command::parse(line) {
            Ok(Command::Set(_, number)) => number.words(),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(words("set v0 u8 200"), [200]);
        assert_eq!(words("set v0 i16 -2"), [0xfffe]);
        assert_eq!(words("set v0 0x12345678"), [0x1234_5678]);
        assert_eq!(words("set v0 0x123456789abcdef0"), [0x9abc_def0, 0x1234_5678]);
        assert_eq!(words("set v0 = f64 1.0"), [0, 0x3ff0_0000]);
        assert_eq!(words("set v0 4294967295"), [u32::MAX]);
        assert_eq!(words("set v0 4294967296"), [0, 1]);
    }
}
