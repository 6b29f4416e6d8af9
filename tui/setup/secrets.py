"""The step that gives a box the tokens its jobs need, and proves each by using it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tui.box.transport import LinkLost, Script
from tui.fleet.profile_schema import Facts
from tui.model.failure import Failure
from tui.model.setup import Asked
from tui.model.text import SafeText, safe
from tui.setup.asking import Prover
from tui.setup.beginning import profile_of
from tui.setup.proofs import BASES, Proof, proofs
from tui.setup.reaching import box_of, connected
from tui.setup.state import Did, Shown, State, Tell, Tools

FILE = "~/.rgt/secrets"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_RUN = SafeText(f"cat > {FILE}, mode 600; then one read call of each service")
_OFTEN = (
    "HF_TOKEN",
    "WANDB_API_KEY",
    "GITHUB_TOKEN",
    "KAGGLE_USERNAME",
    "KAGGLE_KEY",
    "MODELSCOPE_API_TOKEN",
)

# $1 file; its content comes on stdin. Then how large it is and who may read it.
_WRITE = r"""
umask 077
case $1 in '~/'*) f=$HOME/${1#??} ;; *) f=$1 ;; esac
mkdir -p -- "${f%/*}" && cat >"$f.part$$" && chmod 600 -- "$f.part$$" && mv -f -- "$f.part$$" "$f" || exit 3
ls -ln -- "$f" | awk '{ print $1, $5 }'
"""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Tokens that jobs need: by stdin, to the box's own disk, readable by nobody else, tried at once.

    Args:
        bases: where services answer, by the keys of `BASES`, where it is not there.
    """

    bases: Mapping[str, str] = field(default_factory=dict)

    async def ask(self, state: State, tools: Tools) -> Shown:
        there = " ".join(name for name in _OFTEN if tools.environ.get(name))
        hint = safe(f"names of variables of this shell{': ' if there else ''}{there}; Enter: none", 200)
        asked = Asked("text", SafeText("Which secrets shall the box have?"), hint)
        return Shown(_RUN, SafeText("readable by you alone, and it works"), asked)

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        names = answer.replace(",", " ").split()
        if not names:
            return Did(brief="none")
        values = _values(names, tools.environ)
        facts, instance = profile_of(state, tools).facts, box_of(state, tools)
        _own_home(facts)
        body = "".join(f"{name}={value}\n" for name, value in values.items()).encode()
        async with connected(instance, tools) as box:
            done = await box.run(Script(_WRITE, (FILE,), why="give the box its secrets"), stdin=body)
            mode, _, size = done.stdout.decode("ascii", "replace").strip().partition(" ")
            if done.exit != 0 or not mode.startswith("-rw-------") or size != str(len(body)):
                raise Failure(
                    f"{FILE} was not written as it should be on {instance.name}.", do="Look at its disk."
                )
            prover = Prover(box, FILE, values, facts.script.PY or "", facts.script.PROXY_HOOK or "")
            hub = {"hf": facts.script.HF_ENDPOINT} if facts.script.HF_ENDPOINT else {}
            tried = [
                await _told(prover, proof, tell) for proof in proofs(values, {**BASES, **hub, **self.bases})
            ]
        told = (f"{FILE}: {', '.join(values)}, mode 600", *tried)
        minded = sum(line.startswith("mind: ") for line in tried)
        brief = f"{len(values)} on the box" + (f", {minded} to mind" if minded else "")
        return Did(brief=brief, observed=told, data={"file": FILE})


async def _told(prover: Prover, proof: Proof, tell: Tell) -> str:
    """What came of one proof. The secret is on the box by now: that it can't be proven fails nothing."""
    names = ", ".join(proof.names)
    tell(safe(f"trying {names}", 200))
    try:
        return await prover.tell(proof)
    except (LinkLost, TimeoutError):
        return f"unknown: {names}: the box did not answer while it was tried"


def _values(names: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets of this shell. Raises Failure: one is not set, or can't stand in a file of lines."""
    values = {}
    for name in names:
        value = environ.get(name, "") if _NAME.match(name) else ""
        if not value or "\n" in value or "\r" in value:
            raise Failure(
                f"{safe(name, 60)} is not set in this shell, or is no one line.", means="Nothing was sent."
            )
        values[name] = value
    return values


def _own_home(facts: Facts) -> None:
    """A home that machines share would show the secrets to every one of them. Raises Failure."""
    shared = [tier for tier in facts.tiers if tier.scope not in ("instance", "machine")]
    if any(path.rstrip("/") in ("~", "/root", "$HOME") for tier in shared for path in tier.paths):
        raise Failure(
            f"The home folder is shared at {facts.title}; a secret there is on every machine.",
            means="Nothing was sent.",
            do="Name it in the job's secrets: it is then given to that run alone.",
        )
