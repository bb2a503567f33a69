//! What is recorded about this machine.
//!
//! Contract: reads files and the scheduler's mask; never fails.

use crate::doctor;
use zrt_kmd::LinuxSyscalls;

/// The processor's name.
pub fn processor_name() -> String {
    doctor::processor_name(&LinuxSyscalls::new())
}

/// Threads that this process may use.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_processor_that_the_doctor_finds() {
        let report = doctor::examine(&LinuxSyscalls::new());
        let found = report.findings.iter().find(|finding| finding.subject == "processor").unwrap();
        let start = format!("{}, {} thread(s), ", processor_name(), threads());
        assert!(found.found.starts_with(&start), "{report}");
    }
}
