"""Names that a portable folder can't carry, and patterns of the [custody] table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.custody.names import leaves_tree, link_leads_out, odd_names
from tui.model.globs import matching


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a\nb", "line feed"),
        ("a\rb", "carriage return"),
        ("per%0A", "%"),
        ("back\\slash", "backslash"),
        (" lead", "blank"),
        ("dir /trail", "blank"),
        ("x/trail ", "blank"),
        ("\x1b[31m", "control"),
        ("latin\udce9", "UTF-8"),
        ("x" * 300, "255"),
    ],
)
def test_names_that_travel_in_a_tar(path: str, why: str) -> None:
    assert why in odd_names(["fine.pt", path])[path]


def test_names_that_clash_on_other_disks_are_named_together() -> None:
    clashing = ["A/x.pt", "a/x.pt", "caf\u00e9.pt", "cafe\u0301.pt", "Straße", "STRASSE"]
    assert set(odd_names([*clashing, "b.pt"])) == set(clashing)
    assert set(odd_names(["Dir/one", "dir/two", "other/three"])) == {"Dir/one", "dir/two"}


def test_ordinary_names_are_ordinary() -> None:
    fine = [
        "epoch=3-step=100.ckpt",
        "模型_最终版.pt",
        'quote\'s "q".pt',
        "$(x).pt",
        "-rf",
        "a/b/c.d",
        "user@host:x",
        "...",
    ]
    assert not odd_names(fine)


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/etc/passwd", "a/../..", "x\0y"])
def test_escapes(path: str) -> None:
    assert leaves_tree(path)


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "c d"]), min_size=1, max_size=8))
def test_a_path_leaves_exactly_when_it_climbs_above_its_start(parts: list[str]) -> None:
    depth, lowest = 0, 0
    for part in parts:
        depth += {"..": -1, ".": 0}.get(part, 1)
        lowest = min(lowest, depth)
    assert leaves_tree("/".join(parts)) == (lowest < 0)


def test_links() -> None:
    assert link_leads_out("a/b", "../../x")
    assert link_leads_out("a", "/x")
    assert not link_leads_out("a/b", "../x")


@pytest.mark.parametrize(
    ("pattern", "hits"),
    [
        ("*.pt", {"a.pt"}),
        ("**/*.pt", {"a.pt", "d/b.pt", "d/e/c.pt"}),
        ("d", {"d/b.pt", "d/e/c.pt"}),
        ("d/*", {"d/b.pt", "d/e/c.pt"}),
        ("d/**", {"d/b.pt", "d/e/c.pt"}),
        ("[ab].pt", {"a.pt"}),
        ("[!a].pt", set()),
        ("?.pt", {"a.pt"}),
        ("./a.pt", {"a.pt"}),
        ("[z-a]*", set()),
        ("A.pt", set()),
    ],
)
def test_patterns(pattern: str, hits: set[str]) -> None:
    assert set(matching(pattern, ["a.pt", "d/b.pt", "d/e/c.pt"])) == hits


@given(st.text(alphabet="ab*?[]!^-/\\.", max_size=12), st.text(alphabet="ab/.", max_size=12))
def test_no_pattern_breaks_the_reader(pattern: str, path: str) -> None:
    matching(pattern, [path])
