//! Programs read from files.
//!
//! Contract: for raw code the user states what the file cannot; for other programs that is refused. At most
//! `FILE_BYTES_MAX` bytes are read.

use crate::bounded_read::{self, ReadError};
use crate::error::{ToolError, bad};
use std::path::Path;
use zrt_loader::{FILE_BYTES_MAX, Format, Program, RawOptions};
use zrt_script::ProgramFile;

/// The extension of raw code; every other file identifies itself.
const RAW_EXTENSION: &str = "bin";

/// Reads the program; a relative path is relative to `folder`. `names`: what the user calls the number of vector
/// registers and of user SGPRs.
pub(super) fn load_program(
    file: &ProgramFile,
    folder: &Path,
    names: [&str; 2],
) -> Result<Program, ToolError> {
    let path = folder.join(&file.path);
    let bytes = read(&path, FILE_BYTES_MAX, "a program")?;
    let name = path.display();
    let damaged = |error: &dyn std::fmt::Display| bad(format!("{name} cannot be loaded: {error}"));
    if path.extension().is_some_and(|extension| extension == RAW_EXTENSION) {
        let defaults = RawOptions::default();
        let options = RawOptions {
            name: file.kernel.clone().unwrap_or(defaults.name),
            wave_size: file.wave_size.unwrap_or(defaults.wave_size),
            vgprs: file.vgprs.unwrap_or(defaults.vgprs),
            user_sgprs: file.user_sgprs.unwrap_or(defaults.user_sgprs),
            ..defaults
        };
        return Program::raw(&bytes, &options).map_err(|error| damaged(&error));
    }
    let program = Program::parse(&bytes).map_err(|error| damaged(&error))?;
    let mut of_raw = names.iter().zip([file.vgprs, file.user_sgprs]);
    if let Some((flag, _)) = of_raw.find(|(_, value)| value.is_some()) {
        let what = match program.format() {
            Format::Zrt => "a .zrt",
            _ => "a code object",
        };
        return Err(bad(format!(
            "{flag} is for raw code (.bin), but {name} is {what}, which states it itself"
        )));
    }
    Ok(program)
}

/// Whether the assumptions of a single compiler are accepted for a program.
pub(super) fn trusts_compilers(program: &Program) -> bool {
    matches!(program.format(), Format::CodeObject | Format::Object)
}

/// The bytes of a file that are to be `what`, at most `limit` of them.
pub(super) fn read(path: &Path, limit: u64, what: &str) -> Result<Vec<u8>, ToolError> {
    let name = path.display();
    bounded_read::read(path, limit).map_err(|error| match error {
        ReadError::System(error) => bad(format!("{name} cannot be read: {error}")),
        ReadError::TooLong => bad(format!("{name} has more than the {limit} bytes that {what} may have")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program states itself cannot be stated again; only compilers' assumptions are accepted for their code.
    #[test]
    fn only_raw_code_is_told_what_it_needs() {
        let folder = zrt_needs::TemporaryFolder::new("load-program");
        std::fs::write(folder.join("mega.zrt"), zrt_asm::blob("mega").unwrap()).unwrap();
        // s_endpgm of ISA section 16.5: SOPP, operation 48.
        std::fs::write(folder.join("end.bin"), 0xbfb0_0000u32.to_le_bytes()).unwrap();
        let load = |path: &str, vgprs, user_sgprs| {
            let path = path.into();
            let file = ProgramFile { path, kernel: None, wave_size: None, vgprs, user_sgprs };
            load_program(&file, &folder, ["--vgprs", "--user-sgprs"]).map_err(|error| error.to_string())
        };
        for (vgprs, user_sgprs, flag) in [(Some(8), None, "--vgprs"), (None, Some(2), "--user-sgprs")] {
            let name = folder.join("mega.zrt").display().to_string();
            let told = load("mega.zrt", vgprs, user_sgprs).unwrap_err();
            let expected =
                format!("{flag} is for raw code (.bin), but {name} is a .zrt, which states it itself");
            assert_eq!(told, expected);
            assert!(load("end.bin", vgprs, user_sgprs).is_ok());
        }
        for path in ["mega.zrt", "end.bin"] {
            assert!(!trusts_compilers(&load(path, None, None).unwrap()), "{path}");
        }
    }
}
