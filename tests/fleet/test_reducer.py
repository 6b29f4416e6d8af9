"""The fold from events to the picture is pure; what it claims rests on what was observed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui.fleet.judge import time_left
from tui.fleet.reducer import reduce
from tui.model.command import CommandRecord
from tui.model.event import (
    CommandRan,
    Diagnosed,
    Event,
    FleetChanged,
    ForwardChanged,
    HostKeyAsked,
    LinkChanged,
    Notice,
    ProgressRead,
    TelemetryTaken,
)
from tui.model.incident import Diagnosis, Incident
from tui.model.instance import Endpoint, Instance, Link, LinkState
from tui.model.reading import Source, known
from tui.model.run import Progress, RunSpec, RunState
from tui.model.snapshot import HISTORY, FleetSnapshot, RunView
from tui.model.telemetry import (
    Candidate,
    Filesystem,
    Gpu,
    Host,
    LogFile,
    Memory,
    ProcessInfo,
    RunTruth,
    Telemetry,
)
from tui.model.text import SafeText

T0 = 1_000_000.0
BOX = Instance("box-a", "ssh", Endpoint("a.example"), price_per_hour=2.0, rented_at=T0 - 3600)
RUN = RunSpec("run-1", "box-a", log="/data/train.log", pid=412, pid_start=99)
SOURCE = Source(SafeText("df -iP"), T0)


def fold(*events: Event, now: float = T0, start: FleetSnapshot | None = None) -> FleetSnapshot:
    return reduce(start or FleetSnapshot(), events, now)


def live(at: float = T0) -> LinkChanged:
    return LinkChanged("box-a", Link(LinkState.LIVE, since=at))


def probe(
    at: float = T0, *, inodes: int = 100, oom: int | None = 0, truth: RunTruth | None = None
) -> TelemetryTaken:
    disk = Filesystem(
        SafeText("/data"),
        SafeText("/dev/vdb"),
        size_bytes=1000,
        used_bytes=340,
        avail_bytes=660,
        use_pct=34.0,
        inodes=1000,
        inodes_used=inodes,
        inodes_free=1000 - inodes,
        inode_use_pct=inodes / 10,
    )
    source = replace(SOURCE, taken_at=at)
    return TelemetryTaken(
        "box-a",
        Telemetry(
            taken_at=at,
            host=known(Host(SafeText("Linux"), clock_offset_s=5.0), source),
            gpus=known((Gpu(0, SafeText("A100"), util_pct=97.0),), source),
            filesystems=known((disk,), source),
            memory=known(Memory(limit_bytes=1000, used_bytes=500, oom_kills=oom), source),
            runs=(truth,) if truth else (),
        ),
    )


def truth(alive: bool | None, *, log_at: float | None = None) -> RunTruth:
    log = (
        known(LogFile(SafeText("/data/train.log"), 1, 10, log_at))
        if log_at is not None
        else RunTruth("", None).log
    )
    return RunTruth("run-1", alive, SafeText("" if alive else "pid 412 is gone"), log=log)


FLEET = FleetChanged((BOX,), (RUN,))


def test_nothing_is_claimed_before_a_probe() -> None:
    snapshot = fold(FLEET)
    assert snapshot.runs[0].state is RunState.UNKNOWN
    assert "not probed" in snapshot.runs[0].why
    assert snapshot.boxes[0].telemetry is None


def test_no_change_gives_the_same_object() -> None:
    snapshot = fold(FLEET, live(), probe())
    assert reduce(snapshot, [], T0) is snapshot
    assert fold(probe(T0 + 2), start=snapshot, now=T0 + 2).version == snapshot.version + 1


@pytest.mark.parametrize(
    ("alive", "finished", "log_age", "state"),
    [
        (True, False, 3.0, RunState.RUNNING),
        (True, True, 3.0, RunState.RUNNING),
        (True, False, 4000.0, RunState.STALLED),
        (False, True, 3.0, RunState.FINISHED),
        (False, False, 3.0, RunState.DEAD),
        (None, False, 3.0, RunState.RUNNING),
        (None, False, 4000.0, RunState.UNKNOWN),
        (None, True, 4000.0, RunState.FINISHED),
    ],
)
def test_run_state_follows_the_evidence(
    alive: bool | None, finished: bool, log_age: float, state: RunState
) -> None:
    seen = truth(alive, log_at=T0 + 5.0 - log_age)  # the box's clock is 5 s ahead
    snapshot = fold(FLEET, live(), ProgressRead("run-1", Progress(finished=finished)), probe(truth=seen))
    assert snapshot.runs[0].state is state


@pytest.mark.parametrize(
    ("alive", "end", "finished", "state", "why"),
    [
        (False, "finished", False, RunState.FINISHED, "by its own record"),
        (None, "finished", False, RunState.FINISHED, "by its own record"),
        (True, "finished", False, RunState.RUNNING, "alive"),
        (False, "failed, status 1", True, RunState.DEAD, "failed, status 1"),
        (None, "failed, status 1", True, RunState.DEAD, "failed, status 1"),
    ],
)
def test_what_a_launched_run_recorded_of_its_end_counts_before_its_log(
    alive: bool | None, end: str, finished: bool, state: RunState, why: str
) -> None:
    seen = replace(truth(alive, log_at=T0), end=SafeText(end))
    snapshot = fold(FLEET, live(), ProgressRead("run-1", Progress(finished=finished)), probe(truth=seen))
    assert snapshot.runs[0].state is state
    assert why in snapshot.runs[0].why
    lost = fold(LinkChanged("box-a", Link(LinkState.LOST, T0 + 1)), start=snapshot, now=T0 + 2)
    was = "finished" if state is RunState.FINISHED else "alive" if alive else "gone"
    assert f"it was {was}" in lost.runs[0].why


def test_a_stopped_process_is_alive_and_makes_no_progress() -> None:
    stopped = ProcessInfo(412, 99, "T", SafeText("python train.py"))
    snapshot = fold(FLEET, live(), probe(truth=replace(truth(True, log_at=T0), process=stopped)))
    assert snapshot.runs[0].state is RunState.STALLED
    assert "stopped by a signal" in snapshot.runs[0].why


@pytest.mark.parametrize(("later", "left"), [(0, 130), (59, 130), (61, 70), (200, None)])
def test_the_logs_own_count_goes_on_and_runs_out(later: float, left: float | None) -> None:
    run = RunView(RUN, RunState.RUNNING, progress=Progress(eta_s=130.0, at=T0))
    assert time_left(run, T0 + later) == left
    assert time_left(replace(run, state=RunState.DEAD), T0 + later) is None


def test_an_unreachable_box_is_not_a_dead_run() -> None:
    snapshot = fold(FLEET, live(), probe(truth=truth(True, log_at=T0)))
    lost = fold(LinkChanged("box-a", Link(LinkState.LOST, since=T0 + 60)), start=snapshot, now=T0 + 120)
    assert lost.runs[0].state is RunState.UNREACHABLE
    assert "alive 2 m ago" in lost.runs[0].why


def test_an_old_probe_is_not_the_present() -> None:
    snapshot = fold(FLEET, live(), probe(truth=truth(True, log_at=T0)))
    later = reduce(snapshot, [], T0 + 60)
    assert later.runs[0].state is RunState.UNKNOWN
    assert "1 m old" in later.runs[0].why


def test_inodes_before_bytes() -> None:
    snapshot = fold(FLEET, live(), probe(T0, inodes=900))
    for step in range(1, 6):
        snapshot = fold(probe(T0 + 20 * step, inodes=900 + 10 * step), start=snapshot, now=T0 + 20 * step)
    first = snapshot.boxes[0].attention[0]
    assert first.short == "inodes 95%"
    growth = dict(snapshot.boxes[0].growth)[SafeText("/data")]
    assert growth.inodes_per_s == pytest.approx(0.5)
    assert growth.inodes_full_in_s == pytest.approx(100.0)
    assert growth.bytes_full_in_s is None  # bytes do not grow: no date is made up


def test_a_clean_up_starts_the_rate_anew() -> None:
    snapshot = fold(FLEET, live(), probe(T0, inodes=900))
    for step, inodes in enumerate([950, 100, 110, 120], start=1):
        snapshot = fold(probe(T0 + 20 * step, inodes=inodes), start=snapshot, now=T0 + 20 * step)
    assert dict(snapshot.boxes[0].growth)[SafeText("/data")].inodes_per_s == pytest.approx(0.5)


def test_only_new_oom_kills_are_news() -> None:
    before = fold(FLEET, live(), probe(oom=7))
    assert before.boxes[0].attention == ()
    after = fold(probe(T0 + 2, oom=8), start=before, now=T0 + 2)
    assert [a.short for a in after.boxes[0].attention] == ["oom kill"]
    assert after.boxes[0].attention[0].level == "danger"


def test_an_endpoint_that_moved_is_another_box() -> None:
    snapshot = fold(FLEET, live(), probe())
    moved = replace(BOX, endpoint=Endpoint("b.example"))
    assert fold(FleetChanged((moved,), (RUN,)), start=snapshot).boxes[0].telemetry is None
    renamed_price = replace(BOX, price_per_hour=3.0)
    kept = fold(FleetChanged((renamed_price,), (RUN,)), start=snapshot).boxes[0]
    assert kept.telemetry is not None
    assert kept.instance.price_per_hour == 3.0


def test_history_is_bounded_and_never_goes_back() -> None:
    snapshot = fold(FLEET, live())
    for step in range(HISTORY + 50):
        snapshot = fold(probe(T0 + step), start=snapshot, now=T0 + step)
    box = snapshot.boxes[0]
    assert len(box.history) == HISTORY
    assert [s.at for s in box.history] == sorted(s.at for s in box.history)
    stale = fold(probe(T0), start=snapshot, now=T0 + HISTORY + 60)
    assert stale.boxes[0].history == box.history


def test_a_clock_that_is_set_back_neither_freezes_history_nor_makes_the_old_new() -> None:
    snapshot = fold(FLEET, live(), probe(T0 + 3590), now=T0 + 3590)
    snapshot = fold(probe(T0 + 3600, truth=truth(True)), start=snapshot, now=T0 + 3600)
    back = reduce(snapshot, [], T0)
    assert back.boxes[0].history == ()
    assert back.boxes[0].disk_history == ()
    assert back.runs[0].state is RunState.UNKNOWN
    again = fold(probe(T0 + 2, truth=truth(True)), start=back, now=T0 + 2)
    assert [s.at for s in again.boxes[0].history] == [T0 + 2]
    assert again.runs[0].state is RunState.RUNNING


def test_a_question_ends_with_its_answer() -> None:
    asked = HostKeyAsked("box-a", SafeText("SHA256:new"), SafeText("SHA256:old"))
    snapshot = fold(FLEET, asked, LinkChanged("box-a", Link(LinkState.IDENTITY)))
    assert snapshot.boxes[0].asked_key == asked
    assert fold(live(), start=snapshot).boxes[0].asked_key is None


def test_a_finished_command_replaces_its_start() -> None:
    started = CommandRecord("box-a", SafeText("uname"), SafeText("probe"), T0)
    snapshot = fold(CommandRan(started), CommandRan(replace(started, took_s=0.5, exit=0)))
    assert [(c.exit, c.took_s) for c in snapshot.commands] == [(0, 0.5)]


def test_forwards_open_and_close() -> None:
    snapshot = fold(FLEET, ForwardChanged("box-a", 6006, 40001))
    assert snapshot.boxes[0].forwards[0].local_port == 40001
    assert fold(ForwardChanged("box-a", 6006, None), start=snapshot).boxes[0].forwards == ()


def test_what_is_watched_is_not_proposed_again() -> None:
    taken = probe(truth=truth(True, log_at=T0))
    found = (Candidate(SafeText("python a.py"), pid=412), Candidate(SafeText("python b.py"), pid=500))
    telemetry = replace(taken.telemetry, candidates=known(found))
    snapshot = fold(FLEET, live(), replace(taken, telemetry=telemetry))
    seen = snapshot.boxes[0].telemetry
    assert seen is not None
    assert [c.pid for c in seen.candidates.value or ()] == [500]


def test_everything_kept_is_bounded() -> None:
    events = [
        CommandRan(CommandRecord("box-a", SafeText(f"c{i}"), SafeText(""), T0 + i)) for i in range(2000)
    ]
    notices = [Notice(SafeText(f"n{i}")) for i in range(500)]
    snapshot = reduce(fold(FLEET), [*events, *notices], T0)
    assert len(snapshot.commands) == 500
    assert len(snapshot.notices) == 100
    assert snapshot.commands[-1].what == "c1999"


def test_what_is_used_up_runs_out_no_more_and_a_dead_run_comes_before_it() -> None:
    dead = truth(False, log_at=T0)
    snapshot = fold(FLEET, live(), probe(T0, inodes=1000, truth=dead), ProgressRead("run-1", Progress()))
    told = snapshot.boxes[0].attention
    assert [a.short for a in told] == ["run dead", "inodes 100%"]
    assert "No inodes are left on /data" in told[1].text and "full in" not in told[1].text


def test_a_diagnosis_of_a_cut_link_is_no_news_once_the_run_is_seen_again() -> None:
    cut = Incident("ssh_dropped", SafeText("cut"), "warning", "control", 0.9, "identical", (), (), ())
    told = Diagnosed(
        "box-a", "run-1", Diagnosis("unreachable", SafeText("The SSH connection was cut."), (cut,), T0), T0
    )
    away = fold(FLEET, LinkChanged("box-a", Link(LinkState.LOST, since=T0)), told)
    assert [a.short for a in away.runs[0].attention] == ["ssh dropped"]
    back = fold(live(), probe(truth=truth(True, log_at=T0)), start=away)
    assert back.runs[0].attention == ()


def test_judging_only_what_came_in_ends_in_the_same_picture() -> None:
    other = replace(BOX, name="box-b", endpoint=Endpoint("b.example"))
    fleet = FleetChanged((BOX, other), (RUN, replace(RUN, name="run-2", box="box-b")))
    dead = truth(False, log_at=T0)
    steps: list[list[Event]] = [
        [fleet, live()],
        [probe(T0, inodes=950, truth=truth(True, log_at=T0))],
        [LinkChanged("box-b", Link(LinkState.UNREACHABLE, since=T0))],
        [ProgressRead("run-1", Progress(finished=False)), probe(T0 + 2, inodes=960, truth=dead)],
    ]
    whole, partly = FleetSnapshot(), FleetSnapshot()
    for number, events in enumerate(steps):
        now = T0 + 2 * number
        whole = reduce(whole, events, now)
        partly = reduce(partly, events, now, whole=False)
    partly = reduce(partly, [], T0 + 6)
    assert replace(partly, version=0) == replace(reduce(whole, [], T0 + 6), version=0)
    assert [a.short for a in partly.boxes[0].attention][:1] == ["run dead"]
