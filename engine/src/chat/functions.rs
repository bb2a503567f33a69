//! What templates may call besides the renderer's own filters.
//!
//! Contract: every function pays fuel before it makes what its arguments ask for, and recursion over values has a
//! depth. Methods of Python's strings, lists and dictionaries are those of minijinja-contrib; the ones whose results
//! may be far larger than their inputs are paid in advance here, and `format`, whose width nothing bounds, is left out.

use super::limits;
use minijinja::value::{Enumerator, Kwargs, Object, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use std::fmt::Write;
use std::sync::Arc;

/// Bytes that one fuel pays for, as in the renderer.
const BYTES_PER_FUEL: usize = 64;

/// A map with its keys in the order of their insertion. Looking a key up takes a pass: maps of templates are small, and
/// those that a template grows pay for each key.
#[derive(Debug)]
pub(super) struct Record(Vec<(Value, Value)>);

impl Record {
    pub(super) fn value(pairs: Vec<(Value, Value)>) -> Value {
        Value::from_object(Record(pairs))
    }
}

impl Object for Record {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.iter().find(|pair| pair.0 == *key).map(|pair| pair.1.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|pair| pair.0.clone()).collect())
    }
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.into())
}

/// Pairs of a map, in their order.
fn pairs(value: &Value) -> Result<Vec<(Value, Value)>, Error> {
    value.try_iter()?.map(|key| value.get_item(&key).map(|found| (key, found))).collect()
}

/// A copy of `value` with nothing left to compute, all of it paid for: see [`super::guard`]. What is no data, such as a
/// macro or a namespace, is passed on where it stands alone.
pub(super) fn keep(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Plain => Ok(value),
        ValueKind::Map if is_no_data(&value) => Ok(value),
        _ => keep_at(state, &value, 0),
    }
}

/// The same for what a namespace keeps: data only, and of another namespace a copy.
pub(super) fn keep_data(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    keep_at(state, &value, 0)
}

/// True of a namespace and of a macro, which look like maps. The renderer's own types of them are private; their names
/// are what can be asked for.
fn is_no_data(value: &Value) -> bool {
    let is_own = |name: &str| name.ends_with("::Namespace") || name.ends_with("::Macro");
    value.as_object().is_some_and(|object| is_own(object.type_name()))
}

fn keep_at(state: &State<'_, '_>, value: &Value, depth: usize) -> Result<Value, Error> {
    // A text in a list is shared, and paid for as if it were not: whoever writes the list copies it.
    let bytes = if depth == 0 { 0 } else { value.as_str().map_or(0, str::len) };
    state.consume_fuel(1 + (bytes / BYTES_PER_FUEL) as u64)?;
    if depth > limits::NESTING_MAX {
        return Err(invalid("a value that has a name has at most 32 levels"));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Result<Vec<Value>, Error> =
                value.try_iter()?.map(|item| keep_at(state, &item, depth + 1)).collect();
            Ok(Value::from(items?))
        }
        ValueKind::Map => {
            let mut copies = Vec::new();
            for key in value.try_iter()? {
                let item = keep_at(state, &value.get_item(&key)?, depth + 1)?;
                copies.push((keep_at(state, &key, depth + 1)?, item));
            }
            Ok(Record::value(copies))
        }
        ValueKind::Plain | ValueKind::Invalid => {
            Err(invalid("only data can be kept in a list, a map or a namespace"))
        }
        _ => Ok(value.clone()),
    }
}

/// Methods as Python has them.
pub(super) fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        // Everything reads the text; lists of parts take a place for each part.
        state.consume_fuel((text.len() / BYTES_PER_FUEL) as u64)?;
        match method {
            "format" => return Err(Error::from(ErrorKind::UnknownMethod)),
            "join" if arguments.len() == 1 => return joined(state, &arguments[0], text).map(Value::from),
            "split" => {
                let separator = arguments.first().and_then(Value::as_str).filter(|text| !text.is_empty());
                let parts = separator.map_or(text.len(), |separator| text.matches(separator).count());
                state.consume_fuel(parts as u64)?;
            }
            "splitlines" => state.consume_fuel(text.matches('\n').count() as u64)?,
            // A character may become three, each of them longer.
            "upper" | "lower" | "title" | "capitalize" => {
                state.consume_fuel((text.len() / (BYTES_PER_FUEL / 8)) as u64)?;
            }
            _ => {}
        }
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments)
}

/// The filter `join`, with a separator and an attribute that it takes from each item first.
pub(super) fn join(
    state: &State<'_, '_>,
    value: &Value,
    separator: Option<&str>,
    options: Kwargs,
) -> Result<Value, Error> {
    let separator = match separator {
        Some(separator) => separator,
        None => options.get::<Option<&str>>("d")?.unwrap_or_default(),
    };
    let attribute: Option<&str> = options.get("attribute")?;
    options.assert_all_used()?;
    let items: Value = match (attribute, value.as_str()) {
        (Some(name), _) => {
            value.try_iter()?.map(|item| item.get_attr(name)).collect::<Result<Value, Error>>()?
        }
        (None, Some(text)) => {
            state.consume_fuel(text.len() as u64)?;
            text.chars().map(|char| char.to_string()).collect()
        }
        (None, None) => value.clone(),
    };
    joined(state, &items, separator).map(Value::from)
}

/// Items one after another, each paid for before it is added: a list may name one long text many times.
fn joined(state: &State<'_, '_>, items: &Value, separator: &str) -> Result<String, Error> {
    let mut text = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        let separator = if index == 0 { "" } else { separator };
        // What is no text is small, or a list, whose items are counted when it is written.
        let bytes = separator.len() + item.as_str().map_or(0, str::len);
        state.consume_fuel(1 + (bytes / BYTES_PER_FUEL) as u64)?;
        text.push_str(separator);
        match item.as_str() {
            Some(item) => text.push_str(item),
            None => text.push_str(&string(state, &item)?),
        }
    }
    Ok(text)
}

/// The filter `string`: lists and maps are written with what they cost.
pub(super) fn string(state: &State<'_, '_>, value: &Value) -> Result<String, Error> {
    measure(state, value, 0)?;
    Ok(value.to_string())
}

/// Pays for the text of a value before it is made.
fn measure(state: &State<'_, '_>, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > limits::NESTING_MAX {
        return Err(invalid("a value of more than 32 levels has no text"));
    }
    let text = value.as_str().map_or(0, str::len);
    state.consume_fuel(1 + (text / BYTES_PER_FUEL) as u64)?;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter()?.try_for_each(|item| measure(state, &item, depth + 1))
        }
        ValueKind::Map => pairs(value)?.iter().try_for_each(|(key, item)| {
            measure(state, key, depth + 1)?;
            measure(state, item, depth + 1)
        }),
        _ => Ok(()),
    }
}

/// `tojson` as chat templates know it: Python's `json.dumps` with `ensure_ascii=False`, nothing escaped for HTML.
pub(super) fn to_json(state: &State<'_, '_>, value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let ensure_ascii: Option<bool> = options.get("ensure_ascii")?;
    let sort_keys: Option<bool> = options.get("sort_keys")?;
    options.assert_all_used()?;
    if indent.is_some_and(|spaces| spaces > limits::INDENT_MAX) {
        return Err(invalid("JSON is indented by at most 16 spaces"));
    }
    let mut writer = JsonWriter {
        state,
        indent,
        ascii: ensure_ascii.unwrap_or(false),
        sorted: sort_keys.unwrap_or(false),
        text: String::new(),
        paid: 0,
    };
    writer.write(value, 0)?;
    Ok(Value::from(writer.text))
}

struct JsonWriter<'a> {
    state: &'a State<'a, 'a>,
    indent: Option<usize>,
    ascii: bool,
    sorted: bool,
    text: String,
    /// Bytes that are paid for.
    paid: usize,
}

impl JsonWriter<'_> {
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.state.consume_fuel(1 + ((self.text.len() - self.paid) / BYTES_PER_FUEL) as u64)?;
        self.paid = self.text.len();
        if depth > limits::NESTING_MAX * 4 {
            return Err(invalid("a value for JSON has at most 128 levels"));
        }
        match value.kind() {
            ValueKind::None => self.text.push_str("null"),
            ValueKind::Bool => self.text.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => {
                let _ = write!(self.text, "{value}");
            }
            ValueKind::String => self.string(value.as_str().unwrap_or_default())?,
            ValueKind::Seq | ValueKind::Iterable => {
                self.text.push('[');
                let mut is_first = true;
                for item in value.try_iter()? {
                    self.separate(&mut is_first, depth);
                    self.write(&item, depth + 1)?;
                }
                self.close(']', is_first, depth);
            }
            ValueKind::Map => {
                self.text.push('{');
                let mut all = pairs(value)?;
                if self.sorted {
                    all.sort_by(|a, b| a.0.cmp(&b.0));
                }
                let mut is_first = true;
                for (key, item) in &all {
                    self.separate(&mut is_first, depth);
                    match key.as_str() {
                        Some(text) => self.string(text)?,
                        None => self.string(&key.to_string())?,
                    }
                    self.text.push_str(": ");
                    self.write(item, depth + 1)?;
                }
                self.close('}', is_first, depth);
            }
            kind => return Err(invalid(format!("a value of type {kind} has no JSON"))),
        }
        Ok(())
    }

    /// What comes before an element.
    fn separate(&mut self, is_first: &mut bool, depth: usize) {
        match (*is_first, self.indent) {
            (true, None) => {}
            (false, None) => self.text.push_str(", "),
            (first, Some(_)) => {
                self.text.push_str(if first { "" } else { "," });
                self.new_line(depth + 1);
            }
        }
        *is_first = false;
    }

    fn close(&mut self, bracket: char, is_empty: bool, depth: usize) {
        if !is_empty && self.indent.is_some() {
            self.new_line(depth);
        }
        self.text.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        self.text.push('\n');
        let spaces = depth * self.indent.unwrap_or(0);
        self.text.extend(std::iter::repeat_n(' ', spaces));
    }

    fn string(&mut self, text: &str) -> Result<(), Error> {
        // A character takes at most six bytes for each of its own.
        self.state.consume_fuel((text.len() / (BYTES_PER_FUEL / 8)) as u64)?;
        self.text.push('"');
        for char in text.chars() {
            match char {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                '\u{8}' => self.text.push_str("\\b"),
                '\u{c}' => self.text.push_str("\\f"),
                _ if char < ' ' || (self.ascii && !char.is_ascii()) => {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        let _ = write!(self.text, "\\u{unit:04x}");
                    }
                }
                _ => self.text.push(char),
            }
        }
        self.text.push('"');
        Ok(())
    }
}

#[cfg(test)]
mod tests;
