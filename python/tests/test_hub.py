"""Models by name, from a server in this process that speaks the hub's HTTP interface. The hub itself is never asked."""

from __future__ import annotations

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


class Hub(BaseHTTPRequestHandler):
    """A hub with one repository, someone/a-vae."""

    def do_GET(self) -> None:
        path, _, name = self.path.partition("?")[0].rpartition("/")
        if path == "/api/models/someone/a-vae/revision":
            siblings = [{"rfilename": name, "size": len(content)} for name, content in FILES.items()]
            self.answer(200, json.dumps({"sha": COMMIT, "siblings": siblings}).encode())
        elif path.startswith("/someone/a-vae/resolve/") and name in FILES:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            whole = FILES[name]
            part = whole[int(first) : int(last) + 1 if last else None]
            facts = {"ETag": f'"{len(whole)}"', "X-Repo-Commit": COMMIT, "Content-Range": f"bytes {first}-{int(first) + len(part) - 1}/{len(whole)}"}
            self.answer(206, part, facts)
        else:
            self.answer(404, b"")

    def answer(self, status: int, content: bytes, facts: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(facts or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The only hub there is, and an empty cache."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    server.server_close()


def test_a_name_is_a_model(hub: None, vae: wgvae.Vae, latents: Floats, monkeypatch: pytest.MonkeyPatch) -> None:
    with wgvae.Vae.from_pretrained("hf:someone/a-vae") as named:
        assert np.array_equal(named.decode(latents), vae.decode(latents))
    # It is in the cache.
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    wgvae.Vae.from_pretrained("hf:someone/a-vae@main").close()


def test_what_is_not_there_is_an_error(hub: None) -> None:
    with pytest.raises(errors.FileError, match="no such repository"):
        wgvae.Vae.from_pretrained("hf:nobody/nothing")
    with pytest.raises(errors.FormatError, match="no such file or folder"):
        wgvae.Vae.from_pretrained("hf:someone/a-vae/vae")
    with pytest.raises(errors.InputError, match="hf:owner/name"):
        wgvae.Vae.from_pretrained("hf:someone")
