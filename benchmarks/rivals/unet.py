"""A U-Net and the gradient of a reward through a chain of it in PyTorch, with diffusers' UNet2DModel: what `bench` times with networks.

    unet.py config NAME                          config.json of a network: bench, mnist or cifar10
    unet.py steps FOLDER THREADS FORM            a step and its gradient, 32 images: ms of "FORWARD BOTH"
    unet.py chain FOLDER THREADS WAY             the gradient of a reward through 64 DDIM steps, 8 images: "SECONDS MB"
    unet.py pretrain FOLDER THREADS IMAGES       a step of pretraining with Adam and an average of weights: "SECONDS PROCESSOR_SECONDS GB"
    unet.py finetune FOLDER THREADS IMAGES T     a step of finetuning, with the path KL and Adam, each step checkpointed: the same

FOLDER is a model that tests/write_model wrote from a config.json, with what its network does; before anything is timed, the network here must do
the same. FORM is eager or compiled, WAY is full (backpropagation through the stored graph) or checkpoint (of each step). On one thread times are
processor times, on more those of the clock. Images lie in memory by channel or by pixel, whichever is faster.
"""

import copy
import ctypes
import json
import math
import os
import statistics
import sys
import time

os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")

PLAIN, ATTENTION = ("DownBlock2D", "UpBlock2D"), ("AttnDownBlock2D", "AttnUpBlock2D")


def config(size, channels, widths, attention, head, groups, **more):
    down = [ATTENTION[0] if i in attention else PLAIN[0] for i in range(len(widths))]
    up = [ATTENTION[1] if i in attention else PLAIN[1] for i in reversed(range(len(widths)))]
    return dict(sample_size=size, in_channels=channels, out_channels=channels, block_out_channels=widths, layers_per_block=2,
                down_block_types=down, up_block_types=up, attention_head_dim=head, norm_num_groups=groups, **more)


CONFIGS = {
    "bench": config(32, 1, [32, 64, 64], {2}, 8, 8),
    "mnist": config(28, 1, [32, 64, 96], {1}, 8, 32),
    "cifar10": config(32, 3, [160, 288, 320, 320], {2}, 64, 32, num_class_embeds=10),
}


def load(folder, threads):
    """The network, which must do what ours does."""
    torch.set_num_threads(threads)
    model = UNet2DModel.from_pretrained(os.path.join(folder, "unet"))
    io = load_file(os.path.join(folder, "io.safetensors"))
    x = io["sample"].requires_grad_()
    out = model(x, io["timestep"], class_labels=io.get("class_labels")).sample
    by_x = torch.autograd.grad(out, x, io["cotangent"])[0]
    for name, value in (("output", out.detach()), ("vjp_sample", by_x)):
        off = float((value - io[name]).abs().max()) / max(1.0, float(io[name].abs().max()))
        if not off < 2e-5:
            sys.exit(f"{name} differs from ours by {off}")
    return model


def layouts(model):
    return [model, copy.deepcopy(model).to(memory_format=torch.channels_last)]


def seconds_of(work, threads):
    clock = time.process_time if threads == 1 else time.perf_counter
    begin = clock()
    work()
    return clock() - begin


def labels_for(model, images):
    return torch.arange(images) % model.config.num_class_embeds if model.config.num_class_embeds else None


def peak(work):
    """Megabytes of resident memory: before a call, and at most during it."""

    def megabytes(name):
        with open("/proc/self/status") as status:
            return next(float(line.split()[1]) for line in status if line.startswith(name)) / 1024

    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = megabytes("VmRSS:")
    work()
    return before, megabytes("VmHWM:")


# --- A step ----------------------------------------------------------------------------------------------------------------------------


def steps(folder, threads, form):
    base = load(folder, threads)
    x, c = torch.randn(32, 1, 32, 32), torch.randn(32, 1, 32, 32)
    t = torch.ones(32)
    models = layouts(base)
    if form == "compiled":
        models = [torch.compile(m) for m in models]
    times = [([], []) for _ in models]
    for turn in range(8):  # the first is for warming up
        for model, (forward, both) in zip(models, times):
            layout = torch.channels_last if model is models[1] else torch.contiguous_format
            leaf = x.to(memory_format=layout).requires_grad_()
            variables = [leaf, *model.parameters()]

            def only():
                with torch.no_grad():
                    model(leaf, t).sample

            a = seconds_of(only, threads)
            b = seconds_of(lambda: torch.autograd.grad(model(leaf, t).sample, variables, c), threads)
            if turn > 0:
                forward.append(a)
                both.append(b)
    return [1e3 * min(statistics.median(column[k]) for column in times) for k in (0, 1)]


# --- Chains ----------------------------------------------------------------------------------------------------------------------------


def cosine_levels(count, begin=0.99, offset=0.008):
    def tau(t):
        return -math.log(math.cos((t + offset) / (1 + offset) * math.pi / 2) / math.cos(offset / (1 + offset) * math.pi / 2))

    return [tau(begin * (count - i) / count) for i in range(count)] + [0.0]


def ddim_gradient(model, start, levels, checkpointed):
    def step(tau, end, y):
        h, s = tau - end, math.sqrt(1 - math.exp(-2 * tau))
        pull = math.exp(h) * s * s - math.sqrt(1 - math.exp(-2 * end)) * s
        eps = model(y, torch.full((len(y),), tau)).sample
        return math.exp(h) * y - pull / s * eps

    y = start
    for tau, end in zip(levels, levels[1:]):
        y = checkpoint(step, tau, end, y, use_reentrant=False, preserve_rng_state=False) if checkpointed else step(tau, end, y)
    return torch.autograd.grad(-((y + 1) / 2).flatten(1).mean(1).mean(), list(model.parameters()))


def chain(folder, threads, way):
    model = load(folder, threads)
    start, levels = torch.randn(8, 1, 32, 32), cosine_levels(64)
    few = cosine_levels(4)
    for a, b in zip(ddim_gradient(model, start, few, False), ddim_gradient(model, start, few, True)):
        if not torch.allclose(a, b, rtol=1e-4, atol=1e-6):
            sys.exit("checkpoints change the gradient")
    times = []
    before, most = peak(lambda: times.append(seconds_of(lambda: ddim_gradient(model, start, levels, way == "checkpoint"), threads)))
    return min(times), most - before


def finetune(folder, threads, images, length):
    model = load(folder, threads)
    frozen = copy.deepcopy(model).requires_grad_(False)
    labels, optimizer = labels_for(model, images), torch.optim.Adam(model.parameters(), lr=1e-4)
    shape = (images, model.config.in_channels, model.config.sample_size, model.config.sample_size)
    levels = cosine_levels(length)
    noise = iter([torch.randn(shape) for _ in range(length)])

    def step(tau, end, y, u, xi):
        h, s = tau - end, math.sqrt(1 - math.exp(-2 * tau))
        t = torch.full((len(y),), tau)
        score = -model(y, t, class_labels=labels).sample / s
        gap = score + frozen(y, t, class_labels=labels).sample / s
        return (1 + h) * y + 2 * h * score + math.sqrt(2 * h) * xi, u + h * gap.flatten(1).square().sum(1)

    def one():
        y, u = torch.randn(shape), torch.zeros(images)
        for tau, end in zip(levels, levels[1:]):
            y, u = checkpoint(step, tau, end, y, u, next(noise), use_reentrant=False, preserve_rng_state=False)
        loss = (-30 * ((y + 1) / 2).flatten(1).mean(1) + u).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return measured(one)


def pretrain(folder, threads, images):
    model = load(folder, threads)
    average = copy.deepcopy(model).requires_grad_(False)
    labels, optimizer = labels_for(model, images), torch.optim.Adam(model.parameters(), lr=2e-4)
    x = torch.randn(images, model.config.in_channels, model.config.sample_size, model.config.sample_size)

    def one():
        angle = torch.rand(images) * 1.55
        a, s = (f(angle).view(-1, 1, 1, 1) for f in (torch.cos, torch.sin))
        eps = torch.randn_like(x)
        loss = (model(a * x + s * eps, 1000 * angle / 1.5708, class_labels=labels).sample - eps).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1e-4)

    one()
    return measured(one)


def measured(work):
    times = []

    def timed():
        begin = time.perf_counter(), time.process_time()
        work()
        times.extend([time.perf_counter() - begin[0], time.process_time() - begin[1]])

    _, most = peak(timed)
    return *times, most / 1024


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or sys.exit(__doc__)
    if what == "config":
        print(json.dumps(CONFIGS[rest[0]]))
        sys.exit()
    import torch
    from diffusers import UNet2DModel
    from safetensors.torch import load_file
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    folder, threads = rest[0], int(rest[1])
    numbers = {"steps": lambda: steps(folder, threads, rest[2]), "chain": lambda: chain(folder, threads, rest[2]),
               "pretrain": lambda: pretrain(folder, threads, int(rest[2])),
               "finetune": lambda: finetune(folder, threads, int(rest[2]), int(rest[3]))}[what]()
    print(*(f"{v:.4g}" for v in numbers))
