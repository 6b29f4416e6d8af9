"""`rgt doctor`: what about this terminal, tmux, ssh, keys and clock will bite, and what to change."""

from __future__ import annotations

import argparse
import json
import locale
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tui.fleet.paths import Paths, paths, shipped
from tui.model.failure import Exit, Failure
from tui.model.text import safe

DEADLINE_S = 5.0
Run = Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `state` is ``ok``, ``change`` or ``unknown``; `do` says what to change."""

    name: str
    state: str
    found: str
    do: str = ""


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("doctor", help="check terminal, tmux, ssh, keys and clock")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plain", action="store_true", help="one line per check, tab separated")
    parser.set_defaults(run=doctor)


def doctor(args: argparse.Namespace) -> int:
    """Print every check; exit 1 when something should be changed."""
    checks = list(examine(os.environ, paths()))
    if args.json:
        print(json.dumps([asdict(c) for c in checks], ensure_ascii=False, indent=1))
    else:
        for check in checks:
            print(_plain(check) if args.plain else _line(check))
    return Exit.ATTENTION if any(c.state == "change" for c in checks) else Exit.FINE


def _plain(check: Check) -> str:
    return "\t".join((check.name, check.state, check.found, check.do))


def _line(check: Check) -> str:
    mark = {"ok": "ok     ", "change": "CHANGE ", "unknown": "unknown"}[check.state]
    advice = f"\n          {check.do}" if check.do else ""
    return f"{mark}  {check.name}: {check.found}{advice}"


def examine(
    environment: os._Environ[str] | dict[str, str], where: Paths, run: Run | None = None
) -> Iterator[Check]:
    """Every check, each at most a few seconds. `run` starts a program and gives its output (for tests)."""
    run = run or output_of
    yield from terminal_checks(environment)
    yield from tmux_checks(environment, run)
    yield from ssh_checks(environment, run)
    yield from key_checks(Path(environment.get("HOME", "/")) / ".ssh")
    yield clock_check(run)
    yield from file_checks(where)


def output_of(*command: str) -> str | None:
    """What a program prints on both streams, or None when it is not there or does not end."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return safe((done.stdout + done.stderr).replace(b"\n", b" | "), 8192)


def terminal_checks(environment: os._Environ[str] | dict[str, str]) -> Iterator[Check]:
    """Size, colours and character set."""
    size = shutil.get_terminal_size()
    small = size.columns < 60 or size.lines < 15
    yield Check(
        "size",
        "change" if small else "ok",
        f"{size.columns}x{size.lines}",
        "Give the pane at least 60x15; below 40x10 nothing can be shown." if small else "",
    )
    term = environment.get("TERM", "")
    if term in ("", "dumb"):
        yield Check(
            "colours", "change", f"TERM is {term or 'not set'}: no colours", "export TERM=xterm-256color"
        )
    elif environment.get("COLORTERM") in ("truecolor", "24bit"):
        yield Check("colours", "ok", f"{term}, 24 bit")
    else:
        yield Check(
            "colours",
            "ok",
            f"{term}, {'256' if '256' in term else '16'} colours; the themes are made for that",
        )
    encoding = locale.getpreferredencoding(False)
    utf8 = encoding.lower().replace("-", "") == "utf8"
    yield Check("characters", "ok" if utf8 else "change", encoding, "" if utf8 else "export LANG=C.UTF-8")


_TMUX_WISHES: tuple[tuple[str, str, Callable[[str], bool], str], ...] = (
    (
        "escape-time",
        "-gsv",
        lambda value: value.isdigit() and int(value) <= 50,
        "tmux set -sg escape-time 20   # esc reacts at once",
    ),
    (
        "set-clipboard",
        "-gsv",
        lambda value: value in ("on", "external"),
        "tmux set -s set-clipboard on   # y reaches your own clipboard",
    ),
    (
        "default-terminal",
        "-gv",
        lambda value: "256color" in value,
        "tmux set -g default-terminal tmux-256color",
    ),
)


def tmux_checks(environment: os._Environ[str] | dict[str, str], run: Run) -> Iterator[Check]:
    """Whether runs of this program survive a closed laptop, and the options that make it pleasant."""
    version = run("tmux", "-V")
    if version is None:
        yield Check(
            "tmux", "change", "not installed here", "Install tmux: rgt then survives a closed terminal."
        )
        return
    if not environment.get("TMUX"):
        yield Check("tmux", "ok", f"{version.strip(' |')} installed; this terminal is not inside it")
        return
    yield Check("tmux", "ok", f"inside {version.strip(' |')}")
    for option, scope, good, advice in _TMUX_WISHES:
        value = (run("tmux", "show-options", scope, option) or "").strip(" |")
        if not value:
            yield Check(f"tmux {option}", "unknown", "tmux did not say")
        else:
            yield Check(
                f"tmux {option}", "ok" if good(value) else "change", value, "" if good(value) else advice
            )


def ssh_checks(environment: os._Environ[str] | dict[str, str], run: Run) -> Iterator[Check]:
    """The ssh program (for `!` and to read your configuration), its configuration, the agent."""
    version = run("ssh", "-V")
    if version is None:
        yield Check(
            "ssh", "change", "no ssh program", "Install openssh-client: `!` and ~/.ssh/config need it."
        )
        return
    yield Check("ssh", "ok", version.strip(" |"))
    resolved = run("ssh", "-G", "--", "rgt-doctor.invalid")
    bad = resolved is not None and "hostname" not in resolved
    yield Check(
        "ssh config",
        "change" if bad else ("unknown" if resolved is None else "ok"),
        safe(resolved or "no answer", 160) if bad or resolved is None else "readable",
        "Mend the line named above in ~/.ssh/config; rgt asks `ssh -G` how to reach each box." if bad else "",
    )
    keys = run("ssh-add", "-l") if environment.get("SSH_AUTH_SOCK") else None
    if keys is None:
        yield Check("ssh agent", "ok", "none; keys are read from files")
    elif re.search(r"could not open|error|refused", keys, re.IGNORECASE):
        yield Check(
            "ssh agent",
            "change",
            "SSH_AUTH_SOCK names an agent that does not answer",
            "unset SSH_AUTH_SOCK, or start ssh-agent.",
        )
    else:
        count = 0 if "no identities" in keys else keys.count("SHA256:")
        many = count > 5
        yield Check(
            "ssh agent",
            "change" if many else "ok",
            f"keys {count}",
            "Servers stop after six tries: name the key of each box (`rgt edit BOX key=...`)."
            if many
            else "",
        )


def key_checks(folder: Path) -> Iterator[Check]:
    """Private keys that ssh refuses because others can read them."""
    try:
        files = sorted(p for p in folder.iterdir() if p.name.startswith("id_") and p.suffix != ".pub")
    except OSError:
        files = []
    if not files:
        yield Check("keys", "ok", "no key files in ~/.ssh; `rgt setup` makes one for you")
        return
    for file in files:
        try:
            loose = stat.S_IMODE(file.stat().st_mode) & 0o077
        except OSError:
            continue
        name = safe(file.name, 60)
        advice = f"chmod 600 ~/.ssh/{name}   # ssh ignores a key that others can read" if loose else ""
        yield Check(
            f"key {name}", "change" if loose else "ok", "readable by others" if loose else "private", advice
        )


def clock_check(run: Run) -> Check:
    """Whether this computer's clock is kept right: ages and meters are judged by it."""
    answer = run("timedatectl", "show", "--property=NTPSynchronized", "--value")
    now = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    if answer is None or answer.strip(" |") not in ("yes", "no"):
        return Check("clock", "unknown", f"{now}; no service here tells whether it is kept right")
    if answer.strip(" |") == "yes":
        return Check("clock", "ok", f"{now}, synchronised")
    return Check("clock", "change", f"{now}, not synchronised", "sudo timedatectl set-ntp true")


def file_checks(where: Paths) -> Iterator[Check]:
    """The operator's own files: fleet, keys, themes and profiles; each problem with its line."""
    from tui.actions import ACTIONS
    from tui.fleet import keymap, profiles, settings, themes

    loaded = settings.load(where.fleet_file)
    summary = f"{where.fleet_file}: boxes {len(loaded.instances)}, runs {len(loaded.runs)}"
    yield from _files("fleet file", loaded.problems, summary)
    yield from _files("keymap", keymap.load(where.keymap_file, ACTIONS).problems, str(where.keymap_file))
    own = themes.load([shipped("themes"), where.themes])
    yield from _files("themes", own.problems, ", ".join(own.by_name))
    known = profiles.load(shipped("profiles"), where.profiles)
    yield from _files("profiles", known.problems, ", ".join(known.plain()))
    yield _writable("state", where.state)


def _files(name: str, problems: Iterable[Failure], fine: str) -> Iterator[Check]:
    wrong = [Check(name, "change", str(problem.line)) for problem in problems]
    yield from wrong or [Check(name, "ok", fine)]


def _writable(name: str, folder: Path) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = os.statvfs(folder)
    except OSError as error:
        return Check(
            name, "change", f"{folder}: {error.strerror}", "Set RGT_HOME to a directory you can write to."
        )
    if not os.access(folder, os.W_OK):
        words = f"{folder}: nothing can be written there"
        return Check(name, "change", words, "Give access, or set RGT_HOME to a directory you can write to.")
    if free.f_files and free.f_favail == 0:
        return Check(name, "change", f"{folder}: no inodes left", "Free some files: nothing can be recorded.")
    if free.f_bavail * free.f_frsize < 64 << 20:
        return Check(
            name, "change", f"{folder}: under 64 MiB free", "Free some space: logs are spooled here."
        )
    return Check(name, "ok", f"{folder}, Python {sys.version_info.major}.{sys.version_info.minor}")
