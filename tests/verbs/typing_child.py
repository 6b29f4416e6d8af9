"""`rgt` with somebody who answers every question with one word, and who is killed at a step.

``python -m tests.verbs.typing_child WORD WHERE …``, with WHERE as in `killed_child`.
"""

from __future__ import annotations

import sys

from tests.verbs.killed_child import arm_call, arm_script
from tui.cli import main
from tui.custody import keyboard

if __name__ == "__main__":
    word = sys.argv[1]
    keyboard.read_line = lambda prompt, timeout: word
    kind, _, what = sys.argv[2].partition(":")
    if kind == "call":
        arm_call(what)
    else:
        arm_script(kind, what)
    sys.exit(main(sys.argv[3:]))
