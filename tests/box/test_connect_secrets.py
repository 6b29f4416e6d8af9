"""Passwords and one-time codes, against a server that asks for them in every way providers do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from tests.box.boxes import Desk, Typist
from tui.box.errors import ConnectFailure
from tui.box.secrets import PASSWORD, PasswordSource, Vault
from tui.box.timing import Timing
from tui.model.instance import Endpoint, Instance, LinkState

RIGHT = "geheim 密码"


class Asking(asyncssh.SSHServer):
    """Lets in whoever gives the right answers.

    Args:
        prompts: of a keyboard-interactive round, ``(text, echo)``; empty: the password method instead.
        answers: the right ones.
    """

    def __init__(
        self, prompts: Sequence[tuple[str, bool]], answers: Sequence[str], log: list[object]
    ) -> None:
        self._prompts, self._answers, self._log = list(prompts), list(answers), log

    def begin_auth(self, username: str) -> bool:
        return bool(self._answers)

    def password_auth_supported(self) -> bool:
        return not self._prompts

    def validate_password(self, username: str, password: str) -> bool:
        self._log.append(password)
        return [password] == self._answers

    def kbdint_auth_supported(self) -> bool:
        return bool(self._prompts)

    def get_kbdint_challenge(
        self, username: str, lang: str, submethods: str
    ) -> tuple[str, str, str, list[tuple[str, bool]]]:
        return "", "", "", self._prompts

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        self._log.append(list(responses))
        return list(responses) == self._answers


@asynccontextmanager
async def asking(
    prompts: Sequence[tuple[str, bool]] = (),
    answers: Sequence[str] = (RIGHT,),
    log: list[object] | None = None,
) -> AsyncIterator[Endpoint]:
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=lambda: Asking(prompts, answers, [] if log is None else log),
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        login_timeout=0,
    )
    try:
        yield Endpoint("127.0.0.1", server.get_port(), "root")
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    desk = Desk(tmp_path)
    desk.empty_config.write_text(
        "Host *\n  IdentityFile none\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n"
    )
    return desk


async def failing(desk: Desk, box: Instance) -> ConnectFailure:
    with pytest.raises(ConnectFailure) as caught:
        await desk.connector().connect(box)
    return caught.value


KBDINT: list[Sequence[tuple[str, bool]]] = [
    [],
    [("Password: ", False)],
    [("密码:", False)],
    [("Mot de passe :", False)],
]


@pytest.mark.parametrize("prompts", KBDINT)
async def test_a_password_by_the_name_of_its_variable(
    prompts: Sequence[tuple[str, bool]], desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOX_PW", RIGHT)
    async with asking(prompts) as endpoint:
        box = await desk.connector().connect(Instance("box", "autodl", endpoint, password_env="BOX_PW"))
        await box.close()
    assert desk.typist.asked == []


@pytest.mark.parametrize("prompts", KBDINT)
async def test_a_password_is_asked_for_and_kept_for_the_session(
    prompts: Sequence[tuple[str, bool]], desk: Desk
) -> None:
    desk.typist = Typist(["wrong", RIGHT])
    async with asking(prompts) as endpoint:
        connector = desk.connector()
        for _ in range(2):
            box = await connector.connect(Instance("box", "autodl", endpoint))
            await box.close()
    assert len(desk.typist.asked) == 2
    assert desk.typist.asked[0][0] == "box"
    if prompts:
        assert desk.typist.asked[0][1] == prompts[0][0].strip()
    assert RIGHT not in repr(connector.vault)


async def test_a_wrong_password_is_not_repeated(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_PW", "wrong")
    log: list[object] = []
    async with asking(log=log) as endpoint:
        failure = await failing(desk, Instance("box", "autodl", endpoint, password_env="BOX_PW"))
    assert (failure.state, failure.retry) == (LinkState.REFUSED, False)
    assert log == ["wrong"]
    assert "wrong" not in failure.line.replace("wrong passphrase", "")


async def test_without_an_answer_the_box_needs_a_secret(desk: Desk) -> None:
    async with asking() as endpoint:
        failure = await failing(desk, Instance("box", "autodl", endpoint, password_env="NOT_SET_PW"))
    assert (failure.state, failure.retry) == (LinkState.NEEDS_SECRET, False)
    assert "NOT_SET_PW is not set" in failure.line


async def test_password_and_one_time_code(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_PW", RIGHT)
    desk.typist = Typist(["123456"])
    prompts = [("密码:", False), ("Verification code\x1b[2J:", True)]
    async with asking(prompts, [RIGHT, "123456"]) as endpoint:
        box = await desk.connector().connect(Instance("box", "autodl", endpoint, password_env="BOX_PW"))
        await box.close()
    assert len(desk.typist.asked) == 1
    assert desk.typist.asked[0][1].startswith("Verification code")
    assert "\x1b" not in desk.typist.asked[0][1]


async def test_a_server_that_lets_anybody_in_is_refused(desk: Desk) -> None:
    async with asking(answers=()) as endpoint:
        failure = await failing(desk, Instance("box", "autodl", endpoint))
    assert failure.state is LinkState.REFUSED


class SlowTypist:
    """Thinks longer than every deadline before typing."""

    async def ask(self, box: str, prompt: str) -> str | None:
        await asyncio.sleep(0.8)
        return RIGHT


async def test_deadlines_and_other_boxes_do_not_wait_for_the_operator(desk: Desk) -> None:
    quick = Timing(connect=0.4, login=0.4)
    desk.timing = quick
    async with asking() as endpoint:
        slow = desk.connector(at_once=1)
        slow.asker = SlowTypist()
        thinking = asyncio.ensure_future(slow.connect(Instance("slow", "autodl", endpoint)))
        await asyncio.sleep(0.3)
        desk.typist = Typist([RIGHT])
        began = time.monotonic()
        other = await desk.connector(at_once=1).connect(Instance("other", "autodl", endpoint))
        assert time.monotonic() - began < 0.4
        assert not thinking.done()
        box = await thinking
        await asyncio.gather(other.close(), box.close())


async def test_a_question_is_withdrawn_when_the_login_is_over(desk: Desk) -> None:
    withdrawn = asyncio.Event()

    class Waiting:
        async def ask(self, box: str, prompt: str) -> str | None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                withdrawn.set()
                raise
            return None

    async with asking() as endpoint:
        connector = desk.connector()
        connector.asker = Waiting()
        connecting = asyncio.ensure_future(connector.connect(Instance("box", "autodl", endpoint)))
        await asyncio.sleep(0.3)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await asyncio.wait_for(withdrawn.wait(), 2)


def test_the_vault_shows_nothing_and_forgets() -> None:
    vault = Vault()
    vault.put("a", PASSWORD, RIGHT)
    vault.put("b", PASSWORD, RIGHT)
    assert RIGHT not in repr(vault) + str(vault)
    vault.drop("a")
    assert (vault.get("a", PASSWORD), vault.get("b", PASSWORD)) == (None, RIGHT)


async def test_each_known_password_is_given_once() -> None:
    vault = Vault()
    vault.put("box", PASSWORD, "remembered")
    typist = Typist(["typed"])
    source = PasswordSource("box", vault, typist, env_name="PW", environ={"PW": "from the environment"})
    given = [await source.password("Password:") for _ in range(5)]
    assert given == ["from the environment", "remembered", "typed", None, None]
    assert vault.get("box", PASSWORD) is None
    source.accepted()
    assert vault.get("box", PASSWORD) == "typed"
