//! YAML events to a value.

use super::scalar;
use super::{Limits, TextError};
use gwctl_entities::{Map, Value};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A list or map that is still open.
enum Open {
    List { items: Vec<Value>, anchor: usize },
    Map { entries: Map<String, Value>, merged: Vec<Value>, key: Option<Key>, anchor: usize },
}

enum Key {
    Name(String),
    Merge,
}

struct Reader<'a> {
    limits: &'a Limits,
    open: Vec<Open>,
    /// Anchored values with their size in values.
    anchors: BTreeMap<usize, (Value, usize)>,
    aliased: usize,
    root: Option<Value>,
}

/// The first document of a YAML text; null when there is none.
pub(super) fn read(text: &str, limits: &Limits) -> Result<Value, TextError> {
    let mut reader = Reader { limits, open: Vec::new(), anchors: BTreeMap::new(), aliased: 0, root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax_error(text, &error))?;
        let end = matches!(event, Event::DocumentEnd | Event::StreamEnd);
        reader.event(event).map_err(|reason| TextError { at: Some(place(&span.start)), reason })?;
        if end {
            break;
        }
    }
    Ok(reader.root.unwrap_or(Value::Null))
}

/// An error at the end of the text is reported at the last thing that stands there.
fn syntax_error(text: &str, error: &ScanError) -> TextError {
    let reason = error.info().strip_prefix("while parsing a node, ").unwrap_or(error.info()).to_owned();
    let content = text.trim_end();
    let at = place(error.marker());
    let last_line = content.lines().count();
    if at.0 <= last_line {
        return TextError { at: Some(at), reason };
    }
    let column = content.lines().last().map_or(1, |line| line.chars().count());
    TextError { at: Some((last_line, column)), reason }
}

fn place(marker: &Marker) -> (usize, usize) {
    (marker.line(), marker.col() + 1)
}

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, anchor, tag.as_deref()),
            Event::SequenceStart(anchor, _) => self.start(Open::List { items: Vec::new(), anchor }),
            Event::MappingStart(anchor, _) => {
                self.start(Open::Map { entries: Map::new(), merged: Vec::new(), key: None, anchor })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), String> {
        if let Some(Open::Map { key: key @ None, .. }) = self.open.last_mut() {
            let merge = text == "<<" && style == ScalarStyle::Plain && tag.is_none();
            *key = Some(if merge { Key::Merge } else { Key::Name(text.clone().into_owned()) });
            if anchor > 0 {
                self.anchors.insert(anchor, (Value::String(text.into_owned()), 1));
            }
            return Ok(());
        }
        let value = scalar_value(&text, style, tag)?;
        self.value(value, anchor)
    }

    fn start(&mut self, container: Open) -> Result<(), String> {
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            return Err("a list or map cannot be a key".to_owned());
        }
        if self.open.len() >= self.limits.depth {
            return Err(format!("nested deeper than {} levels", self.limits.depth));
        }
        self.open.push(container);
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        match self.open.pop() {
            Some(Open::List { items, anchor }) => self.value(Value::Array(items), anchor),
            Some(Open::Map { mut entries, merged, anchor, .. }) => {
                for source in merged {
                    merge(&mut entries, source)?;
                }
                self.value(Value::Object(entries), anchor)
            }
            None => Ok(()),
        }
    }

    fn alias(&mut self, anchor: usize) -> Result<(), String> {
        let (value, size) =
            self.anchors.get(&anchor).ok_or("an alias must follow the end of the value it refers to")?;
        self.aliased += size;
        if self.aliased > self.limits.aliased {
            return Err(format!(
                "aliases expand to more than {} values; write the values out or use fewer aliases",
                self.limits.aliased
            ));
        }
        let value = value.clone();
        if let Some(Open::Map { key: key @ None, .. }) = self.open.last_mut() {
            let Value::String(name) = value else { return Err("a list, map or number cannot be a key".to_owned()) };
            *key = Some(Key::Name(name));
            return Ok(());
        }
        self.value(value, 0)
    }

    /// Puts a finished value into what is open.
    fn value(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        if anchor > 0 {
            let size = size_of(&value);
            self.aliased += size;
            if self.aliased > self.limits.aliased {
                return Err(format!("anchors and aliases hold more than {} values", self.limits.aliased));
            }
            self.anchors.insert(anchor, (value.clone(), size));
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Map { entries, merged, key, .. }) => match key.take() {
                Some(Key::Name(name)) => {
                    entries.insert(name, value);
                }
                Some(Key::Merge) => merged.push(value),
                None => return Err("a list or map cannot be a key".to_owned()),
            },
        }
        Ok(())
    }
}

/// Adds the entries of a merged map (or list of maps) that the map itself does not have.
fn merge(entries: &mut Map<String, Value>, source: Value) -> Result<(), String> {
    match source {
        Value::Object(map) => {
            for (key, value) in map {
                entries.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(list) => list.into_iter().try_for_each(|item| match item {
            Value::Object(_) => merge(entries, item),
            _ => Err("a merge key (<<) takes a map or a list of maps".to_owned()),
        }),
        _ => Err("a merge key (<<) takes a map or a list of maps".to_owned()),
    }
}

fn scalar_value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let unbounded = || format!("'{text}' has no finite value");
    match tag {
        None if style == ScalarStyle::Plain => scalar::resolve(text).ok_or_else(unbounded),
        None => Ok(Value::String(text.to_owned())),
        Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
            "null" => Ok(Value::Null),
            "bool" => scalar::boolean(text).map(Value::Bool).ok_or_else(|| format!("'{text}' is not a boolean")),
            "int" | "float" => scalar::number(text).ok_or_else(|| format!("'{text}' is not a number")),
            _ => Ok(Value::String(text.to_owned())),
        },
        Some(_) => Ok(Value::String(text.to_owned())),
    }
}

/// Number of values in a value, itself included.
fn size_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size_of).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size_of).sum::<usize>(),
        _ => 1,
    }
}
