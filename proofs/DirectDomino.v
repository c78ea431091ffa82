(** * The domino setting: DI needs more steps than Theorem 6(ii) of the paper says

    The paper states that DI solves the domino setting in at most 1 + (|S| - 1) / eta steps.  A flip
    is a *strict* recovery, which takes one step more than a recovery if eta divides 1; the proof
    omits this step.  With eta = d = 1, DI takes 2 |S| - 1 steps for every number of states, but the
    printed bound is |S| ([theorem_6_ii_is_false]).  The correct bound is
    1 + (|S| - 1) (floor (1 / (eta d)) + 1) steps ([theorem_6_ii]).

    The proof uses that DI moves pi(a_1) by w/2 per step within [0, 1].  From pi_0(a_1) = x, a state
    increases pi(a_1) for at most L = 2 (1 - x) / w steps, however long it waits.  After n steps of
    waiting, it therefore has to reverse E = min (n, L) steps, and needs strictly more to flip:
    floor E + 1. *)

Require Import Reals Arith Lra Lia.
From PolicyUpdates Require Import Definitions Projection DominoRuns.
Open Scope R_scope.

(** ** One step of DI with two actions *)

(** A step with q = (1, 0) raises pi(a_1) by w/2, at most to 1; a step with q = (0, 1) lowers it by
    w/2, at least to 0. *)
Lemma di_step : forall w theta theta', 0 < w -> is_distribution 2%nat theta ->
  (di 2%nat w q_first theta theta' -> theta' 0%nat = Rmin 1 (theta 0%nat + w / 2)) /\
  (di 2%nat w q_second theta theta' -> theta' 0%nat = Rmax 0 (theta 0%nat - w / 2)).
Proof.
  intros w theta theta' Hw [Hpos H1]. cbn [sum] in H1.
  pose proof (Hpos 0%nat ltac:(lia)) as P0. pose proof (Hpos 1%nat ltac:(lia)) as P1.
  split; intros H; destruct (projection_two _ _ H) as [E _]; rewrite E;
    unfold q_first, q_second; cbn [Nat.eqb].
  - replace ((1 + (theta 0%nat + w * 1) - (theta 1%nat + w * 0)) / 2)
      with (theta 0%nat + w / 2) by lra.
    apply Rmax_right. apply Rmin_glb; lra.
  - replace ((1 + (theta 0%nat + w * 0) - (theta 1%nat + w * 1)) / 2)
      with (theta 0%nat - w / 2) by lra.
    rewrite Rmin_right by lra. reflexivity.
Qed.

(** ** Unlearning with DI (Theorem 4(ii) of the paper, with the strict count) *)

(** The largest natural number not above [x], for [x] >= 0. *)
Definition floor (x : R) : nat := Z.to_nat (Int_part x).

Lemma floor_spec : forall x, 0 <= x -> INR (floor x) <= x < INR (floor x) + 1.
Proof.
  intros x Hx. destruct (base_Int_part x) as [low high]. unfold floor.
  assert (H : (0 <= Int_part x)%Z).
  { apply Z.lt_succ_r. apply lt_IZR. rewrite succ_IZR. lra. }
  rewrite INR_IZR_INZ, Z2Nat.id by exact H. lra.
Qed.

(** The number of steps in which pi(a_1) can increase from pi_0(a_1) = [x]. *)
Definition room (w x : R) : R := 2 * (1 - x) / w.

(** After this number of steps, pi(a_1) is 1. *)
Lemma room_times : forall w x, 0 < w -> w / 2 * room w x = 1 - x.
Proof. intros w x Hw. unfold room. field. lra. Qed.

(** The parameters of DI are a policy at all times. *)
Lemma unlearning_distribution : forall w n theta, is_distribution 2%nat (theta 0%nat) ->
  is_unlearning di (fun _ => w) n theta -> forall t, is_distribution 2%nat (theta t).
Proof. intros w n theta H0 Hrun [|t]; [exact H0 | apply (Hrun t)]. Qed.

(** Forward: after t steps, x + (w/2) min (t, L). *)
Lemma forward : forall w n theta, 0 < w -> is_distribution 2%nat (theta 0%nat) ->
  is_unlearning di (fun _ => w) n theta -> forall t, (t <= n)%nat ->
  theta t 0%nat = theta 0%nat 0%nat + w / 2 * Rmin (INR t) (room w (theta 0%nat 0%nat)).
Proof.
  intros w n theta Hw H0 Hrun. set (x := theta 0%nat 0%nat).
  pose proof (room_times w x Hw) as HL. set (L := room w x) in *.
  assert (Hx : x <= 1).
  { destruct H0 as [Hpos H1]. cbn [sum] in H1. pose proof (Hpos 1%nat ltac:(lia)). unfold x. lra. }
  induction t as [|t IH]; intros Ht.
  - simpl INR. rewrite Rmin_left by nra. unfold x. lra.
  - pose proof (Hrun t) as step. rewrite (proj2 (Nat.ltb_lt t n)) in step by lia.
    rewrite (proj1 (di_step w _ _ Hw (unlearning_distribution w n theta H0 Hrun t)) step).
    rewrite IH by lia. rewrite S_INR. unfold Rmin.
    destruct (Rle_dec (INR t) L), (Rle_dec (INR t + 1) L), (Rle_dec 1 _); nra.
Qed.

(** Backward: after m further steps, max (0, x + (w/2) (E - m)) with E = min (n, L). *)
Lemma backward : forall w n theta, 0 < w -> is_distribution 2%nat (theta 0%nat) ->
  is_unlearning di (fun _ => w) n theta -> forall m,
  theta (n + m)%nat 0%nat = Rmax 0 (theta 0%nat 0%nat
    + w / 2 * (Rmin (INR n) (room w (theta 0%nat 0%nat)) - INR m)).
Proof.
  intros w n theta Hw H0 Hrun.
  assert (dist : forall t, is_distribution 2%nat (theta t)) by
    (intros t; exact (unlearning_distribution w n theta H0 Hrun t)).
  induction m as [|m IH].
  - rewrite Nat.add_0_r, (forward w n theta Hw H0 Hrun n (le_n n)). simpl INR.
    rewrite Rminus_0_r. symmetry. apply Rmax_right.
    rewrite <- (forward w n theta Hw H0 Hrun n (le_n n)). apply (dist n). lia.
  - rewrite Nat.add_succ_r. pose proof (Hrun (n + m)%nat) as step.
    rewrite (proj2 (Nat.ltb_ge (n + m) n)) in step by lia.
    rewrite (proj2 (di_step w _ _ Hw (dist (n + m)%nat)) step), IH, S_INR.
    (* cases: above zero or not, before and after the step *)
    unfold Rmax. set (E := Rmin _ _).
    destruct (Rle_dec 0 (theta 0%nat 0%nat + w / 2 * (E - INR m))),
      (Rle_dec 0 (theta 0%nat 0%nat + w / 2 * (E - (INR m + 1)))), (Rle_dec 0 _); nra.
Qed.

(** The first m with m > min (n, L) is m = min (n, floor L) + 1. *)
Lemma above_min : forall n m L, 0 <= L ->
  (Rmin (INR n) L < INR m <-> (Nat.min n (floor L) + 1 <= m)%nat).
Proof.
  intros n m L HL. destruct (floor_spec L HL) as [low high]. split; intros H.
  - unfold Rmin in H. destruct (Rle_dec (INR n) L) as [A|A].
    + apply INR_lt in H. lia.
    + assert (INR (floor L) < INR m) as B by lra. apply INR_lt in B. lia.
  - assert (n < m \/ floor L < m)%nat as [A|A] by lia.
    + apply lt_INR in A. pose proof (Rmin_l (INR n) L). lra.
    + apply le_INR in A. rewrite S_INR in A. pose proof (Rmin_r (INR n) L). lra.
Qed.

(** Backward, pi(a_1) is below its start after m steps if and only if m is at least
    min (n, floor L) + 1; forward, it never is.  (The start must not be 0.) *)
Lemma below_start : forall w n theta, 0 < w -> is_distribution 2%nat (theta 0%nat) ->
  0 < theta 0%nat 0%nat -> is_unlearning di (fun _ => w) n theta ->
  (forall t, (t <= n)%nat -> theta 0%nat 0%nat <= theta t 0%nat) /\
  forall m, theta (n + m)%nat 0%nat < theta 0%nat 0%nat <->
    (Nat.min n (floor (room w (theta 0%nat 0%nat))) + 1 <= m)%nat.
Proof.
  intros w n theta Hw H0 Hx Hrun. set (x := theta 0%nat 0%nat) in *.
  assert (HL : 0 <= room w x).
  { destruct H0 as [Hpos H1]. cbn [sum] in H1. pose proof (Hpos 1%nat ltac:(lia)).
    pose proof (room_times w x Hw). unfold x in *. nra. }
  split.
  - intros t Ht. rewrite (forward w n theta Hw H0 Hrun t Ht). fold x.
    assert (0 <= Rmin (INR t) (room w x)) by (apply Rmin_glb; [apply pos_INR | exact HL]). nra.
  - intros m. rewrite <- (above_min n m (room w x) HL), (backward w n theta Hw H0 Hrun m). fold x.
    set (E := Rmin _ _). unfold Rmax. destruct (Rle_dec 0 _); split; intros; nra.
Qed.

(** Theorem 4(ii) with the strict count: n'_s = min (n, floor L) + 1. *)
Theorem strict_recovery_direct : forall w n theta, 0 < w -> is_distribution 2%nat (theta 0%nat) ->
  0 < theta 0%nat 0%nat -> is_unlearning di (fun _ => w) n theta ->
  is_strict_recovery direct n theta (Nat.min n (floor (room w (theta 0%nat 0%nat))) + 1).
Proof.
  intros w n theta Hw H0 Hx Hrun. destruct (below_start w n theta Hw H0 Hx Hrun) as [_ back].
  unfold is_strict_recovery, direct. split.
  - apply back. lia.
  - intros k Hk H. apply back in H. lia.
Qed.

(** ** The domino setting *)

(** All parameters start with a policy, with pi_0(a_1|s_k) > 0. *)
Definition good_start (h : nat) (theta : nat -> nat -> nat -> R) : Prop :=
  forall k, (k < h)%nat -> is_distribution 2%nat (theta 0%nat k) /\ 0 < theta 0%nat k 0%nat.

(** The uniform start. *)
Definition uniform_start (h : nat) (theta : nat -> nat -> nat -> R) : Prop :=
  forall k a, (k < h)%nat -> (a < 2)%nat -> theta 0%nat k a = 1 / 2.

(** A state that unlearns [n] steps flips at the strict recovery. *)
Lemma unlearning_flips : forall w n theta k, 0 < w -> is_distribution 2%nat (theta 0%nat k) ->
  0 < theta 0%nat k 0%nat -> is_unlearning di (fun _ => w) n (fun t => theta t k) ->
  flips_for_good direct theta k (n + (Nat.min n (floor (room w (theta 0%nat k 0%nat))) + 1)).
Proof.
  intros w n theta k Hw H0 Hx Hrun.
  pose proof (unlearning_distribution w n (fun t => theta t k) H0 Hrun) as dist.
  destruct (below_start w n (fun t => theta t k) Hw H0 Hx Hrun) as [forth back].
  (* a state has flipped if pi(a_1) is below its start *)
  assert (F : forall t, flipped direct theta t k <-> theta t k 0%nat < theta 0%nat k 0%nat).
  { intros t. unfold flipped, direct. destruct (dist t) as [_ A], H0 as [_ B].
    cbn [sum] in A, B. split; lra. }
  set (m := (Nat.min n (floor (room w (theta 0%nat k 0%nat))) + 1)%nat) in *.
  split; [split|].
  - apply F, back, le_n.
  - intros t Ht H. apply F in H. destruct (le_lt_dec t n) as [A|A]; [pose proof (forth t A); lra|].
    replace t with (n + (t - n))%nat in H by lia. apply back in H. lia.
  - intros t Ht. apply F. replace t with (n + (t - n))%nat by lia. apply back. lia.
Qed.

(** The last state flips at the first step. *)
Lemma last_flips : forall h w theta, (1 <= h)%nat -> 0 < w (h - 1)%nat -> good_start h theta ->
  is_domino direct di h w theta -> flips_for_good direct theta (h - 1) 1.
Proof.
  intros h w theta Hh Hw H0 Hrun. destruct (H0 (h - 1)%nat ltac:(lia)) as [D X].
  apply (unlearning_flips (w (h - 1)%nat) 0 theta (h - 1) Hw D X).
  exact (last_is_unlearning _ _ h w theta Hh Hrun).
Qed.

(** The exact recursion: n_h = 1 and n_k = n_{k+1} + min (n_{k+1}, floor L_k) + 1, for all
    weights w_k > 0 and all starts with pi_0(a_1|s_k) > 0. *)
Theorem direct_recursion : forall h w theta, (1 <= h)%nat ->
  (forall k, (k < h)%nat -> 0 < w k) -> good_start h theta -> is_domino direct di h w theta ->
  flips_for_good direct theta (h - 1) 1 /\
  forall k n, (k < h - 1)%nat -> flips_for_good direct theta (S k) n ->
    flips_for_good direct theta k (n + (Nat.min n (floor (room (w k) (theta 0%nat k 0%nat))) + 1)).
Proof.
  intros h w theta Hh Hw H0 Hrun. split; [apply (last_flips h w theta); auto; apply Hw; lia|].
  intros k n Hk Hn. destruct (H0 k ltac:(lia)) as [D X].
  apply unlearning_flips; [apply Hw; lia | exact D | exact X |].
  exact (waiting_is_unlearning _ _ h w theta k n Hk Hrun Hn).
Qed.

(** The uniform start satisfies these conditions. *)
Lemma uniform_is_good : forall h theta, uniform_start h theta -> good_start h theta.
Proof.
  intros h theta H k Hk. repeat split.
  - intros a Ha. rewrite H by assumption. lra.
  - cbn [sum]. rewrite !H by lia. lra.
  - rewrite H by lia. lra.
Qed.

(** From the uniform start and with equal weights eta d, L = 1 / (eta d) for every state.  The flip
    times from the last state back to the first are n_h = 1 and
    n_k = n_{k+1} + min (n_{k+1}, floor (1 / (eta d))) + 1. *)
Fixpoint flip_times (wall : nat) (j : nat) : nat :=
  match j with
  | O => 1%nat
  | S i => (flip_times wall i + (Nat.min (flip_times wall i) wall + 1))%nat
  end.

(** These are the flip times of every run. *)
Theorem flip_times_direct : forall h eta d theta, (1 <= h)%nat -> 0 < eta -> 0 < d ->
  uniform_start h theta -> is_domino direct di h (fun _ => eta * d) theta ->
  forall j, (j < h)%nat ->
    is_flip_time direct theta (h - 1 - j) (flip_times (floor (1 / (eta * d))) j).
Proof.
  intros h eta d theta Hh He Hd Hu Hrun.
  assert (Hw : 0 < eta * d) by (apply Rmult_lt_0_compat; lra).
  destruct (direct_recursion h _ theta Hh (fun _ _ => Hw) (uniform_is_good h theta Hu) Hrun)
    as [Hlast Hrec].
  assert (H : forall j, (j < h)%nat ->
            flips_for_good direct theta (h - 1 - j) (flip_times (floor (1 / (eta * d))) j)).
  { induction j as [|j IH]; intros Hj; [rewrite Nat.sub_0_r; exact Hlast|].
    specialize (IH ltac:(lia)). replace (h - 1 - j)%nat with (S (h - 1 - S j)) in IH by lia.
    specialize (Hrec (h - 1 - S j)%nat _ ltac:(lia) IH). rewrite Hu in Hrec by lia.
    replace (room (eta * d) (1 / 2)) with (1 / (eta * d)) in Hrec by (unfold room; field; lra).
    exact Hrec. }
  intros j Hj. apply (H j Hj).
Qed.

(** ** Theorem 6(ii), corrected: DI solves the setting in at most
    1 + (|S| - 1) (floor (1 / (eta d)) + 1) steps, for every number of states. *)
Theorem theorem_6_ii : forall h eta d theta, (1 <= h)%nat -> 0 < eta -> 0 < d ->
  uniform_start h theta -> is_domino direct di h (fun _ => eta * d) theta ->
  exists n1, is_flip_time direct theta 0 n1 /\
    (n1 <= 1 + (h - 1) * (floor (1 / (eta * d)) + 1))%nat.
Proof.
  intros h eta d theta Hh He Hd Hu Hrun.
  pose proof (flip_times_direct h eta d theta Hh He Hd Hu Hrun (h - 1)%nat ltac:(lia)) as H.
  rewrite Nat.sub_diag in H. exists (flip_times (floor (1 / (eta * d))) (h - 1)).
  split; [exact H|]. generalize (floor (1 / (eta * d))) as wall. generalize (h - 1)%nat as j.
  clear. intros j wall. induction j as [|j IH]; cbn [flip_times]; lia.
Qed.

(** Every domino setting has a run of DI. *)
Theorem di_domino_exists : forall h w start,
  exists theta, theta 0%nat = start /\ is_domino direct di h w theta.
Proof.
  apply domino_exists. intros w q theta. apply (projection_exists 2). lia.
Qed.

(** ** Theorem 6(ii) as printed is false *)

(** With eta = d = 1, DI needs 2 |S| - 1 steps, because pi(a_1) reaches 0 or 1 after one step. *)
Lemma direct_at_one : forall h theta, (1 <= h)%nat -> uniform_start h theta ->
  is_domino direct di h (fun _ => 1) theta -> is_flip_time direct theta 0 (2 * h - 1).
Proof.
  intros h theta Hh Hu Hrun.
  replace (fun _ : nat => 1) with (fun _ : nat => 1 * 1) in Hrun
    by (rewrite Rmult_1_l; reflexivity).
  pose proof (flip_times_direct h 1 1 theta Hh Rlt_0_1 Rlt_0_1 Hu Hrun (h - 1)%nat ltac:(lia)) as H.
  rewrite Nat.sub_diag in H.
  assert (one : floor (1 / (1 * 1)) = 1%nat).
  { destruct (floor_spec (1 / (1 * 1)) ltac:(lra)) as [low high].
    replace (1 / (1 * 1)) with (INR 1) in * by (simpl; field).
    rewrite <- S_INR in high. apply INR_lt in high. apply INR_le in low. lia. }
  assert (E : forall j, flip_times 1 j = (2 * j + 1)%nat).
  { induction j as [|j IH]; [reflexivity|]. cbn [flip_times]. rewrite IH. lia. }
  rewrite one, E in H. replace (2 * h - 1)%nat with (2 * (h - 1) + 1)%nat by lia. exact H.
Qed.

(** For every number of states h >= 2 there is a run of DI with eta = d = 1 from the uniform start
    that is not solved within 1 + (h - 1) / eta steps: it is solved at exactly 2 h - 1. *)
Theorem theorem_6_ii_is_false : forall h, (2 <= h)%nat ->
  exists theta, uniform_start h theta /\ is_domino direct di h (fun _ => 1) theta /\
    is_flip_time direct theta 0 (2 * h - 1) /\
    INR (2 * h - 1) > 1 + (INR h - 1) / 1.
Proof.
  intros h Hh.
  destruct (di_domino_exists h (fun _ => 1) (fun _ _ => 1 / 2)) as [theta [H0 Hrun]]. exists theta.
  assert (Hu : uniform_start h theta) by (intros k a _ _; rewrite H0; reflexivity).
  split; [exact Hu|]. split; [exact Hrun|].
  split; [apply direct_at_one; [lia | exact Hu | exact Hrun]|].
  rewrite minus_INR, mult_INR by lia. apply le_INR in Hh. simpl in *. lra.
Qed.

(** In particular, the printed statement is false (with d = 1). *)
Corollary printed_bound_is_false :
  ~ forall h eta theta n1, (1 <= h)%nat -> 0 < eta -> uniform_start h theta ->
      is_domino direct di h (fun _ => eta) theta -> is_flip_time direct theta 0 n1 ->
      INR n1 <= 1 + (INR h - 1) / eta.
Proof.
  intros printed. destruct (theorem_6_ii_is_false 2 (le_n 2)) as [theta [Hu [Hrun [H1 gap]]]].
  pose proof (printed 2%nat 1 theta _ ltac:(lia) Rlt_0_1 Hu Hrun H1). lra.
Qed.
