"""The towers of an open_clip model as torch modules that leave out what cannot change a vector.

A causal text tower need not see the padding behind a text's end. And where a tower reads its vector
off one token, its last block is computed for that token alone, which saves about a 15th of a tower
of twelve blocks.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import torch
from torch import nn


def reads_only_before_end(model: Any) -> bool:
    """Whether what follows a text's end token cannot change its vector.

    This holds in a causal tower that pools at the end token; then padding need not be computed.
    """
    text = getattr(model, "text", model)
    pool = getattr(text, "text_pool_type", getattr(text, "pool_type", ""))
    is_plain = all(
        hasattr(text, name)
        for name in (
            "token_embedding",
            "positional_embedding",
            "transformer",
            "ln_final",
            "attn_mask",
        )
    )
    return (
        is_plain
        and text.attn_mask is not None
        and getattr(text, "cls_emb", None) is None
        and pool in ("argmax", "eos")
    )


class CutTextTower(nn.Module):
    """A causal text tower that takes tokens of any length; see `reads_only_before_end`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        text = getattr(model, "text", model)
        self.token_embedding = text.token_embedding
        self.positional_embedding = text.positional_embedding
        self.transformer = _shorten(text.transformer)
        self.ln_final = text.ln_final
        self.text_projection = text.text_projection
        self.register_buffer("attn_mask", text.attn_mask, persistent=False)
        pool = getattr(text, "text_pool_type", getattr(text, "pool_type", ""))
        eos_id = getattr(text, "text_eos_id", getattr(text, "eos_id", None))
        self.end_id = eos_id if pool == "eos" else None

    def ends(self, tokens: torch.Tensor) -> torch.Tensor:
        """Position of each text's end token, (n_texts,) int64."""
        if self.end_id is None:
            return tokens.argmax(dim=-1)
        is_end: torch.Tensor = tokens == self.end_id
        return is_end.int().argmax(dim=-1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Embed (n_texts, length) int64 tokens, cut anywhere after the last end; (n_texts, dim)."""
        length = tokens.shape[1]
        x = self.token_embedding(tokens) + self.positional_embedding[:length]
        mask = self.attn_mask[:length, :length]  # type: ignore[index]
        ends = self.ends(tokens)
        if isinstance(self.transformer, _ReadAtOneToken):
            end_states = self.transformer(x, ends, mask)
        else:
            end_states = _at(self.transformer(x, attn_mask=mask), ends)
        pooled: torch.Tensor = self.ln_final(end_states)[:, 0]  # (n_texts, width)
        if self.text_projection is None:
            return pooled
        if isinstance(self.text_projection, nn.Linear):
            projected: torch.Tensor = self.text_projection(pooled)
        else:
            projected = torch.matmul(pooled, self.text_projection)
        return projected


class ClassTokenTower(nn.Module):
    """A vision transformer of open_clip that reads its vector off the class token."""

    def __init__(self, visual: Any) -> None:
        super().__init__()
        self.visual = visual
        self.transformer = _shorten(visual.transformer)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embed (n_images, 3, height, width) pixels; (n_images, dim)."""
        class_states = self.transformer(self.visual._embeds(pixels))
        pooled: torch.Tensor = self.visual.ln_post(class_states)[:, 0]
        return pooled if self.visual.proj is None else pooled @ self.visual.proj


def image_tower(model: Any) -> Any:
    """Return what turns pixels into rows, shortened where that is known to change nothing."""
    visual = model.visual
    reads_class_token = (
        type(visual).__name__ == "VisionTransformer"
        and type(visual).__module__ == "open_clip.transformer"
        and visual.attn_pool is None
        and visual.pool_type == "tok"
        and not visual.output_tokens
        and _is_plain(visual.transformer)
    )
    return ClassTokenTower(visual).eval() if reads_class_token else model.encode_image


def _is_plain(transformer: Any) -> bool:
    """Whether a transformer is open_clip's own, of blocks that are its own."""
    blocks = getattr(transformer, "resblocks", ())
    return (
        type(transformer).__name__ == "Transformer"
        and type(transformer).__module__ == "open_clip.transformer"
        and transformer.batch_first
        and len(blocks) > 0
        and all(type(block).__name__ == "ResidualAttentionBlock" for block in blocks)
        and not any(hasattr(block, "ln_1_kv") for block in blocks)
    )


def _shorten(transformer: Any) -> Any:
    return _ReadAtOneToken(transformer) if _is_plain(transformer) else transformer


class _ReadAtOneToken(nn.Module):
    """A transformer whose last block is computed for one token of each sequence."""

    def __init__(self, transformer: Any) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(transformer.resblocks[:-1])
        self.last = transformer.resblocks[-1]

    def forward(
        self,
        x: torch.Tensor,
        where: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Read (n, length, width) sequences at one token; (n, 1, width).

        Args:
            x: (n, length, width) sequences.
            where: (n,) int64, the token of each sequence that is read; the first if left out.
            mask: (length, length), added to the weights of attention; only given with `where`.
        """
        for block in self.blocks:
            x = block(x, attn_mask=mask)
        last: Any = self.last
        keys = last.ln_1(x)
        key_mask = None if mask is None or where is None else mask[where]  # (n, length)
        attended = last.attn(
            _at(keys, where), keys, keys, need_weights=False, key_padding_mask=key_mask
        )[0]
        states = _at(x, where) + last.ls_1(attended)
        output: torch.Tensor = states + last.ls_2(last.mlp(last.ln_2(states)))
        return output


def _at(x: torch.Tensor, where: torch.Tensor | None) -> torch.Tensor:
    """Take one token of each sequence; (n, 1, width)."""
    if where is None:
        return x[:, :1]
    # `gather` instead of an index, about which the ONNX exporter warns.
    return x.gather(1, where[:, None, None].expand(-1, 1, x.shape[2]))


class _Attention(nn.Module):
    """`nn.MultiheadAttention` for self attention, written so that tracing fixes no length.

    Args:
        source: The module whose weights are used.
        separate_query: Whether queries are fewer than keys; if not, both are of the same tokens,
            and one product gives both.
    """

    def __init__(self, source: nn.MultiheadAttention, *, separate_query: bool) -> None:
        super().__init__()
        self.n_heads = source.num_heads
        width = source.embed_dim
        cuts = [0, width, 3 * width] if separate_query else [0, 3 * width]
        self.products = nn.ModuleList(
            _linear(source.in_proj_weight, source.in_proj_bias, slice(*rows))
            for rows in pairwise(cuts)
        )
        self.out = source.out_proj

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        *_: Any,
        attn_mask: torch.Tensor | None = None,
        key_padding_mask: torch.Tensor | None = None,
        **__: Any,
    ) -> tuple[torch.Tensor, None]:
        n, length, width = query.shape
        head_width = width // self.n_heads
        if len(self.products) == 1:
            q, k, v = self._heads(self.products[0](query), 3)
        else:
            (q,) = self._heads(self.products[0](query), 1)
            k, v = self._heads(self.products[1](key), 2)
        weights = (q * head_width**-0.5) @ k.transpose(-2, -1)
        if attn_mask is not None:
            weights = weights + attn_mask
        if key_padding_mask is not None:
            weights = weights + key_padding_mask[:, None, None]
        mixed = weights.softmax(dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(n, length, width)), None

    def _heads(self, rows: torch.Tensor, parts: int) -> tuple[torch.Tensor, ...]:
        """Split (n, length, parts * width) rows into parts, (n, n_heads, length, head_width)."""
        n, length, width = rows.shape
        split = rows.reshape(n, length, parts, self.n_heads, width // parts // self.n_heads)
        return split.permute(2, 0, 3, 1, 4).unbind(0)


def _linear(weight: torch.Tensor, bias: torch.Tensor | None, rows: slice) -> nn.Linear:
    part = weight[rows]
    linear = nn.Linear(part.shape[1], part.shape[0], bias=bias is not None)
    linear.weight = nn.Parameter(part, requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(bias[rows], requires_grad=False)
    return linear


def make_exportable(tower: nn.Module) -> nn.Module:
    """Copy a tower, its attention replaced by modules that ONNX can express for any length."""
    tower = copy.deepcopy(tower)
    modules = list(tower.modules())
    last = [module.last for module in modules if isinstance(module, _ReadAtOneToken)]
    for module in modules:
        for name, child in list(module.named_children()):
            if (
                isinstance(child, nn.MultiheadAttention)
                and child.batch_first
                and child.in_proj_weight is not None
                and child.bias_k is None
            ):
                setattr(module, name, _Attention(child, separate_query=module in last))
    return tower.eval()
