//! Heads of requests and responses.

use crate::headers::{Field, Reason};
use crate::names::EXPECT;
use crate::{Fault, Framing, Headers, keeps_alive, plain, request_framing, response_framing};
use bytes::BytesMut;
use http::{Method, StatusCode, Uri, Version};
use httparse::{Header, ParserConfig, Status};
use std::mem::MaybeUninit;

/// What a head may be at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes, with the first line and the empty one.
    pub size: usize,
    /// Header lines.
    pub fields: usize,
}

/// Head of a request.
#[derive(Debug)]
pub struct RequestHead {
    /// Method.
    pub method: Method,
    /// Target, in any of its forms.
    pub target: Uri,
    /// 1.0 or 1.1.
    pub version: Version,
    /// All headers in the order they came in.
    pub headers: Headers,
    /// Where the body ends.
    pub framing: Framing,
    /// The client is ready for another request on this connection.
    pub keep_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

/// Head of a response.
#[derive(Debug)]
pub struct ResponseHead {
    /// Status.
    pub status: StatusCode,
    /// 1.0 or 1.1.
    pub version: Version,
    /// All headers in the order they came in.
    pub headers: Headers,
    /// Where the body ends.
    pub framing: Framing,
    /// The peer is ready for another request on this connection.
    pub keep_alive: bool,
}

/// Header lines that are read without asking for memory.
const FEW: usize = 64;
/// Longest name of a header.
const LONGEST_NAME: usize = u16::MAX as usize;

type Slots<'h, 'b> = &'h mut [MaybeUninit<Header<'b>>];

/// What was found, as places in the buffer.
pub(crate) struct Tokens<T> {
    pub(crate) length: usize,
    pub(crate) fields: Vec<Field>,
    /// It was read as a plain one.
    pub(crate) plain: bool,
    pub(crate) first: T,
}

/// Takes the head of a request off the buffer; None when it is not whole yet.
///
/// `seen` is 0 for a new message and is kept between calls: it makes a head that comes byte by byte cheap. Empty lines
/// before the head are skipped.
///
/// # Errors
/// The head is malformed or over a limit, or its body would be framed in more than one way.
pub fn read_request(buffer: &mut BytesMut, seen: &mut usize, limits: &Limits) -> Result<Option<RequestHead>, Fault> {
    let Some(tokens) = read(buffer, seen, limits, plain::request, request_tokens)? else { return Ok(None) };
    if !tokens.plain {
        check_lines(&buffer[..tokens.length], &tokens.fields)?;
    }
    let head = buffer.split_to(tokens.length).freeze();
    let (method, (start, end), version) = tokens.first;
    let target = Uri::from_maybe_shared(head.slice(start..end)).map_err(|_| Fault::Target)?;
    let headers = Headers::of_head(head, tokens.fields, None);
    let framing = request_framing(version, &headers)?;
    let keep_alive = keeps_alive(version, &headers);
    let expects_continue = version == Version::HTTP_11
        && headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    Ok(Some(RequestHead { method, target, version, headers, framing, keep_alive, expects_continue }))
}

/// Takes the head of a response off the buffer; None when it is not whole yet. `method` is that of the request; `seen`
/// as for [`read_request`]. Informational responses are heads like others.
///
/// # Errors
/// As [`read_request`]; lines may end in LF alone.
pub fn read_response(
    buffer: &mut BytesMut,
    seen: &mut usize,
    limits: &Limits,
    method: &Method,
) -> Result<Option<ResponseHead>, Fault> {
    let Some(tokens) = read(buffer, seen, limits, plain::response, response_tokens)? else { return Ok(None) };
    let head = buffer.split_to(tokens.length).freeze();
    let (status, reason, version) = tokens.first;
    let headers = Headers::of_head(head, tokens.fields, reason);
    let framing = response_framing(method, status, &headers)?;
    let keep_alive = keeps_alive(version, &headers) && framing != Framing::UntilClose;
    Ok(Some(ResponseHead { status, version, headers, framing, keep_alive }))
}

/// Looks for a whole head: a plain one first.
fn read<T>(
    buffer: &BytesMut,
    seen: &mut usize,
    limits: &Limits,
    plain: fn(&[u8], usize) -> Option<Tokens<T>>,
    tokenize: for<'b> fn(&'b [u8], Slots<'_, 'b>) -> Tokenized<T>,
) -> Result<Option<Tokens<T>>, Fault> {
    if *seen > 0 && !has_end(&buffer[seen.saturating_sub(3)..]) {
        *seen = buffer.len();
        return over(buffer, limits).map_or(Ok(None), Err);
    }
    let tokens = match plain(buffer, limits.fields) {
        None => tokenize_any(buffer, limits, tokenize)?,
        tokens => tokens,
    };
    match &tokens {
        Some(tokens) if tokens.length > limits.size => return Err(too_long(&buffer[..limits.size])),
        Some(_) => *seen = 0,
        None => {
            *seen = buffer.len();
            if let Some(fault) = over(buffer, limits) {
                return Err(fault);
            }
        }
    }
    Ok(tokens)
}

/// Reads a head in any form, with few slots for header lines first and with as many as are allowed then.
fn tokenize_any<T>(
    buffer: &[u8],
    limits: &Limits,
    tokenize: for<'b> fn(&'b [u8], Slots<'_, 'b>) -> Tokenized<T>,
) -> Result<Option<Tokens<T>>, Fault> {
    let mut few = [const { MaybeUninit::uninit() }; FEW];
    let slots = limits.fields.min(FEW);
    let mut outcome = tokenize(buffer, &mut few[..slots]);
    if matches!(outcome, Err(httparse::Error::TooManyHeaders)) && slots < limits.fields {
        outcome = tokenize(buffer, &mut vec![MaybeUninit::uninit(); limits.fields]);
    }
    outcome.map_err(|error| fault(error, buffer))
}

fn has_end(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

/// What is wrong when this is only the beginning of a head.
fn over(bytes: &[u8], limits: &Limits) -> Option<Fault> {
    (bytes.len() > limits.size).then(|| too_long(&bytes[..limits.size]))
}

fn too_long(beginning: &[u8]) -> Fault {
    if beginning.contains(&b'\n') { Fault::HeadTooLong } else { Fault::FirstLineTooLong }
}

/// None: the head is not whole.
type Tokenized<T> = Result<Option<Tokens<T>>, httparse::Error>;
pub(crate) type RequestLine = (Method, (usize, usize), Version);
pub(crate) type StatusLine = (StatusCode, Option<Reason>, Version);

fn request_tokens<'b>(bytes: &'b [u8], slots: Slots<'_, 'b>) -> Tokenized<RequestLine> {
    let mut request = httparse::Request::new(&mut []);
    let parsed = ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, slots)?;
    let Status::Complete(length) = parsed else { return Ok(None) };
    let method = request.method.and_then(|method| Method::from_bytes(method.as_bytes()).ok());
    let (Some(method), Some(path)) = (method, request.path) else { return Err(httparse::Error::Token) };
    let start = place(bytes, path.as_bytes());
    let first = (method, (start, start + path.len()), version(request.version));
    Ok(Some(Tokens { length, fields: fields(bytes, request.headers)?, plain: false, first }))
}

fn response_tokens<'b>(bytes: &'b [u8], slots: Slots<'_, 'b>) -> Tokenized<StatusLine> {
    let mut response = httparse::Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, slots)?;
    let Status::Complete(length) = parsed else { return Ok(None) };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(httparse::Error::Status)?;
    let reason = response.reason.filter(|reason| !reason.is_empty());
    let place = |reason: &str| (place(bytes, reason.as_bytes()) as u32, reason.len() as u32);
    let reason = reason.map(place).map(|(start, length)| Reason { status, start, length });
    let first = (status, reason, version(response.version));
    Ok(Some(Tokens { length, fields: fields(bytes, response.headers)?, plain: false, first }))
}

fn version(minor: Option<u8>) -> Version {
    if minor == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 }
}

/// Where a part of the bytes begins.
fn place(bytes: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize)
}

fn fields(bytes: &[u8], headers: &[Header<'_>]) -> Result<Vec<Field>, httparse::Error> {
    // Room for those that will be added: growing costs more than a few empty places.
    let mut fields = Vec::with_capacity(headers.len() + 8);
    for header in headers {
        if header.name.len() > LONGEST_NAME {
            return Err(httparse::Error::HeaderName);
        }
        let value = if header.value.is_empty() { 0 } else { place(bytes, header.value) };
        let name = place(bytes, header.name.as_bytes());
        fields.push(Field::of_head(bytes, (name, header.name.len()), (value, header.value.len())));
    }
    Ok(fields)
}

/// Every line must end in CR and LF: another reader may take a lone LF for a part of the line.
fn check_lines(head: &[u8], fields: &[Field]) -> Result<(), Fault> {
    let ends = |at: usize| at >= 2 && head[at - 2..at] == *b"\r\n";
    let whole = head.ends_with(b"\r\n\r\n") && fields.iter().all(|field| ends(field.name as usize));
    if whole { Ok(()) } else { Err(Fault::LineEnd) }
}

fn fault(error: httparse::Error, head: &[u8]) -> Fault {
    match error {
        httparse::Error::HeaderName => Fault::FieldName,
        httparse::Error::HeaderValue => Fault::FieldValue,
        httparse::Error::NewLine => Fault::LineEnd,
        httparse::Error::TooManyHeaders => Fault::TooManyFields,
        httparse::Error::Version if names_version(head) => Fault::Version,
        httparse::Error::Version | httparse::Error::Token | httparse::Error::Status => Fault::FirstLine,
    }
}

/// Whether a version of HTTP is where it belongs: at the end of a request's first line, at the beginning of a response's.
/// Otherwise it is some other mistake, such as a blank in the target.
fn names_version(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let mut words = line.split(|byte| *byte == b' ');
    let (first, third) = (words.next(), words.nth(1));
    [first, third].into_iter().flatten().any(|word| match word {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] => major.is_ascii_digit() && minor.is_ascii_digit(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::REGULAR;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use std::fmt::Debug;

    const LIMITS: Limits = Limits { size: 4096, fields: 4 };

    /// All that is known of a head.
    fn told<T: Debug>(tokens: &Tokens<T>, bytes: &[u8]) -> String {
        let part = |start: u32, length: usize| bytes[start as usize..start as usize + length].escape_ascii();
        let fields = tokens.fields.iter().map(|field| {
            let (name, value) = (usize::from(field.name_length), field.value_length as usize);
            format!("{}: {} {} {}", part(field.name, name), part(field.value, value), field.known, field.state)
        });
        format!("{} {:?} {:?}", tokens.length, tokens.first, fields.collect::<Vec<_>>())
    }

    /// Whoever reads a head as a plain one must read it as the reader does that knows all forms.
    fn agree<T: Debug>(
        bytes: &[u8],
        plain: fn(&[u8], usize) -> Option<Tokens<T>>,
        tokenize: for<'b> fn(&'b [u8], Slots<'_, 'b>) -> Tokenized<T>,
    ) -> bool {
        let Some(tokens) = plain(bytes, LIMITS.fields) else { return false };
        let any = tokenize_any(bytes, &LIMITS, tokenize).unwrap().unwrap();
        assert_eq!(told(&tokens, bytes), told(&any, bytes));
        assert!(check_lines(&bytes[..tokens.length], &any.fields).is_ok());
        assert!(any.fields.iter().all(|field| field.state == REGULAR));
        true
    }

    fn head(first: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
        const PARTS: &[&str] = &[
            "Host: a\r\n",
            "x-y: b c\r\n",
            "A: \r\n",
            "B:c\r\n",
            "C: d \r\n",
            "E: f\tg\r\n",
            "F: g\n",
            " h: i\r\n",
            "j : k\r\n",
            "Content-Length: 5\r\n",
            "L: \u{e9}\r\n",
            "M: n\r",
            ":",
            "\r\n",
        ];
        (select(first), vec(prop_oneof![9 => select(&PARTS[..2]), 1 => select(PARTS)], 0..6))
            .prop_map(|(first, lines)| [first, &lines.concat(), "\r\nrest"].concat().into_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn plain_requests_are_read_as_others(
            mut bytes in head(&["GET / HTTP/1.1\r\n", "POST http://a/?b HTTP/1.1\r\n", "PUT * HTTP/1.0\r\n", "get /\u{e9} HTTP/1.1\n"]),
            at in any::<usize>(), byte in any::<u8>(), damage in any::<bool>(),
        ) {
            if damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            agree(&bytes, plain::request, request_tokens);
        }

        #[test]
        fn plain_responses_are_read_as_others(
            mut bytes in head(&["HTTP/1.1 200 OK\r\n", "HTTP/1.1 404 Not at all\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 204\r\n", "HTTP/1.1 200 \r\n"]),
            at in any::<usize>(), byte in any::<u8>(), damage in any::<bool>(),
        ) {
            if damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            agree(&bytes, plain::response, response_tokens);
        }
    }

    #[test]
    fn usual_heads_take_the_short_way() {
        assert!(agree(b"DELETE /a HTTP/1.1\r\nHost: a\r\nx-a: b\r\n\r\n", plain::request, request_tokens));
        assert!(agree(b"HTTP/1.1 200 Fine, thanks\r\nx-a: b\r\n\r\n", plain::response, response_tokens));
    }
}
