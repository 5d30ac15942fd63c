"""When rules are due: texts as calendars, points, windows, and the bounds that they make."""
