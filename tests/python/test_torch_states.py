"""numsim.torch: what layers and optimisers save, and what they refuse to load."""

import copy
import io
import pickle

import numpy as np
import pytest

import numsim as ns

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")
nn = torch.nn
DELAYED = ns.LinearRecipe("te-hybrid", delayed_history=3)
STOCHASTIC = ns.LinearRecipe("llm-int8", gradient_rounding="sr")


def model(recipe=None):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0))
    return net if recipe is None else nt.convert(net, recipe)


def step(net, seed):
    net.zero_grad()
    x = torch.randn(4, 3, 8, generator=torch.Generator().manual_seed(seed))
    net(x).square().sum().backward()
    return [p.grad.clone() for p in net.parameters()]


def equal(a, b):
    return len(a) == len(b) > 0 and all(torch.equal(x, y) for x, y in zip(a, b))


@pytest.mark.parametrize("recipe", [DELAYED, STOCHASTIC, "mx"], ids=["delayed", "sr", "mx"])
@pytest.mark.parametrize("way", ["save_file", "save_model", "torch.save", "pickle", "deepcopy"])
def test_a_saved_model_continues_with_the_same_bits(way, recipe, tmp_path):
    net = model(recipe)
    for seed in range(3):
        step(net, seed)
    file, other = tmp_path / "model.safetensors", model(recipe)
    if way.startswith("save"):
        safetensors = pytest.importorskip("safetensors.torch")
    if way == "save_file":
        safetensors.save_file(net.state_dict(), file)
        other.load_state_dict(safetensors.load_file(file), strict=True)
    if way == "save_model":
        safetensors.save_model(net, file)
        assert safetensors.load_model(other, file, strict=True) == (set(), [])
    if way == "torch.save":
        file = tmp_path / "model.pt"
        torch.save(net.state_dict(), file)
        other.load_state_dict(torch.load(file, weights_only=True))
    if way == "pickle":
        other = pickle.loads(pickle.dumps(net))
    if way == "deepcopy":
        other = copy.deepcopy(net)
    for seed in range(3, 5):
        assert equal(step(net, seed), step(other, seed))
    assert not equal(step(net, 5), step(net, 6))


def test_extra_state_is_there_where_later_steps_depend_on_it():
    keys = {name: [*model(name).state_dict()] for name in ("mx", DELAYED, STOCHASTIC)}
    plain = list(model().state_dict())
    assert keys["mx"] == plain
    names = ("0", "1.self_attn", "1.self_attn.out_proj", "1.linear1", "1.linear2")
    extra = {f"{name}._extra_state" for name in names}
    assert set(keys[DELAYED]) - set(plain) == set(keys[STOCHASTIC]) - set(plain) == extra
    assert all(isinstance(v, torch.Tensor) for v in model(DELAYED).state_dict().values())


def test_plain_and_converted_models_load_each_other_strictly():
    plain, mx, delayed = model(), model("mx"), model(DELAYED)
    step(delayed, 0)
    for net in (mx, delayed):
        net.load_state_dict(plain.state_dict(), strict=True)
        plain.load_state_dict(nt.plain_state_dict(net), strict=True)
    plain.load_state_dict(mx.state_dict(), strict=True)
    with pytest.raises(RuntimeError, match="Unexpected key.*_extra_state"):
        plain.load_state_dict(delayed.state_dict())
    plain.load_state_dict(nt.revert(delayed).state_dict(), strict=True)


def test_states_of_earlier_versions_are_loaded_and_others_refused():
    layer, other = nt.Linear(8, 4, recipe=DELAYED), nt.Linear(8, 4, recipe=DELAYED)
    for _ in range(2):
        layer(torch.randn(3, 8)).sum().backward()
    state = layer.state_dict()
    scales = layer._gemms._core.save()
    state["_extra_state"] = {"steps": 2, "scales": scales}
    other.load_state_dict(state)
    assert other.steps == 2 and torch.equal(other.get_extra_state(), layer.get_extra_state())
    for bad in (torch.tensor([]), torch.tensor([2.0, 0, 0]), torch.tensor([1.0, 2])):
        with pytest.raises(ValueError, match="_extra_state: is "):
            other.set_extra_state(bad)
    for bad in (torch.tensor([1.0, 1, 0]), torch.tensor([1.0, 1, 2, 1, 1])):
        with pytest.raises(ValueError, match="_extra_state: saved under another recipe"):
            other.set_extra_state(bad)
    with pytest.raises(ValueError, match="_extra_state: expected"):
        other.set_extra_state(torch.cat([layer.get_extra_state(), torch.zeros(1)]))
    with pytest.raises(ValueError, match="_extra_state: saved under another recipe"):
        nt.Linear(8, 4, recipe="mx").load_state_dict(layer.state_dict())
    assert other.steps == 2


def test_delayed_scales_are_visible():
    layer = nt.Linear(8, 4, False, DELAYED)
    assert nt.Linear(8, 4, recipe="mx").delayed_scales() == {}
    xs = [torch.randn(5, 8) * size for size in (1, 4, 2)]
    for x in xs:
        layer(x).sum().backward()
    scale, history = layer.delayed_scales()["x"]
    amaxes = [float(x.abs().max()) for x in xs]
    assert history == amaxes[1:]  # of a history of three, the one to come has a place
    assert scale == pytest.approx(max(amaxes) / 448, rel=1e-6)


def optimiser(**arguments):
    torch.manual_seed(0)
    params = [nn.Parameter(torch.randn(4, 6)), nn.Parameter(torch.randn(6))]
    given = {"moments": ("e4m3fn", "e5m2"), "weights": "bf16", "rounding": ns.SR(bits=16)}
    return nt.AdamW(params, lr=1e-2, **{**given, **arguments})


def move(optimizer, seed=0):
    generator = torch.Generator().manual_seed(seed)
    params = optimizer.param_groups[0]["params"]
    for p in params:
        p.grad = torch.randn(p.shape, generator=generator)
    optimizer.step()
    return [p.detach().clone() for p in params]


OTHERS = {
    "moments[0]": {"moments": ("int8", "e5m2")},
    "moments[1]": {"moments": ("e4m3fn", "e5m2+sr")},
    "weights": {"weights": "fp16"},
    "rounding": {"rounding": "kahan"},
    "moment_filter": {"moment_filter": "all"},
}


@pytest.mark.parametrize("differs", OTHERS)
def test_states_of_other_formats_are_refused_and_change_nothing(differs):
    first, other = optimiser(), optimiser(**OTHERS[differs])
    move(first)
    move(other)
    before = other.state_dict()
    with pytest.raises(ValueError) as caught:
        other.load_state_dict(first.state_dict())
    assert f"state_dict: saved with {differs} = " in str(caught.value)
    after = other.state_dict()["numsim"][0]
    assert equal(list(after["pieces"].values()), list(before["numsim"][0]["pieces"].values()))


def test_other_names_of_the_same_formats_are_the_same():
    first = optimiser()
    move(first)
    names = {"moments": ("float8_e4m3fn", torch.float8_e5m2), "weights": torch.bfloat16}
    optimiser(**names, rounding="stochastic:16").load_state_dict(first.state_dict())


def test_states_that_do_not_fit_are_refused():
    first = optimiser()
    move(first)
    saved = first.state_dict()

    def refused(match, **changes):
        changed = copy.deepcopy(saved)
        changed["numsim"][0].update(changes)
        with pytest.raises(ValueError, match=match):
            optimiser().load_state_dict(changed)

    refused("expected version 1, found 2", version=2)
    refused(r"expected shapes \[\[4, 6\], \[6\]\]", shapes=[[6, 4], [6]])
    pieces = dict(saved["numsim"][0]["pieces"])
    pieces["0/m"] = pieces["0/m"][:-1]
    refused("state_dict: .*'0/m': a moment of 24 elements", pieces=pieces)
    with pytest.raises(ValueError, match="expected the key 'numsim' with an entry per group"):
        optimiser().load_state_dict(torch.optim.AdamW([nn.Parameter(torch.randn(3))]).state_dict())
    old = copy.deepcopy(saved)
    for key in ("version", "formats", "shapes", "taking_part"):
        del old["numsim"][0][key]
    other = optimiser()
    with pytest.warns(UserWarning, match="does not say in which formats it is"):
        other.load_state_dict(old)


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "state_dict"])
def test_copies_of_an_optimiser_continue_with_the_same_bits(way):
    first = optimiser()
    for seed in range(3):
        move(first, seed)
    if way == "pickle":
        other = pickle.loads(pickle.dumps(first))
    if way == "deepcopy":
        other = copy.deepcopy(first)
    if way == "state_dict":
        other = optimiser()
        with torch.no_grad():
            for p, q in zip(*(o.param_groups[0]["params"] for o in (other, first))):
                p.copy_(q)
        file = io.BytesIO()
        torch.save(first.state_dict(), file)
        file.seek(0)
        other.load_state_dict(torch.load(file, weights_only=True))
    schedule = torch.optim.lr_scheduler.StepLR(other, 10)  # takes it as an optimiser of torch
    for seed in range(3, 6):
        assert equal(move(first, seed), move(other, seed))
        schedule.step()
    assert first.state_dict()["numsim"][0]["steps"] == 6


def test_parameters_without_a_gradient_are_skipped_as_torch_does():
    torch.manual_seed(0)
    ours = [nn.Parameter(torch.randn(s)) for s in ((4, 6), (6,), (3, 5), (2, 2), (7,))]
    ours[3].requires_grad_(False)  # until step 10
    theirs = copy.deepcopy(ours)
    arguments = {"lr": 1e-2, "betas": (0.9, 0.99), "weight_decay": 0.1}
    a, b = nt.AdamW(ours, **arguments), torch.optim.AdamW(theirs, **arguments)
    start = ours[4].detach().clone()
    for step in range(30):
        for i, (p, q) in enumerate(zip(ours, theirs)):
            p.grad = q.grad = None
            if i == 3 and step >= 10:
                p.requires_grad_()
                q.requires_grad_()
            if p.requires_grad and i < 4 and (step + i) % (i + 1) == 0:
                p.grad = torch.randn(p.shape)
                q.grad = p.grad.clone()
        a.step()
        b.step()
        for p, q in zip(ours, theirs):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
        if step == 15:  # the state says who takes part
            again = nt.AdamW(ours, **arguments)
            again.load_state_dict(a.state_dict())
            a = again
    assert torch.equal(ours[4], start)
    taken = {name: b.item() for name, b in counts(a).items()}
    assert taken == {"0": 30, "1": 15, "2": 10, "3": 5, "4": 0}


def counts(optimizer):
    """{parameter: steps that count}."""
    pieces = optimizer.state_dict()["numsim"][0]["pieces"]
    found = {n.split("/")[0]: t.numpy() for n, t in pieces.items() if n.endswith("/steps")}
    return {n: np.frombuffer(t.tobytes(), np.float64)[0] for n, t in found.items()}


def test_frozen_parameters_have_no_moments_and_keep_their_values():
    frozen = nn.Parameter(torch.full((8, 8), 0.1), requires_grad=False)
    codes = nn.Parameter(torch.zeros(3, dtype=torch.int8), requires_grad=False)
    p = nn.Parameter(torch.full((2, 2), 0.1))
    optimizer = nt.AdamW([frozen, codes, p], weights="bf16", moments=("e4m3fn", "e5m2"))
    assert frozen[0, 0] == np.float32(0.1) and p[0, 0] == ns.round(np.float32(0.1), "bf16")
    optimizer.step()
    assert optimizer.last == [{"skipped": True, "finite": True, "gradient_norm": 0.0}]
    p.grad = torch.ones(2, 2)
    with torch.no_grad():
        frozen.add_(1)  # as it takes no part, it may change
    optimizer.step()
    assert optimizer.bytes()[0]["weights"] == 2
    frozen.requires_grad_()
    frozen.grad = torch.ones(8, 8)
    optimizer.step()
    assert counts(optimizer) == {"0": 1, "1": 0, "2": 2}


def test_rounding_says_where_it_does_not_reach():
    p = [nn.Parameter(torch.randn(4, 4))]
    for rounding in (ns.SR(seed=1), "sr"):
        with pytest.raises(ValueError) as caught:
            nt.AdamW(p, moments=("e4m3fn", "fp32"), rounding=rounding)
        assert "moments=('e4m3fn+sr', 'fp32')" in str(caught.value)
        nt.AdamW(p, moments=("e4m3fn", "e5m2"), weights="bf16", rounding=rounding)
        nt.AdamW(p, moments=("e4m3fn+sr", "e5m2+sr"), rounding=rounding)
    with pytest.raises(ValueError, match=r"seed: belongs into rounding=SR\(seed=2\)"):
        nt.AdamW(p, rounding=ns.SR(bits=8), seed=2)
    with pytest.raises(ValueError, match="moments: expected a pair .* found 'e4m3fn'"):
        nt.AdamW(p, moments="e4m3fn")
    with pytest.raises(ns.Error, match="rounding: update rule 'kahn'.*did you mean kahan"):
        nt.AdamW(p, rounding="kahn")
    half, double = (nn.Parameter(torch.zeros(3, dtype=d)) for d in (torch.bfloat16, torch.float64))
    with pytest.raises(TypeError, match='does not hold weights of fp32; pass weights="bf16"'):
        nt.AdamW([half])
    with pytest.raises(TypeError, match=r"params\[0\]: expected float32, bfloat16 or float16, found"):
        nt.AdamW([double])
    optimizer = nt.AdamW(p)
    with pytest.raises(TypeError, match="bfloat16"):
        optimizer.add_param_group({"params": [half]})
    assert len(optimizer.param_groups) == 1
    p[0].grad = torch.eye(4).to_sparse()
    with pytest.raises(TypeError, match=r"params\[0\].grad: expected a dense tensor"):
        optimizer.step()
