//! Texts to values, by kind.

use crate::keys::Kind;
use crate::near;

/// A value as read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Unset,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

/// Reads a text; the error says what was expected.
pub(crate) fn parse(kind: Kind, text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(match kind {
            Kind::List | Kind::Listen | Kind::Materials | Kind::PrivateKeys => Value::List(Vec::new()),
            _ => Value::Unset,
        });
    }
    match kind {
        Kind::Flag => Ok(Value::Flag(matches!(text, "on" | "true"))),
        Kind::Number(least, most) => number(text, least, most).map(Value::Number),
        Kind::Integer(least, most) => {
            let number = number(text, least as f64, most as f64)?;
            if number.fract() == 0.0 { Ok(Value::Number(number)) } else { Err("expected a whole number".into()) }
        }
        Kind::Choice(choices) => choice(text, choices),
        Kind::Size => size(text).map(|_| Value::Text(text.into())),
        Kind::Text | Kind::Secret | Kind::Material | Kind::PrivateKey => Ok(Value::Text(text.into())),
        Kind::List | Kind::Materials | Kind::PrivateKeys => Ok(Value::List(list(text))),
        Kind::Listen => {
            let items = list(text);
            crate::listener::parse_all(&items).map_err(|faults| faults.join("; "))?;
            Ok(Value::List(items))
        }
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(Into::into).collect()
}

fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or("expected a number")?;
    match number {
        _ if number < least => Err(format!("expected at least {least}")),
        _ if number > most => Err(format!("expected at most {most}")),
        number => Ok(number),
    }
}

fn choice(text: &str, choices: &[&'static str]) -> Result<Value, String> {
    if choices.contains(&text) {
        return Ok(Value::Text(text.into()));
    }
    let near = near::did_you_mean(text, choices.iter().copied()).map(|hint| format!("; {hint}"));
    Err(format!("expected one of {}{}", choices.join(", "), near.unwrap_or_default()))
}

/// Bytes of `2048m`, `10k`, `1g` or a plain number.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1_u64),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    number.ok_or_else(|| "expected bytes as a whole number with k, m or g, such as 2048m".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_nothing_overflows() {
        assert_eq!(size("2048m"), Ok(2 << 30));
        assert_eq!(size("8K"), Ok(8192));
        assert_eq!(size("0"), Ok(0));
        for text in ["", "m", "-1", "1.5m", "99999999999999999g", "10q"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_keep_their_bounds() {
        assert_eq!(parse(Kind::Number(60.0, 1e12), "59").unwrap_err(), "expected at least 60");
        assert_eq!(parse(Kind::Integer(0, 10), "1.5").unwrap_err(), "expected a whole number");
        assert_eq!(parse(Kind::Number(0.0, 1.0), "NaN").unwrap_err(), "expected a number");
        assert_eq!(parse(Kind::Integer(0, 10), "").unwrap(), Value::Unset);
    }

    #[test]
    fn lists_are_trimmed_and_empty_items_dropped() {
        assert_eq!(parse(Kind::List, " a , b,, ").unwrap(), Value::List(vec!["a".into(), "b".into()]));
    }
}
