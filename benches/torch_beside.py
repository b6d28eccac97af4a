"""Compares decodes by torch with decodes by wgvae, in turns, on the CPU or on a CUDA GPU.

    python benches/torch_beside.py [--device cuda] [--side 1024] [--rounds 3] -- COMMAND OF wgvae...

COMMAND runs the release binary, such as `target/release/wgvae`. diffusers decodes the pictures.
On the CPU wgvae decodes on the machine's cores and, if there is a driver, by shaders on it. A clip
of SeedVR2 follows, by tests/fixtures/seedvr_reference.py in torch, the whole clip at once. On a GPU
both sides decode in every precision that they have: torch in f32 with and without TF32 (which torch
uses by default) and in f16 or bfloat16; wgvae in f32, f16, fast, and fast on matrix units. Times
include the picture's way to the host. Memory is the peak on the device: what torch's allocator
reserved, and what wgvae counted.

The difference is the largest of all values from torch in f32 without TF32, as a part of the largest
value. Weights are random, in published shapes. Compare times within one run only. Needs torch,
diffusers, safetensors and numpy.
"""

import argparse
import copy
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import diffusers
import numpy
import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
from seedvr_reference import SeedVR  # noqa: E402

MIB = 1 << 20
# diffusers' class of each family, its dtype beside f32, and pixels a latent.
FAMILIES = {
    "sd15": (diffusers.AutoencoderKL, torch.float16, 8),
    "taesd": (diffusers.AutoencoderTiny, torch.float16, 8),
    "qwen_image": (diffusers.AutoencoderKLQwenImage, torch.bfloat16, 8),
    "qwen_image21": (diffusers.AutoencoderKLQwenImage21, torch.bfloat16, 16),
    "hunyuan_image": (diffusers.AutoencoderKLHunyuanImage, torch.bfloat16, 32),
    "sana": (diffusers.AutoencoderDC, torch.bfloat16, 32),
    "wan21": (diffusers.AutoencoderKLWan, torch.bfloat16, 8),
}
# Families whose decode here is a clip of 832x480.
CLIPS = ["wan21"]


class Way:
    """A way to decode: `run()` returns the picture as numpy array, its seconds and its peak in bytes."""

    def __init__(self, name, run):
        self.name, self.run = name, run
        self.seconds, self.peak, self.picture = [], 0, None

    def turn(self):
        try:
            self.picture, seconds, self.peak = self.run()
            self.seconds.append(seconds)
        except (torch.OutOfMemoryError, subprocess.CalledProcessError) as error:
            print(f"{self.name}: {error}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=["sd15"], help="of pictures")
    parser.add_argument("--side", type=int, default=128, help="of the pictures, pixels")
    parser.add_argument("--latents", type=int, default=3, help="frames of latents of the clip, 0 for no clip")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-shaders", dest="shaders", action="store_const", const=[], default=["f32 --device gpu"])
    parser.add_argument("--threads", type=int, help="of torch and of wgvae on the cores")
    parser.add_argument("command", nargs="+", help="what runs wgvae")
    args = parser.parse_args()
    torch.manual_seed(0)
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    print(f"torch {torch.__version__}, {name_of(args.device)}\n")
    with tempfile.TemporaryDirectory() as folder:
        for family in args.families:
            title = f"{family}, {args.side}x{args.side}"
            if family in CLIPS:
                title = f"{family}, {1 + 4 * (args.latents - 1)} frames of 832x480"
            compare(title, list(decodes(family, pathlib.Path(folder), args)), args.rounds)
        if args.device == "cpu" and args.latents > 0:
            title = f"seedvr2, {1 + 4 * (args.latents - 1)} frames of {args.side}x{args.side}"
            compare(title, list(clip(pathlib.Path(folder), args)), args.rounds)


def name_of(device):
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"


def compare(title, ways, rounds):
    """Runs all ways in turns and prints them."""
    for _ in range(rounds):
        for way in ways:
            way.turn()
    reference = ways[0]
    print(f"{title}\n\n| | s: median, least | of torch's f32 | peak, MiB | difference |\n|---|---|---|---|---|")
    for way in ways:
        if not way.seconds or not reference.seconds:
            print(f"| {way.name} | failed | | | |")
            continue
        middle = statistics.median(way.seconds)
        speed = statistics.median(reference.seconds) / middle
        difference = numpy.abs(way.picture.reshape(reference.picture.shape) - reference.picture).max()
        difference /= numpy.abs(reference.picture).max()
        peak = f"{way.peak / MIB:.0f}" if way.peak else ""
        print(f"| {way.name} | {middle:.4f}, {min(way.seconds):.4f} | {speed:.2f} | {peak} | {difference:.1e} |")
    print(flush=True)


def decodes(family, folder, args):
    """Yields all ways to decode a picture or a clip: first torch in f32."""
    of_diffusers, half, factor = FAMILIES[family]
    config = json.loads((ROOT / f"tests/fixtures/configs/{family}.json").read_text())
    model = of_diffusers.from_config(config).eval()
    model.save_pretrained(folder / family)
    channels = config.get("latent_channels", config.get("z_dim"))
    if family in CLIPS:
        latents = torch.randn(1, channels, args.latents, 480 // factor, 832 // factor)
    else:
        latents = torch.randn(1, channels, args.side // factor, args.side // factor)
    file = folder / f"{family}.npy"
    numpy.save(file, latents.numpy())
    own = to_own(latents, config)
    yield from torch_ways(model, own, half, args)
    threads = f" --threads {args.threads}" if args.threads else ""
    on_gpu = ["f32", "f16", "fast", "fast --matrix-units"]
    for precision in [f"f32 --device cpu{threads}", *args.shaders] if args.device == "cpu" else on_gpu:
        command = [*args.command, "decode", "--model", folder / family, "--latents", file]
        # The first decode compiles: later ones count.
        # A clip is decoded once, in parts: compiling counts, unless the driver remembers it.
        repeat = [] if family in CLIPS else ["--repeat", "2" if args.device == "cpu" else "6"]
        yield wgvae_way(command + repeat, precision, folder / "image.npy")


def to_own(latents, config):
    """Returns the VAE's own latents for a diffusion model's."""
    if config.get("latents_mean"):
        latents = latents if latents.ndim == 5 else latents.unsqueeze(2)
        mean, deviation = (torch.tensor(config[name]).view(1, -1, 1, 1, 1) for name in ("latents_mean", "latents_std"))
        return latents * deviation + mean
    return latents / config.get("scaling_factor", 1.0)


def torch_ways(model, latents, half, args):
    if args.device == "cpu":
        yield torch_way("torch, f32", model, latents, torch.float32, False, args.device)
        return
    yield torch_way("torch, f32 without TF32", model, latents, torch.float32, False, args.device)
    yield torch_way("torch, f32 with TF32", model, latents, torch.float32, True, args.device)
    name = str(half).removeprefix("torch.")
    yield torch_way(f"torch, {name}", model, latents, half, True, args.device)


def torch_way(name, model, latents, dtype, tf32, device):
    def run():
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
        moved = copy.deepcopy(model).to(device, dtype)

        def decode():
            return moved.decode(latents.to(device, dtype)).sample.float().cpu().numpy()

        decode()
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        picture = decode()
        took = time.perf_counter() - start
        if device == "cuda":
            # As often as wgvae, without the first allocations.
            starts = []
            for _ in range(4):
                start = time.perf_counter()
                decode()
                starts.append(time.perf_counter() - start)
            took = min(took, *starts)
        peak = torch.cuda.max_memory_reserved() if device == "cuda" else 0
        return picture, took, peak

    return Way(name, run)


def wgvae_way(command, precision, output):
    def run():
        found = report(command + ["-o", output, "--precision", *precision.split()], output.parent)
        each = [decode["seconds"] for decode in found["decodes"]]
        seconds = min(each[1:]) if "--repeat" in command else sum(each)
        return numpy.load(output), seconds, found["measured_peak_bytes"]

    return Way(f"wgvae, {precision}", run)


def clip(folder, args):
    """Yields torch and wgvae for a clip of SeedVR2."""
    shapes = json.loads((ROOT / "tests/fixtures/keys/seedvr2.original.json").read_text())
    state = {name: weight(shape) for name, shape in shapes.items()}
    save_file(state, folder / "seedvr2.safetensors")
    side = args.side // 8
    latents = torch.randn(1, 16, args.latents, side, side)
    numpy.save(folder / "clip.npy", latents.numpy())
    model = SeedVR(state, 32)
    model.decode(latents)

    def by_torch():
        start = time.perf_counter()
        result = model.decode(latents).numpy()
        return result, time.perf_counter() - start, 0

    command = [*args.command, "decode", "--device", "cpu", "--model", folder / "seedvr2.safetensors"]
    command += ["--threads", str(torch.get_num_threads())]
    command += ["--family", "seedvr2", "--unscaled"]
    command += ["--latents", folder / "clip.npy", "-o", folder / "clip.out.npy", "--precision", "f32"]

    def by_wgvae():
        found = report(command, folder)
        seconds = sum(part["seconds"] for part in found["decodes"])
        return numpy.load(folder / "clip.out.npy"), seconds, found["measured_peak_bytes"]

    yield Way("torch, f32", by_torch)
    yield Way("wgvae, f32", by_wgvae)


def weight(shape):
    """Returns a random weight that keeps the scale of activations."""
    fan_in = max(1, int(numpy.prod(shape[1:])))
    return torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * fan_in**-0.5


def report(command, folder):
    """Runs wgvae and returns its report."""
    path = folder / "report.json"
    subprocess.run([*map(str, command), "--report", str(path)], check=True, stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())


if __name__ == "__main__":
    main()
