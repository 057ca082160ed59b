#!/usr/bin/env python3
"""Checks the layers of the sources: what may include what, and which names occur where.

  check_includes.py ROOT         checks the repository at ROOT; prints FILE:LINE: RULE for each
                                 violation; exits 1 when there is one
  check_includes.py --self-test  plants one violation of each rule in a temporary tree and checks
                                 that each is found, and that clean lines are not
"""

import os
import re
import sys
import tempfile

# The wings of the library and their rooms. Numerics knows nothing of training.
WINGS = {
    "numerics": {
        "base", "backend", "formats", "random", "rounding", "stats", "io", "arith", "profiles", "cast",
        "quantize", "gemm", "linear", "moments", "updates", "oracle", "mma_probe", "capi",
    },
    "training": {"ops", "plot", "data", "models", "optim", "config", "train", "analysis"},
}
# What a room, a directory of libnumsim/WING/numsim, may include beside itself: downwards only.
_FORMATS = {"base", "formats"}
_ROUNDING = _FORMATS | {"rounding"}
_CAST = _ROUNDING | {"arith", "random", "backend"}
_QUANTIZE = _CAST | {"cast", "stats"}
_GEMM = _QUANTIZE | {"quantize"}
_MODEL = _GEMM | {"gemm", "ops", "linear", "data"}
_TRAIN = _MODEL | {"models", "moments", "updates", "optim", "config", "io", "plot"}
LAYERS = {
    "base": set(),
    "backend": {"base"},
    "formats": {"base"},
    "random": _FORMATS,  # beside rounding: neither includes the other
    "rounding": _FORMATS,
    "stats": _FORMATS,
    "io": _FORMATS,
    "plot": _FORMATS | {"io"},
    "data": _FORMATS | {"random", "io"},
    "arith": _ROUNDING,
    "profiles": _ROUNDING,
    "cast": _CAST,
    "quantize": _QUANTIZE,
    "gemm": _GEMM,
    "ops": _GEMM | {"gemm"},
    "linear": _GEMM | {"gemm"},
    "models": _MODEL,
    "moments": _GEMM,
    "updates": _GEMM,
    "optim": _MODEL | {"models", "moments", "updates"},
    "config": _MODEL | {"models", "moments", "updates", "optim", "io"},
    "train": _TRAIN,
    "analysis": _TRAIN | {"train"},
    "oracle": _GEMM | {"io", "profiles"},
    "mma_probe": _GEMM | {"gemm"},
    "capi": _GEMM | {"gemm", "profiles", "io"},
}

assert not any(LAYERS[room] & WINGS["training"] for room in WINGS["numerics"])
LIBRARY = re.compile(r"libnumsim/(numerics|training)/numsim/")

# Folders of a room beside its public headers, and who may include them.
FOLDERS = {
    "internal": "its own room",  # and tests and benchmarks
    "shared": "rooms of the library",
}

# What a folder of experiments may include of experiments beside itself.
# All folders that are not listed: all of these
EXPERIMENT_FOLDERS = {
    "claims": set(),
    "runner": {"claims"},
    "shared": {"claims", "runner"},
    "study": {"claims", "runner", "shared"},
}

# What the top-level directories may include of the repository (numsim stands for the library).
TOP = {
    "libnumsim": {"numsim", "libnumsim"},  # the latter: the Python bindings, check_bindings()
    "experiments": {"numsim", "experiments"},
    "apps": {"numsim", "experiments", "apps"},
    "tests": {"numsim", "experiments", "tests"},
    "bench": {"numsim", "experiments", "bench", "tests"},
}

# The references: second implementations that judge the library. A folder of tests/reference may
# include itself, the folders with an empty list, and of the library exactly the headers listed
# here: those that declare the plain types in which a problem and its result are stated, and the
# random words. docs/testing.md says what each folder judges and relies on. Tests that stand there
# (*_test.cc) are no references.
ALLOWED = {
    "tests/reference": set(),
    "tests/reference/profiles": set(),
    "tests/reference/arith": {"numsim/rounding/flags.h"},  # a code with its flags
    "tests/reference/updates": {
        "numsim/random/streams.h",
        "numsim/updates/internal/matched_step.h",  # MatchedProblem, MatchedStep
        "numsim/updates/update_rule.h",  # UpdateRule, UpdateState, UpdateOutcome
    },
    "tests/reference/linear": {
        "numsim/linear/linear_recipe.h",  # LinearOptions
        "numsim/quantize/scale.h",  # ScaleRule, Scale
        "numsim/random/streams.h",
        "numsim/rounding/rounding.h",  # Rounding
    },
    "tests/reference/models": {
        "numsim/data/source.h",  # Batch
        "numsim/models/model_config.h",
        "numsim/models/parameter.h",
    },
    # A step of a training, written out: it runs the models, which other tests judge.
    "tests/reference/analysis": {
        "numsim/analysis/precision_ranking.h",  # RankBy
        "numsim/models/pass.h",
        "numsim/random/streams.h",
        "numsim/train/trainer.h",
    },
    # The derivations of a text: the grammar, which tests/data/text_model_test.cc judges.
    "tests/reference/data": {"numsim/data/internal/text_model.h"},
}

# What no list may hold: code that computes what references judge.
NEVER_ALLOWED = re.compile(
    r"numsim/(arith|cast|gemm)/|numsim/formats/decode\.h|numsim/ops/(?!tensor\.h)"
    r"|numsim/rounding/(encode|shared/|internal/)|numsim/quantize/(?!scale\.h|scale_layout\.h)"
)
# Functions and classes of the same kind, which listed headers declare too or bring along.
JUDGED = re.compile(
    r"\b(Accumulate|ApplyUpdate|Decode|DelayedScale|Encode(F32|F64|Exact)|FakeQuantize|Gemm"
    r"|GenerateText|KnownWeights|MakeEncodePlan|MakeLinearRecipe|MakeScale|Quantize\w*"
    r"|RankPrecision|RoundStep|RoundTo|RunRanking|ScaleFactory|StartUpdates|StepReplay"
    r"|TakeMatchedStep)\s*[({<]"
)

# (what an include must match, files that may have it, the rule)
INCLUDE_PLACES = [
    (r"hwy/", r"(_simd\.cc|_simd_test\.cc|-inl\.h)$", "Highway only in *_simd.cc and *-inl.h"),
    (
        r"(Eigen|unsupported/Eigen)/",
        r"(\.cc|^libnumsim/numerics/numsim/arith/[a-z_]*eigen[a-z_]*\.h)$",
        "Eigen only in .cc files and the support header of arith",
    ),
    (
        r"(oneapi/|dnnl)",
        r"(^libnumsim/numerics/numsim/gemm/internal/gemm_onednn\.cc|^bench/onednn_peer\.cc)$",
        "oneDNN only in gemm/internal/gemm_onednn.cc and bench/onednn_peer.cc",
    ),
    (
        r"sentencepiece",
        r"^libnumsim/training/numsim/data/internal/pieces_sentencepiece\.cc$",
        "SentencePiece only in data/internal/pieces_sentencepiece.cc",
    ),
    (r"CLI/", r"^apps/", "CLI11 only in apps"),
    (r"(nanobind/|Python\.h$)", r"^libnumsim/python/", "nanobind only in libnumsim/python"),
    (r"toml\+\+", r"^libnumsim/training/numsim/config/.*\.cc$", "toml++ only in .cc files of config"),
    (r"omp\.h$", r"^libnumsim/numerics/numsim/base/parallel\.cc$", "OpenMP only in base/parallel.cc"),
    (r"nlohmann/", r"\.cc$", "nlohmann-json only in .cc files"),
    (r"openssl/", r"\.cc$", "OpenSSL only in .cc files"),
    (r"zlib\.h$", r"^(libnumsim/numerics/numsim/io|tests/fuzz)/.*\.cc$", "zlib only in .cc files of io"),
    (
        r"(mpfr|gmp)\.h$",
        r"^tests/reference/elementary\.cc$",
        "MPFR only in tests/reference/elementary.cc",
    ),
    (r"(gtest|gmock)/", r"^tests/", "GoogleTest only in tests"),
    (r"benchmark/", r"^bench/", "Google Benchmark only in bench"),
    (
        r"(cuda|cublas|curand|nccl|cub/|thrust/)",
        r"(_cuda\.cuh?|^libnumsim/numerics/numsim/base/host_device\.h)$",
        "CUDA only in *_cuda.cu, *_cuda.cuh and base/host_device.h",
    ),
]

# (what a line without comments and strings must match, files that may have it, the rule)
TEXT_PLACES = [
    (
        r"\b(__global__|__device__|__host__|__shared__|__constant__|__launch_bounds__"
        r"|__CUDACC__|__CUDA_ARCH__|cuda[A-Z]\w*)|<<<",
        r"(_cuda\.cuh?|^libnumsim/numerics/numsim/base/host_device\.h)$",
        "CUDA only in *_cuda.cu, *_cuda.cuh and base/host_device.h",
    ),
    (
        r"^\s*#\s*pragma\s+omp\b|\b_Pragma\s*\(\s*\"omp|\bomp_[a-z]\w*\s*\(",
        r"^libnumsim/numerics/numsim/base/parallel\.cc$",
        "OpenMP only in base/parallel.cc",
    ),
]

SOURCE_ENDINGS = (".h", ".cc", ".inc", ".cu", ".cuh")
INCLUDE = re.compile(r"^\s*#\s*include\s*([<\"])([^>\"]+)[>\"]")


def source_files(root):
    """Paths of the sources relative to root, sorted."""
    for top in sorted(TOP):
        for directory, subdirs, names in os.walk(os.path.join(root, top)):
            subdirs.sort()
            for name in sorted(names):
                path = os.path.relpath(os.path.join(directory, name), root)
                if name.endswith(SOURCE_ENDINGS):
                    yield path


# Comments, raw strings, strings and characters; digit separators are no quotes.
_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)\""
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)


def code_lines(text):
    """The lines of text with comments blank, and strings blank except in directives."""

    def blank(match):
        token = match.group(0)
        if token[0] == '"':
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            if re.match(r"\s*#", line) or line.rstrip().endswith("_Pragma("):
                return token
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(blank, text).split("\n")


def library_layer(path):
    """The room that a repository path lies in, or None."""
    match = re.match(LIBRARY.pattern + r"([^/]+)/", path)
    return match.group(2) if match else None


def check_layer(path, included):
    """The rule that an include of the project's own file breaks, or None."""
    top = path.split("/")[0]
    target = included.split("/")[0]
    if is_reference(path):
        return check_reference(path, included)
    # The fuzzer calls everything that reads bytes, also what is part of a program.
    fuzzes_program = path.startswith("tests/fuzz/") and target == "apps"
    if target not in TOP[top] and not fuzzes_program:
        return f"{top} may not include {target}"
    if target == "libnumsim":
        return check_bindings(path, included)
    if top == "experiments" and target == "experiments":
        return check_experiment(path, included)
    if target != "numsim":
        return None
    return check_room(path, included) or check_boundary(path, included)


def check_bindings(path, included):
    """The rule that an include of the Python bindings breaks, or None."""
    if path.startswith("libnumsim/python/") and included.startswith("libnumsim/python/"):
        return None
    return f"only the Python bindings may include {included}"


def is_reference(path):
    """Whether that file is part of a reference."""
    return path.startswith("tests/reference/") and not path.endswith("_test.cc")


def check_reference(path, included):
    """The rule that an include of the project's own file in a reference breaks, or None."""
    folder = os.path.dirname(path)
    if folder not in ALLOWED:
        return f"{folder} has no list of allowed headers in check_includes.py"
    if NEVER_ALLOWED.match(included):
        return f"no reference may include {included}: it computes what references judge"
    if included in ALLOWED[folder] or os.path.dirname(included) == folder:
        return None
    if included.startswith("tests/reference/"):
        other = os.path.dirname(included)
        if ALLOWED.get(other) == set():
            return None
        return f"{folder} may not include {other}, another reference that uses the library"
    if not ALLOWED[folder]:
        return f"{folder} shares no code with the library: it may not include {included}"
    return f"{folder} may not include {included}: it is not in its list in check_includes.py"


def check_experiment(path, included):
    """The rule that an include between folders of experiments breaks, or None."""
    parts, others = path.split("/"), included.split("/")
    if len(parts) < 3 or len(others) < 3:  # the list of all experiments
        return None if len(parts) < 3 else f"{parts[1]} may not include {included}"
    allowed = EXPERIMENT_FOLDERS.get(parts[1], set(EXPERIMENT_FOLDERS)) | {parts[1]}
    return None if others[1] in allowed else f"{parts[1]} may not include {others[1]}"


def check_room(path, included):
    """The rule of the layers that an include of the library breaks, or None."""
    layer = library_layer(path)
    if layer is None or included.count("/") < 2:
        return None
    if layer not in LAYERS:
        return f"{layer} is no layer known to check_includes.py"
    if layer not in WINGS[path.split("/")[1]]:
        return f"{layer} is no room of {path.split('/')[1]}"
    lower = included.split("/")[1]
    if lower != layer and lower not in LAYERS[layer]:
        return f"{layer} may not include {lower}"
    return None


def check_boundary(path, included):
    """The rule of the public boundary that an include of the library breaks, or None."""
    parts = included.split("/")
    folder = parts[2] if len(parts) > 3 else None
    if path.split("/")[0] in {"tests", "bench"}:
        return None if not path.startswith("tests/package/") or folder is None else (
            f"the package test uses public headers only, not {included}")
    layer = library_layer(path)
    if folder is None:
        return None
    if layer is None:
        return f"only public headers may be included here, not {included}"
    if folder == "internal" and layer != parts[1]:
        return f"{included} is for its own room alone"
    if is_public(path):
        return f"a public header may not include {included}, which is not installed"
    return None


def is_public(path):
    """Whether that file is an installed header."""
    parts = path.split("/")
    return bool(LIBRARY.match(path)) and len(parts) <= 5 and path.endswith((".h", ".inc"))


def check_file(root, path):
    """Returns (line number, rule) for each violation in one file."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = code_lines(file.read())
    found = []
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        if include:
            quote, included = include.groups()
            own = included.split("/")[0] in {
                "numsim", "libnumsim", "experiments", "apps", "tests", "bench"}
            rule = None
            if own and "/" in included:
                rule = check_layer(path, included)
                if rule is None and quote == "<":
                    rule = "the project's own files are included with quotes"
            elif quote == '"' and ("/" not in included or included.startswith(".")):
                rule = "the project's own files are included by their path from the include root"
            if rule:
                found.append((number, rule))
            found += [
                (number, rule)
                for pattern, place, rule in INCLUDE_PLACES
                if re.match(pattern, included) and not re.search(place, path)
            ]
        else:
            found += [
                (number, rule)
                for pattern, place, rule in TEXT_PLACES
                if re.search(pattern, line) and not re.search(place, path)
            ]
            judged = JUDGED.search(line) if is_reference(path) else None
            if judged:
                found.append((number, f"a reference may not use {judged.group(1)}, which it judges"))
    return found


def check_tree(root):
    """Returns (number of files, list of 'file:line: rule')."""
    files = list(source_files(root))
    return len(files), [f"{p}:{n}: {rule}" for p in files for n, rule in check_file(root, p)]


def self_test():
    lib = "libnumsim/numerics/numsim/"
    training = "libnumsim/training/numsim/"
    python = "libnumsim/python/src/"
    updates = "tests/reference/updates/"
    # (file, line, part of the rule that must be reported; None where the line is allowed)
    cases = [
        (lib + "base/a.h", '#include "numsim/formats/x.h"', "base may not include formats"),
        (lib + "formats/a.h", '#include "numsim/rounding/x.h"', "formats may not include rounding"),
        (lib + "formats/b.h", '#include "numsim/base/x.h"', None),
        (lib + "rounding/a.cc", '#include "numsim/random/x.h"', "rounding may not include random"),
        (lib + "random/a.h", '#include "numsim/rounding/x.h"', "random may not include rounding"),
        (lib + "rounding/b.inc", '#include "numsim/cast/x.h"', "rounding may not include cast"),
        (lib + "arith/a.h", '#include "numsim/profiles/x.h"', "arith may not include profiles"),
        (lib + "cast/a.cc", '#include "numsim/random/x.h"', None),
        (lib + "cast/b.cc", '#include "numsim/quantize/x.h"', "cast may not include quantize"),
        (lib + "stats/a.cc", '#include "numsim/io/x.h"', "stats may not include io"),
        (lib + "io/a.cc", '#  include "numsim/rounding/x.h"', "io may not include rounding"),
        (lib + "quantize/a.cc", '#include "numsim/linear/x.h"', "quantize may not include linear"),
        (lib + "linear/a.cc", '#include "numsim/optim/x.h"', "linear may not include optim"),
        (lib + "capi/a.cc", '#include "numsim/linear/x.h"', "capi may not include linear"),
        (lib + "other/a.cc", '#include "numsim/base/x.h"', "no layer known"),
        (training + "ops/a.cc", '#include "numsim/gemm/x.h"', None),
        (lib + "ops/a.cc", '#include "numsim/gemm/x.h"', "ops is no room of numerics"),
        (lib + "io/b.cc", '#include "experiments/x.h"', "libnumsim may not include experiments"),
        (lib + "io/c.cc", '#include "tests/reference/x.h"', "libnumsim may not include tests"),
        (lib + "io/d.cc", '#include "csv.h"', "by their path from the include root"),
        (lib + "io/e.cc", "#include <numsim/base/x.h>", "with quotes"),
        ("experiments/runner/a.cc", '#include "numsim/cast/x.h"', None),
        ("experiments/b.cc", '#include "apps/x.h"', "experiments may not include apps"),
        ("apps/a.cc", '#include "experiments/x.h"', None),
        ("apps/b.cc", "#include <CLI/CLI.hpp>", None),
        ("experiments/c.cc", "#include <CLI/CLI.hpp>", "CLI11 only"),
        (lib + "cast/x_simd.cc", '#include "hwy/highway.h"', None),
        (lib + "cast/c.cc", '#include "hwy/highway.h"', "Highway only"),
        (lib + "cast/d.h", "#include <hwy/base.h>", "Highway only"),
        (lib + "cast/e.h", "#include <Eigen/Core>", "Eigen only"),
        (lib + "cast/e.cc", "#include <Eigen/Core>", None),
        (lib + "arith/eigen_support.h", "#include <Eigen/Core>", None),
        (lib + "gemm/gemm.cc", "#include <oneapi/dnnl/dnnl.hpp>", "oneDNN only"),
        (lib + "gemm/internal/gemm_onednn.cc", "#include <oneapi/dnnl/dnnl.hpp>", None),
        (lib + "linear/a.cc", "#include <dnnl.hpp>", "oneDNN only"),
        (training + "data/c.cc", "#include <sentencepiece_trainer.h>", "SentencePiece only"),
        (lib + "io/f.h", "#include <nlohmann/json.hpp>", "nlohmann-json only"),
        (training + "data/h.cc", "#include <zlib.h>", "zlib only"),
        (lib + "io/a.cc", "#include <zlib.h>", None),
        ("tests/arith/a_test.cc", "#include <mpfr.h>", "MPFR only"),
        ("tests/reference/elementary.cc", "#include <mpfr.h>", None),
        (training + "data/b.cc", '#include "numsim/cast/x.h"', "data may not include cast"),
        (lib + "cast/f.cc", "#include <omp.h>", "OpenMP only"),
        (python + "a.cc", "#include <nanobind/ndarray.h>", None),
        (python + "b.cc", '#include "libnumsim/python/src/x.h"', None),
        (python + "c.cc", '#include "numsim/cast/cast.h"', None),
        (python + "d.cc", '#include "numsim/cast/shared/x.h"', "only public headers"),
        (python + "e.cc", '#include "apps/x.h"', "libnumsim may not include apps"),
        (lib + "cast/l.cc", "#include <nanobind/nanobind.h>", "nanobind only"),
        (lib + "cast/m.cc", '#include "libnumsim/python/src/x.h"', "only the Python bindings"),
        ("apps/f.cc", '#include "libnumsim/python/src/x.h"', "apps may not include libnumsim"),
        ("tests/io/b.cc", "#include <Python.h>", "nanobind only"),
        (lib + "cast/g.cc", "#pragma omp parallel for", "OpenMP only"),
        (lib + "base/parallel.cc", "#pragma omp parallel for", None),
        (lib + "cast/h.cc", "#include <cuda_runtime.h>", "CUDA only"),
        (lib + "cast/i.inc", "__device__ int f();", "CUDA only"),
        (lib + "cast/j.cc", "Kernel<<<1, 32>>>(x);", "CUDA only"),
        (lib + "cast/x_cuda.cu", "__global__ void f();", None),
        (lib + "cast/x_cuda.cuh", "__device__ inline int f();", None),
        (lib + "cast/x_cuda.cu", '#include "numsim/cast/x_cuda.cuh"', None),
        (lib + "cast/x_device.cc", "cudaMalloc(&p, 1);", "CUDA only"),
        (lib + "cast/x.cuh", "int n;  // cudaMalloc", None),
        (lib + "cast/y.cuh", "__device__ int f();", "CUDA only"),
        (lib + "base/host_device.h", "#ifdef __CUDACC__", None),
        (lib + "base/b.h", "// __device__ and <<< in a comment", None),
        (lib + "base/c.h", 'const char* text = "__global__ // <<<";', None),
        (lib + "base/d.h", "int n = 1'000'000;  // it's __host__", None),
        (lib + "base/e.h", '// #include "numsim/io/x.h"', None),
        ("tests/reference/a.cc", '#include "numsim/base/x.h"', "shares no code"),
        ("tests/reference/b.h", '#include "tests/reference/x.h"', None),
        ("tests/reference/c.h", '#include "tests/io/x.h"', "shares no code"),
        ("tests/reference/d.h", '#include "tests/reference/profiles/x.h"', None),
        ("tests/reference/e.h", '#include "tests/reference/linear/x.h"', "uses the library"),
        ("tests/reference/profiles/a.cc", '#include "tests/reference/x.h"', None),
        ("tests/reference/profiles/b.cc", '#include "numsim/base/x.h"', "shares no code"),
        (updates + "a.cc", '#include "numsim/updates/update_rule.h"', None),
        (updates + "b.cc", '#include "tests/reference/updates/x.h"', None),
        (updates + "c.cc", '#include "tests/reference/oracle.h"', None),
        (updates + "d.cc", '#include "numsim/updates/step_sums.h"', "not in its list"),
        (updates + "e.cc", '#include "tests/updates/x.h"', "not in its list"),
        (updates + "f.cc", '#include "tests/reference/linear/x.h"', "uses the library"),
        (updates + "g.cc", '#include "numsim/cast/shared/round_step.h"', "computes what"),
        (updates + "h.cc", "numsim::RoundStep(plan, w, u, alpha, out);", "may not use RoundStep"),
        (updates + "i.cc", "oracle::Encode(grid, x, {});  // not EncodeF32(plan, x)", None),
        (updates + "j.cc", "return TakeMatchedStep(problem, s, w);", "may not use TakeMatched"),
        ("tests/reference/linear/a.cc", '#include "numsim/quantize/scale.h"', None),
        ("tests/reference/linear/b.h", '#include "numsim/rounding/encode.h"', "computes what"),
        ("tests/reference/linear/c.h", '#include "numsim/formats/decode.h"', "computes what"),
        ("tests/reference/linear/d.h", '#include "numsim/quantize/quantize.h"', "computes what"),
        ("tests/reference/linear/e.h", '#include "numsim/gemm/gemm.h"', "computes what"),
        ("tests/reference/linear/f.cc", "auto s = MakeScale (f, a, rule);", "may not use MakeScale"),
        ("tests/reference/linear/g.cc", "ScaleFactory{f, rule};", "may not use ScaleFactory"),
        ("tests/reference/models/a.cc", '#include "numsim/ops/norm.h"', "computes what"),
        ("tests/reference/models/b.cc", '#include "numsim/models/parameter.h"', None),
        ("tests/reference/analysis/a.cc", '#include "numsim/analysis/step_replay.h"', "not in its"),
        ("tests/reference/other/a.cc", '#include "numsim/base/x.h"', "has no list"),
        ("tests/linear/a.cc", "EncodeF32(plan, bits, 0);", None),
        (lib + "quantize/b.h", '#include "numsim/stats/x.h"', None),
        (lib + "cast/k.h", '#include "numsim/stats/x.h"', "cast may not include stats"),
        ("tests/reference/a_test.cc", '#include "numsim/rounding/x.h"', None),
        ("tests/io/a_test.cc", "#include <gtest/gtest.h>", None),
        (lib + "io/g.cc", "#include <gtest/gtest.h>", "GoogleTest only"),
        (lib + "gemm/a.cc", '#include "numsim/gemm/internal/x.h"', None),
        (lib + "gemm/internal/b.cc", '#include "numsim/gemm/internal/x.h"', None),
        (lib + "gemm/c.cc", '#include "numsim/cast/internal/x.h"', "for its own room alone"),
        (lib + "gemm/d.cc", '#include "numsim/cast/shared/x.h"', None),
        (lib + "gemm/internal/e.h", '#include "numsim/cast/shared/x.h"', None),
        (lib + "gemm/f.h", '#include "numsim/cast/shared/x.h"', "which is not installed"),
        (lib + "gemm/g.h", '#include "numsim/gemm/internal/x.h"', "which is not installed"),
        (lib + "gemm.h", '#include "numsim/gemm/internal/x.h"', "not"),
        (lib + "gemm.h", '#include "numsim/gemm/gemm.h"', None),
        ("apps/c.cc", '#include "numsim/cast/shared/x.h"', "only public headers"),
        ("apps/d.cc", '#include "numsim/cast/internal/x.h"', "only public headers"),
        ("apps/e.cc", '#include "numsim/cast/cast.h"', None),
        ("experiments/a/a.cc", '#include "numsim/cast/internal/x.h"', "only public headers"),
        ("experiments/a/b.cc", '#include "experiments/runner/x.h"', None),
        ("experiments/a/c.cc", '#include "experiments/b/x.h"', "a may not include b"),
        ("experiments/runner/d.cc", '#include "experiments/shared/x.h"', "runner may not include shared"),
        ("experiments/list.cc", '#include "experiments/a/x.h"', None),
        ("tests/package/main.cc", '#include "numsim/cast/internal/x.h"', "public headers only"),
        ("tests/cast/a_test.cc", '#include "numsim/cast/internal/x.h"', None),
        ("bench/a.cc", '#include "numsim/cast/internal/x.h"', None),
    ]
    failures = [
        f"{folder}: {header} is allowed and computes what references judge"
        for folder, headers in ALLOWED.items()
        for header in sorted(headers)
        if NEVER_ALLOWED.match(header)
    ]
    for path, line, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, os.path.dirname(path)))
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(f"// A comment.\n\n{line}\n")
            violations = check_tree(root)[1]
        if expected is None:
            good = not violations
        else:
            good = len(violations) == 1 and violations[0].startswith(f"{path}:3: ")
            good = good and expected in violations[0]
        if not good:
            failures.append(f"{path}: {line}\n  expected {expected}, found {violations}")
    print("\n".join(failures + [f"{len(cases) - len(failures)} of {len(cases)} cases as expected"]))
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    count, violations = check_tree(arguments[0])
    if count == 0:
        print(f"{arguments[0]}: no sources there", file=sys.stderr)
        return 2
    print("\n".join(violations + [f"{count} files, {len(violations)} violations"]))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
