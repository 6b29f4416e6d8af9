"""Programmes for another Python, as one text each: what they import of `tui` travels with them."""

from __future__ import annotations

from pathlib import Path

LOADER = (
    "import sys; text = sys.stdin.buffer.read(int(sys.argv[1])); "
    "exec(compile(text, 'rgt', 'exec'), {'__name__': '__main__'})"
)
"""For ``python -c``: runs the text that comes first on stdin, so many bytes as its argument says."""

_HERE = Path(__file__).parent

# What `import` finds is what is in sys.modules; a package is there for the sake of its modules.
_START = """\
import sys, types
def module(name, text, path="rgt"):
    sys.modules[name] = made = types.ModuleType(name)
    exec(compile(text, path, "exec"), made.__dict__)
module("tui", ""); module("tui.checkpoints", "")
"""


def bundled(programme: str, *modules: str) -> bytes:
    """One text that runs a module of this folder as a programme.

    Args:
        modules: those of this folder that it imports, each after what it imports itself.
    """
    lines = [_START]
    for name in modules:
        text = (_HERE / f"{name}.py").read_text("utf-8")
        lines.append(f"module({f'tui.checkpoints.{name}'!r}, {text!r}, {f'{name}.py'!r})\n")
    text = (_HERE / f"{programme}.py").read_text("utf-8")
    lines.append(f"exec(compile({text!r}, {f'{programme}.py'!r}, 'exec'), {{'__name__': '__main__'}})\n")
    return "".join(lines).encode()
