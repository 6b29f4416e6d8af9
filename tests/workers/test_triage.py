"""When a diagnosis is made, and what of the fleet's picture it is made from."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fixtures import run_fixture
from tests.fixtures.run_fixture import BOX, NOW, RUN
from tui.box.local import LocalTransport
from tui.fleet.store import Store
from tui.model.command import Diagnose, SurveyStorage, TakeLook
from tui.model.event import Diagnosed, LadderMade, Looked, Notice
from tui.model.instance import Link, LinkState
from tui.model.log import LogBatch
from tui.model.look import LookAnswer
from tui.model.reading import Reading
from tui.model.run import RunState
from tui.model.snapshot import BoxView, RunView
from tui.model.text import LogText, SafeText
from tui.workers.evidence import diagnosed, digest_of, known_of, said_of
from tui.workers.triage import AGAIN_S, SETTLE_S, Triager, kept_of, load_rules, subjects_of, troubles


def box() -> BoxView:
    found = run_fixture.snapshot().box(BOX)
    assert found is not None
    return found


def run() -> RunView:
    found = run_fixture.snapshot().run(RUN)
    assert found is not None
    return found


class Recording(Store):
    """A store that folds at once, so that a test need not pump, and remembers what came in."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: self.now)
        self.now = NOW
        self.events: list[object] = []

    async def put(self, event: object) -> None:
        self.events.append(event)
        await super().put(event)  # type: ignore[arg-type]
        self.fold()


def stored() -> Recording:
    store = Recording()
    store._snapshot = run_fixture.snapshot()
    return store


def of_kind(store: Recording, kind: type) -> list[object]:
    return [event for event in store.events if isinstance(event, kind)]


async def finished(triager: Triager) -> None:
    while triager._errands:
        await asyncio.wait(triager._errands, timeout=20)
        await asyncio.sleep(0)


def test_trouble_is_compared_without_its_figures() -> None:
    calm = replace(run(), state=RunState.RUNNING)
    first = troubles(box(), calm)
    assert first == troubles(replace(box(), telemetry=None), calm)
    assert "dead" in troubles(box(), replace(calm, state=RunState.DEAD))
    assert calm.progress is not None
    broken = replace(calm, progress=replace(calm.progress, loss=math.nan))
    assert troubles(box(), broken) - first == {"loss is no number"}
    refused = replace(box(), link=Link(LinkState.REFUSED, NOW))
    assert troubles(refused, calm) - first == {"login refused"}


def test_a_diagnosis_is_due_once_what_turned_bad_had_its_moment(tmp_path: Path) -> None:
    store = stored()
    triager = Triager(store, lambda _: None, tmp_path)
    dead = tuple(replace(r, state=RunState.DEAD) for r in store.snapshot.runs)
    snapshot = replace(store.snapshot, runs=dead)
    assert triager._turned_bad(snapshot, NOW) == []
    assert triager._turned_bad(snapshot, NOW + SETTLE_S + 0.1) == [(BOX, RUN)]
    triager._ends[(BOX, RUN)] = store.log(RUN).end
    assert triager._turned_bad(snapshot, NOW + 60) == []
    assert triager._turned_bad(replace(snapshot, runs=()), NOW + 61) == []
    assert triager._seen == {}


async def test_asking_gives_a_diagnosis_with_the_logs_own_numbers(tmp_path: Path) -> None:
    store = stored()
    lines = ("epoch 1/9 loss 0.5", "RuntimeError: CUDA error: an illegal memory access was encountered")
    store.log(RUN).append(LogBatch(RUN, 100, tuple(map(LogText, lines)), NOW))
    triager = Triager(store, lambda _: None, tmp_path)
    await triager.handle(Diagnose(BOX, RUN))
    await triager.handle(Diagnose(BOX, RUN))  # under way already: not begun twice
    await finished(triager)
    (told,) = of_kind(store, Diagnosed)
    assert isinstance(told, Diagnosed)
    numbers = [e.line for one in told.diagnosis.incidents for e in one.evidence if e.source == "log"]
    assert 102 in numbers
    shown = store.snapshot.run(RUN)
    assert shown is not None and shown.diagnosed is told
    assert any(a.short == told.diagnosis.incidents[0].cls.replace("_", " ") for a in shown.attention)
    assert ("log (lines 101 to 102; what lies before was not read)", NOW) in told.looked_at


async def test_the_same_answer_is_asked_for_ever_more_seldom(tmp_path: Path) -> None:
    store = stored()
    triager = Triager(store, lambda _: None, tmp_path)
    gaps = []
    for _ in range(3):
        await triager._diagnose(BOX, RUN)
        gaps.append(triager._gaps[(BOX, RUN)])
    assert gaps == [AGAIN_S, 2 * AGAIN_S, 4 * AGAIN_S]
    store.log(RUN).append(LogBatch(RUN, 0, (LogText("torch.OutOfMemoryError: CUDA out of memory."),), NOW))
    await triager._diagnose(BOX, RUN)
    assert triager._gaps[(BOX, RUN)] == AGAIN_S


async def test_a_look_and_a_survey_come_back_and_lead_to_a_new_diagnosis(tmp_path: Path) -> None:
    store = stored()
    triager = Triager(store, lambda _: LocalTransport(), tmp_path)
    await triager.handle(TakeLook(BOX, RUN, "shm"))
    await triager.handle(SurveyStorage(BOX, RUN, str(tmp_path)))
    await finished(triager)
    (looked,) = of_kind(store, Looked)
    assert isinstance(looked, Looked) and looked.answer.look == "shm"
    assert of_kind(store, Diagnosed)
    assert of_kind(store, LadderMade)
    known = store.snapshot.box(BOX)
    assert known is not None and known.looks == (looked.answer,) and known.ladder is not None


async def test_the_kernel_is_asked_once_why_a_process_is_gone(tmp_path: Path) -> None:
    store = stored()
    dead = tuple(replace(r, state=RunState.DEAD, truth_at=NOW - 1) for r in store.snapshot.runs)
    store._snapshot = replace(store.snapshot, runs=dead)
    triager = Triager(store, lambda _: LocalTransport(), tmp_path)
    for _ in range(2):
        await triager._diagnose(BOX, RUN)
        store._snapshot = replace(store.snapshot, runs=dead)
    (looked,) = of_kind(store, Looked)
    assert isinstance(looked, Looked) and looked.answer.look == "dmesg"


async def test_without_a_link_nothing_is_looked_at_and_it_is_said(tmp_path: Path) -> None:
    store = stored()
    triager = Triager(store, lambda _: None, tmp_path)
    await triager.handle(TakeLook(BOX, RUN, "shm"))
    await finished(triager)
    (notice,) = of_kind(store, Notice)
    assert isinstance(notice, Notice) and "is not connected" in notice.text


def test_an_operators_bad_file_is_a_problem_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "x_bad.md").write_text("---\nid: x_bad\ntitle: [\n---\n")
    rules = load_rules(tmp_path)
    assert any("x_bad.md" in problem.line for problem in rules.catalog.problems)
    assert rules.ready


@pytest.mark.parametrize(
    ("state", "reachable"),
    [(LinkState.LIVE, True), (LinkState.CONNECTING, None), (LinkState.UNREACHABLE, False)],
)
def test_whether_the_box_answers_is_known(state: LinkState, reachable: bool | None) -> None:
    known = known_of(replace(box(), link=Link(state, NOW)), run(), NOW)
    assert known.reachable is reachable
    assert known.alive is True
    assert known.log_age_s is not None and known.log_age_s < 10


def test_old_answers_are_no_evidence_and_a_broken_link_speaks() -> None:
    old = LookAnswer(BOX, "dmesg", NOW - 3600, SafeText("dmesg"), 0, (SafeText("x"),))
    new = replace(old, look="shm", at=NOW - 5)
    down = Link(LinkState.REFUSED, NOW, SafeText("Permission denied (publickey)."))
    found = said_of(replace(box(), looks=(old, new), link=down), NOW)
    assert [(one.kind, one.source) for one in found] == [("disk", "shm"), ("ssh", "ssh")]


@pytest.mark.parametrize(
    ("state", "outcome", "classes"), [("T", "stalled", ["proc_stuck"]), ("R", "running", [])]
)
def test_a_process_stopped_by_a_signal_is_stuck_however_busy_its_card_looks(
    tmp_path: Path, state: str, outcome: str, classes: list[str]
) -> None:
    found = box()
    assert found.telemetry is not None
    (truth,) = found.telemetry.runs
    assert truth.process is not None
    stopped = replace(truth, process=replace(truth.process, state=state))
    calm = replace(found.telemetry, runs=(stopped,), filesystems=Reading())
    told = diagnosed(load_rules(tmp_path), replace(found, telemetry=calm), run(), None, log_at=None, at=NOW)
    assert told.diagnosis.outcome == outcome
    assert [one.cls for one in told.diagnosis.incidents if one.severity != "info"] == classes


def test_what_the_runs_need_is_kept_and_looks_know_their_subjects() -> None:
    kept = dict(kept_of((run(),)).paths)
    assert kept[run_fixture.LOG] == "log"
    subjects = subjects_of(box(), run())
    assert subjects.pid == 4121
    assert subjects.mount == run_fixture.FS


def test_numbers_count_from_the_logs_first_line(tmp_path: Path) -> None:
    digest = digest_of(load_rules(tmp_path), [LogText("a"), LogText("b")], first=1000)
    assert [row.number for row in digest.rows] == [1001, 1002]
    assert digest.lines == 1002
