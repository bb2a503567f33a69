//! Progress of long steps, on a terminal only.
//!
//! Contract: writes to standard error, never to standard output; nothing at all if standard error is not a terminal or
//! the steps are quick. Dropping a bar removes it from the screen.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar that counts up to a total.
pub struct Progress {
    bar: ProgressBar,
}

/// What the numbers of a bar are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Tokens.
    Tokens,
}

impl Progress {
    /// A bar for `total` units of work called `task` ("loading weights").
    pub fn new(task: &'static str, total: u64, unit: Unit) -> Progress {
        let template = match unit {
            Unit::Bytes => "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}",
            Unit::Tokens => "{msg} {wide_bar} {pos}/{len} tokens {per_sec}",
        };
        // indicatif draws nothing if standard error is not a terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(task);
        Progress { bar }
    }

    /// A sign of life for work of unknown length.
    pub fn spinner(task: &'static str) -> Progress {
        let bar = ProgressBar::new_spinner();
        bar.set_message(task);
        bar.enable_steady_tick(Duration::from_millis(120));
        Progress { bar }
    }

    /// Sets how much is done.
    pub fn set(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// So much more is done.
    pub fn advance(&self, more: u64) {
        self.bar.inc(more);
    }

    /// Sets how much is done, and the total.
    pub fn set_of(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_it_is_told_until_it_is_dropped() {
        let progress = Progress::new("reading", 10, Unit::Tokens);
        progress.set(3);
        let bar = progress.bar.clone();
        assert_eq!((bar.position(), bar.length()), (3, Some(10)));
        progress.advance(5);
        assert_eq!(bar.position(), 8);
        progress.set_of(4, 20);
        assert_eq!((bar.position(), bar.length(), bar.is_finished()), (4, Some(20), false));
        drop(progress);
        assert!(bar.is_finished());
    }
}
