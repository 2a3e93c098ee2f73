// The identified machine itself: its equations as WebAssembly, integrated here; nothing comes from outside.
window.running = [];
for (const figure of document.querySelectorAll("figure.running")) {
  const about = JSON.parse(figure.querySelector("script").textContent), n = about.coordinates.length;
  const find = (what) => figure.querySelector(what), canvas = find("canvas");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const q = about.coordinates.map((c) => c.home), tau = q.map(() => 0);
  const machines = [0, 1].map(() => ({ q: q.slice(), qd: q.map(() => 0) }));  // as identified, and with the changed parameter
  let changed = 0, share = 0, falling = false, time = 0, azimuth = -1.05, elevation = 0.35, failed = "";

  const kernel = async (made) => {
    const bytes = Uint8Array.from(atob(made.code), (c) => c.charCodeAt(0));
    const { instance: { exports: e } } = await WebAssembly.instantiate(bytes);
    const inputs = e.free.value, outputs = inputs + 8 * made.samples.length, end = outputs + 8 * made.outputs.length;
    if (end > e.memory.buffer.byteLength) e.memory.grow(Math.ceil((end - e.memory.buffer.byteLength) / 65536));
    const given = new Float64Array(e.memory.buffer, inputs, made.samples.length), found = new Float64Array(e.memory.buffer, outputs, made.outputs.length);
    const parameters = new Float64Array(e.memory.buffer, e.parameters.value, made.values.length);
    return (values, phi, size) => {
      made.samples.forEach(([kind, k], i) => { given[i] = kind === "zero" ? 0 : values[kind][k]; });
      parameters.set(phi);
      e.run(inputs, outputs, 1);
      const out = new Float64Array(size);
      made.outputs.forEach((row, i) => { out[row] = found[i]; });
      return out;
    };
  };
  const ready = Promise.all([kernel(about.forward), kernel(about.points)]).then(([forward, points]) => {
    const phiOf = (which) => {
      const phi = about.forward.values.slice();
      if (which && about.parameters.length) for (const [at, factor] of about.parameters[changed].moves) phi[at] += factor * share * about.parameters[changed].sigma;
      return phi;
    };
    const accelerations = (state, which) => forward({ q: state.q, qd: state.qd, t: tau }, phiOf(which), n);
    const moved = (state, rate, dt) => ({ q: state.q.map((v, i) => v + dt * rate.q[i]), qd: state.qd.map((v, i) => v + dt * rate.qd[i]) });
    const rateOf = (state, which) => ({ q: state.qd, qd: Array.from(accelerations(state, which)) });
    const step = (state, which, h) => {
      const a = rateOf(state, which), b = rateOf(moved(state, a, h / 2), which), c = rateOf(moved(state, b, h / 2), which), d = rateOf(moved(state, c, h), which);
      const mix = (k) => state[k].map((v, i) => v + (h / 6) * (a[k][i] + 2 * b[k][i] + 2 * c[k][i] + d[k][i]));
      return { q: mix("q"), qd: mix("qd") };
    };
    const advance = (seconds) => {  // whole steps, so that the same time gives the same numbers
      const steps = Math.round(seconds / about.step);
      for (let k = 0; k < steps && !failed; k++) {
        for (const which of [0, 1]) machines[which] = step(machines[which], which, about.step);
        if (!machines.every((m) => [...m.q, ...m.qd].every(Number.isFinite))) failed = "the motion is no longer finite here: these values are not those of a machine.";
      }
      time += steps * about.step;
      show();
    };
    const place = () => { machines.forEach((m) => { m.q = q.slice(); m.qd = q.map(() => 0); }); time = 0; failed = ""; show(); };

    // ---------- drawing
    const draw = () => {
      const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
      canvas.width = width * ratio; canvas.height = height * ratio;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio); pen.lineCap = pen.lineJoin = "round";
      const ca = Math.cos(azimuth), sa = Math.sin(azimuth), ce = Math.cos(elevation), se = Math.sin(elevation), reach = about.reach;
      const scale = (0.9 * Math.min(width, height)) / (2 * reach);
      const at = (x, y, z) => [width / 2 + scale * (-sa * (x - about.middle[0]) + ca * (y - about.middle[1])), height / 2 - scale * (ce * (z - about.middle[2]) - se * (ca * (x - about.middle[0]) + sa * (y - about.middle[1])))];
      pen.strokeStyle = style("--rule"); pen.lineWidth = 1;
      for (let k = -4; k <= 4; k++) for (const [a, b] of [[[k, -4], [k, 4]], [[-4, k], [4, k]]]) {
        pen.beginPath(); pen.moveTo(...at(about.middle[0] + (a[0] * reach) / 4, about.middle[1] + (a[1] * reach) / 4, about.floor)); pen.lineTo(...at(about.middle[0] + (b[0] * reach) / 4, about.middle[1] + (b[1] * reach) / 4, about.floor)); pen.stroke();
      }
      const layers = share ? [[1, "--fair", [7, 5]], [0, "--estimate", []]] : [[0, "--estimate", []]];
      for (const [which, colour, dashes] of layers) {
        const p = points({ q: machines[which].q, qd: machines[which].qd }, about.points.values, about.points.size);
        pen.strokeStyle = pen.fillStyle = style(colour); pen.lineWidth = 4; pen.setLineDash(dashes);
        for (const [i, j] of about.segments) { pen.beginPath(); pen.moveTo(...at(p[3 * i], p[3 * i + 1], p[3 * i + 2])); pen.lineTo(...at(p[3 * j], p[3 * j + 1], p[3 * j + 2])); pen.stroke(); }
        pen.setLineDash([]);
        for (const k of new Set(about.segments.flat())) { const [x, y] = at(p[3 * k], p[3 * k + 1], p[3 * k + 2]); pen.beginPath(); pen.arc(x, y, 3.4, 0, 7); pen.fill(); }
      }
      pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "top"; pen.fillStyle = style("--estimate"); pen.fillText("as identified", 6, 6);
      if (share) { pen.fillStyle = style("--fair"); pen.fillText(`${about.parameters[changed].name} changed by ${share} σ`, 6, 22); }
    };
    const write = (element, value) => { const size = Math.abs(value), text = !size ? "0" : size < 1e-3 || size >= 1e6 ? value.toExponential(2) : size >= 1e4 ? value.toFixed(0) : value.toPrecision(4); element.textContent = text.replace(/-/g, "−"); element.dataset.value = value; };
    const show = () => {
      const found = machines.map((m, which) => accelerations(m, which));
      about.coordinates.forEach((c, k) => {
        write(find(`[data-angle="${k}"]`), machines[0].q[k]); write(find(`[data-speed="${k}"]`), machines[0].qd[k]);
        write(find(`[data-acceleration="${k}"]`), found[0][k]); write(find(`[data-changed="${k}"]`), found[1][k]);
      });
      find("[data-time]").textContent = failed || `${time.toFixed(2)} s`; find("[data-time]").dataset.time = time;
      draw();
    };

    // ---------- controls
    const button = find("button[data-do=fall]");
    const fall = (on) => {
      falling = on; button.textContent = on ? "pause" : "let it fall";
      if (on) { let last = performance.now(); const tick = (now) => { if (!falling) return; advance(Math.min(0.05, (now - last) / 1000)); last = now; if (failed) fall(false); requestAnimationFrame(tick); }; requestAnimationFrame(tick); }
    };
    button.addEventListener("click", () => fall(!falling));
    find("button[data-do=back]").addEventListener("click", () => { fall(false); place(); });
    for (const slider of figure.querySelectorAll("input[data-coordinate]")) slider.addEventListener("input", () => { q[+slider.dataset.coordinate] = +slider.value; fall(false); place(); });
    const motor = find("select[data-motor]"), torque = find("input[data-torque]");
    const push = () => { tau.fill(0); tau[+motor.value] = +torque.value * about.coordinates[+motor.value].force; write(find("[data-torque-shown]"), tau[+motor.value]); show(); };
    motor.addEventListener("change", push); torque.addEventListener("input", push);
    const which = find("select[data-parameter]"), much = find("input[data-share]");
    if (which) {
      const change = () => { changed = +which.value; share = +much.value; const p = about.parameters[changed]; write(find("[data-share-shown]"), p.value + share * p.sigma); place(); };
      which.addEventListener("change", change); much.addEventListener("input", change);
    }
    canvas.addEventListener("pointermove", (e) => { if (e.buttons & 1) { azimuth -= e.movementX / 150; elevation = Math.max(-1.5, Math.min(1.5, elevation + e.movementY / 150)); draw(); } });
    canvas.addEventListener("keydown", (e) => {
      const turn = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
      if (turn) { azimuth += turn[0]; elevation = Math.max(-1.5, Math.min(1.5, elevation + turn[1])); draw(); e.preventDefault(); }
    });
    addEventListener("resize", draw);
    place();
    return { about, machines, advance, accelerations: (state, other) => Array.from(accelerations(state, other)), points: (pose) => Array.from(points({ q: pose, qd: pose.map(() => 0) }, about.points.values, about.points.size)) };
  }).catch((e) => { find("[data-time]").textContent = `this browser cannot run the machine: ${e.message}`; throw e; });
  window.running.push(ready);
}
