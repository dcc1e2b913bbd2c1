//! Why a message is refused.

use http::StatusCode;

/// What is wrong with a message. The connection it came over cannot be used any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The first line is not one of HTTP/1.
    #[error("malformed first line")]
    FirstLine,
    /// A protocol version other than 1.0 and 1.1.
    #[error("unknown protocol version")]
    Version,
    /// The request target is no URI.
    #[error("malformed request target")]
    Target,
    /// The first line alone is longer than the limit.
    #[error("first line too long")]
    FirstLineTooLong,
    /// The head is longer than the limit.
    #[error("head too long")]
    HeadTooLong,
    /// More header lines than the limit.
    #[error("too many headers")]
    TooManyFields,
    /// A name that is no token, blanks before the colon, a line without colon, or one that continues the line before.
    #[error("malformed header name")]
    FieldName,
    /// A control character in a value.
    #[error("malformed header value")]
    FieldValue,
    /// A line that does not end in CR and LF.
    #[error("line without its CR LF")]
    LineEnd,
    /// `Content-Length` is no number, or there are several.
    #[error("malformed or repeated content-length")]
    Length,
    /// `Content-Length` and `Transfer-Encoding` in one message.
    #[error("both content-length and transfer-encoding")]
    TwoFramings,
    /// `Transfer-Encoding` without `chunked` at its end, or with it twice, or in a message of HTTP/1.0.
    #[error("malformed transfer-encoding")]
    Encoding,
    /// A transfer coding besides `chunked`.
    #[error("unknown transfer coding")]
    UnknownCoding,
    /// A chunk that does not begin with its size in hexadecimal digits or does not end where it says.
    #[error("malformed chunk")]
    Chunk,
    /// Extensions of chunks longer than the limit.
    #[error("chunk extensions too long")]
    ChunkExtensions,
    /// The headers after a chunked body are malformed or too long.
    #[error("malformed trailers")]
    Trailers,
    /// The peer closed before the end of the body.
    #[error("closed before the end of the body")]
    Truncated,
}

impl Fault {
    /// The answer to a request with this fault.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::FirstLineTooLong => StatusCode::URI_TOO_LONG,
            Self::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}
