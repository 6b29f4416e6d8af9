"""Colours as eyes and terminals see them: contrast, colour distance, red-green blindness, the 256 palette."""

from __future__ import annotations

import math

Rgb = tuple[float, float, float]

# Linear-RGB simulation of full deficiency: Machado, Oliveira and Fernandes 2009, severity 1.0.
DEUTERANOPIA = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
PROTANOPIA = (
    (0.152286, 1.052583, -0.204868),
    (0.114503, 0.786281, 0.099216),
    (-0.003882, -0.048116, 1.051998),
)

_LEVELS = (0, 95, 135, 175, 215, 255)
PALETTE = [(r, g, b) for r in _LEVELS for g in _LEVELS for b in _LEVELS] + [
    (8 + 10 * n,) * 3 for n in range(24)
]


def rgb(colour: str) -> Rgb:
    """Red, green and blue from 0 to 255 of ``#rrggbb``."""
    return tuple(float(int(colour[i : i + 2], 16)) for i in (1, 3, 5))  # type: ignore[return-value]


def linear(colour: Rgb) -> Rgb:
    """Light, 0 to 1 per channel, of an sRGB colour."""
    return tuple(_linear(c / 255) for c in colour)  # type: ignore[return-value]


def _linear(c: float) -> float:
    return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4


def luminance(colour: Rgb) -> float:
    """Relative luminance as WCAG 2 defines it."""
    r, g, b = linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: Rgb, other: Rgb) -> float:
    """Contrast ratio of WCAG 2, 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def seen_with(matrix: tuple[Rgb, ...], colour: Rgb) -> Rgb:
    """The linear light that an eye with this deficiency sees."""
    light = linear(colour)
    seen = (sum(m * c for m, c in zip(row, light, strict=True)) for row in matrix)
    return tuple(min(1.0, max(0.0, c)) for c in seen)  # type: ignore[return-value]


def distance(one: Rgb, other: Rgb) -> float:
    """Distance of two linear colours in CIE L*a*b* (1976); 2 is just visible, 20 is plain."""
    return math.dist(_lab(one), _lab(other))


def _lab(light: Rgb) -> Rgb:
    r, g, b = light
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089
    fx, fy, fz = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def in_256(colour: Rgb) -> Rgb:
    """The nearest colour of xterm's cube and grey ramp."""
    return min(PALETTE, key=lambda entry: math.dist(entry, colour))
