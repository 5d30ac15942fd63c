"""Capacity requested by API objects, node groups that the loop creates, and quotas."""
