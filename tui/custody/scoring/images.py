"""Structural similarity of two images, as Wang et al. (2004) define it, in the three ways that are in use."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

K1, K2 = 0.01, 0.03
GAUSSIAN_SIGMA, GAUSSIAN_SIZE, UNIFORM_SIZE = 1.5, 11, 7

Window = Literal["gaussian", "mirrored", "uniform"]


def ssim(first: Any, second: Any, data_range: float, window: Window) -> float:
    """Mean structural similarity of two images of height × width, or of several channels of them.

    ``gaussian`` is the paper's window (11 pixels, sigma 1.5) where it lies inside; ``mirrored`` the same over
    the whole image with mirrored borders, as torchmetrics has it; ``uniform`` the 7 pixels and sample
    covariance that scikit-image takes by default, inside.

    Args:
        first, second: channels × height × width.
    """
    if window == "mirrored":
        border = GAUSSIAN_SIZE // 2
        around = ((0, 0), (border, border), (border, border))
        first, second = np.pad(first, around, "reflect"), np.pad(second, around, "reflect")
    kernel = _kernel(window)
    sample = UNIFORM_SIZE**2 / (UNIFORM_SIZE**2 - 1) if window == "uniform" else 1.0
    values = [_ssim_plane(a, b, data_range, kernel, sample) for a, b in zip(first, second, strict=True)]
    return float(np.mean(values))


def fits(height: int, width: int, window: Window) -> bool:
    """Whether the window lies inside such an image at all."""
    return min(height, width) >= (UNIFORM_SIZE if window == "uniform" else GAUSSIAN_SIZE)


def _kernel(window: Window) -> Any:
    if window == "uniform":
        return np.full(UNIFORM_SIZE, 1 / UNIFORM_SIZE)
    offsets: Any = np.arange(GAUSSIAN_SIZE) - GAUSSIAN_SIZE // 2
    weights = np.exp(-(offsets**2) / (2 * GAUSSIAN_SIGMA**2))
    return weights / weights.sum()


def _ssim_plane(first: Any, second: Any, data_range: float, kernel: Any, sample: float) -> float:
    mean_a, mean_b = _blurred(first, kernel), _blurred(second, kernel)
    var_a = sample * (_blurred(first * first, kernel) - mean_a**2)
    var_b = sample * (_blurred(second * second, kernel) - mean_b**2)
    covariance = sample * (_blurred(first * second, kernel) - mean_a * mean_b)
    c1, c2 = (K1 * data_range) ** 2, (K2 * data_range) ** 2
    top = (2 * mean_a * mean_b + c1) * (2 * covariance + c2)
    bottom = (mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2)
    return float(np.mean(top / bottom))


def _blurred(plane: Any, kernel: Any) -> Any:
    """The plane under a separable window, where it lies inside."""
    rows = np.lib.stride_tricks.sliding_window_view(plane, len(kernel), axis=0) @ kernel
    return np.lib.stride_tricks.sliding_window_view(rows, len(kernel), axis=1) @ kernel
