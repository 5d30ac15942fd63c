"""Bad requests are answered as kube-apiserver answers them."""

from __future__ import annotations

import json
from functools import cache

import pytest
from tests.bad_input.cases import CASES
from tests.bad_input.record import ANSWERS, answers
from tests.cluster.served import TOKEN, served

from kubetide.runtime.timing.clock import run_real

RECORDED = json.loads(ANSWERS.read_text())


@cache
def ours():
    async def main(clock):
        async with served(clock) as (_, server, connection):
            return await answers(server.url, TOKEN, connection.tls())

    return run_real(main)


def said(answer, same):
    status = answer.get("status") or {}
    if same == "code":
        return answer["code"]
    if same == "words":
        return answer["code"], status.get("reason")
    if same == "details":
        return answer["code"], status.get("reason"), status.get("details")
    return answer


@pytest.mark.parametrize("case", [case for case in CASES if not case.but], ids=lambda case: case.name)
def test_answers_of_a_real_server(case):
    """The answer to a bad request is kube-apiserver v1.36.2's, as far as the case says."""
    assert said(ours()[case.name], case.same) == said(RECORDED[case.name], case.same)


@pytest.mark.parametrize("case", [case for case in CASES if case.but], ids=lambda case: case.name)
def test_answers_that_differ(case):
    """Answers that differ on purpose still differ; else the exception is to be dropped."""
    assert said(ours()[case.name], case.same) != said(RECORDED[case.name], case.same)


def test_every_case_has_an_answer():
    """The recorded answers are those of the cases, in their order."""
    assert list(RECORDED) == [case.name for case in CASES]


def test_no_answer_is_a_fault_of_this_server():
    """No bad request makes the server fail."""
    assert not [name for name, answer in ours().items() if "see the server's log" in json.dumps(answer)]
