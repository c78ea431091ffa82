(** * MCE pays for every change of the greedy action

    [mce_remembers]: if the greedy action has changed N times in [n] steps of MCE and was never the
    last action, the last action regains the uniform probability only after at least
    N / (2 (K - 1)) further steps. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums Monotonicity.
Open Scope R_scope.

(** The exponential lies above its tangent. *)
Lemma exp_tangent : forall x, 1 + x <= exp x.
Proof.
  intros x. destruct (Req_dec x 0) as [->|H]; [rewrite exp_0; lra|left; apply exp_ineq1, H].
Qed.

(** ** MCE pays for every change of the greedy action *)

(** The number of changes of [g] between the times 0, ..., n - 1. *)
Fixpoint changes (g : nat -> nat) (n : nat) : nat :=
  match n with
  | S (S m as k) => changes g k + (if g m =? g k then 0 else 1)
  | _ => 0
  end%nat.

(** A step of MCE does not decrease the probability of the action that it raises. *)
Lemma mce_raises : forall K w g theta theta', (2 <= K)%nat -> (g < K)%nat -> 0 <= w ->
  (forall a, (a < K)%nat -> theta' a = mce_formula K w g theta a) ->
  softmax K theta g <= softmax K theta' g.
Proof.
  intros K w g theta theta' HK Hg Hw Hstep.
  set (u := w * (1 - softmax K theta g)).
  assert (Hu : 0 <= u).
  { pose proof (softmax_le_1 K theta g Hg). apply Rmult_le_pos; lra. }
  rewrite (softmax_shift K theta theta' (mce_shift K u g)) by
    (try exact Hg; try lia; intros a Ha; rewrite (Hstep a Ha); apply mce_is_shift, HK).
  set (G := sum K _). pose proof (softmax_pos K theta g ltac:(lia)) as Hp.
  assert (HG : 0 < G).
  { assert (H : forall b, 0 < softmax K theta b * exp (mce_shift K u g b)).
    { intros b. apply Rmult_lt_0_compat; [apply softmax_pos; lia|apply exp_pos]. }
    apply (sum_pos K _ g); [intros; left; apply H|exact Hg|apply H]. }
  (* no factor is larger than that of g *)
  assert (L : G <= exp (mce_shift K u g g)).
  { apply mean_le; [apply softmax_distribution; lia|]. intros a Ha. apply exp_le.
    unfold mce_shift at 2. rewrite Nat.eqb_refl. unfold mce_shift.
    pose proof (actions_minus_one K HK) as HK1.
    assert (0 <= u / (INR K - 1)).
    { apply Rmult_le_pos; [exact Hu|]. left. apply Rinv_0_lt_compat, HK1. }
    destruct (a =? g); lra. }
  apply Rmult_le_reg_r with G; [exact HG|]. unfold Rdiv.
  rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. apply Rmult_le_compat_l; lra.
Qed.

(** The probabilities of two actions sum to at most one. *)
Lemma two_of_softmax : forall K theta a b, (a < K)%nat -> (b < K)%nat -> a <> b ->
  softmax K theta a + softmax K theta b <= 1.
Proof.
  intros K theta a b Ha Hb Hne. rewrite <- (softmax_sum K theta) by lia.
  set (f := fun i => softmax K theta i - (if i =? a then softmax K theta a else 0)).
  assert (Hf : forall i, (i < K)%nat -> 0 <= f i).
  { intros i Hi. unfold f. pose proof (softmax_pos K theta i ltac:(lia)).
    destruct (Nat.eqb_spec i a) as [->|_]; lra. }
  pose proof (sum_term K f b Hf Hb) as T. unfold f in T at 1.
  destruct (Nat.eqb_spec b a) as [E|_]; [exfalso; apply Hne; symmetry; exact E|].
  unfold f in T. rewrite sum_minus, sum_single in T by exact Ha. lra.
Qed.

(** If x_t + x_(t+1) >= 1 at every change, twice the sum of the x_t is at least their number. *)
Lemma sum_at_changes : forall (g : nat -> nat) x, (forall t, 0 <= x t) ->
  (forall t, g t <> g (S t) -> 1 <= x t + x (S t)) ->
  forall n, INR (changes g n) <= 2 * sum n x.
Proof.
  intros g x Hx Hchange.
  assert (H : forall k, INR (changes g (S k)) + x 0%nat + x k <= 2 * sum (S k) x).
  { induction k as [|k IH]; [simpl; lra|].
    change (changes g (S (S k)))
      with (changes g (S k) + (if g k =? g (S k) then 0 else 1))%nat.
    rewrite plus_INR. change (sum (S (S k)) x) with (sum (S k) x + x (S k)).
    pose proof (Hx k). pose proof (Hx (S k)).
    destruct (Nat.eqb_spec (g k) (g (S k))) as [_|Hne].
    - change (INR 0) with 0. lra.
    - change (INR 1) with 1. pose proof (Hchange k Hne). lra. }
  intros [|k]; [simpl; lra|]. pose proof (H k). pose proof (Hx 0%nat). pose proof (Hx k). lra.
Qed.

(** *** MCE pays for every change.  From the uniform policy and with a constant weight, MCE moves
    towards the actions g_t, which are not the last action at times below n.  If the last action has
    at least the uniform probability at time n + m, then m is at least the number of changes among
    g_0, ..., g_(n-1) divided by 2 (K - 1). *)
Theorem mce_remembers : forall K w g theta n,
  (2 <= K)%nat -> 0 < w ->
  (forall a, (a < K)%nat -> theta 0%nat a = 0) ->
  (forall t, (g t < K)%nat) ->
  (forall t a, (a < K)%nat -> theta (S t) a = mce_formula K w (g t) (theta t) a) ->
  (forall t, (t < n)%nat -> g t <> (K - 1)%nat) ->
  forall m, / INR K <= softmax K (theta (n + m)%nat) (K - 1) ->
  INR (changes g n) / (2 * (INR K - 1)) <= INR m.
Proof.
  intros K w g theta n HK Hw H0 Hg Hstep Hlast m Hm.
  pose proof (actions_minus_one K HK) as HK1. set (l := (K - 1)%nat) in *.
  assert (Hl : (l < K)%nat) by (unfold l; lia).
  set (x := fun t => 1 - softmax K (theta t) (g t)).
  assert (Hx : forall t, 0 <= x t <= 1).
  { intros t. unfold x. pose proof (softmax_le_1 K (theta t) (g t) (Hg t)).
    pose proof (softmax_pos K (theta t) (g t) ltac:(lia)). lra. }
  (* at a change, the two probabilities belong to two actions of one policy *)
  assert (HN : INR (changes g n) <= 2 * sum n x).
  { apply sum_at_changes; [apply Hx|]. intros t Hne. unfold x.
    pose proof (mce_raises K w (g t) (theta t) (theta (S t)) HK (Hg t) ltac:(lra) (Hstep t)).
    pose proof (two_of_softmax K (theta (S t)) _ _ (Hg t) (Hg (S t)) Hne). lra. }
  (* the parameters sum to zero; the last one pays w x_t / (K - 1) at each of the n steps *)
  assert (Hsum : forall t, sum K (theta t) = 0).
  { induction t as [|t IH].
    - rewrite (sum_ext K _ (fun _ => 0) H0), sum_const. ring.
    - rewrite (sum_ext K _ (fun a => theta t a + mce_shift K (w * x t) (g t) a))
        by (intros a Ha; rewrite (Hstep t a Ha); apply mce_is_shift, HK).
      rewrite sum_plus, IH. unfold mce_shift.
      rewrite (sum_ext K _ (fun a => (if a =? g t then w * x t + w * x t / (INR K - 1) else 0)
        - w * x t / (INR K - 1))) by (intros a _; destruct (a =? g t); ring).
      rewrite sum_minus, sum_single, sum_const by apply Hg. field. lra. }
  assert (Hdown : forall t, (t <= n)%nat -> theta t l = - (w / (INR K - 1) * sum t x)).
  { induction t as [|t IH]; intros Ht; [rewrite H0 by exact Hl; simpl; ring|].
    rewrite Hstep by exact Hl. unfold mce_formula.
    destruct (Nat.eqb_spec l (g t)) as [E|_]; [exfalso; apply (Hlast t); [lia|symmetry; exact E]|].
    rewrite IH by lia. simpl. fold (x t). ring. }
  (* each later step increases it by at most w *)
  assert (Hup : forall j, theta (n + j)%nat l <= theta n l + INR j * w).
  { induction j as [|j IH]; [rewrite Nat.add_0_r; simpl; lra|].
    rewrite Nat.add_succ_r, S_INR, Hstep by exact Hl. unfold mce_formula. fold (x (n + j)%nat).
    pose proof (Hx (n + j)%nat) as Hxj.
    assert (0 <= w / (INR K - 1)).
    { apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat, HK1. }
    destruct (l =? g (n + j)%nat); nra. }
  (* a parameter with the uniform probability is not below the mean, which is zero *)
  assert (Hend : 0 <= theta (n + m)%nat l).
  { set (y := theta (n + m)%nat) in *.
    assert (E : sum K (fun a => exp (y a - y l)) <= INR K).
    { assert (HKpos : 0 < INR K) by lra. pose proof (partition_pos K y ltac:(lia)) as HZ.
      unfold softmax in Hm. set (Z := sum K (fun b => exp (y b))) in *.
      rewrite (sum_ext K _ (fun a => exp (y a) * exp (- y l)))
        by (intros a _; rewrite <- exp_plus; reflexivity).
      rewrite sum_scal_r. fold Z. rewrite exp_Ropp. pose proof (exp_pos (y l)).
      apply Rmult_le_compat_r with (r := INR K * Z * / exp (y l)) in Hm.
      - replace (/ INR K * (INR K * Z * / exp (y l))) with (Z * / exp (y l)) in Hm
          by (field; lra).
        replace (exp (y l) / Z * (INR K * Z * / exp (y l))) with (INR K) in Hm
          by (field; lra). exact Hm.
      - left. repeat apply Rmult_lt_0_compat; try lra. apply Rinv_0_lt_compat. assumption. }
    assert (L : sum K (fun a => 1 + (y a - y l)) <= sum K (fun a => exp (y a - y l))).
    { apply sum_le. intros a _. apply exp_tangent. }
    rewrite sum_plus, sum_minus, !sum_const in L. unfold y in L at 1. rewrite Hsum in L.
    assert (0 <= INR K * y l) by lra. nra. }
  pose proof (Hup m) as Hm'. rewrite (Hdown n) in Hm' by lia.
  assert (H : sum n x / (INR K - 1) <= INR m).
  { apply Rmult_le_reg_l with w; [exact Hw|]. unfold Rdiv in *. lra. }
  apply Rle_trans with (2 := H). unfold Rdiv. rewrite Rinv_mult by lra.
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, HK1|lra].
Qed.
