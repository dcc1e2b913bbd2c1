//! Names of headers: those that are looked for are known by a number, so that telling them apart is one comparison.

use bytes::BufMut;
use http::header::HeaderName;

/// A valid name in lower case.
#[derive(Debug, Clone, Copy)]
pub struct Name<'n> {
    lower: &'n str,
    pub(crate) known: u8,
}

/// Some known names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names(pub(crate) u64);

impl Names {
    /// Those given.
    ///
    /// # Panics
    /// When one is not a known name: use it for constants.
    pub const fn of(names: &[Name<'static>]) -> Names {
        let (mut set, mut at) = (0, 0);
        while at < names.len() {
            assert!(names[at].known != 0, "not one of the known names");
            set |= names[at].bit();
            at += 1;
        }
        Names(set)
    }

    /// These and others.
    pub const fn and(self, others: Names) -> Names {
        Names(self.0 | others.0)
    }
}

/// What can be looked for among headers. A text that is no name is found nowhere.
pub trait IntoName<'n> {
    /// The name. Its text may be in any case.
    fn into_name(self) -> Name<'n>;
}

/// What a header can be called when it is added: names that are valid for certain, in lower case.
pub trait ValidName<'n>: IntoName<'n> {}

macro_rules! known {
    ($($constant:ident $lower:literal $usual:literal)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "they are called like the constants")]
        enum Number { $($constant,)* }

        $(
            #[doc = concat!("`", $usual, "`")]
            pub const $constant: Name<'static> = Name { lower: $lower, known: Number::$constant as u8 + 1 };
        )*

        static LOWER: &[&str] = &["", $($lower,)*];
        /// With the colon and the blank that follow it in a line.
        static USUAL: &[&str] = &["", $(concat!($usual, ": "),)*];
    };
}

known! {
    ACCEPT "accept" "Accept"
    ACCEPT_ENCODING "accept-encoding" "Accept-Encoding"
    ACCEPT_LANGUAGE "accept-language" "Accept-Language"
    ACCESS_CONTROL_ALLOW_ORIGIN "access-control-allow-origin" "Access-Control-Allow-Origin"
    AUTHORIZATION "authorization" "Authorization"
    CACHE_CONTROL "cache-control" "Cache-Control"
    CONNECTION "connection" "Connection"
    CONTENT_ENCODING "content-encoding" "Content-Encoding"
    CONTENT_LENGTH "content-length" "Content-Length"
    CONTENT_TYPE "content-type" "Content-Type"
    COOKIE "cookie" "Cookie"
    DATE "date" "Date"
    ETAG "etag" "ETag"
    EXPECT "expect" "Expect"
    GRPC_MESSAGE "grpc-message" "Grpc-Message"
    GRPC_STATUS "grpc-status" "Grpc-Status"
    GRPC_TIMEOUT "grpc-timeout" "Grpc-Timeout"
    HOST "host" "Host"
    KEEP_ALIVE "keep-alive" "Keep-Alive"
    KONG_DEBUG "kong-debug" "Kong-Debug"
    LAST_MODIFIED "last-modified" "Last-Modified"
    LOCATION "location" "Location"
    ORIGIN "origin" "Origin"
    PROXY "proxy" "Proxy"
    PROXY_AUTHENTICATE "proxy-authenticate" "Proxy-Authenticate"
    PROXY_CONNECTION "proxy-connection" "Proxy-Connection"
    RATELIMIT_LIMIT "ratelimit-limit" "RateLimit-Limit"
    RATELIMIT_REMAINING "ratelimit-remaining" "RateLimit-Remaining"
    RATELIMIT_RESET "ratelimit-reset" "RateLimit-Reset"
    REFERER "referer" "Referer"
    RETRY_AFTER "retry-after" "Retry-After"
    SERVER "server" "Server"
    SET_COOKIE "set-cookie" "Set-Cookie"
    TE "te" "TE"
    TRACEPARENT "traceparent" "traceparent"
    TRACESTATE "tracestate" "tracestate"
    TRAILER "trailer" "Trailer"
    TRANSFER_ENCODING "transfer-encoding" "Transfer-Encoding"
    UPGRADE "upgrade" "Upgrade"
    USER_AGENT "user-agent" "User-Agent"
    VARY "vary" "Vary"
    VIA "via" "Via"
    WWW_AUTHENTICATE "www-authenticate" "WWW-Authenticate"
    X_ANONYMOUS_CONSUMER "x-anonymous-consumer" "X-Anonymous-Consumer"
    X_CONSUMER_CUSTOM_ID "x-consumer-custom-id" "X-Consumer-Custom-Id"
    X_CONSUMER_ID "x-consumer-id" "X-Consumer-Id"
    X_CONSUMER_USERNAME "x-consumer-username" "X-Consumer-Username"
    X_CREDENTIAL_IDENTIFIER "x-credential-identifier" "X-Credential-Identifier"
    X_FORWARDED_FOR "x-forwarded-for" "X-Forwarded-For"
    X_FORWARDED_HOST "x-forwarded-host" "X-Forwarded-Host"
    X_FORWARDED_PATH "x-forwarded-path" "X-Forwarded-Path"
    X_FORWARDED_PORT "x-forwarded-port" "X-Forwarded-Port"
    X_FORWARDED_PREFIX "x-forwarded-prefix" "X-Forwarded-Prefix"
    X_FORWARDED_PROTO "x-forwarded-proto" "X-Forwarded-Proto"
    X_KONG_PROXY_LATENCY "x-kong-proxy-latency" "X-Kong-Proxy-Latency"
    X_KONG_REQUEST_ID "x-kong-request-id" "X-Kong-Request-Id"
    X_KONG_RESPONSE_LATENCY "x-kong-response-latency" "X-Kong-Response-Latency"
    X_KONG_UPSTREAM_LATENCY "x-kong-upstream-latency" "X-Kong-Upstream-Latency"
    X_KONG_UPSTREAM_STATUS "x-kong-upstream-status" "X-Kong-Upstream-Status"
    X_REAL_IP "x-real-ip" "X-Real-IP"
}

/// A set of known names is a word of 64 bits; number 0 stands for all others.
const _: () = assert!(LOWER.len() <= 64, "too many known names");

/// Makes the places of all known names differ. Found by trying; a name that is added may need another one.
const FACTOR: u32 = 0x99d0_26a7;
const NUMBERS: [u8; 256] = {
    let mut numbers = [0; 256];
    let mut number = 1;
    while number < LOWER.len() {
        let place = place(LOWER[number].as_bytes());
        assert!(numbers[place] == 0, "two known names share a place: try another FACTOR");
        numbers[place] = number as u8;
        number += 1;
    }
    numbers
};

/// Mixes length and a few letters, in either case.
const fn place(name: &[u8]) -> usize {
    let length = name.len();
    if length == 0 {
        return 0;
    }
    (mixed(length as u32, name[0], name[length / 2], name[length * 3 / 4], name[length - 1]) >> 24) as usize
}

const fn mixed(length: u32, first: u8, middle: u8, later: u8, last: u8) -> u32 {
    let (first, middle, later, last) =
        ((first | 0x20) as u32, (middle | 0x20) as u32, (later | 0x20) as u32, (last | 0x20) as u32);
    let word = length & 255 | first << 8 | ((middle + 3 * later) & 255) << 16 | last << 24;
    word.wrapping_mul(FACTOR)
}

/// Number of a valid name in any case; 0 when it is none of the known ones.
#[inline]
pub(crate) fn number(name: &[u8]) -> u8 {
    let number = NUMBERS[place(name)];
    if number != 0 && is_same(LOWER[usize::from(number)].as_bytes(), name) { number } else { 0 }
}

/// Compares a known name with a valid one. Known names are letters and hyphens: of the characters a name may have, only
/// the same letter in the other case becomes the same by this bit.
#[inline]
fn is_same(known: &[u8], name: &[u8]) -> bool {
    const CASE: u64 = 0x2020_2020_2020_2020;
    if known.len() != name.len() {
        return false;
    }
    let word = |eight: &[u8; 8]| u64::from_le_bytes(*eight) | CASE;
    let (Some(known_end), Some(name_end)) = (known.last_chunk(), name.last_chunk()) else {
        return known.iter().zip(name).all(|(known, byte)| *known == byte | 0x20);
    };
    let words = known.chunks_exact(8).zip(name.chunks_exact(8));
    let mut same = word(known_end) == word(name_end);
    for (known, name) in words {
        if let (Ok(known), Ok(name)) = (known.try_into(), name.try_into()) {
            same &= word(known) == word(name);
        }
    }
    same
}

impl Name<'static> {
    /// A name known when this is compiled.
    ///
    /// # Panics
    /// When it is not valid or not in lower case: use it for constants.
    pub const fn from_static(lower: &'static str) -> Name<'static> {
        let bytes = lower.as_bytes();
        assert!(!bytes.is_empty(), "an empty name");
        let mut at = 0;
        while at < bytes.len() {
            assert!(is_token(bytes[at]) && !bytes[at].is_ascii_uppercase(), "no name in lower case");
            at += 1;
        }
        let number = NUMBERS[place(bytes)];
        let found = LOWER[number as usize].as_bytes();
        let mut same = found.len() == bytes.len();
        let mut at = 0;
        while same && at < bytes.len() {
            same = found[at] == bytes[at];
            at += 1;
        }
        Name { lower, known: if same { number } else { 0 } }
    }
}

impl<'n> Name<'n> {
    /// The name as it is looked for: mostly in lower case.
    pub fn as_str(&self) -> &'n str {
        self.lower
    }

    /// Its place in a set of known names; 0 is for all others.
    pub(crate) const fn bit(&self) -> u64 {
        (1 << self.known) & !1
    }
}

/// Whether a byte may stand in a name.
pub(crate) static TOKEN: [bool; 256] = {
    let (mut token, mut byte) = ([false; 256], 0);
    while byte < 256 {
        token[byte] = is_token(byte as u8);
        byte += 1;
    }
    token
};

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

impl<'n> IntoName<'n> for Name<'n> {
    fn into_name(self) -> Name<'n> {
        self
    }
}

impl<'n> IntoName<'n> for &'n str {
    fn into_name(self) -> Name<'n> {
        let number = number(self.as_bytes());
        // It need not be a name at all.
        let known = if LOWER[usize::from(number)].eq_ignore_ascii_case(self) { number } else { 0 };
        Name { lower: self, known }
    }
}

impl<'n> IntoName<'n> for &'n HeaderName {
    fn into_name(self) -> Name<'n> {
        Name { lower: self.as_str(), known: number(self.as_str().as_bytes()) }
    }
}

impl<'n> ValidName<'n> for Name<'n> {}
impl<'n> ValidName<'n> for &'n HeaderName {}

/// Names whose usual form is not each word with a capital, besides the known ones.
fn unusual(name: &[u8]) -> Option<&'static [u8]> {
    Some(match name {
        b"dnt" => b"DNT",
        b"content-md5" => b"Content-MD5",
        b"x-ratelimit-limit" => b"X-RateLimit-Limit",
        b"x-ratelimit-remaining" => b"X-RateLimit-Remaining",
        b"x-ratelimit-reset" => b"X-RateLimit-Reset",
        b"sec-websocket-accept" => b"Sec-WebSocket-Accept",
        b"sec-websocket-key" => b"Sec-WebSocket-Key",
        b"sec-websocket-protocol" => b"Sec-WebSocket-Protocol",
        b"sec-websocket-version" => b"Sec-WebSocket-Version",
        b"sec-websocket-extensions" => b"Sec-WebSocket-Extensions",
        _ => return None,
    })
}

/// Names that carry a trace stay in lower case, as those who defined them write them.
fn is_of_tracing(name: &[u8]) -> bool {
    const WHOLE: [&[u8]; 4] = [b"b3", b"uber-trace-id", b"x-amzn-trace-id", b"x-cloud-trace-context"];
    const BEGINNINGS: [&[u8]; 5] = [b"x-b3-", b"uberctx-", b"ot-tracer-", b"ot-baggage-", b"x-datadog-"];
    WHOLE.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Names that HTTP/1 itself or the gateway adds; they look the same whatever the peer speaks.
fn is_ours(name: Name<'_>) -> bool {
    const OURS: u64 = HOST.bit()
        | CONNECTION.bit()
        | UPGRADE.bit()
        | TE.bit()
        | CONTENT_LENGTH.bit()
        | TRANSFER_ENCODING.bit()
        | VIA.bit()
        | DATE.bit()
        | SERVER.bit()
        | X_REAL_IP.bit()
        | TRAILER.bit();
    OURS & name.bit() != 0 || name.lower.starts_with("x-forwarded-") || name.lower.starts_with("x-kong-")
}

/// Writes the start of a line, up to the value, with the name in its usual form; with `lower`, what is not ours stays in
/// lower case.
#[inline]
pub(crate) fn write_usual(out: &mut impl BufMut, name: Name<'_>, lower: bool) {
    if name.known != 0 && !lower {
        return out.put_slice(USUAL[usize::from(name.known)].as_bytes());
    }
    write_any(out, name, lower);
    out.put_slice(b": ");
}

fn write_any(out: &mut impl BufMut, name: Name<'_>, lower: bool) {
    if lower && !is_ours(name) {
        return out.put_slice(name.lower.as_bytes());
    }
    if let Some(line) = USUAL.get(usize::from(name.known)).filter(|line| !line.is_empty()) {
        return out.put_slice(line.trim_end_matches(": ").as_bytes());
    }
    let mut rest = name.lower.as_bytes();
    if let Some(whole) = unusual(rest) {
        return out.put_slice(whole);
    }
    if is_of_tracing(rest) {
        return out.put_slice(rest);
    }
    if let Some(after) = rest.strip_prefix(b"x-ratelimit-") {
        out.put_slice(b"X-RateLimit-");
        rest = after;
    }
    let mut begins = true;
    for part in rest.chunks(32) {
        let mut letters = [0; 32];
        for (letter, byte) in letters.iter_mut().zip(part) {
            *letter = if begins { byte.to_ascii_uppercase() } else { *byte };
            begins = *byte == b'-';
        }
        out.put_slice(&letters[..part.len()]);
    }
}
