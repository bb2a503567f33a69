//! Each step of the shield by hand, for the control tokens `<b>` and `<|a|>`.

use super::*;

fn texts(texts: &[&str]) -> Vec<Box<str>> {
    texts.iter().map(|text| (*text).into()).collect()
}

fn shield() -> Shield {
    Shield {
        beginnings: vec!['<'],
        inner: vec!['>', '|'],
        controls: texts(&["<b>", "<|a|>"]),
        exempt: texts(&["</t>", "</t></u>"]),
        exempt_bytes: vec![8, 4],
        heads: texts(&["|x"]),
    }
}

fn stand_ins(texts: &[&str]) -> Result<StandIns, ChatError> {
    shield().stand_ins(texts.iter().copied())
}

#[test]
fn a_text_stays_if_no_control_token_begins_in_it_and_leads_if_it_continues_none() {
    let shield = shield();
    for (text, may_stay) in [
        ("</t>", true),
        ("<|b", true),
        ("<éx", true),
        ("<", false),
        ("<b", false),
        ("<|", false),
        ("<|a|>", false),
        ("<|a|>x", false),
        ("<éx<b>", false),
        ("</t><", false),
    ] {
        assert_eq!(shield.may_stay(text), may_stay, "{text}");
    }
    for (text, may_lead) in [
        ("|x", true),
        (">>", false),
        ("|a", false),
        ("|>z", false),
        (">", false),
        ("a|", false),
        ("<x", false),
        ("", false),
        ("||", true),
    ] {
        assert_eq!(shield.may_lead(text), may_lead, "{text}");
    }
}

#[test]
fn the_longest_text_that_stays_is_found() {
    let shield = shield();
    assert_eq!(shield.exempt_at("</t></u>x"), Some("</t></u>"));
    assert_eq!(shield.exempt_at("</t></u"), Some("</t>"));
    assert_eq!(shield.exempt_at("</t>"), Some("</t>"));
    assert_eq!(shield.exempt_at("</t"), None);
    // Bytes 4 and 8 are within characters.
    assert_eq!(shield.exempt_at("<éééé"), None);
}

/// Three signs take blocks of three characters; the first block of which no text has a character is used.
#[test]
fn stand_ins_are_of_the_first_block_that_is_free() {
    let base = |texts: &[&str]| stand_ins(texts).unwrap().base;
    assert_eq!(base(&[]), 0x10_0000);
    assert_eq!(base(&["a\u{fffff}\u{100003}"]), 0x10_0000);
    assert_eq!(base(&["a", "\u{100002}"]), 0x10_0003);
    assert_eq!(base(&["\u{100003}\u{100000}"]), 0x10_0006);
    assert_eq!(base(&["\u{100005}\u{100000}", "\u{10000b}\u{100008}"]), 0x10_000C);
    let every_block: String =
        (0..21_844).map(|block| char::from_u32(0x10_0000 + block * 3).unwrap()).collect();
    assert_eq!(stand_ins(&[&every_block]), Err(ChatError::StandIns));
    assert!(stand_ins(&[every_block.strip_suffix('\u{10fff9}').unwrap()]).is_ok());
}

#[test]
fn beginnings_and_the_first_sign_are_covered_and_come_back() {
    let (shield, stand_ins) = (shield(), stand_ins(&[]).unwrap());
    for (text, covered) in [
        ("a<b>", "a\u{100000}b>"),
        ("|a|<", "\u{100002}a|\u{100000}"),
        ("a|a", "a|a"),
        (" \n>x>", " \n\u{100001}x>"),
        ("||", "\u{100002}|"),
        ("|xy|", "|xy|"),
        ("</t>|<b", "</t>|\u{100000}b"),
        ("<", "\u{100000}"),
        ("<<", "\u{100000}\u{100000}"),
        ("", ""),
    ] {
        assert_eq!(shield.cover(text, &stand_ins), covered, "{text}");
        assert_eq!(stand_ins.uncover(covered), text);
    }
}

#[test]
fn every_text_in_a_value_is_covered_and_found() {
    let value: Value = serde_json::from_str(r#"{"<k": ["<i", 7, {"n": "|v"}], "t": "u"}"#).unwrap();
    let covered = shield().cover_value(&value, &stand_ins(&[]).unwrap());
    let key = Value::from("\u{100000}k");
    assert_eq!(covered.get_item(&key).unwrap().get_item_by_index(0).unwrap(), Value::from("\u{100000}i"));
    assert_eq!(covered.get_item(&key).unwrap().get_item_by_index(1).unwrap(), Value::from(7));
    let inner = covered.get_item(&key).unwrap().get_item_by_index(2).unwrap();
    assert_eq!(inner.get_attr("n").unwrap(), Value::from("\u{100002}v"));
    assert_eq!(covered.get_attr("t").unwrap(), Value::from("u"));
    let mut found = Vec::new();
    texts_of(&value, &mut found);
    found.sort_unstable();
    assert_eq!(found, ["<i", "<k", "n", "t", "u", "|v"]);
}
