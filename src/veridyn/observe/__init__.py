"""Unknown states: observers that run a model beside its sensors."""
