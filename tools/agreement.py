"""Write ``proofs/Agreement.v``: the definitions in Rocq agree with the results of `pu_lib`.

A case is an update with rational parameters, action values and a weight. `pu_lib` computes the new
parameters. The file states that the formula in ``Definitions.v`` gives the same values up to 1e-9,
and proves it in interval arithmetic. If a formula changes in `pu_lib`, the written file changes and
a test fails. If a formula changes in Rocq, the file does not compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from pu_lib.files import replace_file
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update, make_update

TARGET = Path(__file__).parent.parent / "proofs" / "Agreement.v"

Row = Sequence[str]

CASES: dict[str, list[tuple[Row, Row, str]]] = {
    # parameters, values, weight; the last case of each has a tie or a step across zero
    "pg-sm": [
        (("1/2", "-1", "2"), ("1", "0", "1/3"), "3/2"),
        (("-3/4", "1/4"), ("0", "1"), "1/5"),
        (("0", "1/3", "-2", "5/4"), ("2", "-1", "2", "0"), "7"),
    ],
    "pg-es": [
        (("1", "1/2"), ("0", "1"), "1/4"),
        (("1/2", "-3/2", "2/3"), ("1", "1/5", "-1"), "3/4"),
        (("1", "1"), ("1", "0"), "5"),
    ],
    "di": [
        (("1/2", "1/4", "1/4"), ("1", "0", "1/3"), "3/10"),
        (("1/3", "2/3"), ("0", "1"), "1/4"),
        (("1/4", "1/4", "1/4", "1/4"), ("1", "0", "3/4", "-1"), "3/2"),
    ],
    "ce": [
        (("1/2", "-1", "2"), ("1", "0", "1/3"), "3/2"),
        (("10", "0", "0"), ("0.99", "1", "0"), "1"),
        (("0", "1/3", "-2", "5/4"), ("2", "-1", "2", "0"), "7"),
    ],
    "mce": [
        (("1/2", "-1", "2"), ("1", "0", "1/3"), "3/2"),
        (("-3/4", "1/4"), ("0", "1"), "1/5"),
        (("0", "1/3", "-2", "5/4"), ("2", "-1", "2", "0"), "7"),
    ],
}
EXPONENTS = ("2", "3", "3/2")  # one for each case of pg-es

# A process of two states and two actions, one of which may end the episode, and a policy.
TRANSITIONS = [[["1/2", "1/2"], ["0", "1"]], [["1/4", "1/2"], ["1/3", "2/3"]]]
REWARDS = [["1", "0"], ["-1/2", "2"]]
POLICY = [["1/4", "3/4"], ["2/3", "1/3"]]
DISCOUNT = "1/2"

HEAD = """\
(** * The formulas of Definitions.v give what pu_lib computes

    Written by tools/agreement.py from the output of [pu_lib.updates] and [pu_lib.mdp]; not to be
    edited.  The inputs are rational.  Values that are not are compared to 1e-9 in interval
    arithmetic; the projections and the solution of the Bellman equation are exact. *)

Require Import Reals Lra Lia List.
From Interval Require Import Tactic.
From PolicyUpdates Require Import Definitions Sums Projection CrossEntropyInterval.
Import ListNotations.
Open Scope R_scope.

(** A function on actions or states, given by its list of values. *)
Definition row (l : list R) (a : nat) : R := nth a l 0.

(** The first values of [f] are those of the list, up to 1e-9. *)
Definition agrees (f : nat -> R) (l : list R) : Prop :=
  forall a, (a < length l)%nat -> Rabs (f a - row l a) <= 1 / 10 ^ 9.

(** One goal for each action. *)
Ltac each_action :=
  let a := fresh "a" in let H := fresh "H" in
  intros a H; cbn [length] in H; do 4 (try (destruct a as [|a]));
  try (exfalso; lia); clear H.

Ltac compute_formula :=
  unfold pg_sm_formula, ce_formula, mce_formula, pg_es_formula, adv, softmax;
  cbn [sum row nth Nat.eqb INR].

(** For [interval], powers of numbers that are not zero are written with exp and ln. *)
Lemma abs_pow_of_pos : forall x p, 0 < x -> abs_pow x p = exp (p * ln x).
Proof.
  intros x p H. unfold abs_pow, Rpower. destruct (Req_EM_T x 0); [lra|].
  rewrite Rabs_pos_eq by lra. reflexivity.
Qed.

(** The same for a negative one. *)
Lemma abs_pow_of_neg : forall x p, x < 0 -> abs_pow x p = exp (p * ln (- x)).
Proof.
  intros x p H. unfold abs_pow, Rpower. destruct (Req_EM_T x 0); [lra|].
  rewrite Rabs_left by lra. reflexivity.
Qed.

(** The sign of a positive number, *)
Lemma sign_of_pos : forall x, 0 < x -> sign x = 1.
Proof.
  intros x H. unfold sign. destruct (Req_EM_T x 0); [lra|].
  rewrite Rabs_pos_eq by lra. field. lra.
Qed.

(** and of a negative one. *)
Lemma sign_of_neg : forall x, x < 0 -> sign x = -1.
Proof.
  intros x H. unfold sign. destruct (Req_EM_T x 0); [lra|]. rewrite Rabs_left by lra. field. lra.
Qed.

(** Interval arithmetic with 60 bits. *)
Ltac bounded := interval with (i_prec 60).

Ltac compute_powers :=
  unfold norm, escort; cbn [sum row nth];
  repeat match goal with
  | |- context [abs_pow ?x ?p] => rewrite (abs_pow_of_pos x p) by bounded
  | |- context [abs_pow ?x ?p] => rewrite (abs_pow_of_neg x p) by bounded
  | |- context [sign ?x] => rewrite (sign_of_pos x) by bounded
  | |- context [sign ?x] => rewrite (sign_of_neg x) by bounded
  end.

(** Write the formula out, and compare each action. *)
Ltac compare := each_action; compute_formula; compute_powers; bounded.

(** No action has a greater value. *)
Ltac greedy := split; [lia|each_action; cbn [row nth]; lra].
"""

PROOFS = {
    "pg-sm": "compare.",
    "pg-es": "compare.",
    "di": "each_action; cbn [row nth]; unfold Rmax; destruct (Rle_dec _ _); lra.",
    "ce": "split; [greedy|compare].",
    "mce": "split; [greedy|compare].",
}


def number(value: Fraction) -> str:
    """Return a number in the syntax of Rocq, in parentheses if an argument needs them."""
    text = str(value)
    return text if value >= 0 and value.denominator == 1 else f"({text})"


def items(values: Sequence[Fraction]) -> str:
    """Return a list in the syntax of Rocq."""
    return "[" + "; ".join(str(value) for value in values) + "]"


def decimals(values: Sequence[float]) -> str:
    """Return a list of numbers with nine decimals in the syntax of Rocq."""
    return "[" + "; ".join(f"{value:.9f}" for value in values) + "]"


def exactly(value: float) -> Fraction:
    """Return the rational number of small denominator that rounds to `value`.

    Raises
    ------
    ValueError
        If there is no such number.
    """
    rational = Fraction(value).limit_denominator(10_000)
    if abs(float(rational) - value) > 1e-13:
        raise ValueError(f"{value} is not a rational of small denominator.")
    return rational


def lemma(name: str, index: int, update: Update) -> str:
    """Return the lemma of a case and its proof."""
    theta, q = ([Fraction(x) for x in row] for row in CASES[name][index][:2])
    weight = Fraction(CASES[name][index][2])
    new = update.step([float(x) for x in theta], [float(x) for x in q], float(weight)).tolist()
    actions, label = len(theta), f"{name.replace('-', '_')}_{index + 1}"
    rows = f"(row {items(theta)})"
    values = f"(row {items(q)})"
    if name == "di":
        exact = [exactly(x) for x in new]
        best = new.index(max(new))
        threshold = theta[best] + weight * q[best] - exact[best]
        return (
            f"Lemma {label} : di {actions}%nat {number(weight)}\n  {values}\n  {rows}\n"
            f"  (row {items(exact)}).\n"
            f"Proof.\n  apply projection_threshold with {number(threshold)}; "
            f"[|cbn [sum row nth]; lra].\n  {PROOFS[name]}\nQed.\n"
        )
    if name in ("ce", "mce"):
        greedy = q.index(max(q))
        claim = (
            f"is_greedy {actions} {values} {greedy} /\\\n  agrees ({name}_formula {actions} "
            f"{number(weight)} {greedy} {rows})\n    {decimals(new)}"
        )
    else:
        exponent = f"{number(Fraction(EXPONENTS[index]))} " if name == "pg-es" else ""
        claim = (
            f"agrees\n  ({name.replace('-', '_')}_formula {exponent}{actions} {number(weight)} "
            f"{values}\n    {rows})\n  {decimals(new)}"
        )
    return f"Lemma {label} : {claim}.\nProof. {PROOFS[name]} Qed.\n"


def process() -> str:
    """Return the example process and the lemma that its values solve the Bellman equation."""
    transitions = [[[Fraction(x) for x in row] for row in rows] for rows in TRANSITIONS]
    rewards = [[Fraction(x) for x in row] for row in REWARDS]
    policy = [[Fraction(x) for x in row] for row in POLICY]
    # Each row of probabilities sums to at most one. The rest leads to a terminal state in pu_lib.
    extended = [[[*map(float, row), float(1 - sum(row))] for row in rows] for rows in transitions]
    mdp = FiniteMDP(
        [*extended, [[0.0] * 3] * 2],
        [*([float(x) for x in row] for row in rewards), [0.0, 0.0]],
        [1.0, 0.0, 0.0],
        float(Fraction(DISCOUNT)),
        [False, False, True],
    )
    evaluation = mdp.evaluate([*([float(x) for x in row] for row in policy), [0.5, 0.5]])
    value, action_values = evaluation.v[:2].tolist(), evaluation.q[:2].tolist()
    table = "; ".join("[" + "; ".join(items(row) for row in rows) + "]" for rows in transitions)
    v = f"(row {items([exactly(x) for x in value])})"
    q = [[exactly(x) for x in row] for row in action_values]
    claims = " /\\\n  ".join(
        f"q_of example {v} {s} {a} = {number(q[s][a])}" for s in range(2) for a in range(2)
    )
    return f"""\
(** ** The values of a policy *)

Definition transition (s a s' : nat) : R :=
  nth s' (nth a (nth s [{table}] []) []) 0.

Definition matrix (m : list (list R)) (s a : nat) : R := nth a (nth s m []) 0.

Definition example : MDP.
Proof.
  refine {{|
    n_states := 2; n_actions := 2; P := transition;
    r := matrix [{"; ".join(items(row) for row in rewards)}]; gamma := {DISCOUNT}
  |}}; [lia| | |lra].
  - intros [|[|s]] [|[|a]] [|[|s']] Hs Ha Hs'; try (exfalso; lia); cbn; lra.
  - intros [|[|s]] [|[|a]] Hs Ha; try (exfalso; lia); cbn; lra.
Defined.

(** It solves the Bellman equation. *)
Lemma example_value :
  is_value example (matrix [{"; ".join(items(row) for row in policy)}])
    {v}.
Proof. intros [|[|s]] Hs; cbn in Hs; try (exfalso; lia); unfold q_of; cbn; field. Qed.

(** The values of the actions. *)
Lemma example_q :
  {claims}.
Proof. unfold q_of; repeat split; cbn; field. Qed.
"""


def source(replaced: dict[str, Update] | None = None) -> str:
    """Return the text of ``Agreement.v``.

    Parameters
    ----------
    replaced : dict, optional
        Updates by name, in place of the library's.
    """
    parts = [HEAD]
    for name, cases in CASES.items():
        parts.append(f"(** ** {name.upper()} *)\n")
        for index in range(len(cases)):
            options = {"p": float(Fraction(EXPONENTS[index]))} if name == "pg-es" else {}
            update = (replaced or {}).get(name) or make_update(name, **options)
            parts.append(lemma(name, index, update))
    return "\n".join([*parts, process()])


if __name__ == "__main__":
    replace_file(TARGET, source())
    print(f"Wrote {TARGET}.")
