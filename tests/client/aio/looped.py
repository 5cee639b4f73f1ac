"""How the tests run a coroutine: in debug mode, where what is never awaited is a problem."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """In debug mode, where what is never awaited and what blocks the loop is a problem."""
    problems: list[dict[str, Any]] = []

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        async with asyncio.timeout(60):
            return await work

    answer = asyncio.run(main(), debug=True)
    gc.collect()
    assert problems == []
    return answer
