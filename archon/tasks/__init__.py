"""Problem sets and graders: what to solve, and whether an answer is right.

`load_tasks("humaneval", limit=20)` gives a `TaskSet`: problems as a solver may see them, and a grader that alone holds
the key. `extract_code`, `extract_answer` and `stated_examples` are the pure readers of answers and statements that
layers use too.
"""

from archon.tasks.examples import stated_examples
from archon.tasks.extract import extract_answer, extract_code
from archon.tasks.load import TASK_NAMES, load_tasks
from archon.tasks.protocol import Grader, TaskSet

__all__ = [
    "TASK_NAMES",
    "Grader",
    "TaskSet",
    "extract_answer",
    "extract_code",
    "load_tasks",
    "stated_examples",
]
