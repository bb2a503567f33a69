//! Texts of programs that have each construct, as a whole.

use super::*;
use crate::operators::OPERATORS;

fn number(number: u64) -> Expression {
    Expression::Constant(Type::U32, number)
}

fn assign(variable: usize, value: Expression) -> Statement {
    Statement::Assign(variable, value)
}

fn phase(call: Call, private_words: u32, body: Vec<Statement>) -> Step {
    Step::Phase(Phase { call, private_words, body })
}

/// What every program has first: its state, taken from the item's 64 bytes of input, and the store of the results.
const FRAME: &str = "\
struct p0_state {
    u32 u32_0;
    u32 u32_1;
    u32 u32_2;
    u32 u32_3;
    i32 i32_4;
    i32 i32_5;
    u64 u64_6;
    u64 u64_7;
    i64 i64_8;
    u16 u16_9;
    u8 u8_10;
    f32 f32_11;
    f32 f32_12;
    f32 f32_13;
    f64 f64_14;
    f16 f16_15;
};
PHASE_INLINE(p0, begin) {
    s->u32_0 = load_u32(in, item * 16 + 0);
    s->u32_1 = load_u32(in, item * 16 + 1);
    s->u32_2 = load_u32(in, item * 16 + 2);
    s->u32_3 = load_u32(in, item * 16 + 3);
    s->i32_4 = load_i32(in, item * 16 + 4);
    s->i32_5 = load_i32(in, item * 16 + 5);
    s->u64_6 = load_u64(in, item * 8 + 6);
    s->u64_7 = load_u64(in, item * 8 + 7);
    s->i64_8 = load_i64(in, item * 8 + 0);
    s->u16_9 = load_u16(in, item * 32 + 9);
    s->u8_10 = load_u8(in, item * 64 + 10);
    s->f32_11 = load_f32(in, item * 16 + 11);
    s->f32_12 = load_f32(in, item * 16 + 12);
    s->f32_13 = load_f32(in, item * 16 + 13);
    s->f64_14 = load_f64(in, item * 8 + 6);
    s->f16_15 = load_f16(in, item * 32 + 15);
}
PHASE_INLINE(p0, end) {
    result_u32(out, 0, s->u32_0);
    result_u32(out, 1, s->u32_1);
    result_u32(out, 2, s->u32_2);
    result_u32(out, 3, s->u32_3);
    result_i32(out, 4, s->i32_4);
    result_i32(out, 5, s->i32_5);
    result_u64(out, 6, s->u64_6);
    result_u64(out, 7, s->u64_7);
    result_i64(out, 8, s->i64_8);
    result_u16(out, 9, s->u16_9);
    result_u8(out, 10, s->u8_10);
    result_f32(out, 11, s->f32_11);
    result_f32(out, 12, s->f32_12);
    result_f32(out, 13, s->f32_13);
    result_f64(out, 14, s->f64_14);
    result_f16(out, 15, s->f16_15);
}
";

/// The text of the only program of a file, without what every one has.
fn text_of(steps: Vec<Step>) -> String {
    let text = source(&[Program { seed: 7, steps }]);
    let start = format!("#include \"differential.h\"\n\n/* seed 7 */\n{FRAME}");
    let end = "
#ifndef __AMDGCN__
static void (*const programs[])(const u8 *, u8 *, u8 *) = {p0};
int main(void) { return run_all(programs, sizeof programs / sizeof *programs); }
#endif
";
    let rest = text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}"));
    rest.strip_suffix(end).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn a_kernel_has_its_steps_in_order_between_its_begin_and_its_end() {
    let steps = vec![
        phase(Call::Inline, 16, vec![assign(0, number(1))]),
        Step::Cross { operation: "dpp8", to: 1, from: 2, index: 3, immediate: 99 },
        phase(Call::Function, 16, Vec::new()),
        Step::Share { variable: 15, factor: 7, offset: 8 },
        phase(Call::Pointer(2), 16, vec![assign(4, Expression::Variable(5))]),
        Step::ShareAtomic { operation: "max", value: 2, index: 1 },
        Step::Together { operation: "LANES", to: 3, from: 0, order: "swap_system", number: 5 },
    ];
    let expected = "\
PHASE_INLINE(p0, 0) {
    s->u32_0 = (u32)0x1ul;
}
PHASE_CALLED(p0, 2) {
}
PHASE_BESIDE(p0, 4, u32_2)
PHASE_CALLED(p0, 4) {
    s->i32_4 = s->i32_5;
}
KERNEL(p0)
PHASE(p0, begin)
PHASE(p0, 0)
CROSS(dpp8, u32_1, u32_2, u32_3, 99)
PHASE(p0, 2)
SHARE(f16, f16_15, 7, 8)
PHASE_CHOSEN(p0, 4, u32_2)
SHARED_SUM(max, u32_2, u32_1)
LANES(6, u32_3, u32_0, swap_system, 5u)
PHASE(p0, end)
END_KERNEL
";
    assert_eq!(text_of(steps), expected);
}

#[test]
fn programs_of_a_file_have_names_of_their_own() {
    let program = |seed| Program { seed, steps: Vec::new() };
    let text = source(&[program(3), program(4)]);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("p0") || line.contains("p1")).collect();
    let of = |name: &str| {
        [
            format!("struct {name}_state {{"),
            format!("PHASE_INLINE({name}, begin) {{"),
            format!("PHASE_INLINE({name}, end) {{"),
            format!("KERNEL({name})"),
            format!("PHASE({name}, begin)"),
            format!("PHASE({name}, end)"),
        ]
    };
    let table = "static void (*const programs[])(const u8 *, u8 *, u8 *) = {p0, p1};".to_owned();
    assert_eq!(lines, [&of("p0")[..], &of("p1"), &[table]].concat());
    assert_eq!(text.matches("#include").count(), 1);
    assert!(text.contains("/* seed 3 */\nstruct p0_state") && text.contains("/* seed 4 */\nstruct p1_state"));
}

/// The body of an inline phase with these statements.
fn body_of(statements: Vec<Statement>) -> String {
    let text = text_of(vec![phase(Call::Inline, 128, statements)]);
    let rest = text.strip_prefix("PHASE_INLINE(p0, 0) {\n").unwrap();
    let end = "}\nKERNEL(p0)\nPHASE(p0, begin)\nPHASE(p0, 0)\nPHASE(p0, end)\nEND_KERNEL\n";
    rest.strip_suffix(end).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn statements_are_indented_by_what_they_stand_in() {
    let inner = Statement::If(number(6), vec![assign(0, number(7))], Vec::new());
    let arms = vec![vec![assign(1, number(2)), assign(2, number(3))], Vec::new(), vec![inner]];
    let statements = vec![
        Statement::If(
            Expression::Item,
            vec![Statement::Loop(0, number(4), vec![Statement::Loop(1, Expression::Counter(0), Vec::new())])],
            vec![Statement::Switch(number(5), arms)],
        ),
        Statement::If(number(8), Vec::new(), vec![assign(3, number(9))]),
        Statement::Switch(number(10), Vec::new()),
    ];
    let expected = "    if (item & 1) {
        for (u32 c0 = 0, n = (u32)0x4ul & 7; c0 < n; c0++) {
            for (u32 c1 = 0, n = c0 & 7; c1 < n; c1++) {
            }
        }
    } else {
        switch ((u32)0x5ul % 3) {
        case 0:
            s->u32_1 = (u32)0x2ul;
            s->u32_2 = (u32)0x3ul;
            break;
        case 1:
            break;
        case 2:
            if ((u32)0x6ul & 1) {
                s->u32_0 = (u32)0x7ul;
            }
            break;
        }
    }
    if ((u32)0x8ul & 1) {
    } else {
        s->u32_3 = (u32)0x9ul;
    }
    switch ((u32)0xaul % 1) {
    }
";
    assert_eq!(body_of(statements), expected);
}

#[test]
fn statements_with_effects_are_calls_of_the_header() {
    let statements = vec![
        Statement::Store(Type::I64, number(1), Expression::Variable(8)),
        Statement::StoreQuad(number(2), [number(3), number(4)]),
        Statement::Atomic("max", Type::U64, number(5), Expression::Variable(6)),
    ];
    let expected = "    store_i64(out, (u32)0x1ul, s->i64_8);
    store_quad(out, (u32)0x2ul, (u32)0x3ul, (u32)0x4ul);
    atomic_max_u64(acc, (u32)0x5ul, s->u64_6);
";
    assert_eq!(body_of(statements), expected);
}

/// It is there for what stores into it, and for what only reads it.
#[test]
fn a_phase_that_uses_its_array_has_one() {
    let array =
        "    enum { WORDS = 128 };\n    u32 local[WORDS];\n    shift_words(local, WORDS, s->u32_0);\n";
    let stored = body_of(vec![Statement::StorePrivate(number(1), number(2))]);
    assert_eq!(stored, format!("{array}    local[(u32)0x1ul % WORDS] = (u32)0x2ul;\n"));
    let read = body_of(vec![assign(0, Expression::Private(Box::new(Expression::Item)))]);
    assert_eq!(read, format!("{array}    s->u32_0 = local[item % WORDS];\n"));
}

#[test]
fn expressions_are_calls_of_the_header() {
    let operator = |name: &str| OPERATORS.iter().find(|operator| operator.name == name).unwrap();
    let pair = || Box::new([number(1), Expression::Item]);
    let index = || Box::new(number(2));
    for (expression, text) in [
        (Expression::Constant(Type::U8, 0xFF), "(u8)0xfful"),
        (Expression::Constant(Type::I64, u64::MAX), "(i64)0xfffffffffffffffful"),
        (Expression::Constant(Type::F16, 0x3C00), "make_f16(0x3c00)"),
        (Expression::Constant(Type::F32, 0x3F80_0000), "make_f32(0x3f800000u)"),
        (Expression::Constant(Type::F64, 1 << 63), "make_f64(0x8000000000000000ul)"),
        (Expression::Variable(14), "s->f64_14"),
        (Expression::Counter(1), "c1"),
        (Expression::Item, "item"),
        (Expression::Operation(operator("not_u32"), vec![number(3)]), "not_u32((u32)0x3ul)"),
        (
            Expression::Operation(operator("add3_u32"), vec![number(3), Expression::Item, number(4)]),
            "add3_u32((u32)0x3ul, item, (u32)0x4ul)",
        ),
        (Expression::Load(Place::Input, Type::F16, index()), "load_f16(in, (u32)0x2ul)"),
        (Expression::Load(Place::Patch, Type::U8, index()), "patch_u8(out, (u32)0x2ul)"),
        (Expression::Load(Place::Shared, Type::U64, index()), "shared_u64(lds, (u32)0x2ul)"),
        (Expression::LoadQuad(pair()), "load_quad(in, (u32)0x1ul, item)"),
        (Expression::LoadEither(pair()), "load_either(in, lds, (u32)0x1ul, item)"),
        (Expression::Private(index()), "local[(u32)0x2ul % WORDS]"),
    ] {
        assert_eq!(Text(&expression).to_string(), text);
    }
}
