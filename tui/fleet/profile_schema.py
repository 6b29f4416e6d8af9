"""The front matter of a platform profile: every fact that code decides by, each with where it comes from.

``profiles/_schema.md`` explains the fields to people; this is what the loader holds a file to.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    model_validator,
)

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
Month = Annotated[str, Field(pattern=r"^20\d\d-(0[1-9]|1[0-2])$")]
Confidence = Literal["live-tested", "vendor doc", "working code", "community"]
Kind = Literal["ssh-rental", "cloud-api", "ssh", "slurm", "kubernetes", "notebook", "local"]


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


class Evident(Strict):
    """A fact that money or data hangs on: it names its sources."""

    evidence: Annotated[list[Slug], Field(min_length=1)]


class Statement(Evident):
    """One fact in words."""

    text: Line


class Charge(Strict):
    """What something costs. `amount` is None when it is not known; that is never shown as 0."""

    what: Line
    amount: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    per: Line
    note: Line | None = None


class Tier(Evident):
    """One place for files.

    Attributes:
        paths: where it is mounted on the box; empty when the operator decides.
        inode_cap: hard limit of files, None when there is none or it is not known.
        scope: how far it is shared.
        watch: whether its filesystem is always shown.
    """

    id: Slug
    name: Line
    paths: list[Annotated[str, Field(pattern=r"^(/|~)[^\x00-\x1f]*$")]] = []
    speed: Line
    size: Line
    inode_cap: Annotated[int, Field(gt=0)] | None = None
    scope: Literal["instance", "region", "datacenter", "account", "machine"]
    survives_stop: Survives
    survives_destroy: Survives
    charges: list[Charge] = []
    watch: StrictBool = False
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
        trigger: what starts it. ``ends_at`` is the contract's end, which the fleet file holds.
        after_h: hours from the trigger; None when it cannot be computed.
        destroys: ids of storage tiers that are lost.
    """

    id: Slug
    text: Line
    trigger: Literal["stopped", "created", "ends_at", "balance", "idle", "disconnected"]
    after_h: Annotated[float, Field(ge=0)] | None
    destroys: list[Slug]
    products: list[Slug] = []


class Spot(Evident):
    """Whether machines can be taken away, and how much warning there is."""

    available: StrictBool
    text: Line
    signal: Line | None = None
    grace_s: Annotated[float, Field(ge=0)] | None = None


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
    ssh: Annotated[list[SshFlavour], Field(min_length=1)]


class Product(Strict):
    """A product line whose instances behave in their own way; `instance_id` is a pattern for its ids."""

    id: Slug
    name: Line
    instance_id: Line | None = None
    api: StrictBool
    note: Line | None = None


class Credentials(Strict):
    """Where the vendor's own tools keep the key; only looked up, never written."""

    env: list[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]] = []
    files: list[Line] = []


class Detach(Strict):
    """What keeps a job alive when the connection drops."""

    primitive: Literal["tmux", "nohup", "sbatch", "job", "commit"]
    fallback: Line | None = None


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
        for check in (_ids_are_unique, _references_exist, _losses_agree, _levels_agree):
            check(self)
        return self

    def action(self, id_: str | None) -> Action | None:
        """The action of this id."""
        return next((action for action in self.actions if action.id == id_), None)


def _ids_are_unique(facts: Facts) -> None:
    for what in ("products", "tiers", "actions", "clocks"):
        ids = [item.id for item in getattr(facts, what)]
        doubled = {id_ for id_ in ids if ids.count(id_) > 1}
        if doubled:
            raise ValueError(f"{what} has two entries {', '.join(sorted(doubled))}")


def _references_exist(facts: Facts) -> None:
    known = {
        "evidence": set(facts.sources),
        "destroys": {tier.id for tier in facts.tiers},
        "keeps": {tier.id for tier in facts.tiers},
        "products": {product.id for product in facts.products},
    }
    for where, key, names in _references(facts.model_dump(exclude={"sources", "products"}), ""):
        missing = sorted(set(names) - known[key])
        if missing:
            raise ValueError(f"{where}{key} names {', '.join(missing)}, which is not defined")
    if facts.meter_stop is not None and facts.action(facts.meter_stop) is None:
        raise ValueError(f"meter_stop names {facts.meter_stop}, which is not an action")


def _references(value: Any, where: str) -> list[tuple[str, str, list[str]]]:
    found: list[tuple[str, str, list[str]]] = []
    if isinstance(value, dict):
        here = f"{where}{value['id']}." if isinstance(value.get("id"), str) and where else where
        for key, inner in value.items():
            if key in ("evidence", "destroys", "keeps", "products"):
                found.append((here, key, inner))
            else:
                found += _references(inner, here if here != where else f"{where}{key}.")
    elif isinstance(value, list):
        for inner in value:
            found += _references(inner, where)
    return found


def _losses_agree(facts: Facts) -> None:
    """What a tier says it survives and what an action says it destroys must be one story."""
    for verb, survives in (("stop", "survives_stop"), ("destroy", "survives_destroy")):
        action = facts.action(verb)
        if action is None:
            continue
        for tier in facts.tiers:
            says = getattr(tier, survives)
            if says == "no" and tier.id not in action.destroys:
                raise ValueError(
                    f"{tier.id} does not survive {verb}, but {verb} does not list it in destroys"
                )
            if says == "yes" and (tier.id in action.destroys or tier.id not in action.keeps):
                raise ValueError(f"{tier.id} survives {verb}, but {verb} does not list it in keeps alone")


def _levels_agree(facts: Facts) -> None:
    for action in facts.actions:
        if (action.destroys or not action.reversible) and action.level < 3:
            raise ValueError(f"{action.id} destroys something or cannot be undone, so its level is 3")
        if set(action.destroys) & set(action.keeps):
            raise ValueError(f"{action.id} both destroys and keeps a tier")


def product_of(facts: Facts, instance_id: str | None) -> Product | None:
    """The product line that an instance id belongs to, None when it does not tell."""
    for product in facts.products:
        if instance_id and product.instance_id and re.fullmatch(product.instance_id, instance_id):
            return product
    return None
