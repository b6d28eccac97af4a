"""Stand-ins for the tiny models of the Hub that diffusers' tests download.

Diffusers' tests build most components from settings in the test, but fetch tokenizers and a
configuration of T5 from the Hub. Here they are made on this machine. Words get other numbers than
with the originals, so pictures differ from values written into diffusers' tests.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import transformers
from transformers.processing_utils import ProcessorMixin
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

T5 = {
    "vocab_size": 1103,
    "d_model": 32,
    "d_ff": 37,
    "d_kv": 8,
    "num_layers": 5,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}


class Absent(mock.MagicMock):
    """Stands for a component that only the Hub has."""


class NotOffline(OSError):
    """A file of the Hub has no stand-in."""


@contextmanager
def offline(absent: bool = False) -> Iterator[None]:
    """Serves names of the Hub with stand-ins while it is open. Folders are opened as always.

    A name without a stand-in gives an :class:`Absent` if ``absent``, and else raises
    :class:`NotOffline`.
    """
    holders = (
        PreTrainedTokenizerBase,
        ProcessorMixin,
        transformers.AutoConfig,
        transformers.AutoProcessor,
        transformers.AutoTokenizer,
        transformers.PreTrainedModel,
        transformers.PreTrainedConfig,
        transformers.FeatureExtractionMixin,
        transformers.image_processing_base.ImageProcessingMixin,
    )
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, HF_HUB_OFFLINE="1"))
        for holder in holders:
            wrapped = _wrapped(vars(holder)["from_pretrained"].__func__, absent)
            stack.enter_context(mock.patch.object(holder, "from_pretrained", classmethod(wrapped)))
        yield


def _wrapped(original: Callable[..., Any], absent: bool) -> Callable[..., Any]:
    """Returns ``from_pretrained``, which takes a stand-in where the Hub would be asked."""

    @functools.wraps(original)
    def from_pretrained(cls: Any, name: Any = None, *arguments: Any, **keywords: Any) -> Any:
        if name is None or os.path.exists(name):
            return original(cls, name, *arguments, **keywords)
        made = _stand_in(cls, str(name))
        if made is None and not absent:
            raise NotOffline(f"{cls.__name__}: {name} has no stand-in")
        return Absent(name=str(name)) if made is None else made

    return from_pretrained


def _stand_in(cls: Any, name: str) -> Any:
    """Returns the stand-in for ``name``, opened with class ``cls``, or None."""
    tokenizes = "Tokenizer" in cls.__name__
    if tokenizes and "clip" in name:
        return clip_tokenizer()
    if tokenizes and "t5" in name.lower():
        return t5_tokenizer()
    if tokenizes and "Qwen2VL" in name:
        return qwen_tokenizer()
    if tokenizes and "dummy-gemma" in name:
        return gemma_tokenizer()
    if name == "hf-internal-testing/tiny-random-t5":
        config = transformers.T5Config(**T5)
        if cls is transformers.AutoConfig:
            return config
        if issubclass(cls, transformers.PreTrainedModel):
            return cls(config).eval()
    return None


def clip_tokenizer() -> Any:
    """Returns a tokenizer of single bytes, in 514 words."""
    ends = ["<|startoftext|>", "<|endoftext|>"]
    words = [*_bytes(), *(f"{each}</w>" for each in _bytes()), *ends]
    return transformers.CLIPTokenizer(
        vocab=_numbered(words), merges=[], model_max_length=77
    )


def qwen_tokenizer() -> Any:
    """Returns a tokenizer of single bytes, in 259 words."""
    words = [*_bytes(), "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    return transformers.Qwen2Tokenizer(vocab=_numbered(words), merges=[])


def t5_tokenizer() -> Any:
    """Returns a tokenizer of single characters, in about 200 words."""
    letters = [chr(code) for code in range(33, 127)]
    words = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0), ("\u2581", -2.0)]
    return transformers.T5Tokenizer(
        vocab=words + [(letter, -3.0) for letter in letters], model_max_length=512
    )


def gemma_tokenizer() -> Any:
    """Returns a tokenizer of 5 words, as text encoders of diffusers' tests have a table of 8."""
    return transformers.GemmaTokenizer(
        vocab=_numbered(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]), merges=[]
    )


def _numbered(words: list[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate(words)}


def _bytes() -> list[str]:
    """Returns the characters that stand for bytes in tokenizers of GPT-2's kind."""
    from tokenizers.pre_tokenizers import ByteLevel

    return sorted(ByteLevel.alphabet())
