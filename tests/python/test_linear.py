"""Linear layers on arrays."""

import pickle

import numpy as np
import pytest

import numsim as ns
from conftest import same

F32 = np.float32


def matrices(rng, tokens=40, inner=64, out=24):
    shapes = {"x": (tokens, inner), "w": (out, inner), "g": (tokens, out)}
    return {name: rng.normal(size=shape).astype(F32) for name, shape in shapes.items()}


def quantised_product(a, b, scaling_a, scaling_b, format="int8"):
    """a @ b.T of operands that the package quantises, with rows along the inner dimension."""
    left = ns.quantize(a, format, scaling=scaling_a)
    right = ns.quantize(b, format, scaling=scaling_b)
    return ns.matmul(left, right.T)


def test_standard_in_fp32_is_three_products(rng):
    m = matrices(rng)
    layer = ns.Linear("standard-fp32")
    y, saved = layer.forward(m["x"], m["w"])
    dx, dw = layer.backward(m["g"], m["w"], saved)
    assert same(y, ns.matmul(m["x"], m["w"].T))
    assert same(dx, ns.matmul(m["g"], m["w"])) and same(dw, ns.matmul(m["g"].T, m["x"]))
    np.testing.assert_allclose(y, m["x"].astype(float) @ m["w"].astype(float).T, atol=1e-4)


def test_switchback_is_its_quantised_products(rng):
    m = matrices(rng)
    layer = ns.Linear("switchback-int8")
    y, saved = layer.forward(m["x"], m["w"])
    dx, dw = layer.backward(m["g"], m["w"], saved)
    assert same(y, quantised_product(m["x"], m["w"], "row", "tensor"))
    assert same(dx, quantised_product(m["g"], m["w"].T, "row", "tensor"))
    g, x = (ns.round(m[name], "bf16") for name in "gx")
    assert same(dw, ns.matmul(g.T, x))
    assert [row[:2] for row in saved.matrices] == [("X", "bf16")] and saved.bytes == x.size * 2


@pytest.mark.parametrize("rule", ["nvfp4", "nvfp4-inverse", "4over6-mae", "4over6-mse"])
def test_mx_in_nvfp4_is_the_products_of_the_block_scaled_unit(rule, rng):
    m = matrices(rng, tokens=48)

    def product(a, b):
        left, right = (ns.quantize(x, "e2m1fn", scaling=f"block:16/{rule}") for x in (a, b))
        return ns.matmul(left, right.T, accumulate="mxf4nvf4")

    recipe = ns.LinearRecipe("mx", format="e2m1fn", block=16, scale_rule=rule, accumulate="mxf4nvf4")
    layer = ns.Linear(recipe)
    y, saved = layer.forward(m["x"], m["w"])
    dx, dw = layer.backward(m["g"], m["w"], saved)
    assert same(y, product(m["x"], m["w"])) and same(dx, product(m["g"], m["w"].T))
    assert same(dw, product(m["g"].T, ns.round(m["x"], "bf16").T))  # X is kept in bf16


@pytest.mark.parametrize("operand, shape", [("forward", "y"), ("weight-gradient", "dw")])
def test_high_operands_leave_a_product_in_bf16(rng, operand, shape):
    m = matrices(rng)
    layer = ns.Linear(ns.LinearRecipe("llm-int8", high_operands=operand))
    y, saved = layer.forward(m["x"], m["w"])
    _, dw = layer.backward(m["g"], m["w"], saved)
    x, w, g = (ns.round(m[name], "bf16") for name in "xwg")
    high = {"y": ns.matmul(x, w.T), "dw": ns.matmul(g.T, x)}
    int8 = {
        "y": quantised_product(m["x"], m["w"], "row", "row"),
        "dw": quantised_product(m["g"].T, x.T, "row", "row"),
    }
    for name, got in {"y": y, "dw": dw}.items():
        assert same(got, high[name] if name == shape else int8[name])


def test_stochastic_gradients_take_the_stream_of_their_operand(rng):
    m = matrices(rng)
    layer = ns.Linear(ns.LinearRecipe("switchback-int8", gradient_rounding="sr:16"))
    random = ns.SR(seed=5, stream=9)
    _, saved = layer.forward(m["x"], m["w"], random)
    dx, _ = layer.backward(m["g"], m["w"], saved, random)
    sr = ns.SR(bits=16, seed=5, stream=8 * 9 + 2)  # G is operand 2
    g = ns.quantize(m["g"], "int8", scaling="row", rounding=sr)
    assert same(dx, ns.matmul(g, ns.quantize(m["w"], "int8")))


def test_delayed_scales_follow_earlier_steps_and_can_be_restored(rng):
    m = matrices(rng)
    recipe = ns.LinearRecipe("te-hybrid", delayed_history=2)
    layer = ns.Linear(recipe)
    layer.forward(m["x"], m["w"])
    state = layer.state()
    y, _ = layer.forward(m["x"], m["w"])
    assert y is not None and state[0] == pytest.approx(448 / np.abs(m["x"]).max())
    other = ns.Linear(recipe)
    other.restore(state)
    assert same(other.forward(m["x"], m["w"])[0], y)
    assert ns.Linear("te-hybrid").state() == []
    with pytest.raises(ns.Error):
        other.restore(state[:-1])


def test_recipes_print_what_they_compute():
    recipe = ns.LinearRecipe("mx-e2m1fn", block=16)
    assert "forward          e2m1fn block:16 e8m0 x e2m1fn block:16 e8m0, fp32" in str(recipe)
    assert ns.LinearRecipe("tensor-wise-e4m3fn").gemms["input-gradient"][0] == "e5m2 tensor"
    assert pickle.loads(pickle.dumps(recipe)) == recipe != ns.LinearRecipe("mx-e2m1fn")
    assert eval(repr(recipe), {"LinearRecipe": ns.LinearRecipe}) == recipe
    for kind in ns.linear_kinds():
        assert set(ns.LinearRecipe(kind).gemms) == {"forward", "input-gradient", "weight-gradient"}


def test_mistakes_are_named(rng):
    m = matrices(rng)
    with pytest.raises(ValueError, match="'switchbak' is neither .* did you mean switchback"):
        ns.LinearRecipe("switchbak")
    with pytest.raises(TypeError, match="'fromat'; did you mean format"):
        ns.LinearRecipe("mx", fromat="e2m1fn")
    with pytest.raises(ns.Error, match="^high_operands: "):
        ns.LinearRecipe("te-hybrid", high_operands="forward")
    with pytest.raises(ns.Error, match="^gradient_rounding: .*'up' is not one of"):
        ns.LinearRecipe("mx", gradient_rounding="up")
    layer = ns.Linear("standard")
    with pytest.raises(ValueError, match="x: expected a matrix of any x 64, found shape"):
        layer.forward(m["x"][:, :60], m["w"])
    _, saved = layer.forward(m["x"], m["w"])
    with pytest.raises(ValueError, match="g: expected a matrix of 40 x 24, found shape"):
        layer.backward(m["g"][:39], m["w"], saved)


def test_gradient_rounding_may_be_an_sr():
    recipe = ns.LinearRecipe("llm-int8", gradient_rounding=ns.SR(bits=8))
    assert recipe.gemms["input-gradient"][0] == "int8 row sr:8"
    words = np.zeros(4, np.uint32)
    for fields in ({"seed": 1}, {"stream": 2}, {"stream": 0}, {"random_bits": words}):
        rounding = ns.SR(bits=8, **fields)
        with pytest.raises(ValueError, match="gradient_rounding: of an SR, a recipe takes bits and"):
            ns.LinearRecipe("llm-int8", gradient_rounding=rounding)


def test_a_layer_takes_seed_and_stream_of_an_sr_alone(rng):
    m, layer = matrices(rng), ns.Linear("standard")
    for fields in ({"bits": 8}, {"variant": "b"}, {"first_index": 5}):
        with pytest.raises(ValueError, match="random: of an SR, a layer takes seed and stream alone"):
            layer.forward(m["x"], m["w"], ns.SR(seed=1, stream=0, **fields))
    with pytest.raises(ValueError, match="random: of an SR, a layer takes seed and stream alone"):
        layer.forward(m["x"], m["w"], ns.SR(random_bits=np.zeros(4, np.uint32)))


def hadamard_columns(x, signs):
    """Blocks of 16 rows of each column, by halves; signs are those of TransformerEngine's mask."""

    def by_halves(block):
        if len(block) == 1:
            return block
        lower, upper = by_halves(block[: len(block) // 2]), by_halves(block[len(block) // 2 :])
        return np.concatenate([lower + upper, lower - upper])

    blocks = x.reshape(-1, 16, x.shape[1]) * signs[None, :, None]
    out = np.stack([by_halves(block.astype(F32)) * F32(0.25) for block in blocks])
    return ns.round(out.reshape(x.shape), "bf16")


def test_hadamard_transforms_both_operands_of_the_weight_gradient(rng):
    m = matrices(rng, tokens=48)
    mask = 0xD7E8
    signs = np.array([-1 if mask >> i & 1 else 1 for i in range(16)], F32)
    settings = {"format": "e2m1fn", "block": 16, "scale_rule": "nvfp4"}
    transformed = {**settings, "hadamard": "weight-gradient", "hadamard_signs": "0xD7E8"}
    layer = ns.Linear(ns.LinearRecipe("mx", **transformed))
    y, saved = layer.forward(m["x"], m["w"])
    dx, dw = layer.backward(m["g"], m["w"], saved)
    plain = ns.Linear(ns.LinearRecipe("mx", **settings))
    y0, saved0 = plain.forward(m["x"], m["w"])
    dx0, dw0 = plain.backward(m["g"], m["w"], saved0)
    assert same(y, y0) and same(dx, dx0) and not same(dw, dw0)
    x = hadamard_columns(ns.round(m["x"], "bf16"), signs)
    g = hadamard_columns(m["g"], signs)
    _, saved = plain.forward(x, m["w"])
    _, expected = plain.backward(g, m["w"], saved)
    assert same(dw, expected)


FOUR_BITS = [
    "nvidia-nvfp4",
    "te-nvfp4",
    "te-nvfp4-row-scaled",
    "four-over-six",
    "quartet-2",
    "ufp4",
    "amd-mxfp4",
]


@pytest.mark.parametrize("name", FOUR_BITS)
def test_a_recipe_of_four_bits_is_one_word(name, rng):
    m = matrices(rng, tokens=128, inner=128, out=128)
    layer = ns.Linear(name)
    y, saved = layer.forward(m["x"], m["w"], random=ns.SR(seed=1, stream=2))
    dx, dw = layer.backward(m["g"], m["w"], saved, random=ns.SR(seed=1, stream=2))
    for made, exact in ((y, m["x"] @ m["w"].T), (dx, m["g"] @ m["w"]), (dw, m["g"].T @ m["x"])):
        error = np.linalg.norm(made - exact) / np.linalg.norm(exact)
        assert 0.03 < error < 0.35
    assert "hadamard:" in str(layer.recipe)
    assert ns.LinearRecipe(name, accumulate="fp64").settings["accumulate"] == "fp64"


def test_mistakes_about_hadamard_transforms_are_named(rng):
    with pytest.raises(TypeError, match="hadamard_sign.*did you mean hadamard_signs"):
        ns.LinearRecipe("mx", hadamard_sign="fixed")
    with pytest.raises(ValueError, match="hadamard: .*did you mean weight-gradient"):
        ns.LinearRecipe("mx", hadamard="weight_gradient")
    with pytest.raises(ValueError, match="hadamard_size: 8 is not one of 16, 32, 64, 128"):
        ns.LinearRecipe("mx", hadamard="forward", hadamard_size=8)
    m = matrices(rng, tokens=40)
    with pytest.raises(ValueError, match="weight-gradient GEMM is 40, which a hadamard_size of 16"):
        ns.Linear("nvidia-nvfp4").forward(m["x"], m["w"])
    with pytest.raises(ValueError, match="scale_rule: nvfp4-row is for linear layers"):
        ns.quantize(m["x"], "e2m1fn", scaling="block:16/nvfp4-row")
