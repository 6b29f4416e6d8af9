"""On which disk a place lies, to tell two places on one disk from two copies."""

from __future__ import annotations

import re

from tui.box.transport import LinkLost, Script, Transport
from tui.model.custody import Place

# The kernel that runs it, the device's number (the whole disk's for a partition), the filesystem's type.
_SCRIPT = r"""
LC_ALL=C; export LC_ALL
cat /proc/sys/kernel/random/boot_id 2>/dev/null || uname -n
p=$1
while [ ! -e "$p" ] && [ "$p" != / ]; do p=$(dirname "$p"); done
d=$(stat -c %d "$p" 2>/dev/null) || d=$(stat -f %d "$p" 2>/dev/null) || exit 0
m=$(( (d >> 8) & 0xfff )) n=$(( (d & 0xff) | ((d >> 12) & 0xfff00) ))
s=/sys/dev/block/$m:$n
if [ -e "$s/partition" ]; then cat "$s/../dev"; else echo "$m:$n"; fi
stat -f -c %T "$p" 2>/dev/null || echo unknown
"""

_DEVICE = re.compile(r"([\w.-]{1,80})\n(\d{1,6}:\d{1,8})\n([\w/.() -]{1,40})\n\Z")
_NETWORK = {"nfs", "nfs4", "cifs", "smb", "smb2", "ceph", "lustre", "gpfs", "beegfs", "afs", "v9fs", "panfs"}
_NO_DISK = "0:"  # tmpfs, overlays and some others have numbers that name no disk


async def device_of(transport: Transport, path: str) -> str | None:
    """``KERNEL/DEVICE/TYPE`` of where `path` is or will be; None where the box can't tell."""
    try:
        done = await transport.run(Script(_SCRIPT, (path,), why="on which disk the copy lies"))
    except (LinkLost, TimeoutError):
        return None
    said = _DEVICE.match(done.stdout.decode("ascii", "replace"))
    return f"{said[1]}/{said[2]}/{said[3].strip()}" if said else None


def one_device(copy: Place, reader: Place) -> bool:
    """Whether the copy and its reader have to be taken for sharing a disk.

    What cannot be told counts as shared where both are known to be on one computer. A network filesystem is
    somewhere else by its nature.
    """
    if copy.device is None or reader.device is None:
        return copy.kind == "path" and reader.kind == "path"
    kernel, number, kind = _parts(copy.device)
    other_kernel, other_number, _ = _parts(reader.device)
    if kernel != other_kernel or kind in _NETWORK:
        return False
    return number == other_number or number.startswith(_NO_DISK) or other_number.startswith(_NO_DISK)


def clock_is_ours(place: Place) -> bool:
    """Whether this computer's own kernel dates changes there: surely no other machine's clock does."""
    if place.kind != "path" or place.device is None:
        return False
    kind = _parts(place.device)[2]
    return kind not in _NETWORK and not kind.startswith(("fuse", "unknown", "UNKNOWN"))


def _parts(device: str) -> tuple[str, str, str]:
    """Kernel, device and type, whose name may hold a slash (``ext2/ext3``)."""
    kernel, _, rest = device.partition("/")
    number, _, kind = rest.partition("/")
    return kernel, number, kind
