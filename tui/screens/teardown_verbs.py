"""Which actions of the teardown view apply now, most wanted first. Pure."""

from __future__ import annotations

from tui.model.teardown import StepView, TeardownView

_SETTLED = ("proven", "attested", "already-gone", "already-stopped")


def offered(view: TeardownView, step: StepView | None, *, groups: bool) -> list[str]:
    """Names of actions for the footer.

    Args:
        step: the selected one.
        groups: the list of leftovers is shown.
    """
    wanted: list[str] = []
    if view.question in ("phrase", "word"):
        wanted.append("type_phrase")
    if view.question == "destination":
        wanted.append("destination")
    if groups and not view.working:
        wanted += ["keep", "scrap", "mark_group", "other_pane"]
    if view.question == "anyway" or (step is not None and step.gaps):
        wanted.append("go_on_over")
    if view.ended in _SETTLED:
        wanted = []
    else:
        wanted += ["halt"] if view.working else ["redo"]
    if not view.working and view.ended not in _SETTLED and "destination" not in wanted and view.step("copy"):
        wanted.append("destination")
    if step is not None and step.id == "readback" and not view.working and view.ended not in _SETTLED:
        wanted.insert(0, "read_back_on")
    wanted += ["step_back", "detach", "commands"]
    return wanted
