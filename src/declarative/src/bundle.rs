//! Several files as one document, and where in them its values stand.

#[cfg(test)]
mod tests;

use crate::deck::{self, Head, Rendered};
use crate::secret::{is_secret, names_a_secret};
use crate::text::locate::{Place, locate};
use crate::{Limits, Mistake, TextError, TextForm, parse};
use gwctl_entities::{Record, Value};
use std::collections::BTreeMap;

/// Longest piece of a line that is shown with a mistake.
const LONGEST: usize = 120;

/// A file as it was read.
#[derive(Debug, Clone)]
struct Source {
    name: String,
    text: String,
    rendered: Rendered,
}

/// What files say together: one document in Kong's form.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// The document; lists of the same entity are joined in the order of the files.
    pub document: Record,
    /// What decK's members say.
    pub head: Head,
    /// Members without effect, each with its file.
    pub warnings: Vec<String>,
    sources: Vec<Source>,
    /// Per member the files it comes from, with the number of elements.
    spans: BTreeMap<String, Vec<(usize, usize)>>,
}

/// A mistake with its place, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// File; None when it is not known which.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
    /// The line, or the part of it around the column, and where in that part the mistake stands (from 0) and how wide
    /// it is. None when the line may show a secret.
    pub excerpt: Option<(String, usize, usize)>,
    /// JSON pointer in the file.
    pub pointer: String,
    /// What it is in, in words: `services[0] "orders" routes[1] paths[0]`.
    pub object: String,
    /// What is wrong.
    pub message: String,
}

impl Bundle {
    /// Reads files (name and text): renders expressions, joins lists, takes decK's members. `env` gives the value of a
    /// variable. All mistakes of all files at once.
    pub fn read(
        files: Vec<(String, String)>,
        env: &dyn Fn(&str) -> Option<String>,
        limits: &Limits,
    ) -> Result<Bundle, Vec<Finding>> {
        let mut bundle = Bundle::default();
        let mut findings = Vec::new();
        for (name, text) in files {
            match bundle.add(name, text, env, limits) {
                Ok(mistakes) => {
                    let source = bundle.sources.len() - 1;
                    findings.extend(bundle.find_in(source, &mistakes));
                }
                Err(errors) => findings.extend(errors),
            }
        }
        if findings.is_empty() {
            let mistakes = deck::settle(&mut bundle.document, &bundle.head);
            findings = bundle.find(&mistakes);
        }
        if findings.is_empty() { Ok(bundle) } else { Err(findings) }
    }

    /// Values that came from the environment and must not be shown; the longest first.
    pub fn environment_values(&self) -> Vec<String> {
        let mut values: Vec<String> =
            self.sources.iter().flat_map(|source| source.rendered.values.iter().cloned()).collect();
        values.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
        values.dedup();
        values
    }

    /// Adds one file; the mistakes in its members, or why it cannot be read.
    fn add(
        &mut self,
        name: String,
        text: String,
        env: &dyn Fn(&str) -> Option<String>,
        limits: &Limits,
    ) -> Result<Vec<Mistake>, Vec<Finding>> {
        let rendered = deck::render(&text, env).map_err(|errors| {
            errors.into_iter().map(|error| unreadable(&name, &text, None, error)).collect::<Vec<_>>()
        })?;
        let form = TextForm::of_file(&name).unwrap_or(TextForm::Auto);
        let source = Source { name, text, rendered };
        let wrong = |reason: &str| TextError { at: None, reason: reason.to_owned() };
        let value = parse(&source.rendered.text, form, limits).and_then(|value| match value {
            Value::Object(value) => Ok(value),
            Value::Null => Err(wrong("the file is empty")),
            _ => Err(wrong("expected a map of entities at the top")),
        });
        let mut value =
            value.map_err(|error| vec![unreadable(&source.name, &source.text, Some(&source.rendered), error)])?;
        let idle = self.head.idle.len();
        let mut mistakes = deck::refuse_foreign(&value);
        for mistake in &mistakes {
            if let [member] = mistake.path.as_slice() {
                value.remove(member);
            }
        }
        mistakes.extend(deck::take_head(&mut value, &mut self.head));
        self.warnings
            .extend(self.head.idle[idle..].iter().map(|member| format!("{}: {member} has no effect", source.name)));
        self.sources.push(source);
        mistakes.extend(self.join(value));
        Ok(mistakes)
    }

    fn join(&mut self, value: Record) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let source = self.sources.len() - 1;
        for (member, value) in value {
            let spans = self.spans.entry(member.clone()).or_default();
            let joined = self.document.entry(member.clone()).or_insert(Value::Null);
            match (joined, value) {
                (Value::Array(list), Value::Array(more)) => {
                    spans.push((source, more.len()));
                    list.extend(more);
                }
                (slot @ Value::Null, value) => {
                    spans.push((source, value.as_array().map_or(0, Vec::len)));
                    *slot = value;
                }
                (_, Value::Null) => {}
                (slot, value) if *slot == value => {}
                (slot, value) => mistakes.push(Mistake::value(
                    vec![member],
                    format!("{} here, but {} in a file before", brief(&value), brief(slot)),
                )),
            }
        }
        mistakes
    }

    /// Where mistakes of the joined document stand.
    pub fn find(&self, mistakes: &[Mistake]) -> Vec<Finding> {
        let mut by_source: BTreeMap<usize, Vec<(usize, Mistake)>> = BTreeMap::new();
        let mut findings: Vec<Option<Finding>> = Vec::new();
        for (position, mistake) in mistakes.iter().enumerate() {
            findings.push(None);
            match self.source_of(&mistake.path) {
                Some((source, path)) => {
                    by_source.entry(source).or_default().push((position, Mistake { path, ..mistake.clone() }));
                }
                None => findings[position] = Some(self.without_file(mistake)),
            }
        }
        for (source, list) in by_source {
            let (positions, local): (Vec<usize>, Vec<Mistake>) = list.into_iter().unzip();
            for (position, finding) in positions.into_iter().zip(self.find_in(source, &local)) {
                findings[position] = Some(finding);
            }
        }
        findings.into_iter().flatten().collect()
    }

    /// The file a path leads into, and the path in that file.
    fn source_of(&self, path: &[String]) -> Option<(usize, Vec<String>)> {
        let spans = path.first().and_then(|member| self.spans.get(member));
        let Some(spans) = spans else {
            // Something is missing as a whole: of one file that is clear.
            return (self.sources.len() == 1).then(|| (0, path.to_vec()));
        };
        let Some(mut position) = path.get(1).and_then(|step| step.parse::<usize>().ok()) else {
            return spans.first().map(|(source, _)| (*source, path.to_vec()));
        };
        for (source, count) in spans {
            if position < *count {
                let mut path = path.to_vec();
                path[1] = position.to_string();
                return Some((*source, path));
            }
            position -= count;
        }
        None
    }

    fn without_file(&self, mistake: &Mistake) -> Finding {
        Finding {
            file: None,
            line: None,
            column: None,
            excerpt: None,
            pointer: pointer(&mistake.path),
            object: object(&mistake.path, &Value::Object(self.document.clone())),
            message: mistake.message.clone(),
        }
    }

    fn find_in(&self, source: usize, mistakes: &[Mistake]) -> Vec<Finding> {
        if mistakes.is_empty() {
            return Vec::new();
        }
        let source = &self.sources[source];
        let paths: Vec<Vec<String>> = mistakes.iter().map(|mistake| mistake.path.clone()).collect();
        let places = locate(&source.rendered.text, &paths);
        let form = TextForm::of_file(&source.name).unwrap_or(TextForm::Auto);
        let document = parse(&source.rendered.text, form, &Limits::default()).unwrap_or_default();
        let each = mistakes.iter().zip(places);
        each.map(|(mistake, place)| Finding {
            pointer: pointer(&mistake.path),
            object: object(&mistake.path, &document),
            ..source.finding(mistake, place)
        })
        .collect()
    }
}

impl Source {
    fn finding(&self, mistake: &Mistake, place: Option<Place>) -> Finding {
        let at = place.map(|place| self.rendered.source_place(&self.text, (place.line, place.column)));
        let secret = mistake.path.last().is_some_and(|name| is_secret(None, name));
        let width = place.map_or(1, |place| place.width);
        Finding {
            file: Some(self.name.clone()),
            line: at.map(|at| at.0),
            column: at.map(|at| at.1),
            excerpt: at.filter(|_| !secret).and_then(|at| excerpt(&self.text, at, width)),
            pointer: String::new(),
            object: String::new(),
            message: mistake.message.clone(),
        }
    }
}

fn unreadable(name: &str, text: &str, rendered: Option<&Rendered>, error: TextError) -> Finding {
    let at = error.at.map(|at| rendered.map_or(at, |rendered| rendered.source_place(text, at)));
    Finding {
        file: Some(name.to_owned()),
        line: at.map(|at| at.0),
        column: at.map(|at| at.1),
        excerpt: at.and_then(|at| excerpt(text, at, 1)),
        pointer: String::new(),
        object: String::new(),
        message: error.reason,
    }
}

/// The part of a line to show; None when the line names a secret.
fn excerpt(text: &str, (line, column): (usize, usize), width: usize) -> Option<(String, usize, usize)> {
    let line = text.lines().nth(line.checked_sub(1)?)?.trim_end();
    if line.trim().is_empty() || names_a_secret(line) {
        return None;
    }
    let letters: Vec<char> = line.chars().map(|letter| if letter == '\t' { ' ' } else { letter }).collect();
    let at = column.saturating_sub(1).min(letters.len());
    let start = if letters.len() <= LONGEST { 0 } else { at.saturating_sub(LONGEST / 3) };
    let end = letters.len().min(start + LONGEST);
    let shown: String = letters[start..end].iter().collect();
    Some((shown, at - start, width.clamp(1, (end - at).max(1))))
}

/// A value in a few characters.
fn brief(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
        scalar => scalar.to_string().chars().take(60).collect(),
    }
}

fn pointer(path: &[String]) -> String {
    path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
}

/// `services[0] "orders" routes[1] paths[0]`.
fn object(path: &[String], document: &Value) -> String {
    let mut text = String::new();
    let mut at = Some(document);
    for (depth, step) in path.iter().enumerate() {
        let list = at.is_some_and(Value::is_array);
        let position = step.parse::<usize>().ok().filter(|_| list || (depth > 0 && at.is_none()));
        at = at.and_then(|value| position.map_or_else(|| value.get(step), |position| value.get(position)));
        match position {
            Some(position) => text += &format!("[{position}]"),
            None if text.is_empty() || text.ends_with(' ') => text += step,
            None => text += &format!(".{step}"),
        }
        let named = ["name", "username", "target", "prefix"].into_iter().find_map(|field| at?.get(field)?.as_str());
        if let (Some(_), Some(name)) = (position, named) {
            text += &format!(" {name:?} ");
        }
    }
    text.trim_end().to_owned()
}
