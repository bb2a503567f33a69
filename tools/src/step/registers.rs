//! What `registers`, `backtrace` and `watch` print.

use super::Stepper;
use super::show::COLUMNS;
use super::watch::Change;
use super::wave::{EXEC_LO, M0, VCC_LO, wave_size};
use std::io::{BufRead, Result, Write};
use zrt_vgpu::check::debug::Stop;

/// Scalar registers: s0 to s105 (instruction set reference §2).
const SCALAR_COUNT: usize = 106;

impl<R: BufRead, W: Write> Stepper<R, W> {
    /// The wave's state and its scalar registers; `all`: the vector registers that it has too, as `print` shows them.
    pub(super) fn dump_registers(&mut self, stop: &Stop<'_>, all: bool) -> Result<()> {
        let wave = &stop.wave;
        writeln!(
            self.output,
            "exec = {:#018x}  vcc = {:#018x}  scc = {}  m0 = {:#010x}  mode = {:#04x}",
            wave.scalar_pair(EXEC_LO),
            wave.scalar_pair(VCC_LO),
            u8::from(wave.scc),
            wave.scalar[usize::from(M0)],
            wave.mode
        )?;
        let scalars: Vec<String> =
            wave.scalar[..SCALAR_COUNT].iter().map(|word| format!("{word:08x}")).collect();
        self.show_rows(&scalars, |row| format!("  s{:<4}", COLUMNS * row))?;
        let count = wave.vector_count;
        match all {
            true => (0..count as usize)
                .try_for_each(|register| self.show_vector(stop, &format!("v{register}"), register, None)),
            false => {
                writeln!(self.output, "{count} vector registers: registers all, or print v[0:{}]", count - 1)
            }
        }
    }

    /// The place, and where each call that leads to it was made, the last one first.
    pub(super) fn show_calls(&mut self, stop: &Stop<'_>) -> Result<()> {
        let calls: Vec<u64> =
            self.calls.of((stop.workgroup, stop.wave_index)).iter().map(|call| call.pc).collect();
        for (index, pc) in [stop.pc].into_iter().chain(calls.into_iter().rev()).enumerate() {
            let offset = self.code.offset(pc, stop.code_va);
            let source = self.code.source(offset).map(|source| format!("  {source}")).unwrap_or_default();
            writeln!(self.output, "#{index}  {}{source}", self.code.place(offset))?;
        }
        Ok(())
    }

    pub(super) fn show_watches(&mut self) -> Result<()> {
        for watch in self.watches.list() {
            writeln!(self.output, "watch {}: {}", watch.number, watch.name)?;
        }
        Ok(())
    }

    /// What has changed, and by whom: the wave is named if it is not the one that was followed.
    pub(super) fn show_change(&mut self, stop: &Stop<'_>, change: &Change) -> Result<()> {
        let by = match &change.by {
            Some(by) => {
                let ([x, y, z], wave) = by.wave;
                let place = self.code.place(self.code.offset(by.pc, stop.code_va));
                let who = match self.followed == Some(by.wave) {
                    true => String::new(),
                    false => format!("workgroup {x},{y},{z} wave {wave} at "),
                };
                format!("by {who}{place}  {}", by.instruction.text(wave_size(stop)))
            }
            None => "by the host or a packet".to_owned(),
        };
        writeln!(self.output, "watch {} ({}): {}, {by}", change.number, change.name, change.text)
    }
}
