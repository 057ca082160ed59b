"""numsim.torch with parameters that two processes share: the bytes of one process."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")

RANK = """
import sys, torch, numsim as ns, numsim.torch as nt
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import distribute_tensor

OPTIMIZERS = [
    {},
    {"moments": ("e4m3fn", "e5m2")},
    {"moments": ("e4m3fn@block:128+sr", "e5m2@coat:128+sr"), "seed": 5},
    {"moments": ("dynamic:256", "dynamic:256"), "update_from_stored": True},
    {"weights": "bf16", "rounding": ns.SR(bits=16, seed=3)},
    {"weights": "bf16", "rounding": "kahan", "moments": ("bf16", "bf16")},
    {"weights": "bf16", "rounding": "split-master"},
    {"weights": "bf16", "rounding": "norm-matched", "moment_filter": "all"},
]

def model():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(7, 50), torch.nn.ReLU(), torch.nn.Linear(50, 3), torch.nn.LayerNorm(3)]
    return torch.nn.Sequential(*layers)

def gradients(net, step):
    generator = torch.Generator().manual_seed(step)
    found = [torch.randn(p.shape, generator=generator) for p in net.parameters()]
    if step == 2:
        found[1][49] = float("inf")  # no step
    return found

def run(net, optimizer, steps, give):
    for step in steps:
        for p, g in zip(net.parameters(), gradients(net, step)):
            p.grad = give(p, g)
        if step == 3:
            list(net.parameters())[3].grad = None
        optimizer.step()

# What one process has after five steps and after seven.
expected, states = [], []
for arguments in OPTIMIZERS:
    net = model()
    optimizer = nt.AdamW(net.parameters(), lr=1e-2, **arguments)
    run(net, optimizer, range(5), lambda p, g: g)
    expected.append([p.detach().clone() for p in net.parameters()])
    states.append(optimizer.state_dict()["numsim"])
    run(net, optimizer, range(5, 7), lambda p, g: g)
    expected.append([p.detach().clone() for p in net.parameters()])

rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
mesh = dist.init_device_mesh("cpu", (2,))
same = lambda net, them: all(
    torch.equal(p.detach().full_tensor(), q) for p, q in zip(net.parameters(), them)
)
give = lambda p, g: distribute_tensor(g.to(p.dtype), mesh, p.placements)
def sharded():
    net = model()
    fully_shard(net, mesh=mesh)
    return net
good = []
for k, arguments in enumerate(OPTIMIZERS):
    net = sharded()
    optimizer = nt.AdamW(net.parameters(), lr=1e-2, **arguments)
    run(net, optimizer, range(5), give)
    good.append(same(net, expected[2 * k]))
    state = optimizer.state_dict()
    (own,), (other,) = state["numsim"], states[k]
    good.append(own["pieces"].keys() == other["pieces"].keys())
    good.append(all(torch.equal(own["pieces"][n], other["pieces"][n]) for n in other["pieces"]))
    good.append({n: own[n] for n in own if n != "pieces"} == {n: other[n] for n in other if n != "pieces"})
    # A state of one process, in two that go on.
    later = sharded()
    with torch.no_grad():
        for p, value in zip(later.parameters(), expected[2 * k]):
            p.copy_(distribute_tensor(value, mesh, p.placements))
    goes_on = nt.AdamW(later.parameters(), lr=1e-2, **arguments)
    goes_on.load_state_dict({**state, "numsim": states[k]})
    run(later, goes_on, range(5, 7), give)
    good.append(same(later, expected[2 * k + 1]))
# Layers of sharded parameters, with one batch in both processes: the mean of equal gradients.
for recipe in ("switchback-int8", "mx", ns.LinearRecipe("te-hybrid", delayed_history=2)):
    plain, net = (nt.convert(model(), recipe) for _ in range(2))
    fully_shard(net[2], mesh=mesh)
    fully_shard(net, mesh=mesh)
    x = torch.randn(6, 7, generator=torch.Generator().manual_seed(1))
    for m in (plain, net):
        for _ in range(2):
            m(x).square().sum().backward()
    good.append(all(
        torch.equal(p.grad.full_tensor(), q.grad) for p, q in zip(net.parameters(), plain.parameters())
    ))
    good.append(net[2].steps == 2 and net[2].delayed_scales() == plain[2].delayed_scales())
print(all(good), len(good))
print([i for i, g in enumerate(good) if not g], file=sys.stderr)
"""


def test_two_processes_have_the_bytes_of_one(run_ranks):
    _, outputs = run_ranks(RANK)
    assert [out.strip() for out, _ in outputs] == ["True 46"] * 2, outputs
