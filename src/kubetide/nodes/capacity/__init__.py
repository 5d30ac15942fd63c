"""Capacity that is asked for by objects of its own, groups that are created, and quotas."""
