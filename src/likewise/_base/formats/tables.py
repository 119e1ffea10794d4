"""Tables in CSV, from bytes that came in by the door: what pandas would fill memory with is refused before."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from likewise._base.names import unquoted

if TYPE_CHECKING:
    import pandas as pd

MATRIX = 2**29  # bytes of a square CSV, which is the largest table there is
_CELLS = 2**25


def table(content: bytes, separator: str = ",", **options: Any) -> pd.DataFrame:
    """The table that a CSV file holds. Call it within `reading`, which names the file in every error."""
    import pandas as pd

    if b"\0" in content:
        raise ValueError("it holds zero bytes")
    if content.count(separator.encode()) > _CELLS:
        raise ValueError(f"it has more than {_CELLS:,} cells")
    return unquoted(pd.read_csv(BytesIO(content), sep=separator, **options))
