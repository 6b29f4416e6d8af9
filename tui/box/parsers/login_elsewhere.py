"""Commands of other tools that lead into a machine without being an SSH login, and what to paste instead.

What each tool prints or writes is as its own help says it (``gcloud compute ssh --dry-run``, ``tsh config``,
``az ssh config``, ``vastai ssh-url``, ``runpodctl ssh info``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.box.parsers.login_text import refuse
from tui.model.failure import Failure

_LINE = "paste the line it prints"
_ALIAS = "then paste `ssh` with the name it wrote"
_SSHD = "rgt comes in over SSH only: run an SSH server in there, and paste `ssh -p PORT user@host`."

# name of the tool, how its command goes on, and what leads to an SSH login
_TOOLS: tuple[tuple[str, str, str], ...] = (
    ("gcloud", r"gcloud\s+(?:\w+\s+)*?compute\s+(?:tpus\s+tpu-vm\s+)?(?:ssh|scp|config-ssh)",
     f"Run it once more with --dry-run and {_LINE}; or run `gcloud compute config-ssh`, {_ALIAS}."),
    ("AWS", r"aws\s+(?:\S+\s+)*?(?:ssm|ec2-instance-connect)\s",
     "Put the instance with its ProxyCommand into ~/.ssh/config, then paste `ssh` with its name there."),
    ("Azure", r"az\s+(?:ssh|network\s+bastion)\s", f"Run `az ssh config --file ~/.ssh/config`, {_ALIAS}."),
    ("Teleport", r"tsh\s+(?:ssh|scp|login)\b", f"Run `tsh config >> ~/.ssh/config`, {_ALIAS}."),
    ("vast.ai", r"vastai\s+\S", f"Run `vastai ssh-url ID` and {_LINE}."),
    ("RunPod", r"runpodctl\s+\S",
     f"Run `runpodctl ssh info POD` and {_LINE}; or copy “SSH over exposed TCP”."),
    ("kubectl", r"(?:kubectl|oc)\s+(?:\S+\s+)*?(?:exec|rsh|attach|debug|port-forward)\b",
     "rgt goes into pods by itself: `rgt add pod:NAMESPACE/NAME`."),
    ("a container tool", r"(?:docker|podman|nerdctl|lxc|incus|singularity|apptainer)\s+(?:compose\s+)?"
     r"(?:exec|attach|run|shell)\b", _SSHD),
    ("Modal", r"modal\s+(?:shell|run|container)\b", _SSHD),
    ("Slurm", r"(?:srun|salloc|sbatch)\s+\S",
     "Paste the login of the cluster's login node, and add a job in it as `rgt add slurm:JOBID@BOX`."),
    ("Brev", r"brev\s+(?:shell|open|refresh|ls)\b", f"Run `brev refresh`, {_ALIAS}."),
    ("SkyPilot", r"sky\s+(?:exec|launch|status|ssh)\b", "Paste `ssh` with the cluster's name: sky wrote it."),
    ("PuTTY", r"(?:plink|putty|pscp|kitty)(?:\.exe)?\s+\S",
     "Write it as OpenSSH would: ssh -p PORT user@host."),
    ("telnet", r"telnet\s+\S", "rgt comes in over SSH only: ssh -p PORT user@host."),
    ("Eternal Terminal", r"et\s+\S*@\S", "rgt comes in over SSH only: ssh -p PORT user@host."),
    ("VS Code", r"(?:code|cursor)\s+(?:-|\S*ssh-remote)|(?:vscode|cursor)://\S*ssh-remote",
     "Paste what comes after ssh-remote+: user@host, with -p PORT where there is a port."),
)  # fmt: skip
_START = r"(?:^|(?<=[\s:>$#`\"'(]))"
_FOUND = [(name, re.compile(_START + f"(?:{rest})"), do) for name, rest, do in _TOOLS]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another tool's command, where in the line it begins, and what to do about it."""

    tool: str
    start: int
    do: str

    def refusal(self) -> Failure:
        """One sentence that names the tool, and what to paste instead."""
        return refuse(f"This is a command of {self.tool} and no SSH login.", self.do)


def find(line: str) -> Elsewhere | None:
    """The first command of another tool in the line; None where there is none."""
    found = [
        Elsewhere(name, match.start(), do) for name, pattern, do in _FOUND if (match := pattern.search(line))
    ]
    return min(found, key=lambda one: one.start, default=None)
