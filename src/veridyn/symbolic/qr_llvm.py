"""A QR step in vector code: the triangle R takes in a block of equations A.

Householder reflections in panels of four columns; a panel is applied to the columns behind it several at a time, so that each
number read serves several products. No library is called, so threads run side by side without waiting for one another.
"""

from __future__ import annotations

from veridyn.symbolic.lowering import constant, spread

PANEL = 4  # columns of one panel: within it each number read serves one product only, so wider ones are slower
AT_ONCE = 512  # rows of one step: a panel of them stays in the first cache
SUMS = 4  # of a product of two columns: as many as a fused operation takes cycles
# Of a column: where columns depend on each other each block leaves less of it, until squares have no digits and reflections no right angles
SMALLEST_SQUARE = "0x05D0000000000000"  # 2⁻⁹³⁰


def qr_program(width: int) -> str:
    """LLVM text of ``take_in(count, table, work)``: `count` triangles each take in a block of equations.

    A line of the table is (m, n, R, ldr, A, lda): R (n, n) becomes the R factor of [R; A], A (m, n) is used up. Both in column order; m
    is a multiple of 8; `work` holds 128 doubles.
    """
    columns = 2 if width == 4 else 4  # as many as the registers hold: 16 of AVX, 32 of AVX-512 and NEON
    parts = [_header(width), dot(width), axpy(width), scale(width), _panel(), _form_t()]
    parts += [_apply(width, c) for c in sorted({1, columns})]
    return "".join(parts) + _main(columns) + _all()


def _header(w: int) -> str:
    V = f"<{w} x double>"
    return f"""; veridyn: triangular QR
declare double @llvm.vector.reduce.fadd.v{w}f64(double, {V})
declare double @llvm.sqrt.f64(double)
declare double @llvm.copysign.f64(double, double)
declare {V} @llvm.fmuladd.v{w}f64({V}, {V}, {V})
"""


def _panel() -> str:
    """Reflections for columns first to last, one by one, each applied to the rest of the panel; τ goes to tau[column − first]."""
    return f"""
define internal void @panel(i64 %m, i64 %first, i64 %last, ptr %R, i64 %ldr, ptr %A, i64 %lda, ptr %tau) #0 {{
entry:
  br label %column
column:
  %k = phi i64 [ %first, %entry ], [ %knext, %after ]
  %ka = mul i64 %k, %lda
  %v = getelementptr double, ptr %A, i64 %ka
  %kr = mul i64 %k, %ldr
  %kk = add i64 %kr, %k
  %rkk = getelementptr double, ptr %R, i64 %kk
  %alpha = load double, ptr %rkk, align 8
  %s = call double @dot(ptr %v, ptr %v, i64 %m)
  %at = sub i64 %k, %first
  %tp = getelementptr double, ptr %tau, i64 %at
  %none = fcmp ole double %s, {SMALLEST_SQUARE}
  br i1 %none, label %skip, label %reflect
skip:
  store double 0.0, ptr %tp, align 8
  br label %after
reflect:
  %aa = fmul double %alpha, %alpha
  %norm2 = fadd double %aa, %s
  %norm = call double @llvm.sqrt.f64(double %norm2)
  %signed = call double @llvm.copysign.f64(double %norm, double %alpha)
  %beta = fneg double %signed
  %difference = fsub double %beta, %alpha
  %t = fdiv double %difference, %beta
  %back = fneg double %difference
  %inverse = fdiv double 1.0, %back
  call void @scale(double %inverse, ptr %v, i64 %m)
  store double %beta, ptr %rkk, align 8
  store double %t, ptr %tp, align 8
  %j0 = add i64 %k, 1
  %any = icmp slt i64 %j0, %last
  br i1 %any, label %rest, label %after
rest:
  %j = phi i64 [ %j0, %reflect ], [ %jnext, %rest ]
  %ja = mul i64 %j, %lda
  %aj = getelementptr double, ptr %A, i64 %ja
  %jr = mul i64 %j, %ldr
  %jk = add i64 %jr, %k
  %rkj = getelementptr double, ptr %R, i64 %jk
  %r = load double, ptr %rkj, align 8
  %d = call double @dot(ptr %v, ptr %aj, i64 %m)
  %sum = fadd double %r, %d
  %w = fmul double %t, %sum
  %rnew = fsub double %r, %w
  store double %rnew, ptr %rkj, align 8
  %wn = fneg double %w
  call void @axpy(double %wn, ptr %v, ptr %aj, i64 %m)
  %jnext = add i64 %j, 1
  %jmore = icmp slt i64 %jnext, %last
  br i1 %jmore, label %rest, label %after
after:
  %knext = add i64 %k, 1
  %kmore = icmp slt i64 %knext, %last
  br i1 %kmore, label %column, label %done
done:
  ret void
}}
"""


def _form_t() -> str:
    """T (4, 4), column order, with I − V T Vᵀ the product of a panel's reflections: T[:j, j] = −τ_j T[:j, :j] (Vᵀ v_j)."""
    p = PANEL
    lines = []
    for j in range(p):
        lines.append(f"  %tau{j}p = getelementptr double, ptr %tau, i64 {j}")
        lines.append(f"  %tau{j} = load double, ptr %tau{j}p, align 8")
        lines.append(f"  %o{j} = mul i64 %lda, {j}")
        lines.append(f"  %v{j} = getelementptr double, ptr %V, i64 %o{j}")
    for j in range(p):
        lines.append(f"  %n{j} = fneg double %tau{j}")
        lines += [f"  %d{i}_{j} = call double @dot(ptr %v{i}, ptr %v{j}, i64 %m)" for i in range(j)]
        for i in range(p):
            place = f"  %p{i}_{j} = getelementptr double, ptr %T, i64 {j * p + i}"
            lines.append(place)
            if i > j:
                lines.append(f"  store double 0.0, ptr %p{i}_{j}, align 8")
            elif i == j:
                lines.append(f"  store double %tau{j}, ptr %p{i}_{j}, align 8")
                lines.append(f"  %T{i}_{j} = fadd double %tau{j}, 0.0")
            else:
                total = ""
                for k in range(i, j):
                    lines.append(f"  %m{i}_{k}_{j} = fmul double %T{i}_{k}, %d{k}_{j}")
                    if not total:
                        total = f"%m{i}_{k}_{j}"
                    else:
                        lines.append(f"  %a{i}_{k}_{j} = fadd double {total}, %m{i}_{k}_{j}")
                        total = f"%a{i}_{k}_{j}"
                lines.append(f"  %T{i}_{j} = fmul double %n{j}, {total}")
                lines.append(f"  store double %T{i}_{j}, ptr %p{i}_{j}, align 8")
    body = "\n".join(lines)
    return f"""
define internal void @form(i64 %m, ptr %V, i64 %lda, ptr %tau, ptr %T) #0 {{
{body}
  ret void
}}
"""


def _apply(w: int, columns: int) -> str:
    """The reflections of a panel on some columns at once: W = Tᵀ (R_panel + Vᵀ A), R_panel −= W, A −= V W."""
    V, Z, p = f"<{w} x double>", constant(0.0, w), PANEL
    L: list[str] = []
    for b in range(p):
        L += [f"  %vo{b} = mul i64 %lda, {b}", f"  %v{b} = getelementptr double, ptr %V, i64 %vo{b}"]
    for c in range(columns):
        L += [f"  %ao{c} = mul i64 %lda, {c}", f"  %a{c} = getelementptr double, ptr %A, i64 %ao{c}"]
        L += [f"  %ro{c} = mul i64 %ldr, {c}", f"  %r{c} = getelementptr double, ptr %R, i64 %ro{c}"]
    L += ["  br label %inner", "inner:", "  %i = phi i64 [ 0, %entry ], [ %inext, %inner ]"]
    L += [f"  %s{b}_{c} = phi {V} [ {Z}, %entry ], [ %t{b}_{c}, %inner ]" for b in range(p) for c in range(columns)]
    for c in range(columns):
        L += [f"  %ap{c} = getelementptr double, ptr %a{c}, i64 %i", f"  %av{c} = load {V}, ptr %ap{c}, align 8"]
    for b in range(p):
        L += [f"  %vp{b} = getelementptr double, ptr %v{b}, i64 %i", f"  %vv{b} = load {V}, ptr %vp{b}, align 8"]
        L += [
            f"  %t{b}_{c} = call {V} @llvm.fmuladd.v{w}f64({V} %vv{b}, {V} %av{c}, {V} %s{b}_{c})"
            for c in range(columns)
        ]
    L += [
        f"  %inext = add i64 %i, {w}",
        "  %imore = icmp ult i64 %inext, %m",
        "  br i1 %imore, label %inner, label %middle",
    ]
    L += ["middle:"]
    for c in range(columns):
        for b in range(p):
            L += [
                f"  %q{b}_{c} = call reassoc double @llvm.vector.reduce.fadd.v{w}f64(double 0.0, {V} %t{b}_{c})",
                f"  %rp{b}_{c} = getelementptr double, ptr %r{c}, i64 {b}",
                f"  %rv{b}_{c} = load double, ptr %rp{b}_{c}, align 8",
                f"  %u{b}_{c} = fadd double %q{b}_{c}, %rv{b}_{c}",
            ]
    for b in range(p):
        for k in range(b + 1):
            L += [
                f"  %tp{k}_{b} = getelementptr double, ptr %T, i64 {b * p + k}",
                f"  %tv{k}_{b} = load double, ptr %tp{k}_{b}, align 8",
            ]
    for c in range(columns):
        for b in range(p):
            total = ""
            for k in range(b + 1):
                L.append(f"  %h{k}_{b}_{c} = fmul double %tv{k}_{b}, %u{k}_{c}")
                if not total:
                    total = f"%h{k}_{b}_{c}"
                else:
                    L.append(f"  %g{k}_{b}_{c} = fadd double {total}, %h{k}_{b}_{c}")
                    total = f"%g{k}_{b}_{c}"
            L.append(f"  %w{b}_{c} = fneg double {total}")
            L.append(f"  %rn{b}_{c} = fadd double %rv{b}_{c}, %w{b}_{c}")
            L.append(f"  store double %rn{b}_{c}, ptr %rp{b}_{c}, align 8")
            L.append(spread(w, f"wv{b}_{c}", f"%w{b}_{c}"))
    L += ["  br label %outer", "outer:", "  %e = phi i64 [ 0, %middle ], [ %enext, %outer ]"]
    for c in range(columns):
        L += [f"  %bp{c} = getelementptr double, ptr %a{c}, i64 %e", f"  %z{c}_0 = load {V}, ptr %bp{c}, align 8"]
    for b in range(p):
        L += [f"  %xp{b} = getelementptr double, ptr %v{b}, i64 %e", f"  %xv{b} = load {V}, ptr %xp{b}, align 8"]
        L += [
            f"  %z{c}_{b + 1} = call {V} @llvm.fmuladd.v{w}f64({V} %xv{b}, {V} %wv{b}_{c}, {V} %z{c}_{b})"
            for c in range(columns)
        ]
    L += [f"  store {V} %z{c}_{p}, ptr %bp{c}, align 8" for c in range(columns)]
    L += [
        f"  %enext = add i64 %e, {w}",
        "  %emore = icmp ult i64 %enext, %m",
        "  br i1 %emore, label %outer, label %done",
    ]
    body = "\n".join(L)
    return f"""
define internal void @apply{columns}(i64 %m, ptr %V, ptr %T, ptr %R, i64 %ldr, ptr %A, i64 %lda) #0 {{
entry:
{body}
done:
  ret void
}}
"""


def _main(columns: int) -> str:
    p = PANEL
    return f"""
define internal void @qr(i64 %m, i64 %n, ptr %R, i64 %ldr, ptr %A, i64 %lda, ptr %work) #0 {{
entry:
  %T = getelementptr double, ptr %work, i64 {p}
  br label %panels
panels:
  %k = phi i64 [ 0, %entry ], [ %knext, %behind ]
  %knext = add i64 %k, {p}
  %whole = icmp sle i64 %knext, %n
  br i1 %whole, label %full, label %last
full:
  call void @panel(i64 %m, i64 %k, i64 %knext, ptr %R, i64 %ldr, ptr %A, i64 %lda, ptr %work)
  %ka = mul i64 %k, %lda
  %V = getelementptr double, ptr %A, i64 %ka
  %some = icmp slt i64 %knext, %n
  br i1 %some, label %prepare, label %finish
prepare:
  call void @form(i64 %m, ptr %V, i64 %lda, ptr %work, ptr %T)
  br label %several
several:
  %j = phi i64 [ %knext, %prepare ], [ %jnext, %do ]
  %jnext = add i64 %j, {columns}
  %room = icmp sle i64 %jnext, %n
  br i1 %room, label %do, label %singles
do:
  %ja = mul i64 %j, %lda
  %aj = getelementptr double, ptr %A, i64 %ja
  %jr = mul i64 %j, %ldr
  %jk = add i64 %jr, %k
  %rj = getelementptr double, ptr %R, i64 %jk
  call void @apply{columns}(i64 %m, ptr %V, ptr %T, ptr %rj, i64 %ldr, ptr %aj, i64 %lda)
  br label %several
singles:
  %c = phi i64 [ %j, %several ], [ %cnext, %one ]
  %left = icmp slt i64 %c, %n
  br i1 %left, label %one, label %behind
one:
  %ca = mul i64 %c, %lda
  %ac = getelementptr double, ptr %A, i64 %ca
  %cr = mul i64 %c, %ldr
  %ck = add i64 %cr, %k
  %rc = getelementptr double, ptr %R, i64 %ck
  call void @apply1(i64 %m, ptr %V, ptr %T, ptr %rc, i64 %ldr, ptr %ac, i64 %lda)
  %cnext = add i64 %c, 1
  br label %singles
behind:
  %more = icmp slt i64 %knext, %n
  br i1 %more, label %panels, label %finish
last:
  %any = icmp slt i64 %k, %n
  br i1 %any, label %tail, label %finish
tail:
  call void @panel(i64 %m, i64 %k, i64 %n, ptr %R, i64 %ldr, ptr %A, i64 %lda, ptr %work)
  br label %finish
finish:
  ret void
}}
"""


def _all() -> str:
    """Every line of the table, in steps of some rows, so that a panel stays in the first cache."""
    names = ("m", "n", "R", "ldr", "A", "lda")
    loads = "".join(
        f"""  %{name}.p = getelementptr i64, ptr %line, i64 {k}
  %{name} = load {"ptr" if name in ("R", "A") else "i64"}, ptr %{name}.p, align 8
"""
        for k, name in enumerate(names)
    )
    return f"""
define void @take_in(i64 %count, ptr %table, ptr %work) #0 {{
entry:
  br label %lines
lines:
  %k = phi i64 [ 0, %entry ], [ %knext, %ended ]
  %at = mul i64 %k, {len(names)}
  %line = getelementptr i64, ptr %table, i64 %at
{loads}  br label %steps
steps:
  %s = phi i64 [ 0, %lines ], [ %snext, %steps ]
  %snext = add i64 %s, {AT_ONCE}
  %left = sub i64 %m, %s
  %short = icmp slt i64 %left, {AT_ONCE}
  %rows = select i1 %short, i64 %left, i64 {AT_ONCE}
  %part = getelementptr double, ptr %A, i64 %s
  call void @qr(i64 %rows, i64 %n, ptr %R, i64 %ldr, ptr %part, i64 %lda, ptr %work)
  %smore = icmp slt i64 %snext, %m
  br i1 %smore, label %steps, label %ended
ended:
  %knext = add i64 %k, 1
  %kmore = icmp slt i64 %knext, %count
  br i1 %kmore, label %lines, label %done
done:
  ret void
}}
attributes #0 = {{ nounwind noinline }}
"""


def dot(w: int) -> str:
    """xᵀy of m numbers, m a multiple of 8: in `SUMS` sums that do not wait for one another, and what is left in one."""
    V, Z, step = f"<{w} x double>", constant(0.0, w), SUMS * w
    phis = "".join(f"  %s{u} = phi {V} [ {Z}, %entry ], [ %t{u}, %loop ]\n" for u in range(SUMS))
    body = "".join(_product(f"{u}", f"%i{u}", f"%s{u}") for u in range(SUMS))
    places = "".join(f"  %i{u} = add i64 %i, {u * w}\n" for u in range(SUMS))
    ends = "".join(f"  %e{u} = phi {V} [ {Z}, %entry ], [ %t{u}, %loop ]\n" for u in range(SUMS))
    total, sums = "%e0", ""
    for u in range(1, SUMS):
        sums += f"  %sum{u} = fadd {V} {total}, %e{u}\n"
        total = f"%sum{u}"
    return f"""
define internal double @dot(ptr %x, ptr %y, i64 %m) #0 {{
entry:
  %rest = urem i64 %m, {step}
  %whole = sub i64 %m, %rest
  %any = icmp ugt i64 %whole, 0
  br i1 %any, label %loop, label %between
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}{places}{body.replace("VECTOR", V).replace("WIDTH", str(w))}  %next = add i64 %i, {step}
  %more = icmp ult i64 %next, %whole
  br i1 %more, label %loop, label %between
between:
{ends}{sums}  %left = icmp ult i64 %whole, %m
  br i1 %left, label %tail, label %done
tail:
  %k = phi i64 [ %whole, %between ], [ %knext, %tail ]
  %z = phi {V} [ {total}, %between ], [ %tz, %tail ]
{_product("z", "%k", "%z").replace("VECTOR", V).replace("WIDTH", str(w))}  %knext = add i64 %k, {w}
  %kmore = icmp ult i64 %knext, %m
  br i1 %kmore, label %tail, label %done
done:
  %all = phi {V} [ {total}, %between ], [ %tz, %tail ]
  %r = call reassoc double @llvm.vector.reduce.fadd.v{w}f64(double 0.0, {V} %all)
  ret double %r
}}
"""


def _product(name: str, at: str, sum_: str) -> str:
    """One vector of x times one of y, added to a sum, as %t`name`."""
    return f"""  %xp{name} = getelementptr double, ptr %x, i64 {at}
  %yp{name} = getelementptr double, ptr %y, i64 {at}
  %xv{name} = load VECTOR, ptr %xp{name}, align 8
  %yv{name} = load VECTOR, ptr %yp{name}, align 8
  %t{name} = call VECTOR @llvm.fmuladd.vWIDTHf64(VECTOR %xv{name}, VECTOR %yv{name}, VECTOR {sum_})
"""


def axpy(w: int) -> str:
    """y += a x of m numbers, m a multiple of 8."""
    V = f"<{w} x double>"
    return _each_vector(
        w,
        "@axpy(double %a, ptr %x, ptr %y, i64 %m)",
        f"""  %xp = getelementptr double, ptr %x, i64 %i
  %yp = getelementptr double, ptr %y, i64 %i
  %xv = load {V}, ptr %xp, align 8
  %yv = load {V}, ptr %yp, align 8
  %r = call {V} @llvm.fmuladd.v{w}f64({V} %av, {V} %xv, {V} %yv)
  store {V} %r, ptr %yp, align 8""",
    )


def scale(w: int) -> str:
    """x times a, m numbers, m a multiple of 8."""
    V = f"<{w} x double>"
    return _each_vector(
        w,
        "@scale(double %a, ptr %x, i64 %m)",
        f"""  %xp = getelementptr double, ptr %x, i64 %i
  %xv = load {V}, ptr %xp, align 8
  %r = fmul {V} %av, %xv
  store {V} %r, ptr %xp, align 8""",
    )


def _each_vector(w: int, signature: str, body: str) -> str:
    """A function of %a, spread over a register as %av, and of m numbers, whose body handles those from %i on, w at a time."""
    return f"""
define internal void {signature} #0 {{
entry:
{spread(w, "av", "%a")}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}
  %next = add i64 %i, {w}
  %more = icmp ult i64 %next, %m
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
