"""Let the plus test programs run where numpy is not installed.

HumanEval+ and MBPP+ tests import numpy for `allclose` on results and for three names in type checks. A sandbox has the
standard library only, so their import line becomes one that falls back on this class with the same rule.
"""

from __future__ import annotations

import re

_IMPORT = re.compile(r"^import numpy as np[ \t]*$", re.MULTILINE)
_STAND_IN = """\
try:
    import numpy as np
except ImportError:
    class np:
        class ndarray: pass
        class float64: pass
        class float32: pass
        @staticmethod
        def allclose(a, b, rtol=1e-05, atol=1e-08):
            if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
                a = a if isinstance(a, (list, tuple)) else [a] * len(b)
                b = b if isinstance(b, (list, tuple)) else [b] * len(a)
                assert len(a) == len(b), "shapes differ"
                return all(np.allclose(x, y, rtol, atol) for x, y in zip(a, b))
            return bool(a == b or abs(a - b) <= atol + rtol * abs(b))
"""


def with_stand_in(test: str) -> str:
    """Return a test program whose `import numpy as np` falls back on the stand-in."""
    return _IMPORT.sub(lambda _: _STAND_IN, test)
