import pytest
from hypothesis import given
from hypothesis import strategies as st

from archon.report.records import LayerUse, Record, Sample
from archon.run.codec import dumps, loads
from archon.types import Candidate, Image, Message, Problem, Span, Trace, UnitTest, Usage, Verdict

texts = st.text(max_size=20)
usages = st.builds(
    Usage,
    calls=st.integers(0, 9),
    prompt_tokens=st.none() | st.integers(0, 99),
    cost_usd=st.none() | st.floats(0, 9),
    critical_s=st.floats(0, 9),
)


@given(texts, usages, st.none() | st.booleans(), st.none() | st.floats(0, 1))
def test_a_trace_comes_back_as_it_was(text: str, usage: Usage, passed: bool | None, score: float | None) -> None:
    picture = Image(url="data:image/png;base64,AA==")
    problem = Problem(id="p", prompt=(text, picture), kind="code", history=(Message(role="system", content=text),))
    verdict = Verdict(passed=passed, by="verifier", score=score, tests=(True, None, False))
    candidate = Candidate(id="generator#0", text=text, parents=("a", "b"), verdicts=(verdict,), score=score)
    trace = Trace(problem=problem, candidates=(candidate,), tests=(UnitTest(text=text, source="model"),))
    trace = trace.spend(Span(layer="generator", kind="generator", usage=usage, parses=(("ok", 3),)))
    assert loads(Trace, dumps(trace)) == trace


@given(texts, usages, st.none() | st.booleans())
def test_a_record_comes_back_as_it_was(text: str, usage: Usage, correct: bool | None) -> None:
    record = Record(
        system="s",
        task="t",
        problem_id=text,
        status="answered",
        correct=correct,
        samples=(Sample(correct=correct, answer=text),),
        layers=(LayerUse(layer="l", kind="k", usage=usage, parses=(("failed", 1),)),),
        usage=usage,
    )
    assert loads(Record, dumps(record)) == record


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"system": "s"', "unexpected end|EOF|end of data"),
        (b"[]", "is not an object with the fields of Record"),
        (b'{"sistem": "s"}', "no field 'sistem'"),
        (b'{"system": "s"}', "missing"),
        (b'{"system":"s","task":"t","problem_id":"p","status":"won","correct":true}', "'won' is not one of"),
        (b'{"system":"s","task":"t","problem_id":7,"status":"answered","correct":true}', "7 is not of type str"),
        (b'{"system":"s","task":"t","problem_id":"p","status":"answered","correct":1}', "1 fits none of"),
    ],
)
def test_damaged_data_is_refused_with_the_reason(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        loads(Record, data)
