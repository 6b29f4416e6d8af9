"""The command line that hands the terminal to the system's own ssh, with the identity a box is known by."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from pathlib import Path

from tui.box.ssh_config import CONFIG_ENV, check_endpoint
from tui.box.trust import TrustStore
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.via import JobExec, NoWay, PodExec, SlurmStep

_SHELLS: dict[type, str] = {
    SlurmStep: "At the login node: srun --jobid JOB --overlap --pty bash -l.",
    JobExec: "kubectl -n NAMESPACE exec -it job/NAME -- sh.",
    PodExec: "kubectl -n NAMESPACE exec -it POD -- sh.",
    NoWay: "Open the platform's own page.",
}
_KEEPALIVE = ("ServerAliveInterval=10", "ServerAliveCountMax=2")


def ssh_argv(instance: Instance, trust: TrustStore, command: list[str] | None = None) -> list[str]:
    """The argument vector of ``rgt ssh NAME [CMD]`` and of the ``!`` key.

    ssh still reads the user's configuration; only the identity comes from rgt's record, by the box's name.

    Args:
        command: words that ssh joins with blanks and the box's login shell reads, as after ``ssh HOST``.

    Raises:
        Failure: this computer has no ssh; the box has no endpoint, or its identity was never recorded.
    """
    if instance.via is not None:
        raise Failure(
            f"{instance.name} is reached as {instance.via}, not by ssh.",
            do=_SHELLS[type(instance.via)],
            exit=Exit.USAGE,
        )
    if instance.endpoint is None:
        raise Failure(f"{instance.name} is this computer; open a terminal instead.", exit=Exit.USAGE)
    program = shutil.which("ssh")
    if program is None:
        raise Failure(
            "This computer has no ssh program.", do="Install the OpenSSH client.", exit=Exit.UNREACHABLE
        )
    endpoint = instance.endpoint
    check_endpoint(endpoint)
    config = os.environ.get(CONFIG_ENV)
    argv = [program, *(["-F", config] if config else [])]
    for option in (*_identity(instance.name, trust), *_KEEPALIVE):
        argv += ["-o", option]
    argv += ["-p", str(endpoint.port)] if endpoint.port else []
    argv += ["-l", endpoint.user] if endpoint.user else []
    if endpoint.key:
        argv += ["-i", str(Path(endpoint.key).expanduser()), "-o", "IdentitiesOnly=yes"]
    if endpoint.proxy_command:
        argv += ["-o", f"ProxyCommand={endpoint.proxy_command}"]
    elif endpoint.jump:
        argv += ["-J", ",".join(endpoint.jump)]
    return [*argv, "--", endpoint.host.strip("[]"), *(command or [])]


def _identity(name: str, trust: TrustStore) -> list[str]:
    pin = trust.pinned(name)
    if pin is None:
        raise Failure(
            f"The identity of {name} is not recorded yet.",
            do=f"Run `rgt probe {name}` once; it shows and records the fingerprint.",
            code="not-pinned",
        )
    # ssh lower-cases the alias; the file holds this one box only, so that names that look alike stay apart
    alias = "rgt-" + re.sub(r"[^a-z0-9.-]+", "-", name.lower())
    path = trust.directory / "known_hosts" / f"{alias}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    _write(path, f"{alias} {pin.public_key}\n", name)
    return [
        f"HostKeyAlias={alias}",
        f'UserKnownHostsFile="{str(path).replace("%", "%%")}"',
        "GlobalKnownHostsFile=/dev/null",
        "StrictHostKeyChecking=yes",
        "CheckHostIP=no",
        "UpdateHostKeys=no",
    ]


def _write(path: Path, line: str, name: str) -> None:
    """Leave a file that is right already as it is: a full disk must not stand between operator and box."""
    try:
        with contextlib.suppress(FileNotFoundError):
            if path.read_text() == line:
                return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_text(line)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Failure(
            f"The identity of {name} cannot be handed to ssh: {path.parent} can't be written "
            f"({error.strerror}).",
            do="Make room there, or give its owner the rights.",
            code="known-hosts-not-written",
        ) from None
