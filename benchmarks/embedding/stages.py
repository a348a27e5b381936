"""Time by stage: a watch that adds up times, and what each model does in each stage."""

from __future__ import annotations

import io
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from PIL import Image

EAGER = "open_clip eager"
ANALYSIS = "no model: colours, blur hash, thumbnail"


class Watch:
    """Adds up wall and CPU time by stage; an inner stage is not counted to the outer one.

    CPU time is that of all threads of the process.
    """

    def __init__(self) -> None:
        self.wall: defaultdict[str, float] = defaultdict(float)
        self.cpu: defaultdict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = (0.0, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside the context to a stage."""
        self._lap()
        self._open.append(name)
        try:
            yield
        finally:
            self._lap()
            self._open.pop()

    def count_calls(self, owner: Any, attribute: str, name: str) -> None:
        """Count every call of the function `owner.attribute` to a stage, by replacing it."""
        original = getattr(owner, attribute)

        @wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return original(*args, **kwargs)

        setattr(owner, attribute, timed)

    def reset(self) -> None:
        """Set all times to zero."""
        self.wall.clear()
        self.cpu.clear()

    def _lap(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        if self._open:
            self.wall[self._open[-1]] += wall - self._since[0]
            self.cpu[self._open[-1]] += cpu - self._since[1]
        self._since = wall, cpu


@dataclass(frozen=True)
class Pipeline:
    """The functions that a picture or a text passes in one model.

    Attributes:
        decode: Makes a picture of a file's content.
        prepare: Makes of a picture what `embed_images` takes. Preprocessing that happens inside
            `embed_images` is watched there.
        embed_images: Embeds pictures; None for a model that reads no pixels.
        embed_texts: Embeds texts; None for a model that reads no texts.
        embed_cached: Embeds one text and caches its vector; None for a model without a cache.
    """

    decode: Callable[[bytes], Any]
    prepare: Callable[[Any], Any]
    embed_images: Callable[[Sequence[Any]], Any] | None
    embed_texts: Callable[[Sequence[str]], Any] | None
    embed_cached: Callable[[str], Any] | None = None


def load_pipeline(spec: str, watch: Watch) -> Pipeline:
    """Load what is timed under a name: a model's spec, `EAGER` or `ANALYSIS`."""
    if spec == ANALYSIS:
        return _load_analysis()
    return _load_eager(watch) if spec == EAGER else _load_ours(spec, watch)


def _load_ours(spec: str, watch: Watch) -> Pipeline:
    """Decode and scale as `searchlab index` does, then embed."""
    from searchlab.models import load_model
    from searchlab.models.mini import framing
    from searchlab.models.mini.pieces import Pieces
    from searchlab.models.onnx.clip_text import ClipTokenizer
    from searchlab.models.preprocess import Preprocess
    from searchlab.photos.images.decode import WORKING_SIDE, for_model, open_rgb
    from searchlab.photos.images.resize import fast_resize
    from searchlab.search.query_reading import TextVectors

    model = load_model(spec)
    side = max(WORKING_SIDE, model.input_size)
    watch.count_calls(framing, "pixels_of", "preprocess")
    watch.count_calls(Preprocess, "pixels", "preprocess")
    watch.count_calls(Preprocess, "fit", "preprocess")
    watch.count_calls(Pieces, "encode", "tokenise")
    watch.count_calls(ClipTokenizer, "__call__", "tokenise")
    if spec.startswith("openclip:"):
        from open_clip.tokenizer import SimpleTokenizer

        from searchlab.models.devices import Feed

        watch.count_calls(SimpleTokenizer, "__call__", "tokenise")
        watch.count_calls(Feed, "_normalise", "preprocess")
    return Pipeline(
        decode=lambda content: open_rgb(content, min_side=side).image,
        prepare=lambda image: for_model(image, model.input_size, resize=fast_resize),
        embed_images=model.encode_images if model.reads == "image" else None,
        embed_texts=model.encode_texts,
        embed_cached=TextVectors(model).of,
    )


def _load_eager(watch: Watch) -> Pipeline:
    """Do what open_clip's own examples do: Pillow, its transform, torch."""
    from searchlab.models.openclip.torchvision_shim import import_torchvision

    import_torchvision()
    import open_clip
    import torch

    torch.manual_seed(7)
    model = open_clip.create_model("ViT-B-32", load_weights=False)
    model.eval()
    transform = open_clip.image_transform(model.visual.image_size, is_train=False)
    tokenizer = open_clip.get_tokenizer("ViT-B-32")
    watch.count_calls(type(tokenizer), "__call__", "tokenise")

    def decode(content: bytes) -> Image.Image:
        return Image.open(io.BytesIO(content)).convert("RGB")

    def embed_images(pixels: Sequence[Any]) -> Any:
        with torch.inference_mode():
            return model.encode_image(torch.stack(list(pixels)), normalize=True).numpy()

    def embed_texts(texts: Sequence[str]) -> Any:
        with torch.inference_mode():
            return model.encode_text(tokenizer(list(texts)), normalize=True).numpy()

    return Pipeline(decode, transform, embed_images, embed_texts)


def _load_analysis() -> Pipeline:
    """Do what indexing does with a picture besides embedding it."""
    from searchlab.library.decoding import THUMBNAIL_SIDE
    from searchlab.photos.images.decode import WORKING_SIDE, analyse, open_rgb, shrink, thumbnail
    from searchlab.photos.images.resize import fast_resize

    def analyse_all(pictures: Sequence[Any]) -> None:
        for decoded in pictures:
            analyse(decoded)
            small = shrink(decoded.image, WORKING_SIDE, resize=fast_resize)
            thumbnail(small, THUMBNAIL_SIDE, resize=fast_resize)

    def decode(content: bytes) -> Any:
        return open_rgb(content, min_side=WORKING_SIDE)

    return Pipeline(decode, lambda decoded: decoded, analyse_all, None)
