// -- viewer: stage, time and controls -----------------------------------------------------------------------------------
let time = 0, playing = false, looping = true, layout = "over", followed = null, theme = "light", speed = 1;
let worlds = [], grid = null, followable = [], waiting = false, touched = false;
const shown = { traces: true, velocities: false, forces: false };
const canvas = element("view");
let renderer;
try {
  renderer = new T.WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
} catch (error) {
  const box = element("trouble");
  box.hidden = false;
  box.textContent = "This browser cannot show 3-D graphics: WebGL is not available or disabled.";
  document.documentElement.dataset.ready = "no-webgl";
  return;
}
const scene = new T.Scene();
const camera = new T.PerspectiveCamera(35, 1, 0.01, 1000);
let controls = null;
const sky = new T.HemisphereLight(0xffffff, 0xa8a8a8, 2.2);
const sun = new T.DirectionalLight(0xffffff, 1.6);
scene.add(sky, sun);

// The up direction of the camera is y in the plane and z in space.
function setUp() {
  if (controls) controls.dispose();
  camera.up.copy(planar ? new T.Vector3(0, 1, 0) : new T.Vector3(0, 0, 1));
  controls = new T.OrbitControls(camera, canvas);
  controls.enableDamping = false;
  controls.addEventListener("change", render);
  controls.addEventListener("start", () => { touched = true; });
  sun.position.copy(planar ? new T.Vector3(0.4, 0.8, 1.2) : new T.Vector3(0.6, -0.9, 1.2)).multiplyScalar(10 * extent);
}
const offset = () => 1.15 * (high.x - low.x) + 0.1 * size;
function home() {
  const towards = planar ? new T.Vector3(0, 0, 1) : new T.Vector3(0.55, -0.95, 0.42).normalize();
  const right = new T.Vector3().crossVectors(camera.up, towards).normalize(), top = new T.Vector3().crossVectors(towards, right);
  const half = (planar ? 0.9 : 1.05) * Math.tan((camera.fov * Math.PI) / 360), reach = [0, 1, 2].map((c) => (high.getComponent(c) - low.getComponent(c)) / 2);
  const target = middle.clone();
  if (layout === "side") { target.x += 0.5 * (runs.length - 1) * offset(); reach[0] += 0.5 * (runs.length - 1) * offset(); }
  if (followed) { target.copy(followed.last); reach.fill(0.42 * size); }
  // the nearest camera position from which all corners of the bounding box are visible
  let far = 1e-9;
  for (let corner = 0; corner < 8; corner++) {
    a.set(...reach.map((r, c) => (corner & (1 << c) ? r : -r)));
    const across = Math.abs(a.dot(right)) / (half * Math.max(camera.aspect, 0.2)), along = Math.abs(a.dot(top)) / half;
    far = Math.max(far, a.dot(towards) + Math.max(across, along));
  }
  controls.target.copy(target);
  camera.position.copy(target).addScaledVector(towards, far);
  camera.near = far / 500; camera.far = far * 100; camera.updateProjectionMatrix();
  controls.update();
  touched = false;
}
function arrange() {
  worlds.forEach((world, i) => world.group.position.set(layout === "side" ? i * offset() : 0, 0, 0));
}

// -- time ---------------------------------------------------------------------------------------------------------------
function seek(t) {
  time = Math.min(end, Math.max(begin, t));
  for (const run of runs) run.seek(time);
  for (const world of worlds) world.pose(shown);
  if (followed) {
    const now = followed.where();
    along.subVectors(now, followed.last);
    camera.position.add(along); controls.target.add(along);
    followed.last.copy(now);
  }
  element("scrub").value = (1000 * (time - begin)) / span;
  element("clock").textContent = time.toFixed(Math.max(0, 3 - Math.floor(Math.log10(span)))) + " s";
  panels.forEach(cursor);
  render();
}
let held = false; // suspends rendering during a sequence of changes
function render() { if (worlds.length && !held) renderer.render(scene, camera); }
let last = 0;
function tick(stamp) {
  if (!playing) return;
  const passed = Math.min(0.1, (stamp - last) / 1000 || 0);
  last = stamp;
  let next = time + speed * passed;
  // the animation of an unfinished run waits at its current end
  if (next >= end) { if (waiting) next = end; else if (looping) next = begin; else { next = end; play(false); } }
  seek(next);
  requestAnimationFrame(tick);
}
function play(wanted) {
  const before = playing;
  playing = wanted;
  element("play").textContent = playing ? "\u275A\u275A" : "\u25B6";
  document.documentElement.dataset.playing = String(playing);
  if (playing && !before) { if (time >= end && !waiting) seek(begin); last = performance.now(); requestAnimationFrame(tick); }
}

// -- controls -----------------------------------------------------------------------------------------------------------
const factors = [0.1, 0.25, 0.5, 1, 2, 4, 10];
function option(value, text) {
  const found = document.createElement("option");
  found.value = value; found.textContent = text;
  return found;
}
function buildControls() {
  const box = element("speed"), chosen = box.selectedIndex < 0 ? 3 : box.selectedIndex;
  box.replaceChildren(...factors.map((factor) => option(usual * factor, "\u00d7 " + number(+(usual * factor).toPrecision(2)))));
  box.selectedIndex = chosen;
  speed = +box.value;
  // The centroid of all bodies of the first run.
  const whole = {
    name: "everything", world: worlds[0],
    where: () => {
      const all = worlds[0].run.shapes.filter((s) => s.path), sum = new T.Vector3();
      for (const s of all) sum.add(worlds[0].run.point(s.path, place));
      return sum.multiplyScalar(1 / all.length).add(worlds[0].group.position);
    },
  };
  followable = [whole, ...worlds.flatMap((w) => w.run.shapes.filter((s) => s.path && s.item).slice(0, 200).map((shape) => ({
    shape, world: w, name: (shape.name || shape.type) + (runs.length > 1 ? " (" + (w.number + 1) + ")" : ""),
    where: () => w.drawn(shape).add(w.group.position),
  })))].filter(() => traced > 0);
  element("follow").replaceChildren(option("", "follow nothing"), ...followable.map(({ name }, i) => option(i, "follow " + name)));
  element("layout").hidden = runs.length < 2;
  element("velocities").hidden = !worlds.some((w) => w.arrows.velocities);
  element("forces").hidden = !worlds.some((w) => w.arrows.forces);
  element("traces").hidden = !traced;
  element("follow").hidden = !traced;
}
function follow(i) {
  const found = followable[i];
  followed = found ? { ...found, number: i, last: found.where() } : null;
  element("follow").value = found ? String(i) : "";
  if (followed) { along.subVectors(followed.last, controls.target); camera.position.add(along); controls.target.add(along); controls.update(); }
  render();
}
function toggle(name) { shown[name] = !shown[name]; mark(); seek(time); }
function mark() {
  for (const name of Object.keys(shown)) element(name).classList.toggle("on", shown[name]);
  element("loop").classList.toggle("on", looping);
}
function dress(name) {
  theme = name;
  document.documentElement.dataset.theme = theme;
  scene.background = new T.Color(theme === "dark" ? "#16191d" : "#fbfbf9");
  panels.forEach(drawPanel);
  render();
}
function setLayout(name) { layout = name; element("layout").value = name; arrange(); home(); seek(time); }
function faster(by) {
  const box = element("speed");
  box.selectedIndex = Math.min(factors.length - 1, Math.max(0, box.selectedIndex + by));
  speed = +box.value;
}
element("play").onclick = () => play(!playing);
element("scrub").oninput = (event) => seek(begin + (span * event.target.value) / 1000);
element("speed").onchange = (event) => { speed = +event.target.value; };
element("loop").onclick = () => { looping = !looping; mark(); };
for (const name of Object.keys(shown)) element(name).onclick = () => toggle(name);
element("follow").onchange = (event) => follow(event.target.value === "" ? -1 : +event.target.value);
element("layout").onchange = (event) => setLayout(event.target.value);
element("more").onchange = (event) => { offer(event.target.value); event.target.value = ""; };
element("home").onclick = () => { home(); render(); };
element("dark").onclick = () => dress(theme === "dark" ? "light" : "dark");
const step = () => span / Math.max(1, runs[0].frames - 1);
const KEYS = {
  " ": () => play(!playing), ArrowRight: () => seek(time + step()), ArrowLeft: () => seek(time - step()),
  Home: () => seek(begin), End: () => seek(end), "+": () => faster(1), "-": () => faster(-1), t: () => toggle("traces"),
  v: () => toggle("velocities"), j: () => toggle("forces"), l: () => { looping = !looping; mark(); },
  c: () => element("home").onclick(), d: () => element("dark").onclick(),
  o: () => runs.length > 1 && setLayout(layout === "over" ? "side" : "over"),
  f: () => { const at = followed ? followed.number : -1; follow(at + 1 < followable.length ? at + 1 : -1); },
};
document.addEventListener("keydown", (event) => {
  const writing = /SELECT|TEXTAREA/.test(event.target.tagName) || (event.target.tagName === "INPUT" && event.target.id !== "scrub");
  if (event.ctrlKey || event.metaKey || event.altKey || writing || !runs.length) return;
  if (KEYS[event.key]) { event.preventDefault(); KEYS[event.key](); }
});

// -- names under the pointer --------------------------------------------------------------------------------------------
const ray = new T.Raycaster(), pointer = new T.Vector2();
function under(x, y) {
  const box = canvas.getBoundingClientRect();
  pointer.set(((x - box.left) / box.width) * 2 - 1, 1 - ((y - box.top) / box.height) * 2);
  ray.setFromCamera(pointer, camera);
  for (const hit of ray.intersectObjects(worlds.flatMap((w) => w.targets()), false)) {
    const shape = hit.object.userData.shape || hit.object.userData.batch.items[hit.instanceId].shape;
    if (shape.name) return { shape, at: hit.point };
  }
  return null;
}
canvas.addEventListener("pointermove", (event) => {
  const tip = element("label"), found = event.buttons ? null : under(event.clientX, event.clientY);
  tip.hidden = !found;
  if (!found) return;
  const box = element("stage").getBoundingClientRect();
  const where = () => found.at.toArray().slice(0, planar ? 2 : 3).map((x) => number(+x.toPrecision(3))).join(", ");
  tip.textContent = found.shape.name + "\n" + (found.shape.value ? found.shape.value() : where());
  tip.style.left = Math.min(event.clientX - box.left + 14, box.width - 120) + "px";
  tip.style.top = event.clientY - box.top + 12 + "px";
});
canvas.addEventListener("pointerleave", () => { element("label").hidden = true; });

// -- loading of runs ----------------------------------------------------------------------------------------------------
let fitted = 0, fittedTo = "";
function fit() {
  if (!runs.length) return;
  const box = element("stage").getBoundingClientRect(), ratio = Math.min(2, window.devicePixelRatio || 1);
  const plots = element("plots").clientWidth, now = [box.width, box.height, ratio, plots].join(" ");
  if (now === fittedTo) return;
  fittedTo = now;
  renderer.setPixelRatio(ratio);
  renderer.setSize(box.width, box.height, false);
  camera.aspect = box.width / Math.max(1, box.height);
  camera.updateProjectionMatrix();
  if (Math.abs(camera.aspect - fitted) > 0.05) { fitted = camera.aspect; home(); }
  panels.forEach(drawPanel);
  render();
}
// Show other runs; `same` if they are later states of the runs shown.
function load(content, same) {
  const flat = planar, at = followed ? followed.number : -1, was = time;
  held = true;
  worlds.forEach((world) => world.dispose());
  read(content);
  waiting = Boolean(content.running);
  worlds = runs.map((run, i) => new World(run, i));
  worlds.forEach((world) => scene.add(world.group));
  followed = null;
  if (!same || !controls || flat !== planar) {
    setUp();
    shown.traces = traced > 0 && traced <= 40;
  }
  if (grid) { grid.geometry.dispose(); grid.removeFromParent(); grid = null; }
  if (!planar) {
    grid = new T.GridHelper(4 * extent, 40, 0x888888, 0x888888);
    grid.material.transparent = true; grid.material.opacity = 0.22;
    grid.rotation.x = Math.PI / 2;
    grid.position.set(middle.x, middle.y, low.z);
    scene.add(grid);
  }
  element("stage").classList.toggle("nothing", !runs.some((r) => r.shapes.length));
  element("title").textContent = [...new Set(runs.map((r) => r.title))].join(" and ");
  element("subtitle").textContent = runs.map((r) => r.subtitle).join("; ");
  buildControls();
  buildPanels();
  mark();
  arrange();
  if (!same || !touched) home();
  seek(same ? was : begin);
  if (same && at >= 0) follow(at);
  else if (runs.length === 1 && runs[0].camera_follows && traced) follow(0);
  fit();
  panels.forEach(drawPanel);
  if (!same || !touched) home();
  held = false;
  render();
}
new ResizeObserver(fit).observe(element("stage"));
const find = (name, r) => worlds[r || 0].run.shapes.find((s) => s.name === name);
window.livens = {
  load, seek, play, follow, setLayout, dress, under, camera, shown, renderer, home, offer,
  get runs() { return runs; }, get controls() { return controls; },
  time: () => time, playing: () => playing, times: (r) => Array.from(runs[r || 0].times),
  position: (name, r) => worlds[r || 0].drawn(find(name, r)).toArray(),
  positions: (r) => worlds[r || 0].run.shapes.map((s) => worlds[r || 0].drawn(s).toArray()),
  trace: (r) => worlds[r || 0].traces.map((mesh) => [mesh.visible, mesh.geometry.drawRange.count]),
  arrows: (kind, r) => ((worlds[r || 0].arrows[kind] || {}).vectors || []).map((each) => [each.name, each.at(a).toArray(), each.vector(b).toArray()]),
  panels: () => panels.map((panel) => [panel.name, panel.log]),
  group: (r) => worlds[r].group.position.toArray(),
};
{
  const data = JSON.parse(element("data").textContent);
  dress(data.theme || (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  if (data.runs.length) load(data, false);
  document.documentElement.dataset.ready = "true";
  if (data.play) play(true);
}
