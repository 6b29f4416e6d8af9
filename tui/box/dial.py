"""Opens a TCP connection. Names are looked up in a thread that cannot hold up the program's end."""

from __future__ import annotations

import asyncio
import socket
import threading

Address = tuple[int, tuple[str, int] | tuple[str, int, int, int]]

_EACH_S = 5.0


async def dial(host: str, port: int) -> socket.socket:
    """Connect to the first address of `host` that answers; the caller sets the deadline of the whole.

    Raises:
        OSError: the last address's failure, or ``socket.gaierror`` when the name is not known.
    """
    addresses = await look_up(host, port)
    failure: OSError = ConnectionRefusedError("no address")
    for index, (family, address) in enumerate(addresses):
        last = index == len(addresses) - 1
        try:
            async with asyncio.timeout(None if last else _EACH_S):
                return await _connect(family, address)
        except TimeoutError:
            failure = TimeoutError("timed out")
        except OSError as exc:
            failure = exc
    raise failure


async def look_up(host: str, port: int) -> list[Address]:
    """The addresses of a name. With asyncio's own look-up a dead resolver holds up the program's end."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Address]] = loop.create_future()

    def deliver(found: list[Address] | OSError) -> None:
        if answer.done():
            return
        if isinstance(found, OSError):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def work() -> None:
        found: list[Address] | OSError
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = [(info[0], info[4]) for info in infos]  # type: ignore[misc]
        except OSError as exc:
            found = exc
        except UnicodeError:
            found = socket.gaierror(socket.EAI_NONAME, "not a host name")
        try:
            loop.call_soon_threadsafe(deliver, found)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    threading.Thread(target=work, name=f"look up {host}", daemon=True).start()
    return await answer


async def _connect(family: int, address: tuple[str, int] | tuple[str, int, int, int]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock
