(** * What the sign condition costs

    An update cannot forget if it satisfies the sign condition, leaves corners at a minimum pace and
    takes bounded steps.  [sign_condition_remembers]: for every n, there are values of n updates
    after which the last action needs a number of updates proportional to n to regain the uniform
    probability.  [sign_condition_with_gap]: if the best value must lead by a gap, the bound is a
    logarithm of the gap.  [sce_leaves_with_gap]: SCE is such an update. *)

Require Import Reals Lra Lia Psatz List.
From PolicyUpdates Require Import Definitions Sums Monotonicity Masked Range.
Import ListNotations.
Open Scope R_scope.

(** An update of the parameters of one state: the number that it adds to each parameter is a
    function of the values so far, the latest first.  It starts at the uniform policy. *)
Definition Update := list (nat -> R) -> nat -> R.

Fixpoint parameters (x : Update) (values : list (nat -> R)) (a : nat) : R :=
  match values with
  | [] => 0
  | q :: before => parameters x before a + x values a
  end.

(** The policy of K actions. *)
Definition policy_after (K : nat) (x : Update) (values : list (nat -> R)) : nat -> R :=
  softmax K (parameters x values).

(** The three conditions on the steps at values that are [admitted]: the sign condition; the pace
    [kappa] at which a greedy action with probability at most 1/2 is raised relative to actions with
    a negative advantage; and the bound L on the change of parameter differences in one step. *)
Definition conditions (K : nat) (admitted : (nat -> R) -> Prop) (kappa L : R) (x : Update) : Prop :=
  forall q before, admitted q -> Forall admitted before ->
    let p := policy_after K x before in
    (exists k, forall a, (a < K)%nat ->
      (0 < adv K p q a -> k <= x (q :: before) a) /\
      (adv K p q a < 0 -> x (q :: before) a <= k)) /\
    (forall g b, is_greedy K q g -> p g <= 1 / 2 -> (b < K)%nat -> adv K p q b < 0 ->
      kappa <= x (q :: before) g - x (q :: before) b) /\
    (forall a b, (a < K)%nat -> (b < K)%nat ->
      Rabs (x (q :: before) a - x (q :: before) b) <= L).

(** One action is better than all others. *)
Definition one_greedy (K : nat) (q : nat -> R) : Prop :=
  exists g, (g < K)%nat /\ forall a, (a < K)%nat -> a <> g -> q a < q g.

(** The values lie between 0 and 1, and the best value leads by [gap]. *)
Definition led_by (K : nat) (gap : R) (q : nat -> R) : Prop :=
  (forall a, (a < K)%nat -> 0 <= q a <= 1) /\
  exists g, (g < K)%nat /\ forall a, (a < K)%nat -> a <> g -> q a + gap <= q g.

(** ** The adversary *)

(** The values of the adversary are 1 for g, almost 1 for o, and 0 for the other actions. *)
Definition near_tie (eta : R) (g o a : nat) : R :=
  if a =? g then 1 else if a =? o then 1 - eta else 0.

(** The mean of these values. *)
Lemma near_tie_mean : forall K p eta g o, (g < K)%nat -> (o < K)%nat -> g <> o ->
  sum K (fun b => p b * near_tie eta g o b) = p g + (1 - eta) * p o.
Proof.
  intros K p eta g o Hg Ho Hne.
  rewrite <- (sum_single K g (p g) Hg), <- (sum_single K o ((1 - eta) * p o) Ho), <- sum_plus.
  apply sum_ext. intros b _. unfold near_tie.
  destruct (Nat.eqb_spec b g) as [->|_].
  - destruct (Nat.eqb_spec g o); [contradiction|ring].
  - destruct (Nat.eqb_spec b o) as [->|_]; ring.
Qed.

(** Three probabilities of a policy sum to at most one. *)
Lemma three_of_softmax : forall K theta a b c, (a < K)%nat -> (b < K)%nat -> (c < K)%nat ->
  a <> b -> a <> c -> b <> c -> softmax K theta a + softmax K theta b + softmax K theta c <= 1.
Proof.
  intros K theta a b c Ha Hb Hc Hab Hac Hbc.
  rewrite <- (softmax_sum K theta) by lia.
  rewrite <- (sum_single K a (softmax K theta a) Ha), <- (sum_single K b (softmax K theta b) Hb),
    <- (sum_single K c (softmax K theta c) Hc), <- !sum_plus.
  apply sum_le. intros i _. pose proof (softmax_pos K theta i ltac:(lia)).
  destruct (Nat.eqb_spec i a), (Nat.eqb_spec i b), (Nat.eqb_spec i c); subst;
    try contradiction; lra.
Qed.

(** The total lead of the first two actions over action [l]. *)
Definition lead (x : Update) (l : nat) (values : list (nat -> R)) : R :=
  parameters x values 0 + parameters x values 1 - 2 * parameters x values l.

(** One step of the adversary adds kappa to the total lead if o has a positive advantage. *)
Lemma adversary_step : forall K admitted kappa L x before eta g o, (3 <= K)%nat ->
  conditions K admitted kappa L x -> Forall admitted before ->
  admitted (near_tie eta g o) -> 0 < eta ->
  (g = 0 /\ o = 1 \/ g = 1 /\ o = 0)%nat ->
  policy_after K x before g <= policy_after K x before o ->
  eta * (1 - policy_after K x before o)
    < 1 - policy_after K x before g - policy_after K x before o ->
  lead x (K - 1) before + kappa <= lead x (K - 1) (near_tie eta g o :: before).
Proof.
  intros K admitted kappa L x before eta g o HK Hx Hbefore Hq Heta Hgo Hless Hadv.
  set (l := (K - 1)%nat). assert (Hl : (l < K)%nat) by (unfold l; lia).
  assert (Hg : (g < K)%nat) by lia. assert (Ho : (o < K)%nat) by lia.
  assert (Hne : g <> o) by lia. assert (Hgl : g <> l) by (unfold l; lia).
  assert (Hol : o <> l) by (unfold l; lia).
  destruct (Hx _ _ Hq Hbefore) as [[k Hk] [Hpace _]].
  set (p := policy_after K x before) in *. set (q := near_tie eta g o) in *.
  assert (Pg : 0 < p g) by (apply softmax_pos; lia).
  assert (Po : 0 < p o) by (apply softmax_pos; lia).
  pose proof (three_of_softmax K (parameters x before) g o l Hg Ho Hl Hne Hgl Hol) as P3.
  fold (policy_after K x before) in P3. fold p in P3.
  assert (Pl : 0 < p l) by (apply softmax_pos; lia).
  assert (Hmean : sum K (fun b => p b * q b) = p g + (1 - eta) * p o)
    by (apply near_tie_mean; assumption).
  assert (Qg : q g = 1) by (unfold q, near_tie; rewrite Nat.eqb_refl; reflexivity).
  assert (Qo : q o = 1 - eta).
  { unfold q, near_tie. rewrite Nat.eqb_refl. destruct (Nat.eqb_spec o g); [lia|reflexivity]. }
  assert (Ql : q l = 0).
  { unfold q, near_tie. destruct (Nat.eqb_spec l g); [lia|].
    destruct (Nat.eqb_spec l o); [lia|reflexivity]. }
  assert (Heta1 : eta < 1) by nra.
  assert (Ao : 0 < adv K p q o) by (unfold adv; rewrite Hmean, Qo; nra).
  assert (Al : adv K p q l < 0) by (unfold adv; rewrite Hmean, Ql; nra).
  assert (Greedy : is_greedy K q g).
  { split; [exact Hg|]. intros a _. rewrite Qg. unfold q, near_tie.
    destruct (a =? g); [lra|]. destruct (a =? o); lra. }
  pose proof (Hpace g l Greedy ltac:(lra) Hl Al) as H1.
  pose proof (proj1 (Hk o Ho) Ao) as H2. pose proof (proj2 (Hk l Hl) Al) as H3.
  unfold lead. simpl. fold q.
  destruct Hgo as [[-> ->]|[-> ->]]; lra.
Qed.

(** ** The way back *)

(** If the last action has the uniform probability, no other action leads by more than
    log(K - 1). *)
Lemma uniform_lead : forall K theta l i, (2 <= K)%nat -> (l < K)%nat -> (i < K)%nat -> i <> l ->
  / INR K <= softmax K theta l -> theta i - theta l <= ln (INR K - 1).
Proof.
  intros K theta l i HK Hl Hi Hne H. pose proof (partition_pos K theta ltac:(lia)) as HZ.
  assert (HKp : 0 < INR K) by (apply lt_0_INR; lia).
  pose proof (exp_pos (theta l)) as El.
  assert (E : sum K (fun b => exp (theta b)) <= INR K * exp (theta l)).
  { unfold softmax in H. set (Z := sum K _) in *.
    apply Rmult_le_compat_r with (r := INR K * Z) in H.
    - replace (/ INR K * (INR K * Z)) with Z in H by (field; lra).
      replace (exp (theta l) / Z * (INR K * Z)) with (INR K * exp (theta l)) in H by (field; lra).
      exact H.
    - left. apply Rmult_lt_0_compat; assumption. }
  assert (T : exp (theta l) + exp (theta i) <= sum K (fun b => exp (theta b))).
  { rewrite <- (sum_single K l (exp (theta l)) Hl), <- (sum_single K i (exp (theta i)) Hi),
      <- sum_plus. apply sum_le. intros b _. pose proof (exp_pos (theta b)).
    destruct (Nat.eqb_spec b l), (Nat.eqb_spec b i); subst; try contradiction; lra. }
  rewrite <- (ln_exp (theta i - theta l)).
  assert (F : exp (theta i - theta l) <= INR K - 1).
  { unfold Rminus at 1. rewrite exp_plus, exp_Ropp.
    apply Rmult_le_reg_r with (exp (theta l)); [exact El|].
    rewrite Rmult_assoc, Rinv_l by lra. lra. }
  destruct F as [F|F]; [left; apply ln_increasing; [apply exp_pos|exact F]|rewrite F; lra].
Qed.

(** Each further step reduces the lead by at most L. *)
Lemma way_back : forall K admitted kappa L x before i after, (i < K)%nat -> (0 < K)%nat ->
  conditions K admitted kappa L x -> Forall admitted before -> Forall admitted after ->
  parameters x before i - parameters x before (K - 1)
    - (parameters x (after ++ before) i - parameters x (after ++ before) (K - 1))
  <= L * INR (length after).
Proof.
  intros K admitted kappa L x before i after Hi HK Hx Hbefore. set (l := (K - 1)%nat).
  induction after as [|q after IH]; intros Hafter.
  - simpl. lra.
  - inversion Hafter as [|q' after' Hq Hafter' [E1 E2]]. specialize (IH Hafter').
    destruct (Hx q (after ++ before) Hq ltac:(apply Forall_app; split; assumption))
      as [_ [_ Hbound]].
    specialize (Hbound i l Hi ltac:(unfold l; lia)).
    pose proof (Rle_abs (- (x (q :: after ++ before) i - x (q :: after ++ before) l))) as A.
    rewrite Rabs_Ropp in A.
    change (length (q :: after)) with (S (length after)). rewrite S_INR.
    simpl. lra.
Qed.

(** The way back from a given lead is long for all subsequent values. *)
Lemma way_back_from_lead : forall K admitted kappa L x before D after, (3 <= K)%nat ->
  conditions K admitted kappa L x -> Forall admitted before -> Forall admitted after ->
  (exists i, (i < 2)%nat /\ D <= parameters x before i - parameters x before (K - 1)) ->
  / INR K <= policy_after K x (after ++ before) (K - 1) ->
  D - ln (INR K - 1) <= L * INR (length after).
Proof.
  intros K admitted kappa L x before D after HK Hx Hbefore Hafter [i [Hi HD]] Hend.
  pose proof (way_back K admitted kappa L x before i after ltac:(lia) ltac:(lia) Hx Hbefore Hafter).
  pose proof (uniform_lead K (parameters x (after ++ before)) (K - 1) i ltac:(lia) ltac:(lia)
    ltac:(lia) ltac:(lia) Hend). lra.
Qed.

(** One of the first two actions has at least half of the total lead. *)
Lemma half_of_lead : forall x l values D, D <= lead x l values ->
  exists i, (i < 2)%nat /\ D / 2 <= parameters x values i - parameters x values l.
Proof.
  intros x l values D H. unfold lead in H.
  destruct (Rle_dec (D / 2) (parameters x values 0 - parameters x values l)) as [L|L].
  - exists 0%nat. split; [lia|exact L].
  - exists 1%nat. split; [lia|lra].
Qed.

(** The less probable of the first two actions, and the other one. *)
Lemma less_probable : forall p : nat -> R,
  exists g o, (g = 0 /\ o = 1 \/ g = 1 /\ o = 0)%nat /\ p g <= p o.
Proof.
  intros p. destruct (Rle_dec (p 0%nat) (p 1%nat)) as [L|L].
  - exists 0%nat, 1%nat. split; [lia|exact L].
  - exists 1%nat, 0%nat. split; [lia|lra].
Qed.

(** *** What the sign condition costs. *)
Theorem sign_condition_remembers : forall K kappa L x, (3 <= K)%nat -> 0 < L ->
  conditions K (fun _ => True) kappa L x ->
  forall n, exists values, length values = n /\ Forall (one_greedy K) values /\
    forall after, / INR K <= policy_after K x (after ++ values) (K - 1) ->
      (kappa * INR n / 2 - ln (INR K - 1)) / L <= INR (length after).
Proof.
  intros K kappa L x HK HL Hx n.
  assert (All : forall v : list (nat -> R), Forall (fun _ => True) v)
    by (intros v; apply Forall_forall; trivial).
  assert (H : exists values, length values = n /\ Forall (one_greedy K) values /\
    kappa * INR n <= lead x (K - 1) values).
  { induction n as [|n [values [Hn [Hone Hlead]]]].
    - exists []. split; [reflexivity|]. split; [constructor|]. unfold lead. simpl. lra.
    - destruct (less_probable (policy_after K x values)) as [g [o [Hgo Hless]]].
      set (p := policy_after K x values) in *.
      set (eta := (1 - p g - p o) / 2).
      assert (Hr : 0 < 1 - p g - p o).
      { pose proof (three_of_softmax K (parameters x values) 0 1 2 ltac:(lia) ltac:(lia) ltac:(lia)
          ltac:(lia) ltac:(lia) ltac:(lia)) as P3.
        pose proof (softmax_pos K (parameters x values) 2 ltac:(lia)).
        fold (policy_after K x values) in *. fold p in P3, H.
        destruct Hgo as [[-> ->]|[-> ->]]; lra. }
      assert (Po : 0 < p o) by (apply softmax_pos; lia).
      assert (Pg : 0 < p g) by (apply softmax_pos; lia).
      exists (near_tie eta g o :: values). repeat split.
      + simpl. rewrite Hn. reflexivity.
      + constructor; [|exact Hone].
        exists g. split; [lia|]. intros a _ Hne. unfold near_tie. rewrite Nat.eqb_refl.
        destruct (Nat.eqb_spec a g); [contradiction|]. unfold eta. destruct (a =? o); lra.
      + rewrite S_INR.
        pose proof (adversary_step K _ kappa L x values eta g o HK Hx (All values) I
          ltac:(unfold eta; lra) Hgo Hless ltac:(fold p; unfold eta; nra)). lra. }
  destruct H as [values [Hn [Hone Hlead]]]. exists values. split; [exact Hn|]. split; [exact Hone|].
  intros after Hend.
  pose proof (way_back_from_lead K _ kappa L x values (kappa * INR n / 2) after HK Hx (All _)
    (All _) (half_of_lead x (K - 1) values _ Hlead) Hend) as H.
  apply Rmult_le_reg_l with L; [exact HL|]. unfold Rdiv at 1.
  rewrite <- Rmult_assoc, Rinv_r_simpl_m by lra. exact H.
Qed.

(** *** The sign condition with a gap. *)
Theorem sign_condition_with_gap : forall K gap kappa L x, (3 <= K)%nat -> 0 < gap < 1 -> 0 < L ->
  conditions K (led_by K gap) kappa L x ->
  forall n, exists values, (length values <= n)%nat /\ Forall (led_by K gap) values /\
    forall after, Forall (led_by K gap) after ->
      / INR K <= policy_after K x (after ++ values) (K - 1) ->
      (Rmin (kappa * INR n / 2) (ln ((1 - gap) / (2 * gap))) - ln (INR K - 1)) / L
        <= INR (length after).
Proof.
  intros K gap kappa L x HK Hgap HL Hx n. set (l := (K - 1)%nat).
  (* either all n steps succeed, or the other actions have lost nearly all their mass before *)
  assert (H : exists values, (length values <= n)%nat /\ Forall (led_by K gap) values /\
    (kappa * INR n <= lead x l values \/
     exists o, (o < 2)%nat /\
       ln ((1 - gap) / (2 * gap)) <= parameters x values o - parameters x values l)).
  { induction n as [|n [values [Hn [Hled [Hlead|Hstop]]]]].
    - exists []. split; [simpl; lia|]. split; [constructor|]. left. unfold lead. simpl. lra.
    - destruct (less_probable (policy_after K x values)) as [g [o [Hgo Hless]]].
      set (p := policy_after K x values) in *.
      assert (P : forall a, 0 < p a) by (intros a; apply softmax_pos; lia).
      destruct (Rle_dec gap (1 - p g - p o)) as [Hr|Hr].
      + exists (near_tie gap g o :: values).
        assert (Hq : led_by K gap (near_tie gap g o)).
        { split.
          - intros a _. unfold near_tie. destruct (a =? g); [lra|]. destruct (a =? o); lra.
          - exists g. split; [lia|]. intros a _ Hne. unfold near_tie. rewrite Nat.eqb_refl.
            destruct (Nat.eqb_spec a g); [contradiction|]. destruct (a =? o); lra. }
        split; [simpl; lia|]. split; [constructor; assumption|]. left. rewrite S_INR.
        pose proof (adversary_step K _ kappa L x values gap g o HK Hx Hled Hq ltac:(lra) Hgo Hless
          ltac:(fold p; pose proof (P o); nra)) as A. fold l in A. lra.
      + exists values. split; [lia|]. split; [exact Hled|]. right. exists o. split; [lia|].
        pose proof (three_of_softmax K (parameters x values) g o l ltac:(lia) ltac:(lia)
          ltac:(unfold l; lia) ltac:(lia) ltac:(unfold l; lia) ltac:(unfold l; lia)) as P3.
        fold (policy_after K x values) in P3. fold p in P3.
        rewrite <- (ln_exp (parameters x values o - parameters x values l)).
        left. apply ln_increasing; [apply Rdiv_lt_0_compat; lra|].
        replace (exp (parameters x values o - parameters x values l)) with (p o / p l).
        * apply Rmult_lt_reg_r with (2 * gap * p l); [pose proof (P l); nra|].
          replace ((1 - gap) / (2 * gap) * (2 * gap * p l)) with ((1 - gap) * p l) by (field; lra).
          replace (p o / p l * (2 * gap * p l)) with (2 * gap * p o)
            by (field; pose proof (P l); lra).
          pose proof (P l). pose proof (P g). nra.
        * unfold p, policy_after, softmax, Rminus. rewrite exp_plus, exp_Ropp.
          pose proof (partition_pos K (parameters x values) ltac:(lia)).
          pose proof (exp_pos (parameters x values l)). field. lra.
    - exists values. split; [lia|]. split; [exact Hled|]. right. exact Hstop. }
  destruct H as [values [Hn [Hled Hcase]]]. exists values. split; [exact Hn|]. split; [exact Hled|].
  intros after Hafter Hend. set (D := Rmin _ _).
  assert (HD : exists i, (i < 2)%nat /\ D <= parameters x values i - parameters x values l).
  { destruct Hcase as [Hlead|[o [Ho Hstop]]].
    - destruct (half_of_lead x l values _ Hlead) as [i [Hi Hhalf]]. exists i. split; [exact Hi|].
      apply Rle_trans with (2 := Hhalf). apply Rmin_l.
    - exists o. split; [exact Ho|]. apply Rle_trans with (2 := Hstop). apply Rmin_r. }
  pose proof (way_back_from_lead K _ kappa L x values D after HK Hx Hled Hafter HD Hend) as H.
  apply Rmult_le_reg_l with L; [exact HL|]. unfold Rdiv at 1.
  rewrite <- Rmult_assoc, Rinv_r_simpl_m by lra. exact H.
Qed.

(** ** SCE *)

(** Either all actions are in a set or one action is not. *)
Lemma all_or_one : forall n (A : nat -> bool),
  (forall a, (a < n)%nat -> A a = true) \/ exists a, (a < n)%nat /\ A a = false.
Proof.
  induction n as [|n IH]; intros A; [left; intros; lia|].
  destruct (IH A) as [H|[a [Ha E]]]; [|right; exists a; split; [lia|exact E]].
  destruct (A n) eqn:E; [left|right; exists n; split; [lia|exact E]].
  intros a Ha. destruct (Nat.eq_dec a n) as [->|Hne]; [exact E|apply H; lia].
Qed.

(** Softmax over SCE's set gives the greedy action at most 1 - gap if an action is left out. *)
Lemma masked_with_gap : forall K gap q theta g a, led_by K gap q -> is_greedy K q g -> 0 < gap ->
  (a < K)%nat -> in_mask K q theta g a = false -> masked_softmax K q theta g g <= 1 - gap.
Proof.
  intros K gap q theta g a [H01 [h [Hh Hled]]] [Hg Hgreedy] Hgap Ha Hout.
  assert (h = g) as ->.
  { destruct (Nat.eq_dec h g) as [E|E]; [exact E|]. specialize (Hled g Hg ltac:(congruence)).
    specialize (Hgreedy h Hh). lra. }
  set (p := softmax K theta). set (v := sum K (fun b => p b * q b)).
  set (D := in_mask K q theta g). set (T := sum_in K D p).
  assert (P : forall b, 0 < p b) by (intros b; apply softmax_pos; lia).
  (* the omitted action is above average, so the average is below the maximum by the gap *)
  assert (Hv : v <= q g - gap).
  { unfold in_mask in Hout. destruct (Rlt_dec _ 0) as [_|Hadv]; [discriminate|].
    destruct (Nat.eqb_spec a g) as [|Hne]; [discriminate|]. specialize (Hled a Ha Hne).
    unfold adv in Hadv. fold p v in Hadv. lra. }
  assert (HD : D g = true).
  { unfold D, in_mask. destruct (Rlt_dec _ 0); [reflexivity|apply Nat.eqb_refl]. }
  assert (Hsum : p g * gap - (1 - gap) * (T - p g) <= 0).
  { rewrite <- (adv_mean K p q (softmax_sum K theta ltac:(lia))).
    apply Rle_trans with (sum K (fun b => (if b =? g then p g * gap + (1 - gap) * p g else 0)
      - (1 - gap) * (if D b then p b else 0))).
    - rewrite sum_minus, sum_single, sum_scal_l by exact Hg.
      change (sum K (fun b => if D b then p b else 0)) with T. lra.
    - apply sum_le. intros b Hb. pose proof (P b) as Pb. pose proof (proj1 (H01 b Hb)) as Q0.
      pose proof (proj2 (H01 g Hg)) as Q1.
      assert (Eadv : adv K p q b = q b - v) by reflexivity.
      destruct (Nat.eqb_spec b g) as [->|Hne].
      + rewrite HD, Eadv. nra.
      + destruct (D b) eqn:Eb.
        * rewrite Eadv. nra.
        * unfold D, in_mask in Eb. destruct (Rlt_dec _ 0) as [_|Hadv]; [discriminate|].
          fold p in Hadv. nra. }
  assert (HT : 0 < T).
  { apply sum_pos with g; [|exact Hg|rewrite HD; apply P].
    intros j _. destruct (D j); [left; apply P|lra]. }
  assert (E : masked_softmax K q theta g g = p g / T).
  { unfold masked_softmax, T, sum_in, p, softmax. fold D.
    pose proof (partition_pos K theta ltac:(lia)) as HZ.
    set (Z := sum K (fun b => exp (theta b))) in *.
    pose proof (partition_in_pos K D theta g Hg HD) as HY. unfold sum_in in HY.
    set (Y := sum K (fun b => if D b then exp (theta b) else 0)) in *.
    rewrite (sum_ext K (fun b => if D b then exp (theta b) / Z else 0)
      (fun b => (if D b then exp (theta b) else 0) * / Z))
      by (intros b _; destruct (D b); unfold Rdiv; ring).
    rewrite sum_scal_r. fold Y. field. lra. }
  rewrite E. apply Rmult_le_reg_r with T; [exact HT|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

(** *** SCE satisfies the conditions with a gap. *)
Theorem sce_leaves_with_gap : forall K gap w x, (1 <= K)%nat -> 0 < gap -> 0 <= w ->
  (forall q before, sce K w q (parameters x before) (parameters x (q :: before))) ->
  conditions K (led_by K gap) (w * Rmin (1 / 2) gap) (2 * w) x.
Proof.
  intros K gap w x HK Hgap Hw Hsce q before Hq _. unfold policy_after.
  set (theta := parameters x before).
  assert (E : forall a, parameters x (q :: before) a = theta a + x (q :: before) a) by reflexivity.
  pose proof (sce_respects_sign K w q theta _ Hw (Hsce q before)) as Hsign.
  destruct (Hsce q before) as [g [Hgreedy Hstep]]. fold theta in Hstep.
  pose proof (proj1 Hgreedy) as Hg.
  assert (Hbound : forall a, (a < K)%nat -> - w <= x (q :: before) a <= w).
  { intros a Ha. specialize (Hstep a Ha). rewrite E in Hstep. unfold sce_formula in Hstep.
    destruct (in_mask K q theta g a) eqn:Ea; [|lra].
    pose proof (masked_pos K q theta g a Hg) as M0.
    pose proof (softmax_in_le K (in_mask K q theta g) theta a a Ha Ea) as M1.
    change (masked_softmax K q theta g a <= exp (theta a - theta a)) in M1.
    replace (theta a - theta a) with 0 in M1 by ring. rewrite exp_0 in M1.
    destruct (a =? g); nra. }
  repeat split.
  - exists 0. intros a Ha. destruct (Hsign a Ha) as [H1 H2]. rewrite E in H1, H2.
    split; intros H; [specialize (H1 H)|specialize (H2 H)]; lra.
  - intros g' b Hgreedy' Hhalf Hb Hadv.
    assert (g' = g) as ->.
    { destruct Hq as [_ [h [Hh Hled]]].
      assert (U : forall i, is_greedy K q i -> i = h).
      { intros i [Hi Hbest]. destruct (Nat.eq_dec i h) as [Ei|Ei]; [exact Ei|].
        specialize (Hled i Hi Ei). specialize (Hbest h Hh). lra. }
      rewrite (U g' Hgreedy'), (U g Hgreedy). reflexivity. }
    pose proof (proj2 (Hsign b Hb) Hadv) as Hlow. rewrite E in Hlow.
    assert (Hmask : in_mask K q theta g g = true).
    { unfold in_mask. destruct (Rlt_dec _ 0); [reflexivity|apply Nat.eqb_refl]. }
    pose proof (Hstep g Hg) as Hup. rewrite E in Hup. unfold sce_formula in Hup.
    rewrite Hmask, Nat.eqb_refl in Hup.
    assert (Hm : Rmin (1 / 2) gap <= 1 - masked_softmax K q theta g g).
    { destruct (all_or_one K (in_mask K q theta g)) as [All|[a [Ha Hout]]].
      - apply Rle_trans with (1 := Rmin_l _ _).
        assert (EM : masked_softmax K q theta g g = softmax K theta g).
        { unfold masked_softmax, softmax. f_equal. apply sum_ext. intros b' Hb'.
          rewrite All by exact Hb'. reflexivity. }
        rewrite EM. lra.
      - apply Rle_trans with (1 := Rmin_r _ _).
        pose proof (masked_with_gap K gap q theta g a Hq Hgreedy Hgap Ha Hout). lra. }
    apply Rmult_le_compat_l with (1 := Hw) in Hm. lra.
  - intros a b Ha Hb. pose proof (Hbound a Ha). pose proof (Hbound b Hb).
    apply Rabs_le. lra.
Qed.
