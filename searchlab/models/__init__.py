"""Embedding models behind one protocol, and the registry that loads any of them.

A model is named by a spec. Nothing is downloaded, except where the spec names weights of
open_clip that are not on this machine yet:

    mini                                    the default; ships with searchlab
    palette                                 colours only
    captions                                the descriptions of the photos, not their pixels
    openclip:ViT-B-32/laion2b_s34b_b79k     open_clip with pretrained weights (extra `clip`)
    openclip:hf-hub:ORGANISATION/MODEL      the same, from the Hugging Face hub
    openclip:ViT-B-32/path/to/weights.pt    the same, from a file
    openclip:ViT-B-32/random-7              the same, untrained, from seed 7; for tests and timings
    openclip:ViT-B-32/TAG:bf16              the same, its image tower in bfloat16 (`:fp16`)
    onnx:FOLDER                             what `searchlab.models.onnx.export.export_onnx` wrote
    onnx:FOLDER:fp32                        the same in float32 (`:int8` in eight bits)
    adapted:FOLDER                          a model with small trained heads: `models adapt`
    migrated:FOLDER                         vectors of another model, mapped: `models migrate`
    vectors:FOLDER                          vectors that were computed elsewhere
    vectors:FOLDER@SPEC                     the same, and the model that made them
    hybrid:mini=0.7,captions=0.3            several of these, weighted
    my_package.module:Class                 a class of your own, where Python finds it

To add one: write a file with a class that keeps the contract of `Embedder`, and a line below; or
call `register_model` from a package of your own, or name it as an entry point `searchlab.models`.
`searchlab models check SPEC` tries the contract.
"""

from __future__ import annotations

from searchlab.models.adapted import load_adapted
from searchlab.models.captions import load_captions
from searchlab.models.hybrid import load_hybrid
from searchlab.models.migrated import load_migrated
from searchlab.models.mini.embedder import load_mini
from searchlab.models.onnx.embedder import load_onnx
from searchlab.models.openclip.embedder import OpenClipEmbedder
from searchlab.models.palette.embedder import PaletteEmbedder
from searchlab.models.protocol import Embedder, Embeddings, unit_rows
from searchlab.models.registry import MODELS, load_model, register_model
from searchlab.models.vectors.embedder import load_vectors

__all__ = ["MODELS", "Embedder", "Embeddings", "load_model", "register_model", "unit_rows"]

MODELS |= {
    "adapted": load_adapted,
    "captions": load_captions,
    "hybrid": load_hybrid,
    "migrated": load_migrated,
    "mini": load_mini,
    "onnx": load_onnx,
    "openclip": OpenClipEmbedder,
    "palette": PaletteEmbedder,
    "vectors": load_vectors,
}
