"""What notes the instances of a check, apart from the checks."""

import weakref

from pu_lib.verdict import Status, Worst, judged


def test_a_violated_instance_is_noted_and_the_next_ones_too() -> None:
    before, worst = Worst.violated, Worst("room", keep=2)
    for n, margin in enumerate((1.0, -1.0, 0.0, -2.0)):
        worst.add(margin, n=n)
    assert (worst.count, worst.margin, worst.instance) == (4, -2.0, {"n": 3})
    assert Worst.violated == before + 2
    assert [row["n"] for row in worst.rows] == [3, 1]
    assert judged(worst).status is Status.FALSE


def test_instances_that_are_not_among_the_worst_are_not_kept() -> None:
    class Large:
        pass

    worst, best = Worst("room", keep=2), Large()
    gone = weakref.ref(best)
    worst.add(9.0, case=best)
    del best
    for n in range(8):
        worst.add(8.0 - n, case=n)
    assert gone() is None
    assert [row["case"] for row in worst.rows] == [7, 6]
