"""The process that touches a checkpoint's numbers: ``python -I jail.py``, requests on stdin, answers on
stdout.

Stands alone (standard library, NumPy and torch where they are), so that it runs on any Python, here or on
another machine. One line of JSON per request and per answer. On Linux every file is read in a process of its
own, forked after the libraries are loaded, with limits on memory, time, files and processes, without network,
and with a seccomp filter that refuses to start programs, to open anything for writing and to signal others.
Nothing a file holds is called: torch loads with ``weights_only=True`` and only where it is new enough.
"""

from __future__ import annotations

import bisect
import ctypes
import ctypes.util
import errno
import json
import math
import os
import platform
import resource
import signal
import struct
import sys
from typing import Any

ANSWER_LIMIT = 1 << 20
SAFE_TORCH = (2, 10)
"""Older ones run code despite ``weights_only=True``: CVE-2025-32434 (before 2.6), CVE-2026-24747 (2.10)."""

_BLOCK = 4 << 20
_PAGE = 4096
_NAMES = 20

_CLONE_NEWNET, _CLONE_NEWUSER, _CLONE_THREAD = 0x40000000, 0x10000000, 0x00010000
_NO_NEW_PRIVS, _SET_SECCOMP = 38, 22
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> int:
    """Serve until stdin ends."""
    confined = _without_network()
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
            _say({**_answer(request, numpy, torch, confined + _limits(request)), "last": True})
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
        answer = _answer(request, numpy, torch, confined + _limits(request) + _filtered())
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(out, data) :]
        code = 0
    finally:
        os._exit(code)


# what it is kept from


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _without_network() -> list[str]:
    """A network name space of its own, where the system grants one. Before any thread is started."""
    if sys.platform != "linux":
        return []
    libc = _libc()
    if libc.unshare(_CLONE_NEWNET) == 0 or libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        return ["network"]
    return []


def limit(what: int, value: int) -> bool:
    """Lower a limit for good; False where the system refuses."""
    try:
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))
    except (ValueError, OSError):
        return False
    return True


def _limits(request: dict[str, Any]) -> list[str]:
    wanted = {
        "memory": (resource.RLIMIT_AS, _address_space() + int(request["memory"])),
        "cpu": (resource.RLIMIT_CPU, int(request["cpu"])),
        "writing": (resource.RLIMIT_FSIZE, 0),
        "files": (resource.RLIMIT_NOFILE, 128),
    }
    if hasattr(resource, "RLIMIT_NPROC"):
        wanted["processes"] = (resource.RLIMIT_NPROC, 0)
    return [name for name, (what, value) in wanted.items() if limit(what, value)]


def _address_space() -> int:
    try:
        with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - this file imports as little as it can
            return int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 40


_AUDITED = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_OPENING = {"x86_64": {257: 32, 2: 24}, "aarch64": {56: 32}}  # openat, open: number → place of the flags
_CLONE = {"x86_64": 56, "aarch64": 220}
_EVERYWHERE = (
    424,
    425,
    426,
    427,
    428,
    429,
    430,
    431,
    432,
    434,
    438,
    442,
    452,
)  # pidfd, io_uring, mount, fchmodat2
_REFUSED = {
    # starting programs; sockets; signals and other processes; mounts and modules; changes to files
    "x86_64": (
        59, 322, 57, 58,  41, 42, 43, 44, 46, 49, 50, 53, 288, 307,  62, 101, 129, 200, 234, 297, 310, 311,
        155, 161, 165, 166, 169, 175, 246, 248, 249, 250, 272, 298, 304, 308, 313, 321, 323,
        40, 76, 77, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 132, 133, 188, 189, 190, 197, 198, 199,
        235, 258, 259, 260, 261, 263, 264, 265, 266, 268, 280, 285, 316, 326,
    ),
    "aarch64": (
        221, 281,  198, 199, 200, 201, 202, 203, 206, 211, 242, 269,  117, 129, 130, 131, 138, 240, 270, 271,
        39, 40, 41, 51, 97, 104, 105, 142, 217, 218, 219, 224, 241, 265, 268, 273, 280, 282,
        5, 6, 7, 14, 15, 16, 33, 34, 35, 36, 37, 38, 45, 46, 47, 52, 53, 54, 55, 71, 88, 276, 285,
    ),
}  # fmt: skip
_LOAD, _EQUAL, _AT_LEAST, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def _program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter: classic BPF over struct seccomp_data (number at 0, architecture 4, arguments from 16)."""
    no, unknown = (_RETURN, 0, 0, _ERROR | errno.EPERM), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _AUDITED[machine]), no, (_LOAD, 0, 0, 0)]
    code += [(_AT_LEAST, 0, 1, 0x40000000), no]  # another numbering of the same calls
    for number in (435, 437):  # clone3, openat2: their arguments can't be looked at, their elders' can
        code += [(_EQUAL, 0, 1, number), unknown]
    for number in (*_REFUSED[machine], *_EVERYWHERE):
        code += [(_EQUAL, 0, 1, number), no]
    for number, place in _OPENING[machine].items():
        code += [(_EQUAL, 0, 5, number), (_LOAD, 0, 0, place), (_MASK, 0, 0, _WRITING), (_EQUAL, 1, 0, 0), no]
        code += [(_RETURN, 0, 0, _ALLOW)]
    code += [(_EQUAL, 0, 5, _CLONE[machine]), (_LOAD, 0, 0, 16), (_MASK, 0, 0, _CLONE_THREAD)]
    code += [(_EQUAL, 0, 1, 0), no, (_RETURN, 0, 0, _ALLOW)]
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def _filtered() -> list[str]:
    machine = platform.machine()
    if machine not in _AUDITED or sys.platform != "linux" or struct.calcsize("P") != 8:
        return []
    raw = b"".join(struct.pack("<HBBI", code, yes, no, k) for code, yes, no, k in _program(machine))
    steps = ctypes.create_string_buffer(raw, len(raw))
    program = struct.pack("<H6xQ", len(raw) // 8, ctypes.addressof(steps))
    libc = _libc()
    refused = libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    refused = refused or libc.prctl(_SET_SECCOMP, 2, ctypes.c_char_p(program), 0, 0)
    return [] if refused else ["programs", "changes"]


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


# the numbers

# By type: the unsigned type of its width, the bits of its exponent and of its mantissa.
_FLOATS = {
    "float32": ("<u4", 0x7F800000, 0x007FFFFF), "complex64": ("<u4", 0x7F800000, 0x007FFFFF),
    "float64": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
    "complex128": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
    "float16": ("<u2", 0x7C00, 0x03FF), "complex32": ("<u2", 0x7C00, 0x03FF), "bfloat16": ("<u2", 0x7F80,
    0x007F), "float8_e5m2": ("u1", 0x7C, 0x03),
}  # fmt: skip
# By type: the bits that count, and the value of them that is no number.
_ONLY_NAN = {
    "float8_e4m3fn": (0x7F, 0x7F), "float8_e4m3fnuz": (0xFF, 0x80), "float8_e5m2fnuz": (0xFF, 0x80),
    "float8_e8m0fnu": (0xFF, 0xFF),
}  # fmt: skip
_WIDTHS = {"int16": "<u2", "uint16": "<u2", "int32": "<u4", "uint32": "<u4", "int64": "<u8", "uint64": "<u8"}


class Values:
    """The tensors of one file, looked at in blocks. A span is: name, type, start, length, row."""

    def __init__(self, numpy: Any, fd: int, request: dict[str, Any]) -> None:
        self._np = numpy
        self._fd = fd
        self._spans = request["spans"]
        self._order = ">" if request.get("big") else "<"
        self._scan = request["scan"]
        self._counts = dict.fromkeys(
            ("nonfinite", "nan", "masks", "all_zero", "constant", "zero_tail", "zero_pages"), 0
        )
        self._names: dict[str, list[str]] = {
            key: [] for key in ("nonfinite_in", "all_zero_in", "constant_in", "unread")
        }

    def read(self) -> dict[str, Any]:
        """Counts over all tensors."""
        for name, dtype, start, length, _ in self._spans:
            self._tensor(name, dtype, start, length)
        if self._scan and self._spans:
            self._zero_runs()
        return {**self._counts, **self._names}

    def _note(self, key: str, name: str) -> None:
        if len(self._names[key]) < _NAMES:
            self._names[key].append(name[:200])

    def _block(self, start: int, length: int) -> Any:
        return self._np.frombuffer(os.pread(self._fd, length, start), dtype="u1")

    def _tensor(self, name: str, dtype: str, start: int, length: int) -> None:
        kind = self._kind(_FLOATS.get(dtype, (_WIDTHS.get(dtype, "u1"), 0, 0))[0])
        width = self._np.dtype(kind).itemsize
        bad = nan = done = 0
        first: Any = None
        constant = length > width
        while done < length:
            raw = self._block(start + done, min(_BLOCK, length - done))
            if not raw.size:
                self._note("unread", name)
                return
            data = raw[: raw.size // width * width].view(kind)
            if not data.size:
                break
            first = data[0] if first is None else first
            constant = constant and bool(data[-1] == first) and bool((data == first).all())
            more_bad, more_nan = self._not_finite(data, dtype)
            bad, nan, done = bad + more_bad, nan + more_nan, done + raw.size
        if constant and first is not None:
            key = "all_zero" if not first else "constant"
            self._counts[key] += 1
            self._note(f"{key}_in", name)
        if bad and not nan and _explained(name, bad, length // width):
            self._counts["masks"] += bad
        elif bad:
            self._counts["nonfinite"] += bad
            self._counts["nan"] += nan
            self._note("nonfinite_in", name)

    def _kind(self, kind: str) -> str:
        """In the order of the machine that wrote the file."""
        return kind.replace("<", self._order)

    def _not_finite(self, data: Any, dtype: str) -> tuple[int, int]:
        np = self._np
        if dtype in _ONLY_NAN:
            mask, value = _ONLY_NAN[dtype]
            count = int(np.count_nonzero((data & mask) == value))
            return count, count
        if dtype not in _FLOATS:
            return 0, 0
        plain, exponent, mantissa = _FLOATS[dtype]
        kind = self._kind(plain)
        if plain in ("<u4", "<u8"):
            with np.errstate(all="ignore"):  # one pass: what is not finite stays so in a sum
                if np.isfinite(data.view(kind.replace("u", "f")).sum()):
                    return 0, 0
        full = (data & data.dtype.type(exponent)) == exponent
        bad = int(np.count_nonzero(full))
        return bad, int(np.count_nonzero(data[full] & data.dtype.type(mantissa))) if bad else 0

    # blocks of zeros where the format has no checksum

    def _zero_runs(self) -> None:
        spans = sorted((s for s in self._spans if s[3]), key=lambda s: s[2])
        if not spans:
            return
        begin, end = spans[0][2], max(s[2] + s[3] for s in spans)
        run: int | None = None
        for page, zero in self._pages(begin, end):
            if zero and run is None:
                run = page
            elif not zero and run is not None:
                self._judge_run(run, page, end, spans)
                run = None
        if run is not None:
            self._judge_run(run, end, end, spans)

    def _pages(self, begin: int, end: int) -> Any:
        """Where pages of zeros begin and end: (offset, whether zeros begin there)."""
        np, was = self._np, False
        at = -(-begin // _PAGE) * _PAGE
        while at < end:
            raw = self._block(at, min(_BLOCK, end - at))
            whole = raw.size // _PAGE
            rows = raw[: whole * _PAGE].view("<u8").reshape(whole, _PAGE // 8)
            zero = (rows[:, 0] | rows[:, 200] | rows[:, 511]) == 0
            for row in np.flatnonzero(zero):
                zero[row] = not rows[row].any()
            rest = raw[whole * _PAGE :]
            marks = [*zero.tolist(), *([not rest.any()] if rest.size else [])]
            for place, is_zero in enumerate(marks):
                if is_zero != was:
                    yield at + place * _PAGE, is_zero
                    was = is_zero
            if not raw.size:
                return
            at += raw.size

    def _judge_run(self, first: int, last: int, end: int, spans: list[Any]) -> None:
        """Zeros from page to page are damage where no tensor and no row of one begins with them."""
        before = os.pread(self._fd, min(_PAGE, first - spans[0][2]), max(spans[0][2], first - _PAGE))
        start = first - (len(before) - len(before.rstrip(b"\0")))
        begins = [s[2] for s in spans]  # bisect takes a key only from Python 3.10 on
        span = spans[max(0, bisect.bisect_right(begins, start) - 1)]
        _, dtype, begin, length, row = span
        inside = start - begin
        width = 8 if dtype in ("float64", "complex64", "int64", "uint64", "complex128") else 4
        if inside < width or start >= begin + length:
            return
        lost = last >= end and start == first and math.gcd(row, _PAGE) <= 256  # few rows begin with a page
        if row and min(inside % row, -inside % row) < width and not lost:
            return
        if last >= end:
            self._counts["zero_tail"] = end - start
            return
        after = os.pread(self._fd, 16, last)
        if first - start < 16 and any(after) and dtype in _FLOATS:
            self._counts["zero_pages"] += last - first


def _explained(name: str, bad: int, elements: int) -> bool:
    """Infinite on purpose: a bound that starts there, or a mask (a triangle without its diagonal)."""
    side = round(elements**0.5)
    return elements == 1 or "mask" in name.rpartition(".")[2] or (
        side >= 4 and side * side == elements and bad == side * (side - 1) // 2
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
