//! Devices by name, and how they are opened.
//!
//! Contract: names and values; nothing is opened here.

use crate::error::OpenError;
use core::fmt;
use core::str::FromStr;
use zrt_device::RING_BYTES_DEFAULT;
use zrt_mem::ByteLen;
use zrt_vgpu::PlantedFault;
use zrt_vgpu::config::KernelRelease;

/// The environment variable that sets the default device.
pub const DEVICE_VARIABLE: &str = "ZRT_DEVICE";

/// Which device to open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// A card that passes the self-test, else the virtual one.
    #[default]
    Auto,
    /// The CPU oracle: not a device. Callers that have one handle it before they open anything.
    Cpu,
    /// The virtual R9700.
    Virtual,
    /// A card through KFD.
    Kfd,
    /// A card through user queues of the render node.
    Userq,
}

/// How to open a device.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenOptions {
    /// Length of the command ring in bytes: a power of two from 4096.
    pub ring_bytes: ByteLen,
    /// Everything lies in system memory: see [`zrt_device::DeviceOptions::gtt_only`].
    pub gtt_only: bool,
    /// Whether the device must pass the short self-test; false for callers that run the whole self-test, or that open
    /// one device after another over a board that has passed.
    pub self_test: bool,
    /// How the virtual device is built; ignored by cards.
    pub virtual_device: VirtualOptions,
}

/// How the virtual device is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualOptions {
    /// Only a small window of VRAM is CPU-visible, as on hosts without Resizable BAR.
    pub small_bar: bool,
    /// Its VRAM in bytes; `None`: that of an R9700.
    pub vram_bytes: Option<u64>,
    /// Single-threaded, deterministic scheduling of waves from this seed; `None` is the parallel, fast scheduler.
    pub scheduler_seed: Option<u64>,
    /// Error, in units of the last place, of the approximate instructions (reciprocal, square root and so on), within
    /// what the instruction set allows: results of our kernels must not depend on it.
    pub approximation_bias: i8,
    /// Worker threads besides the command processor's, at most [`VIRTUAL_THREADS_MAX`]; `None` suits the host.
    pub threads: Option<usize>,
    /// The checking mode: every broken rule is a finding, see [`Inspect::findings`](crate::Inspect::findings). Makes
    /// the scheduling deterministic.
    pub check: bool,
    /// Under the checking mode: judge the scalar hazard as leniently as compilers do.
    pub trusts_compilers: bool,
    /// The dword that VRAM holds before it is written; `None`: as `ZRT_VIRTUAL_FILL` says, else a NaN.
    pub vram_fill: Option<u32>,
    /// Counts what waves do, see [`Inspect::profile`](crate::Inspect::profile). Makes the scheduling deterministic.
    pub profile: bool,
    /// The kernel release whose rules its driver follows; `None`: as `ZRT_VIRTUAL_KERNEL` says, or the newest if that
    /// is not set.
    pub kernel: Option<KernelRelease>,
    /// A part of it that does not work, to see how a client reports such a card.
    pub planted: Option<PlantedFault>,
}

/// Maximum number of worker threads of a virtual device: those of the largest hosts.
pub const VIRTUAL_THREADS_MAX: usize = 1024;

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            ring_bytes: RING_BYTES_DEFAULT,
            gtt_only: false,
            self_test: true,
            virtual_device: VirtualOptions::default(),
        }
    }
}

impl DeviceChoice {
    /// Every choice, in the order of the help text.
    pub const ALL: [DeviceChoice; 5] = [
        DeviceChoice::Auto,
        DeviceChoice::Cpu,
        DeviceChoice::Virtual,
        DeviceChoice::Kfd,
        DeviceChoice::Userq,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceChoice::Auto => "auto",
            DeviceChoice::Cpu => "cpu",
            DeviceChoice::Virtual => "virtual",
            DeviceChoice::Kfd => "kfd",
            DeviceChoice::Userq => "userq",
        }
    }

    /// What `ZRT_DEVICE` says, or [`DeviceChoice::Auto`] if it is not set.
    pub fn from_environment() -> Result<DeviceChoice, OpenError> {
        match std::env::var_os(DEVICE_VARIABLE) {
            None => Ok(DeviceChoice::Auto),
            Some(name) => name.to_string_lossy().parse(),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for DeviceChoice {
    type Err = OpenError;

    fn from_str(name: &str) -> Result<DeviceChoice, OpenError> {
        let found = DeviceChoice::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| OpenError::UnknownChoice { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of its own has the variable: no test changes the environment of the others.
    #[test]
    fn the_variable_names_the_device() {
        const EXPECTED: &str = "ZRT_TEST_EXPECTED_DEVICE";
        if let Ok(expected) = std::env::var(EXPECTED) {
            let chosen = DeviceChoice::from_environment();
            assert_eq!(chosen.map_or_else(|error| error.to_string(), |choice| choice.to_string()), expected);
            return;
        }
        let unknown =
            "there is no device \"none\": choose auto, cpu, virtual, kfd or userq (--device, or ZRT_DEVICE)";
        for (value, expected) in [(None, "auto"), (Some("userq"), "userq"), (Some("none"), unknown)] {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "choice::tests::the_variable_names_the_device", "--test-threads", "1"]);
            child.env_remove(DEVICE_VARIABLE).env(EXPECTED, expected);
            child.envs(value.map(|value| (DEVICE_VARIABLE, value)));
            let output = child.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{value:?}: {said}");
        }
    }

    #[test]
    fn names_go_both_ways() {
        for choice in DeviceChoice::ALL {
            assert_eq!(choice.to_string().parse::<DeviceChoice>().unwrap(), choice);
        }
        let error = "vulkan".parse::<DeviceChoice>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no device \"vulkan\": choose auto, cpu, virtual, kfd or userq (--device, or ZRT_DEVICE)"
        );
    }
}
