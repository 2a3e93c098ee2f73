import subprocess
import sys

import numpy as np

from veridyn.identify.upper import triangle_of


def test_the_triangle_has_the_products_of_the_matrix() -> None:
    A = np.random.default_rng(0).normal(size=(9, 4))
    R = triangle_of(A)
    np.testing.assert_allclose(R.T @ R, A.T @ A, atol=1e-13)
    assert not np.tril(R, -1).any()


def test_base_parameters_of_a_model_need_no_compiler() -> None:
    """`veridyn model show` prints them, and numba takes longer to import than the rest of it."""
    loads = "import sys, veridyn.identify.base, veridyn.cli.shown_model"
    code = f"{loads}; sys.exit(('numba' in sys.modules) + 2 * ('scipy.signal' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_study_of_identification_imports_no_compiler_and_no_statistics() -> None:
    """numba, SciPy's signal processing and its statistics take longer to import than a fit takes."""
    loads = "import sys, veridyn.studies.run.identify, veridyn.report.page, veridyn.report.study"
    code = f"{loads}; print([m for m in ('numba', 'scipy.signal', 'scipy.stats', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
