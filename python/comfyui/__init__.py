"""The nodes of wgvae for ComfyUI: a VAE for ComfyUI's own nodes, and others with a budget.

Copy this folder to ComfyUI's ``custom_nodes/wgvae-nodes``. A folder ``wgvae`` there could hide the
package of that name.
"""

from .nodes import NODE_CLASS_MAPPINGS, NODE_DISPLAY_NAME_MAPPINGS

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]
