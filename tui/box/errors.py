"""Why a connection could not be made: each kind of failure as one sentence, and whether to try again."""

from __future__ import annotations

import socket

from tui.model.failure import Exit, Failure
from tui.model.instance import LinkState
from tui.model.text import SafeText, safe


class ConnectFailure(Failure):
    """No connection.

    Attributes:
        state: what the box is shown as.
        retry: whether trying again by itself makes sense. A refused login or a changed identity never does:
            repeated failures get an address blocked, and an identity is the operator's decision.
        offered, pinned: fingerprints, where the host key was the reason.
    """

    def __init__(
        self,
        what: str,
        *,
        state: LinkState,
        retry: bool,
        means: str = "",
        do: str = "",
        code: str = "",
        offered: str | None = None,
        pinned: str | None = None,
    ) -> None:
        status = Exit.UNREACHABLE if state is LinkState.UNREACHABLE else Exit.ATTENTION
        super().__init__(what, means=means, do=do, exit=status, code=code or state.name.lower())
        self.state = state
        self.retry = retry
        self.offered: SafeText | None = None if offered is None else safe(offered)
        self.pinned: SafeText | None = None if pinned is None else safe(pinned)


class CommandRefused(Failure):
    """The box let us in and would not run a command: a gateway, or a login shell that is none."""

    def __init__(self, box: str, answer: str) -> None:
        said = f" It answered: “{safe(answer, 300)}”." if answer.strip() else ""
        super().__init__(
            f"{box} does not run commands over SSH.{said}",
            means="Nothing can be watched through this login.",
            do="Use the provider's direct SSH address (exposed TCP port) instead of its gateway.",
            code="no-exec",
        )


def unreachable(what: str, *, do: str = "", retry: bool = True, code: str = "unreachable") -> ConnectFailure:
    """The box was not reached; whether it runs or is billed is not known."""
    return ConnectFailure(
        what,
        state=LinkState.UNREACHABLE,
        retry=retry,
        means="This says nothing about whether the machine is running or billed.",
        do=do,
        code=code,
    )


def refused(what: str, *, do: str = "", code: str = "login-refused") -> ConnectFailure:
    """The login is not possible as it is; trying again would only get the address blocked."""
    return ConnectFailure(
        what,
        state=LinkState.REFUSED,
        retry=False,
        means="It is not tried again by itself.",
        do=do,
        code=code,
    )


def identity_changed(box: str, where: str, *, offered: str, pinned: str, source: str) -> ConnectFailure:
    """The server's key is not the one this box is known by."""
    return ConnectFailure(
        f"{box} at {where} showed another identity: {offered}; {source} says {pinned}.",
        state=LinkState.IDENTITY,
        retry=False,
        means="It was rebuilt, the address now belongs to another machine, or somebody is in between;"
        " nothing was sent.",
        do="Compare the new fingerprint with the provider's console; accept it (C in rgt) if they agree, "
        "correct the address if the machine moved.",
        code="host-key-changed",
        offered=offered,
        pinned=pinned,
    )


def fold(exc: BaseException, box: str, where: str) -> ConnectFailure:
    """Turn what asyncssh or the system raised while connecting into a `ConnectFailure`.

    asyncssh's failures are of four unrelated families: its own `Error`, `OSError`, `ValueError` (keys) and a
    plain `TimeoutError`.

    Args:
        box: the instance's name.
        where: ``user@host:port``, with the jump host it concerns if that is the one that failed.
    """
    if isinstance(exc, ConnectFailure):
        return exc
    if isinstance(exc, TimeoutError):
        return unreachable(f"{box}: {where} did not answer in time.", do=_CHECK_RUNNING, code="timeout")
    if isinstance(exc, OSError):
        return _system(exc, box, where)
    if isinstance(exc, ValueError):
        return refused(f"{box}: a key could not be used: {_reason(exc)}.", do="Check the key file.")
    return _protocol(exc, box, where)


_CHECK_RUNNING = "Check in the provider's console that it runs, and its address and port."


def _system(exc: OSError, box: str, where: str) -> ConnectFailure:
    if isinstance(exc, socket.gaierror):
        return unreachable(
            f"{box}: the name in {where} could not be resolved.",
            do="Check the spelling and this computer's network.",
            code="no-such-name",
        )
    if isinstance(exc, ConnectionRefusedError):
        return unreachable(f"{box}: nothing listens at {where}.", do=_CHECK_RUNNING, code="refused")
    if isinstance(exc, ConnectionResetError | BrokenPipeError | EOFError):
        return hung_up(box, where)
    return unreachable(f"{box}: {where} cannot be reached: {_reason(exc)}.", do=_CHECK_RUNNING)


def hung_up(box: str, where: str) -> ConnectFailure:
    return unreachable(
        f"{box}: {where} closed the connection before the login.",
        do="It may still be booting, or limit how many may connect at once; a later try may pass.",
        code="hung-up",
    )


def _protocol(exc: BaseException, box: str, where: str) -> ConnectFailure:
    import asyncssh  # only reached once a connection was attempted, so it is loaded already

    reason = _reason(exc)
    if isinstance(exc, asyncssh.PermissionDenied) or "too many authentication failures" in reason.lower():
        return refused(
            f"{box}: {where} refused the login.",
            do="Check the user name and the key or password, then connect again.",
        )
    if isinstance(exc, asyncssh.KeyExchangeFailed):
        return unreachable(
            f"{box}: {where} offers no encryption that both sides know ({reason}).",
            do="The server is very old or misconfigured; connect with the system's ssh instead.",
            retry=False,
            code="no-common-algorithm",
        )
    if isinstance(exc, asyncssh.ChannelOpenError):
        return unreachable(f"{box}: the jump host could not reach {where} ({reason}).", do=_CHECK_RUNNING)
    if isinstance(exc, asyncssh.ConnectionLost):
        return hung_up(box, where)
    if isinstance(exc, asyncssh.Error):
        return unreachable(
            f"{box}: {where} does not speak SSH properly ({reason}).",
            do="Check that the port is the SSH port.",
            code="not-ssh",
        )
    return unreachable(f"{box}: {where} cannot be reached: {reason}.", do=_CHECK_RUNNING)


def _reason(exc: BaseException) -> str:
    text = (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(getattr(exc, "reason", exc))
    return safe(text, 200).strip(" .") or type(exc).__name__
