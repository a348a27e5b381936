"""Other processors, stood in for by this one: numpy, numba and OpenBLAS are told to be older.

numpy picks its loops, numba its instructions and OpenBLAS its kernels by the processor; each can be
told another one. onnxruntime cannot, so that models read by it run as they do here.
"""

from __future__ import annotations

from typing import Final

_NEWER = "bw dq vl cd vnni vbmi vbmi2 bitalg vpopcntdq ifma bf16 fp16"
_HASWELL = "sse sse2 sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 fma bmi bmi2 f16c lzcnt movbe"
_NEHALEM = "sse sse2 sse3 ssse3 sse4.1 sse4.2 popcnt"

PROCESSORS: Final = {"this": "", "haswell": _HASWELL, "nehalem": _NEHALEM}
"""Name -> instructions that numba may use; this machine's if empty."""


def environment_of(name: str) -> dict[str, str]:
    """Return the variables that make a new process compute as another processor would.

    Args:
        name: One of `PROCESSORS`.
    """
    if not PROCESSORS[name]:
        return {}
    allowed = PROCESSORS[name].split()
    refused = ["avx512f", *(f"avx512{part}" for part in _NEWER.split())]
    refused += [one for one in _HASWELL.split() if one not in allowed]
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(_loops_of_numpy(name)),
        "NUMBA_CPU_NAME": name,
        "NUMBA_CPU_FEATURES": ",".join(
            [f"+{one}" for one in allowed] + [f"-{one}" for one in refused]
        ),
        "OPENBLAS_CORETYPE": name.capitalize(),
    }


def _loops_of_numpy(name: str) -> list[str]:
    # numpy has loops for groups of instructions, and takes only names of groups that are here.
    from numpy._core import _multiarray_umath as core

    newer = {"haswell": ("X86_V4", "AVX512"), "nehalem": ("X86_V3", "X86_V4", "AVX", "FMA")}[name]
    here = core.__cpu_features__
    return [one for one in core.__cpu_dispatch__ if here.get(one) and one.startswith(newer)]
