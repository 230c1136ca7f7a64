import pytest

from archon.layers.parse_choice import parse_choice, parse_verdict


@pytest.mark.parametrize(
    ("reply", "choice", "status"),
    [
        ("[1]", 1, "ok"),
        (" [2]\n", 2, "ok"),
        ("[tie]", 0, "ok"),
        ("[TIE]", 0, "ok"),
        ("[2] is better.", 2, "repaired"),
        ("Candidate 1", 1, "repaired"),
        ("Answer: 2", 2, "repaired"),
        ("2", 2, "repaired"),
        ("tie", 0, "repaired"),
        ("[1] is worse than [2]", None, "failed"),
        ("Both are fine", None, "failed"),
        ("12", None, "failed"),
        ("", None, "failed"),
        ("[3]", None, "failed"),
    ],
)
def test_choice(reply, choice, status):
    assert parse_choice(reply) == (choice, status)


@pytest.mark.parametrize(
    ("reply", "passed", "status"),
    [
        ("[Correct]", True, "ok"),
        ("[Incorrect]", False, "ok"),
        ("[INCORRECT]", False, "ok"),
        ("The candidate is wrong: [Incorrect].", False, "repaired"),
        ("Correct.", True, "repaired"),
        ("**Incorrect**", False, "repaired"),
        ("Verdict: correct", True, "repaired"),
        ("The answer is not correct.", None, "failed"),
        ("[Correct] or [Incorrect]", None, "failed"),
        ("The answer is incorrect because it is not correct", None, "failed"),
        ("Correct reasoning, wrong result", None, "failed"),
        ("", None, "failed"),
    ],
)
def test_verdict_is_never_read_from_part_of_a_word_or_sentence(reply, passed, status):
    assert parse_verdict(reply) == (passed, status)
