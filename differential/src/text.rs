//! Programs as C.
//!
//! Contract: the text is the same for the device and for the host, and needs only `differential.h` in addition. One
//! kernel per program, named by its index in the list.

use crate::program::{Call, Expression, Phase, Place, Program, Statement, Step, VARIABLES};
use crate::types::Type;
use std::fmt::{self, Write};

/// The header that the text includes.
pub const HEADER: &str = include_str!("../support/differential.h");
/// Name of the header.
pub const HEADER_NAME: &str = "differential.h";
/// Words of an item's own inputs: its variables begin with them.
const WORDS_PER_ITEM: u32 = 16;

/// Name of the kernel for the program at an index.
pub fn kernel_name(index: usize) -> String {
    format!("p{index}")
}

/// The source of a list of programs.
pub fn source(programs: &[Program]) -> String {
    let mut text = format!("#include \"{HEADER_NAME}\"\n");
    for (index, program) in programs.iter().enumerate() {
        // Writing to a string cannot fail.
        write_program(&mut text, &kernel_name(index), program).unwrap_or_default();
    }
    let names: Vec<String> = (0..programs.len()).map(kernel_name).collect();
    let names = names.join(", ");
    text.push_str("\n#ifndef __AMDGCN__\n");
    text.push_str("static void (*const programs[])(const u8 *, u8 *, u8 *) = {");
    text.push_str(&names);
    text.push_str(
        "};\nint main(void) { return run_all(programs, sizeof programs / sizeof *programs); }\n#endif\n",
    );
    text
}

fn variable(index: usize) -> String {
    format!("{}_{index}", VARIABLES[index].name())
}

fn write_program(text: &mut String, name: &str, program: &Program) -> fmt::Result {
    writeln!(text, "\n/* seed {} */\nstruct {name}_state {{", program.seed)?;
    for (index, kind) in VARIABLES.iter().enumerate() {
        writeln!(text, "    {} {};", kind.name(), variable(index))?;
    }
    writeln!(text, "}};\nPHASE_INLINE({name}, begin) {{")?;
    for (index, kind) in VARIABLES.iter().enumerate() {
        let words_of_item = u64::from(WORDS_PER_ITEM) * 32 / u64::from(kind.width_bits());
        let at = index as u64 % words_of_item;
        writeln!(
            text,
            "    s->{} = load_{}(in, item * {words_of_item} + {at});",
            variable(index),
            kind.name()
        )?;
    }
    writeln!(text, "}}\nPHASE_INLINE({name}, end) {{")?;
    for (index, kind) in VARIABLES.iter().enumerate() {
        writeln!(text, "    result_{}(out, {index}, s->{});", kind.name(), variable(index))?;
    }
    writeln!(text, "}}")?;
    let phases = program.steps.iter().enumerate().filter_map(|(at, step)| match step {
        Step::Phase(phase) => Some((at, phase)),
        _ => None,
    });
    for (at, phase) in phases {
        write_phase(text, name, at, phase)?;
    }
    writeln!(text, "KERNEL({name})\nPHASE({name}, begin)")?;
    for (at, step) in program.steps.iter().enumerate() {
        match step {
            Step::Phase(Phase { call: Call::Pointer(chooser), .. }) => {
                writeln!(text, "PHASE_CHOSEN({name}, {at}, {})", variable(*chooser))?;
            }
            Step::Phase(_) => writeln!(text, "PHASE({name}, {at})")?,
            Step::Cross { operation, to, from, index, immediate } => {
                let [to, from, index] = [to, from, index].map(|at| variable(*at));
                writeln!(text, "CROSS({operation}, {to}, {from}, {index}, {immediate})")?;
            }
            Step::Share { variable: shared, factor, offset } => {
                let kind = VARIABLES[*shared].name();
                writeln!(text, "SHARE({kind}, {}, {factor}, {offset})", variable(*shared))?;
            }
            Step::ShareAtomic { operation, value, index } => {
                writeln!(text, "SHARED_SUM({operation}, {}, {})", variable(*value), variable(*index))?;
            }
            Step::Together { operation, to, from, order, number } => {
                let [to, from] = [to, from].map(|at| variable(*at));
                writeln!(text, "{operation}({at}, {to}, {from}, {order}, {number}u)")?;
            }
        }
    }
    writeln!(text, "PHASE({name}, end)\nEND_KERNEL")
}

fn write_phase(text: &mut String, name: &str, at: usize, phase: &Phase) -> fmt::Result {
    if let Call::Pointer(chooser) = phase.call {
        writeln!(text, "PHASE_BESIDE({name}, {at}, {})", variable(chooser))?;
    }
    let how = if phase.call == Call::Inline { "INLINE" } else { "CALLED" };
    writeln!(text, "PHASE_{how}({name}, {at}) {{")?;
    let mut body = String::new();
    write_block(&mut body, &phase.body, 1)?;
    if body.contains("local[") {
        let words = phase.private_words;
        writeln!(text, "    enum {{ WORDS = {words} }};")?;
        writeln!(text, "    u32 local[WORDS];\n    shift_words(local, WORDS, s->{});", variable(0))?;
    }
    writeln!(text, "{body}}}")
}

fn write_block(text: &mut String, block: &[Statement], depth: usize) -> fmt::Result {
    block.iter().try_for_each(|statement| write_statement(text, statement, depth))
}

fn write_statement(text: &mut String, statement: &Statement, depth: usize) -> fmt::Result {
    let indent = "    ".repeat(depth);
    match statement {
        Statement::Assign(target, value) => {
            writeln!(text, "{indent}s->{} = {};", variable(*target), Text(value))
        }
        Statement::If(condition, then, otherwise) => {
            writeln!(text, "{indent}if ({} & 1) {{", Text(condition))?;
            write_block(text, then, depth + 1)?;
            if !otherwise.is_empty() {
                writeln!(text, "{indent}}} else {{")?;
                write_block(text, otherwise, depth + 1)?;
            }
            writeln!(text, "{indent}}}")
        }
        Statement::Loop(counter, turns, body) => {
            let count = Text(turns);
            writeln!(
                text,
                "{indent}for (u32 c{counter} = 0, n = {count} & 7; c{counter} < n; c{counter}++) {{"
            )?;
            write_block(text, body, depth + 1)?;
            writeln!(text, "{indent}}}")
        }
        Statement::Switch(value, arms) => {
            writeln!(text, "{indent}switch ({} % {}) {{", Text(value), arms.len().max(1))?;
            for (index, arm) in arms.iter().enumerate() {
                writeln!(text, "{indent}case {index}:")?;
                write_block(text, arm, depth + 1)?;
                writeln!(text, "{indent}    break;")?;
            }
            writeln!(text, "{indent}}}")
        }
        Statement::Store(kind, index, value) => {
            writeln!(text, "{indent}store_{}(out, {}, {});", kind.name(), Text(index), Text(value))
        }
        Statement::StoreQuad(index, [first, second]) => {
            writeln!(text, "{indent}store_quad(out, {}, {}, {});", Text(index), Text(first), Text(second))
        }
        Statement::StorePrivate(index, value) => {
            writeln!(text, "{indent}local[{} % WORDS] = {};", Text(index), Text(value))
        }
        Statement::Atomic(name, kind, index, value) => {
            let kind = kind.name();
            writeln!(text, "{indent}atomic_{name}_{kind}(acc, {}, {});", Text(index), Text(value))
        }
    }
}

/// An expression as C.
struct Text<'a>(&'a Expression);

impl fmt::Display for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expression::Constant(kind, bits) => match kind {
                Type::F16 => write!(formatter, "make_f16({bits:#x})"),
                Type::F32 => write!(formatter, "make_f32({bits:#x}u)"),
                Type::F64 => write!(formatter, "make_f64({bits:#x}ul)"),
                kind => write!(formatter, "({}){bits:#x}ul", kind.name()),
            },
            Expression::Variable(index) => write!(formatter, "s->{}", variable(*index)),
            Expression::Counter(depth) => write!(formatter, "c{depth}"),
            Expression::Item => formatter.write_str("item"),
            Expression::Operation(operator, operands) => {
                write!(formatter, "{}(", operator.name)?;
                for (index, operand) in operands.iter().enumerate() {
                    write!(formatter, "{}{}", if index > 0 { ", " } else { "" }, Text(operand))?;
                }
                formatter.write_str(")")
            }
            Expression::Load(place, kind, index) => {
                let (stem, memory) = match place {
                    Place::Input => ("load", "in"),
                    Place::Patch => ("patch", "out"),
                    Place::Shared => ("shared", "lds"),
                };
                write!(formatter, "{stem}_{}({memory}, {})", kind.name(), Text(index))
            }
            Expression::LoadQuad(operands) => {
                write!(formatter, "load_quad(in, {}, {})", Text(&operands[0]), Text(&operands[1]))
            }
            Expression::LoadEither(operands) => {
                write!(formatter, "load_either(in, lds, {}, {})", Text(&operands[0]), Text(&operands[1]))
            }
            Expression::Private(index) => write!(formatter, "local[{} % WORDS]", Text(index)),
        }
    }
}

#[cfg(test)]
mod tests;
