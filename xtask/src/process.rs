//! Programs that are killed if they take too long.

use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often a running program is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// By itself.
    Itself(ExitStatus),
    /// It was killed after this long.
    TookTooLong(Duration),
}

impl Ended {
    /// Why it did not succeed.
    pub fn failure(self) -> Option<String> {
        match self {
            Ended::Itself(status) => (!status.success()).then(|| status.to_string()),
            Ended::TookTooLong(limit) => Some(format!("ended after {} s", limit.as_secs())),
        }
    }
}

/// Starts a program and waits for its end; after `limit` it is killed.
pub fn wait(command: &mut Command, limit: Duration) -> std::io::Result<Ended> {
    let mut child = command.spawn()?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::Itself(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::TookTooLong(limit));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Option<String> {
        wait(Command::new("sh").args(["-c", script]), limit).unwrap().failure()
    }

    #[test]
    fn a_program_ends_well_badly_or_by_force() {
        assert_eq!(shell("exit 0", Duration::from_secs(60)), None);
        assert_eq!(shell("exit 3", Duration::from_secs(60)).as_deref(), Some("exit status: 3"));
        let started = Instant::now();
        assert_eq!(shell("exec sleep 60", Duration::ZERO).as_deref(), Some("ended after 0 s"));
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
