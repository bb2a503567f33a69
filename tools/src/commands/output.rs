//! What commands write to standard output: texts, and documents of one line.
//!
//! Contract: whatever is written is flushed.

use crate::error::ToolError;
use serde::Serialize;
use std::fmt::Display;
use std::io::{BufWriter, Write};

/// Version of the documents: removing a field or changing its meaning makes a new one; adding fields does not.
pub(super) const DOCUMENT_VERSION: u32 = 1;

/// An object, preceded by its version.
#[derive(Serialize)]
struct Document<'a, T: Serialize> {
    version: u32,
    #[serde(flatten)]
    content: &'a T,
}

/// Writes a value as JSON on one line.
pub fn write_json(value: &impl Serialize) -> Result<(), ToolError> {
    let mut output = BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer(&mut output, value)?;
    writeln!(output)?;
    Ok(output.flush()?)
}

/// Writes an object as a JSON document on one line, its version first.
pub fn write_document(content: &impl Serialize) -> Result<(), ToolError> {
    write_json(&Document { version: DOCUMENT_VERSION, content })
}

/// Writes text as it is made.
pub fn write_text(text: &(impl Display + ?Sized)) -> Result<(), ToolError> {
    let mut output = BufWriter::new(std::io::stdout().lock());
    write!(output, "{text}")?;
    Ok(output.flush()?)
}
