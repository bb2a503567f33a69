//! Walking a wave: the terminal side of `zrt step`.
//!
//! Contract: [`Stepper`] is a [`Debugger`] over any reader and writer. It stops one wave (the first that comes to a
//! breakpoint, or to its first instruction) and then follows that wave; other waves run on between its stops. Where the
//! wave ends it says so, and follows the next one that stops. At the end of the input it detaches and the kernel runs to
//! its end. [`Attention`] tells others what it is at. Commands are in `command`, what they print in `show`.

mod command;
mod show;

use crate::launch::Pauses;
use command::{Command, Location};
use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zrt_isa::Opcode;
use zrt_vgpu::check::debug::{Action, Debugger, Stop};

/// Code offset, file and line, ascending by offset: from the kernel's line table.
pub type SourceLines = Vec<(u64, String, u32)>;

/// The debugger.
pub struct Stepper<R, W> {
    input: R,
    output: W,
    lines: SourceLines,
    breakpoints: BTreeSet<Location>,
    /// The wave that is followed: workgroup and wave.
    followed: Option<([u32; 3], u32)>,
    /// The wave that was followed has ended, and none has stopped since.
    has_ended: bool,
    mode: Mode,
    attention: Arc<Attention>,
}

/// What the debugger is at, for the thread that waits for the kernel.
#[derive(Debug, Default)]
pub struct Attention {
    /// It stands at its prompt, and waits for its user.
    pub prompts: Pauses,
    /// It will never stop a wave again.
    pub is_detached: AtomicBool,
}

/// When to stop next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// After so many instructions of the followed wave.
    Step(u64),
    /// At a breakpoint.
    Run,
}

/// What a command leads to.
enum Outcome {
    /// Ask for the next one.
    Stay,
    /// Execute.
    Go,
    /// Execute, and never stop again.
    Detach,
}

impl<R: BufRead, W: Write> Stepper<R, W> {
    /// Stops before the first instruction of the first wave.
    pub fn new(input: R, output: W, lines: SourceLines) -> Stepper<R, W> {
        Stepper {
            input,
            output,
            lines,
            breakpoints: BTreeSet::new(),
            followed: None,
            has_ended: false,
            mode: Mode::Step(0),
            attention: Arc::default(),
        }
    }

    /// What it is at.
    pub fn attention(&self) -> Arc<Attention> {
        self.attention.clone()
    }

    fn is_to_stop(&mut self, stop: &Stop<'_>) -> bool {
        let here = (stop.workgroup, stop.wave_index);
        let offset = stop.pc.wrapping_sub(stop.code_va);
        let line = self.line_at(offset).map(|(_, line)| line);
        let is_first_of_line = line.is_some_and(|_| self.lines.iter().any(|entry| entry.0 == offset));
        let hit = self.breakpoints.iter().any(|location| match location {
            Location::Offset(at) => *at == offset,
            Location::Line(at) => is_first_of_line && line == Some(*at),
        });
        if self.followed.is_some_and(|followed| followed != here) {
            return false;
        }
        match &mut self.mode {
            Mode::Step(0) => true,
            Mode::Step(left) => {
                *left -= 1;
                *left == 0 || hit
            }
            Mode::Run => hit,
        }
    }

    fn line_at(&self, offset: u64) -> Option<(&str, u32)> {
        let after = self.lines.partition_point(|(start, _, _)| *start <= offset);
        let (_, file, line) = self.lines.get(after.checked_sub(1)?)?;
        Some((file, *line))
    }

    /// Reads and executes commands until the wave is to go on.
    fn talk(&mut self, stop: &mut Stop<'_>) -> std::io::Result<Action> {
        self.followed = Some((stop.workgroup, stop.wave_index));
        if std::mem::take(&mut self.has_ended) {
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
            let outcome = match Command::parse(&text) {
                Ok(command) => self.execute(command, stop)?,
                Err(complaint) => {
                    writeln!(self.output, "{complaint}")?;
                    Outcome::Stay
                }
            };
            match outcome {
                Outcome::Stay => {}
                Outcome::Go => return Ok(Action::Continue),
                Outcome::Detach => return Ok(Action::Detach),
            }
        }
    }

    fn execute(&mut self, command: Command, stop: &mut Stop<'_>) -> std::io::Result<Outcome> {
        match command {
            Command::Nothing => {}
            Command::Step(count) => {
                self.mode = Mode::Step(count);
                return Ok(Outcome::Go);
            }
            Command::Continue => {
                self.mode = Mode::Run;
                return Ok(Outcome::Go);
            }
            Command::Detach => return Ok(Outcome::Detach),
            Command::Break(location) => {
                self.breakpoints.insert(location);
                writeln!(self.output, "break at {location}")?;
            }
            Command::Delete => self.breakpoints.clear(),
            Command::Follow => {
                // The wave that comes to a breakpoint first is followed from there.
                self.followed = None;
                self.mode = Mode::Run;
                return Ok(Outcome::Go);
            }
            Command::Where => self.show_place(stop)?,
            Command::List => self.show_list(stop)?,
            Command::Print(what) => self.show_registers(stop, what)?,
            Command::Memory { va, dwords } => self.show_memory(stop, va, dwords)?,
            Command::Lds { offset, dwords } => self.show_lds(stop, offset, dwords)?,
            Command::Help => writeln!(self.output, "{}", command::HELP)?,
        }
        Ok(Outcome::Stay)
    }
}

/// Whether the wave is over after the instruction.
fn is_last(stop: &Stop<'_>) -> bool {
    matches!(stop.instruction.opcode, Opcode::SEndpgm | Opcode::SEndpgmSaved)
}

/// A wave as it is called in what is printed.
fn name(stop: &Stop<'_>) -> String {
    let [x, y, z] = stop.workgroup;
    format!("workgroup {x},{y},{z} wave {}", stop.wave_index)
}

impl<R: BufRead, W: Write> Stepper<R, W> {
    /// Stops or goes on before one instruction.
    fn look(&mut self, stop: &mut Stop<'_>) -> std::io::Result<Action> {
        if self.is_to_stop(stop) {
            let attention = self.attention();
            if attention.prompts.during(|| self.talk(stop))? == Action::Detach {
                return Ok(Action::Detach);
            }
        }
        if is_last(stop) && self.followed == Some((stop.workgroup, stop.wave_index)) {
            writeln!(self.output, "{} has ended", name(stop))?;
            self.output.flush()?;
            self.followed = None;
            self.has_ended = true;
            // Steps that are left were for this wave: the next one stops where it is met.
            if matches!(self.mode, Mode::Step(_)) {
                self.mode = Mode::Step(0);
            }
        }
        Ok(Action::Continue)
    }
}

impl<R: BufRead + Send, W: Write + Send> Debugger for Stepper<R, W> {
    fn before(&mut self, stop: &mut Stop<'_>) -> Action {
        // A terminal that is gone has nobody to tell: the kernel runs on.
        let action = self.look(stop).unwrap_or(Action::Detach);
        self.attention.is_detached.store(action == Action::Detach, Ordering::Release);
        action
    }
}
