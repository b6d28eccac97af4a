"""Draws the pictures of docs/internals and ARCHITECTURE.md as SVG files beside this one.

    python docs/drawings/make.py                 # makes the plans with cargo first
    python docs/drawings/make.py --plans FOLDER  # takes plans that are there already

All files except `layers.svg` and `picture.svg` show real plans of SD 1.5 at 1024x1024, as
`cargo run --release --example plan_steps` prints them. Needs only Python 3.11.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 1 << 20

# The arguments of examples/plan_steps.rs for each plan that is drawn.
PLANS = {
    "whole": ["sd15", "1024"],
    "recompute": ["sd15", "1024", "320", "off"],
    "spill": ["sd15", "1024", "320", "on"],
}

STYLE = """
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #1d2733; }
.quiet { fill: #5b6875; font-size: 12px; }
.small { font-size: 12px; }
.box { fill: #f2f5f8; stroke: #8593a3; }
.line { stroke: #8593a3; fill: none; }
.grid { stroke: #dde3ea; }
.a { fill: #2f6fb5; } .b { fill: #c2571a; } .c { fill: #3d8a4e; } .d { fill: #7c5aa6; } .e { fill: #9aa6b2; }
.sa { stroke: #2f6fb5; } .sb { stroke: #c2571a; } .sc { stroke: #3d8a4e; } .sd { stroke: #b3261e; }
.curve { fill: none; stroke-width: 2; }
.soft { fill-opacity: 0.75; }
@media (prefers-color-scheme: dark) {
  svg { background: #14191f; }
  text { fill: #e4eaf0; }
  .quiet { fill: #9fadbb; }
  .box { fill: #1f2730; stroke: #6d7b8a; }
  .line { stroke: #7f8d9c; }
  .grid { stroke: #2a343f; }
  .a { fill: #6aa9ec; } .b { fill: #ee9a5d; } .c { fill: #74c486; } .d { fill: #b698df; } .e { fill: #66727f; }
  .sa { stroke: #6aa9ec; } .sb { stroke: #ee9a5d; } .sc { stroke: #74c486; } .sd { stroke: #ff8a80; }
}
"""


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Drawing:
    """An SVG file under construction."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []

    def text(self, x, y, text, kind="", anchor="start"):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>')

    def rect(self, x, y, width, height, kind, round_=0):
        width, height = max(width, 0.5), max(height, 0.5)
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_}" class="{kind}"/>'
        )

    def line(self, x1, y1, x2, y2, kind="line", more=""):
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}" {more}/>')

    def arrow(self, x1, y1, x2, y2):
        self.line(x1, y1, x2, y2, "line", 'marker-end="url(#tip)"')

    def curve(self, points, kind):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" class="curve {kind}"/>')

    def box(self, x, y, width, height, title, *lines):
        """Draws a box with a title and quiet lines below it."""
        self.rect(x, y, width, height, "box", 6)
        top = y + height / 2 + 5 - 8 * len(lines)
        self.text(x + width / 2, top, title, "", "middle")
        for index, line in enumerate(lines):
            self.text(x + width / 2, top + 17 * (index + 1), line, "quiet", "middle")

    def write(self, name):
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0,0 L8,4 L0,8" class="line"/></marker></defs>'
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'width="{self.width}" height="{self.height}"><title>{escape(self.title)}</title>'
        )
        text = "\n".join([head, f"<style>{STYLE}</style>", tip, *self.parts, "</svg>", ""])
        (HERE / name).write_text(text)
        print(f"{name}: {len(text) // 1024 + 1} KiB")


class Plan:
    """A plan as `plan_steps` prints it."""

    def __init__(self, path):
        plan = json.loads(path.read_text())
        self.stages, self.steps, self.buffers = plan["stages"], plan["steps"], plan["buffers"]
        self.slots, self.memory, self.parked = plan["slots"], plan["memory"], plan["parked"]

    def macs(self):
        return sum(step["macs"] for step in self.steps)

    def peak(self):
        return sum(self.memory.values())

    def live(self):
        """Returns the bytes of the buffers that are live at each step."""
        change = [0] * (len(self.steps) + 1)
        for buffer in self.buffers:
            change[buffer["live"]["start"]] += buffer["bytes"]
            change[buffer["live"]["end"]] -= buffer["bytes"]
        live, sums = 0, []
        for step in change[:-1]:
            live += step
            sums.append(live)
        return sums

    def chunks(self, stage):
        """Returns the buffers of the chunks of `stage` by time: (chunk, first step, end step)."""
        found = []
        for buffer in self.buffers:
            match = re.fullmatch(r"(.*)\[(\d+)\]", buffer["name"])
            if match and match[1] == stage:
                found.append((int(match[2]), buffer["live"]["start"], buffer["live"]["end"]))
        return sorted(found, key=lambda chunk: chunk[1])

    def in_host_memory(self):
        """Returns the bytes of activations that are only in host memory, at each step."""
        sums, waiting = [], 0
        for step in self.steps:
            [(kind, action)] = step["action"].items()
            if kind == "park":
                waiting += self.parked[action["to"]]
            elif kind == "fetch" and "parked" in action["from"]:
                waiting -= self.parked[action["from"]["parked"]]
            sums.append(waiting)
        return sums


def mib(value):
    return f"{value / MIB:.0f} MiB" if value >= 10 * MIB else f"{value / MIB:.1f} MiB"


def axes(drawing, left, top, width, height, most, step, unit=MIB, name="MiB"):
    """Draws horizontal grid lines up to `most`, and returns the function from a value to y."""
    place = lambda value: top + height * (1 - value / most)
    value = 0
    while value <= most:
        drawing.line(left, place(value), left + width, place(value), "grid")
        drawing.text(left - 8, place(value) + 4, f"{value // unit}", "quiet", "end")
        value += step
    drawing.text(left - 8, top - 12, name, "quiet", "end")
    return place


def sampled(plan, values, left, width, count=500):
    """Returns the largest of `values` in each of `count` equal parts of the multiply-adds."""
    total, done, most = plan.macs(), 0, [0] * count
    for step, value in zip(plan.steps, values):
        part = min(count - 1, done * count // total)
        most[part] = max(most[part], value)
        done += step["macs"]
    for part in range(1, count):
        if most[part] == 0:
            most[part] = most[part - 1]
    return [(left + width * part / (count - 1), value) for part, value in enumerate(most)]


def draw_memory(plans):
    drawing = Drawing(760, 400, "GPU memory over a decode of SD 1.5 at 1024x1024: whole, recomputed and spilled")
    left, top, width, height = 60, 80, 680, 250
    most = 1000 * MIB
    place = axes(drawing, left, top, width, height, most, 200 * MIB)
    names = {"whole": "sa", "recompute": "sb", "spill": "sc"}
    for name, kind in names.items():
        plan = plans[name]
        beside = sum(value for key, value in plan.memory.items() if key != "slots")
        points = sampled(plan, [beside + live for live in plan.live()], left, width)
        drawing.curve([(x, place(value)) for x, value in points], kind)
    drawing.line(left, place(320 * MIB), left + width, place(320 * MIB), "line sd", 'stroke-dasharray="5 4"')
    drawing.text(left + 4, place(320 * MIB) - 6, "budget 320 MiB", "small")
    legend = [
        ("a", f"no budget: peak {mib(plans['whole'].peak())}, work 1.00"),
        ("b", f"budget 320 MiB, parking off: {mib(plans['recompute'].peak())}, work {plans['recompute'].macs() / plans['whole'].macs():.2f}"),
        ("c", f"budget 320 MiB, parking on: {mib(plans['spill'].peak())}, work {plans['spill'].macs() / plans['whole'].macs():.2f}"),
    ]
    for index, (kind, text) in enumerate(legend):
        drawing.rect(left + 60, 14 + 18 * index, 12, 12, kind)
        drawing.text(left + 78, 25 + 18 * index, text, "small")
    drawing.text(left, top + height + 22, "multiply-adds done: 0", "quiet")
    drawing.text(left + width, top + height + 22, "all of each plan", "quiet", "end")
    drawing.text(left, top + height + 46, "What is live at each step, with weights, parameters and staging. A peak adds what the slots lose.", "quiet")
    drawing.write("planner-memory.svg")


def draw_pass(plan):
    """Draws the lives of chunks in a pass, near the first chunk that is computed again."""
    source, goal = "decoder.up_blocks.2.upsamplers.0.conv", "decoder.up_blocks.3.resnets.0.conv1"
    first_own = plan.chunks(goal)[0][1]
    again = [chunk for chunk in plan.chunks(source) if chunk[1] > first_own]
    index, at = again[0][0], again[0][1]
    start, end = at - 62, at + 170
    drawing = Drawing(760, 430, "Chunks of a pass: which exist when, and which are computed again")
    left, top, width = 150, 70, 590
    x = lambda step: left + width * (min(max(step, start), end) - start) / (end - start)
    drawing.text(12, 22, f"The pass for {goal.removeprefix('decoder.')}, steps {start} to {end} of {len(plan.steps)}")
    rows = []
    kept = [chunk for chunk in plan.chunks(source) if chunk[1] < first_own and index - 4 <= chunk[0] < index]
    rows += [("a", f"upsampler [{chunk}]", begin, stop, "kept") for chunk, begin, stop in kept]
    rows += [("b", f"upsampler [{chunk}]", begin, stop, "again") for chunk, begin, stop in again if begin < end - 30]
    rows += [("c", f"conv1 [{chunk}]", begin, stop, "") for chunk, begin, stop in plan.chunks(goal) if start + 1 < begin < end - 12 and stop < end + 40]
    for row, (kind, name, begin, stop, _) in enumerate(rows):
        y = top + row * 17
        drawing.text(left - 8, y + 11, name, "small", "end")
        drawing.line(left, y + 15, left + width, y + 15, "grid")
        drawing.rect(x(begin), y + 2, x(stop) - x(begin), 12, kind, 2)
    bottom = top + len(rows) * 17
    drawing.text(left, bottom + 18, "steps ->", "quiet")
    for number, (kind, text) in enumerate([("a", "kept since the pass before"), ("b", "computed again, then freed"), ("c", "chunks of the goal, measured, then freed")]):
        drawing.rect(12 + 210 * number, 38, 12, 12, kind)
        drawing.text(30 + 210 * number, 49, text, "small")
    drawing.height = int(bottom + 34)
    drawing.write("planner-pass.svg")
    return index


def draw_recompute(plan):
    """Draws how often the chunks of each stage are computed."""
    rows = []
    for stage in plan.stages:
        chunks = plan.chunks(stage)
        count = len({chunk for chunk, _, _ in chunks})
        if chunks and len(chunks) > count:
            rows.append((stage.removeprefix("decoder."), count, len(chunks)))
    drawing = Drawing(760, 80 + 26 * len(rows), "Chunks of each stage, and how many are computed again")
    left, width = 230, 330
    most = max(total for _, _, total in rows)
    drawing.text(12, 22, "Chunks computed once, and again, under 320 MiB with parking off. All other stages: once.")
    for row, (name, count, total) in enumerate(rows):
        y = 40 + 26 * row
        drawing.text(left - 8, y + 14, name, "small", "end")
        drawing.rect(left, y + 2, width * count / most, 16, "a")
        drawing.rect(left + width * count / most, y + 2, width * (total - count) / most, 16, "b")
        drawing.text(left + width * total / most + 8, y + 14, f"{count} + {total - count} again", "small")
    y = 54 + 26 * len(rows)
    for number, (kind, text) in enumerate([("a", "first time"), ("b", "again")]):
        drawing.rect(left + 120 * number, y, 12, 12, kind)
        drawing.text(left + 18 + 120 * number, y + 11, text, "small")
    drawing.write("planner-recompute.svg")


def draw_spill(plan):
    drawing = Drawing(760, 340, "Activations on the device and in host memory under a budget with parking")
    left, top, width, height = 60, 50, 680, 220
    host, live = plan.in_host_memory(), plan.live()
    most = 400 * MIB
    place = axes(drawing, left, top, width, height, most, 100 * MIB)
    drawing.curve([(x, place(value)) for x, value in sampled(plan, live, left, width)], "sc")
    drawing.curve([(x, place(value)) for x, value in sampled(plan, host, left, width)], "sb")
    for number, (kind, text) in enumerate([("c", "buffers on the device"), ("b", f"activations in host memory only, {mib(max(host))} at most")]):
        drawing.rect(left + 200 * number, 14, 12, 12, kind)
        drawing.text(left + 18 + 200 * number, 25, text, "small")
    drawing.text(left, top + height + 22, "multiply-adds done: 0", "quiet")
    drawing.text(left + width, top + height + 22, "all", "quiet", "end")
    drawing.write("planner-spill.svg")


def draw_slots(plan):
    """Draws slots from top to bottom, and buffers as rectangles of their lives."""
    order = sorted(range(len(plan.slots)), key=lambda slot: -plan.slots[slot])
    total = sum(plan.slots)
    left, top, width, height, gap = 60, 40, 680, 330, 3
    drawing = Drawing(760, 430, "Slots of a plan and the buffers that share them over time")
    drawing.text(12, 22, f"{len(plan.buffers)} buffers in {len(plan.slots)} slots of {mib(total)}: SD 1.5, 1024x1024, f16, no budget")
    scale = (height - gap * len(order)) / total
    tops, y = {}, top
    for slot in order:
        tops[slot] = y
        drawing.rect(left, y, width, plan.slots[slot] * scale, "box")
        if plan.slots[slot] * scale > 12:
            drawing.text(left - 6, y + plan.slots[slot] * scale / 2 + 4, mib(plan.slots[slot]).replace(" MiB", ""), "quiet", "end")
        y += plan.slots[slot] * scale + gap
    steps = len(plan.steps)
    for buffer in plan.buffers:
        if buffer["bytes"] < MIB:
            continue
        name = buffer["name"]
        kind = "a" if "[" in name else "b" if name.endswith(".u") else "d" if re.search(r"\.(v|m)$", name) else "e"
        begin, end = buffer["live"]["start"], buffer["live"]["end"]
        drawing.rect(
            left + width * begin / steps,
            tops[buffer["slot"]] + buffer["offset"] * scale,
            width * (end - begin) / steps - 0.4,
            buffer["bytes"] * scale,
            f"{kind} soft",
        )
    y += 18
    drawing.text(left, y, "MiB of each slot at the left; steps from left to right", "quiet")
    y += 14
    legend = [("a", "chunks of tensors"), ("d", "v and m of Winograd"), ("b", "transformed filters"), ("e", "other scratch")]
    for number, (kind, text) in enumerate(legend):
        drawing.rect(left + 160 * number, y, 12, 12, kind)
        drawing.text(left + 18 + 160 * number, y + 11, text, "small")
    drawing.height = int(y + 24)
    drawing.write("planner-slots.svg")


def draw_layers():
    drawing = Drawing(760, 420, "Layers: what may use what")
    box = drawing.box
    box(20, 16, 230, 52, "command line", "the crates in crates/")
    box(265, 16, 230, 52, "browser", "src/web, package in web/src")
    box(510, 16, 230, 52, "Python", "python/src, python/wgvae")
    box(20, 100, 720, 52, "vae", "the facade: load, plan, decode, encode; beside it: selftest, tuning")
    box(20, 196, 170, 66, "io", "bytes in and out", "no wgpu")
    box(205, 196, 170, 66, "device: gpu, cpu", "runs a plan", "gpu alone names wgpu")
    box(390, 196, 350, 66, "plan", "when and where: graph + limits + options", "a value; no wgpu, no clock")
    box(390, 292, 170, 52, "kernels", "how one op runs")
    box(570, 292, 170, 52, "model", "what to compute")
    box(20, 292, 355, 52, "tiling, hub, quality", "tiles, downloads, PSNR")
    box(20, 370, 720, 40, "tensor, limits, error, ordered")
    for x in (135, 380, 625):
        drawing.arrow(x, 68, x, 98)
    for x in (105, 290, 565):
        drawing.arrow(x, 152, x, 194)
    drawing.arrow(375, 229, 388, 229)
    drawing.arrow(475, 262, 475, 290)
    drawing.arrow(655, 262, 655, 290)
    drawing.arrow(560, 318, 568, 318)
    for x in (197, 475, 655):
        drawing.arrow(x, 344, x, 368)
    drawing.write("layers.svg")


def draw_picture():
    drawing = Drawing(760, 300, "From latents to a picture")
    box = drawing.box
    box(20, 20, 150, 66, "files", "weights, config", "latents")
    box(20, 200, 150, 66, "device", "limits, kind, vendor", "as plain data")
    box(215, 20, 160, 66, "graph", "model/: operations", "by diffusers' names")
    box(215, 200, 160, 66, "request", "size, precision", "budget, output")
    box(420, 100, 150, 92, "plan", "steps, buffers", "slots, weights", "peak in bytes")
    box(610, 20, 135, 66, "gpu/", "allocates slots", "submits steps")
    box(610, 200, 135, 66, "picture", "rows, as they", "are finished")
    drawing.arrow(170, 53, 213, 53)
    drawing.arrow(375, 70, 440, 98)
    drawing.arrow(375, 225, 440, 194)
    drawing.arrow(170, 233, 213, 233)
    drawing.arrow(560, 100, 612, 72)
    drawing.arrow(678, 86, 678, 198)
    drawing.text(405, 235, "no GPU is needed", "quiet")
    drawing.text(405, 252, "up to here", "quiet")
    drawing.write("picture.svg")


def make_plans(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, arguments in PLANS.items():
        command = ["cargo", "run", "--quiet", "--release", "--example", "plan_steps", "--", *arguments]
        with open(folder / f"{name}.json", "w") as file:
            subprocess.run(command, stdout=file, check=True, cwd=HERE)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=Path, help="a folder with whole.json, recompute.json and spill.json")
    folder = parser.parse_args().plans
    if folder is None:
        folder = HERE.parent.parent / "target" / "drawings"
        make_plans(folder)
    plans = {name: Plan(folder / f"{name}.json") for name in PLANS}
    draw_layers()
    draw_picture()
    draw_memory(plans)
    draw_pass(plans["recompute"])
    draw_recompute(plans["recompute"])
    draw_spill(plans["spill"])
    draw_slots(plans["whole"])


if __name__ == "__main__":
    sys.exit(main())
