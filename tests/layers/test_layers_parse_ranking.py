import itertools
import random

import pytest

from archon.layers.parse_ranking import parse_ranking

TABLE = [
    # reply, candidates, ids in order, status
    ("[2] > [1] > [3]", 3, [2, 1, 3], "ok"),
    ("  [3] > [2] > [1]\n", 3, [3, 2, 1], "ok"),
    ("Answer: [2] > [1] > [3]", 3, [2, 1, 3], "repaired"),
    ("The answer is:\n[3] > [1] > [2]", 3, [3, 1, 2], "repaired"),
    ("2 > 1 > 3", 3, [2, 1, 3], "repaired"),
    ("[2]>[1]>[3]", 3, [2, 1, 3], "repaired"),
    ("1 > 2", 2, [1, 2], "repaired"),
    ("[3] > [1]", 3, [3, 1, 2], "repaired"),  # a missing id goes behind
    ("[3] > [3] > [1] > [2]", 3, [3, 1, 2], "repaired"),  # a repeated id counts once
    ("[7] > [2] > [0] > [1]", 3, [2, 1, 3], "repaired"),  # ids out of range are left out
    ("[3-5] > [1] > [2]", 5, [3, 4, 5, 1, 2], "repaired"),
    ("[5-3] > [1]", 5, [5, 4, 3, 1, 2], "repaired"),
    ("[3-5]", 5, [3, 4, 5, 1, 2], "repaired"),
    ("[2, 3, 1]", 3, [2, 3, 1], "repaired"),
    ('{"ranking": [3, 1, 2]}', 3, [3, 1, 2], "repaired"),
    ('```json\n{"ranking": ["[2]", "[1]"]}\n```', 2, [2, 1], "repaired"),
    ("[2]\n[3]\n[1]", 3, [2, 3, 1], "repaired"),
    ("1. [3]\n2. [1]\n3. [2]", 3, [3, 1, 2], "repaired"),
    ("3\n1\n2", 3, [3, 1, 2], "repaired"),
    ("Candidate 2 > Candidate 1 > Candidate 3", 3, [2, 1, 3], "repaired"),
    ("**Ranking:** [1] > [3] > [2]\nBecause [2] is wrong.", 3, [1, 3, 2], "repaired"),
    ("I compared [1] and [2]. Ranking: 2, 1", 2, [2, 1], "repaired"),
    ("[2] = [3] > [1]", 3, [2, 3, 1], "repaired"),
    ("[2]", 3, [2, 1, 3], "repaired"),
    ("The best one is [3], the others fail.", 3, [3, 1, 2], "repaired"),
    ("Answer: [3]", 3, [3, 1, 2], "repaired"),
    ("first [1] > [2]\nfinally: [2] > [1] > [3]", 3, [2, 1, 3], "repaired"),
    ("", 3, [1, 2, 3], "failed"),
    ("I cannot decide between them.", 3, [1, 2, 3], "failed"),
    ("[1] is worse than [2] in many ways, but [3] has 4 flaws.", 3, [1, 2, 3], "failed"),
    ("[8] > [9]", 3, [1, 2, 3], "failed"),
    ("The best is [1]. The best is [2].", 2, [1, 2], "failed"),
    ("\x00\ud800[", 2, [1, 2], "failed"),
]


@pytest.mark.parametrize(("reply", "count", "ids", "status"), TABLE)
def test_a_reply_reads_as_a_permutation_with_a_status(reply, count, ids, status):
    order, read = parse_ranking(reply, count)
    assert ([i + 1 for i in order], read) == (ids, status)


def test_every_strict_permutation_is_read_as_it_is():
    for order in itertools.permutations(range(4)):
        reply = " > ".join(f"[{i + 1}]" for i in order)
        assert parse_ranking(reply, 4) == (order, "ok")


def test_any_text_gives_a_permutation():
    pieces = [
        "[1]",
        "[2]",
        "[9]",
        "3",
        ">",
        "-",
        "\n",
        ",",
        "[",
        "]",
        "best",
        "Answer:",
        "{",
        "}",
        " ",
        "9" * 30,
        "[2-",
    ]
    draw = random.Random(7)
    for _ in range(3000):
        text = "".join(draw.choices(pieces, k=draw.randint(0, 15)))
        order, _ = parse_ranking(text, 4)
        assert sorted(order) == [0, 1, 2, 3]


def test_a_huge_range_is_cheap():
    order, status = parse_ranking("[1-9999] > [2]", 3)
    assert (order, status) == ((0, 1, 2), "repaired")
