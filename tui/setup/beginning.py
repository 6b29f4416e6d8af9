"""Steps before there is a box: platform, what nobody tells you, the key, the credential."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tui.fleet.profile_schema import Facts
from tui.fleet.profiles import SURFACE, Profile
from tui.model.failure import Exit, Failure
from tui.model.setup import Asked, Option
from tui.model.text import SafeText, safe
from tui.platforms.control import ControlError
from tui.platforms.credentials import PLACES, Missing
from tui.platforms.vendors import WAYS
from tui.setup.state import Did, Shown, State, Tell, Tools, lines

_KEYGEN_S = 30.0
_ASK_S = 40.0
_PUBLIC = re.compile(r"(ssh-(?:ed25519|rsa)|ecdsa-sha2-\S+|sk-\S+) [A-Za-z0-9+/=]+(?: [^\n]*)?\n?\Z")
NEW_KEY = "new"


class Platform:
    """Which platform."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        options = tuple(
            Option(name, safe(profile.facts.title, 40), safe(profile.facts.summary, 200))
            for name, profile in sorted(tools.profiles.items(), key=_usual)
        )
        asked = Asked("choose", SafeText("Where do you rent, or want to?"), options=options)
        return Shown(SafeText("nothing yet"), SafeText("a platform whose facts rgt knows"), asked, False)

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        profile = tools.profiles.get(answer)
        if profile is None:
            raise Failure(f"There is no profile {safe(answer, 40)!r}.", exit=Exit.USAGE)
        facts = profile.facts
        return Did(brief=facts.title, observed=(facts.summary,), data={"id": facts.id})


def _usual(item: tuple[str, Profile]) -> tuple[bool, str]:
    """Rented machines first; one's own, schedulers and notebooks after them."""
    return item[1].facts.kind not in ("ssh-rental", "cloud-api"), item[0]


class Surface:
    """What one should know before the first box: conveniences, and the clocks that run against one."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        asked = Asked("read", SafeText("Read it once, then Enter."))
        about = lines(tuple(surface(profile_of(state, tools))))
        return Shown(SafeText("nothing"), SafeText("you know what runs against you"), asked, about=about)

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        profile = profile_of(state, tools)
        clocks = len(profile.facts.clocks)
        told = f"{clocks} clocks run" if clocks > 1 else "one clock runs" if clocks else "no clock runs"
        return Did(brief=f"{told} against you here", observed=tuple(surface(profile))[:12])


def surface(profile: Profile) -> Iterator[str]:
    """The *Surface* block as plain lines, and how sure the facts are."""
    for line in profile.sections.get(SURFACE, "").split("\n"):
        plain = re.sub(r"\*\*|`|\[([^\]]+)\]\([^)]*\)", r"\1", line).strip()
        if plain:
            yield plain
    yield f"Last looked at: {profile.oldest().verified}."


@dataclass(slots=True)
class Key:
    """Which key, and where its public half goes."""

    _chosen: Path | None = None

    async def ask(self, state: State, tools: Tools) -> Shown:
        self._chosen = None
        found = await asyncio.to_thread(public_keys, tools.keys)
        options = tuple(Option(path.name, safe(path.name, 60), safe(told, 80)) for path, told in found)
        place = safe(f"ed25519, {_new_path(tools.keys, state)}", 120)
        new = Option(NEW_KEY, SafeText("make a new one"), place)
        where = safe(_where_keys_go(state, tools), 300)
        asked = Asked("choose", SafeText("Which key shall open the box?"), where, (*options, new))
        return Shown(_KEY_RUN, _KEY_EXPECTED, asked)

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did | Shown:
        if self._chosen is None:
            self._chosen = await asyncio.to_thread(_key_named, answer, state, tools)
            text = (await asyncio.to_thread(self._chosen.read_text, "utf-8")).strip()
            asked = Asked("read", SafeText("Paste the line at the platform, then Enter. y copies it."))
            about = lines((text, _where_keys_go(state, tools)), 1200)
            return Shown(_KEY_RUN, _KEY_EXPECTED, asked, about=about)
        path = self._chosen
        text = (await asyncio.to_thread(path.read_text, "utf-8")).strip()
        return Did(
            brief=str(path),
            observed=(text, _where_keys_go(state, tools)),
            data={"public": str(path), "private": str(path.with_suffix(""))},
        )


_KEY_RUN = SafeText("ls ~/.ssh/*.pub, or ssh-keygen -t ed25519")
_KEY_EXPECTED = SafeText("a public key that you paste at the platform")


def _key_named(answer: str, state: State, tools: Tools) -> Path:
    if answer == NEW_KEY:
        return make_key(_new_path(tools.keys, state))
    for path, _ in public_keys(tools.keys):
        if path.name == answer:
            return path
    raise Failure(f"There is no key {safe(answer, 60)!r}.", exit=Exit.USAGE)


def _where_keys_go(state: State, tools: Tools) -> str:
    keys = profile_of(state, tools).facts.network.keys
    return keys.text if keys else "Paste it where the platform asks for keys."


def public_keys(folder: Path) -> list[tuple[Path, str]]:
    """Public keys with a private half beside them, and what they say of themselves."""
    found = []
    for path in sorted(folder.glob("*.pub")):
        try:
            text = path.read_text("utf-8")[:16384]
        except (OSError, UnicodeDecodeError):
            continue
        if _PUBLIC.match(text) and path.with_suffix("").exists():
            kind, _, rest = text.strip().partition(" ")
            found.append((path, f"{kind} {rest.partition(' ')[2]}".strip()))
    return found


def _new_path(folder: Path, state: State) -> Path:
    return folder / f"rgt_{state.platform or 'box'}_ed25519"


def make_key(path: Path) -> Path:
    """Make an ed25519 key without a passphrase and return its public half. Raises Failure.

    One without a passphrase opens the box also for a patrol at night; it opens nothing else.
    """
    if path.exists():
        return path.with_name(f"{path.name}.pub")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        what = f"{path.parent} cannot be made ({error.strerror})."
        raise Failure(what, means="No key was made.", do="Look what lies there.") from None
    comment = f"rgt@{os.uname().nodename}"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_KEYGEN_S)
    except (OSError, subprocess.TimeoutExpired):
        what = "ssh-keygen is not there or does not answer."
        raise Failure(what, do="Install the OpenSSH client.") from None
    if done.returncode != 0:
        raise Failure(f"ssh-keygen made no key: {safe(done.stderr.decode('utf-8', 'replace'), 200)}")
    return path.with_name(f"{path.name}.pub")


class Credentials:
    """The platform's key for its API, where it has one."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        facts = profile_of(state, tools).facts
        if facts.id not in WAYS:
            asked = Asked("read", SafeText("This platform has no API that rgt can ask. Enter goes on."))
            return Shown(SafeText("nothing"), SafeText("you act at its console; rgt says what to do"), asked)
        found = await asyncio.to_thread(tools.account, facts.id)
        where = facts.credentials.where or "The platform's account settings make one."
        if isinstance(found, Missing):
            hint = safe(f"{where} It goes into this login's keyring.", 300)
            asked = Asked("secret", SafeText("API key"), hint)
        else:
            told = f"A key was found in {found.source}. Enter asks the platform with it."
            asked = Asked("read", safe(told, 200))
        places = ", ".join(PLACES[facts.id].variables)
        return Shown(safe(f"look at {places}, the vendor's own files, the keyring", 200), _EXPECTED, asked)

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        facts = profile_of(state, tools).facts
        if facts.id not in WAYS:
            return Did(brief="by hand: no API", data={"api": "no"})
        if answer:
            await asyncio.to_thread(tools.keep_key, facts.id, answer)
        found = await asyncio.to_thread(tools.account, facts.id)
        if isinstance(found, Missing):
            raise Failure(f"{facts.title} {found.why}.", do="Type the key, or skip this step.")
        tell(safe(f"asking {facts.title} with the key of {found.source}"))
        plane = found.plane
        try:
            async with asyncio.timeout(_ASK_S):
                listing, balance = await plane.list_all(), await plane.balance()
        except (TimeoutError, ControlError) as error:
            why = error.what if isinstance(error, ControlError) else "no answer in time"
            raise Failure(f"{facts.title} did not accept the key of {found.source}: {why}") from None
        left = "not told" if balance.amount is None else f"{balance.amount:,.2f} {balance.currency}"
        observed = (
            f"account {listing.account or 'not named'}{'' if listing.account_told else _BY_KEY}",
            f"{len(listing.machines)} machines, balance {left}",
            *(str(warning.line) for warning in found.warnings),
        )
        return Did(brief=f"accepted, from {found.source}", observed=observed, data={"api": "yes"})


_BY_KEY = ": the platform names nobody, so this is the key that was used"
_EXPECTED = SafeText("the platform accepts the key and lists what you rent")


def profile_of(state: State, tools: Tools) -> Profile:
    """The profile of the chosen platform. Raises Failure."""
    found = tools.profiles.get(state.platform or "")
    if found is None:
        raise Failure("No platform was chosen yet.", do="Go back to the first step.")
    return found


def facts_of(state: State, tools: Tools) -> Facts:
    return profile_of(state, tools).facts
