//! The virtual device's diary of faults: which of its lines mean that work will never end, and what they say.
//!
//! Contract: lines as `FaultRecord` of the virtual device prints them; work survives a fault of an unknown kind. It
//! reads a file of the virtual driver and allocates: for waits that take long, never on the path of a token.

use crate::virtual_files::{self, FAULTS_PATH};
use core::fmt;
use zrt_device::{Place, Registry};
use zrt_kmd::Syscalls;
use zrt_mem::GpuVa;
use zrt_vgpu::command_processor::faults::FaultKind;

/// Kinds after which the queue, and with it the submission, never completes. After the others the ring continues.
const FINAL: [FaultKind; 5] =
    [FaultKind::PageFault, FaultKind::Wave, FaultKind::Packet, FaultKind::Launch, FaultKind::Reset];

/// Separator between the parts of a line: place, what went wrong, instruction.
const SEPARATOR: &str = " : ";

/// One line of the diary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFault {
    /// What went wrong, in words, addresses named.
    pub what: String,
    /// The address that was refused, if that is what went wrong.
    pub address: Option<u64>,
    /// The wave that hit the fault, if one did.
    pub wave: Option<FaultedWave>,
    /// The start of the line, before what went wrong: queue, packet and addresses, these named.
    pub place: String,
    /// True if the submission that hit it never ends.
    pub is_final: bool,
}

/// A wave that stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultedWave {
    /// The place where it stopped.
    pub place: Place,
    /// The instruction as the assembler writes it.
    pub instruction: String,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave in the workgroup.
    pub wave: u32,
    /// First affected lane, if the fault is one of lanes.
    pub lane: Option<u32>,
    /// Address of the packet that launched it.
    pub launched_at: Option<GpuVa>,
}

/// All lines so far, oldest first; none on a card.
pub(crate) fn read(syscalls: &dyn Syscalls, registry: &Registry) -> Vec<DeviceFault> {
    lines(syscalls).iter().map(|line| DeviceFault::parse(line, registry)).collect()
}

/// The lines as in the file. None if it cannot be read: the caller is already reporting a failure.
pub(crate) fn lines(syscalls: &dyn Syscalls) -> Vec<String> {
    let text = virtual_files::read(syscalls, FAULTS_PATH).ok().flatten().unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

impl DeviceFault {
    /// What a line says; addresses that `registry` knows are named.
    pub fn parse(line: &str, registry: &Registry) -> DeviceFault {
        let kind = line.strip_prefix("kind=").and_then(|rest| rest.split_whitespace().next());
        let is_final = FINAL.iter().any(|known| Some(known.name()) == kind);
        let mut parts = line.splitn(3, SEPARATOR);
        let (head, what, instruction) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let page = what.and_then(|what| what.strip_prefix("page fault at 0x"));
        DeviceFault {
            address: page.and_then(|rest| u64::from_str_radix(rest.split(':').next()?, 16).ok()),
            what: registry.annotate(what.unwrap_or(head)),
            wave: instruction.and_then(|instruction| wave(head, instruction, registry)),
            place: if what.is_some() { registry.annotate(head) } else { String::new() },
            is_final,
        }
    }
}

/// The wave that a line is about.
fn wave(head: &str, instruction: &str, registry: &Registry) -> Option<FaultedWave> {
    let field = |name: &str| head.split_whitespace().find_map(|word| word.strip_prefix(name));
    let mut ids = field("workgroup=")?.split(',').map(str::parse);
    let mut id = || ids.next()?.ok();
    Some(FaultedWave {
        place: registry.place(GpuVa(u64::from_str_radix(field("pc=0x")?, 16).ok()?)),
        instruction: instruction.to_owned(),
        workgroup: [id()?, id()?, id()?],
        wave: field("wave=")?.parse().ok()?,
        lane: field("lane=").and_then(|lane| lane.parse().ok()),
        launched_at: field("launched-at=0x").and_then(|va| u64::from_str_radix(va, 16).ok()).map(GpuVa),
    })
}

impl fmt::Display for DeviceFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        match (&self.wave, self.place.as_str()) {
            (Some(wave), _) => write!(formatter, ", {wave}"),
            (None, "") => Ok(()),
            (None, place) => write!(formatter, " ({place})"),
        }
    }
}

impl fmt::Display for FaultedWave {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FaultedWave { place, instruction, workgroup: [x, y, z], wave, lane, launched_at: _ } = self;
        write!(formatter, "at {place}: {instruction}, in workgroup {x},{y},{z} wave {wave}")?;
        lane.map_or(Ok(()), |lane| write!(formatter, " lane {lane}"))?;
        place.source_text.as_ref().map_or(Ok(()), |text| write!(formatter, "; source: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_mem::ByteLen;

    #[test]
    fn lines_say_whether_work_can_end() {
        let fault = |line| DeviceFault::parse(line, &Registry::default());
        let trap = fault("kind=wave queue=1 packet=DISPATCH_DIRECT wave=0 : s_trap 2 without a trap handler");
        assert!(trap.is_final);
        assert_eq!(
            trap.to_string(),
            "s_trap 2 without a trap handler (kind=wave queue=1 packet=DISPATCH_DIRECT wave=0)"
        );
        let torn = fault("kind=torn-packet queue=1 two dwords are missing");
        assert!(!torn.is_final);
        assert_eq!(torn.to_string(), "kind=torn-packet queue=1 two dwords are missing");
        assert!(!fault("and 3 more").is_final);
    }

    #[test]
    fn a_fault_of_a_wave_is_told_by_its_code_and_the_nearest_buffer() {
        let registry = Registry::default();
        registry.add_buffer(GpuVa(0x10_0000), ByteLen(0x1000), "argument 0 (a)");
        let line = "kind=page-fault queue=0 packet=DISPATCH_DIRECT code=0x200000 pc=0x200034 (+0x34) \
                    workgroup=1,2,0 wave=3 lane=5 launched-at=0x300000 : page fault at 0xffffc: not mapped : \
                    global_load_b32 v1, v0, s[0:1]";
        let fault = DeviceFault::parse(line, &registry);
        assert_eq!((fault.is_final, fault.address), (true, Some(0xf_fffc)));
        assert_eq!(fault.wave.as_ref().unwrap().launched_at, Some(GpuVa(0x30_0000)));
        assert_eq!(
            fault.to_string(),
            "page fault at 0xffffc (4 bytes before the beginning of argument 0 (a)): not mapped, at 0x200034: \
             global_load_b32 v1, v0, s[0:1], in workgroup 1,2,0 wave 3 lane 5"
        );
        for cut in ["pc=0x", "workgroup=1,2", "wave=x"] {
            let head = format!("kind=wave pc=0x1 workgroup=0,0,0 wave=1 {cut}");
            let words = head
                .split(' ')
                .filter(|word| word.split('=').next() != cut.split('=').next() || *word == cut);
            let line = words.collect::<Vec<_>>().join(" ") + " : halted : s_nop 0";
            assert_eq!(DeviceFault::parse(&line, &registry).wave, None, "{line}");
        }
    }
}
