"""Trains the demo model, a small `AutoencoderKL` of diffusers, on the pictures of images.py.

    python train.py --minutes 60 --out run

The learning rate follows the clock: a warm-up, then a cosine to zero when the minutes are over.
Training rewrites `run/checkpoint.pt` from time to time. It holds the averaged weights, which
export.py turns into the files under assets/demo.
"""

import argparse
import copy
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed
import torch.multiprocessing
from diffusers import AutoencoderKL
from torch.nn import functional

import images

CONFIG = dict(
    in_channels=3,
    out_channels=3,
    down_block_types=["DownEncoderBlock2D"] * 4,
    up_block_types=["UpDecoderBlock2D"] * 4,
    block_out_channels=[32, 48, 64, 96],
    layers_per_block=1,
    act_fn="silu",
    latent_channels=16,
    norm_num_groups=16,
    sample_size=512,
    use_quant_conv=False,
    use_post_quant_conv=False,
    mid_block_add_attention=True,
    force_upcast=False,
)
KL_WEIGHT = 1e-5
EDGE_WEIGHT = 0.5
SQUARE_WEIGHT = 2.0
# Without this term the model spends its latents on lightness, and two of three colour axes stay
# grey for thousands of steps.
COLOUR_WEIGHT = 2.0
# Two channels of latents are held to the mean colour of their block: neither encoder nor decoder
# finds the last colour axis alone.
COLOUR_LATENTS = [1, 11]
ANCHOR_WEIGHT = 0.2
COLOUR_AXES = [[0.7071, 0.0, -0.7071], [0.4082, -0.8165, 0.4082]]
CROPS = (64, 96, 128, 192, 256)
# Shares of the crop sizes at the start and at the end. GroupNorm and attention see the whole
# picture, so a model that has seen only small crops is a little wrong on large ones.
CROPS_FIRST = (0.80, 0.15, 0.05, 0.00, 0.00)
CROPS_LAST = (0.20, 0.25, 0.35, 0.15, 0.05)
PIXELS = 12288  # of one process in one step; larger crops come one at a time


def main():
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.multiprocessing.spawn(train, (args, f"file://{args.out.resolve()}/rendezvous"), args.processes)


def train(rank, args, rendezvous):
    """Trains in one process, with one thread and its own pictures.

    The processes share their gradients once a step. Threads within a step would meet at a barrier
    hundreds of times, which takes most of the time on a busy machine.
    """
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rendezvous, rank=rank, world_size=args.processes)
    torch.manual_seed(args.seed)
    model = AutoencoderKL(**CONFIG).to(memory_format=torch.channels_last)
    # Start with a narrow posterior, or its noise drowns the picture for the first thousand steps.
    with torch.no_grad():
        model.encoder.conv_out.bias[CONFIG["latent_channels"] :] = -6
    if args.resume:
        model.load_state_dict(torch.load(args.resume)["model"])
    average = copy.deepcopy(model).requires_grad_(False)
    optimizers = muon_and_adam(model) if args.optimizer == "muon" else adam(model)

    torch.manual_seed(args.seed + 1 + rank)
    crops = Crops((args.seed, rank), args.pool // args.processes)
    log = (args.out / "log.jsonl").open("a") if rank == 0 else None
    started = time.time()
    step, progress, window, saved = 0, 0.0, [], started
    while progress < 1:
        x = crops.batch(progress)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16 and progress < 0.85):
            posterior = model.encode(x).latent_dist
            y = model.decode(posterior.sample()).sample.float()
            loss = objective(x, y, posterior)
        loss.backward()
        clock = (time.time() - started) / (args.minutes * 60) if rank == 0 else 0.0
        progress, square = share(model, clock, ((x - y.detach()) ** 2).mean().item())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * schedule(progress, step)
            optimizer.step()
        model.zero_grad(set_to_none=True)
        step += 1
        decay = min(0.998, (step + 1) / (step + 20))
        with torch.no_grad():
            for a, p in zip(average.parameters(), model.parameters()):
                a.lerp_(p, 1 - decay)

        window.append(square)
        if rank == 0 and step % 100 == 0:
            line = dict(step=step, minutes=round((time.time() - started) / 60, 2), loss=round(loss.item(), 4))
            line["psnr_of_mean_square"] = round(psnr(np.mean(window)), 2)
            window.clear()
            print(json.dumps(line), file=log, flush=True)
        if rank == 0 and (time.time() - saved > 60 or progress >= 1):
            save(args, average, step, progress)
            saved = time.time()
    torch.distributed.destroy_process_group()


def share(model, clock, square):
    """Averages the gradients of all processes in place.

    Returns the clock of process 0 and the mean of `square`.
    """
    gradients = [p.grad for p in model.parameters()]
    n = torch.distributed.get_world_size()
    flat = torch.cat([g.reshape(-1) for g in gradients] + [torch.tensor([clock * n, square])])
    torch.distributed.all_reduce(flat)
    flat /= n
    at = 0
    for g in gradients:
        g.copy_(flat[at : at + g.numel()].view(g.shape))
        at += g.numel()
    return flat[-2].item(), flat[-1].item()


def objective(x, y, posterior):
    """Returns the loss of the reconstruction `y` of `x`, both `[n, 3, h, w]` in -1..1.

    It is a sum of errors of pixels, of edges and of the mean colours of latents' blocks, and a
    small KL term.
    """
    error = y - x
    edges = (error[..., 1:] - error[..., :-1]).abs().mean() + (error[..., 1:, :] - error[..., :-1, :]).abs().mean()
    axes = torch.tensor(COLOUR_AXES)
    colour = torch.einsum("ac,nchw->nahw", axes, functional.avg_pool2d(error, 8)).abs().mean()
    mean, logvar = posterior.mean.float(), posterior.logvar.float()
    kl = 0.5 * (mean**2 + logvar.exp() - 1 - logvar).mean()
    pixels = error.abs().mean() + SQUARE_WEIGHT * (error**2).mean()
    anchor = 5 * torch.einsum("ac,nchw->nahw", axes, functional.avg_pool2d(x, 8)) - mean[:, COLOUR_LATENTS]
    colour = COLOUR_WEIGHT * colour + ANCHOR_WEIGHT * anchor.abs().mean()
    return pixels + EDGE_WEIGHT * edges + colour + KL_WEIGHT * kl


class Crops:
    """Batches of random crops from a pool of pictures that is slowly redrawn."""

    def __init__(self, seed, n):
        self.rng = np.random.default_rng(seed)
        # A generator with the same seed in every process: all draw crops of one size, so that none
        # waits for another's larger crop.
        self.sizes = np.random.default_rng(0)
        self.pool = [self.draw() for _ in range(n)]
        self.served = 0

    def draw(self):
        return images.picture(self.rng, int(self.rng.choice((256, 384, 512), p=(0.6, 0.25, 0.15))))

    def batch(self, progress):
        """Returns a batch `[n, 3, crop, crop]` f32 in -1..1, channels last in memory."""
        self.served += 1
        if self.served % 8 == 0:
            self.pool[self.rng.integers(len(self.pool))] = self.draw()
        odds = np.array(CROPS_FIRST) * (1 - progress) + np.array(CROPS_LAST) * progress
        crop = int(self.sizes.choice(CROPS, p=odds))
        n = max(1, PIXELS // crop**2)
        batch = np.stack([self.crop(crop) for _ in range(n)])
        x = torch.from_numpy(batch).permute(0, 3, 1, 2).float() / 127.5 - 1
        return x.contiguous(memory_format=torch.channels_last)

    def crop(self, size):
        picture = self.pool[self.rng.integers(len(self.pool))]
        y, x = self.rng.integers(0, picture.shape[0] - size + 1, 2)
        picture = np.rot90(picture[y : y + size, x : x + size], self.rng.integers(4))
        return picture[:, ::-1] if self.rng.random() < 0.5 else picture


def schedule(progress, step):
    """Returns the factor of the learning rate.

    It warms up over 100 steps, stays flat, and falls as a cosine over the last 70 % of the time.
    """
    return min(1, (step + 1) / 100) * 0.5 * (1 + math.cos(math.pi * max(0, progress - 0.3) / 0.7))


def adam(model):
    return [torch.optim.Adam([dict(params=list(model.parameters()), peak=1.5e-3)], betas=(0.9, 0.99))]


def muon_and_adam(model):
    """Returns the optimizers: Muon for matrices inside the network, Adam for the rest.

    The rest are vectors, and the layers that read or write pixels or latents.
    """
    inner = [p for n, p in model.named_parameters() if p.ndim >= 2 and "conv_in" not in n and "conv_out" not in n]
    chosen = {id(p) for p in inner}
    outer = [p for p in model.parameters() if id(p) not in chosen]
    return [
        Muon([dict(params=inner, peak=0.02)], dict(lr=0.02)),
        torch.optim.Adam([dict(params=outer, peak=1.5e-3)], betas=(0.9, 0.99)),
    ]


class Muon(torch.optim.Optimizer):
    """The Muon optimizer (Jordan et al., 2024), with filters as matrices.

    Five Newton-Schulz steps make its momentum orthogonal.
    """

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.lerp_(p.grad, 0.05)
                update = p.grad.lerp(momentum, 0.95).reshape(p.shape[0], -1)
                by_shape.setdefault(update.shape, []).append((p, update))
            for (rows, columns), pairs in by_shape.items():
                updates = orthogonal(torch.stack([u for _, u in pairs]))
                scale = -group["lr"] * max(1, rows / columns) ** 0.5
                for (p, _), update in zip(pairs, updates):
                    p.mul_(1 - group["lr"] * 0.01).add_(update.reshape(p.shape), alpha=scale)


def orthogonal(m):
    """Returns the nearest matrices with all singular values about 1, `[n, rows, columns]`."""
    if m.shape[1] > m.shape[2]:
        return orthogonal(m.transpose(1, 2)).transpose(1, 2)
    m = m / (m.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        s = m @ m.transpose(1, 2)
        m = 3.4445 * m + (-4.7750 * s + 2.0315 * s @ s) @ m
    return m


def psnr(mean_square):
    """Returns the PSNR in dB for a mean squared error of values in -1..1."""
    return 10 * math.log10(4 / mean_square)


def save(args, average, step, progress):
    """Writes the checkpoint to a new file and renames it: an interrupt leaves a whole file."""
    path = args.out / "checkpoint.pt"
    state = dict(model=average.state_dict(), step=step, progress=progress, seed=args.seed)
    torch.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pool", type=int, default=300, help="pictures held at a time")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--optimizer", choices=("muon", "adam"), default="muon")
    parser.add_argument("--resume", type=Path, help="a checkpoint to start from: the weights only")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True, help="until the last 15 %% of the time")
    parser.add_argument("--out", type=Path, default=Path("run"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
