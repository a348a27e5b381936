"""Write an open_clip model as ONNX: both towers, float32 and int8, with what is needed to run them.

What comes out is checked before it is kept: each tower of each precision is compared with torch on
seeded pictures and texts, and the agreement and the latency stand in the manifest.
"""

from __future__ import annotations

import json
import logging
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from searchlab.errors import ConflictError, DataError, InputError
from searchlab.files import sha256_of
from searchlab.models.canaries import canary_image
from searchlab.models.clip_text import save_clip_tokenizer
from searchlab.models.onnx import MANIFEST, SCHEMA, OnnxEmbedder
from searchlab.models.openclip import OpenClipEmbedder
from searchlab.models.protocol import Embedder, Embeddings

FLOOR: Final = {"fp32": 0.9999, "int8": 0.98}
"""Least cosine with torch; below it, fp32 is an error and int8 is not the default."""

TEXTS: Final = (
    "a dog",
    "two people walking along a beach at sunset",
    "Ein rotes Fahrrad lehnt an einer Wand",
    "une tasse de café sur une table",
    "山の上の雪",
    "собака бежит по траве",
    "aerial view of a city at night, long exposure",
    "🐈 on a sofa",
)
PICTURES: Final = (1, 2, 3, 4, 5, 6)
"""Seeds of `canary_image`."""

_OPSET = 17
_CANARY_COMPONENTS = 32
_MOST_BYTES = 1_900_000_000  # a single ONNX file ends at 2 GB


@dataclass(frozen=True)
class TowerReport:
    """How an exported tower compares with torch.

    Attributes:
        precision: `"fp32"` or `"int8"`.
        tower: `"text"` or `"image"`.
        size_mib: Of the file.
        mean_cosine: With the vectors of torch, over seeded inputs.
        min_cosine: Likewise, the worst.
        p50_ms: To embed one input, preprocessing included.
        torch_p50_ms: The same by `OpenClipEmbedder`.
    """

    precision: str
    tower: str
    size_mib: float
    mean_cosine: float
    min_cosine: float
    p50_ms: float
    torch_p50_ms: float

    def __str__(self) -> str:
        return (
            f"{self.tower} tower in {self.precision}: {self.size_mib:.0f} MiB, cosine with torch "
            f"{self.mean_cosine:.4f} on average and {self.min_cosine:.4f} at worst, "
            f"{self.p50_ms:.1f} ms an input beside {self.torch_p50_ms:.1f}"
        )


@dataclass(frozen=True)
class ExportReport:
    """What an export made.

    Attributes:
        folder: Where it is; `load_model(f"onnx:{folder}")` loads it.
        default: The precision that is loaded unless another is asked for.
        towers: One entry for each precision and tower.
    """

    folder: Path
    default: str
    towers: tuple[TowerReport, ...]

    def __str__(self) -> str:
        loaded = f"`--model onnx:{self.folder}` loads it, in {self.default}"
        return "\n".join([*map(str, self.towers), loaded])


def export_onnx(spec: str, folder: str | Path, *, int8: bool = True) -> ExportReport:
    """Export an open_clip model.

    The folder appears whole or not at all.

    Args:
        spec: `"openclip:..."`.
        folder: To be made; its parent is made if need be.
        int8: Also quantise the weights to eight bits (activations dynamically), which becomes the
            default where it agrees with torch to `FLOOR["int8"]`.

    Raises:
        ConflictError: The folder exists.
        InputError: The model is none of open_clip, has another tokenizer than CLIP's, a text tower
            that needs padding, or too many weights for one file.
        DataError: The float32 export does not agree with torch.
    """
    folder = Path(folder)
    if folder.exists():
        msg = (
            f"the folder of an export must be new, got {str(folder)!r}; remove it or choose another"
        )
        raise ConflictError(msg)
    model = _exportable_model(spec)
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        report = _build(model, building, int8=int8)
        building.chmod(0o755)
        building.rename(folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return ExportReport(folder, report.default, report.towers)


def _exportable_model(spec: str) -> OpenClipEmbedder:
    from searchlab.models import load_model

    if not spec.startswith("openclip:"):
        msg = f"only models of open_clip can be exported, 'openclip:...', got {spec!r}"
        raise InputError(msg)
    model = cast("OpenClipEmbedder", load_model(spec))
    tokenizer = model.tokenizer
    cleaning = getattr(getattr(tokenizer, "clean_fn", None), "__name__", "")
    if type(tokenizer).__name__ != "SimpleTokenizer" or cleaning != "_clean_lower":
        msg = (
            f"an exported model must use CLIP's tokenizer, got {type(tokenizer).__name__} of {spec}"
        )
        raise InputError(msg)
    if model.cut_text_tower is None:
        msg = f"an exported text tower must be causal and pool at the end token, got that of {spec}"
        raise InputError(msg)
    n_bytes = sum(4 * parameter.numel() for parameter in model.module.parameters())
    if n_bytes > 2 * _MOST_BYTES:
        msg = f"an exported model must be smaller than {2 * _MOST_BYTES:,} bytes, got {n_bytes:,}"
        raise InputError(msg)
    return model


def _build(model: OpenClipEmbedder, folder: Path, *, int8: bool) -> ExportReport:
    _export_towers(model, folder)
    save_clip_tokenizer(model.tokenizer, folder / "tokenizer.json")
    precisions = ["fp32"]
    if int8:
        _quantise(folder)
        precisions.append("int8")
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "spec": model.name,
        "source_model_id": model.model_id,
        "architecture": model.name.removeprefix("openclip:").partition("/")[0],
        "dim": model.dim,
        "context_length": int(model.tokenizer.context_length),
        "preprocess": model.preprocess.to_config(),
        "tokenizer": "tokenizer.json",
        "files": {file.name: sha256_of(file) for file in sorted(folder.iterdir())},
        "default": "fp32",
        "precisions": {
            precision: {
                tower: {"file": f"{tower}.{precision}.onnx", "canaries": []}
                for tower in ("text", "image")
            }
            for precision in precisions
        },
        "made_with": _versions(),
    }
    _write(folder, manifest)
    towers: list[TowerReport] = []
    for precision in precisions:
        reports = _measure(model, folder, precision, manifest)
        _judge(model.name, reports)
        towers += reports
    worst = min(report.min_cosine for report in towers if report.precision == precisions[-1])
    manifest["default"] = precisions[-1] if worst >= FLOOR[precisions[-1]] else "fp32"
    _write(folder, manifest)
    return ExportReport(folder, manifest["default"], tuple(towers))


def _export_towers(model: OpenClipEmbedder, folder: Path) -> None:
    import torch

    from searchlab.models.openclip_towers import exportable

    towers = {
        "text": (model.cut_text_tower, model.tokenizer(["a dog", "two cats"])[:, :8], "tokens"),
        "image": (
            model.module.visual,
            torch.zeros(2, 3, model.preprocess.height, model.preprocess.width),
            "pixels",
        ),
    }
    for tower, (module, example, input_name) in towers.items():
        axes = {0: "batch", 1: "length"} if tower == "text" else {0: "batch"}
        with warnings.catch_warnings(), torch.no_grad():
            # The newer exporter needs onnxscript; this one says that it is deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            # Tracing fixes the shapes of the model; other batches and lengths are measured.
            warnings.simplefilter("ignore", torch.jit._trace.TracerWarning)
            torch.onnx.export(
                exportable(module),
                (example,),
                str(folder / f"{tower}.fp32.onnx"),
                input_names=[input_name],
                output_names=["rows"],
                dynamic_axes={input_name: axes, "rows": {0: "batch"}},
                opset_version=_OPSET,
                dynamo=False,
            )


def _quantise(folder: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises a preprocessing that changes nothing here
    try:
        for tower in ("text", "image"):
            quantize_dynamic(
                folder / f"{tower}.fp32.onnx",
                folder / f"{tower}.int8.onnx",
                op_types_to_quantize=["MatMul", "Gemm"],
                per_channel=True,
                # Seven bits: eight overflow the sums of processors without VNNI, where the same
                # file would then give other vectors.
                reduce_range=True,
                weight_type=QuantType.QInt8,
            )
    finally:
        root.setLevel(level)


def _measure(
    model: OpenClipEmbedder, folder: Path, precision: str, manifest: dict[str, Any]
) -> list[TowerReport]:
    """Compare an exported precision with torch, and record canaries and figures in the manifest."""
    exported = OnnxEmbedder(folder, precision=precision)
    pictures = [canary_image(seed) for seed in PICTURES]
    encoders: dict[str, tuple[Sequence[Any], Callable[[Embedder], Callable[..., Embeddings]]]] = {
        "text": (TEXTS, lambda embedder: embedder.encode_texts),
        "image": (pictures, lambda embedder: embedder.encode_images),
    }
    reports = []
    for tower, (inputs, encoder) in encoders.items():
        found, expected = encoder(exported)(inputs), encoder(model)(inputs)
        cosines = np.sum(found.astype(np.float64) * expected, axis=1)
        entry = manifest["precisions"][precision][tower]
        report = TowerReport(
            precision=precision,
            tower=tower,
            size_mib=round((folder / entry["file"]).stat().st_size / 2**20, 1),
            mean_cosine=round(float(cosines.mean()), 6),
            min_cosine=round(float(cosines.min()), 6),
            p50_ms=_p50_ms(encoder(exported), inputs),
            torch_p50_ms=_p50_ms(encoder(model), inputs),
        )
        probes = TEXTS if tower == "text" else PICTURES
        entry["canaries"] = [
            [probe, [round(float(value), 5) for value in row[:_CANARY_COMPONENTS]]]
            for probe, row in list(zip(probes, found, strict=True))[-2:]
        ]
        entry["measured"] = asdict(report)
        reports.append(report)
    return reports


def _judge(name: str, reports: Sequence[TowerReport]) -> None:
    for report in reports:
        if report.precision == "fp32" and not report.min_cosine >= FLOOR["fp32"]:
            msg = (
                f"the exported {report.tower} tower of {name} must agree with torch to a cosine of "
                f"{FLOOR['fp32']}, got {report.min_cosine}; use the model with torch instead"
            )
            raise DataError(msg)


def _p50_ms(encode: Callable[..., Embeddings], inputs: Sequence[Any]) -> float:
    times = []
    for one in inputs:
        runs = []
        for _ in range(2):  # the first run of each length warms up
            started = time.perf_counter()
            encode([one])
            runs.append(time.perf_counter() - started)
        times.append(min(runs))
    return round(1000 * statistics.median(times), 3)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    packages = ("torch", "open_clip_torch", "onnx", "onnxruntime", "tokenizers")
    return {package: version(package) for package in packages}


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
