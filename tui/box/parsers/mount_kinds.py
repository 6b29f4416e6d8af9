"""What kind of thing a mount is: storage, a placeholder, one file of the host, a bucket without a size."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui.box.parsers.report import Mount
from tui.model.telemetry import Filesystem

PSEUDO = frozenset(
    {
        "proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "securityfs", "debugfs", "tracefs",
        "pstore", "bpf", "configfs", "fusectl", "hugetlbfs", "binfmt_misc", "nsfs", "rpc_pipefs", "nfsd",
        "selinuxfs", "efivarfs", "autofs", "devtmpfs", "devfs", "udev", "none",
    }
)  # fmt: skip
"""Types (and the names such mounts have instead of a device) of what is no storage."""
READ_ONLY_BY_NATURE = frozenset({"squashfs", "iso9660", "erofs", "cramfs", "udf", "cvmfs2", "fuse.cvmfs2"})

_AUTOFS = re.compile(r"auto[._]\S+\Z|systemd-1\Z|autofs\Z|map \S+|-hosts\Z|/etc/auto\S*\Z")
_BUCKET_TYPES = re.compile(
    r"fuse\.(?:s3fs|gcsfuse|goofys|ossfs2?|cosfs|obsfs|blobfuse2?|mountpoint-s3|tosfs|rclone|s3backer|geesefs)\Z"
)
_BUCKETS = re.compile(
    r"(?:s3fs|gcsfuse|goofys|ossfs2?|cosfs|obsfs|blobfuse2?|mountpoint-s3|geesefs)\Z|(?:s3|gs|oss|cos)://"
)
_JUICE = re.compile(r"JuiceFS:|fuse\.juicefs\Z")
_PIB = 1 << 50
_FANTASY = 1 << 60  # 1 EiB and more: LONG_MAX in some unit
_BUCKET_FROM = 16 << 40

# Single files and devices that container runtimes mount from the host.
_FILE_BIND = re.compile(
    r"/etc/(?:hosts|hostname|resolv\.conf|timezone|localtime|passwd|group|nsswitch\.conf|machine-id)\Z"
    r"|/(?:usr/)?s?bin/[^/]+\Z|/usr/local/s?bin/[^/]+\Z"
    r"|/(?:usr/)?(?:local/)?lib(?:32|64)?/(?:.*/)?[^/]+\.so(?:\.[\w.]+)?\Z"
    r"|/(?:usr/)?lib/firmware/.+"
    r"|/dev/(?:nvidia\S*|null|zero|full|tty|random|urandom|console|termination-log|dri/\S+|kfd)\Z"
    r"|/(?:var/)?run/(?:nvidia-\S+|docker\.sock|\.containerenv)\Z|/\.dockerenv\Z|/init\Z|/run/secrets/\S+\.\w+\Z"
)


def is_placeholder(device: str, shown: Filesystem) -> bool:
    """Whether a mount has no space of its own: an autofs trigger, or a kernel interface."""
    if shown.size_bytes or shown.inodes:
        return False
    return bool(_AUTOFS.match(device)) or device in PSEUDO or (shown.fstype or "") in PSEUDO


def is_file_bind(path: str, fstype: str) -> bool:
    """Whether `path` is a single file that a container got from its host."""
    return fstype not in PSEUDO and bool(_FILE_BIND.match(path))


def names_no_capacity(
    device: str, fstype: str, size: int | None, used: int | None, avail: int | None
) -> bool:
    """Whether the size is made up: object stores have none and name a big one."""
    if not size:
        return False
    if _BUCKET_TYPES.match(fstype) or _BUCKETS.match(device) or size >= _FANTASY:
        return True
    if _JUICE.match(device) or _JUICE.match(fstype):
        return size >= _PIB
    return used == 0 and avail == size and size >= _BUCKET_FROM


def shared_pools(mounts: Sequence[Mount]) -> tuple[tuple[str, ...], ...]:
    """Paths of datasets that take from one pool, so that what is available must not be summed."""
    groups: dict[tuple[str, int], list[str]] = {}
    for mount in mounts:
        avail = mount.shown.avail_bytes
        if (
            avail
            and not mount.device.startswith("/")
            and ":" not in mount.device
            and "/" not in mount.device[:1]
        ):
            groups.setdefault((mount.device.partition("/")[0], avail), []).append(mount.path)
    return tuple(
        tuple(paths) for (pool, _), paths in groups.items() if len(paths) > 1 and _is_pool(pool, mounts)
    )


def _is_pool(pool: str, mounts: Sequence[Mount]) -> bool:
    return any(mount.device.startswith(pool + "/") for mount in mounts)


def short_of_space(mounts: Sequence[Mount]) -> tuple[str, ...]:
    """Paths that are nearly full, in bytes or inodes. Decided by what is left: percentages are rounded up."""
    return tuple(mount.path for mount in mounts if _is_short(mount))


_NEARLY_FULL = 0.9
_STILL_ROOM = 100 << 30
_STILL_INODES = 1_000_000


def _is_short(mount: Mount) -> bool:
    shown = mount.shown
    if (
        mount.device in PSEUDO
        or mount.device.startswith("/dev/loop")
        or (shown.fstype or "") in READ_ONLY_BY_NATURE
        or shown.capacity_meaningless
    ):
        return False
    room = _used_share(shown.used_bytes, shown.avail_bytes)
    if room is not None and room >= _NEARLY_FULL and (shown.avail_bytes or 0) < _STILL_ROOM:
        return True
    names = _used_share(shown.inodes_used, shown.inodes_free)
    return names is not None and names >= _NEARLY_FULL and (shown.inodes_free or 0) < _STILL_INODES


def _used_share(used: int | None, free: int | None) -> float | None:
    if used is None or free is None or used + free <= 0:
        return None
    return used / (used + free)
