"""A box with processes of its own: its power can be cut, and all of them end with no time for a word."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

from tests.real import absent, need
from tests.rig.sshd import Sshd

# $1 file that stands for the boot id; then the server with its words
_BOOT = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"'


class Machine(Sshd):
    """A server in a pid and a mount namespace. Its first process is the listener: when that one is killed,
    the kernel kills every other one, as a power cut does. Files stay."""

    def __init__(self, tmp: Path, binaries: dict[str, str]) -> None:
        super().__init__(tmp, binaries)
        unshare = need("unshare")["unshare"]
        self._boot_id = tmp / "boot_id"
        tmp.mkdir(parents=True, exist_ok=True)
        self._boot_id.write_text(f"{uuid.uuid4()}\n")
        alone = (unshare, "--pid", "--fork", "--mount-proc", "--kill-child")
        self._before = (*alone, "sh", "-c", _BOOT, "boot", str(self._boot_id))
        tried = subprocess.run([*self._before, "true"], capture_output=True, timeout=10, check=False)
        if tried.returncode != 0:
            absent("namespaces are not permitted here")

    def cut_power(self) -> None:
        self._end_listener()

    def boot(self, *, as_container: bool = False) -> None:
        """Start again, on the same port. A container that is started again keeps its host's boot id."""
        if not as_container:
            self._boot_id.write_text(f"{uuid.uuid4()}\n")
        self._listen()

    def _end_listener(self) -> None:
        if self._listener is not None:
            self._listener.kill()  # it takes the namespace with it
            self._listener.wait(timeout=5)
