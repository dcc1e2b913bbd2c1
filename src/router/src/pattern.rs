//! Regular expressions of routes.

use std::sync::OnceLock;

/// A regular expression of a route.
///
/// Compiling one takes far longer than checking its syntax, so a plain one is compiled at its first use.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    source: Box<str>,
    /// None inside: it could not be compiled after all, and never matches.
    engine: OnceLock<Option<Engine>>,
}

/// Linear-time where the syntax allows it, else backtracking with a limit.
#[derive(Debug, Clone)]
enum Engine {
    Linear(regex::Regex),
    Backtracking(fancy_regex::Regex),
}

/// Steps after which a backtracking expression counts as not matching.
const BACKTRACK_LIMIT: usize = 100_000;

/// Longest expression that is compiled at first use only; short of it no plain one outgrows the compiler's limits.
const PLAIN_LENGTH: usize = 256;

/// A part of a text: start and end in bytes.
pub(crate) type Span = (usize, usize);

/// Groups of a match by name (None: by number only), with the text they took.
pub(crate) type Groups<'p, 'q> = Vec<(Option<&'p str>, Option<&'q str>)>;

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.source == other.source
    }
}

impl Pattern {
    /// Takes `source` in without the syntax that needs backtracking; the error is the compiler's own, over several lines.
    pub(crate) fn strict(source: &str) -> Result<Self, String> {
        let engine = if is_plain(source) {
            OnceLock::new()
        } else {
            OnceLock::from(Some(Engine::Linear(regex::Regex::new(source).map_err(|fault| fault.to_string())?)))
        };
        Ok(Pattern { source: source.into(), engine })
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Takes `source` in; the error says why it is no expression.
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        let engine = if is_plain(source) { OnceLock::new() } else { OnceLock::from(Some(Engine::compile(source)?)) };
        Ok(Pattern { source: source.into(), engine })
    }

    fn engine(&self) -> Option<&Engine> {
        self.engine.get_or_init(|| Engine::compile(&self.source).ok()).as_ref()
    }

    /// The first match in `text`; an expression that runs into its limit does not match.
    pub(crate) fn find(&self, text: &str) -> Option<Span> {
        match self.engine()? {
            Engine::Linear(regex) => regex.find(text).map(|found| (found.start(), found.end())),
            Engine::Backtracking(regex) => regex.find(text).ok()?.map(|found| (found.start(), found.end())),
        }
    }

    /// Whether `text` matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self.engine() {
            Some(Engine::Linear(regex)) => regex.is_match(text),
            Some(Engine::Backtracking(regex)) => regex.is_match(text).unwrap_or(false),
            None => false,
        }
    }

    /// The groups of the first match, the whole match first.
    pub(crate) fn groups<'p, 'q>(&'p self, text: &'q str) -> Option<Groups<'p, 'q>> {
        match self.engine()? {
            Engine::Linear(regex) => {
                let found = regex.captures(text)?;
                let texts = found.iter().map(|group| group.map(|part| part.as_str()));
                Some(regex.capture_names().zip(texts).collect())
            }
            Engine::Backtracking(regex) => {
                let found = regex.captures(text).ok()??;
                let texts = found.iter().map(|group| group.map(|part| part.as_str()));
                Some(regex.capture_names().zip(texts).collect())
            }
        }
    }
}

impl Engine {
    fn compile(source: &str) -> Result<Self, String> {
        match regex::Regex::new(source) {
            Ok(regex) => Ok(Engine::Linear(regex)),
            Err(fault @ regex::Error::CompiledTooBig(_)) => Err(fault.to_string()),
            Err(fault) => fancy_regex::RegexBuilder::new(source)
                .backtrack_limit(BACKTRACK_LIMIT)
                .build()
                .map(Engine::Backtracking)
                .map_err(|_| one_line(&fault.to_string())),
        }
    }
}

/// Whether correct syntax is all that `source` needs to compile: short, without repetition counts (size), character
/// properties (they must exist) and flags (they can ask for bytes that are no text).
fn is_plain(source: &str) -> bool {
    let flags = source.match_indices("(?").any(|(at, _)| !source[at + 2..].starts_with(['<', ':', 'P']));
    let risky = flags || source.contains(['{', '&']) || source.contains("\\p") || source.contains("\\P");
    source.len() <= PLAIN_LENGTH && !risky && regex_syntax::ast::parse::Parser::new().parse(source).is_ok()
}

/// The parser's errors draw a caret under the pattern over several lines; the last line says it in words.
fn one_line(fault: &str) -> String {
    fault.lines().last().unwrap_or(fault).trim_start_matches("error: ").to_owned()
}

/// The expression for a route's regex path (without its `~`): matched from the start, named groups in both spellings.
///
/// As in Kong only the first branch of a bare alternation is tied to the start.
pub(crate) fn path_source(path: &str) -> String {
    format!("^{path}")
}

/// The text that every match of the path expression begins with, as far as it is easily seen.
///
/// May be shorter than the truth, never longer: stops at the first special character and gives up on alternations.
pub(crate) fn literal_prefix(path: &str) -> String {
    let mut prefix = String::new();
    if has_bare_alternation(path) {
        return prefix;
    }
    let mut rest = path.chars().peekable();
    while let Some(first) = rest.next() {
        let literal = match first {
            '\\' => match rest.next() {
                Some(escaped) if escaped.is_ascii_punctuation() && !matches!(escaped, '<' | '>') => escaped,
                _ => break,
            },
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '$' | '|' => break,
            plain => plain,
        };
        if matches!(rest.peek(), Some('*' | '+' | '?' | '{')) {
            break;
        }
        prefix.push(literal);
    }
    prefix
}

/// Whether there may be a `|` outside of every group. Counts `|` in classes too, which only costs speed.
pub(crate) fn has_bare_alternation(path: &str) -> bool {
    let mut depth = 0_i32;
    let mut rest = path.chars();
    while let Some(first) = rest.next() {
        match first {
            '\\' => {
                rest.next();
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth <= 0 => return true,
            _ => {}
        }
    }
    // A parenthesis in a class can unbalance the count: then nothing is certain.
    depth != 0 || path.contains('[') && path.contains('|')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literal_prefix_is_never_longer_than_certain() {
        for (path, expected) in [
            (r"/u/(?<id>\d+)$", "/u/"),
            (r"/api/v\d+", "/api/v"),
            ("/a/bc?", "/a/b"),
            ("/a/b*", "/a/"),
            (r"/x\.y/\w", "/x.y/"),
            ("/a|/b", ""),
            ("/(a|b)/c", "/"),
            ("/a[(]|/b", ""),
            ("(?i)/case", ""),
            ("/end$", "/end"),
            ("/ü/.", "/ü/"),
            (r"/a\", "/a"),
        ] {
            assert_eq!(literal_prefix(path), expected, "{path}");
        }
    }

    #[test]
    fn look_around_compiles_and_a_runaway_does_not_match() {
        let pattern = Pattern::compile("^/(?!admin)[a-z]+").unwrap();
        assert!(pattern.is_match("/users") && !pattern.is_match("/admin"));
        let runaway = Pattern::compile("^(?=/)(/?a+)+(?!a)$").unwrap();
        assert_eq!(runaway.find(&format!("/{}b", "a".repeat(60))), None);
    }

    #[test]
    fn plain_expressions_wait_for_their_first_use() {
        let plain = Pattern::compile(r"^/u/(?<id>\d+)$").unwrap();
        assert!(plain.engine.get().is_none());
        assert_eq!(plain.find("/u/1"), Some((0, 4)));
        assert!(plain.engine.get().is_some());
        for source in ["a{2}", "(?i)a", r"\pL", "(?=a)"] {
            assert!(Pattern::compile(source).unwrap().engine.get().is_some(), "{source}");
        }
        assert!(Pattern::compile(r"\p{Nonsense}").is_err());
        assert!(Pattern::compile(r"\w{1000}{1000}").unwrap_err().contains("size limit"));
    }

    #[test]
    fn a_bad_expression_is_explained_in_one_line() {
        assert_eq!(Pattern::compile("^/(a").unwrap_err(), "unclosed group");
    }

    #[test]
    fn groups_come_with_names_and_gaps() {
        let pattern = Pattern::compile(r"^/(?<id>\d+)(x)?").unwrap();
        assert_eq!(pattern.groups("/12/"), Some(vec![(None, Some("/12")), (Some("id"), Some("12")), (None, None)]));
        assert_eq!(pattern.groups("12"), None);
    }
}
