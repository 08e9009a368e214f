"""``python -m livens`` is the command ``livens``."""

from __future__ import annotations

from livens.cli import main

if __name__ == "__main__":
    main()
