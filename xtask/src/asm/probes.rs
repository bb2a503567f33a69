//! The kernels of the device's probes: plain code without a container.
//!
//! Contract: `bringup/src/probe/kernels/NAME.s` becomes `NAME.bin` beside it; `.inc` files are only included. The
//! device's tests check the code against the static rules.

use super::{AsmError, Output, Tools};
use std::fs;

/// Sources and code, relative to the repository.
const FOLDER: &str = "bringup/src/probe/kernels";

/// Assembles all of them, in the order of their names.
pub(super) fn build(tools: &Tools<'_>) -> Result<Vec<Output>, AsmError> {
    let folder = tools.root.join(FOLDER);
    let failed = |source| AsmError::File { path: folder.clone(), source };
    let mut outputs = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let source = entry.map_err(failed)?.path();
        if source.extension().is_some_and(|extension| extension == "s") {
            let bytes = tools.assemble_plain(&folder, &source)?;
            outputs.push(Output { path: source.with_extension("bin"), bytes });
        }
    }
    outputs.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(outputs)
}
