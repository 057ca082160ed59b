"""Numbers of every kind enter exactly: each is rounded once, from its exact value, or refused."""

import array as arrays
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import numsim as ns
from conftest import same

F32, F64, LONG = np.float32, np.float64, np.longdouble
FORMATS = ("bf16", "fp16", "fp32", "e4m3fn")
# (significant bits, least exponent of a normal number) of formats whose largest value is far away.
SHAPES = dict(zip(FORMATS, ((8, -126), (11, -14), (24, -126), (4, -6)))) | {"fp64": (53, -1022)}
MODES = ("rne", "rna", "rtz", "rtp", "rtn", "odd")
UP = {
    "rne": lambda rest, below, negative: rest * 2 > 1 or (rest * 2 == 1 and below % 2 == 1),
    "rna": lambda rest, below, negative: rest * 2 >= 1,
    "rtz": lambda rest, below, negative: False,
    "rtp": lambda rest, below, negative: rest > 0 and not negative,
    "rtn": lambda rest, below, negative: rest > 0 and negative,
    "odd": lambda rest, below, negative: rest > 0 and below % 2 == 0,
}


def parts(x, format):
    """(units below |x|, what is left in units, unit) of a fraction in a format."""
    digits, least = SHAPES[format]
    magnitude = abs(x)
    exponent = least
    if magnitude:
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > magnitude
    unit = Fraction(2) ** (max(exponent, least) - digits + 1)
    below = magnitude / unit // 1
    return below, magnitude / unit - below, unit


def rounded(x, format, mode):
    """The fraction that x rounds to, by fractions alone; no overflow."""
    below, rest, unit = parts(x, format)
    value = (below + UP[mode](rest, below, x < 0)) * unit
    return -value if x < 0 else value


def rounded_by(x, format, bits, word):
    """The same under stochastic rounding with given random bits."""
    below, rest, unit = parts(x, format)
    value = (below + (rest * 2**bits + word >= 2**bits)) * unit
    return -value if x < 0 else value


def near_midpoints(rng, format, n, largest):
    """Integers of many sizes a little beside a midpoint, a value, or anywhere."""
    digits = SHAPES[format][0]
    numbers = []
    for _ in range(n):
        bits = int(rng.integers(digits + 2, largest))
        top = int(rng.integers(1 << (digits - 1), 1 << digits))
        middle = (top * 2 + int(rng.integers(0, 2))) << (bits - digits - 1)
        offset = (-1, 0, 1)[int(rng.integers(0, 3))] << int(rng.integers(0, bits - digits - 1))
        numbers.append(int(middle + offset) * (1, -1)[int(rng.integers(0, 2))])
    return numbers


def beside_midpoints(format, least, largest):
    """Integers of every width in bits, one to three away from midpoints above even and odd codes."""
    digits = SHAPES[format][0]
    tops = [(1 << (digits - 1) | low) << 1 | 1 for low in (4, 5)]
    middles = [top << (bits - digits - 1) for bits in range(least, largest) for top in tops]
    return [m + offset for m in middles for offset in (-3, -2, -1, 0, 1, 2, 3)]


def fractions_of(values):
    return [Fraction(v.item() if isinstance(v, np.generic) else v) for v in values]


def check_casts(x, exact, format, shape=None):
    """Compares round, encode, cast and array with the exact reference, in every mode."""
    for mode in MODES:
        expected = [float(rounded(v, format, mode)) for v in exact]
        got = ns.round(x, format, rounding=mode)
        assert np.shape(got) == (np.shape(x) if shape is None else shape)
        assert [float(v) for v in np.ravel(got)] == expected, mode
        codes = ns.encode(x, format, rounding=mode)
        assert ns.decode(np.ravel(codes), format).tolist() == expected
        assert np.ravel(ns.array(x, format, rounding=mode).values()).tolist() == expected
    if format != "fp32" and ns.format(format).dtype is not None:
        assert np.array_equal(
            ns.decode(ns.cast(x, format)), ns.decode(ns.encode(x, format), format)
        )


LARGEST = {"bf16": 120, "fp16": 15, "fp32": 120, "e4m3fn": 8}


@pytest.mark.parametrize("format", FORMATS)
def test_integers_of_python(format, rng):
    numbers = near_midpoints(rng, format, 200, LARGEST[format])
    check_casts(numbers, fractions_of(numbers), format)
    check_casts(tuple(numbers), fractions_of(numbers), format)
    check_casts(np.array(numbers, object), fractions_of(numbers), format)
    rows = [numbers[:100], numbers[100:]]
    check_casts(rows, fractions_of(numbers), format, (2, 100))
    for number in numbers[:10]:
        check_casts(number, [Fraction(number)], format)


def test_the_integers_of_the_reports():
    assert ns.encode(2**60 + 2**52 + 1, "bf16") == 0x5D81
    assert ns.encode([2**60 + 2**52 + 1], "bf16").tolist() == [0x5D81]
    assert ns.round(2**60 + 2**36 + 1, "fp32") == 2**60 + 2**37
    assert float((ns.array([0.0], "bf16") + (2**60 + 2**52 + 1)).values()[0]) == 2**60 + 2**53
    assert ns.encode(10**5000, "bf16") == 0x7F80 and ns.encode(-(10**5000), "fp16") == 0xFC00
    assert ns.round(10**5000, "bf16", overflow="saturate") == ns.format("bf16").max


@pytest.mark.parametrize("dtype", ["i8", "u8", ">i8", ">u8", "i4", "i2"])
@pytest.mark.parametrize("format", ["bf16", "fp32"])
def test_integers_of_numpy(format, dtype, rng):
    info = np.iinfo(dtype)
    bits = info.bits - (info.kind == "i")
    if bits < SHAPES[format][0] + 3:
        pytest.skip("too few bits")
    numbers = near_midpoints(rng, format, 100, bits) + [info.max, info.min, 0]
    numbers = [abs(n) if info.kind == "u" else n for n in numbers]
    check_casts(np.array(numbers, dtype), fractions_of(numbers), format)
    for number in numbers[:5] + numbers[-3:]:
        check_casts(np.array(number, dtype)[()], [Fraction(number)], format)
        check_casts([np.array(number, dtype)[()], 0.5], [Fraction(number), Fraction(1, 2)], format)


@pytest.mark.parametrize("format", FORMATS)
def test_fractions_decimals_and_mixtures(format, rng):
    scale = Fraction(1, 1 << max(LARGEST[format] - 8, 4))
    numbers = [
        n * scale * Fraction(3**40 + s, 3**40)
        for n in near_midpoints(rng, format, 60, LARGEST[format])
        for s in (-1, 0, 1)
    ]
    check_casts(numbers, numbers, format)
    decimals = [Decimal(n.numerator) / Decimal(n.denominator) for n in numbers]
    check_casts(decimals, fractions_of(decimals), format)
    mixed = [numbers[0], 101, 0.5, decimals[1], True + 1, F32(1.5), -0.0]
    check_casts(mixed, fractions_of(mixed), format)
    check_casts(numbers[1], [numbers[1]], format)
    check_casts(decimals[1], [Fraction(decimals[1])], format)


def test_a_list_is_not_joined_through_float64():
    big = (
        2**60 + 2**52 + 1
    )  # NumPy joins it and a float as float64
    for x in (
        [big, 0.5],
        [np.uint64(big), np.int64(-1)],
        [np.array([big]), np.array([0.5])],
        [[big], [2**63]],
        [LONG(big), 1.0],
    ):
        assert np.ravel(ns.encode(x, "bf16"))[0] == 0x5D81


@pytest.mark.parametrize("format", ["bf16", "fp32"])
def test_the_last_bit_of_an_integer_counts(format):
    numbers = beside_midpoints(format, 50, 65)
    small = [n for n in numbers if n < 2**63]
    check_casts(numbers, fractions_of(numbers), format)
    check_casts(np.array(numbers, np.uint64), fractions_of(numbers), format)
    check_casts(-np.array(small, np.int64), [-n for n in fractions_of(small)], format)
    if np.finfo(LONG).nmant >= 63:
        longs = np.array(numbers, np.uint64).astype(LONG)
        check_casts(longs, fractions_of(numbers), format)
    for width in (53, 54, 55):
        few = [n for n in numbers if n.bit_length() == width]
        check_casts(np.array(few, np.int64), fractions_of(few), format)
    tiny = [Fraction(n, 1 << 64) for n in numbers] + fractions_of(beside_midpoints(format, 65, 120))
    check_casts(tiny, tiny, format)


@pytest.mark.skipif(np.finfo(LONG).nmant <= 52, reason="long double is float64 here")
@pytest.mark.parametrize("format", FORMATS)
def test_long_doubles(format, rng):
    numbers = [LONG(n) for n in near_midpoints(rng, format, 100, min(LARGEST[format], 63))]
    numbers += [v * LONG(2) ** -LARGEST[format] for v in numbers]
    numbers = np.array(numbers, LONG)
    exact = [Fraction(*v.as_integer_ratio()) for v in numbers]
    check_casts(numbers, exact, format)
    check_casts(
        numbers.reshape(2, -1).T, [exact[j * 100 + i] for i in range(100) for j in (0, 1)], format
    )
    check_casts(numbers[3], exact[3:4], format)
    result = ns.round(numbers, format)
    assert result.dtype == LONG and type(ns.round(numbers[0], format)) is LONG
    special = np.array(["nan", "inf", "-inf", "-0.0", "1e4000", "-1e-4000", "1.5"], LONG)
    codes = ns.encode(special, "bf16", rounding="rtn")
    assert codes.tolist() == [0x7FC0, 0x7F80, 0xFF80, 0x8000, 0x7F7F, 0x8001, 0x3FC0]


@pytest.mark.parametrize("bits", [1, 8, 16, 32])
@pytest.mark.parametrize("format", ["bf16", "fp32"])
def test_stochastic_rounding_of_exact_numbers(format, bits, rng):
    numbers = near_midpoints(rng, format, 300, 120)
    numbers += [Fraction(n, 3**20) for n in numbers] + beside_midpoints(format, 58, 90)
    words = rng.integers(0, 1 << bits, len(numbers), dtype=np.uint32)
    # The least word that takes a number up decides by its last bit.
    rests = [parts(Fraction(x), format)[1] for x in numbers]
    for i in range(0, len(numbers), 2):
        least = 2**bits - rests[i] * 2**bits // 1  # takes it up, if it is no word too many
        words[i] = min(max(least - (i // 2) % 2, 0), 2**bits - 1)
    got = ns.round(numbers, format, rounding=ns.SR(bits=bits, random_bits=words))
    expected = [rounded_by(Fraction(x), format, bits, int(w)) for x, w in zip(numbers, words)]
    assert got.tolist() == [float(v) for v in expected]
    seeded = ns.SR(bits=bits, seed=3, stream=7, first_index=5)
    drawn = ns.random_bits(len(numbers), bits=bits, seed=3, stream=7, first_index=5)
    by_words = ns.encode(numbers, format, rounding=ns.SR(bits=bits, random_bits=drawn))
    assert np.array_equal(ns.encode(numbers, format, rounding=seeded), by_words)


def test_the_exact_path_is_that_of_float64(rng):
    """Every float64 through the path of exact numbers has the code that it has by itself."""
    x = rng.integers(0, 1 << 64, 3000, dtype=np.uint64).view(F64)
    x = x[np.isfinite(x)]
    x = np.concatenate([x, rng.normal(size=1000) * 2.0 ** rng.integers(-160, 130, 1000)])
    path = [*x.tolist(), 2**60 + 1]
    for format in ("bf16", "e4m3fn", "e2m1fn", "int8", "fp32", "e8m0fnu"):
        for rounding in (*MODES, *(ns.SR(seed=1, stream=2, variant=v) for v in "abc")):
            for overflow in ("nonsaturate", "saturate"):
                how = dict(rounding=rounding, overflow=overflow)
                exact = ns.encode(path, format, **how)[:-1]
                assert np.array_equal(exact, ns.encode(x, format, **how)), (format, rounding)


@pytest.mark.parametrize(
    "x, found",
    [
        (1j, "complex"),
        ([1.0, 1j], "complex"),
        (np.complex64(1 + 2j), "complex64"),
        (np.zeros(2, complex), "complex128"),
        (np.datetime64("2020"), "datetime64"),
        (np.zeros(2, "m8[s]"), "timedelta64"),
        ("3.3", "str"),
        (np.str_("3.3"), "str"),
        (["3.3"], "str"),
        (b"ab", "bytes"),
        (bytearray(b"ab"), "bytearray|uint8"),
        (True, "bool"),
        ([True, 2.0], "bool"),
        (np.zeros(2, bool), "bool"),
        (np.True_, "bool"),
        (None, "NoneType"),
        ([None], "NoneType"),
        ({"a": 1}, "dict"),
        ([[1, 2], [3]], "equal length"),
        (np.zeros(2, "f4,f4"), "void"),
        (np.zeros(2, np.uint8), "uint8; decode has"),
        (np.frombuffer(b"ab", "V1"), "void8; decode takes raw bytes"),
        (object(), "object"),
    ],
)
def test_what_is_no_number_is_refused_by_name(x, found):
    for call in (ns.round, ns.encode, ns.array, ns.quantize):
        with pytest.raises(TypeError, match=f"^x: .*({found})"):
            call(x, "bf16")


def test_containers_of_numbers():
    assert ns.encode(arrays.array("d", [1.0, 2.0]), "bf16").tolist() == [0x3F80, 0x4000]
    assert ns.encode(range(2**60 + 2**52 + 1, 2**60 + 2**52 + 2), "bf16").tolist() == [0x5D81]
    assert ns.encode(memoryview(np.array([1.0, 2.0])), "bf16").tolist() == [0x3F80, 0x4000]
    assert ns.round([], "bf16").shape == (0,) and ns.round([[], []], "bf16").shape == (2, 0)
    assert ns.encode(ns.array([1.0], "bf16"), "e4m3fn").tolist() == [0x38]
    nan = ns.encode([Decimal("nan"), Decimal("-Infinity"), Decimal("-0"), 2**70 + 1], "bf16")
    assert nan.tolist() == [0x7FC0, 0xFF80, 0x8000, 0x6280]
    assert ns.encode(Decimal("1e999999999"), "bf16") == 0x7F80
    assert ns.encode(Decimal("-1e-999999999"), "bf16", rounding="rtn") == 0x8001


def test_the_result_is_of_the_kind_and_dtype(rng):
    assert type(ns.round(2**70 + 1, "bf16")) is np.float64
    assert ns.round(np.array([2**62 + 1]), "bf16").dtype == F64
    assert ns.round([2**70 + 1], "bf16").dtype == F64
    with pytest.raises(TypeError, match="out: only for float32 and float64"):
        ns.round([2**70 + 1], "bf16", out=np.empty(1))


def test_operators_round_a_number_of_python_once():
    a = ns.array([0.0, 1.0], "bf16")
    big = 2**60 + 2**52 + 1
    for number in (big, Fraction(big), Decimal(big), np.int64(big), np.uint64(big), LONG(big)):
        if number == LONG(big) and np.finfo(LONG).nmant <= 52:
            continue
        assert (a + number).values().tolist() == [2.0**60 + 2.0**53] * 2
        assert (number + a).values().tolist() == [2.0**60 + 2.0**53] * 2
    for wrong in (1j, "1", True, np.True_, None, np.datetime64("2020")):
        with pytest.raises(TypeError):
            a + wrong


# Calls that take arrays, each as a function of float arrays of shapes (4, 6) and (6, 4).
def optimizer_step(x):
    opt = ns.Optimizer({"w": x})
    opt.step({"w": x}, lr=0.1)
    return opt["w"]


def moments(x):
    store = ns.Moments("bf16", x.size)
    store.store(x.ravel())
    return store.load()


def linear(x, y):
    layer = ns.Linear("switchback-int8")
    out, saved = layer.forward(x, y.T)
    dx, dw = layer.backward(out.astype(x.dtype), y.T, saved)
    return np.concatenate([out.ravel(), dx.ravel(), dw.ravel()])


CALLS = {
    "round": lambda x, y: ns.round(x, "e4m3fn"),
    "encode": lambda x, y: ns.encode(x, "e4m3fn"),
    "array": lambda x, y: ns.array(x, "e4m3fn").codes,
    "quantize": lambda x, y: ns.quantize(x, "e4m3fn", scaling="row").dequantize(),
    "error": lambda x, y: np.array(ns.quantize(x, "e4m3fn").error(x).sqnr_db),
    "matmul": lambda x, y: ns.matmul(x, y),
    "update": lambda x, y: ns.update(x, x, lr=0.1, rule="naive", format="bf16").weights,
    "moments": lambda x, y: moments(x),
    "optimizer": lambda x, y: optimizer_step(x),
    "linear": linear,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", [F32, F64, np.float16])
def test_the_other_byte_order_is_the_same_numbers(call, dtype, rng):
    x, y = (rng.normal(size=s).astype(dtype) for s in ((4, 6), (6, 4)))
    swapped = [a.astype(a.dtype.newbyteorder("S")) for a in (x, y)]
    try:
        expected = CALLS[call](x, y)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            CALLS[call](*swapped)
        return
    assert same(CALLS[call](*swapped), expected)
    if call == "round":
        assert ns.round(swapped[0], "e4m3fn").dtype == dtype


def test_integers_of_the_other_byte_order_are_the_same_codes():
    codes = np.array([16320, 16384], ">u2")
    assert ns.decode(codes, "bf16").tolist() == [1.5, 2.0]
    assert ns.Array(codes, "bf16").values().tolist() == [1.5, 2.0]
    given = ns.SR(bits=16, random_bits=np.array([1, 65535], ">u4"))
    native = ns.SR(bits=16, random_bits=np.array([1, 65535], "u4"))
    x = np.array([1.001, 1.001], F32)
    assert same(ns.round(x, "e4m3fn", rounding=given), ns.round(x, "e4m3fn", rounding=native))
    profile = ns.Profile("cuda-13", "e4m3fn")
    assert np.array_equal(profile.encode(x.astype(">f4")), profile.encode(x))
    assert ns.oracle.check(lambda a: ns.encode(a, "e5m2").astype(">u2"), "cast", "e5m2")
    assert ns.oracle.check(lambda a: ns.round(a, "e5m2").astype(">f4"), "cast", "e5m2")


def test_a_dtype_with_metadata_is_its_dtype():
    x = np.array([1.5, 2.0]).astype(np.dtype("f8", metadata={"a": 1}))
    assert ns.round(x, "bf16").tolist() == [1.5, 2.0]


def test_calls_in_float32_take_numbers_that_it_holds():
    assert ns.quantize([[1, 2]], "e4m3fn").dequantize().tolist() == [[1, 2]]
    assert ns.matmul([[1, 2]], [[3], [4]]).tolist() == [[11]]
    assert ns.matmul(np.array([[2**24]]), np.array([[1]])).tolist() == [[2**24]]
    for x in ([[2**24 + 1]], np.array([[2**24 + 1]]), [[0.1]], [[2**70 + 1]], [[1e39]], [[1e-50]]):
        with pytest.raises(ValueError, match="^(x|a): .*pass an array of float32"):
            ns.quantize(x, "e4m3fn")
        with pytest.raises(ValueError, match="^a: .*pass an array of float32"):
            ns.matmul(x, [[1]])
    with pytest.raises(TypeError, match="x: expected float32 or smaller, found float64"):
        ns.quantize(np.zeros((2, 2)), "e4m3fn")


def test_int8_arrays_are_numbers_of_int8():
    a, b = np.array([[28, -12, -101, 28]], np.int8), np.array([[1], [2], [-3], [4]], np.int8)
    product = ns.matmul(a, b)
    assert product.tolist() == [[419]] and product.dtype == F32
    assert ns.decode(a, "int8").tolist() == ns.decode(a).tolist() == a.tolist()
    assert ns.round(a, "int8").dtype == np.int8 and ns.round(a, "int8").tolist() == a.tolist()
    assert ns.encode(a, "bf16").tolist() == ns.encode(a.astype(F32), "bf16").tolist()
    with pytest.raises(ValueError, match="x: int8 does not hold every value of e4m3fn"):
        ns.round(a, "e4m3fn")


def test_products_of_two_int8_operands_alone_are_exact_by_default(rng):
    a = rng.integers(-100, 100, (2, 5000)).astype(np.int8)
    b = rng.normal(size=(5000, 2)).astype(F32) ** 5
    assert same(
        ns.matmul(a, ns.array(b, "bf16")), ns.matmul(a, ns.array(b, "bf16"), accumulate="fp32")
    )
    assert not same(
        ns.matmul(a, ns.array(b, "bf16"), accumulate="fp32"),
        ns.matmul(a, ns.array(b, "bf16"), accumulate="exact"),
    )


def test_raw_bytes_are_codes_of_a_named_format():
    raw = np.frombuffer(bytes([0x3C, 0xC0]), "V1")
    assert ns.decode(raw, "e4m3fn").tolist() == [1.5, -2.0]
    halves = np.array([16320, 16384], "<u2").view("V2")
    assert ns.decode(halves, "bf16").tolist() == [1.5, 2.0]
    with pytest.raises(TypeError, match="codes: expected 2 bytes for a code of bf16, found 1"):
        ns.decode(raw, "bf16")
    with pytest.raises(TypeError, match="^codes: .*void8"):
        ns.decode(raw)
    with pytest.raises(TypeError, match="^codes: "):
        ns.decode(np.zeros(2, "u1,u1"), "e4m3fn")


@pytest.mark.parametrize(
    "scale",
    [1e39, float("inf"), float("nan"), 0, -1.0, 1e-50, 1e-40, 3e38, 10**400, Fraction(1, 10**50)],
)
def test_scales_that_float32_does_not_hold_are_refused(scale):
    with pytest.raises(ValueError, match="^scale: "):
        ns.quantize(np.ones((2, 2), F32), "e4m3fn", scale=scale)


@pytest.mark.parametrize("scale", ["1", 1j, True, [1.0], np.datetime64("2020")])
def test_scales_that_are_no_numbers_are_refused(scale):
    with pytest.raises(TypeError, match="^scale: expected a number, found"):
        ns.quantize(np.ones((2, 2), F32), "e4m3fn", scale=scale)


@pytest.mark.parametrize(
    ("format", "convert"), [("fp32", ns._numbers.to_float32), ("fp64", ns._numbers.to_float64)]
)
def test_single_numbers_are_rounded_once(format, convert, rng):
    """Midpoints, and what lies so near them that float64 does not show it."""
    digits, least = SHAPES[format][0], SHAPES[format][1] - SHAPES[format][0] + 1
    for exponent in (least - 40, least - 1, least, least + 3, least + digits, -3, 0, 30, 60):
        above = int(rng.integers(2 ** (digits - 1), 2**digits))
        middle = (2 * above + 1) * Fraction(2) ** exponent
        for near in (middle, middle + middle / 2**70, middle - middle / 2**70):
            for number in (near, -near):
                once = float(rounded(number, format, "rne"))
                assert convert(number, "n") == once
                if number.denominator == 1:
                    assert convert(int(number), "n") == once
                with localcontext(Context(prec=2000)):
                    decimal = Decimal(number.numerator) / number.denominator
                assert Fraction(decimal) == number and convert(decimal, "n") == once
    for x in (np.int64(2**62 + 2**38 + 1), np.uint64(2**63 + 2**10 + 1), np.int64(-(2**53) - 3)):
        assert convert(x, "n") == float(rounded(Fraction(int(x)), format, "rne"))
    for x in (LONG(2) ** 24 + 1 + LONG(2) ** -38, -(LONG(2) ** 53) - 1 - LONG(2) ** -10):
        if np.finfo(LONG).nmant == 63:
            exact = Fraction(*x.as_integer_ratio())
            assert convert(x, "n") == float(rounded(exact, format, "rne"))
    for x in (1.5, np.float64(1.5), F32(1.5), np.float16(1.5), np.array(1.5), Fraction(3, 2)):
        assert convert(x, "n") == 1.5 and type(convert(x, "n")) is float
    for x in (10**400, Decimal("1e400"), Fraction(10**400), math.inf, LONG("inf")):
        assert convert(x, "n") == math.inf and convert(-x, "n") == -math.inf
    assert math.isnan(convert(Decimal("nan"), "n")) and math.isnan(convert(F32("nan"), "n"))


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.uint64])
def test_integers_enter_exactly(kind):
    ends = np.array([np.iinfo(kind).min, np.iinfo(kind).max, 0, 5], kind)
    for rounding in ("rtz", "rtp", "rtn"):
        got = ns.round(ends, "bf16", rounding=rounding)
        expected = [float(rounded(Fraction(int(x)), "bf16", rounding)) for x in ends]
        assert got.dtype == F64 and got.tolist() == expected


def test_scales_are_rounded_once_to_float32():
    for scale in (0.1, 3, 2**60 + 2**36 + 1, Fraction(1, 3), Decimal("0.3"), F32(0.7)):
        expected = float(rounded(*fractions_of([scale]), "fp32", "rne"))
        assert ns.quantize(np.ones((1, 2), F32), "e4m3fn", scale=scale).scale == expected


@pytest.mark.parametrize("name", ["lr", "weight_decay"])
def test_rates_are_rounded_once_or_refused(name, rng):
    w, u = (rng.normal(size=100).astype(F32) for _ in range(2))
    step = lambda value: ns.update(  # noqa: E731
        w, u, **{"lr": 1.0, "weight_decay": 0.0, name: value}, rule="naive", format="fp32"
    ).weights
    for value in (0.1, 2**60 + 2**36 + 1, Fraction(1, 3), Decimal("0.3"), 0, 1):
        once = float(rounded(Fraction(value), "fp32", "rne"))
        assert same(step(value), step(once)), value
    for value in (1e39, float("inf"), float("nan"), 1e-60, 10**400):
        with pytest.raises(ValueError, match=f"^{name}: "):
            step(value)
    for value in ("0.1", 1j, True, None):
        with pytest.raises(TypeError, match=f"^{name}: expected a number"):
            step(value)
    if name == "lr":
        with pytest.raises(ValueError, match="lr: expected a number >= 0"):
            step(-1)
