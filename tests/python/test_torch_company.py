"""numsim.torch beside other parts of PyTorch: torch.compile, autocast, checkpoints."""

import numpy as np
import pytest

import numsim as ns

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")
SR_GRADIENTS = ns.LinearRecipe("llm-int8", gradient_rounding="sr")


def model(recipe="switchback-int8"):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.Linear(32, 4)
    )
    return nt.convert(net, recipe)


def gradients(net):
    return [p.grad.clone() for p in net.parameters()]


def steps(net, call, rng, count=2):
    """The gradients after each of some steps."""
    found = []
    for _ in range(count):
        x = torch.from_numpy(rng.normal(size=(8, 16)).astype(np.float32)).requires_grad_()
        net.zero_grad()
        call(x).square().sum().backward()
        found += [*gradients(net), x.grad.clone()]
    return found


def equal(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


DELAYED = ns.LinearRecipe("te-hybrid", delayed_history=4)
RECIPES = pytest.mark.parametrize(
    "recipe", [SR_GRADIENTS, DELAYED, "mx"], ids=["stochastic", "delayed", "mx"]
)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@RECIPES
def test_compiled_models_have_the_same_bits(backend, recipe):
    plain, other = model(recipe), model(recipe)
    compiled = torch.compile(other, backend=backend, fullgraph=True)
    expected = steps(plain, plain, np.random.default_rng(1), 3)
    assert equal(steps(other, compiled, np.random.default_rng(1), 3), expected)
    assert [other[i].steps for i in (0, 2, 3)] == [3, 3, 3]
    assert other[2].delayed_scales() == plain[2].delayed_scales()
    assert [m.steps for m in plain.modules() if isinstance(m, nt.Linear)] == [3, 3, 3]


def test_inductor_keeps_the_layers_bits():
    plain, other = model(SR_GRADIENTS), model(SR_GRADIENTS)
    compiled = torch.compile(other, fullgraph=True)
    expected = steps(plain, plain, np.random.default_rng(1))
    assert equal(steps(other, compiled, np.random.default_rng(1)), expected)


def test_inductor_takes_results_for_aligned(monkeypatch):
    # Otherwise its kernels on a GPU load one element at a time. The other inputs of this graph count
    # as unaligned, because they lie on the host.
    graphs = []
    lowering = pytest.importorskip("torch._inductor.graph").GraphLowering
    run = lowering.run
    monkeypatch.setattr(lowering, "run", lambda graph, *a: graphs.append(graph) or run(graph, *a))
    net = model("standard")
    with torch._inductor.config.patch(force_disable_caches=True):
        torch.compile(net, fullgraph=True)(torch.ones(8, 16)).sum().backward()
    assert len(graphs) == 2
    for graph in graphs:
        results = {b.get_name() for b in graph.buffers if type(b).__name__ == "MultiOutput"}
        assert len(results) >= 6
        assert not graph.unaligned_buffers & results
        assert graph.unaligned_buffers


class Repeated(torch.nn.Module):
    """Blocks that share compiled code, with a checkpoint around each."""

    def __init__(self, block, count, checkpointed):
        super().__init__()
        self.blocks = torch.nn.ModuleList([block() for _ in range(count)])
        self.checkpointed = checkpointed

    def forward(self, x):
        for block in self.blocks:
            if self.checkpointed:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return x


def blocks(recipe, checkpointed=False):
    torch.manual_seed(0)

    def block():
        return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU())

    return nt.convert(Repeated(block, 12, checkpointed), recipe)


@RECIPES
def test_blocks_of_one_recipe_share_compiled_code(recipe):
    torch._dynamo.reset()
    plain, other = blocks(recipe), blocks(recipe)
    for block in other.blocks:
        block.compile(backend="aot_eager", fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        found = steps(other, other, np.random.default_rng(1))
    assert equal(found, steps(plain, plain, np.random.default_rng(1)))


@RECIPES
def test_compiled_checkpoints_change_no_bit(recipe):
    plain, other = blocks(recipe), blocks(recipe, checkpointed=True)
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    expected = steps(plain, plain, np.random.default_rng(1))
    assert equal(steps(other, compiled, np.random.default_rng(1)), expected)
    assert other.blocks[5][0].steps == 2


def test_an_attention_is_compiled_whole():
    def encoder():
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        return nt.convert(layer, SR_GRADIENTS)

    plain, other = encoder(), encoder()
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    rng = np.random.default_rng(1)
    xs = [torch.from_numpy(rng.normal(size=(2, 5, 16)).astype(np.float32)) for _ in range(2)]
    for x in xs:
        expected, found = plain(x), compiled(x)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        for y in (expected, found):
            y.square().sum().backward()
    assert other.self_attn.steps == plain.self_attn.steps == 2


def test_a_change_of_shape_or_mode_is_compiled_again():
    plain, other = model(SR_GRADIENTS), model(SR_GRADIENTS)
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    for rows, training in ((3, True), (5, True), (9, False), (3, True)):
        x = torch.randn(rows, 16)
        assert torch.equal(compiled.train(training)(x), plain.train(training)(x))
    assert other[0].steps == plain[0].steps == 3


def test_the_operators_are_declared_as_they_behave():
    layer = nt.Linear(16, 8, recipe=SR_GRADIENTS)
    x = torch.randn(4, 16, requires_grad=True)
    for training in (True, False):
        arguments = (x, layer.weight, layer._gemms.state, layer._gemms.key, training)
        tests = ("test_schema", "test_faketensor")
        torch.library.opcheck(torch.ops.numsim.linear, arguments, test_utils=tests)


def test_compiled_models_are_watched():
    net = model()
    with nt.watch(net) as log:
        steps(net, torch.compile(net, backend="eager"), np.random.default_rng(1), 1)
    assert len(log.rows) == 3 * 6


def test_autocast_makes_of_inputs_what_it_makes_for_nn_linear(rng):
    net, x = model(), torch.from_numpy(rng.normal(size=(8, 16)).astype(np.float32))
    first = net[0]
    with torch.autocast("cpu", torch.bfloat16):
        y = first(x)
        assert torch.nn.Linear(16, 16)(x).dtype == torch.bfloat16 == y.dtype
        y.sum().backward()
    assert torch.equal(y, first(x.bfloat16()))
    assert first.weight.grad.dtype == torch.float32
    with torch.autocast("cpu", enabled=False):
        assert first(x).dtype == torch.float32


@pytest.mark.parametrize("reentrant", [False, True])
@RECIPES
def test_checkpoints_change_no_bit(recipe, reentrant):
    plain, other = model(recipe), model(recipe)

    def checkpointed(x):
        y = torch.utils.checkpoint.checkpoint(other[:3], x, use_reentrant=reentrant)
        return other[3](y)

    expected = steps(plain, plain, np.random.default_rng(1), 4)
    assert equal(steps(other, checkpointed, np.random.default_rng(1), 4), expected)
    states = [[net[i].get_extra_state() for i in (0, 2, 3)] for net in (plain, other)]
    assert all(torch.equal(a, b) for a, b in zip(*states)) and other[0].steps == 4
