"""The kinds of traffic. Each function sends one round through a gateway and raises when an answer is not what it must be."""

import http.client
import os
import random
import socket
import ssl
import struct
import time

TIME_OUT = 30


class Wrong(Exception):
    """An answer that must not be."""


def expect(condition, words):
    if not condition:
        raise Wrong(words)


def get(client, path, size, headers=None, statuses=(200,)):
    client.request("GET", path, headers=headers or {})
    answer = client.getresponse()
    body = answer.read()
    expect(answer.status in statuses, f"{path}: {answer.status} {body[:80]!r}")
    expect(answer.status != 200 or size is None or len(body) == size, f"{path}: {len(body)} bytes")
    return answer.status


def plain(gateway):
    return http.client.HTTPConnection("127.0.0.1", gateway["plain"], timeout=TIME_OUT)


def kept(gateway, count):
    """One connection, many requests."""
    client = plain(gateway)
    for _ in range(50):
        size = random.choice([0, 10, 1000, 20_000, 100_000])
        get(client, f"/plain/bytes/{size}", size)
        count()
    client.close()


def fresh(gateway, count):
    """A connection for each request."""
    for _ in range(10):
        client = plain(gateway)
        get(client, "/plain/bytes/100", 100, {"Connection": "close"})
        client.close()
        count()


def tls(gateway, count):
    """Handshakes, with a few requests each."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for _ in range(3):
        client = http.client.HTTPSConnection("127.0.0.1", gateway["tls"], timeout=TIME_OUT, context=context)
        for _ in range(5):
            get(client, "/plain/bytes/5000", 5000)
            count()
        client.close()


def keys(gateway, count):
    """key-auth: a good key, a bad one, none."""
    client = plain(gateway)
    for headers, status in [({"apikey": "soak"}, 200), ({"apikey": "wrong"}, 401), ({}, 401)]:
        get(client, "/keys/bytes/10", None, headers, (status,))
        count()
    client.close()


def limited(gateway, count):
    """rate-limiting: most are turned away."""
    client = plain(gateway)
    for _ in range(10):
        get(client, "/limited/bytes/10", 10, None, (200, 429))
        count()
    client.close()


def large(gateway, count):
    """Large bodies both ways, with a length and in chunks."""
    client = plain(gateway)
    size = 3_000_000
    get(client, f"/plain/bytes/{size}", size)
    body = b"y" * size
    for data in (body, (body[at:at + 50_000] for at in range(0, size, 50_000))):
        client.request("POST", "/plain/count", body=data)
        answer = client.getresponse()
        text = answer.read().decode()
        expect((answer.status, text) == (200, f"POST {size}"), f"upload: {answer.status} {text[:80]}")
        count()
    client.close()


def slow(gateway, count):
    """A client that takes its time, and one whose answer does."""
    with socket.create_connection(("127.0.0.1", gateway["plain"]), TIME_OUT) as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        size = 600_000
        stream.sendall(f"GET /plain/bytes/{size} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        taken = 0
        while part := stream.recv(20_000):
            taken += len(part)
            time.sleep(0.02)
        expect(taken > size, f"slow client: {taken} bytes")
    count()
    client = plain(gateway)
    get(client, "/plain/slow/40", 200)
    client.close()
    count()


def aborted(gateway, count):
    """Clients that leave: in the head, in their body, in the answer. Nothing is expected but that others are served."""
    starts = [
        b"GET /plain/bytes/10 HTTP/1.1\r\nHost",
        b"POST /plain/count HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhalf",
        b"GET /plain/bytes/3000000 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /plain/slow/100 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"nonsense\r\n\r\n",
    ]
    for start in starts:
        with socket.create_connection(("127.0.0.1", gateway["plain"]), TIME_OUT) as stream:
            stream.sendall(start)
            time.sleep(0.02)
        count()


def exactly(stream, size):
    data = b""
    while len(data) < size:
        part = stream.recv(size - len(data))
        expect(part, "the connection was closed")
        data += part
    return data


def websocket(gateway, count):
    """An upgrade, and messages for some seconds, over changes of the configuration."""
    with socket.create_connection(("127.0.0.1", gateway["plain"]), TIME_OUT) as stream:
        stream.sendall(b"GET /plain/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += exactly(stream, 1)
        expect(head.startswith(b"HTTP/1.1 101"), f"websocket: {head[:80]!r}")
        for number in range(40):
            text, mask = f"message {number}".encode(), os.urandom(4)
            hidden = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
            stream.sendall(bytes([129, 128 | len(text)]) + mask + hidden)
            reply = exactly(stream, 2 + len(text))
            expect(reply[2:] == text, f"websocket: {reply!r}")
            time.sleep(0.1)
        stream.sendall(bytes([136, 128]) + b"\0\0\0\0")
        exactly(stream, 2)
    count()


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def http2(gateway, count):
    """Streams beside each other over HTTP/2, frames made by hand."""
    data, headers, reset, settings, ping, goaway, update = 0, 1, 3, 4, 6, 7, 8
    with socket.create_connection(("127.0.0.1", gateway["plain"]), TIME_OUT) as stream:
        start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings, 0, 0)
        wanted = {}
        for number in range(1, 41, 2):
            size = random.choice([1, 1000, 30_000, 200_000])
            wanted[number] = size
            fields = [(":method", "GET"), (":scheme", "http"), (":path", f"/plain/bytes/{size}"), (":authority", "a")]
            start += frame(headers, 5, number, b"".join(literal(*field) for field in fields))
        stream.sendall(start)
        while wanted:
            head = exactly(stream, 9)
            kind, flags, number = head[3], head[4], struct.unpack(">I", head[5:])[0]
            payload = exactly(stream, int.from_bytes(head[:3], "big"))
            if kind == headers:
                expect(payload[0] == 0x88, f"http/2: head {payload[:20]!r}")
            elif kind == data:
                wanted[number] -= len(payload)
                if payload:
                    more = struct.pack(">I", len(payload))
                    stream.sendall(frame(update, 0, 0, more) + frame(update, 0, number, more))
            elif kind in (settings, ping) and not flags & 1:
                stream.sendall(frame(kind, 1, 0, payload if kind == ping else b""))
            expect(kind not in (reset, goaway), f"http/2: frame {kind} {payload!r}")
            if kind in (headers, data) and flags & 1:
                expect(wanted.pop(number) == 0, "http/2: short body")
                count()


KINDS = [kept, fresh, tls, keys, limited, large, slow, aborted, websocket, http2]
