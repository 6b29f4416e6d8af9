"""One rented machine: what the operator told us about it, and how we reach it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tui.model.text import SafeText
from tui.model.via import Via


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a box answers SSH, before the user's ssh configuration is asked.

    Attributes:
        host: name, address or an alias of ``~/.ssh/config``.
        port: None when it was not given (ssh's configuration or 22 decides).
        jump: ``user@host:port`` of each hop, in order.
        proxied: the provider's gateway, which offers no scp, sftp or exec of commands.
    """

    host: str
    port: int | None = None
    user: str | None = None
    key: str | None = None
    jump: tuple[str, ...] = ()
    proxy_command: str | None = None
    proxied: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """One entry of ``fleet.toml``.

    Attributes:
        endpoint: None for ``local`` boxes: this computer, without SSH. Of a Slurm job its login node's.
        password_env: name of the environment variable that holds the password; never the password.
        host_key: the pinned fingerprint (``SHA256:...``), None until the first connection recorded one.
        mounts: paths whose filesystems are always shown, besides those of the watched runs.
        data_dir: where runs lie, in place of its platform's data disk.
        price_per_hour: None when not known; shown as ``?``, never as 0.
        rented_at, ends_at: seconds since the epoch; when the meter started, when the contract ends.
        account: whose it is, in the provider's own words.
        asked_as: name of the ``[accounts]`` entry whose key asks about it; None: its platform's only one.
        simulated: what stand-in programs answer for on this box, such as ``GPU`` (demo only).
        via: how commands reach it where that is not SSH to itself.
    """

    name: str
    platform: str
    endpoint: Endpoint | None
    instance_id: str | None = None
    account: str | None = None
    password_env: str | None = None
    host_key: str | None = None
    mounts: tuple[str, ...] = ()
    price_per_hour: float | None = None
    currency: str = "USD"
    rented_at: float | None = None
    ends_at: float | None = None
    simulated: tuple[str, ...] = ()
    asked_as: str | None = None
    via: Via | None = None
    data_dir: str | None = None

    @property
    def here(self) -> bool:
        """It is this computer."""
        return self.endpoint is None and self.via is None


@dataclass(frozen=True, slots=True)
class Ended:
    """A machine that is destroyed, on record: by witnesses, or by the operator's word.

    Attributes:
        at: seconds since the epoch, when that was settled.
        how: the words behind it.
    """

    box: str
    at: float
    how: SafeText
    instance_id: str | None = None
    host_key: str | None = None

    def is_of(self, instance: Instance) -> bool:
        """Whether it surely was this machine, and not one that came under its name later."""
        if instance.name != self.box:
            return False
        if self.instance_id is not None or instance.instance_id is not None:
            return self.instance_id == instance.instance_id
        return self.host_key is not None and self.host_key == instance.host_key


@dataclass(frozen=True, slots=True)
class DangerClock:
    """The next date at which the platform does something to this box. `at` is None when not computable."""

    text: SafeText
    at: float | None
    destroys: SafeText = SafeText("")


class LinkState(Enum):
    """What we know of the way to the box. None of these says whether the machine is running or billed."""

    IDLE = "not connected"
    CONNECTING = "connecting"
    LIVE = "live"
    LOST = "link lost"  # was live, will retry
    UNREACHABLE = "unreachable"  # no TCP, no name
    REFUSED = "login refused"  # final for this credential: not retried by itself
    IDENTITY = "host key changed"  # stopped until the operator decides
    NEEDS_SECRET = "needs password"


@dataclass(frozen=True, slots=True)
class Link:
    """The state of the connection to one box.

    Attributes:
        since: when this state began.
        detail: one sentence for the operator: what happened and what to do.
        retry_at: when the next attempt is due; None when none will be made by itself.
        attempts: failed attempts in a row.
    """

    state: LinkState = LinkState.IDLE
    since: float = 0.0
    detail: SafeText = SafeText("")
    retry_at: float | None = None
    attempts: int = 0
