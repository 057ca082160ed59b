"""cuBLASLt through ctypes: the plan that its heuristic chooses for a product, and the product by exactly that plan.

The first operand of cuBLASLt's column-major product is B, its second is A, both with the inner dimension
contiguous (transposed and not transposed), as PyTorch calls it. Formats, descriptors and preferences are those of
`torch._scaled_mm`, `torch.mm` and `torch._int_mm`.
"""

import ctypes
import shutil
import subprocess
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int8, c_int32, c_int64, c_size_t, c_uint32, c_uint64
from ctypes import c_uint16, c_void_p
from collections import Counter
from dataclasses import dataclass

import numpy as np

# Constants of cublasLt.h, cublas_api.h and library_types.h; test_cublaslt_plans.py compares them with the headers.
CONSTANTS = {
    "CUDA_R_32F": 0,
    "CUDA_R_16F": 2,
    "CUDA_R_8I": 3,
    "CUDA_R_32I": 10,
    "CUDA_R_16BF": 14,
    "CUDA_R_8F_E4M3": 28,
    "CUBLAS_COMPUTE_32F": 68,
    "CUBLAS_COMPUTE_32I": 72,
    "CUBLAS_OP_N": 0,
    "CUBLAS_OP_T": 1,
    "CUBLASLT_MATMUL_DESC_TRANSA": 3,
    "CUBLASLT_MATMUL_DESC_TRANSB": 4,
    "CUBLASLT_MATMUL_DESC_A_SCALE_POINTER": 17,
    "CUBLASLT_MATMUL_DESC_B_SCALE_POINTER": 18,
    "CUBLASLT_MATMUL_DESC_FAST_ACCUM": 25,
    "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES": 1,
    "CUBLASLT_REDUCTION_SCHEME_NONE": 0,
    "CUBLASLT_REDUCTION_SCHEME_INPLACE": 1,
    "CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE": 2,
    "CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE": 4,
    "CUBLASLT_ALGO_CONFIG_ID": 0,
    "CUBLASLT_ALGO_CONFIG_TILE_ID": 1,
    "CUBLASLT_ALGO_CONFIG_SPLITK_NUM": 2,
    "CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME": 3,
    "CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING": 4,
    "CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION": 5,
    "CUBLASLT_ALGO_CONFIG_STAGES_ID": 6,
    "CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID": 7,
    "CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID": 8,
}
FORMATS = {
    "e4m3fn": "CUDA_R_8F_E4M3",
    "bf16": "CUDA_R_16BF",
    "fp16": "CUDA_R_16F",
    "int8": "CUDA_R_8I",
    "fp32": "CUDA_R_32F",
    "int32": "CUDA_R_32I",
}
# What a plan says of its algorithm: name, attribute, type.
FIELDS = (
    ("id", "ID", c_int32),
    ("tile", "TILE_ID", c_uint32),
    ("split", "SPLITK_NUM", c_int32),
    ("reduction", "REDUCTION_SCHEME", c_uint32),
    ("swizzle", "CTA_SWIZZLING", c_uint32),
    ("custom", "CUSTOM_OPTION", c_uint32),
    ("stages", "STAGES_ID", c_uint32),
    ("inner", "INNER_SHAPE_ID", c_uint16),
    ("cluster", "CLUSTER_SHAPE_ID", c_uint16),
)
FIELD_NAMES = tuple(name for name, _, _ in FIELDS)


class Algorithm(ctypes.Structure):
    _fields_ = [("data", c_uint64 * 8)]


class HeuristicResult(ctypes.Structure):
    _fields_ = [
        ("algorithm", Algorithm),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


SIGNATURES = {
    "cublasLtGetVersion": (c_size_t, []),
    "cublasLtGetStatusString": (c_char_p, [c_int]),
    "cublasLtCreate": (c_int, [POINTER(c_void_p)]),
    "cublasLtMatrixLayoutCreate": (c_int, [POINTER(c_void_p), c_int, c_uint64, c_uint64, c_int64]),
    "cublasLtMatrixLayoutDestroy": (c_int, [c_void_p]),
    "cublasLtMatmulDescCreate": (c_int, [POINTER(c_void_p), c_int, c_int]),
    "cublasLtMatmulDescSetAttribute": (c_int, [c_void_p, c_int, c_void_p, c_size_t]),
    "cublasLtMatmulPreferenceCreate": (c_int, [POINTER(c_void_p)]),
    "cublasLtMatmulPreferenceSetAttribute": (c_int, [c_void_p, c_int, c_void_p, c_size_t]),
    "cublasLtMatmulAlgoGetHeuristic": (
        c_int,
        [c_void_p] * 7 + [c_int, POINTER(HeuristicResult), POINTER(c_int)],
    ),
    "cublasLtMatmulAlgoConfigGetAttribute": (
        c_int,
        [POINTER(Algorithm), c_int, c_void_p, c_size_t, POINTER(c_size_t)],
    ),
    "cublasLtMatmulAlgoConfigSetAttribute": (c_int, [POINTER(Algorithm), c_int, c_void_p, c_size_t]),
    "cublasLtMatmulAlgoCheck": (c_int, [c_void_p] * 6 + [POINTER(Algorithm), POINTER(HeuristicResult)]),
    "cublasLtMatmul": (
        c_int,
        [c_void_p] * 12 + [POINTER(Algorithm), c_void_p, c_size_t, c_void_p],
    ),
}


@dataclass(frozen=True)
class Plan:
    """What cuBLASLt will run: its opaque algorithm, the fields of FIELDS (-1: it has none), and its needs."""

    algorithm: bytes
    config: tuple
    workspace: int  # bytes needed
    waves: float

    def __getattr__(self, name):
        if name in FIELD_NAMES:
            return self.config[FIELD_NAMES.index(name)]
        raise AttributeError(name)

    @property
    def splits(self):
        return max(1, self.split)


class LibraryError(Exception):
    pass


def loaded(path):
    """Returns the library with the types of the functions that are used."""
    library = ctypes.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def mapped_library():
    """Returns the path of the libcublasLt that this process, and so PyTorch, has loaded."""
    with open("/proc/self/maps") as lines:
        paths = sorted({line.split()[-1] for line in lines if "/libcublasLt.so" in line})
    return paths[0] if paths else "libcublasLt.so.13"


def config_of(library, algorithm):
    """Returns the fields of an algorithm; -1 where it has none."""
    config = []
    for _, attribute, kind in FIELDS:
        value, written = kind(), c_size_t()
        status = library.cublasLtMatmulAlgoConfigGetAttribute(
            byref(algorithm),
            CONSTANTS[f"CUBLASLT_ALGO_CONFIG_{attribute}"],
            byref(value),
            ctypes.sizeof(value),
            byref(written),
        )
        config.append(value.value if status == 0 else -1)
    return tuple(config)


class Library:
    """cuBLASLt on the current CUDA device; PyTorch holds the memory."""

    LARGEST_WORKSPACE = 64 << 20

    def __init__(self, path=None):
        import torch

        self._torch = torch
        torch.cuda.init()
        self._one = torch.ones(1, device="cuda")  # also makes the context
        self._workspace = torch.empty(self.LARGEST_WORKSPACE, dtype=torch.uint8, device="cuda")
        self.path = path or mapped_library()
        self._lt = loaded(self.path)
        self._handle = c_void_p()
        self._check(self._lt.cublasLtCreate(byref(self._handle)), "cublasLtCreate")
        self._operations, self._preferences, self._configs = {}, {}, {}
        self.refusals = Counter()  # reasons for which the heuristic had no plan

    def _text(self, status):
        return (self._lt.cublasLtGetStatusString(status) or b"unknown status").decode()

    def _check(self, status, call):
        if status:
            raise LibraryError(f"{call}: {self._text(status)}")

    def environment(self):
        torch = self._torch
        version = self._lt.cublasLtGetVersion()
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
        driver = subprocess.run(query, capture_output=True, text=True).stdout if shutil.which(query[0]) else "unknown"
        return {
            "library": self.path.rsplit("/", 1)[-1],
            "cublaslt": f"{version // 10000}.{version // 100 % 100}.{version % 100}",
            "card": torch.cuda.get_device_name(),
            "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
            "driver": driver.strip(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
        }

    # ---- Descriptions ----

    def _operation(self, kind):
        if kind.name not in self._operations:
            integers = kind.operand == "int8"
            compute = CONSTANTS["CUBLAS_COMPUTE_32I" if integers else "CUBLAS_COMPUTE_32F"]
            scale = CONSTANTS["CUDA_R_32I" if integers else "CUDA_R_32F"]
            operation = c_void_p()
            self._check(self._lt.cublasLtMatmulDescCreate(byref(operation), compute, scale), "cublasLtMatmulDescCreate")
            settings = [("TRANSA", c_int32(CONSTANTS["CUBLAS_OP_T"])), ("TRANSB", c_int32(CONSTANTS["CUBLAS_OP_N"]))]
            if kind.operand == "e4m3fn":
                settings += [
                    ("A_SCALE_POINTER", c_void_p(self._one.data_ptr())),
                    ("B_SCALE_POINTER", c_void_p(self._one.data_ptr())),
                    ("FAST_ACCUM", c_int8(kind.fast)),
                ]
            for name, value in settings:
                status = self._lt.cublasLtMatmulDescSetAttribute(
                    operation, CONSTANTS[f"CUBLASLT_MATMUL_DESC_{name}"], byref(value), ctypes.sizeof(value)
                )
                self._check(status, f"cublasLtMatmulDescSetAttribute {name}")
            self._operations[kind.name] = operation
        return self._operations[kind.name]

    def _preference(self, workspace):
        if workspace not in self._preferences:
            preference, value = c_void_p(), c_uint64(workspace)
            self._check(self._lt.cublasLtMatmulPreferenceCreate(byref(preference)), "cublasLtMatmulPreferenceCreate")
            name = CONSTANTS["CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES"]
            status = self._lt.cublasLtMatmulPreferenceSetAttribute(preference, name, byref(value), 8)
            self._check(status, "cublasLtMatmulPreferenceSetAttribute")
            self._preferences[workspace] = preference
        return self._preferences[workspace]

    def _layouts(self, kind, shape):
        m, n, k = shape
        operand, result = CONSTANTS[FORMATS[kind.operand]], CONSTANTS[FORMATS[kind.result]]
        layouts = []
        for form, rows, columns in ((operand, k, n), (operand, k, m), (result, n, m)):
            layout = c_void_p()
            status = self._lt.cublasLtMatrixLayoutCreate(byref(layout), form, rows, columns, rows)
            self._check(status, "cublasLtMatrixLayoutCreate")
            layouts.append(layout)
        return layouts

    def _destroy(self, layouts):
        for layout in layouts:
            self._lt.cublasLtMatrixLayoutDestroy(layout)

    def _plan(self, result):
        key = bytes(result.algorithm)
        if key not in self._configs:
            self._configs[key] = config_of(self._lt, result.algorithm)
        return Plan(key, self._configs[key], result.workspace, result.waves)

    # ---- Plans ----

    def plan(self, kind, shape, workspace):
        """Returns the heuristic's first plan for A (m x k) times B (n x k) transposed, or None if it has none."""
        layouts = self._layouts(kind, shape)
        result, found = HeuristicResult(), c_int()
        status = self._lt.cublasLtMatmulAlgoGetHeuristic(
            self._handle,
            self._operation(kind),
            *layouts,
            layouts[2],
            self._preference(workspace),
            1,
            byref(result),
            byref(found),
        )
        self._destroy(layouts)
        if status or result.state or not found.value:
            self.refusals[self._text(status or result.state)] += 1
            return None
        return self._plan(result)

    def forced(self, kind, shape, plan, splits, reduction="COMPUTE_TYPE"):
        """Returns the plan with another number of splits, or None if the library refuses it."""
        algorithm = Algorithm.from_buffer_copy(plan.algorithm)
        scheme = CONSTANTS[f"CUBLASLT_REDUCTION_SCHEME_{reduction if splits > 1 else 'NONE'}"]
        for name, value in (("SPLITK_NUM", c_int32(splits)), ("REDUCTION_SCHEME", c_uint32(scheme))):
            attribute = CONSTANTS[f"CUBLASLT_ALGO_CONFIG_{name}"]
            if self._lt.cublasLtMatmulAlgoConfigSetAttribute(byref(algorithm), attribute, byref(value), 4):
                return None
        layouts = self._layouts(kind, shape)
        result = HeuristicResult()
        status = self._lt.cublasLtMatmulAlgoCheck(
            self._handle, self._operation(kind), *layouts, layouts[2], byref(algorithm), byref(result)
        )
        self._destroy(layouts)
        if status or result.workspace > self.LARGEST_WORKSPACE:
            return None
        return Plan(bytes(algorithm), config_of(self._lt, algorithm), result.workspace, result.waves)

    # ---- Products ----

    def upload(self, kind, codes):
        """Returns an operand of codes on the device."""
        as_torch = {1: np.uint8, 2: np.int16}[kind.bytes]
        return self._torch.from_numpy(np.ascontiguousarray(codes).view(as_torch)).cuda()

    def filled(self, kind, rows, columns, code):
        """Returns an operand on the device all of whose codes are `code`."""
        types = {1: self._torch.uint8, 2: self._torch.int16}
        return self._torch.full((rows, columns), code, dtype=types[kind.bytes], device="cuda")

    def multiply(self, kind, held, plan):
        """Returns A B^T by exactly this plan, as codes of the result, (m, n)."""
        torch = self._torch
        (m, k), n = held[0].shape, held[1].shape[0]
        size = np.dtype(kind.result_dtype).itemsize
        out = torch.full((m, n * size), 0xA5, dtype=torch.uint8, device="cuda")  # to see what is not written
        one, zero = (c_int32(1), c_int32(0)) if kind.operand == "int8" else (c_float(1), c_float(0))
        algorithm = Algorithm.from_buffer_copy(plan.algorithm)
        layouts = self._layouts(kind, (m, n, k))
        status = self._lt.cublasLtMatmul(
            self._handle,
            self._operation(kind),
            byref(one),
            held[1].data_ptr(),
            layouts[0],
            held[0].data_ptr(),
            layouts[1],
            byref(zero),
            out.data_ptr(),
            layouts[2],
            out.data_ptr(),
            layouts[2],
            byref(algorithm),
            self._workspace.data_ptr(),
            self.LARGEST_WORKSPACE,
            torch.cuda.current_stream().cuda_stream,
        )
        self._destroy(layouts)
        self._check(status, f"cublasLtMatmul {kind.name} {(m, n, k)} {plan.config}")
        return out.cpu().numpy().view(kind.result_dtype)

    def torch_product(self, kind, held):
        """Returns the same product by PyTorch, or None if PyTorch refuses it."""
        torch = self._torch
        results = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
        try:
            if kind.operand == "int8":
                out = torch._int_mm(held[0].view(torch.int8), held[1].view(torch.int8).t())
            elif kind.operand == "e4m3fn":
                x, y = (held_one.view(torch.float8_e4m3fn) for held_one in held)
                one, form = self._one.reshape(()), results[kind.result]
                out = torch._scaled_mm(x, y.t(), one, one, out_dtype=form, use_fast_accum=kind.fast)
            else:
                x, y = (held_one.view(results[kind.operand]) for held_one in held)
                wider = {"out_dtype": torch.float32} if kind.result == "fp32" else {}
                out = torch.mm(x, y.t(), **wider)
        except RuntimeError:
            return None
        out = out.contiguous().view(torch.uint8).cpu().numpy()
        return out.view(kind.result_dtype)
