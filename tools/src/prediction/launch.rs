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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Content, DEADLINE_DEFAULT, SharedBuffer};
    use crate::prediction::kernel::Bound;
    use crate::profile::Bytes;
    use std::borrow::Cow;
    use zrt_loader::{Geometry, Program};

    /// Launches of `double` in so many groups of two waves each, over one buffer.
    fn sequence(groups: &[u32], buffer_bytes: u64) -> Sequence<'static> {
        launches(&groups.iter().map(|groups| (*groups, 64)).collect::<Vec<_>>(), buffer_bytes)
    }

    /// The same of so many groups of so many work-items.
    fn launches(shapes: &[(u32, u32)], buffer_bytes: u64) -> Sequence<'static> {
        let bytes: Vec<u8> =
            crate::double_object::DOUBLE_OBJECT.iter().flat_map(|word| word.to_le_bytes()).collect();
        let launch = |&(groups, items): &(u32, u32)| {
            Action::Dispatch(Dispatch {
                label: String::new(),
                program: 0,
                kernel: 0,
                geometry: Geometry::new([groups, 1, 1], [items, 1, 1]),
                arguments: Vec::new(),
                waits: true,
            })
        };
        let buffer = SharedBuffer {
            label: String::new(),
            name: None,
            number: 0,
            content: Content::Zeros(buffer_bytes),
            is_read_only: false,
        };
        let launches = shapes.iter().map(launch);
        Sequence {
            programs: vec![Cow::Owned(Program::parse(&bytes).unwrap())],
            buffers: vec![buffer],
            actions: launches.chain([Action::Read { buffer: 0 }]).collect(),
            deadline: DEADLINE_DEFAULT,
            pauses: None,
            placement: None,
        }
    }

    /// By hand, of the likeliest numbers: eight groups of two waves with 65,000 instructions each, on a compute unit of
    /// their own. A SIMD issues half of them in 12.5 µs; a wave takes two cycles for each of its half, 25 µs. A fifth
    /// of the shorter is not hidden, and two dispatches start. Memory is read once, at 612,000 bytes in a microsecond.
    #[test]
    fn launches_are_predicted_as_one_kernel_with_all_groups() {
        let profile = Profile {
            opcodes: [("v_add_f32_e32".to_owned(), 520_000)].into(),
            bytes: Bytes { vector_load: 6_120_000, ..Bytes::default() },
            ..Profile::default()
        };
        let found = of_launches(&profile, &sequence(&[3, 5], 612_000)).unwrap();
        assert!((found.predicted_us - (25.0 + 2.5 + 1.8)).abs() < 1e-9, "{found:?}");
        assert_eq!((found.bound, found.waves_per_simd), (Bound::Latency, 1.0));
        assert!((found.bounds.issue_us - 12.5).abs() < 1e-9, "{found:?}");
        assert!((found.bounds.bandwidth_us - 1.0).abs() < 1e-9, "{found:?}");
        // No more is read than lanes ask for.
        let large = of_launches(&profile, &sequence(&[3, 5], 1 << 30)).unwrap();
        assert!((large.bounds.bandwidth_us - 10.0).abs() < 1e-9, "{large:?}");
        assert!(of_launches(&profile, &sequence(&[], 1)).is_none());
    }

    /// By hand, of 32 waves on a compute unit: 16 groups of 2, one of 21, one of 32. Each of the three groups has a
    /// compute unit of its own, with two SIMDs.
    #[test]
    fn the_launch_that_leaves_most_waves_free_stands_for_all() {
        let profile = Profile { opcodes: [("v_add_f32_e32".to_owned(), 1000)].into(), ..Profile::default() };
        let found = of_launches(&profile, &launches(&[(1, 64), (1, 21 * 32), (1, 1024)], 4)).unwrap();
        assert_eq!(found.waves_per_simd, 10.5, "{found:?}");
    }

    #[test]
    fn a_group_has_as_many_waves_as_its_work_items_need() {
        let sequence = sequence(&[7], 1);
        let Action::Dispatch(dispatch) = &sequence.actions[0] else { unreachable!() };
        let found = residency(&sequence, dispatch).unwrap();
        assert_eq!((found.lanes, found.waves_per_group), (32, 2.0));
        // 16 waves on each of two SIMDs are 16 groups of two.
        assert_eq!((found.groups_per_compute_unit, groups(dispatch)), (16.0, 7.0));
        let lost = Dispatch { kernel: 1, ..dispatch.clone() };
        assert!(residency(&sequence, &lost).is_none());
        let all = Dispatch { geometry: Geometry::new([2, 3, 4], [64, 1, 1]), ..dispatch.clone() };
        assert_eq!(groups(&all), 24.0);
    }
}
