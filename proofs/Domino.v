(** * The domino setting: PG-SM takes 2^|S| - 1 steps (Theorem 6(i) of the paper)

    The states [0], ..., [h - 1] have two actions each.  The last state always has q = (0, 1); any
    other state has q = (1, 0) until the next one has flipped.  Each state has to unlearn the steps
    that it took while waiting, which takes longer than the waiting by Theorem 4(i), so that the
    time doubles at each state.  The theorem is [theorem_6_i_pg_sm]. *)

Require Import Reals Lra Lia Psatz.
From PolicyUpdates Require Import Definitions Sums Unlearning DominoRuns.
Open Scope R_scope.

(** A state has flipped if the probability of its first action is below its start. *)
Lemma flipped_first : forall theta t k, flipped softmax theta t k <->
  softmax 2 (theta t k) 0%nat < softmax 2 (theta 0%nat k) 0%nat.
Proof. intros theta t k. unfold flipped. rewrite !softmax_two_second. split; lra. Qed.

(** A state that unlearns [n] steps flips at the strict recovery: it does not flip in forward steps,
    and pi(a_1) decreases in every backward step. *)
Lemma unlearning_flips : forall theta k n m w, 0 < w ->
  is_unlearning pg_sm (fun _ => w) n (fun t => theta t k) ->
  is_strict_recovery softmax n (fun t => theta t k) m -> flips_for_good softmax theta k (n + m).
Proof.
  intros theta k n m w Hw Hrun [Hm Hfirst].
  assert (Hfall : forall j, delta (theta (n + m + j)%nat k) <= delta (theta (n + m)%nat k)).
  { induction j as [|j IH]; [rewrite Nat.add_0_r; lra|].
    pose proof (backward_falls (fun _ => w) n _ (m + j) (fun _ => Hw) Hrun) as H. simpl in H.
    rewrite Nat.add_succ_r, !Nat.add_assoc in H. rewrite Nat.add_succ_r. lra. }
  split; [split|].
  - apply flipped_first, Hm.
  - intros t Ht Hflip. apply flipped_first in Hflip. destruct (le_lt_dec n t) as [Hnt|Hnt].
    + apply (Hfirst (t - n)%nat); [lia|]. replace (n + (t - n))%nat with t by lia. exact Hflip.
    + pose proof (unlearning_travel _ n _ Hrun) as Htravel.
      pose proof (travel_above _ n _ (fun _ => Hw) Htravel t ltac:(lia)) as H.
      apply softmax_two_lt in Hflip. lra.
  - intros t Ht. apply flipped_first, softmax_two_lt. apply softmax_two_lt in Hm.
    specialize (Hfall (t - (n + m))%nat).
    replace (n + m + (t - (n + m)))%nat with t in Hfall by lia. lra.
Qed.

(** The last state flips at the first step. *)
Lemma last_flips : forall h w theta, (1 <= h)%nat -> 0 < w (h - 1)%nat ->
  is_domino softmax pg_sm h w theta -> flips_for_good softmax theta (h - 1) 1.
Proof.
  intros h w theta Hh Hw Hrun. pose proof (last_is_unlearning _ _ h w theta Hh Hrun) as Hback.
  apply (unlearning_flips theta (h - 1) 0 1 (w (h - 1)%nat) Hw Hback). split.
  - apply softmax_two_lt, (backward_falls _ 0 _ 0 (fun _ => Hw) Hback).
  - intros k Hk. replace k with 0%nat by lia. simpl. lra.
Qed.

(** *** The recursion: flipped states stay flipped, the last state flips at time 1, and
    n_k = n_{k+1} + n'_s(n_{k+1}), where the strict recovery uses the weight w_k. *)
Theorem domino_recursion : forall h w theta, (1 <= h)%nat ->
  (forall k, (k < h)%nat -> 0 < w k) ->
  (forall k, (k < h - 1)%nat -> 1 / 2 <= softmax 2 (theta 0%nat k) 0%nat) ->
  is_domino softmax pg_sm h w theta ->
  is_flip_time softmax theta (h - 1) 1 /\
  forall k, (k < h - 1)%nat -> exists n m,
    is_flip_time softmax theta (S k) n /\
    is_unlearning pg_sm (fun _ => w k) n (fun t => theta t k) /\
    is_strict_recovery softmax n (fun t => theta t k) m /\
    is_flip_time softmax theta k (n + m) /\
    forall t, (n + m <= t)%nat -> flipped softmax theta t k.
Proof.
  intros h w theta Hh Hw Hhalf Hrun.
  pose proof (last_flips h w theta Hh (Hw (h - 1)%nat ltac:(lia)) Hrun) as Hlast.
  split; [apply Hlast|].
  (* if the successor of a state stays flipped, so does the state *)
  assert (Hstep : forall k n, (k < h - 1)%nat -> flips_for_good softmax theta (S k) n ->
            exists m, is_unlearning pg_sm (fun _ => w k) n (fun t => theta t k) /\
              is_strict_recovery softmax n (fun t => theta t k) m /\
              flips_for_good softmax theta k (n + m)).
  { intros k n Hk Hn. pose proof (Hw k ltac:(lia)) as Hwk.
    pose proof (waiting_is_unlearning _ _ h w theta k n Hk Hrun Hn) as Hun.
    destruct (strict_recovery_exists (w k) n _ Hwk Hun (Hhalf k Hk)) as [m Hm].
    exists m. split; [exact Hun|]. split; [exact Hm|].
    apply (unlearning_flips theta k n m (w k)); auto. }
  (* from the last state back to the first *)
  assert (Hall : forall j, (j < h)%nat -> exists n, flips_for_good softmax theta (h - 1 - j) n).
  { induction j as [|j IH]; intros Hj; [exists 1%nat; rewrite Nat.sub_0_r; exact Hlast|].
    destruct (IH ltac:(lia)) as [n Hn]. replace (h - 1 - j)%nat with (S (h - 1 - S j)) in Hn by lia.
    destruct (Hstep (h - 1 - S j)%nat n ltac:(lia) Hn) as [m [_ [_ Hm]]].
    exists (n + m)%nat. exact Hm. }
  intros k Hk. destruct (Hall (h - 1 - S k)%nat ltac:(lia)) as [n Hn].
  replace (h - 1 - (h - 1 - S k))%nat with (S k) in Hn by lia.
  destruct (Hstep k n Hk Hn) as [m [Hun [Hm [Hflip Hgood]]]].
  exists n, m. exact (conj (proj1 Hn) (conj Hun (conj Hm (conj Hflip Hgood)))).
Qed.

(** *** Theorem 6(i) for PG-SM, as stated in the book: if pi_0(a_1|s) >= 1/2 in all states but the
    last and all weights are positive, the setting is solved at time 2^h - 1 or later. *)
Theorem theorem_6_i_pg_sm : forall h w theta, (1 <= h)%nat ->
  (forall k, (k < h)%nat -> 0 < w k) ->
  (forall k, (k < h - 1)%nat -> 1 / 2 <= softmax 2 (theta 0%nat k) 0%nat) ->
  is_domino softmax pg_sm h w theta ->
  exists n1, is_flip_time softmax theta 0 n1 /\ (2 ^ h - 1 <= n1)%nat.
Proof.
  intros h w theta Hh Hw Hhalf Hrun.
  destruct (domino_recursion h w theta Hh Hw Hhalf Hrun) as [Hlast Hrec].
  (* n_k + 1 >= 2 (n_{k+1} + 1), and n_h + 1 = 2 *)
  assert (H : forall j, (j < h)%nat ->
            exists n, is_flip_time softmax theta (h - 1 - j) n /\ (2 ^ S j <= n + 1)%nat).
  { induction j as [|j IH]; intros Hj.
    - exists 1%nat. rewrite Nat.sub_0_r. split; [exact Hlast|simpl; lia].
    - destruct (IH ltac:(lia)) as [n [Hn Hpow]].
      destruct (Hrec (h - 1 - S j)%nat ltac:(lia)) as [n' [m [Hn' [Hun [Hm [Hflip _]]]]]].
      replace (S (h - 1 - S j)) with (h - 1 - j)%nat in Hn' by lia.
      rewrite (first_unique _ _ _ Hn' Hn) in *.
      set (k := (h - 1 - S j)%nat) in *.
      pose proof (strict_recovery_pg_sm (w k) n (fun t => theta t k) m
        (Hw k ltac:(lia)) Hun (Hhalf k ltac:(lia)) Hm).
      exists (n + m)%nat. split; [exact Hflip|]. rewrite Nat.pow_succ_r'. lia. }
  destruct (H (h - 1)%nat ltac:(lia)) as [n [Hn Hpow]].
  replace (h - 1 - (h - 1))%nat with 0%nat in Hn by lia.
  replace (S (h - 1)) with h in Hpow by lia.
  exists n. split; [exact Hn|lia].
Qed.

(** Such a run exists from any start and with any weights. *)
Theorem pg_sm_domino_exists : forall h w start,
  exists theta, theta 0%nat = start /\ is_domino softmax pg_sm h w theta.
Proof.
  apply domino_exists. intros w q theta. exists (pg_sm_formula 2 w q theta).
  intros a _. reflexivity.
Qed.
