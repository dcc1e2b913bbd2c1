//! One line of a stream.

use super::line::{clock, escaped, millis, moment};
use crate::stream::session::Session;
use serde_json::{Map, Value};
use std::io::Write;

/// `client [time] protocol status sent received seconds`, the time that of the end, as nginx has it.
///
/// Source: Kong 3.9.1 `kong/templates/nginx_kong_stream.lua`, `log_format basic`.
pub(super) fn basic(out: &mut Vec<u8>, session: &Session) {
    start(out, session);
    out.push(b'\n');
}

/// The same with upstream, server name and route behind it, each in quotes and `-` where there is none.
pub(super) fn combined(out: &mut Vec<u8>, session: &Session) {
    start(out, session);
    let upstream = session.upstream.map(|upstream| upstream.to_string());
    let route = session.route.as_ref().map(|route| route.name.as_deref().unwrap_or(&route.id));
    for text in [upstream.as_deref(), session.server_name.as_deref(), route] {
        out.extend_from_slice(b" \"");
        escaped(out, text.unwrap_or("-").as_bytes());
        out.push(b'"');
    }
    out.push(b'\n');
}

/// Everything that is known.
pub(super) fn json(out: &mut Vec<u8>, session: &Session) {
    let mut line = Map::new();
    let mut set = |name: &str, value: Value| _ = line.insert(name.to_owned(), value);
    set("time", moment(session.began_millis));
    set("client_ip", session.client.ip().to_canonical().to_string().into());
    set("client_port", session.client.port().into());
    set("listener", session.listener.to_string().into());
    set("protocol", session.protocol.name().into());
    set("sni", session.server_name.as_deref().into());
    set("status", session.status.into());
    set("end", session.end.name().into());
    set("bytes_received", session.received.into());
    set("bytes_sent", session.sent.into());
    set("session_ms", millis(Some(session.took)));
    set("upstream_connect_ms", millis(session.connected));
    set("upstream", session.upstream.map(|upstream| upstream.to_string()).into());
    set("route", session.route.as_ref().map(|route| &*route.id).into());
    set("service", session.service.as_ref().map(|service| &*service.id).into());
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *out, &line);
    out.push(b'\n');
}

fn start(out: &mut Vec<u8>, session: &Session) {
    let _ = write!(out, "{} [", session.client.ip().to_canonical());
    let took = u64::try_from(session.took.as_millis()).unwrap_or(u64::MAX);
    clock(out, session.began_millis.saturating_add(took));
    let (protocol, status) = (session.protocol.transport(), session.status);
    let (sent, received) = (session.sent, session.received);
    let _ = write!(out, "] {protocol} {status} {sent} {received} {}.{:03}", took / 1000, took % 1000);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::session::{End, Protocol};
    use gwctl_entities::view::{Route, from_record};
    use std::sync::Arc;
    use std::time::Duration;

    fn ended() -> Session {
        let (client, listener) = ("192.0.2.1:4711".parse().unwrap(), "127.0.0.1:9443".parse().unwrap());
        let mut session = Session::begin(client, listener, Protocol::Tls);
        (session.began_millis, session.took) = (1_800_000_000_123, Duration::from_micros(61_002_400));
        (session.status, session.sent, session.received, session.end) = (200, 12, 34, End::Done);
        session
    }

    fn text(form: fn(&mut Vec<u8>, &Session), session: &Session) -> String {
        let mut out = Vec::new();
        form(&mut out, session);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_basic_form_is_that_of_kong_with_the_time_of_the_end() {
        let line = "192.0.2.1 [15/Jan/2027:08:01:01 +0000] TCP 200 12 34 61.002\n";
        assert_eq!(text(basic, &ended()), line);
    }

    #[test]
    fn the_combined_form_tells_upstream_name_and_route_and_cannot_be_forged() {
        let mut session = ended();
        assert!(text(combined, &session).ends_with("61.002 \"-\" \"-\" \"-\"\n"));
        session.upstream = Some("[::1]:5432".parse().unwrap());
        session.server_name = Some("db\"\n.test".to_owned());
        let route = serde_json::json!({"id": "r", "name": "door", "protocols": ["tls"], "snis": ["db.test"]});
        session.route = Some(Arc::new(from_record::<Route>(route.as_object().unwrap()).unwrap()));
        assert!(text(combined, &session).ends_with("61.002 \"[::1]:5432\" \"db\\x22\\x0A.test\" \"door\"\n"));
    }

    #[test]
    fn a_json_line_reads_back() {
        let line: Value = serde_json::from_str(&text(json, &ended())).unwrap();
        assert_eq!((line["time"].as_str(), line["end"].as_str()), (Some("2027-01-15T08:00:00.123Z"), Some("done")));
        assert_eq!((line["bytes_sent"].as_u64(), line["session_ms"].as_f64()), (Some(12), Some(61_002.4)));
        assert!(line["upstream"].is_null() && line["protocol"] == "tls" && line["client_port"] == 4711);
    }
}
