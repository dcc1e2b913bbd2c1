//! Answers the node makes by itself, and its error pages.

mod grpc;
mod templates;

pub use templates::{TemplateError, Templates};

use bytes::Bytes;
use gwctl_entities::Value;
use gwctl_http1::names::{ACCEPT, CONTENT_TYPE};
use gwctl_http1::{AsValue, Headers, ValidName};
use http::header::HeaderValue;
use http::{StatusCode, Version};

/// Body of an [`Exit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitBody {
    /// These bytes.
    Bytes(Bytes),
    /// A page with this message and the request id, in the form the client accepts, else in JSON.
    Page(String),
    /// The same for faults of the server itself: when the client does not say what it accepts, in the form it sends,
    /// else in plain text.
    Fault(String),
}

/// An answer by a plugin or by the node. `content-length` is added when it is sent.
#[derive(Debug, Clone)]
pub struct Exit {
    /// Status.
    pub status: StatusCode,
    /// Headers besides those the node adds to every answer.
    pub headers: Headers,
    /// Body.
    pub body: ExitBody,
}

impl Exit {
    /// Status only.
    pub fn empty(status: StatusCode) -> Exit {
        Exit { status, headers: Headers::new(), body: ExitBody::Bytes(Bytes::new()) }
    }

    /// A JSON body (`kong.response.exit` with a table).
    pub fn json(status: StatusCode, body: &Value) -> Exit {
        Self::bytes(status, "application/json; charset=utf-8", body.to_string())
    }

    /// A body of another type.
    pub fn bytes(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Exit {
        let mut exit = Self::empty(status);
        exit.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        exit.body = ExitBody::Bytes(body.into());
        exit
    }

    /// An error page: message and request id in the form the client accepts (`kong.response.error`).
    pub fn page(status: StatusCode, message: impl Into<String>) -> Exit {
        Exit { status, headers: Headers::new(), body: ExitBody::Page(message.into()) }
    }

    /// The page of a fault: a request that cannot be read, an upstream that fails.
    pub fn fault(status: StatusCode, message: impl Into<String>) -> Exit {
        Exit { status, headers: Headers::new(), body: ExitBody::Fault(message.into()) }
    }

    /// Adds a header.
    pub fn with_header<'n>(mut self, name: impl ValidName<'n>, value: impl AsValue) -> Exit {
        self.headers.append(name, value);
        self
    }

    /// As [`Exit::render_by`] over HTTP/1.1 with the built-in pages.
    pub fn render(&mut self, request: &Headers, request_id: &str) -> Bytes {
        self.render_by((Version::HTTP_11, request), request_id, &Templates::default())
    }

    /// The body as sent. For an error page sets `content-type`; `request` are the client's version and headers. A client of
    /// gRPC is told by headers and gets no body. Source: Kong 3.9.1 `kong/pdk/response.lua`, `is_grpc_request`, and
    /// `kong/error_handlers.lua` for faults.
    pub fn render_by(
        &mut self,
        (version, request): (Version, &Headers),
        request_id: &str,
        templates: &Templates,
    ) -> Bytes {
        let grpc = match &self.body {
            ExitBody::Fault(_) => grpc::is_asked_for(request),
            ExitBody::Page(_) | ExitBody::Bytes(_) => version == Version::HTTP_2 && grpc::is_spoken(request),
        };
        if grpc && !grpc::is_spoken(&self.headers) {
            grpc::answer(self);
            return Bytes::new();
        }
        let (message, format) = match &self.body {
            ExitBody::Bytes(bytes) => return bytes.clone(),
            ExitBody::Page(message) => (message, PageFormat::accepted(request)),
            ExitBody::Fault(message) => (message, PageFormat::fault(request)),
        };
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
        Bytes::from(templates.render(format, message, request_id))
    }
}

/// The type in which a client wants to be told of a fault: what it accepts, else what it sends.
fn asked_for(request: &Headers) -> Option<gwctl_http1::Value<'_>> {
    request.get(ACCEPT).or_else(|| request.get(CONTENT_TYPE))
}

/// Forms of an error page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFormat {
    /// The default.
    Json,
    /// `text/html`, `application/xhtml+xml`.
    Html,
    /// `text/plain`.
    Plain,
    /// `application/xml`, `text/xml`.
    Xml,
}

impl PageFormat {
    /// What the client accepts best; JSON when it does not say.
    pub fn accepted(request: &Headers) -> PageFormat {
        request.get_str(ACCEPT).map_or(Self::Json, Self::best)
    }

    /// What the client accepts best, else the form it sends, else plain text.
    fn fault(request: &Headers) -> PageFormat {
        let said = asked_for(request);
        said.and_then(gwctl_http1::Value::to_str).map_or(Self::Plain, Self::best)
    }

    /// The type of the highest quality, the first of equals; one that is not known counts as JSON.
    /// Source: Kong 3.9.1 `kong/tools/http.lua`, `get_response_type`.
    fn best(accept: &str) -> PageFormat {
        let mut best = (0.0, Self::Json);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let Some(name) = parts.next().filter(|name| name.contains('/')) else { continue };
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
            if quality > best.0 {
                best = (quality, Self::named(name));
            }
        }
        best.1
    }

    fn named(media_type: &str) -> PageFormat {
        match media_type.to_ascii_lowercase().as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "text/plain" | "text/*" => Self::Plain,
            "application/xml" | "text/xml" => Self::Xml,
            _ => Self::Json,
        }
    }

    /// Value of `content-type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Plain => "text/plain; charset=utf-8",
            Self::Xml => "application/xml; charset=utf-8",
        }
    }

    /// The page. Source: Kong 3.9.1, its built-in error templates.
    pub fn render(self, message: &str, request_id: &str) -> String {
        match self {
            Self::Json => {
                format!("{{\n  \"message\":{},\n  \"request_id\":\"{request_id}\"\n}}", Value::from(message))
            }
            Self::Html => {
                let message = escape(message);
                format!(
                    "<!doctype html>\n<html>\n  <head>\n    <meta charset=\"utf-8\">\n    <title>Error</title>\n  </head>\n  \
                     <body>\n    <h1>Error</h1>\n    <p>{message}.</p>\n    <p>request_id: {request_id}</p>\n  </body>\n</html>\n"
                )
            }
            Self::Plain => format!("{message}\nrequest_id: {request_id}\n"),
            Self::Xml => {
                let message = escape(message);
                format!(
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<error>\n  <message>{message}</message>\n  \
                     <requestid>{request_id}</requestid>\n</error>\n"
                )
            }
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn format_for(accept: &str) -> PageFormat {
        let mut headers = Headers::new();
        headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
        PageFormat::accepted(&headers)
    }

    #[test]
    fn the_page_takes_the_form_the_client_likes_best() {
        assert_eq!(format_for("text/plain"), PageFormat::Plain);
        assert_eq!(format_for("text/html;q=0.5, application/xml"), PageFormat::Xml);
        assert_eq!(format_for("image/png;q=0.1, text/plain;q=0.2"), PageFormat::Plain);
        assert_eq!(format_for("*/*"), PageFormat::Json);
        assert_eq!(format_for("image/png"), PageFormat::Json);
        assert_eq!(format_for("text/plain;q=0"), PageFormat::Json);
    }

    #[test]
    fn a_fault_answers_in_the_form_the_client_sends() {
        let mut headers = Headers::new();
        assert_eq!(PageFormat::fault(&headers), PageFormat::Plain);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        assert_eq!(PageFormat::fault(&headers), PageFormat::Json);
    }

    #[test]
    fn a_message_cannot_break_out_of_its_page() {
        assert_eq!(PageFormat::Json.render("a\"b", "1"), "{\n  \"message\":\"a\\\"b\",\n  \"request_id\":\"1\"\n}");
        assert!(PageFormat::Html.render("<script>", "1").contains("&lt;script&gt;"));
    }
}
