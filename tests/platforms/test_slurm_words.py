"""What Slurm's tools say, in their own words, as states of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tui.box.errors import ConnectFailure
from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.model.instance import Endpoint, Instance, LinkState
from tui.model.via import SlurmStep
from tui.platforms.control import NoAnswer, NoControlPlane, NoSuchMachine
from tui.platforms.find import Wanted, plane_for
from tui.platforms.slurm import Slurm, described, listed

WHO = "user ada\ncluster big\n"
GONE = "job slurm_load_jobs error: Invalid job id specified\n"


def record(state: str, more: str = "Requeue=0 Restarts=0", job: str = "7") -> str:
    return (
        f"job JobId={job} JobName=x y=z UserId=ada(1) JobState={state} Reason=None Dependency=(null) {more} "
        "RunTime=00:01:00 TimeLimit=02:00:00 SubmitTime=2026-11-01T00:00:00 TRES=cpu=1,gres/gpu:h100=2\n"
    )


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("PENDING", "starting"),
        ("CONFIGURING", "starting"),
        ("RUNNING", "running"),
        ("SUSPENDED", "running"),
        ("COMPLETING", "destroying"),
        ("STAGE_OUT", "destroying"),
        ("CANCELLED", "gone"),
        ("TIMEOUT", "gone"),
        ("OUT_OF_MEMORY", "gone"),
        ("REQUEUE_HOLD", "starting"),
        ("SOMETHING_NEW", "unknown"),
    ],
)
def test_each_word_of_a_state(word: str, state: str) -> None:
    found = described(WHO + record(word), "7")
    assert (found.state, found.said, found.gpu) == (state, word, "2 × h100")


def test_preempted_is_over_only_where_it_does_not_come_back() -> None:
    assert described(WHO + record("PREEMPTED"), "7").state == "gone"
    assert described(WHO + record("PREEMPTED", "Requeue=1 Restarts=0"), "7").state == "stopping"


def test_an_array_is_gone_when_its_last_task_is() -> None:
    tasks = record("COMPLETED", job="7") + record("RUNNING", job="8")
    assert described(WHO + tasks, "7").state == "running"


def test_a_forgotten_job_is_what_accounting_remembers() -> None:
    found = described(WHO + GONE + "past 7|CANCELLED by 1000|0:15|2026-11-01T00:00:00\n", "7")
    assert (found.state, found.said) == ("gone", "CANCELLED by 1000 0:15")


def test_accounting_that_lags_is_no_proof_of_life_or_end() -> None:
    assert described(WHO + GONE + "past 7|RUNNING|0:0|x\n", "7").state == "unknown"


@pytest.mark.parametrize("past", ["", "past Slurm accounting storage is disabled\n"])
def test_known_to_nobody(past: str) -> None:
    with pytest.raises(NoSuchMachine):
        described(WHO + GONE + past, "7")


@pytest.mark.parametrize(
    "said",
    [
        "job slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
        "job slurm_load_jobs error: Socket timed out on send/recv operation\n",
        "",
    ],
)
def test_silence_is_never_an_end(said: str) -> None:
    with pytest.raises(NoAnswer):
        described(WHO + said, "7")


def test_no_tools_is_no_cluster() -> None:
    with pytest.raises(NoAnswer, match="no squeue"):
        described("none\n", "7")


def test_a_list_that_was_cut_or_refused_is_never_complete() -> None:
    row = "row 7_[1-3]|7|PENDING|Priority|0:00|1:00|a|b\n"
    whole = listed(WHO + row + "complete\n")
    assert whole.complete
    assert whole.account == "ada@big"
    assert {one.id for one in whole.machines} == {"7_[1-3]", "7"}
    assert not listed(WHO + row + "row 8|8|RUN\ncomplete\n").complete
    with pytest.raises(NoAnswer):
        listed(WHO + row)
    with pytest.raises(NoAnswer, match="refused us"):
        listed(WHO + "refused slurm_load_jobs error: refused us\n")


# --- the way to the login node ------------------------------------------------------------------------------

JOB = Instance("hpc-7", "slurm", Endpoint("login.example"), "7", via=SlurmStep("7", "hpc"))


async def test_the_login_node_is_reached_as_the_operators_own_connections_are(tmp_path: Path) -> None:
    """It may ask for a password there; where nobody answers, what to do is told."""
    reached: list[Instance] = []

    async def reach(instance: Instance) -> Any:
        reached.append(instance)
        raise ConnectFailure(
            "hpc: login.example needs a password.",
            state=LinkState.NEEDS_SECRET,
            retry=False,
            do="Connect again and type it, or load a key into the agent.",
        )

    found = plane_for(Wanted(JOB, None, Paths(tmp_path, tmp_path), reach), NoControlPlane("slurm", "-", "-"))
    assert isinstance(found, Slurm)
    asked = Victim(name="hpc-7", platform="slurm", instance_id="7")
    with pytest.raises(NoAnswer, match=r"needs a password\. Connect again and type it, or load a key"):
        await found.describe(asked)
    with pytest.raises(NoAnswer, match="needs a password"):
        await found.destroy(asked)
    assert [(one.name, one.via) for one in reached] == [("hpc", None)] * 2
