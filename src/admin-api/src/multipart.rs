//! `multipart/form-data` bodies. A part's content is its value; file names do not count.

use crate::form::Given;

/// The boundary named by a content type.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// Names and contents of the parts in order. What is not a well-formed part is left out.
pub(crate) fn parts(body: &[u8], boundary: &str) -> Vec<(String, Given)> {
    if boundary.is_empty() {
        return Vec::new();
    }
    let delimiter = format!("--{boundary}");
    split(body, delimiter.as_bytes())
        .into_iter()
        .skip(1)
        .take_while(|piece| !piece.starts_with(b"--"))
        .filter_map(part)
        .collect()
}

/// The pieces between delimiters. A delimiter stands on a line of its own: contents may hold its text elsewhere.
fn split<'a>(body: &'a [u8], delimiter: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let (mut begin, mut from) = (0, 0);
    while let Some(at) = find(&body[from..], delimiter).map(|at| from + at) {
        from = at + delimiter.len();
        let begins_line = at == 0 || body[at - 1] == b'\n';
        let rest = body[from..].strip_prefix(b"--").unwrap_or(&body[from..]);
        if begins_line && rest.first().is_none_or(|next| b"\r\n \t".contains(next)) {
            pieces.push(&body[begin..at]);
            begin = from;
        }
    }
    pieces.push(&body[begin..]);
    pieces
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn part(piece: &[u8]) -> Option<(String, Given)> {
    let (head_end, gap) = match (find(piece, b"\r\n\r\n"), find(piece, b"\n\n")) {
        (Some(at), _) => (at, 4),
        (None, Some(at)) => (at, 2),
        (None, None) => return None,
    };
    let head = String::from_utf8_lossy(&piece[..head_end]);
    let content = &piece[head_end + gap..];
    let content = content.strip_suffix(b"\r\n").or_else(|| content.strip_suffix(b"\n")).unwrap_or(content);
    let header = |wanted: &str| {
        head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
        })
    };
    let name = disposition_name(&header("content-disposition")?)?;
    let text = String::from_utf8_lossy(content).into_owned();
    let json = header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
    let given =
        if json { serde_json::from_str(&text).map_or(Given::Text(text), Given::Value) } else { Given::Text(text) };
    Some((name, given))
}

fn disposition_name(disposition: &str) -> Option<String> {
    disposition.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        (name.trim() == "name").then(|| value.trim().trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_are_read_by_name_and_json_parts_are_parsed() {
        let body = b"--bb\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nline 1\r\nline 2\r\n--bb\r\ncontent-disposition: form-data; name=\"b\"; filename=\"x\"\r\nContent-Type: application/json\r\n\r\n[1]\r\n--bb--\r\n";
        let read = parts(body, &boundary("multipart/form-data; boundary=\"bb\"").unwrap_or_default());
        assert_eq!(
            read,
            vec![
                ("a".to_owned(), Given::Text("line 1\r\nline 2".to_owned())),
                ("b".to_owned(), Given::Value(json!([1])))
            ]
        );
    }

    #[test]
    fn the_boundary_inside_a_line_or_with_more_behind_it_is_content() {
        let key = "-----BEGIN KEY-----\r\na----b\r\n-----END KEY-----";
        let body = format!("----\r\nContent-Disposition: form-data; name=key\r\n\r\n{key}\r\n------\r\n");
        assert_eq!(parts(body.as_bytes(), "--"), vec![("key".to_owned(), Given::Text(key.to_owned()))]);
    }

    #[test]
    fn a_broken_body_gives_no_parts() {
        assert!(parts(b"no boundary here", "bb").is_empty());
        assert!(parts(b"--bb\r\nrubbish", "bb").is_empty());
        assert!(parts(b"--", "").is_empty());
    }
}
