"""Which step does what."""

from __future__ import annotations

from tui.model.setup import StepId
from tui.setup.beginning import Credentials, Key, Platform, Surface
from tui.setup.box_steps import Audit, Budget, Mirrors, Summary
from tui.setup.reaching import Connect, Identity
from tui.setup.renting import Rent
from tui.setup.secrets import Secrets
from tui.setup.state import Step


def steps() -> dict[StepId, Step]:
    """All steps, fresh: some remember what they asked until it is answered."""
    return {
        "platform": Platform(),
        "surface": Surface(),
        "key": Key(),
        "credentials": Credentials(),
        "rent": Rent(),
        "connect": Connect(),
        "identity": Identity(),
        "audit": Audit(),
        "budget": Budget(),
        "secrets": Secrets(),
        "mirrors": Mirrors(),
        "summary": Summary(),
    }
