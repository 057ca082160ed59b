"""Files as other libraries write them, through the numsim program, against NumPy.

The .safetensors files are written and read here, by the format's own description.
"""

import csv
import io
import json
import os
import struct
import subprocess

import numpy as np
import pytest

from conftest import FP4, spread

RNG = np.random.default_rng(47)


@pytest.fixture
def numsim(tmp_path, monkeypatch):
    """Runs the program in an empty folder; returns what it prints."""
    program = os.environ.get("NUMSIM_PROGRAM")
    if not program:
        pytest.skip("NUMSIM_PROGRAM is not set: this build has no numsim program")
    monkeypatch.chdir(tmp_path)

    def run(line, code=0):
        done = subprocess.run([program, *line.split()], capture_output=True, text=True)
        assert done.returncode == code, (line, done.stdout, done.stderr)
        return done.stdout + done.stderr

    return run


def write(path, **tensors):
    """Writes tensors given as (dtype, shape, array or bytes)."""
    head, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        raw = raw if isinstance(raw, bytes) else raw.tobytes()
        name = name.replace("__", ".")
        offsets = [len(data), len(data) + len(raw)]
        head[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """Returns {name: (dtype, shape, bytes)}, and the metadata under __metadata__."""
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    head, data = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    for name, entry in head.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            head[name] = entry["dtype"], entry["shape"], data[begin:end]
    return head


def floats(raw, shape):
    return np.frombuffer(raw, np.float32).reshape(shape)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def halves(codes):
    return codes[..., 0::2] | codes[..., 1::2] << 4


def decoded(numsim, codes, format):
    np.save("codes_.npy", codes)
    numsim(f"cast codes_.npy values_.npy --format {format} --decode")
    return np.load("values_.npy")


def test_a_tensor_that_cannot_be_read_does_not_stop_stats(numsim):
    w = np.array([1.5, 2, 3, 0.78], np.float32)
    write(
        "m.safetensors",
        ids=("I64", [2], bytes(16)),
        w=("F32", [2, 2], w),
        codes=("U8", [2], b"\x38\x3c"),
        waves=("C64", [1], bytes(8)),
        mask=("BOOL", [2], bytes(2)),
    )
    out = numsim("stats m.safetensors --csv out.csv")
    assert "not measured: 4 tensors" in out
    for name in ("ids", "codes", "waves", "mask"):
        assert f"\n  {name} " in out
    assert [row["tensor"] for row in rows(open("out.csv").read())] == ["w"] * 4
    assert "not measured: 4 tensors" in numsim("stats m.safetensors --csv -")
    out = numsim("stats m.safetensors --from e4m3fn --format bf16")
    assert "not measured: 3 tensors" in out and "\ncodes " in out
    assert "'ids' is I64: integers" in numsim("stats m.safetensors --tensor ids", 2)
    write("none.safetensors", a=("I32", [1], bytes(4)), b=("I16", [1], bytes(2)))
    assert "none of 2 tensors can be measured" in numsim("stats none.safetensors", 2)


@pytest.mark.parametrize(
    ("dtype", "format", "bits"),
    [
        ("F8_E4M3", "e4m3fn", 8),
        ("F8_E5M2", "e5m2", 8),
        ("F8_E4M3FNUZ", "e4m3fnuz", 8),
        ("F8_E5M2FNUZ", "e5m2fnuz", 8),
        ("F8_E8M0", "e8m0fnu", 8),
        ("I8", "int8", 8),
        ("F6_E2M3", "e2m3fn", 6),
        ("F6_E3M2", "e3m2fn", 6),
        ("F4", "e2m1fn", 4),
        ("BF16", "bf16", 16),
        ("F16", "fp16", 16),
    ],
)
def test_dtypes_of_safetensors_are_formats(numsim, dtype, format, bits):
    codes = np.arange(2**bits, dtype=np.uint16 if bits == 16 else np.uint8).reshape(4, -1)
    stream = sum(int(code) << bits * i for i, code in enumerate(codes.flat)) if bits < 8 else None
    raw = stream.to_bytes(codes.size * bits // 8, "little") if bits < 8 else codes.tobytes()
    write("m.safetensors", x=(dtype, codes.shape, raw))
    expected = decoded(numsim, codes, format)
    numsim(f"cast m.safetensors v.npy --format {format} --decode")
    assert np.array_equal(np.load("v.npy"), expected, equal_nan=True)
    finite = np.where(np.isfinite(expected), np.abs(expected), 0)
    row = rows(numsim("stats m.safetensors --format fp32 --csv -"))[0]
    assert float(row["absmax"]) == finite.max() and row["sqnr_db"] == "inf"
    np.save("w.npy", expected)
    if np.isfinite(expected).all() and expected.min() > -128:  # int8 has no -128
        numsim(f"cast w.npy q.safetensors --format {format}")
        stored = read("q.safetensors")["w"]
        assert stored[:2] == (dtype, list(codes.shape))
        numsim(f"cast q.safetensors back.npy --format {format} --decode")
        assert np.array_equal(np.load("back.npy"), expected)


@pytest.mark.parametrize(
    ("descr", "format"),
    [("<f1", "e5m2"), ("<V1", "e4m3fn"), ("|V1", "e2m1fn"), ("<V2", "bf16"), ("|V2", "fp16")],
)
def test_raw_types_of_numpy_are_codes_of_a_named_format(numsim, descr, format):
    codes = np.array([1, 3, 7, 9, 12, 14], np.uint16 if descr.endswith("2") else np.uint8)
    expected = decoded(numsim, codes, format)
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (6,), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open("raw.npy", "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        file.write(codes.tobytes())
    numsim(f"cast raw.npy v.npy --format {format} --decode")
    assert np.array_equal(np.load("v.npy"), expected)
    row = rows(numsim(f"stats raw.npy --from {format} --format fp32 --csv -"))[0]
    assert float(row["absmax"]) == np.abs(expected).max()
    assert "--from names it" in numsim("stats raw.npy", 2)


def test_int8_in_the_type_int8(numsim):
    codes = np.array([[28, -12, -101, 28, -128]], np.int8)
    np.save("a.npy", codes)
    np.save("b.npy", np.array([[1, 2, -3, 4, 0]], np.int8))
    assert (decoded(numsim, codes, "int8") == codes).all()
    numsim("gemm a.npy b.npy o.npy")
    assert np.load("o.npy")[0, 0] == 419
    assert rows(numsim("stats a.npy --format fp32 --csv -"))[0]["absmax"] == "128"
    np.save("w.npy", np.array([[1, -3]], np.int8))
    np.save("u.npy", np.array([[1, 1]], np.float32))
    numsim("update w.npy u.npy n.npy --format int8 --rule naive --lr 1")
    assert (np.load("n.npy").view(np.int8) == [[2, -2]]).all()


def test_stacks_have_scales_for_each_matrix(numsim):
    x = RNG.standard_normal((3, 40, 50)).astype(np.float32)
    x *= np.array([1e-3, 1, 100], np.float32)[:, None, None]
    np.save("x.npy", x)
    for layout in ("tensor", "row", "column", "block:32", "tile:16x16"):
        arguments = f"--format int8 --granularity {layout} --csv -"
        whole = rows(numsim(f"stats x.npy {arguments}"))[0]
        assert (whole["matrices"], whole["matrix"]) == ("3", "40x50")
        error, lost = 0.0, 0.0
        for matrix in x:
            np.save("m.npy", matrix)
            row = rows(numsim(f"stats m.npy {arguments}"))[0]
            error += float(row["relative_error"]) ** 2 * (matrix.astype(float) ** 2).sum()
            lost += float(row["underflow_share"]) / 3
        total = (x.astype(float) ** 2).sum()
        assert abs(float(whole["relative_error"]) / (error / total) ** 0.5 - 1) < 1e-9
        assert abs(float(whole["underflow_share"]) - lost) < 1e-12
    np.save("flat.npy", x.reshape(3, -1))
    first = rows(numsim("stats x.npy --format int8 --granularity tile:2x7 --fold first --csv -"))[0]
    flat = rows(numsim("stats flat.npy --format int8 --granularity tile:2x7 --csv -"))[0]
    assert first["sqnr_db"] == flat["sqnr_db"] and first["matrix"] == "3x2000"
    assert "3 matrices of 40x50" in numsim("stats x.npy --format int8")
    np.save("conv.npy", x.reshape(40, 50, 3))
    assert "one matrix of 40x150" in numsim("stats conv.npy --format int8")
    assert "--fold" in numsim("stats x.npy --fold last", 2)
    for layout, each in (("row", (40, 1)), ("tile:16x16", (3, 4))):
        numsim(f"cast x.npy q.npy --format int8 --granularity {layout} --scales-out s.npy")
        assert np.load("s.npy").shape == (3, *each)
        for i, matrix in enumerate(x):
            np.save("m.npy", matrix)
            numsim(f"cast m.npy qm.npy --format int8 --granularity {layout} --scales-out sm.npy")
            assert (np.load("qm.npy") == np.load("q.npy")[i]).all()
            assert (np.load("sm.npy") == np.load("s.npy")[i]).all()


def test_outputs_are_what_their_extension_says(numsim):
    np.save("x.npy", np.ones((2, 2), np.float32))
    np.save("u.npy", np.ones((2, 2), np.float32))
    for line in (
        "cast x.npy OUT --format e4m3fn",
        "cast x.npy q.npy --format e4m3fn --scales-out OUT",
        "gemm x.npy x.npy OUT --format fp32",
        "update x.npy u.npy OUT --format bf16 --rule naive --lr 1",
        "dequantize x.npy OUT --scales x.npy --format bf16",
    ):
        for out in ("o.bin", "o", "o.npz"):
            assert ".npy or .safetensors" in numsim(line.replace("OUT", out), 2)
            assert not os.path.exists(out)
    line = "update x.npy u.npy o.npy --format bf16 --rule kahan --lr 1 --state-out OUT"
    assert ".safetensors" in numsim(line.replace("OUT", "s.npy"), 2)
    numsim("gemm x.npy x.npy o.safetensors --format fp32")
    assert floats(read("o.safetensors")["o"][2], (2, 2)).tolist() == [[2, 2], [2, 2]]
    write("two.safetensors", a=("F32", [1], bytes(4)), b=("F32", [1], bytes(4)))
    line = "cast two.safetensors:a two.safetensors --format bf16"
    assert "other tensors" in numsim(line, 2) and len(read("two.safetensors")) == 2
    assert "choose from: a, b" in numsim("cast two.safetensors o.npy --format bf16", 2)
    write("odd.safetensors", a=("F32", [3], bytes(12)))
    assert "whole bytes" in numsim("cast odd.safetensors o.safetensors --format e2m1fn", 2)


@pytest.mark.parametrize(
    ("name", "shape", "height", "width", "layout"),
    [
        ("w_scale", (), 300, 261, ""),
        ("w_scale", (300, 1), 1, 261, ""),
        ("w_scale", (300,), 1, 261, ""),
        ("w_scale", (1, 261), 300, 1, ""),
        ("w_scale_inv", (3, 3), 128, 128, ""),
        ("w_scale", (43, 6), 7, 50, "tile:7x50"),
        ("w_scale", (300, 9), 1, 32, "block:32"),
    ],
)
def test_checkpoints_that_are_quantised(numsim, name, shape, height, width, layout):
    codes = RNG.integers(0, 127, (300, 261)).astype(np.uint8)
    scales = RNG.random(shape, np.float32)
    each = spread(scales.reshape(-(-300 // height), -(-261 // width)), height, width, codes.shape)
    values = decoded(numsim, codes, "e4m3fn")
    expected = values * each
    write(
        "q.safetensors",
        w=("F8_E4M3", codes.shape, codes),
        **{name: ("F32", shape, scales)},
        n=("BF16", (3,), bytes(6)),
        ids=("I64", (1,), bytes(8)),
    )
    named = f" --granularity {layout}" if layout else ""
    numsim("dequantize q.safetensors o.safetensors" + named)
    out = read("o.safetensors")
    assert set(out) == {"w", "n", "ids"}
    assert (floats(out["w"][2], codes.shape) == expected).all()
    numsim("dequantize q.safetensors:w o.npy" + named)
    assert (np.load("o.npy") == expected).all()
    np.save("c.npy", codes)
    np.save("s.npy", scales)
    apart = named or (" --granularity tile:128x128" if height == 128 else "")
    numsim("dequantize c.npy o.npy --scales s.npy --format e4m3fn" + apart)
    assert (np.load("o.npy") == expected).all()

    original = (expected * np.float32(1.01)).view(np.uint32) >> 16 << 16  # bf16 is the upper half
    upper = (original >> 16).astype(np.uint16)
    original = original.view(np.float32).astype(float)
    write("bf16.safetensors", w=("BF16", codes.shape, upper), n=("BF16", (3,), bytes(6)))
    error = expected.astype(float) - original
    sqnr = 10 * np.log10((original**2).sum() / (error**2).sum())
    out = numsim("stats q.safetensors --against bf16.safetensors --csv -" + named)
    row = rows(out)[0]
    assert row["tensor"] == "w" and row["scale"] == "given"
    assert abs(float(row["sqnr_db"]) - sqnr) < 1e-9
    assert "not measured: 1 tensor\n  ids" in out

    x = RNG.standard_normal((4, 261)).astype(np.float32)
    x = (x.view(np.uint32) >> 16 << 16).view(np.float32)
    np.save("x.npy", x)
    gemm = "gemm x.npy {} o.npy --format bf16 --format-b e4m3fn --accumulate exact"
    numsim(gemm.format("q.safetensors:w") + named.replace("granularity", "granularity-b"))
    exact = x.astype(float) @ (values.astype(float) * each).T
    got = np.load("o.npy")
    assert np.abs(got - exact).max() < 2e-6 * np.abs(exact).max()  # segments are added in float32
    apart = apart.replace("granularity", "granularity-b")
    if shape == (1, 261):
        apart = " --granularity-b column"
    numsim(gemm.format("c.npy") + " --scale-b s.npy" + apart)
    assert (np.load("o.npy") == got).all()


def test_fp4_of_mx_and_nvfp4(numsim):
    for columns in (70, 64):
        codes = RNG.integers(0, 16, (5, columns)).astype(np.uint8)
        packed = halves(codes)
        powers = RNG.integers(100, 140, (5, -(-columns // 32))).astype(np.uint8)
        expected = FP4[codes] * spread(np.exp2(powers - 127.0), 1, 32, codes.shape)
        for dtype, shape in (("F4", codes.shape), ("U8", packed.shape)):
            for scale_type in ("F8_E8M0", "U8"):
                write(
                    "m.safetensors",
                    w=(dtype, shape, packed),
                    w_scale=(scale_type, powers.shape, powers),
                )
                numsim("dequantize m.safetensors o.npy")
                assert (np.load("o.npy") == expected).all()
        groups = RNG.integers(1, 120, (5, -(-columns // 16))).astype(np.uint8)
        factor = np.float32(0.0123)
        scales = decoded(numsim, groups, "e4m3fn") * factor
        expected = FP4[codes] * spread(scales, 1, 16, codes.shape)
        write(
            "m.safetensors",
            w=("U8", packed.shape, packed),
            w_scale=("F8_E4M3", groups.shape, groups),
            w_scale_2=("F32", (), factor),
        )
        numsim("dequantize m.safetensors:w o.npy")
        assert (np.load("o.npy") == expected).all()
        divisor = np.float32(80)
        scales = decoded(numsim, groups, "e4m3fn") / divisor
        expected = FP4[codes] * spread(scales, 1, 16, codes.shape)
        write(
            "m.safetensors",
            w_packed=("U8", packed.shape, packed),
            w_scale=("F8_E4M3", groups.shape, groups),
            w_global_scale=("F32", (1,), divisor),
        )
        numsim("dequantize m.safetensors o.npy")
        assert (np.load("o.npy") == expected).all()
    codes = RNG.integers(0, 16, (2, 3, 96)).astype(np.uint8)
    powers = RNG.integers(100, 140, (2, 3, 3)).astype(np.uint8)
    packed = halves(codes).reshape(2, 3, 3, 16)
    write("m.safetensors", w_blocks=("U8", packed.shape, packed), w_scales=("U8", (2, 3, 3), powers))
    numsim("dequantize m.safetensors o.npy")
    assert (np.load("o.npy") == FP4[codes] * np.repeat(np.exp2(powers - 127.0), 32, 2)).all()


def test_what_cast_writes_is_read_again(numsim):
    x = (RNG.standard_normal((30, 26)) * 0.05).astype(np.float32)
    np.save("x.npy", x)
    for layout in ("tensor", "column", "tile:4x5"):
        for format in ("int8", "e2m1fn", "e3m4", "bf16"):
            scaled = f"--format {format} --granularity {layout}"
            numsim(f"cast x.npy q.safetensors {scaled} --scales-out q.safetensors")
            numsim(f"cast x.npy q.npy {scaled} --scales-out s.npy")
            numsim("dequantize q.safetensors a.npy")
            numsim(f"dequantize q.npy b.npy --scales s.npy {scaled}")
            assert (np.load("a.npy") == np.load("b.npy")).all()
            against = rows(numsim("stats q.safetensors --against x.npy --csv -"))[0]
            fresh = rows(numsim(f"stats x.npy {scaled} --scale absmax --csv -"))[0]
            for key in ("sqnr_db", "max_error", "mean_error", "underflow_share", "overflow_share"):
                assert against[key] == fresh[key]
            numsim("gemm q.safetensors q.safetensors a.npy")
            options = f"--granularity-a {layout} --granularity-b {layout} --format {format}"
            numsim(f"gemm q.npy q.npy b.npy --scale-a s.npy --scale-b s.npy {options}")
            assert np.array_equal(np.load("a.npy"), np.load("b.npy"), equal_nan=True)


def test_what_does_not_fit_is_refused(numsim):
    codes = ("F8_E4M3", (300, 300), bytes(90000))
    for scale, shape, message in (
        ("w_scale_inv", (2, 3), "tile:128x128 has scales of shape (3, 3)"),
        ("w_scale", (3, 3), "do not tell which codes share a scale"),
    ):
        size = 4 * shape[0] * shape[1]
        write("m.safetensors", w=codes, **{scale: ("F32", shape, bytes(size))})
        assert message in numsim("dequantize m.safetensors o.npy", 2)
        assert message in numsim("gemm m.safetensors m.safetensors o.npy", 2)
    write("m.safetensors", w=("U8", (3, 3), bytes(9)), w_scale=("F32", (3, 1), bytes(12)))
    assert "--format" in numsim("dequantize m.safetensors o.npy", 2)
    write("m.safetensors", w=codes, w_scale=("F64", (), np.array(1e39)))
    assert "which float32 does not hold" in numsim("dequantize m.safetensors o.npy", 2)
    write("m.safetensors", w=("F32", (3,), bytes(12)))
    assert "no tensor NAME of codes has scales" in numsim("dequantize m.safetensors o.npy", 2)
    write("other.safetensors", w=("F32", (4,), bytes(16)))
    out = numsim("stats m.safetensors --against other.safetensors", 2)
    assert "shape (3,), but (4,)" in out
