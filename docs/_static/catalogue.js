"use strict";
// Scheme catalogue: show the schemes that have all ticked properties.
window.addEventListener("DOMContentLoaded", () => {
  const boxes = [...document.querySelectorAll(".scheme-filter input")];
  const rows = [...document.querySelectorAll(".scheme-table tbody tr")];
  function update() {
    const wanted = boxes.filter((box) => box.checked).map((box) => box.dataset.filter);
    let group = null, shown = 0;
    const close = () => { if (group) group.classList.toggle("scheme-hidden", shown === 0); };
    for (const row of rows) {
      if (row.classList.contains("scheme-group")) { close(); group = row; shown = 0; continue; }
      const has = row.dataset.properties.split(" ");
      const fits = wanted.every((key) => has.includes(key));
      row.classList.toggle("scheme-hidden", !fits);
      if (fits) shown += 1;
    }
    close();
  }
  boxes.forEach((box) => box.addEventListener("change", update));
});
