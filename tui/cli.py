"""rgt: the screen, and every verb without one.

Only the module of the verb that was asked for is imported: `rgt --version` must not wait for SSH or pydantic.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tui import __version__
from tui.last_words import last_words, output_fault
from tui.model.failure import Exit, Failure
from tui.model.text import safe


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a verb lives, what it is for, and what helps who calls it wrong."""

    module: str
    help: str
    hint: str = ""
    takes_command: bool = False
    """What it takes may be a whole ssh command, without quotes around it."""


VERBS: dict[str, Verb] = {
    "demo": Verb("demo", "watch an embedded fleet: five boxes, real jobs, no account needed"),
    "status": Verb("look", "the fleet in a few lines: one look at every box"),
    "probe": Verb("look", "one look at one box, or at this computer: `rgt probe local`"),
    "logs": Verb("look", "the end of a run's log; -f follows it"),
    "triage": Verb("triage", "what is wrong with a run, what shows it, and what to do"),
    "add": Verb(
        "fleet",
        "add a box from a pasted ssh command",
        "Put quotes around the paste, or give it on stdin.",
        takes_command=True,
    ),
    "edit": Verb("fleet", "change what is known of a box"),
    "rename": Verb("fleet", "give a box another name"),
    "remove": Verb("fleet", "forget a box; nothing happens on it"),
    "watch": Verb("fleet", "adopt a run that rgt did not start"),
    "ssh": Verb("reach", "a shell or a command on a box, through the system's ssh"),
    "forward": Verb("reach", "reach a port of a box, such as TensorBoard, on this computer"),
    "setup": Verb("setup", "from nothing to a watched box, step by step"),
    "up": Verb("up", "rent a machine that fits, by its platform's API"),
    "roster": Verb("custody", "what of a run must survive, and what else would be destroyed"),
    "digest": Verb("custody", "SHA-256 of every artifact of a run, computed on the box"),
    "pull": Verb("pull", "make the durable copy of a run, every file proven"),
    "readback": Verb("pull", "read the durable copy back, cold, by somebody who did not make it"),
    "verify": Verb("verify", "check a folder's digests, checkpoints and metrics; no box needed"),
    "hold": Verb("hold", "block everything irreversible for a box, with a reason"),
    "unhold": Verb("hold", "let a held box go again"),
    "stop": Verb("down", "end a box's bill and keep its disks, where the platform does that"),
    "down": Verb("down", "destroy a box, once all is proven safe and you typed the phrase"),
    "receipts": Verb("receipts", "what was done, and whether the record of it is whole"),
    "evidence": Verb("receipts", "what of a run is usable and how surely, then what is residual"),
    "patrol": Verb("patrol", "one read-only tick over all, for a timer; tells once what changed"),
    "job": Verb("run", "check a job file, or print the schema of all of them"),
    "stage": Verb("stage", "bring a job's missing inputs to a box, from a mirror or from here"),
    "smoke": Verb("run", "run a job's smoke command here, without a GPU, before you pay"),
    "push": Verb("run", "bring a job's code to a box; only what it has not got"),
    "launch": Verb("run", "start a job on a box, detached; says within a minute what came of it"),
    "queue": Verb("queue", "run every cell of a job's matrix, split over boxes"),
    "matrix": Verb("queue", "a queue's cells: what each box and the ledger say of each"),
    "resume": Verb("resume", "go on with a launched run: the identical plan, nothing else"),
    "relaunch": Verb("relaunch", "go on with a run on another box, from its durable checkpoints"),
    "drill": Verb("resume", "kill a run on purpose, start it again, and see whether it goes on"),
    "cadence": Verb("cadence", "how long a run's saves take, and how often it should save"),
    "handbook": Verb("resume", "what somebody needs who knows nothing of a run"),
    "close": Verb("close", "make a sealed export of a run that is over, or quarantine it"),
    "gather": Verb("gather", "copy a sealed export to the shared file system, proven by its hashes"),
    "template": Verb("template", "print code to copy: atomic checkpoints that always resume"),
    "gpu": Verb("gpu", "a box's cards over some seconds: clocks, brakes, errors, holders"),
    "mirrors": Verb("gpu", "the platform's mirrors: what to set, and whether they answer there"),
    "fetch": Verb("fetch", "download a file on a box; resumable, bounded, checked by its SHA-256"),
    "reclaim": Verb("reclaim", "make room on a full mount by what comes back, once you consent"),
    "leash": Verb("leash", "let a box stop itself at a date, disks kept, where that is possible"),
    "gotchas": Verb("gotchas", "what is known about a trouble, by plain words, English or Chinese"),
    "profiles": Verb("profiles", "what is known of each platform: storage, billing, teardown"),
    "complete": Verb("complete", "what makes bash, zsh or fish complete verbs and names"),
    "doctor": Verb("doctor", "check terminal, tmux, ssh, keys and clock; says what to change"),
}

GROUPS: dict[str, tuple[str, str]] = {
    "up": ("have a box, and reach it", "demo doctor setup up add edit rename remove ssh forward mirrors"),
    "push": ("bring a job to it", "template job smoke stage push fetch"),
    "run": ("start the job, and go on with it", "launch queue matrix resume relaunch drill cadence"),
    "watch": ("see how it goes, and what is wrong", "status probe logs watch triage gpu reclaim patrol"),
    "pull": ("bring what it made to a durable place", "roster digest pull readback close gather"),
    "verify": ("prove what there is", "verify evidence receipts"),
    "down": ("end the bill", "leash hold unhold stop down"),
    "know": ("look things up", "handbook gotchas profiles complete"),
}
"""The verbs in the order of their use, as ``rgt --help`` shows them: what a group is for, and its verbs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `rgt`. Returns the exit code; every failure is one sentence on stderr."""
    if argv is None:
        _end_in_order()
        _have_streams()
        _say_anything()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = int(_run(words))
        if sys.stdout is not None:  # a reader that is gone shows here, not in the interpreter's last words
            sys.stdout.flush()
        return code
    except Failure as failure:
        print(f"rgt: {failure.line}", file=sys.stderr)
        return int(failure.exit)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        _drop_output()
        return int(Exit.FINE)
    except Exception as fault:
        if os.environ.get("RGT_DEBUG"):
            raise
        if why := output_fault(fault):
            print(f"rgt: the output cannot be written: {why}.", file=sys.stderr)
            _drop_output()
        else:
            print(f"rgt: {last_words(fault)}", file=sys.stderr)
        return int(Exit.UNKNOWN)


def _end_in_order() -> None:
    """SIGTERM and SIGHUP leave as ctrl+c does, so that nothing stays behind; nohup's choice is kept."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _have_streams() -> None:
    """A stream that was closed by whoever started rgt leads nowhere.

    Else the first files that are opened, or a link, would stand in its place, and take what a child prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their numbers
        if getattr(sys, name) is None:
            stream = open(os.open(os.devnull, os.O_RDWR), mode)  # noqa: SIM115, PTH123 - open until the end
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def _say_anything() -> None:
    """A sign that the terminal's encoding lacks is written as its number: no name breaks a verb off."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What is left of the output goes nowhere: no second error at the interpreter's exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    name = _verb_in(words)
    if name is None:
        args = _parser().parse_args(words)
        from tui.verbs.screen import open_screen

        return int(open_screen(args))
    if name not in VERBS:
        close = difflib.get_close_matches(name, VERBS, 1)
        hint = f"Did you mean `rgt {close[0]}`?" if close else "`rgt --help` lists the verbs."
        raise Failure(f"rgt has no verb {name!r}.", do=hint, exit=Exit.USAGE, code="unknown-verb")
    if VERBS[name].takes_command:
        from tui.verbs.unquoted import arranged

        words = arranged(words)
    parser = _parser()
    sub = parser.add_subparsers(dest="verb", metavar="VERB", required=True, prog="rgt")
    importlib.import_module(f"tui.verbs.{VERBS[name].module}").register(sub)
    _complete(sub.choices[name], VERBS[name])
    args, left = parser.parse_known_args(words)
    if left:
        hint = VERBS[name].hint or f"`rgt {name} --help` tells what it takes."
        raise Failure(f"rgt {name} does not take {safe(' '.join(left), 80)}.", do=hint, exit=Exit.USAGE)
    return int(args.run(args))


def _complete(parser: argparse.ArgumentParser, verb: Verb) -> None:
    """What all verbs share: help that begins with what it is for, and `--plain` beside `--json`."""
    first = f"{verb.help[0].upper()}{verb.help[1:]}."
    parser.description = f"{first} {parser.description}" if parser.description else first
    options = {option for action in parser._actions for option in action.option_strings}
    if "--json" in options and "--plain" not in options:
        parser.add_argument(
            "--plain", action="store_true", help="changes nothing: this verb prints plain text"
        )


_WITH_VALUE = ("--theme", "--glyphs", "--color")


def _verb_in(words: list[str]) -> str | None:
    """The first word that is neither an option nor the value of one."""
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return None


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line, as every other failure is said."""

    def error(self, message: str) -> NoReturn:
        do = f"`{self.prog} --help` tells what it takes."
        raise Failure(f"{self.prog}: {safe(message, 300)}.", do=do, exit=Exit.USAGE, code="usage")


def _grouped() -> str:
    """All verbs, one a line, below what their group is for."""
    width = max(map(len, VERBS))
    return "\n".join(
        f"\n {group}: {purpose}\n"
        + "\n".join(f"  {name:<{width}}  {VERBS[name].help}" for name in names.split())
        for group, (purpose, names) in GROUPS.items()
    )


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="rgt",
        usage="rgt [options]  |  rgt VERB ...",
        description="Without a verb: the screen, with every box and run you pay for.",
        epilog=f"verbs (`rgt VERB --help` tells more):\n{_grouped()}\n\n"
        "exit codes: 0 fine · 1 needs attention, or refused · 2 usage · 3 unreachable\n"
        "            4 incomplete or unknown · 130 interrupted",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(verbs=tuple(VERBS))
    parser.add_argument("--version", action="version", version=f"rgt {__version__}")
    parser.add_argument("--read-only", action="store_true", help="remove every action that changes something")
    parser.add_argument("--theme", metavar="NAME", help="a theme of `themes/` or of your own")
    parser.add_argument("--glyphs", choices=("auto", "unicode", "ascii"), help="which symbols to draw with")
    parser.add_argument(
        "--color", choices=("auto", "truecolor", "256", "16", "none"), help="colours the terminal is given"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
