"""`rgt` without a verb: the screen. The first frame is drawn before anything heavy is imported."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import sys
from typing import TYPE_CHECKING

from tui import terminal
from tui.actions import ACTIONS
from tui.fleet import keymap, themes
from tui.fleet.first_look import names_only
from tui.fleet.paths import Paths, paths, shipped
from tui.fleet.preferences import Settings
from tui.model.failure import Exit, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui.app import RgtApp
    from tui.fleet.store import Store
    from tui.fleet.themes import Themes
    from tui.model.instance import Instance


THEMES_S = 1.0
"""How often the operator's theme files are looked at."""


def open_screen(args: argparse.Namespace, *, setup: str | None = None) -> int:
    """Run the app until the operator leaves.

    Args:
        setup: begin with the guided setup of this platform or box; empty: of nothing yet.
    """
    check_terminal()
    where = paths()
    look = names_only(where.fleet_file)
    depth = terminal.colour_depth(os.environ, args.color or "auto")
    terminal.prepare_colour(depth, os.environ)
    wanted = args.glyphs or look.glyphs
    width = terminal.glyph_width() if wanted == "auto" else None
    glyphs = terminal.choose_glyphs(wanted, width, os.environ)
    found = themes.load([shipped("themes"), where.themes])

    from tui.app import RgtApp
    from tui.leaving import run
    from tui.widgets.glyphs import ASCII, UNICODE
    from tui.widgets.moves import MOVES

    keys = keymap.load(where.keymap_file, ACTIONS, reserved=[key for row in MOVES for key in row[0]])
    theme, unknown = _theme(args.theme, look.theme, depth, found)
    problems = (*found.problems, *unknown, *keys.problems)
    app = RgtApp(
        _new_store,
        read_only=args.read_only or look.read_only,
        themes=found.by_name,
        theme=theme,
        glyphs=ASCII if glyphs == "ascii" else UNICODE,
        first_look=look.instances,
        start=lambda running: _start(running, where, problems, setup),
        key_overrides=keys.overrides,
        shell_argv=lambda box: _shell_argv(box, where),
        save_theme=lambda name: _save_theme(name, where),
        state=where.state,
        bell=look.bell,
    )
    return run(app, mouse=look.mouse)


def _new_store() -> Store:
    """Made after the first frame: what it imports would cost that frame 60 ms."""
    from tui.fleet.store import Store

    return Store(frame_s=terminal.frame_s(os.environ))


def check_terminal() -> None:
    """Raises Failure where no screen can be drawn."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure(
            "The screen needs a terminal.",
            do="Use `rgt status`, `rgt probe` or `rgt logs` in scripts and pipes.",
            exit=Exit.USAGE,
            code="no-terminal",
        )
    if not sys.stderr.isatty():  # Textual draws there
        raise Failure(
            "The screen is drawn on standard error, which is no terminal here.",
            do="Start it without `2>`.",
            exit=Exit.USAGE,
            code="no-terminal",
        )


def _theme(asked: str | None, settled: str, depth: str, found: Themes) -> tuple[str, tuple[Failure, ...]]:
    """The theme to start with, one that this terminal can show, and what is wrong with the choice.

    Args:
        asked: on the command line; a wrong name there is refused.
        settled: in ``fleet.toml``; a wrong name there is told, and never stops the watch.
    """
    wanted = asked or settled
    problems: tuple[Failure, ...] = ()
    if wanted not in found.by_name:
        names = ", ".join(found.by_name)
        failure = Failure(
            f"There is no theme {wanted!r}.", do=f"Themes: {names}.", exit=Exit.USAGE, code="no-theme"
        )
        if asked:
            raise failure
        wanted, problems = Settings().theme, (failure,)
    if depth == "none":
        return "mono", problems
    return "ansi16" if depth == "16" and not found.get(wanted).ansi else wanted, problems


async def _start(app: RgtApp, where: Paths, problems: Sequence[Failure], setup: str | None = None) -> None:
    """Load what SSH needs and watch the fleet; awaited after the first frame.

    It is loaded in a thread: a quarter of a second in which the views are drawn and keys are answered.
    """
    await asyncio.to_thread(importlib.import_module, "tui.verbs.wiring")
    from tui.fleet import settings
    from tui.fleet.reducer import Rules
    from tui.model.event import Notice
    from tui.screens.host import AddBox
    from tui.verbs.wiring import supervisor, until_cancelled

    app.add_box = AddBox(lambda text: _preview(where, text), lambda text, name: _save(app, where, text, name))
    chosen = settings.load(where.fleet_file).settings
    app.store.rules = Rules(chosen.thresholds, chosen.period_s)
    app.period_s = chosen.period_s
    for problem in problems:
        await app.store.put(Notice(problem.line, "attention"))
    if setup is not None:
        await app.perform("setup", setup or None)
    following = asyncio.create_task(_follow_themes(app, where.themes))
    try:
        await until_cancelled(supervisor(app.store, where))
    finally:
        following.cancel()


async def _follow_themes(app: RgtApp, own: Path) -> None:
    """Put edited theme files to use as soon as they are saved."""
    folders = [shipped("themes"), own]
    seen = _stamps(own)
    while True:
        await asyncio.sleep(THEMES_S)
        now = _stamps(own)
        if now != seen:
            seen = now
            found = themes.load(folders)
            app.take_themes(found.by_name)
            for problem in found.problems:
                app.say(problem.line, "attention")


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """What tells an edited file; empty where there is no folder."""
    try:
        entries = [(entry.name, entry.stat()) for entry in os.scandir(folder) if entry.name.endswith(".toml")]
    except OSError:
        return {}
    return {name: (stat.st_mtime_ns, stat.st_ino) for name, stat in entries}


def _save_theme(name: str, where: Paths) -> None:
    from tui.fleet import fleet_file

    fleet_file.set_theme(where.fleet_file, name)


def _shell_argv(box: str, where: Paths) -> list[str]:
    from tui.box.system_ssh import ssh_argv
    from tui.custody.host_keys import trust_store

    return ssh_argv(instance_named(box, where), trust_store(where))


def instance_named(name: str, where: Paths) -> Instance:
    from tui.fleet.fleet_source import FleetFile

    fleet, _ = FleetFile(where).load()
    found = next((i for i in fleet.instances if i.name == name), None)
    if found is None:
        raise Failure(
            f"No box is named {name!r} in {where.fleet_file}.", do="See `rgt status`.", exit=Exit.USAGE
        )
    return found


def _preview(where: Paths, text: str) -> list[tuple[str, str]]:
    from tui.box.address import parse_address
    from tui.fleet import fleet_file
    from tui.verbs import add_here
    from tui.verbs.naming import unused_name

    if add_here.is_here(text):
        return [("platform", "this computer"), ("name", add_here.understood(where, None))]
    address = parse_address(text)
    name = unused_name(address, fleet_file.names(where.fleet_file).instances)
    shown = {**address.as_json(), "name": name}
    return [(field, str(value)) for field, value in shown.items() if value not in (None, False, "")]


async def _save(app: RgtApp, where: Paths, text: str, name: str) -> str:
    from tui.model.command import ReloadFleet
    from tui.verbs.fleet import write_instance

    sentence = write_instance(where, text, name)
    app.send(ReloadFleet())
    return sentence
