//! What a user types: messages and commands.
//!
//! Contract: a line is a message unless it begins with `/`; `//` begins a message with one slash. Lines between `"""`
//! are one message, and a backslash at a line's end joins the next one. A message has at most [`MESSAGE_BYTES_MAX`].

use std::io::{BufRead, Error, ErrorKind, Read};

/// Maximum number of bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 1 << 22;
/// What begins and ends a message of several lines.
const FENCE: &str = "\"\"\"";

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Something to answer.
    Message(String),
    /// A command.
    Command(Command),
    /// A command that there is not.
    Unknown(String),
    /// Nothing: an empty line.
    Nothing,
    /// There is no more.
    End,
}

/// A command of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Shows the commands.
    Help,
    /// Forgets all messages but the instructions.
    Clear,
    /// Sets the instructions and forgets the messages; without a text: shows them.
    System(Option<String>),
    /// Shows how much of the context is used.
    Context,
    /// Answers the last message again.
    Again,
    /// Lets the model think before it answers, or not.
    Think(bool),
    /// Writes the conversation to a file.
    Save(String),
    /// Leaves.
    Exit,
}

/// The commands, as `/help` shows them.
pub const HELP: &str = "\
/clear          forget the conversation, but not the instructions
/system [TEXT]  show the instructions, or set them and forget the conversation
/context        show how much of the context is used
/regen          answer the last message again
/think on|off   let the model think first, where its template asks
/save FILE      write the conversation as JSON
/help, /?       show this
/exit, /bye     leave; so does Ctrl-D
//TEXT          a message that begins with a slash
\"\"\"TEXT\"\"\"      a message of several lines; so is one whose lines end with \\
Ctrl-C          stop the answer and keep what is there; once more: leave
";

/// Reads the next input. `prompt` is called before each line, with true for the second and later ones of a message.
///
/// # Errors
/// What the reader says, a message that is too long, and text that is not UTF-8.
pub fn read(
    reader: &mut dyn BufRead,
    mut prompt: impl FnMut(bool) -> Result<(), Error>,
) -> Result<Input, Error> {
    prompt(false)?;
    let Some(first) = line(reader)? else { return Ok(Input::End) };
    if let Some(mut text) = first.trim_start().strip_prefix(FENCE).map(str::to_owned) {
        let mut searched = 0;
        loop {
            if let Some(end) = text[searched..].find(FENCE).map(|end| searched + end) {
                // What follows on the line belongs to the message.
                text.replace_range(end..end + FENCE.len(), "");
                return Ok(Input::Message(inside(&text)));
            }
            searched = text.len();
            prompt(true)?;
            let Some(next) = line(reader)? else { return Ok(Input::Message(inside(&text))) };
            append(&mut text, &next)?;
        }
    }
    let mut text = first;
    while text.ends_with('\\') {
        text.pop();
        prompt(true)?;
        let Some(next) = line(reader)? else {
            text.push('\\');
            break;
        };
        append(&mut text, &next)?;
    }
    Ok(parse(&text))
}

/// What stands between fences, without the line ends beside them.
fn inside(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text);
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

fn append(text: &mut String, next: &str) -> Result<(), Error> {
    if text.len() + next.len() >= MESSAGE_BYTES_MAX {
        return Err(too_long());
    }
    text.push('\n');
    text.push_str(next);
    Ok(())
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidData, format!("a message has more than {MESSAGE_BYTES_MAX} bytes"))
}

/// The next line without its end. A line that is an error has been read whole.
fn line(reader: &mut dyn BufRead) -> Result<Option<String>, Error> {
    let mut bytes = Vec::new();
    let count = reader.take(MESSAGE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes)?;
    if count > MESSAGE_BYTES_MAX {
        while count_of_rest(reader, &mut bytes)? > 0 {}
        return Err(too_long());
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "a line is not UTF-8"))?;
    if count == 0 {
        return Ok(None);
    }
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Some(text.strip_suffix('\r').unwrap_or(text).to_owned()))
}

/// Reads on in a line that is too long; 0 once its end has been read.
fn count_of_rest(reader: &mut dyn BufRead, bytes: &mut Vec<u8>) -> Result<usize, Error> {
    if bytes.last() == Some(&b'\n') {
        return Ok(0);
    }
    bytes.clear();
    reader.take(MESSAGE_BYTES_MAX as u64).read_until(b'\n', bytes)
}

fn parse(text: &str) -> Input {
    if text.trim().is_empty() {
        return Input::Nothing;
    }
    let Some(command) = text.strip_prefix('/') else { return Input::Message(text.to_owned()) };
    if command.starts_with('/') {
        return Input::Message(command.to_owned());
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    let has_rest = !rest.is_empty();
    Input::Command(match (name, rest) {
        ("help" | "?", "") => Command::Help,
        ("clear" | "reset", "") => Command::Clear,
        ("system", _) => Command::System(has_rest.then(|| rest.to_owned())),
        ("context", "") => Command::Context,
        ("regen", "") => Command::Again,
        ("think", "on") => Command::Think(true),
        ("think", "off") => Command::Think(false),
        ("save", _) if has_rest => Command::Save(rest.to_owned()),
        ("exit" | "bye" | "quit", "") => Command::Exit,
        _ => return Input::Unknown(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Input> {
        let mut reader = text.as_bytes();
        let mut inputs = Vec::new();
        loop {
            let input = read(&mut reader, |_| Ok(())).unwrap();
            if input == Input::End {
                return inputs;
            }
            inputs.push(input);
        }
    }

    fn message(text: &str) -> Input {
        Input::Message(text.into())
    }

    #[test]
    fn lines_are_messages() {
        assert_eq!(
            all("a b\r\n\n//x\nlast"),
            [message("a b"), Input::Nothing, message("/x"), message("last")]
        );
        assert_eq!(all("a\\\nb\\\n/help\nc"), [message("a\nb\n/help"), message("c")]);
        assert_eq!(all("\"\"\"a\n/b\n\"\"\"\nc"), [message("a\n/b"), message("c")]);
        assert_eq!(all("\"\"\"a\"\"\"\n\"\"\"open\nend"), [message("a"), message("open\nend")]);
    }

    #[test]
    fn commands_are_known_by_name() {
        let expected = [
            Command::Help,
            Command::System(Some("Be terse.".into())),
            Command::System(None),
            Command::Think(false),
            Command::Save("a b.json".into()),
            Command::Exit,
        ]
        .map(Input::Command);
        assert_eq!(all("/?\n/system  Be terse. \n/system\n/think off\n/save a b.json\n/bye"), expected);
        for unknown in ["/nothing", "/save", "/help me", "/think maybe", "/"] {
            assert_eq!(all(unknown), [Input::Unknown(unknown.into())]);
        }
    }

    #[test]
    fn messages_have_a_longest_length() {
        let long = format!("{}\n", "a".repeat(MESSAGE_BYTES_MAX + 1));
        assert!(read(&mut long.as_bytes(), |_| Ok(())).is_err());
        let joined = format!("{0}\\\n{0}\n", "a".repeat(MESSAGE_BYTES_MAX / 2 + 1));
        assert!(read(&mut joined.as_bytes(), |_| Ok(())).is_err());
        assert!(read(&mut &[0xFF, b'\n'][..], |_| Ok(())).is_err());
    }

    #[test]
    fn every_command_has_its_names() {
        for (names, command) in [
            ("/help|/?|/help  ", Command::Help),
            ("/clear|/reset", Command::Clear),
            ("/system\tshort", Command::System(Some("short".to_owned()))),
            ("/context", Command::Context),
            ("/regen", Command::Again),
            ("/think on", Command::Think(true)),
            ("/exit|/bye|/quit", Command::Exit),
        ] {
            for name in names.split('|') {
                assert_eq!(all(name), [Input::Command(command.clone())], "{name}");
            }
        }
        for unknown in ["/clear x", "/context x", "/regen x", "/exit x", "/save ", "/think", "/Help"] {
            assert_eq!(all(unknown), [Input::Unknown(unknown.to_owned())]);
        }
        assert_eq!(all("  \t"), [Input::Nothing]);
    }

    /// The longest line, and the longest message of two lines, are taken; after what is too long the next line is read.
    #[test]
    fn messages_of_the_longest_length_are_taken() {
        let longest = "a".repeat(MESSAGE_BYTES_MAX - 1);
        assert_eq!(all(&format!("{longest}\nb")), [message(&longest), message("b")]);
        // Without its end a line has one byte more.
        let unended = "a".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(all(&unended), [message(&unended)]);
        let longer = format!("{unended}aa\nb\n");
        let mut reader = longer.as_bytes();
        assert!(read(&mut reader, |_| Ok(())).is_err());
        assert_eq!(read(&mut reader, |_| Ok(())).unwrap(), message("b"));
        // So long that it takes three reads.
        let longest = format!("{unended}{unended}aa\nb\n");
        let mut reader = longest.as_bytes();
        assert!(read(&mut reader, |_| Ok(())).is_err());
        assert_eq!(read(&mut reader, |_| Ok(())).unwrap(), message("b"));
        // A slash at the end, a line end and the second line.
        let half = "a".repeat(MESSAGE_BYTES_MAX / 2 - 1);
        let joined = |more: &str| read(&mut format!("{half}\\\n{half}{more}\n").as_bytes(), |_| Ok(())).ok();
        assert_eq!(joined("b"), Some(message(&format!("{half}\n{half}b"))));
        assert_eq!(joined("bb"), None);
    }

    /// Each line is asked for, and those after the first of a message are asked for as such.
    #[test]
    fn lines_are_asked_for() {
        let asked = |text: &str| {
            let mut asked = Vec::new();
            let mut reader = text.as_bytes();
            let input = read(&mut reader, |continues| {
                asked.push(continues);
                Ok(())
            });
            (input.unwrap(), asked)
        };
        assert_eq!(asked("a\n"), (message("a"), vec![false]));
        assert_eq!(asked("a\\\nb\\\nc\n"), (message("a\nb\nc"), vec![false, true, true]));
        assert_eq!(asked("\"\"\"a\nb\"\"\"c\n"), (message("a\nbc"), vec![false, true]));
        // A slash at the end of the input joins nothing.
        assert_eq!(asked("a\\"), (message("a\\"), vec![false, true]));
        assert_eq!(asked(""), (Input::End, vec![false]));
    }
}
