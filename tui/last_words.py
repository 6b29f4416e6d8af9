"""What is said of a fault that no verb foresaw: one sentence, and no more than is true."""

from __future__ import annotations

import errno
import os
import sys
import traceback

from tui.model.text import safe

_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM)
_HELP = dict.fromkeys(_OF_THE_DISK, "Make room or give access") | {
    errno.ENAMETOOLONG: "Set RGT_HOME to a shorter path",
    errno.EMFILE: "Raise the limit (`ulimit -n 1024`)",
}
_BROKE_OFF = "This verb broke off there; what it did before stays done."


def output_fault(fault: Exception) -> str:
    """Why standard output takes no more; empty where that isn't it.

    A full disk speaks alike wherever the bytes were to go, so the output is tried once more, by a line end.
    """
    if isinstance(fault, OSError) and fault.filename is None and sys.stdout is not None:
        try:
            print(flush=True)  # noqa: T201
        except OSError as again:
            return str(again.strerror)
    return ""


def last_words(fault: Exception) -> str:
    """What happened, what it means and what to do. It never tells what a box was spared: nobody knows."""
    if isinstance(fault, FileNotFoundError) and fault.filename is None and _nowhere():
        return "The folder that rgt was started in is gone. Nothing is found from there. Change into another."
    where = _place(fault)
    if isinstance(fault, OSError) and (help_ := _HELP.get(fault.errno or 0)):
        what = safe(str(fault.filename or "A file on this computer"), 300)
        return f"{what} can't be used: {fault.strerror} ({where}). {_BROKE_OFF} {help_}, then repeat it."
    return (
        f"an error of rgt's own: {safe(f'{type(fault).__name__}: {fault}', 300)} ({where}). {_BROKE_OFF} "
        "RGT_DEBUG=1 shows all of it for a bug report."
    )


def _nowhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - it is the error that is asked for
    except OSError:
        return True
    return False


def _place(fault: Exception) -> str:
    """Where in rgt it happened: file and line, without the operator's paths."""
    frames = traceback.extract_tb(fault.__traceback__)
    ours = [f for f in frames if f"{os.sep}tui{os.sep}" in f.filename]
    last = (ours or frames)[-1]
    return f"{last.filename.rpartition(f'{os.sep}tui{os.sep}')[2]}:{last.lineno}"
