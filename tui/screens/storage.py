"""The recovery ladder of a full file system: shown, copied, or planned to be carried out."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult

from tui.model.command import SurveyStorage
from tui.model.reclaim import plan_of
from tui.model.snapshot import FleetSnapshot
from tui.model.storage import Ladder, Reclaimable
from tui.screens.view import View
from tui.widgets.chooser import Chooser, Entry
from tui.widgets.footer import Footer, Verb
from tui.widgets.rule import Rule
from tui.widgets.storage_rows import storage_entries, taken


class StorageScreen(View):
    """What can be freed on one mount. Nothing goes from here: `R` opens a plan, `y` copies a command."""

    VIEW = "storage"
    AUTO_FOCUS = "Chooser"
    TITLE: ClassVar[str | None] = "storage"

    def __init__(self, box: str) -> None:
        super().__init__()
        self.box_name = box
        self._marks: frozenset[str] = frozenset()

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
            self._marks &= {str(one.path) for one in made.reclaim}
            chooser.show_entries(storage_entries(made, width, self.host.glyphs, self._marks))
            right = taken(made, self.host.clock(), self.host.period_s)
        title = f"storage: {self.box_name} {made.mount}" if made is not None else f"storage: {self.box_name}"
        self.query_one("#top", Rule).label(title, [(right, "dim")])
        copies = [Verb(v.key, "copy its command", 2) for v in self.verbs("copy")]
        marked = f"plan for {len(self._marks)} marked" if self._marks else "plan to remove"
        plans = [Verb(v.key, marked, 1) for v in self.verbs("reclaim")]
        marks = [Verb(v.key, v.label, 3) for v in self.verbs("mark")]
        verbs = [*plans, *copies, *marks, *self.verbs("probe", "shell", "back")]
        self.query_one(Footer).offer(verbs, self.verbs("help"))

    def action_open(self) -> None:
        """Copy the selected command."""
        self.action_copy()

    @property
    def _selected(self) -> Reclaimable | None:
        key, made = self.query_one(Chooser).selected, self.ladder
        known = made is not None and isinstance(key, tuple) and key[1] < len(made.reclaim)
        return made.reclaim[key[1]] if known and made is not None and isinstance(key, tuple) else None

    def action_copy(self) -> None:
        """Copy what removes the selected or the marked paths, and nothing when they have changed since."""
        made, one = self.ladder, self._selected
        if made is None or one is None:
            self.host.say("Nothing here may go, so there is no command to copy.")
            return
        chosen = [each for each in made.reclaim if each.path in self._marks] or [one]
        text = "\n".join(each.command for each in chosen)
        many = f"{len(chosen)} commands: " if len(chosen) > 1 else ""
        self.host.say(f"{many}{self.host.copy_text(text)} rgt has removed nothing.")

    def action_mark(self) -> None:
        """Mark the selected place, or take its mark away."""
        if (one := self._selected) is None:
            self.host.say("Nothing here may go, so there is nothing to mark.")
            return
        self._marks ^= {str(one.path)}
        self.query_one(Chooser).action_cursor_down()
        self._draw()

    def action_reclaim(self) -> None:
        """Open the plan to remove what is marked, or all that comes back; or look how the last one goes."""
        from tui.screens.reclaim import ReclaimScreen

        box, made = self.host.snapshot.box(self.box_name), self.ladder
        if box is not None and box.reclaim is not None and box.reclaim.working:
            self.app.push_screen(ReclaimScreen(box.reclaim.plan))
        elif made is None:
            self.host.say("No survey was taken yet.", "attention")
        else:
            self.app.push_screen(ReclaimScreen(plan_of(made, self._marks or None)))

    def action_probe(self) -> None:
        """Survey again."""
        made = self.ladder
        if made is not None and self.host.send(SurveyStorage(self.box_name, None, str(made.mount))):
            self.host.say("Surveying again; it may take a minute.")
