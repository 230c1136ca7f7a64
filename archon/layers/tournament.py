"""Scores from one-against-one comparisons: Copeland's points and Bradley–Terry strengths.

Both take a square matrix of wins: `wins[i][j]` is what i took from its meetings with j, a tie counting half for each.
A pair that never met has 0 on both sides. Scores lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence

Wins = Sequence[Sequence[float]]


def wins_from(results: dict[tuple[int, int], int | None], count: int) -> tuple[tuple[float, ...], ...]:
    """Return the wins matrix of a tournament in which each pair met in both orders.

    Args:
        results: by (shown first, shown second): 1 or 2 for the better one as shown, 0 for a tie, None unreadable.
        count: how many took part.

    A pair whose two orders disagree is a tie, since the order decided it; one with an unreadable order did not meet.
    """
    wins = [[0.0] * count for _ in range(count)]
    for i in range(count):
        for j in range(i + 1, count):
            there, back = results.get((i, j)), results.get((j, i))
            if there is None or back is None:
                continue
            won = 1.0 if (there, back) == (1, 2) else 0.0 if (there, back) == (2, 1) else 0.5
            wins[i][j], wins[j][i] = won, 1.0 - won
    return tuple(tuple(row) for row in wins)


def copeland(wins: Wins) -> tuple[float, ...]:
    """Return the share of its opponents that each one beat, a tie counting half; 0.5 for one that never met any.

    Source: Copeland 1951, scaled to [0, 1].
    """
    return tuple(_share(i, wins) for i in range(len(wins)))


def _share(i: int, wins: Wins) -> float:
    points, met = 0.0, 0
    for j in range(len(wins)):
        mine, theirs = wins[i][j], wins[j][i]
        if j != i and mine + theirs > 0:
            met += 1
            points += 1.0 if mine > theirs else 0.5 if mine == theirs else 0.0
    return points / met if met else 0.5


def bradley_terry(wins: Wins, *, tolerance: float = 1e-10, most_rounds: int = 10_000) -> tuple[float, ...]:
    """Return each one's probability of beating an average opponent.

    Source: Bradley and Terry 1952, fitted by the MM updates of Hunter 2004 (Annals of Statistics 32). Differs:
    everyone also tied once with a ghost of strength 1, so strengths stay finite for those who won or lost everything,
    and the fit is unique when the comparisons fall into separate groups.
    """
    count = len(wins)
    strengths = [1.0] * count
    for _ in range(most_rounds):
        updated = [_update(i, wins, strengths) for i in range(count)]
        change = max((abs(new - old) for new, old in zip(updated, strengths, strict=True)), default=0.0)
        strengths = updated
        if change < tolerance:
            break
    return tuple(strength / (strength + 1.0) for strength in strengths)


def _update(i: int, wins: Wins, strengths: Sequence[float]) -> float:
    won = 0.5 + sum(wins[i][j] for j in range(len(wins)) if j != i)
    weight = 1.0 / (strengths[i] + 1.0)
    for j in range(len(wins)):
        meetings = wins[i][j] + wins[j][i]
        if j != i and meetings > 0:
            weight += meetings / (strengths[i] + strengths[j])
    return won / weight
