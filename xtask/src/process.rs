//! Other programs: cargo, and any that is killed if it takes too long or too much.

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process_group, prlimit, waitid,
};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How often a running program is polled at first, and after a while.
const FIRST_POLL: Duration = Duration::from_millis(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Longest that cargo may take to describe the workspace: rustup may fetch a toolchain first.
const METADATA_LIMIT: Duration = Duration::from_secs(300);
/// A page of x86-64.
const PAGE_BYTES: u64 = 4096;

/// What starts a program and gives what it said until it ended: [`Command::output`], or a stand-in.
pub type Start<'a> = &'a dyn Fn(&mut Command) -> std::io::Result<Output>;

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// By itself.
    Itself(ExitStatus),
    /// It was killed after this long.
    TookTooLong(Duration),
    /// It was killed when it had more than so many bytes of memory.
    TookTooMuch(u64),
}

/// What a program wrote until it ended.
#[derive(Debug)]
pub struct Said {
    pub ended: Ended,
    pub output: String,
    pub errors: String,
}

/// What a program may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until it ends.
    pub time: Duration,
    /// Resident bytes, not counting what it has started.
    pub memory_bytes: u64,
}

impl Limits {
    /// The end of a program that holds so many bytes, if they are more than it may hold.
    fn excess(self, bytes: u64) -> Option<Ended> {
        (bytes > self.memory_bytes).then_some(Ended::TookTooMuch(bytes))
    }
}

impl Ended {
    /// Why it did not succeed.
    pub fn failure(self) -> Option<String> {
        match self {
            Ended::Itself(status) => (!status.success()).then(|| status.to_string()),
            Ended::TookTooLong(limit) => Some(format!("ended after {} s", limit.as_secs())),
            Ended::TookTooMuch(bytes) => Some(format!("ended at {} MiB", bytes >> 20)),
        }
    }
}

/// The cargo that started this program; the one on the path if it was started by hand.
pub fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// [`cargo_program`], to be given arguments.
pub fn cargo() -> Command {
    Command::new(cargo_program())
}

/// What cargo says of the workspace at `root`: its members, without what they depend on elsewhere. What else it says is
/// shown, or is part of the error.
pub fn cargo_metadata(root: &Path) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let mut command = cargo();
    command.args(["metadata", "--locked", "--no-deps", "--format-version", "1"]).current_dir(root);
    let limits = Limits { time: METADATA_LIMIT, memory_bytes: u64::MAX };
    let said = listen_once(&mut command, &std::env::temp_dir(), limits)?;
    match said.ended.failure() {
        None => {
            eprint!("{}", said.errors);
            Ok(serde_json::from_str(&said.output)?)
        }
        Some(reason) => Err(format!("cargo metadata: {reason}: {}", said.errors).into()),
    }
}

/// Starts a program and waits for its end; after `limit` it is killed.
pub fn wait(command: &mut Command, limit: Duration) -> std::io::Result<Ended> {
    let mut child = command.spawn()?;
    match until(limit, || child.try_wait())? {
        Some(status) => Ok(Ended::Itself(status)),
        None => {
            child.kill()?;
            child.wait()?;
            Ok(Ended::TookTooLong(limit))
        }
    }
}

/// The same in a process group of its own: at its end, whatever that is, all that it has started and that still runs is
/// killed. If this process is killed first, the program ends when it has used the processor time that it may take.
pub fn wait_group(command: &mut Command, limits: Limits) -> std::io::Result<Ended> {
    let mut child = command.process_group(0).spawn()?;
    // The group has the number of its first process.
    let group = Pid::from_child(&child);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let processor_s = Some(processor_s(limits.time, cores));
    let limit = Rlimit { current: processor_s, maximum: processor_s };
    // It may have ended already.
    prlimit(Some(group), Resource::Cpu, limit).ok();
    let outcome = until(limits.time, || {
        // The process stays in the table, so that nobody else gets its number before the group is killed.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if waitid(WaitId::Pid(group), options)?.is_some() {
            return Ok(Some(None));
        }
        Ok(limits.excess(resident_bytes(group)).map(Some))
    });
    kill_process_group(group, Signal::KILL).ok();
    let status = child.wait()?;
    Ok(match outcome? {
        Some(None) => Ended::Itself(status),
        Some(Some(ended)) => ended,
        None => Ended::TookTooLong(limits.time),
    })
}

/// The processor time that a program may take which ends in `time`: all of it on each core, rounded up.
fn processor_s(time: Duration, cores: u64) -> u64 {
    (time.as_secs() + 1) * cores
}

/// [`wait_group`] with what the program wrote, which goes through two files: `kept`, with two extensions.
pub fn listen(command: &mut Command, kept: &Path, limits: Limits) -> std::io::Result<Said> {
    let (output, errors) = (kept.with_extension("out"), kept.with_extension("err"));
    command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(File::create(&errors)?);
    let ended = wait_group(command, limits)?;
    let read = |path| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Said { ended, output: read(output)?, errors: read(errors)? })
}

/// [`listen`] by way of files of its own in `folder`, which are gone afterwards.
fn listen_once(command: &mut Command, folder: &Path, limits: Limits) -> std::io::Result<Said> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("zrt-listen-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let kept = folder.join(name);
    let said = listen(command, &kept, limits);
    for extension in ["out", "err"] {
        std::fs::remove_file(kept.with_extension(extension)).ok();
    }
    said
}

/// What `ask` gives; `None` if it has given nothing for as long as `limit`.
fn until<T>(
    limit: Duration,
    mut ask: impl FnMut() -> std::io::Result<Option<T>>,
) -> std::io::Result<Option<T>> {
    let started = Instant::now();
    let mut pause = FIRST_POLL;
    loop {
        if let Some(given) = ask()? {
            return Ok(Some(given));
        }
        if started.elapsed() > limit {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = longer(pause);
    }
}

/// The pause after `pause`.
fn longer(pause: Duration) -> Duration {
    (pause * 3 / 2).min(POLL_INTERVAL)
}

/// Memory of a running process; zero if it has ended.
fn resident_bytes(process: Pid) -> u64 {
    let path = format!("/proc/{}/statm", process.as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // proc(5): size, resident, in pages.
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn shell(script: &str, limit: Duration) -> Option<String> {
        wait(&mut sh(script), limit).unwrap().failure()
    }

    fn group(script: &str, time: Duration, memory_bytes: u64) -> Option<String> {
        wait_group(&mut sh(script), Limits { time, memory_bytes }).unwrap().failure()
    }

    #[test]
    fn a_program_ends_well_badly_or_by_force() {
        assert_eq!(shell("exit 0", LONG), None);
        assert_eq!(shell("exit 3", LONG).as_deref(), Some("exit status: 3"));
        let started = Instant::now();
        assert_eq!(shell("exec sleep 60", Duration::ZERO).as_deref(), Some("ended after 0 s"));
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_group_ends_well_badly_or_by_force() {
        assert_eq!(group("exit 0", LONG, u64::MAX), None);
        assert_eq!(group("exit 3", LONG, u64::MAX).as_deref(), Some("exit status: 3"));
        assert_eq!(group("sleep 60", Duration::ZERO, u64::MAX).as_deref(), Some("ended after 0 s"));
        let too_much = group("exec sleep 60", LONG, 1).unwrap();
        assert!(too_much.starts_with("ended at "), "{too_much}");
    }

    #[test]
    fn what_a_program_wrote_is_given_back_apart() {
        let folder = zrt_needs::TemporaryFolder::new("listen");
        let limits = Limits { time: LONG, memory_bytes: u64::MAX };
        let said = listen(&mut sh("echo one; echo two >&2; exit 3"), &folder.join("kept"), limits).unwrap();
        assert_eq!((said.output.as_str(), said.errors.as_str()), ("one\n", "two\n"));
        assert_eq!(said.ended.failure().as_deref(), Some("exit status: 3"));
    }

    #[test]
    fn a_program_may_hold_as_many_bytes_as_its_limit_says() {
        let limits = Limits { time: Duration::MAX, memory_bytes: 4096 };
        assert!(limits.excess(4096).is_none());
        assert!(matches!(limits.excess(4097), Some(Ended::TookTooMuch(4097))));
    }

    /// As processes of several cases do that describe the same workspace.
    #[test]
    fn programs_that_are_heard_at_the_same_time_are_not_mixed_up() {
        let folder = zrt_needs::TemporaryFolder::new("listen-once");
        let path = folder.join("");
        let said = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", "for line in 1 2 3 4 5 6 7 8; do echo $0; done", text]);
            let limits = Limits { time: Duration::from_secs(60), memory_bytes: u64::MAX };
            listen_once(&mut command, &path, limits).unwrap()
        };
        std::thread::scope(|scope| {
            for text in ["one", "two", "three", "four"] {
                let said = &said;
                scope.spawn(move || assert_eq!(said(text).output, format!("{text}\n").repeat(8)));
            }
        });
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn a_program_may_use_all_cores_until_its_time_is_over() {
        assert_eq!(processor_s(Duration::from_secs(60), 2), 122);
        assert_eq!(processor_s(Duration::from_millis(1500), 1), 2);
        assert_eq!(processor_s(Duration::ZERO, 16), 16);
    }

    /// The end of a program is noticed after at most one and a half times as long as it took, and a millisecond.
    #[test]
    fn pauses_between_polls_grow_slowly_up_to_the_longest() {
        let (mut pause, mut waited) = (FIRST_POLL, Duration::ZERO);
        while pause < POLL_INTERVAL {
            waited += pause;
            let next = longer(pause);
            assert!(next > pause && next <= FIRST_POLL + waited / 2, "{next:?} after {waited:?}");
            pause = next;
        }
        assert_eq!(longer(POLL_INTERVAL), POLL_INTERVAL);
    }

    #[test]
    fn the_memory_of_a_process_is_counted_in_bytes() {
        let held = vec![1u8; 8 << 20];
        let bytes = resident_bytes(rustix::process::getpid());
        assert!(bytes >= 8 << 20, "{bytes}");
        assert!(std::hint::black_box(held).iter().all(|byte| *byte == 1));
    }

    #[test]
    fn what_a_group_leaves_behind_is_killed() {
        let folder = zrt_needs::TemporaryFolder::new("group");
        // The number of what is left behind, which outlives its parent in both cases.
        for (script, time) in [
            ("sleep 600 & echo $! > left", LONG),
            ("sleep 600 & echo $! > left; wait", Duration::from_secs(1)),
        ] {
            let mut command = sh(script);
            wait_group(command.current_dir(&*folder), Limits { time, memory_bytes: u64::MAX }).unwrap();
            let number = std::fs::read_to_string(folder.join("left")).unwrap();
            let state =
                || std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
            // It has ended, though nobody may have waited for it yet.
            let gone = until(LONG, || Ok((state().is_empty() || state().contains(") Z ")).then_some(())));
            assert!(gone.unwrap().is_some(), "{script}: {}", state());
        }
    }
}
