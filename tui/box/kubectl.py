"""``kubectl`` of this computer: questions to a cluster, and a transport into a pod's container.

It runs with the operator's own kubeconfig and is never given through a shell: every word is an argument.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui.box.command_log import OnCommand
from tui.box.errors import CommandRefused, ConnectFailure, refused, unreachable
from tui.box.parsers.containers import Pod, read_json
from tui.box.relayed import RelayedTransport
from tui.box.transport import Completed, LinkLost
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.text import safe
from tui.model.via import PodExec

if TYPE_CHECKING:
    from tui.box.forward import Forward

PROGRAM = "kubectl"
_STDERR_KEPT = 64 << 10
_BUFFER = 256 << 10
_WRITE_S = 30.0
_END_S = 2.0
_SILENT_S = 1.0
_CHUNK = 32 << 10

_AWAY = re.compile(
    r"Unable to connect to the server|was refused|deadline exceeded|i/o timeout|TLS handshake|no such host"
    r"|\bEOF\b|no route to host|connection reset|ServiceUnavailable|etcdserver|client rate limiter"
)
_DENIED = re.compile(r"\(Forbidden\)|\(Unauthorized\)|must be logged in|is forbidden|asked for the client to")
_NOT_FOUND = re.compile(r"\(NotFound\)")
_NO_SHELL = re.compile(r"exec: .{0,3}/bin/sh|executable file not found|no such file or directory")


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
        process = await _start(self.argv(words, timeout))
        try:
            async with asyncio.timeout(timeout + 5):
                out, err = await process.communicate(stdin)
        finally:
            await asyncio.shield(_end(process))
        took = time.monotonic() - began
        return Completed(process.returncode or 0, out[:limit], err[:_STDERR_KEPT], took, len(out) > limit)

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


async def _start(argv: Sequence[str | bytes]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_BUFFER,
        env=os.environ,
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    """End kubectl: by the end of its stdin, which ends the frame in the container, then by force. Bounded."""
    if process.stdin is not None:
        process.stdin.close()
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait({waiting}, timeout=0.0 if process.returncode is not None else _END_S)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.wait({waiting}, timeout=1.0)


class _Exec:
    """One ``kubectl exec``; implements `tui.box.relayed.Carried`."""

    def __init__(self, process: asyncio.subprocess.Process, what: str) -> None:
        self._process = process
        self._what = what
        self._stderr = b""
        self._tail = b""
        self._listening = asyncio.ensure_future(self._listen())

    @property
    def exit(self) -> int | None:
        return self._process.returncode

    @property
    def stderr(self) -> bytes:
        return self._stderr + self._tail

    async def read(self, size: int = 65536) -> bytes:
        assert self._process.stdout is not None
        reading = asyncio.ensure_future(self._process.stdout.read(size))
        try:
            # A child of the carrier may hold its pipes open: silence after its end is the end.
            while not (await asyncio.wait((reading,), timeout=_SILENT_S))[0]:
                if self._process.returncode is not None:
                    return b""
        finally:
            reading.cancel()
        data = reading.result()
        if not data:
            await asyncio.wait((self._listening,), timeout=_END_S)
            await self._process.wait()
        return data

    async def write(self, data: bytes) -> None:
        stdin = self._process.stdin
        try:
            for start in range(0, len(data), _CHUNK):
                if stdin is None or stdin.is_closing():
                    raise LinkLost(f"The command has ended: {self._what}.")
                stdin.write(data[start : start + _CHUNK])
                async with asyncio.timeout(_WRITE_S):
                    await stdin.drain()
        except (TimeoutError, OSError):
            raise LinkLost(f"The container takes no input: {self._what}.") from None

    async def close(self) -> None:
        await _end(self._process)
        self._listening.cancel()
        stream = self._process.stdout
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                while stream is not None and await stream.read(1 << 20):
                    pass

    async def _listen(self) -> None:
        """Keep the beginning of stderr, and its end, where the trailer is."""
        stream = self._process.stderr
        while stream is not None and (data := await stream.read(8192)):
            room = _STDERR_KEPT - len(self._stderr)
            self._stderr += data[:room]
            self._tail = (self._tail + data[max(0, room) :])[-1024:]


class PodBox(RelayedTransport):
    """A pod's container as a box: a `tui.workers.box.BoxTransport`.

    Attributes:
        uid: of the pod; one of the same name made later is another machine.
    """

    host_key = ""

    def __init__(
        self, name: str, via: PodExec, cluster: Cluster, uid: str | None, on_command: OnCommand
    ) -> None:
        super().__init__(name, self._carried, self._refused, on_command=on_command)
        self.via = via
        self.uid = uid
        self._cluster = cluster

    async def _carried(self, argv: list[bytes], why: str) -> _Exec:
        container = [f"--container={self.via.container}"] if self.via.container else []
        words: list[str | bytes] = ["exec", f"--namespace={self.via.namespace}", "--stdin", "--quiet"]
        words += [*container, self.via.pod, "--", *argv]
        return _Exec(await _start(self._cluster.argv(words)), f"{self.name}: {why}")

    def _refused(self, said: str) -> Failure:
        return _why_not(self.name, said)

    async def about(self) -> dict[str, Any]:
        """The pod as the API server tells it. Raises Failure, LinkLost, TimeoutError."""
        told, said = await self._cluster.get(_pod_words(self.via))
        if not isinstance(told, dict):
            raise _why_not(self.name, said)
        return told

    async def create(self, manifest: Mapping[str, Any]) -> bool:
        """Create an object beside the pod; False where one of its name is there already.

        Raises:
            Failure: the cluster refused it. LinkLost, TimeoutError: whether it was made is unknown.
        """
        words = ["create", f"--namespace={self.via.namespace}", "--validate=ignore", "--filename=-"]
        done = await self._cluster.ask(words, stdin=json.dumps(manifest).encode(), timeout=20.0)
        said = done.stderr.decode("utf-8", "replace")
        if done.exit == 0 or "(AlreadyExists)" in said:
            return done.exit == 0
        if _AWAY.search(said):
            raise LinkLost(f"{self.name}: the cluster does not answer: {safe(said.strip(), 200)}.")
        raise Failure(
            f"The cluster did not take it: {safe(said.strip(), 300)}.",
            means="Nothing was made.",
            code="not-created",
        )

    async def forget_job(self, job: str) -> None:
        """Delete a Job that is over, and wait until its name is free. Raises Failure, TimeoutError."""
        words = ["delete", "job", job, f"--namespace={self.via.namespace}", "--cascade=foreground"]
        done = await self._cluster.ask([*words, "--wait=true", "--timeout=20s"], timeout=25.0)
        if done.exit != 0:
            said = done.stderr.decode("utf-8", "replace")
            raise Failure(
                f"The Job {job} of an earlier attempt can't be deleted: {safe(said.strip(), 200)}.",
                means="Nothing was started.",
                code="not-created",
            )

    async def standing(self, job: str) -> str | None:
        """A Job beside the pod, as ``WORD|reason|where``; ``""`` where there is none; None: not known.

        Raises:
            TimeoutError: kubectl did not end.
        """
        told, said = await self._cluster.get(["job", job, f"--namespace={self.via.namespace}"])
        if not isinstance(told, dict):
            return "" if _NOT_FOUND.search(said) and "namespaces" not in said else None
        pods, _ = await self._cluster.get(
            ["pods", f"--namespace={self.via.namespace}", f"--selector=job-name={job}"]
        )
        return job_word(told, pods if isinstance(pods, dict) else {})

    async def wait_closed(self) -> LinkLost | None:
        await asyncio.Event().wait()  # there is no standing connection that could end by itself
        return None

    async def alive(self, timeout: float = 3.0) -> bool:
        try:
            told, _ = await self._cluster.get(_pod_words(self.via), timeout)
        except (Failure, TimeoutError):
            return False
        return isinstance(told, dict) and _uid(told) == self.uid

    async def forward_local(self, port: int, local_port: int = 0) -> Forward:
        context = f" --context={self.via.context}" if self.via.context else ""
        raise Failure(
            "rgt forwards no port of a pod.",
            do=f"kubectl{context} -n {self.via.namespace} port-forward {self.via.pod} {port}",
            code="no-forward",
        )

    async def close(self) -> None:
        """There is no connection to close; channels are closed by whoever opened them."""


def job_word(job: dict[str, Any], pods: dict[str, Any]) -> str:
    """How a Job stands, in a scheduler's words: that no pod of it runs yet is waiting."""
    report = read_json(json.dumps(job))
    state = report.pods[0].state if report and report.pods else "unknown"
    ended = {"completed": "COMPLETED", "failed": "FAILED", "paused": "SUSPENDED"}.get(state)
    if ended:
        return f"{ended}||"
    listed = read_json(json.dumps(pods)) if pods else None
    found = listed.pods if listed and listed.pods else ()
    for pod in found:
        if pod.state in ("running", "terminating"):
            return f"RUNNING||{pod.name}"
    waiting = next((pod for pod in found if pod.state in ("pending", "starting", "launch_failed")), None)
    why = ": ".join(filter(None, (waiting.reason, waiting.message))) if waiting else "no pod of it is there"
    return f"PENDING|{safe(why, 200).replace('|', '/')}|"


async def enter_pod(
    instance: Instance, via: PodExec, on_command: OnCommand, cluster: Cluster | None = None
) -> PodBox:
    """See that a process can be started in the pod.

    Raises:
        ConnectFailure: the cluster does not answer, or the pod waits, is over, or is not there.
        Failure: this computer has no kubectl.
    """
    cluster = cluster or Cluster(via.context)
    try:
        told, said = await cluster.get(_pod_words(via))
    except TimeoutError:
        raise unreachable(f"{instance.name}: kubectl did not answer in time.") from None
    if not isinstance(told, dict):
        failure = _why_not(instance.name, said)
        raise failure if isinstance(failure, ConnectFailure) else unreachable(failure.what)
    report = read_json(json.dumps(told))
    pod = report.pods[0] if report and report.pods else None
    if pod is not None and (against := closed_pod(instance.name, pod)) is not None:
        raise against
    return PodBox(instance.name, via, cluster, _uid(told), on_command)


def closed_pod(name: str, pod: Pod) -> ConnectFailure | None:
    """Why nothing can be started in this pod; None where something may."""
    why = safe(": ".join(filter(None, (pod.reason, pod.message))), 200)
    told = f" ({why})" if why else ""
    if pod.state in ("completed", "failed", "evicted", "node_lost"):
        return unreachable(f"{name}: the pod is over: {pod.state}{told}.", retry=False, code="pod-over")
    if pod.state in ("pending", "starting", "launch_failed", "crash_looping"):
        return unreachable(f"{name}: the pod does not run: {pod.state}{told}.", code="pod-waits")
    return None


def _pod_words(via: PodExec) -> list[str]:
    return ["pod", via.pod, f"--namespace={via.namespace}"]


def _uid(told: dict[str, Any]) -> str | None:
    metadata = told.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return uid if isinstance(uid, str) else None


def _why_not(name: str, said: str) -> Failure:
    """Why kubectl reached no process, from its own words."""
    last = safe(said.strip().split("\n")[-1], 300)
    if re.search(r'\(NotFound\): namespaces? "', said):
        return unreachable(f"{name}: {last}.", do="Check the context: is it this cluster?", retry=False)
    if _NOT_FOUND.search(said):
        return unreachable(
            f"{name}: {last}.",
            do="Pods of a Job have other names at each attempt: kubectl get pods.",
            retry=False,
            code="no-such-pod",
        )
    if _DENIED.search(said):
        return refused(f"{name}: {last}.", do="Check the kubeconfig and your rights (pods/exec).")
    if _AWAY.search(said):
        return LinkLost(f"{name}: the cluster does not answer: {last}.")
    if _NO_SHELL.search(said):
        return CommandRefused(name, f"the container has no /bin/sh: {last}")
    return LinkLost(f"{name}: nothing could be started in the pod: {last or 'no reason was given'}.")
