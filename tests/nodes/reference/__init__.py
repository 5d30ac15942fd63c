"""A plain reference of upstream's node loop, which shares no rule with the one that is tested.

Stories in the format of the recorded ones are drawn at random and played by both: where their outcomes differ, one of the
two has read upstream wrongly. It looks at one pod and one node at a time and is slow; it knows nothing of volumes,
devices and requests for capacity.
"""
