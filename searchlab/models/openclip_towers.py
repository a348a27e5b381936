"""The towers of an open_clip model as torch modules that cut texts and can be exported."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn


def reads_only_before_end(model: Any) -> bool:
    """Whether what follows a text's end token cannot change its vector.

    So it is in a causal tower that pools at the end token; then padding need not be computed.
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
        self.transformer = text.transformer
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
        x = self.transformer(x, attn_mask=self.attn_mask[:length, :length])  # type: ignore[index]
        x = self.ln_final(x)  # (n_texts, length, width)
        # Gathered rather than indexed, which the exporter warns of.
        where = self.ends(tokens)[:, None, None].expand(-1, 1, x.shape[2])
        pooled: torch.Tensor = x.gather(1, where)[:, 0]
        if self.text_projection is None:
            return pooled
        if isinstance(self.text_projection, nn.Linear):
            projected: torch.Tensor = self.text_projection(pooled)
        else:
            projected = torch.matmul(pooled, self.text_projection)
        return projected


class _Attention(nn.Module):
    """`nn.MultiheadAttention` for self attention, written so that tracing bakes in no length."""

    def __init__(self, source: nn.MultiheadAttention) -> None:
        super().__init__()
        self.n_heads = source.num_heads
        width = source.embed_dim
        self.qkv = nn.Linear(width, 3 * width, bias=source.in_proj_bias is not None)
        self.qkv.weight = source.in_proj_weight
        if source.in_proj_bias is not None:
            self.qkv.bias = source.in_proj_bias
        self.out = source.out_proj

    def forward(
        self, query: torch.Tensor, *_: Any, attn_mask: torch.Tensor | None = None, **__: Any
    ) -> tuple[torch.Tensor, None]:
        n, length, width = query.shape
        split = self.qkv(query).reshape(n, length, 3, self.n_heads, width // self.n_heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)  # each (n, n_heads, length, head_width)
        weights = (q * (width // self.n_heads) ** -0.5) @ k.transpose(-2, -1)
        if attn_mask is not None:
            weights = weights + attn_mask
        mixed = weights.softmax(dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(n, length, width)), None


def exportable(tower: nn.Module) -> nn.Module:
    """Copy a tower, with its attention written out."""
    tower = copy.deepcopy(tower)
    for module in list(tower.modules()):
        for name, child in list(module.named_children()):
            if (
                isinstance(child, nn.MultiheadAttention)
                and child.batch_first
                and child.in_proj_weight is not None
                and child.bias_k is None
            ):
                setattr(module, name, _Attention(child))
    return tower.eval()
