//! What identifies a finding: for suppressions and baselines, whichever tool made it.
//!
//! Contract: plain values.

use zrt_device::Place;

/// What identifies a finding.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The rule's name.
    pub rule: &'a str,
    /// The kernel or function; empty outside of them.
    pub function: &'a str,
    /// Bytes from its first instruction.
    pub offset: Option<u64>,
    /// The instruction's text.
    pub instruction: &'a str,
    /// File and line.
    pub source: Option<(&'a str, u32)>,
}

impl<'a> Subject<'a> {
    /// The subject of a finding of the checking mode.
    pub fn of(finding: &'a zrt_bringup::Finding) -> Subject<'a> {
        let place = finding.place.as_ref();
        let source = place.and_then(|place: &Place| place.source.as_ref());
        Subject {
            rule: &finding.rule,
            function: place.and_then(|place| place.kernel.as_deref()).unwrap_or_default(),
            offset: place.and_then(|place| place.offset),
            instruction: &finding.instruction,
            source: source.map(|(file, line)| (file.as_str(), *line)),
        }
    }
}

/// A rule's name, one of the lint or of the checking mode.
pub(super) fn rule(name: &str) -> Option<&'static str> {
    let lint = zrt_isa::lint::Rule::ALL.map(zrt_isa::lint::Rule::name);
    let checking = zrt_vgpu::check::Rule::ALL.iter().map(|rule| rule.name());
    lint.into_iter().chain(checking).find(|known| *known == name)
}
