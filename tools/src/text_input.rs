//! Texts from files and from standard input.
//!
//! Contract: UTF-8, at most `BYTES_MAX`. The text is taken as it is, but for one line feed at its end, which editors
//! and `echo` add.

use crate::bounded_read::{self, ReadError};
use crate::error::ToolError;
use std::path::Path;

/// Maximum number of bytes: more than the context of any model holds.
const BYTES_MAX: u64 = 1 << 24;

/// The text of a file; of standard input if the path is `-`.
pub fn read(path: &Path) -> Result<String, ToolError> {
    let name =
        || if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() };
    let bytes = match is_standard_input(path) {
        true => bounded_read::read_stream(std::io::stdin().lock(), BYTES_MAX),
        false => bounded_read::read(path, BYTES_MAX),
    };
    let bytes = bytes.map_err(|error| match error {
        ReadError::System(source) => ToolError::Read { path: name(), source },
        ReadError::TooLong => ToolError::TooLong { path: name(), limit: BYTES_MAX },
    })?;
    let mut text = String::from_utf8(bytes).map_err(|_| ToolError::NoText { path: name() })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Editors end a text with one line feed; what else there is belongs to it.
    #[test]
    fn one_line_end_is_left_out() {
        let folder = zrt_needs::TemporaryFolder::new("text-input");
        let path = folder.join("text");
        for (bytes, text) in [
            ("a\nb\n", "a\nb"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a\r", "a\r"),
            ("\r\n\r\n", "\r\n"),
            ("", ""),
            ("a", "a"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path).unwrap(), text, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let folder = zrt_needs::TemporaryFolder::new("text-input-refused");
        let path = folder.join("text");
        let complaint = || read(&path).map_err(|error| error.to_string()).unwrap_err();
        let name = path.display();
        assert_eq!(complaint(), format!("{name} cannot be read"));
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        assert_eq!(complaint(), format!("{name} is not UTF-8 text"));
        std::fs::File::create(&path).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert_eq!(complaint(), format!("{name} has more than {BYTES_MAX} bytes"));
        assert!(is_standard_input(Path::new("-")) && !is_standard_input(Path::new("./-")));
    }
}
