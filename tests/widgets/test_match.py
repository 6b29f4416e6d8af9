"""What the `/` line keeps."""

from __future__ import annotations

import pytest

from tui.model.failure import Exit, Failure
from tui.widgets.match import fuzzy_rank, matcher

ROW = "ablate-01 autodl ▲ inodes 96% sweep-a.seed3 ep 41/100"


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("", True),
        ("ABLATE", True),
        ("ablate seed3", True),
        ("ablate runpod", False),
        ("!runpod", True),
        ("!autodl", False),
        ("!", True),
        ("/seed[0-9]/", True),
        ("/^runpod/", False),
        ("!/seed[0-9]/", False),
        ("-f ablsd3", True),
        ("-f 3dsl", False),
        ("[/dev/nvme0n1]", False),
        ("/", True),
    ],
)
def test_matcher(query: str, kept: bool) -> None:
    assert matcher(query)(ROW) is kept


def test_a_bad_regex_says_what_is_wrong_with_it() -> None:
    with pytest.raises(Failure, match="no regular expression") as caught:
        matcher("/seed[0-9/")
    assert caught.value.exit is Exit.USAGE


def test_rank_prefers_beginnings() -> None:
    ranks = [fuzzy_rank("so", text) for text in ("sort", "no sort", "reason", "s-o", "x")]
    assert all(rank is not None for rank in ranks[:4])
    assert ranks[4] is None
    numbers = [rank for rank in ranks if rank is not None]
    assert numbers == sorted(numbers)


def test_letters_in_order_fit_better_the_closer_they_stand() -> None:
    better_first = ["command log", "cool", "cxxxxl", "chapter and verse of xl"]
    ranks = [fuzzy_rank("cl", text) for text in better_first]
    assert all(rank is not None and rank >= 100 for rank in ranks)
    assert ranks == sorted(ranks, key=lambda rank: rank or 0) and len(set(ranks)) == len(ranks)
    assert fuzzy_rank("cl", "lc") is None
    assert fuzzy_rank("aba", "a" * 400) is None  # and not slow
