//! Sizes and counts as people read them.
//!
//! Contract: pure. Sizes are binary (MiB), counts decimal (M), both with two decimals, as llama-bench prints them.

/// A number of bytes: `4.34 MiB`, `31.86 GiB`.
pub fn bytes(count: u64) -> String {
    let count = count as f64;
    let kibi = 1024.0;
    if count < kibi {
        format!("{count} B")
    } else if count < kibi * kibi {
        format!("{:.2} KiB", count / kibi)
    } else if count < kibi * kibi * kibi {
        format!("{:.2} MiB", count / (kibi * kibi))
    } else {
        format!("{:.2} GiB", count / (kibi * kibi * kibi))
    }
}

/// The number of bytes that a text names: a number with `KiB`, `MiB` or `GiB`, or `K`, `M` or `G` for the same.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A number of parameters: `260.03 K`, `7.35 M`, `1.24 B`.
pub fn count(count: u64) -> String {
    let count = count as f64;
    if count < 1e6 {
        format!("{:.2} K", count / 1e3)
    } else if count < 1e9 {
        format!("{:.2} M", count / 1e6)
    } else {
        format!("{:.2} B", count / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        assert_eq!(
            ["16GiB", "16 GiB", "512M", "3K"].map(parse_bytes),
            [Some(16 << 30), Some(16 << 30), Some(512 << 20), Some(3072)]
        );
        for text in ["", "7", "GiB", "-1", "1.5G", "16GB", "99999999999999999999", "20000000000G"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn each_unit_begins_where_the_last_one_ends() {
        assert_eq!(
            [1023, 1024, 1 << 20, 1 << 30, 34_208_743_424].map(bytes),
            ["1023 B", "1.00 KiB", "1.00 MiB", "1.00 GiB", "31.86 GiB"]
        );
        assert_eq!([1_000_000, 1_000_000_000].map(count), ["1.00 M", "1.00 B"]);
        assert_eq!([260_032, 7_345_408, 1_235_814_400].map(count), ["260.03 K", "7.35 M", "1.24 B"]);
    }
}
