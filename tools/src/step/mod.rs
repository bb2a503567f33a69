//! Walking a wave: the terminal side of `zrt step`.
//!
//! Contract: [`Stepper`] is a [`Debugger`] over any reader and writer. It stops one wave (the first that reaches a
//! breakpoint, or its first instruction) and then follows that wave; other waves run on between its stops. When the
//! wave ends it says so, and follows the next one that stops. At the end of the input it detaches and the kernel runs
//! to its end. A change of what is watched stops the wave that is running then, and that one is followed. [`Attention`]
//! shows others what it is doing. Commands are in `command`, what is known about the code in `code_map`, what is
//! printed in `show` and `registers`, the way to a finding in `finding`, watchpoints in `watch`, calls in `calls`,
//! `set` in `change`.

mod calls;
mod change;
mod code_map;
mod command;
mod finding;
mod registers;
mod show;
mod watch;
mod wave;

pub use code_map::CodeMap;
pub use finding::{Record, Recorder};

use crate::launch::{Pauses, Placement};
use calls::Calls;
use command::{Command, MemoryPlace, Target};
use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use watch::{Change, Subject, Watches};
use zrt_isa::Opcode;
use zrt_script::ElementType;
use zrt_vgpu::check::debug::{Action, Debugger, Stop};

/// The debugger.
pub struct Stepper<R, W> {
    input: R,
    output: W,
    code: CodeMap,
    /// Offsets in the image.
    breakpoints: BTreeSet<u64>,
    watches: Watches,
    calls: Calls,
    /// The wave that is followed: workgroup and wave.
    followed: Option<([u32; 3], u32)>,
    /// The wave that was followed has ended, and none has stopped since.
    has_ended: bool,
    mode: Mode,
    /// The lane of vector registers that is printed; all if `None`.
    lane: Option<u32>,
    /// Instructions that all waves have reached so far.
    instructions: u64,
    attention: Arc<Attention>,
}

/// What the debugger is doing, for the thread that waits for the kernel.
#[derive(Debug, Default)]
pub struct Attention {
    /// The times at its prompt, when it waits for its user.
    pub prompts: Pauses,
    /// True if it will never stop a wave again.
    pub is_detached: AtomicBool,
    /// Where the buffers lie.
    pub placement: Placement,
}

/// When to stop next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// After this many instructions of the followed wave.
    Step(u64),
    /// When the followed wave is inside at most this many calls.
    Return(usize),
    /// At a breakpoint.
    Run,
    /// At the instruction with this number among those of all waves, counted from 1.
    At(u64),
}

/// What a command leads to.
enum Outcome {
    /// Ask for the next one.
    Stay,
    /// The same; the command cannot be done.
    Complain(String),
    /// Execute.
    Go,
    /// Execute, and never stop again.
    Detach,
}

impl<R: BufRead, W: Write> Stepper<R, W> {
    /// Stops before the first instruction of the first wave, or before the one with this number (see [`Record`]).
    pub fn new(input: R, output: W, code: CodeMap, instruction: Option<u64>) -> Stepper<R, W> {
        Stepper {
            input,
            output,
            code,
            breakpoints: BTreeSet::new(),
            watches: Watches::default(),
            calls: Calls::default(),
            followed: None,
            has_ended: false,
            mode: instruction.map_or(Mode::Step(0), Mode::At),
            lane: None,
            instructions: 0,
            attention: Arc::default(),
        }
    }

    /// What it is doing.
    pub fn attention(&self) -> Arc<Attention> {
        self.attention.clone()
    }

    fn is_to_stop(&mut self, stop: &Stop<'_>) -> bool {
        let here = (stop.workgroup, stop.wave_index);
        self.instructions += 1;
        if self.followed.is_some_and(|followed| followed != here) {
            return false;
        }
        let is_hit = self.breakpoints.contains(&self.code.offset(stop.pc, stop.code_va));
        match &mut self.mode {
            Mode::Step(0) => true,
            Mode::Step(left) => {
                *left -= 1;
                *left == 0 || is_hit
            }
            Mode::Return(depth) => is_hit || self.calls.of(here).len() <= *depth,
            Mode::Run => is_hit,
            Mode::At(number) => self.instructions >= *number,
        }
    }

    /// Reads and executes commands until the wave is to go on.
    fn talk(&mut self, stop: &mut Stop<'_>, changes: &[Change]) -> std::io::Result<Action> {
        let here = (stop.workgroup, stop.wave_index);
        let is_other = self.followed.is_some_and(|followed| followed != here);
        changes.iter().try_for_each(|change| self.show_change(stop, change))?;
        self.followed = Some(here);
        if std::mem::take(&mut self.has_ended) || is_other {
            writeln!(self.output, "following {}", name(stop))?;
        }
        self.show_place(stop)?;
        loop {
            write!(self.output, "(zrt) ")?;
            self.output.flush()?;
            let mut text = String::new();
            if self.input.read_line(&mut text)? == 0 {
                writeln!(self.output, "\nend of input: the kernel runs on")?;
                return Ok(Action::Detach);
            }
            match Command::parse(&text) {
                Ok(command) => match self.execute(command, stop)? {
                    Outcome::Stay => {}
                    Outcome::Complain(complaint) => writeln!(self.output, "{complaint}")?,
                    Outcome::Go => return Ok(Action::Continue),
                    Outcome::Detach => return Ok(Action::Detach),
                },
                Err(complaint) => writeln!(self.output, "{complaint}")?,
            }
        }
    }

    fn execute(&mut self, command: Command, stop: &mut Stop<'_>) -> std::io::Result<Outcome> {
        match command {
            Command::Nothing => {}
            Command::Step(count) => return Ok(self.go(Mode::Step(count))),
            // Only a call leads further in.
            Command::Next => {
                let depth = self.depth(stop);
                return Ok(self.go(Mode::Return(depth)));
            }
            Command::Finish => {
                return Ok(match self.depth(stop).checked_sub(1) {
                    Some(depth) => self.go(Mode::Return(depth)),
                    None => {
                        complain("this is the kernel itself, which has no caller; continue runs to its end")
                    }
                });
            }
            Command::Continue => return Ok(self.go(Mode::Run)),
            Command::Detach => return Ok(Outcome::Detach),
            Command::Break(location) => match self.code.find(&location) {
                Ok((offsets, name)) => {
                    self.breakpoints.extend(offsets);
                    writeln!(self.output, "break at {name}")?;
                }
                Err(complaint) => return Ok(Outcome::Complain(complaint)),
            },
            Command::Delete => self.breakpoints.clear(),
            Command::Watch(name, target, bytes, element) => {
                return self.watch(&name, target, bytes, element, stop);
            }
            Command::Watches => self.show_watches()?,
            Command::Unwatch(number) if self.watches.remove(number) => {}
            Command::Unwatch(_) => {
                return Ok(complain("there is no watchpoint with that number; watch lists them"));
            }
            Command::Follow => {
                // The wave that comes to a breakpoint first is followed from there.
                self.followed = None;
                return Ok(self.go(Mode::Run));
            }
            Command::Wave(group, wave) => return Ok(self.follow(group, wave)),
            Command::Lane(lane) => {
                let lanes = wave::wave_size(stop).lanes();
                if lane.is_some_and(|lane| lane >= lanes) {
                    return Ok(Outcome::Complain(format!("a wave has {lanes} lanes, counted from 0")));
                }
                self.lane = lane;
            }
            Command::Where => self.show_place(stop)?,
            Command::Backtrace => self.show_calls(stop)?,
            Command::List => self.show_list(stop)?,
            Command::Registers(all) => self.dump_registers(stop, all)?,
            Command::Set(Target::Registers(what), value) => return self.set_registers(stop, what, value),
            Command::Set(Target::Memory(place), value) => return self.set_memory(stop, &place, value),
            Command::Print(what, element) => return self.show_registers(stop, what, element),
            Command::Arguments => self.show_arguments()?,
            Command::Memory(place, format) => return self.show_memory(stop, &place, format),
            Command::Lds(offset, format) => return self.show_lds(stop, offset, format),
            Command::Help => writeln!(self.output, "{}", command::HELP)?,
        }
        Ok(Outcome::Stay)
    }
}

impl<R: BufRead, W: Write> Stepper<R, W> {
    fn go(&mut self, mode: Mode) -> Outcome {
        self.mode = mode;
        Outcome::Go
    }

    /// How many calls the wave is inside.
    fn depth(&self, stop: &Stop<'_>) -> usize {
        self.calls.of((stop.workgroup, stop.wave_index)).len()
    }

    fn watch(
        &mut self,
        name: &str,
        target: Target,
        bytes: u32,
        element: Option<ElementType>,
        stop: &mut Stop<'_>,
    ) -> std::io::Result<Outcome> {
        let subject = match target {
            Target::Registers(what) => Ok(Subject::Registers((stop.workgroup, stop.wave_index), what)),
            Target::Memory(place) => {
                self.address(&place, bytes.into()).map(|(va, _)| Subject::Memory(va, bytes as usize))
            }
        };
        match subject.and_then(|subject| self.watches.add(name.to_owned(), subject, element, stop)) {
            Ok(number) => writeln!(self.output, "watch {number}: {name}").map(|()| Outcome::Stay),
            Err(complaint) => Ok(Outcome::Complain(complaint)),
        }
    }

    /// Follows another wave, up to its next instruction.
    fn follow(&mut self, group: [u32; 3], wave: u32) -> Outcome {
        let (groups @ [x, y, z], waves) = (self.code.groups, self.code.waves);
        if group.iter().zip(groups).any(|(id, count)| *id >= count) || wave >= waves {
            return Outcome::Complain(format!(
                "there are {x},{y},{z} workgroups of {waves} wave(s), each counted from 0"
            ));
        }
        self.followed = Some((group, wave));
        self.go(Mode::Step(0))
    }

    /// The address of a place in memory with room for `bytes`, and how many bytes follow from there, if that is known.
    fn address(&self, place: &MemoryPlace, bytes: u64) -> Result<(u64, Option<u64>), String> {
        match place {
            MemoryPlace::Address(va) => Ok((*va, None)),
            MemoryPlace::Argument(name, offset) => {
                let Some(buffer) = self.attention.placement.find(name) else {
                    return Err(format!("{name:?} is not an argument with a buffer; `arguments` lists them"));
                };
                let left = buffer.bytes.checked_sub(*offset).filter(|left| *left >= bytes);
                let left = left.ok_or_else(|| format!("{name} has {} bytes", buffer.bytes))?;
                Ok((buffer.va + offset, Some(left)))
            }
        }
    }
}

fn complain(complaint: &str) -> Outcome {
    Outcome::Complain(complaint.to_owned())
}

/// Whether the wave is over after the instruction.
fn is_last(stop: &Stop<'_>) -> bool {
    matches!(stop.instruction.opcode, Opcode::SEndpgm | Opcode::SEndpgmSaved)
}

/// The name of a wave in the output.
fn name(stop: &Stop<'_>) -> String {
    let [x, y, z] = stop.workgroup;
    format!("workgroup {x},{y},{z} wave {}", stop.wave_index)
}

impl<R: BufRead, W: Write> Stepper<R, W> {
    /// Stops or continues before one instruction.
    fn look(&mut self, stop: &mut Stop<'_>) -> std::io::Result<Action> {
        let changes = self.watches.changes(stop);
        if self.is_to_stop(stop) || !changes.is_empty() {
            let attention = self.attention();
            if attention.prompts.during(|| self.talk(stop, &changes))? == Action::Detach {
                return Ok(Action::Detach);
            }
        }
        self.watches.execute(stop);
        self.calls.execute(stop);
        if is_last(stop) {
            for watch in self.watches.end((stop.workgroup, stop.wave_index)) {
                writeln!(self.output, "watch {} ({}) ends with its wave", watch.number, watch.name)?;
            }
        }
        if is_last(stop) && self.followed == Some((stop.workgroup, stop.wave_index)) {
            writeln!(self.output, "{} has ended", name(stop))?;
            self.output.flush()?;
            self.followed = None;
            self.has_ended = true;
            // Remaining steps and returns were this wave's: the next one stops where it is met.
            if matches!(self.mode, Mode::Step(_) | Mode::Return(_)) {
                self.mode = Mode::Step(0);
            }
        }
        Ok(Action::Continue)
    }
}

impl<R: BufRead + Send, W: Write + Send> Debugger for Stepper<R, W> {
    fn before(&mut self, stop: &mut Stop<'_>) -> Action {
        // If the terminal is gone, there is nobody to report to: the kernel runs on.
        let action = self.look(stop).unwrap_or(Action::Detach);
        self.attention.is_detached.store(action == Action::Detach, Ordering::Release);
        action
    }
}

#[cfg(test)]
mod tests;
