"""The triangles of a mesh file, by the ending of its name and by what it holds.

vertices, faces = load_mesh("meshes/link1.stl")
"""

from __future__ import annotations

from pathlib import Path

from veridyn.errors import Fault, FileError
from veridyn.files.mesh.dae import read_dae
from veridyn.files.mesh.glb import read_glb
from veridyn.files.mesh.limits import LARGEST_FILE, MeshFault, Triangles
from veridyn.files.mesh.plain import read_obj, read_stl
from veridyn.files.mesh.ply import read_ply

READERS = {".stl": read_stl, ".obj": read_obj, ".dae": read_dae, ".ply": read_ply, ".glb": read_glb}


def load_mesh(file: Path) -> Triangles:
    """The triangles of a file, in its own unit; :class:`veridyn.errors.FileError` says why one is not read."""
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        hint = "Convert it, for instance in Blender or MeshLab."
        found = file.suffix or "no ending"
        raise FileError(Fault("meshes of this kind are not read.", expected=", ".join(READERS), found=found, hint=hint))
    try:
        size = file.stat().st_size
        if size > LARGEST_FILE:
            expected = f"at most {LARGEST_FILE >> 20} MiB"
            raise FileError(Fault("it is too large.", expected=expected, found=f"{size / (1 << 20):.0f} MiB"))
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)  # a pipe or a file that grows has another size than it says
    except OSError as error:
        raise FileError(Fault("it cannot be read.", found=error.strerror or str(error))) from error
    if len(content) > LARGEST_FILE:
        raise FileError(Fault("it is too large.", expected=f"at most {LARGEST_FILE >> 20} MiB"))
    try:
        return reader(content)
    except MeshFault as fault:
        raise FileError(Fault(fault.what, expected=fault.expected, found=fault.found, hint=fault.hint)) from None
