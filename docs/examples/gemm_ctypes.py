"""256 + 31 / 64 in e4m3fn, as an H200 adds it up.   python3 gemm_ctypes.py [libnumsim.so]"""
import sys
from ctypes import CDLL, Structure, byref, create_string_buffer
from ctypes import c_char_p, c_float, c_int32, c_size_t, c_uint8, c_uint64, c_void_p

class Factor(Structure):
    """numsim_factor_t, with numsim_format_t and numsim_scale_layout_t as bare memory."""
    _fields_ = [("format", c_uint8 * 16), ("codes", c_char_p), ("code_bytes", c_int32),
                ("transposed", c_int32), ("scales", c_void_p), ("layout", c_uint64 * 2)]

numsim = CDLL(sys.argv[1] if len(sys.argv) > 1 else "libnumsim.so.1")
message = create_string_buffer(200), c_size_t(200)

def factor(codes):
    result = Factor(codes=codes, code_bytes=1)
    if numsim.numsim_format_by_name(b"e4m3fn", result.format, *message):
        sys.exit(message[0].value.decode())
    return result

a, b = factor(b"\x78" + 31 * b"\x08"), factor(32 * b"\x38")  # 256, 31 times 1/64; 32 times 1
shape = c_size_t(1), c_size_t(1), c_size_t(32)  # rows, cols, inner
for accumulator in b"exact", b"hopper-fp8-fast":
    out = c_float()
    if numsim.numsim_gemm(byref(a), byref(b), *shape, accumulator, byref(out), *message):
        sys.exit(message[0].value.decode())
    print(f"{accumulator.decode()}: {out.value:.6f}")
