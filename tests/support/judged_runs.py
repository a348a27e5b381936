"""Random judgments, and runs of any length, for tests of metrics."""


def random_task(rng, *, n_queries):
    """Make graded judgments, with at least one photo of grade 2, and runs of any length."""
    photos = [f"p{number:02}" for number in range(30)]
    qrels, run = {}, {}
    for number in range(n_queries):
        judged = rng.choice(photos, size=rng.integers(1, 12), replace=False)
        grades = [int(rng.integers(2, 4)), *rng.integers(0, 4, len(judged) - 1).tolist()]
        qrels[f"q{number:02}"] = dict(zip(map(str, judged), grades, strict=True))
        ranked = rng.permutation(photos)[: rng.integers(0, 25)]
        run[f"q{number:02}"] = [str(p) for p in ranked]
    return qrels, run
