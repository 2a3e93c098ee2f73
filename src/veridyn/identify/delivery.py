"""The identified machine: a fit's values with their covariance, refused where it could not move or where nobody knows a direction.

Dynamics depend on the standard parameters through the base parameters alone, χ = K φ. The covariance of χ is put on the leading
parameter of each group, which has the same effect on every motion. Directions that some motion would show and the fit's did not
(rows of the structure's K that are not combinations of the fit's) have no covariance from the data.
"""

from __future__ import annotations

import numpy as np

from veridyn.errors import IdentificationError, ModelError
from veridyn.identify.base import base_parameters
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.forward import check_mass, mass_matrix, open_mass_matrix
from veridyn.mechanics.tree.loops.closure import closed_positions, loop_jacobian
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.graph import Formulation
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty

POSES = 64  # at which the mass matrix is looked at
POSE_SPREAD = 1.0  # rad, and m: of the positions looked at
UNEXCITED_SHARE = 1e-6  # of a row of K in typical sizes: a larger part outside the fit's rows is a direction of its own


def identified_machine(fit: Fit, unexcited: float | None = None) -> Machine:
    """The machine with the identified parameters and their :class:`~veridyn.model.parameters.Uncertainty`.

    `unexcited`: the standard deviation, as a share of typical sizes, of directions that the fit's motion did not show; without it such
    directions are refused by name. A mass matrix that is not positive definite is refused.
    """
    machine = fit.described.with_parameters(fit.standard)
    _check_mass(machine)
    uncertainty = uncertainty_of(fit)
    missing = unexcited_directions(fit)
    if missing:
        if unexcited is None:
            raise IdentificationError(
                f"the motion of this fit did not show {', '.join(missing)}, so nobody knows how wrong they are.",
                where=machine.name,
                expected="a motion that excites them, or a prior (estimator 'map' or 'consistent')",
                hint="fit.machine(unexcited=0.3) takes 30 % of their typical sizes as standard deviation.",
            )
        uncertainty = _widened(fit, uncertainty, missing, unexcited)
    return _formulated(machine, fit.formulation).with_uncertainty(uncertainty)


def _formulated(machine: Machine, formulation: Formulation) -> Machine:
    """The identified machine in the formulation in which it was described."""
    try:
        return machine.with_formulation(formulation)
    except ModelError as error:
        raise IdentificationError(
            f"the identified machine cannot be formulated as it was described (formulation: {formulation}).",
            where=machine.name,
            found=str(error),
            hint="Identify with estimator 'consistent', whose bodies are physical, or identify machine.with_formulation('tree').",
        ) from error


def unexcited_directions(fit: Fit) -> tuple[str, ...]:
    """Base parameters of the structure that the fit did not determine, by the names of their leading parameters."""
    if fit.standard_covariance is not None:
        return ()  # a prior decided what the data did not
    structure = base_parameters(fit.described)
    typical = fit.described.parameters.typical
    K = fit.base.matrix * typical
    basis = np.linalg.svd(K, full_matrices=False)[2] if len(K) else np.zeros((0, len(typical)))
    found = []
    for column, row in zip(structure.columns, structure.matrix * typical, strict=True):
        size = float(np.linalg.norm(row))
        left = row - (row @ basis.T) @ basis
        if np.linalg.norm(left) > UNEXCITED_SHARE * size:
            found.append(fit.described.parameters.names[column])
    return tuple(found)


def uncertainty_of(fit: Fit) -> Uncertainty:
    """The covariance of the leading parameters of a fit and of known ones that are not exact; of all of them where a prior decided them."""
    names = fit.described.parameters.names
    if fit.standard_covariance is not None:
        estimated = [
            k for k in fit.described.parameters.select("estimated") if np.isfinite(fit.standard_covariance[k, k])
        ]
        return Uncertainty(tuple(names[k] for k in estimated), fit.standard_covariance[np.ix_(estimated, estimated)])
    leads = tuple(names[k] for k in fit.base.columns)
    C = np.nan_to_num(fit.covariance)
    if fit.known is not None:
        cross = fit.known.cross
        return Uncertainty((*leads, *fit.known.names), np.block([[C, cross.T], [cross, fit.known.covariance]]))
    if fit.constants is None:
        return Uncertainty(leads, C)
    k = fit.constants
    return Uncertainty((*leads, *k.names), np.block([[C, k.cross.T], [k.cross, k.covariance]]))


def _widened(fit: Fit, known: Uncertainty, missing: tuple[str, ...], share: float) -> Uncertainty:
    p = fit.described.parameters
    extra = tuple(name for name in missing if name not in known.names)
    sizes = np.array([(share * p.typical[p.index(name)]) ** 2 for name in extra])
    C = np.zeros((len(known.names) + len(extra),) * 2)
    C[: len(known.names), : len(known.names)] = known.covariance
    C[len(known.names) :, len(known.names) :] = np.diag(sizes)
    return Uncertainty((*known.names, *extra), C)


def _check_mass(machine: Machine) -> None:
    """Refuse parameters with which some pose has a mass matrix that is not positive."""
    rng = np.random.default_rng(0)
    try:
        if machine.closed:
            q = closed_positions(machine, POSES, rng)
            M, J = open_mass_matrix(tree_of(machine), q, engine="numpy"), loop_jacobian(machine, q)
            first = len(machine.rows) - machine.n
            whole = np.zeros((len(q), len(machine.rows), first + J.shape[2]))
            whole[:, range(first), range(first)] = 1.0
            whole[:, first:, first:] = J
            least = np.linalg.eigvalsh(np.swapaxes(whole, 1, 2) @ M @ whole)
            if not (least[:, 0] > 0.0).all():
                raise ModelError("the mass that is free to move is not positive.", where=machine.name)
        else:
            q = POSE_SPREAD * np.pi * rng.uniform(-1.0, 1.0, (POSES, machine.n))
            check_mass(tree_of(machine), mass_matrix(machine, q, engine="numpy"))
    except ModelError as error:
        raise IdentificationError(
            "the identified machine cannot be simulated or observed: its mass matrix is not positive definite in some pose.",
            where=machine.name,
            found=error.faults[0].what,
            hint="Identify with estimator 'consistent', add a prior ('map'), or excite more: some inertias are only noise.",
        ) from error
