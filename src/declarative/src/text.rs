//! YAML 1.1 and JSON text to a value.

pub mod locate;
mod read;
pub(crate) mod scalar;

use gwctl_entities::{EntityError, Map, Value};

/// How to read a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// JSON first, then YAML.
    Auto,
    /// JSON only (`.json`).
    Json,
    /// YAML only (`.yaml`, `.yml`).
    Yaml,
}

impl TextForm {
    /// The form of a file by its extension; None when it is not one of `.json`, `.yaml`, `.yml`.
    pub fn of_file(name: &str) -> Option<TextForm> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "json" => Some(TextForm::Json),
            "yaml" | "yml" => Some(TextForm::Yaml),
            _ => None,
        }
    }
}

/// Bounds of what is read, against hostile texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest text in bytes.
    pub bytes: usize,
    /// Deepest nesting of lists and maps; JSON is bounded by 127 in any case.
    pub depth: usize,
    /// Most values that anchors and aliases may hold together.
    pub aliased: usize,
}

impl Default for Limits {
    /// 512 MiB, 128 levels, one million aliased values: far beyond real configurations, small enough to refuse bombs.
    fn default() -> Self {
        Limits { bytes: 512 << 20, depth: 128, aliased: 1_000_000 }
    }
}

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", .at.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default())]
pub struct TextError {
    /// Line and column, from 1; None when it concerns the whole text.
    pub at: Option<(usize, usize)>,
    /// What is wrong.
    pub reason: String,
}

impl From<TextError> for EntityError {
    fn from(error: TextError) -> Self {
        refused(&error.to_string())
    }
}

/// The refusal of a document that cannot be read at all.
pub(crate) fn refused(reason: &str) -> EntityError {
    let text = format!("failed parsing declarative configuration: {reason}");
    EntityError::InvalidDeclarative {
        fields: Map::from_iter([("error".to_owned(), Value::String(text))]),
        flattened: None,
    }
}

/// Reads a text to a value. Of several YAML documents only the first is read; of a repeated key the last wins.
pub fn parse(text: &str, form: TextForm, limits: &Limits) -> Result<Value, TextError> {
    if text.len() > limits.bytes {
        let reason = format!("the text has {} bytes, more than the {} that are read", text.len(), limits.bytes);
        return Err(TextError { at: None, reason });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(TextError { at: None, reason: "the text is empty".to_owned() });
    }
    let braced = text.trim_start().starts_with(['{', '[']);
    match form {
        TextForm::Json => json(text, limits),
        TextForm::Auto if braced => json(text, limits).or_else(|_| read::read(text, limits)),
        TextForm::Auto | TextForm::Yaml => read::read(text, limits),
    }
}

fn json(text: &str, limits: &Limits) -> Result<Value, TextError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let full = error.to_string();
        let reason = full.rsplit_once(" at line ").map_or(full.as_str(), |(reason, _)| reason).to_owned();
        TextError { at: Some((error.line(), error.column())), reason }
    })?;
    if depth_of(&value) > limits.depth {
        return Err(TextError { at: None, reason: format!("nested deeper than {} levels", limits.depth) });
    }
    Ok(value)
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn yaml(text: &str) -> Result<Value, TextError> {
        parse(text, TextForm::Auto, &Limits::default())
    }

    #[test]
    fn quoted_and_tagged_scalars_are_strings() {
        let read = yaml("a: 'off'\nb: \"80\"\nc: !!str 80\nd: off\ne: !!int '7'\nf:\n").unwrap();
        assert_eq!(read, json!({"a": "off", "b": "80", "c": "80", "d": false, "e": 7, "f": null}));
    }

    #[test]
    fn anchors_aliases_and_merge_keys_expand() {
        let read = yaml("x: &b {host: h, port: 1}\ny: {<<: *b, port: 2}\nz: [*b]\nw:\n  <<: [{a: 1}, {a: 2, c: 3}]\n")
            .unwrap();
        assert_eq!(read["y"], json!({"host": "h", "port": 2}));
        assert_eq!(read["z"], json!([{"host": "h", "port": 1}]));
        assert_eq!(read["w"], json!({"a": 1, "c": 3}));
    }

    #[test]
    fn merged_values_yield_to_own_ones_in_any_order() {
        assert_eq!(yaml("b: &b {p: 1}\nc: {p: 2, <<: *b}\n").unwrap()["c"], json!({"p": 2}));
    }

    #[test]
    fn of_a_repeated_key_the_last_wins_and_only_the_first_document_counts() {
        assert_eq!(yaml("a: 1\na: 2\n---\nb: 3\n").unwrap(), json!({"a": 2}));
    }

    #[test]
    fn an_alias_bomb_is_refused_with_its_place() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
        }
        let error = yaml(&text).unwrap_err();
        assert!(error.reason.contains("more than 1000000 values"), "{error}");
        assert!(error.at.is_some());
    }

    #[test]
    fn an_alias_to_its_own_parent_is_refused() {
        let error = yaml("a: &a\n  b: *a\n").unwrap_err();
        assert!(error.reason.contains("must follow the end"), "{error}");
    }

    #[test]
    fn deep_nesting_is_refused_in_both_forms() {
        let blocks: String = (0..200).map(|level| format!("{}-\n", " ".repeat(level))).collect();
        assert!(yaml(&blocks).unwrap_err().reason.contains("deeper than 128"));
        let flow = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        assert!(yaml(&flow).is_err());
        let shallow = Limits { depth: 2, ..Limits::default() };
        assert!(parse("[[[1]]]", TextForm::Json, &shallow).unwrap_err().reason.contains("deeper than 2"));
    }

    #[test]
    fn a_syntax_error_names_line_and_column() {
        let error = yaml("_format_version: '3.0'\nservices: {a\n").unwrap_err();
        assert!(matches!(error.at, Some((2 | 3, _))), "{error}");
        let open = yaml("_format_version: '3.0'\nservices: [\n").unwrap_err();
        assert_eq!(open.to_string(), "2:11: did not find expected node content");
        let json = parse("{\"a\": 1,}", TextForm::Json, &Limits::default()).unwrap_err();
        assert_eq!(json.at, Some((1, 9)));
    }

    #[test]
    fn a_text_beyond_the_limit_is_not_read() {
        let limits = Limits { bytes: 4, ..Limits::default() };
        assert!(parse("a: 12345", TextForm::Yaml, &limits).unwrap_err().reason.contains("more than the 4"));
    }

    #[test]
    fn the_extension_decides_the_form() {
        assert_eq!(TextForm::of_file("a/kong.YML"), Some(TextForm::Yaml));
        assert_eq!(TextForm::of_file("kong.json"), Some(TextForm::Json));
        assert_eq!(TextForm::of_file("kong.toml"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-z0-9:\\-\\[\\]{}&*!|> \n\t\"'<,#%@?~.]{0,120}") {
            let _ = yaml(&text);
        }

        #[test]
        fn json_reads_alike_as_json_and_as_yaml(numbers in proptest::collection::vec(any::<i32>(), 0..8), text in "[ -~]{0,20}") {
            let written = json!({"n": numbers, "t": text}).to_string();
            let limits = Limits::default();
            prop_assert_eq!(parse(&written, TextForm::Json, &limits), parse(&written, TextForm::Yaml, &limits));
        }
    }
}
