//! Which table executes which operation: exactly one, or none, in which case the operation is listed as not
//! executed.
//!
//! If two tables had an operation, the first would win, and the other would be code that no test reaches.

use zrt_isa::Opcode;
use zrt_isa::opcode::OPCODES;

use crate::coverage::{not_executed, representative};
use crate::shader::{control, lds, prefetch, salu, smem, valu, vmem};
use crate::simd::Level;

/// Names of the tables that have an operation, whatever its encoding.
fn tables_with(opcode: Opcode) -> Vec<&'static str> {
    let instruction = representative(opcode);
    let families = [
        ("control", control::translate(&instruction).is_some()),
        ("smem", smem::translate(&instruction).is_some()),
        ("prefetch", prefetch::translate(&instruction).is_some()),
        ("lds", lds::translate(&instruction, Level::BASELINE).is_some()),
        ("vmem", vmem::translate(&instruction, Level::BASELINE).is_some()),
    ];
    let mut names: Vec<_> = families.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect();
    names.extend(salu::tables_with(opcode));
    names.extend(valu::tables_with(&instruction));
    names
}

#[test]
fn every_operation_is_in_one_table_or_named_as_not_executed() {
    let is_wrong = |(opcode, tables): &(Opcode, Vec<_>)| match not_executed(*opcode) {
        None => tables.len() != 1,
        Some(_) => !tables.is_empty(),
    };
    let bindings = OPCODES.iter().map(|opcode| (*opcode, tables_with(*opcode)));
    let wrong: Vec<_> = bindings.filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The tables are queried for any encoding above; this shows that each of them was.
#[test]
fn every_table_has_operations() {
    let mut seen: Vec<_> = OPCODES.iter().flat_map(|opcode| tables_with(*opcode)).collect();
    seen.sort_unstable();
    seen.dedup();
    let families = ["control", "lds", "prefetch", "smem", "vmem"];
    let scalar = ["bits", "float", "mask"];
    let vector = [
        "approximate",
        "compare",
        "convert",
        "convert::from_bytes",
        "difference",
        "division",
        "dot",
        "double",
        "half::arithmetic",
        "half::selection",
        "integer",
        "lanes",
        "matrix",
        "packed",
        "rare",
        "rare::stochastic",
        "single::arithmetic",
        "single::mixed",
        "single::selection",
        "special",
    ];
    let mut expected = [&families[..], &scalar[..], &vector[..]].concat();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}
