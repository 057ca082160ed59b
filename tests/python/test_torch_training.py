"""numsim.torch: the optimiser and the measures of a model's tensors."""

import io
import warnings

import numpy as np
import pytest

import numsim as ns
from conftest import same

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")


def parameters(rng):
    shapes = {"0": (8, 16), "1": (16,), "2": (4, 3, 5)}
    return {name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}


def as_torch(arrays):
    return [torch.nn.Parameter(torch.from_numpy(a.copy())) for a in arrays.values()]


def give_gradients(params, gradients):
    for p, g in zip(params, gradients.values()):
        p.grad = torch.from_numpy(g).to(p.dtype)


def test_everything_in_fp32_is_torchs_adamw(rng):
    start = parameters(rng)
    ours, theirs = as_torch(start), as_torch(start)
    arguments = {"lr": 1e-2, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.1}
    a, b = nt.AdamW(ours, **arguments), torch.optim.AdamW(theirs, **arguments)
    for optimizer in (a, b):  # a schedule, as torch's own work on both
        optimizer.schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for _ in range(20):
        gradients = parameters(rng)
        for params, optimizer in ((ours, a), (theirs, b)):
            give_gradients(params, gradients)
            optimizer.step()
            optimizer.schedule.step()
    for p, q in zip(ours, theirs):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_betas_that_change_keep_the_moments(rng):
    start = rng.normal(size=20).astype(np.float32)
    (p,) = params = as_torch({"0": start})
    optimizer = nt.AdamW(params, lr=1e-2, weight_decay=0)
    w, m, v, power1, power2 = start.astype(float), 0.0, 0.0, 1.0, 1.0
    for beta1, beta2 in ((0.9, 0.99), (0.9, 0.99), (0.8, 0.95), (0.95, 0.9)):
        g = rng.normal(size=20).astype(np.float32)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g.astype(float) ** 2
        power1, power2 = power1 * beta1, power2 * beta2  # what m and v lack of a whole mean
        w -= 1e-2 * m / (1 - power1) / (np.sqrt(v / (1 - power2)) + 1e-8)
        optimizer.param_groups[0]["betas"] = (beta1, beta2)
        give_gradients(params, {"0": g})
        optimizer.step()
        np.testing.assert_allclose(p.detach().numpy(), w, rtol=1e-5, atol=1e-6)


def test_steps_are_those_of_the_array_optimiser(rng):
    start = parameters(rng)
    params = as_torch(start)
    settings = {"weight_decay": 0.1, "seed": 3}
    ours = nt.AdamW(
        params,
        betas=(0.9, 0.95),
        moments=("e4m3fn@block:16+sr", "e5m2"),
        weights="bf16",
        rounding=ns.SR(bits=16, seed=3),
        weight_decay=0.1,
    )
    arrays = ns.Optimizer(
        start,
        m="e4m3fn@block:16+sr",
        v="e5m2",
        weights="bf16",
        update="stochastic:16",
        decay_filter="all",
        **settings,
    )
    for lr in (1e-3, 2e-3, 1e-3):
        gradients = parameters(rng)
        give_gradients(params, gradients)
        ours.param_groups[0]["lr"] = lr
        ours.step()
        arrays.step(gradients, lr=lr)
        for p, name in zip(params, start):
            assert same(p.detach().numpy(), arrays[name])
    assert ours.bytes() == [arrays.bytes()]


@pytest.mark.parametrize("rounding", ["kahan", "stochastic:8"])
def test_a_saved_state_continues_with_the_same_bits(rounding, rng):
    def make(params):
        return nt.AdamW(params, moments=("e4m3fn", "bf16"), weights="bf16", rounding=rounding)

    params = [torch.nn.Parameter(p.detach().bfloat16()) for p in as_torch(parameters(rng))]
    first = make(params)
    for _ in range(3):
        give_gradients(params, parameters(rng))
        first.step()
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    others = [torch.nn.Parameter(p.detach().clone()) for p in params]
    second = make(others)
    second.load_state_dict(torch.load(file, weights_only=True))
    before = [p.detach().clone() for p in params]
    for step in range(3):
        gradients = parameters(rng)
        for one, optimizer in ((params, first), (others, second)):
            if step == 1:
                optimizer.param_groups[0]["betas"] = (0.85, 0.99)
            give_gradients(one, gradients)
            optimizer.step()
    assert all(torch.equal(p, q) for p, q in zip(params, others))
    assert not any(torch.equal(p, q) for p, q in zip(params, before))


def test_groups_have_their_own_numbers(rng):
    params = as_torch(parameters(rng))
    groups = [{"params": params[:1], "weight_decay": 0.5}, {"params": params[1:], "lr": 0.0}]
    optimizer = nt.AdamW(groups, lr=1e-2)
    before = [p.detach().clone() for p in params]
    give_gradients(params, {str(i): np.zeros(p.shape, np.float32) for i, p in enumerate(params)})
    optimizer.step()
    torch.testing.assert_close(params[0].detach(), before[0] * (1 - 0.5e-2))
    assert torch.equal(params[1], before[1]) and torch.equal(params[2], before[2])
    assert [last["finite"] for last in optimizer.last] == [True, True]


def test_gradients_that_are_not_finite_change_nothing(rng):
    params = as_torch(parameters(rng))
    optimizer = nt.AdamW(params)
    before = [p.detach().clone() for p in params]
    gradients = parameters(rng)
    gradients["1"][3] = np.inf
    give_gradients(params, gradients)
    optimizer.step()
    assert all(torch.equal(p, q) for p, q in zip(params, before))
    assert not optimizer.last[0]["finite"]


def test_mistakes_are_named(rng):
    params = as_torch(parameters(rng))
    with pytest.raises(TypeError, match=r"params\[0\]: torch.bfloat16 does not hold .* fp32; pass weights=.bf16."):
        nt.AdamW([torch.nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))])
    with pytest.raises(ns.Error, match="e4m3fm"):
        nt.AdamW(params, moments=("e4m3fm", "fp32"))
    words = np.zeros(3, np.uint32)
    for field in ({"variant": "b"}, {"stream": 0, "first_index": 5}, {"random_bits": words}):
        with pytest.raises(ValueError, match="rounding: of an SR, an optimiser takes bits and seed"):
            nt.AdamW(params, rounding=ns.SR(bits=16, seed=1, **field))
    optimizer = nt.AdamW(params)
    give_gradients(params, parameters(rng))
    optimizer.step()
    with torch.no_grad():
        params[2].add_(1)
    with pytest.raises(ValueError, match=r"params\[2\]: was changed between two steps"):
        optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()


def test_a_step_that_fails_leaves_no_gradient_for_the_next(rng):
    params = as_torch(parameters(rng))
    optimizer = nt.AdamW(params)
    start = [p.detach().clone() for p in params]
    params[0].grad = torch.ones_like(params[0])
    params[1].grad = torch.ones(16).to_sparse()
    with pytest.raises(TypeError, match=r"params\[1\].grad: expected a dense tensor"):
        optimizer.step()
    assert all(torch.equal(p, before) for p, before in zip(params, start))
    params[0].grad, params[1].grad = None, torch.ones(16)
    optimizer.step()
    moved = [not torch.equal(p, before) for p, before in zip(params, start)]
    assert moved == [False, True, False]
    assert optimizer.last[0]["gradient_norm"] == 4


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("lr", {"lr": -1}),
        ("lr", {"lr": float("nan")}),
        ("lr", {"lr": float("inf")}),
        ("lr", {"lr": torch.tensor(-1.0)}),
        ("betas[0]", {"betas": (-0.1, 0.9)}),
        ("betas[0]", {"betas": (1.0, 0.9)}),
        ("betas[1]", {"betas": (0.9, 1.5)}),
        ("betas[1]", {"betas": (0.9, float("nan"))}),
        ("eps", {"eps": -1e-8}),
        ("weight_decay", {"weight_decay": -0.1}),
    ],
)
def test_numbers_that_torch_refuses_are_refused(name, arguments):
    params = [torch.nn.Parameter(torch.ones(3))]
    with pytest.raises(ValueError) as refused:
        nt.AdamW(params, **arguments)
    assert str(refused.value).startswith(f"{name}: ")
    optimizer = nt.AdamW(params)
    with pytest.raises(ValueError) as refused:
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))], **arguments})
    assert str(refused.value).startswith(f"{name}: ") and len(optimizer.param_groups) == 1
    params[0].grad = torch.ones(3)
    optimizer.param_groups[0].update(arguments)
    with pytest.raises(ValueError) as refused:
        optimizer.step()
    assert str(refused.value).startswith(f"{name}: ") and torch.equal(params[0], torch.ones(3))


def test_a_learning_rate_may_be_a_tensor():
    results = []
    for lr in (0.25, torch.tensor(0.25), np.float32(0.25)):
        p = torch.nn.Parameter(torch.ones(3))
        p.grad = torch.ones(3)
        nt.AdamW([p], lr=lr).step()
        results.append(p)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.ReLU(inplace=True), torch.nn.Linear(32, 4)
    )


def train(net, steps, rng):
    for _ in range(steps):
        x = torch.from_numpy(rng.standard_t(3, size=(64, 16)).astype(np.float32))
        net(x).square().mean().backward()
    return x


def test_watch_records_the_measures_of_every_tensor(rng, tmp_path):
    net = nt.convert(model(), "switchback-int8")
    with nt.watch(net, every=2, format="e2m1fn", scaling="row") as log:
        x = train(net, 3, rng)
        net.eval()(x)
    net.train()(x)  # after the end
    table = log.table()
    assert len(table) == 2 * (5 + 6) and set(table["step"]) == {0, 2}
    row = table.where(step=2, layer="0", tensor="input")
    values = x.numpy().astype(float)
    error = ns.quantize(x, "e2m1fn", scaling="row").error(x)
    deviations = values - values.mean()
    kurtosis = (deviations**4).mean() / (deviations**2).mean() ** 2
    assert row["amax"][0] == np.abs(values).max() and row["elements"][0] == x.numel()
    assert row["kurtosis"][0] == pytest.approx(kurtosis, rel=1e-9)
    assert row["sqnr_db"][0] == pytest.approx(error.sqnr_db)
    assert row["underflow"][0] == error.underflow_share > 0
    assert 20 * np.log10(row["signal_to_noise"][0]) == pytest.approx(error.sqnr_db)
    weight = table.where(layer="2", tensor="weight")
    assert set(weight["amax"]) == {float(net[2].weight.detach().abs().max())}
    log.write_csv(tmp_path / "watch.csv")
    read = ns.results.read(tmp_path).table("watch")
    numbers = [c for c in read if table[c].dtype.kind in "if"]
    assert len(numbers) == 8 and list(read) == list(table)
    assert all(np.array_equal(read[c], table[c], equal_nan=True) for c in numbers)


def test_watch_sees_the_gradients_that_torch_computes(rng):
    net = model()
    with nt.watch(net) as log:
        x = torch.from_numpy(rng.normal(size=(8, 16)).astype(np.float32))
        out = net(x)
        g = torch.from_numpy(rng.normal(size=(8, 4)).astype(np.float32))
        out.backward(g)
    amax = {(r["layer"], r["tensor"]): r["amax"] for r in log.rows}
    assert amax["2", "output-gradient"] == float(g.abs().max())
    for name in "02":
        largest = float(net[int(name)].weight.grad.abs().max())
        assert amax[name, "weight-gradient"] == pytest.approx(largest, rel=1e-5)
    own = g @ net[2].weight.detach()
    assert amax["2", "input-gradient"] == pytest.approx(float(own.abs().max()), rel=1e-5)
    assert ("0", "input-gradient") not in amax
    hidden = (g @ net[2].weight.detach()) * (net[0](x) > 0)
    assert amax["0", "output-gradient"] == pytest.approx(float(hidden.abs().max()), rel=1e-5)


def test_the_input_gradient_is_that_of_one_layer_alone(rng):
    class Shared(torch.nn.Module):  # two layers read one input
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(6, 5), torch.nn.Linear(6, 5)

        def forward(self, x):
            return self.a(x) + self.b(x)

    net = Shared()
    x = torch.from_numpy(rng.normal(size=(7, 6)).astype(np.float32)).requires_grad_()
    g = torch.from_numpy(rng.normal(size=(7, 5)).astype(np.float32))
    with nt.watch(net) as log:
        net(x).backward(g)
    amax = {(r["layer"], r["tensor"]): r["amax"] for r in log.rows}
    for name in "ab":
        own = g @ getattr(net, name).weight.detach()
        assert amax[name, "input-gradient"] == pytest.approx(float(own.abs().max()), rel=1e-5)
    assert float(x.grad.abs().max()) != amax["a", "input-gradient"]


def test_watch_takes_inputs_by_name(rng):
    class Scaled(torch.nn.Linear):  # whose second argument is no weight
        def forward(self, x, scale=2.0):
            return super().forward(x) * scale

    class ByName(torch.nn.Module):
        def __init__(self, named):
            super().__init__()
            torch.manual_seed(0)
            self.plain, self.scaled = torch.nn.Linear(6, 5), Scaled(5, 4)
            self.named = named

        def forward(self, x):
            if self.named:
                return self.scaled(x=self.plain(input=x), scale=3.0)
            return self.scaled(self.plain(x), 3.0)

    x = torch.from_numpy(rng.normal(size=(7, 6)).astype(np.float32))
    for convert in (lambda net: net, lambda net: nt.convert(net, {"scaled": None, "*": "mx"})):
        logs, gradients = [], []
        for named in (False, True):
            net, given = convert(ByName(named)), x.clone().requires_grad_()
            with nt.watch(net) as log:
                net(given).square().sum().backward()
            logs.append((log.rows, log.quantised))
            gradients.append([given.grad, *(p.grad for p in net.parameters())])
        assert logs[0] == logs[1] and len(logs[0][0]) == 12
        assert all(torch.equal(a, b) for a, b in zip(*gradients))
    amax = {(r["layer"], r["tensor"]): r["amax"] for r in logs[1][0]}
    assert amax["plain", "input"] == float(x.abs().max())
    assert amax["scaled", "weight"] == float(net.scaled.weight.detach().abs().max())
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'input'"):
        with nt.watch(torch.nn.Linear(2, 2)) as log:
            log._model()


def test_watch_changes_nothing_and_refuses_mistakes(rng):
    results = []
    for watched in (False, True):
        net, generator = model(), np.random.default_rng(0)
        if watched:
            with nt.watch(net):
                train(net, 2, generator)
        else:
            train(net, 2, generator)
        results.append([p.grad for p in net.parameters()])
        assert not net[0]._forward_hooks and not net._forward_pre_hooks
    assert all(torch.equal(a, b) for a, b in zip(*results))
    with pytest.raises(ValueError, match=r"every: expected 1 to 2\^64 - 1, found 0"):
        nt.watch(net, 0)
    with pytest.raises(ValueError, match="has no linear layer"):
        nt.watch(torch.nn.ReLU()).__enter__()
    with pytest.raises(ValueError, match="e4m3fm"):
        nt.watch(net, format="e4m3fm")


class Tied(torch.nn.Module):
    """A language model whose head has the embedding's matrix."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(16, 8)
        self.middle = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 16, bias=False)
        self.head.weight = self.embedding.weight

    def hidden(self, tokens):
        return torch.tanh(self.middle(self.embedding(tokens)))

    def forward(self, tokens):
        return self.head(self.hidden(tokens))


@pytest.mark.parametrize("recipe", [None, "standard-fp32"])
def test_the_weight_gradient_is_that_of_one_layer_alone(recipe, rng):
    torch.manual_seed(0)
    net, tokens = Tied(), torch.randint(16, (4, 5))
    if recipe is not None:
        nt.convert(net, recipe)
    with nt.watch(net) as log:
        y = net(tokens)
        y.square().sum().backward()
    own = (2 * y.detach()).reshape(-1, 16).T @ net.hidden(tokens).detach().reshape(-1, 8)
    amax = {(r["layer"], r["tensor"]): r["amax"] for r in log.rows}
    assert amax["head", "weight-gradient"] == pytest.approx(float(own.abs().max()), rel=1e-5)
    assert float(net.head.weight.grad.abs().max()) != pytest.approx(float(own.abs().max()), rel=0.1)


def test_watch_measures_what_layers_quantise_under_their_own_scales(rng):
    recipe = ns.LinearRecipe("te-hybrid", delayed_history=4)
    net = nt.convert(model(), recipe)
    xs = [torch.from_numpy(rng.normal(size=(16, 16)).astype(np.float32)) for _ in range(3)]
    xs[2] *= 100
    with nt.watch(net) as log:
        for x in xs:
            net(x).square().mean().backward()
    table = log.quantised_table().where(layer="0", operand="forward X")
    assert list(table["step"]) == [0, 1, 2] and set(table["scaling"]) == {"tensor delayed"}
    scales = [1.0, *(float(max(x.abs().max() for x in xs[:n])) / 448 for n in (1, 2))]
    np.testing.assert_allclose(table["scale_max"], scales, rtol=1e-6)
    np.testing.assert_allclose(table["range"], 448 * np.array(scales), rtol=1e-6)
    assert list(table["amax"]) == [float(x.abs().max()) for x in xs]
    beyond = float((xs[2].abs() >= 464 * scales[2]).float().mean())  # 448 and half a step
    assert list(table["saturated"][:2]) == [0, 0] and table["saturated"][2] == beyond > 0.9
    for x, scale, sqnr in zip(xs, scales, table["sqnr_db"]):
        fixed = ns.quantize(x, "e4m3fn", scale=scale)
        assert sqnr == pytest.approx(fixed.error(x.numpy()).sqnr_db, rel=1e-5)
    operands = set(log.quantised_table()["operand"])
    assert operands == {"forward X", "forward W", "input gradient G"}  # used twice, made once
    grown = log.quantised_table().where(operand="input gradient G", layer="2")
    assert set(grown["format"]) == {"e5m2"} and grown["range"][0] == 57344


def test_watch_counts_a_repeated_forward_pass_once(rng):
    for reentrant in (False, True):
        net = nt.convert(model(), "mx")
        x = torch.from_numpy(rng.normal(size=(8, 16)).astype(np.float32)).requires_grad_()

        class Checkpointed(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(net, x, use_reentrant=reentrant)

        logs = []
        for module in (net, Checkpointed()):
            net.zero_grad()
            with nt.watch(module) as log:
                module(x).square().sum().backward()
            logs.append(log)
        for one, other in (("rows", "rows"), ("quantised", "quantised")):
            first, second = (
                sorted((r["layer"].removeprefix("net."), *list(r.values())[2:]) for r in rows)
                for rows in (getattr(logs[0], one), getattr(logs[1], other))
            )
            assert [str(r) for r in first] == [str(r) for r in second]


def test_watch_measures_the_projections_of_attention():
    torch.manual_seed(0)
    net = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    with pytest.warns(nt.LeftOutWarning, match="recorded nothing of self_attn.out_proj: "):
        with nt.watch(net) as log:
            net(torch.randn(2, 3, 8)).sum().backward()
    nt.convert(net, "llm-int8")
    with warnings.catch_warnings(), nt.watch(net) as log:
        warnings.simplefilter("error")
        net(torch.randn(2, 3, 8)).sum().backward()
    layers = {row["layer"] for row in log.rows}
    assert layers == {"self_attn.in_proj.qkv", "self_attn.out_proj", "linear1", "linear2"}
    assert {row["layer"] for row in log.quantised} == layers


def test_watch_says_where_it_records_nothing():
    tokens = torch.randint(16, (4, 5))
    net = Tied()
    with pytest.warns(nt.LeftOutWarning) as caught:
        with nt.watch(net, every=10) as log:
            for _ in range(3):
                net.head(net.hidden(tokens)).sum().backward()
    texts = [str(w.message) for w in caught]
    assert log.rows == [] and len(texts) == 2
    assert texts[0].startswith("watch: middle runs without the model's forward")
    assert texts[1] == "watch: recorded nothing: the model's forward was never called in training mode"
    net = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 4), "b": torch.nn.Linear(4, 4)})
    net["c"] = torch.nn.Linear(4, 4)
    net.forward = lambda x: (net["c"](x), net["a"](x))[1]
    with pytest.warns(nt.LeftOutWarning, match="recorded nothing of b: .*; no gradient came for c out"):
        with nt.watch(net) as log:
            net(torch.randn(3, 4)).sum().backward()
    with pytest.raises(RuntimeError, match="as it is"):  # no warning hides an exception
        with nt.watch(net):
            raise RuntimeError("as it is")


def test_watch_says_that_a_compiled_model_passes_it_by():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.ModuleList([torch.nn.Linear(4, 4)])

        def forward(self, x):
            return self.inner[0](x)

    class Outest(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.outer = Outer()

        def forward(self, x):
            return self.outer(x)

    net = Outest()
    compiled = torch.compile(net, backend="eager")
    compiled(torch.randn(3, 4))
    with pytest.warns(nt.LeftOutWarning, match="outer.inner.0: .*or was compiled by torch.compile"):
        with nt.watch(net):
            compiled(torch.randn(3, 4)).sum().backward()
    with torch.compiler.set_stance("force_eager"), nt.watch(net) as log:
        compiled(torch.randn(3, 4)).sum().backward()
    assert len(log.rows) == 5
