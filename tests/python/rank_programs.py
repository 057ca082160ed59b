"""What each of two processes does in the tests of sharded tensors (conftest.py: run_ranks).

    python rank_programs.py RANK STORE DEVICE NAME...

DEVICE is "cpu", where the processes talk by gloo, or "cuda", with NCCL and a GPU for each. Prints for
each program how many checks held; those that failed are named on stderr.
"""

import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import numsim as ns
import numsim.torch as nt

OPTIMIZERS = {
    "fp32": {},
    "bf16": {"moments": ("bf16", "bf16")},
    "fp8 per tensor": {"moments": ("e4m3fn", "e5m2")},
    "fp8 in blocks": {"moments": ("e4m3fn@block:128", "e5m2@block:64")},
    "stochastic blocks, coat": {"moments": ("e4m3fn@block:128+sr", "e5m2@coat:128+sr"), "seed": 5},
    "dynamic": {"moments": ("dynamic:256", "dynamic:256"), "update_from_stored": True},
    "stochastic weights": {"weights": "bf16", "rounding": ns.SR(bits=16, seed=3)},
    "kahan": {"weights": "bf16", "rounding": "kahan", "moments": ("bf16", "bf16")},
    "split-master": {"weights": "bf16", "rounding": "split-master"},
    "master-fp32": {"weights": "bf16", "rounding": "master-fp32", "moments": ("e4m3fn", "e5m2")},
    "norm-matched": {"weights": "bf16", "rounding": "norm-matched", "moment_filter": "all"},
}
DELAYED = ns.LinearRecipe("te-hybrid", delayed_history=2, accumulate="tensor-cores")
RECIPES = {
    name: ns.LinearRecipe(name, accumulate="tensor-cores")
    for name in ("switchback-int8", "switchback-e4m3fn", "tensor-wise-e4m3fn")
} | {"delayed": DELAYED}


class Ranks:
    """The two processes, as one of them sees them, and its checks."""

    def __init__(self, rank, store, device):
        on_gpu = device == "cuda"
        if on_gpu and torch.cuda.device_count() > 1:
            torch.cuda.set_device(rank)
        self.rank = rank
        self.device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else device
        backend = "nccl" if on_gpu else "gloo"
        dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=2)
        self.mesh = dist.init_device_mesh(device, (2,))
        self.held = 0

    def check(self, what, holds):
        self.held += bool(holds)
        if not holds:
            print(what, file=sys.stderr)

    def run(self, program):
        self.held = 0
        program(self)
        print(program.__name__, self.held, flush=True)

    def drawn(self, *shape, seed=0):
        """Normal numbers, the same ones on every device."""
        return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(self.device)

    def model(self, *sizes):
        torch.manual_seed(0)
        layers = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1], torch.nn.LayerNorm(sizes[-1])).to(self.device)

    def cut(self, p, whole):
        """Returns the part of a tensor that belongs to a sharded parameter."""
        return distribute_tensor(whole.to(p.dtype), self.mesh, p.placements)

    def sharded(self, *sizes):
        net = self.model(*sizes)
        fully_shard(net, mesh=self.mesh)
        return net


def values_of(net):
    return [p.detach().clone() for p in net.parameters()]


def equal(found, wanted):
    return len(found) == len(wanted) and all(torch.equal(a, b) for a, b in zip(found, wanted))


def wholes(tensors):
    return [t.detach().full_tensor() for t in tensors]


def optimizers(ranks):
    """For equal gradients, weights and states have the bytes of one process."""
    sizes = 7, 51, 1  # parts of other sizes, and parts without any element

    def run(net, optimizer, steps, give):
        for step in steps:
            for i, p in enumerate(net.parameters()):
                gradient = ranks.drawn(*p.shape, seed=100 * step + i)
                if step == 2 and i == 1:
                    gradient[49] = float("inf")  # in one process; no step in any
                p.grad = None if step == 3 and i == 3 else give(p, gradient)
            optimizer.step()

    def alone(p, whole):
        return whole

    for name, arguments in OPTIMIZERS.items():
        one = ranks.model(*sizes)
        optimizer = nt.AdamW(one.parameters(), lr=1e-2, **arguments)
        run(one, optimizer, range(5), alone)
        after_five, state_of_one = values_of(one), optimizer.state_dict()["numsim"]
        run(one, optimizer, range(5, 7), alone)

        net = ranks.sharded(*sizes)
        optimizer = nt.AdamW(net.parameters(), lr=1e-2, **arguments)
        run(net, optimizer, range(5), ranks.cut)
        ranks.check(f"{name}: weights", equal(wholes(net.parameters()), after_five))
        state = optimizer.state_dict()
        (own,), (other,) = state["numsim"], state_of_one
        pieces, wanted = own.pop("pieces"), other["pieces"]
        same = pieces.keys() == wanted.keys() and all(
            torch.equal(pieces[piece], wanted[piece]) for piece in wanted
        )
        ranks.check(f"{name}: pieces", same)
        ranks.check(f"{name}: state", own == {k: v for k, v in other.items() if k != "pieces"})

        later = ranks.sharded(*sizes)  # with the state of one process, in two that go on
        with torch.no_grad():
            for p, value in zip(later.parameters(), after_five):
                p.copy_(ranks.cut(p, value))
        optimizer = nt.AdamW(later.parameters(), lr=1e-2, **arguments)
        optimizer.load_state_dict({**state, "numsim": state_of_one})
        run(later, optimizer, range(5, 7), ranks.cut)
        ranks.check(f"{name}: later", equal(wholes(later.parameters()), values_of(one)))


def layers(ranks):
    """Layers take the whole of a sharded weight: one batch in both gives the gradients of one."""
    recipes = dict(RECIPES)
    if ranks.device == "cpu":
        recipes["mx"] = "mx"  # no tensor core of Hopper has its products
    for name, recipe in recipes.items():
        plain, net = (nt.convert(ranks.model(64, 128, 32), recipe) for _ in range(2))
        fully_shard(net[2], mesh=ranks.mesh)
        fully_shard(net, mesh=ranks.mesh)
        x = ranks.drawn(96, 64)
        small = {"lr": 1e-2, "moments": ("e4m3fn", "e5m2")}
        optimizers = [nt.AdamW(m.parameters(), **small) for m in (plain, net)]
        for step in range(2):
            for m, optimizer in zip((plain, net), optimizers):
                m.zero_grad()
                m(x).square().sum().backward()
                optimizer.step()
            found = wholes(p.grad for p in net.parameters())
            gradients = [p.grad for p in plain.parameters()]
            ranks.check(f"{name}: gradients of step {step}", equal(found, gradients))
            found = wholes(net.parameters())
            ranks.check(f"{name}: weights of step {step}", equal(found, values_of(plain)))
        ranks.check(f"{name}: steps", net[2].steps == plain[2].steps == 2)
        ranks.check(f"{name}: scales", net[2].delayed_scales() == plain[2].delayed_scales())
        if recipe is DELAYED:  # the amax of the whole is the largest of the parts
            net(x)  # of the weights as they are now
            largest = net[2].weight.to_local().detach().abs().max()
            dist.all_reduce(largest, dist.ReduceOp.MAX)
            _, amaxes = net[2].delayed_scales()["w"]
            ranks.check(f"{name}: amax", amaxes[-1] == largest.item())


def data_parallel(ranks):
    """Each process has a batch of its own: gradients are the mean, and weights stay equal."""
    for name, recipe in RECIPES.items():
        # One process that computes both batches, in a model for each.
        both = [nt.convert(ranks.model(64, 128, 32), recipe) for _ in range(2)]
        net = nt.convert(ranks.model(64, 128, 32), recipe)
        ids = [ranks.device.index] if ranks.device != "cpu" else None
        parallel = torch.nn.parallel.DistributedDataParallel(net, device_ids=ids)
        small = {"lr": 1e-2, "moments": ("e4m3fn", "e5m2")}
        alone, optimizer = (nt.AdamW(m.parameters(), **small) for m in (both[0], net))
        for step in range(3):
            batches = [ranks.drawn(96, 64, seed=2 * step + k) for k in range(2)]
            for m, x in zip((*both, parallel), (*batches, batches[ranks.rank])):
                m.zero_grad()
                m(x).square().mean().backward()
            for p, q in zip(*(m.parameters() for m in both)):
                p.grad = p.grad / 2 + q.grad / 2
            found = [p.grad for p in net.parameters()]
            ranks.check(f"{name}: mean", equal(found, [p.grad for p in both[0].parameters()]))
            alone.step()
            optimizer.step()
            with torch.no_grad():
                for p, q in zip(*(m.parameters() for m in both)):
                    q.copy_(p)
            ranks.check(f"{name}: weights", equal(values_of(net), values_of(both[0])))
        own = both[ranks.rank][2]
        ranks.check(f"{name}: scales", net[2].delayed_scales() == own.delayed_scales())
        ranks.check(f"{name}: steps", net[2].steps == 3)


def rounding(ranks):
    """Parts of a sharded tensor get the bits of the whole one, and their gradients."""
    sr = ns.SR(bits=16, seed=3, stream=4)
    calls = [
        lambda y: nt.round(y, "e4m3fn", rounding=sr),
        lambda y: nt.round(y, "e4m3fn", rounding="rne"),
        lambda y: nt.fake_quantize(y, "e4m3fn", scaling="row", rounding=sr),
        lambda y: nt.fake_quantize(y, "e4m3fn"),  # a scale that is the largest of the parts'
    ]
    for shape in ((8, 6), (5, 7), (1, 9), (7,)):
        x = ranks.drawn(*shape) * ranks.drawn(*shape, seed=1).exp()
        for placement in (Shard(0), Shard(len(shape) - 1), Replicate()):
            for k, call in enumerate(calls):
                what = f"call {k} of {shape}, {placement}"
                part = distribute_tensor(x, ranks.mesh, [placement]).requires_grad_()
                y = call(part)
                ranks.check(f"{what}: placements", y.placements == part.placements)
                ranks.check(f"{what}: values", torch.equal(y.full_tensor(), call(x)))
                (y * 3).sum().backward()
                whole = part.grad.full_tensor()
                ranks.check(f"{what}: gradient", torch.equal(whole, torch.full_like(whole, 3)))


def main(rank, store, device, *names):
    ns.threads(1)
    programs = {f.__name__: f for f in (optimizers, layers, data_parallel, rounding)}
    ranks = Ranks(int(rank), store, device)
    for name in names:
        ranks.run(programs[name])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
