"""Compares decodes by torch on the CPU with decodes by wgvae, in turns, in f32.

    python benches/torch_beside.py [--side 128] [--latents 3] [--rounds 3] -- COMMAND OF wgvae...

COMMAND runs the release binary, such as `target/release/wgvae`. One decode is an image of SD 1.5,
by diffusers' AutoencoderKL in torch. The other is a clip of SeedVR2, by
tests/fixtures/seedvr_reference.py in torch, the whole clip at once. Weights are random, in
published shapes. Compare times within one run only. Needs torch, diffusers, safetensors and numpy.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from diffusers import AutoencoderKL
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
from seedvr_reference import SeedVR  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=128, help="of the pictures, pixels")
    parser.add_argument("--latents", type=int, default=3, help="frames of latents of the clip")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("command", nargs="+", help="what runs wgvae")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    with tempfile.TemporaryDirectory() as folder:
        cases = [image(pathlib.Path(folder), args), clip(pathlib.Path(folder), args)]
        times = [([], []) for _ in cases]
        for _ in range(args.rounds):
            for (_, by_torch, by_wgvae), (torch_times, wgvae_times) in zip(cases, times):
                torch_times.append(seconds(by_torch))
                wgvae_times.append(by_wgvae())
    for (what, _, _), (torch_times, wgvae_times) in zip(cases, times):
        middle = [statistics.median(times) for times in (torch_times, wgvae_times)]
        listed = [", ".join(f"{value:.2f}" for value in times) for times in (torch_times, wgvae_times)]
        print(f"{what}: torch {listed[0]} s; wgvae {listed[1]} s; {middle[0] / middle[1]:.2f} of torch's speed")


def image(folder, args):
    """Prepares the decode of an image with SD 1.5's decoder.

    Returns its title, a function that decodes with torch, and one that decodes with wgvae and
    returns seconds.
    """
    config = json.loads((ROOT / "tests/fixtures/configs/sd15.json").read_text())
    model = AutoencoderKL.from_config(config).eval()
    model.save_pretrained(folder / "sd15")
    latents = torch.randn(1, 4, args.side // 8, args.side // 8)
    numpy.save(folder / "image.npy", latents.numpy())
    own = latents / config["scaling_factor"]
    model.decode(own)
    wgvae = [*args.command, "decode", "--model", folder / "sd15", "--latents", folder / "image.npy", "--repeat", "2"]
    # The second decode counts: the kernels are compiled by then, as torch's are.
    run = lambda: report(wgvae + ["-o", folder / "image.out.npy"], folder)[-1]["seconds"]  # noqa: E731
    return f"SD 1.5, {args.side}x{args.side}", lambda: model.decode(own), run


def clip(folder, args):
    """Prepares the decode of a clip with SeedVR2's decoder: see `image`."""
    shapes = json.loads((ROOT / "tests/fixtures/keys/seedvr2.original.json").read_text())
    state = {name: weight(shape) for name, shape in shapes.items()}
    save_file(state, folder / "seedvr2.safetensors")
    side = args.side // 8
    latents = torch.randn(1, 16, args.latents, side, side)
    numpy.save(folder / "clip.npy", latents.numpy())
    model = SeedVR(state, 32)
    decode = lambda: model.decode(latents)  # noqa: E731
    decode()
    wgvae = [*args.command, "decode", "--model", folder / "seedvr2.safetensors", "--family", "seedvr2"]
    wgvae += ["--latents", folder / "clip.npy", "-o", folder / "clip.out.npy"]
    run = lambda: sum(part["seconds"] for part in report(wgvae, folder))  # noqa: E731
    return f"SeedVR2, {1 + 4 * (args.latents - 1)} frames of {args.side}x{args.side}", decode, run


def weight(shape):
    """Returns a random weight that keeps the scale of activations."""
    fan_in = max(1, int(numpy.prod(shape[1:])))
    return torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * fan_in**-0.5


def report(command, folder):
    """Runs wgvae in f32 and returns the reports of its decodes, or of the parts of a clip."""
    path = folder / "report.json"
    subprocess.run([*map(str, command), "--precision", "f32", "--report", str(path)], check=True, stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())["decodes"]


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
