"""Prediction files of every format, whole and hostile."""

from __future__ import annotations

import json
import os
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.custody.metric_folders import answers, examined, only, write_csv, write_jsonl, write_metrics

np = pytest.importorskip("numpy")

from tui.custody.predictions.foreign import Unreadable  # noqa: E402 - needs NumPy
from tui.custody.predictions.tables import open_table  # noqa: E402 - needs NumPy

FORMATS = ("csv", "jsonl", "npz", "safetensors", "parquet")


def _column(path: Path, column: str) -> list[Any]:
    table = open_table(path, path.name)
    return [value for batch in table.batches([column]) for value in batch[column].tolist()]


def test_csv_with_byte_order_mark_crlf_quotes_and_line_feeds_in_cells(tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    path.write_bytes(b'\xef\xbb\xbfid,target,prediction\r\n"a,1",0,0\r\n"b\n2",1,"1"\r\n"c""3",,2\r\n')
    assert open_table(path, path.name).columns == ("id", "target", "prediction")
    assert _column(path, "id") == ["a,1", "b\n2", 'c"3']
    assert _column(path, "target") == ["0", "1", None]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "empty"),
        (b"id,target\n1,2,3\n", "row 1 of p.csv has 3 cells, its header 2"),
        (b"id,id\n1,2\n", "two columns called 'id'"),
        (b'id,target\n"1,2\n' + b"x" * 200_000, "damaged near line"),
        (b'id,target\n"1"x,2\n', "damaged near line"),
        (b"id,target\n1,\xff\xfe\n", "line 2 of p.csv is not UTF-8"),
        ("id,target\n1,2\n".encode("utf-16"), "not UTF-8"),
        (b"id," + b"x" * (17 << 20), "longer than 16 MiB"),
    ],
)
def test_a_damaged_csv_is_named_for_what_it_is(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(raw)
    with pytest.raises(Unreadable, match=says):
        _column(path, "id")


def test_tabs_and_semicolons(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("id\ttarget\n1\t2\n")
    (tmp_path / "p.csv").write_text("id;target\n1;2\n")
    assert _column(tmp_path / "p.tsv", "target") == ["2"]
    assert _column(tmp_path / "p.csv", "target") == ["2"]


@pytest.mark.parametrize(
    "line", ['{"id": 1', "[1]", '{"id": 1, "id": 2}', "[" * 100_000, '{"id": ' + "9" * 5000 + "}"]
)
def test_a_damaged_json_line_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": 0}\n' + line + "\n")
    with pytest.raises(Unreadable, match=r"line 2"):
        _column(path, "id")


def test_json_lines_with_missing_keys_and_not_a_number(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": 1, "x": NaN}\n\n{"id": 2}\n')
    values = _column(path, "x")
    assert np.isnan(values[0]) and values[1] is None


def test_a_list_of_objects_in_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(answers(4)))
    write_metrics(tmp_path, accuracy="0.75")
    assert only(examined(tmp_path)).verdict == "recomputed"
    path.write_text('{"a": 1}')
    assert only(examined(tmp_path)).verdict == "unreadable"


def test_an_archive_is_read_in_pieces_and_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    good = tmp_path / "p.npz"
    np.savez_compressed(good, id=np.array(["a", "b", "c"]), target=np.arange(3), classes=np.array(["x", "y"]))
    table = open_table(good, good.name)
    assert table.columns == ("id", "target") and table.left_out == ("classes",)
    assert _column(good, "id") == ["a", "b", "c"]

    class Evil:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "executed"),))

    evil = np.empty(1, dtype=object)
    evil[0] = Evil()
    np.savez(tmp_path / "evil.npz", id=evil)
    with pytest.raises(Unreadable, match="pickled Python objects"):
        _column(tmp_path / "evil.npz", "id")
    (tmp_path / "plain.npz").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(Unreadable, match="no readable NumPy archive"):
        _column(tmp_path / "plain.npz", "id")
    assert not (tmp_path / "executed").exists()


def test_an_archive_that_lies_about_its_sizes(tmp_path: Path) -> None:
    header = np.lib.format.magic(1, 0)
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000,), }"
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("id.npy", header + len(text).to_bytes(2, "little") + text + b"\0" * 64)
    with pytest.raises(Unreadable, match="ends early"):
        _column(tmp_path / "p.npz", "id")
    np.savez(tmp_path / "q.npz", id=np.arange(100_000))
    raw = bytearray((tmp_path / "q.npz").read_bytes())
    raw[400_000] ^= 1  # inside the data: only the checksum of the member shows it
    (tmp_path / "q.npz").write_bytes(raw)
    with pytest.raises(Unreadable, match="damaged"):
        _column(tmp_path / "q.npz", "id")
    np.savez(tmp_path / "f.npz", x=np.asfortranarray(np.zeros((3, 4))))
    with pytest.raises(Unreadable, match="column by column"):
        open_table(tmp_path / "f.npz", "f.npz")


def test_safetensors_whole_and_cut(tmp_path: Path) -> None:
    numpy_file: Any = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "p.safetensors"
    numpy_file.save_file({"id": np.arange(5), "target": np.arange(5.0, dtype="f2")}, path)
    assert _column(path, "target") == [0.0, 1.0, 2.0, 3.0, 4.0]
    raw = path.read_bytes()
    for damaged in (raw[:-1], raw + b"\0", raw[:20], b"", b"\xff" * 8 + raw[8:]):
        path.write_bytes(damaged)
        with pytest.raises(Unreadable, match=r"safetensors"):
            _column(path, "id")


def test_bfloat16_is_read_exactly(tmp_path: Path) -> None:
    header = json.dumps({"id": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "p.safetensors"
    path.write_bytes(
        len(header).to_bytes(8, "little") + header + (0x3FC0).to_bytes(2, "little") + b"\x00\xc0"
    )
    assert _column(path, "id") == [1.5, -2.0]


def test_parquet_with_nulls_dictionaries_lists_and_half_floats(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "p.parquet"
    columns = {
        "id": pa.array(["a", "b", "c"]).dictionary_encode(),
        "target": pa.array([0, None, 2], pa.int8()),
        "scores": pa.array([[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]], pa.list_(pa.float32())),
        "boxes": pa.array([[[1.0, 2, 3, 4]], [], [[0.0, 0, 1, 1], [1.0, 1, 2, 2]]]),
        "p": pa.array(np.array([0.5, 0.25, 0.125], dtype=np.float16)),
        "fixed": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
    }
    pq.write_table(pa.table(columns), path, row_group_size=2)
    assert _column(path, "id") == ["a", "b", "c"]
    assert _column(path, "target") == [0, None, 2]
    assert _column(path, "boxes") == [[[1.0, 2.0, 3.0, 4.0]], [], [[0.0, 0, 1, 1], [1.0, 1, 2, 2]]]
    batches = list(open_table(path, path.name).batches(["scores", "fixed", "p"]))
    assert sum(len(batch["p"]) for batch in batches) == 3
    assert all(batch["scores"].shape[1:] == (2,) and batch["fixed"].shape[1:] == (2,) for batch in batches)
    raw = path.read_bytes()
    for damaged in (raw[:-10], raw[:200], b"PAR1" + b"\0" * 50 + b"PAR1", b""):
        path.write_bytes(damaged)
        with pytest.raises(Unreadable, match=r"Parquet"):
            _column(path, "id")


def test_one_population_says_the_same_in_every_format(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    numpy_file: Any = pytest.importorskip("safetensors.numpy")
    rows = answers()
    arrays = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    tensors = {**arrays, "id": np.arange(20)}
    folders = [tmp_path / str(number) for number in range(5)]
    for folder in folders:
        write_metrics(folder, accuracy="0.900", f1_macro="0.9011", samples=20)
    write_csv(folders[0] / "predictions.csv", rows)
    write_jsonl(folders[1] / "predictions.jsonl", rows)
    pq.write_table(pa.table(arrays), folders[2] / "results.parquet")
    np.savez(folders[3] / "preds.npz", **arrays)
    numpy_file.save_file(tensors, folders[4] / "predictions.safetensors")
    report = examined(tmp_path)
    assert [finding.verdict for finding in report.metrics] == ["recomputed"] * 10
    assert not report.problems and {finding.population for finding in report.metrics} == {20}


def test_a_pipe_a_link_out_of_the_folder_and_a_folder_are_no_predictions(tmp_path: Path) -> None:
    secret = write_csv(tmp_path / "elsewhere" / "predictions.csv", answers())
    run = tmp_path / "run"
    write_metrics(run, accuracy="0.900")
    (run / "predictions.csv").symlink_to(secret)
    os.mkfifo(run / "preds.csv")
    (run / "results.csv").mkdir()
    assert only(examined(run)).verdict == "not-declared"
    declared = {"predictions": [{"files": ["../elsewhere/predictions.csv", "predictions.csv", "preds.csv"]}]}
    assert only(examined(run, declared)).verdict == "population-incomplete"


def test_lists_in_text_cells_are_json(tmp_path: Path) -> None:
    rows = [{"id": i, "target": i % 2, "probs": json.dumps([0.75, 0.25])} for i in range(4)]
    write_csv(tmp_path / "predictions.csv", rows)
    write_metrics(tmp_path, accuracy="0.50", nll="0.83699")
    assert [m.verdict for m in examined(tmp_path).metrics] == ["recomputed", "recomputed"]
    rows[1]["probs"] = "[0.75 0.25]"  # as NumPy prints it
    write_csv(tmp_path / "predictions.csv", rows)
    assert examined(tmp_path).metrics[0].verdict == "unreadable"


def _write(path: Path) -> None:
    rows = answers()
    arrays = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    if path.suffix == ".csv":
        write_csv(path, rows)
    elif path.suffix == ".jsonl":
        write_jsonl(path, rows)
    elif path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".parquet":
        pa: Any = pytest.importorskip("pyarrow")
        pa.parquet.write_table(pa.table(arrays), path)
    else:
        safetensors: Any = pytest.importorskip("safetensors.numpy")
        safetensors.save_file({**arrays, "id": np.arange(20)}, path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_damage_anywhere_ends_in_a_verdict(tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow.parquet")
    path = tmp_path / f"predictions.{suffix}"
    _write(path)
    write_metrics(tmp_path, accuracy="0.900", samples=20)
    assert only(examined(tmp_path)).verdict == "recomputed"
    whole, dice = path.read_bytes(), random.Random(suffix)
    verdicts = set()
    for _ in range(120):
        raw, at = bytearray(whole), dice.randrange(len(whole))
        way = dice.randrange(3)
        if way == 0:
            raw[at] ^= 1 << dice.randrange(8)
        elif way == 1:
            del raw[at : at + dice.randrange(1, 40)]
        else:
            raw[at:at] = dice.randbytes(dice.randrange(1, 9))
        path.write_bytes(raw)
        verdicts.add(only(examined(tmp_path)).verdict)
    assert "unreadable" in verdicts and len(verdicts) > 1
