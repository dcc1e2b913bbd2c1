//! The path of a request in its normal form, as plugins compare it.

use std::borrow::Cow;

/// Decodes what needs no escape, writes other escapes in upper case, resolves dots and doubled slashes.
/// Source: Kong 3.9.1 `kong/tools/uri.lua`, `normalize`, with slashes merged.
pub(super) fn normalise(path: &str) -> Cow<'_, str> {
    if !path.contains('%') && !path.contains("//") && !path.contains("/.") {
        return Cow::Borrowed(path);
    }
    let unescaped = unescape(path);
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_open = false;
    for segment in unescaped.split('/') {
        ends_open = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => _ = segments.pop(),
            name => segments.push(name),
        }
    }
    let mut normal = String::with_capacity(unescaped.len());
    for segment in &segments {
        normal.push('/');
        normal.push_str(segment);
    }
    if ends_open || segments.is_empty() {
        normal.push('/');
    }
    Cow::Owned(normal)
}

fn unescape(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut parts = path.split('%');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let escape = part.get(..2).and_then(|digits| Some((digits, u8::from_str_radix(digits, 16).ok()?)));
        match escape {
            Some((_, byte)) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => out.push(char::from(byte)),
            Some((digits, _)) => {
                out.push('%');
                out.push_str(&digits.to_ascii_uppercase());
            }
            None => {
                out.push('%');
                out.push_str(part);
                continue;
            }
        }
        out.push_str(&part[2..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ways_to_write_a_path_become_one() {
        for (sent, normal) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/%61%2fb%7E", "/a%2Fb~"),
            ("//a///b/", "/a/b/"),
            ("/a/./b/../c", "/a/c"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/../a", "/a"),
            ("/..", "/"),
            ("/%2E%2e/.a", "/.a"),
            ("/a%", "/a%"),
            ("/%zz%4", "/%zz%4"),
            ("/é%C3%a9", "/é%C3%A9"),
        ] {
            assert_eq!(normalise(sent), normal, "{sent}");
        }
    }
}
