"""Which pods of a VPA are changed now, and how: groups, budgets, windows, order, resizes in place."""
