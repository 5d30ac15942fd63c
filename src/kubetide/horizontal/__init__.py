"""The horizontal loop (HPA). ``decide.py`` lists the steps of its algorithm."""
