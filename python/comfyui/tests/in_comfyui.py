"""Compares wgvae's VAE with ComfyUI's own, inside ComfyUI and through its HTTP API.

    COMFYUI=path/to/ComfyUI python python/comfyui/tests/in_comfyui.py [family ...]

COMFYUI is a checkout whose requirements are installed, beside wgvae and pytest, for the Python that
runs this script. The script downloads nothing: models have real widths, as ComfyUI knows no others,
and random weights, 2 GB in a temporary folder. ComfyUI runs on the CPU, and so does wgvae unless
WGVAE_DEVICE is "gpu". Each row of the output is one node, with the largest difference as a share of
the largest value. The exit code is 1 if one exceeds 3e-5.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python" / "tests"))
from conftest import toy  # noqa: E402

TOLERANCE = 3e-5


@dataclass(frozen=True)
class Family:
    """A kind of model, and shapes for it."""

    keys: str
    """Name of its tensors' list in tests/fixtures/keys."""
    config: str
    """Name of its config.json in tests/fixtures/configs."""
    latents: tuple[str, ...]
    """Shapes to decode."""
    images: tuple[str, ...]
    """Shapes to encode, ``b,h,w``. The first one has sides that fill latents."""
    video: bool = False


FAMILIES = {
    "sd15": Family("sd15.ldm", "sd15", ("2,4,12,8",), ("2,64,96", "1,77,133")),
    # The network of SD 1.5.
    "sdxl": Family("sd15.ldm", "sdxl", ("1,4,16,8",), ("1,96,64",)),
    "sd3": Family("sd3.ldm", "sd3", ("1,16,8,12",), ("1,64,96",)),
    "flux1": Family("flux1.ae_safetensors", "flux1", ("1,16,8,12",), ("1,64,96", "1,67,70")),
    "taesd": Family("taesd", "taesd", ("2,4,12,8",), ("2,64,96", "1,77,133")),
    # The network of Wan 2.1, with latents of one frame.
    "qwen_image": Family("wan21.original", "qwen_image", ("2,16,1,8,6",), ("1,64,48", "1,67,70")),
    "wan21": Family(
        "wan21.original",
        "wan21",
        ("1,16,1,8,6", "2,16,1,4,6", "1,16,3,8,6"),
        ("1,64,48", "5,64,48", "6,36,41"),
        video=True,
    ),
    # 700 million weights: only if it is named.
    "wan22": Family(
        "wan22.original",
        "wan22_ti2v_5b",
        ("1,48,1,4,6", "1,48,2,4,6"),
        ("1,64,96", "5,64,96"),
        video=True,
    ),
}
DEFAULT = [name for name in FAMILIES if name != "wan22"]

# Masks that nodes must return, by the last part of their names.
MASKS = {
    "VAEEncodeForInpaint": {"noise_mask"},
    "InpaintModelConditioning": {"noise_mask", "concat_mask"},
    "WanImageToVideo": {"concat_mask"},
    "WanFirstLastFrameToVideo": {"concat_mask"},
    "Wan22ImageToVideoLatent": {"noise_mask"},
}

Node = dict[str, Any]
Graph = dict[str, Node]


class Comfy:
    """ComfyUI, started with folders of its own."""

    def __init__(self, checkout: Path, base: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        command = [sys.executable, str(checkout / "main.py"), "--cpu", "--fp32-vae"]
        command += ["--port", port, "--base-directory", str(base), "--disable-api-nodes"]
        command += ["--front-end-root", str(base / "web")]
        self._log = (base / "log").open("w+")
        self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)

    def __enter__(self) -> Comfy:
        for _ in range(240):
            if self._process.poll() is not None:
                break
            try:
                self.get("/system_stats")
                return self
            except urllib.error.URLError:
                time.sleep(0.5)
        self.__exit__()
        raise SystemExit("ComfyUI did not start: " + self.log()[-3000:])

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.address + path) as answer:
            return json.load(answer)

    def post(self, path: str, content: Any) -> bytes:
        body = json.dumps(content).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, body, headers)
        with urllib.request.urlopen(request) as answer:
            found: bytes = answer.read()
        return found

    def run(self, graph: Graph) -> dict[str, Any]:
        """Runs a graph and returns what its output nodes tell, by node."""
        try:
            told = json.loads(self.post("/prompt", {"prompt": graph}))
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error
        name = told["prompt_id"]
        while name not in (history := self.get(f"/history/{name}")):
            time.sleep(0.1)
        entry = history[name]
        if entry["status"]["status_str"] != "success":
            failure = entry["status"]["messages"][-1][1]
            raise RuntimeError(f"{failure.get('node_type')}: {failure.get('exception_message')}")
        outputs: dict[str, Any] = entry["outputs"]
        return outputs


def node(kind: str, **inputs: Any) -> Node:
    return {"class_type": kind, "inputs": inputs}


@contextmanager
def folders(names: list[str]) -> Iterator[Path]:
    """Makes ComfyUI's folders, with both packs of nodes and the models ``names``."""
    with tempfile.TemporaryDirectory(prefix="wgvae-comfyui-") as path:
        base = Path(path)
        for folder in ("web", "user", "input", "output", "temp"):
            (base / folder).mkdir()
        pack = base / "custom_nodes" / "wgvae-nodes"
        source = ROOT / "python" / "comfyui"
        shutil.copytree(source, pack, ignore=shutil.ignore_patterns("tests", "__pycache__"))
        shutil.copytree(source / "tests" / "probe", base / "custom_nodes" / "probe")
        for folder in ("vae", "checkpoints", "vae_approx"):
            (base / "models" / folder).mkdir(parents=True)
        for name in names:
            write(base / "models", name)
        yield base


def write(models: Path, name: str) -> None:
    """Writes a model with random weights, as ComfyUI wants it."""
    family = FAMILIES[name]
    if name == "taesd":
        for half in ("encoder", "decoder"):
            target = models / "vae_approx" / f"taesd_{half}.safetensors"
            weights(models, f"taesd.upstream_{half}", family.config, target)
        return
    target = models / "vae" / f"{name}.safetensors"
    weights(models, family.keys, family.config, target)
    if name == "sd15":
        tensors = {f"first_stage_model.{key}": value for key, value in load_file(target).items()}
        save_file(tensors, models / "checkpoints" / f"{name}.safetensors")


def weights(models: Path, keys: str, config: str, target: Path) -> None:
    folder = models / "made"
    folder.mkdir()
    toy(folder, keys, config, 1, 1, {})
    (folder / "diffusion_pytorch_model.safetensors").rename(target)
    shutil.rmtree(folder)


def loaders(name: str) -> Graph:
    """Returns ComfyUI's loader and ours for a model."""
    device = os.environ.get("WGVAE_DEVICE", "cpu")
    ours = "vae_approx/taesd" if name == "taesd" else f"{name}.safetensors"
    core = "taesd" if name == "taesd" else ours
    return {
        "core": node("VAELoader", vae_name=core),
        "ours": node("WgvaeLoader", vae_name=ours, precision="f32", device=device),
    }


def workflows(name: str) -> Iterator[tuple[str, Node, Graph]]:
    """Returns titles, nodes without their VAE, and the nodes before them."""
    family = FAMILIES[name]
    tiles = {"tile_size": 512, "overlap": 64, "temporal_size": 64, "temporal_overlap": 8}
    for latents in family.latents:
        inputs = {"in": node("ProbeInputs", latents=latents, images="1,8,8", seed=1)}
        yield f"VAEDecode {latents}", node("VAEDecode", samples=["in", 0]), inputs
        tiled = node("VAEDecodeTiled", samples=["in", 0], **tiles)
        yield f"VAEDecodeTiled {latents}", tiled, inputs
    for images in family.images:
        inputs = {"in": node("ProbeInputs", latents="1,4,1,1", images=images, seed=2)}
        yield f"VAEEncode {images}", node("VAEEncode", pixels=["in", 1]), inputs
        tiled = node("VAEEncodeTiled", pixels=["in", 1], **tiles)
        yield f"VAEEncodeTiled {images}", tiled, inputs
    inputs = {"in": node("ProbeInputs", latents="1,4,1,1", images=family.images[0], seed=3)}
    conditioning = {"positive": ["in", 3], "negative": ["in", 3]}
    if not family.video:
        seen = {"pixels": ["in", 1], "mask": ["in", 2]}
        # ComfyUI's node fails with its own VAE for latents of frames.
        if name != "qwen_image":
            inpaint = node("VAEEncodeForInpaint", grow_mask_by=6, **seen)
            yield "VAEEncodeForInpaint", inpaint, inputs
        inpaint = node("InpaintModelConditioning", noise_mask=True, **seen, **conditioning)
        yield "InpaintModelConditioning", inpaint, inputs
    if name == "sd15":
        controlled = {**inputs, "control": node("ProbeControlNet")}
        whole = {"strength": 1.0, "start_percent": 0.0, "end_percent": 1.0, **conditioning}
        given = {"control_net": ["control", 0], "image": ["in", 1], **whole}
        for kind in ("ControlNetApplyAdvanced", "ControlNetApplySD3"):
            yield kind, node(kind, **given), controlled
    if name == "wan21":
        sizes = {"width": 64, "height": 48, "length": 9, "batch_size": 1}
        to_video = node("WanImageToVideo", start_image=["in", 1], **sizes, **conditioning)
        yield "WanImageToVideo", to_video, inputs
        both = {"start_image": ["in", 1], "end_image": ["in", 1]}
        between = node("WanFirstLastFrameToVideo", **both, **sizes, **conditioning)
        yield "WanFirstLastFrameToVideo", between, inputs
        phantom = node("WanPhantomSubjectToVideo", images=["in", 1], **sizes, **conditioning)
        yield "WanPhantomSubjectToVideo", phantom, inputs
    if name == "wan22":
        sizes = {"width": 96, "height": 64, "length": 5, "batch_size": 1}
        to_video = node("Wan22ImageToVideoLatent", start_image=["in", 1], **sizes)
        yield "Wan22ImageToVideoLatent", to_video, inputs


def compare(comfy: Comfy, base: Path, title: str, pair: list[Node], before: Graph) -> bool:
    """Runs two nodes and prints how much their outputs differ. Returns True if too much."""
    graph = {**before, "a": pair[0], "b": pair[1]}
    # Every output of a node, such as positive, negative and latent.
    count = len(comfy.get(f"/object_info/{pair[0]['class_type']}").popitem()[1]["output"])
    for side in "ab":
        for index in range(count):
            saved = f"{side}{index}"
            graph[saved] = node("ProbeSave", value=[side, index], name=saved)
    try:
        comfy.run(graph)
    except RuntimeError as error:
        print(f"  {title:36} FAILED {error}")
        return True
    worst, tensors, missing = 0.0, 0, set(MASKS.get(title, ()))
    for index in range(count):
        a, b = (load_file(base / "output" / f"{side}{index}.safetensors") for side in "ab")
        if a.keys() != b.keys() or any(a[key].shape != b[key].shape for key in a):
            shapes = [{key: list(each.shape) for key, each in side.items()} for side in (a, b)]
            print(f"  {title:36} SHAPES {shapes[0]} {shapes[1]}")
            return True
        for key, expected in a.items():
            tensors += 1
            if (last := key.rpartition(".")[2]).endswith("_mask"):
                missing.discard(last)
                # No VAE changes a mask.
                if not torch.equal(expected, b[key]):
                    print(f"  {title:36} OTHER MASK {key}")
                    return True
            largest = max(float(expected.abs().max()), 1e-9)
            worst = max(worst, float((b[key].float() - expected.float()).abs().max()) / largest)
    if missing:
        print(f"  {title:36} WITHOUT {', '.join(sorted(missing))}")
        return True
    verdict = "" if worst <= TOLERANCE else "  TOO MUCH"
    print(f"  {title:36} {worst:.1e} ({tensors} tensors){verdict}", flush=True)
    return worst > TOLERANCE


def nodes_of_both(comfy: Comfy, base: Path, name: str) -> int:
    """Compares each of ComfyUI's nodes with its own VAE and with ours. Returns the failures."""
    failures = 0
    for title, each, before in workflows(name):
        pair = [
            {**each, "inputs": {**each["inputs"], "vae": [side, 0]}} for side in ("core", "ours")
        ]
        failures += compare(comfy, base, title, pair, {**loaders(name), **before})
    return failures


def own_nodes(comfy: Comfy, base: Path, name: str) -> int:
    """Compares our nodes with ComfyUI's. Returns the failures."""
    family, failures = FAMILIES[name], 0
    shapes = {"latents": family.latents[-1], "images": family.images[-1]}
    before = {**loaders(name), "in": node("ProbeInputs", seed=4, **shapes)}
    for core, ours, given in (
        ("VAEDecode", "WgvaeDecode", {"samples": ["in", 0]}),
        ("VAEEncode", "WgvaeEncode", {"pixels": ["in", 1]}),
    ):
        for side, title in (("ours", ours), ("core", f"{ours}, ComfyUI's VAE")):
            pair = [node(core, vae=["core", 0], **given), node(ours, vae=[side, 0], **given)]
            failures += compare(comfy, base, title, pair, before)
    # So large that nothing is averaged, and that one tile holds the image.
    for ours, sizes in (("WgvaePreview", {"max_side": 1024}), ("WgvaeDecodeTiled", {"rule": "cosine"})):
        if not family.video:
            pair = [
                node("VAEDecode", samples=["in", 0], vae=["core", 0]),
                node(ours, vae=["ours", 0], samples=["in", 0], **sizes),
            ]
            failures += compare(comfy, base, ours, pair, before)
    return failures


def checkpoint_and_save(comfy: Comfy, base: Path) -> int:
    """Compares a VAE in a checkpoint, and files that VAESave writes. Returns the failures."""
    before = loaders("sd15")
    before["ours"]["inputs"]["vae_name"] = "checkpoints/sd15.safetensors"
    before["in"] = node("ProbeInputs", latents="1,4,8,8", images="1,64,64", seed=5)
    pair = [node("VAEDecode", samples=["in", 0], vae=[side, 0]) for side in ("core", "ours")]
    failures = int(compare(comfy, base, "VAE of a checkpoint", pair, before))
    saves = {
        f"{side} saved": node("VAESave", vae=[side, 0], filename_prefix=side)
        for side in ("core", "ours")
    }
    comfy.run({"core": before["core"], "ours": before["ours"], **saves})
    a, b = (load_file(base / "output" / f"{side}_00001_.safetensors") for side in ("core", "ours"))
    same = a.keys() == b.keys() and all(bool((a[key] == b[key]).all()) for key in a)
    print(f"  {'VAESave':36} {'the same tensors' if same else 'OTHER TENSORS'} ({len(b)})")
    return failures + (not same)


def eviction(comfy: Comfy) -> int:
    """Checks that ComfyUI evicts our VAE when asked, and that it works again. Returns failures."""
    before = {"ours": loaders("sd15")["ours"]}
    before["in"] = node("ProbeInputs", latents="1,4,8,8", images="1,8,8", seed=6)

    def memory(seed: int, decode: bool) -> tuple[int, bool]:
        graph = {**before, "told": node("ProbeMemory", vae=["ours", 0], seed=seed)}
        if decode:
            graph["in"] = node("ProbeInputs", latents="1,4,8,8", images="1,8,8", seed=seed)
            graph["images"] = node("VAEDecode", samples=["in", 0], vae=["ours", 0])
            graph["told"]["inputs"]["after"] = ["images", 0]
        told = comfy.run(graph)["told"]
        return told["held"][0], told["listed"][0]

    used, listed = memory(7, True)
    comfy.post("/free", {"unload_models": True})
    time.sleep(3)
    freed, still_listed = memory(8, False)
    again, listed_again = memory(9, True)
    good = used > 0 and listed and freed == 0 and not still_listed and again > 0 and listed_again
    told = f"{used >> 20} MiB, after /free {freed >> 20} MiB, decoded again {again >> 20} MiB"
    print(f"  {'memory':36} {told}{'' if good else '  WRONG'}")
    return int(not good)


def refusals(comfy: Comfy) -> int:
    """Checks what users are told if an input is wrong. Returns the failures."""
    before = loaders("sd15")
    before["in"] = node("ProbeInputs", latents="1,4,32,32", images="1,8,8", seed=10)
    before["ours"]["inputs"]["memory_budget"] = "1MiB"
    failures = 0
    before["passed"] = node("ProbePass", vae=["core", 0])
    for kind, side, message in (
        ("VAEDecode", "ours", "the smallest budget found is"),
        ("WgvaeDecode", "passed", "use 'Load VAE (wgvae)' with the same file"),
    ):
        asked = {"at": node(kind, samples=["in", 0], vae=[side, 0])}
        try:
            comfy.run({**before, **asked, "save": node("ProbeSave", value=["at", 0], name="none")})
            told = "nothing"
        except RuntimeError as error:
            told = str(error).strip()
        print(f"  {told}{'' if message in told else '  WRONG'}")
        failures += message not in told
    return failures


def plan(comfy: Comfy) -> int:
    """Prints the text of our node for plans. Returns the failures."""
    sizes = {"width": 1024, "height": 1024, "work": "decode"}
    ours = loaders("sd15")["ours"]
    told = comfy.run({"ours": ours, "plan": node("WgvaePlan", vae=["ours", 0], **sizes)})
    print(f"  {told['plan']['text'][0]}")
    return int("MiB" not in told["plan"]["text"][0])


def main() -> int:
    checkout = os.environ.get("COMFYUI")
    names = sys.argv[1:] or DEFAULT
    if not checkout or not (Path(checkout) / "main.py").is_file():
        print("COMFYUI: expected a checkout of ComfyUI, found", checkout or "nothing")
        return 2
    if unknown := [name for name in names if name not in FAMILIES]:
        print(f"family: expected one of {', '.join(FAMILIES)}, found {', '.join(unknown)}")
        return 2
    failures = 0
    with folders(names) as base, Comfy(Path(checkout), base) as comfy:
        print("ComfyUI", comfy.get("/system_stats")["system"]["comfyui_version"])
        for name in names:
            print(name)
            failures += nodes_of_both(comfy, base, name) + own_nodes(comfy, base, name)
        if "sd15" in names:
            print("others")
            failures += checkpoint_and_save(comfy, base) + eviction(comfy)
            failures += refusals(comfy) + plan(comfy)
        if failures:
            print(comfy.log()[-4000:])
    print(f"{failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
