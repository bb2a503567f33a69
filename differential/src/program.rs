//! Programs as trees: typed expressions, statements, and the steps of a workgroup.
//!
//! Contract: every tree is defined for every input: indices are taken modulo the size, loops are bounded, no
//! operation has an undefined case (`support/differential.h`). Anything that needs all lanes (exchange between
//! lanes, LDS stores, barriers) is a [`Step`], outside any condition. The walks visit nodes in one fixed order.

use crate::operators::Operator;
use crate::types::Type;

/// Variables of a program: one of each listed type, in the order in which the results are stored.
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
    /// A constant of a type, as bits.
    Constant(Type, u64),
    /// One of [`VARIABLES`].
    Variable(usize),
    /// The counter of the enclosing loop at this depth, a u32.
    Counter(usize),
    /// The number of the item, a u32.
    Item,
    /// An operation.
    Operation(&'static Operator, Vec<Expression>),
    /// A value in memory; the index is a u32.
    Load(Place, Type, Box<Expression>),
    /// Two or four words of a 16-byte load, a u32; the index and the selector are u32.
    LoadQuad(Box<[Expression; 2]>),
    /// A word of the input or of LDS through a pointer that may refer to either, a u32; index and selector are u32.
    LoadEither(Box<[Expression; 2]>),
    /// A word of the phase's private array.
    Private(Box<Expression>),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `variable = value`.
    Assign(usize, Expression),
    /// Depends on bit 0 of the condition.
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// Iterates as often as the value modulo 8; the depth names the counter.
    Loop(usize, Expression, Vec<Statement>),
    /// Selects an arm by the value modulo the number of arms.
    Switch(Expression, Vec<Vec<Statement>>),
    /// Stores into the item's own part of the output.
    Store(Type, Expression, Expression),
    /// Stores 16 bytes made of two values.
    StoreQuad(Expression, [Expression; 2]),
    /// Stores a word of the private array.
    StorePrivate(Expression, Expression),
    /// A global atomic by name (`add`), type, index and value; its result is ignored.
    Atomic(&'static str, Type, Expression, Expression),
}

/// How the code of a phase is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Inline in the kernel.
    Inline,
    /// As a separate function.
    Function,
    /// Through a pointer that each item selects between two functions, by bit 0 of this u32 variable.
    Pointer(usize),
}

/// Code of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// How it is called.
    pub call: Call,
    /// Length of its private array, if it has one.
    pub private_words: u32,
    /// Statements.
    pub body: Vec<Statement>,
}

/// An action of a workgroup, by all lanes together.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Every item by itself.
    Phase(Phase),
    /// Exchange between the lanes of a wave: `to = operation(from, index)`, all u32 variables.
    Cross {
        /// Name of the operation.
        operation: &'static str,
        /// Destination variable.
        to: usize,
        /// Source variable.
        from: usize,
        /// Variable with the index.
        index: usize,
        /// Constant operand.
        immediate: u32,
    },
    /// Every item stores a variable to an LDS slot of its own, between barriers.
    Share {
        /// The variable.
        variable: usize,
        /// Odd: slot = lane * factor + offset.
        factor: u32,
        /// Added to the slot number.
        offset: u32,
    },
    /// Every item applies an atomic (`add` or similar) with a u32 variable to a word of LDS, between barriers.
    ShareAtomic {
        /// Name of the operation.
        operation: &'static str,
        /// Variable with the value.
        value: usize,
        /// Variable with the index.
        index: usize,
    },
    /// An action by several waves or workgroups together, by the name of the header's macro; all variables are u32.
    Together {
        /// Name of the macro.
        operation: &'static str,
        /// Destination variable.
        to: usize,
        /// Source variable.
        from: usize,
        /// Order and scope of its atomics, if it has any.
        order: &'static str,
        /// Constant operand.
        number: u32,
    },
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The seed from which it and its inputs were generated.
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

    /// Visits it and everything below it, parents first.
    pub fn visit_mut(&mut self, visit: &mut dyn FnMut(&mut Expression)) {
        visit(self);
        self.operands_mut().iter_mut().for_each(|operand| operand.visit_mut(visit));
    }
}

impl Statement {
    /// Its own expressions, without those of nested statements.
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

    /// The nested lists of statements.
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

    /// Number of nodes in its trees and steps: the measure that a minimiser reduces.
    pub fn size(&self) -> usize {
        let mut copy = self.clone();
        let (mut statements, mut expressions) = (0, 0);
        copy.visit_blocks(&mut |block| statements += block.len());
        copy.visit_expressions(&mut |_| expressions += 1);
        self.steps.len() + statements + expressions
    }
}
