"""Where a job's inputs are besides the box, on this computer and at their mirror, and whether they agree.

An input that the box has is enough to start; what is missing elsewhere only warns. Other bytes than the job
names stop a launch wherever they were found on the box.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tui.box.transport import Script, Transport
from tui.model.job import Input, Job
from tui.model.text import amount, safe
from tui.runs.preflight import Check, Verdict

HEAD_S = 10.0
"""How long a mirror may take to say whether it has a file."""

HASHED_HERE = 4 << 30
"""Bytes of a file on this computer that is hashed unasked; a larger one is compared by its size."""

_HASH_S = 3600.0

# Paths come in, one a line; ``hash path`` goes out. `$1` is the login's home for ``~/``.
_SUMS = r"""
sum() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"
  elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r <"$1"
  else shasum -a 256 <"$1"; fi | cut -c 1-64
}
while IFS= read -r p; do
  case $p in '~/'*) q=$HOME/${p#??} ;; *) q=$p ;; esac
  [ -f "$q" ] && [ -r "$q" ] && echo "$(sum "$q") $p"
done
exit 0
"""


def here(job: Job, base: Path) -> list[Check]:
    """What of the inputs lies on this computer, as the job says.

    Args:
        base: folder of the job file; `Input.here` is relative to it.
    """
    return [_here(one, base) for one in job.inputs if one.here]


async def mirrored(job: Job, client: httpx.AsyncClient | None = None) -> list[Check]:
    """Ask each mirror whether it has its file, all at once, each within `HEAD_S`."""
    wanted = [one for one in job.inputs if one.mirror]
    if not wanted:
        return []
    asked = client or httpx.AsyncClient(follow_redirects=True, max_redirects=5, timeout=HEAD_S)
    async with asked:
        return list(await asyncio.gather(*(_mirror(asked, one) for one in wanted)))


async def sums(box: Transport, job: Job, paths: tuple[str, ...]) -> list[Check]:
    """Hash on the box every input whose SHA-256 the job names. Takes as long as reading them does.

    Args:
        paths: of the inputs on the box, in the job's order, places filled in.

    Raises:
        LinkLost, SessionsExhausted, TimeoutError.
    """
    named = {path: one.sha256 for path, one in zip(paths, job.inputs, strict=True) if one.sha256}
    body = "".join(f"{path}\n" for path in named).encode()
    if not named:
        return []
    done = await box.run(Script(_SUMS, why="are the inputs what they must be?"), stdin=body, timeout=_HASH_S)
    found = {
        path: digest
        for digest, _, path in (
            line.partition(" ") for line in done.stdout.decode(errors="replace").split("\n")
        )
    }
    return [_summed(path, wanted, found.get(path)) for path, wanted in named.items()]


def _summed(path: str, wanted: str | None, found: str | None) -> Check:
    if found is None:
        return _check("unknown", f"{path} could not be hashed on the box.")
    if found != wanted:
        return _check("stop", f"{path} holds other bytes than the job names: sha256 {found[:12]}….")
    return _check("ok", f"{path} has the SHA-256 that the job names.")


def _here(one: Input, base: Path) -> Check:
    path = base / Path(one.here or "").expanduser()
    try:
        if path.is_dir():
            return _check("ok", f"here: {path} is a folder; it is not compared.")
        size = path.stat().st_size
        if one.bytes is not None and size != one.bytes:
            return _check("warn", f"here: {path} has {size} bytes; the job names {one.bytes}.")
        if one.sha256 is None:
            return _check("ok", f"here: {path} is there, {amount(size)}; the job names no SHA-256.")
        if size > HASHED_HERE:
            return _check("ok", f"here: {path} is there, {amount(size)}; too large to hash unasked.")
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return _check("warn", f"here: {path}: {error.strerror}.")
    if found != one.sha256:
        return _check("warn", f"here: {path} holds other bytes than the job names: sha256 {found[:12]}….")
    return _check("ok", f"here: {path} has the SHA-256 that the job names.")


async def _mirror(client: httpx.AsyncClient, one: Input) -> Check:
    url = one.mirror or ""
    where = _shown(url)
    try:
        async with asyncio.timeout(HEAD_S):
            told = await client.head(url)
            if told.status_code in (403, 405, 501):  # signed addresses often answer GET alone
                async with client.stream("GET", url, headers={"Range": "bytes=0-0"}) as told:
                    pass
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        return _check("unknown", f"mirror: {where} did not answer ({type(error).__name__}).")
    if told.status_code >= 400:
        return _check("warn", f"mirror: {where} does not give it (HTTP {told.status_code}).")
    size = _size(told)
    if size is not None and one.bytes is not None and size != one.bytes:
        return _check("warn", f"mirror: {where} has {size} bytes; the job names {one.bytes}.")
    return _check("ok", f"mirror: {where} has it{'' if size is None else f', {amount(size)}'}.")


def _size(told: httpx.Response) -> int | None:
    if told.headers.get("content-encoding", "identity") != "identity":
        return None  # the length of what travels, not of the file
    _, _, whole = told.headers.get("content-range", "").partition("/")
    length = whole or (told.headers.get("content-length", "") if told.status_code == 200 else "")
    return int(length) if length.isdecimal() and len(length) < 19 else None


def _shown(url: str) -> str:
    """Without user and query, which may be a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or '?'}{parts.path}"


def _check(verdict: Verdict, said: str) -> Check:
    return Check("input", verdict, safe(said, 400))
