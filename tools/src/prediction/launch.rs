//! The prediction of the launches of `zrt launch` and `zrt run`.
//!
//! Contract: the profile is one for all launches of a sequence, so several are predicted as one kernel with all their
//! workgroups and the least occupancy among them, and each costs the start and end of a dispatch. Memory is read once:
//! as many bytes as the buffers have, if lanes request more.

use super::kernel::{KernelPrediction, Spread, predict};
use super::work::Work;
use crate::launch::{Action, Dispatch, Sequence};
use crate::profile::Profile;
use zrt_isa::resources::{GroupNeeds, Rsrc1};

/// What the prediction is, in a sentence: printed with it.
pub const FORMULA: &str = "the largest of issue, lines, LDS, latency of a wave, GL2 and bandwidth, and what is not \
                           hidden behind it; plus start and end of a dispatch; parameters: docs/prediction.md";

/// The prediction of what `profile` counted of `sequence`; none if it has no launch.
pub fn of_launches(profile: &Profile, sequence: &Sequence<'_>) -> Option<KernelPrediction> {
    let launches: Vec<&Dispatch> = sequence
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Dispatch(dispatch) => Some(dispatch),
            _ => None,
        })
        .collect();
    let groups: f64 = launches.iter().map(|dispatch| groups(dispatch)).sum();
    let least =
        launches.iter().filter_map(|dispatch| residency(sequence, dispatch)).min_by(|one, other| {
            let waves = |residency: &Residency| residency.groups_per_compute_unit * residency.waves_per_group;
            waves(one).total_cmp(&waves(other))
        })?;
    let mut all = Work::of(profile, least.lanes);
    let buffers: u64 = sequence.buffers.iter().map(|buffer| buffer.content.len()).sum();
    all.stream_bytes = (profile.memory_bytes().min(buffers)) as f64;
    let spread = Spread {
        units: groups,
        groups,
        groups_per_compute_unit: least.groups_per_compute_unit,
        waves_per_group: least.waves_per_group,
    };
    // What is launched for the first time comes from memory, however small it is.
    Some(predict(&(all * (1.0 / groups.max(1.0))), &spread, f64::INFINITY, launches.len() as f64))
}

/// What a compute unit holds of a kernel.
struct Residency {
    lanes: u32,
    groups_per_compute_unit: f64,
    waves_per_group: f64,
}

fn groups(dispatch: &Dispatch) -> f64 {
    dispatch.geometry.groups.iter().map(|count| f64::from(*count)).product()
}

fn residency(sequence: &Sequence<'_>, dispatch: &Dispatch) -> Option<Residency> {
    let kernel = sequence.kernel(dispatch)?;
    let work_items = dispatch.geometry.group.iter().product();
    let lds_bytes = kernel.dynamic_lds_bytes(&dispatch.geometry.dynamic_lds).ok()?;
    let vgprs = Rsrc1::parse(kernel.rsrc1).ok()?.vgprs(kernel.wave_size);
    let needs = GroupNeeds {
        wave_size: kernel.wave_size,
        vgprs,
        lds_bytes: kernel.lds_bytes.saturating_add(lds_bytes),
        work_items,
    };
    let occupancy = needs.occupancy().ok()?;
    Some(Residency {
        lanes: kernel.wave_size.lanes(),
        // A group that fits in no compute unit takes both of a pair: it counts as one.
        groups_per_compute_unit: f64::from(occupancy.groups_per_cu.max(1)),
        waves_per_group: f64::from(occupancy.waves_per_group),
    })
}
