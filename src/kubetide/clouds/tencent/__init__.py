"""Tencent Cloud: Auto Scaling groups."""
