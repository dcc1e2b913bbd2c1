//! Bodies on their way in.

use crate::chunks::Chunks;
use crate::{Fault, Framing};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes, at least one. They share the buffer they came in.
    Data(Bytes),
    /// Headers after a chunked body; the last piece.
    Trailers(HeaderMap),
}

/// Takes a body off a buffer, piece by piece.
#[derive(Debug)]
pub struct Decoder(Kind);

#[derive(Debug)]
enum Kind {
    Length(u64),
    Chunked(Chunks),
    UntilClose,
    Done,
}

impl Decoder {
    /// For a body framed like this.
    pub fn new(framing: Framing) -> Decoder {
        Decoder(match framing {
            Framing::None | Framing::Length(0) => Kind::Done,
            Framing::Length(length) => Kind::Length(length),
            Framing::Chunked => Kind::Chunked(Chunks::new()),
            Framing::UntilClose => Kind::UntilClose,
        })
    }

    /// For a message without body.
    pub const fn done() -> Decoder {
        Decoder(Kind::Done)
    }

    /// The next piece; None when the buffer holds none, or at the end.
    ///
    /// # Errors
    /// The chunks are malformed.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Piece>, Fault> {
        match &mut self.0 {
            Kind::Done => Ok(None),
            _ if buffer.is_empty() => Ok(None),
            Kind::Length(left) => {
                let length = (*left).min(buffer.len() as u64);
                *left -= length;
                if *left == 0 {
                    self.0 = Kind::Done;
                }
                Ok(Some(Piece::Data(buffer.split_to(length as usize).freeze())))
            }
            Kind::Chunked(chunks) => {
                let piece = chunks.decode(buffer)?;
                if chunks.is_done() {
                    self.0 = Kind::Done;
                }
                Ok(piece)
            }
            Kind::UntilClose => Ok(Some(Piece::Data(buffer.split().freeze()))),
        }
    }

    /// The peer has closed and the buffer is empty.
    ///
    /// # Errors
    /// That was not the end of the body.
    pub fn close(&mut self) -> Result<(), Fault> {
        match self.0 {
            Kind::Done | Kind::UntilClose => {
                self.0 = Kind::Done;
                Ok(())
            }
            _ => Err(Fault::Truncated),
        }
    }

    /// All of the body has been taken.
    pub fn is_done(&self) -> bool {
        matches!(self.0, Kind::Done)
    }

    /// Bytes to come, where that is known.
    pub fn left(&self) -> Option<u64> {
        match self.0 {
            Kind::Length(left) => Some(left),
            Kind::Done => Some(0),
            _ => None,
        }
    }
}
