"""The table of the guide and the rules of its chooser, which recommend an update for a situation.

Every recommendation is supported by numbers from `pu_lib.chapters.guide.quantities`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd

from pu_lib.chapters.guide.quantities import (
    STARTS,
    Numbers,
    equal_start,
    greedy_control,
    kept,
    ties,
)
from pu_lib.chapters.networks.learner import TASKS
from pu_lib.chapters.networks.quantities import step_sizes
from pu_lib.chapters.remedies.quantities import CHANGES
from pu_lib.claims.tables import Html, claim_link
from pu_lib.formatting import percent
from pu_lib.updates import label_of


@dataclass(frozen=True)
class Advice:
    """The recommendation for a situation, with the reason for it.

    Attributes
    ----------
    update : str
        The name of the update.
    title : str
        The situation, for the table.
    higher_is_better : bool
        Whether larger numbers are better.
    why : str
        The reason, as a sentence to be formatted. ``{own}`` is the number of the recommended
        update, ``{other}`` the best number of any other update, and ``{rival}`` the label of the
        update with that number. ``{pg}``, ``{ce}``, ``{mce}`` and ``{sce}`` are the numbers of
        PG-SM, CE, MCE and SCE. ``{greedy[0]}`` and ``{greedy[1]}`` are the median and the mean of
        the greedy control.
    scope : str
        The conditions of the measurement.
    link, page : str
        The page that contains the argument, and the title of this page.
    claims : tuple of str
        The claims on which the recommendation rests.
    loss, step_size, exploration : str
        The loss of the update, with its code between backticks, a step size to start from, and the
        exploration that it needs.
    instead : str
        The label of the recommendation, if it is not just the label of `update`.
    """

    update: str
    title: str
    higher_is_better: bool
    why: str
    scope: str
    link: str
    page: str
    claims: tuple[str, ...]
    loss: str
    step_size: str
    exploration: str
    instead: str = ""

    @property
    def use(self) -> str:
        """The label of the recommendation."""
        return self.instead or label_of(self.update)

    def sentence(self, numbers: Numbers, means: Numbers, greedy: Sequence[float]) -> str:
        """Return the reason with the given numbers and means, and those of the greedy control."""
        others = {name: value for name, value in numbers.items() if name != self.update}
        rival = (max if self.higher_is_better else min)(others, key=others.__getitem__)
        return self.why.format(
            own=self._plain(numbers[self.update]),
            other=self._plain(others[rival]),
            rival=label_of(rival),
            pg=self._plain(numbers["pg-sm"]),
            greedy=[self._plain(value) for value in greedy],
            mean={name: self._plain(value) for name, value in means.items()},
            **{
                name: self._plain(numbers[name]) for name in ("ce", "mce", "sce") if name in numbers
            },
        )

    def _plain(self, value: float) -> str:
        """Format shares in percent, counts as integers, and small numbers in millionths."""
        if self.higher_is_better:
            return percent(value, 1).replace("-", "\N{MINUS SIGN}")
        if value and abs(value) < 1e-4:
            return f"{value * 1e6:.2g} millionths"
        return f"{value:.2g}" if abs(value) < 10 and value != int(value) else f"{value:.0f}"


CE = "`loss = F.cross_entropy(f, q.argmax(-1))`"
DI = "`pi = project_simplex(pi + w * q)`"

ADVICE = {
    "exact": Advice(
        "di",
        "a table, exact values",
        False,
        "On a ladder of states that change their mind in turn it takes {own} updates, {rival} "
        "{other} and PG-SM {pg}.",
        "At the weight 40 for all. At a hundred times that CE takes as few.",
        "literature.html",
        "The literature around the paper, checked",
        ("guide:exact", "lit:li2021/ladder"),
        DI,
        "40 times the visits of a state, or more, with values up to 1",
        "none",
    ),
    "sampled": Advice(
        "pg-sm",
        "samples of the action taken",
        True,
        "At the weight 1 it finds the best of four arms in {own} of its runs; the next best, "
        "{rival}, in {other}.",
        "On a bandit with fixed, positive rewards and without a baseline; not measured with a "
        "model. At a tenth of this weight PG-ES is as good, at a thirtieth DI is. With the average "
        "of past rewards as a baseline, NPG is as good at the weights 0.3 and below: with one, as "
        "in PPO and GRPO, this is no reason to prefer PG-SM.",
        "stochastic-updates.html",
        "Stochastic or expected updates",
        ("guide:sampled", "sec:expected/necessary", "lit:mei2024/any-rate"),
        "`loss = -(adv * logp).mean()`, with the advantage and log π of the action taken",
        "constant, 1 or less with rewards up to 1",
        "its own, as the policy is random",
    ),
    "sampled-changing": Advice(
        "ce",
        "samples of the action taken, and values that change",
        False,
        "With values for each action, learned from eight samples per step, CE undoes a hundred "
        "steps in {own}, {rival} in {other} and PG-SM in {pg}; after a thousand steps CE takes 7 "
        "and PG-SM 1054, both from a regret of 0.0005. If the bad action turns good, CE takes 31 "
        "and 39. From the policy 0.9995 CE and GRPO then take the same time with random actions "
        "and no ratio of the policies, and without random actions GRPO is first, in 454 steps for "
        "4258.",
        "With two actions, a table, rewards without noise and the weight 1; medians of 100 runs, "
        "and of 400 from the policy 0.9995. Nothing was measured for the tokens of a language "
        "model.",
        "more-on-guide.html",
        "Evidence for the guide",
        ("guide:sampled-changing", "guide:equal-start", "remedies:samples"),
        f"{CE}, with `q[a] += 0.1 * (r - q[a])` for the action taken",
        "1 with values up to 1",
        "5 % of random actions",
        instead="CE on values learned for each action",
    ),
    "off-policy": Advice(
        "di",
        "a table, data of another policy",
        False,
        "On Random MDPs its median run takes {own} steps at its best rate, {rival} {other}, "
        "PG-SM {pg} and CE {ce}. By the restricted mean CE overtakes PG-SM: DI takes "
        "{mean[di]}, CE {mean[ce]}, PG-SM {mean[pg-sm]}.",
        "In our runs of the paper's experiments, without the factor of PG-ES: replay beside a "
        "policy that explores, not fixed logs. On the chain and the "
        "cliff with exploration no update beats acting greedily, the limit of large step sizes.",
        "empirical.html",
        "The experiments",
        ("guide:off-policy", "sec:randommdps/di-best", "sec:randommdps/hioffpol-helps"),
        DI,
        "here from 0.1 (by the mean) to 10 (by the median), with values up to 1; tune it",
        "the data of the other policy",
    ),
    "changing": Advice(
        "di",
        "a table, exact values that change",
        False,
        "It undoes a hundred updates in {own}, {rival} in {other}, PG-SM in {pg}. From the same "
        "policy, with the probability 0.999 of the action that is no longer best, DI takes 1, "
        "CE 4, NPG 7 and PG-SM 510.",
        "With two actions, at the weight 1 for all. At the weight 10 CE and MCE need one, too.",
        "unlearning.html",
        "Unlearning",
        ("guide:changing", "thm:unlearn/ii", "thm:unlearn/iii", "remedies:silence"),
        f"{DI}; with scores CE, {CE}",
        "1 or more with a gap of 1",
        "needed if a bad action may turn good",
    ),
    "linear": Advice(
        "di",
        "linear scores, exact values",
        True,
        "A fit of the values closes {own} of the gap to the optimum after a reversal of the "
        "values, as DI before the projection, with growing weights, and as NPG with constant ones. "
        "By the chain rule MCE closes {mce}, SCE {sce} and CE {ce}.",
        "On the contexts, a bandit with discount 0, whose exact values the model can represent: a "
        "fit of known values is compared with the chain rule, not DI with NPG. Each but DI is at "
        "the best of the weights 0.3, 1 and 3.",
        "function-approximation.html",
        "Function approximation",
        ("guide:linear", "book:fitted-di", "after:compatible"),
        "DI: `loss = ((f - pi - w * q) ** 2).mean()`, then `pi = project_simplex(f)`; "
        "NPG: least squares in the advantages",
        "DI 0.5, and in each step after the reversal 1.2 times as much; NPG 3, the largest tried",
        "none",
        instead="DI or NPG, fitted to the values",
    ),
    "network": Advice(
        "npg",
        "a network, exact values",
        True,
        "After a reversal of the values NPG closes {own} of the gap to the optimum. By the chain "
        "rule SCE closes {sce}, CE {ce}, MCE {mce} and PG-SM {pg}.",
        "On the contexts, with a network of 16 hidden units, each at the best of the weights 0.3, "
        "1 and 3. NPG's least squares are in all parameters at each step, and may fail at the "
        "weight 3. In eight of eight networks CE and SCE end nearer to the optimum than MCE; which "
        "of the two is ahead depends on the network. DI was not tried.",
        "function-approximation.html",
        "Function approximation",
        ("guide:network", "sec:deepimpl/ce-mce", "sec:deepimpl/chain-rule"),
        f"{CE}; NPG: damped least squares in the advantages",
        "CE and SCE 3, the largest tried; NPG 1",
        "none",
        instead="CE, or NPG if its fit is affordable",
    ),
    "critic": Advice(
        "sce",
        "a network, samples and a learned critic",
        False,
        "On a grid whose goals change places after the longest training, with SGD, greedy's median "
        "run recovers in {greedy[0]} updates, SCE's in {own}, CE's in {ce}, and PG-SM's in {pg} or "
        "more; by the mean greedy takes {greedy[1]}, SCE {mean[sce]}, CE {mean[ce]}, PG-SM "
        "{mean[pg-sm]} or more. With Adam no actor was demonstrably sooner than greedy.",
        "With two small networks, SGD, a critic of all actions and one abrupt swap, ten runs. "
        "Which of CE, SCE, DI and greedy is best was not shown. A bonus of 0.01 on PG-SM is not "
        "enough, except on CartPole; the PPO-like loss is not flat on any task. MCE did not keep "
        "what it had learned on the "
        "grid.",
        "networks.html",
        "Networks, samples and learned critics",
        (
            "networks:default",
            "networks:pairs",
            "networks:flat",
            "networks:ratio",
            "networks:lag",
            "networks:soft-neurd",
            "networks:entropy",
            "networks:mce",
            "networks:others",
        ),
        f"{CE}; greedy needs none",
        "SGD, tuned before the change: on the 7 × 7 grid, with rewards up to 1, CE {ce}, SCE "
        "{sce}, soft NeuRD {soft neurd}",
        "a lasting share of random actions, {epsilon}",
        instead="greedy, or CE if you need a policy",
    ),
    "many": Advice(
        "di",
        "a table, many actions",
        False,
        "With a hundred actions it takes {own} updates, {rival} {other} and PG-SM {pg}.",
        "With exact values, a gap of 0.1 and the weight 1 for all. At the weight 10 DI, CE and MCE "
        "take one. Each step of DI sorts the actions.",
        "gravity-well.html",
        "Gravity well",
        ("guide:many", "sec:gravity/escape"),
        DI,
        "10 with values up to 1",
        "none",
    ),
    "ties": Advice(
        "npg",
        "a table, near ties",
        False,
        "Where two actions are best in turn, by a millionth, the policy of CE moves by {ce}, "
        "that of MCE by {mce}, that of SCE by {sce}; with the others it moves by {own} to {pg}.",
        "With exact values and weight 1. The order among those others says nothing. With a network "
        "SCE or soft NeuRD: not measured.",
        "updates.html",
        "Families of policy updates",
        ("guide:ties", "sec:expected/gaps"),
        f"NPG: `theta += w * q` under softmax; DI: {DI}",
        "1; if it has to be CE, 0.01, where it moves by {small}",
        "none",
        instead="any but CE and MCE",
    ),
}
"""The recommendations, by the situations of `pu_lib.chapters.guide.quantities.MEASURES`."""

QUESTIONS = (
    (
        "values",
        "What is known of the values?",
        (
            ("all", "the values of all actions"),
            ("taken", "a sample of the action taken"),
            ("critic", "a critic of all actions, learned from samples"),
        ),
    ),
    (
        "policy",
        "What is the policy?",
        (("table", "a table"), ("linear", "a linear model"), ("network", "a network")),
    ),
    (
        "need",
        "What is hard about it?",
        (
            ("exact", "nothing in particular"),
            ("off-policy", "the data come from another policy"),
            ("changing", "the values change"),
            ("many", "there are many actions"),
            ("ties", "there are ties, or nearly"),
        ),
    ),
)

RULES: tuple[tuple[tuple[str | None, ...], str], ...] = (
    (("taken", None, "changing"), "sampled-changing"),
    (("taken", None, None), "sampled"),
    (("critic", "table", "changing"), "sampled-changing"),
    (("critic", "network", None), "critic"),
    ((None, "linear", None), "linear"),
    ((None, "network", None), "network"),
    *(((None, None, key), key) for key, _ in QUESTIONS[2][2]),
)
"""The answers and the situation of each rule; None matches any answer, and the first rule wins."""


def choose(values: str, policy: str, need: str) -> str:
    """Return the situation, a key of `ADVICE`, for the answers to the three `QUESTIONS`."""
    answers = (values, policy, need)
    return next(
        situation
        for conditions, situation in RULES
        if all(want in (None, answer) for want, answer in zip(conditions, answers, strict=True))
    )


def recommendation_texts() -> dict[str, dict[str, str]]:
    """Return the texts of each recommendation, with the committed numbers, by situation."""
    numbers, control = kept(), greedy_control()
    chosen = {
        name: f"{step_sizes('grid', name)['phase 1']:g}" for name in ("ce", "sce", "soft neurd")
    }
    chosen["epsilon"] = f"{TASKS['grid'].exploration:g}"
    chosen["small"] = percent(ties(weight=0.01, names=["ce"])["ce"], 2)
    return {
        situation: {
            "update": f"{advice.use[0].upper()}{advice.use[1:]}.",
            "why": advice.sentence(
                numbers[situation],
                numbers.get(f"{situation}, mean", {}),
                control.get(situation, ()),
            ),
            "scope": advice.scope,
            "loss": advice.loss.replace("`", ""),
            "step size": advice.step_size.format(**chosen),
            "exploration": advice.exploration.format(**chosen),
            "link": advice.link,
            "page": advice.page,
        }
        for situation, advice in ADVICE.items()
    }


def _with_code(text: str) -> str:
    """Return text as HTML, with text between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def recommendations() -> Html:
    """Return an HTML table of the recommendations and their evidence, one row per situation."""
    control = greedy_control()

    def line(key: str, text: dict[str, str]) -> str:
        advice = ADVICE[key]
        greedy = "none run"
        if key in control:
            greedy = "median {:.0f}, mean {:.0f}".format(*control[key])
        facts = {
            "Use": f"<strong>{html.escape(text['update'].rstrip('.'))}</strong>: "
            f"{_with_code(advice.loss)}",
            "Step size": html.escape(text["step size"]),
            "Exploration": html.escape(text["exploration"]),
            "Evidence": f"{html.escape(text['why'])} "
            f"Explained in <a href='{text['link']}'>{html.escape(text['page'])}</a>",
            "Its limit": html.escape(text["scope"]),
            "Greedy": greedy,
            "<a href='#all-numbers'>Numbers</a>": ", ".join(map(claim_link, advice.claims)),
        }
        pairs = "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts.items())
        return f"<tr><th scope='row'>{html.escape(advice.title)}</th><td><dl>{pairs}</dl></td></tr>"

    rows = "".join(line(key, text) for key, text in recommendation_texts().items())
    head = "".join(f"<th scope='col'>{name}</th>" for name in ("Situation", "What to use, and why"))
    return Html(
        f"<table class='ledger advice'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def equal_table() -> pd.DataFrame:
    """Return the medians of `equal_start` with their intervals and the regrets at the change."""
    columns = (
        ("GRPO", "any change", "swap"),
        ("without deviation", "swap", "swap"),
        ("without deviation", "one value", "good turns bad"),
        *(("CE", change, change) for change in CHANGES),
    )
    kinds = {"none": (0.0, False), "5 %": (0.05, False), "5 %, ratio": (0.05, True)}
    rows: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for start, (label, (exploration, ratio)) in product(STARTS, kinds.items()):
        row = rows[start, label] = {}
        for name, heading, change in columns:
            if ratio and name == "CE":
                row[name, heading] = ""
                continue
            median = equal_start(name, start, change, exploration, ratio)
            row[name, heading] = f"{median} at {median.regret:.0e}"
    return pd.DataFrame(rows).T
