"""Write an open_clip model as ONNX: both towers, float32 and int8, with what is needed to run them.

What comes out is checked before it is kept: each tower of each precision is compared with torch on
seeded pictures and texts, and the agreement and the latency stand in the manifest. An int8 that
does not agree well enough is thrown away, and the manifest says why.
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from searchlab.errors import ConflictError, DataError, InputError
from searchlab.files import sha256_of
from searchlab.models.canaries import canary_image
from searchlab.models.onnx.clip_text import save_clip_tokenizer
from searchlab.models.onnx.embedder import MANIFEST, SCHEMA, OnnxEmbedder
from searchlab.models.onnx.export_report import ExportReport, TowerReport
from searchlab.models.onnx.parity import Parity, measure_parity
from searchlab.models.openclip.embedder import OpenClipEmbedder
from searchlab.models.protocol import Embedder, Embeddings

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
PICTURES: Final = tuple(range(1, 25))
"""Seeds of `canary_image`."""

_TIMED = 6  # inputs that each tower is timed on
_OPSET = 17
_CANARY_COMPONENTS = 32
_MOST_BYTES = 1_900_000_000  # a single ONNX file holds at most 2 GB


def export_onnx(spec: str, folder: str | Path, *, int8: bool = True) -> ExportReport:
    """Export an open_clip model.

    The folder appears whole or not at all.

    Args:
        spec: `"openclip:..."`.
        folder: Must not exist yet; its parent is made if need be.
        int8: Also quantise the weights to eight bits (activations dynamically), which becomes the
            default; left out after all if it does not agree with torch, see `Parity.is_enough`.

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
    return replace(report, folder=folder)


def _exportable_model(spec: str) -> OpenClipEmbedder:
    from searchlab.models.registry import load_model

    if not spec.startswith("openclip:"):
        msg = f"only models of open_clip can be exported, 'openclip:...', got {spec!r}"
        raise InputError(msg)
    model = cast("OpenClipEmbedder", load_model(spec, device="cpu"))
    if model.precision != "fp32":
        msg = f"an exported model must be in float32, got {spec!r}; leave the precision out"
        raise InputError(msg)
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
    agreements: dict[str, Parity] = {}
    reference = _Embedded.embed(model)
    for precision in precisions:
        exported = OnnxEmbedder(folder, precision=precision)
        embedded = _Embedded.embed(exported)
        agreements[precision] = measure_parity(
            reference.texts, reference.images, embedded.texts, embedded.images
        )
        if not agreements[precision].is_enough(precision):
            _refuse(folder, precision, manifest, agreements[precision])
            continue
        manifest["default"] = precision
        manifest["precisions"][precision]["agreement"] = agreements[precision].to_dict()
        towers += _measure(model, exported, manifest, reference, embedded)
    _write(folder, manifest)
    return ExportReport(folder, manifest["default"], tuple(towers), agreements)


def _export_towers(model: OpenClipEmbedder, folder: Path) -> None:
    import torch

    from searchlab.models.openclip.towers import make_exportable

    whole, short = model.module.visual, model.image_tower
    towers: dict[str, tuple[Any, torch.Tensor, str]] = {
        "text": (model.cut_text_tower, model.tokenizer(["a dog", "two cats"])[:, :8], "tokens"),
        "image": (
            short if isinstance(short, torch.nn.Module) else whole,
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
                make_exportable(module),
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
    root.setLevel(logging.ERROR)  # onnxruntime recommends a preprocessing that is no use here
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


@dataclass(frozen=True)
class _Embedded:
    """The vectors that a model gives `TEXTS` and `PICTURES`."""

    texts: Embeddings
    images: Embeddings

    @classmethod
    def embed(cls, model: Embedder) -> _Embedded:
        pictures = [canary_image(seed) for seed in PICTURES]
        return cls(model.encode_texts(TEXTS), model.encode_images(pictures))


def _refuse(folder: Path, precision: str, manifest: dict[str, Any], agreement: Parity) -> None:
    """Leave a precision out of an export; without float32 there is no export at all."""
    if precision == "fp32":
        msg = (
            f"the export of {manifest['spec']} in float32 must agree with torch, got {agreement}; "
            "use the model with torch instead"
        )
        raise DataError(msg)
    for tower in manifest["precisions"].pop(precision).values():
        (folder / tower["file"]).unlink()
        del manifest["files"][tower["file"]]
    manifest.setdefault("refused", {})[precision] = agreement.to_dict()


def _measure(
    model: OpenClipEmbedder,
    exported: OnnxEmbedder,
    manifest: dict[str, Any],
    reference: _Embedded,
    embedded: _Embedded,
) -> list[TowerReport]:
    """Record canaries and figures of an exported precision in the manifest."""
    pictures = [canary_image(seed) for seed in PICTURES[:_TIMED]]
    towers: dict[str, tuple[Sequence[Any], Embeddings, Embeddings, Sequence[Any]]] = {
        "text": (TEXTS, reference.texts, embedded.texts, TEXTS[:_TIMED]),
        "image": (PICTURES, reference.images, embedded.images, pictures),
    }
    reports = []
    for tower, (probes, expected, rows, timed) in towers.items():
        cosines = np.sum(rows.astype(np.float64) * expected, axis=1)
        entry = manifest["precisions"][exported.precision][tower]
        encode_exported, encode_by_torch = (
            embedder.encode_texts if tower == "text" else embedder.encode_images
            for embedder in (exported, model)
        )
        report = TowerReport(
            precision=exported.precision,
            tower=tower,
            size_mib=round((exported.folder / entry["file"]).stat().st_size / 2**20, 1),
            mean_cosine=round(float(cosines.mean()), 6),
            min_cosine=round(float(cosines.min()), 6),
            p50_ms=_p50_ms(encode_exported, timed),
            torch_p50_ms=_p50_ms(encode_by_torch, timed),
        )
        entry["canaries"] = [
            [probe, [round(float(value), 5) for value in row[:_CANARY_COMPONENTS]]]
            for probe, row in list(zip(probes, rows, strict=True))[-2:]
        ]
        entry["measured"] = asdict(report)
        reports.append(report)
    return reports


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
