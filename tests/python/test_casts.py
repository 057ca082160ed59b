"""Casts as calls of Python: kinds and layouts of arrays, random bits, errors."""

import numpy as np
import pytest

import numsim as ns
from conftest import same


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_strided_and_fortran_arrays_give_the_result_of_their_copy(dtype, rng):
    x = rng.normal(size=(40, 50, 6)).astype(dtype)
    for view in (x[::3, ::-1], x.T, np.asfortranarray(x), x[:, 3], x[..., ::2], x[:0]):
        for rounding in ("rne", ns.SR(bits=7, seed=3, stream=0, first_index=1000)):
            expected = ns.round(np.array(view, order="C"), "e3m4", rounding=rounding)
            got = ns.round(view, "e3m4", rounding=rounding)
            assert got.dtype == dtype and same(got, expected)
            codes = ns.encode(view, "e3m4", rounding=rounding)
            assert same(ns.decode(codes, "e3m4"), expected.astype(np.float32))


def test_the_result_of_a_fortran_array_is_one_when_order_does_not_matter(rng):
    x = np.asfortranarray(rng.normal(size=(3, 5)))
    assert ns.round(x, "e4m3fn").flags.f_contiguous


def test_out_receives_the_result_and_may_be_the_input(rng):
    x = rng.normal(size=100).astype(np.float32)
    expected = ns.round(x, "e4m3fn")
    y = x.copy()
    assert ns.round(y, "e4m3fn", out=y) is y
    assert same(y, expected)
    with pytest.raises(ValueError, match="out: expected float32 of shape"):
        ns.round(x, "e4m3fn", out=np.empty(99, np.float32))
    with pytest.raises(TypeError, match="out: expected a writable"):
        ns.round(x, "e4m3fn", out=np.empty(200, np.float32)[::2])


def test_inputs_stay_as_they_are(rng):
    x = rng.normal(size=1000).astype(np.float32)
    x.flags.writeable = False
    before = x.copy()
    ns.round(x, "e2m1fn")
    ns.encode(x, "e2m1fn", rounding="sr")
    assert same(x, before)


def test_numbers_and_lists_become_float64():
    assert ns.round(0.78, "e4m3fn") == 0.75 and isinstance(ns.round(0.78, "e4m3fn"), np.float64)
    assert ns.encode(1.0, "e4m3fn") == 0x38
    assert ns.round([1, 2.3], "e4m3fn").tolist() == [1.0, 2.25]


def test_small_floats_keep_their_dtype_where_it_holds_the_format(rng):
    x = rng.normal(size=1000).astype(np.float16)
    y = ns.round(x, "e4m3fn")
    assert y.dtype == np.float16 and same(y, ns.round(x.astype(np.float32), "e4m3fn"))
    with pytest.raises(ValueError, match="x: fp16 does not hold every value of bf16"):
        ns.round(x, "bf16")


def test_ml_dtypes_come_in_and_go_out(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = rng.normal(size=(6, 4)).astype(ml_dtypes.bfloat16)
    y = ns.round(x.T, ml_dtypes.float8_e5m2)
    assert y.dtype == x.dtype
    assert same(y.astype(np.float32), ns.round(x.T.astype(np.float32), "e5m2"))
    z = ns.cast(y, "e4m3fn")
    assert z.dtype == ml_dtypes.float8_e4m3fn and same(
        ns.decode(z), ns.round(ns.decode(y), "e4m3fn")
    )


def test_float64_is_rounded_once():
    # The float32 nearest to this number is a tie of e4m3fn, which goes to even: 1.0.
    x = np.array([1.0625 + 2.0**-40])
    assert ns.round(x, "e4m3fn")[0] == 1.125
    assert ns.round(x.astype(np.float32), "e4m3fn")[0] == 1.0


@pytest.mark.parametrize("n", [1, 17, 1000, 600_001])
def test_streams_do_not_depend_on_how_an_array_is_cut(n, rng):
    x = rng.normal(size=n)
    for dtype in (np.float32, np.float64):
        values = x.astype(dtype)
        whole = ns.round(values, "e4m3fn", rounding=ns.SR(seed=5, stream=2))
        cut = n // 3
        parts = [
            ns.round(part, "e4m3fn", rounding=ns.SR(seed=5, stream=2, first_index=first))
            for part, first in ((values[:cut], 0), (values[cut:], cut))
        ]
        assert same(whole, np.concatenate(parts))


@pytest.mark.parametrize("bits", [1, 8, 9, 16, 32])
def test_random_bits_are_those_that_stochastic_rounding_uses(bits, rng):
    x = rng.normal(size=5000).astype(np.float32)
    words = ns.random_bits(x.size, bits=bits, seed=9, stream=4)
    assert bits == 32 or words.max() < 1 << bits
    by_words = ns.encode(x, "e5m2", rounding=ns.SR(bits=bits, random_bits=words))
    by_stream = ns.encode(x, "e5m2", rounding=ns.SR(bits=bits, seed=9, stream=4))
    assert np.array_equal(by_words, by_stream)


@pytest.mark.parametrize(
    "seed, bits, variant", [(0, 32, "a"), (12345678901234567890, 16, "b"), (7, 5, "c")]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_random_bits_equal_those_of_the_command_line(
    numsim_program, tmp_path, rng, seed, bits, variant, dtype
):
    x = rng.normal(size=(123, 45)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    numsim_program(
        "cast",
        tmp_path / "x.npy",
        tmp_path / "codes.npy",
        "--format",
        "e4m3fn",
        "--rounding",
        "sr",
        "--sr-bits",
        bits,
        "--sr-variant",
        variant,
        "--seed",
        seed,
    )
    rounding = ns.SR(bits=bits, seed=seed, stream=0, variant=variant)
    assert np.array_equal(
        ns.encode(x, "e4m3fn", rounding=rounding), np.load(tmp_path / "codes.npy")
    )


def test_results_do_not_depend_on_threads_and_backend(rng):
    x = rng.normal(size=300_000).astype(np.float32)
    threads, backend = ns.threads(), ns.backend()
    try:
        results = []
        for count, name in ((1, backend), (3, backend), (2, "scalar")):
            ns.threads(count), ns.backend(name)
            results.append(ns.encode(x, "e4m3fn", rounding=ns.SR(bits=11, seed=1, stream=2)))
    finally:
        ns.threads(threads), ns.backend(backend)
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def test_decode_takes_codes_of_any_integer_type_that_fit():
    assert ns.decode([0x38, 0xB8], "e4m3fn").tolist() == [1.0, -1.0]
    with pytest.raises(ValueError, match="codes: expected 0 to 255"):
        ns.decode([256], "e4m3fn")
    with pytest.raises(TypeError, match="uint8 codes do not tell their format"):
        ns.decode(np.zeros(3, np.uint8))
    with pytest.raises(TypeError, match="codes: expected unsigned integers"):
        ns.decode(np.zeros(3, np.float32), "e4m3fn")


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(rounding="rme"), ValueError, "rounding mode 'rme'.*did you mean rne"),
        (dict(overflow="saturated"), ValueError, "overflow 'saturated'.*did you mean saturate"),
        (dict(rounding=3), TypeError, "rounding: expected a name or numsim.SR"),
    ],
)
def test_errors_name_the_argument(arguments, error, message):
    with pytest.raises(error, match=message):
        ns.round(np.zeros(3, np.float32), "e4m3fn", **arguments)


def test_other_arrays_are_refused():
    with pytest.raises(TypeError, match="x: expected float64, float32"):
        ns.round(np.zeros(3, np.uint8), "e4m3fn")
    with pytest.raises(TypeError, match="x: .*complex128"):
        ns.round(np.zeros(3, complex), "e4m3fn")
    with pytest.raises(ValueError, match="there is no NumPy dtype for binary8p4se"):
        ns.cast(np.zeros(3, np.float32), "binary8p4se")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(bits=0), "bits: expected 1 to 32"),
        (dict(seed=-1), "seed: expected 0 to"),
        (dict(stream=1 << 64), "stream: expected 0 to"),
        (dict(variant="d"), "variant"),
    ],
)
def test_errors_of_stochastic_rounding_name_the_field(arguments, message):
    with pytest.raises(ValueError, match=message):
        ns.round(0.5, "e4m3fn", rounding=ns.SR(**arguments))


def test_given_bits_must_be_one_word_per_number():
    x = np.zeros((3, 2), np.float32)
    for words in ([1, 2], np.zeros((2, 3), np.uint32), np.zeros(6, np.uint32), 1):
        for call in (ns.round, ns.encode, ns.array):
            for numbers in (x, x.astype(np.float16), x.T.copy().T, [[2**70 + 1, 1]] * 3):
                with pytest.raises(
                    ValueError, match=r"random_bits: expected shape \(3, 2\), found"
                ):
                    call(numbers, "e4m3fn", rounding=ns.SR(random_bits=words))


@pytest.mark.parametrize(
    "words, found",
    [
        (np.ones(3), "float64"),
        (np.ones(3, complex), "complex128"),
        (np.ones(3, bool), "bool"),
        ([1, -1, 2], "negative integers"),
        (np.full(3, np.nan), "float64"),
        (["1", "2", "3"], "str"),
    ],
)
def test_given_bits_are_unsigned_integers(words, found):
    with pytest.raises(TypeError, match=f"random_bits: expected unsigned integers, found {found}"):
        ns.round(np.zeros(3, np.float32), "e4m3fn", rounding=ns.SR(random_bits=words))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_given_bits_of_long_arrays_belong_to_their_elements(dtype, rng):
    n = (1 << 18) + 4099  # more than the extension takes at a time
    x = rng.normal(size=n).astype(dtype)
    words = rng.integers(0, 1 << 16, n).astype(np.uint32)
    given = ns.SR(bits=16, random_bits=words)
    whole = ns.round(x, "e4m3fn", rounding=given)
    assert same(
        whole.astype(np.float32), ns.decode(ns.encode(x, "e4m3fn", rounding=given), "e4m3fn")
    )
    for part in (slice(0, 1 << 17), slice(1 << 18, n)):
        of_part = ns.SR(bits=16, random_bits=words[part])
        assert same(whole[part], ns.round(x[part], "e4m3fn", rounding=of_part))


def test_out_that_overlaps_is_refused(rng):
    for n in (1001, 300_001):
        b = rng.normal(size=n).astype(np.float32)
        for x, out in ((b[:-1], b[1:]), (b[1:], b[:-1]), (b[: n // 2], b[n // 2 - 1 : -1 - n % 2])):
            if x.shape != out.shape:
                out = out[: x.size]
            with pytest.raises(ValueError, match="out: overlaps x"):
                ns.round(x, "e4m3fn", out=out)
    b = rng.normal(size=10).astype(np.float32)
    words = b.view(np.uint32)
    with pytest.raises(ValueError, match="out: overlaps"):
        ns.round(np.ones(10, np.float32), "e4m3fn", rounding=ns.SR(random_bits=words), out=b)
    gaps = np.arange(20, dtype=np.float32)
    expected = ns.round(gaps[::2].copy(), "e4m3fn")
    assert same(ns.round(gaps[::2], "e4m3fn", out=gaps[:10]), expected)  # a copy was read
    with pytest.raises(ValueError, match="out: expected float32 of shape .* in another byte order"):
        ns.round(b, "e4m3fn", out=np.empty(10, ">f4"))
