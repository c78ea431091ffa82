(** * Interval arithmetic on the integers of the kernel

    By default, the tactic [interval] of the library computes with the floating-point numbers or
    machine integers of the processor, whose specification Coq assumes.  Here, it computes with
    floating-point numbers represented by binary integers ([Z]), whose properties are proved.  It
    needs a precision: [i_prec 40] means 40 bits. *)

From Interval Require Import Tactic.
From Interval Require Import Specific_stdz Specific_ops.

Module Floats := SpecificFloat StdZRadix2.
Module Tactics := IntervalTactic Floats.
Export Tactics.
