// -- plots: curves below the animation, with a common time cursor -------------------------------------------------------
const MARGIN = 52;
let panels = [];
const wanted = new Set(); // names of the optional panels that are open

function colourOf(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// Add a panel with curves of all runs; optional panels can be closed.
function addPanel(name, pick, closable) {
  const curves = runs.flatMap((run, r) => pick(run).map((c) => ({ ...c, run, r })));
  if (!curves.length) return null;
  const figure = document.createElement("figure"), caption = document.createElement("figcaption");
  const sheet = document.createElement("canvas"), head = document.createElement("b"), scaleButton = document.createElement("button");
  const unit = curves[0].unit ? " (" + curves[0].unit + ")" : "";
  head.textContent = name + unit;
  const panel = { name, figure, sheet, curves, log: curves.some((c) => c.log) };
  scaleButton.className = "small"; scaleButton.title = "linear or logarithmic";
  const say = () => { scaleButton.textContent = panel.log ? "log" : "lin"; };
  scaleButton.onclick = () => { panel.log = !panel.log; say(); drawPanel(panel); };
  say();
  caption.append(head);
  curves.forEach((curve, i) => {
    curve.colour = PALETTE[i % PALETTE.length];
    const entry = document.createElement("span"), mark = document.createElement("i");
    mark.style.borderColor = curve.colour; if (curve.r) mark.style.borderTopStyle = "dashed";
    const label = curve.name === name ? "" : curve.name;
    entry.append(mark, document.createTextNode(label + (runs.length > 1 ? " (" + (curve.r + 1) + ")" : "")));
    caption.append(entry);
  });
  caption.append(scaleButton);
  if (closable) {
    const close = document.createElement("button");
    close.className = "small"; close.textContent = "\u00d7"; close.title = "close";
    close.onclick = () => { wanted.delete(name); figure.remove(); panels = panels.filter((other) => other !== panel); };
    caption.append(close);
  }
  figure.append(caption, sheet);
  element("plots").append(figure);
  panels.push(panel);
  const scrub = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = sheet.getBoundingClientRect();
    seek(begin + span * Math.min(1, Math.max(0, (event.clientX - box.left - MARGIN) / (box.width - MARGIN - 6))));
  };
  sheet.addEventListener("pointerdown", scrub);
  sheet.addEventListener("pointermove", scrub);
  return panel;
}

function offer(name) {
  wanted.add(name);
  if (panels.some((panel) => panel.name === name)) return;
  const panel = addPanel(name, (run) => run.optional_plots.filter((c) => c.panel === name), true);
  if (panel) drawPanel(panel);
}

function buildPanels() {
  panels = [];
  element("plots").replaceChildren();
  for (const name of new Set(runs.flatMap((r) => r.curves.map((c) => c.panel)))) {
    addPanel(name, (run) => run.curves.filter((c) => c.panel === name), false);
  }
  wanted.forEach(offer);
  const more = element("more"), names = [...new Set(runs.flatMap((r) => r.optional_plots.map((c) => c.panel)))];
  more.replaceChildren(...["plot \u2026", ...names].map((name, i) => {
    const option = document.createElement("option");
    option.textContent = name; option.value = i ? name : "";
    return option;
  }));
  more.hidden = !names.length;
}

function drawPanel(panel) {
  const { sheet, curves, log } = panel, ratio = window.devicePixelRatio || 1;
  const w = sheet.clientWidth, h = sheet.clientHeight;
  if (!w) return;
  sheet.width = w * ratio; sheet.height = h * ratio;
  const g = sheet.getContext("2d", { willReadFrequently: true });
  g.scale(ratio, ratio);
  let lo = Infinity, hi = -Infinity;
  const shownValue = (y) => (log ? Math.log10(Math.max(Math.abs(y), 1e-18)) : y);
  for (const c of curves) for (const y of c.values) if (Number.isFinite(y)) { const s = shownValue(y); lo = Math.min(lo, s); hi = Math.max(hi, s); }
  if (!(hi > -Infinity)) return;
  const wide = Math.max(hi - lo, log ? 2 : 1e-9 * Math.max(Math.abs(hi), 1e-12)) || 1;
  const centre = (hi + lo) / 2; lo = centre - 0.54 * wide; hi = centre + 0.54 * wide;
  if (!log && hi - lo < 1e-6 * Math.abs(centre)) { lo = centre - 0.5 * Math.abs(centre); hi = centre + 0.5 * Math.abs(centre); }
  const X = (t) => MARGIN + ((t - begin) / span) * (w - MARGIN - 6), Yof = (y) => h - 16 - ((y - lo) / (hi - lo)) * (h - 22);
  g.font = "10px system-ui, sans-serif"; g.fillStyle = colourOf("--faint"); g.strokeStyle = colourOf("--line");
  g.textAlign = "right"; g.textBaseline = "middle";
  for (let i = 0; i <= 2; i++) {
    const y = lo + ((i + 0.12) / 2.24) * (hi - lo);
    g.beginPath(); g.moveTo(MARGIN, Yof(y)); g.lineTo(w - 6, Yof(y)); g.stroke();
    g.fillText(log ? "1e" + Math.round(y) : number(y, hi - lo), MARGIN - 5, Yof(y));
  }
  g.textAlign = "left"; g.fillText(number(begin), MARGIN, h - 6);
  g.textAlign = "right"; g.fillText(number(end) + " s", w - 6, h - 6);
  for (const curve of curves) {
    g.beginPath(); g.strokeStyle = curve.colour; g.lineWidth = 1.3; g.setLineDash(curve.r ? [5, 3] : []);
    outline(g, curve, X, (y) => Yof(shownValue(y)), ratio);
    g.stroke();
  }
  g.setLineDash([]);
  panel.kept = g.getImageData(0, 0, sheet.width, sheet.height); panel.X = X;
  cursor(panel);
}

// Draw a curve as lines. Of many values in one pixel column only first, minimum, maximum and last are drawn: the result
// looks the same and takes a hundredth of the time.
function outline(g, { values, run: { times } }, X, Y, ratio) {
  const n = values.length;
  for (let i = 0, drawn = false; i < n;) {
    const x = X(times[i]), column = Math.floor(x * ratio), first = Y(values[i]);
    let low = Infinity, high = -Infinity, last = first, count = 0; // values that are not finite are not drawn
    do {
      last = Y(values[i]);
      if (last < low) low = last;
      if (last > high) high = last;
      i++; count++;
    } while (i < n && Math.floor(X(times[i]) * ratio) === column);
    if (drawn) g.lineTo(x, first); else g.moveTo(x, first);
    drawn = true;
    if (count > 3) { g.lineTo(x, low); g.lineTo(x, high); g.lineTo(x, last); }
    else for (let j = i - count + 1; j < i; j++) g.lineTo(X(times[j]), Y(values[j]));
  }
}

function cursor(panel) {
  if (!panel.kept) return;
  const g = panel.sheet.getContext("2d", { willReadFrequently: true });
  g.putImageData(panel.kept, 0, 0);
  g.beginPath(); g.strokeStyle = colourOf("--ink"); g.lineWidth = 1;
  g.moveTo(panel.X(time), 4); g.lineTo(panel.X(time), panel.sheet.clientHeight - 14); g.stroke();
}
