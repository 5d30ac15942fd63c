"""Disruptions that budgets still allow while a plan is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubetide.units.selectors import Selector, SelectorError


class BudgetIndex:
    """Which budgets select a pod. Depends on the budgets' specs only, so it outlives their statuses."""

    def __init__(self, specs: Mapping[Key, PodDisruptionBudgetSpec]) -> None:
        self.specs = dict(specs)
        self._by_namespace: dict[str, list[tuple[Key, Selector]]] = {}
        self.unreadable: dict[Key, str] = {}
        for key in sorted(specs):
            try:
                selector = Selector.from_object(specs[key].selector)
            except SelectorError as error:
                # Nobody can say what such a budget protects, so it protects its whole namespace.
                self.unreadable[key] = str(error)
                selector = Selector.everything()
            self._by_namespace.setdefault(key[0], []).append((key, selector))
        self._matches: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Key, ...]] = {}

    def matching(self, pod: Pod) -> tuple[Key, ...]:
        """Return the keys of the budgets that select the pod, in name order."""
        budgets = self._by_namespace.get(pod.metadata.namespace)
        if not budgets:
            return ()
        labels = pod.metadata.labels or {}
        memo = (pod.metadata.namespace, tuple(labels.items()))
        found = self._matches.get(memo)
        if found is None:
            found = tuple(key for key, selector in budgets if selector.matches(labels))
            self._matches[memo] = found
        return found


class Allowances:
    """The disruptions that each budget still allows; used up by the nodes chosen so far.

    Source: upstream's remaining PDB tracker. A node may take a budget below zero (its pods are evicted
    one after another, each when the budget allows it again); what is below one refuses further nodes.
    """

    def __init__(self, pdbs: Mapping[Key, PodDisruptionBudget], index: BudgetIndex) -> None:
        self._index = index
        self.left: dict[Key, int] = {
            key: 0 if key in index.unreadable else pdbs[key].status.disruptions_allowed
            for key in sorted(pdbs)
        }

    @classmethod
    def of(cls, pdbs: Mapping[Key, PodDisruptionBudget]) -> Allowances:
        """Return allowances with an index of their own."""
        return cls(pdbs, BudgetIndex({key: pdb.spec for key, pdb in pdbs.items()}))

    def budgets_of(self, pod: Pod) -> tuple[Key, ...]:
        """Return the budgets that select the pod."""
        return self._index.matching(pod)

    def refusing(self, pod: Pod) -> Key | None:
        """Return the first budget that selects the pod and allows no disruption now, or None."""
        for key in self._index.matching(pod):
            if self.left[key] < 1:
                return key
        return None

    def allow_together(self, pods: Sequence[Pod]) -> bool:
        """Return whether all these pods could be evicted at the same moment; False makes a removal risky."""
        counts = self._counts(pods)
        return all(self.left[key] >= count for key, count in counts.items())

    def take(self, pods: Iterable[Pod]) -> None:
        """Use up one disruption of each budget for each pod."""
        for key, count in self._counts(pods).items():
            self.left[key] -= count

    def copy(self) -> Allowances:
        """Return allowances that are used up without a change to these."""
        made = copy(self)
        made.left = dict(self.left)
        return made

    def _counts(self, pods: Iterable[Pod]) -> dict[Key, int]:
        counts: dict[Key, int] = {}
        for pod in pods:
            for key in self._index.matching(pod):
                counts[key] = counts.get(key, 0) + 1
        return counts
