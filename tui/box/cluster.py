"""``kubectl`` of this computer, one question at a time. Every word is an argument; there is no shell."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tui.box.transport import Completed
from tui.model.failure import Exit, Failure
from tui.model.text import safe

PROGRAM = "kubectl"
END_S = 2.0
STDERR_KEPT = 64 << 10
_BUFFER = 256 << 10


def path_of(kind: str, namespace: str, name: str) -> str:
    """Where the API server has a ``pod`` or a ``job``."""
    group = "/apis/batch/v1" if kind == "job" else "/api/v1"
    return f"{group}/namespaces/{namespace}/{kind}s/{name}"


def uid_of(told: Any) -> str | None:
    """The uid of an object as the API server tells it: one of the same name made later has another."""
    metadata = told.get("metadata") if isinstance(told, dict) else None
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return uid if isinstance(uid, str) and uid else None


def current_context() -> str | None:
    """The context that a bare kubectl would use now; None where there is none, or no kubectl."""
    found = shutil.which(PROGRAM)
    if found is None:
        return None
    words = [found, "config", "current-context"]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() or None if done.returncode == 0 else None


@dataclass(frozen=True, slots=True)
class Cluster:
    """One context of the kubeconfig.

    Attributes:
        context: None: the current one.
        kubeconfig: a file of its own; None: what kubectl finds by itself.
    """

    context: str | None = None
    kubeconfig: str | None = None
    program: str = PROGRAM

    def argv(self, words: Sequence[str | bytes], timeout: float | None = None) -> list[str | bytes]:
        """The argument vector. Raises Failure where there is no kubectl."""
        found = shutil.which(self.program)
        if found is None:
            raise Failure(
                "This computer has no kubectl.",
                means="Nothing in a cluster can be asked or reached.",
                do="Install it (your cloud's command line brings it), and check `kubectl get pods`.",
                exit=Exit.UNREACHABLE,
                code="no-kubectl",
            )
        options = [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        options += [f"--context={self.context}"] if self.context else []
        options += [f"--request-timeout={timeout:.0f}s"] if timeout else []
        return [found, *options, *words]

    async def ask(
        self, words: Sequence[str], *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 16 << 20
    ) -> Completed:
        """Run kubectl once.

        Args:
            timeout: seconds of one request to the API server; kubectl itself gets a few more.

        Raises:
            Failure: there is no kubectl. TimeoutError: it did not end; it was ended.
        """
        began = time.monotonic()
        process = await start(self.argv(words, timeout))
        try:
            async with asyncio.timeout(timeout + 5):
                out, err = await process.communicate(stdin)
        finally:
            await asyncio.shield(end(process))
        took = time.monotonic() - began
        status = -1 if process.returncode is None else process.returncode  # not known is no success
        return Completed(status, out[:limit], err[:STDERR_KEPT], took, len(out) > limit)

    async def certain(self) -> None:
        """See that it is said which cluster is meant: the current context is whatever any terminal used last.

        Where the kubeconfig has no current context there is nothing to mix up: such is it inside a pod.

        Raises:
            Failure: no context is named and one is current. TimeoutError: kubectl did not end.
        """
        if self.context:
            return
        done = await self.ask(["config", "current-context"], timeout=5.0)
        now = safe(done.stdout.decode("utf-8", "replace").strip(), 253)
        if done.exit == 0 and now:
            raise Failure(
                "No context of the kubeconfig is named for this box.",
                means=f"The current one, {now}, is whatever was used last; nothing was asked.",
                do=f"Put it behind its transport if it is the one: pod:NAMESPACE/NAME@{now}.",
                exit=Exit.USAGE,
                code="no-context",
            )

    async def delete(self, path: str, uid: str, timeout: float = 15.0) -> Completed:
        """Delete one object, with what it owns, only while it is the one of this uid. It is not waited for.

        ``kubectl delete`` takes no precondition by itself; with ``--raw`` (since 1.18) it sends what stands
        on its stdin as the request's DeleteOptions. Another uid is answered with 409, Conflict.

        Args:
            path: of the object at the API server.

        Raises:
            Failure: there is no kubectl. TimeoutError: it did not end.
        """
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": uid},
        }
        words = ["delete", f"--raw={path}", "--filename=-"]
        return await self.ask(words, stdin=json.dumps(options).encode(), timeout=timeout)

    async def get(self, words: Sequence[str], timeout: float = 15.0) -> tuple[Any, str]:
        """What ``kubectl get -o json`` answers, decoded, and what it said on stderr; None where it failed."""
        done = await self.ask(["get", *words, "-o", "json"], timeout=timeout)
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.exit != 0:
            return None, said or f"kubectl ended with {done.exit}"
        try:
            return json.loads(done.stdout), said
        except ValueError:
            return None, "kubectl's answer is no JSON"


async def start(argv: Sequence[str | bytes]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_BUFFER,
        env=os.environ,
    )


async def end(process: asyncio.subprocess.Process) -> None:
    """End kubectl: by the end of its stdin, which ends the frame in the container, then by force. Bounded."""
    if process.stdin is not None:
        process.stdin.close()
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait({waiting}, timeout=0.0 if process.returncode is not None else END_S)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.wait({waiting}, timeout=1.0)
