"""The recovery ladder of a full file system: shown, copied, and carried out by the operator alone."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult

from tui.model.command import SurveyStorage
from tui.model.snapshot import FleetSnapshot
from tui.model.storage import Ladder
from tui.screens.view import View
from tui.widgets.chooser import Chooser, Entry
from tui.widgets.footer import Footer, Verb
from tui.widgets.rule import Rule
from tui.widgets.storage_rows import storage_entries, taken


class StorageScreen(View):
    """What can be freed on one mount. rgt removes nothing: each command is copied and run by hand."""

    VIEW = "storage"
    AUTO_FOCUS = "Chooser"
    TITLE: ClassVar[str | None] = "storage"

    def __init__(self, box: str) -> None:
        super().__init__()
        self.box_name = box

    def compose(self) -> ComposeResult:
        yield Rule("storage", id="top")
        yield Chooser()
        yield Footer()

    def on_resize(self) -> None:
        self._draw()

    def here(self) -> tuple[str, str | None]:
        """Box and run that an action means now."""
        return self.box_name, None

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        self._draw()

    @property
    def ladder(self) -> Ladder | None:
        """The newest survey of this box."""
        box = self.host.snapshot.box(self.box_name)
        return box.ladder if box is not None else None

    def _draw(self) -> None:
        width, made = self.size.width, self.ladder
        if not width:
            return
        chooser = self.query_one(Chooser)
        right = ""
        if made is None:
            chooser.show_entries([Entry(((("  No survey was taken yet.", "dim"),),))])
        else:
            chooser.show_entries(storage_entries(made, width, self.host.glyphs))
            right = taken(made, self.host.clock(), self.host.period_s)
        title = f"storage: {self.box_name} {made.mount}" if made is not None else f"storage: {self.box_name}"
        self.query_one("#top", Rule).label(title, [(right, "dim")])
        copies = [Verb(v.key, "copy its command", 1) for v in self.verbs("copy")]
        copies += [Verb(v.key, "copy the whole list", 2) for v in self.verbs("mark")]
        self.query_one(Footer).offer([*copies, *self.verbs("probe", "shell", "back")], self.verbs("help"))

    def action_open(self) -> None:
        """Copy the selected command."""
        self.action_copy()

    def action_copy(self) -> None:
        """Copy the command that removes the selected path, and nothing when it has changed since."""
        key, made = self.query_one(Chooser).selected, self.ladder
        if made is None or not isinstance(key, tuple) or key[1] >= len(made.reclaim):
            self.host.say("Nothing here may go, so there is no command to copy.")
            return
        self.host.say(f"{self.host.copy_text(made.reclaim[key[1]].command)} rgt itself removes nothing.")

    def action_mark(self) -> None:
        """Copy the commands of the whole allow-list, one a line."""
        made = self.ladder
        if made is None or not made.reclaim:
            self.host.say("Nothing here may go, so there is no command to copy.")
            return
        text = "\n".join(one.command for one in made.reclaim)
        self.host.say(f"{len(made.reclaim)} commands: {self.host.copy_text(text)}")

    def action_probe(self) -> None:
        """Survey again."""
        made = self.ladder
        if made is not None and self.host.send(SurveyStorage(self.box_name, None, str(made.mount))):
            self.host.say("Surveying again; it may take a minute.")
