"""``python -m tests.screenshots [NAME …]``: draw the pictures of `screenshots/` anew."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from tests.screenshots.pictures import FOLDER, PICTURES, taken


async def _draw(names: Sequence[str]) -> int:
    FOLDER.mkdir(exist_ok=True)
    unknown = set(names) - {picture.name for picture in PICTURES}
    if unknown:
        print(f"no such picture: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for picture in PICTURES:
        if not names or picture.name in names:
            fresh = await taken(picture)
            stored = picture.path.read_text() if picture.path.exists() else ""
            picture.path.write_text(fresh)
            print(f"{picture.path.relative_to(FOLDER.parent)}  {'as it was' if fresh == stored else 'drawn'}")
    if not names:
        for left in sorted(set(FOLDER.glob("*.svg")) - {picture.path for picture in PICTURES}):
            left.unlink()
            print(f"{left.relative_to(FOLDER.parent)}  removed: no longer in the list")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_draw(sys.argv[1:])))
