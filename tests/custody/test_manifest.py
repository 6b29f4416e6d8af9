"""The manifest: `sha256sum -c` accepts every one of ours, and no hostile one gets past the reader."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.real import need
from tui.custody.manifest import Line, ManifestError, parse, render

DIGEST = "a" * 64

_part = st.binary(min_size=1, max_size=20).filter(lambda b: not set(b) & {0, 47} and b not in (b".", b".."))
_paths = st.lists(_part, min_size=1, max_size=3).map(lambda parts: os.fsdecode(b"/".join(parts)))


@given(st.dictionaries(_paths, st.binary(min_size=32, max_size=32).map(bytes.hex), max_size=20))
def test_what_is_written_is_read_again(files: dict[str, str]) -> None:
    lines = [Line(path, sha256) for path, sha256 in files.items()]
    assert sorted(parse(render(lines))) == sorted(lines)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(_part.filter(lambda name: name != b"-"), min_size=1, max_size=12))
def test_sha256sum_accepts_it_and_writes_the_same(
    names: set[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All names but ``-``, which is the standard input to it; what a bag lists lies below ``data/``."""
    folder = tmp_path_factory.mktemp("bag")
    lines = []
    for name in names:
        with open(os.fsencode(folder) + b"/" + name, "wb") as file:
            file.write(name * 3)
        lines.append(Line(os.fsdecode(name), hashlib.sha256(name * 3).hexdigest()))
    manifest = folder.parent / "manifest-sha256.txt"
    manifest.write_bytes(render(lines))
    tool = need("sha256sum")["sha256sum"]
    checked = subprocess.run(
        [tool, "-c", "--strict", "--quiet", str(manifest)], cwd=folder, capture_output=True
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
    told = subprocess.run([tool, "--", *names], cwd=folder, capture_output=True).stdout
    assert sorted(parse(told)) == sorted(lines)


@pytest.mark.parametrize(
    "raw",
    [
        f"{DIGEST}  ../x\n",
        f"{DIGEST}  /etc/passwd\n",
        f"{DIGEST}  a/../b\n",
        f"{DIGEST}  a//b\n",
        f"{DIGEST}  .\n",
        f"{DIGEST}  \n",
        f"{DIGEST} x\n",
        f"{DIGEST[:-1]}  x\n",
        f"{'z' * 64}  x\n",
        "d41d8cd98f00b204e9800998ecf8427e  x\n",
        f"{DIGEST}  x\n{DIGEST}  x\n",
        f"{DIGEST}  x\n{DIGEST}  ./x\n",
        f"\\{DIGEST}  a\\x\n",
        f"\\{DIGEST}  a\\\n",
        f"\\{DIGEST}  ..\\n/../../x\n",
        f"{DIGEST}  x\0y\n",
        "\n",
    ],
)
def test_hostile_lines_are_refused(raw: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse(raw.encode())
    assert refused.value.line >= 1


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        lines = parse(raw)
    except ManifestError:
        return
    assert all(".." not in line.path.split("/") and not line.path.startswith("/") for line in lines)


def test_other_writers_forms_are_read() -> None:
    raw = f"{DIGEST.upper()} *./a b\r\n{DIGEST}  c\r\n".encode()
    assert parse(raw) == (Line("a b", DIGEST), Line("c", DIGEST))


def test_the_same_files_always_give_the_same_bytes(tmp_path: Path) -> None:
    lines = [Line("b", DIGEST), Line("a", DIGEST), Line("\udcff", DIGEST)]
    assert render(lines) == render(reversed(lines))
