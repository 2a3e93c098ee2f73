"""A stretch of a log in one call: equations by a kernel, block after block, their measured side, and the triangles that take them in.

For each row j of a block, with the table [W_j | known_j] that the kernel writes, the measured side becomes Γ_j − known_j, samples that the
row does not use are closed up, the moments of its measured force are added to those of the blocks before, and the triangle R_j takes the
equations in (:mod:`veridyn.symbolic.qr_llvm`). Nothing returns to the caller before the last block, so threads do not meet.
"""

from __future__ import annotations

from veridyn.symbolic.qr_llvm import qr_program

# Numbers of eight bytes that describe a kernel, a row and a stretch, in their order; * marks addresses.
KERNEL = ("function*", "inputs", "pointers*", "strides*", "scratch*", "parameters*", "out*", "work*")
ROW = (
    *("columns", "table*", "lda", "R*", "ldr", "force*", "force_stride", "beside*", "beside_stride"),
    *("used*", "used_stride", "y*", "measured*", "moments*"),
)
STRETCH = (
    *("samples", "step", "block", "rows", "table*", "lines*", "work*", "places*", "apart"),
    *("blanks", "blank*", "equations*", "beside*"),
)
MOMENTS = (
    9  # samples, mean, scatter, roughness, triples; the last two measured forces, and the numbers of their samples
)
LINE = 6  # numbers that take_in reads of each triangle
FAR = -(2**40)  # the number of a sample that none follows


def stream_program(width: int) -> str:
    """LLVM text of ``stream(stretch)``: the triangles and moments of all rows after the samples of a stretch.

    `stretch` has the fields of `STRETCH`: its samples, taken `step` at a time; `block`, the samples between borders, across which no second
    difference is taken; `rows` lines of `table` with the fields of `ROW`; `lines`
    and `work` for :func:`~veridyn.symbolic.qr_llvm.qr_program`; `places`, a number for each sample of a step; `apart`, how far the first
    and last of three samples lie apart that follow each other; `blanks` columns at the addresses `blank` that no kernel writes; and two
    kernels with the fields of `KERNEL`, of which the second writes what is known of the measured force and may be missing.

    Of a row, sample s of the measured force is ``force[s * force_stride] − beside[…]``, and of the right-hand side ``force[…]`` less the
    last column of its table; it is used where ``used[s * used_stride]`` is not 0 and the right-hand side is finite. `force` and `used`
    count samples of the stretch, `beside` and `y`, which keeps the measured force, those of a step; `measured` is what moments are of.
    """
    return qr_program(width) + "".join((_EVALUATE, _BLANK, _SELECT, _CLOSE_UP, _MOMENTS, _ROW, _STREAM))


def _fields(record: str, names: tuple[str, ...], wanted: str) -> str:
    """Loads of some fields of a record, each under its name."""
    lines = ""
    for name in wanted.split():
        place = next(k for k, n in enumerate(names) if n.rstrip("*") == name)
        kind = "ptr" if names[place].endswith("*") else "i64"
        lines += f"  %{name}.field = getelementptr i64, ptr %{record}, i64 {place}\n  %{name} = load {kind}, ptr %{name}.field, align 8\n"
    return lines


_EVALUATE = f"""
define internal void @evaluate(ptr %kernel, i64 %at, i64 %n) #0 {{
entry:
{_fields("kernel", KERNEL, "function inputs pointers strides scratch parameters out work")}  %none = icmp eq ptr %function, null
  br i1 %none, label %done, label %begin
begin:
  %any = icmp sgt i64 %inputs, 0
  br i1 %any, label %shift, label %run
shift:
  %k = phi i64 [ 0, %begin ], [ %knext, %shift ]
  %first.p = getelementptr ptr, ptr %pointers, i64 %k
  %first = load ptr, ptr %first.p, align 8
  %stride.p = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride.p, align 8
  %far = mul i64 %stride, %at
  %here = getelementptr double, ptr %first, i64 %far
  %here.p = getelementptr ptr, ptr %scratch, i64 %k
  store ptr %here, ptr %here.p, align 8
  %knext = add i64 %k, 1
  %more = icmp slt i64 %knext, %inputs
  br i1 %more, label %shift, label %run
run:
  call void %function(i64 0, i64 %n, i64 %n, ptr %scratch, ptr %strides, ptr %parameters, ptr %out, ptr %work, i64 0)
  br label %done
done:
  ret void
}}
"""

_BLANK = """
define internal void @clear(ptr %column, i64 %from, i64 %to) #0 {
entry:
  br label %check
check:
  %k = phi i64 [ %from, %entry ], [ %knext, %zero ]
  %more = icmp slt i64 %k, %to
  br i1 %more, label %zero, label %done
zero:
  %p = getelementptr double, ptr %column, i64 %k
  store double 0.0, ptr %p, align 8
  %knext = add i64 %k, 1
  br label %check
done:
  ret void
}
define internal void @clear_all(i64 %count, ptr %columns, i64 %n) #0 {
entry:
  br label %check
check:
  %k = phi i64 [ 0, %entry ], [ %knext, %one ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %done
one:
  %p = getelementptr ptr, ptr %columns, i64 %k
  %column = load ptr, ptr %p, align 8
  call void @clear(ptr %column, i64 0, i64 %n)
  %knext = add i64 %k, 1
  br label %check
done:
  ret void
}
"""

# The measured side of n samples, and the places of those in use; returns how many they are.
_SELECT = f"""
declare double @llvm.fabs.f64(double)
define internal i64 @select(ptr %row, ptr %last, i64 %at, i64 %n, ptr %places) #0 {{
entry:
{_fields("row", ROW, "force force_stride beside beside_stride used used_stride y")}  br label %sample
sample:
  %s = phi i64 [ 0, %entry ], [ %snext, %sample ]
  %count = phi i64 [ 0, %entry ], [ %countnext, %sample ]
  %number = add i64 %at, %s
  %f.at = mul i64 %number, %force_stride
  %f.p = getelementptr double, ptr %force, i64 %f.at
  %f = load double, ptr %f.p, align 8
  %b.at = mul i64 %s, %beside_stride
  %b.p = getelementptr double, ptr %beside, i64 %b.at
  %b = load double, ptr %b.p, align 8
  %a.p = getelementptr double, ptr %last, i64 %s
  %a = load double, ptr %a.p, align 8
  %side = fsub double %f, %a
  store double %side, ptr %a.p, align 8
  %own = fsub double %f, %b
  %y.p = getelementptr double, ptr %y, i64 %s
  store double %own, ptr %y.p, align 8
  %u.at = mul i64 %number, %used_stride
  %u.p = getelementptr i8, ptr %used, i64 %u.at
  %u = load i8, ptr %u.p, align 1
  %taken = icmp ne i8 %u, 0
  %size = call double @llvm.fabs.f64(double %side)
  %finite = fcmp olt double %size, 0x7FF0000000000000
  %both = and i1 %taken, %finite
  %place.p = getelementptr i64, ptr %places, i64 %count
  store i64 %s, ptr %place.p, align 8
  %one = zext i1 %both to i64
  %countnext = add i64 %count, %one
  %snext = add i64 %s, 1
  %more = icmp slt i64 %snext, %n
  br i1 %more, label %sample, label %done
done:
  ret i64 %countnext
}}
"""

_CLOSE_UP = """
define internal void @close_up(ptr %column, i64 %count, ptr %places) #0 {
entry:
  br label %check
check:
  %k = phi i64 [ 0, %entry ], [ %knext, %move ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %move, label %done
move:
  %place.p = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %place.p, align 8
  %from = getelementptr double, ptr %column, i64 %place
  %x = load double, ptr %from, align 8
  %to = getelementptr double, ptr %column, i64 %k
  store double %x, ptr %to, align 8
  %knext = add i64 %k, 1
  br label %check
done:
  ret void
}
"""

# Mean, scatter and second differences of some samples, merged with those before (Chan, Golub and LeVeque, 1983).
_MOMENTS = """
define internal void @merge_moments(ptr %y, i64 %at, i64 %count, ptr %places, i64 %apart, ptr %moments) #0 {
entry:
  %y1.p = getelementptr double, ptr %moments, i64 5
  %y2.p = getelementptr double, ptr %moments, i64 6
  %p1.p = getelementptr i64, ptr %moments, i64 7
  %p2.p = getelementptr i64, ptr %moments, i64 8
  %y1.old = load double, ptr %y1.p, align 8
  %y2.old = load double, ptr %y2.p, align 8
  %p1.old = load i64, ptr %p1.p, align 8
  %p2.old = load i64, ptr %p2.p, align 8
  br label %add
add:
  %i = phi i64 [ 0, %entry ], [ %inext, %add ]
  %sum = phi double [ 0.0, %entry ], [ %sumnext, %add ]
  %x.p = getelementptr double, ptr %y, i64 %i
  %x = load double, ptr %x.p, align 8
  %sumnext = fadd double %sum, %x
  %inext = add i64 %i, 1
  %imore = icmp slt i64 %inext, %count
  br i1 %imore, label %add, label %middle
middle:
  %n = sitofp i64 %count to double
  %mean = fdiv double %sumnext, %n
  br label %scatter
scatter:
  %k = phi i64 [ 0, %middle ], [ %knext, %scatter ]
  %square = phi double [ 0.0, %middle ], [ %squarenext, %scatter ]
  %rough = phi double [ 0.0, %middle ], [ %roughnext, %scatter ]
  %triples = phi i64 [ 0, %middle ], [ %triplesnext, %scatter ]
  %y1 = phi double [ %y1.old, %middle ], [ %v, %scatter ]
  %y2 = phi double [ %y2.old, %middle ], [ %y1, %scatter ]
  %p1 = phi i64 [ %p1.old, %middle ], [ %p, %scatter ]
  %p2 = phi i64 [ %p2.old, %middle ], [ %p1, %scatter ]
  %v.p = getelementptr double, ptr %y, i64 %k
  %v = load double, ptr %v.p, align 8
  %p.p = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %p.p, align 8
  %p = add i64 %place, %at
  %d = fsub double %v, %mean
  %dd = fmul double %d, %d
  %squarenext = fadd double %square, %dd
  %fall = fsub double %y2, %y1
  %rise = fsub double %v, %y1
  %second = fadd double %fall, %rise
  %ss = fmul double %second, %second
  %span = sub i64 %p, %p2
  %follow = icmp eq i64 %span, %apart
  %counted = select i1 %follow, double %ss, double 0.0
  %roughnext = fadd double %rough, %counted
  %hit = zext i1 %follow to i64
  %triplesnext = add i64 %triples, %hit
  %knext = add i64 %k, 1
  %kmore = icmp slt i64 %knext, %count
  br i1 %kmore, label %scatter, label %merge
merge:
  %m1.p = getelementptr double, ptr %moments, i64 1
  %m2.p = getelementptr double, ptr %moments, i64 2
  %m3.p = getelementptr double, ptr %moments, i64 3
  %m4.p = getelementptr double, ptr %moments, i64 4
  %m0 = load double, ptr %moments, align 8
  %m1 = load double, ptr %m1.p, align 8
  %m2 = load double, ptr %m2.p, align 8
  %m3 = load double, ptr %m3.p, align 8
  %m4 = load double, ptr %m4.p, align 8
  %all = fadd double %m0, %n
  %share = fdiv double %n, %all
  %step = fsub double %mean, %m1
  %part = fmul double %step, %share
  %mean.new = fadd double %m1, %part
  %cross = fmul double %part, %step
  %between = fmul double %cross, %m0
  %within = fadd double %m2, %squarenext
  %scatter.new = fadd double %within, %between
  %rough.new = fadd double %m3, %roughnext
  %t = sitofp i64 %triplesnext to double
  %triples.new = fadd double %m4, %t
  store double %all, ptr %moments, align 8
  store double %mean.new, ptr %m1.p, align 8
  store double %scatter.new, ptr %m2.p, align 8
  store double %rough.new, ptr %m3.p, align 8
  store double %triples.new, ptr %m4.p, align 8
  store double %v, ptr %y1.p, align 8
  store double %y1, ptr %y2.p, align 8
  store i64 %p, ptr %p1.p, align 8
  store i64 %p1, ptr %p2.p, align 8
  ret void
}
"""

# One row of a block, made ready for its triangle: a line of take_in; returns how many samples it uses.
_ROW = f"""
define internal i64 @make_ready(ptr %row, i64 %at, i64 %n, i1 %border, ptr %places, i64 %apart, ptr %line) #0 {{
entry:
{_fields("row", ROW, "columns table lda R ldr y measured moments")}  br i1 %border, label %forget, label %begin
forget:
  %p1.p = getelementptr i64, ptr %moments, i64 7
  %p2.p = getelementptr i64, ptr %moments, i64 8
  store i64 {FAR}, ptr %p1.p, align 8
  store i64 {FAR}, ptr %p2.p, align 8
  br label %begin
begin:
  %before = sub i64 %columns, 1
  %last.at = mul i64 %before, %lda
  %last = getelementptr double, ptr %table, i64 %last.at
  %count = call i64 @select(ptr %row, ptr %last, i64 %at, i64 %n, ptr %places)
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %fill, label %done
fill:
  %up = add i64 %count, 7
  %full = and i64 %up, -8
  %fewer = icmp slt i64 %count, %n
  br label %column
column:
  %c = phi i64 [ 0, %fill ], [ %cnext, %pad ]
  %c.at = mul i64 %c, %lda
  %here = getelementptr double, ptr %table, i64 %c.at
  br i1 %fewer, label %close, label %pad
close:
  call void @close_up(ptr %here, i64 %count, ptr %places)
  br label %pad
pad:
  call void @clear(ptr %here, i64 %count, i64 %full)
  %cnext = add i64 %c, 1
  %cmore = icmp slt i64 %cnext, %columns
  br i1 %cmore, label %column, label %judge
judge:
  call void @close_up(ptr %y, i64 %count, ptr %places)
  call void @merge_moments(ptr %measured, i64 %at, i64 %count, ptr %places, i64 %apart, ptr %moments)
  %l1 = getelementptr i64, ptr %line, i64 1
  %l2 = getelementptr i64, ptr %line, i64 2
  %l3 = getelementptr i64, ptr %line, i64 3
  %l4 = getelementptr i64, ptr %line, i64 4
  %l5 = getelementptr i64, ptr %line, i64 5
  store i64 %full, ptr %line, align 8
  store i64 %columns, ptr %l1, align 8
  store ptr %R, ptr %l2, align 8
  store i64 %ldr, ptr %l3, align 8
  store ptr %table, ptr %l4, align 8
  store i64 %lda, ptr %l5, align 8
  br label %done
done:
  ret i64 %count
}}
"""

_STREAM = f"""
declare i64 @llvm.smin.i64(i64, i64)
define void @stream(ptr %stretch) #0 {{
entry:
{_fields("stretch", STRETCH, "samples step block rows table lines work places apart blanks blank equations beside")}  br label %blocks
blocks:
  %at = phi i64 [ 0, %entry ], [ %end, %next ]
  %left = sub i64 %samples, %at
  %into = urem i64 %at, %block
  %border = icmp eq i64 %into, 0
  %within = sub i64 %block, %into
  %first = call i64 @llvm.smin.i64(i64 %left, i64 %within)
  %n = call i64 @llvm.smin.i64(i64 %first, i64 %step)
  %end = add i64 %at, %n
  call void @clear_all(i64 %blanks, ptr %blank, i64 %n)
  call void @evaluate(ptr %equations, i64 %at, i64 %n)
  call void @evaluate(ptr %beside, i64 %at, i64 %n)
  br label %each
each:
  %r = phi i64 [ 0, %blocks ], [ %rnext, %each ]
  %count = phi i64 [ 0, %blocks ], [ %countnext, %each ]
  %row.at = mul i64 %r, {len(ROW)}
  %row = getelementptr i64, ptr %table, i64 %row.at
  %line.at = mul i64 %count, {LINE}
  %line = getelementptr i64, ptr %lines, i64 %line.at
  %taken = call i64 @make_ready(ptr %row, i64 %at, i64 %n, i1 %border, ptr %places, i64 %apart, ptr %line)
  %some = icmp sgt i64 %taken, 0
  %one = zext i1 %some to i64
  %countnext = add i64 %count, %one
  %rnext = add i64 %r, 1
  %rmore = icmp slt i64 %rnext, %rows
  br i1 %rmore, label %each, label %absorb
absorb:
  %any = icmp sgt i64 %countnext, 0
  br i1 %any, label %take, label %next
take:
  call void @take_in(i64 %countnext, ptr %lines, ptr %work)
  br label %next
next:
  %more = icmp slt i64 %end, %samples
  br i1 %more, label %blocks, label %done
done:
  ret void
}}
"""
