"""Estimators and what stands beside `identify`: base parameters, plans of experiments, diagnoses, payloads, fleets and results.

Examples
--------
>>> import veridyn as vd
>>> vd.estimators.Robust(loss="tukey").c, vd.estimators.OLS().title  # each is an argument of vd.identify
(4.685, 'ordinary least squares')
"""

from veridyn.identify.base import BaseParameters as BaseParameters
from veridyn.identify.base import base_parameters as base_parameters
from veridyn.identify.car_fit import CarFit as CarFit
from veridyn.identify.constants import stribeck_speeds as stribeck_speeds
from veridyn.identify.cutoff import Cutoff as Cutoff
from veridyn.identify.cutoff import propose_cutoff as propose_cutoff
from veridyn.identify.diagnosis.evidence import evidence as evidence
from veridyn.identify.diagnosis.explain import Explanation as Explanation
from veridyn.identify.diagnosis.explain import explain as explain
from veridyn.identify.diagnosis.replacements import find_mistakes as find_mistakes
from veridyn.identify.drives.drive_excitation import DriveExcitation as DriveExcitation
from veridyn.identify.drives.drive_excitation import DriveRange as DriveRange
from veridyn.identify.drives.drive_excitation import design_drive_commands as design_drive_commands
from veridyn.identify.drives.drive_method import Drives as Drives
from veridyn.identify.drives.drive_plan import DrivePlan as DrivePlan
from veridyn.identify.drives.drive_result import DriveEstimate as DriveEstimate
from veridyn.identify.drives.drive_result import DriveReplay as DriveReplay
from veridyn.identify.drives.drive_result import DrivesFit as DrivesFit
from veridyn.identify.drives.drive_run import DriveRun as DriveRun
from veridyn.identify.estimator import OLS as OLS
from veridyn.identify.estimator import WLS as WLS
from veridyn.identify.estimators.feasible import Consistent as Consistent
from veridyn.identify.estimators.gauss_markov import GaussMarkov as GaussMarkov
from veridyn.identify.estimators.gauss_markov import NoiseModel as NoiseModel
from veridyn.identify.estimators.innovations import Innovations as Innovations
from veridyn.identify.estimators.instrumental import Instrumental as Instrumental
from veridyn.identify.estimators.likelihood import Likelihood as Likelihood
from veridyn.identify.estimators.prior import Prior as Prior
from veridyn.identify.estimators.robust import Robust as Robust
from veridyn.identify.estimators.trust import slow_and_fast as slow_and_fast
from veridyn.identify.estimators.trust import trust_prior as trust_prior
from veridyn.identify.excitation.capsules import Capsule as Capsule
from veridyn.identify.excitation.capsules import Collision as Collision
from veridyn.identify.excitation.limits import Clearance as Clearance
from veridyn.identify.excitation.limits import Limits as Limits
from veridyn.identify.excitation.plan import ExcitationPlan as ExcitationPlan
from veridyn.identify.excitation.plan import Noise as Noise
from veridyn.identify.excitation.shape import Fourier as Fourier
from veridyn.identify.excitation.shape import Spline as Spline
from veridyn.identify.fleet import Fleet as Fleet
from veridyn.identify.fleet import identify_fleet as identify_fleet
from veridyn.identify.flexible.one_encoder import ResonanceFit as ResonanceFit
from veridyn.identify.flexible.one_encoder import ResonanceSettings as ResonanceSettings
from veridyn.identify.flexible.one_encoder import identify_resonance as identify_resonance
from veridyn.identify.flexible.two_encoders import FlexibleFit as FlexibleFit
from veridyn.identify.flexible.two_encoders import FlexibleSettings as FlexibleSettings
from veridyn.identify.flexible.two_encoders import identify_flexible as identify_flexible
from veridyn.identify.friction_ladder import FrictionLadder as FrictionLadder
from veridyn.identify.friction_ladder import friction_ladder as friction_ladder
from veridyn.identify.laboratory import Trial as Trial
from veridyn.identify.laboratory import diagnose as diagnose
from veridyn.identify.laboratory import encoder_offsets as encoder_offsets
from veridyn.identify.output_error.output_error import OutputError as OutputError
from veridyn.identify.payload import carrying as carrying
from veridyn.identify.payload import with_payload as with_payload
from veridyn.identify.regression.observation import Sampling as Sampling
from veridyn.identify.regression.observation import observation as observation
from veridyn.identify.regression.workers import MadeMotions as MadeMotions
from veridyn.identify.result import Estimate as Estimate
from veridyn.identify.result import Fit as Fit
from veridyn.identify.selection import essential as essential
from veridyn.identify.selection import remedies as remedies
from veridyn.identify.selection import select_motions as select_motions
from veridyn.identify.settings import Acceptance as Acceptance
from veridyn.identify.settings import Auto as Auto
from veridyn.identify.settings import DiagnosisSettings as DiagnosisSettings
from veridyn.identify.settings import Hac as Hac
from veridyn.identify.settings import IdentifySettings as IdentifySettings
from veridyn.identify.validate import replay as replay
from veridyn.identify.validation import Validation as Validation
