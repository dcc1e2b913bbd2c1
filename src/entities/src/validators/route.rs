//! What keeps a route's match fields from becoming an expression.
//!
//! Two engines judge a regular expression in Kong: PCRE when the field is validated, and the router's own when the
//! route is compiled. The router's knows no look-around and no back references.

use crate::engine::{is_empty, value_at};
use serde_json::{Map, Value};

const MATCH_FIELDS: [&str; 7] = ["methods", "hosts", "paths", "headers", "snis", "sources", "destinations"];

/// Runs all rules; the router judges the text of an expression itself.
pub(super) fn rules(record: &Map<String, Value>) -> Result<(), String> {
    let matches = MATCH_FIELDS.iter().any(|name| !is_empty(value_at(record, name)));
    let expression = !value_at(record, "expression").is_null();
    if expression && matches {
        return Err("'expression' can't be set together with 'methods', 'hosts', 'paths', 'headers', 'snis', \
                    'sources' or 'destinations'"
            .to_owned());
    }
    if expression && value_at(record, "regex_priority").as_i64().unwrap_or(0) != 0 {
        return Err("'expression' and 'regex_priority' can't be set at the same time".to_owned());
    }
    if matches && value_at(record, "priority").as_u64().unwrap_or(0) != 0 {
        return Err("'priority' can only be set together with 'expression'".to_owned());
    }
    paths(value_at(record, "paths"))?;
    headers(value_at(record, "headers"))
}

fn paths(paths: &Value) -> Result<(), String> {
    let texts = paths.as_array().into_iter().flatten().filter_map(Value::as_str);
    for pattern in texts.filter_map(|path| path.strip_prefix('~')) {
        compiles("http.path", &format!("^{pattern}"))?;
    }
    Ok(())
}

/// A header's only value may be a regular expression after `~*`.
fn headers(headers: &Value) -> Result<(), String> {
    for (name, values) in headers.as_object().into_iter().flatten() {
        match values.as_array().map(Vec::as_slice) {
            Some([]) => return Err(located("()", 2, 4, "expected term")),
            Some([Value::String(value)]) => {
                if let Some(pattern) = value.strip_prefix("~*") {
                    let name = name.to_ascii_lowercase().replace('-', "_");
                    compiles(&format!("any(lower(http.headers.{name}))"), pattern)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn compiles(subject: &str, pattern: &str) -> Result<(), String> {
    let Err(error) = regex::Regex::new(pattern) else { return Ok(()) };
    let literal = format!("r#\"{pattern}\"#");
    let start = format!("({subject} ~ ");
    let column = start.chars().count() + 1;
    let expression = format!("{start}{literal})");
    Err(located(&expression, column, literal.chars().count(), &error.to_string()))
}

/// Points at a stretch of the expression as the router's parser does.
fn located(expression: &str, column: usize, length: usize, fault: &str) -> String {
    let space = " ".repeat(column - 1);
    // An unfinished expression is marked with an open end.
    let mark = if fault == "expected term" {
        format!("^{}", "-".repeat(length - 1))
    } else {
        format!("^{}^", "-".repeat(length.saturating_sub(2)))
    };
    format!(
        "Router Expression failed validation:  --> 1:{column}\n  |\n1 | {expression}\n  | {space}{mark}\n  |\n  = {fault}"
    )
}

#[cfg(test)]
mod tests {
    use super::rules;
    use serde_json::{Map, Value, json};

    fn judge(route: Value) -> Result<(), String> {
        rules(&Map::from_iter(route.as_object().cloned().unwrap()))
    }

    #[test]
    fn a_bad_pattern_is_pointed_at() {
        assert_eq!(
            judge(json!({"headers": {"X-A": ["~*("]}})).unwrap_err(),
            concat!(
                "Router Expression failed validation:  --> 1:33\n  |\n1 | (any(lower(http.headers.x_a)) ~ r#\"(\"#)\n",
                "  |                                 ^----^\n  |\n  = regex parse error:\n    (\n    ^\n",
                "error: unclosed group",
            )
        );
        assert!(judge(json!({"headers": {"x": ["~*(", "b"]}})).is_ok());
        assert!(judge(json!({"paths": ["~/a(?=b)"]})).unwrap_err().contains("look-around"));
    }

    #[test]
    fn expressions_stand_alone() {
        assert!(judge(json!({"expression": "a", "priority": 1})).is_ok());
        assert!(judge(json!({"expression": "a", "hosts": ["a.test"]})).is_err());
        assert!(judge(json!({"hosts": ["a.test"], "priority": 1})).is_err());
    }
}
