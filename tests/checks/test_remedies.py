"""Test steps, counts, integrals and runs of the remedies against hand solutions and mpmath."""

import math

import mpmath
import numpy as np
import pytest

from pu_lib.chapters.remedies import figures
from pu_lib.chapters.remedies import quantities as remedies
from pu_lib.chapters.remedies.quantities import Remedy, SampledRemedy, count_after, outcomes
from pu_lib.updates import UPDATES


def one_step(remedy, policy, values):
    learner = remedy.start(policy)
    before = list(learner.theta)
    learner.step(values)
    return np.subtract(learner.theta, before)


def gradient(loss, theta):
    """Return the gradient of a loss by central differences with 50 digits."""
    slopes, h = [], mpmath.mpf("1e-20")
    for a in range(len(theta)):
        up, down = list(theta), list(theta)
        up[a] += h
        down[a] -= h
        slopes.append(float((loss(up) - loss(down)) / (2 * h)))
    return slopes


def policy_of(theta):
    total = sum(mpmath.e**x for x in theta)
    return [mpmath.e**x / total for x in theta]


POLICY, VALUES, REFERENCE = [0.7, 0.2, 0.1], [0.3, 1.0, -0.5], [0.6, 0.2, 0.2]


@pytest.mark.parametrize(
    ("remedy", "bonus"),
    [
        (Remedy(), lambda pi: 0),
        (Remedy(entropy=0.3), lambda pi: -0.3 * sum(p * mpmath.log(p) for p in pi)),
        (
            Remedy(penalty=0.3, reference=0.6),
            lambda pi: (
                -0.3 * sum(p * mpmath.log(p / r) for p, r in zip(pi, REFERENCE, strict=True))
            ),
        ),
        (  # the expected gradient of the estimator is that of the reverse divergence
            Remedy(penalty=0.3, reference=0.6, estimator=True),
            lambda pi: (
                -0.3 * sum(r * mpmath.log(r / p) for p, r in zip(pi, REFERENCE, strict=True))
            ),
        ),
    ],
)
def test_steps_are_gradients(remedy, bonus):
    with mpmath.workdps(50):

        def objective(theta):
            pi = policy_of(theta)
            return sum(p * q for p, q in zip(pi, VALUES, strict=True)) + bonus(pi)

        expected = gradient(objective, [mpmath.log(p) for p in POLICY])
    np.testing.assert_allclose(one_step(remedy, POLICY, VALUES), expected, rtol=1e-12)


def test_later_epochs_weight_grpos_penalty_by_the_policy_that_sampled():
    """The second epoch averages the gradient of ρ - 1 - log ρ over samples of the first policy."""
    penalty = {"penalty": 0.3, "reference": 0.6, "estimator": True}
    first = one_step(Remedy(**penalty), POLICY, VALUES)
    with mpmath.workdps(50):

        def objective(theta):
            pi = policy_of(theta)
            ratios = [r / p for p, r in zip(pi, REFERENCE, strict=True)]
            return sum(
                p * q - 0.3 * o * (x - 1 - mpmath.log(x))
                for p, q, o, x in zip(pi, VALUES, POLICY, ratios, strict=True)
            )

        start = [mpmath.log(p) for p in POLICY]
        second = gradient(objective, [x + g for x, g in zip(start, first, strict=True)])
    np.testing.assert_allclose(
        one_step(Remedy(**penalty, epochs=2), POLICY, VALUES) - first, second, rtol=1e-10
    )


def test_normalised_step_by_hand():
    """The step is ±(4/25)/(2/5), since the values have the standard deviation 2/5."""
    step = one_step(Remedy(normalised=True), [0.8, 0.2], [1.0, 0.0])
    np.testing.assert_allclose(step, [0.4, -0.4], rtol=1e-14)


def test_first_step_of_adam_has_the_step_size():
    step = one_step(Remedy(adam=0.1), [0.8, 0.2], [1.0, 0.0])
    np.testing.assert_allclose(step, [0.1, -0.1], rtol=1e-6)


def test_settled_adam_amplifies_rounding_errors():
    """Changes of 1e-15 grow to changes of 1e-4, because the averages of squares vanish."""
    remedy = Remedy(entropy=0.01, penalty=0.1, epochs=4, clip=0.2, adam=0.01, decay=0.001)
    seen, rng = [], np.random.default_rng(0)
    for size in (0.0, 1e-15):
        learner = remedy.start([0.5, 0.5])
        for _ in range(5000):
            learner.step([0.5, 0.0])
            learner.theta[0] *= 1 + size * rng.uniform(-1, 1)
        seen.append(learner.policy()[1])
    assert abs(seen[1] / seen[0] - 1) > 1e-6


def test_spma_by_hand():
    """The step multiplies the probabilities 1/4 and 3/4 by 11/8 and 7/8."""
    learner = Remedy("spma", weight=0.5).start([0.25, 0.75])
    learner.step([1.0, 0.0])
    np.testing.assert_allclose(learner.policy(), [11 / 32, 21 / 32], rtol=1e-14)


def test_clipped_epoch_by_hand():
    """The second epoch clips the ratio of the second action, but not that of the first action."""
    step = one_step(Remedy(epochs=2, clip=0.9, weight=100.0), [0.99, 0.01], [0.0, 1.0])
    d = math.log(99) - 2 * 100 * 0.99 * 0.01
    p = 1 / (1 + math.exp(d))  # above 1.9 * 0.01, so only the first action's term is left
    slope = -(1 - p) * 0.01 * p
    assert p > 0.019
    np.testing.assert_allclose(step, [-0.99 + 100 * slope, 0.99 - 100 * slope], rtol=1e-12)


@pytest.mark.parametrize("name", ["pg-sm", "ce", "mce", "sce", "di", "npg"])
def test_plain_remedies_are_the_librarys_updates(name):
    theta = UPDATES[name].parameters(POLICY)
    expected = UPDATES[name].policy(UPDATES[name].step(theta, VALUES, 0.7))
    learner = Remedy(name, weight=0.7).start(POLICY)
    learner.step(VALUES)
    np.testing.assert_allclose(learner.policy(), expected, rtol=1e-13)


def test_critic_by_hand():
    learner = Remedy(critic=0.5, sampled=True, exploration=0.4).start([0.75, 0.25], [1.0, 0.0])
    learner.step([0.0, 1.0])
    np.testing.assert_allclose(learner.q, [1 - 0.5 * 0.65, 0.5 * 0.35], rtol=1e-15)


COUNTS = {
    "PG-SM": (12, 104, 1007),
    "+ entropy 0.1": (9, 48, 269),
    "+ KL to uniform 0.1": (9, 48, 269),
    "+ KL to (0.9, 0.1) 0.1": (13, 73, 441),
    "+ k3 in the loss 0.04": (10, 22, 22),
    "+ weight decay 0.001": (12, 73, 129),
    "normalised advantages": (12, 104, 1007),
    "10 epochs, clipped": (11, 102, 1002),
    "critic 0.01": (23, 172, 1105),
    "SPMA, weight 0.5": (16, 169, 1708),
    "soft NPG 0.1": (5, 7, 7),
    "CE": (2, 3, 4),
    "DI, critic 0.01": (23, 63, 83),
}
"""Counts of an independent program with NumPy arrays."""


@pytest.mark.parametrize("label", COUNTS)
def test_counts(label):
    results = outcomes(remedies.REMEDIES[label], (10, 100, 1000))
    assert tuple(x.count for x in results) == COUNTS[label]


@pytest.mark.parametrize(
    ("remedy", "counts"),
    [
        (Remedy(), (15, 107)),
        (Remedy(entropy=0.2), (11, 28)),
        (Remedy(penalty=0.01, estimator=True), (14, 61)),
        (Remedy("ce"), (3, 4)),
        (Remedy("di"), (1, 1)),
    ],
)
def test_three_actions(remedy, counts):
    results = outcomes(remedy, (10, 100), remedies.THREE)
    assert tuple(x.count for x in results) == counts


@pytest.mark.parametrize(("tau", "odds"), [(0.1, 10), (0.2, 5), (0.01, 30)])
def test_entropy_time_with_mpmath(tau, odds):
    expected = mpmath.quad(lambda x: (1 + mpmath.cosh(x)) / (1 + tau * x), [0, odds / 2, odds])
    assert float(remedies.entropy_time(tau, odds)) == pytest.approx(float(expected), rel=1e-12)


def test_penalty_time_in_closed_form_and_with_mpmath():
    beta, odds = 0.04, 3.0
    expected = mpmath.quad(lambda x: (1 + mpmath.cosh(x)) / (1 + beta * mpmath.sinh(x)), [0, odds])
    assert float(remedies.penalty_time(beta, odds)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("decay", [0.5, 0.01, 1e-30])
def test_root_and_time_of_decay_with_mpmath(decay):
    """The expected values use 2 cosh²(D/2) instead of 1 + cosh D and integrate over D - x."""
    with mpmath.workdps(30):
        small, guess = mpmath.mpf(decay), mpmath.lambertw(2 / mpmath.mpf(decay)).real
        odds = mpmath.findroot(lambda d: mpmath.log(2 * small * d * mpmath.cosh(d / 2) ** 2), guess)
        expected = mpmath.quad(
            lambda s: 1 / (1 / (2 * mpmath.cosh((odds - s) / 2) ** 2) + small * (odds - s)),
            mpmath.linspace(0, odds, 20),
        )
    root = remedies.fixed_odds("decay", decay)
    assert float(root) == pytest.approx(float(odds), rel=1e-14)
    assert float(root.rad()) < 1e-12
    time = remedies.decay_time(decay, root, 0.5)
    assert float(time) == pytest.approx(2 * float(expected), rel=1e-10)


def test_fixed_odds_of_decay_by_hand():
    """The root is log 3 if the decay is 3/(8 log 3), since cosh(log 3) = 5/3."""
    root = remedies.fixed_odds("decay", 3 / (8 * math.log(3)))
    assert float(root) == pytest.approx(math.log(3), rel=1e-14)
    [late] = outcomes(Remedy(decay=3 / (8 * math.log(3))), [200])
    assert late.regret == pytest.approx(0.25, rel=1e-12)


def test_normalised_threshold_is_the_inverse_of_the_laplace_limit():
    assert float(remedies.normalised_threshold()) == pytest.approx(
        1 / 0.6627434193491816, rel=1e-13
    )


def test_soft_npg_by_hand():
    """The count is log 2 / -log 0.9 = 6.58 rounded up."""
    assert remedies.soft_npg_count(0.1) == 7
    assert count_after(Remedy("npg", entropy=0.1), 500) == 7


def test_chance_of_no_sample_by_hand():
    expected = math.prod(1 - 1 / (1 + 9 * math.exp(0.5 * t)) for t in range(200)) ** 2
    assert remedies.no_sample(math.log(9), 0.5, 2) == pytest.approx(expected, rel=1e-10)


def test_sampled_groups_by_hand():
    """Groups of one sample have no advantage, so nothing changes."""
    counts = remedies.sampled_counts(
        SampledRemedy("group", group=1), "swap", probability=0.9, n_runs=3, most=50
    )
    assert np.isinf(counts).all()


class Given(np.random.Generator):
    """A generator that returns given binomial numbers."""

    numbers = (6, 8, 2)

    def __init__(self):
        super().__init__(np.random.PCG64(0))
        self.left = list(self.numbers)

    def binomial(self, n, p):
        return np.full(len(p), self.left.pop(0))


@pytest.mark.parametrize("divided", [False, True])
def test_sampled_group_by_its_rewards(divided):
    """Two steps that use the mean and the deviation of eight rewards are undone by one step."""
    odds = 0.0
    for taken in Given.numbers[:2]:
        rewards = np.repeat([1.0, 0.0], [taken, 8 - taken])
        scores = np.repeat([1.0, -1.0], [taken, 8 - taken])  # derivatives of the log-odds
        advantages = rewards - rewards.mean()
        if divided and rewards.std() > 0:
            advantages = advantages / rewards.std()
        odds += float((advantages * scores).mean())
    remedy = SampledRemedy("group", normalised=divided)
    regrets, counts = remedies.sampled_outcomes(remedy, "swap", 2, n_runs=2, most=1, seed=Given())
    assert counts.tolist() == [1, 1]  # two rewards of eight undo six of eight
    np.testing.assert_allclose(regrets, 1 / (1 + math.exp(odds)), rtol=1e-14)


def test_sampled_direct_update_is_stuck_at_its_vertex():
    stuck = remedies.sampled_counts(SampledRemedy("di"), "bad turns good", 100, n_runs=20)
    free = remedies.sampled_counts(
        SampledRemedy("di", exploration=0.05), "bad turns good", 100, n_runs=20
    )
    assert np.isinf(stuck).all()
    assert free.max() < 500


@pytest.mark.parametrize("n_runs", [1, 20])
def test_sampled_direct_update_hears_that_the_good_turns_bad(n_runs):
    """The estimated value of the first action falls below 1/2 after about seven samples."""
    back = remedies.sampled_counts(SampledRemedy("di"), "good turns bad", 100, n_runs=n_runs)
    assert back.max() < 20


@pytest.mark.parametrize(
    "wrong", [{"update": "nope"}, {"update": "ce", "adam": 0.1}, {"update": "npg", "clip": 0.2}]
)
def test_impossible_remedies_raise(wrong):
    with pytest.raises(ValueError, match=r"unknown update|does not allow"):
        Remedy(**wrong)


@pytest.mark.parametrize(("beta", "counts"), [(0.04, (10, 36)), (0.001, (12, 668))])
def test_normalised_with_the_penalty_by_its_log_odds(beta, counts):
    """A step changes the log-odds d by w / cosh(d/2), and the penalty changes d by β tanh(d/2)."""
    for n, count in zip((10, 1000), counts, strict=True):
        d, steps = 0.0, 0
        for _ in range(n):
            d += 1 / math.cosh(d / 2) - beta * math.tanh(d / 2)
        while d > 1e-11:
            d -= 1 / math.cosh(d / 2) + beta * math.tanh(d / 2)
            steps += 1
        remedy = Remedy(normalised=True, penalty=beta, estimator=True)
        assert count_after(remedy, n) == steps == count


def test_table_has_the_product_of_count_and_regret(monkeypatch):
    monkeypatch.setattr(remedies, "REMEDIES", {"PG-SM": Remedy()})
    row = figures.styled_table().loc["PG-SM"]
    assert row["regret at 1000"] == "5.0e-04"
    assert row["count × regret"] == f"{1007 * outcomes(Remedy(), [1000])[0].regret:.1e}"
