"""An upstream: bodies of any size, bodies that are counted, slow bodies, WebSockets that echo."""

import asyncio
import base64
import hashlib

PIECE = b"x" * 65536


async def head_of(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    method, target, _ = head[0].split(" ")
    return method, target.split("?")[0], fields


async def body_size(reader, fields):
    size = 0
    if "chunked" in fields.get("transfer-encoding", ""):
        while True:
            length = int((await reader.readline()).split(b";")[0], 16)
            await reader.readexactly(length)
            await reader.readline()
            size += length
            if length == 0:
                return size
    left = int(fields.get("content-length", 0))
    size = left
    while left > 0:
        part = await reader.read(min(left, len(PIECE)))
        if not part:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(part)
    return size


async def frame_of(reader):
    first, second = await reader.readexactly(2)
    length = second & 127
    if length == 126:
        length = int.from_bytes(await reader.readexactly(2), "big")
    mask = await reader.readexactly(4) if second & 128 else b"\0\0\0\0"
    data = await reader.readexactly(length)
    return first & 15, bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))


async def echo_frames(reader, writer, key):
    accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    writer.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
    while True:
        kind, data = await frame_of(reader)
        writer.write(bytes([128 | kind, len(data)]) + data)
        await writer.drain()
        if kind == 8:
            return


async def answer(reader, writer):
    method, path, fields = await head_of(reader)
    if fields.get("upgrade", "").lower() == "websocket":
        await echo_frames(reader, writer, fields.get("sec-websocket-key", ""))
        return False
    size = await body_size(reader, fields)
    kind, _, number = path.rpartition("/")
    if kind.endswith("bytes"):
        left = int(number)
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n".encode())
        while left > 0:
            writer.write(PIECE[:left])
            left -= min(left, len(PIECE))
            await writer.drain()
    elif kind.endswith("slow"):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(int(number)):
            writer.write(b"5\r\ntick\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)
        writer.write(b"0\r\n\r\n")
    else:
        text = f"{method} {size}".encode()
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
    await writer.drain()
    return True


async def serve(reader, writer):
    try:
        while await answer(reader, writer):
            pass
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # The proxy, or a client behind it, has gone.
    finally:
        writer.close()


def run(ready):
    """Serves until it is killed; tells its port through `ready`."""

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())
