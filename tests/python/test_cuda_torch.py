"""Layers of numsim.torch on a CUDA device: the bits of the same layers on the host.

Needs what test_cuda.py needs. Every comparison is of bits, under accumulation modes that a device
and the host compute alike; NaN counts as one pattern.
"""

import copy

import pytest

import numsim as ns

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no CUDA device", allow_module_level=True)
if ns._core.device_unavailable():
    pytest.skip(f"numsim: {ns._core.device_unavailable()}", allow_module_level=True)
if torch.cuda.get_device_capability(0) != (9, 0):
    pytest.skip("needs the tensor cores of Hopper", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore::numsim.torch.LeftOutWarning")

TOKENS, IN, OUT = 96, 256, 160
FORMATS = ["int8", "e4m3fn", "e5m2", "fp16", "bf16"]


def recipes():
    """Every kind under every format that it takes, with modes that tensor cores have."""
    found = {}
    for kind in ns.linear_kinds():
        for format in FORMATS:
            settings = {"accumulate": "tensor-cores"}
            if kind == "standard":
                settings["high_precision"] = format
            elif kind != "te-hybrid":
                settings["format"] = format
            try:
                found[f"{kind}-{format}"] = ns.LinearRecipe(kind, **settings)
            except ns.Error:
                continue
            if kind == "te-hybrid":
                break
    return found


RECIPES = recipes()


def made(recipe, dtype, device, **arguments):
    """A layer and the tensors of a step, the same ones on every device."""
    draw = torch.Generator().manual_seed(7)

    def normal(*shape):
        return torch.randn(*shape, generator=draw)

    layer = nt.Linear(IN, OUT, False, recipe, dtype=dtype, **arguments)
    with torch.no_grad():
        layer.weight.copy_(normal(OUT, IN) / 16)
    steps = [(normal(TOKENS, IN).to(dtype), normal(TOKENS, OUT).to(dtype)) for _ in range(3)]
    return layer.to(device), [tuple(t.to(device) for t in step) for step in steps]


def run(layer, steps):
    """[(y, dx, dw)] of some steps, on the host."""
    results = []
    for x, g in steps:
        x = x.clone().requires_grad_()
        layer.weight.grad = None
        y = layer(x)
        y.backward(g)
        results.append([t.detach().cpu() for t in (y, x.grad, layer.weight.grad)])
    return results


def assert_same(there, here):
    for step, (a, b) in enumerate(zip(there, here)):
        for name, x, y in zip(("y", "dx", "dw"), a, b):
            assert x.dtype == y.dtype and x.shape == y.shape
            x, y = x.float(), y.float()
            same = (x == y) & (x.signbit() == y.signbit()) | x.isnan() & y.isnan()
            assert same.all(), f"step {step}: {name}: {int((~same).sum())} of {same.numel()} differ"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", RECIPES)
def test_every_kind_has_the_bits_of_the_host(name, dtype):
    recipe = RECIPES[name]
    here = run(*made(recipe, dtype, "cpu"))
    try:
        layer, steps = made(recipe, dtype, "cuda")
        there = run(layer, steps)
    except ns.Error as error:
        pytest.skip(str(error))
    assert_same(there, here)


def test_most_recipes_were_compared():
    """A skip says that tensor cores have no such product; it must be the exception."""
    served = 0
    for recipe in RECIPES.values():
        try:
            run(*made(recipe, torch.float32, "cuda"))
        except ns.Error:
            continue
        served += 1
    assert served >= 0.8 * len(RECIPES)


@pytest.mark.parametrize("kind", ["switchback", "switchback-m", "te-hybrid", "tensor-wise"])
def test_stochastic_gradients_and_delayed_scales_have_the_bits_of_the_host(kind):
    settings = {"gradient_rounding": "sr:16", "accumulate": "tensor-cores"}
    if kind == "te-hybrid":
        settings["delayed_history"] = 2
    else:
        settings["format"] = "e4m3fn"
    recipe = ns.LinearRecipe(kind, **settings)
    here, steps_here = made(recipe, torch.float32, "cpu", seed=3, number=5)
    there, steps_there = made(recipe, torch.float32, "cuda", seed=3, number=5)
    assert_same(run(there, steps_there), run(here, steps_here))
    assert there.steps == here.steps == 3
    assert there.delayed_scales() == here.delayed_scales()
    state = there.state_dict()
    here.load_state_dict(copy.deepcopy({k: v.cpu() for k, v in state.items()}))
    assert here.delayed_scales() == there.delayed_scales()


def test_a_layer_moves_between_devices_with_its_scales():
    recipe = ns.LinearRecipe("te-hybrid", delayed_history=3, accumulate="tensor-cores")
    moving, steps = made(recipe, torch.float32, "cpu")
    staying, _ = made(recipe, torch.float32, "cpu")
    found = run(moving, steps[:1])
    found += run(moving.cuda(), [tuple(t.cuda() for t in step) for step in steps[1:2]])
    found += run(moving.cpu(), steps[2:])
    assert_same(found, run(staying, steps))
    assert moving.delayed_scales() == staying.delayed_scales()


def test_it_works_in_the_callers_stream():
    recipe = RECIPES["switchback-e4m3fn"]
    layer, steps = made(recipe, torch.float32, "cuda")
    want = run(*made(recipe, torch.float32, "cpu"))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        found = run(layer, steps)
    assert_same(found, want)


def test_saved_tensors_are_pytorchs():
    """Hooks see every tensor that is kept, and may move it."""
    layer, steps = made(RECIPES["switchback-m-e4m3fn"], torch.bfloat16, "cuda")
    want = run(*made(RECIPES["switchback-m-e4m3fn"], torch.bfloat16, "cpu"))
    moved = []

    def pack(tensor):
        moved.append(tensor.numel() * tensor.element_size())
        return tensor.cpu()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor.cuda()):
        found = run(layer, steps[:1])
    assert_same(found, want[:1])
    assert sum(moved) >= TOKENS * IN + OUT * IN  # codes of X and W, and the weight itself


def test_checkpoint_repeats_the_step():
    recipe = ns.LinearRecipe("switchback", format="e4m3fn", gradient_rounding="sr:8")
    recipe = recipe.with_settings(accumulate="tensor-cores")
    layer, steps = made(recipe, torch.float32, "cuda")
    want = run(*made(recipe, torch.float32, "cpu"))
    found = []
    for x, g in steps:
        x = x.clone().requires_grad_()
        layer.weight.grad = None
        y = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        y.backward(g)
        found.append([t.detach().cpu() for t in (y, x.grad, layer.weight.grad)])
    assert_same(found, want)


def test_autocast_is_that_of_nn_linear():
    layer, steps = made(RECIPES["switchback-e4m3fn"], torch.float32, "cuda")
    x, _ = steps[0]
    with torch.autocast("cuda", torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y, layer(x.bfloat16()), rtol=0, atol=0)


def test_steps_after_the_first_allocate_nothing_of_their_own():
    layer, steps = made(RECIPES["switchback-e4m3fn"], torch.bfloat16, "cuda")
    run(layer, steps[:2])
    before = ns._core.device_bytes()
    run(layer, steps * 3)
    assert ns._core.device_bytes() == before


@pytest.mark.parametrize("kind", ["switchback-e4m3fn", "switchback-m-e4m3fn", "te-hybrid-int8"])
def test_watch_measures_what_the_host_does(kind):
    def watched(device):
        layer, steps = made(RECIPES[kind], torch.float32, device)
        model = torch.nn.Sequential(layer)
        with nt.watch(model) as log:
            for x, g in steps:
                model(x.clone().requires_grad_()).backward(g)
        return log

    there, here = watched("cuda"), watched("cpu")
    quantised = here.quantised
    if kind.startswith("switchback-m"):  # a device dequantises the codes of X to bf16 at once
        quantised = [row for row in quantised if row["operand"] != "weight gradient X"]
        assert len(quantised) < len(here.quantised)
    # As texts, because some measures are NaN.
    assert [*map(str, there.quantised)] == [*map(str, quantised)]
    assert [*map(str, there.rows)] == [*map(str, here.rows)]


def test_a_weight_elsewhere_is_refused():
    layer, steps = made(RECIPES["switchback-e4m3fn"], torch.float32, "cpu")
    with pytest.raises(ValueError, match="input: is on cuda:0, and the weight on cpu"):
        layer(steps[0][0].cuda())


def test_a_converted_model_trains():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64)
    ).cuda()
    recipe = ns.LinearRecipe("switchback", format="e4m3fn", accumulate="tensor-cores")
    nt.convert(model, recipe)
    x = torch.randn(512, 64, device="cuda")
    target = x.roll(1, 1)
    steps = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(60):
        loss = torch.nn.functional.mse_loss(model(x), target)
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]


OPTIMIZERS = {
    "fp32": {},
    "bf16 weights": {"weights": "bf16"},
    "stochastic bf16 weights": {"weights": "bf16", "rounding": "sr", "seed": 5},
    "kahan": {"weights": "bf16", "rounding": "kahan"},
    "split master": {"weights": "bf16", "rounding": "split-master"},
    "fp8 moments": {"moments": ("e4m3fn", "e5m2")},
    "fp8 moments in blocks": {"moments": ("e4m3fn@block:128", "e4m3fn@block:128")},
    "coat moments": {"moments": ("e4m3fn@coat", "e4m3fn@coat")},
    "stochastic fp8 moments": {"moments": ("e4m3fn+sr", "e5m2+sr")},
    "bf16 moments": {"moments": ("bf16", "bf16"), "weights": "bf16"},
}


def parameters(device, dtype):
    draw = torch.Generator().manual_seed(11)
    shapes = [(64, 96), (1,), (4097,), (3, 5, 7), (130, 130)]
    drawn = [torch.randn(*shape, generator=draw) for shape in shapes]
    return [torch.nn.Parameter(t.to(dtype).to(device)) for t in drawn]


def optimized(device, arguments, dtype=torch.float32, steps=20):
    """The parameters after some steps with drawn gradients, and the optimiser."""
    params = parameters(device, dtype)
    optimizer = nt.AdamW(params, lr=1e-2, weight_decay=0.1, **arguments)
    draw = torch.Generator().manual_seed(13)
    for step in range(steps):
        for i, p in enumerate(params):
            gradient = torch.randn(p.shape, generator=draw) * 10.0 ** (step % 5 - 3)
            p.grad = None if step == 3 and i == 1 else gradient.to(dtype).to(device)
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimiser_steps_have_the_bits_of_the_host(name, dtype):
    arguments = OPTIMIZERS[name]
    if dtype != torch.float32 and arguments.get("weights", "fp32") == "fp32":
        pytest.skip("bfloat16 does not hold weights of fp32")
    here, host = optimized("cpu", arguments, dtype)
    try:
        there, device = optimized("cuda", arguments, dtype)
    except ns.Error as error:
        pytest.skip(str(error))
    for a, b in zip(there, here):
        assert torch.equal(a.detach().cpu(), b.detach())
    assert device.last == host.last
    assert device.state_dict()["state"].keys() == host.state_dict()["state"].keys()


def test_an_optimisers_state_moves_between_devices():
    arguments = OPTIMIZERS["fp8 moments"]
    there, device = optimized("cuda", arguments, steps=7)
    here, host = optimized("cpu", arguments, steps=7)
    state = device.state_dict()
    host.load_state_dict(state)
    for params, optimizer in ((there, device), (here, host)):
        for p in params:
            p.grad = torch.ones_like(p)
        optimizer.step()
    for a, b in zip(there, here):
        assert torch.equal(a.detach().cpu(), b.detach())
