"""Refusal of a request: its status, and what was got, what was wanted, and what to do."""

from __future__ import annotations


class Refusal(Exception):
    """Request that is not answered.

    Parameters
    ----------
    status : int
        Status of HTTP.
    got, wanted, remedy : str
        One line each, without a full stop.
    """

    def __init__(self, status: int, got: str, wanted: str, remedy: str) -> None:
        super().__init__(f"got {got}; wanted {wanted}. {remedy}.")
        self.status, self.got, self.wanted, self.remedy = status, got, wanted, remedy
