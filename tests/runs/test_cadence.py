"""How often a run should save: from what its log says, else from its files and the disk."""

from __future__ import annotations

import pytest

from tui.runs.cadence import Seen, advise, lines, pace, read

LOG = (
    b"checkpoint saved: step 10, 1000 bytes in 4.00 s\n"
    b"epoch 1 checkpoint saved: step 20, 1000 bytes in 6.00 s\n"
    b"checkpoint saved: step 30, 1200 bytes in 5.00 s\n"
)
FILES = b"files\n1700003600 1200\n1700001800 1000\n1700000000 1000\n"
DAY = 86400.0


def test_the_log_tells_the_time_of_a_save_and_the_files_their_distance() -> None:
    seen = read(LOG + FILES)
    assert seen == Seen((4.0, 6.0, 5.0), (1200, 1000, 1000), (1800.0, 1800.0))
    advice = advise(seen, DAY)
    assert (advice.save_s, advice.now_s, advice.size) == (5.0, 1800.0, 1200)
    assert advice.every_s == pytest.approx(926.2, abs=1.0)  # sqrt(2 * 5 * 86400) = 929.5, less Daly's orders
    assert 'RGT_CHECKPOINT_EVERY_S = "926"' in lines(advice, DAY)[-1]


def test_without_a_word_in_the_log_the_disk_is_asked_and_called_the_least() -> None:
    seen = read(FILES)
    assert advise(seen, DAY).every_s is None
    assert "--measure" in advise(seen, DAY).how
    advice = advise(seen, DAY, rate=100.0)
    assert advice.save_s == 12.0
    assert "comes on top" in advice.how


def test_nothing_seen_is_nothing_said() -> None:
    advice = advise(read(b"files\n"), DAY)
    assert (advice.save_s, advice.every_s, advice.now_s) == (None, None, None)
    assert "no checkpoint was seen yet" in lines(advice, DAY)[0]


@pytest.mark.parametrize(
    "told", [b"", b"x", b"files\nx y\n-1 5\n", b"checkpoint saved: step x, y bytes in z s\n"]
)
def test_what_nobody_knows_is_left_out(told: bytes) -> None:
    assert read(told) == Seen()


def test_saves_that_take_no_time_do_not_divide_by_it() -> None:
    assert advise(Seen(saves=(0.0, 0.0)), DAY).every_s is not None


SAVED, KEPT, NOTHING = Seen(saves=(4.0, 6.0, 5.0)), Seen(sizes=(1000,)), Seen()


def test_a_run_that_begins_is_advised_by_its_own_past_before_anothers() -> None:
    own = pace(SAVED, Seen(saves=(900.0,)), "t-1", None, None)
    assert own is not None
    assert own.every_s == pytest.approx(926.2, abs=1.0)
    assert "t-1" not in own.said
    other = pace(NOTHING, SAVED, "t-1", None, "300")
    assert other is not None
    assert other.every_s == own.every_s
    assert "by t-1: the middle of 3 that the log tells" in other.said
    assert other.said.endswith('RGT_CHECKPOINT_EVERY_S = "926"; the job sets 300.')


@pytest.mark.parametrize(("own", "before", "by"), [(KEPT, NOTHING, ""), (NOTHING, KEPT, "by t-1")])
def test_a_size_alone_becomes_advice_only_with_the_disks_rate(own: Seen, before: Seen, by: str) -> None:
    told, known = pace(own, before, "t-1", None, None), pace(own, before, "t-1", 100.0, None)
    assert told is not None
    assert known is not None
    assert (told.every_s, by in told.said, "is not known" in told.said) == (None, True, True)
    assert known.every_s == advise(Seen(sizes=(1000,)), DAY, 100.0).every_s
    assert by in known.said


def test_of_nothing_known_nothing_is_said() -> None:
    assert pace(NOTHING, NOTHING, "", 100.0, "300") is None
