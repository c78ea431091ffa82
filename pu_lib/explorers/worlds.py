"""The figure in which readers draw a process, and the worlds that it offers."""

from __future__ import annotations

import traitlets

from pu_lib.domains import chain, cliff, random_mdp
from pu_lib.explorers.base import Live, module, numbered
from pu_lib.explorers.controls import constant, some_of
from pu_lib.updates import UPDATES, softmax

__all__ = ["PRESETS", "BuildWorld"]

_SHOWN = "pg-sm,di,ce"
"""The updates that a world starts with: one that is slow and two that are fast, side by side."""
_WHY = "The+steps+of+DI+keep+their+length+as+a+choice+gets+certain,+and+those+of+the+others+shrink."
_WELL = ",".join(map(repr, softmax([1.0, 3.0, 5.0]).tolist()))


def _domino(n_states: int = 8, discount: float = 0.9) -> str:
    """Return a row of states in which stopping is better until the next state goes on.

    Going on pays 1 at the end of the row. Stopping in a state pays what going on is worth if the
    later states go on with probability 0.8.
    """
    going = 0.8
    worth, pays = 1.0, [0.0] * (2 * n_states)
    for state in reversed(range(n_states)):
        pays[2 * state] = round(0.95 * worth if state == n_states - 1 else worth, 4)
        pays[2 * state + 1] = 1.0 if state == n_states - 1 else 0.0
        worth = discount * (going * worth + (1 - going) * pays[2 * state])
    moves = "_".join(f"{n_states}_{state + 1}" for state in range(n_states))
    paid = ",".join(f"{place}*{value:g}" for place, value in enumerate(pays) if value)
    return (
        f"world=1&graph={n_states + 1}*2&move={moves}__&pay={paid}&start=0&end={n_states}"
        f"&actions=stop,go+on&discount={discount}"
    )


PRESETS: dict[str, str] = {
    "A reward that moves": (
        "world=1&grid=....G/.x.x./S...T/.x.x./....G&slip=0.1&pay=4*1,14*-1&discount=0.9"
        f"&run={_SHOWN}&eta=1&share=0.5&steps=160&then=60*4*0,60*24*1"
        "&ask=After+60+steps+the+goal+moves+to+the+other+corner.+Which+update+is+back+first?"
        f"&why={_WHY}"
    ),
    "The jumper": (
        f"{chain(10).to_world()}&actions=jump,walk&run={_SHOWN}&steps=640"
        "&ask=Jumping+pays+at+once,+walking+pays+more.+Which+update+is+the+first+at+95+%25?"
        f"&why={_WHY}"
    ),
    "The trap next to the prize": (
        f"world=1&graph=2*3&move=1_1_1___&pay=0*1,1*0.9,2*0.1&start=0&end=1&discount=0"
        f"&actions=prize,trap,nothing&run={_SHOWN}&eta=0.4&share=1&from={_WELL}&steps=200"
        "&ask=The+trap+pays+0.9,+the+prize+1.+Which+update+is+the+last+at+95+%25?"
        "&answer=last&why=PG-SM+first+moves+towards+the+trap,+which+is+likely+and+pays+almost+as+much."
    ),
    "The cliff": f"{cliff(7).to_world()}&actions=jump,walk,fall&run={_SHOWN}&steps=400",
    "A random MDP": f"{random_mdp(3, 12, 3).to_world()}&run={_SHOWN}&share=0.5&steps=300",
    "A row of dominoes": f"{_domino()}&run={_SHOWN}&share=0&eta=1&steps=400",
    "FrozenLake 4 × 4": (
        "world=1&grid=S.../.T.T/...T/T..G&slip=0.6666666666666666&pay=15*1&discount=0.99"
        f"&run={_SHOWN}&share=0.5&steps=300"
    ),
    "An empty grid": "world=1&grid=...../...../...../...../S...G&pay=24*1&discount=0.9",
}
"""The worlds of the figure, as texts after # in an address; the first one is shown at the start."""


class BuildWorld(Live):
    """A process that the reader draws, learnt by the updates side by side.

    Attributes
    ----------
    world : str
        The process and its run, as the text after # in the page's address; `FiniteMDP.to_world`
        returns it for a process of your own. Actions of the reader change it.
    """

    kept = constant({})  # `world` is in the address as a whole
    _esm = module("plot", "world", "world_picture", "graph_board", "build_world")

    updates = some_of(UPDATES, least=1)
    presets = constant([list(item) for item in PRESETS.items()])
    world = traitlets.Unicode(next(iter(PRESETS.values()))).tag(sync=True)

    @traitlets.default("address")
    def _name(self) -> str:
        """Return the name with which the text of a world begins."""
        return numbered("world")
