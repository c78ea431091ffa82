"""The chooser of the guide, which recommends an update for the reader's situation."""

from __future__ import annotations

import traitlets

from pu_lib.chapters.guide.figures import QUESTIONS, RULES, recommendation_texts
from pu_lib.explorers.base import HERE, Kept, module

__all__ = ["Chooser"]


class Chooser(Kept):
    """Three questions and the recommendation for the reader's answers.

    Attributes
    ----------
    values, policy, need : str
        The answers, as the arguments of `pu_lib.chapters.guide.figures.choose`.
    """

    _esm = module("chooser")
    _css = HERE / "live.css"

    values = traitlets.Enum([key for key, _ in QUESTIONS[0][2]], "all").tag(sync=True)
    policy = traitlets.Enum([key for key, _ in QUESTIONS[1][2]], "table").tag(sync=True)
    need = traitlets.Enum([key for key, _ in QUESTIONS[2][2]], "exact").tag(sync=True)
    questions = traitlets.List(
        [[key, label, [list(option) for option in options]] for key, label, options in QUESTIONS],
        read_only=True,
    ).tag(sync=True)
    rules = traitlets.List(
        [[list(conditions), situation] for conditions, situation in RULES], read_only=True
    ).tag(sync=True)
    advice = traitlets.Dict(read_only=True).tag(sync=True)

    @traitlets.default("advice")
    def _kept_advice(self) -> dict[str, dict[str, str]]:
        """Return the texts of the recommendations."""
        return recommendation_texts()
