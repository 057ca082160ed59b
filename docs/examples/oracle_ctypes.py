"""What is 1.75 + 0.3 in e4m3fn?   python3 oracle_ctypes.py [path of libnumsim.so]"""
import struct
import sys
from ctypes import CDLL, byref, c_size_t, c_uint8, c_uint32, create_string_buffer

numsim = CDLL(sys.argv[1] if len(sys.argv) > 1 else "libnumsim.so.1")
e4m3fn, message = create_string_buffer(16), create_string_buffer(200)  # numsim_format_t: 16 bytes
if numsim.numsim_format_by_name(b"e4m3fn", e4m3fn, message, c_size_t(len(message))):
    sys.exit(message.value.decode())

def encode(value):
    bits, code = c_uint32(struct.unpack("I", struct.pack("f", value))[0]), c_uint32()
    assert numsim.numsim_encode_f32(bits, e4m3fn, None, 0, byref(code), None) == 0
    return code

a, b, code, bits, flags = encode(1.75), encode(0.3), c_uint32(), c_uint32(), c_uint8()
result = e4m3fn, None, 0, byref(code), byref(flags)  # format, default rounding, random bits, ...
assert numsim.numsim_add(e4m3fn, a, e4m3fn, b, *result) == 0
assert numsim.numsim_decode_f32(e4m3fn, code, byref(bits)) == 0
value = struct.unpack("f", struct.pack("I", bits.value))[0]
print(f"{a.value:02X} + {b.value:02X} = {code.value:02X}, {value}, flags {flags.value:02X}")
