// -- data: payload of the runs ------------------------------------------------------------------------------------------
const T = THREE;
const element = (id) => document.getElementById(id);
const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

function bytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text).buffer;
  const raw = atob(text), found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
  return found.buffer;
}

class Run {
  constructor(plain) {
    Object.assign(this, plain);
    this.times = new Float64Array(bytes(plain.t));
    this.frames = this.times.length;
    // base64 series are in separate elements, so that they are not parsed as JSON
    const apart = typeof plain.tracks === "number" ? element("tracks" + plain.tracks) : null;
    this.packed = bytes(apart ? apart.textContent : plain.tracks);
    if (apart) apart.remove();
    this.tracks = plain.values.map(() => null);
    const readable = (c) => ({ ...c, values: new Float32Array(bytes(c.values)) });
    this.curves = (plain.curves || []).map(readable);
    this.optional_plots = (plain.optional_plots || []).map(readable);
    this.current = { i: 0, w: 0 };
  }
  // Value of a series in a frame; constant series are plain numbers.
  value(track, frame) {
    const v = this.values[track];
    if (typeof v === "number") return v;
    return v[0] + v[1] * (this.tracks[track] || this.unpack(track))[frame];
  }
  // Decode a series on first use. Raw series are plain uint16; delta-coded ones consist of first value, first
  // difference and second differences in bytes, with the escape byte -128 before differences of two bytes.
  unpack(track) {
    const [, , place, near] = this.values[track], n = this.frames;
    if (!near) return (this.tracks[track] = new Uint16Array(this.packed, 2 * n * place, n));
    const all = new Uint8Array(this.packed), found = new Uint16Array(n), two = (i) => all[i] | (all[i + 1] << 8);
    let at = 2 * n * this.n_raw + place, x = two(at), d = two(at + 2);
    at += 4;
    found[0] = x;
    x = (x + d) & 0xffff;
    found[1] = x;
    for (let i = 2; i < n; i++) {
      const byte = all[at++];
      if (byte === 128) { d += two(at); at += 2; } else d += byte < 128 ? byte : byte - 256;
      d &= 0xffff;
      x = (x + d) & 0xffff;
      found[i] = x;
    }
    return (this.tracks[track] = found);
  }
  now(track) {
    const { i, w } = this.current, a = this.value(track, i);
    return w ? a + w * (this.value(track, i + 1) - a) : a;
  }
  // Rate of change of a series, by central differences over the adjacent frames.
  rate(track) {
    const i = this.current.i, from = Math.max(0, i - 1), to = Math.min(this.frames - 1, i + 1);
    return to > from ? (this.value(track, to) - this.value(track, from)) / (this.times[to] - this.times[from]) : 0;
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
  // Quaternions of adjacent frames are close: normalised linear interpolation is accurate enough.
  orientation(tracks, into) {
    if (!tracks) return into.identity();
    into.set(this.now(tracks[1]), this.now(tracks[2]), this.now(tracks[3]), this.now(tracks[0]));
    return into.normalize();
  }
  velocity(shape, into) {
    if (shape.velocity) return this.point(shape.velocity, into);
    return into.set(...shape.path.map((track) => this.rate(track)));
  }
}

// Global state of the page, set by `read`.
let runs = [], begin = 0, end = 1, span = 1, planar = true, size = 1, extent = 1, traced = 0, usual = 1;
const low = new T.Vector3(), high = new T.Vector3(), middle = new T.Vector3();

function read(content) {
  runs = content.runs.map((plain) => new Run(plain));
  begin = Math.min(...runs.map((r) => r.times[0]));
  end = Math.max(...runs.map((r) => r.times[r.frames - 1]));
  span = end - begin || 1;
  planar = runs.every((r) => r.dimension === 2);
  size = Math.max(...runs.map((r) => r.size)) || 1;
  low.set(Infinity, Infinity, Infinity); high.set(-Infinity, -Infinity, -Infinity);
  for (const run of runs) { low.min(new T.Vector3(...run.bounds_min)); high.max(new T.Vector3(...run.bounds_max)); }
  extent = high.distanceTo(low) || 1;
  middle.copy(low).add(high).multiplyScalar(0.5);
  traced = runs.reduce((n, r) => n + r.shapes.filter((s) => s.path).length, 0);
  // Playback speed: motions of 3 to 60 s in real time, shorter ones stretched to ten seconds; in long motions nothing
  // crosses the view in less than half a second.
  const whole = (content.t_end === undefined ? end : content.t_end) - begin || 1;
  const calm = Math.max(1, (2 * size) / Math.max(...runs.map((r) => r.velocity_scale || 1)));
  usual = whole < 3 ? whole / 10 : whole <= 60 ? 1 : Math.min(whole / 10, calm);
}

// Format a number with few digits, or with as many as needed to resolve differences of `apart`.
function number(x, apart) {
  if (x === 0) return "0";
  const large = Math.abs(x), digits = apart ? Math.min(12, Math.max(4, 2 + Math.ceil(Math.log10(large / apart)))) : 4;
  return large >= 1e4 || large < 1e-3 ? x.toExponential(1) : String(+x.toPrecision(digits));
}
