"use strict";
// The lab: requests are run by the server, and the viewer shows the animation during the run.
(function () {
  const element = (id) => document.getElementById(id);
  const query = new URLSearchParams(location.search);
  let problem = null, job = null, once = false;
  let opening = 0, asking = 0; // request counters: only the response to the last request counts
  let submission = Promise.resolve(); // the last run request sent to the server
  const fields = new Map(); // input boxes by name; arrays of boxes for list options

  async function ask(path, options) {
    const answer = await fetch(path, { credentials: "same-origin", ...options });
    const found = (answer.headers.get("content-type") || "").includes("json") ? await answer.json() : await answer.text();
    if (!answer.ok) throw new Error(found.error || String(found));
    return found;
  }
  function say(sentence) {
    element("sentence").hidden = !sentence;
    element("sentence").textContent = sentence || "";
  }
  function option(value, text) {
    const found = document.createElement("option");
    found.value = value; found.textContent = text === undefined ? value : text;
    return found;
  }
  const short = (x) => String(+Number(x).toPrecision(4));

  // -- numbers: a slider and an input box per number ---------------------------------------------------------------------
  function numberRow(label, value, [low, high], log, whole, description) {
    const row = document.createElement("div"), name = document.createElement("span");
    const slider = document.createElement("input"), box = document.createElement("input");
    row.className = "number";
    name.textContent = label; name.title = description || label;
    slider.type = "range"; slider.setAttribute("aria-label", label + " (slider)");
    box.type = "text"; box.inputMode = "decimal"; box.setAttribute("aria-label", label);
    const toSlider = (x) => (log ? Math.log10(x) : x), fromSlider = (x) => (log ? 10 ** x : +x);
    slider.min = toSlider(low); slider.max = toSlider(high); slider.step = whole ? 1 : (slider.max - slider.min) / 200;
    slider.value = toSlider(value); box.value = short(value);
    slider.oninput = () => { box.value = short(fromSlider(slider.value)); };
    slider.onchange = changed;
    box.onchange = () => { if (+box.value > 0 || !log) slider.value = toSlider(+box.value); changed(); };
    row.append(name, slider, box);
    if (description) {
      const text = document.createElement("small");
      text.textContent = description; text.id = "about " + label; row.append(text);
      for (const input of [slider, box]) input.setAttribute("aria-describedby", text.id);
    }
    box.usual = short(value);
    return [row, box];
  }
  // Value of a box: a number if it is one, otherwise the text, which the server rejects with a message.
  function written(box) { const text = box.value.trim(); return text !== "" && Number.isFinite(+text) ? +text : text; }

  function show(name, found) {
    problem = found;
    element("problem").value = name;
    element("summary").textContent = problem.summary + " (" + problem.source + ")";
    const groups = (first) => Object.entries(problem.schemes).map(([group, names]) => {
      const found = document.createElement("optgroup");
      found.label = group;
      found.append(...names.map((each) => option(each)));
      return found;
    });
    const known = Object.values(problem.schemes).flat();
    element("scheme").replaceChildren(...(known.includes(problem.scheme) ? [] : [option(problem.scheme)]), ...groups());
    element("scheme").value = problem.scheme;
    element("other").replaceChildren(option("", "nothing"), ...groups());
    fields.clear();
    const rows = [];
    for (const [label, value, about] of [["h", problem.h, "step size"], ["t_end", problem.t_end, "end of the simulated time"]]) {
      const [row, box] = numberRow(label, value, [value / 10, value * 10], value > 0, false, about);
      rows.push(row); fields.set(label, box);
    }
    element("numbers").replaceChildren(...rows);
    const own = [];
    for (const each of problem.options) {
      const boxes = each.default.map((value, i) => {
        const label = each.list ? each.name + " " + (i + 1) : each.name;
        const [row, box] = numberRow(label, value, each.ranges[i], each.log[i], each.whole, i ? "" : each.description);
        own.push(row);
        return box;
      });
      fields.set("option " + each.name, { list: each.list, boxes });
    }
    element("options").replaceChildren(...own);
  }
  function showFile() {
    problem = null; fields.clear();
    for (const id of ["scheme", "other", "numbers", "options"]) element(id).replaceChildren();
    element("summary").textContent = "a file in the folder of the lab";
  }
  // Disable the form until the response has arrived.
  function hold(held) {
    for (const id of ["scheme", "other", "numbers", "options"]) element(id).inert = held;
    element("run").disabled = held;
  }
  async function open(name) {
    const mine = ++opening;
    say("");
    document.documentElement.dataset.problem = "";
    hold(true);
    try {
      const found = name.startsWith("file:") ? null : await ask("/api/problems/" + encodeURIComponent(name));
      if (mine !== opening) return;
      if (found) show(name, found); else showFile();
      document.documentElement.dataset.problem = name;
    } catch (error) { if (mine === opening) say(error.message); }
    if (mine === opening) hold(false);
  }

  // -- running -----------------------------------------------------------------------------------------------------------
  function wanted() {
    const chosen = element("problem").value;
    if (chosen.startsWith("file:")) return { file: chosen.slice(5) };
    const options = {};
    for (const each of problem.options) {
      const { list, boxes } = fields.get("option " + each.name);
      if (boxes.some((box) => box.value !== box.usual)) options[each.name] = list ? boxes.map(written) : written(boxes[0]);
    }
    return {
      problem: problem.name, options, scheme: element("scheme").value, other: element("other").value,
      h: written(fields.get("h")), t_end: written(fields.get("t_end")),
    };
  }
  async function run() {
    const mine = ++asking, pressed = performance.now();
    say("");
    once = true;
    document.documentElement.dataset.done = "false";
    try {
      // One request at a time: the server executes the last request it receives, and the browser may reorder requests.
      const sent = submission.then(() => mine !== asking ? null
        : ask("/api/runs", { method: "POST", body: JSON.stringify(wanted()), headers: { "content-type": "application/json" } }));
      submission = sent.catch(() => null);
      const found = await sent;
      if (mine !== asking) return;
      job = found;
    } catch (error) {
      if (mine === asking) { say(error.message); document.documentElement.dataset.done = "refused"; }
      return;
    }
    element("reports").replaceChildren();
    element("open").hidden = true;
    element("stop").hidden = false;
    follow(job.run, pressed);
  }
  // Poll a run until it is done, or replaced by another one.
  async function follow(number, begun) {
    const mine = asking; // the status on the page belongs to the last request
    let version = 0, reports = 0, first = true, opened = false;
    while (job && job.run === number) {
      const told = await ask("/api/runs/" + number);
      if (job.run !== number) return;
      if (told.version > version) {
        version = told.version;
        const content = await ask("/api/runs/" + number + "/animation");
        if (job.run !== number) return;
        window.livens.load(content, !first);
        if (first) {
          document.documentElement.dataset.first = String(Math.round(performance.now() - begun));
          window.livens.play(true);
        }
        first = false;
        document.documentElement.dataset.updates = String(version);
      }
      if (told.error) say(told.error);
      for (; reports < told.reports.length; reports++) {
        const box = document.createElement("div");
        box.innerHTML = told.reports[reports]; // from the server, with all names escaped
        element("reports").append(box);
      }
      if (told.files.length && !opened) { opened = true; await offer(number, told); }
      const words = { waiting: "waiting for the worker process \u2026", running: version && told.files.length ? "estimating the accuracy \u2026" : "computing \u2026", done: "" };
      element("state").textContent = words[told.status];
      if (told.status === "done") {
        if (!opened && version) await offer(number, told);
        element("stop").hidden = true;
        if (mine === asking) document.documentElement.dataset.done = "true";
        return;
      }
      await new Promise((go) => setTimeout(go, version ? 200 : 20));
    }
  }
  async function offer(number, told) {
    const base = "/api/runs/" + number;
    const python = await ask(base + "/python"), text = await ask(base + "/scenario");
    if (job.run !== number) return; // replaced by another run
    element("python").textContent = python;
    element("scenario").textContent = text;
    element("scenario-box").hidden = !text;
    const links = [...told.files.map((name) => [name, base + "/files/" + name]), ["run.py", base + "/python"], ...(text ? [["run.yaml", base + "/scenario"]] : [])];
    element("downloads").replaceChildren(...links.map(([name, href]) => {
      const link = document.createElement("a");
      link.href = href; link.download = name; link.textContent = name;
      return link;
    }));
    element("open").hidden = false;
  }
  function changed() { if (once && element("at-once").checked) run(); }

  // -- start -------------------------------------------------------------------------------------------------------------
  element("form").onsubmit = (event) => { event.preventDefault(); run(); };
  element("stop").onclick = () => job && ask("/api/runs/" + job.run + "/stop", { method: "POST" });
  element("problem").onchange = async (event) => {
    await open(event.target.value);
    if (element("at-once").checked && document.documentElement.dataset.problem === event.target.value) run();
  };
  element("scheme").onchange = changed;
  element("other").onchange = changed;
  (async function () {
    const [every, files] = await Promise.all([ask("/api/problems"), ask("/api/files")]);
    const sections = new Map(), own = document.createElement("optgroup");
    for (const { name, section } of every) {
      if (!sections.has(section)) {
        sections.set(section, document.createElement("optgroup"));
        sections.get(section).label = section;
      }
      sections.get(section).append(option(name));
    }
    own.label = "files in this folder";
    own.append(...files.map((name) => option("file:" + name, name)));
    element("problem").append(...sections.values(), ...(files.length ? [own] : []));
    const first = query.get("problem");
    if (query.has("token")) history.replaceState(null, "", first ? "/?problem=" + encodeURIComponent(first) : "/");
    await open(every.some(({ name }) => name === first) ? first : "double-four-bar");
    document.documentElement.dataset.lab = "ready";
    if (problem) run();  // the page opens with a moving mechanism
  })().catch((error) => say(error.message));
})();
