//! Form arguments to records: keys are split into paths, values converted by the schema of the entity.

use gwctl_entities::schema::{Field, FieldType, Schema};
use gwctl_entities::{Map, Record, Value};
use std::collections::BTreeMap;

/// A value as given in a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given {
    Text(String),
    /// A part of a multipart body that was JSON itself.
    Value(Value),
}

impl From<Option<String>> for Given {
    /// A name without `=` means true.
    fn from(value: Option<String>) -> Self {
        value.map_or(Self::Value(Value::Bool(true)), Self::Text)
    }
}

/// A step of a key: `config.add[1]` is a name, a name, an index.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    /// 1-based.
    Index(usize),
    Append,
}

/// The steps of a key. A key that begins or ends with a dot is taken literally.
fn steps(key: &str) -> Vec<Step> {
    let literal = || vec![Step::Name(key.to_owned())];
    if key.starts_with('.') || key.ends_with('.') || key.starts_with('[') {
        return literal();
    }
    let mut found = Vec::new();
    let mut rest = key;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let Some((content, after)) = inner.split_once(']') else { return literal() };
            found.push(match content.parse::<usize>() {
                Ok(0) => return literal(),
                Ok(index) => Step::Index(index),
                Err(_) if content.is_empty() => Step::Append,
                Err(_) => Step::Name(content.to_owned()),
            });
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end == 0 {
                return literal();
            }
            found.push(Step::Name(rest[..end].to_owned()));
            rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
        }
    }
    // Keys this long are no schema's: a bound keeps the walks below from running out of stack.
    if found.len() > DEPTH_LIMIT { literal() } else { found }
}

/// Steps of a key at most.
const DEPTH_LIMIT: usize = 64;

/// Arguments that share the beginning of their keys.
#[derive(Debug, Default)]
struct Node {
    given: Vec<Given>,
    named: BTreeMap<String, Node>,
    indexed: BTreeMap<usize, Node>,
    appended: Vec<Node>,
}

impl Node {
    fn put(&mut self, steps: &[Step], given: Given) {
        match steps.split_first() {
            None => self.given.push(given),
            Some((Step::Name(name), rest)) => self.named.entry(name.clone()).or_default().put(rest, given),
            Some((Step::Index(index), rest)) => self.indexed.entry(*index).or_default().put(rest, given),
            Some((Step::Append, rest)) => {
                let mut node = Node::default();
                node.put(rest, given);
                self.appended.push(node);
            }
        }
    }

    fn is_plain(&self) -> bool {
        self.named.is_empty() && self.indexed.is_empty() && self.appended.is_empty()
    }

    /// Every element in order: plain repeated ones, indexed ones, appended ones.
    fn elements(self) -> Vec<Node> {
        let plain = self.given.into_iter().map(|given| Node { given: vec![given], ..Node::default() });
        plain.chain(self.indexed.into_values()).chain(self.appended).collect()
    }
}

/// The record that form arguments describe, converted by the schema.
pub(crate) fn record(pairs: &[(String, Given)], schema: &Schema) -> Record {
    let mut root = Node::default();
    for (key, given) in pairs {
        root.put(&steps(key), given.clone());
    }
    members(root, schema)
}

fn members(node: Node, schema: &Schema) -> Record {
    let field = |name: &str| schema.field(name).or_else(|| schema.shorthand(name));
    let indexed = node.indexed.into_iter().map(|(index, child)| (index.to_string(), child));
    let named = node.named.into_iter().chain(indexed);
    named
        .map(|(name, child)| {
            let value = convert(child, field(&name));
            (name, value)
        })
        .collect()
}

fn convert(node: Node, field: Option<&Field>) -> Value {
    if is_empty_text(&node) {
        return Value::Null;
    }
    let Some(field) = field else { return untyped(node) };
    match field.kind {
        FieldType::Array | FieldType::Set => {
            if !node.named.is_empty() {
                return untyped(node);
            }
            if let ([Given::Value(value @ Value::Array(_))], true) = (node.given.as_slice(), node.is_plain()) {
                return value.clone();
            }
            let elements = field.elements.as_deref();
            Value::Array(node.elements().into_iter().map(|element| convert(element, elements)).collect())
        }
        FieldType::Map if node.given.is_empty() => Value::Object(map(node, field.values.as_deref())),
        FieldType::Record if node.given.is_empty() => match &field.record {
            Some(schema) => Value::Object(members(node, schema)),
            None => untyped(node),
        },
        FieldType::Number | FieldType::Integer => scalar(node, number),
        FieldType::Boolean => scalar(node, boolean),
        _ => untyped(node),
    }
}

/// Members of a map; digits in brackets are keys here.
fn map(node: Node, values: Option<&Field>) -> Map<String, Value> {
    let indexed = node.indexed.into_iter().map(|(index, child)| (index.to_string(), child));
    node.named.into_iter().chain(indexed).map(|(name, child)| (name, convert(child, values))).collect()
}

fn is_empty_text(node: &Node) -> bool {
    node.is_plain() && matches!(node.given.as_slice(), [Given::Text(text)] if text.is_empty())
}

fn scalar(node: Node, read: fn(&str) -> Option<Value>) -> Value {
    match (node.is_plain(), node.given.as_slice()) {
        (true, [Given::Text(text)]) => read(text).unwrap_or_else(|| Value::String(text.clone())),
        _ => untyped(node),
    }
}

fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Value::from(integer));
    }
    let float = text.parse::<f64>().ok().filter(|float| float.is_finite())?;
    let mut value = Value::from(float);
    crate::answer::tidy_numbers(&mut value);
    Some(value)
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => None,
    }
}

/// The shape of the keys with texts as they are, for fields the schema does not know (validation refuses them).
fn untyped(node: Node) -> Value {
    if is_empty_text(&node) {
        return Value::Null;
    }
    if node.is_plain() && node.given.len() == 1 {
        return match node.given.into_iter().next() {
            Some(Given::Text(text)) => Value::String(text),
            Some(Given::Value(value)) => value,
            None => Value::Null,
        };
    }
    if node.named.is_empty() {
        return Value::Array(node.elements().into_iter().map(untyped).collect());
    }
    Value::Object(node.named.into_iter().map(|(name, child)| (name, untyped(child))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn schema() -> Schema {
        let definition = json!({"fields": [
            {"name": {"type": "string"}},
            {"port": {"type": "integer"}},
            {"enabled": {"type": "boolean"}},
            {"tags": {"type": "set", "elements": {"type": "string"}}},
            {"headers": {"type": "map", "keys": {"type": "string"},
                "values": {"type": "array", "elements": {"type": "string"}}}},
            {"sources": {"type": "array", "elements":
                {"type": "record", "fields": [{"ip": {"type": "string"}}, {"port": {"type": "integer"}}]}}},
            {"config": {"type": "record", "fields": [{"minute": {"type": "number"}}]}},
        ]});
        gwctl_entities::PluginSchema::from_json("form", &definition).unwrap().schema
    }

    fn read(text: &str) -> Value {
        let pairs = crate::request::Arguments::parse(text).0;
        let pairs: Vec<_> = pairs.into_iter().map(|(name, value)| (name, Given::from(value))).collect();
        Value::Object(record(&pairs, &schema()))
    }

    #[test]
    fn values_are_converted_by_the_type_of_their_field() {
        assert_eq!(
            read("name=12&port=81&enabled=true&service.id=x&config.minute=5"),
            json!({"name": "12", "port": 81, "enabled": true, "service": {"id": "x"}, "config": {"minute": 5}})
        );
    }

    #[test]
    fn text_that_is_no_number_stays_for_validation_to_refuse() {
        assert_eq!(read("port=x&enabled=yes"), json!({"port": "x", "enabled": "yes"}));
    }

    #[test]
    fn arrays_come_in_four_spellings() {
        for spelling in ["tags[]=a&tags[]=b", "tags=a&tags=b", "tags[1]=a&tags[2]=b", "tags%5B%5D=a&tags%5B%5D=b"] {
            assert_eq!(read(spelling), json!({"tags": ["a", "b"]}), "{spelling}");
        }
        assert_eq!(read("tags=a"), json!({"tags": ["a"]}));
    }

    #[test]
    fn records_in_arrays_are_built_by_index() {
        assert_eq!(
            read("sources[1].ip=10.0.0.0/8&sources[1].port=80&sources[2].port=81"),
            json!({"sources": [{"ip": "10.0.0.0/8", "port": 80}, {"port": 81}]})
        );
    }

    #[test]
    fn map_members_are_named_by_dot_or_bracket_with_dots_inside() {
        assert_eq!(read("headers.x-a=1"), json!({"headers": {"x-a": ["1"]}}));
        assert_eq!(read("headers[x.a]=1&headers[x.a]=2"), json!({"headers": {"x.a": ["1", "2"]}}));
        assert_eq!(read("headers[x][]=1"), json!({"headers": {"x": ["1"]}}));
    }

    #[test]
    fn an_empty_value_is_null() {
        assert_eq!(
            read("name=&port=&tags=&config.minute="),
            json!({"name": null, "port": null, "tags": null, "config": {"minute": null}})
        );
    }

    #[test]
    fn keys_with_a_dot_at_an_end_and_index_zero_are_literal() {
        assert_eq!(read(".a=1&b.=2&tags[0]=x"), json!({".a": "1", "b.": "2", "tags[0]": "x"}));
    }

    #[test]
    fn a_key_of_endless_depth_is_literal() {
        let key = "a.".repeat(100_000) + "a";
        assert_eq!(steps(&key), vec![Step::Name(key)]);
    }

    proptest! {
        #[test]
        fn any_keys_and_values_give_a_record(text in "[a-c.\\[\\]=&0-2]{0,40}") {
            let first = read(&text);
            prop_assert!(first.is_object());
            prop_assert_eq!(first, read(&text));
        }
    }
}
