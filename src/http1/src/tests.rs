//! Messages in whole and in pieces, and the known ways to smuggle one.

use super::*;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode, Uri, Version};
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: Limits = Limits { size: 4096, fields: 100 };

/// What a reader made of the bytes: a line for each message, then why it stopped.
fn read_all(parts: &[&[u8]]) -> (Vec<String>, Option<Fault>) {
    let (mut buffer, mut seen, mut found) = (BytesMut::new(), 0, Vec::new());
    let mut decoder: Option<(Decoder, Vec<u8>, usize)> = None;
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            match decoder.take() {
                None => match read_request(&mut buffer, &mut seen, &LIMITS) {
                    Ok(None) => break,
                    Ok(Some(head)) => {
                        found.push(format!("{} {} {:?}", head.method, head.target, head.headers));
                        decoder = Some((Decoder::new(head.framing), Vec::new(), 0));
                    }
                    Err(fault) => return (found, Some(fault)),
                },
                Some((mut body, mut bytes, mut trailers)) => match body.decode(&mut buffer) {
                    Ok(Some(Piece::Data(data))) => {
                        bytes.extend_from_slice(&data);
                        decoder = Some((body, bytes, trailers));
                    }
                    Ok(Some(Piece::Trailers(more))) => {
                        trailers += more.len();
                        decoder = Some((body, bytes, trailers));
                    }
                    Ok(None) if body.is_done() => found.push(format!("{bytes:?} {trailers}")),
                    Ok(None) => {
                        decoder = Some((body, bytes, trailers));
                        break;
                    }
                    Err(fault) => return (found, Some(fault)),
                },
            }
        }
    }
    (found, None)
}

fn fault(bytes: &str) -> Option<Fault> {
    read_all(&[bytes.as_bytes()]).1
}

fn request(bytes: &str) -> RequestHead {
    read_request(&mut BytesMut::from(bytes), &mut 0, &LIMITS).unwrap().unwrap()
}

fn response(method: Method, bytes: &str) -> Result<Option<ResponseHead>, Fault> {
    read_response(&mut BytesMut::from(bytes), &mut 0, &LIMITS, &method)
}

#[test]
fn heads_that_could_be_read_in_two_ways_are_refused() {
    for (lines, expected) in [
        ("Content-Length: 5\r\nContent-Length: 6", Fault::Length),
        ("Content-Length: 5\r\nContent-Length: 5", Fault::Length),
        ("Content-Length: 5, 5", Fault::Length),
        ("Content-Length: +5", Fault::Length),
        ("Content-Length: -5", Fault::Length),
        ("Content-Length: 0x5", Fault::Length),
        ("Content-Length: 5 5", Fault::Length),
        ("Content-Length:", Fault::Length),
        ("Content-Length: 18446744073709551616", Fault::Length),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", Fault::TwoFramings),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", Fault::TwoFramings),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", Fault::Encoding),
        ("Transfer-Encoding: chunked, chunked", Fault::Encoding),
        ("Transfer-Encoding: chunked, identity", Fault::Encoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", Fault::Encoding),
        ("Transfer-Encoding: identity", Fault::Encoding),
        ("Transfer-Encoding: xchunked", Fault::Encoding),
        ("Transfer-Encoding: chunked;q=1", Fault::Encoding),
        ("Transfer-Encoding: \"chunked\"", Fault::Encoding),
        ("Transfer-Encoding:", Fault::Encoding),
        ("Transfer-Encoding: gzip, chunked", Fault::UnknownCoding),
        ("Transfer-Encoding: \u{b}chunked", Fault::FieldValue),
        ("Transfer-Encoding : chunked", Fault::FieldName),
        ("Transfer-Encoding\t: chunked", Fault::FieldName),
        (" Transfer-Encoding: chunked", Fault::FieldName),
        ("X: a\r\n b: c", Fault::FieldName),
        ("X: a\r\n\tb", Fault::FieldName),
        ("X: a\0b", Fault::FieldValue),
        ("X: a\rTransfer-Encoding: chunked", Fault::FieldValue),
        ("X: a\nTransfer-Encoding: chunked", Fault::LineEnd),
        ("X", Fault::FieldName),
        (": a", Fault::FieldName),
        ("X Y: a", Fault::FieldName),
        ("X\0: a", Fault::FieldName),
    ] {
        let found = fault(&format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n0\r\n\r\n"));
        assert_eq!(found, Some(expected), "{lines:?}");
    }
    assert_eq!(fault("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Some(Fault::Encoding));
    assert_eq!(fault("GET / HTTP/1.1\r\nHost: a\n\r\n"), Some(Fault::LineEnd));
    assert_eq!(fault("GET / HTTP/1.1\r\nHost: a\r\n\n"), Some(Fault::LineEnd));
}

#[test]
fn first_lines_have_one_form() {
    for line in ["GET  / HTTP/1.1", "GET / HTTP/1.1 ", "GET /\tHTTP/1.1", " GET / HTTP/1.1", "G\0T / HTTP/1.1", "GET /"]
    {
        assert!(fault(&format!("{line}\r\nHost: a\r\n\r\n")).is_some(), "{line:?}");
    }
    assert_eq!(fault("GET / HTTP/2.0\r\n\r\n").map(Fault::status), Some(StatusCode::HTTP_VERSION_NOT_SUPPORTED));
    assert_eq!(request("\r\n\r\nGET / HTTP/1.1\r\n\r\n").method, Method::GET);
}

#[test]
fn chunks_have_one_form() {
    for (chunks, expected) in [
        ("zz\r\n", Fault::Chunk),
        ("\r\n", Fault::Chunk),
        (";a\r\n", Fault::Chunk),
        ("-5\r\n", Fault::Chunk),
        ("0x5\r\nhello\r\n", Fault::Chunk),
        ("5\nhello\r\n", Fault::Chunk),
        ("5\r\rhello\r\n", Fault::Chunk),
        ("5 5\r\nhello\r\n", Fault::Chunk),
        ("5\r\nhelloX", Fault::Chunk),
        ("5\r\nhello\n", Fault::Chunk),
        ("5\r\nhello\r\r", Fault::Chunk),
        ("5;a\nb\r\nhello\r\n", Fault::Chunk),
        ("5;a\0\r\nhello\r\n", Fault::Chunk),
        ("ffffffffffffffff\r\n", Fault::Chunk),
        ("0000000000000000\r\n\r\n", Fault::Chunk),
        ("0\r\nX : a\r\n\r\n", Fault::Trailers),
        ("0\r\nX: a\nY: b\r\n\r\n", Fault::Trailers),
        ("0\r\n X: a\r\n\r\n", Fault::Trailers),
        ("0\r\n\nGET / HTTP/1.1\r\n\r\n", Fault::Trailers),
    ] {
        let found = fault(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"));
        assert_eq!(found, Some(expected), "{chunks:?}");
    }
    let long = format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(20_000));
    let found = fault(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{long}"));
    assert_eq!(found, Some(Fault::ChunkExtensions));
    let many = "1;a=bcdefgh\r\nx\r\n".repeat(3000);
    let found = fault(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{many}"));
    assert_eq!(found, Some(Fault::ChunkExtensions));
    let trailers = format!("0\r\n{}", "X: a\r\n".repeat(4000));
    let found = fault(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{trailers}"));
    assert_eq!(found, Some(Fault::Trailers));
}

#[test]
fn chunks_give_their_data_and_trailers() {
    let (found, fault) = read_all(&[b"POST / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n\
        5;a=\"b\"\r\nhello\r\n1 \r\n!\r\n00\r\nX-Sum: 1\r\nContent-Length: 7\r\n\r\nGET /next HTTP/1.1\r\n\r\n"]);
    assert_eq!(fault, None);
    assert_eq!(found[1], format!("{:?} 1", b"hello!"));
    assert!(found[2].starts_with("GET /next"));
}

#[test]
fn limits_hold_for_whole_and_partial_heads() {
    let long = "a".repeat(5000);
    assert_eq!(fault(&format!("GET /{long}")), Some(Fault::FirstLineTooLong));
    assert_eq!(fault(&format!("GET /{long} HTTP/1.1\r\n\r\n")), Some(Fault::FirstLineTooLong));
    assert_eq!(fault(&format!("GET / HTTP/1.1\r\nX: {long}")), Some(Fault::HeadTooLong));
    assert_eq!(fault(&format!("GET / HTTP/1.1\r\nX: {long}\r\n\r\n")), Some(Fault::HeadTooLong));
    let lines = |count| format!("GET / HTTP/1.1\r\n{}\r\n", "X: a\r\n".repeat(count));
    assert_eq!(request(&lines(100)).headers.len(), 100);
    assert_eq!(fault(&lines(101)), Some(Fault::TooManyFields));
}

#[test]
fn bodies_of_responses_follow_method_and_status() {
    let framing =
        |method, head: &str| response(method, &format!("HTTP/1.1 {head}\r\n\r\n")).map(|head| head.unwrap().framing);
    assert_eq!(framing(Method::GET, "200 OK\r\nContent-Length: 5"), Ok(Framing::Length(5)));
    assert_eq!(framing(Method::HEAD, "200 OK\r\nContent-Length: 5"), Ok(Framing::None));
    assert_eq!(framing(Method::GET, "304 Not Modified\r\nContent-Length: 5"), Ok(Framing::None));
    assert_eq!(framing(Method::GET, "204 No Content\r\nContent-Length: 5"), Ok(Framing::None));
    assert_eq!(framing(Method::GET, "103 Early Hints"), Ok(Framing::None));
    assert_eq!(framing(Method::CONNECT, "200 OK\r\nContent-Length: 5"), Ok(Framing::None));
    assert_eq!(framing(Method::GET, "200 OK"), Ok(Framing::UntilClose));
    assert_eq!(framing(Method::GET, "200 OK\r\nTransfer-Encoding: chunked"), Ok(Framing::Chunked));
    assert_eq!(
        framing(Method::GET, "200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5"),
        Err(Fault::TwoFramings)
    );
    assert_eq!(framing(Method::GET, "200 OK\r\nContent-Length: 5\r\nContent-Length: 5"), Err(Fault::Length));
    assert!(response(Method::GET, "HTTP/1.1 200 OK\r\nX : a\r\n\r\n").is_err());
    assert!(response(Method::GET, "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n").is_err());
    assert!(response(Method::GET, "HTTP/1.1 99 No\r\n\r\n").is_err());
    assert!(!response(Method::GET, "HTTP/1.1 200 OK\n\n").unwrap().unwrap().keep_alive);
}

#[test]
fn a_body_cut_short_is_no_whole_body() {
    let mut buffer = BytesMut::from(&b"ab"[..]);
    for (framing, end) in [
        (Framing::Length(3), Err(Fault::Truncated)),
        (Framing::Length(2), Ok(())),
        (Framing::Chunked, Err(Fault::Truncated)),
        (Framing::UntilClose, Ok(())),
        (Framing::None, Ok(())),
    ] {
        let mut decoder = Decoder::new(framing);
        if framing != Framing::Chunked {
            decoder.decode(&mut buffer.clone()).unwrap();
        }
        assert_eq!(decoder.close(), end, "{framing:?}");
    }
    buffer.clear();
}

#[test]
fn connections_go_on_as_both_versions_have_it() {
    for (version, connection, expected) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, Close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        assert_eq!(request(&format!("GET / HTTP/{version}\r\n{connection}\r\n")).keep_alive, expected, "{connection}");
    }
    assert!(request("PUT / HTTP/1.1\r\nExpect: 100-Continue\r\n\r\n").expects_continue);
    assert!(!request("PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects_continue);
}

#[test]
fn names_keep_their_case_and_new_ones_get_the_usual_one() {
    let mut head = request("GET / HTTP/1.1\r\nx-LOW: 1\r\nHOST: a\r\nX-Fancy: 2\r\nx-fancy: 3\r\nETAG: 4\r\n\r\n");
    assert!(head.headers.remove("x-low"));
    for (name, value) in
        [("x-real-ip", "1.2.3.4"), ("x-forwarded-for", "5"), ("te", "trailers"), ("x-kong-request-id", "6")]
    {
        head.headers.insert(Name::from_static(name), Value::from_static(value));
    }
    let mut out = BytesMut::new();
    write_request(&mut out, &head.method, &head.target, &head.headers, Framing::Chunked);
    let text = String::from_utf8(out.to_vec()).unwrap();
    assert_eq!(
        text.trim_end().split("\r\n").collect::<Vec<_>>(),
        [
            "GET / HTTP/1.1",
            "HOST: a",
            "X-Fancy: 2",
            "x-fancy: 3",
            "ETAG: 4",
            "X-Real-IP: 1.2.3.4",
            "X-Forwarded-For: 5",
            "TE: trailers",
            "X-Kong-Request-Id: 6",
            "Transfer-Encoding: chunked"
        ]
    );
    let mut out = BytesMut::new();
    let uri = Uri::from_static("/");
    write_request(&mut out, &Method::POST, &uri, &Headers::of_http2(&head.headers.to_map()), Framing::None);
    let text = String::from_utf8(out.to_vec()).unwrap();
    assert!(
        text.contains("\r\nx-fancy: 2\r\n")
            && text.contains("\r\nX-Real-IP: ")
            && text.contains("\r\nContent-Length: 0\r\n")
    );
}

#[test]
fn names_that_carry_a_trace_are_written_in_lower_case() {
    let names =
        ["traceparent", "tracestate", "b3", "x-b3-traceid", "uber-trace-id", "ot-tracer-spanid", "x-amzn-trace-id"];
    let rows = names.map(|name| (Name::from_static(name), Value::from_static("1")));
    let mut out = BytesMut::new();
    write_request(&mut out, &Method::GET, &Uri::from_static("/"), &rows.into_iter().collect(), Framing::None);
    let lines = names.map(|name| format!("{name}: 1\r\n")).concat();
    assert_eq!(String::from_utf8(out.to_vec()).unwrap(), format!("GET / HTTP/1.1\r\n{lines}\r\n"));
}

#[test]
fn responses_say_how_they_end() {
    let head =
        response(Method::GET, "HTTP/1.1 200 Fine, thanks\r\ncontent-length: 5\r\nx-a: b\r\n\r\n").unwrap().unwrap();
    let written = |status, headers: &Headers, framing, persistence| {
        let mut out = BytesMut::new();
        write_response(&mut out, status, headers, framing, persistence, b"now");
        String::from_utf8(out.to_vec()).unwrap()
    };
    assert_eq!(
        written(StatusCode::OK, &head.headers, Framing::Length(7), Persistence::Usual),
        "HTTP/1.1 200 Fine, thanks\r\ncontent-length: 7\r\nx-a: b\r\nDate: now\r\n\r\n"
    );
    assert_eq!(
        written(StatusCode::NOT_FOUND, &Headers::new(), Framing::Length(10), Persistence::Close),
        "HTTP/1.1 404 Not Found\r\nConnection: close\r\nDate: now\r\nContent-Length: 10\r\n\r\n"
    );
    assert_eq!(
        written(StatusCode::OK, &head.headers, Framing::Chunked, Persistence::Told),
        "HTTP/1.1 200 Fine, thanks\r\nConnection: keep-alive\r\nx-a: b\r\nDate: now\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    assert!(written(StatusCode::OK, &head.headers, Framing::None, Persistence::Usual).contains("content-length: 5"));
    let connection = |value: &str, persistence| {
        let headers = Headers::from_iter([(names::CONNECTION, Value::new(value.as_bytes()).unwrap())]);
        let written = written(StatusCode::UPGRADE_REQUIRED, &headers, Framing::None, persistence);
        written.split("\r\n").filter(|line| line.starts_with("Connection")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(connection("Upgrade", Persistence::Usual), "Connection: Upgrade");
    assert_eq!(connection("Upgrade", Persistence::Close), "Connection: close, Connection: Upgrade");
    assert_eq!(connection("close", Persistence::Close), "Connection: close");
    assert_eq!(connection("close", Persistence::Usual), "");
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let name = "[A-Za-z][A-Za-z0-9-]{0,8}";
    let lines = vec((name, "[ -~]{0,12}"), 0..6);
    let chunks = vec(vec(any::<u8>(), 1..20), 0..4);
    (0..4, "/[a-z/?=]{0,10}", lines, chunks, any::<bool>()).prop_map(|(kind, path, lines, chunks, trailer)| {
        let mut out = format!("POST {path} HTTP/1.1\r\n").into_bytes();
        for (name, value) in lines {
            out.extend_from_slice(format!("X-{name}: {value}\r\n").as_bytes());
        }
        let body = chunks.concat();
        match kind {
            0 => out.extend_from_slice(b"\r\n"),
            1 => {
                out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                out.extend_from_slice(&body);
            }
            _ => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                let mut coded = BytesMut::new();
                for chunk in &chunks {
                    write_chunk_size(&mut coded, chunk.len());
                    coded.extend_from_slice(chunk);
                    coded.extend_from_slice(b"\r\n");
                }
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sum", "1".parse().unwrap());
                write_last_chunk(&mut coded, trailer.then_some(&trailers));
                out.extend_from_slice(&coded);
            }
        }
        out
    })
}

/// The bytes cut at these places.
fn cut<'a>(bytes: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places.iter().map(|place| place % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn any_split_of_messages_reads_the_same(messages in vec(message(), 1..4), places in vec(any::<usize>(), 0..12)) {
        let bytes = messages.concat();
        let whole = read_all(&[&bytes]);
        prop_assert_eq!(&whole.1, &None);
        prop_assert_eq!(whole.0.len(), 2 * messages.len());
        prop_assert_eq!(&whole, &read_all(&cut(&bytes, &places)));
        prop_assert_eq!(&whole, &read_all(&bytes.chunks(1).collect::<Vec<_>>()));
    }

    #[test]
    fn any_split_of_damaged_messages_reads_the_same(
        messages in vec(message(), 1..3), places in vec(any::<usize>(), 0..12), at in any::<usize>(), byte in any::<u8>(),
    ) {
        let mut bytes = messages.concat();
        let at = at % bytes.len();
        bytes[at] = byte;
        let (whole, split) = (read_all(&[&bytes]), read_all(&cut(&bytes, &places)));
        prop_assert_eq!(whole.0, split.0);
        // A head that came in part is looked at again only once its end is there.
        prop_assert!(whole.1.is_some() || split.1.is_none());
    }

    #[test]
    fn a_request_written_is_the_request_read(path in "/[a-z]{0,9}", lines in vec(("[A-Z][a-z]{1,6}", "[!-~]{1,9}"), 0..9), length in 1..1000_u64) {
        let mut text = format!("PUT {path} HTTP/1.1\r\n");
        for (name, value) in &lines {
            text += &format!("x-{name}: {value}\r\n");
        }
        let head = request(&format!("{text}\r\n"));
        let mut out = BytesMut::new();
        write_request(&mut out, &head.method, &head.target, &head.headers, Framing::Length(length));
        let again = read_request(&mut out, &mut 0, &LIMITS).unwrap().unwrap();
        prop_assert_eq!(again.framing, Framing::Length(length));
        prop_assert_eq!((again.method, again.version), (head.method, Version::HTTP_11));
        prop_assert_eq!(again.headers.len(), head.headers.len() + 1);
    }
}

#[test]
fn data_is_taken_without_copying() {
    let mut buffer = BytesMut::from(&b"hello world"[..]);
    let start = buffer.as_ptr();
    let piece = Decoder::new(Framing::Length(11)).decode(&mut buffer).unwrap().unwrap();
    assert_eq!(piece, Piece::Data(Bytes::from_static(b"hello world")));
    let Piece::Data(data) = piece else { panic!("trailers") };
    assert_eq!(data.as_ptr(), start);
}
