"""Size-k subsets of n samples: every one where they are few, else a seeded draw.

Large Language Monkeys (arXiv 2407.21787) draws 100 subsets for its selector curves; here every subset is taken when
there are at most 2,000 (all k for n <= 13), and 500 are drawn otherwise: 2.2 points of standard error on one problem
at worst, 0.2 on the mean of 164.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

EXACT_LIMIT = 2000
DRAWN = 500


@lru_cache(maxsize=64)
def subsets(n: int, k: int, seed: int) -> NDArray[np.intp]:
    """Return indices of size-k subsets of n, shape (S, k), read-only; a draw is the same for the same arguments."""
    count = comb(n, k)
    if count <= EXACT_LIMIT:
        flat = np.fromiter(chain.from_iterable(combinations(range(n), k)), dtype=np.intp, count=count * k)
        out = flat.reshape(count, k)
    else:
        rng = np.random.default_rng((seed, n, k))
        out = np.stack([rng.choice(n, size=k, replace=False, shuffle=False) for _ in range(DRAWN)])
    out.flags.writeable = False
    return out
