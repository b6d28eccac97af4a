"""The nodes of wgvae for ComfyUI: decode and encode latents within a memory budget.

Copy this folder to ComfyUI's ``custom_nodes``.
"""

from .nodes import NODE_CLASS_MAPPINGS, NODE_DISPLAY_NAME_MAPPINGS

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]
