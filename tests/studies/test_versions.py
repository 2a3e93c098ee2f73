import numpy as np

import veridyn
from veridyn.studies.versions import versions


def test_versions_are_those_in_use() -> None:
    found = versions()
    assert found["veridyn"] == veridyn.__version__
    assert found["numpy"] == np.__version__
