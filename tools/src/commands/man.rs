//! `zrt man`: manual pages, one for each program and each subcommand.
//!
//! Contract: creates the folder if it is missing; pages of the same names in it are replaced, each as a whole and none
//! before all are written; nothing else is touched.

use super::launch::outputs;
use super::write_text;
use crate::error::ToolError;
use clap::Args;
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Writes the manual pages of both programs and all subcommands to a folder
#[derive(Debug, Args)]
pub struct Arguments {
    /// Folder, created if missing; `man` searches folders named man1
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Runs the command. `programs`: the command lines of both.
pub fn run(arguments: &Arguments, programs: [clap::Command; 2]) -> Result<bool, ToolError> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder).map_err(|source| unwritten(folder, source))?;
    let pages: Vec<clap::Command> = programs.into_iter().flat_map(pages).collect();
    let path = |page: &clap::Command| {
        let name = page.get_display_name().unwrap_or_else(|| page.get_name());
        folder.join(format!("{name}.1"))
    };
    let paths: Vec<PathBuf> = pages.iter().map(path).collect();
    let files = outputs::plan(paths.iter().map(PathBuf::as_path))?;
    let text = |page: &clap::Command| {
        let mut text = Vec::new();
        Man::new(page.clone()).render(&mut text).map(|()| text)
    };
    let texts = pages.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let contents: Vec<_> =
        files.iter().zip(&texts).map(|(file, text)| (file, [text.as_slice(), &[]])).collect();
    outputs::write(&contents)?;
    write_text(&format!("{} pages in {}\n", pages.len(), folder.display()))?;
    Ok(true)
}

/// A program and its subcommands. Building it gives them the names of their pages, `zrt-launch`.
fn pages(mut program: clap::Command) -> Vec<clap::Command> {
    program.build();
    let subcommands = program.get_subcommands().filter(|command| command.get_name() != "help").cloned();
    let subcommands: Vec<clap::Command> = subcommands.collect();
    [program].into_iter().chain(subcommands).collect()
}

fn unwritten(path: &Path, source: std::io::Error) -> ToolError {
    ToolError::Write { path: path.display().to_string(), source }
}
