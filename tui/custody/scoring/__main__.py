"""The child in which predictions are read: ``python -m tui.custody.scoring``, one request, one answer.

A hostile Parquet file can do no more here than end this process.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tui.model.metrics import Declaration


def main() -> None:
    answering = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints is no part of the answer
    request = json.load(sys.stdin)
    root, declaration = Path(request["root"]), Declaration.model_validate(request["declaration"])
    with os.fdopen(answering, "w", encoding="ascii") as out:
        json.dump(_answer(request, root, declaration), out)


def _answer(request: dict[str, Any], root: Path, declaration: Declaration) -> Any:
    from tui.custody.scoring.asks import Ask
    from tui.custody.scoring.findings import examine

    if request["what"] == "examine":
        return examine(root, declaration).model_dump(mode="json")
    from tui.custody.scoring.second_opinion import answers

    return answers(root, declaration, [Ask.model_validate(ask) for ask in request["asks"]])


if __name__ == "__main__":
    main()
