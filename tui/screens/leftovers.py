"""What a teardown would destroy beside the roster: groups to be kept or given up, one or many at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tui.model.teardown import LeftoverView, StepView
from tui.screens.host import host_of
from tui.widgets import teardown_rows as rows
from tui.widgets.lines import Line, Span
from tui.widgets.picker import Item, Picker


class Leftovers(Picker):
    """The groups, checkpoint-like ones first as they come; some of them may be marked."""

    def __init__(self) -> None:
        super().__init__(id="groups")
        self._groups: tuple[LeftoverView, ...] = ()
        self._marks: frozenset[str] = frozenset()

    def show_groups(
        self, step: StepView, groups: tuple[LeftoverView, ...], width: int, room: int
    ) -> tuple[StepView, list[Line]]:
        """Draw the groups.

        Args:
            step: the roster's.
            room: rows that the list may take.

        Returns:
            The step without what the list says already, and what is told of the selected group.
        """
        self._groups = groups
        glyphs = host_of(self).glyphs
        items = [
            Item(one.group, rows.leftover_line(one, width - 1, glyphs, marked=one.group in self._marks))
            for one in groups
        ]
        self.styles.height = max(3, min(len(items) + 1, room))
        self.show_items(items, rows.leftover_head(width - 1))
        others = replace(step, refusals=tuple(t for t in step.refusals if t.code != "unclassified"))
        return others, rows.leftover_detail(self.chosen, width) if self.chosen else []

    @property
    def chosen(self) -> LeftoverView | None:
        """The selected group."""
        return next((one for one in self._groups if one.group == self.selected), None)

    @property
    def meant(self) -> tuple[LeftoverView, ...]:
        """What a decision is about: the marked groups, else the selected one."""
        marked = tuple(one for one in self._groups if one.group in self._marks)
        return marked or ((self.chosen,) if self.chosen else ())

    @property
    def counted(self) -> Sequence[Span]:
        """How many are still to be decided."""
        open_ = sum(not one.decision for one in self._groups)
        return [(f"{open_} to decide", "attention")] if open_ else [("all decided", "dim")]

    def mark(self) -> None:
        """Mark the selected group, or take its mark away."""
        if self.chosen is not None:
            self._marks ^= {self.chosen.group}
            self.action_cursor_down()

    def decided(self, groups: Collection[str]) -> None:
        """Put the cursor on the next group that is still to be decided; nothing is marked any more."""
        self._marks = frozenset()
        names = [one.group for one in self._groups]
        open_ = [one.group for one in self._groups if not one.decision and one.group not in groups]
        here = names.index(self.selected) if self.selected in names else 0
        later = [one for one in open_ if names.index(one) > here]
        if open_:
            self.select((later or open_)[0])
