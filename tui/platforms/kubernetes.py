"""Pods and Jobs of one namespace, by this computer's ``kubectl`` (any since 1.20; read 2026-11).

A Job that is not found while pods of it are left is not gone: ``--cascade=orphan`` and stuck finalizers leave
such pods, and they hold their GPUs. What bills is the node, which nothing here ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from tui.box.cluster import Cluster, path_of, uid_of
from tui.box.parsers.containers import Pod, read_json
from tui.box.transport import Completed
from tui.model.custody import Victim
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.text import safe
from tui.model.via import JobExec, PodExec
from tui.platforms.control import (
    Listing,
    Machine,
    NoAnswer,
    NoSuchMachine,
    NotAllowed,
    Price,
    State,
    VerbRefused,
)
from tui.platforms.told import epoch

PLATFORM = "kubernetes"
CALL_S = 15.0
_LABELS = ("batch.kubernetes.io/job-name", "job-name")
_ID = re.compile(r"([a-z0-9-]{1,63})/(pod|job)/([a-z0-9.-]{1,253})\Z")
_STATES: dict[str, State] = {
    **dict.fromkeys(("starting", "pending", "launch_failed"), "starting"),
    **dict.fromkeys(("running", "crash_looping"), "running"),
    **dict.fromkeys(("completed", "failed", "evicted", "paused"), "stopped"),
    "terminating": "destroying",
}

Kind = Literal["pod", "job"]


@dataclass(frozen=True, slots=True)
class Named:
    """A pod or a Job: ``NAMESPACE/pod/NAME`` or ``NAMESPACE/job/NAME``."""

    namespace: str
    kind: Kind
    name: str

    @classmethod
    def of(cls, victim: Victim) -> Named:
        """Raises NoAnswer: the id names neither."""
        found = _ID.match(victim.instance_id or "")
        if found is None:
            raise NoAnswer("The id names no pod or Job: it must be NAMESPACE/job/NAME or NAMESPACE/pod/NAME.")
        return cls(found[1], "job" if found[2] == "job" else "pod", found[3])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """One namespace of one cluster."""

    cluster: Cluster
    namespace: str
    call_s: float = CALL_S
    platform: str = PLATFORM
    _seen: dict[str, str] = field(default_factory=dict, compare=False)
    """The uid of what was described last, by its id: a verb is for that one alone."""

    async def describe(self, victim: Victim) -> Machine:
        named = Named.of(victim)
        try:
            told = await self._seen_now(named)
        except NoSuchMachine:
            left = await self._pods_of(named) if named.kind == "job" else ()
            if not left:
                raise
            return Machine(
                id=str(named),
                name=named.name,
                state="destroying",
                said="NotFound",
                notes=(f"The Job is gone and {len(left)} of its pods are left, with their GPUs.",),
            )
        return _machine(told, await self._pods_of(named) if named.kind == "job" else ())

    async def list_all(self) -> Listing:
        told = await self._get("pods,jobs")
        items = [one for one in told.get("items") or () if isinstance(one, dict)]
        pods = [one for one in items if one.get("kind") == "Pod"]
        jobs = [one for one in items if one.get("kind") == "Job"]
        machines = [_machine(one, _owned(pods, _name(one))) for one in jobs]
        machines += [_machine(one) for one in pods]
        named = {_name(one) for one in jobs}
        for name in sorted({job for one in pods if (job := _job_of(one))} - named):
            machines.append(_orphaned(self.namespace, name))
        more = (told.get("metadata") or {}).get("continue")
        account, told_by_it = await self._whoami()
        return Listing(tuple(machines), complete=not more, account=account, account_told=told_by_it)

    async def stop(self, victim: Victim) -> str:
        """Suspend a Job: its pods are deleted, and it makes new ones when it is resumed."""
        named = Named.of(victim)
        if named.kind == "pod":
            raise VerbRefused(
                f"{victim.name} is a pod: Kubernetes can't stop one and keep it.",
                means="Nothing was sent.",
                do=f"`rgt down {victim.name}` deletes it; name its Job as instance_id to suspend that.",
                code="no-stop",
            )
        # metadata.uid may not change: a patch for one of the same name that was made later is refused.
        patch = json.dumps({"metadata": {"uid": await self._uid(named)}, "spec": {"suspend": True}})
        words = [
            "patch",
            "job",
            named.name,
            "--type=merge",
            f"--namespace={self.namespace}",
            "--patch",
            patch,
        ]
        return await self._verb(self.cluster.ask(words, timeout=self.call_s))

    async def destroy(self, victim: Victim) -> str:
        """Delete once, the pods with their Job. It is not waited for: proof comes by looking."""
        named = Named.of(victim)
        uid = await self._uid(named)
        if named.kind == "pod" and (owner := _owner(await self._get("pod", named.name))):
            raise VerbRefused(
                f"{victim.name} is a pod of {owner}, which would make another one.",
                means="Nothing was sent.",
                do=f"rgt edit {victim.name} instance_id={self.namespace}/job/NAME, and again.",
                code="owned",
            )
        path = path_of(named.kind, self.namespace, named.name)
        await self._verb(self.cluster.delete(path, uid, self.call_s))
        return f"the {named.kind} {named.name} of uid {safe(uid, 40)} is to be deleted"

    # --- asking ---------------------------------------------------------------------------------------------

    async def _get(self, *words: str) -> dict[str, Any]:
        try:
            await self.cluster.certain()
            told, said = await self.cluster.get([*words, f"--namespace={self.namespace}"], self.call_s)
        except TimeoutError:
            raise NoAnswer(f"kubectl did not end within {self.call_s + 5:g} s.") from None
        except Failure as failure:
            raise NoAnswer(failure.line) from None
        if not isinstance(told, dict):
            _refuse(said, verb=False)
        return told

    async def _seen_now(self, named: Named) -> dict[str, Any]:
        told = await self._get(named.kind, named.name)
        self._seen[str(named)] = uid_of(told) or ""
        return told

    async def _uid(self, named: Named) -> str:
        """The uid that a verb is for: of what was described, else of what is there now."""
        uid = self._seen.get(str(named)) or uid_of(await self._seen_now(named))
        if not uid:
            raise NoAnswer("The cluster tells no uid of it, so that nothing says which one is meant.")
        return uid

    async def _pods_of(self, named: Named) -> tuple[dict[str, Any], ...]:
        """Pods that the Job made, by either of the two labels."""
        found: dict[str, dict[str, Any]] = {}
        for label in _LABELS:
            told = await self._get("pods", f"--selector={label}={named.name}")
            found |= {_name(one): one for one in told.get("items") or () if isinstance(one, dict)}
        return tuple(found.values())

    async def _verb(self, asked: Coroutine[Any, Any, Completed]) -> str:
        try:
            done = await asked
        except TimeoutError:
            raise NoAnswer(f"kubectl did not end within {self.call_s + 5:g} s.") from None
        except Failure as failure:
            raise VerbRefused(failure.what, means="Nothing was sent.", code="no-kubectl") from None
        if done.exit != 0:
            _refuse(done.stderr.decode("utf-8", "replace"), verb=True)
        return str(safe(done.stdout.decode("utf-8", "replace").strip(), 120))

    async def _whoami(self) -> tuple[str | None, bool]:
        """Whom the cluster takes us for, at which server; where it tells nobody, the server alone."""
        try:
            done = await self.cluster.ask(["config", "view", "--minify", "-o", "json"], timeout=self.call_s)
            view = json.loads(done.stdout)
            server = str(view["clusters"][0]["cluster"]["server"])
        except (Failure, TimeoutError, ValueError, LookupError, TypeError):
            return None, False
        try:
            done = await self.cluster.ask(["auth", "whoami", "-o", "json"], timeout=self.call_s)
            user = str(json.loads(done.stdout)["status"]["userInfo"]["username"])
        except (Failure, TimeoutError, ValueError, LookupError, TypeError):
            return str(safe(server, 200)), False
        return str(safe(f"{user} at {server}", 200)), True


def _refuse(said: str, *, verb: bool) -> NoReturn:
    """What kubectl's words amount to. Anything but a plain NotFound leaves the machine where it was."""
    last = safe(said.strip().split("\n")[-1], 300)
    if re.search(r'\(NotFound\): namespaces? "', said):  # kubectl looks for it when it finds no pod
        raise NoAnswer(f"The cluster says: {last}. Is it the right context?")
    if re.search(r"\(NotFound\)", said):
        raise NoSuchMachine(f"The cluster says: {last}", code="no-such-machine")
    if re.search(r"\(Forbidden\)|\(Unauthorized\)|must be logged in|is forbidden", said):
        raise NotAllowed(f"The cluster says: {last}", means="Nothing is known of it.", code="not-allowed")
    if verb and re.search(r"UID in precondition|metadata\.uid: Invalid", said):
        raise VerbRefused(
            "What has this name now is another one, made later.",
            means="It was left as it is.",
            code="another-machine",
        )
    if verb and re.search(r"\((?:Conflict|Invalid|BadRequest|MethodNotAllowed)\)|is invalid", said):
        raise VerbRefused(f"The cluster says: {last}", means="It was not carried out.", code="verb-refused")
    raise NoAnswer(f"kubectl says: {last or 'nothing'}")


# --- what is told -----------------------------------------------------------------------------------------


def _metadata(item: dict[str, Any]) -> dict[str, Any]:
    found = item.get("metadata")
    return found if isinstance(found, dict) else {}


def _name(item: dict[str, Any]) -> str:
    return str(_metadata(item).get("name") or "")


def _owner(item: dict[str, Any]) -> str | None:
    """What made a pod and would make it again."""
    for one in _metadata(item).get("ownerReferences") or ():
        if isinstance(one, dict) and one.get("controller"):
            return str(safe(f"{one.get('kind')} {one.get('name')}", 200))
    return None


def _job_of(pod: dict[str, Any]) -> str | None:
    labels = _metadata(pod).get("labels")
    found = [labels.get(one) for one in _LABELS] if isinstance(labels, dict) else []
    return next((name for name in found if isinstance(name, str)), None)


def _owned(pods: list[dict[str, Any]], job: str) -> tuple[dict[str, Any], ...]:
    return tuple(one for one in pods if _job_of(one) == job)


def _orphaned(namespace: str, job: str) -> Machine:
    return Machine(
        id=f"{namespace}/job/{job}",
        name=job,
        state="destroying",
        said="pods without their Job",
        notes=("The Job is gone and pods of it are left, with their GPUs.",),
    )


def _machine(item: dict[str, Any], pods: tuple[dict[str, Any], ...] = ()) -> Machine:
    """A pod or a Job. A Job that is over or suspended is not off while pods of it still run."""
    about = _metadata(item)
    kind = "job" if item.get("kind") == "Job" else "pod"
    report = read_json(json.dumps(item))
    told = report.pods[0] if report and report.pods else None
    state = _STATES.get(told.state, "unknown") if told else "unknown"
    if about.get("deletionTimestamp"):
        state = "destroying"
    elif kind == "job" and state == "stopped" and any(_runs(one) for one in pods):
        state = "stopping"
    word = str(safe(": ".join(filter(None, (told.state, told.reason))), 80)) if told else ""
    made, uid = about.get("creationTimestamp"), about.get("uid")
    return Machine(
        id=f"{about.get('namespace')}/{kind}/{about.get('name')}",
        name=str(safe(str(about.get("name") or ""), 80)),
        state=state,
        created_at=f"{made} {uid}" if made and uid else None,
        said=word,
        price=Price(None, "USD", "the node bills, not the pod"),
        gpu=_gpus(item),
        since=epoch(made) if isinstance(made, str) else None,
        notes=_notes(item, told),
    )


def _runs(pod: dict[str, Any]) -> bool:
    status = pod.get("status")
    return not isinstance(status, dict) or status.get("phase") not in ("Succeeded", "Failed")


def _notes(item: dict[str, Any], told: Pod | None) -> tuple[str, ...]:
    notes = []
    if told is not None and told.message:
        notes.append(str(safe(told.message, 200)))
    if (owner := _owner(item)) is not None:
        notes.append(f"{owner} made it and would make another one.")
    if _metadata(item).get("finalizers"):
        notes.append("It has finalizers: it stays until each of them let it go.")
    return tuple(notes)


def _gpus(item: dict[str, Any]) -> str:
    """Whole cards asked for, of a pod or of a Job's template."""
    text = json.dumps(item.get("spec") or {})
    found = re.findall(r'"limits": \{[^{}]*"(?:nvidia\.com|amd\.com)/gpu": "?(\d+)', text)
    return f"{sum(map(int, found))} × gpu" if found else ""


def plane(instance: Instance) -> Kubernetes | str:
    """The namespace of a pod; in words why nothing can be asked about this box."""
    if not isinstance(instance.via, PodExec | JobExec):
        return "names no pod: its transport must be pod:NAMESPACE/NAME or job:NAMESPACE/NAME"
    return Kubernetes(Cluster(instance.via.context), instance.via.namespace)
