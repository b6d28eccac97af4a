"""Tests of models by name, from a server in this process with the Hub's HTTP interface.

No test connects to the Hub itself.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import wgvae
from conftest import DEMO, Floats
from wgvae import errors

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {name: (DEMO / name).read_bytes() for name in ("config.json", "diffusion_pytorch_model.safetensors")}


def listed(name: str, content: bytes) -> dict[str, object]:
    """Returns the entry of a file in the list of a repository."""
    git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    file: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": git}
    return {**file, "lfs": {"sha256": hashlib.sha256(content).hexdigest()}} if name.endswith(".safetensors") else file


class Hub(BaseHTTPRequestHandler):
    """A server with one repository, someone/a-vae."""

    def do_GET(self) -> None:
        path, _, name = self.path.partition("?")[0].rpartition("/")
        if path == "/api/models/someone/a-vae/revision":
            siblings = [listed(name, content) for name, content in FILES.items()]
            self.answer(200, json.dumps({"sha": COMMIT, "siblings": siblings}).encode())
        elif path.startswith("/someone/a-vae/resolve/") and name in FILES:
            self.answer(200, self.content(name))
        else:
            self.answer(404, b"")

    def content(self, name: str) -> bytes:
        """Returns the content that the server sends for a file."""
        return FILES[name]

    def answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server that replaces the Hub, and an empty cache."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    server.server_close()


def test_a_name_is_a_model(hub: None, vae: wgvae.Vae, latents: Floats, monkeypatch: pytest.MonkeyPatch) -> None:
    with wgvae.Vae.from_pretrained("hf:someone/a-vae") as named:
        assert np.array_equal(named.decode(latents), vae.decode(latents))
    # Now it is in the cache.
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    wgvae.Vae.from_pretrained("hf:someone/a-vae@main").close()


def test_content_other_than_listed_is_an_error(hub: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Hub, "content", lambda self, name: FILES[name][:-1] + bytes([FILES[name][-1] ^ 1]))
    with pytest.raises(errors.FileError, match="config.json: expected git blob [0-9a-f]{40} as the hub lists it, found"):
        wgvae.Vae.from_pretrained("hf:someone/a-vae")
    assert not [path for path in tmp_path.rglob("*") if path.name in FILES]


def test_what_is_not_there_is_an_error(hub: None) -> None:
    with pytest.raises(errors.FileError, match="no such repository"):
        wgvae.Vae.from_pretrained("hf:nobody/nothing")
    with pytest.raises(errors.FormatError, match="no such file or folder"):
        wgvae.Vae.from_pretrained("hf:someone/a-vae/vae")
    with pytest.raises(errors.InputError, match="hf:owner/name"):
        wgvae.Vae.from_pretrained("hf:someone")
