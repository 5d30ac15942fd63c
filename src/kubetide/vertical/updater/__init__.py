"""The VPA updater: running pods get their recommendation, by eviction or in place."""
