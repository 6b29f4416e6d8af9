"""`rgt template`: code to copy into a training script, printed."""

from __future__ import annotations

import argparse

from tui.model.failure import Exit

_TEMPLATES = ("checkpoint",)


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    template = sub.add_parser("template", help="print code to copy: atomic checkpoints that always resume")
    template.add_argument("name", choices=_TEMPLATES, metavar="NAME", help=f"one of: {', '.join(_TEMPLATES)}")
    template.set_defaults(run=_template)


def _template(args: argparse.Namespace) -> int:
    from importlib import resources

    print(resources.files("tui.runs").joinpath("templates", f"{args.name}.py").read_text("utf-8"), end="")
    return Exit.FINE
