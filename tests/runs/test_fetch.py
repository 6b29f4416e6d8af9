"""Downloads on the box: cut off and gone on with, bounded, and named only when they are the right file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.real import need
from tui.box.local import LocalTransport
from tui.box.transport import Transport
from tui.model.failure import Failure
from tui.runs.fetch import Fetched, fetch

BODY = os.urandom(300_000)
SUM = hashlib.sha256(BODY).hexdigest()


class Server(BaseHTTPRequestHandler):
    """Gives ranges; cuts every answer after `most` bytes."""

    most = 1 << 30
    asked: list[str] = []  # noqa: RUF012 - one server for one test

    def do_GET(self) -> None:
        told = self.headers.get("Range", "bytes=0-")
        Server.asked.append(told)
        begin = int(told.removeprefix("bytes=").partition("-")[0])
        if self.path != "/set.bin":
            self.send_error(404)
            return
        if begin >= len(BODY):
            self.send_error(416)
            return
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{len(BODY) - 1}/{len(BODY)}")
        self.send_header("Content-Length", str(len(BODY) - begin))
        self.end_headers()
        self.wfile.write(BODY[begin : begin + self.most])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    need("curl")
    Server.most, Server.asked = 1 << 30, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def dial() -> Transport:
    return LocalTransport()


async def got(site: str, to: Path, path: str = "/set.bin", **how: object) -> Fetched:
    return await fetch(dial, f"{site}{path}", str(to), slice_s=5, **how)  # type: ignore[arg-type]


async def test_a_download_that_is_cut_again_and_again_goes_on(site: str, tmp_path: Path) -> None:
    Server.most = 100_000
    done = await got(site, tmp_path / "a b" / "set.bin", sha256=SUM)
    assert (done.bytes, done.sha256, done.vouched) == (len(BODY), SUM, True)
    assert (tmp_path / "a b" / "set.bin").read_bytes() == BODY
    assert Server.asked[1:] == ["bytes=100000-", "bytes=200000-"]
    assert [path.name for path in (tmp_path / "a b").iterdir()] == ["set.bin"]
    again = await got(site, tmp_path / "a b" / "set.bin", sha256=SUM)
    assert again.was_there


async def test_a_whole_part_of_a_client_that_died_is_only_named(site: str, tmp_path: Path) -> None:
    (tmp_path / "set.bin.part").write_bytes(BODY)
    assert (await got(site, tmp_path / "set.bin", sha256=SUM)).sha256 == SUM


async def test_other_bytes_get_no_name(site: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="must have") as failed:
        await got(site, tmp_path / "set.bin", sha256="0" * 64)
    assert failed.value.code == "other-bytes"
    assert not (tmp_path / "set.bin").exists()


async def test_what_is_there_is_not_written_over(site: str, tmp_path: Path) -> None:
    (tmp_path / "set.bin").write_text("mine")
    with pytest.raises(Failure, match="is there already"):
        await got(site, tmp_path / "set.bin")
    assert (tmp_path / "set.bin").read_text() == "mine"


async def test_it_is_bounded_and_a_refusal_is_told(site: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="larger than allowed"):
        await got(site, tmp_path / "set.bin", most=1000)
    with pytest.raises(Failure, match="the server refuses it"):
        await got(site, tmp_path / "none.bin", path="/none.bin?token=secret")


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", 'http://x/"\n-o /etc/x', "-o/etc/x", "http://x/a b"]
)
async def test_an_address_is_an_address(tmp_path: Path, address: str) -> None:
    with pytest.raises(Failure, match="no http or https address"):
        await fetch(dial, address, str(tmp_path / "x"))


async def test_two_downloads_to_one_place_do_not_mix(site: str, tmp_path: Path) -> None:
    lock = tmp_path / "set.bin.part.lock"
    lock.mkdir()
    (lock / "pid").write_text(str(os.getpid()))
    with pytest.raises(Failure, match="under way"):
        await got(site, tmp_path / "set.bin")
    (lock / "pid").write_text("4194304")  # nobody: of one that died
    assert (await got(site, tmp_path / "set.bin")).bytes == len(BODY)
