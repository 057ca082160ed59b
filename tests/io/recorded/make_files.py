"""Writes the files of this folder: one of each kind that NumPy and the safetensors library write.

    pip install numpy==2.4.* safetensors==0.8.* ml_dtypes && python3 make_files.py

The bytes that numsim must read are 0, 1, 2, ... as elements of each type. PyTorch writes .safetensors files with the
same library, whose names of dtypes are used here.
"""
import ctypes
import json
import warnings
from pathlib import Path

import numpy
from safetensors import TensorSpec, serialize

FOLDER = Path(__file__).parent
warnings.simplefilter("ignore")  # numpy warns of headers in version 3.0


def save(name, array):
    numpy.save(FOLDER / f"{name}.npy", array)


def npy_files():
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                 "float64", "longdouble", "complex64", "complex128"):
        save(name, numpy.arange(6).reshape(2, 3).astype(name))
    for name in ("float16", "float32", "float64", "uint16", "uint32", "uint64"):
        save(f"big-{name}", numpy.arange(6).reshape(2, 3).astype(numpy.dtype(name).newbyteorder(">")))
    save("fortran", numpy.asfortranarray(numpy.arange(6, dtype="float32").reshape(2, 3)))
    save("fortran-3d", numpy.asfortranarray(numpy.arange(24, dtype="float64").reshape(2, 3, 4)))
    save("zero-dimensional", numpy.float32(3))
    save("empty", numpy.zeros((0, 3), dtype="float32"))
    save("rank-9", numpy.arange(8, dtype="float32").reshape(1, 2, 1, 2, 1, 2, 1, 1, 1))
    save("structured", numpy.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
    save("structured-utf8", numpy.zeros(2, dtype=[("é", "<f4")]))  # format version 3.0
    save("subarray", numpy.zeros(2, dtype=[("a", "<f4", (2,))]))
    save("bytes", numpy.array([b"ab", b"c"]))
    save("unicode", numpy.array(["ab", "c"]))
    save("void", numpy.zeros(2, dtype="V3"))
    save("datetime", numpy.array(["2026-01-01"], dtype="datetime64[D]"))
    save("timedelta", numpy.array([1], dtype="timedelta64[s]"))
    save("object", numpy.array([{"a": 1}], dtype=object))
    values = numpy.arange(6, dtype="float32").reshape(2, 3)
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(FOLDER / f"version-{version[0]}.npy", "wb") as file:
            numpy.lib.format.write_array(file, values, version=version)
    numpy.savez(FOLDER / "archive.npz", a=values)
    # bfloat16 of ml_dtypes, as JAX has it: NumPy writes a void type without its name.
    import ml_dtypes
    save("bfloat16", values.astype(ml_dtypes.bfloat16))


SIZES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
         "float16": 2, "float32": 4, "float64": 8, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
         "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "complex64": 8}


def write_safetensors(name, tensors, metadata=None):
    """Writes tensors {name: (dtype, shape)} with the bytes 0, 1, 2, ..."""
    buffers, specs = [], {}
    for key, (dtype, shape) in tensors.items():
        count = SIZES[dtype]
        for extent in shape:
            count *= extent
        buffers.append((ctypes.c_uint8 * max(1, count))(*range(count)))
        specs[key] = TensorSpec(dtype=dtype, shape=list(shape), data_ptr=ctypes.addressof(buffers[-1]),
                                data_len=count)
    (FOLDER / f"{name}.safetensors").write_bytes(serialize(specs, metadata))


def safetensors_files():
    for dtype in SIZES:
        write_safetensors(dtype, {"x": (dtype, (2, 3))}, {"format": "pt"})
    write_safetensors("many", {"scalar": ("float32", ()), "empty": ("float16", (0, 4)), "é": ("bfloat16", (2,)),
                               "w": ("float32", (2, 2)), "n": ("int64", (1,))})
    write_safetensors("none", {})
    # The index that tools write beside the shards of a large model.
    index = {"metadata": {"total_size": 48}, "weight_map": {"a": "model-00001-of-00002.safetensors",
                                                            "b": "model-00002-of-00002.safetensors"}}
    (FOLDER / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


npy_files()
safetensors_files()
