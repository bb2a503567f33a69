//! Cases that take too long for every run: `cargo xtask test` leaves them out, `--long` runs them.
//!
//! Contract: [`LEFT_OUT`] names them by target and by part of their names, as the harness filters: what the short run
//! skips is exactly what the long one starts. Each row says which cases of the short run fail where these would: a
//! sweep may be left out, its subject may not. [`count`] asks the compiled tests, and refuses a row that names no
//! case. `cargo test` without xtask runs every case.

use super::binaries::{TestBinary, cases};
use std::error::Error;

/// Cases of one target.
pub struct LeftOut {
    /// The target, as `folder/target`.
    pub target: &'static str,
    /// Parts of names: a case whose name has one of them is left out.
    pub names: &'static [&'static str],
    /// What of their subject stays in the short run.
    pub stays: &'static str,
}

/// What a run does with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It runs everything else.
    Short,
    /// It runs them alone.
    Long,
}

/// All of them.
pub const LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        target: "asm/integers",
        names: &[
            "products_of_tiles_of_every_format_shape_and_mode",
            "products_of_every_format_shape_and_mode",
        ],
        stays: "every format and mode in whole tiles (products_of_tiles_stay_within_their_budget); columns that are cut \
                short, in four formats (products_of_any_rows_by_any_workgroups); every format and mode of few rows, \
                with three numbers of columns in place of thirteen (products_of_every_format_and_mode)",
    },
    LeftOut {
        target: "asm/sampling",
        names: &["a_large_vocabulary"],
        stays: "the same draws of up to 4096 tokens (whole_rounds), greedy ones and draws of up to 262144 \
                (the_largest_vocabulary, penalised_tokens_of_several_stretches)",
    },
    LeftOut {
        target: "tests/architectures_unchecked",
        names: &["in_further_modes"],
        stays: "the same in the megakernel with A8 (gemma3_gets_the_oracles_tokens), and the small models in every mode",
    },
    LeftOut {
        target: "tests/checked",
        names: &["further_schedules::"],
        stays: "the same steps on three schedules (few_schedules::)",
    },
    LeftOut {
        target: "tests/computes_unchecked",
        names: &["beside_floats_is_found"],
        stays: "every body that runs with activations as integers (a_wrong_constant_in_any_body_is_found_and_named), \
                and the products of floats (a_wrong_constant_in_a_product_of_floats)",
    },
    LeftOut {
        target: "tests/golden_unchecked",
        names: &[
            "further_traces::",
            "first_trace::tales_qwen3_q4_k_m",
            "first_trace::tales_qwen3_q8_0",
            "first_trace::tales_llama_q8_0",
        ],
        stays: "the first trace of every other model: of each architecture and of each format (first_trace::)",
    },
    LeftOut {
        target: "tests/host_layers",
        names: &["in_further_ways"],
        stays: "graphs and the megakernel, on a schedule each (kernels_read_layers_in_host_memory_cleanly)",
    },
    LeftOut {
        target: "tests/integers_unchecked",
        names: &["further_modes::"],
        stays: "the same with A16 (steps_of_several_bands_agree, keys_and_values_of_steps_of_tiles_are, \
                the_megakernel_gives), A8 in dispatches (dispatches_give); F32 in bands is asm/matmul's \
                (matmul_of_several_bands_of_rows)",
    },
    LeftOut {
        target: "tests/kernel_lint",
        names: &["every_other_missing_wait"],
        stays: "every fifth wait of all kernels (a_missing_wait_is_found)",
    },
    LeftOut {
        target: "tests/megakernel",
        names: &["of_a_larger_model", "of_several_bands_with_floats"],
        stays: "bands with A16 (steps_of_several_bands_are_clean); the small model in the same ways (one_workgroup, \
                three_workgroups, six_workgroups, one_submission_for_each_step), and every format and tiles",
    },
    LeftOut {
        target: "tests/sampling_unchecked",
        names: &["on_another_schedule"],
        stays: "the same on one schedule (a_device_that_checks_finds_nothing)",
    },
    LeftOut {
        target: "tests/serving_unchecked",
        names: &["of_one_workgroup_and_of_many"],
        stays: "the same with three workgroups (requests_run_in_the_megakernel)",
    },
    LeftOut {
        target: "tests/soak_unchecked",
        names: &["ten_thousand_tokens"],
        stays: "a thousand tokens: the ring wraps several times (a_thousand_tokens_on_a_one_page_ring)",
    },
    LeftOut {
        target: "tests/weight_bytes",
        names: &["of_the_most_requests"],
        stays: "the same with 1 and 8 requests (a_step_loads_each_weight_once_for_all_requests)",
    },
    LeftOut {
        target: "vgpu/zrt_vgpu",
        names: &["no_estimate_of_any_logarithm"],
        stays: "the same of 20,000 fractions with every exponent (estimates_of_logarithms_need_no_decision)",
    },
];

impl Part {
    /// Arguments of the harness for a target.
    pub fn arguments(self, target: &str) -> Vec<&'static str> {
        let names = names(target).iter().copied();
        match self {
            Part::Short => names.flat_map(|name| ["--skip", name]).collect(),
            Part::Long => names.collect(),
        }
    }
}

/// The parts of names of a target's cases that are left out.
pub fn names(target: &str) -> &'static [&'static str] {
    LEFT_OUT.iter().find(|row| row.target == target).map_or(&[], |row| row.names)
}

/// The targets that have such cases.
pub fn targets(tests: &[TestBinary]) -> Result<Vec<&TestBinary>, String> {
    let find = |row: &LeftOut| {
        let test = tests.iter().find(|test| test.is(row.target));
        test.ok_or_else(|| format!("left out: there is no test target {}", row.target))
    };
    LEFT_OUT.iter().map(find).collect()
}

/// How many cases are left out.
///
/// # Errors
/// If a name is part of no case's, or of every case's of its target.
pub fn count(tests: &[TestBinary]) -> Result<usize, Box<dyn Error>> {
    let mut count = 0;
    for test in targets(tests)? {
        count += count_of(&test.name(), names(&test.name()), &cases_of(test)?)?;
    }
    Ok(count)
}

/// The names of a target's cases.
fn cases_of(test: &TestBinary) -> Result<Vec<String>, Box<dyn Error>> {
    let output = test.command().args(["--list", "--format", "terse"]).output()?;
    Ok(cases(&String::from_utf8(output.stdout)?).map(str::to_owned).collect())
}

/// Refuses arguments of a pass that choose cases by a name that none has: the pass would show less than it says.
pub fn check_filters(pass: &str, test: &TestBinary, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let filters: Vec<&str> = arguments.iter().copied().filter(|one| !one.starts_with("--")).collect();
    if filters.is_empty() {
        return Ok(());
    }
    match unmet(&filters, &cases_of(test)?) {
        Some(filter) => {
            Err(format!("pass {pass}: no case of {} has {filter} in its name", test.name()).into())
        }
        None => Ok(()),
    }
}

/// The first filter that is part of no case's name.
fn unmet<'a>(filters: &[&'a str], cases: &[String]) -> Option<&'a str> {
    filters.iter().copied().find(|filter| !cases.iter().any(|case| case.contains(filter)))
}

/// The same for one target with these cases.
fn count_of(target: &str, names: &[&str], cases: &[String]) -> Result<usize, String> {
    if let Some(name) = unmet(names, cases) {
        return Err(format!("left out: no case of {target} has {name} in its name"));
    }
    let left = cases.iter().filter(|case| names.iter().any(|name| case.contains(name))).count();
    if left == cases.len() { Err(format!("left out: nothing of {target} stays")) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_run_skips_the_other_starts() {
        let row = &LEFT_OUT[0];
        assert_eq!(Part::Long.arguments(row.target), row.names);
        let skipped: Vec<&str> = Part::Short.arguments(row.target).chunks(2).map(|pair| pair[1]).collect();
        assert_eq!(skipped, row.names);
        assert_eq!(Part::Short.arguments(row.target)[0], "--skip");
        assert!(Part::Short.arguments("asm/arithmetic").is_empty());
    }

    #[test]
    fn a_target_has_one_row_and_each_says_what_stays() {
        for (at, row) in LEFT_OUT.iter().enumerate() {
            assert!(LEFT_OUT[..at].iter().all(|other| other.target != row.target), "{}", row.target);
            assert!(!row.names.is_empty() && !row.stays.is_empty(), "{}", row.target);
        }
    }

    #[test]
    fn a_filter_that_chooses_nothing_is_found() {
        let cases = ["one::first".to_owned(), "two".to_owned()];
        assert_eq!(unmet(&["one::", "tw"], &cases), None);
        assert_eq!(unmet(&["one::", "three"], &cases), Some("three"));
    }

    #[test]
    fn a_name_of_no_case_and_a_row_that_leaves_nothing_are_refused() {
        let cases = ["long::one", "long::two", "three"].map(str::to_owned);
        assert_eq!(count_of("a/b", &["long::"], &cases), Ok(2));
        let unknown = count_of("a/b", &["long::", "four"], &cases).unwrap_err();
        assert!(unknown.contains("no case of a/b has four"), "{unknown}");
        let all = count_of("a/b", &["long::", "three"], &cases).unwrap_err();
        assert!(all.contains("nothing of a/b stays"), "{all}");
    }
}
