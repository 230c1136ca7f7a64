"""How a problem is put to a chat model."""

from __future__ import annotations


def complete_function(stub: str) -> str:
    """Return the statement for a function that is given by its signature and docstring."""
    body = stub.strip("\n")
    return (
        "Complete the following Python function. Reply with the whole function, with the imports and helpers that it "
        f"needs, in one ```python code block.\n\n```python\n{body}\n```"
    )


def write_function(statement: str, entry_point: str, example: str) -> str:
    """Return the statement for a function that is given by a sentence and one assertion."""
    return (
        f"{statement.strip()}\n\nName the Python function `{entry_point}`. Reply with the whole function, with the "
        f"imports and helpers that it needs, in one ```python code block. It must satisfy:\n\n{example.strip()}"
    )


def solve(question: str) -> str:
    """Return the statement of a maths problem."""
    return f"Solve this problem step by step. Put the final answer in \\boxed{{}}.\n\n{question.strip()}"
