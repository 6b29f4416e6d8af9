"""What a launch asks of the operator, what applies now, and why Enter does nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable

from tui.model.launch import LaunchView, Stage
from tui.widgets import launch_rows as rows


def question(view: LaunchView, stage: Stage) -> str:
    """What stands over the choices of a step."""
    if stage != view.stage or view.working:
        return {"answer": "what is done"}.get(stage, stage)
    refused = "it must not be started like this" if view.stopped else "preflight"
    return {
        "job": "which job file",
        "box": "on which box",
        "preflight": refused,
        "plan": "what would be done; the last line starts it",
        "answer": "what came of it",
    }[stage]


def can_check(view: LaunchView) -> bool:
    """Whether there is something to look at again."""
    at_end = view.stage == "answer" and view.answer is None
    return not view.working and (view.stage in ("preflight", "plan") or at_end)


def offered(view: LaunchView, stage: Stage, choice: rows.Choice | None) -> list[str]:
    """Names of actions for the footer, most wanted first.

    Args:
        stage: the step that is looked at.
        choice: the line under the cursor.
    """
    wanted = []
    if choice is not None and choice.key == rows.START:
        wanted.append("start")
    if view.answer is not None or (stage == view.stage and view.stage in ("job", "box")):
        wanted.append("answer")
    if view.stage == "job" and not view.working:
        wanted.append("type_path")
    if can_check(view):
        wanted.append("redo")
    if view.stage != "job" and not (view.stage == "answer" and view.working):
        wanted.append("go_back")
    wanted += ["other_pane", *(("anew",) if view.stage == "answer" and not view.working else ())]
    return [*wanted, "detach", "copy", "commands"]


def nothing_to_choose(view: LaunchView, choice: rows.Choice | None, key_of: Callable[[str], str]) -> str:
    """Why Enter does nothing now, and what does.

    Args:
        key_of: how an action's key is written.
    """
    if view.stage == "job" and view.jobs is None:
        return "Still looking for job files; choose one when they are listed."
    if view.working:
        doing = {"preflight": f"It looks at {view.box}", "answer": "It is being started"}
        wait = "wait" if view.stage == "answer" else f"wait, or {key_of('go_back')} goes back"
        return f"{doing.get(view.stage, 'It is at work')}: {wait}."
    if view.stage == "plan":
        here = choice is not None and choice.key == rows.START
        return f"Enter starts nothing; {key_of('start')} on {'this' if here else 'the last'} line does."
    again = f"{key_of('redo')} looks again, " if can_check(view) else ""
    return f"Nothing is to be chosen here: {again}{key_of('go_back')} goes back."
