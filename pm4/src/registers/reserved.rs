//! The check that every register's value is read with.

use super::register::Register;
use crate::error::ParseError;
use crate::field::{Field, reserved_masks};

/// Refuses bits of a register's value that belong to no field.
pub(super) fn check_reserved(register: Register, fields: &[Field], word: u32) -> Result<(), ParseError> {
    let [reserved] = reserved_masks(fields);
    match word & reserved {
        0 => Ok(()),
        bits => Err(ParseError::RegisterReserved { register, bits }),
    }
}
