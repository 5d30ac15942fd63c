"""Inter-pod rules on nodes that do not exist yet: counts by domain, updated pod by pod.

The counts begin with those of the snapshot. A new node has a hostname of its own, so for terms about
the hostname only the node that is being filled counts; other labels come from the offer's template.
Where the filters look at the least of all domains, this is more careful than they are: for the
hostname it is taken for 0, as a node may stay without such pods, and a domain that offers could
open counts from the beginning. Pods that are to be spread are shared out over the domains beforehand,
as a node can be filled only one after the other, and the scheduler, who sees all of them, goes round.

What is not seen here (nodes that take no part in a constraint) is left to the filters: a plan is
played on the snapshot before anything is bought.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kubetide.nodes.expander.least_cost.solver.inter_pod import (
    Domains,
    InterPodRules,
    Place,
    Reader,
    SpreadRule,
    Term,
)
from kubetide.nodes.expander.least_cost.solver.sharing import share_out
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.terms import is_first_of_its_kind
from kubetide.scheduling.snapshot.snapshot import Snapshot


class DomainCounts:
    """All inter-pod rules over the offers, and their counts while nodes are filled.

    Attributes:
        rules: In the order of the classes given.
        domains: By offer.
    """

    def __init__(
        self, snapshot: Snapshot, classes: Sequence[PodClass], templates: Sequence[tuple[Node, Sequence[Pod]]]
    ) -> None:
        """Read the snapshot's counts for classes for which ``inter_pod.is_plain`` holds.

        Args:
            snapshot: The cluster.
            classes: One for each set of rules.
            templates: Of each offer the node and the pods of DaemonSets.
        """
        reader = Reader(snapshot)
        nodes = [node for node, _ in templates]
        self.rules = reader.read(classes, nodes)
        self.domains = [reader.domains_of(node) for node in nodes]
        self._daemons = [reader.counted(pods) for _, pods in templates]
        self._terms = reader.terms
        self._by_node = [term for term in self._terms if term.at < 0]
        self._offer = -1
        self._here: Domains = ()

    @property
    def places(self) -> list[Place]:
        """What distinguishes offers for the rules: their domains, and the counts of their DaemonSet pods."""
        number = {id(term): at for at, term in enumerate(self._terms)}
        return [
            (domains, tuple(number[id(term)] for term in daemons))
            for domains, daemons in zip(self.domains, self._daemons, strict=True)
        ]

    def narrow(self, offers: Iterable[int]) -> None:
        """Keep only these offers, renumbered in the order given."""
        offers = [int(one) for one in offers]
        self.domains = [self.domains[one] for one in offers]
        self._daemons = [self._daemons[one] for one in offers]

    # ── Sharing out ──

    def share_out(self, numbers: Sequence[int], offers: Sequence[Sequence[int]]) -> None:
        """Set how many pods each domain gets, and where pods with mutual affinity start.

        Args:
            numbers: How many pods there are under each of the rules.
            offers: By number of rules, the numbers of the offers that any of its pods may be put on, best first.
        """
        spread: dict[int, tuple[Term, list[SpreadRule], list[int]]] = {}
        for number, rules in enumerate(self.rules):
            for rule in rules.spread:
                if rule.term.at >= 0:
                    found = spread.setdefault(id(rule.term), (rule.term, [], []))
                    found[1].append(rule)
                    found[2].append(number)
        for term, spreads, carriers in spread.values():
            open_codes = dict.fromkeys(
                self.domains[offer][term.at] for number in carriers for offer in offers[number]
            )
            open_codes.pop(0, None)
            if not all(one.rule.self_match for one in spreads):
                term.present.update(open_codes)
                continue
            term.most = share_out(
                term.counts,
                raised=list(open_codes),
                fixed=[code for code in term.present if code not in open_codes],
                pods=sum(numbers[number] for number in carriers),
                rule=replace(
                    spreads[0].rule,
                    max_skew=min(one.rule.max_skew for one in spreads),
                    min_domains=max(one.rule.min_domains for one in spreads),
                ),
            )
        self._anchor(offers)

    def _anchor(self, offers: Sequence[Sequence[int]]) -> None:
        """Choose where pods begin that are to stand together: the best offer's domains that all of them reach."""
        together: dict[tuple[int, ...], list[int]] = {}
        for number, rules in enumerate(self.rules):
            if rules.near:
                together.setdefault(tuple(map(id, rules.near)), []).append(number)
        for numbers in together.values():
            labels = [term.at for term in self.rules[numbers[0]].near]
            reached = [
                dict.fromkeys(tuple(self.domains[offer][at] for at in labels) for offer in offers[number])
                for number in numbers
                if offers[number]
            ]
            for place in reached[0] if reached else ():
                if all(place) and all(place in others for others in reached):
                    for number in numbers:
                        self.rules[number].anchor = place
                    break

    def start_again(self) -> None:
        """Forget the nodes that were filled."""
        for term in self._terms:
            term.counts = list(term.start)
            term.total = term.started_with

    def levels(self, nodes: Iterable[tuple[int, Sequence[int]]]) -> list[tuple[int, ...]]:
        """Return a level per pod of planned nodes: placed by rising level, spread pods alternate between their domains.

        Args:
            nodes: Offer and numbers of rules of each.
        """
        reached: dict[tuple[int, int], int] = {}
        found: list[tuple[int, ...]] = []
        for offer, numbers in nodes:
            here = self.domains[offer]
            row: list[int] = []
            for number in numbers:
                level = 0
                for rule in self.rules[number].spread:
                    if rule.term.at >= 0:
                        place = (id(rule.term), here[rule.term.at])
                        one = reached.get(place, rule.term.start[here[rule.term.at]])
                        reached[place] = one + 1
                        level = max(level, one)
                row.append(level)
            found.append(tuple(row))
        return found

    # ── Filling ──

    def open(self, offer: int) -> None:
        """Start filling a new node of the offer."""
        self._offer = offer
        self._here = self.domains[offer]
        for term in self._by_node:
            term.here = 0
        self._add(self._daemons[offer], 1)

    def close(self, numbers: Iterable[int], *, keep: bool) -> None:
        """Finish the node with its pods; without ``keep`` discard its counts."""
        if keep:
            return
        for number in numbers:
            self._add(self.rules[number].adds, -1)
        self._add(self._daemons[self._offer], -1)

    def put(self, number: int) -> None:
        """Count a pod on the node that is being filled."""
        self._add(self.rules[number].adds, 1)

    def accepts(self, number: int) -> bool:
        """Return whether the node that is being filled accepts one more pod under these rules."""
        rules, here = self.rules[number], self._here
        for term in rules.apart:
            if term.here if term.at < 0 else here[term.at] and term.counts[here[term.at]]:
                return False
        for one in rules.spread:
            term = one.term
            if term.at < 0:
                if term.here > one.rule.margin:
                    return False
                continue
            code = here[term.at]
            if not code or term.counts[code] > self._allowed(one, code):
                return False
        return not rules.near or self._is_near(rules)

    @staticmethod
    def _allowed(spread: SpreadRule, code: int) -> int:
        """Return how many pods the domain may have for one more to be let in."""
        term = spread.term
        if term.most is not None:
            return term.most[code] - 1
        least = min((term.counts[one] for one in term.present), default=0)
        return spread.rule.most(least, len(term.present))

    def _is_near(self, rules: InterPodRules) -> bool:
        place = tuple(self._here[term.at] for term in rules.near)
        if not all(place):
            return False
        if is_first_of_its_kind([term.total for term in rules.near], rules.matches_itself):
            return rules.anchor in {None, place}
        return all(term.counts[code] for term, code in zip(rules.near, place, strict=True))

    def _add(self, terms: Iterable[Term], amount: int) -> None:
        here = self._here
        for term in terms:
            if term.at < 0:
                term.here += amount
                term.total += amount
            elif here[term.at]:
                term.counts[here[term.at]] += amount
                term.total += amount
