"""A hundred boxes, probed every two seconds: beside `ssh` processes, and beside a ControlMaster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any

from tests.bench.many_plan import PERIOD_S, Outcome, Plan
from tests.bench.measure import median
from tests.bench.place import Bench, child, ssh_config
from tests.bench.report import Row, beside
from tests.rig import Sshd

SIDES = ("ours", "ssh-read", "ours-unread", "ssh-unread", "master", "ssh-on-beat")


def rows(bench: Bench) -> Iterator[Row]:
    boxes, rounds = (20, 1) if bench.quick else (100, 2)
    sides = SIDES[:5] if bench.quick else SIDES
    with bench.sshd() as server:
        plan = plan_for(server, boxes, PERIOD_S, (5 if bench.quick else 10) * PERIOD_S)
        taken: dict[str, list[Outcome]] = {side: [] for side in sides}
        for turn in range(rounds):
            for side in sides if turn == 0 else sides[:4]:
                taken[side].append(Outcome(**_watched(side, plan)))
    yield from table(boxes, {side: _middle(outcomes) for side, outcomes in taken.items()})


def plan_for(server: Sshd, boxes: int, settle_s: float, window_s: float) -> Plan:
    """Boxes that are all this server."""
    return Plan(
        server.host,
        server.port,
        server.user,
        str(server.client_key),
        server.host_key_fingerprint,
        str(ssh_config(server)),
        boxes,
        settle_s,
        window_s,
    )


def _watched(side: str, plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = child("many_child", side, json.dumps(asdict(plan)), timeout=180)
    due = plan.boxes * plan.window_s / PERIOD_S
    assert found["looks"] > 0.8 * due, f"{side}: {found['looks']} of {due:.0f} looks"
    return found


def _middle(outcomes: list[Outcome]) -> Outcome:
    middle: dict[str, Any] = {f.name: median(getattr(o, f.name) for o in outcomes) for f in fields(Outcome)}
    return Outcome(**middle)


def table(boxes: int, by_side: dict[str, Outcome]) -> Iterator[Row]:
    ours, ssh, master = by_side["ours"], by_side["ssh-unread"], by_side["master"]
    what = f"{boxes} boxes × 2 s"
    yield beside(f"{what}: connect all (peer: ssh)", ours.connect_s, ssh.connect_s, "s", most=0.4)
    yield beside(
        f"{what}: memory of the boxes (peer: ssh)",
        ours.boxes_bytes / 2**20, ssh.boxes_bytes / 2**20, "MiB", most=0.35,
        note="PSS; the base of Python, asyncssh and one box is left out of ours, the driver out of theirs",
    )  # fmt: skip
    read, unread = by_side["ssh-read"], by_side["ours-unread"]
    yield beside(
        f"{what}: CPU (peer: ssh, read by the same code)", ours.cpu_pct, read.cpu_pct, "%", most=0.6,
        note="theirs: 100 ssh and a program that asks each at its own time, parses and folds as ours does",
    )  # fmt: skip
    yield beside(
        f"{what}: CPU of the links alone (peer: ssh)", unread.cpu_pct, ssh.cpu_pct, "%", most=0.6,
        note="the same requests and answers, which nobody reads on either side; ours on its beat",
    )  # fmt: skip
    yield beside(
        f"{what}: CPU, ours read (peer: ssh, unread)", ours.cpu_pct, ssh.cpu_pct, "%",
        note="all of our work beside ssh and a program that drops what it is told",
    )  # fmt: skip
    if "ssh-on-beat" in by_side:
        beat = by_side["ssh-on-beat"]
        yield beside(
            f"{what}: CPU (peer: rgt over ssh)", ours.cpu_pct, beat.cpu_pct, "%",
            note="the same program on both sides, its beat included: only what carries it differs",
        )  # fmt: skip
    yield beside(
        f"{what}: CPU (peer: ControlMaster, cat per tick)", ours.cpu_pct, master.cpu_pct, "%", most=0.15
    )
