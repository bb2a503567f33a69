//! What a sequence has on a device while it is executed.
//!
//! Contract: everything stays until the findings are read, so that an address in them belongs to one thing only.

use super::printing::Printing;
use super::report::Located;
use super::sequence::{Action, Dispatch, Sequence};
use std::ops::Range;
use zrt_bringup::Finding;
use zrt_device::{Buffer, Code, LaunchKernel};
use zrt_loader::Kernel;
use zrt_loader::print::PrintError;
use zrt_mem::GpuVa;

/// What a sequence has in device memory.
#[derive(Default)]
pub(super) struct Resident {
    /// The shared buffers.
    pub buffers: Vec<Buffer>,
    /// Code by program; `None` if no kernel of it is launched.
    pub codes: Vec<Option<Code>>,
    /// Kernels that are ready to be launched, each with the launch that it was made for.
    pub kernels: Vec<(Dispatch, LaunchKernel)>,
    /// Arguments and graphs of what was submitted.
    pub submitted: Vec<(Buffer, zrt_device::Graph)>,
    /// Address ranges of the launches' packets, and the numbers of their actions.
    pub packets: Vec<(Range<u64>, usize)>,
    /// Actions of the last submission.
    pub last: Range<usize>,
    /// Launches that have been submitted.
    pub launched: u64,
    /// What kernels print.
    pub printing: Printing,
    /// Why some of it cannot be read.
    pub unprinted: Option<PrintError>,
}

impl Resident {
    pub fn va(&self, buffer: usize) -> GpuVa {
        self.buffers.get(buffer).map_or(GpuVa(0), |buffer| buffer.va)
    }

    /// The first instruction of a launch's kernel; `None` if its code is not loaded.
    pub fn entry(&self, dispatch: &Dispatch, kernel: &Kernel) -> Option<GpuVa> {
        let code = self.codes.get(dispatch.program)?.as_ref()?;
        Some(GpuVa(code.va().0 + kernel.entry_offset))
    }

    /// The action that launched a wave by a packet.
    pub fn launched_at(&self, packet: GpuVa) -> Option<usize> {
        self.packets.iter().find(|(range, _)| range.contains(&packet.0)).map(|(_, action)| *action)
    }

    pub fn locate(&self, number: usize, finding: Finding) -> Located {
        let action = finding.launched_at.and_then(|packet| self.launched_at(packet));
        Located { finding, action, number }
    }

    /// The name in reports of an action's launch, or of the launches that were submitted last.
    pub fn work(&self, sequence: &Sequence<'_>, action: Option<usize>) -> String {
        let first = action.unwrap_or(self.last.start);
        let label = match sequence.actions.get(first) {
            Some(Action::Dispatch(dispatch)) => dispatch.label.clone(),
            _ => "the sequence".to_owned(),
        };
        match action {
            None if self.last.len() > 1 => format!("{label}, or a launch submitted with it,"),
            _ => label,
        }
    }
}
