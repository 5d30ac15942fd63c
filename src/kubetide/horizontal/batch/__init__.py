"""All ordinary HPAs at once in columns, by the same rules."""
