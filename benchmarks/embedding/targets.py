"""The targets of embedding, and whether this run reached them.

Times are CPU milliseconds on one core, so that other work of the machine matters little; the peer
is open_clip as its examples use it, in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FP32, INT8 = "onnx ViT-B-32 fp32", "onnx ViT-B-32 int8"
LARGE = "photo.1920 px.b8.c1"
SMALL = "photo.320 px.b8.c1"
TEXT = "text.b1.c1"


def check_targets(
    figures_of: Mapping[str, Mapping[str, float]], limits: Mapping[str, float], eager: str
) -> list[dict[str, Any]]:
    """Compare the figures with the targets.

    Args:
        figures_of: Model -> its figures.
        limits: What `measure_limits` returned.
        eager: The peer's name in `figures_of`.

    Returns:
        A row for each target: `target`, `wanted`, `found` and `reached` ("yes" or "no"). Without
        the peer or the exports, only the targets that can be checked.
    """
    rows = []

    def row(target: str, goal: float, value: float, unit: str, *, at_most: bool = False) -> None:
        reached = value <= goal if at_most else value >= goal
        rows.append(
            {
                "target": target,
                "wanted": f"{'at most' if at_most else 'at least'} {goal:g} {unit}",
                "found": round(value, 4),
                "reached": "yes" if reached else "no",
            }
        )

    if {eager, FP32, INT8} <= set(figures_of):
        base, fp32, int8 = figures_of[eager], figures_of[FP32], figures_of[INT8]
        for name, model, goal in (("float32", fp32, 8.0), ("int8", int8, 15.0)):
            times = base[f"{TEXT}.cpu_ms"] / model[f"{TEXT}.cpu_ms"]
            row(f"a new text in {name}, times as fast as eager", goal, times, "times")
        times = base[f"{TEXT}.cpu_ms"] / limits["text_read_ms"]
        row("the same, if reading the weights in float32 were all", 8.0, times, "times")
        share = limits["image_ms"] / fp32[f"{SMALL}.model_ms"]
        row("image tower in float32, share of the sgemm ceiling", 0.9, share, "of the ceiling")
        times = base[f"{SMALL}.model_ms"] / int8[f"{SMALL}.model_ms"]
        row("image tower in int8, times as fast as eager", 1.6, times, "times")
        for name, model in (("float32", fp32), ("int8", int8)):
            times = base[f"{LARGE}.cpu_ms"] / model[f"{LARGE}.cpu_ms"]
            row(f"1920 x 1280 from file to vector in {name}", 1.8, times, "times")
    cached = [
        figures["cached_text_us"] for figures in figures_of.values() if "cached_text_us" in figures
    ]
    if cached:
        row("a text asked before, the slowest model", 100.0, max(cached), "us", at_most=True)
    return rows
