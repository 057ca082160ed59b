"""numsim.torch: linear layers and the conversion of models."""

import copy
import io
import subprocess
import sys

import numpy as np
import pytest

import numsim as ns
from conftest import same

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")
pytestmark = pytest.mark.filterwarnings("ignore::numsim.torch.LeftOutWarning")


def tensors(rng, tokens=24, inner=64, out=32):
    shapes = ((tokens, inner), (out, inner), (tokens, out))
    return [torch.from_numpy(rng.normal(size=s).astype(np.float32)) for s in shapes]


def layer_with(weight, recipe, bias=False, **arguments):
    out, inner = weight.shape
    layer = nt.Linear(inner, out, bias, recipe, **arguments)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer


def passes(layer, x, g):
    """(y, dx, dw) of one step."""
    x = x.clone().requires_grad_()
    layer.weight.grad = None
    y = layer(x)
    y.backward(g)
    return y.detach(), x.grad, layer.weight.grad


def test_standard_in_fp32_has_torchs_gradients(rng):
    x, w, g = tensors(rng)
    x, g = x.reshape(4, 6, -1), g.reshape(4, 6, -1)
    ours = layer_with(w, "standard-fp32", bias=True)
    theirs = torch.nn.Linear(w.shape[1], w.shape[0])
    theirs.load_state_dict({"weight": ours.weight, "bias": ours.bias})
    for a, b in zip(passes(ours, x, g), passes(theirs, x, g)):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)


@pytest.mark.parametrize("kind", ns.linear_kinds())
def test_every_kind_has_the_bits_of_the_array_layer(kind, rng):
    x, w, g = tensors(rng, tokens=40, inner=160, out=136)
    rounding = {} if kind == "standard" else {"gradient_rounding": "sr"}
    recipe = ns.LinearRecipe(kind, **rounding)
    layer = layer_with(w, recipe, seed=11, number=3)
    arrays = ns.Linear(recipe)
    for step in range(2):
        random = ns.SR(seed=ns._core.linear_seed(11), stream=step * 4096 + 3)
        y, saved = arrays.forward(x, w, random)
        dx, dw = arrays.backward(g, w, saved, random)
        for expected, got in zip((y, dx, dw), passes(layer, x, g)):
            assert same(expected.numpy(), got.numpy())


def test_results_have_the_dtype_of_the_input(rng):
    x, w, g = tensors(rng)
    layer = layer_with(w, "switchback-int8")
    y, dx, dw = passes(layer, x.bfloat16(), g.bfloat16())
    assert (y.dtype, dx.dtype, dw.dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)
    wide = passes(layer, x.bfloat16().float(), g.bfloat16().float())
    assert torch.equal(y, wide[0].bfloat16()) and torch.equal(dw, wide[2])
    with pytest.raises(TypeError, match="input: expected float32"):
        layer(x.double())
    with pytest.raises(ValueError, match=r"input: expected shape \(\.\.\., 64\)"):
        layer(x[:, :60])


def test_gradients_that_nobody_needs_are_not_computed(rng):
    x, w, g = tensors(rng)
    layer = layer_with(w, "switchback-int8")
    layer(x).backward(g)
    assert x.grad is None and layer.weight.grad is not None
    layer.weight.requires_grad_(False)
    y, dx, dw = passes(layer, x, g)
    assert dw is None and dx is not None


def test_evaluation_changes_no_state_and_checkpoints_hold_it(rng):
    x, w, g = tensors(rng)
    recipe = ns.LinearRecipe("te-hybrid", delayed_history=3, gradient_rounding="sr")
    layer = layer_with(w, recipe)
    passes(layer, x, g)
    before = layer.get_extra_state()
    layer.eval()(x * 100)
    assert torch.equal(layer.get_extra_state(), before) and layer.steps == 1
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    loaded = nt.Linear(w.shape[1], w.shape[0], False, recipe)
    loaded.load_state_dict(torch.load(file, weights_only=True))
    copied = copy.deepcopy(layer)
    expected = passes(layer.train(), x, g)
    for other in (loaded, copied):
        for a, b in zip(expected, passes(other.train(), x, g)):
            assert same(a.numpy(), b.numpy())


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.proj = torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width)
        )

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.proj(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.mlp(x)


def transformer(width=32, vocabulary=16):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Embedding(vocabulary, width),
        Block(width),
        Block(width),
        torch.nn.Linear(width, vocabulary),
    )


def losses(model, optimizer, steps):
    generator = torch.Generator().manual_seed(1)
    result = []
    for _ in range(steps):
        start = torch.randint(16, (8, 1), generator=generator)
        tokens = (start + 3 * torch.arange(17)) % 16  # a rule that the model can learn
        loss = torch.nn.functional.cross_entropy(
            model(tokens[:, :-1]).reshape(-1, 16), tokens[:, 1:].reshape(-1)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        result.append(loss.item())
    return result


@pytest.mark.parametrize("recipe", ["switchback-int8", "te-hybrid", "mx"])
def test_a_converted_transformer_learns(recipe):
    model = nt.convert(transformer(), recipe)
    assert len(nt.converted(model)) == 9
    curve = losses(model, torch.optim.AdamW(model.parameters(), 3e-3), 60)
    assert curve[0] > 2.5 and np.mean(curve[-5:]) < 0.5


def test_conversion_keeps_objects_and_parameters_and_can_be_undone():
    model = transformer()
    plain = repr(model)
    layers, parameters = list(model.modules()), list(model.parameters())
    keys = list(model.state_dict())
    assert nt.convert(model, "switchback-int8") is model
    assert "recipe=LinearRecipe('switchback', format='int8')" in repr(model)
    nt.convert(model, {"1.mlp.0": "mx"})  # again, with another recipe
    assert nt.converted(model)["1.mlp.0"] == ns.LinearRecipe("mx")
    model.load_state_dict(transformer().state_dict())  # of the plain model, strictly
    assert all(a is b for a, b in zip(layers, model.modules()))
    assert all(a is b for a, b in zip(parameters, model.parameters()))
    assert nt.revert(model) is model and nt.converted(model) == {}
    assert repr(model) == plain and list(model.state_dict()) == keys


def test_the_first_matching_pattern_counts():
    model = transformer()
    nt.convert(
        model,
        {
            "3": None,
            "1.*/wgrad": None,
            "*.qkv/forward": None,
            "*.mlp.*": "llm-int8",
            "1.*": "switchback-int8",
            "2.qkv": "llm-int8",
        },
    )
    recipes = nt.converted(model)
    assert list(recipes) == ["1.qkv", "1.proj", "1.mlp.0", "1.mlp.2", "2.qkv", "2.mlp.0", "2.mlp.2"]
    kept = {name: recipe.settings.get("high_operands") for name, recipe in recipes.items()}
    assert kept == {
        "1.qkv": "forward,weight-gradient",
        "1.proj": "weight-gradient",
        "1.mlp.0": "weight-gradient",
        "1.mlp.2": "weight-gradient",
        "2.qkv": "forward",
        "2.mlp.0": None,
        "2.mlp.2": None,
    }
    assert [m.number for m in model.modules() if isinstance(m, nt.Linear)] == list(range(7))


@pytest.mark.parametrize(
    "recipes, message",
    [
        ({"1.qvk": "mx"}, r"'1\.qvk' matches no linear layer; did you mean 1\.qkv\?"),
        ({"*": "mx", "3": None}, "'3' never counts"),
        ({"3/backward": None}, "'3/backward': GEMMs are forward, input-gradient"),
        ({"3/forward": "mx", "3": "block"}, "the GEMMs of '3' have 2 recipes"),
        ({"3/wgrad": None, "3": "te-hybrid"}, "'3': high_operands"),
        ({"3": "mxx"}, "'mxx' is neither a kind nor KIND-FORMAT nor"),
    ],
)
def test_mistakes_in_patterns_change_nothing(recipes, message):
    model = transformer()
    with pytest.raises(ValueError, match=message):
        nt.convert(model, recipes)
    assert nt.converted(model) == {}


def test_the_fast_path_of_torchs_encoder_does_not_pass_the_layers_by():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    x = torch.randn(2, 5, 32)
    nt.convert(layer, {"linear?": "switchback-e2m1fn"})
    with torch.no_grad():
        layer.train()
        for module in layer.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        layer.self_attn.dropout = 0.0
        expected = layer(x)
        torch.testing.assert_close(layer.eval()(x), expected, rtol=1e-5, atol=1e-5)


COEXISTENCE = """
import hashlib, sys
for name in sys.argv[1:]:
    __import__(name)
import numpy as np, numsim as ns
ns.threads(2)
x = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)
for repetition in range(3):  # with work of torch's own threads in between
    if "torch" in sys.modules:
        sys.modules["torch"].from_numpy(x).matmul(sys.modules["torch"].from_numpy(x))
    results = (
        ns.matmul(x, x, accumulate="bf16"),
        ns.matmul(ns.quantize(x, "e4m3fn", scaling="row"), ns.quantize(x, "e4m3fn")),
        ns.encode(x, "e4m3fn", rounding=ns.SR(bits=16, stream=0)),
    )
    print(*(hashlib.sha256(result.tobytes()).hexdigest() for result in results))
"""


def test_bits_do_not_depend_on_torch_nor_on_the_order_of_imports():
    outputs = set()
    for order in (["numsim"], ["torch", "numsim"], ["numsim", "torch"]):
        command = [sys.executable, "-c", COEXISTENCE, *order]
        run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
        outputs.update(run.stdout.splitlines())
    assert len(outputs) == 1
