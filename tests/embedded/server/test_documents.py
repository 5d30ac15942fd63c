"""Discovery and OpenAPI are encoded once for as long as the same is served."""

from __future__ import annotations

from dataclasses import replace

from kubetide.embedded.apiserver.http.documents import Documents
from kubetide.objects.kinds import CONFIG_MAPS, PODS


def test_an_answer_is_made_once_until_the_kinds_change():
    """Equal kinds that were made anew count as others: their schemas may differ."""
    documents, made = Documents(), []

    def make():
        made.append(1)
        return b"x"

    def ask(*kinds):
        documents.renew(kinds, [])
        return documents.get("/apis", make)

    assert [ask(PODS, CONFIG_MAPS), ask(PODS, CONFIG_MAPS)] == [b"x", b"x"]
    assert len(made) == 1
    ask(PODS)
    ask(PODS, CONFIG_MAPS)
    ask(PODS, replace(CONFIG_MAPS))
    assert len(made) == 4


def test_unknown_paths_are_not_cached():
    """Paths that nobody serves take no memory, however many are requested."""
    documents = Documents()
    documents.renew((PODS,), [])
    assert [documents.get(path, lambda: None) for path in range(100)] == [None] * 100
    assert documents._made == {}
