(** * The definitions of the book: MDPs, values, the five updates and their runs

    This file contains definitions only, and mirrors [pu_lib.mdp], [pu_lib.updates] and
    [pu_lib.chapters.domino.quantities] formula by formula.

    Convention.  A set of [n] actions (or states) is the set of the natural numbers [0], ..., [n-1].
    A function on it is a function on all natural numbers whose values at [n] and above are never
    used.  A policy [pi] is a function of a state and an action: [pi s a] is the paper's pi(a|s). *)

Require Import Reals Arith.
Open Scope R_scope.

(** The sum of [f 0], ..., [f (n - 1)]. *)
Fixpoint sum (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => sum m f + f m
  end.

(** ** Finite Markov decision processes *)

(** [P s a s'] is the probability of entering [s'] after action [a] in state [s].  If a row sums to
    less than one, the difference is the probability that the trajectory ends; the row of a terminal
    state is zero.  [r s a] is the expected reward. *)
Record MDP := {
  n_states : nat;
  n_actions : nat;
  P : nat -> nat -> nat -> R;
  r : nat -> nat -> R;
  gamma : R;
  two_actions : (2 <= n_actions)%nat;
  P_nonneg : forall s a s', (s < n_states)%nat -> (a < n_actions)%nat -> (s' < n_states)%nat ->
    0 <= P s a s';
  P_sum : forall s a, (s < n_states)%nat -> (a < n_actions)%nat -> sum n_states (P s a) <= 1;
  gamma_range : 0 <= gamma < 1
}.

(** q(s,a) = r(s,a) + gamma sum_s' P(s'|s,a) v(s'). *)
Definition q_of (M : MDP) (v : nat -> R) (s a : nat) : R :=
  r M s a + gamma M * sum (n_states M) (fun s' => P M s a s' * v s').

(** [v] is the value function of [pi]: it solves the Bellman equation
    v(s) = sum_a pi(a|s) q(s,a). *)
Definition is_value (M : MDP) (pi : nat -> nat -> R) (v : nat -> R) : Prop :=
  forall s, (s < n_states M)%nat -> v s = sum (n_actions M) (fun a => pi s a * q_of M v s a).

(** [p] is a probability distribution on [n] actions. *)
Definition is_distribution (n : nat) (p : nat -> R) : Prop :=
  (forall a, (a < n)%nat -> 0 <= p a) /\ sum n p = 1.

(** [pi] is a policy. *)
Definition is_policy (M : MDP) (pi : nat -> nat -> R) : Prop :=
  forall s, (s < n_states M)%nat -> is_distribution (n_actions M) (pi s).

(** [g] is a greedy action: any maximiser of [q], including ties. *)
Definition is_greedy (n : nat) (q : nat -> R) (g : nat) : Prop :=
  (g < n)%nat /\ forall a, (a < n)%nat -> q a <= q g.

(** adv(a) = q(a) - sum_b pi(b) q(b). *)
Definition adv (n : nat) (p q : nat -> R) (a : nat) : R := q a - sum n (fun b => p b * q b).

(** ** Parametrizations of the policy of one state *)

(** pi(a) = e^theta_a / sum_b e^theta_b   (paper, eq. 4). *)
Definition softmax (n : nat) (theta : nat -> R) (a : nat) : R :=
  exp (theta a) / sum n (fun b => exp (theta b)).

(** |x|^p for a real exponent, zero at zero. *)
Definition abs_pow (x p : R) : R := if Req_EM_T x 0 then 0 else Rpower (Rabs x) p.

(** -1, 0 or 1. *)
Definition sign (x : R) : R := if Req_EM_T x 0 then 0 else x / Rabs x.

(** pi(a) = |theta_a|^p / sum_b |theta_b|^p   (paper, section 2.1). *)
Definition escort (p : R) (n : nat) (theta : nat -> R) (a : nat) : R :=
  abs_pow (theta a) p / sum n (fun b => abs_pow (theta b) p).

(** The norm (sum_b |theta_b|^p)^(1/p). *)
Definition norm (p : R) (n : nat) (theta : nat -> R) : R :=
  abs_pow (sum n (fun b => abs_pow (theta b) p)) (1 / p).

(** pi(a) = theta_a   (paper, section 2.2). *)
Definition direct (n : nat) (theta : nat -> R) (a : nat) : R := theta a.

(** ** The five updates of one state

    [n] is the number of actions, [w] the weight eta d(s), [q] the values of the state.  Each
    formula gives the new parameter of action [a]. *)

(** PG-SM: theta_a + w pi(a) adv(a)   (paper, eqs. 3 to 5). *)
Definition pg_sm_formula (n : nat) (w : R) (q theta : nat -> R) (a : nat) : R :=
  theta a + w * (softmax n theta a * adv n (softmax n theta) q a).

(** PG-ES: theta_a + w sign(theta_a) (p / ||theta||_p) pi(a)^(1-1/p) adv(a)
    (paper, section 2.1). *)
Definition pg_es_formula (p : R) (n : nat) (w : R) (q theta : nat -> R) (a : nat) : R :=
  theta a + w * (sign (theta a) * (p / norm p n theta) *
    abs_pow (escort p n theta a) (1 - 1 / p) * adv n (escort p n theta) q a).

(** CE: theta_a + w (1_{a=g} - pi(a)) with a greedy action g   (paper, eqs. 10 and 11). *)
Definition ce_formula (n : nat) (w : R) (g : nat) (theta : nat -> R) (a : nat) : R :=
  theta a + w * ((if a =? g then 1 else 0) - softmax n theta a).

(** MCE: theta_g + w (1 - pi(g)) for a greedy action g, and
    theta_a - w / (|A| - 1) (1 - pi(g)) for every other action   (paper, eqs. 12 and 13). *)
Definition mce_formula (n : nat) (w : R) (g : nat) (theta : nat -> R) (a : nat) : R :=
  if a =? g then theta a + w * (1 - softmax n theta g)
  else theta a - w / (INR n - 1) * (1 - softmax n theta g).

(** The squared Euclidean distance. *)
Definition distance2 (n : nat) (x y : nat -> R) : R := sum n (fun a => (x a - y a) ^ 2).

(** [y] is the Euclidean projection of [x] on the simplex: a point of the simplex, and none is
    nearer to [x].  (Projection.v proves that it is unique, and that it is max(0, x_a - lambda)
    with the lambda for which the sum is one.) *)
Definition is_projection (n : nat) (x y : nat -> R) : Prop :=
  is_distribution n y /\ forall z, is_distribution n z -> distance2 n x y <= distance2 n x z.

(** A step [step n w q theta theta'] relates the parameters of a state to those after one update.
    It is a relation because CE and MCE may take any of several greedy actions. *)
Definition Step := nat -> R -> (nat -> R) -> (nat -> R) -> (nat -> R) -> Prop.

Definition pg_sm : Step := fun n w q theta theta' =>
  forall a, (a < n)%nat -> theta' a = pg_sm_formula n w q theta a.

Definition pg_es (p : R) : Step := fun n w q theta theta' =>
  forall a, (a < n)%nat -> theta' a = pg_es_formula p n w q theta a.

(** DI: theta' = Proj_Delta(theta + w q)   (paper, section 2.2). *)
Definition di : Step := fun n w q theta theta' =>
  is_projection n (fun a => theta a + w * q a) theta'.

Definition ce : Step := fun n w q theta theta' =>
  exists g, is_greedy n q g /\ forall a, (a < n)%nat -> theta' a = ce_formula n w g theta a.

Definition mce : Step := fun n w q theta theta' =>
  exists g, is_greedy n q g /\ forall a, (a < n)%nat -> theta' a = mce_formula n w g theta a.

(** ** Runs on a process *)

(** A policy parametrization: [direct], [softmax] or [escort p]. *)
Definition Parametrization := nat -> (nat -> R) -> nat -> R.

(** The policy of the parameters [theta s a] of all states. *)
Definition policy_of (M : MDP) (par : Parametrization) (theta : nat -> nat -> R) :
  nat -> nat -> R := fun s => par (n_actions M) (theta s).

(** A run of exact updates: [theta t s a] are the parameters before update [t], [v t] are the values
    of their policy, and [w t s] are the weights; all states are updated simultaneously. *)
Definition is_run (M : MDP) (par : Parametrization) (step : Step)
    (w : nat -> nat -> R) (theta : nat -> nat -> nat -> R) (v : nat -> nat -> R) : Prop :=
  forall t, is_value M (policy_of M par (theta t)) (v t) /\
    forall s, (s < n_states M)%nat ->
      step (n_actions M) (w t s) (q_of M (v t) s) (theta t s) (theta (S t) s).

(** ** Two actions: unlearning and the domino setting

    The paper's a_1 is action [0], its a_2 is action [1]. *)

(** The values q = (1, 0), under which a_1 is better, and q = (0, 1). *)
Definition q_first (a : nat) : R := if a =? 0 then 1 else 0.
Definition q_second (a : nat) : R := if a =? 0 then 0 else 1.

(** Unlearning: [n] forward steps with q = (1, 0), then backward steps with q = (0, 1), by one
    update in one state.  [w t] is the weight of the step from [theta t] to [theta (S t)]. *)
Definition is_unlearning (step : Step) (w : nat -> R) (n : nat)
    (theta : nat -> nat -> R) : Prop :=
  forall t, step 2%nat (w t) (if t <? n then q_first else q_second) (theta t) (theta (S t)).

(** [m] is the first number with the property [Q]. *)
Definition is_first (Q : nat -> Prop) (m : nat) : Prop :=
  Q m /\ forall k, (k < m)%nat -> ~ Q k.

(** n' = min {m >= 0 : pi_{n+m}(a_1) <= pi_0(a_1)}. *)
Definition is_recovery (par : Parametrization) (n : nat) (theta : nat -> nat -> R) (m : nat) :
  Prop :=
  is_first (fun k => par 2%nat (theta (n + k)%nat) 0%nat <= par 2%nat (theta 0%nat) 0%nat) m.

(** n'_s, the same with <. *)
Definition is_strict_recovery (par : Parametrization) (n : nat) (theta : nat -> nat -> R)
    (m : nat) : Prop :=
  is_first (fun k => par 2%nat (theta (n + k)%nat) 0%nat < par 2%nat (theta 0%nat) 0%nat) m.

(** Domino: state [k] of [h] has flipped at time [t] if pi_t(a_2|s_k) > pi_0(a_2|s_k).  States are
    numbered [0], ..., [h - 1]; the paper's s_1 is state [0]. *)
Definition flipped (par : Parametrization) (theta : nat -> nat -> nat -> R) (t k : nat) : Prop :=
  par 2%nat (theta t k) 1%nat > par 2%nat (theta 0%nat k) 1%nat.

(** A run of the domino setting: the last state always has q = (0, 1); any other state has (0, 1) if
    the next state has flipped, and (1, 0) otherwise.  [w k] is the weight of state [k]. *)
Definition is_domino (par : Parametrization) (step : Step) (h : nat) (w : nat -> R)
    (theta : nat -> nat -> nat -> R) : Prop :=
  forall t k, (k < h)%nat ->
    ((k = h - 1)%nat \/ flipped par theta t (S k) ->
      step 2%nat (w k) q_second (theta t k) (theta (S t) k)) /\
    ((k <> h - 1)%nat -> ~ flipped par theta t (S k) ->
      step 2%nat (w k) q_first (theta t k) (theta (S t) k)).

(** n_k, the time at which state [k] flips; the setting is solved at n_1, the time of state [0]. *)
Definition is_flip_time (par : Parametrization) (theta : nat -> nat -> nat -> R) (k m : nat) :
  Prop := is_first (fun t => flipped par theta t k) m.
