"""Errors are sentences that say what to do."""


class UserError(Exception):
    """Something the user can mend.

    The command line prints it as one line and exits with code 2; every other exception is a bug and exits with 1.
    """
