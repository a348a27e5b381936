"""A model for workers in other processes: it embeds mean colours and writes down every picture."""

import hashlib
import os
import signal
import time
from pathlib import Path

import numpy as np

from searchlab.models.protocol import Embedder, unit_rows
from tests.support.waiting import wait_until

SPEC = "tests.support.counting_model:Counting"
BLUE = 7
"""How blue the pictures are that count, 0 to 255."""


class Counting(Embedder):
    """Notes each picture in a folder, in which files tell it what to do.

    `die` kills the next worker, `slow` slows all, `fail` fails all, `hold` holds whoever has a
    picture without red until the file is gone.

    Args:
        rest: The folder.
    """

    dim = 3
    reads = "image"
    input_size = 8

    def __init__(self, rest):
        self.folder = Path(rest)
        self.name = f"{SPEC}:{rest}"
        self.model_id = f"counting-{hashlib.sha256(rest.encode()).hexdigest()[:12]}"

    def fingerprints(self):
        return dict.fromkeys(("weights", "preprocessing", "tokenizer"), "0" * 12)

    def encode_texts(self, texts):
        digests = [hashlib.sha256(text.encode()).digest()[:3] for text in texts]
        return unit_rows(np.array([list(digest) for digest in digests], dtype=float) + 1)

    def encode_images(self, images):
        colours = np.array([np.asarray(image).reshape(-1, 3).mean(axis=0) for image in images])
        rounded = colours.round().astype(int).tolist()
        if all(blue == BLUE for _, _, blue in rounded):  # no probe of whoever loads the model
            self._note(rounded)
        return unit_rows(colours + 1)

    def _note(self, colours):
        if any(red == 0 for red, _, _ in colours):
            wait_until(lambda: not (self.folder / "hold").exists())
        if (self.folder / "fail").exists():
            raise ValueError("asked to fail")  # noqa: EM101
        if (self.folder / "slow").exists():
            time.sleep(0.2)
        with (self.folder / f"{os.getpid()}.seen").open("a") as file:
            file.writelines(f"{colour}\n" for colour in colours)
        dying = self.folder / "die"
        if dying.exists():
            dying.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def seen(folder):
    """Every picture that was embedded, by its mean colour, as often as it was."""
    lines = [file.read_text().splitlines() for file in Path(folder).glob("*.seen")]
    return [line for part in lines for line in part]
