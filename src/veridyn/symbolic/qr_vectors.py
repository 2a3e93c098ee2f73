"""What a QR step does with one or two columns, in vector code: LLVM text of ``dot``, ``axpy`` and ``scale`` for registers of w doubles."""

from __future__ import annotations

from veridyn.symbolic.llvm_text import constant, spread

SUMS = 4  # of a product of two columns: as many as a fused operation takes cycles


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
