(** * Unlearning: a policy gradient retraces its path (Theorems 4(i) and 5(i) of the paper)

    The setting has one state, two actions and the softmax parametrization: [n] updates of PG-SM
    with q = (1, 0) are followed by updates with q = (0, 1) until pi(a_1) is back at its start.  If
    the weights are constant, this takes at least n + 1 updates, one more than the paper states:
    [theorem_4_i_pg_sm].  If the weights are eta_1 / sqrt t, it takes more than
    3 n - 4 sqrt n + 1 updates: [theorem_5_i_pg_sm]. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums.
Open Scope R_scope.

(** ** One coordinate: delta = theta_1 - theta_2 *)

Definition delta (theta : nat -> R) : R := theta 0%nat - theta 1%nat.

(** The speed pi(a_1) pi(a_2) as a function of delta, and its inverse, the slowness. *)
Definition slowness (d : R) : R := 2 + exp d + exp (- d).
Definition speed (d : R) : R := / slowness d.

(** The slowness is positive, because it is the sum of 2 and two exponentials. *)
Lemma slowness_pos : forall d, 0 < slowness d.
Proof. intros d. unfold slowness. pose proof (exp_pos d). pose proof (exp_pos (- d)). lra. Qed.

(** The speed is positive, because it is the inverse of a positive number. *)
Lemma speed_pos : forall d, 0 < speed d.
Proof. intros d. apply Rinv_0_lt_compat, slowness_pos. Qed.

(** pi(a_1) = 1 / (1 + e^-delta). *)
Lemma softmax_two_first : forall theta, softmax 2 theta 0%nat = / (1 + exp (- delta theta)).
Proof.
  intros theta. unfold softmax, delta, sum.
  replace (- (theta 0%nat - theta 1%nat)) with (theta 1%nat + - theta 0%nat) by ring.
  rewrite exp_plus, exp_Ropp.
  pose proof (exp_pos (theta 0%nat)). pose proof (exp_pos (theta 1%nat)). field. lra.
Qed.

(** The two probabilities sum to one. *)
Lemma softmax_two_second : forall theta, softmax 2 theta 1%nat = 1 - softmax 2 theta 0%nat.
Proof. intros theta. pose proof (softmax_sum 2 theta ltac:(lia)) as H. simpl in H. lra. Qed.

(** The probability of the first action increases with delta. *)
Lemma softmax_two_lt : forall theta theta',
  softmax 2 theta 0%nat < softmax 2 theta' 0%nat <-> delta theta < delta theta'.
Proof.
  assert (H : forall theta theta', delta theta < delta theta' ->
                softmax 2 theta 0%nat < softmax 2 theta' 0%nat).
  { intros theta theta' H. rewrite !softmax_two_first.
    pose proof (exp_pos (- delta theta)). pose proof (exp_pos (- delta theta')).
    assert (exp (- delta theta') < exp (- delta theta)) by (apply exp_increasing; lra).
    apply Rinv_lt_contravar; [apply Rmult_lt_0_compat|]; lra. }
  intros theta theta'. split; [|apply H]. intros Hp.
  destruct (Rtotal_order (delta theta) (delta theta')) as [L|[L|L]]; [exact L|exfalso|exfalso].
  - rewrite !softmax_two_first, L in Hp. lra.
  - apply H in L. lra.
Qed.

(** The same holds for <= by contraposition. *)
Lemma softmax_two_le : forall theta theta',
  softmax 2 theta 0%nat <= softmax 2 theta' 0%nat <-> delta theta <= delta theta'.
Proof.
  intros theta theta'. pose proof (softmax_two_lt theta' theta) as H.
  split; intros L; apply Rnot_lt_le; intros N; apply H in N; lra.
Qed.

(** pi(a_1) >= 1/2 is equivalent to delta >= 0. *)
Lemma softmax_two_half : forall theta, 1 / 2 <= softmax 2 theta 0%nat -> 0 <= delta theta.
Proof.
  intros theta H. pose proof (proj1 (softmax_two_le (fun _ => 0) theta)) as L.
  unfold delta in L at 1. rewrite Rminus_0_r in L. apply L.
  replace (softmax 2 (fun _ => 0) 0%nat) with (1 / 2); [exact H|].
  rewrite softmax_two_first. unfold delta. rewrite Rminus_0_r, Ropp_0, exp_0. field.
Qed.

(** The speed is the product of the two probabilities. *)
Lemma speed_two : forall theta,
  softmax 2 theta 0%nat * softmax 2 theta 1%nat = speed (delta theta).
Proof.
  intros theta. rewrite softmax_two_second, softmax_two_first. unfold speed, slowness.
  rewrite exp_Ropp. pose proof (exp_pos (delta theta)). field.
  assert (0 < exp (delta theta) * exp (delta theta)) by (apply Rmult_lt_0_compat; lra).
  repeat split; lra.
Qed.

(** A forward step of PG-SM adds 2 w g(delta); a backward step subtracts it. *)
Lemma pg_sm_forward : forall w theta theta', pg_sm 2%nat w q_first theta theta' ->
  delta theta' = delta theta + 2 * w * speed (delta theta).
Proof.
  intros w theta theta' H. rewrite <- speed_two. unfold delta. rewrite !H by lia.
  unfold pg_sm_formula, adv, sum, q_first. simpl. rewrite softmax_two_second. ring.
Qed.

(** The proof exchanges the two actions in the previous computation. *)
Lemma pg_sm_backward : forall w theta theta', pg_sm 2%nat w q_second theta theta' ->
  delta theta' = delta theta - 2 * w * speed (delta theta).
Proof.
  intros w theta theta' H. rewrite <- speed_two. unfold delta. rewrite !H by lia.
  unfold pg_sm_formula, adv, sum, q_second. simpl. rewrite softmax_two_second. ring.
Qed.

(** ** Travel time *)

(** An explicit antiderivative of the slowness 1/g: its increase from x to y is the travel time at
    the local speed. *)
Definition time (d : R) : R := 2 * d + exp d - exp (- d).

(** The slowness increases with the distance from zero. *)
Lemma slowness_increasing : forall x y, 0 <= x -> x < y -> slowness x < slowness y.
Proof.
  intros x y Hx Hxy. unfold slowness. rewrite !exp_Ropp.
  assert (H1 : 1 <= exp x).
  { rewrite <- exp_0. destruct Hx as [Hx| <-]; [left; apply exp_increasing, Hx|right; auto]. }
  assert (H2 : exp x < exp y) by (apply exp_increasing, Hxy).
  set (a := exp x) in *. set (b := exp y) in *.
  (* b + 1/b - a - 1/a = (b - a) (1 - 1/(a b)) *)
  assert (E : b + / b - (a + / a) = (b - a) * (1 - / (a * b))) by (field; lra).
  assert (0 < 1 - / (a * b)).
  { assert (/ (a * b) < / 1) by (apply Rinv_lt_contravar; nra). rewrite Rinv_1 in *. lra. }
  assert (0 < (b - a) * (1 - / (a * b))) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

(** The travel time from [a] to [b] lies between the distance times [slowness a] and the distance
    times [slowness b]. *)
Lemma time_bounds : forall a b, 0 <= a -> a < b ->
  slowness a * (b - a) < time b - time a < slowness b * (b - a).
Proof.
  intros a b Ha Hab.
  assert (D : forall x, a <= x <= b -> derivable_pt_lim time x (slowness x)).
  { intros x _. unfold time, slowness.
    replace (2 + exp x + exp (- x)) with (2 * 1 + exp x - exp (- x) * - 1) by ring.
    apply derivable_pt_lim_minus; [apply derivable_pt_lim_plus|].
    - apply derivable_pt_lim_scal, derivable_pt_lim_id.
    - apply derivable_pt_lim_exp.
    - apply (derivable_pt_lim_comp (fun x => - x) exp); [|apply derivable_pt_lim_exp].
      apply derivable_pt_lim_opp, derivable_pt_lim_id. }
  destruct (MVT_cor2 time slowness a b Hab D) as [c [E [Hac Hcb]]]. rewrite E.
  split; apply Rmult_lt_compat_r; try lra; apply slowness_increasing; lra.
Qed.

(** The speed is the inverse of the slowness. *)
Lemma speed_slowness : forall d w, slowness d * (2 * w * speed d) = 2 * w.
Proof. intros d w. unfold speed. pose proof (slowness_pos d). field. lra. Qed.

(** The travel time to the end of a step of weight [w] exceeds 2 w. *)
Lemma forward_time : forall d w, 0 <= d -> 0 < w ->
  2 * w < time (d + 2 * w * speed d) - time d.
Proof.
  intros d w Hd Hw. pose proof (speed_pos d).
  assert (0 < 2 * w * speed d) by (repeat apply Rmult_lt_0_compat; lra).
  destruct (time_bounds d (d + 2 * w * speed d)) as [Hb _]; [lra|lra|].
  replace (d + 2 * w * speed d - d) with (2 * w * speed d) in Hb by ring.
  rewrite speed_slowness in Hb. exact Hb.
Qed.

(** The travel time of a backward step of weight [w] is at most 2 w down to [d0].  The part of the
    step below [d0] does not count. *)
Lemma backward_time : forall d0 d w, 0 <= d0 -> d0 < d -> 0 < w ->
  time d - time (Rmax d0 (d - 2 * w * speed d)) <= 2 * w.
Proof.
  intros d0 d w H0 Hd Hw. pose proof (speed_pos d). pose proof (slowness_pos d).
  set (e := Rmax d0 (d - 2 * w * speed d)).
  assert (0 < 2 * w * speed d) by (repeat apply Rmult_lt_0_compat; lra).
  assert (He : d0 <= e) by apply Rmax_l.
  assert (He' : d - 2 * w * speed d <= e) by apply Rmax_r.
  assert (Hed : e < d) by (apply Rmax_lub_lt; lra).
  destruct (time_bounds e d) as [_ Hb]; [lra|exact Hed|].
  rewrite <- (speed_slowness d w). left. apply Rlt_le_trans with (1 := Hb).
  apply Rmult_le_compat_l; lra.
Qed.

(** ** The comparison lemma *)

(** Such a run exists from any start and with any weights. *)
Lemma unlearning_exists : forall w n start,
  exists theta, theta 0%nat = start /\ is_unlearning pg_sm w n theta.
Proof.
  intros w n start.
  exists (fix theta (t : nat) : nat -> R := match t with
    | O => start
    | S t' => pg_sm_formula 2 (w t') (if t' <? n then q_first else q_second) (theta t')
    end).
  split; [reflexivity|]. intros t a _. reflexivity.
Qed.

(** The travel of [delta] under weights [w]: [n] steps forward, then steps backward. *)
Definition is_travel (w : nat -> R) (n : nat) (d : nat -> R) : Prop :=
  forall t, d (S t) = if t <? n then d t + 2 * w t * speed (d t) else d t - 2 * w t * speed (d t).

(** Unlearning by PG-SM is such a travel. *)
Lemma unlearning_travel : forall w n theta, is_unlearning pg_sm w n theta ->
  is_travel w n (fun t => delta (theta t)).
Proof.
  intros w n theta H t. specialize (H t). destruct (t <? n).
  - apply pg_sm_forward, H.
  - apply pg_sm_backward, H.
Qed.

(** In forward steps, the position never falls below the start. *)
Lemma travel_above : forall w n d, (forall t, 0 < w t) -> is_travel w n d ->
  forall t, (t <= n)%nat -> d 0%nat <= d t.
Proof.
  intros w n d Hw Hd. induction t as [|t IH]; intros Ht; [lra|].
  rewrite Hd. destruct (Nat.ltb_spec t n) as [_|H]; [|lia].
  specialize (IH ltac:(lia)). pose proof (speed_pos (d t)). pose proof (Hw t).
  assert (0 < w t * speed (d t)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

(** The travel time of the way out exceeds twice the weights of its steps. *)
Lemma travel_out : forall w n d, (forall t, 0 < w t) -> is_travel w n d -> 0 <= d 0%nat ->
  forall t, (1 <= t <= n)%nat -> 2 * sum t w < time (d t) - time (d 0%nat).
Proof.
  intros w n d Hw Hd H0. induction t as [|t IH]; intros Ht; [lia|].
  pose proof (travel_above w n d Hw Hd t ltac:(lia)) as Habove.
  assert (Hstep : d (S t) = d t + 2 * w t * speed (d t)).
  { rewrite Hd. destruct (Nat.ltb_spec t n); [reflexivity|lia]. }
  pose proof (forward_time (d t) (w t) ltac:(lra) (Hw t)) as H. rewrite <- Hstep in H. simpl sum.
  destruct (Nat.eq_dec t 0) as [->|Hne]; [simpl; lra|].
  specialize (IH ltac:(lia)). lra.
Qed.

(** While the position is above the start, the travel time of the way back is at most twice the
    weights of its steps. *)
Lemma travel_back : forall w n d, (forall t, 0 < w t) -> is_travel w n d -> 0 <= d 0%nat ->
  forall m, (forall k, (k < m)%nat -> d 0%nat < d (n + k)%nat) -> d 0%nat <= d n ->
  time (d n) - time (Rmax (d 0%nat) (d (n + m)%nat)) <= 2 * sum m (fun k => w (n + k)%nat).
Proof.
  intros w n d Hw Hd H0. induction m as [|m IH]; intros Habove Hn.
  - simpl. rewrite Nat.add_0_r, Rmax_right by exact Hn. lra.
  - specialize (IH (fun k Hk => Habove k (Nat.lt_lt_succ_r _ _ Hk)) Hn).
    pose proof (Habove m (Nat.lt_succ_diag_r m)) as Hm.
    rewrite Rmax_right in IH by lra. rewrite Nat.add_succ_r, Hd.
    destruct (Nat.ltb_spec (n + m) n) as [H|_]; [lia|].
    pose proof (backward_time (d 0%nat) (d (n + m)%nat) (w (n + m)%nat) H0 Hm (Hw _)).
    simpl sum. lra.
Qed.

(** Comparison: when the policy is back, the weights of the way back sum to more than those of the
    way out, because both sums are compared with the travel time over the same distance. *)
Theorem comparison : forall w n theta m,
  (forall t, 0 < w t) -> is_unlearning pg_sm w n theta ->
  1 / 2 <= softmax 2 (theta 0%nat) 0%nat -> (1 <= n)%nat -> is_recovery softmax n theta m ->
  sum n w < sum m (fun k => w (n + k)%nat).
Proof.
  intros w n theta m Hw Hrun Hhalf Hn [Hm Hfirst].
  pose proof (unlearning_travel w n theta Hrun) as Hd. set (d := fun t => delta (theta t)) in *.
  assert (H0 : 0 <= d 0%nat) by (apply softmax_two_half, Hhalf).
  pose proof (travel_out w n d Hw Hd H0 n ltac:(lia)) as Hout.
  pose proof (travel_above w n d Hw Hd n (le_n n)) as Habove.
  assert (Hback : forall k, (k < m)%nat -> d 0%nat < d (n + k)%nat).
  { intros k Hk. apply Rnot_le_lt. intros H. apply (Hfirst k Hk), softmax_two_le, H. }
  pose proof (travel_back w n d Hw Hd H0 m Hback Habove) as Htime.
  apply softmax_two_le in Hm. rewrite Rmax_left in Htime by exact Hm. lra.
Qed.

(** ** Theorem 4(i) for PG-SM *)

(** The probability decreases strictly in every backward step. *)
Lemma backward_falls : forall w n theta k, (forall t, 0 < w t) -> is_unlearning pg_sm w n theta ->
  delta (theta (n + S k)%nat) < delta (theta (n + k)%nat).
Proof.
  intros w n theta k Hw Hrun. rewrite Nat.add_succ_r.
  rewrite (unlearning_travel w n theta Hrun (n + k)%nat).
  destruct (Nat.ltb_spec (n + k)%nat n) as [H|_]; [lia|].
  pose proof (Hw (n + k)%nat). pose proof (speed_pos (delta (theta (n + k)%nat))).
  assert (0 < w (n + k)%nat * speed (delta (theta (n + k)%nat))) by (apply Rmult_lt_0_compat; lra).
  lra.
Qed.

(** If a decidable property holds for some number, there is a smallest such number. *)
Lemma first_exists : forall Q : nat -> Prop, (forall k, Q k \/ ~ Q k) -> forall m, Q m ->
  exists k, (k <= m)%nat /\ is_first Q k.
Proof.
  intros Q Hdec m Hm.
  assert (H : forall j, (exists k, (k <= j)%nat /\ is_first Q k) \/
                        forall k, (k <= j)%nat -> ~ Q k).
  { induction j as [|j [[k [Hk Hf]]|IH]].
    - destruct (Hdec 0%nat) as [H0|H0].
      + left. exists 0%nat. repeat split; [lia|exact H0|intros; lia].
      + right. intros k Hk. replace k with 0%nat by lia. exact H0.
    - left. exists k. split; [lia|exact Hf].
    - destruct (Hdec (S j)) as [HS|HS].
      + left. exists (S j). repeat split; [lia|exact HS|]. intros k Hk. apply IH. lia.
      + right. intros k Hk. destruct (Nat.eq_dec k (S j)) as [->|]; [exact HS|apply IH; lia]. }
  destruct (H m) as [Hk|Hk]; [exact Hk|]. exfalso. exact (Hk m (le_n m) Hm).
Qed.

(** The policy comes back if the weights of the way back have unbounded sums: above the start, no
    backward step is shorter than its weight times the speed at the turning point. *)
Lemma recovery_exists : forall w n theta,
  (forall t, 0 < w t) -> is_unlearning pg_sm w n theta ->
  1 / 2 <= softmax 2 (theta 0%nat) 0%nat ->
  (forall B, exists K, B < sum K (fun k => w (n + k)%nat)) ->
  exists m, is_recovery softmax n theta m.
Proof.
  intros w n theta Hw Hrun Hhalf Hdiv.
  pose proof (unlearning_travel w n theta Hrun) as Hd. set (d := fun t => delta (theta t)) in *.
  assert (H0 : 0 <= d 0%nat) by (apply softmax_two_half, Hhalf).
  assert (Hdown : forall k, d (n + k)%nat <= d n).
  { induction k as [|k IH]; [rewrite Nat.add_0_r; lra|].
    pose proof (backward_falls w n theta k Hw Hrun) as H. unfold d in *. lra. }
  (* K backward steps of at least this length per weight would lead below the start *)
  set (c := 2 * speed (d n)). assert (Hc : 0 < c) by (pose proof (speed_pos (d n)); unfold c; lra).
  destruct (Hdiv ((d n - d 0%nat) / c)) as [K HK].
  assert (Hsum : d n - d 0%nat < c * sum K (fun k => w (n + k)%nat)).
  { apply Rmult_lt_compat_l with (r := c) in HK; [|exact Hc].
    replace (c * ((d n - d 0%nat) / c)) with (d n - d 0%nat) in HK by (field; lra). exact HK. }
  (* either the start is reached among the first K steps, or all of them are long *)
  assert (H : forall j, (exists k, (k <= j)%nat /\ d (n + k)%nat <= d 0%nat) \/
                d (n + j)%nat <= d n - c * sum j (fun k => w (n + k)%nat)).
  { induction j as [|j [[k [Hk Hle]]|IH]].
    - right. rewrite Nat.add_0_r. simpl. lra.
    - left. exists k. split; [lia|exact Hle].
    - destruct (Rle_lt_dec (d (n + j)%nat) (d 0%nat)) as [Hle|Hgt].
      { left. exists j. split; [lia|exact Hle]. }
      right. rewrite Nat.add_succ_r, Hd. destruct (Nat.ltb_spec (n + j)%nat n) as [L|_]; [lia|].
      assert (Hsp : speed (d n) <= speed (d (n + j)%nat)).
      { destruct (Hdown j) as [L|E]; [|rewrite E; lra].
        apply Rinv_le_contravar; [apply slowness_pos|].
        left. apply slowness_increasing; lra. }
      pose proof (Hw (n + j)%nat). simpl sum. unfold c in *. nra. }
  (* in both cases the start is reached, and the first time is the recovery *)
  assert (Hex : exists k, d (n + k)%nat <= d 0%nat).
  { destruct (H K) as [[k [_ Hk]]|HKle]; [exists k; exact Hk|exists K; lra]. }
  destruct Hex as [k Hk].
  destruct (first_exists (fun k => softmax 2 (theta (n + k)%nat) 0%nat
                                   <= softmax 2 (theta 0%nat) 0%nat)) with (m := k)
    as [m [_ Hm]]; [|apply softmax_two_le, Hk|exists m; exact Hm].
  intros j. destruct (Rle_lt_dec (softmax 2 (theta (n + j)%nat) 0%nat)
                        (softmax 2 (theta 0%nat) 0%nat)); [left; assumption|right; lra].
Qed.

(** Constant weights have unbounded sums. *)
Lemma constant_diverges : forall eta B, 0 < eta -> exists K, B < sum K (fun _ => eta).
Proof.
  intros eta B Heta. destruct (nat_above (B / eta)) as [K HK]. exists K. rewrite sum_const.
  apply Rmult_lt_compat_r with (r := eta) in HK; [|exact Heta].
  replace (B / eta * eta) with B in HK by (field; lra). exact HK.
Qed.

(** *** Theorem 4(i) for PG-SM, as stated in the book: from pi_0(a_1) >= 1/2 and with any step size
    eta > 0, undoing n >= 1 updates takes n' updates with n + 1 <= n' < infinity. *)
Theorem theorem_4_i_pg_sm : forall eta n theta,
  0 < eta -> is_unlearning pg_sm (fun _ => eta) n theta ->
  1 / 2 <= softmax 2 (theta 0%nat) 0%nat -> (1 <= n)%nat ->
  (exists m, is_recovery softmax n theta m) /\
  (forall m, is_recovery softmax n theta m -> (n + 1 <= m)%nat).
Proof.
  intros eta n theta Heta Hrun Hhalf Hn. split.
  - apply (recovery_exists (fun _ => eta)); auto. intros B. apply constant_diverges, Heta.
  - intros m Hm.
    pose proof (comparison (fun _ => eta) n theta m (fun _ => Heta) Hrun Hhalf Hn Hm) as H.
    rewrite !sum_const in H. apply Rmult_lt_reg_r in H; [|exact Heta].
    apply INR_lt in H. lia.
Qed.

(** For [n = 0] there is nothing to undo. *)
Lemma recovery_zero : forall theta, is_recovery softmax 0 theta 0.
Proof. intros theta. split; [right; reflexivity|intros; lia]. Qed.

(** A strict recovery, as required in the domino setting, takes at least n + 1 updates, including
    the case n = 0. *)
Corollary strict_recovery_pg_sm : forall eta n theta m,
  0 < eta -> is_unlearning pg_sm (fun _ => eta) n theta ->
  1 / 2 <= softmax 2 (theta 0%nat) 0%nat -> is_strict_recovery softmax n theta m ->
  (n + 1 <= m)%nat.
Proof.
  intros eta n theta m Heta Hrun Hhalf [Hm Hfirst].
  destruct (Nat.eq_dec n 0) as [->|Hn].
  { destruct m; [simpl in Hm; lra|lia]. }
  destruct (first_exists (fun k => softmax 2 (theta (n + k)%nat) 0%nat
                                   <= softmax 2 (theta 0%nat) 0%nat)) with (m := m)
    as [k [Hk Hfk]]; [|lra|].
  - intros j. destruct (Rle_lt_dec (softmax 2 (theta (n + j)%nat) 0%nat)
                          (softmax 2 (theta 0%nat) 0%nat)); [left; assumption|right; lra].
  - apply (theorem_4_i_pg_sm eta n theta Heta Hrun Hhalf ltac:(lia)) in Hfk. lia.
Qed.

(** A strict recovery exists: one step after the policy is back, it is below its start. *)
Lemma strict_recovery_exists : forall eta n theta,
  0 < eta -> is_unlearning pg_sm (fun _ => eta) n theta ->
  1 / 2 <= softmax 2 (theta 0%nat) 0%nat -> exists m, is_strict_recovery softmax n theta m.
Proof.
  intros eta n theta Heta Hrun Hhalf.
  destruct (recovery_exists (fun _ => eta) n theta) as [m [Hm _]]; auto.
  { intros B. apply constant_diverges, Heta. }
  destruct (first_exists (fun k => softmax 2 (theta (n + k)%nat) 0%nat
                                   < softmax 2 (theta 0%nat) 0%nat)) with (m := S m)
    as [k [_ Hk]]; [| |exists k; exact Hk].
  - intros j. destruct (Rlt_le_dec (softmax 2 (theta (n + j)%nat) 0%nat)
                          (softmax 2 (theta 0%nat) 0%nat)); [left; assumption|right; lra].
  - apply softmax_two_le in Hm. apply softmax_two_lt.
    pose proof (backward_falls (fun _ => eta) n theta m (fun _ => Heta) Hrun). lra.
Qed.

(** ** Theorem 5(i) for PG-SM *)

(** The weights eta_1 / sqrt t, where the first update has t = 1. *)
Definition decaying (eta1 : R) (t : nat) : R := eta1 / sqrt (INR (S t)).

(** 2 sqrt(k+1) - 2 sqrt k lies between 1 / sqrt(k+1) and 1 / sqrt k. *)
Lemma sqrt_step : forall k,
  2 * sqrt (INR (S (S k))) - 2 * sqrt (INR (S k)) <= / sqrt (INR (S k))
    <= 2 * sqrt (INR (S k)) - 2 * sqrt (INR k).
Proof.
  intros k. pose proof (pos_INR k).
  assert (Ha : 0 <= sqrt (INR k)) by apply sqrt_pos.
  assert (Hb : 0 < sqrt (INR (S k))) by (apply sqrt_lt_R0, lt_0_INR; lia).
  assert (Hc : 0 < sqrt (INR (S (S k)))) by (apply sqrt_lt_R0, lt_0_INR; lia).
  assert (Ea : sqrt (INR k) * sqrt (INR k) = INR k) by (apply sqrt_sqrt; lra).
  assert (Eb : sqrt (INR (S k)) * sqrt (INR (S k)) = INR k + 1).
  { rewrite <- S_INR. apply sqrt_sqrt. left. apply lt_0_INR. lia. }
  assert (Ec : sqrt (INR (S (S k))) * sqrt (INR (S (S k))) = INR k + 1 + 1).
  { rewrite <- !S_INR. apply sqrt_sqrt. left. apply lt_0_INR. lia. }
  set (a := sqrt (INR k)) in *. set (b := sqrt (INR (S k))) in *. set (c := sqrt _) in *.
  (* multiplied by b, with b^2 = a^2 + 1 and c^2 = b^2 + 1, both are squares: (c - b)^2 >= 0 and
     (b - a)^2 >= 0 *)
  assert (Hi : / b * b = 1) by (field; lra).
  split; apply Rmult_le_reg_r with b; try exact Hb; rewrite Hi; nra.
Qed.

(** The sum of 1 / sqrt t for t = n+1, ..., n+m is at least 2 sqrt(n+m+1) - 2 sqrt(n+1). *)
Lemma sum_sqrt_lower : forall n m,
  2 * sqrt (INR (S (n + m))) - 2 * sqrt (INR (S n)) <= sum m (fun k => / sqrt (INR (S (n + k)))).
Proof.
  intros n. induction m as [|m IH]; [rewrite Nat.add_0_r; cbn [sum]; lra|].
  cbn [sum]. rewrite Nat.add_succ_r. pose proof (sqrt_step (n + m)). lra.
Qed.

(** The same sum is at most 2 sqrt(n+m) - 2 sqrt n. *)
Lemma sum_sqrt_upper : forall n m,
  sum m (fun k => / sqrt (INR (S (n + k)))) <= 2 * sqrt (INR (n + m)) - 2 * sqrt (INR n).
Proof.
  intros n. induction m as [|m IH]; [rewrite Nat.add_0_r; cbn [sum]; lra|].
  cbn [sum]. rewrite Nat.add_succ_r. pose proof (sqrt_step (n + m)). lra.
Qed.

(** These weights are positive. *)
Lemma decaying_pos : forall eta1 t, 0 < eta1 -> 0 < decaying eta1 t.
Proof.
  intros eta1 t Heta. apply Rdiv_lt_0_compat; [exact Heta|]. apply sqrt_lt_R0, lt_0_INR. lia.
Qed.

(** The decaying weights also have unbounded sums. *)
Lemma decaying_diverges : forall eta1 n, 0 < eta1 ->
  forall B, exists K, B < sum K (fun k => decaying eta1 (n + k)%nat).
Proof.
  intros eta1 n Heta B. set (c := Rmax 0 (B / eta1 + 2 * sqrt (INR (S n)))).
  destruct (nat_above (c * c)) as [K HK]. exists K.
  unfold decaying, Rdiv. rewrite sum_scal_l. pose proof (sum_sqrt_lower n K) as Hlow.
  assert (Hc : 0 <= c) by apply Rmax_l.
  assert (Hc' : B / eta1 + 2 * sqrt (INR (S n)) <= c) by apply Rmax_r.
  assert (H : c < sqrt (INR (S (n + K)))).
  { rewrite <- (sqrt_square c) by exact Hc. apply sqrt_lt_1; [nra|apply pos_INR|].
    apply Rlt_le_trans with (1 := HK), le_INR. lia. }
  replace B with (eta1 * (B / eta1)) by (field; lra).
  apply Rmult_lt_compat_l; [exact Heta|]. lra.
Qed.

(** *** Theorem 5(i) for PG-SM, as stated in the book: with the weights eta_1 / sqrt t in both
    phases and from pi_0(a_1) >= 1/2, undoing n >= 1 updates takes n' updates with
    3 n - 4 sqrt n + 1 < n' < infinity. *)
Theorem theorem_5_i_pg_sm : forall eta1 n theta,
  0 < eta1 -> is_unlearning pg_sm (decaying eta1) n theta ->
  1 / 2 <= softmax 2 (theta 0%nat) 0%nat -> (1 <= n)%nat ->
  (exists m, is_recovery softmax n theta m) /\
  (forall m, is_recovery softmax n theta m -> 3 * INR n - 4 * sqrt (INR n) + 1 < INR m).
Proof.
  intros eta1 n theta Heta Hrun Hhalf Hn.
  assert (Hw : forall t, 0 < decaying eta1 t) by (intros; apply decaying_pos, Heta).
  split; [apply (recovery_exists (decaying eta1)); auto using decaying_diverges|].
  intros m Hm. pose proof (comparison _ n theta m Hw Hrun Hhalf Hn Hm) as H.
  unfold decaying, Rdiv in H. rewrite !sum_scal_l in H. apply Rmult_lt_reg_l in H; [|exact Heta].
  pose proof (sum_sqrt_lower 0 n) as Hlow. pose proof (sum_sqrt_upper n m) as Hup.
  rewrite Nat.add_0_l in Hlow. change (INR 1) with 1 in Hlow. rewrite sqrt_1 in Hlow.
  cbn [Nat.add] in Hlow.
  (* sqrt(n+n') > sqrt n + sqrt(n+1) - 1 > 2 sqrt n - 1 >= 1; then square *)
  assert (Hn1 : 1 <= INR n) by (apply (le_INR 1); exact Hn).
  assert (H1 : 1 <= sqrt (INR n)) by (rewrite <- sqrt_1; apply sqrt_le_1; lra).
  assert (H2 : sqrt (INR n) < sqrt (INR (S n))).
  { apply sqrt_lt_1; rewrite ?S_INR; lra. }
  assert (H3 : 2 * sqrt (INR n) - 1 < sqrt (INR (n + m))) by lra.
  assert (E1 : sqrt (INR n) * sqrt (INR n) = INR n) by (apply sqrt_sqrt; lra).
  assert (E2 : sqrt (INR (n + m)) * sqrt (INR (n + m)) = INR n + INR m).
  { rewrite <- plus_INR. apply sqrt_sqrt, pos_INR. }
  nra.
Qed.
