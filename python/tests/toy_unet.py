"""A small diffusion model with random weights, for pipelines."""

from __future__ import annotations

from typing import Any


def toy_unet(**more: Any) -> Any:
    """Returns a UNet for latents of 4 channels and 8x8, with the same weights each time."""
    import diffusers
    import torch

    torch.manual_seed(0)
    return diffusers.UNet2DConditionModel(
        block_out_channels=(32, 64),
        layers_per_block=1,
        sample_size=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=8,
        **more,
    )
