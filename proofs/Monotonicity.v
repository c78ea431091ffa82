(** * Monotonicity: MCE never lowers a value (Proposition 2 of the paper)

    The theorem is [proposition_2]: it holds for any finite MDP, any number of actions, any
    non-negative weights that change with time and state, and any choice among tied greedy actions.
    The same lemmas prove it for PG-SM and DI with any step size.

    The value functions in the statements are solutions of the Bellman equation; Values.v proves
    that there is exactly one. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums Values Projection.
Open Scope R_scope.

(** ** From one state to all states *)

(** The step advantage of the book: A(s) = sum_a (pi' - pi)(a|s) q(s,a). *)
Definition step_advantage (n : nat) (p p' q : nat -> R) : R := sum n (fun a => (p' a - p a) * q a).

(** If no state has a negative step advantage, no value decreases. *)
Theorem from_one_state_to_all : forall M pi pi' v v',
  is_policy M pi' -> is_value M pi v -> is_value M pi' v' ->
  (forall s, (s < n_states M)%nat ->
    0 <= step_advantage (n_actions M) (pi s) (pi' s) (q_of M v s)) ->
  forall s, (s < n_states M)%nat -> v s <= v' s.
Proof.
  intros M pi pi' v v' Hpi Hv Hv' HA. apply (policy_improvement M pi'); auto.
  intros s Hs. specialize (HA s Hs). rewrite (Hv s Hs) at 1. unfold step_advantage in HA.
  rewrite (sum_ext _ _ (fun a => pi' s a * q_of M v s a - pi s a * q_of M v s a)) in HA
    by (intros; ring).
  rewrite sum_minus in HA. lra.
Qed.

(** ** The sign condition *)

(** The advantages have mean zero under the policy. *)
Lemma adv_mean : forall n p q, sum n p = 1 -> sum n (fun a => p a * adv n p q a) = 0.
Proof.
  intros n p q H1. unfold adv. set (v := sum n (fun b => p b * q b)).
  rewrite (sum_ext n _ (fun a => p a * q a - p a * v)) by (intros; ring).
  rewrite sum_minus, sum_scal_r, H1. fold v. ring.
Qed.

(** Let pi' be proportional to pi g.  Because the advantages have mean zero under pi, any number c
    can be subtracted from the factors: G A = sum_a pi(a) (g_a - c) adv(a) with
    G = sum_b pi(b) g_b. *)
Lemma step_advantage_factors : forall n p p' q g c,
  is_distribution n p -> is_distribution n p' ->
  (forall a, (a < n)%nat -> p' a = p a * g a / sum n (fun b => p b * g b)) ->
  step_advantage n p p' q
  = / sum n (fun b => p b * g b) * sum n (fun a => p a * (g a - c) * adv n p q a).
Proof.
  intros n p p' q g c [Hp H1] [Hp' H1'] Hp'g. set (G := sum n (fun b => p b * g b)) in *.
  (* A is the mean of the advantages under pi' *)
  transitivity (sum n (fun a => p' a * adv n p q a)).
  { unfold step_advantage, adv. set (v := sum n (fun b => p b * q b)).
    rewrite (sum_ext n _ (fun a => p' a * q a - p a * q a)) by (intros; ring).
    rewrite (sum_ext n (fun a => p' a * (q a - v)) (fun a => p' a * q a - p' a * v))
      by (intros; ring).
    rewrite !sum_minus, sum_scal_r, H1'. fold v. ring. }
  rewrite (sum_ext n (fun a => p a * (g a - c) * adv n p q a)
    (fun a => p a * g a * adv n p q a - c * (p a * adv n p q a))) by (intros; ring).
  rewrite sum_minus, (sum_scal_l n c), adv_mean by exact H1.
  rewrite Rmult_0_r, Rminus_0_r, <- sum_scal_l. apply sum_ext. intros a Ha.
  rewrite Hp'g by exact Ha. unfold Rdiv. ring.
Qed.

(** The sign condition of the book.  If the factors are at least c for positive advantages and at
    most c for negative advantages, then A >= 0, because no term of the sum above is negative. *)
Theorem sign_condition : forall n p p' q g c,
  is_distribution n p -> is_distribution n p' ->
  0 < sum n (fun b => p b * g b) ->
  (forall a, (a < n)%nat -> p' a = p a * g a / sum n (fun b => p b * g b)) ->
  (forall a, (a < n)%nat -> 0 < adv n p q a -> c <= g a) ->
  (forall a, (a < n)%nat -> adv n p q a < 0 -> g a <= c) ->
  0 <= step_advantage n p p' q.
Proof.
  intros n p p' q g c Hp Hp' HG Hp'g Hup Hdown.
  rewrite (step_advantage_factors n p p' q g c Hp Hp' Hp'g).
  apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, HG|].
  apply sum_nonneg. intros a Ha. rewrite Rmult_assoc. apply Rmult_le_pos; [apply Hp, Ha|].
  destruct (Rtotal_order (adv n p q a) 0) as [L|[L|L]].
  - pose proof (Hdown a Ha L). nra.
  - rewrite L. lra.
  - pose proof (Hup a Ha L). nra.
Qed.

(** The sign condition for softmax parameters to which x(a) is added: the factors are e^x(a). *)
Lemma sign_condition_softmax : forall n theta theta' q x c, (0 < n)%nat ->
  (forall a, (a < n)%nat -> theta' a = theta a + x a) ->
  (forall a, (a < n)%nat -> 0 < adv n (softmax n theta) q a -> c <= exp (x a)) ->
  (forall a, (a < n)%nat -> adv n (softmax n theta) q a < 0 -> exp (x a) <= c) ->
  0 <= step_advantage n (softmax n theta) (softmax n theta') q.
Proof.
  intros n theta theta' q x c Hn Hx Hup Hdown.
  apply sign_condition with (g := fun a => exp (x a)) (c := c);
    auto using softmax_distribution, softmax_shift.
  assert (Hpos : forall a, 0 < softmax n theta a * exp (x a)).
  { intros a. apply Rmult_lt_0_compat; [apply softmax_pos, Hn|apply exp_pos]. }
  apply sum_pos with 0%nat; auto. intros j _. left. apply Hpos.
Qed.

(** The exponential is monotone. *)
Lemma exp_le : forall x y, x <= y -> exp x <= exp y.
Proof. intros x y [H| ->]; [left; apply exp_increasing, H|right; reflexivity]. Qed.

(** ** One step of each update in one state *)

(** MCE adds u = w (1 - pi(g)) to the parameter of the greedy action and subtracts u / (|A| - 1)
    from every other parameter. *)
Definition mce_shift (n : nat) (u : R) (g a : nat) : R :=
  if a =? g then u else - (u / (INR n - 1)).

(** There are actions besides the greedy one. *)
Lemma actions_minus_one : forall n, (2 <= n)%nat -> 0 < INR n - 1.
Proof. intros n Hn. apply le_INR in Hn. simpl in Hn. lra. Qed.

(** The step of MCE is a shift of the parameters. *)
Lemma mce_is_shift : forall n w g theta a, (2 <= n)%nat ->
  mce_formula n w g theta a = theta a + mce_shift n (w * (1 - softmax n theta g)) g a.
Proof.
  intros n w g theta a Hn. pose proof (actions_minus_one n Hn).
  unfold mce_formula, mce_shift. destruct (a =? g); field; lra.
Qed.

(** The smallest shift is that of the other actions. *)
Lemma mce_shift_least : forall n u g a, (2 <= n)%nat -> 0 <= u ->
  - (u / (INR n - 1)) <= mce_shift n u g a.
Proof.
  intros n u g a Hn Hu. pose proof (actions_minus_one n Hn) as Hn1.
  assert (0 <= u / (INR n - 1)).
  { apply Rmult_le_pos; [exact Hu|]. left. apply Rinv_0_lt_compat, Hn1. }
  unfold mce_shift. destruct (a =? g); lra.
Qed.

(** The advantage of a greedy action is not negative. *)
Lemma adv_greedy : forall n theta q g, is_greedy n q g -> 0 <= adv n (softmax n theta) q g.
Proof.
  intros n theta q g [Hg Hmax]. unfold adv.
  pose proof (mean_le n (softmax n theta) q (q g)
                (softmax_distribution n theta ltac:(lia)) Hmax). lra.
Qed.

(** MCE: all actions except the greedy one have the same factor c; the greedy action, whose
    advantage is not negative, has a larger factor. *)
Lemma mce_step_advantage : forall n w q theta theta', (2 <= n)%nat -> 0 <= w ->
  mce n w q theta theta' -> 0 <= step_advantage n (softmax n theta) (softmax n theta') q.
Proof.
  intros n w q theta theta' Hn Hw [g [Hgreedy Hstep]].
  set (u := w * (1 - softmax n theta g)).
  assert (Hu : 0 <= u).
  { apply Rmult_le_pos; [exact Hw|].
    pose proof (softmax_le_1 n theta g (proj1 Hgreedy)). lra. }
  apply sign_condition_softmax
    with (x := mce_shift n u g) (c := exp (- (u / (INR n - 1)))); [lia| | |].
  - intros a Ha. rewrite Hstep by exact Ha. apply mce_is_shift, Hn.
  - intros a Ha _. apply exp_le, mce_shift_least; [exact Hn|exact Hu].
  - intros a Ha Hadv. unfold mce_shift. destruct (Nat.eqb_spec a g) as [->|_]; [exfalso|lra].
    pose proof (adv_greedy n theta q g Hgreedy). lra.
Qed.

(** PG-SM: the factors e^(w pi(a) adv(a)) are at least one for positive advantages and at most one
    for negative advantages. *)
Lemma pg_sm_step_advantage : forall n w q theta theta', (2 <= n)%nat -> 0 <= w ->
  pg_sm n w q theta theta' -> 0 <= step_advantage n (softmax n theta) (softmax n theta') q.
Proof.
  intros n w q theta theta' Hn Hw Hstep.
  assert (Hpos : forall a, 0 <= w * softmax n theta a).
  { intros a. apply Rmult_le_pos; [exact Hw|]. left. apply softmax_pos. lia. }
  apply sign_condition_softmax
    with (x := fun a => w * (softmax n theta a * adv n (softmax n theta) q a)) (c := 1).
  - lia.
  - exact Hstep.
  - intros a Ha Hadv. rewrite <- exp_0. apply exp_le. specialize (Hpos a). nra.
  - intros a Ha Hadv. rewrite <- exp_0. apply exp_le. specialize (Hpos a). nra.
Qed.

(** DI: the angle at the nearest point is not acute, so that w A >= |pi' - pi|^2. *)
Lemma di_step_advantage : forall n w q theta theta', 0 <= w -> is_distribution n theta ->
  di n w q theta theta' -> 0 <= step_advantage n theta theta' q.
Proof.
  intros n w q theta theta' Hw Htheta Hstep.
  pose proof (projection_angle n _ theta' theta Hstep Htheta) as Hangle. simpl in Hangle.
  assert (E : sum n (fun a => (theta a + w * q a - theta' a) * (theta a - theta' a))
              = distance2 n theta theta' - w * step_advantage n theta theta' q).
  { unfold distance2, step_advantage. rewrite <- sum_scal_l, <- sum_minus.
    apply sum_ext. intros; ring. }
  pose proof (distance2_nonneg n theta theta') as Hd.
  destruct Hw as [Hw|Hw]; [nra|].
  (* a step with weight zero changes nothing *)
  subst w. assert (Z : forall a, (a < n)%nat -> (theta a - theta' a) ^ 2 = 0).
  { intros a Ha.
    apply (sum_zero n (fun a => (theta a - theta' a) ^ 2));
      [intros; apply pow2_ge_0|fold (distance2 n theta theta'); lra|exact Ha]. }
  unfold step_advantage. rewrite (sum_ext n _ (fun _ => 0)); [rewrite sum_const; lra|].
  intros a Ha. specialize (Z a Ha). assert (theta' a - theta a = 0) as ->; [nra|ring].
Qed.

(** ** Complete runs *)

(** If no step of a run has a negative step advantage, no value ever decreases. *)
Lemma run_monotone : forall M par step w theta v,
  is_run M par step w theta v -> (forall t, is_policy M (policy_of M par (theta t))) ->
  (forall t s, (s < n_states M)%nat ->
    0 <= step_advantage (n_actions M) (par (n_actions M) (theta t s))
           (par (n_actions M) (theta (S t) s)) (q_of M (v t) s)) ->
  forall t s, (s < n_states M)%nat -> v t s <= v (S t) s /\
    forall a, (a < n_actions M)%nat -> q_of M (v t) s a <= q_of M (v (S t)) s a.
Proof.
  intros M par step w theta v Hrun Hpol HA t s Hs.
  assert (Hv : forall s, (s < n_states M)%nat -> v t s <= v (S t) s).
  { apply (from_one_state_to_all M (policy_of M par (theta t)) (policy_of M par (theta (S t))));
      try apply Hrun; try apply Hpol. intros j Hj. apply HA, Hj. }
  split; [apply Hv, Hs|]. intros a Ha. apply q_of_monotone; auto.
Qed.

(** *** Proposition 2: updating a policy with MCE never lowers the value of a state or an action. *)
Theorem proposition_2 : forall M w theta v,
  is_run M softmax mce w theta v ->
  (forall t s, (s < n_states M)%nat -> 0 <= w t s) ->
  forall t s, (s < n_states M)%nat -> v t s <= v (S t) s /\
    forall a, (a < n_actions M)%nat -> q_of M (v t) s a <= q_of M (v (S t)) s a.
Proof.
  intros M w theta v Hrun Hw. apply (run_monotone M softmax mce w theta v Hrun).
  - intros t. apply softmax_policy.
  - intros t s Hs. apply (mce_step_advantage _ (w t s)); [apply two_actions|apply Hw, Hs|].
    apply Hrun, Hs.
Qed.

(** Such runs exist from any start and with any weights. *)
Theorem mce_run_exists : forall M w start,
  exists theta v, theta 0%nat = start /\ is_run M softmax mce w theta v.
Proof.
  intros M w start. apply softmax_run_exists. intros n x q theta Hn.
  destruct (greedy_exists n q ltac:(lia)) as [g Hg].
  exists (mce_formula n x g theta). exists g. split; [exact Hg|reflexivity].
Qed.

(** The same holds for PG-SM with any step size. *)
Theorem pg_sm_monotone : forall M w theta v,
  is_run M softmax pg_sm w theta v ->
  (forall t s, (s < n_states M)%nat -> 0 <= w t s) ->
  forall t s, (s < n_states M)%nat -> v t s <= v (S t) s /\
    forall a, (a < n_actions M)%nat -> q_of M (v t) s a <= q_of M (v (S t)) s a.
Proof.
  intros M w theta v Hrun Hw. apply (run_monotone M softmax pg_sm w theta v Hrun).
  - intros t. apply softmax_policy.
  - intros t s Hs. apply (pg_sm_step_advantage _ (w t s)); [apply two_actions|apply Hw, Hs|].
    apply Hrun, Hs.
Qed.

(** Such runs also exist. *)
Theorem pg_sm_run_exists : forall M w start,
  exists theta v, theta 0%nat = start /\ is_run M softmax pg_sm w theta v.
Proof.
  intros M w start. apply softmax_run_exists. intros n x q theta _.
  exists (pg_sm_formula n x q theta). intros a _. reflexivity.
Qed.

(** The same holds for DI with any step size and from any policy. *)
Theorem di_monotone : forall M w theta v,
  is_run M direct di w theta v -> is_policy M (theta 0%nat) ->
  (forall t s, (s < n_states M)%nat -> 0 <= w t s) ->
  forall t s, (s < n_states M)%nat -> v t s <= v (S t) s /\
    forall a, (a < n_actions M)%nat -> q_of M (v t) s a <= q_of M (v (S t)) s a.
Proof.
  intros M w theta v Hrun H0 Hw.
  assert (Hpol : forall t, is_policy M (theta t)).
  { intros [|t]; [exact H0|]. intros s Hs. apply (proj2 (Hrun t) s Hs). }
  apply (run_monotone M direct di w theta v Hrun); [exact Hpol|].
  intros t s Hs. apply (di_step_advantage _ (w t s)); [apply Hw, Hs|apply Hpol, Hs|].
  apply Hrun, Hs.
Qed.

(** Such runs also exist, because a projection is a policy. *)
Theorem di_run_exists : forall M w start, is_policy M start ->
  exists theta v, theta 0%nat = start /\ is_run M direct di w theta v.
Proof.
  intros M w start Hstart. pose proof (two_actions M) as Hn.
  set (value := fun theta : { theta | is_policy M theta } =>
    proj1_sig (value_exists M _ (proj2_sig theta))).
  set (project := fun x => projection_exists (n_actions M) x ltac:(lia)).
  (* the policies carry the proof that they are policies *)
  set (next := fun t (theta : { theta | is_policy M theta }) s => proj1_sig (project
    (fun a => proj1_sig theta s a + w t s * q_of M (value theta) s a))).
  assert (Hnext : forall t theta, is_policy M (next t theta)).
  { intros t theta s _. apply (proj2_sig (project _)). }
  set (theta := fix theta (t : nat) : { theta | is_policy M theta } := match t with
    | O => exist _ start Hstart
    | S t' => exist _ (next t' (theta t')) (Hnext t' (theta t'))
    end).
  exists (fun t => proj1_sig (theta t)), (fun t => value (theta t)).
  split; [reflexivity|]. intros t. split.
  - exact (proj2_sig (value_exists M _ (proj2_sig (theta t)))).
  - intros s Hs. exact (proj2_sig (project _)).
Qed.
