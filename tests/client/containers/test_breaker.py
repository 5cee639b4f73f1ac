"""The rules of the outage breaker, which waits for nothing and reads no clock."""

from __future__ import annotations

import pytest

from redelivery.client.containers.breaker import Breaker, Failing, Permit

COUNTED, PARKED, OPENS = Failing


def failed(breaker: Breaker, permit: Permit, *keys: str, now: float = 0.0, dies: bool = False) -> list[Failing]:
    return [breaker.failed(permit, key, now, dies=dies) for key in keys]


class TestTheBreaker:
    def outage(self, interval: float = 5.0) -> Breaker:
        """One that has opened at second 0, because of one message."""
        breaker = Breaker(1, interval)
        assert failed(breaker, breaker.permit(0.0), "first") == [OPENS]
        return breaker

    def test_opens_when_so_many_different_ones_have_failed_in_a_row(self) -> None:
        breaker = Breaker(3, 5.0)
        permit = breaker.permit(0.0)
        for _ in range(2):
            assert failed(breaker, permit, "a", "b", "a", "b") == [COUNTED] * 4
            assert not breaker.succeeded(permit, "c")
        assert failed(breaker, permit, "a", "a", "b", "b", "c") == [COUNTED] * 4 + [OPENS]
        assert breaker.open

    def test_a_failure_of_another_kind_takes_a_message_out_of_the_row(self) -> None:
        breaker = Breaker(2, 5.0)
        permit = breaker.permit(0.0)
        failed(breaker, permit, "a")
        breaker.undecided(permit, "a")
        assert failed(breaker, permit, "b", "a") == [COUNTED, OPENS]

    def test_lets_one_probe_through_when_the_interval_is_over(self) -> None:
        breaker = self.outage()
        assert breaker.permit(2.0).wait == 3.0
        probe = breaker.permit(5.0)
        assert (probe.wait, probe.probe) == (0.0, True)
        assert breaker.permit(5.0).wait == 5.0  # another worker waits
        assert failed(breaker, probe, "b", now=15.0) == [PARKED]
        assert breaker.permit(16.0).wait == 4.0
        assert breaker.succeeded(breaker.permit(20.0), "c")
        assert [(each.wait, each.probe) for each in (breaker.permit(20.0), breaker.permit(20.0))] == [(0.0, False)] * 2

    def test_workers_probe_in_turn(self) -> None:
        breaker = self.outage(0.5)
        assert failed(breaker, breaker.permit(0.5, "one", others=True), "b", now=1.0) == [PARKED]
        assert breaker.permit(1.5, "one", others=True).wait == 0.5
        assert failed(breaker, breaker.permit(1.5, "two", others=True), "c", now=2.0) == [PARKED]
        assert breaker.permit(2.5, "one", others=True).wait == 0.5
        assert breaker.permit(3.0, "one", others=True).probe  # the others are busy
        assert self.outage().permit(5.0, "alone").probe

    @pytest.mark.parametrize("outcome", ["failed", "succeeded", "undecided"])
    def test_what_was_in_hand_when_it_opened_decides_nothing(self, outcome: str) -> None:
        breaker = Breaker(1, 5.0)
        straggler = breaker.permit(0.0)
        failed(breaker, breaker.permit(0.0), "first")
        probe = breaker.permit(5.0)
        assert probe.probe
        assert breaker.outdated(straggler)
        if outcome == "failed":
            assert failed(breaker, straggler, "late", now=6.0) == [PARKED]
        else:
            assert not getattr(breaker, outcome)(straggler, "late")
        assert breaker.open
        assert breaker.permit(6.0).wait  # the probe is another worker's still
        assert breaker.succeeded(probe, "b")

    def test_a_failure_from_before_the_last_outage_is_none_in_the_row(self) -> None:
        breaker = self.outage()
        straggler = Breaker(1, 5.0).permit(0.0)
        assert breaker.succeeded(breaker.permit(5.0), "b")
        assert failed(breaker, straggler, "late", now=6.0) == [PARKED]
        assert not breaker.open

    def test_a_probe_that_gets_no_message_is_given_to_the_next(self) -> None:
        breaker = self.outage()
        breaker.undecided(breaker.permit(5.0))
        assert breaker.permit(5.0).probe

    def test_never_opens_without_a_number(self) -> None:
        breaker = Breaker(None, 5.0)
        assert set(failed(breaker, breaker.permit(0.0), *map(str, range(1000)), dies=True)) == {COUNTED}

    def test_what_failed_while_others_succeeded_counts_and_is_no_news(self) -> None:
        breaker = self.outage()
        failed(breaker, breaker.permit(5.0), "b", now=5.0)
        assert breaker.recalls == 0
        assert breaker.succeeded(breaker.permit(10.0), "c")
        assert breaker.recalls == 1  # they come back
        permit = breaker.permit(10.0)
        assert failed(breaker, permit, "first", "b", "first") == [COUNTED] * 3
        assert failed(breaker, permit, "b", dies=True) == [PARKED]  # nobody has succeeded since
        breaker.succeeded(permit, "d")
        assert failed(breaker, permit, "b", dies=True) == [COUNTED]
        assert failed(breaker, permit, "b") == [OPENS]  # it is forgotten

    def test_what_would_be_dead_waits_for_what_becomes_of_others(self) -> None:
        breaker = Breaker(3, 5.0)
        permit = breaker.permit(0.0)
        assert failed(breaker, permit, "a", dies=True) == [PARKED]
        assert failed(breaker, permit, "b") == [COUNTED]
        assert not breaker.all_tried(full=False)  # b is still to be redelivered
        assert failed(breaker, permit, "b", dies=True) == [PARKED]
        assert breaker.all_tried(full=False)
        assert failed(breaker, permit, "a", "b", dies=True) == [COUNTED] * 2

    def test_another_that_fails_keeps_it_from_being_dead(self) -> None:
        breaker = Breaker(3, 5.0)
        permit = breaker.permit(0.0)
        failed(breaker, permit, "a", dies=True)
        breaker.succeeded(permit, "b")
        failed(breaker, permit, "c")
        assert failed(breaker, permit, "a", dies=True) == [PARKED]

    def test_a_worker_that_has_tried_all_of_its_own_in_an_outage_begins_anew_and_accuses_nobody(self) -> None:
        breaker = self.outage()
        assert breaker.all_tried(full=False)
        assert breaker.all_tried(full=True)
        assert breaker.succeeded(breaker.permit(5.0), "first")
        assert failed(breaker, breaker.permit(5.0), "first") == [OPENS]
