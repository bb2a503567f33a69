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

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: u64) -> Expression {
        Expression::Constant(Type::U32, number)
    }

    fn sum(one: Expression, other: Expression) -> Expression {
        let add = crate::operators::OPERATORS.iter().find(|operator| operator.name == "add_u32");
        Expression::Operation(add.unwrap(), vec![one, other])
    }

    /// Each kind of expression once, with constants numbered from top to bottom.
    fn value() -> Expression {
        let load = Expression::Load(Place::Shared, Type::U32, Box::new(number(1)));
        let quad = Expression::LoadQuad(Box::new([number(2), Expression::Variable(0)]));
        let either = Expression::LoadEither(Box::new([Expression::Item, number(3)]));
        let private = Expression::Private(Box::new(sum(number(4), Expression::Counter(0))));
        sum(sum(load, quad), sum(either, private))
    }

    /// Each kind of statement once; those in others have the numbers after those before them.
    fn program() -> Program {
        let assign = |from| Statement::Assign(0, number(from));
        let then = vec![Statement::Store(Type::U32, number(11), number(12))];
        let otherwise = vec![Statement::StoreQuad(number(13), [number(14), number(15)]), assign(16)];
        let arms = vec![vec![assign(31)], vec![Statement::StorePrivate(number(32), number(33))], Vec::new()];
        let inner = Statement::Switch(number(21), arms);
        let body = vec![
            Statement::If(number(10), then, otherwise),
            Statement::Loop(
                0,
                number(20),
                vec![inner, Statement::Atomic("add", Type::U32, number(22), number(23))],
            ),
        ];
        let phase = |body| Step::Phase(Phase { call: Call::Inline, private_words: 16, body });
        let share = Step::Share { variable: 0, factor: 1, offset: 0 };
        Program { seed: 1, steps: vec![phase(body), share, phase(vec![assign(40)])] }
    }

    #[test]
    fn operands_are_what_stands_directly_below() {
        let [a, b] = [1, 2].map(number);
        for (expression, operands) in [
            (sum(a.clone(), b.clone()), vec![a.clone(), b.clone()]),
            (Expression::Load(Place::Input, Type::F64, Box::new(a.clone())), vec![a.clone()]),
            (Expression::Private(Box::new(b.clone())), vec![b.clone()]),
            (Expression::LoadQuad(Box::new([a.clone(), b.clone()])), vec![a.clone(), b.clone()]),
            (Expression::LoadEither(Box::new([b.clone(), a.clone()])), vec![b, a.clone()]),
            (a, Vec::new()),
            (Expression::Variable(3), Vec::new()),
            (Expression::Counter(1), Vec::new()),
            (Expression::Item, Vec::new()),
        ] {
            assert_eq!(expression.operands(), operands);
        }
    }

    #[test]
    fn a_value_has_the_type_of_what_it_is() {
        let wide = Expression::Load(Place::Input, Type::F64, Box::new(number(1)));
        assert_eq!((wide.result(), Expression::Constant(Type::I64, 1).result()), (Type::F64, Type::I64));
        let bits = crate::operators::OPERATORS.iter().find(|operator| operator.name == "bits_f16").unwrap();
        assert_eq!(Expression::Operation(bits, vec![Expression::Variable(15)]).result(), Type::U16);
        for (variable, kind) in [(0, Type::U32), (5, Type::I32), (9, Type::U16), (15, Type::F16)] {
            assert_eq!(Expression::Variable(variable).result(), kind);
        }
        let pair = || Box::new([number(1), wide.clone()]);
        for word in [
            Expression::Counter(0),
            Expression::Item,
            Expression::LoadQuad(pair()),
            Expression::LoadEither(pair()),
            Expression::Private(Box::new(wide.clone())),
        ] {
            assert_eq!(word.result(), Type::U32, "{word:?}");
        }
    }

    fn constants(visit: impl FnOnce(&mut dyn FnMut(&mut Expression))) -> Vec<u64> {
        let mut seen = Vec::new();
        visit(&mut |expression| {
            if let Expression::Constant(_, number) = expression {
                seen.push(*number);
            }
        });
        seen
    }

    #[test]
    fn every_expression_is_visited_once_and_parents_come_first() {
        let mut value = value();
        assert_eq!(constants(|visit| value.visit_mut(visit)), [1, 2, 3, 4]);
        let mut order = Vec::new();
        sum(number(1), sum(number(2), number(3))).visit_mut(&mut |one| order.push(one.operands().len()));
        assert_eq!(order, [2, 0, 2, 0, 0]);
        // A list's own expressions come before those of lists in it.
        let expected = [10, 20, 11, 12, 13, 14, 15, 16, 21, 22, 23, 31, 32, 33, 40];
        assert_eq!(constants(|visit| program().visit_expressions(visit)), expected);
    }

    #[test]
    fn what_a_visit_changes_stays_changed() {
        let mut changed = program();
        changed.visit_expressions(&mut |expression| *expression = Expression::Item);
        assert!(constants(|visit| changed.visit_expressions(visit)).is_empty());
        changed.visit_blocks(&mut |block| block.truncate(1));
        let mut lengths = Vec::new();
        changed.visit_blocks(&mut |block| lengths.push(block.len()));
        assert_eq!(lengths, [1, 1, 1, 1]);
    }

    #[test]
    fn every_list_of_statements_is_visited_once() {
        let mut lengths = Vec::new();
        program().visit_blocks(&mut |block| lengths.push(block.len()));
        // The phase, both sides of the condition, the body of the loop, the arms in it, and the other phase.
        assert_eq!(lengths, [2, 1, 2, 2, 1, 1, 0, 1]);
    }

    #[test]
    fn a_size_counts_steps_statements_and_expressions() {
        assert_eq!(program().size(), 3 + 10 + 15);
        assert_eq!(Program { seed: 1, steps: Vec::new() }.size(), 0);
        let mut one = program();
        one.steps.truncate(2);
        one.visit_blocks(&mut |block| block.truncate(0));
        assert_eq!(one.size(), 2);
        one.visit_blocks(&mut |block| block.push(Statement::Assign(0, value())));
        // Three sums, four loads, their six operands, and the two of the sum among these.
        assert_eq!(one.size(), 2 + 1 + 15);
    }
}
