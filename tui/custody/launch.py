"""Starts a program with limits: ``python -I launch.py MEMORY CPU FILE_SIZE PROGRAM [ARGUMENT…]``.

Stands alone. The limits are set in a process of their own: code between fork and exec in a program with
threads may deadlock. 0 leaves a limit as it is.
"""

from __future__ import annotations

import os
import resource
import sys


def main() -> None:
    memory, cpu, size = (int(text) for text in sys.argv[1:4])
    for what, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, size),
        (resource.RLIMIT_CORE, -1),
    ):
        if value:
            limit(what, max(value, 0))
    try:
        os.execvp(sys.argv[4], sys.argv[4:])  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{sys.argv[4]}: {error.strerror}\n")
        sys.exit(127)


def limit(what: int, value: int) -> None:
    """Lower a limit for good, where the system lets us (macOS knows no address space limit)."""
    hard = resource.getrlimit(what)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(what, (value, value))
    except (OSError, ValueError):
        pass


if __name__ == "__main__":
    main()
