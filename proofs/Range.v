(** * The range of the parameters under cross-entropy steps: CE forgets

    [ce_range]: after t steps of CE from the uniform policy, no two parameters differ by more than
    H_{K-1} (log(t+1) + B).  [cross_entropy_range]: for steps on any sets of actions, including
    those of SCE, the factor is K - 1.  Both follow by one induction on the sums of the parameters
    of all sets of m actions.  [ce_forgets]: therefore, an action that is greedy from then on soon
    regains the uniform probability. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums Monotonicity Masked Forgetting.
Open Scope R_scope.

(** ** Sums over a set of actions *)

(** The sum of [f] over the actions below [K] in the set [A]. *)
Definition sum_in (K : nat) (A : nat -> bool) (f : nat -> R) : R :=
  sum K (fun a => if A a then f a else 0).

(** The number of actions in the set [A]. *)
Definition size (K : nat) (A : nat -> bool) : R := sum_in K A (fun _ => 1).

(** An additional action adds its term. *)
Lemma sum_in_add : forall K A c f, (c < K)%nat -> A c = false ->
  sum_in K (fun a => (A a || (a =? c))%bool) f = sum_in K A f + f c.
Proof.
  intros K A c f Hc HA. unfold sum_in. rewrite <- (sum_single K c (f c) Hc), <- sum_plus.
  apply sum_ext. intros a _. destruct (Nat.eqb_spec a c) as [->|_].
  - rewrite HA. simpl. ring.
  - rewrite Bool.orb_false_r. destruct (A a); ring.
Qed.

(** Removing an action subtracts its term. *)
Lemma sum_in_remove : forall K A c f, (c < K)%nat -> A c = true ->
  sum_in K (fun a => (A a && negb (a =? c))%bool) f = sum_in K A f - f c.
Proof.
  intros K A c f Hc HA. unfold sum_in. rewrite <- (sum_single K c (f c) Hc), <- sum_minus.
  apply sum_ext. intros a _. destruct (Nat.eqb_spec a c) as [->|_].
  - rewrite HA. simpl. ring.
  - rewrite Bool.andb_true_r. destruct (A a); ring.
Qed.

(** The sums over a set and its complement add up to the sum over all actions. *)
Lemma sum_in_split : forall K A f,
  sum K f = sum_in K A f + sum_in K (fun a => negb (A a)) f.
Proof.
  intros K A f. unfold sum_in. rewrite <- sum_plus. apply sum_ext. intros a _.
  destruct (A a); simpl; ring.
Qed.

(** A set of size K contains all actions. *)
Lemma size_all : forall K A, size K A = INR K -> forall a, (a < K)%nat -> A a = true.
Proof.
  intros K A HA a Ha. pose proof (sum_in_split K A (fun _ => 1)) as E. fold (size K A) in E.
  rewrite HA, sum_const, Rmult_1_r in E.
  destruct (A a) eqn:Ea; [reflexivity|exfalso].
  pose proof (sum_zero K (fun i => if negb (A i) then 1 else 0)
    ltac:(intros i _; simpl; destruct (negb (A i)); lra) ltac:(unfold sum_in in E; lra) a Ha) as H.
  simpl in H. rewrite Ea in H. simpl in H. lra.
Qed.

(** A set of size zero is empty. *)
Lemma size_none : forall K A, size K A = 0 -> forall a, (a < K)%nat -> A a = false.
Proof.
  intros K A HA a Ha. destruct (A a) eqn:Ea; [exfalso|reflexivity].
  pose proof (sum_zero K (fun i => if A i then 1 else 0)
    ltac:(intros i _; simpl; destruct (A i); lra) ltac:(unfold size, sum_in in HA; lra) a Ha)
    as H.
  simpl in H. rewrite Ea in H. lra.
Qed.

(** A set that contains only one action. *)
Lemma sum_in_single : forall K c f, (c < K)%nat -> sum_in K (fun a => a =? c) f = f c.
Proof.
  intros K c f Hc. rewrite <- (sum_single K c (f c) Hc). apply sum_ext. intros a _.
  destruct (Nat.eqb_spec a c) as [->|_]; reflexivity.
Qed.

(** The set of all other actions. *)
Lemma sum_in_others : forall K c f, (c < K)%nat ->
  sum_in K (fun a => negb (a =? c)) f = sum K f - f c.
Proof.
  intros K c f Hc. rewrite (sum_in_split K (fun a => a =? c) f), sum_in_single by exact Hc. ring.
Qed.

(** The set of all other actions has size K - 1. *)
Lemma size_others : forall K c, (c < K)%nat -> size K (fun a => negb (a =? c)) = INR (K - 1).
Proof.
  intros K c Hc. unfold size. rewrite sum_in_others, sum_const, minus_INR by (assumption || lia).
  simpl. ring.
Qed.

(** Larger terms have a larger sum. *)
Lemma sum_in_le : forall K A f g, (forall a, (a < K)%nat -> A a = true -> f a <= g a) ->
  sum_in K A f <= sum_in K A g.
Proof.
  intros K A f g H. apply sum_le. intros a Ha. destruct (A a) eqn:Ea; [apply H; assumption|lra].
Qed.

(** The sum of equal terms. *)
Lemma sum_in_const : forall K A x, sum_in K A (fun _ => x) = size K A * x.
Proof.
  intros K A x. unfold size, sum_in. rewrite <- sum_scal_r. apply sum_ext. intros a _.
  destruct (A a); ring.
Qed.

(** A set of m >= 1 actions contains an action whose value is not below their mean. *)
Lemma mean_reached : forall K A f m, 0 < m -> size K A = m ->
  exists a, (a < K)%nat /\ A a = true /\ sum_in K A f / m <= f a.
Proof.
  intros K A f m Hm HA.
  destruct (argmin K (fun a => if A a then - f a else Rabs (sum K (fun b => Rabs (f b))) + 1))
    as [i [Hi Hmin]].
  { destruct K; [unfold size, sum_in in HA; simpl in HA; lra|lia]. }
  destruct (A i) eqn:Ei.
  - exists i. repeat split; [exact Hi|exact Ei|].
    apply Rmult_le_reg_r with m; [exact Hm|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
    rewrite Rmult_1_r, <- HA, Rmult_comm, <- sum_in_const. apply sum_in_le. intros a Ha Ea.
    specialize (Hmin a Ha). simpl in Hmin. rewrite Ea in Hmin. lra.
  - exfalso. assert (N : forall a, (a < K)%nat -> A a = false).
    { intros a Ha. destruct (A a) eqn:Ea; [|reflexivity]. specialize (Hmin a Ha). simpl in Hmin.
      rewrite Ea in Hmin.
      pose proof (sum_term K (fun b => Rabs (f b)) a ltac:(intros; apply Rabs_pos) Ha) as T.
      simpl in T. pose proof (Rle_abs (- f a)). rewrite Rabs_Ropp in *.
      pose proof (Rle_abs (sum K (fun b => Rabs (f b)))). lra. }
    unfold size, sum_in in HA. rewrite (sum_ext K _ (fun _ => 0)), sum_const in HA; [lra|].
    intros a Ha. rewrite N by exact Ha. reflexivity.
Qed.

(** ** Steps *)

(** Softmax over the set D alone. *)
Definition softmax_in (K : nat) (D : nat -> bool) (theta : nat -> R) (a : nat) : R :=
  exp (theta a) / sum_in K D (fun b => exp (theta b)).

(** The cross-entropy step on D towards g, which adds w (1_{a=g} - pi_D(a)) to the parameters of
    the actions in D.  CE is the case of all actions; SCE has the D of its mask. *)
Definition cross_entropy_formula (K : nat) (w : R) (D : nat -> bool) (g : nat) (theta : nat -> R)
  (a : nat) : R :=
  if D a then theta a + w * ((if a =? g then 1 else 0) - softmax_in K D theta a) else theta a.

(** A step of SCE is a cross-entropy step. *)
Lemma sce_is_cross_entropy : forall n w q g theta a,
  sce_formula n w q g theta a = cross_entropy_formula n w (in_mask n q theta g) g theta a.
Proof. reflexivity. Qed.

(** The denominator is positive. *)
Lemma partition_in_pos : forall K D theta g, (g < K)%nat -> D g = true ->
  0 < sum_in K D (fun b => exp (theta b)).
Proof.
  intros K D theta g Hg HD. apply sum_pos with g; [|exact Hg|].
  - intros j _. destruct (D j); [left; apply exp_pos|lra].
  - rewrite HD. apply exp_pos.
Qed.

(** Softmax over D sums to one over D. *)
Lemma softmax_in_sum : forall K D theta g, (g < K)%nat -> D g = true ->
  sum_in K D (softmax_in K D theta) = 1.
Proof.
  intros K D theta g Hg HD. pose proof (partition_in_pos K D theta g Hg HD) as HZ.
  unfold softmax_in. set (Z := sum_in K D _) in *. unfold sum_in.
  rewrite (sum_ext K _ (fun a => (if D a then exp (theta a) else 0) * / Z)).
  - rewrite sum_scal_r. change (Z * / Z = 1). field. lra.
  - intros a _. destruct (D a); unfold Rdiv; ring.
Qed.

(** Softmax over D of action a is at most e^(theta_a - theta_b) for any b in D. *)
Lemma softmax_in_le : forall K D theta a b, (b < K)%nat -> D b = true ->
  softmax_in K D theta a <= exp (theta a - theta b).
Proof.
  intros K D theta a b Hb HD. pose proof (partition_in_pos K D theta b Hb HD) as HZ.
  unfold softmax_in. set (Z := sum_in K D _) in *.
  assert (exp (theta b) <= Z).
  { pose proof (sum_term K (fun i => if D i then exp (theta i) else 0) b) as T. simpl in T.
    rewrite HD in T. apply T; [|exact Hb]. intros j _. destruct (D j); [left; apply exp_pos|lra]. }
  replace (theta a - theta b) with (theta a + - theta b) by ring. rewrite exp_plus, exp_Ropp.
  unfold Rdiv. apply Rmult_le_compat_l; [left; apply exp_pos|].
  apply Rinv_le_contravar; [apply exp_pos|assumption].
Qed.

(** A step on D changes a sum over A by the gain of g, if g is in A, minus the losses in A. *)
Lemma cross_entropy_sum_in : forall K w D g theta A, (g < K)%nat -> D g = true ->
  sum_in K A (cross_entropy_formula K w D g theta) = sum_in K A theta
    + w * ((if A g then 1 else 0) - sum_in K (fun a => (A a && D a)%bool) (softmax_in K D theta)).
Proof.
  intros K w D g theta A Hg HD. unfold sum_in.
  rewrite <- (sum_single K g (if A g then 1 else 0) Hg), <- sum_minus, <- sum_scal_l, <- sum_plus.
  apply sum_ext. intros a _. unfold cross_entropy_formula.
  destruct (Nat.eqb_spec a g) as [->|_].
  - rewrite HD. destruct (A g); simpl; ring.
  - destruct (A a), (D a); simpl; ring.
Qed.

(** The sum of all parameters does not change. *)
Lemma cross_entropy_sum : forall K w D g theta, (g < K)%nat -> D g = true ->
  sum K (cross_entropy_formula K w D g theta) = sum K theta.
Proof.
  intros K w D g theta Hg HD.
  pose proof (cross_entropy_sum_in K w D g theta (fun _ => true) Hg HD) as E.
  change (sum K (cross_entropy_formula K w D g theta)
    = sum K theta + w * (1 - sum_in K D (softmax_in K D theta))) in E.
  rewrite E, (softmax_in_sum K D theta g Hg HD). ring.
Qed.

(** The step adds at most w pi_D(D \ A) if g is in A, and at most zero otherwise. *)
Lemma cross_entropy_gain : forall K w D g theta A, (g < K)%nat -> D g = true -> 0 <= w ->
  sum_in K A (cross_entropy_formula K w D g theta) <= sum_in K A theta
    + (if A g then w * sum_in K (fun a => (negb (A a) && D a)%bool) (softmax_in K D theta) else 0).
Proof.
  intros K w D g theta A Hg HD Hw. rewrite cross_entropy_sum_in by assumption.
  assert (P : forall a, 0 < softmax_in K D theta a).
  { intros a. apply Rdiv_lt_0_compat; [apply exp_pos|].
    apply (partition_in_pos K D theta g Hg HD). }
  assert (E : sum_in K (fun a => (A a && D a)%bool) (softmax_in K D theta)
    + sum_in K (fun a => (negb (A a) && D a)%bool) (softmax_in K D theta) = 1).
  { rewrite <- (softmax_in_sum K D theta g Hg HD). unfold sum_in. rewrite <- sum_plus.
    apply sum_ext. intros a _. destruct (A a), (D a); simpl; ring. }
  assert (0 <= sum_in K (fun a => (A a && D a)%bool) (softmax_in K D theta)).
  { apply sum_nonneg. intros a _. destruct (_ && _)%bool; [left; apply P|lra]. }
  destruct (A g); [|nra].
  replace (1 - sum_in K (fun a => (A a && D a)%bool) (softmax_in K D theta))
    with (sum_in K (fun a => (negb (A a) && D a)%bool) (softmax_in K D theta)) by lra. lra.
Qed.

(** ** The induction *)

(** The logarithm increases by at least 1 / (t + 2) from t + 1 to t + 2. *)
Lemma ln_step : forall t, ln (INR t + 1) + / (INR t + 2) <= ln (INR (S t) + 1).
Proof.
  intros t. rewrite S_INR. pose proof (pos_INR t) as Ht.
  set (x := / (INR t + 2)).
  assert (Hx : 0 < x) by (apply Rinv_0_lt_compat; lra).
  assert (H1 : x * (INR t + 2) = 1) by (unfold x; field; lra).
  replace (INR t + 1) with ((INR t + 2) * (1 - x)) at 1 by lra.
  replace (INR t + 1 + 1) with (INR t + 2) by ring.
  assert (x < 1) by nra.
  rewrite ln_mult by lra.
  assert (ln (1 - x) <= - x).
  { rewrite <- (ln_exp (- x)). pose proof (exp_tangent (- x)) as T.
    destruct T as [T|T]; [left; apply ln_increasing; lra|right; f_equal; lra]. }
  lra.
Qed.

(** If the bounds c_m L on the sums of m parameters hold for all m, and the sum over a set A with g
    is y below its bound, no action of D outside A has a probability above e^(2y - L). *)
Definition small_outside (K : nat) (c : nat -> R) (D : nat -> bool) (g : nat) (theta : nat -> R) :=
  forall L m A y b, (0 < m < K)%nat ->
    (forall j A', (j <= K)%nat -> size K A' = INR j -> sum_in K A' theta <= c j * L) ->
    size K A = INR m -> A g = true -> 0 <= y -> sum_in K A theta = c m * L - y ->
    (b < K)%nat -> A b = false -> D b = true ->
    softmax_in K D theta b <= exp (2 * y - L).

(** Under this condition, the bounds hold at all times with L = log(t+1) + B. *)
Lemma sums_bounded : forall K (c : nat -> R) rho B W w theta, 0 < W -> 0 <= B ->
  2 * W * exp (2 * W - B) <= rho ->
  c 0%nat = 0 -> c K = 0 ->
  (forall m, (0 < m < K)%nat -> (INR K - INR m) * rho <= c m) ->
  (forall a, (a < K)%nat -> theta 0%nat a = 0) ->
  (forall t, 0 <= w t <= W) ->
  (forall t, exists D g, (g < K)%nat /\ D g = true /\ small_outside K c D g (theta t) /\
    forall a, (a < K)%nat -> theta (S t) a = cross_entropy_formula K (w t) D g (theta t) a) ->
  forall t m A, (m <= K)%nat -> size K A = INR m ->
    sum_in K A (theta t) <= c m * (ln (INR t + 1) + B).
Proof.
  intros K c rho B W w theta HW HB Hrho C0 CK Hc H0 Hw Hstep.
  (* the sum of all parameters remains zero *)
  assert (Hsum : forall t, sum K (theta t) = 0).
  { induction t as [|t IH].
    - rewrite (sum_ext K _ (fun _ => 0) H0), sum_const. ring.
    - destruct (Hstep t) as [D [g [Hgt [HD [_ E']]]]].
      rewrite (sum_ext K _ _ E'), cross_entropy_sum by assumption. exact IH. }
  induction t as [|t IH]; intros m A Hm HA.
  - unfold sum_in. rewrite (sum_ext K _ (fun _ => 0)).
    + rewrite sum_const, Rmult_0_r. simpl. rewrite Rplus_0_l, ln_1, Rplus_0_l.
      apply Rmult_le_pos; [|exact HB].
      destruct (Nat.eq_dec m 0) as [->|Hm0]; [lra|]. destruct (Nat.eq_dec m K) as [->|HmK]; [lra|].
      apply Rle_trans with (2 := Hc m ltac:(lia)). apply Rmult_le_pos.
      * pose proof (le_INR m K Hm). lra.
      * apply Rle_trans with (2 := Hrho). pose proof (exp_pos (2 * W - B)). nra.
    + intros a Ha. rewrite H0 by exact Ha. destruct (A a); reflexivity.
  - destruct (Nat.eq_dec m 0) as [->|Hm0].
    { rewrite C0, Rmult_0_l. unfold sum_in. rewrite (sum_ext K _ (fun _ => 0)).
      - rewrite sum_const. lra.
      - intros a Ha. rewrite (size_none K A HA a Ha). reflexivity. }
    destruct (Nat.eq_dec m K) as [->|HmK].
    { rewrite CK, Rmult_0_l. unfold sum_in. rewrite (sum_ext K _ (theta (S t))).
      - rewrite Hsum. lra.
      - intros a Ha. rewrite (size_all K A HA a Ha). reflexivity. }
    set (L := ln (INR t + 1) + B) in *.
    pose proof (ln_step t) as Hln. pose proof (pos_INR t) as Ht.
    assert (HmK' : 0 < INR K - INR m) by (pose proof (lt_INR m K ltac:(lia)); lra).
    pose proof (exp_pos (2 * W - B)) as HE.
    assert (Hc0 : 0 < c m).
    { apply Rlt_le_trans with (2 := Hc m ltac:(lia)). apply Rmult_lt_0_compat; [exact HmK'|nra]. }
    assert (HL : c m * L + c m * / (INR t + 2) <= c m * (ln (INR (S t) + 1) + B)).
    { unfold L. rewrite <- Rmult_plus_distr_l. apply Rmult_le_compat_l; lra. }
    assert (Hinv : 0 < / (INR t + 2)) by (apply Rinv_0_lt_compat; lra).
    apply Rle_trans with (2 := HL). destruct (Hstep t) as [D [g [Hgt [HD [Hcross E']]]]].
    pose proof (cross_entropy_gain K (w t) D g (theta t) A Hgt HD ltac:(apply Hw)) as G.
    replace (sum_in K A (cross_entropy_formula K (w t) D g (theta t)))
      with (sum_in K A (theta (S t))) in G.
    2:{ apply sum_ext. intros a Ha. rewrite (E' a Ha). reflexivity. }
    pose proof (IH m A Hm HA) as IHA. fold L in IHA.
    destruct (A g) eqn:EA; [|nra].
    set (y := c m * L - sum_in K A (theta t)).
    set (P := sum_in K _ (softmax_in K D (theta t))) in G.
    (* the probability of D outside A is at most one, and small if y is small *)
    assert (P1 : P <= 1).
    { rewrite <- (softmax_in_sum K D (theta t) g Hgt HD). apply sum_le. intros a Ha.
      assert (0 < softmax_in K D (theta t) a).
      { apply Rdiv_lt_0_compat; [apply exp_pos|].
        apply (partition_in_pos K D (theta t) g Hgt HD). }
      destruct (A a), (D a); simpl; lra. }
    destruct (Rle_dec W y) as [Hy|Hy].
    { specialize (Hw t). unfold y in Hy. nra. }
    assert (P2 : P <= (INR K - INR m) * exp (2 * W - L)).
    { apply Rle_trans with (sum_in K (fun a => negb (A a)) (fun _ => exp (2 * W - L))).
      - apply sum_le. intros a Ha. destruct (A a) eqn:Ea; simpl; [lra|].
        destruct (D a) eqn:Eb; [|left; apply exp_pos].
        apply Rle_trans with (exp (2 * y - L)).
        + apply (Hcross L m A y a); try assumption; try lia; unfold y; lra.
        + apply exp_le. lra.
      - rewrite sum_in_const. apply Rmult_le_compat_r; [left; apply exp_pos|].
        pose proof (sum_in_split K A (fun _ => 1)) as E. fold (size K A) in E.
        fold (size K (fun a => negb (A a))) in E. rewrite HA, sum_const in E. lra. }
    assert (E : exp (2 * W - L) = exp (2 * W - B) * / (INR t + 1)).
    { unfold L. replace (2 * W - (ln (INR t + 1) + B)) with (2 * W - B + - ln (INR t + 1)) by ring.
      rewrite exp_plus, exp_Ropp, exp_ln by lra. reflexivity. }
    assert (F : W * ((INR K - INR m) * exp (2 * W - L)) <= c m * / (INR t + 2)).
    { rewrite E. apply Rle_trans with (c m * (/ 2 * / (INR t + 1))).
      - replace (W * ((INR K - INR m) * (exp (2 * W - B) * / (INR t + 1))))
          with ((INR K - INR m) * (2 * W * exp (2 * W - B)) * (/ 2 * / (INR t + 1)))
          by (field; lra).
        apply Rmult_le_compat_r.
        + apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra.
        + apply Rle_trans with (2 := Hc m ltac:(lia)). apply Rmult_le_compat_l; lra.
      - rewrite <- Rinv_mult by lra. apply Rmult_le_compat_l; [lra|].
        apply Rinv_le_contravar; lra. }
    assert (P0 : 0 <= P).
    { apply sum_nonneg. intros a _. destruct (_ && _)%bool; [|lra].
      left. apply Rdiv_lt_0_compat; [apply exp_pos|].
      apply (partition_in_pos K D (theta t) g Hgt HD). }
    specialize (Hw t).
    assert (w t * P <= W * ((INR K - INR m) * exp (2 * W - L))).
    { apply Rmult_le_compat; lra. }
    lra.
Qed.

(** Bounds on the sums of one and of K - 1 parameters bound the range. *)
Lemma range_of_sums : forall K theta x y a b, sum K theta = 0 -> (a < K)%nat -> (b < K)%nat ->
  sum_in K (fun i => i =? b) theta <= x -> sum_in K (fun i => negb (i =? a)) theta <= y ->
  theta b - theta a <= x + y.
Proof.
  intros K theta x y a b H0 Ha Hb Hx Hy. rewrite sum_in_single in Hx by exact Hb.
  rewrite sum_in_others, H0 in Hy by exact Ha. lra.
Qed.

(** ** CE *)

(** H_m = 1 + 1/2 + ... + 1/m. *)
Definition harmonic (m : nat) : R := sum m (fun i => / INR (S i)).

(** H_K exceeds H_m by at least (K - m) / K. *)
Lemma harmonic_gap : forall m k, (0 < m + k)%nat ->
  INR k * / INR (m + k) <= harmonic (m + k) - harmonic m.
Proof.
  intros m k. induction k as [|k IH]; intros H.
  - rewrite Nat.add_0_r. simpl (INR 0). lra.
  - rewrite Nat.add_succ_r.
    change (harmonic (S (m + k))) with (harmonic (m + k) + / INR (S (m + k))).
    destruct (Nat.eq_dec (m + k) 0) as [E|E].
    + replace k with 0%nat by lia. replace m with 0%nat by lia. simpl. unfold harmonic. simpl. lra.
    + specialize (IH ltac:(lia)). rewrite (S_INR k).
      assert (0 < INR (m + k)) by (apply lt_0_INR; lia).
      assert (H1 : / INR (S (m + k)) <= / INR (m + k)).
      { apply Rinv_le_contravar; [assumption|rewrite S_INR; lra]. }
      pose proof (pos_INR k) as Hk. apply Rmult_le_compat_l with (1 := Hk) in H1. lra.
Qed.

(** The constant B in the theorems. *)
Lemma constant_fits : forall W x, 0 < W -> 0 < x ->
  2 * W * exp (2 * W - Rmax 0 (2 * W + ln (2 * W * x))) <= / x.
Proof.
  intros W x HW Hx. assert (Hp : 0 < 2 * W * x) by (apply Rmult_lt_0_compat; lra).
  apply Rle_trans with (2 * W * exp (2 * W - (2 * W + ln (2 * W * x)))).
  - apply Rmult_le_compat_l; [lra|]. apply exp_le.
    pose proof (Rmax_r 0 (2 * W + ln (2 * W * x))). lra.
  - replace (2 * W - (2 * W + ln (2 * W * x))) with (- ln (2 * W * x)) by ring.
    rewrite exp_Ropp, exp_ln by exact Hp. right. field. lra.
Qed.

(** A step of CE does not change the sum of the parameters. *)
Lemma ce_sum : forall n w q theta theta', ce n w q theta theta' -> sum n theta' = sum n theta.
Proof.
  intros n w q theta theta' [g [[Hg _] Hstep]]. rewrite (sum_ext n theta' _ Hstep).
  unfold ce_formula. rewrite sum_plus, sum_scal_l, sum_minus, sum_single, softmax_sum; [ring| |];
    lia.
Qed.

(** *** The range of CE. *)
Theorem ce_range : forall K W weights q theta, (2 <= K)%nat -> 0 < W ->
  (forall a, (a < K)%nat -> theta 0%nat a = 0) ->
  (forall t, 0 <= weights t <= W) ->
  (forall t, ce K (weights t) (q t) (theta t) (theta (S t))) ->
  forall t a b, (a < K)%nat -> (b < K)%nat ->
    theta t b - theta t a <=
      harmonic (K - 1) * (ln (INR t + 1) + Rmax 0 (2 * W + ln (2 * W * INR K))).
Proof.
  intros K W weights q theta HK HW H0 Hw Hrun t a b Ha Hb.
  set (B := Rmax 0 (2 * W + ln (2 * W * INR K))). set (all := fun _ : nat => true).
  assert (HKp : 0 < INR K) by (apply lt_0_INR; lia).
  assert (HS : forall m A, (m <= K)%nat -> size K A = INR m -> sum_in K A (theta t)
    <= INR m * (harmonic K - harmonic m) * (ln (INR t + 1) + B)).
  { apply (sums_bounded K (fun m => INR m * (harmonic K - harmonic m)) (/ INR K) B W weights theta);
      [exact HW|apply Rmax_l|apply constant_fits; assumption|simpl; ring|ring| |exact H0|exact Hw|].
    - intros m Hm. pose proof (harmonic_gap m (K - m) ltac:(lia)) as G.
      replace (m + (K - m))%nat with K in G by lia. rewrite minus_INR in G by lia.
      assert (1 <= INR m) by (apply (le_INR 1); lia).
      assert (0 <= (INR K - INR m) * / INR K).
      { apply Rmult_le_pos; [pose proof (le_INR m K ltac:(lia)); lra|].
        left. apply Rinv_0_lt_compat, HKp. }
      nra.
    - intros t'. destruct (Hrun t') as [g [[Hg _] Hstep]]. exists all, g.
      assert (E : forall x, softmax_in K all (theta t') x = softmax K (theta t') x) by reflexivity.
      repeat split; [exact Hg| |].
      + intros L m A y b' Hm IH HA HAg Hy HAy Hb' HAb _.
        assert (Hmp : 0 < INR m) by (apply lt_0_INR; lia).
        destruct (mean_reached K A (theta t') (INR m) Hmp HA) as [i [Hi [_ Hmean]]].
        apply Rle_trans with (1 := softmax_in_le K all (theta t') b' i Hi eq_refl).
        apply exp_le. rewrite HAy in Hmean.
        pose proof (IH (S m) _ ltac:(lia) (eq_trans (sum_in_add K A b' (fun _ => 1) Hb' HAb)
          (eq_trans (f_equal (fun z => z + 1) HA) (eq_sym (S_INR m))))) as H1.
        rewrite sum_in_add, HAy, S_INR in H1 by assumption.
        change (harmonic (S m)) with (harmonic m + / INR (S m)) in H1. rewrite S_INR in H1.
        set (G := harmonic K - harmonic m) in *.
        replace (harmonic K - (harmonic m + / (INR m + 1))) with (G - / (INR m + 1)) in H1
          by (unfold G; ring).
        replace ((INR m + 1) * (G - / (INR m + 1)) * L) with ((INR m + 1) * G * L - L) in H1
          by (field; lra).
        replace ((INR m * G * L - y) / INR m) with (G * L - y * / INR m) in Hmean
          by (field; lra).
        assert (/ INR m <= 1).
        { rewrite <- Rinv_1. apply Rinv_le_contravar; [lra|]. apply (le_INR 1). lia. }
        nra.
      + intros a' Ha'. rewrite (Hstep a' Ha'). reflexivity. }
  assert (H0K : sum K (theta t) = 0).
  { clear - H0 Hrun. induction t as [|t IH].
    - rewrite (sum_ext K _ (fun _ => 0) H0), sum_const. ring.
    - rewrite (ce_sum _ _ _ _ _ (Hrun t)). exact IH. }
  pose proof (HS 1%nat (fun i => i =? b) ltac:(lia) (sum_in_single K b (fun _ => 1) Hb)) as S1.
  pose proof (HS (K - 1)%nat (fun i => negb (i =? a)) ltac:(lia) (size_others K a Ha)) as S2.
  apply Rle_trans with (1 := range_of_sums K (theta t) _ _ a b H0K Ha Hb S1 S2). right.
  assert (EH : harmonic K = harmonic (K - 1) + / INR K).
  { replace K with (S (K - 1)) at 1 3 by lia. reflexivity. }
  rewrite EH, minus_INR by lia. change (harmonic 1) with (0 + / INR 1). simpl (INR 1). field. lra.
Qed.

(** ** Steps on any sets of actions *)

(** *** The range of arbitrary cross-entropy steps, each on a different set D of actions and towards
    a different action in D. *)
Theorem cross_entropy_range : forall K W weights D g theta, (2 <= K)%nat -> 0 < W ->
  (forall a, (a < K)%nat -> theta 0%nat a = 0) ->
  (forall t, 0 <= weights t <= W) ->
  (forall t, (g t < K)%nat /\ D t (g t) = true) ->
  (forall t a, (a < K)%nat ->
    theta (S t) a = cross_entropy_formula K (weights t) (D t) (g t) (theta t) a) ->
  forall t a b, (a < K)%nat -> (b < K)%nat ->
    theta t b - theta t a <= (INR K - 1) * (ln (INR t + 1) + Rmax 0 (2 * W + ln (4 * W))).
Proof.
  intros K W weights D g theta HK HW H0 Hw Hg Hstep t a b Ha Hb.
  replace (4 * W) with (2 * W * 2) by ring. set (B := Rmax 0 (2 * W + ln (2 * W * 2))).
  assert (HS : forall m A, (m <= K)%nat -> size K A = INR m -> sum_in K A (theta t)
    <= INR m * (INR K - INR m) / 2 * (ln (INR t + 1) + B)).
  { apply (sums_bounded K (fun m => INR m * (INR K - INR m) / 2) (/ 2) B W weights theta);
      [exact HW|apply Rmax_l|apply constant_fits; lra|simpl; field|field| |exact H0|exact Hw|].
    - intros m Hm. assert (1 <= INR m) by (apply (le_INR 1); lia).
      pose proof (le_INR m K ltac:(lia)). nra.
    - intros t'. destruct (Hg t') as [Hgt HD]. exists (D t'), (g t').
      repeat split; [exact Hgt|exact HD| |apply Hstep].
      intros L m A y b' Hm IH HA HAg Hy HAy Hb' HAb _.
      apply Rle_trans with (1 := softmax_in_le K (D t') (theta t') b' (g t') Hgt HD).
      apply exp_le.
      pose proof (IH (S m) _ ltac:(lia) (eq_trans (sum_in_add K A b' (fun _ => 1) Hb' HAb)
        (eq_trans (f_equal (fun z => z + 1) HA) (eq_sym (S_INR m))))) as H1.
      pose proof (IH (m - 1)%nat _ ltac:(lia) (eq_trans
        (sum_in_remove K A (g t') (fun _ => 1) Hgt HAg)
        (eq_trans (f_equal (fun z => z - 1) HA) (eq_sym (minus_INR m 1 ltac:(lia)))))) as H2.
      rewrite sum_in_add, HAy, S_INR in H1 by assumption.
      rewrite sum_in_remove, HAy, minus_INR in H2 by (assumption || lia). simpl (INR 1) in H2.
      lra. }
  assert (H0K : sum K (theta t) = 0).
  { clear - H0 Hg Hstep. induction t as [|t IH].
    - rewrite (sum_ext K _ (fun _ => 0) H0), sum_const. ring.
    - rewrite (sum_ext K _ _ (Hstep t)), cross_entropy_sum by apply Hg. exact IH. }
  pose proof (HS 1%nat (fun i => i =? b) ltac:(lia) (sum_in_single K b (fun _ => 1) Hb)) as S1.
  pose proof (HS (K - 1)%nat (fun i => negb (i =? a)) ltac:(lia) (size_others K a Ha)) as S2.
  apply Rle_trans with (1 := range_of_sums K (theta t) _ _ a b H0K Ha Hb S1 S2). right.
  rewrite minus_INR by lia. simpl (INR 1). field.
Qed.

(** ** The way back under CE *)

(** An action with the largest parameter has at least the uniform probability. *)
Lemma largest_parameter : forall K theta l, (l < K)%nat ->
  (forall a, (a < K)%nat -> theta a <= theta l) -> / INR K <= softmax K theta l.
Proof.
  intros K theta l Hl H. pose proof (partition_pos K theta ltac:(lia)) as HZ.
  assert (HK : 0 < INR K) by (apply lt_0_INR; lia).
  assert (sum K (fun b => exp (theta b)) <= INR K * exp (theta l)).
  { rewrite <- sum_const. apply sum_le. intros a Ha. apply exp_le, H, Ha. }
  unfold softmax. set (Z := sum K _) in *. apply Rmult_le_reg_l with (INR K * Z).
  - apply Rmult_lt_0_compat; assumption.
  - replace (INR K * Z * / INR K) with Z by (field; lra).
    replace (INR K * Z * (exp (theta l) / Z)) with (INR K * exp (theta l)) by (field; lra).
    assumption.
Qed.

(** *** CE forgets.  If the last action is the only greedy action and the weight is W after n steps
    from the uniform policy, the action regains the uniform probability after at most
    K R / ((K - 1) W) steps, rounded up, where R is the bound on the range. *)
Theorem ce_forgets : forall K W weights q theta n m, (2 <= K)%nat -> 0 < W ->
  (forall a, (a < K)%nat -> theta 0%nat a = 0) ->
  (forall t, 0 <= weights t <= W) ->
  (forall t, ce K (weights t) (q t) (theta t) (theta (S t))) ->
  (forall t, (n <= t)%nat -> weights t = W) ->
  (forall t a, (n <= t)%nat -> (a < K - 1)%nat -> q t a < q t (K - 1)%nat) ->
  INR K * (harmonic (K - 1) * (ln (INR n + 1) + Rmax 0 (2 * W + ln (2 * W * INR K))))
    / ((INR K - 1) * W) <= INR m ->
  exists j, (j <= m)%nat /\ / INR K <= softmax K (theta (n + j)%nat) (K - 1).
Proof.
  intros K W weights q theta n m HK HW H0 Hw Hrun HwW Hlast Hm.
  pose proof (ce_range K W weights q theta HK HW H0 Hw Hrun n) as HR.
  set (R := harmonic (K - 1) * _) in *. set (l := (K - 1)%nat) in *.
  assert (Hl : (l < K)%nat) by (unfold l; lia). pose proof (actions_minus_one K HK) as HK1.
  set (d := (INR K - 1) * W / INR K).
  assert (H : forall j,
    (exists i, (i < j)%nat /\ / INR K <= softmax K (theta (n + i)%nat) l) \/
    forall a, (a < K)%nat -> a <> l ->
      theta (n + j)%nat a - theta (n + j)%nat l <= R - INR j * d).
  { induction j as [|j [[i [Hi E]]|IH]].
    - right. intros a Ha _. rewrite Nat.add_0_r. simpl (INR 0).
      specialize (HR l a Hl Ha). lra.
    - left. exists i. split; [lia|exact E].
    - destruct (Rle_dec (/ INR K) (softmax K (theta (n + j)%nat) l)) as [L|L].
      { left. exists j. split; [lia|exact L]. }
      right. intros a Ha Hne. specialize (IH a Ha Hne).
      destruct (Hrun (n + j)%nat) as [g [[Hg Hgreedy] Hstep]].
      assert (g = l) as ->.
      { destruct (Nat.eq_dec g l) as [E|E]; [exact E|exfalso].
        specialize (Hlast (n + j)%nat g ltac:(lia) ltac:(unfold l in *; lia)).
        specialize (Hgreedy l Hl). fold l in Hlast. lra. }
      rewrite Nat.add_succ_r, (Hstep a Ha), (Hstep l Hl), HwW, S_INR by lia.
      unfold ce_formula. rewrite Nat.eqb_refl.
      destruct (Nat.eqb_spec a l) as [E|_]; [contradiction|].
      pose proof (softmax_pos K (theta (n + j)%nat) a ltac:(lia)) as P.
      assert (d = W * (1 - / INR K)) by (unfold d; field; lra).
      assert (0 <= W * softmax K (theta (n + j)%nat) a) by nra.
      assert (W * (1 - / INR K) <= W * (1 - softmax K (theta (n + j)%nat) l)).
      { apply Rmult_le_compat_l; lra. }
      lra. }
  destruct (H m) as [[i [Hi E]]|E]; [exists i; split; [lia|exact E]|].
  exists m. split; [lia|]. apply largest_parameter; [exact Hl|]. intros a Ha.
  destruct (Nat.eq_dec a l) as [->|Hne]; [lra|]. specialize (E a Ha Hne).
  assert (R <= INR m * d).
  { unfold d. apply Rmult_le_reg_r with (INR K / ((INR K - 1) * W)).
    - apply Rdiv_lt_0_compat; [lra|]. apply Rmult_lt_0_compat; lra.
    - replace (INR m * ((INR K - 1) * W / INR K) * (INR K / ((INR K - 1) * W))) with (INR m)
        by (field; lra).
      apply Rle_trans with (2 := Hm). right. field. lra. }
  lra.
Qed.
