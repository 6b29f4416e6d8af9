"""When a value asks for attention. Imports nothing: the first frame reads the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a value asks for attention; overridden in ``fleet.toml``."""

    inode_pct: float = 90.0
    disk_pct: float = 90.0
    danger_pct: float = 98.0
    memory_pct: float = 95.0
    full_in_s: float = 3 * 3600.0
    idle_gpu_s: float = 900.0
    idle_gpu_pct: float = 3.0
    contract_s: float = 24 * 3600.0
