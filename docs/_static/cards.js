"use strict";
// Gallery: the search hides cards without the searched words.
window.addEventListener("DOMContentLoaded", () => {
  const search = document.getElementById("gallery-search");
  if (!search) return;
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const section of document.querySelectorAll("article section section")) {
      let shown = 0;
      for (const card of section.querySelectorAll(".sd-col")) {
        const fits = words.every((word) => card.textContent.toLowerCase().includes(word));
        card.style.display = fits ? "" : "none";
        shown += fits;
      }
      section.style.display = shown ? "" : "none";
    }
  });
});
// Gallery: the picture of a card moves while it is visible. The pictures remain where scripts or motion are disabled.
window.addEventListener("DOMContentLoaded", () => {
  const films = window.livensFilms;
  if (!films || window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const visible = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? visible.add(target) : visible.delete(target);
  });
  for (const image of document.querySelectorAll(".sd-card img.sd-card-img-top")) {
    const film = films[image.alt];
    if (!film) continue;
    const canvas = document.createElement("canvas");
    canvas.className = "livens-card";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", image.alt);
    canvas.film = film;
    canvas.points = Uint8Array.from(atob(film.points), (c) => c.charCodeAt(0));
    image.replaceWith(canvas);
    watch.observe(canvas);
  }
  function draw(canvas, part) {
    const { film, points } = canvas, ratio = window.devicePixelRatio || 1;
    const w = canvas.clientWidth, h = canvas.clientHeight;
    canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const frame = Math.floor(part * film.frames) % film.frames, side = Math.min(w, h * 4 / 3) / 255;
    const X = (i) => w / 2 + (points[i] - 127.5) * side, Y = (i) => h / 2 - (points[i + 1] - 127.5) * side;
    let at = frame * film.size;
    for (const [kind, count, colour] of film.lines) {
      g.strokeStyle = g.fillStyle = colour < 0 ? "#8b9299" : PALETTE[colour % PALETTE.length];
      g.lineWidth = kind === "rod" ? 3 : 1.4;
      g.lineCap = g.lineJoin = "round";
      g.beginPath();
      if (kind === "ground") {
        g.moveTo(X(at), Y(at)); g.lineTo(X(at) - 5, Y(at) + 8); g.lineTo(X(at) + 5, Y(at) + 8); g.fill();
      } else if (count === 1) {
        g.arc(X(at), Y(at), 4, 0, 7); g.fill();
      } else {
        for (let i = 0; i < count; i++) g[i ? "lineTo" : "moveTo"](X(at + 2 * i), Y(at + 2 * i));
        g.stroke();
      }
      at += 2 * count;
    }
  }
  function tick(now) {
    for (const canvas of visible) draw(canvas, (now / 1000 / canvas.film.seconds) % 1);
    window.requestAnimationFrame(tick);
  }
  window.requestAnimationFrame(tick);
});
