"""Compares decodes on the CPU by torch, onnxruntime, OpenVINO and wgvae, in turns.

    python benches/cpu_beside.py [--families sd15 taesd] [--side 256] [--rounds 3] -- COMMAND OF wgvae...

COMMAND runs the release binary, such as `target/release/wgvae`. Weights are random, in published
shapes. All decode in f32 and on as many threads as torch; OpenVINO also in bf16, its default on
processors that have it. The difference is the largest of all values from torch, as a part of the
largest value. Compare times within one run only. Needs torch, diffusers, safetensors, numpy, onnx,
onnxscript, onnxruntime and openvino.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

import numpy
import onnxruntime
import openvino
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_beside import FAMILIES, ROOT, Way, compare, name_of, to_own, torch_ways, wgvae_way  # noqa: E402

# torch_beside decodes clips of the other families.
IMAGES = ["sd15", "taesd"]


class Decode(torch.nn.Module):
    """The decode of a VAE as a module, for exporters."""

    def __init__(self, vae):
        super().__init__()
        self.vae = vae

    def forward(self, latents):
        return self.vae.decode(latents, return_dict=False)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="*", choices=IMAGES, default=["sd15"])
    parser.add_argument("--side", type=int, default=256, help="of the pictures, pixels")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("command", nargs="+", help="what runs wgvae")
    args = parser.parse_args()
    args.device = "cpu"
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    versions = f"onnxruntime {onnxruntime.__version__}, OpenVINO {openvino.__version__.split('-')[0]}"
    print(f"torch {torch.__version__}, {versions}, {name_of('cpu')}\n")
    with tempfile.TemporaryDirectory() as folder:
        for family in args.families:
            ways = list(decodes(family, pathlib.Path(folder), args))
            compare(f"{family}, {args.side}x{args.side}", ways, args.rounds)


def decodes(family, folder, args):
    """Yields all ways to decode a picture: first torch."""
    of_diffusers, half, factor = FAMILIES[family]
    config = json.loads((ROOT / f"tests/fixtures/configs/{family}.json").read_text())
    model = of_diffusers.from_config(config).eval()
    model.save_pretrained(folder / family)
    latents = torch.randn(1, config["latent_channels"], args.side // factor, args.side // factor)
    file = folder / f"{family}.npy"
    numpy.save(file, latents.numpy())
    own = to_own(latents, config)
    yield from torch_ways(model, own, half, args)
    exported = folder / f"{family}.onnx"
    torch.onnx.export(Decode(model), (own,), exported, dynamo=True, verbose=False, input_names=["latents"])
    yield way("onnxruntime, f32", onnxruntime_of(exported), own)
    for precision in ["f32", "bf16"]:
        yield way(f"OpenVINO, {precision}", openvino_of(exported, precision), own)
    command = [*args.command, "decode", "--model", folder / family, "--latents", file, "--repeat", "2"]
    threads = torch.get_num_threads()
    yield wgvae_way(command, f"f32 --device cpu --threads {threads}", folder / "image.npy")


def way(name, decode, latents):
    """Returns a way that decodes once to warm up, and then once more."""

    def run():
        decode(latents.numpy())
        start = time.perf_counter()
        picture = decode(latents.numpy())
        return picture, time.perf_counter() - start, 0

    return Way(name, run)


def onnxruntime_of(exported):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    return lambda latents: session.run(None, {"latents": latents})[0]


def openvino_of(exported, precision):
    config = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": str(torch.get_num_threads())}
    compiled = openvino.compile_model(openvino.Core().read_model(exported), "CPU", config)
    return lambda latents: compiled([latents])[0]


if __name__ == "__main__":
    main()
