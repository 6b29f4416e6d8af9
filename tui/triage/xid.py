"""What the numbers mean that NVIDIA's driver puts into the kernel log.

Meanings after NVIDIA's *XID Errors* and *Xid Catalog* pages (docs.nvidia.com/deploy/xid-errors).
"""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.incident import Retry, Severity


@dataclass(frozen=True, slots=True)
class Xid:
    """One number. `cls` None: worth knowing, no fault of its own."""

    cls: str | None
    severity: Severity
    meaning: str
    retry: Retry


_ECC, _LINK, _HUNG, _APP, _LOST = "gpu_ecc", "gpu_nvlink", "gpu_hung", "gpu_app_fault", "gpu_lost"

TABLE: dict[int, Xid] = {
    8: Xid(_APP, "warning", "the card stopped working on a channel: a kernel ran too long", "after-fix"),
    13: Xid(_APP, "warning", "a kernel did something illegal", "after-fix"),
    31: Xid(_APP, "warning", "a kernel used an address that is not its own", "after-fix"),
    32: Xid(_APP, "warning", "a broken command stream was sent to the card", "after-fix"),
    38: Xid(_HUNG, "fatal", "the driver's firmware failed", "after-fix"),
    43: Xid(_APP, "warning", "the card gave up on this program's work; the card itself goes on", "after-fix"),
    44: Xid(_APP, "warning", "a fault while the card switched between programs", "after-fix"),
    45: Xid(None, "info", "work of an ended program was cleaned away", "identical"),
    46: Xid(_HUNG, "fatal", "the card stopped working", "after-fix"),
    48: Xid(_ECC, "fatal", "a memory error that ECC could not correct", "after-fix"),
    54: Xid(_HUNG, "fatal", "the card's power plug is not connected", "never"),
    57: Xid(_HUNG, "fatal", "the card's memory could not be set up", "never"),
    58: Xid(_ECC, "fatal", "the card's memory interface is unstable", "never"),
    61: Xid(_HUNG, "fatal", "a controller on the card stopped at a breakpoint", "after-fix"),
    62: Xid(_HUNG, "fatal", "a controller on the card halted", "after-fix"),
    63: Xid(_ECC, "warning", "a bad memory row will be replaced at the next reset", "identical"),
    64: Xid(_ECC, "fatal", "a bad memory row could not be noted for replacement", "never"),
    68: Xid(_APP, "warning", "the video decoder met a fault", "after-fix"),
    69: Xid(_APP, "warning", "a kernel gave the card a command it does not know", "after-fix"),
    74: Xid(_LINK, "fatal", "an NVLink connection failed", "after-fix"),
    79: Xid(_LOST, "fatal", "the card fell off the bus", "after-fix"),
    80: Xid(_HUNG, "fatal", "broken data was sent to the card", "after-fix"),
    92: Xid(_ECC, "warning", "many corrected memory errors in a short time", "identical"),
    94: Xid(_ECC, "fatal", "a memory error that was contained: only its program ended", "identical"),
    95: Xid(_ECC, "fatal", "a memory error that was not contained: all programs are hit", "after-fix"),
    96: Xid(_APP, "warning", "the video decoder met a fault", "after-fix"),
    109: Xid(_APP, "warning", "the card could not switch to another program in time", "after-fix"),
    110: Xid(_HUNG, "fatal", "a security fault of the card", "after-fix"),
    119: Xid(_HUNG, "fatal", "the card's system processor (GSP) does not answer", "after-fix"),
    120: Xid(_HUNG, "fatal", "the card's system processor (GSP) failed", "after-fix"),
    121: Xid(None, "info", "an error on the link to the CPU was corrected", "identical"),
    122: Xid(_HUNG, "warning", "the card's flash memory could not be read", "after-fix"),
    123: Xid(_HUNG, "warning", "the card's flash memory could not be written", "after-fix"),
    136: Xid(_LINK, "fatal", "an NVLink connection could not be trained", "after-fix"),
    137: Xid(_APP, "warning", "a kernel used a remote address over NVLink that is not its own", "after-fix"),
    140: Xid(_ECC, "fatal", "a memory error that was not recovered", "after-fix"),
    143: Xid(_HUNG, "fatal", "the card could not be initialised", "never"),
    **{
        code: Xid(_LINK, "fatal", "an NVLink connection or its controller failed", "after-fix")
        for code in range(144, 151)
    },
    154: Xid(_HUNG, "fatal", "the driver says what must be done before the card can be used", "after-fix"),
    155: Xid(_LINK, "warning", "an NVLink connection went down", "after-fix"),
    156: Xid(_ECC, "warning", "a part of the card is being taken out of use", "identical"),
    157: Xid(_ECC, "fatal", "a bad part of the card could not be taken out of use", "never"),
    158: Xid(_HUNG, "fatal", "the card did not answer in time", "after-fix"),
    160: Xid(_ECC, "warning", "a memory channel is being taken out of use", "identical"),
    161: Xid(_ECC, "fatal", "a bad memory channel could not be taken out of use", "never"),
    171: Xid(_ECC, "fatal", "an uncorrectable error in the card's DRAM", "after-fix"),
    172: Xid(_ECC, "fatal", "an uncorrectable error in the card's SRAM", "after-fix"),
}  # fmt: skip

CONSEQUENCES = frozenset({45, 154})
"""Printed in the wake of others."""


def meaning(code: int) -> Xid | None:
    """What a number means; None for one that is not in the table."""
    return TABLE.get(code)
