"""Random scenarios, played through and checked from outside."""
