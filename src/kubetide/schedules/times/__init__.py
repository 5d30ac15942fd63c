"""When rules are due: texts as calendars, points, windows, and their bounds."""
