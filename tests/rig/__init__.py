"""Real programs that tests run against, and can break."""

from tests.rig.sshd import Sshd

__all__ = ["Sshd"]
