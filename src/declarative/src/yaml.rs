//! A value as YAML text.

use crate::load::is_uuid;
use crate::text::scalar;
use gwctl_entities::Value;
use std::fmt::Write;

/// YAML text of a value: keys in the order of the map, two spaces a level, null as `~`.
///
/// Strings that YAML 1.1 or 1.2 would read as something else are quoted; texts of several lines (certificates) are
/// literal blocks. [`crate::parse`] gives the same value back.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_map(&mut out, map.iter(), 0, false),
        Value::Array(items) if !items.is_empty() => write_list(&mut out, items, 0),
        scalar => {
            out.push_str(&inline(scalar));
            out.push('\n');
        }
    }
    out
}

/// Longer keys stand on a line of their own: readers look for the colon within 1024 characters.
const LONGEST_KEY: usize = 1000;

type Entry<'a> = (&'a String, &'a Value);

/// Writes the entries at an indent; the first one continues the line when `inside` a list item.
pub(crate) fn write_map<'a>(out: &mut String, entries: impl Iterator<Item = Entry<'a>>, indent: usize, inside: bool) {
    for (index, (key, value)) in entries.enumerate() {
        if index > 0 || !inside {
            pad(out, indent);
        }
        let key = quoted(key);
        if key.len() > LONGEST_KEY {
            out.push_str("? ");
            out.push_str(&key);
            out.push('\n');
            pad(out, indent);
        } else {
            out.push_str(&key);
        }
        out.push(':');
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('\n');
                write_map(out, map.iter(), indent + 2, false);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                write_list(out, items, indent);
            }
            _ => write_scalar(out, value, indent + 2),
        }
    }
}

fn write_list(out: &mut String, items: &[Value], indent: usize) {
    for item in items {
        pad(out, indent);
        out.push('-');
        match item {
            Value::Object(map) if !map.is_empty() => {
                out.push(' ');
                write_map(out, map.iter(), indent + 2, true);
            }
            Value::Array(inner) if !inner.is_empty() => {
                out.push('\n');
                write_list(out, inner, indent + 2);
            }
            _ => write_scalar(out, item, indent + 2),
        }
    }
}

/// A scalar (or empty list or map) behind `key:` or `-`, with the end of the line.
fn write_scalar(out: &mut String, value: &Value, indent: usize) {
    if let Value::String(text) = value
        && is_block(text)
    {
        out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
        for line in text.lines() {
            if !line.is_empty() {
                pad(out, indent);
            }
            out.push_str(line);
            out.push('\n');
        }
        return;
    }
    out.push(' ');
    out.push_str(&inline(value));
    out.push('\n');
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn inline(value: &Value) -> String {
    match value {
        Value::Null => "~".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Several lines that a literal block keeps as they are.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.starts_with([' ', '\t', '\n'])
        && !body.ends_with('\n')
        && body.chars().all(|letter| letter == '\n' || is_printable(letter))
        && body.lines().all(|line| !line.ends_with([' ', '\t']) && !line.starts_with('\t'))
}

fn is_printable(letter: char) -> bool {
    matches!(letter, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn quoted(text: &str) -> String {
    if !text.chars().all(is_printable) {
        return double_quoted(text);
    }
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

/// Whether the text may stand without quotes, for readers of YAML 1.1 and 1.2 alike.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let starts_plain = first.is_alphabetic() || matches!(first, '/' | '_' | '~' | '$' | '(' | '^' | ';' | '\\');
    let numeric = first.is_ascii_digit() && (is_uuid(text) || !is_number_like(text));
    (starts_plain || numeric)
        && !scalar::is_special(text)
        && !matches!(text, "y" | "Y" | "n" | "N")
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
}

/// Could be a number, date or time for some reader.
fn is_number_like(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit() || b"_:.,-+xXoOTZ ".contains(&byte))
}

fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_printable(letter) => out.push(letter),
            _ => {
                let code = u32::from(letter);
                // Writing to a String cannot fail.
                let _ = if code > 0xffff { write!(out, "\\U{code:08x}") } else { write!(out, "\\u{code:04x}") };
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Limits, TextForm, parse};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn lists_stand_at_the_indent_of_their_key() {
        let value = json!({"services": [{"name": "a", "tags": ["x", "y"], "path": null}, {"name": "off"}], "none": [], "map": {}});
        let text = "map: {}\nnone: []\nservices:\n- name: a\n  path: ~\n  tags:\n  - x\n  - 'y'\n- name: 'off'\n";
        assert_eq!(to_yaml(&value), text);
    }

    #[test]
    fn a_certificate_is_a_literal_block() {
        let value = json!([{"cert": "-----BEGIN X-----\nabc\n-----END X-----\n"}]);
        assert_eq!(to_yaml(&value), "- cert: |\n    -----BEGIN X-----\n    abc\n    -----END X-----\n");
    }

    #[test]
    fn strings_that_look_like_other_things_are_quoted() {
        for text in
            ["", "80", "1:30", "2020-01-02", "null", "yes", "a: b", "a #b", "- a", "*a", "{", "<<", "=", "'", "0x1F"]
        {
            let written = to_yaml(&json!({"k": text}));
            assert!(written.starts_with("k: '"), "{written}");
            assert_eq!(parse(&written, TextForm::Yaml, &Limits::default()).unwrap()["k"], json!(text));
        }
        assert_eq!(to_yaml(&json!({"k": "10.0.0.1/x"})), "k: 10.0.0.1/x\n");
    }

    #[test]
    fn a_very_long_key_reads_back() {
        let key = "k".repeat(3000);
        let value = json!({"a": [{ key.clone(): {key.clone(): [1]}, "z": 1 }], key: "x"});
        assert_eq!(parse(&to_yaml(&value), TextForm::Yaml, &Limits::default()), Ok(value));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<f64>()
                .prop_filter("whole floats read as integers", |number| number.fract() != 0.0)
                .prop_map(Value::from),
            "[ -~\n\t\u{e9}\u{85}\u{2028}\u{1f600}]{0,16}".prop_map(Value::from),
            "[a-c \n:#'-]{0,10}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[ -~]{0,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any_value()) {
            let text = to_yaml(&value);
            prop_assert_eq!(parse(&text, TextForm::Yaml, &Limits::default()), Ok(value), "{}", text);
        }
    }
}
