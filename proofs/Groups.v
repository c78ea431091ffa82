(** * Groups of samples: the expected step is cross-entropy, and no step lowers success

    Answers have reward 1 if they are correct and 0 otherwise.  A group consists of G independent
    samples of the policy.  [expected_steps]: if the advantage of a sample depends on its reward and
    the number of successes in its group, the expected step is phi(p) (pi* - pi), where pi* is the
    policy restricted to correct answers; for MaxRL and rejection sampling, phi has a closed form.
    [success_rises]: no expected step lowers p, and no sampled step of RLOO, GRPO or MaxRL does. *)

Require Import Reals Lra Lia Psatz List.
From PolicyUpdates Require Import Definitions Sums Monotonicity.
Import ListNotations.
Open Scope R_scope.

(** ** Groups *)

(** The mean of [f] over groups of G samples of the distribution [p] on K answers. *)
Fixpoint mean_over_groups (K : nat) (p : nat -> R) (G : nat) (f : list nat -> R) : R :=
  match G with
  | O => f []
  | S m => sum K (fun a => p a * mean_over_groups K p m (fun group => f (a :: group)))
  end.

(** The sum of [f] over the samples of a group. *)
Fixpoint over_samples (f : nat -> R) (group : list nat) : R :=
  match group with
  | [] => 0
  | a :: rest => f a + over_samples f rest
  end.

(** The number of correct samples in a group. *)
Fixpoint successes (correct : nat -> bool) (group : list nat) : nat :=
  match group with
  | [] => 0
  | a :: rest => (if correct a then 1 else 0) + successes correct rest
  end%nat.

(** An advantage is a function of the size of the group, the number of successes in it, and whether
    the sample is correct. *)
Definition Advantage := nat -> nat -> bool -> R.

(** r - (mean reward of the other samples). *)
Definition rloo : Advantage := fun G s r =>
  if r then 1 - (INR s - 1) / (INR G - 1) else - (INR s / (INR G - 1)).

(** (r - mean) / (standard deviation), or 0 if all samples agree. *)
Definition grpo : Advantage := fun G s r =>
  if ((s =? 0) || (s =? G))%bool then 0 else
  ((if r then 1 else 0) - INR s / INR G) / sqrt (INR s / INR G * (1 - INR s / INR G)).

(** (r - mean) / mean, or 0 if all samples fail. *)
Definition maxrl : Advantage := fun G s r =>
  if s =? 0 then 0 else ((if r then 1 else 0) - INR s / INR G) / (INR s / INR G).

(** r / mean: the cross-entropy on the correct samples. *)
Definition rejection : Advantage := fun G s r => if r then 1 / (INR s / INR G) else 0.

(** The step on a group: (w/G) times the sum of A_i times the gradient of log pi(a_i), which is
    1_{a_i=b} - pi(b) for the parameter of b. *)
Definition group_step (A : Advantage) (correct : nat -> bool) (w : R) (pi : nat -> R)
  (group : list nat) (b : nat) : R :=
  w / INR (length group) * over_samples (fun a =>
    A (length group) (successes correct group) (correct a) * ((if a =? b then 1 else 0) - pi b))
    group.

(** The mean step over groups of G samples of pi. *)
Definition expected_step (K G : nat) (A : Advantage) (correct : nat -> bool) (w : R) (pi : nat -> R)
  (b : nat) : R :=
  mean_over_groups K pi G (fun group => group_step A correct w pi group b).

(** The probability of a correct answer, and the policy restricted to correct answers. *)
Definition success (K : nat) (correct : nat -> bool) (pi : nat -> R) : R :=
  sum K (fun a => if correct a then pi a else 0).

Definition restricted (K : nat) (correct : nat -> bool) (pi : nat -> R) (a : nat) : R :=
  if correct a then pi a / success K correct pi else 0.

(** ** Means *)

(** Functions that are equal on groups of G samples have the same mean. *)
Lemma mean_ext : forall K p G f h, (forall l, length l = G -> f l = h l) ->
  mean_over_groups K p G f = mean_over_groups K p G h.
Proof.
  intros K p G. induction G as [|G IH]; intros f h H; simpl; [apply H; reflexivity|].
  apply sum_ext. intros a _. f_equal. apply IH. intros l Hl. apply H. simpl. rewrite Hl.
  reflexivity.
Qed.

(** The mean of a sum is the sum of the means. *)
Lemma mean_plus : forall K p G f h, mean_over_groups K p G (fun l => f l + h l)
  = mean_over_groups K p G f + mean_over_groups K p G h.
Proof.
  intros K p G. induction G as [|G IH]; intros f h; simpl; [reflexivity|].
  rewrite <- sum_plus. apply sum_ext. intros a _. rewrite IH. ring.
Qed.

(** The mean of a multiple is the multiple of the mean. *)
Lemma mean_scal : forall K p G c f,
  mean_over_groups K p G (fun l => c * f l) = c * mean_over_groups K p G f.
Proof.
  intros K p G. induction G as [|G IH]; intros c f; simpl; [reflexivity|].
  rewrite <- sum_scal_l. apply sum_ext. intros a _. rewrite IH. ring.
Qed.

(** The mean of a constant is the constant. *)
Lemma mean_const : forall K p G c, sum K p = 1 -> mean_over_groups K p G (fun _ => c) = c.
Proof.
  intros K p G c H. induction G as [|G IH]; simpl; [reflexivity|].
  rewrite (sum_ext K _ (fun a => p a * c)) by (intros; rewrite IH; reflexivity).
  rewrite sum_scal_r, H. ring.
Qed.

(** The mean of a non-negative function is not negative. *)
Lemma mean_nonneg : forall K p G f, (forall a, (a < K)%nat -> 0 <= p a) ->
  (forall l, length l = G -> (forall a, In a l -> (a < K)%nat) -> 0 <= f l) ->
  0 <= mean_over_groups K p G f.
Proof.
  intros K p G. induction G as [|G IH]; intros f Hp H; simpl.
  - apply H; [reflexivity|]. intros a [].
  - apply sum_nonneg. intros a Ha. apply Rmult_le_pos; [apply Hp, Ha|]. apply IH; [exact Hp|].
    intros l Hl Hin. apply H; [simpl; rewrite Hl; reflexivity|].
    intros b [<-|Hb]; [exact Ha|apply Hin, Hb].
Qed.

(** The mean of a sum over the samples is G times that of one sample with the successes of the
    others. *)
Lemma mean_over_samples : forall K p correct (h : nat -> nat -> R) G, sum K p = 1 ->
  mean_over_groups K p (S G) (fun l => over_samples (fun a => h a (successes correct l)) l)
  = INR (S G) * sum K (fun a => p a * mean_over_groups K p G
      (fun l => h a ((if correct a then 1 else 0) + successes correct l)%nat)).
Proof.
  intros K p correct h G H1. revert h. induction G as [|G IH]; intros h.
  - simpl. rewrite Rmult_1_l. apply sum_ext. intros a _. rewrite !Nat.add_0_r. ring.
  - set (one := fun a => if correct a then 1%nat else 0%nat).
    change (mean_over_groups K p (S (S G))
      (fun l => over_samples (fun a => h a (successes correct l)) l))
      with (sum K (fun a => p a * mean_over_groups K p (S G) (fun l =>
        h a (one a + successes correct l)%nat
        + over_samples (fun b => h b (one a + successes correct l)%nat) l))).
    rewrite (sum_ext K _ (fun a =>
      p a * mean_over_groups K p (S G) (fun l => h a (one a + successes correct l)%nat)
      + p a * (INR (S G) * sum K (fun b => p b * mean_over_groups K p G
          (fun l => h b (one a + (one b + successes correct l))%nat))))).
    2:{ intros a _. rewrite mean_plus. rewrite (IH (fun b s => h b (one a + s)%nat)).
        apply Rmult_plus_distr_l. }
    rewrite sum_plus, (S_INR (S G)), Rmult_plus_distr_r, Rmult_1_l, Rplus_comm. f_equal.
    (* exchange the order of the two sums *)
    rewrite (sum_ext K _ (fun a => INR (S G) * sum K (fun b => p a * (p b * mean_over_groups K p G
      (fun l => h b (one a + (one b + successes correct l))%nat))))).
    2:{ intros a _. rewrite sum_scal_l. ring. }
    rewrite sum_scal_l. f_equal. rewrite sum_swap. apply sum_ext. intros b _.
    simpl mean_over_groups. rewrite <- sum_scal_l. apply sum_ext. intros a _.
    fold (one a). rewrite <- (Rmult_assoc (p a)), (Rmult_comm (p a) (p b)), Rmult_assoc.
    do 2 f_equal. apply mean_ext. intros l _. f_equal. fold (one b). lia.
Qed.

(** All samples of a group fail with probability (1 - p)^G. *)
Lemma mean_of_failure : forall K p correct G x y, sum K p = 1 ->
  mean_over_groups K p G (fun l => if successes correct l =? 0 then x else y)
  = y + (x - y) * (1 - success K correct p) ^ G.
Proof.
  intros K p correct G x y H1. induction G as [|G IH]; simpl; [ring|].
  rewrite (sum_ext K _ (fun a => p a * y + (p a - (if correct a then p a else 0))
    * ((x - y) * (1 - success K correct p) ^ G))).
  - rewrite sum_plus, !sum_scal_r, sum_minus, H1. fold (success K correct p). ring.
  - intros a _. destruct (correct a); simpl.
    + rewrite mean_const by exact H1. ring.
    + rewrite IH. ring.
Qed.

(** ** The expected step *)

(** phi(p) = p (E[A_1 | r_1 = 1] - E[A_1 | r_1 = 0]), by the successes of the other samples. *)
Definition factor (K G : nat) (A : Advantage) (correct : nat -> bool) (pi : nat -> R) : R :=
  success K correct pi * mean_over_groups K pi (G - 1) (fun l =>
    A G (S (successes correct l)) true - A G (successes correct l) false).

(** The expected step of a group. *)
Lemma group_step_expected : forall K G A correct w pi b, (1 <= G)%nat -> sum K pi = 1 ->
  (b < K)%nat -> 0 < success K correct pi ->
  expected_step K G A correct w pi b
  = w * factor K G A correct pi * (restricted K correct pi b - pi b).
Proof.
  intros K G A correct w pi b HG H1 Hb Hp. destruct G as [|G]; [lia|].
  unfold expected_step, factor, group_step. replace (S G - 1)%nat with G by lia.
  set (p := success K correct pi) in *.
  set (up := mean_over_groups K pi G (fun l => A (S G) (S (successes correct l)) true)).
  set (down := mean_over_groups K pi G (fun l => A (S G) (successes correct l) false)).
  assert (Hn : INR (S G) <> 0) by (apply not_0_INR; lia).
  rewrite (mean_ext K pi (S G) _ (fun l => w / INR (S G) * over_samples (fun a =>
    A (S G) (successes correct l) (correct a) * ((if a =? b then 1 else 0) - pi b)) l)).
  2:{ intros l Hl. rewrite Hl. reflexivity. }
  rewrite mean_scal, (mean_over_samples K pi correct (fun a s =>
    A (S G) s (correct a) * ((if a =? b then 1 else 0) - pi b)) G H1).
  rewrite (mean_ext K pi G _ (fun l => A (S G) (S (successes correct l)) true
    + -1 * A (S G) (successes correct l) false)) by (intros; ring).
  rewrite mean_plus, mean_scal. fold up down.
  rewrite (sum_ext K _ (fun a => (if a =? b then pi a * (if correct a then up else down) else 0)
    - pi b * ((if correct a then pi a else 0) * (up - down) + pi a * down))).
  - rewrite (sum_ext K _ (fun a => (if a =? b then pi b * (if correct b then up else down) else 0)
      - pi b * ((if correct a then pi a else 0) * (up - down) + pi a * down))).
    + rewrite sum_minus, sum_single, sum_scal_l, sum_plus, !sum_scal_r, H1 by exact Hb.
      fold (success K correct pi). fold p. unfold restricted. fold p.
      destruct (correct b); field; try split; lra || exact Hn.
    + intros a _. destruct (Nat.eqb_spec a b) as [->|_]; reflexivity.
  - intros a _.
    rewrite (mean_ext K pi G _ (fun l => ((if a =? b then 1 else 0) - pi b)
      * A (S G) ((if correct a then 1 else 0) + successes correct l)%nat (correct a)))
      by (intros; ring).
    rewrite mean_scal.
    replace (mean_over_groups K pi G (fun l =>
      A (S G) ((if correct a then 1 else 0) + successes correct l)%nat (correct a)))
      with (if correct a then up else down) by (destruct (correct a); reflexivity).
    destruct (a =? b), (correct a); ring.
Qed.

(** p E[1 / (1 + S)] (G + 1) = 1 - (1-p)^(G+1), if S is the number of successes of G samples. *)
Lemma mean_of_inverse : forall K p correct G, sum K p = 1 ->
  INR (S G) * (success K correct p
    * mean_over_groups K p G (fun l => / INR (S (successes correct l))))
  = 1 - (1 - success K correct p) ^ S G.
Proof.
  intros K p correct G H1. set (m := mean_over_groups K p G _).
  pose proof (mean_over_samples K p correct (fun a s => if correct a then / INR s else 0) G H1)
    as E.
  rewrite (mean_ext K p (S G) _ (fun l => if successes correct l =? 0 then 0 else 1)) in E.
  - rewrite mean_of_failure in E by exact H1.
    rewrite (sum_ext K _ (fun a => (if correct a then p a else 0) * m)) in E.
    + rewrite sum_scal_r in E. fold (success K correct p) in E. rewrite <- E. ring.
    + intros a _. destruct (correct a); [reflexivity|].
      rewrite mean_const by exact H1. ring.
  - intros l _. set (s := successes correct l).
    assert (N : over_samples (fun a => if correct a then / INR s else 0) l
      = INR (successes correct l) * / INR s).
    { clearbody s. induction l as [|a l IH]; simpl over_samples; simpl successes; [simpl; ring|].
      rewrite IH, plus_INR. destruct (correct a); simpl (INR 1); simpl (INR 0); ring. }
    rewrite N. fold s. destruct (Nat.eqb_spec s 0) as [->|Hs]; [simpl; ring|].
    apply Rinv_r. apply not_0_INR, Hs.
Qed.

(** phi of MaxRL. *)
Lemma maxrl_factor : forall K G correct pi, (1 <= G)%nat -> sum K pi = 1 ->
  factor K G maxrl correct pi = 1 - (1 - success K correct pi) ^ (G - 1).
Proof.
  intros K G correct pi HG H1. destruct G as [|G]; [lia|]. unfold factor.
  replace (S G - 1)%nat with G by lia. set (p := success K correct pi).
  assert (Hn : INR (S G) <> 0) by (apply not_0_INR; lia).
  rewrite (mean_ext K pi G _ (fun l => INR (S G) * / INR (S (successes correct l))
    + ((if successes correct l =? 0 then 0 else 1) + -1))).
  - rewrite !mean_plus, mean_scal, mean_of_failure, mean_const by exact H1. fold p.
    pose proof (mean_of_inverse K pi correct G H1) as E. fold p in E. simpl pow in E. nra.
  - intros l _. unfold maxrl. set (s := successes correct l).
    assert (Hs : INR (S s) <> 0) by (apply not_0_INR; lia). simpl (S s =? 0).
    destruct (Nat.eqb_spec s 0) as [E|E]; [field; split; assumption|].
    assert (INR s <> 0) by (apply not_0_INR, E). field. repeat split; assumption.
Qed.

(** phi of rejection sampling. *)
Lemma rejection_factor : forall K G correct pi, (1 <= G)%nat -> sum K pi = 1 ->
  factor K G rejection correct pi = 1 - (1 - success K correct pi) ^ G.
Proof.
  intros K G correct pi HG H1. destruct G as [|G]; [lia|]. unfold factor.
  replace (S G - 1)%nat with G by lia. set (p := success K correct pi).
  assert (Hn : INR (S G) <> 0) by (apply not_0_INR; lia).
  rewrite (mean_ext K pi G _ (fun l => INR (S G) * / INR (S (successes correct l)))).
  - rewrite mean_scal. pose proof (mean_of_inverse K pi correct G H1) as E. fold p in E.
    rewrite <- E. ring.
  - intros l _. unfold rejection.
    assert (INR (S (successes correct l)) <> 0) by (apply not_0_INR; lia). field. split; assumption.
Qed.

(** *** The expected steps of groups.  The first part holds for every such advantage.  The other
    parts are about MaxRL and rejection sampling: their factors, their equality, and the limit of
    large groups, which is the cross-entropy step towards pi*, and CE if one answer is correct. *)
Theorem expected_steps : forall K correct w theta b, (b < K)%nat ->
  0 < success K correct (softmax K theta) ->
  let pi := softmax K theta in
  let p := success K correct pi in
  let to_restricted := restricted K correct pi b - pi b in
  (forall G A, (1 <= G)%nat ->
    expected_step K G A correct w pi b = w * factor K G A correct pi * to_restricted) /\
  (forall G, (1 <= G)%nat ->
    expected_step K G maxrl correct w pi b = w * (1 - (1 - p) ^ (G - 1)) * to_restricted /\
    expected_step K G rejection correct w pi b = w * (1 - (1 - p) ^ G) * to_restricted /\
    expected_step K (S G) maxrl correct w pi b = expected_step K G rejection correct w pi b) /\
  Un_cv (fun G => expected_step K G maxrl correct w pi b) (w * to_restricted) /\
  (forall g, (g < K)%nat -> (forall a, (a < K)%nat -> correct a = (a =? g)) ->
    theta b + w * to_restricted = ce_formula K w g theta b).
Proof.
  intros K correct w theta b Hb Hp pi p d. pose proof (softmax_sum K theta ltac:(lia)) as H1.
  fold pi in H1.
  assert (Gen : forall G A, (1 <= G)%nat ->
    expected_step K G A correct w pi b = w * factor K G A correct pi * d).
  { intros G A HG. apply group_step_expected; assumption. }
  assert (M : forall G, (1 <= G)%nat ->
    expected_step K G maxrl correct w pi b = w * (1 - (1 - p) ^ (G - 1)) * d).
  { intros G HG. rewrite Gen, maxrl_factor by assumption. reflexivity. }
  assert (N : forall G, (1 <= G)%nat ->
    expected_step K G rejection correct w pi b = w * (1 - (1 - p) ^ G) * d).
  { intros G HG. rewrite Gen, rejection_factor by assumption. reflexivity. }
  split; [exact Gen|]. split; [|split].
  - intros G HG. split; [apply M, HG|]. split; [apply N, HG|].
    rewrite M, N by lia. replace (S G - 1)%nat with G by lia. reflexivity.
  - assert (Hp1 : p <= 1).
    { rewrite <- H1. apply sum_le. intros a _.
      pose proof (softmax_pos K theta a ltac:(lia)) as P. fold pi in P. destruct (correct a); lra. }
    assert (Hpp : 0 < p) by exact Hp.
    intros eps Heps. set (y := eps / (Rabs (w * d) + 1)).
    assert (Hy : 0 < y).
    { apply Rdiv_lt_0_compat; [exact Heps|]. pose proof (Rabs_pos (w * d)). lra. }
    assert (Habs : Rabs (1 - p) < 1) by (apply Rabs_def1; lra).
    destruct (pow_lt_1_zero (1 - p) Habs y Hy) as [n Hn].
    exists (S n). intros G HG. rewrite M by lia. unfold R_dist.
    replace (w * (1 - (1 - p) ^ (G - 1)) * d - w * d) with (- (w * d * (1 - p) ^ (G - 1))) by ring.
    rewrite Rabs_Ropp, Rabs_mult. specialize (Hn (G - 1)%nat ltac:(lia)).
    pose proof (Rabs_pos (w * d)). pose proof (Rabs_pos ((1 - p) ^ (G - 1))).
    apply Rle_lt_trans with (Rabs (w * d) * y); [apply Rmult_le_compat_l; lra|].
    replace eps with ((Rabs (w * d) + 1) * y) by (unfold y; field; lra). nra.
  - intros g Hg Hone. unfold d, ce_formula, restricted.
    assert (E : success K correct pi = pi g).
    { rewrite <- (sum_single K g (pi g) Hg). apply sum_ext. intros a Ha. rewrite Hone by exact Ha.
      destruct (Nat.eqb_spec a g) as [->|_]; reflexivity. }
    rewrite E, Hone by exact Hb. pose proof (softmax_pos K theta g ltac:(lia)) as Pg. fold pi in Pg.
    fold pi. destruct (Nat.eqb_spec b g) as [->|_]; [field; lra|ring].
Qed.

(** ** No step lowers success *)

(** If a step raises no incorrect answer and lowers no correct one, the probability of success does
    not decrease. *)
Lemma success_of_step : forall K (correct : nat -> bool) theta theta' (x : nat -> R), (0 < K)%nat ->
  (forall a, (a < K)%nat -> theta' a = theta a + x a) ->
  (forall a, (a < K)%nat -> if correct a then 0 <= x a else x a <= 0) ->
  success K correct (softmax K theta) <= success K correct (softmax K theta').
Proof.
  intros K correct theta theta' x HK Hx Hsign. set (p := softmax K theta).
  assert (P : forall a, 0 < p a) by (intros a; apply softmax_pos, HK).
  pose proof (softmax_sum K theta HK) as H1. fold p in H1.
  set (up := sum K (fun a => if correct a then p a * exp (x a) else 0)).
  set (down := sum K (fun a => if correct a then 0 else p a * exp (x a))).
  assert (Hup : success K correct p <= up).
  { apply sum_le. intros a Ha. specialize (Hsign a Ha). pose proof (P a).
    destruct (correct a); [|lra]. pose proof (exp_le 0 (x a) Hsign) as E. rewrite exp_0 in E. nra. }
  assert (Hdown : down <= 1 - success K correct p).
  { rewrite <- H1. unfold success. rewrite <- sum_minus. apply sum_le. intros a Ha.
    specialize (Hsign a Ha). pose proof (P a). destruct (correct a); [lra|].
    pose proof (exp_le (x a) 0 Hsign) as E. rewrite exp_0 in E. nra. }
  assert (E : sum K (fun b => p b * exp (x b)) = up + down).
  { unfold up, down. rewrite <- sum_plus. apply sum_ext. intros a _. destruct (correct a); ring. }
  assert (HZ : 0 < up + down).
  { rewrite <- E. apply sum_pos with 0%nat; [|exact HK|].
    - intros j _. left. apply Rmult_lt_0_compat; [apply P|apply exp_pos].
    - apply Rmult_lt_0_compat; [apply P|apply exp_pos]. }
  assert (F : success K correct (softmax K theta') = up / (up + down)).
  { unfold success, up, Rdiv. rewrite <- sum_scal_r. apply sum_ext. intros a Ha.
    destruct (correct a); [|ring]. rewrite (softmax_shift K theta theta' x HK Hx a Ha).
    fold p. rewrite E. reflexivity. }
  rewrite F. apply Rmult_le_reg_r with (up + down); [exact HZ|].
  replace (up / (up + down) * (up + down)) with up by (field; lra).
  assert (0 <= success K correct p).
  { apply sum_nonneg. intros a _. pose proof (P a). destruct (correct a); lra. }
  assert (success K correct p <= 1).
  { rewrite <- H1. apply sum_le. intros a _. pose proof (P a). destruct (correct a); lra. }
  nra.
Qed.

(** Advantages that sum to zero in every group and have the sign of success. *)
Definition signed (A : Advantage) : Prop :=
  forall G s, (2 <= G)%nat -> (s <= G)%nat ->
    0 <= A G s true /\ A G s false <= 0 /\
    INR s * A G s true + (INR G - INR s) * A G s false = 0.

Lemma rloo_signed : signed rloo.
Proof.
  intros G s HG Hs. unfold rloo. apply le_INR in HG, Hs. simpl (INR 2) in HG.
  pose proof (pos_INR s). assert (Hi : 0 < / (INR G - 1)) by (apply Rinv_0_lt_compat; lra).
  split; [|split].
  - replace (1 - (INR s - 1) / (INR G - 1)) with ((INR G - INR s) * / (INR G - 1))
      by (field; lra). nra.
  - unfold Rdiv. nra.
  - field. lra.
Qed.

Lemma maxrl_signed : signed maxrl.
Proof.
  intros G s HG Hs. unfold maxrl. destruct (Nat.eqb_spec s 0) as [->|Hs0]; [simpl; lra|].
  assert (0 < INR s) by (apply lt_0_INR; lia). apply le_INR in HG, Hs. simpl (INR 2) in HG.
  split; [|split].
  - replace ((1 - INR s / INR G) / (INR s / INR G)) with ((INR G - INR s) * / INR s)
      by (field; lra).
    apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. assumption.
  - replace ((0 - INR s / INR G) / (INR s / INR G)) with (-1) by (field; lra). lra.
  - field. lra.
Qed.

Lemma grpo_signed : signed grpo.
Proof.
  intros G s HG Hs. unfold grpo.
  destruct (Nat.eqb_spec s 0) as [->|Hs0]; [simpl; lra|].
  destruct (Nat.eqb_spec s G) as [->|HsG]; [simpl; lra|]. simpl orb. cbv iota.
  assert (0 < INR s) by (apply lt_0_INR; lia). pose proof (lt_INR s G ltac:(lia)).
  set (m := INR s / INR G).
  assert (Hm : m * INR G = INR s) by (unfold m; field; lra).
  assert (0 < m) by (apply Rdiv_lt_0_compat; lra). assert (m < 1) by nra.
  assert (Hd : 0 < / sqrt (m * (1 - m))) by (apply Rinv_0_lt_compat, sqrt_lt_R0; nra).
  unfold Rdiv. set (i := / sqrt (m * (1 - m))) in *. split; [nra|]. split; [nra|].
  rewrite <- Hm. ring.
Qed.

(** The sum over the samples of a function of the reward. *)
Lemma over_samples_by_reward : forall correct (f : bool -> R) l,
  over_samples (fun a => f (correct a)) l = INR (successes correct l) * f true
    + (INR (length l) - INR (successes correct l)) * f false.
Proof.
  intros correct f l. induction l as [|a l IH]; [simpl; ring|].
  simpl over_samples. change (length (a :: l)) with (S (length l)). rewrite IH, S_INR.
  simpl successes. rewrite plus_INR. destruct (correct a); simpl (INR 1); simpl (INR 0); ring.
Qed.

(** The number of correct samples is at most the size of the group. *)
Lemma successes_le : forall correct l, (successes correct l <= length l)%nat.
Proof. intros correct l. induction l; simpl; [lia|]. destruct (correct a); lia. Qed.

(** A step on a group raises no incorrect answer and lowers no correct one. *)
Lemma group_step_sign : forall A (correct : nat -> bool) w pi l b,
  signed A -> 0 <= w -> (2 <= length l)%nat ->
  if correct b then 0 <= group_step A correct w pi l b else group_step A correct w pi l b <= 0.
Proof.
  intros A correct w pi l b HA Hw Hl. unfold group_step.
  set (s := successes correct l). set (G := length l) in *.
  destruct (HA G s Hl (successes_le correct l)) as [Hup [Hdown H0]].
  assert (HG : 0 < / INR G) by (apply Rinv_0_lt_compat, lt_0_INR; lia).
  assert (Hc : 0 <= w / INR G) by (unfold Rdiv; nra).
  pose proof (over_samples_by_reward correct (A G s) l) as E. fold s G in E. rewrite H0 in E.
  assert (F : over_samples (fun a => A G s (correct a) * ((if a =? b then 1 else 0) - pi b)) l
    = over_samples (fun a => if a =? b then A G s (correct b) else 0) l).
  { transitivity (over_samples (fun a => if a =? b then A G s (correct b) else 0) l
      - pi b * over_samples (fun a => A G s (correct a)) l); [|rewrite E; ring].
    clear. clearbody s G. induction l as [|a l IH]; simpl; [ring|]. rewrite IH.
    destruct (Nat.eqb_spec a b) as [->|_]; ring. }
  rewrite F. clear - Hup Hdown Hc. clearbody s G.
  destruct (correct b).
  - apply Rmult_le_pos; [exact Hc|]. induction l as [|a l IH]; simpl; [lra|].
    destruct (a =? b); lra.
  - assert (over_samples (fun a => if a =? b then A G s false else 0) l <= 0); [|nra].
    induction l as [|a l IH]; simpl; [lra|]. destruct (a =? b); lra.
Qed.

(** The expected step also raises no incorrect answer and lowers no correct one. *)
Lemma expected_step_sign : forall K G A (correct : nat -> bool) w pi b,
  signed A -> 0 <= w -> (2 <= G)%nat -> (forall a, (a < K)%nat -> 0 <= pi a) ->
  if correct b then 0 <= expected_step K G A correct w pi b
  else expected_step K G A correct w pi b <= 0.
Proof.
  intros K G A correct w pi b HA Hw HG Hpi. unfold expected_step.
  destruct (correct b) eqn:Eb.
  - apply mean_nonneg; [exact Hpi|]. intros l Hl _.
    pose proof (group_step_sign A correct w pi l b HA Hw ltac:(lia)) as S. rewrite Eb in S. exact S.
  - assert (0 <= mean_over_groups K pi G (fun l => -1 * group_step A correct w pi l b)).
    + apply mean_nonneg; [exact Hpi|]. intros l Hl _.
      pose proof (group_step_sign A correct w pi l b HA Hw ltac:(lia)) as S. rewrite Eb in S. lra.
    + rewrite mean_scal in H. lra.
Qed.

(** *** No step lowers success. *)
Theorem success_rises : forall K correct w theta theta', (0 < K)%nat -> 0 <= w ->
  let pi := softmax K theta in
  (exists A, In A [rloo; grpo; maxrl] /\ exists group, (2 <= length group)%nat /\
    forall a, (a < K)%nat -> theta' a = theta a + group_step A correct w pi group a) \/
  (exists A, In A [rloo; grpo; maxrl; rejection] /\ exists G, (2 <= G)%nat /\
    forall a, (a < K)%nat -> theta' a = theta a + expected_step K G A correct w pi a) ->
  success K correct pi <= success K correct (softmax K theta').
Proof.
  intros K correct w theta theta' HK Hw pi Hstep.
  assert (P : forall a, 0 < pi a) by (intros a; apply softmax_pos, HK).
  destruct Hstep as [[A [HA [l [Hl Hstep]]]]|[A [HA [G [HG Hstep]]]]].
  - apply (success_of_step K correct theta theta' _ HK Hstep). intros a _.
    apply group_step_sign; [|exact Hw|exact Hl].
    destruct HA as [<-|[<-|[<-|[]]]]; [apply rloo_signed|apply grpo_signed|apply maxrl_signed].
  - assert (HA' : signed A \/ A = rejection).
    { destruct HA as [<-|[<-|[<-|[<-|[]]]]]; [left; apply rloo_signed|left; apply grpo_signed|
        left; apply maxrl_signed|right; reflexivity]. }
    destruct HA' as [HA'|HA'].
    { apply (success_of_step K correct theta theta' _ HK Hstep). intros a _.
      apply expected_step_sign; try assumption. intros b _. left. apply P. }
    assert (H1 : sum K pi = 1) by (apply softmax_sum, HK).
    destruct (Rle_lt_dec (success K correct pi) 0) as [H0|Hp].
    { apply Rle_trans with (1 := H0). apply sum_nonneg. intros a _.
      destruct (correct a); [left; apply softmax_pos, HK|lra]. }
    apply (success_of_step K correct theta theta' _ HK Hstep). intros a Ha. subst A.
    rewrite group_step_expected, rejection_factor by (assumption || lia).
    set (p := success K correct pi) in *.
    assert (Hp1 : p <= 1).
    { rewrite <- H1. apply sum_le. intros b _. pose proof (P b). destruct (correct b); lra. }
    assert (Hpow : (1 - p) ^ G <= 1).
    { pose proof (pow_incr (1 - p) 1 G ltac:(lra)) as E. rewrite pow1 in E. exact E. }
    assert (Hc : 0 <= w * (1 - (1 - p) ^ G)) by nra.
    unfold restricted. fold p. pose proof (P a) as Pa.
    destruct (correct a); [|nra].
    assert (pi a <= pi a / p).
    { apply Rmult_le_reg_r with p; [exact Hp|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; nra. }
    apply Rmult_le_pos; lra.
Qed.
