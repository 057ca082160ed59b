#!/usr/bin/env python3
"""Reads a pack of test vectors of any form, and judges a function with one of its files.

  read_pack.py PACK           digests and cases of every file
  read_pack.py PACK --judge   also judges `decode_e4m3fn` below with the file of convert from e4m3fn to fp32

PACK is a directory with a manifest.json. Needs NumPy for the form npy alone. Exits with 1 if a digest, a
number of cases or a result is wrong.
"""

import hashlib
import json
import math
import pathlib
import re
import struct
import sys


def cases_of(path, form, columns):
    """Yields the cases of a file as lists of integers, one for each column."""
    if form == "npy":
        import numpy

        yield from numpy.load(path).tolist()
        return
    if form == "json":
        yield from json.loads(path.read_text())["cases"]
        return
    separator = {"hex": " ", "csv": ",", "readmemh": "_"}[form]
    lines = path.read_text().splitlines()
    for line in lines[1 if form == "csv" else 0 :]:
        if line.startswith("//"):
            continue
        case = [int(word, 16) for word in line.split(separator)]
        assert len(case) == columns, f"{path}: {line}"
        yield case


def decode_e4m3fn(code):
    """The value of an OCP E4M3 code: bias 7, one NaN per sign, no infinity."""
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    if code & 0x7F == 0x7F:
        return math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, -9)
    return sign * math.ldexp(8 + mantissa, exponent - 10)


def judge(case):
    """Whether decode_e4m3fn has the result of the case: operand, float32 result, flags."""
    operand, result = case[:2]
    value = decode_e4m3fn(operand)
    if math.isnan(value):
        return re.fullmatch("[7f]fc00000", f"{result:08x}") is not None
    return struct.unpack(">I", struct.pack(">f", value))[0] == result


def main(folder, judging):
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["manifest_version"] == 1, "a newer pack than this reader"
    form, total, wrong = manifest["form"], 0, 0
    for file in manifest["files"]:
        path = folder / file["path"]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != file["sha256"]:
            sys.exit(f"{path}: SHA-256 is {digest}, the manifest says {file['sha256']}")
        cases = list(cases_of(path, form, len(file["columns"])))
        if len(cases) != file["cases"]:
            sys.exit(f"{path}: {len(cases)} cases, the manifest says {file['cases']}")
        total += len(cases)
        request = file["request"]
        if judging and request["operation"] == "convert" and "profile" not in request:
            if (request["format"], request["to"]) == ("e4m3fn", "fp32"):
                bad = sum(not judge(case) for case in cases)
                print(f"{file['path']}: {len(cases)} cases, {bad} wrong")
                wrong += bad
    print(f"{manifest['pack']} of numsim {manifest['numsim_version']}, form {form}: "
          f"{len(manifest['files'])} files, {total} cases")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--judge"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], len(sys.argv) == 3))
