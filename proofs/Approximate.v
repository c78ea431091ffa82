(** * SCE with approximate values: the loss of a step is bounded

    The update uses values with errors of at most [eps].  A step loses at most eps times the
    change of the policy ([approximate_step_advantage]), and a step of SCE changes the policy by at
    most 2 tanh(w/2) ([change_of_shift]).  Therefore no value decreases by more than
    2 eps tanh(w/2) / (1 - gamma): [sce_approximate]. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums Values Monotonicity StrictIncrease Masked.
Open Scope R_scope.

(** The sum of the absolute changes of the probabilities: twice the total variation distance. *)
Definition change (n : nat) (p p' : nat -> R) : R := sum n (fun a => Rabs (p' a - p a)).

(** A step whose advantage at the approximate values is not negative loses at most eps times the
    change of the policy at the true values. *)
Theorem approximate_step_advantage : forall n p p' q seen eps,
  (forall a, (a < n)%nat -> Rabs (seen a - q a) <= eps) ->
  0 <= step_advantage n p p' seen ->
  - (eps * change n p p') <= step_advantage n p p' q.
Proof.
  intros n p p' q seen eps Heps HA. unfold step_advantage, change in *.
  assert (L : sum n (fun a => (p' a - p a) * seen a - (p' a - p a) * q a)
              <= sum n (fun a => eps * Rabs (p' a - p a))).
  { apply sum_le. intros a Ha. rewrite <- Rmult_minus_distr_l.
    apply Rle_trans with (1 := Rle_abs _). rewrite Rabs_mult, Rmult_comm.
    apply Rmult_le_compat_r; [apply Rabs_pos|apply Heps, Ha]. }
  rewrite sum_minus, sum_scal_l in L. lra.
Qed.

(** A loss of at most L in the step advantage of each state decreases no value by more than
    L / (1 - gamma). *)
Theorem bounded_loss : forall M pi pi' v v' L, 0 <= L ->
  is_policy M pi' -> is_value M pi v -> is_value M pi' v' ->
  (forall s, (s < n_states M)%nat ->
    - L <= step_advantage (n_actions M) (pi s) (pi' s) (q_of M v s)) ->
  forall s, (s < n_states M)%nat -> v s - L / (1 - gamma M) <= v' s.
Proof.
  intros M pi pi' v v' L HL Hpi Hv Hv' HA. pose proof (gamma_range M) as Hg.
  set (B := L / (1 - gamma M)).
  assert (HB : B - gamma M * B = L) by (unfold B; field; lra).
  assert (HB0 : 0 <= B).
  { apply Rmult_le_pos; [exact HL|]. left. apply Rinv_0_lt_compat. lra. }
  apply (policy_improvement M pi' (fun s => v s - B)); [exact Hpi|exact Hv'|].
  intros s Hs. specialize (HA s Hs).
  (* the action values at v - B are at least those at v minus gamma B *)
  assert (Q : sum (n_actions M) (fun a => pi' s a * (q_of M v s a - gamma M * B))
              <= sum (n_actions M) (fun a => pi' s a * q_of M (fun s => v s - B) s a)).
  { apply sum_le. intros a Ha. apply Rmult_le_compat_l; [apply (Hpi s Hs), Ha|]. unfold q_of.
    rewrite (sum_ext (n_states M) (fun s' => P M s a s' * (v s' - B))
      (fun s' => P M s a s' * v s' - P M s a s' * B)) by (intros; ring).
    rewrite sum_minus, sum_scal_r. pose proof (P_sum M s a Hs Ha).
    assert (gamma M * (sum (n_states M) (P M s a) * B) <= gamma M * B); [|lra].
    apply Rmult_le_compat_l; [lra|]. rewrite <- (Rmult_1_l B) at 2.
    apply Rmult_le_compat_r; assumption. }
  rewrite (sum_ext (n_actions M) (fun a => pi' s a * (q_of M v s a - gamma M * B))
    (fun a => pi' s a * q_of M v s a - pi' s a * (gamma M * B))) in Q by (intros; ring).
  rewrite sum_minus, sum_scal_r, (proj2 (Hpi s Hs)) in Q.
  unfold step_advantage in HA.
  rewrite (sum_ext _ _ (fun a => pi' s a * q_of M v s a - pi s a * q_of M v s a)) in HA
    by (intros; ring).
  rewrite sum_minus, <- (Hv s Hs) in HA. lra.
Qed.

(** ** The change of the policy by one step of SCE *)

(** If one probability P grows to P' and the odds by a factor of at most k^2, then P' - P is at most
    (k - 1) / (k + 1): the difference of the two sides is the square of 1 - (k + 1) P. *)
Lemma odds_change : forall k P P', 1 <= k -> 0 <= P <= 1 ->
  P' * (1 - P) <= k * k * (P * (1 - P')) -> P' - P <= (k - 1) / (k + 1).
Proof.
  intros k P P' Hk HP H. set (d := P' - P).
  assert (E : d * (1 - P + k * k * P) <= (k * k - 1) * (P * (1 - P))) by (unfold d; nra).
  assert (Hsq : (k + 1) * (k + 1) * (P * (1 - P)) <= 1 - P + k * k * P).
  { pose proof (Rle_0_sqr (1 - (k + 1) * P)) as S. unfold Rsqr in S. nra. }
  assert (Hkk : 1 <= k * k) by nra.
  assert (Hden : 0 < 1 - P + k * k * P).
  { pose proof (Rmult_le_compat_r P 1 (k * k) ltac:(lra) Hkk). lra. }
  apply Rmult_le_reg_r with (k + 1); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
  apply Rmult_le_reg_r with (1 - P + k * k * P); [exact Hden|].
  assert ((k - 1) * ((k + 1) * (k + 1) * (P * (1 - P))) <= (k - 1) * (1 - P + k * k * P)).
  { apply Rmult_le_compat_l; lra. }
  nra.
Qed.

(** Additions between -w and w to softmax parameters change the policy by at most
    2 (e^w - 1) / (e^w + 1). *)
Lemma change_of_shift : forall n theta theta' w, (0 < n)%nat -> 0 <= w ->
  (forall a, (a < n)%nat -> theta a - w <= theta' a <= theta a + w) ->
  change n (softmax n theta) (softmax n theta') <= 2 * ((exp w - 1) / (exp w + 1)).
Proof.
  intros n theta theta' w Hn Hw Hx. set (p := softmax n theta). set (p' := softmax n theta').
  set (x := fun a => theta' a - theta a). set (G := sum n (fun b => p b * exp (x b))).
  assert (Hp : forall a, 0 < p a) by (intros; apply softmax_pos, Hn).
  assert (Hs : forall a, (a < n)%nat -> p' a = p a * exp (x a) / G).
  { intros a Ha. apply softmax_shift; [exact Hn| |exact Ha]. intros b _. unfold x. ring. }
  assert (HG : 0 < G).
  { assert (H : forall b, 0 < p b * exp (x b)).
    { intros b. apply Rmult_lt_0_compat; [apply Hp|apply exp_pos]. }
    apply (sum_pos n _ 0); [intros; left; apply H|exact Hn|apply H]. }
  pose proof (exp_pos w) as Ew. pose proof (exp_pos (- w)) as En.
  assert (Eprod : exp w * exp (- w) = 1).
  { rewrite <- exp_plus, Rplus_opp_r. apply exp_0. }
  set (up := fun a (f : nat -> R) => if Rlt_dec (p a) (p' a) then f a else 0).
  set (down := fun a (f : nat -> R) => if Rlt_dec (p a) (p' a) then 0 else f a).
  set (P := sum n (fun a => up a p)). set (P' := sum n (fun a => up a p')).
  assert (D : 1 - P = sum n (fun a => down a p)).
  { unfold P. rewrite <- (softmax_sum n theta Hn). fold p. rewrite <- sum_minus.
    apply sum_ext. intros a _. unfold up, down. destruct (Rlt_dec _ _); ring. }
  assert (D' : 1 - P' = sum n (fun a => down a p')).
  { unfold P'. rewrite <- (softmax_sum n theta' Hn). fold p'. rewrite <- sum_minus.
    apply sum_ext. intros a _. unfold up, down. destruct (Rlt_dec _ _); ring. }
  assert (HP : 0 <= P <= 1).
  { split; [apply sum_nonneg|cut (0 <= 1 - P); [lra|]; rewrite D; apply sum_nonneg];
      intros a _; unfold up, down; destruct (Rlt_dec _ _); try lra; left; apply Hp. }
  (* the factors lie between e^-w / G and e^w / G *)
  assert (U : P' * G <= exp w * P).
  { unfold P, P'. rewrite <- sum_scal_r, <- sum_scal_l. apply sum_le. intros a Ha. unfold up.
    destruct (Rlt_dec _ _); [|lra]. rewrite (Hs a Ha). unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_comm by lra.
    apply Rmult_le_compat_r; [left; apply Hp|]. apply exp_le. unfold x.
    pose proof (Hx a Ha). lra. }
  assert (L : exp (- w) * (1 - P) <= (1 - P') * G).
  { rewrite D, D', <- sum_scal_r, <- sum_scal_l. apply sum_le. intros a Ha. unfold down.
    destruct (Rlt_dec _ _); [lra|]. rewrite (Hs a Ha). unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_comm by lra.
    apply Rmult_le_compat_l; [left; apply Hp|]. apply exp_le. unfold x.
    pose proof (Hx a Ha). lra. }
  assert (C : P' - P <= (exp w - 1) / (exp w + 1)).
  { apply odds_change; [pose proof (exp_le 0 w Hw) as E; rewrite exp_0 in E; exact E|exact HP|].
    apply Rmult_le_reg_r with (G * exp (- w)); [nra|].
    apply Rle_trans with (exp w * P * ((1 - P) * exp (- w))).
    - replace (P' * (1 - P) * (G * exp (- w))) with (P' * G * ((1 - P) * exp (- w))) by ring.
      apply Rmult_le_compat_r; [nra|exact U].
    - replace (exp w * exp w * (P * (1 - P')) * (G * exp (- w)))
        with (exp w * P * ((1 - P') * G) * (exp w * exp (- w))) by ring.
      rewrite Eprod, Rmult_1_r. apply Rmult_le_compat_l; [nra|].
      rewrite Rmult_comm. exact L. }
  apply Rle_trans with (2 * (P' - P)); [right|lra].
  assert (Z : sum n (fun a => p' a - p a) = 0).
  { rewrite sum_minus. unfold p, p'. rewrite !softmax_sum by exact Hn. ring. }
  unfold change, P, P'. rewrite <- sum_minus.
  rewrite <- (Rplus_0_r (sum n (fun a => Rabs (p' a - p a)))), <- Z, <- sum_plus, <- sum_scal_l.
  apply sum_ext. intros a _. unfold up. destruct (Rlt_dec _ _) as [H|H].
  - rewrite Rabs_pos_eq; lra.
  - rewrite Rabs_left1; lra.
Qed.

(** A step of SCE adds between -w and w. *)
Lemma sce_shift : forall n w q theta theta', 0 <= w -> sce n w q theta theta' ->
  forall a, (a < n)%nat -> theta a - w <= theta' a <= theta a + w.
Proof.
  intros n w q theta theta' Hw [g [[Hg _] Hstep]] a Ha. rewrite (Hstep a Ha). unfold sce_formula.
  destruct (in_mask n q theta g a) eqn:Hm; [|lra].
  pose proof (masked_pos n q theta g a Hg) as Hp.
  assert (H1 : masked_softmax n q theta g a <= 1).
  { unfold masked_softmax.
    set (f := fun i => if in_mask n q theta g i then exp (theta i) else 0).
    assert (Hf : forall j, (j < n)%nat -> 0 <= f j).
    { intros j _. unfold f. destruct (in_mask n q theta g j); [left; apply exp_pos|lra]. }
    pose proof (sum_term n f a Hf Ha) as H. unfold f in H at 1. rewrite Hm in H.
    fold f. pose proof (exp_pos (theta a)). apply Rmult_le_reg_r with (sum n f); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  destruct (a =? g); nra.
Qed.

(** *** SCE with values whose errors are at most eps.  Half the change of a policy, its total
    variation distance, is at most (e^w - 1) / (e^w + 1) = tanh(w/2), and no value decreases by more
    than 2 eps tanh(w/2) / (1 - gamma). *)
Theorem sce_approximate : forall M weights w seen theta theta' v v' eps,
  is_value M (policy_of M softmax theta) v -> is_value M (policy_of M softmax theta') v' ->
  (forall s, (s < n_states M)%nat -> 0 <= weights s <= w) ->
  (forall s a, (s < n_states M)%nat -> (a < n_actions M)%nat ->
    Rabs (seen s a - q_of M v s a) <= eps) ->
  (forall s, (s < n_states M)%nat ->
    sce (n_actions M) (weights s) (seen s) (theta s) (theta' s)) ->
  forall s, (s < n_states M)%nat ->
    change (n_actions M) (policy_of M softmax theta s) (policy_of M softmax theta' s) / 2
      <= (exp w - 1) / (exp w + 1) /\
    v s - 2 * eps * ((exp w - 1) / (exp w + 1)) / (1 - gamma M) <= v' s.
Proof.
  intros M weights w seen theta theta' v v' eps Hv Hv' Hw Hseen Hstep s Hs.
  pose proof (two_actions M) as Hn. set (T := (exp w - 1) / (exp w + 1)).
  assert (HC : forall s, (s < n_states M)%nat ->
    change (n_actions M) (policy_of M softmax theta s) (policy_of M softmax theta' s) <= 2 * T).
  { intros i Hi. apply change_of_shift; [lia|specialize (Hw i Hi); lra|]. intros a Ha.
    pose proof (Hw i Hi).
    pose proof (sce_shift _ _ _ _ _ (proj1 (Hw i Hi)) (Hstep i Hi) a Ha). lra. }
  split; [pose proof (HC s Hs); lra|].
  assert (He : 0 <= eps).
  { apply Rle_trans with (2 := Hseen s 0%nat Hs ltac:(lia)). apply Rabs_pos. }
  assert (HT : 0 <= T).
  { assert (0 <= change (n_actions M) (policy_of M softmax theta s)
      (policy_of M softmax theta' s)) by (apply sum_nonneg; intros; apply Rabs_pos).
    pose proof (HC s Hs). lra. }
  replace (2 * eps * T) with (eps * (2 * T)) by ring.
  apply (bounded_loss M (policy_of M softmax theta) (policy_of M softmax theta'));
    [nra|apply softmax_policy|exact Hv|exact Hv'| |exact Hs].
  intros i Hi. apply Rle_trans with (- (eps * change (n_actions M)
    (policy_of M softmax theta i) (policy_of M softmax theta' i))).
  - apply Ropp_le_contravar, Rmult_le_compat_l; [exact He|apply HC, Hi].
  - apply approximate_step_advantage with (seen := seen i); [intros a Ha; apply Hseen; assumption|].
    apply (sign_respecting_step_advantage _ (weights i)); [lia|].
    apply sce_respects_sign; [apply Hw, Hi|apply Hstep, Hi].
Qed.
