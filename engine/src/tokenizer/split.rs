//! Pre-tokenizers: how text is cut into words before merging.
//!
//! Each is published as a regular expression with look-ahead; here each is a hand-written matcher for exactly that
//! expression, written beside it, so that no backtracking engine runs over untrusted text. Contract: pieces cover the
//! text without gap or overlap, in order; linear time in the text for every pattern; eight bytes per character of
//! working memory.
//!
//! A pre-tokenizer is a list of stages; each stage cuts every piece of the previous stage and sees nothing outside the
//! piece. Text between two matches of a pattern is a piece of its own.

use super::TokenizerError;
use super::unicode::Class;
use std::ops::Range;

/// One stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    Gpt2,
    /// `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?W+|\p{N}{1,digits}|`
    /// ` ?[^\sW\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+` where W is `\p{L}`, or `[\p{L}\p{M}]` with `marks`.
    Words { digits: usize, marks: bool },
    /// `\p{N}`
    EachNumber,
    /// `\p{N}+`
    Numbers,
    /// `[0-9][0-9][0-9]`
    ThreeDigits,
    /// `[\p{P}\$\+<=>\^~\|]+`
    Punctuation,
}

/// A pre-tokenizer, by the name that GGUF gives it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Splitter {
    stages: &'static [Pattern],
    /// A word that is a token as a whole is that token, whatever the merges say.
    pub(super) whole_words_first: bool,
    /// What `tokenizer.ggml.add_bos_token` means if it is absent.
    pub(super) add_bos_default: bool,
}

/// The text as characters with their classes and byte positions.
struct Characters<'a> {
    text: &'a str,
    entries: Vec<(char, Class, usize)>,
}

/// Part of the characters, in which one match is searched for.
#[derive(Clone, Copy)]
struct Piece<'a> {
    entries: &'a [(char, Class, usize)],
}

impl Splitter {
    /// Names that [`Splitter::from_name`] knows.
    pub(super) const KNOWN: &'static str = "default, gpt-2, llama-bpe, qwen2, qwen35, smollm";

    pub(super) fn from_name(name: &str) -> Result<Splitter, TokenizerError> {
        use Pattern::{EachNumber, Gpt2, Numbers, Punctuation, ThreeDigits, Words};
        let (stages, llama): (&'static [Pattern], bool) = match name {
            "default" => (&[Punctuation, Gpt2, Numbers, ThreeDigits], false),
            "gpt-2" => (&[Gpt2], false),
            "llama-bpe" => (&[Words { digits: 3, marks: false }], true),
            "qwen2" => (&[Words { digits: 1, marks: false }], false),
            "qwen35" => (&[Words { digits: 1, marks: true }], false),
            "smollm" => (&[EachNumber, Gpt2], false),
            found => {
                return Err(TokenizerError::PreTokenizer { found: found.into(), known: Splitter::KNOWN });
            }
        };
        Ok(Splitter { stages, whole_words_first: llama, add_bos_default: llama })
    }

    /// Calls `word` with every piece of `text` in order.
    pub(super) fn split(&self, text: &str, mut word: impl FnMut(&str)) {
        let entries: Vec<_> = text.char_indices().map(|(at, char)| (char, Class::of(char), at)).collect();
        let characters = Characters { text, entries };
        self.split_stage(&characters, 0..characters.entries.len(), 0, &mut word);
    }

    /// Cuts `range` by stage `number`, and the results by the following stages.
    fn split_stage(
        &self,
        characters: &Characters<'_>,
        range: Range<usize>,
        number: usize,
        word: &mut impl FnMut(&str),
    ) {
        let Some(pattern) = self.stages.get(number) else {
            word(characters.slice(range));
            return;
        };
        let mut unmatched = range.start;
        let mut at = range.start;
        while at < range.end {
            let piece = Piece { entries: &characters.entries[at..range.end] };
            let len = pattern.match_len(piece);
            if len == 0 {
                at += 1;
                continue;
            }
            if unmatched < at {
                self.split_stage(characters, unmatched..at, number + 1, word);
            }
            self.split_stage(characters, at..at + len, number + 1, word);
            at += len;
            unmatched = at;
        }
        if unmatched < range.end {
            self.split_stage(characters, unmatched..range.end, number + 1, word);
        }
    }
}

impl Characters<'_> {
    fn slice(&self, range: Range<usize>) -> &str {
        let begin = self.entries.get(range.start).map_or(self.text.len(), |entry| entry.2);
        let end = self.entries.get(range.end).map_or(self.text.len(), |entry| entry.2);
        &self.text[begin..end]
    }
}

const LETTER_OR_NUMBER: Class = Class::LETTER.or(Class::NUMBER);

impl Pattern {
    /// Characters that the pattern matches at the very start of `piece`; 0 if it does not match.
    fn match_len(self, piece: Piece<'_>) -> usize {
        match self {
            Pattern::Gpt2 => gpt2(piece),
            Pattern::Words { digits, marks } => words(piece, digits, marks),
            Pattern::EachNumber => usize::from(piece.class_is(0, Class::NUMBER)),
            Pattern::Numbers => piece.run(0, |_, class| class.is(Class::NUMBER)),
            Pattern::ThreeDigits => {
                let three = (0..3).all(|index| piece.char(index).is_some_and(|char| char.is_ascii_digit()));
                if three { 3 } else { 0 }
            }
            Pattern::Punctuation => {
                piece.run(0, |char, class| class.is(Class::PUNCTUATION) || "$+<=>^~|".contains(char))
            }
        }
    }
}

fn gpt2(piece: Piece<'_>) -> usize {
    let contraction = contraction(piece, |char| char);
    if contraction > 0 {
        return contraction;
    }
    let space = usize::from(piece.char(0) == Some(' '));
    for class in [Class::LETTER, Class::NUMBER] {
        let run = piece.run(space, |_, found| found.is(class));
        if run > 0 {
            return space + run;
        }
    }
    let run = piece.run(space, |_, class| !class.is(LETTER_OR_NUMBER.or(Class::SPACE)));
    if run > 0 { space + run } else { spaces(piece) }
}

fn words(piece: Piece<'_>, digits: usize, marks: bool) -> usize {
    let contraction = contraction(piece, |char| char.to_ascii_lowercase());
    if contraction > 0 {
        return contraction;
    }
    let word_class = if marks { Class::LETTER.or(Class::MARK) } else { Class::LETTER };
    let word = |skip: usize| piece.run(skip, |_, class| class.is(word_class));
    let may_lead = |(char, class)| !matches!(char, '\r' | '\n') && !class_is_letter_or_number(class);
    let led = if piece.entry(0).is_some_and(may_lead) { word(1) } else { 0 };
    if led > 0 {
        return led + 1;
    }
    if word(0) > 0 {
        return word(0);
    }
    if piece.class_is(0, Class::NUMBER) {
        let group = Piece { entries: &piece.entries[..digits.min(piece.entries.len())] };
        return group.run(0, |_, class| class.is(Class::NUMBER));
    }
    let space = usize::from(piece.char(0) == Some(' '));
    let other = piece.run(space, |_, class| !class.is(word_class.or(Class::NUMBER).or(Class::SPACE)));
    if other > 0 {
        let end = space + other;
        return end + piece.run(end, |char, _| matches!(char, '\r' | '\n'));
    }
    let blank = piece.run(0, |_, class| class.is(Class::SPACE));
    let is_line_end = |index: &usize| matches!(piece.char(*index), Some('\r' | '\n'));
    match (0..blank).rev().find(is_line_end) {
        Some(last) => last + 1,
        None => spaces(piece),
    }
}

fn class_is_letter_or_number(class: Class) -> bool {
    class.is(LETTER_OR_NUMBER)
}

/// `'s|'t|'re|'ve|'m|'ll|'d` after `fold` on each letter.
fn contraction(piece: Piece<'_>, fold: fn(char) -> char) -> usize {
    if piece.char(0) != Some('\'') {
        return 0;
    }
    let second = piece.char(1).map(fold);
    let third = piece.char(2).map(fold);
    match (second, third) {
        (Some('s' | 't' | 'm' | 'd'), _) => 2,
        (Some('r' | 'v'), Some('e')) | (Some('l'), Some('l')) => 3,
        _ => 0,
    }
}

/// `\s+(?!\S)|\s+`: blanks up to the piece's end, else all but the last, else the only one.
fn spaces(piece: Piece<'_>) -> usize {
    let run = piece.run(0, |_, class| class.is(Class::SPACE));
    if run > 1 && run < piece.entries.len() { run - 1 } else { run }
}

impl Piece<'_> {
    fn entry(&self, index: usize) -> Option<(char, Class)> {
        self.entries.get(index).map(|entry| (entry.0, entry.1))
    }

    fn char(&self, index: usize) -> Option<char> {
        self.entries.get(index).map(|entry| entry.0)
    }

    fn class_is(&self, index: usize, class: Class) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.1.is(class))
    }

    /// Length of the run from `start` on in which `accept` holds.
    fn run(&self, start: usize, accept: impl Fn(char, Class) -> bool) -> usize {
        let rest = self.entries.get(start..).unwrap_or(&[]);
        rest.iter().take_while(|entry| accept(entry.0, entry.1)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: &[&str]) {
        let mut words = Vec::new();
        Splitter::from_name(name).unwrap().split(text, |word| words.push(word.to_owned()));
        assert_eq!(words, expected, "{name} on {text:?}");
    }

    // The expected pieces below were derived by hand from the regular expressions.

    #[test]
    fn contractions_fold_case_in_the_newer_patterns_only() {
        check("gpt-2", "I'll 'LL", &["I", "'ll", " '", "LL"]);
        check("qwen2", "I'll 'LL x'Re", &["I", "'ll", " '", "LL", " x", "'Re"]);
        check("qwen2", "it'S'D", &["it", "'S", "'D"]);
    }

    #[test]
    fn blanks_leave_one_for_the_next_word() {
        check("gpt-2", "a   b", &["a", "  ", " b"]);
        check("gpt-2", "a\t\tb ", &["a", "\t", "\t", "b", " "]);
        check("gpt-2", "a\n\n b", &["a", "\n\n", " b"]);
        check("qwen2", "a \n\n  b", &["a", " \n\n", " ", " b"]);
        check("qwen2", "\ta", &["\ta"]);
        check("qwen2", "a  ", &["a", "  "]);
        check("qwen2", "a  \u{3000}1", &["a", "  ", "\u{3000}", "1"]);
    }

    #[test]
    fn numbers_group_as_each_pattern_says() {
        check("gpt-2", " 12345", &[" 12345"]);
        check("llama-bpe", "12345 6", &["123", "45", " ", "6"]);
        check("qwen2", "123", &["1", "2", "3"]);
        check("smollm", "a  12", &["a", "  ", "1", "2"]);
        check("default", "x 12345.", &["x", " ", "123", "45", "."]);
    }

    #[test]
    fn other_signs_take_a_leading_space_and_trailing_line_ends() {
        check("qwen2", " ...\r\n\nx", &[" ...\r\n\n", "x"]);
        check("qwen2", "(a) $b", &["(a", ")", " $", "b"]);
        check("gpt-2", "(a) $b\n", &["(", "a", ")", " $", "b", "\n"]);
    }

    #[test]
    fn marks_belong_to_words_where_the_pattern_says_so() {
        check("qwen2", "e\u{301}t", &["e", "\u{301}t"]);
        check("qwen35", "e\u{301}t \u{301}", &["e\u{301}t", " \u{301}"]);
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known() {
        let error = Splitter::from_name("chatglm-bpe").unwrap_err().to_string();
        assert!(error.contains("chatglm-bpe") && error.contains("qwen2"), "{error}");
    }
}
