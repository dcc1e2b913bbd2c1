//! `${{ env "DECK_NAME" | toInt }}`: values of the environment in the text of a file, as decK has them.

use crate::TextError;

const OPEN: &str = "${{";
const CLOSE: &str = "}}";
/// What those need to know who escape the quotes within quotes of YAML.
const ESCAPES: &str = "expressions are replaced before the text is read as YAML, so quotes in them are not escaped; \
                       write '${{ env \"DECK_NAME\" }}'";

/// A text with its expressions replaced.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    /// The text to read.
    pub text: String,
    /// Values that came from the environment, the longest first; they must not be shown.
    pub values: Vec<String>,
    /// Places in both texts, by byte: where each replacement starts and ends.
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    source: (usize, usize),
    rendered: (usize, usize),
}

/// Replaces the expressions of a text. Lines that start with `#` stay as they are. `env` gives the value of a variable.
///
/// Every mistake comes with its place in `source`: names that do not start with `DECK_`, variables that are not set,
/// unknown functions, values that are not what `toBool`, `toInt` or `toFloat` need.
pub fn render(source: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Rendered, Vec<TextError>> {
    let mut rendered = Rendered::default();
    let mut mistakes = Vec::new();
    let mut done = 0;
    while let Some(open) = source[done..].find(OPEN).map(|at| done + at) {
        rendered.text.push_str(&source[done..open]);
        let line = source[..open].rfind('\n').map_or(0, |end| end + 1);
        if source[line..open].trim_start().starts_with('#') {
            rendered.text.push_str(OPEN);
            done = open + OPEN.len();
            continue;
        }
        let inner = open + OPEN.len();
        let close = source[inner..].lines().next().and_then(|line| line.find(CLOSE)).map(|at| inner + at);
        let Some(close) = close else {
            mistakes.push(mistake(source, open, "the expression is not closed by }} on its line"));
            done = inner;
            continue;
        };
        match evaluate(&source[inner..close], env) {
            Ok((value, raw)) => {
                let start = rendered.text.len();
                rendered.text.push_str(&value);
                let (source, target) = ((open, close + CLOSE.len()), (start, rendered.text.len()));
                rendered.pieces.push(Piece { source, rendered: target });
                rendered.values.extend([raw, value]);
            }
            Err(reason) => mistakes.push(mistake(source, open, &reason)),
        }
        done = close + CLOSE.len();
    }
    rendered.text.push_str(&source[done..]);
    if !rendered.pieces.is_empty() && rendered.text.starts_with(' ') {
        mistakes
            .push(TextError { at: Some((1, 1)), reason: "the file begins with a space once it is rendered".into() });
    }
    rendered.values.retain(|value| !value.is_empty());
    rendered.values.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
    rendered.values.dedup();
    if mistakes.is_empty() { Ok(rendered) } else { Err(mistakes) }
}

fn mistake(source: &str, at: usize, reason: &str) -> TextError {
    TextError { at: Some(place_of(source, at)), reason: reason.to_owned() }
}

/// The value of an expression, and the variable as it is set.
fn evaluate(expression: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<(String, String), String> {
    let mut stages = stages(expression)?.into_iter();
    let name = match stages.next().as_deref() {
        Some([function, name]) if function == "env" => name.clone(),
        _ => return Err("expected ${{ env \"DECK_NAME\" }}".to_owned()),
    };
    if !name.starts_with("DECK_") {
        return Err(format!("the environment variable {name:?} must start with DECK_"));
    }
    let raw = env(&name).ok_or_else(|| format!("the environment variable {name} is not set"))?;
    let mut value = raw.clone();
    for stage in stages {
        let stage: Vec<&str> = stage.iter().map(String::as_str).collect();
        // The value is not told: it may be a secret.
        let needs = |what: &str| format!("the value of {name} is not {what}");
        value = match stage.as_slice() {
            ["toBool"] => boolean(&value).ok_or_else(|| needs("a boolean"))?.to_string(),
            ["toInt"] => value.parse::<i64>().map_err(|_| needs("a whole number"))?.to_string(),
            ["toFloat"] => {
                let number: f64 = value.parse().map_err(|_| needs("a number"))?;
                Some(number).filter(|number| number.is_finite()).ok_or_else(|| needs("a number"))?.to_string()
            }
            ["indent", spaces] => {
                let spaces: usize =
                    spaces.parse().ok().filter(|spaces| *spaces <= 1000).ok_or("indent takes a number of spaces")?;
                value.replace('\n', &format!("\n{}", " ".repeat(spaces)))
            }
            _ => {
                return Err(format!(
                    "unknown function {:?}; known are toBool, toInt, toFloat and indent",
                    stage.join(" ")
                ));
            }
        };
    }
    Ok((value, raw))
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The words of a pipeline: quoted ones without their quotes.
fn stages(expression: &str) -> Result<Vec<Vec<String>>, String> {
    let mut stages = vec![Vec::new()];
    let mut rest = expression.trim();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '|' => {
                stages.push(Vec::new());
                rest = rest[1..].trim_start();
                continue;
            }
            '"' | '`' => {
                let (word, after) = rest[1..].split_once(first).ok_or("a quote is not closed")?;
                (word, after)
            }
            _ => rest.split_at(rest.find([' ', '\t', '|']).unwrap_or(rest.len())),
        };
        if !matches!(first, '"' | '`') && word.contains(['"', '\\', '\'']) {
            return Err(format!("{word} is not understood: {ESCAPES}"));
        }
        if let Some(stage) = stages.last_mut() {
            stage.push(word.to_owned());
        }
        rest = after.trim_start();
    }
    Ok(stages)
}

impl Rendered {
    /// Where a place (line and column from 1) of the rendered text stands in `source`. A place inside a value from the
    /// environment is that of its expression.
    pub fn source_place(&self, source: &str, (line, column): (usize, usize)) -> (usize, usize) {
        if self.pieces.is_empty() {
            return (line, column);
        }
        let at = byte_of(&self.text, line, column);
        let at = match self.pieces.iter().rev().find(|piece| piece.rendered.0 <= at) {
            None => at,
            Some(piece) if at < piece.rendered.1 => piece.source.0,
            Some(piece) => piece.source.1 + (at - piece.rendered.1),
        };
        place_of(source, at)
    }
}

/// Line and column, from 1, of a byte.
fn place_of(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}

/// The byte at a line and column; the end of the text when there is none.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let start = if line <= 1 { Some(0) } else { text.match_indices('\n').nth(line - 2).map(|(at, _)| at + 1) };
    let Some(start) = start else { return text.len() };
    let of_line = text[start..].char_indices().nth(column.saturating_sub(1));
    of_line.map_or(text.len(), |(at, _)| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "DECK_HOST" => Some("h.example".to_owned()),
            "DECK_PORT" => Some("8080".to_owned()),
            "DECK_ON" => Some("T".to_owned()),
            "DECK_PEM" => Some("one\ntwo".to_owned()),
            _ => None,
        }
    }

    fn reasons(source: &str) -> Vec<String> {
        render(source, &env).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn expressions_become_values_of_the_environment() {
        let source = "host: ${{ env \"DECK_HOST\" }}\nport: ${{env `DECK_PORT` | toInt}}\non: ${{ env \"DECK_ON\" | toBool }}\n\
            w: ${{ env \"DECK_PORT\" | toFloat }}\npem: |\n  ${{ env \"DECK_PEM\" | indent 2 }}\n";
        let rendered = render(source, &env).unwrap();
        assert_eq!(rendered.text, "host: h.example\nport: 8080\non: true\nw: 8080\npem: |\n  one\n  two\n");
        assert_eq!(rendered.values, ["h.example", "one\n  two", "one\ntwo", "8080", "true", "T"]);
    }

    #[test]
    fn comments_stay_and_other_braces_too() {
        let source = "  # ${{ env \"DECK_NONE\" }}\na: ${x}\nb: \"{{ y }}\"\n";
        assert_eq!(render(source, &env).unwrap().text, source);
    }

    #[test]
    fn every_mistake_is_told_with_its_place_and_without_the_value() {
        let source = "a: ${{ env \"HOME\" }}\nb: ${{ env \"DECK_NONE\" }}\nc: ${{ env \"DECK_HOST\" | toInt }}\n\
            d: ${{ file \"x\" }}\ne: ${{ env \"DECK_HOST\" | upper }}\nf: ${{ env \"DECK_HOST\"\n";
        let told = reasons(source);
        assert_eq!(told.len(), 6, "{told:?}");
        assert_eq!(told[0], "1:4: the environment variable \"HOME\" must start with DECK_");
        assert_eq!(told[1], "2:4: the environment variable DECK_NONE is not set");
        assert_eq!(told[2], "3:4: the value of DECK_HOST is not a whole number");
        assert!(told.iter().all(|line| !line.contains("h.example")), "{told:?}");
        assert!(
            reasons("${{ env \"DECK_EMPTY\" }} x: 1").len() == 1 && reasons(" ${{ env `DECK_HOST` }}: 1").len() == 1
        );
    }

    #[test]
    fn quotes_that_are_escaped_are_told_how_they_are_written() {
        for source in
            [r#"a: "${{ env \"DECK_HOST\" }}""#, "a: ${{ env 'DECK_HOST' }}", r#"a: ${{ env "DECK_HOST" | \"x }}"#]
        {
            let told = reasons(source);
            assert!(told.len() == 1 && told[0].ends_with("write '${{ env \"DECK_NAME\" }}'"), "{told:?}");
        }
    }

    #[test]
    fn places_lead_back_to_the_source() {
        let source = "pem: |\n  ${{ env \"DECK_PEM\" | indent 2 }}\nx: [${{ env \"DECK_HOST\" }}, y]\n";
        let rendered = render(source, &env).unwrap();
        assert_eq!(rendered.source_place(source, (1, 1)), (1, 1));
        assert_eq!(rendered.source_place(source, (3, 3)), (2, 3));
        assert_eq!(rendered.source_place(source, (4, 5)), (3, 5));
        assert_eq!(rendered.source_place(source, (4, 16)), (3, 29));
        assert_eq!(rendered.source_place(source, (99, 1)), (4, 1));
    }
}
