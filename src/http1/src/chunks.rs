//! Chunked bodies (RFC 9112 section 7.1).

use crate::{Fault, Piece};
use bytes::{Buf, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use httparse::Status;

/// Most bytes of chunk extensions in a body: nobody uses them but to waste the reader's time.
const MAX_EXTENSIONS: u32 = 16 * 1024;
/// Longest trailer section.
const MAX_TRAILERS: usize = 16 * 1024;
/// Most trailers.
const MAX_TRAILER_LINES: usize = 64;
/// Trailers that would say how the message is framed or where it goes: they are dropped (RFC 9110 section 6.5.1).
const MISPLACED: [&str; 12] = [
    "transfer-encoding",
    "content-length",
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "content-encoding",
    "authorization",
    "set-cookie",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the digits of a size.
    Size {
        value: u64,
        digits: u8,
    },
    /// In blanks after it.
    Blank(u64),
    /// In an extension.
    Extension(u64),
    /// Before the LF of the size line.
    SizeEnd(u64),
    /// In the data.
    Data(u64),
    /// Before the CR, then the LF after the data.
    DataCr,
    DataLf,
    Trailers,
    Done,
}

/// Reader of a chunked body.
#[derive(Debug)]
pub(crate) struct Chunks {
    state: State,
    /// Bytes of extensions so far.
    extensions: u32,
    /// Bytes of the trailer section that hold no end.
    seen: usize,
}

impl Chunks {
    pub(crate) fn new() -> Chunks {
        Chunks { state: State::Size { value: 0, digits: 0 }, extensions: 0, seen: 0 }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes the next piece; None when there is none yet or at the end.
    pub(crate) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Piece>, Fault> {
        loop {
            match self.state {
                State::Done => return Ok(None),
                State::Data(left) => {
                    if buffer.is_empty() {
                        return Ok(None);
                    }
                    let length = left.min(buffer.len() as u64);
                    self.state = if length == left { State::DataCr } else { State::Data(left - length) };
                    let data = buffer.split_to(length as usize).freeze();
                    self.skip_line(buffer)?;
                    if self.state == State::Trailers && buffer.starts_with(b"\r\n") {
                        // The end is at hand: whoever takes the last data knows that it is the last.
                        buffer.advance(2);
                        self.state = State::Done;
                    }
                    return Ok(Some(Piece::Data(data)));
                }
                State::Trailers => return self.trailers(buffer),
                _ => {
                    self.skip_line(buffer)?;
                    if !matches!(self.state, State::Data(_) | State::Trailers) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Goes on through what is between the data of one chunk and that of the next, as far as the buffer goes.
    fn skip_line(&mut self, buffer: &mut BytesMut) -> Result<(), Fault> {
        let mut used = 0;
        for byte in buffer.iter().copied() {
            if matches!(self.state, State::Data(_) | State::Trailers | State::Done) {
                break;
            }
            self.state = self.step(byte)?;
            used += 1;
        }
        buffer.advance(used);
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<State, Fault> {
        let counted = |extensions: &mut u32| {
            *extensions += 1;
            if *extensions > MAX_EXTENSIONS { Err(Fault::ChunkExtensions) } else { Ok(()) }
        };
        Ok(match (self.state, byte) {
            (State::Size { value, digits }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                // 15 digits are a petabyte; leading zeros do not go on for ever either.
                if digits >= 15 {
                    return Err(Fault::Chunk);
                }
                State::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (State::Size { digits: 0, .. }, _) => return Err(Fault::Chunk),
            (State::Size { value, .. } | State::Blank(value), b' ' | b'\t') => {
                counted(&mut self.extensions)?;
                State::Blank(value)
            }
            (State::Size { value, .. } | State::Blank(value), b';') => State::Extension(value),
            (State::Size { value, .. } | State::Blank(value) | State::Extension(value), b'\r') => State::SizeEnd(value),
            (State::Extension(value), b'\t' | b' '..=b'~' | 0x80..) => {
                counted(&mut self.extensions)?;
                State::Extension(value)
            }
            (State::SizeEnd(0), b'\n') => State::Trailers,
            (State::SizeEnd(value), b'\n') => State::Data(value),
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { value: 0, digits: 0 },
            _ => return Err(Fault::Chunk),
        })
    }

    fn trailers(&mut self, buffer: &mut BytesMut) -> Result<Option<Piece>, Fault> {
        if buffer.starts_with(b"\r\n") {
            buffer.advance(2);
            self.state = State::Done;
            return Ok(None);
        }
        let from = self.seen.saturating_sub(3);
        let Some(end) = buffer[from..].windows(4).position(|window| window == b"\r\n\r\n") else {
            self.seen = buffer.len();
            let fits = buffer.len() <= MAX_TRAILERS && !buffer.starts_with(b"\n");
            return if fits { Ok(None) } else { Err(Fault::Trailers) };
        };
        let block = buffer.split_to(from + end + 4);
        self.state = State::Done;
        if block.len() > MAX_TRAILERS {
            return Err(Fault::Trailers);
        }
        let trailers = parse_trailers(&block)?;
        Ok((!trailers.is_empty()).then_some(Piece::Trailers(trailers)))
    }
}

fn parse_trailers(block: &[u8]) -> Result<HeaderMap, Fault> {
    // A lone LF would end a line for one reader and not for another.
    if block.windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r') {
        return Err(Fault::Trailers);
    }
    let mut lines = [httparse::EMPTY_HEADER; MAX_TRAILER_LINES];
    let Ok(Status::Complete((length, lines))) = httparse::parse_headers(block, &mut lines) else {
        return Err(Fault::Trailers);
    };
    if length != block.len() {
        return Err(Fault::Trailers);
    }
    let mut trailers = HeaderMap::new();
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| Fault::Trailers)?;
        let value = HeaderValue::from_bytes(line.value).map_err(|_| Fault::Trailers)?;
        if !MISPLACED.contains(&name.as_str()) {
            trailers.append(name, value);
        }
    }
    Ok(trailers)
}
