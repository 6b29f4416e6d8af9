"""Why a tool of the system gave no answer, as a stable word: from its error text and exit status."""

from __future__ import annotations

import re

from tui.box.parsers.lines import lines
from tui.box.parsers.refusal import errno_of
from tui.box.parsers.report import Output, Refusal
from tui.model.text import safe

_TIMEOUT_STATUS = frozenset({124, 137, 143})
_NOT_FOUND = 127
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (word, re.compile(pattern, re.IGNORECASE))
    for word, pattern in (
        (
            "tool_missing",
            r"command not found|: not found\s*$|unknown command: |applet not found|未找到命令|找不到命令"
            r"|executable file not found|commande introuvable|Kommando nicht gefunden|orden no encontrada",
        ),
        (
            "no_such_process",
            r"No such process|process not found|no process found|process ID list syntax error"
            r"|/proc/\d+/?[^:\n]*['’]?: No such file|没有那个进程|Kein passender Prozess|Aucun processus",
        ),
        (
            "unsupported_option",
            r"bad -o argument|unknown user-defined format specifier|unrecognized option|invalid option"
            r"|illegal option|unsupported (?:SysV )?option|unknown option|keyword not found"
            r"|Invalid field requested|garbage option|unknown sort specifier|无效选项|不适用的选项"
            r"|ungültige Option|option invalide",
        ),
        ("not_supported", r"Operation not supported|Function not implemented|Not supported|不支持的操作"),
    )
)
_ERRNO_WORDS = {
    "ENOENT": "no_such_file",
    "EACCES": "permission",
    "EPERM": "permission",
    "ENODEV": "no_such_device",
    "EIO": "io_error",
    "ESTALE": "io_error",
    "ENOTDIR": "no_such_file",
}


def complaint(output: Output, limited: bool = False) -> Refusal | None:
    """What kept a tool from answering; None when it said nothing of that sort.

    Args:
        limited: the command ran under `timeout`, whose exit status 124 means the time was over.
    """
    if limited and output.exit in _TIMEOUT_STATUS and not output.stdout.strip():
        return Refusal("timeout", safe("no answer in time"), answered=False)
    for line in lines(output.stderr):
        word = _word(line)
        if word:
            return Refusal(word, safe(line.strip(), 300))
    if output.exit == _NOT_FOUND and not output.stdout.strip():
        return Refusal("tool_missing", safe(output.stderr.strip() or "command not found", 300))
    return None


def _word(line: str) -> str | None:
    word = next((word for word, form in _FORMS if form.search(line)), None)
    symbol = errno_of(line) if word is None else None
    return word or (_ERRNO_WORDS.get(symbol) if symbol else None)
