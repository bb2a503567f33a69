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
