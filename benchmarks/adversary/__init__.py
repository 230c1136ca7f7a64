"""Programs that attack a sandbox or its judge, each with the verdict that it must get on every engine.

One file per kind of attack; `cases.py` lists them all, `attack.py` runs one and looks at the machine around it.
The same cases are tests (`tests/sandbox/test_sandbox_corpus.py`) and a measurement (`python -m benchmarks.adversary`).
"""
