"""Python's own words for the end of a program: tracebacks of whatever rank, and the user's own frame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tui.model.incident import Fact
from tui.triage.finding import Hit
from tui.triage.view import View

WORDS = (
    "traceback (most", 'file "', "error:", "exception:", "keyerror", "error(", "exception in thread",
    "panicked at", "assertionerror", "stopiteration", "notimplementederror", "runtimeerror",
    "unhandled exception",
)  # fmt: skip
_BEGIN = re.compile(r"Traceback \(most recent call last\)")
_FRAME = re.compile(r'^\W{0,6}\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in .+)?$')
_NAMED = re.compile(
    r"^(?:\S+ )?(?P<name>(?:[A-Za-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Exit|Failure|Interrupt|Timeout"
    r"|Closed|Expired|NotFound|Refused|Failed|Resources|Overflow|Stop\w*|Warning|Fault|Abort\w*)\w*)(?::\s?(?P<message>.*))?$"
)
_ANY_NAMED = re.compile(r"^(?P<name>(?:[A-Za-z_]\w*\.)+[A-Z]\w*|[A-Z]\w{3,})(?::\s(?P<message>.*))?$")
_ELSEWHERE = re.compile(
    r"(?:site|dist)-packages/|/lib(?:64)?/python\d|<frozen |<string>|/bin/(?:torchrun|accelerate"
    r"|deepspeed)|/_distutils_hack|/opt/conda/lib/"
)
_LAUNCHER = re.compile(
    r"ChildFailedError|SignalException|SIGTERMException|ProcessRaisedException|ProcessExitedException|CalledProcessError"
    r"|KeyboardInterrupt"
    r"|TerminatedWorkerError|RayTaskError|ActorDiedError|RayActorError|RemoteException|UserCodeException|WorkerCrashed"
    r"|BrokenProcessPool|GeneratorExit"
    r"|StopIteration\b"
)
_PEER_GONE = re.compile(
    r"(?i)connection reset by peer|connection closed by (?:remote )?peer|broken pipe|EOFError"
    r"|ConnectionResetError|ConnectionAbortedError"
    r"|DistBackendError|NCCL|HCCL|gloo|c10d|TCPStore|store\.get|remote process exit|heartbeat"
)
_IGNORED = re.compile(
    r"Exception ignored in|Exception ignored on|^During handling of the above|error ignored"
    r"|--- Logging error ---"  # of a message that could not be formatted; the program goes on
)
_BOX = re.compile(r"^[│|] (?P<file>(?:/|[A-Za-z]:|\.{0,2}/)?[^\s:│]+\.py):(?P<line>\d+) in ")
_ELSEWHERE_TOO = re.compile(
    r"(?i)see (?:the )?(?:stack trace|root cause)|error is reported as above"
    r"|in a background process|engine core initialization failed"
)
_WARNING = re.compile(r"(?:^|\.)\w*Warning$")
_LAST = 12  # rows before the end among which an exception needs no traceback


@dataclass(slots=True)
class Raised:
    """One exception that was printed. `frames`: (file, line), outermost first."""

    at: int
    name: str
    message: str
    begin: int
    frames: list[tuple[str, int]] = field(default_factory=list)
    ignored: bool = False

    @property
    def own_frame(self) -> tuple[str, int] | None:
        """The innermost frame in the user's own code, or the innermost of all."""
        own = [one for one in self.frames if not _ELSEWHERE.search(one[0])]
        return own[-1] if own else self.frames[-1] if self.frames else None


def raised(view: View) -> list[Raised]:
    """All exceptions, in order of the row that names them."""
    if "raised" not in view.cache:
        view.cache["raised"] = sorted(_raised(view), key=lambda one: one.at)
    found: list[Raised] = view.cache["raised"]
    return found


def _raised(view: View) -> Iterator[Raised]:
    open_ones: dict[int | None, Raised] = {}
    waiting: list[Raised] = []
    for index, one in enumerate(view.rows):
        head = one.head
        if _BEGIN.search(head):
            near = view.rows[max(0, index - 2) : index]
            ignored = any(_IGNORED.search(row.text) and "During" not in row.text for row in near)
            block = Raised(index, "", "", index, [], ignored)
            if head.lstrip().startswith("Original"):  # its frames belong to the exception before it as well
                waiting = [earlier for earlier in waiting if earlier.begin >= 0]
            open_ones[one.rank] = block
            continue
        block_or_none = open_ones.get(one.rank)
        frame = _FRAME.match(head.rstrip()) or _BOX.match(head.strip())
        if frame and block_or_none is not None:
            block_or_none.frames.append((frame["file"], int(frame["line"])))
            continue
        named = _NAMED.match(head.strip()) if not head.startswith("  ") else None
        if named is None and block_or_none is not None and block_or_none.frames and not head.startswith("  "):
            named = _ANY_NAMED.match(head.strip())
        if named is None or _WARNING.search(named["name"]):
            continue
        if block_or_none is not None and block_or_none.frames:
            done = Raised(index, named["name"], named["message"] or "", block_or_none.begin,
                          block_or_none.frames, block_or_none.ignored)  # fmt: skip
            del open_ones[one.rank]
            for earlier in waiting:
                earlier.frames = earlier.frames or done.frames
            waiting = []
            yield done
        elif _NAMED.match(head.strip()):
            loose = Raised(index, named["name"], named["message"] or "", index)
            if (named["message"] or "").startswith("Caught ") or index >= len(view.rows) - _LAST:
                waiting.append(loose)
                ignored = index > 0 and bool(_IGNORED.search(view.rows[index - 1].text))
                loose.ignored = ignored
                yield loose


def exceptions(view: View, cls: str) -> Iterator[Hit]:
    """Every exception that ended something, with the user's own frame."""
    for one in raised(view):
        short = one.name.rpartition(".")[2]
        if (
            one.ignored
            or one.at in view.at_exit
            or _LAUNCHER.search(short)
            or (short == "SystemExit" and one.message in ("", "0"))
        ):
            continue
        if short in ("Exit", "Error") and not one.frames:
            continue
        peer = _ELSEWHERE_TOO.search(one.message) or _PEER_GONE.search(f"{short}: {one.message}")
        facts: dict[str, Fact] = {"exc": short}
        frame = one.own_frame
        if frame:
            facts |= {"file": frame[0], "line": frame[1]}
        if short in ("UnicodeEncodeError", "UnicodeDecodeError") and "'ascii'" in one.message:
            facts["detail"] = "locale"
        rank = view.rows[one.at].rank
        if rank is not None:
            facts["rank"] = rank
        confidence = 0.8 if one.frames else 0.6
        yield Hit(one.at, facts=facts, rank=19 if peer else None, confidence=confidence)
