#!/usr/bin/env python3
"""Numbers that enter the program are rounded once, from their exact values, compared with fractions.

    tests/apps/exact_numbers.py build/release/apps/numsim

Needs nothing but Python. The reference shares no code with numsim: tests/python/grids.py.
"""
import csv
import io
import math
import random
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import grids  # noqa: E402

GRIDS = {"e4m3fn": grids.E4M3, "e2m1fn": grids.E2M1, "e3m2fn": grids.E3M2, "e2m3fn": grids.E2M3}
GRIDS["fp16"] = grids.Grid(5, 10, 15, top_codes_left_out=1024)
DRAW = random.Random(47)
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def numsim(*arguments, stdin=None, code=0):
    done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True, check=False)
    check(done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if code == 0 else done.stderr


def float32(x):
    """The fraction x > 0 rounded to the nearest float32, ties to even, as a fraction."""
    exponent = max(math.floor(log2_floor(x)) - 23, -149)
    unit = Fraction(2) ** exponent
    below = x / unit // 1
    rest = x / unit - below
    return (below + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1))) * unit


def log2_floor(x):
    """The e with 2^e <= x < 2^(e+1)."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def npy(path, descr, data, shape):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


# --- inspect


def decimal(x):
    """The exact decimal text of a dyadic fraction."""
    places = x.denominator.bit_length() - 1
    digits = str(abs(x.numerator) * 5**places).rjust(places + 1, "0")
    text = digits[: len(digits) - places] + ("." + digits[len(digits) - places :] if places else "")
    return ("-" if x < 0 else "") + text


def codes_of(text, format):
    """{rounding: code} of `inspect`; the saturating line where it differs."""
    lines = numsim("inspect", format, "--", text).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("rounding"))
    codes = {}
    for line in lines[begin + 1 :]:
        words = line.split()
        if not words:
            break
        codes[" ".join(w for w in words[:2] if not w.startswith("0x"))] = int(
            next(w for w in words if w.startswith("0x")), 16
        )
    return codes, lines


def inspect_one(text, x, format):
    grid = GRIDS[format]
    codes, lines = codes_of(text, format)
    for mode in grids.MODES:
        right = grid.round(x, mode, negative_zero=text.startswith("-"))
        got = codes.get(mode + " saturate", codes.get(mode))
        check(got == right, f"inspect {format} {text[:80]}: {mode} {got:#x}, right {right:#x}")
    m = abs(x)
    if m in grid.magnitudes or m > grid.magnitudes[-1]:
        check(any(line.startswith("neighbours") for line in lines), f"{format} {text[:80]}: neighbours")
        return
    low = max(v for v in grid.magnitudes if v < m)
    high = min(v for v in grid.magnitudes if v > m)
    share = (m - low) / (high - low)
    count = next(line for line in lines if line.startswith("  variant a")).split("= ")[-1].split(" /")[0]
    check(int(count) == share * 2**32 // 1, f"inspect {format} {text[:80]}: {count} of 2^32")


def test_inspect():
    for format in ("e4m3fn", "e2m1fn", "e3m2fn", "e2m3fn", "fp16"):
        grid = GRIDS[format]
        finite = grid.magnitudes
        for _ in range(8):
            i = DRAW.randrange(len(finite) - 1)
            middle = (finite[i] + finite[i + 1]) / 2
            base = DRAW.choice([middle, finite[i], finite[i + 1], Fraction(0)])
            tiny = Fraction(2) ** -DRAW.choice([30, 60, 70, 200, 1100, 3000])
            x = base + DRAW.choice([-1, 0, 1]) * tiny
            x *= DRAW.choice([-1, 1])
            if x == 0:
                continue
            inspect_one(decimal(x), x, format)
            # The same as a sum of two texts, in decimal and in hexadecimal digits.
            rest = x - base
            hexadecimal = f"0x{abs(rest.numerator):x}p-{rest.denominator.bit_length() - 1}"
            inspect_one(decimal(base) + ("-" if rest < 0 else "+") + hexadecimal, x, format)
    for text, x in [
        ("1e-400", Fraction(10) ** -400),
        ("1e-100000", Fraction(10) ** -100000),
        ("-1e-100000", -(Fraction(10) ** -100000)),
        ("1e400", Fraction(10) ** 400),
        ("0x1.0000000000000000000000000001p-3", Fraction(1, 8) + Fraction(1, 2**115)),
        ("0.1", Fraction(1, 10)),
        ("0." + "3" * 4000, Fraction(int("3" * 4000), 10**4000)),
        ("1.0625" + "0" * 5000 + "1", Fraction(17, 16) + Fraction(1, 10**5005)),
        ("1-1e-50", 1 - Fraction(1, 10**50)),
        ("1e300-1e300", Fraction(0)),
        ("1e100000-1e100000", Fraction(0)),
        ("1.0625+1e-90000", Fraction(17, 16) + Fraction(1, 10**90000)),
        ("1.0625-1e-90000", Fraction(17, 16) - Fraction(1, 10**90000)),
    ]:
        for format in ("e4m3fn", "fp16"):
            inspect_one(text, x, format)
    for text in ("", "1e", "0x", "1..2", "1+2+3", "one", "1e+", "--1", "1 ", "1" * 100001):
        numsim("inspect", "e4m3fn", "--", text, code=2)


# --- stats and cast of float64 files


def measured(path, format, extra):
    out = numsim("stats", str(path), "--format", format, "--csv", "-", *extra)
    return next(csv.DictReader(io.StringIO(out)))


def close(a, b):
    return abs(a - b) <= 1e-12 * max(abs(a), abs(b)) or a == b


def check_stats(path, values, format, scaled):
    row = measured(path, format, ["--scale", "absmax" if scaled else "none"])
    grid = GRIDS[format]
    most = max(abs(x) for x in values)
    top = grid.magnitudes[-1]
    scale = float32(most / top) if scaled else Fraction(1)
    inverse = float32(top / most) if scaled else Fraction(1)
    errors = [grid.value(grid.round(x * inverse, "rne")) * scale - x for x in values]
    name = f"stats {format} scaled={scaled}"
    check(float(row["absmax"]) == float(most), f"{name}: absmax {row['absmax']}")
    check(int(row["nonfinite"]) == 0, f"{name}: nonfinite {row['nonfinite']}")
    mean = float(sum(errors) / len(errors))
    check(abs(float(row["mean_error"]) - mean) <= 1e-12 * float(most), f"{name}: {row['mean_error']}, {mean}")
    check(close(float(row["max_error"]), float(max(map(abs, errors)))), f"{name}: max {row['max_error']}")
    square = sum(e * e for e in errors) / sum(x * x for x in values)
    check(
        abs(Fraction(row["relative_error"]) ** 2 - square) <= Fraction(1, 10**10) * square,
        f"{name}: relative {row['relative_error']}",
    )
    zero = sum(1 for x, e in zip(values, errors) if x != 0 and x + e == 0)
    check(float(row["underflow_share"]) == zero / len(values), f"{name}: underflow {row['underflow_share']}")


def test_float64_files(folder):
    for format in ("e4m3fn", "e2m1fn", "e2m3fn"):
        finite = GRIDS[format].magnitudes
        values = []
        for _ in range(40):
            i = DRAW.randrange(len(finite) - 1)
            middle = float((finite[i] + finite[i + 1]) / 2)
            nudge = DRAW.choice([-1, 0, 1]) * 2.0 ** -DRAW.randrange(30, 46)
            values.append(DRAW.choice([-1, 1]) * middle * (1 + nudge))
        path = folder / f"{format}.npy"
        npy(path, "<f8", struct.pack(f"<{len(values)}d", *values), (len(values),))
        exact = [Fraction(x) for x in values]
        check_stats(path, exact, format, False)
        check_stats(path, exact, format, True)
        out = folder / "codes.npy"
        numsim("cast", str(path), str(out), "--format", format)
        got = out.read_bytes()[-len(values) :]
        right = bytes(GRIDS[format].round(x, "rne", math.copysign(1, v) < 0) for x, v in zip(exact, values))
        check(got == right, f"cast of float64 to {format}")
    for descr, code, most in (("<i2", "h", 15), ("<i4", "i", 31), ("<i8", "q", 63), ("<u8", "Q", 64)):
        values = [DRAW.getrandbits(DRAW.randrange(1, most + 1)) for _ in range(40)]
        ties = [(2 * DRAW.randrange(4, 8) + 1) << DRAW.randrange(most - 5) for _ in range(40)]
        values += [tie + DRAW.choice([-1, 0, 1]) for tie in ties]
        if code != "Q":
            values = [DRAW.choice([-1, 1]) * x for x in values] + [-(1 << most)]
        path = folder / "integers.npy"
        npy(path, descr, struct.pack(f"<{len(values)}{code}", *values), (len(values),))
        for format in ("e4m3fn", "fp16"):
            out = folder / "codes.npy"
            numsim("cast", str(path), str(out), "--format", format, "--overflow", "saturate")
            bits = 8 if format == "e4m3fn" else 16
            raw = out.read_bytes()[-len(values) * bits // 8 :]
            got = struct.unpack(f"<{len(values)}{'B' if bits == 8 else 'H'}", raw)
            right = tuple(GRIDS[format].round(Fraction(x), "rne") for x in values)
            check(got == right, f"cast of {descr} to {format}")
    wide = [1e300, 1.0, -2.0, 5e-324, 1e-200, -1e308]
    path = folder / "wide.npy"
    npy(path, "<f8", struct.pack("<6d", *wide), (6,))
    row = measured(path, "bf16", [])
    check(row["nonfinite"] == "0" and float(row["absmax"]) == 1e308, f"stats of 1e308: {row}")
    check(float(row["relative_error"]) == 1 and float(row["overflow_share"]) == 2 / 6, f"wide: {row}")
    tiny = [1.0, 1e-200]
    npy(path, "<f8", struct.pack("<2d", *tiny), (2,))
    row = measured(path, "bf16", [])
    check(close(float(row["relative_error"]), 1e-200) and float(row["max_error"]) == 1e-200, f"tiny: {row}")
    check(close(float(row["sqnr_db"]), 4000), f"tiny: {row}")
    npy(path, "<f8", struct.pack("<6d", *wide), (6,))
    message = numsim("stats", str(path), "--format", "e4m3fn", code=2)
    check("wide.npy" in message and "1e+308" in message and "e4m3fn" in message, message)


# --- dot products with block scales


def value_e8m0(code):
    return Fraction(2) ** (code - 127)


def dot_cases(format, scale, length, tensor, mode="exact"):
    arguments = ["oracle", "gen", "--op", "dot", "--format", format, "--scale-format", scale, "--to", "fp32"]
    arguments += ["--length", str(length), "--level", "random:300", "--results", "--accumulation-mode", mode]
    if tensor:
        arguments.append("--tensor-scale")
    return [[int(word, 16) for word in line.split()] for line in numsim(*arguments).splitlines()]


def as_float(code):
    return struct.unpack("<f", struct.pack("<I", code))[0]


def test_scaled_dots():
    for format, scale, length, block, tensor in [
        ("e2m1fn", "e8m0fnu", 32, 32, False),
        ("e2m1fn", "e8m0fnu", 80, 32, False),
        ("e4m3fn", "e8m0fnu", 64, 32, False),
        ("e2m1fn", "e4m3fn", 32, 16, False),
        ("e2m1fn", "e4m3fn", 48, 16, True),
    ]:
        blocks = -(-length // block)
        cases = dot_cases(format, scale, length, tensor)
        finite = 0
        for row in cases:
            a, b = row[:length], row[length : 2 * length]
            scales = row[2 * length : 2 * length + 2 * blocks]
            factor = Fraction(1)
            if tensor:
                for code in row[2 * length + 2 * blocks : 2 * length + 2 * blocks + 2]:
                    factor *= Fraction(as_float(code))
            special = (0xFF if scale == "e8m0fnu" else 0x7F, 0xFF)
            if any(s in special for s in scales) or any(c & 0x7F == 0x7F for c in a + b):
                check(math.isnan(as_float(row[-2])), f"{format} {scale}: {row}")
                continue
            of = value_e8m0 if scale == "e8m0fnu" else grids.E4M3.value
            grid = GRIDS[format]
            total = sum(
                grid.value(a[i]) * grid.value(b[i]) * of(scales[i // block]) * of(scales[blocks + i // block])
                for i in range(length)
            )
            total *= factor
            if abs(total) >= Fraction(2) ** 127:
                continue
            finite += 1
            right = 0 if total == 0 else math.copysign(1, total) * float(float32(abs(total)))
            check(as_float(row[-2]) == right, f"{format} {scale}: {as_float(row[-2])}, right {right}")
        check(finite > 250, f"{format} {scale}: {finite} of {len(cases)} cases are finite")
        text = "\n".join(" ".join(f"{x:X}" for x in row) for row in cases)
        common = ["--op", "dot", "--format", format, "--scale-format", scale, "--to", "fp32"]
        common += ["--length", str(length)] + (["--tensor-scale"] if tensor else [])
        numsim("oracle", "check", *common, "--level", "random:300", stdin=text)
        wrong = text.replace(f"{cases[0][-2]:X}", f"{cases[0][-2] ^ 1:X}", 1)
        if wrong != text:
            done = subprocess.run(
                [PROGRAM, "oracle", "check", *common], input=wrong, capture_output=True, text=True, check=False
            )
            check(done.returncode == 1, f"oracle check of a wrong sum: exit {done.returncode}")


PROGRAM = sys.argv[1]
with tempfile.TemporaryDirectory() as name:
    test_inspect()
    test_float64_files(Path(name))
    test_scaled_dots()
for failure in failures[:20]:
    print(failure)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
