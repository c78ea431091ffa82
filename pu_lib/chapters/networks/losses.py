"""The losses of the methods, as code for PyTorch.

In the code `f` are the actor's scores of a batch of states, one column for each action, and `q` are
the critic's values of all actions, detached. Names that end in `_old` are those of the first step
on a batch, detached. `eta` is the step size of DI and NPG. Logarithms of probabilities are computed
by `log_softmax`: in float32 a softmax is 0 for log-odds above 104, and its logarithm is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

from pu_lib.engine import networks as engine

__all__ = ["LOSSES", "Loss"]


@dataclass(frozen=True)
class Loss:
    """A method.

    Attributes
    ----------
    label : str
        The name in text and figures.
    code : str
        The loss, as text for PyTorch.
    steps : str
        The steps on a batch.
    """

    label: str
    code: str
    steps: str


SGD = "one step of SGD"
FIT = f"{engine.FIT_STEPS} steps of Adam at {engine.FIT_RATE:g}"


LOSSES: dict[str, Loss] = {
    "pg-sm": Loss(
        "PG-SM",
        "p = f.softmax(-1)\nloss = -(p * q).sum(-1).mean()",
        SGD,
    ),
    "pg-sm entropy": Loss(
        "PG-SM + entropy",
        "p, logp = f.softmax(-1), f.log_softmax(-1)\n"
        "entropy = -(p * logp).sum(-1)\n"
        "loss = -((p * q).sum(-1) + 0.01 * entropy).mean()",
        SGD,
    ),
    "ppo-like": Loss(
        "PPO-like",
        "p, logp = f.softmax(-1), f.log_softmax(-1)\n"
        "ratio = (logp - logp_old).exp()\n"
        "gain = torch.minimum(ratio * adv_old, ratio.clamp(0.8, 1.2) * adv_old)\n"
        "loss = -(p_old * gain).sum(-1).mean() + 0.01 * (p * logp).sum(-1).mean()",
        f"{engine.CLIP_STEPS} steps of Adam; the advantages divided by their standard deviation",
    ),
    "neurd": Loss(
        "NeuRD",
        "p = f.softmax(-1).detach()\n"
        "adv = q - (p * q).sum(-1, keepdim=True)\n"
        "loss = -(f * adv).sum(-1).mean()",
        SGD,
    ),
    "soft neurd": Loss(
        "soft NeuRD",
        "p, logp = f.softmax(-1).detach(), f.log_softmax(-1).detach()\n"
        "u = q - 0.01 * logp\n"
        "loss = -(f * (u - (p * u).sum(-1, keepdim=True))).sum(-1).mean()",
        SGD,
    ),
    "npg fit": Loss(
        "NPG, a fit",
        "target = f_old + eta * adv_old\n"
        "gap = (f - target) - (f - target).mean(-1, keepdim=True)\n"
        "loss = (gap ** 2).sum(-1).mean() / 2",
        FIT,
    ),
    "pg-es": Loss(
        "PG-ES",
        "p = f ** 2 / (f ** 2).sum(-1, keepdim=True)\nloss = -(p * q).sum(-1).mean()",
        SGD,
    ),
    "ce": Loss(
        "CE",
        "best = q.argmax(-1)\nloss = F.cross_entropy(f, best)",
        SGD,
    ),
    "mce": Loss(
        "MCE",
        "best, A = q.argmax(-1, keepdim=True), q.shape[-1]\n"
        "m = 1 - f.softmax(-1).detach().gather(-1, best)\n"
        "loss = -(m * (A * f.gather(-1, best) - f.sum(-1, keepdim=True)) / (A - 1)).mean()",
        SGD,
    ),
    "sce": Loss(
        "SCE",
        "p, best = f.softmax(-1).detach(), q.argmax(-1)\n"
        "out = (q >= (p * q).sum(-1, keepdim=True)) & (F.one_hot(best, q.shape[-1]) == 0)\n"
        "loss = F.cross_entropy(f.masked_fill(out, -torch.inf), best)",
        SGD,
    ),
    "di fit": Loss(
        "DI, a fit",
        "gap = f - (p_old + eta * q)\n"
        "gap, lost = gap - gap.mean(-1, keepdim=True), f.sum(-1) - 1\n"
        "loss = (gap ** 2).sum(-1).mean() / 2 + (lost ** 2).mean() / (2 * q.shape[-1])",
        f"{FIT}; the policy is the projection of the scores on the simplex",
    ),
    "greedy": Loss(
        "greedy",
        "# no actor: the policy is the critic's best action",
        "none",
    ),
}
"""The methods by their names in the table of runs."""
