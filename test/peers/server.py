"""A service with python3-websockets. The API key selects the scenario; GET /seen returns everything that the client sent."""

import asyncio
import json
import threading
from datetime import datetime, timedelta, timezone
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import websockets
from websockets.server import WebSocketServerProtocol

SUBPROTOCOL = "mmp.trade-batch.v1"
SIZES = [0, 1, 125, 126, 127, 65_535, 65_536, 1_000_000]
seen = {"tickets": 0, "handshakes": [], "messages": 0}


async def sizes(socket, _):
    for size in SIZES:
        await socket.send("x" * size)
        await socket.send(bytes(i % 251 for i in range(size)))


async def fragments(socket, _):
    async def slowly(parts):
        for part in parts:
            await asyncio.sleep(0.005)
            # A control frame in the middle of a message (RFC 6455, 5.4).
            await socket.ping()
            yield part

    text = "naïve — 漢字 🙂"
    await socket.send(list(text))
    await socket.send(slowly(["one ", "", "two ", "three"]))
    await socket.send([b"\x00\xff"] * 1_000)


async def pings(socket, _):
    for _ in range(20):
        await asyncio.wait_for(await socket.ping(b"are you there?"), 5)
    await socket.send("20 pongs")


async def quiet(socket, _):
    await socket.send("and no more")


async def close(socket, how):
    code, _, reason = how.partition(":")
    await socket.send("last")
    await socket.close(int(code), reason.replace("_", " "))


async def abort(socket, _):
    await socket.send("last")
    # The frame is sent before the connection is aborted.
    await asyncio.sleep(0.02)
    socket.transport.abort()


async def compressible(socket, _):
    for _ in range(10):
        await socket.send("the same again " * 1_000)


SCENARIOS = {
    "sizes": sizes,
    "fragments": fragments,
    "pings": pings,
    "quiet": quiet,
    "close": close,
    "abort": abort,
    "compressible": compressible,
}


class Connection(WebSocketServerProtocol):
    async def process_request(self, path, headers):
        self.scenario, _, self.how = headers["Authorization"].removeprefix("Bearer ").split("|")[0].partition(":")
        seen["handshakes"].append({"path": path, "headers": {name.lower(): value for name, value in headers.raw_items()}})
        if self.scenario == "quiet":
            self.ping_interval = None
        if self.scenario == "refuse":
            status, _, header = self.how.partition(":")
            return HTTPStatus(int(status)), [tuple(header.split("="))] if header else [], b"refused\n"
        return None

    def process_extensions(self, headers, available):
        if self.scenario == "unrequested":
            return "permessage-deflate", []
        return super().process_extensions(headers, available)

    def process_subprotocol(self, headers, available):
        if self.scenario == "subprotocol":
            return self.how or None
        return super().process_subprotocol(headers, available)


async def stream(socket):
    await SCENARIOS[socket.scenario](socket, socket.how)
    async for _ in socket:
        seen["messages"] += 1


class Tickets(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value, headers=()):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in [*headers, ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, seen)

    def do_POST(self):
        key = self.headers["X-API-Key"]
        feed = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["feed"]
        if key.startswith("ticket:"):
            _, status, *header = key.split(":")
            return self.answer(int(status), {}, [tuple(each.split("=")) for each in header])
        seen["tickets"] += 1
        expires_at = datetime.now(timezone.utc) + timedelta(seconds=60)
        return self.answer(200, {
            "ticket": f"{key}|{seen['tickets']}",
            "token_type": "Bearer",
            "expires_at": expires_at.isoformat().replace("+00:00", "Z"),
            "wss_url": f"ws://127.0.0.1:{ports['plain' if key != 'compressible' else 'deflate']}/ws",
            "feed": feed,
            "subprotocol": SUBPROTOCOL,
        })

    def log_message(self, *_):
        pass


ports = {}


async def main():
    options = {"create_protocol": Connection, "subprotocols": [SUBPROTOCOL], "ping_interval": 0.2, "ping_timeout": 5}
    http = ThreadingHTTPServer(("127.0.0.1", 0), Tickets)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    async with websockets.serve(stream, "127.0.0.1", 0, compression=None, **options) as plain:
        async with websockets.serve(stream, "127.0.0.1", 0, compression="deflate", **options) as deflate:
            ports.update(plain=plain.sockets[0].getsockname()[1], deflate=deflate.sockets[0].getsockname()[1])
            print(http.server_address[1], flush=True)
            await asyncio.Future()


asyncio.run(main())
