//! Ctrl-C while an answer is written: the first one stops the answer, the next one ends the program.
//!
//! Contract: nothing changes until [`Interrupt::install`]. Outside of an answer one Ctrl-C ends the program, with exit
//! code 130, as shells expect of it. The handlers store to memory and end the process, nothing else.

use crate::error::ToolError;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a program that SIGINT ended, by the convention of shells: 128 and the signal's number.
const EXIT_CODE: i32 = 130;

/// What the user has asked for.
#[derive(Clone)]
pub struct Interrupt {
    /// An answer is to stop.
    asked: Arc<AtomicBool>,
    /// The next Ctrl-C ends the program.
    ends: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes over Ctrl-C. Until [`Interrupt::begin`] it ends the program as before.
    pub fn install() -> Result<Interrupt, ToolError> {
        let interrupt = Interrupt::ignored();
        interrupt.ends.store(true, Ordering::Relaxed);
        // In this order: a first Ctrl-C is looked at before it changes what the second one does.
        flag::register_conditional_shutdown(SIGINT, EXIT_CODE, interrupt.ends.clone())?;
        flag::register(SIGINT, interrupt.ends.clone())?;
        flag::register(SIGINT, interrupt.asked.clone())?;
        Ok(interrupt)
    }

    /// One that nobody asks.
    pub fn ignored() -> Interrupt {
        Interrupt { asked: Arc::new(AtomicBool::new(false)), ends: Arc::new(AtomicBool::new(false)) }
    }

    /// One that an answer is asked to stop by.
    #[cfg(test)]
    pub fn asked() -> Interrupt {
        let interrupt = Interrupt::ignored();
        interrupt.asked.store(true, Ordering::Relaxed);
        interrupt
    }

    /// An answer begins: Ctrl-C stops it.
    pub fn begin(&self) {
        self.asked.store(false, Ordering::Relaxed);
        self.ends.store(false, Ordering::Relaxed);
    }

    /// The answer is over: Ctrl-C ends the program.
    pub fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    /// True if the answer is to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before an answer an old wish is forgotten; after it the next one ends the program.
    #[test]
    fn a_wish_counts_for_one_answer() {
        let interrupt = Interrupt::ignored();
        let ends = || interrupt.ends.load(Ordering::Relaxed);
        assert!(!interrupt.is_asked() && !ends());
        interrupt.asked.store(true, Ordering::Relaxed);
        interrupt.end();
        assert!(interrupt.is_asked() && ends());
        interrupt.begin();
        assert!(!interrupt.is_asked() && !ends());
    }
}
