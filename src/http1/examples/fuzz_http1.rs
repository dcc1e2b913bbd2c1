//! Random heads and chunks: whatever comes, it is read or refused, and in the same way however it is cut.
//!
//! `cargo run -p gwctl-http1 --example fuzz_http1 -- --seconds 60 [request|response|chunks]`

use bytes::BytesMut;
use gwctl_http1::{
    Decoder, Fault, Framing, Limits, Persistence, Piece, read_request, read_response, write_request, write_response,
};
use gwctl_testkit::fuzz::{Target, main as fuzz};
use http::Method;
use std::process::ExitCode;

const LIMITS: Limits = Limits { size: 2048, fields: 80 };

const REQUESTS: &[&str] = &[
    "GET /a/b?c=d HTTP/1.1\r\nHost: a.test\r\nX-Fancy: 1\r\nConnection: close\r\n\r\n",
    "POST http://a.test/ HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
    "PUT * HTTP/1.1\r\nTransfer-Encoding: chunked\r\nx-fancy: \r\n\r\n0\r\n\r\n",
];
const RESPONSES: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a\r\nset-cookie: b\r\n\r\nhello",
    "HTTP/1.0 404 \r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
];
const CHUNKS: &[&str] = &["5;a=b\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", "1 \r\n!\r\nA\r\n0123456789\r\n00\r\n\r\nrest"];
const WORDS: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    " ",
    "\t",
    ":",
    ",",
    ";",
    "\0",
    "\u{b}",
    "0",
    "ffffffffffffffff",
    "chunked",
    "identity",
    "Content-Length: 5\r\n",
    "Content-Length: 5, 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Connection: close, x\r\n",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/2.0",
    "Host: b\r\n",
    "X: \r\n y\r\n",
    "é",
    "%00",
    "#",
    "100",
    "304",
];

/// Data and trailers that were read, and why reading stopped.
fn decode(parts: &[&[u8]]) -> (Vec<u8>, usize, bool, Option<Fault>) {
    let (mut decoder, mut buffer, mut data, mut trailers) =
        (Decoder::new(Framing::Chunked), BytesMut::new(), Vec::new(), 0);
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(Piece::Data(piece))) => data.extend_from_slice(&piece),
                Ok(Some(Piece::Trailers(more))) => trailers += more.len(),
                Ok(None) => break,
                Err(fault) => return (data, trailers, false, Some(fault)),
            }
        }
    }
    (data, trailers, decoder.is_done(), None)
}

fn main() -> ExitCode {
    let request = |input: &[u8]| {
        let mut buffer = BytesMut::from(input);
        let Ok(Some(head)) = read_request(&mut buffer, &mut 0, &LIMITS) else { return };
        let mut out = BytesMut::new();
        write_request(&mut out, &head.method, &head.target, &head.headers, head.framing);
        // An absolute target is written in origin form, so only what frames the message is compared.
        let again = read_request(&mut out, &mut 0, &Limits { size: 4096, fields: 100 });
        assert!(
            matches!(again, Ok(Some(again)) if again.framing == head.framing && out.is_empty()),
            "written otherwise than read"
        );
    };
    let response = |input: &[u8]| {
        let mut buffer = BytesMut::from(input);
        let Ok(Some(head)) = read_response(&mut buffer, &mut 0, &LIMITS, &Method::GET) else { return };
        let mut out = BytesMut::new();
        write_response(&mut out, head.status, &head.headers, head.framing, Persistence::Usual, b"now");
        let again = read_response(&mut out, &mut 0, &Limits { size: 4096, fields: 100 }, &Method::GET);
        assert!(
            matches!(again, Ok(Some(again)) if again.status == head.status && out.is_empty()),
            "written otherwise than read"
        );
    };
    let chunks = |input: &[u8]| {
        let (whole, bytes) = (decode(&[input]), decode(&input.chunks(1).collect::<Vec<_>>()));
        assert_eq!((whole.3.is_some(), whole.2, whole.1), (bytes.3.is_some(), bytes.2, bytes.1));
        assert!(whole.3.is_some() || whole.0 == bytes.0, "cut otherwise, read otherwise");
    };
    fuzz(&[
        Target { name: "request", seeds: REQUESTS, words: WORDS, run: &request },
        Target { name: "response", seeds: RESPONSES, words: WORDS, run: &response },
        Target { name: "chunks", seeds: CHUNKS, words: WORDS, run: &chunks },
    ])
}
