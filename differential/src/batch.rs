//! Programs on both sides, and what differs.
//!
//! Contract: a verdict per program, in their order. Results are compared byte by byte; NaNs are canonical in them
//! already (`support/differential.h`).

use crate::error::DifferentialError;
use crate::generate::inputs;
use crate::program::{Program, VARIABLES};
use crate::runner::{Outcome, Plant, Runner};
use crate::toolchain::{OUT_BYTES_PER_ITEM, Shape, Toolchain};
use std::fmt;

/// Where device and host differ first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The input, from 0; `None` in what all items change together.
    pub item: Option<usize>,
    /// What differs.
    pub what: String,
    /// The device's value, up to eight bytes.
    pub device: u64,
    /// The host's.
    pub host: u64,
    /// Results of eight bytes that differ.
    pub count: usize,
}

/// What came of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All results are equal.
    Same,
    /// They are not.
    Differs(Difference),
    /// The device did not end; its words.
    Fault(String),
}

impl Verdict {
    /// What is counted together: faults by their kind.
    pub fn kind(&self) -> String {
        match self {
            Verdict::Same => "same results".into(),
            Verdict::Differs(_) => "different results".into(),
            Verdict::Fault(text) => {
                let last = text.rsplit(" : ").next().unwrap_or(text);
                let kept: Vec<&str> = last.split(' ').filter(|word| !is_number(word)).collect();
                format!("fault: {}", kept.join(" "))
            }
        }
    }
}

/// A word of a report that differs from fault to fault: a number or words of an instruction.
fn is_number(word: &str) -> bool {
    let digits = word.trim_matches(['[', ']', ',', ';', '.']).trim_start_matches("0x");
    !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_hexdigit())
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { what, device, host, count, .. } = self;
        match self.item {
            Some(item) => write!(formatter, "input {item}: ")?,
            None => formatter.write_str("atomics: ")?,
        }
        write!(
            formatter,
            "{what} is {device:#x} on the device and {host:#x} on the host; {count} results differ"
        )
    }
}

/// Compiler, host and device together.
pub struct Comparison {
    toolchain: Toolchain,
    runner: Runner,
}

impl Comparison {
    /// A comparison; `plant` changes the device's code, for tests of the comparison itself.
    pub fn new(shape: Shape, plant: Option<Plant>) -> Result<Comparison, DifferentialError> {
        Ok(Comparison { toolchain: Toolchain::new(shape)?, runner: Runner::new(shape, plant) })
    }

    /// Runs programs, all with one optimisation level (0 to 3).
    pub fn run(&mut self, programs: &[Program], optimisation: u8) -> Result<Vec<Verdict>, DifferentialError> {
        let shape = self.toolchain.shape();
        let inputs: Vec<Vec<u8>> =
            programs.iter().map(|program| inputs(program.seed, shape.in_bytes())).collect();
        let host = self.toolchain.run_on_host(programs, &inputs)?;
        let code_object = self.toolchain.code_object(programs, optimisation)?;
        let device = self.runner.run(&code_object, programs, &inputs)?;
        let verdict = |(outcome, expected): (Outcome, &Vec<u8>)| match outcome {
            Outcome::Fault(text) => Verdict::Fault(text),
            Outcome::Ran(results) => match compare(shape, &results, expected) {
                None => Verdict::Same,
                Some(difference) => Verdict::Differs(difference),
            },
        };
        Ok(device.into_iter().zip(&host).map(verdict).collect())
    }
}

/// Looks for the first eight bytes that differ.
pub fn compare(shape: Shape, device: &[u8], host: &[u8]) -> Option<Difference> {
    let pairs = || device.as_chunks::<8>().0.iter().zip(host.as_chunks::<8>().0).enumerate();
    let (at, (device, host)) = pairs().find(|(_, (device, host))| device != host)?;
    let count = pairs().filter(|(_, (device, host))| device != host).count();
    let (device, host) = (u64::from_le_bytes(*device), u64::from_le_bytes(*host));
    let offset = 8 * at;
    if offset >= shape.out_bytes() {
        let what = format!("eight bytes at {} of what atomics change", offset - shape.out_bytes());
        return Some(Difference { item: None, what, device, host, count });
    }
    let slot = offset % OUT_BYTES_PER_ITEM / 8;
    let what = match VARIABLES.get(slot) {
        Some(kind) => format!("variable {}_{slot}", kind.name()),
        None => format!("eight bytes at {} of the stores", 8 * (slot - VARIABLES.len())),
    };
    Some(Difference { item: Some(offset / OUT_BYTES_PER_ITEM), what, device, host, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let shape = Shape::new(64, false).unwrap();
        let host = vec![0; shape.result_bytes()];
        assert_eq!(compare(shape, &host, &host), None);
        let mut device = host.clone();
        device[shape.out_bytes() + 17] = 3;
        let found = compare(shape, &device, &host).unwrap();
        assert_eq!((found.item, found.device, found.count), (None, 0x300, 1));
        device[5 * 256 + 3 * 8] = 9;
        let found = compare(shape, &device, &host).unwrap();
        assert_eq!((found.item, found.what.as_str(), found.count), (Some(5), "variable u32_3", 2));
        device[2 * 256 + 136] = 1;
        let found = compare(shape, &device, &host).unwrap();
        assert_eq!((found.item, found.what.as_str()), (Some(2), "eight bytes at 8 of the stores"));
    }

    #[test]
    fn faults_are_counted_by_kind() {
        let fault =
            "pc=0x200024 (+0x24) lane=3 : v_foo_b32 [d6130008, 240e0b06] is not executed by this device";
        let kind = Verdict::Fault(fault.into()).kind();
        assert_eq!(kind, "fault: v_foo_b32 is not executed by this device");
    }
}
