"""What can be done in every view: the actions of the registry that no view claims for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import App

from tui.actions import BY_ID
from tui.model.command import Command, OpenForward, ProbeNow, ReconnectNow
from tui.model.failure import Exit, Failure
from tui.model.snapshot import FleetSnapshot
from tui.model.text import safe
from tui.screens.command_words import words_of
from tui.screens.fleet import FleetScreen
from tui.screens.host import AddBox
from tui.screens.keys import keys_of, shown
from tui.widgets.glyphs import Glyphs


class Everywhere(App[int]):
    """The actions of the app itself. Views that are opened seldom are imported when they are."""

    read_only: bool
    glyphs: Glyphs
    key_overrides: Mapping[str, tuple[str, ...]]
    add_box: AddBox | None
    worn: str

    @property
    def snapshot(self) -> FleetSnapshot:
        raise NotImplementedError

    @property
    def theme_names(self) -> Sequence[str]:
        raise NotImplementedError

    def wear(self, name: str) -> None:
        raise NotImplementedError

    def send(self, command: Command) -> bool:
        raise NotImplementedError

    def say(self, text: str, level: str = "info") -> None:
        raise NotImplementedError

    def open_run(self, box: str, run: str | None, *, zoom: bool = False) -> None:
        raise NotImplementedError

    async def perform(self, action_id: str, text: str | None = None) -> None:
        raise NotImplementedError

    def here(self) -> tuple[str, str | None]:
        """Box and run that an action means. Raises Failure where there is none."""
        for screen in reversed(self.screen_stack):
            ask = getattr(screen, "here", None)
            found = ask() if callable(ask) else None
            if found is not None:
                return (found[0], found[1])
        raise Failure("No box is selected.", do="Select one first.")

    async def action_quit(self) -> None:
        """Leave. Runs go on."""
        self.exit(int(Exit.FINE))

    def action_interrupted(self) -> None:
        """ctrl+c: too easily pressed out of habit to leave by."""
        quit_key = shown(next(iter(keys_of(BY_ID["quit"], self.key_overrides)), "ctrl+q"))
        self.say(f"{quit_key} leaves rgt; your runs go on.")

    async def action_back(self) -> None:
        """One view back; the first view stays."""
        if len(self.screen_stack) > 1:
            self.screen.dismiss(None)

    def action_help(self) -> None:
        from tui.screens.help import HelpScreen

        view = self._view()
        if view != HelpScreen.VIEW:
            self.push_screen(HelpScreen(view))

    def _view(self) -> str:
        """Name of the view in front, below any sheet."""
        for screen in reversed(self.screen_stack):
            view = getattr(screen, "VIEW", "")
            if view:
                return str(view)
        return "fleet"

    def action_command(self, prefill: str = "") -> None:
        from tui.screens.command_line import CommandLine

        words = words_of(self._view(), self.snapshot, self.theme_names, read_only=self.read_only)
        self.push_screen(CommandLine(words, prefill), self._chosen)

    def action_palette(self) -> None:
        from tui.screens.palette import Palette, entries

        words = words_of(self._view(), self.snapshot, self.theme_names, read_only=self.read_only)
        keys = {
            a.id: shown(found[0], ascii_only=self.glyphs.name == "ascii")
            for a in words.actions
            if (found := keys_of(a, self.key_overrides))
        }
        self.push_screen(Palette(entries(words, keys)), self._chosen)

    async def _chosen(self, answer: tuple[str, str | None] | None) -> None:
        if answer is not None:
            await self.perform(*answer)

    def action_commands(self) -> None:
        from tui.screens.command_log import CommandLogScreen

        if not isinstance(self.screen, CommandLogScreen):
            self.push_screen(CommandLogScreen())

    def action_theme(self, name: str = "") -> None:
        from tui.screens.theme import ThemeScreen

        if name:
            self.wear(name)
        else:
            self.push_screen(ThemeScreen(self.worn))

    def action_copy(self) -> None:
        self.say("There is nothing here to copy.")

    def action_goto(self, name: str = "") -> None:
        """Open a run by its name, or put the cursor on a box."""
        if not name:
            self.action_command("goto ")
            return
        run = self.snapshot.run(name)
        if self.snapshot.box(name) is None and run is None:
            raise Failure(f"There is no box or run named {safe(name)!r}.")
        while len(self.screen_stack) > 1:
            self.pop_screen()
        fleet = self.screen
        if run is not None:
            self.open_run(run.spec.box, run.name)
        if isinstance(fleet, FleetScreen):
            fleet.go_to(run.spec.box if run else name, run.name if run else None)

    def action_probe(self) -> None:
        box, _ = self.here()
        if self.send(ProbeNow(box)):
            self.say(f"Probing {box} now.")

    def action_reconnect(self) -> None:
        box, _ = self.here()
        if self.send(ReconnectNow(box)):
            self.say(f"{box}: connecting now.")

    def action_adopt(self) -> None:
        from tui.screens.adopt import AdoptScreen

        self.push_screen(AdoptScreen(self.here()[0]))

    def action_add(self) -> None:
        from tui.screens.add import AddSheet

        if self.add_box is None:
            raise Failure("Boxes can't be added here.", do="Use rgt add in a shell.")
        self.push_screen(AddSheet(self.add_box))

    def action_forwards(self) -> None:
        from tui.screens.forwards import ForwardsScreen

        self.push_screen(ForwardsScreen())

    def action_forward(self, text: str = "") -> None:
        """Forward a port: `6006`, or `6006 16006` for a chosen port on this computer."""
        if not text:
            self.action_command("forward ")
            return
        numbers = text.split()
        ports = [int(n) for n in numbers if n.isascii() and n.isdigit() and 0 < int(n) < 65536]
        if len(ports) != len(numbers) or len(ports) > 2:
            raise Failure(
                f"{safe(text)!r} is not a port.", do="Such as :forward 6006, or :forward 6006 16006."
            )
        box, _ = self.here()
        if self.send(OpenForward(box, ports[0], ports[1] if len(ports) > 1 else 0)):
            self.say(f"Forwarding port {ports[0]} of {box}; ctrl+f lists the ports.")
