//! Unicode general categories, as far as pre-tokenizers need them.
//!
//! Contract: the tables are `regex-syntax`'s, unpacked once per process on first use (a few kilobytes). A lookup is
//! a table access for ASCII and two binary searches otherwise; it never allocates.

use std::sync::LazyLock;

/// What a character is to a pre-tokenizer. Classes exclude one another except for `SPACE`, which stands alone anyway.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Class(u8);

impl Class {
    /// `\p{L}`
    pub(super) const LETTER: Class = Class(1);
    /// `\p{N}`
    pub(super) const NUMBER: Class = Class(2);
    /// `\s`: the property `White_Space`
    pub(super) const SPACE: Class = Class(4);
    /// `\p{M}`
    pub(super) const MARK: Class = Class(8);
    /// `\p{P}`
    pub(super) const PUNCTUATION: Class = Class(16);
    /// `[\p{Lu}\p{Lt}]`; also a letter
    pub(super) const UPPER: Class = Class(32);
    /// `\p{Ll}`; also a letter
    pub(super) const LOWER: Class = Class(64);
    /// `\p{S}`
    pub(super) const SYMBOL: Class = Class(128);

    /// The class of `character`; no bit is set if it is none of the above.
    pub(super) fn of(character: char) -> Class {
        if character.is_ascii() { TABLES.ascii[character as usize] } else { TABLES.find(character) }
    }

    /// True if this class has a bit of `others`.
    pub(super) const fn is(self, others: Class) -> bool {
        self.0 & others.0 != 0
    }

    /// Either of two.
    pub(super) const fn or(self, other: Class) -> Class {
        Class(self.0 | other.0)
    }
}

/// Sorted, disjoint ranges with their classes.
struct Tables {
    ranges: Vec<(char, char, Class)>,
    ascii: [Class; 128],
}

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);

impl Tables {
    fn new() -> Tables {
        let categories = [
            (r"[\p{Lu}\p{Lt}]", Class::LETTER.or(Class::UPPER)),
            (r"\p{Ll}", Class::LETTER.or(Class::LOWER)),
            (r"[\p{Lm}\p{Lo}]", Class::LETTER),
            (r"\p{N}", Class::NUMBER),
            (r"\p{M}", Class::MARK),
            (r"\p{P}", Class::PUNCTUATION),
            (r"\p{S}", Class::SYMBOL),
        ];
        let mut ranges = Vec::new();
        for (pattern, class) in categories {
            let hir =
                regex_syntax::parse(pattern).expect("the pattern is constant and names a Unicode category");
            if let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(set)) = hir.kind() {
                ranges.extend(set.iter().map(|range| (range.start(), range.end(), class)));
            }
        }
        ranges.sort_by_key(|range| range.0);
        let mut tables = Tables { ranges, ascii: [Class(0); 128] };
        for byte in 0..128u8 {
            tables.ascii[usize::from(byte)] = tables.find(char::from(byte));
        }
        tables
    }

    fn find(&self, character: char) -> Class {
        if character.is_whitespace() {
            return Class::SPACE;
        }
        let after = self.ranges.partition_point(|range| range.0 <= character);
        match after.checked_sub(1).map(|index| self.ranges[index]) {
            Some((_, end, class)) if character <= end => class,
            _ => Class(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_of_two_classes_has_the_bits_of_both() {
        let letter = Class::LETTER.or(Class::UPPER);
        assert!(letter.is(Class::LETTER) && letter.is(Class::UPPER) && !letter.is(Class::LOWER));
        assert!(letter.or(Class::LETTER) == letter && Class::LETTER.or(letter) == letter);
    }

    #[test]
    fn categories_are_those_of_the_standard() {
        // Code points and categories as UnicodeData.txt lists them.
        let cases = [
            ('a', Class::LETTER.or(Class::LOWER)),
            ('Z', Class::LETTER.or(Class::UPPER)),
            ('ǅ', Class::LETTER.or(Class::UPPER)),
            ('ʰ', Class::LETTER),
            ('ª', Class::LETTER),
            ('Ж', Class::LETTER.or(Class::UPPER)),
            ('天', Class::LETTER),
            ('\u{1e900}', Class::LETTER.or(Class::UPPER)),
            ('0', Class::NUMBER),
            ('½', Class::NUMBER),
            ('Ⅷ', Class::NUMBER),
            ('٣', Class::NUMBER),
            ('\u{301}', Class::MARK),
            ('\u{17b6}', Class::MARK),
            ('!', Class::PUNCTUATION),
            ('_', Class::PUNCTUATION),
            ('～', Class::SYMBOL),
            ('$', Class::SYMBOL),
            ('+', Class::SYMBOL),
            ('`', Class::SYMBOL),
            ('🦙', Class::SYMBOL),
            ('\u{200d}', Class(0)),
            ('\0', Class(0)),
            (' ', Class::SPACE),
            ('\n', Class::SPACE),
            ('\u{a0}', Class::SPACE),
            ('\u{3000}', Class::SPACE),
            ('\u{200b}', Class(0)),
        ];
        for (character, class) in cases {
            assert!(Class::of(character) == class, "{character:?} has class bits {}", Class::of(character).0);
        }
    }
}
