//! Numbers as C's `%.14g` prints them.

use serde_json::Number;

/// Significant digits.
const PRECISION: i32 = 14;

/// Whole numbers below this print plainly; from here on they need an exponent.
const PLAIN_BELOW: u64 = 100_000_000_000_000;

/// Appends the number.
pub(super) fn write_number(number: &Number, out: &mut Vec<u8>) {
    match number.as_i64() {
        Some(whole) if whole.unsigned_abs() < PLAIN_BELOW => out.extend_from_slice(whole.to_string().as_bytes()),
        // Larger whole numbers lose their last digits here as they do in Lua, where all numbers are doubles.
        _ => write_float(number.as_f64().unwrap_or(f64::NAN), out),
    }
}

fn write_float(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        // JSON has no such numbers; the text is what C prints.
        let text = if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        };
        return out.extend_from_slice(text.as_bytes());
    }
    let scientific = format!("{value:.*e}", (PRECISION - 1) as usize);
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a whole number");
    if (-4..PRECISION).contains(&exponent) {
        let decimals = (PRECISION - 1 - exponent) as usize;
        out.extend_from_slice(without_trailing_zeros(&format!("{value:.decimals$}")).as_bytes());
    } else {
        out.extend_from_slice(without_trailing_zeros(mantissa).as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    }
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        let mut out = Vec::new();
        write_number(&serde_json::from_str(json).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_print_as_in_c() {
        let cases = [
            ("0", "0"),
            ("-1", "-1"),
            ("10.0", "10"),
            ("-0.0", "-0"),
            ("0.9", "0.9"),
            ("0.5", "0.5"),
            ("99999999999999", "99999999999999"),
            ("100000000000000", "1e+14"),
            ("-100000000000000", "-1e+14"),
            ("123456789012345", "1.2345678901234e+14"),
            ("1e15", "1e+15"),
            ("18446744073709551615", "1.844674407371e+19"),
            ("1700000000.123", "1700000000.123"),
            ("1795986425.5296562", "1795986425.5297"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("0.1234567890123456", "0.12345678901235"),
            ("99999999999999.9", "1e+14"),
            ("1e100", "1e+100"),
            ("3.0000000000000001", "3"),
        ];
        for (json, expected) in cases {
            assert_eq!(text(json), expected, "{json}");
        }
    }
}
