"""A transport into a running Slurm job: each command is a step beside it, started from the login node.

What is measured is what a step of the job sees: its node, its cgroup, its GPUs. Nothing is ever measured on
the login node in its place. Of a job over several nodes one node is seen, the first.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui.box.command_log import OnCommand
from tui.box.errors import ConnectFailure, unreachable
from tui.box.parsers.slurm import long_state
from tui.box.relayed import Carried, RelayedTransport
from tui.box.transport import LinkLost, Script
from tui.model.failure import Failure
from tui.model.instance import Instance, LinkState
from tui.model.text import safe
from tui.model.via import SlurmStep

if TYPE_CHECKING:
    from tui.box.forward import Forward
    from tui.box.session import SshTransport

_LOOK = r"""
LC_ALL=C; export LC_ALL
command -v srun >/dev/null 2>&1 || { echo 'no srun'; exit 0; }
echo "version $(srun --version 2>/dev/null)"
told=$(squeue -h -t all -j "$1" -o 'job %A|%T|%r|%N' 2>&1)
echo "$told"
case $told in *'job '*) exit 0 ;; esac
sacct -X -n -P -j "$1" -S 2000-01-01 -o State,ExitCode 2>/dev/null | tail -n 1 | sed 's/^/past /'
exit 0
"""
"""$1 the job. What squeue says of it: raw id, state, reason and node; what accounting remembers where it is
silent."""

_STEP = r"""
job=$1 share=$2
shift 2
exec srun --jobid="$job" $share --nodes=1 --ntasks=1 --unbuffered --quiet "$@"
"""
"""$1 the job's raw id, $2 ``--overlap`` or nothing, then an argument vector that srun passes on as it is."""

_OVERLAP_SINCE = (20, 11)
"""Before, steps shared the job's resources by themselves and the option is unknown."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a job stands, as the login node's tools tell it.

    Attributes:
        job: raw id, which srun takes also where squeue prints an array's task.
        state: long name; None: squeue does not know the job.
        past: what accounting remembers of its end.
        said: squeue's own words where it told no job.
    """

    version: tuple[int, ...]
    job: str = ""
    state: str | None = None
    reason: str = ""
    node: str = ""
    past: str = ""
    said: str = ""


def standing(text: str) -> Standing | None:
    """Read what the look told; None where the machine has no Slurm tools."""
    if text.startswith("no srun"):
        return None
    found = Standing(())
    for line in text.split("\n"):
        topic, _, rest = line.partition(" ")
        if topic == "version":
            found = replace(found, version=tuple(map(int, re.findall(r"\d+", rest)[:2])))
        elif topic == "past":
            found = replace(found, past=rest.strip())
        elif topic == "job" and rest.count("|") >= 3:
            job, state, reason, node = rest.split("|", 3)
            # Of a requeued array several rows may come; the one that has nodes is the one to enter.
            if found.state != "RUNNING":
                found = replace(found, job=job, state=long_state(state)[0], reason=reason, node=node)
        elif line.strip() and not found.said:
            found = replace(found, said=line.strip())
    return found


_ENTERABLE = frozenset({"RUNNING", "SIGNALING", "RESIZING"})
_COMING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
    | {"POWER_UP_NODE", "PREEMPTED", "EXPEDITING"}
)


def _no_node(what: str, do: str, code: str, *, retry: bool = True) -> ConnectFailure:
    return ConnectFailure(what, state=LinkState.UNREACHABLE, retry=retry, do=do, code=code)


def closed_because(job: str, now: Standing) -> ConnectFailure | None:
    """Why no step can be started in the job; None where one can."""
    if now.state in _ENTERABLE:
        return None
    if now.state in ("SUSPENDED", "STOPPED"):  # a step in it would wait, too, with its node in hand
        return _no_node(
            f"Job {job} is {now.state}: its processes are held, and so would be any step beside them.",
            "Nothing: it is looked for again.",
            "job-suspended",
        )
    if now.state in _COMING:
        why = f" ({safe(now.reason, 120)})" if now.reason not in ("", "None") else ""
        return _no_node(
            f"Job {job} is {now.state}{why}: it has no node yet.",
            "Nothing: it is looked for again.",
            "job-pending",
        )
    if now.state is None and "Invalid job id" not in now.said and now.said:
        return unreachable(f"Slurm does not answer: {safe(now.said, 200)}.", code="slurm-silent")
    return _over(job, now)


def _over(job: str, now: Standing) -> ConnectFailure:
    told = safe(now.state or now.past.partition("|")[0], 60)
    if told == "COMPLETING":
        return _no_node(f"Job {job} is ending.", "Nothing: it is looked for again.", "job-ending")
    if told:
        at_login = "Its log is read at the login node."
        return _no_node(f"Job {job} is over: {told}.", at_login, "job-over", retry=False)
    return _no_node(
        f"Slurm does not know job {job} any more, and nothing remembers how it ended.",
        "Look into its log at the login node.",
        "job-forgotten",
        retry=False,
    )


Dial = Callable[[Instance], Awaitable["SshTransport"]]


class SlurmBox(RelayedTransport):
    """A job as a box: a `tui.workers.box.BoxTransport` over the login node's connection."""

    def __init__(
        self, name: str, job: str, login: SshTransport, now: Standing, on_command: OnCommand
    ) -> None:
        super().__init__(name, self._carried, self._refused, on_command=on_command)
        self.job = job
        self.host_key = login.host_key
        self._login = login
        self._raw = now.job or job
        self._share = "--overlap" if now.version >= _OVERLAP_SINCE or not now.version else ""

    async def _carried(self, argv: list[bytes], why: str) -> Carried:
        script = Script(_STEP, (self._raw, self._share, *argv), why=f"a step in job {self.job}: {why}")
        return await self._login.open(script, timeout=30.0)

    def _refused(self, said: str) -> Failure:
        """Why a step did not begin. The job's end is the usual reason, and it ends the link."""
        last = said.strip().split("\n")[-1]
        return LinkLost(f"{self.name}: no step can be started in job {self.job}: {safe(last, 200)}.")

    async def wait_closed(self) -> LinkLost | None:
        return await self._login.wait_closed()

    async def alive(self, timeout: float = 3.0) -> bool:
        return await self._login.alive(timeout)

    async def forward_local(self, port: int, local_port: int = 0) -> Forward:
        raise Failure(
            f"Port {port} of {self.name} is on a compute node, which takes no forward from here.",
            do=f"ssh -L {port}:NODE:{port} to the login node, where your site allows it.",
            code="no-forward",
        )

    async def close(self) -> None:
        await self._login.close()


async def enter(instance: Instance, via: SlurmStep, dial: Dial, on_command: OnCommand) -> SlurmBox:
    """Connect to the login node and see that a step can be started in the job.

    Raises:
        ConnectFailure: no connection, or the job has no node: it waits, is over, or is not known.
    """
    login = await dial(replace(instance, name=via.login, via=None))
    try:
        done = await login.run(Script(_LOOK, (via.job,), why=f"how job {via.job} stands"), timeout=30.0)
        now = standing(done.stdout.decode("utf-8", "replace"))
        if now is None:
            raise unreachable(f"{via.login} has no srun: it is no login node of Slurm.", retry=False)
        against = closed_because(via.job, now)
        if against is not None:
            raise against
        return SlurmBox(instance.name, via.job, login, now, on_command)
    except (LinkLost, TimeoutError) as lost:
        await login.close()
        raise unreachable(f"{instance.name}: {safe(str(lost), 200)}") from None
    except BaseException:
        await login.close()
        raise
