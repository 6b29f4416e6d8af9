"""From a process of this computer to the python of a box: it has no connection of its own.

The process connects to a socket in a private folder and names one of two constant programmes; that is started
on the box, and bytes go to and fro. When either end goes, so does the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui.box.transport import Channel, LinkLost, Script, SessionsExhausted, Transport
from tui.checkpoints import far_disk, jailer
from tui.checkpoints.bundle import LOADER
from tui.model.text import safe

_READ = 1 << 16
_FOLDER = "rgt-bridge-"
_PROGRAMS: dict[str, Callable[[], bytes]] = {"files": far_disk.programme, "jail": jailer.programme}
_WHY = {"files": "read what was read back", "jail": "load checkpoints in a jailed process"}

# $1 asks a python what it is. The login shell may know a better one than a plain PATH does.
_PYTHONS = r"""
for p in python3 python /opt/conda/bin/python /root/miniconda3/bin/python "$HOME/miniconda3/bin/python" \
  "$HOME/miniforge3/bin/python" "$HOME/anaconda3/bin/python" "$HOME/.venv/bin/python" \
  /venv/main/bin/python /opt/venv/bin/python /usr/local/bin/python3; do
  command -v "$p" >/dev/null 2>&1 && "$p" -I -B -c "$1" </dev/null 2>/dev/null
done
:
"""
_ASK = r"""
import json, sys
found = {"path": sys.executable, "version": list(sys.version_info[:3])}
for name in ("numpy", "torch"):
    try:
        from importlib import metadata
        found[name] = metadata.version(name)
    except Exception:
        found[name] = ""
print(json.dumps(found))
"""
_OLDEST = (3, 7)
_ASK_S = 60.0

# $1 python, $2 loader, $3 bytes of programme that come first on stdin
_RUN = (
    "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1; "
    "export OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS; cd /; "
    'exec "$1" -I -B -X utf8 -c "$2" "$3" 2>/dev/null'
)


@dataclass(frozen=True, slots=True)
class Python:
    """A python of a box; versions are empty where it has no such package."""

    path: str
    version: str
    numpy: str = ""
    torch: str = ""

    @property
    def words(self) -> str:
        """``python 3.11.2 with numpy 2.1 and no torch``."""
        parts = [f"numpy {self.numpy}" if self.numpy else "no numpy"]
        parts.append(f"torch {self.torch}" if self.torch else "no torch")
        return safe(f"python {self.version} with {' and '.join(parts)}", 120)

    @property
    def lacks(self) -> str:
        """What to install there; empty where nothing is missing."""
        return " and ".join(
            word for word, there in (("NumPy", self.numpy), ("torch", self.torch)) if not there
        )


async def find_python(transport: Transport) -> Python | None:
    """The python of a box that can do most, None where it has none that is new enough.

    Raises:
        LinkLost, SessionsExhausted, TimeoutError.
    """
    script = Script(_PYTHONS, (_ASK,), why="which python has NumPy and torch")
    done = await transport.run(script, timeout=_ASK_S)
    return best(done.stdout)


def best(told: bytes) -> Python | None:
    """The best of what pythons said of themselves, one line of JSON each. Pure."""
    found = [one for one in map(_python, told.splitlines()) if one is not None]
    return max(found, key=_rank, default=None)


def _rank(one: Python) -> tuple[bool, bool, bool]:
    major = tuple(int(part) for part in one.torch.split("+")[0].split(".")[:2] if part.isdigit())
    return len(major) == 2 and major >= (2, 10), bool(one.torch), bool(one.numpy)


def _python(line: bytes) -> Python | None:
    try:
        found: dict[str, Any] = json.loads(line)
        version = tuple(int(part) for part in found["version"])
        path, numpy, torch = str(found["path"]), str(found["numpy"]), str(found["torch"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if version < _OLDEST or not path.startswith("/") or "\0" in path:
        return None
    return Python(path, ".".join(map(str, version)), safe(numpy, 40), safe(torch, 40))


class Bridge:
    """Open while its process runs.

    Attributes:
        address: of the socket.
        lost: why the box could not be asked any more; None while it can.
    """

    def __init__(self, transport: Transport, python: Python, address: Path) -> None:
        self._transport, self._python = transport, python
        self.address = address
        self.lost: LinkLost | SessionsExhausted | TimeoutError | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One programme on the box."""
        try:
            word = (await reader.readline()).decode("ascii", "replace").strip()
            if word in _PROGRAMS:
                await self._run(word, reader, writer)
        except (LinkLost, SessionsExhausted, TimeoutError) as lost:
            self.lost = self.lost or lost
        except OSError:
            pass  # the process here is gone
        finally:
            writer.close()

    async def _run(self, word: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = await asyncio.to_thread(_PROGRAMS[word])
        script = Script(_RUN, (self._python.path, LOADER, str(len(text))), why=_WHY[word])
        channel = await self._transport.open(script)
        try:
            await channel.write(text)
            ways = [
                asyncio.ensure_future(_there(reader, channel)),
                asyncio.ensure_future(_back(channel, writer)),
            ]
            try:
                done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
            for way in done:
                way.result()
        finally:
            await channel.close()


async def _there(reader: asyncio.StreamReader, channel: Channel) -> None:
    while data := await reader.read(_READ):
        await channel.write(data)


async def _back(channel: Channel, writer: asyncio.StreamWriter) -> None:
    while data := await channel.read(_READ):
        writer.write(data)
        await writer.drain()


def private_folder() -> Path:
    """A fresh folder for a socket, whose path must be short; what a killed rgt left is removed. Blocks."""
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        pid = left.name.removeprefix(_FOLDER).partition("-")[0]
        with contextlib.suppress(OSError):
            if pid.isdecimal() and left.lstat().st_uid == os.getuid() and not _runs(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@asynccontextmanager
async def bridge(transport: Transport, python: Python) -> AsyncIterator[Bridge]:
    """A socket of this computer that leads to that python. Everything started through it ends with it."""
    folder = await asyncio.to_thread(private_folder)
    made = Bridge(transport, python, folder / "s")
    running: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.serve(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    try:
        server = await asyncio.start_unix_server(accept, made.address)
        try:
            yield made
        finally:
            server.close()
            left = list(running)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)


def connect_through(address: str) -> far_disk.Connect:
    """The other end, for the process that has no connection: blocking."""

    def connect(what: far_disk.What) -> socket.socket:
        pipe = socket.socket(socket.AF_UNIX)
        try:
            pipe.connect(address)
            pipe.sendall(f"{what}\n".encode("ascii"))
        except OSError:
            with contextlib.suppress(OSError):
                pipe.close()
            raise
        return pipe

    return connect
