//! What programs that we started took of the processors.
//!
//! Contract: [`of_children`] is the time of all that have ended and been waited for, with what they started and waited
//! for in turn. It tells a slow program from a machine with other work.

use std::time::Duration;

/// A tick of the kernel's text files: `USER_HZ`, which is 100 on x86-64 (proc(5), `/proc/PID/stat`).
const TICKS_PER_SECOND: u64 = 100;
/// Fields of `/proc/self/stat` behind the program's name in brackets, of which the state is the first: `cutime` and
/// `cstime`.
const FIELDS: [usize; 2] = [13, 14];

/// User and system time together; zero where the kernel does not tell.
pub fn of_children() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    parse(&text).unwrap_or_default()
}

fn parse(text: &str) -> Option<Duration> {
    let (_, behind) = text.rsplit_once(')')?;
    let fields: Vec<&str> = behind.split_ascii_whitespace().collect();
    let [user, system] = FIELDS.map(|at| fields.get(at)?.parse::<u64>().ok());
    Some(Duration::from_millis((user? + system?) * 1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_manual_is_read() {
        // proc(5): pid, comm, state, ppid, pgrp, session, tty_nr, tpgid, flags, minflt, cminflt, majflt, cmajflt,
        // utime, stime, cutime, cstime, priority.
        let line = "7 (a ) b) S 1 7 7 0 -1 4 9 8 7 6 51 52 1234 66 20 0";
        assert_eq!(parse(line), Some(Duration::from_secs(13)));
        assert_eq!((parse("7 (a) S 1"), parse("")), (None, None));
    }

    #[test]
    fn a_program_that_computes_is_counted() {
        let before = of_children();
        let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        std::process::Command::new("sh").args(["-c", count]).status().unwrap();
        assert!(of_children() > before);
    }
}
