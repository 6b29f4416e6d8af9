"""Pickles are read without running them: every name they would import is seen, however it is hidden."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkpoints.made import a_global, calls, need_torch, state, tensor, text
from tui.checkpoints.contents import tensors_in
from tui.checkpoints.pickle_globals import UNKNOWN, allowed, danger, refused, worst
from tui.checkpoints.pickle_reader import MAX_NODES, Pickle, PickleDamaged, PickleTooLong, read_pickle
from tui.checkpoints.tensors import Tensor


def read(raw: bytes) -> Pickle:
    return read_pickle(io.BufferedReader(io.BytesIO(raw)))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False)
    | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=8), inner, max_size=5)
        | st.lists(inner, max_size=4).map(tuple)
    ),
    max_leaves=25,
)


@settings(max_examples=200, deadline=None)
@given(PLAIN, st.integers(2, 5))
def test_plain_data_is_read_as_pickle_reads_it(value: Any, protocol: int) -> None:
    assert read(pickle.dumps(value, protocol)).value == value


@settings(max_examples=100, deadline=None)
@given(PLAIN, st.integers(0, 1))
def test_old_protocols_are_walked_to_their_end(value: Any, protocol: int) -> None:
    raw = pickle.dumps(value, protocol)
    assert read(raw).end == len(raw)


class Calls:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = (function, arguments)

    def __reduce__(self) -> Any:
        return self.made


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("function", [os.system, eval, exec, getattr, __import__])
def test_a_call_is_named_in_every_protocol(protocol: int, function: Any) -> None:
    found = read(pickle.dumps({"w": [Calls(function, "true")]}, protocol))
    assert worst(refused(found.globals)) == "high"


HIDDEN = {
    "memoised pieces": b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x940"
    + b"0h\x00h\x01\x93"
    + text("true")
    + b"\x85R.",
    "duplicated": b"\x80\x04\x8c\x05posix\x8c\x06system\x93" + b"2" + text("true") + b"\x85R0.",
    "INST": b"(" + text("true") + b"iposix\nsystem\n.",
    "OBJ": b"(" + a_global("posix.system") + text("true") + b"o.",
    "inside a tuple that is thrown away": b"(" + a_global("posix.system") + text("true") + b"\x85Rt0N.",
    "behind a mark that is thrown away": b"(" + calls("posix.system") + b"1N.",
    "as the state of another": b"\x80\x02"
    + a_global("argparse.Namespace")
    + b")\x81"
    + calls("posix.system")
    + b"b.",
    "attribute by attribute": b"\x80\x04\x8c\x13torch.serialization\x8c\x09os.system\x93"
    + text("x")
    + b"\x85R.",
    "Python 2's name": calls("__builtin__.eval") + b".",
    "a package that imports os": calls("torch.serialization.os.system") + b".",
    "numpy's own way": calls("numpy.testing._private.utils.runstring") + b".",
    "torch's own way": calls("torch.hub.load") + b".",
}


@pytest.mark.parametrize("raw", HIDDEN.values(), ids=HIDDEN)
def test_hidden_calls_are_seen(raw: bytes) -> None:
    assert worst(refused(read(raw).globals)) == "high"


def test_a_name_put_together_at_run_time_counts_as_dangerous() -> None:
    found = read(b"\x80\x04" + b"N\x8c\x06system\x93.")
    assert found.globals == [UNKNOWN]
    assert danger(UNKNOWN) == "high"


def test_a_name_seen_before_damage_is_known() -> None:
    found = Pickle()
    with pytest.raises(PickleDamaged) as caught:
        read_pickle(io.BufferedReader(io.BytesIO(calls("posix.system"))), found=found)
    assert caught.value.truncated
    assert found.globals == ["posix.system"]


@pytest.mark.parametrize(
    "raw", [b"", b"\x80\x02", b"\x80\x02}(X\xff\xff\xff\x7fa", b"\x8d" + b"\xff" * 8, b"("]
)
def test_an_end_that_comes_too_early_is_truncation(raw: bytes) -> None:
    with pytest.raises(PickleDamaged) as caught:
        read(raw)
    assert caught.value.truncated


@pytest.mark.parametrize("raw", [b"\xff.", b"h\x07.", b"\x80\x09N.", b"t.", b"}Ns.", b"0.", b"\x93."])
def test_nonsense_is_damage(raw: bytes) -> None:
    with pytest.raises(PickleDamaged):
        read(raw)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_value_or_in_damage(raw: bytes) -> None:
    try:
        read(raw)
    except (PickleDamaged, PickleTooLong):
        pass


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([op.code.encode("latin-1") for op in pickletools.opcodes]), max_size=40),
    st.binary(),
)
def test_any_program_ends_in_a_value_or_in_damage(ops: list[bytes], tail: bytes) -> None:
    raw = b"".join(op + tail[place : place + 3] for place, op in enumerate(ops))
    try:
        read(b"(((]}N" + raw)
    except (PickleDamaged, PickleTooLong):
        pass


def test_depth_costs_neither_the_stack_nor_time() -> None:
    deep = read(b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b".")
    assert tensors_in(deep.value) == ([], False)
    with pytest.raises(PickleDamaged):
        read(b"(" * 200_000 + b"N.")


def test_shared_parts_are_walked_once() -> None:
    doubled = b"\x80\x02]q\x00" + b"".join(b"]q%c(h%ch%ce" % (n, n - 1, n - 1) for n in range(1, 60)) + b"."
    assert tensors_in(read(doubled).value) == ([], True)


def test_behind_the_values_that_are_kept_names_are_still_found() -> None:
    many = b"\x80\x02](" + b"K\x01" * (MAX_NODES + 10) + b"e"
    found = read(b"\x80\x02](" + many[2:] + calls("posix.system") + b"e.")
    assert not found.complete
    assert found.globals == ["posix.system"]


def test_a_name_cannot_hide_behind_a_thousand_others() -> None:
    many = b"".join(a_global(f"package.Type{n}") + b"0" for n in range(1500))
    assert worst(refused(read(many + calls("posix.system") + b".").globals)) == "high"


def test_places_are_not_guessed_where_values_were_left_out() -> None:
    filler = b"\x80\x04(" + b"K\x01" * (MAX_NODES + 10) + b"1]\x94"
    with pytest.raises(PickleTooLong):
        read(filler + b"\x8c\x05posix\x94\x8c\x06system\x94h\x01h\x02\x93.")
    overwritten = (
        b"(" + b"K\x01" * (MAX_NODES + 10) + b"1" + text("harmless") + b"q\x010]q\x010h\x01h\x01\x93."
    )
    assert read(overwritten).globals == [UNKNOWN]


def test_an_endless_pickle_is_given_up() -> None:
    with pytest.raises(PickleTooLong):
        read(b"N0" * 2_100_000 + b"N.")


def test_tensors_are_found_with_their_place() -> None:
    found = read(
        state({"a": tensor("7", (2, 3)), "n": b"}" + text("b") + tensor("8", (5,), "HalfStorage") + b"s"})
    )
    tensors, whole = tensors_in(found.value)
    assert whole
    assert [(name, t.dtype, t.shape, t.storage.key) for name, t in tensors] == [
        ("a", "float32", (2, 3), "7"),
        ("n.b", "float16", (5,), "8"),
    ]
    assert all(isinstance(t, Tensor) and t.contiguous and t.inside for _, t in tensors)


def test_a_tensor_beyond_its_storage_is_noticed() -> None:
    tensors, _ = tensors_in(read(state({"a": tensor("0", (4,), count=3)})).value)
    assert not tensors[0][1].inside


NAMES = {
    "torch.FloatStorage": None,
    "torch.cuda.HalfTensor": None,
    "collections.OrderedDict": None,
    "__builtin__.set": None,
    "torch.float8_e4m3fn": None,
    "numpy.core.multiarray.scalar": "low",
    "numpy._core.multiarray._reconstruct": "low",
    "numpy.dtypes.Float64DType": "low",
    "argparse.Namespace": "low",
    "pathlib.PosixPath": "low",
    "pathlib._local.PosixPath": "low",
    "datetime.datetime": "low",
    "torch.nn.modules.linear.Linear": "medium",
    "ultralytics.nn.modules.conv.Conv": "medium",
    "mmengine.logging.history_buffer.HistoryBuffer": "medium",
    "transformers.training_args.TrainingArguments": "medium",
    "__main__.Net": "medium",
    "omegaconf.dictconfig.DictConfig": "medium",
    "os.system": "high",
    "nt.system": "high",
    "subprocess.Popen": "high",
    "builtins.getattr": "high",
    "runpy._run_code": "high",
    "importlib.import_module": "high",
    "pickle.loads": "high",
    "functools.reduce.__globals__": "high",
    "operator.attrgetter": "high",
    "torch.fx.graph_module.reduce_graph_module": "high",
    "webbrowser.open": "high",
    "types.FunctionType": "high",
    "somepackage.tools.exec_command": "high",
    "torch.storage._load_from_bytes": "high",
    "pandas.read_pickle": "high",
    "uuid._get_command_stdout": "high",
    "somepackage.shell.ShellNet": "medium",
    "somepackage.eval_metrics": "medium",
}


@pytest.mark.parametrize(("name", "level"), NAMES.items())
def test_what_a_name_can_do(name: str, level: str | None) -> None:
    assert (None if allowed(name) else danger(name)) == level


def test_torch_lets_in_nothing_that_is_refused_here() -> None:
    need_torch()
    from torch import _weights_only_unpickler as unpickler

    known = unpickler._get_allowed_globals()
    assert [name for name in known if not allowed(name)] == []
