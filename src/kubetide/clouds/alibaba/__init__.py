"""Alibaba Cloud: scaling groups of Elastic Scaling Service."""
