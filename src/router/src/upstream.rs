//! The path sent to the upstream.

use crate::path::push_escaped;

/// Joins the service's path with the request path less its first `prefix` bytes when `strip` is set.
///
/// What `path_handling = v0` means; of all flavors only `traditional` looks at that field.
/// Source: Kong 3.9.1 `kong/router/utils.lua`, `get_upstream_uri_v0`.
pub(crate) fn upstream_path(base: &str, path: &[u8], prefix: usize, strip: bool) -> String {
    let open = base.strip_suffix('/');
    let mut out = String::with_capacity(base.len() + path.len() + 1);
    if !strip {
        // The path begins with a slash of its own; behind a service path the root alone adds nothing.
        push_escaped(&mut out, open.unwrap_or(base).as_bytes());
        if open.is_some() || path != b"/" {
            push_escaped(&mut out, path);
        }
        return out;
    }
    let rest = without_dots(path.get(prefix..).unwrap_or_default());
    push_escaped(&mut out, open.unwrap_or(base).as_bytes());
    if rest.is_empty() {
        // What was asked for as a folder stays one.
        if base == "/" || path.ends_with(b"/") && (open.is_some() || path.len() > 1) {
            out.push('/');
        }
    } else {
        if !rest.starts_with(b"/") {
            out.push('/');
        }
        push_escaped(&mut out, rest);
    }
    out
}

/// The same for `path_handling = v1`: the two are put together as they stand, but for a double slash between them.
///
/// Source: Kong 3.9.1 `kong/router/traditional.lua`, `find_match`.
pub(crate) fn upstream_path_v1(base: &str, path: &[u8], prefix: usize, strip: bool) -> String {
    let rest =
        if strip { without_dots(path.get(prefix..).unwrap_or_default()) } else { path.get(1..).unwrap_or_default() };
    let mut out = String::with_capacity(base.len() + rest.len());
    let double = base.ends_with('/') && rest.starts_with(b"/");
    push_escaped(&mut out, base.strip_suffix('/').filter(|_| double).unwrap_or(base).as_bytes());
    push_escaped(&mut out, rest);
    out
}

/// A dot segment that stripping has brought to the front must not climb out of the service's path.
fn without_dots(rest: &[u8]) -> &[u8] {
    match rest {
        b"." | b".." => b"",
        [b'.', b'.', b'/', tail @ ..] | [b'.', b'/', tail @ ..] => tail,
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(base: &str, path: &str, prefix: usize, strip: bool) -> String {
        upstream_path(base, path.as_bytes(), prefix, strip)
    }

    #[test]
    fn a_kept_path_follows_the_service_path() {
        for (base, path, expected) in [
            ("/", "/", "/"),
            ("/", "/r/x", "/r/x"),
            ("/s", "/", "/s"),
            ("/s", "/r/", "/s/r/"),
            ("/s/", "/", "/s/"),
            ("/s/", "/r", "/s/r"),
        ] {
            assert_eq!(joined(base, path, 1, false), expected, "{base} {path}");
        }
    }

    #[test]
    fn a_stripped_path_meets_the_service_path_in_one_slash() {
        for (base, path, prefix, expected) in [
            ("/", "/r", 2, "/"),
            ("/", "/r/", 2, "/"),
            ("/", "/rx", 2, "/x"),
            ("/", "/r/x/", 2, "/x/"),
            ("/s", "/r", 2, "/s"),
            ("/s", "/r/", 2, "/s/"),
            ("/s", "/r/", 3, "/s/"),
            ("/s", "/", 1, "/s"),
            ("/s", "/r/x", 2, "/s/x"),
            ("/s", "/r/x", 3, "/s/x"),
            ("/s/", "/r", 2, "/s"),
            ("/s/", "/r/", 3, "/s/"),
            ("/s/", "/", 1, "/s/"),
            ("/s/", "/rx", 2, "/s/x"),
            ("/s/", "/r/x", 2, "/s/x"),
        ] {
            assert_eq!(joined(base, path, prefix, true), expected, "{base} {path} {prefix}");
        }
    }

    #[test]
    fn the_old_handling_puts_paths_together_as_they_stand() {
        for (base, path, prefix, strip, expected) in [
            ("/s", "/r/", 3, true, "/s"),
            ("/s", "/r/x", 3, true, "/sx"),
            ("/s", "/r/x", 2, true, "/s/x"),
            ("/s/", "/r/x", 2, true, "/s/x"),
            ("/s/", "/r", 2, true, "/s/"),
            ("/s", "/r/x", 2, false, "/sr/x"),
            ("/s/", "/r/x", 2, false, "/s/r/x"),
            ("/", "/", 1, false, "/"),
        ] {
            assert_eq!(upstream_path_v1(base, path.as_bytes(), prefix, strip), expected, "{base} {path} {prefix}");
        }
    }

    #[test]
    fn dots_left_by_stripping_are_dropped_and_odd_bytes_escaped() {
        assert_eq!(joined("/s", "/r..", 2, true), "/s");
        assert_eq!(joined("/s", "/r../x", 2, true), "/s/x");
        assert_eq!(joined("/", "/r./x y%2F", 2, true), "/x%20y%2F");
        assert_eq!(joined("/", "/\u{fc}\"", 1, false), "/%C3%BC%22");
    }
}
