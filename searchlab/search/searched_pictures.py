"""SearchedPicture: what is left of a picture that somebody searches by, in a signed token.

The token stands in the addresses of pages, so the picture itself is stored nowhere and every
process can go on from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.errors import CursorError, ExpiredCursorError
from searchlab.search.cursors import open_signed, sign

_AUDIENCE = "picture"


class _PictureValues(msgspec.Struct, array_like=True):
    model_id: str
    blur_hash: str
    vector: bytes


_DECODER = msgspec.msgpack.Decoder(_PictureValues)


@dataclass(frozen=True, kw_only=True)
class SearchedPicture:
    """A picture by its embedding.

    Attributes:
        vector: (dim,) float32, at the half precision of the token.
        blur_hash: What it looks like, roughly.
        model_id: The model that embedded it.
    """

    vector: NDArray[np.float32]
    blur_hash: str
    model_id: str

    @property
    def stand_in(self) -> Image.Image:
        """A picture for a `Query`, whose embedding is `vector`: the picture itself is gone."""
        return Image.new("RGB", (1, 1))

    def check_model(self, model_id: str) -> None:
        """Check that a library is searched with the model that embedded the picture.

        Raises:
            ExpiredCursorError: The library has another model now.
        """
        if self.model_id != model_id:
            msg = (
                f"picture must be one that the model {model_id!r} has seen, got one of "
                f"{self.model_id!r}; the library has changed since, choose the picture again"
            )
            raise ExpiredCursorError(msg)

    def seal(self, key: bytes) -> str:
        """Return the token; only `unseal` with the same key opens it."""
        content = _PictureValues(self.model_id, self.blur_hash, self.vector.astype("<f2").tobytes())
        return sign(msgspec.msgpack.encode(content), key, audience=_AUDIENCE)

    @classmethod
    def unseal(cls, token: str, key: bytes) -> SearchedPicture:
        """Open a token.

        Raises:
            CursorError: It was not made with this key, or was changed.
        """
        try:
            values = _DECODER.decode(open_signed(token, key, audience=_AUDIENCE))
        except (ValueError, msgspec.MsgspecError) as error:
            msg = "picture must be the address of a search by picture, got another text"
            raise CursorError(msg) from error
        vector = np.frombuffer(values.vector, dtype="<f2").astype(np.float32)
        return cls(vector=vector, blur_hash=values.blur_hash, model_id=values.model_id)
