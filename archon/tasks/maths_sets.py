"""GSM8K (grade-school word problems) and MATH-500 (competition problems with levels).

Source: Cobbe et al. 2021 (arXiv 2110.14168); Hendrycks et al. 2021 (arXiv 2103.03874), the 500 problems of Lightman et
al. 2023 (arXiv 2305.20050).
"""

from __future__ import annotations

from pathlib import Path

from archon.tasks.data_folder import Source, rows_of
from archon.tasks.grade_maths import MathsGrader
from archon.tasks.prompts import solve
from archon.tasks.protocol import TaskSet
from archon.types import Problem

GSM8K = Source(
    stem="gsm8k_test",
    fields=("id", "question", "final"),
    published="github.com/openai/grade-school-math, grade_school_math/data/test.jsonl, `final` being what follows ####",
)
MATH500 = Source(
    stem="math500",
    fields=("unique_id", "problem", "answer", "level"),
    published="github.com/openai/prm800k, math_splits/test.jsonl",
)


def gsm8k(folder: Path | None) -> TaskSet:
    """Return the test problems of GSM8K."""
    rows = rows_of(GSM8K, folder)
    problems = tuple(Problem(id=row["id"], prompt=solve(row["question"]), kind="maths") for row in rows)
    answers = {row["id"]: str(row["final"]) for row in rows}
    return TaskSet(name="gsm8k", problems=problems, grader=MathsGrader(answers=answers))


def math500(folder: Path | None) -> TaskSet:
    """Return MATH-500; a problem's difficulty is its level, 1 to 5."""
    rows = rows_of(MATH500, folder)
    problems = tuple(
        Problem(id=row["unique_id"], prompt=solve(row["problem"]), kind="maths", difficulty=int(row["level"]))
        for row in rows
    )
    answers = {row["unique_id"]: str(row["answer"]) for row in rows}
    return TaskSet(name="math500", problems=problems, grader=MathsGrader(answers=answers))
