"""numsim.torch: every second derivative is an error that names the layer, and so is forward mode."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")
AF = torch.autograd.functional
fwAD = torch.autograd.forward_ad
pytestmark = pytest.mark.filterwarnings("ignore")


def linear(x):  # its second derivative is zero by wrong rules, and not by right ones
    return LAYERS["linear"](x).sum().square()


def deep(x):
    return LAYERS["deep"](x).square().sum()


def attention(x):
    x = x.reshape(1, -1, 4)
    return LAYERS["attention"](x, x, x)[0].square().sum()


@pytest.fixture(autouse=True)
def layers():
    torch.manual_seed(0)
    nn = torch.nn
    LAYERS["linear"] = nn.Sequential(nn.Linear(4, 1))
    LAYERS["deep"] = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    LAYERS["attention"] = nn.MultiheadAttention(4, 2, batch_first=True)
    for model in LAYERS.values():
        nt.convert(model, "standard-fp32")


LAYERS = {}
FUNCTIONS = [linear, deep, attention]


def gradient_penalty(f, x):
    x = x.requires_grad_()
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (g.norm() - 1).square().backward()


def penalty_of_weights_alone(f, x):
    """The gradient of a gradient's norm by a weight, which the graph of the gradient left out."""
    x = x.requires_grad_()
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    weights = next(iter(LAYERS[f.__name__].parameters()))
    torch.autograd.grad(g.square().sum(), weights, allow_unused=True)


def forward_mode(f, x):
    with fwAD.dual_level():
        f(fwAD.make_dual(x, torch.ones_like(x)))


def forward_mode_of_weights(f, x):
    model = LAYERS[f.__name__]
    with fwAD.dual_level():
        dual = {n: fwAD.make_dual(p.detach(), p.detach()) for n, p in model.named_parameters()}
        inputs = (x.reshape(1, -1, 4),) * 3 if f is attention else (x,)
        torch.func.functional_call(model, dual, inputs)


def batched_gradients(f, x):
    AF.jacobian(lambda y: f(y) * torch.ones(2), x, vectorize=True)


CALLS = {
    "hessian": AF.hessian,
    "hessian, vectorised": lambda f, x: AF.hessian(f, x, vectorize=True),
    "hessian, forward": lambda f, x: AF.hessian(
        f, x, vectorize=True, outer_jacobian_strategy="forward-mode"
    ),
    "hvp": lambda f, x: AF.hvp(f, x, x),
    "vhp": lambda f, x: AF.vhp(f, x, x),
    "jvp": lambda f, x: AF.jvp(f, x, x),
    "gradient penalty": gradient_penalty,
    "penalty of weights alone": penalty_of_weights_alone,
    "create_graph": lambda f, x: f(x.requires_grad_()).backward(create_graph=True),
    "forward mode": forward_mode,
    "forward mode of weights": forward_mode_of_weights,
    "batched gradients": batched_gradients,
    "func.grad": lambda f, x: torch.func.grad(f)(x),
    "func.grad of grad": lambda f, x: torch.func.grad(lambda y: torch.func.grad(f)(y).sum())(x),
    "func.hessian": lambda f, x: torch.func.hessian(f)(x),
    "func.jacrev": lambda f, x: torch.func.jacrev(f)(x),
    "func.jacfwd": lambda f, x: torch.func.jacfwd(f)(x),
    "func.jvp": lambda f, x: torch.func.jvp(f, (x,), (x,)),
    "func.vjp": lambda f, x: torch.func.vjp(f, x),
    "func.vmap": lambda f, x: torch.func.vmap(f)(x.expand(3, 4)),
    "linearize": lambda f, x: torch.func.linearize(f, x),
    "jit.trace": lambda f, x: torch.jit.trace(f, x),
}


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("call", CALLS)
def test_is_an_error(call, f):
    with pytest.raises(RuntimeError, match="numsim.torch.Linear: "):
        CALLS[call](f, torch.randn(4))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_first_derivatives_are_right(f):
    x = torch.randn(4)
    gradient = AF.vjp(f, x)[1]
    torch.testing.assert_close(AF.jacobian(f, x), gradient)
    nt.revert(LAYERS[f.__name__])
    torch.testing.assert_close(AF.jacobian(f, x), gradient, rtol=1e-4, atol=1e-5)
