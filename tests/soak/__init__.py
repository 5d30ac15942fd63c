"""Random scenarios, played through and looked at from outside."""
