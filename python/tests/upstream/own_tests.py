"""Runs diffusers' own tests of six pipelines with torch's VAE and with wgvae's, and compares them.

``DIFFUSERS`` names a folder with diffusers' ``tests``, of the version that is installed:

    DIFFUSERS=~/diffusers PYTHONPATH=python/tests python -m upstream.own_tests

The exit code is 1 if a test fails with wgvae's VAE that passes with torch's, or if none passes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

FILES = (
    "stable_diffusion/test_stable_diffusion.py",
    "stable_diffusion_xl/test_stable_diffusion_xl.py",
    "flux/test_pipeline_flux.py",
    "qwenimage/test_qwenimage.py",
    "wan/test_wan.py",
    "stable_diffusion_3/test_pipeline_stable_diffusion_3.py",
)

Outcomes = dict[str, tuple[str, str]]
"""Outcome and message of each test."""


def main() -> int:
    """Prints the counts of each file and the tests that differ, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help='wgvae\'s device, "cpu" or "gpu"')
    parser.add_argument("files", nargs="*", default=FILES, help="test files below tests/pipelines")
    chosen = parser.parse_args()
    folder = Path(os.environ["DIFFUSERS"]).expanduser().resolve()
    bad = False
    for name in chosen.files:
        own = outcomes(folder, name, [])
        ours = outcomes(folder, name, ["--wgvae", chosen.device])
        print(f"{name}\n  torch: {counted(own)}\n  wgvae: {counted(ours)}", flush=True)
        new = [test for test in own if ours.get(test, ("missing", ""))[0] not in (own[test][0], "passed")]
        for test in new:
            print(f"  NEW {ours.get(test, ('missing', ''))}: {test}")
        for test, (outcome, text) in own.items():
            if outcome == "failed":
                print(f"  fails with torch's VAE, too: {test}: {text}")
        bad |= bool(new) or not any(outcome == "passed" for outcome, _ in ours.values())
    return int(bad)


def outcomes(folder: Path, name: str, options: list[str]) -> Outcomes:
    """Runs one test file, and returns the outcome of each test."""
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "upstream.plugin", "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", *options, str(folder / "tests" / "pipelines" / name)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if not report.exists():
            raise RuntimeError(f"{name}: pytest wrote no report:\n{done.stdout}{done.stderr}")
        if options and "\n0 VAEs ran on wgvae" in done.stdout:
            raise RuntimeError(f"{name}: expected VAEs of a class that wgvae has, found none")
        return {
            f"{case.get('classname')}.{case.get('name')}": outcome(case)
            for case in ElementTree.parse(report).iter("testcase")
        }


def outcome(case: ElementTree.Element) -> tuple[str, str]:
    """Returns the outcome of a test, and the first line of its message."""
    for tag, text in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(tag)
        if found is not None:
            return text, (found.get("message") or "").split("\n")[0][:150]
    return "passed", ""


def counted(found: Outcomes) -> str:
    """Returns the number of tests of each outcome."""
    counts = Counter(outcome for outcome, _ in found.values())
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
