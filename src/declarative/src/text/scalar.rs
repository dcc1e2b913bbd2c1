//! What a plain YAML scalar means, by the rules of YAML 1.1.
//!
//! Source: Kong 3.9.1's reader (lyaml), measured. `y` and `n` stay strings, `012` is octal, `1:30` is base 60.

use gwctl_entities::Value;
use serde_json::Number;

/// Largest whole number a double holds exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The value of an unquoted, untagged scalar. None: a number that has no finite value.
pub(crate) fn resolve(text: &str) -> Option<Value> {
    if is_null(text) {
        return Some(Value::Null);
    }
    if let Some(truth) = boolean(text) {
        return Some(Value::Bool(truth));
    }
    if is_unbounded(text) {
        return None;
    }
    Some(number(text).unwrap_or_else(|| Value::String(text.to_owned())))
}

/// Whether the text must be quoted to be read as a string.
pub(crate) fn is_special(text: &str) -> bool {
    !matches!(resolve(text), Some(Value::String(_)))
}

pub(crate) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => Some(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn is_unbounded(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// A number, whole ones without fraction whatever way they are written; None when the text is none.
pub(crate) fn number(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let first = *digits.as_bytes().first()?;
    if !first.is_ascii_digit() && first != b'.' {
        return None;
    }
    let digits = digits.replace('_', "");
    let value = whole(&digits, negative).or_else(|| fraction(&digits, negative))?;
    Some(Value::Number(value))
}

fn whole(digits: &str, negative: bool) -> Option<Number> {
    let magnitude = if let Some(hex) = digits.strip_prefix("0x") {
        digits_in(hex, 16)?
    } else if let Some(binary) = digits.strip_prefix("0b") {
        digits_in(binary, 2)?
    } else if digits.contains(':') {
        base_sixty(digits)?
    } else if let Some(octal) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        digits_in(octal, 8).or_else(|| digits_in(digits, 10))?
    } else {
        digits_in(digits, 10)?
    };
    if negative {
        i64::try_from(magnitude).ok().map(|value| Number::from(-value))
    } else {
        Some(Number::from(magnitude))
    }
}

fn digits_in(digits: &str, radix: u32) -> Option<u64> {
    let plain = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// `1:30` is 90: each part after the first is below 60.
fn base_sixty(digits: &str) -> Option<u64> {
    let mut parts = digits.split(':');
    let mut total = digits_in(parts.next()?, 10)?;
    for part in parts {
        let value = digits_in(part, 10).filter(|&value| value < 60 && part.len() <= 2)?;
        total = total.checked_mul(60)?.checked_add(value)?;
    }
    Some(total)
}

fn fraction(digits: &str, negative: bool) -> Option<Number> {
    let shape = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !shape || !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude: f64 = digits.parse().ok().filter(|value: &f64| value.is_finite())?;
    let value = if negative { -magnitude } else { magnitude };
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn booleans_come_in_three_cases_and_y_and_n_are_strings() {
        for text in ["yes", "On", "TRUE", "true"] {
            assert_eq!(resolve(text), Some(json!(true)), "{text}");
        }
        for text in ["no", "Off", "FALSE"] {
            assert_eq!(resolve(text), Some(json!(false)), "{text}");
        }
        for text in ["y", "n", "tRue", "oN"] {
            assert_eq!(resolve(text), Some(json!(text)), "{text}");
        }
    }

    #[test]
    fn numbers_come_in_octal_hex_binary_groups_and_base_sixty() {
        for (text, value) in [
            ("012", json!(10)),
            ("0x1F", json!(31)),
            ("0b11", json!(3)),
            ("1_000", json!(1000)),
            ("1:30", json!(90)),
            ("-5", json!(-5)),
            ("+7", json!(7)),
            ("0", json!(0)),
            (".5", json!(0.5)),
            ("1.", json!(1)),
            ("1e3", json!(1000)),
            ("-1.5", json!(-1.5)),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ] {
            assert_eq!(resolve(text), Some(value), "{text}");
        }
    }

    #[test]
    fn near_numbers_are_strings() {
        for text in
            ["0o14", "1,000", "1.2.3", "2020-01-02", "1:99", "1e", "-", "+", ".", "0x", "e3", "127.0.0.1:80", "a"]
        {
            assert_eq!(resolve(text), Some(json!(text)), "{text}");
        }
    }

    #[test]
    fn infinite_numbers_have_no_value() {
        for text in [".inf", "-.inf", ".nan"] {
            assert_eq!(resolve(text), None, "{text}");
        }
    }
}
