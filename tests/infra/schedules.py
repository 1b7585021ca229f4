"""Schedule expressions of EventBridge Scheduler. The linters take any text for one."""

import re

MONTHS = {name: number for number, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
DAYS = {name: number for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split(), 1)}
FIELDS = {
    "minutes": (0, 59, {}),
    "hours": (0, 23, {}),
    "day of month": (1, 31, {}),
    "month": (1, 12, MONTHS),
    "day of week": (1, 7, DAYS),
    "year": (1970, 2199, {}),
}


def problem(expression):
    """What is wrong with an expression; None when nothing is."""
    match = re.fullmatch(r"(rate|cron|at)\((.*)\)", expression)
    if not match:
        return "expected rate(…), cron(…) or at(…)"
    kind, text = match.groups()
    return {"rate": rate, "cron": cron, "at": at}[kind](text)


def rate(text):
    match = re.fullmatch(r"(\d+) (minute|minutes|hour|hours|day|days)", text)
    if not match:
        return "expected a number and minutes, hours or days"
    number, unit = int(match[1]), match[2]
    if number < 1 or (number == 1) == unit.endswith("s"):
        return "one is singular, more are plural"
    return None


def at(text):
    return None if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text) else "expected yyyy-mm-ddThh:mm:ss"


def cron(text):
    parts = text.split(" ")
    if len(parts) != 6:
        return "expected six fields: minutes, hours, day of month, month, day of week, year"
    for (name, rule), part in zip(FIELDS.items(), parts):
        if not all(is_item(item, name, rule) for item in part.split(",")):
            return f"{name}: {part}"
    if (parts[2] == "?") == (parts[4] == "?"):
        return "exactly one of day of month and day of week is ?"
    return None


def is_item(item, name, rule):
    low, high, names = rule
    if item == "?":
        return name in ("day of month", "day of week")
    if name == "day of month" and re.fullmatch(r"L|LW|\d{1,2}W", item):
        return True
    if name == "day of week" and re.fullmatch(r"L|[1-7]L|[1-7]#[1-5]", item):
        return True
    match = re.fullmatch(r"(\*|[A-Z0-9]+)(?:-([A-Z0-9]+))?(?:/(\d+))?", item)
    if not match or (match[1] == "*" and match[2]):
        return False
    ends = [names.get(each, int(each) if each.isdigit() else None) for each in match.group(1, 2) if each and each != "*"]
    in_range = all(each is not None and low <= each <= high for each in ends)
    return in_range and (len(ends) < 2 or ends[0] <= ends[1]) and match[3] != "0"
