"""Time by stage: a watch that adds up, and what each model does in each stage."""

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
    """Adds up wall and CPU time by stage; a stage inside another one is taken off the outer one.

    CPU time is that of all threads of the process.
    """

    def __init__(self) -> None:
        self.wall: defaultdict[str, float] = defaultdict(float)
        self.cpu: defaultdict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = (0.0, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside towards a stage."""
        self._lap()
        self._open.append(name)
        try:
            yield
        finally:
            self._lap()
            self._open.pop()

    def over(self, owner: Any, attribute: str, name: str) -> None:
        """Count every call of a function, found as `owner.attribute`, towards a stage."""
        whole = getattr(owner, attribute)

        @wraps(whole)
        def counted(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return whole(*args, **kwargs)

        setattr(owner, attribute, counted)

    def reset(self) -> None:
        """Begin anew."""
        self.wall.clear()
        self.cpu.clear()

    def _lap(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        if self._open:
            self.wall[self._open[-1]] += wall - self._since[0]
            self.cpu[self._open[-1]] += cpu - self._since[1]
        self._since = wall, cpu


@dataclass(frozen=True)
class Lane:
    """The way of a picture or a text through one model.

    Attributes:
        decode: Content of a file -> picture.
        prepare: Picture -> what `embed_images` takes; preprocessing inside of that is watched.
        embed_images: None for a model that reads no pixels.
        embed_texts: None for what reads no texts.
        known_text: Embeds one text and keeps its vector; None for what keeps none.
    """

    decode: Callable[[bytes], Any]
    prepare: Callable[[Any], Any]
    embed_images: Callable[[Sequence[Any]], Any] | None
    embed_texts: Callable[[Sequence[str]], Any] | None
    known_text: Callable[[str], Any] | None = None


def lane_of(spec: str, watch: Watch) -> Lane:
    """Load what is timed under a name: a model's spec, `EAGER` or `ANALYSIS`."""
    if spec == ANALYSIS:
        return _analysis()
    return _eager(watch) if spec == EAGER else _ours(spec, watch)


def _ours(spec: str, watch: Watch) -> Lane:
    """Decode and scale as `searchlab index` does, then embed."""
    from searchlab.models import load_model
    from searchlab.models.mini import framing
    from searchlab.models.mini.text import Pieces
    from searchlab.models.onnx.clip_text import ClipTokenizer
    from searchlab.models.preprocess import Preprocess
    from searchlab.photos.images.decode import WORKING_SIDE, for_model, open_rgb
    from searchlab.photos.images.resize import fast_resize
    from searchlab.search.query_embedding import TextVectors

    model = load_model(spec)
    side = max(WORKING_SIDE, model.input_size)
    watch.over(framing, "pixels_of", "preprocess")
    watch.over(Preprocess, "pixels", "preprocess")
    watch.over(Preprocess, "fit", "preprocess")
    watch.over(Pieces, "encode", "tokenise")
    watch.over(ClipTokenizer, "__call__", "tokenise")
    if spec.startswith("openclip:"):
        from open_clip.tokenizer import SimpleTokenizer

        from searchlab.models.devices import Feed

        watch.over(SimpleTokenizer, "__call__", "tokenise")
        watch.over(Feed, "_normalise", "preprocess")
    return Lane(
        decode=lambda content: open_rgb(content, min_side=side).image,
        prepare=lambda image: for_model(image, model.input_size, resize=fast_resize),
        embed_images=model.encode_images if model.reads == "image" else None,
        embed_texts=model.encode_texts,
        known_text=TextVectors(model).of,
    )


def _eager(watch: Watch) -> Lane:
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
    watch.over(type(tokenizer), "__call__", "tokenise")

    def decode(content: bytes) -> Image.Image:
        return Image.open(io.BytesIO(content)).convert("RGB")

    def embed_images(pixels: Sequence[Any]) -> Any:
        with torch.inference_mode():
            return model.encode_image(torch.stack(list(pixels)), normalize=True).numpy()

    def embed_texts(texts: Sequence[str]) -> Any:
        with torch.inference_mode():
            return model.encode_text(tokenizer(list(texts)), normalize=True).numpy()

    return Lane(decode, transform, embed_images, embed_texts)


def _analysis() -> Lane:
    """What indexing does with a picture beside embedding it."""
    from searchlab.library.embed import THUMBNAIL_SIDE
    from searchlab.photos.images.decode import WORKING_SIDE, analyse, open_rgb, shrink, thumbnail
    from searchlab.photos.images.resize import fast_resize

    def look(pictures: Sequence[Any]) -> None:
        for decoded in pictures:
            analyse(decoded)
            small = shrink(decoded.image, WORKING_SIDE, resize=fast_resize)
            thumbnail(small, THUMBNAIL_SIDE, resize=fast_resize)

    def decode(content: bytes) -> Any:
        return open_rgb(content, min_side=WORKING_SIDE)

    return Lane(decode, lambda decoded: decoded, look, None)
