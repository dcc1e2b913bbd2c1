//! Declarative files to one document.

use super::mistakes;
use crate::failure::Failure;
use gwctl_declarative::{Limits, TextForm, parse};
use gwctl_entities::{Map, Value};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What the files say together.
#[derive(Debug, Default)]
pub struct Document {
    /// One document, lists of the same entity joined.
    pub value: Map<String, Value>,
    /// `_info.select_tags` of decK.
    pub select_tags: Vec<String>,
    /// Things in the files that have no effect.
    pub warnings: Vec<String>,
    /// Per entity: the file of each element, in order.
    origins: BTreeMap<String, Vec<String>>,
}

/// Reads files, folders of `*.yaml`, `*.yml` and `*.json`, and `-` for stdin. All mistakes of all files at once.
pub fn read(paths: &[PathBuf]) -> Result<Document, Failure> {
    let mut document = Document::default();
    let mut mistakes = Vec::new();
    for path in expand(paths)? {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        let text = text(&path, &name)?;
        let form = TextForm::of_file(&name).unwrap_or(TextForm::Auto);
        match parse(&text, form, &Limits::default()) {
            Err(error) => mistakes.push(match error.at {
                Some((line, column)) => format!("{name}:{line}:{column}: {}", error.reason),
                None => format!("{name}: {}", error.reason),
            }),
            Ok(Value::Object(value)) => document.add(&name, value, &mut mistakes),
            Ok(Value::Null) => mistakes.push(format!("{name}: the file is empty")),
            Ok(_) => mistakes.push(format!("{name}: expected a map of entities at the top")),
        }
    }
    if mistakes.is_empty() { Ok(document) } else { Err(refused(&mistakes)) }
}

/// The failure that lists the mistakes of files.
pub fn refused(mistakes: &[String]) -> Failure {
    let count = mistakes.len();
    let mut text =
        format!("{count} {} in the files, nothing was sent", if count == 1 { "mistake" } else { "mistakes" });
    for mistake in mistakes {
        text += &format!("\n  {}", gwctl_tui::format::plain(mistake));
    }
    Failure::new(text)
}

fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| unreadable(&path.display().to_string(), &error))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.retain(|file| file.is_file() && TextForm::of_file(&file.display().to_string()).is_some());
        found.sort();
        if found.is_empty() {
            return Err(Failure::new(format!("no .yaml, .yml or .json file in the folder {}", path.display())));
        }
        files.extend(found);
    }
    Ok(files)
}

fn text(path: &Path, name: &str) -> Result<String, Failure> {
    let read = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    Failure::because(format!("cannot read {name}"), error).hint("-f takes a file, a folder of files, or - for stdin")
}

impl Document {
    /// Joins one file.
    fn add(&mut self, name: &str, mut value: Map<String, Value>, mistakes: &mut Vec<String>) {
        self.take_deck_members(name, &mut value, mistakes);
        for (member, value) in value {
            let joined = self.value.entry(member.clone()).or_insert(Value::Null);
            match (joined, value) {
                (slot @ Value::Null, value) => {
                    let count = value.as_array().map_or(0, Vec::len);
                    self.origins.entry(member).or_default().extend(std::iter::repeat_n(name.to_owned(), count));
                    *slot = value;
                }
                (Value::Array(list), Value::Array(more)) => {
                    self.origins.entry(member).or_default().extend(std::iter::repeat_n(name.to_owned(), more.len()));
                    list.extend(more);
                }
                (_, Value::Null) => {}
                (slot, value) if *slot == value => {}
                (slot, value) => mistakes.push(format!("{name}: {member} is {value}, but {slot} in a file before")),
            }
        }
    }

    /// Members that decK writes beside the entities.
    fn take_deck_members(&mut self, name: &str, value: &mut Map<String, Value>, mistakes: &mut Vec<String>) {
        if let Some(Value::Object(info)) = value.remove("_info") {
            let tags = info.get("select_tags").and_then(Value::as_array).into_iter().flatten();
            for tag in tags.filter_map(Value::as_str) {
                if !self.select_tags.iter().any(|known| known == tag) {
                    self.select_tags.push(tag.to_owned());
                }
            }
            if info.contains_key("defaults") {
                self.warnings.push(format!("{name}: _info.defaults has no effect"));
            }
        }
        match value.remove("_workspace") {
            None | Some(Value::Null) => {}
            Some(Value::String(workspace)) if workspace == "default" => {}
            Some(workspace) => mistakes.push(format!("{name}: _workspace is {workspace}, only \"default\" exists")),
        }
        if value.remove("_konnect").is_some() {
            self.warnings.push(format!("{name}: _konnect has no effect"));
        }
    }

    /// The mistakes of an error tree, each with its file and the names of what it is in.
    pub fn mistakes(&self, fields: &Map<String, Value>) -> Vec<String> {
        mistakes::lines(&Value::Object(fields.clone()), &|path| self.place(path))
    }

    /// `conf/routes.yaml: services[0] "orders" routes[1]: paths`.
    fn place(&self, path: &[String]) -> String {
        let mut text = String::new();
        let index = path.get(1).and_then(|index| index.parse::<usize>().ok());
        if let (Some(entity), Some(index)) = (path.first(), index)
            && let Some(file) = self.origins.get(entity).and_then(|files| files.get(index))
        {
            text += &format!("{file}: ");
        }
        let mut at = path.first().and_then(|member| self.value.get(member));
        for (position, key) in path.iter().enumerate() {
            let index = key.parse::<usize>().ok().filter(|_| position > 0);
            if position > 0 {
                at = at.and_then(|value| index.map_or_else(|| value.get(key), |index| value.get(index)));
            }
            match index {
                Some(index) => text += &format!("[{index}]"),
                None if position == 0 => text += key,
                None => text += &format!(".{key}"),
            }
            let named = ["name", "username", "target"].into_iter().find_map(|field| at?.get(field)?.as_str());
            if let (Some(_), Some(name)) = (index, named) {
                text += &format!(" {name:?} ");
            }
        }
        text.replace(" .", " ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use serde_json::json;

    fn added(files: &[(&str, Value)]) -> (Document, Vec<String>) {
        let (mut document, mut mistakes) = (Document::default(), Vec::new());
        for (name, value) in files {
            document.add(name, value.as_object().unwrap().clone(), &mut mistakes);
        }
        (document, mistakes)
    }

    #[test]
    fn files_are_joined_and_mistakes_name_theirs() {
        let (document, mistakes) = added(&[
            ("a.yaml", json!({"_format_version": "3.0", "services": [{"name": "one"}]})),
            ("b.yaml", json!({"_format_version": "3.0", "services": [{"name": "two", "routes": [{"name": "r"}]}]})),
        ]);
        assert_eq!(mistakes, Vec::<String>::new());
        let fields = json!({"services": [null, {"routes": [{"paths": ["bad"], "@entity": ["no"]}]}]});
        assert_eq!(
            document.mistakes(fields.as_object().unwrap()),
            [
                "b.yaml: services[1] \"two\" routes[0] \"r\": no",
                "b.yaml: services[1] \"two\" routes[0] \"r\" paths[0]: bad",
            ]
        );
    }

    #[test]
    fn what_deck_writes_beside_the_entities_is_understood() {
        let (document, mistakes) = added(&[
            ("a.yaml", json!({"_info": {"select_tags": ["team"], "defaults": {}}, "_workspace": "default"})),
            ("b.yaml", json!({"_workspace": "other"})),
        ]);
        assert_eq!(document.select_tags, ["team"]);
        assert_eq!((document.warnings.len(), mistakes.len(), document.value.len()), (1, 1, 0));
    }

    #[test]
    fn files_that_contradict_each_other_are_refused() {
        let (_, mistakes) = added(&[("a.yaml", json!({"_transform": true})), ("b.yaml", json!({"_transform": false}))]);
        assert_eq!(mistakes, ["b.yaml: _transform is false, but true in a file before"]);
    }
}
