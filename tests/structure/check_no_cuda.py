#!/usr/bin/env python3
"""Checks that a build without CUDA has no trace of it.

  check_no_cuda.py NM FILE...   exits 1 when a library or program has a symbol of CUDA, or needs one
                                of its libraries. A FILE that is not built is left out; the first
                                one must be there.
  check_no_cuda.py --self-test  checks that traces are found, and that clean lines are not
"""

import os
import re
import subprocess
import sys

# Functions of the driver, the runtime and the libraries, and what nvcc adds to an object file.
SYMBOL = re.compile(
    r"(^|[\s])((__)?cuda[A-Z_]\w*|cublas\w*|cu[A-Z][a-z]\w*|__(fatbinwrap|nv)\w*|_ZN6numsim4cuda\w*)"
)
LIBRARY = re.compile(r"\blib(cuda|cublas|nvrtc|nvJitLink)\w*\.so\S*")


def symbols(text):
    """The symbols of CUDA in the output of nm."""
    return sorted({match.group(2) for match in SYMBOL.finditer(text)})


def libraries(text):
    """The libraries of CUDA in the output of ldd."""
    return sorted({match.group(0) for match in LIBRARY.finditer(text)})


def output_of(*command):
    # Archives and programs without symbols or libraries are no error.
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def check(nm, files):
    if not os.path.exists(files[0]):
        print(f"{files[0]} is not there", file=sys.stderr)
        return 2
    failed = False
    for path in filter(os.path.exists, files):
        text = output_of(nm, path)
        if "numsim" not in text:
            print(f"{path}: {nm} shows no symbol of numsim", file=sys.stderr)
            return 2
        found = symbols(text)
        if not path.endswith(".a"):
            found += libraries(output_of("ldd", path))
        failed = failed or bool(found)
        print(f"{path}: " + (", ".join(found[:10]) if found else "no trace of CUDA"))
    return 1 if failed else 0


def self_test():
    traces = [
        "                 U cudaMalloc",
        "                 U __cudaRegisterFatBinary",
        "                 U cublasLtMatmul",
        "                 U cuLaunchKernel",
        "0000000000000000 d __fatbinwrap_12_device_cuda_cu",
        "0000000000000000 T _ZN6numsim4cuda5CheckE9cudaErrorPKc",
    ]
    clean = [
        "0000000000000000 T _ZN6numsim17DeviceUnavailableB5cxx11Ev",
        "0000000000000000 T _ZN6numsim8profiles11CudaProfileEv",
        "                 U cubic",
        "0000000000000000 t _ZN6numsim12_GLOBAL__N_17kDeviceE",
        "libnumsim.a(cuda_rules.cc.o):",
    ]
    wanted = [("libcudart.so.13 => not found", 1), ("libcublasLt.so.13 => /usr/lib/x", 1)]
    wanted += [("libcrypto.so.3 => /usr/lib/libcrypto.so.3 (0x00007f)", 0)]
    failures = [line for line in traces if not symbols(line)]
    failures += [line for line in clean if symbols(line)]
    failures += [line for line, count in wanted if len(libraries(line)) != count]
    cases = len(traces) + len(clean) + len(wanted)
    print("\n".join(failures + [f"{cases - len(failures)} of {cases} cases as expected"]))
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    return check(arguments[0], arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
