//! Files that a launch writes: all of them or none.
//!
//! Contract: [`plan`] looks at the folders before anything runs. [`write`] puts every file behind a temporary name in
//! its own folder first; what is there already is replaced only when all are complete. Where a rename fails
//! afterwards, the files renamed before it stay, each of them whole.

use super::arguments::{ArgumentSpec, bad};
use crate::error::ToolError;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputFile {
    /// Where it goes.
    pub path: PathBuf,
    /// Where it is written first.
    temporary: PathBuf,
}

/// Temporary files that are removed unless they were renamed.
struct Pending<'a>(Vec<&'a Path>);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        for path in &self.0 {
            // Best effort: the error that led here is what is told.
            let _ = fs::remove_file(path);
        }
    }
}

/// The files of the arguments, in their order.
pub(super) fn plan(specs: &[ArgumentSpec]) -> Result<Vec<OutputFile>, ToolError> {
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for path in specs.iter().filter_map(ArgumentSpec::output) {
        let Some(name) = path.file_name() else {
            return Err(bad(format!("{} is no name of a file", path.display())));
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let whole = fs::canonicalize(folder)
            .map_err(|error| bad(format!("{} cannot be written: {error}", path.display())))?;
        if path.is_dir() {
            return Err(bad(format!("{} cannot be written: it is a folder", path.display())));
        }
        if !seen.insert(whole.join(name)) {
            return Err(bad(format!("{} is the output of two arguments", path.display())));
        }
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.partial", std::process::id()));
        files.push(OutputFile { path: path.clone(), temporary: folder.join(temporary) });
    }
    Ok(files)
}

/// Writes the files; `contents` are in their order.
pub(super) fn write(files: &[OutputFile], contents: &[&[u8]]) -> Result<(), ToolError> {
    let mut pending = Pending(Vec::new());
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |source| ToolError::Write { path, source }
    };
    for (file, content) in files.iter().zip(contents) {
        pending.0.push(&file.temporary);
        let write = || {
            let mut output = fs::File::create(&file.temporary)?;
            output.write_all(content)?;
            output.sync_all()
        };
        write().map_err(failed(&file.path))?;
    }
    for file in files {
        fs::rename(&file.temporary, &file.path).map_err(failed(&file.path))?;
        pending.0.retain(|path| *path != file.temporary);
    }
    Ok(())
}
