"""What notes the instances of a check, apart from the checks."""

from pu_lib.verdict import Status, Worst, judged


def test_a_violated_instance_is_noted_and_the_next_ones_too() -> None:
    before, worst = Worst.violated, Worst("room", keep=2)
    for n, margin in enumerate((1.0, -1.0, 0.0, -2.0)):
        worst.add(margin, n=n)
    assert (worst.count, worst.margin, worst.instance) == (4, -2.0, {"n": 3})
    assert Worst.violated == before + 2
    assert [row["n"] for row in worst.rows] == [3, 1]
    assert judged(worst).status is Status.FALSE
