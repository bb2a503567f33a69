//! From the tasks of a step to its time: workgroups walk the tape, take their units and wait for other tasks.
//!
//! Contract: pure. Groups are those of the megakernel, which all are resident; group g of G takes units g, g + G, ...
//! of each task in order, as docs/megakernel.md has it. A unit takes the time that it takes beside the other groups'
//! units of the same task. Units of different tasks that run at once are not held against each other.

use super::card::{Card, Estimate, Range};
use super::kernel::{Bound, Level, Spread, bounds};
use super::work::Work;
use serde::Serialize;
use std::collections::BTreeMap;

/// One task of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTask {
    /// Its kernel.
    pub kernel: &'static str,
    /// What a unit does.
    pub unit: Work,
    /// Units.
    pub units: u32,
    /// The group that takes unit 0.
    pub first_group: u32,
    /// Numbers of the tasks that it waits for, all of them before it.
    pub waits: Vec<usize>,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepWork {
    /// Its tasks in the order of the tape.
    pub tasks: Vec<StepTask>,
    /// Workgroups.
    pub groups: u32,
    /// Workgroups of a compute unit.
    pub groups_per_compute_unit: f64,
    /// Waves of a workgroup.
    pub waves_per_group: f64,
}

/// How long a step takes by one set of the card's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTime {
    /// From PLAN to the last task's end.
    pub step_us: f64,
    /// What the critical path is made of: the last task back to PLAN, from each task to the group or task that it came
    /// after. Hand-over includes PLAN and walking the tape.
    pub by_bound: BTreeMap<Bound, f64>,
    /// Time of each kernel's units on that path in microseconds, what they are bound by, and a task of it.
    pub by_kernel: BTreeMap<&'static str, (f64, Bound, usize)>,
}

/// A task's part in a group.
#[derive(Clone, Copy, Debug)]
struct Segment {
    task: usize,
    busy_us: f64,
    bound: Bound,
    /// The task that it waited for, if that ended after the group's part before.
    waited_for: Option<usize>,
}

/// The prediction of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepPrediction {
    /// Lower end of the range.
    pub predicted_us_low: f64,
    /// With every parameter at its likeliest value.
    pub predicted_us: f64,
    /// Upper end of the range.
    pub predicted_us_high: f64,
    /// What takes most of the likeliest time.
    pub bound: Bound,
    /// Share of the likeliest time's critical path by what it is bound by.
    pub shares: BTreeMap<Bound, f64>,
    /// Time of each kernel on that path.
    pub kernels: BTreeMap<&'static str, KernelShare>,
}

/// A kernel's part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KernelShare {
    /// Microseconds.
    pub predicted_us: f64,
    /// What its units are bound by.
    pub bound: Bound,
    /// What a unit of one of its tasks does.
    pub unit: Work,
}

impl StepWork {
    /// Bytes that a step reads and that no cache of a compute unit keeps.
    pub fn stream_bytes(&self) -> f64 {
        self.tasks.iter().map(|task| task.unit.stream_bytes * f64::from(task.units)).sum()
    }

    /// The time by one set of the card's numbers.
    pub fn time(&self, card: &Card) -> StepTime {
        let level = Level::of(self.stream_bytes(), card);
        let groups = self.groups.max(1) as usize;
        let mut group_us = vec![card.plan_us; groups];
        // When each task ended, and in which group.
        let mut ends: Vec<(f64, usize)> = Vec::with_capacity(self.tasks.len());
        let mut segments: Vec<Vec<Segment>> = vec![Vec::new(); groups];
        for (index, task) in self.tasks.iter().enumerate() {
            let (turns, rest) = (task.units as usize / groups, task.units as usize % groups);
            let [whole, part] = [groups, rest].map(|active| self.unit(task, active, level, card));
            let earlier = task.waits.iter().filter_map(|wait| Some((ends.get(*wait)?.0, *wait)));
            let ready = earlier.max_by(|one, other| one.0.total_cmp(&other.0));
            let ready_us = ready.map_or(0.0, |(end_us, _)| end_us + card.hand_over_us);
            let mut end = (0.0, 0);
            for (group, now_us) in group_us.iter_mut().enumerate() {
                let has_rest = (group + groups - task.first_group as usize % groups) % groups < rest;
                if turns == 0 && !has_rest {
                    continue;
                }
                let busy_us = turns as f64 * whole.0 + if has_rest { part.0 } else { 0.0 };
                let waited_for = ready.filter(|_| ready_us > *now_us).map(|(_, wait)| wait);
                *now_us = now_us.max(ready_us) + card.task_walk_us + busy_us;
                let bound = if turns > 0 { whole.1 } else { part.1 };
                segments[group].push(Segment { task: index, busy_us, bound, waited_for });
                if *now_us > end.0 {
                    end = (*now_us, group);
                }
            }
            ends.push(end);
        }
        let last = (0..groups).max_by(|one, other| group_us[*one].total_cmp(&group_us[*other])).unwrap_or(0);
        self.critical_path(group_us[last], last, &segments, &ends)
    }

    /// Time and bound of a unit while so many groups each do one.
    fn unit(&self, task: &StepTask, active: usize, level: Level, card: &Card) -> (f64, Bound) {
        if active == 0 {
            return (0.0, Bound::Issue);
        }
        let active = active as f64;
        let spread = Spread {
            units: active,
            groups: active,
            groups_per_compute_unit: self.groups_per_compute_unit,
            waves_per_group: self.waves_per_group,
        };
        let found = bounds(&task.unit, &spread, level, card);
        (found.time_us, found.bound)
    }

    /// Walks back from the last segment of a group.
    fn critical_path(
        &self,
        step_us: f64,
        last: usize,
        segments: &[Vec<Segment>],
        ends: &[(f64, usize)],
    ) -> StepTime {
        let mut time = StepTime { step_us, by_bound: BTreeMap::new(), by_kernel: BTreeMap::new() };
        let mut busy_us = 0.0;
        let mut at = segments[last].len().checked_sub(1).map(|number| (last, number));
        while let Some((group, number)) = at {
            let segment = segments[group][number];
            busy_us += segment.busy_us;
            *time.by_bound.entry(segment.bound).or_default() += segment.busy_us;
            let new = (0.0, segment.bound, segment.task);
            time.by_kernel.entry(self.tasks[segment.task].kernel).or_insert(new).0 += segment.busy_us;
            at = match segment.waited_for {
                Some(task) => {
                    let group = ends[task].1;
                    segments[group].iter().position(|one| one.task == task).map(|number| (group, number))
                }
                None => number.checked_sub(1).map(|number| (group, number)),
            };
        }
        *time.by_bound.entry(Bound::HandOver).or_default() += (step_us - busy_us).max(0.0);
        time
    }

    /// The prediction.
    pub fn predict(&self) -> StepPrediction {
        let range = Range::of(|card| self.time(card).step_us);
        let typical = self.time(&Card::at(Estimate::Typical));
        let shares: BTreeMap<Bound, f64> =
            typical.by_bound.iter().map(|(bound, us)| (*bound, us / typical.step_us)).collect();
        let largest = shares.iter().max_by(|one, other| one.1.total_cmp(other.1));
        let kernels = typical.by_kernel.iter();
        StepPrediction {
            predicted_us_low: range.low,
            predicted_us: range.typical,
            predicted_us_high: range.high,
            bound: largest.map_or(Bound::HandOver, |(bound, _)| *bound),
            kernels: kernels
                .map(|(kernel, (predicted_us, bound, task))| {
                    let (predicted_us, bound) = (*predicted_us, *bound);
                    (*kernel, KernelShare { predicted_us, bound, unit: self.tasks[*task].unit })
                })
                .collect(),
            shares,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task of `units` units of so many cycles of both SIMDs.
    fn task(units: u32, clocks: f64, waits: &[usize]) -> StepTask {
        let unit = Work { vector: [2.0 * clocks, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..Work::default() };
        StepTask { kernel: "k", unit, units, first_group: 0, waits: waits.to_vec() }
    }

    fn step(tasks: Vec<StepTask>) -> StepWork {
        StepWork { tasks, groups: 64, groups_per_compute_unit: 1.0, waves_per_group: 8.0 }
    }

    /// By hand, of the likeliest numbers: PLAN 14 µs; each task walks 1.1 µs; one that waits for the one before starts
    /// 1.2 µs after its end; 26,000 cycles at 2.6 GHz are 10 µs, and a fifth of the wave's own 5 µs is not hidden.
    #[test]
    fn a_chain_of_tasks_adds_hand_overs_to_their_work() {
        let work = step(vec![task(64, 26_000.0, &[]), task(64, 26_000.0, &[0])]);
        let time = work.time(&Card::at(Estimate::Typical));
        let unit = 10.0 + 0.2 * 5.0;
        let expected = 14.0 + (1.1 + unit) + (1.2 + 1.1 + unit);
        assert!((time.step_us - expected).abs() < 1e-9, "{} {expected}", time.step_us);
        assert!((time.by_bound[&Bound::Issue] - 2.0 * unit).abs() < 1e-9);
        assert!((time.by_bound[&Bound::HandOver] - 17.4).abs() < 1e-9);
    }

    /// 65 units: group 0 has two of them; a task that waits for neither begins in the other groups meanwhile.
    #[test]
    fn groups_take_units_in_turns_and_do_not_wait_for_nothing() {
        let alone = step(vec![task(65, 26_000.0, &[])]).time(&Card::at(Estimate::Typical)).step_us;
        assert!((alone - (14.0 + 1.1 + 2.0 * 11.0)).abs() < 1e-9, "{alone}");
        // The second task's one unit is group 0's too.
        let both = step(vec![task(65, 26_000.0, &[]), task(1, 26_000.0, &[])]);
        assert!((both.time(&Card::at(Estimate::Typical)).step_us - (alone + 1.1 + 11.0)).abs() < 1e-9);
    }

    #[test]
    fn a_prediction_is_a_range_and_its_shares_are_whole() {
        let found = step(vec![task(100, 9_000.0, &[]), task(7, 50_000.0, &[0])]).predict();
        assert!(found.predicted_us_low < found.predicted_us && found.predicted_us < found.predicted_us_high);
        assert!((found.shares.values().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    /// A card on which a unit takes as many microseconds as each SIMD has thousands of cycles.
    fn even_card() -> Card {
        Card {
            clock_ghz: 1.0,
            overlap_share: 1.0,
            dependency_clocks: 1.0,
            plan_us: 10.0,
            task_walk_us: 1.0,
            hand_over_us: 2.0,
            gl2_bytes: 0.0,
            mall_bytes: 0.0,
            memory_gb_per_s: 500.0,
            ..Card::at(Estimate::Typical)
        }
    }

    /// By hand, for four groups after 10 µs of PLAN: task 0 keeps groups 1 and 2 until 17, the others until 14. Task 1
    /// is group 3's until 20. Task 2 waits for both, so group 0 has it from 22 until 25. Task 3 is group 1's, which
    /// waits for task 0 until 19, until 21. Task 4 waits for task 2 until 27 in all groups, and ends at 28.5.
    #[test]
    fn the_critical_path_goes_back_over_groups_and_what_they_waited_for() {
        let named = |kernel, first_group, task| StepTask { kernel, first_group, ..task };
        let tasks = vec![
            named("a", 1, task(6, 3_000.0, &[])),
            named("b", 3, task(1, 5_000.0, &[])),
            named("a", 0, task(1, 2_000.0, &[0, 1])),
            named("c", 1, task(1, 1_000.0, &[0])),
            named("b", 2, task(4, 500.0, &[2])),
        ];
        let work = StepWork { groups: 4, ..step(tasks) };
        let time = work.time(&even_card());
        assert_eq!(time.step_us, 28.5);
        // Tasks 4, 2, 1 and group 3's unit of task 0; PLAN, four walks and two hand-overs.
        assert_eq!(time.by_bound, BTreeMap::from([(Bound::Issue, 10.5), (Bound::HandOver, 18.0)]));
        let kernels = BTreeMap::from([("a", (5.0, Bound::Issue, 2)), ("b", (5.5, Bound::Issue, 4))]);
        assert_eq!(time.by_kernel, kernels);
    }

    /// By hand: 500,000 bytes are 1 µs of the card's memory, so four units at once take 4 µs of it, and one takes the 2
    /// µs of its instructions.
    #[test]
    fn units_that_run_together_share_the_memory() {
        let streaming = |units| {
            let task = task(units, 2_000.0, &[]);
            StepTask { unit: Work { stream_bytes: 500_000.0, ..task.unit }, ..task }
        };
        let time = |units| StepWork { groups: 4, ..step(vec![streaming(units)]) }.time(&even_card());
        let bound = |units| *time(units).by_bound.keys().next().unwrap();
        assert_eq!([1, 4, 5].map(|units| time(units).step_us), [13.0, 15.0, 17.0]);
        assert_eq!([1, 4, 5].map(bound), [Bound::Issue, Bound::Bandwidth, Bound::Bandwidth]);
        assert_eq!(StepWork { groups: 4, ..step(vec![streaming(5)]) }.stream_bytes(), 2_500_000.0);
    }

    #[test]
    fn a_step_without_tasks_is_plan_alone() {
        for groups in [0, 4] {
            let time = StepWork { groups, ..step(Vec::new()) }.time(&even_card());
            assert_eq!((time.step_us, time.by_kernel.len()), (10.0, 0));
            assert_eq!(time.by_bound, BTreeMap::from([(Bound::HandOver, 10.0)]));
        }
    }

    /// By hand, as for a chain of tasks: 22 of 39.4 µs are units, the rest is hand-over; shorter units are the lesser
    /// share.
    #[test]
    fn a_prediction_names_what_takes_most_and_each_kernels_part() {
        let of = |clocks| step(vec![task(64, clocks, &[]), task(64, clocks, &[0])]).predict();
        let long = of(26_000.0);
        assert!((long.predicted_us - 39.4).abs() < 1e-9 && long.bound == Bound::Issue, "{long:?}");
        assert!((long.shares[&Bound::Issue] - 22.0 / 39.4).abs() < 1e-9, "{long:?}");
        let kernel = long.kernels["k"];
        assert!((kernel.predicted_us - 22.0).abs() < 1e-9 && long.kernels.len() == 1, "{long:?}");
        assert_eq!((kernel.bound, kernel.unit.vector[0]), (Bound::Issue, 52_000.0));
        assert_eq!(of(2_600.0).bound, Bound::HandOver);
    }

    /// Six units from group 1 on: groups 1 and 2 have two of them, until 17; group 2 has the next task until 23. A
    /// group that is busy until what it waits for has been handed over has not waited.
    #[test]
    fn the_rest_of_the_units_goes_to_the_groups_from_the_first_on() {
        let named = |kernel, first_group, task| StepTask { kernel, first_group, ..task };
        let tasks = vec![named("a", 1, task(6, 3_000.0, &[])), named("b", 2, task(1, 5_000.0, &[]))];
        assert_eq!(StepWork { groups: 4, ..step(tasks) }.time(&even_card()).step_us, 23.0);
        // Group 1 has two units of the first task and then the next one's.
        let tasks = vec![named("a", 1, task(6, 3_000.0, &[])), named("b", 1, task(1, 5_000.0, &[]))];
        assert_eq!(StepWork { groups: 4, ..step(tasks) }.time(&even_card()).step_us, 23.0);
        // Group 0 is done at 12 and hands over until 14, when group 1 is done too.
        let tasks = vec![
            named("a", 0, task(1, 1_000.0, &[])),
            named("b", 1, task(1, 3_000.0, &[])),
            named("c", 1, task(1, 1_000.0, &[0])),
        ];
        let time = StepWork { groups: 4, ..step(tasks) }.time(&even_card());
        let kernels: Vec<&str> = time.by_kernel.keys().copied().collect();
        assert_eq!((time.step_us, kernels), (16.0, vec!["b", "c"]));
    }

    /// Tasks a and b keep a group each until 14, and c both until 16; d waits for c. The path goes by the first group.
    #[test]
    fn of_groups_that_end_together_the_first_is_waited_for() {
        let named = |kernel, first_group, task| StepTask { kernel, first_group, ..task };
        let tasks = vec![
            named("a", 0, task(1, 3_000.0, &[])),
            named("b", 1, task(1, 3_000.0, &[])),
            named("c", 0, task(2, 1_000.0, &[])),
            named("d", 0, task(1, 1_000.0, &[2])),
        ];
        let time = StepWork { groups: 2, ..step(tasks) }.time(&even_card());
        let kernels: Vec<&str> = time.by_kernel.keys().copied().collect();
        // Two more are the hand-over, and two the last task.
        assert_eq!((time.step_us, kernels), (20.0, vec!["a", "c", "d"]));
    }
}
