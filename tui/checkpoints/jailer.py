"""This side of the jail: starts it, asks for the numbers of one file at a time, ends it when it is late."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from pydantic import ValidationError

from tui.checkpoints.bundle import LOADER, bundled
from tui.checkpoints.contents import Contents
from tui.checkpoints.pickle_globals import NUMPY_SCALARS
from tui.model.text import safe
from tui.model.verdict import Values

_ANSWER_LIMIT = 2 << 20
_START_S = 60.0
"""Allowed for Python with NumPy, and once more for torch, from a cold disk."""

_SLOWEST = 20e6
"""Bytes per second below which reading a file is no longer waited for."""

_MEMORY = 2 << 30


@dataclass(frozen=True, slots=True)
class Ask:
    """One file to look at.

    Attributes:
        load: torch is to load it.
        legacy: the old format, which torch can't map and reads into memory.
        scan: the format has no checksum, so blocks of zeros are looked for.
    """

    path: str
    size: int
    contents: Contents
    load: bool = False
    legacy: bool = False
    scan: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it. `gaps` are codes with a detail; `crashed` says how the process that read it died."""

    values: Values | None = None
    loaded: bool | None = None
    refusal: str = ""
    confined: tuple[str, ...] = ()
    gaps: tuple[tuple[str, str], ...] = ()
    crashed: str = ""


@functools.cache
def programme() -> bytes:
    """The jailed programme; it stands alone."""
    return bundled("jail", "confinement", "tensor_values")


class Running(Protocol):
    """A jailed process that runs, and the two ends of its pipe."""

    @property
    def ended(self) -> bool: ...

    def send(self, line: bytes) -> None:
        """Raises OSError."""

    def receive(self, seconds: float) -> bytes:
        """Some of its output, ``b""`` at its end. Raises TimeoutError, OSError."""

    def kill(self) -> None:
        """End it and what it forked; also while another thread waits for it. Never raises."""

    def gone(self) -> None:
        """Free what it held, once it was killed."""


class Ground(Protocol):
    """Where jailed processes run."""

    def start(self) -> Running:
        """Raises OSError, or Failure where nobody can tell any more what goes on there."""

    def free_memory(self) -> int | None:
        """Bytes that can be had without swapping; None where the system does not tell."""

    def check(self) -> None:
        """After a process was lost: raises Failure where that was the way there and not the process."""


class Jail:
    """One jailed process, started on first use. For use by several threads, one file at a time.

    Args:
        python: the interpreter of this computer that is to look, with NumPy and torch or without.
        patience: factor on all deadlines.
        ground: where it runs, if not here.
    """

    def __init__(
        self, python: str = sys.executable, *, patience: float = 1.0, ground: Ground | None = None
    ) -> None:
        self._ground = ground or Here(python)
        self._patience = patience
        self._process: Running | None = None
        self._lock = threading.Lock()
        self._rest = b""
        self._torch_awaited = False
        self._closed = False

    def __enter__(self) -> Jail:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process and everything it started, also while it is being asked."""
        self._closed = True
        running = self._process
        if running is not None:
            running.kill()
        with self._lock:
            self._end()

    def look(self, ask: Ask) -> Told:
        """Look at one file. Never raises for what a file holds; Failure where its ground is out of reach."""
        room = self._ground.free_memory() if ask.legacy and ask.load else None
        if ask.legacy and ask.load and room is not None and ask.size * 1.2 > room:
            told = self.look(Ask(ask.path, ask.size, ask.contents, scan=ask.scan))
            gap = ("load-out-of-memory", f"{ask.size} bytes to load, {room} are free")
            return Told(told.values, None, "", told.confined, (*told.gaps, gap), told.crashed)
        with self._lock:
            try:
                answer = self._asked(ask)
            except TimeoutError:
                self._end()
                self._ground.check()
                return Told(gaps=(("load-timed-out", ""),))
            except (OSError, ValueError) as fault:
                self._end()
                self._ground.check()
                return Told(
                    gaps=(("values-not-checked", f"the reading process ended ({type(fault).__name__})"),)
                )
        return _told(ask, answer)

    def _asked(self, ask: Ask) -> dict[str, object]:
        allowance = ask.size / _SLOWEST * self._patience
        deadline = time.monotonic() + _START_S * self._patience + allowance
        process = self._running(deadline)
        if ask.load and not self._torch_awaited:
            self._torch_awaited = True
            deadline += _START_S * self._patience
        memory = _MEMORY + ask.size * (2 if ask.legacy else 1)
        request = {
            "path": ask.path, "load": ask.load, "legacy": ask.legacy, "scan": ask.scan,
            "memory": memory, "cpu": int(20 + allowance), "wall": int(_START_S + allowance) + 1,
            "allow": NUMPY_SCALARS, "big": ask.contents.big,
            "spans": [(s.name, s.dtype, s.start, s.length, s.row, s.packed) for s in ask.contents.spans],
        }  # fmt: skip
        process.send(json.dumps(request).encode() + b"\n")
        answer = self._line(process, deadline)
        if not isinstance(answer, dict):
            raise ValueError("no object")
        if answer.get("last"):  # where it can't fork, each process reads one file
            self._end()
        return answer

    def _running(self, deadline: float) -> Running:
        if self._process is not None and not self._process.ended:
            return self._process
        self._end()
        if self._closed:
            raise OSError("closed")
        self._process = self._ground.start()
        self._line(self._process, deadline)
        return self._process

    def _line(self, process: Running, deadline: float) -> object:
        """One line of its output, within deadline and size. Raises TimeoutError, OSError, ValueError."""
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            data = process.receive(left)
            if not data or len(self._rest) > _ANSWER_LIMIT:
                raise ValueError("no answer")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _end(self) -> None:
        process, self._process, self._rest, self._torch_awaited = self._process, None, b"", False
        if process is not None:
            process.kill()
            process.gone()


class Here:
    """This computer."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python

    def start(self) -> Running:
        return _Child(self._python)

    def free_memory(self) -> int | None:
        return _available_memory()

    def check(self) -> None:
        return


class _Child:
    """A process of this computer; it and what it forked are a group of their own."""

    def __init__(self, python: str) -> None:
        single = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", **dict.fromkeys(single, "1")}
        text = programme()
        self._process = subprocess.Popen(
            [python, "-I", "-B", "-c", LOADER, str(len(text))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        try:
            self.send(text)
        except OSError:  # it ended at once
            self.kill()
            self.gone()
            raise

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def receive(self, seconds: float) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        if not select.select([fd], [], [], seconds)[0]:
            raise TimeoutError
        return os.read(fd, 1 << 16)

    def kill(self) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def gone(self) -> None:
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _told(ask: Ask, answer: dict[str, object]) -> Told:
    """What the process says, taken as foreign: it may have read a hostile file."""
    died = answer.get("died")
    if isinstance(died, int):
        if died in (signal.SIGKILL, signal.SIGXCPU, signal.SIGALRM):
            return Told(gaps=(("load-timed-out", "it used up its time or its memory"),))
        return Told(crashed=f"signal {died}" if died > 0 else f"exit {-died}")
    kept_from = answer.get("confined")
    confined = tuple(safe(str(what), 20) for what in kept_from[:20]) if isinstance(kept_from, list) else ()
    gaps: list[tuple[str, str]] = []
    values = _values(ask, answer.get("values"))
    fault = answer.get("fault")
    if values is None:
        why = (
            "NumPy is not installed" if answer.get("numpy") is False else safe(str(fault or "no answer"), 200)
        )
        gaps.append(("values-not-checked", why))
    loaded = answer.get("loaded")
    refusal = safe(str(answer.get("refusal") or ""), 300)
    if ask.load and not isinstance(loaded, bool):
        loaded = None
        gaps.append(
            (
                "load-out-of-memory" if refusal == "out of memory" else "not-loaded",
                refusal or safe(str(fault)),
            )
        )
    return Told(values, loaded if isinstance(loaded, bool) else None, refusal, confined, tuple(gaps))


def _values(ask: Ask, found: object) -> Values | None:
    if not isinstance(found, dict):
        return None
    try:
        return Values(tensors=ask.contents.tensors, elements=ask.contents.elements, **found)
    except (ValidationError, TypeError):
        return None


def _available_memory() -> int | None:
    """Bytes that can be had without swapping; None where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None
