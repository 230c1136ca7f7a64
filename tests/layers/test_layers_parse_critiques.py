from archon.layers.parse_critiques import parse_critiques


def test_the_form_that_was_asked_for():
    reply = "[1]\nStrengths: short\nWeaknesses: wrong\n[2]\nStrengths: right\nWeaknesses: none"
    critiques, status = parse_critiques(reply, 2)
    assert critiques == ("Strengths: short\nWeaknesses: wrong", "Strengths: right\nWeaknesses: none")
    assert status == "ok"


def test_order_does_not_matter_since_ids_count():
    critiques, status = parse_critiques("[2] second\n[1] first", 2)
    assert critiques == ("first", "second")
    assert status == "ok"


def test_numbered_points_inside_a_critique_are_not_headings():
    critiques, status = parse_critiques("[1]\n1. good\n2. short\n[2]\n1. bad", 2)
    assert critiques == ("1. good\n2. short", "1. bad")
    assert status == "ok"


def test_other_headings_are_repaired():
    critiques, status = parse_critiques("### Candidate 1:\nfine\n\n**Candidate 2**\nwrong", 2)
    assert critiques[0] == "fine"
    assert critiques[1] == "wrong"
    assert status == "repaired"


def test_missing_out_of_range_and_repeated_ids():
    critiques, status = parse_critiques("[1] one\n[5] five\n[1] more", 3)
    assert critiques == ("one\nmore", None, None)
    assert status == "repaired"


def test_no_heading_at_all():
    assert parse_critiques("They are all fine.", 2) == ((None, None), "failed")
    assert parse_critiques("It is fine.", 1) == (("It is fine.",), "repaired")
    assert parse_critiques("", 1) == ((None,), "failed")
