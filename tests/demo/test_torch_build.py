"""A demo never pulls CUDA wheels: what pip would install is read first; at need it goes on without torch."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
from collections.abc import Callable, Sequence

import pytest

from tui.demo import torch_build
from tui.demo.torch_build import CPU_INDEX, gpu_packages

Answer = Callable[[Sequence[str]], tuple[int, str]]


def report(*packages: tuple[str, str]) -> dict[str, object]:
    """A report in the form of ``pip install --dry-run --report -`` (its format version 1)."""
    return {
        "version": "1",
        "pip_version": "25.3",
        "install": [
            {
                "download_info": {
                    "url": f"https://files.example.org/{name}-{version}-py3-none-any.whl",
                    "archive_info": {"hash": "sha256=00", "hashes": {"sha256": "00"}},
                },
                "is_direct": False,
                "is_yanked": False,
                "requested": name == "torch",
                "metadata": {"metadata_version": "2.4", "name": name, "version": version},
            }
            for name, version in packages
        ],
        "environment": {"python_version": "3.11", "sys_platform": "linux", "platform_machine": "x86_64"},
    }


CPU = report(("torch", "2.13.0+cpu"), ("filelock", "3.20.0"), ("sympy", "1.14.0"), ("networkx", "3.5"))
CUDA = report(
    ("torch", "2.13.0"),
    ("filelock", "3.20.0"),
    ("nvidia-cublas", "13.1.0.3"),
    ("nvidia-cudnn-cu13", "9.15.1.9"),
    ("cuda-bindings", "13.1.0"),
    ("triton", "3.7.0"),
)


@pytest.mark.parametrize(
    ("found", "heavy"),
    [
        (CPU, []),
        (report(("torch", "2.13.0")), []),  # a Mac's or an ARM box's plain build
        (CUDA, ["cuda-bindings", "nvidia-cublas", "nvidia-cudnn-cu13", "triton"]),
        (report(("torch", "2.13.0+cu130")), ["torch"]),
        (
            report(("torch", "2.13.0+rocm6.4"), ("pytorch-triton-rocm", "3.7.0")),
            ["pytorch-triton-rocm", "torch"],
        ),
        (report(("torch", "2.13.0+xpu")), ["torch"]),
        (report(("torch", "2.13.0"), ("NVIDIA_cuda.runtime", "13")), ["NVIDIA_cuda.runtime"]),
        (report(("torch", "2.13.0+cpu"), ("cudf-nothing-of-ours", "1")), []),
        (report(), []),
    ],
)
def test_gpu_packages_are_told(found: dict[str, object], heavy: list[str]) -> None:
    assert gpu_packages(json.loads(json.dumps(found))) == heavy


@pytest.mark.parametrize("other", [None, [], {}, {"install": None}, {"install": [{}]}, {"install": [None]}])
def test_a_report_of_another_form_is_not_taken_for_a_light_one(other: object) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        gpu_packages(other)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], list[list[str]]]:
    """Stand in for pip on a machine without torch; gives back what pip was told to do."""

    def stand_in(answer: Answer) -> list[list[str]]:
        calls: list[list[str]] = []

        def pip(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
            calls.append(list(arguments))
            code, out = answer(arguments)
            return subprocess.CompletedProcess(list(arguments), code, out, "")

        def version(_name: str) -> str:
            raise importlib.metadata.PackageNotFoundError

        monkeypatch.setattr(torch_build, "_pip", pip)
        monkeypatch.setattr(importlib.metadata, "version", version)
        return calls

    return stand_in


def installs(calls: list[list[str]]) -> list[list[str]]:
    return [call for call in calls if "--dry-run" not in call]


def test_the_configured_index_is_taken_when_its_build_is_light(
    asked: Callable[[Answer], list[list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    calls = asked(lambda words: (0, json.dumps(CPU)))
    assert torch_build.main() == 0
    assert installs(calls) == [["install", "--quiet", torch_build.REQUIREMENT]]
    assert "installing the CPU build" in capsys.readouterr().out


def test_a_cuda_plan_is_not_carried_out(
    asked: Callable[[Answer], list[list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    calls = asked(lambda words: (0, json.dumps(CPU if CPU_INDEX in words else CUDA)))
    assert torch_build.main() == 0
    assert installs(calls) == [["install", "--quiet", "--index-url", CPU_INDEX, torch_build.REQUIREMENT]]
    assert "it would bring 4 GPU packages (cuda-bindings, …)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "answer",
    [
        lambda words: (0, json.dumps(CUDA)),
        lambda words: (1, ""),  # no network, or no such build
        lambda words: (0, "<html>captive portal</html>"),
        lambda words: (0, "{}"),
    ],
    ids=["cuda only", "refused", "not json", "another form"],
)
def test_without_a_light_build_it_goes_on_and_says_how_to_add_torch(
    answer: Answer, asked: Callable[[Answer], list[list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    calls = asked(answer)
    assert torch_build.main() == 0
    assert installs(calls) == []
    assert len(calls) == len(torch_build.SOURCES)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Going on without torch: the demo trains in NumPy. To add it later: ")
    assert last.endswith(f"-m pip install --index-url {CPU_INDEX} {torch_build.REQUIREMENT}")


def test_a_silent_index_is_waited_for_no_longer_than_the_deadline(
    asked: Callable[[Answer], list[list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    def silent(words: Sequence[str]) -> tuple[int, str]:
        raise subprocess.TimeoutExpired(list(words), torch_build.DEADLINE_S)

    assert installs(asked(silent)) == []
    assert torch_build.main() == 0
    assert "no answer in 300 s" in capsys.readouterr().out


def test_torch_that_is_there_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.13.0")
    monkeypatch.setattr(torch_build, "_pip", lambda words: pytest.fail("pip was called"))
    assert torch_build.main() == 0
