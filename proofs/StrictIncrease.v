(** * Proposition 2, exactly: when MCE raises a value

    "Increases" in the paper's Proposition 2 is read as "does not decrease".  The value of a state
    increases if and only if a state can be reached from it that is updated with a positive weight
    and whose action values are not all equal: [proposition_2_exactly]. *)

Require Import Reals Lra Lia Psatz Classical_Prop.
From PolicyUpdates Require Import Definitions Sums Values Monotonicity.
Open Scope R_scope.

(** The values of the actions of a state are not all equal. *)
Definition not_constant (n : nat) (q : nat -> R) : Prop :=
  exists a b, (a < n)%nat /\ (b < n)%nat /\ q a <> q b.

(** ** One state *)

(** If there are at least two actions, none has probability one. *)
Lemma softmax_lt_1 : forall n theta a, (2 <= n)%nat -> (a < n)%nat -> softmax n theta a < 1.
Proof.
  intros n theta a Hn Ha. rewrite <- (softmax_sum n theta) by lia.
  (* another action, b, has a positive probability *)
  set (b := if a =? 0 then 1%nat else 0%nat).
  assert (Hb : (b < n)%nat /\ b <> a) by (unfold b; destruct (Nat.eqb_spec a 0); lia).
  set (f := fun i => softmax n theta i - (if i =? a then softmax n theta a else 0)).
  assert (H : 0 < sum n f).
  { apply sum_pos with b; [|apply Hb|]; unfold f.
    - intros j Hj. pose proof (softmax_pos n theta j ltac:(lia)).
      destruct (Nat.eqb_spec j a) as [->|_]; lra.
    - destruct (Nat.eqb_spec b a); [lia|]. pose proof (softmax_pos n theta b ltac:(lia)). lra. }
  unfold f in H. rewrite sum_minus, sum_single in H by exact Ha. lra.
Qed.

(** The advantage of the greedy action, which is a mean of q(g) - q(b) with positive weights, is
    positive if and only if the values are not all equal. *)
Lemma adv_greedy_pos : forall n theta q g, is_greedy n q g ->
  (0 < adv n (softmax n theta) q g <-> not_constant n q).
Proof.
  intros n theta q g Hgreedy. destruct Hgreedy as [Hg Hmax].
  assert (Hterm : forall b, (b < n)%nat -> 0 <= softmax n theta b * (q g - q b)).
  { intros b Hb. apply Rmult_le_pos; [left; apply softmax_pos; lia|].
    pose proof (Hmax b Hb). lra. }
  assert (E : adv n (softmax n theta) q g = sum n (fun b => softmax n theta b * (q g - q b))).
  { unfold adv. rewrite (sum_ext n (fun b => softmax n theta b * (q g - q b))
      (fun b => softmax n theta b * q g - softmax n theta b * q b)) by (intros; ring).
    rewrite sum_minus, sum_scal_r, softmax_sum by lia. ring. }
  rewrite E. split.
  - intros H. apply NNPP. intros N. apply (Rlt_irrefl 0). apply Rlt_le_trans with (1 := H).
    right. rewrite (sum_ext n _ (fun _ => 0)); [rewrite sum_const; ring|]. intros b Hb.
    destruct (Req_dec (q g) (q b)) as [->|Hne]; [ring|]. contradict N. exists g, b. auto.
  - intros [a [b [Ha [Hb Hab]]]]. pose proof (Hmax a Ha) as La. pose proof (Hmax b Hb) as Lb.
    (* one of the two is below the maximum *)
    assert (H : exists c, (c < n)%nat /\ q c < q g).
    { destruct (Rtotal_order (q a) (q b)) as [L|[L|L]].
      - exists a. split; [exact Ha|lra].
      - contradiction.
      - exists b. split; [exact Hb|lra]. }
    destruct H as [c [Hc Lc]]. apply (sum_pos n _ c Hterm Hc).
    apply Rmult_lt_0_compat; [apply softmax_pos; lia|lra].
Qed.

(** MCE: A = pi(g) (e^u - c) adv(g) / G, which is positive if and only if the weight is positive and
    the values are not all equal. *)
Lemma mce_step_advantage_pos : forall n w q theta theta', (2 <= n)%nat -> 0 <= w ->
  mce n w q theta theta' ->
  (0 < step_advantage n (softmax n theta) (softmax n theta') q <-> 0 < w /\ not_constant n q).
Proof.
  intros n w q theta theta' Hn Hw [g [Hgreedy Hstep]]. pose proof (proj1 Hgreedy) as Hg.
  pose proof (softmax_lt_1 n theta g Hn Hg) as Hlt. pose proof (actions_minus_one n Hn) as Hn1.
  pose proof (softmax_pos n theta g ltac:(lia)) as Hpos.
  pose proof (adv_greedy n theta q g Hgreedy) as Hadv.
  pose proof (adv_greedy_pos n theta q g Hgreedy) as Hiff.
  set (u := w * (1 - softmax n theta g)). set (c := exp (- (u / (INR n - 1)))).
  set (G := sum n (fun b => softmax n theta b * exp (mce_shift n u g b))).
  assert (HG : 0 < G).
  { assert (H : forall b, 0 < softmax n theta b * exp (mce_shift n u g b)).
    { intros b. apply Rmult_lt_0_compat; [apply softmax_pos; lia|apply exp_pos]. }
    apply (sum_pos n _ g); [intros; left; apply H|exact Hg|apply H]. }
  (* only the term of g remains in the sum over the actions *)
  assert (E : step_advantage n (softmax n theta) (softmax n theta') q
              = / G * (softmax n theta g * (exp u - c) * adv n (softmax n theta) q g)).
  { rewrite (step_advantage_factors n _ _ q (fun a => exp (mce_shift n u g a)) c);
      try (apply softmax_distribution; lia).
    - fold G. f_equal.
      rewrite <- (sum_single n g (softmax n theta g * (exp u - c) * _)) by exact Hg.
      apply sum_ext. intros a Ha. unfold mce_shift, c.
      destruct (Nat.eqb_spec a g) as [->|_]; ring.
    - apply softmax_shift; [lia|]. intros a Ha. rewrite Hstep by exact Ha.
      apply mce_is_shift, Hn. }
  rewrite E, <- Hiff.
  assert (HG' : 0 < / G) by (apply Rinv_0_lt_compat, HG). split.
  - intros H. split.
    + (* if the weight is zero, all factors are one *)
      destruct Hw as [Hw|Hw]; [exact Hw|exfalso].
      unfold c, u in H. rewrite <- Hw, Rmult_0_l in H. unfold Rdiv in H.
      rewrite Rmult_0_l, Ropp_0 in H. nra.
    + destruct Hadv as [Hadv|Hadv]; [exact Hadv|exfalso]. rewrite <- Hadv in H. nra.
  - intros [Hw' Hadv'].
    assert (Hu : 0 < u) by (apply Rmult_lt_0_compat; lra).
    assert (0 < u / (INR n - 1)) by (apply Rdiv_lt_0_compat; lra).
    assert (c < exp u) by (apply exp_increasing; lra).
    apply Rmult_lt_0_compat; [exact HG'|].
    apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat|]; lra.
Qed.

(** ** All states *)

(** [s'] can be reached from [s] in zero steps, or by an action that may lead to a state from which
    it can be reached.  If gamma = 0, only [s] itself can be reached. *)
Inductive reachable (M : MDP) : nat -> nat -> Prop :=
  | here : forall s, reachable M s s
  | there : forall s a s1 s', (a < n_actions M)%nat -> (s1 < n_states M)%nat ->
      0 < gamma M * P M s a s1 -> reachable M s1 s' -> reachable M s s'.

(** The change of the values solves D = A + gamma P_pi' D. *)
Lemma change_of_values : forall M pi pi' v v' s, (s < n_states M)%nat ->
  is_value M pi v -> is_value M pi' v' ->
  v' s - v s = step_advantage (n_actions M) (pi s) (pi' s) (q_of M v s) +
    sum (n_actions M) (fun a => pi' s a *
      sum (n_states M) (fun s' => gamma M * P M s a s' * (v' s' - v s'))).
Proof.
  intros M pi pi' v v' s Hs Hv Hv'. rewrite (Hv s Hs), (Hv' s Hs). unfold step_advantage.
  rewrite <- sum_plus, <- sum_minus. apply sum_ext. intros a Ha. unfold q_of.
  rewrite (sum_ext (n_states M) (fun s' => gamma M * P M s a s' * (v' s' - v s'))
    (fun s' => gamma M * (P M s a s' * v' s') - gamma M * (P M s a s' * v s')))
    by (intros; ring).
  rewrite sum_minus, !sum_scal_l. ring.
Qed.

(** A positive step advantage raises the values of all states from which it can be reached. *)
Lemma rises_if_reachable : forall M pi pi' v v',
  is_policy M pi' -> (forall s a, (s < n_states M)%nat -> (a < n_actions M)%nat -> 0 < pi' s a) ->
  is_value M pi v -> is_value M pi' v' ->
  (forall s, (s < n_states M)%nat ->
    0 <= step_advantage (n_actions M) (pi s) (pi' s) (q_of M v s)) ->
  forall s s', reachable M s s' -> (s < n_states M)%nat -> (s' < n_states M)%nat ->
  0 < step_advantage (n_actions M) (pi s') (pi' s') (q_of M v s') -> v s < v' s.
Proof.
  intros M pi pi' v v' Hpol Hpos Hv Hv' HA s s' Hreach. pose proof (gamma_range M) as Hgamma.
  pose proof (from_one_state_to_all M pi pi' v v' Hpol Hv Hv' HA) as Hle.
  (* the contribution of the successors is never negative *)
  assert (Hin : forall s a, (s < n_states M)%nat -> (a < n_actions M)%nat ->
            forall j, (j < n_states M)%nat -> 0 <= gamma M * P M s a j * (v' j - v j)).
  { intros x a Hx Ha j Hj. pose proof (Hle j Hj). pose proof (P_nonneg M x a j Hx Ha Hj).
    repeat apply Rmult_le_pos; lra. }
  assert (Hout : forall s, (s < n_states M)%nat -> forall a, (a < n_actions M)%nat ->
            0 <= pi' s a * sum (n_states M) (fun j => gamma M * P M s a j * (v' j - v j))).
  { intros x Hx a Ha. apply Rmult_le_pos; [left; auto|]. apply sum_nonneg. auto. }
  induction Hreach as [s|s a s1 s' Ha Hs1 HP Hreach IH]; intros Hs Hs' Hpos'.
  - pose proof (change_of_values M pi pi' v v' s Hs Hv Hv') as E.
    pose proof (sum_nonneg _ _ (Hout s Hs)). lra.
  - specialize (IH Hs1 Hs' Hpos'). pose proof (change_of_values M pi pi' v v' s Hs Hv Hv') as E.
    pose proof (HA s Hs).
    enough (0 < sum (n_actions M) (fun a => pi' s a *
      sum (n_states M) (fun s' => gamma M * P M s a s' * (v' s' - v s')))) by lra.
    apply (sum_pos _ _ a (Hout s Hs) Ha). apply Rmult_lt_0_compat; [auto|].
    apply (sum_pos _ _ s1 (Hin s a Hs Ha) Hs1). apply Rmult_lt_0_compat; lra.
Qed.

(** If no positive step advantage can be reached, the change is at most gamma^k times the sum of the
    changes over all states, for every k. *)
Lemma change_decays : forall M pi pi' v v',
  is_policy M pi' -> is_value M pi v -> is_value M pi' v' ->
  (forall s, (s < n_states M)%nat -> v s <= v' s) ->
  forall k s, (s < n_states M)%nat ->
  (forall s', (s' < n_states M)%nat -> reachable M s s' ->
    step_advantage (n_actions M) (pi s') (pi' s') (q_of M v s') <= 0) ->
  v' s - v s <= gamma M ^ k * sum (n_states M) (fun j => v' j - v j).
Proof.
  intros M pi pi' v v' Hpol Hv Hv' Hle. set (C := sum (n_states M) (fun j => v' j - v j)).
  pose proof (gamma_range M) as Hgamma.
  assert (HC : forall j, (j < n_states M)%nat -> v' j - v j <= C).
  { intros j Hj. apply (sum_term _ (fun j => v' j - v j)); [|exact Hj].
    intros i Hi. pose proof (Hle i Hi). lra. }
  assert (HC0 : 0 <= C).
  { apply sum_nonneg. intros j Hj. pose proof (Hle j Hj). lra. }
  induction k as [|k IH]; intros s Hs HA; [simpl; rewrite Rmult_1_l; apply HC, Hs|].
  rewrite (change_of_values M pi pi' v v' s Hs Hv Hv'). pose proof (HA s Hs (here M s)).
  assert (HB : 0 <= gamma M ^ k * C) by (apply Rmult_le_pos; [apply pow_le|]; lra).
  set (B := gamma M ^ k * C) in *.
  (* the mean over the actions of terms that are at most gamma B *)
  enough (L : sum (n_actions M) (fun a => pi' s a *
    sum (n_states M) (fun s' => gamma M * P M s a s' * (v' s' - v s'))) <= gamma M * B).
  { simpl. unfold B in L. lra. }
  apply mean_le; [apply Hpol, Hs|]. intros a Ha.
  apply Rle_trans with (sum (n_states M) (fun j => P M s a j * (gamma M * B))).
  - apply sum_le. intros j Hj. pose proof (P_nonneg M s a j Hs Ha Hj) as HP.
    assert (H0 : 0 <= gamma M * P M s a j) by (apply Rmult_le_pos; lra).
    destruct H0 as [H0|H0].
    + (* no positive step advantage can be reached from a successor either *)
      specialize (IH j Hj (fun x Hx Hr => HA x Hx (there M s a j x Ha Hj H0 Hr))). nra.
    + rewrite <- H0. nra.
  - rewrite sum_scal_r. pose proof (P_sum M s a Hs Ha).
    rewrite <- (Rmult_1_l (gamma M * B)) at 2.
    apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|assumption].
Qed.

(** *** Proposition 2, exactly: under MCE a value increases if and only if a state can be reached
    that has a positive weight and action values that are not all equal. *)
Theorem proposition_2_exactly : forall M w theta v,
  is_run M softmax mce w theta v ->
  (forall t s, (s < n_states M)%nat -> 0 <= w t s) ->
  forall t s, (s < n_states M)%nat ->
  (v t s < v (S t) s <->
    exists s', (s' < n_states M)%nat /\ reachable M s s' /\ 0 < w t s' /\
      not_constant (n_actions M) (q_of M (v t) s')).
Proof.
  intros M w theta v Hrun Hw t s Hs. pose proof (two_actions M) as Hn.
  set (pi := policy_of M softmax (theta t)). set (pi' := policy_of M softmax (theta (S t))).
  assert (Hpol : is_policy M pi') by apply softmax_policy.
  pose proof (proj1 (Hrun t)) as Hv. pose proof (proj1 (Hrun (S t))) as Hv'.
  fold pi in Hv. fold pi' in Hv'.
  set (A := fun s => step_advantage (n_actions M) (pi s) (pi' s) (q_of M (v t) s)).
  assert (HA : forall s, (s < n_states M)%nat -> 0 <= A s).
  { intros x Hx. apply (mce_step_advantage _ (w t x)); auto. apply Hrun, Hx. }
  assert (Hiff : forall s, (s < n_states M)%nat ->
            (0 < A s <-> 0 < w t s /\ not_constant (n_actions M) (q_of M (v t) s))).
  { intros x Hx. apply mce_step_advantage_pos; auto. apply Hrun, Hx. }
  split.
  - intros Hlt. apply NNPP. intros N.
    assert (Hzero : forall s', (s' < n_states M)%nat -> reachable M s s' -> A s' <= 0).
    { intros x Hx Hr. apply Rnot_lt_le. intros L. apply N. exists x. apply Hiff in L; tauto. }
    (* the change is smaller than every positive number *)
    pose proof (from_one_state_to_all M pi pi' _ _ Hpol Hv Hv' HA) as Hle.
    set (C := sum (n_states M) (fun j => v (S t) j - v t j)).
    assert (HC : 0 < C + 1).
    { assert (0 <= C) by (apply sum_nonneg; intros j Hj; pose proof (Hle j Hj); lra). lra. }
    pose proof (gamma_range M) as Hgamma.
    destruct (pow_lt_1_zero (gamma M) ltac:(rewrite Rabs_pos_eq; lra)
                ((v (S t) s - v t s) / (C + 1)) ltac:(apply Rdiv_lt_0_compat; lra)) as [k Hk].
    specialize (Hk k (le_n k)).
    rewrite Rabs_pos_eq in Hk by (apply pow_le; lra).
    apply Rmult_lt_compat_r with (r := C + 1) in Hk; [|exact HC].
    unfold Rdiv in Hk. rewrite Rmult_assoc, Rinv_l, Rmult_1_r in Hk by lra.
    pose proof (change_decays M pi pi' _ _ Hpol Hv Hv' Hle k s Hs Hzero) as Hdecay.
    fold C in Hdecay.
    assert (0 <= gamma M ^ k) by (apply pow_le; lra). lra.
  - intros [s' [Hs' [Hreach Hmoves]]].
    apply (rises_if_reachable M pi pi' (v t) (v (S t)) Hpol) with (s' := s'); auto.
    + intros x a Hx Ha. apply softmax_pos. lia.
    + apply Hiff; assumption.
Qed.
