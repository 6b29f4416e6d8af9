"""What stands for a job file on the command line: its path, or the name of one of one's own jobs."""

from __future__ import annotations

from pathlib import Path


def job_word(text: str) -> str:
    """The path that a word means; itself where there is no job of that name."""
    if Path(text).exists():
        return text
    from tui.fleet.paths import paths
    from tui.workers.job_files import job_named

    return str(job_named(text, paths(), Path()))
