"""The machine that kernels are compiled for. LLVM is imported when it is first asked: much of the package compiles nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import llvmlite.binding as llvm


@dataclass(frozen=True)
class Host:
    """LLVM's name for the processor, its features, its triple, and how many doubles one vector register holds."""

    triple: str
    cpu: str
    features: str
    width: int

    @property
    def signature(self) -> str:
        """What a compiled object depends on besides its program."""
        import llvmlite

        return f"{self.triple}|{self.cpu}|{self.features}|{self.width}|llvmlite {llvmlite.__version__}"

    def target_machine(self, effort: int = 2) -> llvm.TargetMachine:
        """LLVM's compiler for this host; `effort` from 0, which takes the least time, to 3."""
        import llvmlite.binding as llvm

        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=effort, reloc="default", codemodel="jitdefault", jit=True
        )


@cache
def start_llvm() -> None:
    """Make LLVM ready, once for each process."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def this_host(width: int | None = None) -> Host:
    """The machine this runs on; `width` overrides how many doubles are worked on at once (2, 4, 8)."""
    import llvmlite.binding as llvm

    start_llvm()
    found = llvm.get_host_cpu_features()
    features = found.flatten()
    natural = 8 if found.get("avx512f") else 4 if found.get("avx") else 2
    chosen = width or natural
    if chosen == 8 and found.get("avx512f"):
        features += ",-prefer-256-bit"
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, chosen)
