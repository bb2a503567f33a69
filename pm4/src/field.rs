//! Bit fields by name: the position of a field, reading it, and inserting a value without losing bits.
//!
//! Contract: [`Field::put`] refuses a value that does not fit; nothing masks silently. All of it is `const`.

use core::fmt;

/// A run of bits in one dword of a packet body or register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The manual's name.
    pub name: &'static str,
    /// Index of the dword in the packet's body; 0 for a register.
    pub dword: u8,
    /// Highest bit, inclusive.
    pub high: u8,
    /// Lowest bit.
    pub low: u8,
}

/// A value that does not fit its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldOverflow {
    /// The field.
    pub field: Field,
    /// The value that was to go into it.
    pub value: u32,
}

impl Field {
    /// The field `[high:low]` of body dword `dword`.
    pub const fn new(name: &'static str, dword: u8, high: u8, low: u8) -> Field {
        assert!(high < 32 && low <= high);
        Field { name, dword, high, low }
    }

    /// The largest value that fits.
    pub const fn max(&self) -> u32 {
        u32::MAX >> (31 - (self.high - self.low))
    }

    /// The field's bits, in position.
    pub const fn mask(&self) -> u32 {
        self.max() << self.low
    }

    /// The field's value in `word`.
    #[inline(always)]
    pub const fn get(&self, word: u32) -> u32 {
        (word >> self.low) & self.max()
    }

    /// `value` shifted into the field's position, or an error if it does not fit.
    #[inline(always)]
    pub const fn put(&self, value: u32) -> Result<u32, FieldOverflow> {
        if value > self.max() {
            return Err(FieldOverflow { field: *self, value });
        }
        Ok(value << self.low)
    }

    /// The one-bit field, set or clear, in position.
    #[inline(always)]
    pub const fn flag(&self, set: bool) -> u32 {
        assert!(self.high == self.low);
        (set as u32) << self.low
    }
}

impl fmt::Display for FieldOverflow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Field { name, high, low, .. } = self.field;
        write!(formatter, "value {:#x} does not fit field {name} [{high}:{low}]", self.value)
    }
}

impl core::error::Error for FieldOverflow {}

/// For each of the first `N` body dwords, the bits that belong to no field of `fields`.
pub(crate) const fn reserved_masks<const N: usize>(fields: &[Field]) -> [u32; N] {
    let mut reserved = [u32::MAX; N];
    let mut at = 0;
    while at < fields.len() {
        let mask = fields[at].mask();
        let dword = fields[at].dword as usize;
        assert!(reserved[dword] & mask == mask, "two fields overlap");
        reserved[dword] &= !mask;
        at += 1;
    }
    reserved
}

/// Writes ` NAME=0x..` for every field that is not zero, then the bits that belong to no field.
pub(crate) fn print_fields(
    formatter: &mut fmt::Formatter<'_>,
    fields: &[Field],
    reserved: &[u32],
    body: &[u32],
) -> fmt::Result {
    for field in fields {
        let Some(word) = body.get(usize::from(field.dword)) else { continue };
        let value = field.get(*word);
        if value != 0 && field.high == field.low {
            write!(formatter, " {}", field.name)?;
        } else if value != 0 {
            write!(formatter, " {}={value:#x}", field.name)?;
        }
    }
    for (dword, (mask, word)) in reserved.iter().zip(body).enumerate() {
        if mask & word != 0 {
            write!(formatter, " reserved[{dword}]={:#x}", mask & word)?;
        }
    }
    Ok(())
}

/// Declares fields as `NAME = dword [high : low];` and `ALL`, the list of them.
macro_rules! fields {
    ($($(#[$meta:meta])* $name:ident = $dword:literal [$high:literal : $low:literal];)*) => {
        $($(#[$meta])* pub const $name: $crate::Field = $crate::Field::new(stringify!($name), $dword, $high, $low);)*
        /// Every field, in ascending order of place.
        pub const ALL: &[$crate::Field] = &[$($name),*];
    };
}

/// Declares a flags type from one-bit fields: each flag has the field's position and description.
macro_rules! flags_of_fields {
    ($(#[$meta:meta])* $type:ident of $fields:ident { $($name:ident)* }) => {
        bitflags::bitflags! {
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct $type: u32 {
                $(
                    #[doc = concat!("[`", stringify!($fields), "::", stringify!($name), "`].")]
                    const $name = $fields::$name.flag(true);
                )*
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_takes_its_largest_value_and_refuses_the_next() {
        let field = Field::new("F", 0, 12, 4);
        assert_eq!(field.mask(), 0x1ff0);
        assert_eq!(field.put(0x1ff), Ok(0x1ff0));
        assert_eq!(field.put(0x200), Err(FieldOverflow { field, value: 0x200 }));
        assert_eq!(field.get(0xffff_e56f), 0x56);
        assert_eq!(Field::new("W", 0, 31, 0).put(u32::MAX), Ok(u32::MAX));
    }

    /// Every field that a dword can have, and every single bit of the dword.
    #[test]
    fn a_field_has_its_bits_and_no_others() {
        for (high, low) in (0..32u8).flat_map(|high| (0..=high).map(move |low| (high, low))) {
            let field = Field::new("F", 0, high, low);
            for bit in 0..32u8 {
                let inside = (low..=high).contains(&bit);
                assert_eq!(field.get(1 << bit) != 0, inside, "bit {bit} of [{high}:{low}]");
                assert_eq!(field.mask() >> bit & 1, u32::from(inside), "bit {bit} of [{high}:{low}]");
            }
            assert_eq!((field.get(!field.mask()), field.get(u32::MAX)), (0, field.max()));
        }
    }

    #[test]
    fn an_overflow_says_the_value_and_the_field() {
        let overflow = Field::new("FIELD", 0, 12, 4).put(0x200).expect_err("one too many");
        let said = overflow.to_string();
        assert!(["0x200", "FIELD", "[12:4]"].iter().all(|part| said.contains(part)), "{said}");
        assert_eq!(crate::EmitError::from(overflow).to_string(), said);
    }

    #[test]
    #[should_panic(expected = "overlap")]
    fn overlapping_fields_are_our_mistake() {
        let _: [u32; 1] = reserved_masks(&[Field::new("A", 0, 3, 0), Field::new("B", 0, 7, 3)]);
    }
}
