//! Programs and inputs from seeds.
//!
//! Contract: the same seed produces the same program and the same inputs everywhere. A program is bounded: at most
//! [`STEPS_MAX`] steps between its first phase and its last, [`STATEMENTS_MAX`] statements per phase, loops of at most
//! 7 iterations nested at most twice.

use crate::operators::{
    ATOMIC_TYPES, ATOMICS, CROSSES, GATHERINGS, GROUP_ORDERS, MEETINGS, ORDERS, operators_of,
};
use crate::program::{Call, Expression, Phase, Place, Program, Statement, Step, VARIABLES};
use crate::random::Random;
use crate::types::Type;

/// Most steps of a program between its first phase and its last; the header allows [`toolchain::STEPS_MAX`] in all.
///
/// [`toolchain::STEPS_MAX`]: crate::toolchain::STEPS_MAX
pub const STEPS_MAX: u32 = 7;
const _: () = assert!(STEPS_MAX as usize + 2 <= crate::toolchain::STEPS_MAX);
/// Most statements of a phase, nested ones not counted.
pub const STATEMENTS_MAX: u32 = 6;
/// Deepest expression.
const EXPRESSION_DEPTH_MAX: u32 = 4;
/// Deepest nesting of statements.
const BLOCK_DEPTH_MAX: u32 = 2;
/// Words of a private array: the usual size and the other one.
const PRIVATE_WORDS: u32 = 16;
const PRIVATE_WORDS_MAX: u32 = 128;
/// Types of values in inputs.
const INPUT_TYPES: [Type; 6] = [Type::U32, Type::U64, Type::F32, Type::F64, Type::F16, Type::U32];
/// Number of u32 variables; exchanges use these.
const U32_VARIABLES: u32 = 4;

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let mut generator = Generator { random: Random::new(seed), loops: 0, budget: 0 };
    let mut steps = vec![generator.phase()];
    let count = 1 + generator.random.below(STEPS_MAX);
    for _ in 0..count {
        let step = match generator.random.below(12) {
            0..3 => generator.phase(),
            3..6 => generator.cross(),
            6 => generator.share(),
            7 => generator.share_atomic(),
            8..10 => generator.meeting(),
            _ => generator.gathering(),
        };
        steps.push(step);
    }
    steps.push(generator.phase());
    Program { seed, steps }
}

/// The input buffer of a seed: `bytes` bytes, in which edge-case values are more frequent than by chance.
pub fn inputs(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(!seed);
    let mut buffer = Vec::with_capacity(bytes + 8);
    while buffer.len() < bytes {
        let kind = *random.choose(&INPUT_TYPES);
        let bits = constant(&mut random, kind).to_le_bytes();
        let (count, width) = match kind {
            Type::F16 => (2, 2),
            Type::U64 | Type::F64 if buffer.len() % 8 == 0 => (1, 8),
            _ => (1, 4),
        };
        (0..count).for_each(|_| buffer.extend_from_slice(&bits[..width]));
    }
    buffer.truncate(bytes);
    buffer
}

/// A value of a type as bits; half of the time an edge case.
fn constant(random: &mut Random, kind: Type) -> u64 {
    let width = kind.width_bits();
    let mask = u64::MAX >> (64 - width);
    let (exponent_bits, fraction_bits): (u32, u32) = match kind {
        Type::F16 => (5, 10),
        Type::F32 => (8, 23),
        Type::F64 => (11, 52),
        _ => {
            let edge = 1u64 << random.below(width);
            return mask
                & match random.below(8) {
                    0 => u64::from(random.below(16)),
                    1 => u64::from(random.below(16)).wrapping_neg(),
                    2 => edge,
                    3 => edge - 1,
                    4 => edge.wrapping_neg(),
                    5 => u64::from(random.below(256)),
                    _ => random.bits(),
                };
        }
    };
    let sign = u64::from(random.one_in(2)) << (width - 1);
    let fraction = random.bits() & ((1 << fraction_bits) - 1);
    let exponent_max = (1u64 << exponent_bits) - 1;
    let bias = exponent_max / 2;
    let with = |exponent: u64, fraction: u64| sign | exponent << fraction_bits | fraction;
    match random.below(16) {
        0 => with(0, 0),
        1 => with(0, fraction),
        2 => with(exponent_max, 0),
        3 => with(exponent_max, fraction | 1),
        4 => with(bias, 0),
        5 => with(exponent_max - 1, (1 << fraction_bits) - 1),
        6 => with(1, u64::from(random.below(3))),
        // Halves and small integers, for roundings and ties.
        7 | 8 => with(bias + u64::from(random.below(4)), fraction & (3 << (fraction_bits - 3))),
        9 => with(bias + u64::from(random.below(bias as u32)), fraction),
        10 => with(u64::from(random.below(exponent_max as u32)), fraction),
        11 => with(bias + u64::from(fraction_bits) - 2 + u64::from(random.below(4)), fraction),
        _ => with(bias - 4 + u64::from(random.below(9)), fraction),
    }
}

struct Generator {
    random: Random,
    /// Loops around the current position.
    loops: usize,
    /// Operations that the current statement may still use.
    budget: u32,
}

impl Generator {
    fn phase(&mut self) -> Step {
        let call = match self.random.below(16) {
            0 | 1 => Call::Function,
            2 => Call::Pointer(self.u32_variable()),
            _ => Call::Inline,
        };
        let private_words = if self.random.one_in(8) { PRIVATE_WORDS_MAX } else { PRIVATE_WORDS };
        let count = 2 + self.random.below(STATEMENTS_MAX - 1);
        Step::Phase(Phase { call, private_words, body: self.block(count, 0) })
    }

    fn u32_variable(&mut self) -> usize {
        self.random.below(U32_VARIABLES) as usize
    }

    fn cross(&mut self) -> Step {
        Step::Cross {
            operation: self.random.choose::<&str>(CROSSES),
            to: self.u32_variable(),
            from: self.u32_variable(),
            index: self.u32_variable(),
            immediate: self.random.bits() as u32 & 0x7FFF_FFFF,
        }
    }

    fn share(&mut self) -> Step {
        Step::Share {
            variable: self.random.below(VARIABLES.len() as u32) as usize,
            factor: self.random.below(32) * 2 + 1,
            offset: self.random.below(64),
        }
    }

    fn share_atomic(&mut self) -> Step {
        Step::ShareAtomic {
            operation: self.random.choose::<&str>(ATOMICS),
            value: self.u32_variable(),
            index: self.u32_variable(),
        }
    }

    fn meeting(&mut self) -> Step {
        let operation = *self.random.choose(MEETINGS);
        let is_of_group = operation == "LANES" && self.random.one_in(2);
        let order = *self.random.choose(if is_of_group { GROUP_ORDERS } else { ORDERS });
        self.together(operation, order)
    }

    fn gathering(&mut self) -> Step {
        let operation = *self.random.choose(GATHERINGS);
        self.together(operation, "none")
    }

    fn together(&mut self, operation: &'static str, order: &'static str) -> Step {
        let (to, from) = (self.u32_variable(), self.u32_variable());
        Step::Together { operation, to, from, order, number: self.random.bits() as u32 & 0x7FFF_FFFF }
    }

    fn block(&mut self, count: u32, depth: u32) -> Vec<Statement> {
        (0..count).map(|_| self.statement(depth)).collect()
    }

    fn inner(&mut self, depth: u32) -> Vec<Statement> {
        let count = 1 + self.random.below(2);
        self.block(count, depth + 1)
    }

    fn statement(&mut self, depth: u32) -> Statement {
        let choice = self.random.below(if depth < BLOCK_DEPTH_MAX { 16 } else { 12 });
        match choice {
            0..8 => {
                let variable = self.random.below(VARIABLES.len() as u32) as usize;
                Statement::Assign(variable, self.root(VARIABLES[variable]))
            }
            8 => {
                let kind = *self.random.choose(&Type::ALL);
                Statement::Store(kind, self.root(Type::U32), self.root(kind))
            }
            9 if self.random.one_in(2) => {
                Statement::StoreQuad(self.root(Type::U32), [self.root(Type::U32), self.root(Type::U32)])
            }
            9 | 10 => Statement::StorePrivate(self.root(Type::U32), self.root(Type::U32)),
            11 => {
                let name = *self.random.choose(ATOMICS);
                let signed = matches!(name, "min" | "max");
                let kind = ATOMIC_TYPES[self.random.below(if signed { 4 } else { 2 }) as usize];
                Statement::Atomic(name, kind, self.root(Type::U32), self.root(kind))
            }
            12 | 13 => {
                let condition = self.root(Type::U32);
                let then = self.inner(depth);
                let otherwise = if self.random.one_in(2) { self.inner(depth) } else { Vec::new() };
                Statement::If(condition, then, otherwise)
            }
            14 => {
                let turns = self.root(Type::U32);
                let counter = self.loops;
                self.loops += 1;
                let body = self.inner(depth);
                self.loops -= 1;
                Statement::Loop(counter, turns, body)
            }
            _ => {
                let value = self.root(Type::U32);
                let arms = 2 + self.random.below(5);
                Statement::Switch(value, (0..arms).map(|_| self.block(1, depth + 1)).collect())
            }
        }
    }

    fn root(&mut self, kind: Type) -> Expression {
        self.budget = 12;
        let depth = 1 + self.random.below(EXPRESSION_DEPTH_MAX);
        self.expression(kind, depth)
    }

    fn expression(&mut self, kind: Type, depth: u32) -> Expression {
        if depth == 0 || self.budget == 0 || self.random.one_in(6) {
            return self.leaf(kind);
        }
        self.budget -= 1;
        let operator = *self.random.choose(operators_of(kind));
        let operands = operator.operands.iter().map(|kind| self.expression(*kind, depth - 1)).collect();
        Expression::Operation(operator, operands)
    }

    fn leaf(&mut self, kind: Type) -> Expression {
        match self.random.below(12) {
            0 | 1 => Expression::Constant(kind, constant(&mut self.random, kind)),
            2 => {
                let place = *self.random.choose(&[Place::Input, Place::Patch, Place::Shared]);
                Expression::Load(place, kind, Box::new(self.index()))
            }
            3 if kind == Type::U32 => match self.random.below(5) {
                0 => Expression::Item,
                4 => Expression::LoadEither(Box::new([self.index(), self.index()])),
                1 => Expression::LoadQuad(Box::new([self.index(), self.index()])),
                2 if self.loops > 0 => Expression::Counter(self.random.below(self.loops as u32) as usize),
                _ => Expression::Private(Box::new(self.index())),
            },
            _ => self.variable(kind),
        }
    }

    fn variable(&mut self, kind: Type) -> Expression {
        let of_kind: Vec<usize> =
            (0..VARIABLES.len()).filter(|variable| VARIABLES[*variable] == kind).collect();
        Expression::Variable(*self.random.choose(&of_kind))
    }

    fn index(&mut self) -> Expression {
        let variable = Expression::Variable(self.u32_variable());
        if self.budget == 0 || self.random.one_in(2) {
            return variable;
        }
        self.budget -= 1;
        let operator = *self.random.choose(operators_of(Type::U32));
        let operands = operator.operands.iter().map(|kind| self.variable(*kind)).collect();
        Expression::Operation(operator, operands)
    }
}

#[cfg(test)]
mod tests;
