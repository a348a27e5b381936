"""Write a network as ONNX with a tower of 8 bits that gives the same on every processor.

Convolutions and what lies between them are quantised statically: ranges are measured on training
photos, weights have 7 bits with one scale per channel (processors without VNNI add products of 8
bits in 16 bits, which overflow). The head's weights are only stored in 8 bits, with one scale per
output, and are computed with in 32 bits.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from searchlab.models.mini import framing
from searchlab.models.mini.embedder import open_session
from searchlab.training.mini.heads import Floats
from searchlab.training.mini.photo_tower import EarlyTower, EmbeddingNetwork, PhotoReader, Tower

OPSET = 17

AXES = {
    "pixels": {0: "n", 2: "height", 3: "width"},
    "cells": {0: "n", 2: "rows", 3: "columns"},
}
"""Axes whose size varies, by the name of an input or output; where none are given, the first."""
SMALL = 4096  # A tensor with fewer numbers stays in 32 bits.


def export(
    network: EmbeddingNetwork | Tower | EarlyTower, outputs: Sequence[str], path: Path
) -> None:
    """Write a network as ONNX in 32 bits, with padding as part of the convolutions."""
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with warnings.catch_warnings():
        # The newer exporter needs onnxscript. This one warns that it is deprecated, and that it
        # does not fold the padding, which `_move_padding` does.
        for category in (DeprecationWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        torch.onnx.export(
            network.eval(),
            (torch.zeros(2, 3, *framing.SIZES[0]),),
            str(path),
            input_names=["pixels"],
            output_names=list(outputs),
            dynamic_axes={name: AXES.get(name, {0: "n"}) for name in ("pixels", *outputs)},
            opset_version=OPSET,
            dynamo=False,
        )
    with _silence_warnings():
        quant_pre_process(str(path), str(path), skip_symbolic_shape=True)
    model = onnx.load(path)
    _move_padding(model.graph)
    onnx.save(model, path)


def quantise(
    network: EmbeddingNetwork | Tower | EarlyTower,
    outputs: Sequence[str],
    pictures: Sequence[Image.Image],
    path: Path,
) -> None:
    """Write a network as ONNX in 8 bits.

    Args:
        network: What to write.
        outputs: Names of its outputs.
        pictures: RGB training photos from which the ranges of activations are taken.
        path: The file to write.
    """
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        export(network, outputs, plain)
        head = [node.name for node in onnx.load(plain).graph.node if "/head/" in node.name]
        with _silence_warnings():
            quantize_static(
                str(plain),
                str(path),
                _Pictures(pictures),
                quant_format=QuantFormat.QDQ,
                op_types_to_quantize=["Conv", "Clip", "Add"],
                nodes_to_exclude=head,
                per_channel=True,
                reduce_range=True,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
            )
    model = onnx.load(path)
    _store_in_8_bits(model.graph)
    onnx.save(model, path)


def open_reader(path: Path, *, threads: int = 1) -> PhotoReader:
    """Open a file with outputs `features` and `logits` as a function of arrays."""
    session = open_session(path, threads)

    def read(pixels: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        features, logits = session.run(["features", "logits"], {"pixels": pixels})
        return features, logits

    return read


def open_cell_reader(path: Path, *, threads: int = 1) -> Callable[[Floats], Floats]:
    """Open a file with output `cells`, the early part of a tower, as a function of arrays."""
    session = open_session(path, threads)

    def read(pixels: Floats) -> Floats:
        cells: Floats = session.run(["cells"], {"pixels": pixels})[0]
        return cells

    return read


@contextmanager
def _silence_warnings() -> Iterator[None]:
    """Keep onnxruntime from warning about every constant that it drops."""
    import onnxruntime

    warnings_and_worse, errors = 2, 3
    onnxruntime.set_default_logger_severity(errors)
    try:
        yield
    finally:
        onnxruntime.set_default_logger_severity(warnings_and_worse)


class _Pictures:
    """Framed pictures one by one, as the calibration of onnxruntime wants them."""

    def __init__(self, pictures: Sequence[Image.Image]) -> None:
        self._batches = framing.batches(pictures, 1)

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(({"pixels": pixels} for _, pixels in self._batches), None)


def _move_padding(graph: Any) -> None:
    """Move the padding of `Pad` nodes into the convolutions that follow them."""
    from onnx import numpy_helper

    constants = {tensor.name: tensor for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    for node in list(graph.node):
        pad = makers.get(node.input[0]) if node.op_type == "Conv" else None
        if pad is None or pad.op_type != "Pad":
            continue
        pads = numpy_helper.to_array(constants[pad.input[1]]).tolist()
        for attribute in node.attribute:
            if attribute.name == "pads":
                attribute.ints[:] = [pads[2], pads[3], pads[6], pads[7]]
        node.input[0] = pad.input[0]
        graph.node.remove(pad)


def _store_in_8_bits(graph: Any) -> None:
    """Store large 32-bit matrices in 8 bits with a scale per output; they are used in 32 bits."""
    from onnx import TensorProto, helper, numpy_helper

    # torch exports Gemm with a transposed matrix, in which outputs are the rows.
    transposed = {
        node.input[1]
        for node in graph.node
        if node.op_type == "Gemm" and any(a.name == "transB" and a.i for a in node.attribute)
    }
    for tensor in list(graph.initializer):
        weights = numpy_helper.to_array(tensor)
        if weights.dtype != np.float32 or weights.ndim != 2 or weights.size < SMALL:
            continue
        axis = 1 if tensor.name in transposed else 0
        scale = np.abs(weights).max(axis=axis, keepdims=True) / np.float32(127) + np.float32(1e-12)
        small = np.rint(weights / scale).astype(np.int8)
        graph.initializer.remove(tensor)
        name = tensor.name
        graph.initializer.append(numpy_helper.from_array(small, f"{name}_8"))
        graph.initializer.append(numpy_helper.from_array(scale, f"{name}_scale"))
        cast = helper.make_node("Cast", [f"{name}_8"], [f"{name}_cast"], to=TensorProto.FLOAT)
        graph.node.insert(0, helper.make_node("Mul", [f"{name}_cast", f"{name}_scale"], [name]))
        graph.node.insert(0, cast)
