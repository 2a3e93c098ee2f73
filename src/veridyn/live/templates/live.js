"use strict";
// A live run: rows come as server-sent events, are kept for a while, and drawn when the browser draws anyway.
const KEEP = 6000, BAND = 1.96, STATUS = ["used", "missing", "not finite", "frozen", "outlier", "late"];
const one = (what, within = document) => within.querySelector(what);
const make = (tag, words = {}, ...inside) => { const e = Object.assign(document.createElement(tag), words); e.append(...inside); return e; };
const query = new URLSearchParams(location.search), token = query.get("token") || "";
const address = (path, more = {}) => `${path}?${new URLSearchParams({ ...(token && { token }), ...more })}`;
const live = { layout: null, run: "", rows: [], last: 0, received: 0, lost: 0, missed: 0, repeated: 0, connections: 0, frames: 0, delays: [], drawn: [], pose: null, poses: 0, state: {}, alarms: new Map(), trail: [], fresh: false };
window.live = live;  // what is shown, for whoever wants to read it

// ---------- the stream
let stream = null;
const say = (text, good) => { const e = one("#connection"); e.textContent = text; e.className = good ? "good" : "lost"; };
const connect = () => {
  stream = new EventSource(address("events", live.last ? { seen: `${live.run}:${live.last}` } : {}));
  stream.addEventListener("open", () => { live.connections++; live.fresh = false; say("connected", true); });
  stream.addEventListener("layout", (event) => lay(JSON.parse(event.data)));
  stream.addEventListener("message", (event) => take(JSON.parse(event.data)));
  stream.addEventListener("error", () => {
    say("the connection is lost; trying again", false);
    if (stream.readyState === EventSource.CLOSED) { stream.close(); setTimeout(connect, 700); }
  });
};
const take = (batch) => {
  const now = Date.now();
  for (const row of batch.rows) {
    const n = row[0];
    if (n <= live.last) { live.repeated++; continue; }
    if (live.last && n > live.last + 1) live.missed += n - live.last - 1;
    live.last = n; live.received++;
    if (live.rows.length && row[1] < live.rows[live.rows.length - 1][1]) { live.rows = []; live.trail = []; }  // the observer began again
    live.rows.push(row);
    if (live.fresh) live.delays.push(now - row[2]);
  }
  live.fresh = true;  // what comes first on a connection waited for it
  if (live.rows.length > KEEP) live.rows.splice(0, live.rows.length - KEEP);
  if (live.delays.length > 500) live.delays.splice(0, live.delays.length - 500);
  live.lost = batch.lost;
  if (batch.pose) { live.pose = batch.pose; live.poses++; trace(); }
  for (const [change, level, text, count] of batch.alarms || []) tell(change, level, text, count);
  if (batch.state) { live.state = batch.state; controls(); }
  dirty = true;
};

// ---------- the layout
const strips = [];
const lay = (layout) => {
  if (live.run === layout.run) return;
  Object.assign(live, { layout, run: layout.run, rows: [], last: 0, received: 0, missed: 0, repeated: 0, pose: null, trail: [], delays: [] });
  one("#alarms ol").replaceChildren(); live.alarms.clear(); strips.length = 0;
  const groups = one("#groups");
  groups.replaceChildren();
  const names = [...new Set(layout.quantities.map((q) => q[2]))];
  for (const name of names) {
    const box = make("div", { className: "strips" });
    layout.quantities.forEach(([label, unit, group], k) => { if (group === name) box.append(strip(label, unit, { kind: "value", k })); });
    groups.append(make("section", {}, make("h2", { textContent: `${name[0].toUpperCase()}${name.slice(1)}, with 95 % bands` }), box));
  }
  if (layout.outputs.length) {
    const box = make("div", { className: "strips" });
    layout.outputs.forEach(([label, unit], k) => box.append(strip(label, unit, { kind: "innovation", k })));
    groups.append(make("section", {}, make("h2", { textContent: "Innovations over their deviations, 95 % within the dotted lines" }), box));
  }
  const switches = one("#sensors .switches");
  switches.replaceChildren(...Object.keys(layout.sensors).map((name) => {
    const button = make("button", { type: "button", textContent: name });
    button.dataset.sensor = name;
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => command({ do: "switch", sensor: name, on: button.getAttribute("aria-pressed") === "false" }));
    return button;
  }));
  one("#sensors").hidden = !Object.keys(layout.sensors).length;
  one("#machine").hidden = !layout.segments.length;
  one(".stage").classList.toggle("bare", !layout.segments.length);
  one("#nis").closest("div").hidden = !layout.outputs.length;
  one("#notes").textContent = layout.notes.join(" · ");
  dirty = true;
};
const seen = new IntersectionObserver((entries) => { for (const e of entries) e.target.visible = e.isIntersecting; dirty = true; }, { rootMargin: "80px" });
const strip = (label, unit, what) => {
  const output = make("output"), canvas = make("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${label} over time`);
  output.dataset.name = label;
  const figure = make("figure", { className: "strip" }, make("figcaption", {}, make("span", { textContent: label, title: label }), output), canvas);
  strips.push({ label, unit: (unit === "1" ? "" : unit).replaceAll("*", "·").replaceAll("^2", "²").replaceAll("^3", "³"), canvas, output, ...what });
  canvas.visible = false;
  seen.observe(canvas);
  return figure;
};

// ---------- alarms, controls, commands
const tell = (change, level, text, count) => {
  const key = text.replace(/[\d.e+-]+/g, "#"), list = one("#alarms ol");
  const item = live.alarms.get(key) || make("li");
  live.alarms.set(key, item);
  item.className = `level-${level}`;
  item.replaceChildren(text, ...(count > 1 ? [make("b", { textContent: `${count} times` })] : []));
  list.prepend(item);
  while (list.children.length > 60) { const old = list.lastChild; old.remove(); for (const [k, e] of live.alarms) if (e === old) live.alarms.delete(k); }
  one("#quiet").hidden = true;
};
const choose = (menu, value) => {  // a pace that was given at the start need not be one of the menu's
  if (![...menu.options].some((o) => +o.value === value)) {
    const next = [...menu.options].find((o) => +o.value > value) || null;
    menu.insertBefore(make("option", { value: String(value), textContent: short(value) }), next);
  }
  menu.value = String(value);
};
const controls = () => {
  const s = live.state, pause = one("#pause");
  one("#source").textContent = s.source + (s.running ? "" : " · ended");
  pause.hidden = one("#pace-label").hidden = s.pace === null || !s.running;
  pause.textContent = s.paused ? "go on" : "pause";
  if (s.pace !== null && document.activeElement !== one("#pace")) choose(one("#pace"), s.pace);
  one("#save").hidden = !s.can_save; one("#stop").hidden = !s.running;
  for (const b of document.querySelectorAll("[data-sensor]")) b.setAttribute("aria-pressed", String(!s.off.includes(b.dataset.sensor)));
};
let asked = 0;
const command = async (wanted) => {
  const number = ++asked;
  const answer = (words) => { if (number === asked) one("#answer").textContent = words; };  // one that comes late does not wipe out a newer one's
  try {
    const r = await fetch(address("command"), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted) });
    const text = await r.text();
    answer(r.ok ? JSON.parse(text).where || "" : text.trim());
  } catch (e) { answer("the program does not answer"); }
};
one("#pause").addEventListener("click", () => command({ do: live.state.paused ? "resume" : "pause" }));
one("#pace").addEventListener("change", (e) => command({ do: "pace", value: +e.target.value }));
one("#save").addEventListener("click", () => command({ do: "save" }));
one("#stop").addEventListener("click", () => command({ do: "stop" }));
one("#span").addEventListener("change", () => { dirty = true; });

// ---------- drawing
let dirty = true, colours = {};
const dye = () => {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "soft", "rule", "estimate", "poor", "fair", "measured", "panel", "grey"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
  dirty = true;
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dye);
const short = (v, digits = 5) => {
  if (v === null || v === undefined) return "–";
  const text = v === 0 ? "0" : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-4 ? v.toExponential(2) : String(+v.toPrecision(digits));
  return text.replace(/-/g, "−");
};
const measured = (v, d) => {  // value and deviation to the same place, two digits of the deviation, as reports have them
  const places = d > 0 ? 1 - Math.floor(Math.log10(+d.toPrecision(2))) : NaN;
  if (!(places >= -3 && places <= 8)) return `${short(v)} ± ${d === null ? "–" : short(d, 2)}`;
  const unit = 10 ** Math.max(0, -places), written = (x) => (places > 0 ? x.toFixed(places) : String(Math.round(x / unit) * unit));
  return `${written(v).replace(/^-(0(\.0*)?)$/, "$1").replace("-", "−")} ± ${written(d)}`;
};
const lasting = (ms) => (ms < 1000 ? `${ms.toFixed(0)}\u00a0ms` : `${(ms / 1000).toFixed(1)}\u00a0s`);
const pen = (canvas) => {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
  const p = canvas.getContext("2d");
  p.setTransform(ratio, 0, 0, ratio, 0, 0);
  p.clearRect(0, 0, width, height);
  return [p, width, height];
};
const drawStrip = (s, rows) => {
  const [p, width, height] = pen(s.canvas), end = rows.length ? rows[rows.length - 1][1] : 0;
  const span = Math.min(+one("#span").value, Math.max(2, rows.length ? end - rows[0][1] : 0));  // a run that has just begun fills the width
  const x = (t) => width * (1 - (end - t) / span);
  p.font = "10px system-ui, sans-serif"; p.fillStyle = colours.soft; p.textBaseline = "top";
  if (s.kind === "innovation") {
    const y = (v) => height / 2 - (v * height) / 10;
    p.strokeStyle = colours.soft; p.lineWidth = 1; p.setLineDash([2, 4]);
    for (const v of [-BAND, BAND]) { p.beginPath(); p.moveTo(0, y(v)); p.lineTo(width, y(v)); p.stroke(); }
    p.setLineDash([]);
    for (const row of rows) {
      const nu = row[5][s.k], sd = row[6][s.k], code = row[7][s.k];
      if (nu === null || !sd) continue;
      p.fillStyle = code === 0 ? colours.estimate : colours.poor;
      p.fillRect(x(row[1]) - 1.2, y(Math.max(-4.8, Math.min(4.8, nu / sd))) - 1.2, 2.4, 2.4);
    }
    return;
  }
  let low = Infinity, high = -Infinity;
  for (const row of rows) {
    const v = row[3][s.k], d = row[4][s.k];
    if (v === null) continue;
    low = Math.min(low, v); high = Math.max(high, v);
    const w = BAND * Math.min(d || 0, 1e300);
    s.wide = w;
    if (rows.length < 3 || row === rows[rows.length - 1] || row === rows[rows.length >> 1]) { low = Math.min(low, v - w); high = Math.max(high, v + w); }
  }
  if (!(high >= low)) return;
  const newest = rows[rows.length - 1];
  if (!live.layout.outputs.length && newest[3][s.k] !== null && newest[4][s.k] > 0) {  // an identification: the first estimates may be anywhere
    low = Math.max(low, newest[3][s.k] - 8 * BAND * newest[4][s.k]); high = Math.min(high, newest[3][s.k] + 8 * BAND * newest[4][s.k]);
  }
  const room = 0.08 * (high - low) || Math.max(1e-9, 0.05 * Math.abs(high));
  low -= room; high += room;
  const y = (v) => height - (height * (Math.max(low - (high - low), Math.min(high + (high - low), v)) - low)) / (high - low);
  const some = rows.length > 2 * width ? rows.filter((_, k) => k % Math.ceil(rows.length / width) === 0 || k === rows.length - 1) : rows;
  const told = some.filter((row) => row[3][s.k] !== null);
  p.fillStyle = colours.estimate; p.globalAlpha = 0.18; p.beginPath();
  for (const row of told) p.lineTo(x(row[1]), y(row[3][s.k] + BAND * (row[4][s.k] || 0)));
  for (const row of told.toReversed()) p.lineTo(x(row[1]), y(row[3][s.k] - BAND * (row[4][s.k] || 0)));
  p.fill(); p.globalAlpha = 1; p.strokeStyle = colours.estimate; p.lineWidth = 1.4; p.beginPath();
  for (const row of told) p.lineTo(x(row[1]), y(row[3][s.k]));
  p.stroke(); p.fillStyle = colours.soft;
  p.strokeStyle = colours.paper; p.lineWidth = 3; p.lineJoin = "round";
  const places = Math.max(3, 2 + Math.ceil(Math.log10(Math.max(Math.abs(high), Math.abs(low)) / (high - low))));  // so that both ends of a narrow strip differ
  for (const [v, at, base] of [[high, 1, "top"], [low, height - 1, "bottom"]]) { const text = short(v, Math.min(places, 12)); p.textBaseline = base; p.strokeText(text, 2, at); p.fillText(text, 2, at); }
};
const writeStrip = (s) => {
  const row = live.rows[live.rows.length - 1];
  if (!row) return;
  if (s.kind === "innovation") {
    const code = row[7][s.k];
    let last = null;
    for (let k = live.rows.length - 1; k >= 0 && last === null && k > live.rows.length - 200; k--) if (live.rows[k][5][s.k] !== null) last = live.rows[k];
    s.output.textContent = last ? `${short(last[5][s.k])}\u00a0${s.unit}` : code === undefined ? "–" : STATUS[code];
    s.output.dataset.status = code;
    return;
  }
  const v = row[3][s.k], d = row[4][s.k];
  s.output.textContent = v === null ? "–" : `${measured(v, d)}\u00a0${s.unit}`;
  s.output.dataset.value = v; s.output.dataset.sigma = d;
};

// ---------- the machine in 3-D
let azimuth = -1.05, elevation = 0.35, extent = null;
const axes = () => ({ x: [1, 2, 0], y: [2, 0, 1], z: [0, 1, 2] })[live.layout.up];
const corner = (k) => axes().map((a) => live.pose[3 * k + a]);
const middle = () => { const n = live.pose.length / 3, sum = [0, 0, 0]; for (let k = 0; k < n; k++) corner(k).forEach((v, i) => (sum[i] += v / n)); return sum; };
const trace = () => {
  if (live.layout.trail !== null) { live.trail.push(corner(live.layout.trail)); if (live.trail.length > 400) live.trail.shift(); }
  const centre = live.layout.follow ? middle() : [0, 0, 0];
  if (!extent || extent.run !== live.run) extent = { run: live.run, low: [Infinity, Infinity, Infinity], high: [-Infinity, -Infinity, -Infinity] };
  for (let k = 0; k < live.pose.length / 3; k++) corner(k).forEach((v, i) => { extent.low[i] = Math.min(extent.low[i], v - centre[i]); extent.high[i] = Math.max(extent.high[i], v - centre[i]); });
};
const drawMachine = () => {
  const canvas = one("#machine canvas");
  if (!live.pose || !canvas.clientWidth) return;
  const [p, width, height] = pen(canvas), flat = live.layout.up === "y";
  const ca = Math.cos(flat ? 0 : azimuth), sa = Math.sin(flat ? 0 : azimuth), ce = Math.cos(flat ? 0 : elevation), se = Math.sin(flat ? 0 : elevation);
  const turn = (q) => { const across = -sa * q[0] + ca * q[1], towards = ca * q[0] + sa * q[1]; return [across, ce * q[2] - se * towards]; };
  const centre = live.layout.follow ? middle() : [0, 0, 0], { low, high } = extent;
  const seenLow = [Infinity, Infinity], seenHigh = [-Infinity, -Infinity];
  for (let c = 0; c < 8; c++) {
    const q = turn([0, 1, 2].map((i) => (c & (1 << i) ? high[i] : low[i])));
    for (const i of [0, 1]) { seenLow[i] = Math.min(seenLow[i], q[i]); seenHigh[i] = Math.max(seenHigh[i], q[i]); }
  }
  const scale = 0.86 * Math.min(width / (seenHigh[0] - seenLow[0] || 1), height / (seenHigh[1] - seenLow[1] || 1));
  const at = (q) => { const [a, b] = turn(q.map((v, i) => v - centre[i])); return [width / 2 + scale * (a - (seenLow[0] + seenHigh[0]) / 2), height / 2 - scale * (b - (seenLow[1] + seenHigh[1]) / 2)]; };
  const size = Math.max(...high.map((v, i) => v - low[i])) || 1, cell = 10 ** Math.floor(Math.log10(size / 2)), floor = low[2] + centre[2];
  p.lineCap = p.lineJoin = "round"; p.strokeStyle = colours.rule; p.lineWidth = 1;
  const reach = 6 * cell * Math.max(1, Math.round(size / cell / 6));
  for (let k = -6; k <= 6; k++) {
    const step = reach / 6, ox = Math.round(centre[0] / step) * step, oy = Math.round(centre[1] / step) * step;
    const lines = flat ? [] : [[[ox + k * step, oy - reach, floor], [ox + k * step, oy + reach, floor]], [[ox - reach, oy + k * step, floor], [ox + reach, oy + k * step, floor]]];
    for (const [a, b] of lines) { p.beginPath(); p.moveTo(...at(a)); p.lineTo(...at(b)); p.stroke(); }
  }
  p.strokeStyle = colours.measured; p.lineWidth = 1.2; p.globalAlpha = 0.8; p.beginPath();
  for (const q of live.trail) p.lineTo(...at(q));
  p.stroke(); p.globalAlpha = 1; p.strokeStyle = colours.estimate; p.lineWidth = live.layout.segments.length > 60 ? 2 : 4;
  for (const [i, j] of live.layout.segments) { p.beginPath(); p.moveTo(...at(corner(i))); p.lineTo(...at(corner(j))); p.stroke(); }
  if (live.layout.segments.length <= 60) { p.fillStyle = colours.ink; for (const k of new Set(live.layout.segments.flat())) { const [a, b] = at(corner(k)); p.beginPath(); p.arc(a, b, 3.2, 0, 7); p.fill(); } }
};
const round = one("#machine canvas");
round.addEventListener("pointermove", (e) => { if (e.buttons & 1) { azimuth -= e.movementX / 150; elevation = Math.max(-1.5, Math.min(1.5, elevation + e.movementY / 150)); dirty = true; } });
round.addEventListener("keydown", (e) => {
  const step = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
  if (step) { azimuth += step[0]; elevation = Math.max(-1.5, Math.min(1.5, elevation + step[1])); dirty = true; e.preventDefault(); }
});

// ---------- once for each picture of the browser; strips take turns, so that many do not slow the machine down
let turnOf = 0, waiting = 0;
const frame = () => {
  requestAnimationFrame(frame);
  if ((!dirty && !waiting) || !live.layout) return;
  const news = dirty;
  dirty = false; live.frames++;
  const newest = live.rows[live.rows.length - 1];
  if (newest) {
    const span = +one("#span").value;
    let k = live.rows.length;
    while (k > 0 && live.rows[k - 1][1] >= newest[1] - span) k--;
    const rows = live.rows.slice(k), visible = strips.filter((s) => s.canvas.visible), share = Math.min(visible.length, Math.max(6, Math.ceil(visible.length / 4)));
    if (news) waiting = visible.length;
    for (let n = 0; n < share; n++) drawStrip(visible[(turnOf + n) % visible.length], rows);
    turnOf = visible.length ? (turnOf + share) % visible.length : 0;
    waiting = Math.max(0, waiting - share);
    for (const s of visible) writeStrip(s);
    one("#clock").textContent = newest[1].toFixed(2);
    const nis = rows.slice(-200).map((row) => row[8]).filter((v) => v !== null);
    one("#nis").textContent = nis.length ? (nis.reduce((a, b) => a + b, 0) / nis.length).toFixed(2) : "–";
    const delays = live.delays.slice(-50).sort((a, b) => a - b);
    one("#latency").textContent = delays.length ? lasting(Math.max(0, delays[delays.length >> 1])) : "–";
    one("#rows").textContent = live.received; one("#lost").textContent = live.missed;
  }
  drawMachine();
  if (newest && newest[0] !== live.seen) { live.seen = newest[0]; live.drawn.push(Date.now() - newest[2]); if (live.drawn.length > 500) live.drawn.shift(); }
};
addEventListener("resize", () => { dirty = true; });
dye();
connect();
requestAnimationFrame(frame);
