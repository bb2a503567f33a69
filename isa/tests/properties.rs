//! Properties of the opcode table that cannot be tested with an assembler.

use zrt_isa::opcode::{OPCODES, Properties};

#[test]
fn sparse_matrix_operations_add_to_their_destination_and_dense_ones_do_not() {
    let accumulates = |front: &str| -> Vec<bool> {
        OPCODES
            .iter()
            .filter(|opcode| opcode.mnemonic().starts_with(front))
            .map(|opcode| opcode.operands().properties.contains(Properties::ACCUMULATES))
            .collect()
    };
    assert_eq!(accumulates("v_swmmac_"), [true; 11]);
    assert_eq!(accumulates("v_wmma_"), [false; 11]);
}
