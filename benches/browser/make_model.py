"""Makes the files of the comparison in browsers: SD 1.5's network with made-up weights.

    pip install torch==2.15.0 diffusers==0.42.1 safetensors numpy onnx onnxscript
    python make_model.py [FOLDER]                 FOLDER: target/bench-browser by default

wgvae and ONNX Runtime read the same weights. No weights are downloaded: they come from the formula
of tests/fixtures/make_fixtures.py, so that they are the same on every machine. The last layer is
scaled so that the picture fills the range without being cut off. Written to FOLDER:

    model/config.json, model/diffusion_pytorch_model.safetensors
        as diffusers saves them, f32, without an encoder: 198 MB
    decoder.onnx
        latents [1, 4, height, width] -> image [1, 3, 8 height, 8 width], about -1..1, with the same
        weights: 198 MB
    latents-<S>.f32
        seeded latents for S pixels a side, [1, 4, S/8, S/8] f32, little-endian
    golden-<S>.f32
        torch's picture of them, [1, 3, S, S] f32, for the sizes that --golden names
    cases.json
        [{ size, flop, latents, golden }]: flop counts convolutions as direct ones, by torch's own
        counter

The scaling factor is part of the graph: both systems get latents in the diffusion model's scale.
"""

import argparse
import copy
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch.utils.flop_counter import FlopCounterMode

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
import make_fixtures  # noqa: E402  (it lies beside the golden decodes that it makes)

# Opset 17 is the newest without GroupNormalization, which onnxruntime-web's WebGPU back end lacks.
# The exporter writes InstanceNormalization instead, as in the published ONNX files of these
# decoders.
OPSET = 17
# Standard deviation of the picture's values at 128x128: one value in a hundred is outside -1..1.
SPREAD = 0.36


class Decoder(torch.nn.Module):
    """The decode of scaled latents to a picture, as in the pipelines of diffusers."""

    def __init__(self, vae):
        super().__init__()
        self.vae = vae

    def forward(self, latents):
        return self.vae.decode(latents / self.vae.config.scaling_factor, return_dict=False)[0]


@torch.no_grad()
def main():
    args = arguments()
    folder = args.folder
    (folder / "model").mkdir(parents=True, exist_ok=True)
    decoder = Decoder(build())
    save_weights(decoder.vae, folder / "model")
    print("wrote model/", flush=True)
    export(decoder, folder / "decoder.onnx")
    print("wrote decoder.onnx", flush=True)
    cases = [write_case(decoder, size, size in args.golden, folder) for size in args.sizes]
    (folder / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")


def arguments():
    def sizes(text):
        return [int(size) for size in text.split(",") if size]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "target" / "bench-browser")
    parser.add_argument("--sizes", type=sizes, default=[64, 128, 256, 512, 768, 1024], help="pixels a side, multiples of 8")
    parser.add_argument("--golden", type=sizes, default=[64, 128, 256], help="those of them that torch decodes, too")
    args = parser.parse_args()
    for size in args.sizes:
        if size <= 0 or size % 8:
            parser.error(f"--sizes: expected multiples of 8, found {size}")
    return args


def write_case(decoder, size, with_golden, folder):
    """Writes the files of one size, and returns its entry in cases.json."""
    latents = seeded_latents(size)
    case = dict(size=size, flop=count_flop(decoder, latents), latents=write(latents, folder / f"latents-{size}.f32"), golden=None)
    if with_golden:
        started = time.time()
        golden = decoder(latents)
        seconds = time.time() - started
        case["golden"] = write(golden, folder / f"golden-{size}.f32")
        print(f"{case['golden']}: torch took {seconds:.1f} s; mean {golden.mean():.2f}, spread {golden.std():.2f}", flush=True)
    return case


def write(tensor, path):
    path.write_bytes(np.ascontiguousarray(tensor.numpy(), dtype="<f4").tobytes())
    return path.name


def count_flop(decoder, latents):
    """Counts two operations for each multiply-add, from shapes alone."""
    shapes = copy.deepcopy(decoder.vae).to("meta")
    with FlopCounterMode(display=False) as counter:
        Decoder(shapes)(latents.to("meta"))
    return counter.get_total_flops()


def build():
    """Returns the f32 decoder of SD 1.5's config: weights by the formula, the last layer scaled."""
    config = json.loads((FIXTURES / "configs" / "sd15.json").read_text())
    vae = make_fixtures.build(config, with_encoder=False).float()
    scale = SPREAD / Decoder(vae)(seeded_latents(128)).std()
    for p in vae.decoder.conv_out.parameters():
        p.mul_(scale)
    return vae


def save_weights(vae, folder):
    config = {k: v for k, v in vae.config.items() if not k.startswith("_") or k == "_class_name"}
    (folder / "config.json").write_text(json.dumps({"_class_name": "AutoencoderKL", **config}, indent=2) + "\n")
    state = {name: t.contiguous() for name, t in vae.state_dict().items()}
    save_file(state, folder / "diffusion_pytorch_model.safetensors", metadata={"format": "pt"})


def seeded_latents(size):
    """Returns latents [1, 4, size / 8, size / 8] f32 with mean 0 and deviation 1."""
    values = make_fixtures.formula("latents", (1, 4, size // 8, size // 8), 0, 3**0.5)
    return torch.from_numpy(np.ascontiguousarray(values))


def export(decoder, path):
    """Writes one ONNX file with open height and width.

    A session fixes them, so that ONNX Runtime can plan for the size.
    """
    torch.onnx.export(
        decoder,
        (seeded_latents(64),),
        str(path),
        input_names=["latents"],
        output_names=["image"],
        dynamic_axes={"latents": {2: "height", 3: "width"}, "image": {2: "image_height", 3: "image_width"}},
        opset_version=OPSET,
        dynamo=False,
    )


if __name__ == "__main__":
    main()
