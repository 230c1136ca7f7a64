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


@lru_cache(maxsize=256)
def subsets(n: int, k: int, seed: int) -> NDArray[np.int32]:
    """Return indices of size-k subsets of n, shape (S, k), read-only; a draw is the same for the same arguments.

    Cached, because all problems of a run are voted over the same subsets: 80 MB at n = 10,000 and 100 values of k.
    """
    count = comb(n, k)
    if count <= EXACT_LIMIT:
        flat = np.fromiter(chain.from_iterable(combinations(range(n), k)), dtype=np.int32, count=count * k)
        out = flat.reshape(count, k)
    else:
        rng = np.random.default_rng((seed, n, k))
        out = np.empty((DRAWN, k), dtype=np.int32)
        for row in range(DRAWN):
            out[row] = rng.choice(n, size=k, replace=False, shuffle=False)
    out.flags.writeable = False
    return out
