(** * The Euclidean projection on the simplex

    The update DI is defined by the nearest point of the simplex.  This file proves the properties
    that the book uses: the angle at the nearest point is not acute; there is only one nearest
    point; it is max(0, x_a - lambda) for the lambda for which the sum is one (as computed by
    [pu_lib.updates]); and it has a closed form for two actions. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums.
Open Scope R_scope.

(** The squared distance, expanded along the segment from [y] to [z]. *)
Lemma distance2_segment : forall n x y z e,
  distance2 n x (fun a => y a + e * (z a - y a)) =
  distance2 n x y - 2 * e * sum n (fun a => (x a - y a) * (z a - y a)) + e ^ 2 * distance2 n z y.
Proof.
  intros n x y z e. unfold distance2. rewrite <- !sum_scal_l, <- sum_minus, <- sum_plus.
  apply sum_ext. intros; ring.
Qed.

(** A sum of squares is not negative. *)
Lemma distance2_nonneg : forall n x y, 0 <= distance2 n x y.
Proof. intros. apply sum_nonneg. intros. apply pow2_ge_0. Qed.

(** The simplex is convex. *)
Lemma distribution_segment : forall n y z e, is_distribution n y -> is_distribution n z ->
  0 <= e <= 1 -> is_distribution n (fun a => y a + e * (z a - y a)).
Proof.
  intros n y z e [Hy Y1] [Hz Z1] He. split.
  - intros a Ha. specialize (Hy a Ha). specialize (Hz a Ha). nra.
  - rewrite sum_plus, sum_scal_l, sum_minus, Y1, Z1. ring.
Qed.

(** The obtuse angle: at a nearest point of a convex set, the angle with any other point of the set
    is not acute.  Otherwise, a small step towards that point would be nearer. *)
Lemma projection_angle : forall n x y z, is_projection n x y -> is_distribution n z ->
  sum n (fun a => (x a - y a) * (z a - y a)) <= 0.
Proof.
  intros n x y z [Hy Hmin] Hz. set (c := sum n (fun a => (x a - y a) * (z a - y a))).
  destruct (Rle_lt_dec c 0) as [Hc|Hc]; [exact Hc|exfalso].
  pose proof (distance2_nonneg n z y) as Hd. set (d := distance2 n z y) in *.
  (* the step c / (c + d) towards z is at most one and shortens the distance *)
  set (e := c / (c + d)).
  assert (He : 0 < e <= 1).
  { unfold e. split; [apply Rdiv_lt_0_compat; lra|].
    apply Rmult_le_reg_r with (c + d); [lra|].
    replace (c / (c + d) * (c + d)) with c by (field; lra). lra. }
  assert (Hed : e * (c + d) = c) by (unfold e; field; lra).
  pose proof (Hmin _ (distribution_segment n y z e Hy Hz ltac:(lra))) as H.
  rewrite distance2_segment in H. fold c d in H.
  assert (0 < e * c) by (apply Rmult_lt_0_compat; lra).
  assert (e ^ 2 * d = e * (c - e * c)) by (rewrite <- Hed at 1; ring). nra.
Qed.

(** There is only one nearest point, because two nearest points would both have no acute angle. *)
Lemma projection_unique : forall n x y z, is_projection n x y -> is_projection n x z ->
  forall a, (a < n)%nat -> y a = z a.
Proof.
  intros n x y z Hy Hz a Ha.
  pose proof (projection_angle n x y z Hy (proj1 Hz)) as H1.
  pose proof (projection_angle n x z y Hz (proj1 Hy)) as H2.
  assert (E : sum n (fun a => (x a - y a) * (z a - y a))
              + sum n (fun a => (x a - z a) * (y a - z a)) = sum n (fun a => (y a - z a) ^ 2)).
  { rewrite <- sum_plus. apply sum_ext. intros; ring. }
  assert (H0 : (y a - z a) ^ 2 = 0).
  { apply (sum_zero n (fun a => (y a - z a) ^ 2)); [intros; apply pow2_ge_0|lra|exact Ha]. }
  assert (y a - z a = 0); [|lra].
  apply Rmult_integral in H0 as [H0|H0]; lra.
Qed.

(** The threshold formula: max(0, x_a - lambda) is the projection if it sums to one. *)
Lemma projection_threshold : forall n x y lambda,
  (forall a, (a < n)%nat -> y a = Rmax 0 (x a - lambda)) -> sum n y = 1 -> is_projection n x y.
Proof.
  intros n x y lambda Hyl H1.
  assert (Hy : is_distribution n y).
  { split; [|exact H1]. intros a Ha. rewrite Hyl by exact Ha. apply Rmax_l. }
  split; [exact Hy|]. intros z Hz.
  (* |x - z|^2 - |x - y|^2 >= 2 sum (x - y)(y - z), and each (x_a - y_a - lambda)(y_a - z_a) >= 0 *)
  assert (A : 0 <= sum n (fun a => (x a - y a - lambda) * (y a - z a))).
  { apply sum_nonneg. intros a Ha. rewrite Hyl by exact Ha. destruct Hz as [Hz _].
    specialize (Hz a Ha). unfold Rmax. destruct (Rle_dec 0 (x a - lambda)); nra. }
  assert (B : sum n (fun a => (x a - y a - lambda) * (y a - z a))
              = sum n (fun a => (x a - y a) * (y a - z a))).
  { rewrite (sum_ext n _ (fun a => (x a - y a) * (y a - z a) - lambda * (y a - z a)))
      by (intros; ring).
    rewrite sum_minus, sum_scal_l, sum_minus, (proj2 Hy), (proj2 Hz). ring. }
  assert (C : distance2 n x z
              = distance2 n x y + 2 * sum n (fun a => (x a - y a) * (y a - z a)) + distance2 n y z).
  { unfold distance2. rewrite <- sum_scal_l, <- !sum_plus. apply sum_ext. intros; ring. }
  pose proof (distance2_nonneg n y z). lra.
Qed.

(** The projection exists: the sum of max(0, x_a - lambda) is continuous in lambda, zero at the
    largest x_a, and at least two at the largest x_a minus two. *)
Lemma projection_exists : forall n x, (0 < n)%nat -> { y | is_projection n x y }.
Proof.
  intros n x Hn. destruct (argmin n (fun a => - x a) Hn) as [g [Hg Hmax]].
  set (f := fun lambda => 1 - sum n (fun a => (x a - lambda + Rabs (x a - lambda)) / 2)).
  assert (Hf : forall m, continuity (fun lambda =>
            sum m (fun a => (x a - lambda + Rabs (x a - lambda)) / 2))).
  { induction m as [|m IH]; [apply continuity_const; intros a b; reflexivity|].
    apply (continuity_plus _ (fun lambda => (x m - lambda + Rabs (x m - lambda)) / 2) IH).
    assert (Hlin : continuity (fun lambda => x m - lambda)) by (intros lambda; reg).
    intros lambda. apply continuity_pt_mult; [|apply continuity_const; intros a b; reflexivity].
    apply continuity_pt_plus; [apply Hlin|].
    apply (continuity_pt_comp (fun lambda => x m - lambda) Rabs); [apply Hlin|].
    apply Rcontinuity_abs. }
  (* z + |z| is twice the maximum of z and 0 *)
  assert (Hmaxi : forall z, (z + Rabs z) / 2 = Rmax 0 z).
  { intros z. unfold Rmax, Rabs. destruct (Rcase_abs z), (Rle_dec 0 z); lra. }
  (* the sum is one at some point in between *)
  destruct (IVT f (x g - 2) (x g)) as [lambda [_ Hlambda]].
  - intros lambda. apply continuity_pt_minus; [|apply Hf].
    apply continuity_const. intros a b. reflexivity.
  - lra.
  - unfold f. enough (2 <= sum n (fun a => (x a - (x g - 2) + Rabs (x a - (x g - 2))) / 2)) by lra.
    apply Rle_trans with ((x g - (x g - 2) + Rabs (x g - (x g - 2))) / 2).
    + rewrite Hmaxi. apply Rle_trans with (x g - (x g - 2)); [lra|apply Rmax_r].
    + apply (sum_term n (fun a => (x a - (x g - 2) + Rabs (x a - (x g - 2))) / 2)); [|exact Hg].
      intros a Ha. rewrite Hmaxi. apply Rmax_l.
  - unfold f. rewrite (sum_ext n _ (fun _ => 0)); [rewrite sum_const; lra|]. intros a Ha.
    rewrite Hmaxi. specialize (Hmax a Ha). apply Rmax_left. lra.
  - exists (fun a => Rmax 0 (x a - lambda)). apply projection_threshold with lambda.
    + reflexivity.
    + unfold f in Hlambda. rewrite (sum_ext n _ (fun a => Rmax 0 (x a - lambda))) in Hlambda.
      * lra.
      * intros a Ha. apply Hmaxi.
Qed.

(** Two actions: the projection keeps the difference x_0 - x_1 and clips it at the corners. *)
Lemma projection_two : forall x y, is_projection 2 x y ->
  y 0%nat = Rmax 0 (Rmin 1 ((1 + x 0%nat - x 1%nat) / 2)) /\ y 1%nat = 1 - y 0%nat.
Proof.
  intros x y Hy. assert (S1 : y 0%nat + y 1%nat = 1).
  { destruct Hy as [[_ H1] _]. simpl in H1. lra. }
  split; [|lra]. set (m := (1 + x 0%nat - x 1%nat) / 2).
  (* the threshold in each of the three cases *)
  set (lambda := if Rle_dec m 0 then x 1%nat - 1 else if Rle_dec 1 m then x 0%nat - 1
                 else (x 0%nat + x 1%nat - 1) / 2).
  assert (H : Rmax 0 (x 0%nat - lambda) = Rmax 0 (Rmin 1 m) /\
              sum 2 (fun a => Rmax 0 (x a - lambda)) = 1).
  { unfold sum, lambda, Rmin. destruct (Rle_dec m 0), (Rle_dec 1 m); unfold Rmax;
      repeat (match goal with |- context [Rle_dec ?a ?b] => destruct (Rle_dec a b) end);
      unfold m in *; split; lra. }
  destruct H as [E H1]. rewrite <- E.
  apply (projection_unique 2 x y (fun a => Rmax 0 (x a - lambda))); [exact Hy| |lia].
  apply projection_threshold with lambda; [reflexivity|exact H1].
Qed.
