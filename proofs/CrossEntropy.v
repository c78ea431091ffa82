(** * The conjecture on CE is false (weights bounded below at every state and step)

    The paper conjectures (section 3.1) that the cross-entropy update converges to the global
    optimum.  The counterexample is the MDP of the book's chapter with three states, gamma = 9/10,
    and the book's schedule of period 8 with the spread 1/5: every state is updated at every step
    with a weight between 1/5 and 30.2, so that the weights sum to infinity.  From every start in an
    open set, CE repeats the same greedy actions forever and its values do not converge: no value is
    ever within 4.3 of its optimum, and that of s_0 falls more than 18 below it once per period.
    The theorems are [conjecture_on_ce_is_false] and [conjecture_refuted].

    The proof uses a *trapping box*.  CE depends on the values only through the greedy actions.
    Given these actions, the states do not influence each other.  Enclose the parameters before each
    of the eight steps in a box (the table [phases] below).  Then

    - the parameters in box [k] bound the values, which determine the greedy actions of step [k];
    - these greedy actions lead from box [k] into box [k + 1], and from box 7 into box 0.

    All states have three actions, as in [pu_lib].  The third action of s_1 and s_2 ends the episode
    with reward -2; it is never greedy, and its initial probability must not be too large. *)

Require Import Reals Arith Lra Lia List.
Import ListNotations.
From Interval Require Import Tactic.
From PolicyUpdates Require Import Definitions CrossEntropyInterval.
Open Scope R_scope.

(** ** The MDP *)

(** The successor for each state and action; [None] ends the episode. *)
Definition successors : list (list (option nat)) :=
  [[Some 0; Some 2; Some 1];
   [Some 0; None;   None];
   [None;   Some 0; None]]%nat.

Definition rewards : list (list R) :=
  [[1;  0;  1];
   [2; -1; -2];
   [2; -1; -2]].

Definition transition (s a s' : nat) : R :=
  match nth a (nth s successors []) None with
  | Some j => if s' =? j then 1 else 0
  | None => 0
  end.

Definition reward (s a : nat) : R := nth a (nth s rewards []) 0.

(** Split a natural number below 3 (or below 8) into cases. *)
Ltac cases n := repeat (destruct n as [|n]; [| try (exfalso; lia)]).

(** The MDP is valid: probabilities sum to at most 1, and the discount is below 1. *)
Lemma transition_nonneg : forall s a s', (s < 3)%nat -> (a < 3)%nat -> (s' < 3)%nat ->
  0 <= transition s a s'.
Proof.
  intros s a s' _ _ _. unfold transition.
  destruct (nth a (nth s successors []) None) as [j|]; [destruct (s' =? j)|]; lra.
Qed.

Lemma transition_sum : forall s a, (s < 3)%nat -> (a < 3)%nat -> sum 3 (transition s a) <= 1.
Proof.
  intros s a Hs Ha. cases s; cases a; cbn; lra.
Qed.

Lemma discount_range : 0 <= 9 / 10 < 1.
Proof. lra. Qed.

Definition process : MDP := {|
  n_states := 3; n_actions := 3; P := transition; r := reward; gamma := 9 / 10;
  two_actions := le_S 2 2 (le_n 2);
  P_nonneg := transition_nonneg; P_sum := transition_sum; gamma_range := discount_range |}.

(** The nine action values, in explicit form. *)
Definition q_table (v : nat -> R) (s a : nat) : R :=
  nth a (nth s
    [[1 + 9 / 10 * v 0%nat; 9 / 10 * v 2%nat; 1 + 9 / 10 * v 1%nat];
     [2 + 9 / 10 * v 0%nat; -1; -2];
     [2; -1 + 9 / 10 * v 0%nat; -2]] []) 0.

(** The definition of q gives the table. *)
Lemma q_of_process : forall v s a, (s < 3)%nat -> (a < 3)%nat ->
  q_of process v s a = q_table v s a.
Proof.
  intros v s a Hs Ha. unfold q_of, process, transition, reward; cbn [n_states gamma P r].
  cases s; cases a; cbn; lra.
Qed.

(** ** The optimal values *)

(** v_*(s_0) = 280/19 = 14.7368..., v_*(s_1) = 290/19, v_*(s_2) = 233/19. *)
Definition v_star (s : nat) : R := nth s [280 / 19; 290 / 19; 233 / 19] 0.

(** [v] are the optimal values: a policy attains them, and no policy exceeds them in any state. *)
Definition is_optimal (M : MDP) (v : nat -> R) : Prop :=
  (exists pi, is_policy M pi /\ is_value M pi v) /\
  forall pi v', is_policy M pi -> is_value M pi v' -> forall s, (s < n_states M)%nat -> v' s <= v s.

(** The optimal policy takes a_2 in s_0, a_0 in s_1 and a_1 in s_2. *)
Definition best_action (s : nat) : nat := nth s [2; 0; 1]%nat 0%nat.
Definition best_policy (s a : nat) : R := if a =? best_action s then 1 else 0.

(** Bellman's optimality equation, v_*(s) = max_a q_*(s,a). *)
Theorem v_star_bellman : forall s, (s < 3)%nat ->
  (exists a, (a < 3)%nat /\ v_star s = q_of process v_star s a) /\
  forall a, (a < 3)%nat -> q_of process v_star s a <= v_star s.
Proof.
  intros s Hs. split.
  - exists (best_action s).
    cases s; (split; [cbn; lia | rewrite q_of_process by (cbn; lia); cbn; lra]).
  - intros a Ha. rewrite q_of_process by lia. cases s; cases a; cbn; lra.
Qed.

(** The Bellman equation of any policy, in explicit form. *)
Lemma value_equations : forall pi v, is_policy process pi -> is_value process pi v ->
  v 0%nat = pi 0%nat 0%nat * (1 + 9 / 10 * v 0%nat) + pi 0%nat 1%nat * (9 / 10 * v 2%nat)
            + pi 0%nat 2%nat * (1 + 9 / 10 * v 1%nat) /\
  v 1%nat = pi 1%nat 0%nat * (2 + 9 / 10 * v 0%nat) - pi 1%nat 1%nat - 2 * pi 1%nat 2%nat /\
  v 2%nat = 2 * pi 2%nat 0%nat + pi 2%nat 1%nat * (-1 + 9 / 10 * v 0%nat) - 2 * pi 2%nat 2%nat.
Proof.
  intros pi v Hpi Hv. unfold is_value in Hv. cbn [n_states process] in Hv.
  pose proof (Hv 0%nat ltac:(lia)) as H0. pose proof (Hv 1%nat ltac:(lia)) as H1.
  pose proof (Hv 2%nat ltac:(lia)) as H2.
  cbn [n_actions process sum] in H0, H1, H2. rewrite !q_of_process in H0, H1, H2 by lia.
  cbn in H0, H1, H2. lra.
Qed.

(** The probabilities of a policy are between 0 and 1, and those of a state sum to 1. *)
Lemma policy_facts : forall pi s, is_policy process pi -> (s < 3)%nat ->
  0 <= pi s 0%nat /\ 0 <= pi s 1%nat /\ 0 <= pi s 2%nat /\
  pi s 0%nat + pi s 1%nat + pi s 2%nat = 1.
Proof.
  intros pi s Hpi Hs. destruct (Hpi s Hs) as [Hpos Hsum]. cbn [n_actions process] in Hpos.
  cbn [n_actions process sum] in Hsum.
  repeat split; try (apply Hpos; lia). lra.
Qed.

(** No policy has larger values: if v(s_0) exceeded v_*(s_0) by D, the successors would exceed
    their values by at most D, so that D <= 9/10 D. *)
Theorem v_star_optimal : is_optimal process v_star.
Proof.
  split.
  - exists best_policy. split.
    + intros s Hs. split; [intros a _; unfold best_policy; destruct (a =? _); lra|].
      cbn in Hs. cases s; cbn; lra.
    + intros s Hs. cbn [n_states process] in Hs. cbn [n_actions process sum].
      rewrite !q_of_process by lia. cases s; cbn; lra.
  - intros pi v Hpi Hv. destruct (value_equations pi v Hpi Hv) as [E0 [E1 E2]].
    destruct (policy_facts pi 0 Hpi ltac:(lia)) as [A0 [A1 [A2 A]]].
    destruct (policy_facts pi 1 Hpi ltac:(lia)) as [B0 [B1 [B2 B]]].
    destruct (policy_facts pi 2 Hpi ltac:(lia)) as [C0 [C1 [C2 C]]].
    set (D := Rmax 0 (v 0%nat - 280 / 19)).
    assert (HD : 0 <= D /\ v 0%nat - 280 / 19 <= D).
    { split; [apply Rmax_l | apply Rmax_r]. }
    (* in s_1 and s_2 the best action leads to s_0, so that the excess is at most 9/10 D *)
    assert (H1 : v 1%nat - 290 / 19 <= 9 / 10 * D) by nra.
    assert (H2 : v 2%nat - 233 / 19 <= 9 / 10 * D) by nra.
    assert (H0 : v 0%nat - 280 / 19 <= 9 / 10 * D) by nra.
    assert (D = 0) by (unfold D in *; unfold Rmax in *; destruct (Rle_dec 0 _); lra).
    intros s Hs. cbn in Hs. cases s; cbn; lra.
Qed.

(** ** The schedule *)

(** The spread 1/5 at every state and step plus the book's schedule of period 8: at step [k] of
    the period, one state has the additional weight 10, 20 or 30. *)
Definition scheduled (k : nat) : nat := nth k [2; 0; 0; 2; 1; 0; 1; 0]%nat 0%nat.
Definition extra (k : nat) : R := nth k [10; 30; 10; 10; 10; 10; 10; 20] 0.

Definition period_weight (k s : nat) : R := 1 / 5 + if s =? scheduled k then extra k else 0.

(** w_t(s) *)
Definition weight (t s : nat) : R := period_weight (t mod 8) s.

(** The greedy actions of s_0, s_1, s_2 at step [k] of the period (to be proved greedy). *)
Definition greedy (k s : nat) : nat :=
  nth s (nth k
    [[0; 0; 0];
     [1; 0; 0];
     [0; 0; 0];
     [0; 0; 1];
     [0; 0; 1];
     [2; 0; 1];
     [2; 1; 0];
     [2; 1; 0]] [])%nat 0%nat.

(** ** Coordinates

    Only differences of parameters matter.  The coordinates in s_0 are the parameters of a_0 and a_2
    relative to that of a_1. *)
Definition lead0 (theta : nat -> R) : R := theta 0%nat - theta 1%nat.
Definition lead2 (theta : nat -> R) : R := theta 2%nat - theta 1%nat.

(** The coordinates in s_1 and s_2 are the parameter of a_1 relative to that of a_0, and the mean of
    both relative to that of a_2. *)
Definition tilt (theta : nat -> R) : R := theta 1%nat - theta 0%nat.
Definition mean_lead (theta : nat -> R) : R := (theta 0%nat + theta 1%nat) / 2 - theta 2%nat.

(** The probabilities of a_0, a_1, a_2 in these coordinates, in s_0 ... *)
Definition prob0 (x y : R) : R := 1 / (1 + exp (- x) + exp (y - x)).
Definition prob1 (x y : R) : R := 1 / (exp x + 1 + exp y).
Definition prob2 (x y : R) : R := 1 / (exp (x - y) + exp (- y) + 1).

(** ... and of a_0 and a_1 in s_1 and s_2, where [e] is the probability of a_2. *)
Definition first (e d : R) : R := (1 - e) / (1 + exp d).
Definition second (e d : R) : R := (1 - e) / (1 + exp (- d)).

(** e^a / (e^a + e^b + e^c) depends on differences only. *)
Lemma softmax_ratio : forall a b c, exp a / (exp a + exp b + exp c) =
  1 / (1 + exp (b - a) + exp (c - a)).
Proof.
  intros a b c. unfold Rminus. rewrite !exp_plus, !exp_Ropp.
  pose proof (exp_pos a); pose proof (exp_pos b); pose proof (exp_pos c).
  field. split; lra.
Qed.

(** The coordinates give the policy of s_0, ... *)
Lemma softmax_s0 : forall theta, let x := lead0 theta in let y := lead2 theta in
  softmax 3 theta 0 = prob0 x y /\ softmax 3 theta 1 = prob1 x y /\ softmax 3 theta 2 = prob2 x y.
Proof.
  intros theta x y. unfold softmax, prob0, prob1, prob2, x, y, lead0, lead2; cbn [sum].
  set (a := theta 0%nat); set (b := theta 1%nat); set (c := theta 2%nat).
  (* each line: bring the action's own exponential to the front of the sum *)
  replace (0 + exp a + exp b + exp c) with (exp a + exp b + exp c) at 1 by ring.
  replace (0 + exp a + exp b + exp c) with (exp b + exp a + exp c) at 1 by ring.
  replace (0 + exp a + exp b + exp c) with (exp c + exp a + exp b) by ring.
  rewrite !softmax_ratio. repeat split; f_equal.
  - replace (- (a - b)) with (b - a) by ring. replace (c - b - (a - b)) with (c - a) by ring. ring.
  - ring.
  - replace (a - b - (c - b)) with (a - c) by ring. replace (- (c - b)) with (b - c) by ring. ring.
Qed.

(** ... and, with the probability of a_2, that of s_1 and s_2. *)
Lemma softmax_pair : forall theta, let e := softmax 3 theta 2 in
  softmax 3 theta 0 = first e (tilt theta) /\ softmax 3 theta 1 = second e (tilt theta).
Proof.
  intros theta e. unfold e, softmax, first, second, tilt; cbn [sum].
  set (a := theta 0%nat); set (b := theta 1%nat); set (c := theta 2%nat).
  replace (- (b - a)) with (a - b) by ring. unfold Rminus. rewrite !exp_plus, !exp_Ropp.
  pose proof (exp_pos a); pose proof (exp_pos b); pose proof (exp_pos c).
  split; field; repeat split; lra.
Qed.

(** If the mean parameter of a_0 and a_1 exceeds that of a_2 by 10, the probability of a_2 is below
    1/20000, because one of the two exceeds it by at least 10. *)
Lemma stray_small : forall theta, 10 <= mean_lead theta -> 0 <= softmax 3 theta 2 <= 1 / 20000.
Proof.
  intros theta H. unfold softmax, mean_lead in *; cbn [sum].
  set (a := theta 0%nat) in *; set (b := theta 1%nat) in *; set (c := theta 2%nat) in *.
  replace (0 + exp a + exp b + exp c) with (exp c + exp a + exp b) by ring.
  rewrite softmax_ratio. pose proof (exp_pos (a - c)); pose proof (exp_pos (b - c)).
  assert (20000 <= exp (a - c) + exp (b - c)).
  { assert (big : forall z, 10 <= z -> 20000 <= exp z).
    { intros z Hz. apply Rle_trans with (exp 10); [interval with (i_prec 40)|].
      destruct Hz as [Hz|Hz]; [left; apply exp_increasing; lra | rewrite Hz; lra]. }
    destruct (Rle_dec a b); [pose proof (big (b - c)) | pose proof (big (a - c))]; lra. }
  split.
  - apply Rlt_le, Rdiv_lt_0_compat; lra.
  - unfold Rdiv. rewrite !Rmult_1_l. apply Rinv_le_contravar; lra.
Qed.

(** One CE update with greedy action [g] and weight [w], in the coordinates. *)
Definition hit (g a : nat) : R := if a =? g then 1 else 0.
Definition move0 (w : R) (g : nat) (x y : R) : R :=
  x + w * ((hit g 0 - prob0 x y) - (hit g 1 - prob1 x y)).
Definition move2 (w : R) (g : nat) (x y : R) : R :=
  y + w * ((hit g 2 - prob2 x y) - (hit g 1 - prob1 x y)).
Definition move_tilt (w : R) (g : nat) (e d : R) : R :=
  d + w * ((hit g 1 - second e d) - (hit g 0 - first e d)).

(** [theta'] is [theta] after one CE update with greedy action [g] in one state. *)
Definition ce_update (w : R) (g : nat) (theta theta' : nat -> R) : Prop :=
  forall a, (a < 3)%nat -> theta' a = ce_formula 3 w g theta a.

(** One CE update in s_0 is [move0], [move2] in the coordinates. *)
Lemma update_s0 : forall w g theta theta', ce_update w g theta theta' ->
  lead0 theta' = move0 w g (lead0 theta) (lead2 theta) /\
  lead2 theta' = move2 w g (lead0 theta) (lead2 theta).
Proof.
  intros w g theta theta' H. destruct (softmax_s0 theta) as [S0 [S1 S2]].
  unfold lead0 at 1, lead2 at 2. rewrite !H by lia. unfold ce_formula, move0, move2, hit.
  rewrite S0, S1, S2. unfold lead0, lead2. split; ring.
Qed.

(** In s_1 and s_2, the mean of a_0 and a_1 never decreases relative to a_2, which is never
    greedy. *)
Lemma update_pair : forall w g theta theta', (g < 2)%nat -> 0 <= w -> ce_update w g theta theta' ->
  tilt theta' = move_tilt w g (softmax 3 theta 2) (tilt theta) /\
  mean_lead theta <= mean_lead theta'.
Proof.
  intros w g theta theta' Hg Hw H. destruct (softmax_pair theta) as [S0 S1].
  assert (one : softmax 3 theta 0 + softmax 3 theta 1 + softmax 3 theta 2 = 1).
  { unfold softmax; cbn [sum]. pose proof (exp_pos (theta 0%nat)).
    pose proof (exp_pos (theta 1%nat)); pose proof (exp_pos (theta 2%nat)). field. lra. }
  assert (pos : 0 <= softmax 3 theta 2).
  { unfold softmax; cbn [sum]. pose proof (exp_pos (theta 0%nat)).
    pose proof (exp_pos (theta 1%nat)); pose proof (exp_pos (theta 2%nat)).
    apply Rlt_le, Rdiv_lt_0_compat; lra. }
  split.
  - unfold tilt at 1. rewrite !H by lia. unfold ce_formula, move_tilt, hit.
    rewrite <- S0, <- S1. unfold tilt. ring.
  - (* the mean lead grows by 3/2 w pi(a_2) *)
    unfold mean_lead. rewrite !H by lia. unfold ce_formula.
    assert (hits : (if (0 =? g)%nat then 1 else 0) + (if (1 =? g)%nat then 1 else 0) = 1)
      by (cases g; cbn; lra).
    assert (none : (if (2 =? g)%nat then 1 else 0) = 0) by (cases g; cbn; lra).
    rewrite none. assert (0 <= w * softmax 3 theta 2) by (apply Rmult_le_pos; lra).
    replace (softmax 3 theta 2) with (1 - softmax 3 theta 0 - softmax 3 theta 1) at 1 2 by lra.
    nra.
Qed.

(** ** The values, solved from the Bellman equations

    [p1], [p2] are the probabilities of a_1, a_2 in s_0; [a], [b], [e] those of the three actions in
    s_1, and [a'], [b'], [e'] in s_2. *)
Definition value0 (p1 p2 a b e a' b' e' : R) : R :=
  (1 - p1 * (1 - 9 / 10 * (2 * a' - b' - 2 * e')) + p2 * (9 / 10 * (2 * a - b - 2 * e)))
  / (1 / 10 + p1 * (9 / 10 - 81 / 100 * b') + p2 * (9 / 10 - 81 / 100 * a)).
Definition value1 (a b e v0 : R) : R := a * (2 + 9 / 10 * v0) - b - 2 * e.
Definition value2 (a b e v0 : R) : R := 2 * a + b * (-1 + 9 / 10 * v0) - 2 * e.

Definition solution (pi : nat -> nat -> R) (s : nat) : R :=
  let v0 := value0 (pi 0%nat 1%nat) (pi 0%nat 2%nat)
    (pi 1%nat 0%nat) (pi 1%nat 1%nat) (pi 1%nat 2%nat)
    (pi 2%nat 0%nat) (pi 2%nat 1%nat) (pi 2%nat 2%nat) in
  nth s [v0; value1 (pi 1%nat 0%nat) (pi 1%nat 1%nat) (pi 1%nat 2%nat) v0;
         value2 (pi 2%nat 0%nat) (pi 2%nat 1%nat) (pi 2%nat 2%nat) v0] 0.

(** The denominator is at least 1/10. *)
Lemma denominator_pos : forall p1 p2 a b', 0 <= p1 -> 0 <= p2 -> a <= 1 -> b' <= 1 ->
  0 < 1 / 10 + p1 * (9 / 10 - 81 / 100 * b') + p2 * (9 / 10 - 81 / 100 * a).
Proof.
  intros p1 p2 a b' H1 H2 Ha Hb.
  assert (0 <= p1 * (9 / 10 - 81 / 100 * b')) by (apply Rmult_le_pos; lra).
  assert (0 <= p2 * (9 / 10 - 81 / 100 * a)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** Multiplication of an equation by its denominator. *)
Lemma quotient_times : forall n d, 0 < d -> n / d * d = n.
Proof. intros n d H. field. lra. Qed.

(** A policy has exactly one value function, the solution. *)
Theorem values_solved : forall pi v, is_policy process pi ->
  is_value process pi v <-> forall s, (s < 3)%nat -> v s = solution pi s.
Proof.
  intros pi v Hpi.
  destruct (policy_facts pi 0 Hpi ltac:(lia)) as [A0 [A1 [A2 A]]].
  destruct (policy_facts pi 1 Hpi ltac:(lia)) as [B0 [B1 [B2 B]]].
  destruct (policy_facts pi 2 Hpi ltac:(lia)) as [C0 [C1 [C2 C]]].
  pose proof (denominator_pos (pi 0%nat 1%nat) (pi 0%nat 2%nat) (pi 1%nat 0%nat) (pi 2%nat 1%nat)
    A1 A2 ltac:(lra) ltac:(lra)) as pos.
  split.
  - intros Hv. destruct (value_equations pi v Hpi Hv) as [E0 [E1 E2]].
    (* eliminate v(s_1) and v(s_2): one linear equation for v(s_0) *)
    assert (V0 : v 0%nat = solution pi 0).
    { unfold solution; cbn [nth]. unfold value0. rewrite E1, E2 in E0.
      replace (pi 0%nat 0%nat) with (1 - pi 0%nat 1%nat - pi 0%nat 2%nat) in E0 by lra.
      apply Rmult_eq_reg_r with (2 := Rgt_not_eq _ _ pos).
      rewrite quotient_times by exact pos. lra. }
    intros s Hs. cases s; [exact V0 | |]; unfold solution in V0 |- *; cbn [nth] in V0 |- *;
      rewrite <- V0; [exact E1 | exact E2].
  - intros Hv s Hs. cbn [n_states process] in Hs. cbn [n_actions process sum].
    rewrite !q_of_process by lia.
    pose proof (Hv 0%nat ltac:(lia)) as V0; pose proof (Hv 1%nat ltac:(lia)) as V1;
      pose proof (Hv 2%nat ltac:(lia)) as V2.
    unfold solution in V0, V1, V2; cbn [nth] in V0, V1, V2. rewrite <- V0 in V1, V2.
    unfold value1, value2 in V1, V2.
    cases s; unfold q_table; cbn [nth]; [| lra | lra].
    (* the equation of s_0, multiplied by the denominator *)
    apply (f_equal (fun z => z * (1 / 10 + pi 0%nat 1%nat * (9 / 10 - 81 / 100 * pi 2%nat 1%nat)
      + pi 0%nat 2%nat * (9 / 10 - 81 / 100 * pi 1%nat 0%nat)))) in V0.
    unfold value0 in V0. rewrite quotient_times in V0 by exact pos.
    rewrite V1, V2.
    replace (pi 0%nat 0%nat) with (1 - pi 0%nat 1%nat - pi 0%nat 2%nat) by lra. lra.
Qed.

(** ** The trapping boxes *)

Record Phase := box {
  lead0_in : R * R; lead2_in : R * R;   (* the parameters of s_0 *)
  tilt1_in : R * R; tilt2_in : R * R;   (* of s_1, of s_2 *)
  v0_in : R * R; v1_in : R * R; v2_in : R * R   (* the values *)
}.

(** Before step [k] of the period:
<<
    lead of a_0         of a_2 (in s_0)     tilt in s_1         in s_2
    v(s_0)              v(s_1)              v(s_2)
>> *)
Definition phases : list Phase := [
  box (14.9, 15.3)      (34.9, 35.4)        (3.9, 4.2)          (3.1, 3.4)
      (0.1, 0.2)        (-1, -0.9)          (-0.9, -0.6);
  box (15.098, 15.501)  (34.699, 35.202)    (3.5, 3.81)         (-16.43, -16.34)
      (0.1, 0.2)        (-1, -0.9)          (1.99, 2.01);
  box (-15.104, -14.698) (-25.702, -25.196) (3.11, 3.42)        (-16.44, -16.33)
      (1.79, 1.81)      (-0.9, -0.7)        (1.99, 2.01);
  box (5.294, 5.703)    (-15.504, -14.995)  (2.72, 3.04)        (-16.45, -16.32)
      (9.5, 9.8)        (-0.6, -0.1)        (1.99, 2.01);
  box (5.294, 5.706)    (-15.505, -14.993)  (2.34, 2.66)        (3.94, 4.09)
      (9.8, 9.92)       (-0.4, 0.2)         (7.7, 7.86);
  box (5.294, 5.709)    (-15.506, -14.991)  (-16.41, -16.26)    (3.94, 4.1)
      (9.8, 9.92)       (10.8, 10.94)       (7.7, 7.86);
  box (-4.806, -4.422)  (-5.274, -4.739)    (-16.42, -16.25)    (3.94, 4.11)
      (-4.2, -3.8)      (-1.8, -1.4)        (-4.7, -4.2);
  box (-4.612, -4.226)  (-4.88, -4.343)     (3.97, 4.16)        (3.54, 3.72)
      (-3.9, -3.5)      (-1.1, -0.9)        (-4.4, -3.9)].

Definition no_box : Phase := box (0, 0) (0, 0) (0, 0) (0, 0) (0, 0) (0, 0) (0, 0).
Definition phase (k : nat) : Phase := nth k phases no_box.

(** The step after step [k] of the period. *)
Definition next (k : nat) : nat := if k =? 7 then 0 else S k.

Definition within (range : R * R) (z : R) : Prop := fst range <= z <= snd range.

(** The parameters [theta s a] are in box [k]. *)
Definition in_phase (k : nat) (theta : nat -> nat -> R) : Prop :=
  within (lead0_in (phase k)) (lead0 (theta 0%nat)) /\
  within (lead2_in (phase k)) (lead2 (theta 0%nat)) /\
  within (tilt1_in (phase k)) (tilt (theta 1%nat)) /\
  within (tilt2_in (phase k)) (tilt (theta 2%nat)) /\
  10 <= mean_lead (theta 1%nat) /\ 10 <= mean_lead (theta 2%nat).

(** Replace the tables by their entries. *)
Ltac look_up :=
  unfold within, period_weight, scheduled, extra, greedy, hit, next, phase, phases in *;
  cbn [nth fst snd Nat.eqb
    lead0_in lead2_in tilt1_in tilt2_in v0_in v1_in v2_in] in *.

(** *** From the parameters to the values *)

(** The table encloses v(s_0) ... *)
Lemma v0_enclosed : forall k x y d e d' e', (k < 8)%nat ->
  within (lead0_in (phase k)) x -> within (lead2_in (phase k)) y ->
  within (tilt1_in (phase k)) d -> within (tilt2_in (phase k)) d' ->
  0 <= e <= 1 / 20000 -> 0 <= e' <= 1 / 20000 ->
  within (v0_in (phase k))
    (value0 (prob1 x y) (prob2 x y) (first e d) (second e d) e (first e' d') (second e' d') e').
Proof.
  intros k x y d e d' e' Hk Hx Hy Hd Hd' He He'. unfold value0, prob1, prob2, first, second.
  cases k; look_up; interval with (i_prec 40).
Qed.

(** ... and, with it, v(s_1) ... *)
Lemma v1_enclosed : forall k d e v0, (k < 8)%nat ->
  within (tilt1_in (phase k)) d -> 0 <= e <= 1 / 20000 -> within (v0_in (phase k)) v0 ->
  within (v1_in (phase k)) (value1 (first e d) (second e d) e v0).
Proof.
  intros k d e v0 Hk Hd He Hv. unfold value1, first, second.
  cases k; look_up; interval with (i_prec 40).
Qed.

(** ... and v(s_2). *)
Lemma v2_enclosed : forall k d e v0, (k < 8)%nat ->
  within (tilt2_in (phase k)) d -> 0 <= e <= 1 / 20000 -> within (v0_in (phase k)) v0 ->
  within (v2_in (phase k)) (value2 (first e d) (second e d) e v0).
Proof.
  intros k d e v0 Hk Hd He Hv. unfold value2, first, second.
  cases k; look_up; interval with (i_prec 40).
Qed.

(** *** From the values to the greedy actions *)

(** The greedy action has a larger value than every other action in every state. *)
Lemma greedy_strict : forall k v s a, (k < 8)%nat -> (s < 3)%nat -> (a < 3)%nat ->
  within (v0_in (phase k)) (v 0%nat) -> within (v1_in (phase k)) (v 1%nat) ->
  within (v2_in (phase k)) (v 2%nat) -> a <> greedy k s ->
  q_table v s a < q_table v s (greedy k s).
Proof.
  intros k v s a Hk Hs Ha H0 H1 H2 Hne. unfold q_table.
  cases k; cases s; cases a; look_up;
    first [exfalso; apply Hne; reflexivity | lra].
Qed.

(** *** From one box to the next *)

(** In s_0, the tactic splits the two coordinates into small boxes. *)
Lemma step_s0 : forall k x y, (k < 8)%nat ->
  within (lead0_in (phase k)) x -> within (lead2_in (phase k)) y ->
  within (lead0_in (phase (next k))) (move0 (period_weight k 0) (greedy k 0) x y) /\
  within (lead2_in (phase (next k))) (move2 (period_weight k 0) (greedy k 0) x y).
Proof.
  intros k x y Hk Hx Hy. unfold move0, move2, prob0, prob1, prob2.
  cases k; look_up; split; interval with (i_bisect x, i_bisect y, i_prec 40).
Qed.

(** In s_1 and s_2, there is one coordinate; of the third action, only the probability [e] is
    used. *)
Lemma step_s1 : forall k e d, (k < 8)%nat -> 0 <= e <= 1 / 20000 ->
  within (tilt1_in (phase k)) d ->
  within (tilt1_in (phase (next k))) (move_tilt (period_weight k 1) (greedy k 1) e d).
Proof.
  intros k e d Hk He Hd. unfold move_tilt, first, second.
  cases k; look_up; interval with (i_bisect d, i_prec 40).
Qed.

Lemma step_s2 : forall k e d, (k < 8)%nat -> 0 <= e <= 1 / 20000 ->
  within (tilt2_in (phase k)) d ->
  within (tilt2_in (phase (next k))) (move_tilt (period_weight k 2) (greedy k 2) e d).
Proof.
  intros k e d Hk He Hd. unfold move_tilt, first, second.
  cases k; look_up; interval with (i_bisect d, i_prec 40).
Qed.

(** ** The run stays in the boxes *)

(** A softmax is a policy. *)
Lemma softmax_policy : forall theta, is_policy process (policy_of process softmax theta).
Proof.
  intros theta s _. unfold policy_of, softmax; cbn [n_actions process].
  assert (pos : 0 < sum 3 (fun b => exp (theta s b))).
  { cbn [sum]. pose proof (exp_pos (theta s 0%nat)); pose proof (exp_pos (theta s 1%nat)).
    pose proof (exp_pos (theta s 2%nat)). lra. }
  split.
  - intros a _. apply Rlt_le, Rdiv_lt_0_compat; [apply exp_pos | exact pos].
  - cbn [sum] in *. field. lra.
Qed.

(** In s_1 and s_2, the third action is never greedy. *)
Lemma greedy_pair : forall k s, (k < 8)%nat -> (1 <= s < 3)%nat -> (greedy k s < 2)%nat.
Proof. intros k s Hk Hs. destruct s as [|s]; [lia|]. cases k; cases s; cbn; lia. Qed.

(** No weight is negative. *)
Lemma period_weight_pos : forall k s, (k < 8)%nat -> 0 <= period_weight k s.
Proof.
  intros k s Hk. unfold period_weight, extra.
  destruct (s =? scheduled k); cases k; cbn [nth]; lra.
Qed.

(** In box [k], the values are in the ranges of the table. *)
Lemma values_in_phase : forall k theta v, (k < 8)%nat -> in_phase k theta ->
  is_value process (policy_of process softmax theta) v ->
  within (v0_in (phase k)) (v 0%nat) /\ within (v1_in (phase k)) (v 1%nat) /\
  within (v2_in (phase k)) (v 2%nat).
Proof.
  intros k theta v Hk [Hx [Hy [Hd [Hd' [He He']]]]] Hv.
  apply stray_small in He. apply stray_small in He'.
  destruct (softmax_s0 (theta 0%nat)) as [_ [S1 S2]].
  destruct (softmax_pair (theta 1%nat)) as [T0 T1].
  destruct (softmax_pair (theta 2%nat)) as [U0 U1].
  pose proof (proj1 (values_solved _ v (softmax_policy theta)) Hv) as V.
  pose proof (V 0%nat ltac:(lia)) as V0; pose proof (V 1%nat ltac:(lia)) as V1;
    pose proof (V 2%nat ltac:(lia)) as V2.
  (* write the values in terms of the coordinates *)
  unfold solution, policy_of in V0, V1, V2; cbn [nth n_actions process] in V0, V1, V2.
  rewrite <- V0 in V1, V2. rewrite S1, S2, T0, T1, U0, U1 in V0. rewrite T0, T1 in V1.
  rewrite U0, U1 in V2.
  assert (E0 : within (v0_in (phase k)) (v 0%nat)) by (rewrite V0; apply v0_enclosed; assumption).
  split; [exact E0|].
  split; [rewrite V1; apply v1_enclosed | rewrite V2; apply v2_enclosed]; assumption.
Qed.

(** In box [k], the action [greedy k s] is greedy, and no other action is. *)
Lemma greedy_in_phase : forall k theta v s g, (k < 8)%nat -> in_phase k theta ->
  is_value process (policy_of process softmax theta) v -> (s < 3)%nat ->
  is_greedy 3 (q_of process v s) g <-> g = greedy k s.
Proof.
  intros k theta v s g Hk Hin Hv Hs.
  destruct (values_in_phase k theta v Hk Hin Hv) as [V0 [V1 V2]].
  assert (G : (greedy k s < 3)%nat) by (cases k; cases s; cbn; lia).
  pose proof (fun a Ha => greedy_strict k v s a Hk Hs Ha V0 V1 V2) as strict.
  split.
  - intros [Hg best]. destruct (Nat.eq_dec g (greedy k s)) as [E|N]; [exact E | exfalso].
    pose proof (best _ G) as B. rewrite !q_of_process in B by assumption.
    pose proof (strict g Hg N). lra.
  - intros ->. split; [exact G|]. intros a Ha. rewrite !q_of_process by assumption.
    destruct (Nat.eq_dec a (greedy k s)) as [->|N]; [lra|]. left. exact (strict a Ha N).
Qed.

(** CE leads from each box into the next one. *)
Lemma in_next_phase : forall k theta theta', (k < 8)%nat -> in_phase k theta ->
  (forall s, (s < 3)%nat -> ce_update (period_weight k s) (greedy k s) (theta s) (theta' s)) ->
  in_phase (next k) theta'.
Proof.
  intros k theta theta' Hk [Hx [Hy [Hd [Hd' [He He']]]]] U.
  destruct (update_s0 _ _ _ _ (U 0%nat ltac:(lia))) as [X Y].
  destruct (update_pair _ _ _ _ (greedy_pair k 1 Hk ltac:(lia)) (period_weight_pos k 1 Hk)
    (U 1%nat ltac:(lia))) as [T1 M1].
  destruct (update_pair _ _ _ _ (greedy_pair k 2 Hk ltac:(lia)) (period_weight_pos k 2 Hk)
    (U 2%nat ltac:(lia))) as [T2 M2].
  pose proof (stray_small _ He) as E1; pose proof (stray_small _ He') as E2.
  unfold in_phase. rewrite X, Y, T1, T2.
  split; [apply step_s0; assumption|]. split; [apply step_s0; assumption|].
  split; [apply step_s1; assumption|]. split; [apply step_s2; assumption|]. lra.
Qed.

(** The step of the period at time [t + 1] is the one after that at time [t]. *)
Lemma next_mod : forall t, S t mod 8 = next (t mod 8).
Proof.
  intros t. pose proof (Nat.div_mod t 8 ltac:(lia)) as D.
  pose proof (Nat.mod_upper_bound t 8 ltac:(lia)) as B. unfold next.
  destruct (Nat.eqb_spec (t mod 8) 7) as [E|N].
  - symmetry. apply Nat.mod_unique with (q := S (t / 8)); lia.
  - symmetry. apply Nat.mod_unique with (q := (t / 8)%nat); lia.
Qed.

(** A run of CE that starts in box 0 is in box [t mod 8] before every step [t]. *)
Theorem trapped : forall theta v, in_phase 0 (theta 0%nat) ->
  is_run process softmax ce weight theta v -> forall t, in_phase (t mod 8) (theta t).
Proof.
  intros theta v H0 Hrun. induction t as [|t IH]; [exact H0|].
  pose proof (Nat.mod_upper_bound t 8 ltac:(lia)) as Hk.
  rewrite next_mod. destruct (Hrun t) as [Hv Hstep].
  apply in_next_phase with (theta := theta t); [exact Hk | exact IH |].
  intros s Hs. destruct (Hstep s Hs) as [g [Hg Hup]].
  apply (greedy_in_phase (t mod 8) (theta t) (v t) s g Hk IH Hv Hs) in Hg. subst g. exact Hup.
Qed.

(** ** Such a run exists from every start in box 0 *)

(** The parameters after [t] updates, from [theta]. *)
Fixpoint orbit (theta : nat -> nat -> R) (t : nat) : nat -> nat -> R :=
  match t with
  | O => theta
  | S u => fun s => ce_formula 3 (weight u s) (greedy (u mod 8) s) (orbit theta u s)
  end.

(** By the same induction, the run stays in the boxes, so that its actions are greedy. *)
Theorem run_exists : forall start, in_phase 0 start ->
  is_run process softmax ce weight (orbit start)
    (fun t => solution (policy_of process softmax (orbit start t))).
Proof.
  intros start H0.
  assert (inside : forall t, in_phase (t mod 8) (orbit start t)).
  { induction t as [|t IH]; [exact H0|]. rewrite next_mod.
    apply in_next_phase with (theta := orbit start t);
      [apply Nat.mod_upper_bound; lia | exact IH |].
    intros s Hs a Ha. reflexivity. }
  intros t.
  assert (Hv : is_value process (policy_of process softmax (orbit start t))
    (solution (policy_of process softmax (orbit start t)))).
  { apply values_solved; [apply softmax_policy | reflexivity]. }
  split; [exact Hv|]. intros s Hs. exists (greedy (t mod 8) s). split; [|reflexivity].
  apply (greedy_in_phase (t mod 8) (orbit start t)); try assumption; auto.
  apply Nat.mod_upper_bound; lia.
Qed.

(** ** The theorem *)

(** The set of starts: box 0 in explicit form.  Constants added to all parameters of a state do not
    matter.  The set has interior points: it contains any start near [centre]. *)
Definition is_start (theta : nat -> nat -> R) : Prop :=
  14.9 <= theta 0%nat 0%nat - theta 0%nat 1%nat <= 15.3 /\
  34.9 <= theta 0%nat 2%nat - theta 0%nat 1%nat <= 35.4 /\
  3.9 <= theta 1%nat 1%nat - theta 1%nat 0%nat <= 4.2 /\
  3.1 <= theta 2%nat 1%nat - theta 2%nat 0%nat <= 3.4 /\
  10 <= (theta 1%nat 0%nat + theta 1%nat 1%nat) / 2 - theta 1%nat 2%nat /\
  10 <= (theta 2%nat 0%nat + theta 2%nat 1%nat) / 2 - theta 2%nat 2%nat.

Definition centre (s a : nat) : R :=
  nth a (nth s
    [[15.1;   0;     35.15];
     [-2.025; 2.025; -20];
     [-1.625; 1.625; -20]] []) 0.

(** The distance of two parameters is below 1/20 in every coordinate. *)
Definition near (theta theta' : nat -> nat -> R) : Prop :=
  forall s a, (s < 3)%nat -> (a < 3)%nat -> Rabs (theta s a - theta' s a) < 1 / 20.

(** The explicit set is box 0. *)
Lemma start_in_phase : forall theta, is_start theta <-> in_phase 0 theta.
Proof. intros theta. reflexivity. Qed.

(** Differences change by less than 1/10. *)
Lemma near_centre : forall theta, near theta centre -> is_start theta.
Proof.
  intros theta H.
  assert (N : forall s a, (s < 3)%nat -> (a < 3)%nat ->
    centre s a - 1 / 20 < theta s a < centre s a + 1 / 20).
  { intros s a Hs Ha. pose proof (Rabs_def2 _ _ (H s a Hs Ha)). lra. }
  pose proof (N 0%nat 0%nat ltac:(lia) ltac:(lia)).
  pose proof (N 0%nat 1%nat ltac:(lia) ltac:(lia)).
  pose proof (N 0%nat 2%nat ltac:(lia) ltac:(lia)).
  pose proof (N 1%nat 0%nat ltac:(lia) ltac:(lia)).
  pose proof (N 1%nat 1%nat ltac:(lia) ltac:(lia)).
  pose proof (N 1%nat 2%nat ltac:(lia) ltac:(lia)).
  pose proof (N 2%nat 0%nat ltac:(lia) ltac:(lia)).
  pose proof (N 2%nat 1%nat ltac:(lia) ltac:(lia)).
  pose proof (N 2%nat 2%nat ltac:(lia) ltac:(lia)).
  unfold is_start, centre in *; cbn [nth] in *. lra.
Qed.

(** All weights are between 1/5 and 151/5. *)
Lemma weight_bounds : forall t s, 1 / 5 <= weight t s <= 151 / 5.
Proof.
  intros t s. pose proof (Nat.mod_upper_bound t 8 ltac:(lia)) as Hk.
  unfold weight, period_weight, extra. set (k := t mod 8) in *. clearbody k.
  destruct (s =? scheduled k); cases k; cbn [nth]; lra.
Qed.

(** The weights of each state sum to infinity. *)
Lemma weight_sum : forall s B, exists n, B < sum n (fun t => weight t s).
Proof.
  intros s B.
  assert (L : forall n, INR n / 5 <= sum n (fun t => weight t s)).
  { induction n as [|n IH]; [simpl; lra|]. rewrite S_INR. cbn [sum].
    pose proof (weight_bounds n s). lra. }
  destruct (archimed (5 * B)) as [up_above _]. exists (Z.to_nat (up (5 * B))).
  pose proof (L (Z.to_nat (up (5 * B)))) as Ln. rewrite INR_IZR_INZ in Ln.
  assert (IZR (up (5 * B)) <= IZR (Z.of_nat (Z.to_nat (up (5 * B))))) by (apply IZR_le; lia).
  lra.
Qed.

(** The values along a run are in the ranges of the table. *)
Lemma values_in_range : forall theta v, is_start (theta 0%nat) ->
  is_run process softmax ce weight theta v -> forall t,
  within (v0_in (phase (t mod 8))) (v t 0%nat) /\ within (v1_in (phase (t mod 8))) (v t 1%nat) /\
  within (v2_in (phase (t mod 8))) (v t 2%nat).
Proof.
  intros theta v H0 Hrun t. apply start_in_phase in H0.
  apply (values_in_phase (t mod 8) (theta t) (v t)).
  - apply Nat.mod_upper_bound; lia.
  - exact (trapped theta v H0 Hrun t).
  - apply Hrun.
Qed.

(** At no time is any state within 4.3 of its optimal value, nor s_0 within 4.8. *)
Lemma far_from_optimal : forall theta v, is_start (theta 0%nat) ->
  is_run process softmax ce weight theta v -> forall t,
  v_star 0 - v t 0%nat > 4.8 /\ forall s, (s < 3)%nat -> v_star s - v t s > 4.3.
Proof.
  intros theta v H0 Hrun t. pose proof (values_in_range theta v H0 Hrun t) as V.
  pose proof (Nat.mod_upper_bound t 8 ltac:(lia)) as Hk. set (k := t mod 8) in *. clearbody k.
  assert (U : v t 0%nat <= 9.92 /\ v t 1%nat <= 10.94 /\ v t 2%nat <= 7.86).
  { cases k; look_up; lra. }
  clear V. unfold v_star. split; [cbn [nth]; lra|]. intros s Hs. cases s; cbn [nth]; lra.
Qed.

(** v_t(s_0) is at least 9.8 four steps into each period, and at most -3.8 six steps into it. *)
Lemma highs_and_lows : forall theta v, is_start (theta 0%nat) ->
  is_run process softmax ce weight theta v -> forall n,
  9.8 <= v (8 * n + 4)%nat 0%nat /\ v (8 * n + 6)%nat 0%nat <= -3.8.
Proof.
  intros theta v H0 Hrun n.
  assert (position : forall k, (k < 8)%nat -> (8 * n + k) mod 8 = k).
  { intros k Hk. symmetry. apply Nat.mod_unique with (q := n); lia. }
  destruct (values_in_range theta v H0 Hrun (8 * n + 4)) as [A _].
  destruct (values_in_range theta v H0 Hrun (8 * n + 6)) as [B _].
  rewrite position in A, B by lia. look_up. lra.
Qed.

(** The conjecture on CE is false.  The weights are at least 1/5 and at most 30.2 at every state and
    step, and sum to infinity.  From every start of a set with interior points there is a run of CE.
    Along every run of CE from there, no value is ever within 4.3 of the optimal one; that of s_0 is
    never within 4.8, falls more than 18 below it once per period, and has no limit. *)
Theorem conjecture_on_ce_is_false :
  (forall t s, 1 / 5 <= weight t s <= 151 / 5) /\
  (forall s B, exists n, B < sum n (fun t => weight t s)) /\
  is_optimal process v_star /\
  (forall start, near start centre -> is_start start) /\
  (forall start, is_start start ->
    exists theta v, theta 0%nat = start /\ is_run process softmax ce weight theta v) /\
  forall theta v, is_start (theta 0%nat) -> is_run process softmax ce weight theta v ->
    (forall t s, (s < 3)%nat -> v_star s - v t s > 4.3) /\
    (forall t, v_star 0 - v t 0%nat > 4.8) /\
    (forall n, v_star 0 - v (8 * n + 6)%nat 0%nat > 18) /\
    (forall limit, ~ Un_cv (fun t => v t 0%nat) limit).
Proof.
  split; [exact weight_bounds|]. split; [exact weight_sum|]. split; [exact v_star_optimal|].
  split; [exact near_centre|]. split.
  { intros start H. exists (orbit start). eexists. split; [reflexivity|].
    apply run_exists, start_in_phase, H. }
  intros theta v H0 Hrun. pose proof (highs_and_lows theta v H0 Hrun) as HL.
  split; [intros t; apply (far_from_optimal theta v H0 Hrun t)|].
  split; [intros t; apply (far_from_optimal theta v H0 Hrun t)|].
  split; [intros n; pose proof (HL n); unfold v_star; cbn [nth]; lra|].
  (* a limit would be within 1 of numbers above 9.8 and of numbers below -3.8 *)
  intros limit cv. destruct (cv 1 Rlt_0_1) as [N HN].
  pose proof (HN (8 * N + 4)%nat ltac:(lia)) as A. pose proof (HN (8 * N + 6)%nat ltac:(lia)) as B.
  pose proof (HL N). unfold R_dist in A, B. apply Rabs_def2 in A. apply Rabs_def2 in B. lra.
Qed.

(** In particular, it is not true that in every MDP CE converges to the optimal values if the
    weights are bounded, bounded below by a positive number, and have infinite sums. *)
Corollary conjecture_refuted :
  ~ forall (M : MDP) (w : nat -> nat -> R) (low high : R) theta v vstar, 0 < low ->
      (forall t s, (s < n_states M)%nat -> low <= w t s <= high) ->
      (forall s B, (s < n_states M)%nat -> exists n, B < sum n (fun t => w t s)) ->
      is_optimal M vstar -> is_run M softmax ce w theta v ->
      forall s, (s < n_states M)%nat -> Un_cv (fun t => v t s) (vstar s).
Proof.
  intros conjecture.
  destruct conjecture_on_ce_is_false as [bounds [sums [best [ball [runs all]]]]].
  assert (start : is_start centre).
  { apply ball. intros s a _ _. rewrite Rminus_eq_0, Rabs_R0. lra. }
  destruct (runs centre start) as [theta [v [first_is Hrun]]]. rewrite <- first_is in start.
  destruct (all theta v start Hrun) as [_ [_ [_ none]]]. apply (none (v_star 0)).
  apply (conjecture process weight (1 / 5) (151 / 5) theta v v_star); auto; [lra | cbn; lia].
Qed.
