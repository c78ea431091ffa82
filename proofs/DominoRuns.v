(** * Runs of the domino setting, for any update

    These results are needed for Theorem 6 of the paper with every update: a state that waits for
    the next one to flip is a state that unlearns, and runs of the setting exist. *)

Require Import Reals Lra Lia.
From PolicyUpdates Require Import Definitions.
Open Scope R_scope.

(** A first time is unique. *)
Lemma first_unique : forall Q m m', is_first Q m -> is_first Q m' -> m = m'.
Proof.
  intros Q m m' [Hm Hf] [Hm' Hf']. destruct (Nat.lt_trichotomy m m') as [H|[H|H]].
  - contradiction (Hf' m H Hm).
  - exact H.
  - contradiction (Hf m' H Hm').
Qed.

(** State [k] flips at time [n], and stays flipped. *)
Definition flips_for_good (par : Parametrization) (theta : nat -> nat -> nat -> R) (k n : nat) :
  Prop := is_flip_time par theta k n /\ forall t, (n <= t)%nat -> flipped par theta t k.

(** A state whose successor flips at time [n] and stays flipped takes [n] forward steps, and only
    backward steps afterwards. *)
Lemma waiting_is_unlearning : forall par step h w theta k n, (k < h - 1)%nat ->
  is_domino par step h w theta -> flips_for_good par theta (S k) n ->
  is_unlearning step (fun _ => w k) n (fun t => theta t k).
Proof.
  intros par step h w theta k n Hk Hrun [[_ Hfirst] Hgood] t.
  destruct (Nat.ltb_spec t n) as [Ht|Ht].
  - exact (proj2 (Hrun t k ltac:(lia)) ltac:(lia) (Hfirst t Ht)).
  - exact (proj1 (Hrun t k ltac:(lia)) (or_intror (Hgood t Ht))).
Qed.

(** The last state always has q = (0, 1), so it takes no forward step. *)
Lemma last_is_unlearning : forall par step h w theta, (1 <= h)%nat ->
  is_domino par step h w theta ->
  is_unlearning step (fun _ => w (h - 1)%nat) 0 (fun t => theta t (h - 1)%nat).
Proof.
  intros par step h w theta Hh Hrun t.
  exact (proj1 (Hrun t (h - 1)%nat ltac:(lia)) (or_introl eq_refl)).
Qed.

(** If an update is defined for all parameters, a run exists from any start and with any weights:
    determine which states have flipped, update all states, and repeat. *)
Theorem domino_exists : forall par (step : Step),
  (forall w q theta, { theta' | step 2%nat w q theta theta' }) ->
  forall h w start, exists theta, theta 0%nat = start /\ is_domino par step h w theta.
Proof.
  intros par step Hstep h w start.
  set (sees := fun (theta : nat -> nat -> R) k =>
    if k =? h - 1 then q_second
    else if Rlt_dec (par 2%nat (start (S k)) 1%nat) (par 2%nat (theta (S k)) 1%nat) then q_second
    else q_first).
  set (theta := fix theta (t : nat) : nat -> nat -> R := match t with
    | O => start
    | S t' => fun k => proj1_sig (Hstep (w k) (sees (theta t') k) (theta t' k))
    end).
  exists theta. split; [reflexivity|]. intros t k Hk. unfold flipped.
  change (theta 0%nat) with start.
  (* every state is updated with its values, which are those of the setting *)
  assert (Hnext : step 2%nat (w k) (sees (theta t) k) (theta t k) (theta (S t) k))
    by exact (proj2_sig (Hstep (w k) (sees (theta t) k) (theta t k))).
  revert Hnext. unfold sees. destruct (Nat.eqb_spec k (h - 1)) as [E|E].
  - intros Hnext. split; [intros _; exact Hnext|contradiction].
  - destruct (Rlt_dec _ _) as [L|L]; intros Hnext.
    + split; [intros _; exact Hnext|intros _ H; contradiction].
    + split; [intros [H|H]; contradiction|intros _ _; exact Hnext].
Qed.
