"""Carries a secret's proof out: from the box over its own route; from here where the box can't ask."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tui.box.local import LocalTransport
from tui.box.transport import Script, Transport
from tui.model.text import safe
from tui.setup.proofs import Answer, Call, Proof, Remote, Request, Told, proven

CALL_S = 20
_MOST = 256 << 10
_STATUS = re.compile(rb"HTTP/[0-9.]+ ([0-9]{3})")
_SOURCED = re.compile(r"(?:source|\.)\s+(/\S+)")
_WHY_CURL = {
    6: "its name is not known there",
    7: "no connection",
    28: f"no answer within {CALL_S} s",
    35: "no TLS",
    60: "its certificate is not trusted there",
}

# $1 a python to try first. What can ask on the box: curl, a python, or none.
_TOOL = r"""
command -v curl >/dev/null 2>&1 && { echo curl; exit 0; }
for p in "$1" python3 python; do
  [ -n "$p" ] && "$p" -I -c 'import ssl, urllib.request' >/dev/null 2>&1 && { echo "$p"; exit 0; }
done
echo none
"""

# $1 a file that sets the way out, or nothing; $2 curl or a python; $3 what python runs. stdin: the request.
_CALL = r"""
[ -n "$1" ] && [ -r "$1" ] && . "$1" </dev/null >/dev/null 2>&1
if [ "$2" = curl ]; then curl -q -K - 2>/dev/null || echo "none $?"; else "$2" -I -c "$3"; fi
"""

# No redirect is followed: it would carry the secret to another host.
_PYTHON = r"""
import json, sys, urllib.error, urllib.request
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *what):
        return None
asked = json.load(sys.stdin)
request = urllib.request.Request(asked["url"], asked["body"].encode() or None, asked["headers"])
try:
    try:
        got = urllib.request.build_opener(Stay).open(request, timeout=asked["timeout"])
    except urllib.error.HTTPError as refused:
        got = refused
    head = "".join("%s: %s\r\n" % pair for pair in got.headers.items())
    sys.stdout.write("HTTP/1.1 %d x\r\n%s\r\n" % (got.getcode(), head))
    sys.stdout.flush()
    sys.stdout.buffer.write(got.read(200000))
except Exception as error:
    print("none", type(getattr(error, "reason", error)).__name__)
"""

# $1 the file of secrets, $2 the remote, $3 as above. What rclone says, then how it ended.
_LIST = r"""
command -v rclone >/dev/null 2>&1 || { echo none; exit 0; }
[ -n "$3" ] && [ -r "$3" ] && . "$3" </dev/null >/dev/null 2>&1
case $1 in '~/'*) f=$HOME/${1#??} ;; *) f=$1 ;; esac
while IFS= read -r l; do case $l in [A-Za-z_]*=*) export "$l" ;; esac; done <"$f"
RCLONE_ASK_PASSWORD=false; export RCLONE_ASK_PASSWORD
if [ "$2" = :s3: ]; then
  RCLONE_S3_ENV_AUTH=true; RCLONE_S3_PROVIDER=${RCLONE_S3_PROVIDER:-AWS}
  e=${AWS_ENDPOINT_URL_S3:-$AWS_ENDPOINT_URL}
  [ -n "$e" ] && { RCLONE_S3_PROVIDER=Other; RCLONE_S3_ENDPOINT=$e; export RCLONE_S3_ENDPOINT; }
  export RCLONE_S3_ENV_AUTH RCLONE_S3_PROVIDER
fi
rclone lsd --retries 1 --low-level-retries 1 --contimeout 10s --timeout 15s -- "$2" </dev/null 2>&1
echo "exit $?"
"""


@dataclass(slots=True)
class Prover:
    """Proves the secrets of one box.

    Args:
        file: where they lie on the box.
        values: the secrets, so that none is ever repeated in what rclone says.
        python: the box's own interpreter, where the platform names one.
        hook: the line by which the platform's way out is set up, where it has one.
    """

    box: Transport
    file: str
    values: Mapping[str, str]
    python: str = ""
    hook: str = ""
    _tool: str = ""

    async def tell(self, proof: Proof) -> str:
        """One line: what was proven of which secrets, or why nothing was. Raises LinkLost, TimeoutError."""
        names = ", ".join(proof.names)
        if isinstance(proof, Told):
            return _line(names, proof.why)
        if isinstance(proof, Remote):
            return _line(names, await self._listed(proof))
        return _line(names, await self._called(proof))

    async def _called(self, call: Call) -> str:
        if not self._tool:
            why = "what can ask a web address?"
            told = await self.box.run(Script(_TOOL, (self.python,), why=why), timeout=30)
            self._tool = told.stdout.decode("utf-8", "replace").strip() or "none"
        if self._tool != "none":
            said = await _asked(self.box, call.request, self._tool, self._way_out())
            return said if isinstance(said, str) else proven(call, said)
        said = await _asked(LocalTransport(), call.request, sys.executable, "")
        line = said if isinstance(said, str) else proven(call, said)
        return f"{line}; asked from here: the box has neither curl nor python3"

    async def _listed(self, proof: Remote) -> str:
        why = f"list {proof.remote}"
        args = (self.file, proof.remote, self._way_out())
        done = await self.box.run(Script(_LIST, args, why=why), timeout=90, limit=_MOST)
        return listed(proof.remote, done.stdout.decode("utf-8", "replace"), self.values)

    def _way_out(self) -> str:
        found = _SOURCED.match(self.hook)
        return found[1] if found else ""


def _line(names: str, said: str) -> str:
    """The verdict stands before the names, as in all steps."""
    verdict, colon, rest = said.partition(": ")
    if colon and verdict in ("mind", "unknown"):
        return f"{verdict}: {names}: {rest}"
    return f"{names}: {said}"


async def _asked(transport: Transport, request: Request, tool: str, hook: str) -> Answer | str:
    """The answer; in words why there is none."""
    stdin = _curl(request) if tool == "curl" else _python(request)
    script = Script(_CALL, (hook, tool, _PYTHON), why=f"GET {request.host} with the secret")
    done = await transport.run(script, stdin=stdin, timeout=CALL_S + 15, limit=_MOST)
    found = answered(done.stdout)
    if found is not None:
        return found
    code = done.stdout.decode("ascii", "replace").strip().rpartition("none ")[2]
    why = _WHY_CURL.get(int(code), f"curl {code}") if code.isdecimal() else safe(code, 40) or "no answer"
    return f"unknown: {safe(request.host, 80)} could not be asked: {why}"


def _curl(request: Request) -> bytes:
    """A curl config: it is read from stdin, so that nothing of it stands in an argument."""
    rows = [f"url = {_quoted(request.url)}", "silent", "include", f"max-time = {CALL_S}"]
    rows += [f"header = {_quoted(f'{name}: {value}')}" for name, value in request.headers.items()]
    rows += [f"data-raw = {_quoted(request.body)}"] if request.body else []
    return "".join(f"{row}\n" for row in rows).encode()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _python(request: Request) -> bytes:
    asked = {
        "url": request.url,
        "headers": dict(request.headers),
        "body": request.body,
        "timeout": CALL_S,
    }
    return json.dumps(asked).encode()


def answered(raw: bytes) -> Answer | None:
    """The last answer in what came back: a proxy's own comes before it. None where there is none."""
    status, headers = 0, dict[str, str]()
    while found := _STATUS.match(raw):
        head, _, raw = raw.partition(b"\r\n\r\n")
        rows = (row.partition(":") for row in head.decode("latin-1").split("\r\n")[1:])
        status, headers = int(found[1]), {name.strip().lower(): value.strip() for name, _, value in rows}
    if not status:
        return None
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    return Answer(status, headers, data)


def listed(remote: str, said: str, values: Mapping[str, str]) -> str:
    """What ``rclone lsd`` proved."""
    if said.strip() == "none":
        return "stored, not verified: rclone is not on the box"
    rows = said.strip().split("\n")
    folders = sum(bool(re.match(r"\s+-?\d+ \d{4}-", row)) for row in rows)
    if rows[-1] == "exit 0":
        return f"rclone lists {remote} with it, {folders} folders; may write: not told"
    why = " ".join(rows[:-1]).rpartition("Failed to ")[2].strip() or "no reason was given"
    why = re.sub(r"\s+", " ", re.sub(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ", "", why))
    for value in values.values():
        if len(value) > 3:
            why = why.replace(value, "…")
    return f"mind: rclone can't list {remote} {safe(why, 200)}"
