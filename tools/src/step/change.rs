//! `set`: a register or memory gets another value.
//!
//! Contract: a vector register is set in the lane of `lane`, in all lanes without one, whatever EXEC is. The value has
//! the width of what is set, or of its own type; a number of 64 bits is in two registers.

use super::command::{MemoryPlace, Number, Registers};
use super::wave::{EXEC_LO, HALF_LANES, M0, VCC_LO, wave_size};
use super::{Outcome, Stepper};
use std::io::{BufRead, Result, Write};
use zrt_vgpu::check::debug::Stop;

impl<R: BufRead, W: Write> Stepper<R, W> {
    pub(super) fn set_registers(
        &mut self,
        stop: &mut Stop<'_>,
        what: Registers,
        value: Number,
    ) -> Result<Outcome> {
        let words = value.words();
        let (low, high) = (words[0], words.get(1).copied());
        let wave = &mut *stop.wave;
        let single = |count: usize| match (count, high) {
            (1, Some(_)) => Err("a 64-bit number takes two registers, as v[0:1]"),
            (1 | 2, _) => Ok(()),
            _ => Err("set takes one register, or two for a 64-bit number"),
        };
        let mut pair = |code: u8| {
            let code = usize::from(code);
            wave.scalar[code] = low;
            wave.scalar[code + 1] = high.unwrap_or(0);
        };
        match what {
            Registers::Exec => pair(EXEC_LO),
            Registers::Vcc => pair(VCC_LO),
            Registers::Scc if high.is_none() && low <= 1 => wave.scc = low == 1,
            Registers::Scc => return Ok(Outcome::Complain("scc is 0 or 1".to_owned())),
            Registers::M0 | Registers::Mode if high.is_some() => {
                return Ok(Outcome::Complain("it has 32 bits".to_owned()));
            }
            Registers::M0 => wave.scalar[usize::from(M0)] = low,
            Registers::Mode => wave.mode = low,
            Registers::Scalar(first, last) => {
                let count = usize::from(last - first) + 1;
                if let Err(complaint) = single(count) {
                    return Ok(Outcome::Complain(complaint.to_owned()));
                }
                for (index, register) in (first..=last).enumerate() {
                    wave.scalar[usize::from(register)] = [low, high.unwrap_or(0)][index];
                }
            }
            Registers::Vector(first, last) => {
                let count = usize::from(last - first) + 1;
                if u32::from(last) >= wave.vector_count {
                    return Ok(Outcome::Complain(format!(
                        "the wave has {} vector registers",
                        wave.vector_count
                    )));
                }
                if let Err(complaint) = single(count) {
                    return Ok(Outcome::Complain(complaint.to_owned()));
                }
                let lanes = self.lane.map_or(0..wave_size(stop).lanes(), |lane| lane..lane + 1);
                for lane in lanes.map(|lane| lane as usize) {
                    let bank = match lane < HALF_LANES {
                        true => Some(&mut stop.wave.vector),
                        false => stop.wave.other_half.as_mut(),
                    };
                    let Some(bank) = bank else { continue };
                    for (index, register) in (first..=last).enumerate() {
                        bank[usize::from(register)].0[lane % HALF_LANES] = [low, high.unwrap_or(0)][index];
                    }
                }
            }
        }
        self.watches.refresh(stop);
        Ok(Outcome::Stay)
    }

    pub(super) fn set_memory(
        &mut self,
        stop: &mut Stop<'_>,
        place: &MemoryPlace,
        value: Number,
    ) -> Result<Outcome> {
        let va = match self.address(place, value.bytes().len() as u64) {
            Ok((va, _)) => va,
            Err(complaint) => return Ok(Outcome::Complain(complaint)),
        };
        if !stop.write_memory(va, value.bytes()) {
            return Ok(Outcome::Complain(format!(
                "{va:#x} is not mapped for writing, or not as far as that"
            )));
        }
        self.watches.refresh(stop);
        Ok(Outcome::Stay)
    }
}
