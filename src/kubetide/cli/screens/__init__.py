"""Views that fill a terminal."""
