"""The one registry of what the operator can do: id, key, help line, consequence level, CLI verb.

Footer, help screen, command palette, ``:`` line, key overrides and read-only mode are all made from it.
Handlers are registered by the app; this room does nothing itself.
"""

from __future__ import annotations

from tui.actions.action import Action, Level
from tui.actions.lent import LENT

__all__ = ("ACTIONS", "BY_ID", "Action", "Level", "for_view")

_F, _R, _L, _T, _P = "fleet", "run", "log", "teardown", "setup"

_G, _S, _N, _X, _C = "triage", "storage", "launch", "matrix", "reclaim"

ACTIONS: tuple[Action, ...] = (
    Action(
        "open",
        ("enter",),
        "open",
        "Open the selected box's run, or the selected item.",
        (_F, _G, _S, _X, "cards"),
        footer=1,
    ),
    Action("back", ("escape", "q"), "back", "Go back one view; never leaves the app from a nested view."),
    Action("quit", ("ctrl+q",), "quit", "Leave rgt. Runs go on; nothing on any box changes."),
    Action("help", ("question_mark", "f1"), "help", "Keys and commands of this view.", footer=9),
    Action("command", ("colon",), ": command", "Type a command; tab completes.", footer=10),
    Action("palette", ("ctrl+p",), "palette", "Search all commands."),
    Action(
        "filter",
        ("slash",),
        "filter",
        "Show only the rows that match; in a log, search.",
        (_F, _R, _L, _X, "cards", "commands"),
        footer=5,
        takes="TEXT",
    ),
    Action("log", ("l",), "log", "Zoom the run's log.", (_F, _R, _G), footer=2),
    Action(
        "probe",
        ("r",),
        "probe now",
        "Probe the box at once; take a look or a survey again.",
        (_F, _R, _G, _S, _X),
        footer=6,
        verb="probe",
    ),
    Action(
        "sort", ("s",), "sort", "Sort the list by the next order.", (_F, _X, "cards"), footer=7, takes="ORDER"
    ),
    Action("reverse", ("full_stop",), "reverse", "Turn the sort order round.", (_F,)),
    Action("mark", ("space",), "mark", "Mark the row or line.", (_F, _R, _L, _S)),
    Action(
        "reclaim",
        ("R",),
        "reclaim",
        "Plan to remove the marked places, or all whose content comes back; you type a phrase to consent.",
        (_S,),
        Level.IRREVERSIBLE,  # at most: a plan in which everything comes back is level 2, and says so
        3,
        verb="reclaim",
    ),
    Action(
        "adopt",
        ("a",),
        "adopt",
        "Watch a run that already runs on this box.",
        (_F, _R),
        Level.LOCAL,
        3,
        verb="watch",
    ),
    Action(
        "add", ("A",), "add box", "Add a box from a pasted ssh command.", (_F,), Level.LOCAL, 4, verb="add"
    ),
    Action(
        "forget",
        ("U",),
        "unwatch",
        "Stop watching the selected run; nothing happens on the box.",
        (_F, _R),
        Level.LOCAL,
    ),
    Action(
        "clear",
        ("x",),
        "clear row",
        "Take a destroyed box out of the list; its receipts stay.",
        (_F,),
        Level.LOCAL,
        2,
    ),
    Action(
        "shell",
        ("exclamation_mark",),
        "shell",
        "Hand the terminal to ssh on this box.",
        (_F, _R, _G, _S, "cards"),
        Level.LOCAL,
        8,
        verb="ssh",
    ),
    Action(
        "forward",
        ("F",),
        "forward",
        "Forward a port of the box to this computer.",
        (_F, _R),
        Level.LOCAL,
        takes="PORT",
        verb="forward",
    ),
    Action("cards", ("P",), "GPU use", "Every process on every card of every box, in one list.", (_F, _R)),
    Action("forwards", ("ctrl+f",), "forwards", "List forwarded ports; close one.", (_F, _R)),
    Action(
        "reconnect",
        ("C",),
        "connect",
        "Connect now, also after a refused login or a changed key.",
        (_F, _R),
        Level.LOCAL,
    ),
    Action("commands", ("c",), "command log", "Every remote command with duration and exit.", ("*",)),
    Action("messages", ("M",), "messages", "What rgt had to say in this session.", ("*",)),
    Action(
        "explain",
        ("e",),
        "explain",
        "Where the value under the cursor comes from: command, time, raw output.",
        (_F, _R, _G),
    ),
    Action("copy", ("y",), "copy", "Copy the line, the marked lines or the value.", ("*",)),
    Action("next_pane", ("tab",), "next pane", "Move the focus to the next pane.", (_R,)),
    Action("zoom", ("z",), "zoom", "Give the focused pane the whole screen.", (_R,)),
    Action("follow", ("f",), "follow", "Follow the log's end, or hold it.", (_R, _L), footer=3),
    Action("wrap", ("w",), "wrap", "Wrap long lines.", (_R, _L), footer=4),
    Action("next_match", ("n",), "next", "Next match.", (_R, _L)),
    Action("prev_match", ("N",), "previous", "Previous match.", (_R, _L)),
    Action(
        "next_error",
        ("right_square_bracket",),
        "next error",
        "Jump to the next error-like line.",
        (_R, _L),
        footer=6,
    ),
    Action(
        "prev_error",
        ("left_square_bracket",),
        "previous error",
        "Jump to the previous error-like line.",
        (_R, _L),
    ),
    Action(
        "filter_in",
        ("i",),
        "only",
        "Show only lines that match (text, or /regex/).",
        (_R, _L),
        footer=7,
        takes="TEXT",
    ),
    Action("filter_out", ("o",), "hide", "Hide lines that match (text, or /regex/).", (_R, _L), takes="TEXT"),
    Action(
        "context",
        ("plus",),
        "context",
        "Show N lines around each match that a filter keeps.",
        (_R, _L),
        takes="N",
    ),
    Action("clear_filters", ("0",), "no filters", "Drop all filters of this log.", (_R, _L)),
    Action(
        "search_box",
        ("B",),
        "search box",
        "Go on searching in the spool and in the file on the box.",
        (_R, _L),
    ),
    Action(
        "save",
        ("ctrl+s",),
        "save",
        "Save what the log view holds into a file.",
        (_R, _L),
        Level.LOCAL,
        takes="PATH",
    ),
    Action(
        "stop",
        ("X",),
        "stop",
        "Plan a stop: ends the bill and keeps the disks, where the platform does that.",
        (_F, _R),
        Level.REMOTE,
        12,
        takes="NAME",
        verb="stop",
    ),
    Action(
        "teardown",
        ("D",),
        "teardown",
        "Prove that everything is safe, then destroy the box; or go on where you left it.",
        (_F, _R),
        Level.IRREVERSIBLE,
        11,
        takes="NAME",
        verb="down",
    ),
    Action(
        "type_phrase",
        ("p",),
        "type the phrase",
        "Open the line for the phrase, or for your word.",
        (_T, _C),
    ),
    Action(
        "destination",
        ("t",),
        "copy to",
        "Choose where the durable copy goes.",
        (_T,),
        Level.REMOTE,
        takes="PLACE",
    ),
    Action(
        "read_back_on",
        ("o",),
        "read back on",
        "Choose who reads the copy back: this computer, or another box; never the one that made the files.",
        (_T,),
        Level.REMOTE,
        takes="BOX",
    ),
    Action("keep", ("K",), "keep", "Put the selected or marked groups on the roster.", (_T,), Level.LOCAL),
    Action("scrap", ("S",), "scrap", "Give the selected or marked groups up.", (_T,), Level.LOCAL),
    Action("mark_group", ("space",), "mark", "Mark a group of leftovers.", (_T,)),
    Action(
        "go_on_over",
        ("s",),
        "say why",
        "Give the reason why you go on over what a step warns of.",
        (_T,),
        Level.LOCAL,
    ),
    Action("redo", ("r",), "again", "Make the selected step again.", (_T, _N), Level.LOCAL),
    Action("halt", ("h",), "halt", "End the work that runs; what it has done is kept.", (_T,), Level.LOCAL),
    Action("step_back", ("b",), "step before", "Look at the step before.", (_T,)),
    Action("detach", ("d",), "leave it", "Leave the view; the work goes on.", (_T, _P, _N)),
    Action("other_pane", ("tab",), "other list", "Move between the steps and the choices.", (_T, _P, _N)),
    Action(
        "setup",
        ("S",),
        "set up",
        "Guided setup: rent, reach and measure a box, step by step; or go on where you left it.",
        (_F,),
        Level.REMOTE,
        13,
        takes="NAME",
        verb="setup",
    ),
    Action("answer", ("enter",), "answer", "Choose the selected item, or open the line to type.", (_P, _N)),
    Action("skip_step", ("s",), "skip", "Leave this step out, and say why.", (_P,), Level.LOCAL),
    Action("go_back", ("b",), "go back", "Do the selected earlier step again.", (_P, _N), Level.LOCAL),
    Action(
        "anew", ("N",), "begin anew", "Forget it and begin anew; what it made stays.", (_P, _N), Level.LOCAL
    ),
    Action(
        "launch",
        ("L",),
        "launch",
        "Launch a job: choose file and box, see preflight and plan, then decide; or look how it goes.",
        (_F, _R),
        Level.REMOTE,
        14,
        takes="JOB",
        verb="launch",
    ),
    Action("type_path", ("t",), "type a path", "Type the path of a job file.", (_N,), Level.LOCAL),
    Action("start", ("L",), "start it", "Start what the plan says; on its line only.", (_N,), Level.REMOTE),
    Action(
        "matrix",
        ("m",),
        "matrix",
        "Every cell of a queue: what its box says of it, and who has judged it.",
        (_F, _R),
        footer=15,
        takes="QUEUE",
        verb="matrix",
    ),
    Action(
        "handbook",
        ("H",),
        "handbook",
        "What somebody needs who knows nothing of the run; y copies a line.",
        (_F, _R, _X),
        footer=16,
        takes="NAME",
        verb="handbook",
    ),
    Action(
        "triage",
        ("t",),
        "triage",
        "Say what is wrong with this run, what shows it, and what to do.",
        (_F, _R, _L, _G, _S, "commands", "explain", "adopt", "forwards"),
        footer=2,
        takes="NAME",
        verb="triage",
    ),
    *LENT,
    Action("theme", (), "theme", "Change the theme.", ("*",), Level.LOCAL, takes="NAME"),
    Action("goto", (), "go to", "Go to a box or run by name.", ("*",), takes="NAME"),
)

BY_ID = {action.id: action for action in ACTIONS}


def for_view(view: str, *, read_only: bool) -> tuple[Action, ...]:
    """The actions that exist in `view`. Read-only mode removes whatever changes something."""
    return tuple(
        a
        for a in ACTIONS
        if ("*" in a.views or view in a.views) and not (read_only and a.level > Level.OBSERVE)
    )
