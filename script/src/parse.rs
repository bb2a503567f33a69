//! From text to [`Script`].
//!
//! Contract: as [`super`] says. Every key is asked for by name; a key that nobody asks for is refused.

use crate::argument::{ArgumentSpec, Refused};
use crate::element::ElementType;
use crate::expression::{Expression, is_name};
use crate::reader::{Field, Fields, Position, ScriptError, Source};
use crate::size::{BUFFER_BYTES_MAX, SIZE_FORMS, Size};
use crate::{
    ARGUMENTS_MAX, BUFFERS_MAX, Launch, LaunchedWith, NESTING_MAX, Number, Piece, ProgramFile,
    SCRIPT_BYTES_MAX, STEPS_MAX, Script, ScriptBuffer, Step, TIMES_MAX, USER_SGPRS, VGPRS, Wanted, Work,
};
use std::path::PathBuf;
use toml::de::{DeTable, DeValue};
use zrt_isa::resources::WaveSize;
use zrt_loader::{DynamicLds, LDS_SIZES_MAX};

/// What a step may be.
const STEP_FORMS: &str = "launch, repeat, check, copy, write or dump";

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Text that is not TOML, unknown keys, names, sizes and counts, and more than the limits of [`crate`].
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        if text.len() as u64 > SCRIPT_BYTES_MAX {
            let what =
                format!("the script has {} bytes, but may have at most {SCRIPT_BYTES_MAX}", text.len());
            return Err(ScriptError { at: Position { line: 1, column: 1 }, what });
        }
        let source = &Source::new(text);
        let table = DeTable::parse(text).map_err(|error| ScriptError {
            at: source.position(error.span().map_or(text.len(), |span| span.start)),
            what: format!("this is not TOML: {}", one_line(error.message())),
        })?;
        let mut fields = Fields::new(source, table.get_ref(), source.position(0));
        let buffers = fields.take("buffers").map_or(Ok(Vec::new()), |field| buffers(&field, source))?;
        let mut parser = Parser { source, buffers, steps: 0, variables: Vec::new() };
        let step = fields.take("step");
        let at = fields.at();
        fields.end()?;
        let Some(step) = step else {
            return Err(ScriptError { at, what: "there is no [[step]]".to_owned() });
        };
        let steps = parser.steps(&step)?;
        Ok(Script { buffers: parser.buffers, steps })
    }
}

/// What is known while steps are read.
struct Parser<'a> {
    source: &'a Source<'a>,
    buffers: Vec<ScriptBuffer>,
    /// Steps so far.
    steps: usize,
    /// Variables of the enclosing loops, from the outside.
    variables: Vec<Option<String>>,
}

/// `NAME = "FORM"` of each buffer, in the order of the script.
fn buffers(field: &Field<'_>, source: &Source<'_>) -> Result<Vec<ScriptBuffer>, ScriptError> {
    let count = field.value.as_table().map_or(0, |table| table.len());
    if count > BUFFERS_MAX {
        return Err(field.refuse(&format!("a table of at most {BUFFERS_MAX} buffers, and has {count}")));
    }
    let rest = field.fields(source)?.rest();
    let buffer = |(at, field): (Position, Field<'_>)| {
        if !is_name(&field.key) {
            let what = format!("{:?} is not a name: letters, digits and _, a letter first", field.key);
            return Err(ScriptError { at, what });
        }
        let spec = form(&field.key, field.text()?, field.at)?;
        if !spec.is_buffer() {
            return Err(field.refuse("a buffer, and is a value: give values to launches"));
        }
        Ok(ScriptBuffer { name: field.key, spec, at })
    };
    rest.into_iter().map(buffer).collect()
}

/// A form of `--arg`.
fn form(what: &str, text: &str, at: Position) -> Result<ArgumentSpec, ScriptError> {
    ArgumentSpec::parse(what, text).map_err(|Refused(what)| ScriptError { at, what })
}

/// A message of several lines as one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'a> Parser<'a> {
    fn steps(&mut self, field: &Field<'a>) -> Result<Vec<Step>, ScriptError> {
        let items = field.items(self.source, STEPS_MAX)?;
        if items.is_empty() {
            return Err(field.refuse("an array of steps, and is empty"));
        }
        items.iter().map(|item| self.step(item)).collect()
    }

    fn step(&mut self, item: &Field<'a>) -> Result<Step, ScriptError> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(ScriptError { at: item.at, what: format!("there are more than {STEPS_MAX} steps") });
        }
        let mut fields = item.fields(self.source)?;
        let at = fields.at();
        let mut works = Vec::new();
        for key in ["launch", "repeat", "check", "copy", "write", "dump"] {
            works.extend(fields.take(key).map(|field| (key, field)));
        }
        fields.end()?;
        let [(key, field)] = &works[..] else {
            let what = format!("a step is one of {STEP_FORMS}, and this is {}", works.len());
            return Err(ScriptError { at, what });
        };
        let fields = field.fields(self.source)?;
        let work = match *key {
            "launch" => self.launch(fields).map(Work::Launch),
            "repeat" => self.repeat(fields),
            "check" => self.check(fields),
            "copy" => self.copy(fields),
            "write" => self.write(fields),
            _ => self.dump(fields),
        }?;
        Ok(Step { work, at })
    }

    fn repeat(&mut self, mut fields: Fields<'a>) -> Result<Work, ScriptError> {
        let times = fields.need("times")?.number(1, TIMES_MAX)?;
        let variable = fields.take("variable");
        let steps = fields.need("steps")?;
        let at = fields.at();
        fields.end()?;
        if self.variables.len() == NESTING_MAX {
            let what = format!("more than {NESTING_MAX} loops are inside of each other");
            return Err(ScriptError { at, what });
        }
        let variable = match variable {
            Some(field) if is_name(field.text()?) => Some(field.text()?.to_owned()),
            Some(field) => return Err(field.refuse("a name: letters, digits and _, a letter first")),
            None => None,
        };
        self.variables.push(variable.clone());
        let steps = self.steps(&steps);
        self.variables.pop();
        Ok(Work::Repeat { times, variable, steps: steps? })
    }

    fn launch(&mut self, mut fields: Fields<'a>) -> Result<Launch, ScriptError> {
        let path = path(&fields.need("file")?)?;
        let groups = sizes(&fields.need("grid")?, self.source)?;
        let group = fields.take("block").map(|field| sizes(&field, self.source)).transpose()?;
        let kernel = fields.take("kernel").map(|field| field.text().map(str::to_owned)).transpose()?;
        let given =
            fields.take("args").map_or(Ok(Vec::new()), |field| field.items(self.source, ARGUMENTS_MAX))?;
        let arguments = given.iter().map(|field| self.argument(field)).collect::<Result<_, _>>()?;
        let number = |field: Option<Field<'_>>, [min, max]: [u32; 2]| {
            let number = field.map(|field| field.number(min.into(), max.into())).transpose();
            number.map(|number| number.map(|number| number as u32))
        };
        let lds = fields.take("lds").map(|field| lds_sizes(&field, self.source)).transpose()?;
        let waits = fields.take("wait").map_or(Ok(true), |field| field.flag())?;
        let wave_size = match fields.take("wave") {
            None => None,
            Some(field) => match field.number(32, 64)? {
                32 => Some(WaveSize::Wave32),
                64 => Some(WaveSize::Wave64),
                _ => return Err(field.refuse("32 or 64")),
            },
        };
        let vgprs = number(fields.take("vgprs"), VGPRS)?;
        let user_sgprs = number(fields.take("user_sgprs"), USER_SGPRS)?;
        fields.end()?;
        Ok(Launch {
            file: ProgramFile { path, kernel, wave_size, vgprs, user_sgprs },
            groups,
            group,
            dynamic_lds: lds.unwrap_or(DynamicLds::NONE),
            arguments,
            waits,
        })
    }

    fn check(&mut self, mut fields: Fields<'a>) -> Result<Work, ScriptError> {
        let buffer = self.buffer(&fields.need("buffer")?)?;
        let (file, equals) = (fields.take("expect"), fields.take("equals"));
        let tolerance = fields.take("tolerance").map(|field| field.fraction()).transpose()?;
        let at = fields.at();
        fields.end()?;
        let wanted = match (file, equals) {
            (Some(file), None) => Wanted::File(path(&file)?),
            (None, Some(value)) => Wanted::Equals(self.number(&value)?),
            _ => {
                let what = "check needs one of expect = \"FILE\" and equals = \"TYPE:NUMBER\"".to_owned();
                return Err(ScriptError { at, what });
            }
        };
        Ok(Work::Check { buffer, wanted, tolerance })
    }

    fn copy(&mut self, mut fields: Fields<'a>) -> Result<Work, ScriptError> {
        let from = self.place(&fields.need("from")?)?;
        let to = self.place(&fields.need("to")?)?;
        let bytes = fields.take("bytes").map(|field| bytes(&field)).transpose()?;
        fields.end()?;
        Ok(Work::Copy { from, to, bytes })
    }

    fn write(&mut self, mut fields: Fields<'a>) -> Result<Work, ScriptError> {
        let (buffer, offset) = self.place(&fields.need("buffer")?)?;
        let value = self.number(&fields.need("value")?)?;
        fields.end()?;
        Ok(Work::Write { buffer, offset, value })
    }

    fn dump(&mut self, mut fields: Fields<'a>) -> Result<Work, ScriptError> {
        let buffer = self.buffer(&fields.need("buffer")?)?;
        let file = fields.need("file")?;
        let name = path(&file)?.display().to_string();
        fields.end()?;
        let wrong = || file.refuse("a name in which only variables of loops around it stand in {}");
        let mut parts = name.split('{');
        let mut pieces = vec![Piece::Text(parts.next().unwrap_or_default().to_owned())];
        for part in parts {
            let (variable, text) = part.split_once('}').ok_or_else(wrong)?;
            let index = self.variables.iter().rposition(|known| known.as_deref() == Some(variable));
            pieces.extend([Piece::Turn(index.ok_or_else(wrong)?), Piece::Text(text.to_owned())]);
        }
        Ok(Work::Dump { buffer, file: pieces })
    }

    /// `buffer:NAME`, `buffer:NAME+EXPRESSION`, a number, or another value.
    fn argument(&mut self, field: &Field<'a>) -> Result<LaunchedWith, ScriptError> {
        match field.text()?.strip_prefix("buffer:") {
            Some(place) => {
                let (buffer, offset) = self.place_of(place, field.at)?;
                Ok(LaunchedWith::Buffer(buffer, offset))
            }
            None => self.number(field).map(LaunchedWith::Number),
        }
    }

    fn buffer(&mut self, field: &Field<'a>) -> Result<usize, ScriptError> {
        self.buffer_named(field.text()?, field.at)
    }

    fn place(&mut self, field: &Field<'a>) -> Result<(usize, Expression), ScriptError> {
        self.place_of(field.text()?, field.at)
    }

    /// `NAME` or `NAME+EXPRESSION`.
    fn place_of(&mut self, text: &str, at: Position) -> Result<(usize, Expression), ScriptError> {
        let (name, offset) = text.split_once('+').unwrap_or((text, "0"));
        let offset = Expression::parse(offset, &self.variables)
            .map_err(|why| ScriptError { at, what: format!("{text:?} is not a place in a buffer: {why}") })?;
        Ok((self.buffer_named(name, at)?, offset))
    }

    fn buffer_named(&mut self, name: &str, at: Position) -> Result<usize, ScriptError> {
        self.buffers.iter().position(|buffer| buffer.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            let what = format!("there is no buffer {name:?}; [buffers] has {}", names.join(", "));
            ScriptError { at, what }
        })
    }

    fn number(&mut self, field: &Field<'a>) -> Result<Number, ScriptError> {
        let text = field.text()?;
        let moving = text.split_once(':').and_then(|(kind, value)| Some((ElementType::named(kind)?, value)));
        if let Some((element, value)) = moving
            && element.encode(value).is_none()
        {
            let value = Expression::parse(value, &self.variables).map_err(|why| ScriptError {
                at: field.at,
                what: format!("{text:?} cannot be read: {why}"),
            })?;
            return Ok(Number::Moving { element, value, text: one_line(text) });
        }
        let spec = form(&field.key, text, field.at)?;
        if spec.is_buffer() {
            return Err(field.refuse("a value, or buffer:NAME: buffers are made in [buffers]"));
        }
        Ok(Number::Fixed(spec))
    }
}

/// The name of a file.
fn path(field: &Field<'_>) -> Result<PathBuf, ScriptError> {
    match field.text()? {
        "" => Err(field.refuse("the name of a file")),
        name => Ok(PathBuf::from(name)),
    }
}

/// One to three numbers from 1: `64`, `[64, 2]`.
fn sizes(field: &Field<'_>, source: &Source<'_>) -> Result<[u32; 3], ScriptError> {
    let size = |field: &Field<'_>| field.number(1, u32::MAX.into()).map(|size| size as u32);
    if matches!(field.value, DeValue::Integer(_)) {
        return Ok([size(field)?, 1, 1]);
    }
    let items = field.items(source, 3).map_err(|_| field.refuse("one to three numbers, as in [64, 2, 1]"))?;
    let mut sizes = [1; 3];
    for (to, item) in sizes.iter_mut().zip(&items) {
        *to = size(item)?;
    }
    if items.is_empty() { Err(field.refuse("one to three numbers, as in [64, 2, 1]")) } else { Ok(sizes) }
}

/// LDS beyond what the kernel declares: `256`, or `[256, 64]` with a size for each LDS pointer.
fn lds_sizes(field: &Field<'_>, source: &Source<'_>) -> Result<DynamicLds, ScriptError> {
    let size = |field: &Field<'_>| field.number(0, u32::MAX.into()).map(|size| size as u32);
    if matches!(field.value, DeValue::Integer(_)) {
        return size(field).map(DynamicLds::of);
    }
    let wrong = || {
        let wanted = format!("a number of bytes, or up to {LDS_SIZES_MAX} of them, as in [256, 64]");
        field.refuse(&wanted)
    };
    let items = field.items(source, LDS_SIZES_MAX).map_err(|_| wrong())?;
    let sizes = items.iter().map(size).collect::<Result<Vec<u32>, ScriptError>>()?;
    DynamicLds::new(&sizes).filter(|_| !sizes.is_empty()).ok_or_else(wrong)
}

/// A number of bytes: a number, or a size as buffers have it.
fn bytes(field: &Field<'_>) -> Result<u64, ScriptError> {
    match field.value {
        DeValue::Integer(_) => field.number(1, BUFFER_BYTES_MAX),
        _ => Size::parse(field.text()?).map(|size| size.bytes).ok_or_else(|| field.refuse(SIZE_FORMS)),
    }
}
