"""One launch, from a job file to an answer: what `rgt launch` and the view of it have in common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tui.box.probe.loop import ProbeLate
from tui.box.transport import Transport
from tui.custody.errand import JOB
from tui.custody.machine import known_victim
from tui.custody.moments import moment
from tui.custody.receipts import Ledger
from tui.custody.records import custody_folder, write_file
from tui.custody.statement import Receipt, Subject, about
from tui.fleet import profiles, settings
from tui.fleet.fleet_source import FleetFile
from tui.fleet.paths import Paths, shipped
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.run import RunSpec
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, amount, safe
from tui.runs.book import book
from tui.runs.boot_hook import install
from tui.runs.cluster import home_of, schedulable
from tui.runs.detach import give_secrets
from tui.runs.errand import Errand, errand
from tui.runs.inputs import here, mirrored, sums
from tui.runs.launch import ANSWER_S, Answer, Dial, launch
from tui.runs.outlives import outlives
from tui.runs.plan_files import PLAN, filled
from tui.runs.preflight import BoxFacts, Check, ask_box, ask_torch, checks, in_order
from tui.runs.push import Pushed, make_copy, push
from tui.workers.line import Line
from tui.workers.once import take
from tui.workers.pace import pace_of

_LOOKS = 3

Told = Callable[[SafeText], None]


@dataclass(frozen=True, slots=True)
class Looked:
    """What was looked at on the box before a launch.

    Attributes:
        task: with its folder as the box resolves it.
        checks: stops first.
        home: the login's home on the box.
        taken: the run is there already, and a launch goes on with it.
    """

    task: Errand
    checks: tuple[Check, ...]
    home: str
    taken: bool = False

    @property
    def stopped(self) -> bool:
        return any(one.verdict == "stop" for one in self.checks)


def worked_out(
    file: Path, instance: Instance, where: Paths, *, name: str | None = None, folder: str | None = None
) -> Errand:
    """The job on its box, with what the box's platform is known to need. Raises Failure.

    Args:
        name: of the run; by default made of the job and its code.
        folder: on the box, in place of its data disk.
    """
    profile = profiles.load(shipped("profiles"), where.profiles).by_id.get(instance.platform)
    return errand(file, instance, profile.facts if profile else None, name=name, folder=folder)


async def look_first(task: Errand, box: Transport) -> Looked:
    """Look at everything on the box. Raises Failure, LinkLost, SessionsExhausted, TimeoutError."""
    facts = await ask_box(box, task.run, task.inputs())
    if task.scheduled:
        return await _look_at_cluster(task, box, facts)
    telemetry = await _seen(box, task.instance)
    torch = await ask_torch(box, task.python) if task.job.resources.gpu.count else None
    host = telemetry.host.value
    home = str(host.home) if host and host.home else "/root"
    found = tuple(checks(task.job, facts, telemetry, torch))
    return Looked(task.at(facts.run), found, home, facts.taken is not None)


async def _seen(box: Transport, instance: Instance) -> Telemetry:
    """A look at hardware and neighbours. A busy box gets a second one; without any, nothing is started."""
    for _ in range(_LOOKS):
        try:
            return await take(box, instance.mounts, (), time.time)
        except ProbeLate as late:
            failed = late
    raise Failure(
        f"{failed.what[:-1]}, {_LOOKS} times.",
        means="Who uses its cards is not known; nothing was started.",
        do="It is very busy: try again, or see rgt triage.",
        exit=Exit.UNREACHABLE,
        code="probe-late",
    )


async def _look_at_cluster(task: Errand, box: Transport, facts: BoxFacts) -> Looked:
    """A login node's cards, memory and torch are not the job's, so its disk and tools are looked at."""
    home = await home_of(box)
    found = [*checks(task.job, facts, None, None), await schedulable(box, task)]
    found = [one for one in found if one.name != "detach"]
    return Looked(task.at(facts.run), tuple(in_order(found)), home, facts.taken is not None)


async def look_around(line: Line, looked: Looked, base: Path, *, hashed: bool = False) -> Looked:
    """The same with what is true besides: inputs elsewhere, and whether a start outlives its connection.

    The last is left out for a run that is there already: it was tried when that one was begun.

    Args:
        base: folder of the job file.
        hashed: hash on the box what the job names a SHA-256 of.

    Raises:
        Failure, LinkLost, SessionsExhausted, TimeoutError.
    """
    task = looked.task

    async def again() -> Transport:
        await line.close()
        return await line()

    found = [*await asyncio.to_thread(here, task.job, base), *await mirrored(task.job)]
    if hashed:
        found += await sums(await line(), task.job, task.inputs())
    if not looked.taken and not task.scheduled:
        found.append(await outlives(await line(), task.how, again))
    return replace(looked, checks=tuple(in_order((*looked.checks, *found))))


def plan_lines(task: Errand) -> Iterator[tuple[str, SafeText]]:
    """What would be done, as titles and sentences. Raises Failure: a word names a place that is not known."""
    commit = f", commit {task.tree.commit[:12]}" if task.tree.commit else ", no git"
    changed = " with changes" if task.tree.dirty else ""
    yield "place", safe(task.run)
    yield "code", safe(f"{len(task.tree.files)} files, {amount(task.tree.bytes)}{commit}{changed}")
    for title, named, digest in (
        ("config", task.job.code.config, task.config),
        ("data", task.job.data, task.data),
    ):
        if digest is not None:
            yield title, safe(f"{named}, sha256 {digest[:12]}…")
    for stage in task.job.chain():
        words = " ".join(filled(word, task.job, task.where()) for word in stage.run)
        proof = f"done when {stage.artifact} is there" if stage.artifact else "done when it ends with 0"
        yield stage.name, safe(f"{words}; {proof}", 400)
    if task.job.secrets:
        names = ", ".join(task.job.secrets)
        at = " in your home, which its node must see" if task.scheduled else ""
        yield "secrets", safe(f"{names}: by stdin into a file of mode 600{at}, never shown", 400)


def plan_id(looked: Looked) -> str:
    """Digest of what would be laid down. Raises Failure: a word names a place that is not known."""
    files = looked.task.launch(looked.task.secrets_file(looked.home)).files
    return files[f"{PLAN}/id"].decode().strip()


async def bring(box: Transport, task: Errand, told: Told) -> Pushed:
    """Bring what of the code the box has not got. Raises Failure, LinkLost, TimeoutError."""
    for one in task.tree.files:
        if one.made_lf:
            told(safe(f"code: {one.path} has Windows line ends; it travels with LF", 300))
    done = await push(box, task.tree, task.store)
    rest = "; the rest was there" if done.sent < done.files else ""
    told(safe(f"code: {done.sent} of {done.files} files sent, {amount(done.bytes)}{rest}"))
    return done


async def begin(
    line: Dial,
    looked: Looked,
    file: Path,
    where: Paths,
    secrets: Mapping[str, str],
    told: Told,
    more: Callable[[Transport], Awaitable[None]] | None = None,
    answer_s: float = ANSWER_S,
) -> Answer:
    """Write the run's page, start it, leave a receipt of what came of it, and have it watched.

    Args:
        file: the job file, for the page.
        secrets: values by name; they go by stdin.
        more: brings what the run needs besides, before it is started; may be asked again.
        answer_s: seconds until it answers with what is known by then.

    Raises:
        Failure: nothing was started, or nobody knows; it says which.
    """
    task = looked.task
    what = task.launch(task.secrets_file(looked.home))
    plan = what.files[f"{PLAN}/id"].decode().strip()
    page = task.page(file, plan, moment(time.time()))
    book(where).write(page, gone=not looked.taken)
    if task.job.custody is not None:  # what must survive is known from the first day on
        kept = custody_folder(where, task.run_id) / JOB
        write_file(kept, await asyncio.to_thread(file.read_bytes))

    async def brought(box: Transport) -> None:
        await bring(box, task, told)
        await _copy(box, looked, secrets)
        if more is not None:
            await more(box)

    answer = await launch(line, what, bring=brought, told=told, answer_s=answer_s)
    _receipt(where, task, answer, plan)
    watch(where, _spec(task, answer))
    await _after_a_restart(line, task, answer, told)
    if answer.kind in ("dead", "unknown", "finished"):
        return answer
    return replace(answer, pace=await pace_of(line, page, where))


async def _after_a_restart(line: Dial, task: Errand, answer: Answer, told: Told) -> None:
    """Let the run go on by itself when its box comes back, where the platform has a way for that."""
    if task.boot_hook is None or answer.kind in ("dead", "finished"):
        return
    try:
        await install(await line(), task.boot_hook, task.run_id, task.run)
    except (Failure, TimeoutError) as error:
        told(safe(error.line if isinstance(error, Failure) else "the boot hook was not written in time", 400))
        return
    told(safe(f"{task.boot_hook} goes on with it when the box comes back"))


async def _copy(box: Transport, looked: Looked, secrets: Mapping[str, str]) -> None:
    task = looked.task
    await make_copy(box, task.tree, task.store, task.run)
    file = task.secrets_file(looked.home)
    if file is not None:
        folder, _, name = file.rpartition("/")
        await give_secrets(box, folder, name, secrets)


def _spec(task: Errand, answer: Answer) -> RunSpec:
    tmux = answer.started is not None and answer.started.how == "tmux"
    job = answer.truth.job or (answer.started.job if answer.started else None)
    return task.spec(answer.truth.start, tmux=tmux, job=job if task.scheduled else None)


def watch(where: Paths, spec: RunSpec) -> None:
    """Write a run down, so that `rgt` watches it; one of an earlier attempt or place is written anew."""
    before = next((one for one in settings.load(where.fleet_file).runs if one.name == spec.name), None)
    if before is not None and (before.box, before.log) == (spec.box, spec.log):
        spec = replace(spec, session=spec.session or before.session, progress_regex=before.progress_regex)
    if spec != before:
        FleetFile(where).set_run(spec)


def _receipt(where: Paths, task: Errand, answer: Answer, plan: str) -> None:
    victim = known_victim(task.instance, where)
    Ledger(where.receipts).append(
        Receipt(
            act="launch",
            result="recorded",
            at=moment(time.time()),
            subjects=(
                about(victim, victim.name),
                Subject(name="plan", sha256=f"sha256:{plan}"),
                Subject(name="code", sha256=f"sha256:{task.tree.digest}"),
                *(
                    Subject(name=name, sha256=f"sha256:{digest}")
                    for name, digest in (("config", task.config), ("data", task.data))
                    if digest is not None
                ),
            ),
            victim=victim,
            run=task.run_id,
            detail=f"{answer.kind}: {answer.why}",
        )
    )
