//! The kernel rules that the virtual driver emulates: one table, with a row per rule and a column per release.
//!
//! Contract: constants only. A column is the release as first published; the row names stable updates that backport
//! a later rule. Anything missing from the table is the same in all releases, as far as this device models it.
//! "Newest" is the interface whose headers `zrt-kmd` is generated from (KFD 1.23, Linux 7.2).
//!
//! Compared and found equal on gfx12: ids, slots, SET, RESET, DESTROY and ages of events (`kfd_events.c`: the
//! newest release's addition for interrupts without a slot is for GC 12.1); AVAILABLE_MEMORY and the allocation
//! limit (`amdgpu_amdkfd_get_available_memory`: the reserve for bad pages is 0 on this chip,
//! `amdgpu_ras_init_reserved_vram_size`); the memory that USERPTR accepts (`amdgpu_ttm_tt_get_user_pages`,
//! `hmm_vma_fault`).
//!
//! A 6.8 kernel drives gfx12 only with AMD's out-of-tree module (`gmc_v12_0.c` arrived in 6.11): its column has the
//! rules of the 6.8 sources that do not depend on the chip.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The environment variable that chooses the release if [`Config`](super::Config) does not.
pub const KERNEL_VARIABLE: &str = "ZRT_VIRTUAL_KERNEL";

/// A kernel release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KernelRelease {
    /// Linux 6.8.
    V6_8,
    /// Linux 6.12.
    V6_12,
    /// Linux 6.17.
    V6_17,
    /// Linux 7.2.
    #[default]
    Newest,
}

/// No release has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no kernel release {name:?}: choose 6.8, 6.12, 6.17 or newest ({KERNEL_VARIABLE})")]
pub struct UnknownRelease {
    /// The name requested.
    pub name: String,
}

/// How CREATE_QUEUE compares the length of the context save area with the node's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveAreaCheck {
    /// Not at all.
    Unchecked,
    /// Any other length is refused.
    Exact,
    /// A shorter length is refused.
    AtLeast,
}

macro_rules! rules {
    ($($(#[$note:meta])* $name:ident: $kind:ty = $v6_8:expr, $v6_12:expr, $v6_17:expr, $newest:expr;)*) => {
        impl KernelRelease {
            $($(#[$note])* pub const fn $name(self) -> $kind {
                match self {
                    KernelRelease::V6_8 => $v6_8,
                    KernelRelease::V6_12 => $v6_12,
                    KernelRelease::V6_17 => $v6_17,
                    KernelRelease::Newest => $newest,
                }
            })*
        }
    };
}

// Columns: 6.8, 6.12, 6.17, newest.
rules! {
    /// Its name.
    name: &'static str = "6.8", "6.12", "6.17", "newest";
    /// Minor version of the KFD interface (`kfd_ioctl.h`, list of versions; 1.15 and 1.16 arrived in 6.9 and 6.10).
    kfd_minor: u32 = 14, 17, 18, 23;
    /// Minor version of the amdgpu DRM interface (what Mesa prints on these kernels: "DRM 3.57, 6.8" and so on).
    drm_minor: u32 = 57, 59, 64, 64;
    /// Highest KFD request number (`kfd_ioctl.h`: CREATE_PROCESS in 1.19, PROFILER in 1.23).
    last_request: u32 = 0x26, 0x26, 0x26, 0x28;
    /// CREATE_QUEUE looks up ring, pointers, EOP buffer and save area, requires mappings of exactly their lengths,
    /// and keeps them mapped: UNMAP is EBUSY while the queue lives ("drm/amdkfd: Validate user queue buffers" and
    /// "Ensure user queue buffers residency", July 2024, 6.12). Earlier releases look up only the write pointer's
    /// page, for MES.
    validates_queue_buffers: bool = false, true, true, true;
    /// Length of the save area ("Validate queue cwsr area and eop buffer size", 629568d25fea, 6.12; "relax checks for
    /// over allocation of save area", 15bd4958fe38, November 2025, 6.19 and stable 6.12 and 6.17).
    save_area_check: SaveAreaCheck =
        SaveAreaCheck::Unchecked, SaveAreaCheck::Exact, SaveAreaCheck::Exact, SaveAreaCheck::AtLeast;
    /// The topology exports `cwsr_size` and `ctl_stack_size` (8fc2796dea6f, December 2025, 6.19 and later stable
    /// updates).
    exports_save_area: bool = false, false, false, true;
    /// The topology exports `capability2` (`kfd_topology.c`, with the reset of single SDMA queues, 2025).
    exports_capability2: bool = false, false, true, true;
    /// `capability` claims precise memory operations for gfx12 (removed as unsafe by f82d27dcff93, 2025, and stable
    /// 6.14).
    claims_precise_memory: bool = true, true, false, false;
    /// Allocation flags, each of which makes VRAM uncached (MTYPE UC): UNCACHED 1 << 25, COHERENT 1 << 26,
    /// EXT_COHERENT 1 << 24 (`gmc_v12_0_get_vm_pte`; "Restore uncached behaviour on GFX12", 35b6162bb790, March
    /// 2025, 6.14 and stable 6.12 and 6.13; hardware reference §6.3 for the out-of-tree module).
    uncached_vram_flags: u32 = 0b111 << 24, 0b110 << 24, 1 << 25, 1 << 25;
    /// The same for system memory, GTT and USERPTR. Before "Restore uncached behaviour on GFX12" a workaround made
    /// all of it NC (`is_system` in `gmc_v12_0_get_vm_pte`); since then UNCACHED means UC wherever the object lies.
    /// The behaviour of the out-of-tree module is not known: its column is the strict one.
    uncached_system_flags: u32 = 0, 0, 1 << 25, 1 << 25;
    /// VRAM is zero when it is allocated ("drm/amdkfd: Clear VRAM on allocation to prevent stale data exposure",
    /// ad52d61d8218, May 2026, 7.1 and stable updates, 6.18 among them). Before that, it keeps its old contents;
    /// freed VRAM is overwritten, by 0xd0bed0be and since 6.10 by zeros ("Enable clear page functionality",
    /// `amdgpu_bo_release_notify`).
    clears_vram: bool = false, false, false, true;
    /// A signal page supplied by the process must have space for all slots ("drm/amdkfd: Fix out-of-bounds write in
    /// kfd_event_page_set()", 8a70a26c9f34, 2026, 7.0 and stable). Before that, the kernel fills 32 KiB whatever
    /// the page's length (`kfd_event_page_set`), and hands out as many slots as fit.
    checks_event_page: bool = false, false, false, true;
    /// Most entries of WAIT_EVENTS, `ENOMEM` beyond it ("drm/amdkfd: Add bounds check for AMDKFD_IOC_WAIT_EVENTS",
    /// May 2026, in 7.2). Before that, the limit of `kcalloc`: 4 MiB for entries of 56 bytes
    /// (`struct kfd_event_waiter`).
    wait_entries_max: usize = 74_898, 74_898, 74_898, 4096;
}

impl KernelRelease {
    /// All releases, oldest first.
    pub const ALL: [KernelRelease; 4] =
        [KernelRelease::V6_8, KernelRelease::V6_12, KernelRelease::V6_17, KernelRelease::Newest];

    /// The release in [`KERNEL_VARIABLE`], if it is set. The only place that reads the variable.
    pub fn from_environment() -> Result<Option<KernelRelease>, UnknownRelease> {
        std::env::var_os(KERNEL_VARIABLE).map(|name| name.to_string_lossy().parse()).transpose()
    }
}

impl fmt::Display for KernelRelease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for KernelRelease {
    type Err = UnknownRelease;

    fn from_str(name: &str) -> Result<KernelRelease, UnknownRelease> {
        let found = KernelRelease::ALL.into_iter().find(|release| release.name() == name);
        found.ok_or_else(|| UnknownRelease { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways_and_a_wrong_one_is_told() {
        for release in KernelRelease::ALL {
            assert_eq!(release.to_string().parse::<KernelRelease>(), Ok(release));
        }
        let error = "6.9".parse::<KernelRelease>().unwrap_err();
        assert!(error.to_string().contains("6.8, 6.12, 6.17 or newest"), "{error}");
    }

    /// A process of its own has the variable: no test changes the environment of the others.
    #[test]
    fn the_variable_chooses_the_release() {
        const EXPECTED: &str = "ZRT_TEST_EXPECTED_RELEASE";
        if let Ok(expected) = std::env::var(EXPECTED) {
            let chosen = match KernelRelease::from_environment() {
                Ok(release) => format!("{release:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(chosen, expected);
            return;
        }
        let unknown =
            "there is no kernel release \"6.9\": choose 6.8, 6.12, 6.17 or newest (ZRT_VIRTUAL_KERNEL)";
        for (value, expected) in [(None, "None"), (Some("6.12"), "Some(V6_12)"), (Some("6.9"), unknown)] {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let test = "config::release::tests::the_variable_chooses_the_release";
            child.args(["--exact", test, "--test-threads", "1"]);
            child.env_remove(KERNEL_VARIABLE).env(EXPECTED, expected);
            child.envs(value.map(|value| (KERNEL_VARIABLE, value)));
            let output = child.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{value:?}: {said}");
        }
    }
}
