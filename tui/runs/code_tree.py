"""The code of a job as it lies on this computer: its files, its identity, and what does not travel.

Git decides what belongs to it where there is a repository; else everything does that no pattern leaves out.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.model.failure import Exit, Failure
from tui.model.text import safe

LARGEST = 256 << 20
"""Bytes of one file of code. What is larger is data, and belongs into ``inputs``."""

_NEVER = (".git", ".hg", ".svn", "__pycache__", ".venv", "node_modules", ".DS_Store")
_GIT_S = 60.0


@dataclass(frozen=True, slots=True)
class CodeFile:
    """One file. `path` is relative, with ``/``; `made_lf` says that its line ends were changed to LF."""

    path: str
    sha256: str
    bytes: int
    executable: bool
    made_lf: bool = False

    def line(self) -> str:
        return f"{self.sha256} {'x' if self.executable else '-'} {self.path}"


@dataclass(frozen=True, slots=True)
class CodeTree:
    """A tree of code.

    Attributes:
        commit: git's id of what is checked out, None without a repository.
        dirty: SHA-256 of the difference to it, None where there is none.
    """

    root: Path
    files: tuple[CodeFile, ...]
    commit: str | None = None
    dirty: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 over every path, content and executable bit."""
        return hashlib.sha256("".join(f"{one.line()}\n" for one in self.files).encode()).hexdigest()

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.files)

    def identity(self, path: str | None, key: str) -> str | None:
        """SHA-256 of one file as it travels; None where none is named.

        Args:
            key: of the job file, that names it.

        Raises:
            Failure: it is not among the code.
        """
        if path is None:
            return None
        found = next((one.sha256 for one in self.files if one.path == path), None)
        if found is None:
            raise _cannot(f"{key} names {safe(path, 200)}, which is not among the code that travels.")
        return found


def read_tree(root: Path, exclude: Sequence[str] = ()) -> CodeTree:
    """Read a folder of code.

    Args:
        exclude: patterns; one without ``/`` speaks of names at any depth.

    Raises:
        Failure: there is no such folder, or a file of it cannot travel; it names the first.
    """
    if not root.is_dir():
        raise _cannot(f"There is no folder {safe(str(root), 200)}.")
    commit = _git(root, "rev-parse", "HEAD")
    names = _listed(root) if commit is not None else _walked(root)
    kept = sorted(name for name in set(names) if not _excluded(name, (*_NEVER, *exclude)))
    files = tuple(found for name in kept if (found := _file(root, name)) is not None)
    if not files:
        raise _cannot(f"There is no code in {safe(str(root), 200)}: every file is left out.")
    changes = _git(root, "diff", "--binary", "HEAD") if commit is not None else None
    return CodeTree(
        root,
        files,
        commit.decode("ascii", "replace").strip() if commit else None,
        hashlib.sha256(changes).hexdigest() if changes else None,
    )


def content(root: Path, one: CodeFile) -> bytes:
    """A file's bytes as they travel. Raises Failure: it is not the file that was read before."""
    body = _read(root / one.path)
    body = _with_lf(one.path, body)[0]
    if hashlib.sha256(body).hexdigest() != one.sha256:
        raise _cannot(f"{safe(one.path, 200)} changed while it was being sent.")
    return body


def _file(root: Path, name: str) -> CodeFile | None:
    path = root / name
    if any(sign in name for sign in "\n\r\\"):
        raise _cannot(f"{safe(name, 200)} has a line break or a backslash in its name.")
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(root.resolve()):
            raise _cannot(f"{safe(name, 200)} is a link that leaves the folder.")
        status = path.stat()
    except FileNotFoundError:
        return None  # git lists what is deleted and not committed
    except (OSError, RuntimeError):  # the latter: Python 3.11 and 3.12 of links that lead back to themselves
        raise _cannot(f"{safe(name, 200)} is a link that leads nowhere, or can't be read.") from None
    if stat.S_ISDIR(status.st_mode):
        raise _cannot(f"{safe(name, 200)} is a link to a folder, or a repository of its own.")
    if not stat.S_ISREG(status.st_mode):
        raise _cannot(f"{safe(name, 200)} is no regular file.")
    if status.st_size > LARGEST:
        raise _cannot(f"{safe(name, 200)} is larger than {LARGEST >> 20} MiB: it is data, not code.")
    body, made_lf = _with_lf(name, _read(path))
    digest = hashlib.sha256(body).hexdigest()
    return CodeFile(name, digest, len(body), bool(status.st_mode & stat.S_IXUSR), made_lf)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _cannot(f"{safe(path.name, 200)} cannot be read ({error.strerror}).") from None


def _with_lf(name: str, body: bytes) -> tuple[bytes, bool]:
    """A script written on Windows names an interpreter that ends in a carriage return, and fails for it."""
    first = body.partition(b"\n")[0]
    if first.endswith(b"\r") and (first.startswith(b"#!") or name.endswith((".sh", ".bash", ".slurm"))):
        return body.replace(b"\r\n", b"\n"), True
    return body, False


def _listed(root: Path) -> list[str]:
    told = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if told is None:
        return list(_walked(root))
    return [os.fsdecode(name) for name in told.split(b"\0") if name]


def _walked(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _NEVER)
        for name in files:
            yield (Path(folder) / name).relative_to(root).as_posix()


def _excluded(name: str, patterns: Sequence[str]) -> bool:
    parts = name.split("/")
    for pattern in patterns:
        bare = pattern.strip("/")
        if "/" in bare:
            if fnmatch.fnmatchcase(name, bare) or name.startswith(f"{bare}/"):
                return True
        elif any(fnmatch.fnmatchcase(part, bare) for part in parts):
            return True
    return False


def _git(root: Path, *words: str) -> bytes | None:
    """What git says; None where there is no git, no repository or no commit."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_S, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _cannot(what: str) -> Failure:
    return Failure(
        what,
        means="Nothing was sent.",
        do="Leave it out with code.exclude, or mend it.",
        exit=Exit.ATTENTION,
        code="code-cannot-travel",
    )
