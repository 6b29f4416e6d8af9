"""The log of a run: followed on the box, kept on this computer, searched in both places."""

from tui.box.tail.follower import Follower
from tui.box.tail.spool import Spool, gap_line, spool_name

__all__ = ["Follower", "Spool", "gap_line", "spool_name"]
