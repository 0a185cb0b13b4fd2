"""Errors are sentences that say what to do."""


class UserError(Exception):
    """Something the user can mend.

    The command line prints it as one line and exits with code 2; every other exception is a bug and
    exits with 1.
    """


class Stopped(UserError):
    """The user asked to stop (Ctrl-C), which is no failure: what is done is kept, and the same
    command goes on from there.
    """


def reason_of(error: Exception) -> str:
    """What another library says is wrong, in one line; its kind where it says nothing."""
    said = str(error).strip()
    return said.splitlines()[0] if said else type(error).__name__
