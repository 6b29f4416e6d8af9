"""A credential that does not show itself, and what takes it out of words that a vendor sends back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tui.model.text import SafeText, safe

HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class Secret:
    """A key or token. Only `reveal` tells it; printing, formatting or logging it does not."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        return self._value

    @property
    def fingerprint(self) -> str:
        """Tells one credential from another, and not what it is: 48 bits of a random key's digest."""
        return hashlib.sha256(b"rgt\0" + self._value.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return HIDDEN


_TELLTALE = re.compile(
    r"(?i)(\b(?:bearer|authorization|api[_-]?key|token|password|passwd|secret)\b[\"']?\s*[:=]?\s*[\"']?)"
    r"([A-Za-z0-9_\-./+=]{12,})"
)


def redacted(text: str, secrets: Iterable[Secret], limit: int = 300) -> SafeText:
    """Foreign words, safe to show, with no credential of ours in them nor what looks like somebody's."""
    for secret in secrets:
        value = secret.reveal()
        if len(value) >= 4:
            text = text.replace(value, HIDDEN)
    return safe(_TELLTALE.sub(rf"\g<1>{HIDDEN}", text[: 4 * limit]), limit)
