"use strict";
// Animated thumbnails: one canvas per problem with precomputed lines.
(async function () {
  const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const grey = dark ? "#7d858d" : "#9a9a96";
  const load = async (path) => (await fetch(path, { credentials: "same-origin" })).json();
  const [every, films] = await Promise.all([load("/api/problems"), load("/assets/gallery.json")]);

  class Thumbnail {
    constructor(canvas, film) {
      this.canvas = canvas; this.film = film; this.seen = false;
      const raw = atob(film.points);
      this.points = Uint8Array.from(raw, (c) => c.charCodeAt(0));
    }
    draw(part) {
      const { canvas, film, points } = this, ratio = window.devicePixelRatio || 1;
      const w = canvas.clientWidth, h = canvas.clientHeight;
      if (canvas.width !== Math.round(w * ratio)) { canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); }
      // software rendering: faster than the GPU path for a hundred small canvases with a few thin lines
      const g = canvas.getContext("2d", { willReadFrequently: true });
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.clearRect(0, 0, w, h);
      const frame = Math.floor(part * film.frames) % film.frames, side = Math.min(w, h * 4 / 3) / 255;
      const X = (i) => w / 2 + (points[i] - 127.5) * side, Y = (i) => h / 2 - (points[i + 1] - 127.5) * side;
      let at = frame * film.size;
      for (const [kind, count, colour] of film.lines) {
        g.strokeStyle = g.fillStyle = colour < 0 ? grey : PALETTE[colour % PALETTE.length];
        g.lineWidth = kind === "rod" ? 3 : 1.4;
        g.lineCap = g.lineJoin = "round";
        g.beginPath();
        if (kind === "ground") {
          g.moveTo(X(at), Y(at)); g.lineTo(X(at) - 5, Y(at) + 8); g.lineTo(X(at) + 5, Y(at) + 8); g.fill();
        } else if (count === 1) {
          g.arc(X(at), Y(at), 4, 0, 7); g.fill();
        } else {
          for (let i = 0; i < count; i++) { if (i) g.lineTo(X(at + 2 * i), Y(at + 2 * i)); else g.moveTo(X(at), Y(at)); }
          g.stroke();
        }
        at += 2 * count;
      }
    }
  }
  const moving = [], missing = [];
  let section = null;
  for (const { name, summary, section: title } of every) {
    if (title !== section) {
      const heading = document.createElement("h2");
      heading.textContent = section = title;
      document.getElementById("cards").append(heading);
    }
    const card = document.createElement("a"), canvas = document.createElement("canvas");
    const head = document.createElement("b"), words = document.createElement("span");
    card.className = "card"; card.href = "/?problem=" + encodeURIComponent(name); card.dataset.problem = name;
    head.textContent = name; words.textContent = summary;
    card.append(canvas, head, words);
    document.getElementById("cards").append(card);
    if (films[name]) moving.push(new Thumbnail(canvas, films[name])); else missing.push({ name, canvas });
  }
  // cards that do not contain the searched words are hidden, and so are headings without cards
  document.getElementById("search").oninput = (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    let heading = null;
    for (const each of document.getElementById("cards").children) {
      if (each.tagName === "H2") { heading = each; heading.hidden = true; continue; }
      each.hidden = !words.every((word) => each.textContent.toLowerCase().includes(word));
      if (!each.hidden) heading.hidden = false;
    }
  };
  const watch = new IntersectionObserver((entries) => entries.forEach((entry) => {
    moving.find((film) => film.canvas === entry.target).seen = entry.isIntersecting;
  }));
  const show = (film) => { watch.observe(film.canvas); film.draw(0); };
  moving.forEach(show);
  window.gallery = { moving };
  document.documentElement.dataset.ready = "true";
  const begun = performance.now();
  (function tick(now) {
    for (const film of moving) if (film.seen) film.draw(((now - begun) / 1000 / film.film.seconds) % 1);
    requestAnimationFrame(tick);
  })(begun);
  // thumbnails that are not in the package are computed by the server, one at a time
  for (const { name, canvas } of missing) {
    // a user-defined problem may fail: it stays without a picture
    const found = await load("/api/thumbnails/" + encodeURIComponent(name)).catch(() => ({}));
    if (!found.points) continue;
    moving.push(new Thumbnail(canvas, found));
    show(moving.at(-1));
  }
  document.documentElement.dataset.complete = "true";
})();
