import time
from email.utils import formatdate

import pytest
from multidict import CIMultiDict

from archon.errors import RateLimited
from archon.models.http_errors import detail_of, error_of, retry_after_s


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After-Ms": "soon", "Retry-After": "9"}, 9.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": ""}, None),
    ],
)
def test_retry_after_in_seconds(headers, seconds):
    assert retry_after_s(CIMultiDict(headers)) == seconds


def test_retry_after_as_a_date():
    assert retry_after_s({"retry-after": formatdate(time.time() + 30, usegmt=True)}) == pytest.approx(30, abs=1.5)
    assert retry_after_s({"retry-after": formatdate(time.time() - 30, usegmt=True)}) == 0.0


def test_a_rate_limit_carries_its_retry_after():
    error = error_of(429, b"", {"retry-after": "3"}, url="http://h", secret=None)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == 3.0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "bad", "param": "n"}}', "bad (parameter 'n')"),
        (b'{"error": "bad"}', "bad"),
        (b'{"object": "error", "message": "two\\nlines"}', "two lines"),
        (b'{"detail": "gone"}', "gone"),
        (b"<html>\n oops </html>", "<html> oops </html>"),
        (b"", "(empty body)"),
        (b"[1]", "[1]"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_what_a_body_says_in_one_line(body, said):
    assert detail_of(body) == said


def test_a_secret_at_the_cut_is_not_half_said():
    said = detail_of(b"x" * 495 + b"SECRETKEY", "SECRETKEY")
    assert "SECR" not in said
    assert len(said) <= 500
