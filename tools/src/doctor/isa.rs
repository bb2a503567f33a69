//! `zrt doctor --isa`: which instructions are decoded, and which the virtual card executes.
//!
//! Contract: a pure account of the tables of `zrt_isa` and of what the shader engine says about itself. The second
//! column comes from neither: it is what llvm-mc 19 disassembled for gfx1201, opcode number by opcode number, and
//! `v_swap_b16`, which version 22 knows too. A test repeats the comparison of the texts.

use crate::table::{Alignment, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use zrt_isa::Encoding;
use zrt_vgpu::coverage::OpcodeCoverage;

/// An encoding class: its name, the encodings it covers, the opcode numbers that LLVM knows in it.
struct Class {
    name: &'static str,
    encodings: &'static [Encoding],
    known: usize,
    /// Recognised by class and length only.
    is_opaque: bool,
}

const fn class(name: &'static str, encodings: &'static [Encoding], known: usize) -> Class {
    Class { name, encodings, known, is_opaque: false }
}

const fn opaque(name: &'static str, encodings: &'static [Encoding], known: usize) -> Class {
    Class { name, encodings, known, is_opaque: true }
}

const CLASSES: [Class; 21] = [
    class("SOP1", &[Encoding::Sop1], 87),
    class("SOP2", &[Encoding::Sop2], 74),
    class("SOPK", &[Encoding::Sopk], 9),
    class("SOPC", &[Encoding::Sopc], 46),
    class("SOPP", &[Encoding::Sopp], 44),
    class("SMEM", &[Encoding::Smem], 28),
    class("VOP1", &[Encoding::Vop1], 90),
    class("VOP2", &[Encoding::Vop2], 49),
    class("VOPC", &[Encoding::Vopc], 162),
    class("VOP3", &[Encoding::Vop3, Encoding::Vop3sd], 152),
    class("VOP3P", &[Encoding::Vop3p], 56),
    class("VDS", &[Encoding::Vds], 119),
    class("VDSDIR", &[Encoding::Vdsdir], 2),
    class("VFLAT", &[Encoding::Vflat], 55),
    class("VSCRATCH", &[Encoding::Vscratch], 24),
    class("VGLOBAL", &[Encoding::Vglobal], 65),
    class("VBUFFER", &[Encoding::Vbuffer], 89),
    opaque("VIMAGE", &[Encoding::Vimage], 29),
    opaque("VSAMPLE", &[Encoding::Vsample], 58),
    opaque("VINTERP", &[Encoding::Vinterp], 6),
    opaque("VEXPORT", &[Encoding::Vexport], 1),
];

/// One encoding class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassCoverage {
    /// Name of the encoding.
    pub class: &'static str,
    /// Operations that LLVM 19 knows for gfx1201.
    pub known: usize,
    /// Of them, those that are decoded with all operands.
    pub decoded: usize,
    /// Those that the virtual card executes.
    pub executed: usize,
    /// True if the class is recognised by its leading bits and length only.
    pub by_class_only: bool,
}

/// Operations that are not executed for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotExecuted {
    /// Why.
    pub reason: String,
    /// Their mnemonics. A class that is not decoded counts as one.
    pub names: Vec<&'static str>,
}

/// Which parts of the instruction set are supported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IsaReport {
    /// By encoding.
    pub classes: Vec<ClassCoverage>,
    /// By reason.
    pub not_executed: Vec<NotExecuted>,
}

/// Counts the operations of the engine's account.
pub fn examine(rows: impl Iterator<Item = OpcodeCoverage>) -> IsaReport {
    let rows: Vec<OpcodeCoverage> = rows.collect();
    let classes = CLASSES.iter().map(|class| {
        let of_class = rows.iter().filter(|row| class.encodings.contains(&row.opcode.encoding()));
        let executed = of_class.clone().filter(|row| row.not_executed.is_none()).count();
        ClassCoverage {
            class: class.name,
            known: class.known,
            decoded: if class.is_opaque { 0 } else { of_class.count() },
            executed,
            by_class_only: class.is_opaque,
        }
    });
    let mut reasons = BTreeMap::<String, Vec<&'static str>>::new();
    for row in &rows {
        if let Some(reason) = row.not_executed {
            reasons.entry(reason.to_string()).or_default().push(row.opcode.mnemonic());
        }
    }
    let not_executed = reasons.into_iter().map(|(reason, names)| NotExecuted { reason, names });
    IsaReport { classes: classes.collect(), not_executed: not_executed.collect() }
}

impl fmt::Display for IsaReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            ("class", Alignment::Left),
            ("LLVM 19", Alignment::Right),
            ("decoded", Alignment::Right),
            ("executed", Alignment::Right),
        ]);
        let total = |of: fn(&ClassCoverage) -> usize| self.classes.iter().map(of).sum::<usize>().to_string();
        for one in &self.classes {
            let decoded = if one.by_class_only { "by class".to_owned() } else { one.decoded.to_string() };
            table.row(vec![one.class.to_owned(), one.known.to_string(), decoded, one.executed.to_string()]);
        }
        table.row(vec![
            "all".to_owned(),
            total(|one| one.known),
            total(|one| one.decoded),
            total(|one| one.executed),
        ]);
        write!(formatter, "{table}")?;
        writeln!(
            formatter,
            "\nVOPD pairs, DPP and the 64-bit forms of VOP1, VOP2 and VOPC share these operations."
        )?;
        for one in &self.not_executed {
            writeln!(
                formatter,
                "\nnot executed, {} ({}):\n  {}",
                one.reason,
                one.names.len(),
                one.names.join(" ")
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_vgpu::coverage::opcode_coverage;

    #[test]
    fn every_operation_that_llvm_knows_is_decoded() {
        let report = examine(opcode_coverage());
        for one in report.classes.iter().filter(|one| !one.by_class_only) {
            assert_eq!(one.decoded, one.known, "{}", one.class);
        }
    }

    #[test]
    fn each_operation_is_executed_or_named() {
        let report = examine(opcode_coverage());
        let executed: usize = report.classes.iter().map(|one| one.executed).sum();
        let named: usize = report.not_executed.iter().map(|one| one.names.len()).sum();
        assert_eq!(executed + named, zrt_isa::opcode::OPCODES.len());
        assert!(executed > 1000, "{report}");
        let text = report.to_string();
        assert!(text.contains("image_") && text.contains("graphics"), "{text}");
    }

    /// Of a class that is known by its leading bits alone nothing counts as decoded.
    #[test]
    fn a_report_has_a_row_for_each_class_their_sums_and_the_reasons() {
        let class = |class, known, decoded, executed, by_class_only| ClassCoverage {
            class,
            known,
            decoded,
            executed,
            by_class_only,
        };
        let report = IsaReport {
            classes: vec![class("SOP1", 87, 86, 5, false), class("VIMAGE", 29, 0, 1, true)],
            not_executed: vec![NotExecuted {
                reason: "graphics".to_owned(),
                names: vec!["export", "image_load"],
            }],
        };
        let expected = "\
| class  | LLVM 19 |  decoded | executed |
| ------ | ------: | -------: | -------: |
| SOP1   |      87 |       86 |        5 |
| VIMAGE |      29 | by class |        1 |
| all    |     116 |       86 |        6 |

VOPD pairs, DPP and the 64-bit forms of VOP1, VOP2 and VOPC share these operations.

not executed, graphics (2):
  export image_load
";
        assert_eq!(report.to_string(), expected);
        let found = examine(opcode_coverage());
        let opaque: Vec<_> = found
            .classes
            .iter()
            .filter(|one| one.by_class_only)
            .map(|one| (one.class, one.decoded))
            .collect();
        assert_eq!(opaque, [("VIMAGE", 0), ("VSAMPLE", 0), ("VINTERP", 0), ("VEXPORT", 0)]);
    }
}
