"""Loading on the box that read the copy back, and the metrics of what was restored there.

Checkpoints are large and stay there: its python loads them, in the same jail as here, and a declared
evaluator runs there, too. Predictions are small: they are fetched by their SHA-256 and recomputed here, by
the libraries of this computer.
"""

from __future__ import annotations

import asyncio
import posixpath
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tui.custody.errand import Errand
from tui.custody.evaluator import Answer
from tui.custody.evaluator_there import evaluate_there
from tui.custody.judged import unloaded_report
from tui.custody.metric_files import check_size, fetched_gap, metric_files
from tui.custody.moments import moment
from tui.custody.places import dial_to
from tui.custody.stores.box import BoxStore
from tui.fleet import settings
from tui.model.custody import HashedFile, LoadReport, ReadbackReport, Roster
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.workers import judging
from tui.workers.box import Dial
from tui.workers.far_bridge import Python, bridge, find_python
from tui.workers.judging import Far, Told

Judge = Callable[[Errand, Told, Far], Awaitable[None]]


async def judge_on_box(task: Errand, dial: Dial, readback: ReadbackReport, told: Told, judge: Judge) -> None:
    """Load there what was restored there, recompute the metrics here, and store both reports.

    Args:
        judge: does the work of `tui.workers.judging.judge` where it disturbs nobody.

    Raises:
        Failure: the box is not known or not reached, or there is more than can be fetched.
        TimeoutError: it did not answer in time.
    """
    instance = await asyncio.to_thread(_instance, task, readback)
    roster, _ = await asyncio.to_thread(judging.to_judge, task)
    wanted = metric_files(readback.files, {one.path: one.role for one in roster.artifacts}, task.table)
    too_large = _too_large(wanted, task, instance)
    place = task.folder / "metrics-fetched"
    store = BoxStore(
        instance.name,
        dial_to(dial, instance),
        posixpath.dirname(readback.consumer.path),
        posixpath.basename(readback.consumer.path),
    )
    try:
        python = await _python(dial, instance)
        answer = None
        if too_large is None:
            await _fetch(store, task, wanted, place)
            answer = await _own_evaluation(dial, instance, task, readback)
        fetched = fetched_gap(wanted, instance.name, evaluated=answer is not None)
        if python is None:
            loaded = await _unloaded(task, roster, readback, store)
            if too_large is None:
                told("metrics", 0, 0)
                await asyncio.to_thread(judging.measure, task, roster, loaded, place, (fetched,), answer)
        else:
            folder = "" if too_large is not None else str(place)
            far = Far("", python, folder, fetched.detail, answer)
            await _through(dial, instance, far, task, told, judge)
    finally:
        await store.close()
        await asyncio.to_thread(shutil.rmtree, place, True)
    if too_large is not None:
        raise too_large


def _instance(task: Errand, readback: ReadbackReport) -> Instance:
    name = readback.consumer.box
    for one in settings.load(task.where.fleet_file).instances:
        if one.name == name:
            return one
    raise Failure(
        f"{task.spec.name} was read back on {name}, which is not in {task.where.fleet_file} any more.",
        do=f"Read it back elsewhere: rgt readback {task.spec.name} --on here.",
        code="readback-elsewhere",
    )


def _too_large(wanted: Sequence[HashedFile], task: Errand, instance: Instance) -> Failure | None:
    try:
        check_size(wanted, task.spec.name, instance.name)
    except Failure as failure:
        return failure
    return None


async def _python(dial: Dial, instance: Instance) -> Python | None:
    transport = await dial(instance)
    try:
        return await find_python(transport)
    finally:
        await transport.close()


async def _fetch(store: BoxStore, task: Errand, wanted: Sequence[HashedFile], place: Path) -> None:
    """Each with the digest that it had when it was read back. Raises Failure."""
    await asyncio.to_thread(shutil.rmtree, place, True)
    await asyncio.to_thread(lambda: place.mkdir(parents=True, mode=0o700))
    failed = await store.fetch(wanted, place, lambda count, path: None) if wanted else {}
    for path, why in failed.items():
        raise Failure(
            f"{path} could not be fetched from {store.box} as it was read back ({why}).",
            means="No metric was recomputed.",
            do=f"Read the copy back again: rgt readback {task.spec.name}.",
            code="readback-gone" if why in ("source-gone", "source-unreadable") else "readback-changed",
        )


async def _unloaded(task: Errand, roster: Roster, readback: ReadbackReport, store: BoxStore) -> LoadReport:
    """Nothing was looked into, for there is no python; the bytes are hashed again by what the box has."""
    there = await store.digests(readback.consumer.path, readback.files)
    why = f"{store.box} has no python3, so nothing was loaded there; install it, or read back elsewhere"
    paths = [one.path for one in roster.artifacts if one.role == "checkpoint"]
    report = unloaded_report(readback, paths, there, why, moment(time.time()))
    return await asyncio.to_thread(judging.keep_loaded, task, roster, report)


async def _own_evaluation(
    dial: Dial, instance: Instance, task: Errand, readback: ReadbackReport
) -> Answer | None:
    """What the declared evaluator answers on that box; None: none is declared. Raises LinkLost."""
    if task.table is None or task.table.evaluator is None:
        return None
    transport = await dial(instance)
    try:
        return await evaluate_there(transport, task.table.evaluator, readback.consumer.path)
    finally:
        await transport.close()


async def _through(dial: Dial, instance: Instance, far: Far, task: Errand, told: Told, judge: Judge) -> None:
    transport = await dial(instance)
    try:
        async with bridge(transport, far.python) as open_:
            try:
                await judge(task, told, replace(far, address=str(open_.address)))
            except Failure:
                if open_.lost is not None:
                    raise open_.lost from None
                raise
    finally:
        await transport.close()
