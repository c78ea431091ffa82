(** * Interval arithmetic on the integers of the kernel

    The tactic [interval] of the library computes, unless told otherwise, with the floating-point
    numbers or the machine integers of the processor, whose specification Coq assumes.
    Here it computes with floating-point numbers made of binary integers ([Z]), about which
    everything is proved.  It needs a precision: [i_prec 40] is forty bits. *)

From Interval Require Import Tactic.
From Interval Require Import Specific_stdz Specific_ops.

Module Floats := SpecificFloat StdZRadix2.
Module Tactics := IntervalTactic Floats.
Export Tactics.
