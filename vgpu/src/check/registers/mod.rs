//! stub to be replaced
use zrt_isa::Instruction;
use zrt_isa::resources::WaveSize;
pub(crate) struct Note {
    is_memory: bool,
}
pub(crate) struct LaunchState {
    pub user_sgprs: u8,
    pub lanes: u64,
    pub vector_registers: u32,
    pub wave_size: WaveSize,
}
#[derive(Default)]
pub(crate) struct RegisterShadow {
    issued: u32,
}
pub(crate) struct View {
    pub exec: u64,
    pub vcc: u64,
    pub m0: u32,
    pub scc: bool,
}
pub(crate) struct RegisterFinding {
    pub rule: super::Rule,
    pub pc: u64,
    pub cause_pc: Option<u64>,
    pub lane: Option<u32>,
    pub registers: Option<zrt_isa::lint::Registers>,
    pub remedy: &'static str,
}
impl std::fmt::Display for RegisterFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("x")
    }
}
impl Note {
    pub fn new(i: &Instruction, _: WaveSize) -> Note {
        use zrt_isa::Encoding::*;
        Note { is_memory: matches!(i.encoding, Smem | Vds | Vglobal | Vflat | Vbuffer | Vscratch) }
    }
}
impl RegisterShadow {
    pub fn begin(&mut self, _: &LaunchState) {
        self.issued = 0;
    }
    pub fn before(&mut self, note: &Note, _pc: u64, _view: &View, _report: &mut dyn FnMut(RegisterFinding)) {
        if note.is_memory {
            self.issued += 1;
        }
    }
    pub fn issued(&self) -> u32 {
        self.issued
    }
    pub fn completed_loads(&self) -> u32 {
        self.issued
    }
    pub fn completed_stores(&self) -> u32 {
        self.issued
    }
    pub fn completed_ds(&self) -> u32 {
        self.issued
    }
    pub fn completed_scalar(&self) -> u32 {
        self.issued
    }
}
