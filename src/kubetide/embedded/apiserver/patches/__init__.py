"""Strategic merge patches and field selectors."""
