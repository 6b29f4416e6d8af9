"""Which mounts of a box are worth a look: where runs write, where rented disks lie; no kernel interfaces."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from tui.box.parsers.mount_kinds import PSEUDO, READ_ONLY_BY_NATURE, is_file_bind
from tui.box.parsers.report import Mount

MOST = 24
"""Mounts read in one tick; each takes a child of its own."""

_NEVER_BELOW = (
    "/proc", "/sys", "/dev", "/run", "/etc", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/boot", "/snap",
    "/var/run", "/var/snap", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers",
    "/var/lib/kubelet", "/var/lib/rancher", "/var/lib/lxcfs", "/opt/nvidia", "/usr/lib/wsl", "/mnt/wslg",
    "/System", "/private/var/vm", "/Library/Developer",
)  # fmt: skip
_MEMORY_ONLY = frozenset({"ramfs", "devfs", "overlayfs-lower"})
_DATA = re.compile(
    r"/(?:root/autodl|workspace|mnt|data|scratch|media|home|hy-tmp|openbayes|gemini|fs|nas|nfs|share|tmp|"
    r"ephemeral|lambda|runpod|vol|pfs|cfs|oss|cos|s3|Users)"
)


def absolute(path: str, home: str) -> str:
    """A path as the box will find it: relative ones start in the login folder, ``~/`` too."""
    if path == "~" or path.startswith("~/"):
        path = path[2:]
    return posixpath.normpath(posixpath.join(home or "/", path))


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that `path` lies on by its spelling; a symbolic link may lead elsewhere."""
    above = [mount for mount in mounts if is_below(path, mount.path)]
    return max(above, key=lambda mount: len(mount.path), default=None)


def is_below(path: str, folder: str) -> bool:
    return folder == "/" or path == folder or path.startswith(folder.rstrip("/") + "/")


def choose(mounts: Sequence[Mount], wanted: Iterable[str], home: str) -> tuple[Mount, ...]:
    """The mounts to read, most wanted first, at most `MOST`.

    Args:
        mounts: all of the box, later ones covering earlier ones.
        wanted: absolute paths whose mounts are always read.
        home: the login folder; its mount is always read.
    """
    asked = {mount.path for path in wanted if (mount := mount_of(path, mounts))}
    own = mount_of(home, mounts)
    first = {"/", "/dev/shm", own.path if own else "/"}  # noqa: S108

    def rank(mount: Mount) -> int:
        if mount.path in asked:
            return 0
        if mount.path in first:
            return 1
        return 2 if _DATA.match(mount.path) else 3

    worth = [mount for mount in mounts if mount.path in asked | first or _holds_data(mount)]
    return tuple(sorted(worth, key=rank)[:MOST])


def _holds_data(mount: Mount) -> bool:
    kind = mount.shown.fstype or ""
    if kind in PSEUDO | READ_ONLY_BY_NATURE | _MEMORY_ONLY or is_file_bind(mount.path, kind):
        return False
    if kind == "overlay" and mount.path != "/":
        return False  # another container's root, seen from its host
    return not any(is_below(mount.path, folder) for folder in _NEVER_BELOW)
