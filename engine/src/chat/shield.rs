//! Contents of messages and control tokens, kept apart.
//!
//! A template's own text becomes tokens with its control tokens recognised; what users and tools write must not. But
//! templates cut, search and join contents, so contents cannot be kept out of the rendering. Instead, in everything
//! that comes from outside the template, each character with which any control token begins is replaced by a stand-in,
//! a private-use character of plane 16 that occurs nowhere else. Whatever the template then does to contents, as
//! long as it makes no new characters of them, no control token can begin inside one, whole, or joined from parts. After
//! control tokens are found, stand-ins become the characters again, and the rest is encoded as plain text.
//!
//! Templates look for texts such as `</think>` in contents. The end of a text between quotes in the template, and a
//! user-defined token (those are recognised everywhere), is left as it is where it stands whole in a content, unless a
//! control token could begin inside of it: then what follows could complete one.
//!
//! Contract: pure; contents come back exactly. Limits: a template that deletes the middle of such a text, or that
//! compares the first character of a content, does not see what it expects. Cost: contents × exempt texts.

use super::functions::Record;
use super::{ChatError, limits};
use crate::tokenizer::{TokenKind, Tokenizer};
use minijinja::Value;
use minijinja::value::ValueKind;
use std::borrow::Cow;

/// First of the stand-ins: the last plane of private use. No standard gives a character there a meaning.
const PLANE: u32 = 0x10_0000;
/// Characters of the plane, less its two noncharacters.
const PLANE_SIZE: u32 = 0xFFFE;
/// Bytes of a text that stays in contents: longer ones are prose.
const EXEMPT_BYTES_MAX: usize = 64;
/// Maximum number of them from the template.
const LITERALS_MAX: usize = 512;
/// Maximum number of them from the vocabulary.
const DEFINED_MAX: usize = 1024;

/// What must not be made by contents.
pub(super) struct Shield {
    /// Characters with which control tokens begin, ascending.
    beginnings: Vec<char>,
    /// Texts of control tokens.
    controls: Vec<Box<str>>,
    /// Texts that stay in contents.
    exempt: Vec<Box<str>>,
}

/// The stand-ins of one rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StandIns {
    beginnings: Vec<char>,
    /// Code of the first.
    base: u32,
}

impl Shield {
    /// The shield of a vocabulary and a template with the given texts between quotes.
    pub(super) fn new(tokenizer: &Tokenizer, literals: &[String]) -> Result<Shield, ChatError> {
        let ids = 0..tokenizer.token_count() as u32;
        let texts = |kinds: &'static [TokenKind]| {
            let has_kind = |id: &u32| tokenizer.kind(*id).is_some_and(|kind| kinds.contains(&kind));
            ids.clone()
                .filter(has_kind)
                .filter_map(|id| tokenizer.token_text(id))
                .filter(|text| !text.is_empty())
        };
        let controls: Vec<Box<str>> =
            texts(&[TokenKind::Control, TokenKind::Unknown]).map(Into::into).collect();
        let mut beginnings: Vec<char> = controls.iter().filter_map(|text| text.chars().next()).collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        let (found, limit) = (beginnings.len(), limits::BEGINNINGS_MAX);
        if found > limit {
            return Err(ChatError::Beginnings { found, limit });
        }
        let mut shield = Shield { beginnings, controls, exempt: Vec::new() };
        let ends = literals.iter().flat_map(|literal| {
            literal.char_indices().map(|(at, _)| &literal[at..]).filter(|end| end.len() <= EXEMPT_BYTES_MAX)
        });
        let exempt = ends.filter(|text| shield.may_stay(text)).take(LITERALS_MAX);
        let mut exempt: Vec<Box<str>> = exempt.map(Into::into).collect();
        let defined = texts(&[TokenKind::UserDefined]).filter(|text| shield.may_stay(text));
        exempt.extend(defined.take(DEFINED_MAX).map(Into::<Box<str>>::into));
        // The longest that stands at a place counts.
        exempt.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        exempt.dedup();
        shield.exempt = exempt;
        Ok(shield)
    }

    /// True if a control token could begin with the first character of `text`, but none can begin inside of it.
    fn may_stay(&self, text: &str) -> bool {
        let begins = |char: char| self.beginnings.binary_search(&char).is_ok();
        let clashes =
            |rest: &str| self.controls.iter().any(|one| one.starts_with(rest) || rest.starts_with(&**one));
        text.chars().next().is_some_and(begins)
            && !text.char_indices().any(|(at, char)| begins(char) && clashes(&text[at..]))
    }

    /// Texts of control tokens.
    pub(super) fn controls(&self) -> impl Iterator<Item = &str> {
        self.controls.iter().map(|text| &**text)
    }

    /// Stand-ins that none of the texts has.
    pub(super) fn stand_ins<'t>(
        &self,
        texts: impl Iterator<Item = &'t str> + Clone,
    ) -> Result<StandIns, ChatError> {
        let size = (self.beginnings.len() as u32).max(1);
        // One pass notes which blocks are taken; plane 16 has at least 255 blocks of at most 256 characters.
        let mut taken = vec![false; (PLANE_SIZE / size) as usize];
        for char in texts.flat_map(str::chars) {
            let block = u32::from(char).checked_sub(PLANE).map(|place| place / size);
            if let Some(place) = block.and_then(|block| taken.get_mut(block as usize)) {
                *place = true;
            }
        }
        let block = taken.iter().position(|is_taken| !is_taken).ok_or(ChatError::StandIns)?;
        Ok(StandIns { beginnings: self.beginnings.clone(), base: PLANE + block as u32 * size })
    }

    /// A content as the template sees it.
    pub(super) fn cover(&self, text: &str, stand_ins: &StandIns) -> String {
        let mut covered = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            let exempt = || self.exempt.iter().find(|exempt| rest.starts_with(&***exempt));
            let bytes = match stand_ins.of(char) {
                Some(stand_in) => match exempt() {
                    Some(exempt) => {
                        covered.push_str(exempt);
                        exempt.len()
                    }
                    None => {
                        covered.push(stand_in);
                        char.len_utf8()
                    }
                },
                None => {
                    covered.push(char);
                    char.len_utf8()
                }
            };
            rest = &rest[bytes..];
        }
        covered
    }

    /// A value, all of whose texts come from outside, as the template sees it. Its depth is that of parsed JSON.
    pub(super) fn cover_value(&self, value: &Value, stand_ins: &StandIns) -> Value {
        let items = || value.try_iter().into_iter().flatten();
        match value.kind() {
            ValueKind::String => Value::from(self.cover(value.as_str().unwrap_or_default(), stand_ins)),
            ValueKind::Seq | ValueKind::Iterable => {
                items().map(|item| self.cover_value(&item, stand_ins)).collect()
            }
            ValueKind::Map => {
                let pair = |key: Value| {
                    let item = value.get_item(&key).unwrap_or_default();
                    (self.cover_value(&key, stand_ins), self.cover_value(&item, stand_ins))
                };
                Record::value(items().map(pair).collect())
            }
            _ => value.clone(),
        }
    }
}

impl StandIns {
    fn of(&self, char: char) -> Option<char> {
        let index = self.beginnings.binary_search(&char).ok()?;
        char::from_u32(self.base + index as u32)
    }

    fn back(&self, char: char) -> char {
        let index = u32::from(char).checked_sub(self.base).map(|index| index as usize);
        index.and_then(|index| self.beginnings.get(index)).copied().unwrap_or(char)
    }

    /// A text with every stand-in replaced by what it stands for.
    pub(super) fn uncover<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match text.chars().any(|char| self.back(char) != char) {
            true => Cow::Owned(text.chars().map(|char| self.back(char)).collect()),
            false => Cow::Borrowed(text),
        }
    }
}

/// Every text in a value.
pub(super) fn texts_of(value: &Value, texts: &mut Vec<String>) {
    match value.kind() {
        ValueKind::String => texts.push(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            for item in value.try_iter().into_iter().flatten() {
                if value.kind() == ValueKind::Map {
                    texts_of(&value.get_item(&item).unwrap_or_default(), texts);
                }
                texts_of(&item, texts);
            }
        }
        _ => {}
    }
}
