"""`rgt verify`: what is there against what should be, in one verdict and one exit code."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.checkpoints.made import calls, floats, good_safetensors, good_zip, need_torch, put, safetensors
from tests.real import need
from tui.checkpoints.codes import CODES
from tui.checkpoints.sums import inside, read_sums, sum_line
from tui.cli import main
from tui.model.metrics import Measured, MeasuredMetric, MetricProblem
from tui.verbs import verify as verb

FILES = {"m.pt": good_zip(), "sub/n.safetensors": good_safetensors(), "log.txt": b"step 1\n"}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest(files: dict[str, bytes], start: str = "") -> bytes:
    return b"".join(sum_line(sha(data), start + name) + b"\n" for name, data in files.items())


def verify(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code = main(["verify", "--json", *map(str, words)])
    return code, json.loads(capsys.readouterr().out)


def codes(answer: dict[str, Any]) -> list[str]:
    return sorted({problem["code"] for problem in answer["problems"] if problem["effect"] != "gap"})


def test_a_lone_good_checkpoint_is_accepted_with_its_gaps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, {"m.pt": good_zip()})
    code, answer = verify(capsys, tmp_path)
    assert (code, answer["verdict"]) == (0, "accepted")
    [one] = answer["checkpoints"]
    assert (one["path"], one["verdict"], one["code"], one["tensors"]) == ("m.pt", "ok", "ok", 2)
    [file] = answer["files"]
    assert (file["path"], file["size"], file["sha256"]) == ("m.pt", len(good_zip()), sha(good_zip()))
    assert "no-manifest" in {problem["code"] for problem in answer["problems"]}
    assert verify(capsys, tmp_path / "m.pt")[1]["verdict"] == "accepted"


@pytest.mark.parametrize(
    ("name", "data", "code", "verdict"),
    [
        ("m.pt", good_zip()[:-1], 1, "refused"),
        ("m.pt", good_zip({"x": calls("posix.system")}), 1, "refused"),
        ("m.pt", good_zip({"x": calls("argparse.Namespace")}), 1, "refused"),
        ("m.pt", good_zip() + b"x", 1, "refused"),
        ("m.pt.part", good_zip(), 4, "incomplete"),
        ("adapter_config.json", b"{}", 4, "incomplete"),
        ("notes.txt", b"hello", 4, "incomplete"),
        ("model.onnx", b"\x08\x07", 4, "incomplete"),
    ],
)
def test_only_good_ones_are_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, code: int, verdict: str
) -> None:
    put(tmp_path, {name: data})
    assert (lambda got: (got[0], got[1]["verdict"]))(verify(capsys, tmp_path)) == (code, verdict)


def test_an_empty_folder_is_never_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = verify(capsys, tmp_path)
    assert (code, answer["verdict"], codes(answer)) == (4, "incomplete", ["nothing-judged"])


def against(tmp_path: Path, capsys: pytest.CaptureFixture[str], listed: bytes) -> tuple[int, list[str]]:
    put(tmp_path / "run", FILES)
    (tmp_path / "SHA256SUMS").write_bytes(listed)
    code, answer = verify(capsys, tmp_path / "run", "--manifest", tmp_path / "SHA256SUMS")
    return code, codes(answer)


GOOD = manifest(FILES)
MANIFESTS = {
    "exact": (GOOD, 0, []),
    "with dots": (manifest(FILES, "./"), 0, []),
    "CRLF": (GOOD.replace(b"\n", b"\r\n"), 0, []),
    "upper case": (b"\n".join(line[:64].upper() + line[64:] for line in GOOD.split(b"\n")), 0, []),
    "binary mark": (GOOD.replace(b"  ", b" *"), 0, []),
    "tagged": (
        b"".join(b"SHA256 (%s) = %s\n" % (n.encode(), sha(d).encode()) for n, d in FILES.items()),
        0,
        [],
    ),
    "openssl": (
        b"".join(b"SHA256(%s)= %s\n" % (n.encode(), sha(d).encode()) for n, d in FILES.items()),
        0,
        [],
    ),
    "openssl 3": (
        b"".join(b"SHA2-256(%s)= %s\n" % (n.encode(), sha(d).encode()) for n, d in FILES.items()),
        0,
        [],
    ),
    "another algorithm's tag": (GOOD + b"SHA512(m.pt)= " + b"ab" * 64 + b"\n", 1, ["manifest-line"]),
    "one missing": (GOOD + sum_line(sha(b""), "gone.csv"), 1, ["file-missing"]),
    "one extra": (manifest({"m.pt": FILES["m.pt"], "log.txt": FILES["log.txt"]}), 1, ["file-extra"]),
    "one different": (manifest({**FILES, "log.txt": b"other"}), 1, ["file-different"]),
    "empty": (b"\n\n", 1, ["file-extra", "manifest-empty"]),
    "escaping": (GOOD + sum_line(sha(b""), "../x"), 1, ["manifest-escapes"]),
    "absolute": (GOOD + sum_line(sha(b""), "/etc/passwd"), 1, ["manifest-escapes"]),
    "two digests": (GOOD + sum_line(sha(b""), "m.pt"), 1, ["manifest-twice"]),
    "twice the same": (GOOD + GOOD, 0, []),
    "md5": (GOOD + b"d41d8cd98f00b204e9800998ecf8427e  m.pt\n", 1, ["manifest-line"]),
    "a digest too short": (GOOD + b"ab" * 20 + b"  m.pt\n", 1, ["manifest-line"]),
    "with an editor's mark at its begin": (b"\xef\xbb\xbf" + GOOD, 0, []),
    "from an older PowerShell": (codecs.BOM_UTF16_LE + GOOD.decode().encode("utf-16-le"), 0, []),
    "a sentence": (GOOD + b"no such file\n", 1, ["manifest-line"]),
}


@pytest.mark.parametrize(("listed", "code", "told"), MANIFESTS.values(), ids=MANIFESTS)
def test_missing_extra_and_different_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], listed: bytes, code: int, told: list[str]
) -> None:
    assert against(tmp_path, capsys, listed) == (code, told)


def test_a_flipped_bit_that_no_format_shows_is_found_by_the_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = safetensors({"w": ("F32", (2,), floats(1, 2))})
    put(
        tmp_path,
        {
            "m.safetensors": raw[:-3] + b"\1" + raw[-2:],
            "manifest-sha256.txt": manifest({"m.safetensors": raw}),
        },
    )
    code, answer = verify(capsys, tmp_path)
    assert (code, codes(answer)) == (1, ["file-different"])
    [one] = answer["checkpoints"]
    assert (one["verdict"], one["subtype"]) == ("corrupt", "bitflip")


def test_a_matching_digest_clears_what_no_checksum_could_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"m.safetensors": good_safetensors()}
    put(tmp_path, {**files, "manifest-sha256.txt": manifest(files)})
    _, answer = verify(capsys, tmp_path)
    assert answer["verdict"] == "accepted"
    assert not {"no-checksum", "no-manifest"} & {problem["code"] for problem in answer["problems"]}
    assert [file["listed"] for file in answer["files"]] == ["same", ""]  # the list itself is on no list


def test_bags_are_read_as_bags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    payload = {"data/m.pt": good_zip(), "data/a\nb%.txt": b"x"}
    encoded = manifest({"data/m.pt": good_zip()}) + f"{sha(b'x')}  data/a%0Ab%25.txt\n".encode()
    tags = {"bagit.txt": b"BagIt-Version: 1.0\n", "bag-info.txt": b"", "manifest-sha256.txt": encoded}
    put(tmp_path, payload | tags)
    assert verify(capsys, tmp_path)[0] == 0
    assert verify(capsys, tmp_path / "data", "--manifest", tmp_path / "manifest-sha256.txt")[0] == 0
    put(tmp_path, {"data/more.txt": b""})
    code, answer = verify(capsys, tmp_path)
    assert (code, codes(answer)) == (1, ["file-extra"])


def test_a_bag_is_held_to_what_it_says_of_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = manifest({"data/m.pt": good_zip()})
    bag = {"data/m.pt": good_zip(), "bagit.txt": b"BagIt-Version: 1.0\n", "manifest-sha256.txt": listed}
    oxum = f"Payload-Oxum: {len(good_zip())}.1\n".encode()
    tags = manifest({"bagit.txt": bag["bagit.txt"], "manifest-sha256.txt": listed, "bag-info.txt": oxum})
    put(tmp_path, bag | {"bag-info.txt": oxum, "tagmanifest-sha256.txt": tags})
    assert verify(capsys, tmp_path)[0] == 0
    put(tmp_path, {"bagit.txt": b"BagIt-Version: 0.97\n"})
    code, answer = verify(capsys, tmp_path)
    assert (code, codes(answer)) == (1, ["file-different"])
    put(tmp_path, {"bagit.txt": bag["bagit.txt"], "bag-info.txt": b"Payload-Oxum: 9.1\n"})
    code, answer = verify(capsys, tmp_path)
    assert (code, codes(answer)) == (1, ["bag-oxum", "file-different"])
    (tmp_path / "bag-info.txt").unlink()
    code, answer = verify(capsys, tmp_path)
    assert (code, codes(answer)) == (1, ["file-missing"])
    os.mkfifo(tmp_path / "bag-info.txt")
    code, answer = verify(capsys, tmp_path)
    assert code == 1 and "file-different" in codes(answer)
    (tmp_path / "bag-info.txt").unlink()
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "info").write_bytes(oxum)
    (tmp_path / "bag-info.txt").symlink_to("meta/info")
    assert verify(capsys, tmp_path)[0] == 0


def test_a_pipe_in_place_of_the_manifest_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, {"m.pt": good_zip()})
    os.mkfifo(tmp_path / "manifest-sha256.txt")
    answer = verify(capsys, tmp_path)[1]
    assert {"special-file", "no-manifest"} <= {problem["code"] for problem in answer["problems"]}


def test_a_bag_whose_maker_encoded_nothing_is_understood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, {"data/per%0Acent.txt": b"x", "data/m.pt": good_zip(), "bagit.txt": b""})
    put(tmp_path, {"manifest-sha256.txt": manifest({"data/per%0Acent.txt": b"x", "data/m.pt": good_zip()})})
    assert verify(capsys, tmp_path)[0] == 0


NAMES = [
    b"new\nline",
    b"back\\slash",
    b"cr\r",
    b" lead",
    b"trail ",
    b"*star",
    b"\xff\xfe",
    b"-rf",
    b"\\n",
    b"a\\\nb",
]


def test_sha256sum_reads_what_we_write_and_writes_what_we_read(tmp_path: Path) -> None:
    tool = need("sha256sum")["sha256sum"]
    for name in NAMES:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as out:
            out.write(name)
    ours = b"".join(sum_line(sha(name), "./" + os.fsdecode(name)) + b"\n" for name in NAMES)
    checked = subprocess.run(
        [tool, "-c", "--strict", "-"], input=ours, cwd=tmp_path, capture_output=True, timeout=30
    )
    assert checked.returncode == 0, checked.stderr
    theirs = subprocess.run(
        [tool, "--", *NAMES], cwd=tmp_path, capture_output=True, timeout=30, check=True
    ).stdout
    assert {line.path: line.sha256 for line in read_sums(theirs)} == {os.fsdecode(n): sha(n) for n in NAMES}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.binary(min_size=1, max_size=20).filter(lambda n: b"\0" not in n and b"/" not in n), unique=True
    )
)
def test_every_name_comes_back_from_a_list(names: list[bytes]) -> None:
    raw = b"".join(sum_line(sha(name), os.fsdecode(name)) + b"\n" for name in names)
    assert [line.path for line in read_sums(raw)] == [os.fsdecode(name) for name in names]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_any_list_is_read(raw: bytes, bag: bool) -> None:
    for line in read_sums(raw, bag=bag):
        assert line.path is None or inside(line.path) is None or ".." not in line.path.split("/")


def test_names_that_are_no_text_survive_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"bad_\xff\n\x1b[31m.pt")
    put(tmp_path, {name: good_zip()})
    code, answer = verify(capsys, tmp_path)
    assert (code, answer["checkpoints"][0]["path"], answer["checkpoints"][0]["kind"]) == (0, name, "name")
    assert main(["verify", str(tmp_path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_people_are_told_what_what_it_means_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, {"good.pt": good_zip(), "cut.pt": good_zip()[:-1]})
    assert main(["verify", str(tmp_path)]) == 1
    cut, good, summary, step, *_ = capsys.readouterr().out.splitlines()
    assert cut.startswith("corrupt") and "cut.pt" in cut and "ends before its content" in cut
    assert good.startswith("ok") and "2 tensors" in good
    assert summary.startswith("REFUSED: 2 files") and "1 of 2 checkpoints are good" in summary
    assert step.strip().startswith("corrupt-truncated: Fetch it again")


def test_plain_lines_are_for_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, {"a\tb.pt": good_zip()})
    assert main(["verify", "--plain", str(tmp_path)]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:4] == ["checkpoint", "ok", "ok", "a b.pt"]
    assert lines[-1] == ["verdict", "accepted"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["some-run"], "There is no folder, no file and no run 'some-run'"),
        (["./nowhere"], "There is nothing at"),
        ([".", "--manifest", "nowhere"], "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["verify", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_of_a_runs_name_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, {"some-run/m.pt": good_zip()})
    monkeypatch.chdir(tmp_path)
    assert verify(capsys, "some-run")[0] == 0
    (tmp_path / "dangling.pt").symlink_to("nowhere.pt")
    assert verify(capsys, "dangling.pt")[0] == 4


def f1(recomputed: str | None, verdict: Any) -> Measured:
    figure = MeasuredMetric(name="f1", reported="0.9", recomputed=recomputed, direction="up", verdict=verdict)
    return Measured(metrics=(figure,))


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (Measured(), 0),
        (f1("0.9", "recomputed"), 0),
        (f1("0.8", "differs"), 1),
        (f1(None, "unreadable"), 4),
        (Measured(problems=(MetricProblem(code="PRED-DUP", detail="x"),)), 4),
        (Measured(problems=(MetricProblem(code="x", detail="x", gap=True),)), 0),
    ],
)
def test_metrics_are_part_of_the_verdict(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    report: Measured,
    code: int,
) -> None:
    put(tmp_path, {"m.pt": good_zip()})
    room = SimpleNamespace(verify_metrics=lambda root: report)
    monkeypatch.setitem(sys.modules, "tui.custody.metrics", room)
    got, answer = verify(capsys, tmp_path)
    assert got == code
    assert answer["metrics"] == report.as_json()


def test_a_room_that_is_missing_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError("no", name=name)

    monkeypatch.setattr("importlib.import_module", missing)
    metrics, problems, outcome = verb._metrics(str(tmp_path))
    assert (metrics, [p.code for p in problems], outcome) == ([], ["metrics-not-checked"], "accepted")


def test_a_file_that_grows_meanwhile_is_not_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import threading

    path = tmp_path / "m.bin"
    path.write_bytes(b"\1" * (64 << 20))
    put(tmp_path, {"m.pt": good_zip()})
    stop = threading.Event()

    def grow() -> None:
        while not stop.is_set():
            with path.open("ab") as out:
                out.write(b"\1" * 4096)
            stop.wait(0.001)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        code, answer = verify(capsys, tmp_path)
    finally:
        stop.set()
        writer.join(10)
    assert (code, codes(answer)) == (4, ["file-changed"])
    assert {file["path"]: file["sha256"] for file in answer["files"]}["m.bin"] is None


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, len(good_zip()) - 1), bit=st.integers(0, 7))
def test_no_flipped_bit_passes_a_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: int, bit: int
) -> None:
    raw = bytearray(good_zip())
    raw[place] ^= 1 << bit
    put(tmp_path, {"m.pt": bytes(raw), "manifest-sha256.txt": manifest({"m.pt": good_zip()})})
    assert verify(capsys, tmp_path)[0] == 1


def test_every_code_that_can_be_said_is_in_the_table_with_what_clears_it() -> None:
    assert all(code.meaning and code.clears and code.effect for code in CODES.values())


def test_nothing_that_is_verified_ever_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = need_torch()
    canary = tmp_path / "CANARY"
    run = tmp_path / "run"
    run.mkdir()

    class Evil:
        def __init__(self, function: Any, *arguments: Any) -> None:
            self.made = (function, arguments)

        def __reduce__(self) -> Any:
            return self.made

    import pickle

    bombs = (
        Evil(os.system, f"touch {canary}"),
        Evil(exec, f"open({str(canary)!r}, 'w')"),
        Evil(open, str(canary), "w"),
    )
    for n, bomb in enumerate(bombs):
        held = {"w": torch.ones(2), "x": bomb}
        torch.save(held, run / f"zip{n}.pt")
        torch.save(held, run / f"old{n}.pt", _use_new_zipfile_serialization=False)
        torch.save(held, run / f"four{n}.pt", pickle_protocol=4)
        for protocol in range(6):
            (run / f"bare{n}-{protocol}.pkl").write_bytes(pickle.dumps(bomb, protocol))
    code, answer = verify(capsys, run)
    assert code == 1
    assert {one["verdict"] for one in answer["checkpoints"] if one["kind"] != "series"} == {"unsafe"}
    assert len(answer["checkpoints"]) == 27
    assert not canary.exists()
