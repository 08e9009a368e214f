// -- world: the shapes of a run as objects of three.js ------------------------------------------------------------------
const STEEL = "#9aa3ab", DARK = "#4d555c", SPRING = "#7b8794", VELOCITY = "#c1272d", FORCE = "#6a3d9a";
const a = new T.Vector3(), b = new T.Vector3(), along = new T.Vector3(), Y = new T.Vector3(0, 1, 0);
const quaternion = new T.Quaternion(), scale = new T.Vector3(), matrix = new T.Matrix4(), place = new T.Vector3();

// Everything that moves rigidly is an instance of a unit shape, so that thousands of bodies are a few calls to draw.
class Helix extends T.CatmullRomCurve3 {
  constructor() {
    // eight times as long as wide, so that the wire of a spring of this ratio is round
    const points = [new T.Vector3(0, -4, 0), new T.Vector3(0, -3.4, 0)], turns = 8;
    for (let i = 0; i <= turns * 12; i++) {
      const part = i / (turns * 12), angle = part * turns * 2 * Math.PI, grown = Math.min(1, 14 * part, 14 * (1 - part));
      points.push(new T.Vector3(0.5 * grown * Math.cos(angle), -3.2 + 6.4 * part, 0.5 * grown * Math.sin(angle)));
    }
    points.push(new T.Vector3(0, 3.4, 0), new T.Vector3(0, 4, 0));
    super(points);
  }
}
const many = () => runs.reduce((n, r) => n + r.shapes.length, 0) > 400;
const UNITS = {
  cylinder: () => new T.CylinderGeometry(0.5, 0.5, 1, many() ? 8 : 24),
  cone: () => new T.ConeGeometry(1, 1, 48),
  support: () => new T.ConeGeometry(1, 1, planar ? 4 : 24, 1).translate(0, -0.5, 0),
  box: () => new T.BoxGeometry(1, 1, 1),
  sphere: () => new T.SphereGeometry(1, many() ? 12 : 32, many() ? 8 : 20),
  knob: () => new T.SphereGeometry(1, many() ? 8 : 16, many() ? 6 : 10),
  ring: () => new T.TorusGeometry(1, 0.06, 12, 64),
  spring: () => new T.TubeGeometry(new Helix(), 400, 0.06, 8).scale(1, 1 / 8, 1),
  floor: () => new T.PlaneGeometry(1, 1),
  slab: () => new T.BoxGeometry(1, 1, 1).translate(0, -0.5, 0),
  arrow: () => new T.ConeGeometry(0.5, 1, 16),
};

class Batch {
  constructor(unit, group, ghost, geometry) {
    this.unit = unit; this.items = []; this.group = group; this.ghost = ghost; this.geometry = geometry;
  }
  add(item) { item.number = this.items.length; item.batch = this; this.items.push(item); return item; }
  build() {
    const material = new T.MeshStandardMaterial({
      roughness: 0.55, metalness: 0.1, side: this.unit === "floor" || this.geometry ? T.DoubleSide : 0,
      transparent: this.ghost, opacity: this.ghost ? 0.45 : 1, flatShading: Boolean(this.geometry),
    });
    this.mesh = new T.InstancedMesh(this.geometry || UNITS[this.unit](), material, this.items.length);
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

// Matrix that maps the unit shape along y to the segment between two points.
function between(run, points, from, to, width, into) {
  run.point(points[0], a); run.point(points[points.length - 1], b);
  along.subVectors(b, a);
  place.copy(a).addScaledVector(along, (from + to) / 2);
  const length = along.length();
  if (length > 0) quaternion.setFromUnitVectors(Y, along.multiplyScalar(1 / length)); else quaternion.identity();
  return into.compose(place, quaternion, scale.set(width, Math.max((to - from) * length, 1e-9 * size), width));
}

class World {
  constructor(run, number) {
    this.run = run; this.number = number; this.ghost = number > 0;
    this.group = new T.Group();
    this.batches = {}; this.plates = []; this.traces = []; this.arrows = {};
    let colour = 2 * number;
    for (const shape of run.shapes) {
      shape.tint = shape.trace !== null ? PALETTE[colour++ % PALETTE.length] : null;
      this.add(shape, shape.colour || shape.tint);
    }
    for (const batch of Object.values(this.batches)) batch.build();
    const moving = run.shapes.filter((shape) => shape.path);
    this.arrows.velocities = this.buildArrows(moving.map((shape) => ({
      name: shape.name, unit: "m/s", colour: VELOCITY,
      at: (into) => run.point(shape.path, into), vector: (into) => run.velocity(shape, into),
    })), run.velocity_scale);
    this.arrows.forces = this.buildArrows((run.forces || []).map((force) => ({
      name: force.name, unit: "N", colour: FORCE,
      at: (into) => run.point(force.point, into), vector: (into) => run.point(force.vector, into),
    })), run.force_scale);
  }
  dispose() {
    this.group.traverse((object) => { if (object.geometry) { object.geometry.dispose(); object.material.dispose(); } });
    this.group.removeFromParent();
  }
  put(unit, shape, colour, make, geometry) {
    const batch = (this.batches[unit] ||= new Batch(unit, this.group, this.ghost, geometry && geometry()));
    return batch.add({ shape, colour, world: this, matrix: make });
  }
  add(shape, tint) {
    const run = this.run, points = shape.points, given = shape.sizes, type = shape.type;
    const first = (unit, colour, grown, geometry) => this.put(unit, shape, colour, (into) =>
      into.compose(run.point(points[0], place), run.orientation(shape.quaternion, quaternion), grown(scale)), geometry);
    if (type === "rod") {
      const w = given.width || 0.022 * size;
      shape.item = this.put("cylinder", shape, tint || STEEL, (into) => between(run, points, 0, 1, w, into));
      for (const end of [0, 1]) {
        this.put("knob", shape, DARK, (into) =>
          into.compose(run.point(points[end], place), quaternion.identity(), scale.setScalar(0.72 * w)));
      }
    } else if (type === "cylinder") {
      shape.item = this.put("cylinder", shape, tint || STEEL, (into) => between(run, points, 0, 1, 2 * given.radius, into));
    } else if (type === "cone") {
      // the unit cone points along y, with its tip at the far end: from the base to the tip
      const turned = [points[1], points[0]];
      shape.item = this.put("cone", shape, tint || STEEL, (into) => between(run, turned, 0, 1, given.radius, into));
      // a mark on the base makes spin visible
      if (shape.quaternion) {
        const r = given.radius;
        this.put("sphere", shape, "#f2f2ee", (into) => {
          run.point(points[1], place); run.orientation(shape.quaternion, quaternion);
          place.add(along.set(0.75 * r, 0, 0).applyQuaternion(quaternion));
          return into.compose(place, quaternion.identity(), scale.setScalar(0.13 * r));
        });
      }
    } else if (type === "box") {
      const depth = given.depth || 0.6 * Math.min(given.length, given.width);
      shape.item = first("box", tint || STEEL, (s) => s.set(given.length, given.width, depth));
    } else if (type === "sphere") {
      const r = given.radius || (tint ? 0.03 : 0.018) * size;
      shape.item = first("sphere", tint || (given.radius ? "#E69F00" : DARK), (s) => s.setScalar(r));
    } else if (type === "ring") {
      shape.item = first("ring", tint || STEEL, (s) => s.setScalar(given.radius));
    } else if (type === "spring") {
      const w = given.width || 0.045 * size;
      shape.item = this.put("spring", shape, tint || SPRING, (into) => between(run, points, 0, 1, w, into));
    } else if (type === "damper") {
      const w = given.width || 0.03 * size;
      shape.item = this.put("cylinder", shape, tint || SPRING, (into) => between(run, points, 0, 0.55, w, into));
      this.put("cylinder", shape, STEEL, (into) => between(run, points, 0.55, 1, 0.35 * w, into));
    } else if (type === "ground" && given.size) {
      // in the plane its second axis is upwards, in space the third
      if (planar) shape.item = this.put("slab", shape, tint || "#c9cdd0", (into) =>
        into.compose(run.point(points[0], place), run.orientation(shape.quaternion, quaternion), scale.set(given.size, 0.02 * size, 0.1 * size)));
      else shape.item = first("floor", tint || "#c9cdd0", (s) => s.setScalar(given.size));
    } else if (type === "ground") {
      const down = planar ? new T.Quaternion() : new T.Quaternion().setFromUnitVectors(Y, new T.Vector3(0, 0, 1));
      if (planar) down.setFromAxisAngle(Y, Math.PI / 4);
      const h = 0.05 * size;
      shape.item = this.put("support", shape, DARK, (into) =>
        into.compose(run.point(points[0], place), down, scale.set(0.7 * h, h, 0.7 * h)));
    } else if (type === "axes") {
      const length = given.size || 0.12 * size;
      ["#d1495b", "#3d9b4f", "#3b6fd4"].forEach((colour, axis) => {
        shape.item = this.put("cylinder", shape, colour, (into) => {
          run.orientation(shape.quaternion, quaternion);
          along.set(+(axis === 0), +(axis === 1), +(axis === 2)).applyQuaternion(quaternion);
          run.point(points[0], place).addScaledVector(along, length / 2);
          quaternion.setFromUnitVectors(Y, along);
          return into.compose(place, quaternion, scale.set(0.06 * length, length, 0.06 * length));
        });
      });
    } else if (type === "mesh") {
      shape.item = first("mesh" + shape.mesh, tint || STEEL, (s) => s.setScalar(given.scale || 1), () => this.solid(shape.mesh));
    } else if (type === "polygon") {
      this.plate(shape, tint || "#b7c4cf");
    } else {
      this.line(shape, type === "cable" ? DARK : "#a0a5a9");
    }
  }
  solid(mesh) {
    const { vertices, faces } = this.run.meshes[mesh], geometry = new T.BufferGeometry();
    geometry.setAttribute("position", new T.BufferAttribute(new Float32Array(bytes(vertices)), 3));
    geometry.setIndex(new T.BufferAttribute(new Uint32Array(bytes(faces)), 1));
    geometry.computeVertexNormals();
    return geometry;
  }
  plate(shape, colour) {
    const n = shape.points.length, geometry = new T.BufferGeometry(), index = [];
    geometry.setAttribute("position", new T.BufferAttribute(new Float32Array(3 * n), 3));
    for (let i = 1; i < n - 1; i++) index.push(0, i, i + 1);
    geometry.setIndex(index);
    const material = new T.MeshStandardMaterial({ color: colour, side: T.DoubleSide, transparent: true, opacity: 0.75 });
    const mesh = new T.Mesh(geometry, material);
    mesh.userData.shape = shape; mesh.frustumCulled = false; shape.object = mesh;
    this.group.add(mesh);
    this.plates.push({ shape, geometry, solid: true });
  }
  line(shape, colour) {
    const geometry = new T.BufferGeometry();
    geometry.setAttribute("position", new T.BufferAttribute(new Float32Array(3 * shape.points.length), 3));
    const mesh = new T.Line(geometry, new T.LineBasicMaterial({ color: colour }));
    mesh.frustumCulled = false; shape.object = mesh;
    this.group.add(mesh);
    this.plates.push({ shape, geometry, solid: false });
  }
  // Traces are long: they are built when they are first shown.
  trace(shape) {
    const run = this.run, n = run.frames, all = new Float32Array(3 * n);
    for (let i = 0; i < n; i++) for (let c = 0; c < 3; c++) all[3 * i + c] = run.value(shape.path[c], i);
    const geometry = new T.BufferGeometry();
    geometry.setAttribute("position", new T.BufferAttribute(all, 3));
    const mesh = new T.Line(geometry, new T.LineBasicMaterial({ color: shape.tint, transparent: true, opacity: 0.75 }));
    mesh.frustumCulled = false;
    this.group.add(mesh);
    return mesh;
  }
  // Arrows of vectors: typical vectors have a quarter of the size of the scene, the longest twice that length.
  buildArrows(vectors, large) {
    if (!vectors.length || !large) return null;
    const reach = (0.25 * size) / large, group = new T.Group();
    this.group.add(group);
    const shafts = new Batch("cylinder", group, false), heads = new Batch("arrow", group, false);
    for (const each of vectors) {
      const pose = (from, to, width) => (into) => {
        each.at(a); each.vector(b).multiplyScalar(reach).clampLength(0, 0.5 * size);
        const length = b.length();
        if (!(length > 1e-4 * size)) return into.makeScale(0, 0, 0);
        quaternion.setFromUnitVectors(Y, along.copy(b).multiplyScalar(1 / length));
        place.copy(a).addScaledVector(b, (from + to) / 2);
        return into.compose(place, quaternion, scale.set(width, (to - from) * length, width));
      };
      const shape = { name: each.name, value: () => number(each.vector(b).length()) + " " + each.unit };
      shafts.add({ shape, colour: each.colour, matrix: pose(0, 0.8, 0.009 * size) });
      heads.add({ shape, colour: each.colour, matrix: pose(0.8, 1, 0.028 * size) });
    }
    for (const batch of [shafts, heads]) {
      batch.build();
      batch.mesh.material.depthTest = false; // arrows within bodies remain visible
      batch.mesh.renderOrder = 1;
    }
    return { group, batches: [shafts, heads], vectors };
  }
  pose(shown) {
    for (const batch of Object.values(this.batches)) batch.pose();
    for (const { shape, geometry, solid } of this.plates) {
      const to = geometry.attributes.position;
      shape.points.forEach((point, i) => { this.run.point(point, a); to.setXYZ(i, a.x, a.y, a.z); });
      to.needsUpdate = true;
      if (solid) { geometry.computeVertexNormals(); geometry.boundingSphere = null; }
    }
    if (shown.traces && !this.traces.length) this.traces = this.run.shapes.filter((s) => s.path).map((s) => this.trace(s));
    for (const mesh of this.traces) {
      mesh.visible = shown.traces;
      mesh.geometry.setDrawRange(0, this.run.current.i + 1);
    }
    for (const [name, arrows] of Object.entries(this.arrows)) {
      if (!arrows) continue;
      arrows.group.visible = shown[name];
      if (shown[name]) arrows.batches.forEach((batch) => batch.pose());
    }
  }
  // Objects that can be picked: bodies, plates, and visible arrows.
  targets() {
    const arrows = Object.values(this.arrows).filter((some) => some && some.group.visible);
    return [
      ...Object.values(this.batches).map((batch) => batch.mesh),
      ...this.plates.filter((p) => p.solid).map((p) => p.shape.object),
      ...arrows.flatMap((some) => some.batches.map((batch) => batch.mesh)),
    ];
  }
  // Position of a shape, read back from the scene graph: the matrix of its instance, or its first corner.
  drawn(shape) {
    const found = new T.Vector3();
    if (shape.item) {
      shape.item.batch.mesh.getMatrixAt(shape.item.number, matrix);
      found.setFromMatrixPosition(matrix);
    } else {
      found.fromBufferAttribute(shape.object.geometry.attributes.position, 0);
    }
    return found;
  }
}
