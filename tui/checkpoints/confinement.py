"""What the process that reads a checkpoint is kept from, as far as the system grants it. Nothing is undone.

Stands alone: it is part of the programme that runs in the jail, on any Python.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import platform
import resource
import struct
import sys
from typing import Any

_CLONE_NEWNET, _CLONE_NEWUSER, _CLONE_THREAD = 0x40000000, 0x10000000, 0x00010000
_NO_NEW_PRIVS, _SET_SECCOMP = 38, 22
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def without_network() -> list[str]:
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


def limits(request: dict[str, Any]) -> list[str]:
    """Limit what it may take from here on; returns what the system granted.

    Args:
        request: ``memory``, bytes of address space beside what it has, and ``cpu``, seconds.
    """
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


def filtered() -> list[str]:
    """A seccomp filter: no programs, no writing, no signals to others."""
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
