(** * The transfer of squares is monotone, bounded and quick out of corners, and forgets

    The update moves probability to the greedy action from every other action in proportion to the
    square of its probability.  [transfer_monotone]: it lowers no value.  [transfer_bounded]: its
    steps are bounded and leave corners at a pace that does not depend on the values.
    [transfer_forgets]: the way back is logarithmic in the number of updates.
    [transfer_breaks_sign_condition]: the update therefore violates the sign condition. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums Values Monotonicity StrictIncrease Forgetting.
Open Scope R_scope.

(** s: the sum of pi(b)^2 over the actions b <> g. *)
Definition squares (n : nat) (p : nat -> R) (g : nat) : R :=
  sum n (fun b => if b =? g then 0 else p b * p b).

(** alpha = min {1 - e^-w, pi(g) (e^w - 1) / s}. *)
Definition transfer_rate (n : nat) (w : R) (p : nat -> R) (g : nat) : R :=
  Rmin (1 - exp (- w)) (p g * (exp w - 1) / squares n p g).

(** pi'(b) = pi(b) (1 - alpha pi(b)) for b <> g, and pi'(g) = pi(g) + alpha s. *)
Definition transferred (n : nat) (w : R) (g : nat) (p : nat -> R) (b : nat) : R :=
  if b =? g then p g + transfer_rate n w p g * squares n p g
  else p b * (1 - transfer_rate n w p g * p b).

(** The softmax step with this policy: theta_a + log (pi'(a) / pi(a)). *)
Definition transfer_formula (n : nat) (w : R) (g : nat) (theta : nat -> R) (a : nat) : R :=
  theta a + ln (transferred n w g (softmax n theta) a / softmax n theta a).

Definition transfer : Step := fun n w q theta theta' =>
  exists g, is_greedy n q g /\ forall a, (a < n)%nat -> theta' a = transfer_formula n w g theta a.

(** ** One step *)

(** The other actions have a positive probability. *)
Lemma squares_pos : forall n theta g, (2 <= n)%nat -> (g < n)%nat ->
  0 < squares n (softmax n theta) g.
Proof.
  intros n theta g Hn Hg. assert (P : forall a, 0 < softmax n theta a)
    by (intros a; apply softmax_pos; lia).
  assert (H : exists b, (b < n)%nat /\ b <> g).
  { destruct (Nat.eq_dec g 0) as [->|Hne]; [exists 1%nat; lia|exists 0%nat; lia]. }
  destruct H as [b [Hb Hne]]. apply sum_pos with b; [|exact Hb|].
  - intros j _. pose proof (P j). destruct (j =? g); nra.
  - pose proof (P b). destruct (Nat.eqb_spec b g); [contradiction|nra].
Qed.

(** The bounds on alpha. *)
Lemma transfer_rate_range : forall n w theta g, (2 <= n)%nat -> (g < n)%nat -> 0 <= w ->
  let p := softmax n theta in let alpha := transfer_rate n w p g in
  0 <= alpha <= 1 - exp (- w) /\ alpha * squares n p g <= p g * (exp w - 1) /\
  (0 < w -> 0 < alpha).
Proof.
  intros n w theta g Hn Hg Hw p alpha. pose proof (squares_pos n theta g Hn Hg) as Hs. fold p in Hs.
  pose proof (softmax_pos n theta g ltac:(lia)) as Hp. fold p in Hp.
  assert (E : p g * (exp w - 1) / squares n p g * squares n p g = p g * (exp w - 1))
    by (field; lra).
  assert (Hpos : forall x, x <= p g * (exp w - 1) ->
    x / squares n p g <= p g * (exp w - 1) / squares n p g).
  { intros x Hx. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Hs|exact Hx]. }
  pose proof (exp_le 0 w Hw) as E1. pose proof (exp_le (- w) 0 ltac:(lra)) as E2.
  rewrite exp_0 in E1, E2.
  assert (H0 : 0 <= p g * (exp w - 1) / squares n p g).
  { specialize (Hpos 0 ltac:(nra)). unfold Rdiv in Hpos at 1. lra. }
  split; [split|split].
  - apply Rmin_glb; lra.
  - apply Rmin_l.
  - rewrite <- E. apply Rmult_le_compat_r; [lra|apply Rmin_r].
  - intros L. pose proof (exp_increasing 0 w L) as L1.
    pose proof (exp_increasing (- w) 0 ltac:(lra)) as L2. rewrite exp_0 in L1, L2.
    apply Rmin_glb_lt; [lra|]. apply Rdiv_lt_0_compat; [nra|exact Hs].
Qed.

(** The new policy is positive. *)
Lemma transferred_pos : forall n w theta g a, (2 <= n)%nat -> (g < n)%nat -> (a < n)%nat ->
  0 <= w -> 0 < transferred n w g (softmax n theta) a.
Proof.
  intros n w theta g a Hn Hg Ha Hw.
  destruct (transfer_rate_range n w theta g Hn Hg Hw) as [R [_ _]].
  pose proof (squares_pos n theta g Hn Hg). pose proof (exp_pos (- w)).
  set (p := softmax n theta) in *. set (alpha := transfer_rate n w p g) in *.
  assert (0 < p a) by (apply softmax_pos; lia). assert (0 < p g) by (apply softmax_pos; lia).
  assert (p a <= 1) by (apply softmax_le_1, Ha).
  unfold transferred. fold alpha. destruct (a =? g).
  - assert (0 <= alpha * squares n p g) by (apply Rmult_le_pos; lra). lra.
  - apply Rmult_lt_0_compat; [assumption|]. assert (alpha * p a <= alpha * 1)
      by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** The new policy sums to one. *)
Lemma transferred_sum : forall n w g p, (g < n)%nat -> sum n p = 1 ->
  sum n (transferred n w g p) = 1.
Proof.
  intros n w g p Hg H1. set (alpha := transfer_rate n w p g).
  rewrite (sum_ext n _ (fun b => p b + ((if b =? g then alpha * squares n p g else 0)
    - alpha * (if b =? g then 0 else p b * p b)))).
  - rewrite sum_plus, sum_minus, sum_single, sum_scal_l, H1 by exact Hg.
    fold (squares n p g). ring.
  - intros b _. unfold transferred. fold alpha. destruct (Nat.eqb_spec b g) as [->|_]; ring.
Qed.

(** The new policy is the softmax policy of the new parameters. *)
Lemma transfer_softmax : forall n w theta theta' g, (2 <= n)%nat -> (g < n)%nat -> 0 <= w ->
  (forall a, (a < n)%nat -> theta' a = transfer_formula n w g theta a) ->
  forall a, (a < n)%nat -> softmax n theta' a = transferred n w g (softmax n theta) a.
Proof.
  intros n w theta theta' g Hn Hg Hw Hstep a Ha.
  assert (E : forall b, (b < n)%nat -> softmax n theta b
    * exp (ln (transferred n w g (softmax n theta) b / softmax n theta b))
    = transferred n w g (softmax n theta) b).
  { intros b Hb. pose proof (softmax_pos n theta b ltac:(lia)).
    pose proof (transferred_pos n w theta g b Hn Hg Hb Hw).
    rewrite exp_ln by (apply Rdiv_lt_0_compat; assumption). field. lra. }
  rewrite (softmax_shift n theta theta' _ ltac:(lia) Hstep a Ha), (E a Ha).
  rewrite (sum_ext n _ _ E), transferred_sum; [field|exact Hg|apply softmax_sum; lia].
Qed.

(** The probability that the other actions lose goes to g. *)
Lemma transfer_advantage : forall n w theta theta' q g, (2 <= n)%nat -> (g < n)%nat -> 0 <= w ->
  (forall a, (a < n)%nat -> theta' a = transfer_formula n w g theta a) ->
  step_advantage n (softmax n theta) (softmax n theta') q
  = transfer_rate n w (softmax n theta) g * sum n (fun b =>
      if b =? g then 0 else softmax n theta b * softmax n theta b * (q g - q b)).
Proof.
  intros n w theta theta' q g Hn Hg Hw Hstep. unfold step_advantage.
  set (p := softmax n theta). set (alpha := transfer_rate n w p g).
  rewrite (sum_ext n _ (fun b => (if b =? g then alpha * squares n p g * q g else 0)
    - alpha * (if b =? g then 0 else p b * p b * q b))).
  - rewrite sum_minus, sum_single, sum_scal_l by exact Hg.
    rewrite (sum_ext n (fun b => if b =? g then 0 else p b * p b * (q g - q b))
      (fun b => (if b =? g then 0 else p b * p b) * q g
        - (if b =? g then 0 else p b * p b * q b))) by (intros b _; destruct (b =? g); ring).
    rewrite sum_minus, sum_scal_r. fold (squares n p g). ring.
  - intros b Hb. rewrite (transfer_softmax n w theta theta' g Hn Hg Hw Hstep b Hb). fold p.
    unfold transferred. fold alpha. destruct (Nat.eqb_spec b g) as [->|_]; ring.
Qed.

(** *** No value decreases. *)
Theorem transfer_monotone : forall M w theta v,
  is_run M softmax transfer w theta v ->
  (forall t s, (s < n_states M)%nat -> 0 <= w t s) ->
  forall t s, (s < n_states M)%nat ->
    v t s <= v (S t) s /\
    (0 < w t s -> not_constant (n_actions M) (q_of M (v t) s) ->
     0 < step_advantage (n_actions M) (policy_of M softmax (theta t) s)
           (policy_of M softmax (theta (S t)) s) (q_of M (v t) s)).
Proof.
  intros M w theta v Hrun Hw. pose proof (two_actions M) as Hn.
  assert (P : forall t s a, 0 < softmax (n_actions M) (theta t s) a)
    by (intros; apply softmax_pos; lia).
  intros t s Hs. split.
  - apply (run_monotone M softmax transfer w theta v Hrun);
      [intros t'; apply softmax_policy| |exact Hs].
    intros t' s' Hs'. destruct (proj2 (Hrun t') s' Hs') as [g [[Hg Hgreedy] Hstep]].
    rewrite (transfer_advantage _ (w t' s') _ _ _ g Hn Hg (Hw t' s' Hs') Hstep).
    apply Rmult_le_pos; [apply transfer_rate_range; try assumption; apply Hw, Hs'|].
    apply sum_nonneg. intros b Hb. specialize (Hgreedy b Hb). pose proof (P t' s' b).
    destruct (b =? g); [lra|]. apply Rmult_le_pos; nra.
  - intros L Hq. destruct (proj2 (Hrun t) s Hs) as [g [Hgreedy Hstep]].
    pose proof (proj1 Hgreedy) as Hg. pose proof (proj2 Hgreedy) as Hbest.
    change (policy_of M softmax (theta t) s) with (softmax (n_actions M) (theta t s)).
    change (policy_of M softmax (theta (S t)) s) with (softmax (n_actions M) (theta (S t) s)).
    rewrite (transfer_advantage _ (w t s) _ _ _ g Hn Hg ltac:(lra) Hstep).
    apply Rmult_lt_0_compat; [apply transfer_rate_range; assumption || lra|].
    assert (H : exists b, (b < n_actions M)%nat /\ q_of M (v t) s b < q_of M (v t) s g).
    { destruct Hq as [a [b [Ha [Hb Hne]]]]. pose proof (Hbest a Ha). pose proof (Hbest b Hb).
      destruct (Rlt_le_dec (q_of M (v t) s a) (q_of M (v t) s g)) as [La|La].
      - exists a. split; assumption.
      - exists b. split; [exact Hb|]. destruct (Rtotal_order (q_of M (v t) s b) (q_of M (v t) s g))
          as [Lb|[Lb|Lb]]; [exact Lb| |]; exfalso; lra. }
    destruct H as [b [Hb Lb]]. apply sum_pos with b; [|exact Hb|].
    + intros j Hj. specialize (Hbest j Hj). pose proof (P t s j).
      destruct (j =? g); [lra|]. apply Rmult_le_pos; nra.
    + destruct (Nat.eqb_spec b g) as [->|_]; [lra|]. pose proof (P t s b).
      apply Rmult_lt_0_compat; nra.
Qed.

(** ** The size of a step *)

(** The logarithm is monotone. *)
Lemma ln_le : forall x y, 0 < x -> x <= y -> ln x <= ln y.
Proof. intros x y Hx [L| ->]; [left; apply ln_increasing; assumption|lra]. Qed.

(** The minimum increase of the greedy parameter while its probability is at most one half. *)
Definition pace (n : nat) (w : R) : R := ln (1 + (1 - exp (- w)) / (2 * (INR n - 1))).

(** s >= (1 - pi(g))^2 / (n - 1), because a mean square is at least the square of the mean. *)
Lemma squares_large : forall n theta g, (2 <= n)%nat -> (g < n)%nat ->
  (1 - softmax n theta g) * (1 - softmax n theta g) <= squares n (softmax n theta) g * (INR n - 1).
Proof.
  intros n theta g Hn Hg. set (p := softmax n theta). pose proof (actions_minus_one n Hn) as Hn1.
  pose proof (softmax_sum n theta ltac:(lia)) as H1. fold p in H1.
  set (c := (1 - p g) / (INR n - 1)).
  assert (Hc : c * (INR n - 1) = 1 - p g) by (unfold c; field; lra).
  assert (H : sum n (fun b => (2 * c * p b - c * c)
      - (if b =? g then 2 * c * p g - c * c else 0)) <= squares n p g).
  { apply sum_le. intros b _. destruct (Nat.eqb_spec b g) as [->|_]; [lra|].
    pose proof (Rle_0_sqr (p b - c)) as S. unfold Rsqr in S. nra. }
  rewrite !sum_minus, sum_scal_l, H1, sum_const, sum_single in H by exact Hg.
  assert (E : 2 * c * 1 - INR n * (c * c) - (2 * c * p g - c * c) = c * (1 - p g)).
  { transitivity (2 * c * (1 - p g) - c * (c * (INR n - 1))); [ring|]. rewrite Hc. ring. }
  rewrite E in H. apply Rmult_le_compat_r with (r := INR n - 1) in H; [|lra].
  replace (c * (1 - p g) * (INR n - 1)) with ((1 - p g) * (1 - p g)) in H; [exact H|].
  transitivity (c * (INR n - 1) * (1 - p g)); [rewrite Hc|]; ring.
Qed.

(** *** A step adds between 0 and w to the greedy parameter and subtracts at most w from the others.
    If the greedy action has probability 1/2 or less, the greedy parameter gains at least the pace
    on all others. *)
Theorem transfer_bounded : forall n w g theta theta', (2 <= n)%nat -> (g < n)%nat -> 0 <= w ->
  (forall a, (a < n)%nat -> theta' a = transfer_formula n w g theta a) ->
  0 <= theta' g - theta g <= w /\
  (forall b, (b < n)%nat -> b <> g -> - w <= theta' b - theta b <= 0) /\
  (softmax n theta g <= 1 / 2 -> forall b, (b < n)%nat -> b <> g ->
    pace n w <= (theta' g - theta g) - (theta' b - theta b)).
Proof.
  intros n w g theta theta' Hn Hg Hw Hstep. set (p := softmax n theta).
  destruct (transfer_rate_range n w theta g Hn Hg Hw) as [HR [Hs Hrate]]. fold p in HR, Hs.
  pose proof (squares_pos n theta g Hn Hg) as HS. fold p in HS.
  assert (P : forall a, 0 < p a) by (intros a; apply softmax_pos; lia).
  pose proof (P g) as Pg. pose proof (exp_pos (- w)) as Ew.
  set (alpha := transfer_rate n w p g) in *.
  assert (Eg : theta' g - theta g = ln (1 + alpha * squares n p g / p g)).
  { rewrite (Hstep g Hg). unfold transfer_formula, transferred. fold p alpha. rewrite Nat.eqb_refl.
    replace ((p g + alpha * squares n p g) / p g) with (1 + alpha * squares n p g / p g)
      by (field; lra). ring. }
  assert (Eb : forall b, (b < n)%nat -> b <> g -> theta' b - theta b = ln (1 - alpha * p b)).
  { intros b Hb Hne. rewrite (Hstep b Hb). unfold transfer_formula, transferred. fold p alpha.
    destruct (Nat.eqb_spec b g); [contradiction|]. pose proof (P b).
    replace (p b * (1 - alpha * p b) / p b) with (1 - alpha * p b) by (field; lra). ring. }
  assert (Gain : 0 <= alpha * squares n p g / p g).
  { apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. left. apply Rinv_0_lt_compat, Pg. }
  assert (Hb0 : forall b, (b < n)%nat -> b <> g -> - w <= theta' b - theta b <= 0).
  { intros b Hb Hne. rewrite (Eb b Hb Hne). pose proof (P b).
    assert (p b <= 1) by (apply softmax_le_1, Hb).
    assert (0 <= alpha * p b) by (apply Rmult_le_pos; lra).
    assert (alpha * p b <= alpha * 1) by (apply Rmult_le_compat_l; lra).
    rewrite <- (ln_exp (- w)), <- ln_1. split; apply ln_le; lra. }
  split; [|split; [exact Hb0|]].
  - rewrite Eg. split.
    + rewrite <- ln_1. apply ln_le; lra.
    + rewrite <- (ln_exp w). apply ln_le; [lra|].
      assert (alpha * squares n p g / p g <= exp w - 1); [|lra].
      apply Rmult_le_reg_r with (p g); [exact Pg|]. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l by lra. lra.
  - intros Hhalf b Hb Hne. specialize (Hb0 b Hb Hne).
    assert (pace n w <= theta' g - theta g); [|lra].
    rewrite Eg. unfold pace. pose proof (actions_minus_one n Hn) as Hn1.
    assert (E1 : 0 <= 1 - exp (- w)).
    { pose proof (exp_le (- w) 0 ltac:(lra)) as E. rewrite exp_0 in E. lra. }
    assert (Hi : 0 < / (2 * (INR n - 1))) by (apply Rinv_0_lt_compat; lra).
    apply ln_le; [unfold Rdiv; nra|]. apply Rplus_le_compat_l.
    assert (Hi1 : / (2 * (INR n - 1)) <= 1).
    { rewrite <- Rinv_1. apply Rinv_le_contravar; [lra|].
      apply le_INR in Hn. simpl (INR 2) in Hn. lra. }
    (* alpha is one of the two numbers *)
    destruct (Rle_lt_dec (1 - exp (- w)) (p g * (exp w - 1) / squares n p g)) as [L|L].
    + assert (Ea : alpha = 1 - exp (- w)) by (apply Rmin_left, L). rewrite Ea.
      pose proof (squares_large n theta g Hn Hg) as SL. fold p in SL, Hhalf.
      unfold Rdiv. rewrite Rmult_assoc. apply Rmult_le_compat_l; [exact E1|].
      apply Rmult_le_reg_r with (2 * (INR n - 1) * p g); [apply Rmult_lt_0_compat; lra|].
      replace (/ (2 * (INR n - 1)) * (2 * (INR n - 1) * p g)) with (p g) by (field; lra).
      replace (squares n p g * / p g * (2 * (INR n - 1) * p g))
        with (2 * (squares n p g * (INR n - 1))) by (field; lra).
      nra.
    + assert (Ea : alpha = p g * (exp w - 1) / squares n p g) by (apply Rmin_right; lra).
      rewrite Ea. replace (p g * (exp w - 1) / squares n p g * squares n p g / p g)
        with (exp w - 1) by (field; lra).
      assert (1 - exp (- w) <= exp w - 1).
      { pose proof (exp_tangent w). pose proof (exp_tangent (- w)). lra. }
      apply Rle_trans with ((1 - exp (- w)) * 1); [|lra].
      apply Rmult_le_compat_l; [exact E1|exact Hi1].
Qed.

(** ** The way back *)

(** One step increases 1 / pi(b) by at most e^w - 1 for every action. *)
Lemma transfer_inverse : forall n u w g theta theta' b,
  (2 <= n)%nat -> (g < n)%nat -> 0 <= u <= w ->
  (forall a, (a < n)%nat -> theta' a = transfer_formula n u g theta a) -> (b < n)%nat ->
  / softmax n theta' b <= / softmax n theta b + (exp w - 1).
Proof.
  intros n u w g theta theta' b Hn Hg Hu Hstep Hb.
  rewrite (transfer_softmax n u theta theta' g Hn Hg (proj1 Hu) Hstep b Hb).
  destruct (transfer_rate_range n u theta g Hn Hg (proj1 Hu)) as [HR _].
  pose proof (squares_pos n theta g Hn Hg) as HS.
  set (p := softmax n theta) in *. set (alpha := transfer_rate n u p g) in *.
  assert (Pb : 0 < p b) by (apply softmax_pos; lia). assert (p b <= 1) by (apply softmax_le_1, Hb).
  pose proof (exp_le u w (proj2 Hu)) as Ew. pose proof (exp_pos (- u)) as Eu.
  pose proof (exp_tangent u) as Tu.
  unfold transferred. fold alpha. destruct (Nat.eqb_spec b g) as [->|_].
  - assert (0 <= alpha * squares n p g) by (apply Rmult_le_pos; lra).
    assert (/ (p g + alpha * squares n p g) <= / p g) by (apply Rinv_le_contravar; lra). lra.
  - assert (Hx : alpha * p b <= alpha * 1) by (apply Rmult_le_compat_l; lra).
    assert (Hd : exp (- u) <= 1 - alpha * p b) by lra.
    assert (Hi : / (1 - alpha * p b) <= exp u).
    { replace (exp u) with (/ exp (- u)) by (rewrite exp_Ropp; apply Rinv_inv).
      apply Rinv_le_contravar; assumption. }
    replace (/ (p b * (1 - alpha * p b))) with (/ p b + alpha * / (1 - alpha * p b))
      by (field; split; lra).
    assert (H0 : alpha * / (1 - alpha * p b) <= (1 - exp (- u)) * exp u).
    { apply Rmult_le_compat; try lra. left. apply Rinv_0_lt_compat. lra. }
    rewrite Rmult_minus_distr_r, <- exp_plus, Rplus_opp_l, exp_0 in H0. lra.
Qed.

(** *** The transfer of squares forgets.  If the last action is the only greedy action and the
    weight is w after m steps from the uniform policy, the action regains the uniform probability
    after at most log(o) / pace steps, rounded up, where o bounds the odds against it. *)
Theorem transfer_forgets : forall n w weights q theta m k, (2 <= n)%nat -> 0 < w ->
  (forall a, (a < n)%nat -> theta 0%nat a = 0) ->
  (forall t, 0 <= weights t <= w) ->
  (forall t, transfer n (weights t) (q t) (theta t) (theta (S t))) ->
  (forall t, (m <= t)%nat -> weights t = w) ->
  (forall t a, (m <= t)%nat -> (a < n - 1)%nat -> q t a < q t (n - 1)%nat) ->
  ln (INR n - 1 + INR m * (exp w - 1)) / pace n w <= INR k ->
  exists j, (j <= k)%nat /\ / INR n <= softmax n (theta (m + j)%nat) (n - 1).
Proof.
  intros n w weights q theta m k Hn Hw H0 Hweights Hrun HwW Hlast Hk.
  set (l := (n - 1)%nat) in *. assert (Hl : (l < n)%nat) by (unfold l; lia).
  pose proof (actions_minus_one n Hn) as Hn1.
  assert (Hn2 : 2 <= INR n) by (apply (le_INR 2); exact Hn).
  assert (Hodds : / softmax n (theta m) l <= INR n + INR m * (exp w - 1)).
  { clear Hk HwW Hlast. induction m as [|m IH].
    - simpl (INR 0). unfold softmax. rewrite (sum_ext n _ (fun _ => 1)).
      + rewrite sum_const, H0, exp_0 by exact Hl. right. field. lra.
      + intros a Ha. rewrite H0 by exact Ha. apply exp_0.
    - destruct (Hrun m) as [g [[Hg _] Hstep]].
      pose proof (transfer_inverse n (weights m) w g _ _ l Hn Hg (Hweights m) Hstep Hl).
      rewrite S_INR. lra. }
  set (o := INR n - 1 + INR m * (exp w - 1)) in *.
  assert (E1 : exp (- w) < 1).
  { pose proof (exp_increasing (- w) 0 ltac:(lra)) as E. rewrite exp_0 in E. exact E. }
  assert (Hpace : 0 < pace n w).
  { unfold pace. rewrite <- ln_1. apply ln_increasing; [lra|].
    assert (0 < (1 - exp (- w)) / (2 * (INR n - 1))) by (apply Rdiv_lt_0_compat; lra). lra. }
  assert (Ho : 0 < o).
  { unfold o. pose proof (pos_INR m). pose proof (exp_tangent w). nra. }
  assert (H : forall j,
    (exists i, (i < j)%nat /\ / INR n <= softmax n (theta (m + i)%nat) l) \/
    / softmax n (theta (m + j)%nat) l - 1 <= o * exp (- (INR j * pace n w))).
  { induction j as [|j [[i [Hi E]]|IH]].
    - right. rewrite Nat.add_0_r. simpl (INR 0). rewrite Rmult_0_l, Ropp_0, exp_0. unfold o. lra.
    - left. exists i. split; [lia|exact E].
    - destruct (Rle_lt_dec (/ INR n) (softmax n (theta (m + j)%nat) l)) as [L|L].
      { left. exists j. split; [lia|exact L]. }
      right. destruct (Hrun (m + j)%nat) as [g [[Hg Hgreedy] Hstep]].
      assert (g = l) as ->.
      { destruct (Nat.eq_dec g l) as [E|E]; [exact E|exfalso].
        specialize (Hlast (m + j)%nat g ltac:(lia) ltac:(unfold l in *; lia)).
        specialize (Hgreedy l Hl). fold l in Hlast. lra. }
      rewrite HwW in Hstep by lia.
      assert (Hhalf : softmax n (theta (m + j)%nat) l <= 1 / 2).
      { assert (/ INR n <= / 2) by (apply Rinv_le_contravar; lra). lra. }
      destruct (transfer_bounded n w l _ _ Hn Hl ltac:(lra) Hstep) as [_ [Hdown Hrise]].
      (* the probability is multiplied by at least e^pace *)
      set (p := softmax n (theta (m + j)%nat) l) in *.
      set (p' := softmax n (theta (m + S j)%nat) l).
      assert (Pp : 0 < p) by (apply softmax_pos; lia).
      assert (Pp' : 0 < p') by (apply softmax_pos; lia).
      assert (M : / p' - 1 <= (/ p - 1) * exp (- pace n w)).
      { assert (Odds : forall th, / softmax n th l - 1
          = sum n (fun a => if a =? l then 0 else exp (th a - th l))).
        { intros th. pose proof (partition_pos n th ltac:(lia)) as HZ. pose proof (exp_pos (th l)).
          unfold softmax. set (Z := sum n (fun b => exp (th b))) in *.
          rewrite (sum_ext n _ (fun a => (exp (th a) - (if a =? l then exp (th l) else 0))
            * / exp (th l))).
          - rewrite sum_scal_r, sum_minus, sum_single by exact Hl. fold Z. field. lra.
          - intros a _. destruct (Nat.eqb_spec a l) as [->|_]; [ring|].
            unfold Rminus. rewrite exp_plus, exp_Ropp. ring. }
        unfold p', p. rewrite !Odds, <- sum_scal_r. apply sum_le. intros a Ha.
        destruct (Nat.eqb_spec a l) as [->|Hne]; [lra|].
        rewrite <- exp_plus. apply exp_le. specialize (Hrise Hhalf a Ha Hne).
        rewrite Nat.add_succ_r. lra. }
      apply Rle_trans with (1 := M). rewrite S_INR.
      replace (- ((INR j + 1) * pace n w)) with (- (INR j * pace n w) + - pace n w) by ring.
      rewrite exp_plus, <- Rmult_assoc. apply Rmult_le_compat_r; [left; apply exp_pos|exact IH]. }
  destruct (H k) as [[i [Hi E]]|E]; [exists i; split; [lia|exact E]|].
  exists k. split; [lia|].
  assert (F : o * exp (- (INR k * pace n w)) <= 1).
  { apply Rmult_le_compat_r with (r := pace n w) in Hk; [|lra]. unfold Rdiv in Hk.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r in Hk by lra. apply exp_le in Hk.
    rewrite exp_ln in Hk by exact Ho. rewrite exp_Ropp.
    pose proof (exp_pos (INR k * pace n w)). apply Rmult_le_reg_r with (exp (INR k * pace n w));
      [assumption|]. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (Pp : 0 < softmax n (theta (m + k)%nat) l) by (apply softmax_pos; lia).
  set (p := softmax n (theta (m + k)%nat) l) in *.
  assert (G : / p <= INR n) by lra.
  apply Rmult_le_reg_r with (INR n * / p).
  - apply Rmult_lt_0_compat; [lra|apply Rinv_0_lt_compat, Pp].
  - replace (/ INR n * (INR n * / p)) with (/ p) by (field; lra).
    replace (p * (INR n * / p)) with (INR n) by (field; lra). exact G.
Qed.

(** ** The sign condition *)

(** *** The sign condition fails: for the probabilities 1/8, 5/8, 1/4 and the values 1, 0.9, 0, the
    second action is above average, but is lowered more than the third, which is below average. *)
Theorem transfer_breaks_sign_condition : forall w, 0 < w ->
  exists theta q, forall theta', transfer 3%nat w q theta theta' ->
    ~ exists k, forall a, (a < 3)%nat ->
      (0 < adv 3%nat (softmax 3%nat theta) q a -> k <= theta' a - theta a) /\
      (adv 3%nat (softmax 3%nat theta) q a < 0 -> theta' a - theta a <= k).
Proof.
  intros w Hw. set (p := fun a => match a with 0%nat => 1 / 8 | 1%nat => 5 / 8 | _ => 1 / 4 end).
  set (theta := fun a => ln (p a)).
  set (q := fun a => match a with 0%nat => 1 | 1%nat => 9 / 10 | _ => 0 end).
  assert (Hp : forall a, 0 < p a) by (intros [|[|a]]; unfold p; lra).
  assert (S : forall a, softmax 3%nat theta a = p a).
  { intros a. unfold softmax, theta. simpl sum. rewrite !exp_ln by apply Hp.
    rewrite !exp_ln by lra. field. }
  exists theta, q. intros theta' [g [[Hg Hgreedy] Hstep]] [k Hk].
  assert (g = 0%nat) as ->.
  { specialize (Hgreedy 0%nat ltac:(lia)). destruct g as [|[|g]]; [reflexivity| |];
      unfold q in Hgreedy; lra. }
  assert (A : forall a, adv 3%nat (softmax 3%nat theta) q a = q a - 11 / 16).
  { intros a. unfold adv. simpl sum. rewrite !S. unfold p. field. }
  pose proof (proj1 (Hk 1%nat ltac:(lia)) ltac:(rewrite A; unfold q; lra)) as H1.
  pose proof (proj2 (Hk 2%nat ltac:(lia)) ltac:(rewrite A; unfold q; lra)) as H2.
  destruct (transfer_rate_range 3%nat w theta 0%nat ltac:(lia) ltac:(lia) ltac:(lra))
    as [HR [_ Hpos]].
  specialize (Hpos Hw). rewrite (Hstep 1%nat ltac:(lia)) in H1.
  rewrite (Hstep 2%nat ltac:(lia)) in H2. unfold transfer_formula, transferred in H1, H2.
  simpl Nat.eqb in H1, H2. cbv iota in H1, H2. rewrite !S in H1, H2.
  set (alpha := transfer_rate 3%nat w (softmax 3%nat theta) 0%nat) in *. pose proof (exp_pos (- w)).
  change (p 1%nat) with (5 / 8) in H1. change (p 2%nat) with (1 / 4) in H2.
  assert (ln (5 / 8 * (1 - alpha * (5 / 8)) / (5 / 8))
    < ln (1 / 4 * (1 - alpha * (1 / 4)) / (1 / 4))).
  { apply ln_increasing; lra. }
  lra.
Qed.
