"""Write the files that the towers need at run time, and the record of how they were made."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from searchlab.files import sha256_of
from searchlab.models.canaries import canary_image
from searchlab.models.mini import artefacts, framing
from searchlab.models.mini import embedder as mini
from searchlab.models.mini.labels import LABEL_VECTORS_FILE, LABELS_FILE
from searchlab.models.mini.pieces import Pieces
from searchlab.models.mini.text import MIXER_FILE, SCALES_FILE, TABLE_FILE, Mixer, TextTower, unpack
from searchlab.models.protocol import PhotosAtLarge
from searchlab.training.mini.heads import DIM, Floats, unit
from searchlab.training.mini.photo_tower import EmbeddingNetwork, open_rgb
from searchlab.training.mini.quantise import quantise as quantise_network
from searchlab.training.mini.student import quantise

CANARY_TEXTS = (
    "a photo of a dog",
    "ein rotes Fahrrad am Strand",
    "一座雪山",
    "قطة صغيرة",
    "старый деревянный дом",
)
CANARY_SEEDS = (1, 2)
AT_LARGE = 2000  # Photos that stand for all photos there are.
RECORDED = 16  # Components of a canary's row that are recorded.


def write(
    folder: Path,
    *,
    scores: Mapping[str, float],
    table: Floats,
    mixer: Mixer,
    network: EmbeddingNetwork,
    pictures: Sequence[Image.Image],
    labels: Mapping[str, Floats],
    kinds: Mapping[str, Sequence[str]],
    sources: Sequence[Mapping[str, str]],
) -> None:
    """Write every file of the model into a folder, once all are made.

    Args:
        folder: Made if absent; files of an older build are replaced, others stay.
        scores: Pieces with log probabilities, in row order.
        table: (n_pieces, width) vectors of the pieces.
        mixer: Makes a text's row of the vectors of its pieces.
        network: Image tower with its head.
        pictures: RGB training photos from which the ranges of the 8-bit network are taken.
        labels: Readable label -> its (dim,) unit row, for descriptions of photos.
        kinds: Readable label -> the kinds that it is of.
        sources: What it was made from, as `materials.list_materials` lists it.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        build = Path(temporary)
        for path in folder.glob("*.txt"):  # Licences, which the record lists too.
            shutil.copyfile(path, build / path.name)
        rows, scales = quantise(table)
        np.save(build / TABLE_FILE, rows)
        np.save(build / SCALES_FILE, scales)
        Pieces(scores).save(build)
        halves = {name: part.astype(np.float16) for name, part in mixer._asdict().items()}
        np.savez(build / MIXER_FILE, **halves)
        vectors = np.stack(list(labels.values())).astype(np.float16)
        np.save(build / LABEL_VECTORS_FILE, vectors)
        listed = "".join("\t".join([label, *kinds[label]]) + "\n" for label in labels)
        (build / LABELS_FILE).write_text(listed, encoding="utf-8", newline="\n")
        quantise_network(network, ["embedding"], pictures, build / mini.IMAGE_FILE)
        write_record(
            build,
            dim=mixer.direct.shape[1] + 1,
            agreement=measure_agreement(build, table, network, pictures[:100]),
            sources=sources,
        )
        # A folder without a record is refused, so a mix of old and new files is never loaded.
        (folder / artefacts.RECORD_FILE).unlink(missing_ok=True)
        for path in sorted(build.iterdir(), key=lambda path: path.name == artefacts.RECORD_FILE):
            path.replace(folder / path.name)


def write_at_large(
    folder: Path, photos: Sequence[Path], *, seed: int, advance: Callable[[int], object]
) -> None:
    """Write what photos at large are to the model in a folder, by some of given photos.

    Args:
        folder: Holds every other file of the model.
        photos: Files of varied photos, of which `AT_LARGE` are drawn.
        seed: Seed of the draw.
        advance: Called with the number of photos that were just embedded.
    """
    model = mini.MiniEmbedder(folder, threads=torch.get_num_threads())
    drawn = random.Random(seed).sample(sorted(photos), min(AT_LARGE, len(photos)))
    rows = []
    for start in range(0, len(drawn), mini.BATCH):
        batch = open_rgb(drawn[start : start + mini.BATCH])
        rows.append(model.encode_images(batch))
        advance(len(batch))
    PhotosAtLarge.of_vectors(np.concatenate(rows)).save(folder / mini.AT_LARGE_FILE)


def measure_agreement(
    folder: Path, table: Floats, network: EmbeddingNetwork, pictures: Sequence[Image.Image]
) -> dict[str, float]:
    """Measure cosines between what was trained and what is stored, of table rows and photos."""
    scales = np.load(folder / SCALES_FILE).astype(np.float32)
    stored = unpack(np.load(folder / TABLE_FILE), scales)
    is_nonzero = np.linalg.norm(table, axis=1) > 1e-3
    session = mini.open_session(folder / mini.IMAGE_FILE, threads=2)
    small = mini.embed(session, pictures, DIM + 1)
    large = np.zeros_like(small)
    with torch.inference_mode():
        for batch, pixels in framing.batches(pictures, 8):
            for view in framing.views(pixels):
                large[batch] += network.eval()(torch.from_numpy(view)).numpy()
    table_cosines = (unit(stored[is_nonzero]) * unit(table[is_nonzero])).sum(axis=1)
    photo_cosines = (unit(large) * small).sum(axis=1)
    return {
        "table, 4 bits, mean": float(table_cosines.mean()),
        "table, 4 bits, least": float(table_cosines.min()),
        "photos, 8 bits, mean": float(photo_cosines.mean()),
        "photos, 8 bits, least": float(photo_cosines.min()),
    }


def write_record(
    folder: Path,
    *,
    dim: int,
    agreement: dict[str, float],
    sources: Sequence[Mapping[str, str]],
) -> None:
    """Write `model.json`: sizes, preprocessing, sources, versions and canaries."""
    import onnx

    texts = TextTower(folder, dim=dim).encode(CANARY_TEXTS)
    session = mini.open_session(folder / mini.IMAGE_FILE, threads=2)
    photos = mini.embed(session, [canary_image(seed) for seed in CANARY_SEEDS], dim)
    record = {
        "format": artefacts.FORMAT,
        "name": "mini",
        "model_id": mini.model_id(folder),
        "dim": dim,
        "preprocessing": framing.PREPROCESSING,
        "files": {
            path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
            for path in sorted(folder.iterdir())
            if path.suffix in (".npy", ".npz", ".onnx", ".trie", ".txt")
        },
        "built_with": {
            "numpy": np.__version__,
            "onnx": onnx.__version__,
            "torch": torch.__version__,
        },
        "cosine_with_float32": {what: round(x, 5) for what, x in agreement.items()},
        "sources": [dict(source) for source in sources],
        "canaries": {
            "text": _record_canaries(CANARY_TEXTS, texts),
            "image": _record_canaries(CANARY_SEEDS, photos),
        },
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / artefacts.RECORD_FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def _record_canaries(
    probes: tuple[str, ...] | tuple[int, ...], rows: Floats
) -> list[dict[str, object]]:
    return [
        {"probe": probe, "expected": [round(float(x), 5) for x in row[:RECORDED]]}
        for probe, row in zip(probes, rows, strict=True)
    ]
