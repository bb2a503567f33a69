//! The initial contents of VRAM.
//!
//! Contract: the kernel overwrites KFD's VRAM when it is freed and, in most releases, does not clear it when it is
//! allocated ([`KernelRelease::clears_vram`]). So after a boot or another driver it may hold anything. System
//! memory is always zeroed (`ttm_tt_create` with TTM_TT_FLAG_ZERO_ALLOC for objects of user space). The memory code
//! decides when the pattern is written, and how far.

use crate::config::{KernelRelease, VramFill};
use zrt_kmd::Errno;

/// The default pattern: a quiet NaN as f32, and a number that no code of ours would write.
pub const FILL_DEFAULT: u32 = 0x7fc0_dead;
/// The environment variable that sets the fill if the configuration leaves it open: eight hexadecimal digits, or
/// `kernel` for [`VramFill::AsKernel`].
pub const FILL_VARIABLE: &str = "ZRT_VIRTUAL_FILL";

/// The pattern that a configuration or the environment requests, under a kernel release. `EINVAL` if the variable's
/// value is invalid.
pub(crate) fn pattern(asked: Option<VramFill>, kernel: KernelRelease) -> Result<u32, Errno> {
    let variable = std::env::var_os(FILL_VARIABLE);
    chosen(asked, variable.map(|text| text.to_string_lossy().into_owned()).as_deref(), kernel)
}

fn chosen(asked: Option<VramFill>, variable: Option<&str>, kernel: KernelRelease) -> Result<u32, Errno> {
    let asked = match (asked, variable) {
        (Some(asked), _) => asked,
        (None, None) => VramFill::Pattern(FILL_DEFAULT),
        (None, Some(text)) => parse(text).ok_or(Errno::EINVAL)?,
    };
    Ok(match asked {
        VramFill::Pattern(pattern) => pattern,
        VramFill::AsKernel if kernel.clears_vram() => 0,
        VramFill::AsKernel => FILL_DEFAULT,
    })
}

fn parse(text: &str) -> Option<VramFill> {
    if text == "kernel" {
        return Some(VramFill::AsKernel);
    }
    let is_eight_digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_eight_digits.then(|| u32::from_str_radix(text, 16).ok()).flatten().map(VramFill::Pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_is_eight_hexadecimal_digits_or_the_kernels() {
        assert_eq!(parse("7fc0dead"), Some(VramFill::Pattern(0x7fc0_dead)));
        assert_eq!(parse("00000001"), Some(VramFill::Pattern(1)));
        assert_eq!(parse("kernel"), Some(VramFill::AsKernel));
        for text in ["", "1", "0x000001", "7fc0deadd", "+7fc0dea", "nan pattern", "Kernel"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let under = |fill| KernelRelease::ALL.map(|kernel| pattern(Some(fill), kernel));
        assert_eq!(under(VramFill::Pattern(5)), [Ok(5); 4]);
        let stale = Ok(FILL_DEFAULT);
        assert_eq!(under(VramFill::AsKernel), [stale, stale, stale, Ok(0)]);
    }

    #[test]
    fn the_configuration_comes_before_the_environment_and_that_before_the_default() {
        let newest = |asked, variable| chosen(asked, variable, KernelRelease::Newest);
        let invalid = Err(Errno::EINVAL);
        assert_eq!(newest(None, None), Ok(0x7fc0_dead));
        assert_eq!((newest(None, Some("12345678")), newest(None, Some("kernel"))), (Ok(0x1234_5678), Ok(0)));
        assert_eq!((newest(None, Some("")), newest(None, Some("1234567"))), (invalid, invalid));
        let five = Some(VramFill::Pattern(5));
        assert_eq!((newest(five, Some("12345678")), newest(five, Some("nothing"))), (Ok(5), Ok(5)));
        assert_eq!(newest(Some(VramFill::AsKernel), Some("12345678")), Ok(0));
        assert_eq!(chosen(None, Some("kernel"), KernelRelease::V6_17), Ok(0x7fc0_dead));
    }
}
