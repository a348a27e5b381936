"""The image tower: EfficientNet-lite2, what it says of the training photos, and its ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from searchlab.models.mini import CROP, preprocess
from searchlab.models.torchvision_shim import import_torchvision
from searchlab.training.sources import TOWER, locate

BATCH = 8
HALVED = 512  # Weights of at least so many numbers are stored in 16 bits.


class Readings(NamedTuple):
    """What the frozen tower says of photos.

    Attributes:
        ids: Photo ids.
        features: (n, 1280) pooled features.
        logits: (n, 1000) class logits.
    """

    ids: list[str]
    features: NDArray[np.float32]
    logits: NDArray[np.float32]


class Joined(torch.nn.Module):
    """Tower and head in one network: (n, 3, 260, 260) pixels to (n, dim) unit rows."""

    def __init__(self, tower: Any, head: torch.nn.Module) -> None:
        super().__init__()
        self.tower = tower
        self.head = head

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embed preprocessed pictures."""
        features, logits = read(self.tower, pixels)
        rows: torch.Tensor = self.head(features, logits)
        return rows


def load_tower(packages: Path) -> Any:
    """Load the ImageNet weights into timm's `tf_efficientnet_lite2`; every weight must fit."""
    import_torchvision()
    import timm

    state = torch.load(locate(TOWER, packages), map_location="cpu")
    tower = timm.create_model("tf_efficientnet_lite2", pretrained=False)
    # The two implementations name their layers differently but in the same order.
    names = list(tower.state_dict())
    tower.load_state_dict(dict(zip(names, state.values(), strict=True)), strict=True)
    return tower.eval()


def read(tower: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pooled features (n, 1280) and class logits (n, 1000)."""
    features = tower.forward_head(tower.forward_features(pixels), pre_logits=True)
    return features, tower.get_classifier()(features)


def read_photos(tower: Any, photos: dict[str, Path], cache: Path) -> Readings:
    """Run the tower over photos, once; the answer is kept in `cache`.

    Args:
        tower: From `load_tower`.
        photos: Files by photo id.
        cache: An `.npz` file; made if absent.
    """
    if not cache.exists():
        paths = list(photos.values())
        with torch.inference_mode():
            parts = [
                read(tower, torch.from_numpy(preprocess(_open(paths[start : start + BATCH]))))
                for start in range(0, len(paths), BATCH)
            ]
        features, logits = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
        np.savez(cache, ids=np.array(list(photos)), features=features, logits=logits)
    stored = np.load(cache)
    return Readings([str(i) for i in stored["ids"]], stored["features"], stored["logits"])


def _open(paths: Sequence[Path]) -> list[Image.Image]:
    pictures = []
    for path in paths:
        with Image.open(path) as picture:
            pictures.append(picture.convert("RGB"))
    return pictures


def export(network: Joined, path: Path) -> None:
    """Write tower and head as ONNX, large weights in 16 bits, computing in 32."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    torch.onnx.export(
        network.eval(),
        (torch.zeros(2, 3, CROP, CROP),),
        str(path),
        input_names=["pixels"],
        output_names=["embedding"],
        dynamic_axes={"pixels": {0: "n"}, "embedding": {0: "n"}},
        opset_version=17,
        dynamo=False,
    )
    model = onnx.load(path)
    casts = []
    for tensor in list(model.graph.initializer):
        weights = numpy_helper.to_array(tensor)
        if weights.dtype == np.float32 and weights.size >= HALVED:
            small = f"{tensor.name}_16"
            model.graph.initializer.remove(tensor)
            model.graph.initializer.append(
                numpy_helper.from_array(weights.astype(np.float16), small)
            )
            casts.append(helper.make_node("Cast", [small], [tensor.name], to=TensorProto.FLOAT))
    for cast in casts:
        model.graph.node.insert(0, cast)
    onnx.save(model, path)
