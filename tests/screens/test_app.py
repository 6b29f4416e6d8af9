"""The app around the views: frames, failures, notices, leaving, the views that hang on it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import Input

from tests.fixtures.fleet_fixture import HOSTILE_NAMES, NOW, fleet, hostile
from tests.screens.app_harness import THEMES, HeldStore, held, picture, roster, running, said, until
from tests.widgets.test_roster import with_util
from tui.app import RgtApp
from tui.fleet.store import Store
from tui.frames import Frame
from tui.model.command import AdoptRun, CloseForward, OpenForward, ProbeNow
from tui.model.event import FleetChanged, LinkChanged, Notice, TelemetryTaken
from tui.model.failure import Failure
from tui.model.snapshot import FleetSnapshot
from tui.model.text import safe
from tui.screens.add import AddSheet
from tui.screens.adopt import AdoptScreen, AdoptSheet
from tui.screens.cards import CardsScreen
from tui.screens.command_line import CommandLine
from tui.screens.command_log import CommandLogScreen
from tui.screens.first import FirstScreen
from tui.screens.fleet import FleetScreen
from tui.screens.forwards import ForwardsScreen
from tui.screens.help import HelpScreen
from tui.screens.host import AddBox
from tui.screens.messages import MessagesScreen
from tui.screens.palette import Palette
from tui.screens.run import RunScreen
from tui.screens.theme import ThemeScreen
from tui.screens.too_small import TooSmallScreen
from tui.sparing import SparingUpdate
from tui.widgets.lines import Lines
from tui.widgets.picker import Picker

# -- start and frames ------------------------------------------------------------------------------------


def test_the_first_frame_needs_nothing_heavy() -> None:
    code = (
        "import sys; import tui.app;"
        "heavy = {'asyncssh', 'pydantic', 'torch', 'numpy', 'yaml', 'tomlkit'};"
        "late = {'tui.fleet.store', 'tui.screens.fleet', 'tui.widgets.roster', 'tui.model.telemetry'};"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in heavy or m in late))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


async def test_names_come_first_and_start_after_them() -> None:
    seen: list[str] = []

    async def start(app: RgtApp) -> None:
        seen.append(type(app.screen).__name__)

    def late_store() -> Store:
        seen.append("store")
        return HeldStore(FleetSnapshot())

    app = RgtApp(late_store, themes=THEMES, first_look=[("北京-1", "autodl"), ("[b]", "ssh")], start=start)
    async with app.run_test(size=(60, 15)) as pilot:
        first = app.screen_stack[0]
        assert isinstance(first, FirstScreen)
        assert "北京-1" in first.query_one(Lines).text
        assert first.query_one(Lines).size.height == 15  # all of them stand there, not the first line alone
        await until(pilot, lambda: "FleetScreen" in seen)
        assert seen == ["store", "FleetScreen"]
        assert [item.key for item in roster(app).items] == [("北京-1", ""), ("[b]", "")]
        assert "? not probed" in roster(app).text


async def test_many_publications_are_one_frame() -> None:
    frames: list[Frame] = []

    def hook(message: Message) -> None:
        if isinstance(message, Frame):
            frames.append(message)

    store = HeldStore(fleet())
    app = RgtApp(store, themes=THEMES)
    async with app.run_test(size=(120, 40), message_hook=hook) as pilot:
        await until(pilot, lambda: store.publish is not None)
        await pilot.pause(0.1)
        frames.clear()
        for util in range(50):
            store.replace(with_util(fleet(), "ablate-02", util))
        await pilot.pause(0.1)
        assert len(frames) == 1
        assert " 49 " in roster(app).text


async def test_a_real_store_reaches_the_screen() -> None:
    store = Store(clock=lambda: NOW, frame_s=0.01)
    async with running(FleetSnapshot(), store=store) as (app, pilot):
        snapshot = fleet()
        box = snapshot.boxes[0]
        await store.put(FleetChanged((box.instance,), (snapshot.runs[0].spec,)))
        await store.put(LinkChanged(box.name, box.link))
        assert box.telemetry is not None
        await store.put(TelemetryTaken(box.name, box.telemetry))
        await until(pilot, lambda: "▲ inodes 96%" in roster(app).text)


# -- partial repaint -------------------------------------------------------------------------------------

_SEQUENCE = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[[\d;]*m|([^\x1b]+)")


def drawn(written: str, rows: list[list[str]]) -> None:
    """Apply cursor moves and text to a grid of single-width characters."""
    x = y = 0
    for match in _SEQUENCE.finditer(written):
        if match[1]:
            y, x = int(match[1]) - 1, int(match[2]) - 1
        elif match[3]:
            for char in match[3]:
                rows[y][x] = char
                x += 1


async def test_a_partial_repaint_writes_little_and_leaves_the_right_picture() -> None:
    async with running(fleet()) as (app, pilot):
        grid = [list(row) for row in picture(app)]
        written: list[str] = []
        display = app._display

        def catch(screen: Any, renderable: Any) -> None:
            if isinstance(renderable, SparingUpdate) or hasattr(renderable, "spans"):
                update = SparingUpdate(renderable.chops, renderable.spans, renderable.chop_ends)
                written.append(update.render_segments(app.console))
            display(screen, renderable)

        app._display = catch  # type: ignore[method-assign]
        for util in (42, 7, 88):
            held(app).replace(with_util(fleet(), "ablate-02", util))
            await pilot.pause(0.1)
        assert written
        for text in written:
            drawn(text, grid)
        assert ["".join(row) for row in grid] == picture(app)
        assert sum(map(len, written)) < 400


# -- failures --------------------------------------------------------------------------------------------


async def test_a_failed_action_is_told_and_the_app_runs_on() -> None:
    async with running(fleet(), store=Store(clock=lambda: NOW, frame_s=0.01)) as (app, pilot):

        def broken() -> None:
            raise ValueError("[/b] \x1b]52;c;x\x07 oops")

        def refused() -> None:
            raise Failure("The disk is full.", do="Free some.")

        app.screen.action_probe = broken  # type: ignore[attr-defined]
        app.screen.action_mark = refused  # type: ignore[attr-defined]
        await pilot.press("r", "space")
        await until(pilot, lambda: len(said(app)) == 2)
        assert said(app)[0].startswith("probe failed: ValueError: [/b]")
        assert said(app)[0].isprintable()
        assert said(app)[1] == "The disk is full. Free some."
        assert len(app.faults) == 1
        app.faults.clear()
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))


async def test_a_failed_start_is_told() -> None:
    async def start(_: RgtApp) -> None:
        raise Failure("fleet.toml:3: no such key.")

    async with running(fleet(), store=Store(clock=lambda: NOW, frame_s=0.01), start=start) as (app, pilot):
        await until(pilot, lambda: "fleet.toml:3: no such key." in said(app))


async def test_a_bad_picture_does_not_end_the_watch() -> None:
    async with running(fleet()) as (app, pilot):

        def broken(_snapshot: FleetSnapshot, _runs: frozenset[str]) -> None:
            raise KeyError("x")

        good = app.screen.apply  # type: ignore[attr-defined]
        app.screen.apply = broken  # type: ignore[attr-defined]
        held(app).replace(with_util(fleet(), "ablate-02", 42))
        await pilot.pause(0.1)
        assert len(app.faults) == 1
        app.faults.clear()
        app.screen.apply = good  # type: ignore[attr-defined]
        held(app).replace(with_util(fleet(), "ablate-02", 43))
        await until(pilot, lambda: " 43 " in roster(app).text)


async def test_notices_are_shown_once_and_never_as_markup() -> None:
    async with running(fleet()) as (app, pilot):
        notices: tuple[Notice, ...] = ()
        for n, name in enumerate(HOSTILE_NAMES):
            notices = (*notices[-3:], Notice(safe(f"{n}: {name}"), "danger"))
            held(app).replace(replace(fleet(), notices=notices, version=n + 2))
            await pilot.pause()
            assert len(said(app)) == 1
            assert all(row.isprintable() for row in picture(app))
            app.clear_notifications()


async def test_many_messages_at_once_are_one_toast_and_a_list() -> None:
    async with running(fleet()) as (app, pilot):
        few = tuple(Notice(safe(f"fleet.toml:{n}: no such key."), "attention") for n in range(2))
        many = (*few, *(Notice(safe(f"key {n} is gone"), "danger" if n == 7 else "info") for n in range(10)))
        held(app).replace(replace(fleet(), notices=few, version=2))
        await until(pilot, lambda: len(said(app)) == 2)
        held(app).replace(replace(fleet(), notices=many, version=3))
        await until(pilot, lambda: said(app) == ["12 messages; M lists them. key 7 is gone"])
        await pilot.press("M")
        await until(pilot, lambda: isinstance(app.screen, MessagesScreen))
        rows = "\n".join(picture(app))
        assert all(notice.text in rows for notice in many)
        app.clear_notifications()
        held(app).replace(replace(fleet(), notices=(*many, Notice(safe("one more"))), version=4))
        await until(pilot, lambda: said(app) == ["one more"])


async def test_a_full_command_queue_is_said() -> None:
    async with running(fleet()) as (app, pilot):
        while app.store.send(ProbeNow("x")):
            pass
        assert not app.send(ProbeNow("y"))
        await pilot.pause()
        assert any("nothing was started" in text for text in said(app))


# -- leaving ---------------------------------------------------------------------------------------------


async def test_quitting_does_not_wait_for_a_hung_box() -> None:
    async def start(_: RgtApp) -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(1.5)  # a peer that does not answer the goodbye
                raise

    loop = asyncio.get_running_loop()
    async with running(fleet(), start=start) as (_, pilot):
        await pilot.press("ctrl+q")
        began = loop.time()
    assert loop.time() - began < 1.0


async def test_ctrl_c_does_not_leave() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "ctrl+q leaves rgt; your runs go on." in said(app)
        assert app.is_running


# -- views on top ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
@pytest.mark.parametrize(
    ("keys", "screen"),
    [
        (("question_mark",), HelpScreen),
        (("colon",), CommandLine),
        (("ctrl+p",), Palette),
        (("c",), CommandLogScreen),
        (("ctrl+f",), ForwardsScreen),
        (("P",), CardsScreen),
        (("a",), AdoptScreen),
        (("a", "enter"), AdoptSheet),
        (("colon", *"theme", "enter"), ThemeScreen),
    ],
)
async def test_views_open_over_hostile_names_and_close(
    size: tuple[int, int], keys: Sequence[str], screen: type
) -> None:
    async with running(hostile(), size) as (app, pilot):
        await pilot.press(*keys)
        await until(pilot, lambda: isinstance(app.screen, screen))
        await pilot.pause()
        for row in picture(app):
            assert row.isprintable()
        for _ in range(4):
            if isinstance(app.screen, FleetScreen):
                break
            await pilot.press("escape")
            await pilot.pause()
        assert isinstance(app.screen, FleetScreen)


async def test_lists_are_filtered_and_sorted_by_the_keys_of_the_fleet() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, CardsScreen))
        listed = app.screen.query_one(Picker)
        everything = len(listed.items)
        await pilot.press("s")
        assert any("sorted by free" in row for row in picture(app))
        await pilot.press("slash")
        await until(pilot, lambda: "enter filter" in picture(app)[-1])
        assert "help" not in picture(app)[-1]  # ? is a letter of what is typed
        await pilot.press(*"vlm", "enter")
        await until(pilot, lambda: 0 < len(listed.items) < everything)
        assert all("vlm" in str(item.key) for item in listed.items)
        await pilot.press("slash", *"nobody", "enter")
        await until(pilot, lambda: listed.selected is None)
        assert any("Nothing matches the filter. esc shows all." in row for row in picture(app))
        assert "copy" not in picture(app)[-1]  # there is nothing to be copied
        await pilot.press("escape")
        await until(pilot, lambda: len(listed.items) == everything)
        assert isinstance(app.screen, CardsScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))


async def test_help_lists_this_view_and_only_what_exists() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        picker = app.screen.query_one(Picker)
        text = picker.text
        first = "".join(part for part, _ in picker.items[picker.cursor].line)
        assert first.split()[0] == "enter"  # an action, no heading
        assert "Turn the sort order round." in text
        assert "forward PORT" in text
        assert "Wrap long lines." not in text
    async with running(fleet(), read_only=True, key_overrides={"sort": ("f7",)}) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        text = app.screen.query_one(Picker).text
        assert "forward PORT" not in text
        assert re.search(r"^  f7 +Sort the list", text, re.MULTILINE)


async def test_command_line_completes_and_remembers() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("colon", *"goto vlm-h", "tab")
        await until(pilot, lambda: isinstance(app.screen, CommandLine))
        assert app.screen.query_one(Input).value == "goto vlm-h100"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        await pilot.pause()
        assert roster(app).key == ("vlm-h100", "vlm-sft")
        await pilot.press("colon", *"nonsense", "enter")
        await until(pilot, lambda: "There is no command 'nonsense' here." in "\n".join(picture(app)))
        await pilot.press("escape", "colon", "up")
        await pilot.pause()
        assert app.screen.query_one(Input).value == "goto vlm-h100"


async def test_goto_a_run_opens_it_from_anywhere() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, CommandLogScreen))
        await app.perform("goto", "vlm-sft")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        assert roster(app).key == ("vlm-h100", "vlm-sft")
        assert len(app.screen_stack) == 3
        await pilot.pause(0.2)


async def test_palette_runs_what_is_chosen() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("ctrl+p", *"theme mono", "enter")
        await until(pilot, lambda: app.worn == "mono")
        assert isinstance(app.screen, FleetScreen)


@pytest.mark.parametrize("theme", sorted(THEMES))
async def test_every_theme_draws(theme: str) -> None:
    async with running(fleet(), theme=theme) as (app, _):
        assert app.worn == theme
        row = roster(app).render_line(1)
        plain = roster(app).render_line(2)
        assert [s.style for s in row] != [s.style for s in plain]  # the selected row is told apart


async def test_trying_a_theme_and_taking_it_back() -> None:
    async with running(fleet()) as (app, pilot):
        await app.perform("theme")
        await until(pilot, lambda: isinstance(app.screen, ThemeScreen))
        await pilot.press("G")
        await until(pilot, lambda: app.worn != "dark")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        assert app.worn == "dark"
        await app.perform("theme", "no-such")
        assert app.worn == "dark"


async def test_a_chosen_theme_is_written_down_and_a_tried_one_is_not() -> None:
    kept: list[str] = []
    async with running(fleet(), save_theme=kept.append) as (app, pilot):
        await app.perform("theme", "light")
        await until(pilot, lambda: kept == ["light"])
        await app.perform("theme")
        await until(pilot, lambda: isinstance(app.screen, ThemeScreen))
        await pilot.press("g")
        await until(pilot, lambda: app.worn != "light")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        assert (app.worn, kept) == ("light", ["light"])
        await app.perform("theme")
        await until(pilot, lambda: isinstance(app.screen, ThemeScreen))
        await pilot.press("g", "enter")
        await until(pilot, lambda: len(kept) == 2)
        assert kept == ["light", app.worn]


async def test_a_theme_that_cannot_be_written_down_is_worn_and_the_reason_told() -> None:
    def refuse(_: str) -> None:
        raise Failure("fleet.toml:3: is not TOML.")

    async with running(fleet(), store=Store(clock=lambda: NOW, frame_s=0.01), save_theme=refuse) as (
        app,
        pilot,
    ):
        await app.perform("theme", "light")
        await until(pilot, lambda: "fleet.toml:3: is not TOML." in said(app))
        assert app.worn == "light"


async def test_an_edited_theme_is_worn_at_once() -> None:
    async with running(fleet()) as (app, pilot):
        before = app.current_theme.background
        edited = replace(THEMES["dark"], background="#000080")
        app.take_themes({"dark": edited, "mine": replace(THEMES["light"], name="mine")})
        await pilot.pause()
        assert app.current_theme.background == "#000080" != before
        assert "mine" in app.theme_names
        app.take_themes({"dark": edited})
        assert app.theme == "rgt-dark-1"  # nothing changed, so nothing is drawn anew


async def test_the_colours_of_a_log_are_the_themes() -> None:
    async with running(fleet()) as (app, _):
        for name in ("dark", "light"):
            app.wear(name)
            assert app.ansi_theme.ansi_colors[1].hex == THEMES[name].sixteen["red"]


async def test_forwarding() -> None:
    async with running(fleet()) as (app, pilot):
        await app.perform("forward", "6006 16006")
        assert held(app).sent() == [OpenForward("ablate-01", 6006, 16006)]
        for bad in ("0", "70000", "a", "1 2 3", "６００６"):
            await app.perform("forward", bad)
        assert held(app).sent() == []
        await pilot.press("ctrl+f")
        await until(pilot, lambda: isinstance(app.screen, ForwardsScreen))
        assert "http://127.0.0.1:16006" in app.screen.query_one(Picker).text
        await pilot.press("x")
        assert held(app).sent() == [CloseForward("vlm-h100", 6006)]


async def test_adopting_a_run() -> None:
    async with running(hostile()) as (app, pilot):
        await app.perform("goto", HOSTILE_NAMES[2])
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AdoptScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AdoptSheet))
        name, log = app.screen.query(Input)
        assert log.value == HOSTILE_NAMES[2]
        name.value = "bad name"
        await pilot.press("enter")
        await pilot.pause()
        assert held(app).sent() == []
        name.value = "resumed"
        log.value = "/root/train.log"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        (command,) = held(app).sent()
        assert isinstance(command, AdoptRun)
        assert (command.spec.name, command.spec.box) == ("resumed", HOSTILE_NAMES[2])
        assert (command.spec.log, command.spec.pid, command.spec.pid_start) == ("/root/train.log", 5, 6)
        assert command.spec.boot_id == "b00t"


async def test_a_pasted_password_is_never_shown() -> None:
    saved: list[tuple[str, str]] = []

    def preview(text: str) -> Sequence[tuple[str, str]]:
        if "ssh" not in text:
            raise Failure("That is no ssh command.", do="Paste what the console shows.")
        return [("host", "connect.west.example.com"), ("port", "34567")]

    async def save(text: str, name: str) -> str:
        saved.append((text, name))
        return f"{name} was added."

    pasted = "ssh -p 34567 root@connect.west.example.com\npassword: hunter2\n"
    async with running(fleet(), add_box=AddBox(preview, save)) as (app, pilot):
        await pilot.press("A")
        await until(pilot, lambda: isinstance(app.screen, AddSheet))
        await pilot.press(*"nothing", "enter")
        await until(pilot, lambda: "That is no ssh command." in "\n".join(picture(app)))

        app.screen.query_one("PasteInput").post_message(Paste(pasted))
        await until(pilot, lambda: "connect.west.example.com" in "\n".join(picture(app)))
        assert "hunter2" not in "\n".join(picture(app))
        await pilot.press(*"new-box", "enter")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        assert saved == [(pasted, "new-box")]
        assert not [text for text in said(app) if "hunter2" in text]


async def test_a_paste_that_comes_as_keys_is_one_paste() -> None:
    """GNU screen and old terminals do not mark a paste: its second line must not be typed into the name."""
    seen: list[str] = []

    def preview(text: str) -> Sequence[tuple[str, str]]:
        seen.append(text)
        return [("host", "h"), ("name", "proposed")]

    async def save(text: str, name: str) -> str:
        if name == "taken":
            raise Failure("taken is already taken.")
        return f"{name} was added."

    async with running(fleet(), add_box=AddBox(preview, save)) as (app, pilot):
        await pilot.press("A")
        await until(pilot, lambda: isinstance(app.screen, AddSheet))
        field = app.screen.query_one("PasteInput")
        for key in [*"ssh root@h", "enter", *"pass hunter2", "enter"]:
            field.post_message(Key(key, key if len(key) == 1 else "\r"))
        await until(pilot, lambda: bool(seen))
        assert seen == ["ssh root@h\npass hunter2\n"]
        await until(pilot, lambda: "proposed" in "\n".join(picture(app)))
        assert "hunter2" not in "\n".join(picture(app))
        await pilot.press(*"taken", "enter")
        await until(pilot, lambda: "taken is already taken." in "\n".join(picture(app)))
        assert "proposed" not in "\n".join(picture(app))
        await pilot.press(*"-2", "enter")
        await until(pilot, lambda: "taken-2 was added." in said(app))


async def test_the_same_sentence_does_not_pile_up() -> None:
    async with running(fleet()) as (app, pilot):
        for _ in range(3):
            app.say("This is the first view.")
            await pilot.pause()
        app.say("Another one.")
        await pilot.pause()
        assert said(app) == ["Another one."]  # what weighs nothing gives way


async def test_command_log_follows_its_end_until_the_cursor_leaves_it() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, CommandLogScreen))
        picker = app.screen.query_one(Picker)
        await until(pilot, lambda: picker.cursor == len(picker.items) - 1)
        more = replace(fleet().commands[0], started_at=NOW)
        held(app).replace(replace(fleet(), commands=(*fleet().commands, more), version=3))
        await until(pilot, lambda: len(picker.items) == 5)
        assert picker.cursor == 4
        await pilot.press("g")
        again = replace(more, started_at=NOW + 1)
        held(app).replace(replace(fleet(), commands=(*fleet().commands, more, again), version=4))
        await until(pilot, lambda: len(picker.items) == 6)
        assert picker.cursor == 0


async def test_too_small_a_pane_says_so_and_recovers() -> None:
    async with running(fleet(), (39, 15)) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, TooSmallScreen))
        assert "40x10" in "\n".join(picture(app))
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        for size in ((1, 1), (20, 5), (300, 90), (60, 15)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.05)
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))


async def test_ages_are_judged_again_without_any_news(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [NOW]
    store = HeldStore(fleet())
    store.clock = lambda: now[0]
    async with running(fleet(), store=store) as (app, pilot):
        assert "live" in roster(app).text
        now[0] += 600
        app._frames.ask()
        await until(pilot, lambda: "live" not in roster(app).text)
        assert "? unknown 10m" in roster(app).text


def test_where_copies_go_is_told(tmp_path: Path) -> None:
    app = RgtApp(HeldStore(fleet()), themes=THEMES, environ={}, state=tmp_path)
    assert str(tmp_path / "copied.txt") in app.copy_text("x")
