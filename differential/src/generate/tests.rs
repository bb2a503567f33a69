//! What programs and inputs of many seeds have, how often, and within which limits.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// Values of a type that the cases draw.
const DRAWN: usize = 16_384;

#[test]
fn seeds_name_programs_and_inputs() {
    assert_eq!(program(5), program(5));
    assert_ne!(program(5).steps, program(6).steps);
    assert_eq!(inputs(5, 4096), inputs(5, 4096));
    assert_ne!(inputs(5, 4096), inputs(6, 4096));
    assert_eq!(inputs(1, 1001).len(), 1001);
}

/// Every operation of the table and every kind of statement occurs, with its declared types.
#[test]
fn everything_is_generated_and_well_typed() {
    let mut names = BTreeSet::new();
    for seed in 0..3000 {
        let mut made = program(seed);
        made.visit_expressions(&mut |expression| {
            if let Expression::Operation(operator, operands) = expression {
                let kinds: Vec<Type> = operands.iter().map(Expression::result).collect();
                assert_eq!(kinds, operator.operands);
                names.insert(operator.name.clone());
            }
        });
        for step in &made.steps {
            match step {
                Step::Cross { operation, .. } => names.extend([(*operation).into()]),
                Step::Together { operation, order, .. } => {
                    names.extend([(*operation).into(), (*order).into()]);
                }
                Step::Phase(phase) => names.extend([call_name(phase.call).into()]),
                _ => {}
            }
        }
    }
    let expected =
        [CROSSES, MEETINGS, GATHERINGS, ORDERS, GROUP_ORDERS, &["none", "inline", "function", "pointer"]];
    let expected = expected.map(<[&str]>::len).iter().sum::<usize>();
    assert_eq!(names.len(), crate::operators::OPERATORS.len() + expected);
}

fn call_name(call: Call) -> &'static str {
    match call {
        Call::Inline => "inline",
        Call::Function => "function",
        Call::Pointer(_) => "pointer",
    }
}

fn words(seed: u64, bytes: usize) -> Vec<u32> {
    inputs(seed, bytes).as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn inputs_have_edges() {
    let words = words(3, 1 << 16);
    for edge in [0, 1, u32::MAX, 0x8000_0000, 0x7F80_0000, 0x3F80_0000, 0x7F7F_FFFF] {
        assert!(words.contains(&edge), "{edge:#x}");
    }
}

/// The first value of the inputs is not the one that the numbers of the program begin with.
#[test]
fn a_program_and_its_inputs_are_of_different_numbers() {
    let begins = |seed: &u64| {
        let mut random = Random::new(*seed);
        let kind = *random.choose(&INPUT_TYPES);
        inputs(*seed, 2) == constant(&mut random, kind).to_le_bytes()[..2]
    };
    assert!((0..32).filter(begins).count() < 16);
}

/// A sixth of the values are halves, two in a word; a third are of eight bytes, of which those at a multiple of eight
/// are whole. 1.0 stands for all of them: it is a sixteenth of each.
#[test]
fn inputs_have_values_of_each_width_where_loads_find_them() {
    let words = words(4, 1 << 18);
    let share = |count: usize| count as f64 / words.len() as f64;
    let is_one = |word: u32, one: u32| word & 0x7FFF_FFFF == one;
    let halves = words.iter().filter(|word| is_one(**word & 0xFFFF_0000, 0x3C00_0000)).count();
    // There are fewer values than words: 5/6 in one, 1/6 in two at most.
    assert!(share(halves) > 0.007, "{halves}");
    let is_wide = |pair: &[u32]| pair[0] == 0 && is_one(pair[1], 0x3FF0_0000);
    let aligned = words.chunks_exact(2).filter(|pair| is_wide(pair)).count();
    let astride = words[1..].chunks_exact(2).filter(|pair| is_wide(pair)).count();
    assert!(share(aligned) > 0.003, "{aligned}");
    assert_eq!(astride, 0);
}

fn drawn(kind: Type) -> Vec<u64> {
    let mut random = Random::new(kind as u64);
    (0..DRAWN).map(|_| constant(&mut random, kind)).collect()
}

/// How many sixteenths of the values are as `of` says.
fn sixteenths(drawn: &[u64], of: impl Fn(u64) -> bool) -> f64 {
    drawn.iter().filter(|value| of(**value)).count() as f64 * 16.0 / drawn.len() as f64
}

/// Five eighths of the values are at an edge: small, a power of two, one less than one, and negatives of these.
#[test]
fn integers_are_edges_bytes_or_anything() {
    for kind in [Type::U8, Type::U16, Type::I32, Type::U32, Type::I64, Type::U64] {
        let (drawn, width) = (drawn(kind), kind.width_bits());
        let share = |of: &dyn Fn(u64) -> bool| sixteenths(&drawn, of);
        let mask = u64::MAX >> (64 - width);
        assert_eq!(share(&|value| value > mask), 0.0, "{kind:?}");
        // No power of two is among these or beside them.
        let small = [5, 6, 9, 10, 11, 12, 13, 14];
        let negative = small.map(|value: u64| value.wrapping_neg() & mask);
        for list in [small, negative] {
            assert!(share(&|value| list.contains(&value)) > 0.75, "{kind:?} {list:x?}");
        }
        let mut counts = BTreeMap::<u64, usize>::new();
        drawn.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
        let powers = (0..width).map(|bit| 1u64 << bit);
        for edge in powers.flat_map(|power| [power, power - 1, power.wrapping_neg() & mask]) {
            // An eighth of the values are powers, and so on: a third of what falls to each of them.
            let found = counts.get(&edge).copied().unwrap_or(0);
            assert!(found * 24 > DRAWN / width as usize, "{kind:?} {edge:#x} {found}");
        }
        assert!(share(&|value| (17..255).contains(&value)) > 1.5, "{kind:?}");
        let is_mixed = |value: u64| value.count_ones() > 2 && (!value & mask).count_ones() > 2;
        assert!(share(&|value| value > 255 && is_mixed(value)) > 3.0 || width == 8, "{kind:?}");
    }
}

/// Widths of exponent and fraction of IEEE 754's formats, and what is expected of the values far from 1: sixteenths
/// of the values that are greater than all integers without gaps, and of normal ones less than 1/16.
const FORMATS: [(Type, u32, u32, f64, f64); 3] =
    [(Type::F16, 5, 10, 0.26, 0.22), (Type::F32, 8, 23, 1.0, 0.38), (Type::F64, 11, 52, 1.15, 0.4)];

#[test]
fn floats_are_edges_ties_or_of_any_size() {
    for (kind, exponent_bits, fraction_bits, large, little) in FORMATS {
        let drawn = drawn(kind);
        let (top, ones) = ((1u64 << exponent_bits) - 1, (1u64 << fraction_bits) - 1);
        let one = top / 2;
        let parts = |value: u64| (value >> fraction_bits & top, value & ones);
        let share = |of: &dyn Fn((u64, u64)) -> bool| sixteenths(&drawn, |value| of(parts(value)));
        let sign_at = exponent_bits + fraction_bits;
        assert_eq!(sixteenths(&drawn, |value| value >> sign_at > 1), 0.0, "{kind:?}");
        let negative = sixteenths(&drawn, |value| value >> sign_at == 1);
        assert!((7.0..9.0).contains(&negative), "{kind:?} {negative}");
        for edge in [(0, 0), (top, 0), (one, 0), (top - 1, ones)] {
            let found = share(&|parts| parts == edge);
            assert!((0.8..1.3).contains(&found), "{kind:?} {edge:x?} {found}");
        }
        let denormal = share(&|(exponent, fraction)| exponent == 0 && fraction > 0);
        let unordered = share(&|(exponent, fraction)| exponent == top && fraction > 0);
        assert!(denormal > 0.8 && unordered > 0.8, "{kind:?} {denormal} {unordered}");
        for fraction in 0..3 {
            assert!(share(&|parts| parts == (1, fraction)) > 0.2, "{kind:?} {fraction}");
        }
        let tie = |exponent, quarters: u64| (one + exponent, quarters << (fraction_bits - 3));
        for tie in (0..4).flat_map(|exponent| (1..4).map(move |quarters| tie(exponent, quarters))) {
            assert!(share(&|parts| parts == tie) > 0.06, "{kind:?} {tie:x?}");
        }
        let is_rough = |fraction: u64| fraction & (ones >> 3) != 0 && fraction != ones;
        let of_size = |size: u64| share(&|(exponent, fraction)| exponent == size && is_rough(fraction));
        let last = one + u64::from(fraction_bits);
        assert!((one - 4..=one + 4).all(|size| of_size(size) > 0.33), "{kind:?}");
        assert!((last - 2..=last + 1).all(|size| of_size(size) > 0.18), "{kind:?}");
        let greater = share(&|(exponent, fraction)| (last + 2..top).contains(&exponent) && fraction != ones);
        let less = share(&|(exponent, fraction)| (2..one - 4).contains(&exponent) && fraction != ones);
        assert!(greater > large && less > little, "{kind:?} {greater} {less}");
    }
}

/// Exponents of all ones with a fraction: a last bit of one keeps each from being an infinity.
#[test]
fn what_is_to_be_no_number_is_none() {
    for (kind, exponent_bits, fraction_bits, ..) in FORMATS {
        let top = (1u64 << exponent_bits) - 1;
        let is_special = |value: &&u64| **value >> fraction_bits & top == top;
        let fractions: BTreeSet<u64> =
            drawn(kind).iter().filter(is_special).map(|value| value & ((1 << fraction_bits) - 1)).collect();
        assert!(
            fractions.len() > 100 && fractions.iter().all(|bits| *bits == 0 || bits % 2 == 1),
            "{kind:?}"
        );
    }
}

/// How often what has a name occurs, and which numbers something takes.
#[derive(Default)]
struct Seen {
    counts: BTreeMap<&'static str, usize>,
    numbers: BTreeMap<&'static str, BTreeSet<usize>>,
}

impl Seen {
    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    fn number(&mut self, name: &'static str, number: usize) {
        self.numbers.entry(name).or_default().insert(number);
    }

    fn operands(&mut self, operands: &[(&'static str, usize)]) {
        operands.iter().for_each(|(name, number)| self.number(name, *number));
    }

    /// Asserts that these are all that was counted, in these proportions.
    fn expect(&self, weights: &[(&str, usize)]) {
        let names: BTreeSet<&str> = weights.iter().map(|(name, _)| *name).collect();
        assert_eq!(self.counts.keys().copied().collect::<BTreeSet<&str>>(), names);
        let (all, of) =
            (self.counts.values().sum::<usize>(), weights.iter().map(|(_, one)| one).sum::<usize>());
        for (name, weight) in weights {
            let ratio = (self.counts[name] * of) as f64 / (all * weight) as f64;
            assert!((0.6..1.6).contains(&ratio), "{name}: {} of {all}", self.counts[name]);
        }
    }

    fn takes(&self, name: &str, numbers: impl IntoIterator<Item = usize>) {
        assert_eq!(self.numbers[name], numbers.into_iter().collect(), "{name}");
    }
}

fn programs() -> impl Iterator<Item = Program> {
    (0..300).map(program)
}

#[test]
fn steps_have_their_weights_and_keep_their_limits() {
    let mut seen = Seen::default();
    for made in programs() {
        let [Step::Phase(_), between @ .., Step::Phase(_)] = made.steps.as_slice() else {
            panic!("{made:?}");
        };
        seen.number("steps", between.len());
        for step in between {
            seen.count(match step {
                Step::Phase(_) => "phase",
                Step::Cross { .. } => "cross",
                Step::Share { .. } => "share",
                Step::ShareAtomic { .. } => "share atomic",
                Step::Together { order: "none", .. } => "gathering",
                Step::Together { .. } => "meeting",
            });
        }
    }
    seen.expect(&[
        ("phase", 3),
        ("cross", 3),
        ("share", 1),
        ("share atomic", 1),
        ("meeting", 2),
        ("gathering", 2),
    ]);
    seen.takes("steps", 1..=STEPS_MAX as usize);
}

/// As many of each kind, in no program.
fn steps_of_each_kind() -> impl Iterator<Item = Step> {
    let mut generator = Generator { random: Random::new(1), loops: 0, budget: 0 };
    (0..500).flat_map(move |_| {
        [
            generator.phase(),
            generator.cross(),
            generator.share(),
            generator.share_atomic(),
            generator.meeting(),
            generator.gathering(),
        ]
    })
}

#[test]
fn operands_of_steps_take_every_value_that_they_may() {
    let mut seen = Seen::default();
    let mut bits = [0, u32::MAX];
    let mut constant = |number: u32| bits = [bits[0] | number, bits[1] & number];
    for step in steps_of_each_kind() {
        match step {
            Step::Cross { to, from, index, immediate, .. } => {
                constant(immediate);
                seen.operands(&[("to", to), ("from", from), ("index", index)]);
            }
            Step::Share { variable, factor, offset } => {
                seen.number("variable", variable);
                seen.number("factor", factor as usize);
                seen.number("offset", offset as usize);
            }
            Step::ShareAtomic { value, index, .. } => {
                seen.operands(&[("value", value), ("index of a sum", index)]);
            }
            Step::Together { to, from, number, .. } => {
                constant(number);
                seen.operands(&[("to together", to), ("from together", from)]);
            }
            Step::Phase(Phase { call: Call::Pointer(chooser), .. }) => seen.number("chooser", chooser),
            Step::Phase(_) => {}
        }
    }
    for name in ["to", "from", "index", "value", "index of a sum", "to together", "from together", "chooser"]
    {
        // These are u32.
        seen.takes(name, 0..4);
    }
    seen.takes("variable", 0..16);
    // An odd factor makes slots of their own of lanes, whose number is a power of two.
    seen.takes("factor", (0..32).map(|half| 2 * half + 1));
    seen.takes("offset", 0..64);
    // Constants are positive in C: every bit but the sign is sometimes set and sometimes not.
    assert_eq!(bits, [0x7FFF_FFFF, 0]);
}

/// Only lanes of one group meet with the order of a workgroup.
#[test]
fn an_order_fits_those_who_meet() {
    let mut seen = Seen::default();
    for step in steps_of_each_kind() {
        let Step::Together { operation, order, .. } = step else { continue };
        match (operation, order) {
            ("LANES", order) if GROUP_ORDERS.contains(&order) => seen.count("of a group"),
            ("LANES", order) if ORDERS.contains(&order) => seen.count("wider"),
            (_, order) if MEETINGS.contains(&operation) => {
                assert!(ORDERS.contains(&order), "{operation} {order}")
            }
            (_, order) => assert!(GATHERINGS.contains(&operation) && order == "none", "{operation} {order}"),
        }
    }
    seen.expect(&[("of a group", 1), ("wider", 1)]);
}

#[test]
fn phases_have_their_weights_and_keep_their_limits() {
    let (mut calls, mut arrays) = (Seen::default(), Seen::default());
    for step in programs().flat_map(|made| made.steps) {
        let Step::Phase(phase) = step else { continue };
        calls.count(call_name(phase.call));
        calls.number("statements", phase.body.len());
        arrays.count(match phase.private_words {
            16 => "usual",
            128 => "long",
            other => panic!("{other} words"),
        });
    }
    calls.expect(&[("function", 2), ("pointer", 1), ("inline", 13)]);
    calls.takes("statements", 2..=STATEMENTS_MAX as usize);
    arrays.expect(&[("usual", 7), ("long", 1)]);
}

fn statement_name(statement: &Statement) -> &'static str {
    match statement {
        Statement::Assign(..) => "assign",
        Statement::Store(..) => "store",
        Statement::StoreQuad(..) => "store quad",
        Statement::StorePrivate(..) => "store private",
        Statement::Atomic(..) => "atomic",
        Statement::If(..) => "if",
        Statement::Loop(..) => "loop",
        Statement::Switch(..) => "switch",
    }
}

/// Visits statements with the number of statements around them, and of loops around them.
fn visit(block: &[Statement], depth: usize, loops: usize, see: &mut dyn FnMut(&Statement, usize, usize)) {
    for statement in block {
        see(statement, depth, loops);
        match statement {
            Statement::If(_, then, otherwise) => {
                visit(then, depth + 1, loops, see);
                visit(otherwise, depth + 1, loops, see);
            }
            Statement::Loop(_, _, body) => visit(body, depth + 1, loops + 1, see),
            Statement::Switch(_, arms) => arms.iter().for_each(|arm| visit(arm, depth + 1, loops, see)),
            _ => {}
        }
    }
}

fn visit_all(mut see: impl FnMut(&Statement, usize, usize)) {
    for step in programs().flat_map(|made| made.steps) {
        if let Step::Phase(phase) = step {
            visit(&phase.body, 0, 0, &mut see);
        }
    }
}

/// So many of 32 outside of others and inside of one, so many of 24 at the innermost place.
#[test]
fn statements_have_their_weights_at_each_depth() {
    let mut seen = [(); 3].map(|()| Seen::default());
    visit_all(|statement, depth, _| seen[depth].count(statement_name(statement)));
    let simple = [("assign", 16), ("store", 2), ("store quad", 1), ("store private", 3), ("atomic", 2)];
    let nested = [("if", 4), ("loop", 2), ("switch", 2)];
    let all = [simple.as_slice(), &nested].concat();
    seen[0].expect(&all);
    seen[1].expect(&all);
    seen[2].expect(&simple);
}

#[test]
fn nested_statements_keep_their_limits() {
    let mut seen = Seen::default();
    let mut else_parts = Seen::default();
    visit_all(|statement, _, loops| match statement {
        Statement::If(_, then, otherwise) => {
            seen.number("then", then.len());
            seen.number("otherwise", otherwise.len());
            else_parts.count(if otherwise.is_empty() { "without" } else { "with" });
        }
        Statement::Loop(counter, _, body) => {
            assert_eq!(*counter, loops);
            seen.number("loops", loops);
            seen.number("body", body.len());
        }
        Statement::Switch(_, arms) => {
            seen.number("arms", arms.len());
            arms.iter().for_each(|arm| seen.number("arm", arm.len()));
        }
        Statement::Assign(variable, value) => {
            assert_eq!(value.result(), VARIABLES[*variable]);
            seen.number("variable", *variable);
        }
        Statement::Store(kind, _, value) => {
            assert_eq!(value.result(), *kind);
            seen.number("stored", *kind as usize);
        }
        Statement::Atomic(name, kind, _, value) => {
            assert_eq!(value.result(), *kind);
            let place = ATOMIC_TYPES.iter().position(|one| one == kind);
            let compares = ["min", "max"].contains(name);
            assert!(ATOMICS.contains(name));
            seen.number(if compares { "compared" } else { "computed" }, place.expect("a type of atomics"));
        }
        Statement::StoreQuad(..) | Statement::StorePrivate(..) => {}
    });
    for (name, numbers) in [
        ("then", 1..=2),
        ("otherwise", 0..=2),
        ("body", 1..=2),
        ("loops", 0..=1),
        ("arms", 2..=6),
        ("arm", 1..=1),
        ("variable", 0..=15),
        ("stored", 0..=8),
        // Only comparisons distinguish signed types.
        ("compared", 0..=3),
        ("computed", 0..=1),
    ] {
        seen.takes(name, numbers);
    }
    else_parts.expect(&[("with", 1), ("without", 1)]);
}

/// The expressions of a statement itself.
fn roots(statement: &Statement) -> Vec<&Expression> {
    match statement {
        Statement::Assign(_, value)
        | Statement::If(value, ..)
        | Statement::Loop(_, value, _)
        | Statement::Switch(value, _) => vec![value],
        Statement::Store(_, index, value)
        | Statement::StorePrivate(index, value)
        | Statement::Atomic(_, _, index, value) => vec![index, value],
        Statement::StoreQuad(index, [first, second]) => vec![index, first, second],
    }
}

fn operations(expression: &Expression) -> usize {
    let own = usize::from(matches!(expression, Expression::Operation(..)));
    own + expression.operands().iter().map(operations).sum::<usize>()
}

/// How deep operations are in one another, those of an index not counted.
fn height(expression: &Expression) -> usize {
    match expression {
        Expression::Operation(_, operands) => 1 + operands.iter().map(height).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn expressions_keep_to_their_depth_and_to_twelve_operations() {
    let mut seen = Seen::default();
    visit_all(|statement, _, _| {
        for root in roots(statement) {
            seen.number("height", height(root));
            seen.number("operations", operations(root));
        }
    });
    seen.takes("height", 0..=4);
    seen.takes("operations", 0..=12);
}

/// Calls `see` for what an expression's operations are of at last.
fn leaves<'a>(expression: &'a Expression, see: &mut dyn FnMut(&'a Expression)) {
    match expression {
        Expression::Operation(_, operands) => operands.iter().for_each(|operand| leaves(operand, see)),
        leaf => see(leaf),
    }
}

/// In twelfths; in sixtieths for u32, which has more kinds of values. A counter has a share only inside a loop.
#[test]
fn values_have_their_weights_and_counters_are_those_of_loops_around() {
    let (mut words, mut in_loops, mut others) = (Seen::default(), Seen::default(), Seen::default());
    let mut places = Seen::default();
    visit_all(|statement, _, loops| {
        let mut see = |leaf: &Expression| {
            let seen = match leaf.result() {
                Type::U32 if loops > 0 => &mut in_loops,
                Type::U32 => &mut words,
                _ => &mut others,
            };
            seen.count(match leaf {
                Expression::Constant(..) => "constant",
                Expression::Variable(_) => "variable",
                Expression::Counter(depth) => {
                    assert!(*depth < loops, "{depth} of {loops}");
                    "counter"
                }
                Expression::Item => "item",
                Expression::Load(place, ..) => {
                    places.count(match place {
                        Place::Input => "input",
                        Place::Patch => "patch",
                        Place::Shared => "shared",
                    });
                    "load"
                }
                Expression::LoadQuad(_) => "quad",
                Expression::LoadEither(_) => "either",
                Expression::Private(_) => "private",
                Expression::Operation(..) => "operation",
            });
        };
        roots(statement).into_iter().for_each(|root| leaves(root, &mut see));
    });
    others.expect(&[("constant", 2), ("load", 1), ("variable", 9)]);
    let of_words = [("constant", 10), ("load", 5), ("variable", 40), ("item", 1), ("quad", 1), ("either", 1)];
    words.expect(&[of_words.as_slice(), &[("private", 2)]].concat());
    in_loops.expect(&[of_words.as_slice(), &[("private", 1), ("counter", 1)]].concat());
    places.expect(&[("input", 1), ("patch", 1), ("shared", 1)]);
}

#[test]
fn inner_loops_read_the_counters_of_all_loops_around() {
    let mut generator = Generator { random: Random::new(1), loops: 2, budget: 12 };
    let counters: BTreeSet<usize> = (0..1000)
        .filter_map(|_| match generator.leaf(Type::U32) {
            Expression::Counter(depth) => Some(depth),
            _ => None,
        })
        .collect();
    assert_eq!(counters, [0, 1].into());
}
