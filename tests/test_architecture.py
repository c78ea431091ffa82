"""A seed gives the same bits on x86-64 and on ARM.

The engine uses only +, -, *, / and square roots, which IEEE 754 specifies, in an order that no
compiler may change. These tests run ARM code of two compilers in an emulator: LLVM compiles the
random stream, the exponential and the logarithm of the engine; GCC compiles the C reference, whose
runs must equal those of the compiled loop bit for bit.
"""

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba import types
from numpy._core import _multiarray_umath as umath
from numpy.testing import assert_array_equal

from benchmarks import bench, c_reference
from pu_lib.chapters.guide.quantities import kept
from pu_lib.claims import select, sentence_of
from pu_lib.engine.arithmetic import exponential, logarithm, uniform
from pu_lib.experiments.jekyll_hyde import RunBuffers, seed_state, simulate
from pu_lib.experiments.options import OPTIONS

ARM = "aarch64-linux-gnu"
CROSS, EMULATOR = f"{ARM}-gcc", "qemu-aarch64"
DRIVER = Path(__file__).with_name("other_processor.c")

emulated = pytest.mark.skipif(
    not (shutil.which(CROSS) and shutil.which(EMULATOR)),
    reason=f"needs {CROSS} and {EMULATOR} (Debian: gcc-{ARM}, libc6-dev-arm64-cross, qemu-user)",
)


def draw(w0, w1, w2, w3, n):
    """Return the n-th number of a stream, counting from 0."""
    u, stream = uniform((w0, w1, w2, w3))
    for _ in range(n):
        u, stream = uniform(stream)
    return u


@cache
def compiled_functions():
    """Return the engine's functions, compiled by numba with a C interface."""
    real, word = types.float64, types.uint64
    functions = {
        "exponential": (exponential.py_func, real(real)),
        "logarithm": (logarithm.py_func, real(real)),
        "draw": (draw, real(word, word, word, word, types.int64)),
    }
    callbacks = {}
    for name, (function, signature) in functions.items():
        callbacks[name] = numba.cfunc(signature, error_model="numpy", _nrt=False)(function)
    return callbacks


def inputs():
    """Return a seed for the stream and numbers of all magnitudes that occur in the engine."""
    rng = np.random.default_rng(5)
    sizes = [rng.uniform(0, 800, 3000), 10.0 ** rng.uniform(-18, 9, 3000), np.arange(2000) / 64]
    return seed_state(1, "elsewhere", 0), np.concatenate([np.zeros(1), *sizes])


def run_here(words, x):
    """Return the engine's results on this processor."""
    function = {name: callback.ctypes for name, callback in compiled_functions().items()}
    w = [int(word) for word in words]
    draws = [function["draw"](*w, n) for n in range(500)]
    return np.array(
        [
            (function["exponential"](-v), function["logarithm"](1.0 + v), draws[i % 500])
            for i, v in enumerate(x)
        ]
    )


def run_on_arm(folder, change=str):
    """Compile the engine's functions for ARM with LLVM and run them in the emulator."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(ARM).create_target_machine(opt=3, reloc="static")
    arguments = [str(DRIVER)]
    for name, function in compiled_functions().items():
        module = llvm.parse_assembly(change(function.inspect_llvm()))
        module.triple, module.data_layout = ARM, str(machine.target_data)
        (folder / f"{name}.o").write_bytes(machine.emit_object(module))
        # numba's code for raising Python exceptions is not linked, because no exception occurs
        arguments += [
            "-Wl,--unresolved-symbols=ignore-all",
            f'-D{name.upper()}="{function.native_name}"',
            str(folder / f"{name}.o"),
        ]
    return np.frombuffer(emulate(build(folder, arguments), *inputs())).reshape(-1, 3)


def build(folder, arguments):
    program = folder / "elsewhere"
    command = [CROSS, "-O3", "-ffp-contract=off", "-static", *arguments, "-lm", "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def emulate(program, *arrays):
    blob = b"".join(np.asarray(part).tobytes() for part in arrays)
    done = subprocess.run([EMULATOR, str(program)], input=blob, capture_output=True, check=True)
    return done.stdout


@emulated
def test_arithmetic_has_the_same_bits_on_arm(tmp_path):
    numbers = run_on_arm(tmp_path)
    assert_array_equal(numbers.view(np.uint64), run_here(*inputs()).view(np.uint64))


@emulated
def test_fused_multiply_add_is_detected(tmp_path):
    """The comparison fails if LLVM may fuse products and sums.

    Only the logarithm changes: the products in the exponential are too small, and the stream uses
    only integers.
    """

    def fusing(code):
        return re.sub(r"= f(mul|add|sub) ", r"= f\1 contract ", code)

    fused, expected = run_on_arm(tmp_path, fusing), run_here(*inputs())
    assert (fused[:, 1] != expected[:, 1]).mean() > 0.01
    assert_array_equal(fused[:, 2], expected[:, 2])


# Complete runs of the C reference


def c_program(problem, memory, arguments):
    """Return a program that calls the C reference and the arrays that it reads."""
    arrays = [a for o in (problem, memory) for a in vars(o).values() if isinstance(a, np.ndarray)]
    lines, names, read = [], [], []
    for i, argument in enumerate(arguments):
        names.append(f"a{i}")
        if isinstance(argument, ctypes.c_void_p):
            array = next(a for a in arrays if a.ctypes.data == argument.value)
            lines.append(
                f"void *a{i} = malloc({array.nbytes}); fread(a{i}, 1, {array.nbytes}, stdin);"
            )
            read.append((f"a{i}", array))
        else:
            kind = "double" if isinstance(argument, ctypes.c_double) else "int64_t"
            value = argument.value.hex() if kind == "double" else argument.value
            lines.append(f"{kind} a{i} = {value};")
    lines.append(f"run({', '.join(names)});")
    lines += [f"fwrite({name}, 1, {array.nbytes}, stdout);" for name, array in read]
    body = "\n    ".join(lines)
    includes = f'#include <stdio.h>\n#include <stdlib.h>\n#include "{c_reference.SOURCE}"\n'
    return f"{includes}int main(void) {{\n    {body}\n    return 0;\n}}\n", [a for _, a in read]


@emulated
@pytest.mark.parametrize(
    ("domain", "update"),
    [("chain", "pg-sm"), ("chain", "pg-es factor=drop"), ("cliff", "di"), ("random-mdp", "mce")],
)
def test_whole_run_has_the_same_bits_on_arm(domain, update, tmp_path):
    steps, seeds = 3000, seed_state(3, domain, 0)
    problem = bench.out_of_reach(bench.processes()[domain][1])
    memory, expected = RunBuffers(), RunBuffers()
    step_size, scheme = c_reference.ETA, c_reference.SCHEME
    simulate(problem, update, step_size, scheme, seeds, max_steps=steps, memory=expected)
    memory.prepare(problem, update, OPTIONS["paper"], steps)
    memory.seeds = seeds
    source, arrays = c_program(
        problem, memory, c_reference.arguments(problem, memory, seeds, steps)
    )
    (tmp_path / "run.c").write_text(source)
    options = ["-DBRANCH=1", *c_reference.defines(problem, update)]
    result = emulate(build(tmp_path, [*options, str(tmp_path / "run.c")]), *arrays)
    ends = np.cumsum([array.nbytes for array in arrays])
    for array, end in zip(arrays, ends, strict=True):
        array[...] = np.frombuffer(result[end - array.nbytes : end], array.dtype).reshape(
            array.shape
        )
    for name in ("theta", "pi", "q", "hyde", "buffer"):
        assert_array_equal(getattr(memory, name), getattr(expected, name), err_msg=name)


LEARN = """
import json
from pu_lib.claims import judge
from benchmarks import bench, c_reference
from pu_lib.chapters.guide.quantities import network
print(json.dumps([judge("sec:deepimpl/pg-es").sentence, network()]))
"""


def test_networks_learn_the_same_without_vector_instructions() -> None:
    """Runs of PG-ES are chaotic, but must be reproducible on every processor."""
    older = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(
            name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]
        ),
        "OPENBLAS_CORETYPE": "Sandybridge",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    }
    command = [sys.executable, "-c", LEARN]
    done = subprocess.run(command, env=os.environ | older, capture_output=True, check=True)
    sentence, numbers = json.loads(done.stdout)
    (claim,) = select(["sec:deepimpl/pg-es"])
    assert sentence == sentence_of(claim)
    assert numbers == pytest.approx(kept()["network"], rel=2e-5)
