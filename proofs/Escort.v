(** * The weight up to which PG-ES does not lower the greedy action

    With p = 2 and the exact gradient, a step multiplies theta_a by 1 + k adv(a), where k is twice
    the weight divided by the squared norm.  [pg_es_threshold]: the probability of the greedy action
    does not decrease if w (beta - alpha) is at most the squared norm, and only then if q has two
    values. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums Monotonicity.
Open Scope R_scope.

(** The powers in the formula of PG-ES, for p = 2. *)
Lemma abs_pow_two : forall x, abs_pow x 2 = x ^ 2.
Proof.
  intros x. unfold abs_pow. destruct (Req_EM_T x 0) as [->|H]; [ring|].
  replace 2 with (INR 2) at 1 by (simpl; ring).
  rewrite Rpower_pow by (apply Rabs_pos_lt, H). apply pow2_abs.
Qed.

(** The same for the square root. *)
Lemma abs_pow_half : forall x, 0 <= x -> abs_pow x (1 / 2) = sqrt x.
Proof.
  intros x Hx. unfold abs_pow. destruct (Req_EM_T x 0) as [->|H]; [symmetry; apply sqrt_0|].
  rewrite Rabs_pos_eq by exact Hx. replace (1 / 2) with (/ 2) by field.
  apply Rpower_sqrt. lra.
Qed.

(** The squared norm. *)
Definition norm2 (n : nat) (theta : nat -> R) : R := sum n (fun a => theta a ^ 2).

(** The escort policy for p = 2. *)
Lemma escort_two : forall n theta a, escort 2 n theta a = theta a ^ 2 / norm2 n theta.
Proof.
  intros n theta a. unfold escort, norm2. rewrite abs_pow_two. f_equal.
  apply sum_ext. intros b _. apply abs_pow_two.
Qed.

(** The step of PG-ES for p = 2. *)
Lemma pg_es_two : forall n w q theta a, 0 < norm2 n theta ->
  pg_es_formula 2 n w q theta a
  = theta a * (1 + 2 * w / norm2 n theta * adv n (escort 2 n theta) q a).
Proof.
  intros n w q theta a HS. unfold pg_es_formula, norm.
  rewrite (sum_ext n _ (fun b => theta b ^ 2)) by (intros b _; apply abs_pow_two).
  fold (norm2 n theta). set (A := adv n (escort 2 n theta) q a). rewrite escort_two.
  set (S := norm2 n theta) in *. rewrite abs_pow_half by lra.
  replace (1 - 1 / 2) with (1 / 2) by field. pose proof (sqrt_lt_R0 S HS) as Hs.
  pose proof (sqrt_sqrt S ltac:(lra)) as HSS.
  rewrite abs_pow_half.
  - unfold sign. destruct (Req_EM_T (theta a) 0) as [->|Ha]; [ring|].
    rewrite sqrt_div_alt by exact HS.
    replace (theta a ^ 2) with (Rsqr (theta a)) by (unfold Rsqr; ring). rewrite sqrt_Rsqr_abs.
    pose proof (Rabs_no_R0 (theta a) Ha) as Habs.
    set (root := sqrt S) in *. rewrite <- HSS. field. lra.
  - apply Rmult_le_pos; [apply pow2_ge_0|left; apply Rinv_0_lt_compat, HS].
Qed.

(** *** The threshold.  Let alpha be the advantage of the greedy action and -beta a lower bound on
    the advantages of the actions of positive probability.  If w (beta - alpha) is at most the
    squared norm, the probability of the greedy action does not decrease.  If these actions have
    only the advantages alpha and -beta, and the latter occurs, it decreases for every larger
    weight. *)
Theorem pg_es_threshold : forall n w q theta theta' g beta,
  0 <= w -> 0 < norm2 n theta -> is_greedy n q g -> pg_es 2 n w q theta theta' ->
  let advantage := adv n (escort 2 n theta) q in
  let alpha := advantage g in
  (forall a, (a < n)%nat -> theta a <> 0 -> - beta <= advantage a) ->
  (w * (beta - alpha) <= norm2 n theta -> escort 2 n theta g <= escort 2 n theta' g) /\
  (norm2 n theta < w * (beta - alpha) -> theta g <> 0 ->
   (forall a, (a < n)%nat -> theta a <> 0 -> advantage a = alpha \/ advantage a = - beta) ->
   (exists a, (a < n)%nat /\ theta a <> 0 /\ advantage a = - beta) ->
   escort 2 n theta' g < escort 2 n theta g).
Proof.
  intros n w q theta theta' g beta Hw HS [Hg Hmax] Hstep advantage alpha Hbeta.
  set (S := norm2 n theta) in *. set (k := 2 * w / S).
  assert (HkS : k * S = 2 * w) by (unfold k; field; lra).
  assert (Hk : 0 <= k) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, HS]).
  assert (Htheta' : forall a, (a < n)%nat -> theta' a = theta a * (1 + k * advantage a)).
  { intros a Ha. rewrite (Hstep a Ha), pg_es_two by exact HS. reflexivity. }
  assert (Hdist : sum n (escort 2 n theta) = 1).
  { rewrite (sum_ext n _ (fun a => theta a ^ 2 * / S)) by (intros a _; apply escort_two).
    rewrite sum_scal_r. change (S * / S = 1). field. lra. }
  assert (Hmean : sum n (fun a => theta a ^ 2 * advantage a) = 0).
  { pose proof (adv_mean n (escort 2 n theta) q Hdist) as H. fold advantage in H.
    rewrite (sum_ext n _ (fun a => / S * (theta a ^ 2 * advantage a))) in H
      by (intros a _; rewrite escort_two; fold S; unfold Rdiv; ring).
    rewrite sum_scal_l in H. pose proof (Rinv_0_lt_compat S HS). nra. }
  set (V := sum n (fun a => theta a ^ 2 * advantage a ^ 2)).
  assert (HS' : norm2 n theta' = S + k * k * V).
  { unfold norm2. rewrite (sum_ext n _ (fun a => theta a ^ 2
      + 2 * k * (theta a ^ 2 * advantage a) + k * k * (theta a ^ 2 * advantage a ^ 2)))
      by (intros a Ha; rewrite (Htheta' a Ha); ring).
    rewrite !sum_plus, !sum_scal_l, Hmean. fold V. unfold S, norm2. ring. }
  assert (HV0 : 0 <= V).
  { apply sum_nonneg. intros a _. apply Rmult_le_pos; apply pow2_ge_0. }
  assert (HS'pos : 0 < norm2 n theta') by (rewrite HS'; nra).
  (* the sum of theta^2 (alpha - adv) (adv + beta) is S alpha beta - V *)
  assert (HB : sum n (fun a => theta a ^ 2 * ((alpha - advantage a) * (advantage a + beta)))
               = S * (alpha * beta) - V).
  { rewrite (sum_ext n _ (fun a => theta a ^ 2 * (alpha * beta)
      + (alpha - beta) * (theta a ^ 2 * advantage a) - theta a ^ 2 * advantage a ^ 2))
      by (intros; ring).
    rewrite sum_minus, sum_plus, sum_scal_r, sum_scal_l, Hmean. fold V.
    change (sum n (fun a => theta a ^ 2)) with S. ring. }
  assert (Hle : forall a, (a < n)%nat -> advantage a <= alpha).
  { intros a Ha. unfold alpha, advantage, adv. specialize (Hmax a Ha). lra. }
  assert (Halpha : 0 <= alpha).
  { apply Rnot_lt_le. intros L.
    assert (H : sum n (fun a => theta a ^ 2 * advantage a) <= sum n (fun a => theta a ^ 2 * alpha)).
    { apply sum_le. intros a Ha. apply Rmult_le_compat_l; [apply pow2_ge_0|apply Hle, Ha]. }
    rewrite Hmean, sum_scal_r in H. change (0 <= S * alpha) in H. nra. }
  rewrite !escort_two. fold S. rewrite (Htheta' g Hg). fold alpha. split.
  - intros Hthreshold.
    assert (HV : V <= S * (alpha * beta)).
    { enough (0 <= S * (alpha * beta) - V) by lra. rewrite <- HB. apply sum_nonneg. intros a Ha.
      destruct (Req_dec (theta a) 0) as [->|Hne]; [lra|].
      apply Rmult_le_pos; [apply pow2_ge_0|]. specialize (Hle a Ha). specialize (Hbeta a Ha Hne).
      apply Rmult_le_pos; lra. }
    assert (HX : norm2 n theta' <= S * (1 + k * alpha) ^ 2).
    { rewrite HS'. assert (k * k * V <= k * k * (S * (alpha * beta))) by nra.
      assert (0 <= (2 * S - k * S * (beta - alpha)) * (k * alpha)); [|nra].
      apply Rmult_le_pos; [rewrite HkS; lra|nra]. }
    apply Rmult_le_reg_r with (S * norm2 n theta'); [nra|].
    replace (theta g ^ 2 / S * (S * norm2 n theta')) with (theta g ^ 2 * norm2 n theta')
      by (field; lra).
    replace ((theta g * (1 + k * alpha)) ^ 2 / norm2 n theta' * (S * norm2 n theta'))
      with (theta g ^ 2 * (S * (1 + k * alpha) ^ 2)) by (field; lra).
    apply Rmult_le_compat_l; [apply pow2_ge_0|exact HX].
  - intros Hlarge Hgne Htwo [b [Hb [Hbne Eb]]].
    assert (HV : V = S * (alpha * beta)).
    { enough (S * (alpha * beta) - V = 0) by lra. rewrite <- HB.
      rewrite (sum_ext n _ (fun _ => 0)); [rewrite sum_const; ring|]. intros a Ha.
      destruct (Req_dec (theta a) 0) as [->|Hne]; [ring|].
      destruct (Htwo a Ha Hne) as [->| ->]; ring. }
    assert (Hgpos : 0 < theta g ^ 2) by nra. assert (Hbpos : 0 < theta b ^ 2) by nra.
    (* alpha = 0 would leave no action below the mean *)
    assert (Hpos : 0 < alpha).
    { destruct Halpha as [L|E]; [exact L|exfalso].
      assert (0 < sum n (fun a => theta a ^ 2 * - advantage a)).
      { apply sum_pos with b; [|exact Hb|].
        - intros a Ha. apply Rmult_le_pos; [apply pow2_ge_0|]. specialize (Hle a Ha). lra.
        - rewrite Eb. apply Rmult_lt_0_compat; [exact Hbpos|]. nra. }
      rewrite (sum_ext n _ (fun a => -1 * (theta a ^ 2 * advantage a))) in H by (intros; ring).
      rewrite sum_scal_l, Hmean in H. lra. }
    assert (Hwpos : 0 < w).
    { destruct Hw as [L|E]; [exact L|exfalso; rewrite <- E in Hlarge; lra]. }
    assert (Hkpos : 0 < k) by nra.
    assert (HX : S * (1 + k * alpha) ^ 2 < norm2 n theta').
    { rewrite HS', HV. assert (0 < (k * S * (beta - alpha) - 2 * S) * (k * alpha)); [|nra].
      apply Rmult_lt_0_compat; [rewrite HkS; lra|nra]. }
    apply Rmult_lt_reg_r with (S * norm2 n theta'); [nra|].
    replace (theta g ^ 2 / S * (S * norm2 n theta')) with (theta g ^ 2 * norm2 n theta')
      by (field; lra).
    replace ((theta g * (1 + k * alpha)) ^ 2 / norm2 n theta' * (S * norm2 n theta'))
      with (theta g ^ 2 * (S * (1 + k * alpha) ^ 2)) by (field; lra).
    apply Rmult_lt_compat_l; assumption.
Qed.
