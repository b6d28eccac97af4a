"""The nodes for ComfyUI, against its documented protocol. ComfyUI itself is not here: what nodes ask of it are stand-ins."""

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
from conftest import DEMO, ROOT, normal

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.extras

import wgvae  # noqa: E402


class Interrupted(Exception):
    """What ComfyUI raises where the user has stopped a prompt."""


class Comfy:
    """What ComfyUI was told."""

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
    """Imported as ComfyUI imports a folder of custom_nodes."""
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


def test_decode_and_encode(nodes: dict[str, Any], comfy: Comfy) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32")
    latents = normal(1, 2, 16, 6, 5)
    images = call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(latents)}, vae=vae)
    assert images.shape == (2, 48, 40, 3) and images.dtype == torch.float32
    assert 0 <= images.min() and images.max() <= 1
    pictures = vae.decode(latents, unscaled=True)
    assert np.abs(images.numpy() * 255 - pictures).max() <= 0.5 + 1e-3
    assert comfy.freed == [vae.plan(48, 40, unscaled=True).peak_bytes] and comfy.progress[-1] == 1000
    # A larger picture, with alpha, loses its edges.
    padded = torch.nn.functional.pad(images, (0, 1, 3, 2, 1, 2))
    encoded = call(nodes, "WgvaeEncode", pixels=padded, vae=vae)["samples"]
    assert encoded.shape == (2, 16, 6, 5)
    floats = (padded[:, 1:49, 2:42, :3].movedim(-1, 1) * 2 - 1).contiguous()
    assert np.array_equal(encoded.numpy(), vae.encode(floats, unscaled=True))


def test_budget_and_stop(nodes: dict[str, Any], comfy: Comfy) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32")
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
