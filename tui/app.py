"""The Textual app: wires store, workers and screens together. No logic of its own.

Imports only what the first frame needs: names. The store, the views and `start` are loaded after it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Event, Key, Paste, Resize
from textual.geometry import Size
from textual.screen import Screen

from tui.acting import Acting
from tui.actions import BY_ID
from tui.frames import Frames
from tui.guard import Guard
from tui.key_order import AT_ONCE, KeyOrder, Passed
from tui.leaving import LEAVE_S, heed_signals
from tui.lending import Lending
from tui.model.failure import Exit, Failure
from tui.model.text import LogText, SafeText, safe
from tui.screens.first import FirstScreen
from tui.screens.keys import keys_of, shown
from tui.screens.theme_css import defaults
from tui.sparing import sparing
from tui.toasts import Toasts
from tui.wardrobe import Wardrobe
from tui.widgets.glyphs import UNICODE, Glyphs

if TYPE_CHECKING:
    from tui.bell import Bell
    from tui.fleet.store import Store
    from tui.fleet.themes import ThemeSpec
    from tui.model.command import Command
    from tui.model.snapshot import FleetSnapshot
    from tui.screens.everywhere import Everywhere
    from tui.screens.host import AddBox


class RgtApp(App[int]):
    """rgt on screen.

    Args:
        store: holds the snapshot and takes commands; or what makes it, called after the first frame.
        read_only: removes every action that changes something.
        themes: by name; `theme` names the one to wear.
        first_look: names and platforms of the boxes, drawn before anything else is loaded.
        start: awaited after the first frame; loads and runs the workers. It is cancelled at the end.
        key_overrides: keys by action id, from the operator's keymap.
        shell_argv: the ssh command of a box, for `!`. Raises Failure.
        rgt: how a verb is run on this terminal.
        save_theme: writes the name of a theme that was chosen for good; run beside the loop. Raises Failure.
        add_box: how a pasted ssh command becomes a box; None where boxes can't be added.
        state: folder for what must be written, such as a copy that no clipboard took.
        environ: decides the way to the clipboard; the process's own by default.
        bell: the terminal rings and notifies when a run ends or something wants the operator.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["app.tcss", "screens/fleet.tcss"]
    ENABLE_COMMAND_PALETTE = False
    NOTIFICATION_TIMEOUT = 6.0
    TITLE = "rgt"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", show=False, priority=True),
        Binding("ctrl+c", "interrupted", show=False, system=True),
    ]

    def __init__(
        self,
        store: Store | Callable[[], Store],
        *,
        read_only: bool = False,
        themes: Mapping[str, ThemeSpec] | None = None,
        theme: str = "dark",
        glyphs: Glyphs = UNICODE,
        first_look: Sequence[tuple[str, str]] = (),
        start: Callable[[RgtApp], Awaitable[None]] | None = None,
        key_overrides: Mapping[str, tuple[str, ...]] | None = None,
        shell_argv: Callable[[str], list[str]] | None = None,
        rgt: Sequence[str] = (sys.executable, "-m", "tui.cli"),
        add_box: AddBox | None = None,
        save_theme: Callable[[str], None] | None = None,
        state: Path | None = None,
        environ: Mapping[str, str] | None = None,
        bell: bool = False,
    ) -> None:
        super().__init__()
        self._guard = Guard(self._report)
        self._lending = Lending(self, self._leave, lambda: self._frames.ask())
        self._frames = Frames(self, self._guard, self._lending, lambda: self.snapshot)
        self._keys = KeyOrder(self)
        self._toasts = Toasts(self, lambda: self.way_to("messages"))
        self._bell: Bell | None = None
        self._rings = bell
        self._given_store = store
        self.read_only = read_only
        self.glyphs = glyphs
        self.key_overrides = dict(key_overrides or {})
        self.shell_argv = shell_argv
        self.add_box = add_box
        self.save_theme = save_theme
        self.period_s = 2.0
        self.typed: list[str] = []
        self.store: Store
        self._first_look = tuple(first_look)
        self._start = start
        self._state = state or Path.home()
        self._environ = os.environ if environ is None else environ
        self._everywhere: Everywhere | None = None
        self._acting = Acting(
            self,
            self._guard,
            self._lending,
            say=self.say,
            everywhere=lambda: self._everywhere,
            rgt=rgt,
            read_only=read_only,
        )
        self.animation_level = "none"
        self.set_class(glyphs.name == "ascii", "-ascii")
        self._wardrobe = Wardrobe(self, themes)
        self._wardrobe.open(theme)

    # -- what screens ask for -----------------------------------------------------------------------

    @property
    def clock(self) -> Callable[[], float]:
        return self.store.clock

    @property
    def snapshot(self) -> FleetSnapshot:
        """The newest picture; names alone until the fleet file has been read."""
        stored = self.store.snapshot
        return stored if stored.started or stored.boxes else self._names

    @property
    def faults(self) -> deque[str]:
        """The newest errors of ours, whole, for a bug report."""
        return self._guard.faults

    @property
    def keys_wait(self) -> bool:
        """Whether a key is under way or held until the one before it is done."""
        return self._keys.busy

    @property
    def theme_names(self) -> Sequence[str]:
        return self._wardrobe.names

    @property
    def worn(self) -> str:
        """Name of the theme that is worn."""
        return self._wardrobe.worn

    def wear(self, name: str) -> None:
        """Change the theme. Raises Failure for one that does not exist."""
        self._wardrobe.wear(name)

    def keep_theme(self, name: str) -> None:
        """Wear a theme, and write down that it is worn from now on. Raises Failure."""
        self.wear(name)
        if self.save_theme is not None:
            self._guard.spawn(asyncio.to_thread(self.save_theme, name), "theme")

    def take_themes(self, themes: Mapping[str, ThemeSpec]) -> None:
        """Put edited theme files to use at once. One that can no longer be read stays as it was."""
        self._wardrobe.take(themes)

    def send(self, command: Command) -> bool:
        """Hand a command to the workers; says so when they are too far behind to take it."""
        taken = self.store.send(command)
        if not taken:
            self.say("Too much is waiting to be done already; nothing was started.", "attention")
        return taken

    def say(self, text: str, level: str = "info") -> None:
        """Show one sentence for a few seconds. Levels: ``info``, ``attention``, ``danger``."""
        self._toasts.say(text, level)

    def push_screen(self, *args: Any, **kwargs: Any) -> Any:
        """Show another view. What was said of the one before is read by now, and would cover this one."""
        self._toasts.hush()
        return super().push_screen(*args, **kwargs)

    def copy_text(self, text: str) -> SafeText:
        """Copy, and tell in one sentence which way it went."""
        from tui import terminal

        return terminal.copy(text, environ=self._environ, folder=self._state, osc52=self.copy_to_clipboard)

    def save_lines(self, lines: Sequence[str], path: str, name: str) -> SafeText:
        """Save lines into a file on this computer, and tell where. Raises Failure."""
        from tui.saving import save_lines

        return save_lines(lines, path, name=name, folder=self._state)

    def log_tail(self, run: str, count: int) -> Sequence[LogText]:
        """At most so many of the newest lines of a run's log that are in memory, the unfinished one too."""
        buffer = self.store.log(run)
        newest = [*buffer.lines[-max(1, count) :], *([buffer.partial] if buffer.partial else [])]
        return newest[-count:] if count > 0 else []

    def open_run(self, box: str, run: str | None, *, zoom: bool = False, line: int | None = None) -> None:
        """Show a run, or a box without one; `line` (from 1) puts the cursor on a line of its log."""
        from tui.model.command import ViewAt
        from tui.screens.run import RunScreen

        self.send(ViewAt(box))
        screen = RunScreen(self.store, run, box, read_only=self.read_only)

        def left(_: None) -> None:
            self.send(ViewAt(None))

        self.push_screen(screen, left)
        if zoom or line is not None:
            self.call_after_refresh(self.perform, "log")
        if line is not None:
            self.call_after_refresh(screen.show_line, line - 1)

    def open_triage(self, name: str = "") -> None:
        """Show what is wrong with a run or box by name, or with the selected one. Raises Failure."""
        if self._everywhere is not None:
            self._everywhere.action_triage(name)

    # -- life ---------------------------------------------------------------------------------------

    def get_driver_class(self) -> type[Driver]:
        from textual.drivers.linux_driver import LinuxDriver

        from tui.driver import TerminalDriver

        chosen = super().get_driver_class()  # another one where the environment says so
        return TerminalDriver if chosen is LinuxDriver else chosen

    def get_default_screen(self) -> Screen[Any]:
        return FirstScreen(self._first_look, self.glyphs)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {**super().get_theme_variable_defaults(), **defaults()}

    def on_mount(self) -> None:
        if not self.is_headless:
            heed_signals(self._on_signal)
        self.call_after_refresh(self._begin)

    async def _begin(self) -> None:
        """After the first frame: load the views, draw what comes in, and start what makes it come in."""
        from tui.model.instance import Instance
        from tui.model.snapshot import BoxView, FleetSnapshot
        from tui.screens.everywhere import Everywhere
        from tui.screens.fleet import FleetScreen

        self._names = FleetSnapshot(
            boxes=tuple(BoxView(Instance(name, platform, None)) for name, platform in self._first_look)
        )
        self.store = self._given_store() if callable(self._given_store) else self._given_store
        self.period_s = self.store.rules.period_s
        self._everywhere = Everywhere(self)
        fleet = FleetScreen()
        with self.batch_update():  # the view is not shown before it knows its rows: no blank frame between
            await self.push_screen(fleet)
            fleet.apply(self.snapshot, frozenset())
        self._check_room(self.size)
        self._guard.spawn(self.store.pump(self._publish), "pump")
        if self._start is not None:
            self._guard.spawn(self._start(self), "start")
        self._frames.keep_up(self.clock)

    async def on_unmount(self) -> None:
        await self._guard.end(LEAVE_S)

    def _on_signal(self, number: int) -> None:
        if not self._lending.away:
            self._leave()
        elif number != signal.SIGINT:  # that one was meant for the program that has the terminal
            self._lending.end()

    def _leave(self) -> None:
        self.exit(int(Exit.INTERRUPTED), return_code=int(Exit.INTERRUPTED))

    def _handle_exception(self, error: Exception) -> None:
        if self._exit:
            return  # a widget that was still being put up when the operator left
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """The last words of a crash: where it was, without any values of variables, which may be secret."""
        self.bell()
        words = "".join(traceback.format_exception(self._exception)) if self._exception else ""
        lines = "\n".join(safe(line) for line in words.splitlines())
        self._exit_renderables.append(f"rgt broke off. The runs on the boxes go on.\n{lines}")
        self._close_messages_no_wait()

    # -- frames -------------------------------------------------------------------------------------

    def _publish(self, snapshot: FleetSnapshot, runs: frozenset[str]) -> None:
        self._toasts.tell(snapshot.notices)
        if self._rings:
            self._ring(snapshot)
        self._frames.ask(runs)

    def _ring(self, snapshot: FleetSnapshot) -> None:
        if self._bell is None:
            from tui.bell import Bell  # the first frame does not wait for it

            self._bell = Bell(self._to_terminal, self._environ, self.clock)
        if not self._lending.away:  # whoever has the terminal is not disturbed; it is told afterwards
            self._bell.hear(snapshot)

    def _to_terminal(self, text: str) -> None:
        if self._driver is not None:
            self._driver.write(text)

    def on_frame(self) -> None:
        self._frames.draw()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, sparing(renderable))

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key | Paste) or event.is_forwarded or getattr(event, "key", "") in AT_ONCE:
            await super().on_event(event)
        elif not self._keys.hold(event):
            target = self.focused or self.screen
            if not self._lending.away:  # else it was typed ahead, for the program that has the terminal
                await super().on_event(event)
            self._keys.follow(target)

    def on_passed(self, message: Passed) -> None:
        self._keys.passed(message)

    def on_resize(self, event: Resize) -> None:
        if self._everywhere is not None:
            self._check_room(event.size)

    def _check_room(self, size: Size) -> None:
        from tui.screens.too_small import check_room

        check_room(self, size)

    # -- actions ------------------------------------------------------------------------------------

    async def action_act(self, action_id: str) -> None:
        """A key of the registry was pressed."""
        await self.perform(action_id)

    async def perform(self, action_id: str, text: str | None = None) -> None:
        """Do what the registry calls `action_id`; a failure becomes a toast, and the app runs on."""
        await self._acting.perform(action_id, text)

    def _report(self, text: str, level: str) -> None:
        from tui.model.event import Notice

        if not self.store.offer(Notice(safe(text), level)):
            self.say(text, level)

    async def action_quit(self) -> None:
        """Leave. Runs go on."""
        self.exit(int(Exit.FINE))

    def action_interrupted(self) -> None:
        """ctrl+c: too easily pressed out of habit to leave by."""
        self.say(f"{self.way_to('quit')} leaves rgt; your runs go on.")

    def way_to(self, action: str) -> str:
        """Its key, or what is typed where it has none."""
        keys = keys_of(BY_ID[action], self.key_overrides)
        return shown(keys[0]) if keys else f":{action}"

    async def action_back(self) -> None:
        """One view back; the first view stays."""
        if len(self.screen_stack) > len(("first frame", "fleet")):
            self.screen.dismiss(None)

    def action_shell(self) -> None:
        """Hand the terminal to ssh, and come back."""
        if self._everywhere is None or self.shell_argv is None:
            raise Failure("No shell can be opened here.", do="Use rgt ssh in another terminal.")
        box, _ = self._everywhere.here()
        self._guard.spawn(self._shell(box, self.shell_argv(box)), "shell")

    async def _shell(self, box: str, argv: list[str]) -> None:
        said = await self._lending.shell(box, argv)
        if said is not None:
            self.say(*said)
