"""What stands on the stack of a pickle that is read without being run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tui.checkpoints.tensors import rebuilt


class Opaque:
    """A value that was not kept."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "…"


OPAQUE: Final = Opaque()


@dataclass(slots=True, frozen=True)
class Global:
    """Something the pickle would import, such as ``posix.system``."""

    name: str


@dataclass(slots=True)
class Call:
    """Something the pickle would call or build. `state` is what it would be given afterwards."""

    function: object
    arguments: object
    state: object = None


def named(value: object) -> str | None:
    """The name of a global; None for anything else."""
    return value.name if isinstance(value, Global) else None


def called(function: object, arguments: object) -> object:
    """The stand-in for what a call returns: torch's rebuilding functions are known, the rest is recorded."""
    name = function.name if isinstance(function, Global) else None
    if not isinstance(arguments, tuple):
        return Call(function, arguments)
    if name == "collections.OrderedDict":
        return {}
    if name == "torch.Size" and arguments:
        return arguments[0]
    if (
        name in ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state")
        and arguments
    ):
        return arguments[0]
    if name == "torch._tensor._rebuild_from_type_v2" and len(arguments) >= 3:
        return called(arguments[0], arguments[2])
    tensor = rebuilt(name, arguments, named) if name else None
    return tensor or Call(function, arguments)
