"""Turns a checkpoint of train.py into the files of the demo, and measures it on unseen pictures.

    python export.py run/checkpoint.pt

Writes, from the root of the repository:
    assets/demo/model/config.json, diffusion_pytorch_model.safetensors
        the model as diffusers saves it, f16
    assets/demo/latents.safetensors
        `latents` [1, 16, 64, 64] f16: (z - shift_factor) * scaling_factor of the demo picture
    assets/demo/selftest.safetensors
        `latents` [1, 16, 16, 16] f16, the middle of the above, and `image` [1, 3, 128, 128] f16,
        made like the next
    tests/fixtures/demo.safetensors
        `image` [1, 3, 512, 512] f16: diffusers' f32 decode of the latents, not clamped
    tools/demo_model/heldout.txt
        the evaluation
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL
from PIL import Image
from safetensors.torch import save_file

import images
from demo_picture import demo_picture
from train import CONFIG, Crops, psnr

ROOT = Path(__file__).resolve().parents[2]
STATISTICS_SEED, HELDOUT_SEED = 2, 1000


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--pictures", type=int, default=42, help="held-out pictures of 512 x 512")
    parser.add_argument("--crops", type=int, default=128, help="held-out crops of 64 and of 128 pixels, each")
    parser.add_argument("--preview", type=Path, help="only write source and decode of the demo picture here, as PNG")
    args = parser.parse_args()

    checkpoint = torch.load(args.checkpoint)
    model = AutoencoderKL(**CONFIG).eval()
    model.load_state_dict(checkpoint["model"])
    source = demo_picture()
    before = rescale(model, tensor(source))
    for p in model.parameters():
        p.copy_(p.half())
    if args.preview:
        decoded = model.decode(model.encode(tensor(source)).latent_dist.mode()).sample
        print(f"demo picture {psnr(mean_square(decoded, tensor(source))):.2f} dB, step {checkpoint['step']}")
        pair = np.concatenate([source, picture(decoded)], axis=1)
        return Image.fromarray(pair).save(args.preview)

    shift, scaling = latent_statistics(model)
    config = dict(_class_name="AutoencoderKL", **CONFIG, scaling_factor=scaling, shift_factor=shift)
    write_model(model, config)
    latents = ((model.encode(tensor(source)).latent_dist.mode() - shift) * scaling).half()
    save_file({"latents": latents.contiguous()}, ROOT / "assets/demo/latents.safetensors")
    decoded = model.decode(latents.float() / scaling + shift).sample
    save_file({"image": decoded.half().contiguous()}, ROOT / "tests/fixtures/demo.safetensors")
    write_selftest(model, latents, config)

    for module in model.decoder.modules():
        if not list(module.children()) or type(module).__name__ in ("ResnetBlock2D", "Attention"):
            module.register_forward_hook(lambda _module, _inputs, output: output.half().float())
    rounded = model.decode(latents.float() / scaling + shift).sample
    for module in model.decoder.modules():
        module._forward_hooks.clear()
    largest = watch(model)
    evaluation = heldout(model, args)
    parameters = sum(p.numel() for p in model.parameters())
    lines = [
        f"weights: {parameters} parameters in f16 (decoder {sum(p.numel() for p in model.decoder.parameters())}); arithmetic: f32",
        f"training: step {checkpoint['step']}, seed {checkpoint['seed']}; scaling_factor {scaling}, shift_factor {shift}",
        f"demo picture, 512 x 512, latents in f16: {psnr(mean_square(decoded, tensor(source))):.2f} dB",
        f"its decode with every activation rounded to f16, against f32: {psnr(((rounded - decoded) ** 2).mean().item()):.2f} dB, "
        f"largest difference {(rounded - decoded).abs().max():.4f} (in -1..1)",
        f"largest |activation| over all held-out pictures: {max(largest.values()):.0f} ({max(largest, key=largest.get)}); "
        f"before the weights were rescaled, for the demo picture alone: {before:.0f}",
        f"largest |scaled latent|: {latents.abs().max():.2f}, std {latents.float().std():.3f}",
        "",
        *evaluation,
    ]
    (Path(__file__).parent / "heldout.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines[:6] + [line for line in lines if line.startswith("held-out")]))


def rescale(model, x):
    """Multiplies the residual stream by powers of two, level by level, so that it fits f16.

    Returns the former peak of the stream.

    Every reader of the stream is a GroupNorm, which cancels a factor. The norms' eps is negligible
    before and after. The up- or downsampling convolution between two levels applies the ratio of
    their factors. `conv1` of a block has a factor of its own, as only `norm2` reads it. A peak of
    about 1024 is 64 times below the largest f16, and keeps conv2's weights well above its
    subnormals.
    """
    encoder, decoder = model.encoder, model.decoder
    levels = []
    for half, blocks, samplers in (
        (encoder, encoder.down_blocks, "downsamplers"),
        (decoder, decoder.up_blocks, "upsamplers"),
    ):
        entries = [half.conv_in] + [getattr(block, samplers)[0].conv for block in list(blocks)[:-1]]
        resnets = [list(block.resnets) for block in blocks]
        with_mid = resnets[-1] if half is encoder else resnets[0]
        with_mid += half.mid_block.resnets
        attentions = [list(half.mid_block.attentions) if r is with_mid else [] for r in resnets]
        levels.append(list(zip(entries, resnets, attentions)))

    largest = watch(model)
    names = {module: name for name, module in model.named_modules()}
    model.decode(model.encode(x).latent_dist.mode())
    for module in model.modules():
        module._forward_hooks.clear()
    for stream in levels:
        previous = 1.0
        for entry, resnets, attentions in stream:
            members = [entry, *resnets, *(r.conv2 for r in resnets), *attentions]
            factor = power_of_two(1024 / max(largest[names[m]] for m in members))
            entry.weight *= factor / previous
            entry.bias *= factor
            for resnet in resnets:
                own = power_of_two(64 / largest[names[resnet.conv1]])
                for p, by in ((resnet.conv1, own), (resnet.conv2, factor)):
                    p.weight *= by
                    p.bias *= by
                if resnet.conv_shortcut is not None:
                    resnet.conv_shortcut.bias *= factor
            for attention in attentions:
                attention.to_out[0].weight *= factor
                attention.to_out[0].bias *= factor
            previous = factor
    return max(largest.values())


def power_of_two(factor):
    """Returns the power of two nearest to `factor`, at most 1: small streams are not grown."""
    return min(1.0, 2.0 ** round(math.log2(factor)))


def latent_statistics(model):
    """Returns the mean and the reciprocal of the standard deviation of latents, over all channels.

    The pictures are used for nothing else.
    """
    rng = np.random.default_rng(STATISTICS_SEED)
    z = torch.cat([model.encode(tensor(images.picture(rng, 256))).latent_dist.mode() for _ in range(64)])
    return round(z.mean().item(), 4), round(1 / z.std().item(), 4)


def write_model(model, config):
    folder = ROOT / "assets/demo/model"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    state = {name: t.half().contiguous() for name, t in model.state_dict().items()}
    save_file(state, folder / "diffusion_pytorch_model.safetensors", metadata={"format": "pt"})


def heldout(model, args):
    """Returns the PSNR of clamped reconstructions from the posterior's mean, as lines of text.

    Every number is a mean over pictures.
    """
    crops = Crops(HELDOUT_SEED, 0)
    crops.pool = [crops.draw() for _ in range(96)]
    lines = []
    for size in (64, 128):
        batch = [tensor(crops.crop(size)) for _ in range(args.crops)]
        lines.append(summary(f"{args.crops} crops of {size} x {size}", [score(model, x) for x in batch]))
    rng = np.random.default_rng(HELDOUT_SEED + 1)
    scores = {}
    for i in range(args.pictures):
        kind = images.KINDS[i % len(images.KINDS)]
        drawn = images._tone(rng, np.asarray(kind(rng, 512), np.float32) / 255)
        scores.setdefault(kind.__name__, []).append(score(model, tensor(drawn)))
    lines.append(summary(f"{args.pictures} pictures of 512 x 512", sum(scores.values(), [])))
    return lines + [f"    {summary(f'{len(s)} of {kind}', s)[10:]}" for kind, s in scores.items()]


def score(model, x):
    return mean_square(model.decode(model.encode(x).latent_dist.mode()).sample, x)


def summary(what, squares):
    db = [psnr(s) for s in squares]
    return (
        f"held-out: {what}: {np.mean(db):.2f} dB mean, {np.median(db):.2f} median, {min(db):.2f} worst; "
        f"{psnr(np.mean(squares)):.2f} dB from the mean square"
    )


def mean_square(decoded, x):
    """Returns the mean squared error of a decode that is clamped to -1..1, as on a screen.

    The least value is the square of a hundredth of a level, so that the PSNR of a flat picture is
    finite.
    """
    return max(((decoded.clamp(-1, 1) - x) ** 2).mean().item(), (0.01 / 127.5) ** 2)


def write_selftest(model, latents, config):
    """Writes the middle of `latents` and diffusers' f32 decode of this middle."""
    middle = latents[..., 24:40, 24:40]
    decoded = model.decode(middle.float() / config["scaling_factor"] + config["shift_factor"]).sample
    tensors = {"latents": middle.contiguous(), "image": decoded.half().contiguous()}
    save_file(tensors, ROOT / "assets/demo/selftest.safetensors")


def watch(module):
    """Returns a dict that forward passes fill with the largest output of each submodule."""
    largest = {}

    def hook(name):
        def keep(_module, _inputs, output):
            if torch.is_tensor(output):
                largest[name] = max(largest.get(name, 0), output.abs().max().item())

        return keep

    for name, child in module.named_modules():
        if name:
            child.register_forward_hook(hook(name))
    return largest


def tensor(image):
    """Converts `[h, w, 3]` u8 to `[1, 3, h, w]` f32 in -1..1."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].float() / 127.5 - 1


def picture(x):
    """Converts `[1, 3, h, w]` to `[h, w, 3]` u8, clamped: the reverse of `tensor`."""
    return ((x[0].clamp(-1, 1) + 1) * 127.5).round().byte().permute(1, 2, 0).numpy()


if __name__ == "__main__":
    main()
