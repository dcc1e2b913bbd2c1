//! The head of a document and the conversion of older format versions.

use super::walk::{Fault, annotations};
use gwctl_entities::{Map, Record, Value};
use std::fmt::Write;

/// What the members beside the entities say.
pub(crate) struct Head {
    /// Passwords are to be hashed, digests made.
    pub(crate) transform: bool,
    /// Paths follow the rules before 3.0.
    pub(crate) old_paths: bool,
}

/// Takes the `_` members out of a document. Errors go to `faults`.
pub(crate) fn head(document: &mut Record, faults: &mut Map<String, Value>) -> Head {
    let mut fault = Fault::None;
    annotations(document, &mut fault);
    let version = document.remove("_format_version").unwrap_or(Value::Null);
    let wrong = match &version {
        Value::Null => Some("required field missing"),
        Value::String(text) if matches!(text.as_str(), "1.1" | "2.1" | "3.0") => None,
        Value::String(_) => Some("expected one of: 1.1, 2.1, 3.0"),
        _ => Some("expected a string"),
    };
    if let Some(text) = wrong {
        fault.fields().insert("_format_version".to_owned(), Value::from(text));
    }
    let transform = match document.remove("_transform") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(transform)) => transform,
        Some(_) => {
            fault.fields().insert("_transform".to_owned(), Value::from("expected a boolean"));
            true
        }
    };
    if let Fault::Fields(fields) = fault {
        faults.extend(fields);
    }
    Head { transform, old_paths: matches!(version.as_str(), Some("1.1" | "2.1")) }
}

/// Converts the paths of routes at the top and directly below services to the rules of 3.0.
pub(crate) fn convert_paths(document: &mut Record) {
    each_record(document.get_mut("routes"), &mut convert_route);
    each_record(document.get_mut("services"), &mut |service| {
        each_record(service.get_mut("routes"), &mut convert_route)
    });
}

fn each_record(list: Option<&mut Value>, act: &mut dyn FnMut(&mut Record)) {
    let records = list.and_then(Value::as_array_mut).into_iter().flatten();
    records.filter_map(Value::as_object_mut).for_each(act);
}

fn convert_route(route: &mut Record) {
    for path in route.get_mut("paths").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::String(text) = path {
            *text = converted(text);
        }
    }
}

/// A regular expression gets its mark `~`; a plain path is normalised.
fn converted(path: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_~/%".contains(letter);
    if path.chars().all(plain) { without_dots(&decoded(path)) } else { format!("~{path}") }
}

/// Undoes percent-encoding where that does not change the meaning, upper-cases the rest.
fn decoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        rest = &rest[at + code.map_or(1, |_| 3)..];
        match code {
            None => out.push('%'),
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => out.push(char::from(byte)),
            // Writing to a String cannot fail.
            Some(byte) => drop(write!(out, "%{byte:02X}")),
        }
    }
    out.push_str(rest);
    out
}

/// Removes `.` and `..` segments and repeated slashes.
fn without_dots(path: &str) -> String {
    if !path.starts_with('/') {
        return path.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let open = segments.last().is_some_and(|last| matches!(*last, "" | "." | ".."));
    for segment in segments {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    let body = kept.join("/");
    if open && !body.is_empty() { format!("/{body}/") } else { format!("/{body}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn old_paths_become_marked_regular_expressions_or_normal_paths() {
        for (before, after) in [
            ("/a", "/a"),
            ("/a/\\d+", "~/a/\\d+"),
            ("/a(b|c)", "~/a(b|c)"),
            ("/%61/b", "/a/b"),
            ("/a%2fb", "/a%2Fb"),
            ("/a//b/../c/", "/a/c/"),
            ("/a%", "/a%"),
            ("/", "/"),
        ] {
            assert_eq!(converted(before), after, "{before}");
        }
    }

    #[test]
    fn routes_are_converted_at_the_top_and_below_services_only() {
        let mut document = json!({
            "routes": [{"paths": ["/a+"]}, 5],
            "services": [{"routes": [{"paths": ["/b+"]}]}],
            "certificates": [{"services": [{"routes": [{"paths": ["/c+"]}]}]}],
        });
        convert_paths(document.as_object_mut().unwrap());
        assert_eq!(document["routes"][0]["paths"][0], "~/a+");
        assert_eq!(document["services"][0]["routes"][0]["paths"][0], "~/b+");
        assert_eq!(document["certificates"][0]["services"][0]["routes"][0]["paths"][0], "/c+");
    }
}
