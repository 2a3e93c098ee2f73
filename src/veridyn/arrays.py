"""The type of an array of numbers, one name for it throughout the package."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
