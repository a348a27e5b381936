"""What is known of pictures that were never decoded, and models that read their texts."""

import hashlib

import numpy as np

from searchlab.library.cache import Facts
from searchlab.models.protocol import unit_rows
from searchlab.photos.descriptions import Sight

RED = Facts(640, 480, 0xE01010, (("#e01010", 0.8), ("#ffffff", 0.2)), "LKO2?U%2Tw=w]~RBVZRi")
TALL_BLUE = Facts(30, 40, 0x1010E0, (("#1010e0", 1.0),), "LKO2?U%2Tw=w]~RBVZRi")


class Letters:
    """Embeds a text by the lengths of its words; counts the texts."""

    name = "letters"
    model_id = "letters-000000000001"
    dim = 4
    reads = "text"
    input_size = 0

    def __init__(self):
        self.texts = []

    @property
    def parts(self):
        return ((self, 1.0),)

    def encode_texts(self, texts):
        self.texts += texts
        rows = np.zeros((len(texts), 4))
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[len(word) % 4] += 1
        return unit_rows(rows)


class Tagging(Letters):
    """A model of pictures that names what it sees."""

    name = "tagging"
    model_id = "tagging-000000000001"
    reads = "image"

    def sights(self, embeddings, k):
        return [Sight((("red fox", float(row[0])), ("dingo", 0.6))[:k]) for row in embeddings]


def digest_of(name):
    return hashlib.sha256(name.encode()).hexdigest()
