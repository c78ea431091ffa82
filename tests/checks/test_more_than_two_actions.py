"""Test counts, bounds and constants for more than two actions against known values."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from pu_lib.chapters.gravity_well.escape import escape_steps
from pu_lib.chapters.more_than_two_actions import quantities as more
from pu_lib.chapters.more_than_two_actions.checks import ENDS, ROWS, THREE, TWO, turns
from pu_lib.trajectories import follow, run
from pu_lib.updates import softmax

NAMES = tuple(ROWS)

# The numbers with 22 digits were computed with mpmath (45 digits) and with flint (200 bits).


@pytest.mark.parametrize(
    ("weight", "n_actions", "rotating", "share"),
    [
        (0.1, 3, 2, 0.2547764776331553909372),
        (1.0, 3, 2, 0.3064725494302250069562),
        (2.0, 3, 2, 0.3783981099648849316147),
        (10.0, 3, 2, 0.4997224582796044838641),
        (1.0, 4, 2, 0.299218668309932480271),
        (1.0, 4, 3, 0.257521948773101606424),
        (1.0, 5, 4, 0.2095624148650673969591),
        (1.0, 10, 9, 0.1036568481474107665717),
    ],
)
def test_share_of_mce(weight, n_actions, rotating, share):
    assert more.rotation_share(weight, n_actions, rotating) == pytest.approx(share, rel=1e-14)


ADVANTAGES = {
    # theta = (10, 0, 0) and q = (0.99, 1, 0), then pi = (1/8, 5/8, 1/4) and q = (1, 0.9, 0)
    "CE": (-7.426252338776019869117e-5, 0.03731656576514891680662),
    "MCE": (1.587182385890418162155e-6, 0.07919203553444203370557),
    "SCE": (1.797803941370367106993e-5, 0.1210370662556170053374),
    "unbalanced": (7.854206054464454394413e-7, 0.0827666351646711805424),
    "balanced": (2.060733533498706965745e-9, 0.05010527366986691024583),
    "renormalised": (2.918864281414562874895e-5, 0.1504947832565668078615),
    "transfer": (7.800280759846534113953e-7, 0.04814151674561980185277),
}


@pytest.mark.parametrize("name", NAMES)
def test_advantage_of_one_step(name):
    cases = [
        (np.array([10.0, 0.0, 0.0]), np.array([0.99, 1.0, 0.0])),
        (np.log([1 / 8, 5 / 8, 1 / 4]), np.array([1.0, 0.9, 0.0])),
    ]
    for (theta, q), expected in zip(cases, ADVANTAGES[name], strict=True):
        new = ROWS[name].policy(ROWS[name].step(theta, q, 1.0))
        gain = (new - softmax(theta)) @ (q - q[0])
        assert gain == pytest.approx(expected, rel=1e-9, abs=1e-17)


@pytest.mark.parametrize(
    ("name", "count", "deficit"),
    [
        ("CE", 4, 5.289203584749224537787),
        ("MCE", 62, 92.45154119906532376023),
        ("unbalanced", 4, 5.799719014076038716653),
        ("balanced", 4, 6.800831248098706674616),
        ("renormalised", 4, 5.815596070484134206898),
        ("SCE", 5, 6.352719450734006283984),
        ("transfer", 4, 4.397864166197024839447),
    ],
)
def test_two_hundred_updates_with_two_best_actions(name, count, deficit):
    assert more.count(ROWS[name], TWO, 200) == count
    assert more.deficit(ROWS[name], TWO, 200) == pytest.approx(deficit, rel=1e-12)


@pytest.mark.parametrize(
    ("update", "two", "three"),
    [("ce", 5, 5), ("mce", 307, 258), ("sce", 5, 6), ("di", 1, 1), ("pg-sm", 996, 993)],
)
def test_thousand_updates(update, two, three):
    assert (more.count(update, TWO, 1000), more.count(update, THREE, 1000)) == (two, three)


def test_count_of_npg_is_the_largest_sum_of_differences():
    """The leads over the third action grow to 990 in 1000 steps and decrease by 1 at each later."""
    assert more.count("npg", TWO, 1000) == math.ceil(Fraction(99, 100) * 1000)


def test_last_action_is_back_at_once_if_it_never_fell():
    assert more.count("ce", TWO, 0) == 0
    with pytest.raises(more.OutOfReach, match="pg-sm: the last action is not back"):
        more.count("pg-sm", [[1.0, 0.0, 0.0]], 5000, 100.0)


@pytest.mark.parametrize(
    ("n_actions", "spread"),
    [
        (3, 12.43117897010243083815),
        (4, 15.9316466958498156477),
        (5, 18.51967304604985959828),
    ],
)
def test_range_of_neighbouring_pairs(n_actions, spread):
    path = more.pair_range(n_actions, 1000)
    assert np.ptp(path[-1]) == pytest.approx(spread, rel=1e-12)
    assert spread < more.range_bound(1000, n_actions - 1, more.range_constant(n_actions, 1.0))


@pytest.mark.parametrize(("n_actions", "bound"), [(3, 19.90), (4, 28.67), (5, 37.98)])
def test_bound_on_the_logarithm_of_a_probability(n_actions, bound):
    spread = more.range_bound(300, n_actions - 1, more.range_constant(n_actions, 1.0))
    assert math.log(n_actions) + spread == pytest.approx(bound, abs=0.005)


def test_neighbouring_pairs_are_steps_of_sce():
    path = more.pair_range(4, 30)
    for t in range(30):
        m = t % 3
        q = more.pair_values(path[t], m)
        assert q[[m, m + 1]].tolist() == [1.0, 0.0]
        pi = np.exp(path[t]) / np.exp(path[t]).sum()
        below = np.flatnonzero(q < pi @ q)
        assert below.tolist() == [m + 1]
        new = ROWS["SCE"].step(path[t], q, 1.0)
        np.testing.assert_allclose(new, path[t + 1], atol=1e-12)


def test_constant_of_the_range_by_hand():
    """If K = 3 and w = 1, then C = e and B = 2 + log(2e) = 3 + log 2."""
    assert more.range_constant(3, 1.0) == pytest.approx(3 + math.log(2))
    assert more.range_constant(9, 1e-6) == 0.0
    assert more.step_bound(3, 1.0, [0.0, 10.0]).tolist() == [1.0, pytest.approx(math.exp(-9))]
    assert more.sums([1.0, 3.0, 2.0]).tolist() == [3.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("weight", "change"),
    [
        (0.1, 0.03028856093501473689337),
        (1.0, 0.3534326462415394892411),
        (3.0, 0.8905516752678079636248),
    ],
)
def test_largest_change_of_a_probability(weight, change):
    assert more.largest_change(weight) == pytest.approx(change, rel=1e-12)


def test_bounds_by_hand():
    assert more.changes_bound(80, 3) == 20
    assert more.adversary_bound(40, 3, 0.75, 1.5) == pytest.approx((15 - math.log(2)) / 1.5)
    # The bound for odds e^2 and w = 1/2 is ceil(8) + 1 * (1 + 2 / (0.5 * 0.1)).
    assert more.escape_bound(math.exp(2 - 1e-9), 1, 0.5, 0.1, 1.0) == pytest.approx(49)
    # 2 (e^w - 1) = 1, since w = log 3/2
    assert more.escape_floor(math.log(3 / 2), 0.01, 1.0) == pytest.approx(98)
    assert [more.stages(n, w) for n, w in ((2, 1), (3, 1), (9, 2), (9, 2.1))] == [0, 1, 2, 7]
    # gap 1/9: (1 - gap) / (2 gap) = 4, and min(5, log 4) - log 2 = log 2
    assert more.gap_bound(20, 3, 0.5, 0.25, 1 / 9) == pytest.approx(4 * math.log(2))
    assert more.gap_bound(2, 3, 0.5, 0.25, 1e-9) == pytest.approx(4 * (0.5 - math.log(2)))
    assert more.gap_pace(0.4, 0.1) == pytest.approx(0.04)
    assert more.gap_pace(0.4, 0.9) == 0.2
    assert more.return_bound(4, 0.5, 3.0) == 8
    assert more.return_floor(4, 0.5, 3.0) == pytest.approx(3 - math.log(3))


def test_mean_steps_of_ce_end_at_the_probabilities_of_the_best_sample():
    theta, size = more.where_the_mean_step_ends("ce", [1.0, 0.0, 2.0])
    np.testing.assert_allclose(np.exp(theta) / np.exp(theta).sum(), [1 / 4, 3 / 5, 3 / 20])
    assert size < 1e-12


def test_transfer_by_hand():
    """If w = log 2, alpha is at most 1/2, and a rare action gains at most the factor e^w = 2."""
    transfer, w = more.SquareTransfer(), math.log(2)
    new = transfer.policy(transfer.step(np.log([1 / 2, 1 / 4, 1 / 4]), [1.0, 0.5, 0.0], w))
    np.testing.assert_allclose(new, [9 / 16, 7 / 32, 7 / 32], rtol=1e-14)
    new = transfer.policy(transfer.step(np.log([1 / 10, 9 / 10]), [1.0, 0.0], w))
    np.testing.assert_allclose(new, [2 / 10, 8 / 10], rtol=1e-14)
    assert more.transfer_rise(3, w) == pytest.approx(math.log(9 / 8))
    assert more.transfer_odds(100, 3, w) == pytest.approx(102)
    assert more.transfer_bound(102, math.log(9 / 8)) == math.ceil(math.log(102) / math.log(9 / 8))


@pytest.mark.parametrize(
    ("theta", "best", "expected"),
    [
        ([800.0, 0.0, -800.0], 2, [800.0, 0.0, -750.0]),
        ([0.0, 0.0, 800.0], 2, [0.0, 0.0, 800.0]),
        ([2.0, 0.0, 1.0], 1, [2.0, 0.0, 1.0]),
    ],
)
def test_transfer_at_the_limits_of_floats(theta, best, expected):
    weight = 50.0 if max(theta) == 800 else 0.0
    new = more.SquareTransfer().step(theta, np.eye(3)[best], weight)
    assert new.tolist() == pytest.approx(expected, rel=1e-15)


def test_transfer_needs_the_square():
    """The count is proportional to n if the probability replaces its square."""
    plain = more.SquareTransfer(power=1)
    counts = [more.count(plain, TWO, n) for n in (20, 40, 80)]
    assert counts[2] > 1.8 * counts[1] > 3 * counts[0] > 30
    assert more.count(more.SquareTransfer(), TWO, 80) <= 4


@pytest.mark.parametrize(("n_actions", "weight"), [(3, 1.0), (5, 0.5)])
def test_transfer_is_slower_than_ce_near_the_end(n_actions, weight):
    n, q = 2000, np.eye(n_actions)[0]
    limits = [(n_actions - 1) / (1 - math.exp(-weight)), (n_actions - 1) / (n_actions * weight)]
    for update, limit in zip((more.SquareTransfer(), "ce"), limits, strict=True):
        rest = softmax(follow(update, q, weight, n)[-1])[1:].sum()
        assert rest * n == pytest.approx(limit, rel=0.03)


def test_unknown_variant_raises():
    with pytest.raises(ValueError, match="kind: expected one of"):
        more.Variant(kind="other")  # type: ignore[arg-type]


def test_mce_grows_with_every_change_of_its_mind():
    """The count is logarithmic in n for one greedy action and linear if two actions alternate."""
    alone = [[1.0, 0.0, 0.0]]
    counts = [more.count("mce", history, 400) for history in (alone, turns(3, 2))]
    assert counts[0] <= 6 < 100 < counts[1]


def test_constant_of_the_lower_bound_by_hand():
    """The largest 2c of a pair is 1 for K = 2, 2 for K = 3 and 4 for K = 4."""
    assert more.pair_constant(2, 1.0) == pytest.approx(math.log(1 + math.e))
    assert more.pair_constant(3, 2.0) == pytest.approx(math.log(1 + math.exp(2)))
    assert more.pair_constant(4, 0.5) == pytest.approx(math.log(1 + 8 * math.exp(4)))
    assert more.range_floor(9, 2, 1.0) == pytest.approx(2 * (math.log(10) - 1))


def test_constants_of_ce_by_hand():
    """If K = 3 and w = log 3, then 4w (K - 1)(1 + e^w) = 32 log 3 and e^2w = 9."""
    w = math.log(3)
    assert more.ce_constant(3, w) == pytest.approx(math.log(9 * 32 * w))
    assert more.ce_constant(3, 1e-6) == 0.0
    assert more.ce_step_bound(3, w, [0.0, 10.0]).tolist() == pytest.approx(
        [w, 8 * w * math.exp(-10)]
    )
    assert more.floor_constant(3, w) == pytest.approx(4 * w + math.log(3 / w))
    assert more.floor_constant(2, 9.0) == 18.0
    assert [more.harmonic(m) for m in (1, 2, 3, 4)] == pytest.approx([1, 3 / 2, 11 / 6, 25 / 12])


@pytest.mark.parametrize(
    ("n_actions", "rounds", "weight", "expected"),
    [
        (3, 200, 1.0, 8.153910167103565877899),
        (4, 200, 1.0, 9.566083036021066049),
        (5, 100, 0.25, 6.88762118682078577297),
    ],
)
def test_cascade_matches_mpmath(n_actions, rounds, weight, expected):
    """The expected values were computed with mpmath (40 digits); ties take the first action."""
    assert np.ptp(more.cascade(n_actions, rounds, weight)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_actions", [3, 4])
def test_range_of_ce_grows_with_the_harmonic_number(n_actions):
    """The greedy actions of each phase alternate, instead of the lowest action being greedy."""
    spreads = []
    for rounds in (3000, 30_000):
        theta = np.zeros(n_actions)
        for m in range(n_actions - 1, 0, -1):
            rows = np.resize(np.eye(n_actions)[:m], (rounds // m * m, n_actions))
            theta = follow("ce", rows, 1.0, len(rows), theta)[-1]
        spreads.append(np.ptp(theta))
        n = rounds * (n_actions - 1)
        bound = more.range_bound(n, more.harmonic(n_actions - 1), more.ce_constant(n_actions, 1.0))
        assert spreads[-1] < bound
    slope = (spreads[1] - spreads[0]) / math.log(10)
    assert slope == pytest.approx(sum(1 / j for j in range(1, n_actions)), rel=0.03)


def slow_steps(pi, q, weight):
    """Return e at the steps of SCE that skip an action and at which g is likelier than N."""
    theta, best, slow = np.log(pi), int(np.argmax(q)), []
    while True:
        pi = np.exp(theta - theta.max())
        pi /= pi.sum()
        if pi[best] >= 0.5:
            return slow
        left = q[best] - pi @ q
        lowered = (q[best] - q > left) & (np.arange(len(q)) != best)
        if lowered.sum() < len(q) - 1 and pi[best] > pi[lowered].sum():
            slow.append(left)
        among = pi[best] + pi[lowered].sum()
        theta = theta - weight * np.where(lowered, pi, 0.0) / among
        theta[best] += weight * pi[lowered].sum() / among


def test_slow_steps_do_not_depend_on_the_number_of_actions():
    """The i-th slow step has (i - 1) w e <= 4R for geometric values and for near ties."""
    rng, most = np.random.default_rng(0), 0.0
    for draw in range(300):
        n_actions, weight = int(rng.integers(4, 12)), float(rng.choice([0.1, 0.5, 2.0]))
        gap = 10 ** rng.uniform(-2, -0.5)
        ladder = [np.geomspace(gap, 1.0, n_actions - 1), gap * (1 + rng.random(n_actions - 1) / 9)]
        below = ladder[draw % 2]
        below[-1] = 1.0
        pi = np.exp(rng.normal(size=n_actions) * rng.choice([1, 3, 8]))
        pi[0] = min(pi[0], pi[1:].sum() * 10 ** -rng.uniform(0, 4))
        for i, left in enumerate(slow_steps(pi / pi.sum(), np.array([1.0, *(1 - below)]), weight)):
            most = max(most, i * weight * left)
    assert 0.3 < most <= 4


def test_integral_in_the_proof_is_below_one():
    """The closed form agrees with quadrature and is below 0.9 on a fine grid."""
    for x in (2.1, 3.0, 5.0, 40.0):
        closed = 0.5 + math.log((x - 1) * (2 * x - 1)) / (2 * x)
        whole = quad(lambda y, x=x: 1 / max(1.0, 2 * x * (1 - 1 / y)), 1, x, limit=400)[0]
        assert whole == pytest.approx(closed, abs=1e-6)
    grid = np.linspace(1.001, 50, 100_000)
    assert (0.5 + np.log((grid - 1) * (2 * grid - 1)) / (2 * grid)).max() < 0.9


@pytest.mark.parametrize(("n_actions", "weight"), [(3, 0.1), (3, 1.0), (7, 0.1)])
def test_slow_corner_by_hand(n_actions, weight):
    """A step with three actions multiplies rho = pi(1)/pi(3) by exp(2w/(1 + rho))."""
    gap = 1e-3
    pi, q = more.slow_corner(gap, n_actions)
    assert pi[1] == pytest.approx(pi[0] * 1000)
    assert pi[0] == pytest.approx(pi[2:].sum())
    rho, steps, faster = 1.0, 0, 1 + 1 / (n_actions - 2)
    while 1 + rho <= 1 / gap:
        rho, steps = rho * math.exp(faster * weight / (1 + rho)), steps + 1
    found = escape_steps("sce", pi, q, weight, cap=20_000)
    assert more.escape_floor(weight, gap, 1.0) <= steps <= found <= steps + 20 / weight


def test_adversary_with_a_gap_stops():
    """The other actions have a probability below the gap 1/100 after a few updates of MCE."""
    counts = [more.adversary("mce", n, 3, 0.1, 0.01)[0] for n in (200, 400, 1600)]
    assert counts[0] == counts[1] == counts[2] < more.adversary("mce", 400, 3, 0.1)[0] / 2


def test_optimal_action_is_not_greedy_without_a_later_weight():
    """The first action has the value 0.9 * 5 = 4.5 without the weight and 0.9 * 10 = 9 at best."""
    mdp = more.late_reward_mdp()
    assert mdp.evaluate(np.full((3, 2), 0.5)).q[0].tolist() == [4.5, 6.0]
    assert mdp.optimal().q[0].tolist() == [9.0, 6.0]
    path = run(mdp, "sce", 200, 1.0, [1.0, 0.0, 0.0])
    assert path.q[-1, 0].tolist() == [4.5, 6.0]
    assert path.policies[-1, 0, 1] > 0.99


def test_balanced_variant_returns_slowly_while_another_action_keeps_a_high_value():
    balanced, final = ROWS["balanced"], [0.9, 0.0, 1.0]
    assert [more.count(balanced, TWO, n, final=final) for n in (100, 1000)] == [341, 4923]
    assert [more.count("sce", TWO, n, final=final) for n in (100, 1000)] == [10, 9]
    assert more.count(balanced, TWO, 1000) == 4


def test_mean_step_of_sce_vanishes_exactly():
    """The probabilities solve 19/20 p3 = 3/20 and 19/20 p1 = 1/5 + 1/20 p2/(p1 + p2)."""
    p1, p2, p3 = ENDS["sce"]
    assert Fraction(19, 20) * p3 == Fraction(3, 20)
    assert Fraction(1, 20) * p2 / (p1 + p2) + Fraction(1, 5) == Fraction(19, 20) * p1
    assert more.exact_mean_step(True, ENDS["sce"]) == [0, 0, 0]
    assert more.exact_mean_step(False, ENDS["sce"]) != [0, 0, 0]


# MCE with several actions that alternate


def test_orbit_of_three_in_turn_solved_by_hand() -> None:
    """If e^s = 2, the greedy action has probability 1 / (1 + 2 + 4), so 3 log 2 = cw 6/7."""
    total = 3.5 * math.log(2)
    assert more.rotation_spacing(total, 3) == pytest.approx(math.log(2), rel=1e-14)
    assert more.rotation_share(total * 3 / 4, 4, 3) == pytest.approx(2 / 7, rel=1e-14)
    assert more.turn_share((0, 1, 2), total) == pytest.approx(2 / 7, rel=1e-9)


@pytest.mark.parametrize("start", [(0.0, 0.0, 0.0, 0.0), (40.0, -7.0, 15.0, 3.0)])
def test_mce_approaches_the_orbit_solved_by_hand(start) -> None:
    """The loop over Python floats starts near the orbit or far from it and counts the way back."""
    weight = 0.75 * 3.5 * math.log(2)

    def step(theta, greedy):
        powers = [math.exp(x - max(theta)) for x in theta]
        m = 1 - powers[greedy] / sum(powers)
        return [x + weight * (m if a == greedy else -m / 3) for a, x in enumerate(theta)]

    theta = list(start)
    for t in range(6000):
        theta = step(theta, t % 3)
    assert np.diff(theta[:3]) == pytest.approx([math.log(2)] * 2, abs=1e-9)
    back = 0
    while 4 * math.exp(theta[3] - max(theta)) < sum(math.exp(x - max(theta)) for x in theta):
        theta, back = step(theta, 3), back + 1
    assert back == pytest.approx(6000 * 2 / 7, abs=30)


def test_limit_of_an_order_with_two_turns_for_one_action() -> None:
    """The difference before the first turn of a_1, a_1, a_2 is the root of one equation."""
    total = 2.0

    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    def after(y):
        first = y + total * sigmoid(-y)
        second = first + total * sigmoid(-first)
        return second - total * sigmoid(second), sigmoid(second)

    low, high = -20.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if after(middle)[0] > middle else (low, middle)
    assert more.turn_share((0, 0, 1), total) == pytest.approx(after(low)[1] / 3, rel=1e-9)


def test_an_action_with_few_turns_falls_behind() -> None:
    leads = more.limit_leads(((0, 1) * 10 + (2,)), 1.0, [0.0, 0.0, 0.0], 2100)[-1]
    assert leads[2] <= 100
    assert leads[:2].max() >= 475  # (21/2 - 1) / 2 per round
