//! ELF code objects.

use crate::Program;
use crate::error::LoadError;

/// Reads a code object.
pub(crate) fn parse(_bytes: &[u8]) -> Result<Program, LoadError> {
    Err(LoadError::NoKernel)
}
