//! The kernel's version, parsed and compared with what the card needs; and the release that the virtual driver follows.
//!
//! Contract: as [`super`]. A distribution's kernel may carry fixes that its number does not show, so nothing here is
//! more than a warning.

use super::finding::Finding;
use super::small_file::read_text;
use zrt_kmd::Syscalls;
use zrt_vgpu::config::{Config, KERNEL_VARIABLE, KernelRelease, UnknownRelease};

/// First kernel of which the patch number does not matter: what was fixed for gfx12 came with the first releases of
/// 6.14 (trap handler, see [`super::record`]) and 6.15 (HDP flush, Linux commit 5a11a2767731), and one more is for
/// safety.
const KERNEL_MIN: KernelVersion = KernelVersion { major: 6, minor: 16, patch: 0 };

/// `major.minor.patch`; what follows is the distribution's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KernelVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl KernelVersion {
    /// From `6.17.13-generic` and the like; the patch number may be absent.
    pub fn parse(text: &str) -> Option<KernelVersion> {
        let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
        let mut parts = text.split('.');
        let (major, minor) = (parts.next()?.parse().ok()?, digits(parts.next()?).parse().ok()?);
        let patch = parts.next().map(digits).filter(|digits| !digits.is_empty());
        Some(KernelVersion { major, minor, patch: patch.map_or(Some(0), |digits| digits.parse().ok())? })
    }

    /// Whether it is of the series `major.minor`.
    pub fn is_of(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) == (major, minor)
    }
}

/// The version as the kernel reports it.
pub(super) fn release(syscalls: &dyn Syscalls) -> Option<String> {
    read_text(syscalls, "/proc/sys/kernel/osrelease")
}

pub(super) fn examine(syscalls: &dyn Syscalls) -> Finding {
    const SUBJECT: &str = "kernel";
    let KernelVersion { major, minor, .. } = KERNEL_MIN;
    let remedy = format!("for the card use Linux {major}.{minor} or later");
    let Some(release) = release(syscalls) else {
        return Finding::warn(SUBJECT, "the release cannot be read", remedy);
    };
    match KernelVersion::parse(&release) {
        Some(parsed) if parsed >= KERNEL_MIN => Finding::ok(SUBJECT, format!("Linux {release}")),
        Some(_) => Finding::warn(SUBJECT, format!("Linux {release}"), remedy),
        None => Finding::warn(SUBJECT, format!("release {release:?} has an unknown form"), remedy),
    }
}

/// The kernel whose rules the virtual driver follows in this environment.
pub(super) fn examine_virtual() -> Finding {
    let is_chosen = std::env::var_os(KERNEL_VARIABLE).is_some();
    virtual_driver(Config::default().effective_kernel(), is_chosen)
}

fn virtual_driver(kernel: Result<KernelRelease, UnknownRelease>, is_chosen: bool) -> Finding {
    const SUBJECT: &str = "virtual driver";
    match kernel {
        Ok(kernel) => {
            let why = if is_chosen { format!("{KERNEL_VARIABLE} says so") } else { "the default".into() };
            let minor = kernel.kfd_minor();
            Finding::ok(SUBJECT, format!("rules of kernel {kernel} (KFD 1.{minor}): {why}"))
        }
        Err(error) => Finding::warn(
            SUBJECT,
            error.to_string(),
            format!("set {KERNEL_VARIABLE} to one of them or unset it: the virtual device does not open"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_virtual_drivers_kernel_is_named_and_a_wrong_choice_is_told() {
        let chosen = virtual_driver("6.12".parse(), true);
        assert_eq!(chosen.found, "rules of kernel 6.12 (KFD 1.17): ZRT_VIRTUAL_KERNEL says so");
        let default = virtual_driver(Ok(KernelRelease::default()), false);
        assert_eq!(default.found, "rules of kernel newest (KFD 1.23): the default");
        let wrong = virtual_driver("6.9".parse(), true);
        assert_eq!(wrong.verdict, super::super::Verdict::Warn);
        assert!(
            wrong.found.contains("\"6.9\"") && wrong.found.contains("6.8, 6.12, 6.17 or newest"),
            "{wrong:?}"
        );
    }

    #[test]
    fn releases_of_distributions_are_read_and_others_refused() {
        let parse =
            |text| KernelVersion::parse(text).map(|release| (release.major, release.minor, release.patch));
        assert_eq!(parse("6.17.13-zen1-1-zen"), Some((6, 17, 13)));
        assert_eq!(parse("6.14.0-33-generic"), Some((6, 14, 0)));
        assert_eq!(parse("7.0-rc2"), Some((7, 0, 0)));
        assert_eq!(parse("6.12.0-55.el10"), Some((6, 12, 0)));
        for text in
            ["", "6", "six.twelve", "6.", ".12", "6.99999999999.1", "6.1.99999999999", "\u{fffd}.\u{fffd}"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
