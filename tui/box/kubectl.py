"""A pod's container as a box, by ``kubectl exec``.

It runs with the operator's own kubeconfig and is never given through a shell: every word is an argument.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tui.box.cluster import END_S, STDERR_KEPT, Cluster, end, path_of, start, uid_of
from tui.box.command_log import OnCommand
from tui.box.errors import CommandRefused, ConnectFailure, refused, unreachable
from tui.box.parsers.containers import Pod, read_json
from tui.box.relayed import RelayedTransport
from tui.box.transport import LinkLost
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.text import safe
from tui.model.via import JobExec, PodExec

if TYPE_CHECKING:
    from tui.box.forward import Forward

_WRITE_S = 30.0
_SILENT_S = 1.0
_FREE_S = 20.0
_CHUNK = 32 << 10

_AWAY = re.compile(
    r"Unable to connect to the server|was refused|deadline exceeded|i/o timeout|TLS handshake|no such host"
    r"|\bEOF\b|no route to host|connection reset|ServiceUnavailable|etcdserver|client rate limiter"
)
_DENIED = re.compile(r"\(Forbidden\)|\(Unauthorized\)|must be logged in|is forbidden|asked for the client to")
_NOT_FOUND = re.compile(r"\(NotFound\)")
_NO_SHELL = re.compile(r"exec: .{0,3}/bin/sh|executable file not found|no such file or directory")


class _Exec:
    """One ``kubectl exec``; implements `tui.box.relayed.Carried`."""

    def __init__(self, process: asyncio.subprocess.Process, what: str) -> None:
        self._process = process
        self._what = what
        self._stderr = b""
        self._tail = b""
        self._listening = asyncio.ensure_future(self._listen())
        self._reading: asyncio.Future[bytes] | None = None

    @property
    def exit(self) -> int | None:
        return self._process.returncode

    @property
    def stderr(self) -> bytes:
        return self._stderr + self._tail

    async def read(self, size: int = 65536) -> bytes:
        assert self._process.stdout is not None
        ended = False
        # A read that is given up goes on: what it takes meanwhile belongs to the next one.
        reading = self._reading = self._reading or asyncio.ensure_future(self._process.stdout.read(size))
        while not (await asyncio.wait((reading,), timeout=_SILENT_S))[0]:
            # A child of the carrier may hold its pipes open: a whole silence after its end is the end.
            if ended:
                return b""
            ended = self._process.returncode is not None
        self._reading = None
        data = reading.result()
        if not data:
            await asyncio.wait((self._listening,), timeout=END_S)
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
        await end(self._process)
        self._listening.cancel()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait((self._reading,))
        stream = self._process.stdout
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                while stream is not None and await stream.read(1 << 20):
                    pass

    async def _listen(self) -> None:
        """Keep the beginning of stderr, and its end, where the trailer is."""
        stream = self._process.stderr
        while stream is not None and (data := await stream.read(8192)):
            room = STDERR_KEPT - len(self._stderr)
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
        return _Exec(await start(self._cluster.argv(words)), f"{self.name}: {why}")

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
        """Delete a Job that is over, that one and no other, and wait until its name is free.

        Raises:
            Failure: it can't be deleted, or is not over. TimeoutError: kubectl did not end.
        """
        words = ["job", job, f"--namespace={self.via.namespace}"]
        told, said = await self._cluster.get(words)
        if isinstance(told, dict) and (uid := uid_of(told)):
            if not job_word(told, {}).startswith(("COMPLETED", "FAILED")):
                raise _kept(job, "it is not over")
            done = await self._cluster.delete(path_of("job", self.via.namespace, job), uid)
            said = done.stderr.decode("utf-8", "replace")
            until = time.monotonic() + _FREE_S
            while done.exit == 0 and time.monotonic() < until:
                told, said = await self._cluster.get(words)
                if told is None and _NOT_FOUND.search(said):
                    return
                await asyncio.sleep(0.5)
            said = said if done.exit else f"it is still there after {_FREE_S:g} s"
        if not _NOT_FOUND.search(said):
            raise _kept(job, said)

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
        return isinstance(told, dict) and uid_of(told) == self.uid

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
    told = await _told(instance.name, cluster, _pod_words(via))
    report = read_json(json.dumps(told))
    pod = report.pods[0] if report and report.pods else None
    if pod is not None and (against := closed_pod(instance.name, pod)) is not None:
        raise against
    return PodBox(instance.name, via, cluster, uid_of(told), on_command)


async def enter_job(
    instance: Instance, via: JobExec, on_command: OnCommand, cluster: Cluster | None = None
) -> PodBox:
    """See that a process can be started in the pod of a Job that runs now; of several in the newest.

    Raises:
        ConnectFailure: the cluster does not answer, or the Job is not there, is over, or has no running pod.
        Failure: this computer has no kubectl.
    """
    cluster = cluster or Cluster(via.context)
    name, space = instance.name, f"--namespace={via.namespace}"
    job = await _told(name, cluster, ["job", via.job, space])
    pods = await _told(name, cluster, ["pods", space, f"--selector=job-name={via.job}"])
    word, why, _ = job_word(job, pods).split("|")
    if word == "RUNNING":
        return await enter_pod(instance, via.at(_newest_running(pods)), on_command, cluster)
    told = f" ({why})" if why else ""
    over = word in ("COMPLETED", "FAILED")
    state = f"is over: {word}" if over else f"has no pod that runs: {word}"
    raise unreachable(
        f"{name}: Job {via.job} {state}{told}.", retry=not over, code="pod-over" if over else "pod-waits"
    )


def _newest_running(pods: dict[str, Any]) -> str:
    running = [
        (
            (one.get("metadata") or {}).get("creationTimestamp") or "",
            str((one.get("metadata") or {}).get("name")),
        )
        for one in pods.get("items") or ()
        if isinstance(one, dict) and (one.get("status") or {}).get("phase") == "Running"
    ]
    return max(running, default=("", "-"))[1]


async def _told(name: str, cluster: Cluster, words: list[str]) -> dict[str, Any]:
    """What the cluster tells of something. Raises ConnectFailure: nothing, or which cluster is not said."""
    try:
        await cluster.certain()
        told, said = await cluster.get(words)
    except TimeoutError:
        raise unreachable(f"{name}: kubectl did not answer in time.") from None
    except Failure as failure:
        if failure.code != "no-context":
            raise
        what = f"{name}: {failure.what} {failure.means}"
        raise unreachable(what, do=failure.do, retry=False, code="no-context") from None
    if not isinstance(told, dict):
        why = _why_not(name, said)
        raise why if isinstance(why, ConnectFailure) else unreachable(why.what)
    return told


def _kept(job: str, said: str) -> Failure:
    return Failure(
        f"The Job {job} of an earlier attempt can't be deleted: {safe(said.strip(), 200)}.",
        means="Nothing was started.",
        code="not-created",
    )


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
