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
    use crate::text::source;

    /// "Fails" if a multiply-high occurs: only that and the conversions to its place remain.
    #[test]
    fn what_does_not_matter_goes() {
        let occurs = |program: &Program| source(std::slice::from_ref(program)).contains("mulhi_u32(");
        let mut found = 0;
        for start in (0..400).map(program).filter(|start| occurs(start)) {
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
        assert!(found > 5, "{found}");
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
}
