"""`rgt ssh` and `rgt forward`: reach a box, with the identity that rgt pinned."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from tui.fleet.paths import paths
from tui.model.failure import Exit, Failure


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    ssh = sub.add_parser(
        "ssh",
        help="a shell or a command on a box",
        description="The exit status is ssh's own: the command's, or 255 where the box can't be reached.",
    )
    ssh.add_argument("name", metavar="BOX", help="a box of the fleet")
    command = ssh.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="run this instead of a shell"
    )
    command.required = False  # argparse calls what may be empty required, too
    ssh.set_defaults(run=_ssh)
    forward = sub.add_parser("forward", help="reach a port of a box on this computer")
    forward.add_argument("name", metavar="BOX", help="a box of the fleet")
    forward.add_argument("port", type=_port, metavar="PORT", help="port on the box, such as 6006")
    forward.add_argument("--local", type=_port, default=0, metavar="PORT", help="port here (any free one)")
    forward.set_defaults(run=lambda args: asyncio.run(_forward(args)))


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port (1 to 65535)")
    return int(text)


def _ssh(args: argparse.Namespace) -> int:
    """Becomes the system's ssh: its prompts, its exit code."""
    from tui.box.system_ssh import ssh_argv
    from tui.custody.host_keys import trust_store
    from tui.verbs.screen import instance_named

    where = paths()
    instance = instance_named(args.name, where)
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    argv = ssh_argv(instance, trust_store(where), command or None)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        raise Failure(
            f"{argv[0]} can't be started: {error.strerror}.", do="Install openssh-client."
        ) from None


async def _forward(args: argparse.Namespace) -> int:
    """Forward until interrupted or the link is lost."""
    from tui.verbs.screen import instance_named
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer

    where = paths()
    instance = instance_named(args.name, where)
    transport = await dialer(where, asker=TerminalAsker())(instance)
    try:
        forward = await transport.forward_local(args.port, args.local)
        print(
            f"http://127.0.0.1:{forward.local_port} is port {args.port} of {args.name}; ctrl+c ends it",
            flush=True,
        )
        problem = await forward.problem()
        if problem is not None and problem.code == "forwarding-forbidden":
            raise problem
        if problem is not None:
            print(f"rgt: {problem.line}", file=sys.stderr, flush=True)
        lost = await transport.wait_closed()
    finally:
        await transport.close()
    if lost is not None:
        raise lost
    return Exit.FINE
