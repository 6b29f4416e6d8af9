"""Accounts at providers as the screens see them: what each lists, when that was asked, and what is left."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.instance import DangerClock, Endpoint
from tui.model.text import SafeText


@dataclass(frozen=True, slots=True)
class AccountSpec:
    """One ``[accounts.NAME]`` of the fleet file, or a credential that was found.

    Attributes:
        url: another address than the vendor's, such as a private cloud's.
        key_env: the one environment variable that holds the key; the key never stands in the file.
        ask: False: rgt does not ask it by itself.
        ignore: ids of machines in it that are nobody's concern here, such as a colleague's.
        found: it stands nowhere in the file; a credential was found.
    """

    name: str
    platform: str
    url: str | None = None
    key_env: str | None = None
    ask: bool = True
    ignore: tuple[str, ...] = ()
    found: bool = False


@dataclass(frozen=True, slots=True)
class Rented:
    """One machine as its provider lists it.

    Attributes:
        account: name of the account that lists it.
        state: ``starting``, ``running``, ``stopping``, ``stopped``, ``destroying``, ``gone``, ``unknown``.
        said: the provider's own word for it.
        per_hour: what it costs in this state; None where the provider does not tell.
        price_source: where the figure is from.
        since: when the meter started, seconds since the epoch.
        clock: the next date on which the provider acts on it.
        seen_at: when it was last in a list.
        absent: complete lists in a row that did not have it, the first of them at `absent_since`, over
            `absent_s` seconds.
    """

    account: str
    platform: str
    id: str
    name: SafeText
    state: str
    said: SafeText
    seen_at: float
    endpoint: Endpoint | None = None
    per_hour: float | None = None
    currency: str = "USD"
    price_source: SafeText = SafeText("")
    gpu: SafeText = SafeText("")
    since: float | None = None
    ends_at: float | None = None
    clock: DangerClock | None = None
    notes: tuple[SafeText, ...] = ()
    absent: int = 0
    absent_since: float | None = None
    absent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AccountView:
    """One account.

    Attributes:
        asked_at: when it was last asked; None: never yet.
        told_at: when it last answered with a complete list.
        why: what was wrong the last time it was asked, a whole sentence; empty when nothing was.
        machines: of the last list; kept, and old, while the account does not answer.
        complete: the last list was complete, so that what is not in it is not there.
        balance, currency: what is left; None with `balance_why` where it is not told.
        per_hour: what the provider itself says that everything costs an hour.
        source: where the key was found.
        covers: pattern of the ids that its list can have.
        lists: complete lists in a row, the first of them at `lists_since`.
        balance_kills: what its platform does when nothing is left, in words; `balance_takes` is what is lost.
    """

    name: str
    platform: str
    source: SafeText = SafeText("")
    asked_at: float | None = None
    told_at: float | None = None
    why: SafeText = SafeText("")
    machines: tuple[Rented, ...] = ()
    complete: bool = False
    balance: float | None = None
    currency: str = "USD"
    balance_why: SafeText = SafeText("")
    per_hour: float | None = None
    balance_kills: SafeText = SafeText("")
    balance_takes: SafeText = SafeText("")
    covers: str = ".*"
    lists: int = 0
    lists_since: float | None = None
