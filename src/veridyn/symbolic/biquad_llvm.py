"""A cascade of second-order sections in vector code: many columns pass it side by side, in place.

Each section is a direct form II transposed, in the order of operations of SciPy's ``sosfilt``:

    y = b₀ x + z₀,    z₀ ← b₁ x − a₁ y + z₁,    z₁ ← b₂ x − a₂ y
"""

from __future__ import annotations

from veridyn.symbolic.llvm_functions import spread

NAMES = ("b0", "b1", "b2", "a1", "a2")  # of a section, in the order of its line of coefficients


def biquad_program(width: int, sections: int) -> str:
    """LLVM text of ``cascade(groups, samples, x, column, step, coefficients, state)``: `groups` times `width` columns are filtered.

    Sample i of column k stands at x + k·column + i·step (doubles). A line of the coefficients is b₀, b₁, b₂, a₁, a₂ of a section;
    `state` (groups, sections, 2, width) holds z₀ and z₁, before and after.
    """
    V = f"<{width} x double>"
    lanes = range(width)
    lines = [
        "; veridyn: second-order sections",
        "define void @cascade(i64 %groups, i64 %n, ptr %x, i64 %column, i64 %step, ptr %c, ptr %z) {",
        "entry:",
        "  %any = icmp sgt i64 %n, 0",
        "  %some = icmp sgt i64 %groups, 0",
        "  %both = and i1 %any, %some",
        "  br i1 %both, label %start, label %done",
        "start:",
    ]
    for s in range(sections):
        for k, name in enumerate(NAMES):
            lines += [
                f"  %{name}p{s} = getelementptr double, ptr %c, i64 {5 * s + k}",
                f"  %{name}d{s} = load double, ptr %{name}p{s}, align 8",
                spread(width, f"{name}{s}", f"%{name}d{s}"),
            ]
    lines += [
        f"  %wide = mul i64 %column, {width}",
        "  br label %group",
        "group:",
        "  %g = phi i64 [ 0, %start ], [ %gnext, %after ]",
        "  %first = mul i64 %g, %wide",
    ]
    for k in lanes:
        lines += [
            f"  %o{k} = mul i64 %column, {k}",
            f"  %at{k} = add i64 %first, %o{k}",
            f"  %p{k} = getelementptr double, ptr %x, i64 %at{k}",
        ]
    lines += [f"  %states = mul i64 %g, {2 * sections * width}"]
    for s in range(sections):
        for j in range(2):
            lines += [
                f"  %zo{s}{j} = add i64 %states, {(2 * s + j) * width}",
                f"  %zp{s}{j} = getelementptr double, ptr %z, i64 %zo{s}{j}",
                f"  %zs{s}{j} = load {V}, ptr %zp{s}{j}, align 8",
            ]
    lines += ["  br label %sample", "sample:", "  %i = phi i64 [ 0, %group ], [ %inext, %sample ]"]
    for s in range(sections):
        lines += [f"  %z{s}{j} = phi {V} [ %zs{s}{j}, %group ], [ %zn{s}{j}, %sample ]" for j in range(2)]
    lines += ["  %off = mul i64 %i, %step"]
    before = "poison"
    for k in lanes:
        lines += [
            f"  %a{k} = getelementptr double, ptr %p{k}, i64 %off",
            f"  %x{k} = load double, ptr %a{k}, align 8",
            f"  %v{k} = insertelement {V} {before}, double %x{k}, i32 {k}",
        ]
        before = f"%v{k}"
    value = before
    for s in range(sections):
        lines += [
            f"  %m{s} = fmul {V} %b0{s}, {value}",
            f"  %y{s} = fadd {V} %m{s}, %z{s}0",
            f"  %r{s} = fmul {V} %b1{s}, {value}",
            f"  %q{s} = fmul {V} %a1{s}, %y{s}",
            f"  %t{s} = fsub {V} %r{s}, %q{s}",
            f"  %zn{s}0 = fadd {V} %t{s}, %z{s}1",
            f"  %u{s} = fmul {V} %b2{s}, {value}",
            f"  %w{s} = fmul {V} %a2{s}, %y{s}",
            f"  %zn{s}1 = fsub {V} %u{s}, %w{s}",
        ]
        value = f"%y{s}"
    for k in lanes:
        lines += [f"  %e{k} = extractelement {V} {value}, i32 {k}", f"  store double %e{k}, ptr %a{k}, align 8"]
    lines += [
        "  %inext = add i64 %i, 1",
        "  %more = icmp slt i64 %inext, %n",
        "  br i1 %more, label %sample, label %after",
        "after:",
    ]
    lines += [f"  store {V} %zn{s}{j}, ptr %zp{s}{j}, align 8" for s in range(sections) for j in range(2)]
    lines += [
        "  %gnext = add i64 %g, 1",
        "  %gmore = icmp slt i64 %gnext, %groups",
        "  br i1 %gmore, label %group, label %done",
        "done:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)
