//! What functions change, as far as their callers are checked by it.
//!
//! Contract: a plain value; register numbers are those of [`super::effects::Registers`].

use super::convention::RegisterSet;
use alloc::collections::BTreeMap;

/// The registers that each function writes, callees included.
#[derive(Debug, Default)]
pub(super) struct Changes(pub(super) BTreeMap<usize, RegisterSet>);

impl Changes {
    /// Those written by the function at a dword.
    pub(super) fn of(&self, dword: usize) -> Option<&RegisterSet> {
        self.0.get(&dword)
    }
}
