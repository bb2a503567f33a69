//! What each function pays, counted by hand, and the depths at which each stops.

use super::*;
use minijinja::Environment;

/// What `work` returns, and the fuel that it took.
fn paid<T>(work: impl FnOnce(&mut State<'_, '_>) -> Result<T, Error>) -> (Result<T, Error>, u64) {
    let mut environment = Environment::new();
    environment.set_fuel(Some(1_000_000));
    let mut state = environment.empty_state();
    let result = work(&mut state);
    (result, state.fuel_levels().unwrap().0)
}

fn cost<T>(work: impl FnOnce(&mut State<'_, '_>) -> Result<T, Error>) -> u64 {
    let (result, fuel) = paid(work);
    assert!(result.is_ok());
    fuel
}

fn text(bytes: usize) -> Value {
    Value::from("x".repeat(bytes))
}

fn list(items: &[Value]) -> Value {
    Value::from(items.to_vec())
}

fn map(key: Value, value: Value) -> Value {
    Record::value(vec![(key, value)])
}

/// A text within this many lists, or maps, or maps' keys.
fn nested(levels: usize, wrap: fn(Value) -> Value) -> Value {
    (0..levels).fold(Value::from("x"), |inner, _| wrap(inner))
}

const WRAPS: [fn(Value) -> Value; 3] =
    [|inner| list(&[inner]), |inner| map(Value::from("k"), inner), |inner| map(inner, Value::from(1))];

/// One for each value, and one for each 64 bytes of a text that is inside another value.
#[test]
fn a_copy_pays_for_each_part_and_its_bytes() {
    let kept = |value: Value| cost(|state| keep(state, value));
    assert_eq!(kept(text(1000)), 1, "a text is shared");
    assert_eq!(kept(list(&[text(63)])), 2);
    assert_eq!(kept(list(&[text(64), text(128)])), 1 + 2 + 3);
    assert_eq!(kept(map(text(64), text(200))), 1 + 2 + 4);
    assert_eq!(kept(list(&[list(&[]), map(text(1), Value::from(5))])), 1 + 1 + 3);
    // A value that is computed as it is read is computed here, item by item.
    assert_eq!(kept(Value::make_iterable(|| 0..9)), 1 + 9);
}

#[test]
fn what_has_a_name_nests_32_deep_at_most() {
    for wrap in WRAPS {
        for function in [keep, keep_data] {
            assert_eq!(paid(|state| function(state, nested(32, wrap))).0.unwrap(), nested(32, wrap));
            let error = paid(|state| function(state, nested(33, wrap))).0.unwrap_err();
            assert_eq!(error.detail(), Some("a value that has a name has at most 32 levels"));
        }
        assert!(paid(|state| string(state, &nested(32, wrap))).0.is_ok());
        let error = paid(|state| string(state, &nested(33, wrap))).0.unwrap_err();
        assert_eq!(error.detail(), Some("a value of more than 32 levels has no text"));
    }
}

/// As in Jinja, a second name of a macro or a function calls it, and one of a namespace is the same namespace. A list,
/// or a namespace, keeps data only.
#[test]
fn macros_functions_and_namespaces_keep_what_they_are_under_another_name() {
    let mut environment = Environment::new();
    environment.add_function("keep", keep);
    environment.add_function("keep_data", keep_data);
    let render = |source: &str| environment.render_str(source, ());
    let found = render("{% macro f(a) %}<{{ a }}>{% endmacro %}{% set g = keep(f) %}{{ g(1) }}");
    assert_eq!(found.unwrap(), "<1>");
    let found = render("{% set n = namespace(x=1) %}{% set m = keep(n) %}{% set m.x = 2 %}{{ n.x }}");
    assert_eq!(found.unwrap(), "2");
    let found = render("{% set n = namespace(x=1) %}{% set m = keep_data(n) %}{% set n.x = 2 %}{{ m.x }}");
    assert_eq!(found.unwrap(), "1");
    let found = render("{% set r = keep(range) %}{{ r(3) | join(',') }}");
    assert_eq!(found.unwrap(), "0,1,2");
    for refused in ["keep([range])", "keep({'k': range})", "keep_data(range)"] {
        let error = render(&format!("{{% set g = {refused} %}}")).unwrap_err();
        assert_eq!(
            error.detail(),
            Some("only data can be kept in a list, a map or a namespace"),
            "{refused}"
        );
    }
}

/// Every method reads its text; some make many parts, or more bytes.
#[test]
fn methods_pay_for_what_they_read_and_make() {
    let call = |subject: &str, name: &str, arguments: &[Value]| {
        let (result, fuel) = paid(|state| method(state, &Value::from(subject), name, arguments));
        (result.map(|value| value.to_string()).map_err(|error| error.kind()), fuel)
    };
    let long = "x".repeat(128);
    assert_eq!(call(&long, "isdigit", &[]), (Ok("False".into()), 2));
    assert_eq!(call("a,b,c", "split", &[Value::from(",")]).1, 2);
    assert_eq!(call("a,b,c", "split", &[]).1, 5, "no separator is named, so any place may be one");
    assert_eq!(call("a,b,c", "split", &[Value::from("")]).1, 5);
    assert_eq!(call("a\nb\n", "splitlines", &[]).1, 2);
    for name in ["upper", "lower", "title", "capitalize"] {
        assert_eq!(call(&long, name, &[]).1, 2 + 16, "{name}");
    }
    let parts = list(&[text(64), text(1)]);
    let joined = format!("{}, x", "x".repeat(64));
    assert_eq!(call(", ", "join", &[parts]), (Ok(joined), 2 + 1));
    assert!(call("", "join", &[]).0.is_err());
    assert_eq!(call("{}", "format", &[Value::from(1)]).0, Err(ErrorKind::UnknownMethod));
}

/// `join` as Jinja documents it, with 64 bytes for one.
#[test]
fn a_join_pays_for_separators_and_items() {
    let call = |value: &Value, separator: Option<&str>, options: &[(&str, Value)]| {
        let options = options.iter().cloned().collect();
        let (result, fuel) = paid(|state| join(state, value, separator, options));
        (result.map(|value| value.to_string()).map_err(|error| error.kind()), fuel)
    };
    let letters = list(&["a", "b", "c"].map(Value::from));
    assert_eq!(call(&letters, None, &[]), (Ok("abc".into()), 3));
    assert_eq!(call(&letters, Some("|"), &[]), (Ok("a|b|c".into()), 3));
    assert_eq!(call(&letters, None, &[("d", Value::from("-"))]), (Ok("a-b-c".into()), 3));
    assert_eq!(call(&Value::from("abc"), Some("|"), &[]), (Ok("a|b|c".into()), 3 + 3));
    assert_eq!(call(&list(&[1, 2].map(Value::from)), Some(", "), &[]), (Ok("1, 2".into()), 2 + 2));
    let people = list(&["Al", "Bo"].map(|name| map(Value::from("name"), Value::from(name))));
    assert_eq!(call(&people, Some("+"), &[("attribute", Value::from("name"))]), (Ok("Al+Bo".into()), 2));
    assert_eq!(call(&letters, None, &[("e", Value::from(1))]).0, Err(ErrorKind::TooManyArguments));
    let long = "-".repeat(64);
    assert_eq!(call(&list(&[text(64), text(64), text(63)]), Some(&long), &[]).1, 2 + 3 + 2);
}

#[test]
fn a_text_of_a_value_pays_for_each_part_and_its_bytes() {
    let written = |value: Value| paid(|state| string(state, &value));
    let (text_of_list, fuel) = written(list(&[1, 2].map(Value::from)));
    assert_eq!((text_of_list.unwrap().as_str(), fuel), ("[1, 2]", 3));
    assert_eq!(written(Value::from(12)).0.unwrap(), "12");
    assert_eq!(written(text(128)).1, 1 + 2);
    assert_eq!(written(list(&[text(63), text(64), list(&[])])).1, 1 + 1 + 2 + 1);
    assert_eq!(written(map(text(64), text(200))).1, 1 + 2 + 4);
}

fn json(value: &Value, options: &[(&str, Value)]) -> (Result<String, Error>, u64) {
    let options = options.iter().cloned().collect();
    let (result, fuel) = paid(|state| to_json(state, value, options));
    (result.map(|value| value.to_string()), fuel)
}

/// By Python's `json.dumps(…, ensure_ascii=False)`.
#[test]
fn json_escapes_what_python_escapes() {
    let found = |text: &str| json(&Value::from(text), &[]).0.unwrap();
    assert_eq!(found("\"\\/\n\r\t\u{8}\u{c}"), r#""\"\\/\n\r\t\b\f""#);
    assert_eq!(found("\0\u{1f}\u{7f} é<&>'"), "\"\\u0000\\u001f\u{7f} é<&>'\"");
    let ascii = [("ensure_ascii", Value::from(true))];
    assert_eq!(json(&Value::from("é\u{1F600}\u{7f}"), &ascii).0.unwrap(), "\"\\u00e9\\ud83d\\ude00\u{7f}\"");
}

/// One for each value, one for each 8 bytes of a text, and one for each 64 bytes written since the last value began.
#[test]
fn json_pays_for_what_it_writes() {
    assert_eq!(json(&Value::from(5), &[]).1, 1);
    assert_eq!(json(&text(64), &[]).1, 1 + 8);
    assert_eq!(json(&text(63), &[]).1, 1 + 7);
    // The second item is begun after 69 bytes, and the third after four more.
    let items = list(&[text(64), text(1), text(1)]);
    assert_eq!(json(&items, &[]).1, 1 + (1 + 8) + (1 + 1) + 1);
    // A key is paid for as a text, and its bytes when the value begins.
    assert_eq!(json(&map(text(64), Value::from(1)), &[]).1, 1 + 8 + (1 + 1));
}

#[test]
fn json_nests_128_deep_and_is_indented_by_16_at_most() {
    for wrap in &WRAPS[..2] {
        let accepted = json(&nested(128, *wrap), &[]).0.unwrap();
        assert_eq!(accepted.matches(['[', '{']).count(), 128);
        let error = json(&nested(129, *wrap), &[]).0.unwrap_err();
        assert_eq!(error.detail(), Some("a value for JSON has at most 128 levels"));
    }
    let indented = |spaces: usize| json(&list(&[Value::from(1)]), &[("indent", Value::from(spaces))]).0;
    assert_eq!(indented(16).unwrap(), format!("[\n{}1\n]", " ".repeat(16)));
    assert_eq!(indented(0).unwrap(), "[\n1\n]");
    assert_eq!(indented(17).unwrap_err().detail(), Some("JSON is indented by at most 16 spaces"));
    let error = json(&map(Value::from("k"), Value::UNDEFINED), &[]).0.unwrap_err();
    assert_eq!(error.detail(), Some("a value of type undefined has no JSON"));
}
