"""Errors that are the user's to mend: one clear line, no traceback."""

import difflib
import sys
from collections.abc import Callable, Iterable


class UserError(Exception):
    """A mistake that the user can mend; its text is one line that says how."""


def nearest(name: str, allowed: Iterable[str]) -> str:
    """``"allowed: a, b, c (did you mean 'a'?)"`` for a name that is not among ``allowed``."""
    allowed = sorted(allowed)
    match = difflib.get_close_matches(str(name), allowed, n=1, cutoff=0.5)
    hint = f" (did you mean {match[0]!r}?)" if match else ""
    return f"allowed: {', '.join(allowed)}{hint}"


def exit_on_user_error(main: Callable[[], None]) -> None:
    """Run ``main``; a :class:`UserError` becomes one line on stderr and exit status 2."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
