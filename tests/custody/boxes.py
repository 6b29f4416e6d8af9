"""Ways into this computer that the custody tests use: any shell, with GNU tools or with BusyBox alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from tests.real import absent, need
from tui.box.local import LocalChannel, LocalTransport
from tui.box.transport import Completed, Script

_BUSYBOX_TOOLS = """
    ash awk cat cut date dirname du env false find grep head ionice kill ls mkdir nproc printf ps pwd readlink
    rm sed sh sha256sum sleep stat tail test timeout tr true uname wc xargs
"""

_THROUGH = 'PATH=$1; export PATH; shift; exec "$@"'


class Through(LocalTransport):
    """This computer through a shell of the test's choice, with a PATH of its own.

    Attributes:
        before_run, before_open: called with each script; may alter files, or raise what a link would.
    """

    def __init__(self, shell: list[str], path: str) -> None:
        super().__init__("box")
        self.shell = shell
        self.path = path
        self.before_run: Callable[[Script], Awaitable[None]] | None = None
        self.before_open: Callable[[Script], Awaitable[None]] | None = None

    def _through(self, script: Script) -> Script:
        args = (self.path, *self.shell, "-c", script.text, "rgt", *script.args)
        return Script(_THROUGH, args, why=script.why)

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        if self.before_run is not None:
            await self.before_run(script)
        return await super().run(self._through(script), stdin=stdin, timeout=timeout, limit=limit)

    async def open(self, script: Script, *, timeout: float = 15.0) -> LocalChannel:
        if self.before_open is not None:
            await self.before_open(script)
        return await super().open(self._through(script), timeout=timeout)


def gnu(shell: str = "dash") -> Through:
    """A box with GNU tools."""
    program, *options = shell.split()
    return Through([need(program)[program], *options], os.environ["PATH"])


def busybox(folder: Path) -> Through:
    """A box on which every tool is BusyBox. `folder` gets its links."""
    program = need("busybox")["busybox"]
    folder.mkdir(exist_ok=True)
    for tool in _BUSYBOX_TOOLS.split():
        link = folder / tool
        if not link.exists():
            link.symlink_to(program)
    return Through([str(folder / "sh")], str(folder))


@contextlib.contextmanager
def everyones_folder() -> Iterator[Path]:
    """A folder that any user may enter; pytest's own are closed, and other runs of it close them again."""
    folder = Path(tempfile.mkdtemp(prefix="rgt-custody-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def stranger() -> Through:
    """A login that may read only what everyone may; needs root to become it."""
    if os.geteuid() != 0:
        absent("becoming somebody else needs root")
    box = gnu()
    box.shell = [need("setpriv")["setpriv"], "--reuid=65534", "--clear-groups", *box.shell]
    return box


def small_root(folder: Path) -> Through:
    """A box whose whole system is BusyBox below `folder`; needs root for chroot."""
    if os.geteuid() != 0:
        absent("chroot needs root")
    tools = need("busybox", "chroot", "ldd")
    (folder / "bin").mkdir(parents=True)
    shutil.copy(tools["busybox"], folder / "bin" / "busybox")
    for tool in _BUSYBOX_TOOLS.split():
        (folder / "bin" / tool).symlink_to("busybox")
    told = subprocess.run(
        [tools["ldd"], tools["busybox"]], capture_output=True, text=True, check=False
    ).stdout
    for library in [word for word in told.split() if word.startswith("/")]:
        (folder / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, folder / library[1:])
    (folder / "dev").mkdir()
    os.mknod(folder / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    return Through([tools["chroot"], str(folder), "/bin/sh"], "/bin")
