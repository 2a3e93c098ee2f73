"""Unknown states: observers that run a model beside its sensors."""

from veridyn.verbs import speak

speak(__name__, "veridyn.observe.observe", "observe")
