"""Tests of the nodes for ComfyUI against its documented protocol.

ComfyUI itself is not installed: stand-ins replace its modules.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import DEMO, ROOT, Floats, normal

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.extras

import wgvae  # noqa: E402


class Interrupted(Exception):
    """The exception that ComfyUI raises when the user has stopped a prompt."""


class Comfy:
    """A stand-in for ComfyUI that records calls."""

    def __init__(self) -> None:
        self.freed: list[int] = []
        self.progress: list[int] = []
        self.interrupted = False

    def free_memory(self, memory_required: int, device: object) -> None:
        self.freed.append(memory_required)

    def throw_exception_if_processing_interrupted(self) -> None:
        if self.interrupted:
            raise Interrupted

    def bar(self, total: int) -> Any:
        return SimpleNamespace(update_absolute=lambda value, total=None: self.progress.append(value))


@pytest.fixture
def comfy(monkeypatch: pytest.MonkeyPatch) -> Comfy:
    told = Comfy()
    parts: dict[str, dict[str, Any]] = {
        "comfy": {},
        "comfy.model_management": {
            "free_memory": told.free_memory,
            "get_torch_device": lambda: torch.device("cpu"),
            "throw_exception_if_processing_interrupted": told.throw_exception_if_processing_interrupted,
        },
        "comfy.utils": {"ProgressBar": told.bar},
        "folder_paths": {
            "get_filename_list": lambda kind: ["demo.safetensors"],
            "get_full_path_or_raise": lambda kind, name: str(DEMO),
        },
    }
    modules = {name: ModuleType(name) for name in parts}
    for name, content in parts.items():
        vars(modules[name]).update(content)
        monkeypatch.setitem(sys.modules, name, modules[name])
    vars(modules["comfy"]).update(model_management=modules["comfy.model_management"], utils=modules["comfy.utils"])
    return told


@pytest.fixture
def nodes(comfy: Comfy) -> Iterator[dict[str, Any]]:
    """The nodes, imported as ComfyUI imports a folder of custom_nodes."""
    folder = ROOT / "python" / "comfyui"
    spec = importlib.util.spec_from_file_location("custom_nodes_wgvae", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["custom_nodes_wgvae"] = module
    spec.loader.exec_module(module)
    yield module.NODE_CLASS_MAPPINGS
    for name in [name for name in sys.modules if name.startswith("custom_nodes_wgvae")]:
        del sys.modules[name]


def test_protocol(nodes: dict[str, Any]) -> None:
    display = sys.modules["custom_nodes_wgvae"].NODE_DISPLAY_NAME_MAPPINGS
    assert nodes.keys() == display.keys()
    for node in nodes.values():
        inputs = node.INPUT_TYPES()
        assert inspect.ismethod(node.INPUT_TYPES) and inputs.keys() <= {"required", "optional", "hidden"}
        assert isinstance(node.RETURN_TYPES, tuple) and all(isinstance(kind, str) for kind in node.RETURN_TYPES)
        assert isinstance(node.CATEGORY, str)
        parameters = inspect.signature(getattr(node(), node.FUNCTION)).parameters
        assert list(parameters) == [*inputs["required"], *inputs.get("optional", {})]
        for name, declared in {**inputs["required"], **inputs.get("optional", {})}.items():
            assert isinstance(declared, tuple) and isinstance(declared[0], (str, list)), name
            assert (parameters[name].default is inspect.Parameter.empty) == (name in inputs["required"])


def call(nodes: dict[str, Any], name: str, **inputs: Any) -> Any:
    node = nodes[name]
    results = getattr(node(), node.FUNCTION)(**inputs)
    assert isinstance(results, tuple) and len(results) == len(node.RETURN_TYPES)
    return results[0]


@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_decode_and_encode(nodes: dict[str, Any], comfy: Comfy, device: str) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device=device)
    assert vae.device == device
    latents = normal(1, 2, 16, 6, 5)
    images = call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(latents)}, vae=vae)
    assert images.shape == (2, 48, 40, 3) and images.dtype == torch.float32
    assert 0 <= images.min() and images.max() <= 1
    pictures = vae.decode(latents, unscaled=True)
    assert np.abs(images.numpy() * 255 - pictures).max() <= 0.5 + 1e-3
    # The CPU's memory is none that ComfyUI has.
    assert comfy.freed == ([vae.plan(48, 40, unscaled=True).peak_bytes] if device == "gpu" else [])
    assert comfy.progress[-1] == 1000
    # A larger picture with alpha is cropped at its edges.
    padded = torch.nn.functional.pad(images, (0, 1, 3, 2, 1, 2))
    encoded = call(nodes, "WgvaeEncode", pixels=padded, vae=vae)["samples"]
    assert encoded.shape == (2, 16, 6, 5)
    floats = (padded[:, 1:49, 2:42, :3].movedim(-1, 1) * 2 - 1).contiguous()
    assert np.array_equal(encoded.numpy(), vae.encode(floats, unscaled=True))


def test_budget_and_stop(nodes: dict[str, Any], comfy: Comfy) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="gpu")
    samples = {"samples": torch.from_numpy(normal(1, 1, 16, 6, 5))}
    whole = call(nodes, "WgvaeDecode", samples=samples, vae=vae)
    within = call(nodes, "WgvaeDecode", samples=samples, vae=vae, memory_budget="12MiB")
    assert torch.equal(whole, within) and comfy.freed[-1] <= 12 << 20
    comfy.interrupted = True
    with pytest.raises(Interrupted):
        call(nodes, "WgvaeDecode", samples=samples, vae=vae)


def test_clip(nodes: dict[str, Any], wan: Path) -> None:
    vae = wgvae.Vae.from_pretrained(wan)
    latents = normal(2, 1, 16, 2, 2, 3)
    images = call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(latents)}, vae=vae)
    frames = vae.clip().decode(latents, unscaled=True)
    assert frames is not None and images.shape == (5, 16, 24, 3)
    assert np.abs(images.numpy() * 255 - frames).max() <= 0.5 + 1e-3


def test_4d_latents_of_a_video_model(nodes: dict[str, Any], wan_vae: wgvae.Vae) -> None:
    latents = normal(2, 2, 16, 2, 3)
    images = call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(latents)}, vae=wan_vae)
    assert images.shape == (2, 16, 24, 3)


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (2, 1), (4, 1), (5, 5), (6, 5), (8, 5), (9, 9)])
def test_encodes_a_clip(nodes: dict[str, Any], comfy: Comfy, wan_vae: wgvae.Vae, count: int, kept: int) -> None:
    """All images are one clip, as in ComfyUI.

    Last frames that fill no frame of latents are left out.
    """
    pixels = torch.from_numpy(normal(4, count, 19, 24, 3)).sigmoid()
    encoded = call(nodes, "WgvaeEncode", pixels=pixels, vae=wan_vae)["samples"]
    assert encoded.shape == (1, 16, (kept + 3) // 4, 2, 3)
    frames = (pixels[:kept, 1:17].permute(3, 0, 1, 2)[None] * 2 - 1).contiguous()
    assert np.array_equal(encoded.numpy(), wan_vae.clip().encode(frames, unscaled=True))
    assert comfy.freed == [wan_vae.clip().plan(16, 24, encode=True, unscaled=True).peak_bytes]


def test_one_frame_is_one_picture(nodes: dict[str, Any], wan_vae: wgvae.Vae) -> None:
    pixels = torch.from_numpy(normal(4, 1, 16, 24, 3)).sigmoid()
    encoded = call(nodes, "WgvaeEncode", pixels=pixels, vae=wan_vae)["samples"]
    picture = wan_vae.encode(pixels.movedim(-1, 1) * 2 - 1, unscaled=True)
    assert np.abs(encoded[:, :, 0].numpy() - picture).max() <= 1e-5 * np.abs(picture).max()


def test_encodes_a_clip_of_seedvr(nodes: dict[str, Any], seedvr: Path) -> None:
    with wgvae.Vae.from_pretrained(seedvr, family="seedvr2") as vae:
        pixels = torch.from_numpy(normal(5, 6, 16, 16, 3)).sigmoid()
        encoded = call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"]
        assert encoded.shape == (1, 16, 2, 2, 2)
        images = call(nodes, "WgvaeDecode", samples={"samples": encoded}, vae=vae)
        assert images.shape == (5, 16, 16, 3)


def test_a_tiny_autoencoder_takes_any_number_of_frames(nodes: dict[str, Any], taehv: Path) -> None:
    with wgvae.Vae.from_pretrained(taehv, family="taew2_1", device="cpu") as vae:
        pixels = torch.from_numpy(normal(6, 6, 16, 16, 3)).sigmoid()
        encoded = call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"]
        assert encoded.shape == (1, 16, 2, 2, 2)
        frames = (pixels.permute(3, 0, 1, 2)[None] * 2 - 1).contiguous()
        filled = torch.cat([frames, frames[:, :, -1:], frames[:, :, -1:]], dim=2)
        assert np.array_equal(encoded.numpy(), vae.clip().encode(filled, unscaled=True))


def test_opacity_and_layers(nodes: dict[str, Any], layered: Path) -> None:
    latents = normal(8, 1, 16, 3, 2, 3)
    with wgvae.Vae.from_pretrained(layered, device="cpu") as vae:
        images = call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(latents)}, vae=vae)
        assert images.shape == (3, 16, 24, 4)
        assert np.abs(images.numpy() * 255 - vae.decode(latents, unscaled=True)).max() <= 0.5 + 1e-3
        # ComfyUI's latents of this model have an axis for the frame.
        encoded = call(nodes, "WgvaeEncode", pixels=images, vae=vae)["samples"]
        assert encoded.shape == (3, 16, 1, 2, 3)
        assert np.array_equal(encoded[:, :, 0].numpy(), vae.encode(images.movedim(-1, 1) * 2 - 1, unscaled=True))
        opaque = images.clone()
        opaque[..., 3] = 1
        assert torch.equal(*(call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"] for pixels in (opaque, images[..., :3])))


def close(found: Floats, wanted: Floats) -> None:
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize(("family", "scale", "shift"), [("taesd3", 1.5305, 0.0609), ("taef1", 0.3611, 0.1159)])
def test_tiny_autoencoders(nodes: dict[str, Any], taesd3: Path, family: str, scale: float, shift: float) -> None:
    """A tiny autoencoder gets (own - shift) * scale, as in ComfyUI.

    ``own`` are latents in the scale of the big VAE.
    """
    diffusers = pytest.importorskip("diffusers")
    judge = diffusers.AutoencoderTiny.from_pretrained(taesd3)
    own = torch.from_numpy(normal(6, 2, 16, 3, 4)) * 3
    pixels = torch.from_numpy(normal(7, 1, 24, 32, 3)).sigmoid()
    with torch.no_grad():
        wanted = judge.decode((own - shift) * scale).sample
        latents = judge.encode(pixels.movedim(-1, 1) * 2 - 1).latents / scale + shift
    with wgvae.Vae.from_pretrained(taesd3, family=family, precision="f32") as vae:
        images = call(nodes, "WgvaeDecode", samples={"samples": own}, vae=vae)
        close(images.numpy(), (wanted.movedim(1, -1) / 2 + 0.5).clamp(0, 1).numpy())
        close(vae.decode(own, unscaled=True, output="float"), wanted.numpy())
        close(call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"].numpy(), latents.numpy())


def test_tiny_autoencoders_need_a_family_for_the_own_latents_of_a_vae(nodes: dict[str, Any], taesd3: Path) -> None:
    own = normal(6, 1, 16, 3, 4)
    with wgvae.Vae.from_pretrained(taesd3, precision="f32") as vae:
        assert vae.decode(own).shape == (1, 24, 32, 3)
        with pytest.raises(wgvae.errors.InputError, match="taesd3, taef1"):
            call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(own)}, vae=vae)
        with pytest.raises(wgvae.errors.InputError, match="taesd3, taef1"):
            call(nodes, "WgvaeEncode", pixels=torch.zeros(1, 24, 32, 3), vae=vae)
