// The page: both graphs, the panel, the search box, and what of these an address names
// (#region=3, #step=5, #node=NAME, #search=TEXT, #view=before, #theme=dark, #fold=0).
"use strict";

(function () {
  const root = document.documentElement;
  window.addEventListener("error", event => { root.dataset.error = event.message; });
  const page = JSON.parse(document.getElementById("data").textContent);
  const wanted = new URLSearchParams(location.hash.slice(1));

  document.title = page.title + " – RedFuser";
  document.getElementById("title").textContent = page.title;
  const facts = document.getElementById("facts");
  for (const [name, text] of page.facts) facts.append(element("span", {}, element("b", {}, name), " " + text));

  const dark = wanted.get("theme") ? wanted.get("theme") === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.classList.toggle("dark", dark);

  const classOf = new Map(page.regions.map(region => [region.id, region.class]));

  function aboutFileNode(node) {
    const step = node.role === "node" ? page.steps[page.owners[node.number]] : undefined;
    if (!step || step.region === undefined || step.region < 0) return {};
    return {region: step.region, colour: classOf.get(step.region) || "other"};
  }

  function aboutStep(node) {
    if (node.role !== "node") return {};
    const step = page.steps[node.number], isRegion = step.region !== undefined && step.region >= 0;
    const short = microseconds(step.measured_us) || (step.estimated_us != null ? "≈ " + microseconds(step.estimated_us) : "");
    const made = {colour: step.kind in kKinds ? step.kind : "opaque", share: step.share, time: panel.time(step), short};
    if (isRegion) made.region = step.region;
    return made;
  }

  const act = {
    fileName: source => page.before.nodes.find(node => node.number === source)?.name ?? `node ${source}`,
    showRegion: id => { showStep(page.regions.find(region => region.id === id).step, id); },
    showStep: number => showStep(number),
    showFileNode: name => showFileNode(page.before.nodes.findIndex(node => node.role === "node" && node.name === name)),
  };
  const panel = new Panel(page, act);

  const choose = (which, number) => {
    if (number === null) return clear();
    const node = page[which].nodes[number];
    if (which === "after" && node.role === "node") return showStep(node.number);
    if (which === "before") return showFileNode(number, false);
    views[which].show([number], false);
  };
  const views = {};
  for (const [which, about] of [["before", aboutFileNode], ["after", aboutStep]]) {
    const section = document.getElementById(which);
    const count = page[which].nodes.filter(node => node.role === "node").length;
    section.querySelector("small").textContent = which === "before" ? `${count} nodes of the file` : `${count} steps`;
    views[which] = new GraphView(section.querySelector("canvas"), page[which], about, number => choose(which, number));
  }

  function clear() {
    for (const view of Object.values(views)) view.show([], false);
    panel.open("regions");
  }

  function showStep(number, region, moveBefore = true) {
    const step = page.steps[number];
    if (step) {
      // A step also has nodes of which it reads but a view; those that it computes come first.
      const touched = new Set(step.nodes), before = [], after = [];
      const collect = wanted => page.before.nodes.forEach((node, i) => { if (node.role === "node" && wanted(node.number)) before.push(i); });
      collect(source => page.owners[source] === number);
      if (before.length === 0) collect(source => touched.has(source));
      page.after.nodes.forEach((node, i) => { if (node.role === "node" && node.number === number) after.push(i); });
      views.before.show(before, moveBefore);
      views.after.show(after, true);
      panel.showStep(number);
    } else if (region !== undefined) {
      panel.showRegion(region);
    }
  }

  function showFileNode(index, move = true) {
    if (index < 0) return;
    const number = page.owners[page.before.nodes[index].number] ?? -1;
    if (number >= 0) showStep(number, undefined, false);
    views.before.show([index], move);
  }

  function setView(name) {
    for (const which of ["before", "after"]) document.getElementById(which).hidden = name !== "both" && name !== which;
    for (const button of document.querySelectorAll("#views button")) button.classList.toggle("on", button.dataset.view === name);
  }
  for (const button of document.querySelectorAll("#views button")) button.onclick = () => setView(button.dataset.view);

  const fold = document.getElementById("fold");
  const setFolded = folded => {
    for (const view of Object.values(views)) { view.setFolded(folded); if (view.width) view.fit(true); }
  };
  document.addEventListener("fold", () => fold.classList.toggle("on", Object.values(views).some(view => view.folded)));
  fold.hidden = !views.before.canFold() && !views.after.canFold();
  fold.onclick = () => setFolded(!fold.classList.contains("on"));
  document.getElementById("fit").onclick = () => { for (const view of Object.values(views)) view.fit(false); };
  document.getElementById("theme").onclick = () => {
    root.classList.toggle("dark");
    for (const view of Object.values(views)) { view.strip = null; view.redraw(); }
  };

  // Search: all words, anywhere in an operator, a name, a region or a reason.
  const box = document.getElementById("search"), results = document.getElementById("results");
  const entries = [];
  for (const region of page.regions) entries.push({kind: region.class, name: `region ${region.id}: ${region.nodes.join(", ")}`, open: () => act.showRegion(region.id)});
  page.before.nodes.forEach((node, i) => { entries.push({kind: node.title, name: node.name, open: () => node.role === "node" ? showFileNode(i) : views.before.show([i])}); });
  page.steps.forEach((step, number) => { if (step.kind !== "alias" && !(step.region >= 0)) entries.push({kind: step.kind, name: `step ${number}: ${step.label}`, open: () => showStep(number)}); });
  for (const entry of entries) entry.text = `${entry.kind} ${entry.name}`.toLowerCase();
  let at = -1, found = [];
  const point = place => {
    at = place;
    [...results.children].forEach((item, i) => item.classList.toggle("at", i === at));
    results.children[at]?.scrollIntoView({block: "nearest"});
  };
  function search() {
    const words = box.value.toLowerCase().split(/\s+/).filter(word => word);
    const all = words.length === 0 ? [] : entries.filter(entry => words.every(word => entry.text.includes(word)));
    found = all.slice(0, 60);
    results.replaceChildren(...found.map(entry => element("li", {onclick: () => { entry.open(); results.hidden = true; }},
        element("b", {}, entry.kind), element("span", {class: "name"}, entry.name))));
    if (all.length > found.length) results.append(element("li", {class: "soft"}, `and ${all.length - found.length} more`));
    if (words.length > 0 && all.length === 0) results.append(element("li", {class: "soft"}, "nothing found"));
    results.hidden = words.length === 0;
    at = -1;
  }
  box.oninput = search;
  box.onfocus = search;
  box.onkeydown = event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { point(Math.max(0, Math.min(found.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)))); event.preventDefault(); }
    if (event.key === "Enter" && found.length > 0) { found[Math.max(at, 0)].open(); results.hidden = true; }
    if (event.key === "Escape") { results.hidden = true; box.blur(); }
  };
  document.addEventListener("pointerdown", event => { if (!event.target.closest(".search")) results.hidden = true; });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== box) { box.focus(); event.preventDefault(); }
  });

  function open() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.get("region") !== null && classOf.has(Number(wanted.get("region")))) act.showRegion(Number(wanted.get("region")));
    if (wanted.get("step") !== null && page.steps[Number(wanted.get("step"))]) showStep(Number(wanted.get("step")));
    if (wanted.get("node") !== null) act.showFileNode(wanted.get("node"));
    if (wanted.get("tab") !== null) panel.open(wanted.get("tab"));
    if (wanted.get("search") !== null) { box.value = wanted.get("search"); search(); }
  }
  setView(wanted.get("view") || "both");
  fold.classList.toggle("on", !fold.hidden);
  if (wanted.get("fold") === "0") setFolded(false);
  for (const view of Object.values(views)) view.resize();
  panel.open("regions");
  open();
  for (const view of Object.values(views)) view.draw();
  root.dataset.ready = "yes";
  window.addEventListener("hashchange", open);
})();
