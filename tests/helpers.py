"""What tests of several rooms share."""

from pathlib import Path

import pytest

from likewise.errors import LikewiseError


def sentence(kind, function, *given, **options):
    """What a call is refused with: an error of ours that is also the built-in one."""
    with pytest.raises(kind) as caught:
        function(*given, **options)
    assert isinstance(caught.value, LikewiseError)
    return str(caught.value)


def ends_when(folder: Path, pattern: str, count: int) -> str:
    """Code by which a process kills itself: where a file is to get its name, and that many of a pattern have theirs.

    Who waits for it from outside is too late on a busy machine now and then.
    """
    return f"""
import os, signal, sys
from pathlib import Path

def end(event, arguments):
    if event == "os.rename" and len(list(Path({str(folder)!r}).glob({pattern!r}))) >= {count}:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(end)
"""
