"""The order in which Go's unstable sort leaves equal elements: upstream sorts with it, so it decides among equals.

Up to twelve elements are sorted by insertion, which is stable. More are split around a pivot again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

BY_INSERTION = 12
NINTHER_FROM = 50
WORD = (1 << 64) - 1


def go_sorted(items: Iterable[T], before: Callable[[T, T], bool]) -> list[T]:
    """Return the items as Go's `sort.Slice` leaves them; `before` tells whether the first comes before the second."""
    sorting = _Sorting(list(items), before)
    sorting.sort(0, len(sorting.items), len(sorting.items).bit_length())
    return sorting.items


class _Sorting(Generic[T]):
    def __init__(self, items: list[T], before: Callable[[T, T], bool]) -> None:
        self.items, self.before = items, before

    def less(self, i: int, j: int) -> bool:
        return self.before(self.items[i], self.items[j])

    def swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]

    def sort(self, low: int, high: int, patience: int) -> None:
        """Sort items from `low` up to `high`, split by split; after `patience` uneven splits by a heap."""
        even = split_nothing = True
        while high - low > BY_INSERTION:
            if patience == 0:
                self.by_heap(low, high)
                return
            if not even:
                self.scatter(low, high)
                patience -= 1
            pivot, turns = self.pivot(low, high)
            if turns == 12:  # every comparison found a pair the wrong way round
                self.items[low:high] = reversed(self.items[low:high])
                pivot, turns = high - 1 - (pivot - low), 0
            if even and split_nothing and turns == 0 and self.nearly_sorted(low, high):
                return
            if low > 0 and not self.less(low - 1, pivot):
                low = self.split_equal(low, high, pivot)
                continue
            middle, split_nothing = self.split(low, high, pivot)
            shorter = min(middle - low, high - middle)
            even = shorter >= (high - low) // 8
            if middle - low < high - middle:
                self.sort(low, middle, patience)
                low = middle + 1
            else:
                self.sort(middle + 1, high, patience)
                high = middle
        self.by_insertion(low, high)

    def by_insertion(self, low: int, high: int) -> None:
        for i in range(low + 1, high):
            self.sink(i, low)

    def sink(self, i: int, low: int) -> None:
        """Move an item down past those that it comes before."""
        while i > low and self.less(i, i - 1):
            self.swap(i, i - 1)
            i -= 1

    def by_heap(self, low: int, high: int) -> None:
        size = high - low
        for root in range((size - 1) // 2, -1, -1):
            self.sift(low, root, size)
        for end in range(size - 1, -1, -1):
            self.swap(low, low + end)
            self.sift(low, 0, end)

    def sift(self, low: int, root: int, size: int) -> None:
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and self.less(low + child, low + child + 1):
                child += 1
            if not self.less(low + root, low + child):
                return
            self.swap(low + root, low + child)
            root = child

    def scatter(self, low: int, high: int) -> None:
        """Swap three items in the middle with others at random places, always the same for one length."""
        size = high - low
        number = size
        middle = low + size // 4 * 2
        for i in range(middle - 1, middle + 2):
            number ^= number << 13 & WORD
            number ^= number >> 7
            number ^= number << 17 & WORD
            other = number & ((1 << size.bit_length()) - 1)
            self.swap(i, low + (other - size if other >= size else other))

    def pivot(self, low: int, high: int) -> tuple[int, int]:
        """Return the median of three, or of nine, and how many comparisons found the later item before the earlier."""
        quarter = (high - low) // 4
        at = [low + quarter, low + 2 * quarter, low + 3 * quarter]
        turns = 0
        if high - low >= NINTHER_FROM:
            for n, i in enumerate(at):
                at[n], more = self.median(i - 1, i, i + 1)
                turns += more
        found, more = self.median(*at)
        return found, turns + more

    def median(self, i: int, j: int, k: int) -> tuple[int, int]:
        turns = 0
        if self.less(j, i):
            i, j, turns = j, i, turns + 1
        if self.less(k, j):
            j, turns = k, turns + 1
        if self.less(j, i):
            j, turns = i, turns + 1
        return j, turns

    def nearly_sorted(self, low: int, high: int) -> bool:
        """Return whether the items are sorted, after mending up to five places where two are the wrong way round."""
        i = low + 1
        for _ in range(5):
            while i < high and not self.less(i, i - 1):
                i += 1
            if i == high:
                return True
            if high - low < NINTHER_FROM:
                return False
            self.swap(i, i - 1)
            if i - low >= 2:
                self.sink(i - 1, 0)
            if high - i >= 2:
                self.rise(i + 1, high)
        return False

    def rise(self, i: int, high: int) -> None:
        """Move the item before `i` up past those that come before it."""
        while i < high and self.less(i, i - 1):
            self.swap(i, i - 1)
            i += 1

    def split(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Put items before the pivot to its left; return where it is then, and whether all were on their side."""
        self.swap(low, pivot)
        i, j = self.narrow(low, low + 1, high - 1)
        if i > j:
            self.swap(j, low)
            return j, True
        while i <= j:
            self.swap(i, j)
            i, j = self.narrow(low, i + 1, j - 1)
        self.swap(j, low)
        return j, False

    def narrow(self, pivot: int, i: int, j: int) -> tuple[int, int]:
        """Step over items that are on their side already, from both ends."""
        while i <= j and self.less(i, pivot):
            i += 1
        while i <= j and not self.less(j, pivot):
            j -= 1
        return i, j

    def split_equal(self, low: int, high: int, pivot: int) -> int:
        """Put items equal to the pivot first, where none comes before it; return where the others begin."""
        self.swap(low, pivot)
        i, j = low + 1, high - 1
        while True:
            while i <= j and not self.less(low, i):
                i += 1
            while i <= j and self.less(low, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1
