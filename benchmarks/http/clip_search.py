"""Search as it is usually written, to be timed as a peer: open_clip and a matrix in one process.

    python benchmarks/http/clip_search.py N_PHOTOS

The weights are random: starting and embedding take the same time with trained ones, and none ship.
"""

from __future__ import annotations

import sys

import numpy as np

from searchlab.models.openclip.torchvision_shim import import_torchvision


def main() -> None:
    """Load the model, embed a text, rank."""
    import_torchvision()
    import open_clip
    import torch

    model = open_clip.create_model("ViT-B-32", load_weights=False)
    model.eval()
    tokens = open_clip.get_tokenizer("ViT-B-32")(["castle"])
    photos = np.random.default_rng(0).standard_normal((int(sys.argv[1]), 512), dtype=np.float32)
    with torch.inference_mode():
        query = model.encode_text(tokens).numpy()[0]
    print(np.argsort(-(photos @ query))[:20])


if __name__ == "__main__":
    main()
