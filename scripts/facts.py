"""Write src/likewise/cli/facts.json, from which lists and `--help` are printed without torch.

python scripts/facts.py
"""

from __future__ import annotations

from likewise.cli._facts import FILE, text

if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
