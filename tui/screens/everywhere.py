"""What can be done in every view: the actions of the registry that no view claims for itself."""

from __future__ import annotations

from typing import Literal, cast

from textual.app import App

from tui.actions import Action
from tui.model.command import OpenForward, ProbeNow, ReconnectNow
from tui.model.failure import Failure
from tui.model.text import safe
from tui.screens.command_words import Words, verb_words, words_of
from tui.screens.fleet import FleetScreen
from tui.screens.host import Host
from tui.screens.keys import keys_of, shown


class Everywhere:
    """The actions of the app itself. Views that are opened seldom are imported when they are."""

    def __init__(self, app: App[int]) -> None:
        self._app = app
        self._host = cast("Host", app)

    def here(self) -> tuple[str, str | None]:
        """Box and run that an action means. Raises Failure where there is none."""
        for screen in reversed(self._app.screen_stack):
            ask = getattr(screen, "here", None)
            found = ask() if callable(ask) else None
            if found is not None:
                return (found[0], found[1])
        raise Failure("No box is selected.", do="Select one first.")

    def action_help(self) -> None:
        from tui.screens.help import HelpScreen

        view = self._view()
        if view != HelpScreen.VIEW:
            self._app.push_screen(HelpScreen(view))

    def _view(self) -> str:
        """Name of the view in front, below any sheet."""
        for screen in reversed(self._app.screen_stack):
            view = getattr(screen, "VIEW", "")
            if view:
                return str(view)
        return "fleet"

    def action_command(self, prefill: str = "") -> None:
        from tui.screens.command_line import CommandLine

        words = self._words()
        self._app.push_screen(CommandLine(words, prefill), self._chosen)

    def _words(self) -> Words:
        host = self._host
        return words_of(self._view(), host.snapshot, host.theme_names, read_only=host.read_only)

    def action_palette(self) -> None:
        from tui.screens.palette import Palette, entries

        words = self._words()
        keys = {
            a.id: shown(found[0], ascii_only=self._host.glyphs.name == "ascii")
            for a in words.actions
            if (found := keys_of(a, self._host.key_overrides))
        }
        self._app.push_screen(Palette(entries(words, keys)), self._chosen)

    async def _chosen(self, answer: tuple[str, str | None] | None) -> None:
        if answer is not None:
            await self._host.perform(*answer)

    def action_commands(self) -> None:
        from tui.screens.command_log import CommandLogScreen

        if not isinstance(self._app.screen, CommandLogScreen):
            self._app.push_screen(CommandLogScreen())

    def action_theme(self, name: str = "") -> None:
        from tui.screens.theme import ThemeScreen

        if name:
            self._host.keep_theme(name)
        else:
            self._app.push_screen(ThemeScreen(self._host.worn))

    def action_copy(self) -> None:
        self._host.say("There is nothing here to copy.")

    def action_goto(self, name: str = "") -> None:
        """Open a run by its name, or put the cursor on a box."""
        if not name:
            self.action_command("goto ")
            return
        run = self._host.snapshot.run(name)
        if self._host.snapshot.box(name) is None and run is None:
            raise Failure(f"There is no box or run named {safe(name)!r}.")
        while self._app.screen_stack[2:]:
            self._app.pop_screen()
        fleet = self._app.screen
        if run is not None:
            self._host.open_run(run.spec.box, run.name)
        if isinstance(fleet, FleetScreen):
            fleet.go_to(run.spec.box if run else name, run.name if run else None)

    def action_triage(self, name: str = "") -> None:
        """What is wrong with the selected run, or with one by name; a box stands for its only run."""
        from tui.screens.triage import TriageScreen

        snapshot = self._host.snapshot
        box, run = self.here() if not name else (name, None)
        if name and (named := snapshot.run(name)) is not None:
            box, run = named.spec.box, named.name
        elif snapshot.box(box) is None:
            raise Failure(f"There is no box or run named {safe(box)!r}.")
        if run is None and len(runs := snapshot.runs_on(box)) == 1:
            run = runs[0].name
        self._app.push_screen(TriageScreen(box, run))

    def action_probe(self) -> None:
        box, _ = self.here()
        if self._host.send(ProbeNow(box)):
            self._host.say(f"Probing {box} now.")

    def action_reconnect(self) -> None:
        box, _ = self.here()
        if self._host.send(ReconnectNow(box)):
            self._host.say(f"{box}: connecting now.")

    def action_adopt(self) -> None:
        from tui.screens.adopt import AdoptScreen

        self._app.push_screen(AdoptScreen(self.here()[0]))

    def action_add(self) -> None:
        from tui.screens.add import AddSheet

        if self._host.add_box is None:
            raise Failure("Boxes can't be added here.", do="Use rgt add in a shell.")
        self._app.push_screen(AddSheet(self._host.add_box))

    def action_messages(self) -> None:
        from tui.screens.messages import MessagesScreen

        if not isinstance(self._app.screen, MessagesScreen):
            self._app.push_screen(MessagesScreen())

    def action_forwards(self) -> None:
        from tui.screens.forwards import ForwardsScreen

        self._app.push_screen(ForwardsScreen())

    def action_cards(self) -> None:
        from tui.screens.cards import CardsScreen

        self._app.push_screen(CardsScreen())

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
        if self._host.send(OpenForward(box, ports[0], ports[1] if len(ports) > 1 else 0)):
            self._host.say(
                f"Forwarding port {ports[0]} of {box}; {self._host.way_to('forwards')} lists the ports."
            )

    def action_teardown(self, name: str = "") -> None:
        """Open the wizard that ends a box, or come back to it. Nothing is destroyed by that."""
        box, run = self._meant(name)
        if run is None:
            raise Failure(
                f"No run on {box} is watched, so nothing tells what must survive.",
                do="Watch one first, or name the run: :teardown RUN.",
            )
        self._open_end(box, run, "destroy")

    def action_setup(self, name: str = "") -> None:
        """Open the guided setup, or come back to it."""
        from tui.screens.setup import SetupScreen

        self._app.push_screen(SetupScreen(name))

    def action_launch(self, job: str = "") -> None:
        """Open the launch under way, or begin one on the selected box. Nothing is started by that."""
        from tui.screens.launch import LaunchScreen

        try:
            box: str | None = self.here()[0]
        except Failure:
            box = None  # it is only a proposal
        self._app.push_screen(LaunchScreen(box, job))

    def action_matrix(self, queue: str = "") -> None:
        """Open the cells of a queue, by default of the newest one."""
        from tui.screens.matrix import MatrixScreen

        self._app.push_screen(MatrixScreen(queue))

    def action_handbook(self, name: str = "") -> None:
        """Open the page of the selected run, or of one by name, which need not be watched."""
        from tui.screens.handbook import HandbookScreen

        if name and self._host.snapshot.box(name) is None:
            self._app.push_screen(HandbookScreen(name))
            return
        box, run = self._meant(name)
        if run is None:
            raise Failure(f"No run on {box} is watched.", do="Name the run: :handbook RUN.")
        self._app.push_screen(HandbookScreen(run))

    def verb_words(self, action: Action, text: str) -> list[str]:
        """The words of the verb that an action hands the terminal to, about the selected. Raises Failure."""
        about = any(word.startswith("{") for word in action.runs)
        return verb_words(action, *(self._meant("") if about else ("", None)), text)

    def action_stop(self, name: str = "") -> None:
        """Open the plan of a stop. Nothing is stopped by that."""
        self._open_end(*self._meant(name), "stop")

    def _meant(self, name: str) -> tuple[str, str | None]:
        """The box and run that a name means, or those under the cursor. Raises Failure."""
        snapshot = self._host.snapshot
        named = snapshot.run(name) if name else None
        if named is not None:
            return named.spec.box, named.name
        if name and snapshot.box(name) is None:
            raise Failure(f"There is no box or run named {safe(name)!r}.")
        box, run = (name, None) if name else self.here()
        runs = snapshot.runs_on(box)
        return box, run or (runs[0].name if len(runs) == 1 else None)

    def _open_end(self, box: str, run: str | None, verb: Literal["stop", "destroy"]) -> None:
        from tui.screens.teardown import TeardownScreen

        self._app.push_screen(TeardownScreen(box, run, verb))
