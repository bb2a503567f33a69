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

#[cfg(test)]
mod tests {
    use super::*;

    /// The works of a script's steps, with the buffers a and b.
    fn works(steps: &str) -> Vec<Work> {
        let text = format!("buffers = {{ a = 'zero:64', b = 'zero:64' }}\n{steps}");
        let script = Script::parse(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
        script.steps.into_iter().map(|step| step.work).collect()
    }

    fn work(step: &str) -> Work {
        works(&format!("step = [{{ {step} }}]")).remove(0)
    }

    fn launch(more: &str) -> Launch {
        match work(&format!("launch = {{ file = 'd/k.co', grid = 1{more} }}")) {
            Work::Launch(launch) => launch,
            other => panic!("{other:?}"),
        }
    }

    fn refusal(step: &str) -> String {
        let text = format!("buffers = {{ a = 'zero:64', b = 'zero:64' }}\nstep = [{{ {step} }}]");
        Script::parse(&text).expect_err(&text).what
    }

    #[test]
    fn a_launch_has_what_its_keys_say() {
        let plain = launch("");
        assert_eq!(plain.file.path, PathBuf::from("d/k.co"));
        assert_eq!((plain.file.wave_size, plain.group, plain.waits), (None, None, true));
        assert_eq!((plain.dynamic_lds, plain.arguments.len()), (DynamicLds::NONE, 0));
        let waves = ["32", "64"].map(|lanes| launch(&format!(", wave = {lanes}")).file.wave_size);
        assert_eq!(waves, [Some(WaveSize::Wave32), Some(WaveSize::Wave64)]);
        assert_eq!(["true", "false"].map(|waits| launch(&format!(", wait = {waits}")).waits), [true, false]);
        assert_eq!(launch(", block = [5, 6, 7]").group, Some([5, 6, 7]));
        assert_eq!(launch(", lds = [256, 64]").dynamic_lds, DynamicLds::new(&[256, 64]).unwrap());
        assert_eq!(launch(", lds = 0").dynamic_lds, DynamicLds::of(0));
        let file = launch(", kernel = 'k', vgprs = 256, user_sgprs = 16").file;
        assert_eq!((file.kernel.as_deref(), file.vgprs, file.user_sgprs), (Some("k"), Some(256), Some(16)));
        assert_eq!(launch(", vgprs = 1, user_sgprs = 2").file.vgprs, Some(1));
    }

    #[test]
    fn values_outside_their_ranges_are_refused_with_the_range() {
        let refused = |more: &str| refusal(&format!("launch = {{ file = 'k', grid = 1{more} }}"));
        for (more, what) in [
            (", wave = 31", "wave must be a number from 32 to 64"),
            (", wave = 33", "wave must be 32 or 64"),
            (", wave = 65", "wave must be a number from 32 to 64"),
            (", wait = 1", "wait must be true or false"),
            (", vgprs = 0", "vgprs must be a number from 1 to 256"),
            (", vgprs = 257", "vgprs must be a number from 1 to 256"),
            (", user_sgprs = 1", "user_sgprs must be a number from 2 to 16"),
            (", user_sgprs = 17", "user_sgprs must be a number from 2 to 16"),
            (", block = []", "block must be one to three numbers, as in [64, 2, 1]"),
            (", block = [1, 1, 1, 1]", "block must be one to three numbers, as in [64, 2, 1]"),
            (", block = [0]", "an item of block must be a number from 1 to 4294967295"),
            (", lds = []", "lds must be a number of bytes, or up to 16 of them, as in [256, 64]"),
            (", lds = -1", "lds must be a number from 0 to 4294967295"),
            (", args = ['buffer:c']", "there is no buffer \"c\"; [buffers] has a, b"),
            (
                ", args = ['zero:4']",
                "an item of args must be a value, or buffer:NAME: buffers are made in [buffers]",
            ),
        ] {
            assert_eq!(refused(more), what, "{more}");
        }
        let lds = |count| format!(", lds = [{}]", "1, ".repeat(count));
        assert_eq!(refused(&lds(17)), "lds must be a number of bytes, or up to 16 of them, as in [256, 64]");
        assert_eq!(launch(&lds(16)).dynamic_lds, DynamicLds::new(&[1; 16]).unwrap());
        let arguments = |count| format!(", args = [{}]", "'u8:1', ".repeat(count));
        assert_eq!(refused(&arguments(257)), "args must be an array of at most 256, and has 257");
        assert_eq!(launch(&arguments(256)).arguments.len(), 256);
        assert_eq!(refusal("launch = { file = '', grid = 1 }"), "file must be the name of a file");
        assert_eq!(refusal("launch = { file = 1, grid = 1 }"), "file must be a text in quotes");
    }

    #[test]
    fn steps_name_their_buffers_and_files() {
        let check = |buffer: &str| work(&format!("check = {{ buffer = '{buffer}', expect = 'e.npy' }}"));
        let wanted = || Wanted::File("e.npy".into());
        assert_eq!(check("a"), Work::Check { buffer: 0, wanted: wanted(), tolerance: None });
        assert_eq!(check("b"), Work::Check { buffer: 1, wanted: wanted(), tolerance: None });
        let dumped = |buffer: &str, index| {
            let Work::Dump { buffer, file } =
                work(&format!("dump = {{ buffer = '{buffer}', file = 'x.raw' }}"))
            else {
                panic!("{buffer}")
            };
            assert_eq!((buffer, file), (index, vec![Piece::Text("x.raw".into())]));
        };
        dumped("a", 0);
        dumped("b", 1);
        assert_eq!(
            refusal("dump = { buffer = 'c', file = 'x' }"),
            "there is no buffer \"c\"; [buffers] has a, b"
        );
        assert_eq!(refusal("check = { buffer = 'a', expect = '' }"), "expect must be the name of a file");
        assert_eq!(
            refusal("check = { buffer = 'a' }"),
            "check needs one of expect = \"FILE\" and equals = \"TYPE:NUMBER\""
        );
    }

    #[test]
    fn a_tolerance_is_any_number_from_zero() {
        let tolerance = |text: &str| {
            let step = format!("check = {{ buffer = 'a', expect = 'e', tolerance = {text} }}");
            match works(&format!("step = [{{ {step} }}]")).remove(0) {
                Work::Check { tolerance, .. } => tolerance,
                other => panic!("{other:?}"),
            }
        };
        for (text, number) in [
            ("0", 0.0),
            ("3", 3.0),
            ("0x10", 16.0),
            ("0b101", 5.0),
            ("0.25", 0.25),
            ("2e-3", 2e-3),
            ("1_000", 1e3),
        ] {
            assert_eq!(tolerance(text), Some(number), "{text}");
        }
        for text in ["-1", "-0.5", "inf", "-inf", "nan", "'1'", "true"] {
            let what = refusal(&format!("check = {{ buffer = 'a', expect = 'e', tolerance = {text} }}"));
            assert_eq!(what, "tolerance must be a number from 0", "{text}");
        }
    }

    #[test]
    fn lengths_of_copies_are_numbers_or_sizes() {
        let bytes = |text: &str| match work(&format!("copy = {{ from = 'a', to = 'b', bytes = {text} }}")) {
            Work::Copy { bytes, from: (0, _), to: (1, _) } => bytes,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            ["1", "0x10", "4294967296", "'4k'", "'2*f32'"].map(bytes),
            [1, 16, 4 << 30, 4096, 8].map(Some)
        );
        let refused = |text: &str| refusal(&format!("copy = {{ from = 'a', to = 'b', bytes = {text} }}"));
        for text in ["0", "-1", "4294967297"] {
            assert_eq!(refused(text), "bytes must be a number from 1 to 4294967296");
        }
        for text in ["'0'", "'x'", "''"] {
            assert_eq!(refused(text), "bytes must be a size such as 4096, 4k, 2M or 1024*f32");
        }
    }

    #[test]
    fn names_of_dumps_follow_the_loops_around_them() {
        let nested = |file: &str| {
            format!(
                "repeat = {{ times = 2, variable = 'row', steps = [{{ repeat = {{ times = 2, variable = 'turn', \
                 steps = [{{ dump = {{ buffer = 'a', file = '{file}' }} }}] }} }}] }}"
            )
        };
        let Work::Repeat { steps: outer, .. } = work(&nested("x{turn}-{row}.raw")) else { panic!() };
        let Work::Repeat { steps: inner, .. } = &outer[0].work else { panic!("{outer:?}") };
        let text = |text: &str| Piece::Text(text.into());
        let file = vec![text("x"), Piece::Turn(1), text("-"), Piece::Turn(0), text(".raw")];
        assert_eq!(inner[0].work, Work::Dump { buffer: 0, file });
        for file in ["{other}", "{turn", "{}"] {
            assert_eq!(
                refusal(&nested(file)),
                "file must be a name in which only variables of loops around it stand in {}",
                "{file}"
            );
        }
    }

    #[test]
    fn variables_of_loops_have_names() {
        let step = |name: &str| {
            format!(
                "repeat = {{ times = 1, variable = '{name}', steps = [{{ dump = {{ buffer = 'a', file = 'x' }} }}] }}"
            )
        };
        for name in ["a", "_", "row_2", "Z9"] {
            let Work::Repeat { variable, .. } = work(&step(name)) else { panic!("{name}") };
            assert_eq!(variable.as_deref(), Some(name));
        }
        for name in ["", "2a", "a-b", "a b", "a.b", "é"] {
            assert_eq!(
                refusal(&step(name)),
                "variable must be a name: letters, digits and _, a letter first",
                "{name}"
            );
        }
    }

    /// Loops of `counts` steps each, beside each other.
    fn loops(counts: &[usize]) -> String {
        let step = "{ copy = { from = 'a', to = 'b' } },";
        let one =
            |count: &usize| format!("{{ repeat = {{ times = 1, steps = [{}] }} }},", step.repeat(*count));
        format!(
            "buffers = {{ a = 'zero:64', b = 'zero:64' }}\nstep = [{}]",
            counts.iter().map(one).collect::<String>()
        )
    }

    /// Steps of loops count once each, and so does the loop.
    #[test]
    fn as_many_steps_and_bytes_and_buffers_as_the_limits_say_are_read() {
        assert_eq!(Script::parse(&loops(&[2047, 2047])).unwrap().steps.len(), 2);
        let error = Script::parse(&loops(&[2047, 2048])).unwrap_err();
        assert_eq!(error.what, "there are more than 4096 steps");
        let mut text = loops(&[1]);
        text.push_str(&"\n".repeat(262_144 - text.len()));
        assert!(Script::parse(&text).is_ok());
        text.push('\n');
        let error = Script::parse(&text).unwrap_err();
        assert_eq!(error.to_string(), "1:1: the script has 262145 bytes, but may have at most 262144");
        let buffers = |count| {
            let buffers: String = (0..count).map(|index| format!("b{index} = 'zero:4'\n")).collect();
            Script::parse(&format!("[buffers]\n{buffers}[[step]]\ncopy = {{ from = 'b0', to = 'b1' }}\n"))
        };
        assert_eq!(buffers(256).unwrap().buffers.len(), 256);
        let error = buffers(257).unwrap_err();
        assert_eq!(error.what, "buffers must be a table of at most 256 buffers, and has 257");
    }

    #[test]
    fn a_message_of_several_lines_becomes_one() {
        assert_eq!(one_line(" one\n  two\tthree \n"), "one two three");
        let text = "step = [{ repeat = { times = 2, variable = 't', steps = [{ write = { buffer = 'a', value = \"\"\"\
                    u32:t\n * 2\"\"\" } }] } }]";
        let Work::Repeat { steps, .. } = works(text).remove(0) else { panic!() };
        let Work::Write { value: Number::Moving { element, text, .. }, .. } = &steps[0].work else {
            panic!("{steps:?}")
        };
        assert_eq!((*element, text.as_str()), (ElementType::U32, "u32:t * 2"));
    }
}
