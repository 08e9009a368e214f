"use strict";
// The page that shows runs: reads the data beside it, draws the scene with three.js, and plots with a shared cursor.
(function () {
  const T = THREE;
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const STEEL = "#9aa3ab", DARK = "#4d555c", SPRING = "#7b8794";

  // -- data -----------------------------------------------------------------------------------------------------------
  function bytes(text) {
    const raw = atob(text), found = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
    return found.buffer;
  }

  class Run {
    constructor(plain) {
      Object.assign(this, plain);
      this.times = new Float64Array(bytes(plain.t));
      this.frames = this.times.length;
      this.packed = new Uint16Array(bytes(plain.tracks));
      this.curves = (plain.curves || []).map((c) => ({ ...c, values: new Float32Array(bytes(c.values)) }));
      this.current = { i: 0, w: 0 };
    }
    // A value of a track in a frame; tracks that do not move are plain numbers.
    value(track, frame) {
      const v = this.values[track];
      if (v[0] === undefined) return v;
      return v[0] + v[1] * this.packed[v[2] * this.frames + frame];
    }
    now(track) {
      const { i, w } = this.current, a = this.value(track, i);
      return w ? a + w * (this.value(track, i + 1) - a) : a;
    }
    seek(t) {
      const times = this.times;
      let lo = 0, hi = times.length - 1;
      if (t <= times[0] || hi === 0) { this.current = { i: 0, w: 0 }; return; }
      if (t >= times[hi]) { this.current = { i: hi, w: 0 }; return; }
      while (hi - lo > 1) { const mid = (lo + hi) >> 1; if (times[mid] <= t) lo = mid; else hi = mid; }
      this.current = { i: lo, w: (t - times[lo]) / (times[hi] - times[lo]) };
    }
    point(tracks, into) { return into.set(this.now(tracks[0]), this.now(tracks[1]), this.now(tracks[2])); }
    // Numbers of a turn are near each other from frame to frame: their mean, made a unit, is as good as the arc.
    turn(tracks, into) {
      if (!tracks) return into.identity();
      into.set(this.now(tracks[1]), this.now(tracks[2]), this.now(tracks[3]), this.now(tracks[0]));
      return into.normalize();
    }
  }
  const runs = data.runs.map((plain) => new Run(plain));
  const begin = Math.min(...runs.map((r) => r.times[0])), end = Math.max(...runs.map((r) => r.times[r.frames - 1]));
  const span = end - begin || 1;
  const planar = runs.every((r) => r.dimension === 2);
  const size = Math.max(...runs.map((r) => r.size)) || 1;
  const low = new T.Vector3(Infinity, Infinity, Infinity), high = low.clone().negate();
  for (const run of runs) { low.min(new T.Vector3(...run.low)); high.max(new T.Vector3(...run.high)); }
  const extent = high.distanceTo(low) || 1;
  const middle = low.clone().add(high).multiplyScalar(0.5);

  const a = new T.Vector3(), b = new T.Vector3(), along = new T.Vector3(), Y = new T.Vector3(0, 1, 0);
  const quaternion = new T.Quaternion(), scale = new T.Vector3(), matrix = new T.Matrix4(), place = new T.Vector3();

  // -- stage ----------------------------------------------------------------------------------------------------------
  const canvas = element("view");
  let renderer;
  try {
    renderer = new T.WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
  } catch (error) {
    const box = element("trouble");
    box.hidden = false;
    box.textContent = "This browser cannot draw in three dimensions (WebGL is missing or switched off).";
    document.documentElement.dataset.ready = "no-webgl";
    return;
  }
  const scene = new T.Scene();
  const camera = new T.PerspectiveCamera(35, 1, size / 200, extent * 100);
  const up = planar ? new T.Vector3(0, 1, 0) : new T.Vector3(0, 0, 1);
  camera.up.copy(up);
  const controls = new T.OrbitControls(camera, canvas);
  controls.enableDamping = false;
  const sky = new T.HemisphereLight(0xffffff, 0xa8a8a8, 2.2);
  const sun = new T.DirectionalLight(0xffffff, 1.6);
  sun.position.copy(planar ? new T.Vector3(0.4, 0.8, 1.2) : new T.Vector3(0.6, -0.9, 1.2)).multiplyScalar(10 * extent);
  scene.add(sky, sun);

  function home() {
    const towards = planar ? new T.Vector3(0, 0, 1) : new T.Vector3(0.55, -0.95, 0.42).normalize();
    const right = new T.Vector3().crossVectors(up, towards).normalize(), top = new T.Vector3().crossVectors(towards, right);
    const half = (planar ? 0.9 : 1.05) * Math.tan((camera.fov * Math.PI) / 360), reach = [0, 1, 2].map((c) => (high.getComponent(c) - low.getComponent(c)) / 2);
    const target = middle.clone();
    if (layout === "side") { target.x += 0.5 * (runs.length - 1) * offset(); reach[0] += 0.5 * (runs.length - 1) * offset(); }
    if (followed) { target.copy(followed.last); reach.fill(0.42 * size); }
    // the nearest place from which all corners of the box around everything are seen
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
  }

  // -- shapes ---------------------------------------------------------------------------------------------------------
  // Everything that moves rigidly is an instance of a unit shape, so that thousands of bodies are a few calls to draw.
  class Helix extends T.CatmullRomCurve3 {
    constructor() {
      // eight times as long as wide, so that the wire is round where a spring is about that long
      const points = [new T.Vector3(0, -4, 0), new T.Vector3(0, -3.4, 0)], turns = 8;
      for (let i = 0; i <= turns * 12; i++) {
        const part = i / (turns * 12), angle = part * turns * 2 * Math.PI, grown = Math.min(1, 14 * part, 14 * (1 - part));
        points.push(new T.Vector3(0.5 * grown * Math.cos(angle), -3.2 + 6.4 * part, 0.5 * grown * Math.sin(angle)));
      }
      points.push(new T.Vector3(0, 3.4, 0), new T.Vector3(0, 4, 0));
      super(points);
    }
  }
  function torus() { return new T.TorusGeometry(1, 0.06, 12, 64); }
  const many = runs.reduce((n, r) => n + r.shapes.length, 0) > 400;
  const UNITS = {
    cylinder: () => new T.CylinderGeometry(0.5, 0.5, 1, many ? 8 : 24),
    cone: () => new T.ConeGeometry(1, 1, 48),
    support: () => new T.ConeGeometry(1, 1, planar ? 4 : 24, 1).translate(0, -0.5, 0),
    box: () => new T.BoxGeometry(1, 1, 1),
    sphere: () => new T.SphereGeometry(1, many ? 12 : 32, many ? 8 : 20),
    ring: torus,
    spring: () => new T.TubeGeometry(new Helix(), 400, 0.06, 8).scale(1, 1 / 8, 1),
    floor: () => new T.PlaneGeometry(1, 1),
    arrow: () => new T.ConeGeometry(0.5, 1, 16),
  };

  class Batch {
    constructor(unit, group, ghost) {
      this.unit = unit; this.items = []; this.group = group; this.ghost = ghost;
    }
    add(item) { item.number = this.items.length; item.batch = this; this.items.push(item); return item; }
    build() {
      const material = new T.MeshStandardMaterial({
        roughness: 0.55, metalness: 0.1, side: this.unit === "floor" ? T.DoubleSide : 0,
        transparent: this.ghost, opacity: this.ghost ? 0.45 : 1,
      });
      this.mesh = new T.InstancedMesh(UNITS[this.unit](), material, this.items.length);
      this.mesh.frustumCulled = false;
      this.mesh.userData.batch = this;
      this.items.forEach((item, i) => this.mesh.setColorAt(i, new T.Color(item.colour)));
      this.group.add(this.mesh);
    }
    pose() {
      for (const item of this.items) { item.matrix(matrix); this.mesh.setMatrixAt(item.number, matrix); }
      this.mesh.instanceMatrix.needsUpdate = true;
      this.mesh.boundingSphere = null;
    }
  }

  // A matrix that takes the unit shape along y to the part between two points.
  function between(run, points, from, to, width, into) {
    run.point(points[0], a); run.point(points[points.length - 1], b);
    along.subVectors(b, a);
    place.copy(a).addScaledVector(along, (from + to) / 2);
    const length = along.length();
    if (length > 0) quaternion.setFromUnitVectors(Y, along.multiplyScalar(1 / length)); else quaternion.identity();
    return into.compose(place, quaternion, scale.set(width, Math.max((to - from) * length, 1e-9 * size), width));
  }

  const worlds = [];
  class World {
    constructor(run, number) {
      this.run = run; this.number = number; this.ghost = number > 0;
      this.group = new T.Group();
      scene.add(this.group);
      this.batches = {}; this.lines = []; this.plates = []; this.traces = []; this.arrows = []; this.named = [];
      let colour = 2 * number;
      for (const shape of run.shapes) {
        const tint = shape.trace !== null ? PALETTE[colour++ % PALETTE.length] : null;
        shape.tint = tint;
        this.add(shape, tint);
      }
      for (const batch of Object.values(this.batches)) batch.build();
      for (const shape of run.shapes) if (shape.path) this.trace(shape);
      this.buildArrows();
    }
    put(unit, shape, colour, make) {
      const batch = (this.batches[unit] ||= new Batch(unit, this.group, this.ghost));
      return batch.add({ shape, colour, world: this, matrix: make });
    }
    add(shape, tint) {
      const run = this.run, points = shape.points, given = shape.sizes, kind = shape.kind;
      const first = (unit, colour, grown) => this.put(unit, shape, colour, (into) =>
        into.compose(run.point(points[0], place), run.turn(shape.turn, quaternion), grown(scale)));
      if (kind === "rod") {
        const w = given.width || 0.022 * size;
        shape.item = this.put("cylinder", shape, tint || STEEL, (into) => between(run, points, 0, 1, w, into));
        for (const end of [0, 1]) {
          this.put("sphere", shape, DARK, (into) =>
            into.compose(run.point(points[end], place), quaternion.identity(), scale.setScalar(0.72 * w)));
        }
      } else if (kind === "cylinder") {
        shape.item = this.put("cylinder", shape, tint || STEEL, (into) => between(run, points, 0, 1, 2 * given.radius, into));
      } else if (kind === "cone") {
        // the unit cone points along y, with its tip at the far end: from the base to the tip
        const turned = [points[1], points[0]];
        shape.item = this.put("cone", shape, tint || STEEL, (into) => between(run, turned, 0, 1, given.radius, into));
        // a mark on the base, without which nobody sees it spin
        if (shape.turn) {
          const r = given.radius;
          this.put("sphere", shape, "#f2f2ee", (into) => {
            run.point(points[1], place); run.turn(shape.turn, quaternion);
            place.add(along.set(0.75 * r, 0, 0).applyQuaternion(quaternion));
            return into.compose(place, quaternion.identity(), scale.setScalar(0.13 * r));
          });
        }
      } else if (kind === "box") {
        const depth = given.depth || 0.6 * Math.min(given.length, given.width);
        shape.item = first("box", tint || STEEL, (s) => s.set(given.length, given.width, depth));
      } else if (kind === "sphere") {
        const r = given.radius || (tint ? 0.03 : 0.018) * size;
        shape.item = first("sphere", tint || (given.radius ? "#E69F00" : DARK), (s) => s.setScalar(r));
      } else if (kind === "ring") {
        shape.item = first("ring", tint || STEEL, (s) => s.setScalar(given.radius));
      } else if (kind === "spring") {
        const w = given.width || 0.045 * size;
        shape.item = this.put("spring", shape, tint || SPRING, (into) => between(run, points, 0, 1, w, into));
      } else if (kind === "damper") {
        const w = given.width || 0.03 * size;
        shape.item = this.put("cylinder", shape, tint || SPRING, (into) => between(run, points, 0, 0.55, w, into));
        this.put("cylinder", shape, STEEL, (into) => between(run, points, 0.55, 1, 0.35 * w, into));
      } else if (kind === "ground" && given.size) {
        shape.item = first("floor", "#c9cdd0", (s) => s.setScalar(given.size));
      } else if (kind === "ground") {
        const down = planar ? new T.Quaternion() : new T.Quaternion().setFromUnitVectors(Y, new T.Vector3(0, 0, 1));
        if (planar) down.setFromAxisAngle(Y, Math.PI / 4);
        const h = 0.05 * size;
        shape.item = this.put("support", shape, DARK, (into) =>
          into.compose(run.point(points[0], place), down, scale.set(0.7 * h, h, 0.7 * h)));
      } else if (kind === "axes") {
        const length = given.size || 0.12 * size;
        ["#d1495b", "#3d9b4f", "#3b6fd4"].forEach((colour, axis) => {
          shape.item = this.put("cylinder", shape, colour, (into) => {
            run.turn(shape.turn, quaternion);
            along.set(+(axis === 0), +(axis === 1), +(axis === 2)).applyQuaternion(quaternion);
            run.point(points[0], place).addScaledVector(along, length / 2);
            quaternion.setFromUnitVectors(Y, along);
            return into.compose(place, quaternion, scale.set(0.06 * length, length, 0.06 * length));
          });
        });
      } else if (kind === "polygon") {
        this.plate(shape, tint || "#b7c4cf");
      } else {
        this.line(shape, kind === "cable" ? DARK : "#a0a5a9");
      }
      if (shape.item) shape.item.main = true;
      if (shape.name) this.named.push(shape);
    }
    plate(shape, colour) {
      const n = shape.points.length, geometry = new T.BufferGeometry(), index = [];
      geometry.setAttribute("position", new T.BufferAttribute(new Float32Array(3 * n), 3));
      for (let i = 1; i < n - 1; i++) index.push(0, i, i + 1);
      geometry.setIndex(index);
      const material = new T.MeshStandardMaterial({ color: colour, side: T.DoubleSide, transparent: true, opacity: 0.75 });
      const mesh = new T.Mesh(geometry, material);
      mesh.userData.shape = shape; mesh.frustumCulled = false; shape.mesh = mesh;
      this.group.add(mesh);
      this.plates.push({ shape, geometry, solid: true });
    }
    line(shape, colour) {
      const geometry = new T.BufferGeometry();
      geometry.setAttribute("position", new T.BufferAttribute(new Float32Array(3 * shape.points.length), 3));
      const mesh = new T.Line(geometry, new T.LineBasicMaterial({ color: colour }));
      mesh.frustumCulled = false; shape.mesh = mesh;
      this.group.add(mesh);
      this.plates.push({ shape, geometry, solid: false });
    }
    trace(shape) {
      const run = this.run, n = run.frames, all = new Float32Array(3 * n);
      for (let i = 0; i < n; i++) for (let c = 0; c < 3; c++) all[3 * i + c] = run.value(shape.path[c], i);
      const geometry = new T.BufferGeometry();
      geometry.setAttribute("position", new T.BufferAttribute(all, 3));
      const mesh = new T.Line(geometry, new T.LineBasicMaterial({ color: shape.tint, transparent: true, opacity: 0.75 }));
      mesh.frustumCulled = false;
      this.group.add(mesh);
      this.traces.push(mesh);
    }
    buildArrows() {
      const moving = this.run.shapes.filter((s) => s.velocity);
      if (!moving.length) return;
      const longest = this.run.speed || 1, reach = (0.25 * size) / longest;
      this.arrowGroup = new T.Group();
      this.group.add(this.arrowGroup);
      const shafts = new Batch("cylinder", this.arrowGroup, false), heads = new Batch("arrow", this.arrowGroup, false);
      for (const shape of moving) {
        const pose = (from, to, width) => (into) => {
          this.run.point(shape.path, a); this.run.point(shape.velocity, b).multiplyScalar(reach);
          const length = b.length();
          if (length < 1e-4 * size) return into.makeScale(0, 0, 0);
          quaternion.setFromUnitVectors(Y, along.copy(b).multiplyScalar(1 / length));
          place.copy(a).addScaledVector(b, (from + to) / 2);
          return into.compose(place, quaternion, scale.set(width, (to - from) * length, width));
        };
        shafts.add({ shape, colour: "#c1272d", world: this, matrix: pose(0, 0.8, 0.009 * size) });
        heads.add({ shape, colour: "#c1272d", world: this, matrix: pose(0.8, 1, 0.028 * size) });
      }
      this.arrows = [shafts, heads];
      this.arrows.forEach((batch) => batch.build());
    }
    pose() {
      for (const batch of Object.values(this.batches)) batch.pose();
      for (const { shape, geometry, solid } of this.plates) {
        const to = geometry.attributes.position;
        shape.points.forEach((point, i) => { this.run.point(point, a); to.setXYZ(i, a.x, a.y, a.z); });
        to.needsUpdate = true;
        if (solid) { geometry.computeVertexNormals(); geometry.boundingSphere = null; }
      }
      for (const mesh of this.traces) {
        mesh.visible = shown.traces;
        mesh.geometry.setDrawRange(0, this.run.current.i + 1);
      }
      if (this.arrowGroup) {
        this.arrowGroup.visible = shown.arrows;
        if (shown.arrows) this.arrows.forEach((batch) => batch.pose());
      }
    }
    // Where a shape is drawn, read back from the graph of objects: the matrix of its instance, or its first corner.
    drawn(shape) {
      const found = new T.Vector3();
      if (shape.item) {
        shape.item.batch.mesh.getMatrixAt(shape.item.number, matrix);
        found.setFromMatrixPosition(matrix);
      } else {
        found.fromBufferAttribute(shape.mesh.geometry.attributes.position, 0);
      }
      return found;
    }
  }

  // -- state ----------------------------------------------------------------------------------------------------------
  let time = begin, playing = false, looping = true, layout = "over", followed = null, theme = "light";
  const traced = runs.reduce((n, r) => n + r.shapes.filter((s) => s.path).length, 0);
  const shown = { traces: traced > 0 && traced <= 40, arrows: false };
  // Motions of a few seconds run as they are, shorter ones so that they last for ten; of long ones nothing is to cross
  // the picture in less than half a second.
  const calm = Math.max(1, (2 * size) / Math.max(...runs.map((r) => r.speed || 1)));
  const usual = span < 3 ? span / 10 : span <= 60 ? 1 : Math.min(span / 10, calm);
  let speed = usual;
  const offset = () => 1.15 * (high.x - low.x) + 0.1 * size;

  runs.forEach((run, i) => worlds.push(new World(run, i)));
  if (!planar) {
    const grid = new T.GridHelper(4 * extent, 40, 0x888888, 0x888888);
    grid.material.transparent = true; grid.material.opacity = 0.22;
    grid.rotation.x = Math.PI / 2;
    grid.position.set(middle.x, middle.y, low.z);
    scene.add(grid);
  }
  function arrange() {
    worlds.forEach((world, i) => world.group.position.set(layout === "side" ? i * offset() : 0, 0, 0));
  }

  // -- plots ----------------------------------------------------------------------------------------------------------
  const panels = [];
  for (const name of [...new Set(runs.flatMap((r) => r.curves.map((c) => c.panel)))]) {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    const sheet = document.createElement("canvas");
    const head = document.createElement("b");
    head.textContent = name;
    caption.append(head);
    const curves = runs.flatMap((run, r) => run.curves.filter((c) => c.panel === name).map((c) => ({ ...c, run, r })));
    curves.forEach((curve, i) => {
      curve.colour = PALETTE[i % PALETTE.length];
      const entry = document.createElement("span"), mark = document.createElement("i");
      mark.style.borderColor = curve.colour; if (curve.r) mark.style.borderTopStyle = "dashed";
      entry.append(mark, document.createTextNode(curve.name + (runs.length > 1 ? " (" + (curve.r + 1) + ")" : "")));
      caption.append(entry);
    });
    figure.append(caption, sheet);
    element("plots").append(figure);
    const panel = { sheet, curves, log: curves.some((c) => c.log) };
    panels.push(panel);
    const scrub = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const box = sheet.getBoundingClientRect();
      seek(begin + span * Math.min(1, Math.max(0, (event.clientX - box.left - MARGIN) / (box.width - MARGIN - 6))));
    };
    sheet.addEventListener("pointerdown", scrub);
    sheet.addEventListener("pointermove", scrub);
  }
  const MARGIN = 52;
  function number(x) {
    if (x === 0) return "0";
    const size = Math.abs(x);
    return size >= 1e4 || size < 1e-3 ? x.toExponential(1) : String(+x.toPrecision(4));
  }
  function colourOf(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
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
      g.fillText(log ? "1e" + Math.round(y) : number(y), MARGIN - 5, Yof(y));
    }
    g.textAlign = "left"; g.fillText(number(begin), MARGIN, h - 6);
    g.textAlign = "right"; g.fillText(number(end) + " s", w - 6, h - 6);
    for (const curve of curves) {
      g.beginPath(); g.strokeStyle = curve.colour; g.lineWidth = 1.3; g.setLineDash(curve.r ? [5, 3] : []);
      curve.values.forEach((y, i) => { const x = X(curve.run.times[i]), s = Yof(shownValue(y)); if (i) g.lineTo(x, s); else g.moveTo(x, s); });
      g.stroke();
    }
    g.setLineDash([]);
    panel.kept = g.getImageData(0, 0, sheet.width, sheet.height); panel.X = X;
    cursor(panel);
  }
  function cursor(panel) {
    if (!panel.kept) return;
    const g = panel.sheet.getContext("2d", { willReadFrequently: true });
    g.putImageData(panel.kept, 0, 0);
    g.beginPath(); g.strokeStyle = colourOf("--ink"); g.lineWidth = 1;
    g.moveTo(panel.X(time), 4); g.lineTo(panel.X(time), panel.sheet.clientHeight - 14); g.stroke();
  }

  // -- time -----------------------------------------------------------------------------------------------------------
  const digits = Math.max(0, 3 - Math.floor(Math.log10(span)));
  function seek(t) {
    time = Math.min(end, Math.max(begin, t));
    for (const run of runs) run.seek(time);
    for (const world of worlds) world.pose();
    if (followed) {
      const now = followed.where();
      along.subVectors(now, followed.last);
      camera.position.add(along); controls.target.add(along);
      followed.last.copy(now);
    }
    element("scrub").value = (1000 * (time - begin)) / span;
    element("clock").textContent = time.toFixed(digits) + " s";
    panels.forEach(cursor);
    render();
  }
  function render() { renderer.render(scene, camera); }
  let last = 0;
  function tick(stamp) {
    if (!playing) return;
    const passed = Math.min(0.1, (stamp - last) / 1000 || 0);
    last = stamp;
    let next = time + speed * passed;
    if (next >= end) { if (looping) next = begin; else { next = end; play(false); } }
    seek(next);
    requestAnimationFrame(tick);
  }
  function play(wanted) {
    playing = wanted;
    element("play").textContent = playing ? "\u275A\u275A" : "\u25B6";
    document.documentElement.dataset.playing = String(playing);
    if (playing) { if (time >= end) seek(begin); last = performance.now(); requestAnimationFrame(tick); }
  }

  // -- controls -------------------------------------------------------------------------------------------------------
  const factors = [0.1, 0.25, 0.5, 1, 2, 4, 10];
  factors.forEach((factor) => {
    const option = document.createElement("option"), rate = usual * factor;
    option.value = rate; option.textContent = "\u00d7 " + number(+rate.toPrecision(2));
    option.selected = factor === 1;
    element("speed").append(option);
  });
  const nobody = document.createElement("option");
  nobody.textContent = "follow nothing"; nobody.value = "";
  element("follow").append(nobody);
  // The middle of all bodies of the first run, for what flies away as a whole.
  const whole = {
    name: "everything", world: worlds[0],
    where: () => {
      const all = worlds[0].run.shapes.filter((s) => s.path), sum = new T.Vector3();
      for (const s of all) sum.add(worlds[0].run.point(s.path, place));
      return sum.multiplyScalar(1 / all.length).add(worlds[0].group.position);
    },
  };
  const followable = [whole, ...worlds.flatMap((w) => w.run.shapes.filter((s) => s.path && s.item).slice(0, 200).map((shape) => ({
    shape, world: w, name: (shape.name || shape.kind) + (runs.length > 1 ? " (" + (w.number + 1) + ")" : ""),
    where: () => w.drawn(shape).add(w.group.position),
  })))].filter(() => traced > 0);
  followable.forEach(({ name }, i) => {
    const option = document.createElement("option");
    option.value = i; option.textContent = "follow " + name;
    element("follow").append(option);
  });
  function follow(i) {
    const found = followable[i];
    followed = found ? { ...found, number: i, last: found.where() } : null;
    element("follow").value = found ? String(i) : "";
    if (followed) { along.subVectors(followed.last, controls.target); camera.position.add(along); controls.target.add(along); controls.update(); }
    render();
  }
  function toggle(name) { shown[name] = !shown[name]; mark(); seek(time); }
  function mark() {
    element("traces").classList.toggle("on", shown.traces);
    element("arrows").classList.toggle("on", shown.arrows);
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
  element("traces").onclick = () => toggle("traces");
  element("arrows").onclick = () => toggle("arrows");
  element("follow").onchange = (event) => follow(event.target.value === "" ? -1 : +event.target.value);
  element("layout").onchange = (event) => setLayout(event.target.value);
  element("home").onclick = () => { home(); render(); };
  element("dark").onclick = () => dress(theme === "dark" ? "light" : "dark");
  element("layout").hidden = runs.length < 2;
  element("arrows").hidden = !worlds.some((w) => w.arrowGroup);
  element("traces").hidden = !traced;
  controls.addEventListener("change", render);
  const step = () => span / Math.max(1, runs[0].frames - 1);
  const KEYS = {
    " ": () => play(!playing), ArrowRight: () => seek(time + step()), ArrowLeft: () => seek(time - step()),
    Home: () => seek(begin), End: () => seek(end), "+": () => faster(1), "-": () => faster(-1), t: () => toggle("traces"),
    v: () => toggle("arrows"), l: () => { looping = !looping; mark(); }, c: () => element("home").onclick(),
    d: () => element("dark").onclick(), o: () => runs.length > 1 && setLayout(layout === "over" ? "side" : "over"),
    f: () => { const at = followed ? followed.number : -1; follow(at + 1 < followable.length ? at + 1 : -1); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /SELECT/.test(event.target.tagName)) return;
    if (KEYS[event.key]) { event.preventDefault(); KEYS[event.key](); }
  });

  // -- names under the pointer ----------------------------------------------------------------------------------------
  const ray = new T.Raycaster(), pointer = new T.Vector2();
  function under(x, y) {
    const box = canvas.getBoundingClientRect();
    pointer.set(((x - box.left) / box.width) * 2 - 1, 1 - ((y - box.top) / box.height) * 2);
    ray.setFromCamera(pointer, camera);
    const targets = worlds.flatMap((w) => [...Object.values(w.batches).map((batch) => batch.mesh), ...w.plates.filter((p) => p.solid).map((p) => p.shape.mesh)]);
    for (const hit of ray.intersectObjects(targets, false)) {
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
    tip.textContent = found.shape.name + "\n" + found.at.toArray().slice(0, planar ? 2 : 3).map((x) => number(+x.toPrecision(3))).join(", ");
    tip.style.left = Math.min(event.clientX - box.left + 14, box.width - 120) + "px";
    tip.style.top = event.clientY - box.top + 12 + "px";
  });
  canvas.addEventListener("pointerleave", () => { element("label").hidden = true; });

  // -- beginning ------------------------------------------------------------------------------------------------------
  let fitted = 0;
  function fit() {
    const box = element("stage").getBoundingClientRect();
    renderer.setPixelRatio(Math.min(2, window.devicePixelRatio || 1));
    renderer.setSize(box.width, box.height, false);
    camera.aspect = box.width / Math.max(1, box.height);
    camera.updateProjectionMatrix();
    if (Math.abs(camera.aspect - fitted) > 0.05) { fitted = camera.aspect; home(); }
    panels.forEach(drawPanel);
    render();
  }
  element("title").textContent = runs.map((r) => r.title).join(" and ");
  element("subtitle").textContent = runs.map((r) => r.subtitle).join("; ");
  window.addEventListener("resize", fit);
  mark();
  arrange();
  dress(data.theme || (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  seek(begin);
  if (runs.length === 1 && runs[0].flies && traced) follow(0);
  fit();
  home();
  render();
  const find = (name, r) => worlds[r || 0].run.shapes.find((s) => s.name === name);
  window.livens = {
    seek, play, follow, setLayout, dress, under, runs, camera, controls, shown, renderer,
    time: () => time, playing: () => playing, times: (r) => Array.from(runs[r || 0].times), home,
    position: (name, r) => worlds[r || 0].drawn(find(name, r)).toArray(),
    positions: (r) => worlds[r || 0].run.shapes.map((s) => worlds[r || 0].drawn(s).toArray()),
    trace: (r) => worlds[r || 0].traces.map((mesh) => [mesh.visible, mesh.geometry.drawRange.count]),
    group: (r) => worlds[r].group.position.toArray(),
  };
  document.documentElement.dataset.ready = "true";
  if (data.play) play(true);
})();
