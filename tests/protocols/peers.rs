//! HTTP/1.0 and HTTP/1.1 as python's library speaks them, HTTP/2 as nghttp2 does.

use crate::tools::{Server, Stage, program, said};
use gwctl_testkit::{Upstream, free_ports, wait_until};
use serde_json::json;

/// `http.server`: HTTP/1.0, each connection closed after its answer. Files of its folder; what it was sent comes back; an
/// answer that ends with its connection.
const SERVER: &str = r#"
import functools, http.server, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/open-end":
            return super().do_GET()
        self.send_response(200)
        self.end_headers()
        for _ in range(200):
            self.wfile.write(b"0123456789" * 100)

    def do_POST(self):
        body, trailers = b"", []
        if "Content-Length" in self.headers:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        else:
            while length := int(self.rfile.readline(), 16):
                body += self.rfile.read(length)
                assert self.rfile.readline() == b"\r\n"
            while line := self.rfile.readline().strip().decode():
                trailers.append(line)
        self.send_response(201)
        self.send_header("Seen-Trailers", ";".join(trailers))
        for name in ("Content-Length", "Transfer-Encoding", "Connection"):
            self.send_header("Seen-" + name, self.headers.get(name, "none"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

# Of more than five connections at once the system would let some wait for a second.
http.server.ThreadingHTTPServer.request_queue_size = 100
handler = functools.partial(Handler, directory=sys.argv[2])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
"#;

/// `http.client`: all requests over one connection, which is the same in the end; a line for each answer.
const CLIENT: &str = r#"
import http.client, ssl, sys

port, secure = int(sys.argv[1]), sys.argv[2] == "secure"
if secure:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
else:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
connection.connect()
socket = connection.sock

def ask(method, path, *show, **more):
    connection.request(method, path, **more)
    answer = connection.getresponse()
    body = answer.read()
    assert connection.sock is socket, (method, path, "the connection was not kept")
    # What a page of an error says depends on the version of python.
    size = len(body) if answer.status < 400 else "-"
    print(method, path, answer.version, answer.status, size, *[answer.headers[name] for name in show])
    return body

assert ask("GET", "/page.txt", "Content-Length") == b"a page"
ask("HEAD", "/page.txt", "Content-Length")
connection.request("GET", "/page.txt")
answer = connection.getresponse()
answer.read()
ask("GET", "/page.txt", headers={"If-Modified-Since": answer.headers["Last-Modified"]})
ask("GET", "/nowhere.txt")
assert ask("GET", "/open-end", "Transfer-Encoding") == b"0123456789" * 20000
seen = ("Seen-Content-Length", "Seen-Transfer-Encoding", "Seen-Connection")
assert ask("POST", "/post", *seen, body=b"x" * 1000000) == b"x" * 1000000
parts = [b"one ", b"two ", b"three" * 10000]
assert ask("POST", "/post", *seen, body=iter(parts)) == b"".join(parts)
assert ask("POST", "/post", *seen, body=b"") == b""
"#;

/// The server of python as upstream of everything.
fn serve(stage: &Stage, python: &str) -> Server {
    let script = stage.file("server.py", SERVER).display().to_string();
    let [port] = free_ports();
    let folder = stage.cluster.path("").display().to_string();
    let server = Server::start(python, &[&script, &port.to_string(), &folder], port);
    stage.serve(json!({"url": format!("http://127.0.0.1:{port}"), "retries": 0}), json!({}));
    server
}

#[test]
fn the_server_of_python_is_an_upstream_and_its_client_keeps_its_connection() {
    let Some(python) = program("python3") else { return };
    let stage = Stage::new(|options| options);
    let client = stage.file("client.py", CLIENT);
    stage.file("page.txt", "a page");
    let _server = serve(&stage, &python);
    for (port, kind) in [(stage.plain, "plain"), (stage.secure, "secure")] {
        let shown = said(&python, &[&client.display().to_string(), &port.to_string(), kind], "");
        let lines: Vec<_> = shown.lines().collect();
        // The body of a request is at hand before the upstream hears of it, so that its length is told.
        let expected = [
            "GET /page.txt 11 200 6 6",
            "HEAD /page.txt 11 200 0 6",
            "GET /page.txt 11 304 0",
            "GET /nowhere.txt 11 404 -",
            "GET /open-end 11 200 200000 chunked",
            "POST /post 11 201 1000000 1000000 none keep-alive",
            "POST /post 11 201 50008 50008 none keep-alive",
            "POST /post 11 201 0 0 none keep-alive",
        ];
        assert_eq!(lines, expected, "{kind}");
    }
}

/// The ports of a node with the scheme of each.
fn origins(stage: &Stage) -> [String; 2] {
    [format!("http://127.0.0.1:{}", stage.plain), format!("https://127.0.0.1:{}", stage.secure)]
}

#[test]
fn nghttp_speaks_http2_in_the_clear_and_over_tls() {
    let (Some(nghttp), Some(python)) = (program("nghttp"), program("python3")) else { return };
    let stage = Stage::new(|options| options);
    let posted = stage.file("posted.txt", &"posted ".repeat(30_000));
    let _server = serve(&stage, &python);
    let post = posted.display().to_string();
    for origin in origins(&stage) {
        let ask = |arguments: &[&str], paths: &[&str]| {
            let addresses: Vec<_> = paths.iter().map(|path| format!("{origin}{path}")).collect();
            let mut all = vec!["-nvy", "-t", "60"];
            all.extend_from_slice(arguments);
            all.extend(addresses.iter().map(String::as_str));
            said(&nghttp, &all, "")
        };
        let statuses = |shown: &str, status: &str| shown.matches(&format!(":status: {status}\n")).count();

        // Many streams at once through windows of a kilobyte, with padded frames, ended by GOAWAY of the client.
        let shown = ask(&["-w", "10", "-W", "10", "-b", "200", "-m", "8"], &["/posted.txt", "/open-end"]);
        assert_eq!(statuses(&shown, "200"), 16, "{shown}");
        assert!(!shown.contains("recv RST_STREAM") && !shown.contains("recv GOAWAY"), "{shown}");

        // A head of several frames, and no table for the headers of the answer.
        let shown = ask(&["--continuation", "-c", "0"], &["/posted.txt"]);
        assert_eq!(statuses(&shown, "200"), 1, "{shown}");

        let shown = ask(&["-d", &post, "--trailer", "checked: yes"], &["/post"]);
        assert!(
            shown.contains("seen-trailers: checked: yes") && shown.contains("seen-content-length: none"),
            "{shown}"
        );
        assert_eq!(statuses(&shown, "201"), 1, "{shown}");
        let shown = ask(&["-d", &post, "--no-content-length"], &["/post"]);
        assert_eq!(statuses(&shown, "201"), 1, "{shown}");
        assert!(shown.contains("seen-content-length: 210000"), "{shown}");
        let shown = ask(&["-H:method: HEAD"], &["/posted.txt"]);
        assert!(shown.contains("content-length: 210000") && !shown.contains("recv DATA"), "{shown}");
    }
}

#[test]
fn h2load_has_all_its_requests_answered() {
    let Some(h2load) = program("h2load") else { return };
    let stage = Stage::new(|options| options);
    let echo = Upstream::start();
    stage.serve(json!({"url": format!("http://127.0.0.1:{}", echo.port)}), json!({}));
    let before = echo.requests();
    for (round, origin) in origins(&stage).iter().enumerate() {
        let shown = said(&h2load, &["-n", "400", "-c", "4", "-m", "20", &format!("{origin}/x")], "");
        assert!(shown.contains("status codes: 400 2xx, 0 3xx, 0 4xx, 0 5xx"), "{shown}");
        assert!(shown.contains("400 succeeded, 0 failed, 0 errored, 0 timeout"), "{shown}");
        wait_until("all to have been counted", || echo.requests() - before == 400 * (round + 1));
    }
}
