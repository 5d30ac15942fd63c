"""Go's standard sort, with its treatment of equal elements.

Upstream orders pod groups with ``sort.Slice``, which is not stable: which of two equal groups comes
first is fixed by the algorithm (a pattern-defeating quicksort with a generator seeded by the
length), and it decides which pods get a node when nodes are short. So the same steps are taken here.

Source: Go 1.19 and later, package sort; Peters, "Pattern-defeating Quicksort", 2021.
"""

from __future__ import annotations

from collections.abc import Sequence

_INSERTION_LENGTH = 12
_NINTHER_LENGTH = 50
_REPAIRS = 5
_REPAIR_LENGTH = 50
_ALL_SWAPPED = 12
_WORD = (1 << 64) - 1


def descending_order(scores: Sequence[float]) -> list[int]:
    """Return the indexes of the scores, largest first, equal ones in Go's order."""
    sorting = _Sorting(scores)
    sorting.sort(0, len(scores), len(scores).bit_length())
    return sorting.order


class _Sorting:
    """Indexes being sorted; ranges are half-open, positions are into ``order``."""

    def __init__(self, scores: Sequence[float]) -> None:
        self._scores = scores
        self.order = list(range(len(scores)))

    def _less(self, i: int, j: int) -> bool:
        return self._scores[self.order[i]] > self._scores[self.order[j]]

    def _swap(self, i: int, j: int) -> None:
        self.order[i], self.order[j] = self.order[j], self.order[i]

    def sort(self, a: int, b: int, bad_pivots: int) -> None:
        """Sort a range; after so many bad pivots by heap."""
        balanced = partitioned = True
        while b - a > _INSERTION_LENGTH:
            if bad_pivots == 0:
                self._heap_sort(a, b)
                return
            if not balanced:
                self._break_patterns(a, b)
                bad_pivots -= 1
            pivot, swaps = self._choose_pivot(a, b)
            if swaps == _ALL_SWAPPED:
                self.order[a:b] = self.order[a:b][::-1]
                pivot = b - 1 - (pivot - a)
                swaps = 0
            if balanced and partitioned and swaps == 0 and self._repair(a, b):
                return
            if a > 0 and not self._less(a - 1, pivot):
                a = self._partition_equal(a, b, pivot)
                continue
            length = b - a
            middle, partitioned = self._partition(a, b, pivot)
            balanced = min(middle - a, b - middle) >= length // 8
            if middle - a < b - middle:
                self.sort(a, middle, bad_pivots)
                a = middle + 1
            else:
                self.sort(middle + 1, b, bad_pivots)
                b = middle
        for i in range(a + 1, b):
            self._sink(i, a)

    def _sink(self, i: int, floor: int) -> None:
        """Move an element to the left until it stands right, not beyond ``floor``."""
        while i > floor and self._less(i, i - 1):
            self._swap(i, i - 1)
            i -= 1

    def _choose_pivot(self, a: int, b: int) -> tuple[int, int]:
        """Return the median of three (or of three medians of neighbours) and how many swaps it took."""
        quarter = (b - a) // 4
        i, j, k = a + quarter, a + 2 * quarter, a + 3 * quarter
        swaps = 0
        if b - a >= _NINTHER_LENGTH:
            i, more_i = self._median(i - 1, i, i + 1)
            j, more_j = self._median(j - 1, j, j + 1)
            k, more_k = self._median(k - 1, k, k + 1)
            swaps = more_i + more_j + more_k
        j, more = self._median(i, j, k)
        return j, swaps + more

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        swaps = 0
        if self._less(b, a):
            a, b, swaps = b, a, swaps + 1
        if self._less(c, b):
            b, c, swaps = c, b, swaps + 1
        if self._less(b, a):
            a, b, swaps = b, a, swaps + 1
        return b, swaps

    def _repair(self, a: int, b: int) -> bool:
        """Sort a range that is nearly sorted, if a few moves do; says whether it is sorted."""
        i = a + 1
        for _ in range(_REPAIRS):
            while i < b and not self._less(i, i - 1):
                i += 1
            if i == b:
                return True
            if b - a < _REPAIR_LENGTH:
                return False
            self._swap(i, i - 1)
            if i - a >= 2:
                self._sink(i - 1, 0)
            if b - i >= 2:
                j = i + 1
                while j < b and self._less(j, j - 1):
                    self._swap(j, j - 1)
                    j += 1
        return False

    def _partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        """Put what is less than the pivot before it; also says whether nothing had to be moved."""
        self._swap(a, pivot)
        i, j = a + 1, b - 1
        untouched = True
        while True:
            while i <= j and self._less(i, a):
                i += 1
            while i <= j and not self._less(j, a):
                j -= 1
            if i > j:
                break
            untouched = False
            self._swap(i, j)
            i, j = i + 1, j - 1
        self._swap(j, a)
        return j, untouched

    def _partition_equal(self, a: int, b: int, pivot: int) -> int:
        """Put what equals the pivot, the least of the range, before the rest; return where the rest begins."""
        self._swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not self._less(a, i):
                i += 1
            while i <= j and self._less(a, j):
                j -= 1
            if i > j:
                return i
            self._swap(i, j)
            i, j = i + 1, j - 1

    def _break_patterns(self, a: int, b: int) -> None:
        """Scatter three elements in the middle, by xorshift seeded with the length."""
        length = b - a
        word = length
        middle = a + length // 4 * 2
        for i in range(3):
            word ^= word << 13 & _WORD
            word ^= word >> 7
            word ^= word << 17 & _WORD
            other = word & ((1 << length.bit_length()) - 1)
            self._swap(middle - 1 + i, a + (other - length if other >= length else other))

    def _heap_sort(self, a: int, b: int) -> None:
        length = b - a
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(a, root, length)
        for last in range(length - 1, -1, -1):
            self._swap(a, a + last)
            self._sift_down(a, 0, last)

    def _sift_down(self, a: int, root: int, length: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self._less(a + child, a + child + 1):
                child += 1
            if not self._less(a + root, a + child):
                return
            self._swap(a + root, a + child)
            root = child
