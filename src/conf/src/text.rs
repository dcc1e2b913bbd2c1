//! The text of a `kong.conf`.

use crate::problem::{Origin, Problem};

/// One setting of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) line: usize,
}

/// Reads lines of the form `key = value`.
///
/// `#` begins a comment, `\#` is the sign itself; a backslash at the end of a line joins the next one; quotes around a
/// whole value are removed and protect what is inside.
pub(crate) fn parse(name: &str, text: &str, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (line, content) in joined(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        match content.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((key, value)) if !key.is_empty() => {
                entries.push(Entry { key: key.into(), value: unquoted(value), line });
            }
            _ => {
                let origin = Origin::File { name: name.into(), line };
                // The line may hold a secret, so only its first word is repeated.
                let word = content.split_whitespace().next().unwrap_or_default();
                problems.push(Problem::new(word, None, &origin, "expected `key = value`"));
            }
        }
    }
    entries
}

/// Lines with their number, continued lines joined.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let continues = line.ends_with('\\') && !line.trim_start().starts_with('#');
        let content = if continues { &line[..line.len() - 1] } else { line };
        match lines.last_mut() {
            Some((_, last)) if open => last.push_str(content.trim_start()),
            _ => lines.push((index + 1, content.to_owned())),
        }
        open = continues;
    }
    lines
}

fn unquoted(value: &str) -> String {
    if let Some(quote) = value.chars().next().filter(|first| matches!(first, '"' | '\'')) {
        let inner = &value[1..];
        if let Some(end) = inner.find(quote) {
            let rest = inner[end + 1..].trim_start();
            if rest.is_empty() || rest.starts_with('#') {
                return inner[..end].to_owned();
            }
        }
    }
    without_comment(value)
}

fn without_comment(value: &str) -> String {
    let mut kept = String::with_capacity(value.len());
    let mut signs = value.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' if signs.peek() == Some(&'#') => kept.extend(signs.next()),
            '#' => break,
            sign => kept.push(sign),
        }
    }
    kept.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(String, String, usize)> {
        let mut problems = Vec::new();
        let entries = parse("kong.conf", text, &mut problems);
        assert_eq!(problems, []);
        entries.into_iter().map(|entry| (entry.key, entry.value, entry.line)).collect()
    }

    #[test]
    fn comments_quotes_and_continued_lines_are_read() {
        let text = "# a comment\n\nrole = data_plane # note\r\npg_password = a\\#b\nprefix='/a # b'  # c\nplugins = bundled,\\\n  my-plugin\nempty =\n";
        let expected = [
            ("role", "data_plane", 3),
            ("pg_password", "a#b", 4),
            ("prefix", "/a # b", 5),
            ("plugins", "bundled,my-plugin", 6),
            ("empty", "", 8),
        ];
        assert_eq!(values(text), expected.map(|(key, value, line)| (key.into(), value.into(), line)));
    }

    #[test]
    fn every_line_that_is_no_setting_is_reported_without_its_content() {
        let mut problems = Vec::new();
        parse("c", "role data_plane\n= x\npg_password hunter2", &mut problems);
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "role (c:1): expected `key = value`",
                "= (c:2): expected `key = value`",
                "pg_password (c:3): expected `key = value`"
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC*|([a-z=#'\"\\\\ \n]{0,60})") {
            parse("c", &text, &mut Vec::new());
        }
    }
}
