//! Error trees as lines for people.

use gwctl_entities::Value;

/// Every message of an error tree with its place; `name` turns the path of keys into what people know.
pub fn lines(tree: &Value, name: &dyn Fn(&[String]) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    collect(tree, &mut Vec::new(), name, &mut lines);
    lines
}

fn collect(tree: &Value, path: &mut Vec<String>, name: &dyn Fn(&[String]) -> String, lines: &mut Vec<String>) {
    let mut below = |key: String, value: &Value| {
        path.push(key);
        collect(value, path, name, lines);
        path.pop();
    };
    match tree {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                below(key.clone(), value);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                below(index.to_string(), value);
            }
        }
        message => {
            let entity: &[_] = match path.iter().position(|key| key == "@entity") {
                Some(at) => &path[..at],
                None => path,
            };
            let place = name(entity);
            let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
            lines.push(if place.is_empty() { message } else { format!("{place}: {message}") });
        }
    }
}
