"""Asks every adapter in turn; what a larger thing holds is not claimed again by a smaller one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tui.custody.layouts import deepspeed, hf_trainer, shards, single, ultralytics
from tui.custody.layouts.tree import Claim, Generation, Tree

_MOST_TEXTS = 500


def needed_texts(tree: Tree) -> list[str]:
    """The small files whose contents the adapters want, at most 500."""
    wanted = [*single.pointers(tree), *deepspeed.pointers(tree), *shards.indexes(tree)]
    return wanted[:_MOST_TEXTS]


def recognise(tree: Tree) -> list[Claim]:
    """The claims of all adapters, without overlaps."""
    claims: list[Claim] = []
    taken: set[str] = set()
    askers: tuple[Callable[[Tree], Claim | None], ...] = (
        ultralytics.claim,
        hf_trainer.claim,
        single.folders,
        deepspeed.claim,
        shards.claim,
    )
    for ask in askers:
        _add(claims, taken, ask(tree))
    _add(claims, taken, single.claim(tree, frozenset(taken)))
    return claims


def _add(claims: list[Claim], taken: set[str], claim: Claim | None) -> None:
    if claim is None:
        return
    inside = {one.name for before in claims for one in before.generations}
    free = tuple(_free(claim.generations, taken, inside))
    taken.update(path for one in free for path in one.files)
    claims.append(Claim(claim.layout, free, claim.required_missing, claim.refusals, claim.dangling))


def _free(generations: tuple[Generation, ...], taken: set[str], inside: set[str]) -> Iterator[Generation]:
    for one in generations:
        if not taken.isdisjoint(one.files) or one.name in inside:
            continue
        yield one
