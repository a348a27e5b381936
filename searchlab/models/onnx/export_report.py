"""What an export made, and how its towers compare with torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from searchlab.models.onnx.parity import Parity


@dataclass(frozen=True)
class TowerReport:
    """How an exported tower compares with torch.

    Attributes:
        precision: `"fp32"` or `"int8"`.
        tower: `"text"` or `"image"`.
        size_mib: Size of the file.
        mean_cosine: Mean cosine with the vectors of torch, over seeded inputs.
        min_cosine: The worst of these cosines.
        p50_ms: Median time to embed one input, preprocessing included.
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
        agreements: How each precision agrees with torch, also one that was refused.
    """

    folder: Path
    default: str
    towers: tuple[TowerReport, ...]
    agreements: Mapping[str, Parity]

    def __str__(self) -> str:
        lines = [
            f"{precision}: {agreement}" + ("" if agreement.is_enough(precision) else "; not kept")
            for precision, agreement in self.agreements.items()
        ]
        loaded = f"`--model onnx:{self.folder}` loads it, in {self.default}"
        return "\n".join([*map(str, self.towers), *lines, loaded])
