"""Our evaluation against another one of the same rules: generated selectors, each of 40 messages."""

from __future__ import annotations

import pytest
from tests.run import forms
from tests.selectors.expressions import TRUE, Trace
from tests.selectors.generated import messages, selectors

from redelivery.model.selectors.selector import Selector

COUNT = 300 if forms.brief() else 2_000


@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_what_another_evaluation_says(seed: int) -> None:
    samples = messages(seed, 40)
    matched = 0
    rules: set[str] = set()
    for node in selectors(seed, COUNT):
        selector = Selector(str(node))
        for sample in samples:
            trace = Trace(lenient=sample.lenient)
            expected = node.evaluate(sample.seen, trace) == TRUE
            get = {
                **sample.properties,
                **{name: value and value[1] for name, value in sample.seen.items() if name[:3] == "JMS"},
            }
            assert selector.matches(get.get) is expected, f"{node} of {sample.seen}: {sorted(trace)}"
            matched += expected
            rules |= trace
    assert 0.2 < matched / (COUNT * len(samples)) < 0.8
    assert len(rules) > 25, "each rule decides of something"
