(** * The value function of a policy: policy improvement, uniqueness, existence

    The theorems of the book are about the values of a policy.  The values are defined as solutions
    of the Bellman equation, and this file proves that there is exactly one solution. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums.
Open Scope R_scope.

(** Policy improvement.  In the state where v' - v is smallest, it is at least gamma times an
    average of values of v' - v, none of which is smaller.  Therefore it is not negative. *)
Theorem policy_improvement : forall M pi' v v',
  is_policy M pi' -> is_value M pi' v' ->
  (forall s, (s < n_states M)%nat ->
    v s <= sum (n_actions M) (fun a => pi' s a * q_of M v s a)) ->
  forall s, (s < n_states M)%nat -> v s <= v' s.
Proof.
  intros M pi' v v' Hpi Hv' Hv s Hs.
  destruct (argmin (n_states M) (fun s => v' s - v s) ltac:(lia)) as [i [Hi Hmin]].
  set (m := v' i - v i). pose proof (gamma_range M) as Hg.
  destruct (Rle_lt_dec 0 m) as [Hm|Hm]; [pose proof (Hmin s Hs); simpl in *; unfold m in *; lra|].
  exfalso. destruct (Hpi i Hi) as [Hp H1].
  (* the value of each action increases by at least gamma m *)
  assert (Q : forall a, (a < n_actions M)%nat -> q_of M v i a + gamma M * m <= q_of M v' i a).
  { intros a Ha. unfold q_of.
    assert (L : sum (n_states M) (fun s' => P M i a s' * m)
                <= sum (n_states M) (fun s' => P M i a s' * v' s' - P M i a s' * v s')).
    { apply sum_le. intros j Hj. rewrite <- Rmult_minus_distr_l.
      apply Rmult_le_compat_l; [apply P_nonneg; auto|apply Hmin, Hj]. }
    rewrite sum_scal_r, sum_minus in L. pose proof (P_sum M i a Hi Ha).
    set (p := sum (n_states M) (P M i a)) in *.
    assert (m <= p * m) by nra. nra. }
  (* their average under pi' also increases by at least gamma m *)
  assert (A : sum (n_actions M) (fun a => pi' i a * q_of M v i a + pi' i a * (gamma M * m))
              <= sum (n_actions M) (fun a => pi' i a * q_of M v' i a)).
  { apply sum_le. intros a Ha. rewrite <- Rmult_plus_distr_l.
    apply Rmult_le_compat_l; auto. }
  rewrite sum_plus, sum_scal_r, H1, <- (Hv' i Hi) in A. pose proof (Hv i Hi).
  assert (m >= gamma M * m) by (unfold m in *; lra). nra.
Qed.

(** The value function of a policy is unique. *)
Theorem value_unique : forall M pi v v',
  is_policy M pi -> is_value M pi v -> is_value M pi v' ->
  forall s, (s < n_states M)%nat -> v s = v' s.
Proof.
  intros M pi v v' Hpi Hv Hv' s Hs. apply Rle_antisym.
  - apply (policy_improvement M pi v v'); auto. intros j Hj. rewrite <- Hv by exact Hj. lra.
  - apply (policy_improvement M pi v' v); auto. intros j Hj. rewrite <- Hv' by exact Hj. lra.
Qed.

(** Larger state values give larger action values. *)
Lemma q_of_monotone : forall M v v' s a, (s < n_states M)%nat -> (a < n_actions M)%nat ->
  (forall s', (s' < n_states M)%nat -> v s' <= v' s') -> q_of M v s a <= q_of M v' s a.
Proof.
  intros M v v' s a Hs Ha H. unfold q_of. apply Rplus_le_compat_l, Rmult_le_compat_l.
  - apply gamma_range.
  - apply sum_le. intros s' Hs'. apply Rmult_le_compat_l; [apply P_nonneg|]; auto.
Qed.

(** ** Existence, by value iteration *)

(** One step of value iteration: the right-hand side of the Bellman equation. *)
Definition bellman (M : MDP) (pi : nat -> nat -> R) (v : nat -> R) (s : nat) : R :=
  sum (n_actions M) (fun a => pi s a * q_of M v s a).

(** Value iteration from a constant. *)
Fixpoint iterate (M : MDP) (pi : nat -> nat -> R) (c : R) (k : nat) : nat -> R :=
  match k with
  | O => fun _ => c
  | S j => bellman M pi (iterate M pi c j)
  end.

(** Value iteration is monotone. *)
Lemma bellman_monotone : forall M pi v v', is_policy M pi ->
  (forall s, (s < n_states M)%nat -> v s <= v' s) ->
  forall s, (s < n_states M)%nat -> bellman M pi v s <= bellman M pi v' s.
Proof.
  intros M pi v v' Hpi H s Hs. apply sum_le. intros a Ha.
  apply Rmult_le_compat_l; [apply Hpi; auto|apply q_of_monotone; auto].
Qed.

(** No reward exceeds this number in absolute value. *)
Definition reward_bound (M : MDP) : R :=
  sum (n_states M) (fun s => sum (n_actions M) (fun a => Rabs (r M s a))).

(** Each term of the sum is at most the sum. *)
Lemma reward_bounded : forall M s a, (s < n_states M)%nat -> (a < n_actions M)%nat ->
  Rabs (r M s a) <= reward_bound M.
Proof.
  intros M s a Hs Ha.
  apply Rle_trans with (sum (n_actions M) (fun a => Rabs (r M s a))).
  - apply (sum_term _ (fun a => Rabs (r M s a))); [intros; apply Rabs_pos|exact Ha].
  - apply (sum_term _ (fun s => sum (n_actions M) (fun a => Rabs (r M s a)))); [|exact Hs].
    intros. apply sum_nonneg. intros. apply Rabs_pos.
Qed.

(** For K = max |r| / (1 - gamma), value iteration maps values between -K and K to such values. *)
Lemma bellman_bounded : forall M pi v, is_policy M pi ->
  let K := reward_bound M / (1 - gamma M) in
  (forall s, (s < n_states M)%nat -> - K <= v s <= K) ->
  forall s, (s < n_states M)%nat -> - K <= bellman M pi v s <= K.
Proof.
  intros M pi v Hpi K Hv s Hs. pose proof (gamma_range M) as Hg.
  assert (HK : reward_bound M = K - gamma M * K) by (unfold K; field; lra).
  destruct (Hpi s Hs) as [Hp H1].
  (* |r| + gamma K <= K for every action, and so for their mean *)
  assert (Hq : forall a, (a < n_actions M)%nat -> - K <= q_of M v s a <= K).
  { intros a Ha. unfold q_of. pose proof (reward_bounded M s a Hs Ha) as Hr.
    pose proof (Rle_abs (r M s a)) as Hr1. pose proof (Rle_abs (- r M s a)) as Hr2.
    rewrite Rabs_Ropp in Hr2. pose proof (P_sum M s a Hs Ha) as HP.
    assert (HP0 : 0 <= sum (n_states M) (P M s a)).
    { apply sum_nonneg. intros; apply P_nonneg; auto. }
    assert (L : sum (n_states M) (fun s' => P M s a s' * - K)
                <= sum (n_states M) (fun s' => P M s a s' * v s')).
    { apply sum_le. intros. apply Rmult_le_compat_l; [apply P_nonneg|apply Hv]; auto. }
    assert (U : sum (n_states M) (fun s' => P M s a s' * v s')
                <= sum (n_states M) (fun s' => P M s a s' * K)).
    { apply sum_le. intros. apply Rmult_le_compat_l; [apply P_nonneg|apply Hv]; auto. }
    rewrite sum_scal_r in L, U. set (m := sum (n_states M) (fun s' => P M s a s' * v s')) in *.
    assert (0 <= K) by (specialize (Hv s Hs); lra).
    assert (- K <= m <= K) by nra. nra. }
  (* the mean under the policy of values within these bounds *)
  unfold bellman. split.
  - apply Rle_trans with (sum (n_actions M) (fun a => pi s a * - K)).
    + rewrite sum_scal_r, H1. lra.
    + apply sum_le. intros a Ha. apply Rmult_le_compat_l; [auto|apply Hq, Ha].
  - apply mean_le; [apply Hpi, Hs|]. intros a Ha. apply Hq, Ha.
Qed.

(** The limit of a finite sum is the sum of the limits. *)
Lemma limit_sum : forall n (u : nat -> nat -> R) l,
  (forall i, (i < n)%nat -> Un_cv (fun k => u k i) (l i)) ->
  Un_cv (fun k => sum n (u k)) (sum n l).
Proof.
  induction n as [|n IH]; intros u l H; simpl.
  - intros e He. exists 0%nat. intros. unfold R_dist. rewrite Rminus_0_r, Rabs_R0. exact He.
  - apply CV_plus; [apply IH; auto with arith|apply H; auto].
Qed.

(** A constant sequence converges. *)
Lemma limit_const : forall c, Un_cv (fun _ => c) c.
Proof.
  intros c e He. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0; auto.
Qed.

(** If the iterates converge, one further step of value iteration converges to that of the limit. *)
Lemma limit_bellman : forall M pi (u : nat -> nat -> R) l s,
  (forall i, (i < n_states M)%nat -> Un_cv (fun k => u k i) (l i)) ->
  Un_cv (fun k => bellman M pi (u k) s) (bellman M pi l s).
Proof.
  intros M pi u l s H. unfold bellman.
  apply (limit_sum _ (fun k a => pi s a * q_of M (u k) s a)). intros a Ha.
  apply (CV_mult (fun _ => pi s a)); [apply limit_const|]. unfold q_of.
  apply CV_plus; [apply limit_const|]. apply (CV_mult (fun _ => gamma M)); [apply limit_const|].
  apply (limit_sum _ (fun k s' => P M s a s' * u k s')). intros i Hi.
  apply (CV_mult (fun _ => P M s a i)); [apply limit_const|auto].
Qed.

(** The value function exists: value iteration from -K increases, stays below K, and its limit
    solves the Bellman equation. *)
Theorem value_exists : forall M pi, is_policy M pi -> { v | is_value M pi v }.
Proof.
  intros M pi Hpi. set (K := reward_bound M / (1 - gamma M)). set (u := iterate M pi (- K)).
  assert (HK : 0 <= K).
  { apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; pose proof (gamma_range M); lra].
    apply sum_nonneg. intros. apply sum_nonneg. intros. apply Rabs_pos. }
  assert (Hb : forall k s, (s < n_states M)%nat -> - K <= u k s <= K).
  { induction k as [|k IH]; intros s Hs; [unfold u; simpl; lra|].
    apply (bellman_bounded M pi (u k)); auto. }
  assert (Hgrow : forall k s, (s < n_states M)%nat -> u k s <= u (S k) s).
  { induction k as [|k IH]; intros s Hs; [apply (Hb 1%nat s Hs)|].
    apply (bellman_monotone M pi (u k) (u (S k))); auto. }
  (* the limit, state by state *)
  assert (Hlim : forall s, (s < n_states M)%nat -> { l | Un_cv (fun k => u k s) l }).
  { intros s Hs. apply growing_cv; [intros k; apply Hgrow, Hs|].
    exists K. intros x [k ->]. apply Hb, Hs. }
  set (v := fun s => match lt_dec s (n_states M) with
                     | left Hs => proj1_sig (Hlim s Hs)
                     | right _ => 0
                     end).
  assert (Hv : forall s, (s < n_states M)%nat -> Un_cv (fun k => u k s) (v s)).
  { intros s Hs. unfold v. destruct (lt_dec s (n_states M)) as [H|H]; [|contradiction].
    exact (proj2_sig (Hlim s H)). }
  exists v. intros s Hs. apply (UL_sequence (fun k => u (S k) s)).
  - intros e He. destruct (Hv s Hs e He) as [N HN]. exists N. intros k Hk. apply HN. lia.
  - apply (limit_bellman M pi u v s Hv).
Qed.

(** ** Runs exist *)

(** Softmax parameters always give a policy. *)
Lemma softmax_policy : forall M theta, is_policy M (policy_of M softmax theta).
Proof. intros M theta s _. apply softmax_distribution. pose proof (two_actions M). lia. Qed.

(** If an update is defined for all parameters, a run exists from any parameters and with any
    weights: evaluate the policy, update every state, and repeat. *)
Theorem softmax_run_exists : forall M (step : Step) w start,
  (forall n w q theta, (2 <= n)%nat -> { theta' | step n w q theta theta' }) ->
  exists theta v, theta 0%nat = start /\ is_run M softmax step w theta v.
Proof.
  intros M step w start Hstep.
  set (value := fun theta => proj1_sig (value_exists M _ (softmax_policy M theta))).
  set (next := fun t theta s => proj1_sig
    (Hstep (n_actions M) (w t s) (q_of M (value theta) s) (theta s) (two_actions M))).
  set (theta := fix theta (t : nat) : nat -> nat -> R :=
    match t with O => start | S t' => next t' (theta t') end).
  exists theta, (fun t => value (theta t)). split; [reflexivity|]. intros t. split.
  - exact (proj2_sig (value_exists M _ (softmax_policy M (theta t)))).
  - intros s Hs. exact (proj2_sig (Hstep _ _ _ _ (two_actions M))).
Qed.
