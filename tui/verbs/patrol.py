"""`rgt patrol`: one read-only tick over everything, for cron or a timer; tells once what changed."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui.durable import write_whole
from tui.model.failure import Exit, Failure

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.fleet.patrol import Tick

NOTIFY_ENV = "RGT_NOTIFY"
"""Names the variable with one or several apprise addresses, which may hold tokens."""

_TIMER = "rgt-patrol"
_NOTICE_S = 30.0
_SYSTEMD_S = 20.0


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    patrol = sub.add_parser("patrol", help="one read-only tick over all boxes and runs; 1 when one needs you")
    patrol.add_argument("--json", action="store_true", help="print JSON")
    patrol.add_argument("--quiet", action="store_true", help="only what changed since the last tick")
    patrol.add_argument(
        "--install", action="store_true", help="every 10 minutes by a systemd user timer, after consent"
    )
    patrol.set_defaults(run=lambda args: _install(args) if args.install else asyncio.run(_tick(args)))


async def _tick(args: argparse.Namespace) -> int:
    from tui.fleet.paths import paths
    from tui.fleet.patrol import changes, ticks, words
    from tui.fleet.report import exit_code
    from tui.verbs.look import snapshot_of

    where = paths()
    snapshot, problems = await snapshot_of(where, [])
    now = ticks(snapshot, time.time())
    before = _last(where)
    news = tuple(changes(before, now))
    for problem in problems:
        print(f"rgt: {problem.line}", file=sys.stderr)
    untold = await _notify(news) if news else None
    if untold:
        print(f"rgt: {untold}", file=sys.stderr)
    if args.json:
        print(json.dumps(_as_json(now, news), ensure_ascii=False, indent=1))
    else:
        for one in news if args.quiet else now:
            mark = "▲" if one.escalated else "·"
            print(f"{mark} {one.line}{'  (changed)' if one in news and not args.quiet else ''}")
        if not now:
            print("No box yet. Add one with: rgt add 'ssh -p PORT USER@HOST'")
    if (unkept := _keep(where, words(now))) is not None:
        print(f"rgt: {unkept.line}", file=sys.stderr)
        problems = (*problems, unkept)
    if any(one.escalated for one in now) or problems:
        return Exit.ATTENTION
    return exit_code(snapshot)


def _as_json(now: Sequence[Tick], news: Sequence[Tick]) -> dict[str, object]:
    return {
        "ticks": [
            {
                "key": one.key,
                "word": one.word,
                "line": one.line,
                "escalated": one.escalated,
                "changed": one in news,
            }
            for one in now
        ]
    }


def _last(where: Paths) -> dict[str, str]:
    """What the tick before saw. A file that cannot be read is as none: everything escalated is told again."""
    try:
        read = json.loads((where.state / "patrol.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in read.items() if isinstance(v, str)} if isinstance(read, dict) else {}


def _keep(where: Paths, seen: Mapping[str, str]) -> Failure | None:
    """Keep what was seen for the next tick, or say that it is not kept."""
    try:
        write_whole(where.state / "patrol.json", json.dumps(dict(seen)))
    except OSError as error:
        return Failure(
            f"What this tick saw could not be kept in {where.state} ({error.strerror}).",
            means="The next one tells the same changes again.",
            do="Make room or give access there.",
        )
    return None


async def _notify(news: Sequence[Tick]) -> str | None:
    """Tell what changed where the operator wants it; what went wrong, in words without the address."""
    addresses = os.environ.get(NOTIFY_ENV, "").split()
    if not addresses:
        return None
    try:
        import apprise
    except ImportError:
        return f"{NOTIFY_ENV} is set, but apprise is not installed: pip install 'remote-gpu-trainer[notify]'."
    teller = apprise.Apprise()
    known = [teller.add(address) for address in addresses]
    if not all(known):
        return f"An address in {NOTIFY_ENV} is none that apprise knows; nobody was told there."
    title = f"rgt: {len(news)} changed" if len(news) > 1 else f"rgt: {news[0].key} is {news[0].word}"
    body = "\n".join(one.line for one in news)
    try:
        async with asyncio.timeout(_NOTICE_S):
            told = await teller.async_notify(body=body, title=title)
    except TimeoutError:
        told = False
    return None if told else "Not everybody could be told what changed; it stands above."


def _install(args: argparse.Namespace) -> int:
    """A systemd user timer, after consent; else the line for cron."""
    from tui.custody.keyboard import read_line

    program = shutil.which("rgt") or sys.argv[0]
    cron = f"*/10 * * * * {shlex.quote(str(Path(program).resolve()))} patrol --quiet"
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    if shutil.which("systemctl") is None or not _user_manager():
        print("There is no systemd user manager here. This line does it, added with `crontab -e`:")
        print(f"  {cron}")
        return Exit.FINE
    units = _units(program)
    print(f"This writes {', '.join(units)} into {folder} and starts the timer: every 10 minutes, read-only.")
    try:
        typed = read_line("Type yes and Enter to do it: ", 300.0)
    except Failure:
        print("Nobody could be asked, so nothing was done. For cron this line does it:")
        print(f"  {cron}")
        return Exit.UNKNOWN
    if typed.strip() != "yes":
        print("Nothing was done.")
        return Exit.ATTENTION
    try:
        for name, text in units.items():
            write_whole(folder / name, text)
    except OSError as error:
        raise Failure(
            f"The units could not be written into {folder} ({error.strerror}).",
            means="No timer runs.",
            do=f"Make room or give access there, or use cron: {cron}",
        ) from None
    for words in (("daemon-reload",), ("enable", "--now", f"{_TIMER}.timer")):
        done = _systemctl(*words)
        if done is None or done.returncode != 0:
            raise Failure(
                f"systemctl --user {' '.join(words)} failed.",
                means="The units are written, and the timer does not run.",
                do=f"Or use cron: {cron}",
            )
    print(f"The timer runs. `systemctl --user disable --now {_TIMER}.timer` ends it.")
    print(f"Notices go where {NOTIFY_ENV} of ~/.config/rgt/notify.env says; that file is yours to write.")
    return Exit.FINE


def _units(program: str) -> dict[str, str]:
    """The unit files; systemd's own escapes for the one path in them."""
    escaped = str(Path(program).resolve()).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    service = (
        f'[Unit]\nDescription=rgt patrol\n\n[Service]\nType=oneshot\nExecStart="{escaped}" patrol --quiet\n'
    )
    service += "SuccessExitStatus=1 3 4\n"
    timer = "[Unit]\nDescription=rgt patrol\n\n[Timer]\nOnCalendar=*:0/10\nPersistent=true\n\n"
    timer += "[Install]\nWantedBy=timers.target\n"
    return {f"{_TIMER}.service": service, f"{_TIMER}.timer": timer}


def _user_manager() -> bool:
    done = _systemctl("is-system-running")
    return done is not None and done.stdout.strip() in (b"running", b"degraded", b"starting")


def _systemctl(*words: str) -> subprocess.CompletedProcess[bytes] | None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(
            ["systemctl", "--user", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SYSTEMD_S,
        )
    return None
