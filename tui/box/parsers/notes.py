"""What a person should know about an answer beyond its figures, as stable words."""

from __future__ import annotations

from tui.box.parsers.gpu_card import is_slice, slowed_by_heat
from tui.box.parsers.report import Parsed
from tui.model.text import SafeText


def notes(parsed: Parsed) -> tuple[SafeText, ...]:
    """Remarks about cards: figures that are those of a slice, and heat."""
    gpus = (parsed.gpu.gpus if parsed.gpu else None) or ()
    hot = [str(gpu.index) for gpu in gpus if slowed_by_heat(gpu)]
    found = ["vgpu_slice"] if any(is_slice(gpu) for gpu in gpus) else []
    if hot:
        found.append(f"thermal_throttle on {', '.join(hot)}")
    return tuple(SafeText(note) for note in found)


def detail(parsed: Parsed, without_gpu: bool = False) -> str | None:
    """The finer kind of what was found, where there is one.

    Args:
        without_gpu: the platform says that the machine was started without its cards.
    """
    refusal = parsed.refusal
    if refusal is not None and refusal.error == "tool_missing":
        return "tool_missing"
    if refusal is not None and refusal.error == "no_devices" and without_gpu:
        return "cpu_mode_start"
    remaps = {event.remap for event in (parsed.kernel.events if parsed.kernel else None) or ()}
    return next((f"remap_{state}" for state in ("failed", "pending") if state in remaps), None)
