"""``fleet.toml``: the operator's boxes, runs and preferences, validated; what is wrong is told with its line.

A bad entry is left out and the rest works. The file is only read here; `tui.fleet.fleet_file` edits it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from tui.fleet import entry_rules as rules
from tui.fleet.fleet_entries import (
    AccountEntry,
    Entry,
    InstanceEntry,
    RunEntry,
    SettingsEntry,
    ThresholdsEntry,
    complaints,
)
from tui.fleet.preferences import Settings
from tui.fleet.problems import BAD, WARNING, parse_toml, problem, read_user_file
from tui.fleet.thresholds import Thresholds
from tui.fleet.toml_map import Path as KeyPath
from tui.fleet.toml_map import TomlMap, map_toml
from tui.model.account import AccountSpec
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.run import RunSpec
from tui.model.text import safe
from tui.model.via import SlurmStep

__all__ = ["Loaded", "Settings", "check_instance", "check_run", "load", "read"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a fleet file says.

    Attributes:
        problems: in the file's order; code `BAD` where something was left out, `WARNING` where not.
    """

    settings: Settings = Settings()
    instances: tuple[Instance, ...] = ()
    runs: tuple[RunSpec, ...] = ()
    problems: tuple[Failure, ...] = ()
    accounts: tuple[AccountSpec, ...] = ()


def load(path: Path) -> Loaded:
    """Read the fleet file at `path`. A missing file is an empty fleet; nothing in a file raises."""
    try:
        text = read_user_file(path, means=_NOTHING)
        return read(text, path.name) if text is not None else Loaded()
    except Failure as failure:
        return Loaded(problems=(failure,))


def read(text: str, file: str = "fleet.toml") -> Loaded:
    """Validate the text of a fleet file.

    Args:
        file: name used in the problems.

    Raises:
        Failure: it is not TOML at all.
    """
    data = parse_toml(text, file, means=_NOTHING)
    reader = _Reader(data, map_toml(text), file)
    settings = reader.settings()
    instances = reader.instances()
    runs = reader.runs({i.name for i in instances})
    accounts = reader.accounts()
    instances = tuple(_asked_as(instance, accounts) for instance in instances)
    reader.strangers()
    return Loaded(settings, instances, runs, reader.problems(), accounts)


def _asked_as(instance: Instance, accounts: tuple[AccountSpec, ...]) -> Instance:
    """A name of ``[accounts]`` says which key to ask with. Who that key belongs to is the platform's word."""
    named = instance.account in {spec.name for spec in accounts}
    return replace(instance, account=None, asked_as=instance.account) if named else instance


def check_instance(name: str, entry: Mapping[str, Any]) -> Instance:
    """Validate one instance before it is written. Raises Failure with the first thing that is wrong."""
    return _checked(InstanceEntry, "instances", name, entry).instance(name)


def check_run(name: str, entry: Mapping[str, Any]) -> RunSpec:
    """Validate one run before it is written. Raises Failure with the first thing that is wrong."""
    return _checked(RunEntry, "runs", name, entry).run(name)


E_ = TypeVar("E_", bound=Entry)


def _checked(model: type[E_], kind: str, name: str, entry: Mapping[str, Any]) -> E_:
    try:
        rules.name(name)
    except ValueError as error:
        raise Failure(f"The name {error}.", code=BAD) from None
    for key in entry:
        if rules.is_secret_key(key):
            raise Failure(f"{key}: {_NO_SECRETS}", do=_SECRETS_ADVICE, code=BAD)
        if key not in model.model_fields:
            raise Failure(
                f"{safe(key, 60)} is not a key of [{kind}.{name}].",
                do=f"{_meant(key, model)}Known: {_few(model)}.",
                code=BAD,
            )
    try:
        return model.model_validate(dict(entry))
    except ValidationError as error:
        keys, what = next(complaints(error))
        raise Failure(f"{_dotted(keys)}{what}.", code=BAD) from None


_NO_SECRETS = "a password or token must not stand in this file."
_SECRETS_ADVICE = "Set password_env to the name of an environment variable, or be asked when rgt connects."
_NOTHING = "No box is shown until it can be read."
_KINDS = ("settings", "instances", "runs", "accounts")


class _Reader:
    """One pass over a parsed file; `found` collects what is wrong."""

    def __init__(self, data: dict[str, Any], lines: TomlMap, file: str) -> None:
        self.data = data
        self.lines = lines
        self.file = file
        self.found: list[tuple[int, Failure]] = []

    def settings(self) -> Settings:
        table = self._table("settings")
        if table is None:
            return Settings()
        good = self._good_keys(SettingsEntry, table, ("settings",), besides=("thresholds",))
        if "read_only" in table and "read_only" not in good:
            good["read_only"] = True  # who asked for it in a way that cannot be read still gets it
        limits = table.get("thresholds", {})
        if not isinstance(limits, dict):
            self._bad(("settings", "thresholds"), "thresholds must be a table", "Defaults hold.")
            limits = {}
        kept = self._good_keys(ThresholdsEntry, limits, ("settings", "thresholds"))
        return Settings(**good, thresholds=Thresholds(**kept))

    def instances(self) -> tuple[Instance, ...]:
        entries = self._entries("instances", InstanceEntry, "This box is left out.")
        read = {name: entry.instance(name) for name, entry in entries}
        return tuple(one for name in read if (one := self._behind_login(read[name], read)))

    def _behind_login(self, instance: Instance, others: Mapping[str, Instance]) -> Instance | None:
        """A Slurm job with its login node's address; None, and said, where there is no such login node."""
        if not isinstance(instance.via, SlurmStep):
            return instance
        login = others.get(instance.via.login)
        if login is None or login.endpoint is None or login.via is not None:
            why = "is not in this file" if login is None else "is no box that answers SSH"
            what = f"transport names the login box {safe(instance.via.login, 64)}, which {why}"
            self._bad(("instances", instance.name, "transport"), what, "This box is left out.")
            return None
        return replace(
            instance,
            endpoint=login.endpoint,
            password_env=instance.password_env or login.password_env,
            host_key=instance.host_key or login.host_key,
        )

    def runs(self, boxes: set[str]) -> tuple[RunSpec, ...]:
        kept = []
        for name, entry in self._entries("runs", RunEntry, "This run is left out."):
            if entry.box not in boxes:
                known = entry.box in (self.data.get("instances") or ())
                why = "was left out, see its own problem" if known else "is not in this file"
                self._bad(("runs", name, "box"), f"box {entry.box} {why}", "This run is left out.")
                continue
            if not (entry.log or entry.checkpoints or entry.pid or entry.session):
                self._warn(("runs", name), "names nothing to watch", "Give log, checkpoints, pid or session.")
            kept.append(entry.run(name))
        return tuple(kept)

    def accounts(self) -> tuple[AccountSpec, ...]:
        entries = self._entries("accounts", AccountEntry, "This account is not asked.")
        return tuple(entry.account(name) for name, entry in entries)

    def strangers(self) -> None:
        """Top-level keys that mean nothing here."""
        for key in self.data:
            if rules.is_secret_key(key):
                self._bad((key,), _NO_SECRETS, do=_SECRETS_ADVICE)
            elif key not in _KINDS:
                self._warn((key,), "is not known and is ignored", f"Known: {', '.join(_KINDS)}.")

    def problems(self) -> tuple[Failure, ...]:
        """What was found, in the file's order."""
        return tuple(failure for _, failure in sorted(self.found, key=lambda pair: pair[0]))

    def _table(self, key: str) -> dict[str, Any] | None:
        table = self.data.get(key, {})
        if isinstance(table, dict):
            return table
        example = "[settings]" if key == "settings" else f"[{key}.NAME]"
        self._bad((key,), f"{key} must be written as {example} tables", "All of it is left out.")
        return None

    def _entries(self, kind: str, model: type[E_], means: str) -> Iterator[tuple[str, E_]]:
        for name, entry in (self._table(kind) or {}).items():
            path = (kind, name)
            try:
                rules.name(name)
            except ValueError as error:
                self._bad(path, f"the name {error}", means)
                continue
            if not isinstance(entry, dict):
                self._bad(path, f"must be a table, [{kind}.{name}]", means)
                continue
            if self._secrets(entry, path, means):
                continue
            self._unknown_keys(model, entry, path)
            try:
                yield name, model.model_validate(entry)
            except ValidationError as error:
                for keys, what in complaints(error):
                    self._bad((*path, *keys), what, means)

    def _good_keys(
        self, model: type[Entry], table: dict[str, Any], path: KeyPath, besides: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Those keys of a preference table that are right; each wrong one falls back alone."""
        good: dict[str, Any] = {}
        self._unknown_keys(model, table, path, besides)
        for key, value in table.items():
            if key not in model.model_fields:
                continue
            try:
                good[key] = getattr(model.model_validate({key: value}), key)
            except ValidationError as error:
                _, what = next(complaints(error))
                held = "Read-only mode is on." if key == "read_only" else "Its default holds."
                self._bad((*path, key), what, held)
        return good

    def _unknown_keys(
        self, model: type[Entry], table: dict[str, Any], path: KeyPath, besides: tuple[str, ...] = ()
    ) -> None:
        for key in table:
            if rules.is_secret_key(key):
                self._bad((*path, key), _NO_SECRETS, do=_SECRETS_ADVICE)
            elif key not in model.model_fields and key not in besides:
                do = f"{_meant(key, model)}Known: {_few(model)}."
                self._warn((*path, key), "is not known and is ignored", do)

    def _secrets(self, entry: Mapping[str, Any], path: KeyPath, means: str) -> bool:
        hits = [key for key in entry if rules.is_secret_key(key)]
        for key in hits:
            self._bad((*path, key), _NO_SECRETS, means, _SECRETS_ADVICE)
        return bool(hits)

    def _bad(self, path: KeyPath, what: str, means: str = "", do: str = "") -> None:
        self._say(path, what, means, do, BAD)

    def _warn(self, path: KeyPath, what: str, do: str = "") -> None:
        self._say(path, what, "", do, WARNING)

    def _say(self, path: KeyPath, what: str, means: str, do: str, code: str) -> None:
        text = f"{_dotted(path)}{what.rstrip('.')}."
        line = self.lines.line(path)
        self.found.append((line or 0, problem(self.file, line, text, means=means, do=do, code=code)))


def _few(model: type[Entry]) -> str:
    return ", ".join(model.model_fields)


def _meant(key: str, model: type[Entry]) -> str:
    """The key that was perhaps meant, as a question."""
    begun = [known for known in model.model_fields if len(key) > 2 and known.startswith(key.lower())]
    near = begun[:1] or difflib.get_close_matches(key.lower(), model.model_fields, 1)
    return f"Did you mean {near[0]}? " if near else ""


def _dotted(path: KeyPath) -> str:
    words = [str(safe(str(key), 60)) for key in path if not isinstance(key, int)]
    return ".".join(words) + ": " if words else ""
