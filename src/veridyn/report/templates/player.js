// The player of scenes: draws points and lines, turns with the pointer, needs nothing from outside.
for (const figure of document.querySelectorAll("figure.player")) {
  const scene = JSON.parse(figure.querySelector("script").textContent);
  const canvas = figure.querySelector("canvas"), slider = figure.querySelector("input");
  const button = figure.querySelector("button"), output = figure.querySelector("output");
  const frames = scene.t.length, style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  let azimuth = (scene.view[0] * Math.PI) / 180, elevation = (scene.view[1] * Math.PI) / 180, frame = 0, playing = false, from = 0;

  const axes = { x: [1, 2, 0], y: [2, 0, 1], z: [0, 1, 2] }[scene.up];
  const point = (layer, f, k) => axes.map((a) => layer.points[f][3 * k + a]);
  const middle = (f) => {
    const first = scene.layers[0], count = first.points[f].length / 3, sum = [0, 0, 0];
    for (let k = 0; k < count; k++) point(first, f, k).forEach((v, i) => (sum[i] += v / count));
    return sum;
  };
  const turn = (p) => {
    const ca = Math.cos(azimuth), sa = Math.sin(azimuth), ce = Math.cos(elevation), se = Math.sin(elevation);
    const across = -sa * p[0] + ca * p[1], towards = ca * p[0] + sa * p[1];
    return [across, ce * p[2] - se * towards];
  };
  const depth = (p) => Math.cos(elevation) * (Math.cos(azimuth) * p[0] + Math.sin(azimuth) * p[1]) + Math.sin(elevation) * p[2];
  const reach = (layer) => {  // of the solids about each point that carries some
    const found = {};
    for (const s of layer.solids || [])
      for (let i = 0; i < s.vertices.length; i += 3) found[s.point] = Math.max(found[s.point] || 0, Math.hypot(s.vertices[i], s.vertices[i + 1], s.vertices[i + 2]));
    return found;
  };
  const reaches = scene.layers.map(reach);
  const corners = (layer, s, f) => {  // of a solid at a frame, turned by its quaternion
    const [w, x, y, z] = s.turns.slice(4 * f, 4 * f + 4), n = 2 / (w * w + x * x + y * y + z * z), at = layer.points[f].slice(3 * s.point, 3 * s.point + 3), out = [];
    for (let i = 0; i < s.vertices.length; i += 3) {
      const [a, b, c] = s.vertices.slice(i, i + 3);
      const v = [
        a - n * ((y * y + z * z) * a - (x * y - w * z) * b - (x * z + w * y) * c) + at[0],
        b - n * (-(x * y + w * z) * a + (x * x + z * z) * b - (y * z - w * x) * c) + at[1],
        c - n * (-(x * z - w * y) * a - (y * z + w * x) * b + (x * x + y * y) * c) + at[2],
      ];
      out.push(axes.map((k) => v[k]));
    }
    return out;
  };
  const box = () => {  // what must fit, seen from here
    const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    scene.layers.forEach((layer, number) => {
      for (let f = 0; f < frames; f += Math.max(1, Math.floor(frames / 60))) {
        const origin = scene.follow ? middle(f) : [0, 0, 0];
        for (let k = 0; k < layer.points[f].length / 3; k++) {
          const p = turn(point(layer, f, k).map((v, i) => v - origin[i])), r = reaches[number][k] || 0;
          for (const i of [0, 1]) { low[i] = Math.min(low[i], p[i] - r); high[i] = Math.max(high[i], p[i] + r); }
        }
      }
    });
    return [low, high];
  };
  const draw = () => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * ratio; canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio); pen.lineCap = "round"; pen.lineJoin = "round";
    const [low, high] = box(), room = 0.92;
    const scale = room * Math.min(width / (high[0] - low[0] || 1), height / (high[1] - low[1] || 1));
    const origin = scene.follow ? middle(frame) : [0, 0, 0];
    const place = (p) => {
      const [a, b] = turn(p.map((v, i) => v - origin[i]));
      return [width / 2 + scale * (a - (low[0] + high[0]) / 2), height / 2 - scale * (b - (low[1] + high[1]) / 2)];
    };
    const turns = ["--blue", "--rust", "--good", "--fair", "--poor", "--soft"];
    const colours = scene.layers.map((layer, number) => style(layer.meaning ? `--${layer.meaning}` : turns[number % turns.length]));
    const faces = [];  // of solids that look this way, the farthest first
    scene.layers.forEach((layer, number) => {
      for (const s of layer.solids || []) {
        const found = corners(layer, s, frame), seen = found.map(place), far = found.map(depth);
        for (let i = 0; i < s.faces.length; i += 3) {
          const [a, b, c] = s.faces.slice(i, i + 3), u = [seen[b][0] - seen[a][0], seen[b][1] - seen[a][1]], v = [seen[c][0] - seen[a][0], seen[c][1] - seen[a][1]];
          const ahead = u[1] * v[0] - u[0] * v[1];  // the screen's y points down
          if (ahead <= 0) continue;
          const e = [1, 2].map((k) => [0, 1, 2].map((i) => found[[a, b, c][k]][i] - found[a][i]));
          const normal = [e[0][1] * e[1][2] - e[0][2] * e[1][1], e[0][2] * e[1][0] - e[0][0] * e[1][2], e[0][0] * e[1][1] - e[0][1] * e[1][0]];
          const light = 0.5 + 0.5 * (normal[2] / (Math.hypot(...normal) || 1));
          faces.push([far[a] + far[b] + far[c], [seen[a], seen[b], seen[c]], number, light]);
        }
      }
    });
    faces.sort((a, b) => a[0] - b[0]);
    const panel = style("--panel");
    for (const [, corner, number, light] of faces) {
      pen.fillStyle = pen.strokeStyle = `color-mix(in srgb, ${colours[number]} ${Math.round(46 - 30 * light)}%, ${panel})`;
      pen.lineWidth = 0.6; pen.beginPath();
      corner.forEach((p) => pen.lineTo(...p));
      pen.closePath(); pen.fill(); pen.stroke();
    }
    scene.layers.forEach((layer, number) => {
      const at = place, colour = colours[number];
      pen.strokeStyle = colour; pen.fillStyle = colour;
      pen.lineWidth = 1; pen.globalAlpha = 0.45;
      for (const k of layer.trails) {
        pen.beginPath();
        for (let f = 0; f <= frame; f++) pen.lineTo(...at(point(layer, f, k)));
        pen.stroke();
      }
      pen.globalAlpha = 1; pen.lineWidth = layer.dashed ? 1.6 : 3;
      pen.setLineDash(layer.dashed ? [6, 5] : []);
      for (const [i, j] of layer.segments) {
        pen.beginPath(); pen.moveTo(...at(point(layer, frame, i))); pen.lineTo(...at(point(layer, frame, j))); pen.stroke();
      }
      pen.setLineDash([]);
    });
    const beside = [];  // gauges of joints that lie at one place stand next to each other
    for (const g of scene.gauges || []) {  // measured and predicted force beside the joint; its colour says how far they are apart
      const [x, y] = place(point(scene.layers[0], frame, g.point)), m = g.measured[frame], p = g.predicted[frame], tall = 26;
      const right = x + 10 + 17 * beside.filter(([a, b]) => Math.hypot(a - x, b - y) < 8).length;
      beside.push([x, y]);
      const apart = m === null || !g.noise ? 0 : Math.min(1, Math.abs(m - p) / (4 * g.noise));
      pen.fillStyle = m === null ? style("--grey") : `color-mix(in srgb, ${style("--rust")} ${100 * apart}%, ${style("--blue")})`;
      pen.beginPath(); pen.arc(x, y, 6, 0, 7); pen.fill();
      pen.fillStyle = style("--soft"); pen.fillRect(right, y - 0.5, 13, 1);
      if (m !== null) { pen.fillStyle = style("--measured"); pen.fillRect(right + 1, y, 5, -tall * m); }
      pen.fillStyle = style("--estimate"); pen.fillRect(right + 7, y, 5, -tall * p);
    }
    pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "top";
    if (scene.layers.length > 1) scene.layers.forEach((layer, k) => { pen.fillStyle = colours[k]; pen.fillText(layer.label, 6, 6 + 16 * k); });
    output.textContent = scene.t[frame].toFixed(2) + " s";
    for (const [k, g] of (scene.gauges || []).entries()) {
      const cells = figure.querySelectorAll(`[data-gauge="${k}"]`), show = (v) => (v === null ? "–" : v === 0 ? "0" : (Math.abs(v * g.size) < 999.5 ? (v * g.size).toPrecision(3) : (v * g.size).toFixed(0)).replace(/-/g, "−"));
      [g.measured[frame], g.predicted[frame], g.measured[frame] === null ? null : g.measured[frame] - g.predicted[frame]].forEach((v, i) => { cells[i].textContent = show(v); });
    }
    slider.value = frame;
  };
  const tick = (now) => {
    if (!playing) return;
    const t = scene.t[0] + (now - from) / 1000;
    if (t > scene.t[frames - 1]) from = now;
    frame = 0;
    while (frame < frames - 1 && scene.t[frame + 1] <= t) frame++;
    draw();
    requestAnimationFrame(tick);
  };
  button.addEventListener("click", () => {
    playing = !playing;
    button.textContent = playing ? "pause" : "play";
    from = performance.now() - 1000 * (scene.t[frame] - scene.t[0]);
    if (playing) requestAnimationFrame(tick);
  });
  slider.addEventListener("input", () => { frame = +slider.value; from = performance.now() - 1000 * (scene.t[frame] - scene.t[0]); draw(); });
  canvas.addEventListener("pointermove", (event) => {
    if (!(event.buttons & 1)) return;
    azimuth -= event.movementX / 150;
    elevation = Math.max(-1.57, Math.min(1.57, elevation + event.movementY / 150));
    draw();
  });
  canvas.addEventListener("keydown", (event) => {
    const turned = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!turned) return;
    azimuth += turned[0]; elevation = Math.max(-1.57, Math.min(1.57, elevation + turned[1]));
    event.preventDefault(); draw();
  });
  window.addEventListener("resize", draw);
  window.addEventListener("beforeprint", draw);
  draw();
}
