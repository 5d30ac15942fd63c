"""The rules for one HPA: from pods and samples to a proposal, stabilization, limits, and the verdict."""
