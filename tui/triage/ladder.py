"""The way out of a full file system: what is there, what comes back by itself, and what is left to find.

Pure. Only paths whose content is proven to come back are ever proposed, each with its identity; whatever is
active, a checkpoint, a result or simply not known is protected. Making the experiment smaller is no way out.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui.model.storage import Ladder, Place, Protected, Reclaimable, Resource
from tui.model.text import SafeText, safe

KEPT = 12
"""Rows of each list; the largest are kept."""
MOST_RECLAIM = 40
TARGET_PCT = 85.0

KINDS: dict[str, tuple[str, str]] = {
    "pip": ("pip cache", "holds only what pip downloads or builds again"),
    "hf": ("Hugging Face cache", "a repository's blobs, refs and snapshots; the hub has them"),
    "conda": ("conda packages", "unpacked and packed downloads; conda fetches them again when it needs them"),
    "pycache": ("bytecode", "only compiled Python; written again from the sources"),
    "tagged": ("tagged cache", "its program marked it as a cache with CACHEDIR.TAG"),
    "triton": ("kernel cache", "compiled kernels; compiled again at the next start"),
    "core": ("core dump", "the memory image of a crashed process; no run reads it"),
    "trash": ("trash", "what somebody deleted in a file browser already"),
}
"""Kind, and what shows that it is safe to let go."""
FOR_EVER = frozenset({"core", "trash"})
"""Kinds that no run needs and nothing brings back."""

SAME = '[ "$(stat -c %d:%i:%Y "$p")" = "$id" ]'
"""Shell: what lies at ``$p`` is what was looked at. A link is not followed."""
ALONE = '{ grep -qF " $m/" /proc/self/mountinfo; [ $? = 1 ]; }'
"""Shell: nothing is mounted below ``$m``, spelled as the kernel spells it; unknown is no.

``find -xdev`` alone goes into a bind mount of the same file system, and busybox's also into any other.
"""
TAKE = 'find "$p" -xdev -depth -delete'
"""Shell: remove ``$p`` and what lies below it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate as the survey saw it; `path` is exact."""

    kind: str
    path: str
    identity: str
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Survey:
    """What one walk over one mount gave. Paths are exact and not fit to be shown.

    Attributes:
        used_bytes, size_bytes, used_inodes, inodes: None where the file system does not tell.
        quota_used, quota_limit: of the quota that presses most, in bytes; None without one.
        open_paths: files below the mount that a process has open or mapped, with its pid.
        writers: (pid, path, command) of files that are open for writing.
        recent: directories in which files were written within the last ten minutes, with how many.
        unread: what could not be looked at, in words.
        whole: the walk came to its end.
    """

    mount: str
    source: str = ""
    fstype: str = ""
    used_bytes: int | None = None
    size_bytes: int | None = None
    used_inodes: int | None = None
    inodes: int | None = None
    quota_used: int | None = None
    quota_limit: int | None = None
    by_bytes: tuple[tuple[str, int], ...] = ()
    by_files: tuple[tuple[str, int], ...] = ()
    found: tuple[Found, ...] = ()
    open_paths: tuple[tuple[str, int], ...] = ()
    writers: tuple[tuple[int, str, str], ...] = ()
    recent: tuple[tuple[str, int], ...] = ()
    unread: tuple[str, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Kept:
    """Paths of the watched runs that must not be touched, with what they are: ``checkpoint``, ``log`` …"""

    paths: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """How the use grows: per second, and for how many seconds the run still goes on. None: not known."""

    per_s: float | None = None
    left_s: float | None = None

    @property
    def more(self) -> int | None:
        """What the rest of the run will still add."""
        return None if self.per_s is None or self.left_s is None else max(0, round(self.per_s * self.left_s))


def pressing(survey: Survey) -> Resource:
    """The resource that is nearest to its end."""
    shares: list[tuple[float, Resource]] = [
        (_share(survey.quota_used, survey.quota_limit), "quota"),
        (_share(survey.used_inodes, survey.inodes), "inodes"),
        (_share(survey.used_bytes, survey.size_bytes), "bytes"),
    ]
    return max(shares, key=lambda pair: pair[0])[1]


def _share(used: int | None, limit: int | None) -> float:
    return used / limit if used is not None and limit else 0.0


def ladder(
    survey: Survey,
    *,
    box: str,
    at: float,
    resource: Resource | None = None,
    kept: Kept = Kept(),
    outlook: Outlook = Outlook(),
) -> Ladder:
    """Work the ladder out.

    Args:
        at: when the survey was taken, seconds since the epoch.
        resource: what runs out; by default what is nearest to its end.
        kept: what the watched runs need.
        outlook: growth of that resource.
    """
    what = resource or pressing(survey)
    used, limit = _figures(survey, what)
    reclaim, protected = _sorted_out(survey, kept, what)
    to_free = None if used is None or not limit else max(0, used - int(limit * TARGET_PCT / 100))
    frees = sum(_amount(one, what) for one in reclaim)
    shortfall = None if to_free is None else max(0, to_free - frees)
    return Ladder(
        box=box,
        mount=safe(survey.mount),
        source=safe(survey.source),
        fstype=safe(survey.fstype),
        resource=what,
        used=used,
        limit=limit,
        at=at,
        target_pct=TARGET_PCT,
        largest=_largest(survey, what),
        writers=_writers(survey),
        protected=(*protected, *_unknown(survey, what, reclaim, protected)),
        reclaim=reclaim,
        to_free=to_free,
        frees=frees,
        shortfall=shortfall,
        expand_by=_expand(used, limit, frees, outlook),
        unread=_unread(survey),
    )


def _figures(survey: Survey, what: Resource) -> tuple[int | None, int | None]:
    return {
        "bytes": (survey.used_bytes, survey.size_bytes),
        "inodes": (survey.used_inodes, survey.inodes),
        "quota": (survey.quota_used, survey.quota_limit),
    }[what]


def _amount(one: Reclaimable | Place, what: Resource) -> int:
    return (one.files if what == "inodes" else one.bytes) or 0


def _expand(used: int | None, limit: int | None, frees: int, outlook: Outlook) -> int | None:
    """How much larger the file system must be so that the rest of the run stays below the target."""
    if used is None or not limit or outlook.more is None:
        return None
    return max(0, round((used - frees + outlook.more) * 100 / TARGET_PCT) - limit)


def _sorted_out(
    survey: Survey, kept: Kept, what: Resource
) -> tuple[tuple[Reclaimable, ...], tuple[Protected, ...]]:
    """The allow-list, and what looked like a cache but is in use or needed."""
    reclaim: list[Reclaimable] = []
    protected: list[Protected] = []
    taken: list[str] = []
    for one in sorted(_single(survey.found), key=lambda f: f.path):
        if any(inside(one.path, outer) for outer in taken):
            continue
        taken.append(one.path)
        if why := _hands_off(one, survey, kept):
            protected.append(Protected(safe(one.path), safe(why), one.bytes, one.files))
        else:
            kind, proof = KINDS[one.kind]
            reclaim.append(
                Reclaimable(
                    safe(one.path), SafeText(kind), SafeText(proof), one.identity, _command(one), one.bytes,
                    one.files, one.kind not in FOR_EVER,
                )
            )  # fmt: skip
    reclaim.sort(key=lambda one: -_amount(one, what))
    return tuple(one for one in reclaim[:MOST_RECLAIM] if _amount(one, what)), tuple(protected[:KEPT])


def _single(found: Iterable[Found]) -> list[Found]:
    """A hub whose repositories are candidates themselves is not one: the operator chooses among them."""
    every = list(found)
    repositories = [f.path for f in every if f.kind == "hf"]
    return [
        f
        for f in every
        if f.kind in KINDS and not (f.kind == "tagged" and any(inside(r, f.path) for r in repositories))
    ]


def _hands_off(one: Found, survey: Survey, kept: Kept) -> str:
    """Why a candidate is left alone; empty where nothing speaks against it."""
    if safe(one.path) != one.path:
        return "its name cannot be shown exactly, so no exact command can be given"
    if one.path.rstrip("/") == survey.mount.rstrip("/"):
        return "it is the mount itself"
    if why := needed(one.path, kept):
        return why
    for path, pid in survey.open_paths:
        if inside(path, one.path):
            return f"in use by pid {pid}"
    for folder, _ in survey.recent:
        if inside(folder, one.path):
            return "written to within the last ten minutes"
    return ""


def needed(path: str, kept: Kept) -> str:
    """Why a watched run needs what lies at a path; empty where none does."""
    roles = (role for inner, role in kept.paths if inside(inner, path))
    return next((f"the {role} of a watched run lies there" for role in roles), "")


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    folder = folder.rstrip("/")
    return path == folder or path.startswith(folder + "/")


def mounted_as(path: str) -> str:
    """A path as ``/proc/self/mountinfo`` spells it (proc(5): blanks and backslashes are octal)."""
    return path.replace("\\", r"\134").replace(" ", r"\040")


def _command(one: Found) -> SafeText:
    """Removes exactly this path on exactly this file system, and only while it is what was looked at."""
    path, mount, identity = map(shlex.quote, (one.path, mounted_as(one.path), one.identity))
    return SafeText(f"(p={path}; m={mount}; id={identity}; {SAME} && {ALONE} && {TAKE})")


def _largest(survey: Survey, what: Resource) -> tuple[Place, ...]:
    if what == "inodes":
        return tuple(Place(safe(path), files=count) for path, count in survey.by_files[:KEPT])
    return tuple(Place(safe(path), bytes=size) for path, size in survey.by_bytes[:KEPT])


def _writers(survey: Survey) -> tuple[SafeText, ...]:
    open_now = [safe(f"pid {pid} writes {path} ({command})", 300) for pid, path, command in survey.writers]
    new = [safe(f"{count} files written in the last 10 min in {path}", 300) for path, count in survey.recent]
    return (*new[: KEPT // 2], *open_now[: KEPT // 2])


_ROLES = (("export", "a sealed result"), ("active", "a run at work"), ("quarantine", "kept for inspection"))


def _unknown(
    survey: Survey, what: Resource, reclaim: Sequence[Reclaimable], protected: Sequence[Protected]
) -> tuple[Protected, ...]:
    """The largest places that nothing proves to be regenerable: they stay, and it is said why."""
    known = [*(str(one.path) for one in reclaim), *(str(one.path) for one in protected)]
    rows: list[Protected] = []
    for place in _largest(survey, what):
        path = str(place.path)
        if any(inside(path, k) or inside(k, path) for k in known) or path == survey.mount:
            continue
        parts = path.split("/")
        role = next((why for name, why in _ROLES if name in parts), "nothing proves that it comes back")
        if any(inside(path, str(row.path)) for row in rows):
            continue
        rows.append(Protected(place.path, SafeText(role), place.bytes, place.files))
    return tuple(rows[:KEPT])


def _unread(survey: Survey) -> tuple[SafeText, ...]:
    late = () if survey.whole else ("the walk was ended before it was through: figures are lower bounds",)
    return tuple(safe(text) for text in (*survey.unread, *late))
