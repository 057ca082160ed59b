"""Arrays of a CUDA device: results are those of host memory, bit for bit, in the caller's stream.

Needs pytest, NumPy, PyTorch and a package that was built with NUMSIM_WITH_CUDA=ON, and nothing else
of this repository; docs/python.md says how to carry it to a machine with a GPU. Without a device,
or with a package that has no kernels, every test is skipped and says why. CuPy and JAX are tested
where they are installed.
"""

import threading

import numpy as np
import pytest

import numsim as ns

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no CUDA device", allow_module_level=True)
if ns._core.device_unavailable():
    pytest.skip(f"numsim: {ns._core.device_unavailable()}", allow_module_level=True)

HOPPER = torch.cuda.get_device_capability(0) == (9, 0)
FORMATS = [f.name for f in ns.formats()]
SMALL = ["int8", "e4m3fn", "e5m2", "e2m1fn", "e3m2fn", "bf16", "fp16", "binary8p3se", "bnb-e4m3"]
SIZES = [0, 1, 7, 4096, 100_003]
ROUNDINGS = ["rne", "rna", "rtz", "rtp", "rtn", "odd", ns.SR(bits=16, seed=3, stream=5)]


@pytest.fixture
def rng():
    return np.random.default_rng(20261126)


def floats(rng, n):
    """float32 numbers of all magnitudes with specials, half of them near 1."""
    x = rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)
    x[::2] = rng.normal(size=len(x[::2]))
    return x


def on_device(array):
    return torch.from_numpy(array).cuda()


def bits(x):
    """The bits of an array or a tensor, in host memory; every NaN has one pattern."""
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu()
        x = x.float().numpy() if x.dtype.is_floating_point else x.numpy()
    if x.dtype.kind != "f":
        return x
    x = x.copy()
    x[np.isnan(x)] = np.nan
    return x.view(np.uint32)


def assert_same(there, here):
    assert isinstance(there, torch.Tensor) and there.is_cuda
    assert tuple(there.shape) == here.shape
    np.testing.assert_array_equal(bits(there), bits(np.asarray(here)))


@pytest.mark.parametrize("format", FORMATS)
def test_round_encode_and_decode_have_the_bits_of_the_host(rng, format):
    for n in SIZES:
        x = floats(rng, n)
        assert_same(ns.round(on_device(x), format), ns.round(x, format))
        codes = ns.encode(x, format)
        there = ns.encode(on_device(x), format)
        assert_same(there, codes)
        assert_same(ns.decode(there, format), ns.decode(codes, format))


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=str)
@pytest.mark.parametrize("overflow", ["nonsaturate", "saturate", "propagate"])
def test_every_mode_and_policy_has_the_bits_of_the_host(rng, rounding, overflow):
    x = floats(rng, 20_000)
    for format in SMALL:
        arguments = {"rounding": rounding, "overflow": overflow}
        assert_same(ns.round(on_device(x), format, **arguments), ns.round(x, format, **arguments))
        assert_same(ns.encode(on_device(x), format, **arguments), ns.encode(x, format, **arguments))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_small_dtypes_stay_what_they_are(rng, kind):
    x = torch.from_numpy(rng.normal(size=(33, 70)).astype(np.float32)).to(getattr(torch, kind))
    for tensor in (x, x.T):
        y = ns.round(tensor.cuda(), "e2m1fn")
        assert y.is_cuda and y.dtype == x.dtype
        np.testing.assert_array_equal(bits(y), bits(ns.round(tensor, "e2m1fn")))
        np.testing.assert_array_equal(
            bits(ns.decode(tensor.cuda())), bits(tensor.contiguous().float())
        )


def test_cast_gives_torchs_dtype(rng):
    x = rng.normal(size=1000).astype(np.float32)
    for kind in ("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"):
        y = ns.cast(on_device(x), kind)
        assert y.is_cuda and y.dtype == getattr(torch, kind)
        np.testing.assert_array_equal(bits(y), bits(torch.from_numpy(x).to(y.dtype)))


def test_arrays_with_gaps_are_packed_on_the_device(rng):
    x = rng.normal(size=(40, 60)).astype(np.float32)
    there = on_device(x)
    assert_same(ns.round(there.T, "e4m3fn"), ns.round(x.T, "e4m3fn"))
    assert_same(ns.encode(there[::2, 1::3], "e4m3fn"), ns.encode(x[::2, 1::3], "e4m3fn"))


LAYOUTS = ["tensor", "row", "column", "block:16", "block:32", "block:7", "tile:16x16", "tile:5x3"]
RULES = [
    "absmax",
    "pow2-floor",
    "pow2-ceil",
    "e8m0",
    "none",
    "nvfp4",
    "e8m0-even",
    "e8m0-ulp",
    "e8m0-three-eighths",
    "e8m0-ceil",
    "e4m3",
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rule", RULES)
def test_quantize_has_the_bits_of_the_host(rng, layout, rule):
    for shape in ((1, 1), (37, 50), (64, 256)):
        x = (rng.normal(size=shape) * 2.0 ** rng.integers(-20, 4, shape)).astype(np.float32)
        x[0, 0] = np.nan
        for format in ("int8", "e4m3fn", "e2m1fn", "fp16"):
            for rounding in ("rne", ns.SR(bits=16, seed=1, stream=0)):
                arguments = {"scaling": f"{layout}/{rule}", "rounding": rounding}
                here = ns.quantize(x, format, **arguments)
                there = ns.quantize(on_device(x), format, **arguments)
                assert_same(there.codes, here.codes)
                np.testing.assert_array_equal(bits(there.scales), bits(np.array(here.scales)))
                assert_same(there.dequantize(), here.dequantize())
                assert_same(there.T.dequantize(), here.T.dequantize())
                half = torch.from_numpy(x).bfloat16()
                here = ns.quantize(half.float().numpy(), format, **arguments)
                there = ns.quantize(half.cuda(), format, **arguments)
                assert_same(there.codes, here.codes)
                np.testing.assert_array_equal(bits(there.scales), bits(np.array(here.scales)))


def test_quantize_takes_a_scale_small_dtypes_and_vectors(rng):
    x = rng.normal(size=(20, 48)).astype(np.float32)
    here = ns.quantize(x, "e4m3fn", scale=0.013)
    there = ns.quantize(on_device(x), "e4m3fn", scale=0.013)
    assert_same(there.codes, here.codes)
    assert_same(there.dequantize(), here.dequantize())
    assert there.scale == here.scale
    half = torch.from_numpy(x).bfloat16()
    assert_same(
        ns.quantize(half.cuda(), "int8", scaling="row").codes,
        ns.quantize(half.float().numpy(), "int8", scaling="row").codes,
    )
    assert_same(ns.quantize(on_device(x[0]), "int8").codes, ns.quantize(x[0], "int8").codes)


def operands(rng, format, scaling, shape_a=(24, 128), shape_b=(128, 40)):
    """(a, b, a on the device, b on the device), quantised."""
    matrices = [rng.normal(size=s).astype(np.float32) for s in (shape_a, shape_b)]
    here = [
        ns.quantize(matrices[0], format, scaling=scaling),
        ns.quantize(matrices[1].T.copy(), format, scaling=scaling).T,
    ]
    there = [
        ns.quantize(on_device(matrices[0]), format, scaling=scaling),
        ns.quantize(on_device(matrices[1].T.copy()), format, scaling=scaling).T,
    ]
    return (*here, *there)


@pytest.mark.parametrize("format", ["int8", "e4m3fn", "e2m1fn", "bf16", "e3m4"])
@pytest.mark.parametrize("scaling", ["tensor", "row", "block:16", "tile:16x16", "block:16/nvfp4"])
@pytest.mark.parametrize("mode", ["fp32", "fp64", "fp32-chunked:16"])
def test_products_in_order_have_the_bits_of_the_host(rng, format, scaling, mode):
    a, b, there_a, there_b = operands(rng, format, scaling)
    assert_same(ns.matmul(there_a, there_b, accumulate=mode), ns.matmul(a, b, accumulate=mode))


def test_int8_is_exact(rng):
    a, b, there_a, there_b = operands(rng, "int8", "row")
    assert_same(there_a @ there_b, a @ b)


@pytest.mark.skipif(not HOPPER, reason="the device is not of compute capability 9.0")
@pytest.mark.parametrize(
    "format, mode",
    [
        ("e4m3fn", "hopper-fp8"),
        ("e4m3fn", "hopper-fp8-fast"),
        ("bf16", "hopper-bf16"),
        ("fp16", "hopper-fp16"),
        ("bf16", "trunc:25,16,208"),  # two parts and a shorter one
    ],
)
def test_products_of_tensor_cores_have_the_bits_of_the_host(rng, format, mode):
    scaling = "row" if format == "e4m3fn" else "row/none"
    a, b, there_a, there_b = operands(rng, format, scaling, (64, 512), (512, 128))
    assert_same(ns.matmul(there_a, there_b, accumulate=mode), ns.matmul(a, b, accumulate=mode))


def test_products_of_tensors_read_transposes_as_they_lie(rng):
    a = rng.normal(size=(17, 50)).astype(np.float32)
    b = rng.normal(size=(23, 50)).astype(np.float32)
    there = on_device(a), on_device(b)
    expected = ns.matmul(a, b.T)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    product = ns.matmul(there[0], there[1].T)
    assert torch.cuda.memory_allocated() - before <= 2048  # the result of 1,564 bytes alone
    assert_same(product, expected)
    assert_same(ns.matmul(there[0].T.contiguous().T, there[1].T), expected)
    half = there[0].bfloat16(), there[1].T.bfloat16()
    assert_same(ns.matmul(*half), ns.matmul(ns.round(a, "bf16"), ns.round(b.T, "bf16")))


def test_a_call_allocates_its_result_and_nothing_else(rng):
    x = on_device(rng.normal(size=1 << 20).astype(np.float32))
    ns.round(x, "e4m3fn"), ns.encode(x, "e4m3fn")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    y = ns.round(x, "e4m3fn")
    assert torch.cuda.memory_allocated() - before == 4 << 20
    codes = ns.encode(x, "e4m3fn")
    assert torch.cuda.memory_allocated() - before == 5 << 20
    assert y.data_ptr() != x.data_ptr() != codes.data_ptr()


def test_nothing_is_copied_to_or_from_the_host(rng):
    x = on_device(rng.normal(size=(512, 512)).astype(np.float32))

    def work():
        t = ns.quantize(x, "e4m3fn", scaling="block:16/nvfp4")
        ns.decode(ns.encode(x, "e4m3fn"), "e4m3fn")
        return ns.matmul(t, t.T), t.dequantize(), ns.round(x, "e5m2", rounding=ns.SR(seed=1))

    work()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        work()
        torch.cuda.synchronize()
    names = {event.name for event in profile.events()}
    if not any("umsim" in name or "Gemm" in name for name in names):
        pytest.skip("the profiler shows no kernels here")
    assert not [n for n in names if "Memcpy" in n and ("DtoH" in n or "HtoD" in n)]


def test_calls_run_in_the_current_stream_and_do_not_wait(rng):
    x = on_device(rng.normal(size=100_000).astype(np.float32))
    expected = ns.round(2 * x.cpu().numpy() + 1, "e4m3fn")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            ns.round(2 * x + 1, "e4m3fn")  # loads every kernel, which waits for the device
            torch.cuda.synchronize()
            torch.cuda._sleep(200_000_000)  # about 0.1 s
            y = ns.round(2 * x + 1, "e4m3fn")
            busy = not stream.query()
        assert busy, "the call waited for the stream"
        stream.synchronize()
        assert_same(y, expected)


def test_streams_come_and_go(rng):
    x = on_device(rng.normal(size=(64, 64)).astype(np.float32))
    expected = ns.quantize(x.cpu().numpy(), "e4m3fn", scaling="column")
    for _ in range(40):  # more than the working memory of 16 streams
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            t = ns.quantize(x, "e4m3fn", scaling="column")
            y = ns.matmul(t.T, t)
        stream.synchronize()
        assert_same(t.codes, expected.codes)
        assert_same(y, ns.matmul(expected.T, expected))


def test_threads_have_their_own_streams(rng):
    x = rng.normal(size=(200, 300)).astype(np.float32)
    expected = ns.quantize(x, "e4m3fn", scaling="column").codes
    there, results = on_device(x), [None] * 4
    torch.cuda.synchronize()

    def work(i):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                results[i] = ns.quantize(there, "e4m3fn", scaling="column").codes
            torch.cuda.current_stream().synchronize()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        assert_same(result, expected)


def test_rounding_a_tensor_that_needs_gradients_is_straight_through():
    x = torch.linspace(-3, 3, 10, device="cuda", requires_grad=True)
    y = ns.round(x, "e4m3fn")
    assert_same(y.detach(), ns.round(x.detach().cpu().numpy(), "e4m3fn"))
    y.sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


def test_what_has_no_device_path_says_so(rng):
    x = on_device(rng.normal(size=(8, 8)).astype(np.float32))
    host = x.cpu().numpy()
    for error, message, call in [
        (TypeError, "x: expected float32 or .*float64", lambda: ns.quantize(x.double(), "int8")),
        (TypeError, "a: expected float32 or .*float64", lambda: ns.matmul(x.double(), x)),
        (TypeError, "x: expected float32, float64 or", lambda: ns.round(x.int(), "e4m3fn")),
        (TypeError, "out: only for NumPy", lambda: ns.round(x, "e4m3fn", out=host)),
        (ValueError, "array of x's library", lambda: ns.round(x, "e4m3fn", rounding=WORDS)),
        (ns.Error, "update rule|device", lambda: step(x, "note-as-printed")),
        (ValueError, "no device path: pass x.cpu", lambda: ns.array(x, "e4m3fn")),
        (ValueError, "error: has no device", lambda: ns.quantize(x, "int8").error(x)),
        (ValueError, "matmul_error: has no device", lambda: ns.matmul_error(x, x)),
        (ValueError, "at the place of a", lambda: ns.matmul(x, host)),
        (TypeError, "expected uint16 for bf16", lambda: ns.decode(ns.encode(x, "int8"), "bf16")),
        (ns.Error, "no kernel|device", lambda: ns.matmul(x, x, accumulate="exact")),
    ]:
        with pytest.raises(error, match=message):
            call()


WORDS = ns.SR(random_bits=np.zeros(64, np.uint32))


def step(x, rule):
    return ns.update(x, x, lr=0.1, rule=rule, format="bf16")


def doubles(rng, n):
    """float64 numbers of all magnitudes with specials, half of them near 1, and near ties."""
    x = rng.integers(0, 1 << 64, n, dtype=np.uint64).view(np.float64)
    x[::2] = rng.normal(size=len(x[::2]))
    x[::4] = ns.round(x[::4], "bf16") * (1 + 2.0**-9 + 2.0**-50 * (np.arange(len(x[::4])) % 3 - 1))
    return x


@pytest.mark.parametrize("format", FORMATS)
def test_float64_is_rounded_once(rng, format):
    for rounding in ("rne", "rtp", "odd", ns.SR(bits=16, seed=3, stream=0), ns.SR(bits=5, stream=0, variant="c")):
        x = doubles(rng, 10_001)
        y = ns.round(on_device(x), format, rounding=rounding)
        expected = ns.round(x, format, rounding=rounding)
        assert y.dtype == torch.float64 and y.is_cuda
        np.testing.assert_array_equal(y.cpu().numpy(), expected)
        assert np.array_equal(np.signbit(y.cpu().numpy()), np.signbit(expected))
        assert_same(
            ns.encode(on_device(x), format, rounding=rounding),
            ns.encode(x, format, rounding=rounding),
        )


@pytest.mark.parametrize("format", ["e4m3fn", "bf16", "e2m1fn", "bnb-e4m3", "fp32"])
@pytest.mark.parametrize("bits_of", [1, 16, 32])
def test_random_bits_of_the_caller_have_the_bits_of_the_host(rng, format, bits_of):
    words = rng.integers(0, 1 << 32, 10_001, dtype=np.uint32)
    here = ns.SR(bits=bits_of, random_bits=words)
    for there in (on_device(words), on_device(words.view(np.int32))):
        there = ns.SR(bits=bits_of, random_bits=there)
        for x in (floats(rng, 10_001), doubles(rng, 10_001)):
            codes = ns.encode(x, format, rounding=here)
            assert_same(ns.encode(on_device(x), format, rounding=there), codes)
            rounded = ns.round(on_device(x), format, rounding=there).cpu().numpy()
            np.testing.assert_array_equal(rounded, ns.round(x, format, rounding=here))
    seeded = ns.SR(bits=bits_of, seed=4, stream=2)
    given = torch.from_numpy(ns.random_bits(10_001, bits=bits_of, seed=4, stream=2)).cuda()
    x = on_device(floats(rng, 10_001))
    same = ns.encode(x, format, rounding=ns.SR(bits=bits_of, random_bits=given))
    assert torch.equal(same.cpu(), ns.encode(x, format, rounding=seeded).cpu())


@pytest.mark.parametrize("algorithm", ["max", "most-recent", "window"])
def test_delayed_scales_have_the_bits_of_the_host(rng, algorithm):
    there, here = (ns.Delayed("e4m3fn", history=3, algorithm=algorithm) for _ in range(2))
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    for step in range(8):
        x = rng.normal(size=(33, 64)).astype(np.float32) * np.float32(2.0 ** (step % 5))
        with torch.cuda.stream(streams[step // 2 % 2]):  # the state moves to another stream
            t = ns.quantize(on_device(x), "e4m3fn", scaling=there)
            torch.cuda.current_stream().synchronize()
        h = ns.quantize(x, "e4m3fn", scaling=here)
        assert_same(t.codes, h.codes)
        assert t.scale == h.scale
        there.update(), here.update()
        assert there.scale == here.scale and there.state() == here.state()
    assert_same(
        torch.from_numpy(ns.quantize(x, "e4m3fn", scaling=there).codes.copy()).cuda(),
        ns.quantize(x, "e4m3fn", scaling=here).codes,
    )


RULES_THERE = ["naive", "stochastic:16", "master-fp32", "split-master", "kahan", "norm-matched",
               "projection-matched"]  # fmt: skip


@pytest.mark.parametrize("rule", RULES_THERE)
def test_updates_have_the_bits_of_the_host(rng, rule):
    x, u = (rng.normal(size=(40, 50)).astype(np.float32) for _ in range(2))
    here, there, states = x, on_device(x), (None, None)
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    for step in range(6):
        arguments = {"lr": 1e-3, "rule": rule, "format": "bf16", "stream": step, "weight_decay": 0.1}
        a = ns.update(here, u, state=states[0], **arguments)
        with torch.cuda.stream(streams[step // 2 % 2]):
            b = ns.update(there, on_device(u), state=states[1], **arguments)
            torch.cuda.current_stream().synchronize()
        assert_same(b.weights, a.weights)
        for name in ("status", "moved", "saturated", "swallowed", "alpha", "achieved_norm"):
            assert getattr(b, name) == getattr(a, name), name
        here, there, states = a.weights, b.weights, (a.state, b.state)


@pytest.mark.parametrize("scaling", ["block:16/nvfp4", "block:32/e8m0", "block:16", "block:32/pow2-ceil"])
@pytest.mark.parametrize("format", ["e2m1fn", "e4m3fn", "e5m2", "int8", "e3m2fn"])
def test_short_blocks_have_the_bits_of_the_host(rng, scaling, format):
    for shape in ((1, 32), (3, 96), (129, 4096)):
        x = (rng.normal(size=shape) * 2.0 ** rng.integers(-130, 20, shape)).astype(np.float32)
        x[:, :16] = 0
        x[0, 3:6] = np.inf, -np.inf, np.nan  # in a block whose scale is 0 under two levels
        x[-1, 20:24] = np.inf, -np.inf, np.nan, -0.0
        for values in (torch.from_numpy(x), torch.from_numpy(x).bfloat16()):
            here = ns.quantize(values.float().numpy(), format, scaling=scaling)
            there = ns.quantize(values.cuda(), format, scaling=scaling)
            assert_same(there.codes, here.codes)
            if scaling.endswith("nvfp4"):
                assert there.tensor_scale.is_cuda and there.tensor_scale.item() == here.tensor_scale
                assert_same(there.scale_codes, here.scale_codes)
            np.testing.assert_array_equal(bits(there.scales), bits(np.array(here.scales)))


def test_another_device_is_refused_by_its_number():
    if torch.cuda.device_count() < 2:
        pytest.skip("one CUDA device")
    ns.round(torch.zeros(3, device="cuda:0"), "e4m3fn")  # the device of this process
    with pytest.raises(ValueError, match="x: the array is on CUDA device 1"):
        ns.round(torch.zeros(3, device="cuda:1"), "e4m3fn")
    with torch.cuda.device(1):  # the current device does not matter for arrays of the first
        assert_same(ns.round(torch.full((3,), 0.3, device="cuda:0"), "int8"), np.zeros(3, "f4"))


def test_cupy_arrays_stay_what_they_are(rng):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    x = rng.normal(size=(33, 64)).astype(np.float32)
    there = cupy.asarray(x)
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            y = ns.round(there, "e4m3fn")
            codes = ns.encode(there, "e4m3fn")
            values = ns.decode(codes, "e4m3fn")
            t = ns.quantize(there, "e2m1fn", scaling="block:16/nvfp4")
            product = ns.matmul(t, t.T)
            half = ns.round(there.astype(cupy.float16), "e4m3fn")
        stream.synchronize()
        here = ns.quantize(x, "e2m1fn", scaling="block:16/nvfp4")
        for got, expected in [
            (y, ns.round(x, "e4m3fn")),
            (codes, ns.encode(x, "e4m3fn")),
            (values, ns.round(x, "e4m3fn")),
            (t.codes, here.codes),
            (t.dequantize(), here.dequantize()),
            (product, ns.matmul(here, here.T)),
            (half, ns.round(x.astype(np.float16), "e4m3fn")),
        ]:
            assert isinstance(got, cupy.ndarray) and got.dtype == expected.dtype
            np.testing.assert_array_equal(cupy.asnumpy(got), expected)


def test_cupy_has_updates_delayed_scales_and_float64(rng):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    x, u = (rng.normal(size=(20, 32)).astype(np.float32) for _ in range(2))
    words = rng.integers(0, 1 << 32, x.shape, dtype=np.uint32)
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            there = cupy.asarray(x)
            step = ns.update(there, cupy.asarray(u), lr=1e-3, rule="kahan", format="bf16")
            delayed = ns.Delayed("int8")
            codes = ns.quantize(there, "int8", scaling=delayed).codes
            wide = ns.round(there.astype(cupy.float64), "e4m3fn")
            drawn = ns.SR(bits=32, random_bits=cupy.asarray(words))
            drawn = ns.encode(there, "e4m3fn", rounding=drawn)
        stream.synchronize()
        host = ns.update(x, u, lr=1e-3, rule="kahan", format="bf16")
        assert (step.swallowed, step.moved) == (host.swallowed, host.moved)
        for got, expected in [
            (step.weights, host.weights),
            (codes, ns.quantize(x, "int8", scaling=ns.Delayed("int8")).codes),
            (wide, ns.round(x.astype(np.float64), "e4m3fn")),
            (drawn, ns.encode(x, "e4m3fn", rounding=ns.SR(bits=32, random_bits=words))),
        ]:
            assert isinstance(got, cupy.ndarray) and got.dtype == expected.dtype
            np.testing.assert_array_equal(cupy.asnumpy(got), expected)


def test_jax_arrays_stay_what_they_are(rng):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    try:
        device = jax.devices("cuda")[0]
    except RuntimeError as error:
        pytest.skip(f"JAX finds no CUDA device: {error}")
    x, u = (rng.normal(size=(33, 64)).astype(np.float32) for _ in range(2))
    put = lambda array: jax.device_put(array, device)
    there, small = put(x), put(x).astype("bfloat16")
    words = rng.integers(0, 1 << 32, x.shape, dtype=np.uint32)
    t = ns.quantize(there, "e2m1fn", scaling="block:16/nvfp4")
    here = ns.quantize(x, "e2m1fn", scaling="block:16/nvfp4")
    narrow = np.asarray(small)
    codes = ns.encode(there, "e4m3fn")
    step = ns.update(there, put(u), lr=1e-3, rule="kahan", format="bf16")
    host = ns.update(x, u, lr=1e-3, rule="kahan", format="bf16")
    assert step.swallowed == host.swallowed
    for got, expected in [
        (ns.round(there, "e4m3fn"), ns.round(x, "e4m3fn")),
        (ns.round(2 * there + 1, "e4m3fn"), ns.round(2 * x + 1, "e4m3fn")),
        (ns.round(small, "e4m3fn"), ns.round(narrow, "e4m3fn")),
        (codes, ns.encode(x, "e4m3fn")),
        (ns.decode(codes, "e4m3fn") * 2, 2 * ns.round(x, "e4m3fn")),
        (ns.cast(there, "float8_e4m3fn"), ns.cast(x, "float8_e4m3fn")),
        (
            ns.encode(there, "bf16", rounding=ns.SR(bits=32, random_bits=put(words))),
            ns.encode(x, "bf16", rounding=ns.SR(bits=32, random_bits=words)),
        ),
        (t.codes, here.codes),
        (t.dequantize(), here.dequantize()),
        (ns.matmul(t, t.T), ns.matmul(here, here.T)),
        (ns.matmul(there, put(u).T), ns.matmul(x, u.T)),
        (ns.quantize(there, "int8", scale=0.02).codes, ns.quantize(x, "int8", scale=0.02).codes),
        (step.weights, host.weights),
    ]:
        assert isinstance(got, jax.Array) and got.devices() == {device}
        assert got.dtype == expected.dtype
        bytes_of = np.asarray(got).view(np.uint8), np.ascontiguousarray(expected).view(np.uint8)
        np.testing.assert_array_equal(*bytes_of)


def test_arrays_of_jax_may_go_at_any_time(rng):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = rng.normal(size=100_000).astype(np.float32)
    expected = ns.round(x * 3, "e4m3fn")
    for _ in range(20):
        y = ns.round(jax.numpy.asarray(x) * 3, "e4m3fn")
        np.testing.assert_array_equal(np.asarray(y), expected)
