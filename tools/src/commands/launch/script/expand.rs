//! From a script to what the device does: files read, loops unrolled.
//!
//! Contract: a file is read once for each buffer that begins with it, and once for each tolerance of what is compared.
//! Every action is checked as it is made, so that a complaint names its step; so is every file that is written.

use super::held::Held;
use crate::commands::launch::arguments::{is_npy, load_argument};
use crate::commands::launch::expect::Expectation;
use crate::commands::launch::load;
use crate::commands::launch::outputs;
use crate::commands::launch::task::{Of, Origin, Purpose, Subject, Task};
use crate::error::{ToolError, sentence};
use crate::launch::{
    Action, Content, Dispatch, Given, LAUNCHES_MAX, LaunchArgument, LaunchError, LaunchRequest, Sequence,
    SharedBuffer,
};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zrt_loader::{ArgumentValue, Geometry};
use zrt_script::{
    ArgumentSpec, EXECUTED_STEPS_MAX, Expression, Launch, LaunchedWith, Number, Piece, Position, ProgramFile,
    Script, ScriptError, Step, Wanted, Work, value_of,
};

/// Maximum number of bytes of all buffers together.
const BUFFERS_BYTES_MAX: u64 = 8 << 30;
/// Maximum number of bytes of all dumps together, which are kept until the end.
const DUMPS_BYTES_MAX: u64 = 4 << 30;
/// What the user states about raw code, as keys.
const RAW_KEYS: [&str; 2] = ["vgprs", "user_sgprs"];

/// Reads the files of the script at `path`, and unrolls its loops.
pub(in crate::commands) fn expand(
    script: &Script,
    path: &Path,
    deadline: Duration,
) -> Result<Task<'static>, ScriptError> {
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut expander = Expander::new(folder, deadline);
    expander.make_buffers(script)?;
    expander.steps(&script.steps, &mut Vec::new(), &mut Vec::new())?;
    expander.finish(script, path)
}

/// A task in the making.
struct Expander {
    folder: PathBuf,
    sequence: Sequence<'static>,
    /// The file of each program.
    files: Vec<ProgramFile>,
    origins: Vec<Option<Origin>>,
    purposes: Vec<Purpose>,
    written: Vec<Written>,
    /// The `.npy` header of each buffer.
    headers: Vec<Vec<u8>>,
    held: Held,
    launches: u64,
    dumped_bytes: u64,
}

/// Where a buffer is written to.
struct Written {
    path: PathBuf,
    /// The header of the file.
    header: Vec<u8>,
    /// The place in the script.
    at: Position,
    /// The step that writes it; `None` at the end.
    origin: Option<Origin>,
}

/// The position of a step while loops are unrolled.
#[derive(Clone, Copy)]
struct Turn<'a> {
    at: Position,
    numbers: &'a [usize],
    turns: &'a [u64],
}

impl Turn<'_> {
    fn origin(&self) -> Origin {
        let numbers: Vec<String> = self.numbers.iter().map(usize::to_string).collect();
        Origin { step: numbers.join("."), line: self.at.line, turns: self.turns.to_vec() }
    }

    fn refuse(&self, what: impl Into<String>) -> ScriptError {
        ScriptError { at: self.at, what: format!("{}: {}", self.origin(), what.into()) }
    }

    fn bad(&self, error: &ToolError) -> ScriptError {
        self.refuse(sentence(error))
    }

    fn launch_error(&self, error: &LaunchError) -> ScriptError {
        self.refuse(error.to_string())
    }

    /// A number from 0.
    fn number(&self, expression: &Expression) -> Result<u64, ScriptError> {
        let value = expression.value(self.turns).and_then(|value| u64::try_from(value).ok());
        value.ok_or_else(|| self.refuse("an offset is not a number from 0 of 64 bits"))
    }
}

/// Adds to a total; whether it is still within its limit.
fn fits(total: &mut u64, more: u64, limit: u64) -> bool {
    *total = total.saturating_add(more);
    *total <= limit
}

impl Expander {
    fn new(folder: PathBuf, deadline: Duration) -> Expander {
        Expander {
            held: Held::new(folder.clone()),
            folder,
            sequence: Sequence {
                programs: Vec::new(),
                buffers: Vec::new(),
                actions: Vec::new(),
                deadline,
                pauses: None,
                placement: None,
            },
            files: Vec::new(),
            origins: Vec::new(),
            purposes: Vec::new(),
            written: Vec::new(),
            headers: Vec::new(),
            launches: 0,
            dumped_bytes: 0,
        }
    }

    fn make_buffers(&mut self, script: &Script) -> Result<(), ScriptError> {
        let mut bytes = 0;
        for (number, buffer) in script.buffers.iter().enumerate() {
            let refuse = |what| ScriptError { at: buffer.at, what };
            let loaded =
                load_argument(&buffer.spec, &self.folder).map_err(|error| refuse(sentence(&error)))?;
            if let (ArgumentSpec::Expect(file, _), Some(wanted)) = (&buffer.spec, loaded.expectation) {
                self.held.keep(file, wanted).map_err(|error| refuse(sentence(&error)))?;
            }
            let content = match loaded.argument {
                LaunchArgument::Out(bytes) => Content::Zeros(bytes),
                LaunchArgument::In(bytes) | LaunchArgument::Work(bytes) | LaunchArgument::InOut(bytes) => {
                    Content::Bytes(Cow::Owned(bytes))
                }
                LaunchArgument::Value(_) => return Err(refuse("a value is not a buffer".to_owned())),
            };
            if content.is_empty() || !fits(&mut bytes, content.len(), BUFFERS_BYTES_MAX) {
                return Err(refuse(format!(
                    "buffer {} has {} bytes: each must have one, and all together at most {BUFFERS_BYTES_MAX}",
                    buffer.name,
                    content.len()
                )));
            }
            self.headers.push(loaded.header);
            self.sequence.buffers.push(SharedBuffer {
                label: format!("buffer {}", buffer.name),
                name: Some(buffer.name.clone()),
                number,
                content,
                is_read_only: matches!(buffer.spec, ArgumentSpec::In(_)),
            });
        }
        Ok(())
    }

    fn steps(
        &mut self,
        steps: &[Step],
        numbers: &mut Vec<usize>,
        turns: &mut Vec<u64>,
    ) -> Result<(), ScriptError> {
        for (index, step) in steps.iter().enumerate() {
            numbers.push(index + 1);
            if let Work::Repeat { times, steps, .. } = &step.work {
                for turn in 0..*times {
                    turns.push(turn);
                    self.steps(steps, numbers, turns)?;
                    turns.pop();
                }
            } else {
                self.step(&step.work, Turn { at: step.at, numbers, turns })?;
            }
            numbers.pop();
        }
        Ok(())
    }

    fn step(&mut self, work: &Work, turn: Turn<'_>) -> Result<(), ScriptError> {
        let action = match work {
            Work::Launch(launch) => Action::Dispatch(self.dispatch(launch, turn)?),
            Work::Copy { from, to, bytes } => {
                let from = (from.0, turn.number(&from.1)?);
                let to = (to.0, turn.number(&to.1)?);
                let rest = |(buffer, offset): (usize, u64)| self.length(buffer).saturating_sub(offset);
                let bytes = bytes.unwrap_or_else(|| rest(from).min(rest(to)));
                Action::Copy { from, to, bytes }
            }
            Work::Write { buffer, offset, value } => {
                let bytes = self.bytes(value, turn)?;
                Action::Write { buffer: *buffer, offset: turn.number(offset)?, bytes }
            }
            Work::Check { buffer, wanted, tolerance } => {
                let expectation = self.expectation(*buffer, wanted, *tolerance, turn)?;
                self.read(*buffer, turn, None, Some(expectation));
                Action::Read { buffer: *buffer }
            }
            Work::Dump { buffer, file } => {
                self.dump(*buffer, file, turn)?;
                Action::Read { buffer: *buffer }
            }
            // Unrolled by the caller.
            Work::Repeat { .. } => return Ok(()),
        };
        self.sequence.check_action(&action).map_err(|error| turn.launch_error(&error))?;
        if self.sequence.actions.len() >= EXECUTED_STEPS_MAX {
            return Err(
                turn.refuse(format!("more than {EXECUTED_STEPS_MAX} steps are executed: repeat less"))
            );
        }
        self.sequence.actions.push(action);
        self.origins.push(Some(turn.origin()));
        Ok(())
    }

    fn length(&self, buffer: usize) -> u64 {
        self.sequence.buffers.get(buffer).map_or(0, |buffer| buffer.content.len())
    }

    /// Notes that the next action reads a buffer.
    fn read(
        &mut self,
        buffer: usize,
        turn: Turn<'_>,
        file: Option<usize>,
        expectation: Option<(String, Arc<Expectation>)>,
    ) {
        self.purposes.push(Purpose {
            action: self.sequence.actions.len(),
            of: Of::Buffer(self.name(buffer), Some(turn.origin())),
            file,
            is_compared: false,
            expectation,
        });
    }

    fn name(&self, buffer: usize) -> String {
        self.sequence.buffers.get(buffer).and_then(|buffer| buffer.name.clone()).unwrap_or_default()
    }

    fn dispatch(&mut self, launch: &Launch, turn: Turn<'_>) -> Result<Dispatch, ScriptError> {
        if !fits(&mut self.launches, 1, LAUNCHES_MAX as u64) {
            return Err(turn.refuse(format!("more than {LAUNCHES_MAX} launches are executed: repeat less")));
        }
        let program = match self.files.iter().position(|file| *file == launch.file) {
            Some(program) => program,
            None => {
                let loaded = load::load_program(&launch.file, &self.folder, RAW_KEYS)
                    .map_err(|error| turn.bad(&error))?;
                self.sequence.programs.push(Cow::Owned(loaded));
                self.files.push(launch.file.clone());
                self.files.len() - 1
            }
        };
        let arguments = launch.arguments.iter().map(|argument| match argument {
            LaunchedWith::Buffer(buffer, offset) => {
                Ok(Given::Buffer { buffer: *buffer, offset: turn.number(offset)? })
            }
            LaunchedWith::Number(number) => self.value(number, turn).map(Given::Value),
        });
        let arguments = arguments.collect::<Result<_, _>>()?;
        let loaded = &self.sequence.programs[program];
        let mut request = LaunchRequest::new(loaded, Geometry::new(launch.groups, [1; 3]));
        request.kernel = launch.file.kernel.as_deref();
        request.wave_size = launch.file.wave_size;
        let kernel = request.find_kernel().map_err(|error| turn.launch_error(&error))?;
        request.check_wave_size(kernel).map_err(|error| turn.launch_error(&error))?;
        let group = launch.group.or(kernel.required_workgroup);
        let group = group.ok_or_else(|| {
            turn.refuse(format!("block is missing: kernel {} requires no size", kernel.name))
        })?;
        let index = loaded.kernels().iter().position(|other| std::ptr::eq(other, kernel));
        Ok(Dispatch {
            label: format!("kernel {} of {}", kernel.name, turn.origin()),
            program,
            kernel: index.unwrap_or(usize::MAX),
            geometry: Geometry { dynamic_lds: launch.dynamic_lds, ..Geometry::new(launch.groups, group) },
            arguments,
            waits: launch.waits,
        })
    }

    /// A value as it is in memory; turns share what is the same in all of them.
    fn bytes(&mut self, number: &Number, turn: Turn<'_>) -> Result<Arc<Vec<u8>>, ScriptError> {
        match number {
            Number::Moving { element, value, text } => {
                let value = value.value(turn.turns).map(|value| value.to_string());
                let bytes = value.as_ref().and_then(|value| element.encode(value));
                let told = value.unwrap_or_else(|| "more than 128 bits".to_owned());
                let wrong =
                    || turn.refuse(format!("{text:?} is {told}, which is not of type {}", element.name()));
                bytes.map(Arc::new).ok_or_else(wrong)
            }
            Number::Fixed(ArgumentSpec::Number(_, bytes) | ArgumentSpec::Bytes(bytes)) => Ok(bytes.clone()),
            Number::Fixed(ArgumentSpec::ValueFile(path)) => {
                self.held.value(path).map_err(|error| turn.bad(&error))
            }
            Number::Fixed(_) => Err(turn.refuse("a buffer is not a value")),
        }
    }

    fn value(&mut self, number: &Number, turn: Turn<'_>) -> Result<ArgumentValue, ScriptError> {
        let bytes = self.bytes(number, turn)?;
        Ok(match number {
            Number::Moving { .. } | Number::Fixed(ArgumentSpec::Number(..)) => value_of(&bytes),
            Number::Fixed(_) => ArgumentValue::Bytes(bytes.to_vec()),
        })
    }

    /// What a buffer is checked against, and its name.
    fn expectation(
        &mut self,
        buffer: usize,
        wanted: &Wanted,
        tolerance: Option<f64>,
        turn: Turn<'_>,
    ) -> Result<(String, Arc<Expectation>), ScriptError> {
        let length = self.length(buffer);
        match wanted {
            Wanted::File(path) => {
                let name = path.display().to_string();
                let read = self.held.expectation(path, tolerance).map_err(|error| turn.bad(&error))?;
                if read.bytes.len() as u64 != length {
                    let (buffer, bytes) = (self.name(buffer), read.bytes.len());
                    return Err(
                        turn.refuse(format!("{name} has {bytes} bytes, and buffer {buffer} {length}"))
                    );
                }
                Ok((name, read))
            }
            Wanted::Equals(number) => {
                let (element, text) = match number {
                    Number::Moving { element, text, .. } => (Some(*element), text.clone()),
                    Number::Fixed(ArgumentSpec::Number(element, _)) => (Some(*element), String::new()),
                    Number::Fixed(_) => (None, String::new()),
                };
                let bytes = self.bytes(number, turn)?;
                if bytes.is_empty() || length % bytes.len() as u64 != 0 {
                    let width = bytes.len();
                    return Err(
                        turn.refuse(format!("{length} bytes are not a multiple of the value's {width}"))
                    );
                }
                if tolerance.is_some() && element.is_none() {
                    return Err(turn.refuse("bytes have no type, and so no tolerance"));
                }
                let value = element.map_or_else(|| "the bytes".to_owned(), |element| element.text(&bytes));
                let name = if text.is_empty() { value } else { format!("{value} ({text})") };
                Ok((name, Arc::new(Expectation { bytes, element, tolerance })))
            }
        }
    }

    fn dump(&mut self, buffer: usize, file: &[Piece], turn: Turn<'_>) -> Result<(), ScriptError> {
        let bytes = self.length(buffer);
        if !fits(&mut self.dumped_bytes, bytes, DUMPS_BYTES_MAX) {
            return Err(
                turn.refuse(format!("dumps have more than {DUMPS_BYTES_MAX} bytes together: dump less"))
            );
        }
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Turn(index) => turn.turns.get(*index).map(u64::to_string).unwrap_or_default(),
        };
        let file: String = file.iter().map(piece).collect();
        let header = self.headers[buffer].clone();
        self.written.push(Written { path: file.into(), header, at: turn.at, origin: Some(turn.origin()) });
        self.read(buffer, turn, Some(self.written.len() - 1), None);
        Ok(())
    }

    /// Adds what is read at the end, and checks the files that are written.
    fn finish(mut self, script: &Script, path: &Path) -> Result<Task<'static>, ScriptError> {
        for (number, buffer) in script.buffers.iter().enumerate() {
            let expectation = match &buffer.spec {
                ArgumentSpec::Expect(file, tolerance) => {
                    let wanted = self.held.expectation(file, *tolerance);
                    let wanted =
                        wanted.map_err(|error| ScriptError { at: buffer.at, what: sentence(&error) })?;
                    Some((file.display().to_string(), wanted))
                }
                _ => None,
            };
            let output = buffer.spec.output();
            if output.is_none() && expectation.is_none() {
                continue;
            }
            let file = output.map(|output| {
                let header = self.headers[number].clone();
                let path = output.to_owned();
                self.written.push(Written { path, header, at: buffer.at, origin: None });
                self.written.len() - 1
            });
            let action = self.sequence.actions.len();
            let of = Of::Buffer(buffer.name.clone(), None);
            self.purposes.push(Purpose { action, of, file, is_compared: true, expectation });
            self.sequence.actions.push(Action::Read { buffer: number });
            self.origins.push(None);
        }
        let paths: Vec<PathBuf> = self.written.iter().map(|file| self.folder.join(&file.path)).collect();
        let files = outputs::plan(paths.iter().map(PathBuf::as_path)).map_err(|refused| {
            let Written { at, origin, .. } = &self.written[refused.index];
            let step = origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default();
            ScriptError { at: *at, what: format!("{step}{}", sentence(&refused.error)) }
        })?;
        let header = |file: Written| if is_npy(&file.path) { file.header } else { Vec::new() };
        let headers = self.written.into_iter().map(header);
        let trusts_compilers = self.sequence.programs.iter().all(|program| load::trusts_compilers(program));
        let code = self.files.first().map_or_else(PathBuf::new, |file| self.folder.join(&file.path));
        Ok(Task {
            sequence: self.sequence,
            subject: Subject::Script(path.display().to_string(), self.origins),
            purposes: self.purposes,
            files: files.into_iter().zip(headers).collect(),
            code,
            trusts_compilers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A total may reach its limit, and no more.
    #[test]
    fn totals_end_at_their_limits() {
        let mut total = 0;
        let found = [3, 4, 3, 0, 1].map(|more| (fits(&mut total, more, 10), total));
        assert_eq!(found, [(true, 3), (true, 7), (true, 10), (true, 10), (false, 11)]);
        assert!(!fits(&mut total, u64::MAX, 10));
    }

    /// What a script is unrolled to, or the complaint about it; beside it are files of 3, 0 and 8 bytes.
    fn expanded(script: &str) -> Result<Task<'static>, String> {
        let folder = zrt_needs::TemporaryFolder::new("expand");
        for (name, bytes) in [("three", 3), ("empty", 0), ("eight", 8)] {
            std::fs::write(folder.join(name), vec![0; bytes]).unwrap();
        }
        let script = Script::parse(script).map_err(|error| error.what)?;
        expand(&script, &folder.join("script"), Duration::ZERO).map_err(|error| error.what)
    }

    #[test]
    fn a_buffer_has_a_byte() {
        let told = expanded(
            "[buffers]\na = \"in:empty\"\n[[step]]\ncheck = { buffer = \"a\", equals = \"u8:0\" }\n",
        );
        assert!(told.is_err_and(|told| told.starts_with("buffer a has 0 bytes: each must have one")));
    }

    /// A buffer that is checked against a value is as long as some of them.
    #[test]
    fn a_checked_buffer_is_a_multiple_of_its_value() {
        let of = |file: &str| {
            expanded(&format!(
                "[buffers]\na = \"in:{file}\"\n[[step]]\ncheck = {{ buffer = \"a\", equals = \"u16:0\" }}\n"
            ))
        };
        assert_eq!(of("eight").map(|task| task.sequence.actions.len()), Ok(1));
        let told = of("three").map(|task| task.sequence.actions.len());
        assert!(told.is_err_and(|told| told.ends_with("3 bytes are not a multiple of the value's 2")));
    }

    /// What a buffer must hold at the end is read then, and compared.
    #[test]
    fn what_is_expected_of_a_buffer_is_compared_at_the_end() {
        let script =
            "[buffers]\na = \"expect:three\"\n[[step]]\nwrite = { buffer = \"a\", value = \"u8:1\" }\n";
        let task = expanded(script).unwrap();
        let [purpose] = &task.purposes[..] else { panic!("one buffer is read") };
        assert_eq!((purpose.action, purpose.is_compared, purpose.file), (1, true, None));
        let (name, wanted) = purpose.expectation.as_ref().unwrap();
        assert_eq!((name.as_str(), &wanted.bytes[..]), ("three", &[0; 3][..]));
    }
}
