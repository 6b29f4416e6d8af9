"""A stateful provider on loopback that speaks five dialects (`dialects`) of one account (`world`)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.platforms.dialects import DIALECTS, Dialect
from tests.platforms.world import Exchange, Reply, World


def answer(world: World, dialect: Dialect, method: str, target: str, body: Any, key: str) -> Reply:
    """One request. What is scripted comes first, then what is wrong with the account, then the dialect."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query))
    world.seen_keys.append(key)
    if world.dead:
        reply: Reply = (410, {"message": "This API is retired."}, {})
    elif (scripted := _scripted(world, f"{method} {parts.path}")) is not None:
        if world.applies_though:
            dialect(world, method, parts.path, query, body)
        reply = scripted
    elif key != world.key:
        reply = dialect(replace(world, auth="401"), method, parts.path, query, body)
    else:
        reply = dialect(world, method, parts.path, query, body)
    world.log.append(Exchange(method, parts.path, query, body, reply[0], reply[1]))
    return reply


def _scripted(world: World, what: str) -> Reply | None:
    for place, (part, reply) in enumerate(world.script):
        if part in what:
            del world.script[place]
            return reply
    return None


@contextmanager
def serving(world: World, platform: str) -> Iterator[str]:
    """The base address of a provider of this dialect, as long as the block lasts."""
    dialect = DIALECTS[platform]
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            key = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            with lock:
                status, body, headers = answer(
                    world, dialect, self.command, self.path, json.loads(raw) if raw else None, key
                )
            data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
