"""The keyring of this login, where keys lie that no vendor's tool keeps. No wait for it is without end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from tui.model.failure import Failure
from tui.model.text import safe

SERVICE = "rgt"
SILENT = "keyring-silent"
"""The code of a failure that says: it does not answer."""
_T = TypeVar("_T")


class Vault(Protocol):
    """Keeps secrets for this login. Both raise Failure."""

    def read(self, name: str) -> str | None: ...

    def write(self, name: str, secret: str) -> None: ...


READ_S = 5.0
WRITE_S = 60.0
"""Time to type a passphrase where the desktop asks for one."""

_stuck: list[threading.Thread] = []


class Keyring:
    """This login's keyring, which encrypts what it keeps. A backend that does not is refused.

    A locked one asks on the desktop, where perhaps nobody is: it is waited for with a deadline, and while an
    earlier question of this process still waits no other is put.
    """

    def read(self, name: str) -> str | None:
        try:
            return _in_time(lambda: _read(name), READ_S)
        except (OSError, RuntimeError, ValueError):
            raise Failure("The keyring can't be read.", code="no-keyring") from None

    def write(self, name: str, secret: str) -> None:
        try:
            _in_time(lambda: _write(name, secret), WRITE_S)
        except (OSError, RuntimeError, ValueError) as error:
            raise _no_keyring(type(error).__name__) from None


def _read(name: str) -> str | None:
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(SERVICE, name)
    except KeyringError as error:
        raise RuntimeError(type(error).__name__) from None


def _write(name: str, secret: str) -> None:
    import keyring
    from keyring.errors import KeyringError

    if _in_clear(keyring.get_keyring()):
        raise _no_keyring("the one that is set up keeps its secrets in clear text")
    try:
        keyring.set_password(SERVICE, name, secret)
    except KeyringError as error:
        raise _no_keyring(type(error).__name__) from None


def _in_time(call: Callable[[], _T], seconds: float) -> _T:
    """What a call answers. It runs in a thread that keeps no process from ending.

    Raises:
        Failure: it, or an earlier one, did not end in time. Whatever the call raises.
    """
    _stuck[:] = [one for one in _stuck if one.is_alive()]
    if _stuck:
        raise _silent("still does not answer")
    came: list[_T] = []
    failed: list[Exception] = []

    def work() -> None:
        try:
            came.append(call())
        except Exception as error:  # noqa: BLE001 - it is raised again where the call was made
            failed.append(error)

    thread = threading.Thread(target=work, name="keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        _stuck.append(thread)
        raise _silent(f"did not answer within {seconds:g} s")
    if failed:
        raise failed[0]
    return came[0]


def _silent(how: str) -> Failure:
    return Failure(
        f"The keyring {how}.",
        means="It may wait for its passphrase on the desktop.",
        do="Unlock it, or use the environment variable.",
        code=SILENT,
    )


def _in_clear(backend: object) -> bool:
    """Whether a backend, or the one that a chain of them would write to, does not encrypt."""
    chain = getattr(backend, "backends", None)
    first = next(iter(chain), backend) if chain else backend
    kind = type(first)
    return "plaintext" in kind.__name__.lower() or kind.__module__.startswith("keyrings.alt")


def _no_keyring(why: str) -> Failure:
    return Failure(
        f"The key could not be kept in the keyring: {safe(why, 120)}.",
        means="rgt writes no key in clear anywhere.",
        do="Set up a keyring (Secret Service, KWallet, Keychain), or use the environment variable.",
        code="no-keyring",
    )
