"""h2spec: the conformance tests of HTTP/2 and HPACK, at listeners of the proxy with TLS and without."""
import json, os, threading, time, urllib.request
import xml.etree.ElementTree as xml
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from building import WORK, build, call
from nodes import free_ports, with_node

H2SPEC = "v2.2.1+incompatible"


def build_h2spec():
    program = WORK / f"h2spec-{H2SPEC}" / "h2spec"
    program.parent.mkdir(exist_ok=True)
    os.environ["GOBIN"] = str(program.parent)
    return build(program, WORK, ["go", "install", f"github.com/summerwind/h2spec/cmd/h2spec@{H2SPEC}"])


class Echo(BaseHTTPRequestHandler):
    """Answers with the body that came, or a short text."""
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))) or b"hello"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_HEAD = answer

    def log_message(self, *_):
        pass


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """The tests give up requests on purpose."""


def serve_all(node, upstream, port):
    """A route for everything; returns when it serves."""
    service = {"name": "all", "url": f"http://127.0.0.1:{upstream}", "routes": [{"paths": ["/"]}]}
    config = json.dumps({"_format_version": "3.0", "services": [service]}).encode()
    request = urllib.request.Request(node.url + "/config", config, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=60).close()
    give_up = time.monotonic() + 60
    while True:
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
        except OSError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


def run_h2spec(gwctl, program, results):
    plain, secure = free_ports(2)
    upstream = Quiet(("127.0.0.1", 0), Echo)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    settings = {"database": "off", "proxy_listen": f"127.0.0.1:{plain} http2, 127.0.0.1:{secure} http2 ssl"}

    def work(node):
        serve_all(node, upstream.server_port, plain)
        for title, port, flags in (("plain", plain, []), ("tls", secure, ["-t", "-k"])):
            report = WORK / f"h2spec-{title}.xml"
            report.unlink(missing_ok=True)
            ran = call([program, "-h", "127.0.0.1", "-p", port, "-o", 30, "-j", report, *flags])
            cases = list(xml.parse(report).iter("testcase")) if report.exists() else []
            if len(cases) < 140:
                results[f"h2spec {title}"] = f"fail\n{len(cases)} of its tests ran\n{ran.stdout[-2000:]}"
            for case in cases:
                name = f"h2spec {title} {case.get('package')}: {case.get('classname')}"
                wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
                results[name] = "pass" if wrong is None else f"fail\n{''.join(wrong.itertext())}"

    try:
        with_node(gwctl, settings, "h2spec node", results, work)
    finally:
        upstream.shutdown()
        upstream.server_close()
