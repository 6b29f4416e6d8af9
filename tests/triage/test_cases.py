"""Every class by what programs print, and by what looks alike."""

from __future__ import annotations

import time

import pytest

from tests.triage import reading
from tests.triage.reading import Case
from tui.model.text import SafeText
from tui.triage.catalog import load
from tui.triage.engine import diagnose
from tui.triage.inputs import Known, Said
from tui.triage.scan import scan

CASES = list(reading.cases())
CLASSES = frozenset(
    entry.id for entry in load().entries.values() if entry.diagnoses and not entry.id.startswith("x_")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.cls} {case.name}")
def test_a_case_gets_its_class_and_nothing_else(case: Case) -> None:
    found = reading.judged(case)
    assert reading.first(found) == case.wanted, [(i.cls, i.evidence) for i in found.incidents]
    if "severity" in case.about:
        assert found.incidents[0].severity == case.about["severity"]
    if "facts" in case.about:
        told = dict(found.incidents[0].facts)
        assert {name: told.get(name) for name in case.about["facts"]} == case.about["facts"]
    if "also" in case.about:
        assert set(case.about["also"]) <= set(found.incidents[0].also)


def test_every_class_has_a_case_that_is_found_and_one_that_only_looks_like_it() -> None:
    found = {case.cls for case in CASES if case.sign == "+"}
    alike = {case.cls for case in CASES if case.sign == "-"}
    assert found >= CLASSES, sorted(CLASSES - found)
    assert alike >= CLASSES, sorted(CLASSES - alike)


def test_the_taxonomy_has_sixty_classes() -> None:
    assert len(CLASSES) == 60


def test_evidence_points_at_a_line_that_says_it() -> None:
    for case in CASES:
        lines = case.text.split("\n")
        for incident in reading.judged(case).incidents:
            for one in incident.evidence:
                if one.line is not None and one.source == "log":
                    assert 1 <= one.line <= len(lines), case.name
                    told = one.text.split()
                    assert not told or told[-1] in lines[one.line - 1], (case.name, one)


def test_a_line_of_source_that_a_traceback_shows_is_no_evidence() -> None:
    text = (
        '  File "/opt/optimizer.py", line 115, in load_state_dict\n'
        '    raise ValueError("loaded state dict contains a parameter group "\n'
        "ValueError: loaded state dict contains a parameter group that doesn't match the size of the other\n"
    )
    found = reading.judged(Case("+", "ckpt_mismatch", "", text.rstrip("\n").split("\n")))
    assert reading.first(found) == "ckpt_mismatch"
    assert [one.line for one in found.incidents[0].evidence] == [3]


@pytest.mark.parametrize(
    ("log", "rc", "cls"),
    [
        (None, 137, "sigkill_unexplained"),
        (b"step 10 loss 2.1\n", 137, "sigkill_unexplained"),
        (b"step 10 loss 2.1\n", 143, "proc_terminated"),
        (b"step 10 loss 2.1\n", 1, "proc_exception"),
        (None, 0, None),
        (b"Training completed.\n", 137, None),
    ],
)
def test_the_status_of_a_run_speaks_where_its_log_does_not(
    log: bytes | None, rc: int, cls: str | None
) -> None:
    digest = None if log is None else scan([log], reading.rules().finder)
    found = diagnose(reading.rules(), digest, known=Known(rc=rc))
    assert reading.first(found) == cls
    if cls is not None:
        assert (found.outcome, found.incidents[0].evidence[0].source) == ("dead", "rc")


@pytest.mark.parametrize("piece", ["Loss.", "train_loss_a/", "step" + " " * 4000, "epoch  ", "Error: ", "1,"])
def test_a_log_of_long_lines_that_repeat_themselves_is_judged_in_bounded_time(piece: str) -> None:
    line = (piece * 8000)[:8000].encode() + b"\n"
    digest = scan([line * 40 + b"Killed\n"], reading.rules().finder)
    began = time.process_time()
    found = diagnose(reading.rules(), digest)
    assert time.process_time() - began < 3.0  # 6 s and more where a pattern takes the square of a line
    assert reading.first(found) == "sigkill_unexplained"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("df -P", "x . . . 100% /data"),
        ("df -P", "x 1.2.3 1,234,567 -. 100% /data"),
        ("df -P", f"Filesystem 1024-blocks Used Available Capacity Mounted on\nx {'9' * 400} 1 0 100% /data"),
        ("repquota -a", "ann -- ... ... 1.2.3"),
        ("quota", " Filesystem\n /dev/x 1.2.3* 4.5.6 7.8.9 6days"),
        ("beegfs-ctl --getquota", "a|1||1.2.3 KiB| .. B||9|9"),
    ],
)
def test_what_only_looks_like_a_table_of_figures_is_none(command: str, text: str) -> None:
    said = Said("disk", SafeText("box"), text, command=command)
    assert diagnose(reading.rules(), scan([text.encode()], reading.rules().finder), [said]).incidents == ()
