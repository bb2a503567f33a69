//! Why the driver refused a command.
//!
//! Contract: one sentence, with the remedy at its end.

use crate::errno::Errno;

/// The driver refused a command.
#[derive(Debug, thiserror::Error)]
#[error("{ioctl} failed with {errno}: {remedy}")]
pub struct CommandError {
    /// The command's name in the header, without its prefix.
    pub ioctl: &'static str,
    /// What the driver returned.
    pub errno: Errno,
    /// What this error means for this command, and what to do.
    pub remedy: &'static str,
}
