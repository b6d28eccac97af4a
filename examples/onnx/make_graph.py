"""Makes step.onnx, the diffusion model of this example.

It is one Euler step from noise towards given latents.

    pip install onnx
    python make_graph.py

A real pipeline has a network here that predicts the direction. The rest of the pipeline is the
same.
"""

from pathlib import Path

import onnx

# The size is left open. `strength` is the share of the remaining way that the step takes.
GRAPH = """
<ir_version: 8, opset_import: ["": 17]>
euler_step (
  float[1, channels, height, width] sample,
  float[1, channels, height, width] target,
  float strength
) => (float[1, channels, height, width] next) {
  direction = Sub(target, sample)
  step = Mul(direction, strength)
  next = Add(sample, step)
}
"""

model = onnx.parser.parse_model(GRAPH)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, Path(__file__).parent / "step.onnx")
