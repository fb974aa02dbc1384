// The side panel: lists of regions, steps and refusals, and what is known of one of them.
"use strict";

function microseconds(value) {
  if (value === null || value === undefined) return "";
  return value >= 1000 ? (value / 1000).toPrecision(3) + " ms" : value >= 100 ? value.toFixed(0) + " µs" : value.toPrecision(3) + " µs";
}

function percent(share) {
  return share === null || share === undefined ? "" : (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";
}

function badge(kind) {
  return element("span", {class: "badge", style: `background: var(--${kind in kKinds ? kind : "opaque"})`}, kind);
}

const kKinds = {attention: 1, row: 1, product: 1, chain: 1, other: 1, map: 1, reduce: 1, opaque: 1};

class Panel {
  // `act` has showStep(number), showFileNode(name), showRegion(id).
  constructor(page, act) {
    Object.assign(this, {page, act});
    this.panel = document.getElementById("panel");
    const steps = page.steps.filter(step => step.kind !== "alias");
    this.tabs = [["regions", `Regions ${page.regions.length}`, () => this.regions()],
                 ["steps", `Steps ${steps.length}`, () => this.steps()],
                 ["refused", `Not fused ${page.refused.length}`, () => this.refused()]];
    const nav = document.getElementById("tabs");
    for (const [name, text, show] of this.tabs) {
      nav.append(element("button", {"data-tab": name, role: "tab", onclick: () => this.open(name)}, text));
    }
  }

  open(name) {
    this.fill(name, this.tabs.find(tab => tab[0] === name)[2]());
  }

  fill(tab, content) {
    for (const button of document.querySelectorAll("#tabs button")) button.classList.toggle("on", button.dataset.tab === tab);
    this.panel.replaceChildren(...content);
    this.panel.scrollTop = 0;
  }

  time(step) {
    if (!step) return "";
    const measured = microseconds(step.measured_us);
    if (measured) return step.share ? `${measured} · ${percent(step.share)}` : measured;
    const estimated = microseconds(step.estimated_us);
    return estimated ? "≈ " + estimated : "";
  }

  kernelText(step) {
    if (!step) return "";
    if (step.refusal) return "no kernel on this device";
    const families = [...new Set(step.kernels.map(kernel => kernel.family))];
    return families.join(" + ");
  }

  card(kind, title, step, names, onclick, id) {
    const share = step && step.share;
    return element("div", {class: "card", onclick, "data-id": id},
        element("div", {class: "line"}, badge(kind), element("span", {}, title),
                element("span", {class: "time"}, this.time(step))),
        element("div", {class: "names"}, names),
        share ? element("div", {class: "bar"}, element("i", {style: `width: ${100 * share}%; background: var(--${kind in kKinds ? kind : "opaque"})`})) : null);
  }

  ordered(list, stepOf) {
    const weight = entry => { const step = stepOf(entry); return step ? step.measured_us ?? step.estimated_us ?? -1 : -1; };
    return [...list].sort((a, b) => weight(b) - weight(a));
  }

  regions() {
    const stepOf = region => this.page.steps[region.step];
    const cards = this.ordered(this.page.regions, stepOf).map(region =>
        this.card(region.class, this.kernelText(stepOf(region)), stepOf(region), region.nodes.join(", "),
                  () => this.act.showRegion(region.id), "region-" + region.id));
    if (cards.length === 0) cards.push(element("p", {class: "soft"}, "Nothing was fused."));
    return cards;
  }

  steps() {
    const numbered = this.page.steps.map((step, number) => ({step, number})).filter(({step}) => step.kind !== "alias");
    return this.ordered(numbered, entry => entry.step).map(({step, number}) =>
        this.card(step.kind, this.kernelText(step), step, step.label, () => this.act.showStep(number), "step-" + number));
  }

  refused() {
    if (this.page.refused.length === 0) return [element("p", {class: "soft"}, "No cascade was refused.")];
    return this.page.refused.map(entry => element("div", {class: "card refused"},
        element("div", {}, entry.reason),
        entry.blame ? element("div", {}, "at ", this.nodeLink(entry.blame)) : null,
        element("div", {class: "names"}, entry.nodes.join(", "))));
  }

  nodeLink(name) {
    return element("a", {class: "node", onclick: () => this.act.showFileNode(name)}, name);
  }

  nodeList(names) {
    const list = element("div", {class: "nodes"});
    names.forEach((name, i) => list.append(i ? ", " : "", this.nodeLink(name)));
    return list;
  }

  showStep(number) {
    const step = this.page.steps[number];
    if (step.region !== undefined && step.region >= 0) return this.showRegion(step.region);
    const names = step.nodes.map(source => this.act.fileName(source));
    this.fill("steps", [element("h3", {}, badge(step.kind), `step ${number}`), ...this.kernels(step), element("h4", {}, "Nodes"), this.nodeList(names)]);
  }

  showRegion(id) {
    const region = this.page.regions.find(each => each.id === id), step = this.page.steps[region.step];
    this.fill("regions", [
      element("h3", {}, badge(region.class), `region ${region.id}`),
      ...this.kernels(step),
      ...this.equations(region.equations, region.forms),
      region.cases > 0 ? element("p", {class: "soft"}, `Verified on ${region.cases} adversarial cases, largest error ${region.max_error ?? "not finite"}.`) : null,
      element("h4", {}, "Nodes"), this.nodeList(region.nodes)].filter(child => child));
  }

  kernels(step) {
    if (!step) return [];
    const made = [element("h4", {}, "Kernel")];
    if (step.refusal) made.push(element("p", {}, step.refusal));
    if (step.divided) made.push(element("p", {}, "Steps of their own, faster than one kernel."));
    const target = this.page.target ? ` for ${this.page.target}` : "";
    for (const kernel of step.kernels) {
      made.push(element("p", {}, element("b", {}, kernel.family), ` ${kernel.configuration}`,
                        kernel.name ? element("div", {class: "soft"}, kernel.name) : null));
    }
    if (target && step.kernels.some(kernel => kernel.name)) made.push(element("p", {class: "soft"}, `As generated${target}.`));
    const rows = [];
    const row = (name, text) => { if (text) rows.push(element("tr", {}, element("th", {}, name), element("td", {class: "number"}, text))); };
    row("estimated", microseconds(step.estimated_us));
    row("measured", microseconds(step.measured_us));
    row("share of all steps", percent(step.share));
    row("bytes read and written", step.bytes > 0 ? (step.bytes / 1e6).toFixed(2) + " MB" : "");
    row("bandwidth", step.bytes > 0 && step.measured_us > 0 ? (step.bytes / step.measured_us / 1e3).toFixed(0) + " GB/s" : "");
    if (rows.length > 0) made.push(element("table", {}, ...rows));
    if (step.candidates.length > 0) made.push(element("h4", {}, "Candidates"), this.candidates(step.candidates));
    return step.kernels.length + rows.length + step.candidates.length > 0 || step.refusal ? made : [];
  }

  candidates(list) {
    const columns = [["estimated_us", "estimate"], ["measured_us", "measured"]].filter(([key]) => list.some(each => each[key] !== null));
    const configuration = each => each.configuration.startsWith(each.family) ? each.configuration.slice(each.family.length).trim() : each.configuration;
    const head = element("tr", {}, element("th", {}, "family"), ...columns.map(([, name]) => element("th", {class: "number"}, name)));
    return element("table", {id: "candidates"}, head, ...list.map(each => element("tr", {},
        element("td", {}, element("b", {}, each.family), " ", configuration(each), each.refusal ? element("div", {class: "soft"}, each.refusal) : null),
        ...columns.map(([key]) => element("td", {class: "number"}, microseconds(each[key]))))));
  }

  // The cascade, its forms, the accumulators and what is made of them.
  equations(e, forms) {
    if (!e) return [];
    const math = new Equations(e.values), rows = [];
    const below = (reduce, k) => element("span", {class: "op"}, (kSigns[reduce] ?? reduce) + (k ?? ""), element("sub", {}, math.render(e.stream.split("<")[0])));
    const indexed = (left, columns) => element("span", {class: "math"}, left, columns.length
        ? element("span", {class: "indices"}, "[", math.render(columns.map(each => each.split("<")[0]).join(",")), "]") : null);
    const line = (left, ...right) => element("div", {class: "equation"}, element("span", {}, left, " ="), element("span", {class: "right math"}, ...right.filter(each => each)));
    rows.push(element("h4", {}, "Cascade"), element("p", {class: "soft"}, "over ", math.render(e.stream), e.rows.length ? " for " : "", math.render(e.rows.join(","))));
    e.stages.forEach((stage, i) => rows.push(line(indexed(variable("d", i), stage.columns), below(stage.reduce, stage.k), " ", math.render(stage.text),
        stage.columns.length ? element("span", {class: "soft"}, "  for ", math.render(stage.columns.join(","))) : null)));
    if (e.where.length > 0) rows.push(element("p", {class: "soft"}, "where"));
    for (const part of e.where) {
      const name = /^([a-z]\d*)\[(.*)\]$/.exec(part.name);
      rows.push(line(element("span", {class: "math"}, element("i", {}, name[1]), element("sub", {}, math.render(name[2]))), math.render(part.text)));
    }
    rows.push(element("h4", {}, "Streaming form"));
    e.references.forEach((reference, i) => rows.push(line(element("span", {class: "math"}, variable("m", i)), math.render(reference.text))));
    e.accumulators.forEach((a, i) => {
      const left = element("span", {}, indexed(variable("A", i), a.columns));
      const right = [below(a.reduce), " ", math.render(a.lift), element("span", {class: "form"}, a.form)];
      if (a.moved) right.push(element("div", {class: "soft"}, "moved by ", math.render(a.moved)));
      rows.push(element("div", {class: "equation"}, element("span", {}, left, " ←"), element("span", {class: "right math"}, ...right)));
    });
    rows.push(element("h4", {}, "Finish"));
    e.finish.forEach((text, i) => rows.push(line(element("span", {class: "math"}, variable("d", i)), math.render(text))));
    e.outputs.forEach((output, i) => rows.push(line(indexed(variable("y", i), output.axes), math.render(output.text))));
    rows.push(...this.forms(forms, math), ...this.values(math, e.outputs));
    return rows;
  }

  forms(forms, math) {
    if (!forms.some(form => form.G || form.H || form.rho)) return [];
    const table = element("table", {class: "values"}, element("tr", {}, element("th", {}, "stage"), element("th", {}, "F separates into")));
    forms.forEach((form, i) => {
      const cell = element("td", {});
      for (const [key, name] of [["G", "G"], ["H", "H"], ["rho", "ρ"]]) {
        if (form[key]) cell.append(element("div", {class: "math"}, element("i", {}, name), " = ", math.render(form[key])));
      }
      table.append(element("tr", {}, element("td", {}, element("span", {class: "math"}, variable("d", i)), element("span", {class: "form"}, form.form)), cell));
    });
    return [element("h4", {}, "Forms"), table];
  }

  values(math, outputs) {
    const row = (letter, number, text) => element("tr", {}, element("td", {class: "math"}, variable(letter, number)), element("td", {}, text));
    const rows = [...math.names.values()].filter(name => name.full).map(name => row(name.letter, name.sub, name.full));
    rows.push(...outputs.map((output, i) => row("y", i, output.value)));
    return rows.length > 0 ? [element("h4", {}, "Values"), element("table", {class: "values"}, ...rows)] : [];
  }
}
