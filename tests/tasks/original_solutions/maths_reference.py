"""How each answer of archon/tasks/original/maths.jsonl is worked out: one derivation for each problem id."""

from fractions import Fraction
from math import comb


def climbs(steps):
    return 1 if steps == 0 else sum(climbs(steps - leap) for leap in (1, 2, 3) if leap <= steps)


DERIVATIONS = {
    "maths-1-bakery": lambda: 6 * 12 - 50,
    "maths-1-bus-fare": lambda: 2 * 3 + 5 * 2,
    "maths-1-ribbon": lambda: Fraction(84, 7),
    "maths-1-savings": lambda: 45 - 18 + 7,
    "maths-1-fence": lambda: 4 * 9,
    "maths-1-apples": lambda: 5 * 24 - 13,
    "maths-1-reading": lambda: 4 * 15 + 22,
    "maths-1-stickers": lambda: Fraction(51, 3),
    "maths-1-rain": lambda: 12 + 2 * 12 + 5,
    "maths-1-water": lambda: 200 - 8 * 15,
    "maths-1-half-price": lambda: Fraction(64, 2) - 7,
    "maths-1-chess": lambda: 9 * 2 + 4,
    "maths-1-eggs": lambda: 20 - 5 * 3,
    "maths-1-minutes": lambda: 60 + 50 + 15,
    "maths-2-paint": lambda: -(-3 * 25 // 14),
    "maths-2-discount": lambda: 480 * Fraction(75, 100) * Fraction(110, 100),
    "maths-2-two-trains": lambda: Fraction(390, 70 + 60),
    "maths-2-mean-score": lambda: 5 * 82 - (75 + 90 + 88 + 79),
    "maths-2-juice-mix": lambda: Fraction(2, 9) * 1350,
    "maths-2-ages": lambda: next(s for s in range(1, 100) if 4 * s + 6 == 3 * (s + 6)),
    "maths-2-coin-jar": lambda: Fraction(143 - 40 * 2, 3),
    "maths-2-tap-fill": lambda: 1 / (Fraction(1, 12) + Fraction(1, 6)),
    "maths-2-pizza": lambda: (1 - Fraction(1, 3)) * (1 - Fraction(1, 4)),
    "maths-2-printer": lambda: Fraction(12 * 33, 18),
    "maths-2-rope": lambda: Fraction(100 + 16, 2),
    "maths-2-taxi": lambda: (25 - 3 - 4) / Fraction(3, 2),
    "maths-2-marbles": lambda: Fraction(5 + 4, 5 + 3 + 4),
    "maths-2-overtime": lambda: 38 * 16 + (43 - 38) * 16 * Fraction(3, 2),
    "maths-2-tiles": lambda: Fraction(360 * 240, 30 * 30),
    "maths-3-return-trip": lambda: 2 / (Fraction(1, 10) + Fraction(1, 40)),
    "maths-3-acid": lambda: 12 * Fraction(35, 20) - 12,
    "maths-3-handshakes": lambda: next(n for n in range(2, 1000) if n * (n - 1) // 2 - 1 == 119),
    "maths-3-two-dice": lambda: Fraction(
        sum(1 for a in range(1, 7) for b in range(1, 7) if a + b in (2, 3, 5, 7, 11)), 36
    ),
    "maths-3-digits": lambda: sum(1 for n in range(100, 1000) if sum(map(int, str(n))) == 9),
    "maths-3-leap-stairs": lambda: climbs(9),
    "maths-3-clock-hands": lambda: abs(Fraction(276 * 360, 720) - 36 * 6),
    "maths-3-remainders": lambda: next(n for n in range(1, 1000) if (n % 5, n % 7, n % 9) == (3, 4, 5)),
    "maths-3-workers": lambda: 5 + Fraction(6 * 15 - 6 * 5, 4),
    "maths-3-committee": lambda: comb(5, 1) * comb(6, 3) + comb(5, 2) * comb(6, 2),
    "maths-3-zeros": lambda: 130 // 5 + 130 // 25 + 130 // 125,
    "maths-3-socks": lambda: Fraction(comb(6, 2) + comb(4, 2), comb(10, 2)),
    "maths-3-bouncing": lambda: 18 + 2 * sum(18 * Fraction(2, 3) ** n for n in (1, 2, 3)),
    "maths-3-divisors": lambda: sum(1 for r in range(1, 85) if 7200 % (r * r) == 0),
}
