"""``python -m tests.corpus DIR [--fields parse|all] [--json]``: exit 0 if every case passed, else 1."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.corpus import kind_f
from tests.corpus.runner import Summary, run


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="*.jsonl case files, or a tree of files with expected.json"
    )
    parser.add_argument("--fields", choices=("parse", "all"), default="parse", help="what is compared")
    parser.add_argument("--json", action="store_true", help="print one JSON object, misses inside it")
    options = parser.parse_args(argv)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder")
    files = (options.folder / kind_f.EXPECTED).is_file()
    summary = (kind_f.run if files else run)(options.folder, options.fields)
    _report(summary, as_json=options.json)
    return 0 if summary.total and summary.passed == summary.total and not summary.false_alarms else 1


def _report(summary: Summary, as_json: bool) -> None:
    if as_json:
        missed = [
            {"id": m.id, "field": m.field, "expected": m.expected, "got": m.got} for m in summary.misses
        ]
        print(json.dumps({**summary.as_json(), "misses": missed}, ensure_ascii=False, default=repr))
        return
    for miss in summary.misses:
        print(miss.line())
    if summary.left_out:
        print(f"{summary.left_out} cases ask nothing in this mode and are left out")
    for group, score in sorted(summary.by_group.items()):
        told = score.as_json()
        print(f"{group:<14} precision {told['precision']}  recall {told['recall']}  of {told['cases']} cases")
    print(json.dumps(summary.as_json()))


if __name__ == "__main__":
    sys.exit(main())
