//! Makes a program smaller while it still fails.
//!
//! Contract: every candidate is a valid program with the same seed and so the same inputs. The result fails, and no
//! single candidate derived from it does, unless the rounds ran out. Candidates are tried in groups, since
//! compiling costs most.

use crate::program::{Call, Expression, Phase, Program, Statement, Step};
use crate::types::Type;

/// Candidates tried together.
const GROUP_CANDIDATES: usize = 16;
/// Most parts of an expression that are tried in its place.
const PARTS_MAX: usize = 6;
/// Rounds over all kinds of changes.
const ROUNDS_MAX: usize = 6;

/// Kinds of changes, the largest first.
#[derive(Clone, Copy, Debug)]
enum Change {
    RemoveStep,
    RemoveHalf,
    RemoveStatement,
    Unwrap,
    Simplify,
}

const CHANGES: [Change; 5] =
    [Change::RemoveStep, Change::RemoveHalf, Change::RemoveStatement, Change::Unwrap, Change::Simplify];

/// For each program of a list, returns whether it fails.
pub type Fails<'a, E> = dyn FnMut(&[Program]) -> Result<Vec<bool>, E> + 'a;

/// The smallest program found for which `fails` returns true. `fails` answers for each program of a list.
pub fn minimise<E>(program: &Program, fails: &mut Fails<'_, E>) -> Result<Program, E> {
    let mut best = program.clone();
    for _ in 0..ROUNDS_MAX {
        let mut changed = false;
        for change in CHANGES {
            let mut at = 0;
            loop {
                let group: Vec<Program> =
                    candidates(&best, change).into_iter().skip(at).take(GROUP_CANDIDATES).collect();
                if group.is_empty() {
                    break;
                }
                match fails(&group)?.iter().position(|failed| *failed) {
                    None => at += group.len(),
                    Some(index) => {
                        best = group[index].clone();
                        at += index;
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    Ok(best)
}

/// Every program that differs from `program` by one change.
fn candidates(program: &Program, change: Change) -> Vec<Program> {
    match change {
        Change::RemoveStep => (0..program.steps.len())
            .map(|at| {
                let mut candidate = program.clone();
                candidate.steps.remove(at);
                candidate
            })
            .collect(),
        Change::RemoveHalf => blocks(program, |block| {
            let half = block.len() / 2;
            if half < 2 {
                return Vec::new();
            }
            vec![block[half..].to_vec(), block[..half].to_vec()]
        }),
        Change::RemoveStatement => blocks(program, |block| {
            let without = |at: usize| {
                let mut kept = block.to_vec();
                kept.remove(at);
                kept
            };
            (0..block.len()).map(without).collect()
        }),
        Change::Unwrap => {
            let mut list = blocks(program, |block| {
                let mut list = Vec::new();
                for (at, statement) in block.iter().enumerate() {
                    for inner in unwrapped(statement) {
                        let mut kept = block.to_vec();
                        kept.splice(at..=at, inner);
                        list.push(kept);
                    }
                }
                list
            });
            for (at, step) in program.steps.iter().enumerate() {
                for call in match step {
                    Step::Phase(Phase { call: Call::Pointer(_), .. }) => &[Call::Inline, Call::Function][..],
                    Step::Phase(Phase { call: Call::Function, .. }) => &[Call::Inline],
                    _ => &[],
                } {
                    let mut candidate = program.clone();
                    if let Step::Phase(phase) = &mut candidate.steps[at] {
                        phase.call = *call;
                    }
                    list.push(candidate);
                }
            }
            list
        }
        Change::Simplify => simplified(program),
    }
}

/// Programs in which one list of statements is replaced.
fn blocks(program: &Program, others: impl Fn(&[Statement]) -> Vec<Vec<Statement>>) -> Vec<Program> {
    let mut all = Vec::new();
    program.clone().visit_blocks(&mut |block| all.push(others(block)));
    let mut list = Vec::new();
    for (index, others) in all.into_iter().enumerate() {
        for other in others {
            let mut candidate = program.clone();
            // A replaced list is not visited again: the lists after it keep their numbers only until then.
            let (mut at, mut other) = (0, Some(other));
            candidate.visit_blocks(&mut |block| {
                if at == index
                    && let Some(other) = other.take()
                {
                    *block = other;
                }
                at += 1;
            });
            list.push(candidate);
        }
    }
    list
}

/// Replacements for a statement that contains others.
fn unwrapped(statement: &Statement) -> Vec<Vec<Statement>> {
    match statement {
        Statement::If(_, then, otherwise) => vec![then.clone(), otherwise.clone()],
        Statement::Switch(_, arms) => arms.clone(),
        Statement::Loop(counter, _, body) => {
            let mut phase = Phase { call: Call::Inline, private_words: 1, body: body.clone() };
            let mut program = Program { seed: 0, steps: Vec::new() };
            program.steps.push(Step::Phase(phase.clone()));
            program.visit_expressions(&mut |expression| {
                if matches!(expression, Expression::Counter(depth) if depth == counter) {
                    *expression = Expression::Constant(Type::U32, 0);
                }
            });
            if let Some(Step::Phase(changed)) = program.steps.pop() {
                phase = changed;
            }
            vec![phase.body]
        }
        _ => Vec::new(),
    }
}

/// Programs in which one expression is simpler.
fn simplified(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    program.clone().visit_expressions(&mut |expression| all.push(simpler(expression)));
    let mut list = Vec::new();
    for (index, others) in all.into_iter().enumerate() {
        for other in others {
            let mut candidate = program.clone();
            let (mut at, mut other) = (0, Some(other));
            candidate.visit_expressions(&mut |expression| {
                if at == index
                    && let Some(other) = other.take()
                {
                    *expression = other;
                }
                at += 1;
            });
            list.push(candidate);
        }
    }
    list
}

/// Simpler expressions of the same type: constants, then parts of it.
fn simpler(expression: &Expression) -> Vec<Expression> {
    let kind = expression.result();
    let zero = Expression::Constant(kind, 0);
    let one = Expression::Constant(kind, 1);
    match expression {
        Expression::Constant(_, 0 | 1) => Vec::new(),
        Expression::Constant(..) | Expression::Variable(_) | Expression::Counter(_) | Expression::Item => {
            vec![zero]
        }
        _ => {
            // Breadth first: the parts nearest to it are the largest.
            let mut parts: Vec<&Expression> = expression.operands().iter().collect();
            let mut at = 0;
            while at < parts.len() {
                let part = parts[at];
                parts.extend(part.operands());
                at += 1;
            }
            let mut list = vec![zero, one];
            list.extend(parts.into_iter().filter(|part| part.result() == kind).take(PARTS_MAX).cloned());
            list
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::program;
    use crate::program::Place;
    use crate::text::source;

    /// "Fails" if a multiply-high occurs: only that and the conversions to its place remain.
    #[test]
    fn what_does_not_matter_goes() {
        let occurs = |program: &Program| source(std::slice::from_ref(program)).contains("mulhi_u32(");
        let mut found = 0;
        for start in (0..400).map(program).filter(|start| occurs(start)).take(6) {
            let mut asked = 0;
            let mut fails = |programs: &[Program]| {
                asked += 1;
                Ok::<_, std::convert::Infallible>(programs.iter().map(occurs).collect())
            };
            let Ok(small) = minimise(&start, &mut fails);
            assert!(occurs(&small), "{small:?}");
            assert!(small.size() <= 14, "{} of {}: {small:?}", small.size(), start.size());
            assert!(asked < 400, "{asked}");
            found += 1;
        }
        assert_eq!(found, 6);
    }

    #[test]
    fn a_program_that_needs_everything_stays() {
        let start = program(3);
        let same = |programs: &[Program]| {
            Ok::<_, std::convert::Infallible>(programs.iter().map(|one| *one == start).collect())
        };
        let Ok(small) = minimise(&start, &mut { same });
        assert_eq!(small, start);
    }

    fn phase(call: Call, body: &[Statement]) -> Step {
        Step::Phase(Phase { call, private_words: 16, body: body.to_vec() })
    }

    fn made_of(steps: &[Step]) -> Program {
        Program { seed: 1, steps: steps.to_vec() }
    }

    /// A statement with a name: a number.
    fn named(number: u64) -> Statement {
        Statement::Assign(0, word(number))
    }

    fn word(number: u64) -> Expression {
        Expression::Constant(Type::U32, number)
    }

    /// The numbers of the statements of a program that is one phase of named ones.
    fn numbers(program: &Program) -> Vec<u64> {
        let [Step::Phase(phase)] = program.steps.as_slice() else { panic!("{program:?}") };
        let number = |statement: &Statement| match statement {
            Statement::Assign(0, Expression::Constant(_, number)) => *number,
            other => panic!("{other:?}"),
        };
        phase.body.iter().map(number).collect()
    }

    #[test]
    fn halves_are_tried_of_four_statements_and_more() {
        let halves = |count: u64| {
            let body: Vec<Statement> = (1..=count).map(named).collect();
            let all = candidates(&made_of(&[phase(Call::Inline, &body)]), Change::RemoveHalf);
            all.iter().map(numbers).collect::<Vec<_>>()
        };
        assert_eq!([0, 1, 2, 3].map(halves), [const { Vec::<Vec<u64>>::new() }; 4]);
        assert_eq!(halves(4), [[3, 4], [1, 2]]);
        assert_eq!(halves(5), [vec![3, 4, 5], vec![1, 2]]);
    }

    #[test]
    fn each_statement_is_left_out_once() {
        let body = [1, 2, 3].map(named);
        let all = candidates(&made_of(&[phase(Call::Inline, &body)]), Change::RemoveStatement);
        assert_eq!(all.iter().map(numbers).collect::<Vec<_>>(), [[2, 3], [1, 3], [1, 2]]);
    }

    /// A list within another changes by itself.
    #[test]
    fn one_list_changes_at_a_time() {
        let nested = |then: &[Statement], otherwise: &[Statement]| {
            let condition = Statement::If(word(9), then.to_vec(), otherwise.to_vec());
            made_of(&[share(0), phase(Call::Inline, &[condition])])
        };
        let start = nested(&[named(1)], &[named(2), named(3)]);
        assert_eq!(
            candidates(&start, Change::RemoveStatement),
            [
                made_of(&[share(0), phase(Call::Inline, &[])]),
                nested(&[], &[named(2), named(3)]),
                nested(&[named(1)], &[named(3)]),
                nested(&[named(1)], &[named(2)]),
            ]
        );
    }

    #[test]
    fn what_holds_statements_is_replaced_by_each_of_its_lists() {
        let in_phase = |body: &[Statement]| made_of(&[phase(Call::Inline, body)]);
        let counter = |depth| Statement::Assign(0, Expression::Counter(depth));
        let of = |holder: Statement| candidates(&in_phase(&[named(7), holder, named(8)]), Change::Unwrap);
        let around = |inner: &[Statement]| in_phase(&[&[named(7)], inner, &[named(8)]].concat());
        let (one, two) = (vec![named(1)], vec![named(2), named(3)]);
        assert_eq!(of(Statement::If(word(9), one.clone(), two.clone())), [around(&one), around(&two)]);
        assert_eq!(
            of(Statement::Switch(word(9), vec![one.clone(), two.clone(), one.clone()])),
            [around(&one), around(&two), around(&one)]
        );
        // Nothing counts where no loop is around: the counter is 0, and that of another loop stays.
        let body = vec![counter(1), counter(0)];
        assert_eq!(of(Statement::Loop(1, word(9), body)), [around(&[named(0), counter(0)])]);
        for plain in [
            named(1),
            Statement::Store(Type::U32, word(1), word(2)),
            Statement::StorePrivate(word(1), word(2)),
        ] {
            assert_eq!(of(plain), []);
        }
    }

    #[test]
    fn a_call_becomes_a_simpler_one() {
        let of = |call| {
            let share = share(0);
            let all = candidates(&made_of(&[share.clone(), phase(call, &[named(1)])]), Change::Unwrap);
            let call = |program: Program| match program.steps.as_slice() {
                [first, Step::Phase(phase)] if *first == share && phase.body == [named(1)] => phase.call,
                other => panic!("{other:?}"),
            };
            all.into_iter().map(call).collect::<Vec<_>>()
        };
        assert_eq!(of(Call::Pointer(2)), [Call::Inline, Call::Function]);
        assert_eq!(of(Call::Function), [Call::Inline]);
        assert_eq!(of(Call::Inline), []);
    }

    fn operator(name: &str) -> &'static crate::operators::Operator {
        crate::operators::OPERATORS.iter().find(|operator| operator.name == name).unwrap()
    }

    fn apply(name: &str, operands: &[Expression]) -> Expression {
        Expression::Operation(operator(name), operands.to_vec())
    }

    /// Constants first, then parts of the same type, the nearest and so the largest first, of which six are enough.
    #[test]
    fn an_expression_becomes_a_constant_or_a_part_of_its_type() {
        let zero = |kind| Expression::Constant(kind, 0);
        let one = |kind| Expression::Constant(kind, 1);
        let (word_0, wide) = (Expression::Variable(0), Expression::Variable(6));
        for settled in [zero(Type::U32), one(Type::F32)] {
            assert_eq!(simpler(&settled), []);
        }
        for (leaf, kind) in [
            (word(2), Type::U32),
            (Expression::Constant(Type::I64, 5), Type::I64),
            (word_0.clone(), Type::U32),
            (wide.clone(), Type::U64),
            (Expression::Counter(0), Type::U32),
            (Expression::Item, Type::U32),
        ] {
            assert_eq!(simpler(&leaf), [zero(kind)], "{leaf:?}");
        }
        let narrow = apply("to_u32_from_u64", std::slice::from_ref(&wide));
        let sum = apply("add_u32", &[narrow.clone(), Expression::Item]);
        assert_eq!(
            simpler(&apply("xor_u32", &[sum.clone(), word_0.clone()])),
            [zero(Type::U32), one(Type::U32), sum.clone(), word_0.clone(), narrow.clone(), Expression::Item]
        );
        // What is deep in it counts as well, across parts of other types.
        let back = apply("to_u64_from_u32", &[narrow]);
        assert_eq!(simpler(&back), [zero(Type::U64), one(Type::U64), wide]);
        let load = Expression::Load(Place::Input, Type::F32, Box::new(sum));
        assert_eq!(simpler(&load), [zero(Type::F32), one(Type::F32)]);
        let many = apply("add3_u32", &[2, 3, 4].map(word));
        let many = apply("add3_u32", &[many, word(5), apply("add3_u32", &[6, 7, 8].map(word))]);
        let parts = simpler(&many);
        assert_eq!(parts.len(), 2 + 6);
        assert_eq!(parts[3..], [word(5), apply("add3_u32", &[6, 7, 8].map(word)), word(2), word(3), word(4)]);
    }

    /// The programs that are asked about, group by group, and the result; a program fails if `is_failing` says so.
    fn asked(start: &Program, is_failing: impl Fn(&Program) -> bool) -> (Vec<Vec<Program>>, Program) {
        let mut asked = Vec::new();
        let mut fails = |programs: &[Program]| {
            asked.push(programs.to_vec());
            Ok::<_, std::convert::Infallible>(programs.iter().map(&is_failing).collect())
        };
        let Ok(small) = minimise(start, &mut fails);
        (asked, small)
    }

    fn share(variable: usize) -> Step {
        Step::Share { variable, factor: 1, offset: 0 }
    }

    /// Of three steps, the third goes. What was asked before is not asked again in the same round, and a round in
    /// which nothing goes is the last.
    #[test]
    fn each_round_goes_on_where_something_went() {
        let [a, b, c] = [0, 1, 2].map(share);
        let of = |steps: &[&Step]| Program { seed: 1, steps: steps.iter().copied().cloned().collect() };
        let needed = |program: &Program| program.steps.contains(&a) && program.steps.contains(&b);
        let (groups, small) = asked(&of(&[&a, &b, &c]), needed);
        assert_eq!(small, of(&[&a, &b]));
        let first = vec![of(&[&b, &c]), of(&[&a, &c]), of(&[&a, &b])];
        assert_eq!(groups, [first, vec![of(&[&b]), of(&[&a])]]);
    }

    #[test]
    fn candidates_are_asked_about_in_groups_of_sixteen() {
        let steps: Vec<Step> = (0..40).map(share).collect();
        let start = made_of(&steps);
        let (groups, small) = asked(&start, |_| false);
        assert_eq!(small, start);
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16, 8]);
        let without = |at: usize| made_of(&[&steps[..at], &steps[at + 1..]].concat());
        assert_eq!(groups.concat(), (0..40).map(without).collect::<Vec<_>>());
    }

    /// A step that can only go once a statement of another has gone does go.
    #[test]
    fn what_a_later_change_allows_is_done_in_the_next_round() {
        let start = made_of(&[phase(Call::Inline, &[named(0)]), phase(Call::Inline, &[named(1)])]);
        let fails = |program: &Program| match program.steps.as_slice() {
            [Step::Phase(only)] => only.body.is_empty(),
            steps => steps.len() == 2,
        };
        assert_eq!(asked(&start, fails).1, made_of(&[phase(Call::Inline, &[])]));
    }
}
