"""Where host keys are recorded. Apart from the chain, whose models the screen need not load."""

from __future__ import annotations

from tui.box.trust import TrustStore
from tui.fleet.paths import Paths


def trust_store(where: Paths) -> TrustStore:
    """The keys of this operator's machines, and the receipts of taking them."""
    return TrustStore(where.state / "hostkeys", where.receipts)
