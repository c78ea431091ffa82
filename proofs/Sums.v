(** * Sums over the first n natural numbers, and the softmax policy

    This file contains general facts: sums are linear and monotone, finitely many numbers have a
    minimum, and softmax policies are positive and sum to one. *)

Require Import Reals Lra Lia ZArith.
From PolicyUpdates Require Import Definitions.
Open Scope R_scope.

(** ** Sums *)

(** Sums with equal terms are equal. *)
Lemma sum_ext : forall n f g, (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof.
  induction n as [|n IH]; intros f g H; simpl; [reflexivity|].
  rewrite (IH f g), (H n); auto with arith.
Qed.

(** The sum of sums. *)
Lemma sum_plus : forall n f g, sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n; intros; simpl; [ring|]. rewrite IHn. ring. Qed.

(** The sum of differences. *)
Lemma sum_minus : forall n f g, sum n (fun i => f i - g i) = sum n f - sum n g.
Proof. induction n; intros; simpl; [ring|]. rewrite IHn. ring. Qed.

(** A constant factor on the left can be moved out of the sum. *)
Lemma sum_scal_l : forall n c f, sum n (fun i => c * f i) = c * sum n f.
Proof. induction n; intros; simpl; [ring|]. rewrite IHn. ring. Qed.

(** A constant factor on the right can be moved out of the sum. *)
Lemma sum_scal_r : forall n c f, sum n (fun i => f i * c) = sum n f * c.
Proof. induction n; intros; simpl; [ring|]. rewrite IHn. ring. Qed.

(** The sum of n equal terms is n times the term. *)
Lemma sum_const : forall n c, sum n (fun _ => c) = INR n * c.
Proof. induction n; intros; [simpl; ring|]. rewrite S_INR. simpl. rewrite IHn. ring. Qed.

(** Smaller terms have a smaller sum. *)
Lemma sum_le : forall n f g, (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof.
  induction n as [|n IH]; intros f g H; simpl; [lra|].
  apply Rplus_le_compat; [apply IH|apply H]; auto with arith.
Qed.

(** The sum of non-negative terms is not negative. *)
Lemma sum_nonneg : forall n f, (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sum n f.
Proof.
  intros n f H. apply Rle_trans with (sum n (fun _ => 0)).
  - rewrite sum_const. lra.
  - apply sum_le, H.
Qed.

(** No term of a sum of non-negative terms exceeds the sum. *)
Lemma sum_term : forall n f i, (forall j, (j < n)%nat -> 0 <= f j) -> (i < n)%nat -> f i <= sum n f.
Proof.
  induction n as [|n IH]; intros f i H Hi; [lia|]. simpl.
  assert (0 <= sum n f) by (apply sum_nonneg; auto with arith).
  assert (0 <= f n) by auto with arith.
  destruct (Nat.eq_dec i n) as [->|Hne]; [lra|].
  assert (f i <= sum n f) by (apply IH; [auto with arith|lia]). lra.
Qed.

(** If one of the terms is positive, the sum is positive. *)
Lemma sum_pos : forall n f i, (forall j, (j < n)%nat -> 0 <= f j) -> (i < n)%nat -> 0 < f i ->
  0 < sum n f.
Proof. intros n f i H Hi Hf. pose proof (sum_term n f i H Hi). lra. Qed.

(** Non-negative terms that sum to zero are all zero. *)
Lemma sum_zero : forall n f, (forall i, (i < n)%nat -> 0 <= f i) -> sum n f <= 0 ->
  forall i, (i < n)%nat -> f i = 0.
Proof. intros n f H H0 i Hi. pose proof (sum_term n f i H Hi). pose proof (H i Hi). lra. Qed.

(** The order of two sums can be exchanged. *)
Lemma sum_swap : forall n m (f : nat -> nat -> R),
  sum n (fun i => sum m (fun j => f i j)) = sum m (fun j => sum n (fun i => f i j)).
Proof.
  induction n as [|n IH]; intros m f; simpl.
  - rewrite sum_const. ring.
  - rewrite IH, <- sum_plus. reflexivity.
Qed.

(** A sum with only one non-zero term equals this term. *)
Lemma sum_single : forall n g c, (g < n)%nat -> sum n (fun i => if i =? g then c else 0) = c.
Proof.
  induction n as [|n IH]; intros g c Hg; [lia|]. simpl.
  destruct (Nat.eqb_spec n g) as [->|Hne].
  - rewrite (sum_ext g _ (fun _ => 0)); [rewrite sum_const; ring|].
    intros i Hi. destruct (Nat.eqb_spec i g); [lia|reflexivity].
  - rewrite IH by lia. ring.
Qed.

(** For every real number, there is a larger natural number. *)
Lemma nat_above : forall B, exists n, B < INR n.
Proof.
  intros B. exists (Z.to_nat (up B)). destruct (archimed B) as [H _].
  destruct (Z.le_gt_cases 0 (up B)) as [Hz|Hz].
  - rewrite INR_IZR_INZ, Z2Nat.id by exact Hz. lra.
  - apply IZR_lt in Hz. pose proof (pos_INR (Z.to_nat (up B))). lra.
Qed.

(** ** The minimum of finitely many numbers *)

(** By induction, the minimum is that of the first n numbers or the next number. *)
Lemma argmin : forall n (d : nat -> R), (0 < n)%nat ->
  { i | (i < n)%nat /\ forall j, (j < n)%nat -> d i <= d j }.
Proof.
  induction n as [|n IH]; intros d Hn; [lia|].
  destruct (Nat.eq_dec n 0) as [->|Hn0].
  { exists 0%nat. split; [lia|]. intros j Hj. replace j with 0%nat by lia. lra. }
  destruct (IH d ltac:(lia)) as [i [Hi Hmin]].
  destruct (Rle_dec (d i) (d n)) as [Hle|Hgt].
  - exists i. split; [lia|]. intros j Hj.
    destruct (Nat.eq_dec j n) as [->|Hne]; [exact Hle|apply Hmin; lia].
  - exists n. split; [lia|]. intros j Hj.
    destruct (Nat.eq_dec j n) as [->|Hne]; [lra|].
    assert (d i <= d j) by (apply Hmin; lia). lra.
Qed.

(** A greedy action exists. *)
Lemma greedy_exists : forall n q, (0 < n)%nat -> { g | is_greedy n q g }.
Proof.
  intros n q Hn. destruct (argmin n (fun a => - q a) Hn) as [g [Hg Hmin]].
  exists g. split; [exact Hg|]. intros a Ha. pose proof (Hmin a Ha). lra.
Qed.

(** ** Distributions and softmax *)

(** The mean of values lies between their minimum and their maximum. *)
Lemma mean_le : forall n p q c, is_distribution n p -> (forall a, (a < n)%nat -> q a <= c) ->
  sum n (fun a => p a * q a) <= c.
Proof.
  intros n p q c [Hp H1] Hq. apply Rle_trans with (sum n (fun a => p a * c)).
  - apply sum_le. intros a Ha. apply Rmult_le_compat_l; auto.
  - rewrite sum_scal_r, H1. lra.
Qed.

(** The denominator of softmax is positive. *)
Lemma partition_pos : forall n theta, (0 < n)%nat -> 0 < sum n (fun b => exp (theta b)).
Proof.
  intros n theta Hn. apply sum_pos with 0%nat; [|exact Hn|apply exp_pos].
  intros j _. left. apply exp_pos.
Qed.

(** Softmax policies are positive. *)
Lemma softmax_pos : forall n theta a, (0 < n)%nat -> 0 < softmax n theta a.
Proof.
  intros n theta a Hn. apply Rdiv_lt_0_compat; [apply exp_pos|apply partition_pos, Hn].
Qed.

(** Softmax policies sum to one. *)
Lemma softmax_sum : forall n theta, (0 < n)%nat -> sum n (softmax n theta) = 1.
Proof.
  intros n theta Hn. pose proof (partition_pos n theta Hn).
  unfold softmax, Rdiv. rewrite sum_scal_r. field. lra.
Qed.

(** Softmax policies are distributions. *)
Lemma softmax_distribution : forall n theta, (0 < n)%nat -> is_distribution n (softmax n theta).
Proof.
  intros n theta Hn. split; [|apply softmax_sum, Hn].
  intros a _. left. apply softmax_pos, Hn.
Qed.

(** No probability of a softmax policy exceeds one. *)
Lemma softmax_le_1 : forall n theta a, (a < n)%nat -> softmax n theta a <= 1.
Proof.
  intros n theta a Ha. rewrite <- (softmax_sum n theta) by lia.
  apply sum_term; [|exact Ha]. intros j _. left. apply softmax_pos. lia.
Qed.

(** Adding [x a] to each parameter multiplies the policy by e^(x a), up to normalisation. *)
Lemma softmax_shift : forall n theta theta' x, (0 < n)%nat ->
  (forall a, (a < n)%nat -> theta' a = theta a + x a) ->
  forall a, (a < n)%nat -> softmax n theta' a =
    softmax n theta a * exp (x a) / sum n (fun b => softmax n theta b * exp (x b)).
Proof.
  intros n theta theta' x Hn Hx a Ha.
  pose proof (partition_pos n theta Hn). pose proof (partition_pos n theta' Hn).
  assert (E : sum n (fun b => softmax n theta b * exp (x b))
              = sum n (fun b => exp (theta' b)) / sum n (fun b => exp (theta b))).
  { unfold Rdiv. rewrite <- sum_scal_r. apply sum_ext. intros b Hb.
    rewrite Hx, exp_plus by exact Hb. unfold softmax. field. lra. }
  rewrite E. unfold softmax. rewrite Hx, exp_plus by exact Ha. field. lra.
Qed.
