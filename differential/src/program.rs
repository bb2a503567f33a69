//! Programs as trees: typed expressions, statements, and the steps of a workgroup.
//!
//! Contract: every tree has a meaning for every input: indices are taken modulo what there is, loops are bounded, no
//! operation has an undefined case (`support/differential.h`). What needs all lanes (exchange between lanes, LDS
//! stores, barriers) is a [`Step`], outside any condition. The walks visit nodes in one fixed order.

use crate::operators::Operator;

/// Types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Type {
    U8,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 9] =
        [Type::U8, Type::U16, Type::I32, Type::U32, Type::I64, Type::U64, Type::F16, Type::F32, Type::F64];

    /// Its name in C.
    pub const fn name(self) -> &'static str {
        match self {
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::I32 => "i32",
            Type::U32 => "u32",
            Type::I64 => "i64",
            Type::U64 => "u64",
            Type::F16 => "f16",
            Type::F32 => "f32",
            Type::F64 => "f64",
        }
    }

    /// Bits of a value.
    pub const fn width_bits(self) -> u32 {
        match self {
            Type::U8 => 8,
            Type::U16 | Type::F16 => 16,
            Type::I32 | Type::U32 | Type::F32 => 32,
            Type::I64 | Type::U64 | Type::F64 => 64,
        }
    }
}

/// Variables of a program, one of each entry's type, in the order in which the results are stored.
pub const VARIABLES: [Type; 16] = [
    Type::U32,
    Type::U32,
    Type::U32,
    Type::U32,
    Type::I32,
    Type::I32,
    Type::U64,
    Type::U64,
    Type::I64,
    Type::U16,
    Type::U8,
    Type::F32,
    Type::F32,
    Type::F32,
    Type::F64,
    Type::F16,
];

/// Memory that an expression may read by a computed index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The input buffer.
    Input,
    /// The item's own part of the output buffer.
    Patch,
    /// LDS.
    Shared,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number of a type, as bits.
    Constant(Type, u64),
    /// One of [`VARIABLES`].
    Variable(usize),
    /// The counter of the enclosing loop of this depth, a u32.
    Counter(usize),
    /// The number of the item, a u32.
    Item,
    /// An operation.
    Operation(&'static Operator, Vec<Expression>),
    /// A value in memory; the index is a u32.
    Load(Place, Type, Box<Expression>),
    /// Two or four words of a 16-byte load, a u32; the index and the choice are u32.
    LoadQuad(Box<[Expression; 2]>),
    /// A word of the input or of LDS through a pointer that may be either, a u32; index and choice are u32.
    LoadEither(Box<[Expression; 2]>),
    /// A word of the phase's private array.
    Private(Box<Expression>),
}

/// What changes something.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `variable = value`.
    Assign(usize, Expression),
    /// On bit 0 of the condition.
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// As many turns as the value modulo 8 says; the depth names the counter.
    Loop(usize, Expression, Vec<Statement>),
    /// On the value modulo the number of arms.
    Switch(Expression, Vec<Vec<Statement>>),
    /// Into the item's own part of the output.
    Store(Type, Expression, Expression),
    /// 16 bytes made of two values.
    StoreQuad(Expression, [Expression; 2]),
    /// A word of the private array.
    StorePrivate(Expression, Expression),
    /// A global atomic by name (`add`), type, index and value; its result is not looked at.
    Atomic(&'static str, Type, Expression, Expression),
}

/// How the code of a phase is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It stands in the kernel.
    Inline,
    /// A function of its own.
    Function,
    /// A function that each item takes by an address, or another in its place: on bit 0 of this u32 variable.
    Pointer(usize),
}

/// Code of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// How it is reached.
    pub call: Call,
    /// Length of its private array, where it has one.
    pub private_words: u32,
    /// Statements.
    pub body: Vec<Statement>,
}

/// What a workgroup does, all lanes together.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Every item by itself.
    Phase(Phase),
    /// Exchange between the lanes of a wave: `to = operation(from, index)`, all u32 variables.
    Cross {
        /// Name of the operation.
        operation: &'static str,
        /// Variable.
        to: usize,
        /// Variable.
        from: usize,
        /// Variable.
        index: usize,
        /// Constant operand.
        immediate: u32,
    },
    /// Every item stores a variable to an LDS slot of its own, between barriers.
    Share {
        /// Variable.
        variable: usize,
        /// Odd: slot = lane * factor + offset.
        factor: u32,
        /// Slots.
        offset: u32,
    },
    /// Every item adds (or the like) a u32 variable to a word of LDS, between barriers.
    ShareAtomic {
        /// Name of the operation.
        operation: &'static str,
        /// Variable with the value.
        value: usize,
        /// Variable with the index.
        index: usize,
    },
    /// What waves or workgroups do together, by the name of the header's macro; all variables are u32.
    Together {
        /// Name of the macro.
        operation: &'static str,
        /// Variable.
        to: usize,
        /// Variable.
        from: usize,
        /// Orders and scope of its atomics, where it has any.
        order: &'static str,
        /// Constant operand.
        number: u32,
    },
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What it and its inputs were made from.
    pub seed: u64,
    /// Steps in order.
    pub steps: Vec<Step>,
}

impl Expression {
    /// The type of its value.
    pub fn result(&self) -> Type {
        match self {
            Expression::Constant(kind, _) | Expression::Load(_, kind, _) => *kind,
            Expression::Variable(variable) => VARIABLES[*variable],
            Expression::Operation(operator, _) => operator.result,
            Expression::Counter(_)
            | Expression::Item
            | Expression::LoadQuad(_)
            | Expression::LoadEither(_)
            | Expression::Private(_) => Type::U32,
        }
    }

    /// Its operands.
    pub fn operands(&self) -> &[Expression] {
        match self {
            Expression::Operation(_, operands) => operands,
            Expression::Load(_, _, index) | Expression::Private(index) => std::slice::from_ref(index),
            Expression::LoadQuad(operands) | Expression::LoadEither(operands) => operands.as_slice(),
            _ => &[],
        }
    }

    fn operands_mut(&mut self) -> &mut [Expression] {
        match self {
            Expression::Operation(_, operands) => operands,
            Expression::Load(_, _, index) | Expression::Private(index) => std::slice::from_mut(index),
            Expression::LoadQuad(operands) | Expression::LoadEither(operands) => operands.as_mut_slice(),
            _ => &mut [],
        }
    }

    /// Visits it and everything below it, itself first.
    pub fn visit_mut(&mut self, visit: &mut dyn FnMut(&mut Expression)) {
        visit(self);
        self.operands_mut().iter_mut().for_each(|operand| operand.visit_mut(visit));
    }
}

impl Statement {
    /// Its own expressions, not those of the statements inside it.
    fn expressions_mut(&mut self) -> Vec<&mut Expression> {
        match self {
            Statement::Assign(_, value) => vec![value],
            Statement::If(value, _, _) | Statement::Loop(_, value, _) | Statement::Switch(value, _) => {
                vec![value]
            }
            Statement::Store(_, index, value)
            | Statement::StorePrivate(index, value)
            | Statement::Atomic(_, _, index, value) => vec![index, value],
            Statement::StoreQuad(index, [first, second]) => vec![index, first, second],
        }
    }

    /// The lists of statements inside it.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Statement>> {
        match self {
            Statement::If(_, then, otherwise) => vec![then, otherwise],
            Statement::Loop(_, _, body) => vec![body],
            Statement::Switch(_, arms) => arms.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
}

fn visit_blocks(block: &mut Vec<Statement>, visit: &mut dyn FnMut(&mut Vec<Statement>)) {
    visit(block);
    for statement in block {
        statement.blocks_mut().into_iter().for_each(|inner| visit_blocks(inner, visit));
    }
}

impl Program {
    /// Visits every list of statements, outer ones first.
    pub fn visit_blocks(&mut self, visit: &mut dyn FnMut(&mut Vec<Statement>)) {
        for step in &mut self.steps {
            if let Step::Phase(phase) = step {
                visit_blocks(&mut phase.body, visit);
            }
        }
    }

    /// Visits every expression, outer ones first.
    pub fn visit_expressions(&mut self, visit: &mut dyn FnMut(&mut Expression)) {
        self.visit_blocks(&mut |block| {
            for statement in block {
                statement.expressions_mut().into_iter().for_each(|value| value.visit_mut(visit));
            }
        });
    }

    /// Nodes of its trees and steps: what a minimiser makes smaller.
    pub fn size(&self) -> usize {
        let mut copy = self.clone();
        let (mut statements, mut expressions) = (0, 0);
        copy.visit_blocks(&mut |block| statements += block.len());
        copy.visit_expressions(&mut |_| expressions += 1);
        self.steps.len() + statements + expressions
    }
}
