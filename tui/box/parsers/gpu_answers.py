"""From what a GPU tool printed to one `GpuReport`: every form is tried; a refusal stands beside the rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui.box.parsers.amd import amd_gpus, amd_processes
from tui.box.parsers.amd_table import amd_table_gpus
from tui.box.parsers.command import Invocation
from tui.box.parsers.lines import first_json
from tui.box.parsers.nvidia_csv import (
    Table,
    driver_of,
    gpus_of,
    guess_query,
    processes_of,
    queries,
    read_tables,
)
from tui.box.parsers.nvidia_lines import dmon_gpus, list_gpus, pmon_processes, topology_gpus, version_lines
from tui.box.parsers.nvidia_table import table_gpus, table_processes, table_slices, table_versions
from tui.box.parsers.nvidia_tree import Tree, read_query_text, read_query_xml
from tui.box.parsers.refusal import amd_refusal, no_answer, nvidia_refusal
from tui.box.parsers.report import GpuReport, Output, Refusal
from tui.model.telemetry import Gpu, GpuProcess
from tui.model.text import SafeText, safe

_NO_PROCESS = re.compile(r"\s*(?:[\w.\[\] ]+,)*\s*pid\b|.*no running processes", re.IGNORECASE)
_UNREAD = SafeText("the answer is in no form that is known")


def nvidia_report(output: Output, calls: Sequence[Invocation], limited: bool) -> GpuReport:
    """What one or several nvidia-smi calls said.

    Args:
        calls: their arguments; columns of a query without a header are told by them alone.
        limited: they ran under `timeout`.
    """
    refusal = no_answer(output, "nvidia-smi", limited) or nvidia_refusal(output.both)
    asked = [query for call in calls for query in queries(call)]
    if not asked:
        guessed = guess_query(output.stdout)
        asked = [guessed] if guessed else []
    tables = read_tables(output.stdout, asked)
    told = _told(output.stdout)
    gpus = _gpus_of_tables(tables) or told.gpus
    processes = _processes_of_tables(tables, output, refusal)
    if processes is None:
        processes = told.processes
    if gpus is None and ((refusal and refusal.answered) or _only_header(tables)):
        gpus = ()
    read = gpus is not None or processes is not None or told.driver is not None
    if not read and refusal is None:
        refusal = _unread(output)
    return GpuReport(
        gpus=gpus,
        processes=processes,
        slices=told.slices,
        driver=told.driver or next((found for found in map(driver_of, tables) if found), None),
        cuda=told.cuda,
        refusal=refusal,
    )


def amd_report(output: Output, tool: str, limited: bool) -> GpuReport:
    """What rocm-smi or amd-smi said."""
    refusal = no_answer(output, tool, limited) or amd_refusal(output.both)
    processes = amd_processes(output.stdout)
    gpus = amd_gpus(output.stdout)
    if gpus is None:
        gpus = amd_table_gpus(output.stdout)
    if gpus is None and first_json(output.stdout) == []:
        gpus = ()
    if gpus is None and processes is None and refusal is None:
        refusal = _unread(output)
    if gpus is None and refusal and refusal.answered:
        gpus = ()
    return GpuReport(gpus=gpus, processes=processes, refusal=refusal)


def _told(text: str) -> GpuReport:
    """The forms that need no columns: the tree, the table and the single lines."""
    tree = read_query_xml(text) or (
        read_query_text(text) if "NVSMI LOG" in text or "\nGPU 0" in text else None
    )
    if tree is not None:
        return _of_tree(tree)
    driver, cuda = table_versions(text)
    listed, listed_slices = list_gpus(text)
    drawn = table_gpus(text)
    line_driver, line_cuda = version_lines(text)
    processes = table_processes(text)
    slices = table_slices(text)
    return GpuReport(
        gpus=_first(drawn, listed, dmon_gpus(text), topology_gpus(text)),
        processes=pmon_processes(text) if processes is None else processes,
        slices=listed_slices if slices is None else slices,
        driver=driver or line_driver,
        cuda=cuda or line_cuda,
    )


def _of_tree(tree: Tree) -> GpuReport:
    return GpuReport(tree.gpus or None, tree.processes, tree.slices, tree.driver, tree.cuda)


def _first(*found: tuple[Gpu, ...] | None) -> tuple[Gpu, ...] | None:
    return next((gpus for gpus in found if gpus is not None), None)


def _gpus_of_tables(tables: Sequence[Table]) -> tuple[Gpu, ...] | None:
    return _first(*(gpus_of(table) for table in tables if table.query.lists == "gpus" and table.rows))


def _only_header(tables: Sequence[Table]) -> bool:
    return any(table.query.lists == "gpus" and table.header and not table.rows for table in tables)


def _processes_of_tables(
    tables: Sequence[Table], output: Output, refusal: Refusal | None
) -> tuple[GpuProcess, ...] | None:
    """Processes of a query. No row is an empty list: nvidia-smi then prints nothing and ends well."""
    asked = [table for table in tables if table.query.lists == "processes"]
    if not asked:
        return None
    found = tuple(process for table in asked for process in processes_of(table))
    if found or (refusal is None and output.exit in {0, None} and _lists_nothing(output.stdout)):
        return found
    return () if refusal is not None and refusal.answered else None


def _lists_nothing(text: str) -> bool:
    """Whether a query of processes printed its header at most, or that there are none."""
    told = [line for line in text.split("\n") if line.strip()]
    return not told or _NO_PROCESS.match(told[-1]) is not None


def _unread(output: Output) -> Refusal:
    """Why nothing was read although nobody refused."""
    last = next((line.strip() for line in reversed(output.both.split("\n")) if line.strip()), "")
    if output.exit not in {0, None}:
        return Refusal(
            "failed", safe(last or f"ended with exit {output.exit} and said nothing"), answered=False
        )
    return Refusal("unreadable", _UNREAD if last else SafeText("printed nothing"), answered=False)
