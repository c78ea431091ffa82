(** * Masked cross-entropy never lowers a value

    SCE is the cross-entropy step on the greedy action and the actions with negative advantage; the
    other parameters do not change.  [sce_monotone] is the counterpart of Proposition 2 for SCE.  It
    holds for a family of updates, [sign_respecting]: a step adds numbers that are not negative if
    the advantage is positive, and not positive if it is negative. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums Values Monotonicity StrictIncrease.
Open Scope R_scope.

(** Whether action [a] is in the set D: it is the greedy action or has a negative advantage. *)
Definition in_mask (n : nat) (q theta : nat -> R) (g a : nat) : bool :=
  if Rlt_dec (adv n (softmax n theta) q a) 0 then true else a =? g.

(** Softmax over D alone. *)
Definition masked_softmax (n : nat) (q theta : nat -> R) (g a : nat) : R :=
  exp (theta a) / sum n (fun b => if in_mask n q theta g b then exp (theta b) else 0).

(** SCE: theta_a + w (1_{a=g} - pi_D(a)) for a in D, and theta_a for every other action. *)
Definition sce_formula (n : nat) (w : R) (q : nat -> R) (g : nat) (theta : nat -> R) (a : nat) :
  R :=
  if in_mask n q theta g a
  then theta a + w * ((if a =? g then 1 else 0) - masked_softmax n q theta g a)
  else theta a.

Definition sce : Step := fun n w q theta theta' =>
  exists g, is_greedy n q g /\ forall a, (a < n)%nat -> theta' a = sce_formula n w q g theta a.

(** The family: the numbers that a step adds have the sign of the advantage or are zero. *)
Definition sign_respecting : Step := fun n w q theta theta' =>
  forall a, (a < n)%nat ->
    (0 < adv n (softmax n theta) q a -> theta a <= theta' a) /\
    (adv n (softmax n theta) q a < 0 -> theta' a <= theta a).

(** ** One state *)

(** The greedy action is in D, so softmax over D gives it a positive probability of at most one. *)
Lemma masked_range : forall n q theta g, (g < n)%nat ->
  0 < masked_softmax n q theta g g <= 1.
Proof.
  intros n q theta g Hg. unfold masked_softmax.
  set (f := fun b => if in_mask n q theta g b then exp (theta b) else 0).
  assert (Hf : forall j, (j < n)%nat -> 0 <= f j).
  { intros j _. unfold f. destruct (in_mask n q theta g j); [left; apply exp_pos|lra]. }
  assert (Hm : in_mask n q theta g g = true).
  { unfold in_mask. destruct (Rlt_dec _ 0); [reflexivity|apply Nat.eqb_refl]. }
  pose proof (sum_term n f g Hf Hg) as H. unfold f in H at 1. rewrite Hm in H.
  pose proof (exp_pos (theta g)). change (exp (theta g) <= sum n f) in H. split.
  - apply Rdiv_lt_0_compat; [assumption|]. fold f. lra.
  - fold f. apply Rmult_le_reg_r with (sum n f); [lra|]. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** Softmax over D is positive. *)
Lemma masked_pos : forall n q theta g a, (g < n)%nat -> 0 < masked_softmax n q theta g a.
Proof.
  intros n q theta g a Hg. destruct (masked_range n q theta g Hg) as [H _].
  unfold masked_softmax in *. set (Z := sum n _) in *. pose proof (exp_pos (theta g)).
  assert (HZ : 0 < Z).
  { destruct (Rtotal_order 0 Z) as [L|[L|L]]; [exact L| |]; exfalso.
    - rewrite <- L in H. unfold Rdiv in H. rewrite Rinv_0 in H. lra.
    - pose proof (Rinv_lt_0_compat Z L). unfold Rdiv in H. nra. }
  apply Rdiv_lt_0_compat; [apply exp_pos|exact HZ].
Qed.

(** SCE belongs to the family. *)
Lemma sce_respects_sign : forall n w q theta theta', 0 <= w ->
  sce n w q theta theta' -> sign_respecting n w q theta theta'.
Proof.
  intros n w q theta theta' Hw [g [Hgreedy Hstep]] a Ha. rewrite (Hstep a Ha).
  pose proof (masked_range n q theta g (proj1 Hgreedy)) as Hr.
  pose proof (masked_pos n q theta g a (proj1 Hgreedy)) as Hp.
  unfold sce_formula, in_mask. split; intros Hadv.
  - destruct (Rlt_dec _ 0) as [L|_]; [exfalso; lra|].
    destruct (Nat.eqb_spec a g) as [->|_]; [nra|lra].
  - destruct (Rlt_dec _ 0) as [_|L]; [|contradiction].
    destruct (Nat.eqb_spec a g) as [->|_]; [exfalso|nra].
    pose proof (adv_greedy n theta q g Hgreedy). lra.
Qed.

(** No step of the family has a negative step advantage. *)
Lemma sign_respecting_step_advantage : forall n w q theta theta', (0 < n)%nat ->
  sign_respecting n w q theta theta' ->
  0 <= step_advantage n (softmax n theta) (softmax n theta') q.
Proof.
  intros n w q theta theta' Hn Hstep.
  apply sign_condition_softmax with (x := fun a => theta' a - theta a) (c := 1); [exact Hn| | |].
  - intros a _. ring.
  - intros a Ha L. rewrite <- exp_0. apply exp_le. pose proof (proj1 (Hstep a Ha) L). lra.
  - intros a Ha L. rewrite <- exp_0. apply exp_le. pose proof (proj2 (Hstep a Ha) L). lra.
Qed.

(** If the values are not all equal, an action has a negative advantage: their mean is zero, and the
    greedy one's is positive. *)
Lemma negative_exists : forall n theta q g, is_greedy n q g -> not_constant n q ->
  exists b, (b < n)%nat /\ adv n (softmax n theta) q b < 0.
Proof.
  intros n theta q g Hgreedy Hq. pose proof (proj1 Hgreedy) as Hg.
  apply (adv_greedy_pos n theta q g Hgreedy) in Hq.
  destruct (argmin n (adv n (softmax n theta) q) ltac:(lia)) as [b [Hb Hmin]].
  exists b. split; [exact Hb|]. apply Rnot_le_lt. intros L.
  pose proof (adv_mean n (softmax n theta) q (softmax_sum n theta ltac:(lia))) as H0.
  assert (0 < sum n (fun a => softmax n theta a * adv n (softmax n theta) q a)); [|lra].
  apply sum_pos with g; [|exact Hg|].
  - intros j Hj. apply Rmult_le_pos; [left; apply softmax_pos; lia|].
    specialize (Hmin j Hj). lra.
  - apply Rmult_lt_0_compat; [apply softmax_pos; lia|exact Hq].
Qed.

(** Softmax over D gives the greedy action a probability below one if another action is in D. *)
Lemma masked_lt_1 : forall n q theta g b, (g < n)%nat -> (b < n)%nat -> b <> g ->
  in_mask n q theta g b = true -> masked_softmax n q theta g g < 1.
Proof.
  intros n q theta g b Hg Hb Hne Hm. unfold masked_softmax.
  set (f := fun i => if in_mask n q theta g i then exp (theta i) else 0).
  assert (Hmg : in_mask n q theta g g = true).
  { unfold in_mask. destruct (Rlt_dec _ 0); [reflexivity|apply Nat.eqb_refl]. }
  assert (H : 0 < sum n (fun i => f i - (if i =? g then exp (theta g) else 0))).
  { apply sum_pos with b; [|exact Hb|]; unfold f.
    - intros j _. destruct (Nat.eqb_spec j g) as [->|_]; [rewrite Hmg; lra|].
      destruct (in_mask n q theta g j); [pose proof (exp_pos (theta j))|]; lra.
    - rewrite Hm. destruct (Nat.eqb_spec b g); [contradiction|].
      pose proof (exp_pos (theta b)). lra. }
  rewrite sum_minus, sum_single in H by exact Hg. fold f. pose proof (exp_pos (theta g)).
  apply Rmult_lt_reg_r with (sum n f); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** The step advantage of SCE is positive if the weight is positive and the values are not all
    equal. *)
Lemma sce_step_advantage_pos : forall n w q theta theta', 0 < w ->
  sce n w q theta theta' -> not_constant n q ->
  0 < step_advantage n (softmax n theta) (softmax n theta') q.
Proof.
  intros n w q theta theta' Hw Hsce Hq.
  pose proof (sce_respects_sign n w q theta theta' ltac:(lra) Hsce) as Hsign.
  destruct Hsce as [g [Hgreedy Hstep]]. pose proof (proj1 Hgreedy) as Hg.
  pose proof (proj2 (adv_greedy_pos n theta q g Hgreedy) Hq) as Hadv.
  destruct (negative_exists n theta q g Hgreedy Hq) as [b [Hb Lb]].
  assert (Hne : b <> g) by (intros ->; lra).
  assert (Hm : in_mask n q theta g b = true).
  { unfold in_mask. destruct (Rlt_dec _ 0); [reflexivity|contradiction]. }
  pose proof (masked_lt_1 n q theta g b Hg Hb Hne Hm) as Hlt.
  set (x := fun a => theta' a - theta a). set (p := softmax n theta).
  assert (Hpos : forall a, 0 < p a) by (intros a; apply softmax_pos; lia).
  assert (HG : 0 < sum n (fun i => p i * exp (x i))).
  { assert (H : forall i, 0 < p i * exp (x i)).
    { intros i. apply Rmult_lt_0_compat; [apply Hpos|apply exp_pos]. }
    apply (sum_pos n _ g); [intros; left; apply H|exact Hg|apply H]. }
  rewrite (step_advantage_factors n _ _ q (fun a => exp (x a)) 1).
  - apply Rmult_lt_0_compat; [apply Rinv_0_lt_compat, HG|]. fold p.
    apply sum_pos with g; [|exact Hg|].
    + intros j Hj. rewrite Rmult_assoc. apply Rmult_le_pos; [left; apply Hpos|].
      destruct (Hsign j Hj) as [Hup Hdown]. fold p in Hup, Hdown.
      destruct (Rtotal_order (adv n p q j) 0) as [L|[L|L]].
      * pose proof (exp_le (x j) 0 ltac:(unfold x; specialize (Hdown L); lra)) as E.
        rewrite exp_0 in E. nra.
      * rewrite L. lra.
      * pose proof (exp_le 0 (x j) ltac:(unfold x; specialize (Hup L); lra)) as E.
        rewrite exp_0 in E. nra.
    + assert (0 < x g).
      { unfold x. rewrite (Hstep g Hg). unfold sce_formula, in_mask. rewrite Nat.eqb_refl.
        destruct (Rlt_dec _ 0); nra. }
      pose proof (exp_increasing 0 (x g) ltac:(assumption)) as E. rewrite exp_0 in E.
      apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; [apply Hpos|lra]|exact Hadv].
  - apply softmax_distribution. lia.
  - apply softmax_distribution. lia.
  - apply softmax_shift; [lia|]. intros a _. unfold x. ring.
Qed.

(** ** Complete runs *)

(** *** The family: no value of a state or an action ever decreases. *)
Theorem sign_respecting_monotone : forall M w theta v,
  is_run M softmax sign_respecting w theta v ->
  forall t s, (s < n_states M)%nat -> v t s <= v (S t) s /\
    forall a, (a < n_actions M)%nat -> q_of M (v t) s a <= q_of M (v (S t)) s a.
Proof.
  intros M w theta v Hrun. apply (run_monotone M softmax sign_respecting w theta v Hrun).
  - intros t. apply softmax_policy.
  - intros t s Hs. apply (sign_respecting_step_advantage _ (w t s)).
    + pose proof (two_actions M). lia.
    + apply Hrun, Hs.
Qed.

(** *** SCE never lowers a value, and its step advantage is positive in every state with positive
    weight whose values are not all equal. *)
Theorem sce_monotone : forall M w theta v,
  is_run M softmax sce w theta v ->
  (forall t s, (s < n_states M)%nat -> 0 <= w t s) ->
  forall t s, (s < n_states M)%nat ->
    v t s <= v (S t) s /\
    (0 < w t s -> not_constant (n_actions M) (q_of M (v t) s) ->
     0 < step_advantage (n_actions M) (policy_of M softmax (theta t) s)
           (policy_of M softmax (theta (S t)) s) (q_of M (v t) s)).
Proof.
  intros M w theta v Hrun Hw t s Hs. split.
  - apply (sign_respecting_monotone M w theta v); [|exact Hs]. intros t'. split; [apply Hrun|].
    intros x Hx. apply sce_respects_sign; [apply Hw, Hx|apply Hrun, Hx].
  - intros L Hq. apply (sce_step_advantage_pos _ (w t s)); [exact L|apply Hrun, Hs|exact Hq].
Qed.

(** Such runs exist from any start and with any weights. *)
Theorem sce_run_exists : forall M w start,
  exists theta v, theta 0%nat = start /\ is_run M softmax sce w theta v.
Proof.
  intros M w start. apply softmax_run_exists. intros n x q theta Hn.
  destruct (greedy_exists n q ltac:(lia)) as [g Hg].
  exists (sce_formula n x q g theta). exists g. split; [exact Hg|reflexivity].
Qed.
