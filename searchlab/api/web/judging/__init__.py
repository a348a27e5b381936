"""The pages at /judge: the judging sessions of the notebooks, in the browser."""
