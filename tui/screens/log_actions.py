"""What keys do with a log, from whichever pane of the view they are pressed in."""

from __future__ import annotations

from textual import on

from tui.model.command import SearchLog
from tui.model.failure import Failure
from tui.model.text import safe
from tui.screens.typed_line import TypedLine
from tui.screens.view import View
from tui.widgets.logfilter import Pattern, pattern
from tui.widgets.logview import LogView
from tui.widgets.search_list import SearchList

MOST_CONTEXT = 1000


class LogActions(View):
    """A view that holds a `LogView`, a `SearchList` and a `TypedLine`."""

    run_name: str | None = None

    @property
    def log_view(self) -> LogView:
        return self.query_one(LogView)

    @property
    def typed_line(self) -> TypedLine:
        return self.query_one(TypedLine)

    @on(TypedLine.Closed)
    def _answered(self, message: TypedLine.Closed) -> None:
        self.log_view.focus()
        self.typed_line.carry_out(message, self.host.say)

    def action_follow(self) -> None:
        self.log_view.action_follow()

    def action_wrap(self) -> None:
        self.log_view.action_wrap()

    def action_next_match(self) -> None:
        self.log_view.action_next_match()

    def action_prev_match(self) -> None:
        self.log_view.action_prev_match()

    def action_next_error(self) -> None:
        self.log_view.action_next_error()

    def action_prev_error(self) -> None:
        self.log_view.action_prev_error()

    def action_clear_filters(self) -> None:
        self.log_view.action_clear_filters()

    def action_mark(self) -> None:
        self.log_view.action_mark()

    def action_filter(self, text: str = "") -> None:
        """Search the log."""
        if text:
            self.log_view.find(text)
        else:
            self.typed_line.ask("search", "/", "text or /regex/; empty ends the search", self.log_view.find)

    def action_filter_in(self, text: str = "") -> None:
        self._filter(text, "only", keep=True)

    def action_filter_out(self, text: str = "") -> None:
        self._filter(text, "hide", keep=False)

    def _filter(self, text: str, word: str, *, keep: bool) -> None:
        def add(typed: str) -> None:
            if typed:
                self.log_view.add_filter(typed, keep=keep)

        if text:
            add(text)
        else:
            self.typed_line.ask("filter", word, "text or /regex/; the same again turns it off", add)

    def action_context(self, text: str = "") -> None:
        """Show lines around each line that a filter keeps."""

        def set_lines(typed: str) -> None:
            typed = typed.strip() or "0"
            if not (typed.isascii() and typed.isdigit() and int(typed) <= MOST_CONTEXT):
                raise Failure(f"{safe(typed)!r} is no number of lines.", do="Such as 3; 0 shows none around.")
            self.log_view.set_context(int(typed))

        if text:
            set_lines(text)
        else:
            self.typed_line.ask("context", "lines around", "a number; 0 shows none", set_lines)

    def action_save(self, text: str = "") -> None:
        """Save what the view holds, as the filters leave it."""
        if text:
            self.log_view.save(text)
        else:
            hint = "a path on this computer; empty picks a name"
            self.typed_line.ask("save", "save as", hint, self.log_view.save)

    def action_search_box(self) -> None:
        """Go on searching in the spool and in the file on the box."""
        reader = self.log_view.reader
        if reader is not None and reader.search is not None:
            self._search_box(reader.search)
        else:
            self.typed_line.ask(
                "search", "search box", "text or /regex/", lambda typed: self._search_box(pattern(typed))
            )

    def _search_box(self, looked_for: Pattern) -> None:
        if self.run_name is None:
            raise Failure("There is no log to search: no run of this box is watched.")
        source = looked_for.source
        text = source[1:-1] if looked_for.is_regex else source
        if self.host.send(SearchLog(self.run_name, text, looked_for.ignore_case, looked_for.is_regex)):
            found = self.query_one(SearchList)
            found.start(text, self.host.snapshot.searches)
            found.focus()

    @on(SearchList.Chosen)
    def _go_to_hit(self, message: SearchList.Chosen) -> None:
        number = message.hit.number
        if number is not None and self.log_view.go(number):
            self.log_view.focus()
        else:
            self.host.say("This line is not in memory; y copies it from here.")

    @on(LogView.Save)
    def _save_lines(self, message: LogView.Save) -> None:
        """The app writes the file: screens touch nothing on this computer."""
        try:
            self.host.say(self.host.save_lines(message.lines, message.path, f"{message.run}.log"))
        except Failure as failure:
            self.host.say(failure.line, "attention")

    @on(LogView.Copy)
    def _copy_text(self, message: LogView.Copy) -> None:
        if message.text:
            self.host.say(f"{message.what}: {self.host.copy_text(message.text)}")
        else:
            self.host.say("There is nothing here to copy.")
