//! Names of registers in the sources: `S_NAME` is a scalar register, `V_NAME` a vector register (asm/README.md).
//!
//! Contract: reads the text before macros are expanded. In an instruction an `S_` name may occur in `s[...]` only and a
//! `V_` name in `v[...]` only, and what is inside begins with such a name, a number or a macro's argument. A name that
//! is set outside of macros is set once: the macro of one body does not change what another file means by it.

use super::AsmError;
use super::source::Source;
use std::collections::BTreeMap;

/// Checks a kernel's source with its includes in place.
pub fn check(source: &Source) -> Result<(), AsmError> {
    let mut set = BTreeMap::new();
    let mut depth = 0u32;
    for (place, text) in source.numbered_lines() {
        let code = text.split("//").next().unwrap_or("").trim();
        let failed = |reason: String| source.error(format!("{place}: {reason}"));
        match code.split_whitespace().next() {
            Some(".macro") => depth += 1,
            Some(".endm") => depth = depth.saturating_sub(1),
            Some(".set") => {
                let name = code[".set".len()..].split(',').next().unwrap_or("").trim();
                set_once(&mut set, name, depth == 0).map_err(failed)?;
            }
            _ => {}
        }
        instruction(code).map_err(failed)?;
    }
    Ok(())
}

/// Notes a `.set`; `true` in the table is a name that is set outside of macros.
fn set_once<'a>(set: &mut BTreeMap<&'a str, bool>, name: &'a str, is_global: bool) -> Result<(), String> {
    match set.insert(name, is_global) {
        Some(before) if before || is_global => Err(format!("{name} is set again, and every file means it")),
        _ => Ok(()),
    }
}

/// Checks one line without its comment; lines that are not instructions pass.
fn instruction(code: &str) -> Result<(), String> {
    if !code.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Ok(());
    }
    let mut rest = code;
    while let Some((before, after)) = rest.split_once('[') {
        outside(before)?;
        let (inner, behind) = after.split_once(']').ok_or("a bracket is not closed")?;
        let kind = before.chars().next_back();
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
        let starts_word = !before.chars().rev().nth(1).is_some_and(is_word);
        match kind {
            Some('s') if starts_word => inside(inner, "S_", "V_")?,
            Some('v') if starts_word => inside(inner, "V_", "S_")?,
            _ => outside(inner)?,
        }
        rest = behind;
    }
    outside(rest)
}

/// Checks that text outside a register's brackets names no register.
fn outside(text: &str) -> Result<(), String> {
    match words(text).find(|word| word.starts_with("S_") || word.starts_with("V_")) {
        Some(word) => Err(format!("{word} stands outside of s[...] and v[...]")),
        None => Ok(()),
    }
}

/// Checks the text inside a register's brackets: first and perhaps last register.
fn inside(text: &str, right: &str, wrong: &str) -> Result<(), String> {
    if let Some(word) = words(text).find(|word| word.starts_with(wrong)) {
        return Err(format!("{word} is of the other kind"));
    }
    for register in text.split(':').map(str::trim) {
        let is_name = register.starts_with(|first: char| first.is_ascii_alphabetic());
        if is_name && !register.starts_with(right) {
            return Err(format!("a register's name starts with {right}, not {register}"));
        }
    }
    Ok(())
}

/// The symbols of an expression, without arguments of macros (`\name`).
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '\\');
    text.split(move |letter: char| !is_part(letter)).filter(|word| !word.starts_with('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_brackets_of_their_kind() {
        for good in [
            "v_add_f32_e32 v[V_SUM], s[S_SCALE], v[V_SUM+1]",
            "global_load_b64 v[\\v:\\v+1], v5, s[S_KEY:S_KEY+1] offset:4*BLOCK*\\b",
            "v_fma_mix_f32 v[V_SUMS+2*\\b], v[\\w+PACKED], v[V_SUMS], 0 op_sel:[1,0,0]",
            "v_max_num_f32_e32 v[\\v], -|v[V_SUM]|, s4",
            ".set S_SUM, V_SUM",
            "EXP V_SUM, 4, 5",
            "v_mov_b32_e32 v[V_SUM],s[S_SCALE]",
        ] {
            assert_eq!(instruction(good), Ok(()), "{good}");
        }
        for bad in [
            "s_mov_b32 s4, S_SCALE",
            "s_mov_b32 s[V_SUM], 0",
            "v_mov_b32_e32 v[S_SCALE], 0",
            "v_mov_b32_e32 v[\\b+S_SCALE], 0",
            "v_mov_b32_e32 v[SUM], 0",
            "s_load_b64 s[S_KEY:KEY_END], s[4:5], 0",
            "ds_load_b32 v1, v2 offset:V_SUM",
            "s_mov_b32 s[S_SCALE, 0",
            "s_mov_b32 s4, offsets[S_SCALE]",
            "s_mov_b32 s4, x_s[S_SCALE]",
            "v_mov_b32_e32 v1, bv[V_SUM]",
            "v_mov_b32_e32 v1, op:v[V_SUM]",
        ] {
            assert!(instruction(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_of_every_file_is_set_once() {
        let all = |names: &[(&'static str, bool)]| {
            let mut set = BTreeMap::new();
            names.iter().try_for_each(|(name, is_global)| set_once(&mut set, name, *is_global))
        };
        assert!(all(&[("S_ROW", true), ("S_KEY", false), ("S_KEY", false)]).is_ok());
        assert!(all(&[("S_ROW", true), ("S_ROW", false)]).is_err());
        assert!(all(&[("S_KEY", false), ("S_KEY", true)]).is_err());
        assert!(all(&[("S_ROW", true), ("S_ROW", true)]).is_err());
    }

    #[test]
    fn what_a_macro_sets_is_its_own_until_the_macro_ends() {
        let first = ".set S_ROW, 4 // Not .set S_KEY\n.macro A\n\t.set S_KEY, 5\n.macro B\n.endm\n\
                     .set S_KEY, 6\n.endm\n.macro C\n.set S_KEY, 7\n.endm\n";
        let said = |last: &str| {
            check(&Source::made_up(&format!("{first}{last}"))).map_err(|error| error.to_string())
        };
        assert_eq!(said(".set V_SUM, 1\n\ts_mov_b32 s[S_ROW], 0 // S_ROW\n"), Ok(()));
        let at = |place: &str, reason: &str| {
            Err(format!("asm/gfx1201/made_up.s: asm/gfx1201/made_up.s:{place}: {reason}"))
        };
        let again = "is set again, and every file means it";
        assert_eq!(said(".set S_ROW, 4\n"), at("11", &format!("S_ROW {again}")));
        assert_eq!(said(".set V_SUM, 1\n.set V_SUM, 2\n"), at("12", &format!("V_SUM {again}")));
        assert_eq!(said(".macro D\n\t.set S_ROW, 4\n.endm\n"), at("12", &format!("S_ROW {again}")));
        assert_eq!(said("\ts_mov_b32 s4, S_ROW\n"), at("11", "S_ROW stands outside of s[...] and v[...]"));
    }
}
