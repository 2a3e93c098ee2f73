"""Triangles of mesh files: STL, OBJ, PLY, GLB and COLLADA."""
