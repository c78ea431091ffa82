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


# The numbers of the guide and of the page, by programs of a few lines that follow the log-odds


def sigmoid(d):
    return 1 / (1 + math.exp(-d)) if d > 0 else math.exp(d) / (1 + math.exp(d))


def entropy_of(d):
    p, q = sigmoid(d), sigmoid(-d)
    return -p * math.log(p) - q * math.log(q)


def pg(d, sign):
    return sign * 2 * sigmoid(d) * sigmoid(-d)


def normalised(d, sign):
    return sign * 2 * math.sqrt(sigmoid(d) * sigmoid(-d))


def bonus(d, tau):
    return -2 * tau * sigmoid(d) * sigmoid(-d) * d


def k3_pull(d, beta, odds=0.0, cap=math.inf):
    """Return the mean of the gradient of k3 over the two actions, as samples of the policy."""
    total = 0.0
    for p, r, score in (
        (sigmoid(d), sigmoid(odds), 2 * sigmoid(-d)),
        (sigmoid(-d), sigmoid(-odds), -2 * sigmoid(d)),
    ):
        rho = r / p
        if rho - 1 - math.log(rho) <= cap:
            total -= beta * p * (1 - rho) * score
    return total


def there_and_back(move, n, start=0.0):
    """Return the count and the regret; a move is a function of log-odds, sign and time."""
    d = start
    for t in range(n):
        d += move(d, 1, t)
    regret, count = sigmoid(-d), 0
    while d > 1e-11:
        d += move(d, -1, n + count)
        count += 1
    return count, regret


def adaptive(normal, gap=1.0):
    """Return the move under TRL's adaptive bonus, with a target of 0.2 nats."""
    state = {"bonus": 0.0, "on": False}

    def move(d, sign, t):
        step = gap * (normalised if normal else pg)(d, sign)
        step += bonus(d, state["bonus"]) if state["on"] else 0.0
        state["on"] = entropy_of(d) <= 0.2
        change = 0.005 if state["on"] else -0.005
        state["bonus"] = min(1.0, max(0.0, state["bonus"] + change))
        return step

    return move


def moved_reference():
    state = {"odds": 0.0}

    def move(d, sign, t):
        if t and t % 512 == 0:
            state["odds"] = 0.6 * d + 0.4 * state["odds"]
        return pg(d, sign) + k3_pull(d, 0.04, state["odds"])

    return move


def group_of_eight(masked):
    """Return the move of the exact mean over groups, with k3 at 0.04."""

    def move(d, sign, t):
        p, q = sigmoid(d), sigmoid(-d)
        total = 0.0
        for k in range(9):
            chance, x = math.comb(8, k) * p**k * q ** (8 - k), k / 8
            total += chance * sign * 2 * x * (1 - x)
            if not masked or 0 < k < 8:
                total -= chance * 0.08 * (x * (1 - 0.5 / p) * q - (1 - x) * (1 - 0.5 / q) * p)
        return total

    return move


MOVES = {
    "PG-SM": (lambda d, s, t: pg(d, s), 1007, 5.0e-4),
    "normalised": (lambda d, s, t: normalised(d, s), 1007, 9.9e-7),
    "bonus 0.01": (lambda d, s, t: pg(d, s) + bonus(d, 0.01), 884, 5.4e-4),
    "bonus 0.1": (lambda d, s, t: pg(d, s) + bonus(d, 0.1), 269, 1.2e-3),
    "bonus 0.2": (lambda d, s, t: pg(d, s) + bonus(d, 0.2), 46, 7.0e-3),
    "bonus that ends": (
        lambda d, s, t: pg(d, s) + bonus(d, 0.2 * max(0, 1 - t / 1000)),
        507,
        1.0e-3,
    ),
    "target entropy": (adaptive(False), 13, 5.1e-2),
    "target entropy, normalised": (adaptive(True), 937, 1.1e-6),
    "target entropy, gap 10": (adaptive(False, 10.0), 157, 1.9e-4),
    "k3": (lambda d, s, t: pg(d, s) + k3_pull(d, 0.04), 22, 2.0e-2),
    "k3, normalised": (lambda d, s, t: normalised(d, s) + k3_pull(d, 0.04), 36, 4.0e-4),
    "k3, small": (lambda d, s, t: pg(d, s) + k3_pull(d, 0.001), 499, 7.9e-4),
    "k3, cut": (lambda d, s, t: pg(d, s) + k3_pull(d, 0.04, cap=10), 959, 5.2e-4),
    "divergence": (lambda d, s, t: pg(d, s) + bonus(d, 0.04), 603, 6.7e-4),
    "divergence, 0.01": (lambda d, s, t: pg(d, s) + bonus(d, 0.01), 884, 5.4e-4),
    "divergence, normalised": (lambda d, s, t: normalised(d, s) + bonus(d, 0.04), 1003, 9.9e-7),
    "moving reference": (moved_reference(), 130, 3.5e-3),
    "group": (group_of_eight(False), 22, 2.2e-2),
    "masked group": (group_of_eight(True), 23, 2.2e-2),
    "decay": (lambda d, s, t: pg(d, s) - 0.01 * d, 22, 2.0e-2),
}

LIBRARY = {
    "PG-SM": Remedy(),
    "normalised": Remedy(normalised=True),
    "bonus 0.01": Remedy(entropy=0.01),
    "bonus 0.1": Remedy(entropy=0.1),
    "bonus 0.2": Remedy(entropy=0.2),
    "k3": Remedy(penalty=0.04, estimator=True),
    "k3, normalised": Remedy(penalty=0.04, estimator=True, normalised=True),
    "k3, small": Remedy(penalty=0.001, estimator=True),
    "k3, cut": Remedy(penalty=0.04, estimator=True, cap=10.0),
    "divergence": Remedy(penalty=0.04),
    "divergence, 0.01": Remedy(penalty=0.01),
    "divergence, normalised": Remedy(penalty=0.04, normalised=True),
    "decay": Remedy(decay=0.01),
}


@pytest.mark.parametrize("label", MOVES)
def test_headline_counts_by_independent_code(label):
    move, count, regret = MOVES[label]
    found, left = there_and_back(move, 1000)
    assert found == count
    assert left == pytest.approx(regret, rel=0.05)
    library = {
        "bonus that ends": lambda: remedies.varied_outcome(
            remedies.decaying_bonus(0.2, 1000), 1000
        ),
        "target entropy": lambda: remedies.varied_outcome(remedies.target_entropy(0.2), 1000),
        "target entropy, normalised": lambda: remedies.varied_outcome(
            remedies.target_entropy(0.2, normalised=True), 1000
        ),
        "target entropy, gap 10": lambda: remedies.varied_outcome(
            remedies.target_entropy(0.2), 1000, 10.0
        ),
        "moving reference": lambda: remedies.varied_outcome(
            remedies.moving_reference(0.04, True), 1000
        ),
        "group": lambda: remedies.group_outcome(1000, 8, 0.04, False),
        "masked group": lambda: remedies.group_outcome(1000, 8, 0.04, True),
    }
    outcome = library[label]() if label in library else outcomes(LIBRARY[label], [1000])[0]
    gap = 10.0 if label.endswith("gap 10") else 1.0
    assert outcome.count == count
    assert outcome.regret / gap == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize(("odds", "count"), [(1, 22), (9, 98), (99, 927), (1000, 5863)])
def test_references_by_independent_code(odds, count):
    def move(d, sign, t):
        return pg(d, sign) + k3_pull(d, 0.04, math.log(odds))

    assert there_and_back(move, 10_000)[0] == count


@pytest.mark.parametrize(
    ("rate", "n", "kept", "again"), [(0.01, 1000, 572, 164), (0.01, 10_000, 1470, 259)]
)
def test_restart_of_adam_by_independent_code(rate, n, kept, again):
    for restart, count in ((False, kept), (True, again)):
        theta, m, v, t = np.zeros(2), np.zeros(2), np.zeros(2), 0

        def step(q):
            nonlocal theta, m, v, t
            p = sigmoid(theta[0] - theta[1])
            g = p * (1 - p) * (q[0] - q[1]) * np.array([1.0, -1.0])
            m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g, t + 1
            theta = theta + rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)

        for _ in range(n):
            step((1, 0))
        if restart:
            m, v, t = np.zeros(2), np.zeros(2), 0
        back = 0
        while theta[0] - theta[1] > 1e-11:
            step((0, 1))
            back += 1
        assert back == count


def test_penalty_that_starts_at_the_change_by_independent_code():
    start = math.log(1 / there_and_back(MOVES["PG-SM"][0], 1000)[1] - 1)
    for move, count in (
        (MOVES["k3"][0], 98),
        (MOVES["bonus 0.2"][0], 441),
        (MOVES["PG-SM"][0], 1007),
    ):
        assert there_and_back(move, 0, start)[0] == count


def test_clip_of_increases_by_hand():
    """The second epoch's ratio of the second action is between 1.2 and 1.28."""
    p = 1 / (1 + math.exp(math.log(9) - 2 * 1.25 * 0.09))  # after the first epoch, weight 1.25
    assert 1.2 < p / 0.1 < 1.28
    steps = {
        higher: one_step(
            Remedy(epochs=2, clip=0.2, clip_higher=higher, weight=1.25), [0.9, 0.1], [0.0, 1.0]
        )[1]
        for higher in (None, 0.28)
    }
    # the advantages are -0.1 and 0.9; where the increase is cut, that of the first action is left
    left = -0.1 * (1 - p) * p
    assert steps[None] == pytest.approx(1.25 * (0.09 - left), rel=1e-12)
    assert steps[0.28] == pytest.approx(1.25 * (0.09 + 0.9 * p * (1 - p) - left), rel=1e-12)


def test_interval_of_a_median_by_hand(monkeypatch):
    """Of 100 runs the 40th and the 61st are the ends: 95 % and not 97 % of binomial chance."""
    counts = np.arange(1.0, 101.0)
    monkeypatch.setattr(remedies, "sampled_outcomes", lambda *_, **__: (counts / 1000, counts))
    median = remedies.median_of(SampledRemedy("ce"), "swap")
    assert (median.value, median.low, median.high) == (50.5, 40.0, 61.0)
    assert str(median) == "50 [40, 61]"


@pytest.mark.parametrize("samples", [False, True])
def test_sampled_group_with_ratio_and_penalty_by_its_samples(samples):
    """A step is the mean of the gradients of eight samples, two of the second action."""
    policy, penalty, exploration = 0.8, 0.3, 0.25
    tried = exploration / 2 + (1 - exploration) * policy
    rewards, first = np.repeat([1.0, 0.0], [6, 2]), np.repeat([1.0, 0.0], [6, 2])
    ratio = np.where(first == 1, policy / tried, (1 - policy) / (1 - tried))
    score = 2 * (first - policy)  # derivative of log π by the log-odds, of two scores
    pull = 1 - 0.5 / np.where(first == 1, policy, 1 - policy)
    step = np.mean(ratio * (rewards - 0.75 - samples * penalty * pull) * score)
    step -= 0.0 if samples else penalty * 2 * (policy - 0.5)
    remedy = SampledRemedy(
        "group", exploration=exploration, ratio=True, penalty=penalty, expected=not samples
    )
    runs = remedies._Runs(np.full(1, math.log(4)), np.zeros((2, 1)))
    remedies._sampled_step(remedy, runs, [1.0, 0.0], Given())
    assert runs.odds[0] == pytest.approx(math.log(4) + step, rel=1e-12)


def test_redraws_stop_at_a_group_with_both_rewards():
    class Groups(Given):
        numbers = (8, 8, 3, 5)

    remedy = SampledRemedy("group", redraws=9)
    rng, runs = Groups(), remedies._Runs(np.zeros(1), np.zeros((2, 1)))
    remedies._sampled_step(remedy, runs, [1.0, 0.0], rng)
    assert rng.left == [5]
    assert runs.odds[0] == pytest.approx(2 * 3 / 8 * 5 / 8, rel=1e-12)


def own_medians(start, changed, exploration=0.0, penalty=0.0, runs=200, seed=5, most=3000):
    """Return the rank interval of counts of GRPO, sampled action by action with two scores."""
    rng = np.random.default_rng(seed)
    before, after = np.array(changed, float)
    scores = np.zeros((runs, 2))
    n = start if isinstance(start, int) else 0
    if not n:
        scores[:, 0] = math.log(start / (1 - start))
    counts = np.full(runs, np.inf)

    def step(values):
        pi = np.exp(scores - scores.max(1, keepdims=True))
        pi /= pi.sum(1, keepdims=True)
        explores = rng.random((runs, 8)) < exploration
        greedy = (rng.random((runs, 8)) > pi[:, :1]).astype(int)
        action = np.where(explores, rng.integers(2, size=(runs, 8)), greedy)
        reward = values[action]
        spread = reward.std(1, keepdims=True)
        centred = reward - reward.mean(1, keepdims=True)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        advantage = centred * scale
        for a in range(2):
            scores[:, a] += np.mean(advantage * ((action == a) - pi[:, a : a + 1]), axis=1)
        scores[:] -= penalty * (pi - 0.5)

    for _ in range(n):
        step(before)
    for t in range(most):
        counts[(scores[:, 0] <= scores[:, 1]) & np.isinf(counts)] = t
        if np.isfinite(counts).mean() > 0.6:
            break
        step(after)
    ordered, k = np.sort(counts), round(runs / 2 - 0.98 * math.sqrt(runs))
    return ordered[k - 1], ordered[-k]


def overlap(one, other):
    return max(one[0], other[0]) <= min(one[1], other[1])


SWAP, BETTER = ((1, 0), (0, 1)), ((0.5, 0), (0.5, 1))


@pytest.mark.parametrize(("exploration", "reported"), [(0.0, (430, 491)), (0.05, (35, 37))])
def test_grpo_from_one_policy_by_independent_code(exploration, reported):
    assert overlap(own_medians(0.9995, BETTER, exploration), reported)
    assert overlap(own_medians(0.9995, SWAP, exploration, seed=6), reported)


def test_mean_penalty_with_random_actions_by_independent_code():
    for n, low, high in ((300, 152, 171), (1000, 500, 537)):
        assert overlap(own_medians(n, BETTER, 0.05, 0.04, runs=100), (low, high))
    assert own_medians(300, BETTER, 0.0, 0.04, runs=100)[1] < 35
