(** * The formulas of Definitions.v give what pu_lib computes

    Written by tools/agreement.py from the output of [pu_lib.updates] and [pu_lib.mdp]; not to be
    edited.  The inputs are rational.  Values that are not are compared to 1e-9 in interval
    arithmetic; the projections and the solution of the Bellman equation are exact. *)

Require Import Reals Lra Lia List.
From Interval Require Import Tactic.
From PolicyUpdates Require Import Definitions Sums Projection CrossEntropyInterval.
Import ListNotations.
Open Scope R_scope.

(** A function on actions or states, given by its list of values. *)
Definition row (l : list R) (a : nat) : R := nth a l 0.

(** The first values of [f] are those of the list, up to 1e-9. *)
Definition agrees (f : nat -> R) (l : list R) : Prop :=
  forall a, (a < length l)%nat -> Rabs (f a - row l a) <= 1 / 10 ^ 9.

(** One goal for each action. *)
Ltac each_action :=
  let a := fresh "a" in let H := fresh "H" in
  intros a H; cbn [length] in H; do 4 (try (destruct a as [|a]));
  try (exfalso; lia); clear H.

Ltac compute_formula :=
  unfold pg_sm_formula, ce_formula, mce_formula, pg_es_formula, adv, softmax;
  cbn [sum row nth Nat.eqb INR].

(** For [interval], powers of numbers that are not zero are written with exp and ln. *)
Lemma abs_pow_of_pos : forall x p, 0 < x -> abs_pow x p = exp (p * ln x).
Proof.
  intros x p H. unfold abs_pow, Rpower. destruct (Req_EM_T x 0); [lra|].
  rewrite Rabs_pos_eq by lra. reflexivity.
Qed.

(** The same for a negative one. *)
Lemma abs_pow_of_neg : forall x p, x < 0 -> abs_pow x p = exp (p * ln (- x)).
Proof.
  intros x p H. unfold abs_pow, Rpower. destruct (Req_EM_T x 0); [lra|].
  rewrite Rabs_left by lra. reflexivity.
Qed.

(** The sign of a positive number, *)
Lemma sign_of_pos : forall x, 0 < x -> sign x = 1.
Proof.
  intros x H. unfold sign. destruct (Req_EM_T x 0); [lra|].
  rewrite Rabs_pos_eq by lra. field. lra.
Qed.

(** and of a negative one. *)
Lemma sign_of_neg : forall x, x < 0 -> sign x = -1.
Proof.
  intros x H. unfold sign. destruct (Req_EM_T x 0); [lra|]. rewrite Rabs_left by lra. field. lra.
Qed.

(** Interval arithmetic with 60 bits. *)
Ltac bounded := interval with (i_prec 60).

Ltac compute_powers :=
  unfold norm, escort; cbn [sum row nth];
  repeat match goal with
  | |- context [abs_pow ?x ?p] => rewrite (abs_pow_of_pos x p) by bounded
  | |- context [abs_pow ?x ?p] => rewrite (abs_pow_of_neg x p) by bounded
  | |- context [sign ?x] => rewrite (sign_of_pos x) by bounded
  | |- context [sign ?x] => rewrite (sign_of_neg x) by bounded
  end.

(** Write the formula out, and compare each action. *)
Ltac compare := each_action; compute_formula; compute_powers; bounded.

(** No action has a greater value. *)
Ltac greedy := split; [lia|each_action; cbn [row nth]; lra].

(** ** PG-SM *)

Lemma pg_sm_1 : agrees
  (pg_sm_formula 3 (3/2) (row [1; 0; 1/3])
    (row [1/2; -1; 2]))
  [0.647991700; -1.025647448; 1.877655749].
Proof. compare. Qed.

Lemma pg_sm_2 : agrees
  (pg_sm_formula 2 (1/5) (row [0; 1])
    (row [-3/4; 1/4]))
  [-0.789322387; 0.289322387].
Proof. compare. Qed.

Lemma pg_sm_3 : agrees
  (pg_sm_formula 4 7 (row [2; -1; 2; 0])
    (row [0; 1/3; -2; 5/4]))
  [2.156133852; -1.524911363; -1.708199014; 0.660309858].
Proof. compare. Qed.

(** ** PG-ES *)

Lemma pg_es_1 : agrees
  (pg_es_formula 2 2 (1/4) (row [0; 1])
    (row [1; 1/2]))
  [0.920000000; 0.660000000].
Proof. compare. Qed.

Lemma pg_es_2 : agrees
  (pg_es_formula 3 3 (3/4) (row [1; 1/5; -1])
    (row [1/2; -3/2; 2/3]))
  [0.628511005; -1.589769780; 0.368301408].
Proof. compare. Qed.

Lemma pg_es_3 : agrees
  (pg_es_formula (3/2) 2 5 (row [1; 0])
    (row [1; 1]))
  [2.875000000; -0.875000000].
Proof. compare. Qed.

(** ** DI *)

Lemma di_1 : di 3%nat (3/10)
  (row [1; 0; 1/3])
  (row [1/2; 1/4; 1/4])
  (row [2/3; 7/60; 13/60]).
Proof.
  apply projection_threshold with (2/15); [|cbn [sum row nth]; lra].
  each_action; cbn [row nth]; unfold Rmax; destruct (Rle_dec _ _); lra.
Qed.

Lemma di_2 : di 2%nat (1/4)
  (row [0; 1])
  (row [1/3; 2/3])
  (row [5/24; 19/24]).
Proof.
  apply projection_threshold with (1/8); [|cbn [sum row nth]; lra].
  each_action; cbn [row nth]; unfold Rmax; destruct (Rle_dec _ _); lra.
Qed.

Lemma di_3 : di 4%nat (3/2)
  (row [1; 0; 3/4; -1])
  (row [1/4; 1/4; 1/4; 1/4])
  (row [11/16; 0; 5/16; 0]).
Proof.
  apply projection_threshold with (17/16); [|cbn [sum row nth]; lra].
  each_action; cbn [row nth]; unfold Rmax; destruct (Rle_dec _ _); lra.
Qed.

(** ** CE *)

Lemma ce_1 : is_greedy 3 (row [1; 0; 1/3]) 0 /\
  agrees (ce_formula 3 (3/2) 0 (row [1/2; -1; 2]))
    [1.737064412; -1.058668860; 0.821604448].
Proof. split; [greedy|compare]. Qed.

Lemma ce_2 : is_greedy 3 (row [99/100; 1; 0]) 1 /\
  agrees (ce_formula 3 1 1 (row [10; 0; 0]))
    [9.000090792; 0.999954604; -0.000045396].
Proof. split; [greedy|compare]. Qed.

Lemma ce_3 : is_greedy 4 (row [2; -1; 2; 0]) 0 /\
  agrees (ce_formula 4 7 0 (row [0; 1/3; -2; 5/4]))
    [5.837458547; -1.289123963; -2.157332877; -2.807668374].
Proof. split; [greedy|compare]. Qed.

(** ** MCE *)

Lemma mce_1 : is_greedy 3 (row [1; 0; 1/3]) 0 /\
  agrees (mce_formula 3 (3/2) 0 (row [1/2; -1; 2]))
    [1.737064412; -1.618532206; 1.381467794].
Proof. split; [greedy|compare]. Qed.

Lemma mce_2 : is_greedy 2 (row [0; 1]) 1 /\
  agrees (mce_formula 2 (1/5) 1 (row [-3/4; 1/4]))
    [-0.803788284; 0.303788284].
Proof. split; [greedy|compare]. Qed.

Lemma mce_3 : is_greedy 4 (row [2; -1; 2; 0]) 0 /\
  agrees (mce_formula 4 7 0 (row [0; 1/3; -2; 5/4]))
    [5.837458547; -1.612486182; -3.945819516; -0.695819516].
Proof. split; [greedy|compare]. Qed.

(** ** The values of a policy *)

Definition transition (s a s' : nat) : R :=
  nth s' (nth a (nth s [[[1/2; 1/2]; [0; 1]]; [[1/4; 1/2]; [1/3; 2/3]]] []) []) 0.

Definition matrix (m : list (list R)) (s a : nat) : R := nth a (nth s m []) 0.

Definition example : MDP.
Proof.
  refine {|
    n_states := 2; n_actions := 2; P := transition;
    r := matrix [[1; 0]; [-1/2; 2]]; gamma := 1/2
  |}; [lia| | |lra].
  - intros [|[|s]] [|[|a]] [|[|s']] Hs Ha Hs'; try (exfalso; lia); cbn; lra.
  - intros [|[|s]] [|[|a]] Hs Ha; try (exfalso; lia); cbn; lra.
Defined.

(** It solves the Bellman equation. *)
Lemma example_value :
  is_value example (matrix [[1/4; 3/4]; [2/3; 1/3]])
    (row [188/355; 40/71]).
Proof. intros [|[|s]] Hs; cbn in Hs; try (exfalso; lia); unfold q_of; cbn; field. Qed.

(** The values of the actions. *)
Lemma example_q :
  q_of example (row [188/355; 40/71]) 0 0 = (452/355) /\
  q_of example (row [188/355; 40/71]) 0 1 = (20/71) /\
  q_of example (row [188/355; 40/71]) 1 0 = (-104/355) /\
  q_of example (row [188/355; 40/71]) 1 1 = (808/355).
Proof. unfold q_of; repeat split; cbn; field. Qed.
