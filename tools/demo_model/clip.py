"""Trains the page's small model for clips, and makes the clip of its third example.

    python clip.py --minutes 30 --out run
    python clip.py --export run/clip.pt

The network is a decoder with the layers of TAEHV and few channels: tests/fixtures/tiny_reference.py.
Its latents need no encoder: the principal components of 4 frames of 8 x 8 pixels give 16 channels.
The clips are drawn: a picture of images.py that glides by, and things that float in front of it.
The export writes, from the root of the repository:
    assets/demo/clip/diffusion_pytorch_model.safetensors    the decoder in f16
    assets/demo/clip/latents.safetensors                    `latents` [1, 16, n, h, w] f16
"""

import argparse
import copy
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFilter
from safetensors.torch import save_file

import images
from train import schedule

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fixtures"))
from tiny_reference import Block, Grow, Tiny  # noqa: E402

CONFIG = dict(
    in_channels=3,
    out_channels=3,
    latent_channels=16,
    patch_size=1,
    decoder_block_out_channels=[48, 32, 24, 16],
    num_decoder_blocks=[2, 2, 1, 0],
    temporal_downsample=[True, True, False],
    grow_frames=[1, 2, 2],
)
# Frames and side of a training clip.
FRAMES, SIDE = 9, 64
# The clip of the example.
EXAMPLE_SEED, EXAMPLE_FRAMES, WIDTH, HEIGHT = 46, 29, 256, 160
RATE = 1e-3
# Pixels and frames of a latent.
FACTOR, TIMES = 8, 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--out", type=Path, default=Path("run"))
    parser.add_argument("--export", type=Path, help="only export this checkpoint")
    args = parser.parse_args()
    if args.export:
        return export(args.export)
    args.out.mkdir(parents=True, exist_ok=True)
    train(args.minutes * 60, args.out / "clip.pt")


def train(seconds, path):
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    pool = [Scene(rng, 256) for _ in range(60)]
    basis = components(torch.cat([blocks(scene.crop(rng, FRAMES, 128)) for scene in pool]))
    model = decoder()
    clips = [scene.crop(rng, FRAMES, 128) for scene in pool]
    begin(model, torch.cat([squash(encode(x, basis)) for x in clips]), torch.cat([blocks(x) for x in clips]))
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.99))
    started, step, errors = time.time(), 0, []
    while (progress := (time.time() - started) / seconds) < 1:
        if step % 16 == 0:
            pool[rng.integers(len(pool))] = Scene(rng, 256)
        x = pool[rng.integers(len(pool))].crop(rng, FRAMES, SIDE)
        # Without the clamp of a decode, which has no gradient outside of 0 to 1.
        y = 2 * model(squash(encode(x, basis)))[TIMES - 1 :] - 1
        error = y - x
        edges = (error[..., 1:] - error[..., :-1]).abs().mean() + (error[..., 1:, :] - error[..., :-1, :]).abs().mean()
        loss = error.abs().mean() + 2 * (error**2).mean() + 0.5 * edges
        model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = RATE * schedule(progress, step)
        optimizer.step()
        step += 1
        decay = min(0.998, (step + 1) / (step + 20))
        with torch.no_grad():
            for a, p in zip(average.parameters(), model.parameters()):
                a.lerp_(p, 1 - decay)
        errors.append((error.detach() ** 2).mean().item())
        if step % 100 == 0:
            print(f"step {step}, {(time.time() - started) / 60:.1f} minutes, {10 * math.log10(4 / np.mean(errors)):.2f} dB", flush=True)
            errors.clear()
            torch.save(dict(model=average.state_dict(), basis=basis), path)
    torch.save(dict(model=average.state_dict(), basis=basis), path)


@torch.no_grad()
def begin(model, latents, values):
    """Draws the first weights so that the decoder enlarges the mean colours of latents at once.

    Else it stays grey for thousands of steps. Six channels carry red, green and blue, above and
    below the middle, through every layer: a layer is about the identity, plus a little noise.
    """
    colours = values.reshape(*values.shape[:3], TIMES, 3, FACTOR**2).mean((3, 5)).reshape(-1, 3)
    rows = latents.movedim(1, -1).reshape(-1, latents.shape[1])
    solution = torch.linalg.lstsq(torch.cat([rows, torch.ones(len(rows), 1)], 1), colours).solution
    first, *between, last = model.layers.values()
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                module.bias.zero_()
    first.weight[:6] = 0
    for at, sign in ((slice(0, 3), 1), (slice(3, 6), -1)):
        first.weight[at, :, 1, 1] = sign * solution[:-1].T
        first.bias[at] = sign * solution[-1]
    for layer in between:
        if isinstance(layer, Block):
            layer.conv[-1].weight *= 0.05
        elif isinstance(layer, Grow):
            weight, width = layer.conv.weight, layer.conv.weight.shape[1]
            weight *= 0.05
            weight[..., 0, 0] += torch.eye(width).repeat(len(weight) // width, 1)
        elif isinstance(layer, torch.nn.Conv2d):
            layer.weight *= 0.05
            layer.weight[..., 1, 1] += torch.eye(*layer.weight.shape[:2])
    last.weight *= 0.1
    last.weight[:, :6] = 0
    last.weight[:, :6, 1, 1] = torch.cat([torch.eye(3), -torch.eye(3)], 1) / 2
    last.bias.fill_(0.5)


def decoder():
    """Returns the decoder alone."""
    return Tiny(CONFIG | dict(encoder_block_out_channels=[1] * 4, num_encoder_blocks=[0] * 4)).decoder


def blocks(x):
    """Returns the values of each latent, `[n, h, w, values]`: of the first frame alone, then of 4 frames."""
    x = torch.cat([x[:1].repeat(TIMES - 1, 1, 1, 1), x])
    n, channels, height, width = x.shape
    x = x.reshape(n // TIMES, TIMES, channels, height // FACTOR, FACTOR, width // FACTOR, FACTOR)
    return x.permute(0, 3, 5, 1, 2, 4, 6).flatten(3)


def components(x):
    """Returns the mean of `blocks`, and their principal components, for latents of variance 1 / 4: the network squashes large ones."""
    x = x.flatten(0, -2)
    mean = x.mean(0)
    variances, vectors = torch.linalg.eigh(torch.cov((x - mean).T))
    strongest = slice(-CONFIG["latent_channels"], None)
    return mean, vectors[:, strongest] / variances[strongest].sqrt() / 2


def encode(x, basis):
    """Returns the latents `[n, 16, h, w]` of successive frames."""
    mean, vectors = basis
    return ((blocks(x) - mean) @ vectors).movedim(-1, 1)


def squash(latents):
    """Returns latents as the network sees them."""
    return torch.tanh(latents / 3) * 3


class Scene:
    """A picture that glides by, and things that float in front of it at speeds of their own."""

    def __init__(self, rng, size, background=None):
        self.size = size
        self.background = drawn(rng, size) if background is None else background
        self.glide = rng.uniform(-2, 2, 2) * (rng.random() < 0.5)
        self.floats = [floating(rng, size) for _ in range(rng.integers(1, 6))]

    def frame(self, time):
        """Returns the frame `time`, `[size, size, 3]` u8."""
        dy, dx = (self.glide * time).round().astype(int)
        canvas = Image.fromarray(np.roll(self.background, (dy, dx), (0, 1)))
        for sprite, at, speed in self.floats:
            x, y = (at + speed * time) % (self.size + sprite.width) - sprite.width
            canvas.paste(sprite, (round(x), round(y)), sprite)
        return np.asarray(canvas)

    def crop(self, rng, frames, side):
        """Returns successive frames of a part of the scene, `[frames, 3, side, side]`, -1 to 1."""
        y, x = rng.integers(0, self.size - side + 1, 2)
        start = rng.integers(0, 60)
        whole = np.stack([self.frame(start + time)[y : y + side, x : x + side] for time in range(frames)])
        return tensor(whole)


def drawn(rng, size):
    """Returns a picture, more often a landscape than for the demo model."""
    if rng.random() < 0.25:
        return images.picture(rng, size)
    return images._tone(rng, np.asarray(images.landscape(rng, size), np.float32) / 255)


def floating(rng, size):
    """Returns a balloon or a block of one colour with shade, its place, and its speed."""
    radius = int(rng.uniform(0.03, 0.16) * size)
    colour = np.array(rng.integers(0, 256, 3))
    side = 2 * radius
    mask = Image.new("L", (2 * side, 2 * side))
    draw = ImageDraw.Draw(mask)
    if rng.random() < 0.7:
        draw.ellipse((0, 0, 2 * side - 1, 2 * side - 1), fill=255)
    else:
        draw.rectangle((side // 3, side // 3, 2 * side - side // 3, 2 * side - side // 3), fill=255)
    mask = mask.resize((side, side), Image.BOX)
    shade = np.linspace(1.15, 0.55, side)[:, None, None] * colour
    sprite = Image.fromarray(np.broadcast_to(shade.clip(0, 255), (side, side, 3)).astype(np.uint8))
    sprite.putalpha(mask)
    return sprite, rng.uniform(0, size, 2), rng.uniform(-4, 4, 2)


def example():
    """Returns the frames of the example, `[frames, 3, HEIGHT, WIDTH]`: balloons over a lake at night."""
    rng = np.random.default_rng(EXAMPLE_SEED)
    night = images._tone(rng, np.asarray(images.landscape(rng, WIDTH), np.float32) / 255)
    scene = Scene(rng, WIDTH, night)
    scene.glide = np.zeros(2)
    places = [((40, 150), (1.6, -1.5), (214, 69, 65)), ((120, 190), (1.1, -2.2), (240, 171, 0)), ((190, 120), (-1.3, -0.9), (62, 146, 204))]
    scene.floats = [(balloon(colour, 15 + 5 * index), np.array(at) + 0.0, np.array(speed)) for index, (at, speed, colour) in enumerate(places)]
    top = (WIDTH - HEIGHT) // 2
    return tensor(np.stack([scene.frame(time)[top : top + HEIGHT] for time in range(EXAMPLE_FRAMES)]))


def balloon(colour, radius):
    """Draws a hot-air balloon with its basket."""
    width, height = 2 * radius, 3 * radius
    big = Image.new("RGBA", (4 * width, 4 * height))
    draw = ImageDraw.Draw(big)
    for stripe in range(3):
        inset = stripe * 4 * width // 6
        tint = tuple(int(level * (1 - 0.18 * stripe)) for level in colour)
        draw.ellipse((inset // 2 * 1, 0, 4 * width - 1 - inset // 2 * 1, 4 * width - 1), fill=(*tint, 255))
    draw.polygon([(0.7 * width, 3.3 * width), (3.3 * width, 3.3 * width), (2.4 * width, 4.9 * width), (1.6 * width, 4.9 * width)], fill=(*(level // 2 for level in colour), 255))
    draw.rectangle((1.6 * width, 5.1 * width, 2.4 * width, 5.9 * width), fill=(92, 64, 44, 255))
    return big.filter(ImageFilter.GaussianBlur(1)).resize((width, height), Image.BOX)


def tensor(frames):
    """Converts `[n, h, w, 3]` u8 to `[n, 3, h, w]`, -1 to 1."""
    return torch.from_numpy(frames.astype(np.float32)).permute(0, 3, 1, 2) / 127.5 - 1


@torch.no_grad()
def export(checkpoint):
    model, saved = decoder(), torch.load(checkpoint)
    model.load_state_dict(saved["model"])
    for parameter in model.parameters():
        parameter.copy_(parameter.half())
    frames = example()
    latents = encode(frames, saved["basis"]).half()
    decoded = (model(squash(latents.float()))[TIMES - 1 :].clamp(0, 1) * 2) - 1
    error = ((decoded - frames) ** 2).mean().item()
    print(f"{len(latents)} latents of {EXAMPLE_FRAMES} frames: {10 * math.log10(4 / error):.2f} dB")
    folder = ROOT / "assets/demo/clip"
    folder.mkdir(parents=True, exist_ok=True)
    weights = {f"decoder.{name}": value.half().contiguous() for name, value in model.state_dict().items()}
    save_file(weights, folder / "diffusion_pytorch_model.safetensors", metadata={"format": "pt"})
    save_file({"latents": latents.movedim(0, 1)[None].contiguous()}, folder / "latents.safetensors")


if __name__ == "__main__":
    main()
