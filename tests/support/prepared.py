"""What most benchmarks import and read, for the server of `forked` to import it once for them."""

import importlib

from searchlab.evaluation.datasets import load_dataset

for name in (
    *("pandas", "scipy.optimize", "scipy.stats", "sklearn.linear_model", "torch"),
    *("matplotlib.figure", "matplotlib.projections", "searchlab.cli", "searchlab.library.ingest"),
    *("searchlab.photos.images._lanczos", "searchlab.search.indexes.ivf.early_stop"),
    *("searchlab.search.filters._kernels.oklab", "searchlab.search.words._kernels.postings"),
    *("searchlab.search.engine", "benchmarks.common.recording"),
):
    importlib.import_module(name)
load_dataset("demo")
