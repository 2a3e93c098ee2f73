"""Makes the helpers under tests/ importable as ``from strangers.random_trees import random_tree``."""

import sys
from pathlib import Path

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)
