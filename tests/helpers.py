"""What tests of several rooms share."""

import pytest

from likewise.errors import LikewiseError


def sentence(kind, function, *given, **options):
    """What a call is refused with: an error of ours that is also the built-in one."""
    with pytest.raises(kind) as caught:
        function(*given, **options)
    assert isinstance(caught.value, LikewiseError)
    return str(caught.value)
