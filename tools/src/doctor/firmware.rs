//! Firmware versions, as the driver's `fw_version` folder reports them.
//!
//! Contract: as [`super`]. The files are readable by everybody (amdgpu_ucode.c, FW_VERSION_ATTR, mode 0444), so no
//! device has to be opened for them; the same numbers come from AMDGPU_INFO. A file is `0x` and eight hexadecimal
//! digits; anything else counts as not readable.

use super::finding::Finding;
use super::small_file::read_text;
use zrt_kmd::Syscalls;

/// MEC firmware from which user queues exist on gfx12 (hardware reference §3.2).
const USER_QUEUE_FIRMWARE_MIN: u32 = 3050;

/// What runs on the card's own processors. `None` if the driver does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Firmware {
    /// Graphics command processor, and its prefetcher.
    pub me: Option<u32>,
    pub pfp: Option<u32>,
    /// Compute command processor: executes our packets.
    pub mec: Option<u32>,
    /// Scheduler: maps, unmaps and preempts queues; and the one of the kernel's own queue.
    pub mes: Option<u32>,
    pub mes_kiq: Option<u32>,
    /// Power and clocks of the shader engines.
    pub rlc: Option<u32>,
}

/// Reads all of them from the device's folder.
pub(super) fn read(syscalls: &dyn Syscalls, device: &str) -> Firmware {
    let version =
        |name: &str| parse(&read_text(syscalls, &format!("{device}/fw_version/{name}_fw_version"))?);
    Firmware {
        me: version("me"),
        pfp: version("pfp"),
        mec: version("mec"),
        mes: version("mes"),
        mes_kiq: version("mes_kiq"),
        rlc: version("rlc"),
    }
}

fn parse(text: &str) -> Option<u32> {
    let digits =
        text.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

/// One line of all versions, in the notation in which people compare them: the command processors' in decimal.
pub(super) fn examine(syscalls: &dyn Syscalls, firmware: &Firmware) -> Finding {
    const SUBJECT: &str = "firmware";
    let decimal = |version: Option<u32>| version.map_or("?".to_owned(), |version| version.to_string());
    let hexadecimal =
        |version: Option<u32>| version.map_or("?".to_owned(), |version| format!("{version:#x}"));
    let parameter = read_text(syscalls, "/sys/module/amdgpu/parameters/user_queue");
    let user_queues = match firmware.mec {
        Some(mec) if mec < USER_QUEUE_FIRMWARE_MIN => "too old for user queues".to_owned(),
        _ => format!("amdgpu.user_queue {}", parameter.as_deref().unwrap_or("absent")),
    };
    let found = format!(
        "ME {}, PFP {}, MEC {}, MES {}, MES_KIQ {}, RLC {}; {user_queues}",
        decimal(firmware.me),
        decimal(firmware.pfp),
        decimal(firmware.mec),
        hexadecimal(firmware.mes),
        hexadecimal(firmware.mes_kiq),
        hexadecimal(firmware.rlc),
    );
    let known = [firmware.me, firmware.pfp, firmware.mec, firmware.mes].iter().all(Option::is_some);
    if known {
        return Finding::ok(SUBJECT, found);
    }
    let remedy = "the driver hides versions: look at /sys/kernel/debug/dri/*/amdgpu_firmware_info as root and report them";
    Finding::warn(SUBJECT, found, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_eight_digits_and_anything_else_is_none() {
        assert_eq!(parse("0x00000b18"), Some(2840));
        assert_eq!(parse("0xffffffff"), Some(u32::MAX));
        for text in
            ["", "0x", "0x+1", "2840", "0x00000b18 ", "0x100000000", "0xg", "\u{fffd}", "0x00000b18\n0x1"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
