"""Every file format: models, logs, results, and their units."""

from veridyn.files.archive import load as load
from veridyn.files.archive import save as save
from veridyn.files.geodesy import GeoOrigin as GeoOrigin
from veridyn.files.geodesy import degrees_of_minutes as degrees_of_minutes
from veridyn.files.geodesy import enu_of as enu_of
from veridyn.files.geodesy import geodetic_of as geodetic_of
from veridyn.files.geodesy import local_position as local_position
from veridyn.files.log.load import load_log as load_log
from veridyn.files.log.tables import save_log as save_log
from veridyn.files.machine.joint_laws import save_isaac as save_isaac
from veridyn.files.machine.load import load_model as load_model
from veridyn.files.machine.mjcf import load_mjcf as load_mjcf
from veridyn.files.machine.mjcf import mjcf_limits as mjcf_limits
from veridyn.files.machine.mjcf_write import save_mjcf as save_mjcf
from veridyn.files.machine.urdf import load_urdf as load_urdf
from veridyn.files.machine.urdf import urdf_limits as urdf_limits
from veridyn.files.machine.urdf_write import save_urdf as save_urdf
from veridyn.files.machine.write import save_model as save_model
from veridyn.files.osim import load_osim as load_osim
from veridyn.files.osim import load_storage as load_storage
