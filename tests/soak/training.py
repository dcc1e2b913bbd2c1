"""What the shipped program is trained with: the load that a build with counters is run under, so that the compiler knows
which paths are hot. See scripts/dist.

A node with a store takes a file of a thousand routes and plugins, is changed a little at a time, and proxies to itself:
small and large answers, bodies, TLS with kept connections and with a handshake each, HTTP/2, plugins, errors.
"""

import http.client
import json
import pathlib
import subprocess
import sys
import tempfile

from main import Node, admin, until

ROUTES = 1000
KEY = "training"
LARGE = 100 * 1024
REQUESTS = 60_000


def route(name, **fields):
    return {"name": name, **fields}


def answering(name, text):
    plugin = {"name": "request-termination", "config": {"status_code": 200, "body": text, "content_type": "text/plain"}}
    return route(name, paths=[f"/{name}"], plugins=[plugin])


def configuration(own_port):
    """Routes as people have them; the upstream is the node itself."""
    host, limit = f"127.0.0.1:{own_port}", {"name": "rate-limiting", "config": {"hour": 10**8, "policy": "local"}}
    many = [route(f"r{number}", paths=[f"/r{number}"]) for number in range(ROUTES)]
    some = [
        route("by-host", hosts=["training.test"], paths=["/by-host"]),
        route("by-method", methods=["POST"], paths=["/by-method"]),
        route("by-expression", paths=["~/by-expression/(?<number>[0-9]+)$"]),
        route("by-header", headers={"x-way": ["one", "two"]}, paths=["/by-header"]),
        route("keys", paths=["/keys"], plugins=[{"name": "key-auth"}]),
        route("limited", paths=["/limited"], plugins=[{"name": "key-auth"}, limit]),
        route("balanced", paths=["/balanced"], service={"name": "balanced"}),
    ]
    to_self = {"name": "itself", "url": f"http://{host}/small", "routes": many + some[:-1]}
    large = {"name": "large", "url": f"http://{host}/large", "routes": [route("to-large", paths=["/to-large"])]}
    balanced = {"name": "balanced", "host": "training", "path": "/small", "routes": [route("balanced", paths=["/balanced"])]}
    return {
        "_format_version": "3.0",
        "services": [to_self, large, balanced],
        "routes": [answering("small", "a small answer there"), answering("large", "x" * LARGE)],
        "upstreams": [{"name": "training", "targets": [{"target": host, "weight": 100}]}],
        "consumers": [{"username": "training", "keyauth_credentials": [{"key": KEY}]}],
    }


def load(*words, count=REQUESTS, status=2):
    command = ["h2load", "-t1", "-n", str(count), "-H", f"apikey: {KEY}", *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode or f" {count} {status}xx," not in ended.stdout:
        sys.exit(f"error: {' '.join(command)}\n{ended.stdout}{ended.stderr}")


def status(port, path):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("GET", path)
    return client.getresponse().status


def drive(plain, tls, body):
    clear, secure = f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{tls}"
    small = [f"{clear}/r{number}" for number in range(0, ROUTES, 25)]
    load("--h1", "-c64", *small, count=4 * REQUESTS)
    load("--h1", "-c64", *(f"{clear}/{way}" for way in ("keys", "limited", "by-expression/7", "balanced")))
    load("--h1", "-c16", f"{clear}/nowhere", count=REQUESTS // 4, status=4)
    load("--h1", "-c16", "-H", ":authority: training.test", "-H", "x-way: two", f"{clear}/by-host", f"{clear}/by-header")
    load("--h1", "-c16", "-d", body, f"{clear}/by-method", count=REQUESTS // 4)
    load("--h1", "-c16", f"{clear}/to-large", count=REQUESTS // 4)
    load("--h1", "-c64", f"{secure}/r7?training=1", f"{secure}/keys")
    load("-c16", "-m8", f"{secure}/r7", f"{secure}/limited")
    for _ in range(5):
        load("--h1", "-c400", f"{secure}/r9", count=400)


def change(port):
    """Little by little, as through a tool or a page."""
    for number in range(200):
        name = f"changed-{number}"
        admin(port, "PUT", f"/services/{name}", {"url": "http://changed.test"})
        admin(port, "PUT", f"/services/{name}/routes/{name}", {"paths": [f"/{name}"]})
        admin(port, "PATCH", f"/routes/{name}", {"methods": ["GET"]})
        admin(port, "GET", f"/routes/{name}")
    admin(port, "GET", "/routes?size=1000")


def train(program, folder):
    node = Node(program, folder, "trained", "traditional", workers=1)
    try:
        file, body = folder / "training.json", folder / "body"
        file.write_text(json.dumps(configuration(node.gateway["plain"])))
        body.write_bytes(b"x" * 8192)
        address = ["--addr", f"http://127.0.0.1:{node.admin}"]
        for words in (["diff"], ["apply", "--yes"], ["diff"]):
            done = subprocess.run([program, *words, "-f", file, *address], capture_output=True, text=True)
            if done.returncode not in (0, 2):
                sys.exit(f"error: gwctl {words[0]}: {done.stdout[-2000:]}{done.stderr}")
        until("the routes to be there", lambda: status(node.gateway["plain"], "/r999") == 200)
        change(node.admin)
        drive(node.gateway["plain"], node.gateway["tls"], body)
        for fault in node.stop():
            sys.exit(f"error: {fault}")
    finally:
        node.process.kill()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="gwctl-training-") as place:
        train(sys.argv[1], pathlib.Path(place))
