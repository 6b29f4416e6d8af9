"""The tables of ``fleet.toml`` as pydantic models, and what pydantic finds wrong, in our words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    create_model,
    model_validator,
)

from tui.fleet import entry_rules as rules
from tui.fleet.preferences import Settings
from tui.fleet.thresholds import Thresholds
from tui.fleet.toml_map import Path as KeyPath
from tui.model.account import AccountSpec
from tui.model.instance import Endpoint, Instance
from tui.model.run import RunSpec
from tui.model.via import JobExec, NoWay, PodExec, SlurmStep, Via, parse_via

Name = Annotated[str, AfterValidator(rules.name)]
Host = Annotated[str, AfterValidator(rules.host)]
Label = Annotated[str, AfterValidator(rules.label)]
RemotePath = Annotated[str, AfterValidator(rules.remote_path)]
Moment = Annotated[datetime, AfterValidator(rules.moment)]


class Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, hide_input_in_errors=True)


class InstanceEntry(Entry):
    """One ``[instances.NAME]`` table as it is written."""

    platform: Annotated[str, AfterValidator(rules.platform)] = "ssh"
    ssh: Annotated[str, AfterValidator(rules.hop)] | None = None
    host: Host | None = None
    port: Annotated[int, AfterValidator(rules.port)] | None = None
    user: Annotated[str, AfterValidator(rules.user)] | None = None
    key: Annotated[str, AfterValidator(rules.key_file)] | None = None
    jump: list[Annotated[str, AfterValidator(rules.hop)]] = Field(default_factory=list, max_length=8)
    proxy_command: Annotated[str, AfterValidator(rules.proxy_command)] | None = None
    proxied: StrictBool = False
    instance_id: Label | None = None
    account: Label | None = None
    password_env: Annotated[str, AfterValidator(rules.variable)] | None = None
    host_key: Annotated[str, AfterValidator(rules.fingerprint)] | None = None
    mounts: list[Annotated[str, AfterValidator(rules.mount)]] = Field(default_factory=list, max_length=32)
    data_dir: Annotated[str, AfterValidator(rules.mount)] | None = None
    price_per_hour: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)] | None = None
    currency: Annotated[str, AfterValidator(rules.currency)] = "USD"
    rented_at: Moment | None = None
    ends_at: Moment | None = None
    simulated: list[Label] = Field(default_factory=list, max_length=8)
    transport: Annotated[str, AfterValidator(rules.transport)] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> InstanceEntry:
        local = self.platform == "local"
        if local and (self.ssh or self.host):
            raise ValueError("a local box has no ssh or host: it is this computer")
        if self.transport and (local or self.ssh or self.host):
            raise ValueError("has a transport of its own, so neither host, ssh nor platform local fit")
        if not (local or self.transport or self.ssh or self.host):
            raise ValueError('needs host or ssh, or platform = "local" for this computer')
        if self.ssh is not None:
            user, _, port = rules.destination(self.ssh)
            if self.host or (user and self.user) or (port and self.port):
                raise ValueError("ssh already gives host, user or port: write each once")
        if self.jump and self.proxy_command:
            raise ValueError("has both jump and proxy_command: ssh uses only one of them")
        if self.rented_at and self.ends_at and _epoch(self.ends_at) <= _epoch(self.rented_at):
            raise ValueError("ends_at is not after rented_at")
        return self

    def instance(self, name: str) -> Instance:
        """The entry in the model's words."""
        endpoint = None
        via = parse_via(self.transport) if self.transport else None
        if self.platform != "local" and via is None:
            user, host, port = rules.destination(self.ssh) if self.ssh else (None, self.host or "", None)
            endpoint = Endpoint(
                host=host,
                port=port or self.port,
                user=user or self.user,
                key=self.key,
                jump=tuple(self.jump),
                proxy_command=self.proxy_command,
                proxied=self.proxied,
            )
        return Instance(
            name=name,
            platform=_platform(self.platform, via),
            endpoint=endpoint,
            instance_id=self.instance_id or _told_id(via),
            account=self.account,
            password_env=self.password_env,
            host_key=self.host_key,
            mounts=tuple(self.mounts),
            price_per_hour=self.price_per_hour,
            currency=self.currency,
            rented_at=_epoch(self.rented_at) if self.rented_at else None,
            ends_at=_epoch(self.ends_at) if self.ends_at else None,
            simulated=tuple(self.simulated),
            via=via,
            data_dir=self.data_dir,
        )


def _platform(written: str, via: Via | None) -> str:
    """The platform that a transport tells where none was written."""
    if written != "ssh" or via is None or isinstance(via, NoWay):
        return written
    return "slurm" if isinstance(via, SlurmStep) else "kubernetes"


def _told_id(via: Via | None) -> str | None:
    """The id that a transport names by itself."""
    if isinstance(via, SlurmStep):
        return via.job
    if isinstance(via, JobExec):
        return f"{via.namespace}/job/{via.job}"
    return f"{via.namespace}/pod/{via.pod}" if isinstance(via, PodExec) else None


class AccountEntry(Entry):
    """One ``[accounts.NAME]`` table as it is written. The key stands elsewhere, never here."""

    platform: Annotated[str, AfterValidator(rules.platform)]
    url: Annotated[str, AfterValidator(rules.label)] | None = None
    key_env: Annotated[str, AfterValidator(rules.variable)] | None = None
    ask: StrictBool = True
    ignore: list[Label] = Field(default_factory=list, max_length=200)

    def account(self, name: str) -> AccountSpec:
        """The entry in the model's words."""
        return AccountSpec(name=name, **self.model_dump() | {"ignore": tuple(self.ignore)})


class RunEntry(Entry):
    """One ``[runs."NAME"]`` table as it is written."""

    box: Name
    log: RemotePath | None = None
    checkpoints: RemotePath | None = None
    pid: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    pid_start: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    boot_id: Annotated[str, AfterValidator(rules.boot_id)] | None = None
    session: Label | None = None
    progress_regex: Annotated[str, AfterValidator(rules.progress_regex)] | None = None

    def run(self, name: str) -> RunSpec:
        """The entry in the model's words."""
        return RunSpec(name=name, **self.model_dump())


def _number_rule(name: str) -> Any:
    if name.endswith("_pct"):
        return Annotated[float, Field(gt=0, le=100)]
    return Annotated[float, Field(gt=0, le=366 * 86400, allow_inf_nan=False)]


# Made from the dataclass, so that a threshold added there can be set in the file without a second list.
ThresholdsEntry: type[Entry] = create_model(  # type: ignore[call-overload]
    "ThresholdsEntry",
    __base__=Entry,
    **{f.name: (_number_rule(f.name), f.default) for f in dataclasses.fields(Thresholds)},
)


_DEFAULT = Settings()


class SettingsEntry(Entry):
    """The ``[settings]`` table as it is written, without its thresholds."""

    theme: Name = _DEFAULT.theme
    read_only: StrictBool = _DEFAULT.read_only
    period_s: Annotated[float, Field(ge=0.5, le=3600)] = _DEFAULT.period_s
    glyphs: Literal["auto", "unicode", "ascii"] = "auto"
    mouse: StrictBool = _DEFAULT.mouse
    bell: StrictBool = _DEFAULT.bell
    ask_platforms: StrictBool = _DEFAULT.ask_platforms


_WORDS = {
    "missing": "is missing",
    "string_type": "must be text in quotes",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": 'must be a list, such as ["a", "b"]',
    "datetime_type": "must be a date with a time, such as 2026-11-29T14:00:00+08:00",
    "finite_number": "must be a finite number",
    "too_long": "has too many elements",
}


_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def complaints(error: ValidationError) -> Iterator[tuple[KeyPath, str]]:
    """Key and reason of each error, in our words and without the value."""
    for one in error.errors(include_url=False, include_input=False):
        context = one.get("ctx", {})
        kind = one["type"]
        if kind == "value_error":
            what = str(context["error"])
        elif kind in _LIMITS:
            words, key = _LIMITS[kind]
            limit = context[key]
            what = f"must be {words} {limit if isinstance(limit, int) else format(limit, 'g')}"
        elif kind == "literal_error":
            what = f"must be {context['expected']}"
        else:
            what = _WORDS.get(kind, "is not right")
        yield tuple(one["loc"]), what


def _epoch(moment: datetime) -> float:
    return moment.timestamp()
