"""Deletes what lives of past epochs have left behind, and nobody will ever ask for.

A slot that dies has stored snapshots that nobody knows of, a deletion may have failed while the store was
away, and a coordinator that takes a run over knows no more than the line at which it begins. All that stays
as garbage. So when an epoch begins, and only then (listing costs something per failure, not per batch),
everything in the store is looked at that lives of earlier epochs wrote, and what is not needed is deleted.
That is done once all slots are restored: each of them says which groups of rows it was restored from.

Why nothing is deleted that anybody needs, whoever sweeps and however late:

- The decision with which the epoch begins is durable BEFORE the sweep is asked for, and its author has won
  its number. Every later decision, of this coordinator or of any other, builds on it: its line consists of
  checkpoints that existed then, and of those of this epoch or later ones. Reports of earlier epochs do not
  count any more.
- So of earlier epochs only those checkpoints can ever be needed that are in the registry at that moment:
  they are named to the sweep, bases of deltas and groups included. Likewise of output: the rows that
  earlier epochs wrote are in manifests by now, or held by this decision.
- A coordinator that was replaced, and sweeps late, only deletes what was garbage when its own epoch began.
  Its successor has built on that epoch, or on a later one. What is written since bears a later epoch.
- A zombie of an earlier epoch may write while it is swept: what it writes later is for the next sweep.
"""

import re
from collections.abc import Callable, Collection

from snapline.engine.groups.content import SNAPSHOTS
from snapline.ids import Epoch
from snapline.storage.api import Store

_LIFE = re.compile(r".+\.e(\d+)\.i\d+")


def sweep_snapshots(
    store: Store,
    before: Epoch,
    needed: Collection[str],
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Delete the snapshots of all lives of epochs before this one, but for those of these names.

    It ends early if it `is_over`: what is left is for the next sweep.
    """
    for life in store.folders(SNAPSHOTS):
        if is_over():
            return
        found = _LIFE.fullmatch(life)
        if found is not None and int(found[1]) < before:
            store.clear(f"{SNAPSHOTS}/{life}", needed)
