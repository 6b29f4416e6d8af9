"""The front matter of a platform profile: every fact that code decides by, each with where it comes from.

``profiles/_schema.md`` explains the fields to people; this is what the loader holds a file to.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    model_validator,
)

from tui.fleet.profile_agreement import agree

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
Month = Annotated[str, Field(pattern=r"^20\d\d-(0[1-9]|1[0-2])$")]
Confidence = Literal["live-tested", "vendor doc", "working code", "community"]
Kind = Literal["ssh-rental", "cloud-api", "ssh", "slurm", "kubernetes", "notebook", "local"]
Transport = Literal["ssh", "slurm-step", "kubectl-exec", "local", "none"]
Per = Literal["hour", "day", "month", "GB", "GB and hour", "GB and day", "GB and month"]

MONTH_H = 730.0


def _one_line(value: str) -> str:
    value = value.strip()
    if not value or not value.isprintable():
        raise ValueError("must be one line of visible text")
    return value


def _yes_or_no(value: object) -> object:
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


Line = Annotated[str, Field(max_length=400), AfterValidator(_one_line)]
Survives = Annotated[Literal["yes", "no", "depends", "n/a"], BeforeValidator(_yes_or_no)]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class Source(Strict):
    """Where facts come from. `live-tested` means that somebody, named in `from_`, tried it on a real box."""

    from_: Annotated[Line, Field(alias="from")]
    verified: Month
    confidence: Confidence
    url: Annotated[Line, Field(pattern=r"^https://")] | None = None


class Evident(Strict):
    """A fact that money or data hangs on: it names its sources."""

    evidence: Annotated[list[Slug], Field(min_length=1)]


class Statement(Evident):
    """One fact in words."""

    text: Line


class Charge(Strict):
    """What something costs. `amount` is None when it is not known; that is never shown as 0.

    Attributes:
        when: the state of the machine it is charged in; ``always`` also without a machine.
    """

    what: Line
    amount: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    per: Per
    when: Literal["running", "stopped", "always"] = "always"
    note: Line | None = None

    def hourly(self, gb: float | None = None) -> float | None:
        """The charge by the hour, a month being 730 h; None where the rate or the size is not known.

        Args:
            gb: size of what is stored. Traffic (``per: GB``) has no hourly price.
        """
        unit, _, period = self.per.rpartition(" and ")
        hours = {"hour": 1.0, "day": 24.0, "month": MONTH_H}.get(period)
        if self.amount is None or hours is None or (unit and gb is None):
            return None
        return self.amount * (gb or 0.0 if unit else 1.0) / hours


class Tier(Evident):
    """One place for files.

    Attributes:
        paths: where it is mounted on the box; empty when the operator decides.
        inode_cap: hard limit of files, None when there is none or it is not known.
        scope: how far it is shared.
        watch: whether its filesystem is always shown.
        optional: not on every box; where nothing is mounted there, the path is a directory of another tier.
    """

    id: Slug
    name: Line
    paths: list[Annotated[str, Field(pattern=r"^(/|~)[^\x00-\x1f]*$")]] = []
    speed: Line
    size: Line
    inode_cap: Annotated[int, Field(gt=0)] | None = None
    scope: Literal["instance", "region", "datacenter", "account", "machine", "cluster", "job"]
    survives_stop: Survives
    survives_destroy: Survives
    charges: list[Charge] = []
    watch: StrictBool = False
    optional: StrictBool = False
    note: Line | None = None


class Way(Strict):
    """How an action is carried out. `call` is the button, request or command."""

    kind: Literal["api", "console", "in-box", "cli"]
    call: Line
    products: list[Slug] = []


class Action(Evident):
    """A verb of the platform.

    Attributes:
        verb: its name at the platform.
        level: consequence, 0 observe … 3 irreversible.
        stops_billing: what no longer costs anything after it.
        keeps_billing: what goes on costing, and how much.
        destroys, keeps: ids of storage tiers.
        proof: the strongest evidence that it has happened.
    """

    id: Slug
    verb: Line
    level: Annotated[int, Field(ge=0, le=3)]
    reversible: StrictBool
    ways: Annotated[list[Way], Field(min_length=1)]
    stops_billing: list[Line] = []
    keeps_billing: list[Charge] = []
    destroys: list[Slug] = []
    keeps: list[Slug] = []
    proof: Line
    traps: list[Line] = []


class Clock(Evident):
    """Something that the platform does by itself.

    Attributes:
        trigger: what starts it. ``ends_at`` is the contract's end, which the fleet file holds; ``created`` is
            the renting, ``started`` the newest start of machine or job.
        after_h: hours from the trigger; None when it cannot be computed.
        destroys: ids of storage tiers that are lost.
    """

    id: Slug
    text: Line
    trigger: Literal["stopped", "created", "started", "ends_at", "balance", "idle", "disconnected"]
    after_h: Annotated[float, Field(ge=0)] | None
    destroys: list[Slug]
    products: list[Slug] = []


class Spot(Evident):
    """Whether machines can be taken away, and how much warning there is."""

    available: StrictBool
    text: Line
    signal: Line | None = None
    grace_s: Annotated[float, Field(ge=0)] | None = None


class CheapMode(Evident):
    """A way to have the machine for less while its GPUs are not needed.

    Attributes:
        action: id of the action that enters it.
        good_for: what it is enough for.
        price: None where the platform does not tell it.
    """

    action: Slug
    text: Line
    good_for: Annotated[list[Line], Field(min_length=1)]
    price: Charge | None


class Stock(Evident):
    """What to do when the wanted GPU is sold out.

    Attributes:
        look: the call that tells what is free, None where none is known.
        notify: the platform's own notice.
        retry_s: shortest polite interval to ask again by `look`; None: nothing asks by itself. Creating is
            never repeated, only looking is.
    """

    text: Line
    look: Line | None = None
    notify: Line | None = None
    retry_s: Annotated[float, Field(ge=1)] | None = None


class Leash(Evident):
    """What ends the bill when nobody is watching, without a key of the whole account on the box.

    Attributes:
        in_box: a command inside the box that ends the machine's meter; None where there is none, then a box
            that is powered off from inside bills on.
        timer: the platform's own timer.
    """

    text: Line
    in_box: Line | None = None
    timer: Line | None = None


class SshFlavour(Evident):
    """One kind of SSH endpoint. What it cannot do decides how files come off the box.

    Attributes:
        hosts: glob patterns of the host names it has.
    """

    id: Slug
    text: Line
    hosts: list[Line] = []
    exec: StrictBool
    scp: StrictBool
    sftp: StrictBool
    forward: StrictBool


class Mirror(Strict):
    """A nearer source for downloads: variables to set, and what they do not cover."""

    what: Line
    set: dict[str, str]
    note: Line | None = None


class Port(Strict):
    port: Annotated[int, Field(ge=1, le=65535)]
    what: Line


class Network(Strict):
    behind_gfw: StrictBool
    proxy_hook: Line | None = None
    endpoint_moves: Statement
    mirrors: list[Mirror] = []
    ports: list[Port] = []
    keys: Statement | None = None
    ssh: list[SshFlavour] = []


class Product(Strict):
    """A product line whose instances behave in their own way; `instance_id` is a pattern for its ids."""

    id: Slug
    name: Line
    instance_id: Line | None = None
    api: StrictBool
    note: Line | None = None


class Credentials(Strict):
    """Where the vendor's own tools keep the key; only looked up, never written.

    Attributes:
        where: how the operator comes by one, and how narrow it can be made.
    """

    where: Line | None = None
    env: list[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]] = []
    files: list[Line] = []


class Detach(Strict):
    """What keeps a job alive when the connection drops.

    Attributes:
        boot_hook: what the platform runs again by itself when the machine comes back.
    """

    primitive: Literal["tmux", "nohup", "sbatch", "job", "commit"]
    fallback: Line | None = None
    boot_hook: Line | None = None


class Script(Strict):
    """Values that the wrapper scripts take; None where the platform has no such thing."""

    DATA_DIR: str | None
    DURABLE_DIR: str | None
    PROXY_HOOK: str | None
    CRED_FILE: str | None
    SCRATCH: str | None
    HF_HOME: str | None
    HF_ENDPOINT: str | None
    DETACH: str | None
    PY: str | None
    TB_LOGDIR: str | None


class Naming(Strict):
    """How a new instance is named, and whether the platform shows the name."""

    pattern: Line
    where: Line


class Facts(Strict):
    """The whole front matter of one profile."""

    id: Slug
    title: Line
    kind: Kind
    transport: Transport = "ssh"
    summary: Line
    hosts: list[Line] = []
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None
    billing: Statement
    sources: Annotated[dict[Slug, Source], Field(min_length=1)]
    products: list[Product] = []
    detach: Detach
    tiers: Annotated[list[Tier], Field(min_length=1)]
    meter_stop: Slug | None
    actions: list[Action] = []
    clocks: list[Clock] = []
    cheap_modes: list[CheapMode] = []
    stock: Stock | None = None
    leash: Leash | None = None
    spot: Spot
    network: Network
    conveniences: list[Statement] = []
    credentials: Credentials = Credentials()
    naming: Naming
    script: Script
    gotcha_prefix: Annotated[str, Field(pattern=r"^[A-Z]{2,8}$")]
    retired_gotchas: list[str] = []

    @model_validator(mode="after")
    def _agrees(self) -> Facts:
        agree(self)
        return self

    def action(self, id_: str | None) -> Action | None:
        """The action of this id."""
        return next((action for action in self.actions if action.id == id_), None)


def product_of(facts: Facts, instance_id: str | None) -> Product | None:
    """The product line that an instance id belongs to, None when it does not tell."""
    for product in facts.products:
        if instance_id and product.instance_id and re.fullmatch(product.instance_id, instance_id):
            return product
    return None
