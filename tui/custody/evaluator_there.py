"""The user's own evaluation on the box that read the copy back, where the restored files are."""

from __future__ import annotations

from decimal import Decimal

from tui.box.transport import Completed, Script, Transport
from tui.custody.child import ANSWER_BYTES
from tui.custody.evaluator import (
    FILE_SIZE,
    Answer,
    EvaluatorFailed,
    endless,
    figures_in,
    late,
    refused_status,
    wrote_nothing,
)
from tui.custody.scoring.reported import FILE_BYTES
from tui.model.metrics import Evaluator

_COPY_S = 3600.0
_ERROR_BYTES = 64 << 10
_LATE, _NO_COPY, _NO_OUTPUT, _ENDLESS = 124, 201, 202, 203

# $1 the restored folder, $2 seconds, $3 KiB of memory, $4 blocks of 512 bytes of a file it writes, $5 bytes
# of an answer, $6 bytes of last words, $7 the file it answers in or nothing, $8 bytes it may print, then the
# command. A line with the status and the answer's bytes goes out, then the answer, then the last words. The
# command sees a copy, a home of its own, and nothing of the login's environment but where programs are.
_RUN = r"""
umask 077
from=$1 seconds=$2 kib=$3 blocks=$4 most=$5 words=$6 file=$7 all=$8; shift 8
place=$(mktemp -d "${TMPDIR:-/tmp}/rgt-evaluate-XXXXXX") || { echo '201 0'; exit 0; }
trap 'rm -rf -- "$place"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$place/home" && cp -RP -- "$from" "$place/results" 2>"$place/err" && cd -- "$place/results" || {
  echo '201 0'; tail -c "$words" "$place/err"; exit 0; }
bound=
if timeout -k 5 1 true >/dev/null 2>&1; then bound="timeout -k 5 $seconds"
elif timeout 1 true >/dev/null 2>&1; then bound="timeout $seconds"; fi
run() (
  ulimit -v "$kib" 2>/dev/null; ulimit -f "$blocks" 2>/dev/null
  exec $bound env -i PATH="$PATH" LANG="${LANG:-C}" ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} \
    ${CONDA_PREFIX:+CONDA_PREFIX="$CONDA_PREFIX"} ${VIRTUAL_ENV:+VIRTUAL_ENV="$VIRTUAL_ENV"} \
    HOME="$place/home" TMPDIR="$place/home" XDG_CACHE_HOME="$place/home" PYTHONNOUSERSITE=1 \
    OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2 MKL_NUM_THREADS=2 "$@"
)
# what it prints without end fills no disk: of one stream the beginning is kept, of the other the end
{ { run "$@" </dev/null 2>&3 3>&-; echo $? >"$place/code"; } | head -c "$all" >"$place/out"
} 3>&1 | tail -c "$words" >"$place/err"
read -r code <"$place/code"
[ "$(wc -c <"$place/out")" -lt "$all" ] || code=203
answer=$place/out
if [ -n "$file" ] && [ "$code" = 0 ]; then
  answer=$place/results/$file
  { [ -f "$answer" ] && [ ! -L "$answer" ]; } || { echo '202 0'; exit 0; }
fi
tail -c "$most" "$answer" >"$place/answer"
echo "$code $(wc -c <"$place/answer" | tr -d ' ')"
cat "$place/answer"; tail -c "$words" "$place/err"
"""


async def evaluate_there(transport: Transport, evaluator: Evaluator, folder: str) -> Answer:
    """Run the command on a box, in a copy of a folder there.

    Args:
        folder: what was read back, on that box.

    Raises:
        LinkLost, SessionsExhausted: nothing is known of its answer.
    """
    args = (
        folder, f"{evaluator.timeout:.0f}", str(evaluator.memory >> 10), str(FILE_SIZE >> 9),
        str(FILE_BYTES + 1), str(_ERROR_BYTES), evaluator.output or "", str(ANSWER_BYTES), *evaluator.command,
    )  # fmt: skip
    script = Script(_RUN, args, why="the declared evaluator, on a copy of what was read back")
    try:
        done = await transport.run(
            script, timeout=evaluator.timeout + _COPY_S, limit=FILE_BYTES + _ERROR_BYTES + 100
        )
        figures = _figures(done, evaluator)
    except EvaluatorFailed as failed:
        return Answer(transport.name, None, str(failed))
    except TimeoutError:
        return Answer(transport.name, None, str(late(evaluator)))
    return Answer(transport.name, {name: str(value) for name, value in figures.items()})


def _figures(done: Completed, evaluator: Evaluator) -> dict[str, Decimal]:
    """What its answer says. Raises EvaluatorFailed."""
    head, _, rest = done.stdout.partition(b"\n")
    code, _, size = head.partition(b" ")
    if not (code.isdigit() and size.isdigit()):
        raise EvaluatorFailed("the box ended it early")
    answer, words, status = rest[: int(size)], rest[int(size) :], int(code)
    if status == _NO_COPY:
        raise EvaluatorFailed(f"the results could not be copied there{_last(words)}")
    if status == _NO_OUTPUT:
        raise wrote_nothing(evaluator)
    if status == _ENDLESS:
        raise endless(evaluator)
    if status in (_LATE, 137):
        raise late(evaluator)
    if status != 0:
        raise refused_status(evaluator, status, words)
    if len(answer) > FILE_BYTES:
        raise EvaluatorFailed(f"its answer is larger than {FILE_BYTES >> 20} MiB")
    return figures_in(answer, evaluator)


def _last(words: bytes) -> str:
    said = words.strip().split(b"\n")[-1].decode("utf-8", "replace")
    return f" ({said})" if said else ""
