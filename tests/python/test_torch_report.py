"""numsim.torch: what convert reports and leaves out, and MultiheadAttention."""

import copy
import itertools
import warnings

import numpy as np
import pytest

import numsim as ns

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")
nn, F = torch.nn, torch.nn.functional


class Everything(nn.Module):
    """A model with every kind of matrix."""

    class Lora(nn.Linear):
        def forward(self, x):
            return super().forward(x) + 1

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 8)
        self.position = nn.Parameter(torch.randn(1, 5, 8))
        self.gain = nn.Parameter(torch.randn(8))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.convolution = nn.Conv1d(8, 8, 1)
        self.lora = self.Lora(8, 8)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
        self.old_normed = nn.utils.weight_norm(nn.Linear(8, 8))
        self.bilinear = nn.Bilinear(8, 8, 3)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.functional = nn.Linear(8, 8)
        self.head = nn.Linear(8, 16, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position * self.gain
        x = x + self.attention(x, x, x)[0]
        x = self.convolution(x.transpose(1, 2)).transpose(1, 2)
        x = self.old_normed(self.normed(self.lora(x)))
        return self.head(self.rnn(F.linear(x, self.functional.weight))[0])


def test_convert_lists_every_matrix_that_stays():
    model = Everything()
    with pytest.warns(nt.LeftOutWarning) as caught:
        nt.convert(model, "switchback-int8")
    report = nt.report(model)
    kept = {k.name: k for k in report.kept}
    matrices = {n: tuple(p.shape) for n, p in model.named_parameters() if p.dim() > 1}
    inside = [
        *("attention.in_proj_weight", "attention.out_proj.weight", "functional.weight"),
        *("head.weight", "old_normed.weight_g", "old_normed.weight_v"),
    ]
    assert {n: k.shape for n, k in kept.items()} == {
        n: shape for n, shape in matrices.items() if n not in inside
    }
    assert kept["lora.weight"].reason == "Lora is a subclass of nn.Linear"
    assert "parametrised" in kept["normed.parametrizations.weight.original1"].reason
    sizes = {n: np.prod(shape) for n, shape in matrices.items()}
    assert report.share == sum(sizes[n] for n in inside) / sum(sizes.values())
    assert list(report.converted) == list(nt.converted(model)) == [
        *("attention.in_proj", "attention.out_proj", "old_normed", "functional", "head")
    ]
    text = str(caught[0].message)
    assert f"{len(kept)} matrices stay in high precision; {report.share:.0%} of" in text
    for name, k in kept.items():
        assert f"{name} {' x '.join(map(str, k.shape))}: {k.reason}" in text
        assert name in str(report)


def test_a_model_of_linear_layers_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nt.convert(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), "mx")


def test_patterns_with_none_accept_matrices():
    model = nn.Sequential(nn.Embedding(4, 8), nn.Conv1d(8, 8, 1), nn.Linear(8, 8), nn.Linear(8, 2))
    with pytest.warns(nt.LeftOutWarning) as caught:
        nt.convert(model, {"1.weight": None, "2": None, "*": "mx"})
    assert "1 matrix stays" in str(caught[0].message) and "0.weight" in str(caught[0].message)
    assert list(nt.converted(model)) == ["3"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nt.convert(model, {"0": None, "1*": None, "2": None, "*": "mx"})
    with pytest.raises(ValueError, match="'1' matches no linear layer; 1.weight 8 x 8 x 1: a param"):
        nt.convert(model, {"1": "mx"})
    with pytest.warns(nt.LeftOutWarning, match="2.weight 8 x 8: no recipe"):
        nt.convert(nt.revert(model), {"0": None, "1": None, "3": "mx"})


def test_tied_matrices_and_lazy_layers():
    model = nn.ModuleDict({"embedding": nn.Embedding(16, 8), "head": nn.Linear(8, 16, bias=False)})
    model["head"].weight = model["embedding"].weight
    model["lazy"] = nn.LazyLinear(3)
    with pytest.warns(nt.LeftOutWarning, match="lazy.weight of no shape yet: LazyLinear has no"):
        nt.convert(model, "mx")
    report = nt.report(model)
    assert report.share == 1 and [k.name for k in report.kept] == ["lazy.weight"]


def test_layers_that_never_run_are_reported():
    torch.manual_seed(0)
    model = Everything()
    tokens = torch.randint(16, (2, 5))
    with pytest.warns(nt.LeftOutWarning, match="stay in high precision"):
        nt.convert(model, "switchback-int8")
    assert nt.report(model).idle == []
    with pytest.warns(nt.LeftOutWarning, match="did not run in the first .*: functional; a weight"):
        model(tokens)
    with warnings.catch_warnings():
        warnings.simplefilter("error", nt.LeftOutWarning)
        model(tokens)  # once is enough
    assert nt.report(model).idle == ["functional"]
    assert "never run in training mode:\n  functional" in str(nt.report(model))
    nt.revert(model)
    assert not model._forward_hooks and nt.report(model).share == 0


def test_a_converted_layer_can_be_parametrised():
    layer = nt.convert(nn.Sequential(nn.Linear(8, 8)), "llm-int8")[0]
    nn.utils.parametrizations.weight_norm(layer)
    model = nn.Sequential(layer)
    model(torch.randn(3, 8)).sum().backward()
    assert layer.parametrizations.weight.original1.grad is not None and layer.steps == 1
    report = nt.report(model)
    assert list(report.converted) == ["0"] and report.kept == [] and report.share == 1


MASKS = ["none", "bool", "float", "padding", "both", "3d"]


@pytest.mark.filterwarnings("ignore:convert. 2 matrices stay")
@pytest.mark.parametrize("call", ["self", "key is value", "three", "unbatched"])
@pytest.mark.parametrize("mask", MASKS)
def test_attention_is_torchs_in_fp32(mask, call):
    torch.manual_seed(MASKS.index(mask))
    for batch_first, more, bias in itertools.product((False, True), repeat=3):
        sizes = {"kdim": 12, "vdim": 20} if call == "three" and not more else {}
        theirs = nn.MultiheadAttention(
            16, 4, bias=bias, add_bias_kv=more, add_zero_attn=more, batch_first=batch_first, **sizes
        )
        for p in theirs.parameters():
            nn.init.normal_(p, std=0.3)
        ours = nt.convert(copy.deepcopy(theirs), "standard-fp32")
        length = 5 if call in ("self", "unbatched") else 7

        def tensor(n, width):
            shape = (n,) if call == "unbatched" else (3, n) if batch_first else (n, 3)
            return torch.randn(*shape, width)

        query = tensor(5, 16)
        key = query if call in ("self", "unbatched") else tensor(7, sizes.get("kdim", 16))
        value = tensor(7, sizes.get("vdim", 16)) if call == "three" else key
        given = {}
        if mask in ("bool", "both"):
            given["attn_mask"] = torch.ones(5, length, dtype=torch.bool).triu(1)
        if mask == "float":
            given["attn_mask"] = torch.randn(5, length)
        if mask == "3d":
            given["attn_mask"] = torch.randn(4 if call == "unbatched" else 12, 5, length)
        if mask in ("padding", "both"):
            given["key_padding_mask"] = torch.zeros(3, length, dtype=torch.bool)
            given["key_padding_mask"][:, -1] = True
            if call == "unbatched":
                given["key_padding_mask"] = given["key_padding_mask"][0]
        for need, average in ((False, True), (True, False), (True, True)):
            extra = {"need_weights": need, "average_attn_weights": average}
            (a, x), (b, y) = (m(query, key, value, **given, **extra) for m in (ours, theirs))
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
            if need:
                torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)
            assert (x is None) == (y is None) == (not need)
        a.square().sum().backward()
        b.square().sum().backward()
        for p, q in zip(ours.parameters(), theirs.parameters()):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-4)
        assert ours.out_proj.steps == 3 and ours.steps >= 3


def test_attention_multiplies_in_the_precision_of_its_recipes():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 16)
    attention = nn.MultiheadAttention(16, 2, batch_first=True)
    weight = attention.in_proj_weight.detach()
    nt.convert(attention, {"in_proj": "llm-int8", "out_proj": "mx"})
    assert nt.converted(attention) == {
        "in_proj": ns.LinearRecipe("llm-int8"),
        "out_proj": ns.LinearRecipe("mx"),
    }
    expected, _ = ns.Linear("llm-int8").forward(x.reshape(-1, 16), weight)
    q, k, v = expected.reshape(2, 5, 3, 2, 8).permute(2, 0, 3, 1, 4)
    heads = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(10, 16)
    out, _ = ns.Linear("mx").forward(heads, attention.out_proj.weight.detach())
    y, _ = attention(x, x, x, need_weights=False)
    torch.testing.assert_close(y.reshape(10, 16), out, rtol=0, atol=1e-6)


def test_each_product_of_an_attention_has_steps_and_scales_of_its_own():
    recipe = ns.LinearRecipe("te-hybrid", delayed_history=2)
    attention = nt.convert(nn.MultiheadAttention(8, 2), recipe)
    x, y, z = (size * torch.randn(5, 3, 8) for size in (1, 10, 100))
    steps = {}
    for name, call in (("self", (x, x, x)), ("cross", (x, y, y)), ("three", (x, y, z))):
        attention(*call)
        steps[name] = [p._gemms.steps for p in attention._projections.values()]
    assert steps == {"self": [1, 0, 0, 0, 0], "cross": [1, 1, 1, 0, 0], "three": [1, 2, 1, 1, 1]}
    scales = {n: p._gemms.scales()["x"][0] for n, p in attention._projections.items()}
    for name, tensor in (("qkv", x), ("q", x), ("kv", y), ("k", y), ("v", z)):
        assert scales[name] == pytest.approx(float(tensor.abs().max()) / 448, rel=1e-6)


def test_parts_of_an_attention_are_converted_and_reverted():
    plain = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)
    text, keys = repr(plain), list(plain.state_dict())
    model = copy.deepcopy(plain)
    with pytest.warns(nt.LeftOutWarning, match="self_attn.in_proj_weight 24 x 8: no recipe"):
        nt.convert(model, {"*.out_proj": "mx", "*.linear?": "mx"})
    attention = model.layers[0].self_attn
    assert type(attention) is nt.MultiheadAttention and attention.recipe is None
    layers = ("self_attn.out_proj", "linear1", "linear2")
    assert list(nt.converted(model)) == [f"layers.0.{layer}" for layer in layers]
    nt.convert(model, "mx")  # again, and all
    assert attention.recipe == ns.LinearRecipe("mx") and nt.report(model).kept == []
    numbers = [gemms.number for gemms in attention._all_gemms()]
    assert numbers == [0, 1, 2, 3, 4] and attention.out_proj.number == 5
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[0, 3:] = True
    with torch.no_grad():  # where PyTorch takes its fast path, with nested tensors
        a, b = (m.eval()(torch.ones(3, 5, 8), src_key_padding_mask=padding) for m in (plain, model))
    assert a.shape == b.shape and not torch.equal(a[~padding], b[~padding])
    torch.testing.assert_close(a[~padding], b[~padding], rtol=0.3, atol=0.3)
    assert repr(nt.revert(model)) == text and list(model.state_dict()) == keys
    assert model.use_nested_tensor == plain.use_nested_tensor


def test_mistakes_of_an_attentions_caller_are_named():
    attention = nt.convert(nn.MultiheadAttention(8, 2, batch_first=True), "mx")
    x = torch.randn(2, 5, 8)
    with pytest.raises(ValueError, match=r"attn_mask: expected shape \(5, 5\) or \(4, 5, 5\)"):
        attention(x, x, x, attn_mask=torch.zeros(5, 4))
    with pytest.raises(ValueError, match=r"key_padding_mask: expected shape \(2, 5\)"):
        attention(x, x, x, key_padding_mask=torch.zeros(5, 2))
    with pytest.raises(TypeError, match="mask: expected bool or a float dtype, found torch.int64"):
        attention(x, x, x, attn_mask=torch.zeros(5, 5, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="attn_mask: is_causal"):
        attention(x, x, x, is_causal=True)


def test_recipes_of_configurations_work_by_name():
    delayed = ns.LinearRecipe("te-hybrid", delayed_history=1024)
    assert ns.LinearRecipe("fp8-delayed") == delayed
    assert ns.LinearRecipe("fp8-delayed", delayed_history=4).settings["delayed_history"] == 4
    assert "fp8-mx" in ns.model_recipes()
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)))
    with pytest.warns(nt.LeftOutWarning, match="'fp8-delayed' leaves first and last layers in bf16: 0, 3 "):
        nt.convert(model, "fp8-delayed")
    standard = ns.LinearRecipe("standard")
    assert list(nt.converted(model).values()) == [standard, delayed, delayed, standard]
    nt.convert(model, {"*": "fp8-delayed"})
    assert set(nt.converted(model).values()) == {delayed}
    language = nn.Sequential(nn.Embedding(8, 8), nn.Linear(8, 8), nn.Linear(8, 8))
    with pytest.warns(nt.LeftOutWarning):
        nt.convert(language, "fp8-block")  # the first matrix is an embedding
    assert list(nt.converted(language).values()) == [ns.LinearRecipe("block"), standard]
    for name in ns.model_recipes():
        if "smooth" in name or "w3" in name:
            with pytest.raises(ValueError, match=f"'{name}'.* those of '{name[:9]}"):
                ns.LinearRecipe(name)
        else:
            assert ns.LinearRecipe(name).gemms
    with pytest.raises(ValueError, match="did you mean fp8-delayed"):
        nt.convert(model, "fp8-delayd")
    with pytest.raises(ValueError, match=r"layers of its own by the names \*.mlp.down"):
        nt.convert(model, "fp8-delayed-w3-bf16")


def test_layers_that_a_recipe_for_models_leaves_in_bf16_are_told_apart():
    def told(model, recipe):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            nt.convert(model, recipe)
        return [str(warning.message) for warning in caught]

    two = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    leaves = "convert: 'fp8-delayed' leaves first and last layers in bf16: "
    assert told(two, "fp8-delayed") == [leaves + "0, 1 (2 of 2 converted layers)"]
    assert told(nn.Sequential(nn.Linear(4, 2)), "fp8-delayed") == [
        leaves + "0 (1 of 1 converted layers)"
    ]
    assert told(two, "bf16") == []
    language = nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))
    assert told(language, "fp8-delayed") == [
        leaves + "2 (1 of 2 converted layers)\n"
        "convert: 1 matrix stays in high precision too; 60% of the elements of matrices are in "
        "converted layers. To accept a matrix, give its name the recipe None.\n"
        "  0.weight 4 x 4: Embedding looks rows up"
    ]


def test_recipes_with_layers_of_their_own_find_them():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp = nn.ModuleDict({"up": nn.Linear(8, 8), "down": nn.Linear(8, 8)})

    model = nn.ModuleDict({"head": nn.Linear(8, 8), "block": Block(), "tail": nn.Linear(8, 8)})
    with pytest.warns(nt.LeftOutWarning, match="in bf16: head, tail"):
        nt.convert(model, "fp8-delayed-w3-bf16")
    recipes = nt.converted(model)
    forward = recipes["block.mlp.down"].gemms["forward"]
    assert forward[0] == "bf16" and recipes["block.mlp.up"] == ns.LinearRecipe("fp8-delayed")


def test_the_warning_of_what_is_left_out_names_the_line_of_the_call():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    code = compile("nt.convert(model, {'0': 'mx-e4m3fn'})", "the caller", "exec")
    with pytest.warns(nt.LeftOutWarning) as told:
        exec(code, {"nt": nt, "model": model})  # noqa: S102
    assert [warning.filename for warning in told] == ["the caller"]
