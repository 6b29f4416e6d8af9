"""The process that touches a checkpoint's numbers: requests on stdin, answers on stdout.

With `tui.checkpoints.confinement` and `tui.checkpoints.tensor_values` it is one programme that stands alone
(standard library, NumPy and torch where they are), so that it runs on any Python, here or on another machine;
`tui.checkpoints.bundle` puts it together.

One line of JSON per request and per answer. On Linux every file is read in a process of its own, forked after
the libraries are loaded, with limits on memory, time, files and processes, without network, and with a filter
that refuses to start programs, to open anything for writing and to signal others. Nothing a file holds is
called: torch loads with ``weights_only=True`` and only where it is new enough.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

from tui.checkpoints.confinement import filtered, limit, limits, without_network
from tui.checkpoints.tensor_values import Values

ANSWER_LIMIT = 1 << 20
SAFE_TORCH = (2, 10)
"""Older ones run code despite ``weights_only=True``: CVE-2025-32434 (before 2.6), CVE-2026-24747 (2.10)."""


def main() -> int:
    """Serve until stdin ends."""
    confined = without_network()
    limit(resource.RLIMIT_CORE, 0)
    numpy = _imported("numpy")
    torch: Any = None
    asked_torch = False
    _say({"ready": True, "numpy": getattr(numpy, "__version__", None)})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request.get("load") and not asked_torch:
            torch, asked_torch = _imported("torch"), True
            if torch is not None:
                torch.set_num_threads(1)
        if not hasattr(os, "fork") or sys.platform != "linux":
            _say(
                {
                    **_answer(request, numpy, torch, confined + limits(request)),
                    "last": True,
                }
            )
            return 0  # no process of its own per file: this one is not used twice
        _say(_in_child(request, numpy, torch, confined))
    return 0


def _imported(name: str) -> Any:
    try:
        return __import__(name)
    except Exception as fault:  # noqa: BLE001 - a broken installation fails in any way it likes; it is then absent
        sys.stderr.write(f"{name}: {type(fault).__name__}\n")
        return None


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _in_child(request: dict[str, Any], numpy: Any, torch: Any, confined: list[str]) -> dict[str, Any]:
    """One file in one process, which can answer nothing but a bounded text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(request, numpy, torch, confined, writing)
    os.close(writing)
    answer = bytearray()
    while len(answer) <= ANSWER_LIMIT:
        data = os.read(reading, 1 << 16)
        if not data:
            break
        answer += data
    os.close(reading)
    if len(answer) > ANSWER_LIMIT:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    try:
        found = json.loads(bytes(answer))
    except ValueError:
        return {"died": os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)}
    return found if isinstance(found, dict) else {"died": 0}


def _be_child(request: dict[str, Any], numpy: Any, torch: Any, confined: list[str], out: int) -> None:
    code = 1
    try:
        signal.alarm(int(request["wall"]))  # also where whoever asked is gone
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        answer = _answer(request, numpy, torch, confined + limits(request) + filtered())
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(out, data) :]
        code = 0
    finally:
        os._exit(code)


# one file


def _answer(request: dict[str, Any], numpy: Any, torch: Any, confined: list[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {"confined": confined, "numpy": numpy is not None, "torch": None}
    try:
        fd = os.open(request["path"], os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            if numpy is not None:
                answer["values"] = Values(numpy, fd, request).read()
            if request.get("load"):
                answer["torch"] = getattr(torch, "__version__", None)
                answer.update(load(torch, fd, request))
        finally:
            os.close(fd)
    except (OSError, MemoryError) as fault:
        answer["fault"] = f"{type(fault).__name__}: {fault}"[:200]
    return answer


def load(torch: Any, fd: int, request: dict[str, Any]) -> dict[str, Any]:
    """Whether torch loads it. ``loaded`` is None where it must not try."""
    if torch is None:
        return {"loaded": None, "refusal": "torch is not installed"}
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < SAFE_TORCH:
        return {"loaded": None, "refusal": f"torch {torch.__version__} can run foreign code when it loads"}
    try:
        with torch.serialization.safe_globals(_named(request["allow"])):
            torch.load(f"/dev/fd/{fd}", map_location="cpu", weights_only=True, mmap=not request["legacy"])
    except MemoryError:
        return {"loaded": None, "refusal": "out of memory"}
    except Exception as fault:  # noqa: BLE001 - whatever a hostile file makes a loader raise is its refusal
        out = "can't allocate memory" in str(fault) or "Cannot allocate memory" in str(fault)
        text = " ".join(f"{type(fault).__name__}: {fault}".split())[:300]
        return {"loaded": None, "refusal": "out of memory"} if out else {"loaded": False, "refusal": text}
    return {"loaded": True, "refusal": ""}


def _named(names: list[str]) -> list[Any]:
    """The objects behind the named allow-list; all of them are NumPy's."""
    found: list[Any] = []
    for name in names:
        module, _, attribute = name.rpartition(".")
        if module.partition(".")[0] == "numpy" and module in sys.modules:
            held = getattr(sys.modules[module], attribute, None)
            if held is not None:
                found.append((held, name))
    numpy = sys.modules.get("numpy")
    dtypes = getattr(numpy, "dtypes", None)
    kinds = vars(dtypes).values() if dtypes is not None and found else ()
    return found + [kind for kind in kinds if isinstance(kind, type)]


if __name__ == "__main__":
    sys.exit(main())
