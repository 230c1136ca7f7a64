"""One right program for each problem of archon/tasks/original/code.jsonl, named like its entry point."""

from itertools import pairwise


def warm_days(temperatures, threshold):
    return sum(1 for value in temperatures if value > threshold)


def initials(name):
    return "".join(word[0].upper() + "." for word in name.split())


def light_load(weights, limit):
    return sum(weight for weight in weights if weight <= limit)


def shout(words):
    return " ".join(word.upper() + "!" for word in words)


def even_positions(items):
    return items[::2]


def seat_label(row, seat):
    return chr(ord("A") + row - 1) + str(seat)


def swap_ends(items):
    if len(items) < 2:
        return list(items)
    return [items[-1], *items[1:-1], items[0]]


def longest_line(lines):
    return max((len(line) for line in lines), default=0)


def countdown(n):
    return list(range(n, -1, -1))


def mask_code(code):
    return "*" * max(0, len(code) - 4) + code[-4:]


def vowel_starts(words):
    return len([word for word in words if word[:1].lower() in ("a", "e", "i", "o", "u")])


def temperature_gap(temperatures):
    return max(temperatures) - min(temperatures) if temperatures else 0


def repeat_each(items, times):
    return [item for item in items for _ in range(times)]


def chairs_left(tables, chairs_per_table, guests):
    return max(0, tables * chairs_per_table - guests)


def bus_peak(stops):
    aboard = peak = 0
    for on, off in stops:
        aboard += on - off
        peak = max(peak, aboard)
    return peak


def words_by_length(words):
    groups = {}
    for word in set(words):
        groups.setdefault(len(word), []).append(word)
    return {length: sorted(group) for length, group in groups.items()}


def squeeze_runs(text):
    result, at = "", 0
    while at < len(text):
        end = at
        while end < len(text) and text[end] == text[at]:
            end += 1
        result += text[at] + (str(end - at) if end - at > 1 else "")
        at = end
    return result


def parking_fee(minutes):
    if minutes <= 30:
        return 0
    hours = -(-(minutes - 30) // 60)
    return min(15, 2 * hours)


def merge_shifts(shifts):
    merged = []
    for start, end in sorted(shifts):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def turn_ring(items, steps):
    if not items:
        return []
    steps %= len(items)
    return items[len(items) - steps :] + items[: len(items) - steps]


def runners_up(scores):
    values = sorted(set(scores.values()), reverse=True)
    return sorted(name for name, score in scores.items() if score == values[1]) if len(values) > 1 else []


def diagonal_gap(matrix):
    size = len(matrix)
    return abs(sum(matrix[i][i] for i in range(size)) - sum(matrix[i][size - 1 - i] for i in range(size)))


def clock_after(clock, minutes):
    hours, mins = clock.split(":")
    total = (int(hours) * 60 + int(mins) + minutes) % 1440
    return f"{total // 60:02d}:{total % 60:02d}"


def first_spellings(words):
    seen, kept = set(), []
    for word in words:
        if word.lower() not in seen:
            seen.add(word.lower())
            kept.append(word)
    return kept


def fill_orders(stock, orders):
    left = dict(stock)
    for item, amount in orders:
        if left.get(item, 0) >= amount:
            left[item] = left.get(item, 0) - amount
    return {item: amount for item, amount in left.items() if amount > 0}


def wrap_words(text, width):
    lines = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def digit_rounds(n):
    rounds = 0
    while n > 9:
        n = sum(int(digit) for digit in str(n))
        rounds += 1
    return rounds


def longest_streak(days):
    best = now = 0
    previous = None
    for day in sorted(set(days)):
        now = now + 1 if previous is not None and day == previous + 1 else 1
        best = max(best, now)
        previous = day
    return best


def cheapest_climb(costs, reach):
    best = [0] + [float("inf")] * len(costs)
    for at in range(1, len(costs) + 1):
        best[at] = costs[at - 1] + min(best[max(0, at - reach) : at])
    return best[-1]


def longest_balanced(text):
    pairs = {")": "(", "]": "[", "}": "{"}
    longest = 0
    for start in range(len(text)):
        stack = []
        for end in range(start, len(text)):
            if text[end] in "([{":
                stack.append(text[end])
            elif not stack or stack.pop() != pairs[text[end]]:
                break
            if not stack:
                longest = max(longest, end - start + 1)
    return longest


def calculate(expression):
    tokens = list(expression.replace(" ", ""))
    at = 0

    def factor():
        nonlocal at
        if tokens[at] == "-":
            at += 1
            return -factor()
        if tokens[at] == "(":
            at += 1
            value = total()
            at += 1
            return value
        digits = ""
        while at < len(tokens) and tokens[at].isdigit():
            digits += tokens[at]
            at += 1
        return int(digits)

    def term():
        nonlocal at
        value = factor()
        while at < len(tokens) and tokens[at] == "*":
            at += 1
            value *= factor()
        return value

    def total():
        nonlocal at
        value = term()
        while at < len(tokens) and tokens[at] in "+-":
            sign = 1 if tokens[at] == "+" else -1
            at += 1
            value += sign * term()
        return value

    return total()


def work_order(needs):
    left = {job: set(before) for job, before in needs.items()}
    for before in needs.values():
        for job in before:
            left.setdefault(job, set())
    order = []
    while left:
        ready = sorted(job for job, before in left.items() if not before)
        if not ready:
            return None
        order.append(ready[0])
        del left[ready[0]]
        for before in left.values():
            before.discard(ready[0])
    return order


def split_ways(text, words):
    ways = [1] + [0] * len(text)
    for end in range(1, len(text) + 1):
        ways[end] = sum(ways[end - len(word)] for word in set(words) if word and text[:end].endswith(word))
    return ways[-1]


def ring_islands(rows):
    height, width = len(rows), len(rows[0]) if rows else 0
    seen, areas = set(), []
    for start in ((r, c) for r in range(height) for c in range(width)):
        if rows[start[0]][start[1]] != "#" or start in seen:
            continue
        seen.add(start)
        todo, area = [start], 0
        while todo:
            r, c = todo.pop()
            area += 1
            for nr, nc in ((r + 1, c), (r - 1, c), (r, (c + 1) % width), (r, (c - 1) % width)):
                if 0 <= nr < height and rows[nr][nc] == "#" and (nr, nc) not in seen:
                    seen.add((nr, nc))
                    todo.append((nr, nc))
        areas.append(area)
    return sorted(areas, reverse=True)


def camel_moves(size, start, goal, blocked):
    seen, edge, moves = {tuple(start)}, [tuple(start)], 0
    walls = {tuple(cell) for cell in blocked}
    while edge:
        if tuple(goal) in edge:
            return moves
        reached = []
        for x, y in edge:
            for dx, dy in ((3, 1), (3, -1), (-3, 1), (-3, -1), (1, 3), (1, -3), (-1, 3), (-1, -3)):
                cell = (x + dx, y + dy)
                if 0 <= cell[0] < size and 0 <= cell[1] < size and cell not in walls and cell not in seen:
                    seen.add(cell)
                    reached.append(cell)
        edge, moves = reached, moves + 1
    return -1


def purse_ways(purse, amount):
    ways = [1] + [0] * amount
    for value, count in purse.items():
        ways = [
            sum(ways[total - value * used] for used in range(count + 1) if total >= value * used)
            for total in range(amount + 1)
        ]
    return ways[amount]


def roman_sum(text):
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    for numeral in text.split("+"):
        digits = [values[char] for char in numeral.strip()]
        for at, digit in enumerate(digits):
            total += -digit if digit < max(digits[at + 1 :], default=0) else digit
    result = ""
    for value, letters in (
        (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
        (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ):  # fmt: skip
        while total >= value:
            result += letters
            total -= value
    return result


def left_spiral(matrix):
    height, width = len(matrix), len(matrix[0]) if matrix else 0
    row, column, step = 0, 0, 0
    seen, result = set(), []
    directions = ((1, 0), (0, 1), (-1, 0), (0, -1))
    while len(result) < height * width:
        seen.add((row, column))
        result.append(matrix[row][column])
        for _ in range(2):
            down, right = directions[step % 4]
            ahead = (row + down, column + right)
            if 0 <= ahead[0] < height and 0 <= ahead[1] < width and ahead not in seen:
                row, column = ahead
                break
            step += 1
    return result


def busiest_span(visits):
    points = sorted({time for visit in visits for time in visit})
    best, span = 0, None
    for start, end in pairwise(points):
        inside = sum(1 for come, go in visits if come <= start and end <= go)
        if inside > best:
            best, span = inside, [start, end]
        elif inside == best and span is not None and span[1] == start:
            span[1] = end
    return None if span is None else tuple(span)


def shelf_log(size, requests):
    shelf, log = [], []
    for item in requests:
        if item in shelf:
            shelf.remove(item)
            log.append("hit")
        elif len(shelf) == size:
            log.append(shelf.pop(0))
        else:
            log.append("new")
        shelf.append(item)
    return log


def flat_paths(data):
    if not isinstance(data, dict | list):
        return {"": data}
    result = {}
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        for path, leaf in flat_paths(value).items():
            result[f"{key}.{path}" if path else str(key)] = leaf
    return result


def zigzag_length(numbers):
    best = 0
    ups, downs = [], []
    for at, number in enumerate(numbers):
        ups.append(1 + max((downs[i] for i in range(at) if numbers[i] < number), default=0))
        downs.append(1 + max((ups[i] for i in range(at) if numbers[i] > number), default=0))
        best = max(best, ups[-1], downs[-1])
    return best
