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
    /// `[^\r\n\p{L}\p{N}]?U*L+|[^\r\n\p{L}\p{N}]?U+L*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    /// where U is `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]` and L is `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`: the expression of Mistral's
    /// own file. (llama.cpp replaces both classes by tests of ASCII letters.)
    Tekken,
    /// `\p{N}{1,3}`
    UpToThreeNumbers,
    /// `[\r\n]`
    EachLineEnd,
    /// `\s?\p{L}+`
    SpacedLetters,
    /// `\s?\p{P}+`
    SpacedPunctuation,
    /// `[一-龥ࠀ-一가-퟿]+`
    AsianOfCoder,
    /// `[一-龥぀-ゟ゠-ヿ]+`
    AsianOfV3,
    /// A[A-Za-z]+ with A an ASCII punctuation or symbol character, or `[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|`
    /// ` ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    DeepSeekV3,
    /// `[^\n]+|[\n]+`
    Lines,
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
    pub(super) const KNOWN: &'static str = "deepseek-coder, deepseek-r1-qwen, deepseek-v3, default, \
         gpt-2, llama-bpe, llama-v3, llama3, qwen2, qwen35, smollm, tekken";

    pub(super) fn from_name(name: &str) -> Result<Splitter, TokenizerError> {
        use Pattern::{
            AsianOfCoder, AsianOfV3, DeepSeekV3, EachLineEnd, EachNumber, Gpt2, Numbers, Punctuation,
            SpacedLetters, SpacedPunctuation, Tekken, ThreeDigits, UpToThreeNumbers, Words,
        };
        let (stages, llama): (&'static [Pattern], bool) = match name {
            "default" => (&[Punctuation, Gpt2, Numbers, ThreeDigits], false),
            "gpt-2" => (&[Gpt2], false),
            "llama-bpe" | "llama-v3" | "llama3" => (&[Words { digits: 3, marks: false }], true),
            "tekken" => (&[Tekken], true),
            "deepseek-coder" => {
                (&[EachLineEnd, SpacedLetters, SpacedPunctuation, AsianOfCoder, EachNumber], false)
            }
            "deepseek-v3" => (&[UpToThreeNumbers, AsianOfV3, DeepSeekV3], false),
            "qwen2" | "deepseek-r1-qwen" => (&[Words { digits: 1, marks: false }], false),
            "qwen35" => (&[Words { digits: 1, marks: true }], false),
            "smollm" => (&[EachNumber, Gpt2], false),
            found => {
                return Err(TokenizerError::PreTokenizer { found: found.into(), known: Splitter::KNOWN });
            }
        };
        Ok(Splitter { stages, whole_words_first: llama, add_bos_default: llama })
    }

    /// For vocabularies that merge across spaces: only line feeds are kept apart from the rest.
    pub(super) const LINES: Splitter =
        Splitter { stages: &[Pattern::Lines], whole_words_first: false, add_bos_default: true };

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
            Pattern::Tekken => tekken(piece),
            Pattern::UpToThreeNumbers => piece.numbers(3),
            Pattern::EachLineEnd => usize::from(matches!(piece.char(0), Some('\r' | '\n'))),
            Pattern::SpacedLetters => spaced(piece, Class::LETTER),
            Pattern::SpacedPunctuation => spaced(piece, Class::PUNCTUATION),
            Pattern::AsianOfCoder => {
                piece.run(0, |char, _| matches!(char, '\u{800}'..='\u{9FA5}' | '\u{AC00}'..='\u{D7FF}'))
            }
            Pattern::AsianOfV3 => {
                piece.run(0, |char, _| matches!(char, '\u{4E00}'..='\u{9FA5}' | '\u{3040}'..='\u{30FF}'))
            }
            Pattern::DeepSeekV3 => deepseek_v3(piece),
            Pattern::Lines => {
                let is_line_feed = piece.char(0) == Some('\n');
                piece.run(0, |char, _| (char == '\n') == is_line_feed)
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
    let numbers = piece.numbers(digits);
    if numbers > 0 {
        return numbers;
    }
    let space = usize::from(piece.char(0) == Some(' '));
    let other = piece.run(space, |_, class| !class.is(word_class.or(Class::NUMBER).or(Class::SPACE)));
    if other > 0 {
        let end = space + other;
        return end + piece.run(end, |char, _| matches!(char, '\r' | '\n'));
    }
    blanks(piece)
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`
fn blanks(piece: Piece<'_>) -> usize {
    let blank = piece.run(0, |_, class| class.is(Class::SPACE));
    let is_line_end = |index: &usize| matches!(piece.char(*index), Some('\r' | '\n'));
    match (0..blank).rev().find(is_line_end) {
        Some(last) => last + 1,
        None => spaces(piece),
    }
}

/// `\s?C+` for a class C.
fn spaced(piece: Piece<'_>, class: Class) -> usize {
    let space = usize::from(piece.class_is(0, Class::SPACE));
    let run = piece.run(space, |_, found| found.is(class));
    if run > 0 { space + run } else { 0 }
}

fn tekken(piece: Piece<'_>) -> usize {
    let may_lead = |(char, class)| !matches!(char, '\r' | '\n') && !class_is_letter_or_number(class);
    let leads: &[usize] = if piece.entry(0).is_some_and(may_lead) { &[1, 0] } else { &[0] };
    for word in [lower_word, upper_word] {
        if let Some(len) = leads.iter().find_map(|lead| word(piece, *lead)) {
            return len;
        }
    }
    let numbers = piece.numbers(1);
    if numbers > 0 {
        return numbers;
    }
    let space = usize::from(piece.char(0) == Some(' '));
    let other = piece.run(space, |_, class| !class.is(LETTER_OR_NUMBER.or(Class::SPACE)));
    if other > 0 {
        let end = space + other;
        return end + piece.run(end, |char, _| matches!(char, '\r' | '\n' | '/'));
    }
    blanks(piece)
}

/// Tekken's U: letters that are not lower case, and marks.
fn is_upper(class: Class) -> bool {
    class.is(Class::LETTER.or(Class::MARK)) && !class.is(Class::LOWER)
}

/// Tekken's L: letters that are not upper case, and marks.
fn is_lower(class: Class) -> bool {
    class.is(Class::LETTER.or(Class::MARK)) && !class.is(Class::UPPER)
}

/// `U*L+` after `lead` characters. If no L follows the longest U*, it gives back characters up to the last that is an L
/// too.
fn lower_word(piece: Piece<'_>, lead: usize) -> Option<usize> {
    let upper = lead + piece.run(lead, |_, class| is_upper(class));
    let lower = piece.run(upper, |_, class| is_lower(class));
    if lower > 0 {
        return Some(upper + lower);
    }
    let last = (lead..upper).rev().find(|index| piece.entry(*index).is_some_and(|one| is_lower(one.1)))?;
    Some(last + 1)
}

/// `U+L*` after `lead` characters where [`lower_word`] finds nothing: no L comes after U+.
fn upper_word(piece: Piece<'_>, lead: usize) -> Option<usize> {
    let upper = piece.run(lead, |_, class| is_upper(class));
    (upper > 0).then_some(lead + upper)
}

fn deepseek_v3(piece: Piece<'_>) -> usize {
    if piece.char(0).is_some_and(|char| char.is_ascii_punctuation()) {
        let letters = piece.run(1, |char, _| char.is_ascii_alphabetic());
        if letters > 0 {
            return 1 + letters;
        }
    }
    let marked = Class::LETTER.or(Class::MARK);
    let signs = Class::PUNCTUATION.or(Class::SYMBOL);
    let may_lead =
        |(char, class): (char, Class)| !matches!(char, '\r' | '\n') && !class.is(Class::LETTER.or(signs));
    if piece.entry(0).is_some_and(may_lead) {
        let led = piece.run(1, |_, class| class.is(marked));
        if led > 0 {
            return 1 + led;
        }
    }
    let word = piece.run(0, |_, class| class.is(marked));
    if word > 0 {
        return word;
    }
    let space = usize::from(piece.char(0) == Some(' '));
    let other = piece.run(space, |_, class| class.is(signs));
    if other > 0 {
        let end = space + other;
        return end + piece.run(end, |char, _| matches!(char, '\r' | '\n'));
    }
    blanks(piece)
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
    /// `\p{N}{1,most}`
    fn numbers(&self, most: usize) -> usize {
        let group = Piece { entries: &self.entries[..most.min(self.entries.len())] };
        group.run(0, |_, class| class.is(Class::NUMBER))
    }

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
    fn tekken_cuts_between_cases() {
        check("tekken", "helloWorld HTTPServer", &["hello", "World", " HTTPServer"]);
        check("tekken", "HTTP 12 don't", &["HTTP", " ", "1", "2", " don", "'t"]);
        check("tekken", "éÉcole ÉCOLE", &["é", "École", " ÉCOLE"]);
        // Letters without case, and marks, belong to both classes.
        check("tekken", "A天 天B x\u{301}Y", &["A天", " 天", "B", " x\u{301}", "Y"]);
        check("tekken", " //\n/x  \n y", &[" //\n/", "x", "  \n", " y"]);
    }

    #[test]
    fn deepseek_coder_cuts_by_class() {
        check("deepseek-coder", "a  b\n.c 12", &["a", " ", " b", "\n", ".", "c", " ", "1", "2"]);
        // The fourth stage cuts what the second has left: letters are words before.
        check("deepseek-coder", "天地 ab + 1", &["天地", " ab", " + ", "1"]);
    }

    #[test]
    fn deepseek_v3_cuts_numbers_and_asian_text_first() {
        check("deepseek-v3", "1234 x", &["123", "4", " x"]);
        check("deepseek-v3", "日本語ab か", &["日本語", "ab", " ", "か"]);
        check("deepseek-v3", "a.bc !!\n\nd", &["a", ".bc", " !!\n\n", "d"]);
        check("deepseek-v3", "x\u{301}y  z", &["x\u{301}y", " ", " z"]);
        check("deepseek-v3", "a 'tis $5", &["a", " '", "tis", " $", "5"]);
    }

    #[test]
    fn a_contraction_ends_where_it_says_though_letters_follow() {
        let text = "'said 'team 'mad 'dog 'rest 'vest 'llama 'l 'r 'x";
        let parts =
            ["'s", "aid", " '", "team", " '", "mad", " '", "dog", " '", "rest", " '", "vest", " '", "llama"];
        check("gpt-2", text, &[&parts[..], &[" '", "l", " '", "r", " '", "x"]].concat());
        for (text, second) in [
            ("'said", "aid"),
            ("'team", "eam"),
            ("'mad", "ad"),
            ("'dog", "og"),
            ("'rest", "st"),
            ("'vest", "st"),
            ("'llama", "ama"),
        ] {
            let first = &text[..text.len() - second.len()];
            check("gpt-2", text, &[first, second]);
            check("qwen2", text, &[first, second]);
            let capitals = text.to_uppercase();
            check("gpt-2", &capitals, &["'", &capitals[1..]]);
            check("qwen2", &capitals, &[&capitals[..first.len()], &capitals[first.len()..]]);
        }
        for text in ["'l", "'r", "'v", "'x", "'lr"] {
            check("qwen2", text, &[text]);
            check("gpt-2", text, &["'", &text[1..]]);
        }
    }

    #[test]
    fn neither_numbers_nor_line_ends_lead_a_word() {
        for name in ["qwen2", "qwen35", "llama-bpe", "tekken"] {
            check(name, "1a\nb\r\ra", &["1", "a", "\n", "b", "\r\r", "a"]);
        }
        // In DeepSeek's pattern a number may lead one; it is a piece of its own before.
        check("deepseek-v3", "1a\nb\r\ra", &["1", "a", "\n", "b", "\r\r", "a"]);
        check("deepseek-v3", "!\u{e9}\nb \u{ab}c", &["!", "\u{e9}", "\n", "b", " \u{ab}", "c"]);
    }

    #[test]
    fn signs_are_one_piece_whatever_is_before_them() {
        check("tekken", "!!a//\n. !!b", &["!!", "a", "//\n", ".", " !!", "b"]);
        check("tekken", "HTTP HTTP", &["HTTP", " HTTP"]);
        check("deepseek-v3", "!!a", &["!!", "a"]);
        check("deepseek-v3", "x   y", &["x", "  ", " y"]);
        // A character of no class is left over; the blank after it is a piece all the same.
        check("deepseek-v3", "\u{200d}\t!", &["\u{200d}", "\t", "!"]);
        check("deepseek-v3", "\u{200d}\u{200d}!", &["\u{200d}\u{200d}", "!"]);
    }

    #[test]
    fn the_default_cuts_at_punctuation_first() {
        check("default", "I'll +1!", &["I", "'", "ll", " ", "+", "1", "!"]);
        check("default", " $x |a`b", &[" ", "$", "x", " ", "|", "a", "`", "b"]);
        check("default", "...<=>x", &["...<=>", "x"]);
    }

    #[test]
    fn lines_and_what_is_between_them_are_pieces() {
        let mut pieces = Vec::new();
        Splitter::LINES.split("\n\na b\r\n c\n\n\n", |piece| pieces.push(piece.to_owned()));
        assert_eq!(pieces, ["\n\n", "a b\r", "\n", " c", "\n\n\n"]);
    }

    #[test]
    fn other_names_are_the_same_patterns() {
        for (name, same) in
            [("llama3", "llama-bpe"), ("llama-v3", "llama-bpe"), ("deepseek-r1-qwen", "qwen2")]
        {
            let (name, same) = (Splitter::from_name(name).unwrap(), Splitter::from_name(same).unwrap());
            assert_eq!((name.stages, name.add_bos_default), (same.stages, same.add_bos_default));
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known() {
        let error = Splitter::from_name("chatglm-bpe").unwrap_err().to_string();
        assert!(error.contains("chatglm-bpe") && error.contains("qwen2"), "{error}");
    }
}
