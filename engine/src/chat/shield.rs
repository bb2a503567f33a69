//! Contents of messages and control tokens, kept apart.
//!
//! A template's own text becomes tokens with its control tokens recognised; what users and tools write must not. But
//! templates cut, search and join contents, so contents cannot be kept out of the rendering. Instead, in everything
//! that comes from outside the template, each character with which any control token begins is replaced by a stand-in,
//! a private-use character of plane 16 that occurs nowhere else. Whatever the template then does to contents, as
//! long as it makes no new characters of them, no control token can begin inside one, whole, or joined from parts. The
//! first character of a content is replaced too where it is a sign, not a letter or digit, that stands inside a control
//! token: a template that writes `<` before a content does not begin a token that the content completes. After control
//! tokens are found, stand-ins become the characters again, and the rest is encoded as plain text.
//!
//! Templates look for texts such as `</think>` in contents. The end of a text between quotes in the template, and a
//! user-defined token (those are recognised everywhere), is left as it is where it stands whole in a content, unless a
//! control token could begin inside of it: then what follows could complete one.
//!
//! Contract: pure; contents come back exactly. Limits: a template that deletes the middle of such a text, or that
//! compares the first character of a content, does not see what it expects; one that writes all signs of a control
//! token around a content lets the content be its letters. Cost: each beginning in a content is looked up once for
//! every length of an exempt text.

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
    /// Signs that stand inside control tokens, ascending; none is a beginning.
    inner: Vec<char>,
    /// Texts of control tokens, ascending.
    controls: Vec<Box<str>>,
    /// Texts that stay in contents, ascending.
    exempt: Vec<Box<str>>,
    /// Their lengths in bytes, descending.
    exempt_bytes: Vec<usize>,
    /// Texts that stay at the beginning of a content.
    heads: Vec<Box<str>>,
}

/// The stand-ins of one rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StandIns {
    /// What they stand for, ascending.
    characters: Vec<char>,
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
        let mut controls: Vec<Box<str>> =
            texts(&[TokenKind::Control, TokenKind::Unknown]).map(Into::into).collect();
        controls.sort_unstable();
        let sorted = |mut characters: Vec<char>| {
            characters.sort_unstable();
            characters.dedup();
            characters
        };
        let beginnings = sorted(controls.iter().filter_map(|text| text.chars().next()).collect());
        let mut inner = sorted(controls.iter().flat_map(|text| text.chars().skip(1)).collect());
        inner.retain(|char| {
            !(char.is_alphanumeric() || char.is_whitespace() || beginnings.binary_search(char).is_ok())
        });
        let (found, limit) = (beginnings.len() + inner.len(), limits::BEGINNINGS_MAX);
        if found > limit {
            return Err(ChatError::Beginnings { found, limit });
        }
        let empty = Vec::new;
        let mut shield =
            Shield { beginnings, inner, controls, exempt: empty(), exempt_bytes: Vec::new(), heads: empty() };
        let short = |text: &&str| text.len() <= EXEMPT_BYTES_MAX;
        let begins = |text: &&str| text.chars().next().is_some_and(|char| shield.begins(char));
        let ends = literals.iter().flat_map(|one| one.char_indices().map(|(at, _)| &one[at..]));
        let ends = ends.filter(short).filter(begins).take(LITERALS_MAX);
        let defined = texts(&[TokenKind::UserDefined]).filter(short).filter(begins).take(DEFINED_MAX);
        let exempt = ends.chain(defined).filter(|text| shield.may_stay(text));
        let mut exempt: Vec<Box<str>> = exempt.map(Into::into).collect();
        exempt.sort_unstable();
        exempt.dedup();
        let mut exempt_bytes: Vec<usize> = exempt.iter().map(|text| text.len()).collect();
        // The longest that stands at a place counts.
        exempt_bytes.sort_unstable_by(|a, b| b.cmp(a));
        exempt_bytes.dedup();
        let heads = literals.iter().map(String::as_str).filter(short).take(LITERALS_MAX);
        let heads = heads.filter(|text| shield.may_lead(text)).map(Into::into).collect();
        (shield.exempt, shield.exempt_bytes, shield.heads) = (exempt, exempt_bytes, heads);
        Ok(shield)
    }

    fn begins(&self, char: char) -> bool {
        self.beginnings.binary_search(&char).is_ok()
    }

    /// True if none of the control tokens can begin inside of `text`.
    fn may_stay(&self, text: &str) -> bool {
        !text.char_indices().any(|(at, char)| self.begins(char) && self.clashes(&text[at..]))
    }

    /// True if a control token begins with `rest`, or `rest` with a control token.
    fn clashes(&self, rest: &str) -> bool {
        let place = self.controls.partition_point(|control| &**control < rest);
        let is_begun = self.controls.get(place).is_some_and(|control| control.starts_with(rest));
        let ends = rest.char_indices().map(|(at, char)| at + char.len_utf8());
        let holds =
            |end: usize| self.controls.binary_search_by(|control| (**control).cmp(&rest[..end])).is_ok();
        is_begun || ends.into_iter().any(holds)
    }

    /// True if `text` begins with a sign that stands inside control tokens, and continues none of them.
    fn may_lead(&self, text: &str) -> bool {
        let Some(first) = text.chars().next() else { return false };
        let continues = |control: &str| {
            let inside = control.char_indices().skip(1).map(|(at, _)| &control[at..]);
            inside.into_iter().any(|rest| rest.starts_with(text) || text.starts_with(rest))
        };
        self.inner.binary_search(&first).is_ok() && !self.controls.iter().any(|control| continues(control))
    }

    /// The longest text at the beginning of `rest` that stays.
    fn exempt_at<'t>(&self, rest: &'t str) -> Option<&'t str> {
        let at_least = |bytes: &&usize| **bytes <= rest.len() && rest.is_char_boundary(**bytes);
        let stays = |text: &&str| self.exempt.binary_search_by(|exempt| (**exempt).cmp(text)).is_ok();
        self.exempt_bytes.iter().filter(at_least).map(|bytes| &rest[..*bytes]).find(stays)
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
        let mut characters = [&self.beginnings[..], &self.inner].concat();
        characters.sort_unstable();
        let size = (characters.len() as u32).max(1);
        // One pass notes which blocks are taken; plane 16 has at least 255 blocks of at most 256 characters.
        let mut taken = vec![false; (PLANE_SIZE / size) as usize];
        for char in texts.flat_map(str::chars) {
            let block = u32::from(char).checked_sub(PLANE).map(|place| place / size);
            if let Some(place) = block.and_then(|block| taken.get_mut(block as usize)) {
                *place = true;
            }
        }
        let block = taken.iter().position(|is_taken| !is_taken).ok_or(ChatError::StandIns)?;
        Ok(StandIns { characters, base: PLANE + block as u32 * size })
    }

    /// A content as the template sees it.
    pub(super) fn cover(&self, text: &str, stand_ins: &StandIns) -> String {
        let mut covered = String::with_capacity(text.len());
        let mut rest = text;
        // Templates may cut white space off.
        let mut is_head = true;
        while let Some(char) = rest.chars().next() {
            let is_covered = match self.begins(char) {
                true => true,
                false => is_head && !self.heads.iter().any(|head| rest.starts_with(&**head)),
            };
            let stand_in = stand_ins.of(char).filter(|_| is_covered);
            let bytes = match (stand_in, self.begins(char).then(|| self.exempt_at(rest)).flatten()) {
                (_, Some(exempt)) => {
                    covered.push_str(exempt);
                    exempt.len()
                }
                (stand_in, None) => {
                    covered.push(stand_in.unwrap_or(char));
                    char.len_utf8()
                }
            };
            is_head &= char.is_whitespace();
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
        let index = self.characters.binary_search(&char).ok()?;
        char::from_u32(self.base + index as u32)
    }

    fn back(&self, char: char) -> char {
        let index = u32::from(char).checked_sub(self.base).map(|index| index as usize);
        index.and_then(|index| self.characters.get(index)).copied().unwrap_or(char)
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

#[cfg(test)]
mod tests;
