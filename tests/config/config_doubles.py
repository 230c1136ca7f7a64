"""A model whose every reply can be read, whatever the prompt: what a plan's exact calls are promised for."""

import re

from archon.sandbox.fake import ScriptedSandbox
from archon.testing import ScriptedModel
from archon.types import Problem, text_of

TEXT = Problem(id="text", prompt="Which is longer, a mile or a kilometre?")
MATHS = Problem(id="maths", kind="maths", prompt="What is 6 times 7?")
CODE = Problem(
    id="code",
    kind="code",
    entry_point="double",
    prompt=(
        "Complete this function.\n\n"
        '```python\ndef double(x):\n    """Double x.\n\n    >>> double(2)\n    4\n    """\n```'
    ),
)


def readable(request, index):
    """Answer a request as its last turn asks for."""
    last = text_of(request.messages[-1].content)
    ids = sorted({int(i) for i in re.findall(r"<candidate (\d+)>", last)})
    if "strengths and weaknesses" in last.lower() or "Strengths:" in last:
        return "\n".join(f"[{i}]\nStrengths: short\nWeaknesses: none" for i in ids)
    if "from best to worst" in last:
        return " > ".join(f"[{i}]" for i in reversed(ids))
    if "[tie]" in last:
        return "[2]"
    if "[Correct] or [Incorrect]" in last:
        return "[Correct]"
    if "[Passed] or [Failed]" in last:
        numbers = re.findall(r"^Test (\d+): \[Passed\] or \[Failed\]", last, re.MULTILINE)
        return "\n".join(f"Test {i}: [Passed]" for i in numbers)
    asked = last.rpartition("</problem>")[2]
    if "short statements" in asked:
        return "\n".join(f"{i}. The answer states fact {i}." for i in range(1, 1 + _first_number(asked)))
    if "assert double(" in asked:
        return "\n".join(f"assert double({i}) == {2 * i}" for i in range(3, 3 + _first_number(asked)))
    return f"answer {index}"


def _first_number(text):
    return int(re.search(r"\d+", text)[0])


def readable_models(pipeline):
    """Return a scripted model for every name that a compiled pipeline uses."""
    return {name: ScriptedModel(readable, name=name) for name in pipeline.named_models}


async def planned_and_run(pipeline, problem, path):
    """Run a compiled pipeline on models that can all be read; return its plan and its trace. Failures quote `path`.

    Whatever the pipeline, the calls that its layers book are those that its models saw, and the plan bounds the tokens.
    """
    plan = pipeline.plan(problem)
    models = readable_models(pipeline)
    # An engine that is down judges nothing and asks no model, so calls are what they are with one that works.
    trace = await pipeline.resolved(models, ScriptedSandbox([])).run(problem)
    bad = {"failed", "truncated", "call_failed"}
    assert [(span.layer, parse) for span in trace.spans for parse in span.parses if parse[0] in bad] == [], path
    assert sum(span.usage.calls for span in trace.spans) == sum(model.calls for model in models.values()), path
    assert trace.usage.tokens <= plan.max_tokens, path
    return plan, trace
