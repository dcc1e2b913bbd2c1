//! A plan as text and as JSON, secrets masked.

use crate::plan::referred;
use crate::secret::{MASK, shown};
use crate::{Action, Change, Operation, Plan};
use gwctl_entities::Value;
use serde_json::json;
use std::fmt::Write;

/// Longest value shown in full.
const LONG: usize = 60;

/// So many of what is left are named, of more only the numbers are told.
const NAMED: usize = 5;

impl Plan {
    /// One block per operation (`+ create`, `~ change`, `- delete`), then counts, warnings and what was left.
    pub fn to_text(&self) -> String {
        self.text(false)
    }

    /// [`Plan::to_text`] of what was done already.
    pub fn to_past_text(&self) -> String {
        self.text(true)
    }

    fn text(&self, done: bool) -> String {
        let mut out = String::new();
        for operation in &self.operations {
            out.push_str(&self.operation_text(operation));
        }
        for warning in &self.warnings {
            line(&mut out, &format!("! {warning}"));
        }
        if !out.is_empty() {
            out.push('\n');
        }
        line(&mut out, &self.counts(done));
        if !self.left.is_empty() {
            line(&mut out, &format!("{} left as they are (not in the file): {}", self.left.len(), self.left_over()));
        }
        out
    }

    fn counts(&self, done: bool) -> String {
        if self.is_empty() {
            return "no differences".to_owned();
        }
        let count = |action| self.count(action);
        let (create, change, delete) = (count(Action::Create), count(Action::Update), count(Action::Delete));
        match done {
            false => format!("{create} to create, {change} to change, {delete} to delete"),
            true => format!("{create} created, {change} changed, {delete} deleted"),
        }
    }

    /// Object with `version`, `operations`, `summary`, `left` and `warnings`; secrets masked.
    pub fn to_json(&self) -> Value {
        let left = self.left.iter().map(|(entity, name)| json!({"entity": entity, "name": name}));
        json!({
            "version": 1,
            "operations": self.operations.iter().map(|operation| self.operation_json(operation)).collect::<Vec<_>>(),
            "summary": {
                "create": self.count(Action::Create),
                "change": self.count(Action::Update),
                "delete": self.count(Action::Delete),
                "total": self.operations.len(),
            },
            "left": left.collect::<Vec<_>>(),
            "warnings": self.warnings,
        })
    }

    /// A few by name, many by kind.
    fn left_over(&self) -> String {
        if self.left.len() <= NAMED {
            let names: Vec<String> = self.left.iter().map(|(entity, name)| format!("{entity} {name}")).collect();
            return names.join(", ");
        }
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for (entity, _) in &self.left {
            match counts.iter_mut().find(|(known, _)| known == entity) {
                Some((_, count)) => *count += 1,
                None => counts.push((entity, 1)),
            }
        }
        let counts: Vec<String> = counts.iter().map(|(entity, count)| format!("{count} {entity}")).collect();
        counts.join(", ")
    }

    fn operation_text(&self, operation: &Operation) -> String {
        let (sign, word) = sign(operation.action);
        let mut out = format!("{sign} {word} {}", operation.entity);
        // The id of what is not there yet tells nobody anything.
        if operation.action != Action::Create || operation.name != operation.id {
            let _ = write!(out, " {}", operation.name);
        }
        if let Some(parent) = &operation.parent {
            // Writing to a String cannot fail.
            let _ = write!(out, " ({} {})", parent.entity, parent.name);
        }
        out.push('\n');
        let parent = operation.parent.as_ref().map(|parent| parent.id.as_str());
        for change in &operation.changes {
            // The line above said it.
            if operation.action == Action::Create && parent.is_some() && referred(&change.after) == parent {
                continue;
            }
            line(&mut out, &format!("    {}", self.change_text(operation.action, change)));
        }
        out
    }

    fn change_text(&self, action: Action, change: &Change) -> String {
        let after = shown(&change.after, change.secret);
        if action == Action::Create {
            return format!("{}: {}", change.field, self.short(&after));
        }
        let before = shown(&change.before, change.secret);
        if change.secret && before == after {
            return format!("{}: {MASK} (changed)", change.field);
        }
        match (&before, &after) {
            (Value::Array(old), Value::Array(new)) => format!("{}: {}", change.field, elements(old, new)),
            (Value::String(old), Value::String(new)) if old.len() > LONG || new.len() > LONG => {
                format!("{}: {}", change.field, inside(old, new))
            }
            _ => format!("{}: {} -> {}", change.field, self.short(&before), self.short(&after)),
        }
    }

    /// A value in one line; what refers to a record by its name.
    fn short(&self, value: &Value) -> String {
        match referred(value) {
            Some(id) => self.names.get(id).map_or(id, String::as_str).to_owned(),
            None => short(value),
        }
    }

    fn operation_json(&self, operation: &Operation) -> Value {
        let change = |change: &Change| {
            let mut told = json!({
                "field": change.field,
                "before": shown(&change.before, change.secret),
                "after": shown(&change.after, change.secret),
                "secret": change.secret,
            });
            for (member, value) in [("before_name", &change.before), ("after_name", &change.after)] {
                if let Some(name) = referred(value).and_then(|id| self.names.get(id)) {
                    told[member] = Value::from(name.as_str());
                }
            }
            told
        };
        json!({
            "action": sign(operation.action).1,
            "entity": operation.entity,
            "id": operation.id,
            "name": operation.name,
            "parent": operation.parent,
            "changes": operation.changes.iter().map(change).collect::<Vec<_>>(),
        })
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn sign(action: Action) -> (&'static str, &'static str) {
    match action {
        Action::Create => ("+", "create"),
        Action::Update => ("~", "change"),
        Action::Delete => ("-", "delete"),
    }
}

/// Elements that go and come.
fn elements(old: &[Value], new: &[Value]) -> String {
    let gone = old.iter().filter(|value| !new.contains(value)).map(|value| format!("-{}", short(value)));
    let come = new.iter().filter(|value| !old.contains(value)).map(|value| format!("+{}", short(value)));
    let parts: Vec<String> = gone.chain(come).collect();
    if parts.is_empty() { "same elements in another order or number".to_owned() } else { parts.join(" ") }
}

/// The part of two long texts that differs, whole words.
fn inside(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive(char::is_whitespace).collect();
    let new: Vec<&str> = new.split_inclusive(char::is_whitespace).collect();
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let part = |words: &[&str]| short(&Value::from(words[..words.len() - end].concat().trim_end()));
    let (left, right) = (if start > 0 { "... " } else { "" }, if end > 0 { " ..." } else { "" });
    format!("{left}[{} -> {}]{right}", part(old), part(new))
}

/// A value in one line, cut when long.
fn short(value: &Value) -> String {
    let text = if value.as_str() == Some(MASK) { MASK.to_owned() } else { value.to_string() };
    if text.chars().count() <= LONG {
        return text;
    }
    let head: String = text.chars().take(LONG).collect();
    format!("{head}... ({} characters)", text.chars().count())
}
