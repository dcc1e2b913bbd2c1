//! Paths of services and routes.

/// Characters RFC 3986 allows in a path, and the percent sign.
fn legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || ".-_~/%:@!$&'()*+,;=".contains(c)
}

/// Bytes that stay encoded when a path is normalised.
const RESERVED: &[u8] = b"!#$%&'()*+,/:;=?@[]";

/// A path of a service: legal characters only, every `%` followed by two hexadecimal digits.
pub(crate) fn uri_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/') || !path.chars().all(legal) {
        return Err(format!("invalid path: '{path}' (characters outside of the reserved list of RFC 3986 found)"));
    }
    percent_encoding(path)
}

fn percent_encoding(path: &str) -> Result<(), String> {
    for (index, _) in path.match_indices('%') {
        let digits = path.as_bytes().get(index + 1..index + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            let shown: String = path[index..].chars().take(3).collect();
            return Err(format!("invalid url-encoded value: '{shown}'"));
        }
    }
    Ok(())
}

/// A path of a route: `~` and a regular expression, or a prefix that is already normalised.
pub(crate) fn route_path(path: &str) -> Result<(), String> {
    if let Some(pattern) = path.strip_prefix('~') {
        return match fancy_regex::Regex::new(pattern) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!(
                "invalid regex: '{pattern}' (PCRE returned: pcre2_compile() failed: {} in \"{pattern}\")",
                pcre_fault(&error.to_string())
            )),
        };
    }
    percent_encoding(path)?;
    let normalised = normalise(path);
    if normalised == path.as_bytes() {
        return Ok(());
    }
    Err(format!("non-normalized path, consider use '{}' instead", String::from_utf8_lossy(&normalised)))
}

/// Words a regex fault as PCRE does where the fault is a common one.
pub(crate) fn pcre_fault(error: &str) -> &str {
    let known = [
        ("unclosed group", "missing closing parenthesis"),
        ("Opening parenthesis without", "missing closing parenthesis"),
        ("unopened group", "unmatched closing parenthesis"),
        ("Parsing error at position 0: Could not parse group", "missing closing parenthesis"),
        ("unclosed character class", "missing terminating ] for character class"),
        ("Invalid character class", "missing terminating ] for character class"),
        ("repetition operator missing expression", "quantifier does not follow a repeatable item"),
        ("Target of repeat operator is invalid", "quantifier does not follow a repeatable item"),
        ("invalid character class range", "range out of order in character class"),
        ("parenthes", "missing closing parenthesis"),
    ];
    known.iter().find(|(ours, _)| error.contains(ours)).map_or(error, |(_, theirs)| theirs)
}

/// Decodes what need not be encoded, merges slashes and resolves dot segments.
/// Source: Kong 3.9.1 `kong/tools/uri.lua`, `normalize`.
fn normalise(path: &str) -> Vec<u8> {
    let decoded = decode(path.as_bytes());
    let mut output: Vec<&[u8]> = Vec::new();
    let segments: Vec<&[u8]> = decoded.split(|byte| *byte == b'/').collect();
    let last = segments.len() - 1;
    let mut ends_with_slash = false;
    for (index, segment) in segments.iter().enumerate() {
        ends_with_slash = matches!(*segment, b"" | b"." | b"..") && index == last;
        match *segment {
            b"" | b"." => {}
            b".." => {
                output.pop();
            }
            segment => output.push(segment),
        }
    }
    let mut joined: Vec<u8> = output.iter().flat_map(|segment| [b"/".as_slice(), *segment].concat()).collect();
    if ends_with_slash {
        joined.push(b'/');
    }
    joined
}

fn decode(path: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut index = 0;
    while let Some(&byte) = path.get(index) {
        let digits = path.get(index + 1..index + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match value {
            Some(value) if RESERVED.contains(&value) => {
                decoded.extend(path[index..index + 3].to_ascii_uppercase());
                index += 3;
            }
            Some(value) => {
                decoded.push(value);
                index += 3;
            }
            None => {
                decoded.push(byte);
                index += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::{route_path, uri_path};

    #[test]
    fn service_paths_are_encoded_and_legal() {
        assert!(uri_path("/a%20b/~c").is_ok());
        assert_eq!(uri_path("/a%2").unwrap_err(), "invalid url-encoded value: '%2'");
        assert_eq!(
            uri_path("/a?b").unwrap_err(),
            "invalid path: '/a?b' (characters outside of the reserved list of RFC 3986 found)"
        );
    }

    #[test]
    fn route_prefixes_must_be_normalised() {
        for path in ["/", "/a", "/a/", "/a(b)+", "/a%2Fb", "/é"] {
            assert_eq!(route_path(path), Ok(()), "{path}");
        }
        for (path, better) in [("/a/../b", "/b"), ("/%61", "/a"), ("/a/./", "/a/"), ("/a%2fb", "/a%2Fb")] {
            let expected = format!("non-normalized path, consider use '{better}' instead");
            assert_eq!(route_path(path).unwrap_err(), expected, "{path}");
        }
    }

    #[test]
    fn route_regexes_must_compile() {
        assert!(route_path(r"~/a/(?<id>\d+)$").is_ok());
        assert_eq!(
            route_path("~/(a").unwrap_err(),
            "invalid regex: '/(a' (PCRE returned: pcre2_compile() failed: missing closing parenthesis in \"/(a\")"
        );
    }
}
