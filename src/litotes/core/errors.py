"""Errors are sentences that say what to do."""


class UserError(Exception):
    """Something the user can put right.

    The command line prints it as one line and exits with code 2; every other exception is a bug and
    exits with 1.
    """


class Stopped(UserError):
    """The user asked to stop (Ctrl-C), which is not a failure: what is done is kept, and the same
    command continues from there.
    """


def reason_of(error: Exception) -> str:
    """Another library's error message, its first line; the name of the error if it has none."""
    message = str(error).strip()
    return message.splitlines()[0] if message else type(error).__name__
