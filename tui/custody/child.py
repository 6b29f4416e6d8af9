"""Child processes with a deadline, limits, a bounded answer, and an environment that holds no secrets."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tui
from tui.custody import launch

ANSWER_BYTES = 64 << 20
ERROR_BYTES = 64 << 10
_KEPT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
)


@dataclass(frozen=True)
class Limits:
    """Of one child: seconds of wall time, bytes of address space, bytes of a file it writes. 0: unlimited."""

    timeout: float
    memory: int = 0
    file_size: int = 0


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    Attributes:
        code: its exit status; negative for a signal.
        why: ``""``, ``timeout``, ``stopped`` by the caller, or ``overflow`` when it printed too much.
    """

    code: int
    out: bytes
    err: bytes
    why: str = ""


def clean_environment(home: Path) -> dict[str, str]:
    """Only what a program needs to be found and to speak; no token, no agent, no proxy with a password."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    places = {
        name: str(home) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
    }
    threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    return {**kept, **places, **threads, "PYTHONNOUSERSITE": "1"}


def run_child(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    limits: Limits,
    given: bytes = b"",
    answer: int = ANSWER_BYTES,
    stop: Callable[[], bool] = lambda: False,
) -> Ended:
    """Run a program to its end; it and what it started in its session are killed at the deadline.

    Args:
        given: its standard input.
        answer: most bytes it may print.
        stop: asked several times a second whether to give up.
    """
    cpu = int(limits.timeout) * (os.cpu_count() or 1) + 60
    started = [
        sys.executable,
        "-I",
        launch.__file__,
        str(limits.memory),
        str(cpu),
        str(limits.file_size),
        *argv,
    ]
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        process = subprocess.Popen(
            started,
            cwd=cwd,
            env=dict(env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    try:
        return _followed(process, time.monotonic() + limits.timeout, answer, stop)
    finally:
        _kill(process)


def run_own(
    module: str, *, home: Path, limits: Limits, given: bytes, stop: Callable[[], bool] = lambda: False
) -> Ended:
    """Run a module of ours in a child of its own."""
    env = {**clean_environment(home), "PYTHONPATH": str(Path(tui.__file__).parent.parent)}
    argv = [sys.executable, "-P", "-s", "-m", module]
    return run_child(argv, cwd=home, env=env, limits=limits, given=given, stop=stop)


def _followed(
    process: subprocess.Popen[bytes], deadline: float, answer: int, stop: Callable[[], bool]
) -> Ended:
    assert process.stdout is not None and process.stderr is not None
    out, err = bytearray(), bytearray()
    why = ""
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ, out)
        waiting.register(process.stderr, selectors.EVENT_READ, err)
        while waiting.get_map() and not why:
            for key, _ in waiting.select(timeout=0.2):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    waiting.unregister(key.fileobj)
                elif key.data is err:
                    err[:] = (err + data)[-ERROR_BYTES:]
                else:
                    out += data
            why = _given_up(deadline, len(out) > answer, stop)
    while process.poll() is None and not why:  # it closed its output and works on
        time.sleep(0.05)
        why = _given_up(deadline, False, stop)
    _kill(process)
    return Ended(process.wait(), bytes(out), bytes(err), why)


def _given_up(deadline: float, overflow: bool, stop: Callable[[], bool]) -> str:
    if overflow:
        return "overflow"
    if stop():
        return "stopped"
    return "timeout" if time.monotonic() > deadline else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the child and its session. The group outlives its leader while a grandchild is in it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
