//! The virtual R9700 as a tier: from our options to its configuration.

use crate::choice::{OpenOptions, VIRTUAL_THREADS_MAX};
use crate::error::OpenError;
use std::sync::Arc;
use zrt_kmd::Attachment;
use zrt_vgpu::config::{Config, Inspection, Scheduler, VramFill};
use zrt_vgpu::{FaultInjection, VirtualGpu};

/// Powers a board up, with a process of its own.
pub(crate) fn virtual_process(options: &OpenOptions) -> Result<Arc<Attachment>, OpenError> {
    if let Some(threads) = options.virtual_device.threads.filter(|threads| *threads > VIRTUAL_THREADS_MAX) {
        return Err(OpenError::Threads { threads, most: VIRTUAL_THREADS_MAX });
    }
    let config = virtual_config(options);
    config.effective_kernel()?;
    let injection = FaultInjection { planted: options.virtual_device.planted, ..FaultInjection::default() };
    let gpu =
        VirtualGpu::with_injection(config, injection).map_err(|errno| OpenError::VirtualDevice { errno })?;
    Ok(Attachment::over(gpu)?)
}

/// The configuration of the virtual board that these options describe: for callers that keep the board itself, and open
/// a device over it with [`open_over`](crate::open_over).
pub fn virtual_config(options: &OpenOptions) -> Config {
    let asked = &options.virtual_device;
    let defaults = Config::default();
    Config {
        large_bar: !asked.small_bar,
        vram_bytes: asked.vram_bytes,
        scheduler: match asked.scheduler_seed {
            Some(_) => Scheduler::Deterministic,
            None => Scheduler::Parallel { worker_count: asked.threads },
        },
        seed: asked.scheduler_seed.unwrap_or(defaults.seed),
        vram_fill: asked.vram_fill.map(VramFill::Pattern),
        approximation_bias: i32::from(asked.approximation_bias),
        inspection: Inspection {
            check: asked.check,
            trusts_compilers: asked.trusts_compilers,
            profile: asked.profile,
            debug: false,
        },
        kernel: asked.kernel,
        ..defaults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KernelRelease, VirtualOptions};

    fn config(virtual_device: VirtualOptions) -> Config {
        virtual_config(&OpenOptions { virtual_device, ..OpenOptions::default() })
    }

    #[test]
    fn every_option_has_its_place_in_the_configuration() {
        let asked = VirtualOptions {
            small_bar: true,
            vram_bytes: Some(1 << 30),
            scheduler_seed: Some(7),
            approximation_bias: -1,
            threads: Some(3),
            check: true,
            trusts_compilers: false,
            vram_fill: Some(9),
            profile: true,
            kernel: Some(KernelRelease::Newest),
            planted: None,
        };
        let inspection = Inspection { check: true, trusts_compilers: false, profile: true, debug: false };
        let expected = Config {
            large_bar: false,
            vram_bytes: Some(1 << 30),
            scheduler: Scheduler::Deterministic,
            seed: 7,
            vram_fill: Some(VramFill::Pattern(9)),
            approximation_bias: -1,
            inspection,
            kernel: Some(KernelRelease::Newest),
            ..Config::default()
        };
        assert_eq!(config(asked), expected);
        let trusting = Inspection { check: false, trusts_compilers: true, profile: false, debug: false };
        let asked = VirtualOptions { threads: Some(3), trusts_compilers: true, ..VirtualOptions::default() };
        let scheduler = Scheduler::Parallel { worker_count: Some(3) };
        assert_eq!(config(asked), Config { scheduler, inspection: trusting, ..Config::default() });
        assert_eq!(config(VirtualOptions::default()), Config::default());
    }

    /// Under the checking mode no thread is started, however many are asked for.
    #[test]
    fn as_many_threads_as_the_limit_are_no_error() {
        let process = |threads| {
            let virtual_device =
                VirtualOptions { threads: Some(threads), check: true, ..VirtualOptions::default() };
            virtual_process(&OpenOptions { virtual_device, ..OpenOptions::default() })
        };
        assert!(process(1024).is_ok());
        let error = process(1025).err().map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some("the virtual device is asked for 1025 worker threads; it takes at most 1024")
        );
    }
}
