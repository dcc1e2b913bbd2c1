//! Heads of requests and responses.

use crate::headers::{Field, Reason};
use crate::names::EXPECT;
use crate::{Fault, Framing, Headers, keeps_alive, request_framing, response_framing};
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

/// What the tokenizer found, as places in the buffer.
struct Tokens<T> {
    length: usize,
    fields: Vec<Field>,
    first: T,
}

/// Takes the head of a request off the buffer; None when it is not whole yet.
///
/// `seen` is 0 for a new message and is kept between calls: it makes a head that comes byte by byte cheap. Empty lines
/// before the head are skipped.
///
/// # Errors
/// The head is malformed or over a limit, or its body would be framed in more than one way.
pub fn read_request(buffer: &mut BytesMut, seen: &mut usize, limits: &Limits) -> Result<Option<RequestHead>, Fault> {
    let Some(tokens) = read(buffer, seen, limits, request_tokens)? else { return Ok(None) };
    check_lines(&buffer[..tokens.length], &tokens.fields)?;
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
    let Some(tokens) = read(buffer, seen, limits, response_tokens)? else { return Ok(None) };
    let head = buffer.split_to(tokens.length).freeze();
    let (status, reason, version) = tokens.first;
    let headers = Headers::of_head(head, tokens.fields, reason);
    let framing = response_framing(method, status, &headers)?;
    let keep_alive = keeps_alive(version, &headers) && framing != Framing::UntilClose;
    Ok(Some(ResponseHead { status, version, headers, framing, keep_alive }))
}

/// Looks for a whole head, with few slots for header lines first and with as many as are allowed then.
fn read<T>(
    buffer: &BytesMut,
    seen: &mut usize,
    limits: &Limits,
    tokenize: for<'b> fn(&'b [u8], Slots<'_, 'b>) -> Tokenized<T>,
) -> Result<Option<Tokens<T>>, Fault> {
    if *seen > 0 && !has_end(&buffer[seen.saturating_sub(3)..]) {
        *seen = buffer.len();
        return over(buffer, limits).map_or(Ok(None), Err);
    }
    let mut few = [const { MaybeUninit::uninit() }; FEW];
    let slots = limits.fields.min(FEW);
    let mut outcome = tokenize(buffer, &mut few[..slots]);
    if matches!(outcome, Err(httparse::Error::TooManyHeaders)) && slots < limits.fields {
        outcome = tokenize(buffer, &mut vec![MaybeUninit::uninit(); limits.fields]);
    }
    let tokens = outcome.map_err(fault)?;
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
type RequestLine = (Method, (usize, usize), Version);
type StatusLine = (StatusCode, Option<Reason>, Version);

fn request_tokens<'b>(bytes: &'b [u8], slots: Slots<'_, 'b>) -> Tokenized<RequestLine> {
    let mut request = httparse::Request::new(&mut []);
    let parsed = ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, slots)?;
    let Status::Complete(length) = parsed else { return Ok(None) };
    let method = request.method.and_then(|method| Method::from_bytes(method.as_bytes()).ok());
    let (Some(method), Some(path)) = (method, request.path) else { return Err(httparse::Error::Token) };
    let start = place(bytes, path.as_bytes());
    let first = (method, (start, start + path.len()), version(request.version));
    Ok(Some(Tokens { length, fields: fields(bytes, request.headers)?, first }))
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
    Ok(Some(Tokens { length, fields: fields(bytes, response.headers)?, first }))
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

fn fault(error: httparse::Error) -> Fault {
    match error {
        httparse::Error::HeaderName => Fault::FieldName,
        httparse::Error::HeaderValue => Fault::FieldValue,
        httparse::Error::NewLine => Fault::LineEnd,
        httparse::Error::TooManyHeaders => Fault::TooManyFields,
        httparse::Error::Version => Fault::Version,
        httparse::Error::Token | httparse::Error::Status => Fault::FirstLine,
    }
}
