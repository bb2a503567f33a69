//! Files that are written at the end, all of them or none; and a file whose place is checked before there is anything
//! to write to it.
//!
//! Contract: [`plan`] checks the folders, and what is there already, before anything runs: only regular files are
//! replaced, never a device node, a pipe or a socket; in place of a link, the file that it leads to is replaced.
//! [`write`] first writes every file under a temporary name in its own folder; existing files are replaced only when
//! all are complete. If a rename fails afterwards, the files renamed before it stay, each of them whole.

use crate::error::{ToolError, bad};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufWriter, Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputFile {
    /// The path as given.
    pub path: PathBuf,
    /// Where it goes: links resolved.
    target: PathBuf,
    /// Where it is written first.
    temporary: PathBuf,
}

/// Temporary files that are removed unless they were renamed.
struct Pending<'a>(Vec<&'a Path>);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        for path in &self.0 {
            // Best effort: the error that led here is the one that is reported.
            let _ = fs::remove_file(path);
        }
    }
}

/// A path that cannot be written.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Its index among the paths.
    pub index: usize,
    /// Why.
    pub error: ToolError,
}

impl From<Refused> for ToolError {
    fn from(refused: Refused) -> ToolError {
        refused.error
    }
}

/// The files of paths, in the same order; or the first path that cannot be written.
pub(crate) fn plan<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Vec<OutputFile>, Refused> {
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for (index, path) in paths.enumerate() {
        let refuse = |error| Refused { index, error };
        let file = planned(path).map_err(refuse)?;
        if !seen.insert(file.target.clone()) {
            let what = "is written twice: give each output a name of its own, in a loop by its variable";
            return Err(refuse(bad(format!("{} {what}", path.display()))));
        }
        files.push(file);
    }
    Ok(files)
}

/// The file of a path.
fn planned(path: &Path) -> Result<OutputFile, ToolError> {
    let target = target(path)?;
    let mut temporary = OsString::from(".");
    temporary.push(target.file_name().unwrap_or_default());
    temporary.push(format!(".{}.partial", std::process::id()));
    Ok(OutputFile { path: path.to_owned(), temporary: target.with_file_name(temporary), target })
}

/// The whole path of the file that is written for `path`. If something is there already, it is a regular file.
fn target(path: &Path) -> Result<PathBuf, ToolError> {
    let refuse = |why: &str| bad(format!("{} cannot be written: {why}", path.display()));
    let system = |error: Error| refuse(&error.to_string());
    match fs::symlink_metadata(path) {
        Ok(_) => {
            let target = fs::canonicalize(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => refuse("it is a dangling link"),
                _ => system(error),
            })?;
            let kind = fs::metadata(&target).map_err(system)?.file_type();
            match (kind.is_file(), kind.is_dir()) {
                (true, _) => Ok(target),
                (_, true) => Err(refuse("it is a folder")),
                _ => Err(refuse("it is not a regular file, and only regular files are replaced")),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let name = path.file_name().ok_or_else(|| refuse("it is not a file name"))?;
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            Ok(fs::canonicalize(folder).map_err(system)?.join(name))
        }
        Err(error) => Err(system(error)),
    }
}

/// A file that is begun under its temporary name, and takes its place when it is whole. Until then what was there
/// stays; what was begun is removed when this is dropped.
pub(in crate::commands) struct BegunFile {
    file: OutputFile,
    output: BufWriter<fs::File>,
    is_whole: bool,
}

impl BegunFile {
    /// Begins a file.
    pub(in crate::commands) fn new(path: &Path) -> Result<BegunFile, ToolError> {
        let OutputFile { path, target, temporary } = planned(path)?;
        let output = fs::File::create(&temporary)
            .map_err(|source| ToolError::Write { path: path.display().to_string(), source })?;
        let file = OutputFile { path, target, temporary };
        Ok(BegunFile { file, output: BufWriter::new(output), is_whole: false })
    }

    /// Writes what belongs into it, and puts it in its place.
    pub(in crate::commands) fn finish(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), ToolError> {
        let finish = || {
            write(&mut self.output)?;
            self.output.flush()?;
            self.output.get_ref().sync_all()?;
            fs::rename(&self.file.temporary, &self.file.target)
        };
        let path = self.file.path.display().to_string();
        finish().map_err(|source| ToolError::Write { path, source })?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for BegunFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // Best effort, as above.
            let _ = fs::remove_file(&self.file.temporary);
        }
    }
}

/// Writes the files, each with its contents in parts.
pub(crate) fn write(files: &[(&OutputFile, [&[u8]; 2])]) -> Result<(), ToolError> {
    let mut pending = Pending(Vec::new());
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |source| ToolError::Write { path, source }
    };
    for (file, parts) in files {
        pending.0.push(&file.temporary);
        let write = || {
            let mut output = fs::File::create(&file.temporary)?;
            parts.iter().try_for_each(|part| output.write_all(part))?;
            output.sync_all()
        };
        write().map_err(failed(&file.path))?;
    }
    for (file, _) in files {
        fs::rename(&file.temporary, &file.target).map_err(failed(&file.path))?;
        pending.0.retain(|path| *path != file.temporary);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned_all(paths: &[&Path]) -> Result<Vec<OutputFile>, (usize, String)> {
        plan(paths.iter().copied()).map_err(|refused| (refused.index, refused.error.to_string()))
    }

    /// Only what can be written, and only once, by whatever name.
    #[test]
    fn places_that_cannot_be_written_are_refused() {
        let folder = zrt_needs::TemporaryFolder::new("outputs-refused");
        let at = |name: &str| folder.join(name);
        fs::write(at("file"), "old").unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        for (name, why) in [
            ("folder", "it is a folder"),
            ("dangling", "it is a dangling link"),
            ("folder/..", "it is a folder"),
            ("/dev/null", "it is not a regular file, and only regular files are replaced"),
            ("absent/file", "No such file or directory (os error 2)"),
            ("absent/..", "it is not a file name"),
            ("file/below", "Not a directory (os error 20)"),
        ] {
            let (index, told) = planned_all(&[&at("new"), &at(name)]).unwrap_err();
            assert_eq!((index, told), (1, format!("{} cannot be written: {why}", at(name).display())));
        }
        let twice = planned_all(&[&at("new"), &at("file"), &at("link")]).unwrap_err();
        assert!(twice.0 == 2 && twice.1.contains("link is written twice"), "{twice:?}");
        assert_eq!(planned_all(&[&at("new"), &at("file")]).unwrap().len(), 2);
        assert_eq!(planned_all(&[Path::new("a-name-in-this-folder")]).unwrap().len(), 1);
    }

    fn names(folder: &Path) -> Vec<String> {
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// A file that cannot take its place leaves nothing behind; those before it are in theirs.
    #[test]
    fn what_was_begun_is_removed() {
        let folder = zrt_needs::TemporaryFolder::new("outputs-begun");
        let at = |name: &str| folder.join(name);
        let files = planned_all(&[&at("a"), &at("b"), &at("c")]).unwrap();
        fs::create_dir(at("b")).unwrap();
        let contents: Vec<_> = files.iter().map(|file| (file, [&b"x"[..], b""])).collect();
        let told = write(&contents).unwrap_err().to_string();
        assert_eq!(told, format!("{} cannot be written", at("b").display()));
        assert_eq!(names(&folder), ["a", "b"]);
    }

    /// What a link leads to is replaced; if one file cannot be begun, none is.
    #[test]
    fn all_files_are_written_or_none() {
        let folder = zrt_needs::TemporaryFolder::new("outputs-written");
        let at = |name: &str| folder.join(name);
        fs::write(at("file"), "old").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let files = planned_all(&[&at("link"), &at("folder/file")]).unwrap();
        let contents = [(&files[0], [&b"a"[..], b"b"]), (&files[1], [&b""[..], b"c"])];
        fs::rename(at("folder"), at("moved")).unwrap();
        let told = write(&contents).unwrap_err().to_string();
        assert_eq!(told, format!("{} cannot be written", at("folder/file").display()));
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "old");
        assert_eq!(names(&folder), ["file", "link", "moved"]);
        fs::rename(at("moved"), at("folder")).unwrap();
        write(&contents).unwrap();
        let written = ["file", "link", "folder/file"].map(|name| fs::read_to_string(at(name)).unwrap());
        assert_eq!(written, ["ab", "ab", "c"]);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(
            (names(&folder), names(&at("folder"))),
            (vec!["file".into(), "folder".into(), "link".into()], vec!["file".into()])
        );
    }
}
