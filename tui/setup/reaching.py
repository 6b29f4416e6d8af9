"""Steps that reach the box: the login, pasted, and the host key, compared by the operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tui.box.transport import LinkLost, SessionsExhausted
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.setup import Asked, Option
from tui.model.text import SafeText, safe
from tui.setup.beginning import profile_of
from tui.setup.state import Closable, Did, Shown, State, Tell, Tools

_CONNECT_S = 60.0


class Connect:
    """The connection string, pasted as the console gives it."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        login = state.told("rent", "login")
        hint = (
            safe(f"Enter: {login}", 200)
            if login
            else SafeText("any form the console gives, several lines too")
        )
        if state.box is not None:
            hint = safe(f"Enter: go on with {state.box}", 120)
        asked = Asked("text", SafeText("Paste the login"), hint)
        return Shown(
            SafeText("rgt add"), SafeText("a box of your fleet; a password in it is not kept"), asked, False
        )

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        facts = profile_of(state, tools).facts
        if not answer.strip() and state.box is not None:
            return Did(brief=state.box, data={"box": state.box})
        pasted = answer.strip() or state.told("rent", "login") or ""
        if not pasted:
            raise Failure("Nothing was pasted.", do="Copy the login from the platform's console.")
        name = await asyncio.to_thread(
            tools.add_box, pasted, state.told("rent", "name") or "", facts.id if facts.id != "local" else ""
        )
        await asyncio.to_thread(tools.edit_box, name, _known(state, tools, name))
        await tools.reload()
        return Did(brief=name, observed=(f"{name} stands in {tools.where.fleet_file}",), data={"box": name})


def _known(state: State, tools: Tools, name: str) -> dict[str, str | float]:
    """What earlier steps know of the box; what the paste named itself stays."""
    found: dict[str, str | float] = {}
    for key, mine in (("instance_id", "id"), ("currency", "currency")):
        if told := state.told("rent", mine):
            found[key] = told
    if price := state.told("rent", "price"):
        found["price_per_hour"] = float(price)
    end = tools.instance(name).endpoint
    private = state.told("key", "private")
    if private and end is not None and end.key is None:
        found["key"] = private
    return found


@dataclass(slots=True)
class Identity:
    """The host key: the box says who it is, the operator says whether that is so."""

    _print: str = ""

    async def ask(self, state: State, tools: Tools) -> Shown:
        self._print = ""
        asked = Asked("read", SafeText("Enter connects."))
        return Shown(SafeText("ssh, with strict checking"), SafeText("one host key, recorded"), asked, False)

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did | Shown:
        instance = box_of(state, tools)
        if instance.endpoint is None:
            return Did(brief="this computer", observed=("Nothing to prove: it is this one.",))
        if not self._print:
            return await self._seen(instance, tools)
        seen, self._print = self._print, ""
        if answer != "same":
            await asyncio.to_thread(tools.forget_key, instance.name)
            raise Failure(
                "You say that it is another machine; its key is not trusted.",
                do="Compare host and port with the console, then paste the login again.",
            )
        return Did(brief=seen, observed=(f"{instance.name} is {seen}", "A receipt of it is kept."))

    async def _seen(self, instance: Instance, tools: Tools) -> Shown:
        async with connected(instance, tools) as box:
            self._print = str(getattr(box, "host_key", "") or "unknown")
        options = (
            Option("same", SafeText("it is the box"), SafeText("the console shows the same, or shows none")),
            Option("other", SafeText("it is not"), SafeText("the key is taken back")),
        )
        asked = Asked("choose", safe(f"The box shows {self._print}", 120), options=options)
        return Shown(SafeText("ssh, with strict checking"), SafeText("one host key, recorded"), asked, False)


def box_of(state: State, tools: Tools) -> Instance:
    """The box of this setup. Raises Failure."""
    if state.box is None:
        raise Failure("There is no box yet.", do="Go back to the step that connects.")
    return tools.instance(state.box)


@asynccontextmanager
async def connected(instance: Instance, tools: Tools) -> AsyncIterator[Closable]:
    """A connection that is closed with the block; one that is lost is a Failure with what to do."""
    name = instance.name
    try:
        async with asyncio.timeout(_CONNECT_S):
            box = await tools.dial(instance)
    except TimeoutError:
        raise Failure(f"{name} did not answer in {_CONNECT_S:.0f} s.", do="Is it on?") from None
    try:
        yield box
    except TimeoutError:
        raise Failure(f"{name} did not answer in time.", do="Try the step again.") from None
    except (LinkLost, SessionsExhausted) as lost:
        raise Failure(lost.what, means=lost.means, do="Try the step again.") from None
    finally:
        await box.close()
