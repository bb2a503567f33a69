//! How a shared structure or a shared list of numbers reaches the assembler: names, offsets, values.
//!
//! Contract: the macros here are the only way in which this crate defines what kernels read. A structure that is made
//! by [`layout!`] has no padding and a [`Layout`]; an enumeration that is made by [`numbers!`] has its [`Numbers`]. The
//! assembler's include file is generated from these.

/// One structure that host and kernels share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The type's name.
    pub name: &'static str,
    /// Total size in bytes.
    pub bytes: usize,
    /// Field names with byte offset and size in bytes.
    pub fields: &'static [(&'static str, usize, usize)],
}

/// The numbers of one enumeration that host and kernels share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Prefix of the assembler's names.
    pub prefix: &'static str,
    /// Names of the variants with their numbers.
    pub values: &'static [(&'static str, u32)],
}

/// A structure of little-endian fields, with its [`Layout`]. Padding is a compile error, by `IntoBytes`.
macro_rules! layout {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $ty,)*
        }

        impl $name {
            /// Field names with byte offset and size, for the assembler's include file.
            pub const LAYOUT: $crate::Layout = $crate::Layout {
                name: stringify!($name),
                bytes: size_of::<$name>(),
                fields: &[$((stringify!($field), core::mem::offset_of!($name, $field), size_of::<$ty>())),*],
            };
        }

        impl Default for $name {
            fn default() -> $name {
                zerocopy::FromZeros::new_zeroed()
            }
        }
    };
}

/// An enumeration whose numbers kernels know, with its [`Numbers`].
macro_rules! numbers {
    ($(#[$meta:meta])* $name:ident as $prefix:literal {
        $($(#[$variant_meta:meta])* $variant:ident = $number:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$variant_meta])* $variant = $number,)*
        }

        impl $name {
            /// Names and numbers, for the assembler's include file.
            pub const NUMBERS: $crate::Numbers =
                $crate::Numbers { prefix: $prefix, values: &[$((stringify!($variant), $number)),*] };

            /// The variant that has this number.
            pub const fn from_number(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {layout, numbers};

/// A layout in the form that the tests compare: a line with name and bytes, then a line for each field with its offset.
#[cfg(test)]
pub(crate) fn written(layout: &Layout) -> std::string::String {
    let field = |(name, offset, _): &(&str, usize, usize)| std::format!("{offset:4} {name}\n");
    let fields: std::string::String = layout.fields.iter().map(field).collect();
    std::format!("{} {}\n{fields}", layout.name, layout.bytes)
}
