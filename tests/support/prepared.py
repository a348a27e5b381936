"""What most benchmarks import and read, for the server of `forked` to import it once for them."""

import importlib

from searchlab.evaluation.datasets import load_dataset
from searchlab.models.openclip.weights import import_open_clip

for name in (
    *("pandas", "scipy.optimize", "scipy.stats", "sklearn.linear_model", "torch"),
    "torch._dynamo",  # by the first optimizer otherwise, for some seconds
    *("matplotlib.figure", "matplotlib.projections", "searchlab.cli", "searchlab.library.ingest"),
    *("searchlab.photos.images._lanczos", "searchlab.search.indexes.ivf.early_stop"),
    *("searchlab.search.filters._kernels.oklab", "searchlab.search.words._kernels.postings"),
    *("searchlab.search.engine", "benchmarks.common.recording"),
):
    importlib.import_module(name)
import_open_clip()
load_dataset("demo")
