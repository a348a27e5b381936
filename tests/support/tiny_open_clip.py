"""A small model of open_clip with untrained weights."""

import json

import pytest

from searchlab.models import load_model
from searchlab.models.canaries import canary_image
from searchlab.models.openclip.torchvision_shim import import_torchvision

VISION = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 16, "head_width": 32}
TEXT = {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2}
CONFIGS = {
    "oc-tiny": {"embed_dim": 32, "vision_cfg": VISION, "text_cfg": TEXT},
    "oc-wider": {"embed_dim": 48, "vision_cfg": VISION, "text_cfg": TEXT},
    "oc-custom": {"embed_dim": 32, "custom_text": True, "vision_cfg": VISION, "text_cfg": TEXT},
    "oc-averaged": {
        "embed_dim": 32,
        "vision_cfg": {**VISION, "pool_type": "avg"},
        "text_cfg": TEXT,
    },
    "oc-scaled": {
        "embed_dim": 32,
        "vision_cfg": {**VISION, "ls_init_value": 0.3, "final_ln_after_pool": True},
        "text_cfg": {**TEXT, "ls_init_value": 0.5},
    },
    "oc-bidirectional": {
        "embed_dim": 32,
        "custom_text": True,
        "vision_cfg": VISION,
        "text_cfg": {**TEXT, "no_causal_mask": True},
    },
}
TEXTS = ["a dog", "", "a photo of two people walking along a beach at sunset", "word " * 300, "🐈"]
PICTURES = [canary_image(seed, size=60) for seed in range(3)]


@pytest.fixture(scope="module")
def open_clip(tmp_path_factory):
    import_torchvision()
    import open_clip
    import torch

    torch.set_num_threads(1)  # the models are tiny, threads would only wait for each other
    folder = tmp_path_factory.mktemp("configs")
    for name, config in CONFIGS.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    return open_clip


@pytest.fixture(scope="module")
def tiny(open_clip):
    return load_model("openclip:oc-tiny/random-1")
